"""Which targets this machine can run."""

from __future__ import annotations

from irc.target import Target
from irc.target.cpu import TargetFeatures


def runs_here(name: str) -> bool:
    """Whether this machine has the instructions of a CPU's target."""
    return not TargetFeatures.host().missing_here(Target.named(name).features.needs())


WIDEST = "avx512" if runs_here("avx512") else "avx2"
"""The target with the widest vectors that this machine can run."""
