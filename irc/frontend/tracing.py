"""Programs from Python functions without Dynamo: `irc.trace` and `irc.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from irc.dialects.builtin import ModuleOp
from irc.frontend import backend
from irc.frontend import decompositions as D
from irc.frontend.importer import Imported, import_graph
from irc.frontend.options import Options, parse_options
from irc.ir.diagnostics import UserError


@attrs.frozen
class Traced:
    """A traced function: the imported graph, the module's tensors that became its first
    arguments, and how outputs nest."""

    imported: Imported
    tensors: tuple[torch.Tensor, ...]
    output_spec: Any


def trace(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool = False,
) -> ModuleOp:
    """The aten-level program of `fn(*args, **kwargs)`, with mutation and views as in eager mode.

    dynamic: sizes of the arguments become symbols (sizes 0 and 1 stay constants). Parameters and
    buffers of an `nn.Module` are the first arguments. Nothing is executed and the arguments are
    not changed. Raises UserError for operators that can't be imported.
    """
    return trace_function(fn, args, kwargs, dynamic=dynamic).imported.module


def trace_function(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool = False,
    functional: bool = False,
) -> Traced:
    """As `trace`; `functional` removes mutation and views and decomposes operators."""
    if isinstance(args, torch.Tensor):
        raise UserError("args is a tuple of arguments, not a tensor")
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    names, tensors, kinds = _module_tensors(fn)
    is_traced = [isinstance(x, torch.Tensor) or (dynamic and type(x) is int) for x in leaves]
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
    mode = "symbolic" if dynamic else "fake"
    table = D.decompositions() if functional else None
    function = torch.func.functionalize(flat, remove="mutations_and_views") if functional else flat
    with torch.no_grad():
        traced = make_fx(
            function, decomposition_table=table, tracing_mode=mode, record_stack_traces=True
        )(*inputs)
    positions = [f"arg{i}" for i in range(len(inputs) - len(tensors))]
    imported = import_graph(
        traced,
        argument_kinds=[*kinds, *("input" for _ in positions)],
        argument_names=[*names, *positions],
        assert_guards=dynamic,
    )
    return Traced(imported, tuple(tensors), output_spec[0])


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

    def __init__(self, traced: Traced, module: ModuleOp, executable: Any) -> None:
        self.module = module
        self.executable = executable
        self._tensors = traced.tensors
        self._spec = traced.output_spec
        self._run = backend.boxed(executable, traced.imported.outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        given = [x for x in leaves if isinstance(x, torch.Tensor)]
        with torch.no_grad():
            results = self._run([*self._tensors, *given])
        return pytree.tree_unflatten(list(results), self._spec)


def compile(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "auto",
    dynamic: bool = False,
    options: Options | Mapping[str, Any] | None = None,
) -> CompiledFunction:
    """Compile `fn` ahead of time for arguments like `args` (without gradients).

    With `dynamic`, sizes may differ between calls; what tracing assumed about them is checked at
    each call. Raises UserError for an unknown option.
    """
    chosen = parse_options(None, options)
    if target != "auto":
        chosen = chosen.replace(target=target)
    traced = trace_function(fn, args, kwargs, dynamic=dynamic, functional=True)
    module = traced.imported.module.clone()
    leaves = [*traced.tensors, *pytree.tree_leaves((args, kwargs))]
    executable = backend.build(traced.imported, chosen, backend.target_of(leaves, chosen))
    return CompiledFunction(traced, module, executable)
