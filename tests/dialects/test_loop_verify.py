"""Each rule of the loop dialect's verifier, by a program that breaks it."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify
from tests.dialects.verifying import check

HEAD = """\
func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]>
    attributes {level = "loop"} {
"""
SUM = """\
  %s = loop.compute AXES -> OUT {
    %a = loop.read %x[INDICES] : f32
    loop.yield %a
  } : TYPE
  func.return %x : tensor<[4, 6] x f32, strides [6, 1]>
}
"""
GROUP = """\
  %y = loop.group (i0: 4) {
    %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      loop.yield %a
    } : tensor<[4] x f32, strides [1]>
    %z = loop.compute par(i0: 4, i1: 6) -> map {
      %b = loop.read %s[AT] : f32
      loop.yield %b
    } : tensor<[4, 6] x f32, strides [6, 1]>
    loop.yield STORED
  } : tensor<[4, 6] x f32, strides [6, 1]>
  func.return %y : tensor<[4, 6] x f32, strides [6, 1]>
}
"""


def compute(axes: str, out: str, indices: str, type_: str) -> str:
    body = SUM.replace("AXES", axes).replace("OUT", out).replace("INDICES", indices)
    return HEAD + body.replace("TYPE", type_)


@pytest.mark.parametrize(
    ("axes", "out", "indices", "type_", "error"),
    [
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i, j", "tensor<[4] x f32, strides [1]>", None),
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i, j", "tensor<[6] x f32, strides [1]>",
         r"its axes give \[4\]"),
        ("par(i: 4) red(j: 6)", "map", "i, j", "tensor<[4] x f32, strides [1]>",
         r"its axes give \[4, 6\]"),
        ("par(i: 4) red(i: 6)", "reduce(sum, f32)", "i, i", "tensor<[4] x f32, strides [1]>",
         "two axes have one name"),
        ("scan(i: 4, j: 6)", "scan(sum, f32)", "i, j", "tensor<[4, 6] x f32, strides [6, 1]>",
         "more than one scan axis"),
        ("par(i: 4, j: 6)", "scan(sum, f32)", "i, j", "tensor<[4, 6] x f32, strides [6, 1]>",
         "without a scan axis"),
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i", "tensor<[4] x f32, strides [1]>",
         "1 indices for an array of rank 2"),
    ],
)  # fmt: skip
def test_computes(axes, out, indices, type_, error):
    check(compute(axes, out, indices, type_), error)


@pytest.mark.parametrize(
    ("at", "stored", "error"),
    [
        ("i0", "%z", None),
        ("i0 + 0*i1", "%z", None),
        ("0", "%z", "at another point of the shared axes"),
        ("i1", "%z", "index 0, i1, is 5 at a point of its space; the size is 4"),
        ("i0", "%x", "was not made in it"),
        ("i0", "%s", "stores tensor"),
    ],
)
def test_groups(at, stored, error):
    check(HEAD + GROUP.replace("AT", at).replace("STORED", stored), error)


def test_a_member_has_the_shared_axes():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    check(text.replace("par(i0: 4) red(i1: 6)", "red(i1: 6) par(i0: 4)"), "do not start with")


ONCE = """\
  %y = loop.group (i0: 4) {
    %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      loop.yield %a
    } : tensor<[4] x f32, strides [1]>
    %r = loop.compute AXES -> OUT {
      %a = loop.read SOURCE : f32
      loop.yield %a
    } : tensor<[6] x f32, strides [1]>
    %q = loop.compute par(c: 6) -> map {
      %a = loop.read %r[5 - c] : f32
      loop.yield %a
    } : tensor<[6] x f32, strides [1]>
    %z = loop.compute par(i0: 4, i1: 6) -> map {
      %b = loop.read %q[i1] : f32
      %c = loop.read %s[i0] : f32
      %d = arith.addf %b, %c : f32
      loop.yield %d
    } : tensor<[4, 6] x f32, strides [6, 1]>
    loop.yield %z
  } : tensor<[4, 6] x f32, strides [6, 1]>
  func.return %y : tensor<[4, 6] x f32, strides [6, 1]>
}
"""


@pytest.mark.parametrize(
    ("axes", "out", "source", "error"),
    [
        ("par(c: 6)", "map", "%x[0, c]", None),
        ("par(c: 6) red(d: 2)", "reduce(sum, f32)", "%x[d, c]", "computed once is a map"),
        ("par(c: 6)", "map", "%s[0]", "what is computed once reads what is computed at each point"),
    ],
)
def test_what_a_group_computes_once(axes, out, source, error):
    text = HEAD + ONCE.replace("AXES", axes).replace("OUT", out).replace("SOURCE", source)
    check(text, error)


def test_what_is_computed_once_has_a_known_size():
    check("""
