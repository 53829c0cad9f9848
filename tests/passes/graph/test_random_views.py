"""Random programs with views and mutations through functionalize and convert-aten-to-graph: each
gives what eager gives. `make fuzz` runs many more of them, compiled, too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.fuzz.harness import clones, observe, run_batch, same  # noqa: E402
from tests.fuzz.programs import Program, programs  # noqa: E402
from tests.fuzz.test_programs import LOWERING_REFUSALS, REFUSALS, assert_functional  # noqa: E402

TO_GRAPH = "decompose-aten,convert-aten-to-graph,canonicalize"


def check(case: Program, compile_it: bool) -> None:
    """Eager's outcome after functionalize, and on the graph level."""
    run, args = case.function(), case.inputs()
    expected = observe(run, args)
    module = irc.trace(run, tuple(clones(args)))
    try:
        PassManager.parse("functionalize", verify="each").run(module)
    except UserError as error:
        assert any(reason in str(error) for reason in REFUSALS), error
        return
    assert_functional(module)
    same(expected, observe(lambda *a: irc.run(module, *a), args), what="functionalized")
    if len(set(expected.sharing)) < len(expected.sharing):
        return  # who shares memory is decided on the layout level
    try:
        PassManager.parse(TO_GRAPH, verify="each").run(module)
    except UserError as error:
        assert any(reason in str(error) for reason in LOWERING_REFUSALS), error
        return
    got = observe(lambda *a: irc.run(module, *a), args)
    same(expected, got, what="graph", exact=False, strides=False, sharing=False)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_with_views_and_writes(seed: int) -> None:
    run_batch(check, programs(), 7_000 + 1_000 * seed, 40, 1)
