"""Random reductions with random schedules for a CPU: machine code gives what the interpreter gives
of the loop level, which no schedule reaches.

    python -m tests.fuzz.reductions --count 2000 [--first 0] [--seconds 60]

A reduction has one or two outputs over several axes, of places that windows may leave (where
another number is read), in a group with what follows it; sizes may be symbols, which are called
with several values. Its elements are small numbers whose sums and products are exact in any order,
with zeros of both signs, infinities and NaN among them in some. Of schedules, those that
`form-kernels` refuses are left out. Prints the seeds that differ or fail, and how many were
refused; the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import attrs
import torch

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.pipeline import stages

COMBINERS = ("sum", "sum", "sum", "max", "min", "prod")
DTYPES = {"f32": torch.float32, "f64": torch.float64}
#: Why `form-kernels` leaves out a schedule.
REFUSALS = (
    "can't be written out", "can't have their sums in registers", "only what is combined",
    "is no loop of the compute's own",
)  # fmt: skip
SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 0.0)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 33)


@attrs.frozen
class Axis:
    """An axis: how many points it has, and the symbol that stands for it (empty: none)."""

    name: str
    size: int
    symbol: str = ""

    @property
    def extent(self) -> str:
        """How a text says its extent."""
        return self.symbol or str(self.size)


@attrs.frozen
class RandomReduction:
    """A loop-level text with its schedule, and lists of arguments."""

    text: str
    calls: tuple[tuple[torch.Tensor, ...], ...]
    schedule: str


def typed(shape: Sequence[str], element: str) -> str:
    """A row-major type."""
    strides: list[str] = []
    step = "1"
    for size in reversed(shape):
        strides.insert(0, step)
        step = size if step == "1" else f"{size}*{step}"
        if all(part.isdigit() for part in step.split("*")):
            step = str(math.prod(map(int, step.split("*"))))
    return f"tensor<[{', '.join(shape)}] x {element}, strides [{', '.join(strides)}]>"


class _Maker:
    """Makes the program of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.element = rng.choice(("f32", "f32", "f32", "f64"))
        self.outer = [Axis("n", rng.choice((2, 3, 4)))]
        self.own = [
            Axis(name, rng.choice(SIZES), f"s{k}" if rng.random() < 0.2 else "")
            for k, name in enumerate("pqc"[: rng.randrange(1, 4)])
        ]
        self.red = [
            Axis(name, rng.choice((1, 2, 3, 4, 5, 7)), f"t{k}" if rng.random() < 0.15 else "")
            for k, name in enumerate("rst"[: rng.randrange(1, 4)])
        ]
        self.lines: list[str] = []
        self.shapes: list[list[tuple[str, Axis | int]]] = []
        self.conditions = 0

    def program(self) -> RandomReduction:
        rng = self.rng
        first = self._read("x", [*self.outer, *self.own, *self.red], windows=True)
        used = [a for a in (*self.outer, *self.own, *self.red) if rng.random() < 0.6]
        second = self._read("w", used or self.red, windows=rng.random() < 0.4)
        self.lines.append(f"%m = arith.{rng.choice(('mulf', 'addf', 'subf'))} {first}, {second}"
                          f" : {self.element}")  # fmt: skip
        values = ["%m", first][: rng.randrange(1, 3)]
        combiners = [rng.choice(COMBINERS) for _ in values]
        par = ", ".join(f"{a.name}: {a.extent}" for a in (*self.outer, *self.own))
        red = ", ".join(f"{a.name}: {a.extent}" for a in self.red)
        result = typed([a.extent for a in (*self.outer, *self.own)], self.element)
        place = ", ".join(a.name for a in (*self.outer, *self.own))
        schedule = self._schedule()
        names = [f"%y{k}" for k in range(len(values))]
        reduces = ", ".join(f"reduce({c}, {self.element})" for c in combiners)
        body = "\n      ".join(self.lines)
        types = ", ".join([result] * len(values))
        extra, returned = "", names
        if rng.random() < 0.3:
            map_ = self._map_schedule()
            extra = f"""
    %z = loop.compute par({par}) -> map schedule #loop.schedule<cpu, {map_}> {{
      %a = loop.read %y0[{place}] : {self.element}
      %b = arith.addf %a, %a : {self.element}
      loop.yield %b
    }} : {result}"""
            returned = [*names, "%z"]
        all_types = ", ".join([result] * len(returned))
        outs = ", ".join(f"%o{k}" for k in range(len(returned)))
        signature = ", ".join(
            f"%{name}: {typed([self._extent(d) for _, d in dims], self.element)}"
            for name, dims in zip("xw", self.shapes, strict=True)
        )
        results = all_types if len(returned) == 1 else f"({all_types})"
        text = f"""
func.func @main({signature}) -> {results} attributes {{level = "loop"}} {{
  {self._binders()}
  {outs} = loop.group ({", ".join(f"{a.name}: {a.extent}" for a in self.outer)}) schedule
      #loop.schedule<cpu, collapse = [], outer = ["n"], vector_axis = "", scratch = 65536> {{
    {", ".join(names)} = loop.compute par({par}) red({red}) -> {reduces}
        schedule #loop.schedule<cpu, {schedule}> {{
      {body}
      loop.yield {", ".join(values)}
    }} : {types}{extra}
    loop.yield {", ".join(returned)} : {all_types}
  }} : {all_types}
  return {outs} : {all_types}
}}"""
        return RandomReduction(text, tuple(self._calls(combiners)), schedule)

    # -- what is read

    def _read(self, name: str, axes: Sequence[Axis], windows: bool) -> str:
        """Read at places of these axes: one a dimension, or two as a window."""
        rng = self.rng
        left = list(axes)
        rng.shuffle(left)
        dims: list[tuple[str, Axis | int]] = []
        masks: list[str] = []
        while left:
            axis = left.pop()
            other = next((a for a in left if not a.symbol), None)
            if axis.symbol or not windows or other is None or rng.random() < 0.5:
                dims.append((axis.name, axis if axis.symbol else axis.size))
                continue
            left.remove(other)
            step, apart = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2))
            around = rng.randrange(4) if rng.random() < 0.7 else 0
            expression = f"{axis.name}*{step} + {other.name}*{apart} - {around}"
            whole = (axis.size - 1) * step + (other.size - 1) * apart + 1
            size = whole if not around else max(1, whole - 2 * around + rng.randrange(3))
            if around:
                masks.append(self._inside(expression, size))
            dims.append((expression, size))
        self.shapes.append(dims)
        where = ""
        if masks:
            inside = masks[0]
            for mask in masks[1:]:
                both = self._fresh()
                self.lines.append(f"{both} = arith.andi {inside}, {mask} : i1")
                inside = both
            other_ = self._fresh()
            number = rng.choice(("0.0", "-0.0", "1.0", "-2.0"))
            self.lines.append(f"{other_} = arith.constant {number} : {self.element}")
            where = f" (where {inside} else {other_})"
        value = self._fresh()
        places = ", ".join(expression for expression, _ in dims)
        self.lines.append(f"{value} = loop.read %{name}[{places}]{where} : {self.element}")
        return value

    def _inside(self, expression: str, size: int) -> str:
        place, low, high, c0, c1, both = (self._fresh() for _ in range(6))
        self.lines += [
            f"{place} = loop.index {{expression = #sym<{expression}>}} : index",
            f"{low} = arith.constant 0 : index", f"{high} = arith.constant {size} : index",
            f"{c0} = arith.cmpi sge, {place}, {low} : index",
            f"{c1} = arith.cmpi slt, {place}, {high} : index",
            f"{both} = arith.andi {c0}, {c1} : i1",
        ]  # fmt: skip
        return both

    def _fresh(self) -> str:
        self.conditions += 1
        return f"%v{self.conditions}"

    @staticmethod
    def _extent(dim: Axis | int) -> str:
        return dim.extent if isinstance(dim, Axis) else str(dim)

    def _binders(self) -> str:
        bound: dict[str, str] = {}
        for name, dims in zip("xw", self.shapes, strict=True):
            type_ = typed([self._extent(d) for _, d in dims], self.element)
            for number, (_, dim) in enumerate(dims):
                if isinstance(dim, Axis) and dim.symbol not in bound:
                    bound[dim.symbol] = (
                        f"%{dim.symbol} = sym.bind_size %{name} {{dim = {number} : i64, "
                        f'symbol = "{dim.symbol}"}} : ({type_}) -> index'
                    )
        return "\n  ".join(bound.values())

    # -- schedules

    def _vectors(self, axis: str) -> list[str]:
        rng = self.rng
        if not axis:
            return ['vector_axis = ""']
        return [
            f'vector_axis = "{axis}"', f"lanes = {rng.choice((2, 4, 8, 16))}",
            f"copies = {rng.choice((1, 1, 2, 4))}", f'tail = "{rng.choice(("mask", "peel"))}"',
            f"spans = {rng.choice((1, 2, 3, 5))}",
        ]  # fmt: skip

    def _schedule(self) -> str:
        rng = self.rng
        par, red = ([a.name for a in axes] for axes in (self.own, self.red))
        jams = len(par) > 1 and rng.random() < 0.7
        axis = rng.choice([par[-1]] * 3 + par if jams else ["", *par, *par, *red])
        inner = [a for a in par if a != axis]
        rng.shuffle(inner)
        rng.shuffle(red)
        own = [axis] if axis in par else []
        jammed = inner[-1] if inner else ""
        within = jams and bool(inner) and rng.random() < 0.5
        order = [*own, *inner] if jams and not within else [*inner, *own]
        keys = ["collapse = []", *self._vectors(axis)]
        listed = ", ".join(f'"{name}"' for name in [*order, *red])
        keys.append(f"order = [{listed}]")
        if rng.random() < 0.5:
            some = [a.name for a in (*self.red, *self.own) if rng.random() < 0.5]
            if not jams or rng.random() < 0.8:
                some = [name for name in some if name in red]
            keys.append("written_out = [{}]".format(", ".join(f'"{name}"' for name in some)))
        if jams:
            points = rng.choice((1, 2, 3, 4, 5, 8, 64))
            keys += [f'jam_axis = "{jammed or order[-1]}"', f"jam_points = {points}",
                     f"jam_ahead = {rng.choice((0, 1, 3))}"]  # fmt: skip
        chunks, partial = "", ""
        if not jams and rng.random() < 0.4:
            chunks = f'"{rng.choice(red)} {rng.choice((16, 32, 64))}"'
        if not jams and rng.random() < 0.3:
            partial = f'"{red[-1]}"'
        keys += [f"chunks = [{chunks}]", f"partial = [{partial}]", "streams = false",
                 "compensated = false", "position_bits = 64"]  # fmt: skip
        return ", ".join(keys)

    def _map_schedule(self) -> str:
        axis = self.rng.choice(["", *(a.name for a in self.own)])
        order = ", ".join(f'"{a.name}"' for a in self.own)
        return ", ".join(["collapse = []", *self._vectors(axis), f"order = [{order}]"])

    # -- arguments

    def _calls(self, combiners: Sequence[str]) -> list[tuple[torch.Tensor, ...]]:
        symbols = {a.symbol: a.size for a in (*self.own, *self.red) if a.symbol}
        calls = [self._arguments(symbols, combiners)]
        for name in symbols:
            for size in (0, 1, symbols[name] + 1):
                calls.append(self._arguments({**symbols, name: size}, combiners))
        return calls

    def _arguments(
        self, symbols: dict[str, int], combiners: Sequence[str]
    ) -> tuple[torch.Tensor, ...]:
        numbers = torch.tensor([0.5, 1.0, 2.0, -1.0, -2.0] if "prod" in combiners
                               else [-3.0, -2.0, -1.0, 0.0, -0.0, 1.0, 2.0, 3.0])  # fmt: skip
        has_special = self.rng.random() < 0.3
        arguments = []
        for dims in self.shapes:
            shape = [symbols[d.symbol] if isinstance(d, Axis) else d for _, d in dims]
            places = torch.randint(len(numbers), shape, generator=self.generator)
            values = numbers[places].to(DTYPES[self.element])
            if has_special and values.numel():
                flat = values.view(-1)
                for value in SPECIAL:
                    flat[self.rng.randrange(flat.numel())] = value
            # Of an array without elements the type says other strides than torch's.
            strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
            arguments.append(values if values.numel() else values.as_strided(shape, strides))
        return tuple(arguments)


