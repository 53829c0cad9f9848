"""Random graphs of pointwise operations, views, reductions, scans and indexing, all the way down:
machine code and the kernels in the interpreter agree with the graph; in double precision where
passes are compared one by one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st  # noqa: E402

import irc  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.pipeline import stages  # noqa: E402
from tests.fuzz.harness import fuzz  # noqa: E402
from tests.passes.loop.programs import check, compare, random_program  # noqa: E402

STEPS = ",".join(list(stages().values())[2:])
TO_KERNELS = STEPS[: STEPS.index(",bufferize")]
TOLERANCE = 2e-4  # sums of up to a hundred f32 in another order, through softmax and products


@fuzz("fusion", st.integers(0, 2**32 - 1), quick=25, total=5_000, batch=60)
def test_fusion_graphs(case: int, compile_it: bool) -> None:
    module, args = random_program(case)
    expected = irc.run(module, *(a.clone() for a in args))
    if compile_it:
        check(module.clone(), args, TO_KERNELS)
    PassManager.parse(STEPS, verify="end").run(module)
    got = irc.build(module)(*(a.clone() for a in args))
    compare(expected, got, TOLERANCE, "machine code")
