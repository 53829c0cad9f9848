"""Reductions of tiles: combined at once, or lane by lane over a loop and once at its end.

Accumulating lane by lane needs no exchange between threads inside the loop. Each method gives
tiles without the reduced dimension at its end.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from irc.dialects import kernel, loop
from irc.dialects import math as math_ops
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim
from irc.ir.types import FloatType, IndexType, IntegerType, f32, i1, i64, index
from irc.passes.kernel.gpu.scaled_powers import Below, narrow_source
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, TileDim

FLOAT_OPS = {
    "sum": "arith.addf", "prod": "arith.mulf", "min": "arith.minimumf", "max": "arith.maximumf",
}  # fmt: skip
INTEGER_OPS = {
    "sum": "arith.addi", "prod": "arith.muli", "min": "arith.minsi", "max": "arith.maxsi",
    "any": "arith.ori", "all": "arith.andi", "xor": "arith.xori",
}  # fmt: skip
# On bool the arithmetic combiners are the logical ones.
BOOL_OPS = {
    **INTEGER_OPS, "sum": "arith.ori", "max": "arith.ori", "prod": "arith.andi",
    "min": "arith.andi",
}  # fmt: skip

# Combiners that say where points are: the first of several that are alike.
TELL_PLACES = frozenset({"argmin", "argmax"})

# Combiners whose step needs to be called with the tiles in their order: counts of points seen come
# from a turn's number, and the first NaN is the one that stays.
TURNS_MATTER = TELL_PLACES | {"moments"}


def identity(combiner: str, element: Type) -> Any:
    """The value that changes nothing when combined in `element`; of a sort, that goes last."""
    combiner = {"argmin": "min", "argmax": "max", "sort": "min"}.get(combiner, combiner)
    if combiner in ("sum", "xor", "any"):
        return 0
    if combiner == "logsumexp":
        return -math.inf
    if combiner == "prod":
        return 1
    floating = isinstance(element, FloatType)
    width = 64 if isinstance(element, IndexType) else getattr(element, "width", 64)
    if combiner == "all":
        return 1 if floating or element is i1 else -1
    if floating:
        return math.inf if combiner == "min" else -math.inf
    if element is i1:
        return int(combiner == "min")
    top = (1 << (width - 1)) - 1
    return top if combiner == "min" else -top - 1


def combine(b: TileBuilder, combiner: str, x: Tile, y: Tile) -> Tile:
    """Two accumulators as one; `logsumexp` is log(exp x + exp y)."""
    if combiner == "logsumexp":
        high, low = b.op("arith.maximumf", x, y), b.op("arith.minimumf", x, y)
        gap = b.op("math.log1p", b.op("math.exp", b.op("arith.subf", low, high)))
        infinite = b.op("math.isinf", high, element=i1)
        return b.select(infinite, high, b.op("arith.addf", high, gap))
    if isinstance(x.element, FloatType):
        table = FLOAT_OPS
    else:
        table = BOOL_OPS if x.element is i1 else INTEGER_OPS
    name = table.get(combiner)
    if name is None:
        raise InvalidIR(f"the combiner {combiner} has no code for {x.element} on a gpu")
    return b.op(name, x, y)


def convert(b: TileBuilder, tile: Tile, element: Type) -> Tile:
    """A value in another (signless) element type, as torch's casts do between signed types."""
    source = tile.element
    if source is element:
        return tile
    if isinstance(source, IndexType) and isinstance(element, FloatType):
        return convert(b, convert(b, tile, i64), element)
    if isinstance(source, FloatType) and isinstance(element, FloatType):
        if element.width == source.width:
            return convert(b, convert(b, tile, f32), element)
        name = "extf" if element.width > source.width else "truncf"
    elif isinstance(source, FloatType):
        if element is i1:
            return b.compare("une", tile, b.constant(0, source))
        if isinstance(element, IndexType):
            raise InvalidIR("a float can't become an index")
        name = "fptosi"
    elif isinstance(element, FloatType):
        name = "uitofp" if source is i1 else "sitofp"
    elif isinstance(source, IndexType) or isinstance(element, IndexType):
        name = "index_castui" if source is i1 else "index_cast"
    elif element is i1:
        return b.compare("ne", tile, b.constant(0, source))
    else:
        assert isinstance(source, IntegerType) and isinstance(element, IntegerType)
        wider = "extui" if source is i1 else "extsi"
        name = "trunci" if element.width < source.width else wider
    return b.op(f"arith.{name}", tile, element=element)


def largest(element: Type) -> float:
    """The largest finite number of f32 or f64."""
    return math.ldexp(2 - 2.0**-23, 127) if element is f32 else sys.float_info.max


