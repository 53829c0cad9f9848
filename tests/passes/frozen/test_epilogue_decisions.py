"""Which functions of a packed product are computed in it, and which readers an update has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import irc
from irc.dialects import graph, sym
from irc.interp.graph_packed import ACTIVATIONS as MEANINGS
from irc.ir import attributes as A
from irc.ir.definition import SEGMENTS
from irc.ir.rewrite.rules import Rule, Variable
from irc.ir.types import TensorType, f32, f64
from irc.passes.frozen import fuse_epilogues as F
from irc.passes.graph.reinplace import reinplace as R
from irc.passes.graph.reinplace.changed_boxes import changed_boxes
from tests.passes.graph.aten_programs import Graph

SHAPE = (2, 4)
KIND = TensorType(SHAPE, f32)


class Packed(Graph):
    """A packed linear of the first argument, two more arguments, and functions of these."""

    def __init__(self, **attributes):
        super().__init__(TensorType((2, 3), f32), KIND, KIND)
        weight = self.constant(4, 3)
        entries = {"format": A.StringAttr("linear")}
        pack = graph.Pack([weight], [graph.PackedType(weight.type)], entries)
        other = attributes.pop("other", False)
        operands = [self.arguments[0], self.builder.insert(pack).results[0]]
        operands += [self.arguments[2]] if other else []
        segments = {SEGMENTS: A.DenseIntsAttr((1, 1, 0, int(other)))}
        self.op = self.builder.insert(
            graph.PackedLinear(operands, [KIND], {**attributes, **segments})
        )
        self.y, self.other = self.op.results[0], self.arguments[1]

    def do(self, name, *operands):
        cls = getattr(graph, name)
        operands = [v if hasattr(v, "users") else self.full(v, *SHAPE) for v in operands]
        return self.value(cls, *operands)


ACTIVATIONS = {
    "relu": lambda p, y: p.do("Maximum", y, 0.0),
    "relu turned": lambda p, y: p.do("Maximum", p.full(0.0, *SHAPE), y),
    "sigmoid": lambda p, y: p.do("Sigmoid", y),
    "tanh": lambda p, y: p.do("Tanh", y),
    "silu": lambda p, y: p.do("Mul", y, p.do("Sigmoid", y)),
    "silu turned": lambda p, y: p.do("Mul", p.do("Sigmoid", y), y),
    "hardtanh": lambda p, y: p.do("Minimum", p.do("Maximum", y, -1.5), 2.5),
    "leaky_relu": lambda p, y: p.do("Select", p.do("Gt", y, 0.0), y, p.do("Mul", y, 0.25)),
}


def matched(p, value):
    found = F.match_activation(value.defining_op)
    return None if found is None else (found.activation, found.scalars)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_known(name):
    p = Packed()
    scalars = {"hardtanh": (-1.5, 2.5), "leaky_relu": (0.25,)}.get(name, ())
    assert matched(p, ACTIVATIONS[name](p, p.y)) == (name.split()[0], scalars)


def pair(p, y):
    """A value that a second operation reads."""
    p.do("Neg", y)
    return y


@pytest.mark.parametrize(
    "make",
    [
        lambda p, y: p.do("Maximum", y, 1.0), lambda p, y: p.do("Minimum", y, 0.0),
        lambda p, y: p.do("Maximum", p.other, 0.0), lambda p, y: p.do("Exp", y),
        lambda p, y: p.do("Mul", y, p.do("Sigmoid", p.other)),
        lambda p, y: p.do("Mul", y, p.other),
        lambda p, y: p.do("Select", p.do("Gt", y, 0.0), y, p.do("Mul", y, p.other)),
        lambda p, y: p.do("Mul", y, y), lambda p, y: p.do("Maximum", y, p.other),
        lambda p, y: p.do("Select", p.do("Gt", y, 1.0), y, p.do("Mul", y, 0.25)),
        lambda p, y: p.do("Select", p.do("Gt", y, 0.0), p.do("Mul", y, 0.25), y),
        lambda p, y: p.do("Select", p.do("Gt", p.full(0.0, *SHAPE), y), y, p.do("Mul", y, 0.25)),
        lambda p, y: p.do("Maximum", pair(p, y), 0.0),
        lambda p, y: p.do("Mul", y, pair(p, p.do("Sigmoid", y))),
        lambda p, y: p.value(graph.Reshape, y, result_types=TensorType((8,), f32)),
    ],
)  # fmt: skip
def test_what_is_no_activation_of_it(make):
    p = Packed()
    assert matched(p, make(p, p.y)) is None


def test_a_relu_inside_a_hardtanh_is_not_taken_alone():
    p = Packed()
    inner = p.do("Maximum", p.y, 0.0)
    outer = p.do("Minimum", inner, 6.0)
    assert matched(p, outer) == ("hardtanh", (0.0, 6.0)) and matched(p, inner) == ("relu", ())


@pytest.mark.parametrize("known", F.ACTIVATIONS, ids=lambda known: known.name)
def test_the_term_of_an_activation_computes_it(known):
    """On special values and random ones, as the packed operations' meaning has it in f64."""
    numbers = {"low": -0.5, "high": 2.0, "slope": 0.25}
    p = Graph(TensorType((64,), f64))
    term = Rule("test.term", ("x",), known.term, Variable("x"), None, "real", __name__)
    made = term.build(known.term, p.builder, {"x": p.arguments[0], **numbers})
    special = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 60.0, -60.0, 1e-40]
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(54, dtype=torch.float64, generator=generator) * 4
    x = torch.cat([torch.tensor(special, dtype=torch.float64), drawn])
    (found,) = irc.run(p.returned(made), x)
    expected = MEANINGS[known.name](x, *(numbers[name] for name in known.scalars))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_every_activation_of_packed_operations_is_known():
    assert {known.name for known in F.ACTIVATIONS} == set(graph.ACTIVATIONS)


