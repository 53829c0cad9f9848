"""The arith dialect: arithmetic on scalars and vectors of signless integers, index and floats.

Names and meaning are MLIR's. Integers wrap. Nothing here is undefined behaviour: a shift by the
width or more gives 0 (or the sign), a division by zero and a cast out of range give some value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.definition import Constraint, Op, attribute, operand, result
from irc.ir.registry import register_attribute
from irc.ir.rewrite.driver import register_materializer
from irc.ir.text.syntax import Syntax
from irc.ir.traits import (
    Commutative,
    ConstantLike,
    Free,
    Jumps,
    Pure,
    SameOperandsAndResultType,
    Slow,
    Trait,
    Traps,
)
from irc.ir.types import (
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    VectorType,
    bf16,
    f32,
    i1,
)

if TYPE_CHECKING:
    from irc.ir.text.attribute_text import TextWriter
    from irc.ir.text.parser import Parser


def element_type(type_: Type) -> Type:
    """The element of a vector type; a scalar type itself."""
    return type_.element if isinstance(type_, VectorType) else type_


def with_element(type_: Type, element: Type) -> Type:
    """`element`, in a vector of the same shape if `type_` is one."""
    return VectorType(type_.shape, element) if isinstance(type_, VectorType) else element


def _is_integer(type_: Type) -> bool:
    element = element_type(type_)
    return isinstance(element, IndexType) or (
        isinstance(element, IntegerType) and not element.unsigned
    )


INTEGER = Constraint("a signless integer or index, or a vector of them", _is_integer)
FIXED = Constraint(
    "a signless integer, or a vector of them",
    lambda t: _is_integer(t) and not isinstance(element_type(t), IndexType),
)
FLOAT = Constraint(
    "a float or a vector of floats", lambda t: isinstance(element_type(t), FloatType)
)
BITS = Constraint(
    "a signless integer or float, or a vector of them", lambda t: FIXED.test(t) or FLOAT.test(t)
)
BOOLEAN = Constraint("i1 or a vector of i1", lambda t: element_type(t) is i1)

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


class ConstantOp(Op):
    """A constant scalar, or a vector with this value in each lane (or DenseAttr lanes).

    `%c = arith.constant 4 : i32`
    """

    name = "arith.constant"
    syntax = Syntax("constant")
    traits = frozenset({ConstantLike, Free, Pure})
    value = attribute(Attribute)
    constant = result(
        Constraint(
            "a signless integer, index or float, or a vector of them, or a tensor",
            lambda t: isinstance(t, TensorType) or INTEGER.test(t) or FLOAT.test(t),
        )
    )

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        value = attributes["value"]
        if isinstance(value, A.BoolAttr):
            return (i1,)
        return (value.type,)  # type: ignore[attr-defined]

    def verify_op(self) -> None:
        value = self.attributes["value"]
        element = element_type(self.results[0].type)
        if isinstance(value, A.BoolAttr):
            fits = element is i1
        elif isinstance(value, A.IntegerAttr):
            fits = isinstance(element, IntegerType | IndexType) and element is not i1
        elif isinstance(value, A.FloatAttr):
            fits = isinstance(element, FloatType)
        else:
            fits = isinstance(value, A.DenseAttr)
        if not fits:
            self.fail(f"the value {value} does not fit the type {self.results[0].type}")


class _FlagsAttr(A.Attribute):
    """Some of the words in `known`, in their order; `every` stands for all of them."""

    __slots__ = ()
    dialect = "arith"
    fields = ("words",)
    words: tuple[str, ...]
    known: ClassVar[tuple[str, ...]] = ()
    every: ClassVar[str] = ""
    separator: ClassVar[str] = ","

    def __new__(cls, words: Iterable[str] = ()) -> Any:
        flags = set(words)
        if cls.every and cls.every in flags:
            flags = set(cls.known)
        key = (tuple(word for word in cls.known if word in flags),)
        return cls._table.get(key) or cls._intern(key, key)

    def print_parameters(self, writer: TextWriter) -> None:
        words = self.words
        if self.every and words == self.known:
            words = (self.every,)
        writer.text(self.separator.join(words) or "none")

    @classmethod
    def parse_parameters(cls, parser: Parser) -> Attribute:
        words = []
        while True:
            words.append(parser.word("a flag"))
            if words[-1] not in (*cls.known, cls.every, "none"):
                choices = ", ".join(filter(None, (*cls.known, cls.every, "none")))
                raise ValueError(f"'{words[-1]}' is not one of {choices}")
            if not parser.take(","):
                return cls(words)


@register_attribute
class FastMathAttr(_FlagsAttr):
    """What a float operation may be computed without regard to: `#arith.fastmath<nnan,nsz>`. irc
    keeps it and computes exactly all the same."""

    __slots__ = ()
    mnemonic = "fastmath"
    known = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
    every = "fast"


@register_attribute
class OverflowAttr(_FlagsAttr):
    """How an integer operation is promised not to overflow: `#arith.overflow<nsw, nuw>`. irc keeps
    it, and the operation wraps all the same."""

    __slots__ = ()
    mnemonic = "overflow"
    known = ("nsw", "nuw")
    separator = ", "


_FAST = {"fastmath": "fastmath"}
_OVERFLOW = {"overflow": "overflowFlags"}
_EXACT = {"exact": "isExact"}
_NOT_NEGATIVE = {"nneg": "nonNeg"}
ROUNDING = ("to_nearest_even",)
NARROWING = (*ROUNDING, "toward_zero", "to_nearest_away")
"""Of MLIR's rounding modes those that narrowing has; the last two from f32 to bf16 alone."""


