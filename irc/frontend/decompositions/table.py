"""Which ATen operators are rewritten in terms of simpler ones while torch traces.

What has a converter to the graph dialect (`irc.passes.graph.convert_aten`) is not decomposed, and
neither is what ATen computes best: matrix products, convolutions, attention, sorting, Fourier
transforms, random numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch._prims_common import suggest_memory_format
from torch.fx.experimental.symbolic_shapes import guard_or_false

from irc.frontend.decompositions.converted import converted
from irc.frontend.decompositions.eager_dtypes import ldexp, of_floats, of_one_dtype, power_of_truth
from irc.frontend.decompositions.embedding_bag import embedding_bag
from irc.frontend.decompositions.masked_scatter import (
    index_put,
    masked_scatter,
    masked_scatter_backward,
)
from irc.frontend.decompositions.names import APART, MORE, WHOLE, names_of
from irc.frontend.decompositions.transformer_layers import (
    multi_head_attention,
    transformer_encoder_layer,
)
from irc.frontend.fx.stride_order import (
    by_steps,
    inverse_permutation,
    order_in_memory,
    ordered,
)
from irc.frontend.fx.wide_statistics import NARROW, rounding_statistics

aten = torch.ops.aten

#: Batch normalizations by running statistics and, behind the first, by their source's own.
NORMALIZATIONS = (
    aten._native_batch_norm_legit_no_training.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update_functional.default,
)


#: Operators whose steps are gathers at computed places, several for each element: ATen's kernels
#: for a CPU know which of them are anything (`python -m bench.operators`).
WHOLE_ON_CPUS = (
    aten.grid_sampler_2d, aten.reflection_pad1d_backward, aten.reflection_pad2d_backward,
    aten.reflection_pad3d_backward,
)  # fmt: skip


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for AOTAutograd: operator overload -> Python function."""
    return _table(converted())


@functools.lru_cache(maxsize=1)
def _table(converters: frozenset[Any]) -> dict[Any, Callable[..., Any]]:
    """The table where the operators of these packets have converters."""
    table = core_table()
    table.update(get_decompositions(packets(MORE)))
    for packet in whole_packets(converters):
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table[aten.native_dropout.default] = native_dropout
    table[aten._embedding_bag.default] = embedding_bag
    table[aten.constant_pad_nd.default] = cut
    table[aten.masked_scatter.default] = masked_scatter
    table[aten.masked_scatter_backward.default] = masked_scatter_backward
    table[aten.index_put.default] = index_put
    table[aten._native_multi_head_attention.default] = multi_head_attention
    table[aten._transformer_encoder_layer_fwd.default] = transformer_encoder_layer
    for overload in NORMALIZATIONS[1:]:
        table[overload] = batch_norm(table[overload])
    for overload in NORMALIZATIONS:
        table[overload] = normalized(overload, table.get(overload))
    for overload in (aten.native_batch_norm_backward.default, aten.batch_norm_backward.default):
        table[overload] = normalized_backward(table[overload])
    table[aten.angle.default] = angle
    table[aten.baddbmm.default] = baddbmm(table[aten.baddbmm.default])
    for name in aten.special_xlog1py.overloads():
        overload = getattr(aten.special_xlog1py, name)
        if overload in table:
            table[overload] = casting_numbers(table[overload])
    for overload in by_steps():
        table[overload] = ordered(overload, table.get(overload))
    table[aten.channel_shuffle.default] = shuffled(table[aten.channel_shuffle.default])
    for overload in (aten.any.dims, aten.all.dims):
        table[overload] = truths
    table[aten.nansum.default] = nansum
    affine = aten.affine_grid_generator.default
    if affine in table:
        table[affine] = of_many_points(table[affine])
    for packet in (aten.max_unpool2d, aten.max_unpool3d):
        table[packet.default] = like_source(table[packet.default])
    table[aten.ldexp.Tensor] = ldexp
    table[aten.pow.Tensor_Scalar] = power_of_truth
    table[aten.mv.default] = of_one_dtype(table[aten.mv.default])
    for packet in (aten.logaddexp, aten.logaddexp2):
        table[packet.default] = of_floats(table[packet.default])
    # Their steps would round to 16 bits; ATen computes them in f32.
    for packet in (
        aten.grid_sampler_2d, aten.log_sigmoid_forward, aten.logaddexp,
        aten.native_group_norm_backward,
    ):  # fmt: skip
        function = table.get(packet.default)
        if function is not None:
            table[packet.default] = in_f32(function)
    for packet in WHOLE_ON_CPUS:
        function = table.get(packet.default)
        if function is not None:
            table[packet.default] = apart_elsewhere(function)
    for overload in (
        aten.native_layer_norm.default, aten.native_group_norm.default,
        aten.linalg_vector_norm.default, aten.logsumexp.default,
    ):  # fmt: skip
        table[overload] = rounding_statistics(overload)
    return table


