"""Helper functions of the emitted Triton sources: elementary functions, rounding, combiners.

The elementary functions are recorded from the same definitions as the CPU's
(`irc.codegen.math`), through a `Code` that writes Triton instead of LLVM IR, so both targets
have the same accuracy. Everything works in Triton's CPU interpreter, but for the three functions of
`LIBDEVICE`, which exist only in compiled code: pow, lgamma and erfinv of f64. The exp of f32 is
libdevice's, too; there the interpreter has one of its own (`runtime.imported`).

A helper is asked for by `helper(name, element)` and gives (function name, source text, names of
the helpers that it calls).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from irc.codegen.math import basic, exponential, special, trigonometric
from irc.codegen.math import coefficients as tables
from irc.codegen.math.code import BITS, FLOATS, Code, Lane, float_text
from irc.codegen.math.registry import DEFINITIONS
from irc.ir.diagnostics import UserError

FAMILIES = (basic, exponential, special, trigonometric)  # importing them fills DEFINITIONS

TRITON_NAMES = {
    "f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32", "f64": "tl.float64",
    "i1": "tl.int1", "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64",
    "f8E4M3FN": "tl.float8e4nv", "f8E5M2": "tl.float8e5",
    "ui8": "tl.uint8", "ui16": "tl.uint16", "ui32": "tl.uint32", "ui64": "tl.uint64",
}  # fmt: skip

# Functions that Triton computes accurately itself, in its interpreter and through libdevice.
NATIVE = {
    "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sin": "tl.sin({0})",
    "cos": "tl.cos({0})", "erf": "tl.erf({0})", "rsqrt": "tl.rsqrt({0})",
    "floor": "tl.floor({0})", "ceil": "tl.ceil({0})", "absf": "tl.abs({0})",
    "tan": "tl.sin({0}) / tl.cos({0})", "isnan": "{0} != {0}",
    "fma": "tl.fma({0}, {1}, {2})",
}  # fmt: skip

# (function, element) with libdevice's name: not available in Triton's interpreter.
LIBDEVICE = {("powf", "f64"): "pow", ("lgamma", "f64"): "lgamma", ("erfinv", "f64"): "erfinv"}

RECORDED = {
    "exp": "exp", "expm1": "expm1", "log10": "log10", "log1p": "log1p", "asin": "asin",
    "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erfc": "erfc",
    "erfinv": "erfinv", "sigmoid": "sigmoid", "powf": "pow", "lgamma": "lgamma",
    "digamma": "digamma",
}  # fmt: skip

# Whose divisors stay between 1 and 2^30, where the hardware's short division is within 2 ulp.
SHORT_DIVISION = frozenset({"tanh"})


@attrs.frozen
class Helper:
    """A function of the emitted source. `needs`: other helpers, defined before it; `libdevice`:
    whether it calls libdevice."""

    name: str
    source: str
    needs: tuple[Helper, ...] = ()
    libdevice: bool = False


@attrs.frozen
class _Features:
    """What the shared definitions ask about a target."""

    is_x86: bool = False
    has_fma: bool = True
    has_avx2: bool = False
    has_avx512: bool = False
    has_f16c: bool = False
    has_bf16: bool = False


class _TritonLane(Lane):
    """A value of a helper; arithmetic on it records a line of Triton."""

    __slots__ = ()

    def _binary(self, stem: str, left: Any, right: Any) -> Lane:
        code: Any = self.code
        a, b = code.value(self.element, left), code.value(self.element, right)
        if stem == "div" and self.element == "f32" and not code.short_division:
            return code.record(f"tl.div_rn({a.ref}, {b.ref})", self.element)
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[stem]
        return code.record(f"{a.ref} {sign} {b.ref}", self.element)

    def __neg__(self) -> Lane:
        if self.element not in FLOATS:
            return 0 - self
        return self * -1.0


_INTEGER_TEXT = {
    "and": "{a} & {b}", "or": "{a} | {b}", "xor": "{a} ^ {b}", "shl": "{a} << {b}",
    "ashr": "{a} >> {b}", "add": "{a} + {b}", "sub": "{a} - {b}",
    "lshr": "({a}.to({u}, bitcast=True) >> {b}.to({u}, bitcast=True)).to({s}, bitcast=True)",
}  # fmt: skip
COMPARISONS = {
    "eq": "{a} == {b}", "ne": "{a} != {b}", "slt": "{a} < {b}", "sle": "{a} <= {b}",
    "sgt": "{a} > {b}", "sge": "{a} >= {b}",
    "oeq": "{a} == {b}", "une": "{a} != {b}", "olt": "{a} < {b}", "ole": "{a} <= {b}",
    "ogt": "{a} > {b}", "oge": "{a} >= {b}", "one": "({a} < {b}) | ({a} > {b})",
    "ueq": "~(({a} < {b}) | ({a} > {b}))", "ult": "~({a} >= {b})", "ule": "~({a} > {b})",
    "ugt": "~({a} <= {b})", "uge": "~({a} < {b})",
    "ord": "({a} == {a}) & ({b} == {b})", "uno": "({a} != {a}) | ({b} != {b})",
}  # fmt: skip


class _TritonCode(Code):
    """Records a helper's body."""

    def __init__(self, short_division: bool) -> None:
        super().__init__(0, _Features())  # type: ignore[arg-type]
        self.short_division = short_division
        self.helpers: dict[str, Helper] = {}

    def record(self, text: str, element: str) -> Lane:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = _TritonLane(self, element, f"v{len(self.lines)}")
            self.lines.append(f"{known.ref} = {text}")
        return known

    def value(self, element: str, operand: Any) -> Lane:
        if isinstance(operand, Lane):
            return operand
        return self.record(constant_text(operand, element, ()), element)

    def call(self, stem: str, element: str, *operands: Lane, types: Sequence[str] = ()) -> Lane:
        name = stem.removeprefix("llvm.")
        refs = [o.ref for o in operands]
        if name in ("fabs", "floor", "ceil"):
            return self.record(NATIVE[{"fabs": "absf"}.get(name, name)].format(*refs), element)
        if name == "fma":
            return self.record(f"tl.fma({', '.join(refs)})", element)
        name = {"rint": "roundeven"}.get(name, name)
        function = helper(name, element)
        self.helpers[function.name] = function
        return self.record(f"{function.name}({', '.join(refs)})", element)

    def integer(self, opcode: str, left: Lane, right: Any) -> Lane:
        other = self.value(left.element, right)
        if left.element == "i1" and opcode == "xor" and right == 1:
            return self.record(f"~{left.ref}", "i1")
        text = _INTEGER_TEXT[opcode].format(
            a=left.ref,
            b=other.ref,
            s=TRITON_NAMES[left.element],
            u=TRITON_NAMES.get("u" + left.element),
        )
        return self.record(text, left.element)

    def compare(self, predicate: str, left: Lane, right: Any) -> Lane:
        other = self.value(left.element, right)
        if left.element not in FLOATS:
            if predicate in ("olt", "ole", "ogt", "oge"):
                predicate = "s" + predicate[1:]
            elif predicate in ("ult", "ule", "ugt", "uge"):
                raise NotImplementedError("an unsigned comparison in an elementary function")
        return self.record(COMPARISONS[predicate].format(a=left.ref, b=other.ref), "i1")

    def select(self, condition: Lane, yes: Any, no: Any) -> Lane:
        element = yes.element if isinstance(yes, Lane) else no.element
        a, b = self.value(element, yes), self.value(element, no)
        return self.record(f"tl.where({condition.ref}, {a.ref}, {b.ref})", element)

    def cast(self, opcode: str, value: Lane, element: str) -> Lane:
        if opcode == "bitcast":
            if value.element == element:
                return value
            return self.record(f"{value.ref}.to({TRITON_NAMES[element]}, bitcast=True)", element)
        if opcode not in ("fpext", "fptrunc", "sitofp"):
            raise NotImplementedError(f"the conversion {opcode} in an elementary function")
        return self.record(f"{value.ref}.to({TRITON_NAMES[element]})", element)


