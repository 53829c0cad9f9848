"""What a matrix product takes on a GPU: by the library as it is, by the library on padded factors,
by a kernel of irc's.

    ways = ways_of(call, target)
    if ways is not None and ways.best == "irc": ...

The library multiplies rows that are aligned as fast as the best tiles of the cost model, times
`library_share`; others at the rate that it has for what their addresses are multiples of
(`library_rates`). Padding copies the factors that aren't padded where they are computed, and a
result that the caller sees is copied out of its padded memory. irc's kernels read and write rows of
any length, and take what their tiles take (`tile_cost`). Two passes ask: `pad-matmul` whether
padding is the best of the three, `choose-contractions` whether a kernel of irc's is.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from irc.analysis.loop import estimate
from irc.analysis.multiplied import Fastest, Multiplied
from irc.analysis.products import (
    PADDED,
    MatrixProduct,
    ProductRows,
    factors,
    intensity,
    is_seen,
    product_of,
    rows_of_call,
)
from irc.analysis.tile_cost import ROW, at_rows
from irc.dialects import graph
from irc.ir.types import TensorType, bf16, element_bytes, f16, f32
from irc.target import Target
from irc.target.costs import Cost

LIBRARY, PADDED_LIBRARY, OWN = "aten", "padded", "irc"
Measure = Callable[[MatrixProduct], float | None]


@attrs.frozen
class Ways:
    """Microseconds of a product by who computes it; infinity for who can't. parts: of the depth
    that irc sums up apart. sure: how many times as fast irc's kernel has to be by the model to be
    taken to be the fastest."""

    library: float
    padded: float
    own: float
    parts: int
    sure: float

    @property
    def best(self) -> str:
        """Who computes it: irc where that is surely the fastest, else the library's faster way."""
        theirs = min(self.library, self.padded)
        if self.own * self.sure < theirs:
            return OWN
        return LIBRARY if self.library <= self.padded else PADDED_LIBRARY

    @property
    def told(self) -> str:
        """All three for people."""
        named = ("irc's kernel", self.own), ("the library", self.library), ("padded", self.padded)
        return ", ".join(f"{who} {_us(time)}" for who, time in named if time < float("inf"))


def _us(time: float) -> str:
    return f"{time:.3g} us" if time < 1000 else f"{time / 1000:.3g} ms"


def ways_of(
    call: graph.CallAten,
    target: Target,
    *,
    own: bool = True,
    pads: bool = True,
    apart: int | None = None,
    measure: Measure | None = None,
) -> Ways | None:
    """What a product takes by who computes it; None where the model says nothing of it: on a CPU,
    of rows that are all aligned, but for f32 that has to have all of its bits, of other elements
    than floats of 16 bits and f32, of empty matrices.

    own: whether irc may. pads: whether factors may be padded now. apart: from how many elements on
    rows that only the program sees are moved apart (`pad-strides`); None: none are. measure: how
    many times faster this machine multiplies padded factors.
    """
    type_ = call.results[0].type
    if not isinstance(type_, TensorType) or not _is_known(call, target):
        return None
    rows = rows_of_call(call, apart)
    sums = _sums(call, target, rows)
    if sums.cut:
        ways = _exact_ways(sums, target, own)
        # Whether the library's factors are padded the model doesn't say.
        return ways if ways.best == OWN else None
    if rows.least == ROW or sums.plain:
        return None
    library = _library(sums, rows, target)
    padded = float("inf")
    product = product_of(call) if call.callee in PADDED else None
    if product is not None:
        straight = _library(attrs.evolve(sums, loaded=(ROW, ROW), stored=ROW), ALIGNED, target)
        copies = _copies(product, type_, target)
        padded = straight + copies
        speedup = measure(product) if measure is not None else None
        if speedup is not None:
            library = speedup * padded
        padded = padded + _cutting(call, product, target) if pads else float("inf")
    fastest = _own(sums, target) if own else NOTHING
    time = max(fastest.time, _reading(sums, target))
    gpu = target.gpu
    sure = gpu.sure if sums.loaded == (ROW, ROW) else gpu.sure_pieces
    return Ways(library, padded, time, fastest.parts, sure)


def _exact_ways(sums: Multiplied, target: Target, own: bool) -> Ways:
    """Of f32 with all of its bits: the library multiplies it as it is."""
    gpu = target.gpu
    whole = attrs.evolve(sums, m=max(sums.m, gpu.library_side), n=max(sums.n, gpu.library_side))
    library = max(whole.operations / gpu.processors / gpu.library_plain, _reading(sums, target))
    fastest = _own(sums, target) if own else NOTHING
    sure = gpu.sure if sums.loaded == (ROW, ROW) else gpu.sure_pieces
    return Ways(library, float("inf"), fastest.time, fastest.parts, sure)


def own_parts(call: graph.CallAten, target: Target, apart: int | None = None) -> list[int]:
    """In how many parts of the depth a kernel of irc's may sum up a product, those first that take
    the least time; 1 alone where its kernel would not multiply tiles of fewer bits than f32, one of
    them where it takes what reading takes."""
    if not _is_known(call, target):
        return [1]
    sums = _sums(call, target, rows_of_call(call, apart))
    if not sums.is_worth(target.gpu) or sums.plain:
        return [1]
    ways = sums.by_parts(target.gpu)
    return [each.parts for each in ways[: 1 if ways[0].time <= sums.reading(target.gpu) else None]]


