"""Cases of rules: small programs of a rule's left side, with random arguments.

A case is drawn by a generator of random numbers of its own, from a seed, so that it can be made
again on smaller arguments: numbers that stand as `Number`, attributes that stand as variables and
types that no operand tells are drawn as their operation has them (`draws`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import torch

from irc.dialects import arith, graph
from irc.dialects.func import FuncOp, ReturnOp
from irc.interp.core import torch_dtype
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import IRCError
from irc.ir.module import ModuleOp
from irc.ir.rewrite.expressions import RESULT, Computed, Expression, NumberVariable, Term, Variable
from irc.ir.rewrite.rules import Rule, attributes_of
from irc.ir.types import ELEMENT_OF_DTYPE, FloatType, IntegerType, TensorType, VectorType, i1
from irc.ir.verifier import verify

DTYPES = (
    "float32", "float64", "bfloat16", "float16", "bool", "int8", "uint8", "int16", "int32", "int64",
)  # fmt: skip
#: Dialects of scalars and vectors; there is no uint8 in them.
SCALAR = ("arith", "math")
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, float("inf"), float("-inf"), float("nan"), 1e-40, -1e-40,
    1.1754943508222875e-38, 3.4028234663852886e38, -3.4028234663852886e38, 65504.0, 1.5, 2.5, -0.5,
)  # fmt: skip
SIZES = (0, 1, 2, 3, 5, 7)

Draw = Callable[[random.Random, Sequence[Value]], tuple[dict[str, Any], Type | None]]
_draws: dict[type[Operation], Draw] = {}


def draws(*op_classes: type[Operation]) -> Callable[[Draw], Draw]:
    """Register `f(generator, operands)`, which gives random attributes of an operation and the
    type of its result (None: it is inferred)."""

    def decorate(function: Draw) -> Draw:
        for cls in op_classes:
            _draws[cls] = function
        return function

    return decorate


@attrs.frozen
class Case:
    """A program whose only function computes a rule's left side, and what its names stand for."""

    module: Any
    bindings: dict[str, Any]


def elements_for(rule: Rule, dtypes: Sequence[str] = DTYPES) -> list[Type]:
    """The element types that the variables of a rule may have."""
    scalar = rule.dialect in SCALAR
    return [ELEMENT_OF_DTYPE[name] for name in dtypes if not (scalar and name == "uint8")]


def values_of(rule: Rule) -> list[str]:
    """The variables of a rule that are arguments of its cases: no numbers, attributes or names."""
    names: dict[str, None] = {}
    for part in _parts(rule.before):
        if isinstance(part, Variable) and not isinstance(part, NumberVariable):
            names[part.name] = None
    return [name for name in rule.variables if name in names]


def _parts(term: Expression) -> Iterator[Expression]:
    yield term
    if isinstance(term, Term):
        for operand in term.operands:
            yield from _parts(operand)


