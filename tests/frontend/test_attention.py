"""Attention written by hand in training: operator and gradients, against eager mode in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import irc
from irc.frontend import backend
from irc.frontend.decompositions.table import decompositions
from irc.frontend.fx import fused_attention

B, H, L, S, D = 2, 3, 5, 7, 4
LOW = torch.finfo(torch.float32).min
FUSED = "_scaled_dot_product_flash_attention_for_cpu"


@pytest.fixture(autouse=True)
def everything_pays(monkeypatch):
    monkeypatch.setattr(fused_attention, "objection", lambda *given: "")
    torch.manual_seed(0)


def heads(length=L, count=H, dtype=torch.float32):
    return torch.randn(B, length, count, D).to(dtype).transpose(1, 2)


def leaves(arguments, dtype=None):
    return [
        a.detach().to(dtype or a.dtype).requires_grad_(a.is_floating_point())
        if a.is_floating_point() else a
        for a in arguments
    ]  # fmt: skip


def programs(function, *arguments, options=None, dynamic=False, names=True):
    """Result and gradients of a compiled function, and the operators of its programs."""
    torch._dynamo.reset()
    given = leaves(arguments)
    with backend.recording() as compiled:
        made = torch.compile(function, backend="irc", dynamic=dynamic, options=options)(*given)
        towards = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
        made.backward(towards.to(made.dtype))
    texts = [irc.print_op(entry.imported.module) for entry in compiled]
    return [made, *(g.grad for g in given if g.requires_grad)], texts


def check(function, *arguments, tolerance=5e-6, dynamic=False):
    found, texts = programs(function, *arguments, dynamic=dynamic)
    wide = leaves(arguments, torch.float64)
    wanted = function(*wide)
    towards = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    wanted.backward(towards.to(found[0].dtype).double())
    for mine, exact in zip(found, [wanted, *(g.grad for g in wide if g.requires_grad)],
                           strict=True):  # fmt: skip
        torch.testing.assert_close(
            mine.double(), exact, atol=tolerance, rtol=tolerance, equal_nan=True
        )
    forward, backward = texts
    assert FUSED in forward and f"{FUSED}_backward" in backward
    assert "aten.bmm" not in forward and "aten.bmm" not in backward


def weights(scores, value):
    return scores.softmax(-1) @ value


def plain(q, k, v):
    return weights(q @ k.mT / math.sqrt(D), v)


def scaled_before(q, k, v):
    return weights((q * 0.3) @ (k * 1.5).mT, v)


def einsum(q, k, v):
    p = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bhkd->bqhd", p, v)


def flat(q, k, v):
    q, k, v = (x.reshape(B * H, -1, D) for x in (q, k, v))
    return torch.bmm(torch.bmm(q, k.mT).softmax(-1), v)


def causal(q, k, v):
    seen = torch.ones(L, S, dtype=torch.bool).tril()
    return weights((q @ k.mT).masked_fill(~seen, -math.inf), v)


def dropped(q, k, v):
    return F.dropout((q @ k.mT).softmax(-1), 0.0, True) @ v


@pytest.mark.parametrize("function", (plain, scaled_before, einsum, flat, causal, dropped),
                         ids=lambda f: f.__name__)  # fmt: skip
def test_gradients(function):
    check(function, heads(), heads(S), heads(S))


@pytest.mark.parametrize("function", (plain, einsum), ids=lambda f: f.__name__)
def test_gradients_of_any_size(function):
    check(function, heads(), heads(S), heads(S), dynamic=True)


def masked(q, k, v, mask):
    return weights((q @ k.mT * 0.5).masked_fill(mask, -math.inf), v)


def lowest(q, k, v, mask):
    return weights(torch.where(mask, LOW, q @ k.mT), v)


@pytest.mark.parametrize("function", (masked, lowest), ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", ((B, 1, 1, S), (B, H, L, S)))
def test_rows_without_a_key(function, shape):
    """As written: NaN, or the mean of the values, and gradients of neither query nor keys."""
    mask = torch.rand(shape) > 0.6
    mask.view(-1, S)[0] = True
    check(function, heads(), heads(S), heads(S), mask)


def safe(scores, value):
    """Probabilities as torch has them where no fused kernel is: 0 in a row without any key."""
    return torch.ops.aten._safe_softmax(scores, -1) @ value


def safe_masked(q, k, v, mask):
    return safe((q @ k.mT * 0.5).masked_fill(~mask, -math.inf), v)


def safe_added(q, k, v, mask):
    """A bool mask as what is added."""
    mask = torch.where(mask, 0.0, -math.inf).to(q.dtype)
    return safe((q * 0.7) @ (k * 0.7).mT + mask, v)


@pytest.mark.parametrize("function", (safe_masked, safe_added), ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", ((B, 1, 1, S), (B, H, L, S), (B, 1, L, 1)))
@pytest.mark.parametrize("like_a_gpu", (False, True))
def test_rows_without_a_key_that_are_0(function, shape, like_a_gpu, monkeypatch):
    """So are their gradients, and what they add to others'."""
    if like_a_gpu:  # whose kernels don't say what such a row is
        monkeypatch.setattr(fused_attention, "_is_on_gpu", lambda node: True)
    mask = torch.rand(shape) > 0.4
    mask.view(-1, shape[-1])[0] = False
    check(function, heads(), heads(S), heads(S), mask)


