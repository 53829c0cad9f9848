"""Rules for what is more than one instruction: division, shifts, conversions, bits of floats.

A rule records straight-line code for one element type and lane count; the recording is pasted at
each use, as the functions of `vector_math` are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from irc.codegen.llvm.kernel_writer import NARROW_FLOATS, WIDTH
from irc.codegen.llvm.vector_math import DEFINITIONS, Template
from irc.codegen.math import conversions
from irc.codegen.math.code import Code, Lane
from irc.dialects.math import philox
from irc.target.cpu import TargetFeatures

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


@_rule("philox")
def _philox(code: Code, seed: Lane, sequence: Lane, number: Lane) -> Lane:
    """Ten rounds on the four words of the counter, each an i64 below 2**32."""
    low = (1 << 32) - 1
    upper = functools.partial(code.logical_shift_right, right=32)
    group = code.logical_shift_right(number, 2)
    words = [group & low, upper(group), sequence & low, upper(sequence)]
    keys = [seed & low, upper(seed)]
    for _ in range(philox.ROUNDS):
        first, second = words[0] * philox.FACTORS[0], words[2] * philox.FACTORS[1]
        words = [
            upper(second) ^ words[1] ^ keys[0], second & low,
            upper(first) ^ words[3] ^ keys[1], first & low,
        ]  # fmt: skip
        keys = [(key + step) & low for key, step in zip(keys, philox.STEPS, strict=True)]
    even = code.equal(number & 1, 0)
    halves = [code.select(even, *words[k : k + 2]) for k in (0, 2)]
    return code.select(code.equal(number & 2, 0), *halves)


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


def _whole(name: str) -> Callable[..., Lane]:
    """What emits a function of f64 that leaves no lanes to libm."""
    definition = DEFINITIONS[name, "f64"]
    assert definition.emit is not None and definition.libm is None
    return cast("Callable[..., Lane]", definition.emit)


@_rule("erfinv")
def _erfinv(code: Code, x: Lane) -> Lane:
    """f64: f32's central and tail series with their argument in f64, then Halley's steps on
    erfc(y) - (1 - |x|), which keeps its digits where erf(y) - x has none."""
    erfc, exp, log, erf = (_whole(name) for name in ("erfc", "exp", "log", "erf"))
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
    return "i64" if element == "index" else conversions.carrier(element)
