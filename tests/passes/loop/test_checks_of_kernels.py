"""Which computes are checks, which axes of a kernel are a check's, what is clamped, and why a check
stays a kernel of its own."""

from __future__ import annotations

import pytest

from irc.analysis.loop import relies_on_checks
from irc.analysis.positions import is_clamped, position_along, stays_inside
from irc.ir.symbols import symbol
from irc.passes.loop.attach_checks import (
    AttachChecks,
    CheckPlace,
    _chosen,
    _has_elements,
    _reads_at_point,
    _unify,
    clamp_positions,
    is_check,
)
from irc.target import Target
from tests.passes.loop.texts import computes, heads, parsed, ran, remarks

ARGUMENTS = ("%x: f32[40, 16], %k: i64[8], %l: i64[8, 8], %h: i64[1, 8], %t: i64[2, 8], "
             "%one: i64[1, 1, 8], %b: i1, %n: index")  # fmt: skip


def check(axes: str = "red(i0: 8)", read: str = "%k[i0]", out: str = "reduce(all, i1)",
          type_: str = "i1[]", name: str = "%ok", yields: str = "%c") -> str:  # fmt: skip
    """A compute that says whether indices are below 40."""
    return f"""{name} = loop.compute {axes} -> {out} {{
      %a = loop.read {read} : i64
      %b0 = arith.constant 40 : i64
      %c = arith.cmpi ult, %a, %b0 : i64
      loop.yield {yields} }} : {type_}\n"""


ITEM = "%t0 = graph.item %ok : (i1[]) -> i1\n"
ASSERTED = ITEM + 'sym.assert_value %t0 {error = "IndexError", message = "out of bounds"} : (i1)\n'
MAPS = "map, reduce(all, i1)"
IS_CHECK = {
    "a check": (check() + ASSERTED, True),
    "a check that nothing asserts": (check(), True),
    "beside a map": (
        check(out=MAPS, type_="i64[8], i1[]", name="%m, %ok", yields="%a, %c") + ASSERTED, True),
    "before a map": (check(out="reduce(all, i1), map", type_="i1[], i64[8]", name="%ok, %m",
                           yields="%c, %a") + ASSERTED, True),
    "two checks": (check(out="reduce(all, i1), reduce(all, i1)", type_="i1[], i1[]",
                         name="%ok, %ok2", yields="%c, %c") + ASSERTED, True),
    "a map alone": (check(out="map", type_="i1[8]"), False),
    "of any": (check(out="reduce(any, i1)") + ASSERTED, False),
    "a check and any": (check(out="reduce(all, i1), reduce(any, i1)", type_="i1[], i1[]",
                              name="%ok, %ok2", yields="%c, %c") + ASSERTED, False),
    "a schedule": (check(out="reduce(all, i1) schedule #loop.schedule<cpu>") + ASSERTED, False),
    "along one of two axes": (check("par(i0: 8) red(i1: 8)", "%l[i0, i1]", type_="i1[8]"), False),
    "an axis of another name": (check("red(j: 8)", "%k[j]") + ASSERTED, False),
    "a second axis of another name": (check("red(i0: 8, j: 8)", "%l[i0, j]") + ASSERTED, False),
    "read by a compute": (check() + "%y = loop.compute -> map { %v = loop.read %ok[] : i1\n"
                          "loop.yield %v } : i1[]\n" + ASSERTED, False),
    "a number that is used": (check() + ASSERTED + "%u = graph.from_scalar %t0 : (i1) -> i1[]\n",
                              False),
    "a number that only something else uses": (
        check() + ITEM + "%u = graph.from_scalar %t0 : (i1) -> i1[]\n", False),
}  # fmt: skip


@pytest.mark.parametrize("name", IS_CHECK)
def test_is_check(name):
    text, wanted = IS_CHECK[name]
    assert is_check(computes(parsed(ARGUMENTS, text))[0]) is wanted


def test_what_the_caller_gets_is_no_check():
    assert not is_check(computes(parsed(ARGUMENTS, check(), "%ok: i1[]"))[0])


