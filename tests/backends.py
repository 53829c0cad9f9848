"""The backend that whole-model and op tests compile with: irc, or what IRC_TEST_BACKEND names.

Running the same tests with `IRC_TEST_BACKEND=aot_eager` or `inductor` shows what of a failure is
torch's own.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

BACKEND = os.environ.get("IRC_TEST_BACKEND", "irc")

needs_backend = pytest.mark.skipif(
    BACKEND == "irc" and importlib.util.find_spec("irc.frontend.backend") is None,
    reason="irc has no torch.compile backend yet",
)


def skip_unless_checked(function: Callable[..., Any], wrong: torch.Tensor) -> None:
    """Skip the test where torch is older than 2.13 and its graphs, as those of 2.11, lack the
    check that `wrong` fails."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 13):
        return
    torch._dynamo.reset()
    try:
        torch.compile(function, backend="aot_eager")(wrong)
    except RuntimeError:
        torch._dynamo.reset()
        return
    pytest.skip("this torch leaves the check out of its graphs")
