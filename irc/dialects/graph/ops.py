"""The operations of the graph dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects.graph.inferred import check_result, tensor_type
from irc.dialects.graph.pointwise import SCALAR_ATTRIBUTES, TENSOR
from irc.dialects.graph.shapes import check_dim
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import (
    Op,
    attribute,
    of,
    operand,
    optional_operand,
    result,
    variadic_operand,
    variadic_result,
)
from irc.ir.traits import ConstantLike, MayAlias, Pure, ReadsMemory, RunsInRange, WritesMemory
from irc.ir.types import (
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    f64,
    i1,
    i64,
    index,
)

SCALAR = of(IndexType, IntegerType, FloatType)


# -- constants


class Constant(Op):
    """A tensor whose elements are known: in the text (DenseAttr) or beside it (ResourceAttr).

    The attribute's type has the result's shape and element type.

    `%w = graph.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>`
    """

    name = "graph.constant"
    traits = frozenset({Pure, ConstantLike})
    value = attribute(A.Attribute)
    tensor = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (attributes["value"].type,)  # type: ignore[attr-defined]

    def verify_op(self) -> None:
        value = self.attributes["value"]
        if not isinstance(value, A.DenseAttr | A.ResourceAttr):
            self.fail("the value is neither dense elements nor a resource")
        type_ = value.type
        if not isinstance(type_, TensorType):
            self.fail(f"the value's type is {type_}, not a tensor")
        check_result(self, type_, type_.element)


class Full(Op):
    """Every element is `value` (an attribute of the element type), or the SSA scalar given.

    A scalar operand is converted as by `graph.cast` (f64 to f32 rounds).

    `%z = graph.full {value = 0.0 : f32} : tensor<4xf32>`
    """

    name = "graph.full"
    traits = frozenset({Pure, ConstantLike})
    scalar = optional_operand(SCALAR)
    value = attribute(A.Attribute, optional=True)
    tensor = result(TENSOR)

    def verify_op(self) -> None:
        value = self.attributes.get("value")
        if (value is None) == (not self.operands):
            self.fail("needs either the attribute 'value' or a scalar operand")
        if value is None:
            return
        if not isinstance(value, SCALAR_ATTRIBUTES):
            self.fail(f"the value {value} is not a number")
        type_ = i1 if isinstance(value, A.BoolAttr) else value.type
        if type_ is not tensor_type(self.results[0]).element:
            self.fail(f"the value is of type {type_}, the elements of {self.results[0].type}")


class Iota(Op):
    """Each element is its position along `dim`, as an integer of the result's element type.

    `%i = graph.iota {dim = 1 : i64} : tensor<[4, s0] x i64>`
    """

    name = "graph.iota"
    traits = frozenset({Pure})
    dim = attribute(A.IntegerAttr)
    tensor = result(TENSOR)

    def verify_op(self) -> None:
        result_type = tensor_type(self.results[0])
        if not isinstance(result_type.element, IntegerType) or result_type.element is i1:
            self.fail(f"the elements are {result_type.element}, not integers")
        check_dim(self, result_type, self.dim)


class Undefined(Op):
    """A tensor whose elements are unspecified (`aten.empty`); each read may see anything.

    `%u = graph.undefined : tensor<4xf32>`
    """

    name = "graph.undefined"
    traits = frozenset({Pure})
    tensor = result(TENSOR)


# -- the world outside


class CallAten(Op):
    """Calls the operator `callee` ("aten.mm.default") eagerly.

    `arguments` is a dictionary from the schema's argument names to attributes, as on the aten
    level; `#aten.operand<k>` stands for operand k. `eager_strides` has one `#sym.dims` per tensor
    result: the strides that eager gives; `operand_strides` one per tensor operand: the strides
    that eager passes, which some operators insist on. `apart`: eager's operand 0 is no argument's memory, so that it
    begins where an allocation does. `random`: draws from a generator and stays in order.
    `mutates`: has an effect that keeps it in order, as a collective's. `written` are the numbers of the operands that
    the operator writes: it gets copies of them, which are the last results, in that order.
    `backend`, with the entries `schedule` of one: who is to compute a product, as
    `choose-contractions` is told.

    `%y = graph.call_aten %a, %b {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[8, 1]>]} : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>`
    """  # noqa: E501

    name = "graph.call_aten"
    traits = frozenset({MayAlias, RunsInRange})
    inputs = variadic_operand()
    callee = attribute(A.StringAttr)
    arguments = attribute(A.DictAttr)
    eager_strides = attribute(A.ArrayAttr, optional=True)
    operand_strides = attribute(A.ArrayAttr, optional=True)
    apart = attribute(A.UnitAttr)
    random = attribute(A.UnitAttr)
    mutates = attribute(A.UnitAttr)
    written = attribute(A.DenseIntsAttr, optional=True)
    backend = attribute(A.StringAttr, optional=True, words=("aten", "irc", "onednn"))
    schedule = attribute(ScheduleAttr, optional=True)
    outputs = variadic_result()

    def is_removable(self) -> bool:
        """Whether the call may go when its results are unused."""
        return not (self.random or self.mutates)

    def verify_op(self) -> None:
        from irc.dialects.aten import verify_called  # which this needn't load otherwise

        verify_called(self)
        self._verify_strides("eager_strides", self.results)
        self._verify_strides("operand_strides", self.operands)
        written = tuple(self.written or ())
        if any(not 0 <= k < len(self.operands) for k in written):
            self.fail(f"written = {written} for {len(self.operands)} operands")
        kept = self.results[len(self.results) - len(written) :]
        for number, value in zip(written, kept, strict=False):
            type_, have = tensor_type(self.operands[number]), tensor_type(value)
            if len(kept) < len(written) or have.with_strides(None) is not type_.with_strides(None):
                self.fail(f"the result for written operand {number} is {have}, not {type_}")

    def _verify_strides(self, name: str, values: Sequence[Value]) -> None:
        """One `#sym.dims` for each tensor among `values`, that can be its strides."""
        strides = self.attributes.get(name)
        if strides is None:
            return
        tensors = [v.type for v in values if isinstance(v.type, TensorType)]
        assert isinstance(strides, A.ArrayAttr)
        if len(strides) != len(tensors):
            self.fail(f"{name} has {len(strides)} entries for {len(tensors)} tensors")
        for entry, type_ in zip(strides, tensors, strict=True):
            if not isinstance(entry, A.DimsAttr) or len(entry) != type_.rank:
                self.fail(f"{name} has {entry} for {type_}")
            try:
                type_.with_strides(tuple(entry))  # type: ignore[arg-type]
            except ValueError as error:
                self.fail(f"{name}: {error}")


class Item(Op):
    """The only element of a tensor as a scalar: `index` for integers, `i1` for bool, else `f64`.

    With the flag `every`, the tensor is of i1, of any size, and the scalar is whether all its
    elements are true (of none: true).

    `%n = graph.item %t : (tensor<i64>) -> index`
    """

    name = "graph.item"
    traits = frozenset({ReadsMemory})
    source = operand(TENSOR)
    every = attribute(A.UnitAttr)
    scalar = result(SCALAR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (scalar_type(tensor_type(operands[0]).element),)

    def verify_op(self) -> None:
        source = tensor_type(self.operands[0])
        if self.every:
            if source.element is not i1:
                self.fail(f"'every' wants elements of i1, not {source.element}")
        elif any(size != 1 for size in source.shape if isinstance(size, int)):
            self.fail(f"{source} has not exactly one element")
        if self.results[0].type is not scalar_type(source.element):
            self.fail(f"gives {self.results[0].type}, not {scalar_type(source.element)}")


class FromScalar(Op):
    """A tensor of rank 0 that holds a scalar: `index` becomes i64, `i1` and `f64` stay.

    `%t = graph.from_scalar %n : (index) -> tensor<i64>`
    """

    name = "graph.from_scalar"
    traits = frozenset({Pure})
    scalar = operand(SCALAR)
    tensor = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        type_ = operands[0].type
        return (TensorType((), i64 if isinstance(type_, IndexType) else type_),)

    def verify_op(self) -> None:
        type_ = self.operands[0].type
        expected = i64 if isinstance(type_, IndexType) else type_
        result_type = tensor_type(self.results[0])
        if result_type.shape or result_type.element is not expected:
            self.fail(f"gives {result_type} from {type_}")


class UpdateInput(Op):
    """Writes `value` to argument number `argument` of the function when everything that reads
    the argument's old elements is done. Shapes and element types are equal.

    `graph.update_input %v {argument = 0 : i64} : (tensor<4xf32>)`
    """

    name = "graph.update_input"
    traits = frozenset({WritesMemory})
    value = operand(TENSOR)
    argument = attribute(A.IntegerAttr)

    def verify_op(self) -> None:
        block = self.parent
        if block is None:
            return
        if not 0 <= self.argument < len(block.arguments):
            self.fail(f"there is no argument {self.argument}")
        target = tensor_type(block.arguments[self.argument])
        source = tensor_type(self.operands[0])
        if target.shape != source.shape or target.element is not source.element:
            self.fail(f"{source} is written to argument {self.argument}, a {target}")


# -- helpers


def scalar_type(element: Type) -> Type:
    """The SSA scalar type of an element read into the program: index, i1 or f64."""
    if element is i1:
        return i1
    return index if isinstance(element, IntegerType) else f64


__all__ = [
    "CallAten", "Constant", "FromScalar", "Full", "Iota", "Item",
    "SCALAR", "Undefined", "UpdateInput", "scalar_type",
]  # fmt: skip
