"""Statistics that a forward program saves for its backward are not rounded to 16 bits."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

import irc  # noqa: F401  (registers the backend)
from irc.frontend.decompositions.table import in_f32
from irc.frontend.fx.wide_statistics import keep_statistics_wide


def traced(function, *shapes):
    with FakeTensorMode():
        return make_fx(function)(*(torch.empty(s, dtype=torch.bfloat16) for s in shapes))


def casts(module):
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    return [n.kwargs["dtype"] for n in calls if "dtype" in n.kwargs]


def test_readers_of_a_statistic_read_it_unrounded():
    def function(x, y):
        scale = (x.float().var(1, keepdim=True) + 1e-5).rsqrt().bfloat16()
        return scale, y * scale.float(), y.float() * scale.squeeze(1).unsqueeze(1)

    module = traced(function, (4, 8), (4, 8))
    assert keep_statistics_wide(module) == 2
    # x, the scale that is a result, y: nothing widens the rounded scale.
    assert casts(module) == [torch.float32, torch.bfloat16, torch.float32]
    torch.manual_seed(0)
    x, y = torch.randn(4, 8).bfloat16(), torch.randn(4, 8).bfloat16()
    scale = (x.float().var(1, keepdim=True) + 1e-5).rsqrt()
    expected = scale.bfloat16(), y * scale, y.float() * scale
    for got, wanted in zip(module(x, y), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def test_a_view_of_symbolic_sizes_is_one_of_the_wide_statistic():
    def function(x):
        mean = x.float().mean(1).bfloat16()
        return mean, x.float() - mean.view(x.shape[0], 1)

    x = torch.randn(5, 8).bfloat16()
    module = make_fx(function, tracing_mode="symbolic")(x)
    assert keep_statistics_wide(module) == 1
    assert torch.equal(module(x)[1], x.float() - x.float().mean(1, keepdim=True))


@pytest.mark.parametrize("function", [
    lambda x: x.float().exp().bfloat16().float(),
    lambda x: x.float().sum(0, keepdim=True).bfloat16().float(),
    lambda x: x.float()[:, :1].bfloat16().float(),
    lambda x: x.sum(1).double().bfloat16().float(),
], ids=("elements", "nothing summed", "part", "double"))  # fmt: skip
def test_what_is_no_statistic_stays(function):
    module = traced(function, (1, 8))
    assert keep_statistics_wide(module) == 0


NORMS = {
    "layer": lambda x, w: F.layer_norm(x, x.shape[2:], w[0, :1].expand(x.shape[2:])),
    "group": lambda x, w: F.group_norm(x, 3, w[0]),
    "batch": lambda x, w: F.batch_norm(x, None, None, w[0], None, True),
    "vector norm": lambda x, w: (x * w[:, :, None]).norm(2, 2),
    "three norm": lambda x, w: (x * w[:, :, None]).norm(3, 2, keepdim=True),
    "logsumexp": lambda x, w: (3 * x * w[:, :, None]).logsumexp(2),
}


@pytest.mark.parametrize(
    ("norm", "dynamic"),
    [
        *((norm, False) for norm in NORMS),
        ("layer", True),
        ("three norm", True),
        *(
            pytest.param(norm, True, marks=pytest.mark.slow)
            for norm in NORMS if norm not in ("layer", "three norm")
        ),
    ],
)  # fmt: skip
def test_gradients_of_normalizations_have_no_error_of_their_statistics(norm, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(NORMS[norm], backend="irc", dynamic=dynamic)
    mine = eager = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        x, w = (torch.randn(s).bfloat16() for s in ((5, 6, 37), (1, 6)))
        flow = torch.randn(NORMS[norm](x, w).shape).bfloat16()

        def gradients(function, dtype=torch.bfloat16, values=(x, w), flow=flow):
            leaves = [v.to(dtype).requires_grad_() for v in values]
            return torch.autograd.grad(function(*leaves), leaves, flow.to(dtype))

        exact = gradients(NORMS[norm], torch.float64)
        for got, want, true in zip(
            gradients(compiled), gradients(NORMS[norm]), exact, strict=True
        ):
            # What remains is the rounding of the gradient itself: exact's own.
            mine += float((got.double() - true).pow(2).sum() - _least(true))
            eager += float((want.double() - true).pow(2).sum() - _least(true))
    assert mine < 0.1 * eager


def _least(true):
    return float((true.bfloat16().double() - true).pow(2).sum())


def test_emulated_rounding_rounds_statistics():
    def gradient(**keywords):
        torch._dynamo.reset()
        torch.manual_seed(0)
        x = torch.randn(7, 33, dtype=torch.bfloat16, requires_grad=True)
        compiled = torch.compile(lambda x: F.layer_norm(x, (33,)), backend="irc", **keywords)
        return torch.autograd.grad(compiled(x).float().pow(2).sum(), x)[0]

    assert not torch.equal(gradient(), gradient(options={"emulate_rounding": True}))


def test_floats_of_several_dtypes_give_their_common_one():
    add = in_f32(torch._decomp.decomposition_table[torch.ops.aten.logaddexp.default])
    x = torch.randn(5)
    assert add(x.bfloat16(), x).dtype is torch.float32
    assert add(x.bfloat16(), x.bfloat16()).dtype is torch.bfloat16