def constant_text(value: Any, element: str, shape: Sequence[int]) -> str:
    """A tile (or scalar) constant with exactly this value and type."""
    dims = "[" + ", ".join(map(str, shape)) + "]"
    type_ = TRITON_NAMES[element]
    if element in FLOATS or element.startswith("f8"):
        number = float(value)
        if math.isnan(number):
            return f'tl.full({dims}, float("nan"), {type_})'
        if math.isinf(number):
            return f'tl.full({dims}, float("{"-" if number < 0 else ""}inf"), {type_})'
        if number == 0 and math.copysign(1.0, number) < 0:
            # Triton's own constant zero has no sign.
            bits = BITS[element]
            integer = f"tl.full({dims}, {-(1 << (bits - 1))}, tl.int{bits})"
            return f"{integer}.to({type_}, bitcast=True)"
        return f"tl.full({dims}, {number!r}, {type_})"
    if element == "i1":
        return f"tl.full({dims}, {bool(value)}, tl.int1)"
    width = BITS[element]
    wrapped = int(value) & ((1 << width) - 1)
    if wrapped >> (width - 1):
        wrapped -= 1 << width
    return f"tl.full({dims}, {wrapped}, {type_})"


def _function(name: str, parameters: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"@triton.jit\ndef {name}({parameters}):\n{body}\n"


# The integer with the bits of a float, its width, and the bits of the mantissa.
_BITWISE = {
    "f32": ("tl.int32", 32, 23), "f64": ("tl.int64", 64, 52),
    "f16": ("tl.int16", 16, 10), "bf16": ("tl.int16", 16, 7),
}  # fmt: skip


def _copysign(element: str) -> list[str]:
    type_, bits, _ = _BITWISE[element]
    top = -(1 << (bits - 1))
    return [
        f"sign = y.to({type_}, bitcast=True) & tl.full([], {top}, {type_})",
        f"size = x.to({type_}, bitcast=True) & tl.full([], {~top}, {type_})",
        f"return (sign | size).to({TRITON_NAMES[element]}, bitcast=True)",
    ]


def _roundeven(element: str) -> list[str]:
    type_, bits, mantissa = _BITWISE[element]
    limit = repr(2.0**mantissa)
    return [
        "size = tl.abs(x)",
        f"near = (size + {limit}) - {limit}",
        f"sign = x.to({type_}, bitcast=True) & tl.full([], {-(1 << (bits - 1))}, {type_})",
        f"near = (near.to({type_}, bitcast=True) | sign).to({TRITON_NAMES[element]}, bitcast=True)",
        f"return tl.where(size < {limit}, near, x)",
    ]


def _nextafter(element: str) -> list[str]:
    """One step of the bits, away from zero when the direction agrees with the sign."""
    type_, bits, _ = _BITWISE[element]
    name = TRITON_NAMES[element]
    top = f"tl.full([], {-(1 << (bits - 1))}, {type_})"
    wide = ".to(tl.float32)" if bits == 16 else ""
    return [
        f"a = x{wide}",
        f"b = y{wide}",
        f"bits = x.to({type_}, bitcast=True)",
        "step = tl.where((a < b) == (a > 0.0), 1, -1)",
        f"moved = (bits + step.to({type_})).to({name}, bitcast=True)",
        f"least = ((y.to({type_}, bitcast=True) & {top}) | 1).to({name}, bitcast=True)",
        "moved = tl.where(a == 0.0, least, moved)",
        "moved = tl.where(a == b, y, moved)",
        f"return tl.where((a != a) | (b != b), (a + b).to({name}), moved)",
    ]


def _philox(element: str) -> list[str]:
    """Triton's own Philox4x32-10 on the four words of the counter; the number's low two bits say
    which of the four words that it gives."""
    words = ("a >> 2", "a >> 34", "y", "y >> 32")
    return [
        "a = z.to(tl.uint64, bitcast=True)",
        *[f"c{k} = ({word}).to(tl.uint32)" for k, word in enumerate(words)],
        "c0, c1, c2, c3 = tl.philox(x, c0, c1, c2, c3)",
        "first = tl.where((z & 1) == 0, c0, c1)",
        "second = tl.where((z & 1) == 0, c2, c3)",
        f"return tl.where((z & 2) == 0, first, second).to({TRITON_NAMES[element]})",
    ]


def _exp_f32() -> list[str]:
    """libdevice's: eight instructions, within 2 ulp, from underflow to overflow.

    Its power of two is the instruction that flushes denormals, where none can matter; Triton's own
    `exp2` takes four more instructions to keep them.
    """
    return ["return libdevice.exp(x)"]


def _machine(instruction: str) -> Callable[[], list[str]]:
    """A function of f32 that is an instruction of the machine. It flushes denormals."""
    text = f'"{instruction} $0, $1;", "=f,f", [x], tl.float32, True, 1'
    return lambda: [f"return tl.inline_asm_elementwise({text})"]


def _exp_rough_f32() -> list[str]:
    """By the machine's power of two."""
    return ["return irc_exp2_rough_f32(x * 1.4426950408889634)"]


def _sigmoid_rough_f32() -> list[str]:
    """1 / (1 + exp(-x)): four instructions."""
    return [
        "power = irc_exp2_rough_f32(x * -1.4426950408889634)",
        "return irc_inverse_rough_f32(power + 1.0)",
    ]


def _tanh_rough_f32() -> list[str]:
    """1 - 2 / (exp(2x) + 1), within 2^-22: what is near 0 keeps few of its bits."""
    return [
        "power = irc_exp2_rough_f32(x * 2.8853900817779268)",
        "return tl.fma(irc_inverse_rough_f32(power + 1.0), -2.0, 1.0)",
    ]


def _erfc_rough_f32() -> list[str]:
    """Of |x| a power of two, of a polynomial whose first coefficient is 0: within 2^-16."""
    *lower, last = tables.ERFC_POWER_F32
    lines = [f"power = tl.fma(power, size, {c!r})" for c in reversed(lower)]
    return [
        "size = tl.abs(x)",
        f"power = tl.full([], {last!r}, tl.float32)",
        *lines,
        "value = irc_exp2_rough_f32(power * size)",
        "return tl.where(x < 0.0, 2.0 - value, value)",
    ]


def _sigmoid_f32() -> list[str]:
    """exp(x) / (exp(x) + 1); above 17.33 that is 1 to rounding, which the hardware's short division
    of equal numbers is not."""
    return [
        "power = irc_exp_f32(x)",
        "return tl.where(x > 17.33, 1.0, power / (power + 1.0))",
    ]


def _packed(instruction: str) -> Callable[[str], list[str]]:
    """A function of two tiles of 16-bit floats that is an instruction on two lanes at once. Triton
    3.6 widens its own to f32."""

    def lines(element: str) -> list[str]:
        text = f'"{instruction}.{element}x2 $0, $1, $2;", "=r,r,r", [x, y]'
        return [f"return tl.inline_asm_elementwise({text}, {TRITON_NAMES[element]}, True, 2)"]

    return lines


_WRITTEN = {
    "maximum_packed": ("x, y", _packed("max.NaN")),
    "minimum_packed": ("x, y", _packed("min.NaN")),
    "copysign": ("x, y", _copysign),
    "roundeven": ("x", _roundeven),
    "nextafter": ("x, y", _nextafter),
    "philox": ("x, y, z", _philox),
    "trunc": ("x", lambda element: ["return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))"]),
    "sqrt": ("x", lambda e: ["return tl.sqrt_rn(x)" if e == "f32" else "return tl.sqrt(x)"]),
    "isinf": ("x", lambda element: ['return tl.abs(x) == float("inf")']),
}  # fmt: skip


# Shorter on a GPU than the definitions shared with the CPU: (lines, helpers called) by element.
_WRITTEN_FOR = {
    ("exp", "f32"): (_exp_f32, ()),
    ("exp2_rough", "f32"): (_machine("ex2.approx.ftz.f32"), ()),
    ("inverse_rough", "f32"): (_machine("rcp.approx.ftz.f32"), ()),
    ("exp_rough", "f32"): (_exp_rough_f32, ("exp2_rough",)),
    ("sigmoid", "f32"): (_sigmoid_f32, ("exp",)),
    ("sigmoid_rough", "f32"): (_sigmoid_rough_f32, ("exp2_rough", "inverse_rough")),
    ("tanh_rough", "f32"): (_tanh_rough_f32, ("exp2_rough", "inverse_rough")),
    ("erfc_rough", "f32"): (_erfc_rough_f32, ("exp2_rough",)),
}


@functools.cache
def helper(name: str, element: str) -> Helper:
    """The helper for the math function `name` on f32 or f64. UserError if there is none."""
    written = _WRITTEN.get(name)
    title = f"irc_{name}_{element}"
    if written is not None:
        parameters, make = written
        return Helper(title, _function(title, parameters, make(element)))
    short = _WRITTEN_FOR.get((name, element))
    if short is not None:
        write, needs = short
        called = tuple(helper(n, element) for n in needs)
        source = _function(title, "x", write())
        return Helper(title, source, called, libdevice="libdevice." in source)
    definition = DEFINITIONS.get((RECORDED.get(name, name), element))
    if definition is None or definition.emit is None:
        raise UserError(f"math.{name} has no Triton code for {element}")
    code = _TritonCode(short_division=name in SHORT_DIVISION)
    names = ["x", "y", "z"][: definition.arity]
    result = definition.emit(code, *[_TritonLane(code, element, p) for p in names])
    if isinstance(result, tuple):
        raise UserError(f"math.{name} has no Triton code for {element}")
    lines = [*code.lines, f"return {result.ref}"]
    source = _function(title, ", ".join(names), lines)
    return Helper(title, source, tuple(code.helpers.values()))


# -- combiners: functions of two values, for reductions and scans

_COMBINE = {
    "sum": "a + b", "prod": "a * b", "xor": "a ^ b", "any": "a | b", "all": "a & b",
    "min": "tl.minimum(a, b)", "max": "tl.maximum(a, b)",
}  # fmt: skip


@functools.cache
def combiner(name: str, floating: bool, element: str = "f32") -> Helper:
    """The function that combines two accumulators; min and max of floats propagate NaN.

    `element` is f32 or f64.
    """
    if name in ("argmin", "argmax"):
        return _pair_combiner(name, floating)
    if name == "logsumexp":
        return _logaddexp(element)
    if name in ("min", "max") and floating:
        title = f"irc_combine_{name}_nan_{element}"
        if element == "f32":
            call = f"tl.{name}imum(a, b, propagate_nan=tl.PropagateNan.ALL)"
            return Helper(title, _function(title, "a, b", [f"return {call}"]))
        sign = "<" if name == "min" else ">"
        return Helper(
            title, _function(title, "a, b", [f"return tl.where((a {sign} b) | (a != a), a, b)"])
        )
    text = _COMBINE.get(name)
    if text is None:
        raise UserError(f"the combiner {name} has no Triton code")
    title = f"irc_combine_{name}"
    return Helper(title, _function(title, "a, b", [f"return {text}"]))


def _pair_combiner(name: str, floating: bool) -> Helper:
    """(value, position): the extreme, the smallest position on a tie; NaN beats every number."""
    title = f"irc_combine_{name}{'_nan' if floating else ''}"
    sign = "<" if name == "argmin" else ">"
    lines = [f"better = a {sign} b", "equal = a == b"]
    if floating:
        lines = [
            "a_nan = a != a",
            "b_nan = b != b",
            f"better = (a {sign} b) | (a_nan & ~b_nan)",
            "equal = (a == b) | (a_nan & b_nan)",
        ]
    lines += [
        "keep = better | (equal & (i < j))",
        "return tl.where(keep, a, b), tl.where(keep, i, j)",
    ]
    return Helper(title, _function(title, "a, i, b, j", lines))


def _logaddexp(element: str) -> Helper:
    """log(exp a + exp b)."""
    needs = (helper("exp", element), helper("log1p", element))
    lines = [
        "high = tl.where((a > b) | (a != a), a, b)",
        "low = tl.where((a > b) | (a != a), b, a)",
        f"total = high + irc_log1p_{element}(irc_exp_{element}(low - high))",
        'return tl.where(tl.abs(high) == float("inf"), high, total)',
    ]
    title = f"irc_combine_logsumexp_{element}"
    return Helper(title, _function(title, "a, b", lines), needs)


ATOMIC_LIMITS = "8-bit and bool elements have no atomic combination"


def one_instruction(combiner_name: str, element: str) -> bool:
    """Whether the hardware combines such elements into memory at once."""
    if combiner_name == "sum":
        return element in ("i32", "i64", "f16", "bf16", "f32", "f64")
    return combiner_name in ("min", "max") and element in ("i32", "i64")


#: `f()`: waits for what was launched before; and lets what is launched next begin. Triton's
#: interpreter runs one launch after the other (`compiling.imported`).
AFTER_LAUNCH = Helper("irc_launch_wait", _function("irc_launch_wait", "", [
    "tl.extra.cuda.gdc_wait()"]))  # fmt: skip
OPEN_NEXT = Helper("irc_launch_open", _function("irc_launch_open", "", [
    "tl.extra.cuda.gdc_launch_dependents()"]))  # fmt: skip


IMPRECISE_TERMS = 128
"""Products of 8-bit floats that a GPU adds up in fewer bits than f32 has, before f32 adds these
sums up: four instructions of 32 (DeepSeek-V3's technical report, 3.3.2)."""


@functools.cache
def dot(element: str, precision: str, depth: int) -> Helper:
    """`f(a, b, c)`: tiles of an element and of a depth multiplied as matrices and added to c.
    Triton's interpreter, which takes bf16 for integers, has one of its own (`compiling.imported`).
    """
    title = f"irc_dot_{element}" + ("" if element != "f32" else f"_{precision}")
    more = ""
    if element == "f32" and precision in PRODUCTS_OF_PARTS:
        return _dot_of_parts(title, PRODUCTS_OF_PARTS[precision])
    if element == "f32":
        more = f', input_precision="{precision}"'
    elif element.startswith("f8"):
        # Sums of f8 products have few bits of their own unless they are added up soon.
        terms = min(depth, IMPRECISE_TERMS)
        title += f"_{terms}"
        more = f", max_num_imprecise_acc={terms}"
    total = "tl.int32" if element == "i8" else "tl.float32"
    call = f"return tl.dot(a, b, c{more}, out_dtype={total})"
    return Helper(title, _function(title, "a, b, c", [call]))


#: By the precision of a dot: the parts of both factors that are multiplied, in the order in which
#: products are added up, the least first.
PRODUCTS_OF_PARTS = {"bf16x1": ((0, 0),), "bf16x5": ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1))}

