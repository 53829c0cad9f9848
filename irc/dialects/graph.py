"""The graph dialect: a closed core of tensor operations without strides, memory or mutation.

Broadcasting, promotion and rounding are operations of their own. The element types are torch's.
Values of SSA scalar type (`index`, `i64`, `f64`, `i1`) are Python numbers that were read at run
time or given as arguments. Nothing here aliases: `update_input` says what is written to an
argument at the end, and `result_info` of the function which result shares an argument's storage.

`irc/dialects/graph_pointwise.py` has the table of scalar functions, `graph_indexing.py` what
moves by index, reduces and scans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects.graph_indexing import (
    ArgReduce,
    Gather,
    Moments,
    Put,
    Reduce,
    Scan,
    Scatter,
    Take,
)
from irc.dialects.graph_pointwise import (
    POINTWISE,
    SCALAR_ATTRIBUTES,
    TENSOR,
    Abs,
    Acos,
    Acosh,
    Add,
    And,
    Asin,
    Asinh,
    Atan,
    Atan2,
    Atanh,
    Bitcast,
    Cast,
    Ceil,
    Copysign,
    Cos,
    Cosh,
    Digamma,
    Div,
    Eq,
    Erf,
    Erfc,
    Erfinv,
    Exp,
    Exp2,
    Expm1,
    Floor,
    FloorDiv,
    Fmax,
    Fmin,
    Fmod,
    Ge,
    Gt,
    Isinf,
    Isnan,
    Le,
    Lgamma,
    Log,
    Log1p,
    Log2,
    Log10,
    Lt,
    Maximum,
    Minimum,
    Mul,
    Ne,
    Neg,
    Nextafter,
    Not,
    Or,
    PointwiseOp,
    Pow,
    Reciprocal,
    Remainder,
    Round,
    Rsqrt,
    Select,
    Shl,
    Shr,
    Sigmoid,
    Sign,
    Signbit,
    Sin,
    Sinh,
    Sqrt,
    Sub,
    Tan,
    Tanh,
    Trunc,
    TruncDiv,
    Xor,
    check_result,
    scalar_attribute,
)  # fmt: skip
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
from irc.ir.symbols import Dim, dim_product, dim_sum
from irc.ir.traits import ConstantLike, Pure, ReadsMemory, WritesMemory
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
        kind = value.type
        if not isinstance(kind, TensorType):
            self.fail(f"the value's type is {kind}, not a tensor")
        check_result(self, kind, kind.element)


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
        if (value is None) == (not self._operands):
            self.fail("needs either the attribute 'value' or a scalar operand")
        if value is None:
            return
        if not isinstance(value, SCALAR_ATTRIBUTES):
            self.fail(f"the value {value} is not a number")
        kind = i1 if isinstance(value, A.BoolAttr) else value.type
        if kind is not self.results[0].type.element:
            self.fail(f"the value is of type {kind}, the elements of {self.results[0].type}")


class Iota(Op):
    """Each element is its position along `dim`, as an integer of the result's element type.

    `%i = graph.iota {dim = 1 : i64} : tensor<[4, s0] x i64>`
    """

    name = "graph.iota"
    traits = frozenset({Pure})
    dim = attribute(A.IntegerAttr)
    tensor = result(TENSOR)

    def verify_op(self) -> None:
        made = self.results[0].type
        if not isinstance(made.element, IntegerType) or made.element is i1:
            self.fail(f"the elements are {made.element}, not integers")
        check_dim(self, made, self.dim)


class Undefined(Op):
    """A tensor whose elements are unspecified (`aten.empty`); each read may see anything.

    `%u = graph.undefined : tensor<4xf32>`
    """

    name = "graph.undefined"
    traits = frozenset({Pure})
    tensor = result(TENSOR)


# -- another shape, the same elements


class Reshape(Op):
    """The elements in row-major order under the sizes of the result, equal in number.

    The product of the sizes need not be provably equal where sizes are symbolic.

    `%y = graph.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>`
    """

    name = "graph.reshape"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        before, after = dim_product(source.shape), dim_product(made.shape)
        if isinstance(before, int) and isinstance(after, int) and before != after:
            self.fail(f"{before} elements become {after}")
        check_result(self, source.with_shape(made.shape), source.element)


class Permute(Op):
    """Dimension k of the result is dimension `permutation[k]` of the source.

    `%y = graph.permute %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>`
    """

    name = "graph.permute"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    permutation = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source: TensorType = operands[0].type  # type: ignore[assignment]
        order = attributes["permutation"].parameters[0]
        return (source.with_shape([source.shape[d] for d in order]),)

    def verify_op(self) -> None:
        source = self._operands[0].type
        if sorted(self.permutation) != list(range(source.rank)):
            self.fail(f"{list(self.permutation)} is no permutation of {source.rank} dimensions")
        shape = [source.shape[d] for d in self.permutation]
        check_result(self, source.with_shape(shape), source.element)


class Broadcast(Op):
    """Repeats the source along new dimensions and along dimensions of size 1.

    Source dimension k is result dimension `dims[k]` (strictly increasing); its size is the
    result's or 1. Result dimensions that are not in `dims` are new.

    `%y = graph.broadcast %x {dims = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>`
    """

    name = "graph.broadcast"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made, dims = self._operands[0].type, self.results[0].type, self.dims
        if len(dims) != source.rank or list(dims) != sorted(set(dims)):
            self.fail(f"dims {list(dims)} don't name one result dimension per source dimension")
        for size, dim in zip(source.shape, dims, strict=True):
            check_dim(self, made, dim)
            if size != 1 and size != made.shape[dim]:
                self.fail(f"size {size} can't become {made.shape[dim]} (dimension {dim})")
        check_result(self, source.with_shape(made.shape), source.element)


class Slice(Op):
    """Element k along `dim` is the source's element `start + k*step`.

    The size along `dim` is the result's: ceildiv(stop - start, step) of a Python slice whose
    bounds are already normalized, so that every element is in bounds. step is at least 1.

    `%y = graph.slice %x {dim = 0 : i64, start = #sym<1>, step = 2 : i64} : (tensor<8xf32>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "graph.slice"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    start = attribute(A.DimAttr)
    step = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        check_dim(self, source, self.dim)
        if self.step < 1:
            self.fail(f"step {self.step} is less than 1")
        size = made.shape[self.dim] if made.rank > self.dim else 0
        last = self.start + (size - 1) * self.step
        extent = source.shape[self.dim]
        if isinstance(last, int) and isinstance(extent, int) and size and not 0 <= last < extent:
            self.fail(f"element {last} is outside of {extent}")
        check_result(self, replace_size(source, self.dim, size), source.element)


class Reverse(Op):
    """The elements in the opposite order along each of `dims`.

    `%y = graph.reverse %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "graph.reverse"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (operands[0].type,)

    def verify_op(self) -> None:
        source = self._operands[0].type
        for dim in self.dims:
            check_dim(self, source, dim)
        check_result(self, source, source.element)


