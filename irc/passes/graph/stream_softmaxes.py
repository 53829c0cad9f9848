"""The pass `stream-softmaxes`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from irc.analysis.streams import FEWEST, LONGEST
from irc.dialects import graph
from irc.dialects.graph.canonical import full_value
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.pointwise import PointwiseOp
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import bf16, element_bytes, f16, f32
from irc.passes.graph.contractions.products import cast, dot_general, spread
from irc.target import Target, target_of

PRODUCT = "aten.bmm.default"
ELEMENTWISE = PointwiseOp, graph.Cast, graph.Select


class NotStreamed(Exception):
    """Why something is no softmax between two products. told: it is one, and a user may want to
    know."""

    def __init__(self, reason: str, told: bool = False) -> None:
        super().__init__(reason)
        self.told = told


@attrs.frozen(eq=False)
class Softmax:
    """A softmax that a product multiplies with: what it is of, and the values between, which go
    with it. safe: a row of -inf alone is 0, not NaN."""

    source: Value
    call: graph.CallAten
    between: frozenset[Operation]
    safe: bool


# bmm(cast(exp(x - m) / sum(exp(x - m))), v) -> dot(cast(exp(x - m)), v) / sum(exp(x - m))
@pattern(graph.CallAten, name="graph.stream_softmax", counted="streamed")
def stream(call: graph.CallAten, rw: Any) -> Any:
    if call.callee != PRODUCT:
        return rw.no_match("it is no product of a batch")
    try:
        softmax = softmax_of(call)
        rows = RowResults.of(softmax.source)
        scores = scores_of(softmax, rows)
        check(call, scores, softmax, rw.state)
    except NotStreamed as reason:
        if not reason.told:
            return rw.no_match(str(reason))
        return rw.decline(f"attention is not streamed: {reason}")
    rw.remark("attention is streamed: no row of its scores is ever in memory")
    rw.replace(call, [streamed(call, scores, softmax, rows, rw)])
    return True


def softmax_of(call: graph.CallAten) -> Softmax:
    """The softmax that a product's first factor is, with all that nothing else reads. Raises
    NotStreamed."""
    value, between, safe = call.operands[0], set[Operation](), None
    while True:
        op = value.defining_op
        if isinstance(op, graph.Reshape | graph.Cast):
            between.add(op)
            value = op.operands[0]
        elif isinstance(op, graph.Select) and safe is None and full_value(op.on_true) == 0:
            safe, value = op.condition, op.on_false
            between.add(op)
        else:
            break
    if not isinstance(op, graph.Div):
        raise NotStreamed("its factor is no softmax")
    power, total = op.operands[0].defining_op, unspread(op.operands[1])
    if not isinstance(power, graph.Exp) or not isinstance(total, graph.Reduce):
        raise NotStreamed("its factor is no softmax")
    gap = power.operands[0].defining_op
    maximum = unspread(gap.operands[1]) if isinstance(gap, graph.Sub) else None
    last = tensor_type(op.results[0]).rank - 1
    source = None if gap is None else gap.operands[0]
    pairs = ((total, "sum", power.results[0]), (maximum, "max", source))
    for reduction, combiner, combined in pairs:
        if not isinstance(reduction, graph.Reduce) or (
            (reduction.combiner, reduction.operands[0], tuple(reduction.dims))
            != (combiner, combined, (last,))
        ):  # fmt: skip
            raise NotStreamed("its factor is no softmax of its last dimension")
    assert gap is not None and source is not None and isinstance(maximum, graph.Reduce)
    between |= {op, power, total, gap, maximum}
    between |= {each.defining_op for each in (op.operands[1], gap.operands[1])
                if isinstance(each.defining_op, graph.Broadcast)}  # fmt: skip
    if safe is not None:
        between |= _emptiness(safe, source)
    return Softmax(source, call, frozenset(between), safe is not None)


def unspread(value: Value) -> Operation | None:
    """What makes a value, before it was broadcast."""
    op = value.defining_op
    return op.operands[0].defining_op if isinstance(op, graph.Broadcast) else op


def _emptiness(condition: Value, source: Value) -> set[Operation]:
    """The operations of a condition that a row is -inf alone. Raises NotStreamed."""
    ops, op = set[Operation](), condition.defining_op
    while isinstance(op, graph.Broadcast | graph.Reshape):
        ops.add(op)
        op = op.operands[0].defining_op
    last = tensor_type(source).rank - 1
    every = op if isinstance(op, graph.Reduce) and op.combiner == "all" else None
    equal = None if every is None else every.operands[0].defining_op
    if every is None or tuple(every.dims) != (last,) or not isinstance(equal, graph.Eq):
        raise NotStreamed("a selection stands between it and its softmax")
    if equal.operands[0] is not source or full_value(equal.operands[1]) != -math.inf:
        raise NotStreamed("a selection stands between it and its softmax")
    return ops | {every, equal}


@attrs.frozen(eq=False)
class RowResults:
    """What else is known of each row of scores, of which the maximum and the sum of powers below it
    are enough: maxima, whether all are -inf, and sums of powers (with what their maximum is where
    it is infinite: 0 or itself); and the operations between."""

    maxima: tuple[Operation, ...]
    empty: tuple[Operation, ...]
    totals: tuple[tuple[Operation, bool], ...]
    between: frozenset[Operation]

    @staticmethod
    def of(source: Value) -> RowResults:
        """Those of scores."""
        last = tensor_type(source).rank - 1
        maxima = [u for u in source.users if _is_reduced(u, "max", last)]
        empty, totals = list[Operation](), list[tuple[Operation, bool]]()
        between = set[Operation]()
        for user in source.users:
            if isinstance(user, graph.Eq) and user.operands[0] is source and (
                full_value(user.operands[1]) == -math.inf
            ):  # fmt: skip
                between.add(user)
                empty += [u for u in user.results[0].users if _is_reduced(u, "all", last)]
            power = _only_user(user) if isinstance(user, graph.Sub) else None
            guard = _guard(user, maxima) if isinstance(power, graph.Exp) else None
            if power is not None and guard is not None:
                between |= {user, power}
                sums = [u for u in power.results[0].users if _is_reduced(u, "sum", last)]
                totals += [(u, guard) for u in sums]
        replaced = {*maxima, *empty, *(total for total, _ in totals)}
        return RowResults(tuple(maxima), tuple(empty), tuple(totals), frozenset(between | replaced))

    def replace(self, rw: Any, maximum: Value, total: Value, builder: Builder) -> None:
        """Put what they are of a maximum and a sum of powers, with a dimension of 1, in their
        place."""
        pairs = list[tuple[Operation, Value]]()

        def put(reduction: Operation, value: Value) -> None:
            shape = tensor_type(reduction.results[0]).shape
            pairs.append((reduction, shaped(builder, value, shape)))

        for reduction in self.maxima:
            put(reduction, maximum)
        if self.empty:
            lowest: Value = builder.value(graph.Eq, maximum, full(builder, maximum, -math.inf))
            for reduction in self.empty:
                put(reduction, lowest)
        infinite = full(builder, total, math.inf)
        for reduction, guarded in self.totals:
            value = total
            if guarded:  # of an infinite element it is infinite, of NaN NaN
                above: Value = builder.value(graph.Eq, maximum, infinite)
                value = builder.value(graph.Select, above, infinite, total)
            put(reduction, value)
        for reduction, value in pairs:
            rw.replace(reduction, [value])


def _is_reduced(op: Operation, combiner: str, dim: int) -> bool:
    return isinstance(op, graph.Reduce) and (op.combiner, tuple(op.dims)) == (combiner, (dim,))


def _only_user(op: Operation) -> Operation | None:
    """The operation that alone uses a result, in one place."""
    users = list(op.results[0].users)
    return users[0] if len(users) == 1 else None


def _guard(gap: Operation, maxima: Sequence[Operation]) -> bool | None:
    """Whether a row's maximum, which is subtracted, is 0 where it is infinite; None for another
    difference."""
    top = unspread(gap.operands[1])
    guarded = False
    if isinstance(top, graph.Select) and full_value(top.on_true) == 0:
        infinite = top.condition.defining_op
        guarded = isinstance(infinite, graph.Isinf) and infinite.operands[0] is top.on_false
        top = top.on_false.defining_op if guarded else None
    return guarded if top in maxima and gap.operands[1].defining_op is not top else None


def scores_of(softmax: Softmax, rows: RowResults) -> graph.CallAten:
    """The product that the softmax is of a function of, element by element, where nothing else
    reads what stands between. Raises NotStreamed."""
    if tensor_type(softmax.source).rank < 3:
        raise NotStreamed("its softmax is of no batch")
    products, inside = products_of(softmax.source)
    if len(products) != 1:
        raise NotStreamed("its softmax is of several products, or of none", told=bool(products))
    (product,) = products
    reached = reached_from(products, inside)
    known = softmax.between | rows.between
    for op in reached:
        for user in op.results[0].users:
            if user not in reached and user not in known:
                raise NotStreamed("its scores are read elsewhere, too", told=True)
    replaced = {*rows.maxima, *rows.empty, *(total for total, _ in rows.totals)}
    for op in known - replaced:
        for user in op.results[0].users:
            if user not in known and user is not softmax.call:
                raise NotStreamed("its probabilities are read elsewhere, too", told=True)
    return product


def products_of(value: Value) -> tuple[list[graph.CallAten], set[Operation]]:
    """The products that a value is a function of, element by element, with these and what is
    between."""
    shape, inside = tensor_type(value).shape, set[Operation]()
    products, pending = dict[graph.CallAten, None](), [value]
    while pending:
        op = pending.pop().defining_op
        if op is None or op in inside:
            continue
        if isinstance(op, ELEMENTWISE) and tensor_type(op.results[0]).shape == shape:
            inside.add(op)
            pending += op.operands
            continue
        call: Any = op.operands[0].defining_op if isinstance(op, graph.Reshape) else op
        if isinstance(call, graph.CallAten) and call.callee == PRODUCT:
            first = tensor_type(call.results[0]).shape
            if first[1:] == tuple(shape[-2:]) and dim_product(shape[:-2]) == first[0]:
                products[call] = None
                inside |= {op, call}
    return list(products), inside


def reached_from(products: Iterable[Operation], inside: set[Operation]) -> set[Operation]:
    """The operations of some that depend on products, with these."""
    reached = set(products)
    pending = list(reached)
    while pending:
        for user in pending.pop().results[0].users:
            if user in inside and user not in reached:
                reached.add(user)
                pending.append(user)
    return reached


def check(
    call: graph.CallAten, scores: graph.CallAten, softmax: Softmax, target: Target
) -> None:
    """Raises NotStreamed for what no tile has room for, or what wouldn't fill one."""
    shape = tensor_type(softmax.source).shape
    columns = shape[-1]
    value = tensor_type(call.operands[1])
    if tensor_type(call.operands[0]).shape != tensor_type(scores.results[0]).shape:
        raise NotStreamed("the probabilities' dimensions are moved before the product", told=True)
    sizes = (tensor_type(scores.operands[0]).shape[2], value.shape[2])
    if not all(isinstance(size, int) and 0 < size <= LONGEST for size in sizes):
        raise NotStreamed(f"heads of {sizes} elements have no room in a tile", told=True)
    if isinstance(columns, int) and columns < FEWEST:
        raise NotStreamed(f"{columns} keys don't fill a tile", told=True)
    reason = unsuitable((*scores.operands[:2], *call.operands[:2]), target)
    if reason:
        raise NotStreamed(f"it is {reason}", told=True)
    reason = "" if target.is_gpu else near(shape, target)
    if reason:
        raise NotStreamed(reason)


