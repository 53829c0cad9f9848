"""Contractions as gpu kernels: equal to float64 in irc's interpreter, in Triton's, and compiled for
sm_90."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from contractions import Product, formed, launched

import irc
from irc.codegen.triton import runtime
from irc.interp.core import Frame
from irc.interp.kernel import launch
from irc.ir.diagnostics import InvalidIR
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.target.gpu import GpuFeatures

F8, F8_2 = torch.float8_e4m3fn, torch.float8_e5m2
GATED = ["arith.addf %_, %c : f32", "math.tanh %_ : f32", "arith.mulf %_, %r : f32"]
TWICE = ["arith.addf %_, %u2 : f32", "arith.mulf %_, %r : f32"]
TINY = {"tile_m": 16, "tile_n": 16, "tile_k": 16}
SMALL = {"tile_m": 32, "tile_n": 32, "tile_k": 32}
CASES: dict[str, tuple[Product, dict[str, Any]]] = {
    "default": (Product(50, 140, 70), {}),
    "f16": (Product(70, 33, 40, torch.float16), {}),
    "f32": (Product(50, 40, 70, torch.float32), {"precision": "ieee"}),
    "tf32x3": (Product(50, 40, 70, torch.float32), {"precision": "tf32x3"}),
    "bf16x6": (Product(50, 40, 70, torch.float32), {"precision": "bf16x6"}),
    "bf16x6_in_parts": (
        Product(50, 40, 70, torch.float32, b_strides=(1, 70), epilogue=GATED),
        {"precision": "bf16x6", "products": "dot", "tile_m": 16, "tile_n": 24, "tile_k": 16}),
    "i8": (Product(33, 40, 70, torch.int8), {"tile_k": 32}),
    "e4m3": (Product(33, 40, 70, F8), {"tile_k": 32}),
    "e5m2": (Product(33, 40, 70, F8_2), {"tile_k": 32}),
    "depth_4": (Product(33, 129, 4), {"tile_k": 16}),
    "depth_0": (Product(33, 40, 0), TINY),
    "one_row": (Product(1, 129, 40), {"tile_m": 16}),
    "few_rows": (Product(3, 200, 70), {"products": "swapped"}),
    "one_column": (Product(70, 1, 40), {"tile_n": 16}),
    "no_rows": (Product(0, 129, 40), {"tile_m": 16}),
    "batch": (Product(50, 40, 70, batch=3), SMALL),
    "batch_broadcast": (Product(50, 40, 70, batch=3, b_strides=(0, 40, 1)), SMALL),
    "transposed": (
        Product(50, 70, 70, a_strides=(1, 50), b_strides=(1, 70)), {"group_m": 3, **TINY}),
    "repeated": (Product(50, 70, 33, a_strides=(0, 1), b_strides=(0, 0)), {"tile_k": 32}),
    "overlapping": (Product(50, 70, 33, a_strides=(1, 1), b_strides=(3, 2)), {"tile_k": 32}),
    "padded_rows": (Product(50, 70, 33, a_strides=(40, 1), b_strides=(72, 1)), {}),
    "descriptors": (Product(50, 72, 40, b_strides=(72, 1)), {"access": "descriptors", **SMALL}),
    "descriptors_transposed": (
        Product(56, 72, 40, a_strides=(1, 56), b_strides=(1, 40)),
        {"access": "descriptors", "programs": 3, **SMALL}),
    "descriptors_of_one": (Product(50, 70, 40), {"access": "descriptors", **SMALL}),
    "odd_depth_of_rows_apart": (Product(50, 48, 71, a_strides=(80, 1)), {}),
    "odd_rows_apart": (Product(71, 48, 50, a_strides=(1, 80)), {}),
    "programs": (Product(50, 70, 33), {"programs": 3, **SMALL}),
    "more_programs_than_tiles": (Product(50, 70, 33), {"programs": 300, **SMALL}),
    "prologues": (
        Product(50, 70, 33, left=["math.exp %_ : f32"], right=["math.cos %_ : f32"]),
        {"precision": "ieee"}),
    "rounded_prologue": (
        Product(50, 70, 33, left=["math.exp %_ : f32"]), {"precision": "bf16"}),
    "epilogue": (Product(50, 70, 33, epilogue=GATED), {}),
    "epilogue_in_parts": (
        Product(50, 70, 33, epilogue=GATED), {"column_parts": 4, "tile_n": 64}),
    "parts_beyond_the_columns": (
        Product(50, 72, 33, epilogue=GATED), {"column_parts": 2, "tile_n": 16}),
    "columns_of_two_powers": (
        Product(50, 140, 33, b_strides=(1, 33), epilogue=GATED),
        {"tile_m": 64, "tile_n": 96, "column_parts": 2}),
    "swapped_epilogue": (
        Product(7, 70, 33, epilogue=GATED), {"column_parts": 2, "products": "swapped"}),
    "odd_rows_in_groups": (Product(48, 103, 40), {"row_group": 8, **SMALL}),
    "even_rows_in_groups": (Product(44, 106, 40, batch=3), {"row_group": 8, **SMALL}),
    "odd_rows_of_f32": (
        Product(68, 101, 40, torch.float32), {"row_group": 4, "precision": "ieee", **TINY}),
    "odd_rows_by_few_programs": (
        Product(72, 263, 70, b_strides=(1, 72)),
        {"row_group": 8, "programs": 3, **SMALL}),
    "odd_rows_with_epilogue": (Product(72, 135, 33, epilogue=GATED), {"row_group": 8, **SMALL}),
    "odd_rows_in_groups_of_lines": (
        Product(64, 263, 40), {"row_group": 32, **SMALL}),
    "even_rows_in_groups_of_lines_in_a_flat_loop": (
        Product(64, 266, 72, b_strides=(1, 72)),
        {"row_group": 64, "programs": 3, "flat": True, **SMALL, "tile_n": 64}),
    "odd_rows_in_column_parts": (
        Product(40, 103, 33, epilogue=GATED),
        {"row_group": 8, "tile_m": 32, "tile_n": 96, "tile_k": 32, "column_parts": 2}),
    "odd_rows_in_a_flat_loop": (
        Product(72, 263, 70, b_strides=(1, 72)),
        {"row_group": 8, "programs": 3, "flat": True, **SMALL}),
    "even_rows_in_a_flat_loop": (
        Product(44, 106, 40, batch=3),
        {"row_group": 8, "programs": 2, "flat": True, "tile_m": 32, "tile_n": 96, "tile_k": 32,
         "column_parts": 2}),
    "odd_rows_of_f32_in_a_flat_loop": (
        Product(68, 101, 40, torch.float32, epilogue=GATED),
        {"row_group": 4, "precision": "ieee", "programs": 3, "flat": True, **TINY}),
    "two_products": (Product(50, 70, 33, epilogue=TWICE, twice=True), {"programs": 2, **SMALL}),
}  # fmt: skip


def expected(product: Product, args: list[torch.Tensor]) -> torch.Tensor:
    a, b, *rest = (t.double() for t in args)
    total = (a.exp() if product.left else a) @ (b.cos() if product.right else b)
    if product.twice:
        return (total + rest[2] @ rest[3]) * rest[0]
    return torch.tanh(total + rest[1]) * rest[0] if product.epilogue else total


def near(product: Product, actual: torch.Tensor, exact: torch.Tensor) -> None:
    """Within what the result and rounded factors may be off."""
    assert actual.shape == exact.shape
    if actual.dtype is torch.int32:
        assert torch.equal(actual.double(), exact)
        return
    most = exact.abs().max().item() if exact.numel() else 0.0
    off = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[actual.dtype]
    torch.testing.assert_close(actual.double(), exact, rtol=off, atol=off * most)


@pytest.fixture(scope="session")
def triton_results() -> dict[str, torch.Tensor]:
    """Every case in Triton's interpreter, in one process."""
    kernels = {name: formed(product.text(), **given) for name, (product, given) in CASES.items()}
    jobs = [kernels[name].job(product.arguments()) for name, (product, _) in CASES.items()]
    outputs = runtime.run_interpreted(jobs)
    return {name: tensors[kernels[name].result]
            for name, tensors in zip(kernels, outputs, strict=True)}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_has_the_products_of_float64(name: str) -> None:
    product, given = CASES[name]
    args = product.arguments()
    near(product, formed(product.text(), **given).interpreted(args), expected(product, args))


