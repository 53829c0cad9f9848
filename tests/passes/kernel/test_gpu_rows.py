"""Which powers of e a kernel of a GPU may leave rough, and which rows it covers by groups."""

from __future__ import annotations

from typing import Any

import pytest

from irc.dialects import loop
from irc.ir.symbols import symbol
from irc.passes.kernel.gpu.odd_rows import Cover, row_group
from irc.passes.kernel.gpu.plan import GpuPlan, plan_for_gpu
from irc.passes.kernel.gpu.rough_powers import rough_powers
from irc.passes.kernel.gpu.rows_ahead import stages_ahead
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.passes.kernel.gpu.summed_powers import summed_powers, walk_together
from irc.passes.kernel.plan.plan import flatten
from irc.target.gpu import GpuFeatures
from tests.passes.loop.texts import parsed

ALIVE: list[Any] = []
READ = "%v = loop.read %x[i, j] : f32\n%e = math.exp %v {nonpositive} : f32\n"
TWO = "%two = arith.constant 2.0 : f32\n"


def planned(body: str, results: str = "", arguments: str = "%x: f32[8, 101]") -> GpuPlan:
    """The plan of the last compute or group of a body; its module lives as long as the tests."""
    module = parsed(arguments, body, results)
    ALIVE.append(module)
    outer = [op for op in module.walk() if isinstance(op, loop.GroupOp | loop.ComputeOp)]
    groups = [op for op in outer if isinstance(op, loop.GroupOp)]
    return plan_for_gpu(flatten((groups or outer)[0]))


def sums(body: str, combiner: str = "sum", element: str = "f32") -> str:
    return (f"%r = loop.compute par(i: 8) red(j: 101) -> reduce({combiner}, {element}) {{\n"
            f"{READ}{body} }} : {element}[8]")  # fmt: skip


def maps(body: str, element: str = "bf16") -> str:
    return f"%r = loop.compute par(i: 8, j: 101) -> map {{\n{READ}{body} }} : {element}[8, 101]"


ROUND = "%h = arith.truncf %w : f32 to bf16\nloop.yield %h"
POWERS = {
    "a sum": (sums("loop.yield %e"), True),
    "a maximum": (sums("loop.yield %e", "max"), False),
    "a sum of products": (sums(f"{TWO}%w = arith.mulf %e, %two : f32\nloop.yield %w"), False),
    "a sum of quotients": (sums(f"{TWO}%w = arith.divf %e, %two : f32\nloop.yield %w"), False),
    "rounded": (maps(f"{ROUND.replace('%w', '%e')}"), True),
    "a rounded product": (maps(f"{TWO}%w = arith.mulf %e, %two : f32\n{ROUND}"), True),
    "a rounded quotient": (maps(f"{TWO}%w = arith.divf %e, %two : f32\n{ROUND}"), True),
    "a divisor": (maps(f"{TWO}%w = arith.divf %two, %e : f32\n{ROUND}"), False),
    "stored": (maps("loop.yield %e", "f32"), False),
    "stored beside another": (
        maps("%h = arith.truncf %e : f32 to bf16\nloop.yield %e, %h", "f32").replace(
            "%r =", "%r, %q =").replace("-> map", "-> map, map") + ", bf16[8, 101]", False),
    "another use": (maps(f"%w = arith.negf %e : f32\n{ROUND}"), False),
    "rounded and more": (
        maps("%h = arith.truncf %e : f32 to bf16\n%w = arith.negf %e : f32\n"
             "%k = arith.truncf %w : f32 to bf16\n%q = arith.addf %h, %k : bf16\nloop.yield %q"),
        False),
}  # fmt: skip


@pytest.mark.parametrize("name", POWERS)
def test_powers_that_may_be_rough(name: str) -> None:
    text, rough = POWERS[name]
    powers = [op for op in rough_powers(planned(text)) if op.name == "math.exp"]
    assert bool(powers) is rough


