"""The pass `stream-scores`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.streams import FEWEST, LONGEST
from irc.dialects import func, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import dim_product
from irc.passes.graph.contractions.products import cast
from irc.passes.graph.stream_softmaxes import (
    ELEMENTWISE,
    PRODUCT,
    narrow_element,
    product,
    products_of,
    reached_from,
    shaped,
    sixteen_bits,
)
from irc.target import Target, target_of


@attrs.frozen(eq=False)
class ScoredProduct:
    """A product with a function of scores, element by element: the function's value, whether its
    rows and columns are exchanged, what was between, and the scores' products."""

    call: graph.CallAten
    value: Value
    turned: bool
    between: tuple[Operation, ...]
    scores: tuple[graph.CallAten, ...]
    inside: frozenset[Operation]


@register_pass
class StreamScores(Pass):
    """Lets products with functions of other products' results be computed with these.

    As the gradients of attention are: products with probabilities, or with their gradients, each an
    element-wise function of two products (of queries and keys, and of the result's gradient and
    values), of a number of the row, and of masks. Where the function is turned round before it is
    multiplied, it is made anew of products that are turned round, so that each product has kernels
    that go over its depth once and have a tile of scores at a time (`stream-products`): scores are
    computed twice, and never in memory. Of 16-bit floats on a GPU, with up to 256 terms and columns,
    where nothing else reads the scores or what is made of them.

    Before:
        %s = graph.call_aten %q, %k {callee = "aten.bmm.default", ...} : ...
        %f = graph.exp %s : ...
        %t = graph.permute %f16 {permutation = array<i64: 0, 2, 1>} : ...
        %y = graph.call_aten %t, %v {callee = "aten.bmm.default", ...} : ...
    After:
        %s = graph.dot_general %k, %q {schedule = #loop.schedule<gpu>, ...} : ...
        %f = graph.exp %s : ...
        %y = graph.dot_general %f16, %v {schedule = #loop.schedule<gpu>, ...} : ...
    """  # noqa: E501

    name = "stream-scores"
    summary = "let products with functions of other products be computed with these"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if not target_of(context).is_gpu:
            return
        streams = [s for each in op.block.ops if (s := streamed_of(each)) is not None]
        groups: list[list[ScoredProduct]] = []
        for stream in streams:
            own = [stream]
            for group in [g for g in groups if any(set(s.scores) & set(stream.scores) for s in g)]:
                groups.remove(group)
                own = [*group, *own]
            groups.append(own)
        for group in groups:
            reason = why_not(group, target_of(context).gpu.streamed_scores)
            if reason:
                context.remark(f"scores stay in memory: {reason}", group[0].call)
            elif context.spend("stream-scores", group[0].call):
                context.remark("products are streamed with the scores that they are of",
                               group[0].call)  # fmt: skip
                _Rewrite(group, target_of(context)).run()
                context.count("streamed", len(group))


def streamed_of(op: Operation) -> ScoredProduct | None:
    """A product as one with a function of scores; None for anything else."""
    if not isinstance(op, graph.CallAten) or op.callee != PRODUCT:
        return None
    value, turned, between = op.operands[0], False, list[Operation]()
    while True:
        maker = value.defining_op
        if isinstance(maker, graph.Permute):
            rank = len(maker.permutation)
            if tuple(maker.permutation) != (*range(rank - 2), rank - 1, rank - 2):
                return None
            turned = not turned
        elif not isinstance(maker, graph.Reshape) or not _keeps_rows(maker):
            break
        between.append(maker)
        value = maker.operands[0]
    shape = tensor_type(value).shape
    if len(shape) < 3:
        return None
    scores, inside = products_of(value)
    if not scores:
        return None
    return ScoredProduct(op, value, turned, tuple(between), tuple(scores), frozenset(inside))


def _keeps_rows(view: graph.Reshape) -> bool:
    """Whether a view has the rows and columns of its source."""
    one, other = tensor_type(view.operands[0]).shape, tensor_type(view.results[0]).shape
    return min(len(one), len(other)) >= 3 and one[-2:] == other[-2:]