def test_a_mask_that_says_nothing_is_none():
    def idle(q, k, v):
        seen = (torch.arange(L)[:, None] >= 0).expand(L, S)
        return safe((q @ k.mT).masked_fill(~seen, -math.inf), v)

    check(idle, heads(), heads(S), heads(S))
    _, (text, *_) = programs(idle, heads(), heads(S), heads(S))
    assert "attn_mask" not in text and "aten.arange" not in text


def test_safe_rows_of_a_program_without_gradients():
    """-inf may be what is added as well: a mask of any kind that is an argument."""

    def added(q, k, v, mask):
        return safe(q @ k.mT + mask, v)

    mask = torch.randn(B, 1, L, S)
    mask[0, 0, 1] = -math.inf
    mask[1, 0, :, 2:] = -math.inf
    given = heads(), heads(S), heads(S), mask
    for gpu in (False, True):
        module = make_fx(added, tracing_mode="fake", decomposition_table=decompositions())(*given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fused_attention, "_is_on_gpu", lambda node, gpu=gpu: gpu)
            assert fused_attention.fuse(module, 0) == 1
        found, wanted = module(*given), added(*(g.double() for g in given))
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


def test_a_bias_of_constants():
    def sloped(q, k, v):
        apart = torch.arange(S)[None, :] - torch.arange(L)[:, None]
        slopes = torch.tensor([0.5, 0.25, 0.125], dtype=q.dtype)[:, None, None]
        return weights(q @ k.mT + slopes * apart, v)

    check(sloped, heads(), heads(S), heads(S))


def test_a_mask_that_is_near():
    def near(q, k, v, mask):
        return weights(q @ k.mT + mask.to(q.dtype) * -9000.0, v)

    check(near, heads(), heads(S), heads(S), torch.rand(B, 1, 1, S) > 0.5)


def test_heads_in_groups():
    def repeated(q, k, v):
        k, v = (x.repeat_interleave(H, 1) for x in (k, v))
        return plain(q, k, v)

    check(repeated, heads(), heads(S, 1), heads(S, 1))


def test_softmax_in_f32():
    def upcast(q, k, v):
        return F.softmax(q @ k.mT * 0.5, -1, dtype=torch.float32).to(q.dtype) @ v

    given = [heads(n, dtype=torch.bfloat16) for n in (L, S, S)]
    check(upcast, *given, tolerance=5e-2)


def test_autocast():
    def cast(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=q.dtype == torch.float32):
            return plain(q, k, v).to(q.dtype)

    check(cast, heads(), heads(S), heads(S), tolerance=5e-2)


def test_several_layers():
    def layers(x, w):
        for _ in range(2):
            q, k, v = ((x @ w).unflatten(-1, (3, H, D)).transpose(1, 3)).unbind(2)
            x = x + plain(q, k, v).transpose(1, 2).flatten(2)
        return x

    check(layers, torch.randn(B, L, H * D), torch.randn(H * D, 3 * H * D) * 0.2)


