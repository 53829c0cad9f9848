"""Whatever ends workers, holds locks or hangs: right results, no waiting far past the budget."""

import math
import random
import threading
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.tuning import builds, measurers, session, store  # noqa: E402
from irc.tuning import pool as pools  # noqa: E402
from irc.tuning.measurers import GRACE_SECONDS, KILLED_AGAIN, PoolMeasurer  # noqa: E402
from irc.tuning.pool import LIMIT_SECONDS, WorkerFailure, WorkerKilled  # noqa: E402
from irc.tuning.rounds import Timings, hold  # noqa: E402
from tests.tuning.problems import CHOICES, squares  # noqa: E402

pytestmark = pytest.mark.usefixtures("cache", "workers")


class Answers:
    """A pool of one worker whose answers are given, in order: numbers, or what is raised."""

    def __init__(self, *answers):
        self.answers, self.limits, self.workers, self.device = list(answers), [], [self], None

    def ask(self, request, limit=LIMIT_SECONDS):
        self.limits.append(limit)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def each(self, ask, items):
        return [ask(self, item) for item in items]


def prepared(measurer):
    return measurer.prepare(CHOICES[:2], math.inf, lambda: 0.0, lambda: None)


def test_what_something_else_ended_is_asked_again():
    killed = [WorkerKilled("killed")] * KILLED_AGAIN
    pool = Answers(*killed, 2.0, *killed, 1.0)
    assert prepared(PoolMeasurer(squares(), Options(), pool)) == ({}, {0: 2.0, 1: 1.0})
    pool = Answers(2.0, *killed, WorkerKilled("killed"))
    assert prepared(PoolMeasurer(squares(), Options(), pool)) == (
        {1: builds.KILLED}, {0: 2.0}
    )


def test_a_crash_is_a_candidates_own_and_not_tried_again():
    pool = Answers(2.0, WorkerFailure("SIGSEGV"))
    assert prepared(PoolMeasurer(squares(), Options(), pool)) == ({1: "SIGSEGV"}, {0: 2.0})
    assert not pool.answers


def test_where_every_worker_is_ended_the_default_stays(monkeypatch):
    pool = Answers(*[WorkerKilled("killed")] * 9)
    measurer = PoolMeasurer(squares(), Options(), pool)
    measurer.begin = lambda: None

    @contextmanager
    def given(*_):
        yield measurer

    monkeypatch.setattr(session, "_measurer", given)
    told = []
    one = session.Session(Options(autotune_local_cache=False))
    assert one.choose(squares(), CHOICES, told.append) == CHOICES[0]
    assert "killed" in told[0] and "the default stays" in told[0]


@pytest.mark.parametrize("now, limit", [(0.0, LIMIT_SECONDS), (95.0, 5.0), (200.0, 0.0)])
def test_a_sample_is_waited_for_no_longer_than_the_budget_lasts(now, limit):
    pool = Answers(1.0, 2.0, 1.0, 2.0)
    measurer = PoolMeasurer(squares(), Options(), pool, 100.0, lambda: now)
    prepared(measurer)
    measurer.seconds(CHOICES[0])
    expected = min(LIMIT_SECONDS, limit + GRACE_SECONDS)
    assert pool.limits == [LIMIT_SECONDS, expected, expected]


def test_what_is_ended_by_the_deadline_keeps_the_time_that_it_had():
    now = [0.0]

    def sample(choice):
        now[0] += 1.0
        if now[0] > 5:
            raise WorkerFailure("it took more than 1 s")
        return 2.0 - choice

    held = hold([0, 1], sample, 5.5, clock=lambda: now[0])
    assert held.cut and not held.reasons and held.seconds == (2.0, 1.0)


def test_others_that_measure_are_waited_for_by_twice_the_budget_in_all(monkeypatch):
    now, asked = [0.0], []

    @contextmanager
    def alone(self, key, seconds):
        asked.append(seconds)
        now[0] += min(seconds, 20.0)  # another process has it
        yield

    monkeypatch.setattr(store.Stores, "alone", alone)
    monkeypatch.setattr(
        session, "measure", lambda p, c, *rest: Timings((1.0,) * len(c), {}, 3)
    )
    one = session.Session(Options(autotune_in_subproc=True), lambda: now[0])
    problems = [(squares(size=n), CHOICES) for n in (256, 512, 1024)]
    assert one.choose_all(problems, lambda text: None) == [CHOICES[0]] * 3
    assert asked == [30.0, 10.0, 0.0]


def test_workers_killed_at_random_moments_of_a_compile_change_no_result():
    randoms, ended = random.Random(0), threading.Event()
    options = {"max_autotune": True, "autotune_in_subproc": True, "max_autotune_budget": 5,
               "fx_graph_cache": False, "autotune_local_cache": False}  # fmt: skip
    x, w = torch.randn(64, 96), torch.randn(96, 128)

    def function(x, w):
        return torch.softmax(x @ w, -1), (x.sin() * 2).sum(0)

    def kill():
        while not ended.wait(randoms.uniform(0.1, 3.0)):
            pools.shared_pool(None).workers[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        torch._dynamo.reset()
        results = torch.compile(function, backend="irc", options=options)(x, w)
    finally:
        ended.set()
        killer.join()
    for mine, eager in zip(results, function(x, w), strict=True):
        torch.testing.assert_close(mine, eager)
    assert irc.metrics.autotune_workers > 0


def test_what_has_no_time_for_no_fault_of_its_own_may_stay():
    killed = builds.reason_of(WorkerKilled("its worker was ended by SIGKILL (last words)"))
    fault = builds.reason_of(WorkerFailure("its worker was ended by SIGKILL, it says"))
    assert measurers.untried_of({0: fault, 2: builds.UNBUILT, 1: killed}) == 1
    assert measurers.untried_of({0: fault, 2: builds.UNBUILT}) == 2
    assert measurers.untried_of({0: fault, 1: "ValueError: no tiles"}) is None
