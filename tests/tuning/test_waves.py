"""What is built at all: first the cost model's choices, then what it expects to be as good."""

import attrs
import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402, F401
from irc.ir.passes import PassContext  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.runtime import metrics  # noqa: E402
from irc.tuning import Candidate, choose_all, session  # noqa: E402
from irc.tuning import pool as pools  # noqa: E402
from irc.tuning.waves import SLACK, opening, unpromising  # noqa: E402
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
    monkeypatch.setattr(session, "build_on_threads", None)
    torch._dynamo.reset()
    torch.compile(torch.sin, backend="irc", options=options)(x)
    stored = metrics.snapshot()
    assert stored["autotune_local_hits"] == cold["autotune_local_puts"] > 0
    names = ("autotune_problems", "autotune_candidates", "autotune_workers", "autotune_cut_short")
    assert not any(stored[name] for name in names)
