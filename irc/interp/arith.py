"""The meaning of the arith dialect, on scalars, on vectors and on whole chunks of points.

Integers are carried as torch's signed tensors (i1: bool) and wrap. Unsigned operations work on
the same bits seen as unsigned through numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from irc.interp.core import Frame, interprets
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.registry import lookup_op
from irc.ir.types import Type, bf16

Tensor = torch.Tensor


def element_of_type(type_: Type) -> Type:
    """The element of a vector or tensor type; a scalar type itself."""
    return getattr(type_, "element", type_)


def _bits(x: Tensor) -> Tensor:
    """bool as 0/1 bytes, so that arithmetic works on it."""
    return x.to(torch.uint8) if x.dtype == torch.bool else x


def _unsigned(x: Tensor) -> np.ndarray[Any, Any]:
    array = _bits(x).numpy()
    return array.view(array.dtype.str.replace("i", "u"))


def _from_unsigned(array: Any, like: Tensor) -> Tensor:
    array = np.asarray(array, order="C")  # keeps a scalar without dimensions
    if like.dtype == torch.bool:
        return torch.from_numpy(array).to(torch.bool)
    return torch.from_numpy(array.view(array.dtype.str.replace("u", "i")).copy())


def _unsigned_binary(function: Callable[..., Any]) -> Callable[[Tensor, Tensor], Tensor]:
    def apply(a: Tensor, b: Tensor) -> Tensor:
        a, b = torch.broadcast_tensors(a, b)
        with np.errstate(divide="ignore"):
            return _from_unsigned(function(_unsigned(a), _unsigned(b)), a)

    return apply


def _boolean(function: Callable[..., Tensor], on_bool: Callable[..., Tensor]) -> Any:
    def apply(a: Tensor, b: Tensor) -> Tensor:
        return on_bool(a, b) if a.dtype == torch.bool else function(a, b)

    return apply


def _divide(mode: str) -> Callable[[Tensor, Tensor], Tensor]:
    def apply(a: Tensor, b: Tensor) -> Tensor:
        # A zero divisor has no meaning; the programs that we make guard it. Any value will do.
        return torch.div(a, torch.where(b == 0, torch.ones_like(b), b), rounding_mode=mode)

    return apply


def _ceil_divide(a: Tensor, b: Tensor) -> Tensor:
    quotient = _divide("trunc")(a, b)
    inexact = _remainder_signed(a, b) != 0
    return quotient + (inexact & ((a < 0) == (b < 0))).to(a.dtype)


def _remainder_signed(a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, torch.where(b == 0, torch.ones_like(b), b))


def _shift_width(a: Tensor) -> int:
    return 1 if a.dtype == torch.bool else a.element_size() * 8


def _shift_left(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == torch.bool:
        return a & ~b
    inside = (b >= 0) & (b < _shift_width(a))
    return torch.where(inside, a << torch.where(inside, b, 0), 0)


def _shift_right_signed(a: Tensor, b: Tensor) -> Tensor:
    inside = (b >= 0) & (b < _shift_width(a))
    return a >> torch.where(inside, b, _shift_width(a) - 1)


def _shift_right_unsigned(a: Tensor, b: Tensor) -> Tensor:
    width = _shift_width(a)
    inside = (b >= 0) & (b < width)
    shifted = _unsigned_binary(np.right_shift)(a, torch.where(inside, b, 0))
    return torch.where(inside, shifted, torch.zeros_like(shifted))



BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "addi": _boolean(torch.add, torch.logical_xor),
    "subi": _boolean(torch.sub, torch.logical_xor),
    "muli": _boolean(torch.mul, torch.logical_and),
    "divsi": _divide("trunc"),
    "floordivsi": _divide("floor"),
    "ceildivsi": _ceil_divide,
    "remsi": _remainder_signed,
    "divui": _unsigned_binary(lambda a, b: a // np.where(b == 0, 1, b).astype(b.dtype)),
    "remui": _unsigned_binary(lambda a, b: a % np.where(b == 0, 1, b).astype(b.dtype)),
    "andi": torch.bitwise_and,
    "ori": torch.bitwise_or,
    "xori": torch.bitwise_xor,
    "shli": _shift_left,
    "shrsi": _shift_right_signed,
    "shrui": _shift_right_unsigned,
    "minsi": torch.minimum,
    "maxsi": torch.maximum,
    "minui": _unsigned_binary(np.minimum),
    "maxui": _unsigned_binary(np.maximum),
    "addf": torch.add,
    "subf": torch.sub,
    "mulf": torch.mul,
    "divf": torch.div,
    "remf": torch.fmod,
    "minimumf": torch.minimum,
    "maximumf": torch.maximum,
    "minnumf": torch.fmin,
    "maxnumf": torch.fmax,
}

SIGNED_COMPARISONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": torch.eq, "ne": torch.ne,
    "slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge,
}  # fmt: skip
UNSIGNED_COMPARISONS: dict[str, Any] = {
    "ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal,
}  # fmt: skip
ORDERED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": torch.eq,
    "gt": torch.gt,
    "ge": torch.ge,
    "lt": torch.lt,
    "le": torch.le,
    "ne": torch.ne,
}


def compare_integers(predicate: str, a: Tensor, b: Tensor) -> Tensor:
    """arith.cmpi."""
    signed = SIGNED_COMPARISONS.get(predicate)
    if signed is not None:
        if a.dtype == torch.bool and predicate not in ("eq", "ne"):
            a, b = -a.to(torch.int8), -b.to(torch.int8)  # a signed bit: true is -1
        return signed(a, b)
    a, b = torch.broadcast_tensors(a, b)
    return torch.from_numpy(np.asarray(UNSIGNED_COMPARISONS[predicate](_unsigned(a), _unsigned(b))))


def compare_floats(predicate: str, a: Tensor, b: Tensor) -> Tensor:
    """arith.cmpf: `o` predicates are false on NaN, `u` predicates are true."""
    unordered = a.isnan() | b.isnan()
    if predicate in ("false", "true"):
        return torch.full_like(unordered, predicate == "true")
    if predicate in ("ord", "uno"):
        return ~unordered if predicate == "ord" else unordered
    hit = ORDERED[predicate[1:]](a, b)
    return hit & ~unordered if predicate[0] == "o" else hit | unordered


def dense_content(attr: A.Attribute, type_: Type, frame: Frame) -> Tensor:
    """The content of a constant attribute for a value of type `type_`."""
    element = element_of_type(type_)
    dtype = frame.dtype(element)
    if isinstance(attr, A.IntegerAttr | A.FloatAttr | A.BoolAttr):
        scalar = _wrapped(attr.value, dtype)
        shape = getattr(type_, "shape", ())
        return torch.full(tuple(shape), scalar, dtype=dtype) if shape else _scalar(scalar, dtype)
    if isinstance(attr, A.DenseAttr):
        from irc.interp.core import torch_dtype

        shape = frame.dims(getattr(type_, "shape", ()))
        if not attr.data:
            return torch.empty(shape, dtype=dtype)
        raw = torch.frombuffer(bytearray(attr.data), dtype=torch_dtype(element)).clone()
        content = raw.reshape(()).expand(shape).clone() if raw.numel() == 1 else raw.reshape(shape)
        return content.to(dtype)
    raise InvalidIR(f"{attr} is no constant of type {type_}")


def _wrapped(value: Any, dtype: torch.dtype) -> Any:
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        return float(value)
    bits = torch.iinfo(dtype).bits
    wrapped = int(value) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if dtype.is_signed and wrapped >> (bits - 1) else wrapped


def _scalar(value: Any, dtype: torch.dtype) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def _register() -> None:
    def add(name: str, handler: Callable[[Frame, Any], Any]) -> None:
        cls = lookup_op(f"arith.{name}")
        if cls is not None:
            interprets(cls)(handler)

    for name, function in BINARY.items():
        add(name, _binary_handler(function))
    add("constant", lambda f, op: dense_content(op.attributes["value"], op.results[0].type, f))
    add("negf", lambda f, op: -f[op.operands[0]])
    add("cmpi", lambda f, op: compare_integers(_predicate(op), *f.operands(op)))
    add("cmpf", lambda f, op: compare_floats(_predicate(op), *f.operands(op)))
    add("select", lambda f, op: torch.where(*f.operands(op)))
    add("extf", _convert)
    add("truncf", _narrow)
    for name in ("extsi", "trunci", "index_cast", "sitofp"):
        add(name, _convert_signed)
    for name in ("extui", "index_castui", "uitofp"):
        add(name, _convert_unsigned)
    add("fptosi", _float_to_signed)
    add("fptoui", _float_to_unsigned)
    add("bitcast", _bitcast)


def _binary_handler(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Frame, Any], Any]:
    def handle(frame: Frame, op: Operation) -> Tensor:
        a, b = op.operands
        return function(frame[a], frame[b])

    return handle


def _narrow(frame: Frame, op: Any) -> Tensor:
    mode = op.roundingmode
    if mode is None or mode == "to_nearest_even" or frame.dtype(bf16) is not torch.bfloat16:
        return _convert(frame, op)
    source = frame[op.operands[0]]
    half = 0 if mode == "toward_zero" else 1 << 15
    bits = source.contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    upper = ((bits + half) >> 16 & 0xFFFF).to(torch.int16)
    return torch.where(source.isnan(), torch.nan, upper.view(torch.bfloat16))


def _predicate(op: Any) -> str:
    return str(op.predicate)


def _result_dtype(frame: Frame, op: Operation) -> torch.dtype:
    return frame.dtype(element_of_type(op.results[0].type))


def _convert(frame: Frame, op: Operation) -> Tensor:
    return frame[op.operands[0]].to(_result_dtype(frame, op))


def _convert_signed(frame: Frame, op: Operation) -> Tensor:
    source = frame[op.operands[0]]
    dtype = _result_dtype(frame, op)
    if source.dtype == torch.bool:
        source = -source.to(torch.int8)
    if dtype == torch.bool:
        return (source & 1).to(torch.bool)
    return source.to(dtype)


def _convert_unsigned(frame: Frame, op: Operation) -> Tensor:
    source = frame[op.operands[0]]
    dtype = _result_dtype(frame, op)
    array = _unsigned(source)
    if dtype.is_floating_point:
        return torch.from_numpy(array.astype(np.float64)).to(dtype)
    wide = torch.from_numpy(array.astype(np.uint64).view(np.int64).copy())
    return wide.to(dtype)


def _float_to_signed(frame: Frame, op: Operation) -> Tensor:
    source = frame[op.operands[0]]
    return source.to(torch.int64).to(_result_dtype(frame, op))


def _float_to_unsigned(frame: Frame, op: Operation) -> Tensor:
    source = frame[op.operands[0]].to(torch.float64)
    wide = torch.where(source >= 2.0**63, (source - 2.0**64), source).to(torch.int64)
    return wide.to(_result_dtype(frame, op))


def _bitcast(frame: Frame, op: Operation) -> Tensor:
    source = frame[op.operands[0]]
    from_element = element_of_type(op.operands[0].type)
    to_element = element_of_type(op.results[0].type)
    from irc.interp.core import torch_dtype

    if isinstance(from_element, T.FloatType):
        source = source.to(torch_dtype(from_element))
    bits = source.contiguous().view(torch_dtype(to_element))
    return bits.to(frame.dtype(to_element))


_register()
