"""Rows on tuning: choices in processes of their own, what is kept, what is built where, errors.

Products, convolutions and their values are shown by the rows of others below.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch._dynamo

import irc
from irc.ir.passes import PassContext
from irc.options.options import Options
from irc.tuning import Candidate, NoValidChoicesError, builds, choose, session
from irc.tuning.pool import Pool, WorkerFailure, visible_devices
from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import options
from tests.tuning import redis_server
from tests.tuning.problems import CHOICES, FAILS, lanes, squares

pytestmark = needs_backend
seed = pytest.mark.seed
ROOT = Path(__file__).resolve().parents[2]
FAULTY = [sys.executable, str(ROOT / "tests/tuning/faulty_worker.py")]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, and nothing compiled or counted before."""
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    irc.metrics.reset()
    yield
    torch._dynamo.reset()


# -- TUNE-01


@seed("TUNE-01")
@pytest.mark.parametrize(("candidate", "status"), [(lanes(4), 0), (FAILS, 1)])
def test_a_choice_is_timed_in_a_spawned_process(candidate: Candidate, status: int) -> None:
    """One that throws gives its exit status there; this process is unharmed."""
    request = {"do": "seconds", "problem": squares().to_json(), "candidate": candidate.to_json()}
    ran = subprocess.run(
        [sys.executable, "-m", "irc.tuning.worker", "--once"], cwd=ROOT, timeout=120,
        input=json.dumps(request).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert ran.returncode == status, ran.stderr
    answer = json.loads(ran.stdout)
    assert "the schedule is for a gpu" in answer["error"] if status else 0 < answer["value"] < 1


# -- TUNE-05


server = redis_server.server


def compile_four_times(function, args, url: str, tag: str, **more) -> tuple[int, int]:
    """Hits and puts of the server in four fresh compiles."""
    irc.metrics.reset()
    asked = options(
        autotune_local_cache=False, autotune_remote_cache=True, autotune_remote_url=url,
        autotune_cache_tag=tag, fx_graph_cache=False, max_autotune=True, **more,
    )  # fmt: skip
    for _ in range(4):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=BACKEND, options=asked)
        torch.testing.assert_close(compiled(*args), function(*args))
    return irc.metrics.autotune_remote_hits, irc.metrics.autotune_remote_puts


@seed("TUNE-05")
def test_four_fresh_compiles_measure_a_sum_once(server: str, fresh: None) -> None:
    """x + y: three hits and one put, of text that people read; another tag finds nothing."""
    import redis

    x, y = torch.randn(100, 100), torch.randn(100, 100)
    tag = f"sum {os.getpid()}"
    assert compile_four_times(torch.add, (x, y), server, tag) == (3, 1)
    assert compile_four_times(torch.add, (x, y), server, f"{tag} changed") == (3, 1)
    client = redis.Redis.from_url(server, protocol=2)
    if "stub" not in server and client.ping() and (keys := _keys(client)):
        records = [json.loads(client.get(key)) for key in keys]
        assert {record["problem"] for record in records} <= {"pointwise f32 100x100"}


@seed("TUNE-05")
def test_four_fresh_compiles_measure_a_product_once(server: str, fresh: None) -> None:
    def mm(a, b):
        return torch.sin(a) @ b

    a, b = torch.randn(100, 10), torch.randn(10, 100)
    assert compile_four_times(mm, (a, b), server, f"mm {os.getpid()}") == (3, 1)


def _keys(client) -> list[bytes]:
    found = client.execute_command("KEYS", "irc:tuning:*")
    return found if isinstance(found, list) else []  # the small server has no such command


# -- TUNE-06


@seed("TUNE-06")
def test_ten_choices_are_built_on_ten_threads_other_than_the_main_one() -> None:
    threads: dict[Candidate, int] = {}
    together = threading.Barrier(10, timeout=20)  # ten at a time, or none goes on
    choices = [lanes(1 << k) for k in range(9)] + [Candidate()]

    def build(candidate: Candidate) -> None:
        together.wait()
        threads[candidate] = threading.get_ident()

    assert not builds.on_threads(build, choices, Options(compile_threads=10).compile_threads)
    assert set(threads) == set(choices) and len(set(threads.values())) == 10
    assert threading.get_ident() not in threads.values()


