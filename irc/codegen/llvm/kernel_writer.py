"""LLVM assembly text of kernels: the module, one function, and the map from our values to it.

Instructions are written as text, which llvmlite parses in any case: about 1 us an instruction,
where its builder and printer take 15 (llvmlite 0.50, Zen 4, a chain of 1000 additions).  bf16 is
held as its bits in `i16`, a bool as `i1`; in memory a bool is a byte.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from irc.codegen.llvm.vector_math import Template
from irc.dialects.kernel import PointerType
from irc.ir.attributes import Type
from irc.ir.core import Block, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.floats import FORMATS, float_bits
from irc.ir.types import FloatType, IndexType, IntegerType, VectorType
from irc.target.cpu import TargetFeatures

EIGHT_BIT_FLOATS = frozenset(name for name in FORMATS if name.startswith("f8"))
#: LLVM's names of the elements as they are held in registers.
REGISTER = {
    "f64": "double", "f32": "float", "f16": "half", "bf16": "i16",
    **dict.fromkeys(EIGHT_BIT_FLOATS, "i8"),
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "index": "i64",
}  # fmt: skip
WIDTH = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16, **dict.fromkeys(EIGHT_BIT_FLOATS, 8),
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64,
}  # fmt: skip
#: Floats that are widened to f32 for everything but moving them about.
NARROW_FLOATS = frozenset({"f16", "bf16"}) | EIGHT_BIT_FLOATS
FLOATS = frozenset({"f64", "f32"}) | NARROW_FLOATS

Ref = str
#: A value of rank 2 is a list of rows.
Content = str | list[str]


@attrs.frozen
class Shape:
    """What a type is in registers: `rows` vectors (0: one) of `lanes` lanes (0: a scalar)."""

    element: str
    lanes: int
    rows: int
    #: LLVM's text of one row.
    text: str


@functools.cache
def shape_of(type_: Type) -> Shape:
    """The registers of a scalar, vector or pointer type. Raises InvalidIR for any other."""
    if isinstance(type_, PointerType):
        return Shape("ptr", 0, 0, "ptr")
    element = type_.element if isinstance(type_, VectorType) else type_
    name = element_name(element)
    if not isinstance(type_, VectorType):
        return Shape(name, 0, 0, REGISTER[name])
    if not 1 <= len(type_.shape) <= 2 or 0 in type_.shape:
        raise InvalidIR(f"a cpu kernel has no vectors of type {type_}: only rank 1 and 2")
    lanes = type_.shape[-1]
    rows = type_.shape[0] if len(type_.shape) == 2 else 0
    return Shape(name, lanes, rows, vector_text(name, lanes))


def element_name(element: Type) -> str:
    """"f32", "i1", "index"... Raises InvalidIR for an element that cpu kernels can't hold."""
    if isinstance(element, IndexType):
        return "index"
    if isinstance(element, FloatType):
        name = element.name
    elif isinstance(element, IntegerType) and not element.unsigned:
        name = f"i{element.width}"
    else:
        name = str(element)
    if name not in REGISTER:
        raise InvalidIR(f"a cpu kernel can't compute with elements of type {element}")
    return name


def vector_text(element: str, lanes: int) -> str:
    """LLVM's type of `lanes` lanes of a named element; 0 is a scalar."""
    register = REGISTER[element]
    return f"<{lanes} x {register}>" if lanes else register


def float_text(element: str, value: float) -> str:
    """LLVM's exact spelling of a float constant as it is held, rounded to the element."""
    if element == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if element == "f16":
        return f"0xH{_half_bits(value):04X}"
    if element in EIGHT_BIT_FLOATS:
        return str(float_bits(value, element))
    single = _single(value)
    if element == "f32":
        return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
    return str(_bf16_bits(value))


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _half_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _bf16_bits(value: float) -> int:
    bits = int(struct.unpack("<I", struct.pack("<f", _single(value)))[0])
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def constant_text(element: str, value: float | int) -> str:
    """A scalar constant's text, without its type."""
    if element in FLOATS:
        return float_text(element, float(value))
    if element == "i1":
        return "true" if int(value) & 1 else "false"
    return str(int(value))


