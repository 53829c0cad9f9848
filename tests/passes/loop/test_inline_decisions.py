"""When a map is inlined: limits, plain views, repeated evaluation by one reader or by several."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import loop
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages
from tests.passes.graph.aten_programs import put_on
from tests.passes.loop.texts import expanded, parsed, ran, remarks

ARGUMENTS = ("%x: f32[100, 100], %w: f32[100, 100], %v: f32[96, 100], %i: i64[100], %c: i1[100], "
             "%s: f32[100]")  # fmt: skip
SPACE, TYPE = "par(i0: 100, i1: 100)", "f32[100, 100]"
NEEDED = "its array is needed anyway, by a result or by something else than a compute"


def compute(name: str, body: str, axes: str = SPACE, type_: str = TYPE, out: str = "map") -> str:
    """The last value of the body is %z."""
    return f"{name} = loop.compute {axes} -> {out} {{ {body} loop.yield %z }} : {type_}\n"


def reader(read: str = "%m[i0, i1]", axes: str = SPACE, type_: str = TYPE, name: str = "%y") -> str:
    return compute(name, f"%z = loop.read {read} : f32\n", axes, type_)


def refused(
    *texts: str, results: str = "", options: str = "", target: str = "avx2", more: str = ""
) -> list[str]:
    """Why maps were not inlined, without the times."""
    module = parsed(ARGUMENTS + more, "".join(texts), results)
    told = remarks(ran(module, f"inline-computes{options}", target))
    reasons = [t.partition("is not inlined into its readers: ")[2] for t in told]
    return [t.partition(": ")[0] for t in reasons if t]


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
        + "".join(f"%b{k} = arith.addf %b{k - 1 if k else ''}, %b : f32\n" for k in range(7))
        + "%z = arith.negf %b6 : f32\n", True),
    "more than a load of positions": (
        INDEX + "%b = arith.sitofp %n : i64 to f32\n"
        + "".join(f"%b{k} = arith.addf %b{k - 1 if k else ''}, %b : f32\n" for k in range(8))
        + "%z = arith.negf %b7 : f32\n", False),
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


@pytest.mark.parametrize(("target", "widened"), [("sm_90", 0), ("avx512", 1)])
def test_what_is_only_widened_is_stored_narrow(target, widened):
    """Sums of squares and of cubes read what one costly map makes, widened once for both."""
    costly = compute("%n", "%a = loop.read %x[i0, i1] : f32 %b = math.exp %a : f32 "
                     "%t = math.sin %b : f32 %z = arith.truncf %t : f32 to bf16\n",
                     type_="bf16[100, 100]")  # fmt: skip
    wide = compute("%m", "%n0 = loop.read %n[i0, i1] : bf16 %z = arith.extf %n0 : bf16 to f32\n")
    body = "%a = loop.read %m[i0, i1] : f32 %b = arith.mulf %a, %a : f32\n"
    axes, out = "par(i0: 100) red(i1: 100)", "reduce(sum, f32)"
    sums = (compute("%y", f"{body}%z = arith.mulf %a, %b : f32\n", axes, "f32[100]", out)
            + compute("%u", f"{body}%z = arith.addf %b, %b : f32\n", axes, "f32[100]", out))
    module = parsed(ARGUMENTS, costly + wide + sums, "%y: f32[100], %u: f32[100]")
    ran(module, "inline-computes", target)
    text = str(module)
    assert text.count("-> map") == 1 and text.count(f"}} : {expanded(TYPE)}") == widened
    # What something else wants stays.
    module = parsed(ARGUMENTS, costly + wide + sums, f"%y: f32[100], %u: f32[100], %m: {TYPE}")
    ran(module, "inline-computes", target)
    assert f"}} : {expanded(TYPE)}" in str(module)


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


# -- one reader: what it evaluates again, against an array that is stored and loaded

COSTLY = "%a = loop.read %v[i0, i1] : f32 %b = math.exp %a : f32 %z = math.exp %b : f32\n"
ROWS = "par(i0: 96, i1: 100)", "f32[96, 100]"


@pytest.mark.parametrize(("windows", "inlined"), [(33, True), (34, False), (12, True)])
def test_windows_that_overlap(windows, inlined):
    """Windows of 5 rows of 96. In operations at a column: 32 of functions and 8 of 4 bytes read
    again for each row more, against 8 for each of 96 rows stored, twice, and of all rows loaded,
    and 16 of a launch: as long as 5 * windows <= 168."""
    made = compute("%m", COSTLY, *ROWS)
    space = f"par(i0: {windows}, i1: 5, i2: 100)", f"f32[{windows}, 5, 100]"
    told = refused(made, reader("%m[i0*2 + i1, i2]", *space), results=f"%y: {space[1]}")
    assert told == ([] if inlined else ["1 reads would evaluate it 1.77 times at each point"])


def test_one_reader_that_repeats_all_of_it():
    """Both times stand in the remark."""
    made = compute("%m", COSTLY, *ROWS)
    again = reader("%m[i1, i2]", "par(i0: 3, i1: 96, i2: 100)", "f32[3, 96, 100]")
    module = parsed(ARGUMENTS, made + again, "%y: f32[3, 96, 100]")
    assert remarks(ran(module, "inline-computes", "avx2")) == [
        "'loop.compute': is not inlined into its readers: 1 reads would evaluate it 3 times at "
        "each point: 9.62 us -> 14.4 us"
    ]


def test_one_reader_that_repeats_what_is_cheap_for_its_size():
    """2048 functions are what one thread does by itself: they are computed once for the reader; an
    array of its own has what is more."""
    once = "it differs by column only, and is computed once for its reader"
    apart = "1 reads would evaluate it 9 times at each point"
    for extent, wanted in ((2048, once), (2049, apart)):
        body = f"%a = loop.read %n{extent}[i0] : f32 %z = math.exp %a : f32\n"
        made = compute("%m", body, f"par(i0: {extent})", f"f32[{extent}]")
        again = compute("%y", "%p = loop.read %m[i1] : f32 %z = arith.negf %p : f32\n",
                        f"par(i0: 9, i1: {extent})", f"f32[9, {extent}]")  # fmt: skip
        told = refused(made, again, results=f"%y: f32[9, {extent}]",
                       more=f", %n{extent}: f32[{extent}]")  # fmt: skip
        assert told == [wanted]


def test_what_finishes_a_reduction_may_share_its_kernel():
    """A few values more are not evaluated again for each row that reads them."""
    sums = compute("%r", READ, "par(i1: 100) red(i0: 100)", "f32[100]", "reduce(sum, f32)")
    for times, wanted in ((1, True), (9, False)):
        made = compute("%m", "%a = loop.read %r[i0] : f32 %z = math.exp %a : f32\n",
                       "par(i0: 100)", "f32[100]")  # fmt: skip
        again = reader("%m[i1]", f"par(i0: {times}, i1: 100)", f"f32[{times}, 100]")
        told = refused(sums.replace("i1: 100) red(i0", "i0: 100) red(i1"), made, again,
                       results=f"%y: f32[{times}, 100]")  # fmt: skip
        assert bool(told) is not wanted


@pytest.mark.parametrize(("sums", "wanted"), [(6, True), (7, False)])
def test_what_differs_along_the_repeated_axes_counts(sums, wanted):
    """So many sums of what differs along the columns, whose windows overlap, and a function of
    each row. 480 columns of 100 are evaluated: 8 operations of %x and the sums for 380 more,
    against 8 for 200 stored and 480 loaded, and 16 of a launch at a row."""
    body = "%a = loop.read %s[i0] : f32 %b = math.exp %a : f32\n%d = loop.read %x[i0, i1] : f32\n"
    for k in range(sums - 1):
        body += f"%d{k} = arith.addf %d{k - 1 if k else ''}, %d : f32\n"
    body += f"%z = arith.addf %d{sums - 2 if sums > 1 else ''}, %b : f32\n"
    windows = reader("%m[i2, i0 + i1]", "par(i0: 96, i1: 5, i2: 100)", "f32[96, 5, 100]")
    told = refused(compute("%m", body), windows, results="%y: f32[96, 5, 100]")
    assert told == ([] if wanted else ["1 reads would evaluate it 4.8 times at each point"])


# -- several readers


def several(arrays: int, sums: int, readers: int, target: str = "avx2") -> bool:
    """Whether so many readers inline the sum of some arrays of 40 KB, with so many additions."""
    more = "".join(f", %n{k}: f32[100, 100]" for k in range(arrays))
    body = "".join(f"%a{k} = loop.read %n{k}[i0, i1] : f32\n" for k in range(arrays))
    last = "%a0"
    for k in range(sums):
        body += f"%b{k} = arith.addf {last}, %a{k if k < arrays else 0} : f32\n"
        last = f"%b{k}"
    made = compute("%m", body + f"%z = arith.mulf {last}, %a0 : f32\n")
    names = [f"%y{k}" for k in range(readers)]
    texts = [reader(name=name) for name in names]
    results = ", ".join(f"{name}: {TYPE}" for name in names)
    return not refused(made, *texts, results=results, target=target, more=more)


# arrays, additions, readers. In operations at a point, with one multiplication: what is evaluated
# again, against an array that passes in cache: 4 for the store, 2 for each load.
SEVERAL = [
    (1, 7, 2, True), (1, 8, 2, False), (1, 4, 3, True), (1, 5, 3, False), (1, 3, 4, True),
    (1, 4, 4, False), (3, 7, 2, True), (4, 3, 2, False), (4, 1, 2, False),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "sums", "readers", "wanted"), SEVERAL)
def test_several_readers(arrays, sums, readers, wanted):
    """Where they stay apart, each reads all arrays: 8 operations for 4 bytes, of four arrays as
    much as storing one and loading it twice."""
    assert several(arrays, sums, readers) is wanted


def test_a_text_decides_by_its_target():
    """Elements that pass in cache for nothing, or at twice the price."""
    known = "#irc.target<avx2, access = {}>".format
    assert not several(1, 0, 2, known(0)) and several(1, 0, 2, known(1))
    assert not several(1, 15, 2) and several(1, 15, 2, known(4))
    costly = compute("%m", EXP)
    readers = [reader(name=name) for name in ("%y", "%w0")]
    for function, told in ((8, []), (9, ["2 reads would evaluate it 2 times at each point"])):
        target = f"#irc.target<avx2, function = {function}>"
        assert refused(costly, *readers, results=f"%y: {TYPE}, %w0: {TYPE}", target=target) == told


def test_what_steps_over_memory_is_read_once():
    """Two readers of a transposed array share what was gathered."""
    for read, wanted in (("%x[i1, i0]", True), ("%x[i0, i1]", False)):
        made = compute("%m", f"%a = loop.read {read} : f32 %z = arith.negf %a : f32\n")
        readers = [reader(name=name) for name in ("%y", "%w0")]
        assert bool(refused(made, *readers, results=f"%y: {TYPE}, %w0: {TYPE}")) is wanted


def test_positions_are_not_looked_up_twice():
    made = compute("%m", POSITION + "%a = loop.read %x[%q, i1] : f32 %z = arith.negf %a : f32\n")
    readers = [reader(name=name) for name in ("%y", "%w0")]
    assert refused(made, *readers, results=f"%y: {TYPE}, %w0: {TYPE}") == [
        "each of its readers would look its positions up"
    ]


def test_what_is_read_at_one_place_several_times_counts_once_on_a_gpu() -> None:
    """T5's buckets of distances: 36 operations, 304 where each read counts what it reads anew."""

    def bias(table: torch.Tensor) -> torch.Tensor:
        places = torch.arange(128)
        distance = places[None, :] - places[:, None]
        far = 8 + (torch.log(distance.abs().float() / 8) / 2.77 * 8).long()
        near = torch.where(distance.abs() < 8, distance.abs(), far.clamp(max=15))
        return table[(distance > 0).long() * 16 + near]

    module = put_on(irc.trace(bias, [torch.randn(32, 8)]), "cuda:0")
    texts = list(stages("sm_90").items())
    until = ",".join(text for name, text in texts if not name.startswith(("loop", "kernel")))
    PassManager.parse(until).run(module, PassContext(target="sm_90"))
    assert sum(isinstance(op, loop.ComputeOp) for op in module.walk()) == 1


