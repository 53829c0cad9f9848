"""By name, which operators are taken apart and which stay, where their converters don't decide it.

An operator with a converter to the graph dialect stays whole, any other is taken apart if torch
can. Each exception stands here with its reason, and `tests/passes/test_converters.py` and
`tests/frontend/test_decompositions.py` hold the tables to the converters.
"""

from __future__ import annotations

# Operators without a converter that torch takes apart, beyond its core list.
MORE = """
    _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional _chunk_cat
    _euclidean_dist _fused_rms_norm _fused_rms_norm_backward _native_batch_norm_legit
    _native_batch_norm_legit_functional _prelu_kernel _prelu_kernel_backward _unsafe_index
    _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate
    _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d addcdiv_ addcmul_ addr baddbmm
    batch_norm_backward binary_cross_entropy binary_cross_entropy_backward
    binary_cross_entropy_with_logits celu channel_shuffle clamp_min col2im count_nonzero
    cudnn_batch_norm cudnn_batch_norm_backward deg2rad dist elu_backward expand_copy fill
    floor_divide frac frexp glu glu_backward grid_sampler_2d hann_window hardshrink
    hardsigmoid_backward hardswish_backward hardtanh_backward hinge_embedding_loss huber_loss
    huber_loss_backward im2col index_add_ isin leaky_relu_backward linalg_cross
    log_sigmoid_backward log_sigmoid_forward logaddexp logaddexp2 logit_backward
    margin_ranking_loss max_unpool2d max_unpool3d mish_backward mse_loss mse_loss_backward
    multi_margin_loss multilabel_margin_loss_forward mv mvlgamma nan_to_num native_batch_norm
    native_batch_norm_backward native_dropout_backward native_group_norm_backward
    native_layer_norm_backward nll_loss2d_backward nll_loss2d_forward nll_loss_backward
    nll_loss_forward norm pairwise_distance pixel_shuffle pixel_unshuffle rad2deg
    reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward
    reflection_pad3d reflection_pad3d_backward replication_pad1d replication_pad2d
    replication_pad3d rot90 select_backward sinc slice_backward smooth_l1_loss
    smooth_l1_loss_backward soft_margin_loss softplus_backward softshrink special_entr
    special_log_ndtr special_xlog1py squeeze_copy trace tril_indices triu_indices
    unfold_backward unfold_copy unsqueeze_copy upsample_bicubic2d upsample_bilinear2d
    upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_trilinear3d zero
""".split()

# Operators without a converter that stay whole though torch could take them apart, by reason.
WHOLE: dict[str, str] = {
    "ATen's matrix products and convolutions are a library's": """
        addmm mm bmm convolution
    """,
    "attention is one call, with its own backward": """
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention
        _scaled_dot_product_efficient_attention
        _scaled_dot_product_fused_attention_overrideable
    """,
    "random numbers are eager's: the operators draw from the same generator": """
        bernoulli rand rand_like randn randn_like randint randint_like uniform exponential
        geometric cauchy log_normal normal normal_functional random randperm multinomial
        rrelu_with_noise rrelu_with_noise_functional
    """,
    "adding at computed places is ATen's, in parallel": "upsample_bicubic2d_backward",
}

# Operators that torch takes apart though they have a converter, which then serves programs that
# are not decomposed: texts, and what control flow captures. By reason.
APART: dict[str, str] = {
    "a copy or view by another name: torch gives the one that the rest of a graph has": """
        alias_copy diagonal_copy expand_copy split_with_sizes_copy squeeze squeeze_copy t
        t_copy transpose transpose_copy unfold_copy unsafe_split_with_sizes unsqueeze_copy
        _reshape_alias _unsafe_view
    """,
    "a constant: torch gives the operator with all arguments": """
        empty_like fill new_empty ones zero zeros
    """,
    "another operator with its arguments in another place": """
        clamp_max clamp_min floor_divide rsub sum _unsafe_index _unsafe_index_put
    """,
    "one line of others, which fuse": """
        count_nonzero dot vdot isin norm sgn _safe_softmax
    """,
}

# Operators with a converter whose decomposition is irc's own and takes apart only some uses.
PARTLY: dict[str, str] = {
    "16-bit floats are rounded in between, as ATen does": """
        native_layer_norm native_group_norm linalg_vector_norm logsumexp
    """,
    "a padding that only cuts": "constant_pad_nd",
    "a source that is transposed": "_native_batch_norm_legit_no_training",
    "no dimension at all": "any all nansum",
    "bools to the power of a bool": "pow",
    "values that are broadcast, and numbers": "index_put",
    "operands in several orders": """
        copysign heaviside logical_and logical_or logical_xor xlogy
    """,
}

# Operators beyond those of torch's own table that a backward may compute again: each element of
# their results is made of a few elements of their operands, in kernels that compute with it.
AGAIN: dict[str, str] = {
    "constants": """
        empty_permuted empty_strided eye fill linspace new_empty new_empty_strided new_full
        new_ones ones_like zero
    """,
    "an element from another place": """
        _unsafe_index constant_pad_nd diag_embed diagonal diagonal_copy embedding expand_copy flip
        index_select narrow_copy one_hot permute_copy repeat roll select_copy slice_copy
        split_copy split_with_sizes split_with_sizes_copy squeeze_copy stack t_copy take
        transpose_copy tril unbind unbind_copy unfold unfold_copy unsafe_split
        unsafe_split_with_sizes unsqueeze_copy view_copy
    """,
    "an element of one of two operands": """
        diagonal_scatter index_fill select_scatter slice_scatter
    """,
    "arithmetic": "copy floor_divide hardswish isreal real",
}

# Operators beyond those whose operands need not be in memory: what computes these goes into the
# same kernel.
READING: dict[str, str] = {
    "reductions": """
        all amin aminmax argmin count_nonzero dot linalg_vector_norm logsumexp nansum prod std_mean
    """,
    "reductions, and what is computed with them": """
        _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data
        native_group_norm native_layer_norm
    """,
    "what is put at places, and what makes these": """
        _unsafe_index_put index_add index_put scatter scatter_add
    """,
}


def names_of(table: dict[str, str]) -> dict[str, str]:
    """The reason of each name in one of the tables."""
    return {name: reason for reason, names in table.items() for name in names.split()}
