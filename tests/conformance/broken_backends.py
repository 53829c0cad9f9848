"""Backends that are wrong on purpose, to show that the harness sees each kind of fault."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import register_backend

Function = Callable[..., Any]


def _after(change: Callable[[Any], Any]) -> Callable[[torch.fx.GraphModule, list[Any]], Function]:
    """A backend that runs the graph and then changes its first result."""

    def backend(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Function:
        def run(*arguments: Any) -> Any:
            first, *rest = module(*arguments)
            return (change(first), *rest)

        return run

    return backend


_calls = itertools.count()


def _hang_later(value: Any) -> Any:
    if next(_calls):
        time.sleep(1000)
    return value


register_backend(_after(lambda value: value + 1), name="irc_test_wrong_value")
register_backend(_after(lambda value: value.to(torch.float64)), name="irc_test_wrong_dtype")
register_backend(_after(lambda value: value.clone()), name="irc_test_no_alias")
register_backend(_after(lambda value: os.abort()), name="irc_test_crash")
register_backend(_after(_hang_later), name="irc_test_hang_later")
register_backend(
    _after(lambda value: value.t().contiguous().t() if value.dim() == 2 else value),
    name="irc_test_wrong_strides",
)
