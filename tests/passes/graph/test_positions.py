"""Positions that are symbols: negative ones count from the end, as in eager mode."""

from __future__ import annotations

import pytest
import torch

import irc  # noqa: F401

cube = torch.arange(125.0).reshape(5, 5, 5).sin()
face = torch.arange(25.0).reshape(5, 5)

FUNCTIONS = {
    "select": lambda x, i: x.select(1, i),
    "elements selected": lambda x, i: x.select(1, i) + 1,
    "select_scatter": lambda x, i: x.select_scatter(face, 1, i),
    "narrow": lambda x, i: x.narrow(0, i, 1) * 2,
    "slice from": lambda x, i: x[i:],
    "slice up to": lambda x, i: x[:, :i] * 2,
    "slice with a step": lambda x, i: x[i::2] + 1,
    "slice_scatter": lambda x, i: x.slice_scatter(x[:1] + 1, 0, i, i + 1),
    "elements assigned": lambda x, i: x.clone().index_fill_(0, torch.tensor([0]), 3.0)[i].exp(),
    "comparison": lambda x, i: torch.where(torch.arange(5) >= -i, x, -x),
    "sum": lambda x, i: (x + i).sum(0) * i,
}


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="irc", dynamic=True, fullgraph=True)


@pytest.mark.parametrize("position", [2, -2, -5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_symbolic_position_counts_as_in_eager_mode(name, position):
    function = FUNCTIONS[name]
    result, expected = compiled(function)(cube, position), function(cube, position)
    torch.testing.assert_close(result, expected, check_stride=True)
    assert (result.data_ptr() == cube.data_ptr()) == (expected.data_ptr() == cube.data_ptr())


def test_one_program_takes_an_index_of_either_sign():
    # torch guards nothing about this index.
    function = compiled(lambda x, i: x.select_scatter(face, 0, i))
    for position in (3, -1, 0, -5):
        torch.testing.assert_close(
            function(cube, position), cube.select_scatter(face, 0, position)
        )


@pytest.mark.parametrize("position", [5, -6])
def test_an_index_out_of_range_is_an_index_error(position):
    function = compiled(lambda x, i: x.select_scatter(face, 0, i))
    function(cube, 2)
    with pytest.raises(IndexError, match="out of bounds"):
        function(cube, position)


def test_a_step_that_is_a_symbol():
    x = torch.randn(7, 6)
    for function in (lambda x, i: x[:, 1::i] + 1, lambda x, i: x[2::i], lambda x, i: x.t()[::i]):
        result, expected = compiled(function)(x, 3), function(x, 3)
        torch.testing.assert_close(result, expected, check_stride=True)
