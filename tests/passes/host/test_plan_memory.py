"""The arena: lives that overlap never share bytes, and dead memory is used again."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.dialects import host
from irc.dialects.host.memory import Life, aligned, memory_bytes
from irc.ir.symbols import evaluate, floordiv, symbol
from irc.ir.types import bf16
from irc.options.options import parse_options
from irc.passes.host import plan_memory
from irc.passes.host.plan_memory import _PlacedBuffer, lone, place_static, place_symbolic
from irc.pipeline import lower
from irc.target.attribute import settle
from tests.passes.kernel.programs import tensor
from tests.runtime.gpu_stub import Stub


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


def test_a_smaller_symbolic_size_takes_a_dead_larger_one(monkeypatch):
    """Each pair of sizes is compared once, whatever number of arrays has them, and none that a few
    numbers in the place of the symbol decide."""
    asked = []
    proof = plan_memory.provable_le

    def proves(size, room):
        asked.append((size, room))
        return proof(size, room)

    monkeypatch.setattr(plan_memory, "provable_le", proves)
    s = symbol("s0")
    sizes = [4 * s * s, 8 * s, 4 * s, 4096]
    lives = [life(sizes[k % 3] + 64 * (k % 2), k, k) for k in range(60)]
    place_symbolic(lives, 0)
    assert len({str(offset(a)) for a in lives}) == 3  # those of 4*s*s, 8*s + 64 and 4*s*s + 64
    assert 0 < len(asked) == len(set(asked)) <= 36
    assert all(evaluate(a, {"s0": k}) <= evaluate(b, {"s0": k}) for a, b in asked for k in (1, 9))


def test_sizes_without_a_value_have_places_of_their_own():
    s = symbol("s0")
    lives = [life(floordiv(s * s, floordiv(s, 4)), 0, 0), life(8 * s, 1, 1)]
    place_symbolic(lives, 0)
    assert clash(lives, {"s0": 12}) is None


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


def test_what_nothing_takes_turns_with_is_alone():
    large, small, long = life(1024, 5, 9), life(256, 0, 3), life(512, 0, 9)
    assert lone([large, small, long], 1024) == {large.op}
    assert lone([large, small, long], 512) == {large.op, long.op}
    assert not lone([large, small, long], 1025)
    assert not lone([large, life(512, 0, 4)], 1024), "they share a place"
    assert lone([large, life(508, 0, 4)], 1024) == {large.op}
    assert lone([large, life(symbol("s0") * 8, 0, 4)], 1024) == {large.op}


def summed(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A gradient of an embedding, whose sums are f32 while they grow."""
    y = torch.relu(x @ x.t()) @ x
    return y, torch.ops.aten.embedding_dense_backward(x * 2, i, 1000, -1, False)


@pytest.mark.parametrize("least", [16 << 20, 200_000])
def test_large_arrays_of_a_gpu_have_memory_of_their_own(least, monkeypatch):
    x, i = torch.randn(8, 64).bfloat16(), torch.randint(0, 1000, (8,))
    module = irc.trace(summed, [x, i])
    settle(module, f"#irc.target<sm_90, lone_bytes = {least}>")
    lower(module, None, parse_options(None, None), verify="each", functional=True)
    allocs = [op for op in module.walk() if isinstance(op, host.AllocOp) and not op.escapes]
    own = [op.memory.type.shape for op in allocs if op.offset is None]
    assert own == ([(1000, 64)] if least == 200_000 else []) and len(allocs) > 1
    stub = Stub()
    call = stub.build(module, monkeypatch)
    for _ in range(2):
        for found, expected in zip(stub.call(call, x, i), summed(x, i), strict=True):
            torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
