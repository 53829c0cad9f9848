"""What torch says about an operator's results, asked with meta tensors (torch is loaded lazily)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects import aten
from irc.dialects.aten.schema import Schema, find_overload
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, evaluate, free_symbols
from irc.ir.types import DTYPE_OF_ELEMENT, ELEMENT_OF_DTYPE, TensorType

#: What torch's operators, and its definitions of them in Python, raise for arguments that they
#: refuse. Functions say nothing of those, and programs leave them as they are: they raise when
#: they run, as in eager mode.
REFUSALS = (
    RuntimeError, NotImplementedError, TypeError, ValueError, LookupError, ArithmeticError,
    AssertionError,
)  # fmt: skip
SIZE_OF_SYMBOL = 6  # any size that is neither 0 nor 1 shows element types and aliasing


def _number(dim: Dim) -> int:
    if isinstance(dim, int):
        return dim
    return int(evaluate(dim, dict.fromkeys(free_symbols(dim), SIZE_OF_SYMBOL)))


def meta_tensor(type_: TensorType) -> Any:
    """A meta tensor of this type; symbols count as SIZE_OF_SYMBOL."""
    import torch

    dtype = getattr(torch, DTYPE_OF_ELEMENT[type_.element])
    sizes = [_number(d) for d in type_.shape]
    if type_.strides is None:
        return torch.empty(sizes, dtype=dtype, device="meta")
    strides = [_number(d) for d in type_.strides]
    return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")


def _python(argument: Any, tensors: dict[Value, Any]) -> Any:
    if isinstance(argument, Value):
        if not isinstance(argument.type, TensorType):
            return 1
        if argument not in tensors:
            tensors[argument] = meta_tensor(argument.type)
        return tensors[argument]
    if isinstance(argument, list):
        return [_python(a, tensors) for a in argument]
    if isinstance(argument, aten.DeviceAttr):
        import torch

        return torch.device("meta")
    if hasattr(argument, "symbols"):
        return _number(argument)
    return aten.to_torch(argument)


def call_on_meta(
    schema: Schema,
    operands: Sequence[Value],
    arguments: A.DictAttr,
    known: Mapping[Value, Any] | None = None,
) -> tuple[Any, dict[Value, Any]]:
    """Call an operator on meta tensors (those `known`, and others made for the operands' types);
    gives its outcome and the tensors.

    Raises whatever the operator raises, NotImplementedError if it has no meta form.
    """
    overload = find_overload(schema.qualified)
    tensors: dict[Value, Any] = dict(known or {})
    keywords = {
        name: _python(aten.decode(attr, operands), tensors) for name, attr in arguments.items
    }
    return overload(**keywords), tensors


def element_of_call(
    schema: Schema, operands: Sequence[Value], arguments: A.DictAttr, number: int
) -> Type | None:
    """The element type of result `number` of a call; None when torch can't say."""
    try:
        outcome, _ = call_on_meta(schema, operands, arguments)
    except REFUSALS:
        return None
    tensor = outcome[number] if isinstance(outcome, tuple | list) else outcome
    return ELEMENT_OF_DTYPE.get(str(tensor.dtype).removeprefix("torch."))


def refusal(op: aten.AtenOp) -> str | None:
    """What torch says of a call that it refuses; None of one that it takes, and where sizes are
    symbolic or torch can't say."""
    types = [o.type for o in op.operands]
    known = all(_is_known(t) for t in types if isinstance(t, TensorType))
    if not known or _mentions_symbols(op.arguments):
        return None
    try:
        call_on_meta(op.schema, op.operands, op.arguments)
    except NotImplementedError:
        return None
    except REFUSALS as error:
        return str(error)
    return None


def types_of_call(
    schema: Schema, operands: Sequence[Value], arguments: A.DictAttr
) -> list[TensorType] | None:
    """The types that a call's tensor results have, strides included, as torch gives them for
    operands of these types; None where sizes are symbolic or torch can't say. Where no operand
    has strides, neither have the results."""
    kinds = [o.type for o in operands]
    tensors = [k for k in kinds if isinstance(k, TensorType)]
    if not all(_is_known(k) for k in tensors) or _mentions_symbols(arguments):
        return None
    try:
        outcome, _ = call_on_meta(schema, operands, arguments)
    except REFUSALS:
        return None
    plain = bool(tensors) and all(k.strides is None for k in tensors)
    device = tensors[0].device if tensors else "cpu"
    listed = outcome if isinstance(outcome, tuple | list) else (outcome,)
    types = []
    for tensor in listed:
        element = ELEMENT_OF_DTYPE.get(str(getattr(tensor, "dtype", "")).removeprefix("torch."))
        if element is None:
            return None
        types.append(TensorType(tensor.shape, element, None if plain else tensor.stride(), device))
    return types


def _is_known(type_: TensorType) -> bool:
    return all(isinstance(d, int) for d in (*type_.shape, *(type_.strides or ())))


def _mentions_symbols(attribute: A.Attribute) -> bool:
    if isinstance(attribute, A.DictAttr):
        return any(_mentions_symbols(v) for _, v in attribute.items)
    if isinstance(attribute, A.ArrayAttr):
        return any(map(_mentions_symbols, attribute))
    if isinstance(attribute, A.DimAttr):
        return not isinstance(attribute.dim, int)
    if isinstance(attribute, A.DimsAttr):
        return not all(isinstance(d, int) for d in attribute.dims)
    return False


def is_view_call(schema: Schema, source: TensorType, op: aten.AtenOp) -> bool:
    """Whether the call's first result shares memory with its first operand, were that of type
    `source`. Raises UserError where torch can't say."""
    memory = meta_tensor(source)
    try:
        results, _ = call_on_meta(schema, op.operands, op.arguments, {op.operands[0]: memory})
    except REFUSALS as error:
        raise UserError(
            f"whether '{op.name}' gives a view can't be told: {error}", op=op
        ) from None
    first = results[0] if isinstance(results, tuple | list) else results
    return bool(first.untyped_storage()._cdata == memory.untyped_storage()._cdata)
