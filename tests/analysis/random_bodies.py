"""Random bodies of integers and floats, of which some ends are known and some are not."""

from __future__ import annotations

import math
import random
from typing import Any

import torch

from tests.passes.loop.texts import parsed


class RandomBody:
    """A random body whose values are all yielded, each as a result of its own.

    values: of each type by name; makers: what makes them. The integer of a float that may be out
    of range is some number: none is chosen but where it is in range.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.types: dict[str, str] = {}
        self.extents = self.rng.randint(1, 5), self.rng.randint(1, 4)

    def add(self, text: str, type_: str, is_chosen: bool = True) -> str:
        name = f"%v{len(self.types)}"
        self.lines.append(f"{name} = {text}")
        self.types[name] = type_
        if is_chosen:
            self.values.setdefault(type_, []).append(name)
        return name

    def any(self, type_: str) -> str:
        """One of the last values of a type, or a new constant."""
        known = self.values.get(type_, [])
        if not known or self.rng.random() < 0.2:
            return self.constant(type_)
        return self.rng.choice(known[-6:])

    def constant(self, type_: str) -> str:
        rng = self.rng
        if type_[0] == "f":
            words = ["0.0", "-0.0", "0.5", "-0.75", "3.0", "48.0", "1.0e8", "1.0e30", "0.1"]
            if type_ == "f32":
                words += ["0x7FC00000", "0x7F800000", "0xFF800000"]
            return self.add(f"arith.constant {rng.choice(words)} : {type_}", type_)
        if type_ == "i1":
            return self.add(f"arith.constant {rng.choice(['true', 'false'])} : i1", type_)
        if type_ == "index":
            return self.add("loop.index {expression = #sym<i0*3 - i1 - 2>} : index", "index")
        large = {"i8": 127, "i32": 2**31 - 1, "i64": 2**63 - 1}[type_]
        whole = rng.choice([rng.randint(-9, 9), rng.randint(-100, 100), large, 1 - large])
        return self.add(f"arith.constant {whole} : {type_}", type_)

    def truth(self) -> str:
        type_ = self.rng.choice(["i8", "i32", "i64", "index", "f32", "f64"])
        if type_[0] == "f":
            words = [first + order for first in "ou" for order in ("lt", "le", "gt", "ge", "eq")]
            name, words = "cmpf", [*words, "ord", "uno", "one", "une"]
        else:
            name, words = "cmpi", ["slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge"]
        left, right = self.any(type_), self.any(type_)
        word = self.rng.choice(words)
        return self.add(f"arith.{name} {word}, {left}, {right} : {type_}", "i1")

    def choice(self) -> None:
        """Of two values by a comparison, often one of them with a constant."""
        rng, type_ = self.rng, self.rng.choice(["i8", "i32", "i64", "index", "f32"])
        condition, yes, no = self.truth(), self.any(type_), self.any(type_)
        if rng.random() < 0.7:
            pair = [yes, self.constant(type_)]
            rng.shuffle(pair)
            words = ["olt", "oge", "ult", "oeq"] if type_ == "f32" else ["slt", "sge", "ne", "sle"]
            name = "cmpf" if type_ == "f32" else "cmpi"
            condition = self.add(
                f"arith.{name} {rng.choice(words)}, {', '.join(pair)} : {type_}", "i1")  # fmt: skip
            if type_ != "f32" and rng.random() < 0.5:
                no = yes
                yes = self.add(f"arith.addi {yes}, {self.constant(type_)} : {type_}", type_)
        if rng.random() < 0.3:
            name = rng.choice(["andi", "ori"])
            condition = self.add(f"arith.{name} {condition}, {self.truth()} : i1", "i1")
        arms = [yes, no]
        rng.shuffle(arms)
        self.add(f"arith.select {condition}, {', '.join(arms)} : {type_}", type_)

    def guarded(self) -> None:
        """The integer of a float where it lies between two numbers."""
        place, to = self.any("f32"), self.rng.choice(["i8", "i32", "i64"])
        low = self.add(f"arith.constant {self.rng.choice(['-3.5', '0.0'])} : f32", "f32")
        high = self.add(f"arith.constant {self.rng.choice(['7.0', '48.0'])} : f32", "f32")
        above = self.add(f"arith.cmpf oge, {place}, {low} : f32", "i1")
        below = self.add(f"arith.cmpf olt, {place}, {high} : f32", "i1")
        both = self.add(f"arith.andi {above}, {below} : i1", "i1")
        whole = self.add(f"arith.fptosi {place} : f32 to {to}", to, is_chosen=False)
        self.add(f"arith.select {both}, {whole}, {self.any(to)} : {to}", to)

    def step(self) -> None:
        rng = self.rng
        whole, part = rng.choice(["i8", "i32", "i64", "index"]), rng.choice(["f32", "f32", "f64"])
        match rng.randrange(12):
            case 0 | 1 | 2:
                name = rng.choice(["addi", "subi", "muli", "minsi", "maxsi", "remsi"])
                self.add(f"arith.{name} {self.any(whole)}, {self.any(whole)} : {whole}", whole)
            case 3 | 4 | 5:
                name = rng.choice(["addf", "subf", "mulf", "divf", "minimumf", "maximumf"])
                name = rng.choice([name, name, "minnumf", "maxnumf"])
                self.add(f"arith.{name} {self.any(part)}, {self.any(part)} : {part}", part)
            case 6:
                name = rng.choice(["math.floor", "math.ceil", "math.trunc", "math.roundeven"])
                name = rng.choice([name, "arith.negf"])
                self.add(f"{name} {self.any(part)} : {part}", part)
            case 7:
                self.cast(part)
            case 8 | 9:
                self.choice()
            case 10:
                self.guarded()
            case _:
                text = rng.choice(["_0 + i0*2", "floordiv(_0, 3) - i1", "mod(_0 + i1, 5)"])
                index = f"loop.index {self.any('i64')} {{expression = #sym<{text}>}}"
                self.add(f"{index} : (i64) -> index", "index")

    def cast(self, part: str) -> None:
        name, of, to = self.rng.choice([
            ("extsi", "i8", "i32"), ("extsi", "i32", "i64"), ("extui", "i8", "i64"),
            ("extui", "i1", "i32"), ("trunci", "i64", "i32"), ("trunci", "i32", "i8"),
            ("index_cast", "index", "i64"), ("index_cast", "i64", "index"),
            ("index_cast", "index", "i8"), ("sitofp", "i64", part), ("sitofp", "i8", part),
            ("extf", "f32", "f64"), ("fptosi", part, "i64"), ("fptosi", part, "i8"),
            ("absi", "i64", "i64"),
        ])  # fmt: skip
        if of == "i1":
            self.truth()
        dialect = "math" if name == "absi" else "arith"
        shown = of if name == "absi" else f"{of} to {to}"
        self.add(f"{dialect}.{name} {self.any(of)} : {shown}", to, is_chosen=name != "fptosi")

    def module(self, steps: int) -> Any:
        sizes = ", ".join(map(str, self.extents))
        for text, type_ in (
            ("loop.index {expression = #sym<i0>} : index", "index"),
            ("loop.index {expression = #sym<i1*16 - 7>} : index", "index"),
            ("loop.read %x[i0, i1] : f32", "f32"), ("loop.read %k[i0, i1] : i64", "i64"),
        ):  # fmt: skip
            self.add(text, type_)
        self.add("arith.index_cast %v1 : index to i64", "i64")
        self.add("arith.index_cast %v3 : i64 to index", "index")
        self.add("arith.sitofp %v4 : i64 to f32", "f32")
        for _ in range(steps):
            self.step()
        # Positions are stored as integers of 64 bits.
        for name in [n for n, type_ in self.types.items() if type_ == "index"]:
            self.add(f"arith.index_cast {name} : index to i64", "i64")
        kept = {n: type_ for n, type_ in self.types.items() if type_ != "index"}
        types = [f"{type_}[{sizes}]" for type_ in kept.values()]
        results = [f"%y{k}" for k in range(len(kept))]
        head = (
            f"par(i0: {self.extents[0]}, i1: {self.extents[1]}) -> {', '.join(['map'] * len(kept))}"
        )
        lines = "\n".join(self.lines)
        return parsed(
            f"%x: f32[{sizes}], %k: i64[{sizes}]",
            f"{', '.join(results)} = loop.compute {head} {{\n{lines}\n"
            f"loop.yield {', '.join(kept)} }} : {', '.join(types)}",
            ", ".join(f"{result}: {type_}" for result, type_ in zip(results, types, strict=True)),
        )

    def data(self) -> list[torch.Tensor]:
        odd = [math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0, -0.0, 47.5, 48.0, -0.5, 7.0, 3e9]
        whole = [2**63 - 1, -(2**63), 0, -1, 2**31, -200, 47, 3]
        (rows, columns), pick = self.extents, self.rng.choice
        floats = [[pick(odd) for _ in range(columns)] for _ in range(rows)]
        numbers = [[pick(whole) for _ in range(columns)] for _ in range(rows)]
        return [torch.tensor(floats), torch.tensor(numbers)]