def random_reduction(seed: int) -> RandomReduction:
    """The program of a seed."""
    return _Maker(seed).program()


def difference(program: RandomReduction) -> str | None:
    """How machine code differs from the interpreter; "" where it doesn't, None where the schedule
    is refused."""
    module = irc.parse(program.text)
    expected = [irc.run(module, *arguments) for arguments in program.calls]
    try:
        PassManager.parse(stages("llvm")["loop-to-kernel"], verify="each").run(module)
    except InvalidIR as error:
        return None if any(reason in str(error) for reason in REFUSALS) else f"InvalidIR: {error}"
    PassManager.parse(stages("llvm")["kernel-to-host"], verify="each").run(module)
    executable = irc.runtime.build(module)
    for arguments, wanted in zip(program.calls, expected, strict=True):
        for number, (ours, exact) in enumerate(zip(executable(*arguments), wanted, strict=True)):
            try:
                torch.testing.assert_close(ours, exact, rtol=2e-5, atol=0, equal_nan=True)
            except AssertionError as error:
                shapes = [tuple(a.shape) for a in arguments]
                return f"result {number} of {shapes}: {' '.join(str(error).split())}"
    return ""


def main(words: list[str] | None = None) -> int:
    """Run programs; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args(words)
    begun, bad, refused, ran = time.monotonic(), 0, 0, 0
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() - begun > options.seconds:
            break
        program = random_reduction(seed)
        ran += 1
        try:
            told: Any = difference(program)
        except Exception as error:  # which is what is looked for
            told = f"{type(error).__name__}: {error}"
        if told is None:
            refused += 1
        elif told:
            bad += 1
            print(f"{seed}: {told[:300]} | {program.schedule}", flush=True)
    print(f"{ran} reductions, {refused} schedules refused, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
