"""Which reductions are split, along which axes and into how many parts, and why others are not."""

from __future__ import annotations

import pytest

from irc.passes.loop.split_reductions import (
    SplitReductions,
    _contiguous,
    _defined_in,
    _why_whole,
)
from irc.target import Target
from tests.passes.loop.texts import computes, expanded, heads, parsed, ran, remarks

AVX2 = Target.named("avx2")
ARGUMENTS = "%x: f32[8, 16], %v: f32[16], %init: f32[4], %k: i64[4], %s: f32[]"


def compute(axes: str, read: str = "%s[]", out: str = "reduce(sum, f32)", type_: str = "f32[]",
            name: str = "%y", values: int = 1, extra: str = "") -> str:  # fmt: skip
    return f"""{name} = loop.compute {axes} -> {out} {{ %a = loop.read {read} : f32
      %n = loop.read %k[0] : i64
      loop.yield {", ".join(["%a"] * values)}{extra} }} : {type_}\n"""


def only(text: str, arguments: str = ARGUMENTS):
    return computes(parsed(arguments, text))[0]


WHOLE = {
    "a sum": (compute("red(i0: 8)"), None),
    "a sum beside a map": (compute("red(i0: 8)", out="map, reduce(sum, f32)",
                                   type_="f32[8], f32[]", name="%y, %z", values=2), None),
    "a map": (compute("par(i0: 8)", out="map", type_="f32[8]"), "it reduces nothing"),
    "a position": (compute("red(i0: 8)", out="reduce(argmax, f32)", type_="i64[]"),
                   "parts of argmax don't combine by it"),
    "a position beside a sum": (
        compute("red(i0: 8)", out="reduce(sum, f32), reduce(argmin, f32)", type_="f32[], i64[]",
                name="%y, %z", values=2), "parts of argmin don't combine by it"),
    "a scan": (compute("scan(i0: 8)", out="scan(sum, f32)", type_="f32[8]"),
               "a scan is computed beside it"),
    "a scan beside a sum": (
        compute("red(i0: 4) scan(i1: 8)", out="reduce(sum, f32), scan(sum, f32)",
                type_="f32[8], f32[4, 8]", name="%y, %z", values=2),
        "a scan is computed beside it"),
    "a scatter beside a sum": (
        compute("red(i0: 8) inits(%init)", out="reduce(sum, f32), scatter(sum, [_0])",
                type_="f32[], f32[4]", name="%y, %z", values=2, extra=" extra(%n)"),
        "a scatter is computed beside it"),
    "a schedule": (compute("red(i0: 8)", out="reduce(sum, f32) schedule #loop.schedule<cpu>"),
                   "it has a schedule"),
    "a name": (compute("red(j: 8)"), "its axes have names of their own"),
    "the second name": (compute("red(i0: 8, j: 8)"), "its axes have names of their own"),
}  # fmt: skip
for _combiner, _type in [("prod", "f32"), ("min", "f32"), ("max", "f32"), ("any", "i1"),
                         ("all", "i1"), ("xor", "i64")]:  # fmt: skip
    WHOLE[_combiner] = (compute("red(i0: 8)", out=f"reduce({_combiner}, {_type})",
                                type_=f"{_type}[]"), None)  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_what_can_be_split(name):
    text, wanted = WHOLE[name]
    op = only(text)
    assert _why_whole(op, op, AVX2) == wanted
    context = ran(op.parent_op.parent_op, "split-reductions")
    told = remarks(context)
    if wanted == "it reduces nothing" or name in ("a scan",):
        assert not told
    elif wanted is None:
        assert told == ["'loop.compute': is not split: 8 points are few (min_points=32768)"]
    else:
        assert told == [f"'loop.compute': is not split: {wanted}"]


def test_what_reads_what_its_group_makes():
    """Of two sums in one group the one of an argument can be split."""
    members = compute("red(i0: 40000)") + compute("red(i0: 40000)", "%y[]", name="%z")
    text = f"%r, %q = loop.group () {{ {members} loop.yield %y, %z }} : f32[], f32[]\n"
    module = parsed(ARGUMENTS, text, "%r: f32[], %q: f32[]")
    first, second = computes(module)
    group = first.parent_op
    assert _why_whole(first, group, AVX2) is None
    assert _why_whole(second, group, AVX2) == "it reads what its group makes"
    read = next(iter(second.reads)).source
    assert _defined_in(read, group) and not _defined_in(read, first)
    assert not _defined_in(next(iter(first.reads)).source, group)
    context = ran(module, "split-reductions")
    assert context.statistics["split-reductions", "split"] == 1
    assert remarks(context) == [
        "'loop.compute': is split into 64 parts of 625 points of i0: 16 us -> 545 ns",
        "'loop.compute': is not split: it reads what its group makes",
    ]
    assert heads(module) == [
        "par(i0: 64) red(i1: 625) -> reduce", "group()", "- red(i0: 64) -> reduce",
        "- red(i0: 40000) -> reduce",
    ]  # fmt: skip


