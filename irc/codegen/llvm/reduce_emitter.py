"""Operations across the lanes of a vector: reduce, scan, transpose, splat, iota, single lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.codegen.llvm.kernel_writer import (
    FLOATS,
    NARROW_FLOATS,
    REGISTER,
    WIDTH,
    KernelBody,
    Ref,
    Shape,
    constant_text,
    emits,
    shape_of,
    vector_text,
)
from irc.codegen.llvm.lanewise import apply, converted
from irc.codegen.llvm.memory_emitter import combining
from irc.codegen.llvm.vector_math import divides_by_inverse
from irc.dialects import arith
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR

#: LLVM's reductions, which are free to choose the order of the lanes.
_REDUCTIONS = {
    "addi": "add", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor", "minsi": "smin",
    "maxsi": "smax",
}  # fmt: skip
#: Combines corresponding lanes of two groups of vectors with this number of lanes (0: scalars).
Combine = Callable[[Sequence[Ref], Sequence[Ref], int], list[Ref]]


def _pair_combiner(body: KernelBody, combiner: str, elements: Sequence[str]) -> Combine:
    """Of (value, position): the extreme value, NaN above all; of equal ones the first position."""
    element, place = elements
    floating = element in FLOATS

    def combine(left: Sequence[Ref], right: Sequence[Ref], lanes: int) -> list[Ref]:
        type_, mask = vector_text(element, lanes), vector_text("i1", lanes)
        a, b = left[0], right[0]
        if element in NARROW_FLOATS:
            a, b = (converted(body, element, "f32", lanes, r) for r in (a, b))
        test = vector_text("f32", lanes) if element in NARROW_FLOATS else type_

        def compare(predicate: str, x: Ref, y: Ref, on: str = test) -> Ref:
            return body.value(f"{'fcmp' if floating else 'icmp'} {predicate} {on} {x}, {y}")

        order = ("o" if floating else "u" if element == "i1" else "s") + (
            "gt" if combiner == "argmax" else "lt"
        )
        better, same = compare(order, a, b), compare("oeq" if floating else "eq", a, b)
        if floating:
            nan_a, nan_b = compare("uno", a, a), compare("uno", b, b)
            number_b = body.value(f"xor {mask} {nan_b}, {_all_true(lanes)}")
            wins = body.value(f"and {mask} {nan_a}, {number_b}")
            better = body.value(f"or {mask} {better}, {wins}")
            both = body.value(f"and {mask} {nan_a}, {nan_b}")
            same = body.value(f"or {mask} {same}, {both}")
        places = vector_text(place, lanes)
        earlier = body.value(f"icmp slt {places} {left[1]}, {right[1]}")
        first = body.value(f"and {mask} {same}, {earlier}")
        keep = body.value(f"or {mask} {better}, {first}")
        return [
            body.value(f"select {mask} {keep}, {t} {x}, {t} {y}")
            for t, x, y in zip((type_, places), left, right, strict=True)
        ]

    return combine


def _all_true(lanes: int) -> str:
    return "splat (i1 true)" if lanes else "true"


def _combiner(body: KernelBody, combiner: str, elements: Sequence[str]) -> Combine:
    if combiner in ("argmin", "argmax"):
        if len(elements) != 2:
            raise InvalidIR(f"{combiner} combines pairs of a value and a position")
        return _pair_combiner(body, combiner, elements)
    if len(elements) != 1:
        raise InvalidIR(f"{combiner} combines single values")
    name = combining(combiner, elements[0])

    def combine(left: Sequence[Ref], right: Sequence[Ref], lanes: int) -> list[Ref]:
        return [apply(body, name, elements[0], lanes, (left[0], right[0]))]

    return combine


def _tree(
    body: KernelBody, elements: Sequence[str], lanes: int, refs: list[Ref], combine: Combine
) -> list[Ref]:
    """All lanes combined, halving the vectors as long as their length is even."""
    while lanes > 2 and lanes % 2 == 0:
        half = lanes // 2
        parts = []
        for first in (0, half):
            parts.append([
                body.shuffle(vector_text(e, lanes), r, "poison", range(first, first + half))
                for e, r in zip(elements, refs, strict=True)
            ])
        refs, lanes = combine(parts[0], parts[1], half), half
    scalars = [
        [
            body.value(f"extractelement {vector_text(e, lanes)} {r}, i64 {lane}")
            for e, r in zip(elements, refs, strict=True)
        ]
        for lane in range(lanes)
    ]
    total = scalars[0]
    for scalar in scalars[1:]:
        total = combine(total, scalar, 0)
    return total


@emits("kernel.reduce")
def reduce(body: KernelBody, op: Any) -> None:
    shapes = [shape_of(v.type) for v in op.sources]
    elements, lanes = [s.element for s in shapes], shapes[0].lanes
    if not lanes or op.dim >= (2 if shapes[0].rows else 1):
        raise InvalidIR(f"reduces dimension {op.dim} of {op.sources[0].type}", op=op)
    combine = _combiner(body, op.combiner, elements)
    rows = list(zip(*(body.rows(v) for v in op.sources), strict=True))
    if shapes[0].rows and op.dim == 0:
        total = list(rows[0])
        for row in rows[1:]:
            total = combine(total, row, lanes)
        body.assign(op.results, total)
        return
    reduced = [_reduce_row(body, op.combiner, elements, lanes, list(r), combine) for r in rows]
    if not shapes[0].rows:
        body.assign(op.results, reduced[0])
        return
    for number, result in enumerate(op.results):
        column = [r[number] for r in reduced]
        body[result] = _from_scalars(body, elements[number], column)


def _from_scalars(body: KernelBody, element: str, scalars: Sequence[Ref]) -> Ref:
    type_, ref = vector_text(element, len(scalars)), "poison"
    for lane, scalar in enumerate(scalars):
        ref = body.value(
            f"insertelement {type_} {ref}, {REGISTER[element]} {scalar}, i64 {lane}"
        )
    return ref


def _reduce_row(
    body: KernelBody, combiner: str, elements: Sequence[str], lanes: int, refs: list[Ref],
    combine: Combine,
) -> list[Ref]:
    if len(elements) == 2:
        return _tree(body, elements, lanes, refs, combine)
    element, name = elements[0], combining(combiner, elements[0])
    if element in NARROW_FLOATS:
        wide = converted(body, element, "f32", lanes, refs[0])
        wider = _combiner(body, combiner, ["f32"])
        total = _reduce_row(body, combiner, ["f32"], lanes, [wide], wider)
        return [converted(body, "f32", element, 0, total[0])]
    type_, scalar = vector_text(element, lanes), REGISTER[element]
    suffix = f"v{lanes}{'i64' if element == 'index' else element}"
    if name in ("addf", "mulf"):
        stem = "fadd" if name == "addf" else "fmul"
        start = constant_text(element, -0.0 if name == "addf" else 1.0)
        function = body.module.declare(
            f"llvm.vector.reduce.{stem}.{suffix}", scalar, (scalar, type_)
        )
        operands = f"({scalar} {start}, {type_} {refs[0]})"
        return [body.value(f"call reassoc {scalar} {function}{operands}")]
    if name in _REDUCTIONS:
        function_name = f"llvm.vector.reduce.{_REDUCTIONS[name]}.{suffix}"
        return [body.call(function_name, scalar, (type_, refs[0]))]
    return _tree(body, elements, lanes, refs, combine)


@emits("kernel.scan")
def scan(body: KernelBody, op: Any) -> None:
    """Each step combines every lane with the one 1, 2, 4... before it."""
    shapes = [shape_of(v.type) for v in op.sources]
    if shapes[0].rows or not shapes[0].lanes:
        raise InvalidIR("a scan on a cpu is of one vector", op=op)
    elements, lanes = [s.element for s in shapes], shapes[0].lanes
    refs = [body[v] for v in op.sources]
    narrow = elements[0] in NARROW_FLOATS and len(elements) == 1
    if narrow:
        refs, elements = [converted(body, elements[0], "f32", lanes, refs[0])], ["f32"]
    combine = _combiner(body, op.combiner, elements)
    distance = 1
    while distance < lanes:
        shift = [max(i - distance, 0) for i in range(lanes)]
        before = [
            body.shuffle(vector_text(e, lanes), r, "poison", shift)
            for e, r in zip(elements, refs, strict=True)
        ]
        keep = "<" + ", ".join(f"i1 {int(i >= distance)}" for i in range(lanes)) + ">"
        combined = combine(before, refs, lanes)
        refs = [
            body.value(f"select <{lanes} x i1> {keep}, {t} {new}, {t} {old}")
            for t, new, old in zip(
                [vector_text(e, lanes) for e in elements], combined, refs, strict=True
            )
        ]
        distance *= 2
    if narrow:
        refs = [converted(body, "f32", shapes[0].element, lanes, refs[0])]
    body.assign(op.results, refs)


@emits("kernel.transpose")
def transpose(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.source.type)
    size, text = shape.rows, shape.text
    if shape.lanes != size * op.together or size & (size - 1):
        raise InvalidIR(
            f"a cpu transposes square tiles with a power-of-two size, not {op.source.type}", op=op
        )
    rows = body.rows(op.source)
    if op.together > 1:
        text = f"<{size} x i{op.together * WIDTH[shape.element]}>"
        rows = [body.value(f"bitcast {shape.text} {row} to {text}") for row in rows]
    distance = 1
    while distance < size:
        # Exchange the off-diagonal blocks of this size in each pair of rows of blocks.
        high = [lane & distance for lane in range(size)]
        upper = [lane if not h else size + lane - distance for lane, h in enumerate(high)]
        lower = [lane + distance if not h else size + lane for lane, h in enumerate(high)]
        following = list(rows)
        for i in range(size):
            if not i & distance:
                a, b = rows[i], rows[i + distance]
                following[i] = body.shuffle(text, a, b, upper)
                following[i + distance] = body.shuffle(text, a, b, lower)
        rows = following
        distance *= 2
    if text != shape.text:
        rows = [body.value(f"bitcast {text} {row} to {shape.text}") for row in rows]
    body[op.transposed] = rows


@emits("kernel.splat")
def splat(body: KernelBody, op: Any) -> None:
    shape, short = shape_of(op.vector.type), shape_of(op.scalar.type)
    if short.lanes:
        body[op.vector] = _repeated(body, body[op.scalar], short, shape)
        return
    known = body.constants.get(op.scalar)
    if known is not None:
        body.constants[op.vector] = known
    ref = body.splat(shape.element, shape.lanes, body[op.scalar])
    body[op.vector] = [ref] * shape.rows if shape.rows else ref
    if _divides_others(op.vector) and divides_by_inverse(
        shape.element, shape.lanes, body.features
    ):
        one = constant_text(shape.element, 1.0)
        inverse = body.value(f"fdiv {REGISTER[shape.element]} {one}, {body[op.scalar]}")
        body.inverses[op.vector] = body.splat(shape.element, shape.lanes, inverse)


def _repeated(body: KernelBody, ref: Ref, short: Shape, shape: Shape) -> Ref:
    """A short vector again and again, as a number that fills each of a vector's lanes."""
    bits = short.lanes * WIDTH[short.element]
    number = body.value(f"bitcast {short.text} {ref} to i{bits}")
    wide = f"<{shape.lanes // short.lanes} x i{bits}>"
    first = body.value(f"insertelement {wide} poison, i{bits} {number}, i64 0")
    zeros = f"<{shape.lanes // short.lanes} x i32> zeroinitializer"
    filled = body.value(f"shufflevector {wide} {first}, {wide} poison, {zeros}")
    return body.value(f"bitcast {wide} {filled} to {shape.text}")


