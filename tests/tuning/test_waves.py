"""What is built at all: first the cost model's choices, then what it expects to be as good."""

import attrs
import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402, F401
from irc.ir.passes import PassContext  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.runtime import metrics  # noqa: E402
from irc.tuning import Candidate, choose_all, measuring, session  # noqa: E402
from irc.tuning import pool as pools  # noqa: E402
from irc.tuning.waves import (  # noqa: E402
    LEAST_SAVED,
    SLACK,
    UNPROMISING,
    gains,
    opening,
    shares_of,
    unpromising,
)
from tests.tuning.problems import CHOICES, lanes, squares  # noqa: E402

pytestmark = pytest.mark.usefixtures("cache", "workers")

LIBRARY, OWN = Candidate("aten"), Candidate("irc")


def expects(candidate, factor):
    return attrs.evolve(candidate, expected=factor)


def test_the_first_of_each_backend_and_what_nobody_knows_is_built_first():
    candidates = [LIBRARY, OWN, expects(lanes(4), 1.1), lanes(8), expects(lanes(16), 0.9)]
    assert opening(candidates) == [0, 1, 3]
    assert opening(CHOICES) == [0, 1, 2]


def test_what_the_model_expects_to_be_slower_than_the_fastest_is_not_built():
    candidates = [LIBRARY, OWN, expects(lanes(4), 1.0), expects(lanes(8), 0.5), lanes(16)]
    assert set(unpromising(candidates, {0: 1.0, 1: SLACK + 0.01, 4: 5.0})) == {2}
    assert set(unpromising(candidates, {0: 1.0, 1: 2 * SLACK + 0.01, 4: 5.0})) == {2, 3}
    assert set(unpromising(candidates, {0: 1.0, 1: SLACK, 4: 5.0})) == set()
    assert set(unpromising(candidates, {0: 9.0, 1: 1.0, 4: 5.0})) == set()


@pytest.mark.parametrize("failed", [{}, {1: float("inf")}])
def test_without_a_time_to_compare_with_all_are_built(failed):
    candidates = [LIBRARY, OWN, expects(lanes(4), 9.0)]
    assert unpromising(candidates, {0: 1.0, **failed}) == {}


def test_an_expectation_is_no_part_of_a_candidate():
    known = expects(lanes(4), 1.2)
    assert known == lanes(4) and hash(known) == hash(lanes(4))
    assert known.to_json() == lanes(4).to_json()


@pytest.mark.parametrize("apart", [False, True], ids=["here", "worker"])
def test_a_session_builds_what_is_worth_it(apart):
    options = Options(
        autotune_local_cache=False, autotune_in_subproc=apart, max_autotune_budget=600
    )
    here = PassContext(options=options)
    slow = [CHOICES[0], expects(lanes(4), 50.0), expects(lanes(16), 50.0)]
    asked = [(squares(size=n), slow) for n in (256, 512)]
    assert choose_all(asked, here) == [CHOICES[0]] * 2
    assert metrics.snapshot()["autotune_candidates"] == 2
    assert all("; 2 of them not built" in remark.message for remark in here.remarks)
    metrics.reset()
    good = [CHOICES[0], expects(lanes(4), 0.01), expects(lanes(16), 50.0)]
    choose_all([(squares(size=1024), good)], here)
    assert metrics.snapshot()["autotune_candidates"] == 2
    assert "; 1 of them not built" in here.remarks[-1].message


def test_with_a_filled_store_nothing_is_built_and_no_process_started(monkeypatch):
    pools.close_shared()
    options = {"max_autotune_pointwise": True, "autotune_in_subproc": True,
               "fx_graph_cache": False, "max_autotune_budget": 600}  # fmt: skip
    x = torch.ones(100_000)
    torch._dynamo.reset()
    torch.compile(torch.sin, backend="irc", options=options)(x)
    cold = metrics.snapshot()
    assert cold["autotune_candidates"] > 1 and cold["autotune_workers"] == 1
    pools.close_shared()
    metrics.reset()
    monkeypatch.setattr(pools.TuningWorker, "_start", None)
    monkeypatch.setattr(session, "Builds", None)
    torch._dynamo.reset()
    torch.compile(torch.sin, backend="irc", options=options)(x)
    stored = metrics.snapshot()
    assert stored["autotune_local_hits"] == cold["autotune_local_puts"] > 0
    names = ("autotune_problems", "autotune_candidates", "autotune_workers", "autotune_cut_short")
    assert not any(stored[name] for name in names)


def test_what_saves_little_of_the_time_of_all_is_not_built():
    candidates = [LIBRARY, OWN, expects(lanes(4), 1.0), expects(lanes(8), 0.5)]
    times = {0: 1.0, 1: 1.0}
    assert gains(candidates, times) == pytest.approx({2: SLACK - 1, 3: SLACK - 0.5})
    assert unpromising(candidates, times) == {}
    least = LEAST_SAVED / (SLACK - 1)
    assert set(unpromising(candidates, times, least * 1.01)) == set()
    dropped = unpromising(candidates, times, least * 0.99)
    assert set(dropped) == {2} and dropped[2].startswith(UNPROMISING)
    assert set(unpromising(candidates, times, 0.0)) == {2, 3}


