"""Passes that are patterns: what they see, count, tell, and what fuel does to them."""

from __future__ import annotations

from typing import Any

import irc
from irc.dialects import arith
from irc.ir.passes import PassContext
from irc.ir.rewrite.driver import pattern
from irc.ir.rewrite.fuel import NO_FUEL, Fuel
from irc.ir.rewrite.passes import PatternPass, apply_patterns

TEXT = """
func.func @main(%x: i32, %y: i32) -> i32 {
  %unused = arith.subi %x, %y : i32
  %a = arith.muli %x, %y : i32
  %b = arith.muli %a, %y : i32
  %c = arith.addi %b, %x : i32
  return %c : i32
}
"""


def names(module: Any) -> list[str]:
    return [op.name.removeprefix("arith.") for op in module.lookup("main").block.ops][:-1]


@pattern(arith.MulIOp, name="test.sums", counted="sums")
def sums(op: Any, rw: Any) -> Any:
    rw.state.append(op.results[0].name_hint)
    if not isinstance(op.lhs.defining_op, arith.MulIOp):
        return rw.decline("it is the first")
    rw.replace(op, rw.builder.value(arith.AddIOp, op.lhs, op.rhs))
    return True


def run(backward: bool = False, fuel: Fuel | None = None) -> tuple[Any, PassContext, list[Any]]:
    module, context, seen = irc.parse(TEXT), PassContext(fuel=fuel), []
    context.current_pass = "test"
    apply_patterns(module, [sums], context, seen, backward=backward)
    irc.verify(module)
    return module, context, seen


def test_only_roots_are_looked_at_and_what_was_unused_stays() -> None:
    module, context, seen = run()
    assert names(module) == ["subi", "muli", "addi", "addi"]
    assert seen[:2] == ["a", "b"]
    assert context.statistics == {("test", "sums"): 1}


def test_backward_the_last_is_first() -> None:
    assert run(backward=True)[2][:2] == ["b", "a"]


def test_why_not_is_a_remark_once() -> None:
    context = run(backward=True)[1]
    (remark,) = context.remarks
    assert remark.text == "[test] 'arith.muli': it is the first"


def test_a_reason_is_gone_with_its_operation() -> None:
    @pattern(arith.MulIOp, name="test.second_time")
    def second_time(op: Any, rw: Any) -> Any:
        if len(rw.state) < 2:
            rw.state.append(op)
            rw.changed(op)
            return rw.decline("not yet")
        rw.replace(op, rw.builder.value(arith.AddIOp, op.lhs, op.rhs))
        return True

    context = PassContext()
    apply_patterns(irc.parse(TEXT), [second_time], context, [])
    assert not context.remarks and context.statistics[("", "test.second_time")] == 2


def test_without_fuel_nothing_happens_and_it_is_told() -> None:
    module, context, _ = run(fuel=Fuel(0))
    assert irc.print_op(module) == irc.print_op(irc.parse(TEXT))
    assert [r.message for r in context.remarks] == [NO_FUEL]


def test_a_rewrite_spends_a_unit_with_the_patterns_name() -> None:
    fuel = Fuel(None)
    run(fuel=fuel)
    assert fuel.spent == 1 and "test.sums of 'arith.muli'" in fuel.last


def test_other_places_are_built_at_and_rewired() -> None:
    @pattern(arith.AddIOp, name="test.moves")
    def moves(op: Any, rw: Any) -> Any:
        product = op.lhs.defining_op
        if not isinstance(product, arith.MulIOp):
            return rw.no_match("it adds no product")
        value = rw.after(product).value(arith.SubIOp, product.results[0], op.rhs)
        rw.replace_uses(product.results[0], value, lambda u: u is not value.defining_op)
        rw.before(op).value(arith.MulIOp, op.lhs, op.lhs)
        return True

    module, fuel = irc.parse(TEXT), Fuel(None)
    apply_patterns(module, [moves], PassContext(fuel=fuel), [])
    irc.verify(module)
    assert names(module) == ["subi", "muli", "muli", "subi", "addi"], "the new product is gone"
    assert irc.run(module, 3, 2)[0] == 3 * 2 * 2 - 3 + 3
    assert fuel.spent == 2


def test_a_pass_may_have_nothing_to_do() -> None:
    class Idle(PatternPass):
        name = "test-idle"
        patterns = (sums,)

        def prepare(self, op: Any, context: PassContext) -> Any:
            return None

    module = irc.parse(TEXT)
    Idle().run(module, PassContext())
    assert irc.print_op(module) == irc.print_op(irc.parse(TEXT))
    assert PatternPass().prepare(module, PassContext()) is not None
