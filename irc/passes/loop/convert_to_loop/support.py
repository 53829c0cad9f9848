"""The boundary to the loop level, and what its converters are made of.

A converter is a function of a `ComputeBuilder` and of the operation, which ends in setting the
builder's `results`; `emit_map` and `emit_reduce` do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import func, graph, layout, loop, sym
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.floats import bits_float
from irc.ir.rewrite.conversion import Conversion, ConversionTarget
from irc.ir.symbols import Dim, is_index_expression, symbol
from irc.ir.types import (
    ComplexType,
    FloatType,
    IntegerType,
    TensorType,
    element_bytes,
    f32,
    i1,
)
from irc.passes.common.bodies import Body, axes_of, make_axes, make_compute

# Calls of libraries, and convolutions that `expand-winograd` makes computes of.
LIBRARY = (
    graph.CallAten, graph.Pack, graph.PackedConv, graph.PackedLinear, graph.WinogradConv,
)  # fmt: skip


def in_memory(op: graph.Constant) -> bool:
    """Whether a constant stays: it has several elements, or something else than computes reads it,
    and wants it in memory."""
    return not is_splat(op) or any(isinstance(user, LIBRARY) for user in op.tensor.users)


def starts_scatters(op: graph.Undefined) -> bool:
    """Whether scatters alone start from an array, into which they write all that is read."""
    users = list(op.results[0].users)
    return bool(users) and all(isinstance(user, loop.ComputeOp) for user in users)


def is_splat(op: graph.Constant) -> bool:
    """Whether a constant is one number, as often as there are elements."""
    value = op.value
    if is_complex(op.tensor):
        return False
    return isinstance(value, A.DenseAttr) and len(value.data) == element_bytes(
        element_of(op.tensor)
    )


def is_complex(value: Value) -> bool:
    """Whether a value is a tensor of complex numbers."""
    return isinstance(value.type, TensorType) and isinstance(value.type.element, ComplexType)


#: What may remain on the loop level; its tensors are handles to memory.
TO_LOOP = Conversion(
    "convert-to-loop",
    func.FuncOp,
    ConversionTarget(
        legal=(
            "loop", "arith", "math", "sym", "flow", "func", "kernel", "host",
            layout.ViewOp, layout.JoinOp, graph.Item, graph.UpdateInput, *LIBRARY,
        ),
        where={
            graph.Constant: in_memory,
            graph.Undefined: starts_scatters,
            graph.FromScalar: lambda op: symbolic_value(op.operands[0]) is None,
        },
    ),
    absent="it has no form on the loop level",
    later="bufferize",
    package="irc.passes.loop.convert_to_loop",
)  # fmt: skip


converts = TO_LOOP.converts


class ComputeBuilder:
    """Builds the computes that replace one op; a converter ends in setting `results`.

    `joins`: whether a concatenation's pieces are joined in memory, rather than chosen in a body.
    """

    def __init__(
        self,
        builder: Builder,
        op: Operation,
        handles: dict[Value, Value],
        joins: Callable[[graph.Concat], bool],
    ) -> None:
        self.builder = builder
        self.op = op
        self.handles = handles
        self.joins = joins
        self.results: list[Value] = []

    @property
    def type(self) -> TensorType:
        """The type of the (first) result."""
        type_ = self.op.results[0].type
        assert isinstance(type_, TensorType)
        return type_

    def handle(self, value: Value) -> Value:
        """What shares the memory that `value` stands for: itself, unless it reads a view."""
        return self.handles.get(value, value)

    def body(self) -> Body:
        """A fresh body with the op's location."""
        body = Body()
        body.location = self.op.location
        return body

    def compute(
        self,
        body: Body,
        values: Sequence[Value],
        outputs: Sequence[loop.ResultAttr],
        types: Sequence[Type],
        axes: A.ArrayAttr,
    ) -> tuple[Value, ...]:
        """Finish `body` and insert its compute; gives the results."""
        body.finish(values)
        return make_compute(self.builder, axes, outputs, types, body).results

    def map(self, value_of: Callable[[Body, tuple[Dim, ...]], Value], type_: TensorType) -> Value:
        """A map over the sizes of `type_`."""
        body = self.body()
        value = value_of(body, axes_of(type_.rank))
        return self.compute(body, [value], [loop.MAP], [type_], make_axes(type_.shape))[0]

    def emit_map(self, value_of: Callable[[Body, tuple[Dim, ...]], Value]) -> None:
        """The op is one map."""
        self.results = [self.map(value_of, self.type)]

    def emit_reduce(
        self,
        read: Callable[[Body, tuple[Dim, ...]], Value],
        shape: Sequence[Dim],
        dims: Sequence[int],
        combiner: str,
        accumulator: Type,
    ) -> None:
        """The op is a reduction of a space of sizes `shape` along `dims`."""
        body = self.body()
        value = read(body, axes_of(len(shape)))
        output = loop.ResultAttr("reduce", combiner, accumulator, None)
        result_types = [r.type for r in self.op.results]
        kept = [d for d in range(len(shape)) if d not in dims]
        types = [_without_unit_dims(t, kept) for t in result_types]
        reduced = self.compute(body, [value], [output], types, make_axes(shape, dims))
        self.results = [
            value if value.type is type_ else self.with_unit_dims(value, type_, kept)
            for value, type_ in zip(reduced, result_types, strict=True)
        ]

    def with_unit_dims(self, value: Value, type_: Any, kept: Sequence[int]) -> Value:
        """`value` with dimensions of size 1 added: a map for computes, a view for the others."""
        at = axes_of(type_.rank)
        read = self.map(lambda body, _: body.read(value, [at[d] for d in kept]), type_)
        self.handles[read] = self.builder.value(layout.ViewOp, value, offset=0, result_types=type_)
        return read

    def check(
        self,
        holds: Callable[[Body, tuple[Dim, ...]], Value],
        over: Value,
        text: str,
        error: str = "RuntimeError",
    ) -> None:
        """Raise `error`(text) at run time unless `holds` at every element of `over`."""
        type_ = over.type
        assert isinstance(type_, TensorType)
        body = self.body()
        value = holds(body, axes_of(type_.rank))
        output = loop.ResultAttr("reduce", "all", i1, None)
        truth = TensorType((), i1, (), type_.device)
        axes = make_axes(type_.shape, range(type_.rank))
        (all_hold,) = self.compute(body, [value], [output], [truth], axes)
        flag = self.builder.value(graph.Item, all_hold, result_types=i1)
        self.builder.create(sym.AssertValueOp, flag, message=text, error=error)