def test_shares_are_parts_of_the_sum():
    assert shares_of({"a": 3.0, "b": 1.0}) == {"a": 0.75, "b": 0.25}
    assert shares_of({"a": 0.0, "b": 0.0}) == {"a": 0.5, "b": 0.5}
    assert shares_of({}) == {}


class Budgeted:
    """Problems whose candidates take a second to build, and a few milliseconds to be timed, by a
    clock of its own."""

    def __init__(self, monkeypatch, budget, seconds):
        self.now, self.built, self.timed = 0.0, [], set()
        outer = self

        class InProcess:
            def __init__(self, problem, options):
                self.what, self.done = problem.what, set()

            def begin(self):
                """There is nothing to make."""

            rest = close = begin

            def has(self, candidate):
                return candidate in self.done

            def prepare(self, candidate):
                outer.now += 1.0
                self.done.add(candidate)
                outer.built.append((self.what, candidate))

            def seconds(self, candidate):
                outer.now += 0.002
                outer.timed.add((self.what, candidate))
                return seconds[self.what] * (candidate.expected or 1.0)

        monkeypatch.setattr(measuring, "InProcess", InProcess)
        options = Options(autotune_local_cache=False, max_autotune_budget=budget, compile_threads=1)
        self.session = session.Session(options, lambda: self.now)
        self.told = []

    def choose(self, asked):
        return self.session.choose_all(asked, self.told.append)


LARGE, SMALL, OFTEN = (squares(size=n) for n in (1024, 256, 512))
TIMES = {LARGE.what: 10.0, SMALL.what: 1.0, OFTEN.what: 1.0}
THREE = [CHOICES[0], expects(lanes(4), 0.9), expects(lanes(16), 1.0)]
SEVERAL = [(LARGE, THREE), (SMALL, THREE), *[(OFTEN, THREE)] * 10]


def test_candidates_of_what_takes_most_of_the_time_are_built_first(monkeypatch):
    here = Budgeted(monkeypatch, 60, TIMES)
    winners = here.choose(SEVERAL)
    assert winners == [THREE[1]] * 12 and not here.session.provisional
    built = [(problem.what, candidate) for problem, candidate in (
        (LARGE, THREE[0]), (SMALL, THREE[0]), (OFTEN, THREE[0]), (LARGE, THREE[1]),
        (OFTEN, THREE[1]), (LARGE, THREE[2]), (OFTEN, THREE[2]), (SMALL, THREE[1]),
        (SMALL, THREE[2]),
    )]  # fmt: skip
    assert here.built == built


def test_a_budget_that_is_short_leaves_out_what_saves_little_and_times_the_rest(monkeypatch):
    here = Budgeted(monkeypatch, 8, TIMES)
    winners = here.choose(SEVERAL)
    assert winners == [THREE[1], THREE[0], *[THREE[1]] * 10]
    assert here.session.provisional.startswith(SMALL.what) and here.now < 8 + 1.0
    assert metrics.snapshot()["autotune_cut_short"] == 1
    assert (SMALL.what, THREE[0]) in here.timed


def test_what_the_others_leave_of_the_budget_is_for_what_was_cut(monkeypatch):
    unknown = [attrs.evolve(each, expected=0.0) for each in THREE]
    plain = [(problem, unknown) for problem, _ in SEVERAL]
    here = Budgeted(monkeypatch, 10, TIMES)  # of which building them at once takes 7
    here.choose(plain)
    assert len(here.built) == 9 and not here.session.provisional
    assert metrics.snapshot()["autotune_cut_short"] == 0


def test_what_is_a_small_share_of_all_has_no_further_candidates(monkeypatch):
    here = Budgeted(monkeypatch, 60, {**TIMES, SMALL.what: 1e-4})
    here.choose(SEVERAL)
    assert [each for each in here.built if each[0] == SMALL.what] == [(SMALL.what, THREE[0])]
    assert not here.session.provisional and any("2 of them not built" in each for each in here.told)


def test_where_the_first_ones_fail_the_others_are_built(monkeypatch):
    """Whatever is a small share of the time of all: it needs one that runs."""
    here = Budgeted(monkeypatch, 60, {**TIMES, SMALL.what: float("inf")})
    sample = measuring.InProcess.seconds

    def seconds(self, candidate):
        return 1e-9 if self.what == SMALL.what and candidate.expected else sample(self, candidate)

    monkeypatch.setattr(measuring.InProcess, "seconds", seconds)
    assert here.choose(SEVERAL)[1] in THREE[1:]
    assert len([each for each in here.built if each[0] == SMALL.what]) == 3
