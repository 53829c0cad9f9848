"""Contractions: computes that multiply two things and sum the products up.

A matrix product is `par(m, n) red(k) -> reduce(sum, f32)` over a read of [m, k] times a read of
[k, n]; a batch of them has axes that both sides have; a convolution has several axes of each kind,
and reads whose indices are affine. None is known by an operation's name: what decides is which axes
each factor of the product depends on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from irc.analysis.loop import is_map, points
from irc.dialects import arith, loop
from irc.dialects.kernel.dots import LaneDot, lane_dot_of
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.symbols import free_symbols
from irc.ir.types import TensorType
from irc.target import Target


@attrs.frozen(eq=False)
class Side:
    """A factor of the products.

    value: the scalar in the compute's body. axes: the names of those that it depends on. ops: the
    operations of the body that it is made of, in order; all but the reads are its prologue.
    """

    value: Value
    axes: frozenset[str]
    ops: tuple[Operation, ...]

    @property
    def reads(self) -> tuple[loop.ReadOp, ...]:
        """What it reads."""
        return tuple(op for op in self.ops if isinstance(op, loop.ReadOp))

    @property
    def narrow(self) -> Value:
        """The factor before it was widened to be multiplied."""
        maker = self.value.defining_op
        if isinstance(maker, arith.ExtFOp | arith.ExtSIOp) and maker in self.ops:
            return maker.operands[0]
        return self.value

    @property
    def reads_zero(self) -> bool:
        """Whether it is what is read, but for casts, and zero where its mask leaves that out."""
        value = self.value
        while isinstance(value.defining_op, arith.ExtFOp | arith.ExtSIOp):
            value = value.defining_op.operands[0]
        read = value.defining_op
        if not isinstance(read, loop.ReadOp):
            return False
        other = None if read.other is None else read.other.defining_op
        return read.mask is None or isinstance(other, arith.ConstantOp) and is_zero(other)

    @property
    def parts(self) -> tuple[loop.ReadOp, ...]:
        """The reads that it is the sum of, the first ones first: those of a number that was cut
        into parts of a narrower type. () for anything else."""
        value: Value | None = self.value
        parts = list[loop.ReadOp]()
        while value is not None:
            maker = value.defining_op
            sum_ = maker if isinstance(maker, arith.AddFOp) else None
            part = value if sum_ is None else sum_.operands[1]
            wide = part.defining_op
            read = wide.operands[0].defining_op if isinstance(wide, arith.ExtFOp) else None
            if not isinstance(read, loop.ReadOp) or read.mask is not None:
                return ()
            parts.append(read)
            value = None if sum_ is None else sum_.operands[0]
        return tuple(reversed(parts)) if len(parts) > 1 else ()

    @property
    def plain(self) -> loop.ReadOp | None:
        """The read that it is, but for a cast to the accumulator's type; None for anything else."""
        rest = [op for op in self.ops if not isinstance(op, arith.ExtFOp | arith.ExtSIOp)]
        only = rest[0] if len(rest) == 1 else None
        return only if isinstance(only, loop.ReadOp) and only.mask is None else None


@attrs.frozen(eq=False)
class Contraction:
    """A compute that is one. Its axes, each in one of four, in the compute's order:

    batch: par axes of both sides, and of neither, which have one point. rows: of `left` alone.
    columns: of `right` alone. depth: what is summed over, of both. Rows stand before columns in
    the compute: where the sides are written the other way round, `left` is the second factor.
    """

    compute: loop.ComputeOp
    batch: tuple[loop.AxisAttr, ...]
    rows: tuple[loop.AxisAttr, ...]
    columns: tuple[loop.AxisAttr, ...]
    depth: tuple[loop.AxisAttr, ...]
    left: Side
    right: Side
    product: Operation
    accumulator: Type

    @property
    def exchanged(self) -> Contraction:
        """The same with the other factor as its left one."""
        return attrs.evolve(
            self, rows=self.columns, columns=self.rows, left=self.right, right=self.left
        )


def is_zero(constant: arith.ConstantOp) -> bool:
    """Whether a constant is the number zero, without a sign."""
    value = constant.value
    return isinstance(value, A.IntegerAttr | A.FloatAttr) and not value.value and (
        math.copysign(1.0, value.value) > 0
    )  # fmt: skip


def contraction_of(compute: loop.ComputeOp) -> Contraction | str:
    """What a compute is as a contraction, or why it is none."""
    outputs = compute.output_list
    if len(outputs) != 1 or (outputs[0].kind, outputs[0].combiner) != ("reduce", "sum"):
        return "it is not one sum"
    product = compute.yield_op.values[0].defining_op
    if not isinstance(product, arith.MulFOp | arith.MulIOp) or product.parent is not compute.block:
        return "what it sums is no product"
    assert outputs[0].accumulator is not None
    depends = axes_of_values(compute)
    first, second = (_side(compute, value, depends) for value in product.operands)
    axes = compute.axis_list
    red = [a for a in axes if a.kind == "red"]
    for axis in axes:
        ours = (axis.name in first.axes, axis.name in second.axes)
        if axis.extent == 1 and ours == (False, False):
            continue
        if ours == (False, False):
            return f"no factor depends on {axis.name}"
        if axis.kind == "red" and ours != (True, True) and axis.extent != 1:
            return f"one factor alone depends on {axis.name}, which is summed over"
    if not red:
        return "it sums over no axis"
    own = [a.name for a in axes if (a.name in first.axes) != (a.name in second.axes)]
    turned = any(name in first.axes for name in own) and own[0] not in first.axes
    left, right = (second, first) if turned else (first, second)
    par = [a for a in axes if a.kind == "par"]
    return Contraction(
        compute,
        tuple(a for a in par if (a.name in left.axes) == (a.name in right.axes)),
        tuple(a for a in par if a.name in left.axes and a.name not in right.axes),
        tuple(a for a in par if a.name in right.axes and a.name not in left.axes),
        tuple(red),
        left,
        right,
        product,
        outputs[0].accumulator,
    )


