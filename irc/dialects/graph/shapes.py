"""Operations of the graph dialect that give the same elements another shape, join and pad them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects.graph.inferred import InferredOp, check_result, tensor_type
from irc.dialects.graph.pointwise import SCALAR_ATTRIBUTES, TENSOR
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, operand, result, variadic_operand
from irc.ir.symbols import Dim, dim_product, dim_sum
from irc.ir.traits import Pure, ViewLike
from irc.ir.types import TensorType


def check_dim(op: Op, type_: TensorType, dim: int) -> None:
    """Fail unless `dim` is a (non-negative) dimension of `type_`."""
    if not 0 <= dim < type_.rank:
        op.fail(f"there is no dimension {dim} in {type_}")


def replace_size(type_: TensorType, dim: int, size: Dim) -> TensorType:
    """`type_` with another size of dimension `dim`."""
    return type_.with_shape([size if d == dim else s for d, s in enumerate(type_.shape)])


class Reshape(Op):
    """The elements in row-major order under the sizes of the result, equal in number.

    The product of the sizes need not be provably equal where sizes are symbolic.

    `%y = graph.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>`
    """

    name = "graph.reshape"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        before, after = dim_product(source.shape), dim_product(result_type.shape)
        if isinstance(before, int) and isinstance(after, int) and before != after:
            self.fail(f"{before} elements become {after}")
        check_result(self, source.with_shape(result_type.shape), source.element)


class Permute(InferredOp):
    """Dimension k of the result is dimension `permutation[k]` of the source.

    `%y = graph.permute %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>`
    """

    name = "graph.permute"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    permutation = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source = tensor_type(operands[0])
        order = attributes["permutation"].parameters[0]
        return (source.with_shape([source.shape[d] for d in order]),)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        if sorted(self.permutation) != list(range(source.rank)):
            self.fail(f"{list(self.permutation)} is no permutation of {source.rank} dimensions")


class Broadcast(Op):
    """Repeats the source along new dimensions and along dimensions of size 1.

    Source dimension k is result dimension `dims[k]` (strictly increasing); its size is the
    result's or 1. Result dimensions that are not in `dims` are new.

    `%y = graph.broadcast %x {dims = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>`
    """

    name = "graph.broadcast"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        dims = self.dims
        if len(dims) != source.rank or list(dims) != sorted(set(dims)):
            self.fail(f"dims {list(dims)} don't name one result dimension per source dimension")
        for size, dim in zip(source.shape, dims, strict=True):
            check_dim(self, result_type, dim)
            if size != 1 and size != result_type.shape[dim]:
                self.fail(f"size {size} can't become {result_type.shape[dim]} (dimension {dim})")
        check_result(self, source.with_shape(result_type.shape), source.element)


class Slice(Op):
    """Element k along `dim` is the source's element `start + k*step`.

    The size along `dim` is the result's: ceildiv(stop - start, step) of a Python slice whose
    bounds are already normalized, so that every element is in bounds. step is at least 1.

    `%y = graph.slice %x {dim = 0 : i64, start = #sym<1>, step = 2 : i64} : (tensor<8xf32>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "graph.slice"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    start = attribute(A.DimAttr)
    step = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        check_dim(self, source, self.dim)
        if self.step < 1:
            self.fail(f"step {self.step} is less than 1")
        size = result_type.shape[self.dim] if result_type.rank > self.dim else 0
        last = self.start + (size - 1) * self.step
        extent = source.shape[self.dim]
        if isinstance(last, int) and isinstance(extent, int) and size and not 0 <= last < extent:
            self.fail(f"element {last} is outside of {extent}")
        check_result(self, replace_size(source, self.dim, size), source.element)


class Reverse(InferredOp):
    """The elements in the opposite order along each of `dims`.

    `%y = graph.reverse %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "graph.reverse"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    view = result(TENSOR)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        for dim in self.dims:
            check_dim(self, source, dim)


