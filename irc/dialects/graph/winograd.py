"""Winograd's convolution F(4x4, 3x3): a tile of 4x4 results by 36 products instead of 144.

    y = A' [(G w G') * (B' d B)] A      d: 6x6 of the image, w: 3x3 weights, y: 4x4 results

`*` is element by element, and summed over channels it is 36 matrix products. The matrices are
Toom and Cook's for the points 0, +-5/8, +-3/2 and infinity. In f32 these lose less than half of
what the usual 0, +-1, +-2 lose (`python -m bench.convolutions`), and their squares and
products are exact. That other points than small integers are better is a finding of Barabasz,
Anderson, Soodhalter and Gregg (Error Analysis and Improving the Accuracy of Winograd Convolution,
2020).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, prod

import attrs

from irc.ir.symbols import Dim, ceildiv, dim_product

#: Results of a tile in each direction, taps of the kernel, and elements that a tile reads.
TILE, TAPS = 4, 3
READS = TILE + TAPS - 1
#: How many products each pair of a channel in and a channel out has for a tile.
PRODUCTS = READS * READS
INNER, OUTER = Fraction(5, 8), Fraction(3, 2)
POINTS = (Fraction(0), INNER, -INNER, OUTER, -OUTER)

Matrix = tuple[tuple[Fraction, ...], ...]


def image_matrix() -> Matrix:
    """B', of READS by READS: the polynomials that vanish at all points but one, and at all."""
    rows = [_coefficients([q for q in POINTS if q != p]) for p in POINTS]
    return (*rows, _coefficients(list(POINTS)))


def weight_matrix() -> Matrix:
    """G, of READS by TAPS: the kernel's polynomial at each point, over what B' gives there."""
    rows = [
        tuple(p**k / prod((p - q for q in POINTS if q != p), start=Fraction(1))
              for k in range(TAPS))
        for p in POINTS
    ]  # fmt: skip
    return (*rows, _last(TAPS))


def result_matrix() -> Matrix:
    """A', of TILE by READS: powers of the points."""
    at_infinity = _last(TILE)
    return tuple((*(p**k for p in POINTS), at_infinity[k]) for k in range(TILE))


def _last(count: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(int(k == count - 1)) for k in range(count))


def _coefficients(roots: list[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of the product of (x - root), lowest first, of READS in all."""
    product = [Fraction(1)]
    for root in roots:
        higher, lower = [Fraction(0), *product], [*product, Fraction(0)]
        product = [a - root * b for a, b in zip(higher, lower, strict=True)]
    return tuple(product + [Fraction(0)] * (READS - len(product)))


@attrs.frozen(kw_only=True)
class WinogradFigures:
    """Numbers by which weights are laid out and blocks are made, the same for every target.

    vectors: of channels in a panel. skew: elements by which the parts of what is handed on are set
    apart, for other sets of the cache. tiles: of a block, about: each block reads all weights
    once, and its arrays stay in the second-level cache; 14 to 28 were within 3 % for ResNet-50's
    layers on a Zen 4 (32 of 64 channels took a tenth longer).
    """

    vectors: int = 2
    skew: int = 16
    tiles: int = 16


FIGURES = WinogradFigures()


def panel_size(bits: int) -> int:
    """Channels of a panel for registers of so many bits."""
    return FIGURES.vectors * bits // 32


@attrs.frozen(kw_only=True)
class WinogradShape:
    """What the computes of a Winograd convolution depend on.

    `bits`: of a vector register. `panel`: channels out whose weights lie together, [channels,
    panel], so that they are read in order.
    """

    batch: Dim
    height: Dim
    width: Dim
    channels: int
    channels_out: int
    bits: int
    panel: int
    padding: tuple[int, int]

    @property
    def lanes(self) -> int:
        """Lanes of a vector of f32: of a register, if a panel is a multiple of that."""
        return gcd(self.bits // 32, self.panel)

    @property
    def vectors(self) -> int:
        """Vectors of a panel."""
        return self.panel // self.lanes

    @property
    def panels(self) -> int:
        """Panels of channels out."""
        return -(-self.channels_out // self.panel)

    @property
    def image_row(self) -> int:
        """Elements between the channels of two tiles that follow each other: whole vectors."""
        return -(-self.channels // self.lanes) * self.lanes

    @property
    def out_sizes(self) -> tuple[Dim, Dim]:
        """Height and width of the result."""
        return (
            self.height + 2 * self.padding[0] - TAPS + 1,
            self.width + 2 * self.padding[1] - TAPS + 1,
        )

    @property
    def tile_counts(self) -> tuple[Dim, Dim]:
        """Tiles in each direction."""
        high, wide = self.out_sizes
        return ceildiv(high, TILE), ceildiv(wide, TILE)

    @property
    def tile_count(self) -> Dim:
        """Tiles of all images."""
        return dim_product([self.batch, *self.tile_counts])

    @property
    def blocks(self) -> Dim:
        """Blocks of tiles, about."""
        return ceildiv(self.tile_count, FIGURES.tiles)
