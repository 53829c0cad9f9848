"""Choosing in a compile: what was chosen already, how many seconds are left, who measures.

    winner = choose(problem, candidates, context)
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassContext
from irc.options.options import DEFAULT, Options
from irc.runtime import metrics
from irc.target import Target
from irc.tuning.candidate import Candidate, NoValidChoicesError
from irc.tuning.problem import Problem, main_of, target_of_problem
from irc.tuning.progress import Progress

if TYPE_CHECKING:
    from irc.tuning.rounds import Timings
    from irc.tuning.store import Stores

#: Options of a compile that decide the code of a candidate.
_BUILT_WITH = ("precise_math", "emulate_rounding")
MOST_FAILED = 3
"""Candidates that failed of which the remark tells why."""
_ANY_DEVICE = re.compile(r'"cuda:\d+"')
LOCK_FACTOR = 2.0
"""Another process's tuning of the same is waited for so many times the budget."""


def choose(problem: Problem, candidates: Sequence[Candidate], context: PassContext) -> Candidate:
    """The fastest candidate of a problem.

    Looked for among what this compile chose already, then in the local and the remote store; else
    all are built on threads, and timed within what is left of `max_autotune_budget`. The first
    candidate is the default: it is kept unless another one is faster, and where no budget is left.
    One candidate alone is given back as it is. Remarks tell the times.

    Raises NoValidChoicesError where there is no candidate, none can be built or run, or all take
    infinitely long.
    """
    if context.tuning is None:
        context.tuning = Session(context.options or DEFAULT)
    session: Session = context.tuning
    return session.choose(problem, candidates, context.remark)


@attrs.define(eq=False)
class Session:
    """What the choices of one compile share. clock: seconds, of `time.monotonic`."""

    options: Options = DEFAULT
    clock: Callable[[], float] = time.monotonic
    spent: float = 0.0
    _chosen: dict[str, Candidate] = attrs.field(factory=dict)

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return max(0.0, self.options.max_autotune_budget - self.spent)

    def choose(
        self, problem: Problem, candidates: Sequence[Candidate], tell: Callable[[str], None]
    ) -> Candidate:
        """As `choose`."""
        from irc.tuning.store import problem_key, stores_of

        if not candidates:
            raise NoValidChoicesError(problem.what, {})
        if len(candidates) == 1:
            return candidates[0]
        target = target_of_problem(problem.module())
        if not is_here(target):
            tell(f"{problem.what}: this machine is not the target; the default stays")
            return candidates[0]
        device = device_name(target)
        key = problem_key(problem, candidates, device, self.tag)
        if key in self._chosen:
            return self._chosen[key]
        stores = stores_of(self.options)
        winner = _stored(problem, candidates, stores, key, tell)
        if winner is None:
            start = self.clock()
            with stores.alone(key, LOCK_FACTOR * self.options.max_autotune_budget):
                winner = _stored(problem, candidates, stores, key, tell)
                if winner is None:
                    # Waiting for others is no measuring.
                    start = self.clock()
                    winner = self._measured(problem, candidates, stores, key, device, tell)
            self.spent += self.clock() - start
        self._chosen[key] = candidates[winner]
        return candidates[winner]

    @property
    def tag(self) -> str:
        """What else belongs to a key: the user's tag, and options that decide code."""
        values = {name: getattr(self.options, name) for name in _BUILT_WITH}
        return f"{self.options.autotune_cache_tag} {values}"

    def _measured(
        self,
        problem: Problem,
        candidates: Sequence[Candidate],
        stores: Stores,
        key: str,
        device: str,
        tell: Callable[[str], None],
    ) -> int:
        from irc.tuning.store import record_of

        if not self.left:
            tell(f"{problem.what}: the budget of {self.options.max_autotune_budget} s is used up; "
                 "the default stays")  # fmt: skip
            return 0
        deadline = self.clock() + self.left
        try:
            outcome = measure(problem, candidates, self.options, deadline, self.clock)
        except NoArguments as error:
            tell(f"{problem.what}: its arguments find no memory ({error}); the default stays")
            return 0
        winner = outcome.winner
        if winner is None:
            reasons = {candidates[n].label: reason for n, reason in outcome.reasons.items()}
            raise NoValidChoicesError(problem.what, reasons)
        tell(_told(problem, candidates, outcome, winner))
        if not outcome.cut:
            times = list(zip(candidates, outcome.seconds, strict=True))
            stores.put(key, record_of(key, problem, device, times, winner))
        return winner


