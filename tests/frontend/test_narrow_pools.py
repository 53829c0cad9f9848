"""A backward of maxima of windows reads a byte for each of them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from irc.frontend.fx.narrow_pools import narrow_pools
from tests.frontend.test_partition import check, trained

WINDOWS = {  # size, step, padding, dilation, whether the last window may reach out of the source
    "overlapping": (3, 2, 1, 1, False),
    "apart": (2, 2, 0, 1, False),
    "at each place": (3, 1, 1, 1, True),
    "spread": (3, 2, 1, 2, True),
    "wide": (5, 3, 2, 1, False),
    "with gaps": (2, 3, 1, 1, True),
}


def pool(x, window):
    size, step, padding, dilation, ceil_mode = WINDOWS[window]
    function = {3: F.max_pool1d, 4: F.max_pool2d, 5: F.max_pool3d}[x.dim()]
    return function(x, size, step, padding, dilation, ceil_mode)


def saved(programs):
    (forward,) = [program for program in programs if program.stage == "forward"]
    return [r for r in forward.executable.info.results[1:] if r.alias_of is None]


@pytest.mark.parametrize("dims, window", [*itertools.product((1, 2, 3), WINDOWS)])
def test_places_are_stored_in_a_byte(dims, window):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *[11, 7, 9][:dims])
    sides = trained(lambda x: pool(x, window), x)
    check(sides)
    (places,) = saved(sides[2])
    assert places.dtype is torch.int8


def test_channels_last():
    x = torch.randn(2, 3, 9, 7).contiguous(memory_format=torch.channels_last)
    sides = trained(lambda x: pool(x, "overlapping"), x)
    check(sides)
    assert sides[0][1].is_contiguous(memory_format=torch.channels_last)


def test_large_windows_take_two_bytes():
    sides = trained(lambda x: F.max_pool2d(x, 12, 5), torch.randn(1, 2, 24, 24))
    check(sides)
    assert [r.dtype for r in saved(sides[2])] == [torch.int16]


def test_equal_maxima_and_what_is_no_number():
    x = torch.randn(1, 2, 8, 8).round()
    x[0, 0, :4, :4], x[0, 1, 2, 3], x[0, 1, 6] = -torch.inf, torch.nan, torch.inf
    check(trained(lambda x: pool(x, "overlapping"), x))


def test_symbolic_sizes():
    check(trained(lambda x: pool(x, "overlapping"), torch.randn(2, 3, 9, 7), dynamic=True))


def test_narrow_floats():
    x = torch.randn(2, 3, 9, 7).bfloat16()
    check(trained(lambda x: pool(x, "apart"), x), 1e-2)


def test_what_the_caller_gets_stays():
    def both(x):
        values, places = F.max_pool2d(x, 3, 2, return_indices=True)
        return values + 0 * places

    check(trained(both, torch.randn(2, 3, 9, 7)))


def test_views_of_places_are_told():
    def joint(x, g):
        y, positions = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2])
        read = torch.ops.aten.alias(positions)
        window = [3, 3], [2, 2], [0, 0], [1, 1]
        return y, torch.ops.aten.max_pool2d_with_indices_backward(g, x, *window, False, read)

    traced = make_fx(joint, tracing_mode="fake")(torch.randn(1, 2, 7, 7), torch.randn(1, 2, 3, 3))
    assert narrow_pools(traced) == 1
    (alias,) = traced.graph.find_nodes(op="call_function", target=torch.ops.aten.alias.default)
    assert alias.meta["val"].dtype is torch.int8
