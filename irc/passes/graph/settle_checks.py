"""The pass `settle-checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.analysis.constant_values import ConstantValues, cone
from irc.dialects import func, graph
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import FloatType, TensorType

Indexing = graph.Take | graph.Gather | graph.Put | graph.Scatter


@register_pass
class SettleChecks(Pass):
    """Looks at once whether indices that positions and numbers alone make are inside, and drops the
    check where they are: distances between the positions of a sequence, as attention's biases have
    them, are the same at every call.

    Where floats are among what makes them, they are kept inside in the program as well: a target
    may round them otherwise than it was looked at. At most `limit` indices are looked at.

    Before:
        %i = graph.iota {dim = 0 : i64} : tensor<3xi64>
        %y = graph.take %x, %i {check_bounds, dims = array<i64: 0>, position = 0 : i64}
    After:
        %i = graph.iota {dim = 0 : i64} : tensor<3xi64>
        %y = graph.take %x, %i {dims = array<i64: 0>, position = 0 : i64}
    """

    name = "settle-checks"
    summary = "drop checks of indices that are the same, and inside, at every call"
    anchor = "func.func"
    limit: int = 1 << 20

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        constants = ConstantValues()
        for each in list(op.block.ops):
            if not isinstance(each, Indexing) or not each.check_bounds:
                continue
            indices = [value for value, _ in _bounded(each)]
            if not all(value in constants for value in indices):
                continue
            makers = cone(indices)
            if self.objects(makers) or not context.spend("settle-checks", each):
                continue
            if _all_inside(each, makers):
                _settle(each, makers)
                context.count("settled")

    def objects(self, makers: list[Operation]) -> bool:
        """Whether indices are better looked at when the program runs."""
        sizes = [dim_product(v.type.shape) for op in makers for v in op.results]  # type: ignore[attr-defined]
        if any(isinstance(op, graph.Constant | graph.CallAten) for op in makers):
            return True
        return any(not isinstance(size, int) or size > self.limit for size in sizes)


def _bounded(op: Operation) -> Iterator[tuple[Value, Dim]]:
    """The indices of an operation, and the sizes that they are to be below."""
    assert isinstance(op, Indexing)
    shape = op.source.type.shape  # type: ignore[attr-defined]
    if isinstance(op, graph.Take | graph.Put):
        yield from ((value, shape[d]) for value, d in zip(op.indices, op.dims, strict=True))
    else:
        yield op.indices, shape[op.dim]


def _all_inside(op: Operation, makers: list[Operation]) -> bool:
    from torch.utils._python_dispatch import _disable_current_modes

    from irc.program.folded import evaluate

    values = [value for value, _ in _bounded(op)]
    sizes = [size for _, size in _bounded(op) if isinstance(size, int)]
    if len(sizes) < len(values):
        return False
    with _disable_current_modes():  # AOTAutograd compiles under fake tensors
        contents = evaluate(makers, values, None)
        return all(bool(((content >= 0) & (content < size)).all())
                   for content, size in zip(contents, sizes, strict=True))  # fmt: skip


def _settle(op: Any, makers: list[Operation]) -> None:
    del op.attributes["check_bounds"]
    elements = [v.type.element for maker in makers for v in maker.results]  # type: ignore[attr-defined]
    if not any(isinstance(element, FloatType) for element in elements):
        return
    builder = Builder.before(op)
    builder.location = op.location
    inside = {value: _kept_inside(builder, value, size) for value, size in _bounded(op)}
    op.operands = [inside.get(operand, operand) for operand in op.operands]


def _kept_inside(builder: Builder, value: Value, size: Dim) -> Value:
    type_ = value.type
    assert isinstance(type_, TensorType) and isinstance(size, int)
    for cls, bound in ((graph.Maximum, 0), (graph.Minimum, size - 1)):
        number = graph.scalar_attribute(bound, type_.element)
        limit = builder.value(graph.Full, value=number, result_types=type_)
        value = builder.value(cls, value, limit)
    return value
