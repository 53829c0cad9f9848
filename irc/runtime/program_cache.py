"""Compiled programs in the disk cache.

Two keys lead to one kind of entry (object code, and the host program as JSON):

* the key of the lowered module, used by `irc.build`: skips generating code;
* the key of the module as it came from the front end, with the pipeline's text: skips all passes.

    executable = compile_cached(module, lower, pipeline="convert-aten-to-graph,...")

`irc.cache.keys` says what a key is made of; to it come the options of the build. Large constants
are no part of an entry: they are named by key, and looked up beside the module. Of those that a
pass computed from others the entry says how (as the text of a small program), and
they are computed again when it is loaded.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Set
from typing import Any

from irc.boundary import torch_abi
from irc.cache import torch_artifacts
from irc.cache.keys import canonical_text, irc_key, key_of, versions_key
from irc.cache.store import shared_cache
from irc.ir.core import Operation
from irc.ir.diagnostics import InternalError
from irc.ir.passes import Pass, PassContext, PassManager, loaded_passes, passes_of
from irc.ir.rewrite.patterns import canonicalization_patterns
from irc.program import host_program as P
from irc.program.folded import FoldedConstants
from irc.runtime import metrics
from irc.runtime.build_program import BuildOptions, CompiledParts, compile_parts, gpu_key
from irc.target.attribute import carried

#: Counters of `irc.metrics` by the statistic (pass, name) that they are taken from.
_COUNTED = {
    "layout_copies": ("elide-layout-copies", "copies"),
    "layout_copies_inside": ("elide-layout-copies", "copies inside"),
    "num_comprehensive_padding": ("pad-strides", "padded"),
    "padding_bytes": ("bufferize", "padding bytes"),
}


def module_key(module: Operation, options: BuildOptions, *context: str) -> str:
    """The key of `module`, its target among it; `context` is whatever else decides what becomes of
    it. Raises InternalError for a module without a target."""
    target = carried(module)
    if target is None:
        raise InternalError("a program is keyed with its target, and this module carries none")
    native = options.native and torch_abi.available()
    return key_of(
        canonical_text(module),
        irc_key(),
        versions_key(),
        f"native={native} precise={options.precise} clocked={options.clock_aten} "
        f"captured={options.captured}",
        *(gpu_key(options) if target.is_gpu else ()),
        *context,
    )


# Entries


def pack(parts: CompiledParts) -> bytes:
    """An entry: length of the JSON, the JSON, the two objects, the entries of called programs."""
    called = {name: pack(each) for name, each in parts.called.items()}
    record = {
        "program": P.to_json(parts.program),
        "kernels": len(parts.kernels),
        "host": len(parts.host),
        "slots": _slots_to_json(parts.slots),
        "externals": sorted(parts.externals),
        "counters": dict(parts.counters),
        "folded": [[step.text, list(step.keys)] for step in parts.folded],
        "called": [[name, len(entry)] for name, entry in called.items()],
        "needs": list(parts.needs),
        "chip": parts.chip,
    }
    text = json.dumps(record, separators=(",", ":")).encode()
    head = struct.pack("<Q", len(text)) + text
    return b"".join((head, parts.kernels, parts.host, *called.values()))


def unpack(data: bytes) -> CompiledParts:
    """The inverse of `pack`. Raises ValueError for anything else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        record = json.loads(data[8 : 8 + length])
        middle = 8 + length + record["kernels"]
        end = middle + record["host"]
        called: dict[str, CompiledParts] = {}
        begin = end
        for name, size in record["called"]:
            called[name] = unpack(data[begin : begin + size])
            begin += size
        if len(data) != begin:
            raise ValueError("the objects' lengths don't fit")
        return CompiledParts(
            P.from_json(record["program"]),
            data[8 + length : middle],
            data[middle:end],
            _slots_from_json(record["slots"]),
            frozenset(record["externals"]),
            record["counters"],
            tuple(FoldedConstants(text, tuple(keys)) for text, keys in record["folded"]),
            called,
            tuple(record["needs"]),
            record["chip"],
        )
    except (struct.error, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"this is no compiled program: {error}") from error


