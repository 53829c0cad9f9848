"""What a matrix product takes on a CPU: by the library, or by a kernel of irc's.

    ways = processor_ways(call, target, frozen=True)
    if ways is not None and ways.best == "irc": ...

irc's kernels have a multiple of the library's speed, which is a figure of the processor
(`own_products` and the like) for few, some and many rows: of ATen's, or, of a frozen weight, of
oneDNN's on its packed weights. What is done to a product's result is computed along with it either
way, so that it makes no difference here.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.loop import estimate, points
from irc.analysis.product_ways import Ways
from irc.analysis.products import factors
from irc.dialects import graph
from irc.dialects.kernel.dots import Rows, rows_of, split_rows_of
from irc.ir.symbols import Dim, free_symbols, value_at
from irc.ir.types import TensorType, Type, bf16, f32
from irc.target import Target
from irc.target.costs import Cost


def processor_ways(
    call: graph.CallAten, target: Target, frozen: bool, splits: bool = True
) -> Ways | None:
    """What a product takes by who computes it; None where the model says nothing of it: on a GPU,
    of other elements than f32 and bf16, of few rows or columns, of so few multiplications that no
    kernel has tiles for them, and of terms and columns that registers of whole tiles, for which the
    figures are where a processor has such, can't go over.

    Of sizes that are symbols it has to be irc's with few, some and many in their place: given is
    where it gains the least.

    frozen: whether its right factor is a constant, which either side lays out once. splits: whether
    f32 may be cut into parts of bf16 for registers of whole tiles.
    """
    if target.is_gpu:
        return None
    left, right = (call.operands[number].type for number in factors(call))
    assert isinstance(left, TensorType) and isinstance(right, TensorType)
    if left.element is not right.element:
        return None
    sizes = (*left.shape, right.shape[-1])
    if not _fills_tiles(sizes, left.element, target):
        return None
    symbolic = any(free_symbols(size) for size in sizes)
    every = []
    for number in target.features.product_rows if symbolic else (0,):
        known = [value for size in sizes if (value := value_at(size, number)) is not None]
        if len(known) < len(sizes):
            continue  # No program has these sizes.
        every.append(_ways(known, left.element, target, frozen, splits, frozen and not symbolic))
    known_ways = [ways for ways in every if ways is not None]
    if len(known_ways) < max(len(every), 1):
        return None
    return max(known_ways, key=lambda ways: ways.own / ways.library)


def _ways(
    sizes: list[int], element: Type, target: Target, frozen: bool, splits: bool, cut: bool
) -> Ways | None:
    """The same of a product of these sizes: the left factor's, and columns. cut: whether a frozen
    weight would be laid out in parts."""
    m, k, n = sizes[-3:]
    features = target.features
    number = how_many(m, n, target)
    packed = frozen and str(element) in target.library
    speeds = _speeds(element, packed, target)
    if speeds is not None and splits and takes_parts(sizes, element, target):
        speeds = tuple(map(max, speeds, _split_speeds(packed and cut, target)))
    if number < 0 or speeds is None or m * k * n < features.tiled_work:
        return None
    time = target.time(Cost(cheap=2 * points(sizes))) / 1e9
    return Ways(time, float("inf"), 100 * time / max(speeds[number], 1), 1, features.sure_products)


def multiplies_parts(
    sizes: Sequence[Dim], element: Type, target: Target, frozen: bool, cut: bool = True
) -> bool:
    """Whether a product is faster of factors that are cut into parts of bf16 for registers of whole
    tiles than of f32 in vectors, by the processor's figures. sizes: the left factor's, and
    columns. frozen: whether its right factor is a constant; cut: which would be laid out in parts,
    not cut by kernels."""
    if not takes_parts(sizes, element, target):
        return False
    m, _, n = (estimate(size) for size in sizes[-3:])
    number = how_many(m, n, target)
    packed = frozen and str(element) in target.library
    speeds = _speeds(element, packed, target)
    if number < 0 or speeds is None:
        return False
    return _split_speeds(packed and cut, target)[number] > speeds[number]


def panels_speed(sizes: Sequence[int], element: Type, target: Target) -> int:
    """The speed, in % of packed oneDNN's (of ATen's where oneDNN packs no such elements), of irc's
    product of such sizes with a frozen weight in panels, by the processor's figures; 0 where they
    say nothing of it. sizes: rows, terms and columns."""
    speeds = _speeds(element, str(element) in target.library, target)
    number = how_many(sizes[0], sizes[-1], target)
    if speeds is None or number < 0 or not _fills_tiles(sizes, element, target):
        return 0
    return speeds[number]


def takes_parts(sizes: Sequence[Dim], element: Type, target: Target) -> bool:
    """Whether registers of whole tiles multiply the parts of such factors."""
    dot = split_rows_of(element)
    if target.is_gpu or dot is None or not set(dot.sets) <= set(target.features.sets):
        return False
    return _takes(dot, sizes)


def how_many(rows: int, columns: int, target: Target) -> int:
    """Whether a product has few (0), some (1) or many (2) rows or columns, the fewer of both; -1 of
    fewer."""
    return sum(min(rows, columns) >= least for least in target.features.product_rows) - 1


def _split_speeds(packed: bool, target: Target) -> tuple[int, ...]:
    """Those of irc's kernels for factors of f32 that are cut into parts; of more threads than are
    sure to gain by that, none."""
    features = target.features
    if target.threads > features.split_threads:
        return tuple(0 for _ in features.own_split)
    return features.own_split_panels if packed else features.own_split


def fills_panels(columns: Dim, target: Target) -> bool:
    """Whether so many columns of a frozen weight are laid out in panels, which they don't leave
    empty for much of them (`panel_empty`). Else kernels read the weight as it lies: a Zen 4
    multiplies 1 to 100 columns like that at 1.06 to 15 times packed oneDNN's speed, and in panels,
    where these are mostly empty, at 0.2 to 6 (bench/results/zen4_products.txt)."""
    count, panel = estimate(columns), target.features.most_vectors * target.lanes(f32)
    return 1 - count / max(-(-count // panel) * panel, 1) <= target.panel_empty


def _fills_tiles(sizes: Sequence[Dim], element: Type, target: Target) -> bool:
    """Whether the registers of whole tiles that a target has for an element, if any, are filled by
    products of these sizes: terms and columns are known, and the terms a multiple of theirs."""
    dot = whole_tiles(element, target)
    return dot is None or _takes(dot, sizes)


def whole_tiles(element: Type, target: Target) -> Rows | None:
    """What multiplies an element in a CPU's registers of whole tiles; None where it has none."""
    dot = rows_of(element)
    return dot if dot is not None and set(dot.sets) <= set(target.features.sets) else None


def _takes(dot: Rows, sizes: Sequence[Dim]) -> bool:
    """Whether registers of whole tiles go over such sizes."""
    *_, terms, columns = sizes
    if any(free_symbols(size) for size in (terms, columns)):
        return False
    return not estimate(terms) % dot.tile[2]


def _speeds(element: Type, packed: bool, target: Target) -> tuple[int, ...] | None:
    """Those of irc's kernels for factors of an element, for few, some and many rows."""
    features = target.features
    if element is f32:
        speeds = features.own_panels if packed else features.own_products
    elif element is bf16:
        speeds = features.own_pair_panels if packed else features.own_pairs
    else:
        return None
    return crowded(speeds, target)


def crowded(speeds: tuple[int, ...], target: Target) -> tuple[int, ...]:
    """Speeds, in % of the library's, with as many threads as the target has: what the library has
    of its own beside others (`crowded_library`)."""
    features = target.features
    if target.threads <= features.split_threads:
        return speeds
    return tuple(speed * 100 // features.crowded_library for speed in speeds)


__all__ = [
    "crowded", "fills_panels", "how_many", "multiplies_parts", "panels_speed", "processor_ways",
    "takes_parts", "whole_tiles",
]  # fmt: skip
