"""Training steps that leave out AOTAutograd's wrappers.

Around each call of a graph with gradients, and around its backward, AOTAutograd goes in Python over
every argument, saved tensor and result: it detaches, looks for views, subclasses and tokens, and
puts lists together. With 150 parameters that takes as long as fifty launches. For most graphs
none of it has anything to do. These are found from the metadata that AOTAutograd leaves; once a
first step has compiled both programs, Dynamo's code calls autograd's own `apply` of a function
whose forward is the one program and whose backward is the other.

The function is a subclass of AOTAutograd's: its graphs mean the same to compiled autograd, and what
is not usual in a backward (`create_graph`, a gradient that is a subclass) is left to what it
inherits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from irc.frontend.direct_calls import CompiledGraph, Executables, is_subclass, is_traced_plainly
from irc.runtime.executable import Executable

Apply = Callable[..., tuple[Any, ...]]
_transforms = torch._C._functorch.peek_interpreter_stack


def training_call(
    programs: Executables, metadata: Any, compiled: Callable[..., Any], inputs: Sequence[Any]
) -> Callable[..., Any] | None:
    """The function of positional arguments that can stand for `compiled`, AOTAutograd's of a graph
    with gradients, or None: it calls `compiled` until a backward was compiled.

    `metadata` is that of this very graph, `inputs` are the example inputs.
    """
    forward = programs.only("forward")
    if forward is None or not forward.gives_results or not _is_usual(metadata, inputs):
        return None
    if not isinstance(forward.executable, Executable):
        return None
    if len(forward.executable.info.arguments) != len(inputs):
        return None
    nodes: list[Any] = []  # AOTAutograd's function
    own: list[Apply | None] = []

    def call(*arguments: Any) -> Any:
        if own:
            apply = own[0]
        elif nodes and nodes[0].compiled_bw is not None:
            apply = _function(nodes[0], programs, metadata, inputs)
            own.append(apply)
        else:
            apply = None
        if apply is not None and torch.is_grad_enabled() and _transforms() is None:
            return apply(*arguments)
        results = compiled(*arguments)
        if not nodes:
            nodes.extend(_function_of(results))
        return results

    return call


def _function_of(results: Sequence[Any]) -> list[Any]:
    """AOTAutograd's function, which made these results: none or one."""
    nodes = (x.grad_fn for x in results if isinstance(x, torch.Tensor))
    classes = (getattr(node, "_forward_cls", None) for node in nodes)
    return [each for each in classes if hasattr(each, "compiled_bw")][:1]


def _function(
    base: Any, programs: Executables, metadata: Any, inputs: Sequence[Any]
) -> Apply | None:
    """`apply` of the function that runs the two programs; None where they are not alone."""
    forward, backward = programs.only("forward"), programs.only("backward")
    if forward is None or backward is None or not backward.is_alone:
        return None
    if len(backward.outputs) != len(inputs) or _detaches(backward, metadata):
        return None
    members = {
        "forward": staticmethod(_forward(forward, metadata, inputs)),
        "backward": staticmethod(_backward(base, backward, metadata)),
    }
    function: Any = type(base.__name__, (base,), members)
    # What AOTAutograd's own functions look for where it saves other things than tensors.
    node = function._backward_cls
    node.symints, node.opaque_objects, node._tensors_no_vc_check = (), (), ()
    apply: Apply = super(torch.autograd.function._SingleLevelFunction, function).apply
    return apply


