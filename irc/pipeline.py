"""The named pipelines, in the order in which a program goes through them, and `compile_module`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from irc.ir.passes import (
    PassContext,
    PassManager,
    chosen_remarks,
    pass_text,
    register_pipeline,
)

if TYPE_CHECKING:
    from irc.dialects.builtin import ModuleOp
    from irc.runtime.executable import Executable

# For programs from `irc.trace` or from text; torch.compile's graphs come functional already.
FUNCTIONAL = "functionalize,decompose-aten"

# Each stage takes a module on one level to the next one.
STAGES: dict[str, str] = {
    "aten-to-graph": (
        "split-signs,convert-aten-to-graph,canonicalize,cse,accumulate-scatters,hoist-assertions,"
        "reinplace"
    ),
    "graph-to-layout": (
        "propagate-channels-last,assign-layouts,insert-layout-copies,elide-layout-copies,cse"
    ),
    "layout-to-loop": "convert-to-loop,cse,dce",
    "fuse-loops": (
        "inline-computes,factor-axes,rows-first,merge-computes,group-computes,attach-checks,"
        "localize,split-reductions,elide-rounding"
    ),
    "loop-to-kernel": (
        "schedule{target=$TARGET},form-kernels,hoist-columns,join-launches,form-convolution-kernels"
    ),
    "kernel-to-host": "bufferize,plan-memory",
}
# What becomes of constants of a frozen program, on the graph level.
FOLD = "fold-batch-norms,merge-linears,fold-constants"
PANELS = "panel-convolutions"
WINOGRAD = "winograd-convolutions"
PROPAGATE = "propagate-channels-last"
TARGETS = {"llvm": "cpu", "triton": "gpu"}

for _stage, _text in STAGES.items():
    register_pipeline(_stage, _text.replace("$TARGET", "cpu"))
register_pipeline("functional", FUNCTIONAL)
register_pipeline("lower-to-cpu", ",".join(("functional", *STAGES)))


def pipeline_text(target: str = "llvm", options: Any = None) -> str:
    """The whole default pipeline for `target` ("llvm" or "triton") as text."""
    text = ",".join(STAGES.values()).replace("$TARGET", TARGETS[target])
    if getattr(options, "emulate_rounding", False):
        text = text.replace(",elide-rounding", "").replace(",accumulate-scatters", "")
    layout_optimization = getattr(options, "layout_optimization", True)
    if getattr(options, "freezing", False):
        fold = FOLD
        if target == "llvm" and layout_optimization:
            ours = [WINOGRAD] * options.winograd + [PANELS] * options.panel_convolutions
            fold = FOLD.replace("fold-constants", ",".join((*ours, "fold-constants")))
        text = text.replace("canonicalize,cse", f"canonicalize,cse,{fold}", 1)
    if target == "llvm" and getattr(options, "freezing", False):
        pack = "pack-weights" if layout_optimization else "pack-weights{convolutions=false}"
        fuse = "fuse-epilogues," if options.epilogue_fusion else ""
        text = text.replace(PROPAGATE, f"{pack},{fuse}{PROPAGATE}")
    if not layout_optimization:
        text = text.replace(f"{PROPAGATE},", "")
    if _is_on("shape_padding", target, options):
        force = "{force=true}" if getattr(options, "force_shape_pad", False) else ""
        before = "convert-aten-to-graph,canonicalize"
        text = text.replace(before, f"{before},pad-matmul{force}")
    if _is_on("comprehensive_padding", target, options):
        text = text.replace("assign-layouts", f"assign-layouts,{_pad_strides(options)}")
    return text


def _is_on(switch: str, target: str, options: Any) -> bool:
    """Whether a switch of the options is on; None leaves it to the target: on for triton."""
    chosen = getattr(options, switch, None)
    return target == "triton" if chosen is None else bool(chosen)


def _pad_strides(options: Any) -> str:
    from irc.passes.layout.pad_strides import PadStrides

    if options is None:
        return PadStrides.name
    return pass_text(
        PadStrides(
            alignment=options.padding_alignment_bytes,
            threshold=options.padding_stride_threshold,
            channels_last=options.pad_channels_last,
            symbolic=options.pad_dynamic_shapes,
            max_bytes=options.padding_max_bytes,
        )
    )


def lower(
    module: ModuleOp,
    target: str = "llvm",
    options: Any = None,
    verify: str = "none",
    functional: bool = False,
) -> PassContext:
    """Take an aten-level module down to kernels and a host program, in place.

    functional: the program has no mutation left and is decomposed, as torch.compile gives it.
    """
    text = pipeline_text(target, options)
    manager = PassManager.parse(text if functional else f"{FUNCTIONAL},{text}", verify=verify)
    wanted = getattr(options, "remarks", "")
    context = PassContext(target=target, options=options, explains=bool(wanted))
    manager.run(module, context, check_semantics=getattr(options, "check_semantics", ""))
    for remark in chosen_remarks(context.remarks, wanted) if wanted else ():
        print(remark, file=sys.stderr)
    return context


def compile_module(module: ModuleOp, options: Any = None, target: str = "llvm") -> Executable:
    """Lower `module` (changed in place, unless the cache has its program) and build what runs it.

    `irc.runtime.program_cache` says what decides a key.
    """
    from irc.runtime.program_cache import compile_cached

    def lower_it(given: ModuleOp) -> PassContext:
        verify = getattr(options, "verify", "none")
        return lower(given, target, options, verify=verify, functional=True)

    pipeline = pipeline_text(target, options)
    return compile_cached(module, lower_it, pipeline=pipeline, options=options, target=target)
