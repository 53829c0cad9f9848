"""Building tile code: values over some of a kernel's tile dimensions, each placed outermost.

A `Tile` is a scalar or a vector over an ordered subset of the kernel's tile dimensions; an
operation expands its operands to the union. So an index that depends on one dimension is computed
on a vector of that dimension, and a bias is loaded once a column. Each value knows the loop level
that it needs, and is emitted there: code that doesn't change in a loop never enters it. Equal code
is made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.location import UNKNOWN, Location
from irc.ir.registry import lookup_op
from irc.ir.symbols import (
    CeilQuotient,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Max,
    Min,
    Mod,
    Product,
    Range,
    Sum,
    Symbol,
    free_symbols,
    known_nonnegative,
    simplify,
    substitute,
    symbol,
    terms_of,
)
from irc.ir.types import FloatType, IndexType, VectorType, element_bytes, i1, index
from irc.passes.kernel.gpu.edges import Edge, edge_of
from irc.passes.kernel.gpu.odd_rows import Cover

SEGMENTS = "operandSegmentSizes"


@attrs.define(eq=False)
class TileDim:
    """A dimension of the kernel's tiles.

    `order` sorts dimensions in a vector's shape; `block` is its (power of two) size; `mask` tells
    the lanes that are inside (None: all are); `cover` how they cover rows that begin anywhere.
    """

    order: int
    block: int
    mask: Tile | None = None
    cover: Cover | None = None


@attrs.frozen(eq=False)
class Tile:
    """A value over `dims` (none: a scalar), available from loop level `level` on."""

    value: Value
    dims: tuple[TileDim, ...]
    level: int

    @property
    def element(self) -> Type:
        """The element type."""
        type_: Any = self.value.type
        return type_.element if isinstance(type_, VectorType) else type_


def vector(dims: Sequence[TileDim], element: Type) -> Type:
    """The type of a tile over `dims`."""
    return VectorType([d.block for d in dims], element) if dims else element


def union(*tiles: Tile) -> tuple[TileDim, ...]:
    """The dimensions of all tiles, in order."""
    dims = {d for t in tiles for d in t.dims}
    return tuple(sorted(dims, key=lambda d: d.order))


class _TileScope:
    """The code of one loop level: its block and the values known there, and how far it loops."""

    def __init__(self, block: Block, upper: Dim = 1) -> None:
        self.block = block
        self.upper = upper
        self.known: dict[Any, Any] = {}


class TileBuilder:
    """Appends tile code to a kernel's body."""

    def __init__(self, block: Block) -> None:
        self.scopes = [_TileScope(block)]
        self.location: Location = UNKNOWN
        self.symbols: dict[str, Tile] = {}
        self.ranges: dict[str, Range] = {}
        self.extents: dict[str, Dim] = {}
        self._value_symbols: dict[Value, str] = {}
        self.largest_index = (1 << 31) - 1
        self.edge_bytes = 16
        # What reads of rows say about the cache, and the symbol of a row's number.
        self.cache, self.row = "", ""

    @property
    def level(self) -> int:
        """The current loop level; 0 is outside all loops."""
        return len(self.scopes) - 1

    # -- remembering

    def find(self, key: Any) -> Any:
        """What was remembered under `key` on this level or one around it; None if nothing."""
        for scope in reversed(self.scopes):
            tile = scope.known.get(key)
            if tile is not None:
                return tile
        return None

    def remember(self, key: Any, content: Any, level: int) -> None:
        """Keep `content` under `key` as long as loop level `level` lives."""
        self.scopes[level].known[key] = content

    # -- operations

    def make(
        self,
        cls: type[Operation],
        operands: Sequence[Tile],
        results: Sequence[tuple[tuple[TileDim, ...], Type]],
        attributes: dict[str, Attribute] | None = None,
        level: int | None = None,
    ) -> list[Tile]:
        """A pure operation (or load) at the outermost level that has its operands."""
        attributes = attributes or {}
        if level is None:
            level = max([o.level for o in operands], default=0)
        values = [o.value for o in operands]
        key = (cls, *values, *attributes.items(), *results)
        known = self.find(key)
        if known is not None:
            return known
        op = cls(values, [vector(d, e) for d, e in results], attributes, (), self.location)
        self.scopes[level].block.append(op)
        tiles = [Tile(r, d, level) for r, (d, _) in zip(op.results, results, strict=True)]
        self.remember(key, tiles, level)
        return tiles

    def op(self, name: str, *operands: Tile, element: Type | None = None, **attrs_: str) -> Tile:
        """An arith or math operation, lane by lane over the union of the operands' dimensions."""
        cls = lookup_op(name)
        assert cls is not None, name
        dims = union(*operands)
        expanded = [self.expand(o, dims) for o in operands]
        attributes: dict[str, Attribute] = {k: A.StringAttr(v) for k, v in attrs_.items()}
        result = element or operands[0].element
        return self.make(cls, expanded, [(dims, result)], attributes)[0]

    def like(self, op: Operation, operands: Sequence[Tile], **more: Attribute) -> Tile:
        """The scalar operation `op` of a body on tiles, with more attributes."""
        dims = union(*operands)
        expanded = [self.expand(o, dims) for o in operands]
        element = op.results[0].type
        return self.make(type(op), expanded, [(dims, element)], {**op.attributes, **more})[0]

    def expand(self, tile: Tile, dims: tuple[TileDim, ...]) -> Tile:
        """`tile` over more dimensions."""
        if tile.dims == dims:
            return tile
        if not tile.dims:
            return self.make(kernel.SplatOp, [tile], [(dims, tile.element)])[0]
        places = A.DenseIntsAttr([dims.index(d) for d in tile.dims])
        return self.make(kernel.ExpandOp, [tile], [(dims, tile.element)], {"dims": places})[0]

    def constant(self, content: Any, element: Type) -> Tile:
        """A scalar constant."""
        cls = lookup_op("arith.constant")
        assert cls is not None
        if isinstance(element, FloatType):
            attr: Attribute = A.FloatAttr(float(content), element)
        elif element is i1:
            attr = A.BoolAttr(bool(content))
        else:
            attr = A.IntegerAttr(int(content), element)
        return self.make(cls, [], [((), element)], {"value": attr})[0]

    def select(self, condition: Tile | None, yes: Tile, no: Tile) -> Tile:
        """`yes` where the condition holds (None: everywhere)."""
        if condition is None:
            return yes
        return self.op("arith.select", condition, yes, no, element=yes.element)

    def both(self, a: Tile | None, b: Tile | None) -> Tile | None:
        """The conjunction of masks."""
        if a is None or b is None or a is b:
            return b if a is None else a
        return self.op("arith.andi", a, b)

    def compare(self, predicate: str, a: Tile, b: Tile) -> Tile:
        """arith.cmpi or arith.cmpf."""
        name = "arith.cmpf" if isinstance(a.element, FloatType) else "arith.cmpi"
        return self.op(name, a, b, element=i1, predicate=predicate)

    def iota(self, dim: TileDim) -> Tile:
        """0, 1, 2, ... along one dimension."""
        return self.make(kernel.IotaOp, [], [((dim,), index)])[0]

    def mask_of(self, dims: Sequence[TileDim]) -> Tile | None:
        """The lanes inside, in all of `dims`."""
        mask: Tile | None = None
        for dim in dims:
            mask = self.both(mask, dim.mask)
        return mask

    def mask_at(self, dims: Sequence[TileDim], offset: Dim, stored: bool) -> Tile | None:
        """The lanes that an access at an offset moves: those inside, or where groups of lanes are
        groups in memory those of the groups that are read, or stored as a whole."""
        mask: Tile | None = None
        for dim in dims:
            own = dim.mask
            if dim.cover is not None and dim.cover.fits(offset):
                own = dim.cover.whole if stored else dim.cover.read
            mask = self.both(mask, own)
        return mask

    # -- index expressions

    def bind(self, name: str, tile: Tile, extent: Dim | None = None) -> Dim:
        """Make the symbol `name` stand for an index tile in [0, extent)."""
        self.symbols[name] = tile
        self.ranges[name] = Range(0, None)
        if extent is not None:
            self.extents[name] = extent
        return symbol(name)

    def symbol_of(self, tile: Tile) -> Dim:
        """An expression that is the (integer) tile's value."""
        name = self._value_symbols.get(tile.value)
        if name is None:
            name = f"value_{len(self._value_symbols)}"
            self._value_symbols[tile.value] = name
            self.ranges[name] = Range(None, None)
        if not isinstance(tile.element, IndexType):
            tile = self.op("arith.index_cast", tile, element=index)
        self.symbols[name] = tile
        return symbol(name)

    def simplified(self, dim: Dim) -> Dim:
        """An index expression simplified where every lane is inside."""
        return simplify(dim, self.ranges, self.extents)

    def index(self, dim: Dim) -> Tile:
        """The tile of an index expression."""
        if not isinstance(dim, Expr):
            return self.constant(dim, index)
        known = self.find(("index", dim))
        if known is not None:
            return known
        tile = self._index(dim)
        self.remember(("index", dim), tile, tile.level)
        return tile

    def _index(self, dim: Expr) -> Tile:
        if isinstance(dim, Symbol):
            tile = self.symbols.get(dim.name)
            if tile is None:
                raise InvalidIR(f"the symbol {dim.name} is not known in a kernel")
            return tile
        if isinstance(dim, Sum):
            terms, constant = terms_of(dim)
            parts: list[Tile] = []
            for monomial, scale in terms:
                part = self.index(monomial)
                parts.append(part if scale == 1 else self._times(part, self.index(scale)))
            if constant:
                parts.append(self.index(constant))
            return self._chain("arith.addi", parts)
        if isinstance(dim, Product):
            return self._chain("arith.muli", [self.index(f) for f in dim.factors])
        assert isinstance(dim, Function)
        operands = [self.index(a) for a in dim.arguments]
        if isinstance(dim, Min | Max):
            name = "arith.minsi" if isinstance(dim, Min) else "arith.maxsi"
            return self._chain(name, operands)
        if isinstance(dim, CeilQuotient):
            return self.op("arith.ceildivsi", *operands)
        if not isinstance(dim, FloorQuotient | Mod):
            raise InvalidIR(f"the index function {dim.name} has no code on a gpu")
        whole = known_nonnegative(dim.arguments[0], self.ranges)
        whole = whole and known_nonnegative(dim.arguments[1], self.ranges)
        if whole:
            truncating = "arith.divsi" if isinstance(dim, FloorQuotient) else "arith.remsi"
            return self.op(truncating, *operands)
        quotient = self.op("arith.floordivsi", *operands)
        if isinstance(dim, FloorQuotient):
            return quotient
        return self.op("arith.subi", operands[0], self._times(quotient, operands[1]))

    def _times(self, a: Tile, b: Tile) -> Tile:
        return self.op("arith.muli", a, b)

    def _chain(self, name: str, parts: Sequence[Tile]) -> Tile:
        """The parts combined, those on fewer dimensions and outer levels first."""
        ordered = sorted(parts, key=lambda t: (t.level, len(t.dims)))
        total = ordered[0]
        for part in ordered[1:]:
            total = self.op(name, total, part)
        return total

    # -- loops

    @contextmanager
    def loop(
        self, upper: Dim, step: int, initial: Sequence[Tile], lower: Tile | None = None,
        stages: int | None = None, flat: bool = False, safe: bool = False,
    ) -> Iterator[tuple[Tile, list[Tile], list[Tile], list[Tile]]]:
        """A kernel.for from 0 (or `lower`) to `upper`: gives (position, carried, next, final).

        The body fills `next` with the carried values of the next turn; `final` has their last
        ones when the loop is closed. safe: what is read in it and needs none of it can be read
        where it has no turn, too.
        """
        first = self.index(0) if lower is None else lower
        bounds = [first, self.index(upper), self.index(step)]
        around = self.level
        block = Block([index, *[t.value.type for t in initial]])
        self.scopes.append(_TileScope(block, 1 if safe else upper))
        level = self.level
        position = Tile(block.arguments[0], (), level)
        pairs = zip(block.arguments[1:], initial, strict=True)
        carried = [Tile(argument, tile.dims, level) for argument, tile in pairs]
        following: list[Tile] = []
        final: list[Tile] = []
        yield position, carried, following, final
        ends = [self.expand(t, i.dims) for t, i in zip(following, initial, strict=True)]
        block.append(kernel.KernelYieldOp([t.value for t in ends], ()))
        self.scopes.pop()
        operands = [b.value for b in bounds] + [t.value for t in initial]
        types = [t.value.type for t in initial]
        more: dict[str, A.Attribute] = {"flat": A.UNIT} if flat else {}
        if stages is not None:
            more["stages"] = A.IntegerAttr(stages)
        loop = kernel.ForOp(operands, types, more, (Region([block]),), self.location)
        self.scopes[around].block.append(loop)
        for result, tile in zip(loop.results, initial, strict=True):
            final.append(Tile(result, tile.dims, around))

    @contextmanager
    def under(self, condition: Tile) -> Iterator[None]:
        """A kernel.if around what is stored; a pure operation still goes to the outermost level
        that has its operands."""
        around = self.level
        inside, other = Block(), Block()
        self.scopes.append(_TileScope(inside))
        yield
        self.scopes.pop()
        for block in (inside, other):
            block.append(kernel.KernelYieldOp((), ()))
        regions = Region([inside]), Region([other])
        op = kernel.IfOp((condition.value,), (), {}, regions, self.location)
        self.scopes[around].block.append(op)

    # -- memory

    def load(
        self, pointer: Value, offset: Dim, element: Type, mask: Tile | None, other: Tile | None
    ) -> Tile:
        """The elements at `pointer + offset`; `mask` and the lanes inside say which are read."""
        held = self.find(("held", pointer, offset)) if mask is None else None
        if held is not None:
            return held
        place = self.index(offset)
        if mask is not None:
            place = self.expand(place, union(place, mask))
        mask = self.both(mask, self.mask_at(place.dims, offset, stored=False))
        level = max(place.level, 0 if mask is None else mask.level)
        mask = self._while_turning(mask, level)
        edge = edge_of(self, offset, mask, element_bytes(element))
        cache = self.cache if self.row in free_symbols(offset) else ""
        if edge is None:
            return self._read(pointer, place, element, mask, other, cache)
        below = self._read(pointer, place, element, edge.below, other, cache)
        if level and (other is None or not other.dims):
            return self._with_few(pointer, offset, edge, below, other, cache)
        # The few lanes above keep what the others have read.
        return self._read(pointer, place, element, edge.above, below, cache)

    def hold(self, pointer: Value, offset: Dim, tile: Tile) -> None:
        """Let what is read at `pointer + offset` be a tile that was read before."""
        self.remember(("held", pointer, offset), tile, tile.level)

    def _while_turning(self, mask: Tile | None, level: int) -> Tile | None:
        """The mask of a load on a loop level: it moves out of the loops inside, which may have no
        turn that reads anything."""
        for scope in self.scopes[level + 1 :]:
            if isinstance(scope.upper, Expr) or scope.upper <= 0:
                some = self.compare("sgt", self.index(scope.upper), self.constant(0, index))
                mask = self.both(mask, some)
        return mask

    def _with_few(
        self, pointer: Value, offset: Dim, edge: Edge, below: Tile, other: Tile | None, cache: str
    ) -> Tile:
        """What was read below an edge, and the few lanes above it, each at its constant place."""
        content = below
        for position in edge.few:
            place, rest = self.index(substitute(offset, {edge.name: position})), None
            for condition in edge.rest:
                rest = self.both(rest, condition)
            rest = self._while_turning(rest, max(place.level, 0 if rest is None else rest.level))
            if rest is not None:
                place = self.expand(place, union(place, rest))
            value = self._read(pointer, place, below.element, rest, other, cache)
            here = self.compare("eq", edge.lanes, self.index(position))
            content = self.select(here, value, content)
        return content

    def _read(
        self, pointer: Value, place: Tile, element: Type, mask: Tile | None, other: Tile | None,
        cache: str,
    ) -> Tile:
        """One load under one mask."""
        operands = [Tile(pointer, (), 0), place]
        if mask is not None:
            operands.append(self.expand(mask, place.dims))
            if other is not None:
                operands.append(self.expand(other, place.dims))
        sizes = (1, 1, int(mask is not None), int(mask is not None and other is not None))
        cls = kernel.GatherOp if place.dims else kernel.LoadOp
        attributes: dict[str, Attribute] = {SEGMENTS: A.DenseIntsAttr(sizes)}
        if cache and place.dims:
            attributes["cache"] = A.StringAttr(cache)
        return self.make(cls, operands, [(place.dims, element)], attributes)[0]

    def store(
        self,
        pointer: Value,
        offset: Dim,
        content: Tile,
        mask: Tile | None,
        combiner: str = "set",
    ) -> None:
        """Store (or combine) a tile at `pointer + offset`, in the current level."""
        place = self.index(offset)
        tiles = [place, content] if mask is None else [place, content, mask]
        dims = union(*tiles)
        mask = self.both(mask, self.mask_at(dims, offset, stored=combiner == "set"))
        edge = edge_of(self, offset, mask, element_bytes(content.element))
        masks = [mask] if edge is None or combiner != "set" else [edge.below, edge.above]
        operands = [self.expand(content, dims).value, pointer, self.expand(place, dims).value]
        block = self.scopes[-1].block
        for chosen in masks:
            under = [] if chosen is None else [self.expand(chosen, dims).value]
            if not dims and combiner == "set":
                block.append(kernel.StoreOp(operands + under, (), {}, (), self.location))
                continue
            attributes: dict[str, Attribute] = {"combiner": A.StringAttr(combiner)}
            block.append(kernel.ScatterOp(operands + under, (), attributes, (), self.location))


__all__ = ["Tile", "TileBuilder", "TileDim", "union"]
