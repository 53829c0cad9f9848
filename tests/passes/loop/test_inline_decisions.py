"""When a map is inlined: limits, plain views, repeated evaluation by one reader or by several."""

from __future__ import annotations

import pytest

from irc.passes.loop.inline_computes import InlineComputes, Summary, _Chooser
from tests.passes.loop.texts import computes, parsed, ran, remarks

ARGUMENTS = ("%x: f32[100, 100], %w: f32[100, 100], %v: f32[96, 100], %i: i64[100], %c: i1[100], "
             "%s: f32[100]")  # fmt: skip
SPACE, TYPE = "par(i0: 100, i1: 100)", "f32[100, 100]"
NEEDED = "its array is needed anyway, by a result or by something else than a compute"


def compute(name: str, body: str, axes: str = SPACE, type_: str = TYPE, out: str = "map") -> str:
    """The last value of the body is %z."""
    return f"{name} = loop.compute {axes} -> {out} {{ {body} loop.yield %z }} : {type_}\n"


def reader(read: str = "%m[i0, i1]", axes: str = SPACE, type_: str = TYPE, name: str = "%y") -> str:
    return compute(name, f"%z = loop.read {read} : f32\n", axes, type_)


def refused(*texts: str, results: str = "", options: str = "") -> list[str]:
    """Why maps were not inlined."""
    context = ran(parsed(ARGUMENTS, "".join(texts), results), f"inline-computes{options}")
    return [t.partition("is not inlined into its readers: ")[2] for t in remarks(context)]


READ = "%z = loop.read %x[i0, i1] : f32\n"
EXP = "%a = loop.read %x[i0, i1] : f32 %z = math.exp %a : f32\n"
TWO = "%a = loop.read %x[i0, i1] : f32 %b = loop.read %w[i0, i1] : f32\n"
MASK = "%k = loop.read %c[i0] : i1\n"
POSITION = "%p = loop.read %i[i0] : i64 %q = arith.index_cast %p : i64 to index\n"
INDEX = "%j = loop.index {expression = #sym<i0>} : index %n = arith.index_cast %j : index to i64\n"
# What is returned, too: whether its reader inlines it anyway.
RETURNED = {
    "a view": (READ, True),
    "a reversed view": ("%z = loop.read %x[99 - i0, i1] : f32\n", True),
    "a constant": ("%z = arith.constant 3.0 : f32\n", True),
    "a choice of two": (TWO + "%t = arith.constant true\n%j = loop.index {expression = #sym<i0>} "
                        ": index\n%n0 = arith.constant 7 : index\n"
                        "%u = arith.cmpi slt, %j, %n0 : index\n"
                        "%z = arith.select %u, %a, %b : f32\n", False),
    "a function": (EXP, False),
    "a cheap operation": ("%a = loop.read %x[i0, i1] : f32 %z = arith.negf %a : f32\n", False),
    "a masked view": (
        "%j = loop.index {expression = #sym<i0>} : index %n0 = arith.constant 7 : index\n"
        "%u = arith.cmpi slt, %j, %n0 : index\n"
        "%z = loop.read %x[i0, i1] (where %u) : f32\n", False),
    "a number of positions": (INDEX + "%b = arith.sitofp %n : i64 to f32\n"
                              "%z = arith.negf %b : f32\n", True),
    "a function of positions": (INDEX + "%b = arith.sitofp %n : i64 to f32\n"
                                "%z = math.sin %b : f32\n", False),
    "nearly a function of positions": (
        INDEX + "%b = arith.sitofp %n : i64 to f32\n"
        + "".join(f"%b{k} = arith.addf %b{k - 1 if k else ''}, %b : f32\n" for k in range(14))
        + "%z = arith.negf %b13 : f32\n", True),
}  # fmt: skip


@pytest.mark.parametrize("name", RETURNED)
def test_maps_that_are_returned_too(name):
    body, inlined = RETURNED[name]
    told = refused(compute("%m", body), reader(), results=f"%m: {TYPE}, %y: {TYPE}")
    assert told == ([] if inlined else [NEEDED])
    if name not in ("a function of positions", "a masked view"):
        assert not refused(compute("%m", body), reader(), results=f"%y: {TYPE}")


def test_a_view_by_data_is_returned_as_it_is():
    """Also where the position is computed without a read."""
    for made in (POSITION, "%q = loop.index {expression = #sym<i0>} : index\n"):
        text = compute("%m", made + "%z = loop.read %x[%q, i1] : f32\n")
        assert refused(text, reader(), results=f"%m: {TYPE}, %y: {TYPE}") == [NEEDED]


