"""The process of one side of a benchmark: `python -m bench.worker JOB BACKEND READ_FD WRITE_FD`."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.common import Prepared


def seconds_per_call(call: Callable[[], object], at_least: float) -> float:
    """Mean seconds of calls that take `at_least` in all, the cyclic collector off."""
    gc.collect()
    gc.disable()
    try:
        calls = 1
        while True:
            start = time.perf_counter()
            for _ in range(calls):
                call()
            taken = time.perf_counter() - start
            if taken >= at_least:
                return taken / calls
            calls = max(calls + 1, int(1.2 * calls * at_least / max(taken, 1e-7)))
    finally:
        gc.enable()


def main() -> None:
    """Answer requests until the pipe closes."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    job, backend = importlib.import_module(sys.argv[1]), sys.argv[2]
    requests, answers = os.fdopen(int(sys.argv[3])), os.fdopen(int(sys.argv[4]), "w")
    prepared = Prepared(lambda: None)
    for line in requests:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            if request["request"] == "prepare":
                prepared = Prepared(lambda: None)
                torch._dynamo.reset()
                prepared = job.prepare(request["case"], backend)
                answer = prepared.facts
            elif request["request"] == "measure":
                answer = {"seconds": seconds_per_call(prepared.call, request["seconds"])}
            else:
                answer = prepared.inspect() if prepared.inspect else {}
        except Exception as error:
            answer = {"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
