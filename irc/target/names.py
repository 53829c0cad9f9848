"""The processors that are known by name; each is made by the record's function of that name."""

from __future__ import annotations

CPUS = ("sse2", "avx2", "avx512", "neon")
GPUS = ("sm_80", "sm_90")
PROCESSORS = (*CPUS, *GPUS)
