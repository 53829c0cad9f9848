"""What is made once, whoever asks."""

import threading
import time

from irc.boundary.once import once


def test_threads_that_ask_at_once_get_one_result():
    calls = []

    @once
    def make():
        calls.append(1)
        time.sleep(0.05)
        return object()

    results = []
    threads = [threading.Thread(target=lambda: results.append(make())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and len(set(map(id, results))) == 1


def test_what_failed_is_tried_again():
    outcomes = [ValueError("not yet"), None]

    @once
    def make():
        error = outcomes.pop(0)
        if error:
            raise error
        return 7

    try:
        make()
    except ValueError:
        pass
    assert make() == make() == 7
