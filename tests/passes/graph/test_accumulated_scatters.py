"""Which sums the pass `accumulate-scatters` scatters into what they are added to."""

from __future__ import annotations

import pytest

from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.types import TensorType, f32, i1, i64
from irc.passes.graph.accumulate_scatters import operands_of
from tests.passes.graph.aten_programs import Graph


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "case, taken",
    [("zeros", True), ("ones", False), ("an argument", False), ("maxima", False),
     ("read twice", False), ("bools", False), ("another operation", False)],
)  # fmt: skip
def test_sums_scattered_into_zeros(case, taken, turned):
    element = i1 if case == "bools" else f32
    p = Graph(*[TensorType((9, 4), element)] * 3, TensorType((2,), i64))
    x, source, other, places = p.arguments
    into = source if case == "an argument" else p.full(int(case == "ones"), 9, 4, element=element)
    if case == "another operation":
        made = p.value(graph.Neg, into)
    else:
        part = p.value(graph.Slice, other, dim=0, start=0, step=1,
                       result_types=TensorType((2, 4), element))  # fmt: skip
        made = p.builder.insert(graph.Put(
            [into, part, places], [into.type],
            {"combiner": A.StringAttr("max" if case == "maxima" else "sum"),
             "dims": A.DenseIntsAttr((0,))},
        )).results[0]  # fmt: skip
    add = p.value(graph.Add, *((made, x) if turned else (x, made))).defining_op
    if case == "read twice":
        p.value(graph.Neg, made)
    found, rest = operands_of(add)
    assert (found is made.defining_op) is taken and (found is None) is not taken
    assert rest is (x if taken else add.lhs)
