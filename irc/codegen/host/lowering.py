"""A `HostProgram` as a native host function, step by step through a `HostEmitter`.

    code = emit_host(program)          # text of an LLVM module that exports `ENTRY`

A tensor's handle is made only when an operator or the caller needs it: kernels take the data
pointer alone, so memory in the arena and views of it cost nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs
from llvmlite import ir

from irc.codegen.host.apart import made_apart, only_within
from irc.codegen.host.arguments import HostArguments
from irc.codegen.host.aten import AtenCall, call_aten, call_object
from irc.codegen.host.blas import emit_product, small_products
from irc.codegen.host.dims import DimEmitter
from irc.codegen.host.emitter import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Arena,
    HostEmitter,
    HostTensor,
    Size,
    TensorSpec,
    Value,
    as_value,
    constant,
)
from irc.codegen.host.items import load_item
from irc.codegen.host.kernel_calls import KernelCalls
from irc.codegen.host.memory import HostMemory
from irc.codegen.host.names import ENTRY, kernel_symbol
from irc.codegen.host.operator_results import list_length, split_results
from irc.codegen.host.results import HostResults
from irc.codegen.host.support import KIND_BOOL, KIND_FLOAT, KIND_INT, KIND_TENSOR
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import SIGNS, Dim, Symbol, dim_product
from irc.program import host_program as P
from irc.program.liveness import dying_after
from irc.target import Target

_KINDS = {"tensor": KIND_TENSOR, "int": KIND_INT, "float": KIND_FLOAT, "bool": KIND_BOOL}


@attrs.frozen
class EmittedHost:
    """The text of the module and what its loader needs."""

    text: str
    slots: tuple[Any, ...]
    externals: frozenset[str]


def emit_host(program: P.HostProgram, target: Target) -> EmittedHost:
    """The native form of `program`; it exports `ENTRY` and needs the kernels by `kernel_symbol`.

    A kernel of at most the target's `serial` scalar operations runs on one thread, and a piece of a
    larger one has as many.
    """
    module = ir.Module("host", context=ir.Context())
    emitter = HostEmitter(module, ENTRY, arguments=len(program.arguments))
    Lowering(program, emitter, target).run()
    return EmittedHost(str(module), tuple(emitter.slot_keys), frozenset(emitter.externals))


@attrs.define(eq=False)
class ArrayPlace:
    """A tensor register: how to get its address and, when asked for, its handle."""

    layout: P.Layout
    make_data: Callable[[], Value] | None
    make_handle: Callable[[], HostTensor]
    tensor: HostTensor | None = None
    address: Value | None = None


class Lowering:
    def __init__(self, program: P.HostProgram, emitter: HostEmitter, target: Target) -> None:
        self.program, self.emitter = program, emitter
        self.serial, self.unlocked = target.processor.serial, target.unlocked_work
        self.builder = emitter.builder
        self.arguments, self.memory = HostArguments(emitter), HostMemory(emitter)
        self.kernels, self.results = KernelCalls(emitter), HostResults(emitter)
        self.dims = DimEmitter(emitter)
        self.places: dict[int, ArrayPlace] = {}
        self.scalars: dict[int, Value] = {}
        self.arena: Arena | None = None
        #: Arrays of bytes as arrays of a dtype, of which views are made.
        self.retyped: dict[tuple[int, str], HostTensor] = {}
        self.pending: list[tuple[str, P.Result, HostTensor]] = []
        self.products = small_products(program, target.small_product)
        self.argument_registers = {a.register for a in program.arguments}
        self.constants = {s.register: s.key for s in program.steps if isinstance(s, P.LoadConstant)}

    def run(self) -> None:
        self._arguments()
        calls_aten = any(
            isinstance(s, P.CopyInto | P.Control)
            or (isinstance(s, P.CallOperator) and id(s) not in self.products)
            for s in self.program.steps
        )
        views = any(self._is_argument_view(o) for o in self.program.outputs)
        self.begin(calls_aten or views)
        self._late_checks()
        self._steps()
        self.emitter.finish([self._output(o) for o in self.program.outputs])

    def begin(self, below_autograd: bool) -> None:
        """What comes between the checks of the arguments and the steps."""
        self.emitter.begin(below_autograd=below_autograd)

    def _steps(self) -> None:
        """Emit the steps; what dies on the way is freed unless it dies with the last one."""
        same = dict(
            (result.register, argument)
            for step in self.program.steps
            if isinstance(step, P.CallOperator)
            for result, argument in split_results(step)[1]
        )
        dying = dying_after(self.program, same)
        numbers = {a.register: i for i, a in enumerate(self.program.arguments)}
        last = len(self.program.steps) - 1
        for number, step in enumerate(self.program.steps):
            self.step(number, step)
            for register in dying.get(number, ()) if number < last else ():
                if register in numbers:
                    self.arguments.release_argument(numbers[register])
                else:
                    self._release(register)

    def step(self, number: int, step: P.Step) -> None:
        """Emit a step of the program, which runs for the sizes that it is for."""
        when = getattr(step, "when", None)
        with nullcontext() if when is None else only_within(self, when):
            getattr(self, _EMIT[type(step)])(step)

    def apart(self) -> AbstractContextManager[None]:
        """What is made inside is not there behind it: it may not run."""
        return made_apart(self)

    def _release(self, register: int) -> None:
        """Free an owned tensor early; one whose sizes remain to be checked stays until the end."""
        place = self.places.get(register)
        if place is None or place.tensor is None:
            return
        if all(tensor is not place.tensor for _, _, tensor in self.pending):
            self.emitter.release(place.tensor)

    # Arguments

    def _arguments(self) -> None:
        for index, argument in enumerate(self.program.arguments):
            if argument.kind != "tensor":
                make = getattr(self.arguments, f"argument_{argument.kind}", None)
                if make is None:
                    raise InvalidIR(f"a program can't take a {argument.kind} as {argument.name}")
                self.scalars[argument.register] = make(index)
                continue
            layout = argument.layout
            assert layout is not None
            fixed = TensorSpec(
                dtype_code(layout.dtype), _constants(layout.sizes),
                None if layout.strides is None else _constants(layout.strides),
            )  # fmt: skip
            self.borrow(argument.register, layout, self.argument(index, layout, fixed))
        for bind in self.program.bindings:
            value = self._bound_value(bind)
            if bind.symbol in self.dims.symbols:
                self.arguments.require_equal(value, self.dims.symbols[bind.symbol])
            self.dims.bind(bind.symbol, value)
            for sign, bound in ((">=", bind.minimum), ("<=", bind.maximum)):
                if bound is not None and not (sign == ">=" and bound <= 0 and bind.dim is not None):
                    limit = constant(bound)
                    self.arguments.require(self.builder.icmp_signed(sign, value, limit))
        for argument, dim, size, value in self._symbolic_dims(native=True):
            self._require_dim(argument, dim, size, value)

    def _symbolic_dims(self, native: bool) -> list[tuple[P.Argument, Dim, Value | None, Value]]:
        """(argument, expression, size when it is a stride, value) that remain to be compared."""
        checked: list[tuple[P.Argument, Dim, Value | None, Value]] = []
        own = {(b.register, b.dim, b.stride, b.symbol) for b in self.program.bindings}
        for argument in self.program.arguments:
            layout = argument.layout
            if layout is None:
                continue
            tensor = self.tensor(argument.register)
            for stride, dims in ((False, layout.sizes), (True, layout.strides or ())):
                for i, dim in enumerate(dims):
                    if isinstance(dim, int) or not self.dims.bound([dim]):
                        continue
                    name = dim.name if isinstance(dim, Symbol) else ""
                    if (argument.register, i, stride, name) in own:
                        continue
                    if self.dims.native(dim) is not native:
                        continue
                    size = self.memory.size(tensor, i)
                    value = self.memory.stride(tensor, i) if stride else size
                    checked.append((argument, dim, size if stride else None, value))
        return checked

    def _require_dim(
        self, argument: P.Argument, dim: Dim, size: Value | None, value: Value
    ) -> None:
        self.arguments.require(self._dim_holds(dim, size, value))

    def _dim_holds(self, dim: Dim, size: Value | None, value: Value) -> Value:
        b = self.builder
        same = b.icmp_signed("==", value, as_value(self.dims(dim)))
        if size is None:
            return same
        return b.or_(same, b.icmp_signed("<=", size, constant(1)))

    def _late_checks(self) -> None:
        """Sizes whose expressions only Python can compute are compared after the others."""
        for argument, dim, size, value in self._symbolic_dims(native=False):
            wrong = self.builder.not_(self._dim_holds(dim, size, value))
            message = f"argument {argument.name} isn't of the size {dim} that was compiled for"
            self.emitter.fail_if(wrong, ("raise", "ValueError", message), [])

    def _bound_value(self, bind: P.Bind) -> Value:
        if bind.offset:
            return self.memory.storage_offset(self.tensor(bind.register))
        if bind.dim is None:
            value = as_value(self.scalars[bind.register])
            is_bool = value.type == ir.IntType(1)
            return self.builder.zext(value, I64) if is_bool else value
        tensor = self.tensor(bind.register)
        read = self.memory.stride if bind.stride else self.memory.size
        return read(tensor, bind.dim)

    def argument(self, index: int, layout: P.Layout, fixed: TensorSpec) -> HostTensor:
        """The tensor that is argument `index`, checked."""
        return self.arguments.argument_tensor(index, fixed)

    # Tensors

    def borrow(self, register: int, layout: P.Layout, tensor: HostTensor) -> None:
        self.places[register] = ArrayPlace(layout, None, lambda: tensor, tensor)

    def tensor(self, register: int) -> HostTensor:
        """The tensor with its handle."""
        place = self.places[register]
        if place.tensor is None:
            place.tensor = place.make_handle()
            if place.tensor.data is None:
                place.tensor.data = place.address
        return place.tensor

    def data(self, register: int) -> Value:
        """The address of the first element."""
        place = self.places[register]
        if place.address is None:
            if place.tensor is None and place.make_data is not None:
                place.address = place.make_data()
            else:
                place.address = self.memory.data(self.tensor(register))
        return place.address

    def sizes(self, layout: P.Layout) -> tuple[list[Size], list[Size]]:
        assert layout.strides is not None
        return self.dims.many(layout.sizes), self.dims.many(layout.strides)

    def alloc(self, step: P.Alloc) -> None:
        layout, offset = step.layout, step.offset
        dtype = dtype_code(layout.dtype)
        if offset is None or not self.in_arena(step):
            size = self.dims(bytes_of(layout))
            tensor = self.memory.kept(*self.sizes(layout), dtype, size, brief=step.temporary)
            self.borrow(step.register, layout, tensor)
            return
        if self.arena is None:
            self.arena = self.memory.arena(self.arena_bytes())
        arena, at = self.arena, self.dims(offset)
        self.places[step.register] = ArrayPlace(
            layout,
            lambda: self.memory.arena_pointer(arena, at),
            lambda: self.memory.arena_tensor(arena, at, *self.sizes(layout), dtype),
        )

    def flag(self, step: P.Flag) -> None:
        """Only kernels of a GPU check something."""
        raise InvalidIR(f"a program of the CPU has a flag: {step.message}")

    def in_arena(self, step: P.Alloc) -> bool:
        """The arena's size is known from the arguments; what isn't has memory of its own."""
        dims = (step.offset, *step.layout.sizes, *(step.layout.strides or ()))
        known = self.program.argument_symbols
        return all(isinstance(d, int) or d.symbols <= known for d in dims if d is not None)

    def arena_bytes(self) -> Size:
        total: Size = 0
        for step in self.program.steps:
            if isinstance(step, P.Alloc) and step.offset is not None and self.in_arena(step):
                end = self.dims(step.offset + bytes_of(step.layout))
                total = self.larger(total, end)
        return total

    def larger(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        a, b = as_value(a), as_value(b)
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def view(self, step: P.View) -> None:
        source, layout = step.source, step.layout
        if layout.strides is None:
            self.places[step.register] = self.places[source]
            return
        offset = self.dims(step.offset)

        def data() -> Value:
            if isinstance(offset, int):
                count: Value = constant(offset * layout.element_bytes)
            else:
                count = self.builder.mul(offset, constant(layout.element_bytes))
            return self.builder.gep(self.data(source), [count], source_etype=I8)

        def handle() -> HostTensor:
            return self.memory.view(self.typed(source, layout), *self.sizes(layout), offset)

        self.places[step.register] = ArrayPlace(layout, data, handle)

    def typed(self, source: int, layout: P.Layout) -> HostTensor:
        """A tensor to make a view of with this layout: an array of bytes has one for each dtype."""
        if self.places[source].layout.dtype == layout.dtype:
            return self.tensor(source)
        tensor = self.retyped.get((source, layout.dtype))
        if tensor is None:
            from irc.boundary.aten_paths import Named

            arguments = {"self": self.tensor(source), "dtype": Named("dtype", layout.dtype)}
            device = layout.device.partition(":")[0]
            call = AtenCall("aten.view.dtype", arguments, (1,), device=device)
            (tensor,) = call_aten(self.emitter, call, floating=True)  # type: ignore[assignment]
            assert tensor is not None
            self.retyped[source, layout.dtype] = tensor
        return tensor

    def constant(self, step: P.LoadConstant) -> None:
        tensor = self.memory.constant_tensor(("constant", step.key), len(step.layout.sizes))
        self.borrow(step.register, step.layout, tensor)

    # Scalars and facts

    def bind(self, step: P.Bind) -> None:
        value = self._bound_value(step)
        b = self.builder
        for sign, bound in (("<", step.minimum), (">", step.maximum)):
            if bound is not None:
                wrong = b.icmp_signed(sign, value, constant(bound))
                self.emitter.fail_if(wrong, ("range", step.symbol, step.span), [value])
        self.dims.bind(step.symbol, value)
        self._settle()

    def symbol_value(self, step: P.SymbolValue) -> None:
        self.scalars[step.register] = as_value(self.dims(step.dim))

    def check(self, step: P.Assert) -> None:
        lhs, rhs = as_value(self.dims(step.lhs)), as_value(self.dims(step.rhs))
        holds = self.builder.icmp_signed(SIGNS[step.relation], lhs, rhs)
        key = ("raise", step.error, step.message)
        self.emitter.fail_if(self.builder.not_(holds), key, [])

    def check_value(self, step: P.AssertValue) -> None:
        wrong = self.builder.not_(self.scalars[step.register])
        self.emitter.fail_if(wrong, ("raise", step.error, step.message), [])

    def item(self, step: P.ReadItem) -> None:
        source = self.places[step.source].layout
        if step.every:
            # Elements are bytes 0 and 1: all are true if there is no 0.
            search = self.emitter.declare("memchr", PTR, (PTR, I32, I64))
            count = as_value(self.dims(dim_product(source.sizes)))
            zero = self.builder.call(search, [self.data(step.source), I32(0), count])
            self.scalars[step.register] = self.builder.icmp_unsigned("==", zero, PTR(None))
            return
        self.scalars[step.register] = load_item(
            self.builder, self.data(step.source), source.dtype, step.kind
        )

    # Work

    def launch(self, step: P.Launch) -> None:
        pointers = [self.data(r) for r in step.tensors]
        scalars = [as_value(self.dims.symbols[s]) for s in step.symbols]
        kinds = [PTR] * len(pointers) + [I64] * (len(scalars) + 2)
        kernel = self.emitter.module.globals.get(symbol := kernel_symbol(step.kernel))
        if kernel is None:
            kernel = ir.Function(self.emitter.module, ir.FunctionType(VOID, kinds), symbol)
        grid, arguments = self.dims(step.grid), [*pointers, *scalars]
        work = self.dims(step.work) if step.work is not None else 1
        self._unlock_for(grid, work)
        if isinstance(grid, int) and isinstance(work, int) and grid * work <= self.serial:
            return self.kernels.call_kernel(kernel, [*arguments, constant(0), constant(grid)])
        layouts = {n: self.places[step.tensors[n]].layout for n in step.private}
        own = {n: (self.dims(y.part_bytes), self.dims(y.sizes[0])) for n, y in layouts.items()}
        self.kernels.call_kernel(kernel, arguments, extent=grid, grain=self._grain(work), own=own)

    def _grain(self, work: Size) -> Size:
        if isinstance(work, int):
            return max(1, -(-self.serial // max(1, work)))
        b = self.builder
        positive = b.select(b.icmp_signed(">", work, constant(0)), work, constant(1))
        return b.add(b.sdiv(constant(self.serial - 1), positive), constant(1))

    def _unlock_for(self, grid: Size, work: Size) -> None:
        """Let other Python threads run during a long kernel."""
        if isinstance(grid, int) and isinstance(work, int):
            if grid * work >= self.unlocked:
                self.emitter.unlock()
            return
        total = self.builder.mul(as_value(grid), as_value(work))
        self.emitter.unlock_if(self.builder.icmp_signed(">=", total, constant(self.unlocked)))

    def copy(self, step: P.CopyInto) -> None:
        arguments = {"self": self.tensor(step.target), "src": self.tensor(step.source)}
        call_aten(self.emitter, AtenCall("aten.copy_.default", arguments, (0,)), floating=True)

    def call_aten(self, step: P.CallOperator) -> None:
        fresh, aliased = split_results(step)
        product = self.products.get(id(step))
        if product is not None:
            with self._clocked(step.callee):
                emit_product(self.emitter, product, self.data)
            for result, argument in aliased:
                self.places[result.register] = self.places[argument]
            return
        results = self.call_operator(step, fresh)
        for result, argument in aliased:
            self.places[result.register] = self.places[argument]
        if not step.results:
            return
        if len(results) != len(fresh):
            raise InvalidIR(f"{step.callee} has {len(results)} results, {len(fresh)} expected")
        self.keep(step.callee, fresh, results)

    def call_operator(
        self, step: P.CallOperator, fresh: Sequence[P.Result]
    ) -> list[HostTensor | Value | None]:
        """Call ATen's operator; the results that are `fresh`."""
        arguments = {name: self.content(c) for name, c in step.arguments}
        ranks = [len(r.layout.sizes) for r in fresh if r.layout is not None]
        call = AtenCall(
            step.callee, arguments, ranks, list_length=list_length(step), device=self.device(step)
        )
        with self._clocked(step.callee):
            return call_aten(self.emitter, call, floating=step.floating, path=step.path)

    def device(self, step: P.CallOperator) -> str:
        """Of which kind of device all tensors of a call are: "" where they differ."""
        return "cpu"

    def control(self, step: P.Control) -> None:
        """A call of the Python object that runs the step's programs, which are native, too."""
        number = next(k for k, s in enumerate(self.program.steps) if s is step)
        operands = [self.content(P.Register(r)) for r in step.operands]
        values = [v.handle if isinstance(v, HostTensor) else v for v in operands]
        kinds = [_KINDS[result.kind] for result in step.results]
        ranks = [len(r.layout.sizes) for r in step.results if r.layout is not None]
        results = call_object(self.emitter, ("control", number), values, kinds, ranks)
        self.keep(f"flow.{step.kind}", step.results, results)

    def keep(self, who: str, results: Sequence[P.Result], values: Sequence[Any]) -> None:
        """Take note of what a call gave; tensors remain to be checked."""
        for result, value in zip(results, values, strict=True):
            if result.kind == "none":
                continue
            if isinstance(value, HostTensor):
                assert result.layout is not None
                self.borrow(result.register, result.layout, value)
                if result.used:
                    self.pending.append((who, result, value))
            else:
                assert value is not None
                self.scalars[result.register] = value
        self._settle()

    def _clocked(self, callee: str) -> AbstractContextManager[None]:
        return self.emitter.clocked(callee) if self.program.clocked else nullcontext()

    def content(self, content: Any) -> Any:
        from irc.boundary import aten_paths

        if isinstance(content, P.Register):
            if content.index in self.places:
                return self.tensor(content.index)
            if self.program.kinds[content.index] == "none":
                return None
            return self.scalars[content.index]
        if isinstance(content, P.Size):
            return as_value(self.dims(content.dim))
        if isinstance(content, P.NamedArgument):
            return aten_paths.Named(content.kind, content.name)  # type: ignore[arg-type]
        if isinstance(content, tuple):
            return [self.content(c) for c in content]
        return content

    def _settle(self) -> None:
        """Check results of operators as soon as every symbol in their types has a value."""
        later = []
        for entry in self.pending:
            layout = entry[1].layout
            assert layout is not None
            if self.dims.bound((*layout.sizes, *(layout.strides or ()))):
                self._check_result(entry[0], layout, entry[2])
            else:
                later.append(entry)
        self.pending = later

    def _check_result(self, callee: str, layout: P.Layout, tensor: HostTensor) -> None:
        sizes = self.dims.many(layout.sizes)
        strides = None if layout.strides is None else self.dims.many(layout.strides)
        self.memory.fit_result(callee, tensor, sizes, strides, dtype_code(layout.dtype))

    # Results

    def _is_argument_view(self, output: P.Output) -> bool:
        if output.register is None or output.kind != "tensor":
            return False
        root, _ = self.program.root(output.register)
        return root in self.argument_registers and output.register not in self.argument_registers

    def _output(self, output: P.Output) -> Callable[[], Value]:
        results = self.results
        if output.register is None:
            return results.result_none()
        if output.kind != "tensor":
            make = getattr(results, f"result_{output.kind}")
            return make(self.scalars[output.register])
        if self._is_argument_view(output):
            return results.result_tensor(self._argument_view(output.register))
        if output.register in self.constants:
            return results.result_object(("constant", self.constants[output.register]))
        return results.result_tensor(self.tensor(output.register))

    def _argument_view(self, register: int) -> HostTensor:
        """A view of an argument that autograd and version counters know as one."""
        root, offset = self.program.root(register)
        base, layout = self.tensor(root), self.program.layouts[register]
        if layout.strides is None:
            layout = self.places[register].layout
        sizes, strides = self.sizes(layout)
        start = self.builder.add(self.memory.storage_offset(base), as_value(self.dims(offset)))
        call = AtenCall(
            "aten.as_strided.default",
            {"self": base, "size": sizes, "stride": strides, "storage_offset": start},
            (len(sizes),),
        )
        (view,) = call_aten(self.emitter, call, floating=True)
        assert isinstance(view, HostTensor)
        return view


def dtype_code(name: str) -> int:
    """torch's integer for a dtype by its name."""
    import torch

    from irc.boundary import torch_abi

    return torch_abi.dtype_code(getattr(torch, name))


def bytes_of(layout: P.Layout) -> Dim:
    """Bytes from the first element to behind the last one (too many for an empty tensor)."""
    assert layout.strides is not None
    count: Dim = 1
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        count = count + (size - 1) * stride
    return count * layout.element_bytes


def _constants(dims: Sequence[Dim]) -> tuple[int | None, ...]:
    return tuple(d if isinstance(d, int) else None for d in dims)


_EMIT: dict[type, str] = {
    P.Bind: "bind",
    P.SymbolValue: "symbol_value",
    P.Assert: "check",
    P.AssertValue: "check_value",
    P.Alloc: "alloc",
    P.Flag: "flag",
    P.Launch: "launch",
    P.View: "view",
    P.LoadConstant: "constant",
    P.ReadItem: "item",
    P.CopyInto: "copy",
    P.CallOperator: "call_aten",
    P.Control: "control",
}
