"""What the tests of frozen convolutions in kernels of our own share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.options.options import from_mapping
from irc.pipeline import pipeline_text

OPTIONS: dict[str, Any] = {"freezing": True, "fx_graph_cache": False}


def relative_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    return float((result.double() - exact).norm().detach() / exact.norm().detach())


def compiled(model: nn.Module, dynamic: bool = False) -> Any:
    return torch.compile(model, backend="irc", dynamic=dynamic, options=OPTIONS)


def launched(made: list[Any], stem: str) -> int:
    """How many kernels whose names begin with `stem` the recorded programs launch."""
    count = 0
    for one in made:
        module = one.imported.module
        PassManager.parse(pipeline_text("llvm", from_mapping(OPTIONS))).run(module)
        launches = [op for op in module.walk() if op.name == "host.launch"]
        count += sum(op.attributes["callee"].name.startswith(stem) for op in launches)
    return count


def check(
    model: nn.Module, x: torch.Tensor, stem: str, launches: int, bound: float, calls: int = 1
) -> torch.Tensor:
    """The compiled model is within `bound` of f64 in each of `calls`, through so many kernels
    named `stem`; gives its result."""
    exact = copy.deepcopy(model).double()(x.double())
    with torch.no_grad(), recording() as made:
        run = compiled(model)
        for _ in range(calls):
            result: torch.Tensor = run(x)
            assert relative_error(result, exact) < bound
    assert launched(made, stem) == launches
    return result


@contextmanager
def threads(count: int) -> Iterator[None]:
    """torch with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
