"""What was measured is kept: locally, on a server; hostile texts and failing servers are misses."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("redis")

from irc.cache.folder import CacheWarning  # noqa: E402
from irc.cache.locks import locked  # noqa: E402
from irc.ir.passes import PassContext  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.runtime import metrics  # noqa: E402
from irc.tuning import Candidate, session, store  # noqa: E402
from irc.tuning.rounds import Timings  # noqa: E402
from irc.tuning.store import RedisStore, problem_key, record_of, stores_of, winner_of  # noqa: E402
from tests.tuning import redis_server  # noqa: E402
from tests.tuning.problems import CHOICES, lanes, squares  # noqa: E402
from tests.tuning.redis_server import StubServer  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
server = redis_server.server


@pytest.fixture(autouse=True)
def cache(cache, monkeypatch):
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    store._told.clear()
    store._servers.clear()
    return cache


def record(winner=1, key="ab"):
    times = [(each, 1e-6) for each in CHOICES]
    return record_of(key, squares(), "cpu", times, winner)


def remote(url, **more):
    options = Options(autotune_remote_cache=True, autotune_remote_url=url, **more)
    return stores_of(options)


def test_a_server_keeps_text_that_people_read(server):
    import redis

    stores = remote(server, autotune_local_cache=False)
    assert stores.get("ab", CHOICES) is None
    stores.put("ab", record())
    assert stores.get("ab", CHOICES) == (1, "remote")
    kept = json.loads(redis.Redis.from_url(server, protocol=2).getrange("irc:tuning:1:ab", 0, -1))
    assert kept["winner"] == CHOICES[1].to_json() and kept["problem"] == "squares 256"
    assert kept["microseconds"][0] == ["irc", 1.0]
    assert metrics.snapshot()["autotune_remote_puts"] == 1


def test_what_the_server_has_is_kept_here_too(server):
    remote(server, autotune_local_cache=False).put("cd", record(2, "cd"))
    both = remote(server)
    assert both.get("cd", CHOICES) == (2, "remote")
    assert both.get("cd", CHOICES) == (2, "local")


def test_offline_asks_no_server():
    with StubServer() as stub:
        stores = remote(stub.url, autotune_store="offline")
        stores.put("ab", record())
        assert stores.get("ab", CHOICES) == (1, "local") and not stub.asked


def test_readonly_keeps_nothing(cache):
    with StubServer() as stub:
        stores = remote(stub.url, autotune_store="readonly")
        stores.put("ab", record())
        assert stores.get("ab", CHOICES) is None and b"SET" not in stub.asked
    assert not list(cache.glob("*.entry"))


@pytest.mark.parametrize("mode", ["silent", "dies", "nonsense"])
def test_a_server_that_fails_is_a_miss_told_once_and_left_alone(mode):
    with StubServer() as stub:
        stores = remote(stub.url, autotune_local_cache=False)
        stores.put("ab", record())
        stub.mode = mode
        start = time.monotonic()
        with pytest.warns(CacheWarning, match="the remote cache doesn't answer") as told:
            for _ in range(5):
                assert stores.get("ab", CHOICES) is None
                stores.put("cd", record(1, "cd"))
        assert len(told) == 1 and "127.0.0.1" not in str(told[0].message)
        assert time.monotonic() - start < 3 and len(stub.asked) <= 4


def test_no_server_is_a_miss():
    kept = RedisStore("redis://127.0.0.1:1/0")
    with pytest.warns(CacheWarning):
        assert kept.get("ab") is None
    assert not kept.put("ab", b"{}")
    store._told.clear()
    with pytest.warns(CacheWarning):
        assert RedisStore("nonsense://here").get("ab") is None


HOSTILE = {
    "empty": b"",
    "no json": b"cos\nsystem\n(S'true'\ntR.",
    "deep": b"[" * 60_000,
    "no object": b"[1, 2]",
    "huge": b"[" + b"1," * 40_000 + b"1]",
    "not utf-8": b"\xff\xfe{}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_a_miss(text):
    assert winner_of(text, "ab", CHOICES) is None


@pytest.mark.parametrize(
    "change",
    [
        {"winner": {"backend": "irc", "schedule": "#loop.schedule<cpu, lanes = 64 : i64>"}},
        {"winner": {"backend": "os.system"}},
        {"winner": {"backend": "irc", "more": 1}},
        {"winner": 1},
        {"winner": None},
        {"key": "cd"},
        {"format": 2},
    ],
)
def test_a_record_can_only_name_what_was_proposed(change):
    good = record()
    assert winner_of(json.dumps(good).encode(), "ab", CHOICES) == 1
    assert winner_of(json.dumps({**good, **change}).encode(), "ab", CHOICES) is None


def test_the_key_is_the_problems_without_names():
    key = problem_key(squares("x"), CHOICES, "cpu", "")
    assert key == problem_key(squares("other"), CHOICES, "cpu", "")
    others = [
        problem_key(squares("x", 512), CHOICES, "cpu", ""),
        problem_key(squares("x"), CHOICES[:2], "cpu", ""),
        problem_key(squares("x"), CHOICES, "another gpu", ""),
        problem_key(squares("x"), CHOICES, "cpu", "tag"),
    ]
    assert len({key, *others}) == 5


def test_a_truncated_file_and_a_foreign_one_are_misses(cache):
    stores = stores_of(Options())
    stores.put("ab", record())
    (path,) = cache.glob("*.entry")
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    assert stores.get("ab", CHOICES) is None and not path.exists()
    assert (cache.stat().st_mode & 0o777) == 0o700


def test_a_full_disk_is_told_once(monkeypatch):
    def full(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("irc.cache.folder.OpenFolder.write", full)
    monkeypatch.setattr("irc.cache.folder._told", set())
    stores = stores_of(Options())
    with pytest.warns(CacheWarning, match="No space left") as told:
        stores.put("ab", record())
        stores.put("ab", record())
    assert len(told) == 1 and stores.get("ab", CHOICES) is None


def test_candidates_round_trip_and_refuse_what_is_none():
    each = Candidate("irc", lanes(4).schedule, ("", lanes(8).schedule))
    assert Candidate.from_json(json.loads(json.dumps(each.to_json()))) == each
    for wrong in (None, {}, {"backend": 1}, {"backend": "irc", "members": "x"}):
        with pytest.raises(ValueError):
            Candidate.from_json(wrong)


def test_a_lock_is_waited_for_and_ends_with_its_process(cache):
    with locked(cache, "ab", 0.0) as mine:
        assert mine
        with locked(cache, "ab", 0.1) as other:
            assert not other
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom irc.cache.locks import locked\n"
        f"held = locked(Path({str(cache)!r}), 'cd', 0.0).__enter__\n"
        "print(held(), flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None and process.stdout.readline() == b"True\n"
    with locked(cache, "cd", 0.0) as mine:
        assert not mine
    process.kill()
    process.communicate()
    with locked(cache, "cd", 5.0) as mine:
        assert mine
    assert not list(cache.glob("*.lock"))


def test_ten_processes_that_would_measure_the_same_measure_it_once(cache, monkeypatch):
    """The others wait for the first one, and read what it found."""
    measured = cache.parent / "measured"
    measured.write_bytes(b"")

    def measure(problem, candidates, *rest):
        with measured.open("ab") as file:
            file.write(b"x")
        time.sleep(0.3)
        return Timings((2.0, 1.0, 3.0), {}, 3)

    monkeypatch.setattr(session, "measure", measure)
    problem = squares()
    children = []
    for _ in range(10):
        child = os.fork()
        if not child:
            winner = session.choose(problem, CHOICES, PassContext(options=Options()))
            os._exit(0 if winner == CHOICES[1] else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    assert measured.read_bytes() == b"x"


def test_processes_that_measure_the_same_problems_in_another_order_wait_for_nobody_in_turn(
    cache, monkeypatch
):
    """Each problem is measured once, and all end."""
    measured = cache.parent / "measured"
    measured.write_bytes(b"")

    def measure(problem, candidates, *rest):
        with measured.open("ab") as file:
            file.write(problem.what.encode() + b"\n")
        time.sleep(0.1)
        return Timings((2.0, 1.0, 3.0), {}, 3)

    alone = store.Stores.alone

    @contextmanager
    def slowly(self, key, seconds):
        with alone(self, key, seconds):
            time.sleep(0.05)  # others have come by then
            yield

    monkeypatch.setattr(store.Stores, "alone", slowly)
    monkeypatch.setattr(session, "measure", measure)
    asked = [(squares(size=n), CHOICES) for n in (256, 512, 1024)]
    children = []
    for number in range(6):
        child = os.fork()
        if not child:
            own = session.Session(Options(autotune_in_subproc=True))
            winners = own.choose_all(asked[:: 1 if number % 2 else -1], lambda text: None)
            os._exit(0 if winners == [CHOICES[1]] * 3 else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
    assert sorted(measured.read_text().split("\n")[:-1]) == [
        "squares 1024", "squares 256", "squares 512",
    ]  # fmt: skip


def test_a_server_that_dies_while_it_is_measured_costs_what_was_found_nothing(monkeypatch):
    with StubServer() as stub:
        def measure(problem, candidates, *rest):
            stub.mode = "dies"
            return Timings((2.0, 1.0, 3.0), {}, 3)

        monkeypatch.setattr(session, "measure", measure)
        options = Options(autotune_remote_cache=True, autotune_remote_url=stub.url)
        context = PassContext(options=options)
        stub.server_close()
        with pytest.warns(CacheWarning, match="the remote cache doesn't answer"):
            assert session.choose(squares(), CHOICES, context) == CHOICES[1]
        assert stores_of(Options()).get(
            problem_key(squares(), CHOICES, "cpu", session.Session(options).tag), CHOICES
        ) == (1, "local")


def test_a_disk_that_is_full_in_the_middle_of_a_compile_changes_no_result(monkeypatch):
    import irc

    def full(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("irc.cache.folder.OpenFolder.write", full)
    monkeypatch.setattr("irc.cache.folder._told", set())
    x = torch.linspace(-2, 2, 20_000)
    options = {"max_autotune_pointwise": True, "max_autotune_budget": 2}
    with pytest.warns(CacheWarning, match="No space left"):
        compiled = irc.compile(lambda x: x.sin() + 1, (x,), options=options)
    torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert metrics.snapshot()["autotune_problems"] == 1
