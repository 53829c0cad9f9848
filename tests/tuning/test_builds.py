"""Threads that build: in turn, while others are timed, and what is left when they are stopped."""

import contextlib
import multiprocessing
import threading
import time

import attrs
import pytest

torch = pytest.importorskip("torch")

from irc.codegen.triton import turns, workers  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.tuning import measurers, measuring, session  # noqa: E402
from irc.tuning.builds import UNBUILT, Builds, Threads  # noqa: E402
from irc.tuning.measuring import InProcess  # noqa: E402
from tests.tuning.problems import CHOICES, squares  # noqa: E402

KEEPS = Options(compile_threads=3)


def builds(prepare, items, gpu=True, deadline=float("inf"), clock=time.monotonic, needed=1):
    return Builds(prepare, items, KEEPS, deadline, clock, lambda: None, gpu, needed)


@pytest.fixture
def helpers(monkeypatch):
    """As if processes compiled kernels."""
    crew = workers.Workers([])

    @contextlib.contextmanager
    def at_least(number):
        with workers.using(crew):
            yield

    monkeypatch.setattr(workers, "at_least", at_least)
    monkeypatch.setattr(workers, "count_to_measure", lambda: 4)
    return crew


def test_what_is_built_first_need_not_wait_for_the_rest(helpers):
    may = threading.Event()

    def prepare(item):
        if item:
            with turns.let_others():
                assert may.wait(20)

    with builds(prepare, range(4)) as begun:
        begun.wait([0])
        assert begun.apart and not may.is_set()
        may.set()
        begun.wait(range(4))
    assert not begun.failed


class Stub:
    """In place of `InProcess`: the larger problem is built once the smaller one has been timed."""

    timed, kept = threading.Event(), []

    def __init__(self, problem, options):
        self.small, self.done, self.held_bytes = "256" in problem.what, set(), 40

    def begin(self):
        Stub.kept.append(("begin", self.small))

    def rest(self):
        Stub.kept.append(("rest", self.small))

    def close(self):
        """There is nothing to close."""

    def has(self, candidate):
        return candidate in self.done

    def prepare(self, candidate):
        if not self.small:
            with turns.let_others():
                assert Stub.timed.wait(20)
        self.done.add(candidate)

    def seconds(self, candidate):
        if self.small:
            Stub.timed.set()
        return 1.0


@pytest.fixture
def on_gpu(helpers, monkeypatch):
    """Problems as if they were a GPU's, which has 1000 bytes."""
    plain = measurers.ThreadMeasurer.__init__

    def made(self, *known):
        plain(self, *known)
        self.gpu = True

    monkeypatch.setattr(measuring, "InProcess", Stub)
    monkeypatch.setattr(measurers.ThreadMeasurer, "__init__", made)
    monkeypatch.setattr(session, "gpu_bytes", lambda problem: 1000)
    monkeypatch.setattr(Stub, "timed", threading.Event())
    monkeypatch.setattr(Stub, "kept", [])


@pytest.mark.parametrize("informed", [False, True])
def test_a_gpu_times_what_is_built_while_the_rest_is_built(on_gpu, informed):
    """Nobody would come to an end otherwise: the larger problem waits for the smaller one."""
    expected = [attrs.evolve(each, expected=0.9 if number and informed else 0.0)
                for number, each in enumerate(CHOICES)]  # fmt: skip
    asked = [(squares(size=n), expected) for n in (256, 512)]
    one = session.Session(KEEPS.replace(autotune_local_cache=False))
    assert one.choose_all(asked, lambda text: None) == [CHOICES[0]] * 2
    assert Stub.timed.is_set() and not one.provisional


def test_arguments_stay_until_the_end_where_there_is_room(on_gpu):
    """Those of two problems are more than a tenth of 1000 bytes can hold of three."""
    expected = [CHOICES[0], attrs.evolve(CHOICES[1], expected=0.9)]
    asked = [(squares(size=n), expected) for n in (256, 512, 1024)]
    session.Session(KEEPS.replace(autotune_local_cache=False)).choose_all(asked, lambda text: None)
    before = Stub.kept[: next(n for n, what in enumerate(Stub.kept) if what[0] == "rest")]
    assert [what for what, _ in before].count("begin") >= 3
    assert [what for what, _ in Stub.kept].count("rest") == 4  # the third one's twice


def test_what_arguments_hold_is_counted_once_for_each_memory():
    memory = torch.zeros(100)
    held = InProcess(squares(), KEEPS)
    assert held.held_bytes == 0
    held._copies = [[memory, 3, memory[:50]], [memory, 3, torch.zeros(10)]]
    assert held.held_bytes == 2 * (400 + 40)


def test_a_cpu_times_nothing_while_others_are_built():
    done = []
    with builds(lambda item: time.sleep(0.01) or done.append(item), range(6), gpu=False) as begun:
        begun.wait([0])
        assert not begun.apart and sorted(done) == [*range(6)]


def test_threads_compute_in_turn_and_let_others_where_they_wait(helpers):
    inside, most, waiting, most_waiting = [], [], [], []

    def prepare(item):
        inside.append(item)
        most.append(len(inside))
        time.sleep(0.002)
        inside.remove(item)
        waiting.append(item)
        most_waiting.append(len(waiting))
        with turns.let_others():
            time.sleep(0.02)
        waiting.remove(item)
        assert workers.current() is not None

    with builds(prepare, range(8)) as begun:
        begun.wait(range(8))
    assert not begun.failed and max(most) == 1 < max(most_waiting)


def test_a_turn_within_a_turn_is_the_same_one():
    with turns.turn(), turns.turn():
        pass
    with turns.turn(), turns.let_others(), turns.turn():
        pass
    with turns.let_others():
        pass

    def take() -> None:
        with turns.turn():
            pass

    other = threading.Thread(target=take, daemon=True)
    with turns.turn():
        other.start()
        other.join(0.05)
        assert other.is_alive()
        with turns.let_others():
            other.join(20)
            assert not other.is_alive()


def test_a_fork_waits_for_no_thread_of_its_parent():
    def child() -> int:
        with turns.turn(), turns.let_others(), turns.turn():
            return 0

    holds, may = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.turn():
            holds.set()
            may.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    holds.wait(20)
    forked = multiprocessing.get_context("fork").Process(target=child)
    forked.start()
    forked.join(20)
    may.set()
    other.join()
    assert forked.exitcode == 0


def test_what_the_deadline_leaves_is_told(helpers):
    with builds(lambda item: None, "abc", deadline=0.0, clock=lambda: 1.0, needed=2) as begun:
        begun.wait(range(3))
    assert begun.failed == {2: UNBUILT}


def test_an_error_ends_what_has_not_begun(helpers):
    begun, may = [], threading.Event()

    def prepare(item):
        begun.append(item)
        with turns.let_others():
            may.wait(20)

    with pytest.raises(KeyError), builds(prepare, range(50)):
        time.sleep(0.05)
        raise KeyError
    may.set()
    time.sleep(0.1)
    assert len(begun) < 10


def test_why_one_is_not_prepared_is_known_when_it_is_waited_for():
    threads = Threads([].index, [3], 1)
    threads.wait([0])
    assert threads.failed[0].startswith("ValueError")