def _stored(
    problem: Problem,
    candidates: Sequence[Candidate],
    stores: Stores,
    key: str,
    tell: Callable[[str], None],
) -> int | None:
    """The number of the winner that a store knows."""
    known = stores.get(key, candidates)
    if known is None:
        return None
    winner, place = known
    tell(f"{problem.what}: {candidates[winner].label}, as the {place} store has it")
    return winner


def _told(
    problem: Problem, candidates: Sequence[Candidate], outcome: Timings, winner: int
) -> str:
    seconds = outcome.seconds
    faster = seconds[0] / seconds[winner]
    gain = "" if not winner or math.isinf(faster) else f", {faster:.2f} times as fast as the first"
    failed = "".join(
        f"; {candidates[number].label} failed: {reason}"
        for number, reason in list(outcome.reasons.items())[:MOST_FAILED]
    )
    cut = "; the budget ended it" if outcome.cut else ""
    return (f"{problem.what}: {candidates[winner].label} of {len(candidates)} candidates, "
            f"{seconds[winner] * 1e6:.2f} us{gain}{failed}{cut}")  # fmt: skip


def is_here(target: Target) -> bool:
    """Whether this machine is the target, so that a time says something."""
    if target != Target.host(target.is_gpu):
        return False
    if not target.is_gpu:
        return True
    import torch

    return torch.cuda.is_available()


def device_name(target: Target) -> str:
    """What the target doesn't say of what is measured on: a GPU's name, as torch gives it."""
    if not target.is_gpu:
        return "cpu"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no gpu"


# -- measuring


class NoArguments(Exception):
    """The arguments of a problem, which are made for measuring, find no memory."""


