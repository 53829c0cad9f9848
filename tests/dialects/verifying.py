"""What the tests of verifiers share."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify


def check(text: str, error: str | None) -> None:
    """The program parses, and the verifier refuses it with `error` (a regex), or takes it."""
    module = irc.parse(text)
    if error is None:
        verify(module)
        return
    with pytest.raises(InvalidIR, match=error):
        verify(module)
