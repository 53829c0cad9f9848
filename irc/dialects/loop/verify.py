"""What well-formed `loop.compute`, `loop.group`, `loop.read` are, beyond operand types.

Sizes are compared by identity: what isn't the same expression isn't known to be equal.
"""

from __future__ import annotations

from typing import Any

from irc.dialects.loop.ops import ComputeOp, GroupOp, LoopCarried, ReadOp, ResultAttr, YieldOp
from irc.dialects.loop.verify_bounds import verify_read_bounds, verify_scatter_bounds
from irc.dialects.sym.ranges import WHEN
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.hooks import verifies
from irc.ir.symbols import Dim, symbol
from irc.ir.types import FloatType, IndexType, IntegerType, TensorType


@verifies(ComputeOp)
def verify_compute(op: ComputeOp) -> None:
    """Axes, outputs and results of a compute. Raises InvalidIR."""
    axes, outputs = op.axis_list, op.output_list
    names = [axis.name for axis in axes]
    if len(set(names)) != len(names):
        raise InvalidIR(f"two axes have one name: {', '.join(names)}", op=op)
    if sum(axis.kind == "scan" for axis in axes) > 1:
        raise InvalidIR("has more than one scan axis", op=op)
    terminator = op.yield_op
    values = terminator.values
    if len(values) != len(outputs):
        raise InvalidIR(f"yields {len(values)} values for {len(outputs)} outputs", op=op)
    if len(op.results) != sum(output.result_count for output in outputs):
        raise InvalidIR(f"has {len(op.results)} results, which its outputs don't give", op=op)
    scatters = [output for output in outputs if output.kind == "scatter"]
    if len(op.inits) != len(scatters):
        raise InvalidIR(f"has {len(op.inits)} inits for {len(scatters)} scatters", op=op)
    if len(terminator.masks) not in (0, len(scatters)):
        raise InvalidIR(f"{len(terminator.masks)} masks for {len(scatters)} scatters", op=op)
    for number, (output, value) in enumerate(zip(outputs, values, strict=True)):
        _verify_yielded(op, output, value)
        shape = _shape(op, output)
        for result in op.results_of(number):
            if shape is not None and result.type.shape != shape:  # type: ignore[attr-defined]
                want = ", ".join(map(str, shape))
                text = f"output {number} is {result.type}, but its axes give [{want}]"
                raise InvalidIR(text, op=op)
    for init, result in zip(op.inits, _scattered(op), strict=True):
        if init.type.shape != result.type.shape:  # type: ignore[attr-defined]
            raise InvalidIR(f"scatters {init.type} into {result.type}", op=op)
    for output, init in zip(scatters, op.inits, strict=True):
        array: Any = init.type
        if output.indices is not None and len(output.index_dims) == array.rank:
            verify_scatter_bounds(op, output.index_dims, array)


def _verify_accumulator(op: ComputeOp, output: ResultAttr) -> None:
    """The type in which values are combined has what the combiner does."""
    kinds: tuple[type, ...] = FloatType, IntegerType
    if output.combiner in ("any", "all", "xor", "sort"):
        kinds = (IntegerType,)
    elif output.combiner in ("moments", "logsumexp"):
        kinds = (FloatType,)
    if not isinstance(output.accumulator, kinds):
        raise InvalidIR(f"'{output.combiner}' of {output.accumulator}: there is none", op=op)


def _shape(op: ComputeOp, output: ResultAttr) -> tuple[Dim, ...] | None:
    """The sizes of an output's results; None for a scatter, whose init says them."""
    if output.kind == "scatter":
        return None
    reduced = output.kind == "reduce"
    return tuple(a.extent for a in op.axis_list if not (reduced and a.kind == "red"))


def _scattered(op: ComputeOp) -> list[Value]:
    outputs = enumerate(op.output_list)
    return [op.results_of(k)[0] for k, output in outputs if output.kind == "scatter"]


