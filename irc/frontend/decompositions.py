"""Which ATen operators are rewritten in terms of simpler ones while torch traces.

What has a converter to the graph dialect (`irc.passes.graph.convert_aten`) is not decomposed, and
neither is what ATen computes best: matrix products, convolutions, attention, sorting, Fourier
transforms, random numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table, get_decompositions
from torch._prims_common import suggest_memory_format
from torch.fx.experimental.symbolic_shapes import guard_or_false

from irc.frontend.embedding_bag import embedding_bag
from irc.frontend.masked_scatter import index_put, masked_scatter, masked_scatter_backward
from irc.frontend.transformer_layers import multi_head_attention, transformer_encoder_layer
from irc.frontend.wide_statistics import NARROW, rounding_statistics

aten = torch.ops.aten

# Beyond torch's core list. A name that an installed torch does not have is passed over.
EXTRA = """
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _batch_norm_with_update
    _batch_norm_no_update batch_norm_backward _chunk_cat _euclidean_dist _log_softmax_backward_data
    _prelu_kernel _prelu_kernel_backward _softmax_backward_data _to_copy_ addcdiv_ addcmul_ addr
    avg_pool2d_backward batch_norm_backward baddbmm binary_cross_entropy
    binary_cross_entropy_backward binary_cross_entropy_with_logits celu channel_shuffle clamp_min
    col2im count_nonzero cudnn_batch_norm cudnn_batch_norm_backward deg2rad dist elu_backward
    embedding_dense_backward expand_copy fill floor_divide frac frexp glu glu_backward
    grid_sampler_2d
    gru.input hann_window hardshrink hardsigmoid_backward hardswish_backward hardtanh_backward
    huber_loss huber_loss_backward im2col index_add_ isin kl_div l1_loss leaky_relu_backward
    linalg_cross log_sigmoid_backward log_sigmoid_forward logaddexp logaddexp2 logit_backward
    margin_ranking_loss max_unpool2d max_unpool3d mish_backward mse_loss mse_loss_backward
    multi_margin_loss multilabel_margin_loss_forward mv nan_to_num native_batch_norm
    native_batch_norm_backward _native_batch_norm_legit
    _native_batch_norm_legit_functional _batch_norm_with_update_functional
    native_dropout_backward native_group_norm_backward native_layer_norm_backward
    nll_loss2d_backward nll_loss2d_forward nll_loss_backward nll_loss_forward norm
    pixel_shuffle pixel_unshuffle rad2deg reflection_pad1d reflection_pad2d reflection_pad3d
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
    replication_pad1d replication_pad2d replication_pad3d rms_norm _fused_rms_norm
    _fused_rms_norm_backward rot90 select_backward
    sigmoid_backward
    sinc slice_backward smooth_l1_loss smooth_l1_loss_backward soft_margin_loss softplus_backward
    softshrink softshrink_backward special_entr special_log_ndtr special_xlog1py std std_mean
    tanh_backward threshold_backward trace triu_indices tril_indices unfold_backward unfold_copy
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bilinear2d upsample_linear1d
    upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa _upsample_bilinear2d_aa
    upsample_nearest2d_backward vander zero dot_ _unsafe_index _unsafe_index_put
    _unsafe_masked_index _unsafe_masked_index_put_accumulate
    linear_backward_ unsqueeze_copy squeeze_copy mvlgamma var_mean pairwise_distance
    hinge_embedding_loss margin_ranking_loss triplet_margin_loss fractional_max_pool2d_
