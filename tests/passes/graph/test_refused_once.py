"""Programs that eager mode runs and that were refused, or that crashed."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import irc

pytestmark = pytest.mark.filterwarnings("ignore:Since version 1.3.0")
x, z = torch.arange(6.0).reshape(2, 3), torch.arange(3).to(torch.complex64) + 1j


def assert_as_eager(function, *arguments):
    torch._dynamo.reset()
    mine, eager = torch.compile(function, backend="irc")(*arguments), function(*arguments)
    torch.testing.assert_close(mine, eager)
    for first, second in zip(*map(torch.utils._pytree.tree_leaves, (mine, eager)), strict=True):
        assert first.stride() == second.stride() or 0 in first.shape
        assert first.dtype is second.dtype


@pytest.mark.fault("C5")
@pytest.mark.parametrize("function", [
    lambda z: (z * z).expand(2, 3),
    lambda z: torch.fft.fft(z).expand(2, 3),
    lambda z: (z * 2)[:, None].expand(3, 4).t(),
    lambda z: (z[:0] * 2).expand(2, 0),
    lambda z: (z * 2)[None, :0].expand(4, 0),
], ids=["product", "fft", "columns", "of nothing", "nothing of rows"])  # fmt: skip
def test_expanded_complex_results(function):
    assert_as_eager(function, z)


@pytest.mark.fault("C5")
@pytest.mark.parametrize("keepdim", [False, True])
def test_an_empty_list_of_dimensions(keepdim):
    given = x.clone()
    given[0, 1] = torch.nan
    assert_as_eager(lambda x: (x.nansum([], keepdim), x.nanmean([], keepdim)), given)
    assert_as_eager(lambda x: (x.nansum(), x.nansum(1), x.nanmean([0, 1])), given)


@pytest.mark.fault("C5")
@pytest.mark.parametrize("size", [(1, 1, 1, 5), (1, 1, 2, 1), (1, 1, 3, 4), (1, 1, 1, 2, 3)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grids_of_one_point(size, align_corners):
    theta = torch.randn(1, len(size) - 2, len(size) - 1)
    assert_as_eager(lambda t: F.affine_grid(t, size, align_corners=align_corners), theta)


@pytest.mark.fault("C5")
def test_softmax_of_integers_without_elements():
    empty = torch.zeros(0, 3, dtype=torch.int64)
    assert_as_eager(lambda i: (i.softmax(0), i.log_softmax(1)), empty)


@pytest.mark.fault("C5")
def test_index_add_without_elements():
    far = torch.tensor([5])
    assert_as_eager(lambda a, b: a.index_add(0, far, b), torch.ones(3, 0), torch.ones(1, 0))


@pytest.mark.fault("C5")
def test_index_put_with_too_many_indices():
    zero = torch.tensor([0])
    torch._dynamo.reset()
    with pytest.raises(IndexError, match="too many indices"):
        torch.compile(lambda a: a.index_put((zero,) * 3, a[0, 0]), backend="irc")(x)


def reading_beyond(a):
    rows, columns = (torch.arange(2) * 0).unsqueeze(-1), torch.arange(2) * 2
    return a[:, :, rows, columns]


@pytest.mark.fault("C8")
def test_positions_out_of_bounds_stay_data():
    """A read at a known place outside of its array waits for the assertion: it crashed where the
    array had no element, and its launch was joined with that of the check."""
    empty = torch.ones(1, 3, 0, 5)
    module = irc.trace(reading_beyond, (empty,))
    stages = ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops")
    for stage in stages:
        irc.PassManager.parse(stage).run(module)
    reads = [op for op in module.walk() if op.name == "loop.read" and op.source.type.rank == 4]
    assert len(reads) == 1 and reads[0].positions
    irc.PassManager.parse("loop-to-kernel").run(module)
    launches = [op for op in module.walk() if op.name == "host.launch"]
    assert [launch.checked for launch in launches] == [False, True]
    with pytest.raises(IndexError, match="dimension 2 with size 0"):
        irc.compile(reading_beyond, (empty,))(empty)


@pytest.mark.fault("C8")
@pytest.mark.parametrize("far", [5, 10**12])
def test_constant_indices_out_of_bounds_raise(far):
    def f(a, b):
        return a[torch.arange(3) + far], b.index_put((torch.arange(3) - far,), a[:3])

    with pytest.raises(IndexError):
        irc.compile(f, (torch.ones(4), torch.ones(4)))(torch.ones(4), torch.ones(4))


def test_constant_indices_in_bounds_are_plain_reads():
    def f(a):
        return a[torch.arange(3) + 1] * 2, a.index_add(0, torch.arange(3), a[:3])

    module = irc.trace(f, (torch.ones(4),))
    for stage in ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops"):
        irc.PassManager.parse(stage).run(module)
    assert not any(op.positions for op in module.walk() if op.name == "loop.read")
    assert not any(op.extra for op in module.walk() if op.name == "loop.yield")


@pytest.mark.fault("C8")
@pytest.mark.parametrize("function", [
    lambda a, b: a.slice_scatter(b, 0, 0, 2),
    lambda a, b: a.select_scatter(b[0, :2], 0, 0),
    lambda a, b: a.diagonal_scatter(b[0]),
], ids=["slice", "select", "diagonal"])  # fmt: skip
def test_what_is_scattered_has_the_sizes_of_its_place(function):
    a, b = torch.ones(5, 7), torch.ones(3, 7)
    torch._dynamo.reset()
    with pytest.raises(RuntimeError):
        function(a, b)
    with pytest.raises(RuntimeError):
        torch.compile(function, backend="irc")(a, b)


def test_elements_that_a_function_is_not_defined_on_are_atens():
    ints = torch.ones(2, 2, dtype=torch.int64)
    for function in (torch.bitwise_not, lambda v: v.softmax(0), lambda v: torch.lerp(v, v, 0.5)):
        given = x if function is torch.bitwise_not else ints
        module = irc.trace(function, (given,))
        irc.PassManager.parse("functional,aten-to-graph").run(module)
        assert any(op.name == "graph.call_aten" for op in module.walk())
        with pytest.raises(NotImplementedError):
            irc.run(module, given)
