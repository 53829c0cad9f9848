"""The loop programs of the tests of gpu kernels, by name: `CASES`, from all files of them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import group_cases  # noqa: F401
import moving_cases  # noqa: F401
import reduction_cases  # noqa: F401
import row_cases  # noqa: F401
from case_registry import CASES, TOLERANCE

__all__ = ["CASES", "TOLERANCE"]
