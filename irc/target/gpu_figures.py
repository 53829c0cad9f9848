"""`GpuFigures`: what decides how a kernel runs on a GPU."""

from __future__ import annotations

import attrs

from irc.target.figures import figure
from irc.target.speeds import Speeds


@attrs.frozen(cache_hash=True, kw_only=True)
class GpuFigures(Speeds):
    """Figures of passes on a GPU."""

    launch: int = figure(16_000_000, "operations", "a kernel more: 2.5 us")
    serial: int = figure(0, "operations", "a program instance is serial work anyway")
    femtoseconds: int = figure(
        150, "fs", "the time of an operation: a byte takes what it does at 3.3 TB/s", least=1)


__all__ = ["GpuFigures"]
