"""Running rules on random values: does what stands instead give what stood there?

For a rule, every combination of element types on which its left side is valid is found first. Each
case is then a small function of that side, with arguments of random rank (0 to 4), sizes (empty and
odd ones), strides and special values; the rule is applied to it by the driver, as `canonicalize`
would, and both functions are interpreted on the same arguments. "bits" asks for equal elements, the
sign of zero included (any NaN is NaN); "real" for equal numbers in f64.

    failure = check_rule(double_negation, cases=200)
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch

from irc.dialects.func import FuncOp, ReturnOp
from irc.interp import run
from irc.interp.core import torch_dtype
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.diagnostics import IRCError
from irc.ir.module import ModuleOp
from irc.ir.rewrite.driver import apply_patterns_greedily
from irc.ir.rewrite.rules import Rule
from irc.ir.text.printer import print_op
from irc.ir.types import ELEMENT_OF_DTYPE, TensorType
from irc.ir.verifier import verify

DTYPES = (
    "float32", "float64", "bfloat16", "float16", "bool", "int8", "uint8", "int16", "int32", "int64",
)  # fmt: skip
SIZES = (0, 1, 2, 3, 5, 7)
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, float("inf"), float("-inf"), float("nan"), 1e-40, -1e-40,
    1.1754943508222875e-38, 3.4028234663852886e38, -3.4028234663852886e38, 65504.0, 1.5, 2.5, -0.5,
)  # fmt: skip
REAL_TOLERANCE = 1e-10


@attrs.frozen
class Failure:
    """A case in which a rule is wrong: its arguments, both results, and the program."""

    rule: Rule
    arguments: tuple[torch.Tensor, ...]
    before: Any
    after: Any
    program: str
    message: str = ""

    def __str__(self) -> str:
        lines = [f"rule '{self.rule.name}' is wrong: {self.rule.equation}"]
        for name, value in zip(self.rule.variables, self.arguments):
            kind = str(value.dtype).removeprefix("torch.")
            lines.append(f"  {name} = {value.tolist()} ({kind} of sizes {list(value.shape)})")
        if self.message:
            lines.append(f"  {self.message}")
        else:
            lines.append(f"  before: {self.before.tolist()}, after: {self.after.tolist()}")
        return "\n".join([*lines, *("  " + line for line in self.program.splitlines())])


class NotChecked(Exception):
    """Why a rule can't be run: no element types fit it, or it never applied."""


def check_rule(rule: Rule, cases: int = 200, seed: int = 0) -> Failure | None:
    """Run a rule on `cases` random cases; the smallest failure found, or None.

    Raises NotChecked where there is nothing to run.
    """
    fitting = list(element_types(rule))
    if not fitting:
        raise NotChecked(f"rule '{rule.name}': its left side fits no element types")
    generator = random.Random(f"{rule.name} {seed}")
    for number in range(cases):
        elements = fitting[number % len(fitting)]
        rank = generator.randrange(5)
        sizes = tuple(generator.choice(SIZES) for _ in range(rank))
        arguments = [_argument(generator, e, sizes) for e in elements]
        failure = run_case(rule, elements, arguments, generator.random() < 0.5)
        if failure is not None:
            return _smallest(rule, elements, arguments, failure)
    return None


def element_types(rule: Rule, dtypes: Sequence[str] = DTYPES) -> Iterator[tuple[Type, ...]]:
    """The element types of a rule's variables with which its left side is a valid program."""
    kinds = [ELEMENT_OF_DTYPE[name] for name in dtypes]
    for elements in itertools.product(kinds, repeat=len(rule.variables)):
        made = _program(rule, [TensorType((2,), e) for e in elements])
        if made is None:
            continue
        function = made.lookup("main")
        bindings = dict(zip(rule.variables, function.block.arguments))  # type: ignore[union-attr]
        if rule.holds(bindings):
            yield elements


def example(rule: Rule) -> tuple[str, str]:
    """The bodies of a small program with a rule's left side, and of what becomes of it.

    Raises NotChecked where no element types fit."""
    for elements in element_types(rule, ("float32", "int32", "bool")):
        module = _program(rule, [TensorType((4,), e) for e in elements])
        assert module is not None
        for name, argument in zip(rule.variables, module.lookup("main").block.arguments):  # type: ignore[union-attr]
            argument.name_hint = name
        changed: Any = module.clone()
        if _apply(rule, changed):
            return _body(module), _body(changed)
    raise NotChecked(f"rule '{rule.name}': its left side fits no element types")


