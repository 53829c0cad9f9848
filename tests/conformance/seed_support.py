"""What the tests of the seed rows share: compiling, and comparing with eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tests.backends import BACKEND
from tests.conformance.compare import strides

Function = Callable[..., Any]


def dynamic(fn: Function, **keywords: Any) -> Function:
    """`fn` compiled with every size and number a symbol."""
    return torch.compile(fn, backend=BACKEND, dynamic=True, **keywords)


def whole(fn: Function, **keywords: Any) -> Function:
    """`fn` compiled as one graph."""
    return torch.compile(fn, backend=BACKEND, fullgraph=True, **keywords)


def options(**given: Any) -> dict[str, Any] | None:
    """Options of torch.compile, which only irc understands."""
    return given if BACKEND == "irc" else None


def assert_equal(actual: Any, expected: Any, tolerance: float | None = None) -> None:
    """Equal as the table means it: values within assert_close's tolerance (or `tolerance`, both
    absolute and relative), and the same structure, types, dtypes, shapes, strides (of what has
    more than one element) and requires_grad. NaN equals NaN."""
    got, got_structure = pytree.tree_flatten(actual)
    wanted, wanted_structure = pytree.tree_flatten(expected)
    assert got_structure == wanted_structure
    for mine, eager in zip(got, wanted, strict=True):
        assert type(mine) is type(eager)
        bounds = {} if tolerance is None else {"atol": tolerance, "rtol": tolerance}
        torch.testing.assert_close(mine, eager, equal_nan=True, **bounds)
        if isinstance(eager, torch.Tensor):
            assert strides(mine) == strides(eager)
            assert mine.requires_grad == eager.requires_grad


def same(compiled: Function, fn: Function, *args: Any, tolerance: float | None = None) -> Any:
    """Asserts that both give equal results; returns the compiled one's."""
    actual = compiled(*args)
    assert_equal(actual, fn(*args), tolerance)
    return actual


def gradients(fn: Function, args: tuple[Any, ...], leaves: tuple[torch.Tensor, ...]) -> Any:
    """The gradients of the sum of `fn`'s outputs."""
    made = fn(*args)
    total = sum(m.sum() for m in (made if isinstance(made, tuple) else (made,)))
    return torch.autograd.grad(total, leaves)
