"""GPUs, as passes see them."""

from __future__ import annotations

import re
from typing import Any

import attrs

from irc.target.cpu import check_speeds
from irc.target.figures import settle_figures
from irc.target.gpu_figures import GpuFigures

#: Elements of images that may be computed with channels innermost.
ELEMENTS = ("bf16", "f16", "f32", "f64")
#: Bytes of shared memory that a program instance may have, by compute capability (CUDA's
#: programming guide); those of others are taken to be `LEAST_SHARED`.
SHARED = {80: 166_912, 87: 166_912, 90: 232_448, 100: 232_448, 103: 232_448}
LEAST_SHARED = 101_376
_CHIP = re.compile(r"sm_([0-9]{2,3})a?")


@attrs.frozen(cache_hash=True)
class GpuFeatures(GpuFigures):
    """One GPU; its speeds are those of a processor of it.

    chip: NVIDIA's name of its instructions. warp: threads that run together. parallel: fewer
    program instances leave processors idle. operations_per_byte: floating-point operations in the
    time of a byte of memory, for 16 and 32 bits. channels_last: elements of images of which cuDNN
    computes convolutions with channels innermost; others it converts. unusual: figures. Raises
    ValueError for what no GPU is.
    """

    chip: str
    warp: int = 32
    parallel: int = 256
    operations_per_byte: tuple[int, int] = (295, 148)
    channels_last: tuple[str, ...] = ("bf16", "f16")
    unusual: tuple[tuple[str, Any], ...] = ()

    def __attrs_post_init__(self) -> None:
        if not _CHIP.fullmatch(self.chip):
            raise ValueError(f"chip is {self.chip!r}, not sm_NUMBER")
        if self.warp not in (32, 64):
            raise ValueError(f"warp is {self.warp}, not 32 or 64")
        strange = [name for name in self.channels_last if name not in ELEMENTS]
        if strange:
            raise ValueError(f"channels_last has {strange[0]!r}, not one of {ELEMENTS}")
        object.__setattr__(self, "channels_last", tuple(sorted(set(self.channels_last))))
        check_speeds(self.parallel, self.operations_per_byte)
        settle_figures(self)

    @staticmethod
    def sm_80() -> GpuFeatures:
        """An A100: 312 and 156 TFLOP/s (bf16, and TF32), 2.04 TB/s (its data sheet)."""
        return GpuFeatures("sm_80", operations_per_byte=(153, 76))

    @staticmethod
    def sm_90() -> GpuFeatures:
        """An H100 SXM: 989 and 495 TFLOP/s (bf16, and TF32), 3.35 TB/s (its data sheet)."""
        return GpuFeatures("sm_90", operations_per_byte=(295, 148))

    def keeps_rows(self, rows: int, points: int) -> bool:
        """Whether a kernel of so many points may be shared by whole rows."""
        return rows >= self.whole_rows or points <= self.few_points

    @property
    def capability(self) -> int:
        """90 for sm_90."""
        return int(self.chip.removeprefix("sm_").rstrip("a"))

    @property
    def block_bytes(self) -> int:
        """Bytes of shared memory that the program instances of a processor have room in."""
        return min(self.shared_bytes, SHARED.get(self.capability, LEAST_SHARED))

    @property
    def waits(self) -> bool:
        """Whether program instances can wait for what was launched before them, and so begin
        before that ends."""
        return self.capability >= 90


__all__ = ["GpuFeatures"]
