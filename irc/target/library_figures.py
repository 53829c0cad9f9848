"""`LibraryFigures`: where kernels of irc's own beat the libraries that torch calls, and what calls
of these take.
"""

from __future__ import annotations

from irc.target.figures import figure


class LibraryFigures:
    """Figures of oneDNN, BLAS, cuDNN and ATen's operators."""

    # -- panel-convolutions: above these, ours were 1.00 to 1.21 times as fast as oneDNN's on Zen 4,
    # and 0.93 to 1.42 on Sapphire Rapids (`python -m bench.convolutions`)
    panel_channels: int = figure(
        32, "channels", "in, below which oneDNN computes a 1x1 convolution")
    panel_results: int = figure(32, "channels", "out, below which it does")
    panel_pixels: int = figure(64, "pixels", "below which it does")
    panel_empty: float = figure(0.2, "of a panel", "the most that may be empty")

    # -- winograd-convolutions: measured on Zen 4, 55e9 multiplications and 15e9 bytes a second,
    # transforms of 0.34 to 0.62 ms for the layers of `python -m bench.convolutions`
    winograd_byte: float = figure(
        3.7, "multiplications", "of a core in the time of a byte of weights from memory")
    winograd_transform: int = figure(
        350, "multiplications", "of a core in the time of the transforms of a channel of a tile")

    # -- pack-weights
    packed_rows: int = figure(
        2, "rows", "of a matrix product, below which oneDNN's own way of reading a plain matrix is "
        "as fast")

    # -- propagate-channels-last: TorchInductor's weights; not measured here
    grouped_time: float = figure(
        1.358, "times", "a grouped convolution takes with channels innermost")
    narrowing_time: float = figure(
        0.725, "times", "one takes that has many more channels in than out")
    small_time: float = figure(0.783, "times", "one takes of at most `small_channels`")
    usual_time: float = figure(0.823, "times", "any other takes")
    small_channels: int = figure(64, "channels", "in and out, of a small convolution")

    # -- convert-aten-to-graph
    ranked_row: int = figure(
        64, "elements", "of a row up to which comparing all pairs beats ATen's selection")
    sorted_row: int = figure(1024, "elements", "of the longest row that a tile of a GPU sorts")
    seen_windows: int = figure(
        16, "windows", "the most of a pooling that an element of a GPU looks at for its gradient; "
        "else they add to it")

    # -- the host program
    small_product: int = figure(
        32768, "multiplications", "of a product of matrices, up to which the way through ATen to "
        "BLAS is a noticeable part of its time")
    unlocked_work: int = figure(
        400_000, "operations", "of a kernel, from which other threads of Python may run meanwhile: "
        "about 50 us")


__all__ = ["LibraryFigures"]
