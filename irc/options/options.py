"""The options of a compile, with TorchInductor's names where the meaning is the same."""

from __future__ import annotations

import difflib
import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.ir.diagnostics import UserError
from irc.options.table import OPTIONS

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune": {
        "max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True,
    },
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "lite": {},
}  # fmt: skip
# Inductor's names with a dot, and ours.
_ALIASES = {
    "triton.cudagraphs": "cuda_graphs", "cudagraphs": "cuda_graphs",
    "triton.unique_kernel_names": "unique_kernel_names",
}  # fmt: skip


@attrs.frozen
class Options:
    """What a compile may be told. Frozen; part of every cache key.

    `irc.options.table` says what each option does. Raises UserError for a value that an
    option doesn't have; one that changes nothing warns, once in a process.
    """

    target: str = "auto"
    # Freezing, only under no_grad: parameters, buffers and tensor attributes of modules become
    # constants; discard: eager's copies are freed, and its use afterwards raises a RuntimeError.
    freezing: bool = False
    freezing_discard_parameters: bool = False
    # Convolutions of frozen weights in Winograd's form: of 3x3 a quarter of the multiplications,
    # and an infinite or NaN element makes more of its tile NaN. The page on freezing says more.
    winograd: bool = True
    # 1x1 convolutions of frozen weights in kernels of our own rather than oneDNN's.
    panel_convolutions: bool = True
    # Products of f32 as sums of products of bf16 parts, on a CPU whose registers hold whole tiles.
    split_products: bool = True
    # Attention in kernels of our own rather than ATen's, on a CPU whose figures say that it pays.
    own_attention: bool = True
    # Numerics. emulate_rounding: 16-bit floats are rounded after each operation, as in eager.
    emulate_rounding: bool = False
    fallback_random: bool = False
    precise_math: bool = False
    # Layouts. channels_last_tf32: f32 convolutions on a GPU may get channels-last images though
    # cuDNN may then compute them with TF32 where eager doesn't.
    layout_optimization: bool = True
    channels_last_tf32: bool = False
    # Padding. None: on for the target triton, off for llvm. The pages of the passes pad-strides
    # and pad-matmul say what they do; bytes and thresholds are pad-strides'.
    comprehensive_padding: bool | None = None
    padding_alignment_bytes: int = 128
    padding_stride_threshold: int = 1024
    padding_max_bytes: int = 1 << 30
    pad_channels_last: bool = False
    pad_dynamic_shapes: bool = False
    shape_padding: bool | None = None
    force_shape_pad: bool = False
    keep_output_stride: bool = True
    # Tuning.
    max_autotune: bool = False
    max_autotune_gemm: bool = False
    max_autotune_pointwise: bool = False
    max_autotune_gemm_backends: str = "ATEN,TRITON,CPP"
    max_autotune_conv_backends: str = "ATEN,TRITON,CPP"
    # How it is measured: seconds of a compile, in this process or in others, one a device; where
    # results are kept (docs/tuning.md).
    max_autotune_budget: int = 15
    autotune_in_subproc: bool = False
    autotune_multi_device: bool = False
    autotune_local_cache: bool = True
    autotune_remote_cache: bool = False
    autotune_remote_url: str = ""
    autotune_store: str = "readwrite"
    autotune_cache_tag: str = ""
    coordinate_descent_tuning: bool = False
    # Rewriting and fusion.
    pattern_matcher: bool = True
    epilogue_fusion: bool = True
    max_fusion_size: int = 64
    # Running and building.
    # cuda_graphs: calls on a GPU are captured into CUDA graphs and replayed, of so many sizes of a
    # program (docs/design/graphs.md).
    cuda_graphs: bool = False
    cuda_graph_sizes: int = 8
    unique_kernel_names: bool = True
    cpp_wrapper: bool = False
    compile_threads: int = 0
    fx_graph_cache: bool = True
    fx_graph_remote_cache: bool = False
    size_asserts: bool = True
    # late_checks: a GPU's programs don't wait for the checks of indices; a later call on that GPU
    # raises the error, `irc.runtime.late_checks.settle` or the end of the process. None: so on a
    # GPU; a program of a CPU checks at once in any case.
    late_checks: bool | None = None
    # Passes of one's own: {"after:fuse-loops": "my-pass{limit=3}"}, by place in the pipeline.
    # `irc.pipeline.extend` says what a place is.
    passes: tuple[tuple[str, str], ...] = ()
    # Looking inside. clock_aten: `irc.program.clocks` tells the time spent in ATen's operators.
    # check_bounds: each access of a kernel for a CPU is checked, in the interpreter.
    clock_aten: bool = False
    check_bounds: bool = False
    trace_enabled: bool = False
    # verify: "users" runs the verifier after passes that are not irc's, "each" after every one.
    # check_semantics: "each", "changed" or "sample:N" interprets the program before and
    # after passes. remarks: a regular expression; lines of passes' reasons that match go to stderr.
    # The last two make passes run though the cache has their program.
    verify: str = "users"
    check_semantics: str = ""
    remarks: str = ""
    # fuel: so many rewrites of each program are made (-1: all); the last one is told on stderr.
    fuel: int = -1
    # dump_directory: where a pass that fails leaves its program ("": among the temporary files).
    dump_directory: str = ""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(Options):
            value = getattr(self, field.name)
            if value is not field.default and value != field.default:
                _checked(field.name, value, type(field.default))
                _check_entry(field.name, value)

    def replace(self, **changes: Any) -> Options:
        """A copy with some options changed. Raises UserError for an unknown name or a bad value."""
        return from_mapping(changes, self)


