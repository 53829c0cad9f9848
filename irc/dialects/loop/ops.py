"""The operations of the loop dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from irc.dialects.loop.schedule import complaints
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Value
from irc.ir.definition import (
    Op,
    attribute,
    of,
    operand,
    optional_operand,
    region,
    result,
    variadic_operand,
    variadic_result,
)
from irc.ir.registry import register_attribute
from irc.ir.symbols import Dim
from irc.ir.traits import Free, Pure, RunsInRange, Terminator
from irc.ir.types import IndexType, IntegerType, TensorType, index

TENSOR = of(TensorType)
AXIS_KINDS = ("par", "red", "scan")

# Combiners: how many results each yielded value becomes.
# sum prod min max any all xor: one. argmin, argmax: the i64 position (row-major over the red
# axes) of the first extreme, NaN winning. moments: mean and sum of squared deviations.
# logsumexp: maximum m and sum of exp(x - m), an infinite m counting as 0 in the difference.
# sort, of a scan only: the integers in order, the smallest first; a gpu has code for it.
COMBINER_RESULTS: dict[str, int] = {
    "sum": 1, "prod": 1, "min": 1, "max": 1, "any": 1, "all": 1, "xor": 1,
    "argmin": 1, "argmax": 1, "moments": 2, "logsumexp": 2,
}  # fmt: skip
SCATTER_COMBINERS = ("set", "sum", "prod", "min", "max")
# What may combine the values of a result of each kind.
RESULT_COMBINERS: dict[str, tuple[str, ...]] = {
    "map": ("",),
    "reduce": tuple(COMBINER_RESULTS),
    "scan": (*COMBINER_RESULTS, "sort"),
    "scatter": SCATTER_COMBINERS,
}
SCHEDULE_TARGETS = ("cpu", "gpu")


def placeholder(position: int) -> str:
    """The symbol that stands for index operand number `position` inside an index expression."""
    return f"_{position}"


@register_attribute
class AxisAttr(A.Attribute):
    """An axis of an iteration space: name, kind (par, red, scan), extent. `i: s0`.

    Names are unique along a nesting path; siblings may reuse them. An extent may be zero.
    """

    __slots__ = ()
    dialect = "loop"
    mnemonic = "axis"
    fields = ("name", "kind", "extent")
    name: str
    kind: str
    extent: Dim

    def validate(self) -> None:
        if self.kind not in AXIS_KINDS:
            raise ValueError(f"axis kind {self.kind!r} is not one of {', '.join(AXIS_KINDS)}")


@register_attribute
class ResultAttr(A.Attribute):
    """What becomes of one yielded value: `map`, `reduce(sum, f32)`, `scan(sum, f32)`,
    `scatter(sum, [index expressions])`.

    kind: map | reduce | scan | scatter. combiner: "" for a map. accumulator: the type in which
    values are combined (reduce and scan), else None. indices (scatter): index expressions over
    the axes and placeholders; placeholders count through the yield's `extra` operands.
    """

    __slots__ = ()
    dialect = "loop"
    mnemonic = "result"
    fields = ("kind", "combiner", "accumulator", "indices")
    kind: str
    combiner: str
    accumulator: Type | None
    indices: A.DimsAttr | None

    def validate(self) -> None:
        if self.kind not in RESULT_COMBINERS:
            raise ValueError(f"{self.kind!r} is not one of {', '.join(RESULT_COMBINERS)}")
        if self.combiner not in RESULT_COMBINERS[self.kind]:
            raise ValueError(f"'{self.combiner}' does not combine a {self.kind}")

    @property
    def result_count(self) -> int:
        """How many results of the compute this yielded value becomes."""
        if self.kind == "reduce":
            return COMBINER_RESULTS[self.combiner]
        return 1

    @property
    def index_dims(self) -> tuple[Dim, ...]:
        """The index expressions of a scatter, all of which are known."""
        assert self.indices is not None
        return cast("tuple[Dim, ...]", self.indices.dims)


MAP = ResultAttr("map", "", None, None)


@register_attribute
class ScheduleAttr(A.Attribute):
    """How a compute or group runs on a target; the only home of such facts.

    target: "cpu" or "gpu". entries: sorted (key, attribute) pairs; `irc/dialects/loop/schedule.py`
    lists the keys with their meaning. Printed `#loop.schedule<cpu, vector_axis = "j", ...>`.
    """

    __slots__ = ()
    dialect = "loop"
    mnemonic = "schedule"
    fields = ("target", "entries")
    target: str
    entries: A.DictAttr

    @property
    def is_gpu(self) -> bool:
        """Whether it is of program instances with tiles, for a gpu."""
        return self.target == "gpu"

    def validate(self) -> None:
        if self.target not in SCHEDULE_TARGETS:
            raise ValueError(f"target {self.target!r} is not one of {', '.join(SCHEDULE_TARGETS)}")
        for complaint in complaints(self.target, self.entries):
            raise ValueError(f"the schedule's {complaint}")


class ComputeOp(Op):
    """Computes arrays over a space of axes with scalar code.

    The body is evaluated at each point of the space and yields one scalar per entry of `outputs`.
    A `map` result has one dimension per axis, in the order of the axes (red and scan axes too); a
    `reduce` result one per axis that is not red; a `scan` result one per axis (inclusive, in
    increasing order of the one scan axis); a `scatter` result is `inits[k]` (k counts the scatter
    outputs) with the points combined into it in row-major order of the axes. Result types are
    tensors with strides. An empty reduction gives the combiner's identity in the accumulator type
    (min, max of integers: the type's extremes; argmin and argmax of nothing are not evaluated).

    Bodies hold `arith` and `math` on scalars, `loop.read`, `loop.index`, and end in `loop.yield`.
    They read arrays defined outside directly.

    `%y = loop.compute par(i: 4) red(j: 4) -> reduce(sum, f32) { %a = loop.read %x[i, j] : f32
    loop.yield %a } : tensor<[4] x f32, strides [1]>`
    """

    name = "loop.compute"
    traits = frozenset({Pure, RunsInRange})
    inits = variadic_operand(TENSOR, "initial arrays of the scatter outputs")
    axes = attribute(A.ArrayAttr, "of AxisAttr: par axes and red or scan axes in any order")
    outputs = attribute(A.ArrayAttr, "of ResultAttr, one per yielded value")
    schedule = attribute(ScheduleAttr, optional=True)
    arrays = variadic_result(TENSOR)
    body = region()

    @property
    def block(self) -> Block:
        """The body's block."""
        return self.regions[0].blocks[0]

    @property
    def yield_op(self) -> YieldOp:
        """The body's terminator."""
        last = self.block.last
        if not isinstance(last, YieldOp):
            self.fail("its body does not end in loop.yield")
        return last

    @property
    def axis_list(self) -> tuple[AxisAttr, ...]:
        """The axes, in order."""
        return self.attributes["axes"].parameters[0]

    def local_symbols(self) -> tuple[str, ...]:
        """The axes' names, which the body's index expressions mention."""
        return tuple(axis.name for axis in self.axis_list)

    @property
    def placeholder_count(self) -> int:
        """How many placeholders scatter index expressions may name."""
        return len(self.yield_op.extra)

    @property
    def output_list(self) -> tuple[ResultAttr, ...]:
        """The outputs, one per yielded value."""
        return self.attributes["outputs"].parameters[0]

    @property
    def reads(self) -> Iterator[ReadOp]:
        """Every loop.read of the body."""
        return (op for op in self.regions[0].walk() if isinstance(op, ReadOp))

    def results_of(self, output: int) -> tuple[Value, ...]:
        """The results that yielded value number `output` becomes."""
        start = sum(o.result_count for o in self.output_list[:output])
        return self.results[start : start + self.output_list[output].result_count]


class LoopCarried(NamedTuple):
    """An array that a walk carries: what it is before the first step, in a step, behind it, and
    behind the last one."""

    init: Value
    argument: Value
    following: Value
    result: Value


class GroupOp(Op):
    """Computes and groups that share their leading `par` axes.

    `axes` are the shared ones; each member's axis list starts with them (same names, kinds and
    extents), and what scatters sets. A member may read another member's result only at the same
    point of the shared axes (the leading indices are exactly the shared axes). A value yielded is
    stored and becomes a result; any other lives only for one point of the shared axes.

    A member may have none of the shared axes: it is computed once, before their first point, as
    what differs by column only is in a group of rows. It is a map of known size that reads what is
    made outside, or once as well; the others read it anywhere, and it is not stored.

    A group inside another one may be a *walk*: its block has arguments, and its last axis, which
    the group around it does not have, is walked along step by step. At the first step an argument
    is the array of `inits` (of the group around), at the next ones what is yielded for it at the
    step before; the results are what the last step yields. So they have the shape of the inits, and
    what is yielded has the last axis more. A last operand, `limit`, an array of integers over the
    other axes, says how many of the steps there are at each point of these.

    `%y = loop.group (i: 4) { %o = loop.compute par(i: 4, j: 4) -> map {
    %a = loop.read %x[j, i] : f32 loop.yield %a } : tensor<[4, 4] x f32, strides [4, 1]>
    loop.yield %o } : tensor<[4, 4] x f32, strides [4, 1]>`
    """

    name = "loop.group"
    traits = frozenset({Pure, RunsInRange})
    inits = variadic_operand(TENSOR, "what the block's arguments are at first, and the limit")
    axes = attribute(A.ArrayAttr, "of AxisAttr, all par")
    schedule = attribute(ScheduleAttr, optional=True)
    arrays = variadic_result(TENSOR)
    body = region()

    @property
    def block(self) -> Block:
        """The body's block."""
        return self.regions[0].blocks[0]

    @property
    def axis_list(self) -> tuple[AxisAttr, ...]:
        """The shared axes, in order."""
        return self.attributes["axes"].parameters[0]

    def local_symbols(self) -> tuple[str, ...]:
        """The shared axes' names."""
        return tuple(axis.name for axis in self.axis_list)

    @property
    def carried(self) -> tuple[LoopCarried, ...]:
        """What a walk carries from step to step; () where the group is none."""
        parts = (self.operands, self.block.arguments, self.yield_op.values, self.results)
        return tuple(LoopCarried(*each) for each in zip(*parts, strict=False)
                     if self.block.arguments)  # fmt: skip

    @property
    def limit(self) -> Value | None:
        """How many steps a walk has at each point of the axes around it; None for all."""
        count = len(self.block.arguments)
        return self.operands[count] if len(self.operands) > count else None

    def is_once(self, member: Operation) -> bool:
        """Whether a member has none of the shared axes: it is computed once, before the others."""
        shared = self.axis_list
        if not shared or not isinstance(member, ComputeOp):
            return False
        return {axis.name for axis in member.axis_list}.isdisjoint(a.name for a in shared)

    @property
    def yield_op(self) -> YieldOp:
        """The body's terminator."""
        last = self.block.last
        if not isinstance(last, YieldOp):
            self.fail("its body does not end in loop.yield")
        return last


class YieldOp(Op):
    """Ends a body: the scalars of a compute's outputs, or the arrays that a group stores.

    In a compute: `values` are one scalar per output; `extra` are the index scalars that scatter
    index expressions name by placeholder, in order over all scatter outputs; `masks` are one i1
    per scatter output (empty: all points are kept).

    `loop.yield %a extra(%k) masks(%c)`
    """

    name = "loop.yield"
    traits = frozenset({Terminator})
    parents = ("loop.compute", "loop.group")
    values = variadic_operand()
    extra = variadic_operand()
    masks = variadic_operand()


class ReadOp(Op):
    """The element of `source` at the index expressions, one per dimension.

    `indices` are expressions over the axes in scope, the function's symbols, and placeholders
    `_0`, `_1`, ... that stand for the operands `positions`. With a mask, a false point reads
    nothing and gives `other`. Indices must be in bounds wherever the read happens. The result is
    the source's element type, signless (bool: i1, ui8: i8).

    `%a = loop.read %x[i, j + 1] : f32`
    """

    name = "loop.read"
    traits = frozenset({Free, Pure})
    source = operand(TENSOR)
    positions = variadic_operand(of(IndexType, IntegerType))
    mask = optional_operand(of(IntegerType))
    other = optional_operand()
    indices = attribute(A.DimsAttr)
    value = result()

    @property
    def placeholder_count(self) -> int:
        """How many placeholders the indices may name."""
        return len(self.positions)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (signless(operands[0].type.element),)  # type: ignore[attr-defined]


class IndexOp(Op):
    """The value of an index expression at the current point (placeholders: `positions`).

    `%k = loop.index {expression = #sym<i*4 + j>} : index`
    """

    name = "loop.index"
    traits = frozenset({Free, Pure})
    positions = variadic_operand(of(IndexType, IntegerType))
    expression = attribute(A.DimAttr)
    value = result(of(IndexType))

    @property
    def placeholder_count(self) -> int:
        """How many placeholders the expression may name."""
        return len(self.positions)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (index,)


def signless(element: Type) -> Type:
    """The scalar type that arith computes with for an array's element type."""
    if isinstance(element, IntegerType) and element.unsigned:
        return IntegerType(element.width)
    return element


