"""The default pipeline: one table, read top to bottom, and what is made from it.

`PIPELINE` names every step, when a program's pipeline has it, and which of the compile's options it
takes. The named pipelines (a stage's name, `lower-to-cpu`, `lower-to-gpu`), the text of a compile's
passes, the docs and the cache's key all come from that table. Passes of one's own are put beside
its steps, in compiles and in the named pipelines alike:

    irc.pipeline.extend(after="fuse-loops", passes="my-pass{limit=3}")         # from now on
    torch.compile(model, backend="irc", options={"passes": {"after:fuse-loops": "my-pass"}})
    irc-opt FILE --fuse-loops='passes="after:group-computes=my-pass{limit=3}"'
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir.diagnostics import IRCError, UserError
from irc.ir.passes import (
    PassContext,
    PassManager,
    chosen_remarks,
    did_you_mean,
    load_entry_points,
    option_text,
    register_pipeline,
)
from irc.ir.rewrite.fuel import Fuel
from irc.options.options import DEFAULT, Options, from_texts, moved_rows
from irc.options.table import own_backends
from irc.target import Target, as_target
from irc.target.record import known

if TYPE_CHECKING:
    from irc.ir.module import ModuleOp
    from irc.runtime.executable import Executable

When = Callable[[Options, Target], bool]

#: What texts of pipelines are for where nobody says; only the kind makes a difference to them.
USUAL, USUAL_GPU = "avx2", "sm_90"


# -- when a step takes part


def always(options: Options, target: Target) -> bool:
    """In every pipeline."""
    return True


def rounds_once(options: Options, target: Target) -> bool:
    """Numbers may be rounded less often than eager rounds them."""
    return not options.emulate_rounding


def matches_patterns(options: Options, target: Target) -> bool:
    """Several operators may become one that rounds less often."""
    return options.pattern_matcher and rounds_once(options, target)


def is_frozen(options: Options, target: Target) -> bool:
    """Weights are constants."""
    return options.freezing


def packs(options: Options, target: Target) -> bool:
    """Frozen weights are laid out for oneDNN, on a CPU."""
    return options.freezing and not target.is_gpu


def packs_and_fuses(options: Options, target: Target) -> bool:
    """What is done to the result of a packed operation goes into it."""
    return packs(options, target) and options.epilogue_fusion


def makes_winograd(options: Options, target: Target) -> bool:
    """Frozen 3x3 convolutions become kernels of our own."""
    return packs(options, target) and options.layout_optimization and options.winograd


def makes_panels(options: Options, target: Target) -> bool:
    """Frozen 1x1 convolutions become kernels of our own."""
    return packs(options, target) and options.layout_optimization and options.panel_convolutions


def makes_attention(options: Options, target: Target) -> bool:
    """Attention on a CPU may be kernels of our own."""
    return options.own_attention and not target.is_gpu and rounds_once(options, target)


def streams(options: Options, target: Target) -> bool:
    """Attention may be kernels of our own whose scores are in no array."""
    return options.own_attention and rounds_once(options, target)


def walks(options: Options, target: Target) -> bool:
    """On a CPU these are blocks of rows that walk over a stream."""
    return not target.is_gpu and streams(options, target)


def streams_on_gpu(options: Options, target: Target) -> bool:
    """So may the library's, and gradients, on a GPU."""
    return target.is_gpu and streams(options, target)


def turns_images(options: Options, target: Target) -> bool:
    """Images may have their channels innermost."""
    return options.layout_optimization


def turns_cpu_images(options: Options, target: Target) -> bool:
    """Images of a CPU may have their channels innermost."""
    return options.layout_optimization and not target.is_gpu


def is_cpu(options: Options, target: Target) -> bool:
    """The program runs on a CPU."""
    return not target.is_gpu


def is_gpu(options: Options, target: Target) -> bool:
    """The program runs on a GPU."""
    return target.is_gpu


def overlaps(options: Options, target: Target) -> bool:
    """Program instances can wait for what was launched before them."""
    return target.is_gpu and target.gpu.waits


def measures_contractions(options: Options, target: Target) -> bool:
    """It is measured who computes products and convolutions."""
    return options.max_autotune or options.max_autotune_gemm


def tunes(options: Options, target: Target) -> bool:
    """Schedules are measured."""
    return options.max_autotune_pointwise or measures_contractions(options, target)


