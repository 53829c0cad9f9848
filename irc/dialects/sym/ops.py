"""The operations of the sym dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, of, operand, result
from irc.ir.symbols import SIGNS
from irc.ir.traits import Barrier, BindsSymbol, MayAlias, Pure, StatesFacts, WritesMemory
from irc.ir.types import IndexType, IntegerType, TensorType, i1, index

INTEGER = of(IndexType, IntegerType)

#: Python's errors that an assertion may raise.
ERRORS = ("RuntimeError", "IndexError", "ValueError", "ZeroDivisionError", "TypeError")


def _verify_range(op: Op) -> None:
    low, high = op.minimum, op.maximum  # type: ignore[attr-defined]
    if low is not None and high is not None and low > high:
        op.fail(f"no number is from {low} to {high}")


class Binder(Op, abstract=True):
    """What binds `symbol` to an integer of the operand.

    `minimum` and `maximum` (inclusive, missing: unknown) bound it: a value outside of them is an
    error when the program runs. `hint` is the one seen when the program was traced, never part of
    a key.
    """

    traits = frozenset({Barrier, BindsSymbol, StatesFacts})
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


class BindSizeOp(Binder):
    """Binds `symbol` to the size of dimension `dim` of a function argument (or of an op's result).

    `minimum` and `maximum` (inclusive, missing: unknown) bound it; `hint` is the size seen when
    the program was traced, never part of a key.

    `%0 = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0] x f32>) -> index`
    """

    name = "sym.bind_size"
    source = operand(of(TensorType))
    dim = attribute(A.IntegerAttr)
    stride = attribute(A.UnitAttr, "bind the stride of that dimension instead of its size")

    def verify_op(self) -> None:
        _verify_range(self)
        if not 0 <= self.dim < self.source.type.rank:
            self.fail(f"binds dimension {self.dim} of {self.source.type}")


class BindOffsetOp(Binder):
    """Binds `symbol` to where an argument begins in its storage, counted in its elements.

    A program whose results depend on it says so here: with `minimum` equal to `maximum` it is a
    fact that each call checks. A program without this runs at whatever offset.

    `%0 = sym.bind_offset %x {symbol = "o0", minimum = 0 : i64} : (tensor<[4] x f32>) -> index`
    """

    name = "sym.bind_offset"
    source = operand(of(TensorType))

    def verify_op(self) -> None:
        _verify_range(self)
        if self.source.defining_op is not None:
            self.fail("only an argument's place in its storage is known")


class BindOp(Binder):
    """Binds `symbol` to an integer value: a size given as an argument, or data read at run time.

    `%0 = sym.bind %n {symbol = "u0"} : (index) -> index`
    """

    name = "sym.bind"
    source = operand(INTEGER)

    def verify_op(self) -> None:
        _verify_range(self)


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

    `relation` (one of `irc.ir.symbols.SIGNS`: eq, ne, lt, le) with `lhs` and `rhs` states the fact
    for the analyses. `error` is
    one of `ERRORS`.

    `sym.assert {relation = "le", lhs = #sym<u0>, rhs = #sym<s0>, message = "u0 <= s0"}`
    """

    name = "sym.assert"
    traits = frozenset({Barrier, StatesFacts, WritesMemory})
    relation = attribute(A.StringAttr, words=SIGNS)
    lhs = attribute(A.DimAttr)
    rhs = attribute(A.DimAttr)
    message = attribute(A.StringAttr)
    error = attribute(A.StringAttr, default="RuntimeError", words=ERRORS)


class AssertValueOp(Op):
    """Checks that an i1 value is true, or raises `error`(`message`) when the program runs.

    `error` is one of `ERRORS`.

    `sym.assert_value %c {message = "must be positive"} : (i1)`
    """

    name = "sym.assert_value"
    traits = frozenset({Barrier, WritesMemory})
    condition = operand(of(IntegerType))
    message = attribute(A.StringAttr)
    error = attribute(A.StringAttr, default="RuntimeError", words=ERRORS)

    def verify_op(self) -> None:
        if self.condition.type is not i1:
            self.fail(f"the condition is {self.condition.type}, not i1")


class RefineOp(Op):
    """Changes the symbolic sizes or strides of a value, each change covered by a dominating fact.

    `strides` says what the strides are where types have none (the graph level).

    `%y = sym.refine %x : (tensor<[u0] x f32>) -> tensor<[s0] x f32>`
    """

    name = "sym.refine"
    traits = frozenset({Barrier, MayAlias, Pure})
    source = operand(of(TensorType))
    strides = attribute(A.DimsAttr, optional=True)
    refined = result(of(TensorType))

    def verify_op(self) -> None:
        source, refined = self.source.type, self.refined.type
        if refined.element is not source.element or refined.device != source.device:
            self.fail(f"{source} is refined to {refined}: another element or device")
        if refined.rank != source.rank or (refined.strides is None) != (source.strides is None):
            self.fail(
                f"{source} is refined to {refined}: another rank, or strides on one side only"
            )
        if self.strides is not None and len(self.strides) != refined.rank:
            self.fail(f"{len(self.strides)} strides are given for {refined}")
