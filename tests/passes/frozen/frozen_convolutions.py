"""What the tests of frozen convolutions in kernels of our own share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from irc.dialects import graph
from irc.frontend.backend import recording
from irc.ir.core import Operation
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import pipeline_text, stages

OPTIONS: dict[str, Any] = {"freezing": True, "fx_graph_cache": False}


def relative_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    return float((result.double() - exact).norm().detach() / exact.norm().detach())


def compiled(model: nn.Module, dynamic: bool = False) -> Any:
    return torch.compile(model, backend="irc", dynamic=dynamic, options=OPTIONS)


def counted(made: list[Any], cls: type[Operation]) -> int:
    """How many operations of a class the recorded programs have, and kernels that launches run;
    no packed convolution."""
    count = 0
    for one in made:
        module, texts = one.imported.module, stages("llvm", from_mapping(OPTIONS))
        PassManager.parse(f"{texts['aten-to-graph']},{texts['graph-to-layout']}").run(module)
        count += sum(isinstance(op, cls) for op in module.walk())
        assert not any(isinstance(op, graph.PackedConv) for op in module.walk())
    return count


def check(
    model: nn.Module, x: torch.Tensor, cls: type[Operation], count: int, bound: float,
    calls: int = 1,
) -> torch.Tensor:  # fmt: skip
    """The compiled model is within `bound` of f64 in each of `calls`, through so many operations of
    a class; gives its result."""
    exact = copy.deepcopy(model).double()(x.double())
    with torch.no_grad(), recording() as made:
        run = compiled(model)
        for _ in range(calls):
            result: torch.Tensor = run(x)
            assert relative_error(result, exact) < bound
    assert counted(made, cls) == count
    return result


class Residual(nn.Module):
    """Two convolutions around a batch norm, a sum with the image, and an activation before that or
    behind it."""

    def __init__(
        self, first: nn.Conv2d, second: nn.Conv2d, last: nn.Module, *, sums_last: bool
    ) -> None:
        super().__init__()
        self.first, self.second, self.last = first, second, last
        self.norm = nn.BatchNorm2d(first.out_channels)
        self.norm.running_mean.normal_()
        self.sums_last = sums_last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(torch.relu(self.norm(self.first(x))))
        return self.last(y) + x if self.sums_last else self.last(y + x)


def check_sizes(model: nn.Module, sizes: list[tuple[int, ...]], bound: float) -> None:
    """One program computes images of all these sizes."""
    exact = copy.deepcopy(model).double()
    with torch.no_grad(), recording() as made:
        run = compiled(model, dynamic=True)
        for shape in sizes:
            x = torch.randn(shape)
            assert relative_error(run(x), exact(x.double())) < bound
    assert len(made) == 1


def told_of(model: nn.Module, x: torch.Tensor, until: str, **options: Any) -> tuple[str, Any]:
    """The remarks of the passes before `until` on a frozen model, and the module there."""
    with torch.no_grad(), recording() as made:
        compiled(model.eval())(x)
    module = made[0].imported.module
    text = pipeline_text("llvm", from_mapping({**OPTIONS, **options}))
    context = PassContext(target="llvm", explains=True)
    PassManager.parse(text[: text.index(f",{until}")]).run(module, context)
    return "\n".join(map(str, context.remarks)), module


@contextmanager
def threads(count: int) -> Iterator[None]:
    """torch with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
