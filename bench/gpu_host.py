"""The native host function of a GPU's programs, on one: facts, checks, and host times of models.

    python -m bench.gpu_host --checks
    python -m bench.gpu_host --model bert-base [--peer] [--dtype bfloat16] [--batch N]

The checks compare with eager mode: streams, a stream under capture, threads, views that begin
anywhere, sizes that change, errors. A line a model: milliseconds of a call until the GPU is done
(wall), until the call returns with the GPU idle before it (host), and of the GPU alone, by the
native host function and by Python's (`IRC_FORCE_SLOW_HOST=1`, in a process of its own); --peer adds
Inductor. First and second compile in seconds (the second in a new process finds the cache).
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from irc.boundary import cuda
from irc.program import clocks
from irc.runtime import late_checks

ROUNDS = 20


def two_products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Two products, each with a launch behind it."""
    for _ in range(2):
        x = torch.relu(x @ w) * 1.5 + 1
        x = x.sum(1, keepdim=True) + x
    return x


def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A softmax and a layer norm."""
    return torch.nn.functional.layer_norm(torch.softmax(x, -1) * 3, x.shape[-1:]) @ w


def picked(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """Rows by number."""
    return x[i] * 2


def close(mine: Any, eager: Any) -> None:
    torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-4)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def check_values(**options: Any) -> None:
    x, w = random(65, 64), random(64, 64)
    base = random(65 * 64 + 1)
    for function in (two_products, normed):
        call = torch.compile(function, backend="irc", **options)
        for given in (x, base[1:].view(65, 64), x[:33], x[1:2].expand(65, 64).contiguous()):
            for _ in range(2):
                close(call(given, w), function(given, w))


def check_dynamic() -> None:
    torch._dynamo.reset()
    check_values(dynamic=True)


def check_dtypes() -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        torch._dynamo.reset()
        x, w = (random(32, 64) / 8).to(dtype), (random(64, 64) / 8).to(dtype)
        mine = torch.compile(two_products, backend="irc")(x, w)
        error = (mine.double() - two_products(x, w).double()).norm() / mine.double().norm()
        assert error < 0.02, (dtype, error)


def check_streams() -> None:
    x, w = random(512, 512), random(512, 512)
    call = torch.compile(two_products, backend="irc")
    expected = two_products(x, w)
    call(x, w)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        found = [call(x, w) for _ in range(50)]
    others = [call(x, w) for _ in range(50)]
    torch.cuda.synchronize()
    for each in (*found, *others):
        close(each, expected)


def check_capture() -> None:
    x, w = random(64, 64), random(64, 64)
    call = torch.compile(two_products, backend="irc")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call(x, w)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call(x, w)
    for _ in range(3):
        x.copy_(random(64, 64))
        graph.replay()
        close(y, two_products(x, w))


def check_threads() -> None:
    x, w = random(64, 64), random(64, 64)
    call = torch.compile(two_products, backend="irc")
    expected = two_products(x, w)
    call(x, w)
    found: list[torch.Tensor] = []

    def work() -> None:
        found.extend(call(x, w) for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    for each in found:
        close(each, expected)


def check_errors() -> None:
    call = torch.compile(picked, backend="irc")
    x, i = random(10, 4), torch.tensor([1, 9, 0], device="cuda")
    close(call(x, i), picked(x, i))
    told = 0
    for late in (False, True):
        torch._dynamo.reset()
        call = torch.compile(picked, backend="irc", options={"late_checks": late})
        try:
            call(x, i + 1)
            late_checks.settle()
        except (IndexError, RuntimeError):
            told += 1
    assert told == 2, "an index out of bounds was not told"


def check_gradients() -> None:
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128),
                                torch.nn.Linear(128, 8)).cuda()  # fmt: skip
    x = random(32, 64)
    call = torch.compile(model, backend="irc")
    mine = torch.autograd.grad(call(x).square().mean(), list(model.parameters()))
    eager = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
    for a, b in zip(mine, eager, strict=True):
        close(a, b)


def split(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A product on each of two GPUs."""
    return torch.relu((torch.relu(x @ w) + 1).to(v.device) @ v) * 2


