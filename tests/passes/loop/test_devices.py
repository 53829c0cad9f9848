"""A launch is on one device, whatever stands beside what it computes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text
from irc.program import host_program as P
from irc.program.devices import gpu_of_arguments
from irc.program.read_host import read_host_program
from irc.runtime import building

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


@pytest.mark.parametrize(
    ("devices", "most"),
    [((SECOND, SECOND), 1), ((FIRST, SECOND), 0), (("cuda:3", "cpu"), 3), (("cpu", "cpu"), None)],
)
def test_the_gpu_of_a_program_is_that_of_most_of_its_arguments(
    devices: tuple[str, str], most: int | None
) -> None:
    with FakeTensorMode():
        given = [torch.empty(5, 8, device=device) for device in devices]
        module = irc.trace(lambda x, y: (x + 1, y * 2), given)
    assert gpu_of_arguments(module, "main") == most
    if most is not None and "cpu" not in devices:
        PassManager.parse(pipeline_text("sm_90")).run(module)
        assert gpu_of_arguments(module, "main") == most


def test_a_program_is_built_with_its_gpu_as_the_current_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a thread of its own, which begins with the first one."""
    entered, seen = list[int](), list[list[int]]()

    @contextlib.contextmanager
    def device(number: int) -> Iterator[None]:
        entered.append(number)
        yield
        entered.pop()

    with FakeTensorMode():
        module = irc.trace(lambda x: x.sin(), [torch.empty(5, 8, device=SECOND)])
    PassManager.parse(pipeline_text("sm_90")).run(module)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "device", device)
    for step in ("compiled_parts", "load"):
        monkeypatch.setattr(building, step, lambda *_: seen.append([*entered]))
    thread = threading.Thread(target=irc.build, args=(module, "sm_90"))
    thread.start()
    thread.join()
    assert seen == [[1], [1]] and not entered
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # built for another machine
    irc.build(module, "sm_90")
    assert seen[2:] == [[], []]
