"""Steps of a host program made ready: what doesn't change from call to call is worked out once.

`prepared(step, owner)` gives a function of one run of `PythonHost`. Fresh arrays, launches, views
and calls of operators with constant sizes have functions of their own; any other step is run by
`PythonHost` as it stands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from irc.analysis.calls import OUT_VARIANTS
from irc.boundary import aten_paths
from irc.program import host_program as P

Ready = Callable[[Any], None]

# torch's own bindings of these parse their arguments faster than `torch.ops` does.
BINDINGS: Mapping[str, Callable[..., Any]] = {
    out: getattr(torch, out.split(".")[1]) for out in OUT_VARIANTS.values()
}


@functools.cache
def dtype_named(name: str) -> torch.dtype:
    """torch's dtype by its name; AttributeError for a name that it doesn't have."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def prepared(step: P.Step, owner: Any, otherwise: Callable[[Any, Any], None]) -> Ready:
    """What runs `step` in a run of `owner`; `otherwise(run, step)` where nothing is constant."""
    make = _PREPARE.get(type(step))
    ready = None if make is None else make(step, owner)
    if ready is not None:
        return ready

    def run_step(run: Any) -> None:
        otherwise(run, step)

    return run_step


def constants(dims: Sequence[Any] | None) -> tuple[int, ...] | None:
    """The dims as integers; None where one is symbolic, and for None."""
    if dims is None or not all(isinstance(d, int) for d in dims):
        return None
    return tuple(dims)


# -- devices


def gpu_of(program: P.HostProgram) -> int | None:
    """The number of the GPU that all of a program's arrays are on, numbers of the CPU apart; None
    for a program of the CPU or of several GPUs."""
    devices = [torch.device(name) for name in program.devices if name != "cpu"]
    if len(devices) != 1 or devices[0].type != "cuda":
        return None
    return devices[0].index


def surely_on_gpu(program: P.HostProgram) -> frozenset[int]:
    """The registers that hold arrays of the GPU; a number without dimensions that comes from
    outside may be the CPU's all the same."""
    layouts = program.layouts.items()
    registers = {r for r, layout in layouts if layout.device != "cpu" and layout.sizes}
    for step in program.steps:
        if isinstance(step, P.Alloc | P.LoadConstant | P.Flag) and step.layout.device != "cpu":
            registers.add(step.register)
        elif isinstance(step, P.View):
            (registers.add if step.source in registers else registers.discard)(step.register)
    return frozenset(registers)


# -- steps


def _alloc(step: P.Alloc, owner: Any) -> Ready | None:
    layout, register = step.layout, step.register
    sizes, strides = constants(layout.sizes), constants(layout.strides)
    if sizes is None or strides is None:
        return None
    dtype, device = dtype_named(layout.dtype), torch.device(layout.device)

    def alloc(run: Any) -> None:
        run.values[register] = torch.empty_strided(sizes, strides, dtype=dtype, device=device)

    fresh = _gpu_memory() if device.type == "cuda" and device.index == owner.gpu else None
    if fresh is None:
        return alloc

    def alloc_on_gpu(run: Any) -> None:
        run.values[register] = fresh(sizes, strides, dtype)

    return alloc_on_gpu


@functools.cache
def _gpu_memory() -> Callable[..., torch.Tensor] | None:
    """torch's short way to memory on the current GPU, where this torch has one."""
    guards = getattr(torch._C._dynamo, "guards", None)
    return getattr(guards, "_empty_strided_cuda", None)


def _launch(step: P.Launch, owner: Any) -> Ready | None:
    make = getattr(owner.kernels, "launcher", None)
    grid, registers, symbols = step.grid, step.tensors, step.symbols
    if make is None or owner.gpu is None or not isinstance(grid, int):
        return None
    if not grid:
        return lambda run: None
    if not owner.on_gpu.issuperset(registers):
        return None
    start, gpu = make(step.kernel), owner.gpu

    def launch(run: Any) -> None:
        values = run.values
        numbers = [run.symbols[s] for s in symbols] if symbols else ()
        start([values[r] for r in registers], numbers, grid, gpu, run.stream)

    return launch


