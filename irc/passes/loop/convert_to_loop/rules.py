"""How each graph op is a compute: the converters of `convert-to-loop`, one for each class."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irc.analysis.strides import ordered_like
from irc.analysis.views import INDICES, source_indices, view_strides
from irc.dialects import arith, aten, func, graph, layout, loop, sym
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.floats import bits_float
from irc.ir.rewrite.conversion import Conversion, ConversionTarget, decline
from irc.ir.symbols import Dim, is_index_expression, symbol
from irc.ir.types import (
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    element_bytes,
    f32,
    i1,
    i64,
    index,
)
from irc.passes.common.bodies import Body, axes_of, axis_name, make_axes, make_compute
from irc.passes.loop.convert_to_loop.scalar_semantics import POINTWISE, RAISES_ON_ZERO, cast

# Calls of libraries, and kernels of ours that `form-convolution-kernels` makes.
LIBRARY = (
    graph.CallAten, graph.Pack, graph.PackedConv, graph.PackedLinear, graph.WinogradConv,
    graph.PanelConv,
)  # fmt: skip


def in_memory(op: graph.Constant) -> bool:
    """Whether a constant stays: it has several elements, or something else than computes reads it,
    and wants it in memory."""
    return not is_splat(op) or any(isinstance(user, LIBRARY) for user in op.tensor.users)


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
            layout.ViewOp, graph.Item, graph.UpdateInput, *LIBRARY,
        ),
        where={
            graph.Constant: in_memory,
            graph.FromScalar: lambda op: symbolic_value(op._operands[0]) is None,
        },
    ),
    absent="it has no form on the loop level",
    later="bufferize",
)  # fmt: skip
converts = TO_LOOP.converts


class ComputeBuilder:
    """Builds the computes that replace one op; a converter ends in setting `results`."""

    def __init__(self, builder: Builder, op: Operation, handles: dict[Value, Value]) -> None:
        self.builder = builder
        self.op = op
        self.handles = handles
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
        wanted = [r.type for r in self.op.results]
        kept = [d for d in range(len(shape)) if d not in dims]
        types = [_without_unit_dims(t, kept) for t in wanted]
        found = self.compute(body, [value], [output], types, make_axes(shape, dims))
        self.results = [
            value if value.type is type_ else self.with_unit_dims(value, type_, kept)
            for value, type_ in zip(found, wanted, strict=True)
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
        made = TensorType((), i1, (), type_.device)
        axes = make_axes(type_.shape, range(type_.rank))
        (all_hold,) = self.compute(body, [value], [output], [made], axes)
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


# -- constants


@converts(graph.Constant)
def _constant(c: ComputeBuilder, op: graph.Constant) -> None:
    element = c.type.element
    number = constant_scalar(op.attributes["value"], element)
    c.emit_map(lambda body, at: body.constant(number, loop.signless(element)))


@converts(graph.Full)
def _full(c: ComputeBuilder, op: graph.Full) -> None:
    element = c.type.element
    if not op._operands:
        number = op.attributes["value"].value  # type: ignore[attr-defined]
        c.emit_map(lambda body, at: body.constant(number, loop.signless(element)))
        return
    scalar = op._operands[0]
    if _from_symbols(c, scalar):
        return
    held = c.builder.value(
        graph.FromScalar, scalar, result_types=scalar_tensor(scalar.type, c.type.device)
    )
    c.emit_map(lambda body, at: cast(body, body.read(held, ()), element_of(held), element))


@converts(graph.FromScalar)
def _from_scalar(c: ComputeBuilder, op: graph.FromScalar) -> None:
    made = _from_symbols(c, op._operands[0])
    assert made, "convert-to-loop keeps any other"


def _from_symbols(c: ComputeBuilder, scalar: Value) -> bool:
    known, element = symbolic_value(scalar), c.type.element
    if known is None:
        return False

    def from_symbol(body: Body, at: tuple[Dim, ...]) -> Value:
        value = body.op("arith.index_cast", body.index(known), type=i64)
        return cast(body, value, i64, element)

    c.emit_map(from_symbol)
    return True


def symbolic_value(scalar: Value) -> Dim | None:
    """The symbolic expression that an index value is, if it is one that kernels compute."""
    maker = scalar.defining_op
    if isinstance(maker, sym.ValueOp):
        return maker.dim if is_index_expression(maker.dim) else None
    if isinstance(maker, sym.Binder):
        return symbol(maker.symbol)
    return None


def scalar_tensor(type_: Type, device: str) -> TensorType:
    """The type of `graph.from_scalar`'s result, with (no) strides."""
    return TensorType((), i64 if isinstance(type_, IndexType) else type_, (), device)