def test_one_activation_and_none_behind_an_addition_in_a_linear():
    for given in ({"activation": A.StringAttr("tanh")}, {"other": True}):
        p = Packed(**given)
        assert matched(p, p.do("Maximum", p.y, 0.0)) is None
        p = Packed(**given)
        assert F.match_addition(p.do("Add", p.y, p.other).defining_op) is None


def convolution(cls, other=False):
    """A packed convolution (or Winograd's) of an image, with what `match_*` asks it."""
    p = Graph(TensorType((1, 2, 3, 3), f32), TensorType((1, 2, 3, 3), f32))
    x, more = p.arguments
    weight = p.constant(2, 2, 1, 1)
    made = graph.PackedConv if cls is graph.PackedConv else cls
    segments = A.DenseIntsAttr((1, 1, 0, int(other)))
    op = made([x, weight, *([more] if other else [])], [x.type], {SEGMENTS: segments})
    return p, p.builder.insert(op).results[0]


@pytest.mark.parametrize(
    "cls, other, function, taken",
    [
        (graph.PackedConv, False, "Maximum", True), (graph.PackedConv, False, "Tanh", True),
        (graph.PackedConv, True, "Maximum", True), (graph.PackedConv, True, "Tanh", False),
        (graph.WinogradConv, False, "Maximum", True), (graph.WinogradConv, False, "Tanh", False),
        (graph.WinogradConv, False, "Sigmoid", False),
    ],
)  # fmt: skip
def test_activations_of_convolutions(cls, other, function, taken):
    p, y = convolution(cls, other)
    zero = [p.full(0.0, 1, 2, 3, 3)] if function == "Maximum" else []
    made = p.value(getattr(graph, function), y, *zero)
    assert (F.match_activation(made.defining_op) is not None) is taken


def test_a_value_seen_through_views_that_nothing_else_reads():
    p = Packed()
    flat = p.value(graph.Reshape, p.y, result_types=TensorType((4, 2), f32))
    turned = p.value(graph.Permute, flat, permutation=[1, 0])
    found = F.packed_behind(turned, p.op)
    assert found.packed is p.op and found.views == [flat.defining_op, turned.defining_op]
    assert F.packed_behind(p.y, p.op).views == [] and F.packed_behind(p.other, p.op) is None
    p.do("Neg", p.y)
    assert F.packed_behind(turned, p.op) is None and F.packed_behind(p.y, p.op) is not None


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "case, taken",
    [("argument", True), ("itself", False), ("number", False), ("broadcast", False),
     ("read twice", False), ("not added", False)],
)  # fmt: skip
def test_what_is_added_has_memory_of_its_own(case, taken, turned):
    p = Packed()
    others = {
        "itself": lambda: p.y, "number": lambda: p.full(1.0, *SHAPE),
        "broadcast": lambda: p.value(graph.Broadcast, p.constant(4), dims=[1], result_types=KIND),
    }  # fmt: skip
    other = others.get(case, lambda: p.other)()
    if case == "read twice":
        p.do("Neg", p.y)
    op = p.do("Sub" if case == "not added" else "Add", *((other, p.y) if turned else (p.y, other)))
    found = F.match_addition(op.defining_op)
    assert (found is not None) is taken and (found is None or found.other is other)


