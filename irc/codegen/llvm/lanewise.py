"""One arithmetic operation or elementary function on registers, lane by lane.

Most operations are one instruction; the others are rules (`arith_rules`) or functions of
`vector_math`. 16-bit floats are computed in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.codegen.llvm.arith_rules import RULES, rule_template
from irc.codegen.llvm.kernel_writer import (
    NARROW_FLOATS,
    REGISTER,
    WIDTH,
    KernelBody,
    Ref,
    expand,
    splat_text,
    vector_text,
)
from irc.codegen.llvm.vector_math import (
    DEFINITIONS,
    bf16_rounding_template,
    conversion_template,
    division_template,
    function_template,
)
from irc.ir.diagnostics import InvalidIR

#: One instruction. Only `contract` is granted to floats: a product and a sum may become an fma.
#: Not a difference: one rounded product and one that isn't wouldn't cancel where eager's do.
INSTRUCTIONS = {
    "addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor",
    "addf": "fadd contract", "subf": "fsub", "mulf": "fmul contract", "divf": "fdiv",
    "negf": "fneg",
}  # fmt: skip
_NO_WRAP = {"addi", "subi", "muli"}
#: Functions of `vector_math`, where its name differs from the operation's.
FUNCTIONS = {
    "remf": "fmod", "minimumf": "minimum", "maximumf": "maximum", "minnumf": "fmin",
    "maxnumf": "fmax", "powf": "pow", "absf": "abs", "roundeven": "round",
}  # fmt: skip
_TESTS = frozenset({"isnan", "isinf"})


def converted(body: KernelBody, source: str, target: str, lanes: int, ref: Ref) -> Ref:
    """A float of one type as another; it may start another basic block."""
    if source == target:
        return ref
    template = conversion_template(source, target, lanes, body.features)
    short = bf16_rounding_template(lanes, body.features) if target == "bf16" else None
    if source != "f32" or short is None:
        return body.paste(template, lanes, (ref,))[0]
    fast, prefix = body.paste(short, lanes, (ref,))
    return _mended(
        body, expand(str(short.rare), prefix, (ref,)), vector_text("bf16", lanes), fast,
        lambda: body.paste(template, lanes, (ref,))[0],
    )


def _mended(
    body: KernelBody, rare: Ref, type_: str, fast: Ref, slow: Callable[[], Ref]
) -> Ref:
    """`fast`, or `slow()` where the scalar condition `rare` holds."""
    before, other, done = body.block, body.name("rare"), body.name("done")
    body.branch(rare, other, done, unlikely=True)
    body.open(other)
    mended = slow()
    last = body.block
    body.jump(done)
    body.open(done)
    return body.phi(type_, (fast, before), (mended, last))


def divided(
    body: KernelBody, element: str, lanes: int, x: Ref, divisor: Ref, inverse: Ref
) -> Ref:
    """x / divisor by means of 1 / divisor; it starts another basic block."""
    refs = (x, divisor, inverse)
    type_ = vector_text(element, lanes)
    template = division_template(element, lanes, body.features)
    fast, prefix = body.paste(template, lanes, refs)
    return _mended(
        body, expand(str(template.rare), prefix, refs), type_, fast,
        lambda: body.value(f"fdiv {type_} {x}, {divisor}"),
    )


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
    safe = second is not None and second not in (0, -1)
    if element == "index" and not lanes and second is None:
        # A size may be 0 where its quotient is never used: the loop over it has no turn.
        zero = body.value(f"icmp eq i64 {refs[1]}, 0")
        refs, safe = (refs[0], body.value(f"select i1 {zero}, i64 1, i64 {refs[1]}")), True
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
    return _mended(
        body, expand(template.rare, prefix, refs), vector_text(element, lanes), fast,
        lambda: _libm(body, str(definition.libm), element, lanes, refs),
    )


def _libm(body: KernelBody, libm: str, element: str, lanes: int, refs: Sequence[Ref]) -> Ref:
    """libm's function of each lane, through a function of the module that loops over them."""
    symbol = libm + ("f" if element == "f32" else "")
    type_, scalar = vector_text(element, lanes), REGISTER[element]
    operands = [(type_, r) for r in refs]
    if not lanes:
        return body.call(symbol, type_, *operands)
    body.module.declare(symbol, scalar, [scalar] * len(refs))
    name = f"irc.lanes.{symbol}.v{lanes}"
    if name not in body.module.helpers:
        body.module.helpers[name] = _lane_loop(name, symbol, type_, scalar, lanes, len(refs))
    passed = ", ".join(f"{t} {r}" for t, r in operands)
    return body.value(f"call {type_} @{name}({passed})")


def _lane_loop(name: str, symbol: str, type_: str, scalar: str, lanes: int, arity: int) -> str:
    parameters = ", ".join(f"{type_} %a{i}" for i in range(arity))
    passed = ", ".join(f"{scalar} %x{i}" for i in range(arity))
    extracts = "\n".join(
        f"  %x{i} = extractelement {type_} %a{i}, i32 %lane" for i in range(arity)
    )
    return f"""define internal {type_} @{name}({parameters}) noinline nounwind {{
entry:
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %following, %loop ]
  %partial = phi {type_} [ poison, %entry ], [ %result, %loop ]
{extracts}
  %y = call {scalar} @{symbol}({passed})
  %result = insertelement {type_} %partial, {scalar} %y, i32 %lane
  %following = add i32 %lane, 1
  %more = icmp ult i32 %following, {lanes}
  br i1 %more, label %loop, label %done
done:
  ret {type_} %result
}}"""