def unsuitable(factors: Iterable[Value], target: Target) -> str:
    """Why kernels of streamed products have no form for factors; "" if they have one."""
    if target.is_gpu:
        return "" if sixteen_bits(factors) else "not of 16-bit floats"
    narrow = {narrow_element(value) for value in factors}
    return "" if len(narrow) == 1 and narrow <= {f32, bf16, f16} else "not of floats of 32 bits"


def near(shape: Sequence[Dim], target: Target) -> str:
    """Why an array of scores is as good on a CPU; "" where it isn't."""
    scores, (rows, columns) = dim_product(shape), shape[-2:]
    least = target.lanes(f32)
    if isinstance(scores, int) and 4 * scores <= target.processor.core_bytes:
        return "its scores stay in the second-level cache"
    if any(isinstance(size, int) and size < least for size in (rows, columns)):
        return f"{rows} rows and {columns} columns don't fill a vector"
    return ""


def sixteen_bits(factors: Iterable[Value]) -> bool:
    """Whether factors are all of one type of 16-bit floats, before they were widened."""
    narrow = {narrow_element(value) for value in factors}
    return narrow <= {bf16, f16} and len(narrow) == 1


def narrow_element(value: Value) -> Type:
    """The element type of a value before it was widened."""
    op, element = value.defining_op, tensor_type(value).element
    while isinstance(op, graph.Reshape | graph.Permute | graph.Broadcast | graph.Cast):
        if isinstance(op, graph.Cast):
            source = tensor_type(op.operands[0]).element
            return source if element_bytes(source) < element_bytes(element) else element
        op = op.operands[0].defining_op
    return element


