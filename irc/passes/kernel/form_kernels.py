"""The pass `form-kernels`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from irc.analysis.loop import relies_on_checks
from irc.dialects import func, graph, host, kernel, loop, sym
from irc.dialects.sym.ranges import WHEN, RangeAttr, when_of
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Range, Symbol
from irc.passes.kernel.cpu.contraction.choose import has_tiles
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.remarks import remarks_about
from irc.passes.kernel.cpu.schedule import read_schedule
from irc.passes.kernel.plan.plan import Plan, flatten
from irc.passes.kernel.plan.structure import structural_key
from irc.passes.kernel.plan.symbol_ranges import symbol_ranges
from irc.target.record import own_parts

Formed = tuple[kernel.KernelFuncOp, list[Type]]
"""A kernel and the types of its memory."""


@register_pass
class FormKernels(Pass):
    """Makes each top-level compute and group a kernel and a launch of it with value semantics.

    Equal computes (same structure, types and symbols) share one kernel. What has `variants` in its
    schedule becomes a kernel and a launch for each range of their size (`when`), and a choice among
    the results (`sym.choose`). Remarks: the axis that
    vectors run along and how the arrays are read there, what is gathered and why, and why a
    result can't be in the memory of an input.

    Before:
        %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, ...> { ... }
    After:
        kernel.func @k0(...) { ... }
        %y = host.launch %x {callee = @k0} : (tensor<64xf32>) -> tensor<64xf32>
    """

    name = "form-kernels"
    summary = "make kernels of scheduled computes and groups"
    preserves = "real"

    def run(self, op: Operation, context: PassContext) -> None:
        former = _ModuleFormer(op, context)
        for function in [f for f in op.regions[0].blocks[0].ops if isinstance(f, func.FuncOp)]:
            former.run(function)
        context.count("kernels", former.count)
        context.count("launches", former.launches)


class _ModuleFormer:
    """Forms the kernels of one module."""

    def __init__(self, module: Operation, context: PassContext) -> None:
        self.module, self.context = module, context
        self.parts = own_parts(context)
        # The kernels formed, by what they were formed of; apart by what is known of the symbols.
        self.known: dict[Any, dict[Any, Formed]] = {}
        block = module.regions[0].blocks[0]
        self.names = {
            o.attributes["sym_name"].parameters[0] for o in block.ops if "sym_name" in o.attributes
        }
        self.count = 0
        self.launches = 0

    def run(self, function: func.FuncOp) -> None:
        """Replace the computes and groups of one function."""
        ranges = symbol_ranges(function)
        known = self.known.setdefault(tuple(ranges.items()), {})
        for op in function.block.ops:
            if isinstance(op, loop.ComputeOp | loop.GroupOp):
                self.form(op, ranges, known)
        for op in function.block.ops:
            if isinstance(op, graph.Undefined) and not op.results[0].has_uses:
                op.erase()

    def form(
        self, op: Operation, ranges: dict[str, Range], known: dict[Any, Formed]
    ) -> None:
        """Replace one compute or group by a launch, or by one for each of several ranges of a size
        and a choice among what they make."""
        schedule = op.attributes.get("schedule")
        if not isinstance(schedule, loop.ScheduleAttr):
            raise InvalidIR("there is no schedule here; run the pass 'schedule' first", op=op)
        variants = schedule.entries.get("variants")
        if not isinstance(variants, A.ArrayAttr):
            launch = self.formed(op, schedule, op.attributes.get(WHEN), ranges, known)
            op.replace_with(launch.results[: len(op.results)])
            return
        kept = {name: entry for name, entry in schedule.entries.items if name != "variants"}
        plain = loop.ScheduleAttr(schedule.target, A.DictAttr(kept))
        launches = []
        for each, when in zip((*variants, A.DictAttr({})), sizes_of(op, variants), strict=True):
            assert isinstance(each, A.DictAttr)
            with scheduled_as(op, plain, each) as own:
                launches.append(self.formed(op, own, when, ranges, known))
        builder = Builder.before(op)
        op.replace_with([
            builder.value(sym.ChooseOp, arms, result_types=result.type)
            for result, *arms in zip(op.results, *(each.results for each in launches), strict=False)
        ])  # fmt: skip

    def formed(
        self,
        op: Operation,
        schedule: loop.ScheduleAttr,
        when: A.Attribute | None,
        ranges: dict[str, Range],
        known: dict[Any, Formed],
    ) -> host.LaunchOp:
        """A launch of the kernel that an operation has with a schedule, which it has now."""
        flat = flatten(op)
        key = structural_key(op, flat.inputs), narrowed(when)
        ranges = {**ranges, **dict(key[1])}
        formed = known.get(key)
        if formed is None:
            formed = known[key] = self._formed(flat, schedule, ranges)
            self.count += 1
        if self.context.explains:
            for compute, message in remarks_about(op, flat.inputs, formed[0]):
                self.context.remark(message, compute)
        return self.launch(op, flat.inputs, *formed, when)

    def _formed(
        self, flat: Plan, schedule: loop.ScheduleAttr, ranges: dict[str, Range]
    ) -> tuple[kernel.KernelFuncOp, list[Type]]:
        """The kernel of a plan, and the types of the arrays that it gives behind the results: its
        memory. Where it scatters on a cpu, its copying variant stands beside it."""
        block, name, op = self.module.regions[0].blocks[0], self.fresh_name(), flat.op
        if schedule.is_gpu:
            from irc.passes.kernel.gpu.form import form_gpu_kernel
            from irc.passes.kernel.gpu.frame import memory_of

            callee = form_gpu_kernel(op, schedule, name, flat=flat, ranges=ranges)
            block.append(callee)
            return callee, [*memory_of(callee, getattr(op.result_types[0], "device", "cpu"))]
        from irc.passes.kernel.cpu.contraction.kernel import form_contraction_kernel
        from irc.passes.kernel.cpu.form import form_copying_kernel, form_cpu_kernel

        room = 0 if flat.is_lone else read_schedule(schedule, op).scratch
        private = not flat.is_lone and _has_points(flat)
        plan = plan_for_cpu(flat, scratch=room, private=private, parts=self.parts)
        more = plan.outputs[len(op.results) :]
        form = form_contraction_kernel if has_tiles(flat) else form_cpu_kernel
        callee, memory = form(plan, schedule, name, ranges)
        block.append(callee)
        if plan.initialized:
            own_name = self.fresh_name(f"{name}_copying")
            copying = form_copying_kernel(flat, schedule, own_name, ranges)
            block.append(copying)
            callee.attributes["copying"] = A.SymbolRefAttr(copying.sym_name)
        return callee, [*map(plan.memory_type, more), *memory]

    def fresh_name(self, stem: str = "k") -> str:
        """A name for a kernel that nothing in the module has."""
        number = self.count
        name = f"k{number}" if stem == "k" else stem
        while name in self.names:
            number += 1
            name = f"{stem}{number}"
        self.names.add(name)
        return name

    def launch(
        self, op: Operation, inputs: list[Value], callee: kernel.KernelFuncOp, memory: list[Type],
        when: A.Attribute | None,
    ) -> host.LaunchOp:  # fmt: skip
        """Put the launch before `op`."""
        attributes: dict[str, A.Attribute] = {
            "callee": A.SymbolRefAttr(callee.attributes["sym_name"].parameters[0]),
            SEGMENTS: A.DenseIntsAttr((len(inputs), 0)),
        }
        if relies_on_checks(op):
            attributes["checked"] = A.UNIT
        if when is not None:
            attributes[WHEN] = when
        types = [*op.result_types, *memory]
        launch = host.LaunchOp(inputs, types, attributes, (), op.location)
        assert op.parent is not None
        op.parent.insert_before(launch, op)
        self.launches += 1
        return launch


def _has_points(flat: Plan) -> bool:
    """Whether a group's members are computed at one point of the shared axes after the other: no
    vectors run along these."""
    own = read_schedule(flat.op.attributes.get("schedule"), flat.op)
    return not (own.has("vector_axis") and own.vector_axis)


def sizes_of(op: Operation, variants: A.ArrayAttr) -> list[RangeAttr]:
    """The ranges of a size that an operation's variants are for, and what is left of it."""
    entries: list[Any] = [each.as_dict() for each in variants]  # type: ignore[attr-defined]
    begin, whole = 0, when_of(op)
    ends = [*(each["most"].value for each in entries), None]
    size = entries[0]["size"].dim
    if any(each["size"].dim != size for each in entries):
        raise InvalidIR("the variants of its schedule are for several sizes", op=op)
    if whole is not None:
        if whole.size != size:
            raise InvalidIR(f"it runs for a range of {whole.size}, its variants are for ranges of "
                            f"{size}", op=op)  # fmt: skip
        begin, ends[-1] = whole.least, whole.most
    ranges = []
    for end in ends:
        try:
            ranges.append(RangeAttr(size, begin, end))
        except ValueError as error:
            raise InvalidIR(f"the variants of its schedule: {error}", op=op) from None
        begin = 0 if end is None else end + 1
    return ranges


