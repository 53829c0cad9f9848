"""Arithmetic and elementary functions, lane by lane: the arith and math dialects.

Most operations are one instruction. The others are recorded once per element type and lane count
and pasted, as the functions of `vector_math` are. 16-bit floats are computed in f32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from irc.codegen.llvm.kernel_writer import (
    FLOATS,
    NARROW_FLOATS,
    REGISTER,
    WIDTH,
    KernelBody,
    Ref,
    constant_text,
    emits,
    expand,
    shape_of,
    splat_text,
    vector_text,
)
from irc.codegen.llvm.math import conversions
from irc.codegen.llvm.math.code import Code, Lane
from irc.codegen.llvm.target import TargetFeatures
from irc.codegen.llvm.vector_math import (
    DEFINITIONS,
    Template,
    conversion_template,
    function_template,
)
from irc.dialects import arith, math
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import element_bytes

#: One instruction. Only `contract` is granted to floats: a product and a sum may become an fma.
INSTRUCTIONS = {
    "addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor",
    "addf": "fadd contract", "subf": "fsub contract", "mulf": "fmul contract", "divf": "fdiv",
    "negf": "fneg",
}  # fmt: skip
_NO_WRAP = {"addi", "subi", "muli"}
#: Functions of `vector_math`, where its name differs from the operation's.
FUNCTIONS = {
    "remf": "fmod", "minimumf": "minimum", "maximumf": "maximum", "minnumf": "fmin",
    "maxnumf": "fmax", "powf": "pow", "absf": "abs", "roundeven": "round",
}  # fmt: skip
_TESTS = frozenset({"isnan", "isinf"})

Rule = Callable[..., Lane]
RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


# -- integers


def _safe_divisor(code: Code, b: Lane, signed: bool) -> Lane:
    """`b`, but 1 where a division would trap: by 0, and of the smallest integer by -1."""
    bad = code.equal(b, 0)
    if signed:
        bad = bad | code.equal(b, -1)
    return code.select(bad, 1, b)


def _through_float(code: Code, a: Lane, b: Lane, signed: bool) -> Lane:
    """The quotient by float division, which is exact: f64 has more than twice the digits of an
    i32, f32 of an i16, so a quotient that isn't whole never rounds up to the next integer."""
    wide = "f64" if WIDTH[a.element] == 32 else "f32"
    to, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    return code.cast(back, code.cast(to, a, wide) / code.cast(to, b, wide), a.element)


def _quotient(code: Code, a: Lane, b: Lane, signed: bool, safe: bool, counts: bool) -> Lane:
    divisor = b if safe else _safe_divisor(code, b, signed)
    if code.lanes and counts and code.features.has_avx512:
        # Positions stay below 2**52, so f64 divides them as exactly; i64 would go lane by lane.
        quotient = code.cast("sitofp", a, "f64") / code.cast("sitofp", divisor, "f64")
        quotient = code.cast("fptosi", quotient, a.element)
    elif code.lanes and not safe and 8 <= WIDTH[a.element] <= 32:
        quotient = _through_float(code, a, divisor, signed)
    else:
        quotient = code.integer("sdiv" if signed else "udiv", a, divisor)
    if signed and not safe:
        quotient = code.select(code.equal(b, -1), 0 - a, quotient)
    return quotient


@_rule("divsi")
def _divsi(code: Code, a: Lane, b: Lane, safe: bool, counts: bool) -> Lane:
    return _quotient(code, a, b, True, safe, counts)


@_rule("divui")
def _divui(code: Code, a: Lane, b: Lane, safe: bool, counts: bool) -> Lane:
    return _quotient(code, a, b, False, safe, counts)


def _rounded_quotient(
    code: Code, a: Lane, b: Lane, safe: bool, counts: bool, down: bool
) -> Lane:
    quotient = _quotient(code, a, b, True, safe, counts)
    divisor = b if safe else code.select(code.equal(b, 0), 1, b)
    rest = a - quotient * divisor
    opposite = code.compare("slt", rest ^ divisor, 0)
    inexact = code.compare("ne", rest, 0)
    if down:
        return code.select(opposite & inexact, quotient - 1, quotient)
    return code.select(~opposite & inexact, quotient + 1, quotient)


@_rule("floordivsi")
def _floordivsi(code: Code, a: Lane, b: Lane, safe: bool, counts: bool) -> Lane:
    return _rounded_quotient(code, a, b, safe, counts, True)


