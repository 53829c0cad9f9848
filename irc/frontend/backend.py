"""The torch.compile backend: AOTAutograd around irc's compilers.

    torch.compile(model, backend="irc", options={"freezing": True})

AOTAutograd functionalizes, decomposes, and splits training into a forward and a backward graph;
each is imported, lowered and built here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import attrs
import torch
from torch import fx
from torch._dynamo.aot_compile_types import SerializableCallable
from torch.utils._python_dispatch import _disable_current_modes

from irc.frontend import direct_calls, saved_functions
from irc.frontend.decompositions import table as D
from irc.frontend.fx import attention
from irc.frontend.fx.argument_views import show_arguments
from irc.frontend.fx.dropouts import draw_dropouts, skip_dropouts
from irc.frontend.fx.higher_order import expand_higher_order
from irc.frontend.fx.mutating_calls import unwrap_mutating_calls
from irc.frontend.fx.random_states import eager_generators
from irc.frontend.fx.saved_activations import (
    JoinedParts,
    report_strides,
    saved_outputs,
    take_strides,
)
from irc.frontend.fx.setting_guards import guard_settings
from irc.frontend.fx.sparse_results import take_sparse, with_rest
from irc.frontend.fx.storage_places import take_storages
from irc.frontend.fx.synthetic_bases import base_lengths, cut_to_size
from irc.frontend.fx.user_kernels import take_kernels
from irc.frontend.fx.written_views import view_written_operands
from irc.frontend.importing.importer import Given, Imported, Output, import_graph
from irc.ir.gc import gc_paused
from irc.options.options import Options, parse_options
from irc.target import Target

if TYPE_CHECKING:
    from irc.frontend.freezing import Freezer
    from irc.frontend.fx.joined_saves import JoinLimits

Compiler = Callable[[Imported, Options, Target], Callable[..., Any]]


@attrs.define
class Compiled:
    """One graph that was compiled: what it was imported as (the aten level) and what runs it."""

    stage: str
    executable: Any
    imported: Imported | None = None


class Record(list[Compiled]):
    """What was compiled for who asks for it, as long as it is open."""

    open = True


class _State(threading.local):
    """What the current thread's compiles note for who asked for them."""

    record: Record | None = None


_state = _State()
_builders: list[Compiler] = []  # who builds instead of `build`: at most one


class recording:
    """Collects what is compiled inside: `with recording() as compiled: ...`; the backward graphs
    of these too, which a GPU's autograd compiles on a thread of its own."""

    def __enter__(self) -> list[Compiled]:
        self._outer = _state.record
        self._own = _state.record = Record()
        return self._own

    def __exit__(self, *exc: object) -> None:
        self._own.open = False
        _state.record = self._outer


class built_by:
    """Inside `with`, graphs are built by `compiler` instead of `build`, on every thread."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def __enter__(self) -> None:
        self._outer = _builders[:]
        _builders[:] = [self._compiler]

    def __exit__(self, *exc: object) -> None:
        _builders[:] = self._outer


def irc(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph that Dynamo captured. Raises UserError for an unknown option or mode."""
    chosen = parse_options(mode, options)
    if saved_functions.is_saving():
        return Saved(gm, example_inputs, chosen)
    return compile_graph(gm, example_inputs, chosen)


