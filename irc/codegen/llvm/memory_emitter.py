"""Loads, stores, gathers and scatters of kernels, whole and masked, and scratch memory.

Masked vectors use LLVM's masked intrinsics on every target: instructions where there are some,
branches lane by lane where there are none (8- and 16-bit elements below AVX-512). Memory is
aligned to its elements only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.codegen.llvm.kernel_writer import (
    FLOATS,
    REGISTER,
    WIDTH,
    KernelBody,
    Ref,
    Shape,
    emits,
    shape_of,
    splat_text,
    vector_text,
)
from irc.codegen.llvm.lanewise import apply
from irc.dialects import arith
from irc.dialects.kernel import PointerType
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import Type


def memory_element(element: str) -> str:
    """The element as it lies in memory: a bool is a byte."""
    return "i8" if element == "i1" else element


def _align(element: str) -> int:
    return max(WIDTH[element] // 8, 1)


def _suffix(element: str, lanes: int) -> str:
    register = REGISTER[element]
    return f"v{lanes}{ {'double': 'f64', 'float': 'f32', 'half': 'f16'}.get(register, register)}"


def combining(combiner: str, element: str) -> str:
    """The arith operation of a combiner. Raises InvalidIR for an unknown one."""
    if element == "i1":
        form = _BOOL_COMBINERS.get(combiner)
    elif element in FLOATS:
        form = _FLOAT_COMBINERS.get(combiner)
    else:
        form = _INTEGER_COMBINERS.get(combiner)
    if form is None:
        raise InvalidIR(f"there is no combiner '{combiner}' of {element}")
    return form


_FLOAT_COMBINERS = {"sum": "addf", "prod": "mulf", "min": "minimumf", "max": "maximumf"}
_INTEGER_COMBINERS = {
    "sum": "addi", "prod": "muli", "min": "minsi", "max": "maxsi", "any": "ori", "all": "andi",
    "xor": "xori",
}  # fmt: skip
_BOOL_COMBINERS = {
    "sum": "ori", "prod": "andi", "min": "andi", "max": "ori", "any": "ori", "all": "andi",
    "xor": "xori",
}  # fmt: skip


def address(body: KernelBody, pointer: Value, offset: Ref, checked: bool = True) -> Ref:
    """The address of element `offset`; `checked`: it is inside the array."""
    element = _pointed(pointer.type)
    if offset == "0":
        return body[pointer]
    inbounds = "inbounds " if checked else ""
    return body.value(
        f"getelementptr {inbounds}{REGISTER[element]}, ptr {body[pointer]}, i64 {offset}"
    )


def _pointed(type_: Type) -> str:
    assert isinstance(type_, PointerType)
    return memory_element(shape_of(type_.element).element)


def _from_memory(body: KernelBody, shape: Shape, ref: Ref) -> Ref:
    if shape.element != "i1":
        return ref
    zero = splat_text("i8", shape.lanes, "0")
    return body.value(f"icmp ne {vector_text('i8', shape.lanes)} {ref}, {zero}")


def _to_memory(body: KernelBody, shape: Shape, ref: Ref) -> Ref:
    if shape.element != "i1":
        return ref
    return body.value(f"zext {shape.text} {ref} to {vector_text('i8', shape.lanes)}")


def _check_element(op: Any, shape: Shape) -> str:
    element = memory_element(shape.element)
    if REGISTER[element] != REGISTER[_pointed(op.pointer.type)]:
        raise InvalidIR(f"{shape.element} at {op.pointer.type}", op=op)
    if shape.rows:
        raise InvalidIR("a tile is loaded and stored row by row on a cpu", op=op)
    return element


def _other(body: KernelBody, op: Any, shape: Shape) -> Ref:
    """What masked lanes give, as it would lie in memory."""
    if op.other is None:
        return _zero(shape)
    ref = body[op.other]
    if shape.lanes and not shape_of(op.other.type).lanes:
        ref = body.splat(shape.element, shape.lanes, ref)
    return _to_memory(body, shape, ref)


def _zero(shape: Shape) -> Ref:
    if shape.lanes:
        return "zeroinitializer"
    return "0.0" if shape.element in ("f64", "f32", "f16") else "0"


def _under(body: KernelBody, condition: Ref, then: Callable[[], None]) -> tuple[str, str]:
    """Write `then` where the scalar condition holds; gives the blocks before and at its end."""
    before, inside, done = body.block, body.name("then"), body.name("done")
    body.branch(condition, inside, done)
    body.open(inside)
    then()
    last = body.block
    body.jump(done)
    body.open(done)
    return before, last


def _load_under(body: KernelBody, op: Any, shape: Shape, load: Callable[[], Ref]) -> Ref:
    """`load()` where the scalar mask of the operation holds, else the other value."""
    type_ = vector_text(memory_element(shape.element), shape.lanes)
    other = _other(body, op, shape)
    loaded: list[Ref] = []
    before, last = _under(body, body[op.mask], lambda: loaded.append(load()))
    return body.phi(type_, (loaded[0], last), (other, before))


@emits("kernel.load")
def load(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.value.type)
    element = _check_element(op, shape)
    type_, align = vector_text(element, shape.lanes), _align(element)

    def whole() -> Ref:
        place = address(body, op.pointer, body[op.offset])
        return body.value(f"load {type_}, ptr {place}, align {align}")

    if op.mask is None:
        ref = whole()
    elif not shape_of(op.mask.type).lanes:
        ref = _load_under(body, op, shape, whole)
    else:
        place = address(body, op.pointer, body[op.offset], False)
        ref = body.call(
            f"llvm.masked.load.{_suffix(element, shape.lanes)}.p0", type_,
            ("ptr", place), ("i32", str(align)),
            (vector_text("i1", shape.lanes), _opaque_mask(body, op.mask, element, shape.lanes)),
            (type_, _other(body, op, shape)),
        )  # fmt: skip
    body[op.value] = _from_memory(body, shape, ref)


@emits("kernel.load_strided")
def load_strided(body: KernelBody, op: Any) -> None:
    """Whole vectors that cover the elements, the last of which ends with the last of them, and a
    choice of two after the other."""
    shape, stride = shape_of(op.value.type), op.stride
    element, lanes = _check_element(op, shape), shape.lanes
    type_, align, step = vector_text(element, lanes), _align(element), abs(stride)
    span = (lanes - 1) * step + 1
    starts = [min(k * lanes, span - lanes) for k in range(step)]
    # Where each lane's element is in the span, which begins with the last where it goes backwards.
    picks = [lane * step if stride > 0 else span - 1 - lane * step for lane in range(lanes)]
    below = 0 if stride > 0 else 1 - span

    def whole() -> Ref:
        first = address(body, op.pointer, body[op.offset])
        parts = []
        for start in starts:
            place = body.value(
                f"getelementptr inbounds {REGISTER[element]}, ptr {first}, i64 {below + start}"
            )
            parts.append(body.value(f"load {type_}, ptr {place}, align {align}"))
        chosen, here = parts[0], [p if p < lanes else None for p in picks]
        for number in range(1, max(len(parts), 2)):
            part, start = (parts[number], starts[number]) if step > 1 else ("poison", span)
            mask = []
            for lane, pick in enumerate(picks):
                known = here[lane]
                if known is None and start <= pick < start + lanes:
                    known = lanes + pick - start
                mask.append("i32 poison" if known is None else f"i32 {known}")
                here[lane] = None if known is None else lane
            chosen = body.value(
                f"shufflevector {type_} {chosen}, {type_} {part}, "
                f"<{lanes} x i32> <{', '.join(mask)}>"
            )
        return chosen

    if op.mask is None:
        ref = whole()
    else:
        ref = _load_under(body, op, shape, whole)
    body[op.value] = _from_memory(body, shape, ref)


@emits("kernel.store")
def store(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.stored.type)
    element = _check_element(op, shape)
    type_, align = vector_text(element, shape.lanes), _align(element)
    ref = _to_memory(body, shape, body[op.stored])

    def whole() -> None:
        place = address(body, op.pointer, body[op.offset])
        body.line(f"store {type_} {ref}, ptr {place}, align {align}")

    if op.mask is None:
        whole()
    elif not shape_of(op.mask.type).lanes:
        _under(body, body[op.mask], whole)
    else:
        place = address(body, op.pointer, body[op.offset], False)
        ref = _apart(body, element, shape.lanes, ref)
        _intrinsic(
            body, f"llvm.masked.store.{_suffix(element, shape.lanes)}.p0",
            (type_, ref), ("ptr", place), ("i32", str(align)),
            (vector_text("i1", shape.lanes), body[op.mask]),
        )  # fmt: skip


def _opaque_mask(body: KernelBody, mask: Value, element: str, lanes: int) -> Ref:
    """The mask of a load, so that LLVM tells nothing of a register of lanes by itself: where it
    cuts a mask for AVX and finds that one part of what is combined there is no lane at all, it
    reads that register whole (seen in LLVM 22.1: what lies behind an array, as values, or it
    fails). It looks through all but a fence of floats, which is no instruction. A comparison alone
    it keeps right; stores, gathers and masks of AVX-512, too."""
    sets, width = body.features.sets, WIDTH[element]
    if "avx" not in sets or "avx512f" in sets or lanes * width <= body.features.vector_bits:
        return body[mask]
    if width < 32 or isinstance(mask.defining_op, (arith.CmpIOp, arith.CmpFOp)):
        return body[mask]
    integers, name = f"<{lanes} x i{width}>", "float" if width == 32 else "double"
    floats = f"<{lanes} x {name}>"
    wide = body.value(f"sext <{lanes} x i1> {body[mask]} to {integers}")
    held = body.value(f"bitcast {integers} {wide} to {floats}")
    kept = body.call(f"llvm.arithmetic.fence.v{lanes}f{width}", floats, (floats, held))
    lane = body.value(f"bitcast {floats} {kept} to {integers}")
    return body.value(f"icmp slt {integers} {lane}, zeroinitializer")


def _apart(body: KernelBody, element: str, lanes: int, ref: Ref) -> Ref:
    """A vector that is to be stored under a mask, so that LLVM doesn't narrow it as it stores it:
    under a mask of one lane that it knows, its code for AVX-512 (seen in LLVM 22.1) stores that one
    as wide as it was, over what lies behind. It looks through all but a fence of floats."""
    type_, bits = vector_text(element, lanes), WIDTH[element] * lanes
    if "avx512f" not in body.features.sets or bits % 16:
        return ref
    if REGISTER[element] not in ("i8", "i16", "i32"):
        return ref
    name, part, suffix = ("float", 32, "f32") if bits % 32 == 0 else ("half", 16, "f16")
    floats = f"<{bits // part} x {name}>"
    held = body.value(f"bitcast {type_} {ref} to {floats}")
    kept = body.call(f"llvm.arithmetic.fence.v{bits // part}{suffix}", floats, (floats, held))
    return body.value(f"bitcast {floats} {kept} to {type_}")


@emits("kernel.prefetch")
def prefetch(body: KernelBody, op: Any) -> None:
    place = address(body, op.pointer, body[op.offset], False)
    # For reading, into the second-level cache, data.
    _intrinsic(body, "llvm.prefetch.p0", ("ptr", place), ("i32", "0"), ("i32", "2"), ("i32", "1"))


def _intrinsic(body: KernelBody, name: str, *operands: tuple[str, Ref]) -> None:
    function = body.module.declare(name, "void", [t for t, _ in operands])
    body.line(f"call void {function}({', '.join(f'{t} {r}' for t, r in operands)})")


def _addresses(body: KernelBody, pointer: Value, offsets: Ref, lanes: int) -> tuple[str, Ref]:
    element = REGISTER[_pointed(pointer.type)]
    places = body.value(f"getelementptr {element}, ptr {body[pointer]}, <{lanes} x i64> {offsets}")
    return f"<{lanes} x ptr>", places


def _lane_mask(body: KernelBody, op: Any, lanes: int) -> tuple[str, Ref]:
    if op.mask is None:
        return f"<{lanes} x i1>", "splat (i1 true)"
    return f"<{lanes} x i1>", body[op.mask]


@emits("kernel.gather")
def gather(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.value.type)
    element = _check_element(op, shape)
    type_ = vector_text(element, shape.lanes)

    def whole() -> Ref:
        places = _addresses(body, op.pointer, body[op.offsets], shape.lanes)
        scalar_mask = op.mask is not None and not shape_of(op.mask.type).lanes
        mask = (f"<{shape.lanes} x i1>", "splat (i1 true)") if scalar_mask else _lane_mask(
            body, op, shape.lanes
        )
        other = _zero(shape) if scalar_mask else _other(body, op, shape)
        return body.call(
            f"llvm.masked.gather.{_suffix(element, shape.lanes)}.v{shape.lanes}p0", type_,
            places, ("i32", str(_align(element))), mask, (type_, other),
        )  # fmt: skip

    if op.mask is not None and not shape_of(op.mask.type).lanes:
        ref = _load_under(body, op, shape, whole)
    else:
        ref = whole()
    body[op.value] = _from_memory(body, shape, ref)


@emits("kernel.scatter")
def scatter(body: KernelBody, op: Any) -> None:
    shape = shape_of(op.stored.type)
    element = _check_element(op, shape)
    if shape_of(op.offsets.type).lanes != shape.lanes:
        raise InvalidIR("the offsets and the stored values differ in lanes", op=op)

    def whole() -> None:
        if not shape.lanes:
            _combine_at(body, op, shape.element, body[op.offsets], body[op.stored])
        elif op.combiner == "set":
            _scatter_set(body, op, shape, element)
        else:
            _scatter_loop(body, op, shape)

    if op.mask is not None and not shape_of(op.mask.type).lanes:
        _under(body, body[op.mask], whole)
    else:
        whole()


def _scatter_set(body: KernelBody, op: Any, shape: Shape, element: str) -> None:
    """LLVM orders the stores of masked.scatter from the first lane to the last."""
    ref = _to_memory(body, shape, body[op.stored])
    places = _addresses(body, op.pointer, body[op.offsets], shape.lanes)
    has_lanes = op.mask is None or shape_of(op.mask.type).lanes
    mask = _lane_mask(body, op, shape.lanes) if has_lanes else (
        f"<{shape.lanes} x i1>", "splat (i1 true)"
    )
    _intrinsic(
        body, f"llvm.masked.scatter.{_suffix(element, shape.lanes)}.v{shape.lanes}p0",
        (vector_text(element, shape.lanes), ref), places, ("i32", str(_align(element))), mask,
    )  # fmt: skip


def _combine_at(body: KernelBody, op: Any, element: str, offset: Ref, ref: Ref) -> None:
    """Combine a scalar into the element at `offset`."""
    shape = Shape(element, 0, 0, REGISTER[element])
    lies = memory_element(element)
    place = address(body, op.pointer, offset)
    if op.combiner != "set":
        old = body.value(f"load {REGISTER[lies]}, ptr {place}, align {_align(lies)}")
        old = _from_memory(body, shape, old)
        ref = apply(body, combining(op.combiner, element), element, 0, (old, ref))
    ref = _to_memory(body, shape, ref)
    body.line(f"store {REGISTER[lies]} {ref}, ptr {place}, align {_align(lies)}")


def _spill(body: KernelBody, element: str, lanes: int, ref: Ref) -> Ref:
    """The vector in memory, where reading a lane costs less than extracting it by its number."""
    room = body.alloca(REGISTER[element], lanes, 64)
    body.line(f"store {vector_text(element, lanes)} {ref}, ptr {room}, align 64")
    return room


def _lane(body: KernelBody, element: str, room: Ref, lane: Ref) -> Ref:
    register = REGISTER[element]
    place = body.value(f"getelementptr {register}, ptr {room}, i64 {lane}")
    return body.value(f"load {register}, ptr {place}, align {_align(element)}")


def _scatter_loop(body: KernelBody, op: Any, shape: Shape) -> None:
    """One lane after the other, so that lanes with one place combine in order."""
    lanes, lies = shape.lanes, memory_element(shape.element)
    scalar = Shape(shape.element, 0, 0, REGISTER[shape.element])
    offsets = _spill(body, "index", lanes, body[op.offsets])
    values = _spill(body, lies, lanes, _to_memory(body, shape, body[op.stored]))

    def combine(lane: Ref) -> None:
        value = _from_memory(body, scalar, _lane(body, lies, values, lane))
        _combine_at(body, op, shape.element, _lane(body, "index", offsets, lane), value)

    if op.mask is None or not shape_of(op.mask.type).lanes:
        for number in range(lanes):
            combine(str(number))
        return
    mask = body.value(f"zext <{lanes} x i1> {body[op.mask]} to <{lanes} x i8>")
    masks = _spill(body, "i8", lanes, mask)
    before, loop, done = body.block, body.name("lanes"), body.name("done")
    body.jump(loop)
    body.open(loop)
    lane, following = f"%{body.name('lane')}", f"%{body.name('next')}"
    at = len(body.lines)
    body.line("")
    keep = body.value(f"icmp ne i8 {_lane(body, 'i8', masks, lane)}, 0")
    _under(body, keep, lambda: combine(lane))
    body.line(f"{following} = add i64 {lane}, 1")
    more = body.value(f"icmp ult i64 {following}, {lanes}")
    body.lines[at] = f"  {lane} = phi i64 [ 0, %{before} ], [ {following}, %{body.block} ]"
    body.branch(more, loop, done)
    body.open(done)


@emits("kernel.scratch")
def scratch(body: KernelBody, op: Any) -> None:
    element = _pointed(op.pointer.type)
    body[op.pointer] = body.alloca(REGISTER[element], op.count, 64)
