"""Where the arrays of a kernel for a cpu live, and how its accesses move along the axes.

The second step of a plan: shared axes whose points may be computed in any order, members each with
axes of its own, and storage for every array. Every read, store and index value is one linear
expression over axes and symbols, so strides, collapsible axes and contiguity are questions about
expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from irc.dialects import loop
from irc.dialects.loop.schedule import SCRATCH_BYTES
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Expr,
    FloorQuotient,
    Mod,
    Product,
    Sum,
    Symbol,
    coefficient,
    dim_product,
    dim_sum,
    free_symbols,
    known_divisor,
    minimum,
    substitute,
    symbol,
    terms_of,
)
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.kernel.plan.plan import Plan
from irc.passes.kernel.plan.updates import (
    copy_of,
    is_undefined,
    may_be_one_memory,
    scatters_of,
    scatters_of_group,
    writes_apart,
)

SET_APART = 16
"""Private parts have multiples of so many elements, so that vectors begin where lines do."""
PARTS_APART = 17
"""Lines more that a private part of a page or more has: parts of several arrays, of powers of two,
else lie at places that a processor takes for each other (a Zen 3, in streamed attention, then took
several times as long)."""
PAGE_LINES = 64
"""Lines of a page of 4096 bytes."""
REGISTERS = ("register", "sums")
"""The kinds of storage that are no memory."""
FIRST_POINT = "_first_point"
"""The symbol that stands for a call's first point of the parallel space."""


@attrs.define(eq=False)
class Axis:
    """An axis of a plan; collapsing lets one stand for several of the compute's."""

    name: str
    kind: str
    extent: Dim


@attrs.define(eq=False)
class Storage:
    """Where an array lives: `argument` (memory of the kernel's caller), `scratch` (one point's
    part of a local, on the stack), `private` (one point's part of a local, in memory of the
    kernel's own, where a call has that of its first point), `register` (a scalar per point),
    `sums` (a register for each point of a tile, which maps beside the sums read) or `table` (what
    is computed once, whole on the stack).

    `strides`: of the dimensions from `skip` on, in elements. `count`: the elements of a part.
    """

    kind: str
    value: Value
    strides: tuple[Dim, ...]
    skip: int = 0
    count: int = 0

    def offset(self, index: Sequence[Dim]) -> Dim:
        """Where the element at an index lies."""
        begin = symbol(FIRST_POINT) * self.count if self.kind == "private" else 0
        return linear(index[self.skip :], self.strides) + begin

    def keep_in_registers(self) -> None:
        """Have a register for each point of a tile, and no memory."""
        self.kind = "sums"

    @property
    def element(self) -> Type:
        """The element type in memory, signless."""
        return loop.signless(self.value.type.element)  # type: ignore[attr-defined]


