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


class _Noted:
    """A kernel whose launches are noted."""

    def __init__(self, kernel: Any, launches: Launches) -> None:
        self._kernel, self._launches = kernel, launches
        self.fn, self.arg_names = kernel, kernel.arg_names
        self.configs = getattr(kernel, "configs", ())

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def start(*arguments: Any, **rest: Any) -> None:
            names = zip(self.arg_names, arguments, strict=False)
            self._launches.append(innermost(self._kernel).__name__)
            self._launches.arguments = {**dict(names), **rest}
            self._kernel[grid](*arguments, **rest)

        return start


def innermost(kernel: Any) -> Any:
    """The kernel under what tunes it."""
    return innermost(kernel.fn) if hasattr(kernel, "configs") else kernel


@contextmanager
def as_on_gpu() -> Iterator[Launches]:
    """Inside, torch takes `triton.jit` functions for kernels, and Triton interprets them."""
    launches, registered = Launches(), user_kernels.registered
    twins: dict[Any, _Noted] = {}

    def interpreted(key: str) -> user_kernels.UserKernel:
        known = registered(key)
        if known.kernel not in twins:
            twins[known.kernel] = _Noted(twin(known.kernel), launches)
        return attrs.evolve(known, kernel=twins[known.kernel])

    outer = driver._active
    driver.set_active(_Driver())
    try:
        with (
            mock.patch("torch.utils._triton.has_triton", lambda: True),
            mock.patch.object(user_kernels, "registered", interpreted),
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
