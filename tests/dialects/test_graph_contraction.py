"""`graph.dot_general`: types, what the verifier refuses, its meaning, and what it becomes."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.analysis.contraction import Contraction, contraction_of
from irc.dialects import graph, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, bf16, f16, f32, f64, i1, i8, i32, i64

LOWER = ",".join(["graph-to-layout", "layout-to-loop"])


def dims(left_batch=(), right_batch=(), left_depth=(), right_depth=()):
    """The attributes that say which dimension is which."""
    return {
        "left_batch": list(left_batch), "right_batch": list(right_batch),
        "left_depth": list(left_depth), "right_depth": list(right_depth),
    }  # fmt: skip


MATRICES = dims(left_depth=[1], right_depth=[0])
#: Sizes of either side, the dimensions, and einsum's text of the same.
CASES = {
    "mm": ((3, 4), (4, 5), MATRICES, "mk,kn->mn"),
    "right transposed": ((3, 4), (5, 4), dims((), (), [1], [1]), "mk,nk->mn"),
    "left transposed": ((4, 3), (4, 5), dims((), (), [0], [0]), "km,kn->mn"),
    "batched": ((2, 3, 4), (2, 4, 5), dims([0], [0], [2], [1]), "bmk,bkn->bmn"),
    "batch elsewhere": ((3, 4, 2), (5, 2, 4), dims([2], [1], [1], [2]), "mkb,nbk->bmn"),
    "two of each": (
        (2, 3, 4, 6, 1), (6, 7, 4, 2, 5), dims([0], [3], [2, 3], [2, 0]), "bmkjq,jnkbo->bmqno",
    ),
    "rows alone": ((3, 4), (4,), dims((), (), [1], [0]), "mk,k->m"),
    "one sum": ((4,), (4,), dims((), (), [0], [0]), "k,k->"),
    "no depth": ((3, 0), (0, 5), MATRICES, "mk,kn->mn"),
    "no rows": ((0, 4), (4, 5), MATRICES, "mk,kn->mn"),
}  # fmt: skip


def product(left, right, attributes, accumulator=f32):
    """A dot_general of two arguments."""
    block = Block([left, right])
    builder = Builder(block)
    return builder.create(
        graph.DotGeneral, *block.arguments, **attributes, accumulator=A.TypeAttr(accumulator)
    )


def program(left, right, attributes, accumulator="f32", element="f32"):
    """A program that returns one."""
    op = product(*(TensorType(s, f32) for s in (left, right)), attributes)
    sizes = ["x".join(map(str, (*s, ""))) for s in (left, right, op.value.type.shape)]
    a, b, y = (
        f"tensor<{size}{e}>" for size, e in zip(sizes, (element, element, accumulator), strict=True)
    )
    words = [f"{name} = array<i64{':' if v else ''} {', '.join(map(str, v))}>"
             for name, v in attributes.items()]  # fmt: skip
    return irc.parse(f"""
