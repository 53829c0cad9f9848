"""Canonicalization of the graph dialect: views, constants and casts. Algebra: graph_rules.py."""

from __future__ import annotations

import math
from typing import Any

from irc.dialects.graph import indexing, ops, pointwise, shapes
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.views import view_strides
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.rewrite.driver import canonicalization
from irc.ir.strides import same_places
from irc.ir.types import FloatType, IntegerType, Type, bf16, f16, f32, f64, i1

#: The views through which the number of a `graph.full` is seen.
SEEN_THROUGH = (shapes.Broadcast, shapes.Reshape, shapes.Permute, shapes.Slice)


def full_value(value: Value) -> Any:
    """The number that every element of a `graph.full` (also seen through casts-free views) is."""
    maker = value.defining_op
    while isinstance(maker, SEEN_THROUGH):
        maker = maker.source.defining_op
    if isinstance(maker, ops.Full):
        attr = maker.attributes.get("value")
        if isinstance(attr, pointwise.SCALAR_ATTRIBUTES):
            return attr.value
    return None


# reshape(reshape(x)) -> reshape(x); a reshape to the same sizes -> x
@canonicalization(shapes.Reshape, name="graph.reshape")
def reshape(op: shapes.Reshape, rw: Any) -> Any:
    if op.source.type is op.view.type:
        rw.replace(op, [op.source])
        return True
    inner = op.source.defining_op
    if not isinstance(inner, shapes.Reshape):
        return rw.no_match("the source is no reshape")
    return _merge(op, inner, rw)


# permute(permute(x, p), q) -> permute(x, p[q]); the identity -> x
@canonicalization(shapes.Permute, name="graph.permute")
def permute(op: shapes.Permute, rw: Any) -> Any:
    order = op.permutation
    if list(order) == list(range(len(order))):
        rw.replace(op, [op.source])
        return True
    inner = op.source.defining_op
    if not isinstance(inner, shapes.Permute):
        return rw.no_match("the source is no permute")
    return _merge(op, inner, rw, permutation=[inner.permutation[d] for d in order])


def _merge(op: Any, inner: Any, rw: Any, **attributes: Any) -> Any:
    """Replace a view op of a view op by one with these attributes. What shares its operand's
    memory (the flag `view`) goes on to do so, or stays as it is."""
    merged = type(op).make(inner.source, result_types=op.view.type, **attributes)
    if "view" in op.attributes:
        place = view_strides(merged) if "view" in inner.attributes else None
        if place is None or not same_places(op.view.type, place[0]):
            merged.erase()
            return rw.no_match("the two are no view together")
        merged.attributes["view"] = A.UNIT
    rw.replace(op, merged)
    return True


# full(item(x)) -> broadcast(cast(x)): the number stays where it is
@canonicalization(ops.Full, name="graph.full_of_item")
def full_of_item(op: ops.Full, rw: Any) -> Any:
    item = op.operands[0].defining_op if op.operands else None
    if not isinstance(item, ops.Item) or item.every:
        return rw.no_match("the value is no item of a tensor")
    source, result_type = item.source, tensor_type(op.results[0])
    type_ = tensor_type(source)
    if type_.device != result_type.device:
        return rw.no_match("the item is on another device")
    if isinstance(type_.element, FloatType) and not isinstance(result_type.element, FloatType):
        return rw.no_match("a float becomes an integer")
    if type_.rank:
        source = rw.builder.value(shapes.Reshape, source, result_types=type_.with_shape(()))
    if type_.element is not result_type.element:
        source = rw.insert(pointwise.Cast.to(source, result_type.element)).results[0]
    rw.replace(op, rw.builder.value(shapes.Broadcast, source, dims=(), result_types=result_type))
    return True


# broadcast(broadcast(x, a), b) -> broadcast(x, b[a]); to the same sizes -> x
@canonicalization(shapes.Broadcast, name="graph.broadcast")
def broadcast(op: shapes.Broadcast, rw: Any) -> Any:
    if op.source.type is op.view.type:
        rw.replace(op, [op.source])
        return True
    inner = op.source.defining_op
    if isinstance(inner, ops.Full):
        if "view" in op.attributes:
            return rw.no_match("it shares the memory of its source")
        rw.replace(op, _full_like(rw, inner, op.view.type))
        return True
    if not isinstance(inner, shapes.Broadcast):
        return rw.no_match("the source is no broadcast and no full")
    return _merge(op, inner, rw, dims=[op.dims[d] for d in inner.dims])


def _full_like(rw: Any, full: ops.Full, type_: Type) -> Value:
    return rw.builder.value(
        ops.Full, full.scalar, value=full.attributes.get("value"), result_types=type_
    )


