"""Winograd's convolutions: a tile of results by fewer products than it has terms.

    y = A' [(G w G') * (B' d B)] A      d: elements of the image, w: weights, y: a tile of results

`*` is element by element, and summed over channels it is a matrix product for each element. F(4x4,
3x3) gives 4x4 results of 3x3 weights by 36 products instead of 144. A direction by itself is a
`TileLine`. With a stride s the image's elements, and the taps, are those of s `TilePhase`s, which
have no stride: each is transformed by itself, and their sums are added up. So 3 taps with stride 2
are two taps on every other element and one on those between: 5 products for 2 results instead of 6,
9 for 4 instead of 12.

The matrices of a phase are Toom and Cook's for a few points and infinity. That other points than
small integers are better is a finding of Barabasz, Anderson, Soodhalter and Gregg (Error Analysis
and Improving the Accuracy of Winograd Convolution, 2020); `python -m bench.convolutions` says what
they lose in f32. A phase of one tap, and one with one result, is multiplied as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, prod

import attrs

from irc.ir.symbols import Dim, ceildiv, dim_product, floordiv

Matrix = tuple[tuple[Fraction, ...], ...]

#: Points p that stand for p and -p, by how many points but infinity a phase has: 0 is one of them
#: where that number is odd. Those that lose least in f32 of what was tried, squares and products of
#: which are exact; 0, +-5/8 and +-3/2 lose less than half of what the usual 0, +-1, +-2 lose.
PAIRS: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(5, 8),),
    3: (Fraction(1),),
    4: (Fraction(1, 2), Fraction(5, 4)),
    5: (Fraction(5, 8), Fraction(3, 2)),
}
#: The most products of a phase: with more points f32 loses several times as much.
MOST_PRODUCTS = max(PAIRS) + 1
#: The most products of a line: a kernel is written out for all pairs of two lines' products.
LINE_PRODUCTS = 9


@attrs.frozen
class TilePhase:
    """A line's elements first, first + step, ..., and as many of its taps.

    `tile`: results. Its products are those of a line with stride 1.
    """

    first: int
    step: int
    taps: int
    tile: int

    @property
    def products(self) -> int:
        """Products, and elements that are read."""
        return self.tile + self.taps - 1

    @property
    def places(self) -> range:
        """Where the elements are that it reads."""
        return range(self.first, self.first + self.step * self.products, self.step)

    @property
    def plain(self) -> bool:
        """Whether elements are multiplied as they are."""
        return self.taps == 1 or self.tile == 1

    @property
    def pairs(self) -> tuple[Fraction, ...]:
        """Of points other than 0, those above it."""
        return PAIRS[self.products - 1]

    @property
    def has_zero(self) -> bool:
        """Whether 0 is a point: it is before the pairs."""
        return self.products % 2 == 0

    @property
    def points(self) -> tuple[Fraction, ...]:
        """All points but infinity."""
        pairs = tuple(sign * p for p in self.pairs for sign in (1, -1))
        return (Fraction(0), *pairs) if self.has_zero else pairs

    def image_rows(self) -> Matrix:
        """B': the polynomials that vanish at all points but one, and at all."""
        if self.plain:
            return _identity(self.products)
        points = self.points
        rows = [coefficients([q for q in points if q != p], self.products) for p in points]
        return (*rows, coefficients(points, self.products))

    def weight_rows(self) -> Matrix:
        """G: the kernel's polynomial at each point, over what B' gives there."""
        if self.plain:
            one = ((Fraction(1),),) * self.products
            return one if self.taps == 1 else _identity(self.taps)
        rows = [
            tuple(p**k / prod((p - q for q in self.points if q != p), start=Fraction(1))
                  for k in range(self.taps))
            for p in self.points
        ]  # fmt: skip
        return (*rows, _last(self.taps))

    def result_rows(self) -> Matrix:
        """A': powers of the points."""
        if self.plain:
            one = ((Fraction(1),) * self.products,)
            return _identity(self.tile) if self.taps == 1 else one
        infinity = _last(self.tile)
        return tuple((*(p**k for p in self.points), infinity[k]) for k in range(self.tile))


