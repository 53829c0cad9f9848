"""Complex numbers as two tensors of reals, where nothing else sees them.

Rotary embeddings are often written so: `view_as_real(view_as_complex(x) * polar(1, angle))`. A
complex value becomes a pair where its maker and all its users are known here; one that an argument
holds, that a call gives or takes (a Fourier transform) or that is returned stays complex, and so
does all that is computed with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from irc.dialects import func, graph
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import ComplexType, TensorType, f16
from irc.passes.graph.convert_aten.support import (
    TO_GRAPH,
    Call,
    decline,
    rank_of,
    shape_of,
)

Pair = tuple[Value, Value]
PairConverter = Callable[[Call, Mapping[str, Any]], Pair | Value]
PairFunction = TypeVar("PairFunction", bound=Callable[..., Pair | Value])
PAIR_CONVERTERS: dict[str, PairConverter] = {}

# What moves elements moves both parts alike.
MOVES = frozenset(
    f"aten.{name}"
    for name in """
    view.default _unsafe_view.default reshape.default unsqueeze.default squeeze.default squeeze.dim
    squeeze.dims permute.default transpose.int t.default expand.default slice.Tensor select.int
    clone.default contiguous.default alias.default detach.default cat.default stack.default
    flip.default repeat.default index_select.default neg.default
    """.split()
)


def _converts(*names: str, **data: Any) -> Callable[[PairFunction], PairFunction]:
    def register(function: PairFunction) -> PairFunction:
        converter = functools.partial(function, **data) if data else function
        PAIR_CONVERTERS.update(dict.fromkeys(names, converter))
        return function

    return register


def is_complex(value: Value) -> bool:
    """Whether a value is a tensor of complex numbers."""
    return isinstance(value.type, TensorType) and isinstance(value.type.element, ComplexType)


def real_type(type_: Type) -> Type:
    """The type of one part of a complex tensor; any other type is itself."""
    if isinstance(type_, TensorType) and isinstance(type_.element, ComplexType):
        return TensorType(type_.shape, type_.element.element, None, type_.device)
    return type_


def paired_values(function: func.FuncOp) -> set[Value]:
    """The complex values of a function that become pairs: the largest set of those whose maker
    and users are known, and whose neighbours are in the set."""
    groups = [
        (op, complex_values)
        for op in function.block.ops
        if (complex_values := [v for v in (*op.operands, *op.results) if is_complex(v)])
    ]
    paired = {value for _, values in groups for value in values if value.defining_op is not None}
    while True:
        removed = {
            value
            for op, values in groups
            if not _is_known(op) or any(v not in paired for v in values)
            for value in values
        } & paired
        if not removed:
            return paired
        paired -= removed


def _is_known(op: Any) -> bool:
    name, values = op.name, (*op.operands, *op.results)
    elements = [v.type.element.element for v in values if is_complex(v)]  # type: ignore[attr-defined]
    devices = {v.type.device for v in values if isinstance(v.type, TensorType)}
    if f16 in elements or len(devices) > 1:
        return False
    if name in ("aten.add.Tensor", "aten.sub.Tensor"):
        return "alpha" not in op.arguments.as_dict()
    if name in ("aten.cat.default", "aten.stack.default") and len(elements) < len(values):
        return False
    return name in PAIR_CONVERTERS or name in MOVES and name in TO_GRAPH.table


def convert_pair(call: Call, pairs: Mapping[Value, Pair]) -> Pair | Value:
    """The result of an operator whose complex values are pairs: one too, or a real tensor."""
    name = call.op.name
    parts = {name: _parts(source, pairs) for name, source in call.sources.items()}
    if name in PAIR_CONVERTERS:
        return PAIR_CONVERTERS[name](call, parts)
    converter = TO_GRAPH.converters_of(type(call.op))[0]
    halves = [converter.call(part_of(call, parts, number)) for number in (0, 1)]
    return tuple(v if isinstance(v, Value) else v[0] for v in halves)  # type: ignore[return-value]


def part_of(call: Call, parts: Mapping[str, Any], number: int) -> Call:
    """The call on the real (0) or imaginary (1) parts of its complex arguments."""
    arguments = {
        name: call.arguments[name] if part is None else _chosen(part, number)
        for name, part in parts.items()
    }
    kinds = [real_type(type_) for type_ in call.result_types]
    return Call(
        call.builder, call.op, arguments, call.sources, kinds, ranges=call.ranges,
        known=call.known, default_float=call.default_float, figures=call.figures,
    )  # fmt: skip


def _parts(source: Any, pairs: Mapping[Value, Pair]) -> Any:
    """The pair of an argument, pairs of a list; None for what is not complex."""
    if isinstance(source, Value):
        return pairs.get(source)
    if isinstance(source, list) and any(isinstance(s, Value) and s in pairs for s in source):
        return [pairs[s] for s in source]
    return None


def _chosen(part: Any, number: int) -> Any:
    return [p[number] for p in part] if isinstance(part, list) else part[number]


def _operands(call: Call, parts: Mapping[str, Any]) -> Iterator[tuple[Value, Value | None]]:
    """Real and imaginary parts (None: 0) of both operands, in the shape of the result."""
    type_ = real_type(call.result)
    assert isinstance(type_, TensorType)
    real = part_of(call, parts, 0)
    for name in ("self", "other"):
        part, number = parts[name], call.arguments[name]
        if isinstance(number, Sequence):
            decline("complex numbers are ATen's")
        if isinstance(number, complex):
            part = number.real, number.imag
        first, second = (number, None) if part is None else part
        shown = real.operand(first, type_.shape, type_.element)
        yield shown, None if second is None else real.operand(second, type_.shape, type_.element)


@_converts("aten.mul.Tensor", "aten.mul.Scalar")
def mul(c: Call, parts: Mapping[str, Any]) -> Pair:
    (a, b), (x, y) = _operands(c, parts)
    times = lambda p, q: c.pointwise("mul", p, q)  # noqa: E731
    if b is None or y is None:
        (a, b), (x, _) = ((x, y), (a, b)) if b is None else ((a, b), (x, y))
        assert b is not None
        return times(a, x), times(b, x)
    real = c.pointwise("sub", times(a, x), times(b, y))
    return real, c.pointwise("add", times(a, y), times(b, x))


@_converts("aten.add.Tensor", name="add")
@_converts("aten.sub.Tensor", name="sub")
def add(c: Call, parts: Mapping[str, Any], *, name: str) -> Pair:
    (a, b), (x, y) = _operands(c, parts)
    zero = c.full(0, a)
    second = c.pointwise(name, zero if b is None else b, zero if y is None else y)
    return c.pointwise(name, a, x), second


@_converts("aten._conj.default", "aten._conj_physical.default", "aten.conj_physical.default")
def conj(c: Call, parts: Mapping[str, Any]) -> Pair:
    pair, number = parts["self"], c.arguments["self"]
    if isinstance(number, complex):
        type_ = real_type(c.result)
        assert isinstance(type_, TensorType)
        pair = [c.operand(n, type_.shape, type_.element) for n in (number.real, number.imag)]
    real, imaginary = pair
    return real, c.pointwise("neg", imaginary)


@_converts("aten.view_as_complex.default")
def view_as_complex(c: Call, parts: Mapping[str, Any]) -> Pair:
    last = rank_of(c.self_) - 1
    halves = (c.slice(c.self_, last, number, 1) for number in (0, 1))
    first, second = (c.reshape(half, shape_of(half)[:-1]) for half in halves)
    return first, second


@_converts("aten.view_as_real.default")
def view_as_real(c: Call, parts: Mapping[str, Any]) -> Value:
    pair = [c.reshape(part, (*shape_of(part), 1)) for part in parts["self"]]
    return c.emit(graph.Concat, pair, dim=c.result.rank - 1, result_types=c.result)


@_converts("aten.real.default", number=0)
@_converts("aten.imag.default", number=1)
def only_part(c: Call, parts: Mapping[str, Any], *, number: int) -> Value:
    return parts["self"][number]


@_converts("aten.complex.default")
def of_parts(c: Call, parts: Mapping[str, Any]) -> Pair:
    real, imaginary = (
        c.broadcast(c.arguments[name], c.result.shape) for name in ("real", "imag")
    )
    return real, imaginary


@_converts("aten._to_copy.default", "aten.extern.prims.convert_element_type.default")
def cast(c: Call, parts: Mapping[str, Any]) -> Pair | Value:
    source = c.one_of("self", "a")
    pair = parts["self" if "self" in parts else "a"] or (source, None)
    type_ = real_type(c.result)
    assert isinstance(type_, TensorType)
    real = c.cast(pair[0], type_.element)
    if type_ is c.result_types[0]:
        return real
    return real, c.full(0, real) if pair[1] is None else c.cast(pair[1], type_.element)


@_converts("aten.polar.default")
def polar(c: Call, parts: Mapping[str, Any]) -> Pair:
    size, angle = (c.broadcast(c.arguments[n], c.result.shape) for n in ("abs", "angle"))
    first = c.pointwise("mul", size, c.pointwise("cos", angle))
    return first, c.pointwise("mul", size, c.pointwise("sin", angle))
