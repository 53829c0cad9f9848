"""Choosing in a compile: what was chosen already, how many seconds are left, who measures.

    winner = choose(problem, candidates, context)
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassContext
from irc.options.options import DEFAULT, Options
from irc.runtime import metrics
from irc.tuning.applying import tunable_in
from irc.tuning.candidate import Candidate, NoValidChoicesError
from irc.tuning.devices import device_name, device_number, devices_of, is_here, on_first
from irc.tuning.problem import Problem, main_of, target_of_problem
from irc.tuning.progress import Progress

if TYPE_CHECKING:
    from irc.tuning.rounds import Timings
    from irc.tuning.store import Stores

#: Options of a compile that decide the code of a candidate.
_BUILT_WITH = ("precise_math", "emulate_rounding")
MOST_FAILED = 3
"""Candidates that failed of which the remark tells why."""
LOCK_FACTOR = 2.0
"""Another process's tuning of the same is waited for so many times the budget."""
BUILDING_SHARE = 0.7
"""Of the seconds that are left, what building the candidates of several problems may take."""

Item = TypeVar("Item")
Asked = tuple[Problem, Sequence[Candidate]]


@attrs.frozen
class Open:
    """A problem that no store knows, with the key that it is kept by."""

    problem: Problem
    candidates: Sequence[Candidate]
    key: str
    device: str


def choose(problem: Problem, candidates: Sequence[Candidate], context: PassContext) -> Candidate:
    """The fastest candidate of a problem.

    Looked for among what this compile chose already, then in the local and the remote store; else
    all are built on threads, and timed within what is left of `max_autotune_budget`. The first
    candidate is the default: it is kept unless another one is faster, and where no budget is left.
    One candidate alone is given back as it is. Remarks tell the times.

    Raises NoValidChoicesError where there is no candidate, none can be built or run, or all take
    infinitely long.
    """
    return choose_all([(problem, candidates)], context)[0]


def choose_all(asked: Sequence[Asked], context: PassContext) -> list[Candidate]:
    """As `choose` for several problems, each with its candidates, that are built at once."""
    if context.tuning is None:
        context.tuning = Session(context.options or DEFAULT)
    session: Session = context.tuning
    winners = session.choose_all(asked, context.remark)
    context.provisional = context.provisional or session.provisional
    return winners


