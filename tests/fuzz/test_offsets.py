"""Functions that depend on where an argument begins and how it lies: sliced, strided, transposed,
of one element or rank 0. A program compiled for one beginning is called with others, too: it gives
what eager gives or says that it can't."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st  # noqa: E402

import irc  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from tests.backends import needs_backend  # noqa: E402
from tests.fuzz.harness import Outcome, compiled, fuzz, observe, same  # noqa: E402

pytestmark = needs_backend
Draw = Any

#: x is the argument; `s` stands for the arguments of an as_strided within the memory that holds.
FUNCTIONS = {
    "copy, read": "{c}.as_strided({s}) + 1",
    "copy, write": "write({c}, {s}, 99)",
    "copy, write a copy": "write({c}, {s}, {c}.flatten()[:1].sum())",
    "copy, diagonal": "{c}.fill_diagonal_(99)",
    "copy, number": "{c}.copy_(7)",
    "copy, part": "part({c})",
    "copy of a part": "x[..., :1].{k}",
    "argument, read": "x.as_strided({a}) * 1",
    "argument, write": "write(x, {a}, 99)",
    "argument, diagonal": "x.fill_diagonal_(99) * 1",
    "argument, part": "part(x)",
    "argument, number": "x.copy_(7)",
    "argument, a view's": "x[..., :1].as_strided({a}) * 1",
    "argument, returned": "x.as_strided({a})",
    "argument, a view of all": "x.view(-1)[1:] if x.is_contiguous() else x.t()",
    "argument, written and returned": "(x.add_(1), x[..., 1:])[1]",
    "sum": "{c}.sum(-1) if x.dim() else x * 1",
}  # fmt: skip
COPIES = ("clone()", "contiguous()", "add(0)", "neg()", "to(torch.float64)", "clone().neg_()",
          "clone(memory_format=torch.contiguous_format)", "flip(())", "abs_()")  # fmt: skip


@attrs.frozen
class Place:
    """Sizes and strides of an argument, where it begins, and where it begins in other calls."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offsets: tuple[int, ...]
    length: int

    def tensor(self, call: int) -> torch.Tensor:
        """The argument of a call."""
        memory = torch.arange(float(self.length)) * 7 % 31 - 9
        return memory.as_strided(self.size, self.stride, self.offsets[call])


@attrs.frozen
class Case:
    """An expression of `x`, and x."""

    text: str
    place: Place

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The expression, from the text that this file made."""
        names = {"torch": torch, "write": write, "part": part, "x": x}
        return eval(self.text, names)  # type: ignore[no-any-return]


def write(x: torch.Tensor, size: Any, stride: Any, offset: Any, number: Any) -> torch.Tensor:
    """Fill a window of x; gives x."""
    x.as_strided(size, stride, offset).fill_(number)
    return x


def part(x: torch.Tensor) -> torch.Tensor:
    """Write a part of x; gives x times one."""
    x[..., -1:] = 5
    return x * 1


@st.composite
def cases(draw: Draw) -> Case:
    """A place: a part of up to three dimensions of something larger; a function."""
    whole = draw(st.lists(st.integers(1, 6), max_size=3))
    stride, reach = [], 1
    for n in reversed(whole):
        stride.insert(0, reach)
        reach *= n
    size, offset = [], 0
    for n, t in zip(whole, stride, strict=True):
        first = draw(st.integers(0, n - 1))
        offset += first * t
        size.append(draw(st.sampled_from([1, n - first, n - first])))
    steps = [draw(st.sampled_from([1, 1, 1, 2])) for _ in size]
    stride = [t * k for t, k in zip(stride, steps, strict=True)]
    size = [-(-n // k) for n, k in zip(size, steps, strict=True)]
    order = draw(st.permutations(range(len(size)))) if draw(st.booleans()) else range(len(size))
    size, stride = [size[k] for k in order], [stride[k] for k in order]
    offset = draw(st.sampled_from([offset, offset, 0, 7]))
    span = sum((n - 1) * t for n, t in zip(size, stride, strict=True)) + 1
    offsets = (offset, *draw(st.lists(st.integers(0, 12), max_size=2)))
    place = Place(tuple(size), tuple(stride), offsets, max(offsets) + span + 12)
    template = FUNCTIONS[draw(st.sampled_from([*FUNCTIONS]))]
    kind = draw(st.sampled_from(COPIES))
    count = place.tensor(0).numel()
    text = template.format(
        c=f"x.{kind}", k=kind, s=draw(windows(count)), a=draw(windows(min(offsets) + span))
    )
    return Case(text, place)


@st.composite
def windows(draw: Draw, length: int) -> str:
    """Arguments of as_strided within so many elements, without overlap."""
    begin = draw(st.integers(0, length - 1))
    left = length - begin
    inner = draw(st.integers(1, min(left, 4)))
    outer = draw(st.integers(1, min(left // inner, 3)))
    gap = draw(st.integers(0, 2))
    stride = inner + gap if (outer - 1) * (inner + gap) + inner <= left else inner
    size, strides = ((inner,), (1,)) if outer == 1 else ((outer, inner), (stride, 1))
    return f"{size}, {strides}, {begin}"


@fuzz("offsets", cases(), quick=40, total=5_000, batch=100, every=10)
def test_offsets(case: Case, compile_it: bool) -> None:
    check_offsets(case, compile_it)


def check_offsets(case: Case, compile_it: bool = True) -> None:
    """Eager's outcome for each beginning, of one program; if wanted through torch.compile."""
    calls = range(len(case.place.offsets))
    try:
        expected = [observe(case, (case.place.tensor(k),)) for k in calls]
    except (RuntimeError, IndexError):
        return  # eager refuses it: no diagonal, no such window
    failure = compiled_once(case, expected)
    if failure is None and compile_it:
        failure = recompiled(case, expected, "irc")
    if failure is not None and recompiled(case, expected, "aot_eager") is None:
        raise failure  # AOTAutograd alone is right


def compiled_once(case: Case, expected: list[Outcome]) -> Exception | None:
    """What a program that was compiled for the first beginning does otherwise than eager."""
    try:
        program = irc.compile(case, (case.place.tensor(0),))
        for k, outcome in enumerate(expected):
            try:
                got = observe(program, (case.place.tensor(k),))
            except UserError:
                if k == 0:
                    raise
                continue  # it says that it was made for another beginning
            same(outcome, got, what=f"call {k}", strides=False, sharing=False)
    except Exception as error:
        return error
    return None


def recompiled(case: Case, expected: list[Outcome], backend: str) -> Exception | None:
    """What torch.compile does otherwise than eager, with a program for each beginning."""
    for k, outcome in enumerate(expected):
        arguments = (case.place.tensor(k),)
        try:
            same(outcome, compiled(case, arguments, backend), what=backend, exact=False)
        except Exception as error:
            return error
    return None