def _slots_to_json(value: Any) -> Any:
    """Keys of objects: tuples of JSON's types, with an operator's arguments among them."""
    from irc.boundary.aten_paths import Named
    from irc.boundary.templates import Dynamic

    if isinstance(value, Dynamic):
        return {"dynamic": value.index}
    if isinstance(value, Named):
        return {"named": [value.kind, value.name]}
    if isinstance(value, (tuple, list)):
        return [_slots_to_json(item) for item in value]
    return P.to_json(value)


def _slots_from_json(value: Any) -> Any:
    from irc.boundary.aten_paths import Named
    from irc.boundary.templates import Dynamic

    if isinstance(value, list):
        return tuple(_slots_from_json(item) for item in value)
    if isinstance(value, dict) and "dynamic" in value:
        return Dynamic(value["dynamic"])
    if isinstance(value, dict) and "named" in value:
        return Named(*value["named"])
    return P.from_json(value)


def lookup(key: str, resources: Mapping[str, Any]) -> CompiledParts | None:
    """The parts stored under `key`; None when there are none, or a constant isn't at hand."""
    data = shared_cache().get(key)
    if data is None:
        metrics.add("cache_misses")
        return None
    metrics.add("cache_hits")
    try:
        parts = unpack(data)
    except ValueError:
        return None
    torch_artifacts.record(key)
    computed = {key for step in parts.folded for key in step.keys}
    known = computed | set(resources)
    return parts if _has_constants(parts, known) else None


def _has_constants(parts: CompiledParts, known: Set[str]) -> bool:
    """Whether the constants that no entry holds are at hand, also those of called programs."""
    own = all(
        constant.data is not None or name.partition(":")[0] in known
        for name, constant in parts.program.constants.items()
    )
    return own and all(_has_constants(each, known) for each in parts.called.values())


def store(key: str, parts: CompiledParts) -> bool:
    """Keep the parts under `key`; False when the cache can't."""
    stored = shared_cache().put(key, pack(parts))
    metrics.add("cache_puts", int(stored))
    if stored:
        torch_artifacts.record(key)
    return stored


def compiled_parts(
    module: Any, options: BuildOptions, counters: Mapping[str, int] | None = None
) -> CompiledParts:
    """The compiled form of a lowered module: from the cache, else compiled and stored.

    `counters` is what passes counted on the way to this module.
    """
    if not options.cache or shared_cache().unusable is not None:
        return compile_parts(module, options, counters)
    key = module_key(module, options, "lowered")
    parts = lookup(key, getattr(module, "resources", {}))
    if parts is None:
        parts = compile_parts(module, options, counters)
        store(key, parts)
    return parts


def pipeline_key(pipeline: str) -> str | None:
    """What decides the effect of a pipeline: its passes' keys.

    None when a pattern or a converter that is not irc's own takes part, or such a pass that doesn't
    define `cache_key`: nothing would tell two of them apart.
    """
    if any(not _is_ours(p.function) for p in canonicalization_patterns()):
        return None
    loaded = loaded_passes().values()
    if any(cls.conversion is not None and cls.conversion.has_foreign for cls in loaded):
        return None
    if all(_is_ours(cls) for cls in loaded):
        return key_of(pipeline)  # the sources of irc's passes are in every key
    passes = list(passes_of(PassManager.parse(pipeline).steps))
    if any(not _is_ours(type(p)) and not _has_own_key(p) for p in passes):
        return None
    return key_of(pipeline, *(p.cache_key() for p in passes))


def _is_ours(thing: Any) -> bool:
    """Whether a function or class comes with irc, whose sources are in every key."""
    return getattr(thing, "__module__", "").partition(".")[0] == "irc"


def _has_own_key(pass_: Pass) -> bool:
    return type(pass_).cache_key is not Pass.cache_key


def folded_by(context: PassContext | None) -> tuple[FoldedConstants, ...]:
    """The constants that the pass `fold-constants` computed, in order."""
    return () if context is None else tuple(context.folded)


def pass_counters(context: PassContext | None) -> dict[str, int]:
    """The counters of `irc.metrics` that passes decide, from their statistics."""
    if context is None:
        return {}
    amounts = {name: context.statistics[place] for name, place in _COUNTED.items()}
    return {name: amount for name, amount in amounts.items() if amount}
