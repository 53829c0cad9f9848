"""A launch is on one device, whatever stands beside what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text
from irc.program import host_program as P
from irc.program.read_host import read_host_program

FIRST, SECOND = "cuda:0", "cuda:1"
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "maps": lambda x, y: (torch.relu(x) + 1, torch.relu(y) * 2),
    "sums": lambda x, y: ((x * 2).sum(0), (y * 3).sum(0)),
    "copies": lambda x, y: ((x * 2).to(SECOND).sum(0), (y * 3).sum(0), (y * 2).to(FIRST) * 3),
    "sums of copies": lambda x, y: ((y * 2).to(FIRST).sum() + x.sum(), (y * 2).sum()),
    "made here": lambda x, y: (x + torch.arange(8, device=FIRST), y + torch.ones(8, device=SECOND)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_launch_is_on_one_device(name: str) -> None:
    with FakeTensorMode():
        given = [torch.empty(5, 8, device=device) for device in (FIRST, SECOND)]
        module = irc.trace(PROGRAMS[name], given)
    PassManager.parse(pipeline_text("sm_90")).run(module)
    program = read_host_program(module)
    launches = [step for step in program.steps if isinstance(step, P.Launch)]
    devices = [{program.layouts[r].device for r in step.tensors} for step in launches]
    assert all(len(each) == 1 for each in devices)
    assert {FIRST, SECOND} == set().union(*devices)
