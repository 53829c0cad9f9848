"""The arithmetic of the cost model: figures of a processor, and what they make of a cost."""

from __future__ import annotations

import itertools

import attrs
import pytest

import irc
from irc.analysis.cost import (
    CHEAP,
    DIVISION,
    FUNCTION,
    NOTHING,
    class_of,
    moved,
    op_cost,
    told,
    work,
)
from irc.target import Target
from irc.target.costs import Cost
from irc.target.figures import evolve
from irc.target.speeds import Speeds

CPU, GPU = Target.named("avx2"), Target.named("sm_90")
COUNTS = [field.name for field in attrs.fields(Cost) if field.name != "parallel"]


@pytest.mark.parametrize(
    ("cost", "operations"),
    [(Cost(), 0), (Cost(cheap=3), 3), (Cost(divisions=3), 12), (Cost(functions=3), 48),
     (Cost(near=3), 6), (Cost(alone=3), 36), (Cost(far=3), 6), (Cost(launches=3), 4800),
     (Cost(1, 2, 3, 4, 5, 6, 7), 1 + 8 + 48 + 8 + 60 + 12 + 11200),
     # One point where 32 are wanted: work that one thread does anyway, and a little more.
     (Cost(cheap=32768, parallel=1), 32768), (Cost(cheap=32769, parallel=1), 32769 * 32),
     (Cost(cheap=65536, parallel=31), 65536 * 32 // 31), (Cost(cheap=65536, parallel=32), 65536),
     (Cost(cheap=65536, parallel=1, launches=1), 65536 * 32 + 1600)],
)  # fmt: skip
def test_by_hand(cost: Cost, operations: int) -> None:
    assert CPU.operations(cost) == operations
    assert CPU.time(cost) == 12_500 * operations
    assert CPU.seconds(cost) == pytest.approx(12.5e-12 * operations)


@pytest.mark.parametrize("target", [CPU, GPU, Target.named("#irc.target<avx2, serial = 0>")])
def test_more_never_takes_less(target: Target) -> None:
    for parallel, base in itertools.product((0, 1, 31, 300), (0, 100, 40_000)):
        cost = Cost(cheap=base, far=base, parallel=parallel)
        for name in COUNTS:
            times = [
                target.time(attrs.evolve(cost, **{name: getattr(cost, name) + more}))
                for more in (0, 1, 1000, 100_000)
            ]
            assert times == sorted(times) and times[0] < times[-1], name
    slower = [target.time(Cost(cheap=100_000, parallel=points)) for points in (400, 64, 8, 1)]
    assert slower == sorted(slower)


def test_arithmetic() -> None:
    one = Cost(1, 2, 3, 4, 5, 6, 1, 9)
    assert one + one == Cost(2, 4, 6, 8, 10, 12, 2, 9)
    assert one + Cost(parallel=4) == attrs.evolve(one, parallel=4)
    assert Cost(parallel=4) + Cost() == Cost() + Cost(parallel=4) == Cost(parallel=4)
    assert work(CHEAP + 2 * DIVISION + 3 * FUNCTION, 10) == Cost(10, 20, 30)


def test_what_is_moved() -> None:
    speeds = Speeds()
    assert moved(10, 4, 16_384, speeds) == Cost(near=10)
    assert moved(10, 4, 16_385, speeds) == Cost(far=40)
    assert moved(10, 2, 16_385, Speeds(near_bytes=16_385)) == Cost(near=10)


def test_classes() -> None:
    text = """func.func @main(%x: f32, %t: i1) {
      %a = arith.addf %x, %x : f32
      %b = arith.divf %x, %x : f32
      %c = math.rsqrt %x : f32
      %d = math.exp %x : f32
      %e = math.absf %x : f32
      %f = arith.extf %x : f32 to f64
      %g = arith.select %t, %x, %x : f32
      func.return
    }"""
    ops = [op for op in irc.parse(text).walk() if op.name.startswith(("arith.", "math."))]
    wanted = [CHEAP, DIVISION, DIVISION, FUNCTION, CHEAP, NOTHING, NOTHING]
    assert [class_of(op) for op in ops] == wanted
    assert [op_cost(op) for op in ops] == [1, 4, 4, 16, 1, 0, 0]
    assert op_cost(ops[3], Speeds(function=55)) == 55


def test_figures_that_no_processor_has() -> None:
    for name, value in (("launch", -1), ("femtoseconds", 0), ("byte", (1 << 40) + 1)):
        with pytest.raises(ValueError, match=f"{name} is {value}, not from"):
            evolve(CPU.processor, **{name: value})
    assert Target.named("#irc.target<sm_90, launch = 0>").operations(Cost(launches=5)) == 0


def test_what_people_read() -> None:
    assert told(CPU, Cost(launches=3), Cost(cheap=8)) == "60 ns -> 0.1 ns"
    assert told(CPU, Cost(), Cost(far=1 << 30)) == "0 ns -> 26.8 ms"
