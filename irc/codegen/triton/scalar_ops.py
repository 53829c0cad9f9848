"""How arith and math operations are spelled in Triton, on scalars and tiles alike.

Triton's operators follow NumPy's promotion rules, so each expression here keeps to operands of one
type and names the type where an operator would change it. Integers are signed in Triton's types
and unsigned operations go through a bit cast. 16- and 8-bit floats compute in f32 and are rounded
once (for + - * / and sqrt that equals the operation rounded directly).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from irc.codegen.triton.functions import (
    COMPARISONS,
    LIBDEVICE,
    NATIVE,
    TRITON_NAMES,
    Helper,
    constant_text,
    helper,
)
from irc.dialects.arith import ROUNDING
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.types import FloatType, IndexType, IntegerType, VectorType


class Writer(Protocol):
    """What the spelling of an operation needs from the emitter."""

    index_bits: int

    def ref(self, value: Value) -> str:
        """The name of an operand."""

    def use(self, helper: Helper) -> str:
        """The name of a helper, defined in the source from now on."""

    def use_libdevice(self, name: str) -> str:
        """The name of a libdevice function."""


def element_of(value: Value) -> Any:
    """The element type of a scalar or tile."""
    type_: Any = value.type
    return type_.element if isinstance(type_, VectorType) else type_


def short_name(element: Any, index_bits: int = 64) -> str:
    """`f32`, `i64`...; index is the integer of its width. UserError for what Triton lacks."""
    if isinstance(element, IndexType):
        return f"i{index_bits}"
    if isinstance(element, FloatType):
        name = element.name
    elif isinstance(element, IntegerType):
        name = f"{'u' if element.unsigned else ''}i{element.width}"
    else:
        name = str(element)
    if name not in TRITON_NAMES:
        raise UserError(f"Triton has no elements of type {element}")
    return name


def _signed_width(name: str) -> int:
    return int(name[1:])


def _unsigned(ref: str, name: str) -> str:
    return ref if name == "i1" else f"{ref}.to(tl.u{TRITON_NAMES[name][3:]}, bitcast=True)"


def _signed(text: str, name: str) -> str:
    return text if name == "i1" else f"({text}).to({TRITON_NAMES[name]}, bitcast=True)"


def narrow(name: str) -> bool:
    """Whether a float type computes in f32."""
    return name in ("f16", "bf16") or name.startswith("f8")


_ON_BOOL = {
    "addi": "{a} ^ {b}", "subi": "{a} ^ {b}", "muli": "{a} & {b}",
    "minsi": "{a} | {b}", "maxsi": "{a} & {b}", "minui": "{a} & {b}", "maxui": "{a} | {b}",
    "shli": "{a} & ~{b}", "shrui": "{a} & ~{b}", "shrsi": "{a} | ({b} & False)",
    "divsi": "{a} & {b}", "divui": "{a} & {b}", "floordivsi": "{a} & {b}",
    "ceildivsi": "{a} & {b}", "remsi": "{a} & ~{b}", "remui": "{a} & ~{b}",
    "slt": "{a} & ~{b}", "sle": "{a} | ~{b}", "sgt": "~{a} & {b}", "sge": "~{a} | {b}",
    "ult": "~{a} & {b}", "ule": "~{a} | {b}", "ugt": "{a} & ~{b}", "uge": "{a} | ~{b}",
}  # fmt: skip
_SIGNED = {
    "addi": "{a} + {b}", "subi": "{a} - {b}", "muli": "{a} * {b}",
    # Triton's integer division rounds to zero and its remainder has the dividend's sign.
    "divsi": "{a} // {b}", "remsi": "{a} % {b}",
    "andi": "{a} & {b}", "ori": "{a} | {b}", "xori": "{a} ^ {b}",
    "minsi": "tl.minimum({a}, {b})", "maxsi": "tl.maximum({a}, {b})",
}  # fmt: skip
_UNSIGNED = {
    "divui": "{a} // {b}", "remui": "{a} % {b}", "minui": "tl.minimum({a}, {b})",
    "maxui": "tl.maximum({a}, {b})",
}  # fmt: skip
_FLOAT = {
    "addf": "{a} + {b}", "subf": "{a} - {b}", "mulf": "{a} * {b}", "remf": "{a} % {b}",
    "minnumf": "tl.minimum({a}, {b})", "maxnumf": "tl.maximum({a}, {b})",
    "negf": "{a} * -1.0",
}  # fmt: skip
_EXTREME = {"minimumf": ("minimum", "<"), "maximumf": ("maximum", ">")}

ROUNDED_DIVISION = """@triton.jit
def irc_floordiv(a, b):
    quotient = a // b
    rest = a - quotient * b
    return tl.where((rest != 0) & ((rest ^ b) < 0), quotient - 1, quotient)