def _is_known(call: graph.CallAten, target: Target) -> bool:
    """Whether the model says something of a product."""
    pair = [call.operands[number].type for number in factors(call)]
    types = [t for t in (*pair, call.results[0].type) if isinstance(t, TensorType)]
    return (
        target.is_gpu and len({t.element for t in types}) == 1
        and types[0].element in (bf16, f16, f32) and not any(0 in t.shape for t in types)
    )  # fmt: skip


def is_compute_bound(product: MatrixProduct, target: Target, balance: float = 0.0) -> bool:
    """Whether a product does more than half of so many operations for a byte (0: the target's)."""
    return intensity(product) > half_balance(product, target, balance)


def half_balance(product: MatrixProduct, target: Target, balance: float = 0.0) -> float:
    """The operations for a byte from which on a product is compute-bound."""
    bits = 16 if product.dtype in ("float16", "bfloat16") else 32
    return (balance or target.operations_per_byte(bits)) / 2


ALIGNED = ProductRows(ROW, ROW, ROW, (ROW, ROW), (True, True))


def _sums(call: graph.CallAten, target: Target, rows: ProductRows) -> Multiplied:
    """The product as what tiles multiply; a symbolic size counts as estimated."""
    left, right = (call.operands[number].type for number in factors(call))
    assert isinstance(left, TensorType) and isinstance(right, TensorType)
    m, k, n = (estimate(size) for size in (left.shape[-2], left.shape[-1], right.shape[-1]))
    plain = left.element is f32 and target.product_precision == "highest"
    known = all(isinstance(size, int) for size in (*left.shape, *right.shape))
    loaded, lengths = (rows.left, rows.right), rows.sizes
    if left.rank == 3 or left.element is f32:  # no matrix that the hardware copies
        loaded = min(loaded[0], lengths[0]), min(loaded[1], lengths[1])
    sums = Multiplied(
        estimate(left.shape[0]) if left.rank == 3 else 1, m, n, k, element_bytes(left.element),
        loaded=loaded, stored=rows.result, lengths=lengths,
        lasts=known and all(rows.along),
    )  # fmt: skip
    return sums.exactly(target.gpu) if plain else sums


def _library(sums: Multiplied, rows: ProductRows, target: Target) -> float:
    """Microseconds of the library's kernel."""
    gpu = target.gpu
    straight = attrs.evolve(sums, loaded=(ROW, ROW), stored=ROW)
    fastest = max(straight.least(gpu).time * gpu.library_share, _reading(sums, target))
    if rows.least == ROW:
        return fastest
    high, wide = gpu.library_tile
    tiles = sums.batch * -(-sums.m // high) * -(-sums.n // wide)
    parts = max(1, min(sums.k // gpu.part_depth, gpu.processors // tiles))
    turns, depth = -(-tiles * parts // gpu.processors), -(-sums.k // parts)
    rate = at_rows(rows.least, gpu.library_rates, 1) * 2 / sums.size
    return max(fastest, turns * 2 * high * wide * depth / rate)


def _reading(sums: Multiplied, target: Target) -> float:
    """Microseconds that its bytes take."""
    return _microseconds(Cost(far=sums.bytes), target)


def _copies(product: MatrixProduct, type_: TensorType, target: Target) -> float:
    """Microseconds of padding the factors that nothing pads where it computes them."""
    m, k, n = (estimate(size) for size in (product.m, product.k, product.n))
    size, cost = 2 * product.batch * element_bytes(type_.element), Cost()
    more = product.padding[:2], product.padding[1:]
    for points, padding, computed in zip((m * k, k * n), more, product.computed, strict=True):
        if any(padding) and not computed:
            cost += Cost(far=points * size, launches=1)
    return _microseconds(cost, target)


def _cutting(call: graph.CallAten, product: MatrixProduct, target: Target) -> float:
    """Microseconds of copying a result that the caller sees out of its padded memory; rows that are
    left out at the end alone leave it where it is."""
    type_ = call.results[0].type
    assert isinstance(type_, TensorType)
    rows, _, columns = product.padding
    if not (columns or (rows and type_.rank > 2)) or not is_seen(call.results[0], but_saved=True):
        return 0.0
    points = product.batch * estimate(product.m) * estimate(product.n)
    return _microseconds(Cost(far=2 * points * element_bytes(type_.element), launches=1), target)


NOTHING = Fastest(None, 1, float("inf"))


def _own(sums: Multiplied, target: Target) -> Fastest:
    """irc's fastest kernel; infinitely slow where it would not multiply tiles, and of f32, of which
    odd rows take longer than modelled (8192x30523x768 with TF32: 2.0 ms of an H200, 1.6 padded)."""
    if not sums.is_worth(target.gpu) or (sums.size > 2 and not sums.cut):
        return NOTHING
    if sums.products(target.gpu) == "dot":
        sums = sums.in_row_groups()
    return sums.least(target.gpu)


def _microseconds(cost: Cost, target: Target) -> float:
    return target.time(cost) / 1e9


__all__ = ["LIBRARY", "OWN", "PADDED_LIBRARY", "Ways", "half_balance", "is_compute_bound",
           "own_parts", "ways_of"]  # fmt: skip
