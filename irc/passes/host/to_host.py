"""The boundary to the host level: what remains in a host program, and what the rest becomes.

A converter is a function of the `Bufferizer` at work, which knows whose memory is whose, and of
the operation, which it replaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.analysis.calls import CONVOLUTION_OUT, ONEDNN_CONVOLUTION, OUT_VARIANTS
from irc.analysis.channels_last import CONVOLUTION
from irc.dialects import aten, func, graph, host, layout
from irc.dialects.host.memory import is_tensor
from irc.dialects.sym.ranges import WHEN
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.rewrite.conversion import Conversion, ConversionTarget
from irc.ir.strides import channels_last_strides
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType, bf16, f16
from irc.passes.host.library_calls import library_call
from irc.passes.host.packed_calls import call_of, packing_of
from irc.passes.host.written_operands import is_last_reader, result_of

if TYPE_CHECKING:
    from irc.passes.host.bufferize import Bufferizer

#: What a host program holds: launches write memory that they are given.
TO_HOST = Conversion(
    "bufferize",
    host.HostFuncOp,
    ConversionTarget(
        legal=("host", "sym", "flow"), where={host.LaunchOp: lambda op: not op.results}
    ),
    absent="it has no place in a host program",
)
converts = TO_HOST.converts

# Schemas don't tell: some operators give their operand back where there is nothing to do.
GIVES_FRESH_MEMORY = frozenset(
    ("aten.convolution.default", ONEDNN_CONVOLUTION,
     "aten.extern.mkldnn._convolution_pointwise.default")
)  # fmt: skip


@converts(graph.UpdateInput, func.ReturnOp)
def at_the_end(b: Bufferizer, op: Operation) -> None:
    """Updates of arguments, and what is returned, come after everything else."""


@converts(host.LaunchOp)
def launch(b: Bufferizer, op: host.LaunchOp) -> None:
    b.launch(op)


@converts(layout.ViewOp)
def view(b: Bufferizer, op: layout.ViewOp) -> None:
    view_op = Builder.before(op).insert(
        host.HostViewOp(op.operands, op.result_types, {"offset": op.attributes["offset"]})
    )
    b.replace(op, view_op)


@converts(graph.CallAten)
def call(b: Bufferizer, op: graph.CallAten) -> None:
    if op.written:
        _call_writing(b, op)
        return
    variant = CONVOLUTION_OUT if _is_of_gpu_images(op) else OUT_VARIANTS.get(op.callee)
    if variant is not None:
        _call_out(b, op, variant)
        return
    attributes = {key: op.attributes[key] for key in ("callee", "arguments", WHEN)
                  if key in op.attributes}  # fmt: skip
    attributes |= library_call(op)
    call_op = host.CallAtenOp(op.operands, op.result_types, attributes, (), op.location)
    b.replace(op, Builder.before(op).insert(call_op))
    if call_op.callee in GIVES_FRESH_MEMORY:
        # What they give is nobody else's: a kernel that reads it last may write there.
        b.ours.update(value for value in call_op.results if is_tensor(value))


def _call_writing(b: Bufferizer, op: graph.CallAten) -> None:
    """A call that writes operands: in place where they die here, else copies of them."""
    builder = Builder.before(op)
    operands = list(op.operands)
    results: list[Value] = list(op.results)
    for number in op.written:
        result, value = result_of(op, number), operands[number]
        memory = b.direct.get(result)
        if memory is None:
            reason = _why_kept(b, op, value, result)
            memory = None if reason else value
        if memory is None:
            if b.context.explains:
                text = f"operand {number} of {op.callee} is written in a copy: {reason}"
                b.context.remark(text, op)
            memory = b.allocated(builder, result)
        if memory is value:
            b.context.count("in-place")
        else:
            builder.insert(host.HostCopyOp((value, memory), (), {}, (), op.location))
        operands[number] = memory
        results.remove(result)
        b.move_facts(result, memory)
        result.replace_all_uses_with(memory)
    attributes = {key: op.attributes[key] for key in ("callee", "arguments")}
    types = [r.type for r in results]
    call = builder.insert(host.CallAtenOp(operands, types, attributes, (), op.location))
    for old, new in zip(results, call.results, strict=True):
        if is_tensor(old):
            b.move_facts(old, new)
        old.replace_all_uses_with(new)
    op.erase()


def _why_kept(b: Bufferizer, op: graph.CallAten, value: Value, result: Value) -> str:
    """Why a call may not write an operand's memory; "" where that dies there."""
    if value not in b.ours:
        return "its memory is not the program's own"
    if value.type is not result.type:
        return "the result has another type"
    roots = [b.aliases.of(v) for v in op.operands if is_tensor(v)]
    last = b.last_use.get(value, -1)
    return "" if is_last_reader(op, value, roots, last, b.order[op]) else "it is used later"