"""
CEILED_DIVISION = """@triton.jit
def irc_ceildiv(a, b):
    quotient = a // b
    rest = a - quotient * b
    return tl.where((rest != 0) & ((rest ^ b) >= 0), quotient + 1, quotient)
"""


def integer_binary(w: Writer, name: str, a: str, b: str, element: str) -> str:
    """An integer operation on operands of type `element`."""
    if element == "i1" and name in _ON_BOOL:
        return _ON_BOOL[name].format(a=a, b=b)
    if name in _SIGNED:
        return _SIGNED[name].format(a=a, b=b)
    if name in _UNSIGNED:
        return _signed(
            _UNSIGNED[name].format(a=_unsigned(a, element), b=_unsigned(b, element)), element
        )
    if name == "floordivsi":
        return f"{w.use(Helper('irc_floordiv', ROUNDED_DIVISION))}({a}, {b})"
    if name == "ceildivsi":
        return f"{w.use(Helper('irc_ceildiv', CEILED_DIVISION))}({a}, {b})"
    width = _signed_width(element)
    inside = f"({b} >= 0) & ({b} < {width})"
    if name == "shli":
        return f"tl.where({inside}, {a} << {b}, 0)"
    if name == "shrsi":
        return f"{a} >> tl.where({inside}, {b}, {width - 1})"
    if name == "shrui":
        shifted = _signed(f"{_unsigned(a, element)} >> {_unsigned(b, element)}", element)
        return f"tl.where({inside}, {shifted}, 0)"
    raise UserError(f"arith.{name} has no Triton code")


def in_f32(text: Callable[..., str], element: str, *operands: str) -> str:
    """`text` of the operands, computed in f32 where the type is narrower."""
    if not narrow(element):
        return text(*operands)
    wide = [f"{o}.to(tl.float32)" for o in operands]
    return f"({text(*wide)}).to({TRITON_NAMES[element]})"


def float_binary(w: Writer, name: str, a: str, b: str, element: str) -> str:
    """A float operation on operands of type `element`."""
    double = element == "f64"

    def text(x: str, y: str) -> str:
        if name == "divf":
            return f"{x} / {y}" if double else f"tl.div_rn({x}, {y})"
        if name in _EXTREME:
            function, sign = _EXTREME[name]
            if double:
                return f"tl.where(({x} {sign} {y}) | ({x} != {x}), {x}, {y})"
            return f"tl.{function}({x}, {y}, propagate_nan=tl.PropagateNan.ALL)"
        return _FLOAT[name].format(a=x, b=y)

    return in_f32(text, element, a, b)


def compare(name: str, predicate: str, a: str, b: str, element: str) -> str:
    """arith.cmpi and arith.cmpf."""
    if predicate in ("true", "false"):
        return f"({a} == {a}) {'|' if predicate == 'true' else '&'} ({a} != {a})"
    if name == "cmpf":
        wide = [f"{o}.to(tl.float32)" for o in (a, b)] if narrow(element) else [a, b]
        return COMPARISONS[predicate].format(a=wide[0], b=wide[1])
    if element == "i1" and predicate in _ON_BOOL:
        return _ON_BOOL[predicate].format(a=a, b=b)
    if predicate in ("ult", "ule", "ugt", "uge"):
        return COMPARISONS["s" + predicate[1:]].format(
            a=_unsigned(a, element), b=_unsigned(b, element)
        )
    return COMPARISONS[predicate].format(a=a, b=b)


def cast(name: str, ref: str, source: str, target: str) -> str:
    """A conversion between two element types."""
    type_ = TRITON_NAMES[target]
    if name == "bitcast":
        return ref if source == target else f"{ref}.to({type_}, bitcast=True)"
    if name in ("extf", "truncf"):
        return _float_cast(ref, source, target)
    if name in ("index_cast", "index_castui"):
        widths = _signed_width(source), _signed_width(target)
        if widths[0] == widths[1]:
            return ref
        narrower = "extui" if name == "index_castui" else "extsi"
        name = "trunci" if widths[0] > widths[1] else narrower
    if name == "trunci":
        return f"({ref} & 1) != 0" if target == "i1" else f"{ref}.to({type_})"
    if name == "extsi":
        return f"0 - {ref}.to({type_})" if source == "i1" else f"{ref}.to({type_})"
    if name == "extui":
        return f"{ref}.to({type_})" if source == "i1" else f"{_unsigned(ref, source)}.to({type_})"
    if name in ("sitofp", "uitofp"):
        through = "tl.float32" if narrow(target) else type_
        signed = name == "sitofp"
        if source == "i1" and signed:
            ref = f"(0 - {ref}.to(tl.int8))"
        elif not signed:
            ref = _unsigned(ref, source)
        return f"{ref}.to({through})" + (f".to({type_})" if narrow(target) else "")
    wide = f"{ref}.to(tl.float32)" if narrow(source) else ref
    if target == "i1":
        return f"({wide}.to(tl.int32) & 1) != 0"
    if name == "fptosi":
        return f"{wide}.to({type_})"
    return f"{wide}.to(tl.uint{_signed_width(target)}).to({type_}, bitcast=True)"


def _float_cast(ref: str, source: str, target: str) -> str:
    type_ = TRITON_NAMES[target]
    if source == target:
        return ref
    if {source, target} <= {"f32", "f64"} or "f32" in (source, target):
        return f"{ref}.to({type_})"
    return f"{ref}.to(tl.float32).to({type_})"


def math_call(w: Writer, name: str, refs: list[str], element: str) -> str:
    """An operation of the math dialect on floats."""
    if name == "absi":
        return refs[0] if element == "i1" else f"tl.abs({refs[0]})"

    def text(*operands: str) -> str:
        base = "f32" if narrow(element) else element
        native = NATIVE.get(name)
        if native is not None:
            return native.format(*operands)
        if (name, base) in LIBDEVICE:
            return f"{w.use_libdevice(LIBDEVICE[name, base])}({', '.join(operands)})"
        return f"{w.use(helper(name, base))}({', '.join(operands)})"

    if name == "nextafter":
        return f"{w.use(helper(name, element))}({', '.join(refs)})"
    if name in ("isnan", "isinf"):
        return text(f"{refs[0]}.to(tl.float32)" if narrow(element) else refs[0])
    return in_f32(text, element, *refs)


def arith_text(w: Writer, op: Operation) -> str:
    """The expression of an arith operation."""
    name = op.name.partition(".")[2]
    if name == "constant":
        return _constant(w, op)
    refs = [w.ref(o) for o in op.operands]
    if name == "select":
        return f"tl.where({', '.join(refs)})"
    element = short_name(element_of(op.operands[0]), w.index_bits)
    if name in ("cmpi", "cmpf"):
        return compare(name, op.attributes["predicate"].value, refs[0], refs[1], element)  # type: ignore[attr-defined]
    if name == "negf":
        return float_binary(w, "negf", refs[0], refs[0], element)
    mode = getattr(op.attributes.get("roundingmode"), "value", ROUNDING[0])
    if mode not in ROUNDING:
        raise InvalidIR(f"a gpu kernel rounds to the nearest even, not {mode}", op=op)
    if len(refs) == 1:
        return cast(name, refs[0], element, short_name(element_of(op.results[0]), w.index_bits))
    if name == "divf" and "rough" in op.attributes:
        return f"{refs[0]} * {w.use(helper('inverse_rough', element))}({refs[1]})"
    packed = element in ("bf16", "f16") and isinstance(op.results[0].type, VectorType)
    if name in _EXTREME and packed:
        function = helper(f"{_EXTREME[name][0]}_packed", element)
        return f"{w.use(function)}({refs[0]}, {refs[1]})"
    if name.endswith("f"):
        return float_binary(w, name, refs[0], refs[1], element)
    return integer_binary(w, name, refs[0], refs[1], element)


def _constant(w: Writer, op: Operation) -> str:
    value: Any = op.attributes["value"]
    result = op.results[0]
    element = element_of(result)
    shape = result.type.shape if isinstance(result.type, VectorType) else ()
    if isinstance(value, A.DenseAttr):
        import struct

        name = short_name(element, w.index_bits)
        form = {"f32": "<f", "f64": "<d", "i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b",
                "i1": "<b", "f16": "<e"}.get(name)  # fmt: skip
        if form is None or len(value.data) != struct.calcsize(form):
            raise UserError("a tile constant with different lanes has no Triton code", op=op)
        return constant_text(struct.unpack(form, value.data)[0], name, shape)
    return constant_text(value.value, short_name(element, w.index_bits), shape)