@_rule("ceildivsi")
def _ceildivsi(code: Code, a: Lane, b: Lane, safe: bool, counts: bool) -> Lane:
    return _rounded_quotient(code, a, b, safe, counts, False)


@_rule("remsi", "remui")
def _remainder(code: Code, a: Lane, b: Lane, safe: bool, counts: bool, signed: bool) -> Lane:
    if safe and not (counts and code.lanes):
        return code.integer("srem" if signed else "urem", a, b)
    divisor = b if safe else code.select(code.equal(b, 0), 1, b)
    return a - _quotient(code, a, b, signed, safe, counts) * divisor


@_rule("shli")
def _shli(code: Code, a: Lane, b: Lane) -> Lane:
    inside = code.compare("ult", b, WIDTH[a.element])
    return code.select(inside, a << code.select(inside, b, 0), 0)


@_rule("shrui")
def _shrui(code: Code, a: Lane, b: Lane) -> Lane:
    inside = code.compare("ult", b, WIDTH[a.element])
    return code.select(inside, code.logical_shift_right(a, code.select(inside, b, 0)), 0)


@_rule("shrsi")
def _shrsi(code: Code, a: Lane, b: Lane) -> Lane:
    last = WIDTH[a.element] - 1
    return a >> code.select(code.compare("ult", b, last), b, last)


def _extreme(name: str, predicate: str) -> None:
    @_rule(name)
    def extreme(code: Code, a: Lane, b: Lane) -> Lane:
        return code.select(code.compare(predicate, a, b), a, b)


for _name, _predicate in (("minsi", "slt"), ("maxsi", "sgt"), ("minui", "ult"), ("maxui", "ugt")):
    _extreme(_name, _predicate)


@_rule("absi")
def _absi(code: Code, x: Lane) -> Lane:
    return code.select(code.compare("slt", x, 0), 0 - x, x)


# -- floats


@_rule("fma")
def _fma(code: Code, a: Lane, b: Lane, c: Lane) -> Lane:
    return code.fma(a, b, c)


@_rule("nextafter")
def _nextafter(code: Code, x: Lane, y: Lane, element: str) -> Lane:
    """On the bits, which count as the floats do; compared in f32 when they are 16."""
    bits, other = code.bits(x), code.bits(y)
    if element in NARROW_FLOATS:
        x, y = (convert(code, v, element, "f32") for v in (x, y))
    away = code.compare("olt", x, y) ^ code.compare("slt", bits, 0)
    step = code.select(away, bits + 1, bits - 1)
    sign = other & -(1 << (WIDTH[element] - 1))
    step = code.select(code.equal(x, 0.0), sign | 1, step)
    step = code.select(code.equal(x, y), other, step)
    total = code.bits(convert(code, x + y, x.element, element))
    return code.from_bits(code.select(code.compare("uno", x, y), total, step), _carried(element))


@_rule("erfinv")
def _erfinv(code: Code, x: Lane) -> Lane:
    """f64: f32's central and tail series with their argument in f64, then Halley's steps on
    erfc(y) - (1 - |x|), which keeps its digits where erf(y) - x has none."""
    erfc, exp, log, erf = (DEFINITIONS[n, "f64"].emit for n in ("erfc", "exp", "log", "erf"))
    assert erfc and exp and log and erf
    a = code.absolute(x)
    w = -log(code, (1.0 - a) * (1.0 + a))
    # Winitzki's closed form, within 0.2 percent everywhere.
    half = 2.0 / (3.141592653589793 * 0.147) - w * 0.5
    y = code.sqrt(code.sqrt(half * half + w / 0.147) - half)
    for _ in range(3):
        near = erf(code, y) - a
        far = (1.0 - a) - erfc(code, y)
        error = code.select(code.compare("olt", a, 0.5), near, far)
        step = error / (exp(code, -(y * y)) * 1.1283791670955126)
        y = y - step / (code.fma(y, step, 1.0))
    y = code.select(code.equal(a, 0.0), a, y)
    y = code.select(code.equal(a, 1.0), float("inf"), y)
    y = code.select(code.compare("ule", a, 1.0), y, float("nan"))
    return code.copysign(y, x)


# -- conversions


def convert(code: Code, value: Lane, source: str, target: str) -> Lane:
    """`value` of one float type as another."""
    return conversions.convert(code, value, source, target)


