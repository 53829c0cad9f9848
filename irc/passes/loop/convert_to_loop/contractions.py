"""Products."""

from __future__ import annotations

from typing import Any

from irc.dialects import graph, loop
from irc.ir.symbols import Dim
from irc.ir.types import FloatType
from irc.passes.common.bodies import axes_of, make_axes
from irc.passes.loop.convert_to_loop.scalar_semantics import cast
from irc.passes.loop.convert_to_loop.support import ComputeBuilder, converts, element_of


# dot_general(a, b) -> par(batch, rows, columns) red(depth) -> reduce(sum): a[..] * b[..]
@converts(graph.DotGeneral)
def _dot_general(c: ComputeBuilder, op: graph.DotGeneral) -> None:
    left: Any = op.left
    right: Any = op.right
    shape = [*c.type.shape, *(left.type.shape[d] for d in op.left_depth)]
    axes, count = axes_of(len(shape)), c.type.rank
    batch, depth = axes[: len(op.left_batch)], axes[count:]
    rows = axes[len(batch) : len(batch) + len(op.rows)]
    columns = axes[len(batch) + len(rows) : count]
    body = c.body()

    def factor(value: Any, *places: tuple[Any, tuple[Dim, ...]]) -> Any:
        at = {d: axis for dims, names in places for d, axis in zip(dims, names, strict=True)}
        element = body.read(value, [at[d] for d in range(value.type.rank)])
        return cast(body, element, element_of(value), op.accumulator)

    product = body.op(
        "arith.mulf" if isinstance(op.accumulator, FloatType) else "arith.muli",
        factor(left, (op.left_batch, batch), (op.rows, rows), (op.left_depth, depth)),
        factor(right, (op.right_batch, batch), (op.columns, columns), (op.right_depth, depth)),
    )
    output = loop.ResultAttr("reduce", "sum", op.accumulator, None)
    red = range(count, len(shape))
    c.results = list(c.compute(body, [product], [output], [c.type], make_axes(shape, red)))
    if op.schedule is not None:
        compute = c.results[0].defining_op
        assert compute is not None
        compute.attributes["schedule"] = op.schedule