class Reduction:
    """One reduce output over the dimension `dim` of the tiles over `dims`.

    `count`: how many points it has; `combiner`: another one than the output's; `rough`: its powers
    may be (rough_powers); `held`: all its tiles stay in registers until the end, so that moments
    are of gaps from the mean of all. With `dim` None each lane is reduced apart, one point a turn
    of a loop. Unsigned extremes are taken as signed ones of numbers with the top bit turned.
    """

    def __init__(
        self,
        b: TileBuilder,
        output: loop.ResultAttr,
        element: Type,
        dims: tuple[TileDim, ...],
        dim: TileDim | None,
        count: Dim,
        combiner: str = "",
        rough: bool = False,
        held: bool = False,
    ) -> None:
        self.b = b
        self.rough = rough
        self.combiner = combiner or output.combiner
        computed = element if output.accumulator is None else output.accumulator
        self.element = loop.signless(computed)
        extreme = self.combiner in ("min", "max", "argmin", "argmax")
        self.turned = extreme and getattr(computed, "unsigned", False)
        self.dims = dims
        self.dim = dim
        self.block = 1 if dim is None else dim.block
        self.count = count
        self.flag = self.combiner in ("any", "all") and self.element is not i1
        self.parts: list[tuple[Tile, Tile | None]] | None = None
        if held and self.combiner == "moments":
            self.parts = []

    def _prepare(self, content: Tile) -> Tile:
        """A body's value in the accumulator type, over all dimensions."""
        b = self.b
        if self.flag:
            content = convert(b, convert(b, content, i1), self.element)
        return b.expand(self._turn(convert(b, content, self.element)), self.dims)

    @property
    def mask(self) -> Tile | None:
        """The lanes inside."""
        return None if self.dim is None else self.dim.mask

    def _turn(self, tile: Tile) -> Tile:
        """The top bit of an unsigned number turned, which orders it as a signed one."""
        if not self.turned:
            return tile
        width = getattr(self.element, "width", 64)
        return self.b.op("arith.xori", tile, self.b.constant(-(1 << (width - 1)), self.element))

    def _full(self, content: Any, element: Type | None = None) -> Tile:
        tile = self.b.constant(content, element or self.element)
        return self.b.expand(tile, self.dims)

    def _reduced(self, combiner: str, *tiles: Tile) -> list[Tile]:
        """kernel.reduce along the dimension."""
        if self.dim is None:
            return list(tiles)
        rest = tuple(d for d in self.dims if d is not self.dim)
        attributes: dict[str, A.Attribute] = {
            "combiner": A.StringAttr(combiner),
            "dim": A.IntegerAttr(self.dims.index(self.dim)),
        }
        operands = [self.b.expand(t, self.dims) for t in tiles]
        results = [(rest, t.element) for t in tiles]
        return self.b.make(kernel.ReduceOp, operands, results, attributes)

    def _reduce_simple(self, combiner: str, tile: Tile) -> Tile:
        if self.flag:
            combiner = {"any": "max", "all": "min"}[combiner]
        return self._reduced(combiner, tile)[0]

    def _exp(self, x: Tile) -> Tile:
        rough = {"rough": A.UNIT} if self.rough else {}
        return self.b.make(math_ops.ExpOp, [x], [(x.dims, x.element)], rough)[0]

    def _shift(self, maximum: Tile) -> Tile:
        """The maximum, 0 where it is infinite."""
        b = self.b
        infinite = b.op("math.isinf", maximum, element=i1)
        return b.select(infinite, b.constant(0.0, self.element), maximum)

    # -- one tile holds everything

    def filled(self, content: Tile, narrow: bool = False) -> Tile:
        """The body's values, where lanes are outside what changes nothing; narrow: of 16 bits where
        they were widened from these."""
        source = narrow_source(self.b, content) if narrow else None
        if source is not None and self.mask is not None:
            fill = self._full(self._identity(), source.element)
            source = self.b.select(self.mask, self.b.expand(source, self.dims), fill)
            return convert(self.b, source, self.element)
        return self.b.select(self.mask, self._prepare(content), self._full(self._identity()))

    def whole(self, content: Tile, position: Tile, filled: bool = False) -> list[Tile]:
        """The results from one tile with all points; filled: lanes outside change nothing."""
        b, name, mask = self.b, self.combiner, None if filled else self.mask
        content = self._prepare(content)
        if name == "moments":
            return self._moments([(content, mask)])
        if name == "logsumexp":
            content = b.select(mask, content, self._full(-math.inf))
            top = self._reduced("max", content)[0]
            part = self._exp(b.op("arith.subf", content, self._shift(top)))
            return [top, self._reduced("sum", part)[0]]
        content = b.select(mask, content, self._full(self._identity()))
        if name in ("argmin", "argmax"):
            last = b.constant(b.largest_index, index)
            place = b.select(mask, b.expand(position, self.dims), last)
            return [self._reduced(name, content, place)[1]]
        return [self._turn(self._reduce_simple(name, content))]

    def _moments(self, parts: Sequence[tuple[Tile, Tile | None]]) -> list[Tile]:
        """The mean of tiles, with the lanes of each that are inside, and the sum of the squares of
        gaps from it."""
        b = self.b
        total = self._sum([b.select(mask, content, self._full(0)) for content, mask in parts])
        mean = b.op("arith.divf", total, self._points())
        squares = []
        for content, mask in parts:
            gap = b.op("arith.subf", content, mean)
            squares.append(b.select(mask, b.op("arith.mulf", gap, gap), self._full(0)))
        return [mean, self._sum(squares)]

    def _sum(self, tiles: Sequence[Tile]) -> Tile:
        """The sum of all points of tiles."""
        total = tiles[0]
        for tile in tiles[1:]:
            total = self.b.op("arith.addf", total, tile)
        return self._reduced("sum", total)[0]

    def _identity(self) -> Any:
        return int(self.combiner == "all") if self.flag else identity(self.combiner, self.element)

    def _points(self) -> Tile:
        return convert(self.b, self.b.index(self.count), self.element)

    # -- a loop over tiles

    def start(self) -> list[Tile]:
        """The carried values before the loop."""
        if self.parts is not None:
            return []
        if self.combiner == "moments":
            return [self._full(0.0), self._full(0.0), self._full(0.0)]
        if self.combiner == "logsumexp":
            return [self._full(-largest(self.element)), self._full(0.0)]
        first = [self._full(self._identity())]
        if self.combiner in ("argmin", "argmax"):
            first.append(self._full(self.b.largest_index, index))
        return first

    def step(
        self, carried: Sequence[Tile], content: Tile, position: Tile, start: Tile
    ) -> list[Tile]:
        """The carried values after one more tile, whose first point is number `start`."""
        b, mask = self.b, self.mask
        content = self._prepare(content)
        if self.parts is not None:
            self.parts.append((content, mask))
            return []
        if self.combiner == "moments":
            return self._step_moments(carried, content, start)
        if self.combiner == "logsumexp":
            return self._step_powers(carried, b.select(mask, content, self._full(-math.inf)))
        content = b.select(mask, content, self._full(self._identity()))
        if self.combiner in ("argmin", "argmax"):
            return self._step_extreme(carried, content, position)
        if self.flag:
            name = {"any": "max", "all": "min"}[self.combiner]
            return [combine(b, name, carried[0], content)]
        return [combine(b, self.combiner, carried[0], content)]

    def _step_powers(self, carried: Sequence[Tile], content: Tile) -> list[Tile]:
        """The greatest so far, finite from the start on, and the sum of powers below it: by one
        power, as either the element's is 1 or the factor of the sum is."""
        b = self.b
        top, total = carried
        gap = b.op("math.absf", b.op("arith.subf", content, top))
        power = self._exp(b.op("arith.negf", gap))
        lowered = b.op("arith.addf", b.op("arith.mulf", total, power), self._full(1.0))
        higher = b.compare("ogt", content, top)
        total = b.select(higher, lowered, b.op("arith.addf", total, power))
        return [b.op("arith.maximumf", top, content), total]

    def step_together(self, carried: Sequence[Tile], contents: Sequence[Tile]) -> list[Tile]:
        """The same after several tiles, `filled` before: of extremes and sums of powers below one,
        the greatest of them is found first."""
        b = self.b
        if self.combiner != "logsumexp":
            return [combine(b, self.combiner, carried[0], self._extreme(contents))]
        top, total = carried
        higher = b.op("arith.maximumf", top, self._extreme(contents))
        total = b.op("arith.mulf", total, self._exp(b.op("arith.subf", top, higher)))
        # A power for each of their elements, and one more for the sum so far.
        narrow = self.rough and all(narrow_source(b, c) for c in contents)
        below = Below.of(b, higher) if narrow else None
        for content in contents:
            if below is None:
                power = self._exp(b.op("arith.subf", content, higher))
            else:
                power = below.power(b, content)
            total = b.op("arith.addf", total, power)
        return [higher, total]

    def _extreme(self, contents: Sequence[Tile]) -> Tile:
        """The greatest (or least) of tiles, lane by lane; of 16 bits, if they were such."""
        b, sources = self.b, [narrow_source(self.b, content) for content in contents]
        same = [s for s in sources if s is not None and s.element is sources[0].element]  # type: ignore[union-attr]
        least = FLOAT_OPS["min" if self.combiner == "min" else "max"]
        chosen = same if len(same) == len(contents) else contents
        extreme = chosen[0]
        for tile in chosen[1:]:
            extreme = b.op(least, extreme, tile)
        return convert(b, extreme, self.element)

    @property
    def taken_together(self) -> bool:
        """Whether several tiles are better taken together than one after the other."""
        extreme = self.combiner in ("min", "max") and isinstance(self.element, FloatType)
        return extreme or self.combiner == "logsumexp"

    def _finish_powers(self, carried: Sequence[Tile]) -> list[Tile]:
        """The lanes' sums below the greatest of all. No sum of 0 has seen a number above -inf; one
        below infinity is infinite."""
        b = self.b
        top = self._reduced("max", carried[0])[0]
        scale = self._exp(b.op("arith.subf", carried[0], top))
        total = self._reduced("sum", b.op("arith.mulf", carried[1], scale))[0]
        zero, infinity = b.constant(0.0, self.element), b.constant(math.inf, self.element)
        top = b.select(b.compare("oeq", total, zero), b.constant(-math.inf, self.element), top)
        return [top, b.select(b.compare("oeq", top, infinity), infinity, total)]

    def _step_moments(self, carried: Sequence[Tile], content: Tile, start: Tile) -> list[Tile]:
        """Welford's update, lane by lane; the plain sum keeps infinities, which it loses."""
        b = self.b
        mean, square, total = carried
        turn = b.op("arith.divsi", start, b.constant(self.block, index))
        count = convert(b, b.op("arith.addi", turn, b.constant(1, index)), self.element)
        gap = b.op("arith.subf", content, mean)
        share = b.op("arith.divf", b.constant(1.0, self.element), count)
        new_mean = b.op("arith.addf", mean, b.op("arith.mulf", gap, share))
        moved = b.op("arith.mulf", gap, b.op("arith.subf", content, new_mean))
        new_square = b.op("arith.addf", square, moved)
        new_total = b.op("arith.addf", total, content)
        pairs = [(new_mean, mean), (new_square, square), (new_total, total)]
        return [b.select(self.mask, new, old) for new, old in pairs]

    def _step_extreme(
        self, carried: Sequence[Tile], content: Tile, position: Tile
    ) -> list[Tile]:
        b = self.b
        best, place = carried
        position = b.expand(position, self.dims)
        if self.mask is not None:
            position = b.select(self.mask, position, b.constant(b.largest_index, index))
        floating = isinstance(content.element, FloatType)
        less = self.combiner == "argmin"
        predicate = ("olt" if less else "ogt") if floating else ("slt" if less else "sgt")
        if content.element is i1:
            predicate = "ult" if less else "ugt"
        better = b.compare(predicate, content, best)
        # Equal to the identity: the first real lane still has to take the place.
        same = b.compare("oeq" if floating else "eq", content, best)
        earlier = b.compare("slt", position, place)
        better = b.op("arith.ori", better, b.op("arith.andi", same, earlier))
        if floating:
            fresh = b.compare("uno", content, content)
            known = b.compare("ord", best, best)
            better = b.op("arith.ori", better, b.op("arith.andi", fresh, known))
        return [b.select(better, content, best), b.select(better, position, place)]

    def finish(self, carried: Sequence[Tile]) -> list[Tile]:
        """The results after the loop."""
        if self.parts is not None:
            return self._moments(self.parts)
        if self.combiner == "moments":
            return self._finish_moments(carried)
        if self.combiner == "logsumexp":
            return self._finish_powers(carried)
        if self.combiner in ("argmin", "argmax"):
            return [self._reduced(self.combiner, *carried)[1]]
        return [self._turn(self._reduce_simple(self.combiner, carried[0]))]

    def _finish_moments(self, carried: Sequence[Tile]) -> list[Tile]:
        """The lanes' means and squares as one, weighted by the points that each lane saw."""
        b = self.b
        seen = b.index(self.count)
        if self.dim is not None:
            seen = b.op("arith.subi", seen, b.iota(self.dim))
            seen = b.op("arith.ceildivsi", seen, b.constant(self.block, index))
        seen = b.op("arith.maxsi", seen, b.constant(0, index))
        weight = convert(b, seen, self.element)
        total = self._reduced("sum", carried[2])[0]
        mean = b.op("arith.divf", total, self._points())
        gap = b.op("arith.subf", carried[0], mean)
        apart = b.op("arith.mulf", weight, b.op("arith.mulf", gap, gap))
        # Without any point the mean is NaN, and the lanes that saw none add nothing.
        some = b.compare("sgt", seen, b.constant(0, index))
        apart = b.select(some, apart, b.constant(0.0, self.element))
        return [mean, self._reduced("sum", b.op("arith.addf", carried[1], apart))[0]]
