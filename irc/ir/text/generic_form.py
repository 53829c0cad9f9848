"""MLIR's generic form of an operation, such that MLIR's own tools accept it.

Such a tool knows the operations of builtin, func, arith and math and checks them by its rules;
where an operation of ours is something else to it, it is written under a name of our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation
from irc.ir.definition import Op
from irc.ir.types import FloatType, IndexType, IntegerType, VectorType, i32, i64

if TYPE_CHECKING:
    from irc.ir.text.printer import Printer

PREFIX = "irc."
CHECKED_DIALECTS = frozenset({"arith", "math"})
# Operations of ours in a dialect that MLIR knows, which MLIR's dialect does not have.
OURS = frozenset(
    {"math.sigmoid", "math.erfinv", "math.lgamma", "math.digamma", "math.nextafter", "math.philox"}
)
# The number that MLIR's attribute has for a predicate's name is its position.
PREDICATES = {
    "arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
    "arith.cmpf": (
        "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
        "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
    ),
}  # fmt: skip
# Properties that MLIR adds to operations when it prints them, with the value that means nothing.
ADDED_BY_MLIR = {"fastmath": "#arith.fastmath<none>", "overflowFlags": "#arith.overflow<none>"}
# Those that MLIR's operations of the checked dialects have; it ignores others that it is given.
MLIR_PROPERTIES = frozenset(
    {"predicate", "value", "fastmath", "overflowFlags", "isExact", "nonNeg", "roundingmode"}
)
#: MLIR's numbers of the rounding modes that there are.
ROUNDING: dict[Attribute | None, Attribute] = {
    A.StringAttr(name): A.IntegerAttr(number, i32) for name, number in
    (("to_nearest_even", 0), ("toward_zero", 3), ("to_nearest_away", 4))
}  # fmt: skip
MODES: dict[Attribute | None, Attribute] = {
    number: name for name, number in ROUNDING.items() if name is not None
}
FUNC_PROPERTIES = ("sym_name", "function_type", "sym_visibility", "callee")


def print_generic(printer: Printer, op: Operation) -> None:
    """Write `"name"(operands)[successors] <{properties}> (regions) {attributes} : type`."""
    name, attributes = mlir_form(op)
    printer.out.append(f'"{name}"(')
    printer.values(op._operands)
    printer.out.append(")")
    print_generic_rest(printer, op, attributes)


def print_generic_rest(
    printer: Printer, op: Operation, attributes: dict[str, Attribute]
) -> None:
    """Write what follows the operands; `attributes`: those of `mlir_form`."""
    out = printer.out
    printer._successors(op)
    properties, others = _split(op, attributes)
    if properties:
        out.append(" <")
        printer.attribute_dict(sorted(properties.items()))
        out.append(">")
    printer._regions(op)
    if others:
        out.append(" ")
        printer.attribute_dict(sorted(others.items()))
    out.append(" : (")
    printer.types(v.type for v in op._operands)
    out.append(") -> ")
    printer.result_types(r.type for r in op.results)


def _split(
    op: Operation, attributes: dict[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Declared attributes (properties) and the others."""
    if not attributes or not isinstance(op, Op):
        return {}, attributes
    if op.name.startswith("func."):
        declared = set(FUNC_PROPERTIES)
    else:
        declared = {*type(op).attribute_fields, "operandSegmentSizes"}
        if op.name.partition(".")[0] in CHECKED_DIALECTS:
            declared &= MLIR_PROPERTIES
    properties = {k: v for k, v in attributes.items() if k in declared}
    return properties, {k: v for k, v in attributes.items() if k not in declared}


def mlir_form(op: Operation) -> tuple[str, dict[str, Attribute]]:
    """The name and attributes that stand for `op` in MLIR."""
    dialect = op.name.partition(".")[0]
    attributes = op.attributes
    if dialect not in CHECKED_DIALECTS:
        return op.name, attributes
    if not _is_mlir(op):
        return PREFIX + op.name, attributes
    mode = ROUNDING.get(attributes.get("roundingmode"))
    if mode is not None:
        attributes = {**attributes, "roundingmode": mode}
    names = PREDICATES.get(op.name)
    predicate = attributes.get("predicate")
    if names is not None and isinstance(predicate, A.StringAttr):
        if predicate.value not in names:
            return PREFIX + op.name, attributes
        number = A.IntegerAttr(names.index(predicate.value), i64)
        return op.name, {**attributes, "predicate": number}
    return op.name, attributes


def _is_mlir(op: Operation) -> bool:
    if op.name in OURS or not isinstance(op, Op):
        return False
    types = [v.type for v in op._operands] + [r.type for r in op.results]
    if not all(_is_scalar_or_vector(t) for t in types):
        return False
    if op.name == "arith.constant":
        value = op.attributes.get("value")
        if isinstance(value, A.BoolAttr):
            return types[0] is IntegerType(1)
        return getattr(value, "type", None) is types[0]
    return True


def _is_scalar_or_vector(type_: Type) -> bool:
    element = type_.element if isinstance(type_, VectorType) else type_
    if isinstance(element, IntegerType):
        return not element.unsigned
    return isinstance(element, IndexType | FloatType)


def irc_form(name: str, attributes: dict[str, Attribute]) -> tuple[str, dict[str, Attribute]]:
    """The reverse of `mlir_form`: our name and attributes for what MLIR's text says."""
    if name.startswith(PREFIX) and "." in name[len(PREFIX) :]:
        name = name[len(PREFIX) :]
    if name.partition(".")[0] not in CHECKED_DIALECTS:
        return name, attributes
    for key, neutral in ADDED_BY_MLIR.items():
        if key in attributes and str(attributes[key]) == neutral:
            del attributes[key]
    mode = MODES.get(attributes.get("roundingmode"))
    if mode is not None:
        attributes["roundingmode"] = mode
    names = PREDICATES.get(name)
    predicate = attributes.get("predicate")
    if names is not None and isinstance(predicate, A.IntegerAttr):
        if 0 <= predicate.value < len(names):
            attributes["predicate"] = A.StringAttr(names[predicate.value])
    return name, attributes
