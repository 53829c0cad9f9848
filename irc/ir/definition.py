"""How an operation is defined: a class with declared operands, attributes, results, regions.

    class AddF(Op):
        \"\"\"Floating-point sum of `lhs` and `rhs`.

        `%z = arith.addf %x, %y : f32`
        \"\"\"

        name = "arith.addf"
        traits = frozenset({Pure, Commutative, SameOperandsAndResultType})
        lhs = operand(FLOAT_LIKE)
        rhs = operand(FLOAT_LIKE)
        sum = result(FLOAT_LIKE)

Accessors (`op.lhs`, `op.sum`) come from the declarations. An attribute's accessor gives the plain
Python value where there is one (int, float, str, bool, tuple of ints or dims, type).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Region, Value
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.location import UNKNOWN, Location
from irc.ir.registry import register_op
from irc.ir.symbols import Dim, Expr
from irc.ir.text.syntax import Syntax
from irc.ir.traits import SameOperandsAndResultType, Trait

SEGMENTS = "operandSegmentSizes"


class Constraint:
    """A test on a type, with the words that an error uses for it."""

    __slots__ = ("description", "test")

    def __init__(self, description: str, test: Callable[[Type], bool]) -> None:
        self.description = description
        self.test = test


ANY = Constraint("any type", lambda t: True)


def of(*classes: type[Type]) -> Constraint:
    """The constraint that a type is of one of `classes`."""
    names = " or ".join(c.mnemonic or c.__name__ for c in classes)
    return Constraint(names, lambda t: isinstance(t, classes))


class Field:
    """A declared operand, result, attribute or region. `kind`: one, optional or variadic;
    `words`: the only values of an attribute, None for any."""

    def __init__(
        self, constraint: Any, kind: str, doc: str, default: Any = None, words: Any = None
    ) -> None:
        self.constraint = constraint
        self.words = words
        self.kind = kind
        self.doc = doc
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class OperandField(Field):
    """A declared operand or group of operands."""


class ResultField(Field):
    """A declared result or group of results."""


class AttributeField(Field):
    """A declared attribute; `constraint` is its class."""


class RegionField(Field):
    """A declared region."""


# The four functions return Any, so that type checkers accept `op.lhs` as a value.
def operand(constraint: Constraint = ANY, doc: str = "") -> Any:
    """Declare one operand."""
    return OperandField(constraint, "one", doc)


def optional_operand(constraint: Constraint = ANY, doc: str = "") -> Any:
    """Declare an operand that may be missing (its accessor then gives None)."""
    return OperandField(constraint, "optional", doc)


def variadic_operand(constraint: Constraint = ANY, doc: str = "") -> Any:
    """Declare any number of operands (the accessor gives a tuple)."""
    return OperandField(constraint, "variadic", doc)


def result(constraint: Constraint = ANY, doc: str = "") -> Any:
    """Declare one result."""
    return ResultField(constraint, "one", doc)


def variadic_result(constraint: Constraint = ANY, doc: str = "") -> Any:
    """Declare any number of results."""
    return ResultField(constraint, "variadic", doc)


def attribute(
    cls: type[Attribute] = Attribute,
    doc: str = "",
    *,
    optional: bool = False,
    default: Any = None,
    words: Iterable[str] | None = None,
) -> Any:
    """Declare an attribute of class `cls`. `default` (a plain Python value) stands for a missing
    one; a UnitAttr is a flag; a StringAttr that names one of a few things has just these
    `words`."""
    kind = "optional" if optional or default is not None or cls is A.UnitAttr else "one"
    known = None if words is None else {A.StringAttr(word): None for word in words}
    return AttributeField(cls, kind, doc, default, known)


def region(doc: str = "") -> Any:
    """Declare one region."""
    return RegionField(None, "one", doc)


def variadic_region(doc: str = "") -> Any:
    """Declare any number of regions."""
    return RegionField(None, "variadic", doc)


_UNWRAP: dict[type, Callable[[Any], Any]] = {
    A.IntegerAttr: lambda a: a.parameters[0],
    A.FloatAttr: lambda a: a.parameters[0],
    A.StringAttr: lambda a: a.parameters[0],
    A.BoolAttr: lambda a: a.parameters[0],
    A.UnitAttr: lambda a: True,
    A.SymbolRefAttr: lambda a: a.parameters[0],
    A.TypeAttr: lambda a: a.parameters[0],
    A.DimAttr: lambda a: a.parameters[0],
    A.DimsAttr: lambda a: a.parameters[0],
    A.DenseIntsAttr: lambda a: a.parameters[0],
}


def unwrap(attr: Attribute | None) -> Any:
    """The plain Python value of a simple attribute; other attributes as they are."""
    if attr is None:
        return None
    function = _UNWRAP.get(attr.__class__)
    return attr if function is None else function(attr)


def wrap(value: Any, cls: type[Attribute] = Attribute) -> Attribute:
    """The attribute for a plain Python value; `cls` is the class wanted. Raises UserError."""
    if isinstance(value, cls) and (cls is not Attribute or isinstance(value, Attribute)):
        return value
    if cls is not Attribute:
        return cls(value)
    if isinstance(value, bool):
        return A.BoolAttr(value)
    if isinstance(value, int):
        return A.IntegerAttr(value)
    if isinstance(value, float):
        return A.FloatAttr(value)
    if isinstance(value, str):
        return A.StringAttr(value)
    if isinstance(value, Expr):
        return A.DimAttr(value)
    if isinstance(value, list | tuple):
        return A.ArrayAttr([wrap(v) for v in value])
    if isinstance(value, Mapping):
        return A.DictAttr({k: wrap(v) for k, v in value.items()})
    raise UserError(f"{value!r} can't be made an attribute")


FieldT = TypeVar("FieldT", bound=Field)


def _of_kind(fields: Iterable[Field], cls: type[FieldT]) -> tuple[FieldT, ...]:
    return tuple(f for f in fields if isinstance(f, cls))


class Op(Operation):
    """Base of the registered operations; reading the declarations happens once, here.

    `parents`: names of the operations that may hold this one directly; empty: any.
    """

    __slots__ = ()
    is_registered: ClassVar[bool] = True
    operand_fields: ClassVar[tuple[OperandField, ...]] = ()
    result_fields: ClassVar[tuple[ResultField, ...]] = ()
    attribute_fields: ClassVar[dict[str, AttributeField]] = {}
    region_fields: ClassVar[tuple[RegionField, ...]] = ()
    traits: ClassVar[frozenset[type[Trait]]] = frozenset()
    parents: ClassVar[tuple[str, ...]] = ()
    abstract: ClassVar[bool] = False
    # MLIR's own form, where it is not the default one, and the name where MLIR leaves out "func.".
    syntax: ClassVar[Syntax | None] = None
    keyword: ClassVar[str] = ""
    # How many operands there are where each field has one, else None; how many results there are
    # where they all have the type of the operands, else None.
    plain_operands: ClassVar[int | None] = 0
    _alike_results: ClassVar[int | None] = None

    def __init_subclass__(
        cls, abstract: bool = False, register: bool = True, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.abstract = abstract
        declared = [f for f in cls.__dict__.values() if isinstance(f, Field)]
        if declared:
            cls.operand_fields += _of_kind(declared, OperandField)
            cls.result_fields += _of_kind(declared, ResultField)
            cls.region_fields += _of_kind(declared, RegionField)
            cls.attribute_fields = {
                **cls.attribute_fields,
                **{f.name: f for f in _of_kind(declared, AttributeField)},
            }
            _install_group(cls, cls.operand_fields, "_operands")
            _install_group(cls, cls.result_fields, "results")
            _install_group(cls, cls.region_fields, "regions")
            for name, field in cls.attribute_fields.items():
                setattr(cls, name, _attribute_accessor(field))
        fields = cls.operand_fields
        cls.plain_operands = len(fields) if all(f.kind == "one" for f in fields) else None
        alike = fields and SameOperandsAndResultType in cls.traits
        inferred = cls.infer_types.__func__ is Op.infer_types.__func__  # type: ignore[attr-defined]
        cls._alike_results = len(cls.result_fields) if alike and inferred else None
        if register and not abstract:
            register_op(cls)

    @classmethod
    def make(
        cls,
        *operands: Value | Sequence[Value] | None,
        result_types: Sequence[Type] | Type | None = None,
        regions: Sequence[Region] = (),
        location: Location = UNKNOWN,
        **attrs: Any,
    ) -> Any:
        """Build the operation from one argument per declared operand (a list for a variadic one)
        and plain Python values for its attributes. Missing result types are inferred."""
        count = cls.plain_operands
        if count == len(operands) and not attrs and count and None not in operands:
            # All that most operations need.
            if result_types is None and cls._alike_results is not None:
                result_types = (operands[0].type,) * cls._alike_results  # type: ignore[union-attr]
                return cls(operands, result_types, None, regions, location)  # type: ignore[arg-type]
        flat, segments = _flatten(cls, operands)
        attributes: dict[str, Attribute] = {}
        for name, value in attrs.items():
            field = cls.attribute_fields.get(name)
            if value is None:
                continue
            if field is not None and field.constraint is A.UnitAttr:
                if value:
                    attributes[name] = A.UNIT
                continue
            attributes[name] = wrap(value, field.constraint if field else Attribute)
        if segments is not None:
            attributes[SEGMENTS] = A.DenseIntsAttr(segments)
        if isinstance(result_types, Type):
            result_types = (result_types,)
        if result_types is None:
            result_types = cls.infer_types(flat, attributes)
        return cls(flat, result_types, attributes, regions, location)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        """The result types for these operands and attributes. Definitions override this."""
        if SameOperandsAndResultType in cls.traits and operands:
            return (operands[0].type,) * len(cls.result_fields)
        if not cls.result_fields:
            return ()
        raise UserError(f"{cls.name} can't infer its result types; pass result_types")

    def verify_op(self) -> None:
        """Check what the declarations can't say. Raise through `self.fail`."""

    def verify_references(self) -> None:
        """Check what is asked of another operation by its name (a function, a kernel).

        Called when everything else of the program has been verified, that operation too.
        """

    def verify_facts(self, stated: Any) -> None:
        """Check, inside of a function, what holds only by the facts that dominate this operation
        (`irc.ir.verifier.Stated`). Raise through `self.fail`."""

    def fold(self, constants: Sequence[Attribute | None]) -> Any:
        """Constant-fold. `constants` has the attribute of each operand that is constant.

        Return None (can't), one Attribute or Value (for one result) or a list of them.
        """
        return None

    def fail(self, message: str, *notes: str) -> NoReturn:
        """Raise InvalidIR about this operation."""
        raise InvalidIR(message, op=self, notes=notes)

    def attr(self, name: str) -> Any:
        """The plain value of the attribute `name`, or None."""
        return unwrap(self.attributes.get(name))


