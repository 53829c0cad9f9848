"""The meaning of convolutions on weights in panels: `graph.winograd_conv` as transforms of tiles
around matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from irc.dialects import graph
from irc.dialects.graph.winograd import Matrix, TileLine
from irc.interp.core import Frame, interprets
from irc.interp.graph_packed import finished, optional, placed

Tensor = torch.Tensor


def convolve(
    source: Tensor, weight: Tensor, channels: int, lines: tuple[TileLine, TileLine],
    padding: Sequence[int],
) -> Tensor:  # fmt: skip
    """The convolution of an image with a transformed weight, in the image's dtype."""

    def matrices(rows: Callable[[TileLine], Matrix]) -> list[Tensor]:
        return [
            torch.tensor([[float(v) for v in row] for row in rows(line)], dtype=source.dtype)
            for line in lines
        ]

    tiles, results, counts = source, [], []
    for dim, (line, around) in enumerate(zip(lines, padding, strict=True), 2):
        size, step = source.shape[dim], line.tile * line.stride
        results.append((size + 2 * around - line.taps) // line.stride + 1)
        counts.append(-(-results[-1] // line.tile))
        behind = step * (counts[-1] - 1) + line.reads - size - around
        tiles = functional.pad(tiles, (0, 0, around, behind)).unfold(dim, line.reads, step)
    (b, c), (a, e) = matrices(TileLine.image_matrix), matrices(TileLine.result_matrix)
    parts = torch.einsum("ik,nctukl,jl->ijntuc", b, tiles, c)
    factors = weight.permute(1, 2, 0, 3).reshape(len(b), len(c), weight.shape[2], -1)
    factors = factors[..., :channels]
    sums = torch.einsum("ijntuc,ijco->nijtuo", parts, factors.to(source.dtype))
    outputs = torch.einsum("xi,nijtuo,yj->notxuy", a, sums, e)
    shape = [count * line.tile for count, line in zip(counts, lines, strict=True)]
    outputs = outputs.reshape(source.shape[0], channels, *shape)
    return outputs[:, :, : results[0], : results[1]]


@interprets(graph.WinogradConv)
def winograd_conv(frame: Frame, op: graph.WinogradConv) -> Tensor:
    channels = op.value.type.shape[1]
    assert isinstance(channels, int)
    source = frame[op.source]
    wide = source.float() if source.dtype is torch.bfloat16 else source
    product = convolve(wide, frame[op.weight], channels, op.lines, op.padding)
    bias = optional(frame, op.bias)
    if bias is not None:
        product = product + bias.reshape(-1, 1, 1)
    scalars = [s.value for s in op.scalars or ()]
    product = finished(product, optional(frame, op.other), op.activation, scalars)
    return placed(frame, product.to(source.dtype), op)