def _verify_yielded(op: ComputeOp, output: ResultAttr, value: Value) -> None:
    if isinstance(value.type, TensorType):
        raise InvalidIR("yields an array where a scalar belongs", op=op)
    if output.kind == "map":
        return
    if output.kind == "scatter":
        if output.indices is None:
            raise InvalidIR("a scatter without indices", op=op)
        return
    if output.accumulator is None:
        raise InvalidIR(f"a {output.kind} without the type it accumulates in", op=op)
    _verify_accumulator(op, output)
    if output.kind == "scan" and not any(axis.kind == "scan" for axis in op.axis_list):
        raise InvalidIR("a scan without a scan axis", op=op)


@verifies(GroupOp)
def verify_group(op: GroupOp) -> None:
    """Members, shared axes and what is stored of a group. Raises InvalidIR."""
    shared = op.axis_list
    if any(axis.kind != "par" for axis in shared):
        raise InvalidIR("shares an axis that is not par", op=op)
    leading = tuple(symbol(axis.name) for axis in shared)
    terminator = op.yield_op
    for member in op.block.ops:
        if member is terminator:
            continue
        if not isinstance(member, ComputeOp | GroupOp):
            raise InvalidIR(f"holds '{member.name}', which is neither compute nor group", op=op)
        if WHEN in member.attributes:
            raise InvalidIR(f"a member runs where its group does: '{WHEN}' stands there", op=member)
        if isinstance(member, ComputeOp):
            if any(o.kind == "scatter" and o.combiner != "set" for o in member.output_list):
                raise InvalidIR("a scatter that combines can't be a member of a group", op=member)
            if op.is_once(member):
                _verify_once(member)
                continue
            if member.axis_list[: len(shared)] != shared:
                text = "a member's axes do not start with the shared ones, nor has it none of them"
                raise InvalidIR(text, op=member)
            _verify_inner_reads(op, member, leading)
    if op.operands or op.block.arguments:
        _verify_walk(op)
        return
    if len(terminator.values) != len(op.results):
        text = f"stores {len(terminator.values)} arrays for {len(op.results)} results"
        raise InvalidIR(text, op=op)
    for value, result in zip(terminator.values, op.results, strict=True):
        maker = value.defining_op
        if maker is None or maker.parent_op is not op:
            raise InvalidIR("stores an array that was not made in it", op=op)
        if value.type is not result.type:
            raise InvalidIR(f"stores {value.type} as {result.type}", op=op)
        if op.is_once(maker):
            raise InvalidIR("stores an array that is computed once, for its members", op=op)


def _verify_walk(op: GroupOp) -> None:
    """A group that is walked along its last axis. Raises InvalidIR."""
    around, count = op.parent_op, len(op.block.arguments)
    if not isinstance(around, GroupOp) or around.axis_list != op.axis_list[:-1]:
        text = "walks along an axis, and is in no group that has all of its axes but the last one"
        raise InvalidIR(text, op=op)
    if {len(op.results), len(op.yield_op.values)} != {count} or count not in (
        len(op.operands), len(op.operands) - 1
    ):  # fmt: skip
        text = (f"carries {count} arrays, has {len(op.operands)} operands, yields "
                f"{len(op.yield_op.values)} and gives {len(op.results)}")  # fmt: skip
        raise InvalidIR(text, op=op)
    outer, step = tuple(a.extent for a in around.axis_list), op.axis_list[-1]
    for each in op.carried:
        type_ = each.init.type
        assert isinstance(type_, TensorType)
        if each.argument.type is not type_ or each.result.type is not type_:
            text = f"carries {type_} as {each.argument.type} and gives {each.result.type}"
            raise InvalidIR(text, op=op)
        shape = (*outer, step.extent, *type_.shape[len(outer) :])
        following: Any = each.following.type
        if type_.shape[: len(outer)] != outer or (following.shape, following.element) != (
            shape, type_.element
        ):  # fmt: skip
            raise InvalidIR(f"yields {following} for {type_}, which is carried", op=op)
        _verify_carried(op, each)
    limit: Any = None if op.limit is None else op.limit.type
    if limit is not None and (
        limit.shape != outer or not isinstance(limit.element, IntegerType)
    ):  # fmt: skip
        raise InvalidIR(f"its limit is {limit}, no integers over the axes around it", op=op)
    for value in op.operands:
        maker = value.defining_op
        lone = value is op.limit or len(list(value.users)) == 1
        if maker is None or maker.parent_op is not around or not lone:
            text = "what a walk begins with, or its limit, is not made beside it, for it alone"
            raise InvalidIR(text, op=op)