def _view(step: P.View, owner: Any) -> Ready | None:
    sizes, strides = constants(step.layout.sizes), constants(step.layout.strides)
    offset, register, source = step.offset, step.register, step.source
    if owner.program.layouts[source].dtype != step.layout.dtype:
        return None
    if sizes is None or strides is None or not isinstance(offset, int):
        return None

    def view(run: Any) -> None:
        whole = run.values[source]
        start = whole.storage_offset() + offset
        run.values[register] = whole.as_strided(sizes, strides, start)

    return view


def typed(source: torch.Tensor, step: P.View, program: P.HostProgram) -> torch.Tensor:
    """The source of a view, as an array of the view's elements where it is one of bytes."""
    if program.layouts[step.source].dtype == step.layout.dtype:
        return source
    return source.view(dtype_named(step.layout.dtype))


def _call(step: P.CallOperator, owner: Any) -> Ready | None:
    layouts = [r.layout for r in step.results]
    if owner.program.clocked or any(
        layout is not None and (constants(layout.sizes) is None
                                or constants(layout.strides or ()) is None)
        for layout in layouts
    ):  # fmt: skip
        return None
    try:
        op = aten_paths.find_operator(step.callee)
    except KeyError:  # the call says so when the program gets there
        return None
    arguments = dict(step.arguments)
    positional: list[Any] = []
    for argument in op._schema.arguments:
        if argument.kwarg_only or argument.name not in arguments:
            break
        positional.append(_content(arguments.pop(argument.name)))
    named = [(name, *_content(content)) for name, content in arguments.items()]
    function = BINDINGS.get(step.callee) or aten_paths.function_of(op)
    results = [(r.register, _expectation(r)) for r in step.results]

    def call(run: Any) -> None:
        values = run.values
        first = [values[c] if held else run.content(c) if varies else c
                 for held, varies, c in positional]  # fmt: skip
        rest = {n: values[c] if held else run.content(c) if varies else c
                for n, held, varies, c in named}  # fmt: skip
        outcome = function(*first, **rest)
        if results:
            _keep(run, step, results, outcome)

    return call


def _content(content: Any) -> tuple[bool, bool, Any]:
    """(is it a register's, does it change from call to call, the register or the content)."""
    if isinstance(content, P.Register):
        return True, True, content.index
    if isinstance(content, P.Size) and isinstance(content.dim, int):
        return False, False, content.dim
    if isinstance(content, P.NamedArgument):
        return False, False, aten_paths.Named(content.kind, content.name).resolve()  # type: ignore[arg-type]
    varies = isinstance(content, tuple | P.Size)
    return False, varies, content


def _expectation(result: P.Result) -> tuple[Any, ...] | None:
    """(sizes, strides, dtype) that a used result should have; None for any."""
    layout = result.layout
    if layout is None or not result.used:
        return None
    strides = None if layout.strides is None else constants(layout.strides)
    return constants(layout.sizes), strides, dtype_named(layout.dtype), layout


def _keep(run: Any, step: P.CallOperator, results: Sequence[Any], outcome: Any) -> None:
    """Put an operator's results into their registers, with the strides that are expected."""
    items = outcome if isinstance(outcome, tuple | list) else (outcome,)
    flat = [x for i in items for x in (i if isinstance(i, tuple | list) else (i,))]
    run.counted(step, len(flat))
    for (register, expected), content in zip(results, flat, strict=True):
        if expected is not None:
            sizes, strides, dtype, layout = expected
            if (content.shape != sizes or content.stride() != strides
                    or content.dtype is not dtype):  # fmt: skip
                content = run.as_expected(step.callee, content, layout)
        run.values[register] = content


_PREPARE: dict[type, Callable[[Any, Any], Ready | None]] = {
    P.Alloc: _alloc,
    P.Launch: _launch,
    P.View: _view,
    P.CallOperator: _call,
}
