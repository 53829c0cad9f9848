"""Choosing: what is remembered, what is built where, what is told, and what can't be chosen."""

import math
import random
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from irc.ir.passes import PassContext  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.runtime import metrics  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.tuning import (  # noqa: E402
    Candidate,
    NoValidChoicesError,
    Problem,
    builds,
    choose,
    choose_all,
    session,
)
from irc.tuning import pool as pools  # noqa: E402
from irc.tuning.measuring import (  # noqa: E402
    COLD_BYTES,
    MOST_COPIES,
    Runner,
    arguments_of,
    copies_of,
)
from irc.tuning.problem import bucket_of  # noqa: E402
from irc.tuning.rounds import Timings  # noqa: E402
from tests.tuning.interrupts import interrupted  # noqa: E402
from tests.tuning.problems import CHOICES, FAILS, REST, lanes, squares  # noqa: E402

pytestmark = pytest.mark.usefixtures("cache", "workers")

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty_worker.py"))]
KEEPS = Options(autotune_local_cache=False)


def context(options=KEEPS):
    return PassContext(options=options)


def timed(monkeypatch, *seconds, **more):
    """Let all measurements come out so; the problems that were measured."""
    measured = []

    def measure(problem, candidates, *rest):
        measured.append(problem)
        return Timings(seconds[: len(candidates)], {}, 3, **more)

    monkeypatch.setattr(session, "measure", measure)
    return measured


@pytest.mark.parametrize("apart", [False, True], ids=["here", "worker"])
def test_what_fails_has_no_time_and_another_one_wins(apart):
    options = KEEPS.replace(autotune_in_subproc=apart)
    timings = session.measure(squares(), [*CHOICES, FAILS, Candidate("aten")], options)
    assert timings.winner in (0, 1, 2) and set(timings.reasons) == {3, 4}
    assert all(0 < s < 1 for s in timings.seconds[:3]) and math.isinf(timings.seconds[3])
    assert "the schedule is for a gpu, not a cpu" in timings.reasons[3]


def test_workers_killed_at_random_moments_hang_nothing(monkeypatch):
    """What was killed has no time; whoever is timed has the right one."""
    randoms = random.Random(0)
    answers = {choice: {"do": "value", "value": 3.0 - k} for k, choice in enumerate(CHOICES)}
    monkeypatch.setattr(session.PoolMeasurer, "_for", lambda self, choice: answers[choice])
    with pools.Pool(None, FAULTY) as pool:
        ended = threading.Event()

        def kill():
            while not ended.wait(randoms.uniform(0.05, 0.4)):
                pool.workers[0].kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for _ in range(3):
                measurer = session.PoolMeasurer(squares(), Options(), pool)
                measurer.begin = lambda: None
                monkeypatch.setattr(session, "_measurer", lambda *_, m=measurer: nullcontext(m))
                try:
                    timings = session.measure(squares(), CHOICES, Options())
                except session.NoArguments:
                    continue  # the default's worker was killed each time
                for number, seconds in enumerate(timings.seconds):
                    killed = timings.reasons.get(number) == builds.KILLED
                    assert seconds == (math.inf if killed else 3.0 - number)
        finally:
            ended.set()
            killer.join()
        assert pool.ask({"do": "value", "value": 1}) == 1


def test_building_candidates_counts_no_programs_of_the_users():
    session.measure(squares(), CHOICES[:2], KEEPS)
    counted = {name: n for name, n in metrics.snapshot().items() if n}
    assert counted == {"autotune_problems": 1, "autotune_candidates": 2}


def test_the_same_problem_is_measured_once_in_a_compile(monkeypatch):
    measured = timed(monkeypatch, 3.0, 1.0, 2.0)
    here = context()
    assert choose(squares("x"), CHOICES, here) == choose(squares("z"), CHOICES, here) == CHOICES[1]
    assert len(measured) == 1
    choose(squares("x"), CHOICES, context())
    assert len(measured) == 2
    (remark,) = {remark.message for remark in here.remarks}
    assert remark == ("squares 256: irc lanes = 4 of 3 candidates, 1000000.00 us, "
                      "3.00 times as fast as the first")  # fmt: skip


def test_what_was_kept_is_not_measured_again(monkeypatch):
    measured = timed(monkeypatch, 3.0, 1.0, 2.0)
    for _ in range(3):
        assert choose(squares(), CHOICES, context(Options())) == CHOICES[1]
    assert len(measured) == 1
    choose(squares(), CHOICES, context(Options(autotune_cache_tag="other")))
    assert len(measured) == 2


def test_what_the_budget_cut_is_not_kept(monkeypatch):
    measured = timed(monkeypatch, 3.0, 1.0, 2.0, cut=True)
    for _ in range(2):
        choose(squares(), CHOICES, context(Options()))
    assert len(measured) == 2


def test_without_seconds_left_the_default_stays(monkeypatch):
    measured = timed(monkeypatch, 3.0, 1.0, 2.0)
    here = context(KEEPS.replace(max_autotune_budget=0))
    assert choose(squares(), CHOICES, here) == CHOICES[0] and not measured
    assert "the budget of 0 s is used up" in here.remarks[0].message


def test_several_problems_are_built_at_once_and_each_is_measured():
    here = context()
    asked = [(squares(size=n), CHOICES[:2]) for n in (256, 512, 256)]
    winners = choose_all(asked, here)
    assert len(winners) == 3 and winners[0] == winners[2]
    assert metrics.snapshot()["autotune_problems"] == 2 and not here.provisional


def test_what_could_not_be_built_together_is_told_of_its_own_problem():
    asked = [(squares(), [CHOICES[0], FAILS]), (squares(size=512), CHOICES[:2])]
    here = context()
    assert choose_all(asked, here)[0] == CHOICES[0]
    assert ["failed" in remark.message for remark in here.remarks] == [True, False]