@pytest.mark.parametrize("name", CASES)
def test_triton_has_the_products_of_float64(
    name: str, triton_results: dict[str, torch.Tensor]
) -> None:
    product, _ = CASES[name]
    near(product, triton_results[name], expected(product, product.arguments()))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_has_the_products_of_float64(name: str) -> None:
    product, given = CASES[name]
    args, kernel = product.arguments("cuda"), formed(product.text(), **given)
    tensors, result = kernel.tensors(args)
    runtime.launch(kernel.func, kernel.source, tensors)
    near(product, tensors[result].cpu(), expected(product, [a.cpu() for a in args]))


@pytest.mark.parametrize("epilogue", [(), GATED], ids=["sums", "epilogue"])
def test_one_part_of_a_depth_is_all_of_it(epilogue: list[str]) -> None:
    made = launched(Product(64, 64, 128, epilogue=epilogue).text(), split_k=1, **SMALL)
    assert len(made.kernels) == 1
    assert len(launched(Product(64, 64, 128).text(), split_k=2, **SMALL).kernels) == 2


@pytest.mark.parametrize("rows", [8, 512])
def test_factors_that_are_rounded_on_the_way_have_room(rows: int) -> None:
    """In flight they are as wide as they are read."""
    product = Product(rows, 2048, 2048, torch.float32, b_strides=(1, 2048))
    kernel = formed(product.text(), precision="bf16")
    assert kernel.compiled()["shared"] <= GpuFeatures.sm_90().block_bytes