# -- the axes that a check and a kernel have in common

# The check's axes and read, the kernel's axes and reads: the mapping.
UNIFIED = {
    "one axis": ("red(i0: 8)", "%k[i0]", "par(i0: 8)", ["%k[i0]"], "i0: i0"),
    "another axis": ("red(i0: 8)", "%k[i0]", "par(i0: 16, i1: 8)", ["%k[i1]"], "i0: i1"),
    "two axes": ("red(i0: 8, i1: 8)", "%l[i0, i1]", "par(i0: 8, i1: 8)", ["%l[i0, i1]"],
                 "i0: i0, i1: i1"),
    "turned": ("red(i0: 8, i1: 8)", "%l[i0, i1]", "par(i0: 8, i1: 8)", ["%l[i1, i0]"],
               "i0: i1, i1: i0"),
    "a part": ("red(i0: 8)", "%k[i0]", "par(i0: 4)", ["%k[i0]"], None),
    "a shifted part": ("red(i0: 8)", "%k[i0]", "par(i0: 4)", ["%k[i0 + 4]"], None),
    "an expression of the kernel": ("red(i0: 8)", "%k[i0]", "par(i0: 8)", ["%k[7 - i0]"], None),
    "a number": ("red(i0: 8)", "%k[i0]", "par(i0: 8)", ["%k[3]"], None),
    "an expression of the check": ("red(i0: 8)", "%k[7 - i0]", "par(i0: 8)", ["%k[i0]"], None),
    "a number of the check": ("red(i0: 8)", "%h[0, i0]", "par(i0: 8)", ["%h[0, i0]"], "i0: i0"),
    "one axis twice": ("red(i0: 8)", "%l[i0, i0]", "par(i0: 8, i1: 8)", ["%l[i0, i1]"], "i0: i0"),
    "one of the kernel's twice": (
        "red(i0: 8, i1: 8)", "%l[i0, i1]", "par(i0: 8)", ["%l[i0, i0]"], None),
    "an axis of one point at 0": (
        "red(i0: 1, i1: 8)", "%h[i0, i1]", "par(i0: 8)", ["%h[0, i0]"], "i0: 0, i1: i0"),
    "two axes of one point at 0": (
        "red(i0: 1, i1: 1, i2: 8)", "%one[i0, i1, i2]", "par(i0: 8)", ["%one[0, 0, i0]"],
        "i0: 0, i1: 0, i2: i0"),
    "an axis of two points at 0": (
        "red(i0: 2, i1: 8)", "%t[i0, i1]", "par(i0: 8)", ["%t[0, i0]"], "i1: i0"),
    "only axes of one point": (
        "red(i0: 1, i1: 8)", "%h[i0, i1]", "par(i0: 8)", ["%h[0, 7 - i0]"], None),
    "the longer of two": (
        "red(i0: 8, i1: 8)", "%l[i0, i1]", "par(i0: 8, i1: 8)", ["%l[0, i1]", "%l[i0, i1]"],
        "i0: i0, i1: i1"),
    "the longer, first": (
        "red(i0: 8, i1: 8)", "%l[i0, i1]", "par(i0: 8, i1: 8)", ["%l[i0, i1]", "%l[0, i1]"],
        "i0: i0, i1: i1"),
    "the first of two as long": (
        "red(i0: 8)", "%k[i0]", "par(i0: 8, i1: 8)", ["%k[i1]", "%k[i0]"], "i0: i1"),
    "another array": ("red(i0: 8)", "%k[i0]", "par(i0: 1, i1: 8)", ["%h[0, i1]"], None),
}  # fmt: skip


