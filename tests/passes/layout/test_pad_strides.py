"""Padding of long rows: the rule alone, what is padded and what not, and values at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.dialects import graph, host
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, bf16, contiguous_strides, f32, i1, i64
from irc.options.options import from_mapping
from irc.passes.layout.pad_strides import padded_strides
from irc.pipeline import pipeline_text

LAYOUTS = "functional,convert-aten-to-graph,canonicalize,cse,assign-layouts,"
TINY = "pad-strides{threshold=2}"


def rule(shape: Any, strides: Any = None, element: Any = f32, **options: Any) -> list[Any]:
    given = contiguous_strides(shape) if strides is None else strides
    return list(padded_strides(shape, given, element, **options))


def test_an_outer_stride_follows_the_padded_one_inside() -> None:
    assert rule([2, 16, 2047]) == [2048 * 16, 2048, 1]


def test_rows_up_to_the_threshold_stay() -> None:
    assert rule([2, 32, 127]) == [4064, 127, 1]
    assert rule([4, 1024]) == [1024, 1]
    assert rule([4, 1025]) == [1056, 1]
    assert rule([4, 127], threshold=100) == [128, 1]


def test_alignment_is_in_bytes() -> None:
    assert rule([4, 1025], element=bf16) == [1088, 1]
    assert rule([4, 1025], element=i64) == [1040, 1]
    assert rule([4, 1025], element=i1) == [1152, 1]
    assert rule([4, 1025], alignment=16) == [1028, 1]


def test_the_order_of_the_dimensions_stays() -> None:
    assert rule([2047, 4], [1, 2047]) == [1, 2048]
    assert rule([3, 1, 2047]) == [2048, 2048, 1]


def test_an_outer_stride_can_be_the_first_to_be_long() -> None:
    assert rule([2, 33, 33]) == [1120, 33, 1]  # 33 is short, 1089 is not


def test_images_with_channels_last_stay_unless_asked() -> None:
    shape, last = [2, 3, 5, 1025], [15375, 1, 3075, 3]
    assert rule(shape) == [15840, 5280, 1056, 1]
    assert rule(shape, last) == last
    assert rule(shape, last, channels_last=True) == [15520, 1, 3104, 3]


def test_symbolic_sizes_stay_unless_asked() -> None:
    n = symbol("n")
    assert rule([n, 2047]) == [2047, 1]
    assert rule([n, 2047], symbolic=True) == [2048, 1]
    assert rule([2, n, 2047], symbolic=True) == [n * 2048, 2048, 1]


def test_scalars_and_short_vectors_stay() -> None:
    assert rule([]) == []
    assert rule([5000]) == [1]


# -- the pass


def traced(function: Callable[..., Any], args: Any, passes: str, dynamic: bool = False) -> Any:
    module = irc.trace(function, args, dynamic=dynamic)
    context = PassManager.parse(LAYOUTS + passes, verify="each").run(module)
    return module, context


def padded_values(module: Any) -> list[Any]:
    """The strides of the values that are not dense, views left out."""
    found = []
    for op in module.walk():
        for value in op.results:
            kind = value.type
            if isinstance(kind, TensorType) and "view" not in op.attributes and kind.strides:
                if tuple(kind.strides) != contiguous_strides(kind.shape):
                    found.append(list(kind.strides))
    return found


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("turned", [False, True])
def test_factors_of_a_librarys_product_of_halves_stay(dtype: torch.dtype, turned: bool) -> None:
    # On a CPU such a product reads the memory between the rows, and multiplies it with zeros.
    def multiplied(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = x.exp()
        return (rows.t() @ y if turned else rows @ y.t()).exp() + 1

    x, y = random(6, 5).to(dtype), random(*((6, 7) if turned else (7, 5))).to(dtype)
    module, context = traced(multiplied, (x, y), TINY)
    halves = dtype.itemsize == 2
    call = next(op for op in module.walk() if isinstance(op, graph.CallAten))
    assert call.callee == "aten.mm.default"
    assert max(call.operands[0].type.strides) == (5 if halves else 32)
    assert any("between its rows" in remark.message for remark in context.remarks) == halves


def test_remarks_say_why_something_is_not_padded() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        hidden = torch.relu(x)
        return torch.conv2d(hidden, w), hidden.exp().sum(3)

    module, context = traced(function, (random(1, 2, 5, 2047), random(3, 2, 3, 3)), "pad-strides")
    messages = [r.message for r in context.remarks if r.pass_name == "pad-strides"]
    assert any("aten.convolution.default wants exact strides" in m for m in messages)
    assert any("the caller sees it (result 0)" in m for m in messages)
    assert [22528 // 11 * 5, 2048, 1] == padded_values(module)[0][1:]  # only the exponential
    assert len(padded_values(module)) == 1


def test_a_dislike_ends_at_a_reduction() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        scaled = x.exp()
        top = scaled.amax(1, keepdim=True)  # (2, 1, 5, 7)
        return torch.conv2d(top * 2, w)

    args = (random(2, 3, 5, 7), random(3, 1, 3, 3))
    module, _ = traced(function, args, TINY)
    exps = [op for op in module.walk() if isinstance(op, graph.Exp)]
    muls = [op for op in module.walk() if isinstance(op, graph.Mul)]
    assert exps[0].results[0].type.strides != contiguous_strides((2, 3, 5, 7))
    assert muls[0].results[0].type.strides == contiguous_strides((2, 1, 5, 7))


def test_what_is_written_to_an_argument_is_not_padded() -> None:
    def function(x: torch.Tensor) -> None:
        x.copy_(x.exp())

    module, context = traced(function, (random(4, 2047),), "pad-strides")
    assert not padded_values(module)
    assert any("argument 0" in r.message for r in context.remarks)


def test_a_view_that_would_become_a_copy_keeps_its_source_dense() -> None:
    module, context = traced(lambda x: x.exp().view(-1) + 1, (random(4, 2047),), "pad-strides")
    assert not padded_values(module)
    assert any("graph.reshape of it would become a copy" in r.message for r in context.remarks)


def test_views_follow_what_they_are_views_of() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.exp().view(2, 2, 2047).permute(2, 0, 1)[1:] * 2

    module, _ = traced(function, (random(4, 2047),), "pad-strides")
    views = [op for op in module.walk() if "view" in op.attributes]
    assert [list(v.results[0].type.strides) for v in views] == [
        [4096, 2048, 1], [1, 4096, 2048], [1, 4096, 2048],
    ]  # fmt: skip


def test_bytes_are_counted_and_limited() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x @ x.t()) @ (x.t() @ x).sum(0)[: x.shape[0]]

    args = (random(1030, 1030),)
    _, context = traced(function, args, "pad-strides")
    # Two products and one map.
    assert context.statistics["pad-strides", "padding bytes"] == 3 * 1029 * 26 * 4
    _, context = traced(function, args, "pad-strides{max-bytes=200000}")
    assert context.statistics["pad-strides", "padded"] == 1
    assert any("over the limit" in r.message for r in context.remarks)


def test_symbolic_sizes_are_left_alone_unless_asked() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.exp() @ x.t().exp()).sum(0)

    args = (random(6, 2047),)
    module, context = traced(function, args, "pad-strides", dynamic=True)
    assert not context.statistics["pad-strides", "padded"]
    module, context = traced(function, args, "pad-strides{symbolic threshold=40}", dynamic=True)
    assert context.statistics["pad-strides", "padded"]
    torch.testing.assert_close(irc.run(module, *args)[0], function(*args), rtol=1e-4, atol=1e-4)


# -- everything below handles what is padded

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "products": (
        lambda x, y: torch.matmul(torch.matmul(x, y) + 1, y), (random(2, 3, 37), random(37, 37)),
    ),
    "batched products": (
        lambda x, y: torch.bmm(torch.bmm(x, y).exp(), y.transpose(1, 2)),
        (random(2, 3, 5) / 9, random(2, 5, 37)),
    ),
    "linear": (
        lambda x, w, b: torch.nn.functional.linear(x, w, b).log_softmax(1).sum(0),
        (random(5, 7), random(37, 7), random(37)),
    ),
    "baddbmm": (
        lambda b, x, y: torch.baddbmm(b, x, y).amax(2), (random(2, 3, 37), random(2, 3, 5),
                                                         random(2, 5, 37)),
    ),
    "softmax": (lambda x: (x.softmax(1) @ x.t()).exp(), (random(5, 37),)),
    "layer norm": (
        lambda x, w: torch.nn.functional.layer_norm(x @ w, (37,)) @ w.t(),
        (random(5, 3), random(3, 37)),
    ),
    "scan": (lambda x, w: ((x @ w).cumsum(1) @ w.t()), (random(5, 3), random(3, 37))),
    "concatenation": (
        lambda x, w: torch.cat([x @ w, (x @ w).flip(0)], 1).t() @ x, (random(5, 3), random(3, 37)),
    ),
    "gather": (
        lambda x, i, w: (x @ w)[i].exp() @ w.t(),
        (random(5, 3), torch.tensor([4, 0, 0, 2]), random(3, 37)),
    ),
    "scatter": (
        lambda x, i, w: (x @ w).index_add(0, i, (x @ w)[i]) @ w.t(),
        (random(5, 3), torch.tensor([4, 0, 0, 2]), random(3, 37)),
    ),
    "an operator that takes exact strides": (
        lambda x, w: torch.sort(x @ w, 1)[0].exp() @ w.t(), (random(5, 3), random(3, 37)),
    ),
    "views of it returned": (
        lambda x, w: ((x @ w).t(), (x @ w)[1:, 3:].exp()), (random(5, 3), random(3, 37)),
    ),
    "half precision": (
        lambda x, w: ((x @ w).relu() @ w.t()).float(),
        (random(5, 3).to(torch.bfloat16), random(3, 37).to(torch.bfloat16)),
    ),
    "empty": (lambda x, w: (x @ w).exp() @ w.t(), (random(0, 3), random(3, 37))),
    "update": (
        lambda x, w: x.add_(((x @ w).exp() @ w.t()) * 1e-3), (random(5, 3), random(3, 37)),
    ),
}  # fmt: skip


def stages(passes: str) -> list[str]:
    """The parts of a pipeline between which the program changes its level."""
    ends = ("insert-layout-copies", "convert-to-loop", "elide-rounding", "form-kernels",
            "plan-memory")  # fmt: skip
    places = [0, *(passes.index(end) + len(end) for end in ends)]
    return [passes[a:b].strip(",") for a, b in zip(places, places[1:], strict=False)]


def expected_of(name: str) -> tuple[list[Any], list[torch.Tensor]]:
    function, args = PROGRAMS[name]
    copies = [a.clone() for a in args]
    found = function(*copies)
    return list(found) if isinstance(found, tuple) else [found], copies


def check(name: str, results: Any, args: Any) -> None:
    expected, changed = expected_of(name)
    for ours, theirs in zip([*results, *args], [*expected, *changed], strict=True):
        tolerance = 2e-2 if "half" in name else 1e-4
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        assert ours.stride() == theirs.stride() or not ours.numel()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["llvm", "triton"])
def test_padded_programs_have_eagers_values_at_every_level(name: str, target: str) -> None:
    function, args = PROGRAMS[name]
    chosen = from_mapping({"comprehensive_padding": True, "padding_stride_threshold": 2})
    module, context = irc.trace(function, args), PassContext(target=target)
    for passes in stages(pipeline_text(target, chosen, functional=False)):
        PassManager.parse(passes, verify="each").run(module, context)
        given = [a.clone() for a in args]
        check(name, irc.run(module, *given), given)
    assert context.statistics["pad-strides", "padded"] or name == "empty"


@pytest.mark.parametrize("name", PROGRAMS)
def test_padded_programs_have_eagers_values_compiled(name: str) -> None:
    function, args = PROGRAMS[name]
    options = {"comprehensive_padding": True, "padding_stride_threshold": 2}
    compiled = torch.compile(function, backend="irc", fullgraph=True, options=options)
    given = [a.clone() for a in args]
    results = compiled(*given)
    check(name, results if isinstance(results, tuple) else (results,), given)


def test_a_product_writes_into_padded_memory() -> None:
    module = irc.trace(lambda x, w: (x @ w).exp() @ w.t(), (random(5, 3), random(3, 37)))
    chosen = from_mapping({"comprehensive_padding": True, "padding_stride_threshold": 2})
    context = PassManager.parse(pipeline_text("llvm", chosen, functional=False)).run(module)
    calls = [op for op in module.walk() if isinstance(op, host.CallAtenOp)]
    assert [c.callee for c in calls] == ["aten.mm.out", "aten.mm.out"]
    assert calls[0].operands[2].type.strides == (64, 1)
    # The exponential takes the product's memory.
    assert context.statistics["bufferize", "padding bytes"] == 4 * (64 - 37) * 4


def test_padding_is_off_on_a_cpu_and_on_for_triton() -> None:
    assert "pad-strides" not in pipeline_text("llvm")
    assert "pad-strides" in pipeline_text("triton")
    off, on = (from_mapping({"comprehensive_padding": v}) for v in (False, True))
    assert "pad-strides" not in pipeline_text("triton", off)
    assert "pad-strides" in pipeline_text("llvm", on)
    limited = from_mapping({"comprehensive_padding": True, "padding_max_bytes": 5})
    assert "pad-strides{max_bytes=5}" in pipeline_text("llvm", limited)
