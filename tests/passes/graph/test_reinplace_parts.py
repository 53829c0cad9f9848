"""reinplace: slices of an argument that are written one after the other, each in its memory."""

from __future__ import annotations

import random

import attrs
import pytest

torch = pytest.importorskip("torch")

from irc.target import Target  # noqa: E402
from irc.target.figures import evolve  # noqa: E402
from tests.passes.graph.test_reinplace import copies, kernels, lowered  # noqa: E402

CACHE = torch.arange(2.0 * 3 * 16 * 512).reshape(2, 3, 16, 512)
NEW = -torch.ones(2, 3, 1, 512)


def apart(cache, new):
    cache[:, :, 5:6] = new
    cache[:, :, 7:8] = new * 2


def touching(cache, new):
    cache[:, :, 5:6] = new
    cache[:, :, 6:7] = new * 2


def overlapping(cache, new):
    cache[:, :, 3:7] = new + 1
    cache[:, :, 5:9] = new


def one_in_the_other(cache, new):
    cache[:, :, 3:9] = new + 1
    cache[:, :, 5:6] = new


def along_two_dimensions(cache, new):
    cache[:, :, 5:6] = new
    cache[0, 1] = new[0, 1]


def from_what_was_written(cache, new):
    cache[:, :, 5:6] = new
    cache[:, :, 7:8] = cache[:, :, 5:6] * 2
    return cache.sum(0)


def added_to(cache, new):
    cache[:, :, 5:6] = new
    cache[:, :, 9:10] += new
    cache[:, :, 12:14] *= 3


WRITES = [apart, touching, overlapping, one_in_the_other, along_two_dimensions,
          from_what_was_written, added_to]  # fmt: skip


@pytest.mark.parametrize("function", WRITES)
def test_each_slice_is_written_in_place(function):
    module, found, counted = lowered(function, (CACHE, NEW))
    assert found == [0] and not copies(module)
    assert counted["parts written in place"] >= 2 and counted["updates without a copy"] == 1
    writing = [k for k in kernels(module) if k.initialized is not None]
    assert len(writing) == counted["parts written in place"]


@pytest.mark.parametrize("function", [apart, touching, from_what_was_written])
def test_symbolic_sizes(function):
    module, found, _ = lowered(function, (CACHE, NEW), dynamic=True)
    assert found == [0] and not copies(module)


def exchanged(cache, new):
    first = cache[0].clone()
    cache[0] = cache[1]
    cache[1] = first


def needs_what_is_overwritten(cache, new):
    old = cache[:, :, 5:6] * 2
    cache[:, :, 5:6] = new
    cache[:, :, 7:8] = old


def read_in_between(cache, new):
    cache[:, :, 5:6] = new
    total = cache.sum(-1)
    cache[:, :, 7:8] = new
    return total


def an_intermediate_is_returned(cache, new):
    cache[:, :, 5:6] = new
    old = cache.clone()
    cache[:, :, 7:8] = new
    return old


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "function", [exchanged, needs_what_is_overwritten, read_in_between, an_intermediate_is_returned,
                 overlapping, along_two_dimensions, added_to],
)  # fmt: skip
def test_other_readers_get_what_eager_gives(function, dynamic):
    lowered(function, (CACHE, NEW), dynamic=dynamic)


def test_small_arrays_are_written_at_once():
    assert lowered(apart, (torch.zeros(2, 3, 16, 8), NEW[..., :8]))[1] == [0]
    assert lowered(apart, (torch.zeros(2, 3, 16, 1), NEW[..., :1]))[1] == []


def random_writes(seed):
    """A function of an array of 6 x 7 that writes slices of it one after the other."""
    choose = random.Random(seed)

    def stretch(size, length=None):
        length = length or choose.randint(1, size)
        start = choose.randint(0, size - length)
        return slice(start, start + length)

    lines = []
    for _ in range(choose.randint(2, 4)):
        rows, columns = stretch(6), stretch(7)
        if choose.random() < 0.4:
            columns = slice(0, 7)
        same = stretch(6, rows.stop - rows.start), stretch(7, columns.stop - columns.start)
        kind = choose.choice(["number", "new", "own", "own", "other", "flip", "row", "read"])
        lines.append((kind, (rows, columns), same))

    def run(x, new):
        found = []
        for kind, box, same in lines:
            if kind == "number":
                x[box] = len(found) - 3
            elif kind == "new":
                x[box] = new[same] * 2
            elif kind == "own":
                x[box] += new[box]
            elif kind == "other":
                x[box] = x[same] + 1
            elif kind == "flip":
                x[box] = x[box].flip(0) - 1
            elif kind == "row":
                x[box[0].start] = new[same[0].start]
            else:
                found.append(x[same].sum(0))
        return tuple(found)

    return run


@pytest.mark.parametrize("seed", range(30))
def test_random_writes(seed):
    host = Target.host()
    eager = attrs.evolve(host, processor=evolve(host.processor, copied_bytes=0))
    x, new = torch.arange(42.0).reshape(6, 7), -torch.arange(42.0).reshape(6, 7)
    lowered(random_writes(seed), (x, new), target=eager)
