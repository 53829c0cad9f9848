"""Values for the symbols of a function's arguments that respect its ranges and relations."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irc.dialects.sym.facts import FunctionFacts, Relation, dims_of, facts_of
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.symbols import HOLDS, Dim, Expr, evaluate, free_symbols
from irc.ir.types import TensorType

# Sizes that are tried: odd ones and powers of two first, then all small ones, then multiples.
PREFERRED = (5, 3, 7, 2, 9, 4, 6, 13, 8, 17, 1, 0)
EVERY = tuple(range(0, 73)) + tuple(range(80, 520, 8))
MAX_STEPS = 20_000


def assignments(
    function: Operation, fixed: Mapping[str, int] | None = None, seed: int = 0
) -> Iterator[dict[str, int]]:
    """Different values of the symbols of the arguments, without end unless there are none left.

    The first is near the hints, the second gives each symbol another value where it can, the
    rest are random. Each respects the ranges and relations of `facts_of(function)` that mention
    arguments only, and gives every size in a type at least 0. A function without symbols has one
    empty assignment. `fixed` values are kept as they are.
    """
    search = _Search(function, dict(fixed or {}))
    chosen: list[dict[str, int]] = []
    generator = random.Random(seed)
    misses = 0
    for attempt in range(1 << 30):
        env = search.solve(search.candidates(attempt, generator, chosen))
        if env is None and attempt == 0:
            return
        if env is None or env in chosen:
            misses += 1
            if misses == 12:
                return
            continue
        chosen.append(env)
        yield env
        if not search.names:
            return


def smaller(function: Operation, than: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Assignments of ever larger values, whose sum is below that of `than`."""
    search = _Search(function, {})
    limit = sum(than.values())
    seen: list[dict[str, int]] = []
    for start in (0, 1, 2, 3, 4, 6, 8):
        order = [n for n in EVERY if n >= start]
        env = search.solve({name: order for name in search.names})
        if env is not None and env not in seen and sum(env.values()) < limit:
            seen.append(env)
            yield env


def argument_strides(function: Operation, position: int) -> Sequence[Dim] | None:
    """The strides of an argument: those of its type, else those recorded for it."""
    type_ = function.regions[0].blocks[0].arguments[position].type
    if isinstance(type_, TensorType) and type_.strides is not None:
        return type_.strides
    entry = argument_entry(function, position, "strides")
    return tuple(entry) if isinstance(entry, A.DimsAttr) else None  # type: ignore[arg-type]


def argument_entry(function: Operation, position: int, name: str) -> Any:
    """An entry of the dictionary that `arg_info` has for an argument; None without one."""
    info = function.attributes.get("arg_info")
    if not isinstance(info, A.ArrayAttr) or position >= len(info):
        return None
    entry = info[position]
    return entry.get(name) if isinstance(entry, A.DictAttr) else None


