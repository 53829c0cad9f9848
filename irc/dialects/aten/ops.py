"""The operations of the aten dialect."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from irc.dialects.aten.schema import (
    Schema,
    SchemaArgument,
    find_overload,
    find_schema,
    parse_schema,
)
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.definition import Op, attribute, variadic_operand, variadic_result, wrap
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.location import UNKNOWN, Location
from irc.ir.module import ModuleOp
from irc.ir.registry import register_attribute, register_resolver
from irc.ir.symbols import Expr
from irc.ir.traits import ReadsMemory, Trait, WritesMemory
from irc.ir.types import (
    ELEMENT_OF_DTYPE,
    FloatType,
    IndexType,
    IntegerType,
    LibraryTensorType,
    TensorType,
)

EXTERN = "extern."


# -- attributes


@register_attribute
class OperandAttr(Attribute):
    """`#aten.operand<k>`: operand number k of the operation, inside `arguments`."""

    __slots__ = ()
    dialect = "aten"
    mnemonic = "operand"
    fields = ("index",)
    index: int


@register_attribute
class NoneAttr(Attribute):
    """`#aten.none`: Python's None."""

    __slots__ = ()
    dialect = "aten"
    mnemonic = "none"


class NamedAttr(Attribute):
    """Base of what torch has an object for, which its name stands for."""

    __slots__ = ()
    dialect = "aten"
    fields = ("name",)
    name: str


@register_attribute
class DtypeAttr(NamedAttr):
    """`#aten.dtype<"float32">`: a torch dtype by its name."""

    __slots__ = ()
    mnemonic = "dtype"

    @property
    def element(self) -> Type:
        """The element type. Raises UserError for a dtype without one."""
        element = ELEMENT_OF_DTYPE.get(self.name)
        if element is None:
            raise UserError(f"dtype {self.name} has no element type here")
        return element


@register_attribute
class DeviceAttr(NamedAttr):
    """`#aten.device<"cuda:0">`: a torch device."""

    __slots__ = ()
    mnemonic = "device"


@register_attribute
class LayoutAttr(NamedAttr):
    """`#aten.layout<"strided">`: a torch layout by its name."""

    __slots__ = ()
    mnemonic = "layout"


@register_attribute
class MemoryFormatAttr(NamedAttr):
    """`#aten.memory_format<"channels_last">`: a torch memory format by its name."""

    __slots__ = ()
    mnemonic = "memory_format"


NONE = NoneAttr()
# torch takes a number where a schema says Tensor, and wraps it.
NUMBERS = (A.IntegerAttr, A.FloatAttr, A.BoolAttr, A.DimAttr)


# -- operations


class AtenOp(Op, abstract=True):
    """Base of the operations made from schemas. `qualified` is "namespace.name.overload"."""

    __slots__ = ()
    qualified: ClassVar[str] = ""
    schema: ClassVar[Schema]
    inputs = variadic_operand()
    arguments = attribute(A.DictAttr)
    outputs = variadic_result()

    def is_removable(self) -> bool:
        """Whether it may go when its results are unused."""
        return not self.schema.has_effect

    def verify_op(self) -> None:
        verify_arguments(self, self.schema)


def verify_arguments(op: Any, schema: Schema) -> None:
    """The dictionary `arguments` of an operation that calls the operator with this schema: names
    that it has, all that it needs, and of its types. Raises InvalidIR."""
    arguments = op.attributes.get("arguments")
    if not isinstance(arguments, A.DictAttr):
        op.fail("needs the dictionary 'arguments'")
    entries = arguments.as_dict()
    for name in entries:
        if schema.argument(name) is None:
            op.fail(f"the operator has no argument '{name}'", schema.text)
    for argument in schema.arguments:
        if argument.name not in entries and not argument.has_default:
            op.fail(f"argument '{argument.name}' is missing", schema.text)
    used = set(operand_indices(arguments))
    if used != set(range(len(op.operands))):
        op.fail(f"arguments mention operands {sorted(used)} of {len(op.operands)}")
    for argument in schema.arguments:
        attr = entries.get(argument.name)
        if attr is None:
            continue
        if argument.takes_tensor:
            _verify_tensor(op, argument, attr, schema.is_pointwise)
        elif not _fits(argument.type, attr) or _is_tensor(op, attr):
            op.fail(f"argument '{argument.name}' is {attr}, not {argument.type}", schema.text)


def verify_called(op: Any) -> None:
    """`verify_arguments` of an operation with a `callee`, where its schema is known. Raises
    InvalidIR."""
    schema = callee_schema(op)
    if schema is not None:
        verify_arguments(op, schema)


