"""reinplace: a slice of an argument is written in its memory; what may not be stays whole."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import graph, host, kernel  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.pipeline import stages  # noqa: E402
from tests.fuzz.harness import Outcome, clones, observe, same  # noqa: E402

CACHE = torch.arange(2.0 * 3 * 16 * 4).reshape(2, 3, 16, 4)
NEW = -torch.ones(2, 3, 1, 4)


def lowered(function, args, dynamic=False, target="llvm"):
    """The module on the host level, and what the passes counted; every step keeps eager's
    outcome."""

    def of_eager(*given):
        found = function(*given)
        return () if found is None else found

    expected = observe(of_eager, args)
    module = irc.trace(function, tuple(clones(args)), dynamic=dynamic)
    context = PassContext(target=target)
    functional, first, *rest = stages().values()
    PassManager.parse(f"{functional},{first}", verify="each").run(module, context)
    assert_same(expected, observe(lambda *a: irc.run(module, *a), args))
    found = updates_in_place(module)
    PassManager.parse(",".join(rest), verify="each").run(module, context)
    assert_same(expected, observe(irc.build(module), args))
    return module, found, {name: n for (_, name), n in context.statistics.items()}


def assert_same(expected: Outcome, got: Outcome) -> None:
    same(expected, got, sharing=False, strides=False)


def updates_in_place(module):
    """The arguments that are updated with a `graph.put`."""
    ops = module.lookup("main").block.ops
    return [
        op.argument
        for op in ops
        if isinstance(op, graph.UpdateInput) and isinstance(op.value.defining_op, graph.Put)
    ]


def copies(module):
    return [op for op in module.lookup("main").block.ops if isinstance(op, host.HostCopyOp)]


def append(cache, new):
    cache[:, :, 5:6] = new
    return cache.sum(-1)


def test_a_cache_is_written_in_its_slice_only():
    module, found, counted = lowered(append, (CACHE, NEW))
    assert found == [0] and not copies(module)
    assert counted["updates without a copy"] == 1
    assert counted["bytes outside of parts"] == 4 * (CACHE.numel() - NEW.numel())


def first_and_last(cache, new):
    cache[:, :, -1] = new[:, :, 0]
    return new * 2


def test_the_last_place_of_a_cache():
    assert lowered(first_and_last, (CACHE, NEW))[1] == [0]


def test_symbolic_sizes():
    module, found, _ = lowered(append, (CACHE, NEW), dynamic=True)
    assert found == [0] and not copies(module)


def old_content_is_returned(cache, new):
    old = cache + 1
    cache[:, :, 5:6] = new
    return old


def old_content_is_the_slice(cache, new):
    cache[:, :, 5:6] = cache[:, :, 3:4] + new
    return new


def everything(cache, new):
    cache[:, :, 0:16] = new
    return new


def joined_with_nothing(cache, new):
    cache.copy_(torch.cat([cache[:0], cache + 1]))


@pytest.mark.parametrize(
    "function", [old_content_is_the_slice, everything, joined_with_nothing]
)
def test_what_must_be_written_whole(function):
    assert lowered(function, (CACHE, NEW))[1] == []


def a_box(cache, new):
    cache[1:, :, 5:6, :3] = new[1:, :, :, 1:]


def add_to_a_row(cache, new):
    cache[:, 1] += new[:, 0]


def scale_a_box(cache, new):
    cache[:1, :2, 3:] *= 2


def normalize_a_row(cache, new):
    cache[:, 2] = torch.softmax(cache[:, 2], -1)


def row_from_another(cache, new):
    cache[:, 0] = new[:, 0] + 1
    return new


def read_before(cache, new):
    old = cache[:, :, 5:6] * 3
    cache[:, :, 5:6] = new
    return old


BOXES = [old_content_is_returned, a_box, add_to_a_row, scale_a_box, row_from_another, read_before]


@pytest.mark.parametrize("function", BOXES)
def test_boxes_are_written_in_place(function):
    module, found, counted = lowered(function, (CACHE, NEW))
    assert found == [0] and not copies(module)
    assert counted["updates without a copy"] == 1
    assert [k.initialized is not None for k in kernels(module)].count(True) == 1


def test_a_part_that_is_computed_from_the_old_one():
    assert not copies(lowered(normalize_a_row, (CACHE, NEW))[0])


def kernels(module):
    return [op for op in module.regions[0].blocks[0].ops if isinstance(op, kernel.KernelFuncOp)]


def shifted_down(x):
    x[1:] = x[:-1].clone()


def shifted_up(x):
    x[:-1] = x[1:] + 1


def mirrored(x):
    x[:] = x.flip(0)


def half_mirrored(x):
    x[2:5] = x[2:5].flip(0) * 2


@pytest.mark.parametrize("function", [shifted_down, shifted_up, mirrored, half_mirrored])
@pytest.mark.parametrize("dynamic", [False, True])
def test_overlapping_reads(function, dynamic):
    lowered(function, (torch.arange(7 * 33.0).reshape(7, 33),), dynamic=dynamic)


def put_rows(x, i, v):
    x[i] = v


def add_rows(x, i, v):
    x.index_put_((i,), v, accumulate=True)


def index_add(x, i, v):
    x.index_add_(0, i, v)


def scatter_rows(x, i, v):
    x.scatter_(0, i[:, None].expand(v.shape), v)


def double_rows(x, i, v):
    x[i] = x[i] * 2 + v


def add_to_result(x, i, v):
    y = x + x
    y.index_put_((i,), v, accumulate=True)
    return y


def read_later(x, i, v):
    y = x * 2
    z = y.index_put((i,), v)
    return z, y.sum(0)


BY_INDEX = [put_rows, add_rows, index_add, scatter_rows, double_rows, add_to_result, read_later]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.bool]


@pytest.mark.parametrize("function", BY_INDEX)
@pytest.mark.parametrize("index", [[1, 1, 4], [4, 0, 6], [], [-1, 2, -1]])
def test_updates_by_index(function, index):
    i = torch.tensor(index, dtype=torch.int64)
    if function in (index_add, scatter_rows):
        i = i % 7
    x, v = torch.arange(7 * 33.0).reshape(7, 33), torch.arange(len(index) * 33.0).reshape(-1, 33)
    lowered(function, (x, i, v))


def part_of_rows(x, i, v):
    x[2:5, 1:9] = v[:, 3:11]


@pytest.mark.parametrize("function", [put_rows, add_to_result, part_of_rows])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(function, dtype):
    x = (torch.arange(7 * 33).reshape(7, 33) % 5).to(dtype)
    lowered(function, (x, torch.tensor([1, 1, 4]), x[:3].clone()))


def test_only_the_elements_written_cost_memory_traffic():
    module, *_ = lowered(put_rows, (torch.zeros(9, 40), torch.tensor([3]), torch.ones(1, 40)))
    (put,) = [k for k in kernels(module) if k.initialized is not None]
    assert list(put.initialized) == list(put.inplace)
    # A loop over the columns, which is cut in two, and in it one over the indices: no third one.
    loops = [op for op in put.regions[0].walk() if op.name == "kernel.for"]
    assert len(loops) == 2


def test_arguments_that_share_a_storage_stay():
    base = CACHE.clone()
    args = (base, base[:, :, :1])
    assert lowered(append, args)[1] == []
