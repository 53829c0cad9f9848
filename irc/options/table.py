"""What each option of a compile does: the one table behind the checks and `docs/options.md`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import attrs

from irc.ir.diagnostics import UserError
from irc.target.names import PROCESSORS

TRITON_ON = "on for triton, off for llvm, unless chosen"


@attrs.frozen
class Entry:
    """An option: its effect, and TorchInductor's name for it ("": Inductor has none).

    idle: why setting it changes nothing ("": it has an effect). choices: its values, where these
    are few. check: says what is wrong with a value, or gives "". meant: what a value that others
    use for the same thing is called here. begins: how the values begin that are no choice but a
    text, which is read where it is used.
    """

    effect: str
    inductor: str = ""
    idle: str = ""
    choices: tuple[str, ...] = ()
    check: Callable[[object], str] | None = None
    meant: Mapping[str, str] = attrs.field(factory=dict)
    begins: str = ""


def _semantics(value: object) -> str:
    known = value in ("", "each", "changed") or re.fullmatch(r"sample:[1-9]\d*", str(value))
    return "" if known else "not 'each', 'changed' or 'sample:N'"


def _expression(value: object) -> str:
    try:
        re.compile(str(value))
    except re.error as error:
        return f"no regular expression: {error}"
    return ""


def _target(value: object) -> str:
    from irc.target import Target

    try:
        _ = Target.named(str(value)) if str(value).startswith("#") else None
    except UserError as error:
        return f"no target: {error.message}"
    return ""


def at_least(least: int) -> Callable[[object], str]:
    """A check of integers."""

    def check(value: object) -> str:
        return "" if isinstance(value, int) and value >= least else f"less than {least}"

    return check


#: Who computes products on a CPU and on a GPU, by the words of `max_autotune_gemm_backends`: ATen's
#: libraries, or irc. TorchInductor's other words are known, and stand for nothing here.
BACKENDS: Mapping[str, tuple[str, str]] = {
    "ATEN": ("aten", "aten"), "IRC": ("irc", "irc"), "CPP": ("irc", ""), "TRITON": ("", "irc"),
    "CUTLASS": ("", ""), "CK": ("", ""), "CKTILE": ("", ""), "CUTEDSL": ("", ""),
    "NVGEMM": ("", ""),
}  # fmt: skip


def own_backends(words: str, gpu: bool) -> frozenset[str]:
    """Who may compute something, "aten" or "irc", by words of `BACKENDS` with commas."""
    meant = (BACKENDS.get(word.strip().upper(), ("", "")) for word in words.split(","))
    return frozenset(names[gpu] for names in meant) - {""}


def _backends(value: object) -> str:
    words = [word.strip().upper() for word in str(value).split(",")]
    wrong = [word for word in words if word not in BACKENDS]
    return f"a list with {wrong[0]!r}, which is none of {', '.join(BACKENDS)}" if wrong else ""


_SAME = "same name"
TARGETS = {"cpu": "llvm", "cuda": "triton", "gpu": "triton", "inductor": "auto"}

OPTIONS: dict[str, Entry] = {
    "target": Entry(
        "What code is made for: `llvm` for this machine's CPU, `triton` for its GPU, `auto` by the "
        "devices of the inputs; or a known processor, or `#irc.target<...>` "
        "([targets](targets.md)).",
        choices=("auto", "llvm", "triton", *PROCESSORS), meant=TARGETS, begins="#irc.target<",
        check=_target,
    ),
    "freezing": Entry(
        "Under `no_grad`, parameters, buffers and tensor attributes of modules become constants: "
        "[freezing](freezing.md).", _SAME,
    ),
    "freezing_discard_parameters": Entry(
        "Eager's copies of what is frozen are freed; using them afterwards is an error.", _SAME
    ),
    "winograd": Entry(
        "Convolutions of frozen weights in Winograd's form: of 3x3 a quarter of the "
        "multiplications; an infinite or NaN element makes more of its tile NaN."
    ),
    "panel_convolutions": Entry(
        "1x1 convolutions of frozen weights in kernels of irc's own rather than oneDNN's."
    ),
    "split_products": Entry(
        "Products of f32 may be of three parts of bf16 for each number, which is as exact as f32 "
        "([how](design/contractions.md#on-a-cpu)), where registers of whole tiles (AMX) or a "
        "GPU's matrices multiply these faster; numbers below 2^-103 lose bits."
    ),
    "own_attention": Entry(
        "Attention in kernels of irc's own: on a CPU rather than ATen's, where the processor's "
        "figures say that these are faster, and on both targets where a function changes scores, "
        "which the library's has not ([how](design/contractions.md#streamed-products))."
    ),
    "emulate_rounding": Entry(
        "16-bit floats are rounded after each operation, as in eager.", "emulate_precision_casts"
    ),
    "fallback_random": Entry(
        "Random numbers are eager's.", _SAME, idle="random numbers are eager's in any case"
    ),
    "precise_math": Entry("Functions as exp and log with the last bits right, but slower."),
    "layout_optimization": Entry(
        "Images may get their channels innermost where that moves fewer bytes.", _SAME
    ),
    "channels_last_tf32": Entry(
        "f32 convolutions on a GPU may get channels-last images though cuDNN may then compute "
        "them with TF32 where eager doesn't."
    ),
    "comprehensive_padding": Entry(
        f"Rows of arrays are moved apart ([padding](padding.md)); {TRITON_ON}.", _SAME
    ),
    "padding_alignment_bytes": Entry("What rows are aligned to, in bytes.", _SAME,
                                     check=at_least(1)),
    "padding_stride_threshold": Entry("Smaller strides are not padded.", _SAME, check=at_least(0)),
    "padding_max_bytes": Entry("Most bytes that padding may add.", check=at_least(0)),
    "pad_channels_last": Entry("Images with their channels innermost are padded, too.", _SAME),
    "pad_dynamic_shapes": Entry("Arrays of symbolic sizes are padded, too.", _SAME),
    "shape_padding": Entry(f"Matrix products of odd sizes are padded; {TRITON_ON}.", _SAME),
    "force_shape_pad": Entry("... without measuring whether it pays.", _SAME),
    "keep_output_stride": Entry(
        "Results have eager's strides.", _SAME, idle="results have eager's strides in any case"
    ),
    "max_autotune": Entry(
        "Who computes products and convolutions is chosen ([how](design/contractions.md)).", _SAME
    ),
    "max_autotune_gemm": Entry("... and nothing else is tuned.", _SAME),
    "max_autotune_pointwise": Entry("Kernels that are no products are tuned.", _SAME),
    "max_autotune_gemm_backends": Entry(
        "What may compute products then: `ATEN`, the libraries, `IRC`, kernels of irc's, which "
        "`CPP` are on a CPU and `TRITON` on a GPU. Without `ATEN` no product is a library's. On a "
        "GPU without tuning: whether irc may where the cost model says so "
        "([who multiplies](design/contractions.md#who-multiplies-where-rows-are-odd)).",
        _SAME, check=_backends,
    ),
    "max_autotune_conv_backends": Entry("... and convolutions.", _SAME, check=_backends),
    "max_autotune_budget": Entry(
        "Most seconds that a compile measures; then the cost model chooses. What stores have "
        "takes none ([tuning](tuning.md)).", check=at_least(0),
    ),
    "autotune_in_subproc": Entry(
        "Candidates run in another process, which may crash or hang; it takes some seconds to "
        "start, once.", _SAME,
    ),
    "autotune_multi_device": Entry(
        "... and in one for each visible GPU, which sees no other.", _SAME
    ),
    "autotune_local_cache": Entry("What was measured is kept in irc's cache on disk.", _SAME),
    "autotune_remote_cache": Entry("... and on a Redis server, as JSON.", _SAME),
    "autotune_remote_url": Entry(
        "The server, as `redis://host:6379/0`; empty: the environment's `IRC_REDIS_URL`, else this "
        "machine's."
    ),
    "autotune_store": Entry(
        "`readonly` keeps nothing anywhere; `offline` asks no server.",
        choices=("readwrite", "readonly", "offline"),
    ),
    "autotune_cache_tag": Entry("A text that belongs to the keys: another one finds nothing."),
    "coordinate_descent_tuning": Entry(
        "What is near the winner is measured, too, as long as that is faster.", _SAME
    ),
    "pattern_matcher": Entry(
        "Attention that was written out becomes one operator: [attention](attention.md).", _SAME,
    ),
    "epilogue_fusion": Entry(
        "What follows a frozen convolution or linear goes into oneDNN's call; off, it is a kernel "
        "of irc's, which keeps NaN in relu.", _SAME,
    ),
    "max_fusion_size": Entry("Most operations of a kernel.", _SAME,
                             idle="the passes' own bounds decide", check=at_least(1)),
    "cuda_graphs": Entry(
        "Calls on a GPU are captured into CUDA graphs and replayed ([how](design/graphs.md)); "
        "`mode=\"reduce-overhead\"`.", "triton.cudagraphs",
    ),
    "cuda_graph_sizes": Entry(
        "Of how many sizes a program has graphs; further ones run without, and a warning says so "
        "once.", check=at_least(1),
    ),
    "unique_kernel_names": Entry("Kernels are named apart.", "triton.unique_kernel_names",
                                 idle="kernels are named apart in any case"),
    "cpp_wrapper": Entry("The host program is native code.", _SAME,
                         idle="the host program is native code in any case"),
    "compile_threads": Entry(
        "How many threads build what is to be measured; 0: one a processor, up to 8.", _SAME,
        check=at_least(0),
    ),
    "fx_graph_cache": Entry("Compiled programs are kept on disk.", _SAME),
    "fx_graph_remote_cache": Entry("... and elsewhere.", _SAME, idle="there is no remote cache"),
    "size_asserts": Entry("Sizes and strides of arguments are checked.", _SAME,
                          idle="they are checked in any case"),
    "late_checks": Entry(
        "A GPU's programs don't wait for the checks of indices; a later call raises the error. "
        "`False`: they wait at each, and raise it at once."
    ),
    "passes": Entry(
        "Passes of your own by place in the pipeline: `{\"after:fuse-loops\": \"my-pass\"}`; "
        "[how](first-pass-in-torch-compile.md)."
    ),
    "clock_aten": Entry("`irc.program.clocks` tells the time spent in ATen's operators."),
    "check_bounds": Entry(
        "Kernels for a CPU run in the interpreter, slowly, and each access is checked: one outside "
        "of its tensor is an `IndexError` with the operation and its line. For `llvm` only."
    ),
    "trace_enabled": Entry("Artefacts of each compile are kept.", "trace.enabled",
                           idle="irc-opt shows the levels, and dump_directory keeps what fails"),
    "verify": Entry("When the verifier runs: after each pass of the user's own (`users`), after "
                    "`each` pass, at the `end`, or never (`none`).",
                    choices=("users", "none", "each", "end")),
    "check_semantics": Entry(
        "Runs the program in the interpreter before and after passes: `each`, those that "
        "`changed` it, or `sample:N`; [checking passes](checking-passes.md).", check=_semantics,
    ),
    "remarks": Entry(
        "A regular expression: passes' reasons that match go to stderr; [remarks](remarks.md).",
        check=_expression,
    ),
    "fuel": Entry(
        "So many rewrites of each program are made (-1: all), and the last one is told: what to "
        "halve to [find the rewrite](troubleshooting.md#which-rewrite-is-it) that changes a "
        "result.", check=at_least(-1),
    ),
    "dump_directory": Entry(
        "Where a pass that fails leaves its program; empty: among the temporary files."
    ),
}  # fmt: skip
