"""Random programs with views and mutations, as Python source that eager mode runs.

A program is drawn line by line while it runs on real tensors: a line that eager mode refuses is
left out, so what is drawn is valid. Elements are small integers in every dtype, so that most
results are exact.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import torch
from hypothesis import assume
from hypothesis import strategies as st

from tests.fuzz import custom_ops, harness

DTYPES = ("float32", "float64", "bfloat16", "int64", "bool")
WEIGHTED = (*DTYPES, "float32", "float32", "int64")
SIZES = (0, 1, 1, 2, 3, 3, 4)
MAX_ELEMENTS = 200
ERRORS = (RuntimeError, IndexError, TypeError, ValueError, AttributeError)
Draw = Callable[[Any], Any]


@attrs.frozen
class Argument:
    """A tensor argument: a view of storage number `storage`, which has `length` elements."""

    storage: int
    length: int
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def make(self, storages: dict[int, torch.Tensor]) -> torch.Tensor:
        """The tensor; `storages` holds the storages made so far."""
        dtype = getattr(torch, self.dtype)
        if self.storage not in storages:
            numbers = torch.arange(self.length) * 7 % 11 - 4
            storages[self.storage] = (numbers % 2 if dtype is torch.bool else numbers).to(dtype)
        return storages[self.storage].as_strided(self.size, self.stride, self.offset)


@attrs.frozen
class Program:
    """Arguments, the lines of a function's body, and the variables that it returns."""

    arguments: tuple[Argument, ...]
    lines: tuple[str, ...]
    returned: tuple[str, ...]

    def source(self) -> str:
        """The function `program` as Python text."""
        names = ", ".join(f"a{k}" for k in range(len(self.arguments)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def program({names}):\n{body}    return ({', '.join(self.returned)},)\n"

    def function(self) -> Callable[..., Any]:
        """The function, compiled from the text that this file made."""
        names: dict[str, Any] = {"torch": torch, "ops": torch.ops.irc_fuzz}
        exec(compile(self.source(), "<program>", "exec"), names)
        function: Callable[..., Any] = names["program"]
        return function

    def inputs(self) -> list[torch.Tensor]:
        """New argument tensors; those of one storage share it."""
        storages: dict[int, torch.Tensor] = {}
        return [a.make(storages) for a in self.arguments]

    def __repr__(self) -> str:
        given = "".join(f"    {a!r},\n" for a in self.arguments)
        return f"\nArguments:\n{given}{self.source()}"


# -- arguments


@st.composite
def shapes(draw: Draw, rank: int = 4) -> tuple[int, ...]:
    """Up to `rank` small sizes, 0 and 1 among them."""
    size = tuple(draw(st.lists(st.sampled_from(SIZES), max_size=rank)))
    return size if math.prod(size) <= MAX_ELEMENTS else size[:2]


@st.composite
def arguments(draw: Draw) -> tuple[Argument, ...]:
    """One to three arguments: dense in any order of dimensions, or with gaps and an offset, or
    another view of the storage of the one before."""
    made: list[Argument] = []
    for number in range(draw(st.integers(1, 3))):
        before = made[-1] if made else None
        if before is not None and before.length and draw(st.integers(0, 3)) == 0:
            made.append(draw(other_view(before)))
            continue
        size = draw(shapes(3))
        if draw(st.integers(0, 7)) == 0:  # a row, a place or a number of something larger
            size = draw(st.sampled_from([(), (1,), (1, 1), (1, 3)]))
        order = draw(st.permutations(range(len(size))))
        gap, step = draw(st.sampled_from([(0, 1), (0, 1), (1, 1), (0, 2), (9, 1)]))
        stride = [0] * len(size)
        reach = step
        for dim in order:
            stride[dim] = reach
            reach *= max(size[dim], 1) + gap
        offset = draw(st.sampled_from([0, 0, 0, 2, 7]))
        length = offset + last_place(size, stride) + 1 + draw(st.sampled_from([0, 0, 3]))
        dtype = draw(st.sampled_from(WEIGHTED))
        made.append(Argument(number, length, dtype, size, tuple(stride), offset))
    return tuple(made)


def last_place(size: Any, stride: Any) -> int:
    """The position of the last element, from the first one."""
    if 0 in size:
        return -1
    return sum((s - 1) * t for s, t in zip(size, stride, strict=True))


@st.composite
def other_view(draw: Draw, of: Argument) -> Argument:
    """Another view of an argument's storage, of up to two dimensions, without overlap inside."""
    offset = draw(st.integers(0, of.length - 1))
    left = of.length - offset
    inner = draw(st.integers(1, min(left, 4)))
    outer = draw(st.integers(1, min(left // inner, 4)))
    stride = draw(st.sampled_from([inner, max(inner, (left - inner) // max(outer - 1, 1))]))
    size, strides = ((outer, inner), (stride, 1)) if draw(st.booleans()) else ((inner,), (1,))
    return attrs.evolve(of, size=size, stride=strides, offset=offset)


# -- lines


class Writer:
    """The program drawn so far and the tensors that its variables hold."""

    def __init__(self, draw: Draw, given: tuple[Argument, ...]) -> None:
        self.draw = draw
        self.arguments = given
        self.lines: list[str] = []
        storages: dict[int, torch.Tensor] = {}
        self.names: dict[str, Any] = {"torch": torch, "ops": torch.ops.irc_fuzz}
        self.tensors: dict[str, torch.Tensor] = {}
        for number, argument in enumerate(given):
            self.tensors[f"a{number}"] = argument.make(storages)
        self.names.update(self.tensors)

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.draw(st.sampled_from(choices))

    def is_argument(self, name: str) -> bool:
        """Whether a variable is an argument: some views give their source back as it is."""
        return any(t is self.tensors[name] for n, t in self.tensors.items() if n.startswith("a"))

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return self.draw(st.integers(low, high))  # type: ignore[no-any-return]

    def variable(self) -> str:
        """A tensor variable; later ones more often."""
        names = list(self.tensors)
        return self.pick(*names, *names[-3:])  # type: ignore[no-any-return]

    def like(self, name: str) -> str:
        """A variable that `name` can be combined with in place, or a number."""
        shape = self.tensors[name].shape
        fitting = [n for n in self.apart(name) if _spreads(self.tensors[n].shape, shape)]
        return self.pick(*fitting, str(self.number(-2, 3)))  # type: ignore[no-any-return]

    def apart(self, name: str) -> list[str]:
        """The variables that lie elsewhere than `name`, or in the very same places: what reading
        others gives while `name` is written is not defined."""
        mine = self.tensors[name]
        memory = mine.untyped_storage()._cdata
        return [
            n
            for n, t in self.tensors.items()
            if t.untyped_storage()._cdata != memory or _places(t) == _places(mine)
        ]

    def elsewhere(self, name: str) -> list[str]:
        """The variables in other memory than `name`; one that has no elements without any."""
        memory = self.tensors[name].untyped_storage()._cdata
        found = [n for n, t in self.tensors.items() if t.untyped_storage()._cdata != memory]
        return found or ["torch.zeros(0)"]

    def add(self, line: str, results: int = 0) -> bool:
        """Append a line that assigns to `results` new variables, if eager mode runs it."""
        fresh = [f"v{len(self.lines)}_{k}" if results > 1 else f"v{len(self.lines)}"
                 for k in range(results)]  # fmt: skip
        text = f"{', '.join(fresh)} = {line}" if results else line
        code = compile(text, "<line>", "exec")
        if not self.is_valid(code, "out=" in text):
            return False
        exec(code, self.names)
        self.lines.append(text)
        for name in fresh:
            made = self.names[name]
            if isinstance(made, torch.Tensor) and made.numel() <= MAX_ELEMENTS:
                self.tensors[name] = made
        return True

    def is_valid(self, code: Any, is_out: bool) -> bool:
        """Whether eager mode runs a line, tried on copies, and out= keeps its sizes."""
        held = {k: v for k, v in self.names.items() if isinstance(v, torch.Tensor)}
        copies = dict(zip(held, harness.clones(list(held.values())), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(code, {**self.names, **copies})
            except ERRORS:
                return False
        return not is_out or all(copies[k].shape == t.shape for k, t in held.items())


def _places(t: torch.Tensor) -> tuple[Any, ...]:
    return t.shape, t.stride(), t.storage_offset(), t.dtype


def _spreads(shape: torch.Size, target: torch.Size) -> bool:
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    return len(shape) <= len(target) and all(
        a in (1, b) for a, b in zip(padded, target, strict=True)
    )


def factors(w: Writer, count: int) -> list[int]:
    """Sizes of another shape with `count` elements."""
    if count == 0:
        return [0, w.number(0, 3)]
    sizes = [1] if w.number(0, 4) == 0 else []
    while count > 1:
        found = [d for d in range(2, count + 1) if count % d == 0]
        sizes.append(w.pick(*found))
        count //= sizes[-1]
    if sizes and w.number(0, 4) == 0:
        sizes[w.number(0, len(sizes) - 1)] = -1
    return sizes


def subscript(w: Writer, t: torch.Tensor) -> str:
    """Text for basic indexing: numbers, slices with steps, `...` and None."""
    parts = []
    for size in t.shape[: w.number(0, t.dim())]:
        low, high = w.number(-size - 1, size), w.number(0, size + 1)
        parts.append(
            w.pick(f"{max(low, -size)}", f"{low}:", f":{high}", f"{max(low, 0)}:{high}", ":",
                   f"::{w.pick(2, 3)}")
        )  # fmt: skip
    if w.number(0, 5) == 0:
        parts.append("...")
    if w.number(0, 6) == 0:
        parts.append("None")
    return ", ".join(parts) or "..."


def strided(w: Writer, t: torch.Tensor, length: int | None = None) -> str:
    """Arguments of as_strided within the tensor's storage, or within the `length` elements of a
    copy; now and then they overlap."""
    if length is None:
        length = t.untyped_storage().nbytes() // t.element_size()
    offset = w.number(0, max(length - 1, 0))
    left = length - offset
    inner = w.number(0, min(left, 3))
    step = w.pick(1, 1, 2)
    reach = (inner - 1) * step + 1
    if reach < 1 or reach >= left or w.number(0, 2) == 0:
        inner = inner if reach <= left else max(left, 0) and 1
        return f"({inner},), ({step},), {offset}"
    outer = w.number(1, 3)
    stride = w.pick(reach, reach, reach + 1, 1)
    outer = min(outer, (left - reach) // stride + 1)
    return f"({outer}, {inner}), ({stride}, {step}), {offset}"


def view(w: Writer, name: str, t: torch.Tensor) -> tuple[str, int]:
    """A view (or maybe a copy: reshape, contiguous) of variable `name`, and how many results."""
    rank = t.dim()
    d, e = (w.number(-rank, rank - 1) if rank else 0 for _ in range(2))
    size = t.shape[d] if rank else 0
    kind = w.pick(
        "view", "view", "reshape", "permute", "transpose", "index", "index", "index", "select",
        "narrow", "diagonal", "unsqueeze", "squeeze", "expand", "unfold", "as_strided", "split",
        "chunk", "unbind", "tensor_split", "dtype", "same", "flatten", "unflatten", "movedim",
        "contiguous", "real",
    )  # fmt: skip
    if kind in ("view", "reshape"):
        return f"{name}.{kind}({factors(w, t.numel())})", 1
    if kind == "permute":
        return f"{name}.permute({w.draw(st.permutations(range(rank)))})", 1
    if kind == "transpose":
        word = w.pick("transpose", "swapaxes", "swapdims")
        return w.pick(f"{name}.{word}({d}, {e})", f"{name}.t()", f"{name}.mT", f"{name}.T"), 1
    if kind == "index":
        return f"{name}[{subscript(w, t)}]", 1
    if kind == "select":
        return f"{name}.select({d}, {w.number(-size, max(size - 1, 0))})", 1
    if kind == "narrow":
        start = w.number(0, size)
        return f"{name}.narrow({d}, {start}, {w.number(0, size - start)})", 1
    if kind == "diagonal":
        return f"{name}.diagonal({w.number(-2, 2)}, {d}, {e})", 1
    if kind == "unsqueeze":
        return f"{name}.unsqueeze({d})", 1
    if kind == "squeeze":
        return w.pick(f"{name}.squeeze()", f"{name}.squeeze({d})", f"{name}.squeeze(({d}, {e}))"), 1
    if kind == "expand":
        sizes = [w.number(2, 3) if s == 1 else -1 for s in t.shape]
        return f"{name}.expand({w.pick([], [2])} + {sizes})", 1
    if kind == "unfold":
        width = w.number(1, max(size, 1))
        return f"{name}.unfold({d}, {width}, {w.pick(width, 1, 2)})", 1
    if kind == "as_strided":
        return f"{name}.as_strided({strided(w, t)})", 1
    if kind == "split":
        left = w.number(0, size)
        return w.pick((f"{name}.split([{left}, {size - left}], {d})", 2),
                      (f"{name}.split({max(-(-size // 2), 1)}, {d})", 2))  # fmt: skip
    if kind == "chunk":
        return f"{name}.chunk(2, {d})", 2
    if kind == "tensor_split":
        return w.pick((f"{name}.tensor_split(3, {d})", 3),
                      (f"{name}.tensor_split(({w.number(0, size)},), {d})", 2))  # fmt: skip
    if kind == "unbind":
        return f"{name}.unbind({d})", size
    if kind == "dtype":
        choices = {1: ["uint8", "int8"], 2: ["int16", "uint8"], 4: ["int32", "int16"],
                   8: ["int64", "float64", "int32"]}  # fmt: skip
        # Another number than 0 and 1 in the memory of a bool has no meaning.
        others = ["bool"] if t.dtype is torch.bool else choices[t.element_size()]
        return f"{name}.view(torch.{w.pick(*others)})", 1
    if kind == "same":
        return w.pick(
            f"{name}.detach()", f"{name}.view_as({name})", f"torch.ops.aten.alias({name})",
            f"{name}.expand_as({name})", f"{name}.to(torch.float32)",
        ), 1  # fmt: skip
    if kind == "flatten":
        return f"{name}.flatten({d}, {e})", 1
    if kind == "unflatten":
        return f"{name}.unflatten({d}, {factors(w, size)})", 1
    if kind == "movedim":
        return f"{name}.movedim({d}, {e})", 1
    if kind == "real":
        return f"torch.view_as_real(torch.view_as_complex({name}))", 1
    return f"{name}.contiguous()", 1


def mutation(w: Writer, name: str, t: torch.Tensor) -> str:
    """A line that changes variable `name`."""
    other = w.like(name)
    rank = t.dim()
    d = w.number(-rank, rank - 1) if rank else 0
    size = t.shape[d] if rank else 1
    places = [w.number(0, max(size - 1, 0)) for _ in range(w.number(0, 2))]
    index = f"torch.tensor({places}, dtype=torch.int64)"
    kind = w.pick(
        "arith", "arith", "arith", "fill", "fill", "set", "set", "copy", "number", "diagonal",
        "unary", "mask", "index", "index_put", "scatter", "metadata", "out", "out", "custom",
        "custom",
    )  # fmt: skip
    if kind == "arith":
        return f"{name}.{w.pick('add_', 'mul_', 'sub_')}({other})"
    if kind == "fill":
        return f"{name}.{w.pick('zero_()', 'fill_(3)', 'fill_(-1)')}"
    if kind == "set":
        return f"{name}[{subscript(w, t)}] = {w.number(-2, 3)}"
    if kind == "copy":
        return f"{name}.copy_({w.pick(*w.apart(name))})"
    if kind == "number":
        return w.pick(f"{name}.copy_({w.pick('7', '-2', 'True', '2.5')})",
                      f"{name}.copy_(torch.tensor({w.pick('3', 'True', '1.5')}))",
                      f"{name}.fill_(torch.tensor({w.number(-3, 3)}))")  # fmt: skip
    if kind == "diagonal":
        return f"{name}.fill_diagonal_({w.number(-3, 9)}{w.pick('', ', wrap=True')})"
    if kind == "unary":
        return f"{name}.{w.pick('neg_()', 'abs_()', 'clamp_(-2, 2)', 'relu_()', 'logical_not_()')}"
    if kind == "mask":
        return f"{name}.masked_fill_({name} > {w.number(-2, 2)}, {w.number(0, 1)})"
    if kind == "index":
        chosen = f"{name}.index_select({d}, {index})"
        return w.pick(f"{name}.index_fill_({d}, {index}, 1)",
                      f"{name}.index_add_({d}, {index}, {chosen})",
                      f"{name}.index_copy_({d}, {index}, {chosen} + 1)")  # fmt: skip
    if kind == "index_put":
        two = f"torch.tensor(2, dtype={name}.dtype)"
        return w.pick(f"{name}[{index}] = {w.number(-2, 3)}",
                      f"{name}.index_put_(({index},), {two}, True)")  # fmt: skip
    if kind == "scatter":
        return f"{name}.scatter_({d}, torch.zeros({[1] * rank}, dtype=torch.int64), 2)"
    if kind == "metadata" and not w.is_argument(name):  # an argument's is its caller's
        return w.pick(f"{name}.transpose_({d}, {d - 1})", f"{name}.t_()", f"{name}.squeeze_()",
                      f"{name}.squeeze_({d})", f"{name}.unsqueeze_({d})",
                      f"{name}.as_strided_({strided(w, t)})")  # fmt: skip
    if kind == "out":
        source, elsewhere = w.pick(*w.apart(name)), w.pick(*w.elsewhere(name))
        return w.pick(f"torch.add({source}, {other}, out={name})",
                      f"torch.neg({source}, out={name})", f"torch.mul({name}, 2, out={name})",
                      f"torch.sum({elsewhere}, {d}, out={name})",
                      f"torch.cat([{elsewhere}, {elsewhere}], out={name})",
                      f"torch.clamp({source}, -1, 1, out={name})")  # fmt: skip
    other = w.variable()
    return w.pick(f"ops.bump({name}, {w.number(-1, 2)})", f"ops.exchange({name}, {other})",
                  f"ops.each([{name}, {other}], 2)")  # fmt: skip


def fresh(w: Writer, name: str) -> str:
    """A new tensor computed from variables."""
    other = w.like(name)
    t = w.tensors[name]
    if w.number(0, 2) == 0:
        copy = w.pick("clone()", "contiguous()", "clone(memory_format=torch.contiguous_format)",
                      "to(torch.float64)", "flip(())", "add(0)")  # fmt: skip
        reached = strided(w, t, t.numel())
        return w.pick(f"{name}.{copy}", f"{name}.{copy}.as_strided({reached})",
                      f"{name}.{copy}.fill_diagonal_({w.number(-3, 9)})",
                      f"{name}.{copy}.copy_({w.number(-3, 3)})")  # fmt: skip
    return w.pick(  # type: ignore[no-any-return]
        f"{name} + {other}", f"{name} * 2", f"{name}.clone()", f"{name}.sum()",
        f"torch.where({name} > 0, {name}, {other})", f"{name} == {other}",
        f"{name}.to(torch.{w.pick(*DTYPES)})", f"torch.empty_like({name}).fill_(2)",
        f"torch.cat([{name}.flatten(), {name}.reshape(-1)])", f"{name}.clone().contiguous()",
        f"torch.zeros({list(t.shape)})", f"ops.total({name})",
        f"torch.maximum({name}, {name}.flip(()))",
        f"torch.stack([{name} * k for k in range({w.number(2, 60)})], {w.number(-1, 0)})",
        f"torch.cat([{name}.flatten() * k for k in range({w.number(2, 60)})] "
        f"+ [({name} + {other}).ravel()])",
    )  # fmt: skip


@st.composite
def programs(draw: Draw, most: int = 9) -> Program:
    """A program of 3 to `most` lines (fewer where eager mode refuses many), of which at least one
    is a mutation, mostly through views."""
    custom_ops.register()
    w = Writer(draw, draw(arguments()))
    wanted, mutations = draw(st.integers(3, most)), 0
    with torch.no_grad():
        for _ in range(2 * wanted):
            if len(w.lines) == wanted:
                break
            name = w.variable()
            t = w.tensors[name]
            kind = w.number(0, 9)
            if kind < 4:
                w.add(*view(w, name, t))
            elif kind < 8 or (not mutations and len(w.lines) == wanted - 1):
                mutations += w.add(mutation(w, name, t))
            else:
                w.add(fresh(w, name), 1)
    assume(mutations)
    names = list(w.tensors)
    returned = draw(st.lists(st.sampled_from([*names, *names[-4:]]), min_size=1, max_size=4))
    return Program(w.arguments, tuple(w.lines), tuple(dict.fromkeys(returned)))


__all__ = ["Argument", "Program", "arguments", "harness", "programs", "shapes"]
