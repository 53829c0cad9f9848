"""Straight-line LLVM IR on values that are scalars or vectors, written as arithmetic.

`Code` records instructions as text, with `$p` where the caller's unique prefix goes; `Lane` is a
value in it.  A sequence depends only on the target, the element type and the lane count, so it is
recorded once per process and pasted at each use: 2 us instead of 15 us per llvmlite instruction.
Constants print as `splat (...)`, which keeps the text of a 16-lane constant as short as a scalar's.

No fast-math flags are set: a product and a sum are fused only where `fma` says so.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from irc.target.cpu import TargetFeatures

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8}
BITS["i1"] = 1
LLVM_NAMES = {"f64": "double", "f32": "float", "f16": "half", "bf16": "bfloat"}
FLOATS = frozenset(LLVM_NAMES)


def float_text(element: str, value: float) -> str:
    """LLVM's exact spelling of `value`, rounded to `element` ("f32" or "f64") first."""
    if element == "f32":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Lane:
    """A value: every lane of a vector, or a scalar.  Operators take numbers on either side."""

    __slots__ = ("code", "element", "ref")

    def __init__(self, code: Code, element: str, ref: str) -> None:
        self.code = code
        self.element = element
        self.ref = ref

    def _binary(self, stem: str, left: Operand, right: Operand) -> Lane:
        code, element = self.code, self.element
        a, b = code.value(element, left), code.value(element, right)
        if a.element != b.element:
            raise TypeError(f"{stem} of {a.element} and {b.element}")
        opcode = "f" + stem if element in FLOATS else stem
        return code.record(f"{opcode} {code.type(element)} {a.ref}, {b.ref}", element)

    def __add__(self, other: Operand) -> Lane:
        return self._binary("add", self, other)

    def __radd__(self, other: Operand) -> Lane:
        return self._binary("add", other, self)

    def __sub__(self, other: Operand) -> Lane:
        return self._binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Lane:
        return self._binary("sub", other, self)

    def __mul__(self, other: Operand) -> Lane:
        return self._binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Lane:
        return self._binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Lane:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Lane:
        return self._binary("div", other, self)

    def __neg__(self) -> Lane:
        code = self.code
        if self.element not in FLOATS:
            return 0 - self
        return code.record(f"fneg {code.type(self.element)} {self.ref}", self.element)

    def __and__(self, other: Operand) -> Lane:
        return self.code.integer("and", self, other)

    def __or__(self, other: Operand) -> Lane:
        return self.code.integer("or", self, other)

    def __xor__(self, other: Operand) -> Lane:
        return self.code.integer("xor", self, other)

    def __lshift__(self, other: Operand) -> Lane:
        return self.code.integer("shl", self, other)

    def __rshift__(self, other: Operand) -> Lane:
        """Arithmetic: the sign is kept."""
        return self.code.integer("ashr", self, other)

    def __invert__(self) -> Lane:
        return self.code.integer("xor", self, 1 if self.element == "i1" else -1)

    def __lt__(self, other: Operand) -> Lane:
        return self.code.compare("olt", self, other)

    def __le__(self, other: Operand) -> Lane:
        return self.code.compare("ole", self, other)

    def __gt__(self, other: Operand) -> Lane:
        return self.code.compare("ogt", self, other)

    def __ge__(self, other: Operand) -> Lane:
        return self.code.compare("oge", self, other)


Operand = Lane | float | int


