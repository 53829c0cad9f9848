"""The pass `form-kernels`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irc.analysis.loop import relies_on_checks
from irc.dialects import func, graph, host, kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Range
from irc.passes.kernel.cpu.contraction.choose import has_tiles
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.remarks import remarks_about
from irc.passes.kernel.cpu.schedule import read_schedule
from irc.passes.kernel.plan.plan import Plan, flatten
from irc.passes.kernel.plan.symbol_ranges import symbol_ranges

Formed = tuple[kernel.KernelFuncOp, list[Type]]
"""A kernel and the types of its memory."""


@register_pass
class FormKernels(Pass):
    """Makes each top-level compute and group a kernel and a launch of it with value semantics.

    Equal computes (same structure, types and symbols) share one kernel. Remarks: the axis that
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
        """Replace one compute or group by a launch."""
        schedule = op.attributes.get("schedule")
        if not isinstance(schedule, loop.ScheduleAttr):
            raise InvalidIR("there is no schedule here; run the pass 'schedule' first", op=op)
        flat = flatten(op)
        key = structural_key(op, flat.inputs)
        formed = known.get(key)
        if formed is None:
            formed = known[key] = self.formed(flat, schedule, ranges)
            self.count += 1
        callee, _ = formed
        if self.context.explains:
            for compute, message in remarks_about(op, flat.inputs, callee):
                self.context.remark(message, compute)
        self.launch(op, flat.inputs, *formed)

    def formed(
        self, flat: Plan, schedule: loop.ScheduleAttr, ranges: dict[str, Range]
    ) -> tuple[kernel.KernelFuncOp, list[Type]]:
        """The kernel of a plan, with those for other sizes, and the types of the arrays that it
        gives behind the results."""
        variants = schedule.entries.get("variants")
        if not isinstance(variants, A.ArrayAttr):
            return self._formed(flat, schedule, ranges)
        op, kept = flat.op, dict(schedule.entries.as_dict())
        del kept["variants"]
        plain = loop.ScheduleAttr(schedule.target, A.DictAttr(kept))
        callee, memory = self._formed(flat, plain, ranges)
        kernels, entries = [callee], []
        for each in variants:
            assert isinstance(each, A.DictAttr)
            self.count += 1
            with scheduled_as(op, plain, each) as own:
                other, more = self._formed(flatten(op), own, ranges)
            if more != memory:
                raise InvalidIR("the kernels for several sizes have other memory of their own",
                                op=op)  # fmt: skip
            kernels.append(other)
            chosen = {name: each.as_dict()[name] for name in ("size", "most")}
            entries.append(A.DictAttr({"callee": A.SymbolRefAttr(other.sym_name), **chosen}))
        callee.attributes["variants"] = A.ArrayAttr(entries)
        share_alike(kernels)
        return callee, memory

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
        plan = plan_for_cpu(flat, scratch=room, private=not flat.is_lone and _has_points(flat))
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
        self, op: Operation, inputs: list[Value], callee: kernel.KernelFuncOp, memory: list[Type]
    ) -> None:
        """Put the launch in the place of `op`."""
        attributes: dict[str, A.Attribute] = {
            "callee": A.SymbolRefAttr(callee.attributes["sym_name"].parameters[0]),
            SEGMENTS: A.DenseIntsAttr((len(inputs), 0)),
        }
        if relies_on_checks(op):
            attributes["checked"] = A.UNIT
        types = [*op.result_types, *memory]
        launch = host.LaunchOp(inputs, types, attributes, (), op.location)
        assert op.parent is not None
        op.parent.insert_before(launch, op)
        op.replace_with(launch.results[: len(op.results)])
        self.launches += 1


def _has_points(flat: Plan) -> bool:
    """Whether a group's members are computed at one point of the shared axes after the other: no
    vectors run along these."""
    own = read_schedule(flat.op.attributes.get("schedule"), flat.op)
    return not (own.has("vector_axis") and own.vector_axis)


@contextmanager
def scheduled_as(
    op: Operation, plain: loop.ScheduleAttr, variant: A.DictAttr
) -> Iterator[loop.ScheduleAttr]:
    """A compute or group with the entries of a variant, as long as its kernel is formed."""
    entries = dict(variant.as_dict())
    members = entries.pop("members", A.ArrayAttr(()))
    del entries["size"], entries["most"]
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


def share_alike(kernels: Sequence[kernel.KernelFuncOp]) -> None:
    """Let kernels share what memory all of them may share."""
    common = set.intersection(*({*pairs_of(each.inplace)} for each in kernels))
    for each in kernels:
        each.attributes.pop("inplace", None)
        if common:
            each.attributes["inplace"] = A.DenseIntsAttr([n for p in sorted(common) for n in p])


def pairs_of(flat: Sequence[int] | None) -> list[tuple[int, int]]:
    """A flat list of pairs as pairs."""
    numbers = list(flat or ())
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def structural_key(op: Operation, inputs: list[Value]) -> Any:
    """Equal for two computes or groups from which the same kernel is formed."""
    numbers: dict[Value, int] = {}
    parts: list[Any] = []
    for value in inputs:
        numbers[value] = len(numbers)
        parts.append(value.type)

    def visit(inner: Operation) -> None:
        for result in inner.results:
            numbers[result] = len(numbers)
        parts.append(type(inner))
        parts.append(tuple([numbers.get(o, -1) for o in inner._operands]))
        parts.append(tuple([r.type for r in inner.results]))
        parts.append(tuple(sorted(inner.attributes.items(), key=A.entry_name)))
        for region in inner.regions:
            for block in region.blocks:
                current = block.first
                while current is not None:
                    visit(current)
                    current = current.next
                parts.append(None)

    visit(op)
    return tuple(parts)