DIVIDED = f"{TWO}%w = arith.divf %two, %v : f32\n"
QUOTIENTS = {
    "rounded": (maps(DIVIDED + ROUND), True),
    "a rounded product": (maps(f"{DIVIDED}%m = arith.mulf %w, %v : f32\n"
                               + ROUND.replace("%w", "%m")), True),
    "a sum": (sums(f"{DIVIDED}loop.yield %w"), True),
    "a maximum": (sums(f"{DIVIDED}loop.yield %w", "max"), False),
    "stored": (maps(f"{DIVIDED}loop.yield %w", "f32"), False),
    "a divisor": (maps(f"{DIVIDED}%d = arith.divf %v, %w : f32\nloop.yield %d", "f32"), False),
    "of f64": (maps("%x64 = arith.extf %v : f32 to f64\n%w = arith.divf %x64, %x64 : f64\n"
                    "%h = arith.truncf %w : f64 to bf16\nloop.yield %h"), False),
}  # fmt: skip


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_that_may_be_rough(name: str) -> None:
    text, rough = QUOTIENTS[name]
    quotients = [op for op in rough_powers(planned(text)) if op.name == "arith.divf"]
    assert bool(quotients) is rough


ONE = "%o = arith.constant 1.0 : f32\n"
MORE = {
    "1 + tanh, rounded": ("%t = math.tanh %v : f32\n%w = arith.addf %o, %t : f32\n" + ROUND, True),
    "erf + 1, rounded": ("%t = math.erf %v : f32\n%w = arith.addf %t, %o : f32\n" + ROUND, True),
    "1 - tanh": ("%t = math.tanh %v : f32\n%w = arith.subf %o, %t : f32\n" + ROUND, False),
    "1 + sin": ("%t = math.sin %v : f32\n%w = arith.addf %o, %t : f32\n" + ROUND, False),
    "erf + x": ("%t = math.erf %v : f32\n%w = arith.addf %t, %v : f32\n" + ROUND, False),
    "a sigmoid, rounded": ("%w = math.sigmoid %v : f32\n" + ROUND, True),
    "a sigmoid and more": (
        "%t = math.sigmoid %v : f32\n%w = arith.addf %t, %v : f32\n" + ROUND, False),
    "a sigmoid as it is": ("%h = math.sigmoid %v : f32\nloop.yield %h", False),
}


@pytest.mark.parametrize("name", MORE)
def test_sums_with_one_that_may_be_rough(name: str) -> None:
    body, rough = MORE[name]
    element = "bf16" if "truncf" in body else "f32"
    text = (f"%r = loop.compute par(i: 8, j: 101) -> map {{\n%v = loop.read %x[i, j] : f32\n{ONE}"
            f"{body} }} : {element}[8, 101]")  # fmt: skip
    assert bool(rough_powers(planned(text))) is rough


GROUP = """%r, %q = loop.group (i: 8) {
    %m = loop.compute par(i: 8, j: 101) -> map {
      READ loop.yield %e } : f32[8, 101]
    %s = loop.compute par(i: 8) red(j: 101) -> reduce(sum, f32) {
      %a = loop.read %m[i, j] : f32
      loop.yield %a } : f32[8]
    %n = loop.compute par(i: 8) red(j: 101) -> reduce(max, f32) {
      %b = loop.read OTHER[i, j] : f32
      loop.yield %b } : f32[8]
    loop.yield STORED, %n } : TYPE, f32[8]
""".replace("READ", READ)


@pytest.mark.parametrize(
    ("stored", "other", "rough"),
    [("%s", "%x", True), ("%m", "%x", False), ("%s", "%m", False)],
)
def test_powers_that_members_read_may_be_rough(stored: str, other: str, rough: bool) -> None:
    type_ = "f32[8, 101]" if stored == "%m" else "f32[8]"
    text = GROUP.replace("STORED", stored).replace("OTHER", other).replace("TYPE", type_)
    assert bool(rough_powers(planned(text))) is rough


