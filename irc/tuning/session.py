"""Choosing in a compile: what was chosen already, how many seconds are left, who measures.

    winner = choose(problem, candidates, context)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir.passes import PassContext
from irc.options.options import DEFAULT, Options
from irc.runtime import metrics
from irc.tuning.applying import tunable_in
from irc.tuning.builds import UNBUILT, Builds, reason_of
from irc.tuning.candidate import Candidate, NoValidChoicesError
from irc.tuning.devices import device_name, devices_of, gpu_bytes, is_here
from irc.tuning.measurers import (
    BUILT_WITH,
    NoArguments,
    PoolMeasurer,
    ThreadMeasurer,
    untried_of,
)
from irc.tuning.open_problems import Built, Open, in_turns
from irc.tuning.problem import Problem, main_of
from irc.tuning.progress import Progress
from irc.tuning.waves import UNPROMISING, gains, opening, shares_of, unpromising

if TYPE_CHECKING:
    from irc.tuning.rounds import Timings
    from irc.tuning.store import Stores

MOST_FAILED = 3
"""Candidates that failed of which the remark tells why."""
KEPT_SHARE = 0.1
"""Of a GPU's memory, what the arguments of all problems may keep until each is timed to the end."""
LOCK_FACTOR = 2.0
"""Another process's tuning of the same is waited for so many times the budget."""
BUILDING_SHARE = 0.7
"""Of the seconds that are left, what building the candidates of several problems may take ..."""
TIMING = 10.0
"""... or all but so many times what timing the first ones took (five times as many rounds, of twice
as many candidates) and what the longest of them took to build, if that is more."""

NO_SECONDS = "the budget is used up"

