"""The layouts of images while it is measured who computes a convolution."""

from __future__ import annotations

import torch
from torch.nn import functional

from irc.tuning import Candidate
from tests.passes.graph.test_choose_contractions import chosen


def test_images_of_a_cpu_are_measured_with_their_channels_innermost():
    """As layouts in the program will be: the second convolution reads what the
    first gives."""
    args = (torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(5, 4, 3, 3))

    def function(x, v, w):
        y = functional.conv2d(functional.conv2d(x, v), w)
        return y.mean((2, 3))

    innermost = "operand_strides = [#sym.dims<[196, 1, 28, 4]>"
    for options, turned in (({}, True), ({"layout_optimization": False}, False)):
        options = {"max_autotune": True, **options}
        _, problems = chosen(Candidate("aten"), function, args, options)
        texts = [problem.text for problem in problems]
        assert len(texts) == 2 and innermost not in texts[0]
        assert (innermost in texts[1]) == turned, texts[1]
