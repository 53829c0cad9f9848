"""The keys of a `#loop.schedule`: what each says, and which values it may have.

A schedule holds every choice of how a compute or group runs. The pass `schedule` writes those that
a program needs, and `form-kernels` has no defaults: it refuses one that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from irc.ir import attributes as A
from irc.ir.attributes import Attribute

SCRATCH_BYTES = 128 * 1024
"""Most bytes of scratch that the locals of a kernel take; others become temporaries."""

Check = Callable[[Any], str]
"""What is wrong with a value of a key; "" for nothing."""


@attrs.frozen
class Key:
    """A key: what it says, and what its values may be."""

    meaning: str
    check: Check


def _number(value: Attribute, fits: Callable[[int], bool], expected: str) -> str:
    number = value.value if isinstance(value, A.IntegerAttr) else None
    return "" if isinstance(number, int) and fits(number) else f"{_shown(value)}, not {expected}"


def _shown(value: Attribute) -> str:
    inner = getattr(value, "value", value)
    return repr(inner) if isinstance(inner, str) else str(inner)


def _is_power(number: int) -> bool:
    return number >= 1 and not number & (number - 1)


def powers(least: int = 1, most: int = 1 << 30) -> Check:
    """Powers of two; with `least` of 0, that too."""
    expected = f"a power of two up to {most}" if most < 1 << 30 else "a power of two"
    return lambda v: _number(
        v, lambda n: (n == 0 and least == 0) or (_is_power(n) and n <= most), expected
    )


def numbers(least: int, most: int | None = None) -> Check:
    """Integers."""
    expected = f"at least {least}" if most is None else f"from {least} to {most}"
    return lambda v: _number(v, lambda n: n >= least and (most is None or n <= most), expected)


def words(*known: str) -> Check:
    """One of some words."""
    return lambda v: (
        "" if isinstance(v, A.StringAttr) and v.value in known
        else f"{_shown(v)}, not {' or '.join(known)}"
    )  # fmt: skip


def name(value: Attribute) -> str:
    """The name of an axis, or none."""
    return "" if isinstance(value, A.StringAttr) else f"{_shown(value)}, not the name of an axis"


def flag(value: Attribute) -> str:
    """Whether."""
    return "" if isinstance(value, A.BoolAttr) else f"{_shown(value)}, not true or false"


def names(value: Attribute) -> str:
    """The names of axes, each once."""
    words = _strings(value, 1)
    return "" if words is not None and len(set(words)) == len(words) else (
        f"{_shown(value)}, not the names of axes, each once"
    )


def pairs(value: Attribute) -> str:
    """Pairs of names."""
    return "" if _strings(value, 2) is not None else f"{_shown(value)}, not pairs of axes"


def counts(value: Attribute) -> str:
    """Names with a number of points."""
    entries = _strings(value, 2)
    ok = entries is not None and all(text.split()[1].isdigit() for text in entries)
    return "" if ok else f"{_shown(value)}, not axes with their points, as in \"i0 4096\""


def places(value: Attribute) -> str:
    """Different numbers from 0 on."""
    dims = value.values if isinstance(value, A.DenseIntsAttr) else (-1,)
    fits = len(set(dims)) == len(dims) and all(n >= 0 for n in dims)
    return "" if fits else f"{_shown(value)}, not numbers of axes, each once"


def place_pairs(value: Attribute) -> str:
    """Pairs of different numbers from 0 on."""
    dims = value.values if isinstance(value, A.DenseIntsAttr) else (-1,)
    pairs = list(zip(dims[::2], dims[1::2], strict=False))
    fits = len(dims) % 2 == 0 and all(a != b and min(a, b) >= 0 for a, b in pairs)
    return "" if fits else f"{_shown(value)}, not pairs of row axes"


def _strings(value: Attribute, parts: int) -> list[str] | None:
    if not isinstance(value, A.ArrayAttr):
        return None
    texts = [v.value if isinstance(v, A.StringAttr) else "" for v in value]
    return texts if all(len(t.split()) == parts for t in texts) else None


def variant(value: Attribute) -> str:
    """The entries of a variant's schedule."""
    if not isinstance(value, A.DictAttr):
        return f"{_shown(value)}, not the entries of a schedule"
    return next((f"entry {text}" for text in complaints("cpu", value)), "")


