"""Numbers of the CPU beside a GPU's tensors, in programs lowered for a GPU that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from irc.dialects import kernel
from tests.backends import needs_backend
from tests.conformance.gpu_programs import lowered

pytestmark = needs_backend


def test_a_number_of_the_cpu_is_repeated_on_the_gpu() -> None:
    def choose(x: torch.Tensor, keep: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.where(keep, other, x) * other

    def run(compile_it: Callable[..., Any]) -> None:
        x = torch.empty(8, 16, device="cuda")
        compile_it(choose)(x, torch.empty(8, 1, dtype=torch.bool, device="cuda"), torch.tensor(2.0))

    (program,) = lowered(run)
    (only,) = program.kernels
    assert isinstance(only, kernel.KernelFuncOp)
    arrays = [v.type for op in program.layouts.walk() for v in op.results if "16" in str(v.type)]
    assert arrays and {kind.device for kind in arrays} == {"cuda:0"}