@seed("TUNE-06")
def test_a_compile_builds_what_it_measures_on_threads(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from irc.tuning import measuring

    built = set()
    runner = measuring.Runner

    def noted(*args):
        built.add(threading.get_ident())
        return runner(*args)

    monkeypatch.setattr(measuring, "Runner", noted)
    asked = Options(compile_threads=3, autotune_local_cache=False)
    session.measure(squares(), CHOICES, asked)
    assert built and threading.get_ident() not in built


# -- TUNE-08


def products(a, b, c):
    """Two products of f32 and two of f16, each of 256 x 256."""
    a = (a @ b) @ c
    a, b, c = (t.to(torch.float16) for t in (a, b, c))
    return (a @ b) @ c


def count_precompiles(**more) -> int:
    """In a fresh compile of `products`."""
    torch._dynamo.reset()
    irc.metrics.reset()
    args = [torch.rand(256, 256) for _ in range(3)]
    asked = options(fx_graph_cache=False, **more)
    compiled = torch.compile(products, backend=BACKEND, options=asked)
    torch.testing.assert_close(compiled(*args), products(*args), atol=1e-2, rtol=1e-2)
    return irc.metrics.select_algorithm_precompile


@seed("TUNE-08")
def test_each_product_is_built_for_measuring_once(fresh: None) -> None:
    """Twice for two of each dtype without caches, never with a filled one."""
    off = {"autotune_local_cache": False, "autotune_remote_cache": False}
    assert count_precompiles(max_autotune=True, **off) == 2
    assert count_precompiles(max_autotune=True) == 2
    assert count_precompiles(max_autotune=True) == 0


@seed("TUNE-08")
def test_nothing_is_built_for_measuring_where_tuning_is_off(fresh: None) -> None:
    assert count_precompiles() == 0


# -- TUNE-15


@seed("TUNE-15")
@pytest.mark.parametrize("choices", [[], [FAILS, Candidate("aten")]], ids=["none", "all-fail"])
def test_no_usable_choice_is_an_error_that_says_what_was_tried(
    choices: list[Candidate], fresh: None
) -> None:
    with pytest.raises(NoValidChoicesError) as error:
        choose(squares(), choices, PassContext(options=Options()))
    text = str(error.value)
    assert "NoValidChoicesError" in text and "max_autotune_gemm_backends" in text
    assert all(choice.label in text for choice in choices)


@seed("TUNE-15")
def test_infinite_timings_are_an_error_of_the_compile(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irc.tuning.measuring.Runner.seconds", lambda *_: math.inf)
    asked = options(max_autotune=True, fx_graph_cache=False)
    x = torch.randn(100, 100)
    with pytest.raises(Exception, match="(?s)NoValidChoicesError.*its time is infinite"):
        torch.compile(torch.add, backend=BACKEND, options=asked)(x, x)


# -- TUNE-16


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(None, FAULTY) as pool:
        yield pool


@seed("TUNE-16")
@pytest.mark.parametrize("what", ["crash", "leave", "hang"])
def test_what_ends_a_worker_has_no_time_and_the_next_request_works(pool: Pool, what: str) -> None:
    with pytest.raises(WorkerFailure):
        pool.ask({"do": what}, limit=0.5)
    assert pool.ask({"do": "value", "value": 3.14}) == 3.14


@seed("TUNE-16")
def test_a_crash_times_as_infinity_and_the_others_are_timed(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {choice: {"do": "value", "value": float(k)} for k, choice in enumerate(CHOICES)}
    answers[lanes(4)] = {"do": "crash"}
    monkeypatch.setattr(session.PoolMeasurer, "_for", lambda self, choice: answers[choice])
    with Pool(None, FAULTY) as pool:
        measurer = session.PoolMeasurer(squares(), Options(), pool)
        failed, first = measurer.prepare(CHOICES, math.inf, lambda: 0.0, lambda: None)
    assert first == {0: 0.0, 2: 2.0} and "SIGSEGV" in failed[1]


@seed("TUNE-16")
def test_each_device_has_one_worker_that_sees_it_alone() -> None:
    devices = visible_devices({"CUDA_VISIBLE_DEVICES": "5,GPU-81"}, 8)
    with Pool(devices, FAULTY) as pool:
        seen = [worker.ask({"do": "devices"}) for worker in pool.workers]
    assert seen == ["5", "GPU-81"]