def _verify_carried(op: GroupOp, each: LoopCarried) -> None:
    """What is carried is made in the group; from where it is made on nothing reads what it was,
    but the maker at its own point. Raises InvalidIR."""
    maker = each.following.defining_op
    if not isinstance(maker, ComputeOp) or maker.parent_op is not op:
        raise InvalidIR("yields an array that no compute of its own makes", op=op)
    own = tuple(symbol(axis.name) for axis in maker.axis_list)
    steps = len(op.axis_list)
    here = (*own[: steps - 1], *own[steps:])
    for user in each.argument.users:
        if not isinstance(user, ReadOp):
            raise InvalidIR("what a walk carries is used by no read", op=user)
        if tuple(user.indices)[: steps - 1] != own[: steps - 1]:
            text = "reads what a walk carries at another point of the shared axes"
            raise InvalidIR(text, op=user)
        reader: Any = user.parent_op
        while reader is not None and reader.parent_op is not op:
            reader = reader.parent_op
        if reader is maker and is_map_of(maker, each.following) and tuple(user.indices) == here:
            continue
        if reader is None or not reader.is_before_in_block(maker):
            text = "reads what a walk carries where it was replaced for the next step"
            raise InvalidIR(text, op=user)


def is_map_of(maker: ComputeOp, value: Value) -> bool:
    """Whether a result of a compute has an element for each point of all axes."""
    number = next(n for n, _ in enumerate(maker.output_list) if value in maker.results_of(n))
    return maker.output_list[number].kind == "map" and all(
        axis.kind == "par" for axis in maker.axis_list)  # fmt: skip


def _verify_once(member: ComputeOp) -> None:
    """A member that is computed once, before the points of the shared axes."""
    if any(o.kind != "map" for o in member.output_list):
        raise InvalidIR("what is computed once is a map", op=member)
    if not all(isinstance(axis.extent, int) for axis in member.axis_list):
        raise InvalidIR("what is computed once has a size that is known", op=member)
    for read in member.reads:
        maker: Operation | None = read.source.defining_op
        outer = None if maker is None else maker.parent_op
        if maker is not None and isinstance(outer, GroupOp) and not outer.is_once(maker):
            text = "what is computed once reads what is computed at each point of shared axes"
            raise InvalidIR(text, op=read)


def _verify_inner_reads(group: GroupOp, member: ComputeOp, leading: tuple[Dim, ...]) -> None:
    for read in member.reads:
        maker: Operation | None = read.source.defining_op
        if maker is not None and maker.parent_op is group and not group.is_once(maker):
            indices = tuple(read.indices)
            if indices[: len(leading)] != leading:
                text = "reads another member's result at another point of the shared axes"
                raise InvalidIR(text, op=read)


@verifies(ReadOp)
def verify_read(op: ReadOp) -> None:
    """The indices and the mask of a read. Raises InvalidIR."""
    source = op.operands[0].type
    assert isinstance(source, TensorType)
    indices, mask = tuple(op.indices), op.mask
    if len(indices) != source.rank:
        text = f"has {len(indices)} indices for an array of rank {source.rank}"
        raise InvalidIR(text, op=op)
    if mask is None:
        if op.other is not None:
            raise InvalidIR("has an 'other' and no mask", op=op)
        verify_read_bounds(op, indices, source)
        return
    if mask.type.width != 1:  # type: ignore[attr-defined]
        raise InvalidIR(f"its mask is {mask.type}, not i1", op=op)
    if op.other is not None and op.other.type is not op.value.type:
        raise InvalidIR(f"'other' is {op.other.type}, the element {op.value.type}", op=op)


@verifies(YieldOp)
def verify_yield(op: YieldOp) -> None:
    """The index operands of a yield. Raises InvalidIR."""
    for extra in op.extra:
        if not isinstance(extra.type, IndexType | IntegerType):
            raise InvalidIR(f"scatters at an index of type {extra.type}", op=op)
