"""The pass `round-stores`."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import arith, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, OpResult, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import symbol
from irc.ir.types import FloatType, TensorType
from irc.passes.common.bodies import Body, axis_name, make_compute
from irc.passes.loop.grouping import group_members

Kernel = loop.ComputeOp | loop.GroupOp


@register_pass
class RoundStores(Pass):
    """Narrows floats where they are made that all who read them narrow alike.

    A rounding is inlined into its readers, as it costs less than an array of its own. Where what is
    rounded is stored all the same, as sums of a contraction that shares no kernel with its readers
    and maxima of a pooling are, the array is narrow then: half as much is written and read, and a
    contraction finds factors of 16 bits where they lie. The values are the same.

    Before:
        %m = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) { ... }
        %y = loop.compute par(i0: 4, i1: 3) -> map {
          %a = loop.read %m[i0] : f32  %b = arith.truncf %a : f32 to bf16 ... }
    After:
        %m = loop.group (i0: 4) {
          %s = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) { ... }
          %n = loop.compute par(i0: 4) -> map {
            %a = loop.read %s[i0] : f32  %b = arith.truncf %a : f32 to bf16 loop.yield %b }
          loop.yield %n }
        %y = loop.compute par(i0: 4, i1: 3) -> map { %b = loop.read %m[i0] : bf16 ... }
    """

    name = "round-stores"
    summary = "store floats as narrow as all their readers take them"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        for maker in list(op.regions[0].blocks[0].ops):
            if isinstance(maker, loop.ComputeOp | loop.GroupOp):
                for array in list(maker.results):
                    narrowings = _narrowings(array)
                    computed = _computed(array)
                    if not narrowings or computed is None:
                        continue
                    if context.spend("round-stores", maker):
                        _store_narrow(array, computed, narrowings)
                        context.count("narrowed")


def _narrowings(array: Value) -> list[Operation]:
    """What narrows the elements of an array, where all that read it narrow them alike; else
    nothing."""
    narrowings = list[Operation]()
    for read in array.users:
        if not isinstance(read, loop.ReadOp) or read.other is not None or not read.value.has_uses:
            return []
        for user in read.value.users:
            if not isinstance(user, arith.TruncFOp):
                return []
            narrowings.append(user)
    alike = {(each.results[0].type, each.attributes.get("roundingmode")) for each in narrowings}
    return narrowings if len(alike) == 1 else []


def _computed(array: Value) -> Value | None:
    """The result of a compute that a kernel's array is, of floats, whose elements are those of the
    points of its parallel axes, in order; None where it is another."""
    value, maker = array, array.defining_op
    if isinstance(maker, loop.GroupOp):
        assert isinstance(array, OpResult)
        value = maker.yield_op.values[maker.results.index(array)]
        maker = value.defining_op
    type_, number = value.type, _output(value)
    if number is None or not isinstance(type_, TensorType):
        return None
    assert isinstance(maker, loop.ComputeOp)
    extents = tuple(axis.extent for axis in maker.axis_list if axis.kind == "par")
    whole = maker.output_list[number].kind in ("map", "reduce") and extents == tuple(type_.shape)
    if value is array and maker.output_list[number] is not loop.MAP:
        # A group is made of it, which shares its leading axes.
        leading = maker.axis_list[: len(extents)]
        whole &= all(a.kind == "par" and a.name == axis_name(k) for k, a in enumerate(leading))
    return value if whole and isinstance(type_.element, FloatType) else None


def _output(value: Value) -> int | None:
    """Which output of its compute a value is; None where it is none, or one of several results."""
    maker = value.defining_op
    if not isinstance(maker, loop.ComputeOp):
        return None
    every = range(len(maker.output_list))
    return next((n for n in every if tuple(maker.results_of(n)) == (value,)), None)


def _store_narrow(
    array: Value, computed: Value, narrowings: Sequence[Operation]
) -> None:
    """Have an array narrow. computed: it, or what its group makes of it."""
    kernel, maker, narrow = array.defining_op, computed.defining_op, narrowings[0].results[0].type
    assert isinstance(kernel, Kernel) and isinstance(maker, loop.ComputeOp)
    reads = [read for read in array.users if isinstance(read, loop.ReadOp)]
    number = _output(computed)
    assert number is not None
    if maker.output_list[number] is loop.MAP and (computed is array or computed.use_count == 1):
        _round_inside(maker, number, computed, narrowings[0])
        array.type = computed.type
    elif isinstance(kernel, loop.GroupOp):
        rounded = _rounding(computed, narrowings[0])
        assert isinstance(array, OpResult)
        kernel.yield_op.set_operand(kernel.results.index(array), rounded)
        array.type = rounded.type
    else:
        rounded = _rounding(computed, narrowings[0])
        for read in reads:
            read.set_operand(0, rounded)
        added = rounded.defining_op
        assert added is not None
        extents = tuple(axis.extent for axis in maker.axis_list if axis.kind == "par")
        group_members([kernel, added], {kernel: extents, added: extents})
    for read in reads:
        read.value.type = narrow
    for narrowing in narrowings:
        narrowing.results[0].replace_all_uses_with(narrowing.operands[0])
        narrowing.erase()


def _round_inside(
    maker: loop.ComputeOp, number: int, computed: Value, like: Operation
) -> None:
    """Have a map yield narrow values."""
    narrow, old = like.results[0].type, computed.type
    assert isinstance(old, TensorType)
    body = Body(maker.block, maker.yield_op)
    body.location = maker.location
    value = body.add(
        arith.TruncFOp, (maker.yield_op.values[number],), narrow, dict(like.attributes)
    )
    maker.yield_op.set_operand(number, value)
    computed.type = old.with_element(narrow)


def _rounding(computed: Value, like: Operation) -> Value:
    """The result of a map, behind what computes an array, that narrows it."""
    maker, old, narrow = computed.defining_op, computed.type, like.results[0].type
    assert isinstance(maker, loop.ComputeOp) and isinstance(old, TensorType)
    axes = [axis for axis in maker.axis_list if axis.kind == "par"]
    body = Body()
    body.location = maker.location
    value = body.read(computed, [symbol(axis.name) for axis in axes])
    body.finish([body.add(arith.TruncFOp, (value,), narrow, dict(like.attributes))])
    narrowing = make_compute(
        Builder.after(maker), A.ArrayAttr(axes), [loop.MAP], [old.with_element(narrow)],
        body, (), maker,
    )  # fmt: skip
    narrowing.results[0].name_hint = computed.name_hint
    return narrowing.results[0]


__all__ = ["RoundStores"]