@converts(graph.Undefined)
def _undefined(c: ComputeBuilder, op: graph.Undefined) -> None:
    element = loop.signless(c.type.element)
    c.emit_map(lambda body, at: body.zero(element))


@converts(graph.Iota)
def _iota(c: ComputeBuilder, op: graph.Iota) -> None:
    element = loop.signless(c.type.element)
    c.emit_map(lambda body, at: body.op("arith.index_cast", body.index(at[op.dim]), type=element))


# -- pointwise


@converts(graph.PointwiseOp)
def _pointwise(c: ComputeBuilder, op: graph.PointwiseOp) -> None:
    element = element_of(op._operands[0])
    function = POINTWISE.get(op.function)
    if function is None:
        decline(f"there is no scalar code for '{op.function}'")
    if op.function in RAISES_ON_ZERO and isinstance(element, IntegerType):
        _check_divisor(c, op._operands[1])
    declared = {k: v for k, v in op.attributes.items() if k in op.attribute_fields}

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        return function(body, element, *[body.read(v, at) for v in op._operands], **declared)

    c.emit_map(value_of)


def _check_divisor(c: ComputeBuilder, divisor: Value) -> None:
    """An assertion that no element of an integer divisor is 0, unless it is a constant."""
    maker = divisor.defining_op
    if isinstance(maker, loop.ComputeOp):
        yielded = maker.yield_op._operands[0].defining_op
        while isinstance(yielded, loop.ReadOp) and isinstance(
            yielded.source.defining_op, loop.ComputeOp
        ):
            yielded = yielded.source.defining_op.yield_op._operands[0].defining_op
        if isinstance(yielded, arith.ConstantOp):
            if yielded.attributes["value"].value != 0:  # type: ignore[attr-defined]
                return

    def holds(body: Body, at: tuple[Dim, ...]) -> Value:
        value = body.read(divisor, at)
        return body.compare("ne", value, body.zero(value.type))

    c.check(holds, divisor, "ZeroDivisionError")


@converts(graph.Select)
def _select(c: ComputeBuilder, op: graph.Select) -> None:
    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        condition, yes, no = (body.read(v, at) for v in op._operands)
        return body.select(condition, yes, no)

    c.emit_map(value_of)


@converts(graph.Cast)
def _cast(c: ComputeBuilder, op: graph.Cast) -> None:
    source, target = element_of(op._operands[0]), c.type.element
    c.emit_map(lambda body, at: cast(body, body.read(op._operands[0], at), source, target))


@converts(graph.Bitcast)
def _bitcast(c: ComputeBuilder, op: graph.Bitcast) -> None:
    target = loop.signless(c.type.element)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        value = body.read(op._operands[0], at)
        return value if value.type is target else body.op("arith.bitcast", value, type=target)

    c.emit_map(value_of)


@converts(graph.Copy, layout.CopyOp)
def _copy(c: ComputeBuilder, op: Operation) -> None:
    if is_complex(op.results[0]):
        _call_clone(c, op)
    else:
        c.emit_map(lambda body, at: body.read(op._operands[0], at))


def _call_clone(c: ComputeBuilder, op: Operation) -> None:
    """A copy of complex elements is ATen's: kernels have no complex numbers."""
    strides = c.type.strides
    assert strides is not None
    entries = {
        "callee": A.StringAttr("aten.clone.default"),
        "arguments": A.DictAttr({"self": aten.OperandAttr(0)}),
        "eager_strides": A.ArrayAttr([A.DimsAttr(strides)]),
    }
    operands = [c.handle(op._operands[0])]
    c.results = [*c.builder.insert(graph.CallAten(operands, [c.type], entries)).results]


