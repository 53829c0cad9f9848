"""Runs kernels on a GPU, each array an allocation of its own, for CUDA's memory checker.

    compute-sanitizer --tool memcheck python -m bench.gpu_memcheck [--seconds 60] [--skip 0]

First the kernels of tests/codegen/triton/kernel_cases.py, then the programs of
tests/codegen/triton/test_models.py; values are compared with irc's interpreter and with eager. With
torch's caching allocator an array's neighbours are memory that may be read: so it is off here.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "codegen" / "triton"))

from kernel_cases import CASES, TOLERANCE  # noqa: E402
from programs import Case, close  # noqa: E402
from test_models import FUNCTIONS  # noqa: E402

from irc.codegen.triton import runtime  # noqa: E402
from irc.runtime import late_checks  # noqa: E402


def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, in memory that ends with its last element."""
    shape, strides = tensor.shape, tensor.stride()
    return torch.empty_strided(shape, strides, dtype=tensor.dtype, device="cuda").copy_(tensor)


def run_case(make: Callable[[], Case], tolerance: float) -> None:
    """A kernel of the tests, its values compared with those of the interpreter."""
    made = make()
    tensors, first = made.tensors()
    moved = [on_gpu(tensor) for tensor in tensors]
    runtime.launcher(made.kernel, made.source, made.sizes)(*moved)
    for actual, expected in zip(moved[first:], made.expected, strict=True):
        close(actual.cpu(), expected, 10 * tolerance)


def run_program(name: str) -> None:
    """A program of the tests through torch.compile, compared with eager."""
    function, given = FUNCTIONS[name]
    torch._dynamo.reset()
    args = [tensor.clone().cuda() for tensor in given]
    with torch.no_grad():
        found = torch.compile(function, backend="irc")(*args)
        expected = function(*args)
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2, check_stride=False)


def jobs() -> Iterator[tuple[str, Callable[[], None]]]:
    """What there is to run, by name."""
    for name, make in CASES.items():
        yield name, functools.partial(run_case, make, TOLERANCE[name])
    for name in FUNCTIONS:
        yield f"program {name}", functools.partial(run_program, name)


def main() -> None:
    """Run as many as there is time for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="begin no more after them")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many")
    options = parser.parse_args()
    start, done, failed = time.monotonic(), 0, 0
    every = list(jobs())[options.skip :]
    for name, job in every:
        if time.monotonic() - start > options.seconds:
            break
        done += 1
        try:
            job()
            torch.cuda.synchronize()
        except torch.AcceleratorError as error:  # nothing runs in this process any more
            raise SystemExit(f"{name}, number {options.skip + done - 1}: {error}") from error
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    late_checks.settle()
    print(f"{done} of {len(every)} kernels and programs, {failed} failed", flush=True)


if __name__ == "__main__":
    main()
