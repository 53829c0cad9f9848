"""What localize drops, and what it must leave: outputs whose operands others share."""

from __future__ import annotations

import pytest
import torch

from irc.dialects import loop
from irc.interp.core import run
from irc.ir import attributes as A
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import i64
from tests.passes.kernel.programs import Program, compare, read, tensor

SUM = loop.ResultAttr("scatter", "sum", None, A.DimsAttr([symbol("_0")]))
MAX = loop.ResultAttr("scatter", "max", None, A.DimsAttr([symbol("_0")]))


def program(kept, scatters):
    """One compute with the outputs exp(x), -x and, with `scatters`, x summed and exp(x) maximised
    into 4 places each; the numbers of the outputs that are returned."""
    p = Program(tensor(6), tensor(6, e=i64), tensor(6, e=i64), tensor(4))
    x, first, second, init = p.args

    def body(c):
        a = read(c, x)
        b = c.op("math.exp", a)
        values = [b, c.op("arith.negf", a)]
        if not scatters:
            return (values,)
        return [*values, a, b], [read(c, first), read(c, second)]

    outputs = (None, None, SUM, MAX) if scatters else (None, None)
    types = [tensor(6), tensor(6), tensor(4), tensor(4)][: len(outputs)]
    made = p.compute((6,), body, *outputs, types=types, inits=[init, init] if scatters else ())
    return p.finish(*[made[k] for k in kept])


KEPT = [(0,), (1,), (0, 1), ()]
OF_SCATTERS = [(0, 2), (1, 3), (2,), (3,), (3, 2)]


@pytest.mark.fault("V19")
@pytest.mark.parametrize(
    ("kept", "scatters"),
    [*((k, False) for k in KEPT), *((k, True) for k in KEPT + OF_SCATTERS)],
)
def test_a_scatter_keeps_what_its_operands_are_counted_by(kept, scatters):
    inputs = [
        torch.linspace(-1, 1, 6), torch.tensor([0, 1, 1, 3, 0, 2]),
        torch.tensor([3, 1, 0, 0, 2, 2]), torch.arange(4.0),
    ]  # fmt: skip
    wanted = run(program(kept, scatters), *inputs)
    module = program(kept, scatters)
    context = PassManager.parse("localize", verify="each").run(module)
    compare(run(module, *inputs), wanted, 0)
    computes = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    results = 4 if scatters else 2
    left = 0 if not kept else results if scatters else len(kept)
    assert sum(len(op.results) for op in computes) == left
    assert context.statistics.get(("localize", "dropped"), 0) == results - left