@pytest.mark.parametrize("name", UNIFIED)
def test_which_axes_a_check_and_a_kernel_share(name):
    axes, read, others, reads, wanted = UNIFIED[name]
    body = "".join(f"%v{n} = loop.read {r} : i64\n" for n, r in enumerate(reads))
    for n in range(1, len(reads)):
        body += f"%w{n} = arith.addi %v{n}, %{'w' if n > 1 else 'v'}{n - 1} : i64\n"
    last = f"%w{len(reads) - 1}" if len(reads) > 1 else "%v0"
    sizes = ", ".join(part.rpartition(": ")[2] for part in others[4:-1].split(", "))
    kernel = f"%y = loop.compute {others} -> map {{ {body} loop.yield {last} }} : i64[{sizes}]\n"
    one, other = computes(parsed(ARGUMENTS, check(axes, read) + kernel))
    found = _unify(one, other)
    shown = None if found is None else ", ".join(f"{k}: {v}" for k, v in found.items())
    assert shown == wanted


def test_a_size_is_no_axis():
    """A check that reads at a size, and a kernel that reads there."""
    arguments = "%s: tensor<[s0] x f32, strides [1]>, %l: tensor<[99, 8] x i64, strides [8, 1]>"
    bind = '''%n = sym.bind_size %s {dim = 0 : i64, hint = 5 : i64, minimum = 2 : i64,
      maximum = 9 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index\n'''
    kernel = "%y = loop.compute par(i0: 8) -> map { %v = loop.read %l[s0, i0] : i64\n"
    kernel += "loop.yield %v } : i64[8]\n"
    one, other = computes(parsed(arguments, bind + check(read="%l[s0, i0]") + kernel))
    assert _unify(one, other) == {"i0": symbol("i0")}


def test_what_a_check_gives_is_read_by_its_axes():
    text = check("red(i0: 8, i1: 8)", "%l[i0, i1]", MAPS, "i64[8, 8], i1[]", "%m, %ok", "%a, %c")
    text += """%y = loop.compute par(i0: 8, i1: 8) -> map { %v = loop.read %m[i1, i0] : i64
      loop.yield %v } : i64[8, 8]\n"""
    one, other = computes(parsed(ARGUMENTS, text))
    assert _unify(one, other) == {"i0": symbol("i1"), "i1": symbol("i0")}


@pytest.mark.parametrize(
    ("reads", "merged", "shared", "fits"),
    [
        (["%m[i0, i1]"], True, 2, True), (["%m[i0, i1]"], False, 1, True),
        (["%m[i0, 7 - i1]"], True, 2, False), (["%m[i0, 7 - i1]"], False, 1, True),
        (["%m[7 - i0, i1]"], False, 1, False), (["%m[i0, i1] (where %b)"], True, 2, False),
        (["%m[i0, i1] (where %b)"], False, 1, True),
        (["%m[i0, i1]", "%m[i0, 7 - i1]"], True, 2, False),
        (["%l[i0, 7 - i1]"], True, 2, True), (["%l[7 - i0, 0]", "%m[i0, i1]"], True, 2, True),
        (["%l[7 - i0, 0]", "%m[7 - i0, i1]"], True, 2, False),
    ],
)  # fmt: skip
def test_what_a_check_gives_must_be_at_hand(reads, merged, shared, fits):
    body = "".join(f"%v{n} = loop.read {r} : i64\n" for n, r in enumerate(reads))
    values = ", ".join(f"%v{n}" for n in range(len(reads)))
    types, maps = ", ".join(["i64[8, 8]"] * len(reads)), ", ".join(["map"] * len(reads))
    names = ", ".join(f"%y{n}" for n in range(len(reads)))
    text = check("red(i0: 8, i1: 8)", "%l[i0, i1]", MAPS, "i64[8, 8], i1[]", "%m, %ok", "%a, %c")
    text += f"{names} = loop.compute par(i0: 8, i1: 8) -> {maps} {{ {body} loop.yield {values} }} "
    one, other = computes(parsed(ARGUMENTS, text + f": {types}\n"))
    found = _reads_at_point(one, other, CheckPlace(other.axis_list[:shared], {}, (), merged))
    assert found == (None if fits else "the kernel reads what it gives at other points")


@pytest.mark.parametrize(("size", "wanted"), [(0, False), (1, True), (2, True),
                                              (symbol("s0"), False)])  # fmt: skip
def test_sizes_that_have_an_element(size, wanted):
    assert _has_elements(size) is wanted


