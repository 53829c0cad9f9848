"""Who multiplies on a GPU: the library as it is, on padded factors, or a kernel of irc's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.analysis.multiplied import Multiplied
from irc.analysis.product_ways import Ways, own_parts, ways_of
from irc.analysis.products import rows_of_call
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target import Target

H200 = Target.named("sm_90")


def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


def call_of(function: Callable[..., Any], args: Any, dynamic: bool = False) -> graph.CallAten:
    """The one product of a function as a call of the library's."""
    module = irc.trace(function, args, dynamic=dynamic)
    PassManager.parse("functional,convert-aten-to-graph,canonicalize").run(module)
    calls = [op for op in module.walk() if isinstance(op, graph.CallAten)]
    assert len(calls) == 1
    return calls[0]


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.t()


def odd(m: int, n: int, k: int = 768) -> tuple[torch.Tensor, torch.Tensor]:
    return empty(m, k), empty(n, k)


def decided(
    function: Callable[..., Any], args: Any, target: str = "sm_90", **options: Any
) -> tuple[list[str], list[str]]:
    """Who computes a function's products in the default pipeline, and the remarks on that."""
    chosen = from_mapping(options)
    module = irc.trace(function, args)
    context = PassContext(target=target, options=chosen)
    for name in ("functional", "aten-to-graph"):
        PassManager.parse(stages(target, chosen)[name], verify="each").run(module, context)
    kinds = {graph.DotGeneral: "irc", graph.CallAten: "library", graph.Pad: "pad"}
    who = [kinds[type(op)] for op in module.walk() if type(op) in kinds]
    passes = ("pad-matmul", "choose-contractions")
    return who, [r.message for r in context.remarks if r.pass_name in passes]


# -- rows


@pytest.mark.parametrize(
    ("function", "args", "rows"),
    [
        (linear, odd(64, 1001), (16, 16, 2)),
        (linear, odd(64, 1002), (16, 16, 4)),
        (linear, odd(64, 1004), (16, 16, 8)),
        (linear, odd(64, 1008), (16, 16, 16)),
        (torch.mm, (empty(64, 768), empty(768, 1001)), (16, 2, 2)),
        (torch.mm, (empty(64, 1001), empty(1001, 64)), (2, 16, 16)),
        (torch.mm, (empty(65, 64), empty(64, 64)), (16, 16, 16)),
        (lambda a, b: a.t() @ b, (empty(64, 65), empty(64, 64)), (2, 16, 16)),
        (torch.mm, (empty(64, 6, dtype=torch.float32), empty(6, 8, dtype=torch.float32)),
         (8, 16, 16)),
        (torch.mm, (empty(64, 64)[:, 1:33], empty(32, 64)), (16, 16, 16)),
        (torch.mm, (empty(64, 66)[:, ::2], empty(33, 64)), (2, 16, 16)),
        (torch.bmm, (empty(3, 5, 8), empty(3, 8, 8)), (16, 16, 16)),
        (torch.bmm, (empty(3, 8, 8), empty(3, 8, 7)), (16, 2, 2)),
    ],
)  # fmt: skip
def test_what_the_beginnings_of_rows_are_multiples_of(
    function: Any, args: Any, rows: tuple[int, int, int]
) -> None:
    told = rows_of_call(call_of(function, args))
    assert (told.left, told.right, told.result) == rows


def test_what_the_lengths_of_rows_are_multiples_of() -> None:
    apart = empty(64, 80)[:, :71]
    assert rows_of_call(call_of(torch.mm, (apart, empty(71, 64)))).sizes == (2, 16)
    assert rows_of_call(call_of(lambda a, b: a.t() @ b, (apart, empty(64, 64)))).sizes == (2, 16)
    assert rows_of_call(call_of(torch.mm, (apart, empty(71, 64)))).left == 16