def _is_of_gpu_images(op: graph.CallAten) -> bool:
    """Whether a call is a convolution that a GPU's library computes into whatever memory: of dense
    channels-last images of 16 bits, in one group, without a bias."""
    if op.callee != CONVOLUTION:
        return False
    arguments = op.arguments.as_dict()
    if not isinstance(arguments["bias"], aten.NoneAttr):
        return False
    if arguments["transposed"] != A.BoolAttr(False) or _number(arguments["groups"]) != 1:
        return False
    operand = arguments["input"]
    assert isinstance(operand, aten.OperandAttr)
    return all(_is_gpu_image(v.type) for v in (op.operands[operand.index], op.results[0]))


def _number(attribute: A.Attribute) -> int | None:
    return attribute.value if isinstance(attribute, A.IntegerAttr) else None


def _is_gpu_image(type_: A.Attribute) -> bool:
    if not isinstance(type_, TensorType) or type_.rank != 4 or type_.device == "cpu":
        return False
    whole = all(isinstance(size, int) and size > 0 for size in type_.shape)
    is_short = type_.element in (bf16, f16)
    # One channel's images are dense in both orders, and torch takes them for the other.
    return (
        whole and is_short and type_.shape[1] != 1
        and type_.strides == channels_last_strides(type_.shape)
    )  # fmt: skip


def _call_out(b: Bufferizer, op: graph.CallAten, variant: str) -> None:
    """A call that writes its result to memory of ours, in the strides that its type has."""
    (result,) = op.results
    memory = b.place_in_memory(result) or b.allocated(Builder.before(op), result)
    operands = [*op.operands, memory]
    arguments = {**op.arguments.as_dict(), "out": aten.OperandAttr(len(op.operands))}
    attributes = {
        "callee": A.StringAttr(variant),
        "arguments": A.DictAttr(arguments),
    }
    if WHEN in op.attributes:
        attributes[WHEN] = op.attributes[WHEN]
    call = host.CallAtenOp(operands, (), attributes, (), op.location)
    Builder.before(op).insert(call)
    b.move_facts(result, memory)
    result.replace_all_uses_with(memory)
    op.erase()


@converts(graph.Pack)
def pack(b: Bufferizer, op: graph.Pack) -> None:
    callee, arguments = packing_of(op)
    attributes = {"callee": A.StringAttr(callee), "arguments": A.DictAttr(arguments)}
    if op.transposed:
        attributes["transposed"] = A.UNIT
    pack_op = host.PackOp(op.operands, op.result_types, attributes, (), op.location)
    b.replace(op, Builder.before(op).insert(pack_op))


@converts(graph.PackedConv, graph.PackedLinear)
def packed(b: Bufferizer, op: graph.PackedConv | graph.PackedLinear) -> None:
    """A call of the library; a convolution is added to memory that dies here, if it can."""
    in_place = isinstance(op, graph.PackedConv) and _dies_at(b, op, op.other)
    callee, operands, arguments = call_of(op, in_place)
    attributes = {"callee": A.StringAttr(callee), "arguments": A.DictAttr(arguments)}
    types = () if in_place else op.result_types
    call = host.CallAtenOp(operands, types, attributes, (), op.location)
    Builder.before(op).insert(call)
    result, memory = op.value, op.other if in_place else call.results[0]
    b.context.count("in-place", int(in_place))
    b.ours.add(memory)
    b.move_facts(result, memory)
    result.replace_all_uses_with(memory)
    op.erase()


def _dies_at(b: Bufferizer, op: Any, value: Value | None) -> bool:
    """Whether `op` is the last to use memory of ours that is as its result would be."""
    if value not in b.ours or value.type is not op.value.type:
        return False
    sharing = [v for v in op.operands if value in b.aliases.of(v)]
    return b.last_use.get(value, -1) <= b.order[op] and len(sharing) == 1


@converts(graph.Item)
def item(b: Bufferizer, op: graph.Item) -> None:
    item_op = host.ItemOp(op.operands, op.result_types, dict(op.attributes), (), op.location)
    b.replace(op, Builder.before(op).insert(item_op))


@converts(graph.Constant)
def constant(b: Bufferizer, op: graph.Constant) -> None:
    entries = {"value": op.attributes["value"]}
    constant_op = host.HostConstantOp((), op.result_types, entries, (), op.location)
    b.replace(op, Builder.before(op).insert(constant_op))


@converts(graph.FromScalar)
def from_scalar(b: Bufferizer, op: graph.FromScalar) -> None:
    """A scalar as a tensor, made by ATen."""
    dtype = DTYPE_OF_ELEMENT[op.tensor.type.element]
    arguments = A.DictAttr({"s": aten.OperandAttr(0), "dtype": aten.DtypeAttr(dtype)})
    attributes = {
        "callee": A.StringAttr("aten.scalar_tensor.default"),
        "arguments": arguments,
    }
    call = host.CallAtenOp(op.operands, op.result_types, attributes, (), op.location)
    b.replace(op, Builder.before(op).insert(call))