def pads_products(options: Options, target: Target) -> bool:
    """Operands of matrix products are padded; on a GPU unless told otherwise. Kernels of irc's read
    rows of any length."""
    allowed = own_backends(options.max_autotune_gemm_backends, target.is_gpu)
    if measures_contractions(options, target) and "aten" not in allowed:
        return False
    return target.is_gpu if options.shape_padding is None else options.shape_padding


def pads_strides(options: Options, target: Target) -> bool:
    """Rows are padded to whole lines of memory; on a GPU unless told otherwise."""
    return moved_rows(options, target.is_gpu) is not None


def tells_late(options: Options, target: Target) -> bool:
    """The host doesn't wait for checks: a later call tells those that failed."""
    return target.is_gpu and options.late_checks is not False


def captures(options: Options, target: Target) -> bool:
    """Calls are captured into CUDA graphs, and somebody asks what is left out."""
    return options.cuda_graphs and target.is_gpu and bool(options.remarks)


# -- the table


@attrs.frozen
class Step:
    """A pass of the default pipeline.

    when: on which target and with which options a program's pipeline has it. chosen: options of the
    pass that are options of the compile, each by the name of the latter (both have one default).
    chooses: the pass is told the target's kind ("cpu", "gpu").
    """

    name: str
    when: When = always
    chosen: Mapping[str, str] = attrs.field(factory=dict)
    chooses: bool = False

    def text(self, options: Options, target: Target) -> str:
        """The step as a pipeline's text has it."""
        values = [f"target={'gpu' if target.is_gpu else 'cpu'}"] if self.chooses else []
        for name, option in self.chosen.items():
            value = getattr(options, option)
            if value != getattr(DEFAULT, option):
                values.append(f"{name}={option_text(value)}")
        return self.name + ("{" + " ".join(values) + "}" if values else "")


_PADDING = {
    "alignment": "padding_alignment_bytes",
    "threshold": "padding_stride_threshold",
    "channels_last": "pad_channels_last",
    "symbolic": "pad_dynamic_shapes",
    "max_bytes": "padding_max_bytes",
}

_PRODUCT_PADDING = {"force": "force_shape_pad", "products": "max_autotune_gemm_backends"}

_BACKENDS = {
    "products": "max_autotune_gemm_backends",
    "convolutions": "max_autotune_conv_backends",
}

_CONVOLUTIONS = {"convolutions": "max_autotune_conv_backends"}

#: The stages, each from one level to the next, and their steps. What torch.compile gives begins
#: with the second stage: it has no mutation left and is decomposed.
PIPELINE: Mapping[str, tuple[Step, ...]] = {
    "functional": (
        Step("functionalize"),
        Step("decompose-aten"),
    ),
    "aten-to-graph": (
        Step("split-signs"),
        Step("fuse-attention", matches_patterns),
        Step("convert-aten-to-graph"),
        Step("canonicalize"),
        Step("patch-products", is_gpu),
        Step("stream-attention", streams_on_gpu),
        Step("stream-softmaxes", streams),
        Step("stream-scores", streams_on_gpu),
        Step("pad-matmul", pads_products, _PRODUCT_PADDING),
        Step("cse"),
        Step("fold-batch-norms", is_frozen),
        Step("merge-linears", is_frozen),
        Step("winograd-convolutions", makes_winograd),
        Step("panel-convolutions", makes_panels, {"parts": "split_products"}),
        Step("window-convolutions", turns_cpu_images, _CONVOLUTIONS),
        Step("fold-constants", is_frozen),
        Step("choose-contractions", chosen=_BACKENDS),
        Step("panel-products", packs),
        Step("accumulate-scatters", rounds_once),
        Step("gather-sums", rounds_once),
        Step("settle-checks"),
        Step("hoist-assertions"),
        Step("reinplace"),
        Step("flatten-concats"),
    ),
    "graph-to-layout": (
        Step("pack-weights", packs, {"convolutions": "layout_optimization"}),
        Step("fuse-epilogues", packs_and_fuses),
        Step("propagate-channels-last", turns_images, {"any_precision": "channels_last_tf32"}),
        Step("split-biases", is_gpu),
        Step("assign-layouts"),
        Step("pad-strides", pads_strides, _PADDING),
        Step("insert-layout-copies"),
        Step("elide-layout-copies"),
        Step("cse"),
    ),
    "layout-to-loop": (
        Step("convert-to-loop"),
        Step("cse"),
        Step("dce"),
    ),
    "fuse-loops": (
        Step("inline-computes"),
        Step("stream-products", streams),
        Step("place-pieces"),
        Step("factor-axes"),
        Step("rows-first"),
        Step("cut-rows", is_cpu),
        Step("merge-computes"),
        Step("group-computes"),
        Step("attach-checks"),
        Step("localize"),
        Step("spread-rows", is_gpu),
        Step("split-reductions"),
        Step("split-extremes", is_gpu),
        Step("split-scans", is_gpu),
        Step("round-stores"),
        Step("elide-rounding", rounds_once),
    ),
    "loop-to-kernel": (
        Step("expand-winograd", makes_winograd),
        Step("cut-pieces", is_cpu),
        Step("share-reads", is_cpu),
        Step("expand-attention", makes_attention),
        Step("expand-streams", walks),
        Step("narrow-integers"),
        Step("schedule", chooses=True),
        Step("tune", tunes),
        Step("form-kernels"),
        Step("join-launches"),
        Step("overlap-launches", overlaps),
    ),
    "kernel-to-host": (
        Step("bufferize"),
        Step("flag-checks", tells_late),
        Step("plan-memory"),
        Step("explain-graphs", captures),
    ),
}
FUNCTIONAL = "functional"


