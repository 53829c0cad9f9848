"""Call sites of the user's kernels: what is remembered of a call, and which others it serves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from irc.boundary.templates import Dynamic
from irc.boundary.user_launches import is_plain, prepared, remembered
from irc.dialects.aten import user_kernels
from irc.ir.diagnostics import UserError


class CompiledKernel:
    """As Triton's: what a kernel was compiled to."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments: self.log.append(("compiled", grid, len(arguments)))


class Kernel:
    """As Triton's: compiles for every call, and says so."""

    arg_names = ("x", "n", "BLOCK")

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.pre_run_hooks: list[Any] = []
        self.used_global_vals: dict[Any, Any] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*arguments: Any, **rest: Any) -> CompiledKernel:
            self.log.append(("kernel", grid, len(arguments) + len(rest)))
            return CompiledKernel(self.log)

        return run


def calls_of(kernel: Kernel) -> list[str]:
    """By whom the launches so far were made."""
    made = [who for who, *_ in kernel.log]
    kernel.log.clear()
    return made


def test_what_triton_compiles_apart_is_told_apart() -> None:
    kernel, base = Kernel(), torch.zeros(64)
    assert base.data_ptr() % 16 == 0
    launch = remembered(kernel, [(0, None), (1, None), (-1, 8)], (Dynamic(1), 1, 1), [0], [1])
    numbers = (32, 48, 33, 35, 1, 2**31, 2**31 + 16, 2**63, 2.5, 3.5, True)
    known = (0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0)
    for number, again in zip(numbers, known, strict=True):
        launch(base, number)
        assert calls_of(kernel) == (["compiled"] if again else ["kernel"]), number
    launch(base[1:], 32)  # begins at 4 bytes
    launch(base[2:], 48)
    launch(base[4:], 64)  # begins at 16
    assert kernel.log == [("kernel", (32, 1, 1), 3), ("compiled", (48, 1, 1), 3),
                          ("compiled", (64, 1, 1), 3)]  # fmt: skip
    kernel.log.clear()
    kernel.pre_run_hooks.append(print)
    launch(base, 32)
    assert calls_of(kernel) == ["kernel"]


def test_only_kernels_that_nothing_else_decides_are_remembered() -> None:
    kernel = Kernel()
    assert is_plain(kernel) and not is_plain(object())
    kernel.used_global_vals["SIZE"] = 4
    assert not is_plain(kernel)


def test_a_call_fills_the_parameters_in(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    key = user_kernels.register(kernel, {"BLOCK": 8})
    monkeypatch.setattr(user_kernels.UserKernel, "runs_on_cpu", True)
    site = {"kernel": key, "names": ("x", "n"), "grid": (Dynamic(1), 1, 1),
            "written": (Dynamic(0),), "read": (), "numbers": (Dynamic(1),)}  # fmt: skip
    launch, x = prepared(site), torch.zeros(4)
    for number in (4, 5):
        assert launch(x, number) == ()
    assert kernel.log == [("kernel", (4, 1, 1), 3), ("kernel", (5, 1, 1), 3)]
    with pytest.raises(UserError, match="names 3 operands and has 2"):
        prepared({**site, "names": ("x", "n", "m")})(x, 4)
    monkeypatch.setattr(user_kernels.UserKernel, "runs_on_cpu", False)
    with pytest.raises(UserError, match="gets a tensor of the CPU"):
        prepared(site)(x, 4)