class IntegerBinary(Op, abstract=True):
    syntax = Syntax("operand")
    traits = frozenset({Pure, SameOperandsAndResultType})
    lhs = operand(INTEGER)
    rhs = operand(INTEGER)
    output = result(INTEGER)


class _Wrapping(IntegerBinary, abstract=True):
    syntax = Syntax("operand", flags=_OVERFLOW)
    overflowFlags = attribute(OverflowAttr, optional=True)


class _Exact(IntegerBinary, abstract=True):
    syntax = Syntax("operand", marks=_EXACT)
    isExact = attribute(A.UnitAttr, "promises that nothing is cut off")


class FloatBinary(Op, abstract=True):
    syntax = Syntax("operand", flags=_FAST)
    traits = frozenset({Pure, SameOperandsAndResultType})
    lhs = operand(FLOAT)
    rhs = operand(FLOAT)
    fastmath = attribute(FastMathAttr, optional=True)
    output = result(FLOAT)


class _Rounded(FloatBinary, abstract=True):
    syntax = Syntax("operand", mode="roundingmode", flags=_FAST)
    roundingmode = attribute(A.StringAttr, optional=True, words=ROUNDING)


BinaryT = TypeVar("BinaryT", bound=Op)


def _binary(
    base: type[BinaryT], class_name: str, name: str, doc: str, *more: type[Trait],
    **attributes: Any,
) -> type[BinaryT]:
    """One two-operand operation with `more` traits; its documentation ends in an example."""
    type_name = "i32" if issubclass(base, IntegerBinary) else "f32"
    members = {
        "__doc__": f"{doc}\n\n    `%z = arith.{name} %x, %y : {type_name}`\n    ",
        "__module__": __name__,
        "__qualname__": class_name,
        "__slots__": (),
        "name": f"arith.{name}",
        "traits": base.traits.union(more),
        **attributes,
    }
    return type(class_name, (base,), members)