# -- positions that are data


def reading(made: str, indices: str = "%s, i0") -> tuple:
    """The read of %x in a compute whose body makes %q, a position, and more."""
    text = f"""%y = loop.compute par(i0: 8) -> map {{
      %d = loop.read %k[i0] : i64
      %q = arith.index_cast %d : i64 to index
      %other = arith.addi %q, %q : index
      %zero = arith.constant 0 : index
      %n40 = arith.constant 40 : index
      {made}
      %v = loop.read %x[{indices}] : f32 loop.yield %v }} : f32[8]\n"""
    module = parsed(ARGUMENTS, text)
    (op,) = computes(module)
    return op, op.yield_op.values[0].defining_op, module


POSITIONS = [
    ("%q, i0", 0, "q"), ("%q, i0", 1, None), ("3, %q", 1, "q"), ("%q, %other", 1, "other"),
    ("%other, %q", 1, "q"), ("%q + 1, i0", 0, None), ("%q + %other, i0", 0, None),
    ("%d, i0", 0, None), ("i0, i0", 0, None),
]  # fmt: skip


@pytest.mark.parametrize(("indices", "dim", "wanted"), POSITIONS)
def test_the_value_that_is_an_index(indices, dim, wanted):
    _, read, module = reading("", indices)
    found = position_along(read, dim)
    assert (None if found is None else found.name_hint) == wanted, module