""".split()

# Kept whole although torch's core list decomposes them: the converters do better.
KEPT = """
    _softmax _log_softmax native_layer_norm native_group_norm
    _native_batch_norm_legit_no_training gelu silu mish elu hardtanh
    hardsigmoid hardswish leaky_relu softplus threshold relu clamp addmm mm bmm convolution
    max_pool2d_with_indices avg_pool2d embedding index_select masked_fill cat
    stack split split_with_sizes unbind var var_mean std std_mean
    aminmax any all logsumexp linalg_vector_norm index_copy index_fill index_add
    isposinf isneginf xlogy heaviside lerp addcmul addcdiv hypot logit eye linspace
    repeat tril triu roll diag_embed diagonal_scatter slice_scatter select_scatter
    gelu_backward silu_backward sigmoid_backward tanh_backward threshold_backward
    embedding_dense_backward _softmax_backward_data _log_softmax_backward_data
    take full_like zeros_like ones_like new_full new_zeros new_ones arange sum_
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_fused_attention_overrideable
    sort topk bernoulli rand rand_like randn randn_like randint randint_like uniform exponential
    geometric cauchy log_normal normal normal_functional random randperm multinomial
    rrelu_with_noise rrelu_with_noise_functional upsample_bicubic2d_backward nansum
    special_erf square positive unsafe_split unsafe_chunk
""".split()


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for AOTAutograd: operator overload -> Python function."""
    table = core_table()
    extra = [getattr(aten, name) for name in EXTRA if hasattr(aten, name)]
    table.update(get_decompositions([packet for packet in extra if _known(packet)]))
    for name in KEPT:
        packet = getattr(aten, name, None)
        if packet is not None:
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
    for overload in (
        aten._native_batch_norm_legit.default,
        aten._native_batch_norm_legit.no_stats,
        aten._native_batch_norm_legit_functional.default,
        aten._batch_norm_with_update_functional.default,
    ):
        table[overload] = batch_norm(table[overload])
    for name in aten.special_xlog1py.overloads():
        overload = getattr(aten.special_xlog1py, name)
        if overload in table:
            table[overload] = casting_numbers(table[overload])
    table[aten.channel_shuffle.default] = shuffled(table[aten.channel_shuffle.default])
    for overload in (aten.any.dims, aten.all.dims):
        table[overload] = truths
    table[aten.nansum.default] = nansum
    affine = aten.affine_grid_generator.default
    if affine in table:
        table[affine] = of_many_points(table[affine])
    for packet in (aten.max_unpool2d, aten.max_unpool3d):
        table[packet.default] = like_source(table[packet.default])
    # Their steps would round to 16 bits; ATen computes them in f32.
    for packet in (
        aten.grid_sampler_2d, aten.log_sigmoid_forward, aten.logaddexp,
        aten.native_group_norm_backward,
    ):  # fmt: skip
        found = table.get(packet.default)
        if found is not None:
            table[packet.default] = in_f32(found)
    for overload in (
        aten.native_layer_norm.default, aten.native_group_norm.default,
        aten.linalg_vector_norm.default, aten.logsumexp.default,
    ):  # fmt: skip
        table[overload] = rounding_statistics(overload)
    return table


def core_table() -> dict[Any, Callable[..., Any]]:
    """torch's core list, without the operators that its dispatcher takes apart by itself.

    Those come with an import of torch.export, a tenth of a second.
    """
    made = getattr(torch._decomp, "_core_aten_decompositions_post_autograd", None)
    return dict(made() if made is not None else torch._decomp.core_aten_decompositions())


def like_source(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition whose result has the memory format that its first argument suggests."""

    def formatted(source: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        made = function(source, *rest, **keywords)
        return made.contiguous(memory_format=suggest_memory_format(source))

    return formatted


def shuffled(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch's `channel_shuffle` with a result that is always new on a CPU, in the memory format
    that the source suggests."""

    def shuffle(source: torch.Tensor, groups: int) -> Any:
        made = function(source, groups)
        if source.device.type != "cpu" or source.numel() == 0:
            return made
        return made.clone(memory_format=suggest_memory_format(source))

    return shuffle


def truths(source: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """`any` and `all` over no dimension at all: what is true, as new elements in order."""
    if dim is None or len(dim):
        return NotImplemented
    made = source.ne(0).to(torch.uint8 if source.dtype == torch.uint8 else torch.bool)
    return made.clone(memory_format=torch.contiguous_format)


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
    mask = torch.bernoulli(torch.empty_like(source, dtype=torch.bool), 1 - p)
    return source * mask * (1.0 / (1.0 - p)), mask


def _known(packet: Any) -> bool:
    return any(getattr(packet, o) in decomposition_table for o in packet.overloads())
