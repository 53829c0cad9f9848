"""Which axes vectors run along, which are tiled, and why a compute is scalar."""

from __future__ import annotations

import copy

import attrs
import pytest
import torch

from irc import parse, run
from irc.dialects.loop.schedule import SCRATCH_BYTES
from irc.ir.passes import PassManager
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.schedule import read_schedule
from irc.passes.kernel.plan.plan import flatten
from irc.passes.kernel.schedule import _choose_axes, _tile_axis, _why_scalar
from irc.pipeline import stages
from irc.runtime import build
from irc.target.cpu import TargetFeatures
from tests.machines import WIDEST
from tests.passes.loop.texts import computes, expanded, parsed, ran, remarks

AVX2 = TargetFeatures.avx2()
ARGUMENTS = "%x: f32[64, 64], %i: i64[64], %v: f32[64], %one: f32[1], %d: f64[64, 64]"


def scheduled(text: str, bits: int = 256, arguments: str = ARGUMENTS, results: str = ""):
    """The schedules of the top-level kernels and of members, and why computes are scalar."""
    module = parsed(arguments, text, results)
    context = ran(module, f"schedule{{vector_bits={bits}}}")
    kernels = [op.attributes["schedule"] for op in module.walk() if "schedule" in op.attributes]
    found = [read_schedule(attribute) for attribute in kernels]
    return found, [t.partition("is not vectorized: ")[2] for t in remarks(context)]


def compute(axes: str, reads: list[str], out: str, type_: str, name: str = "%y",
            element: str = "f32") -> str:  # fmt: skip
    body = "".join(f"%a{k} = loop.read {r} : {element}\n" for k, r in enumerate(reads))
    for k in range(1, len(reads)):
        body += f"%s{k} = arith.addf %{'s' if k > 1 else 'a'}{k - 1}, %a{k} : {element}\n"
    last = f"%s{len(reads) - 1}" if len(reads) > 1 else "%a0"
    return f"{name} = loop.compute {axes} -> {out} {{ {body} loop.yield {last} }} : {type_}\n"


