"""Runs a module of the tests in two processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def said_by_two(module: str, *arguments: str, **environment: str) -> list[tuple[str, str]]:
    """The output and the errors of `python -m module rank arguments`, for the ranks 0 and 1."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(rank), *arguments],
            cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        return [process.communicate(timeout=180) for process in processes]
    finally:
        for process in processes:
            process.kill()
