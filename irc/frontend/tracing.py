"""Programs from Python functions without Dynamo: `irc.trace` and `irc.compile`."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import attrs
import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from irc.frontend import backend
from irc.frontend.freezing import freezer_of
from irc.frontend.fx import attention
from irc.frontend.fx.higher_order import expand_higher_order
from irc.frontend.fx.user_kernels import take_kernels
from irc.frontend.importing.importer import import_graph
from irc.frontend.importing.locations import is_torchs
from irc.ir.diagnostics import UserError
from irc.ir.module import ModuleOp
from irc.options.options import Options, parse_options
from irc.target import Target
from irc.target.attribute import carry


class _TracedCalls(TorchFunctionMode):
    """Tells torch.fx which line of the user's program calls each torch function. masks: where not
    None, calls of attention are traced with the masks that they need, and it tells of them."""

    def __init__(self, masks: attention.MaskRemarks | None) -> None:
        super().__init__()
        self._masks = masks

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if torch.compiler.is_compiling():  # Dynamo captures the graphs of control flow
            return func(*args, **(kwargs or {}))
        frame = sys._getframe(1)
        while frame is not None and _is_internal(frame.f_code.co_filename):
            frame = frame.f_back  # type: ignore[assignment]
        line = None
        if frame is not None:
            code = frame.f_code
            line = f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n'
            fx_traceback.set_stack_trace([line])
        if self._masks is not None and func in attention.CALLS:
            func = self._masks.attend_at(line)
        return func(*args, **(kwargs or {}))


def _is_internal(filename: str) -> bool:
    return filename == __file__ or is_torchs(filename)


@attrs.frozen
class Traced:
    """A traced function: its FX graph with fake inputs, the module's tensors that became its
    first arguments (with names and kinds), and how outputs nest."""

    graph: fx.GraphModule
    fakes: tuple[Any, ...]
    tensors: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    output_spec: Any


Result = TypeVar("Result")
Given = ParamSpec("Given")


def one_at_a_time(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """`function` under the lock that torch.compile compiles under: torch's tracers and records of
    what is compiled are the process's, so two threads take turns."""

    @functools.wraps(function)
    def locked(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        from torch._dynamo.convert_frame import compile_lock

        with compile_lock:
            return function(*args, **kwargs)

    return locked


@one_at_a_time
def trace(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool = False,
) -> ModuleOp:
    """The aten-level program of `fn(*args, **kwargs)`, with mutation and views as in eager mode.

    fn: a function, an `nn.Module`, or an `ExportedProgram`, which has arguments of its own and is
    dynamic where it was exported so.

    dynamic: the sizes of tensor arguments become symbols; sizes 0 and 1 and Python numbers stay
    constants. Parameters and buffers of an `nn.Module` are the first arguments and keep their
    sizes. Nothing is executed and the arguments are not changed. Raises UserError for what can't
    be imported.
    """
    fn, args, kwargs, dynamic = exported(fn, args, kwargs, dynamic)
    traced = trace_function(fn, args, kwargs, dynamic=dynamic)
    expand_higher_order(traced.graph, {})
    take_kernels(traced.graph)
    imported = import_graph(
        traced.graph,
        argument_kinds=traced.kinds,
        argument_names=traced.names,
        assert_guards=dynamic,
    )
    if torch.get_default_dtype() != torch.float32:  # which the text of a program means
        carry(imported.module, Target.host())
    return imported.module


def exported(
    fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, dynamic: bool
) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any] | None, bool]:
    """What to trace of an `ExportedProgram`: its module, by default with the arguments that it
    was exported with and dynamic where it is; anything else as it is."""
    if not isinstance(fn, torch.export.ExportedProgram):
        return fn, args, kwargs, dynamic
    if not args and not kwargs and fn.example_inputs is not None:
        args, kwargs = fn.example_inputs
    return fn.module(), args, kwargs, dynamic or bool(fn.range_constraints)