DEFAULT = Options()


def moved_rows(options: Options | None, gpu: bool) -> int | None:
    """From how many elements on rows of arrays that only a program sees are moved apart, so that
    they are aligned (`pad-strides`): on a GPU unless told otherwise; None: none are."""
    asked = options or DEFAULT
    chosen = gpu if asked.comprehensive_padding is None else asked.comprehensive_padding
    return asked.padding_stride_threshold if chosen else None


def from_mapping(mapping: Mapping[str, Any] | None, base: Options = DEFAULT) -> Options:
    """Options by name ("triton.cudagraphs" and "trace.enabled" as in Inductor too).

    Raises UserError for an unknown name (with the nearest known one) and for a value of another
    type than the option's.
    """
    values: dict[str, Any] = {}
    fields = attrs.fields_dict(Options)
    for key, value in (mapping or {}).items():
        name = _ALIASES.get(key, key).replace("-", "_").replace(".", "_")
        if name not in fields:
            close = difflib.get_close_matches(name, fields, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise UserError(f"unknown option '{key}'{hint}")
        values[name] = _checked(key, value, type(fields[name].default))
    return attrs.evolve(base, **values)


def from_texts(texts: Mapping[str, str]) -> Options:
    """Options whose values are text, as the options behind a pipeline's name: `passes` is
    "after:fuse-loops=my-pass{limit=3}; ...". Raises UserError."""
    words = {"true": True, "1": True, "": True, "false": False, "0": False}
    fields = attrs.fields_dict(Options)
    values: dict[str, Any] = {}
    for key, text in texts.items():
        field = fields.get(key.replace("-", "_"))
        default = None if field is None else field.default
        if isinstance(default, bool) or field is not None and default is None:
            values[key] = words.get(text.lower(), text)
        elif isinstance(default, int):
            values[key] = int(text) if text.lstrip("-").isdigit() else text
        elif isinstance(default, tuple):
            pairs = [part.partition("=") for part in text.split(";") if part.strip()]
            values[key] = {place.strip(): passes.strip() for place, _, passes in pairs}
        else:
            values[key] = text
    return from_mapping(values)


def _check_entry(name: str, value: Any) -> None:
    """Raise UserError for a value that the option doesn't have; warn of one without effect."""
    entry = OPTIONS[name]
    text = entry.begins and value.startswith(entry.begins)
    if entry.choices and value not in entry.choices and not text:
        close = entry.meant.get(value) or next(
            iter(difflib.get_close_matches(value, entry.choices, 1)), None
        )
        hint = f"; did you mean '{close}'?" if close else ""
        raise UserError(f"option '{name}' is {_one_of(entry.choices)}, not {value!r}{hint}")
    wrong = entry.check(value) if entry.check is not None else ""
    if wrong:
        raise UserError(f"option '{name}': {value!r} is {wrong}")
    if entry.idle:
        _warn_of_idle(name)


def _one_of(choices: Sequence[str]) -> str:
    words = [repr(choice) for choice in choices]
    return f"{', '.join(words[:-1])} or {words[-1]}"


@functools.cache
def _warn_of_idle(name: str) -> None:
    """Tell, once in a process, that setting an option changes nothing."""
    warnings.warn(f"irc: option '{name}' has no effect: {OPTIONS[name].idle}", stacklevel=6)


def _checked(key: str, value: Any, type_: type) -> Any:
    if type_ is tuple:  # texts by place
        pairs = tuple(value.items()) if isinstance(value, Mapping) else value
        if isinstance(pairs, tuple) and all(
            isinstance(pair, tuple) and [*map(type, pair)] == [str, str] for pair in pairs
        ):
            return pairs
        raise UserError(f"option '{key}' is a dict of texts by place, not {value!r}")
    if type_ is type(None):  # a switch that the target decides
        return None if value is None else _checked(key, value, bool)
    if type_ is bool and isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    if type_ is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if type_ is str and isinstance(value, str):
        return value
    raise UserError(f"option '{key}' is {type_.__name__}, not {value!r}")


def parse_options(
    mode: str | None = None, options: Mapping[str, Any] | Options | None = None
) -> Options:
    """The options of a `torch.compile(..., backend="irc", mode=, options=)` call."""
    if isinstance(options, Options):
        return options
    if options is not None and not isinstance(options, Mapping):
        raise UserError(f"options are a dict or irc.Options, not {type(options).__name__}")
    if mode is not None and mode not in MODES:
        close = difflib.get_close_matches(mode, MODES, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise UserError(f"unknown mode '{mode}'{hint}")
    base = from_mapping(MODES[mode]) if mode else DEFAULT
    return from_mapping(options, base)