OUTER = "%a = loop.read %x[i0, i1] : f32 %b = loop.read %s[i2] : f32 %d = arith.subf %a, %b : f32 "
FACTORS = "%p = loop.read {} : f32 %q = loop.read %v[i2, i1] : f32 %z = arith.mulf %p, %q : f32"
DEEP = "%y", FACTORS, "par(i0: 100, i1: 64) red(i2: 96)", "f32[100, 64]", "reduce(sum, f32)"


@pytest.mark.parametrize("view", [True, False])
@pytest.mark.parametrize("target, stays", [("avx2", True), ("avx512", True), ("sm_90", False)])
def test_a_factor_whose_axes_are_quotients_of_the_depth(view, target, stays):
    """Lanes along the depth would gather each element: a kernel of its own has vectors."""
    made = compute("%m", OUTER + "%z = math.exp %d : f32\n", "par(i0: 100, i1: 8, i2: 12)",
                   "f32[100, 8, 12]")  # fmt: skip
    name, body, *rest = DEEP
    if view:
        made += compute("%f", "%z = loop.read %m[i0, floordiv(i1, 12), mod(i1, 12)] : f32\n",
                        "par(i0: 100, i1: 96)", "f32[100, 96]")  # fmt: skip
        body = body.format("%f[i0, i2]")
    else:
        body = body.format("%m[i0, floordiv(i2, 12), mod(i2, 12)]")
    told = refused(made, compute(name, body, *rest), results="%y: f32[100, 64]", target=target)
    assert told == (["1 reads would evaluate it 1 times at each point"] if stays else [])


def test_a_factor_whose_axes_are_those_of_the_depth():
    made = compute("%m", "%a = loop.read %x[i0, i1] : f32 %z = math.exp %a : f32\n",
                   "par(i0: 100, i1: 96)", "f32[100, 96]")  # fmt: skip
    name, body, *rest = DEEP
    text = made, compute(name, body.format("%m[i0, i2]"), *rest)
    assert not refused(*text, results="%y: f32[100, 64]")


def test_a_factor_whose_axes_are_quotients_of_the_rows():
    """Lanes along the depth read neighbours all the same."""
    made = compute("%m", "%a = loop.read %x[i0*25 + i1, i2] : f32 %z = math.exp %a : f32\n",
                   "par(i0: 4, i1: 25, i2: 96)", "f32[4, 25, 96]")  # fmt: skip
    made += compute("%f", "%z = loop.read %m[floordiv(i0, 25), mod(i0, 25), i1] : f32\n",
                    "par(i0: 100, i1: 96)", "f32[100, 96]")  # fmt: skip
    name, body, *rest = DEEP
    text = made, compute(name, body.format("%f[i0, i2]"), *rest)
    assert not refused(*text, results="%y: f32[100, 64]")
