"""Which computes share a group: shared axes, what passes between them, what a GPU can do, and
epilogues of full reductions."""

from __future__ import annotations

import pytest

from irc.ir.passes import PassContext
from irc.passes.loop.group_computes import (
    GroupComputes,
    group_with_readers,
    runs_along_shared_axis,
)
from irc.target import Target
from tests.passes.loop.texts import computes, expanded, heads, parsed, ran, remarks


def of(
    name: str, read: str, axes: str, type_: str, out: str = "map", *more: str, made: str = ""
) -> str:
    """A compute of the sum of one read or more."""
    body = f"{made} %a0 = loop.read {read} : f32\n"
    for k, other in enumerate(more):
        body += f"%b{k} = loop.read {other} : f32 %a{k + 1} = arith.addf %a{k}, %b{k} : f32\n"
    body += f"loop.yield %a{len(more)}"
    return f"{name} = loop.compute {axes} -> {out} {{ {body} }} : {type_}\n"


def rows(name: str = "%r", read: str = "%x[i0, i1]", axes: str = "par(i0: 64) red(i1: 128)",
         type_: str = "f32[64]") -> str:  # fmt: skip
    return of(name, read, axes, type_, "reduce(sum, f32)")


def grouped(arguments: str, *texts: str, options: str = "", gpu: bool = False,
            results: str = "", target: str = "llvm") -> tuple[list[str], list[str]]:  # fmt: skip
    """What is in which group after the pass, and the reasons of readers that stayed apart."""
    module = parsed(arguments, "".join(texts), results)
    context = ran(module, f"group-computes{options}", target="triton" if gpu else target)
    told = [t.partition("a compute that it reads: ")[2].partition(": ")[0]
            for t in remarks(context)]  # fmt: skip
    return [h for h in heads(module) if h.startswith(("group", "- "))], told


