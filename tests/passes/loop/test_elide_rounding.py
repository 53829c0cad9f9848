"""Which round trips through narrow floats go, which stay: one compute, copies, and groups."""

from __future__ import annotations

import pytest

from tests.passes.loop.texts import body_of, computes, parsed, ran

ARGUMENTS = "%f: f32[4], %d: f64[4], %h: bf16[4], %c: i1[4], %s: bf16"


def compute(body: str, type_: str = "f32", name: str = "%y", out: str = "map") -> str:
    return f"{name} = loop.compute par(i0: 4) -> {out} {{\n{body} }} : {type_}[4]\n"


def elided(body: str, results: str = "") -> list[str]:
    """The operations of each compute after the pass."""
    module = parsed(ARGUMENTS, body, results)
    ran(module, "elide-rounding")
    return [body_of(op) for op in computes(module)]


NARROW = """%a = loop.read %f[i0] : f32
  %n = arith.truncf %a : f32 to bf16
"""
CHOICE = """%k = loop.read %c[i0] : i1
  %b = loop.read %h[i0] : bf16
"""
WIDE = "%w = arith.extf %n : bf16 to f32\n"
ONE = {
    "a round trip": (NARROW + WIDE + "loop.yield %w", "f32", "read yield"),
    "one of which both stay used": (
        NARROW + WIDE + "loop.yield %w, %n", "f32[4], bf16", "read truncf yield"
    ),
    "to a wider type": (
        NARROW + "%w = arith.extf %n : bf16 to f64\nloop.yield %w", "f64", "read truncf extf yield"
    ),
    "from a wider type": (
        "%a = loop.read %d[i0] : f64\n%n = arith.truncf %a : f64 to bf16\n" + WIDE +
        "loop.yield %w", "f32", "read truncf extf yield"
    ),
    "through f32": (
        """%a = loop.read %d[i0] : f64
        %n = arith.truncf %a : f64 to f32
        %w = arith.extf %n : f32 to f64
        loop.yield %w""", "f64", "read truncf extf yield"
    ),
    "through 8 bits": (
        """%a = loop.read %f[i0] : f32
        %n = arith.truncf %a : f32 to f8E4M3FN
        %w = arith.extf %n : f8E4M3FN to f32
        loop.yield %w""", "f32", "read truncf extf yield"
    ),
    "of nothing that was narrowed": (
        "%n = loop.read %h[i0] : bf16\n" + WIDE + "loop.yield %w", "f32", "read extf yield"
    ),
    "of a number from outside": (
        "%w = arith.extf %s : bf16 to f32\nloop.yield %w", "f32", "extf yield"
    ),
    "of other operations on narrow numbers": (
        NARROW + """%m = arith.negf %n : bf16
        %w = arith.extf %m : bf16 to f32
        loop.yield %w""", "f32", "read truncf negf extf yield"
    ),
    "chosen if it holds": (
        NARROW + CHOICE + """%m = arith.select %k, %n, %b : bf16
        %w = arith.extf %m : bf16 to f32
        loop.yield %w""", "f32", "read read read extf select yield"
    ),
    "chosen if it does not": (
        NARROW + CHOICE + """%m = arith.select %k, %b, %n : bf16
        %w = arith.extf %m : bf16 to f32
        loop.yield %w""", "f32", "read read read extf select yield"
    ),
    "of which neither was narrowed": (
        CHOICE + """%m = arith.select %k, %b, %s : bf16
        %w = arith.extf %m : bf16 to f32
        loop.yield %w""", "f32", "read read select extf yield"
    ),
    "one chosen, one from outside": (
        NARROW + """%k = loop.read %c[i0] : i1
        %m = arith.select %k, %s, %n : bf16
        %w = arith.extf %m : bf16 to f32
        loop.yield %w""", "f32", "read read extf select yield"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_in_one_body(name):
    body, type_, wanted = ONE[name]
    out = ", ".join(["map"] * (type_.count(",") + 1))
    text = compute(body, type_, "%y, %z" if "," in type_ else "%y", out)
    assert elided(text, "%y: " + type_.partition("[")[0] + "[4]") == [wanted]


EQUAL = {"oeq": True, "ueq": True, "one": True, "une": True, "olt": False, "ole": False,
         "ord": False, "uno": False}  # fmt: skip


@pytest.mark.parametrize("predicate", EQUAL)
@pytest.mark.parametrize("side", ["%w, %a", "%a, %w", "%w, %w"])
def test_what_is_compared_for_equality_stays_rounded(predicate, side):
    """All uses of a widening that ask whether it equals something else; one that asks whether it
    is NaN does not."""
    body = NARROW + WIDE + f"%e = arith.cmpf {predicate}, {side} : f32\nloop.yield %e"
    stays = EQUAL[predicate] and side != "%w, %w"
    (found,) = elided(compute(body, "i1"), "%y: i1[4]")
    assert found == ("read truncf extf cmpf yield" if stays else "read cmpf yield")


def test_the_other_uses_of_what_is_compared_are_wide():
    body = NARROW + WIDE + """%e = arith.cmpf oeq, %w, %a : f32
      %m = math.exp %w : f32
      %z = arith.select %e, %m, %w : f32
      loop.yield %z"""
    module = parsed(ARGUMENTS, compute(body), "%y: f32[4]")
    assert ran(module, "elide-rounding").statistics["elide-rounding", "elided"] == 1
    (op,) = computes(module)
    assert body_of(op) == "read truncf extf cmpf exp select yield"
    read, _, widened, compared, exp, select, _ = op.block.ops
    assert compared.operands[0] is widened.results[0]
    assert exp.operands[0] is read.results[0] is select.operands[2]


def chain(length: int) -> str:
    """So many choices, one after the other, of %n and a number from elsewhere."""
    made = CHOICE + "%m0 = arith.select %k, %n, %b : bf16\n"
    for k in range(1, length):
        made += f"%m{k} = arith.select %k, %m{k - 1}, %b : bf16\n"
    return made


@pytest.mark.parametrize(("length", "goes"), [(1, True), (14, True), (15, True), (16, False)])
def test_a_rounding_is_looked_for_so_many_choices_deep(length, goes):
    body = NARROW + chain(length) + f"""%w = arith.extf %m{length - 1} : bf16 to f32
      loop.yield %w"""
    (found,) = elided(compute(body), "%y: f32[4]")
    assert ("truncf" not in found) == goes


NUMBERED = NARROW.replace("%a : f32 to", "%a {rounding = 7 : i64} : f32 to")
COPY = compute(NUMBERED + WIDE + "loop.yield %w", name="%copy")
USES = {
    "widened": (WIDE + "loop.yield %w", "f32", True),
    "widened to more": ("%w = arith.extf %n : bf16 to f64\nloop.yield %w", "f64", False),
    "stored": ("loop.yield %n", "bf16", False),
    "stored and widened": (WIDE + "loop.yield %n, %w", "bf16", False),
    "another operation": ("%b = arith.negf %n : bf16\n%w = arith.extf %b : bf16 to f32\n"
                          "loop.yield %w", "f32", False),
    "chosen, then widened": (
        CHOICE + "%m = arith.select %k, %n, %b : bf16\n%w = arith.extf %m : bf16 to f32\n"
        "loop.yield %w", "f32", True),
    "chosen, then stored": (
        CHOICE + "%m = arith.select %k, %n, %b : bf16\nloop.yield %m", "bf16", False),
    "chosen, then stored and widened": (
        CHOICE + "%m = arith.select %k, %n, %b : bf16\n%w = arith.extf %m : bf16 to f32\n"
        "loop.yield %m, %w", "bf16", False),
    "the deepest chain that is looked through": (
        chain(16) + "%w = arith.extf %m15 : bf16 to f32\nloop.yield %w", "f32", True),
    "a deeper chain": (
        chain(17) + "%w = arith.extf %m16 : bf16 to f32\nloop.yield %w", "f32", False),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_a_rounding_goes_only_if_all_copies_may(name):
    """The rounding of another compute, which alone could go, is a copy of one used as named."""
    body, type_, goes = USES[name]
    outs = body.rpartition("yield")[2].count(",") + 1
    text = compute(NUMBERED + body, type_ if outs == 1 else f"{type_}[4], f32",
                   ", ".join(["%y", "%z"][:outs]), ", ".join(["map"] * outs))  # fmt: skip
    found = elided(text + COPY, f"%y: {type_}[4], %copy: f32[4]")
    assert found[1] == ("read yield" if goes else "read truncf extf yield")


# -- between the members of a group

MADE = NUMBERED + "loop.yield %n"


def group(maker: str, *readers: str, stored: str = "%y", type_: str = "bf16", out: str = "map",
          results: str = "%y: f32[4]") -> list[str]:  # fmt: skip
    """A group whose first member makes %m; its members, and a compute with a copy of the rounding
    that is widened."""
    types = "f32[4]" if stored == "%y" else stored.partition(":")[2]
    names = stored.partition(":")[0]
    text = f"%r = loop.group (i0: 4) {{\n{compute(maker, type_, '%m', out)}{''.join(readers)}"
    text += f"loop.yield {names} }} : {types}\n"
    return elided(text + COPY, "%r: f32[4], %copy: f32[4]")


def reader(body: str, name: str = "%y", type_: str = "f32") -> str:
    return compute("%n = loop.read %m[i0] : bf16\n" + body, type_, name)


PLAIN = reader(WIDE + "loop.yield %w")
READERS = {
    "one widens": ([PLAIN], True),
    "two widen": ([PLAIN, reader(WIDE + "%z = math.exp %w : f32\nloop.yield %z", "%z")], True),
    "one of two does not": ([PLAIN, reader("loop.yield %n", "%z", "bf16")], False),
    "one widens to more": (
        [PLAIN, reader("%w = arith.extf %n : bf16 to f64\nloop.yield %w", "%z", "f64")], False),
    "one computes with it": (
        [PLAIN, reader("%b = arith.negf %n : bf16\n%w = arith.extf %b : bf16 to f32\n"
                       "loop.yield %w", "%z")], False),
    "one makes a number of another type of it": (
        [PLAIN, reader("%w = arith.fptosi %n : bf16 to i64\nloop.yield %w", "%z", "i64")], False),
    "one compares it": (
        [PLAIN, reader(WIDE + "%a = loop.read %f[i0] : f32\n%e = arith.cmpf oeq, %a, %w : f32\n"
                       "loop.yield %e", "%z", "i1")], False),
    "one compares and uses it": (
        [reader(WIDE + "%a = loop.read %f[i0] : f32\n%e = arith.cmpf oeq, %a, %w : f32\n"
                "%z = arith.select %e, %a, %w : f32\nloop.yield %z")], False),
    "one reads it where a mask holds, else something else": (
        [compute("%k = loop.read %c[i0] : i1\n%n = loop.read %m[i0] (where %k else %s) : bf16\n"
                 + WIDE + "loop.yield %w")], False),
    "one reads it where a mask holds, else zero": (
        [compute("%k = loop.read %c[i0] : i1\n%n = loop.read %m[i0] (where %k) : bf16\n"
                 + WIDE + "loop.yield %w")], True),
    "one reads it for nothing": (
        [PLAIN, compute("%n = loop.read %m[i0] : bf16\n%a = loop.read %f[i0] : f32\n"
                        "loop.yield %a", name="%z")], False),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_an_array_within_a_group(name):
    """It keeps wide elements where all members that read it widen them, and the rounding may go
    elsewhere only then."""
    readers, goes = READERS[name]
    made, *_, copy = group(MADE, *readers)
    assert made == ("read yield" if goes else "read truncf yield")
    assert copy == ("read yield" if goes else "read truncf extf yield")


def test_an_array_that_is_stored_too_stays_narrow():
    text = f"""%r, %t = loop.group (i0: 4) {{ {compute(MADE, "bf16", "%m")} {PLAIN}
      loop.yield %m, %y }} : bf16[4], f32[4]\n"""
    found = elided(text + COPY, "%r: bf16[4], %t: f32[4], %copy: f32[4]")
    assert found == ["read truncf yield", "read extf yield", "read truncf extf yield"]


def test_one_value_of_two_arrays_stays_if_one_of_them_is_stored():
    for stored in ("%m", "%k"):
        text = f"""%r, %t = loop.group (i0: 4) {{
          {compute(NUMBERED + "loop.yield %n, %n", "bf16[4], bf16", "%m, %k", "map, map")}
          {PLAIN} loop.yield {stored}, %y }} : bf16[4], f32[4]\n"""
        copy = elided(text + COPY, "%r: bf16[4], %t: f32[4], %copy: f32[4]")[-1]
        assert copy == "read truncf extf yield", stored


def test_an_array_of_no_group_stays_narrow():
    found = elided(compute(MADE, "bf16", "%m") + PLAIN + COPY, "%y: f32[4], %copy: f32[4]")
    assert found == ["read truncf yield", "read extf yield", "read truncf extf yield"]


def test_a_local_array_whose_element_has_another_use_stays_narrow():
    maker = NUMBERED + "%b = arith.negf %n : bf16\n%v = arith.extf %b : bf16 to f32\n"
    text = f"""%r, %t = loop.group (i0: 4) {{
      {compute(maker + "loop.yield %n, %v", "bf16[4], f32", "%m, %k", "map, map")} {PLAIN}
      loop.yield %y, %k }} : f32[4], f32[4]\n"""
    found = elided(text + COPY, "%r: f32[4], %t: f32[4], %copy: f32[4]")
    assert found[1:] == ["read extf yield", "read truncf extf yield"]


def test_a_local_array_of_choices_stays_narrow():
    """It would have to be the choice among wide numbers."""
    choice = NUMBERED + CHOICE + "%m = arith.select %k, %n, %b : bf16\nloop.yield %m"
    found = group(choice, PLAIN)
    assert found[1:] == ["read extf yield", "read truncf extf yield"]


def test_what_a_reduction_combines_stays_narrow():
    """The array that comes of it is no map, whoever widens its elements."""
    member = f"""%m = loop.compute par(i0: 4) red(i1: 4) -> reduce(max, bf16) {{
      {NUMBERED} loop.yield %n }} : bf16[4]\n"""
    text = f"%r = loop.group (i0: 4) {{ {member} {PLAIN} loop.yield %y }} : f32[4]\n"
    found = elided(text + COPY, "%r: f32[4], %copy: f32[4]")
    assert found == ["read truncf yield", "read extf yield", "read truncf extf yield"]


def test_an_array_of_numbers_that_were_narrow_stays():
    """What a member yields without having narrowed it, whoever widens it."""
    for maker in ("%n = loop.read %h[i0] : bf16\nloop.yield %n", "loop.yield %s"):
        made, member, _ = group(maker, PLAIN)
        assert made.endswith("yield") and member == "read extf yield"


def test_statistics_and_numbers_of_roundings():
    module = parsed(ARGUMENTS, compute(NUMBERED + WIDE + "loop.yield %w") +
                    compute(NUMBERED + "loop.yield %n", "bf16", "%z"),
                    "%y: f32[4], %z: bf16[4]")  # fmt: skip
    context = ran(module, "elide-rounding")
    assert context.statistics["elide-rounding", "elided"] == 0
    assert not any("rounding" in op.attributes for op in module.walk())
