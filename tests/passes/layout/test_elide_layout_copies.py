"""Copies are placed where few bytes move, and what the caller sees stays as it was."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

import irc.interp
from irc.dialects import layout
from irc.ir import attributes as A
from irc.ir import parse
from irc.ir.passes import PassContext, PassManager
from irc.ir.strides import same_layout
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.layout.elide_layout_copies import is_flexible, is_shared, layouts_of, side
from tests.passes.layout.test_propagate_channels_last import TYPES, convolution
from tests.passes.loop.programs import program, tensor

PIPELINE = "propagate-channels-last,assign-layouts,insert-layout-copies,elide-layout-copies"


def lowered(module: Any, pipeline: str = PIPELINE) -> PassContext:
    context = PassContext()
    PassManager.parse(pipeline, verify="each").run(module, context)
    return context


def copies(module: Any) -> list[layout.CopyOp]:
    return [op for op in module.walk() if isinstance(op, layout.CopyOp)]


def moved(module: Any) -> int:
    """Elements read in another order than written, copies counted twice."""
    total = 0
    for op in module.walk():
        if isinstance(op, layout.CopyOp):
            total += 2 * math.prod(op.copy.type.shape)
        elif op.name.startswith("graph.") and op.name != "graph.call_aten":
            made = op.results[0].type if op.results else None
            for value in op.operands:
                kind = value.type
                if made is not None and kind.shape == made.shape:
                    if not same_layout(kind.shape, kind.strides, made.strides):
                        total += math.prod(kind.shape)
    return total


def test_a_result_that_a_convolution_reads_is_copied_once() -> None:
    def body(g: Any, x: Any, w: Any) -> Any:
        y = g.op("tanh", convolution(g, x, w))
        z = convolution(g, g.op("exp", convolution(g, y, w)), w)
        return y, g.op("sin", z)

    module = program(TYPES, body)
    x, w = torch.randn(2, 8, 5, 6), torch.randn(8, 8, 3, 3)
    expected = irc.interp.run(module, x, w)
    context = lowered(module)
    # The argument, and the result that the second convolution reads, too.
    found = copies(module)
    assert [c.reason for c in found] == ["operand 0 of aten.convolution.default",
                                         "result 0 of the function"]  # fmt: skip
    assert context.statistics["elide-layout-copies", "copies"] == 2
    assert context.statistics["elide-layout-copies", "copies inside"] == 0
    assert sum("1920 bytes are copied" in r.message for r in context.remarks) == 2
    got = irc.interp.run(module, x, w)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)
        assert a.stride() == contiguous_strides((2, 8, 5, 6))


def random_body(seed: int) -> Any:
    """A program of convolutions, pointwise ops, joins, pads and views, with some results."""

    def body(g: Any, x: Any, w: Any) -> Any:
        choose = random.Random(seed)
        values = [x]
        for _ in range(choose.randint(3, 9)):
            source = choose.choice(values[-3:])
            kind = choose.choice(("conv", "conv", "tanh", "exp", "add", "mul"))
            if kind == "conv":
                made = convolution(g, source, w)
            elif kind in ("add", "mul"):
                made = g.op(kind, source, choose.choice(values))
            else:
                made = g.op(kind, source)
            values.append(made)
        results = choose.sample(values[1:], choose.randint(1, min(3, len(values) - 1)))
        return tuple(results)

    return body


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_meaning_and_move_no_more(seed: int) -> None:
    types = [tensor(2, 4, 5, 3), tensor(4, 4, 3, 3)]
    module = program(types, random_body(seed))
    x, w = torch.randn(2, 4, 5, 3), torch.randn(4, 4, 3, 3)
    expected = irc.interp.run(module, x, w)
    before = program(types, random_body(seed))
    lowered(before, PIPELINE.removesuffix(",elide-layout-copies"))
    lowered(module)
    assert moved(module) <= moved(before)
    got = irc.interp.run(module, x, w)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)
        assert a.stride() == contiguous_strides((2, 4, 5, 3))
    pointers = [a.untyped_storage().data_ptr() for a in got]
    assert len(set(pointers)) == len(pointers)


def test_layout_optimization_can_be_switched_off() -> None:
    from irc.options.options import from_mapping
    from irc.pipeline import pipeline_text

    text = pipeline_text(options=from_mapping({"layout_optimization": False, "freezing": True}))
    assert "propagate-channels-last" not in text
    assert "pack-weights{convolutions=false}" in text
    assert "propagate-channels-last" in pipeline_text()


def test_copies_of_one_value_for_two_calls_become_one() -> None:
    def body(g: Any, x: Any, w: Any) -> Any:
        y = convolution(g, x, w)
        return g.op("add", g.op("tanh", y), g.op("exp", convolution(g, x, w)))

    module = program(TYPES, body)
    lowered(module)
    assert len(copies(module)) == 1
    assert isinstance(copies(module)[0].attributes["reason"], A.StringAttr)


# -- which layout a value has, and whose memory


@pytest.mark.parametrize(
    ("sizes", "both"),
    [
        ((2, 3, 4, 5), ((60, 1, 15, 3), (60, 20, 5, 1))),
        ((2, 3, 4, 5, 6), ((360, 1, 90, 18, 3), (360, 120, 30, 6, 1))),
        ((2, 1, 4, 5), None), ((2, 3, 1, 1), None), ((0, 3, 4, 5), None), ((2, 3, 4), None),
        ((2, 3, 4, 5, 6, 7), None),
    ],
)  # fmt: skip
def test_images_have_two_layouts(sizes: Any, both: Any) -> None:
    assert layouts_of(TensorType(sizes, f32)) == both


@pytest.mark.parametrize(
    ("sizes", "strides", "name"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3), "last"), ((2, 3, 4, 5), (60, 20, 5, 1), "plain"),
        ((1, 3, 4, 5), (7, 1, 15, 3), "last"), ((1, 3, 4, 5), (7, 20, 5, 1), "plain"),
        ((2, 3, 4, 5), (60, 20, 1, 4), None), ((2, 3, 4), (12, 4, 1), None),
        ((2, 1, 4, 5), (20, 20, 5, 1), None),
    ],
)  # fmt: skip
def test_a_layout_is_known_by_its_strides(sizes: Any, strides: Any, name: Any) -> None:
    assert side(TensorType(sizes, f32), strides) == name


KINDS = {
    "IMAGE": "tensor<[s0, 3, 4, 5] x f32, strides [60, 20, 5, 1]>",
    "EIGHT": "tensor<[8, 3, 4, 5] x f32, strides [60, 20, 5, 1]>",
    "LAST": "tensor<[s0, 3, 4, 5] x f32, strides [60, 1, 15, 3]>",
    "OTHER": "tensor<[s0, 3, 4, 5] x f32, strides [60, 20, 1, 4]>",
    "ROW": "tensor<[5] x f32, strides [1]>",
}
IMAGES = """
func.func @main(%x: IMAGE, %r: ROW) attributes {level = "layout"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (IMAGE) -> index
  sym.assert {relation = "eq", lhs = #sym<s0>, rhs = #sym<8>, message = "eight"}
  %yes_plain = graph.exp %x : (IMAGE) -> IMAGE
  %yes_last = graph.exp %yes_plain : (IMAGE) -> LAST
  %no_other = graph.exp %x : (IMAGE) -> OTHER
  %no_row = graph.exp %r : (ROW) -> ROW
  %no_call = graph.call_aten %x {callee = "aten.relu.default", arguments = {self = #aten.operand<0>}}
      : (IMAGE) -> IMAGE
  %no_viewed = graph.exp %x : (IMAGE) -> IMAGE
  %no_view = graph.permute %no_viewed {permutation = array<i64: 0, 3, 1, 2>, view}
      : (IMAGE) -> tensor<[s0, 5, 3, 4] x f32, strides [60, 1, 20, 5]>
  %yes_user = graph.exp %no_viewed : (IMAGE) -> IMAGE
  %no_part = graph.exp %x : (IMAGE) -> IMAGE
  %no_handle = layout.view %no_part {offset = #sym<0>} : (IMAGE) -> ROW
  %no_refined = graph.exp %x : (IMAGE) -> IMAGE
  %no_eight = sym.refine %no_refined : (IMAGE) -> EIGHT
  func.return
}"""  # noqa: E501


def test_what_is_computed_in_any_order_and_seen_by_nobody_is_flexible() -> None:
    text = IMAGES
    for name, kind in KINDS.items():
        text = text.replace(name, kind)
    module = parse(text)
    irc.verify(module)
    values = [op.results[0] for op in module.walk() if op.results]
    names = [v.name_hint for v in values if isinstance(v.type, TensorType)]
    assert [v.name_hint for v in values if is_flexible(v)] == ["yes_plain", "yes_last", "yes_user"]
    assert sum(name.startswith("no_") for name in names) == len(names) - 3
    (function,) = module.ops
    assert not any(is_flexible(v) for v in function.block.arguments)


RETURNED = """
func.func @main(%x: ROW) -> (TYPES) attributes {level = "layout"} {
  %c = graph.constant {value = 1.0 : f32} : ROW
  %a = graph.neg %x : (ROW) -> ROW
  %b = graph.neg %x : (ROW) -> ROW
  %x_view = layout.view %x {offset = #sym<0>} : (ROW) -> ROW
  %a_view = layout.view %a {offset = #sym<0>} : (ROW) -> ROW
  %a_copy = layout.copy %a : (ROW) -> ROW
  func.return VALUES : TYPES
}"""


@pytest.mark.parametrize(
    ("value", "returned", "shared"),
    [
        ("x", "x", True), ("x_view", "x_view", True), ("c", "c", True), ("a", "a", False),
        ("a", "a b x", False), ("a", "a a", True), ("a", "a a_view", True),
        ("a_view", "a_view", False), ("a_view", "b a_view a", True), ("a", "a_copy", False),
        ("a", "a_copy a", True), ("a", "a_copy a_copy", True), ("b", "a a b", False),
    ],
)  # fmt: skip
def test_results_have_memory_that_is_nobody_elses(value: str, returned: str, shared: bool) -> None:
    names = returned.split()
    text = RETURNED.replace("VALUES", ", ".join(f"%{n}" for n in names))
    text = text.replace("TYPES", ", ".join(["ROW"] * len(names))).replace("ROW", KINDS["ROW"])
    (function,) = parse(text).ops
    values = {op.results[0].name_hint: op.results[0] for op in function.block.ops if op.results}
    values["x"] = function.block.arguments[0]
    assert is_shared(values[value], function.return_op) is shared
