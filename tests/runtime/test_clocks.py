"""Programs with the option `clock_aten` count the time of their ATen calls, others don't."""

from __future__ import annotations

import time

import pytest
import torch

import irc
from irc.program import clocks
from tests.backends import skip_unless_checked

torch.manual_seed(0)
X, W = torch.randn(64, 512), torch.randn(512, 512)


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Two products with a kernel between them."""
    return torch.mm(torch.tanh(torch.mm(x, w)) * 0.1, w)


def compiled(**options: object):
    """With products of ATen's."""
    torch._dynamo.reset()
    options |= {"max_autotune_gemm_backends": "ATEN"}
    return torch.compile(product, backend="irc", options=options)


def test_clocks_of_a_native_program_lie_within_its_call():
    call = compiled(clock_aten=True)
    torch.testing.assert_close(call(X, W), product(X, W))
    clocks.reset()
    start = time.perf_counter_ns()
    for _ in range(20):
        call(X, W)
    taken = time.perf_counter_ns() - start
    (spent,) = (ns for callee, ns in clocks.nanoseconds().items() if "mm" in callee and ns)
    assert 0.2 * taken < spent < taken


def test_a_plain_program_leaves_the_clocks_alone():
    call = compiled()
    clocks.reset()
    call(X, W)
    assert not any(clocks.nanoseconds().values())


def test_the_python_form_counts_too():
    trace = irc.trace(product, (X, W))
    irc.PassManager.parse("lower-to-cpu{max_autotune_gemm_backends=ATEN}").run(trace)
    executable = irc.build(trace, options={"native": False, "clock_aten": True, "cache": False})
    clocks.reset()
    executable(X, W)
    assert sum(clocks.nanoseconds().values()) > 0


def test_an_error_of_an_operator_still_reaches_the_caller():
    skip_unless_checked(torch.linalg.cholesky, -torch.eye(3))
    call = torch.compile(lambda x: torch.linalg.cholesky(x), backend="irc",
                         options={"clock_aten": True})  # fmt: skip
    with pytest.raises(RuntimeError, match="cholesky"):
        call(-torch.eye(3))
