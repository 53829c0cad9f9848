"""Random programs with sizes that the data decides: in the compiled program each assertion about
sizes stands at the first point where its symbols exist, and nothing is computed between."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo

import irc.pipeline
from irc.dialects import sym
from irc.ir.core import Operation
from irc.ir.symbols import free_symbols
from tests.backends import BACKEND, needs_backend
from tests.fuzz.harness import LONG

pytestmark = needs_backend
PROGRAMS, BATCHES = (1_000 if LONG else 16), 4
CHECKS: tuple[Callable[[Any, Any, torch.Tensor], Any], ...] = (
    lambda a, b, x: a <= x.shape[0],
    lambda a, b, x: a + b <= 2 * x.shape[0],
    lambda a, b, x: a <= b + 3,
    lambda a, b, x: a != 77,
)
MAPS: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
    lambda x, y: torch.sin(x),
    lambda x, y: x.cumsum(0),
    lambda x, y: x * y.sum(),
)


def random_program(seed: int) -> Callable[..., list[torch.Tensor]]:
    """A function of (x, y, lengths) that reads numbers from `lengths`, at any point, and uses
    them as sizes and positions."""
    generator = random.Random(seed)
    steps: list[tuple[str, int, int, int]] = []
    count = 0
    for _ in range(generator.randint(2, 8)):
        kind = generator.choice(("item", "check", "map", "slice", "index", "fill", "nonzero"))
        if count == 0 and kind in ("check", "slice", "index", "fill"):
            kind = "item"
        if kind == "item" and count == 3:
            kind = "map"
        first, second = (generator.randrange(max(count, 1)) for _ in range(2))
        steps.append((kind, count if kind == "item" else first, second, generator.randint(0, 3)))
        count += kind == "item"

    def function(x, y, lengths):
        numbers, results = {}, []
        for kind, first, second, choice in steps:
            if kind == "item":
                numbers[first] = lengths[first].item()
                torch._check(numbers[first] >= 0)
                continue
            a, b = numbers.get(first), numbers.get(second)
            if kind == "check":
                torch._check(CHECKS[choice](a, b, x))
            elif kind == "slice":
                torch._check(a <= x.shape[0])
                results.append(x[:a] * 2)
            elif kind == "index":
                results.append(x[a] + 1)
            elif kind == "fill":
                results.append(torch.full((a, 3), 2.0).sum(1))
            elif kind == "nonzero":
                results.append(torch.nonzero(y > 0).sum(0))
            else:
                x = MAPS[choice % 3](x, y)
        return [*results, x]

    return function


def late_assertions(program: Operation) -> Iterator[tuple[Operation, list[str]]]:
    """The assertions about sizes of a host program that stand behind the first point where their
    symbols exist, with what is computed between. What arguments bind exists at the start."""
    block = program.regions[0].blocks[0]
    arguments = set(block.arguments)
    ops = list(block.ops)
    bound: dict[str, int] = {}
    for number, op in enumerate(ops):
        if isinstance(op, sym.Binder):
            bound[op.symbol] = -1 if op.source in arguments else number
        elif isinstance(op, sym.AssertOp):
            names = free_symbols(op.lhs) | free_symbols(op.rhs)
            first = max([bound[name] for name in names], default=-1)
            between = [o.name for o in ops[first + 1 : number] if not o.name.startswith("sym.")]
            if between:
                yield op, between


@pytest.fixture
def lowered(monkeypatch) -> Iterator[list[Any]]:
    """The modules that compiles lower, as they are run; no program comes from the cache."""
    modules: list[Any] = []
    lower = irc.pipeline.lower

    def keeping(module, *args, **options):
        context = lower(module, *args, **options)
        modules.append(module)
        return context

    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    monkeypatch.setattr(irc.pipeline, "lower", keeping)
    settings = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with torch._dynamo.config.patch(settings):
        yield modules


def compiled(function: Callable[..., Any], length: int = 9) -> Any:
    torch._dynamo.reset()
    x = torch.linspace(-1, 2, length)
    torch._dynamo.mark_dynamic(x, 0)
    arguments = x, torch.linspace(-1, 1, 9), torch.tensor([2, 3, 4])
    done = torch.compile(function, backend=BACKEND, fullgraph=True)
    results = done(*arguments)
    for got, want in zip(results, function(*arguments), strict=True):
        torch.testing.assert_close(got, want)
    return done


@pytest.mark.parametrize("batch", range(BATCHES))
def test_assertions_stand_where_their_symbols_first_exist(batch, lowered):
    asserted = 0
    for seed in range(batch, PROGRAMS, BATCHES):
        lowered.clear()
        compiled(random_program(seed))
        for module in lowered:
            program = module.lookup("main")
            asserted += sum(isinstance(op, sym.AssertOp) for op in program.regions[0].walk())
            assert not list(late_assertions(program)), f"seed {seed}"
    assert asserted


def test_an_index_is_checked_before_what_does_not_need_it(lowered):
    def function(x, y, lengths):
        place = lengths[0].item()
        torch._check(place >= 0)
        made = x.cumsum(0)
        return [made, made[place] + 1]

    done = compiled(function)
    program = lowered[0].lookup("main")
    assert not list(late_assertions(program))
    (assertion,) = [op for op in program.regions[0].walk()
                    if isinstance(op, sym.AssertOp) and op.error == "IndexError"]  # fmt: skip
    assertion.detach()
    block = program.regions[0].blocks[0]
    block.insert_before(assertion, block.last)
    assert list(late_assertions(program)), "the check finds one that is late"
    with pytest.raises(IndexError, match="out of bounds"):
        done(torch.ones(9), torch.ones(9), torch.tensor([9, 0, 0]))
