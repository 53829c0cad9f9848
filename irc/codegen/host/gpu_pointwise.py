"""Convolutions of single points in a native program of a GPU, as products of matrices.

    products = pointwise_products(program)           # of their steps' results, by the `id`
    products = products_into_memory(program)         # of those that are given memory for it

A convolution with a kernel of 1x1 over channels-last images of 16-bit elements multiplies each
point's channels with the weight: a product of (points, channels) and (channels, results), as its
gradients are. `aten.convolution` takes 35 us of an H200's host to get there; cuBLAS takes 10, and
cuDNN runs kernels of the same kind. Sums are in f32 as cuDNN's are, whatever torch lets those of
its own products be.
"""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.calls import CONVOLUTION_OUT
from irc.codegen.host.gpu_products import GpuProduct
from irc.program import host_program as P

#: cuBLAS's mode in which sums are not rounded to 16 bits on the way.
FULL_SUMS = 16
_DTYPES = ("bfloat16", "float16")
_FORWARD, _BACKWARD = "aten.convolution.default", "aten.convolution_backward.default"
_FORWARDS = (_FORWARD, CONVOLUTION_OUT)


def pointwise_products(program: P.HostProgram) -> dict[int, tuple[GpuProduct, ...]]:
    """The steps of a program that are such convolutions, with the products of their results: the
    result at position i is the register -1 - i."""
    calls = (step for step in program.steps if isinstance(step, P.CallOperator))
    fresh = (step for step in calls if step.callee != CONVOLUTION_OUT)
    products = ((id(step), _products(step, program)) for step in fresh)
    return {key: each for key, each in products if each}


def products_into_memory(program: P.HostProgram) -> dict[int, GpuProduct]:
    """The steps that compute such convolutions into memory of the program, as products."""
    calls = [s for s in program.steps if isinstance(s, P.CallOperator)]
    steps = [step for step in calls if step.callee == CONVOLUTION_OUT]
    return {id(step): each for step in steps for each in _products(step, program)}


def _products(step: P.CallOperator, program: P.HostProgram) -> tuple[GpuProduct, ...]:
    """The products of a step; none for one that only the operator computes."""
    if step.callee not in (*_FORWARDS, _BACKWARD) or step.path is not None:
        return ()
    arguments = dict(step.arguments)
    if not _is_pointwise(arguments):
        return ()
    image, weight = arguments["input"].index, arguments["weight"].index
    points, channels = _matrix_of_points(program.layouts[image])
    results, inner = _matrix_of_weight(program.layouts[weight])
    if inner != channels or min(points, channels, results) < 2:
        return ()
    dtype = program.layouts[image].dtype

    def product(
        position: int, first: tuple[int, bool], second: tuple[int, bool],
        sizes: tuple[int, int, int],
    ) -> GpuProduct:  # fmt: skip
        columns, rows, depth = sizes
        leading = (depth if first[1] else columns, rows if second[1] else depth, columns)
        words = (int(first[1]), int(second[1]), columns, rows, depth, *leading)
        return GpuProduct("gemm", dtype, words, first[0], second[0], -1 - position, mode=FULL_SUMS)

    if step.callee in _FORWARDS:
        is_fresh = step.callee == _FORWARD
        layout = step.results[0].layout if is_fresh else program.layouts[arguments["out"].index]
        if layout is None or _matrix_of_points(layout) != (points, results):
            return ()
        whole = product(0, (weight, True), (image, False), (results, points, channels))
        return (whole if is_fresh else attrs.evolve(whole, out=arguments["out"].index),)
    gradient = arguments["grad_output"].index
    if _matrix_of_points(program.layouts[gradient]) != (points, results):
        return ()
    of_image, of_weight, _ = arguments["output_mask"]
    parts = []
    if of_image:
        parts.append(product(0, (weight, False), (gradient, False), (channels, points, results)))
    if of_weight:
        parts.append(product(1, (image, False), (gradient, True), (channels, results, points)))
    expected = {0: (points, channels), 1: (results, channels)}
    for part in parts:
        position = -1 - part.out
        layout = step.results[position].layout
        shape_of = _matrix_of_weight if position else _matrix_of_points
        if layout is None or shape_of(layout) != expected[position]:
            return ()
    return tuple(parts)


def _is_pointwise(arguments: dict[str, Any]) -> bool:
    """Whether each result is of one point, and there is no bias."""
    if arguments["transposed"] or any(arguments["output_padding"]) or arguments["groups"] != 1:
        return False
    if arguments.get("bias") is not None or arguments.get("output_mask", (False,))[-1]:
        return False
    return tuple(arguments["stride"]) == (1, 1) and tuple(arguments["padding"]) == (0, 0)


_NONE = (0, 0)


def _matrix_of_points(layout: P.Layout) -> tuple[int, int]:
    """Points and channels of a dense channels-last image; zeros for another."""
    sizes = [n for n in layout.sizes if isinstance(n, int)]
    if not _is_of_gpu(layout) or len(sizes) != 4:
        return _NONE
    batch, channels, rows, columns = sizes
    dense = (channels * rows * columns, 1, columns * channels, channels)
    same = layout.strides == dense and batch * rows * columns < 1 << 31
    return (batch * rows * columns, channels) if same else _NONE


def _matrix_of_weight(layout: P.Layout) -> tuple[int, int]:
    """Results and channels of the weight of a 1x1 kernel, dense; zeros for another."""
    if not _is_of_gpu(layout) or tuple(layout.sizes[2:]) != (1, 1) or layout.strides is None:
        return _NONE
    results, channels = layout.sizes[:2]
    if not isinstance(results, int) or not isinstance(channels, int):
        return _NONE
    return (results, channels) if tuple(layout.strides[:2]) == (channels, 1) else _NONE


def _is_of_gpu(layout: P.Layout) -> bool:
    return layout.dtype in _DTYPES and layout.device.startswith("cuda") and len(layout.sizes) == 4


__all__ = ["FULL_SUMS", "pointwise_products", "products_into_memory"]
