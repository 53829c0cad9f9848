"""The pass `expand-attention`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import func, graph, loop, sym
from irc.dialects.aten import OperandAttr
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, floordiv, mod, substitute, symbol
from irc.ir.types import TensorType, bf16, contiguous_strides, element_bytes, f16, f32, i1
from irc.passes.common.bodies import SEGMENTS, Body, make_compute
from irc.passes.kernel.cpu.contraction.register_tiles import panel_vectors
from irc.passes.kernel.cpu.schedule import CpuSchedule, vectors_along
from irc.passes.loop.attention_walk import (
    AttentionWalk,
    other_than,
    place_in_mask,
    seen_score,
    widened,
)
from irc.passes.loop.stage_products import stage_schedule
from irc.target import Target, target_of

FACTORS = ("query", "key", "value")
FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"
BATCH, HEAD, BLOCK = symbol("b"), symbol("h"), symbol("block")
ROW, KEY, WIDTH = symbol("r"), symbol("n"), symbol("d")
PANELS = tuple(symbol(name) for name in ("b", "h", "panel", "k", "c", "term"))

Factor = tuple[Value, Sequence[Dim]]
"""A tensor, and where it is read."""


@register_pass
class ExpandAttention(Pass):
    """Makes calls of ATen's attention on a CPU groups of five computes, whose scores stay in the
    caches: a product of queries and keys, the greatest score of each row, powers of e with their
    sum, a product of these and the values, and the quotient by the sum.

    The group's points are heads, or blocks of a head's rows where the scores of all have no room in
    half of a core's second-level cache; what the computes hand on is memory of the kernel's own
    (`irc.passes.kernel.cpu.stages`). What blocks would each pack of keys and values is laid out
    before the group, once. Causal attention has the five computes for some rows after the other,
    at least `causal_rows` (a figure of the target), with the keys that these see, in as many blocks
    each. Where blocks would be several, or have no form, and the processor's figures say so
    (`own_walks`), a group of streamed products takes the call's place, which `expand-streams` makes
    blocks of rows that walk over the keys. A call stays, and a remark tells why, whose logarithms of sums somebody reads, whose sizes
    are symbols, whose keys are too many for a few rows of scores, and where ATen is as fast by the
    processor's figures (`own_attention`, `own_pair_attention`).

    core_bytes: the second-level cache (0: the target's). force: wherever it can be done. walk: all
    walk over the keys.

    Before:
        %y, %l = graph.call_aten %q, %k, %v {callee = "aten._scaled_dot_product_flash_attention_for_cpu.default", ...} : ...
    After:
        %y = loop.group (b: 4, h: 12) schedule #loop.schedule<cpu, ...> {
          %s = loop.compute par(b: 4, h: 12, r: 128, n: 128) red(d: 64) -> reduce(sum, f32) {...}
          %m = loop.compute par(b: 4, h: 12, r: 128) red(n: 128) -> reduce(max, f32) {...}
          %e, %t = loop.compute par(b: 4, h: 12, r: 128) red(n: 128) -> map, reduce(sum, f32) {...}
          %o = loop.compute par(b: 4, h: 12, r: 128, d: 64) red(n: 128) -> reduce(sum, f32) {...}
          %y = loop.compute par(b: 4, h: 12, r: 128, d: 64) -> scatter(set, [...]) {...}
          loop.yield %y }
    """  # noqa: E501

    name = "expand-attention"
    summary = "make attention on a CPU a group of two products with what stands between"
    preserves = "real"
    asks_target = True
    core_bytes: int = 0
    force: bool = False
    walk: bool = False

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        if target.is_gpu:
            return
        functions = [o for o in op.regions[0].blocks[0].ops if isinstance(o, func.FuncOp)]
        for call in [o for function in functions for o in function.block.ops]:
            if not isinstance(call, graph.CallAten) or call.callee != FLASH:
                continue
            room = self.room(target)
            shape = attention_of(call, room, target)
            reason = shape if isinstance(shape, str) else self.objection(shape, target)
            several = isinstance(shape, str) or bool(reason) or shape.blocks > 1
            if self.walk and not unlike(call, target) or (
                several and not self.force and walks(call, target)
            ):  # fmt: skip
                context.remark("attention is irc's own, rows walk over the keys", call)
                self._replace(call, walk_of(call).run(), context)
                continue
            if isinstance(shape, str) or reason:
                context.remark(f"attention stays the library's: {reason}", call)
                continue
            parts = parts_of(shape, room, target)
            told = ", ".join(f"{p.blocks} of {p.rows} rows and {p.keys} keys" for p in parts)
            context.remark(f"attention is irc's own, blocks of a head: {told}", call)
            expanded = _ExpandedAttention(call, parts, target, _Panels(call)).run()
            self._replace(call, expanded, context)

    @staticmethod
    def _replace(call: graph.CallAten, expanded: Value, context: PassContext) -> None:
        expanded.name_hint = call.results[0].name_hint
        call.results[0].replace_all_uses_with(expanded)
        call.erase()
        context.count("expanded")

    def room(self, target: Target) -> int:
        """Bytes of a block's scores and powers."""
        return (self.core_bytes or target.processor.core_bytes) // 2

    def objection(self, shape: AttentionShape, target: Target) -> str:
        """Why the library is to compute what could be a group; "" where it isn't."""
        features = target.features
        narrow = shape.element is not f32
        share = features.own_pair_attention if narrow else features.own_attention
        if self.force:
            return ""
        if shape.blocks > features.attention_blocks[shape.causal]:
            return f"a head's {shape.queries} rows are {shape.blocks} blocks"
        blocks = parts_of(shape, self.room(target), target)[0].blocks
        points = shape.batch * shape.heads * blocks
        if points < target.threads:
            return f"{points} blocks of rows leave some of {target.threads} threads idle"
        if share >= 100 * features.sure_products:
            return ""
        return f"irc's kernels have {share} % of its speed"