@attrs.frozen
class TileLine:
    """A direction of a convolution: taps, stride, and the results of a tile."""

    taps: int
    stride: int
    tile: int

    @property
    def phases(self) -> tuple[TilePhase, ...]:
        """What it is made of, at most one for each tap."""
        firsts = range(min(self.stride, self.taps))
        return tuple(
            TilePhase(first, self.stride, -(-(self.taps - first) // self.stride), self.tile)
            for first in firsts
        )

    @property
    def reads(self) -> int:
        """Elements that a tile reads."""
        return (self.tile - 1) * self.stride + self.taps

    @property
    def products(self) -> int:
        """Products of a tile, those of one phase behind those of another."""
        return sum(phase.products for phase in self.phases)

    @property
    def known(self) -> bool:
        """Whether there are points for its phases, and not too many: where each phase has taps, a
        line has as many products as it reads elements, which are counted first."""
        if not self.stride <= self.taps or self.reads > LINE_PRODUCTS:
            return False
        return all(p.plain or p.products <= MOST_PRODUCTS for p in self.phases)

    def out_size(self, size: Dim, padding: int) -> Dim:
        """Results of so many elements with padding on both sides."""
        return floordiv(size + 2 * padding - self.taps, self.stride) + 1

    def image_matrix(self) -> Matrix:
        """B', of products by reads."""
        return self._joined(TilePhase.image_rows, self.reads, lambda p: p.places)

    def weight_matrix(self) -> Matrix:
        """G, of products by taps."""
        return self._joined(
            TilePhase.weight_rows, self.taps, lambda p: range(p.first, self.taps, p.step)
        )

    def result_matrix(self) -> Matrix:
        """A', of results by products."""
        parts = [phase.result_rows() for phase in self.phases]
        return tuple(sum(rows, ()) for rows in zip(*parts, strict=True))

    def _joined(
        self, rows: Callable[[TilePhase], Matrix], width: int, places: Callable[[TilePhase], range]
    ) -> Matrix:
        """The rows of all phases, their columns at the phases' places."""
        joined: list[tuple[Fraction, ...]] = []
        for phase in self.phases:
            for row in rows(phase):
                wide = [Fraction(0)] * width
                for place, value in zip(places(phase), row, strict=True):
                    wide[place] = value
                joined.append(tuple(wide))
        return tuple(joined)


def lines_of(taps: int, stride: int) -> list[TileLine]:
    """All lines that are known, those of small tiles first; one of a result where no more pay."""
    if taps == 1:
        return [TileLine(1, stride, 1)] if stride == 1 else []
    lines = (TileLine(taps, stride, tile) for tile in range(1, LINE_PRODUCTS))
    return [line for line in lines if line.known]


def coefficients(roots: Sequence[Fraction], count: int) -> tuple[Fraction, ...]:
    """The coefficients of the product of (x - root), lowest first, `count` in all."""
    product = [Fraction(1)]
    for root in roots:
        higher, lower = [Fraction(0), *product], [*product, Fraction(0)]
        product = [a - root * b for a, b in zip(higher, lower, strict=True)]
    return tuple(product + [Fraction(0)] * (count - len(product)))


def _last(count: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(int(k == count - 1)) for k in range(count))


def _identity(count: int) -> Matrix:
    return tuple(tuple(Fraction(int(i == j)) for j in range(count)) for i in range(count))


@attrs.frozen(kw_only=True)
class WinogradFigures:
    """Numbers by which weights are laid out and blocks are made, the same for every target.

    vectors: of channels in a panel. skew: elements by which the parts of what is handed on are set
    apart, for other sets of the cache. tiles: of a block, about: each block reads all weights
    once, and its arrays stay in the second-level cache; 14 to 28 were within 3 % for ResNet-50's
    layers on a Zen 4 (32 of 64 channels took a tenth longer). ahead: tiles by which an image is
    fetched before it is transformed; 0: it isn't.
    """

    vectors: int = 2
    skew: int = 16
    tiles: int = 16
    ahead: int = 2


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
    down: TileLine
    right: TileLine

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
    def products(self) -> int:
        """Products that each pair of a channel in and a channel out has for a tile."""
        return self.down.products * self.right.products

    @property
    def taps(self) -> int:
        """Terms of a result for a pair of channels."""
        return self.down.taps * self.right.taps

    @property
    def results(self) -> int:
        """Results of a tile."""
        return self.down.tile * self.right.tile

    @property
    def out_sizes(self) -> tuple[Dim, Dim]:
        """Height and width of the result."""
        high = self.down.out_size(self.height, self.padding[0])
        return high, self.right.out_size(self.width, self.padding[1])

    @property
    def tile_counts(self) -> tuple[Dim, Dim]:
        """Tiles in each direction."""
        high, wide = self.out_sizes
        return ceildiv(high, self.down.tile), ceildiv(wide, self.right.tile)

    @property
    def tile_count(self) -> Dim:
        """Tiles of all images."""
        return dim_product([self.batch, *self.tile_counts])

    @property
    def blocks(self) -> Dim:
        """Blocks of tiles, about."""
        return ceildiv(self.tile_count, FIGURES.tiles)
