"""The sym dialect: where symbols are bound, read, asserted and refined.

A symbol (`s0`, `u0`) belongs to its function and has one binder; each mention of it in a type
or an attribute is dominated by that binder. See `docs/design/contracts.md`, "Symbols".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, of, operand, result
from irc.ir.traits import Pure, WritesMemory
from irc.ir.types import IndexType, IntegerType, TensorType, i1, index

INTEGER = of(IndexType, IntegerType)

#: Python's errors that an assertion may raise.
ERRORS = ("RuntimeError", "IndexError", "ValueError", "ZeroDivisionError", "TypeError")


def _verify_error(op: Op) -> None:
    error = op.error  # type: ignore[attr-defined]
    if error not in ERRORS:
        op.fail(f"error is {error!r}, not one of {', '.join(ERRORS)}")


class BindSizeOp(Op):
    """Binds `symbol` to the size of dimension `dim` of a function argument (or of an op's result).

    `minimum` and `maximum` (inclusive, missing: unknown) bound it; `hint` is the size seen when
    the program was traced, never part of a key.

    `%0 = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0] x f32>) -> index`
    """

    name = "sym.bind_size"
    source = operand(of(TensorType))
    dim = attribute(A.IntegerAttr)
    stride = attribute(A.UnitAttr, "bind the stride of that dimension instead of its size")
    symbol = attribute(A.StringAttr)
    minimum = attribute(A.IntegerAttr, optional=True)
    maximum = attribute(A.IntegerAttr, optional=True)
    hint = attribute(A.IntegerAttr, optional=True)
    value = result(of(IndexType))

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (index,)


class BindOp(Op):
    """Binds `symbol` to an integer value: a size given as an argument, or data read at run time.

    `%0 = sym.bind %n {symbol = "u0"} : (index) -> index`
    """

    name = "sym.bind"
    source = operand(INTEGER)
    symbol = attribute(A.StringAttr)
    minimum = attribute(A.IntegerAttr, optional=True)
    maximum = attribute(A.IntegerAttr, optional=True)
    hint = attribute(A.IntegerAttr, optional=True)
    value = result(of(IndexType))

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (index,)


class ValueOp(Op):
    """The value of a symbolic expression.

    `%n = sym.value {dim = #sym<s0*2 + 1>} : index`
    """

    name = "sym.value"
    traits = frozenset({Pure})
    dim = attribute(A.DimAttr)
    value = result(of(IndexType))

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (index,)


class AssertOp(Op):
    """Checks a condition when the program runs and raises `error`(`message`) if it is false.

    `relation` with `lhs` and `rhs` (eq, ne, lt, le) states the fact for the analyses. `error` is
    one of `ERRORS`.

    `sym.assert {relation = "le", lhs = #sym<u0>, rhs = #sym<s0>, message = "u0 <= s0"}`
    """

    name = "sym.assert"
    traits = frozenset({WritesMemory})
    relation = attribute(A.StringAttr)
    lhs = attribute(A.DimAttr)
    rhs = attribute(A.DimAttr)
    message = attribute(A.StringAttr)
    error = attribute(A.StringAttr, default="RuntimeError")

    def verify_op(self) -> None:
        _verify_error(self)


class AssertValueOp(Op):
    """Checks that an i1 value is true, or raises `error`(`message`) when the program runs.

    `error` is one of `ERRORS`.

    `sym.assert_value %c {message = "must be positive"} : (i1)`
    """

    name = "sym.assert_value"
    traits = frozenset({WritesMemory})
    condition = operand(of(IntegerType))
    message = attribute(A.StringAttr)
    error = attribute(A.StringAttr, default="RuntimeError")

    def verify_op(self) -> None:
        _verify_error(self)
        if self.condition.type is not i1:
            self.fail(f"the condition is {self.condition.type}, not i1")


class RefineOp(Op):
    """Changes the symbolic sizes or strides of a value, each change covered by a dominating fact.

    `strides` says what the strides are where types have none (the graph level).

    `%y = sym.refine %x : (tensor<[u0] x f32>) -> tensor<[s0] x f32>`
    """

    name = "sym.refine"
    traits = frozenset({Pure})
    source = operand(of(TensorType))
    strides = attribute(A.DimsAttr, optional=True)
    refined = result(of(TensorType))