@contextmanager
def scheduled_as(
    op: Operation, plain: loop.ScheduleAttr, variant: A.DictAttr
) -> Iterator[loop.ScheduleAttr]:
    """A compute or group with the entries of a variant, as long as its kernel is formed."""
    entries = dict(variant.as_dict())
    members = entries.pop("members", A.ArrayAttr(()))
    entries = {name: entry for name, entry in entries.items() if name not in ("size", "most")}
    inner = [each for each in op.walk() if isinstance(each, loop.ComputeOp) and each is not op]
    before = [(each, each.attributes.get("schedule")) for each in (op, *inner)]
    own = with_entries(plain, entries)
    try:
        op.attributes["schedule"] = own
        for each, more in zip(inner, members, strict=False):  # type: ignore[call-overload]
            known = each.attributes.get("schedule")
            if isinstance(known, loop.ScheduleAttr) and isinstance(more, A.DictAttr):
                each.attributes["schedule"] = with_entries(known, more.as_dict())
        yield own
    finally:
        for each, schedule in before:
            if schedule is not None:
                each.attributes["schedule"] = schedule


def with_entries(
    schedule: loop.ScheduleAttr, entries: Mapping[str, A.Attribute]
) -> loop.ScheduleAttr:
    """A schedule with other entries for some keys."""
    changed = A.DictAttr({**schedule.entries.as_dict(), **entries})
    return loop.ScheduleAttr(schedule.target, changed)


def narrowed(when: A.Attribute | None) -> tuple[tuple[str, Range], ...]:
    """What a range of a size says of the size, where that is a symbol."""
    if not isinstance(when, RangeAttr) or not isinstance(when.size, Symbol):
        return ()
    return ((when.size.name, Range(when.least, when.most)),)