def _without_unit_dims(type_: Any, kept: Sequence[int]) -> TensorType:
    """The type of a reduction's result without the dimensions of size 1 that it keeps."""
    if type_.rank == len(kept):
        return type_
    return type_.with_shape(
        [type_.shape[d] for d in kept], [type_.strides[d] for d in kept]
    )


def constant_scalar(value: Any, element: Type) -> Any:
    """The Python number of an attribute that stands for one element."""
    if isinstance(value, A.DenseAttr):
        return decode_element(value.data, element)
    return value.value


def decode_element(data: bytes, element: Type) -> Any:
    """The number that little-endian bytes are, as an element."""
    if isinstance(element, FloatType):
        codes = {"f16": "<e", "f32": "<f", "f64": "<d"}
        if element.name in codes:
            return struct.unpack(codes[element.name], data)[0]
        if element.name == "bf16":
            return struct.unpack("<f", b"\0\0" + data)[0]
        return bits_float(int.from_bytes(data, "little"), element.name)
    signed = isinstance(element, IntegerType) and not element.unsigned and element is not i1
    return int.from_bytes(data, "little", signed=signed)


def computes_in(element: Type) -> Type:
    """The type in which reductions of an element type accumulate: f32 for 16-bit floats."""
    return f32 if isinstance(element, FloatType) and element.width < 32 else element


def element_of(value: Value) -> Type:
    """The element type of a tensor value."""
    assert isinstance(value.type, TensorType)
    return value.type.element


def symbolic_value(scalar: Value) -> Dim | None:
    """The symbolic expression that an index value is, if it is one that kernels compute."""
    maker = scalar.defining_op
    if isinstance(maker, sym.ValueOp):
        return maker.dim if is_index_expression(maker.dim) else None
    if isinstance(maker, sym.Binder):
        return symbol(maker.symbol)
    return None


def op_scalar(c: ComputeBuilder) -> Type:
    """The scalar type of the result's elements."""
    return loop.signless(c.type.element)
