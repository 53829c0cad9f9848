"""What tests of passes share."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def forget_programs() -> None:
    """torch.compile has seen no program before."""
    torch._dynamo.reset()
