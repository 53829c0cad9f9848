"""Products of vectors in groups of terms: values beside the interpreter's, the instruction on each
target, and what is refused."""

from __future__ import annotations

import math

import attrs
import pytest
import torch

import irc
from irc.codegen.llvm.kernel_emitter import emit_text
from irc.dialects.kernel import KernelFuncOp
from irc.dialects.kernel.dots import LANE_DOTS
from irc.ir.types import bf16, i8
from irc.target.cpu import TargetFeatures
from tests.codegen.llvm.kernel_programs import Compiled, interpret

ELEMENTS = {"bf16": bf16, "i8": i8}
HOST = TargetFeatures.host()


def kernel_of(element: str, lanes: int, unsigned: bool = False) -> KernelFuncOp:
    """One product, of a short vector again and again and two that are interleaved."""
    group, total = (2, "f32") if element == "bf16" else (4, "i32")
    wide, sums, short, part = (
        f"vector<{n}x{e}>" for n, e in
        ((lanes * group, element), (lanes, total), (group, element), (lanes, element))
    )  # fmt: skip
    loads = "\n".join(
        f"%o{k} = arith.constant {k * lanes} : index\n%r{k} = kernel.load %b[%o{k}] : {part}"
        for k in range(group)
    )
    names = ", ".join(f"%r{k}" for k in range(group))
    settings = " {unsigned_left = true}" if unsigned else ""
    module = irc.parse(f"""kernel.func @k(%a: !kernel.ptr<{element}>, %b: !kernel.ptr<{element}>,
        %c: !kernel.ptr<{total}>, %y: !kernel.ptr<{total}>, %begin: index, %end: index)
        attributes {{target = "cpu", outputs = array<i64: 3>}} {{
      %s = kernel.load %a[%begin] : {short}
      %left = kernel.splat %s : ({short}) -> {wide}
      {loads}
      %right = kernel.interleave {names} : ({", ".join([part] * group)}) -> {wide}
      %sums = kernel.load %c[%begin] : {sums}
      %t = kernel.dot_lanes %left, %right, %sums{settings} : ({wide}, {wide}, {sums}) -> {sums}
      kernel.store %t, %y[%begin] : {sums}
      kernel.return }}""")
    irc.verify(module)
    (found,) = (op for op in module.walk() if isinstance(op, KernelFuncOp))
    return found


def arrays(element: str, lanes: int) -> list[torch.Tensor]:
    """Both factors, and what is added."""
    generator = torch.Generator().manual_seed(lanes)
    group = 2 if element == "bf16" else 4
    if element == "bf16":
        left, right = (torch.randn(n, generator=generator).bfloat16()
                       for n in (group, lanes * group))  # fmt: skip
        return [left, right, torch.randn(lanes, generator=generator)]
    left, right = (torch.randint(-128, 128, (n,), generator=generator).to(torch.int8)
                   for n in (group, lanes * group))  # fmt: skip
    left[0], right[0] = -128, -128
    added = torch.randint(-(2**31), 2**31, (lanes,), generator=generator).to(torch.int32)
    return [left, right, added]


def here(element: str, unsigned: bool) -> bool:
    return any(
        dot.element is ELEMENTS[element] and dot.unsigned_left == unsigned
        and dot.architecture == HOST.architecture and set(dot.sets) <= set(HOST.sets)
        for dot in LANE_DOTS
    )  # fmt: skip