@attrs.define(eq=False)
class Access:
    """One linear expression: the element offset of a read or store, or an index value.

    `positions`: the operands that renamed placeholders stand for.
    """

    expression: Dim
    storage: Storage | None
    positions: dict[str, Value]
    is_store: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of the element accessed; 0 for an index value."""
        if self.storage is None or self.storage.kind in REGISTERS:
            return 0
        return element_bytes(self.storage.element)


@attrs.define(eq=False)
class CpuMember:
    """A compute inside a plan: its own axes, and an access for each read, index and result."""

    compute: loop.ComputeOp
    own: list[Axis]
    reads: dict[Operation, Access]
    stores: dict[Value, list[Access]]
    positions: list[Access]

    def accesses(self) -> Iterable[Access]:
        """Every access of the member."""
        yield from self.reads.values()
        for group in self.stores.values():
            yield from group
        yield from self.positions

    @property
    def red_axes(self) -> list[Axis]:
        """The axes that are combined over, in order."""
        return [a for a in self.own if a.kind == "red"]


@attrs.define(eq=False)
class CpuPlan:
    """A kernel to be: `inputs` are read, `outputs` (results of `op`, then temporaries) written.
    `once`: what each call computes before its first point, in order.

    initialized: pairs (input, output) of which the output holds the input's elements already;
    updates: those of them that may be one memory. parts: of memory of the kernel's own, most that
    there are, as no more threads take its points; 0: one for each point.
    """

    op: Operation
    shared: list[Axis]
    members: list[CpuMember]
    inputs: list[Value]
    outputs: list[Value]
    storage: dict[Value, Storage]
    results: dict[Value, list[Value]]
    initialized: list[tuple[Value, Value]] = attrs.field(factory=list)
    updates: list[tuple[Value, Value]] = attrs.field(factory=list)
    once: list[CpuMember] = attrs.field(factory=list)
    parts: int = 0

    def parts_of(self, points: Dim) -> Dim:
        """How many parts memory of the kernel's own has."""
        return minimum(points, self.parts) if self.parts else points

    def memory_type(self, output: Value) -> TensorType:
        """The type of an output's memory: its own, or parts of which a call has one."""
        place, type_ = self.storage.get(output), output.type
        assert isinstance(type_, TensorType)
        if place is None or place.kind != "private":
            return type_
        points = dim_product([axis.extent for axis in self.shared])
        sizes = (self.parts_of(points), place.count)
        return TensorType(sizes, type_.element, contiguous_strides(sizes), type_.device)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch for one point of the shared axes."""
        return self._bytes("scratch")

    @property
    def table_bytes(self) -> int:
        """Bytes of what is computed once."""
        return self._bytes("table")

    def _bytes(self, kind: str) -> int:
        # What a walk carries has a place for each of its values, which are one memory.
        places = {p.value: p for p in self.storage.values() if p.kind == kind}.values()
        return sum(p.count * element_bytes(p.element) for p in places)

    @property
    def everybody(self) -> list[CpuMember]:
        """What is computed once, then the members of the shared axes."""
        return [*self.once, *self.members]

    def axes(self) -> Iterable[Axis]:
        """Every axis, shared ones first."""
        yield from self.shared
        for member in self.everybody:
            yield from member.own


# -- building


def plan_for_cpu(
    flat: Plan, copying: bool = False, scratch: int = SCRATCH_BYTES, private: bool = False,
    parts: int = 0,
) -> CpuPlan:  # fmt: skip
    """The plan of a kernel for a cpu. Raises InvalidIR.

    copying: arrays that a scatter starts from are copied first; else the outputs hold them already.
    scratch: bytes that what members hand on takes on the stack. private: where that is more, a call
    has memory of its own for one point; else the program has an array of all points. parts: of
    such memory, at most (0: one for each point).
    """
    plan = _Placer(flat, copying, scratch, private).run()
    plan.parts = parts
    return plan


class _Placer:
    """Gives the arrays of a plan storage and its accesses expressions."""

    def __init__(self, flat: Plan, copying: bool, scratch: int, private: bool) -> None:
        self.flat, self.scratch, self.private = flat, scratch, private
        op, axes = flat.op, flat.axes
        self.computes = [member.compute for member in flat.members]
        self.plan = CpuPlan(op, [], [], list(flat.inputs), [], {}, {})
        for result, value in flat.outputs:
            self._output(value, result)
        for value in flat.inputs:
            self.plan.storage[value] = Storage("argument", value, strides_of(value.type))
        if isinstance(op, loop.ComputeOp):
            free = independent_axes(op, not copying)
            axes = [a for a in op.axis_list if a.name in free]
            self._start_scatters(op, copying, free)
        else:
            for init, result in scatters_of_group(self.computes, self.plan.storage):
                self.plan.storage[init] = self.plan.storage[result]
        self.plan.shared = [_axis(a) for a in axes]
        self.renamed = 0

    def run(self) -> CpuPlan:
        """The plan."""
        self._place_tables()
        self._place_locals()
        self.plan.once += [self._member(compute) for compute in self.flat.once]
        self.plan.members += [self._member(compute) for compute in self.computes]
        return self.plan

    def _start_scatters(self, op: loop.ComputeOp, copying: bool, free: set[str]) -> None:
        """Copies of what a lone compute's scatters start from, or that their results hold it."""
        copies = []
        for number, init in scatters_of(op):
            (result,) = op.results_of(number)
            if is_undefined(init):
                continue
            if copying:
                copy = copy_of(op, number, init, free)
                self.plan.storage[copy.results[0]] = self.plan.storage[result]
                copies.append(copy)
                continue
            self.plan.initialized.append((init, result))
            if may_be_one_memory(op, number, init):
                self.plan.updates.append((init, result))
        self.computes = [*copies, op]

    def _output(self, value: Value, result: Value) -> None:
        """`value` (of a member) is what the top-level `result` holds."""
        plan = self.plan
        plan.results.setdefault(value, []).append(result)
        plan.outputs.append(result)
        if value not in plan.storage:
            type_ = result.type
            plan.storage[value] = Storage("argument", result, strides_of(type_))

    def _place_tables(self) -> None:
        """Room on the stack for all of what is computed once. Raises InvalidIR for too much."""
        plan = self.plan
        for compute in self.flat.once:
            for result in compute.results:
                sizes = result.type.shape  # type: ignore[attr-defined]
                count = dim_product(sizes)
                assert isinstance(count, int)
                strides = contiguous_strides(sizes)
                plan.storage[result] = Storage("table", result, strides, 0, count)
        if plan.table_bytes > self.scratch:
            text = f"{plan.table_bytes} bytes are computed once, over its scratch of {self.scratch}"
            raise InvalidIR(text, op=plan.op)

    def _place_locals(self) -> None:
        plan, shared = self.plan, len(self.plan.shared)
        room = self.scratch - plan.scratch_bytes - plan.table_bytes
        carried = {each.following: each for each in self.flat.carried}
        for compute in self.computes:
            for result in compute.results:
                if result in plan.storage:
                    continue
                if result in carried:
                    plan.storage[result] = self._carried(carried[result])
                    continue
                inside = inner_groups(compute, plan.op)
                skip = len(inside[-1].axis_list) if inside else shared
                plan.storage[result] = place = local_storage(result, skip, room, self.private)
                if place.kind == "scratch":
                    room -= place.count * element_bytes(place.element)
                elif place.kind in ("argument", "private"):
                    plan.outputs.append(result)

    def _carried(self, each: loop.LoopCarried) -> Storage:
        """Where a walk puts what it carries to its next step: where the last one found it. Raises
        InvalidIR."""
        place = self.plan.storage[self.flat.alias.get(each.init, each.init)]
        skip = place.skip + 1
        if place.kind not in ("private", "scratch") or (
            strides_of(each.following.type)[skip:] != place.strides
        ):  # fmt: skip
            text = "what a walk carries lies otherwise behind a step, or is no memory"
            raise InvalidIR(text, op=each.following.defining_op)
        return Storage(place.kind, place.value, place.strides, skip, place.count)

    def _member(self, op: loop.ComputeOp) -> CpuMember:
        taken = {a.name for a in self.plan.shared}
        own = [_axis(a) for a in op.axis_list if a.name not in taken]
        reads: dict[Operation, Access] = {}
        for inner in op.block.ops:
            if isinstance(inner, loop.ReadOp):
                reads[inner] = self._read(inner)
            elif isinstance(inner, loop.IndexOp):
                (dim,), positions = self._rename((inner.expression,), inner.positions)
                reads[inner] = Access(dim, None, positions)
        member = CpuMember(op, own, reads, {}, [])
        self._stores(member)
        return member

    def _rename(
        self, dims: Sequence[Dim], operands: Sequence[Value]
    ) -> tuple[list[Dim], dict[str, Value]]:
        """Index expressions with placeholders made unique, and what those stand for."""
        if not operands:
            return list(dims), {}
        mapping: dict[str, Dim] = {}
        positions: dict[str, Value] = {}
        for number, operand in enumerate(operands):
            name = f"_v{self.renamed}"
            self.renamed += 1
            mapping[loop.placeholder(number)] = symbol(name)
            positions[name] = operand
        return [substitute(d, mapping) for d in dims], positions

    def _read(self, op: loop.ReadOp) -> Access:
        place = self.plan.storage[self.flat.alias.get(op.source, op.source)]
        dims, positions = self._rename(op.indices, op.positions)
        return Access(place.offset(dims), place, positions)

    def _stores(self, member: CpuMember) -> None:
        op, plan = member.compute, self.plan
        axes = [symbol(a.name) for a in op.axis_list]
        kept = [symbol(a.name) for a in op.axis_list if a.kind != "red"]
        extra = list(op.yield_op.extra)
        red = [a for a in op.axis_list if a.kind != "par"]
        for number, output in enumerate(op.output_list):
            if output.kind == "scatter":
                dims, positions = self._scatter_dims(op, output, extra)
            else:
                dims, positions = list(kept if output.kind == "reduce" else axes), {}
            for result in op.results_of(number):
                place = plan.storage[result]
                targets = [place]
                for other in plan.results.get(result, ())[1:]:
                    targets.append(Storage("argument", other, strides_of(other.type)))
                member.stores[result] = [
                    Access(t.offset(dims), t, positions, True) for t in targets
                ]
            if output.combiner in ("argmin", "argmax"):
                extents = [a.extent for a in red]
                names = [symbol(a.name) for a in red]
                member.positions.append(
                    Access(linear(names, contiguous_strides(extents)), None, {})
                )

    def _scatter_dims(
        self, op: loop.ComputeOp, output: loop.ResultAttr, extra: list[Value]
    ) -> tuple[list[Dim], dict[str, Value]]:
        names = {n for d in output.index_dims for n in getattr(d, "symbols", ())}
        numbers = [int(n[1:]) for n in names if n[0] == "_" and n[1:].isdigit()]
        count = max(numbers, default=-1) + 1
        used, extra[:] = extra[:count], extra[count:]
        return self._rename(output.index_dims, used)


