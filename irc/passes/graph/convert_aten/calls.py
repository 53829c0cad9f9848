"""What an operator without a converter of its own becomes: a call of ATen; and the one write."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import aten, graph, sym
from irc.dialects.aten.facts import Fact
from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.core import BlockArgument, Value
from irc.ir.diagnostics import UserError
from irc.ir.types import TensorType, contiguous_strides
from irc.passes.graph.convert_aten.pointwise import round_cast
from irc.passes.graph.convert_aten.support import Call, converts, decline


@converts("aten.copy_.default")
def update_input(c: Call) -> Value:
    """`copy_` onto an argument at the end: the only mutation of a functionalized graph."""
    target = c.self_
    if not isinstance(target, BlockArgument):
        decline("it writes a value that is no argument; run functionalize first")
    value = round_cast(c, c.src, c.result.element)
    value = c.broadcast(value, c.result.shape)
    c.builder.create(graph.UpdateInput, value, argument=target.index)
    return value


@converts(aten.AtenOp)
def leave_to_aten(c: Call) -> Sequence[Value]:
    """`graph.call_aten`, of the variant that makes a fresh result where there is one."""
    op = c.op
    schema, attributes = op.schema, dict(op.attributes)
    written = written_copies(op)
    callee, contiguous = op.qualified, False
    if schema.returns_alias:
        callee, contiguous = copying_variant(op)
    entries: dict[str, Attribute] = {
        "callee": A.StringAttr(callee),
        "arguments": attributes["arguments"],
        "eager_strides": eager_strides(op, written, contiguous),
    }
    passed = [o.type.strides for o in op.operands if isinstance(o.type, TensorType)]
    known = [A.DimsAttr(s) for s in passed if s is not None]
    if passed and len(known) == len(passed):
        entries["operand_strides"] = A.ArrayAttr(known)
    if Fact.OTHER_ELEMENTS in schema.facts and _is_apart(op.operands[0]):
        entries["apart"] = A.UNIT
    if schema.is_random:
        entries["random"] = A.UNIT
    if not schema.returns or written or schema.communicates:
        entries["mutates"] = A.UNIT
    if written:
        entries["written"] = A.DenseIntsAttr(written)
    operands = [c.converted(o) for o in op.operands]
    count = len(c.result_types)
    kinds = [*c.result_types, *(operands[k].type for k in written)]
    called = graph.CallAten(operands, kinds, entries, (), op.location)
    c.builder.insert(called)
    for number, content in zip(written, called.results[count:], strict=True):
        c.becomes(op.operands[number], content)
    return called.results[:count]


def _is_apart(value: Value) -> bool:
    """Whether a value is memory of its own, and no view of an argument."""
    while isinstance(maker := value.defining_op, aten.AtenOp | sym.RefineOp):
        alias = isinstance(maker, sym.RefineOp) or maker.schema.returns_alias
        if not alias:
            return True
        value = maker.operands[0]
    return False


def eager_strides(op: aten.AtenOp, written: Sequence[int], contiguous: bool) -> A.ArrayAttr:
    """The strides in which eager has the results of a call, and the operands that it writes."""
    strides: list[Attribute] = []
    for result in (*op.results, *(op.operands[k] for k in written)):
        type_ = result.type
        if isinstance(type_, TensorType):
            dims = type_.strides
            if contiguous or dims is None:
                dims = contiguous_strides(type_.shape)
            strides.append(A.DimsAttr(dims))
    return A.ArrayAttr(strides)


def written_copies(op: aten.AtenOp) -> tuple[int, ...]:
    """The numbers of the operands that the operator writes, which are fresh copies of values.

    Declines a write of anything else. Raises UserError for one of parts of a copy: those of an
    operator that sees one storage through several operands.
    """
    arguments = op.arguments.as_dict()
    numbers = [
        number
        for argument in op.schema.arguments
        if argument.is_write and argument.name in arguments
        for number in aten.operand_indices(arguments[argument.name])
    ]
    for number in numbers:
        maker = op.operands[number].defining_op
        if isinstance(maker, aten.AtenOp) and Fact.CLONES in maker.schema.facts:
            continue
        if isinstance(maker, aten.AtenOp) and maker.schema.returns_alias:
            raise UserError(
                f"'{op.name}' is given one storage more than once, and writes it", op=op
            )
        decline("it writes its operands; run functionalize first")
    return tuple(dict.fromkeys(numbers))


def copying_variant(op: aten.AtenOp) -> tuple[str, bool]:
    """The operator that gives a view's elements in fresh contiguous memory, for a view operator;
    whether it is another one."""
    namespace, name, overload = op.qualified.rsplit(".", 2)
    for copying in (f"{name}_copy", f"_{name}_copy"):
        qualified = f"{namespace}.{copying}.{overload}"
        schema = aten.known_schema(qualified, op)
        if schema is not None and len(schema.arguments) == len(op.schema.arguments):
            return qualified, True
    return op.qualified, False
