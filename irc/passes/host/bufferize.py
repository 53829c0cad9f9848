"""The pass `bufferize`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import func, graph, host, kernel, sym
from irc.dialects.host.memory import Aliases, is_tensor
from irc.dialects.sym.ranges import WHEN
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.strides import keeps_apart
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.graph.functionalize.argument_storages import alias_groups
from irc.passes.host.chosen_memory import choose_in_memory
from irc.passes.host.joined_memory import join_in_memory
from irc.passes.host.memory_uses import LaunchReads, MemoryUses, place_of
from irc.passes.host.results_apart import separate_results
from irc.passes.host.to_host import TO_HOST
from irc.passes.host.written_operands import operand_of


@register_pass
class Bufferize(Pass):
    """Turns functions of immutable arrays into host programs on memory.

    Each array that a launch makes gets memory: an input's that dies there, where the kernel
    allows it; that of an argument which is updated with it, where nothing reads the argument's
    old elements afterwards; its place in the array that it becomes a piece of; else a
    `host.alloc`. What is chosen among arrays for several ranges of a size (`sym.choose`) has one
    memory, in which each is made. A launch that combines into what its outputs hold gets a copy
    there first, unless that is the same memory: by the kernel's copying variant, where it has one
    and no output is in an input's memory. What is returned `escapes`. Remarks: why a result that
    could be has not the memory of an input, and why something is copied.

    Before:
        func.func @main(%x: ...) -> ... {
          %y = host.launch %x {callee = @k0} : (tensor<...>) -> tensor<...>
          return %y : tensor<...> }
    After:
        host.func @main(%x: ...) {
          %y = host.alloc {escapes} : tensor<...>
          host.launch %x, %y {callee = @k0} : (tensor<...>, tensor<...>)
          host.return %y : tensor<...> }
    """

    name = "bufferize"
    summary = "give every array memory and make functions host programs"
    conversion = TO_HOST

    def run(self, op: Operation, context: PassContext) -> None:
        kernels = {
            o.sym_name: o for o in op.regions[0].blocks[0].ops if isinstance(o, kernel.KernelFuncOp)
        }
        for function in [o for o in op.regions[0].blocks[0].ops if isinstance(o, func.FuncOp)]:
            Bufferizer(function, kernels, context).run()
        drop_variants(op, kernels)


def pairs_of(flat: Sequence[int] | None) -> set[tuple[int, int]]:
    """The pairs (input, output) of a kernel's `inplace` or `initialized`."""
    flat = flat or ()
    return set(zip(flat[::2], flat[1::2], strict=True))


def drop_variants(module: Operation, kernels: dict[str, kernel.KernelFuncOp]) -> None:
    """Erase of each kernel and its copying variant what nothing launches."""
    pairs = [(k, kernels[k.copying]) for k in kernels.values() if k.copying]
    used = {op.callee for op in module.walk() if isinstance(op, host.LaunchOp)} if pairs else ()
    for pair in pairs:
        del pair[0].attributes["copying"]
        for unused in (k for k in pair if k.sym_name not in used):
            unused.erase()


def checked_makers(block: Block) -> set[Operation]:
    """The operations of whose results an assertion may still fail: what they make is no
    argument's new content before it is known to be right."""
    items = [op.operands[0].defining_op for op in block.ops if isinstance(op, sym.AssertValueOp)]
    makers = [op.operands[0].defining_op for op in items if isinstance(op, graph.Item)]
    return {op for op in makers if op is not None}


