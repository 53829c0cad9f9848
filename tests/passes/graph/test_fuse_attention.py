"""`fuse-attention`: which written forms become one operator, with the values as written."""

import math

import pytest
import torch
import torch.nn.functional as F

import irc
from irc.ir.passes import PassContext
from irc.pipeline import pipeline_text

B, H, L, S, D = 2, 4, 5, 7, 8
LOW = torch.finfo(torch.float32).min
FORCED = "functionalize,decompose-aten,fuse-attention{force=true}"


def heads(length=L, count=H, width=D, batch=B, dtype=torch.float32):
    """A query, key or value as a view of a projection's result."""
    return torch.randn(batch, length, count, width).to(dtype).transpose(1, 2)


def fused(function, *arguments, dynamic=False, passes=FORCED):
    """The program behind the pass, how many attentions it fused, and its remarks."""
    module = irc.trace(function, arguments, dynamic=dynamic)
    context = PassContext(target="avx2")
    irc.PassManager.parse(passes, verify="each").run(module, context)
    texts = [remark.message for remark in context.remarks if remark.pass_name == "fuse-attention"]
    return module, context.statistics["fuse-attention", "fused"], texts


def wide(arguments):
    return [a.double() if a.is_floating_point() else a for a in arguments]


def check(function, *arguments, tolerance=2e-6):
    """Values against eager mode in float64; strides and dtype."""
    module, found, texts = fused(function, *arguments)
    assert found == 1, texts
    (result,) = irc.run(module, *arguments)
    wanted = function(*wide(arguments))
    torch.testing.assert_close(
        result.double(), wanted.double(), atol=tolerance, rtol=tolerance, equal_nan=True
    )
    eager = function(*arguments)
    assert result.stride() == eager.stride() and result.dtype == eager.dtype
    return module


def weights(scores, value):
    return scores.softmax(-1) @ value


def plain(q, k, v):
    return weights(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(D), v)


def scaled_before(q, k, v):
    return weights((q * 0.3) @ k.mT, v)


def scaled_on_both(q, k, v):
    return weights((q * D**-0.25) @ (k * D**-0.25).mT, v)


def scale_of_a_tensor(q, k, v):
    return weights(q @ k.mT / torch.full([], 2.5, dtype=q.dtype), v)


def einsum(q, k, v):
    p = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bhkd->bqhd", p, v)