AddIOp = _binary(_Wrapping, "AddIOp", "addi", "The wrapping sum.", Commutative)
SubIOp = _binary(_Wrapping, "SubIOp", "subi", "The wrapping difference.")
MulIOp = _binary(_Wrapping, "MulIOp", "muli", "The wrapping product.", Commutative)
DivSIOp = _binary(_Exact, "DivSIOp", "divsi", "The signed quotient, rounded to zero.", Slow, Traps)
DivUIOp = _binary(_Exact, "DivUIOp", "divui", "The unsigned quotient.", Slow, Traps)
FloorDivSIOp = _binary(
    IntegerBinary, "FloorDivSIOp", "floordivsi", "The signed quotient, rounded down.", Slow, Traps
)
CeilDivSIOp = _binary(
    IntegerBinary, "CeilDivSIOp", "ceildivsi", "The signed quotient, rounded up.", Slow, Traps
)
RemSIOp = _binary(
    IntegerBinary, "RemSIOp", "remsi", "The signed remainder, with the sign of the dividend.",
    Slow, Traps,
)  # fmt: skip
RemUIOp = _binary(IntegerBinary, "RemUIOp", "remui", "The unsigned remainder.", Slow, Traps)
AndIOp = _binary(IntegerBinary, "AndIOp", "andi", "Bitwise and.", Commutative, Free)
OrIOp = _binary(IntegerBinary, "OrIOp", "ori", "Bitwise or.", Commutative, Free)
XOrIOp = _binary(IntegerBinary, "XOrIOp", "xori", "Bitwise exclusive or.", Commutative, Free)
ShLIOp = _binary(
    _Wrapping, "ShLIOp", "shli", "Shift left; 0 for a negative or too large distance."
)
ShRSIOp = _binary(
    _Exact,
    "ShRSIOp",
    "shrsi",
    "Arithmetic shift right; the sign for a negative or too large distance.",
)
ShRUIOp = _binary(
    _Exact, "ShRUIOp", "shrui", "Logical shift right; 0 for a bad distance."
)
MinSIOp = _binary(IntegerBinary, "MinSIOp", "minsi", "The signed minimum.", Commutative)
MaxSIOp = _binary(IntegerBinary, "MaxSIOp", "maxsi", "The signed maximum.", Commutative)
MinUIOp = _binary(IntegerBinary, "MinUIOp", "minui", "The unsigned minimum.", Commutative)
MaxUIOp = _binary(IntegerBinary, "MaxUIOp", "maxui", "The unsigned maximum.", Commutative)

AddFOp = _binary(_Rounded, "AddFOp", "addf", "The sum.", Commutative)
SubFOp = _binary(_Rounded, "SubFOp", "subf", "The difference.")
MulFOp = _binary(_Rounded, "MulFOp", "mulf", "The product.", Commutative)
DivFOp = _binary(
    _Rounded, "DivFOp", "divf",
    "The quotient. `rough` (gpu): the divisor has an inverse that is a normal number, and a\n"
    "    product with the machine's own one is near enough.",
    Slow, rough=attribute(A.UnitAttr),
)  # fmt: skip
RemFOp = _binary(
    FloatBinary, "RemFOp", "remf", "The remainder of C's fmod, with the dividend's sign.",
    Slow, Jumps,
)  # fmt: skip
MinimumFOp = _binary(FloatBinary, "MinimumFOp", "minimumf", "The minimum; NaN wins.", Commutative)
MaximumFOp = _binary(FloatBinary, "MaximumFOp", "maximumf", "The maximum; NaN wins.", Commutative)
MinNumFOp = _binary(FloatBinary, "MinNumFOp", "minnumf", "The minimum; NaN loses.", Commutative)
MaxNumFOp = _binary(FloatBinary, "MaxNumFOp", "maxnumf", "The maximum; NaN loses.", Commutative)


class NegFOp(Op):
    """The negation: flips the sign bit.

    `%z = arith.negf %x : f32`
    """

    name = "arith.negf"
    syntax = Syntax("operand", flags=_FAST)
    traits = frozenset({Pure, SameOperandsAndResultType})
    source = operand(FLOAT)
    fastmath = attribute(FastMathAttr, optional=True)
    output = result(FLOAT)


class Compare(Op, abstract=True):
    predicate = attribute(A.StringAttr)
    traits = frozenset({Pure})

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (with_element(operands[0].type, i1),)

    def verify_op(self) -> None:
        if self.operands[0].type is not self.operands[1].type:
            self.fail(f"compares {self.operands[0].type} with {self.operands[1].type}")


