"""More operators for `bench.operators --more`: what models do beside its own cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

Case = tuple[str, Callable[..., Tensor], tuple[Tensor, ...]]


def images() -> Iterator[Case]:
    """Of images."""
    image = randn(8, 64, 56, 56)
    last = image.to(memory_format=torch.channels_last)
    yield "instance_norm", lambda x: F.instance_norm(x), (image,)
    yield "batch_norm train", lambda x: F.batch_norm(x, None, None, training=True), (image,)
    yield "batch_norm train cl", lambda x: F.batch_norm(x, None, None, training=True), (last,)
    yield "local_response_norm", lambda x: F.local_response_norm(x, 5), (randn(4, 32, 28, 28),)
    yield "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2) * 2, (image,)
    yield "pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2) * 2, (image,)
    yield (
        "grid_sample",
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        (randn(2, 16, 64, 64), randn(2, 64, 64, 2).tanh()),
    )
    yield (
        "affine_grid",
        lambda t: F.affine_grid(t, (4, 3, 128, 128), align_corners=False),
        (randn(4, 2, 3),),
    )
    yield "nearest", lambda x: F.interpolate(x, scale_factor=2) * 2, (image,)
    yield "nearest cl", lambda x: F.interpolate(x, scale_factor=2) * 2, (last,)
    yield (
        "bilinear",
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (randn(4, 32, 28, 28),),
    )
    yield (
        "bilinear cl",
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (randn(4, 32, 28, 28).to(memory_format=torch.channels_last),),
    )
    yield "area", lambda x: F.interpolate(x, size=(20, 20), mode="area"), (randn(4, 32, 28, 28),)
    yield "max_pool k3s2", lambda x: F.max_pool2d(x, 3, 2, 1), (image,)
    yield (
        "max_pool idx",
        lambda x: torch.add(*F.max_pool2d(x, 2, return_indices=True)),
        (randn(4, 32, 56, 56),),
    )
    yield "avg_pool k3s1", lambda x: F.avg_pool2d(x, 3, 1, 1), (image,)
    yield "lp_pool", lambda x: F.lp_pool2d(x, 2, 2), (randn(4, 32, 56, 56),)
    yield "normalize dim1", lambda a: F.normalize(a, dim=1), (image,)
    yield (
        "rgb",
        lambda x: torch.stack(
            (x[..., 0] * 0.3 + x[..., 1] * 0.6, x[..., 1] * 2, x[..., 2] - x[..., 0]), -1
        ),
        (randn(8, 224, 224, 3),),
    )
    yield "swiglu", lambda x: F.silu(x[..., :1024]) * x[..., 1024:], (randn(512, 2048),)
    yield (
        "pad reflect",
        lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect") * 2,
        (randn(4, 32, 56, 56),),
    )
    yield (
        "pad circular",
        lambda x: F.pad(x, (3, 3, 3, 3), mode="circular") * 2,
        (randn(4, 32, 56, 56),),
    )
    yield "groupnorm cl", lambda x: F.group_norm(x, 8), (last,)
    yield "groupnorm silu", lambda x: F.silu(F.group_norm(x, 8)), (image,)
    yield "glu dim1", lambda x: F.glu(x, 1), (image,)
    yield "prelu", lambda x, w: F.prelu(x, w), (image, randn(64))
    yield (
        "se block",
        lambda x, w, u: x * torch.sigmoid(F.relu(x.mean((2, 3)) @ w) @ u)[:, :, None, None],
        (image, randn(64, 16), randn(16, 64)),
    )
    yield "flip", lambda x: x.flip(2), (image,)
    yield "rot90", lambda x: x.rot90(1, (2, 3)) * 2, (randn(4, 32, 56, 56),)
    yield (
        "meshgrid",
        lambda a, b: torch.hypot(*torch.meshgrid(a, b, indexing="ij")),
        (randn(1000), randn(1000)),
    )


def losses() -> Iterator[Case]:
    """Means of two arrays."""
    yield (
        "nll",
        lambda x, t: F.nll_loss(x.log_softmax(-1), t),
        (randn(2048, 1000), torch.randint(0, 1000, (2048,))),
    )
    yield (
        "ce smooth",
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        (randn(2048, 1000), torch.randint(0, 1000, (2048,))),
    )
    yield (
        "kl_div",
        lambda a, b: F.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean"),
        (randn(2048, 1000), randn(2048, 1000)),
    )
    yield (
        "bce logits",
        lambda a, b: F.binary_cross_entropy_with_logits(a, b),
        (randn(1000000), torch.rand(1000000)),
    )
    yield "huber", lambda a, b: F.huber_loss(a, b), (randn(1000000), randn(1000000))
    yield "cosine_sim", lambda a, b: F.cosine_similarity(a, b), (randn(4096, 768), randn(4096, 768))
    yield "pairwise", lambda a, b: F.pairwise_distance(a, b), (randn(4096, 768), randn(4096, 768))
    yield (
        "triplet",
        lambda a, b, c: F.triplet_margin_loss(a, b, c),
        (randn(4096, 256), randn(4096, 256), randn(4096, 256)),
    )
    yield (
        "scatter_reduce amax",
        lambda a, i: torch.zeros(1000).scatter_reduce(0, i, a, "amax"),
        (randn(100000), torch.randint(0, 1000, (100000,))),
    )
    yield "mse", lambda a, b: F.mse_loss(a, b), (randn(1000000), randn(1000000))


def rows() -> Iterator[Case]:
    """Of rows: what is combined, or put in order."""
    yield "rms_norm", lambda x: F.rms_norm(x, (768,)), (randn(4096, 768),)
    yield "normalize", lambda a: F.normalize(a, dim=-1), (randn(4096, 768),)
    yield "std dim0", lambda a: a.std(0), (randn(4096, 768),)
    yield "var_mean all", lambda a: torch.add(*torch.var_mean(a)), (randn(1000000),)
    yield "amax dim1", lambda a: a.amax(1), (randn(8, 64, 56, 56),)
    yield "argmax dim1", lambda a: a.argmax(1), (randn(2, 21, 96, 96),)
    yield "median", lambda a: a.median(-1).values * 2, (randn(2048, 100),)
    yield "sort", lambda a: a.sort(-1).values * 2, (randn(2048, 100),)
    yield "topk", lambda a: a.topk(5, -1).values * 2, (randn(2048, 1000),)
    yield "cumprod", lambda a: a.cumprod(-1), (randn(256, 1000),)
    yield "cummax", lambda a: a.cummax(-1).values, (randn(256, 1000),)
    yield "logcumsumexp", lambda a: a.logcumsumexp(-1), (randn(256, 1000),)
    yield (
        "where mask",
        lambda a, m: torch.where(m, a, -1e9).softmax(-1),
        (randn(64, 128, 128), torch.rand(64, 128, 128) > 0.5),
    )
    yield (
        "masked_fill causal",
        lambda a: a.masked_fill(torch.ones(128, 128).triu(1).bool(), -1e9).softmax(-1),
        (randn(96, 128, 128),),
    )
    yield "clip norm", lambda g: g * (1 / (g.norm() + 1e-6)).clamp(max=1), (randn(1000000),)
    yield "any nan", lambda g: g.isnan().any(), (randn(1000000),)
    yield "count", lambda g: (g > 0).sum(), (randn(1000000),)
    yield "mean rows bf16", lambda g: g.mean(-1), (randn(4096, 768).bfloat16(),)
    yield "layer_norm bf16", lambda g: F.layer_norm(g, (768,)), (randn(4096, 768).bfloat16(),)
    yield "softmax dim1", lambda g: g.softmax(1), (randn(64, 128, 128),)
    yield (
        "bool idx sum",
        lambda x, m: (x * m).sum() / m.sum(),
        (randn(1000000), torch.rand(1000000) > 0.5),
    )
    yield (
        "biased softmax",
        lambda s, b: (s + b).softmax(-1),
        (randn(8, 12, 128, 128), randn(12, 128, 128)),
    )


def indices() -> Iterator[Case]:
    """By indices."""
    yield "one_hot", lambda i: F.one_hot(i, 100).float(), (torch.randint(0, 100, (5000,)),)
    yield (
        "index_select",
        lambda a, i: a.index_select(0, i) * 2,
        (randn(5000, 256), torch.randint(0, 5000, (4096,))),
    )
    yield (
        "index 2d",
        lambda a, i, j: a[i, j] * 2,
        (randn(1000, 1000), torch.randint(0, 1000, (100000,)), torch.randint(0, 1000, (100000,))),
    )
    yield (
        "take_along",
        lambda a, i: a.take_along_dim(i, 1),
        (randn(1000, 1000), torch.randint(0, 1000, (1000, 1000))),
    )
    yield (
        "scatter_add",
        lambda a, i: torch.zeros(1000, 256).index_add(0, i, a),
        (randn(20000, 256), torch.randint(0, 1000, (20000,))),
    )
    yield (
        "counts",
        lambda i: torch.zeros(1000).index_add(0, i, torch.ones(100000)),
        (torch.randint(0, 1000, (100000,)),),
    )
    yield (
        "embedding_bag",
        lambda w, i: F.embedding_bag(i, w),
        (randn(5000, 64), torch.randint(0, 5000, (1024, 20))),
    )
    yield (
        "searchsorted",
        lambda a, b: torch.searchsorted(a, b),
        (randn(1000).sort().values, randn(100000)),
    )
    yield "bucketize", lambda a, b: torch.bucketize(b, a), (randn(64).sort().values, randn(100000))
    yield (
        "histogram",
        lambda b: (b[:, None] == torch.arange(64.0)).sum(0),
        (torch.randint(0, 64, (20000,)).float(),),
    )


def joins() -> Iterator[Case]:
    """What is laid out anew."""
    yield "diff", lambda a: a.diff(dim=-1), (randn(1024, 1000),)
    yield "triu", lambda a: a.triu() * 2, (randn(1024, 1024),)
    yield (
        "stack",
        lambda a, b: torch.stack([a, b], -1).flatten(-2) * 2,
        (randn(1000, 500), randn(1000, 500)),
    )
    yield (
        "cat dim1",
        lambda a, b: torch.cat([a, b], 1).relu(),
        (randn(8, 64, 56, 56), randn(8, 64, 56, 56)),
    )
    yield "cat last", lambda a, b: torch.cat([a, b], -1).relu(), (randn(4096, 100), randn(4096, 60))
    yield "repeat", lambda a: a.repeat(1, 4) * 2, (randn(1024, 250),)
    yield "repeat_interleave", lambda a: a.repeat_interleave(4, 1) * 2, (randn(1024, 250),)
    yield "expand add", lambda a, b: a[:, None] + b[None], (randn(1000), randn(1000))
    yield (
        "rope",
        lambda q, c, s: q * c + torch.cat([-q[..., 32:], q[..., :32]], -1) * s,
        (randn(4, 12, 256, 64), randn(256, 64), randn(256, 64)),
    )
    yield (
        "rope complex",
        lambda q, f: torch.view_as_real(
            torch.view_as_complex(q.reshape(4, 256, 12, 32, 2)) * torch.view_as_complex(f)[:, None]
        ).flatten(3),
        (randn(4, 256, 12, 64), randn(256, 32, 2)),
    )
    yield (
        "rope gptj",
        lambda x, c, s: x * c + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * s,
        (randn(4, 12, 256, 64), randn(256, 64), randn(256, 64)),
    )
    yield (
        "rope pairs",
        lambda x, c, s: torch.stack(
            (x[..., ::2] * c - x[..., 1::2] * s, x[..., ::2] * s + x[..., 1::2] * c), -1
        ).flatten(-2),
        (randn(4, 12, 256, 64), randn(256, 32), randn(256, 32)),
    )
    yield (
        "rope flux",
        lambda x, f: (lambda y: (f[..., 0] * y[..., 0] + f[..., 1] * y[..., 1]).reshape(x.shape))(
            x.reshape(4, 12, 256, 32, 1, 2)
        ),
        (randn(4, 12, 256, 64), randn(256, 32, 2, 2)),
    )
    yield "unfold1d", lambda x: x.unfold(-1, 16, 8).mean(-1), (randn(64, 16000),)
    yield (
        "windows of lines",
        lambda x: x.unfold(-1, 400, 160) * torch.hann_window(400),
        (randn(4, 16000),),
    )
    yield (
        "roll windows",
        lambda x: x.reshape(8, 8, 7, 8, 7, 96).transpose(2, 3).flatten(0, 2).flatten(1, 2) * 2,
        (randn(8, 56, 56, 96),),
    )
    yield (
        "patchify",
        lambda x: (
            x.reshape(8, 3, 14, 16, 14, 16).permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2) * 2
        ),
        (randn(8, 3, 224, 224),),
    )
    yield "heads merge", lambda x: x.transpose(1, 2).flatten(2) * 2, (randn(4, 12, 256, 64),)
    yield "transpose add", lambda x, y: x.t() + y, (randn(1000, 1000), randn(1000, 1000))
    yield "tril mask mul", lambda x: x * torch.tril(torch.ones(512, 512)), (randn(8, 512, 512),)


def points() -> Iterator[Case]:
    """Of each point."""
    yield "gelu tanh", lambda x: F.gelu(x, approximate="tanh"), (randn(1000000),)
    yield "mish", lambda x: F.mish(x), (randn(1000000),)
    yield "softplus", lambda x: F.softplus(x), (randn(1000000),)
    yield "erfinv", lambda x: torch.erfinv(x.tanh()), (randn(1000000),)
    yield "pow", lambda x: x.abs() ** 1.7, (randn(1000000),)
    yield "atan2", lambda a, b: torch.atan2(a, b), (randn(1000000), randn(1000000))
    yield "lgamma", lambda x: torch.lgamma(x.abs()), (randn(300000),)
    yield "fmod", lambda a, b: torch.fmod(a, b), (randn(1000000), randn(1000000))
    yield (
        "int div",
        lambda a, b: a // b,
        (torch.randint(-1000, 1000, (1000000,)), torch.randint(1, 50, (1000000,))),
    )
    yield (
        "bytes",
        lambda a: (a.float() / 255 - 0.5) / 0.2,
        (torch.randint(0, 255, (8, 3, 224, 224), dtype=torch.uint8),),
    )
    yield (
        "bytes, channels last",
        lambda a: (a.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.2,
        (torch.randint(0, 255, (8, 224, 224, 3), dtype=torch.uint8),),
    )
    yield "bf16 to f32", lambda a: a.float() * 2, (randn(1000000).bfloat16(),)
    yield (
        "quantize",
        lambda a: (a / 0.05).round().clamp(-128, 127).to(torch.int8),
        (randn(1000000),),
    )
    yield "moving average", lambda p, g: p.lerp(g, 0.01), (randn(1000000), randn(1000000))
    yield (
        "Adam's step",
        lambda p, g, m, v: (lambda a, b: p - 1e-3 * a / (b.sqrt() + 1e-8))(
            0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        ),
        (randn(1000000), randn(1000000), randn(1000000), randn(1000000).abs()),
    )


def layers() -> Iterator[Case]:
    """Products and convolutions."""
    yield (
        "distances of one",
        lambda a, b: (a[:, None, :] - b[None]).abs().sum(-1),
        (randn(200, 64), randn(300, 64)),
    )
    yield "conv1d", lambda x, w: F.conv1d(x, w, padding=1), (randn(4, 64, 1000), randn(64, 64, 3))
    yield (
        "conv3d",
        lambda x, w: F.conv3d(x, w, padding=1),
        (randn(1, 16, 16, 32, 32), randn(16, 16, 3, 3, 3)),
    )
    yield (
        "bilinear layer",
        lambda a, b, w: F.bilinear(a, b, w),
        (randn(128, 64), randn(128, 64), randn(32, 64, 64)),
    )
    yield (
        "einsum attn",
        lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b).softmax(-1),
        (randn(4, 12, 128, 64), randn(4, 12, 128, 64)),
    )
    yield (
        "lstm cell",
        lambda x, h, c, w, u: (
            lambda g: (
                torch.sigmoid(g[:, 512:1024])
                * torch.tanh(
                    torch.sigmoid(g[:, :512]) * c
                    + torch.sigmoid(g[:, 1024:1536]) * torch.tanh(g[:, 1536:])
                )
            )
        )(x @ w + h @ u),
        (randn(64, 512), randn(64, 512), randn(64, 512), randn(512, 2048), randn(512, 2048)),
    )
    yield "cdist p1", lambda a, b: torch.cdist(a, b, p=1), (randn(200, 32), randn(300, 32))


def more() -> dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]]:
    """All of them by name."""
    every = (images, losses, rows, indices, joins, points, layers)
    return {name: (call, given) for part in every for name, call, given in part()}


def randn(*sizes: int) -> Tensor:
    """Random numbers."""
    return torch.randn(sizes)


__all__ = ["more"]
