"""A `HostProgram` with tensors of GPUs as a native host function.

    code = emit_gpu_host(program, gpu, shapes)     # `gpu` from `irc.boundary.cuda`

As `lowering`, but for memory (one block a call from torch's allocator), launches (the driver's, by
`irc_gpu_launch`) and what reads a tensor (which waits). docs/design/gpu-host.md has the whole.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from irc.boundary import cuda, cuda_draws
from irc.codegen.host.aten import AtenCall, call_aten, call_object
from irc.codegen.host.emitter import (
    I1,
    I32,
    I64,
    PTR,
    HostEmitter,
    HostTensor,
    Size,
    TensorSpec,
    Value,
    as_value,
    constant,
)
from irc.codegen.host.gpu_convolutions import (
    GpuConvolution,
    emit_gpu_convolution,
    gpu_convolutions,
)
from irc.codegen.host.gpu_pointwise import pointwise_products, products_into_memory
from irc.codegen.host.gpu_products import (
    GpuProduct,
    KeptHandles,
    emit_biased_product,
    emit_gpu_product,
    gpu_products,
)
from irc.codegen.host.gpu_reads import EarlyReads, is_quiet
from irc.codegen.host.items import load_item
from irc.codegen.host.lowering import ENTRY, ArrayPlace, EmittedHost, Lowering, dtype_code
from irc.codegen.host.support import KIND_TENSOR
from irc.codegen.host.support_gpu import RING_BYTES, SCRATCH_POINTERS
from irc.ir.diagnostics import InternalError
from irc.program import host_program as P
from irc.program.devices import device_number, main_device
from irc.program.early import read_early
from irc.program.gpu_kernels import DESCRIPTOR_BYTES
from irc.program.late import late_steps
from irc.program.liveness import registers_in
from irc.target import Target

#: The slots of what every program of GPUs names: the table, and what raises late errors.
TABLE, LATE_ERRORS = ("gpu-table",), ("late-errors",)


def emit_gpu_host(
    program: P.HostProgram, gpu: cuda.Gpu, target: Target, described: Collection[str] = ()
) -> EmittedHost:
    """The native form of `program`; it exports `ENTRY`. Its kernels are objects, descriptors by
    ("gpu-kernel", name, device). `described`: those whose last tensor is memory for what describes
    matrices to the hardware."""
    module = ir.Module("host", context=ir.Context())
    emitter = HostEmitter(module, ENTRY, arguments=len(program.arguments), gpu=gpu)
    early = read_early(program, functools.partial(is_quiet, program))
    GpuLowering(early.program, emitter, target, early.starts, described).run()
    return EmittedHost(str(module), tuple(emitter.slot_keys), frozenset(emitter.externals))


def refusal(program: P.HostProgram) -> str | None:
    """Why a program of GPUs has no native form; None when it has one."""
    for step in program.steps:
        if isinstance(step, P.Launch):
            devices = {program.layouts[r].device for r in step.tensors}
            if len(devices) > 1 or "cpu" in devices:
                return f"@{step.kernel} has tensors on {', '.join(sorted(devices))}"
    return None


class GpuLowering(Lowering):
    """`starts`: the `ReadItem`s whose copies start behind a step (`irc.program.early`)."""

    def __init__(
        self, program: P.HostProgram, emitter: HostEmitter, target: Target,
        starts: Mapping[int, Sequence[int]], described: Collection[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(program, emitter, target)
        self.starts, self.described = starts, described
        self.main = main_device(program)
        self.table = emitter.memory_of(TABLE, at_once=True)
        self.makers = emitter.memory_of(("gpu-library", "memory"), at_once=True)
        self.early = EarlyReads(emitter, self.table)
        self.kept = KeptHandles(emitter)
        self.guard = emitter.empty_slot()
        self.here: int | None = None
        self.streams: dict[int, Value] = {}
        self.bases: dict[str, HostTensor] = {}
        self.late = late_steps(program) if program.late_checks else {}
        self.number = -1
        launches = [s for s in program.steps if isinstance(s, P.Launch)]
        words = max((len(s.tensors) + len(s.symbols) for s in launches), default=0)
        #: What kernels read and write, views put aside.
        self.launched = {program.root(r)[0] for s in launches for r in s.tensors}
        self._words = words + SCRATCH_POINTERS
        #: Calls of libraries into memory of the program: a product is the quicker convolution.
        self.direct: dict[int, GpuProduct | GpuConvolution] = {
            **gpu_convolutions(program), **gpu_products(program), **products_into_memory(program),
        }  # fmt: skip
        self.pointwise = pointwise_products(program)
        self.values = self.params = PTR(None)

    # The device

    def begin(self, below_autograd: bool) -> None:
        b = self.builder
        autocast = b.load(self.emitter.word(self.table, cuda.AUTOCAST_KEY), typ=I64)
        self.emitter.begin(below_autograd=below_autograd, other_keys=[autocast])
        for device in self._told():
            told = b.call(self.emitter.support("irc_gpu_told"), [self.table, constant(device)])
            with b.if_then(b.icmp_signed("!=", told, I32(0)), likely=False):
                call_object(self.emitter, LATE_ERRORS, [constant(device)], [], [])
        self.emitter.at_exit(self._leave)
        self.on(self.main)
        self._room_for_launches()

    def _told(self) -> list[int]:
        """The GPUs whose failed checks this program tells as it begins."""
        flags = [s.layout.device for s in self.program.steps if isinstance(s, P.Flag)]
        return list(dict.fromkeys([self.main, *map(device_number, flags)]))

    def _steps(self) -> None:
        self._start_reads(-1)
        super()._steps()

    def _leave(self) -> None:
        self.builder.call(self.emitter.support("irc_gpu_leave"), [self.table, self.guard])

    def on(self, device: int) -> None:
        """Make a GPU this thread's current one from here on."""
        if self.here == device:
            return
        self.here = device
        self.kept.forget()  # a handle is of one device
        enter = self.emitter.support("irc_gpu_enter")
        code = self.builder.call(enter, [self.table, constant(device), self.guard])
        wide = self.builder.sext(code, I64)
        self.emitter.fail_if_error(code, ("gpu-error", "making a GPU current"), [wide])

    def stream(self, device: int) -> Value:
        """torch's current stream of a GPU in this call."""
        stream = self.streams.get(device)
        if stream is None:
            out = self.emitter.alloca(PTR)
            ask = self.emitter.support("irc_gpu_stream")
            code = self.builder.call(ask, [self.table, constant(device), out])
            self.emitter.fail_if_error(code, ("shim-error", "current stream"), [])
            stream = self.streams[device] = self.builder.load(out, typ=PTR)
        return stream

    def place(self, device: str) -> tuple[Value, Value] | None:
        """torch's type and index of a device; None for the CPU."""
        if device == "cpu":
            return None
        b, e = self.builder, self.emitter
        device_type = b.load(e.word(self.table, cuda.DEVICE_TYPE), typ=I64)
        mask = b.load(e.word(self.table, cuda.INDEX_MASK), typ=I64)
        index = b.or_(mask, constant(device_number(device)))
        return b.trunc(device_type, I32), b.trunc(index, I32)

    def argument(self, index: int, layout: P.Layout, fixed: TensorSpec) -> HostTensor:
        if layout.device == "cpu":
            return super().argument(index, layout, fixed)
        register = self.program.arguments[index].register
        number = not layout.sizes and register not in self.launched
        check = "irc_gpu_check_number" if number else "irc_gpu_check_tensor"
        device = constant(device_number(layout.device))
        return self.arguments.argument_tensor(index, fixed, check, self.table, device)

    def step(self, number: int, step: P.Step) -> None:
        self.number = number
        devices = {
            self.program.layouts[r].device for r in registers_in(step) if r in self.program.layouts
        } - {"cpu"}
        if len(devices) == 1:
            self.on(device_number(devices.pop()))
        if isinstance(step, P.CopyInto | P.Control | P.ReadItem):
            self.kept.forget()
        if getattr(step, "when", None) is not None and self.here is not None:
            self.stream(self.here)  # asked for once, not by each step that may run
        super().step(number, step)
        self._start_reads(number)

    def device(self, step: P.CallOperator) -> str:
        layouts = [self.program.layouts.get(r) for r in registers_in(step)]
        kinds = {layout.device.partition(":")[0] for layout in layouts if layout is not None}
        return kinds.pop() if len(kinds) == 1 else ""

    # Memory

    def alloc(self, step: P.Alloc) -> None:
        layout = step.layout
        if step.offset is None or not self.in_arena(step):
            tensor = self.fresh(*self.sizes(layout), layout.dtype, layout.device)
            self.borrow(step.register, layout, tensor)
            return
        if not self.bases:
            self._open_arena()
        at = self.dims(step.offset)
        self.places[step.register] = ArrayPlace(
            layout, lambda: self._address(at), lambda: self._in_block(layout, at)
        )

    def flag(self, step: P.Flag) -> None:
        """The memory of a flag: its address is all that anybody asks for."""
        device = device_number(step.layout.device)
        memory = self.emitter.memory_of(("gpu-flag", device, step.error, step.message))

        def handle() -> HostTensor:
            raise InternalError("a flag is no tensor of an operator's")

        self.places[step.register] = ArrayPlace(step.layout, lambda: memory, handle)

    def fresh(
        self, sizes: Sequence[Size], strides: Sequence[Size], dtype: str, device: str
    ) -> HostTensor:
        """A new tensor; torch's own error tells where there is no memory for it."""
        from irc.boundary.aten_paths import Named
        from irc.boundary.templates import Dynamic

        values: list[Value] = []

        def slot(size: Size) -> Any:
            if isinstance(size, int):
                return size
            values.append(size)
            return Dynamic(len(values) - 1)

        arguments = (
            ("size", tuple(map(slot, sizes))), ("stride", tuple(map(slot, strides))),
            ("dtype", Named("dtype", dtype)), ("device", Named("device", device)),
        )  # fmt: skip
        failure = ("aten-replay", "aten.empty_strided.default", arguments), values
        e, code = self.emitter, I32(dtype_code(dtype))
        if device == "cpu":
            return self.memory.empty(sizes, strides, dtype_code(dtype), failure)
        room, number = e.new_slots(1), constant(device_number(device))
        operands = [self.makers, self.table, number, constant(len(sizes)), e.array(sizes),
                    e.array(strides), code, e.slot(room)]  # fmt: skip
        e.fail_if_error(self.builder.call(e.support("irc_gpu_empty"), operands), *failure)
        return e.own(len(sizes), room)

    def in_arena(self, step: P.Alloc) -> bool:
        """Only the memory of one GPU is in one block."""
        on_main = step.layout.device == f"cuda:{self.main}"
        return on_main and super().in_arena(step)

    def _open_arena(self) -> None:
        """The block, as elements of the dtype that operators want most of it."""
        dtype, size = self._arena_element()
        total = self.arena_bytes()
        elements: Size
        if isinstance(total, int):
            elements = -(-total // 16) * 16 // size
        else:
            padded = self.builder.and_(self.builder.add(total, constant(15)), constant(-16))
            elements = self.builder.lshr(padded, constant(size.bit_length() - 1))
        base = self.fresh([elements], [1], dtype, f"cuda:{self.main}")
        self.memory.data(base)
        self.bases[dtype] = base
        self._arena_base = base

    def _arena_element(self) -> tuple[str, int]:
        placed = {s.register: s.layout for s in self.program.steps
                  if isinstance(s, P.Alloc) and s.offset is not None}  # fmt: skip
        counts: dict[tuple[str, int], int] = {}
        for step in self.program.steps:
            if isinstance(step, P.CallOperator | P.CopyInto | P.Control | P.ReadItem):
                for register in registers_in(step):
                    layout = placed.get(self.program.root(register)[0])
                    if layout is not None:
                        key = layout.dtype, layout.element_bytes
                        counts[key] = counts.get(key, 0) + 1
        return max(counts, key=lambda k: counts[k], default=("uint8", 1))

    def _address(self, at: Size) -> Value:
        base = self.memory.data(self._arena_base)
        return self.builder.gep(base, [as_value(at)], source_etype=ir.IntType(8))

    def _in_block(self, layout: P.Layout, at: Size) -> HostTensor:
        """A tensor over the block's storage, `at` bytes in."""
        base = self.bases.get(layout.dtype)
        if base is None:
            from irc.boundary.aten_paths import Named

            arguments = {"self": self._arena_base, "dtype": Named("dtype", layout.dtype)}
            call = AtenCall("aten.view.dtype", arguments, (1,), device="cuda")
            (base,) = call_aten(self.emitter, call, floating=True)  # type: ignore[assignment]
            assert base is not None
            self.bases[layout.dtype] = base
        width = layout.element_bytes
        offset: Size = at // width if isinstance(at, int) else self.builder.lshr(
            at, constant(width.bit_length() - 1)
        )
        tensor = self.memory.view(base, *self.sizes(layout), offset)
        tensor.data = self._address(at)
        return tensor

    # Work

    def _room_for_launches(self) -> None:
        """Memory for the words of a launch, and where each is."""
        e, b = self.emitter, self.builder
        self.values = e.alloca(I64, self._words)
        self.params = e.alloca(PTR, self._words)
        for i in range(self._words):
            at = e.word(self.values, i)
            b.store(at, e.word(self.params, i))

    def launch(self, step: P.Launch) -> None:
        e, b = self.emitter, self.builder
        words: list[Value] = [self.data(r) for r in step.tensors]
        words += [as_value(self.dims.symbols[s]) for s in step.symbols]
        words += [self._scratch(step, words), constant(0)]
        for i, word in enumerate(words):
            b.store(word, e.word(self.values, i))
        devices = {self.program.layouts[r].device for r in step.tensors}
        device = device_number(devices.pop()) if devices else self.main
        kernel = e.memory_of(("gpu-kernel", step.kernel, device))
        grid = as_value(self.dims(step.grid))
        operands = [self.table, kernel, self.stream(device), grid, self.values, self.params]
        operands.append(e.asks_python())
        code = b.call(e.support("irc_gpu_launch"), operands)
        failed = ("gpu-launch-failed", step.kernel, device)
        e.fail_if_error(code, failed, [b.sext(code, I64)])

    def _scratch(self, step: P.Launch, words: Sequence[Value]) -> Value:
        """Where Triton's memory is of a kernel that has descriptors, else 0."""
        if step.kernel not in self.described:
            return constant(0)
        memory = self.builder.ptrtoint(words[len(step.tensors) - 1], I64)
        above = self.builder.add(memory, constant(DESCRIPTOR_BYTES - 1))
        return self.builder.and_(above, constant(-DESCRIPTOR_BYTES))

    def keep(self, who: str, results: Sequence[P.Result], values: Sequence[Any]) -> None:
        for result, value in zip(results, values, strict=True):
            layout = result.layout
            if layout is not None and not layout.sizes and layout.device != "cpu":
                if isinstance(value, HostTensor) and result.register in self.launched:
                    self._bring(value, device_number(layout.device))
        super().keep(who, results, values)

    def _bring(self, tensor: HostTensor, device: int) -> None:
        """Put a copy in place of an operator's number that is on the CPU after all, where kernels
        read it."""
        b, e = self.builder, self.emitter
        assert tensor.slot is not None
        place = self.place(f"cuda:{device}")
        assert place is not None
        device_type = e.alloca(I32)
        ask = e.declare("aoti_torch_get_device_type", I32, (PTR, PTR))
        code = b.call(ask, [tensor.handle, device_type])
        e.fail_if_error(code, ("shim-error", "device type"), [])
        elsewhere = b.icmp_signed("!=", b.load(device_type, typ=I32), place[0])
        with b.if_then(elsewhere, likely=False):
            (copy,) = call_object(e, ("to-gpu", device), [tensor.handle], [KIND_TENSOR], [0])
            assert isinstance(copy, HostTensor) and copy.slot is not None
            b.store(tensor.handle, e.slot(copy.slot))
            b.store(copy.handle, e.slot(tensor.slot))
        tensor.handle = b.load(e.slot(tensor.slot), typ=PTR)

    def call_operator(
        self, step: P.CallOperator, fresh: Sequence[P.Result]
    ) -> list[HostTensor | Value | None]:
        pointwise = self.pointwise.get(id(step))
        if pointwise is not None:
            return self._pointwise(step, pointwise, fresh)
        if step.callee == cuda_draws.OPERATOR:
            return self._draw(step, fresh)
        direct = self.direct.get(id(step))
        if direct is None:
            self.kept.forget()
            return super().call_operator(step, fresh)
        b = self.builder
        self.emitter.unlock()
        with self._clocked(step.callee):
            code = self._direct(direct)
        with b.if_then(b.icmp_signed("!=", code, I32(0)), likely=False), self.apart():
            super().call_operator(step, fresh)
            self.kept.clear()
        return []

    def _direct(self, call: GpuProduct | GpuConvolution) -> Value:
        """0 where a call of a library is made, else 1."""
        e = self.emitter
        if isinstance(call, GpuConvolution):
            return emit_gpu_convolution(e, call, lambda r: self.tensor(r).handle)
        if call.bias is None:
            return emit_gpu_product(e, call, self.data, self.kept)
        device = device_number(self.program.layouts[call.out].device)
        place = device, self.number
        return emit_biased_product(e, call, place, self.stream(device), self.data, self.kept)

    def _pointwise(
        self, step: P.CallOperator, products: Sequence[GpuProduct], fresh: Sequence[P.Result]
    ) -> list[HostTensor | Value | None]:
        """The results of a convolution of single points."""
        b, e = self.builder, self.emitter
        outs: dict[int, HostTensor] = {}
        places: dict[int, Value] = {}
        total: Value = I32(0)
        with self._clocked(step.callee):
            for product in products:
                position = -1 - product.out
                layout = fresh[position].layout
                assert layout is not None
                out = outs[position] = self.fresh(*self.sizes(layout), layout.dtype, layout.device)
                places[product.out] = self.memory.data(out)
                e.unlock()
                code = emit_gpu_product(
                    e, product, lambda r: places[r] if r in places else self.data(r), self.kept
                )
                total = b.or_(total, code)
        self._by_operator_unless(total, step, fresh, outs)
        results: list[HostTensor | Value | None] = [None] * len(fresh)
        for position, out in outs.items():
            assert out.slot is not None
            results[position] = e.own(out.rank, out.slot)
        return results

    def _draw(
        self, step: P.CallOperator, fresh: Sequence[P.Result]
    ) -> list[HostTensor | Value | None]:
        """How far the generator of a GPU is, which goes on."""
        e, layout = self.emitter, fresh[0].layout
        assert layout is not None
        device = device_number(layout.device)
        out = self.fresh(*self.sizes(layout), layout.dtype, layout.device)
        increment = constant(int(dict(step.arguments)["increment"]))  # type: ignore[arg-type]
        words = e.memory_of(("gpu-library", "draw", device))
        operands = [words, increment, self.memory.data(out), self.stream(device)]
        e.unlock()  # who holds the generator's lock may wait for the interpreter's
        with self._clocked(step.callee):
            code = self.builder.call(e.support("irc_gpu_draw"), operands)
        self._by_operator_unless(code, step, fresh, {0: out})
        assert out.slot is not None
        return [e.own(out.rank, out.slot)]

    def _by_operator_unless(
        self, code: Value, step: P.CallOperator, fresh: Sequence[P.Result],
        outs: Mapping[int, HostTensor],
    ) -> None:  # fmt: skip
        """Where `code` isn't 0, have the operator make the results `outs`."""
        b, e = self.builder, self.emitter
        with b.if_then(b.icmp_signed("!=", code, I32(0)), likely=False), self.apart():
            others = super().call_operator(step, fresh)
            self.kept.clear()
            for position, out in outs.items():
                other = others[position]
                assert isinstance(other, HostTensor)
                assert out.slot is not None and other.slot is not None
                b.store(out.handle, e.slot(other.slot))
                b.store(other.handle, e.slot(out.slot))

    @contextmanager
    def apart(self) -> Iterator[None]:
        bases, streams = dict(self.bases), dict(self.streams)
        with super().apart():
            yield
        self.bases, self.streams = bases, streams
        self.kept.clear()

    # Reading

    def item(self, step: P.ReadItem) -> None:
        layout = self.places[step.source].layout
        asserted = self.late.get(self.number)
        if asserted is not None:
            check = self.program.steps[asserted]
            assert isinstance(check, P.AssertValue)
            self._check_late(step, layout, check)
            self.scalars[step.register] = I1(1)
        elif layout.device == "cpu":
            super().item(step)
        else:
            self._read(step, layout)

    def _check_late(self, step: P.ReadItem, layout: P.Layout, check: P.AssertValue) -> None:
        """Leave a check of truth values behind: in the GPU's ring, else by Python."""
        e, b, device = self.emitter, self.builder, device_number(layout.device)
        key = ("late-check", device, bool(step.every), check.error, check.message)
        handle = self.tensor(step.source).handle
        count = _dense_count(layout)
        if count is None:
            call_object(e, key, [handle], [], [])
            return
        fail = e.object(("late-fail", device, check.error, check.message))
        operands = [self.table, constant(device), self.stream(device), self.data(step.source)]
        e.lock()  # which guards the ring
        left = b.call(e.support("irc_gpu_late"), [*operands, constant(count), fail])
        with b.if_then(b.icmp_signed("!=", left, I32(0)), likely=False):
            call_object(e, key, [handle], [], [])

    def _start_reads(self, number: int) -> None:
        """Start the copies of the numbers that are there behind a step."""
        for waiting in self.starts.get(number, ()):
            read = self.program.steps[waiting]
            assert isinstance(read, P.ReadItem)
            layout, data = self.places[read.source].layout, self.data(read.source)
            device, tensor = device_number(layout.device), self.tensor(read.source)
            self.on(device)
            self.early.start(
                waiting, device, data, layout.element_bytes, self.stream(device),
                functools.partial(self._read_now, tensor, layout.dtype),
            )  # fmt: skip

    def _read(self, step: P.ReadItem, layout: P.Layout) -> None:
        """Wait for the GPU, without the lock, and take the element."""
        e, b = self.emitter, self.builder
        if self.number in self.early.rooms:
            room = self.early.end(self.number)
        else:
            room, tensor = e.alloca(I64), self.tensor(step.source)
            if step.every:
                call = AtenCall("aten.all.default", {"self": tensor}, (0,), device="cuda")
                (tensor,) = call_aten(e, call, floating=False)  # type: ignore[assignment]
            self._read_now(tensor, layout.dtype, room)
        self.scalars[step.register] = load_item(b, room, layout.dtype, step.kind)

    def _read_now(self, tensor: HostTensor, dtype: str, room: Value) -> None:
        """Have torch read the element into memory."""
        e, b = self.emitter, self.builder
        function = e.declare(f"aoti_torch_item_{dtype}", I32, (PTR, PTR))
        e.unlock()
        code = b.call(function, [tensor.handle, room])
        e.lock()
        from irc.boundary.templates import Dynamic

        replay = ("aten-replay", "aten._local_scalar_dense.default", (("self", Dynamic(0)),))
        e.fail_if_error(code, replay, [tensor.handle])


def _dense_count(layout: P.Layout) -> int | None:
    """How many bytes of truth values an array has; None where that isn't known, or others lie
    between them."""
    count = 1
    for size, stride in reversed(list(zip(layout.sizes, layout.strides or (), strict=True))):
        if not isinstance(size, int) or (size > 1 and stride != count):
            return None
        count *= size
    return count if 0 < count <= RING_BYTES else None


__all__ = ["LATE_ERRORS", "TABLE", "GpuLowering", "emit_gpu_host", "refusal"]