X = "%x: f32[64, 128], %w: f32[64, 128], %v: f32[64], %i: i64[64]"
FEW = "the leading axes that both can share, [{}], are too few for it to pay"
CASES = {
    "rows and what is made of them": (X, [rows(), of("%y", "%x[i0, i1]", "par(i0: 64, i1: 128)",
                                                     "f32[64, 128]", "map", "%r[i0]")], "64"),
    "two shared axes": (
        "%x: f32[8, 64, 4]",
        [rows("%r", "%x[i0, i1, i2]", "par(i0: 8, i1: 64) red(i2: 4)", "f32[8, 64]"),
         of("%y", "%r[i0, i1]", "par(i0: 8, i1: 64, i2: 4)", "f32[8, 64, 4]")], "8, i1: 64"),
    "siblings": (X, [rows(), rows("%q")], "64"),
    "siblings that read at another point": (X, [rows(), rows("%q", "%x[63 - i0, i1]")], None),
    "siblings of a small array": ("%x: f32[32, 128]", [
        rows(axes="par(i0: 32) red(i1: 128)", type_="f32[32]"),
        rows("%q", axes="par(i0: 32) red(i1: 128)", type_="f32[32]")], None),
    "siblings of an array that just stays in cache": ("%v: f32[4096]", [
        of(n, "%v[i0]", "par(i0: 4096, i1: 2)", "f32[4096, 2]") for n in ("%m", "%q")], None),
    "siblings of one that does not": ("%v: f32[4097]", [
        of(n, "%v[i0]", "par(i0: 4097, i1: 2)", "f32[4097, 2]") for n in ("%m", "%q")],
        "4097"),
    "siblings of a large array that read a small one at the same points": (
        X, [of("%m", "%v[i0]", "par(i0: 64)", "f32[64]", "map", "%x[63 - i0, 0]"),
            of("%q", "%v[i0]", "par(i0: 64)", "f32[64]", "map", "%x[63 - i0, 1]")], None),
    "siblings of which one reads another large array": (
        X, [of("%m", "%x[63 - i0, 0]", "par(i0: 64)", "f32[64]"),
            of("%q", "%x[63 - i0, 0]", "par(i0: 64)", "f32[64]", "map", "%w[i0, 0]")], None),
    "other rows": (X, [rows(), of("%y", "%r[i0]", "par(i0: 32, i1: 4)", "f32[32, 4]")],
                   FEW.format("")),
    "rows reversed": (X, [rows(), of("%y", "%r[63 - i0]", "par(i0: 64)", "f32[64]")],
                      FEW.format("")),
    "rows of which one is missing": (
        X, [rows(), of("%y", "%r[i0 + 1]", "par(i0: 63)", "f32[63]")], FEW.format("")),
    "reductions of the first axis": (
        X, [of("%c", "%x[i0, i1]", "red(i0: 64) par(i1: 128)", "f32[128]", "reduce(sum, f32)"),
            of("%y", "%c[i0]", "par(i0: 128)", "f32[128]")], FEW.format("")),
    "other names": (X, [rows(), of("%y", "%r[j]", "par(j: 64)", "f32[64]")], None),
    "other names of the second axis": (
        X, [rows(), of("%y", "%x[i0, j]", "par(i0: 64, j: 128)", "f32[64, 128]", "map",
                       "%r[i0]")], None),
    "a scatter": (X, [rows(), "%y = loop.compute par(i0: 64) inits(%v) -> scatter(sum, [_0]) {\n"
                      "%a = loop.read %r[i0] : f32 %k = loop.read %i[i0] : i64\n"
                      "loop.yield %a extra(%k) } : f32[64]\n"], None),
    "a map beside a scatter": (
        X, [rows(), "%y, %z = loop.compute par(i0: 64) inits(%v) -> map, scatter(sum, [_0]) {\n"
            "%a = loop.read %r[i0] : f32 %k = loop.read %i[i0] : i64\n"
            "loop.yield %a, %a extra(%k) } : f32[64], f32[64]\n"], None),
    "a schedule": (X, [rows(), of("%y", "%r[i0]", "par(i0: 64)", "f32[64]",
                                  "map schedule #loop.schedule<cpu>")], None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pairs(name):
    """The shared axes, the reason why there are none, or None where nothing is told."""
    arguments, texts, wanted = CASES[name]
    found, told = grouped(arguments, *texts)
    if wanted is not None and wanted[0].isdigit():
        assert len(found) == 3 and found[0] == f"group(i0: {wanted})" and not told
    else:
        assert not found and told == ([] if wanted is None else [wanted])


def test_limits_of_operations():
    """Two reads, a sum and the yield; a read and the yield."""
    texts = rows(), of("%y", "%x[i0, i1]", "par(i0: 64, i1: 128)", "f32[64, 128]", "map", "%r[i0]")
    assert len(grouped(X, *texts, options="{max_ops=6}")[0]) == 3
    found, told = grouped(X, *texts, options="{max_ops=5}")
    assert not found and told == ["6 operations together, over max_ops (5)"]


def speeds(**figures: int) -> str:
    """A target with these figures."""
    return f"#irc.target<avx2, {', '.join(f'{k} = {v}' for k, v in figures.items())}>"


def test_what_passes_at_one_point():
    """128 elements of 4 bytes, read at another point within each row; either way. Where they don't
    stay in a core's cache, two kernels take no longer."""
    made = of("%m", "%x[i0, i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    reader = of("%y", "%m[i0, 127 - i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    for number in (511, 512, 513):
        found, told = grouped(X, made, reader, target=speeds(core_bytes=number, near_bytes=1))
        assert len(found) == (3 if number >= 512 else 0), number
        assert told == ([FEW.format("64")] if number < 512 else [])


def test_both_times_are_told():
    """Each reads 32 KB and writes as much, which counts twice, at 2 operations a byte, has an
    operation at 8192 points, and is a launch of 1600; a group reads 32 KB less. Where 128 points
    keep the target busy, 64 take twice the time."""
    made = of("%m", "%x[i0, i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    reader = of("%y", "%m[i0, 127 - i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    for parallel, together in ((128, False), (70, True)):
        module = parsed(X, made + reader)
        told = remarks(ran(module, "group-computes", target=speeds(parallel=parallel)))
        why = ("'loop.compute': is not grouped with a compute that it reads: " + FEW.format("64")
               + ": 5.16 us -> 8.62 us")  # fmt: skip
        assert told == ([] if together else [why])


def test_fewer_axes_than_either_has_must_be_enough():
    """What shares less than all of one's axes loses by as many points as the target lacks; what
    shares all of them does so however few they are."""
    made = of("%m", "%x[i0, i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    reader = of("%y", "%m[i0, 127 - i1]", "par(i0: 64, i1: 128)", "f32[64, 128]")
    for number in (64, 4096):
        target = speeds(parallel=number)
        found, _ = grouped(X, made, reader, target=target)
        assert len(found) == (3 if number <= 64 else 0), number
        both = grouped(X, rows(), of("%y", "%r[i0]", "par(i0: 64)", "f32[64]"), target=target)
        assert len(both[0]) == 3


# -- what lies adjacent along shared axes

ACROSS = "the elements of what they read lie adjacent along an axis that they would share"


def wide(columns: int, rows_: int = 64, strides: str = "", read: str = "%x[i1, i0]",
         more: tuple[str, ...] = (), reader: str = "", made: str = "") -> list[str]:  # fmt: skip
    """A map, and a reader of each of its rows at other points."""
    space, type_ = f"par(i0: {rows_}, i1: {columns})", f"f32[{rows_}, {columns}]"
    if strides:
        type_ = f"tensor<[{rows_}, {columns}] x f32, strides [{strides}]>"
    reader = reader or f"%m[i0, {columns - 1} - i1]"
    return [of("%m", read, space, type_, "map", *more, made=made),
            of("%y", reader, space, f"f32[{rows_}, {columns}]")]  # fmt: skip


def test_rows_of_what_is_read_across():
    """Up to 4096 bytes of what passes at a point stay in vectors; beyond it counts how the largest
    array that is read lies in memory."""
    for columns, turned, apart in ((1024, True, False), (1025, True, True), (1025, False, False)):
        shape = f"{columns}, 64" if turned else f"64, {columns}"
        read = "%x[i1, i0]" if turned else "%x[i0, i1]"
        found, told = grouped(f"%x: f32[{shape}]", *wide(columns, read=read))
        assert (told == [ACROSS]) == apart and (not found) == apart, (columns, turned)


def test_the_largest_array_counts():
    """Of two of the same size the first; one that stays in cache does not."""
    arguments = "%x: f32[2000, 64], %w: f32[64, 2000], %h: f32[64, 2001]"
    arguments += ", %s: f32[4096], %t: f32[4097]"
    for first, second, apart in (
        ("%x[i1, i0]", "%w[i0, i1]", True), ("%w[i0, i1]", "%x[i1, i0]", False),
        ("%x[i1, i0]", "%h[i0, i1]", False), ("%h[i0, i1]", "%x[i1, i0]", False),
        ("%s[i0]", "%s[i0]", False), ("%t[i0]", "%s[i0]", True),
        ("%x[i1, i0]", "%x[i1, i0]", True), ("%x[i1, i0]", "%x[i1, 0]", False),
    ):  # fmt: skip
        _, told = grouped(arguments, *wide(2000, read=first, more=(second,)))
        assert (told == [ACROSS]) == apart, (first, second)


def test_arrays_that_the_reader_reads_count_too():
    texts = wide(2000, read="%w[i0, i1]")
    texts[1] = texts[1].replace("loop.yield %a0", "%b = loop.read %x[i1, i0] : f32\n"
                                "%c = arith.addf %a0, %b : f32 loop.yield %c")  # fmt: skip
    for shape, apart in (("2001, 64", True), ("2000, 64", False)):
        _, told = grouped(f"%x: f32[{shape}], %w: f32[64, 2000]", *texts)
        assert (told == [ACROSS]) == apart


def test_what_one_of_them_makes_does_not_count():
    """The largest array is what passes between them, whose columns are contiguous; what a third
    compute makes comes from elsewhere."""
    found, told = grouped("%x: f32[64, 2]", *wide(2000, strides="1, 64", read="%x[i0, 0]"))
    assert len(found) == 3 and not told
    third = of("%q", "%x[i1, i0]", "par(i0: 2000, i1: 64)", "f32[2000, 64]")
    _, told = grouped("%x: f32[64, 2000]", third, *wide(2000, read="%q[i1, i0]"))
    assert told == [FEW.format(""), ACROSS]


@pytest.mark.parametrize(("shared", "gpu", "apart"), [
    (2048, True, False), (2047, True, True), (2048, False, True), (4096, True, False)])  # fmt: skip
def test_points_side_by_side_on_a_gpu(shared, gpu, apart):
    texts = wide(1025, shared)
    _, told = grouped(f"%x: f32[1025, {shared}]", *texts, gpu=gpu)
    assert (told == [ACROSS]) == apart


LINES = [
    ("f32[64, 8]", "i1, i0", True), ("f32[64, 64]", "i0, i1", False),
    ("f32[64, 64]", "i1, 3", False), ("f32[64, 99]", "0, i0 + i1", False),
    ("f32[64, 64]", "0, i0", True), ("tensor<[64, 8] x f32, strides [1, 64]>", "i0, i1", True),
    ("tensor<[1, 64] x f32, strides [1, 1]>", "0, i0", True),
    ("tensor<[64, 1] x f32, strides [1, 1]>", "i0, 0", True),
    ("tensor<[64, 8] x f32, strides [16, 2]>", "i0, i1", False),
    ("tensor<[64, 8] x f32, strides [0, 2]>", "i0, i1", False), ("f32[1]", "0", False),
    ("tensor<[64, 8] x f32>", "i0, i1", False),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "indices", "wanted"), LINES)
def test_runs_along_shared_axis(type_, indices, wanted):
    text = of("%y", f"%x[{indices}]", "par(i0: 8, i1: 8)", "f32[8, 8]")
    (op,) = computes(parsed(f"%x: {expanded(type_)}", text))
    (read,) = op.reads
    assert runs_along_shared_axis(read, 1) is wanted
    if indices == "0, i0 + i1":
        assert runs_along_shared_axis(read, 2)


# -- on a GPU

LOOP = "on a GPU all results of a reduction are shared axes, or each is a loop"
OWN = "on a GPU what a scan makes is known at its own point only"
CUBE = "%x: f32[64, 8, 16], %w: f32[64, 8, 16]"
SUMS = rows("%r", "%x[i0, i1, i2]", "par(i0: 64, i1: 8) red(i2: 16)", "f32[64, 8]")
PLANES = of("%m", "%x[i0, i1, i2]", "par(i0: 64, i1: 8, i2: 16)", "f32[64, 8, 16]")
SCAN = of("%s", "%x[i0, i1, 0]", "par(i0: 64) scan(i1: 8)", "f32[64, 8]", "scan(sum, f32)")
ON_A_GPU = {
    "all results of sums": (SUMS, of("%y", "%r[i0, i1]", "par(i0: 64, i1: 8)", "f32[64, 8]"), None),
    "some results of sums": (
        SUMS, of("%y", "%r[i0, 7 - i1]", "par(i0: 64, i1: 8)", "f32[64, 8]"), LOOP),
    "sums of another plane": (
        PLANES, rows("%y", "%m[i0, 7 - i1, i2]", "par(i0: 64, i1: 8) red(i2: 16)", "f32[64, 8]"),
        LOOP),
    "sums of the same plane": (
        PLANES, rows("%y", "%m[i0, i1, i2]", "par(i0: 64, i1: 8) red(i2: 16)", "f32[64, 8]"), None),
    "maps at other points": (
        PLANES, of("%y", "%m[i0, 7 - i1, i2]", "par(i0: 64, i1: 8, i2: 16)", "f32[64, 8, 16]"),
        None),
    "a scan at its point": (SCAN, of("%y", "%s[i0, i1]", "par(i0: 64, i1: 8)", "f32[64, 8]"), None),
    "a scan at another point": (
        SCAN, of("%y", "%s[i0, 7 - i1]", "par(i0: 64, i1: 8)", "f32[64, 8]"), OWN),
    "a scan at its point of fewer": (
        SCAN, of("%y", "%s[i0, i1]", "par(i0: 64, i1: 7)", "f32[64, 7]"), OWN),
    "a scan of a map at its point": (
        PLANES, of("%y", "%m[i0, i1, i2]", "par(i0: 64, i1: 8) scan(i2: 16)", "f32[64, 8, 16]",
                   "scan(sum, f32)"), None),
    "a scan of another row": (
        PLANES, of("%y", "%m[i0, 7 - i1, 0]", "par(i0: 64) scan(i1: 8)", "f32[64, 8]",
                   "scan(sum, f32)"), OWN),
    "a scan beside a map at another point": (
        "%s, %s2 = loop.compute par(i0: 64) scan(i1: 8) -> map, scan(sum, f32) {\n"
        "%a = loop.read %x[i0, i1, 0] : f32 loop.yield %a, %a } : f32[64, 8], f32[64, 8]\n",
        of("%y", "%s2[i0, 7 - i1]", "par(i0: 64, i1: 8)", "f32[64, 8]"), OWN),
    "a scan of its row": (
        of("%m", "%x[i0, i1, 0]", "par(i0: 64, i1: 8)", "f32[64, 8]"),
        of("%y", "%m[i0, i1]", "par(i0: 64) scan(i1: 8)", "f32[64, 8]", "scan(sum, f32)"), None),
    "a scan at its point and at another": (
        SCAN, of("%y", "%s[i0, i1]", "par(i0: 64, i1: 8)", "f32[64, 8]", "map",
                 "%s[i0, 7 - i1]"), OWN),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_A_GPU)
def test_on_a_gpu(name):
    one, other, why = ON_A_GPU[name]
    found, told = grouped(CUBE, one, other, gpu=True)
    assert told == ([] if why is None else [why])
    assert len(found) == (3 if why is None else 0)
    assert len(grouped(CUBE, one, other)[0]) == 3, "a CPU can"


# -- epilogues, order, groups of one's own


FULL = of("%t", "%x[i0, i1]", "red(i0: 64, i1: 128)", "f32[]", "reduce(sum, f32)")


@pytest.mark.parametrize(("points", "together"), [(1, True), (16, True), (17, False)])
def test_the_end_of_a_full_reduction(points, together):
    """So few points that half of what 32 points keep busy is idle."""
    end = of("%e", "%t[]", f"par(i0: {points})", f"f32[{points}]")
    found, told = grouped(X, FULL, end)
    assert found[:1] == (["group()"] if together else [])
    assert told == ([] if together else [FEW.format("")])


def test_what_is_no_end_of_a_full_reduction():
    few = of("%e", "%x[i0, 0]", "par(i0: 4)", "f32[4]")
    assert not grouped(X, FULL, few)[0], "it reads what the reduction reads"
    assert not grouped(X, few, FULL)[0]
    short = rows(axes="par(i0: 8) red(i1: 128)", type_="f32[8]")
    turned = of("%e", "%r[7 - i0]", "par(i0: 8)", "f32[8]")
    assert grouped(X, short, turned) == ([], [FEW.format("")]), "it has rows"


def test_all_that_ends_a_full_reduction_has_few_points():
    """%z of 400 points is in one group with %y of 4, which reads the sum."""
    large = of("%z", "%w[i0, i1]", "par(i0: 4, i1: 100)", "f32[4, 100]")
    end = of("%y", "%z[i0, 0]", "par(i0: 4)", "f32[4]", "map", "%t[]")
    found, told = grouped(X, FULL, large, end)
    assert found == ["group(i0: 4)", "- par(i0: 4) par(i1: 100) -> map", "- par(i0: 4) -> map"]
    assert told == [FEW.format("")]


def test_what_stands_between():
    made = of("%m", "%v[i0]", "par(i0: 64)", "f32[64]")
    between = """%q = loop.compute par(i0: 64) inits(%v) -> scatter(sum, [_0]) {
      %a = loop.read %m[i0] : f32 %k = loop.read %i[i0] : i64
      loop.yield %a extra(%k) } : f32[64]\n"""
    for more in ((), ("%q[i0]",)):
        reader = of("%y", "%m[i0]", "par(i0: 64)", "f32[64]", "map", *more)
        found, told = grouped(X, made, between, reader)
        assert len(found) == (0 if more else 3)
        why = "something between them depends on the one and is needed by the other"
        assert told == [why] * len(more)


@pytest.mark.parametrize("chosen", [0, 1, 2, 3])
def test_groups_with_the_readers_of_some_computes(chosen):
    """Of two pairs, the one that one of the computes is in."""
    texts = "".join(
        rows(f"%r{k}", f"%{x}[i0, i1]") + of(f"%y{k}", f"%r{k}[i0]", "par(i0: 64)", "f32[64]")
        for k, x in enumerate("xw")
    )
    module = parsed(X, texts)
    context = PassContext()
    context.settled = Target.named("sm_90")
    all_ = computes(module)
    block = next(iter(module.ops)).block
    assert group_with_readers(block, [all_[chosen]], GroupComputes(), context) == 1
    (group,) = [op for op in block.ops if op.name == "loop.group"]
    assert all_[chosen].parent_op is group
    assert group_with_readers(block, [], GroupComputes(), context) == 0


def test_without_fuel_they_stay_apart():
    for fuel in (0, 1):
        module = parsed(X, rows() + of("%y", "%r[i0]", "par(i0: 64)", "f32[64]"))
        told = remarks(ran(module, "group-computes", fuel=fuel))
        assert any("there is no fuel left" in text for text in told) == (fuel == 0)
        assert [op.name for op in next(iter(module.ops)).block.ops].count("loop.compute") == (
            2 if fuel == 0 else 0
        )