def by_size(target: str) -> Check:
    """Entries for sizes up to some."""

    def check(value: Attribute) -> str:
        if not isinstance(value, A.ArrayAttr):
            return f"{_shown(value)}, not a list of entries for sizes"
        for each in value:
            entries = dict(each.as_dict()) if isinstance(each, A.DictAttr) else {}
            size, most = entries.pop("size", None), entries.pop("most", None)
            if not isinstance(size, A.DimAttr) or not isinstance(most, A.IntegerAttr):
                return f"{_shown(each)}, not entries with a size and the most it may be"
            members = entries.pop("members", A.ArrayAttr(()))
            inner = [A.DictAttr(entries), *(members if isinstance(members, A.ArrayAttr) else ())]
            for part in inner:
                if not isinstance(part, A.DictAttr):
                    return f"{_shown(part)}, not the entries of a member"
                for text in complaints(target, part):
                    return f"entry {text}"
        return ""

    return check


SIZES = (
    "other entries (and those of a group's `members`) for sizes: `size` is at most `most`; the "
    "first that holds counts. Each is a kernel, with memory of its own, and a launch `when` the "
    "size is in its range"
)

CPU: Mapping[str, Key] = {
    "collapse": Key("\"a b\" for each pair of axes of which b then stands for both, in order",
                    pairs),
    "outer": Key(
        "of a group or a lone compute: the shared axes that form the parallel space, outermost "
        "first; with the vector axis last where it is cut into blocks", names),
    "scratch": Key(
        "of a group: bytes for what its members hand on, on the stack; what has no room there is "
        "memory of the program's", numbers(0, SCRATCH_BYTES)),
    "vector_axis": Key("the axis that vectors run along; \"\": none, all is scalars", name),
    "lanes": Key("with a vector axis: elements of a vector", powers(1, 256)),
    "copies": Key(
        "with a vector axis: vectors handled together: accumulators of a reduction along it, or a "
        "block of vectors carried through a reduction along another one", powers(1, 64)),
    "tail": Key(
        "with a vector axis: how what whole vectors don't cover is done: masked, or as scalars",
        words("mask", "peel")),
    "spans": Key(
        "with a vector axis: into how many spans conditions on it may cut it, each with code of "
        "its own; with more it stays whole", numbers(1)),
    "strided": Key(
        "elements that lie so many others apart at most along the vectors are chosen from whole "
        "vectors, which are read; without it, each is read by itself", numbers(2, 64)),
    "block": Key(
        "with a shared vector axis: its elements in one point of the parallel space; 0: all",
        numbers(0)),
    "tile_axis": Key(
        "with a shared vector axis: another one along which some reads are contiguous that are "
        "strided along the vectors; squares of both are transposed in registers; \"\": none", name),
    "tile_block": Key("elements of the tile axis in one point of the parallel space", numbers(1)),
    "unroll": Key(
        "with a tile axis: the rows of whole tiles stay in registers, with a copy of the body for "
        "each", flag),
    "order": Key("a compute's loops over its other axes, outermost first, par axes before the rest",
                 names),
    "written_out": Key(
        "those of a compute's own axes each point of which has code of its own, so that conditions "
        "on it are decided when the kernel is formed, and vectors that are stored side by side are "
        "interleaved; without it, none", names),
    "fetch_axis": Key(
        "a loop of a compute's own: memory is fetched before vectors are read in order from an "
        "argument, by those that are read there some points of it earlier; without it, none", name),
    "fetch_points": Key("with it: how many points", numbers(1, 64)),
    "jam_axis": Key(
        "of a reduction whose vectors run along a par axis of its own: the par axis around what is "
        "combined, and around the vectors or inside of them, of which several points have their "
        "sums in registers together, so that what they all read is read once; without it, none",
        name),
    "jam_points": Key("with a jam axis: how many, a tile", numbers(1, 64)),
    "jam_ahead": Key(
        "with a jam axis: how many tiles before its sums memory is fetched that a tile is the "
        "first to read; 0: never", numbers(0, 64)),
    "beside_sums": Key(
        "of a map in a group: it is computed for each point of a tile of the sums that it reads at "
        "its own point, while these are in registers (`jam_axis`)", flag),
    "chunks": Key(
        "of a reduction: \"axis points\" for each loop that is taken in chunks of so many points, "
        "each with float sums of its own, which are added with their rounding errors", counts),
    "streams": Key(
        "with a chunked vector axis: each accumulator reads a part of its own, so that a core "
        "reads several places at once", flag),
    "partial": Key("of a reduction: the inner loops that make a float sum of their own each time",
                   names),
    "compensated": Key("of moments along the vectors: rounding errors are carried along", flag),
    "position_bits": Key(
        "of argmin and argmax: the width of the positions that are carried",
        lambda v: _number(v, lambda n: n in (32, 64), "32 or 64")),
    "tile_rows": Key(
        "of a contraction whose sums are computed in tiles of registers: the rows of a tile; "
        "without it, a contraction is a reduction like others", numbers(1, 64)),
    "tile_vectors": Key("with tiles: the vectors of a tile's row", numbers(1, 16)),
    "row_axis": Key("with tiles: the axis that their rows are of", name),
    "outer_rows": Key(
        "with tiles: other axes of rows, outermost first, that tiles go over together with "
        "row_axis; others are points of the parallel space", names),
    "depth_order": Key(
        "with tiles: the axes that are summed over, in the order in which terms are added, "
        "outermost first", names),
    "point_rows": Key("with tiles: rows in one point of the parallel space; 0: all", numbers(0)),
    "point_columns": Key("with tiles: as point_rows, of columns", numbers(0)),
    "block_rows": Key(
        "with tiles: rows that are multiplied by all columns of a point before the next ones, and "
        "packed together; 0: all", numbers(0)),
    "block_depth": Key(
        "with tiles: terms of the sums that are added before the next ones, and packed together; "
        "0: all", numbers(0)),
    "inner": Key(
        "with tiles: what the innermost loop over a block's tiles goes along; registers of whole "
        "tiles load it, if it is not cut into parts, so that it leaves the other factor its place "
        "in the first-level cache",
        words("rows", "columns")),
    "pack_left": Key(
        "with tiles: the factor that has the rows is evaluated before it is multiplied, into "
        "memory of the kernel's; else it is read where it lies", flag),
    "pack_right": Key("with tiles: as pack_left, of the factor that has the columns", flag),
    "pack_ahead": Key(
        "with pack_right: a panel of columns is packed while the one before it is multiplied by "
        "all rows, a vector of it in the time of so many terms; 0: all of a point's panels are "
        "packed first", powers(0, 64)),
    "rows_ahead": Key(
        "with tiles whose rows are read where they lie, a term behind the other: how many tiles "
        "before its sums memory is fetched that a tile's rows are in, but for tiles that pack "
        "panels meanwhile (`pack_ahead`); 0: never", numbers(0, 64)),
    "pack_columns": Key(
        "with pack_right and parts (bf16x6): columns that are packed together, and multiplied by "
        "all rows of a block before the next ones, so that they stay in the caches; 0: all of a "
        "point's, before any rows", numbers(0)),
    "products": Key(
        "with tiles: what the lanes of a vector of sums are: columns (lanes), or parts of the "
        "depth that are added up at last (depth), so that both factors are read along it; or "
        "registers that hold whole tiles multiply them: of the factors' own elements (matrix), or "
        "of f32, each of which is cut into three of bf16, whose six largest products are summed "
        "up (bf16x6)", words("lanes", "depth", "matrix", "bf16x6")),
    "group": Key(
        "with tiles: terms of a sum that each lane multiplies and adds up together "
        "(`kernel.dot_lanes`), so that factors keep their elements and what is packed has them "
        "side by side; 1: one, in the type of the sums", powers(1, 4)),
    "offset": Key(
        "with a group of integers: what is added to the factor that has the rows, where vectors "
        "take that without a sign, and what that adds to sums is taken off again; 0: nothing",
        lambda v: _number(v, lambda n: n in (0, 128), "0 or 128")),
    "tile_columns": Key(
        "with products along the depth: columns whose sums are computed together", numbers(1, 16)),
    "terms": Key(
        "with tiles: terms of the sums that the innermost loop takes at a time; with products "
        "along the depth, vectors of them", numbers(1, 64)),
    "in_turn": Key(
        "with tiles: what follows the sums is computed for one row after the other, from the "
        "stack, so that it has all registers", flag),
    "woven": Key(
        "with products by registers of whole tiles: what follows a tile's sums is computed between "
        "the steps of the next tile's products, else behind its own", flag),
    "skew": Key(
        "with pack_left: packed rows begin at multiples of so many elements, and are set apart by "
        "so many, for other sets of the cache", numbers(1, 4096)),
    "measured": Key(
        "of a contraction: the other entries were measured for one by itself, before its factors "
        "had their layouts; where they don't fit these, the pass `schedule` leaves them out", flag),
    "copying": Key(
        "of a compute that scatters: such entries of the kernel's variant that first copies what "
        "it starts from, which bufferize takes where the result gets memory of its own", variant),
    "variants": Key(SIZES, by_size("cpu")),
}  # fmt: skip