@pytest.mark.parametrize(("cls", "taken"), [(graph.PackedLinear, True), (graph.PackedConv, False)])
def test_only_a_linear_is_added_to_behind_views(cls, taken):
    p = Packed()
    packed = p.op if cls is graph.PackedLinear else convolution(cls)[1].defining_op
    assert F.can_add(p.other, F.Epilogue(packed, [], packed))
    assert F.can_add(p.other, F.Epilogue(packed, [p.op], packed)) is taken


# -- reinplace


def written(p, start=2, size=3):
    """The first argument with rows of the second from `start` on."""
    x, new = p.arguments[:2]
    rows = x.type.shape[0]

    def cut(begin, count):
        return p.value(graph.Slice, x, dim=0, start=begin, step=1,
                       result_types=graph.replace_size(x.type, 0, count))  # fmt: skip

    end = start + size
    return p.value(graph.Concat, [cut(0, start), new, cut(end, rows - end)], dim=0)


def test_where_a_box_begins():
    p = Graph(TensorType((6, 4), f32), TensorType((3, 4), f32))
    x, other = p.arguments

    def cut(value, dim, start, size, step=1):
        kind = graph.replace_size(value.type, dim, size)
        return p.value(graph.Slice, value, dim=dim, start=start, step=step, result_types=kind)

    part = cut(cut(x, 0, 1, 4), 1, 2, 2)
    assert R.box_of(part, x) == (1, 2) and R.box_of(cut(part, 0, 2, 1), x) == (3, 2)
    assert R.box_of(x, x) == (0, 0) and R.box_of(part, other) is None
    assert R.box_of(cut(x, 0, 0, 3, step=2), x) is None
    assert R.box_of(p.value(graph.Neg, x), x) is None


@pytest.mark.parametrize(
    "case, elsewhere",
    [("nobody", False), ("before", False), ("behind", True), ("itself", True),
     ("the same place", False), ("another place", True), ("reversed", True), ("its size", False)],
)  # fmt: skip
def test_readers_of_the_old_content(case, elsewhere):
    p = Graph(TensorType((8, 4), f32), TensorType((3, 4), f32))
    x, new = p.arguments
    if case in ("the same place", "another place"):
        start = 2 if case == "the same place" else 1
        old = p.value(graph.Slice, x, dim=0, start=start, step=1, result_types=new.type)
        p.arguments = [x, p.value(graph.Neg, old)]
    if case == "itself":
        p.arguments = [x, p.value(graph.Slice, p.value(graph.Neg, x), dim=0, start=0, step=1,
                                  result_types=new.type)]  # fmt: skip
    if case == "reversed":
        turned = p.value(graph.Reverse, x, dims=[0])
        p.arguments = [x, p.value(graph.Slice, turned, dim=0, start=0, step=1,
                                  result_types=new.type)]  # fmt: skip
    if case == "before":
        p.value(graph.Neg, x)
    value = written(p)
    if case == "its size":
        p.builder.create(sym.BindSizeOp, x, dim=0, symbol="s0", minimum=2)
    if case == "behind":
        p.value(graph.Neg, x)
    found = changed_boxes(value, x, {}, 16)
    why = R._reader_elsewhere(value, x, found)
    itself = "what is written is a part of it itself"
    other = itself if case == "reversed" else "its old content is read elsewhere"
    assert why == (other if elsewhere else None)


def test_bytes_that_stay():
    p = Graph(KIND)
    assert R.bytes_outside(p.arguments[0], SimpleNamespace(kept=5)) == 20
    assert R.bytes_outside(p.arguments[0], SimpleNamespace(kept=None)) is None
    assert R.bytes_outside(p.arguments[0], SimpleNamespace(kept=0)) == 0


def test_what_is_before_in_a_block():
    p, q = Graph(KIND), Graph(KIND)
    first, second = (p.value(graph.Neg, p.arguments[0]).defining_op for _ in range(2))
    away = q.value(graph.Neg, q.arguments[0]).defining_op
    assert R._is_before(first, second) and R._is_before(second, second)
    assert not R._is_before(second, first) and not R._is_before(away, second)
