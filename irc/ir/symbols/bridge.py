"""Sympy expressions, torch's integer functions included, to Dims and back.

Classes are told by name, so neither sympy nor torch is imported to read an expression. No text
is ever given to sympy. A value is carried while reading as a fraction of two Dims (sympy writes
`s0 // 2` as `floor(s0/2)`) or as a float; floats become opaque functions, exact as torch
computes them, and must have been rounded to an integer by the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.ir.symbols.division import ceildiv, floordiv, function, maximum, minimum, mod
from irc.ir.symbols.expr import (
    Dim,
    Expr,
    Function,
    Product,
    Sum,
    Symbol,
    SymbolError,
    dim_product,
    symbol,
)

if TYPE_CHECKING:
    import sympy

MAX_POWER = 64
"""Largest constant exponent that is written out as a product."""


class _SympyValue(NamedTuple):
    """above / below as an exact rational, or, with `floating`, a float (below is 1)."""

    above: Dim
    below: Dim = 1
    floating: bool = False


_RELATIONS = {
    "Equality": ("eq", False),
    "Unequality": ("ne", False),
    "StrictLessThan": ("lt", False),
    "LessThan": ("le", False),
    "StrictGreaterThan": ("lt", True),
    "GreaterThan": ("le", True),
}
_ROUNDINGS = {
    "TruncToInt": "trunc_to_int",
    "FloorToInt": "floor_to_int",
    "CeilToInt": "ceil_to_int",
    "RoundToInt": "round_to_int",
}
_FLOAT_FUNCTIONS = {
    "IntTrueDiv": "int_true_div",
    "FloatTrueDiv": "float_true_div",
    "FloatPow": "float_pow",
    "TruncToFloat": "trunc_to_float",
    "RoundDecimal": "round_decimal",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_log2": "log2",
}
_INTEGER_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "FloorDiv": floordiv,
    "CleanDiv": floordiv,
    "CeilDiv": ceildiv,
    "Mod": mod,
    "PythonMod": mod,
    "ModularIndexing": lambda x, divisor, modulus: mod(floordiv(x, divisor), modulus),
    "LShift": lambda a, b: a * 2**b if _small(b) else function("lshift", a, b),
    "RShift": lambda a, b: floordiv(a, 2**b) if _small(b) else function("rshift", a, b),
    "PowByNatural": lambda a, b: _power(a, b),
    "BitwiseFn_bitwise_and": lambda a, b: function("bit_and", a, b),
    "BitwiseFn_bitwise_or": lambda a, b: function("bit_or", a, b),
    "BitwiseFn_bitwise_xor": lambda a, b: function("bit_xor", a, b),
    "And": lambda *a: function("and", *a),
    "Or": lambda *a: function("or", *a),
    "Not": lambda a: function("not", a),
}


def from_sympy(e: Any, name_of: Callable[[Any], str] | None = None) -> Dim:
    """The Dim of an integer sympy expression; booleans become 0 and 1.

    `name_of` gives a sympy symbol's name (its own by default). SymbolError for a value that is
    not an integer or a class that is not known.
    """
    if isinstance(e, int):
        return int(e)
    value = _SympyReader(name_of).read(e)
    return _integer(value, e)


def _integer(value: _SympyValue, e: Any) -> Dim:
    if value.floating or value.below != 1:
        raise SymbolError(f"not an integer expression: {e}")
    return value.above


def _small(exponent: Dim) -> bool:
    return isinstance(exponent, int) and 0 <= exponent <= MAX_POWER


def _power(base: Dim, exponent: Dim) -> Dim:
    if isinstance(exponent, int) and _small(exponent):
        return dim_product([base] * exponent)
    return function("pow", base, exponent)


def _float_constant(number: float) -> _SympyValue:
    try:
        above, below = number.as_integer_ratio()
    except (OverflowError, ValueError):
        raise SymbolError(f"not a finite number: {number}") from None
    # Dividing a float's own integer ratio gives that float back exactly.
    return _SympyValue(function("int_true_div", above, below), 1, True)


def _as_float(value: _SympyValue) -> Dim:
    if value.floating:
        return value.above
    if value.below != 1:
        return function("int_true_div", value.above, value.below)
    return function("to_float", value.above)


class _SympyReader:
    """Reads one sympy expression, each shared part once."""

    def __init__(self, name_of: Callable[[Any], str] | None) -> None:
        self.name_of = name_of
        self.memo: dict[Any, _SympyValue] = {}

    def read(self, e: Any) -> _SympyValue:
        value = self.memo.get(e)
        if value is None:
            value = self.memo[e] = self._compute(e, type(e).__name__)
        return value

    def dim(self, e: Any) -> Dim:
        return _integer(self.read(e), e)

    def _compute(self, e: Any, name: str) -> _SympyValue:
        if isinstance(e, (bool, int)):
            return _SympyValue(int(e))
        if isinstance(e, float) or name == "Float":
            return _float_constant(float(e))
        if getattr(e, "is_Integer", False):
            return _SympyValue(int(e))
        if getattr(e, "is_Rational", False):
            return _SympyValue(int(e.p), int(e.q))
        if getattr(e, "is_Symbol", False):
            return _SympyValue(symbol(self.name_of(e) if self.name_of else e.name))
        if name in ("BooleanTrue", "BooleanFalse"):
            return _SympyValue(int(name == "BooleanTrue"))
        if name == "Add":
            return self._sum([self.read(a) for a in e.args])
        if name == "Mul":
            return self._product([self.read(a) for a in e.args])
        if name == "Pow":
            return self._pow(*e.args)
        if name in ("floor", "ceiling"):
            return self._round(self.read(e.args[0]), name)
        if name in ("Max", "Min"):
            return self._extreme([self.read(a) for a in e.args], name)
        return self._call(e, name)

    def _call(self, e: Any, called: str) -> _SympyValue:
        if called in _INTEGER_FUNCTIONS:
            return _SympyValue(_INTEGER_FUNCTIONS[called](*[self.dim(a) for a in e.args]))
        if called in _RELATIONS:
            name, swapped = _RELATIONS[called]
            left, right = [self.read(a) for a in e.args]
            # a/b < c/d is kept as floats only where a side is one already.
            if left.floating or right.floating:
                sides = [_as_float(left), _as_float(right)]
            else:
                sides = [self.dim(a) for a in e.args]
            return _SympyValue(function(name, *(reversed(sides) if swapped else sides)))
        if called in _ROUNDINGS:
            value = self.read(e.args[0])
            if not value.floating and value.below == 1:
                return value
            return _SympyValue(function(_ROUNDINGS[called], _as_float(value)))
        if called == "ToFloat":
            return _SympyValue(_as_float(self.read(e.args[0])), 1, True)
        if called == "IntTrueDiv":
            return _SympyValue(function("int_true_div", *[self.dim(a) for a in e.args]), 1, True)
        if called in _FLOAT_FUNCTIONS:
            return self._float_call(e, called)
        if called == "Identity":
            return self.read(e.args[0])
        if called == "Abs":
            x = self.dim(e.args[0])
            return _SympyValue(maximum(x, -x))
        if called == "Where":
            condition, yes, no = [self.dim(a) for a in e.args]
            return _SympyValue(function("where", condition, yes, no))
        if called == "Piecewise":
            return self._piecewise(e)
        if getattr(e, "is_Function", False) and type(type(e)).__name__ == "UndefinedFunction":
            return _SympyValue(function(called, *[self.dim(a) for a in e.args]))
        raise SymbolError(f"no integer meaning is known for {called}: {e}")

    def _float_call(self, e: Any, name: str) -> _SympyValue:
        if name == "RoundDecimal":
            arguments = [_as_float(self.read(e.args[0])), self.dim(e.args[1])]
        else:
            arguments = [_as_float(self.read(a)) for a in e.args]
        return _SympyValue(function(_FLOAT_FUNCTIONS[name], *arguments), 1, True)

    def _piecewise(self, e: Any) -> _SympyValue:
        *cases, (last, always) = [tuple(case.args) for case in e.args]
        if self.dim(always) != 1:
            raise SymbolError(f"a piecewise expression without a last case: {e}")
        result = self.dim(last)
        for yes, condition in reversed(cases):
            result = function("where", self.dim(condition), self.dim(yes), result)
        return _SympyValue(result)

    def _sum(self, values: list[_SympyValue]) -> _SympyValue:
        if any(v.floating for v in values):
            return _SympyValue(function("float_add", *[_as_float(v) for v in values]), 1, True)
        total = _SympyValue(0)
        for v in values:
            if v.below == total.below:
                total = _SympyValue(total.above + v.above, v.below)
            else:
                above = total.above * v.below + v.above * total.below
                total = _SympyValue(above, total.below * v.below)
        return total

    def _product(self, values: list[_SympyValue]) -> _SympyValue:
        if any(v.floating for v in values):
            return _SympyValue(function("float_mul", *[_as_float(v) for v in values]), 1, True)
        above = dim_product([v.above for v in values])
        return _SympyValue(above, dim_product([v.below for v in values]))

    def _pow(self, base: Any, exponent: Any) -> _SympyValue:
        value, power = self.read(base), self.read(exponent)
        if value.floating or power.floating or power.below != 1:
            return _SympyValue(function("float_pow", _as_float(value), _as_float(power)), 1, True)
        if isinstance(power.above, int) and power.above < 0:
            above, below = _power(value.below, -power.above), _power(value.above, -power.above)
            return _SympyValue(above, below)
        return _SympyValue(_power(value.above, power.above), _power(value.below, power.above))

    def _round(self, value: _SympyValue, mode: str) -> _SympyValue:
        if value.floating:
            name = "floor_to_int" if mode == "floor" else "ceil_to_int"
            return _SympyValue(function(name, value.above))
        divide = floordiv if mode == "floor" else ceildiv
        return _SympyValue(divide(value.above, value.below))

    def _extreme(self, values: list[_SympyValue], which: str) -> _SympyValue:
        if any(v.floating or v.below != 1 for v in values):
            name = f"float_{which.lower()}"
            return _SympyValue(function(name, *[_as_float(v) for v in values]), 1, True)
        extreme = maximum if which == "Max" else minimum
        return _SympyValue(extreme(*[v.above for v in values]))


def to_sympy(d: Dim) -> sympy.Expr:
    """d over sympy's own functions and integer symbols; opaque functions stay undefined ones.

    `from_sympy(to_sympy(d))` has d's value, and usually d's form: sympy rewrites floors.
    """
    import sympy

    if not isinstance(d, Expr):
        return sympy.Integer(d)
    if isinstance(d, Symbol):
        return sympy.Symbol(d.name, integer=True)
    if isinstance(d, Sum):
        scaled = zip(d.monomials, d.coefficients, strict=True)
        return sympy.Add(d.constant, *[c * to_sympy(m) for m, c in scaled])
    if isinstance(d, Product):
        return sympy.Mul(*[to_sympy(f) for f in d.factors])
    assert isinstance(d, Function)
    arguments = [to_sympy(a) for a in d.arguments]
    if d.name == "floordiv":
        return sympy.floor(arguments[0] / arguments[1])
    if d.name == "ceildiv":
        return sympy.ceiling(arguments[0] / arguments[1])
    known = {"mod": sympy.Mod, "min": sympy.Min, "max": sympy.Max}
    return (known.get(d.name) or sympy.Function(d.name, integer=True))(*arguments)