class CmpIOp(Compare):
    """Compares integers; `s` predicates as signed, `u` predicates as unsigned.

    `%c = arith.cmpi slt, %x, %y : i32`
    """

    name = "arith.cmpi"
    traits = frozenset({Free, Pure})
    syntax = Syntax("operand", word="predicate")
    lhs = operand(INTEGER)
    rhs = operand(INTEGER)
    predicate = attribute(A.StringAttr, words=INTEGER_PREDICATES)
    outcome = result(BOOLEAN)


class CmpFOp(Compare):
    """Compares floats; `o` predicates are false and `u` predicates true when one is NaN.

    `%c = arith.cmpf olt, %x, %y : f32`
    """

    name = "arith.cmpf"
    traits = frozenset({Jumps, Pure})
    syntax = Syntax("operand", word="predicate", flags=_FAST)
    lhs = operand(FLOAT)
    rhs = operand(FLOAT)
    predicate = attribute(A.StringAttr, words=FLOAT_PREDICATES)
    fastmath = attribute(FastMathAttr, optional=True)
    outcome = result(BOOLEAN)


class SelectOp(Op):
    """`if_true` where the condition holds, else `if_false`; lane by lane for vectors.

    `%z = arith.select %c, %x, %y : f32`
    """

    name = "arith.select"
    syntax = Syntax("choice")
    traits = frozenset({Free, Pure})
    condition = operand(BOOLEAN)
    if_true = operand()
    if_false = operand()
    output = result()

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (operands[1].type,)

    def verify_op(self) -> None:
        if len({self.operands[1].type, self.operands[2].type, self.results[0].type}) != 1:
            self.fail("both choices and the result have one type")


# How the target's element may be to the source's, by the widths of both.
_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "wider than": lambda source, target: source.width < target.width,
    "narrower than": lambda source, target: source.width > target.width,
    "as wide as": lambda source, target: source.width == target.width,
}


class ScalarCast(Op, abstract=True):
    syntax = Syntax("cast")
    traits = frozenset({Free, Pure})
    relation: ClassVar[str] = ""

    def verify_op(self) -> None:
        source, target = self.operands[0].type, self.results[0].type
        if with_element(source, i1) is not with_element(target, i1):
            self.fail(f"the shapes of {source} and {target} differ")
        asked = _RELATIONS.get(self.relation)
        if asked is not None and not asked(element_type(source), element_type(target)):
            self.fail(f"{target} is not {self.relation} {source}")


class _Narrowing(ScalarCast, abstract=True):
    def verify_op(self) -> None:
        super().verify_op()
        types = tuple(element_type(v.type) for v in (self.operands[0], self.results[0]))
        mode = self.attributes.get("roundingmode")
        known = mode is None or getattr(mode, "value", "") in ROUNDING
        if not known and types != (f32, bf16):
            self.fail(f"rounds {mode} from f32 to bf16, not from {types[0]} to {types[1]}")


class _IndexCast(ScalarCast, abstract=True):
    def verify_op(self) -> None:
        super().verify_op()
        types = self.operands[0].type, self.results[0].type
        if sum(isinstance(element_type(t), IndexType) for t in types) != 1:
            self.fail(f"one of {types[0]} and {types[1]} is index, and the other an integer")


def _cast(
    class_name: str,
    name: str,
    doc: str,
    types: tuple[str, str],
    ends: tuple[Constraint, Constraint],
    relation: str = "",
    base: type[ScalarCast] = ScalarCast,
    **attributes: Any,
) -> type[Op]:
    """One conversion; its documentation ends in an example."""
    example = f"`%z = arith.{name} %x : {types[0]} to {types[1]}`"
    members = {
        "__doc__": f"{doc}\n\n    {example}\n    ",
        "__module__": __name__,
        "__qualname__": class_name,
        "__slots__": (),
        "name": f"arith.{name}",
        "relation": relation,
        "source": operand(ends[0]),
        "output": result(ends[1]),
        **attributes,
    }
    return type(class_name, (base,), members)