def why_not(group: Sequence[ScoredProduct], fewest: int) -> str:
    """Why products aren't streamed with their scores; "" if they are to be. fewest: fewer scores
    stay in memory."""
    scores = {call for stream in group for call in stream.scores}
    inside = {op for stream in group for op in stream.inside}
    between = {op for stream in group for op in stream.between} | {s.call for s in group}
    reached = reached_from(scores, inside - between)
    for op in reached:
        if any(user not in between and user not in reached for user in op.results[0].users):
            return "they, or what is made of them, are read elsewhere, too"
    for stream in group:
        for op in stream.between:
            if any(user not in between for user in op.results[0].users):
                return "what is multiplied is read elsewhere, too"
        shape = tensor_type(stream.value).shape
        points = dim_product(shape)
        if isinstance(points, int) and points < fewest:
            return "they are few"
        if any(isinstance(size, int) and size < FEWEST for size in shape[-2:]):
            return f"{shape[-2]} rows and {shape[-1]} columns don't fill a tile"
        width = tensor_type(stream.call.operands[1]).shape[2]
        depths = [tensor_type(call.operands[0]).shape[2] for call in stream.scores]
        if not all(isinstance(size, int) and 0 < size <= LONGEST for size in (width, *depths)):
            return f"{width} columns, or {depths} terms of a score, have no room in a tile"
    factors = [v for call in (*scores, *(s.call for s in group)) for v in call.operands[:2]]
    return "" if sixteen_bits(factors) else "they are not of 16-bit floats"


class _Rewrite:
    """Makes the products of some streams irc's own."""

    def __init__(self, group: Sequence[ScoredProduct], target: Target) -> None:
        self.group, self.target = group, target
        self.plain: dict[Value, Value] = {}
        self.turned: dict[Value, Value] = {}

    def run(self) -> None:
        for stream in self.group:
            call = stream.call
            builder = Builder.before(call)
            batch = tensor_type(stream.value).shape[:-2]
            value = self._copied(builder, stream.value, stream, stream.turned)
            narrow = cast(builder, value, narrow_element(call.operands[1]))
            sums = product(builder, batch, narrow, call.operands[1], self.target)
            type_ = tensor_type(call.results[0])
            result = shaped(builder, cast(builder, sums, type_.element), type_.shape)
            result.name_hint = call.results[0].name_hint
            call.results[0].replace_all_uses_with(result)
            call.erase()

    def _copied(self, builder: Builder, root: Value, stream: ScoredProduct, turned: bool) -> Value:
        """A function of scores, made anew of products of irc's own."""
        known, pending = (self.turned if turned else self.plain), [root]
        # Copies stand before the first product that needs them.
        while pending:
            value = pending[-1]
            op: Any = value.defining_op
            if value in known:
                pending.pop()
                continue
            call = op.operands[0].defining_op if isinstance(op, graph.Reshape) else op
            if op in stream.inside and call in stream.scores:
                known[value] = self._score(builder, call, value, turned)
            elif op in stream.inside and isinstance(op, ELEMENTWISE):
                missing = [o for o in op.operands if o not in known]
                if missing:
                    pending += missing
                    continue
                operands = [known[o] for o in op.operands]
                known[value] = self._like(builder, op, operands, turned)
            else:
                known[value] = exchanged(builder, value) if turned else value
            pending.pop()
        return known[root]

    def _score(
        self, builder: Builder, call: graph.CallAten, value: Value, turned: bool
    ) -> Value:
        type_ = tensor_type(value)
        left, right = call.operands[:2]
        if turned:
            left, right = exchanged(builder, right), exchanged(builder, left)
        sums = product(builder, type_.shape[:-2], left, right, self.target)
        return cast(builder, sums, type_.element)

    @staticmethod
    def _like(builder: Builder, op: Operation, operands: Sequence[Value], turned: bool) -> Value:
        type_ = tensor_type(op.results[0])
        if turned:
            type_ = type_.with_shape([*type_.shape[:-2], type_.shape[-1], type_.shape[-2]])
        copy = type(op)(list(operands), [type_], op.attributes, (), op.location)
        return builder.insert(copy).results[0]


def exchanged(builder: Builder, value: Value) -> Value:
    """A value with its last two dimensions exchanged."""
    rank = tensor_type(value).rank
    order = A.DenseIntsAttr((*range(rank - 2), rank - 1, rank - 2))
    view: Value = builder.value(graph.Permute, value, permutation=order)
    return view


__all__ = ["StreamScores", "streamed_of"]