class Window(Op):
    """A new last dimension w over windows of dimension `dim` (`unfold`, pooling, convolution).

    result[..., i, ..., w] = source[..., i*step + w*dilation, ...]; the number of windows and the
    width are the result's sizes; all elements are in bounds.

    `%y = graph.window %x {dim = 0 : i64, step = 2 : i64, dilation = 1 : i64} : (tensor<9xf32>) -> tensor<4x3xf32>`
    """  # noqa: E501

    name = "graph.window"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    step = attribute(A.IntegerAttr)
    dilation = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        check_dim(self, source, self.dim)
        if result_type.rank != source.rank + 1:
            self.fail(f"rank {source.rank} becomes {result_type.rank}, not {source.rank + 1}")
        if self.step < 0 or self.dilation < 0:
            self.fail("step and dilation may not be negative")
        count, width = result_type.shape[self.dim], result_type.shape[-1]
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
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    offset = attribute(A.IntegerAttr)
    dim1 = attribute(A.IntegerAttr)
    dim2 = attribute(A.IntegerAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        check_dim(self, source, self.dim1)
        check_dim(self, source, self.dim2)
        if self.dim1 == self.dim2:
            self.fail("dim1 and dim2 are the same dimension")
        rest = [s for d, s in enumerate(source.shape) if d not in (self.dim1, self.dim2)]
        check_result(self, source.with_shape((*rest, result_type.shape[-1])), source.element)


class StridedWindow(Op):
    """`as_strided`: element (i0, i1, ...) is number offset + i0*strides[0] + i1*strides[1] + ...
    of the source's elements in row-major order. Strides may be 0 and windows may overlap; an
    element that the source does not have is refused where sizes are known.

    `%y = graph.strided_window %x {strides = #sym.dims<[1, 1]>, offset = #sym<0>} : (tensor<6xf32>) -> tensor<4x3xf32>`
    """  # noqa: E501

    name = "graph.strided_window"
    traits = frozenset({Pure, ViewLike})
    source = operand(TENSOR)
    strides = attribute(A.DimsAttr)
    offset = attribute(A.DimAttr)
    view = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        if len(self.strides) != result_type.rank:
            self.fail(f"{len(self.strides)} strides for {result_type.rank} dimensions")
        check_result(self, source.with_shape(result_type.shape), source.element)
        self.verify_places(source, result_type)

    def verify_places(self, source: TensorType, result_type: TensorType) -> None:
        """Refuse a window that is known to leave the source."""
        steps = [(n - 1) * s for n, s in zip(result_type.shape, self.strides, strict=True)]
        count = dim_product(source.shape)
        dims = (self.offset, count, *steps)
        if 0 in result_type.shape or not all(isinstance(d, int) for d in dims):
            return
        first = self.offset + sum(min(s, 0) for s in steps)
        last = self.offset + sum(max(s, 0) for s in steps)
        if first < 0 or last >= count:
            self.fail(f"elements {first} to {last} of a source that has {count}")


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
        first = tensor_type(operands[0])
        dim = attributes["dim"].parameters[0]
        size = dim_sum([tensor_type(v).shape[dim] for v in operands])
        return (replace_size(first, dim, size),)

    def verify_op(self) -> None:
        if not self.operands:
            self.fail("needs at least one operand")
        result_type = tensor_type(self.results[0])
        check_dim(self, result_type, self.dim)
        for value in self.operands:
            type_ = tensor_type(value)
            others = replace_size(type_, self.dim, 0).shape
            if others != replace_size(result_type, self.dim, 0).shape:
                self.fail(f"{type_} can't be a part of {result_type}")
            if type_.element is not result_type.element:
                self.fail(f"{type_} and {result_type} differ in their elements")


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
        source = tensor_type(operands[0])
        low, high = attributes["low"].parameters[0], attributes["high"].parameters[0]
        shape = [dim_sum(p) for p in zip(source.shape, low, high, strict=True)]
        return (source.with_shape(shape),)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        if not len(self.low) == len(self.high) == source.rank:
            self.fail(f"low and high need one entry for each of {source.rank} dimensions")
        if not isinstance(self.value, SCALAR_ATTRIBUTES):
            self.fail(f"the value {self.value} is not a number")
        check_result(self, source.with_shape(result_type.shape), source.element)


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
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        check_dim(self, result_type, self.dim1)
        check_dim(self, result_type, self.dim2)
        if result_type.rank != source.rank + 1 or self.dim1 == self.dim2:
            self.fail(f"{source} can't be embedded into {result_type}")
        check_result(self, source.with_shape(result_type.shape), source.element)


class Copy(InferredOp):
    """A tensor of its own with the same elements (`clone`): a result that is one shares no
    storage with an argument.

    `%y = graph.copy %x : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "graph.copy"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    copy = result(TENSOR)


VIEW_OPS = (
    Reshape, Permute, Broadcast, Slice, Reverse, Window, Diagonal, StridedWindow,
)  # fmt: skip
