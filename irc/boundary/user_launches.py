"""Launches of the user's Triton kernels from native host programs, made ready once a call site.

    launch = prepared(templates)    # of `irc_triton::launch`, by the names of its arguments
    launch(x, y, 4)                 # the values that change from call to call

What the operator does is `irc.dialects.aten.user_kernels.launch`; here the arguments are put into
the kernel's own order when the site is first called, and a call fills them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from irc.boundary.templates import Dynamic, fill
from irc.dialects.aten import user_kernels

Launch = Callable[..., tuple[object, ...]]
_VALUES = ("written", "read", "numbers")


def prepared(templates: Mapping[str, Any]) -> Launch:
    """What launches a kernel with the dynamic values of its arguments' templates."""
    ready: list[Launch] = []

    def launch(*values: Any) -> tuple[object, ...]:
        if not ready:  # the kernel is asked for when the program gets there
            ready.append(_in_order(templates, values) or _plain(templates))
        return ready[0](*values)

    return launch


def _plain(templates: Mapping[str, Any]) -> Launch:
    def launch(*values: Any) -> tuple[object, ...]:
        arguments: Any = {name: fill(part, values) for name, part in templates.items()}
        user_kernels.launch(**arguments)
        return ()

    return launch


def _in_order(templates: Mapping[str, Any], values: Sequence[Any]) -> Launch | None:
    """A launch with the kernel's parameters in order, of values as these; None where a call has
    views, descriptors, or a grid for each of several configurations."""
    kernel = user_kernels.registered(templates["kernel"])
    tensors = [*templates["written"], *templates["read"]]
    sources, names = [*tensors, *templates["numbers"]], templates["names"]
    grid: Any = templates["grid"]
    unusual = templates.get("views") or kernel.descriptors or kernel.grids > 1
    if unusual or not tensors or not isinstance(tensors[0], Dynamic):
        return None
    kernel.check_call(len(names), len(sources), len(grid), values[tensors[0].index].device)
    positional, keywords = kernel.arguments(names, sources)
    parts = [_place(part) for part in positional]
    rest = [(name, *_place(part)) for name, part in keywords.items()]
    fixed = None if any(isinstance(size, Dynamic) for size in grid) else kernel.kernel[grid]

    def launch(*values: Any) -> tuple[object, ...]:
        start = fixed or kernel.kernel[_filled(grid, values)]
        start(
            *[values[k] if k >= 0 else part for k, part in parts],
            **{name: values[k] if k >= 0 else part for name, k, part in rest},
        )
        return ()

    first = tensors[0].index
    if values[first].device.type != "cuda":
        return launch
    if not rest and len(parts) == len(kernel.kernel.arg_names) and is_plain(kernel.kernel):
        pointers = [part.index for part in tensors]
        numbers = [part.index for part in templates["numbers"] if isinstance(part, Dynamic)]
        launch = remembered(kernel.kernel, parts, grid, pointers, numbers)
    current: Callable[[], int] = torch._C._cuda_getDevice  # type: ignore[attr-defined]

    def launch_on_device(*values: Any) -> tuple[object, ...]:
        device = values[first].get_device()
        if device == current():
            return launch(*values)
        with torch.cuda.device(device):
            return launch(*values)

    return launch_on_device


def is_plain(kernel: Any) -> bool:
    """Whether equal arguments mean the same code at every call: a `triton.jit` function that reads
    no globals and has no hooks."""
    hooks, read = (getattr(kernel, name, None) for name in ("pre_run_hooks", "used_global_vals"))
    return hooks == [] and read == {}


def remembered(
    kernel: Any,
    parts: Sequence[tuple[int, Any]],
    grid: Sequence[Any],
    pointers: Sequence[int],
    numbers: Sequence[int],
) -> Launch:
    """Launches that remember what Triton compiled for a call, by all that it compiles apart: the
    device, which pointers are aligned, and facts of numbers. That spares Triton's own search.

    kernel: a plain one; `parts` are all of its parameters, in order.
    """
    known: dict[tuple[Any, ...], Any] = {}
    fixed = None if any(isinstance(size, Dynamic) for size in grid) else tuple(grid)

    def launch(*values: Any) -> tuple[object, ...]:
        key = (
            values[pointers[0]].get_device(),
            *[values[k].data_ptr() & 15 == 0 for k in pointers],
            *[_fact(values[k]) for k in numbers],
        )
        sizes = fixed or _filled(grid, values)
        arguments = [values[k] if k >= 0 else part for k, part in parts]
        compiled = known.get(key)
        if compiled is None or kernel.pre_run_hooks:
            compiled = kernel[sizes](*arguments)
            if type(compiled).__name__ == "CompiledKernel":
                known[key] = compiled
        else:
            compiled[sizes](*arguments)
        return ()

    return launch


def _fact(number: Any) -> Any:
    """What Triton may compile a number's kernel for: its type, 1 itself, multiples of 16, and how
    many bits it takes."""
    if number.__class__ is not int:
        return number.__class__
    return number == 1, number % 16 == 0, -(2**31) <= number < 2**31, number < 2**63


def _filled(grid: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([values[n.index] if n.__class__ is Dynamic else n for n in grid])


def _place(part: Any) -> tuple[int, Any]:
    """The number of the value that a part is, -1 for a constant."""
    return (part.index, None) if isinstance(part, Dynamic) else (-1, part)


__all__ = ["is_plain", "prepared", "remembered"]
