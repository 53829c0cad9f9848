"""Reductions over leading dimensions share their results' axes with what reads them, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.dialects import loop
from irc.dialects.layout import ViewOp
from irc.ir.passes import PassContext, PassManager
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.pipeline import stages

F = torch.nn.functional
LOWERING = list(stages().values())[:-2]


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def lowered(function: Callable[..., Any], args: Any, target: str = "triton") -> Any:
    """The module on the loop level, fused; with so few results as these that count."""
    module = irc.trace(function, args)
    text = ",".join(LOWERING).replace("rows-first", "rows-first{min_results=8}")
    PassManager.parse(text).run(module, PassContext(target=target))
    return module


def heads(module: Any) -> list[Any]:
    function = next(iter(module.ops))
    return [op for op in function.block.ops if isinstance(op, loop.ComputeOp | loop.GroupOp)]


def channels_norm(x: torch.Tensor) -> torch.Tensor:
    variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5)


def kept_beside(x: torch.Tensor) -> Any:
    """An elementwise result that is summed over columns and returned, too."""
    y = torch.exp(x)
    return y, y / y.sum(0)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "softmax of columns": (lambda x: F.softmax(x, 0), (random(9, 40),)),
    "log_softmax of columns": (lambda x: F.log_softmax(x, 0), (random(9, 40),)),
    "softmax of rows in columns": (lambda x: F.softmax(x, 0), (random(40, 9).t(),)),
    "norm over channels": (channels_norm, (random(2, 6, 5, 4),)),
    "kept beside": (kept_beside, (random(9, 40),)),
    "added to what follows": (lambda x, y: F.softmax(x, 0) + y.t(), (random(9, 40),
                                                                    random(40, 9))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_kernel_with_eagers_values(name: str) -> None:
    function, args = FUNCTIONS[name]
    module = lowered(function, args)
    assert len(heads(module)) == 1
    assert any(isinstance(op, ViewOp) for op in module.walk())
    expected = function(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(irc.run(module, *args), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gpu_kernels_have_eagers_values(name: str) -> None:
    function, args = FUNCTIONS[name]
    module = lowered(function, args)
    PassManager.parse("schedule{target=gpu},form-kernels").run(module)
    expected = function(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(irc.run(module, *args), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_cpu_keeps_the_order_of_memory() -> None:
    module = lowered(lambda x: F.softmax(x, 0), (random(9, 40),), "llvm")
    assert not any(isinstance(op, ViewOp) for op in module.walk())


def test_few_results_stay_apart() -> None:
    module = lowered(lambda x: F.softmax(x, 0), (random(40, 7),))
    assert not any(isinstance(op, ViewOp) for op in module.walk())


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "tile"),
    [
        ((256, 4096), (4096, 1), torch.float32, [8, 256, 4]),
        ((1000, 8192), (8192, 1), torch.float32, [16, 1024, 4]),
        ((4096, 2048), (2048, 1), torch.float32, [8, 4096, 8]),
        ((4096, 8192), (8192, 1), torch.float32, [64, 32, 16]),
        ((4096, 8192), (8192, 1), torch.bfloat16, [64, 64, 16]),
        ((768, 8192), (1, 768), torch.bfloat16, [32, 128, 16]),
    ],
)
def test_tiles_of_columns_fit_into_registers(
    shape: Any, strides: Any, dtype: torch.dtype, tile: list[int]
) -> None:
    with torch._subclasses.FakeTensorMode():
        x = torch.empty_strided(shape, strides, dtype=dtype)
        module = lowered(lambda x: F.softmax(x, 0), (x,))
    (group,) = heads(module)
    entries: Any = default_schedule(group).entries.as_dict()
    assert [entries[k].value for k in ("x_block", "r_block", "num_warps")] == tile