func.func @main(%x: tensor<[s0] x f32, strides [1]>) -> tensor<[9] x f32, strides [1]>
    attributes {level = "loop"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index
  %y = loop.group (i0: 9) {
    %r = loop.compute par(c: s0) -> map {
      %a = loop.read %x[c] : f32
      loop.yield %a
    } : tensor<[s0] x f32, strides [1]>
    %z = loop.compute par(i0: 9) -> map {
      %b = arith.constant 1.0 : f32
      loop.yield %b
    } : tensor<[9] x f32, strides [1]>
    loop.yield %z
  } : tensor<[9] x f32, strides [1]>
  func.return %y : tensor<[9] x f32, strides [1]>
}""", "what is computed once has a size that is known")


def test_what_is_computed_once_is_not_stored():
    text = HEAD + ONCE.replace("AXES", "par(c: 6)").replace("OUT", "map")
    stored, returned = "[4, 6] x f32, strides [6, 1]>\n  func.return", "[6] x f32, strides [1]>"
    text = text.replace("SOURCE", "%x[0, c]")
    text = text.replace(f"{stored} %y", f"{returned}\n  func.return %x")
    check(text.replace("loop.yield %z", "loop.yield %r"), "stores an array that is computed once")


def test_a_member_does_not_combine_into_an_array():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    scattered = "par(i0: 4, i1: 6) inits(%x) -> scatter(sum, [i0, 0])"
    check(text.replace("par(i0: 4, i1: 6) -> map", scattered), "a scatter that combines can't")


ARRAY = "tensor<[4] x f32, strides [1]>"
POINT = f"""\
func.func @main(%x: {ARRAY}, %init: {ARRAY}, %wide: tensor<[5] x f32, strides [1]>) -> {ARRAY}
    attributes {{level = "loop"}} {{
  %y = loop.compute par(i: 4) INITS -> OUT {{
    %n = arith.constant 1 : i64
    %o = arith.constant 1.0 : f32
    %d = arith.constant 1.0 : f64
    %m = arith.constant true
    %a = loop.read %x[i]READ : f32
    loop.yield VALUES
  }} : TYPE
  func.return %x : {ARRAY}
}}
"""
SCATTER = "scatter(sum, [_0])"


def point(out="map", values="%a", read="", inits="", type_=ARRAY):
    text = POINT.replace("OUT", out).replace("VALUES", values).replace("READ", read)
    return text.replace("INITS", inits).replace("TYPE", type_)


@pytest.mark.parametrize(
    ("read", "error"),
    [
        ("", None),
        (" (where %m)", None),
        (" (where %m else %o)", None),
        (" (where %n else %o)", "its mask is i64, not i1"),
        (" (where %n)", "its mask is i64, not i1"),
        (" (else %o)", "has an 'other' and no mask"),
        (" (where %m else %d)", "'other' is f64, the element f32"),
    ],
)
def test_reads(read, error):
    check(point(read=read), error)


@pytest.mark.parametrize(
    ("out", "values", "inits", "type_", "error"),
    [
        (SCATTER, "%a extra(%n)", "inits(%init)", ARRAY, None),
        (SCATTER, "%a extra(%n) masks(%m)", "inits(%init)", ARRAY, None),
        (SCATTER, "%a extra(%o)", "inits(%init)", ARRAY, "scatters at an index of type f32"),
        (SCATTER, "%a extra(%n)", "", ARRAY, "has 0 inits for 1 scatters"),
        (SCATTER, "%a extra(%n)", "inits(%init, %init)", ARRAY, "has 2 inits for 1 scatters"),
        (SCATTER, "%a extra(%n) masks(%m, %m)", "inits(%init)", ARRAY, "2 masks for 1 scatters"),
        (SCATTER, "%a extra(%n)", "inits(%wide)", ARRAY, "scatters tensor<"),
        ("map", "%a, %a", "", ARRAY, "yields 2 values for 1 outputs"),
        ("map, map", "%a", "", ARRAY, "yields 1 values for 2 outputs"),
        ("map, map", "%a, %a", "", ARRAY, "has 1 results, which its outputs don't give"),
        ("map", "%x", "", ARRAY, "yields an array where a scalar belongs"),
        (f"map, {SCATTER}", "%a, %a extra(%n)", "inits(%init)", f"{ARRAY}, {ARRAY}", None),
        (f"map, {SCATTER}", "%a, %a extra(%n)", "inits(%wide)", f"{ARRAY}, {ARRAY}",
         "scatters tensor<"),
        (f"map, {SCATTER}", "%a, %a extra(%n)", "inits(%wide)",
         f"{ARRAY}, tensor<[5] x f32, strides [1]>", None),
    ],
)  # fmt: skip
def test_outputs(out, values, inits, type_, error):
    text = point(out, values, inits=inits, type_=type_)
    count = type_.count("tensor")
    check(text.replace("%y =", "%y, %z =") if count == 2 else text, error)


@pytest.mark.parametrize(
    ("combiner", "accumulator", "fits"),
    [("sum", "f32", True), ("sum", "i32", True), ("any", "i1", True), ("any", "f32", False),
     ("xor", "f64", False), ("all", "i1", True), ("sum", "index", False), ("max", "f32", True)],
)  # fmt: skip
def test_accumulators(combiner, accumulator, fits):
    out = f"reduce({combiner}, {accumulator})"
    text = compute("par(i: 4) red(j: 6)", out, "i, j", "tensor<[4] x f32, strides [1]>")
    check(text, None if fits else f"'{combiner}' of {accumulator}: there is none")


def test_moments_are_of_floats():
    text = compute("par(i: 4) red(j: 6)", "reduce(moments, i32)", "i, j", ", ".join([ARRAY] * 2))
    check(text.replace("%s =", "%s, %t ="), "'moments' of i32: there is none")


def test_members_are_computes_and_what_is_stored_is_typed():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    check(text.replace("loop.yield %z", "%k = arith.constant 1 : i32\nloop.yield %z"),
          "holds 'arith.constant', which is neither compute nor group")  # fmt: skip
    check(text.replace("loop.yield %z", "loop.yield %z, %s"), "stores 2 arrays for 1 results")


def test_shared_axes_are_parallel():
    module = irc.parse(HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z"))
    (group,) = [op for op in module.walk() if op.name == "loop.group"]
    group.attributes["axes"] = group.block.first.attributes["axes"]
    with pytest.raises(InvalidIR, match="shares an axis that is not par"):
        verify(module)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        ("reduce(sum)", "a reduce without the type it accumulates in"),
        ("reduce(all, f32)", "'all' of f32: there is none"),
        ("reduce(max, i64)", None),
        ("scatter(sum)", "has 0 inits for 1 scatters"),
    ],
)
def test_what_an_output_says(out, error):
    check(compute("par(i: 4) red(j: 6)", out, "i, j", ARRAY), error)


def test_scatters_say_where_and_scans_in_what():
    check(point("scatter(sum)", "%a extra(%n)", inits="inits(%init)"), "a scatter without indices")
    rows = "tensor<[4, 6] x f32, strides [6, 1]>"
    for out, error in (("scan(sum, f32)", None), ("scan(sum, index)", "'sum' of index"),
                       ("scan(sum)", "a scan without the type it accumulates in")):  # fmt: skip
        check(compute("par(i: 4) scan(j: 6)", out, "i, j", rows), error)


def test_masks_and_what_stands_elsewhere_are_typed():
    for kind, value, error in (("f32", "1.0", "operand 'mask' is f32"),
                               ("index", "1", "operand 'mask' is index"),
                               ("i8", "1", "its mask is i8, not i1"),
                               ("i1", "1", None)):  # fmt: skip
        constant = f"%q = arith.constant {value} : {kind}\n%m ="
        check(point(read=" (where %q)").replace("%m =", constant), error)


@pytest.mark.parametrize(("kind", "fits"), [("f32", True), ("i32", False)])
def test_sums_of_exponentials_are_of_floats(kind, fits):
    out, types = f"reduce(logsumexp, {kind})", ", ".join([ARRAY] * 2)
    text = compute("par(i: 4) red(j: 6)", out, "i, j", types).replace("%s =", "%s, %t =")
    check(text, None if fits else f"'logsumexp' of {kind}: there is none")


@pytest.mark.parametrize(("kind", "error"), [("index", None), ("i8", None), ("f64", "type f64")])
def test_indices_of_scatters_are_numbers(kind, error):
    value = "1.0" if kind == "f64" else "1"
    text = point(SCATTER, "%a extra(%q)", inits="inits(%init)")
    check(text.replace("%m =", f"%q = arith.constant {value} : {kind}\n%m ="), error)


def test_what_a_group_stores_was_made_in_it():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%q")
    before = """%q = loop.compute par(i0: 4, i1: 6) -> map {
      %b = loop.read %x[i0, i1] : f32
      loop.yield %b
    } : tensor<[4, 6] x f32, strides [6, 1]>
    %y = loop.group"""
    check(text.replace("%y = loop.group", before), "stores an array that was not made in it")
    check(text.replace("%y = loop.group", before).replace("loop.yield %q", "loop.yield %z"), None)


def test_reads_of_what_is_made_elsewhere_may_be_anywhere():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    check(text.replace("loop.read %x[i0, i1]", "loop.read %x[3 - i0, i1]"), None)
    check(text.replace("loop.read %s[i0]", "loop.read %s[3 - i0]"), "at another point")


def test_a_group_may_hold_a_group():
    inner = """%z = loop.group (i0: 4) {
      %w = loop.compute par(i0: 4, i1: 6) -> map {
        %b = loop.read %x[i0, i1] : f32
        loop.yield %b
      } : tensor<[4, 6] x f32, strides [6, 1]>
      loop.yield %w
    } : tensor<[4, 6] x f32, strides [6, 1]>
    loop.yield %z"""
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    begin, end = text.index("    %z = loop.compute"), text.index("    loop.yield %z\n")
    check(text[:begin] + inner + text[end + len("    loop.yield %z"):], None)


@pytest.mark.parametrize("place", ["region", "alone"])
def test_a_read_outside_of_a_compute_has_no_space(place):
    read = "%a = loop.read %x[9, 9] : f32"
    text = f'{HEAD}"t.region"() ({{\n{read}\n"t.end"() : () -> ()\n}}) : () -> ()\n'
    module = irc.parse(text + "func.return %x : tensor<[4, 6] x f32, strides [6, 1]>\n}",
                       allow_unregistered=True)  # fmt: skip
    found = next(op for op in module.walk() if op.name == "loop.read")
    if place == "alone":
        found.detach()
        verify(found)
    else:
        verify(module)