#: Types of values that torch's pointwise operators take for a tensor, as they take numbers.
NUMBER_TYPES = IntegerType | FloatType | IndexType


def _verify_tensor(
    op: Any, argument: SchemaArgument, attr: Attribute, pointwise: bool
) -> None:
    taken = TensorType | LibraryTensorType | (NUMBER_TYPES if pointwise else TensorType)
    parts = attr.elements if isinstance(attr, A.ArrayAttr) else (attr,)
    if parts[:1] == (A.StringAttr("complex"),):
        parts = parts[1:]  # a complex number, in its two parts
    for part in parts:
        if isinstance(part, OperandAttr):
            type_ = op.operands[part.index].type
            if not isinstance(type_, taken):
                op.fail(f"argument '{argument.name}' is {type_}, not a tensor")
        elif part is not NONE and not isinstance(part, NUMBERS):
            op.fail(f"argument '{argument.name}' is {part}, not a tensor")


def _is_tensor(op: Any, attr: Attribute) -> bool:
    """Whether an argument is an operand that is a tensor with elements along dimensions: no
    number, which a scalar or a tensor of rank 0 may be."""
    if not isinstance(attr, OperandAttr):
        return False
    type_ = op.operands[attr.index].type
    return isinstance(type_, TensorType) and type_.rank > 0


# What may stand for an argument of each of a schema's types; any other type takes anything.
_INTEGERS = (A.IntegerAttr, A.BoolAttr, A.DimAttr, OperandAttr)
_ATTRIBUTES: dict[str, tuple[type[Attribute], ...]] = {
    "int": _INTEGERS,
    "SymInt": _INTEGERS,
    "bool": _INTEGERS,
    "SymBool": _INTEGERS,
    "float": (*_INTEGERS, A.FloatAttr),
    "SymFloat": (*_INTEGERS, A.FloatAttr),
    "Scalar": (*_INTEGERS, A.FloatAttr, A.ArrayAttr),
    "str": (A.StringAttr,),
    "ScalarType": (DtypeAttr, A.IntegerAttr),
    "Layout": (LayoutAttr, A.IntegerAttr),
    "Device": (DeviceAttr, A.StringAttr),
    "MemoryFormat": (MemoryFormatAttr, A.IntegerAttr),
}


def _fits(type_: str, attr: Attribute) -> bool:
    """Whether an attribute may stand for an argument of a schema's type that is no tensor."""
    if type_.endswith("?"):
        return attr is NONE or _fits(type_[:-1], attr)
    if type_.endswith("[]"):
        element = type_[:-2]
        if isinstance(attr, A.ArrayAttr):
            return all(_fits(element, part) for part in attr) and not (
                "int" in element.lower() and any(isinstance(part, A.BoolAttr) for part in attr)
            )
        if isinstance(attr, A.DimsAttr | A.DenseIntsAttr):
            return "int" in element.lower()
        type_ = element.removesuffix("?")
    known = _ATTRIBUTES.get(type_)
    return known is None or isinstance(attr, known)


class SchemaOp(Op):
    """Declares the schema of an operator that torch may not know; stands before its first use.

    It counts in its module only, where an operator has one schema; torch's own goes before.

    `aten.schema {schema = "example::scale(Tensor x, float by) -> Tensor"}`
    """

    name = "aten.schema"
    schema = attribute(A.StringAttr)

    def declared(self) -> Schema:
        """The schema. Raises UserError for a malformed one."""
        return parse_schema(self.schema)

    def declares(self) -> dict[str, type[Operation]]:
        """The operation, by its name, that texts may use from here on."""
        if not isinstance(self.attributes.get("schema"), A.StringAttr):
            return {}
        schema = self.declared()
        return {op_name(schema.qualified): class_of(schema)}

    def verify_op(self) -> None:
        try:
            schema = self.declared()
        except UserError as error:
            self.fail(error.message, *error.notes)
        for other in declarations(self):
            if other is not self and other.schema != self.schema:
                if other.declared().qualified == schema.qualified:
                    self.fail(f"{schema.qualified} is declared in two ways",
                              f"the other: {other.schema}")  # fmt: skip


def declarations(op: Operation) -> list[SchemaOp]:
    """The declarations of the module around an operation."""
    module = next((a for a in op.ancestors() if isinstance(a, ModuleOp)), None)
    if module is None:
        return []
    return [o for o in module.regions[0].blocks[0].ops if isinstance(o, SchemaOp)]


