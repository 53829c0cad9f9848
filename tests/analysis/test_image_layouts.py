"""Which convolutions on a GPU have channels innermost: the cut of least time."""

from __future__ import annotations

from typing import Any

import pytest

from irc.analysis.channels_last import decide
from irc.analysis.image_layouts import unseen_images
from irc.ir import attributes as A
from irc.ir.strides import channels_last_strides
from irc.ir.types import TensorType, bf16, contiguous_strides
from irc.target import Target
from tests.passes.layout.test_propagate_channels_last import convolution
from tests.passes.loop.programs import program, tensor

GPU = Target.named("sm_90")
IMAGE, WEIGHT = (tensor(*s).with_element(bf16) for s in ((4, 64, 28, 28), (64, 64, 3, 3)))


def chosen(body: Any, *types: TensorType, change: Any = None) -> tuple[list[bool], Any]:
    """For each convolution whether it gets channels last, and the verdict."""
    module = program(list(types or (IMAGE, WEIGHT)), body)
    (function,) = module.ops
    if change is not None:
        change(function)
    found = decide(function, GPU, 300)
    calls = [op for op in function.block.ops if getattr(op, "callee", "").endswith("ion.default")]
    return [call in found.calls for call in calls], found


def one(g: Any, x: Any, w: Any) -> Any:
    return g.op("tanh", convolution(g, x, w))


def chain(g: Any, x: Any, w: Any) -> Any:
    for _ in range(3):
        x = g.op("tanh", convolution(g, x, w))
    return x


def opaque(g: Any, x: Any) -> Any:
    made = g.call("aten.flip.default", x, type=x.type, arguments={})
    made.defining_op.attributes["operand_strides"] = A.ArrayAttr(
        [A.DimsAttr(contiguous_strides(x.type.shape))]
    )
    return made


def test_a_chain_is_computed_as_the_library_likes_it() -> None:
    which, verdict = chosen(chain)
    assert which == [True] * 3
    assert verdict.figures["microseconds_after"] < verdict.figures["microseconds_before"]


def test_a_convolution_alone_gains_nothing() -> None:
    def returned(g: Any, x: Any, w: Any) -> Any:
        return convolution(g, x, w)

    which, verdict = chosen(returned)
    assert which == [False] and not verdict.innermost
    # A kernel behind it reads the result in either order, for less than a copy takes.
    assert chosen(one)[0] == [True]


def test_calls_between_that_want_eagers_order_keep_it() -> None:
    def between(g: Any, x: Any, w: Any) -> Any:
        for _ in range(3):
            x = opaque(g, convolution(g, opaque(g, x), w))
        return x

    assert chosen(between)[0] == [False] * 3


def test_each_convolution_is_decided_by_itself() -> None:
    def apart(g: Any, x: Any, w: Any, y: Any) -> Any:
        return chain(g, x, w), opaque(g, convolution(g, opaque(g, y), w))

    assert chosen(apart, IMAGE, WEIGHT, IMAGE)[0] == [True, True, True, False]


def test_channels_that_go_to_the_end_and_back_lie_innermost_already() -> None:
    def turned(g: Any, x: Any, w: Any) -> Any:
        y = opaque(g, convolution(g, opaque(g, x), w))
        z = g.op("permute", y, permutation=[0, 2, 3, 1])
        return z

    def through(g: Any, x: Any, w: Any) -> Any:
        z = g.op("exp", g.op("permute", convolution(g, opaque(g, x), w), permutation=[0, 2, 3, 1]))
        return convolution(g, g.op("permute", z, permutation=[0, 3, 1, 2]), w)

    assert chosen(turned)[0] == [False]
    assert chosen(through)[0] == [True, True]


@pytest.mark.parametrize("shape", [(4, 1, 28, 28), (4, 64, 1, 1), (0, 64, 28, 28)])
def test_images_of_one_order_are_left_alone(shape: tuple[int, ...]) -> None:
    weight = tensor(8, shape[1], 3, 3).with_element(bf16)
    which, verdict = chosen(one, tensor(*shape).with_element(bf16), weight)
    assert which == [False] and not verdict.innermost


def told(function: Any, *entries: dict[str, Any]) -> None:
    """Give a function's results these entries, with contiguous strides and offset 0."""
    values = function.return_op.operands
    function.attributes["result_info"] = A.ArrayAttr(
        A.DictAttr({"strides": A.DimsAttr(contiguous_strides(v.type.shape)),
                    "offset": A.DimAttr(0), **entry})
        for v, entry in zip(values, entries, strict=True)
    )  # fmt: skip


def saved(*entries: dict[str, Any], body: Any = None) -> list[int]:
    """The results of a program with these entries whose order is free."""
    def two(g: Any, x: Any, w: Any) -> Any:
        y = g.op("tanh", convolution(g, x, w))
        return y, g.op("exp", y)

    module = program([IMAGE, WEIGHT], body or two)
    (function,) = module.ops
    told(function, *entries)
    return sorted(unseen_images(function))


def test_saved_images_are_the_programs_own() -> None:
    mark, link = {"saved": A.UNIT}, {"shares": A.IntegerAttr(0)}
    assert saved(mark, mark) == [0, 1]
    assert saved({}, mark) == [1] and saved({}, {}) == []
    # Others are in its array, or it in another one, or it begins in its middle.
    assert saved(mark, {**mark, **link}) == []
    assert saved({**mark, "offset": A.DimAttr(3)}, mark) == [1]
    assert saved({**mark, "alias_of": A.IntegerAttr(0)}, mark) == [1]

    def views(g: Any, x: Any, w: Any) -> Any:
        y = convolution(g, x, w)
        return g.op("permute", y, permutation=[0, 1, 3, 2]), g.op("exp", y), x

    def twice(g: Any, x: Any, w: Any) -> Any:
        y = convolution(g, x, w)
        return y, y

    assert saved(mark, mark, mark, body=views) == [1]
    assert saved({}, mark, body=twice) == saved(mark, mark, body=twice) == []


def test_what_is_saved_costs_nothing_what_is_shown_does() -> None:
    def all_shown(g: Any, x: Any, w: Any) -> Any:
        y = convolution(g, x, w)
        z = convolution(g, y, w)
        return y, z

    mark = {"saved": A.UNIT}
    hidden = chosen(all_shown, change=lambda f: told(f, mark, mark))
    shown = chosen(all_shown, change=lambda f: told(f, {}, {}))
    assert hidden[0] == [True, True]
    assert hidden[1].figures["microseconds_after"] < shown[1].figures["microseconds_after"]


def test_arguments_that_come_channels_last_cost_nothing() -> None:
    def come(function: Any) -> None:
        function.attributes["arg_info"] = A.ArrayAttr(
            A.DictAttr({"strides": A.DimsAttr(channels_last_strides(a.type.shape))})
            for a in function.block.arguments
        )

    assert chosen(one, change=come)[1].figures["microseconds_after"] < 0.2 * (
        chosen(one)[1].figures["microseconds_after"]
    )