def measure(
    problem: Problem,
    candidates: Sequence[Candidate],
    options: Options = DEFAULT,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Timings:
    """The times of candidates, by this process or by workers, as the options say.

    Counts one of `autotune_problems`, and where it is open who computes something, one
    `select_algorithm_precompile`. Raises NoArguments.
    """
    from irc.tuning.rounds import hold

    metrics.add("autotune_problems")
    if main_of(problem.module()).level != "loop":
        metrics.add("select_algorithm_precompile")
    with _measurer(problem, options) as measurer, Progress(problem.what, len(candidates)) as bar:
        measurer.begin()
        failed, first = measurer.prepare(candidates, deadline, clock, bar.step)
        usable = promising([n for n in range(len(candidates)) if n not in failed], first)
        bar.begin_timing()

        def sample(number: int) -> float:
            seconds = measurer.seconds(candidates[number])
            bar.step()
            return seconds

        held = hold(usable, sample, deadline, reason_of, clock)
    seconds = [first.get(n, math.inf) for n in range(len(candidates))]
    for place, number in enumerate(usable):
        seconds[number] = held.seconds[place]
    reasons = {**failed, **{usable[place]: why for place, why in held.reasons.items()}}
    unbuilt = any(why == UNBUILT for why in failed.values())
    return attrs.evolve(
        held, seconds=tuple(seconds), reasons=reasons, cut=held.cut or unbuilt
    )


def promising(numbers: Sequence[int], first: Mapping[int, float]) -> list[int]:
    """The first, and those whose first sample is not hopeless, where there are samples."""
    from irc.tuning.rounds import LIMITS

    limit = LIMITS[0] * min(first.values(), default=math.inf)
    return [number for number in numbers if not number or first.get(number, 0.0) <= limit]


UNBUILT = "the budget ended before it was built"


def reason_of(error: BaseException) -> str:
    """Why a candidate has no time, in a line."""
    text = error.message if isinstance(error, IRCError) else str(error)
    line = text.strip().splitlines()[0] if text.strip() else ""
    name = type(error).__name__
    return line if name == "WorkerFailure" else f"{name}: {line}"


@contextmanager
def _measurer(problem: Problem, options: Options) -> Iterator[Any]:
    """What builds and times candidates of a problem."""
    from irc.tuning import pool

    if options.autotune_in_subproc and pool.can_start():
        yield PoolMeasurer(problem, options, pool.shared_pool(_devices(problem, options)))
        return
    here = ThreadMeasurer(problem, options)
    try:
        yield here
    finally:
        here.close()


def _devices(problem: Problem, options: Options) -> list[str] | None:
    """The devices that have a worker each; None for one worker that sees what this process sees."""
    from irc.tuning import pool

    if not options.autotune_multi_device or not target_of_problem(problem.module()).is_gpu:
        return None
    import torch

    return pool.visible_devices(os.environ, torch.cuda.device_count())


class ThreadMeasurer:
    """Builds candidates on threads of this process, and times them in the caller's."""

    def __init__(self, problem: Problem, options: Options) -> None:
        from irc.tuning.measuring import InProcess

        self._inner = InProcess(problem, options)
        self._options = options
        self.seconds = self._inner.seconds
        self.close = self._inner.close

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        try:
            self._inner.begin()
        except (MemoryError, RuntimeError) as error:  # torch's for a CPU is a RuntimeError
            raise NoArguments(reason_of(error)) from error

    def prepare(
        self,
        candidates: Sequence[Candidate],
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
    ) -> tuple[dict[int, str], dict[int, float]]:
        """Build all; gives why some have no program, by number, and no samples."""
        from irc.codegen.triton import workers

        # Triton holds the interpreter lock: each thread has processes of its own, if there are any.
        helpers = workers.current()
        count = thread_count(self._options)
        groups = [] if helpers is None else helpers.split(count)

        def inside(number: int) -> AbstractContextManager[None]:
            return workers.using(groups[number] if number < len(groups) else None)

        prepare = self._inner.prepare
        return on_threads(prepare, candidates, count, deadline, clock, step, inside), {}


def thread_count(options: Options) -> int:
    """How many threads build: the option, else one for each processor, up to 8."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return options.compile_threads or min(8, processors)


def on_threads(
    prepare: Callable[[Candidate], None],
    candidates: Sequence[Candidate],
    count: int,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    step: Callable[[], None] = lambda: None,
    inside: Callable[[int], AbstractContextManager[None]] = lambda number: nullcontext(),
) -> dict[int, str]:
    """`prepare` for each candidate, on `count` threads other than the caller's; why some failed, by
    number. The first one is prepared whatever the deadline. Each thread works in the context that
    `inside` gives for its number."""
    failed: dict[int, str] = {}
    numbers = iter(range(len(candidates)))
    lock, stopped = threading.Lock(), threading.Event()

    def work(place: int) -> None:
        with inside(place):
            build()

    def build() -> None:
        while not stopped.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            if number and clock() >= deadline:
                failed[number] = UNBUILT
                continue
            try:
                prepare(candidates[number])
            except Exception as error:
                failed[number] = reason_of(error)
            step()

    threads = [
        threading.Thread(target=work, args=(n,), name=f"irc-precompile-{n}")
        for n in range(min(count, len(candidates)))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:  # Ctrl-C: what is being built is finished, nothing else begun
        stopped.set()
    return failed


class PoolMeasurer:
    """Asks the workers of a pool. What crashes or hangs there has no time."""

    def __init__(self, problem: Problem, options: Options, pool: Any) -> None:
        self._pool = pool
        asked = {name: getattr(options, name) for name in _BUILT_WITH}
        described = problem.to_json()
        if pool.workers[0].device is not None:  # it sees one, and calls that the first
            described["text"] = _ANY_DEVICE.sub('"cuda:0"', described["text"])
        self._request: Mapping[str, Any] = {"problem": described, "options": asked}

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        from irc.tuning.pool import WorkerFailure

        try:
            self._pool.workers[0].ask({"do": "begin", **self._for(Candidate())})
        except WorkerFailure as error:
            raise NoArguments(str(error)) from error

    def prepare(
        self,
        candidates: Sequence[Candidate],
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
    ) -> tuple[dict[int, str], dict[int, float]]:
        """Build all and take a sample of each, on all workers; gives why some have none, by number,
        and the samples."""
        from irc.tuning.pool import LIMIT_SECONDS, WorkerFailure

        def ask(worker: Any, number: int) -> str | float:
            left = deadline - clock()
            if number and left <= 0:
                return UNBUILT
            try:
                limit = LIMIT_SECONDS if not number else min(LIMIT_SECONDS, left + 1.0)
                request = {"do": "seconds", **self._for(candidates[number])}
                return float(worker.ask(request, limit))
            except WorkerFailure as error:
                return str(error)
            finally:
                step()

        answers = list(enumerate(self._pool.each(ask, range(len(candidates)))))
        return (
            {number: answer for number, answer in answers if isinstance(answer, str)},
            {number: answer for number, answer in answers if not isinstance(answer, str)},
        )

    def seconds(self, candidate: Candidate) -> float:
        """A sample, always from the first worker, so that all are timed on one device."""
        return float(self._pool.workers[0].ask({"do": "seconds", **self._for(candidate)}))

    def _for(self, candidate: Candidate) -> dict[str, Any]:
        return {**self._request, "candidate": candidate.to_json()}


__all__ = ["Session", "choose", "device_name", "measure", "on_threads"]