CLAMP = """%ge = arith.cmpi sge, %q, %zero : index
  %lt = arith.cmpi slt, %q, %n40 : index
  %in = arith.andi %ge, %lt : i1
  %s = arith.select %in, %q, %zero : index
"""
NOT_CLAMPED = {
    "a position": (CLAMP, "%q, i0"),
    "an expression": (CLAMP, "%s + 1, i0"),
    "data of 64 bits": (CLAMP, "%d, i0"),
    "another operation": (CLAMP.replace("arith.select %in, %q, %zero", "arith.addi %q, %zero"), ""),
    "a condition from outside": (CLAMP.replace("select %in", "select %b"), ""),
    "a condition of one": (CLAMP.replace("select %in", "select %lt"), ""),
    "either": (CLAMP.replace("andi", "ori"), ""),
    "both from outside": (CLAMP.replace("andi %ge, %lt", "andi %b, %b"), ""),
    "the upper one from outside": (CLAMP.replace("andi %ge, %lt", "andi %ge, %b"), ""),
    "another upper condition": (CLAMP.replace("slt, %q, %n40 : index", "slt, %q, %n40 : index\n"
                                "%more = arith.ori %lt, %b : i1").replace("%ge, %lt", "%ge, %more"),
                                ""),
    "no lower one": (CLAMP.replace("andi %ge, %lt", "andi %lt, %lt"), ""),
    "no upper one": (CLAMP.replace("andi %ge, %lt", "andi %ge, %ge"), ""),
    "one more": (CLAMP.replace("slt", "sle"), ""),
    "one less": (CLAMP.replace("sge", "sgt"), ""),
    "from 1 on": (CLAMP.replace("sge, %q, %zero", "sge, %q, %one0").replace(
        "%ge =", "%one0 = arith.constant 1 : index\n%ge ="), ""),
    "another size": (CLAMP.replace("%n40", "%n41").replace(
        "%lt =", "%n41 = arith.constant 41 : index\n%lt ="), ""),
    "a size that is data": (CLAMP.replace("%n40", "%other"), ""),
    "a size from outside": (CLAMP.replace("%n40", "%n"), ""),
    "another upper value": (CLAMP.replace("slt, %q", "slt, %other"), ""),
    "another lower value": (CLAMP.replace("sge, %q", "sge, %other"), ""),
    "another value": (CLAMP.replace("%in, %q", "%in, %other"), ""),
    "else data": (CLAMP.replace("%in, %q, %zero", "%in, %q, %other"), ""),
    "else 40": (CLAMP.replace("%in, %q, %zero", "%in, %q, %n40"), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_CLAMPED)
def test_what_is_not_clamped(name):
    made, indices = NOT_CLAMPED[name]
    compute, read, _ = reading(made, indices or "%s, i0")
    assert not is_clamped(read, 0, 40)
    assert not stays_inside(read) and relies_on_checks(compute)


def test_what_is_clamped_is_not_clamped_again():
    compute, read, _ = reading(CLAMP)
    assert is_clamped(read, 0, 40) and stays_inside(read) and not relies_on_checks(compute)
    assert not is_clamped(read, 0, 39) and not is_clamped(read, 1, 16)
    before = len(compute.block)
    clamp_positions(compute)
    assert len(compute.block) <= before
    compute, _, _ = reading("", "%q, i0")
    clamp_positions(compute)
    (read,) = [r for r in compute.reads if r.positions]
    assert is_clamped(read, 0, 40)
    made = list(compute.block.ops)
    clamp_positions(compute)
    assert list(compute.block.ops) == made


# -- why a check stays a kernel of its own

KERNEL = """%y = loop.compute par(i0: 8, i1: 16) -> map {{ %d = loop.read %k[{0}] : i64
  %e = arith.index_cast %d : i64 to index
  %f = loop.read %x[%e, i1] : f32 loop.yield %f }} : f32[8, 16]\n"""
MEMBER = KERNEL.replace("%y =", "%y0 =").format("i0")
GROUP = "%y = loop.group (i0: 8) {{ {} loop.yield %y0 }} : f32[8, 16]\n"
USE = "%u = loop.compute par(i0: 8) -> map { %v = loop.read %q[i0] : f32 loop.yield %v } : f32[8]\n"
STAYS = {
    "a kernel at its point": (KERNEL.format("i0"), None),
    "a group at its point": (GROUP.format(MEMBER), None),
    "no kernel": ("", "'func.return' must come after its assertion"),
    "a kernel of something else": (
        "%y = loop.compute par(i0: 8) -> map { %v = loop.read %x[i0, 0] : f32 loop.yield %v } "
        ": f32[8]\n", "'func.return' must come after its assertion"),
    "at other points": (KERNEL.format("7 - i0"),
                        "the kernel does not read it at the points of its own axes"),
    "a schedule": (KERNEL.format("i0").replace("map {", "map schedule #loop.schedule<cpu> {"),
                   "the kernel is scheduled already"),
    "other names": (KERNEL.format("i0").replace("i1", "j"),
                    "the kernel's axes have names of their own"),
    "groups in a group": (GROUP.format("%y0 = loop.group (i0: 8) { " + MEMBER.replace(
        "%y0", "%z0") + " loop.yield %z0 } : f32[8, 16]"), "the kernel holds groups"),
    "a scan": (KERNEL.format("i0").replace("i0: 8, i1: 16) -> map", "i0: 8) scan(i1: 16) -> "
               "scan(sum, f32)"), "the kernel scatters or scans"),
    "short rows": (KERNEL.format("i0").replace("i1: 16", "i1: 15").replace("[8, 16]", "[8, 15]"),
                   "the kernel has no rows that are long enough and as many as threads want"),
    "an assertion that something else needs first": (
        "%z = loop.compute par(i0: 8) -> map { %d = loop.read %x[i0, 0] : f32\n"
        "%e = arith.fptosi %d : f32 to i64 %f = arith.index_cast %e : i64 to index\n"
        "%v = loop.read %x[%f, 0] : f32 loop.yield %v } : f32[8]\n" + KERNEL.format("i0"),
        "something else reads at positions that are data first"),
    "a reduction along the axis": (
        "%y = loop.compute red(i0: 8) par(i1: 16) -> reduce(sum, f32) {"
        + KERNEL.format("i0").partition("{")[2].replace("[8, 16]", "[16]"),
        "the kernel combines along its axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_why_a_check_stays(name):
    kernel, wanted = STAYS[name]
    module = parsed(ARGUMENTS, check() + ASSERTED + kernel)
    context = ran(module, "attach-checks")
    told = [t.partition("is a kernel of its own: ")[2] for t in remarks(context)]
    assert told == ([] if wanted is None else [wanted]), heads(module)
    assert context.statistics["attach-checks", "checks in kernels"] == (wanted is None)


BETWEEN = {
    "a view of something else": (
        "%b9 = layout.view %x {offset = #sym<0>} : (f32[40, 16]) -> f32[40, 16]\n", None),
    "a view of what it gives": (
        "%b9 = layout.view %m {offset = #sym<0>} : (i64[8]) -> i64[8]\n",
        "'layout.view' must come after its assertion"),
    "a size that is bound": (
        """%b9 = sym.bind_size %s {dim = 0 : i64, hint = 5 : i64, minimum = 2 : i64,
          maximum = 9 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index\n""",
        "'sym.bind_size' must come after its assertion"),
    "a write": ("graph.update_input %x {argument = 0 : i64} : (f32[40, 16])\n",
                "'graph.update_input' must come after its assertion"),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between_a_check_and_its_kernel(name):
    between, why = BETWEEN[name]
    text = check(out=MAPS, type_="i64[8], i1[]", name="%m, %ok", yields="%a, %c") + ASSERTED
    more = ", %s: tensor<[s0] x f32, strides [1]>" if "bind" in between else ""
    module = parsed(ARGUMENTS + more, text + between + KERNEL.format("i0"))
    told = remarks(ran(module, "attach-checks"))
    assert [t.partition("own: ")[2] for t in told] == ([] if why is None else [why])


def test_a_scan_beside_a_map_and_an_array_without_elements():
    scan = """%y, %y2 = loop.compute par(i0: 8) scan(i1: 16) -> map, scan(sum, f32) {
      %d = loop.read %k[i0] : i64 %e = arith.index_cast %d : i64 to index
      %f = loop.read %x[%e, i1] : f32 loop.yield %f, %f } : f32[8, 16], f32[8, 16]\n"""
    empty = KERNEL.format("i0").replace("%x[", "%z[")
    other = """%y = loop.compute par(i0: 8, i1: 16) -> map { %d = loop.read %m[7 - i0] : i64
      %g = loop.read %k[i0] : i64 %e = arith.index_cast %g : i64 to index
      %w = arith.sitofp %d : i64 to f32 %f = loop.read %x[%e, i1] : f32
      %v = arith.addf %f, %w : f32 loop.yield %v } : f32[8, 16]\n"""
    for kernel, why in (
        (scan, "the kernel scatters or scans"),
        (empty, "what is read may have no element at all"),
        (other, "the kernel reads what it gives at other points"),
    ):
        text = check(out=MAPS, type_="i64[8], i1[]", name="%m, %ok", yields="%a, %c") + ASSERTED
        module = parsed(ARGUMENTS + ", %z: f32[0, 16]", text + kernel)
        (told,) = remarks(ran(module, "attach-checks"))
        assert told.partition("own: ")[2] == why


ROWS = "the kernel has no rows that are long enough and as many as threads want"
RED = "the kernel combines along its axes"
OTHER = "an array that it gives has other axes than the kernel"
# The check's axes, the kernel's (in parentheses: a group's), what is unified: how many axes are
# shared, the mapping, the check's further axes, and whether both are one compute; or why not.
CHOSEN = [
    ("i0: 8", "par(i0: 8)", "i0 i0", (1, "i0 i0", "", True)),
    ("i0: 8", "(i0: 8)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 8", "par(i0: 8, i1: 16)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 8, i1: 16", "par(i0: 8, i1: 16)", "i0 i0, i1 i1", (2, "i0 i0, i1 i1", "", True)),
    ("i0: 8, i1: 16", "par(i0: 8) red(i1: 16)", "i0 i0, i1 i1", (2, "i0 i0, i1 i1", "", True)),
    ("i0: 8, i1: 4", "(i0: 8)", "i0 i0", (1, "i0 i0", "i1", False)),
    ("i0: 8, i1: 4", "par(i0: 8)", "i0 i0", ROWS),
    ("i0: 8", "(i0: 16, i1: 8)", "i0 i1", (2, "i0 i1", "", False)),
    ("i0: 1, i1: 16", "(i0: 8, i1: 16)", "i0 0, i1 i1", (2, "i0 0, i1 i1", "", False)),
    ("i0: 1, i1: 16", "(i0: 1, i1: 16)", "i0 0, i1 i1", (2, "i0 i0, i1 i1", "", False)),
    ("i0: 8, i1: 8", "par(i0: 8, i1: 8)", "i0 i1, i1 i0", ROWS),
    ("i0: 8, i1: 8", "par(i0: 8) red(i1: 8)", "i0 i1, i1 i0", RED),
    ("i0: 8, i1: 8", "(i0: 8, i1: 8, i2: 8)", "i0 i0, i1 i2", (3, "i0 i0, i1 i2", "", False)),
    ("i0: 8, i1: 1", "par(i0: 8, i1: 1)", "i0 i0", (2, "i0 i0, i1 i1", "", True)),
    ("i0: 8, i1: 4", "(i0: 8, i1: 4)", "i0 i0", (2, "i0 i0", "i1", False)),
    ("i0: 8", "(i0: 8192, i1: 8)", "i0 i1", (2, "i0 i1", "", False)),
    ("i0: 8", "(i0: 8193, i1: 8)", "i0 i1",
     "the kernel would check each index again, 65544 times in all"),
    ("i0: 99999", "par(i0: 99999, i1: 16)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 31", "par(i0: 31, i1: 2000)", "i0 i0", ROWS),
    ("i0: 31", "par(i0: 31, i1: 1057)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 32", "par(i0: 32, i1: 2000)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 16", "par(i0: 16, i1: 2048)", "i0 i0", (1, "i0 i0", "", False)),
    ("i0: 16", "par(i0: 16, i1: 2049)", "i0 i0", ROWS),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "kernel", "unified", "wanted"), CHOSEN)
@pytest.mark.parametrize("gives", [False, True], ids=["", "beside a map"])
@pytest.mark.parametrize("target", ["avx2", "sm_90"])
def test_where_in_a_kernel_a_check_is(axes, kernel, unified, wanted, gives, target):
    """Beside a map, over the kernel's leading axes only."""
    sizes = ", ".join(part.partition(": ")[2] for part in axes.split(", "))
    made = check(f"red({axes})", "%k[0]", MAPS, f"i64[{sizes}], i1[]", "%m, %ok", "%a, %c")
    if not gives:
        made = check(f"red({axes})", "%k[0]")
    out = "reduce(sum, i64)" if "red" in kernel else "map"
    kept = [p.partition(": ")[2].rstrip(")") for p in kernel.replace(") red", ", red").split(", ")
            if "red" not in p]  # fmt: skip
    space = kernel if kernel.startswith("par") else f"par{kernel}"
    text = f"%y = loop.compute {space} -> {out} {{ %v = loop.read %k[0] : i64 loop.yield %v }}"
    text += f" : i64[{', '.join(kept)}]\n"
    if space != kernel:
        text = f"%r = loop.group {kernel} {{ {text} loop.yield %y }} : i64[{', '.join(kept)}]\n"
    op, *_ = ops = list(next(iter(parsed(ARGUMENTS, made + text).ops)).block.ops)
    pairs = (pair.split() for pair in unified.split(", "))
    mapping = {a: 0 if b == "0" else symbol(b) for a, b in pairs}
    found = _chosen(op, ops[1], dict(mapping), AttachChecks(), Target.named(target))
    names = [part.partition(":")[0] for part in axes.split(", ")]
    leads = unified == "i0 i0" and len(names) == 1
    if isinstance(wanted, tuple):
        leads = wanted[1] == ", ".join(f"{name} {name}" for name in names)
    if gives and not leads:
        assert found == OTHER
    elif isinstance(wanted, str):
        assert found == wanted
    else:
        shown = ", ".join(f"{k} {v}" for k, v in found.mapping.items())
        own = " ".join(a.name for a in found.own)
        assert (len(found.shared), shown, own, found.merged) == wanted
