"""Programs whose arguments share a storage that is longer than what they show of it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.fuzz.harness import compiled, observe, same  # noqa: E402


def program(x, y):
    y.mul_(3)
    return x.select(-3, -1) + 1


def arguments(length: int) -> list[torch.Tensor]:
    memory = torch.arange(length).untyped_storage()

    def part(*place):
        return torch.empty(0, dtype=torch.int64).set_(memory, *place)

    return [part(0, (1, 1, 3), (6, 6, 2)), part(1, (2,), (3,))]


def test_a_storage_that_goes_on_after_the_last_element():
    given = arguments(9)
    same(observe(program, given), compiled(program, given), what="compiled")


def test_a_longer_storage_with_the_next_call():
    torch._dynamo.reset()
    run = torch.compile(program, backend="irc", dynamic=False)
    for length in (8, 9, 12):
        given = arguments(length)
        with torch.no_grad():
            same(observe(program, given), observe(run, given), what=f"{length} elements")
