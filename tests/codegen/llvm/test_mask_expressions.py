"""Loads, stores and gathers under random masks, compiled, against the interpreter.

A mask is made of conditions that are the same for all lanes, comparisons of a lane's number with
what is known and with what isn't, and what `and`, `or` and `not` make of these. Lanes fill a part
of a register up to several. LLVM 22.1 read lanes under no mask (AVX) and wrote lanes under no
mask (AVX-512) for some of them.
"""

from __future__ import annotations

import random

import pytest
import torch

import irc
from irc.codegen.llvm.kernel_writer import element_name
from irc.dialects import kernel
from irc.interp.core import torch_dtype
from irc.ir import types as T
from tests.codegen.llvm.kernel_checks import (
    TARGETS,
    assert_same,
    features_of,
    moderate,
)
from tests.codegen.llvm.kernel_programs import Compiled, interpret

KERNELS = 24
ELEMENTS = (T.f32, T.f64, T.bf16, T.f16, T.i8, T.i16, T.i32, T.i64)
LANES = (2, 4, 8, 16, 32, 64)
PARTS = 3
"""Of an array, at most, that a kernel reads and writes."""
CONDITIONS = ((2, 0), (5, 3), (9, 40), (2, 17))
"""Values of a row and of a number of lanes, that kernels are run with."""

HEAD = """kernel.func @NAME(%x: !kernel.ptr<ELEMENT>, %y: !kernel.ptr<ELEMENT>,
    %known: !kernel.ptr<i64>, %begin: index, %end: index) attributes {grid = #sym<1>,
    outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<1>} {
  %lane = kernel.iota : vector<LANESxNUMBER>
  %offset = arith.constant dense<OFFSET> : vector<LANESxNUMBER>
  %place = arith.addi %lane, %offset : vector<LANESxNUMBER>
  %most = arith.constant dense<MOST> : vector<LANESxNUMBER>
  %least = arith.constant dense<LEAST> : vector<LANESxNUMBER>
  %one = arith.constant 1 : index
  %row = kernel.load %known[%begin] : i64
  %n = kernel.load %known[%one] : i64
  %rows = arith.constant 4 : i64
  %inside = arith.cmpi slt, %row, %rows : i64
  %uniform = kernel.splat %inside : (i1) -> vector<LANESxi1>
  %below = arith.cmpi slt, %place, %most : vector<LANESxNUMBER>
  %behind = arith.cmpi sge, %place, %least : vector<LANESxNUMBER>
  %wide = kernel.splat %n : (i64) -> vector<LANESxi64>
  %number = kernel.iota : vector<LANESxi64>
  %counted = arith.cmpi slt, %number, %wide : vector<LANESxi64>
  %all = arith.constant dense<true> : vector<LANESxi1>
  %zero = arith.constant dense<ZERO> : vector<LANESxELEMENT>
"""


class Writer:
    """The text of one random kernel."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.lines, self.count = rng, [], 0
        self.element, self.lanes = rng.choice(ELEMENTS), rng.choice(LANES)
        self.vector = f"vector<{self.lanes}x{element_name(self.element)}>"
        self.is_float = self.element in (T.f32, T.f64, T.bf16, T.f16)
        offset = rng.choice((0, self.lanes, 2 * self.lanes))
        words = {
            "NAME": name, "ELEMENT": element_name(self.element), "LANES": self.lanes,
            "NUMBER": rng.choice(("i32", "i64")), "OFFSET": offset,
            "MOST": rng.randrange(offset - 1, offset + self.lanes + 2),
            "LEAST": rng.randrange(offset - 1, offset + self.lanes + 2),
            "ZERO": "0.0" if self.is_float else "0",
        }  # fmt: skip
        self.head = HEAD
        for word, value in words.items():
            self.head = self.head.replace(word, str(value))

    def value(self, text: str) -> str:
        """A line that defines a value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def mask(self, depth: int) -> str:
        """A random condition of the lanes."""
        if not depth or self.rng.random() < 0.2:
            return self.rng.choice(("%uniform", "%below", "%behind", "%counted"))
        left, form = self.mask(depth - 1), self.rng.choice(("andi", "andi", "ori", "xori"))
        right = "%all" if form == "xori" else self.mask(depth - 1)
        return self.value(f"arith.{form} {left}, {right} : vector<{self.lanes}xi1>")

    def text(self) -> str:
        """Loads, and what is stored of them."""
        mask = self.mask(self.rng.choice((1, 1, 2, 3)))
        indices = self.value(f"kernel.iota : vector<{self.lanes}xindex>")
        for part in range(self.rng.randrange(1, PARTS + 1)):
            begin = self.value(f"arith.constant {part * max(LANES)} : index")
            under = self.rng.choice((mask, mask, self.mask(2)))
            where = f"(where {under} else %zero)"
            if self.rng.random() < 0.25:
                loaded = self.value(f"kernel.gather %x[{indices}] {where} : {self.vector}")
            else:
                loaded = self.value(f"kernel.load %x[{begin}] {where} : {self.vector}")
            if self.rng.random() < 0.5:
                compare = "cmpf ole" if self.is_float else "cmpi sle"
                condition = self.value(f"arith.{compare}, {loaded}, %zero : {self.vector}")
                loaded = self.value(f"arith.select {condition}, %zero, {loaded} : "
                                    f"vector<{self.lanes}xi1>, {self.vector}")  # fmt: skip
            stored = f" (where {mask})" if self.rng.random() < 0.5 else ""
            self.lines.append(f"  kernel.store {loaded}, %y[{begin}]{stored} : {self.vector}")
        return "\n".join([self.head, *self.lines, "  kernel.return", "}"])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("target", [name for name in TARGETS if name != "scalar"])
def test_lanes_outside_of_a_mask_are_neither_read_nor_written(target, seed):
    rng = random.Random(seed)
    writers = [Writer(rng, f"k{i}") for i in range(KERNELS)]
    texts = [writer.text() for writer in writers]
    callees = [op for op in irc.parse("\n".join(texts)).block.ops
               if isinstance(op, kernel.KernelFuncOp)]  # fmt: skip
    compiled = Compiled(callees, features_of(target))
    for writer, callee, text in zip(writers, callees, texts, strict=True):
        for known in CONDITIONS:
            x = moderate(T.f32, PARTS * max(LANES), seed) * 100 - 30
            x = x.to(torch_dtype(writer.element))
            actual = torch.full_like(x, 7)
            expected = actual.clone()
            numbers = torch.tensor(known)
            compiled.run(callee.sym_name, [x, actual, numbers], 0, 1)
            interpret(callee, [x, expected, numbers])
            try:
                assert_same(actual, expected)
            except AssertionError as error:
                raise AssertionError(f"{known}\n{text}") from error
