"""Who multiplies on a CPU by its figures: the library, or a kernel of irc's; and that the default
pipeline does what they say."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import torch

import irc
from irc.analysis.pixel_ways import pixel_speed
from irc.analysis.processor_ways import fills_panels, multiplies_parts, processor_ways
from irc.analysis.symbolic_sizes import SymbolicSize
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import Dim, floordiv, minimum, symbol, value_at
from irc.ir.types import TensorType, bf16, f32
from irc.options.options import from_mapping
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.passes.frozen.freezing_support import known_program

FIGURES = "product_rows = [4, 16, 128], own_products = [{}], own_panels = [{}]"

S0, S1 = symbol("s0"), symbol("s1")


def target(plain: str = "200, 150, 90", frozen: str = "300, 110, 100", more: str = "") -> Target:
    """A CPU with AVX2 whose kernels have such shares of the library's speed."""
    return Target.named(f"#irc.target<avx2, {FIGURES.format(plain, frozen)}{more}>")


def call_of(function: Any, *args: torch.Tensor, dynamic: bool = False) -> graph.CallAten:
    """The one product of a function as a call of the library's."""
    module = irc.trace(function, args, dynamic=dynamic)
    PassManager.parse("functional,convert-aten-to-graph,canonicalize").run(module)
    (call,) = (op for op in module.walk() if isinstance(op, graph.CallAten))
    return call


def factors(m: int, n: int, k: int = 768, dtype: torch.dtype = torch.float32) -> Any:
    return torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype)


@pytest.mark.parametrize(
    ("m", "n", "plain", "frozen"),
    [(3, 768, None, None), (4, 768, 2.0, 3.0), (768, 15, 2.0, 3.0), (16, 768, 1.5, 1.1),
     (127, 127, 1.5, 1.1), (128, 128, 0.9, 1.0)],
)  # fmt: skip
def test_the_fewer_of_rows_and_columns_decide(
    m: int, n: int, plain: float | None, frozen: float | None
) -> None:
    call = call_of(torch.mm, *factors(m, n))
    for packed, times in ((False, plain), (True, frozen)):
        ways = processor_ways(call, target(), packed)
        assert (ways is None) == (times is None)
        if ways is not None and times is not None:
            assert ways.library / ways.own == pytest.approx(times)
            assert ways.best == ("irc" if times > 1.01 else "aten")


def test_a_batch_takes_as_long_as_its_products() -> None:
    one = processor_ways(call_of(torch.mm, *factors(64, 64)), target(), False)
    x, y = factors(64, 64)
    eight = processor_ways(
        call_of(torch.bmm, x.expand(8, -1, -1), y.expand(8, -1, -1)), target(), False
    )
    assert one is not None and eight is not None
    assert eight.library == pytest.approx(8 * one.library, rel=1e-6)


def test_how_much_faster_it_has_to_be_is_a_figure() -> None:
    call = call_of(torch.mm, *factors(16, 768))
    ways = processor_ways(call, target(more=", sure_products = 1.6"), False)
    assert ways is not None and ways.best == "aten"


def test_a_weight_that_onednn_cannot_pack_competes_with_atens() -> None:
    call = call_of(torch.mm, *factors(16, 768))
    ways = processor_ways(call, target(more=", library = []"), True)
    assert ways is not None and ways.library / ways.own == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("depth", "dtype"), [(4, torch.float32), (768, torch.float64), (768, torch.float16)]
)
def test_of_others_nothing_is_known(depth: int, dtype: torch.dtype) -> None:
    call = call_of(torch.mm, *factors(64, 64, depth, dtype))
    assert processor_ways(call, target(), False) is None


@pytest.mark.parametrize(("columns", "panels"), [(32, True), (36, False), (100, False),
                                                 (104, True), (4, False), (5, False)])  # fmt: skip