def independent_axes(op: loop.ComputeOp, in_place: bool = False) -> set[str]:
    """The par axes whose points may be computed in any order: with scatters, those that are
    themselves an index of each scattered array, over its whole size; all of them where all
    scatters are `in_place` and no two points write one element."""
    numbers = [number for number, _ in scatters_of(op)]
    free = {a.name: a.extent for a in op.axis_list if a.kind == "par"}
    if in_place and all(writes_apart(op, number) for number in numbers):
        return set(free)
    for number in numbers:
        output = op.output_list[number]
        assert output.indices is not None
        shape = op.results_of(number)[0].type.shape  # type: ignore[attr-defined]
        whole = {
            d.name
            for d, size in zip(output.indices, shape, strict=True)
            if isinstance(d, Symbol) and free.get(d.name) == size
        }
        free = {name: extent for name, extent in free.items() if name in whole}
    return set(free)


def _axis(attr: loop.AxisAttr) -> Axis:
    return Axis(attr.name, attr.kind, attr.extent)


def strides_of(type_: Type) -> tuple[Dim, ...]:
    """The strides of a tensor type; row-major where it has none."""
    assert isinstance(type_, TensorType)
    return contiguous_strides(type_.shape) if type_.strides is None else type_.strides


def linear(dims: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """The element offset of an index."""
    return dim_sum([d * s for d, s in zip(dims, strides, strict=True)])


def inner_groups(compute: Operation, top: Operation) -> list[loop.GroupOp]:
    """The groups with a schedule inside `top` that a member is in, outermost first: their members
    are computed at one point of theirs after the other."""
    groups: list[loop.GroupOp] = []
    around = compute.parent_op
    while around is not None and around is not top:
        if isinstance(around, loop.GroupOp) and around.schedule is not None:
            groups.insert(0, around)
        around = around.parent_op
    return groups


def local_storage(value: Value, shared: int, room: int, private: bool = False) -> Storage:
    """Where a value local to one point of `shared` axes lives: a register where it is a scalar
    there, scratch where it is static and fits into `room` bytes, else a temporary array of the
    caller's, of all points or `private` ones."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    sizes = type_.shape[shared:]
    if not sizes:
        return Storage("register", value, (), shared)
    count = dim_product(sizes)
    if isinstance(count, int) and count * element_bytes(type_.element) <= room:
        return Storage("scratch", value, contiguous_strides(sizes), shared, count)
    strides = strides_of(type_)[shared:]
    reach = dim_sum([(n - 1) * step for n, step in zip(sizes, strides, strict=True)])
    if private and isinstance(count, int) and isinstance(reach, int):
        lines = -(-(reach + 1) // SET_APART)
        lines += PARTS_APART if lines >= PAGE_LINES else 0
        return Storage("private", value, strides, shared, lines * SET_APART)
    return Storage("argument", value, strides_of(type_))


# -- how an expression changes from lane to lane


def lane_stride(d: Dim, name: str, lanes: int) -> Dim | None:
    """The step of `d` from one value of axis `name` to the next, constant over `lanes` values
    that start at a multiple of `lanes`; None when there is no such step.

    `x // 64` has step 0 and `x % 64` step 1 over 16 aligned lanes.
    """
    if not isinstance(d, Expr) or name not in d.symbols:
        return 0
    if isinstance(d, Symbol):
        return 1
    if isinstance(d, Sum):
        total: list[Dim] = []
        for monomial, scale in terms_of(d)[0]:
            step = lane_stride(monomial, name, lanes)
            if step is None:
                return None
            total.append(step * scale)
        return dim_sum(total)
    if isinstance(d, Product):
        return _product_stride(d, name, lanes)
    if isinstance(d, FloorQuotient | Mod):
        return _division_stride(d, name, lanes)
    return None


def _product_stride(d: Product, name: str, lanes: int) -> Dim | None:
    varying = [f for f in d.factors if lane_stride(f, name, lanes) != 0]
    if not varying:
        return 0
    if len(varying) > 1:
        return None
    step = lane_stride(varying[0], name, lanes)
    if step is None:
        return None
    rest = list(d.factors)
    rest.remove(varying[0])
    return dim_product(rest) * step


def _division_stride(d: FloorQuotient | Mod, name: str, lanes: int) -> Dim | None:
    above, below = d.arguments
    step = lane_stride(above, name, lanes)
    if isinstance(step, int) and step > 0 and isinstance(below, int):
        # Without `name`, the rest starts at a multiple of the span of all lanes.
        span = step * lanes
        rest = substitute(above, {name: 0})
        affine = coefficient(above, name)
        if affine != step or below % span or known_divisor(rest) % span:
            return None
        return step if isinstance(d, Mod) else 0
    return 0 if step == 0 and name not in free_symbols(below) else None


def is_transposed(op: loop.ReadOp, access: Access, rows: str, lanes: str) -> bool:
    """Whether a read is contiguous along axis `rows` and strided along the axis of the vectors."""
    assert access.storage is not None
    if access.positions or op.mask is not None or access.storage.kind != "argument":
        return False
    if coefficient(access.expression, rows) != 1:
        return False
    return coefficient(access.expression, lanes) not in (None, 0, 1)
