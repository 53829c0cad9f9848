"""The backend that whole-model and op tests compile with: irc, or what IRC_TEST_BACKEND names.

Running the same tests with `IRC_TEST_BACKEND=aot_eager` or `inductor` shows what of a failure is
torch's own.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

BACKEND = os.environ.get("IRC_TEST_BACKEND", "irc")

needs_backend = pytest.mark.skipif(
    BACKEND == "irc" and importlib.util.find_spec("irc.frontend.backend") is None,
    reason="irc has no torch.compile backend yet",
)