# reshape(full), permute(full), slice(full), reverse(full) -> full
@canonicalization(
    shapes.Reshape, shapes.Permute, shapes.Slice, shapes.Reverse, shapes.Window,
    shapes.StridedWindow, name="graph.view_of_full",
)  # fmt: skip
def view_of_full(op: Any, rw: Any) -> Any:
    inner = op.source.defining_op
    if not isinstance(inner, ops.Full):
        return rw.no_match("the source is no full")
    if "view" in op.attributes:
        return rw.no_match("it shares the memory of its source")
    rw.replace(op, _full_like(rw, inner, op.results[0].type))
    return True


# slice(concat(a, b, c)) -> b, or a slice of b, where it lies within b
@canonicalization(shapes.Slice, name="graph.slice_of_concat")
def slice_of_concat(op: shapes.Slice, rw: Any) -> Any:
    maker = op.source.defining_op
    if not isinstance(maker, shapes.Concat) or maker.dim != op.dim:
        return rw.no_match("the source is no concatenation along the same dimension")
    if "view" in op.attributes:
        return rw.no_match("it shares the memory of its source")
    place: Any = 0
    last = op.start + (op.view.type.shape[op.dim] - 1) * op.step
    for piece in maker.sources:
        size = piece.type.shape[op.dim]
        if op.start == place and piece.type is op.view.type and op.step == 1:
            rw.replace(op, [piece])
            return True
        known = all(isinstance(d, int) for d in (place, size, op.start, last))
        if known and place <= op.start <= last < place + size:
            part = rw.builder.value(
                shapes.Slice, piece, dim=op.dim, start=op.start - place, step=op.step,
                result_types=op.view.type,
            )  # fmt: skip
            rw.replace(op, [part])
            return True
        place = place + size
    return rw.no_match("it lies in more than one piece")


# exp(x - max(x)), of rows or of all -> exp {nonpositive}
@canonicalization(pointwise.Exp, name="graph.nonpositive_exp")
def nonpositive_exp(op: Any, rw: Any) -> Any:
    difference = op.x.defining_op
    if op.nonpositive or not isinstance(difference, pointwise.Sub):
        return rw.no_match("it is flagged already, or of no difference")
    spread = difference.rhs.defining_op
    largest = spread.source.defining_op if isinstance(spread, shapes.Broadcast) else None
    if not isinstance(largest, indexing.Reduce) or largest.combiner != "max":
        return rw.no_match("what is subtracted is no maximum")
    if largest.source is not difference.lhs or not largest.keepdim:
        return rw.no_match("what is subtracted is no maximum of the rows")
    if list(spread.dims) != list(range(op.value.type.rank)):
        return rw.no_match("the maximum is of other rows")
    flags = {"nonpositive": True, "result_types": op.value.type}
    rw.replace(op, [rw.builder.value(pointwise.Exp, op.x, **flags)])
    return True


EXACT_BITS: dict[Type, int] = {f16: 11, bf16: 8, f32: 24, f64: 53}


def widens(source: Type, target: Type) -> bool:
    """Whether every value of `source` is a value of `target`."""
    if source is target:
        return True
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if source is i1:
            return True
        if source.unsigned:
            return target.width > source.width
        return not target.unsigned and target.width >= source.width
    if isinstance(source, IntegerType) and target in EXACT_BITS:
        bits = 1 if source is i1 else source.width
        return bits <= EXACT_BITS[target]
    exact = {(f16, f32), (f16, f64), (bf16, f32), (bf16, f64), (f32, f64)}
    return (source, target) in exact


# cast(full) -> full
@canonicalization(pointwise.Cast, name="graph.cast_of_full")
def cast_of_full(op: pointwise.Cast, rw: Any) -> Any:
    inner = op.x.defining_op
    if isinstance(inner, ops.Full) and inner.attributes.get("value") is not None:
        return _cast_full(op, inner, rw)
    return rw.no_match("the source is no number in every element")


def _cast_full(op: pointwise.Cast, full: ops.Full, rw: Any) -> Any:
    from irc.dialects.arith.folds import round_float  # which no other rule needs

    value = full.attributes["value"].value  # type: ignore[attr-defined]
    target = op.value.type.element
    source = op.x.type.element
    if isinstance(target, FloatType):
        try:
            exact = float(value)
            if abs(value) > 1 << 53 and not isinstance(source, FloatType):
                return rw.no_match("the integer rounds twice")
            number: Any = round_float(exact, target)
        except ValueError:
            return rw.no_match("no rounding to this type here")
    elif target is i1:
        number = value != 0
    elif isinstance(source, IntegerType) and isinstance(target, IntegerType):
        number = int(value) & ((1 << target.width) - 1)
        if not target.unsigned and number >> (target.width - 1):
            number -= 1 << target.width
    elif isinstance(target, IntegerType) and math.isfinite(value) and abs(value) < 2**31:
        number = int(value)
        low = 0 if target.unsigned else -(1 << (target.width - 1))
        if not low <= number < 1 << (target.width - (not target.unsigned)):
            return rw.no_match("out of range")
    else:
        return rw.no_match("out of range")
    attr = pointwise.scalar_attribute(number, target)
    rw.replace(op, rw.builder.value(ops.Full, None, value=attr, result_types=op.value.type))
    return True