class Window(Op):
    """A new last dimension w over windows of dimension `dim` (`unfold`, pooling, convolution).

    result[..., i, ..., w] = source[..., i*step + w*dilation, ...]; the number of windows and the
    width are the result's sizes; all elements are in bounds.

    `%y = graph.window %x {dim = 0 : i64, step = 2 : i64, dilation = 1 : i64} : (tensor<9xf32>) -> tensor<4x3xf32>`
    """  # noqa: E501

    name = "graph.window"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    step = attribute(A.IntegerAttr)
    dilation = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        check_dim(self, source, self.dim)
        if made.rank != source.rank + 1:
            self.fail(f"rank {source.rank} becomes {made.rank}, not {source.rank + 1}")
        if self.step < 0 or self.dilation < 0:
            self.fail("step and dilation may not be negative")
        count, width = made.shape[self.dim], made.shape[-1]
        size = source.shape[self.dim]
        last = (count - 1) * self.step + (width - 1) * self.dilation
        if isinstance(last, int) and isinstance(size, int) and count and width and last >= size:
            self.fail(f"element {last} is outside of {size}")
        shape = replace_size(source, self.dim, count).shape
        check_result(self, source.with_shape((*shape, width)), source.element)


class Diagonal(Op):
    """The diagonal of dimensions `dim1` and `dim2`, as a new last dimension d:
    source[..., d + max(-offset, 0), ..., d + max(offset, 0), ...]; both dimensions go.

    `%y = graph.diagonal %x {offset = 0 : i64, dim1 = 0 : i64, dim2 = 1 : i64} : (tensor<4x4xf32>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "graph.diagonal"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    offset = attribute(A.IntegerAttr)
    dim1 = attribute(A.IntegerAttr)
    dim2 = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        check_dim(self, source, self.dim1)
        check_dim(self, source, self.dim2)
        if self.dim1 == self.dim2:
            self.fail("dim1 and dim2 are the same dimension")
        rest = [s for d, s in enumerate(source.shape) if d not in (self.dim1, self.dim2)]
        check_result(self, source.with_shape((*rest, made.shape[-1])), source.element)


class StridedWindow(Op):
    """`as_strided`: element (i0, i1, ...) is number offset + i0*strides[0] + i1*strides[1] + ...
    of the source's elements in row-major order. Strides may be 0 and windows may overlap.

    `%y = graph.strided_window %x {strides = #sym.dims<[1, 1]>, offset = #sym<0>} : (tensor<6xf32>) -> tensor<4x3xf32>`
    """  # noqa: E501

    name = "graph.strided_window"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    strides = attribute(A.DimsAttr)
    offset = attribute(A.DimAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        if len(self.strides) != made.rank:
            self.fail(f"{len(self.strides)} strides for {made.rank} dimensions")
        check_result(self, source.with_shape(made.shape), source.element)


class Concat(Op):
    """The sources one after another along `dim`; all other sizes are equal.

    `%y = graph.concat %a, %b {dim = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>`
    """

    name = "graph.concat"
    traits = frozenset({Pure})
    sources = variadic_operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    joined = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        first: TensorType = operands[0].type  # type: ignore[assignment]
        dim = attributes["dim"].parameters[0]
        size = dim_sum([v.type.shape[dim] for v in operands])  # type: ignore[attr-defined]
        return (replace_size(first, dim, size),)

    def verify_op(self) -> None:
        if not self._operands:
            self.fail("needs at least one operand")
        made = self.results[0].type
        check_dim(self, made, self.dim)
        for value in self._operands:
            kind = value.type
            if replace_size(kind, self.dim, 0).shape != replace_size(made, self.dim, 0).shape:
                self.fail(f"{kind} can't be a part of {made}")
            if kind.element is not made.element:
                self.fail(f"{kind} and {made} differ in their elements")


class Pad(Op):
    """Adds `low[d]` elements of `value` before and `high[d]` after dimension d (negative: cuts).

    result[i] = source[i - low] where that is in bounds, else `value`.

    `%y = graph.pad %x {low = #sym.dims<[1]>, high = #sym.dims<[0]>, value = 0.0 : f32} : (tensor<4xf32>) -> tensor<5xf32>`
    """  # noqa: E501

    name = "graph.pad"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    low = attribute(A.DimsAttr)
    high = attribute(A.DimsAttr)
    value = attribute(A.Attribute, "an element: FloatAttr, IntegerAttr or BoolAttr")
    padded = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source: TensorType = operands[0].type  # type: ignore[assignment]
        low, high = attributes["low"].parameters[0], attributes["high"].parameters[0]
        shape = [dim_sum(p) for p in zip(source.shape, low, high, strict=True)]
        return (source.with_shape(shape),)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        if not len(self.low) == len(self.high) == source.rank:
            self.fail(f"low and high need one entry for each of {source.rank} dimensions")
        if not isinstance(self.value, SCALAR_ATTRIBUTES):
            self.fail(f"the value {self.value} is not a number")
        check_result(self, source.with_shape(made.shape), source.element)


class DiagonalEmbed(Op):
    """The last source dimension becomes the diagonal of two new ones, zeros elsewhere.

    `dim1` and `dim2` are result dimensions; with `offset` > 0 the diagonal is above.

    `%y = graph.diagonal_embed %x {offset = 0 : i64, dim1 = 0 : i64, dim2 = 1 : i64} : (tensor<4xf32>) -> tensor<4x4xf32>`
    """  # noqa: E501

    name = "graph.diagonal_embed"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    offset = attribute(A.IntegerAttr)
    dim1 = attribute(A.IntegerAttr)
    dim2 = attribute(A.IntegerAttr)
    embedded = result(TENSOR)

    def verify_op(self) -> None:
        source, made = self._operands[0].type, self.results[0].type
        check_dim(self, made, self.dim1)
        check_dim(self, made, self.dim2)
        if made.rank != source.rank + 1 or self.dim1 == self.dim2:
            self.fail(f"{source} can't be embedded into {made}")
        check_result(self, source.with_shape(made.shape), source.element)


class Copy(Op):
    """A tensor of its own with the same elements (`clone`): a result that is one shares no
    storage with an argument.

    `%y = graph.copy %x : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "graph.copy"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    copy = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (operands[0].type,)


# -- the world outside


class CallAten(Op):
    """Calls the operator `callee` ("aten.mm.default") eagerly.

    `arguments` is a dictionary from the schema's argument names to attributes, as on the aten
    level; `#aten.operand<k>` stands for operand k. `eager_strides` has one `#sym.dims` per tensor
    result: the strides that eager gives; `operand_strides` one per tensor operand: the strides
    that eager passes, which some operators insist on. `random`: draws from a generator and stays in order.
    `mutates`: writes operands, or has another effect that keeps it in order.

    `%y = graph.call_aten %a, %b {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[8, 1]>]} : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>`
    """  # noqa: E501

    name = "graph.call_aten"
    inputs = variadic_operand()
    callee = attribute(A.StringAttr)
    arguments = attribute(A.DictAttr)
    eager_strides = attribute(A.ArrayAttr, optional=True)
    operand_strides = attribute(A.ArrayAttr, optional=True)
    random = attribute(A.UnitAttr)
    mutates = attribute(A.UnitAttr)
    outputs = variadic_result()

    def is_removable(self) -> bool:
        """Whether the call may go when its results are unused."""
        return not (self.random or self.mutates)

    def verify_op(self) -> None:
        strides = self.attributes.get("eager_strides")
        tensors = [r for r in self.results if isinstance(r.type, TensorType)]
        if strides is not None and len(strides) != len(tensors):  # type: ignore[arg-type]
            self.fail(f"eager_strides has {len(strides)} entries for {len(tensors)} tensors")  # type: ignore[arg-type]


class Item(Op):
    """The only element of a tensor as a scalar: `index` for integers, `i1` for bool, else `f64`.

    `%n = graph.item %t : (tensor<i64>) -> index`
    """

    name = "graph.item"
    traits = frozenset({ReadsMemory})
    source = operand(TENSOR)
    scalar = result(SCALAR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (scalar_type(operands[0].type.element),)  # type: ignore[attr-defined]

    def verify_op(self) -> None:
        source = self._operands[0].type
        if any(size != 1 for size in source.shape if isinstance(size, int)):
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
        kind = operands[0].type
        return (TensorType((), i64 if isinstance(kind, IndexType) else kind),)

    def verify_op(self) -> None:
        kind = self._operands[0].type
        expected = i64 if isinstance(kind, IndexType) else kind
        made = self.results[0].type
        if made.shape or made.element is not expected:
            self.fail(f"gives {made} from {kind}")


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
        target, source = block.arguments[self.argument].type, self._operands[0].type
        if target.shape != source.shape or target.element is not source.element:
            self.fail(f"{source} is written to argument {self.argument}, a {target}")


# -- helpers


def scalar_type(element: Type) -> Type:
    """The SSA scalar type of an element read into the program: index, i1 or f64."""
    if element is i1:
        return i1
    return index if isinstance(element, IntegerType) else f64


def check_dim(op: Op, kind: TensorType, dim: int) -> None:
    """Fail unless `dim` is a (non-negative) dimension of `kind`."""
    if not 0 <= dim < kind.rank:
        op.fail(f"there is no dimension {dim} in {kind}")


def replace_size(kind: TensorType, dim: int, size: Dim) -> TensorType:
    """`kind` with another size of dimension `dim`."""
    return kind.with_shape([size if d == dim else s for d, s in enumerate(kind.shape)])


VIEW_OPS = (
    Reshape, Permute, Broadcast, Slice, Reverse, Window, Diagonal, StridedWindow,
)  # fmt: skip

__all__ = [
    "POINTWISE", "SCALAR", "SCALAR_ATTRIBUTES", "TENSOR", "VIEW_OPS", "Abs", "Acos", "Acosh",
    "Add", "And", "ArgReduce", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Bitcast",
    "Broadcast", "CallAten", "Cast", "Ceil", "Concat", "Constant", "Copy", "Copysign", "Cos",
    "Cosh", "Diagonal", "DiagonalEmbed", "Digamma", "Div", "Eq", "Erf", "Erfc", "Erfinv", "Exp",
    "Exp2", "Expm1", "Floor", "FloorDiv", "Fmax", "Fmin", "Fmod", "FromScalar", "Full",
    "Gather", "Ge", "Gt", "Iota", "Isinf", "Isnan", "Item", "Le", "Lgamma", "Log", "Log10",
    "Log1p", "Log2", "Lt", "Maximum", "Minimum", "Moments", "Mul", "Ne", "Neg", "Nextafter",
    "Not", "Or", "Pad", "Permute", "PointwiseOp", "Pow", "Put", "Reciprocal", "Reduce",
    "Remainder", "Reshape", "Reverse", "Round", "Rsqrt", "Scan", "Scatter", "Select", "Shl",
    "Shr", "Sigmoid", "Sign", "Signbit", "Sin", "Sinh", "Slice", "Sqrt", "StridedWindow", "Sub",
    "Take", "Tan", "Tanh", "Trunc", "TruncDiv", "Undefined", "UpdateInput", "Window", "Xor",
    "replace_size", "scalar_attribute", "scalar_type",
]  # fmt: skip

import irc.dialects.graph_canonical  # noqa: E402, F401  # its patterns register on import