def whole_packets(converters: frozenset[Any]) -> frozenset[Any]:
    """The operators that stay whole: those with a converter, and those that ATen computes best."""
    return converters.difference(packets(names_of(APART))).union(packets(names_of(WHOLE)))


def packets(names: Iterable[str]) -> list[Any]:
    """The aten operators with these names; one that the installed torch lacks is passed over."""
    return [getattr(aten, name) for name in names if hasattr(aten, name)]


def core_table() -> dict[Any, Callable[..., Any]]:
    """torch's core list, without the operators that its dispatcher takes apart by itself.

    Those come with an import of torch.export, a tenth of a second.
    """
    of_torch = getattr(torch._decomp, "_core_aten_decompositions_post_autograd", None)
    return dict(of_torch() if of_torch is not None else torch._decomp.core_aten_decompositions())


def like_source(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition whose result has the memory format that its first argument suggests."""

    def formatted(source: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        result = function(source, *rest, **keywords)
        return result.contiguous(memory_format=suggest_memory_format(source))

    return formatted


def shuffled(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch's `channel_shuffle` with a result that is always new on a CPU, in the memory format
    that the source suggests."""

    def shuffle(source: torch.Tensor, groups: int) -> Any:
        result = function(source, groups)
        if source.device.type != "cpu" or source.numel() == 0:
            return result
        return result.clone(memory_format=suggest_memory_format(source))

    return shuffle


def truths(source: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """`any` and `all` over no dimension at all: what is true, as new elements in order."""
    if dim is None or len(dim):
        return NotImplemented
    truth = source.ne(0).to(torch.uint8 if source.dtype == torch.uint8 else torch.bool)
    return truth.clone(memory_format=torch.contiguous_format)


def in_f32(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that computes with 16-bit floats in f32 and rounds its results; with floats
    or complex numbers of several dtypes it computes as it is."""

    def wide(*args: Any, **kwargs: Any) -> Any:
        dtypes = {a.dtype for a in args if isinstance(a, torch.Tensor)}
        floats = {d for d in dtypes if d.is_floating_point or d.is_complex}
        if len(floats) != 1 or not floats <= NARROW:
            return function(*args, **kwargs)
        (narrow,) = floats
        results = function(*(a.float() if _is_narrow(a) else a for a in args), **kwargs)
        if isinstance(results, tuple):
            return tuple(None if r is None else r.to(narrow) for r in results)
        return results.to(narrow)

    return wide


def nansum(
    source: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, **dtype: Any
) -> Any:
    """An empty list of dimensions means all of them, which torch's shape function doesn't know."""
    if dim is None or len(dim):
        return NotImplemented
    return aten.nansum.default(source, None, keepdim, **dtype)


def apart_elsewhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition for all but f32 and f64 on a CPU, where the operator stays whole."""

    def chosen(source: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        if source.device.type == "cpu" and source.dtype in (torch.float32, torch.float64):
            return NotImplemented
        return function(source, *rest, **keywords)

    return chosen


def of_many_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition of grids of more than one point along each axis: for one, torch's makes a
    constant in the graph that AOTAutograd refuses."""

    def generated(theta: torch.Tensor, size: Sequence[Any], align_corners: bool) -> Any:
        if any(guard_or_false(count <= 1) for count in size[2:]):
            return NotImplemented
        return function(theta, size, align_corners)

    return generated


def casting_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition to floats of two operands, of which a number is cast to the dtype of the
    result, as ATen does it: to infinity where it is too large, where torch's own decomposition
    raises, and never to an integer."""

    def cast(first: Any, second: Any) -> Any:
        dtype = torch.result_type(first, second)
        if not (dtype.is_floating_point or dtype.is_complex):
            dtype = torch.get_default_dtype()
        device = next(v.device for v in (first, second) if isinstance(v, torch.Tensor))
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return function(
            *(
                v if isinstance(v, torch.Tensor)
                else torch.full((), v, dtype=wide, device=device).to(dtype)
                for v in (first, second)
            )
        )  # fmt: skip

    return cast


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in NARROW


def batch_norm(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch's decomposition of batch normalization with the weight multiplied into the scale of
    each channel, as ATen does it: two roundings an element instead of four."""

    def scaled(
        source: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *rest: Any
    ) -> tuple[Any, ...]:
        # A wide source leaves the mean and the scale unrounded; what is saved is rounded below.
        wide = source.to(_wide(source))
        output, *others = function(wide, weight, bias, *rest)
        # _batch_norm_with_update_functional has no such argument.
        training, eps = rest[-3] if isinstance(rest[-3], bool) else True, rest[-1]
        if training:
            mean, scale = others[:2]
        else:
            mean, scale = rest[0].to(_wide(rest[0])), (rest[1].to(_wide(rest[1])) + eps).rsqrt()
        scale = scale if weight is None else scale * weight
        shape = [1, -1] + [1] * (source.dim() - 2)
        output = (wide - mean.view(shape)) * scale.view(shape)
        output = output if bias is None else output + bias.view(shape)
        if source.device.type == "cpu":
            others[:2] = [saved.to(source.dtype) for saved in others[:2]]
        return (output.to(source.dtype), *others)

    return scaled


def normalized(overload: Any, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """A batch normalization (None: the operator stays whole): on a CPU its result is contiguous or
    channels last, as its source's strides suggest."""

    def compute(source: Tensor, *rest: Any, **keywords: Any) -> Any:
        if not _is_copied(source, suggest_memory_format(source)):
            return NotImplemented if function is None else function(source, *rest, **keywords)
        return (function or overload)(_as_suggested(source, source), *rest, **keywords)

    return compute


def normalized_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Its gradients: that of its source has the strides of the result."""

    def compute(gradient: Tensor, source: Tensor, *rest: Any, **keywords: Any) -> Any:
        return function(
            _as_suggested(gradient, source), _as_suggested(source, source), *rest, **keywords
        )

    return compute


def _as_suggested(tensor: Tensor, source: Tensor) -> Tensor:
    suggested = suggest_memory_format(source)
    return tensor.contiguous(memory_format=suggested) if _is_copied(tensor, suggested) else tensor


def _is_copied(tensor: Tensor, suggested: torch.memory_format) -> bool:
    return tensor.device.type == "cpu" and not tensor.is_contiguous(memory_format=suggested)


def angle(source: Tensor) -> Any:
    """That of complex numbers is contiguous: it is the real part of an array of its own."""
    if not source.is_complex() or source.is_contiguous():
        return NotImplemented
    return aten.angle.default(source.contiguous())


def baddbmm(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch's decomposition computes the product where it is multiplied by 0, too."""

    def added(source: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        product = functools.partial(function, source, left, right, beta=beta, alpha=alpha)
        if not guard_or_false(alpha == 0):
            return product()
        from irc.frontend.decompositions.unused_products import added_to_nothing

        return added_to_nothing(product, source, left, right, beta)

    return added


def cut(source: torch.Tensor, pad: Sequence[Any], value: float = 0) -> Any:
    """A padding that only cuts, whose result has the order of the source's strides, as ATen's has:
    torch's shape function for symbolic sizes gives that of a padding with new elements."""
    if not all(guard_or_false(amount <= 0) for amount in pad):
        return NotImplemented
    for number in range(len(pad) // 2):
        dim = source.dim() - 1 - number
        low, high = pad[2 * number : 2 * number + 2]
        source = source.narrow(dim, -low, source.size(dim) + low + high)
    return source.clone()


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float32 if _is_narrow(tensor) else tensor.dtype


def native_dropout(
    source: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """As ATen's kernel for CPUs draws: torch's own decomposition takes other random numbers.

    On a GPU ATen's fused kernel has its own sequence, so that the operator stays whole there.
    """
    if source.device.type != "cpu":
        return NotImplemented
    if not train or p == 0:
        return source.clone(), torch.ones_like(source, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(source), torch.zeros_like(source, dtype=torch.bool)
    # In the order of the mask's memory, which has the source's; `bernoulli` fills row by row.
    mask = torch.empty_like(source, dtype=torch.bool)
    order = order_in_memory(mask)
    if order == sorted(order):
        mask = torch.bernoulli(mask, 1 - p)
    else:
        mask = torch.bernoulli(mask.permute(order), 1 - p).permute(inverse_permutation(order))
    return source * mask * (1.0 / (1.0 - p)), mask