def einsum_of_projections(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    p = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", p, v)


def flat(q, k, v):
    q, k, v = (x.reshape(B * H, -1, D) for x in (q, k, v))
    scores = torch.baddbmm(torch.zeros(1, dtype=q.dtype), q, k.mT, beta=0.0, alpha=0.4)
    return torch.bmm(scores.softmax(-1), v).view(B, H, L, D)


def dropped(q, k, v):
    p = F.dropout((q @ k.mT).softmax(-1), 0.0, True)
    return F.dropout(p, 0.3, False) @ v


def merged(q, k, v):
    return plain(q, k, v).transpose(1, 2).reshape(B, L, H * D)


def constant_added(q, k, v):
    return weights(q @ k.mT * 0.5 + 3.0, v)


def causal(q, k, v):
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    return weights((q @ k.mT).masked_fill(~seen, -math.inf), v)


def causal_by_positions(q, k, v):
    seen = torch.arange(q.shape[2])[:, None] >= torch.arange(k.shape[2])
    return weights(torch.where(seen, q @ k.mT, torch.tensor(LOW, dtype=q.dtype)), v)


def causal_added(q, k, v):
    ahead = torch.full((q.shape[2], k.shape[2]), -math.inf).triu(1)
    return weights(q @ k.mT + ahead, v)


UNMASKED = [
    plain, scaled_before, scaled_on_both, scale_of_a_tensor, einsum, einsum_of_projections, flat,
    dropped, merged, constant_added,
]  # fmt: skip
CAUSAL = [causal, causal_by_positions, causal_added]


@pytest.mark.parametrize("function", UNMASKED, ids=lambda f: f.__name__)
def test_written_forms(function):
    torch.manual_seed(0)
    check(function, heads(), heads(S), heads(S))


@pytest.mark.parametrize("function", [plain, einsum_of_projections, causal, causal_by_positions],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_sizes_that_change(function):
    torch.manual_seed(1)
    module, found, _ = fused(function, heads(), heads(S), heads(S), dynamic=True)
    assert found == 1
    for batch, length, keys in ((2, 5, 7), (3, 6, 4), (2, 9, 9)):
        given = heads(length, batch=batch), heads(keys, batch=batch), heads(keys, batch=batch)
        (result,) = irc.run(module, *given)
        torch.testing.assert_close(result.double(), function(*wide(given)), atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("keys", (L, S, 3))
@pytest.mark.parametrize("function", CAUSAL, ids=lambda f: f.__name__)
def test_a_causal_mask_of_constants_is_none(function, keys):
    torch.manual_seed(2)
    module = check(function, heads(), heads(keys), heads(keys))
    text = irc.print_op(module)
    assert "is_causal = true" in text and "attn_mask" not in text


def test_a_mask_that_is_almost_causal_is_a_mask():
    def shifted(q, k, v):
        seen = torch.ones(L, S, dtype=torch.bool).tril(1)
        return weights((q @ k.mT).masked_fill(~seen, -math.inf), v)

    text = irc.print_op(check(shifted, heads(), heads(S), heads(S)))
    assert "attn_mask" in text and "is_causal" not in text
    assert "amax" not in text, "each row has a key"


def masked(q, k, v, mask):
    return weights((q @ k.mT * 0.5).masked_fill(mask, -math.inf), v)


def chosen(q, k, v, mask):
    return weights(torch.where(~mask, q @ k.mT, torch.full([], -math.inf, dtype=q.dtype)), v)


def lowest(q, k, v, mask):
    return weights((q @ k.mT).masked_fill(mask, LOW), v)


def low(q, k, v, mask):
    return weights((q @ k.mT).masked_fill(mask, -1e9), v)


def added_lowest(q, k, v, mask):
    return weights(q @ k.mT * 0.5 + mask.to(torch.float32) * LOW, v)


def scaled_after(q, k, v, mask):
    return weights((q @ k.mT).masked_fill(mask, -math.inf) * 0.5, v)


MASKS = [
    (masked, (B, 1, 1, S)), (chosen, (B, H, L, S)), (lowest, (1, 1, L, S)), (low, (L, S)),
    (added_lowest, (S,)), (scaled_after, (L, 1)), (masked, (L, S)), (lowest, (B, 1, 1, S)),
]  # fmt: skip


@pytest.mark.parametrize("function, shape", MASKS)
def test_masks_by_condition(function, shape):
    """Rows without any key, too: NaN, or the mean of the values."""
    torch.manual_seed(3)
    mask = torch.rand(shape) > 0.5
    mask.view(-1, shape[-1])[0] = True
    module = check(function, heads(), heads(S), heads(S), mask)
    finite = function in (lowest, low, added_lowest)
    assert ("amax" in irc.print_op(module)) != finite


def added(q, k, v, mask):
    return weights(q @ k.mT * 0.5 + mask, v)


def subtracted_and_scaled(q, k, v, mask):
    return weights((q @ k.mT - mask) * 0.5, v)


ADDED = [
    (added, (B, 1, 1, S)), (added, (H, L, S)), (added, (L, 1)),
    (subtracted_and_scaled, (1, H, L, S)), (subtracted_and_scaled, (L, S)),
]  # fmt: skip


@pytest.mark.parametrize("function, shape", ADDED)
def test_what_is_added(function, shape):
    torch.manual_seed(4)
    mask = torch.randn(shape)
    check(function, heads(), heads(S), heads(S), mask)
    mask.view(-1)[::3] = math.inf if function is subtracted_and_scaled else -math.inf
    mask[..., :1, :] = mask.view(-1)[0]
    mask.view(-1)[-1] = math.nan
    check(function, heads(), heads(S), heads(S), mask)


def test_a_mask_in_another_order():
    torch.manual_seed(5)
    check(added, heads(), heads(S), heads(S), torch.randn(B, 1, S, L).mT)


@pytest.mark.parametrize("shape", ((B * H, 1, S), (B * H, L, S), (1, L, S), (L, S)))
def test_batch_and_heads_in_one_dimension(shape):
    """As BLOOM adds its slopes."""

    def sloped(q, k, v, slopes):
        q, k, v = (x.reshape(B * H, -1, D) for x in (q, k, v))
        scores = torch.baddbmm(slopes, q, k.mT, beta=1.0, alpha=0.5).view(B, H, L, S)
        return torch.bmm(scores.softmax(-1).view(B * H, L, S), v).view(B, H, L, D)

    torch.manual_seed(16)
    check(sloped, heads(), heads(S), heads(S), torch.randn(shape))


def test_several_masks():
    def several(q, k, v, bias, padding):
        seen = torch.ones(L, S, dtype=torch.bool).tril()
        scores = (q @ k.mT * 0.5 + bias).masked_fill(~seen, -math.inf)
        return weights(scores.masked_fill(padding, -math.inf), v)

    torch.manual_seed(6)
    padding = torch.rand(B, 1, 1, S) > 0.5
    check(several, heads(), heads(S), heads(S), torch.randn(1, H, L, S), padding)


def test_a_computed_bias():
    """Of relative positions, as T5 has it."""

    def relative(q, k, v, table):
        apart = torch.arange(S)[None, :] - torch.arange(L)[:, None]
        bias = table[apart.clamp(-3, 3) + 3].permute(2, 0, 1)[None]
        return weights(q @ k.mT + bias, v)

    torch.manual_seed(7)
    check(relative, heads(), heads(S), heads(S), torch.randn(7, H))


def repeated(q, k, v):
    k, v = (x[:, :, None].expand(B, 2, 2, S, D).reshape(B, H, S, D) for x in (k, v))
    return plain(q, k, v)


def interleaved(q, k, v):
    return plain(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))


def expanded(q, k, v):
    return plain(q, k[:, :1].expand(B, H, S, D), v[:, :1].expand(B, H, S, D))


@pytest.mark.parametrize("function", (repeated, interleaved, expanded), ids=lambda f: f.__name__)
def test_heads_in_groups_are_not_repeated(function):
    torch.manual_seed(8)
    module = check(function, heads(), heads(S, 2), heads(S, 2))
    irc.PassManager.parse("dce").run(module)
    assert "aten.clone" not in irc.print_op(module)


def test_heads_repeated_in_another_order():
    def tiled(q, k, v):
        return plain(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1))

    torch.manual_seed(9)
    check(tiled, heads(), heads(S, 2), heads(S, 2))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_softmax_in_f32(dtype):
    def upcast(q, k, v, mask):
        scores = q @ k.mT * 0.5 + mask
        return F.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v

    torch.manual_seed(10)
    q, k, v = heads(dtype=dtype), heads(S, dtype=dtype), heads(S, dtype=dtype)
    mask = torch.where(torch.rand(B, 1, 1, S) > 0.5, 0.0, -math.inf).to(dtype)
    check(upcast, q, k, v, mask, tolerance=2e-2)


def test_views_of_one_projection_are_read_where_they_lie():
    def packed(x):
        q, k, v = (part.view(B, L, H, D).transpose(1, 2) for part in x.chunk(3, -1))
        return plain(q, k, v)

    torch.manual_seed(11)
    module = check(packed, torch.randn(B, L, 3 * H * D))
    irc.PassManager.parse("dce").run(module)
    assert "aten.clone" not in irc.print_op(module)


def test_a_last_dimension_that_is_not_dense_is_copied():
    """The operator reads it as dense."""
    torch.manual_seed(12)
    q, k, v = heads(), torch.randn(B, H, D, S).mT, torch.randn(B, H, S, 2 * D)[..., ::2]
    check(plain, q, k, v)


@pytest.mark.parametrize("length", (1, L))
def test_one_head_one_batch_one_row(length):
    torch.manual_seed(13)
    check(plain, heads(length, 1, batch=1), heads(S, 1, batch=1), heads(S, 1, batch=1))
    check(plain, torch.randn(3, length, D), torch.randn(3, S, D), torch.randn(3, S, D))


def test_what_torch_takes_apart():
    """`scaled_dot_product_attention` of three dimensions: rows without a key are 0."""
    torch.manual_seed(14)
    mask = torch.rand(L, S) > 0.5
    mask[0] = False
    q, k, v = torch.randn(3, L, D), torch.randn(3, S, D), torch.randn(3, S, D)
    module, found, texts = fused(F.scaled_dot_product_attention, q, k, v, mask)
    assert found == 1, texts
    (result,) = irc.run(module, q, k, v, mask)
    wanted = F.scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close(result, wanted)


# -- what stays


def read_twice(q, k, v):
    p = (q @ k.mT).softmax(-1)
    return p @ v + p.sum()


def scores_read(q, k, v):
    s = q @ k.mT
    return s.softmax(-1) @ v + s.sum()


def capped(q, k, v):
    return weights((q @ k.mT).tanh() * 30.0, v)


def over_queries(q, k, v):
    return (q @ k.mT).softmax(-2) @ v


def really_dropped(q, k, v):
    return F.dropout((q @ k.mT).softmax(-1), 0.5, True) @ v


def near(q, k, v):
    return weights((q @ k.mT).masked_fill(torch.ones(L, S).bool().triu(1), -5.0), v)


REFUSED = {
    read_twice: "its probabilities are read elsewhere, too",
    scores_read: "its scores are read elsewhere, too",
    capped: "its scores are no masked and scaled product",
    over_queries: "",
    really_dropped: "",
    near: "-5 takes the place of scores, which is not far below",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_is_left_as_it_is_written(function):
    _, found, texts = fused(function, heads(), heads(S), heads(S))
    assert not found
    reason = REFUSED[function]
    assert texts == ([f"attention is left as it is written: {reason}"] if reason else [])


def test_what_may_be_empty():
    """ATen's operator divides by sizes."""

    def some(q, k, v, taken):
        rows = taken.nonzero().squeeze(1)
        return plain(q, k.index_select(2, rows), v.index_select(2, rows))

    _, found, texts = fused(some, heads(), heads(S), heads(S), torch.rand(S) > 0.5)
    assert not found and texts == ["attention is left as it is written: it may be empty"]
    _, found, texts = fused(plain, heads(), heads(0), heads(0))
    assert not found


def test_other_widths_of_values():
    _, found, texts = fused(plain, heads(), heads(S), heads(S, width=3))
    assert not found and texts == [
        "attention is left as it is written: keys and values are of other sizes"
    ]


def test_it_is_left_where_it_does_not_pay():
    unforced = FORCED.replace("{force=true}", "")
    _, found, texts = fused(plain, heads(), heads(S), heads(S), passes=unforced)
    assert not found and "stay in a core's cache" in texts[0]
    large = [heads(300, 16) for _ in range(3)]
    assert fused(plain, *large, passes=unforced)[1] == 1


def test_a_gpus_program_is_left_to_the_tracing():
    module = irc.trace(plain, (heads(), heads(S), heads(S)))
    context = PassContext(target="sm_90")
    irc.PassManager.parse(FORCED).run(module, context)
    assert not context.statistics["fuse-attention", "fused"] and not context.remarks


def test_the_option_switches_it_off():
    assert "fuse-attention" in pipeline_text()
    assert "fuse-attention" not in pipeline_text(options=irc.Options(pattern_matcher=False))
    assert "fuse-attention" not in pipeline_text(options=irc.Options(emulate_rounding=True))


def test_a_compiled_model_calls_one_operator():
    torch.manual_seed(15)
    large = [heads(200, 16) for _ in range(3)]
    compiled = irc.compile(merged_of(200), large, options={"own_attention": False})
    assert compiled.executable.info.metrics == {"kernels": 0, "launches": 0, "aten_calls": 1}
    torch.testing.assert_close(compiled(*large), merged_of(200)(*large))


def merged_of(length):
    return lambda q, k, v: plain(q, k, v).transpose(1, 2).reshape(B, length, -1)