def _float_to_integer(code: Code, x: Lane, source: str, target: str, opcode: str) -> Lane:
    """Out of range: some value, and not poison."""
    if source in NARROW_FLOATS:
        x = convert(code, x, source, "f32")
    width = WIDTH[target]
    through = f"i{max(width, 32)}"
    whole = code.cast(opcode, x, through)
    whole = code.record(f"freeze {code.type(through)} {whole.ref}", through)
    return whole if width >= 32 else code.cast("trunc", whole, f"i{width}")


@_rule("fptosi")
def _fptosi(code: Code, x: Lane, source: str, target: str) -> Lane:
    return _float_to_integer(code, x, source, target, "fptosi")


@_rule("fptoui")
def _fptoui(code: Code, x: Lane, source: str, target: str) -> Lane:
    # Numbers below 2**16 and their negatives, which wrap as eager's do, fit a signed i32.
    return _float_to_integer(
        code, x, source, target, "fptosi" if WIDTH[target] < 32 else "fptoui"
    )


@_rule("sitofp", "uitofp")
def _integer_to_float(code: Code, x: Lane, source: str, target: str, signed: bool) -> Lane:
    through = "f64" if target == "f64" else "f32"
    value = code.cast("sitofp" if signed else "uitofp", x, through)
    return convert(code, value, through, target)


# -- recording


@functools.lru_cache(maxsize=8192)
def rule_template(
    name: str,
    elements: tuple[str, ...],
    lanes: int,
    features: TargetFeatures,
    extra: tuple[Any, ...],
) -> Template:
    """The recording of a rule for operands of `elements`; `extra` are its further arguments."""
    code = Code(lanes, features)
    operands = [Lane(code, _carried(e), f"${i}") for i, e in enumerate(elements)]
    if elements[0] in NARROW_FLOATS and name not in ("fptosi", "fptoui", "nextafter"):
        narrow = elements[0]
        operands = [convert(code, o, narrow, "f32") for o in operands]
        result = convert(code, RULES[name](code, *operands, *extra), "f32", narrow)
    else:
        result = RULES[name](code, *operands, *extra)
    return Template(
        "\n  ".join(code.lines), result.ref, result.element, None, tuple(code.declarations.items())
    )


def _carried(element: str) -> str:
    return {"bf16": "i16", "index": "i64"}.get(element, element)


def converted(body: KernelBody, source: str, target: str, lanes: int, ref: Ref) -> Ref:
    """A float of one type as another."""
    template = conversion_template(source, target, lanes, body.features)
    return body.paste(template, lanes, (ref,))[0] if source != target else ref


# -- one operation on registers


def apply(
    body: KernelBody, name: str, element: str, lanes: int, refs: Sequence[Ref],
    second: int | None = None,
) -> Ref:
    """The arith or math operation `name` on operands of one element type, lane by lane.

    `second`: the value of the second operand when it is a known integer.
    """
    if element == "i1":
        name = _ON_BOOL.get(name, name)
    instruction = INSTRUCTIONS.get(name)
    if instruction is not None:
        if element in NARROW_FLOATS:
            return _apply_widened(body, name, element, lanes, refs)
        if element == "index" and name in _NO_WRAP:
            instruction += " nsw"
        operands = ", ".join(refs)
        return body.value(f"{instruction} {vector_text(element, lanes)} {operands}")
    if name in _DIVISIONS:
        return _divide(body, name, element, lanes, refs, second)
    if name in _SHIFTS and second is not None and 0 <= second < WIDTH[element]:
        return body.value(f"{_SHIFTS[name]} {vector_text(element, lanes)} {refs[0]}, {refs[1]}")
    if name in RULES and not (name == "erfinv" and element != "f64"):
        extra = (element,) if name == "nextafter" else ()
        template = rule_template(name, (element,) * len(refs), lanes, body.features, extra)
        return body.paste(template, lanes, refs)[0]
    return function(body, FUNCTIONS.get(name, name), element, lanes, refs)


#: On bools the integer operations are these; i1 is 0 or 1, and its order false before true.
_ON_BOOL = {
    "minsi": "andi", "minui": "andi", "maxsi": "ori", "maxui": "ori", "shrsi": "shrui",
}  # fmt: skip
_SHIFTS = {"shli": "shl", "shrsi": "ashr", "shrui": "lshr"}
_DIVISIONS = frozenset({"divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui"})


