"""What torch says about an operator's results, asked with meta tensors (torch is loaded lazily)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import aten
from irc.dialects.aten_schema import Schema, find_overload
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import Dim, evaluate, free_symbols
from irc.ir.types import DTYPE_OF_ELEMENT, ELEMENT_OF_DTYPE, TensorType

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
    schema: Schema, operands: Sequence[Value], arguments: A.DictAttr
) -> tuple[Any, dict[Value, Any]]:
    """Call an operator on meta tensors; gives its outcome and the tensors made.

    Raises whatever the operator raises, NotImplementedError if it has no meta form.
    """
    overload = find_overload(schema.qualified)
    tensors: dict[Value, Any] = {}
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
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return None
    made = outcome[number] if isinstance(outcome, tuple | list) else outcome
    return ELEMENT_OF_DTYPE.get(str(made.dtype).removeprefix("torch."))


def is_view_call(op: aten.AtenOp) -> bool:
    """Whether the call's result shares memory with its first operand, for operands like these."""
    import torch

    dtype = torch.float32
    source: Any = op.operands[0].type
    strides = [_number(d) for d in source.strides]
    memory = torch.empty_strided([_number(d) for d in source.shape], strides, dtype=dtype)
    overload = find_overload(type(op).qualified)
    arguments: Any = op.attributes["arguments"]
    keywords = {
        name: _python(aten.decode(attr, op.operands), {op.operands[0]: memory})
        for name, attr in arguments.items
    }
    made = overload(**keywords)
    return bool(made.untyped_storage().data_ptr() == memory.untyped_storage().data_ptr())
