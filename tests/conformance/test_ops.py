"""The fixed 5 % of the op conformance: cases that aot_eager passes, through irc.

`make test` takes the first two samples of each, one of those with sizes as symbols (torch's own
reasoning about them takes most of the time); `make test-all` takes all eight as well.
A refusal passes only if refusals.json, from which docs list them, names its entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends import BACKEND, needs_backend
from tests.conformance import cases, refusals
from tests.conformance.ops import BASELINE, read_baseline
from tests.conformance.runner import Runner

# What torch traces for seconds; beside each stands a case like it.
LONG = (
    "nn.functional.conv_transpose3d/f32/forward/dynamic",  # conv_transpose2d
    "nn.functional.interpolate@trilinear/f32/backward/dynamic",  # interpolate@bilinear
    "nn.functional.multi_head_attention_forward/bf16/backward/dynamic",  # forward in f32
    "nn.functional.multi_head_attention_forward/bf16/forward/dynamic",
    "svd_lowrank/f32/backward/dynamic",  # linalg.svdvals
)
CASES = sorted(c for c, status in read_baseline(BASELINE).items() if status == "pass")


def known_refusal(case: str) -> bool:
    """Does refusals.json name the case?"""
    return refusals.reason_for(case, refusals.read()) is not None


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One child process for this worker's cases."""
    with Runner(BACKEND) as runner:
        yield runner


@pytest.fixture(scope="module")
def full_runner() -> Iterator[Runner]:
    """As `runner`, for all samples."""
    with Runner(BACKEND, timeout=300.0) as runner:
        yield runner


@needs_backend
@pytest.mark.parametrize("case", [case for case in CASES if case not in LONG])
def test_case(case: str, runner: Runner) -> None:
    check(runner.run(case, samples=1 if cases.parse(case)[3] == "dynamic" else 2))


@needs_backend
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_case_in_full(case: str, full_runner: Runner) -> None:
    check(full_runner.run(case))


def check(result: dict[str, Any]) -> None:
    """Fail unless the case passed, or was refused as the docs say."""
    case = result["case"]
    if result["status"] == "refused":
        assert known_refusal(case), f"a refusal that docs do not list: {result['message']}"
        pytest.skip(f"refused: {result['message']}")
    assert result["status"] == "pass", result.get("message")


def test_few_cases_may_be_refused() -> None:
    assert sum(map(known_refusal, CASES)) <= 0.01 * len(CASES)
