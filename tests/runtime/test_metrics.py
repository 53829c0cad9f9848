"""Counters that users read and reset."""

import threading

import pytest

from irc.runtime import metrics


def test_counts_and_resets():
    metrics.reset()
    metrics.add("kernels", 3)
    assert metrics.kernels == 3 and metrics.snapshot()["kernels"] == 3
    metrics.reset()
    assert set(metrics.snapshot().values()) == {0}


def test_unknown_counter_is_an_error():
    with pytest.raises(AttributeError, match="kernles"):
        metrics.kernles  # noqa: B018
    with pytest.raises(KeyError):
        metrics.add("kernles")


def test_threads_lose_no_increment():
    metrics.reset()
    many = [
        threading.Thread(target=lambda: [metrics.add("compiles") for _ in range(2000)])
        for _ in range(4)
    ]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    assert metrics.compiles == 8000
