"""Triton kernels for tests, which run without a GPU: Dynamo and torch's analysis of what a kernel
writes see compiled kernels for an sm_90, and what launches them is Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import attrs
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.interpreter import InterpretedFunction

from irc.dialects.aten import user_kernels


class _Driver:
    """Triton's driver of a GPU that isn't there."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_benchmarker(self) -> Callable[..., Any]:
        return _run_once


def _run_once(call: Callable[[], Any], quantiles: Any = None, **_: Any) -> list[float]:
    call()
    return [1.0, 1.0, 1.0]


class Launches(list[str]):
    """The kernels that were launched, by name; `arguments`: by parameter, of the last launch."""

    arguments: Mapping[str, Any]


@contextmanager
def as_on_gpu() -> Iterator[Launches]:
    """Inside, torch takes `triton.jit` functions for kernels, and Triton interprets them."""
    launches, registered = Launches(), user_kernels.registered
    twins: dict[Any, Any] = {}

    def interpreted(key: str) -> user_kernels.UserKernel:
        found = registered(key)
        if found.kernel not in twins:
            twins[found.kernel] = twin(found.kernel)
        return attrs.evolve(found, kernel=twins[found.kernel])

    arguments = user_kernels.UserKernel.arguments

    def noted(self: user_kernels.UserKernel, names: Any, values: Any) -> Any:
        launches.append(self.name)
        launches.arguments = dict(zip(names, values, strict=True))
        return arguments(self, names, values)

    outer = driver._active
    driver.set_active(_Driver())
    try:
        with (
            mock.patch("torch.utils._triton.has_triton", lambda: True),
            mock.patch.object(user_kernels, "registered", interpreted),
            mock.patch.object(user_kernels.UserKernel, "arguments", noted),
        ):
            yield launches
    finally:
        driver._active = outer


def twin(kernel: Any) -> Any:
    """A kernel as Triton interprets it."""
    if isinstance(kernel, triton.JITFunction):
        return InterpretedFunction(kernel.fn)
    return triton.autotune(
        kernel.configs, kernel.keys, reset_to_zero=kernel.reset_to_zero,
        restore_value=kernel.restore_value, do_bench=_run_once,
    )(twin(kernel.fn))  # fmt: skip


# -- kernels


@triton.jit
def scaled_sum(x, y, out, n, scale, BLOCK: tl.constexpr):
    """out = (x + y) * scale, without y where that is None."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    value = tl.load(x + places, mask=inside)
    if y is not None:
        value += tl.load(y + places, mask=inside)
    tl.store(out + places, value * scale, mask=inside)


@triton.jit
def add_rows(target, source, rows, columns, step, across, BLOCK: tl.constexpr):
    """target[r, c] += source[r, c], with the strides of both."""
    row = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    inside = places < columns
    value = tl.load(target + row * step + places * across, mask=inside)
    value += tl.load(source + row * columns + places, mask=inside)
    tl.store(target + row * step + places * across, value, mask=inside)


def cover(n: Any) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """A grid of blocks over n places."""
    return lambda meta: (triton.cdiv(n, meta["BLOCK"]),)


__all__ = ["Launches", "add_rows", "as_on_gpu", "cover", "scaled_sum", "twin"]
