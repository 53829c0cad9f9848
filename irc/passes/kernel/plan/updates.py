"""Scatters: what they start from, and which points may be computed in any order.

A kernel that scatters combines into memory that holds what it starts from (`initialized`). Its
copying variant (`copying` of `kernel.func`) fills that memory itself, for launches whose result
gets memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from types import MappingProxyType

from irc.analysis.positions import placeholders_of
from irc.dialects import arith, graph, loop
from irc.ir import attributes as A
from irc.ir.core import Region, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Expr,
    Mod,
    Range,
    Symbol,
    coefficient,
    dim_sum,
    free_symbols,
    provable_le,
    range_of,
    simplify,
    substitute,
    symbol,
    terms_of,
)
from irc.ir.types import TensorType

NO_LIMITS: Mapping[Dim, Dim] = MappingProxyType({})


def is_undefined(init: Value) -> bool:
    """Whether nobody says what an array holds that a scatter starts from: nothing is copied, and
    what isn't scattered to is anything."""
    return isinstance(init.defining_op, graph.Undefined)


def goes_on(init: Value) -> bool:
    """Whether a scatter that starts from an array goes on with what another one began: it alone
    reads what that gives, which can be one memory then."""
    before = init.defining_op
    if not isinstance(before, loop.ComputeOp) or len(list(init.users)) != 1:
        return False
    scattered = [before.results_of(number) for number, _ in scatters_of(before)]
    return any(init in results for results in scattered)


def scatters_of(op: loop.ComputeOp) -> list[tuple[int, Value]]:
    """The number of each scatter output of a compute, and the array that it starts from."""
    numbers = [k for k, output in enumerate(op.output_list) if output.kind == "scatter"]
    return list(zip(numbers, op.inits, strict=True))


def scatters_of_group(
    computes: Sequence[loop.ComputeOp], placed: Container[Value]
) -> list[tuple[Value, Value]]:
    """Pairs of what a member of a group gives and of what another one makes of it, which are one
    array, those last in the group first. placed: arrays that have memory of the caller's.

    Raises InvalidIR for scatters whose points have an order, or that combine with what is there.
    """
    pairs, places = list[tuple[Value, Value]](), set[Value]()
    for compute in reversed(computes):
        for number, init in scatters_of(compute):
            (result,) = compute.results_of(number)
            starts = is_undefined(init)
            if init.defining_op in computes and goes_on(init) and init not in placed:
                starts = init.type is result.type and (result in placed or result in places)
                starts = starts and _writes_elsewhere(compute, number, init)
                pairs.append((init, result))
                places.add(init)
            if not (starts and writes_apart(compute, number)):
                raise InvalidIR("in a group, a kernel for a cpu scatters to a new array, each "
                                "point to an element of its own", op=compute)  # fmt: skip
    return pairs


def _writes_elsewhere(op: loop.ComputeOp, number: int, init: Value) -> bool:
    """Whether a scatter writes no element that those before it wrote, from which `init` comes, so
    that each point may do all of them before the next point begins any."""
    own = _index_ranges(op, number)
    while isinstance(before := init.defining_op, loop.ComputeOp):
        (other,) = [(k, start) for k, start in scatters_of(before) if init in before.results_of(k)]
        pairs = zip(own, _index_ranges(before, other[0]), strict=True)
        if not any(_ends_before(a, b) or _ends_before(b, a) for a, b in pairs):
            return False
        init = other[1]
    return True


def _index_ranges(op: loop.ComputeOp, number: int) -> list[Range]:
    """What each index of a scatter may be, as far as the axes say it."""
    ranges = {}
    for axis in op.axis_list:
        last = range_of(axis.extent).hi
        ranges[axis.name] = Range(0, None if last is None else max(last - 1, 0))
    return [range_of(index, ranges) if free_symbols(index) <= ranges.keys() else Range()
            for index in op.output_list[number].index_dims]  # fmt: skip


def _ends_before(first: Range, second: Range) -> bool:
    return first.hi is not None and second.lo is not None and first.hi < second.lo


def may_be_one_memory(op: loop.ComputeOp, number: int, init: Value) -> bool:
    """Whether scatter output `number` may be computed in the memory of `init` itself: each point
    reads of it at most what it alone writes. Whether it is, `bufferize` decides."""
    (result,) = op.results_of(number)
    if init.type is not result.type or sum(v is init for v in op.inits) > 1:
        return False
    return _reads_only_what_it_writes(op, number, init)


def _reads_only_what_it_writes(op: loop.ComputeOp, number: int, init: Value) -> bool:
    """Whether each point reads of `init` at most the element that it alone writes."""
    mine = [read for read in op.reads if read.source is init]
    if not mine:
        return True
    if not writes_apart(op, number):
        return False
    written = _points(op, op.output_list[number].index_dims)
    return all(_points(op, read.indices) == written for read in mine)


def writes_apart(op: loop.ComputeOp, number: int) -> bool:
    """Whether every point of a compute scatters to an element of its own: for each axis some index
    steps along it and along no other, or the indices tell the axes where its mask holds; none is
    read from memory."""
    indices = op.output_list[number].index_dims
    if placeholders_of(*indices):
        return False
    axes = {a.name for a in op.axis_list if a.extent != 1}
    if all(any(_steps_along(d, name, axes) for d in indices) for name in axes):
        return True
    return tell_axes(indices, {a.name: a.extent for a in op.axis_list}, _limits(op, number))