CASES = [("bf16", False), ("i8", True), ("i8", False)]


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
@pytest.mark.parametrize("element, unsigned", CASES)
def test_values(element, unsigned, lanes):
    kernel = kernel_of(element, lanes, unsigned)
    left, right, added = arrays(element, lanes)
    group, total = len(left), torch.float32 if element == "bf16" else torch.int32
    wide = left.to(torch.float64 if element == "bf16" else torch.int64)
    if unsigned:
        wide = wide % 256
    exact = (wide[:, None] * right.reshape(group, lanes).to(wide.dtype)).sum(0) + added
    interpreted = torch.zeros(lanes, dtype=total)
    interpret(kernel, [left, right, added, interpreted])
    results = [interpreted]
    if here(element, unsigned):
        native = torch.zeros(lanes, dtype=total)
        Compiled([kernel], HOST).run("k", [left, right, added, native], 0, 1)
        results.append(native)
    for got in results:
        torch.testing.assert_close(got, exact.to(total), rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(not here("bf16", False), reason="this processor has no such products")
@pytest.mark.parametrize("numbers", [
    (math.nan, 1.0), (math.inf, 1.0), (math.inf, 0.0), (-math.inf, math.inf), (3e38, 3e38),
])  # fmt: skip
def test_what_is_no_number(numbers):
    left = torch.tensor([numbers[0], 0.0]).bfloat16()
    right = torch.ones(32).bfloat16()
    right[:16] = numbers[1]
    added, native = torch.zeros(16), torch.zeros(16)
    Compiled([kernel_of("bf16", 16)], HOST).run("k", [left, right, added, native], 0, 1)
    wanted = left.float()[0] * right.float()[:16]
    torch.testing.assert_close(native, wanted, equal_nan=True, rtol=0, atol=0)


AVX512 = TargetFeatures.avx512()
NEON = TargetFeatures.neon()
AVX2 = TargetFeatures.avx2()


def with_sets(features: TargetFeatures, *sets: str) -> TargetFeatures:
    return attrs.evolve(features, sets=(*features.sets, *sets))


@pytest.mark.parametrize("features, element, unsigned, lanes, instruction, count", [
    (with_sets(AVX512, "avx512bf16"), "bf16", False, 16, "vdpbf16ps", 1),
    (with_sets(AVX512, "avx512bf16"), "bf16", False, 32, "vdpbf16ps", 2),
    (with_sets(AVX512, "avx512bf16"), "bf16", False, 4, "vdpbf16ps", 1),
    (with_sets(AVX512, "avx512vnni"), "i8", True, 16, "vpdpbusd", 1),
    (with_sets(AVX2, "avxvnni"), "i8", True, 8, "vpdpbusd", 1),
    (with_sets(AVX2, "avxvnniint8"), "i8", False, 16, "vpdpbssd", 2),
    (with_sets(NEON, "bf16"), "bf16", False, 4, "bfdot", 1),
    (with_sets(NEON, "bf16"), "bf16", False, 16, "bfdot", 4),
    (with_sets(NEON, "dotprod"), "i8", False, 4, "sdot", 1),
    (with_sets(NEON, "i8mm", "dotprod"), "i8", True, 8, "usdot", 2),
])  # fmt: skip
def test_each_target_has_its_instruction(features, element, unsigned, lanes, instruction, count):
    assembly = emit_text([kernel_of(element, lanes, unsigned)], features, "asm")
    assert sum(instruction in line.split()[:2] for line in assembly.splitlines()) == count


@pytest.mark.parametrize("features", [AVX512, AVX2, NEON])
def test_a_target_without_them_refuses_the_kernel(features):
    with pytest.raises(irc.InvalidIR, match="multiplies no groups of bf16"):
        emit_text([kernel_of("bf16", 16)], features, "asm")


TEXT = """kernel.func @k({ends}) attributes {{target = "{target}"}} {{
  %a = arith.constant dense<{content}> : vector<{left}>
  %b = arith.constant dense<{content}> : vector<{right}>
  %c = arith.constant dense<0{point}> : vector<{sums}>
  %t = kernel.dot_lanes %a, %b, %c{more} : (vector<{left}>, vector<{right}>, vector<{sums}>)
    -> vector<{sums}>
  kernel.return }}"""
FITTING = {"target": "cpu", "ends": "%begin: index, %end: index", "left": "32xbf16",
           "right": "32xbf16", "sums": "16xf32", "content": "1.0", "point": ".0",
           "more": ""}  # fmt: skip


@pytest.mark.parametrize("change, reason", [
    ({"target": "gpu", "ends": ""}, "a gpu kernel multiplies tiles by kernel.dot"),
    ({"left": "16xbf16", "right": "16xbf16"}, "where groups of 2 bf16 are summed up in f32"),
    ({"right": "64xbf16"}, "both factors have one type"),
    ({"left": "32xf16", "right": "32xf16"}, "no cpu multiplies groups of f16"),
    ({"sums": "2xf32", "left": "4xbf16", "right": "4xbf16"}, "not a power of two from 4 on"),
    ({"more": " {unsigned_left = true}"}, "bf16 has a sign"),
    ({"left": "4x8xbf16", "right": "4x8xbf16"}, "not vectors"),
])  # fmt: skip
def test_the_operation_is_verified(change, reason):
    irc.verify(irc.parse(TEXT.format(**FITTING)))
    with pytest.raises(irc.InvalidIR, match=reason):
        irc.verify(irc.parse(TEXT.format(**{**FITTING, **change})))


@pytest.mark.parametrize("line, reason", [
    ("%t = kernel.interleave %a, %b : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>",
     "not the lanes of 2"),
    ("%t = kernel.interleave %a, %c : (vector<8xf32>, vector<4xf32>) -> vector<12xf32>",
     "not vectors of one type"),
    ("%t = kernel.splat %c : (vector<4xf32>) -> vector<6xf32>", "makes vector<6xf32>"),
])  # fmt: skip
def test_vectors_of_vectors_are_verified(line, reason):
    text = f"""kernel.func @k(%begin: index, %end: index) attributes {{target = "cpu"}} {{
  %a = arith.constant dense<1.0> : vector<8xf32>
  %b = arith.constant dense<1.0> : vector<8xf32>
  %c = arith.constant dense<1.0> : vector<4xf32>
  {line}
  kernel.return }}"""
    with pytest.raises(irc.InvalidIR, match=reason):
        irc.verify(irc.parse(text))