class Code:
    """A recording of instructions for `lanes` lanes (0: scalar) on one target."""

    def __init__(self, lanes: int, features: TargetFeatures) -> None:
        self.lanes = lanes
        self.features = features
        self.lines: list[str] = []
        # name: (result, operands), each an element of this width or "=" and an exact LLVM type
        self.declarations: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._known: dict[str, Lane] = {}

    def type(self, element: str) -> str:
        """The LLVM type of a value of `element`."""
        name = LLVM_NAMES.get(element, element)
        return f"<{self.lanes} x {name}>" if self.lanes else name

    def suffix(self, element: str) -> str:
        """How an overloaded intrinsic's name spells the type."""
        return f"v{self.lanes}{element}" if self.lanes else element

    def value(self, element: str, operand: Operand) -> Lane:
        """`operand`, made a constant of `element` when it is a number."""
        if isinstance(operand, Lane):
            return operand
        if element in FLOATS:
            text = float_text(element, operand)
        else:
            text = str(int(operand))
        if self.lanes:
            text = f"splat ({LLVM_NAMES.get(element, element)} {text})"
        return Lane(self, element, text)

    def record(self, text: str, element: str) -> Lane:
        """The value of the instruction `text`; an instruction recorded before is reused."""
        known = self._known.get(text)
        if known is None:
            known = Lane(self, element, f'%"$p{len(self.lines)}"')
            self.lines.append(f"{known.ref} = {text}")
            self._known[text] = known
        return known

    def call(self, stem: str, element: str, *operands: Lane, types: Sequence[str] = ()) -> Lane:
        """Call the intrinsic `stem`; its name is overloaded on `types`, by default the result."""
        overload = "".join(f".{self.suffix(t)}" for t in types or (element,))
        return self.call_named(f"{stem}{overload}", element, *operands)

    def call_named(self, name: str, element: str, *operands: Lane) -> Lane:
        """Call the function `name` whose operands are all values of this width."""
        result = self.type(element)
        self.declarations[name] = (element, tuple(o.element for o in operands))
        passed = ", ".join(f"{self.type(o.element)} {o.ref}" for o in operands)
        return self.record(f"call {result} @{name}({passed})", element)

    def integer(self, opcode: str, left: Lane, right: Operand) -> Lane:
        """An integer instruction without flags, so that it wraps."""
        other = self.value(left.element, right)
        return self.record(
            f"{opcode} {self.type(left.element)} {left.ref}, {other.ref}", left.element
        )

    def logical_shift_right(self, left: Lane, right: Operand) -> Lane:
        return self.integer("lshr", left, right)

    def compare(self, predicate: str, left: Lane, right: Operand) -> Lane:
        """Float predicates are LLVM's (`olt`, `uno`); integer ones `eq`, `slt`, `ult`..."""
        other = self.value(left.element, right)
        opcode = "fcmp" if left.element in FLOATS else "icmp"
        if opcode == "icmp" and predicate in ("olt", "ole", "ogt", "oge"):
            predicate = "s" + predicate[1:]
        type_ = self.type(left.element)
        return self.record(f"{opcode} {predicate} {type_} {left.ref}, {other.ref}", "i1")

    def equal(self, left: Lane, right: Operand) -> Lane:
        return self.compare("oeq" if left.element in FLOATS else "eq", left, right)

    def is_nan(self, value: Lane) -> Lane:
        return self.compare("uno", value, value)

    def select(self, condition: Lane, yes: Operand, no: Operand) -> Lane:
        """`yes` where `condition`, else `no`; at least one of them is a value."""
        element = yes.element if isinstance(yes, Lane) else no.element  # type: ignore[union-attr]
        a, b = self.value(element, yes), self.value(element, no)
        type_ = self.type(element)
        return self.record(
            f"select {self.type('i1')} {condition.ref}, {type_} {a.ref}, {type_} {b.ref}", element
        )

    def cast(self, opcode: str, value: Lane, element: str) -> Lane:
        """A conversion instruction: `fpext`, `sitofp`, `trunc`, `zext`, `bitcast`..."""
        if opcode == "bitcast" and value.element == element:
            return value
        source, result = self.type(value.element), self.type(element)
        return self.record(f"{opcode} {source} {value.ref} to {result}", element)

    def bits(self, value: Lane) -> Lane:
        """The bits of a float as an integer of its size."""
        return self.cast("bitcast", value, f"i{BITS[value.element]}")

    def from_bits(self, value: Lane, element: str) -> Lane:
        return self.cast("bitcast", value, element)

    def fma(self, a: Lane, b: Operand, c: Operand) -> Lane:
        """a * b + c rounded once."""
        element = a.element
        second, third = self.value(element, b), self.value(element, c)
        if self.features.has_fma or element == "f64":
            return self.call("llvm.fma", element, a, second, third)
        # The product of two f32 is exact in f64; libm's fmaf per lane would be far slower.
        wide = [self.cast("fpext", v, "f64") for v in (a, second, third)]
        return self.cast("fptrunc", wide[0] * wide[1] + wide[2], element)

    def polynomial(self, x: Lane, coefficients: Sequence[float]) -> Lane:
        """Horner's rule; coefficients lowest power first, at least two."""
        result = self.fma(x, coefficients[-1], coefficients[-2])
        for coefficient in reversed(coefficients[:-2]):
            result = self.fma(result, x, coefficient)
        return result

    @property
    def lookup_entries(self) -> int:
        """The size of the tables that `lookup` takes: what one shuffle of f32 lanes reads, sixteen
        with AVX-512, eight with AVX2; 0 where these lanes fill no such registers."""
        if not self.lanes:
            return 0
        if self.features.has_avx512 and self.lanes % 16 == 0:
            return 16
        return 8 if self.features.has_avx2 and self.lanes % 8 == 0 else 0

    def lookup(self, index: Lane, entries: Sequence[float]) -> Lane:
        """The f32 of a table of `lookup_entries` that the low bits of an i32 number."""
        size = self.lookup_entries
        texts = ", ".join(f"float {float_text('f32', e)}" for e in entries)
        name = "llvm.x86.avx512.permvar.sf.512" if size == 16 else "llvm.x86.avx2.permps"
        table, numbers = f"<{size} x float>", f"<{size} x i32>"
        self.declarations[name] = (f"={table}", (f"={table}", f"={numbers}"))
        parts = [
            self.record(f"call {table} @{name}({table} <{texts}>, {numbers} {part})", "f32").ref
            for part in self._parts(index, size)
        ]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._joined(a, b, self.lanes // (len(parts) // 2)) for a, b in pairs]
        return Lane(self, "f32", parts[0])

    def _parts(self, value: Lane, size: int) -> list[str]:
        """A value's lanes, `size` at a time."""
        if self.lanes == size:
            return [value.ref]
        type_ = self.type(value.element)
        parts = []
        for start in range(0, self.lanes, size):
            chosen = ", ".join(f"i32 {start + lane}" for lane in range(size))
            text = f"shufflevector {type_} {value.ref}, {type_} poison, <{size} x i32> <{chosen}>"
            parts.append(self.record(text, value.element).ref)
        return parts

    def _joined(self, first: str, second: str, lanes: int) -> str:
        """Two halves of `lanes` f32."""
        type_ = f"<{lanes // 2} x float>"
        chosen = ", ".join(f"i32 {lane}" for lane in range(lanes))
        text = f"shufflevector {type_} {first}, {type_} {second}, <{lanes} x i32> <{chosen}>"
        return self.record(text, "f32").ref

    def quotient(self, top: Lane, bottom: Lane) -> Lane:
        """top / bottom within one ulp, of f32 whose reciprocal is finite and normal."""
        wide = self.features.has_avx512 and self.lanes == 16 and top.element == "f32"
        if not wide or self.features.fast_division:
            return top / bottom
        vector = self.type("f32")
        name = "llvm.x86.avx512.rcp14.ps.512"
        self.declarations[name] = ("f32", ("f32", "f32", "=i16"))
        inverse = self.record(
            f"call {vector} @{name}({vector} {bottom.ref}, {vector} zeroinitializer, i16 -1)",
            "f32",
        )
        near = top * inverse
        return self.fma(self.fma(-bottom, near, top), inverse, near)

    def absolute(self, value: Lane) -> Lane:
        return self.call("llvm.fabs", value.element, value)

    def copysign(self, magnitude: Lane, sign: Lane) -> Lane:
        return self.call(
            "llvm.copysign", sign.element, self.value(sign.element, magnitude), sign
        )

    def sqrt(self, value: Lane) -> Lane:
        return self.call("llvm.sqrt", value.element, value)

    def at_most(self, value: Lane, limit: float) -> Lane:
        """min(value, limit) that keeps NaN; one instruction on x86."""
        return self.select(self.compare("ogt", value, limit), limit, value)

    def at_least(self, value: Lane, limit: float) -> Lane:
        """max(value, limit) that keeps NaN."""
        return self.select(self.compare("olt", value, limit), limit, value)