def test_a_program_whose_measuring_was_cut_short_is_not_kept(monkeypatch):
    cut = [True]

    def measure(problem, candidates, *rest):
        return Timings((1.0,) * len(candidates), {}, 3, cut=cut[0])

    monkeypatch.setattr(session, "measure", measure)
    options = {"max_autotune_pointwise": True}
    for expected in (0, 1):
        torch._dynamo.reset()
        torch.compile(torch.sin, backend="irc", options=options)(torch.ones(100_000))
        assert metrics.snapshot()["cache_puts"] >= expected
        assert bool(metrics.snapshot()["cache_puts"]) == bool(expected)
        cut[0] = False
    assert metrics.snapshot()["autotune_cut_short"] == 1


def test_what_comes_from_memory_has_copies_that_no_cache_holds():
    weight, more = torch.ones(1 << 20)[::2], torch.ones(4)
    copies = copies_of([3, weight, more], (1,))
    assert len(copies) == min(MOST_COPIES, COLD_BYTES // (4 << 20) + 1)
    assert {c[2].data_ptr() for c in copies} == {more.data_ptr()}
    assert len({c[1].data_ptr() for c in copies}) == len(copies)
    assert all(torch.equal(c[1], weight) and c[1].stride() == (2,) for c in copies)
    assert copies_of([weight], ()) == [[weight]]


def test_what_is_measured_takes_its_seconds_from_the_budget():
    now = [0.0]
    one = session.Session(KEEPS, lambda: now[0])

    def slow(problem, candidates, options, deadline, clock):
        assert deadline == now[0] + one.left
        now[0] += 10.0
        return Timings((1.0, 2.0), {}, 3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "measure", slow)
        one.choose(squares(), CHOICES[:2], print)
        assert one.left == 5.0
        one.choose(squares(size=512), CHOICES[:2], print)
        assert one.left == 0.0


def test_another_machines_programs_are_not_measured(monkeypatch):
    measured = timed(monkeypatch, 3.0, 1.0, 2.0)
    here = context()
    assert choose(squares(target=Target.named("avx2")), CHOICES, here) == CHOICES[0]
    assert not measured and "this machine is not the target" in here.remarks[0].message


def test_one_candidate_alone_is_taken_as_it_is(monkeypatch):
    assert choose(squares(), [lanes(4)], context()) == lanes(4)


def test_arguments_that_find_no_memory_leave_the_default():
    text = squares(size=1 << 44).text
    here = context()
    assert choose(Problem(text, REST, "huge"), CHOICES, here) == CHOICES[0]
    assert "its arguments find no memory" in here.remarks[0].message


def test_nothing_is_built_past_the_deadline_but_the_first():
    built = []
    failed = builds.on_threads(built.append, CHOICES, 2, deadline=0.0, clock=lambda: 1.0)
    assert built == CHOICES[:1] and set(failed.values()) == {builds.UNBUILT}


def test_ctrl_c_while_threads_build_begins_nothing_new():
    built = []

    def build(candidate):
        built.append(candidate)
        time.sleep(0.3)

    with interrupted(0.1), pytest.raises(KeyboardInterrupt):
        builds.on_threads(build, [lanes(4)] * 50, 1)
    time.sleep(0.4)
    assert len(built) <= 2


def test_a_runner_computes_what_the_problem_says():
    problem = squares(size=37)
    (x,) = arguments_of(problem)
    (other,) = arguments_of(problem)
    assert torch.equal(x, other) and x.abs().max() <= 1 and x.std() > 0.3
    for candidate in CHOICES:
        runner = Runner(problem, candidate)
        assert 0 < runner.seconds([[x]]) < 1
        assert torch.equal(runner._call(x)[0], x * x)


def test_fake_tensors_of_a_compile_are_left_alone():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert session.measure(squares(), CHOICES[:2], KEEPS).winner is not None


def test_a_size_stands_for_its_bucket():
    sizes = (0, 1, 16, 17, 24, 25, 33, 48, 49, 64, 1000)
    assert [bucket_of(n) for n in sizes] == [0, 1, 16, 24, 24, 32, 48, 48, 64, 64, 1024]


def test_an_error_tells_what_was_tried_and_what_to_allow(monkeypatch):
    with pytest.raises(NoValidChoicesError, match="no candidate is left"):
        choose(squares(), [], context())
    with pytest.raises(NoValidChoicesError) as error:
        choose(squares(), [FAILS, Candidate("aten")], context())
    text = str(error.value)
    assert "NoValidChoicesError: squares 256: 2 were tried" in text
    assert "irc num_warps = 4: " in text and "the schedule is for a gpu" in text
    assert "max_autotune_gemm_backends" in text
    timed(monkeypatch, math.inf, math.inf, math.inf)
    with pytest.raises(NoValidChoicesError):
        choose(squares(), CHOICES, context())


def test_a_problem_is_timed_on_the_device_of_its_tensors():
    """A worker sees one device, and calls it the first."""
    asked = []

    def worker(device):
        return SimpleNamespace(
            device=device, ask=lambda request, *_: asked.append((device, request)) or 1.0
        )

    workers = [worker("0"), worker("GPU-7")]
    for place, device in (("cuda:0", "0"), ("cuda:1", "GPU-7"), ("cuda", "0")):
        problem = Problem(f'tensor<[2] x f32, "{place}">', REST)
        measurer = session.PoolMeasurer(problem, KEEPS, SimpleNamespace(workers=workers))
        measurer.begin()
        assert measurer.seconds(CHOICES[0]) == 1.0
        assert {name for name, _ in asked} == {device}
        assert all("cuda:1" not in request["problem"]["text"] for _, request in asked)
        asked.clear()