@attrs.frozen
class AttentionShape:
    """Sizes of an attention, or of its rows from `first` on, that is computed in blocks of rows.
    scale: of the scores."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    rows: int
    element: Type
    scale: float
    causal: bool
    first: int = 0

    @property
    def blocks(self) -> int:
        """Blocks of a head's rows."""
        return -(-self.queries // self.rows)

    @property
    def score_row(self) -> int:
        """Elements from one row of scores to the next."""
        return -(-self.keys // 16) * 16


def attention_of(
    call: graph.CallAten, room: int, target: Target
) -> AttentionShape | str:
    """What the kernel of a call is like whose scores have so many bytes, or why there is none."""
    reason = unlike(call, target)
    if reason:
        return reason
    types = _types(call)
    element = types[0].element
    if element not in (f32, bf16):
        return f"its elements are {element}"
    batch, heads, queries, width = types[0].shape
    key_heads, keys = types[1].shape[1:3]
    least = target.lanes(f32)
    row = keys * (4 + element_bytes(element))
    rows = rows_in(room, queries, keys, element, target)
    if rows < queries and rows < 2 * least:
        return f"{keys} keys have no room for the scores of {2 * least} rows"
    total = batch * heads * -(-queries // rows) * rows * row
    if total > target.features.attention_bytes:
        return f"the scores of all its points have {total} bytes"
    return AttentionShape(
        batch, heads, key_heads, queries, keys, width, rows, element, scale_of(call),
        is_causal(call),
    )  # fmt: skip


def _types(call: graph.CallAten) -> list[Any]:
    """Those of the query, the key and the value."""
    return [value.type for name in FACTORS if (value := operand_of(call, name)) is not None]


def unlike(call: graph.CallAten, target: Target) -> str:
    """Why no kernel of irc's does what a call does; "" where there may be one."""
    if any(True for _ in call.results[1].users):
        return "the logarithms of its sums are read"
    types, mask = _types(call), operand_of(call, "attn_mask")
    every = [*types, *([] if mask is None else [mask.type])]
    sizes = [size for type_ in every for size in (*type_.shape, *(type_.strides or ()))]
    if not all(isinstance(size, int) for size in sizes):
        return "its sizes are symbols"
    if getattr(call.arguments.as_dict().get("dropout_p"), "value", 0.0):
        return "it drops probabilities"
    if sym.range_entry(call):
        return "it runs for a range of a size"
    if types[0].element not in (f32, bf16, f16):
        return f"its elements are {types[0].element}"
    if mask is not None and every[-1].element not in (i1, f32, bf16, f16):
        return f"its mask has elements of {every[-1].element}"
    batch, heads, queries, width = types[0].shape
    keys = types[1].shape[2]
    if 0 in (batch, heads, queries, width, keys) or types[2].shape[3] != width:
        return "it has no elements"
    least = target.lanes(f32)
    if queries < least or keys < least or width < least:
        return f"{queries} rows, {keys} keys of {width} are fewer than a vector's lanes"
    return ""


def scale_of(call: graph.CallAten) -> float:
    """What scores are multiplied with."""
    factor = getattr(call.arguments.as_dict().get("scale"), "value", None)
    return 1 / math.sqrt(_types(call)[0].shape[3]) if factor is None else float(factor)


def is_causal(call: graph.CallAten) -> bool:
    """Whether a row sees the keys up to its own."""
    return bool(getattr(call.arguments.as_dict().get("is_causal"), "value", False))


def walks(call: graph.CallAten, target: Target) -> bool:
    """Whether blocks of rows that walk over the keys are faster than the library, by the
    processor's figures, and the scores have no room in the second-level cache."""
    if unlike(call, target):
        return False
    types, features = _types(call), target.features
    element = types[0].element
    batch, heads, queries, _ = types[0].shape
    scores = batch * heads * queries * types[1].shape[2]
    if 4 * scores <= target.processor.core_bytes:
        return False
    if batch * heads * -(-queries // features.walk_rows) < target.threads:
        return False
    share = features.own_walks[0 if element is f32 else 1]
    return bool(share >= 100 * features.sure_products)


def walk_of(call: graph.CallAten) -> AttentionWalk:
    """A call as a group of streamed products."""
    operands = [value for name in FACTORS if (value := operand_of(call, name)) is not None]
    mask = operand_of(call, "attn_mask")
    return AttentionWalk(call, operands, mask, scale_of(call), is_causal(call))


def rows_in(room: int, queries: int, keys: int, element: Type, target: Target) -> int:
    """How many rows of scores, and of powers of an element, have room in so many bytes."""
    rows, least = room // (keys * (4 + element_bytes(element))), target.lanes(f32)
    return queries if rows >= queries else rows // least * least


def parts_of(shape: AttentionShape, room: int, target: Target) -> list[AttentionShape]:
    """An attention by rows: where these see keys up to their own, some rows after the other with
    the keys that they see, in as many blocks each. room: bytes of a block's scores."""
    least = target.lanes(f32)
    features = target.features
    fewest = features.causal_rows[0 if shape.element is f32 else 1]
    step = -(-max(fewest, -(-shape.queries // features.causal_parts)) // least) * least
    if not shape.causal or step >= shape.queries:
        return [shape]
    # The last rows see the most keys: a block has as many as have room then.
    seen = min(shape.keys, shape.queries)
    rows = rows_in(room, step, seen, shape.element, target)
    blocks = -(-step // rows)
    rows = -(-step // (blocks * least)) * least
    step = blocks * rows
    parts = []
    for first in range(0, shape.queries, step):
        count = min(step, shape.queries - first)
        keys = min(shape.keys, first + count)
        own = rows if blocks > 1 else count
        parts.append(attrs.evolve(shape, first=first, queries=count, keys=keys, rows=own))
    return parts


def operand_of(call: graph.CallAten, name: str) -> Value | None:
    """The tensor that an argument is, if there is one."""
    attr = call.arguments.as_dict().get(name)
    return call.operands[attr.index] if isinstance(attr, OperandAttr) else None


class _Panels:
    """Keys and values as tiles read them, made before a call: each once, for all blocks."""

    def __init__(self, call: graph.CallAten) -> None:
        self.call = call
        self._known: dict[tuple[Value, int, int, int], Value] = {}

    def of(self, value: Value, columns: int, panel: int, group: int) -> Value:
        """An array of heads, panels of `panel` columns, terms by `group`, columns and the terms of
        a group. columns: the dimension of the value that these are, 2 or 3; the terms are the
        other, so that keys which are the values, too, have two."""
        key = value, columns, panel, group
        if key not in self._known:
            self._known[key] = self._laid_out(*key)
        return self._known[key]

    def _laid_out(self, value: Value, columns: int, panel: int, group: int) -> Value:
        type_ = value.type
        assert isinstance(type_, TensorType)
        across, along = type_.shape[columns], type_.shape[5 - columns]
        assert isinstance(across, int) and isinstance(along, int)
        sizes = (*type_.shape[:2], -(-across // panel), -(-along // group), panel, group)
        axes = [loop.AxisAttr(axis.name, "par", n) for axis, n in zip(PANELS, sizes, strict=True)]
        column, term = PANELS[2] * panel + PANELS[4], PANELS[3] * group + PANELS[5]
        body, mask = Body(), None
        for place, size, whole in ((column, across, panel), (term, along, group)):
            if size % whole:
                inside = body.compare("slt", body.index(place), body.index(size))
                mask = inside if mask is None else body.op("arith.andi", mask, inside)
        pair = [column, term] if columns == 2 else [term, column]
        other = None if mask is None else body.constant(0, type_.element)
        body.finish([body.read(value, [*PANELS[:2], *pair], mask=mask, other=other)])
        strides = contiguous_strides(sizes)
        result = TensorType(sizes, type_.element, strides)
        compute = make_compute(Builder.before(self.call), A.ArrayAttr(axes), [loop.MAP], [result],
                               body, (), self.call)  # fmt: skip
        return compute.results[0]


class _ExpandedAttention:
    """The computes of one attention."""

    def __init__(
        self, call: graph.CallAten, parts: Sequence[AttentionShape], target: Target,
        panels: _Panels,
    ) -> None:  # fmt: skip
        self.call, self.parts, self.panels, shape = call, parts, panels, parts[0]
        # A head is a point: no product has points of its own.
        self.target = attrs.evolve(target, threads=1)
        sizes = ((BATCH, shape.batch), (HEAD, shape.heads), (BLOCK, shape.blocks))
        self.points = [(axis, size) for axis, size in sizes if size != 1] or [sizes[0]]
        names = {axis for axis, _ in self.points}
        self.batch, self.head, self.block = (axis if axis in names else 0 for axis, _ in sizes)

    def run(self) -> Value:
        """The result of the group, which stands before the call."""
        outer, inside = Builder.before(self.call), Block()
        result = outer.value(graph.Undefined, result_types=self.call.results[0].type)
        builder = Builder.at_end(inside)
        for shape in self.parts:
            self.shape = shape
            self.row: Dim = self.block * shape.rows + ROW + shape.first
            self.end = shape.first + shape.queries
            self.whole = shape.queries == shape.rows * self.parts[0].blocks
            scores = self._scores(builder)
            greatest = self._greatest(builder, scores)
            powers, total = self._powers(builder, scores, greatest)
            sums = self._sums(builder, powers)
            result = self._result(builder, sums, total, result)
        segments = {SEGMENTS: A.DenseIntsAttr((1, 0, 0))}
        inside.append(loop.YieldOp([result], (), segments, (), self.call.location))
        several = [axis.name for axis, size in self.points if size != 1]
        top = CpuSchedule(collapse=[], outer=several, scratch=0, vector_axis="")
        entries: dict[str, A.Attribute] = {
            "axes": A.ArrayAttr(self._axes()), "schedule": top.to_attribute(),
        }  # fmt: skip
        group = loop.GroupOp(
            (), [result.type], entries, (Region([inside]),), self.call.location
        )
        outer.insert(group)
        return group.results[0]

    # -- structure

    def _axes(self, *own: tuple[Any, Dim], red: Sequence[tuple[Any, Dim]] = ()) -> list[Any]:
        par = [loop.AxisAttr(axis.name, "par", size) for axis, size in (*self.points, *own)]
        return par + [loop.AxisAttr(axis.name, "red", size) for axis, size in red]

    def _handed_on(self, element: Type, *sizes: int, row: int = 0) -> TensorType:
        """An array with a part for each point."""
        shape = [size for _, size in self.points] + list(sizes)
        strides, step = list[Dim](), 1
        for size in reversed(shape):
            strides.insert(0, step)
            step = step * size if len(strides) > 1 or not row else row
        return TensorType(tuple(shape), element, tuple(strides))

    def _compute(
        self, builder: Builder, axes: Sequence[Any], outputs: Sequence[loop.ResultAttr],
        types: Sequence[Type], body: Body, schedule: CpuSchedule, inits: Sequence[Value] = (),
    ) -> loop.ComputeOp:  # fmt: skip
        compute = make_compute(
            builder, A.ArrayAttr(axes), list(outputs), list(types), body, inits, self.call
        )
        compute.attributes["schedule"] = schedule.to_attribute()
        return compute

    def _vectors(self, axis: Any, size: int, order: Sequence[Any]) -> CpuSchedule:
        return vectors_along(axis.name, size, self.target.lanes(f32), [a.name for a in order])

    def _product(
        self, builder: Builder, left: Factor, right: Factor, columns: tuple[Any, int],
        depth: tuple[Any, int], masked: bool, row: int,
    ) -> Value:  # fmt: skip
        """Sums of products over the depth, for each row and column. right: a tensor that is read at
        a column and a term."""
        rows = (ROW, self.shape.rows)
        alone = self._alone(left, right, columns, depth, masked, {})
        if self.parts[0].blocks > 1 and not alone.in_matrices and (
            alone.pack_right or alone.products == "depth"
        ):
            vectors = alone.tile_vectors
            if alone.products == "depth":  # as no block would pack it for its rows
                vectors = panel_vectors(self.target, alone.lanes)
            right = self._in_panels(right, columns[0], depth[0], vectors * alone.lanes, alone.group)
            entries = {"products": "lanes", "tile_vectors": vectors, "group": alone.group}
            alone = self._alone(left, right, columns, depth, masked, entries)
        output = loop.ResultAttr("reduce", "sum", f32, None)
        axes = self._axes(rows, columns, red=[depth])
        type_ = self._handed_on(f32, rows[1], columns[1], row=row)
        body = self._products(left, right, masked)
        return self._compute(builder, axes, [output], [type_], body, alone).results[0]

    def _alone(
        self, left: Factor, right: Factor, columns: tuple[Any, int], depth: tuple[Any, int],
        masked: bool, entries: Mapping[str, Any],
    ) -> CpuSchedule:  # fmt: skip
        """The schedule of the product of one point. entries: what it has in any case."""
        rows = (ROW, self.shape.rows)
        own = [loop.AxisAttr(axis.name, "par", size) for axis, size in (rows, columns)]
        own.append(loop.AxisAttr(depth[0].name, "red", depth[1]))
        first: dict[str, Dim] = {axis.name: 0 for axis, _ in self.points}

        def here(factor: Factor) -> Factor:
            value, place = factor
            return value, [ROW if p is self.row else substitute(p, first) for p in place]

        def alone(schedule: CpuSchedule) -> loop.ComputeOp:
            return self._compute(
                Builder.before(self.call), own, [loop.ResultAttr("reduce", "sum", f32, None)],
                [TensorType((rows[1], columns[1]), f32, (columns[1], 1))],
                self._products(here(left), here(right), False), schedule,
            )  # fmt: skip

        preset: dict[str, Any] = {"pack_left": True} if masked else {}
        return stage_schedule(alone, ROW.name, columns[0].name, [depth[0].name], self.target,
                              **preset, **entries)  # fmt: skip

    def _products(self, left: Factor, right: Factor, masked: bool) -> Body:
        """What is summed up. masked: rows behind the last one are zeros."""
        body, mask, other = Body(), None, None
        if masked:
            mask = body.compare("slt", body.index(self.row), body.index(self.end))
            other = body.constant(0, self.shape.element)
        factors = [body.read(*left, mask=mask, other=other), body.read(*right)]
        body.finish([body.op("arith.mulf", *(widened(body, each) for each in factors))])
        return body

    def _in_panels(
        self, right: Factor, column: Dim, term: Dim, panel: int, group: int
    ) -> Factor:
        """A tensor that is read at a column and a term where its panels are."""
        value, place = right
        laid_out = self.panels.of(value, 2 + (place[2] is not column), panel, group)
        return laid_out, [*place[:2], floordiv(column, panel), floordiv(term, group),
                          mod(column, panel), mod(term, group)]  # fmt: skip

    # -- the computes

    def _scores(self, builder: Builder) -> Value:
        """Of each query with each key."""
        shape = self.shape
        query, key = operand_of(self.call, "query"), operand_of(self.call, "key")
        assert query is not None and key is not None
        return self._product(
            builder, (query, [self.batch, self.head, self.row, WIDTH]),
            (key, [self.batch, self._key_head(), KEY, WIDTH]),
            (KEY, shape.keys), (WIDTH, shape.width), not self.whole, shape.score_row,
        )  # fmt: skip

    def _key_head(self) -> Dim:
        times = self.shape.heads // self.shape.key_heads
        return self.head if times == 1 else self.head // times

    def _local(self, *own: Dim) -> list[Dim]:
        """An index of what is handed on."""
        return [*(axis for axis, _ in self.points), *own]

    def _score(self, body: Body, scores: Value) -> Value:
        """A score, scaled and masked."""
        shape = self.shape
        score = body.read(scores, self._local(ROW, KEY))
        mask = operand_of(self.call, "attn_mask")
        read = None if mask is None else self._mask(body, mask)
        places = (self.row, KEY) if shape.causal else None
        return seen_score(body, score, shape.scale, read, places)

    def _mask(self, body: Body, mask: Value) -> Value:
        """What is read of a mask; rows behind the last one read nothing."""
        type_: Any = mask.type
        there = other = None
        if not self.whole and type_.rank > 1 and type_.shape[-2] != 1:
            there = body.compare("slt", body.index(self.row), body.index(self.end))
            other = body.constant(0, type_.element)
        place = place_in_mask(mask, (self.batch, self.head, self.row, KEY))
        return body.read(mask, place, mask=there, other=other)

    def _greatest(self, builder: Builder, scores: Value) -> Value:
        body = Body()
        body.finish([self._score(body, scores)])
        output = loop.ResultAttr("reduce", "max", f32, None)
        axes = self._axes((ROW, self.shape.rows), red=[(KEY, self.shape.keys)])
        type_ = self._handed_on(f32, self.shape.rows)
        schedule = self._vectors(KEY, self.shape.keys, [ROW, KEY])
        return self._compute(builder, axes, [output], [type_], body, schedule).results[0]

    def _powers(self, builder: Builder, scores: Value, greatest: Value) -> tuple[Value, Value]:
        """e to the distance of each score from its row's greatest one, and sums of these, which are
        0 for a row that sees nothing."""
        shape, body = self.shape, Body()
        most = other_than(body, body.read(greatest, self._local(ROW)), -math.inf, 0.0)
        power = body.op("math.exp", body.op("arith.subf", self._score(body, scores), most))
        narrow = power
        if shape.element is not f32:
            narrow = body.op("arith.truncf", power, type=shape.element)
        body.finish([narrow, power])
        outputs = [loop.MAP, loop.ResultAttr("reduce", "sum", f32, None)]
        axes = self._axes((ROW, shape.rows), red=[(KEY, shape.keys)])
        types = [
            self._handed_on(shape.element, shape.rows, shape.keys, row=-(-shape.keys // 32) * 32),
            self._handed_on(f32, shape.rows),
        ]
        schedule = self._vectors(KEY, shape.keys, [ROW, KEY])
        compute = self._compute(builder, axes, outputs, types, body, schedule)
        return compute.results[0], compute.results[1]

    def _sums(self, builder: Builder, powers: Value) -> Value:
        shape, value = self.shape, operand_of(self.call, "value")
        assert value is not None
        return self._product(
            builder, (powers, self._local(ROW, KEY)),
            (value, [self.batch, self._key_head(), KEY, WIDTH]),
            (WIDTH, shape.width), (KEY, shape.keys), False, shape.width,
        )  # fmt: skip

    def _result(self, builder: Builder, sums: Value, total: Value, init: Value) -> Value:
        """The sums by the sums of powers; 0 for a row that sees nothing."""
        shape, body = self.shape, Body()
        divisor = other_than(body, body.read(total, self._local(ROW)), 0.0, 1.0)
        factor = body.op("arith.divf", body.constant(1, f32), divisor)
        value = body.op("arith.mulf", body.read(sums, self._local(ROW, WIDTH)), factor)
        if shape.element is not f32:
            value = body.op("arith.truncf", value, type=shape.element)
        masks = []
        if not self.whole:
            masks = [body.compare("slt", body.index(self.row), body.index(self.end))]
        body.finish([value], masks=masks)
        place = [self.batch, self.head, self.row, WIDTH]
        output = loop.ResultAttr("scatter", "set", None, A.DimsAttr(place))
        axes = self._axes((ROW, shape.rows), (WIDTH, shape.width))
        schedule = self._vectors(WIDTH, shape.width, [ROW, WIDTH])
        return self._compute(
            builder, axes, [output], [init.type], body, schedule, [init]
        ).results[0]


__all__ = ["AttentionShape", "ExpandAttention", "attention_of"]
