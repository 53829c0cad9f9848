"""The remarks of the pass `form-kernels`: along which axis vectors run, what is gathered, and why
an output can't take the memory of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from irc.analysis.loop import computes_in
from irc.dialects import kernel, loop
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, symbol
from irc.passes.kernel.cpu.plan import lane_stride, linear, strides_of
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule
from irc.passes.kernel.cpu.sharing import memory_of

Remark = tuple[Operation, str]


def remarks_about(
    op: Operation, inputs: Sequence[Value], callee: kernel.KernelFuncOp
) -> Iterator[Remark]:
    """What there is to say of the kernel `callee` of a scheduled compute or group that reads the
    arrays `inputs` (the first pointers of the kernel)."""
    if not callee.is_gpu:
        gathered, operands = _gathered(inputs, callee), set(inputs)
        for compute in computes_in(op):
            schedule = _schedule_of(compute, op)
            if schedule.has("lanes") and schedule.vector_axis and schedule.lanes > 1:
                yield compute, _vectors(compute, schedule, operands)
                yield from _gathers(compute, schedule, gathered)
    yield from _apart(op, inputs, callee)


def _schedule_of(compute: loop.ComputeOp, op: Operation) -> CpuSchedule:
    """The schedule that says which vectors a compute runs along: its own, or its group's."""
    shared = read_schedule(op.attributes.get("schedule"), op)
    once = isinstance(op, loop.GroupOp) and op.is_once(compute)
    if once or not shared.has("vector_axis") or not shared.vector_axis:
        return read_schedule(compute.schedule, compute)
    return shared


# -- vectors


def _vectors(compute: loop.ComputeOp, schedule: CpuSchedule, inputs: set[Value]) -> str:
    axis = str(schedule.vector_axis)
    kinds: Counter[str] = Counter()
    for read in compute.reads:
        if read.source in inputs:
            kinds[_kind(_read_stride(read, axis, schedule.lanes))] += 1
    for stride in _write_strides(compute, axis, schedule.lanes):
        kinds[_kind(stride)] += 1
    parts = ", ".join(f"{count} {way}" for way, count in kinds.items())
    return f"runs along {axis} in vectors of {schedule.lanes}; its reads and writes: {parts}"


def _read_stride(read: loop.ReadOp, axis: str, lanes: int) -> Dim | None:
    """The step of a read from lane to lane; None where there is none."""
    place = linear(tuple(read.indices), strides_of(read.source.type))
    return None if read.positions else lane_stride(place, axis, lanes)


def _write_strides(compute: loop.ComputeOp, axis: str, lanes: int) -> Iterator[Dim | None]:
    for number, output in enumerate(compute.output_list):
        if output.kind == "scatter":
            yield None
            continue
        kept = [a for a in compute.axis_list if output.kind != "reduce" or a.kind != "red"]
        names = [symbol(a.name) for a in kept]
        for result in compute.results_of(number):
            yield lane_stride(linear(names, strides_of(result.type)), axis, lanes)


def _kind(stride: Dim | None) -> str:
    if stride is None:
        return "indirect"
    names: dict[Dim, str] = {0: "uniform", 1: "contiguous"}
    return names.get(stride, "strided")


# -- gathers


def _gathered(inputs: Sequence[Value], callee: kernel.KernelFuncOp) -> set[Value]:
    """The inputs that the kernel gathers from, lane by lane."""
    arguments = callee.block.arguments
    bases = {inner.pointer for inner in callee.walk() if isinstance(inner, kernel.GatherOp)}
    return {value for value, argument in zip(inputs, arguments, strict=False) if argument in bases}


def _gathers(
    compute: loop.ComputeOp, schedule: CpuSchedule, gathered: set[Value]
) -> Iterator[Remark]:
    axis = str(schedule.vector_axis)
    told: set[Value] = set()
    for read in compute.reads:
        if read.source not in gathered or read.source in told:
            continue
        stride = _read_stride(read, axis, schedule.lanes)
        if stride in (0, 1):
            continue
        told.add(read.source)
        if read.positions:
            reason = "its index is read from an array"
        elif stride is None:
            place = ", ".join(map(str, read.indices))
            reason = f"the index [{place}] takes no even steps along {axis}"
        else:
            reason = f"its elements are {stride} apart along {axis}"
        yield compute, f"gathers {read.source.described} lane by lane: {reason}"


# -- memory that input and output may not share


def _apart(op: Operation, inputs: Sequence[Value], callee: kernel.KernelFuncOp) -> Iterator[Remark]:
    """Why no input's memory can take a result, where one has just its sizes and strides."""
    flat = callee.inplace or ()
    shared = set(flat[1::2])
    alike: dict[object, Value] = {}
    for value in inputs:
        alike.setdefault(memory_of(value.type), value)
    elsewhere = _read_elsewhere(op)
    for number, result in enumerate(op.results):
        if len(inputs) + number in shared:
            continue
        source = alike.get(memory_of(result.type))
        if source is not None:
            if source in elsewhere:
                reason = f"it is read at [{elsewhere[source]}], not at the point that is written"
            else:
                reason = _why_apart(op, number)
            yield op, f"result {number} can't be in the memory of {source.described}: {reason}"


def _read_elsewhere(op: Operation) -> dict[Value, str]:
    """The arrays that are read at other points than that which a compute is at: where, first."""
    places: dict[Value, str] = {}
    for compute in computes_in(op):
        axes = tuple(symbol(a.name) for a in compute.axis_list)
        for read in compute.reads:
            if tuple(read.indices) != axes and read.source not in places:
                places[read.source] = ", ".join(map(str, read.indices))
    return places


def _why_apart(op: Operation, number: int) -> str:
    value: Value = op.results[number]
    if isinstance(op, loop.GroupOp):
        value = op.yield_op.values[number]
    maker = value.defining_op
    assert isinstance(maker, loop.ComputeOp)
    for position, output in enumerate(maker.output_list):
        if value in maker.results_of(position) and output.kind in ("reduce", "scatter"):
            return f"the result is that of a {output.kind}"
    return "what is written comes before the last read of it"