# -- the same elements elsewhere


@converts(*INDICES)
def _view(c: ComputeBuilder, op: Operation) -> None:
    """The elements of the source, read at other places; one that is a view in memory has a handle,
    too."""
    source, type_ = op._operands[0], c.type
    assert type_.strides is not None
    extents = {axis_name(d): size for d, size in enumerate(type_.shape)}
    # A view may repeat elements in memory; the array that stands for it has none twice.
    is_view = "view" in op.attributes
    dense = type_.with_strides(ordered_like(type_.shape, type_.strides)) if is_view else type_
    made = _view_in_memory(c, op) if is_view else None
    read = c.map(lambda body, at: body.read(source, source_indices(op, at, extents)), dense)
    if made is not None:
        c.handles[read] = made
        made.name_hint = op.results[0].name_hint
    c.results = [read]


def _view_in_memory(c: ComputeBuilder, op: Operation) -> Value:
    handle = c.handle(op._operands[0])
    # The compute that reads a view may have other strides than the view itself.
    found = view_strides(op, tensor_type(handle))
    assert found is not None
    made: Value = c.builder.value(layout.ViewOp, handle, offset=found[1], result_types=c.type)
    return made


def in_range(body: Body, position: Dim, low: Dim, high: Dim) -> Value | None:
    """The mask low <= position < high; a bound that is None isn't checked."""
    mask: Value | None = None
    value = body.index(position)
    if low is not None:
        mask = body.compare("sge", value, body.index(low))
    if high is not None:
        mask = body.both(mask, body.compare("slt", value, body.index(high)))
    return mask


@converts(graph.Concat)
def _concat(c: ComputeBuilder, op: graph.Concat) -> None:
    dim = op.dim
    sources = [v for v in op._operands if v.type.shape[dim] != 0]  # type: ignore[attr-defined]
    starts: list[Dim] = []
    running: Dim = 0
    for source in sources:
        starts.append(running)
        running = running + source.type.shape[dim]  # type: ignore[attr-defined]

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        value: Value | None = None
        for number in range(len(sources) - 1, -1, -1):
            shifted = list(at)
            shifted[dim] = at[dim] - starts[number]
            low: Any = starts[number] if number else None
            high: Any = starts[number + 1] if number + 1 < len(sources) else None
            mask = in_range(body, at[dim], low, high)
            value = body.read(sources[number], shifted, (), mask, None if mask is None else value)
        if value is None:
            return body.zero(loop.signless(c.type.element))
        return value

    c.emit_map(value_of)


@converts(graph.Pad)
def _pad(c: ComputeBuilder, op: graph.Pad) -> None:
    source = op._operands[0]
    sizes = source.type.shape  # type: ignore[attr-defined]
    fill = constant_scalar(op.attributes["value"], c.type.element)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        mask: Value | None = None
        shifted: list[Dim] = []
        for dim, size in enumerate(sizes):
            low, high = op.low[dim], op.high[dim]
            shifted.append(at[dim] - low)
            below: Any = None if isinstance(low, int) and low <= 0 else 0
            above: Any = None if isinstance(high, int) and high <= 0 else size
            if below is not None or above is not None:
                mask = body.both(mask, in_range(body, at[dim] - low, below, above))
        other = None if mask is None else body.constant(fill, loop.signless(c.type.element))
        return body.read(source, shifted, (), mask, other)

    c.emit_map(value_of)


@converts(graph.DiagonalEmbed)
def _diagonal_embed(c: ComputeBuilder, op: graph.DiagonalEmbed) -> None:
    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        row = at[op.dim1] - max(-op.offset, 0)
        column = at[op.dim2] - max(op.offset, 0)
        indices = [a for d, a in enumerate(at) if d not in (op.dim1, op.dim2)]
        on_diagonal = body.compare("eq", body.index(row), body.index(column))
        mask = body.both(on_diagonal, in_range(body, row, 0, op.source.type.shape[-1]))
        return body.read(op.source, [*indices, row], (), mask, body.zero(op_scalar(c)))

    c.emit_map(value_of)