@emits("kernel.interleave")
def interleave(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.sources[0].type)
    refs, lanes = [body[v] for v in op.sources], shape.lanes
    if len(refs) == 3:
        # The third one beside what isn't there, so that both have as many lanes.
        wide = vector_text(shape.element, 2 * lanes)
        first = body.shuffle(shape.text, refs[0], refs[1], range(2 * lanes))
        second = body.shuffle(shape.text, refs[2], "poison", range(2 * lanes))
        starts = (0, lanes, 2 * lanes)
        order = [start + lane for lane in range(lanes) for start in starts]
        body[op.interleaved] = body.shuffle(wide, first, second, order)
        return
    if len(refs) & (len(refs) - 1):
        raise InvalidIR(f"a cpu interleaves 2, 3, 4 or 8 vectors, not {len(refs)}", op=op)
    while len(refs) > 1:
        half, text = len(refs) // 2, vector_text(shape.element, lanes)
        order = [lane for k in range(lanes) for lane in (k, lanes + k)]
        pairs = zip(refs[:half], refs[half:], strict=True)
        refs, lanes = [body.shuffle(text, a, b, order) for a, b in pairs], 2 * lanes
    body[op.interleaved] = refs[0]


def _divides_others(vector: Value) -> bool:
    """Whether an operation divides by this value alone."""
    return any(
        isinstance(user, arith.DivFOp) and user.operands[1] is vector is not user.operands[0]
        for user in vector.users
    )