def _divide(
    body: KernelBody, name: str, element: str, lanes: int, refs: Sequence[Ref], second: int | None
) -> Ref:
    if name == "floordivsi" and second is not None and second > 0 and not second & (second - 1):
        shift = splat_text(element, lanes, str(second.bit_length() - 1))
        return body.value(f"ashr {vector_text(element, lanes)} {refs[0]}, {shift}")
    # A size or stride never is 0 where it divides.
    safe = (element == "index" and not lanes) if second is None else second not in (0, -1)
    extra: tuple[Any, ...] = (safe, element == "index")
    if name in ("remsi", "remui"):
        extra = (*extra, name == "remsi")
    template = rule_template(name, (element,) * 2, lanes, body.features, extra)
    return body.paste(template, lanes, refs)[0]


def _apply_widened(
    body: KernelBody, name: str, element: str, lanes: int, refs: Sequence[Ref]
) -> Ref:
    wide = [converted(body, element, "f32", lanes, r) for r in refs]
    return converted(body, "f32", element, lanes, apply(body, name, "f32", lanes, wide))


def function(
    body: KernelBody, name: str, element: str, lanes: int, refs: Sequence[Ref]
) -> Ref:
    """A function of `vector_math`; it may start another basic block. Raises InvalidIR for a
    function that it lacks on the type."""
    if element in NARROW_FLOATS:
        wide = [converted(body, element, "f32", lanes, r) for r in refs]
        result = function(body, name, "f32", lanes, wide)
        return result if name in _TESTS else converted(body, "f32", element, lanes, result)
    definition = DEFINITIONS.get((name, element))
    if definition is None:
        raise InvalidIR(f"there is no function '{name}' of {element} for a cpu")
    through_double = element == "f32" and not definition.exact and definition.emit is not None
    if body.module.precise and through_double and (name, "f64") in DEFINITIONS:
        wide = [converted(body, "f32", "f64", lanes, r) for r in refs]
        return converted(body, "f64", "f32", lanes, function(body, name, "f64", lanes, wide))
    if definition.emit is None:
        return _libm(body, str(definition.libm), element, lanes, refs)
    template = function_template(name, element, lanes, body.features, (element,) * len(refs))
    fast, prefix = body.paste(template, lanes, refs)
    if template.rare is None:
        return fast
    before, slow, done = body.block, body.name("rare"), body.name("done")
    body.branch(expand(template.rare, prefix, refs), slow, done)
    body.open(slow)
    mended = _libm(body, str(definition.libm), element, lanes, refs)
    body.jump(done)
    body.open(done)
    return body.phi(vector_text(element, lanes), (fast, before), (mended, slow))


def _libm(body: KernelBody, libm: str, element: str, lanes: int, refs: Sequence[Ref]) -> Ref:
    """libm's function of each lane, through a function of the module that loops over them."""
    symbol = libm + ("f" if element == "f32" else "")
    kind, scalar = vector_text(element, lanes), REGISTER[element]
    operands = [(kind, r) for r in refs]
    if not lanes:
        return body.call(symbol, kind, *operands)
    body.module.declare(symbol, scalar, [scalar] * len(refs))
    name = f"irc.lanes.{symbol}.v{lanes}"
    if name not in body.module.helpers:
        body.module.helpers[name] = _lane_loop(name, symbol, kind, scalar, lanes, len(refs))
    passed = ", ".join(f"{t} {r}" for t, r in operands)
    return body.value(f"call {kind} @{name}({passed})")


def _lane_loop(name: str, symbol: str, kind: str, scalar: str, lanes: int, arity: int) -> str:
    parameters = ", ".join(f"{kind} %a{i}" for i in range(arity))
    passed = ", ".join(f"{scalar} %x{i}" for i in range(arity))
    extracts = "\n".join(
        f"  %x{i} = extractelement {kind} %a{i}, i32 %lane" for i in range(arity)
    )
    return f"""define internal {kind} @{name}({parameters}) noinline nounwind {{
entry:
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %following, %loop ]
  %partial = phi {kind} [ poison, %entry ], [ %result, %loop ]
{extracts}
  %y = call {scalar} @{symbol}({passed})
  %result = insertelement {kind} %partial, {scalar} %y, i32 %lane
  %following = add i32 %lane, 1
  %more = icmp ult i32 %following, {lanes}
  br i1 %more, label %loop, label %done
done:
  ret {kind} %result
}}"""


# -- the operations


def _operand_rows(body: KernelBody, op: Any) -> list[tuple[Ref, ...]]:
    contents = [body.contents[v] for v in op._operands]
    if isinstance(contents[0], list):
        return list(zip(*contents, strict=True))
    return [tuple(contents)]  # type: ignore[arg-type]


