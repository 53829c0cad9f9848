"""Arrays that are stored as narrow as those who read them take them: which are, which aren't, and
that values stay."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.interp import run
from irc.ir.passes import PassManager
from tests.passes.loop.texts import body_of, computes, parsed, ran

ARGUMENTS = "%x: f32[4, 6], %h: bf16[4, 6], %k: i64[4], %c: i1[4]"
SUM = """%s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
  %a = loop.read %x[i0, i1] : f32 loop.yield %a } : f32[4]
"""
MAP = """%s = loop.compute par(i0: 4) -> map {
  %a = loop.read %x[i0, 0] : f32 %b = math.exp %a : f32 loop.yield %b } : f32[4]
"""
GROUP = """%s = loop.group (i0: 4) {
  %t = loop.compute par(i0: 4) red(i1: 6) -> reduce(max, f32) {
    %a = loop.read %x[i0, i1] : f32 loop.yield %a } : f32[4]
  %u = loop.compute par(i0: 4) -> map {
    %a = loop.read %t[i0] : f32 %b = math.exp %a : f32 loop.yield %b } : f32[4]
  loop.yield %u : f32[4] } : f32[4]
"""
BOTH = """%s, %v = loop.group (i0: 4) {
  %t = loop.compute par(i0: 4) red(i1: 6) -> reduce(max, f32) {
    %a = loop.read %x[i0, i1] : f32 loop.yield %a } : f32[4]
  %u = loop.compute par(i0: 4) -> map {
    %a = loop.read %t[i0] : f32 %b = arith.mulf %a, %a : f32 loop.yield %b } : f32[4]
  loop.yield %t, %u : f32[4], f32[4] } : f32[4], f32[4]
"""


def reader(name: str, rest: str, source: str = "%s[i0]", element: str = "bf16") -> str:
    return f"""%{name} = loop.compute par(i0: 4, i1: 3) -> map {{
  %a = loop.read {source} : f32 {rest} }} : {element}[4, 3]
"""


NARROWS = "%b = arith.truncf %a : f32 to bf16 loop.yield %b"
WIDENS = """%b = arith.truncf %a : f32 to bf16 %d = arith.extf %b : bf16 to f32
  %e = arith.mulf %d, %d : f32 loop.yield %e"""
ONE = reader("y", NARROWS)
TWO = ONE + reader("z", WIDENS, element="f32")
KEPT = {
    "read as it is by another": ONE + reader("z", "loop.yield %a", element="f32"),
    "read as it is, too": reader("y", f"%w = arith.mulf %a, %a : f32 {NARROWS}"),
    "narrowed otherwise": ONE + reader(
        "z", "%b = arith.truncf %a : f32 to f16 loop.yield %b", element="f16"),
    "rounded otherwise": ONE + reader("z", NARROWS.replace(
        "%a :", '%a {roundingmode = "toward_zero"} :')),
    "in whose place another number is read": ONE.replace(
        "%a = loop.read %s[i0]",
        "%m = loop.read %c[i0] : i1 %o = arith.constant 7.0 : f32 "
        "%a = loop.read %s[i0] (where %m else %o)"),
}  # fmt: skip


def narrowed(text: str, results: str):
    module = parsed(ARGUMENTS, text, results)
    before = irc.print_op(module)
    PassManager.parse("round-stores", verify="each").run(module)
    return before, module


@pytest.mark.parametrize("maker", [SUM, MAP, GROUP])
@pytest.mark.parametrize("readers, results", [(ONE, "%y: bf16[4, 3]"),
                                              (TWO, "%y: bf16[4, 3], %z: f32[4, 3]")])
def test_what_all_readers_narrow_is_stored_narrow(maker, readers, results):
    before, module = narrowed(maker + readers, results)
    stored = next(op for op in module.lookup("main").block.ops if op.name.startswith("loop"))
    assert str(stored.results[0].type).count("bf16") == 1
    last = [body_of(op) for op in computes(module)][-results.count(":"):]
    assert all("truncf" not in body for body in last)
    torch.manual_seed(3)
    x = torch.randn(4, 6)
    given = (x, x.bfloat16(), torch.arange(4), torch.ones(4, dtype=torch.bool))
    for old, new in zip(run(irc.parse(before), *given), run(module, *given), strict=True):
        assert torch.equal(old, new)


def test_a_map_narrows_inside_and_sums_get_a_map_behind_them():
    _, module = narrowed(MAP + ONE, "%y: bf16[4, 3]")
    assert [body_of(op) for op in computes(module)] == ["read exp truncf yield", "read yield"]
    _, module = narrowed(SUM + ONE, "%y: bf16[4, 3]")
    assert [body_of(op) for op in computes(module)] == [
        "read yield", "read truncf yield", "read yield"]  # fmt: skip


def test_members_of_its_group_read_what_is_not_rounded():
    text = BOTH + ONE + reader("z", "loop.yield %a", "%v[i0]", "f32")
    _, module = narrowed(text, "%y: bf16[4, 3], %z: f32[4, 3]")
    bodies = [body_of(op) for op in computes(module)]
    assert bodies[:3] == ["read yield", "read truncf yield", "read mulf yield"]
    group = next(op for op in module.walk() if op.name == "loop.group")
    assert ["bf16" in str(result.type) for result in group.results] == [True, False]


@pytest.mark.parametrize("readers", KEPT.values(), ids=KEPT)
def test_other_arrays_stay(readers):
    names = [(name, "f16" if "to f16" in text else "f32" if "yield %a " in text else "bf16")
             for text in readers.split("}")[:-1] for name in text.split(" =")[0].split("%")[1:2]]
    results = ", ".join(f"%{name}: {element}[4, 3]" for name, element in names)
    before, module = narrowed(SUM + readers, results)
    assert irc.print_op(module) == before


def test_sums_over_leading_axes_stay():
    """A group shares leading axes."""
    text = """%s = loop.compute red(i0: 6) par(i1: 4) -> reduce(sum, f32) {
      %a = loop.read %x[i1, i0] : f32 loop.yield %a } : f32[4]
    """
    before, module = narrowed(text + ONE, "%y: bf16[4, 3]")
    assert irc.print_op(module) == before


def test_a_result_of_the_program_stays():
    before, module = narrowed(SUM + ONE, "%s: f32[4], %y: bf16[4, 3]")
    assert irc.print_op(module) == before


def test_it_stops_without_fuel():
    module = parsed(ARGUMENTS, SUM + ONE, "%y: bf16[4, 3]")
    before = irc.print_op(module)
    ran(module, "round-stores", fuel=0)
    assert irc.print_op(module) == before