_JUMPS = ScalarCast.traits | {Jumps}
_FF, _II = (FLOAT, FLOAT), (FIXED, FIXED)
_UNSIGNED = {
    "syntax": Syntax("cast", marks=_NOT_NEGATIVE),
    "nonNeg": attribute(A.UnitAttr, "promises that the operand is not negative as a signed one"),
}
ExtFOp = _cast(
    "ExtFOp", "extf", "Widens a float, exactly.", ("bf16", "f32"), _FF, "wider than",
    syntax=Syntax("cast", flags=_FAST), fastmath=attribute(FastMathAttr, optional=True),
)  # fmt: skip
TruncFOp = _cast(
    "TruncFOp", "truncf",
    "Narrows a float, to nearest even unless `roundingmode` says otherwise (`toward_zero`, or\n"
    "    `to_nearest_away` from zero, of f32 to bf16); NaN stays NaN. On the loop level\n"
    "    `rounding` numbers the roundings of a function: copies of one, made by fusion, are\n"
    "    dropped all or none.",
    ("f32", "bf16"), _FF, "narrower than", rounding=attribute(A.IntegerAttr, optional=True),
    syntax=Syntax("cast", mode="roundingmode", flags=_FAST),
    roundingmode=attribute(A.StringAttr, optional=True, words=NARROWING),
    fastmath=attribute(FastMathAttr, optional=True), base=_Narrowing,
)  # fmt: skip
ExtSIOp = _cast("ExtSIOp", "extsi", "Widens a signed integer.", ("i8", "i32"), _II, "wider than")
ExtUIOp = _cast(
    "ExtUIOp", "extui", "Widens an unsigned integer.", ("i8", "i32"), _II, "wider than",
    **_UNSIGNED,
)  # fmt: skip
TruncIOp = _cast(
    "TruncIOp", "trunci", "Keeps the low bits.", ("i32", "i8"), _II, "narrower than",
    syntax=Syntax("cast", flags=_OVERFLOW), overflowFlags=attribute(OverflowAttr, optional=True),
)  # fmt: skip
SIToFPOp = _cast(
    "SIToFPOp", "sitofp", "A signed integer as a float.", ("i32", "f32"), (FIXED, FLOAT)
)
UIToFPOp = _cast(
    "UIToFPOp", "uitofp", "An unsigned integer as a float.", ("i32", "f32"), (FIXED, FLOAT),
    **_UNSIGNED,
)  # fmt: skip
FPToSIOp = _cast(
    "FPToSIOp",
    "fptosi",
    "A float as a signed integer, rounded to zero; some value out of range.",
    ("f32", "i32"),
    (FLOAT, FIXED),
    traits=_JUMPS,
)
FPToUIOp = _cast(
    "FPToUIOp",
    "fptoui",
    "A float as an unsigned integer, rounded to zero; some value out of range.",
    ("f32", "i32"),
    (FLOAT, FIXED),
    traits=_JUMPS,
)
IndexCastOp = _cast(
    "IndexCastOp", "index_cast", "Between index and a signed integer.", ("i32", "index"),
    (INTEGER, INTEGER), base=_IndexCast,
)  # fmt: skip
IndexCastUIOp = _cast(
    "IndexCastUIOp", "index_castui", "Between index and an unsigned integer.", ("i32", "index"),
    (INTEGER, INTEGER), base=_IndexCast, **_UNSIGNED,
)  # fmt: skip
BitcastOp = _cast(
    "BitcastOp", "bitcast", "The same bits as another type.", ("f32", "i32"), (BITS, BITS),
    "as wide as", traits=_JUMPS,
)  # fmt: skip


# -- canonicalization


def _materialize(builder: Builder, attr: Attribute, type_: Type) -> Value:
    return builder.value(ConstantOp, value=attr, result_types=type_)


register_materializer("arith", _materialize)
register_materializer("math", _materialize)