def _flatten(
    cls: type[Op], groups: Sequence[Value | Sequence[Value] | None]
) -> tuple[list[Value], list[int] | None]:
    fields = cls.operand_fields
    if len(groups) > len(fields):
        raise UserError(f"{cls.name} takes {len(fields)} operands, {len(groups)} given")
    flat: list[Value] = []
    segments: list[int] = []
    for position, field in enumerate(fields):
        group = groups[position] if position < len(groups) else None
        if field.kind == "variadic":
            values = list(group or ())  # type: ignore[arg-type]
        elif group is None:
            if field.kind == "one":
                raise UserError(f"{cls.name} needs the operand '{field.name}'")
            values = []
        else:
            values = [group]  # type: ignore[list-item]
        flat.extend(values)
        segments.append(len(values))
    return flat, segments if needs_segments(fields) else None


def needs_segments(fields: Sequence[Field]) -> bool:
    """Whether more than one group of operands has no fixed length."""
    return sum(1 for f in fields if f.kind != "one") > 1


def _install_group(cls: type[Op], fields: Sequence[Field], storage: str) -> None:
    if not fields:
        return
    by_segments = storage == "_operands" and needs_segments(fields)
    if sum(1 for f in fields if f.kind != "one") > 1 and not by_segments:
        raise TypeError(f"{cls.__name__}: only operands may have two groups of open length")
    count = len(fields)
    for position, field in enumerate(fields):
        accessor = (
            _segment_accessor(position, field.kind)
            if by_segments
            else _position_accessor(storage, position, count, fields, field.kind)
        )
        setattr(cls, field.name, property(accessor))