def streamed(
    call: graph.CallAten, scores: graph.CallAten, softmax: Softmax, rows: RowResults, rw: Any
) -> Value:
    """The product's result, of powers that are summed up on the way."""
    batch = tensor_type(softmax.source).shape[:-2]
    before = rw.before(scores)
    left, right = scores.operands[:2]
    sums = product(before, batch, left, right, rw.state)
    type_ = tensor_type(scores.results[0])
    rw.replace(scores, [shaped(before, cast(before, sums, type_.element), type_.shape)])

    builder = Builder.after(softmax.source.defining_op)  # type: ignore[arg-type]
    powers = Powers.of(builder, cast(builder, softmax.source, f32))
    rows.replace(rw, powers.maximum, powers.total, builder)
    quotient = powers.times(rw.builder, call.operands[1], softmax.safe, rw.state)
    type_ = tensor_type(call.results[0])
    return shaped(rw.builder, cast(rw.builder, quotient, type_.element), type_.shape)


@attrs.frozen(eq=False)
class Powers:
    """The powers of scores below their row's maximum, and what is known of each row: the maximum,
    and the sum of the powers."""

    maximum: Value
    power: Value
    total: Value

    @staticmethod
    def of(builder: Builder, source: Value) -> Powers:
        """Those of scores in f32."""
        shape = tensor_type(source).shape
        last, dims = len(shape) - 1, list(range(len(shape)))
        maximum = reduced(builder, source, "max", last)
        lowest: Value = builder.value(graph.Eq, maximum, full(builder, maximum, -math.inf))
        top: Value = builder.value(graph.Select, lowest, full(builder, maximum, 0.0), maximum)
        top = spread(builder, top, shape, dims)
        gap: Value = builder.value(graph.Sub, source, top)
        power: Value = builder.value(graph.Exp, gap, nonpositive=A.UNIT)
        return Powers(maximum, power, reduced(builder, power, "sum", last))

    def times(self, builder: Builder, values: Value, safe: bool, target: Target) -> Value:
        """Their products with values, divided by the sums; safe: 0 where there is no power."""
        batch = tensor_type(self.power).shape[:-2]
        narrow = cast(builder, self.power, narrow_element(values))
        result = product(builder, batch, narrow, values, target)
        wide, dims = tensor_type(result).shape, list(range(len(batch) + 2))
        sums = spread(builder, self.total, wide, dims)
        quotient: Value = builder.value(graph.Div, result, sums)
        if safe:
            nothing: Value = builder.value(graph.Eq, self.total, full(builder, self.total, 0.0))
            nothing = spread(builder, nothing, wide, dims)
            zero = full(builder, quotient, 0.0)
            quotient = builder.value(graph.Select, nothing, zero, quotient)
        return quotient