def _set_rows(body: KernelBody, op: Any, refs: list[Ref]) -> None:
    result = op.results[0]
    body[result] = refs if shape_of(result.type).rows else refs[0]


def _names(base: type, *modules: Any) -> list[str]:
    """The operations defined in the modules with this base class."""
    return [
        cls.name
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, base) and not cls.abstract
    ]


_ARITHMETIC = [
    *_names(arith._IntegerBinary, arith), *_names(arith._FloatBinary, arith),
    *_names(math._Unary, math), *_names(math._Binary, math), *_names(math._Test, math),
    "arith.negf", "math.absi", "math.fma",
]  # fmt: skip


def _arithmetic(name: str) -> None:
    @emits(name)
    def handler(body: KernelBody, op: Any) -> None:
        shape = shape_of(op._operands[0].type)
        second = body.constants.get(op._operands[1]) if len(op._operands) == 2 else None
        local = name.partition(".")[2]
        _set_rows(body, op, [
            apply(body, local, shape.element, shape.lanes, row, second)
            for row in _operand_rows(body, op)
        ])


for _name in _ARITHMETIC:
    _arithmetic(_name)


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
    import struct

    if element == "f64":
        return f"0x{int.from_bytes(data, 'little'):016X}"
    if element == "f32":
        return constant_text("f32", struct.unpack("<f", data)[0])
    if element == "f16":
        return f"0xH{int.from_bytes(data, 'little'):04X}"
    number = int.from_bytes(data, "little", signed=element != "i1")
    return constant_text(element, number) if element != "bf16" else str(number)


@emits("arith.cmpi", "arith.cmpf")
def compare(body: KernelBody, op: Any) -> None:
    shape = shape_of(op._operands[0].type)
    opcode = "icmp" if op.name == "arith.cmpi" else "fcmp"
    refs = []
    for a, b in _operand_rows(body, op):
        element = shape.element
        if element in NARROW_FLOATS:
            a, b = (converted(body, element, "f32", shape.lanes, r) for r in (a, b))
            element = "f32"
        kind = vector_text(element, shape.lanes)
        refs.append(body.value(f"{opcode} {op.predicate} {kind} {a}, {b}"))
    _set_rows(body, op, refs)


@emits("arith.select")
def select(body: KernelBody, op: Any) -> None:
    kind = shape_of(op._operands[1].type).text
    test = shape_of(op._operands[0].type)
    conditions = body.rows(op._operands[0])
    choices = list(zip(body.rows(op._operands[1]), body.rows(op._operands[2]), strict=True))
    if len(conditions) < len(choices):
        conditions = conditions * len(choices)
    _set_rows(body, op, [
        body.value(f"select {test.text} {c}, {kind} {a}, {kind} {b}")
        for c, (a, b) in zip(conditions, choices, strict=True)
    ])


def _cast(body: KernelBody, op: Any, convert_row: Callable[[Ref], Ref]) -> None:
    _set_rows(body, op, [convert_row(row) for row in body.rows(op._operands[0])])


@emits("arith.extf", "arith.truncf")
def convert_float(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op._operands[0].type), shape_of(op.results[0].type)

    def row(ref: Ref) -> Ref:
        return converted(body, source.element, target.element, source.lanes, ref)

    _cast(body, op, row)


@emits("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
def convert_integer(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op._operands[0].type), shape_of(op.results[0].type)
    before, after = WIDTH[source.element], WIDTH[target.element]
    opcode = "zext" if op.name in ("arith.extui", "arith.index_castui") else "sext"
    known = body.constants.get(op._operands[0])
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
    source, target = shape_of(op._operands[0].type), shape_of(op.results[0].type)
    name = op.name.partition(".")[2]
    extra: tuple[Any, ...] = (source.element, target.element)
    if name in ("sitofp", "uitofp"):
        extra = (*extra, name == "sitofp")
    template = rule_template(name, (source.element,), source.lanes, body.features, extra)
    _cast(body, op, lambda ref: body.paste(template, source.lanes, (ref,))[0])


@emits("arith.bitcast")
def bitcast(body: KernelBody, op: Any) -> None:
    source, target = shape_of(op._operands[0].type), shape_of(op.results[0].type)

    def row(ref: Ref) -> Ref:
        if source.text == target.text:
            return ref
        return body.value(f"bitcast {source.text} {ref} to {target.text}")

    _cast(body, op, row)
