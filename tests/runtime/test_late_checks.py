"""Checks that a GPU's programs don't wait for: which they are, and when errors come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from irc.program import host_program as P
from irc.runtime import late_checks, python_host


class Later:
    """A truth value that arrives when the GPU gets there: `arrive` writes it."""

    def __init__(self, truth: bool) -> None:
        self.truth = torch.tensor(truth)
        self.target: Any = None

    def reshape(self, shape: tuple[int, ...]) -> Later:
        return self

    def view(self, dtype: torch.dtype) -> Later:
        return self

    def arrive(self) -> None:
        self.target.fill_(int(self.truth))


@pytest.fixture
def pending(monkeypatch) -> list[Later]:
    """The values on their way; copies into the CPU's memory only note where to."""
    found: list[Later] = []
    copy = torch.Tensor.copy_

    def copy_(self: torch.Tensor, source: Any, non_blocking: bool = False) -> torch.Tensor:
        if not isinstance(source, Later):
            return copy(self, source, non_blocking)
        source.target = self
        found.append(source)
        return self

    monkeypatch.setattr(torch.Tensor, "copy_", copy_)
    return found


def checks(pending: list[Later], places: int = 4) -> late_checks.Checks:
    def wait() -> None:
        for value in pending:
            value.arrive()

    return late_checks.Checks(torch.zeros(places, dtype=torch.uint8), wait)


def failing(message: str) -> Callable[[], None]:
    def fail() -> None:
        raise IndexError(message)

    return fail


def test_an_error_comes_when_its_value_has_arrived(pending: list[Later]) -> None:
    queue = checks(pending)
    for number, truth in enumerate((True, False, True)):
        queue.add(Later(truth), failing(f"check {number}"))  # type: ignore[arg-type]
    queue.raise_failed()
    pending[0].arrive()
    queue.raise_failed()
    pending[1].arrive()
    with pytest.raises(IndexError, match="check 1"):
        queue.raise_failed()
    queue.raise_failed()  # told once


def test_settling_waits(pending: list[Later]) -> None:
    queue = checks(pending)
    queue.add(Later(False), failing("late"))  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="late"):
        queue.settle()


def test_more_checks_than_places_wait_and_lose_nothing(pending: list[Later]) -> None:
    queue = checks(pending, places=2)
    for number in range(7):
        queue.add(Later(number not in (1, 4)), failing(f"check {number}"))  # type: ignore[arg-type]
    told = []
    for _ in range(3):
        try:
            queue.settle()
        except IndexError as error:
            told.append(str(error))
    assert told == ["check 1", "check 4"]


FLAG = P.Layout("bool", (), (), 1, "cuda:0")
ROW = P.Layout("float32", (4,), (1,), 4, "cuda:0")


def program(*more: P.Step, late: bool = True) -> P.HostProgram:
    steps = (
        P.Alloc(1, FLAG), P.Launch("k", (0, 1), (), 1), P.ReadItem(2, 1, "bool"),
        P.AssertValue(2, "index 7 is out of bounds", "IndexError"), *more,
    )  # fmt: skip
    layouts = {0: ROW, 1: FLAG}
    argument = P.Argument("x", "tensor", 0, ROW)
    return P.HostProgram(
        "main", (argument,), (), steps, (P.Output("tensor", 0, ROW),), 3, {}, layouts, {},
        late_checks=late,
    )  # fmt: skip


def test_a_value_that_only_an_assertion_uses_is_not_waited_for() -> None:
    assert late_checks.late_steps(program()) == {2: 3}
    assert late_checks.late_steps(program(P.Bind("u0", 2))) == {}
    assert late_checks.late_steps(program(P.AssertValue(2, "again"))) == {}


@pytest.mark.parametrize("late", [True, False])
def test_the_option_decides_whether_a_program_waits(late: bool, monkeypatch) -> None:
    added: list[tuple[torch.Tensor, Any]] = []

    class Queue:
        def add(self, truth: torch.Tensor, fail: Any) -> None:
            added.append((truth, fail))

    monkeypatch.setattr(late_checks, "checks_of", lambda gpu: Queue())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    host = python_host.PythonHost(program(late=late), object(), {})  # type: ignore[arg-type]
    run = python_host._Run(host, {})

    class Flag:
        is_cuda = True

        def item(self) -> bool:
            return False

    run.values[1] = Flag()
    host._plan[2][0](run)
    if late:
        host._plan[3][0](run)
        ((_, fail),) = added
        with pytest.raises(IndexError, match="index 7"):
            fail()
    else:
        assert not added
        with pytest.raises(IndexError, match="index 7"):
            host._plan[3][0](run)
