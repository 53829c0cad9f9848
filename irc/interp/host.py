"""The meaning of the host dialect: memory, launches and calls in order."""

from __future__ import annotations

from typing import Any, cast

import torch

from irc.dialects import host, kernel
from irc.interp.core import Frame, Returned, fill_undefined, interprets
from irc.interp.graph_packed import call_packed
from irc.interp.kernel import launch
from irc.interp.operators import call_operator, results_of
from irc.interp.sym import ASSERTED
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import TensorType


def fresh(frame: Frame, type_: TensorType) -> torch.Tensor:
    """Undefined memory of a tensor type."""
    strides = type_.strides
    sizes = frame.dims(type_.shape)
    dtype = frame.dtype(type_.element)
    memory = (
        torch.empty(sizes, dtype=dtype)
        if strides is None
        else torch.empty_strided(sizes, frame.dims(strides), dtype=dtype)
    )
    return fill_undefined(frame, memory)


@interprets(host.HostReturnOp)
def return_(frame: Frame, op: host.HostReturnOp) -> None:
    values: list[Any] = []
    for operand in op.operands:
        content = frame[operand]
        if not isinstance(operand.type, TensorType) and isinstance(content, torch.Tensor):
            content = content.item()
        values.append(content)
    raise Returned(values)


@interprets(host.LaunchOp)
def launch_(frame: Frame, op: host.LaunchOp) -> list[torch.Tensor]:
    callee = frame.module.lookup(op.callee) if frame.module is not None else None  # type: ignore[attr-defined]
    if not isinstance(callee, kernel.KernelFuncOp):
        raise InvalidIR(f"there is no kernel @{op.callee}", op=op)
    inputs = [frame[v] for v in op.inputs]
    results = [fresh(frame, cast(TensorType, r.type)) for r in op.results]
    tensors = [*inputs, *(frame[v] for v in op.outs), *results]
    if results and callee.initialized is not None:
        pairs = list(callee.initialized)
        for source, target in zip(pairs[::2], pairs[1::2], strict=True):
            tensors[target].copy_(tensors[source])
    launch(frame, callee, tensors)
    for value in op.outs:
        flag = value.defining_op
        if isinstance(flag, host.FlagOp) and not frame[value]:
            raise ASSERTED[flag.error](flag.message)
    return results


@interprets(host.FlagOp)
def flag(frame: Frame, op: host.FlagOp) -> torch.Tensor:
    return torch.ones((), dtype=torch.bool)


@interprets(host.AllocOp)
def alloc(frame: Frame, op: host.AllocOp) -> torch.Tensor:
    return fresh(frame, op.memory.type)


@interprets(host.HostViewOp)
def view(frame: Frame, op: host.HostViewOp) -> torch.Tensor:
    source = frame[op.source]
    type_ = op.view.type
    offset = source.storage_offset() + frame.dim(op.offset)
    return source.as_strided(frame.dims(type_.shape), frame.dims(type_.strides), offset)


@interprets(host.CallAtenOp)
def call_aten(frame: Frame, op: host.CallAtenOp) -> list[Any]:
    inputs = [frame[v] for v in op.inputs]
    packed = call_packed(frame, op.callee, op.arguments.as_dict(), inputs)
    if packed is not None:
        return results_of(packed, len(op.results))
    content = call_operator(frame, op.callee, op.arguments.as_dict(), inputs)
    return results_of(content, len(op.results))


def resource(frame: Frame, attr: A.Attribute) -> torch.Tensor:
    """The tensor of a constant kept beside the module. Raises InvalidIR when it is missing."""
    assert isinstance(attr, A.ResourceAttr)
    table = getattr(frame.module, "resources", {})
    content = table.get(attr.key)
    if content is None:
        raise InvalidIR(f"the constant {attr.key[:16]} is not beside the program")
    assert isinstance(attr.type, TensorType)
    from irc.interp.core import torch_dtype
    from irc.ir.contents import content_tensor

    element = attr.type.element
    tensor = content_tensor(content, torch_dtype(element), frame.dims(attr.type.shape))
    return tensor.to(frame.dtype(element))


@interprets(host.HostConstantOp)
def constant(frame: Frame, op: host.HostConstantOp) -> torch.Tensor:
    value = op.attributes["value"]
    if isinstance(value, A.ResourceAttr):
        return resource(frame, value)
    from irc.interp.arith import dense_content

    return dense_content(value, op.tensor.type, frame)


@interprets(host.ItemOp)
def item(frame: Frame, op: host.ItemOp) -> torch.Tensor:
    source = frame[op.source]
    return (source.all() if op.every else source.reshape(())).to(frame.dtype(op.scalar.type))


@interprets(host.HostCopyOp)
def copy(frame: Frame, op: host.HostCopyOp) -> None:
    frame[op.target].copy_(frame[op.source])