def check_devices() -> None:
    if torch.cuda.device_count() < 2:
        print("(one GPU)")
        return
    x, w = random(64, 64), random(64, 64)
    there = [t.to("cuda:1") for t in (x, w)]
    call = torch.compile(two_products, backend="irc")
    for given in ((x, w), there, (x, w)):
        y = call(*given)
        assert y.device == given[0].device and torch.cuda.current_device() == 0
        close(y, two_products(*given))
    both = torch.compile(split, backend="irc")
    for _ in range(3):
        close(both(x, w, there[1]), split(x, w, there[1]))
    with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream()):
        close(call(*there), two_products(*there))
        close(call(x, w), two_products(x, w))
        assert torch.cuda.current_device() == 1


def check_numbers() -> None:
    def scaled(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x * n + 1

    call = torch.compile(scaled, backend="irc")
    x = random(8, 8)
    for number in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(2.0, device="cuda")):
        close(call(x, number), scaled(x, number))


CHECKS: dict[str, Callable[[], None]] = {
    name.removeprefix("check_"): function
    for name, function in list(globals().items())
    if name.startswith("check_")
}


def run_checks() -> None:
    """Each check, and what failed."""
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("native:", cuda.unavailable_reason() or "yes", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, check in CHECKS.items():
        torch._dynamo.reset()
        try:
            check()
            print(f"{name} ok", flush=True)
        except Exception as error:
            import traceback

            traceback.print_exc()
            print(f"{name} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)


def milliseconds(call: Callable[[], object], wait: bool) -> float:
    """The median time of a call, until it returns or until the GPU is done."""
    taken = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if wait:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1e3


def gpu_milliseconds(call: Callable[[], object]) -> tuple[float, int]:
    """The GPU's own time of one call, and how many kernels it ran."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as record:
        for _ in range(5):
            call()
        torch.cuda.synchronize()
    times = [e.self_device_time_total for e in record.key_averages()]
    counts = [e.count for e in record.key_averages() if e.self_device_time_total]
    return sum(times) / 5e3, sum(counts) // 5


def print_clocks(run: Callable[[], object]) -> None:
    """Microseconds of a call in each operator."""
    clocks.reset()
    for _ in range(ROUNDS):
        run()
    torch.cuda.synchronize()
    for callee, taken in sorted(clocks.nanoseconds().items(), key=lambda pair: -pair[1])[:8]:
        print(f"  {callee} {taken / ROUNDS / 1e3:.1f} us a call of the program", flush=True)


def time_model(name: str, backend: str, dtype: torch.dtype, clocked: bool) -> None:
    """A line for one model by one backend, in this process."""
    from bench.builders import find

    entry = find(name)
    model = entry.make().cuda().to(dtype).eval()
    inputs = [t.cuda().to(dtype) if t.is_floating_point() else t.cuda() for t in entry.inputs()]
    with torch.no_grad():
        eager = model(*inputs)
        options = {"clock_aten": True} if clocked else None
        run = torch.compile(model, backend=backend, options=options)
        start = time.perf_counter()
        mine = run(*inputs)
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        pair = [t.logits if hasattr(t, "logits") else t for t in (mine, eager)]
        pair = [t[0] if isinstance(t, tuple) else t for t in pair]
        error = (pair[0].double() - pair[1].double()).norm() / pair[1].double().norm()
        for _ in range(5):
            run(*inputs)
        wall, host = (milliseconds(lambda: run(*inputs), wait) for wait in (True, False))
        gpu, count = gpu_milliseconds(lambda: run(*inputs))
        if clocked:
            print_clocks(lambda: run(*inputs))
    import os

    side = f"{backend}{' python' if os.environ.get('IRC_FORCE_SLOW_HOST') == '1' else ''}"
    print(f"{name} {side}: wall {wall:.3f} host {host:.3f} gpu {gpu:.3f} ms, {count} kernels, "
          f"first call {first:.2f} s, error {float(error):.1e}", flush=True)  # fmt: skip


def main() -> None:
    """Check or measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--backend", default="irc")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--clocks", action="store_true", help="the time in each operator, too")
    options = parser.parse_args()
    if options.checks:
        run_checks()
    for name in options.model:
        torch._dynamo.reset()
        try:
            time_model(name, options.backend, getattr(torch, options.dtype), options.clocks)
        except Exception as error:
            import traceback

            traceback.print_exc()
            print(f"{name} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