def test_limits():
    """Operations: two reads, a sum and the yield."""
    both = compute("%m", TWO + "%z = arith.addf %a, %b : f32\n")
    for option, count, word in (("max_ops", 4, "operations"), ("max_reads", 2, "reads")):
        for limit in (count - 1, count, count + 1):
            told = refused(both, reader(), results=f"%y: {TYPE}", options=f"{{{option}={limit}}}")
            assert told == [f"{count} {word}, over {option} ({limit})"] * (limit < count)


def test_what_only_a_call_or_the_caller_reads_is_not_spoken_of():
    assert not refused(compute("%m", EXP), results=f"%m: {TYPE}")
    assert not refused(compute("%m", EXP))


# -- one reader

COSTLY = "%a = loop.read %v[i0, i1] : f32 %b = math.exp %a : f32 %z = math.exp %b : f32\n"


@pytest.mark.parametrize(("windows", "inlined"), [(24, True), (25, False), (12, True)])
def test_one_reader_may_evaluate_a_quarter_more(windows, inlined):
    """Windows of 5 rows of 96, which overlap: 24 of them are 120 rows."""
    made = compute("%m", COSTLY, "par(i0: 96, i1: 100)", "f32[96, 100]")
    sums = reader("%m[i0*3 + i1, i2]", f"par(i0: {windows}, i1: 5, i2: 100)",
                  f"f32[{windows}, 5, 100]")  # fmt: skip
    told = refused(made, sums, results=f"%y: f32[{windows}, 5, 100]")
    assert told == ([] if inlined else [
        "1 reads would evaluate it about 1 times at each point (cost 32, 1 large arrays)"
    ])  # fmt: skip


def test_one_reader_that_repeats_all_of_it():
    made = compute("%m", COSTLY, "par(i0: 96, i1: 100)", "f32[96, 100]")
    again = reader("%m[i1, i2]", "par(i0: 3, i1: 96, i2: 100)", "f32[3, 96, 100]")
    assert refused(made, again, results="%y: f32[3, 96, 100]") == [
        "1 reads would evaluate it about 3 times at each point (cost 32, 1 large arrays)"
    ]


def test_one_reader_that_repeats_what_is_cheap_for_its_size():
    made = compute("%m", "%a = loop.read %s[i0] : f32 %z = math.exp %a : f32\n", "par(i0: 100)",
                   "f32[100]")  # fmt: skip
    again = reader("%m[i1]", "par(i0: 9, i1: 100)", "f32[9, 100]")
    assert not refused(made, again, results="%y: f32[9, 100]")


def test_two_readers():
    made = compute("%m", COSTLY, "par(i0: 96, i1: 100)", "f32[96, 100]")
    space = "par(i0: 96, i1: 100)", "f32[96, 100]"
    readers = [reader("%m[i0, i1]", *space, name) for name in ("%y", "%z")]
    assert refused(made, *readers, results="%y: f32[96, 100], %z: f32[96, 100]") == [
        "2 reads would evaluate it about 2 times at each point (cost 32, 1 large arrays)"
    ]
    cheap = compute("%m", "%a = loop.read %v[i0, i1] : f32 %z = arith.negf %a : f32\n",
                    "par(i0: 96, i1: 100)", "f32[96, 100]")  # fmt: skip
    assert not refused(cheap, *readers, results="%y: f32[96, 100], %z: f32[96, 100]")


# -- the two rules, by numbers

LARGE, SMALL = 16_385, 16_384


def chooser(text: str) -> tuple[_Chooser, list]:
    found = computes(parsed(ARGUMENTS, text))
    return _Chooser(InlineComputes(), found[0].parent), found


def sources(large: int, small: int = 0) -> dict:
    sizes = [LARGE] * large + [SMALL] * small
    return {object(): size for size in sizes}


# cost, indirect, large arrays, reads, evaluations of 10 points by 2 readers
SEVERAL = [
    (0, False, 1, 1, 20, True), (0, True, 1, 1, 20, False), (8, False, 2, 6, 40, True),
    (9, False, 0, 1, 20, False), (8, False, 3, 6, 40, False), (8, False, 2, 7, 40, False),
    (8, False, 0, 6, 41, False), (0, False, 1, 9, 41, True), (0, False, 2, 1, 41, False),
    (0, False, 2, 6, 40, True), (0, False, 2, 7, 40, False), (1, False, 1, 1, 41, False),
]  # fmt: skip


