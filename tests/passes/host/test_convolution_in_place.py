"""A kernel writes where a convolution's image is that nothing else reads."""

from __future__ import annotations

import torch

import irc
from irc import pipeline


def lowered(function, *arguments: torch.Tensor):
    module = irc.trace(function, arguments)
    pipeline.lower(module)
    return [op for op in module.walk() if op.name == "host.alloc"]


def check(function, *arguments: torch.Tensor) -> None:
    executable = irc.compile(function, arguments)
    first, second = executable(*arguments), executable(*arguments)
    for got in (first, second):
        torch.testing.assert_close(got, function(*arguments))
    leaves = [first, second] if isinstance(first, torch.Tensor) else [*first, *second]
    assert len({leaf.data_ptr() for leaf in leaves}) == len(leaves)


def test_the_image_is_overwritten_by_what_reads_it_last():
    torch.manual_seed(0)
    x, w = torch.randn(2, 8, 9, 9), torch.randn(16, 8, 3, 3)

    def f(x, w):
        return torch.relu(torch.conv2d(x, w, padding=1) * 2 + 1)

    assert lowered(f, x, w) == []
    check(f, x, w)


def test_an_image_that_is_read_later_or_returned_stays():
    torch.manual_seed(0)
    x, w = torch.randn(2, 8, 9, 9), torch.randn(8, 8, 3, 3)

    def returned(x, w):
        y = torch.conv2d(x, w, padding=1)
        return y, torch.relu(y) * 2

    def read_later(x, w):
        y = torch.conv2d(x, w, padding=1)
        return torch.conv2d(torch.relu(y), w) + y[:, :, 1:-1, 1:-1]

    check(returned, x, w)
    check(read_later, x, w)
    assert len(lowered(returned, x, w)) == 1