def test_rows_that_the_program_alone_sees_are_moved_apart() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w.t()).exp()

    assert rows_of_call(call_of(function, odd(64, 1031))).result == 2
    assert rows_of_call(call_of(function, odd(64, 1031)), apart=1024).result == 16
    assert rows_of_call(call_of(function, odd(64, 1023)), apart=1024).result == 2
    assert rows_of_call(call_of(linear, odd(64, 1031)), apart=1024).result == 2

    def computed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x.exp() @ w

    made = call_of(computed, (empty(64, 1031), empty(1031, 64)))
    assert rows_of_call(made, apart=1024).left == 16 and rows_of_call(made).left == 2


def test_nothing_is_held_against_a_symbol() -> None:
    call = call_of(lambda x: x @ x.t(), (empty(17, 31),), dynamic=True)
    told = rows_of_call(call)
    assert told.least == 16 and ways_of(call, H200) is None


# -- times


def test_odd_columns_that_the_caller_sees_are_irc_s() -> None:
    ways = ways_of(call_of(linear, odd(4096, 50257)), H200)
    assert ways is not None and ways.best == "irc" and ways.parts == 1
    assert ways.own < ways.padded < ways.library


def test_a_result_that_nobody_sees_is_cut_for_nothing() -> None:
    args = odd(4096, 50257)
    seen = ways_of(call_of(linear, args), H200)
    inside = ways_of(call_of(lambda x, w: linear(x, w).exp(), args), H200)
    assert seen is not None and inside is not None
    assert inside.padded < seen.padded and inside.best == "padded"


def test_what_the_model_says_nothing_of() -> None:
    assert ways_of(call_of(linear, odd(4096, 1001)), Target.named("avx2")) is None
    assert ways_of(call_of(linear, odd(4096, 1008)), H200) is None
    assert ways_of(call_of(linear, odd(0, 1001)), H200) is None
    for dtype, target in ((torch.float32, Target.named("sm_80")), (torch.float64, H200)):
        args = empty(4096, 768, dtype=dtype), empty(1001, 768, dtype=dtype)
        assert ways_of(call_of(linear, args), target) is None
        assert own_parts(call_of(linear, args), target) == [1]
    tf32 = Target.named('#irc.target<sm_90, product_precision = "high">')
    args = empty(4096, 768, dtype=torch.float32), empty(1001, 768, dtype=torch.float32)
    ways = ways_of(call_of(linear, args), tf32)
    assert ways is not None and ways.best == "padded" and ways.own == float("inf")


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "best", "parts"),
    [(2048, 3072, 768, "irc", 1), (2048, 1001, 768, "irc", 1), (512, 768, 3072, "irc", 4),
     (16, 4096, 4096, "irc", 4), (256, 768, 768, None, 1), (2048, 3072, 128, None, 1),
     (4, 4096, 4096, None, 1)],
)  # fmt: skip
def test_f32_with_all_bits_is_irc_s_where_parts_of_it_are_fast(
    rows: int, columns: int, depth: int, best: str | None, parts: int
) -> None:
    """Aligned or not; of few terms or rows, or no faster ones, the model says nothing."""
    args = empty(rows, depth, dtype=torch.float32), empty(columns, depth, dtype=torch.float32)
    ways = ways_of(call_of(linear, args), H200)
    assert (ways and ways.best) == best
    assert own_parts(call_of(linear, args), H200)[0] == parts
    assert ways_of(call_of(linear, args), H200, own=False) is None


def test_a_few_rows_take_the_library_as_long_as_many() -> None:
    """The library's tiles have 128 rows."""
    for rows, who in ((1, None), (2, "irc"), (16, "irc")):
        ways = ways_of(call_of(linear, odd(rows, 50257)), H200)
        assert (None if ways is None else ways.best) == who
    fewer = Target.named("#irc.target<sm_90, library_tile = [8, 64]>")
    ways = ways_of(call_of(linear, odd(8, 50257)), fewer)
    assert ways is not None and ways.best == "aten"


