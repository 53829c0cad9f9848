"""How a vector axis is covered: by whole blocks, then by vectors, then masked or by scalars."""

from __future__ import annotations

import itertools

import pytest

from irc.ir.core import Block
from irc.ir.symbols import symbol
from irc.ir.types import index
from irc.passes.kernel.cpu.emit import Emitter
from irc.passes.kernel.cpu.vectors import Phase, Vectors, phases, whole_blocks

N = symbol("n")


def visited(phase):
    """The points that a phase with known ends computes."""
    for start in range(phase.lower, phase.upper, phase.step):
        for point in range(start, start + phase.width * phase.copies):
            if phase.limit is None or point < phase.limit:
                yield point


@pytest.mark.parametrize("tail", ["mask", "peel"])
@pytest.mark.parametrize("width, copies", [(4, 1), (4, 2), (1, 2), (4, 4)])
def test_every_point_is_visited_once_in_order(width, copies, tail):
    block = width * copies
    for lower, size in itertools.product((0, block, 3 * block), range(3 * block + 2)):
        made = list(phases(Emitter(Block()), Vectors("i", width, copies, tail, 5), lower,
                           lower + size, lower + size))  # fmt: skip
        assert [p for phase in made for p in visited(phase)] == [*range(lower, lower + size)]
        assert made[0].width == width and made[0].copies == copies and made[0].limit is None
        widths = {phase.width for phase in made[1:] if phase.lower < phase.upper}
        assert widths <= ({width} if tail == "mask" or size % width == 0 else {width, 1})
        assert len(made) == 1 + bool(size % block) * (
            2 if tail == "peel" and copies > 1 and size % width else 1)  # fmt: skip
        assert all(phase.step == phase.width * phase.copies for phase in made)


@pytest.mark.parametrize(
    "extent, copies, tail, expected, emitted",
    [
        # width, copies and whether masked of each loop, and the operations that round the end.
        (32 * N, 2, "mask", [(8, 2, False)], 0),
        (8 * N, 2, "mask", [(8, 2, False), (8, 1, False)], 1),
        (8 * N, 2, "peel", [(8, 2, False), (8, 1, False)], 1),
        (8 * N, 1, "peel", [(8, 1, False)], 0),
        (N, 2, "mask", [(8, 2, False), (8, 1, True)], 1),
        (N, 2, "peel", [(8, 2, False), (8, 1, False), (1, 1, False)], 2),
        (N, 1, "mask", [(8, 1, False), (8, 1, True)], 1),
        (N, 1, "peel", [(8, 1, False), (1, 1, False)], 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("lower", [0, 16, None])
def test_loops_to_an_end_that_is_known_when_the_kernel_runs(
    extent, copies, tail, expected, emitted, lower
):
    block = Block((index, index))
    start, end = block.arguments
    lower = start if lower is None else lower
    made = list(phases(Emitter(block), Vectors("i", 8, copies, tail, 5), lower, end, extent))
    assert [(p.width, p.copies, p.limit is end) for p in made] == expected
    assert [op.name for op in block.ops] == ["arith.andi"] * emitted
    ends = [lower, *(p.upper for p in made)]
    assert all(p.lower is at for p, at in zip(made, ends, strict=False)) and ends[-1] is end


def test_a_known_end_behind_a_start_that_is_not():
    block = Block((index,))
    (start,) = block.arguments
    made = list(phases(Emitter(block), Vectors("i", 8, 2, "mask", 5), start, 40, 40))
    assert [(p.lower, p.upper, p.limit) for p in made] == [(start, 32, None), (32, 40, None)]
    made = list(phases(Emitter(block), Vectors("i", 8, 2, "mask", 5), start, 44, 44))
    assert [(p.lower, p.upper, p.limit) for p in made] == [(start, 32, None), (32, 44, 44)]
    made = list(phases(Emitter(block), Vectors("i", 8, 2, "peel", 5), start, 44, 44))
    assert [(p.lower, p.upper, p.width) for p in made] == [(start, 32, 8), (32, 40, 8), (40, 44, 1)]
    made = list(phases(Emitter(block), Vectors("i", 8, 2, "mask", 5), start, 48, 48))
    assert [(p.lower, p.upper) for p in made] == [(start, 48)]
    assert not list(block.ops)


def test_ends_that_are_whole_blocks_already():
    block = Block((index,))
    (end,) = block.arguments
    emitter = Emitter(block)
    assert whole_blocks(emitter, 37, 37, 16) == 32 and whole_blocks(emitter, 37, N, 1) == 37
    assert whole_blocks(emitter, end, 16 * N, 16) is end and whole_blocks(emitter, end, N, 1) is end
    assert not list(block.ops)
    rounded = whole_blocks(emitter, end, 8 * N, 16)
    mask = rounded.defining_op.operands[1].defining_op.attributes["value"]
    assert rounded.defining_op.name == "arith.andi" and mask.value == -16
    assert whole_blocks(emitter, end, N, 2) is not end


def test_the_lanes_of_a_phase():
    emitter = Emitter(Block())
    lanes = Phase(0, 32, 8, 8, 2).lanes(emitter, "i", 8)
    assert (lanes.axis, lanes.width, lanes.copies, lanes.apart, lanes.mask) == ("i", 8, 2, 8, None)
    lanes = Phase(0, 32, 8, 8, 1, limit=30, apart=64).lanes(emitter, "i", 24)
    assert lanes.mask is not None and (lanes.limit, lanes.apart) == (30, 64)