def compile_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    *,
    assert_guards: bool = False,
    freezer: Freezer | None = None,
) -> Callable[..., Any]:
    """As `irc`, with parsed options. `assert_guards`: programs check what torch assumed about
    sizes (for graphs that don't come from Dynamo, which checks it itself). `freezer`: what may be
    frozen, for such graphs."""
    from torch._dynamo import disable
    from torch._dynamo.utils import counters
    from torch._functorch.aot_autograd import aot_module_simplified

    if any(isinstance(x, list | tuple | dict) for x in example_inputs):
        return compile_flattened(gm, example_inputs, options)

    prepared = view_written_operands(skip_dropouts(gm))
    if attention.is_judged(options):
        prepared = attention.judge_masks(prepared, attention.MaskRemarks(options))
    gm, example_inputs, around = take_storages(prepared, example_inputs)
    if options.freezing and freezer is None:
        from irc.frontend.freezing import freezer_for

        freezer = freezer_for(gm, example_inputs, options.freezing_discard_parameters)

    executables = direct_calls.Executables()

    def compiler(stage: str) -> Callable[..., Any]:
        chosen = freezer if stage == "inference" else None

        def compile_stage(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return compile_fx(module, inputs, options, stage, assert_guards, chosen, executables)

        return compile_stage

    backward, record = compiler("backward"), _state.record

    def compile_backward_stage(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        before = _state.record
        if before is None and record is not None and record.open:
            _state.record = record
        try:
            return backward(module, inputs)
        finally:
            _state.record = before

    def compile_traced(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        # Neither the compiler nor what it makes may be traced by Dynamo (compiled autograd).
        return disable(disable(compile_backward_stage)(module, inputs))

    compile_backward: Any = compile_traced  # torch's own type asks for a class of its own

    before = direct_calls.metadata()
    with gc_paused, eager_generators():
        # DDP's splitter asks the counter whether the first call of a part gives fake tensors.
        counters["aot_autograd"]["total"] += 1
        compiled = aot_module_simplified(
            gm,
            example_inputs,
            fw_compiler=compiler("forward"),
            bw_compiler=compile_backward,
            inference_compiler=compiler("inference"),
            partition_fn=functools.partial(partitioned, options),
            decompositions=D.decompositions(),
            keep_inference_input_mutations=True,
        )
    counters["aot_autograd"]["ok"] += 1
    metadata = direct_calls.metadata()
    direct: Callable[..., Any] | None = None
    if metadata is not before and freezer is None and isinstance(gm, fx.GraphModule):
        if executables.only("forward") is None:
            direct = direct_calls.direct_call(executables, metadata, example_inputs)
        else:
            from irc.frontend import training_calls

            direct = training_calls.training_call(
                executables, metadata, compiled, example_inputs
            )
    called = around(direct or compiled)
    # Dynamo has nothing to trace in a builtin.
    return called if isinstance(called, BuiltinFunctionType) else disable(called)


class Saved(SerializableCallable):
    """A saved function of this backend; torch's files name it by this place."""

    def __init__(self, graph: fx.GraphModule, inputs: Sequence[Any], options: Options) -> None:
        self.graph, self.options = saved_functions.pickled(graph, inputs), options
        with saved_functions.without_caches():
            self.run = compile_graph(graph, inputs, options)

    def __call__(self, *arguments: Any) -> Any:
        return self.run(*arguments)

    @classmethod
    def serialize_compile_artifacts(cls, fn: Saved) -> bytes:
        """The graph and the options."""
        return saved_functions.to_bytes(fn.graph, fn.options)

    @classmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> Saved:
        """The function, compiled again."""
        with saved_functions.opened(data) as (graph, inputs, options):
            return cls(graph, inputs, options)


def compile_flattened(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options
) -> Callable[..., Any]:
    """A graph that takes lists of tensors, as those of compiled autograd do. Its lists hold no
    weights that could be frozen."""
    from torch._dynamo.utils import flatten_graph_inputs

    plain = attrs.evolve(options, freezing=False)

    def compile_leaves(flat: fx.GraphModule, leaves: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(flat, leaves, plain)

    return flatten_graph_inputs(gm, example_inputs, compile_leaves)


def compile_fx(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    options: Options,
    stage: str,
    assert_guards: bool = False,
    freezer: Freezer | None = None,
    executables: direct_calls.Executables | None = None,
) -> Callable[..., Any]:
    """A boxed function that runs an AOT graph on irc, with what `freezer` says as constants.

    The executable is noted in `executables`."""
    target = target_of(inputs, options, module)
    if freezer is None:
        # Without frozen weights the passes for them would only cost time.
        options = attrs.evolve(options, freezing=False)
    expand_higher_order(module, D.decompositions())
    writes = unwrap_mutating_calls(module) | take_kernels(module)
    if target.is_gpu:
        draw_dropouts(module)
        if stage == "inference":
            attention.fuse_for(module, options, target)
    saved = saved_outputs(module) if stage == "forward" else frozenset()
    returned: Any = module.graph.output_node().args[0]
    if stage != "backward":
        guard_settings(module, target)
        show_arguments(module, direct_calls.metadata())
    rest = take_sparse(module)
    if stage == "backward":
        take_strides(module, inputs)
    lengths = base_lengths(module)
    parts = joined_parts(module, stage)

    def make(tensors: Sequence[Any]) -> tuple[Callable[..., Any], tuple[int, ...]]:
        with gc_paused:
            imported = import_graph(
                module, assert_guards=assert_guards, caller_derives_views=True,
                saved=parts.shifted(saved), argument_places=parts.arguments,
                result_places=parts.results,
            )  # fmt: skip
            if writes:
                from irc.ir.passes import PassManager

                PassManager.parse("functionalize", verify="none").run(imported.module)
            frozen: tuple[int, ...] = ()
            if tensors:
                from irc.frontend.freezing import freeze_imported

                frozen = freeze_imported(imported, tensors)
            keep = _state.record
            text = None if keep is None else attrs.evolve(imported, module=imported.module.clone())
            make_executable = _builders[0] if _builders else build
            executable = make_executable(imported, options, target)
            if keep is not None:
                keep.append(Compiled(stage, executable, text))
        imported = parts.held(imported)
        program = getattr(executable, "info", None)
        if saved and program is not None:
            results, outputs = program.results, imported.outputs
            strides = [results[o].strides if isinstance(o, int) else None for o in outputs]
            report_strides(returned, strides, saved)
            keep_saved(executable, outputs, saved)
        taken = taken_from(imported, frozen)
        if executables is not None:
            alone = not taken.absent and not frozen and rest is None and not lengths
            alone = alone and not any(isinstance(o, Given) for o in taken.outputs)
            executables.add(stage, direct_calls.CompiledGraph(executable, taken.outputs, alone))
        run = boxed(executable, taken.outputs, taken.absent)
        return run if rest is None else with_rest(run, rest), frozen

    if freezer is not None:
        return freezer.compile(module, make)
    return cut_to_size(make(())[0], lengths)


def keep_saved(executable: Any, outputs: Sequence[Output], saved: frozenset[int]) -> None:
    """Tell an executable with graphs which results only autograd gets to see."""
    keep = getattr(executable, "keep_results", None)
    if keep is not None:
        shown = {o for number, o in enumerate(outputs) if number not in saved}
        keep(outputs[n] for n in saved if isinstance(outputs[n], int) and outputs[n] not in shown)


def build(imported: Imported, options: Options, target: Target) -> Any:
    """The executable of an imported graph (whose module is lowered in place)."""
    from irc.pipeline import compile_module

    with _disable_current_modes():  # AOTAutograd compiles under fake tensors
        return compile_module(imported.module, options, target)


def target_of(
    inputs: Sequence[Any], options: Options, module: fx.GraphModule | None = None
) -> Target:
    """The target asked for, else this machine: its GPU where inputs, or what the graph makes, lie
    on one."""
    if options.target != "auto":
        return Target.named(options.target)
    values = [] if module is None else [node.meta.get("val") for node in module.graph.nodes]
    devices = {x.device.type for x in (*inputs, *values) if isinstance(x, torch.Tensor)}
    return Target.host(gpu="cuda" in devices)


def partitioned(options: Options, joint: fx.GraphModule, *arguments: Any, **keywords: Any) -> Any:
    """The forward and the backward graph of a joint one."""
    from irc.frontend.fx import joined_saves
    from irc.frontend.fx.partition import partition

    cut = partition(options, functools.partial(target_of, (), options))
    joining = joined_saves.joining(cut, functools.partial(joined_limits, options))
    return joining(joint, *arguments, **keywords)


def joined_parts(module: fx.GraphModule, stage: str) -> JoinedParts:
    """What a graph of training has as one tensor that its program has as several."""
    if stage == "inference":
        return JoinedParts()
    from irc.frontend.fx import joined_saves

    return joined_saves.parts_of(module, stage)


def joined_limits(options: Options, module: fx.GraphModule) -> JoinLimits:
    """What of saved tensors is joined with others; nothing where graphs of CUDA make no tensors
    anyway, and where who builds programs otherwise takes graphs as they are."""
    from irc.frontend.fx import joined_saves

    target = target_of((), options, module)
    if options.cuda_graphs or _builders or not target.is_gpu:
        return joined_saves.NOTHING
    gpu = target.gpu
    return joined_saves.JoinLimits(gpu.joined_bytes, gpu.joined_blocks, gpu.joined_least)


def taken_from(imported: Imported, frozen: Sequence[int]) -> Imported:
    """What was imported, by the positions that arguments have where the frozen ones are gone."""

    def at(position: int) -> int:
        return position - sum(p < position for p in frozen)

    outputs = [Given(at(o.position)) if isinstance(o, Given) else o for o in imported.outputs]
    absent = tuple(at(position) for position in imported.absent)
    return attrs.evolve(imported, outputs=tuple(outputs), absent=absent)


def are_plain(outputs: Sequence[Output]) -> bool:
    """Whether the outputs of an FX graph are its program's results, in order."""
    return list(outputs) == list(range(len(outputs)))


def boxed(
    executable: Any, outputs: Sequence[Output], absent: Sequence[int] = ()
) -> Callable[..., Any]:
    """A function of one list, which it empties, that gives the outputs of the FX graph. The
    arguments at the positions `absent` are not the executable's."""
    call = getattr(executable, "boxed", None)
    if call is None:

        def call(arguments: list[Any]) -> Any:
            passed = list(arguments)
            arguments.clear()
            return executable(*passed)

    if not absent and are_plain(outputs):
        run = call
    else:

        def run(arguments: list[Any]) -> Any:
            kept = {position: arguments[position] for position in absent}
            for position in reversed(absent):
                del arguments[position]
            results = call(arguments)
            return [
                results[o] if isinstance(o, int)
                else kept[o.position] if isinstance(o, Given)
                else o.value
                for o in outputs
            ]  # fmt: skip

    run._boxed_call = True  # type: ignore[union-attr]
    return run


def reset() -> None:
    """Forget what one session of torch.compile left (called by `torch._dynamo.reset`)."""
    _state.record = None


irc.reset = reset  # type: ignore[attr-defined]