def known_schema(qualified: str, op: Operation) -> Schema | None:
    """The schema of an operator, from torch or declared in the module around `op`."""
    parsed = find_schema(qualified)
    if parsed is None:
        for declaration in declarations(op):
            schema = declaration.declared()
            if schema.qualified == qualified:
                return schema
    return parsed


def callee_schema(op: Any) -> Schema | None:
    """The schema of an operation's `callee`; None where it isn't known."""
    return known_schema(qualified_name(op.callee), op)


def operand_indices(attr: Attribute) -> list[int]:
    """The operand numbers that an attribute mentions, in order."""
    if isinstance(attr, OperandAttr):
        return [attr.index]
    if isinstance(attr, A.DictAttr):
        return [i for _, entry in attr.items for i in operand_indices(entry)]
    if isinstance(attr, A.ArrayAttr):
        return [i for entry in attr for i in operand_indices(entry)]
    return []


def op_name(qualified: str) -> str:
    """The operation's name for an operator "namespace.name.overload"."""
    return qualified if qualified.startswith("aten.") else f"aten.{EXTERN}{qualified}"


def qualified_name(name: str) -> str:
    """The operator "namespace.name.overload" that an operation's name stands for."""
    rest = name.removeprefix("aten.")
    return rest.removeprefix(EXTERN) if rest.startswith(EXTERN) else name


@functools.cache
def op_class(qualified: str) -> type[AtenOp] | None:
    """The operation class of an operator, made from its schema; None if there is no operator."""
    schema = find_schema(qualified)
    return None if schema is None else class_of(schema)


_classes: dict[tuple[str, frozenset[str]], type[AtenOp]] = {}


def class_of(schema: Schema) -> type[AtenOp]:
    """The operation class of an operator with this schema, which no name leads to."""
    key = schema.text, schema.tags
    cls = _classes.get(key)
    return cls or _classes.setdefault(key, _make_class(schema))


def _make_class(schema: Schema) -> type[AtenOp]:
    traits: set[type[Trait]] = {ReadsMemory}
    if schema.has_effect:
        traits.add(WritesMemory)
    members = {
        "__slots__": (),
        "__doc__": f"The operator `{schema.text}`.",
        "__module__": __name__,
        "name": op_name(schema.qualified),
        "qualified": schema.qualified,
        "schema": schema,
        "traits": frozenset(traits),
    }
    name = f"Aten_{schema.qualified.replace('.', '_')}"
    return type(name, (AtenOp,), members, register=False)


def _resolve(name: str) -> type[AtenOp] | None:
    qualified = qualified_name(name)
    if qualified.count(".") != 2:
        return None
    cls = op_class(qualified)
    if cls is None:
        op_class.cache_clear()  # a library that is loaded later may bring it
    return cls


register_resolver("aten", _resolve)


# -- arguments


def encode(value: Any, operand_of: Callable[[Any], int | None]) -> Attribute:
    """The attribute for a Python argument. `operand_of` gives the operand number of what is an
    SSA value, None for what is not. Raises UserError for what has no attribute."""
    number = operand_of(value)
    if number is not None:
        return OperandAttr(number)
    if value is None:
        return NONE
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool | int | float | str | Expr):
        return wrap(value)
    if isinstance(value, complex):
        return A.ArrayAttr([A.StringAttr("complex"), A.FloatAttr(value.real),
                            A.FloatAttr(value.imag)])  # fmt: skip
    if isinstance(value, list | tuple):
        return A.ArrayAttr([encode(v, operand_of) for v in value])
    cls = type(value)
    if cls.__module__ == "torch":
        text = str(value)
        if cls.__name__ == "dtype":
            return DtypeAttr(text.removeprefix("torch."))
        if cls.__name__ == "device":
            return DeviceAttr(text)
        if cls.__name__ == "layout":
            return LayoutAttr(text.removeprefix("torch."))
        if cls.__name__ == "memory_format":
            return MemoryFormatAttr(text.removeprefix("torch."))
    raise UserError(f"an argument of type {cls.__module__}.{cls.__qualname__} is not supported")


