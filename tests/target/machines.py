"""Processors that this one may not be, with other numbers of threads."""

from __future__ import annotations

import attrs

from irc.target import Target
from irc.target.cpu_figures import unusual_figures
from irc.target.figures import evolve

PAIRS = ("avx512bf16", "avx512vnni")
TILES = (*PAIRS, "amx-bf16", "amx-tile")


def machine(processor: str, threads: int, sets: tuple[str, ...] = (), chip: str = "") -> Target:
    """A target with more instruction sets, and the figures of a chip."""
    target = Target.named(processor)
    features = target.processor
    known = tuple(sorted({*features.sets, *sets}))  # type: ignore[union-attr]
    features = attrs.evolve(features, sets=known)
    figures = unusual_figures(chip, known)
    return attrs.evolve(target, threads=threads, processor=evolve(features, **figures))


MACHINES = {
    "sse2": machine("sse2", 4), "zen 3": machine("avx2", 16, chip="znver3"),
    "avx512": machine("avx512", 12), "zen 4": machine("avx512", 8, PAIRS, "znver4"),
    "zen 4, 48 threads": machine("avx512", 48, PAIRS, "znver4"), "neon": machine("neon", 10),
    "tiles": machine("avx512", 1, TILES), "tiles, 16 threads": machine("avx512", 16, TILES),
}  # fmt: skip