ODD = Product(1024, 1003, 64, a_strides=(1, 1024), b_strides=(1, 64))


def test_odd_rows_are_stored_in_whole_groups() -> None:
    """All but the ends of rows, which a branch stores element by element."""
    kernel = formed(ODD.text())
    entries = kernel.schedule.entries.as_dict()
    assert entries["row_group"].value == 8
    lasts = attrs.evolve(ODD, a_strides=(64, 1))
    assert formed(lasts.text()).schedule.entries.as_dict()["row_group"].value == 8
    for other in (attrs.evolve(ODD, n=1008), attrs.evolve(ODD, m=1023)):
        assert formed(other.text()).schedule.entries.as_dict()["row_group"].value == 1
    each = entries["tile_m"].value * entries["tile_n"].value // (32 * entries["num_warps"].value)
    wide, single = stores_of(kernel)
    assert (wide, single) == (each // 8, each)
    assert stores_of(formed(ODD.text(), row_group=1)) == (0, each)


def stores_of(kernel: Any) -> tuple[int, int]:
    """How often a thread stores 16 bytes, and 2."""
    ptx = kernel.compiled()["ptx"]
    return ptx.count("st.global.v4.b32"), ptx.count("st.global.b16")


def test_a_flat_loop_of_rows_in_groups_has_no_branch() -> None:
    """Triton 3.6 fails where a flat loop has a branch: behind the loop each thread stores its share
    of a tile of the two groups at the ends of rows."""
    entries = {"tile_m": 128, "tile_n": 256, "tile_k": 64, "num_warps": 8, "num_stages": 3}
    kernel = formed(ODD.text(), row_group=8, programs=3, flat=True, **entries)
    assert not any(op.name == "kernel.if" for op in kernel.func.walk())
    wide, single = stores_of(kernel)
    assert wide == 128 * 256 // (32 * 8 * 8) and single == 128 * 16 // (32 * 8)


@pytest.mark.parametrize("given", [
    {"row_group": 8, "products": "swapped"}, {"row_group": 64, "m": 992},
    {"row_group": 8, "m": 1022}, {"row_group": 8, "n": 1008},
    {"row_group": 32, "tile_n": 80},
], ids=str)  # fmt: skip
def test_rows_without_groups_are_told(given: dict[str, Any]) -> None:
    sizes = {key: given[key] for key in given if key in ("m", "n")}
    entries = {key: given[key] for key in given if key not in sizes}
    with pytest.raises(InvalidIR, match="no (whole )?groups of"):
        formed(attrs.evolve(ODD, **sizes).text(), **entries)


FAR = Product(2, 40, 32, a_strides=((1 << 31) + 8, 1))


def test_strides_beyond_31_bits_have_long_indices() -> None:
    assert formed(FAR.text()).func.index_bits == 64
    assert formed(Product(2, 40, 32).text()).func.index_bits == 32


@pytest.mark.gpu
@pytest.mark.parametrize("given", [{}, {"products": "swapped"}, {"access": "descriptors", **TINY}])
def test_a_gpu_has_products_of_far_rows(given: dict[str, Any]) -> None:
    flat = torch.empty((1 << 31) + 40, dtype=FAR.dtype, device="cuda")
    a = flat.as_strided((2, 32), FAR.a_strides)
    a.copy_(torch.randn(2, 32))
    args, kernel = [a, torch.randn(32, 40).to(a)], formed(FAR.text(), **given)
    tensors, result = kernel.tensors(args)
    runtime.launch(kernel.func, kernel.source, tensors)
    near(FAR, tensors[result].cpu(), expected(FAR, [each.cpu() for each in (a.clone(), args[1])]))


def test_rows_that_end_between_vectors_are_read_by_descriptors() -> None:
    """A mask would cut what a thread reads at once."""

    def access(product: Product) -> str:
        return str(formed(product.text()).schedule.entries.as_dict()["access"])

    for name in ("odd_depth_of_rows_apart", "odd_rows_apart"):
        assert access(CASES[name][0]) == '"descriptors"'
    for product in (Product(50, 48, 72, a_strides=(80, 1)), Product(50, 48, 71),
                    Product(50, 48, 71, torch.float32, a_strides=(80, 1)),
                    Product(50, 48, 71, batch=2), CASES["prologues"][0]):  # fmt: skip
        assert access(product) == '"pointers"'


#: No number where zero is read.
QUOTIENT = ("math.cos %_ : f32", "arith.mulf %_, %q1 : f32", "arith.divf %_, %q1 : f32")


@pytest.mark.parametrize("computed", [{}, {"right": QUOTIENT}, {"left": ("math.exp %_ : f32",)}])
@pytest.mark.parametrize(("depth", "parts", "size"), [(190, 3, 64), (256, 4, 64), (190, 2, 128)])
def test_parts_of_a_depth_begin_where_vectors_do(
    depth: int, parts: int, size: int, computed: dict[str, Any]
) -> None:
    """Where it has no such equal parts, the last one is shorter, and factors that are computed are
    zero beyond the depth."""
    product = Product(5, 16, depth, b_strides=(1, depth), **computed)
    given, args = {**SMALL, "tile_n": 16, "split_k": parts}, product.arguments()
    made = launched(product.text(), **given)
    first = made.kernels[0][0]
    assert f"{size} : index" in irc.print_op(first)
    arrays = made.arrays(args)
    for func, _, taken, results in made.kernels:
        launch(Frame(None, symbols={}), func, [arrays[k] for k in (*taken, *results)])
    near(product, arrays[made.last], expected(product, args))


NARROW = {"tile_m": 64, "tile_k": 64, "num_warps": 4, "num_stages": 3}


@pytest.mark.parametrize("columns", [80, 96, 144, 160])
def test_no_narrow_part_of_columns_stands_beside_a_wide_one_in_registers(columns: int) -> None:
    """Triton 3.6 multiplies it wrongly on an H200."""
    computed = Product(512, 1440, 512, right=("math.exp %_ : f32",))
    with pytest.raises(InvalidIR, match=f"tiles of {columns} columns have parts of fewer than 64"):
        formed(computed.text(), tile_n=columns, **NARROW)
    for other in (attrs.evolve(computed, b_strides=(1, 512)), Product(512, 1440, 512)):
        assert formed(other.text(), tile_n=columns, **NARROW).source
    for m, n in ((512, 1440), (788, 768), (512, 96), (2048, 2304)):
        made = formed(attrs.evolve(computed, m=m, n=n).text())
        width = made.schedule.entries.as_dict()["tile_n"].value
        assert width & -width >= min(64, width)


@pytest.mark.parametrize("depth, more", [(64, {}), (512, {"num_stages": 1})])
def test_no_narrow_part_is_in_registers_for_want_of_steps_ahead(
    depth: int, more: dict[str, Any]
) -> None:
    """What is read goes through registers where one step alone is in flight; what lies along the
    depth may, and wide tiles."""
    plain, given = Product(512, 1440, depth), {"tile_n": 144, **NARROW, **more}
    with pytest.raises(InvalidIR, match="of 144 columns have parts of fewer than 64"):
        formed(plain.text(), **given)
    assert formed(attrs.evolve(plain, b_strides=(1, depth)).text(), **given).source
    assert formed(plain.text(), **{**given, "tile_n": 192}).source
    for m, n in ((512, 1440), (788, 768), (2048, 2304)):
        made = formed(attrs.evolve(plain, m=m, n=n).text(), **more)
        width = made.schedule.entries.as_dict()["tile_n"].value
        assert width & -width >= min(64, width)


@pytest.mark.gpu
@pytest.mark.parametrize("depth", [64, 500])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [96, 144, 160, 192, 1440])
def test_a_gpu_has_products_of_columns_as_they_lie(
    depth: int, dtype: torch.dtype, columns: int
) -> None:
    product = Product(512, columns, depth, dtype=dtype)
    args, kernel = product.arguments("cuda"), formed(product.text())
    tensors, result = kernel.tensors(args)
    runtime.launch(kernel.func, kernel.source, tensors)
    near(product, tensors[result].cpu(), expected(product, [a.cpu() for a in args]))


