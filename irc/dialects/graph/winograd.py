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
from math import prod

import attrs

from irc.dialects.graph.panel_sizes import FIGURES, ConvolutionShape
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
class WinogradShape(ConvolutionShape):
    """What the kernel of a Winograd convolution depends on; its rows are tiles.

    `tiles`: of a block, at least; 0: the usual.
    """

    padding: tuple[int, int]
    tiles: int = 0

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
    def block(self) -> int:
        """Tiles of a block, a multiple of `rows`."""
        return self.in_rows(self.tiles or FIGURES.tiles)

    @property
    def blocks(self) -> Dim:
        """Blocks of tiles."""
        return ceildiv(self.tile_count, self.block)

    def part(self, row: int) -> int:
        """Elements from one product's part of an array to the next's."""
        return self.block * row + FIGURES.skew

    @property
    def workspaces(self) -> tuple[tuple[Dim, int], tuple[Dim, int]]:
        """The sizes of the transformed image and of the products' sums."""
        return (
            (self.blocks, PRODUCTS * self.part(self.image_row)),
            (self.blocks, PRODUCTS * self.part(self.panel)),
        )