def _position_accessor(
    storage: str, position: int, count: int, fields: Sequence[Field], kind: str
) -> Callable[[Any], Any]:
    open_before = any(f.kind != "one" for f in fields[:position])
    after = count - position - 1
    if kind == "one" and not open_before:
        return lambda op: getattr(op, storage)[position]
    if kind == "one":
        return lambda op: getattr(op, storage)[len(getattr(op, storage)) - after - 1]
    if kind == "variadic":
        return lambda op: tuple(getattr(op, storage)[position : len(getattr(op, storage)) - after])

    def optional(op: Any) -> Any:
        items = getattr(op, storage)
        return items[position] if len(items) - after > position else None

    return optional


def _segment_accessor(position: int, kind: str) -> Callable[[Any], Any]:
    def optional(op: Any) -> Any:
        sizes = op.attributes[SEGMENTS].parameters[0]
        return op._operands[sum(sizes[:position])] if sizes[position] else None

    def first(op: Any) -> Any:
        return tuple(op._operands[: op.attributes[SEGMENTS].parameters[0][0]])

    def variadic(op: Any) -> Any:
        sizes = op.attributes[SEGMENTS].parameters[0]
        start = sum(sizes[:position])
        return tuple(op._operands[start : start + sizes[position]])

    if kind != "variadic":
        return optional
    return variadic if position else first


def _attribute_accessor(field: AttributeField) -> property:
    name, default = field.name, field.default
    if field.constraint is A.UnitAttr:
        return property(lambda op: name in op.attributes)
    convert = _UNWRAP.get(field.constraint)

    def get(op: Any) -> Any:
        attr = op.attributes.get(name)
        if attr is None:
            return default
        return attr if convert is None else convert(attr)

    def put(op: Any, value: Any) -> None:
        op.attributes[name] = wrap(value, field.constraint)

    return property(get, put)


__all__ = [
    "ANY", "Constraint", "Dim", "Op", "attribute", "of", "operand", "optional_operand", "region",
    "result", "unwrap", "variadic_operand", "variadic_region", "variadic_result", "wrap",
]  # fmt: skip