def test_a_text_decides_by_its_target():
    """How many results are few, how many points are many, and into how many parts."""
    for figures, results, count, heads_ in (
        ("parallel = 32", 16, 4096, ["par(i0: 16, i1: 64)"]), ("parallel = 32", 17, 4096, []),
        ("parallel = 8", 4, 16384, ["par(i0: 4, i1: 16)"]), ("parallel = 8", 5, 16384, []),
        ("serial = 80", 1, 80, []), ("serial = 128, parallel = 4", 1, 128, ["par(i0: 1, i1: 8)"]),
        ("serial = 129, parallel = 4", 1, 128, []),
    ):  # fmt: skip
        text = compute(f"par(i0: {results}) red(i1: {count})", type_=f"f32[{results}]")
        module = parsed(ARGUMENTS, text)
        ran(module, "split-reductions", target=f"#irc.target<avx2, {figures}>")
        first = heads(module)[0]
        assert first.startswith(heads_[0].replace(", ", ") par(")) if heads_ else (
            first.startswith("par(i0") and f"i1: {count}" in first), (figures, first)  # fmt: skip


def test_a_group_with_shared_axes_stays():
    member = compute("par(i0: 2) red(i1: 40000)", type_="f32[2]")
    module = parsed(ARGUMENTS, f"%r = loop.group (i0: 2) {{ {member} loop.yield %y }} : f32[2]\n")
    assert not ran(module, "split-reductions").statistics["split-reductions", "split"]


