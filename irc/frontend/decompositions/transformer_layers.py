"""What torch's fused operators for whole transformer layers compute, in operators that compile.

In eval mode without gradients `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call one
operator each. A mask of any dtype switches off where it is not zero; a row that has nothing left
is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

Tensor = torch.Tensor
# What the number `mask_type` says of a mask's shape.
OVER_POSITIONS, OVER_KEYS, OVER_EVERYTHING = range(3)


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """`aten._native_multi_head_attention` of `[batch, positions, embed_dim]`: the attention's
    result, and its weights `[batch, positions, positions]`, of all heads `[batch, heads,
    positions, positions]`, or an empty tensor if none are needed."""
    parts: Sequence[Tensor]
    if query is key and key is value:
        parts = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
        parts = [F.linear(*each) for each in zip((query, key, value), weights, biases, strict=True)]
    q, k, v = (part.unflatten(-1, (num_head, -1)).transpose(1, 2) for part in parts)
    if mask is None and not need_weights:
        attended = F.scaled_dot_product_attention(q, k, v)
        shown = query.new_empty(0)
    else:
        scores = q * (q.shape[-1] ** -0.5) @ k.mT
        if mask is not None:
            scores = scores.masked_fill(_aligned(mask, mask_type), -torch.inf)
        weights = scores.softmax(-1)
        attended = weights @ v
        shown = weights.mean(1) if average_attn_weights else weights
        shown = shown if need_weights else query.new_empty(0)
    return F.linear(attended.transpose(1, 2).flatten(2), proj_weight, proj_bias), shown


def _aligned(mask: Tensor, mask_type: int | None) -> Tensor:
    """Where a mask switches off, with dimensions that broadcast to those of the scores."""
    mask = mask.to(torch.bool)
    if mask_type == OVER_KEYS:
        return mask[:, None, None, :]
    if mask_type in (OVER_POSITIONS, OVER_EVERYTHING):
        return mask
    raise RuntimeError("Mask Type should be defined")


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """`aten._transformer_encoder_layer_fwd` of `[batch, positions, embed_dim]`."""

    def attend(x: Tensor) -> Tensor:
        return multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
            need_weights=False, mask_type=mask_type,
        )[0]  # fmt: skip

    def feed_forward(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = attend(norm_1(src)) + src
        return feed_forward(norm_2(x)) + x
    x = norm_1(attend(src) + src)
    return norm_2(feed_forward(x) + x)