MOST_ABREAST = 16
"""The most tiles of a turn, each of which is code of its own."""

GPU: Mapping[str, Key] = {
    "x_block": Key("rows in a tile (with tile axes, along the last); 1: a row is a scalar of the "
                   "program", powers()),
    "r_block": Key("points of the own axes in a tile; 0 in a pointwise kernel", powers(0)),
    "programs": Key(
        "so many program instances walk over the tiles of rows (of a contraction: over its tiles), "
        "and read `num_stages` ahead; 0: each tile has its own", numbers(0, 1 << 16)),
    "persistent": Key("one tile holds all own points, else a loop goes over tiles", flag),
    "unrolled": Key(
        "the own points of a row are combined one after the other, without a loop", flag),
    "order": Key("the numbers of the row axes, from the outermost to the innermost", places),
    "own_order": Key(
        "of several own axes that all members have alike and combine in any order: their numbers, "
        "from the outermost to the innermost", places),
    "tile_axes": Key(
        "of a pointwise kernel: two row axes that a tile spans, the second one contiguous where it "
        "is written, the first where it is read; of any: the one axis that a tile of rows spans, "
        "the others being scalars of the program; none: rows are one line", places),
    "y_block": Key("with two tile axes: points of a tile along the first one", powers()),
    "collapse": Key(
        "with two tile axes: pairs of row axes of which the second then stands for both, in order",
        place_pairs),
    "num_warps": Key("as Triton's", powers(1, 32)),
    "num_stages": Key("as Triton's", numbers(1, 16)),
    "turns": Key(
        "with own axes: a loop over their tiles goes backwards where the one before it went "
        "forwards, and so begins with what the caches still hold", flag),
    "edge_bytes": Key(
        "what a thread moves at once: an access whose mask splits that is made as two, of the "
        "whole parts and of the rest; 0: never", powers(0, 16)),
    "row_group": Key(
        "rows are covered by tiles that begin at a multiple of so many elements; their first and "
        "last elements are stored by themselves where they share that with other rows; a tile of a "
        "contraction has rows that begin at the same place of such a group; 1: a tile "
        "begins with its rows", powers(1, 64)),
    "peeled": Key(
        "with a loop over tiles: those that the ends of rows cut are outside of the loop, whose "
        "lanes are all inside", flag),
    "abreast": Key(
        "with a loop over tiles: so many of them are taken in a turn, whose points are all read "
        "before any are combined or stored; as many as a row has, or more: there is no loop, and "
        "the row stays in registers, part by part", powers(1, MOST_ABREAST)),
    "online": Key(
        "with a loop over tiles: the maximum of a row and the sum of powers of e below it are had "
        "in one walk, with the maximum so far", flag),
    "rough_powers": Key(
        "powers of e, sigmoids and what gelu multiplies with, where they are only summed up or "
        "rounded to 16 bits, are made of the machine's own powers of two", flag),
    "cached_reads": Key(
        "loops over the tiles of rows: what is read of them in another loop again is kept in the "
        "cache, and what the last one reads is not", flag),
    "early_reads": Key(
        "what is read behind the first reduction, and needs none, is read before it", flag),
    "tile_m": Key("of a contraction: rows of a tile", powers()),
    "tile_n": Key(
        "of a contraction: columns of a tile; other numbers than powers of two are parts that are, "
        "with sums of their own", lambda v: _number(
            v, lambda n: n in (1, 2, 4) or (n > 0 and n % 8 == 0), "a multiple of 8")),
    "tile_k": Key("of a contraction: the depth that is multiplied at once", powers()),
    "group_m": Key(
        "of a contraction: rows of tiles that go over the columns together, so that what they read "
        "stays in the cache", numbers(1)),
    "products": Key(
        "of a contraction: tiles are multiplied as matrices, with the rows as the first dimension "
        "(dot) or the columns (swapped), which can be few",
        words("dot", "swapped")),
    "precision": Key(
        "of a contraction: how factors of f32 are multiplied: as they are (ieee), rounded to 10 "
        "bits (tf32) or cut into parts of these (tf32x3), cut into three bf16, whose six largest "
        "products are added up (bf16x6), or rounded to 16 bits",
        words("ieee", "tf32", "tf32x3", "bf16x6", "bf16", "f16")),
    "access": Key(
        "of a contraction: how factors that are plain matrices in memory are read: lane by lane "
        "(pointers), or by descriptors that the hardware copies tiles by, where their rows are "
        "multiples of 16 bytes", words("pointers", "descriptors")),
    "flat": Key(
        "of a contraction: the loop over a program instance's tiles and that over their depth are "
        "one, which reads the next tile's factors while sums are stored; it needs `programs`",
        flag),
    "split_k": Key(
        "of a contraction: parts of its depth, each of which has a kernel's tiles, before they are "
        "summed up by another kernel; split-reductions makes them, and no kernel has the key",
        numbers(1)),
    "column_parts": Key(
        "of a contraction: parts of (each part of) a tile's columns, with sums of their own, that "
        "what follows is computed on one after the other", powers(1, 8)),
    "stream_m": Key("of streamed products: rows of a tile", powers()),
    "stream_n": Key(
        "of streamed products (of rows and a stream of columns, what is made of these, and their "
        "products with something else that is streamed): columns of a step; without it, a group "
        "streams none", powers()),
    "last_first": Key(
        "of streamed products of which each row counts so much of the stream: tiles of the last "
        "rows come first, as those are of queries that see all keys before them", flag),
    "index_bits": Key("the width of indices", lambda v: _number(
        v, lambda n: n in (32, 64), "32 or 64")),
    "variants": Key(SIZES, by_size("gpu")),
}  # fmt: skip