def _body(module: ModuleOp) -> str:
    """The lines of the only function, without what surrounds them."""
    lines = print_op(module.lookup("main")).splitlines()  # type: ignore[arg-type]
    return "\n".join(line.strip() for line in lines[1:-1])


def run_case(
    rule: Rule, elements: Sequence[Type], arguments: Sequence[torch.Tensor], strided: bool = False
) -> Failure | None:
    """Both sides on these arguments; `strided`: their strides stand in the types."""
    types = [
        TensorType(a.shape, e, a.stride() if strided else None)
        for a, e in zip(arguments, elements)
    ]
    module = _program(rule, types)
    if module is None:
        return None  # results of an operation whose operands' strides differ, say
    text = print_op(module)
    before = _interpret(module, arguments, rule.preserves)
    changed: Any = module.clone()
    try:
        counts = _apply(rule, changed)
        verify(changed)
    except IRCError as error:
        return Failure(rule, tuple(arguments), before, None, text, str(error))
    if not counts and not strided:
        return Failure(rule, tuple(arguments), before, None, text, "it does not apply")
    after = _interpret(changed, arguments, rule.preserves)
    if _equal(before, after, rule.preserves):
        return None
    return Failure(rule, tuple(arguments), before, after, f"{text}// after:\n{print_op(changed)}")


def _apply(rule: Rule, module: Any) -> int:
    counts: Counter[str] = Counter()
    apply_patterns_greedily(module, [rule], fold=False, counts=counts)
    return counts[rule.name]


def _interpret(module: Any, arguments: Sequence[torch.Tensor], preserves: str) -> torch.Tensor:
    real = preserves == "real"
    given = [a.double() if real and a.is_floating_point() else a for a in arguments]
    (result,) = run(module, *given, mode="real" if real else "exact")
    return torch.as_tensor(result)


def _equal(before: torch.Tensor, after: torch.Tensor, preserves: str) -> bool:
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    if not before.is_floating_point():
        return torch.equal(before, after)
    nan = before.isnan()
    if not torch.equal(nan, after.isnan()):
        return False
    a, b = before[~nan], after[~nan]
    if preserves == "bits":
        return torch.equal(a, b) and torch.equal(a.signbit(), b.signbit())
    return torch.allclose(a, b, rtol=REAL_TOLERANCE, atol=REAL_TOLERANCE)


# -- programs


def _program(rule: Rule, types: Sequence[TensorType]) -> ModuleOp | None:
    """The function of a rule's left side, or None where it is not valid on these types."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", types, types[:1])
    module.block.append(function)
    builder = Builder.at_end(function.block)
    bindings = dict(zip(rule.variables, function.block.arguments))
    try:
        builder.create(ReturnOp, [rule.build(rule.before, builder, bindings)])
        function.refresh_type()
        verify(module)
    except (IRCError, OverflowError):
        return None
    return module


# -- arguments


def _argument(generator: random.Random, element: Type, sizes: Sequence[int]) -> torch.Tensor:
    """Random and special values, with the dimensions in a random order in memory."""
    dtype = torch_dtype(element)
    order = generator.sample(range(len(sizes)), len(sizes))
    count = math.prod(sizes)
    dense = torch.tensor([_number(generator, dtype) for _ in range(count)], dtype=torch.float64)
    if dtype.is_floating_point:
        values = dense.to(dtype)
    else:
        values = torch.tensor([_integer(generator, dtype) for _ in range(count)], dtype=dtype)
    inverse = [order.index(d) for d in range(len(sizes))]
    return values.reshape([sizes[d] for d in order]).permute(inverse)


def _number(generator: random.Random, dtype: torch.dtype) -> float:
    return generator.choice(FLOATS) if generator.random() < 0.5 else generator.gauss(0, 4)


def _integer(generator: random.Random, dtype: torch.dtype) -> int:
    if dtype is torch.bool:
        return generator.randrange(2)
    limits = torch.iinfo(dtype)
    extremes = (limits.min, limits.max, limits.min + 1, 0, 1, 2, max(-1, limits.min))
    if generator.random() < 0.5:
        return generator.choice(extremes)
    return max(limits.min, min(limits.max, generator.randint(-9, 9)))


def _smallest(
    rule: Rule, elements: Sequence[Type], arguments: Sequence[torch.Tensor], failure: Failure
) -> Failure:
    """The failure of one element alone, where one fails alone."""
    for place in itertools.product(*map(range, arguments[0].shape)):
        alone = [a[place].clone() for a in arguments]
        found = run_case(rule, elements, alone)
        if found is not None:
            return found
    return failure
