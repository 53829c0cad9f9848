"""The gradient of what follows a normalization computes the normalized values again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from irc.frontend.fx.recomputed_norms import spell_norms
from tests.frontend.test_partition import check, stored, trained

NORMS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], bool]] = {
    "groups": (lambda x, w, b: F.group_norm(x, 3, w, b), (2, 6, 5, 7), True),
    "groups of lines": (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 6, 5), True),
    "groups of rows": (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 6), True),
    "one group": (lambda x, w, b: F.group_norm(x, 1, w, b), (2, 4, 3, 3), True),
    "plain groups": (lambda x: F.group_norm(x, 3), (2, 6, 5, 7), False),
    "layers": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), (3, 5, 7), True),
    "layers of two": (lambda x: F.layer_norm(x, x.shape[-2:]), (3, 5, 7), False),
    "only scaled": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w), (3, 7), True),
}


def operands(name: str, dtype: torch.dtype, last: bool = False) -> list[Tensor]:
    torch.manual_seed(3)
    norm, shape, scaled = NORMS[name]
    x = torch.randn(shape)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    count = shape[1] if "groups" in name or "group" in name else shape[-1]
    return [v.to(dtype) for v in (x, *([torch.randn(count)] * 2 if scaled else []))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_no_normalized_array_is_stored(name, dtype):
    norm = NORMS[name][0]
    arguments = operands(name, dtype)
    if name == "only scaled":
        arguments, norm = arguments[:2], lambda x, w: F.layer_norm(x, x.shape[-1:], w)
    sides = trained(lambda *v: F.silu(norm(*v)), *arguments)
    check(sides, 5e-2 if dtype is torch.bfloat16 else 1e-5)
    assert stored(sides[2]) < arguments[0].numel()


def test_channels_last():
    arguments = operands("groups", torch.float32, last=True)
    sides = trained(lambda *v: F.gelu(NORMS["groups"][0](*v)), *arguments)
    check(sides)
    assert stored(sides[2]) < arguments[0].numel()
    assert sides[0][1].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", ["groups", "layers"])
def test_symbolic_sizes(name):
    arguments = operands(name, torch.float32)
    sides = trained(lambda *v: F.silu(NORMS[name][0](*v)), *arguments, dynamic=True)
    check(sides)


def test_nan_and_infinity_stay_in_their_rows():
    x = torch.randn(4, 8)
    x[1, 3], x[2, 5] = torch.inf, torch.nan
    sides = trained(lambda x: F.silu(F.layer_norm(x, (8,))), x)
    check(sides)
    assert sides[0][1][0].isfinite().all()


def test_empty_arrays():
    check(trained(lambda x: F.silu(F.layer_norm(x, (8,))), torch.randn(0, 8)))


def test_what_only_products_read_is_stored():
    """As they need it in memory: computing it again would cost a kernel."""
    x, w = torch.randn(6, 8), torch.randn(5, 8)
    sides = trained(lambda x, w: F.linear(F.layer_norm(x, (8,)), w), x, w)
    check(sides)
    assert stored(sides[2]) >= x.numel()


def test_what_lies_in_another_order_than_gradients_is_stored() -> None:
    """A kernel that computes it again would read the source across."""

    def joint(x: Tensor, tangents_1: Tensor) -> tuple[Tensor, ...]:
        y, *_ = torch.ops.aten.native_group_norm(x, None, None, 2, 4, 15, 2, 1e-5)
        return y, tangents_1 * y

    x, g = torch.randn(2, 4, 3, 5), torch.randn(2, 4, 3, 5)
    for first, second, count in ((x, g, 1), (channels_last(x), g, 0)):
        module = make_fx(joint, tracing_mode="fake")(first, second)
        for node, name in zip(module.graph.nodes, ("primals_1", "tangents_1"), strict=False):
            node.target = node.name = name
        assert spell_norms(module) == count


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def joint(x: Tensor, w: Tensor, tangents_1: Tensor) -> tuple[Tensor, ...]:
    y, mean, scale = torch.ops.aten.native_layer_norm(x, [7], w, None, 1e-5)
    z, _, _ = torch.ops.aten.native_layer_norm(x, [7], None, None, 1e-5)
    return y, z, mean, scale, tangents_1 * y.sigmoid()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_results_are_written_out_where_gradients_read_them(dtype, mode):
    torch.manual_seed(1)
    args = [torch.randn(3, 7).to(dtype), torch.randn(7).to(dtype), torch.randn(3, 7).to(dtype)]
    module = make_fx(joint, tracing_mode=mode)(*args)
    for node, name in zip(
        module.graph.find_nodes(op="placeholder"), ("primals_1", "primals_2", "tangents_1")
    ):
        node.target = node.name = name
    assert spell_norms(module) == 1
    module.graph.lint()
    assert all("val" in n.meta for n in module.graph.nodes if n.op == "call_function")
    (output,) = module.graph.find_nodes(op="output")
    written, whole = output.args[0][:2]
    assert "getitem" not in written.name and "getitem" in whole.name
    module.recompile()
    error = {torch.float32: 1e-6, torch.float16: 2e-3}[dtype]
    for got, expected in zip(module(*args), joint(*args), strict=True):
        assert got.dtype is expected.dtype
        torch.testing.assert_close(got, expected, rtol=error, atol=error)
