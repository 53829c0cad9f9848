"""Runs a `HostProgram` in Python: always right, microseconds slower than the native function.

It serves where the native function can't run (`torch_abi`), and takes the calls that the native
checks hand over. Kernels are reached through a `KernelTable`, so that another target can bring
its own launches.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from irc.boundary import aten_paths
from irc.ir.diagnostics import InternalError
from irc.ir.symbols import HOLDS, Dim, evaluate, free_symbols
from irc.program import clocks
from irc.program import host_program as P
from irc.program.devices import device_number
from irc.program.liveness import dying_after
from irc.runtime import host_steps, late_checks, late_flags
from irc.runtime.arguments import ArgumentError
from irc.runtime.control import Program, run_control
from irc.runtime.cpu_kernels import KernelTable
from irc.runtime.errors import raise_error, raise_misfit, raise_out_of_range
from irc.runtime.host_steps import dtype_named


def argument_symbols(
    program: P.HostProgram, known: Mapping[str, int], contents: Sequence[Any]
) -> Any:
    """The values of the symbols that arguments bind, ranges checked; raises ArgumentError."""
    symbols = dict(known)
    if not program.bindings:
        return symbols
    values = {a.register: content for a, content in zip(program.arguments, contents, strict=True)}
    names = {a.register: a.name for a in program.arguments}
    for bind in program.bindings:
        number = symbols.setdefault(bind.symbol, _bound(bind, values[bind.register]))
        if not _in_range(bind, number):
            what = names[bind.register]
            if bind.dim is not None:
                what += f".{'stride' if bind.stride else 'size'}({bind.dim})"
            elif bind.offset:
                what += ".storage_offset()"
            raise ArgumentError(f"{what} is {number}, the program was compiled for {bind.span}")
    return symbols


def _bound(bind: P.Bind, content: Any) -> int:
    if bind.offset:
        return int(content.storage_offset())
    if bind.dim is None:
        return int(content)
    return int(content.stride(bind.dim) if bind.stride else content.size(bind.dim))


def _in_range(bind: P.Bind, number: int) -> bool:
    low, high = bind.minimum, bind.maximum
    return (low is None or number >= low) and (high is None or number <= high)


class PythonHost:
    """`PythonHost(program, kernels, constants)(symbols, arguments)` gives the results.

    `programs` are the compiled programs that control flow calls, by name.
    """

    def __init__(
        self,
        program: P.HostProgram,
        kernels: KernelTable,
        constants: Mapping[str, torch.Tensor],
        programs: Mapping[str, Program] | None = None,
    ) -> None:
        self.program, self.kernels, self.constants = program, kernels, constants
        self.programs = programs or {}
        self.gpu = host_steps.gpu_of(program)
        self.on_gpu = host_steps.surely_on_gpu(program)
        self._registers = [a.register for a in program.arguments]
        self._results = [o.register for o in program.outputs]
        steps = [step for step in program.steps if isinstance(step, P.Flag)]
        #: Flags of the CPU, whose checks are told at once; the GPUs that have others.
        self.flags = {s.register: s for s in steps if s.layout.device == "cpu"}
        gpus = {device_number(s.layout.device) for s in steps if s.layout.device != "cpu"}
        self._told = tuple(gpus if self.gpu is None else gpus | {self.gpu})
        dying = dying_after(program)
        late = self._late()
        self._plan = [
            (late.get(number) or for_sizes(step, host_steps.prepared(step, self, _RUN[type(step)])),
             dying.get(number, ()))
            for number, step in enumerate(program.steps)
        ]  # fmt: skip

    def _late(self) -> dict[int, Callable[[Any], None]]:
        """What runs the steps of checks that nobody waits for, by their numbers."""
        gpu, steps = self.gpu, self.program.steps
        ready: dict[int, Callable[[Any], None]] = {}
        if not self.program.late_checks or gpu is None:
            return ready
        for number, asserted in late_checks.late_steps(self.program).items():
            item, check = steps[number], steps[asserted]
            assert isinstance(item, P.ReadItem) and isinstance(check, P.AssertValue)
            fail = functools.partial(raise_error, check.error, check.message)
            ready[number] = late_checks.prepared(item, gpu, fail)
            ready[asserted] = _nothing
        return ready

    def __call__(self, symbols: Mapping[str, int], arguments: Sequence[object]) -> list[object]:
        for gpu in self._told:
            late_checks.raise_failed(gpu)
        if self.gpu is not None and self.gpu != torch.cuda.current_device():
            with torch.cuda.device(self.gpu):
                return self._run(symbols, arguments)
        return self._run(symbols, arguments)

    def _run(self, symbols: Mapping[str, int], arguments: Sequence[object]) -> list[object]:
        bound = argument_symbols(self.program, symbols, arguments)
        stream = 0 if self.gpu is None else torch._C._cuda_getCurrentRawStream(self.gpu)
        run = _Run(self, bound, stream)
        values = run.values
        values.update(zip(self._registers, arguments, strict=True))
        for ready, dead in self._plan:
            ready(run)
            for register in dead:
                values.pop(register, None)
        return [None if r is None else values[r] for r in self._results]


def for_sizes(step: P.Step, ready: Callable[[Any], None]) -> Callable[[Any], None]:
    """What runs a step, for the sizes that it is for."""
    when = getattr(step, "when", None)
    if when is None:
        return ready

    def run_step(run: Any) -> None:
        if when.holds(run.dim(when.size)):
            ready(run)

    return run_step


def _nothing(run: Any) -> None:
    """The step of an assertion that another step has taken over."""


def flag_of(step: P.Flag) -> torch.Tensor:
    """The truth value of a check: a GPU's stands, the CPU's is one of this call."""
    if step.layout.device == "cpu":
        return torch.ones((), dtype=torch.bool)
    gpu = device_number(step.layout.device)
    return late_flags.flags_of(gpu).flag(step.error, step.message)


class _Run:
    """One call: the registers' contents and the symbols' values."""

    def __init__(self, owner: PythonHost, symbols: dict[str, int], stream: int = 0) -> None:
        self.owner, self.symbols, self.stream = owner, symbols, stream
        self.values: dict[int, Any] = {}
        self.pending: list[tuple[str, int, P.Layout, torch.Tensor]] = []

    def dim(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else evaluate(dim, self.symbols)

    def dims(self, dims: Sequence[Dim]) -> list[int]:
        return [d if isinstance(d, int) else evaluate(d, self.symbols) for d in dims]

    def bind(self, step: P.Bind) -> None:
        number = self.symbols[step.symbol] = _bound(step, self.values[step.register])
        if not _in_range(step, number):
            raise_out_of_range(step.symbol, step.span, number)
        self.settle()

    def symbol_value(self, step: P.SymbolValue) -> None:
        self.values[step.register] = self.dim(step.dim)

    def check(self, step: P.Assert) -> None:
        if not HOLDS[step.relation](self.dim(step.lhs), self.dim(step.rhs)):
            raise_error(step.error, step.message)

    def check_value(self, step: P.AssertValue) -> None:
        if not self.values[step.register]:
            raise_error(step.error, step.message)

    def alloc(self, step: P.Alloc) -> None:
        layout = step.layout
        assert layout.strides is not None
        sizes, strides = self.dims(layout.sizes), self.dims(layout.strides)
        self.values[step.register] = torch.empty_strided(
            sizes, strides, dtype=dtype_named(layout.dtype), device=layout.device
        )

    def launch(self, step: P.Launch) -> None:
        tensors = [self.values[r] for r in step.tensors]
        symbols = [self.symbols[s] for s in step.symbols]
        self.owner.kernels.launch(step.kernel, tensors, symbols, self.dim(step.grid))
        for position in step.outputs:
            flag = self.owner.flags.get(step.tensors[position])
            if flag is not None and not tensors[position]:
                raise_error(flag.error, flag.message)

    def flag(self, step: P.Flag) -> None:
        self.values[step.register] = flag_of(step)

    def view(self, step: P.View) -> None:
        source = host_steps.typed(self.values[step.source], step, self.owner.program)
        sizes = self.dims(step.layout.sizes)
        strides = source.stride() if step.layout.strides is None else step.layout.strides
        offset = source.storage_offset() + self.dim(step.offset)
        self.values[step.register] = source.as_strided(sizes, self.dims(strides), offset)

    def constant(self, step: P.LoadConstant) -> None:
        self.values[step.register] = self.owner.constants[step.key]

    def item(self, step: P.ReadItem) -> None:
        source = self.values[step.source]
        content = (source.all() if step.every else source).item()
        self.values[step.register] = {"int": int, "float": float, "bool": bool}[step.kind](content)

    def copy(self, step: P.CopyInto) -> None:
        self.values[step.target].copy_(self.values[step.source])

    def content(self, content: Any) -> Any:
        if isinstance(content, P.Register):
            return self.values[content.index]
        if isinstance(content, P.Size):
            return self.dim(content.dim)
        if isinstance(content, P.NamedArgument):
            return aten_paths.Named(content.kind, content.name).resolve()  # type: ignore[arg-type]
        if isinstance(content, tuple):
            number = aten_paths.complex_number(content)
            return [self.content(c) for c in content] if number is None else number
        return content

    def call_aten(self, step: P.CallOperator) -> None:
        op = aten_paths.find_operator(step.callee)
        arguments = {name: self.content(c) for name, c in step.arguments}
        positional = []
        for argument in op._schema.arguments:
            if argument.kwarg_only or argument.name not in arguments:
                break
            positional.append(arguments.pop(argument.name))
        start = time.perf_counter_ns()
        outcome = op(*positional, **arguments)
        if self.owner.program.clocked:
            clocks.add(step.callee, time.perf_counter_ns() - start)
        if not step.results:
            return
        items = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
        flat = [x for i in items for x in (i if isinstance(i, (tuple, list)) else (i,))]
        self.counted(step, len(flat))
        self.keep(step.callee, step.results, flat)

    def control(self, step: P.Control) -> None:
        results = run_control(step, self.owner.programs)(*(self.values[r] for r in step.operands))
        self.keep(f"flow.{step.kind}", step.results, results)

    def keep(self, who: str, results: Sequence[P.Result], contents: Sequence[Any]) -> None:
        """Put results into their registers, to be checked."""
        for result, content in zip(results, contents, strict=True):
            self.values[result.register] = content
            if result.layout is not None and result.used:
                self.pending.append((who, result.register, result.layout, content))
        self.settle()

    def counted(self, step: P.CallOperator, count: int) -> None:
        """Raise InternalError unless an operator gave as many results as its step says."""
        if count != len(step.results):
            raise InternalError(f"{step.callee} gave {count} results, not {len(step.results)}")

    def settle(self) -> None:
        """Check results of operators as soon as every symbol in their types is known."""
        later = []
        for entry in self.pending:
            callee, register, layout, content = entry
            dims = (*layout.sizes, *(layout.strides or ()))
            if not all(free_symbols(d) <= self.symbols.keys() for d in dims):
                later.append(entry)
                continue
            value = self.as_expected(callee, content, layout)
            if register in self.values:
                self.values[register] = value
        self.pending = later

    def as_expected(self, callee: str, content: torch.Tensor, layout: P.Layout) -> torch.Tensor:
        """The tensor itself, or a copy as the program was compiled for.

        Other strides and another dtype than the operator's shape function promised are mended.
        """
        sizes = self.dims(layout.sizes)
        raise_misfit(callee, sizes, content)
        dtype = dtype_named(layout.dtype)
        if layout.strides is None:
            return content.to(dtype)
        strides = self.dims(layout.strides)
        if content.dtype is dtype and all(
            s <= 1 or a == b for s, a, b in zip(sizes, content.stride(), strides, strict=True)
        ):
            return content
        return restrided(content, strides, dtype)


def restrided(
    content: torch.Tensor, strides: Sequence[int], dtype: torch.dtype | None = None
) -> torch.Tensor:
    """A copy of `content` with other strides, and another dtype if one is given."""
    target = torch.empty_strided(
        content.shape, strides, dtype=dtype or content.dtype, device=content.device
    )
    return target.copy_(content)


_RUN: dict[type, Callable[[_Run, Any], None]] = {
    P.Bind: _Run.bind,
    P.SymbolValue: _Run.symbol_value,
    P.Assert: _Run.check,
    P.AssertValue: _Run.check_value,
    P.Alloc: _Run.alloc,
    P.Flag: _Run.flag,
    P.Launch: _Run.launch,
    P.View: _Run.view,
    P.LoadConstant: _Run.constant,
    P.ReadItem: _Run.item,
    P.CopyInto: _Run.copy,
    P.CallOperator: _Run.call_aten,
    P.Control: _Run.control,
}