def op_scalar(c: ComputeBuilder) -> Type:
    """The scalar type of the result's elements."""
    return loop.signless(c.type.element)


# -- by index


def position_of(body: Body, value: Value) -> Value:
    """An integer scalar as an index."""
    return body.op("arith.index_cast", value, type=index)


def check_bounds(c: ComputeBuilder, op: Any, indices: Value, dim: int) -> None:
    """Raise at run time where an index into a dimension of the op's source is out of bounds."""
    size = op.source.type.shape[dim]

    def holds(body: Body, at: tuple[Dim, ...]) -> Value:
        value = position_of(body, body.read(indices, at))
        return body.op(
            "arith.andi",
            body.compare("sge", value, body.index(0)),
            body.compare("slt", value, body.index(size)),
        )

    text = f"index out of bounds for dimension {dim} with size {size}"
    c.check(holds, indices, text, op.error)


@converts(graph.Gather)
def _gather(c: ComputeBuilder, op: graph.Gather) -> None:
    source, indices = op._operands
    if op.check_bounds:
        check_bounds(c, op, indices, op.dim)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        found = position_of(body, body.read(indices, at))
        place = [symbol(loop.placeholder(0)) if d == op.dim else a for d, a in enumerate(at)]
        return body.read(source, place, [found])

    c.emit_map(value_of)


def _taken(op: Any, at: tuple[Dim, ...], index_rank: int) -> tuple[tuple[Dim, ...], list[Dim]]:
    """The index tensors' position, and the source's indices with placeholders, for the element
    at `at` of what a take reads (or a put writes)."""
    start = op.position
    inner = at[start : start + index_rank]
    rest = iter([*at[:start], *at[start + index_rank :]])
    source_rank = len(at) - index_rank + len(op.dims)
    place: list[Dim] = []
    for dim in range(source_rank):
        if dim in op.dims:
            place.append(symbol(loop.placeholder(op.dims.index(dim))))
        else:
            place.append(next(rest))
    return inner, place


def _check_all(c: ComputeBuilder, op: Any, indices: Iterable[Value]) -> None:
    if op.check_bounds:
        for value, dim in zip(indices, op.dims, strict=True):
            check_bounds(c, op, value, dim)


@converts(graph.Take)
def _take(c: ComputeBuilder, op: graph.Take) -> None:
    _check_all(c, op, op.indices)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        inner, place = _taken(op, at, op.indices[0].type.rank)
        found = [position_of(body, body.read(v, inner)) for v in op.indices]
        return body.read(op.source, place, found)

    c.emit_map(value_of)


def _emit_scatter(
    c: ComputeBuilder,
    space: Sequence[Dim],
    init: Value,
    combiner: str,
    content: Callable[[Body, tuple[Dim, ...]], tuple[Value, list[Value], list[Dim]]],
) -> None:
    body = c.body()
    value, extra, place = content(body, axes_of(len(space)))
    body.finish([value], extra)
    output = loop.ResultAttr("scatter", combiner, None, A.DimsAttr(place))
    made = make_compute(c.builder, make_axes(space), [output], [c.type], body, [init])
    c.results = [made.results[0]]


@converts(graph.Scatter)
def _scatter(c: ComputeBuilder, op: graph.Scatter) -> None:
    if op.check_bounds:
        check_bounds(c, op, op.indices, op.dim)
    written, kept = op.indices.type.shape, op.source.type.shape
    if written == tuple(1 if d == op.dim else size for d, size in enumerate(kept)):
        _scatter_one(c, op)
        return

    def content(body: Body, at: tuple[Dim, ...]) -> tuple[Value, list[Value], list[Dim]]:
        found = position_of(body, body.read(op.indices, at))
        place = [symbol(loop.placeholder(0)) if d == op.dim else a for d, a in enumerate(at)]
        return body.read(op._operands[2], at), [found], place

    _emit_scatter(c, op.indices.type.shape, op.source, op.combiner, content)