@attrs.define(eq=False)
class Session:
    """What the choices of one compile share. clock: seconds, of `time.monotonic`. provisional: why
    the program isn't what measuring to the end would give; empty if it is."""

    options: Options = DEFAULT
    clock: Callable[[], float] = time.monotonic
    spent: float = 0.0
    provisional: str = ""
    _chosen: dict[str, Candidate] = attrs.field(factory=dict)
    _products: set[str] = attrs.field(factory=set)

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return max(0.0, self.options.max_autotune_budget - self.spent)

    def choose(
        self, problem: Problem, candidates: Sequence[Candidate], tell: Callable[[str], None]
    ) -> Candidate:
        """As `choose`."""
        return self.choose_all([(problem, candidates)], tell)[0]

    def choose_all(self, asked: Sequence[Asked], tell: Callable[[str], None]) -> list[Candidate]:
        """As `choose_all`."""
        from irc.tuning.store import problem_key, stores_of

        stores = stores_of(self.options)
        places: list[tuple[str, Candidate | None]] = []
        open_: dict[str, Open] = {}
        for problem, candidates in asked:
            settled = self._settled(problem, candidates, tell)
            if settled is not None:
                places.append(("", settled))
                continue
            device = device_name(problem)
            key = problem_key(problem, candidates, device, self.tag)
            places.append((key, None))
            if key in self._chosen or key in open_:
                continue
            winner = _stored(problem, candidates, stores, key, tell)
            if winner is None:
                open_[key] = Open(problem, candidates, key, device)
            else:
                self._chosen[key] = candidates[winner]
        if open_:
            self._measure_all(open_, stores, tell)
        return [settled or self._chosen[key] for key, settled in places]

    def _settled(
        self, problem: Problem, candidates: Sequence[Candidate], tell: Callable[[str], None]
    ) -> Candidate | None:
        """What there is no choice about."""
        if not candidates:
            raise NoValidChoicesError(problem.what, {})
        if len(candidates) == 1:
            return candidates[0]
        if is_here(target_of_problem(problem.module())):
            return None
        tell(f"{problem.what}: this machine is not the target; the default stays")
        return candidates[0]

    def _measure_all(
        self, open_: Mapping[str, Open], stores: Stores, tell: Callable[[str], None]
    ) -> None:
        """Measure what no store has, one problem after the other. Those that others measure are
        waited for in the order of their keys, so that nobody waits for who waits for him."""
        with ExitStack() as locks:
            left = []
            for key, each in sorted(open_.items()):
                waiting = LOCK_FACTOR * self.options.max_autotune_budget
                locks.enter_context(stores.alone(key, waiting))
                winner = _stored(each.problem, each.candidates, stores, key, tell)
                if winner is None:
                    left.append(each)
                else:
                    self._chosen[key] = each.candidates[winner]
            order = {key: place for place, key in enumerate(open_)}
            left.sort(key=lambda each: order[each.key])
            with self._counted():
                built = self._built(left)
            try:
                for each in left:
                    with self._counted():
                        winner = self._measured(each, stores, tell, *built.get(each.key, ()))
                    self._chosen[each.key] = each.candidates[winner]
            finally:
                for (measurer,) in built.values():
                    measurer.close()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What is done inside takes its seconds from the budget."""
        start = self.clock()
        try:
            yield
        finally:
            self.spent += self.clock() - start

    def _built(self, several: Sequence[Open]) -> dict[str, tuple[ThreadMeasurer]]:
        """The candidates of several problems, built on threads at once: of each problem first the
        first, and so on, as long as there is time; what was not built then is built alone."""
        from irc.tuning import pool

        if len(several) < 2 or not self.left:
            return {}
        if self.options.autotune_in_subproc and pool.can_start():
            return {}  # each worker builds what it times
        measurers = {each.key: ThreadMeasurer(each.problem, self.options) for each in several}
        pairs = [(each.key, each.candidates[turn])
                 for turn in range(max(len(each.candidates) for each in several))
                 for each in several if turn < len(each.candidates)]  # fmt: skip
        deadline = self.clock() + BUILDING_SHARE * self.left

        def prepare(pair: tuple[str, Candidate]) -> None:
            measurers[pair[0]].prepare_one(pair[1])

        with Progress(f"{len(several)} problems", len(pairs)) as bar:
            failed = build_on_threads(
                prepare, pairs, self.options, deadline, self.clock, bar.step, len(several)
            )
        for number, reason in failed.items():
            measurers[pairs[number][0]].failed[pairs[number][1]] = reason
        return {key: (measurer,) for key, measurer in measurers.items()}

    @property
    def tag(self) -> str:
        """What else belongs to a key: the user's tag, and options that decide code."""
        values = {name: getattr(self.options, name) for name in _BUILT_WITH}
        return f"{self.options.autotune_cache_tag} {values}"

    def _measured(
        self, each: Open, stores: Stores, tell: Callable[[str], None], *built: ThreadMeasurer
    ) -> int:
        from irc.tuning.store import record_of

        problem, candidates = each.problem, each.candidates
        if not self.left:
            budget = self.options.max_autotune_budget
            told = f"{problem.what}: the budget of {budget} s is used up; the default stays"
            if budget:
                self._cut(told, tell)
            else:
                tell(told)  # which is what was asked for
            return 0
        self._count_product(problem)
        deadline = self.clock() + self.left
        try:
            outcome = measure(problem, candidates, self.options, deadline, self.clock, *built)
        except NoArguments as error:
            tell(f"{problem.what}: its arguments find no memory ({error}); the default stays")
            return 0
        winner = outcome.winner
        if winner is None:
            reasons = {candidates[n].label: reason for n, reason in outcome.reasons.items()}
            raise NoValidChoicesError(problem.what, reasons)
        told = _told(problem, candidates, outcome, winner)
        if outcome.cut:
            self._cut(told, tell)
            return winner
        tell(told)
        times = list(zip(candidates, outcome.seconds, strict=True))
        stores.put(each.key, record_of(each.key, problem, each.device, times, winner))
        return winner

    def _count_product(self, problem: Problem) -> None:
        """Count a product that it is open who computes, whatever is computed along with it, as one
        of `select_algorithm_precompile`."""
        function = main_of(problem.module())
        if function.level == "loop":
            return
        op = tunable_in(function)
        types = ", ".join(str(value.type) for value in op.operands)
        product = f"{op.attributes.get('callee')} {types}"
        if product not in self._products:
            self._products.add(product)
            metrics.add("select_algorithm_precompile")

    def _cut(self, told: str, tell: Callable[[str], None]) -> None:
        """The budget ended it: the program is not kept, so that the next compile goes on."""
        metrics.add("autotune_cut_short")
        self.provisional = self.provisional or told
        tell(told)


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


# -- measuring


class NoArguments(Exception):
    """The arguments of a problem, which are made for measuring, find no memory."""


