"""Random strides through the layout passes: values, strides and aliasing stay eager's. `make fuzz`
runs many more of them, compiled, too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.fuzz.harness import run_batch  # noqa: E402
from tests.fuzz.layout_cases import cases  # noqa: E402
from tests.fuzz.layouts import Case  # noqa: E402
from tests.fuzz.test_layouts import check_layouts  # noqa: E402


def check(case: Case, compile_it: bool) -> None:
    """Eager's outcome after each pass."""
    check_layouts(case, False)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_over_strides(seed: int) -> None:
    run_batch(check, cases(), 7_000 + 1_000 * seed, 40, 1)
