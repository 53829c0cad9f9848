"""One compiled program, called with other sizes, strides and offsets: each call gives what eager
gives, whether Dynamo compiles again or the program serves them all. Three threads call, too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.backends import needs_backend  # noqa: E402
from tests.fuzz.calls import CALLS, CalledProgram, called_programs  # noqa: E402
from tests.fuzz.harness import Outcome, fuzz, observe, same  # noqa: E402

pytestmark = needs_backend
#: What irc refuses by name, and refuses in eager's stead.
REFUSALS = ("is given one storage more than once", "elements overlap in memory")


@fuzz("dynamic", called_programs(), quick=2 * CALLS, total=10_000, batch=250, calls=CALLS)
def test_dynamic_calls(case: CalledProgram, compile_it: bool) -> None:
    check_calls(case, threads=1)


@fuzz("threads", called_programs(), quick=CALLS, total=1_000, batch=100, calls=CALLS)
def test_calls_of_three_threads(case: CalledProgram, compile_it: bool) -> None:
    check_calls(case, threads=3)


def check_calls(case: CalledProgram, threads: int) -> None:
    """Eager's outcome of every call of one compiled program."""
    function = case.function()
    with torch.no_grad():
        expected = [observe(function, case.inputs(k)) for k in range(len(case.calls))]
        failure = first_difference(case, expected, "irc", threads)
        if failure is None or any(text in str(failure) for text in REFUSALS):
            return
        if first_difference(case, expected, "aot_eager", 1) is None:
            raise failure  # AOTAutograd alone is right


def first_difference(
    case: CalledProgram, expected: list[Outcome], backend: str, threads: int
) -> Exception | None:
    """What goes wrong in the calls of a compiled program; None if they are eager's."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=64):
        program = torch.compile(case.function(), backend=backend, dynamic=True)
        try:
            call(case, expected, program, backend, 1)
            if threads > 1:
                in_threads(lambda: call(case, expected, program, backend, 3), threads)
        except Exception as error:
            return error
    return None


def call(
    case: CalledProgram,
    expected: list[Outcome],
    program: Callable[..., Any],
    what: str,
    rounds: int,
) -> None:
    """Call a compiled program with each of the arguments, some times."""
    with torch.no_grad():
        for _ in range(rounds):
            for number, outcome in enumerate(expected):
                got = observe(program, case.inputs(number))
                same(outcome, got, what=f"{what}, call {number}", exact=False)


def in_threads(run: Callable[[], None], count: int) -> None:
    """Run something in some threads at once; the first exception is raised."""
    errors: list[Exception] = []
    barrier = threading.Barrier(count)

    def one() -> None:
        barrier.wait()
        try:
            run()
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=one) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
