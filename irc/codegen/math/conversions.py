"""Conversions between torch's scalar types, with the meaning of its C++ casts.

A type is named `f64 f32 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 i1` or as one of the 8-bit floats
of `irc.ir.floats.FORMATS`; bf16 and these are carried as the integers of their bits, and i1 is a
bool.  A float outside the range of an integer gives some integer, never poison:
what the machine's conversion gives, and narrow integers keep its low bits as torch's casts do.
"""

from __future__ import annotations

from irc.codegen.math.code import Code, Lane
from irc.ir.floats import FORMATS, float_bits

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
WIDTHS |= {"u8": 8, "u16": 16, "u32": 32, "u64": 64}
EIGHT_BIT = tuple(name for name in FORMATS if name.startswith("f8"))
REAL = ("f64", "f32", "f16", "bf16", *EIGHT_BIT)
TYPES = (*REAL, *WIDTHS)


def carrier(name: str) -> str:
    """The element that carries a value of the named type."""
    if name == "bf16":
        return "i16"
    if name in EIGHT_BIT:
        return "i8"
    return f"i{WIDTHS[name]}" if name in WIDTHS else name


def bf16_to_f32(code: Code, value: Lane) -> Lane:
    return code.from_bits(code.cast("zext", value, "i32") << 16, "f32")


def f32_to_bf16(code: Code, value: Lane) -> Lane:
    """To nearest even in integers: the hardware's conversion flushes denormals."""
    bits = code.bits(value)
    odd = code.logical_shift_right(bits, 16) & 1
    rounded = code.logical_shift_right(bits + odd + 0x7FFF, 16)
    return code.cast("trunc", code.select(code.is_nan(value), 0x7FC0, rounded), "i16")


def f32_cut_to_bf16(code: Code, value: Lane, half: int) -> Lane:
    """Its upper bits, after `half` was added to them: 0 rounds toward zero, 1 << 15 to the nearest
    and from half-way away from zero."""
    bits = code.bits(value)
    upper = code.logical_shift_right(bits + half if half else bits, 16)
    return code.cast("trunc", code.select(code.is_nan(value), 0x7FC0, upper), "i16")


def rounds_to_bf16(code: Code) -> bool:
    """Whether `f32_to_bf16_by_instruction` has its instruction."""
    return code.features.has_bf16 and code.features.has_avx512 and code.lanes == 16


def f32_to_bf16_by_instruction(code: Code, value: Lane) -> tuple[Lane, Lane]:
    """(bf16 by AVX-512's instruction, the lanes where that is wrong: denormals become zero)."""
    vector = code.type("f32")
    name = "llvm.x86.avx512bf16.cvtneps2bf16.512"
    code.declarations[name] = ("=<16 x bfloat>", ("f32",))
    rounded = code.record(f"call <16 x bfloat> @{name}({vector} {value.ref})", "bf16")
    test = "llvm.x86.avx512.fpclass.ps.512"
    code.declarations[test] = ("i1", ("f32", "=i32"))
    denormal = code.record(f"call {code.type('i1')} @{test}({vector} {value.ref}, i32 32)", "i1")
    return code.bits(rounded), denormal


def f16_to_f32(code: Code, value: Lane) -> Lane:
    if code.features.has_f16c:
        return code.cast("fpext", value, "f32")
    bits = code.cast("zext", code.bits(value), "i32")
    magnitude = bits & 0x7FFF
    # The product moves the exponent from one bias to the other, of denormals too.
    scaled = code.bits(code.from_bits(magnitude << 13, "f32") * 2.0**112)
    special = code.compare("uge", magnitude, 0x7C00)
    scaled = code.select(special, scaled | 0x7F800000, scaled)
    return code.from_bits(scaled | ((bits & 0x8000) << 16), "f32")


def f32_to_f16(code: Code, value: Lane) -> Lane:
    if code.features.has_f16c:
        return code.cast("fptrunc", value, "f16")
    a = code.absolute(value)
    bits = code.bits(a)
    odd = code.logical_shift_right(bits, 13) & 1
    normal = code.logical_shift_right(bits + odd + (0xFFF - (112 << 23)), 13)
    # Adding 1/2 aligns the digits of a denormal at the bottom of the sum, rounded.
    denormal = code.bits(a + 0.5) - 0x3F000000
    result = code.select(code.compare("ult", bits, 0x38800000), denormal, normal)
    result = code.select(code.compare("uge", bits, 0x47800000), 0x7C00, result)
    result = code.select(code.is_nan(value), 0x7E00, result)
    sign = code.logical_shift_right(code.bits(value), 16) & 0x8000
    return code.from_bits(code.cast("trunc", result | sign, "i16"), "f16")