Asked = tuple[Problem, Sequence[Candidate]]


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
    #: Machine code of kernels, by what is compiled.
    _kernels: dict[str, Any] = attrs.field(factory=dict)
    #: Seconds that the longest one took of what was built last.
    _longest: float = 0.0
    #: Bytes of a GPU that arguments may still keep.
    _room: float = 0.0

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
            if key in open_:
                open_[key] = attrs.evolve(open_[key], count=open_[key].count + 1)
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
        if is_here(problem.target):
            return None
        tell(f"{problem.what}: this machine is not the target; the default stays")
        return candidates[0]

    def _measure_all(
        self, open_: Mapping[str, Open], stores: Stores, tell: Callable[[str], None]
    ) -> None:
        """Measure what no store has. What others measure is waited for in the order of the keys, so
        that nobody waits for who waits for him, and for all of them `LOCK_FACTOR` times the budget
        at most."""
        with ExitStack() as locks:
            left = []
            until = self.clock() + LOCK_FACTOR * self.options.max_autotune_budget
            for key, each in sorted(open_.items()):
                locks.enter_context(stores.alone(key, max(0.0, until - self.clock())))
                winner = _stored(each.problem, each.candidates, stores, key, tell)
                if winner is None:
                    left.append(each)
                else:
                    self._chosen[key] = each.candidates[winner]
            order = {key: place for place, key in enumerate(open_)}
            left.sort(key=lambda each: order[each.key])
            with Built() as built:
                with self._counted():
                    self._build_all(left, built)
                self._measure_by_shares(left, built, stores, tell)

    def _measure_by_shares(
        self, several: Sequence[Open], built: Built, stores: Stores, tell: Callable[[str], None]
    ) -> None:
        """Measure one problem after the other. Each has its share of the seconds that are left, or
        an equal part if that is more; those whose end was cut go on with what the others left, the
        ones first that take most of the program's time."""

        def settle(each: Open, outcome: Timings | str) -> None:
            winner = self._winner(each, outcome, stores, tell)
            self._chosen[each.key] = each.candidates[winner]

        cut: list[tuple[Open, Timings]] = []
        ready = built.first_ready(several)
        for place, each in enumerate(ready):
            rest = shares_of({one.key: built.shares[one.key] for one in ready[place:]})
            part = max(rest[each.key], 1 / len(rest))
            with self._counted():
                outcome = self._timed(each, part, *built.of(each))
            if not isinstance(outcome, str) and outcome.cut and len(several) > 1:
                cut.append((each, outcome))
            else:
                settle(each, outcome)
        for each, before in sorted(cut, key=lambda pair: -built.shares[pair[0].key]):
            for measurer in built.of(each):
                measurer.goes_on = True
            with self._counted():
                outcome = self._timed(each, 1.0, *built.of(each)) if self.left else before
            settle(each, before if isinstance(outcome, str) else outcome)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What is done inside takes its seconds from the budget."""
        start = self.clock()
        try:
            yield
        finally:
            self.spent += self.clock() - start

    def _build_all(self, several: Sequence[Open], built: Built) -> None:
        """Build candidates of several problems at once: of each problem first the first, and so on,
        as long as there is time. Where the cost model knows candidates, the first of each backend
        are timed before others are built, those first that may save most. On a GPU what is built is
        timed while the rest is being built."""
        from irc.tuning import pool

        built.shares = shares_of({each.key: each.count for each in several})
        informed = any(candidate.expected for each in several for candidate in each.candidates)
        if not several or not self.left or len(several) < 2 and not informed:
            return
        if self.options.autotune_in_subproc and pool.can_start():
            return  # each worker builds what it times
        measurers = {each.key: ThreadMeasurer(each.problem, self.options) for each in several}
        built.measurers = measurers
        self._room = KEPT_SHARE * gpu_bytes(several[0].problem)
        start, left = self.clock(), self.left
        deadline = start + BUILDING_SHARE * left
        first = {each.key: opening(each.candidates) for each in several}
        self._begin(built, several, in_turns(several, first), deadline, len(several))
        if any(len(first[each.key]) < len(each.candidates) for each in several):
            looked, spent = {}, 0.0
            for each in several:
                built.wait([each])
                begun = self.clock()
                times = self._looked(each, measurers[each.key], first[each.key], deadline)
                looked[each.key] = times
                spent += self.clock() - begun
            reserved = TIMING * spent + self._longest
            deadline = max(deadline, start + left - reserved)
            built.shares = _shares(several, looked)
            rest = _worthwhile(several, measurers, looked, built.shares)
            self._begin(built, several, rest, deadline, 0)
        for measurer in measurers.values():
            measurer.goes_on = False

    def _begin(
        self,
        built: Built,
        several: Sequence[Open],
        numbers: Sequence[tuple[str, int]],
        deadline: float,
        needed: int,
    ) -> None:
        """Begin to build candidates of problems, by their keys and numbers, in this order; the
        first ones, so many as are needed, whatever the deadline. All are built when this returns
        where they can't be timed meanwhile."""
        candidates = {each.key: each.candidates for each in several}
        pairs = [(key, candidates[key][number]) for key, number in numbers]
        measurers = built.measurers
        self._longest = 0.0

        def prepare(pair: tuple[str, Candidate]) -> None:
            start = self.clock()
            measurers[pair[0]].prepare_one(pair[1])
            self._longest = max(self._longest, self.clock() - start)

        gpu = any(measurers[key].gpu for key, _ in numbers)
        bar = Progress(f"{len(several)} problems", len(pairs))
        builds = Builds(prepare, pairs, self.options, deadline, self.clock, bar.step, gpu, needed,
                        self._kernels)  # fmt: skip
        built.begin(numbers, builds, bar)
        if not builds.apart:
            built.wait(several)
            bar.close()

    def _looked(
        self, each: Open, measurer: ThreadMeasurer, first: Sequence[int], deadline: float
    ) -> dict[int, float] | None:
        """The times of the candidates of a problem that have these numbers, of a few rounds; None
        where its arguments find no memory, so that nothing of it is measured."""
        from irc.tuning.rounds import LEAST_ROUNDS, hold

        usable = [n for n in first if each.candidates[n] not in measurer.failed]
        try:
            measurer.begin()
            held = hold(usable, lambda n: measurer.seconds(each.candidates[n]), deadline,
                        reason_of, self.clock, LEAST_ROUNDS)  # fmt: skip
        except NoArguments:
            return None
        finally:
            self._room = measurer.pause(self._room)
        return dict(zip(usable, held.seconds, strict=True))

    @property
    def tag(self) -> str:
        """What else belongs to a key: the user's tag, and options that decide code."""
        values = {name: getattr(self.options, name) for name in BUILT_WITH}
        return f"{self.options.autotune_cache_tag} {values}"

    def _timed(self, each: Open, part: float, *built: ThreadMeasurer) -> Timings | str:
        """The times of a problem's candidates, within a part of the seconds that are left; or why
        there are none: no seconds are left, or its arguments find no memory."""
        if not self.left:
            return NO_SECONDS
        self._count_product(each.problem)
        deadline = self.clock() + self.left * part
        try:
            return measure(
                each.problem, each.candidates, self.options, deadline, self.clock, *built
            )
        except NoArguments as error:
            return str(error)

    def _winner(
        self, each: Open, outcome: Timings | str, stores: Stores, tell: Callable[[str], None]
    ) -> int:
        """The number of a problem's candidate that its times choose, told and kept."""
        from irc.tuning.store import record_of

        problem, candidates = each.problem, each.candidates
        if outcome == NO_SECONDS:
            budget = self.options.max_autotune_budget
            told = f"{problem.what}: the budget of {budget} s is used up; the default stays"
            if budget:
                self._cut(told, tell)
            else:
                tell(told)  # which is what was asked for
            return 0
        if isinstance(outcome, str):
            tell(f"{problem.what}: its arguments find no memory ({outcome}); the default stays")
            return 0
        winner = outcome.winner
        if winner is None:
            untried = untried_of(outcome.reasons) if outcome.cut else None
            if untried is not None:
                self._cut(f"{problem.what}: the budget ended before one had a time; "
                          f"{candidates[untried].label} stays", tell)  # fmt: skip
                return untried
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


