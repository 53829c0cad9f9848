"""The arena: lives that overlap never share bytes, and dead memory is used again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.dialects import host
from irc.dialects.host.memory import Life, aligned, memory_bytes
from irc.ir.symbols import evaluate, symbol
from irc.ir.types import bf16
from irc.passes.host.plan_memory import _PlacedBuffer, place_static, place_symbolic
from tests.passes.kernel.programs import tensor


def life(size, start, end):
    op = host.AllocOp((), (tensor(1),), {})
    return Life(op, size, start, end)


def offset(a):
    return a.op.offset


def clash(lives, env):
    """The first two that are alive together and share a byte."""
    for k, a in enumerate(lives):
        for b in lives[:k]:
            first, second = evaluate(offset(a), env), evaluate(offset(b), env)
            apart = (
                first + evaluate(a.size, env) <= second or second + evaluate(b.size, env) <= first
            )
            if a.meets(b) and not apart:
                return a, b
    return None


SPANS = st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 6))


@given(st.lists(SPANS, max_size=14))
def test_static_lives_never_share(spans):
    lives = [life(64 * n, start, start + length) for n, start, length in spans]
    top = place_static(lives)
    assert clash(lives, {}) is None
    assert all(offset(a) + a.size <= top and offset(a) % 64 == 0 for a in lives)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 6)), max_size=12))
def test_symbolic_lives_never_share(spans):
    s0, s1 = symbol("s0"), symbol("s1")
    sizes = [aligned(d) for d in (s0 * 4, s1 * 4, s0 * s1 * 4, s0 * 8)]
    lives = [life(sizes[n], start, start + length) for n, start, length in sorted(
        spans, key=lambda s: s[1]
    )]  # fmt: skip
    place_symbolic(lives, 128)
    for env in ({"s0": 3, "s1": 100}, {"s0": 50, "s1": 1}, {"s0": 0, "s1": 7}):
        assert clash(lives, env) is None
        assert all(evaluate(offset(a), env) >= 128 for a in lives)


def test_dead_memory_is_used_again():
    first, second, third = life(128, 0, 2), life(256, 1, 5), life(128, 3, 6)
    assert place_static([first, second, third]) == 384
    assert offset(first) == offset(third)


def test_equal_symbolic_sizes_take_turns():
    size = aligned(symbol("s0") * 4)
    lives = [life(size, 0, 2), life(size, 1, 4), life(size, 3, 6)]
    place_symbolic(lives, 0)
    assert offset(lives[0]) == offset(lives[2]) == 0
    assert offset(lives[1]) is size


def test_bytes_of_layouts():
    assert memory_bytes(tensor(3, 5)) == 60
    assert memory_bytes(tensor(3, 5, e=bf16, strides=(8, 1))) == 2 * (2 * 8 + 5)
    assert memory_bytes(tensor(0, 5)) == 0
    assert memory_bytes(tensor(3, 0, strides=(8, 1))) >= 0
    assert aligned(0) == 64 and aligned(65) == 128


@pytest.mark.fault("V20")
@pytest.mark.parametrize("seed", range(5))
def test_bytes_in_use_during_a_life(seed):
    generator, lives, start = random.Random(seed), [], 0
    for _ in range(80):
        start += generator.randrange(3)
        lives.append(life(64, start, start + int(generator.expovariate(0.2))))
    placed, known = _PlacedBuffer(max(a.end for a in lives)), []
    for number, one in enumerate(generator.sample(lives, len(lives))):
        busy = sorted((at, at + 64) for at, other in known if other.meets(one))
        assert placed.busy(one) == busy
        placed.add(one, 128 * number, 64)
        known.append((128 * number, one))


@pytest.mark.fault("V20")
@pytest.mark.parametrize("seed", range(5))
def test_adjoining_bytes_in_use_are_one_range(seed):
    generator = random.Random(seed)
    placed, known = _PlacedBuffer(40), []
    for place in generator.sample(range(40), 40):
        start = generator.randrange(30)
        one = life(64, start, start + generator.randrange(10))
        bytes_ = {b for low, high in placed.busy(one) for b in range(low // 64, high // 64)}
        assert bytes_ == {b for b, other in known if other.meets(one)}
        placed.add(one, 64 * place, 64)
        known.append((place, one))


@pytest.mark.fault("V20")
def test_many_lives_at_a_time_take_no_long_searches():
    lives = [life(64, number, 1000 + number) for number in range(400)]
    placed = _PlacedBuffer(1400)
    for number, one in enumerate(lives):
        assert len(placed.busy(one)) <= 24
        placed.add(one, 64 * number, 64)
    assert place_static(lives) == 64 * 400