class _Search:
    """Depth-first search over the symbols of the arguments, in the order of their binders."""

    def __init__(self, function: Operation, fixed: dict[str, int]) -> None:
        self.function = function
        self.fixed = fixed
        self.facts: FunctionFacts = facts_of(function)
        known = self.facts.symbols
        outside = [name for name, s in known.items() if s.kind != "data"]
        outside += [name for name in _mentioned(function) if name not in outside]
        strides = [n for n in outside if n in known and known[n].kind == "stride"]
        self.names = [*(n for n in outside if n not in strides), *strides]
        self.strides = frozenset(strides)
        inside = frozenset(self.names)
        self.relations = [r for r in self.facts.relations if r.symbols <= inside and r.symbols]
        self.sizes = [d for d in dict.fromkeys(dims_of(function)) if d.symbols <= inside]
        self.steps = 0

    def candidates(
        self, attempt: int, generator: random.Random, chosen: Sequence[Mapping[str, int]]
    ) -> dict[str, Sequence[int]]:
        """For each symbol the values to try, the best first."""
        lists: dict[str, Sequence[int]] = {}
        for number, name in enumerate(self.names):
            known = self.facts.symbols.get(name)
            hint = None if known is None else known.hint
            first = list(PREFERRED[number % 3 :]) + list(PREFERRED[: number % 3])
            if attempt == 0 and hint is not None:
                first.insert(0, hint)
            elif attempt > 1:
                generator.shuffle(first)
            if attempt == 1 and chosen:
                first = [v for v in first if v != chosen[0][name]]
            low = None if known is None else known.range.lo
            near = [] if low is None or low < 72 else [low + k for k in (0, 1, 3, 8, 64)]
            lists[name] = list(dict.fromkeys([*first, *near, *EVERY, *(-v for v in (1, 2, 5))]))
        return lists

    def solve(self, candidates: Mapping[str, Sequence[int]]) -> dict[str, int] | None:
        """The first assignment that respects every fact; None when none was found."""
        self.steps = 0
        env: dict[str, int] = {}
        return dict(env) if self._extend(0, env, candidates) else None

    def _extend(
        self, number: int, env: dict[str, int], candidates: Mapping[str, Sequence[int]]
    ) -> bool:
        if number == len(self.names):
            return True
        name = self.names[number]
        for value in self._values(name, env, candidates[name]):
            self.steps += 1
            if self.steps > MAX_STEPS:
                return False
            env[name] = value
            if self._allowed(name, env) and self._extend(number + 1, env, candidates):
                return True
        env.pop(name, None)
        return False

    def _values(
        self, name: str, env: dict[str, int], candidates: Sequence[int]
    ) -> Iterator[int]:
        if name in self.fixed:
            yield self.fixed[name]
            return
        if name in self.strides:
            dense = self._dense_stride(name, env)
            if dense is not None:
                yield from (dense, dense + 3, dense + 8)
        for relation in self.relations:
            solution = _solution(relation, name, env)
            if solution is not None:
                yield solution
                return
        known = self.facts.symbols.get(name)
        for value in candidates:
            if known is None or (value in known.range and value % known.divisor == 0):
                if known is not None or value >= 0:
                    yield value

    def _allowed(self, name: str, env: Mapping[str, int]) -> bool:
        known = self.facts.symbols.get(name)
        if known is not None and env[name] not in known.range:
            return False
        for relation in self.relations:
            if name in relation.symbols and relation.symbols <= env.keys():
                if not holds(relation, env):
                    return False
        return all(
            _value(size, env) >= 0
            for size in self.sizes
            if name in size.symbols and size.symbols <= env.keys()
        )

    def _dense_stride(self, name: str, env: Mapping[str, int]) -> int | None:
        """The least stride bound to `name` at which its argument does not overlap itself."""
        binder = self.facts.symbols[name].binder
        source = binder.operands[0]
        arguments = self.function.regions[0].blocks[0].arguments
        if source not in arguments:
            return None
        position = arguments.index(source)
        strides = argument_strides(self.function, position)
        if strides is None:
            return None
        reach = 1
        sizes: Sequence[Dim] = getattr(source.type, "shape", ())
        for size, stride in zip(sizes, strides, strict=True):
            if free_symbols(stride) <= env.keys() and free_symbols(size) <= env.keys():
                reach = max(reach, _value(size, env) * abs(_value(stride, env)))
        return reach


def _mentioned(function: Operation) -> Iterator[str]:
    """The symbols in the types and strides of the arguments, in order."""
    seen: dict[str, None] = {}
    for position, argument in enumerate(function.regions[0].blocks[0].arguments):
        sizes = getattr(argument.type, "shape", ())
        for dim in (*sizes, *(argument_strides(function, position) or ())):
            seen.update(dict.fromkeys(sorted(free_symbols(dim))))
    yield from seen


def _value(dim: Dim, env: Mapping[str, int]) -> int:
    """The value of an expression; -1 where it has none (a division by zero)."""
    try:
        return evaluate(dim, env)
    except (ArithmeticError, ValueError):
        return -1


def holds(relation: Relation, env: Mapping[str, int]) -> bool:
    """Whether a relation is true of these values; false where it has no value."""
    try:
        return bool(
            HOLDS[relation.relation](evaluate(relation.lhs, env), evaluate(relation.rhs, env))
        )
    except (ArithmeticError, ValueError):
        return False


def _solution(relation: Relation, name: str, env: Mapping[str, int]) -> int | None:
    """The value that an equality leaves to its last symbol, where it is linear in it."""
    if relation.relation != "eq" or name not in relation.symbols:
        return None
    if not relation.symbols - {name} <= env.keys():
        return None
    gap = relation.lhs - relation.rhs
    at = [_value(gap, {**env, name: value}) for value in (1, 2, 3)]
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope or (slope - at[0]) % slope:
        return None
    return (slope - at[0]) // slope


def volume(function: Operation, env: Mapping[str, int]) -> int:
    """The elements of all tensors that the function's types mention, where `env` tells."""
    total = 0
    for op in function.walk():
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
        for value in values:
            shape = getattr(value.type, "shape", None)
            if shape is not None and all(_known(d, env) for d in shape):
                total += math.prod(max(0, _value(d, env)) for d in shape)
    return total


def _known(dim: Dim, env: Mapping[str, int]) -> bool:
    return not isinstance(dim, Expr) or dim.symbols <= env.keys()