def test_a_cover_fits_where_its_lanes_step_along_groups() -> None:
    none: Any = None
    cover, lane, row = Cover("l", 4, none, none), symbol("l"), symbol("i")
    for offset, fits in (
        (lane, True), (lane + 8, True), (lane + 4 * row, True), (lane + 2, False),
        (lane + row, False), (5 * lane, False), (4 * row, False), (lane * row, False),
    ):  # fmt: skip
        assert cover.fits(offset) is fits, offset


ROWS = """%r, %q = loop.group (i: 8) {
    %m = loop.compute par(i: 8, j: 101) -> map {
      %v = loop.read %x[i, j] : f32
      %e = math.exp %v : f32
      loop.yield %e } : f32[8, 101]
    %s = loop.compute KIND {
      %a = loop.read %x[i, SECOND] : f32
      loop.yield %a } : TYPE
    loop.yield %m, %s } : f32[8, 101], TYPE
"""


@pytest.mark.parametrize(
    ("kind", "second", "type_", "group"),
    [
        ("par(i: 8) red(j: 101) -> reduce(sum, f32)", "j", "f32[8]", 4),
        ("par(i: 8) red(j: 50) -> reduce(sum, f32)", "j", "f32[8]", 1),  # fewer points
        ("par(i: 8) scan(j: 101) -> scan(sum, f32)", "j", "f32[8, 101]", 1),
        ("par(i: 8) red(j: 101) -> reduce(sum, f32)", "100 - j", "f32[8]", 4),  # 2 to 1
    ],
)
def test_rows_that_are_covered_by_groups(kind: str, second: str, type_: str, group: int) -> None:
    text = ROWS.replace("KIND", kind).replace("SECOND", second).replace("TYPE", type_)
    assert row_group(planned(text)) == group


@pytest.mark.parametrize(
    ("points", "element", "group", "stages"),
    [
        (30523, "f32", 4, 2),  # a tile of 128 KB
        (30523, "bf16", 8, 3),
        (16, "f32", 1, 3),
        (30523, "bf16", 1, 1),  # moved by 2 bytes
    ],
)
def test_how_many_rows_are_read_ahead(points: int, element: str, group: int, stages: int) -> None:
    """As many as shared memory holds, where threads move 16 bytes at once."""
    rows = f"{element}[8, {points}]"
    plan = planned(f"""%r = loop.group (i: 8) {{
        %s = loop.compute par(i: 8) red(j: {points}) -> reduce(max, {element}) {{
          %a = loop.read %x[i, j] : {element}
          loop.yield %a }} : {element}[8]
        %m = loop.compute par(i: 8, j: {points}) -> map {{
          %b = loop.read %x[i, j] : {element}
          %c = loop.read %s[i] : {element}
          %d = arith.subf %b, %c : {element}
          loop.yield %d }} : {rows}
        loop.yield %m }} : {rows}""", arguments=f"%x: {rows}")
    block = 1 << (points - 1).bit_length()
    assert stages_ahead(plan, GpuFeatures.sm_90(), block, group) == stages