def test_a_measurement_of_this_machine_says_what_the_library_takes() -> None:
    call = call_of(linear, odd(4096, 50257))
    slow, fast = (ways_of(call, H200, measure=lambda _, s=s: s) for s in (6.0, 0.9))
    assert slow is not None and fast is not None
    assert slow.best == "irc" and fast.best == "aten" and fast.library < fast.own
    alone = ways_of(call, H200, own=False, pads=False)
    assert alone is not None and alone.best == "aten"


def test_irc_has_to_be_surely_faster() -> None:
    assert Ways(100.0, 100.0, 92.0, 1, 1.1).best == "aten"
    assert Ways(100.0, 90.0, 89.0, 1, 1.1).best == "padded"
    assert Ways(100.0, 90.0, 80.0, 1, 1.1).best == "irc"


@pytest.mark.parametrize(
    ("figure", "value"),
    [("sure", "2.0"), ("library_rates", "[20000000, 20000000, 20000000]"),
     ("library_share", "0.2")],
)  # fmt: skip
def test_a_figure_decides(figure: str, value: str) -> None:
    call = call_of(linear, odd(4096, 50257))
    target = Target.named(f"#irc.target<sm_90, {figure} = {value}>")
    ways = ways_of(call, target)
    assert ways is not None and ways.best != "irc"


def test_a_deep_product_of_few_sums_is_summed_up_in_parts() -> None:
    call = call_of(linear, odd(512, 768, 30528))
    parts = own_parts(call, H200)
    assert parts[0] > 1 and set(parts) == set(range(1, 17))
    fewer = Target.named("#irc.target<sm_90, most_parts = 2>")
    assert set(own_parts(call, fewer)) == {1, 2}
    longer = Target.named("#irc.target<sm_90, part_depth = 20000>")
    assert own_parts(call, longer) == [1]
    assert own_parts(call_of(linear, odd(8192, 8192)), H200) == [1]


def test_the_last_part_has_something() -> None:
    line = 64
    for depth in (1024, 1025, 8200, 30523, 50257):
        for each in Multiplied(1, 64, 64, depth, 2).by_parts(H200.gpu):
            size = -(-depth // (each.parts * line)) * line
            assert each.parts == 1 or (each.parts - 1) * size < depth


# -- who decides


def test_a_product_whose_result_has_odd_rows_is_irc_s_by_default() -> None:
    who, remarks = decided(linear, odd(4096, 50257))
    assert who == ["irc"]
    assert "was not padded: another way is faster: irc's kernel" in remarks[0]
    assert "mm bf16 4096x768, 768x50257 is irc's own: irc's kernel" in remarks[1]


def test_a_factor_with_odd_rows_is_padded() -> None:
    assert decided(torch.mm, (empty(4096, 768), empty(768, 50257)))[0] == ["pad", "library"]


def test_options_say_who_may() -> None:
    args = odd(4096, 50257)
    for options in ({"max_autotune_gemm_backends": "ATEN"}, {"force_shape_pad": True}):
        assert decided(linear, args, **options)[0] == ["pad", "library"]
    assert decided(linear, args, shape_padding=False)[0] == ["irc"]
    plain = {"shape_padding": False, "max_autotune_gemm_backends": "ATEN"}
    assert decided(linear, args, **plain)[0] == ["library"]
    assert decided(linear, args, max_autotune_gemm_backends="IRC")[0] == ["irc"]
    assert decided(linear, odd(4096, 1008), max_autotune_gemm_backends="IRC")[0] == ["library"]


def test_two_products_read_one_padded_copy_of_a_factor() -> None:
    """The gradients of a projection, of a gradient that comes from outside."""

    def gradients(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
        return g.t() @ x, g @ w

    args = empty(4096, 50257), empty(4096, 768), empty(50257, 768)
    assert decided(gradients, args)[0] == ["pad", "library", "pad", "library"]