CONTRACTION_KEYS = frozenset((
    "tile_m", "tile_n", "tile_k", "group_m", "products", "precision", "split_k", "column_parts",
    "access", "flat",
))  # fmt: skip
"""The keys that only a gpu's schedules of contractions have."""

STREAM_KEYS = frozenset(("stream_m", "stream_n", "last_first"))
"""The keys that only a gpu's schedules of streamed products have."""

KEYS: Mapping[str, Mapping[str, Key]] = {"cpu": CPU, "gpu": GPU}


def complaints(target: str, entries: A.DictAttr) -> list[str]:
    """What is wrong with the entries of a schedule for a target, a text "key is ..." each."""
    known, reasons = KEYS[target], []
    for key, value in entries.items:
        if key not in known:
            from difflib import get_close_matches  # only a mistake needs it

            close = get_close_matches(key, known, 3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known)}"
            reasons.append(f"'{key}' is no key of a {target}'s schedule; {hint}")
        elif text := known[key].check(value):
            reasons.append(f"{key} is {text}")
    return reasons or (_cpu_sizes(entries.as_dict()) if target == "cpu" else [])


def _cpu_sizes(entries: Mapping[str, Any]) -> list[str]:
    """Numbers that must be multiples of others."""
    sizes = {k: v.value for k, v in entries.items() if isinstance(v, A.IntegerAttr)}
    lanes, reasons = sizes.get("lanes", 1), []
    if sizes.get("block", 0) % (lanes * sizes.get("copies", 1)):
        reasons.append(f"block is {sizes['block']}, not a multiple of its vectors")
    if sizes.get("tile_block", 0) % lanes:
        reasons.append(f"tile_block is {sizes['tile_block']}, not a multiple of its lanes")
    rows, columns = sizes.get("tile_rows", 1), sizes.get("tile_vectors", 1) * lanes
    for key, unit in (("point_rows", rows), ("block_rows", rows), ("point_columns", columns),
                      ("block_depth", lanes)):
        if sizes.get(key, 0) % unit:
            reasons.append(f"{key} is {sizes[key]}, not a multiple of its tiles, {unit}")
    return reasons