SOFTMAX = """%r, %q = loop.group (i: 8) {
    %m = loop.compute par(i: 8) red(j: 101) -> reduce(max, f32) {
      %a = loop.read %x[i, j] : f32
      %b = math.tanh %a : f32
      loop.yield %b } : f32[8]
    %g = loop.compute par(i: 8, j: 101) -> map {
      %a = loop.read %x[i, j] : f32
      %b = math.tanh %a : f32
      %t = loop.read %m[i] : f32
      %d = arith.subf %b, %t : f32
      loop.yield %d } : f32[8, 101]
    %e, %s = loop.compute par(i: 8) red(l: 101) -> map, reduce(sum, f32) {
      %d = loop.read %g[i, l] : f32
      %p = math.exp %d {nonpositive} : f32
      loop.yield %p, %p } : f32[8, 101], f32[8]
    %y = loop.compute par(i: 8, j: 101) -> map {
      %p = loop.read %e[i, j] : f32
      %t = loop.read %s[i] : f32
      %z = arith.divf %p, %t : f32
      loop.yield %z } : f32[8, 101]
    loop.yield %y, STORED } : f32[8, 101], TYPE
"""
OTHERS = {
    "powers below a maximum": ("", "", True),
    "below another maximum": ("math.tanh %a : f32\n      loop", "math.sin %a : f32\n      loop",
                              False),
    "below a minimum": ("reduce(max", "reduce(min", False),
    "below another row's": ("%t = loop.read %m[i]", "%t = loop.read %m[7 - i]", False),
    "of another row": ("%a = loop.read %x[i, j] : f32\n      %b = math.tanh %a : f32\n      %t",
                       "%a = loop.read %x[7 - i, j] : f32\n      %b = math.tanh %a : f32\n      %t",
                       False),
    "in another order": ("loop.read %g[i, l]", "loop.read %g[i, 100 - l]", False),
    "above it": ("arith.subf %b, %t", "arith.subf %t, %b", False),
    "products": ("reduce(sum", "reduce(prod", False),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_sums_of_powers_below_a_rows_maximum(name: str) -> None:
    """Also where maps of the kernel are between, and axes have other names."""
    old, new, found = OTHERS[name]
    text = SOFTMAX.replace("STORED", "%s").replace("TYPE", "f32[8]")
    assert old in text
    plan = planned(text.replace(old, new, 1) if old else text)
    powers = summed_powers(plan)
    assert len(powers) == found
    if found:
        assert powers[0].maximum.attr.combiner == "max" and powers[0].total.output == 1


@pytest.mark.parametrize(("stored", "phases"), [("%s", [0, 1, 0, 2]), ("%e", [0, 1, 1, 2])])
def test_which_sums_are_walked_along_with_their_maxima(stored: str, phases: list[int]) -> None:
    """Not where the powers are stored in the same walk."""
    type_ = "f32[8]" if stored == "%s" else "f32[8, 101]"
    plan = planned(SOFTMAX.replace("STORED", stored).replace("TYPE", type_))
    walk_together(plan)
    assert [m.phase for m in plan.members] == phases


@pytest.mark.parametrize(
    ("rows", "points", "element", "x", "warps", "group"),
    [(131072, 64, "bf16", 32, 4, 1), (32768, 192, "bf16", 16, 8, 1), (8192, 1024, "bf16", 2, 2, 1),
     (4096, 64, "bf16", 16, 1, 1), (131072, 64, "f32", 16, 2, 1), (32768, 197, "bf16", 4, 1, 4),
     (32768, 197, "f32", 4, 1, 1), (8192, 1001, "bf16", 1, 1, 8)],
)  # fmt: skip
def test_how_many_short_rows_a_program_has(
    rows: int, points: int, element: str, x: int, warps: int, group: int
) -> None:
    """A program moves as long as the next one takes to start; no warps share odd rows."""
    type_ = f"{element}[{rows}, {points}]"
    text = f"""%r = loop.group (i: {rows}) {{
      %m = loop.compute par(i: {rows}) red(j: {points}) -> reduce(max, {element}) {{
        %a = loop.read %x[i, j] : {element} loop.yield %a }} : {element}[{rows}]
      %y = loop.compute par(i: {rows}, j: {points}) -> map {{ %b = loop.read %x[i, j] : {element}
        %c = loop.read %m[i] : {element} %d = arith.subf %b, %c : {element} loop.yield %d
      }} : {type_} loop.yield %y }} : {type_}"""
    plan = planned(text, f"%r: {type_}", f"%x: {type_}")
    entries: Any = default_schedule(plan.op, plan).entries.as_dict()
    chosen = tuple(entries[key].value for key in ("x_block", "num_warps", "row_group"))
    assert chosen == (x, warps, group)