def _limits(op: loop.ComputeOp, number: int) -> dict[Dim, Dim]:
    """What places are below where a scatter's mask holds, by place."""
    if not op.yield_op.masks:
        return {}
    scatters = [k for k, output in enumerate(op.output_list) if output.kind == "scatter"]
    limits, stack = dict[Dim, Dim](), [op.yield_op.masks[scatters.index(number)]]
    while stack:
        maker = stack.pop().defining_op
        if isinstance(maker, arith.AndIOp):
            stack += maker.operands
        elif isinstance(maker, arith.CmpIOp) and maker.predicate == "slt":
            place, limit = (_dim_of(side) for side in maker.operands)
            if place is not None and limit is not None:
                limits[place] = limit
    return limits


def _dim_of(value: Value) -> Dim | None:
    """The place or number that a scalar is."""
    maker = value.defining_op
    if isinstance(maker, arith.ConstantOp) and isinstance(maker.value, A.IntegerAttr):
        return maker.value.value
    if isinstance(maker, loop.IndexOp) and not maker.positions:
        return maker.expression
    return None


def tell_axes(
    indices: Iterable[Dim], extents: Mapping[str, Dim], limits: Mapping[Dim, Dim] = NO_LIMITS
) -> bool:
    """Whether no two points of axes have the same indices: from what is known, more is found until
    nothing new is. Of 4*i + j with j < 4, both i and j; of a mod m and a floordiv m, a. limits:
    what some expressions are below at the points that count."""
    units: dict[str, Dim] = {name: 0 for name, extent in extents.items() if extent == 1}
    names = extents.keys() - units.keys()
    below = {substitute(d, units): limit for d, limit in limits.items()}
    without = [substitute(d, units) for d in indices]
    known = {*without, *(simplify(d, {}, extents) for d in without)}
    count = -1
    while count != len(known):
        count = len(known)
        for expression in list(known):
            known.update(_parts_of(expression, known, extents))
            known.update(_parts_below(expression, extents, below))
    return names <= {d.name for d in known if isinstance(d, Symbol)}


def _parts_below(
    expression: Dim, extents: Mapping[str, Dim], limits: Mapping[Dim, Dim]
) -> list[Dim]:
    """What an expression that is known tells as the sum of one with a limit and of multiples of no
    less than that."""
    parts: list[Dim] = []
    for inner, limit in limits.items():
        outer = expression - inner
        terms, constant = terms_of(outer)
        if constant or not terms or free_symbols(outer) & free_symbols(inner):
            continue
        step = math.gcd(*(scale for _, scale in terms))
        if provable_le(limit, step, extents=extents) and provable_le(0, inner, extents=extents):
            parts += [outer, inner]
    return [part for part in parts if isinstance(part, Expr)]


def _parts_of(expression: Dim, known: Collection[Dim], extents: Mapping[str, Dim]) -> list[Dim]:
    """What an expression that is known tells, beside others that are."""
    if isinstance(expression, Mod):
        divided, divisor = expression.arguments
        return _divided(divided, divisor, known, extents)
    terms = [(monomial, scale) for monomial, scale in terms_of(expression)[0]]
    parts: list[Dim] = []
    for _, step in terms:
        outer = dim_sum([m * (s // step) for m, s in terms if s % step == 0])
        inner = dim_sum([m * s for m, s in terms if s % step])
        if step > 0 and _is_below(inner, step, extents):
            parts += [outer, inner]
    return [part for part in parts if isinstance(part, Expr)]


def _divided(
    divided: Dim, divisor: Dim, known: Collection[Dim], extents: Mapping[str, Dim]
) -> list[Dim]:
    """What is told by a remainder that is known, and by the quotient, alone or in a sum."""
    whole = divided // divisor
    if isinstance(simplify(whole, {}, extents), int):
        return [divided] if isinstance(divided, Expr) else []
    parts: list[Dim] = []
    for other in known:
        # other = k * whole + rest tells k * divided + rest * divisor
        scale = next((s for m, s in terms_of(other)[0] if m == whole), 0)
        if scale:
            parts.append((other - whole * scale) * divisor + divided * scale)
    return [d for d in parts if isinstance(d, Expr)]


def _is_below(d: Dim, limit: int, extents: Mapping[str, Dim]) -> bool:
    return provable_le(0, d, extents=extents) and provable_le(d + 1, limit, extents=extents)


def _points(op: loop.ComputeOp, indices: Iterable[Dim]) -> tuple[Dim, ...]:
    """Index expressions with 0 for the axes of one point."""
    units: dict[str, Dim] = {a.name: 0 for a in op.axis_list if a.extent == 1}
    return tuple(substitute(d, units) for d in indices)


def _steps_along(dim: Dim, name: str, axes: set[str]) -> bool:
    """Whether an index differs at every two points of one of the axes, whatever the others."""
    return free_symbols(dim) & axes == {name} and isinstance(coefficient(dim, name), int)


def copy_of(op: loop.ComputeOp, number: int, init: Value, free: set[str]) -> loop.ComputeOp:
    """A compute that gives all of the array a scatter starts from, over the scatter's free axes
    where those index it: an axis that is several of its indices runs along the first of them."""
    from irc.passes.common.bodies import Body

    indices = op.output_list[number].indices
    type_ = op.results_of(number)[0].type
    assert indices is not None and isinstance(type_, TensorType)
    names: list[str] = []
    for k, d in enumerate(indices):
        along = isinstance(d, Symbol) and d.name in free - {*names}
        names.append(d.name if isinstance(d, Symbol) and along else f"copied{k}")
    axes = [loop.AxisAttr(n, "par", e) for n, e in zip(names, type_.shape, strict=True)]
    body = Body()
    body.finish([body.read(init, [symbol(n) for n in names])])
    attributes = {"axes": A.ArrayAttr(axes), "outputs": A.ArrayAttr([loop.MAP])}
    return loop.ComputeOp((), (type_,), attributes, (Region([body.block]),), op.location)
