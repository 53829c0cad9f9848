"""Random programs that hold at any size, and calls of them: sizes, strides and offsets change from
call to call.

A program is drawn with all of its calls at once: a line is kept if eager mode runs it in each.
Elements are small integers, so that most results are exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import attrs
import torch
from hypothesis import assume
from hypothesis import strategies as st

from tests.fuzz import harness
from tests.fuzz.programs import ERRORS, last_place

Draw = Callable[[Any], Any]
SIZES = (1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17)
DTYPES = ("float32", "float32", "float32", "float64", "int64", "bool")
CALLS = 5
#: What a shape may be, as the sizes n and m of a call.
SHAPES = ((), ("n",), ("n",), ("m",), ("n", "m"), ("n", "m"), ("m", "n"), ("n", "n"), ("n", 3),
          (1, "n"), (2, "n", "m"))  # fmt: skip


@attrs.frozen
class Layout:
    """How an argument lies in memory: the order of its dimensions, gaps, where it begins."""

    order: tuple[int, ...]
    gap: int
    step: int
    offset: int


@attrs.frozen
class Call:
    """The sizes of a call, and the layout of each argument."""

    sizes: tuple[int, int]
    layouts: tuple[Layout, ...]


@attrs.frozen
class CalledProgram:
    """A program and its calls."""

    dtypes: tuple[str, ...]
    shapes: tuple[tuple[Any, ...], ...]
    lines: tuple[str, ...]
    returned: tuple[str, ...]
    calls: tuple[Call, ...]

    def source(self) -> str:
        """The function `program` as Python text."""
        names = ", ".join(f"a{k}" for k in range(len(self.shapes)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def program({names}):\n{body}    return ({', '.join(self.returned)},)\n"

    def function(self) -> Callable[..., Any]:
        """The function, compiled from the text that this file made."""
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(self.source(), "<program>", "exec"), names)
        function: Callable[..., Any] = names["program"]
        return function

    def inputs(self, number: int) -> list[torch.Tensor]:
        """New arguments of a call."""
        call = self.calls[number]
        return [
            laid_out(concrete(shape, call.sizes), dtype, layout)
            for shape, dtype, layout in zip(self.shapes, self.dtypes, call.layouts, strict=True)
        ]

    def __repr__(self) -> str:
        calls = "".join(f"    {call!r}\n" for call in self.calls)
        return f"\n{self.dtypes} {self.shapes}\n{self.source()}{calls}"


def concrete(shape: tuple[Any, ...], sizes: tuple[int, int]) -> tuple[int, ...]:
    """A shape in a call."""
    known = {"n": sizes[0], "m": sizes[1]}
    return tuple(known.get(s, s) for s in shape)


def laid_out(size: tuple[int, ...], dtype: str, layout: Layout) -> torch.Tensor:
    """A tensor of small integers in memory of its own, of which it may be a part."""
    stride = [0] * len(size)
    reach = layout.step
    for dim in layout.order:
        stride[dim] = reach
        reach *= size[dim] + layout.gap
    length = layout.offset + last_place(size, stride) + 3
    numbers = torch.arange(length) * 7 % 11 - 4
    kind = getattr(torch, dtype)
    content = (numbers % 2 if kind is torch.bool else numbers).to(kind)
    return content.as_strided(size, stride, layout.offset)


# -- lines, {a} and {b} are variables, {d} a dimension of a

READS = (
    "{a}[1:]", "{a}[:-1]", "{a}[..., ::2]", "{a}[0]", "{a}[-1:]", "{a}.flatten()", "{a}.t()",
    "{a}.transpose(0, -1)", "{a}.unsqueeze(0)", "{a}.unsqueeze(-1)", "{a}.squeeze()", "{a}.mT",
    "{a}[: {a}.shape[0] // 2]", "{a}[{a}.shape[0] // 2 :]", "{a}.reshape(-1)", "{a}.contiguous()",
    "{a}.view({a}.shape[0], -1)", "{a}.reshape({a}.shape[-1], -1)", "{a}.unfold(0, 2, 1)",
    "{a}.diagonal()", "{a}.expand(2, *{a}.shape)", "{a}.narrow({d}, 0, 1)", "{a}.detach()",
    "{a}.split(2)[-1]", "{a}.chunk(2, {d})[0]", "{a}.select({d}, -1)", "{a}.movedim(0, -1)",
)  # fmt: skip
FRESH = (
    "{a} + {b}", "{a} * {b}", "{a} - 1", "{a} * {a}.shape[0]", "{a}.clone()", "{a}.float() / 2",
    "{a}.sum({d})", "{a}.sum({d}, keepdim=True)", "{a}.sum()", "{a}.amax({d})", "{a}.cumsum({d})",
    "torch.cat([{a}, {a}], {d})", "torch.cat([{a}.reshape(-1), {b}.reshape(-1)])", "{a}.flip({d})",
    "{a}.roll(1, {d})", "torch.where({a} > 0, {a}, {b})", "{a} == {b}", "{a}.float() @ {b}.float()",
    "F.pad({a}, (1, 2))", "{a}.argmax({d})", "{a}.sort({d})[0]", "{a}.float().mean({d})",
    "{a}.index_select(0, torch.tensor([0, -1]) % {a}.shape[0])", "{a}.repeat(2, *[1] * {a}.dim())",
    "torch.zeros({a}.shape[0], 2) + {a}.shape[-1]", "torch.arange({a}.shape[0])", "{a}.tril()",
    "torch.ones_like({a}).cumsum({d}) + {b}", "torch.full(({a}.numel(),), 2.0)", "{a}.clone()[1:]",
    "{a}.clone().fill_diagonal_(5)", "{a}.contiguous().as_strided(({a}.shape[0],), (1,), 0)",
    "{a}.clone().as_strided(({a}.numel() // 2,), (2,), 0)", "F.relu({a})", "{a}.gather({d}, "
    "torch.zeros_like({a}, dtype=torch.int64))", "torch.softmax({a}.float(), {d}).sum({d})",
    "F.avg_pool1d({a}.float().reshape(1, 1, -1), 2, 1, 1)", "{a}.clone().copy_(7)",
)  # fmt: skip
WRITES = (
    "{a}.add_(1)", "{a}.mul_({b})", "{a}[1:] += 1", "{a}[0] = 2", "{a}[..., -1] = {a}[..., 0]",
    "{a}.copy_({b})", "{a}.copy_(3)", "{a}.zero_()", "{a}[:: 2] = 1", "{a}.fill_diagonal_(4)",
    "{a}.view(-1)[: {a}.numel() // 2] = 0", "{a}.t().add_(1)", "{a}.relu_()",
    "{a}.masked_fill_({a} > 1, 0)", "{a}.index_fill_({d}, torch.tensor([0]), 9)",
    "{a}.diagonal().fill_(3)", "{a}.clamp_(max=2)", "{a}[: {a}.shape[0] // 2].add_(2)",
)  # fmt: skip
MAX_ELEMENTS = 4_000


class CallsWriter:
    """The lines drawn so far, and the variables in each call."""

    def __init__(self, draw: Draw, program: CalledProgram) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.scopes: list[dict[str, Any]] = []
        for number in range(len(program.calls)):
            given = {f"a{k}": t for k, t in enumerate(program.inputs(number))}
            self.scopes.append({"torch": torch, "F": torch.nn.functional, **given})
        self.names = [f"a{k}" for k in range(len(program.shapes))]

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.draw(st.sampled_from(choices))

    def add(self, template: str, is_value: bool) -> bool:
        """Append a line, if eager mode runs it in each call."""
        a = self.pick(*self.names, *self.names[-3:])
        rank = self.scopes[0][a].dim()
        d = self.draw(st.integers(0, max(rank - 1, 0)))
        text = template.format(a=a, b=self.pick(*self.names), d=d)
        name = f"v{len(self.lines)}"
        line = f"{name} = {text}" if is_value else text
        code = compile(line, "<line>", "exec")
        if not all(self.runs(code, scope, name) for scope in self.scopes):
            return False
        for scope in self.scopes:
            exec(code, scope)
        self.lines.append(line)
        if is_value:
            self.names.append(name)
        return True

    def runs(self, code: Any, scope: dict[str, Any], name: str) -> bool:
        """Whether eager mode runs a line, tried on copies, and what it makes is small."""
        held = {k: v for k, v in scope.items() if isinstance(v, torch.Tensor)}
        copies = dict(zip(held, harness.clones(list(held.values())), strict=True))
        trial = {**scope, **copies}
        try:
            exec(code, trial)
        except ERRORS:
            return False
        made = trial.get(name)
        return not isinstance(made, torch.Tensor) or made.numel() <= MAX_ELEMENTS


@st.composite
def layouts(draw: Draw, rank: int) -> Layout:
    """Dense, in another order, with gaps, or from another place on."""
    order = draw(st.permutations(range(rank))) if draw(st.booleans()) else [*range(rank)][::-1]
    gap, step = draw(st.sampled_from([(0, 1), (0, 1), (0, 1), (2, 1), (0, 2)]))
    return Layout(tuple(order), gap, step, draw(st.sampled_from([0, 0, 0, 1, 5, 8])))


@st.composite
def called_programs(draw: Draw, calls: int = CALLS) -> CalledProgram:
    """A program of 2 to 7 lines and its calls. Half of the programs have one layout for all."""
    count = draw(st.integers(1, 2))
    shapes = tuple(draw(st.sampled_from(SHAPES)) for _ in range(count))
    dtypes = tuple(draw(st.sampled_from(DTYPES)) for _ in range(count))
    fixed = tuple(draw(layouts(len(s))) for s in shapes) if draw(st.booleans()) else None
    made = []
    for _ in range(calls):
        sizes = draw(st.sampled_from(SIZES)), draw(st.sampled_from(SIZES))
        made.append(Call(sizes, fixed or tuple(draw(layouts(len(s))) for s in shapes)))
    program = CalledProgram(dtypes, shapes, (), (), tuple(made))
    writer = CallsWriter(draw, program)
    wanted = draw(st.integers(2, 7))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2 * wanted):
            if len(writer.lines) == wanted:
                break
            kind = draw(st.integers(0, 9))
            choices = READS if kind < 4 else FRESH if kind < 7 else WRITES
            writer.add(writer.pick(*choices), kind < 7)
    assume(writer.lines)
    names = writer.names
    returned = draw(st.lists(st.sampled_from([*names, *names[-3:]]), min_size=1, max_size=3))
    return attrs.evolve(program, lines=tuple(writer.lines), returned=tuple(dict.fromkeys(returned)))