# Axes, parts, (max_parts): the leading axes, or the position, parts and size; None: stays whole.
CHOSEN = [
    ("red(i0: 32, i1: 100)", 64, (0,)), ("red(i0: 31, i1: 100)", 64, None),
    ("red(i0: 32, i1: 32)", 64, (0,)), ("red(i0: 32, i1: 31)", 64, None),
    ("red(i0: 4096, i1: 40)", 64, (0,)), ("red(i0: 4097, i1: 40)", 64, (0, 241, 17)),
    ("red(i0: 4, i1: 8, i2: 100)", 64, (0, 1)), ("red(i0: 33, i1: 2, i2: 100)", 64, (0,)),
    ("par(i0: 3) red(i1: 32, i2: 100)", 64, (1,)),
    ("red(i0: 32) par(i1: 3) red(i2: 100)", 64, (0,)),
    ("red(i0: 32, i1: 1, i2: 31)", 64, None),
    ("red(i0: 128)", 64, (0, 64, 2)), ("red(i0: 127)", 64, None),
    ("red(i0: 2, i1: 128)", 64, (1, 64, 2)), ("red(i0: 5, i1: 5000, i2: 5000)", 64, (1, 40, 125)),
    ("red(i0: 8, i1: 500)", 64, (1, 50, 10)), ("red(i0: 8, i1: 500)", 16, (0,)),
    ("red(i0: 3, i1: 500)", 8, (1, 4, 125)),
    ("red(i0: 129)", 64, (0, 43, 3)), ("red(i0: 160)", 64, (0, 32, 5)),
    ("red(i0: 176)", 64, (0, 44, 4)), ("red(i0: 257)", 64, (0, 64, 5)),
    ("red(i0: 251)", 64, (0, 251, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "parts", "wanted"), CHOSEN)
@pytest.mark.parametrize("beside", [False, True], ids=["", "beside a map"])
def test_which_axes_are_parts(axes, parts, wanted, beside):
    """Beside a map, only leading axes as they are."""
    kept = ["3"] if "par" in axes else []
    text = compute(axes, type_=f"f32[{', '.join(kept)}]")
    if beside:
        space = [p.partition(": ")[2].rstrip(")") for p in axes.replace(") ", "), ").split(", ")]
        text = compute(axes, out="reduce(sum, f32), map", name="%y, %z", values=2,
                       type_=f"f32[{', '.join(kept)}], f32[{', '.join(space)}]")  # fmt: skip
    found = SplitReductions()._choose(only(text), parts, 32)
    if wanted is None or (beside and len(wanted) == 3):
        assert found is None
    elif len(wanted) == 3:
        assert not found.whole and (found.position, found.parts, found.size) == wanted
    else:
        assert found.whole == wanted


@pytest.mark.parametrize(("count", "wanted"), [(257, None), (256, (0, 64, 4))])
def test_parts_of_moments_beside_a_sum_are_equal(count, wanted):
    text = compute(f"red(i0: {count})", out="reduce(moments, f32), reduce(sum, f32)",
                   type_="f32[], f32[], f32[]", name="%y, %q, %z", values=2)  # fmt: skip
    found = SplitReductions()._choose(only(text), 64, 32)
    assert (None if found is None else (found.position, found.parts, found.size)) == wanted


def test_at_most_so_many_leading_parts():
    for limit, wanted in ((100, (0,)), (99, None)):
        op = only(compute("red(i0: 100, i1: 100)"))
        found = SplitReductions(max_parts=limit)._choose(op, 64, 32)
        assert (None if found is None else found.whole) == wanted


def test_what_is_made():
    """A reduction of 40000 points has parts: leading axes, a divisor of an axis, or a ragged end;
    few points, and many results, are not worth it."""
    for axes, type_, wanted in (
        ("red(i0: 40, i1: 1000)", "f32[]",
         ["par(i0: 40) red(i1: 1000) -> reduce", "red(i0: 40) -> reduce"]),
        ("red(i0: 40000)", "f32[]",
         ["par(i0: 64) red(i1: 625) -> reduce", "red(i0: 64) -> reduce"]),
        ("red(i0: 40009)", "f32[]",
         ["par(i0: 64) red(i1: 626) -> reduce", "red(i0: 64) -> reduce"]),
        ("red(i0: 32767)", "f32[]", ["red(i0: 32767) -> reduce"]),
        ("red(i0: 32768)", "f32[]",
         ["par(i0: 64) red(i1: 512) -> reduce", "red(i0: 64) -> reduce"]),
        ("par(i0: 16) red(i1: 4096)", "f32[16]",
         ["par(i0: 16) par(i1: 64) red(i2: 64) -> reduce", "par(i0: 16) red(i1: 64) -> reduce"]),
        ("par(i0: 17) red(i1: 4096)", "f32[17]", ["par(i0: 17) red(i1: 4096) -> reduce"]),
    ):  # fmt: skip
        module = parsed(ARGUMENTS, compute(axes, type_=type_), f"%y: {type_}")
        ran(module, "split-reductions")
        assert heads(module) == wanted


LINES = [
    ("f32[8, 16]", "%x[i0, i1]", "par(i0: 8) red(i1: 16)", False, True),
    ("f32[8, 16]", "%x[i0, i1]", "red(i0: 8) par(i1: 16)", True, False),
    ("tensor<[8, 16] x f32>", "%x[i0, i1]", "par(i0: 8) red(i1: 16)", False, True),
    ("tensor<[8, 16] x f32, strides [1, 8]>", "%x[i0, i1]", "par(i0: 8) red(i1: 16)", True, False),
    ("tensor<[8, 16] x f32, strides [2, 32]>", "%x[i0, i1]", "par(i0: 8) red(i1: 16)", False,
     False),
    ("f32[16]", "%x[i1]", "par(i0: 8) red(i1: 16)", False, False),
    ("f32[8]", "%x[i0]", "par(i0: 8) red(i1: 16)", False, False),
    ("f32[8, 16]", "%x[0, i1*2]", "par(i0: 8) red(i1: 8)", False, False),
    ("f32[8, 4, 4]", "%x[i0, i1, i2]", "par(i0: 8) red(i1: 4, i2: 4)", False, True),
    ("f32[4, 4, 8]", "%x[i1, i2, i0]", "par(i0: 8) red(i1: 4, i2: 4)", True, False),
    ("f32[99]", "%x[i0 + i1]", "par(i0: 8) red(i1: 16)", True, True),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "read", "axes", "par", "red"), LINES)
def test_along_which_axes_elements_lie_adjacent(type_, read, axes, par, red):
    """With reads of less before or behind it, which say nothing."""
    for before, behind in ((False, False), (True, False), (False, True)):
        body = "%a = loop.read %s[] : f32\n" * before + f"%b = loop.read {read} : f32\n"
        body += "%c = loop.read %s[] : f32\n" * behind
        text = f"""%y = loop.compute {axes} -> reduce(sum, f32) {{ {body} loop.yield %b }}
          : f32[8]\n"""
        op = only(text, f"%x: {expanded(type_)}, %s: f32[]") if "par(i0: 8)" in axes else None
        if op is None:
            op = only(text.replace("f32[8]\n", "f32[16]\n"), f"%x: {expanded(type_)}, %s: f32[]")
        assert bool(_contiguous(op, "par", "red")) is par
        assert bool(_contiguous(op, "red", "par")) is red


def test_the_results_come_first_in_the_combination_on_a_gpu():
    for target, results, wanted in (("cpu", 8, "red(i0: 64) par(i1: 8) -> reduce"),
                                    ("gpu", 96, "par(i0: 96) red(i1: 128) -> reduce")):  # fmt: skip
        text = compute(f"red(i0: 8192) par(i1: {results})", "%c[i0, i1]", type_=f"f32[{results}]")
        module = parsed(f"%c: f32[8192, {results}], %k: i64[4]", text)
        ran(module, f"split-reductions{{target={target}}}")
        assert heads(module)[1] == wanted
