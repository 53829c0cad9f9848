"""The pass `print-facts`."""

from __future__ import annotations

import sys

from irc.dialects.sym.facts import format_facts
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.traits import FunctionLike


@register_pass
class PrintFacts(Pass):
    """Prints to stderr what is known of each function's symbols; changes nothing.

    Ranges come from the binders and are propagated through the assertions; a line per symbol
    with its range, divisor, equality, hint and where it is bound, then the relations stated.

    Before:
        %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} :
          (tensor<[s0, 4] x f32>) -> index
        sym.assert {lhs = #sym<s0*2>, message = "fits", relation = "le", rhs = #sym<31>}
    After: the program as it was, and on stderr
        facts of @main:
          s0 in [2, 15]  (size 0 of %x)
          2*s0 <= 31
    """

    name = "print-facts"
    summary = "print the ranges and relations of each function's symbols"
    anchor = "any"
    analysis = True

    def run(self, op: Operation, context: PassContext) -> None:
        for inner in op.walk():
            if FunctionLike in inner.traits:
                print(format_facts(inner), file=sys.stderr)
