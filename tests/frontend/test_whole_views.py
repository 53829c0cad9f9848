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