def f8_to_f32(code: Code, value: Lane, source: str) -> Lane:
    """Exactly; the product moves the exponent from one bias to the other, of denormals too."""
    _, mantissa, bias, specials = FORMATS[source]
    bits = code.cast("zext", value, "i32")
    magnitude = bits & 0x7F
    scaled = code.bits(code.from_bits(magnitude << (23 - mantissa), "f32") * 2.0 ** (127 - bias))
    if specials == "unsigned zero":
        # The bits of a negative zero are the only NaN.
        scaled = code.select(code.equal(bits, 0x80), 0x7FC00000, scaled)
    else:
        infinity = float_bits(float("inf"), source)
        special = code.compare("uge", magnitude, infinity)
        # Where infinity is NaN as well, the quiet bit tells.
        quiet = 0x7F800000 if specials == "ieee" else 0x7FC00000
        scaled = code.select(special, scaled | quiet, scaled)
    return code.from_bits(scaled | ((bits & 0x80) << 24), "f32")


def f32_to_f8(code: Code, value: Lane, target: str) -> Lane:
    """To nearest even; what is too large becomes infinity, or NaN where there is none."""
    _, mantissa, bias, specials = FORMATS[target]
    dropped = 23 - mantissa
    a = code.absolute(value)
    bits = code.bits(a)
    odd = code.logical_shift_right(bits, dropped) & 1
    half = (1 << (dropped - 1)) - 1
    normal = code.logical_shift_right(bits + odd + (half - ((127 - bias) << 23)), dropped)
    # Adding a power of two whose last digit is the smallest denormal's rounds to that.
    aligning = 24 - bias - mantissa
    denormal = code.bits(a + 2.0**aligning) - ((127 + aligning) << 23)
    result = code.select(code.compare("ult", bits, (128 - bias) << 23), denormal, normal)
    sign = code.logical_shift_right(code.bits(value), 24) & 0x80
    overflow = float_bits(float("inf"), target)
    beyond = code.compare("uge", bits, (255 - 1) << 23)
    if specials == "unsigned zero":
        beyond = beyond | code.compare("ugt", result, 0x7F)
        sign = code.select(code.equal(result, 0), 0, sign)
        result = code.select(beyond, overflow, result | sign)
        result = code.select(code.is_nan(value), overflow, result)
        return code.cast("trunc", result, "i8")
    beyond = beyond | code.compare("ugt", result, overflow)
    result = code.select(beyond, overflow, result)
    result = code.select(code.is_nan(value), 0x7F, result)
    return code.cast("trunc", result | sign, "i8")


def _widened(code: Code, value: Lane, source: str) -> tuple[Lane, str]:
    if source in EIGHT_BIT:
        return f8_to_f32(code, value, source), "f32"
    if source == "bf16":
        return bf16_to_f32(code, value), "f32"
    if source == "f16":
        return f16_to_f32(code, value), "f32"
    return value, source


def _real_to_real(code: Code, value: Lane, source: str, target: str) -> Lane:
    value, source = _widened(code, value, source)
    if source == target:
        return value
    if target == "f64":
        return code.cast("fpext", value, "f64")
    if source == "f64":
        value = code.cast("fptrunc", value, "f32")
    if target == "f32":
        return value
    if target in EIGHT_BIT:
        return f32_to_f8(code, value, target)
    return f32_to_bf16(code, value) if target == "bf16" else f32_to_f16(code, value)


def _real_to_integer(code: Code, value: Lane, source: str, target: str) -> Lane:
    value, _ = _widened(code, value, source)
    if target == "i1":
        return code.compare("une", value, 0.0)
    width = WIDTHS[target]
    through = "i64" if width == 64 or target == "u32" else "i32"
    opcode = "fptoui" if target == "u64" else "fptosi"
    whole = code.cast(opcode, value, through)
    whole = code.record(f"freeze {code.type(through)} {whole.ref}", through)
    return whole if through == carrier(target) else code.cast("trunc", whole, carrier(target))


def _integer_to_real(code: Code, value: Lane, source: str, target: str) -> Lane:
    through = "f64" if target == "f64" else "f32"
    if source == "i1":
        result = code.select(value, code.value(through, 1.0), 0.0)
    else:
        opcode = "sitofp" if source.startswith("i") else "uitofp"
        result = code.cast(opcode, value, through)
    return _real_to_real(code, result, through, target)


def _integer_to_integer(code: Code, value: Lane, source: str, target: str) -> Lane:
    if target == "i1":
        return code.compare("ne", value, 0)
    if WIDTHS[source] == WIDTHS[target]:
        return value
    if WIDTHS[source] > WIDTHS[target]:
        return code.cast("trunc", value, carrier(target))
    signed = source.startswith("i") and source != "i1"
    return code.cast("sext" if signed else "zext", value, carrier(target))


def convert(code: Code, value: Lane, source: str, target: str) -> Lane:
    """`value` of type `source` as `target`."""
    if source == target:
        return value
    if source in REAL:
        rule = _real_to_real if target in REAL else _real_to_integer
    else:
        rule = _integer_to_real if target in REAL else _integer_to_integer
    return rule(code, value, source, target)
