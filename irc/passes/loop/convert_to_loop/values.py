"""Constants, and what is computed of each element."""

from __future__ import annotations

from irc.dialects import arith, graph, loop
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.rewrite.conversion import decline
from irc.ir.symbols import Dim
from irc.ir.types import (
    IndexType,
    IntegerType,
    TensorType,
    i64,
)
from irc.passes.common.bodies import Body
from irc.passes.loop.convert_to_loop.scalar_semantics import POINTWISE, RAISES_ON_ZERO, cast
from irc.passes.loop.convert_to_loop.support import (
    ComputeBuilder,
    constant_scalar,
    converts,
    element_of,
    symbolic_value,
)


@converts(graph.Constant)
def _constant(c: ComputeBuilder, op: graph.Constant) -> None:
    element = c.type.element
    number = constant_scalar(op.attributes["value"], element)
    c.emit_map(lambda body, at: body.constant(number, loop.signless(element)))


@converts(graph.Full)
def _full(c: ComputeBuilder, op: graph.Full) -> None:
    element = c.type.element
    if not op.operands:
        number = op.attributes["value"].value  # type: ignore[attr-defined]
        c.emit_map(lambda body, at: body.constant(number, loop.signless(element)))
        return
    scalar = op.operands[0]
    if _from_symbols(c, scalar):
        return
    held = c.builder.value(
        graph.FromScalar, scalar, result_types=scalar_tensor(scalar.type, c.type.device)
    )
    c.emit_map(lambda body, at: cast(body, body.read(held, ()), element_of(held), element))


@converts(graph.FromScalar)
def _from_scalar(c: ComputeBuilder, op: graph.FromScalar) -> None:
    is_known = _from_symbols(c, op.operands[0])
    assert is_known, "convert-to-loop keeps any other"


def _from_symbols(c: ComputeBuilder, scalar: Value) -> bool:
    known, element = symbolic_value(scalar), c.type.element
    if known is None:
        return False

    def from_symbol(body: Body, at: tuple[Dim, ...]) -> Value:
        value = body.op("arith.index_cast", body.index(known), type=i64)
        return cast(body, value, i64, element)

    c.emit_map(from_symbol)
    return True


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


@converts(graph.Philox)
def _philox(c: ComputeBuilder, op: graph.Philox) -> None:
    """Places are divided by operations, not in index expressions: no axis is to be split for it."""
    many = _may_turn_twice(c.type, op.vector, op.threads)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        place: Dim = 0
        for position, stride in zip(at, op.strides, strict=True):
            place = place + position * stride
        within = body.index(place)
        vector, threads = body.index(op.vector), body.index(op.threads)
        number = body.op("arith.remui", within, vector)
        turn = body.op("arith.divui", within, vector)
        if many:
            numbers = body.index(op.numbers)
            drawn = body.op("arith.muli", body.op("arith.divui", turn, threads), numbers)
            number = body.op("arith.addi", drawn, number)
            turn = body.op("arith.remui", turn, threads)
        seed, offset = (body.read(op.state, (word,)) for word in (graph.SEED, graph.OFFSET))
        if op.base:
            offset = body.op("arith.addi", offset, body.constant(op.base, i64))
        number = body.op("arith.addi", offset, body.op("arith.index_cast", number, type=i64))
        return body.op(
            "math.philox", seed, body.op("arith.index_cast", turn, type=i64), number
        )

    c.emit_map(value_of)


def _may_turn_twice(type_: TensorType, vector: int, threads: Dim) -> bool:
    """Whether threads may have a second turn."""
    count: Dim = 1
    for size in type_.shape:
        count = count * size
    turns = threads * vector
    return not isinstance(count, int) or not isinstance(turns, int) or count > turns


@converts(graph.PointwiseOp)
def _pointwise(c: ComputeBuilder, op: graph.PointwiseOp) -> None:
    element = element_of(op.operands[0])
    function = POINTWISE.get(op.function)
    if function is None:
        decline(f"there is no scalar code for '{op.function}'")
    if op.function in RAISES_ON_ZERO and isinstance(element, IntegerType):
        _check_divisor(c, op.operands[1])
    declared = {k: v for k, v in op.attributes.items() if k in op.attribute_fields}

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        return function(body, element, *[body.read(v, at) for v in op.operands], **declared)

    c.emit_map(value_of)


def _check_divisor(c: ComputeBuilder, divisor: Value) -> None:
    """An assertion that no element of an integer divisor is 0, unless it is a constant."""
    maker = divisor.defining_op
    if isinstance(maker, loop.ComputeOp):
        yielded = maker.yield_op.operands[0].defining_op
        while isinstance(yielded, loop.ReadOp) and isinstance(
            yielded.source.defining_op, loop.ComputeOp
        ):
            yielded = yielded.source.defining_op.yield_op.operands[0].defining_op
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
        condition, yes, no = (body.read(v, at) for v in op.operands)
        return body.select(condition, yes, no)

    c.emit_map(value_of)


@converts(graph.Cast)
def _cast(c: ComputeBuilder, op: graph.Cast) -> None:
    source, target = element_of(op.operands[0]), c.type.element
    c.emit_map(lambda body, at: cast(body, body.read(op.operands[0], at), source, target))


@converts(graph.Bitcast)
def _bitcast(c: ComputeBuilder, op: graph.Bitcast) -> None:
    target = loop.signless(c.type.element)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        value = body.read(op.operands[0], at)
        return value if value.type is target else body.op("arith.bitcast", value, type=target)

    c.emit_map(value_of)
