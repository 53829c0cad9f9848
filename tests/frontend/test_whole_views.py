"""Views by strides of all of a tensor are that tensor."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from irc.frontend.fx.whole_views import skip_whole_views

aten = torch.ops.aten


def graph(sizes: list[int], strides: list[int], offset: int | None, scattered: bool) -> fx.Graph:
    """A view of, or a scatter to, six numbers in rows of three."""
    program = fx.Graph()
    x, y = (program.placeholder(name) for name in "xy")
    x.meta["val"], y.meta["val"] = torch.zeros(2, 3), torch.zeros(sizes)
    places = (sizes, strides) if offset is None else (sizes, strides, offset)
    if scattered:
        view = program.call_function(aten.as_strided_scatter.default, (x, y, *places))
    else:
        view = program.call_function(aten.as_strided.default, (x, *places))
    program.output(view)
    return program


@pytest.mark.parametrize("scattered", [False, True], ids=["view", "scatter"])
@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "whole"),
    [([2, 3], [3, 1], None, True), ([2, 3], [3, 1], 0, True), ([3, 2], [1, 3], None, False),
     ([2, 2], [3, 1], None, False), ([2, 2], [3, 1], 1, False), ([6], [1], None, False)],
)  # fmt: skip
def test_a_view_of_all_is_what_it_is_of(
    sizes: list[int], strides: list[int], offset: int | None, whole: bool, scattered: bool
) -> None:
    program = graph(sizes, strides, offset, scattered)
    skip_whole_views(program.nodes)
    (result,) = program.output_node().all_input_nodes
    assert (result.op == "placeholder") is whole
    assert not whole or result.name == ("y" if scattered else "x")


@pytest.mark.parametrize(
    ("dims", "dtype", "is_view"),
    [([1], torch.float32, True), ([1, 3], torch.float32, True), ([0, 1], torch.float32, False),
     ([1], torch.float64, False), ([], torch.float32, False)],
)  # fmt: skip
def test_a_sum_of_single_numbers_is_a_view(
    dims: list[int], dtype: torch.dtype, is_view: bool
) -> None:
    program = fx.Graph()
    x = program.placeholder("x")
    x.meta["val"] = torch.randn(2, 1, 3, 1)
    node = program.call_function(aten.sum.dim_IntList, (x, dims), {"dtype": dtype})
    node.meta["val"] = x.meta["val"].sum(dims, dtype=dtype)
    program.output(node)
    skip_whole_views(list(program.nodes))
    (result,) = program.output_node().all_input_nodes
    assert (result.target is aten.squeeze.dims) is is_view
    got = fx.GraphModule({}, program)(x.meta["val"])
    assert torch.equal(got, node.meta["val"])
