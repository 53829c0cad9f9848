"""sort and topk of rows on a GPU: integers of key and position, sorted in a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import kernel
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages

UNPADDED = irc.Options(shape_padding=False, comprehensive_padding=False)
LOWERING = ",".join(list(stages("triton", UNPADDED).values())[:-1])
INF, NAN = float("inf"), float("nan")
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool]  # fmt: skip


def lowered(f: Callable[..., Any], x: torch.Tensor, steps: str = LOWERING) -> Any:
    """The module of `f` on a GPU, as one that the interpreter runs."""
    with FakeTensorMode():
        example = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda:0")
    module = irc.trace(f, (example,))
    PassManager.parse(steps).run(module, PassContext(target="sm_90"))
    return irc.parse(irc.print_op(module).replace(', "cuda:0"', ""))


def kernels_of(module: Any) -> list[kernel.KernelFuncOp]:
    return [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]


def calls(f: Callable[..., Any], x: torch.Tensor) -> list[str]:
    module = lowered(f, x, "functional,aten-to-graph")
    return [op.callee for op in module.walk() if op.name == "graph.call_aten"]


def rows(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Numbers of which many are equal; of floats all that is special too."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-9, 9, shape, generator=generator)
    if dtype.is_floating_point:
        x = x / 2
        special = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-30, -NAN])
        x.view(-1)[:7] = special
        x.view(-1)[-7:] = special
    return x.to(dtype)


def same(mine: torch.Tensor, eager: torch.Tensor) -> bool:
    """Equal bit by bit, NaN and signs of zeros too."""
    if mine.dtype.is_floating_point:
        kind = torch.int32 if mine.dtype is torch.float32 else torch.int16
        return torch.equal(mine.contiguous().view(kind), eager.contiguous().view(kind))
    return torch.equal(mine, eager)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_positions_are_those_of_a_stable_sort(dtype, descending):
    x = rows(dtype, 6, 37)

    def f(x):
        return torch.sort(x, dim=-1, descending=descending, stable=True)

    module = lowered(f, x)
    assert len(kernels_of(module)) == 1
    values, places = irc.run(module, x)
    eager = f(x)
    assert torch.equal(places, eager.indices)
    assert same(values, eager.values)


SHAPES = [((3, 20, 5), 1), ((2, 1), 0), ((2, 1024), 1), ((9,), 0)]


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_every_dimension_and_length(shape, dim):
    x = rows(torch.float32, 20, *shape)[0]

    def f(x):
        return x.sort(dim=dim, stable=True)

    values, places = irc.run(lowered(f, x), x)
    assert torch.equal(places, f(x).indices)
    assert same(values, f(x).values)


@pytest.mark.parametrize("largest", [False, True])
def test_the_first_elements_in_order_are_topk(largest):
    x = rows(torch.float32, 4, 70)
    values, places = irc.run(lowered(lambda x: torch.topk(x, 5, largest=largest), x), x)
    order = x.sort(dim=-1, descending=largest, stable=True)
    assert torch.equal(places, order.indices[:, :5])
    assert same(values, order.values[:, :5])


def test_triton_sorts_the_same():
    jobs, expected = [], []
    for dtype in (torch.float32, torch.bfloat16):
        x = rows(dtype, 3, 13)
        (func,) = kernels_of(lowered(lambda x: x.sort(dim=-1, descending=True, stable=True), x))
        eager = x.sort(dim=-1, descending=True, stable=True)
        expected.append(eager)
        outputs = [torch.zeros_like(eager.indices), torch.zeros_like(x)]
        jobs.append(runtime.Job.of(func, emit_kernel(func), [x, *outputs], {}))
    for (_, places, values), eager in zip(runtime.run_interpreted(jobs), expected, strict=True):
        assert torch.equal(places, eager.indices)
        assert same(values, eager.values)


def test_what_a_tile_sorts_and_what_is_left_to_aten():
    def sorts(x):
        return x.sort(-1)

    assert calls(sorts, torch.empty(3, 1024)) == []
    assert calls(lambda x: x.argsort(dim=-1), torch.empty(3, 100).half()) == []
    for x in (torch.empty(3, 1025), torch.empty(3, 0), torch.empty(3, 1), torch.empty(()),
              torch.empty(3, 5).double(), torch.empty(3, 5).long()):  # fmt: skip
        assert calls(sorts, x) == ["aten.sort.default"]
    assert calls(lambda x: x.topk(2), torch.empty(3, 65)) == []
    assert calls(lambda x: x.topk(2), torch.empty(3, 64)) == []
    assert calls(lambda x: x.topk(2), torch.empty(3, 2000)) == ["aten.topk.default"]


def test_a_cpu_sorts_with_aten():
    module = irc.trace(lambda x: x.sort(-1), (torch.randn(3, 5),))
    PassManager.parse("functional,aten-to-graph").run(module)
    assert any(op.name == "graph.call_aten" for op in module.walk())


def test_a_sort_has_no_code_on_a_cpu():
    text = """
    func.func @main(%x: tensor<[4, 8] x i32, strides [8, 1]>) -> tensor<[4, 8] x i32, strides [8, 1]> {
      %y = loop.compute par(i0: 4) scan(i1: 8) -> scan(sort, i32) {
        %v = loop.read %x[i0, i1] : i32
        loop.yield %v
      } : tensor<[4, 8] x i32, strides [8, 1]>
      return %y : tensor<[4, 8] x i32, strides [8, 1]>
    }"""  # noqa: E501
    module = irc.parse(text)
    x = torch.randint(-5, 5, (4, 8)).int()
    assert torch.equal(irc.run(module, x)[0], x.sort(-1).values)
    with pytest.raises(irc.IRCError, match="a sort has no code on a cpu"):
        PassManager.parse("loop-to-kernel").run(module, PassContext(target="avx2"))