def decode(attr: Attribute, operands: Sequence[Value]) -> Any:
    """The Python argument of an attribute: SSA values, numbers, Exprs, lists, None; dtypes and
    the like stay attributes (`to_torch` gives torch's objects)."""
    if isinstance(attr, OperandAttr):
        return operands[attr.index]
    if attr is NONE:
        return None
    if isinstance(attr, A.ArrayAttr):
        items = [decode(a, operands) for a in attr]
        if items and items[0] == "complex":
            return complex(items[1], items[2])
        return items
    if isinstance(attr, A.IntegerAttr | A.FloatAttr | A.BoolAttr | A.StringAttr | A.DimAttr):
        return attr.parameters[0]
    if isinstance(attr, A.DimsAttr | A.DenseIntsAttr):
        return list(attr.parameters[0])
    return attr


def to_torch(value: Any) -> Any:
    """torch's object for a dtype, device, layout or memory_format attribute; others unchanged.

    Raises UserError for a name that torch does not have.
    """
    if not isinstance(value, NamedAttr):
        return value
    import torch

    if isinstance(value, DeviceAttr):
        return torch.device(value.name)
    constant = getattr(torch, value.name, None)
    cls = getattr(torch, value.mnemonic)
    if not isinstance(constant, cls):
        raise UserError(f"torch has no {value.mnemonic} '{value.name}'")
    return constant


def arguments_of(op: Any) -> dict[str, Any]:
    """Every argument of an aten operation or call by its schema name, defaults filled in."""
    schema = schema_of(op)
    written = op.attributes["arguments"].as_dict()
    operands = op.operands
    return {
        a.name: decode(written[a.name], operands) if a.name in written else a.default
        for a in schema.arguments
    }


def bind_arguments(op: Any) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of an aten operation (or call), in schema order, with
    SSA values for operands; defaults of keyword-only arguments are left out."""
    schema = schema_of(op)
    written = op.attributes["arguments"].as_dict()
    every = arguments_of(op)
    positional = [every[a.name] for a in schema.arguments if not a.kwarg_only]
    named = [n.name for n in schema.arguments if n.kwarg_only and n.name in written]
    keywords = {name: every[name] for name in named}
    return positional, keywords


def schema_of(op: Any) -> Schema:
    """The schema of an aten operation, or of an operation with the attribute `callee`."""
    if isinstance(op, AtenOp):
        return type(op).schema
    schema = callee_schema(op)
    if schema is None:
        raise InvalidIR(f"torch has no operator '{op.callee}'", op=op)
    return schema


def make_aten(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    value_of: Callable[[Any], Value | None],
    result_types: Sequence[Type],
    location: Location = UNKNOWN,
) -> AtenOp:
    """The operation for a call `target(*args, **kwargs)`.

    target: an OpOverload or "namespace.name.overload". `value_of` gives the SSA value of an
    argument (or list element) that is one, None for constants. Raises UserError for an operator
    without schema or an argument that has no attribute.
    """
    qualified = target if isinstance(target, str) else overload_name(target)
    cls = op_class(qualified)
    if cls is None:
        raise UserError(f"torch has no operator '{qualified}'", location)
    operands: list[Value] = []
    numbers: dict[Value, int] = {}

    def operand_of(argument: Any) -> int | None:
        value = value_of(argument)
        if value is None:
            return None
        number = numbers.setdefault(value, len(numbers))
        if number == len(operands):
            operands.append(value)
        return number

    entries: dict[str, Attribute] = {}
    names = [a.name for a in cls.schema.arguments]
    if len(args) > len(names):
        raise UserError(f"{qualified} takes {len(names)} arguments, {len(args)} given", location)
    for name, argument in [*zip(names, args, strict=False), *kwargs.items()]:
        declared = cls.schema.argument(name)
        if declared is None:
            raise UserError(f"{qualified} has no argument '{name}'", location)
        if declared.has_default and _equal(argument, declared.default):
            continue
        entries[name] = encode(argument, operand_of)
    attributes: dict[str, Attribute] = {"arguments": A.DictAttr(entries)}
    return cls(operands, result_types, attributes, (), location)


def _equal(argument: Any, default: Any) -> bool:
    if isinstance(argument, list | tuple) and isinstance(default, list):
        same = len(argument) == len(default)
        return same and all(map(_equal, argument, default))
    return type(argument) is type(default) and argument == default


def overload_name(overload: Any) -> str:
    """`namespace.name.overload` of an OpOverload."""
    name = overload._schema.name.replace("::", ".")
    return f"{name}.{overload._overloadname}"


def overload_of(op: Any) -> Any:
    """torch's OpOverload of an aten operation or call. Raises UserError."""
    qualified = op.qualified if isinstance(op, AtenOp) else qualified_name(op.callee)
    overload = find_overload(qualified)
    if overload is None:
        raise UserError(f"torch has no operator '{qualified}'", op=op)
    return overload
