"""What an operation's traits say of it counts, whatever dialect it is of."""

from __future__ import annotations

import pytest

from irc.analysis.cost import op_cost
from irc.ir import attributes as A
from irc.ir.core import Block, Region
from irc.ir.definition import Op, attribute, region, variadic_result
from irc.ir.diagnostics import InvalidIR
from irc.ir.registry import lookup_op
from irc.ir.symbols import symbol
from irc.ir.traits import BindsSymbol, IsolatedFromAbove, NoTerminator, StatesFacts, SymbolOp
from irc.ir.types import TensorType, f32
from irc.ir.verifier import verify


class Names(Op, register=False):
    """Binds a symbol."""

    name = "test.names"
    traits = frozenset({BindsSymbol, StatesFacts})
    symbol = attribute(A.StringAttr)


class Mentions(Op, register=False):
    """Gives a tensor of that size."""

    name = "test.mentions"
    made = variadic_result()


class Body(Op, register=False):
    """A function."""

    name = "test.body"
    traits = frozenset({IsolatedFromAbove, NoTerminator, SymbolOp})
    body = region()


@pytest.mark.parametrize(
    ("named", "error"),
    [(("s0",), None), ((), "symbol 's0' in the type"), (("s0", "s0"), "bound a second time")],
)
def test_a_binder_binds_by_its_trait(named, error):
    block = Block()
    for name in named:
        block.append(Names((), (), {"symbol": A.StringAttr(name)}))
    block.append(Mentions((), (TensorType((symbol("s0"),), f32),)))
    body = Body((), (), {}, (Region([block]),))
    if error is None:
        verify(body)
        return
    with pytest.raises(InvalidIR, match=error):
        verify(body)


@pytest.mark.parametrize(
    ("name", "cost"),
    [("arith.extf", 0), ("arith.addf", 1), ("arith.divsi", 4), ("math.sqrt", 4), ("math.exp", 16),
     ("math.floor", 1), ("math.isnan", 1), ("loop.read", 0)],
)  # fmt: skip
def test_an_operation_costs_what_its_class_says(name, cost):
    made = lookup_op(name)
    assert made is not None
    assert op_cost(made((), ())) == cost