def test_masks_that_a_gpu_multiplies_are_finite(monkeypatch):
    """Its kernels multiply masks by log2(e)."""
    bias = torch.zeros(B, 1, L, S)
    bias[0, 0, 1] = LOW
    bias[1, 0, 2] = -math.inf
    given = heads(), heads(S), heads(S), bias

    def added(q, k, v, bias):
        return weights(q @ k.mT + bias, v)

    monkeypatch.setattr(fused_attention, "_is_on_gpu", lambda node: True)
    module = make_fx(added, tracing_mode="fake", decomposition_table=decompositions())(*given)
    assert fused_attention.fuse(module, 0) == 1
    assert any(node.target is torch.ops.aten.clamp_min.default for node in module.graph.nodes)
    found, wanted = module(*given), added(*(g.double() for g in given))
    torch.testing.assert_close(found.double(), wanted, equal_nan=True, rtol=1e-5, atol=1e-5)


# -- what stays


class Straight(torch.autograd.Function):
    """A softmax with a backward of its own."""

    @staticmethod
    def forward(context, scores):
        made = scores.softmax(-1)
        context.save_for_backward(made)
        return made

    @staticmethod
    def backward(context, grad):
        (made,) = context.saved_tensors
        return torch.ops.aten._softmax_backward_data(grad, made, -1, made.dtype) * 2.0


def own_backward(q, k, v):
    return Straight.apply(q @ k.mT) @ v


def weights_read(q, k, v):
    p = (q @ k.mT).softmax(-1)
    return p @ v + p.sum()


def learned(q, k, v, bias):
    return weights(q @ k.mT + bias, v)


def low(q, k, v, bias):
    """Of rows that it hides, gradients would be those of another softmax."""
    return weights(q @ k.mT + bias.detach(), v) + 0 * bias.sum()


@pytest.mark.parametrize("function", (own_backward, weights_read, learned, low),
                         ids=lambda f: f.__name__)  # fmt: skip
def test_what_is_left_as_it_is_written(function):
    given = [heads(), heads(S), heads(S)]
    if function in (learned, low):
        given.append(torch.randn(1, H, L, S))
    found, texts = programs(function, *given)
    assert not any(FUSED in text for text in texts)
    eager = leaves(given)
    wanted = function(*eager)
    wanted.backward(torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1)))
    for mine, exact in zip(found, [wanted, *(g.grad for g in eager)], strict=True):
        torch.testing.assert_close(mine, exact, atol=1e-5, rtol=1e-5)


def test_a_checkpointed_attention_is_right():
    def again(q, k, v):
        return checkpoint(plain, q, k, v, use_reentrant=False) * 2.0

    found, _ = programs(again, heads(), heads(S), heads(S))
    torch.manual_seed(0)
    given = leaves([heads(), heads(S), heads(S)])
    wanted = again(*given)
    wanted.backward(torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1)))
    for mine, exact in zip(found, [wanted, *(g.grad for g in given)], strict=True):
        torch.testing.assert_close(mine, exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", ({"pattern_matcher": False}, {"emulate_rounding": True}))
def test_options_that_switch_it_off(options):
    _, texts = programs(plain, heads(), heads(S), heads(S), options=options)
    assert not any(FUSED in text for text in texts)


def test_remarks(capsys):
    programs(plain, heads(), heads(S), heads(S), options={"remarks": "fuse-attention"})
    assert "'aten.bmm.default': attention is one operator" in capsys.readouterr().err
    programs(weights_read, heads(), heads(S), heads(S), options={"remarks": "fuse-attention"})
    assert "its probabilities are read elsewhere, too" in capsys.readouterr().err


def says_nothing(q, k, v):
    added = torch.zeros(L, S).masked_fill(torch.arange(S) < 0, -math.inf)
    return weights(q @ k.mT * 0.5 + added, v)


def sees_the_past(q, k, v):
    return weights(q @ k.mT * 0.5 + torch.full((L, L), -math.inf).triu(1), v)


def test_masks_that_are_not_read_are_told(capsys):
    told = {"remarks": "fuse-attention"}
    programs(says_nothing, heads(), heads(S), heads(S), options=told)
    assert "without a mask proven to leave all scores as they are" in capsys.readouterr().err
    programs(sees_the_past, heads(), heads(), heads(), options=told)
    assert "whose mask is proven to be causal and not read" in capsys.readouterr().err
    programs(plain, heads(), heads(S), heads(S), options=told)
    assert "proven" not in capsys.readouterr().err


def test_fuel_stops_it(capsys):
    _, texts = programs(plain, heads(), heads(S), heads(S), options={"fuel": 0})
    assert not any(FUSED in text for text in texts)
    assert "0 attentions of torch's graph are fused" in capsys.readouterr().err