# -- passes of the user's


@attrs.frozen(eq=False)
class Addition:
    """Passes beside a step or a stage: `place` is "before:NAME" or "after:NAME"."""

    place: str
    passes: str


_additions: list[Addition] = []


def extend(*, passes: str, after: str = "", before: str = "") -> Addition:
    """Put passes (a pipeline's text) into the default pipeline of every compile from now on.

    They stand behind those that were put at the same place earlier. The place is a stage
    ("fuse-loops"), a pass ("group-computes") or, where a pass stands in several stages, both
    ("graph-to-layout/cse"). A pass keeps its place where the options leave it out. Gives what
    `withdraw` takes. Raises UserError for a place or a text that is wrong.
    """
    if bool(after) == bool(before):
        raise UserError("passes go either after or before a stage or a pass")
    addition = Addition(f"after:{after}" if after else f"before:{before}", passes)
    _checked(addition)
    _additions.append(addition)
    return addition


def withdraw(addition: Addition) -> None:
    """Take back what `extend` put into the pipeline; nothing happens if it is gone."""
    if addition in _additions:
        _additions.remove(addition)


def _checked(addition: Addition) -> tuple[str, str, int]:
    """The place of passes that there are. Raises UserError."""
    place = _place(addition)
    PassManager.parse(addition.passes)
    return place


def _place(addition: Addition) -> tuple[str, str, int]:
    """"before" or "after", the stage, and the step's number in it (-1: the stage itself)."""
    side, _, anchor = addition.place.partition(":")
    stage, _, name = anchor.rpartition("/")
    steps = [(s, k) for s in PIPELINE for k, step in enumerate(PIPELINE[s]) if step.name == name]
    if not stage and name in PIPELINE:
        steps = [(name, -1)]
    elif stage:
        steps = [(s, k) for s, k in steps if s == stage]
    if side not in ("before", "after") or not steps:
        names = [*PIPELINE, *(step.name for steps in PIPELINE.values() for step in steps)]
        known = [f"{s}:{n}" for s in ("before", "after") for n in names]
        hint = did_you_mean(addition.place, known)
        raise UserError(
            f"'{addition.place}' is no place in the pipeline{hint}",
            notes=("a place is before:NAME or after:NAME of a stage or a pass",),
        )
    if len(steps) > 1:
        places = ", ".join(f"{side}:{s}/{name}" for s, _ in steps)
        raise UserError(f"'{addition.place}' stands in several stages: {places}")
    return side, *steps[0]


def _added(options: Options) -> dict[tuple[str, str, int], list[str]]:
    """The user's texts by place: those of `extend`, then those of the options."""
    load_entry_points()  # an installed package may extend the pipeline
    added: dict[tuple[str, str, int], list[str]] = {}
    for addition in _additions:
        added.setdefault(_place(addition), []).append(addition.passes)
    for addition in (Addition(place, text) for place, text in options.passes):
        added.setdefault(_checked(addition), []).append(addition.passes)
    return added


# -- texts