def argument_type(
    rule: Rule, element: Type, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> Type:
    """The type of an argument: a tensor, or a scalar or vector of arithmetic."""
    if rule.dialect not in SCALAR:
        return TensorType(sizes, element, strides)
    return VectorType(tuple(sizes), element) if sizes else element


def make_case(rule: Rule, types: Sequence[Type], seed: int) -> Case | None:
    """The case of these argument types, or None where the left side is not valid on them or the
    rule's condition doesn't hold."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", types, types[:1])
    module.block.append(function)
    builder = Builder.at_end(function.block)
    bound: dict[str, Any] = dict(zip(values_of(rule), function.block.arguments, strict=True))
    try:
        root = _build(rule, rule.before, builder, bound, random.Random(seed))
        builder.create(ReturnOp, [root])
        function.refresh_type()
        verify(module)
    except (IRCError, OverflowError, ValueError):
        return None
    bound[RESULT] = root
    return Case(module, bound) if rule.holds(bound) else None


def _build(
    rule: Rule, term: Term, builder: Builder, bound: dict[str, Any], rng: random.Random
) -> Value:
    """The value of a term, with all that it leaves open drawn."""
    known: list[Value | None] = [
        _build(rule, o, builder, bound, rng) if isinstance(o, Term)
        else bound[o.name] if isinstance(o, Variable) and not isinstance(o, NumberVariable)
        else None
        for o in term.operands
    ]  # fmt: skip
    beside = next((v.type for v in reversed(known) if v is not None), None)
    if beside is None:
        raise ValueError("only numbers")
    operands = []
    for value, part in zip(known, term.operands, strict=True):
        if isinstance(part, NumberVariable) and part.name not in bound:
            bound[part.name] = _number_of(rng, getattr(beside, "element", beside))
        operands.append(value if value is not None else rule.build(part, builder, bound, beside))
    attributes: dict[str, Any] = {}
    type_: Type | None = None
    if term.cls in _draws:
        attributes, type_ = _draws[term.cls](rng, operands)
    for name, part in term.attributes.items():
        if isinstance(part, Variable):
            bound.setdefault(part.name, attributes.get(name))
        assert not isinstance(part, Computed)
    written = attributes_of(term, bound)
    group: Sequence[Any] = [operands] if term.cls.plain_operands is None else operands
    result: Value = builder.value(term.cls, *group, result_types=type_, **written)
    if term.name:
        bound[term.name] = result
    return result


def _number_of(rng: random.Random, element: Type) -> bool | int | float:
    dtype = torch_dtype(element)
    if element is i1:
        return bool(rng.randrange(2))
    if isinstance(element, FloatType):
        return float(torch.tensor(random_float(rng), dtype=torch.float64).to(dtype))
    return random_integer(rng, dtype)


# -- what operations leave open


def _elements(of: Callable[[Type], bool]) -> list[Type]:
    return [e for e in map(ELEMENT_OF_DTYPE.__getitem__, DTYPES) if of(e)]


@draws(graph.Cast)
def _cast(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    type_: Any = operands[0].type
    return {}, type_.with_element(rng.choice(_elements(lambda e: True)))


@draws(arith.ExtFOp, arith.TruncFOp)
def _floats(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    floats = _elements(lambda e: isinstance(e, FloatType))
    return {}, arith.with_element(operands[0].type, rng.choice(floats))


@draws(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
def _integers(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    elements = _elements(lambda e: isinstance(e, IntegerType) and not e.unsigned)
    return {}, arith.with_element(operands[0].type, rng.choice(elements))


@draws(arith.BitcastOp)
def _bits(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    source: Any = arith.element_type(operands[0].type)
    elements = _elements(lambda e: e.width == source.width and not getattr(e, "unsigned", False))  # type: ignore[attr-defined]
    return {}, arith.with_element(operands[0].type, rng.choice(elements))


@draws(graph.Concat)
def _joined(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    type_: Any = operands[0].type
    dim = rng.randrange(type_.rank)  # none of rank 0: a ValueError
    size = sum(o.type.shape[dim] for o in operands)  # type: ignore[attr-defined]
    return {"dim": dim}, graph.replace_size(type_, dim, size)


@draws(graph.Pad)
def _padded(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    type_: Any = operands[0].type
    some = rng.random() < 0.5
    low, high = ([rng.randrange(3) * some for _ in type_.shape] for _ in range(2))
    shape = [a + s + b for a, s, b in zip(low, type_.shape, high, strict=True)]
    number = graph.scalar_attribute(_number_of(rng, type_.element), type_.element)
    return {"low": low, "high": high, "value": number}, type_.with_shape(shape)


@draws(graph.Slice)
def _slice(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    type_: Any = operands[0].type
    dim = rng.randrange(type_.rank)  # none of rank 0: a ValueError
    whole = rng.random() < 0.5
    start = 0 if whole else rng.randrange(type_.shape[dim] + 1)
    size = type_.shape[dim] - start
    return {"dim": dim, "start": start, "step": 1}, graph.replace_size(type_, dim, size)


@draws(graph.Reduce)
def _reduced(rng: random.Random, operands: Sequence[Value]) -> tuple[dict[str, Any], Type | None]:
    """Of no dimensions: what rules leave open is the rest."""
    combiner = rng.choice(("sum", "prod", "min", "max", "any", "all", "xor"))
    return {"combiner": combiner, "keepdim": rng.random() < 0.5}, operands[0].type


# -- arguments


def random_argument(rng: random.Random, element: Type, sizes: Sequence[int]) -> torch.Tensor:
    """Random and special values, with the dimensions in a random order in memory."""
    dtype = torch_dtype(element)
    order = rng.sample(range(len(sizes)), len(sizes))
    count = math.prod(sizes)
    if dtype.is_floating_point:
        numbers = [random_float(rng) for _ in range(count)]
        values = torch.tensor(numbers, dtype=torch.float64).to(dtype)
    else:
        values = torch.tensor([random_integer(rng, dtype) for _ in range(count)], dtype=dtype)
    inverse = [order.index(d) for d in range(len(sizes))]
    return values.reshape([sizes[d] for d in order]).permute(inverse)


def random_float(rng: random.Random) -> float:
    """A special number, or one near 0."""
    return rng.choice(FLOATS) if rng.random() < 0.5 else rng.gauss(0, 4)


def random_integer(rng: random.Random, dtype: torch.dtype) -> int:
    """One of the ends of a type, or near 0."""
    if dtype is torch.bool:
        return rng.randrange(2)
    limits = torch.iinfo(dtype)
    extremes = (limits.min, limits.max, limits.min + 1, 0, 1, 2, max(-1, limits.min))
    if rng.random() < 0.5:
        return rng.choice(extremes)
    return max(limits.min, min(limits.max, rng.randint(-9, 9)))


__all__ = [
    "Case", "argument_type", "draws", "elements_for", "make_case", "random_argument", "values_of",
]  # fmt: skip