func.func @main(%a: {a}, %b: {b}) -> {y} attributes {{level = "graph"}} {{
  %y = graph.dot_general %a, %b {{accumulator = {accumulator}, {", ".join(words)}}} : ({a}, {b}) -> {y}
  return %y : {y}
}}
""")  # noqa: E501


def test_sizes_are_those_of_batch_rows_and_columns():
    s = symbol("s0")
    left, right = TensorType((2, s, 4), bf16), TensorType((5, 4, 2), bf16)
    op = product(left, right, dims([0], [2], [2], [1]))
    assert op.value.type == TensorType((2, s, 5), f32)
    assert (op.rows, op.columns) == ((1,), (0,))
    op.verify_op()


@pytest.mark.parametrize(
    "left, right, attributes, accumulator, text",
    [
        ((3, 4), (5, 6), MATRICES, f32, "the sizes of the depth"),
        ((2, 3, 4), (3, 4, 5), dims([0], [0], [2], [1]), f32, "the sizes of the batch"),
        ((3, 4), (4, 5), dims((), (), [2], [0]), f32, "are no dimensions of"),
        ((3, 4), (4, 5), dims([1], [0], [1], [0]), f32, "are no dimensions of"),
        ((3, 4), (3, 5), dims([0], [0]), f32, "nothing to sum over"),
        ((3, 4), (4, 5), MATRICES, f16, "does not hold"),
        ((3, 4), (4, 5), MATRICES, i32, "does not hold"),
    ],
)
def test_what_is_no_product_is_refused(left, right, attributes, accumulator, text):
    op = product(TensorType(left, f32), TensorType(right, f32), attributes, accumulator)
    with pytest.raises(InvalidIR, match=text):
        op.verify_op()


@pytest.mark.parametrize(
    "element, accumulator, fits",
    [(f16, f32, True), (bf16, f16, False), (f64, f32, False), (f64, f64, True), (i8, i32, True),
     (i64, i32, False), (i1, i32, False), (i1, i1, False), (bf16, i32, False)],
)  # fmt: skip
def test_accumulators_hold_what_is_multiplied(element, accumulator, fits):
    assert graph.contraction.holds(accumulator, element) == fits


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_einsum_on_each_level(case):
    left, right, attributes, equation = CASES[case]
    torch.manual_seed(0)
    a, b = torch.randn(left), torch.randn(right)
    module = program(left, right, attributes)
    again = irc.parse(irc.print_op(module))
    want = torch.einsum(equation, a.double(), b.double())
    PassManager.parse(LOWER, verify="each").run(module)
    for level in (again, module):
        (got,) = irc.run(level, a, b)
        torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
        assert got.dtype is torch.float32
    assert 0 in (*left, *right) or contraction(module).accumulator is f32


def contraction(module):
    """The only compute, as a contraction."""
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    found = contraction_of(compute)
    assert isinstance(found, Contraction), found
    return found


def test_a_compute_of_it_has_batch_rows_columns_and_depth():
    left, right, attributes, _ = CASES["two of each"]
    module = program(left, right, attributes)
    PassManager.parse(LOWER, verify="each").run(module)
    found = contraction(module)
    kinds = (found.batch, found.rows, found.columns, found.depth)
    assert [[a.extent for a in axes] for axes in kinds] == [[2], [3, 1], [7, 5], [4, 6]]


@pytest.mark.parametrize("element, accumulator", [("bf16", "f32"), ("f16", "f64"), ("i8", "i32"),
                                                  ("ui8", "ui8"), ("i64", "i64")])  # fmt: skip
def test_factors_are_cast_before_they_are_multiplied(element, accumulator):
    module = program((3, 40), (40, 5), MATRICES, accumulator, element)
    torch.manual_seed(0)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "i8": torch.int8, "ui8": torch.uint8,
             "i64": torch.int64}[element]  # fmt: skip
    a, b = ((torch.randn(s) * 100).to(dtype) for s in ((3, 40), (40, 5)))
    exact = a.double() @ b.double()
    want = exact.to(torch.int64).to(torch.uint8) if accumulator == "ui8" else exact
    (got,) = irc.run(module, a, b)
    PassManager.parse(LOWER, verify="each").run(module)
    (lowered,) = irc.run(module, a, b)
    for values in (got, lowered):
        torch.testing.assert_close(values.double(), want.double(), rtol=1e-6, atol=0.1)


def test_chosen_entries_go_on_with_the_compute():
    text = irc.print_op(program((3, 4), (4, 5), MATRICES))
    text = text.replace("right_depth", 'schedule = #loop.schedule<cpu, lanes = 4>, right_depth')
    module = irc.parse(text)
    assert irc.print_op(irc.parse(irc.print_op(module))) == irc.print_op(module)
    PassManager.parse(LOWER, verify="each").run(module)
    assert "#loop.schedule<cpu, lanes = 4 : i64>" in irc.print_op(module)
