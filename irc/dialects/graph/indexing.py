"""Operations of the graph dialect that move elements by index, reduce and scan.

Index operands are i32 or i64 tensors whose elements are not negative: negative positions are
normalized before, by `select(lt(i, 0), i + size, i)`. With the flag `check_bounds`, an index
outside of its dimension raises IndexError("index <i> is out of bounds for dimension <d> with
size <n>"), or the class that `error` names, at run time, before anything is read or written;
without it, all are in bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects.graph.inferred import InferredOp, tensor_type
from irc.dialects.graph.pointwise import TENSOR, is_computable_float
from irc.dialects.sym import ERRORS
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, operand, result, variadic_operand
from irc.ir.symbols import Dim
from irc.ir.traits import Pure
from irc.ir.types import FloatType, IntegerType, TensorType, i1, i32, i64

REDUCE_COMBINERS = ("sum", "prod", "min", "max", "any", "all", "xor")
ARG_COMBINERS = ("argmin", "argmax")
SCAN_COMBINERS = ("sum", "prod", "min", "max", "logsumexp", "sort")
SCATTER_COMBINERS = ("set", "sum", "prod", "min", "max")


def reduced_shape(
    shape: Sequence[Dim], dims: Sequence[int], keepdim: bool
) -> tuple[Dim, ...]:
    """The sizes after reducing `dims`: without them, or 1 in their place."""
    if keepdim:
        return tuple(1 if d in dims else s for d, s in enumerate(shape))
    return tuple(s for d, s in enumerate(shape) if d not in dims)


def _check_index(op: Op, type_: TensorType) -> None:
    if type_.element is not i64 and type_.element is not i32:
        op.fail(f"the index is {type_}; its elements must be i32 or i64")


def _check_dims(op: Op, type_: TensorType, dims: Sequence[int]) -> None:
    if any(not 0 <= d < type_.rank for d in dims) or list(dims) != sorted(set(dims)):
        op.fail(f"dims {list(dims)} are not increasing dimensions of {type_}")


class Gather(InferredOp):
    """`torch.gather`: result[i0, ...] = source[i0, ..., indices[i0, ...], ...], the index standing
    at dimension `dim`. The result has the shape of `indices`, whose other sizes are at most the
    source's.

    `%y = graph.gather %x, %i {dim = 0 : i64, check_bounds} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>`
    """  # noqa: E501

    name = "graph.gather"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    indices = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    check_bounds = attribute(A.UnitAttr)
    error = attribute(A.StringAttr, default="IndexError", words=ERRORS)
    value = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source = tensor_type(operands[0])
        return (source.with_shape(tensor_type(operands[1]).shape),)

    def verify_operands(self) -> None:
        source, indices = tensor_type(self.operands[0]), tensor_type(self.operands[1])
        _check_index(self, indices)
        _check_dims(self, source, (self.dim,))
        if indices.rank != source.rank:
            self.fail(f"the index has rank {indices.rank}, the source {source.rank}")


class Take(InferredOp):
    """Advanced indexing: the dimensions `dims` of the source are replaced by the dimensions of
    the index tensors, which have one shape I (one tensor per entry of `dims`, increasing).

    The result's dimensions are the source's other dimensions in order, with I's dimensions put
    in at `position` (torch puts them at the first indexed dimension where `dims` are adjacent,
    else at 0): result[a..., i..., b...] = source[... indices_k[i...] at dims[k] ...].

    `%y = graph.take %x, %i {dims = array<i64: 0>, position = 0 : i64, check_bounds} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>`
    """  # noqa: E501

    name = "graph.take"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    indices = variadic_operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    position = attribute(A.IntegerAttr)
    check_bounds = attribute(A.UnitAttr)
    error = attribute(A.StringAttr, default="IndexError", words=ERRORS)
    value = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source = tensor_type(operands[0])
        index_shape = tensor_type(operands[1]).shape
        dims, position = attributes["dims"].parameters[0], attributes["position"].parameters[0]
        return (source.with_shape(take_shape(source.shape, index_shape, dims, position)),)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        check_take(self, source, [tensor_type(v) for v in self.operands[1:]])


def take_shape(
    source: Sequence[Dim], indices: Sequence[Dim], dims: Sequence[int], position: int
) -> tuple[Dim, ...]:
    """The sizes of `take` (and of what `put` writes)."""
    rest = [s for d, s in enumerate(source) if d not in dims]
    return (*rest[:position], *indices, *rest[position:])


def check_take(op: Any, source: TensorType, indices: Sequence[TensorType]) -> None:
    """Fail unless the index tensors fit `dims` and `position` of a take or put."""
    _check_dims(op, source, op.dims)
    if len(indices) != len(op.dims) or not indices:
        op.fail(f"{len(indices)} index tensors for {len(op.dims)} dimensions")
    for type_ in indices:
        _check_index(op, type_)
        if type_.shape != indices[0].shape:
            op.fail(f"index tensors of different shapes: {indices[0]} and {type_}")
    if not 0 <= op.position <= source.rank - len(op.dims):
        op.fail(f"position {op.position} is not among the dimensions that stay")


class Scatter(InferredOp):
    """`torch.scatter`: a copy of `source` in which each `value[i0, ...]` is combined into
    element (i0, ..., indices[i0, ...] at `dim`, ...). `value` has the shape of `indices`.

    combiner: set (one of several writes to an element wins), sum, prod, min, max; each combines
    with what the source has there, in row-major order of `value`.

    `%y = graph.scatter %x, %i, %v {dim = 0 : i64, combiner = "sum", check_bounds} : (tensor<4xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "graph.scatter"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    indices = operand(TENSOR)
    value = operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    combiner = attribute(A.StringAttr, words=SCATTER_COMBINERS)
    check_bounds = attribute(A.UnitAttr)
    error = attribute(A.StringAttr, default="IndexError", words=ERRORS)
    updated = result(TENSOR)

    def verify_operands(self) -> None:
        source, indices, value = (tensor_type(v) for v in self.operands)
        _check_index(self, indices)
        _check_dims(self, source, (self.dim,))
        if indices.rank != source.rank:
            self.fail(f"the index has rank {indices.rank}, the source {source.rank}")
        if value.shape != indices.shape or value.element is not source.element:
            self.fail(f"{value} can't be written to {source} at {indices}")


class Put(InferredOp):
    """`index_put`: a copy of `source` in which each element of `value` is combined into the
    element of the source that `graph.take` with the same indices, dims and position reads.

    combiner: set (where several write one element, the last in row-major order wins) or sum.

    `%y = graph.put %x, %v, %i {dims = array<i64: 0>, position = 0 : i64, combiner = "sum", check_bounds} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>`
    """  # noqa: E501

    name = "graph.put"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    value = operand(TENSOR)
    indices = variadic_operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    position = attribute(A.IntegerAttr)
    combiner = attribute(A.StringAttr, words=SCATTER_COMBINERS)
    check_bounds = attribute(A.UnitAttr)
    error = attribute(A.StringAttr, default="IndexError", words=ERRORS)
    updated = result(TENSOR)

    def verify_operands(self) -> None:
        source, value = tensor_type(self.operands[0]), tensor_type(self.operands[1])
        indices = [tensor_type(v) for v in self.operands[2:]]
        check_take(self, source, indices)
        shape = take_shape(source.shape, indices[0].shape, self.dims, self.position)
        if value.shape != shape or value.element is not source.element:
            self.fail(f"{value} is written, not sizes {shape} of {source.element}")


class Reduce(InferredOp):
    """Combines the elements along `dims` (increasing; none: each element by itself).

    combiner: sum, prod (integers wrap), min, max (NaN wins), any, all, xor (of i1, xor of any
    integer). The element type stays; floats are accumulated in it or better, in any order. An
    empty reduction gives the identity; min and max of nothing give the type's extremes.

    `%y = graph.reduce %x {combiner = "sum", dims = array<i64: 1>, keepdim} : (tensor<4x6xf32>) -> tensor<4x1xf32>`
    """  # noqa: E501

    name = "graph.reduce"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    combiner = attribute(A.StringAttr, words=REDUCE_COMBINERS)
    dims = attribute(A.DenseIntsAttr)
    keepdim = attribute(A.UnitAttr)
    value = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (_reduced(operands, attributes),)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        _check_dims(self, source, self.dims)
        if self.combiner in ("any", "all") and source.element is not i1:
            self.fail(f"'{self.combiner}' is of i1, not {source.element}")


def _reduced(operands: Sequence[Value], attributes: Mapping[str, Attribute]) -> TensorType:
    source = tensor_type(operands[0])
    dims = attributes["dims"].parameters[0]
    return source.with_shape(reduced_shape(source.shape, dims, "keepdim" in attributes))


class ArgReduce(InferredOp):
    """The i64 position of the first extreme along `dims`, row-major over them; a NaN wins.

    combiner: argmin or argmax. The reduced dimensions are not empty.

    `%i = graph.arg_reduce %x {combiner = "argmax", dims = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xi64>`
    """  # noqa: E501

    name = "graph.arg_reduce"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    combiner = attribute(A.StringAttr, words=ARG_COMBINERS)
    dims = attribute(A.DenseIntsAttr)
    keepdim = attribute(A.UnitAttr)
    position = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (_reduced(operands, attributes).with_element(i64),)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        _check_dims(self, source, self.dims)


class Moments(InferredOp):
    """The mean and the sum of squared deviations from it along `dims`, of f32 or f64.

    Computed without cancellation (Welford, or two passes). Of nothing: NaN mean, 0 deviations.

    `%mean, %m2 = graph.moments %x {dims = array<i64: 1>} : (tensor<4x6xf32>) -> (tensor<4xf32>, tensor<4xf32>)`
    """  # noqa: E501

    name = "graph.moments"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    dims = attribute(A.DenseIntsAttr)
    keepdim = attribute(A.UnitAttr)
    mean = result(TENSOR)
    deviations = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (_reduced(operands, attributes),) * 2

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        _check_dims(self, source, self.dims)
        if not is_computable_float(source.element):
            self.fail(f"is of f32 or f64, not {source.element}")


class Scan(InferredOp):
    """Inclusive running combination along `dim`: element k combines the elements 0 to k.

    combiner: sum, prod (integers wrap), min, max (NaN stays once seen), logsumexp (floats); or sort
    (integers): element k is number k of all elements in order, the smallest first. The element type
    stays; floats are combined in the float type `accumulator`, which is at least as
    wide (without it: f32, f64 for f64), and each result is rounded.

    `%y = graph.scan %x {accumulator = f64, combiner = "sum", dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "graph.scan"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    combiner = attribute(A.StringAttr, words=SCAN_COMBINERS)
    dim = attribute(A.IntegerAttr)
    accumulator = attribute(A.TypeAttr, optional=True)
    value = result(TENSOR)

    def verify_operands(self) -> None:
        source = tensor_type(self.operands[0])
        _check_dims(self, source, (self.dim,))
        wide, element = self.accumulator, source.element
        if self.combiner == "sort" and not isinstance(element, IntegerType):
            self.fail(f"sorts integers, not {element}")
        if wide is None:
            return
        if (
            not isinstance(wide, FloatType)
            or not isinstance(element, FloatType)
            or not is_computable_float(wide)
            or wide.width < element.width
        ):
            self.fail(f"{element} can't be combined in {wide}")


__all__ = [
    "ARG_COMBINERS", "REDUCE_COMBINERS", "SCAN_COMBINERS", "SCATTER_COMBINERS",
    "ArgReduce", "Gather", "Moments", "Put", "Reduce", "Scan", "Scatter", "Take",
    "reduced_shape", "take_shape",
]  # fmt: skip