def measure(
    problem: Problem,
    candidates: Sequence[Candidate],
    options: Options = DEFAULT,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    built: ThreadMeasurer | None = None,
) -> Timings:
    """The times of candidates, by this process or by workers, as the options say. built: what has
    built them already, or some of them.

    Counts one of `autotune_problems`. Raises NoArguments.
    """
    from irc.tuning.rounds import hold

    metrics.add("autotune_problems")
    bar = Progress(problem.what, len(candidates))
    with _measurer(problem, options, built) as measurer, bar:
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
def _measurer(
    problem: Problem, options: Options, built: ThreadMeasurer | None = None
) -> Iterator[Any]:
    """What builds and times candidates of a problem."""
    from irc.tuning import pool

    if built is not None:
        yield built
        built.close()
        return
    if options.autotune_in_subproc and pool.can_start():
        yield PoolMeasurer(problem, options, pool.shared_pool(devices_of(problem, options)))
        return
    here = ThreadMeasurer(problem, options)
    try:
        yield here
    finally:
        here.close()


class ThreadMeasurer:
    """Builds candidates on threads of this process, and times them in the caller's."""

    def __init__(self, problem: Problem, options: Options) -> None:
        from irc.tuning.measuring import InProcess

        self._inner = InProcess(problem, options)
        self._options = options
        self.seconds = self._inner.seconds
        self.close = self._inner.close
        self.failed: dict[Candidate, str] = {}

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        try:
            self._inner.begin()
        except (MemoryError, RuntimeError) as error:  # torch's for a CPU is a RuntimeError
            raise NoArguments(reason_of(error)) from error

    def prepare_one(self, candidate: Candidate) -> None:
        """Build one. Raises what building raises."""
        self._inner.prepare(candidate)

    def prepare(
        self,
        candidates: Sequence[Candidate],
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
    ) -> tuple[dict[int, str], dict[int, float]]:
        """Build all that are not built; gives why some have no program, by number, and no samples.
        """
        left = [n for n, each in enumerate(candidates)
                if not self._inner.has(each) and self.failed.get(each, UNBUILT) == UNBUILT]
        failed = build_on_threads(
            lambda number: self._inner.prepare(candidates[number]), left, self._options, deadline,
            clock, step,
        )  # fmt: skip
        reasons = {n: self.failed[each] for n, each in enumerate(candidates)
                   if each in self.failed and n not in left}  # fmt: skip
        return {**reasons, **{left[place]: why for place, why in failed.items()}}, {}


def build_on_threads(
    prepare: Callable[[Item], None],
    items: Sequence[Item],
    options: Options,
    deadline: float,
    clock: Callable[[], float],
    step: Callable[[], None],
    needed: int = 1,
) -> dict[int, str]:
    """As `on_threads`; on a GPU each thread has helping processes of its own, if there are any: a
    compiler of kernels holds the interpreter lock."""
    from irc.codegen.triton import workers

    helpers = workers.current()
    count = thread_count(options)
    groups = [] if helpers is None else helpers.split(count)

    def inside(number: int) -> AbstractContextManager[None]:
        return workers.using(groups[number] if number < len(groups) else None)

    return on_threads(prepare, items, count, deadline, clock, step, inside, needed)


def thread_count(options: Options) -> int:
    """How many threads build: the option, else one for each processor, up to 8."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return options.compile_threads or min(8, processors)


def on_threads(
    prepare: Callable[[Item], None],
    candidates: Sequence[Item],
    count: int,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    step: Callable[[], None] = lambda: None,
    inside: Callable[[int], AbstractContextManager[None]] = lambda number: nullcontext(),
    needed: int = 1,
) -> dict[int, str]:
    """`prepare` for each candidate, on `count` threads other than the caller's; why some failed, by
    number. The first ones, so many as are needed, are prepared whatever the deadline. Each thread
    works in the context that `inside` gives for its number."""
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
            if number >= needed and clock() >= deadline:
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
        self._own = pool.workers[0]
        if self._own.device is not None:  # each worker sees one, and calls that the first
            self._own = pool.workers[device_number(problem)]
            described["text"] = on_first(described["text"])
        self._request: Mapping[str, Any] = {"problem": described, "options": asked}

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        from irc.tuning.pool import WorkerFailure

        try:
            self._own.ask({"do": "begin", **self._for(Candidate())})
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
        """A sample, always from the problem's own device, so that all are timed on one."""
        return float(self._own.ask({"do": "seconds", **self._for(candidate)}))

    def _for(self, candidate: Candidate) -> dict[str, Any]:
        return {**self._request, "candidate": candidate.to_json()}


__all__ = ["Session", "choose", "choose_all", "measure", "on_threads"]