@pytest.mark.parametrize(("cost", "indirect", "large", "reads", "evaluations", "wanted"), SEVERAL)
def test_several_readers(cost, indirect, large, reads, evaluations, wanted):
    made, _ = chooser(reader("%x[i0, i1]"))
    summary = Summary(cost, 1, reads, indirect, sources=sources(large, 3))
    assert made.duplicates_cheaply(summary, evaluations, 10, 2) is wanted


WIDE, ROW = (SPACE, TYPE), ("par(i0: 100)", "f32[100]")
# The map's space, cost, indirect, large arrays, a reduction among the sources, times, reader
ONE = [
    (WIDE, 0, False, 1, False, 9, "rows", True), (WIDE, 0, False, 2, False, 9, "rows", False),
    (WIDE, 0, False, 1, True, 9, "rows", True), (WIDE, 0, True, 1, False, 4, "rows", True),
    (WIDE, 0, True, 0, False, 5, "rows", False),
    (ROW, 32, False, 3, False, 99, "rows", True), (ROW, 33, False, 0, False, 1, "rows", False),
    (ROW, 16, False, 3, True, 5, "rows", False), (ROW, 8, False, 3, True, 4, "rows", True),
    (ROW, 9, False, 0, True, 4, "rows", False), (ROW, 8, False, 3, True, 5, "rows", False),
    (WIDE, 8, False, 3, False, 4, "rows", True), (WIDE, 8, False, 0, False, 5, "rows", False),
    (WIDE, 9, False, 0, False, 4, "rows", False), (WIDE, 9, False, 0, False, 4, "columns", True),
    (WIDE, 9, False, 0, False, 5, "columns", False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("space", "cost", "indirect", "large", "reduced", "times", "overlap", "wanted"), ONE
)
def test_one_reader_that_repeats(space, cost, indirect, large, reduced, times, overlap, wanted):
    """The map makes a function of each row; windows of rows repeat it, those of columns do not."""
    axes, type_ = space
    body = "%a = loop.read %s[i0] : f32 %b = math.exp %a : f32\n"
    if space is ROW:
        body, read = body + "%z = arith.negf %b : f32\n", "%m[i0 + i1]"
    else:
        body += "%d = loop.read %x[i0, i1] : f32 %z = arith.addf %b, %d : f32\n"
        read = "%m[i0 + i1, i2]" if overlap == "rows" else "%m[i2, i0 + i1]"
    windows = reader(read, "par(i0: 96, i1: 5, i2: 100)", "f32[96, 5, 100]")
    sums = compute("%r", READ, "red(i0: 100, i1: 100)", "f32[]", "reduce(sum, f32)")
    made, (total, op, other) = chooser(sums + compute("%m", body, axes, type_) + windows)
    summary = Summary(cost, 1, 1, indirect, sources=sources(0))
    keys = [total.results[0]] * reduced + list(op.parent.arguments)
    summary.sources = {key: LARGE if k < large else SMALL for k, key in enumerate(keys)}
    assert made.repeats_cheaply(op, next(iter(other.reads)), summary, times) is wanted


@pytest.mark.parametrize(("sums", "wanted"), [(7, True), (8, True), (9, False)])
def test_what_differs_along_the_repeated_axes_counts(sums, wanted):
    """So many sums of what differs along the columns, whose windows overlap, and a function of
    each row."""
    body = "%a = loop.read %s[i0] : f32 %b = math.exp %a : f32\n%d = loop.read %x[i0, i1] : f32\n"
    for k in range(sums - 1):
        body += f"%d{k} = arith.addf %d{k - 1 if k else ''}, %d : f32\n"
    body += f"%z = arith.addf %d{sums - 2}, %b : f32\n"
    windows = reader("%m[i2, i0 + i1]", "par(i0: 96, i1: 5, i2: 100)", "f32[96, 5, 100]")
    made, (op, other) = chooser(compute("%m", body) + windows)
    assert made.repeats_cheaply(op, next(iter(other.reads)), Summary(99), 4) is wanted


def test_small_arrays():
    """4096 elements of 4 bytes stay in cache, one more does not."""
    for extent, wanted in ((4096, True), (4097, False)):
        arguments = f"%s: f32[{extent}]"
        body = "%a = loop.read %s[i0] : f32 %z = math.exp %a : f32\n"
        text = compute("%m", body, f"par(i0: {extent})", f"f32[{extent}]")
        text += reader("%m[i1]", f"par(i0: 9, i1: {extent})", f"f32[9, {extent}]")
        module = parsed(arguments, text)
        op, other = computes(module)
        made = _Chooser(InlineComputes(), op.parent)
        summary = Summary(16, 1, 1)
        assert made.repeats_cheaply(op, next(iter(other.reads)), summary, 9) is wanted