def test_weights_that_leave_panels_empty_are_read_as_they_lie(columns: int, panels: bool) -> None:
    """By kernels of irc's, whose values are right."""
    torch.manual_seed(0)
    assert fills_panels(columns, target()) == panels
    assert processor_ways(call_of(torch.mm, *factors(64, columns)), target(), True) is not None
    linear, x = torch.nn.Linear(768, columns).eval(), torch.randn(64, 768)
    faster = target("300, 300, 300", "300, 300, 300")
    module = known_program(linear, x)
    context = PassContext(target=faster, options=from_mapping({"freezing": True}))
    PassManager.parse("functional,freeze,convert-aten-to-graph,canonicalize,choose-contractions,"
                      "panel-products").run(module, context)  # fmt: skip
    (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
    assert ("tile_vectors" in str(product.attributes.get("schedule"))) == panels
    irc.metrics.reset()
    torch._dynamo.reset()
    program = torch.compile(linear, backend="irc", dynamic=False,
                            options={"freezing": True, "target": str(faster)})  # fmt: skip
    with torch.no_grad():
        torch.testing.assert_close(program(x), linear(x), rtol=1e-5, atol=1e-5)
    assert irc.metrics.aten_calls == 0


def with_tiles(sets: tuple[str, ...] = ("amx-bf16", "amx-tile")) -> Target:
    """A CPU with AVX-512 and registers of whole tiles of bf16, or with none."""
    record = TargetFeatures.avx512()
    return Target(attrs.evolve(record, sets=(*record.sets, *sets)))


@pytest.mark.parametrize(
    ("m", "n", "k", "known"),
    [(64, 96, 96, True), (5, 32, 768, True), (64, 50257, 96, True), (64, 80, 96, True),
     (64, 96, 80, False)],
)  # fmt: skip
def test_registers_of_whole_tiles_are_to_be_filled(m: int, n: int, k: int, known: bool) -> None:
    """Of other numbers of terms a processor that has them multiplies by vectors, at a fraction of
    the rate."""
    call = call_of(torch.mm, *factors(m, n, k, torch.bfloat16))
    assert (processor_ways(call, with_tiles(), False) is not None) == known
    assert processor_ways(call, with_tiles(()), False) is not None


@pytest.mark.parametrize(("sizes", "parts"), [
    ((128, 768, 768), (True, True)), ((127, 768, 768), (False, True)),
    ((8, 64, 64), (False, False)),
    ((128, 760, 768), (False, False)), ((4, 128, 96, 50257), (True, True)),
])  # fmt: skip
def test_parts_are_multiplied_where_figures_say_that_they_are_faster(
    sizes: tuple[int, ...], parts: tuple[bool, bool]
) -> None:
    figures = {"own_split": (1, 100, 130), "own_split_panels": (1, 150, 150),
               "own_products": (120, 110, 95), "own_panels": (130, 140, 105)}  # fmt: skip
    base = with_tiles()
    target = attrs.evolve(base, processor=evolve(base.processor, **figures))
    for frozen, wanted in zip((False, True), parts, strict=True):
        assert multiplies_parts(sizes, f32, target, frozen) == wanted
        assert not multiplies_parts(sizes, f32, with_tiles(()), frozen)
        several = attrs.evolve(target, threads=target.features.split_threads + 1)
        assert not multiplies_parts(sizes, f32, several, frozen)
        assert not multiplies_parts(sizes, bf16, target, frozen)


def test_with_many_threads_the_library_has_less_of_its_speed() -> None:
    """Those of products, and of convolutions of single pixels."""
    base = Target.named("avx512")
    figures = {"own_products": (120, 110, 95), "own_panels": (130, 140, 95),
               "own_pixels": (100, 100, 90), "crowded_library": 72}  # fmt: skip
    few = attrs.evolve(base, processor=evolve(base.processor, **figures))
    many = attrs.evolve(few, threads=few.features.split_threads + 1)
    product = call_of(torch.mm, *factors(256, 256))
    pixels = call_of(torch.conv2d, torch.empty(1, 256, 16, 16), torch.empty(256, 256, 1, 1))
    for target, best, speed in ((few, "aten", 90), (many, "irc", 125)):
        for frozen in (False, True):
            ways = processor_ways(product, target, frozen)
            assert ways is not None and ways.best == best
        assert pixel_speed(pixels, target) == speed


def test_registers_of_whole_tiles_take_terms_and_columns_that_are_known() -> None:
    weight = torch.empty(96, 4096, dtype=torch.bfloat16)
    left = torch.empty(64, 96, dtype=torch.bfloat16)
    call = call_of(lambda x: x @ weight, left, dynamic=True)
    assert processor_ways(call, with_tiles(), False) is not None
    call = call_of(lambda x: weight.t() @ x, torch.empty(96, 70, dtype=torch.bfloat16),
                   dynamic=True)  # fmt: skip
    assert processor_ways(call, with_tiles(), False) is None
    assert processor_ways(call, with_tiles(()), False) is not None


def test_of_sizes_that_are_symbols_nothing_is_known() -> None:
    call = call_of(torch.mm, *factors(64, 64), dynamic=True)
    assert processor_ways(call, target(), False) is None


def test_sizes_that_no_program_has_count_for_nothing() -> None:
    """With 1 in its place the symbol makes a size that is divided by 0."""
    weight = torch.empty(96, 768)
    call = call_of(lambda x: x.reshape(x.shape[0] // 4, -1, 96) @ weight,
                   torch.empty(64, 96), dynamic=True)  # fmt: skip
    left = call.operands[0].type
    assert isinstance(left, TensorType) and value_at(left.shape[-2], 1) is None
    known = processor_ways(call, target("200, 150, 110"), False)
    assert known is not None and known.best == "irc"


@pytest.mark.parametrize(("size", "number", "values"), [
    (4 * S0, 100, {"s0": 25}), (S0 * S1, 100, {"s0": 1, "s1": 100}), (4 * S0, 2, {"s0": 1}),
    (floordiv(S0, 32), 4, {"s0": 32}), (floordiv(S0, 32) * S1, 100, {"s0": 32, "s1": 100}),
    (floordiv(S0 * S1, floordiv(S0, 4)), 64, {"s0": 4, "s1": 16}),
    (minimum(S0, 100), 64, {"s0": 64}),
    ((floordiv(S0 - 7, 2) + 1) * (floordiv(S1 - 7, 2) + 1), 4, {"s0": 8, "s1": 8}),
])  # fmt: skip
def test_symbols_have_values_with_which_there_is_a_size(
    size: Dim, number: int, values: dict[str, int]
) -> None:
    assert SymbolicSize.of(size).values(number) == values


def test_the_pipeline_does_what_the_figures_say() -> None:
    """The library's product stays a call, irc's becomes a kernel; either way the values are right.
    """
    torch.manual_seed(0)
    linear = torch.nn.Linear(96, 80).eval()
    x = torch.randn(40, 96)
    for freezing in (False, True):
        for share, calls in (("100, 300, 100", 0), ("100, 50, 100", 1)):
            text = str(target(share, share))
            irc.metrics.reset()
            program = torch.compile(
                linear, backend="irc", dynamic=False,
                options={"freezing": freezing, "target": text},
            )  # fmt: skip
            with torch.no_grad():
                torch.testing.assert_close(program(x), linear(x), rtol=1e-5, atol=1e-5)
            assert irc.metrics.aten_calls == calls