def product(
    builder: Builder, batch: Sequence[Dim], left: Value, right: Value, target: Target
) -> Value:
    """A product of irc's own of two values, with the dimensions of a batch."""

    def factor(value: Value) -> Value:
        shape = (*batch, *tensor_type(value).shape[-2:])
        return shaped(builder, cast(builder, value, narrow_element(value)), shape)

    dims = range(len(batch))
    return dot_general(
        builder, factor(left), factor(right), f32, batch=(dims, dims),
        depth=([len(batch) + 1], [len(batch)]),
        schedule=ScheduleAttr("gpu" if target.is_gpu else "cpu", A.DictAttr({})),
    )  # fmt: skip


def reduced(builder: Builder, value: Value, combiner: str, dim: int) -> Value:
    """A value combined along a dimension, which stays, with one element."""
    combined: Value = builder.value(
        graph.Reduce, value, combiner=combiner, dims=[dim], keepdim=A.UNIT
    )
    return combined


def full(builder: Builder, like: Value, number: float) -> Value:
    """A number in the shape of a value."""
    type_ = tensor_type(like)
    attribute = graph.scalar_attribute(number, type_.element)
    value: Value = builder.value(graph.Full, value=attribute, result_types=type_)
    return value


def shaped(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """A value with other sizes."""
    type_ = tensor_type(value)
    if type_.shape == tuple(shape):
        return value
    view: Value = builder.value(graph.Reshape, value, result_types=type_.with_shape(shape))
    return view


@register_pass
class StreamSoftmaxes(PatternPass):
    """Lets a product with a softmax sum up powers, and divide its sums behind.

    The softmax of a function of a product's scores, element by element (scaled, masked, capped,
    with biases of a place), times values: as written, scores and probabilities are arrays of all
    queries by all keys. Divided behind the second product, the probabilities are powers below the
    row's maximum, which can be summed up while keys go by, so that one kernel computes both products
    and has a tile of scores at a time (`stream-products` groups them). Both products are irc's then.
    A row whose scores are all -inf is NaN as written, or 0 where a selection says so. Of 16-bit
    floats on a GPU, with heads of at most 256 elements, where nothing else reads the scores or the
    probabilities; what `fuse-attention` and torch's frontend made the library's operator stays that.

    Before:
        %s = graph.call_aten %q, %k {callee = "aten.bmm.default", ...} : ...
        %e = graph.exp %gap : ...                     // of %s less its row's maximum
        %p = graph.div %e, %sum : ...
        %y = graph.call_aten %p16, %v {callee = "aten.bmm.default", ...} : ...
    After:
        %s = graph.dot_general %q, %k {schedule = #loop.schedule<gpu>, ...} : ...
        %e = graph.exp %gap : ...
        %o = graph.dot_general %e16, %v {schedule = #loop.schedule<gpu>, ...} : ...
        %y = graph.div %o, %sum : ...
    """  # noqa: E501

    name = "stream-softmaxes"
    summary = "divide by a softmax's sums behind the product that it is a factor of"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    patterns = (stream,)

    def prepare(self, op: Operation, context: PassContext) -> Any:
        return target_of(context)


__all__ = ["StreamSoftmaxes"]