def _shares(
    several: Sequence[Open], looked: Mapping[str, Mapping[int, float] | None]
) -> dict[str, float]:
    """The problems' shares of the time that they take together, as often as each is asked."""
    least = {key: min((times or {}).values(), default=math.inf) for key, times in looked.items()}
    return shares_of({each.key: each.count * least[each.key] if least[each.key] < math.inf else 0.0
                      for each in several})  # fmt: skip


def _worthwhile(
    several: Sequence[Open],
    measurers: Mapping[str, ThreadMeasurer],
    looked: Mapping[str, Mapping[int, float] | None],
    shares: Mapping[str, float],
) -> list[tuple[str, int]]:
    """Keys and numbers of the candidates that are worth being built after the first ones: those
    first that may save most, a problem's second one counting half, and so on. Of the others the
    measurers are told why not."""
    order: list[tuple[float, str, int]] = []
    for each in several:
        times, share = looked[each.key], shares[each.key]
        if times is None:
            continue
        if all(map(math.isinf, times.values())):
            share = 1.0  # it needs one that runs
        dropped = unpromising(each.candidates, times, share)
        measurers[each.key].failed.update({each.candidates[n]: w for n, w in dropped.items()})
        left = {n: gain for n, gain in gains(each.candidates, times).items() if n not in dropped}
        ranked = sorted(left, key=lambda n: -left[n])
        order += [(share * left[n] / place, each.key, n) for place, n in enumerate(ranked, 1)]
    return [(key, number) for _, key, number in sorted(order, key=lambda entry: -entry[0])]


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
    wrong = {n: why for n, why in outcome.reasons.items() if not why.startswith(UNPROMISING)}
    failed = "".join(
        f"; {candidates[number].label} failed: {reason}"
        for number, reason in list(wrong.items())[:MOST_FAILED]
    )
    if len(outcome.reasons) > len(wrong):
        failed += f"; {len(outcome.reasons) - len(wrong)} of them not built"
    cut = "; the budget ended it" if outcome.cut else ""
    return (f"{problem.what}: {candidates[winner].label} of {len(candidates)} candidates, "
            f"{seconds[winner] * 1e6:.2f} us{gain}{failed}{cut}")  # fmt: skip


# -- measuring


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
    with _measurer(problem, options, built, deadline, clock) as measurer, bar:
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


@contextmanager
def _measurer(
    problem: Problem,
    options: Options,
    built: ThreadMeasurer | None,
    deadline: float,
    clock: Callable[[], float],
) -> Iterator[Any]:
    """What builds and times candidates of a problem."""
    from irc.tuning import pool

    if built is not None:
        yield built
        built.rest()
        return
    if options.autotune_in_subproc and pool.can_start():
        workers = pool.shared_pool(devices_of(problem, options))
        yield PoolMeasurer(problem, options, workers, deadline, clock)
        return
    here = ThreadMeasurer(problem, options)
    try:
        yield here
    finally:
        here.close()


__all__ = ["Session", "choose", "choose_all", "measure"]