def trace_function(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool = False,
    masks: attention.MaskRemarks | None = None,
) -> Traced:
    """The FX graph behind `trace`. masks: where not None, with the masks of attention that its
    calls need; tells of them."""
    if isinstance(args, torch.Tensor):
        raise UserError("args is a tuple of arguments, not a tensor")
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    names, tensors, kinds = _module_tensors(fn)
    is_traced = [isinstance(x, torch.Tensor) for x in leaves]
    constants = [None if traced else x for x, traced in zip(leaves, is_traced, strict=True)]
    output_spec: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        lifted, rest = values[: len(tensors)], iter(values[len(tensors) :])
        merged = [next(rest) if t else c for c, t in zip(constants, is_traced, strict=True)]
        call_args, call_kwargs = pytree.tree_unflatten(merged, spec)
        if tensors:
            state = dict(zip(names, lifted, strict=True))
            result = torch.func.functional_call(fn, state, call_args, call_kwargs)  # type: ignore[arg-type]
        else:
            result = fn(*call_args, **call_kwargs)
        outputs, nesting = pytree.tree_flatten(result)
        output_spec[:] = [nesting]
        return outputs

    inputs = [*tensors, *(x for x, t in zip(leaves, is_traced, strict=True) if t)]
    fakes, mode = fake_inputs(inputs, len(tensors), dynamic)
    symbolic = enable_python_dispatcher() if dynamic else contextlib.nullcontext()
    with torch.no_grad(), mode, symbolic, fx_traceback.preserve_node_meta(), _TracedCalls(masks):
        traced = make_fx(flat)(*fakes)
    positions = [f"arg{i}" for i in range(len(inputs) - len(tensors))]
    return Traced(
        traced,
        tuple(fakes),
        tuple(tensors),
        (*names, *positions),
        (*kinds, *("input" for _ in positions)),
        output_spec[0],
    )


def fake_inputs(
    inputs: Sequence[torch.Tensor], static: int, dynamic: bool
) -> tuple[list[Any], Any]:
    """Fake tensors like `inputs`, and their mode. With `dynamic`, the sizes of all but the first
    `static` are symbols, except sizes 0 and 1."""
    from torch._dynamo.source import ConstantSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
    )

    shape_env = ShapeEnv()
    mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True)
    fakes: list[Any] = []
    for position, value in enumerate(inputs):
        source = ConstantSource(f"arg{position}")
        if dynamic and position >= static:
            sizes = [DimDynamic.DUCK] * value.dim()
            context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
            fakes.append(mode.from_tensor(value, source=source, symbolic_context=context))
        else:
            fake = mode.from_tensor(value, static_shapes=True, source=source)
            # Fake storages end at the last element; what lies beyond may be viewed all the same.
            fake.untyped_storage().resize_(value.untyped_storage().nbytes())
            fakes.append(fake)
    return fakes, mode


def _module_tensors(fn: Any) -> tuple[list[str], list[torch.Tensor], list[str]]:
    """Names, tensors and kinds of the parameters and buffers of a module; nothing otherwise."""
    if not isinstance(fn, torch.nn.Module):
        return [], [], []
    parameters = dict(fn.named_parameters())
    buffers = dict(fn.named_buffers())
    names = [*parameters, *buffers]
    kinds = ["parameter"] * len(parameters) + ["buffer"] * len(buffers)
    return names, [*parameters.values(), *buffers.values()], kinds


class CompiledFunction:
    """What `irc.compile` gives: call it with arguments like those it was compiled for.

    `module` is the program on the aten level; `executable` what runs it.
    """

    def __init__(
        self, traced: Traced, compiled: backend.Compiled, run: Callable[..., Any]
    ) -> None:
        assert compiled.imported is not None
        self.module: ModuleOp = compiled.imported.module
        self.executable = compiled.executable
        self._tensors = traced.tensors
        self._spec = traced.output_spec
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        with torch.no_grad():
            results = self._run(*self._tensors, *tensors)
        return pytree.tree_unflatten(list(results), self._spec)


@one_at_a_time
def compile(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "auto",
    dynamic: bool = False,
    options: Options | Mapping[str, Any] | None = None,
) -> CompiledFunction:
    """Compile `fn` ahead of time for arguments like `args` (without gradients). As for `trace`,
    it may be an `ExportedProgram`.

    With `dynamic`, sizes may differ between calls; what tracing assumed about them is checked at
    each call. With the option `freezing`, the parameters and buffers of a module are constants of
    the program. Raises UserError for an unknown option.
    """
    chosen = parse_options(None, options)
    if target != "auto":
        chosen = chosen.replace(target=target)
    fn, args, kwargs, dynamic = exported(fn, args, kwargs, dynamic)
    masks = attention.MaskRemarks(chosen) if attention.is_judged(chosen) else None
    traced = trace_function(fn, args, kwargs, dynamic=dynamic, masks=masks)
    freezer = None
    if chosen.freezing:
        inputs = len(traced.fakes) - len(traced.tensors)
        tensors = [*traced.tensors, *[None] * inputs]
        freezer = freezer_of(traced.graph, tensors, (), chosen.freezing_discard_parameters)
    with torch.no_grad(), backend.recording() as compiled:
        run = backend.compile_graph(
            traced.graph, traced.fakes, chosen, assert_guards=dynamic, freezer=freezer
        )
    if chosen.freezing_discard_parameters:
        traced = attrs.evolve(traced, tensors=tuple(_module_tensors(fn)[1]))
    return CompiledFunction(traced, compiled[0], run)