class Bufferizer:
    """One function at work: whose memory values have, and when they are used last."""

    def __init__(
        self,
        function: func.FuncOp,
        kernels: dict[str, kernel.KernelFuncOp],
        context: PassContext,
    ) -> None:
        self.function, self.kernels, self.context = function, kernels, context
        self.block = function.block
        self.joined = join_in_memory(function)
        chosen = choose_in_memory(function)
        self.memory = MemoryUses(self.block)
        self.aliases, self.last_use = self.memory.aliases, self.memory.last_use
        self.order = self.memory.order
        self.updates = [op for op in self.memory.ops if isinstance(op, graph.UpdateInput)]
        for update in self.updates:
            self.memory.use_forever(update.value)  # it is copied at the very end
        self.checked = checked_makers(self.block)
        self._reads: dict[host.LaunchOp, LaunchReads] = {}
        self.places = {**self.joined.places, **chosen}
        self.ours: set[Value] = {*self.joined.arrays, *chosen.values()}
        self.returned: set[Value] = set()
        for value in function.return_op.operands:
            self.returned |= self.aliases.of(value)

    def run(self) -> None:
        """Rewrite the function in place and put a host.func in its stead."""
        self.direct = self._direct_updates()
        TO_HOST.apply(list(self.block.ops), self)
        self._update()
        separate_results(self.function)
        self._mark_escapes()
        self._replace_function()

    def keep(self, op: Operation) -> None:
        """What stays reads the memory that took its operands' places."""

    def convert(self, op: Operation, converter: Callable[[Bufferizer, Any], None]) -> None:
        """What the converter makes of an operation takes its place."""
        converter(self, op)

    def failed(self, op: Operation) -> None:
        """What uses the results finds them where they were."""

    # -- launches

    def launch(self, op: host.LaunchOp) -> None:
        callee = self.kernels.get(op.callee)
        if callee is None:
            raise InvalidIR(f"there is no kernel @{op.callee}", op=op)
        builder = Builder.before(op)
        reads = LaunchReads(op, callee, self.aliases)
        inputs, outs = reads.inputs, []
        taken: set[Value] = set()
        for position, result in enumerate(op.results):
            memory = self.direct.get(result) or self.place_in_memory(result)
            if memory is None:
                memory = self._reused(op, reads, position, taken)
            if memory is None:
                memory = self.allocated(builder, result)
            outs.append(memory)
            self.move_facts(result, memory)
        segments = A.DenseIntsAttr((len(inputs), len(outs)))
        attributes = {**op.attributes, SEGMENTS: segments}
        if self._all_are_copied(callee, inputs, outs):
            attributes["callee"] = A.SymbolRefAttr(callee.copying)
        else:
            self._initialize(builder, callee, inputs, outs, op)
        builder.insert(host.LaunchOp([*inputs, *outs], (), attributes, (), op.location))
        for result, memory in zip(op.results, outs, strict=True):
            result.replace_all_uses_with(memory)
        op.erase()

    def _all_are_copied(
        self, callee: kernel.KernelFuncOp, inputs: Sequence[Value], outs: Sequence[Value]
    ) -> bool:
        """Whether a kernel's copying variant serves: nothing that the kernel combines into is where
        it starts from, and the variant may share the memory that is shared otherwise."""
        if callee.copying is None:
            return False
        places = {value: number for number, value in enumerate(inputs)}
        shared = {(places[v], k) for k, v in enumerate(outs, len(inputs)) if v in places}
        return shared <= pairs_of(self.kernels[callee.copying].inplace) - pairs_of(
            callee.initialized
        )

    def _initialize(
        self,
        builder: Builder,
        callee: kernel.KernelFuncOp,
        inputs: Sequence[Value],
        outs: Sequence[Value],
        op: host.LaunchOp,
    ) -> None:
        """Copy what a kernel combines into to where it does, unless that is the same memory."""
        when = {WHEN: op.attributes[WHEN]} if WHEN in op.attributes else {}
        for source, target in sorted(pairs_of(callee.initialized)):
            value, memory = inputs[source], outs[target - len(inputs)]
            if value is not memory:
                builder.insert(host.HostCopyOp((value, memory), (), when, (), builder.location))

    def _reused(
        self, op: host.LaunchOp, reads: LaunchReads, position: int, taken: set[Value]
    ) -> Value | None:
        """An input's memory that result number `position` may be computed in."""
        result = op.results[position]
        reasons: list[tuple[Value, str]] = []
        for source in reads.places_of(position):
            value = reads.inputs[source]
            reason = self._why_not_there(op, reads, value, result, taken)
            if not reason:
                taken.add(value)
                self.context.count("in-place")
                return value
            reasons.append((value, reason))
        if reasons and self.context.explains:
            value, reason = reasons[0]
            text = f"result {position} is not computed in the memory of {value.described}: {reason}"
            self.context.remark(text, op)
        return None

    def _why_not_there(
        self,
        op: host.LaunchOp,
        reads: LaunchReads,
        value: Value,
        result: Value,
        taken: set[Value],
    ) -> str:
        """Why a result can't be computed in the memory of an input; "" where it can."""
        if value in taken:
            return "another result is"
        if value not in self.ours:
            return "it is not the program's own"
        if value.type is not result.type:
            return "it has another type"
        if self.last_use.get(value, -1) > self.order[op]:
            return "it is used later"
        if not reads.reads_once(value):
            return "the kernel reads it as another input too"
        return ""

    def place_in_memory(self, result: Value) -> Value | None:
        """The part of a joined array that a result is a piece of, or what is chosen among it and
        others, if it is made there."""
        place = self.places.get(result)
        if place is None:
            return None
        (whole,) = self.aliases.of(place)
        self.memory.move(result, whole)
        return place

    def move_facts(self, result: Value, memory: Value) -> None:
        """`memory` now holds what `result` was: its life goes on, its views are views of it."""
        self.memory.move(result, memory)
        if result in self.returned:
            self.returned.remove(result)
            self.returned.add(memory)

    # -- inputs that are updated

    def _direct_updates(self) -> dict[Value, Value]:
        """Results of launches that may be computed in the memory of the argument which they
        update: nothing reads its old elements later, or elsewhere in the launch."""
        direct: dict[Value, Value] = {}
        shared = {number for group in alias_groups(self.function) for number in group}
        for update in self.updates:
            reason = self._why_copied(update, shared, direct)
            if reason:
                self.context.remark(f"argument {update.argument} is copied to: {reason}", update)
                continue
            argument = direct[update.value] = self.block.arguments[update.argument]
            self._add_earlier(update.value, argument, direct)
            self.context.count("updates without a copy")
        copied = []
        for update in self.updates:
            if direct.get(update.value) is self.block.arguments[update.argument]:
                update.erase()
            else:
                copied.append(update)
        self.updates = copied
        return direct

    def _reads_of(self, op: host.LaunchOp) -> LaunchReads:
        """What a launch reads, before any of them has got memory."""
        reads = self._reads.get(op)
        if reads is None:
            reads = self._reads[op] = LaunchReads(op, self.kernels.get(op.callee), self.aliases)
        return reads

    def _add_earlier(self, value: Value, argument: Value, direct: dict[Value, Value]) -> None:
        """Where a launch combines into what another one made, which dies there, both may be done in
        the memory of the argument that gets the last one's result."""
        while isinstance(maker := value.defining_op, host.LaunchOp):
            earlier = self._reads_of(maker).combined_into(place_of(value))
            if earlier is None or earlier in direct or earlier in self.returned:
                return
            if earlier.type is not argument.type or self.last_use[earlier] > self.order[maker]:
                return
            if self._why_not_computed_in(argument, earlier):
                return
            direct[earlier] = argument
            value = earlier

    def _why_copied(
        self, update: graph.UpdateInput, shared: set[int], direct: dict[Value, Value]
    ) -> str:
        """Why what an argument is updated with is not computed there; "" where it may be."""
        value, argument = update.value, self.block.arguments[update.argument]
        maker: Any = value.defining_op
        if update.argument in shared:
            return "another argument may share its memory"
        if not isinstance(maker, host.LaunchOp) and operand_of(maker, value) is not argument:
            return "no kernel computes what it gets"
        if value.type is not argument.type:
            return f"it gets a {value.type}"
        if value in self.returned or value in direct:
            return "what it gets is returned, or given to another argument too"
        if value in self.memory.kept and isinstance(maker, host.LaunchOp):
            return "a call may keep what it gets"
        return self._why_not_computed_in(argument, value)

    def _why_not_computed_in(self, argument: Value, value: Value) -> str:
        """Why an argument's memory can't hold `value` as soon as that is computed; "" if it can."""
        maker: Any = value.defining_op
        user = self.memory.user_after(argument, self.order[maker])
        if user is not None:
            return f"{user.name} uses its old elements afterwards"
        if maker in self.checked:
            return "an assertion about what it gets comes later"
        if not self._may_write(maker, value, argument):
            return "its kernel reads old elements at other points than it writes new ones"
        return ""

    def _may_write(
        self, op: host.LaunchOp | graph.CallAten, result: Value, argument: Value
    ) -> bool:
        if isinstance(op, graph.CallAten):
            return sum(argument in self.aliases.of(v) for v in op.operands if is_tensor(v)) == 1
        launch = self._reads_of(op)
        reads = launch.readers.get(argument, [])
        if not reads:
            return True
        alone = len(reads) == 1 and launch.inputs[reads[0]] is argument
        return alone and reads[0] in launch.places_of(place_of(result))

    def _update(self) -> None:
        """Copy new elements into the arguments, after everything else has happened."""
        terminator = self.function.return_op
        builder = Builder.before(terminator)
        changed = {self.block.arguments[u.argument] for u in self.updates}
        values = []
        for update in self.updates:
            value = update.value
            others = self.aliases.of(value) & changed
            if others - {self.block.arguments[update.argument]} or (
                others and value is not self.block.arguments[update.argument]
            ):
                value = self._copied(builder, value, dense(value.type))
                self.context.remark("is copied first: another update may overwrite it", update)
            values.append(value)
        for position, value in enumerate(terminator.operands):
            info = self._info(position)
            if is_tensor(value) and self.aliases.of(value) & changed and info is None:
                terminator.set_operand(position, self._copied(builder, value, apart(value.type)))
                reason = f"result {position} is copied: an argument with its memory is updated"
                self.context.remark(reason, terminator)
        for update, value in zip(self.updates, values, strict=True):
            argument = self.block.arguments[update.argument]
            if value is not argument:
                builder.insert(host.HostCopyOp((value, argument), (), {}, (), update.location))
            update.erase()

    def _info(self, position: int) -> Any:
        """The argument whose storage a result shares, as the caller must see; None for none."""
        infos = self.function.result_info
        if infos is None or not isinstance(infos[position], A.DictAttr):
            return None
        return infos[position].get("alias_of")

    def _copied(self, builder: Builder, value: Value, type_: TensorType) -> Value:
        """A copy, with a type's strides, of a value that is about to be overwritten."""
        memory: Value = builder.value(host.AllocOp, result_types=type_)
        self.ours.add(memory)
        builder.insert(host.HostCopyOp((value, memory), ()))
        return memory

    # -- other operations

    def allocated(self, builder: Builder, result: Value) -> Value:
        """New memory for an array."""
        memory: Value = builder.value(host.AllocOp, result_types=result.type)
        memory.name_hint = result.name_hint
        self.ours.add(memory)
        self.context.count("allocations")
        if result not in self.returned:
            self.context.count("padding bytes", padding_bytes(memory.type))
        return memory

    def replace(self, op: Operation, new: Operation) -> None:
        """Put `new`, with memory that is not shared yet or a view, where `op` stands."""
        new.location = op.location
        for old, value in zip(op.results, new.results, strict=True):
            if is_tensor(old):
                self.move_facts(old, value)
                self.aliases.replace(old, value)
        op.replace_with(new)

    def _mark_escapes(self) -> None:
        """Allocations that the caller gets, or that a call may keep, are tensors of their own."""
        aliases = Aliases()
        escaping: set[Value] = set()
        for op in self.block.ops:
            aliases.add(op)
            returned = isinstance(op, func.ReturnOp)
            for value in op.operands if returned else self._kept_operands(op):
                escaping |= aliases.of(value)
        for op in self.block.ops:
            if isinstance(op, host.AllocOp) and op.results[0] in escaping:
                op.attributes["escapes"] = A.UNIT

    def _kept_operands(self, op: Operation) -> list[Value]:
        return [op.operands[number] for number in self.memory.keepers.operands(op)]

    def _replace_function(self) -> None:
        function = self.function
        function.refresh_type()  # a copy may be row-major where its source's elements share places
        terminator = function.return_op
        ending = host.HostReturnOp(terminator.operands, (), {}, (), terminator.location)
        Builder.before(terminator).insert(ending)
        terminator.erase()
        names = ("sym_name", "function_type", "arg_info", "result_info", "aliases")
        attributes = {n: function.attributes[n] for n in names if n in function.attributes}
        program = host.HostFuncOp((), (), attributes, function.regions, function.location)
        assert function.parent is not None
        function.parent.insert_before(program, function)
        function.regions = ()
        function.detach()


def dense(type_: Any) -> TensorType:
    """The tensor type with row-major strides."""
    return type_.with_strides(contiguous_strides(type_.shape))


def apart(type_: Any) -> TensorType:
    """The tensor type, with row-major strides if two of its elements share a place."""
    return type_ if keeps_apart(type_.shape, type_.strides) else dense(type_)


def padding_bytes(type_: Any) -> int:
    """The bytes between the elements of an array of known size; 0 for any other."""
    dims = (*type_.shape, *type_.strides)
    if not all(isinstance(d, int) for d in dims) or 0 in type_.shape:
        return 0
    span = 1 + sum((n - 1) * s for n, s in zip(type_.shape, type_.strides, strict=True))
    return int(span - math.prod(type_.shape)) * element_bytes(type_.element)


__all__ = ["Bufferize"]