def splat_text(element: str, lanes: int, scalar: str) -> str:
    """The constant with `scalar` in each lane, or the scalar itself."""
    return f"splat ({REGISTER[element]} {scalar})" if lanes else scalar


class ModuleWriter:
    """Collects functions and declarations into the text of one LLVM module."""

    def __init__(self, features: TargetFeatures, precise: bool = False) -> None:
        self.features = features
        self.precise = precise
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.helpers: dict[str, str] = {}

    def declare(self, name: str, result: str, operands: Sequence[str]) -> str:
        """`@name`, declared in the module."""
        if name not in self.declarations:
            self.declarations[name] = f"declare {result} @{name}({', '.join(operands)})"
        return f"@{name}"

    def text(self) -> str:
        """The module."""
        parts = [*self.declarations.values(), *self.helpers.values(), *self.functions]
        width = self.features.vector_bits
        parts.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" }}\n')
        parts.append('!0 = !{!"branch_weights", i32 1, i32 2000}\n')
        return "\n".join(parts)


Handler = Callable[["KernelBody", Any], None]
HANDLERS: dict[str, Handler] = {}


def emits(*names: str) -> Callable[[Handler], Handler]:
    """Register `f(body, op)` as how the operations called `names` are written."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


#: Instructions after which a basic block is cut: what LLVM does in a block takes time that grows
#: with the square of its length (5,600 instructions: 1.6 s, cut 0.24 s; seen with LLVM 22).
LONGEST_BLOCK = 500
NEVER = "never"


class KernelBody:
    """One LLVM function under construction: its lines, and the text of each of our values."""

    def __init__(self, module: ModuleWriter) -> None:
        self.module = module
        self.features = module.features
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block = "entry"
        self._begun = 0
        self._is_cut = False
        self.contents: dict[Value, Content] = {}
        #: Integer constants, of scalars and of every lane of a vector.
        self.constants: dict[Value, int] = {}
        #: 1 / x of vectors of one number x, by which others are divided.
        self.inverses: dict[Value, Ref] = {}
        #: The rows of the tiles that the kernel has set up; None: it has none.
        self.tile_rows: int | None = None
        self._count = 0

    # -- values

    def __getitem__(self, value: Value) -> Ref:
        """The register or constant of a value of rank 0 or 1."""
        return self.contents[value]  # type: ignore[return-value]

    def __setitem__(self, value: Value, content: Content) -> None:
        self.contents[value] = content

    def rows(self, value: Value) -> list[Ref]:
        """The rows of a value of any rank; one row below rank 2."""
        content = self.contents[value]
        return content if isinstance(content, list) else [content]

    def flatten(self, values: Sequence[Value]) -> list[tuple[str, Ref]]:
        """(type, register) of every row of these values."""
        return [(shape_of(v.type).text, row) for v in values for row in self.rows(v)]

    def assign(self, values: Sequence[Value], refs: Sequence[Ref]) -> None:
        """Give the values, of any rank, the registers in `refs`: the inverse of `flatten`."""
        at = 0
        for value in values:
            rows = shape_of(value.type).rows
            self.contents[value] = list(refs[at : at + rows]) if rows else refs[at]
            at += rows or 1

    # -- instructions

    def name(self, stem: str) -> str:
        """A fresh name."""
        self._count += 1
        return f"{stem}{self._count}"

    def value(self, text: str) -> Ref:
        """The result of the instruction `text`."""
        self._count += 1
        ref = f"%v{self._count}"
        self.lines.append(f"  {ref} = {text}")
        return ref

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def open(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.block, self._begun = label, len(self.lines)

    def jump(self, label: str) -> None:
        """End the block."""
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: Ref, yes: str, no: str, unlikely: bool = False) -> None:
        """End the block on a condition; `unlikely`: it hardly ever holds."""
        weights = ", !prof !0" if unlikely else ""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}{weights}")

    def phi(self, type_: str, *incoming: tuple[Ref, str]) -> Ref:
        """A value by the block that control comes from."""
        pairs = ", ".join(f"[ {ref}, %{label} ]" for ref, label in incoming)
        return self.value(f"phi {type_} {pairs}")

    def alloca(self, element: str, count: int, align: int) -> Ref:
        """Stack memory of `count` elements, reserved when the kernel starts."""
        ref = f"%{self.name('room')}"
        self.allocas.append(f"  {ref} = alloca {element}, i64 {count}, align {align}")
        return ref

    def call(self, name: str, result: str, *operands: tuple[str, Ref]) -> Ref:
        """The result of a call to `name`, declared on first use."""
        function = self.module.declare(name, result, [t for t, _ in operands])
        passed = ", ".join(f"{t} {ref}" for t, ref in operands)
        return self.value(f"call {result} {function}({passed})")

    def paste(self, template: Template, lanes: int, operands: Sequence[Ref]) -> tuple[Ref, str]:
        """Write a recorded sequence; gives its result and the prefix of its names."""
        prefix = self.name("p") + "."
        for name, (result, kinds) in template.declarations:
            if name not in self.module.declarations:
                self.module.declare(
                    name, _declared(result, lanes), [_declared(k, lanes) for k in kinds]
                )
        if template.text:
            self.lines.append("  " + expand(template.text, prefix, operands))
        return expand(template.result, prefix, operands), prefix

    def splat(self, element: str, lanes: int, scalar: Ref) -> Ref:
        """A vector with the scalar in each lane."""
        if not scalar.startswith("%"):
            return splat_text(element, lanes, scalar)
        register, vector = REGISTER[element], vector_text(element, lanes)
        first = self.value(f"insertelement {vector} poison, {register} {scalar}, i64 0")
        return self.value(
            f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )

    def shuffle(self, vector: str, a: Ref, b: Ref, lanes: Sequence[int]) -> Ref:
        """Lanes of `a` and `b` (both of type `vector`); -1 is any value."""
        picked = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in lanes)
        mask = f"<{len(lanes)} x i32> <{picked}>"
        return self.value(f"shufflevector {vector} {a}, {vector} {b}, {mask}")

    # -- our operations

    def emit_block(self, block: Block) -> Operation | None:
        """Write the operations of a block; gives its last one, the terminator."""
        op = block.first
        while op is not None:
            handler = HANDLERS.get(op.name)
            if handler is None:
                raise InvalidIR(f"'{op.name}' can't be emitted for a cpu", op=op)
            if len(self.lines) - self._begun > LONGEST_BLOCK:
                self._cut()
            handler(self, op)
            op = op.next
        return block.last

    def _cut(self) -> None:
        """Go on in another basic block, in a way that LLVM can't see through."""
        zero, label = self.value('call i8 asm "", "=r,0"(i8 0)'), self.name("cut")
        self.branch(self.value(f"icmp eq i8 {zero}, 0"), label, NEVER)
        self.open(label)
        self._is_cut = True

    def text(self) -> str:
        """The function's body: its basic blocks."""
        never = [f"{NEVER}:", "  unreachable"] if self._is_cut else []
        return "\n".join(["entry:", *self.allocas, *self.lines, *never])


def expand(text: str, prefix: str, operands: Sequence[Ref]) -> str:
    """A template's text with the operands and the prefix of one use."""
    for index, operand in enumerate(operands):
        text = text.replace(f"${index}", operand)
    return text.replace("$p", prefix)


def _declared(declared: str, lanes: int) -> str:
    if declared.startswith("="):
        return REGISTER.get(declared[1:], declared[1:])
    return vector_text(declared, lanes)
