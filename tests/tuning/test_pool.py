"""Workers that crash, hang, end and talk nonsense; the next request works."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from irc.tuning.pool import Pool, TuningWorker, WorkerFailure, visible_devices
from tests.tuning.interrupts import interrupted

COMMAND = [sys.executable, str(Path(__file__).with_name("faulty_worker.py"))]
BAD = {
    "crash": "ended by SIGSEGV",
    "leave": "status 7 .out of patience",
    "refuse": "RuntimeError: this choice always throws",
    "sticky": "CUDA error",
    "nonsense": "answered what is no answer",
    "unheard": "KeyError",
}


@pytest.fixture(scope="module")
def pool():
    with Pool(None, COMMAND) as pool:
        yield pool


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("what", BAD)
def test_what_fails_says_why_and_the_next_request_works(pool, what):
    with pytest.raises(WorkerFailure, match=BAD[what]):
        pool.ask({"do": what})
    assert pool.ask({"do": "value", "value": 3.14}) == 3.14


def test_only_what_spoils_a_worker_ends_it(pool):
    pid = pool.ask({"do": "pid"})
    with pytest.raises(WorkerFailure):
        pool.ask({"do": "refuse"})
    assert pool.ask({"do": "pid"}) == pid
    with pytest.raises(WorkerFailure):
        pool.ask({"do": "sticky"})
    assert pool.ask({"do": "pid"}) != pid
    assert not is_there(pid)  # ended and waited for: no zombie


def test_a_hang_is_ended(pool):
    pid = pool.ask({"do": "pid"})
    start = time.monotonic()
    with pytest.raises(WorkerFailure, match="took more than 0 s|took more than 1 s"):
        pool.ask({"do": "hang"}, limit=0.3)
    assert time.monotonic() - start < 5 and not is_there(pid)
    assert pool.ask({"do": "value", "value": 1}) == 1


def test_a_worker_killed_while_it_works_is_a_failure(pool):
    pid = pool.ask({"do": "pid"})
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(WorkerFailure, match="SIGKILL"):
        pool.ask({"do": "hang"})
    assert pool.ask({"do": "value", "value": 2}) == 2


def test_ctrl_c_ends_what_runs_and_the_pool_serves_again(pool):
    pid = pool.ask({"do": "pid"})
    with interrupted(0.2), pytest.raises(KeyboardInterrupt):
        pool.each(lambda worker, item: worker.ask({"do": "hang"}), [1])
    assert not is_there(pid)
    assert pool.ask({"do": "value", "value": 5}) == 5


def test_each_device_has_a_worker_that_sees_it_alone():
    with Pool(["GPU-7", "3"], COMMAND) as pool:
        asked = pool.each(
            lambda worker, item: (worker.device, worker.ask({"do": "devices"}), time.sleep(0.05)),
            range(8),
        )
        assert {(own, seen) for own, seen, _ in asked} == {("GPU-7", "GPU-7"), ("3", "3")}
        pids = [worker.pid for worker in pool.workers]
    assert not any(map(is_there, pids))


def test_one_worker_sees_what_this_process_sees(pool, monkeypatch):
    assert pool.ask({"do": "devices"}) == os.environ.get("CUDA_VISIBLE_DEVICES")


def test_the_visible_devices_are_those_of_the_environment():
    assert visible_devices({"CUDA_VISIBLE_DEVICES": "2, GPU-5"}, 8) == ["2", "GPU-5"]
    assert visible_devices({"CUDA_VISIBLE_DEVICES": ""}, 8) == []
    assert visible_devices({}, 2) == ["0", "1"]


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_workers_end_with_the_process_that_started_them(how, tmp_path):
    """Also where that had no time to say so, and a fork of it still has the pipes."""
    program = f"""
import os, signal, sys, threading, time
from irc.tuning.pool import Pool
pool = Pool(None, {COMMAND!r})
print(pool.ask({{"do": "pid"}}), flush=True)
if {how == "kill"}:
    if not os.fork():
        time.sleep(3)
        os._exit(0)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    pool.ask({{"do": "hang"}})
"""
    ran = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert ran.stdout is not None
    pid = int(ran.stdout.readline())
    ran.wait(30)
    deadline = time.monotonic() + 3
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_there(pid)


def test_a_program_that_is_not_there_is_a_failure():
    with pytest.raises(WorkerFailure, match="no worker starts"):
        TuningWorker(None, ["/nowhere/python"]).ask({"do": "devices"})


@pytest.mark.parametrize(("what", "status"), [("refuse", 1), ("value", 0)])
def test_one_request_in_a_process_of_its_own_tells_by_its_exit_status(what, status):
    request = f'{{"do": "{what}", "value": 1}}\n'.encode()
    ran = subprocess.run([*COMMAND, "--once"], input=request, capture_output=True, timeout=60)
    assert ran.returncode == status
    assert (b'"error"' in ran.stdout) == bool(status)
