"""The meaning of convolutions on weights in panels: `graph.winograd_conv` as transforms of tiles
around 36 matrix products."""

from __future__ import annotations

import torch
from torch.nn import functional

from irc.dialects import graph
from irc.dialects.graph import winograd
from irc.dialects.graph.winograd import READS, TILE
from irc.interp.core import Frame, interprets
from irc.interp.graph_packed import finished, optional, placed

Tensor = torch.Tensor


def convolve(source: Tensor, weight: Tensor, channels: int, padding: tuple[int, int]) -> Tensor:
    """The convolution of an image with a transformed weight, in the image's dtype."""

    def matrix(rows: winograd.Matrix) -> Tensor:
        return torch.tensor([[float(v) for v in row] for row in rows], dtype=source.dtype)

    high = source.shape[2] + 2 * padding[0] - winograd.TAPS + 1
    wide = source.shape[3] + 2 * padding[1] - winograd.TAPS + 1
    down, right = -(-high // TILE), -(-wide // TILE)
    image = functional.pad(source, (
        padding[1], TILE * right + READS - TILE - source.shape[3] - padding[1],
        padding[0], TILE * down + READS - TILE - source.shape[2] - padding[0],
    ))  # fmt: skip
    tiles = image.unfold(2, READS, TILE).unfold(3, READS, TILE)
    b, a = matrix(winograd.image_matrix()), matrix(winograd.result_matrix())
    parts = torch.einsum("ik,nctukl,jl->ijntuc", b, tiles, b)
    factors = weight.permute(1, 2, 0, 3).reshape(READS, READS, weight.shape[2], -1)
    factors = factors[..., :channels]
    sums = torch.einsum("ijntuc,ijco->nijtuo", parts, factors.to(source.dtype))
    outputs = torch.einsum("xi,nijtuo,yj->notxuy", a, sums, a)
    return outputs.reshape(source.shape[0], channels, TILE * down, TILE * right)[:, :, :high, :wide]


@interprets(graph.WinogradConv)
def winograd_conv(frame: Frame, op: graph.WinogradConv) -> Tensor:
    channels = op.value.type.shape[1]
    assert isinstance(channels, int)
    source = frame[op.source]
    wide = source.float() if source.dtype is torch.bfloat16 else source
    product = convolve(wide, frame[op.weight], channels, tuple(op.padding))
    bias = optional(frame, op.bias)
    if bias is not None:
        product = product + bias.reshape(-1, 1, 1)
    scalars = [s.value for s in op.scalars or ()]
    product = finished(product, optional(frame, op.other), op.activation, scalars)
    return placed(frame, product.to(source.dtype), op)