def _forward(forward: CompiledGraph, metadata: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    run = forward.executable.fast_call
    shown = metadata.num_forward_returns
    information = metadata.output_info
    constant = [i for i in range(shown) if not information[i].requires_grad]
    written = metadata.mutated_graph_handled_indices_seen_by_autograd
    results = forward.executable.info.results[shown:]
    # Saved arguments that may be views, of which autograd would keep the bases.
    views = [
        i for i, result in enumerate(results)
        if result.alias_of is not None
        and not isinstance(inputs[result.alias_of], torch.nn.Parameter)
    ]  # fmt: skip

    def plain(ctx: Any, *arguments: Any) -> tuple[Any, ...]:
        results = run(*arguments)
        ctx.save_for_backward(*results[shown:])
        return results[:shown]

    def whole(ctx: Any, *arguments: Any) -> tuple[Any, ...]:
        if written:
            torch.autograd.graph.increment_version([arguments[i] for i in written])
        results = run(*arguments)
        saved = list(results[shown:])
        for i in views:
            if saved[i]._is_view():
                saved[i] = saved[i].detach()
        ctx.save_for_backward(*saved)
        if constant:
            ctx.mark_non_differentiable(*[results[i] for i in constant])
            ctx._materialize_non_diff_grads = False
        return results[:shown]

    return whole if written or views or constant else plain


def _backward(base: Any, backward: CompiledGraph, metadata: Any) -> Callable[..., Any]:
    run, gather = backward.executable.fast_call_list, _gather(backward.outputs)
    boxed = getattr(base, "boxed_grads_call", False)
    places = _tangents(metadata)
    laid_out = [_laid_out(meta.memory_format) for meta in metadata.subclass_tangent_meta]
    undecided = metadata.deterministic is False

    def is_usual(gradients: Sequence[Any]) -> bool:
        """Whether AOTAutograd would pass all of this on, and nothing else."""
        return (
            not torch.is_grad_enabled()
            and _transforms() is None
            and not torch._C._autograd._get_current_graph_task_keep_graph()
            and not (undecided and torch.are_deterministic_algorithms_enabled())
            and all(type(gradients[i]) is torch.Tensor for i in places)
        )

    def step(ctx: Any, *boxes: Any) -> tuple[Any, ...]:
        gradients: Any = boxes[0] if boxed else boxes
        if not is_usual(gradients):
            inherited: tuple[Any, ...] = base.backward(ctx, *boxes)
            return inherited
        arguments = [*ctx.saved_tensors]
        for i, in_layout in zip(places, laid_out, strict=True):
            arguments.append(in_layout(gradients[i]))
        if boxed:
            gradients.clear()
        ctx.maybe_clear_saved_tensors()
        return gather(run(arguments))

    # A backward may run while Dynamo looks at what calls it: it is no code of the user's.
    unseen: Callable[..., Any] = torch._dynamo.disable(step)
    return unseen


def _gather(outputs: Sequence[Any]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """What gives a graph's outputs from its program's results."""
    if list(outputs) == list(range(len(outputs))):
        return lambda results: results
    others = [o.value for o in outputs if not isinstance(o, int)]
    rest = iter(range(-len(others), 0))
    take = operator.itemgetter(*[o if isinstance(o, int) else next(rest) for o in outputs])
    tail = tuple(others)
    if len(outputs) == 1:
        return lambda results: (take(results + tail),)
    return lambda results: take(results + tail)


def _laid_out(layout: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What gives a gradient as it lies in the trace: itself, or a copy by AOTAutograd."""
    from torch._functorch._aot_autograd.runtime_wrappers import coerce_to_expected_memory_format

    if layout.memory_format is not None:
        return lambda t: coerce_to_expected_memory_format(t, layout)
    size, stride = torch.Size(layout.size), tuple(layout.stride)

    def in_layout(t: torch.Tensor) -> torch.Tensor:
        if t.shape == size and t.stride() == stride:
            return t
        return coerce_to_expected_memory_format(t, layout)

    return in_layout


def _tangents(metadata: Any) -> list[int]:
    """The results of the forward whose gradients the backward takes."""
    return [
        i for i, info in enumerate(metadata.output_info)
        if issubclass(info.raw_type, torch.Tensor)
        and getattr(info, "requires_grad_for_backward", info.requires_grad)
    ]  # fmt: skip


def _is_usual(metadata: Any, inputs: Sequence[Any]) -> bool:
    """Whether a graph's saved values are tensors, and nothing but a call of the program, its
    versions of what it writes and autograd's node are left to do."""
    from torch._functorch._aot_autograd.schemas import MutationType

    inside = (MutationType.NOT_MUTATED, MutationType.MUTATED_IN_GRAPH)
    return (
        is_traced_plainly(metadata, inputs, inside)
        and torch.is_grad_enabled()
        and not _hooks_are_traced()
        and metadata.num_symints_saved_for_bw == 0
        and not getattr(metadata, "num_opaque_objects_saved_for_bw", 0)
        and not getattr(metadata, "num_tensors_saved_with_no_vc_check", 0)
        and not getattr(metadata, "indices_of_inputs_that_requires_grad_with_mutations_in_bw", ())
        and not metadata.num_backward_tokens
        and not metadata.dynamic_saved_tensors_idxs
        and not any(is_subclass(meta) for meta in metadata.subclass_tangent_meta)
        and all(getattr(m, "memory_format", None) for m in metadata.subclass_tangent_meta)
        and all(issubclass(info.raw_type, torch.Tensor) for info in metadata.output_info)
        and len(_tangents(metadata)) == len(metadata.subclass_tangent_meta)
        and metadata.num_forward_returns == metadata.num_outputs
    )


def _hooks_are_traced() -> bool:
    """Whether AOTAutograd takes hooks of saved tensors into the graphs, and runs these without."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None and any(isinstance(hook, torch.fx.GraphModule) for hook in hooks)


def _detaches(backward: CompiledGraph, metadata: Any) -> bool:
    """Whether AOTAutograd hides arguments from autograd: results of other functions for which the
    graph has no gradient."""
    pairs = zip(backward.outputs, metadata.input_info, strict=True)
    return any(
        not isinstance(o, int) and info.requires_grad and not info.is_leaf for o, info in pairs
    )


__all__ = ["training_call"]