@pytest.mark.gpu
@pytest.mark.parametrize("given", [{}, *({"tile_n": n, **NARROW} for n in (16, 32, 64, 128, 192))])
@pytest.mark.parametrize("depth", [512, 500])
def test_a_gpu_has_products_of_computed_columns(given: dict[str, Any], depth: int) -> None:
    product = Product(512, 1440, depth, right=("math.cos %_ : f32",))
    args, kernel = product.arguments("cuda"), formed(product.text(), **given)
    tensors, result = kernel.tensors(args)
    runtime.launch(kernel.func, kernel.source, tensors)
    near(product, tensors[result].cpu(), expected(product, [a.cpu() for a in args]))


LARGE = {"tile_m": 128, "tile_n": 128, "tile_k": 64, "num_warps": 4, "num_stages": 3}


@pytest.mark.parametrize(
    ("product", "given", "instruction"),
    [
        (Product(512, 512, 512), LARGE, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        (Product(512, 512, 512, b_strides=(1, 512)), LARGE, "wgmma.mma_async"),
        (Product(512, 512, 512, torch.float32), {"precision": "tf32", **LARGE, "tile_k": 32},
         "f32.tf32.tf32"),
        (Product(512, 512, 512, F8, b_strides=(1, 512)), LARGE, "e4m3"),
        (Product(8, 512, 512), {"products": "swapped"}, "m64n16k16.f32.bf16.bf16"),
        (FAR, {"access": "descriptors", **TINY}, "cp.async.bulk.tensor"),
    ],
)  # fmt: skip
def test_what_sm_90_multiplies(
    product: Product, given: dict[str, Any], instruction: str
) -> None:
    compiled = formed(product.text(), **given).compiled()
    assert instruction in compiled["ptx"]
    assert compiled["local_memory_bytes"] == 0


def test_steps_of_whole_depths_have_no_masks() -> None:
    """And what is read in a loop is read as a whole, for copies to be made ahead of it."""
    source = formed(Product(512, 512, 512).text(), **LARGE).source
    assert "mask" not in source
    source = formed(Product(512, 509, 509, b_strides=(509, 1)).text(), **LARGE).source
    assert source.count("tl.load(") == 2


@pytest.mark.parametrize(
    ("product", "error"),
    [
        (Product(50, 40, 70, torch.float32, left=["math.exp %_ : f32"]), None),
        (Product(50, 40, 70), "its schedule has no entry 'precision'"),
    ],
)
def test_schedules_that_are_no_contractions(product: Product, error: str | None) -> None:
    made = formed(product.text(), precision="ieee")
    if error is None:
        return
    from irc.dialects import loop
    from irc.ir import attributes as A
    from irc.passes.kernel.gpu.form import form_gpu_kernel

    entries = made.schedule.entries.as_dict()
    del entries["precision"]
    with pytest.raises(InvalidIR, match=error):
        form_gpu_kernel(made.op, loop.ScheduleAttr("gpu", A.DictAttr(entries)))


@pytest.mark.parametrize("chip", ["sm_80", "sm_86", "sm_90"])
def test_tiles_in_flight_fit_the_memory_of_a_gpu(chip: str) -> None:
    gpu = GpuFeatures(chip)
    for rows, columns, depth in ((512, 768, 3072), (2048, 3072, 768), (4096, 4096, 4096)):
        module = irc.parse(Product(rows, columns, depth, b_strides=(1, depth)).text())
        op = next(o for o in module.walk() if o.name == "loop.compute")
        entries = default_schedule(op, gpu=gpu).entries.as_dict()
        m, n, k, stages = (
            entries[key].value for key in ("tile_m", "tile_n", "tile_k", "num_stages")
        )
        assert (m + n) * k * 2 * stages <= gpu.block_bytes
