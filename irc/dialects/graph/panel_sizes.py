"""Sizes of the kernels that compute convolutions themselves: panels, rows and blocks.

A convolution's matrix product goes over *blocks* of rows (tiles or pixels), and in each over
*panels* of channels out. Its innermost loop holds the sums of a few rows and one panel in
registers; a panel's weights lie together, [channels, panel], so that it reads them in order.
"""

from __future__ import annotations

from math import gcd

import attrs

from irc.ir.symbols import Dim


@attrs.frozen(kw_only=True)
class ConvolutionFigures:
    """Numbers by which these kernels are made, the same for every target: the verifier of an
    operation and what plans its memory know none. Kernels that schedules say will have keys.

    rows: that the innermost loop holds the sums of in registers of 512, 256 and 128 bits: 16 sums
    of 32 registers (AVX-512), 12 of 16 (AVX2), 8 of 16 or 32; six to ten were as fast on Zen 4,
    more share sets of the cache. vectors: of channels in a panel. skew: elements by which rows or
    parts of a workspace are set apart, for other sets of the cache. tiles: of a block of
    Winograd's, about: each block reads all weights once, and its arrays stay in the second-level
    cache; 16 to 32 were within 3 % for ResNet-50's layers on Zen 4. unroll: steps of the innermost
    loop that are written out. line: elements of a line of the cache.
    """

    rows: tuple[int, int, int] = (8, 6, 4)
    vectors: int = 2
    skew: int = 16
    tiles: int = 24
    unroll: int = 4
    line: int = 16


FIGURES = ConvolutionFigures()


def panel_size(bits: int) -> int:
    """Channels of a panel for registers of so many bits."""
    return FIGURES.vectors * bits // 32


@attrs.frozen(kw_only=True)
class ConvolutionShape:
    """What the kernel of a convolution depends on.

    `bits`: of a vector register. `panel`: channels out that the innermost loop computes.
    `activation`: what the kernel applies, with its `scalars`.
    """

    batch: Dim
    height: Dim
    width: Dim
    channels: int
    channels_out: int
    bits: int
    panel: int
    bias: bool = False
    other: bool = False
    activation: str | None = None
    scalars: tuple[float, ...] = ()

    @property
    def lanes(self) -> int:
        """Lanes of a vector of f32: of a register, if a panel is a multiple of that."""
        return gcd(self.bits // 32, self.panel)

    @property
    def vectors(self) -> int:
        """Vectors of a panel."""
        return self.panel // self.lanes

    @property
    def rows(self) -> int:
        """Rows that the innermost loop computes."""
        rows = FIGURES.rows[(512, 256, 128).index(self.bits)]
        return max(rows * FIGURES.vectors // self.vectors, 1)

    @property
    def panels(self) -> int:
        """Panels of channels out."""
        return -(-self.channels_out // self.panel)

    @property
    def image_row(self) -> int:
        """Elements of a row's channels in a workspace: whole vectors."""
        return -(-self.channels // self.lanes) * self.lanes

    @property
    def blocks(self) -> Dim:
        """Blocks of rows."""
        raise NotImplementedError

    @property
    def workspaces(self) -> tuple[tuple[Dim, int], ...]:
        """The sizes of the arrays of its own that the kernel needs: a row of each for each block
        that a call may begin with."""
        raise NotImplementedError

    def in_rows(self, count: int) -> int:
        """`count` rows of a block or a few more: a multiple of `rows`."""
        return -(-count // self.rows) * self.rows