_COMBINED = {"sum": "add", "prod": "mul", "min": "minimum", "max": "maximum"}


def _scatter_one(c: ComputeBuilder, op: graph.Scatter) -> None:
    """At most one value for each place: a map that selects it, so that it fuses."""
    source, indices, value = op._operands

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        row = [0 if d == op.dim else a for d, a in enumerate(at)]
        found = position_of(body, body.read(indices, row))
        hit = body.compare("eq", found, body.index(at[op.dim]))
        old, new = body.read(source, at), body.read(value, row)
        if op.combiner != "set":
            element = c.type.element
            wide = computes_in(element)
            parts = [cast(body, part, element, wide) for part in (old, new)]
            combined = POINTWISE[_COMBINED[op.combiner]](body, wide, *parts)
            new = cast(body, combined, wide, element)
        return body.select(hit, new, old)

    c.emit_map(value_of)


@converts(graph.Put)
def _put(c: ComputeBuilder, op: graph.Put) -> None:
    _check_all(c, op, op.indices)
    written = op._operands[1]

    def content(body: Body, at: tuple[Dim, ...]) -> tuple[Value, list[Value], list[Dim]]:
        inner, place = _taken(op, at, op.indices[0].type.rank)
        found = [position_of(body, body.read(v, inner)) for v in op.indices]
        return body.read(written, at), found, place

    _emit_scatter(c, tensor_type(written).shape, op.source, op.combiner, content)


# -- reductions and scans


def _widened(c: ComputeBuilder, source: Value) -> Callable[[Body, tuple[Dim, ...]], Value]:
    element = element_of(source)
    wide = computes_in(element)
    return lambda body, at: cast(body, body.read(source, at), element, wide)


@converts(graph.Reduce)
def _reduce(c: ComputeBuilder, op: graph.Reduce) -> None:
    source: Any = op._operands[0]
    element = source.type.element
    if not op.dims:
        c.emit_map(lambda body, at: body.read(source, at))
        return
    combiner = op.combiner
    if element is i1:
        combiner = {"max": "any", "min": "all", "prod": "all", "sum": "any"}.get(combiner, combiner)
    c.emit_reduce(_widened(c, source), source.type.shape, op.dims, combiner, computes_in(element))


@converts(graph.ArgReduce)
def _arg_reduce(c: ComputeBuilder, op: graph.ArgReduce) -> None:
    source: Any = op._operands[0]
    if not op.dims:
        c.emit_map(lambda body, at: body.zero(i64))
        return
    wide = computes_in(source.type.element)
    c.emit_reduce(_widened(c, source), source.type.shape, op.dims, op.combiner, wide)


@converts(graph.Moments)
def _moments(c: ComputeBuilder, op: graph.Moments) -> None:
    source: Any = op._operands[0]
    if op.dims:
        c.emit_reduce(
            _widened(c, source), source.type.shape, op.dims, "moments", source.type.element
        )
        return

    def deviation(body: Body, at: tuple[Dim, ...]) -> Value:
        # Of one number from itself: 0, but NaN for an infinite one and for NaN.
        number = body.read(source, at)
        return body.op("arith.subf", number, number)

    c.results = [c.map(lambda body, at: body.read(source, at), c.type), c.map(deviation, c.type)]


@converts(graph.Scan)
def _scan(c: ComputeBuilder, op: graph.Scan) -> None:
    source: Any = op._operands[0]
    wide, body = op.accumulator or computes_in(element_of(source)), c.body()
    value = cast(body, body.read(source, axes_of(source.type.rank)), element_of(source), wide)
    output = loop.ResultAttr("scan", op.combiner, wide, None)
    axes = make_axes(source.type.shape, [op.dim], "scan")
    c.results = list(c.compute(body, [value], [output], [c.type], axes))


__all__ = ["TO_LOOP", "ComputeBuilder", "constant_scalar", "symbolic_value"]