VECTORS = {
    "a map": (compute("par(i0: 64)", ["%v[i0]"], "map", "f32[64]"), "i0", 16),
    "of one point": (compute("par(i0: 1)", ["%one[i0]"], "map", "f32[1]"), "", 1),
    "a sum of one point": (compute("red(i0: 1)", ["%one[i0]"], "reduce(sum, f32)", "f32[]"), "", 1),
    "a sum of rows": (
        compute("par(i0: 64) red(i1: 64)", ["%x[i0, i1]"], "reduce(sum, f32)", "f32[64]"), "i1", 8),
    "a sum of columns": (
        compute("red(i0: 64) par(i1: 64)", ["%x[i0, i1]"], "reduce(sum, f32)", "f32[64]"), "i1", 8),
    "a sum of rows of columns": (
        compute("par(i0: 64) red(i1: 64)", ["%x[i1, i0]"], "reduce(sum, f32)", "f32[64]"), "i0", 8),
    "a scan of rows": (
        compute("par(i0: 64) scan(i1: 64)", ["%x[i0, i1]"], "scan(sum, f32)", "f32[64, 64]"),
        "", 1),
    "a scan of columns": (
        compute("scan(i0: 64) par(i1: 64)", ["%x[i0, i1]"], "scan(sum, f32)", "f32[64, 64]"),
        "i1", 16),
    "a scan alone": (compute("scan(i0: 64)", ["%v[i0]"], "scan(sum, f32)", "f32[64]"), "", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_along_what_vectors_run(name):
    text, axis, lanes = VECTORS[name]
    (found,), _ = scheduled(text)
    assert (found.vector_axis, found.lanes if axis else 1) == (axis, lanes)


SCATTER = """%y = loop.compute par(i0: 64) inits(%v) -> scatter(sum, [_0]) {
  %a = loop.read %v[i0] : f32 %k = loop.read %i[i0] : i64 loop.yield %a extra(%k) } : f32[64]\n"""
SCALAR = {
    "a scatter": (SCATTER, "its scatter combines points in order"),
    "a map beside a scatter": (
        SCATTER.replace("%y =", "%z, %y =").replace("-> scatter", "-> map, scatter").replace(
            "yield %a", "yield %a, %a").replace(": f32[64]\n", ": f32[64], f32[64]\n"),
        "its scatter combines points in order"),
    "one point": (compute("par(i0: 1)", ["%one[i0]"], "map", "f32[1]"), "it has one point"),
    "no axis": (compute("", ["%one[0]"], "map", "f32[]"), "it has one point"),
    "a scan": (compute("scan(i0: 64)", ["%v[i0]"], "scan(sum, f32)", "f32[64]"),
               "i0 is scanned in order"),
    "a scan of one row": (
        compute("par(i0: 1) scan(i1: 64)", ["%x[i0, i1]"], "scan(sum, f32)", "f32[1, 64]"),
        "i1 is scanned in order"),
    "a scan of rows": (
        compute("par(i0: 64) scan(i1: 64)", ["%x[i0, i1]"], "scan(sum, f32)", "f32[64, 64]"),
        "along i0 a point costs 4.1, without 3.0; i1 is scanned in order"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALAR)
def test_why_a_compute_is_scalar(name):
    text, why = SCALAR[name]
    assert scheduled(text)[1] == [why]


def added_at(channels: int, rows: int, last: bool) -> str:
    """Images of `channels` channels, `rows` x `rows`, each element of which is added to the one at
    positions that its row and its column have; `last`: channels are innermost in memory."""
    planes = rows * rows
    steps = (channels * planes, planes, rows, 1)
    if last:
        steps = (channels * planes, 1, rows * channels, channels)
    places = f"tensor<[{rows}] x i64, strides [1]>"
    image = f"tensor<[1, {channels}, {rows}, {rows}] x f32, strides {list(steps)}>"
    sums = f"tensor<[1, {channels}, 48, 48] x f32, strides [{channels * 2304}, 2304, 48, 1]>"
    axes = f"par(i0: 1, i1: {channels}, i2: {rows}, i3: {rows})"
    arguments = f"%g: {image}, %p: {places}, %q: {places}, %z: {sums}"
    return f"""func.func @main({arguments}) -> {sums} attributes {{level = "loop"}} {{
      %y = loop.compute {axes} inits(%z) -> scatter(sum, [i0, i1, _0, _1]) {{
        %a = loop.read %g[i0, i1, i2, i3] : f32
        %j = loop.read %p[i2] : i64
        %r = arith.index_cast %j : i64 to index
        %k = loop.read %q[i3] : i64
        %c = arith.index_cast %k : i64 to index
        loop.yield %a extra(%r, %c) }} : {sums}
      return %y : {sums} }}"""


@pytest.mark.parametrize("rows, last, target, axis, copies", [
    (192, False, "avx512", "", 0), (192, False, "avx2", "", 0),  # planes on one set of the cache
    (192, True, "avx512", "i1", 1), (192, True, "avx2", "i1", 2),  # as many as have room there
])  # fmt: skip
def test_what_is_added_at_positions(
    rows: int, last: bool, target: str, axis: str, copies: int
) -> None:
    """Along channels, all lanes have the same positions; but what lies a multiple of a page apart
    doesn't stay in the cache until its next element is added."""
    module = parse(added_at(64, rows, last))
    ran(module, "schedule", target)
    (op,) = computes(module)
    schedule = read_schedule(op.attributes["schedule"])
    assert schedule.vector_axis == axis
    assert not axis or schedule.copies == copies


def summed(place: str, width: int = 40) -> str:
    """Rows of which each is added, element for element, to a part of one line."""
    arguments = f"%x: f32[3, 32], %z: f32[{width}]"
    return f"""func.func @main({arguments}) -> f32[{width}] attributes {{level = "loop"}} {{
      %y = loop.compute par(i0: 3, i1: 32) inits(%z) -> scatter(sum, [{place}]) {{
        %a = loop.read %x[i0, i1] : f32
        loop.yield %a }} : f32[{width}]
      return %y : f32[{width}] }}"""


@pytest.mark.parametrize("place, width, vectors", [
    ("i0 + i1", 40, True), ("i0*4 + i1", 40, True), ("39 - i0 - i1", 40, False),
    ("i0*2 + floordiv(i1, 2)", 40, False), ("mod(i1, 8)", 40, False), ("i0", 40, False),
    ("i1*3 + i0", 96, False),
])  # fmt: skip
def test_lanes_that_are_added_to_elements_of_their_own(
    place: str, width: int, vectors: bool
) -> None:
    """What the innermost loop adds goes to an element of its own each: alone, or together."""
    module = parse(expanded(summed(place, width)))
    ran(module, "schedule", WIDEST)
    (op,) = computes(module)
    schedule = read_schedule(op.attributes["schedule"])
    assert (schedule.vector_axis == "i1") == vectors
    x, z = torch.randn(3, 32), torch.randn(width)
    expected = run(parse(expanded(summed(place, width))), x, z)[0]
    PassManager.parse(f"{stages('llvm')['loop-to-kernel']}").run(module)
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    torch.testing.assert_close(build(module)(x, z)[0], expected, rtol=0, atol=0)


def test_elements_as_wide_as_a_register():
    text = compute("par(i0: 64)", ["%d[i0, 0]"], "map", "f64[64]", element="f64")
    why = "i0 has too few points or too wide elements"
    sums = compute("red(i0: 64)", ["%d[i0, 0]"], "reduce(sum, f64)", "f64[]", element="f64")
    for made in (text, sums):
        plan = plan_for_cpu(flatten(computes(parsed(ARGUMENTS, made))[0]))
        narrow, wide = copy.copy(AVX2), attrs.evolve(AVX2, vector_bits=128)
        object.__setattr__(narrow, "vector_bits", 64)  # no processor has these
        assert _choose_axes(plan, narrow) == (None, [None])
        axes = [*plan.shared, *plan.members[0].own]
        assert _why_scalar(axes, plan.members[0], narrow) == why
        assert _why_scalar(axes, plan.members[0], wide).startswith("along i0 a point costs")


def group(elements: int) -> str:
    """Rows whose local array has so many elements for each point, read backwards."""
    made = compute(f"par(i0: 64, i1: {elements})", ["%w[i1, i0]"], "map", f"f32[64, {elements}]",
                   "%m")  # fmt: skip
    sums = compute(f"par(i0: 64) red(i1: {elements})", [f"%m[i0, {elements - 1} - i1]"],
                   "reduce(sum, f32)", "f32[64]")  # fmt: skip
    return f"%r = loop.group (i0: 64) {{ {made} {sums} loop.yield %y }} : f32[64]\n"


def test_vectors_of_scratch_fit():
    """Along a shared axis scratch has a vector for each element: 8 lanes of 4 bytes."""
    fits = SCRATCH_BYTES // 4 // 8
    for elements, axis in ((fits, "i0"), (fits + 1, "")):
        found, _ = scheduled(group(elements), arguments=f"%w: f32[{elements}, 64]")
        assert found[0].vector_axis == axis, elements


def tiled(text: str, vector: str, lanes: int, arguments: str = ARGUMENTS) -> str | None:
    module = parsed(arguments, text)
    op = next(op for op in module.walk() if op.name in ("loop.group", "loop.compute"))
    plan = plan_for_cpu(flatten(op))
    (axis,) = [a for a in plan.shared if a.name == vector]
    found = _tile_axis(plan, axis, lanes)
    return None if found is None else found.name


def turned(rows: int = 64, columns: int = 64, read: str = "%t[i1, i0]") -> tuple[str, str]:
    text = compute(f"par(i0: {rows}, i1: {columns})", ["%t2[i0, i1]", read], "map",
                   f"f32[{rows}, {columns}]")  # fmt: skip
    return text, f"%t: f32[{columns}, {rows}], %t2: f32[{rows}, {columns}], %q: f32[999]"


@pytest.mark.parametrize(
    ("rows", "columns", "vector", "lanes", "wanted"),
    [
        (64, 64, "i1", 8, "i0"), (64, 64, "i0", 8, None), (64, 64, "i1", 4, "i0"),
        (64, 64, "i1", 3, None), (64, 8, "i1", 8, "i0"), (64, 7, "i1", 8, None),
        (8, 64, "i1", 8, "i0"), (7, 64, "i1", 8, None),
    ],
)  # fmt: skip
def test_axes_of_tiles(rows, columns, vector, lanes, wanted):
    text, arguments = turned(rows, columns)
    if vector == "i0":
        text = text.replace("%t2[i0, i1]", "%t[i1, i0]")
    assert tiled(text, vector, lanes, arguments) == wanted


def test_the_axis_of_tiles_is_the_one_that_reads_are_contiguous_along():
    text, arguments = turned(read="%t2[i0, i1]")
    assert tiled(text, "i1", 8, arguments) is None, "all reads are"
    assert tiled(text, "i0", 8, arguments) == "i1", "vectors the other way"
    text = compute("par(i0: 16, i1: 16, i2: 16)", ["%t[i0, i2, i1]"], "map", "f32[16, 16, 16]")
    assert tiled(text, "i2", 8, "%t: f32[16, 16, 16]") == "i1"


def test_members_with_axes_of_their_own_have_no_tiles():
    one = "par(i0: 16, i1: 16)", ["%x[i1, i0]"], "map"
    first = compute(*one, "f32[16, 16]", "%m")
    for own, wanted in (("", "i0"), (", i2: 3", None)):
        type_ = "f32[16, 16, 3]" if own else "f32[16, 16]"
        second = compute(f"par(i0: 16, i1: 16{own})", ["%m[i0, i1]"], "map", type_)
        text = f"%r = loop.group (i0: 16, i1: 16) {{ {first} {second} loop.yield %y }} : {type_}\n"
        assert tiled(text, "i1", 8, "%x: f32[16, 16]") == wanted


def test_expanded_types():
    assert expanded("f32[2, 3]") == "tensor<[2, 3] x f32, strides [3, 1]>"
    assert computes(parsed(ARGUMENTS, VECTORS["a map"][0]))
