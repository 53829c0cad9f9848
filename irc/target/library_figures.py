"""`LibraryFigures`: where kernels of irc's own beat the libraries that torch calls, and what calls
of these take.
"""

from __future__ import annotations

from typing import Annotated

from irc.target.figures import Figure, Figures


class LibraryFigures(Figures):
    """Figures of oneDNN, BLAS, cuDNN and ATen's operators."""

    # -- panel-convolutions: above these, ours were 1.00 to 1.21 times as fast as oneDNN's on Zen 4,
    # and 0.93 to 1.42 on Sapphire Rapids (`python -m bench.convolutions`)
    panel_channels: Annotated[int, Figure(
        "channels", "in, below which oneDNN computes a 1x1 convolution")] = 32
    panel_results: Annotated[int, Figure("channels", "out, below which it does")] = 32
    panel_pixels: Annotated[int, Figure("pixels", "below which it does")] = 64
    panel_empty: Annotated[float, Figure("of a panel", "the most that may be empty")] = 0.2

    # -- winograd-convolutions: measured on Zen 4, 55e9 multiplications and 15e9 bytes a second,
    # transforms of 0.34 to 0.62 ms for the layers of `python -m bench.convolutions`
    winograd_byte: Annotated[float, Figure(
        "multiplications", "of a core in the time of a byte of weights from memory")] = 3.7
    winograd_transform: Annotated[float, Figure(
        "multiplications", "of a core in the time of the transforms of a channel of a tile, for "
        "each of the tile's products")] = 9.7

    # -- pack-weights
    packed_rows: Annotated[int, Figure(
        "rows", "of a matrix product, below which oneDNN's own way of reading a plain matrix is as "
        "fast")] = 2

    # -- propagate-channels-last: TorchInductor's weights; not measured here
    grouped_time: Annotated[float, Figure(
        "times", "a grouped convolution takes with channels innermost")] = 1.358
    narrowing_time: Annotated[float, Figure(
        "times", "one takes that has many more channels in than out")] = 0.725
    small_time: Annotated[float, Figure("times", "one takes of at most `small_channels`")] = 0.783
    usual_time: Annotated[float, Figure("times", "any other takes")] = 0.823
    small_channels: Annotated[int, Figure("channels", "in and out, of a small convolution")] = 64

    # -- patch-products
    pixel_bytes: Annotated[int, Figure(
        "bytes", "that the channels of a pixel are a multiple of where cuDNN computes convolutions "
        "of 16 bits fast", least=1)] = 16
    narrow_convolution: Annotated[int, Figure(
        "operations", "of a convolution of 16 bits that cuDNN does in a us where the channels of a "
        "pixel are none (patches of three: 8.6 and 10.3 million on an H200, "
        "`bench.gpu_layouts`)", least=1)] = 10_000_000

    # -- convert-aten-to-graph
    ranked_row: Annotated[int, Figure(
        "elements", "of a row up to which comparing all pairs beats ATen's selection")] = 64
    sorted_row: Annotated[int, Figure(
        "elements", "of the longest row that a tile of a GPU sorts")] = 1024
    seen_windows: Annotated[int, Figure(
        "windows", "the most of a pooling that an element looks at for its gradient, on a GPU or, "
        "of images with their channels innermost, on a CPU; else they add to it")] = 16

    # -- gather-sums
    seen_terms: Annotated[int, Figure(
        "terms", "that are read at most, with what is none, for each that is added at a known "
        "place; else they are added there")] = 16

    # -- the host program
    small_product: Annotated[int, Figure(
        "multiplications", "of a product of matrices, up to which the way through ATen to BLAS is "
        "a noticeable part of its time")] = 32768
    unlocked_work: Annotated[int, Figure(
        "operations", "of a kernel, from which other threads of Python may run meanwhile: about 50 "
        "us")] = 400_000


__all__ = ["LibraryFigures"]