def axes_of_values(compute: loop.ComputeOp) -> dict[Value, frozenset[str]]:
    """The names of the compute's axes that each scalar of its body depends on."""
    names = frozenset(compute.local_symbols())
    depends: dict[Value, frozenset[str]] = {}
    for op in compute.block.ops:
        axes = frozenset[str]().union(*(depends.get(o, frozenset()) for o in op.operands))
        if isinstance(op, loop.ReadOp):
            for index in op.indices:
                axes |= free_symbols(index) & names
        elif isinstance(op, loop.IndexOp):
            axes |= free_symbols(op.expression) & names
        for result in op.results:
            depends[result] = axes
    return depends


def _side(
    compute: loop.ComputeOp, value: Value, depends: Mapping[Value, frozenset[str]]
) -> Side:
    """All that a scalar of the body is made of."""
    needed, stack = set[Operation](), [value]
    while stack:
        maker = stack.pop().defining_op
        if maker is not None and maker.parent is compute.block and maker not in needed:
            needed.add(maker)
            stack += maker.operands
    ops = tuple(op for op in compute.block.ops if op in needed)
    return Side(value, depends.get(value, frozenset()), ops)


# -- those whose kernels multiply tiles


def tiled(op: Operation | None, target: Target) -> Contraction | None:
    """The contraction that an operation is, if its kernel is to multiply tiles: each element of a
    factor meets several of the other, and there are many. What fuses computes leaves one like this:
    one sum, over its own axes. One with entries of a schedule is meant to be."""
    if not isinstance(op, loop.ComputeOp):
        return None
    outputs = op.output_list
    if len(outputs) != 1 or outputs[0].combiner != "sum" or outputs[0].kind != "reduce":
        return None
    least = target.processor
    if op.schedule is None and points(a.extent for a in op.axis_list) < least.tiled_products:
        return None
    contraction = contraction_of(op)
    if isinstance(contraction, str) or op.schedule is not None:
        return None if isinstance(contraction, str) else contraction
    sizes = (points(a.extent for a in axes) for axes in (contraction.rows, contraction.columns))
    sums = points(a.extent for a in op.axis_list if a.kind == "par")
    return contraction if sums >= least.tiled_sums and min(sizes) > 1 else None


def grouped(element: Type, target: Target) -> LaneDot | None:
    """How a CPU's vectors multiply and add up groups of terms of an element, where that takes no
    more time than one term after the other in wider elements; None for that."""
    features = target.features
    dot = lane_dot_of(element, features.architecture, features.sets)
    return None if dot is None or group_time(dot, target) > dot.group else dot


def group_time(dot: LaneDot, target: Target) -> float:
    """What a vector's groups take, of its multiplications one by one."""
    return target.features.pairs_time if dot.group == 2 else 1.0


def follows_tiles(
    op: Operation, target: Target, sources: Iterable[Value] | None = None
) -> bool:
    """Whether a compute is a map that can be computed with the sums of a contraction whose kernel
    multiplies tiles: over all of its sums, in any order of axes (`rows-first` gives it theirs), of
    which it needs no other. sources: what it reads, if its own reads aren't all."""
    if not is_map(op):
        return False
    assert isinstance(op, loop.ComputeOp)
    extents = Counter(axis.extent for axis in op.axis_list)
    read = {read.source for read in op.reads} if sources is None else set(sources)
    for source in read:
        maker, type_ = source.defining_op, source.type
        if not isinstance(type_, TensorType) or Counter(type_.shape) != extents:
            continue
        if tiled(maker, target) is not None:
            others = (other.defining_op for other in read - {source})
            return not any(_needs(other, maker, _DEEP) for other in others)
    return False


#: How many computes behind each other are looked through for a row's maximum, say, of the sums.
_DEEP = 3


def _needs(op: Operation | None, maker: Operation | None, deep: int) -> bool:
    """Whether a compute needs what another one makes, as far as that is looked at."""
    if op is maker or not deep or not isinstance(op, loop.ComputeOp):
        return op is maker
    return any(_needs(read.source.defining_op, maker, deep - 1) for read in op.reads)


def times_evaluated(read: loop.ReadOp, target: Target) -> int | None:
    """How often what stands at a read is evaluated where that is a factor of tiles: each element of
    the factor once for each tile of the other side. None elsewhere."""
    contraction = tiled(read.parent_op, target)
    if contraction is None:
        return None
    sides = [side for side in (contraction.left, contraction.right) if read in side.ops]
    count = 0
    for side in sides:
        axes = contraction.compute.axis_list
        own = points(a.extent for a in axes if a.name in side.axes)
        other = points(a.extent for a in axes if a.name not in side.axes)
        count += own * -(-other // target.processor.factor_tile)
    return count