def stages(target: Target | str = USUAL, options: Options = DEFAULT) -> dict[str, str]:
    """The text of each stage's passes, by the stage's name, the user's passes among them."""
    added, chosen = _added(options), as_target(target)

    def pieces(stage: str) -> Iterator[str]:
        yield from added.get(("before", stage, -1), ())
        for number, step in enumerate(PIPELINE[stage]):
            yield from added.get(("before", stage, number), ())
            if step.when(options, chosen):
                yield step.text(options, chosen)
            yield from added.get(("after", stage, number), ())
        yield from added.get(("after", stage, -1), ())

    return {stage: ",".join(pieces(stage)) for stage in PIPELINE}


def pipeline_text(
    target: Target | str = USUAL, options: Options | None = None, functional: bool = True
) -> str:
    """The whole default pipeline for a target as text.

    functional: the program has no mutation left and is decomposed, as torch.compile gives it.
    """
    texts = stages(target, options or DEFAULT)
    return ",".join(text for name, text in texts.items() if not (functional and name == FUNCTIONAL))


def named(texts: Mapping[str, str], stage: str = "", usual: str = USUAL) -> str:
    """The text of one stage, or of all, under the options of a compile as text (`fuse-loops{...}`).

    The passes are those of a compile for a machine like `usual`, or, of a stage, for the option
    `target`. Raises UserError.
    """
    options = from_texts(texts)
    target = known(usual) if options.target == "auto" else Target.named(options.target)
    if stage:
        return stages(target, options)[stage]
    if target.is_gpu != known(usual).is_gpu:
        name = "lower-to-gpu" if target.is_gpu else "lower-to-cpu"
        raise UserError(f"'{options.target}' is no target of this pipeline, but of {name}")
    return pipeline_text(target, options, functional=False)


def _register() -> None:
    """Give each stage, and all of them for a CPU and for a GPU, a name of its own."""
    for stage in PIPELINE:
        register_pipeline(stage, functools.partial(named, stage=stage))
    register_pipeline("lower-to-cpu", functools.partial(named, usual=USUAL))
    register_pipeline("lower-to-gpu", functools.partial(named, usual=USUAL_GPU))


_register()


# -- running it


def lower(
    module: ModuleOp,
    target: Target | str | None = None,
    options: Options | None = None,
    verify: str = "none",
    functional: bool = False,
) -> PassContext:
    """Take an aten-level module down to kernels and a host program, in place.

    target: what for (None: for what the module carries, else for this machine); the module carries
    it afterwards. functional: the program has no mutation left and is decomposed, as torch.compile
    gives it.
    """
    from irc.target.attribute import settle

    options, chosen = options or DEFAULT, settle(module, target)
    manager = PassManager.parse(pipeline_text(chosen, options, functional), verify=verify)
    fuel = Fuel(options.fuel) if options.fuel >= 0 else None
    context = PassContext(
        options=options, explains=bool(options.remarks), measure=_measure(chosen), fuel=fuel
    )
    before = module.clone()
    try:
        manager.run(module, context, check_semantics=options.check_semantics)
    except IRCError as error:
        if not isinstance(error, UserError) or error.__cause__ is not None:
            from irc.validation.reproducer import leave_reproducer

            again = PassContext(
                options=options, explains=False, measure=context.measure,
                fuel=fuel and Fuel(fuel.limit),
            )  # fmt: skip
            leave_reproducer(before, manager.steps, error, again, options.dump_directory)
        raise
    if fuel is not None:
        print(f"irc: fuel: {fuel.told}", file=sys.stderr)
    if options.remarks:
        for remark in chosen_remarks(context.remarks, options.remarks):
            print(remark, file=sys.stderr)
    return context


def _measure(target: Target) -> Callable[[Any], float | None]:
    """How padded products are measured, if one is asked for."""

    def measure(product: Any) -> float | None:
        from irc.runtime.padded_matmul import on_target

        return on_target(target)(product)

    return measure


def compile_module(
    module: ModuleOp, options: Options | None = None, target: Target | str | None = None
) -> Executable:
    """Lower `module` (changed in place, unless the cache has its program) and build what runs it.

    target: as `lower`'s. `irc.runtime.program_cache` says what decides a key.
    """
    from irc.runtime.building import compile_cached
    from irc.target.attribute import settle

    chosen, made_for = options or DEFAULT, settle(module, target)

    def lower_it(program: ModuleOp) -> PassContext:
        return lower(program, None, chosen, verify=chosen.verify, functional=True)

    pipeline = pipeline_text(made_for, chosen)
    return compile_cached(module, lower_it, pipeline=pipeline, options=chosen)