@emits("kernel.iota")
def iota(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.vector.type)
    register = REGISTER[shape.element]

    def row(numbers: Sequence[int]) -> Ref:
        texts = [f"{register} {constant_text(shape.element, n)}" for n in numbers]
        return f"<{', '.join(texts)}>"

    if not shape.rows:
        body[op.vector] = row(range(shape.lanes))
    elif op.dim == 1:
        body[op.vector] = [row(range(shape.lanes))] * shape.rows
    else:
        body[op.vector] = [row([r] * shape.lanes) for r in range(shape.rows)]


def _row_number(body: KernelBody, op: Any, rows: int) -> int:
    number = body.constants.get(op.lane)
    if number is None or not 0 <= number < rows:
        raise InvalidIR("a row of a tile is named by a constant below its number of rows", op=op)
    return number


@emits("kernel.extract")
def extract(body: KernelBody, op: Any) -> None:
    """A lane of a vector, or a row of a tile."""
    shape = shape_of(op.vector.type)
    if shape.rows:
        body[op.scalar] = body.rows(op.vector)[_row_number(body, op, shape.rows)]
        return
    body[op.scalar] = body.value(
        f"extractelement {shape.text} {body[op.vector]}, i64 {body[op.lane]}"
    )


@emits("kernel.insert")
def insert(body: KernelBody, op: Any) -> None:
    """A lane of a vector replaced, or a row of a tile."""
    shape = shape_of(op.vector.type)
    if shape.rows:
        rows = list(body.rows(op.vector))
        rows[_row_number(body, op, shape.rows)] = body[op.scalar]
        body[op.inserted] = rows
        return
    body[op.inserted] = body.value(
        f"insertelement {shape.text} {body[op.vector]}, "
        f"{REGISTER[shape.element]} {body[op.scalar]}, i64 {body[op.lane]}"
    )
