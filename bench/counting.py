"""Counts of a compiled program: launches of generated kernels and calls of ATen, by backend.

Every launch counts, also of a kernel launched before.  irc counts itself
(`irc.metrics`); Inductor's are counted in the Python programs that it generates: calls of its own
kernels, and of anything that is not one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Allocation, checks and views are not work; all other calls outside the generated kernels are.
NO_WORK = re.compile(
    r"empty_strided|reinterpret_tensor|assert_size_stride|assert_alignment|alloc_from_pool"
)
KERNEL = re.compile(r"^\s+(?:cpp_fused_\w+|cpp_\w*fused\w*|triton_\w+\.run)\(", re.MULTILINE)
EXTERNAL = re.compile(r"(?:extern_kernels\.|torch\.ops\.|aten\.)([\w.]+)\(")


def count_program(code: str) -> tuple[int, int]:
    """(launches of generated kernels, ATen calls) of one Python program that Inductor made."""
    body = code[code.find("def call(") :]
    end = re.search(r"^(?:def |if __name__)", body[1:], re.MULTILINE)
    body = body[: end.start() + 1] if end else body
    external = [name for name in EXTERNAL.findall(body) if not NO_WORK.search(name)]
    return len(KERNEL.findall(body)), len(external)


@contextmanager
def counted(backend: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Yields a function that tells the counts of what was compiled inside the block so far."""
    if backend == "inductor":
        with _inductor() as count:
            yield count
    elif backend == "irc":
        from irc.runtime import metrics

        before = metrics.snapshot()

        def of_irc() -> dict[str, int]:
            now = metrics.snapshot()
            return {name: now[name] - before[name] for name in ("launches", "aten_calls")}

        yield of_irc
    else:
        yield dict


@contextmanager
def _inductor() -> Iterator[Callable[[], dict[str, int]]]:
    from torch._inductor.graph import GraphLowering

    programs: list[str] = []
    original = GraphLowering.save_output_code

    def save(code: Any) -> None:
        programs.append(str(code))
        if original is not None:
            original(code)

    def count() -> dict[str, int]:
        pairs = [count_program(code) for code in programs]
        return {"launches": sum(k for k, _ in pairs), "aten_calls": sum(a for _, a in pairs)}

    GraphLowering.save_output_code = staticmethod(save)
    try:
        yield count
    finally:
        GraphLowering.save_output_code = original
