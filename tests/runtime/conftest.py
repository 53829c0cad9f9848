"""What tests of graphs share: a driver that records, and a model that trains through it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from irc.runtime import graphs
from tests.runtime.graph_driver import RecordingDriver
from tests.runtime.graph_programs import Small


@pytest.fixture
def driver(monkeypatch) -> RecordingDriver:
    """Programs of the CPU are captured by a driver that records."""
    found = RecordingDriver()
    monkeypatch.setattr(graphs, "driver_of", lambda program: found)
    monkeypatch.setattr(graphs, "_contexts", {})
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


@pytest.fixture
def training(driver) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = Small()
    return model, torch.compile(model, backend="irc", mode="reduce-overhead")
