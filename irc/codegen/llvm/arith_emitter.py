"""The operations of the arith and math dialects in kernels: constants, casts, lane by lane."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from irc.codegen.llvm.arith_rules import rule_template
from irc.codegen.llvm.kernel_writer import (
    FLOATS,
    NARROW_FLOATS,
    REGISTER,
    WIDTH,
    KernelBody,
    Ref,
    constant_text,
    emits,
    shape_of,
    splat_text,
    vector_text,
)
from irc.codegen.llvm.lanewise import apply, converted, divided
from irc.codegen.llvm.vector_math import cut_template
from irc.dialects.arith import ops as arith
from irc.dialects.math import ops as math
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.definition import Op
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import element_bytes


def _operand_rows(
    body: KernelBody, op: Any, operands: Sequence[Value] | None = None
) -> list[tuple[Ref, ...]]:
    contents = [body.contents[v] for v in (op.operands if operands is None else operands)]
    if isinstance(contents[0], list):
        return list(zip(*contents, strict=True))
    return [tuple(contents)]  # type: ignore[arg-type]


def _set_rows(body: KernelBody, op: Any, refs: list[Ref]) -> None:
    result = op.results[0]
    body[result] = refs if shape_of(result.type).rows else refs[0]


def _names(base: type[Op], *modules: Any) -> list[str]:
    """The operations defined in the modules with this base class."""
    return [
        cls.name
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, base) and not cls.abstract
    ]


_ARITHMETIC = [
    *_names(arith.IntegerBinary, arith), *_names(arith.FloatBinary, arith),
    *_names(math.MathUnary, math), *_names(math.MathBinary, math), *_names(math.MathTest, math),
    "arith.negf", "math.absi", "math.fma", "math.philox",
]  # fmt: skip


def _lane_by_lane(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.operands[0].type)
    name, operands = _as_difference(op)
    second = body.constants.get(operands[1]) if len(operands) == 2 else None
    local = name.partition(".")[2]
    if local == "exp" and op.nonpositive:
        local = "exp_nonpositive"
    _set_rows(body, op, [
        apply(body, local, shape.element, shape.lanes, row, second)
        for row in _operand_rows(body, op, operands)
    ])


def _as_difference(op: Any) -> tuple[str, Sequence[Value]]:
    """The name and the operands of `op`, of a sum with a negated float those of the difference:
    LLVM makes one of it anyway, but would fuse a product into it."""
    if isinstance(op, arith.AddFOp):
        left, right = op.operands
        for kept, other in ((left, right), (right, left)):
            if isinstance(other.defining_op, arith.NegFOp):
                return "arith.subf", (kept, other.defining_op.operands[0])
    return op.name, op.operands


for _name in _ARITHMETIC:
    emits(_name)(_lane_by_lane)


@emits("arith.divf")
def divide(body: KernelBody, op: Any) -> None:
    """By a number that `kernel.splat` gave its inverse, else lane by lane."""
    x, divisor = op.operands
    inverse, shape = body.inverses.get(divisor), shape_of(divisor.type)
    if inverse is None:
        _lane_by_lane(body, op)
        return
    _set_rows(body, op, [
        divided(body, shape.element, shape.lanes, row, body.rows(divisor)[0], inverse)
        for row in body.rows(x)
    ])


@emits("arith.constant")
def constant(body: KernelBody, op: Any) -> None:
    result, value = op.results[0], op.attributes["value"]
    shape = shape_of(result.type)
    if isinstance(value, A.DenseAttr):
        _set_rows(body, op, _dense_rows(value, result.type))
        return
    text = constant_text(shape.element, value.value)
    if shape.element not in FLOATS:
        body.constants[result] = int(value.value)
    _set_rows(body, op, [splat_text(shape.element, shape.lanes, text)] * max(shape.rows, 1))


def _dense_rows(value: A.DenseAttr, type_: Any) -> list[Ref]:
    shape = shape_of(type_)
    size = element_bytes(getattr(type_, "element", type_))
    pieces = [value.data[i : i + size] for i in range(0, len(value.data), size)]
    texts = [_element_text(shape.element, piece) for piece in pieces]
    rows, lanes = max(shape.rows, 1), max(shape.lanes, 1)
    if len(texts) == 1:
        return [splat_text(shape.element, shape.lanes, texts[0])] * rows
    if len(texts) != rows * lanes:
        raise InvalidIR(f"a constant of {len(texts)} elements is given for {type_}")
    register = REGISTER[shape.element]
    return [
        "<" + ", ".join(f"{register} {t}" for t in texts[r * lanes : (r + 1) * lanes]) + ">"
        for r in range(rows)
    ]


def _element_text(element: str, data: bytes) -> str:
    if element == "f64":
        return f"0x{int.from_bytes(data, 'little'):016X}"
    if element == "f32":
        return constant_text("f32", struct.unpack("<f", data)[0])
    if element == "f16":
        return f"0xH{int.from_bytes(data, 'little'):04X}"
    number = int.from_bytes(data, "little", signed=element != "i1")
    return str(number) if element in FLOATS else constant_text(element, number)


@emits("arith.cmpi", "arith.cmpf")
def compare(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.operands[0].type)
    opcode = "icmp" if isinstance(op, arith.CmpIOp) else "fcmp"
    refs = []
    for a, b in _operand_rows(body, op):
        element = shape.element
        if element in NARROW_FLOATS:
            a, b = (converted(body, element, "f32", shape.lanes, r) for r in (a, b))
            element = "f32"
        type_ = vector_text(element, shape.lanes)
        refs.append(body.value(f"{opcode} {op.predicate} {type_} {a}, {b}"))
    _set_rows(body, op, refs)


@emits("arith.select")
def select(body: KernelBody, op: Any) -> None:
    type_ = shape_of(op.operands[1].type).text
    test = shape_of(op.operands[0].type)
    conditions = body.rows(op.operands[0])
    choices = list(zip(body.rows(op.operands[1]), body.rows(op.operands[2]), strict=True))
    if len(conditions) < len(choices):
        conditions = conditions * len(choices)
    _set_rows(body, op, [
        body.value(f"select {test.text} {c}, {type_} {a}, {type_} {b}")
        for c, (a, b) in zip(conditions, choices, strict=True)
    ])


def _cast(body: KernelBody, op: Any, convert_row: Callable[[Ref], Ref]) -> None:
    _set_rows(body, op, [convert_row(row) for row in body.rows(op.operands[0])])


#: What is added to the bits that are cut off, by the rounding mode.
CUT = {"toward_zero": 0, "to_nearest_away": 1 << 15}


@emits("arith.extf", "arith.truncf")
def convert_float(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    half = CUT.get(getattr(op, "roundingmode", None) or "")

    def row(ref: Ref) -> Ref:
        if half is not None:
            template = cut_template(source.lanes, body.features, half)
            return body.paste(template, source.lanes, (ref,))[0]
        return converted(body, source.element, target.element, source.lanes, ref)

    _cast(body, op, row)


@emits("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
def convert_integer(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    before, after = WIDTH[source.element], WIDTH[target.element]
    opcode = "zext" if isinstance(op, arith.ExtUIOp | arith.IndexCastUIOp) else "sext"
    known = body.constants.get(op.operands[0])
    if known is not None and opcode == "sext" and 1 < before <= after:
        body.constants[op.results[0]] = known

    def row(ref: Ref) -> Ref:
        if before == after:
            return ref
        cast = opcode if before < after else "trunc"
        return body.value(f"{cast} {source.text} {ref} to {target.text}")

    _cast(body, op, row)


@emits("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")
def convert_kind(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    name = op.name.partition(".")[2]
    extra: tuple[Any, ...] = (source.element, target.element)
    if name in ("sitofp", "uitofp"):
        extra = (*extra, name == "sitofp")
    template = rule_template(name, (source.element,), source.lanes, body.features, extra)
    _cast(body, op, lambda ref: body.paste(template, source.lanes, (ref,))[0])


@emits("arith.bitcast")
def bitcast(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)

    def row(ref: Ref) -> Ref:
        if source.text == target.text:
            return ref
        return body.value(f"bitcast {source.text} {ref} to {target.text}")

    _cast(body, op, row)