#: `f(x)`: three bf16 that are x. The first one is cut off, so that none is infinite where x is not;
#: what is left of x is had from bits, as numbers are converted two at a time only where nothing
#: needs them converted back.
BF16_PARTS = Helper("irc_bf16_parts", _function("irc_bf16_parts", "x", [
    'first = x.to(tl.bfloat16, fp_downcast_rounding="rtz")',
    "rest = x - (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)",
    "near = (rest.to(tl.int32, bitcast=True) + 32768) & -65536",
    "second = near.to(tl.float32, bitcast=True)",
    "return first, second.to(tl.bfloat16), (rest - second).to(tl.bfloat16)",
]))  # fmt: skip


def _dot_of_parts(title: str, products: Sequence[tuple[int, int]]) -> Helper:
    """`f(a, b, c)`: products of parts of a and b added to c."""
    multiply = dot("bf16", "ieee", 0)
    lines = ["a0, a1, a2 = irc_bf16_parts(a)", "b0, b1, b2 = irc_bf16_parts(b)"]
    lines += [f"c = {multiply.name}(a{left}, b{right}, c)" for left, right in products]
    return Helper(title, _function(title, "a, b, c", [*lines, "return c"]), (BF16_PARTS, multiply))


@functools.cache
def atomic(combiner_name: str, element: str) -> Helper:
    """`f(pointers, values, mask)` that combines values into memory atomically, relaxed.

    sum of i32, i64 and floats, min and max of integers are one hardware atomic; the others loop
    over compare-and-swap on the elements' bits. UserError for elements of one byte.
    """
    title = f"irc_atomic_{combiner_name}_{element}"
    if one_instruction(combiner_name, element):
        name = "add" if combiner_name == "sum" else combiner_name
        call = f'tl.atomic_{name}(pointers, values, mask=mask, sem="relaxed")'
        return Helper(title, _function(title, "pointers, values, mask", [call]))
    bits = BITS.get(element, 8)
    if bits < 16:
        raise UserError(f"scatter {combiner_name} of {element}: {ATOMIC_LIMITS}")
    type_ = f"tl.int{bits}"
    floating = element in FLOATS
    function = combiner(combiner_name, floating, "f64" if element == "f64" else "f32")
    widen = ".to(tl.float32)" if floating and bits == 16 else ""
    name = TRITON_NAMES[element]
    lines = [
        # A lane that is done, or masked, swaps a value for itself at a place that exists.
        f"places = pointers.to(tl.pointer_type({type_}), bitcast=True)",
        "seen = tl.load(places, mask=mask, other=0)",
        "waiting = mask",
        "while tl.max(waiting.to(tl.int32)) > 0:",
        f"    old = seen.to({name}, bitcast=True){widen}",
        f"    new = {function.name}(old, values{widen}).to({name}).to({type_}, bitcast=True)",
        "    new = tl.where(waiting, new, seen)",
        '    found = tl.atomic_cas(places, seen, new, sem="relaxed")',
        "    waiting = waiting & (found != seen)",
        "    seen = tl.where(waiting, found, seen)",
    ]
    return Helper(title, _function(title, "pointers, values, mask", lines), (function,))


__all__ = [
    "COMPARISONS", "Helper", "LIBDEVICE", "NATIVE", "TRITON_NAMES", "atomic", "combiner",
    "constant_text", "float_text", "helper",
]  # fmt: skip
