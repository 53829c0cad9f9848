"""Products of vectors in groups of terms: one instruction for each register."""

from __future__ import annotations

from typing import Any

from irc.codegen.llvm.kernel_writer import KernelBody, Ref, Shape, emits, shape_of, vector_text
from irc.dialects.kernel.dots import LaneDot, lane_dot_of
from irc.ir.diagnostics import InvalidIR

#: LLVM's functions by instruction, for registers of so many bits and lanes of sums, and LLVM's type
#: of the elements of their factors.
_FUNCTIONS = {
    "vdpbf16ps": ("llvm.x86.avx512bf16.dpbf16ps.{bits}", "bfloat"),
    "bfdot": ("llvm.aarch64.neon.bfdot.v4f32.v8bf16", "bfloat"),
    "vpdpbusd": ("llvm.x86.avx512.vpdpbusd.{bits}", "i8"),
    "vpdpbssd": ("llvm.x86.avx2.vpdpbssd.{bits}", "i8"),
    "sdot": ("llvm.aarch64.neon.sdot.v4i32.v16i8", "i8"),
    "usdot": ("llvm.aarch64.neon.usdot.v4i32.v16i8", "i8"),
}


@emits("kernel.dot_lanes")
def dot_lanes(body: KernelBody, op: Any) -> None:
    element, features = op.left.type.element, body.features
    dot = lane_dot_of(element, features.architecture, features.sets, op.unsigned_left)
    if dot is None:
        raise InvalidIR(f"the target multiplies no groups of {element}", op=op)
    factors, sums = shape_of(op.left.type), shape_of(op.accumulator.type)
    left, right, total = (body[v] for v in (op.left, op.right, op.accumulator))
    # Registers of 512 bits have no vpdpbssd.
    most = min(features.vector_bits, 256 if dot.instruction == "vpdpbssd" else 512)
    lanes = min(most // 32, sums.lanes)
    if lanes == sums.lanes:
        body[op.total] = _product(body, dot, lanes, left, right, total)
        return
    parts = []
    for first in range(0, sums.lanes, lanes):
        a, b = (_part(body, factors, ref, first * dot.group, lanes * dot.group)
                for ref in (left, right))  # fmt: skip
        parts.append(_product(body, dot, lanes, a, b, _part(body, sums, total, first, lanes)))
    body[op.total] = _joined(body, sums, parts, lanes)


def _part(body: KernelBody, shape: Shape, ref: Ref, first: int, count: int) -> Ref:
    return body.shuffle(shape.text, ref, "poison", range(first, first + count))


def _joined(body: KernelBody, shape: Shape, parts: list[Ref], lanes: int) -> Ref:
    """Vectors one after the other as one."""
    while len(parts) > 1:
        text = vector_text(shape.element, lanes)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [body.shuffle(text, a, b, range(2 * lanes)) for a, b in pairs]
        lanes *= 2
    return parts[0]


def _product(
    body: KernelBody, dot: LaneDot, lanes: int, left: Ref, right: Ref, total: Ref
) -> Ref:
    """A register's groups, multiplied and added up."""
    name, element = _FUNCTIONS[dot.instruction]
    sums = vector_text(str(dot.accumulator), lanes)
    held = vector_text(str(dot.element), lanes * dot.group)
    factors = f"<{lanes * dot.group} x {element}>"
    if factors != held:
        left, right = (body.value(f"bitcast {held} {ref} to {factors}") for ref in (left, right))
    return body.call(
        name.format(bits=lanes * 32), sums, (sums, total), (factors, left), (factors, right)
    )
