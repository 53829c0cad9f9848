"""The pass `factor-axes`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from irc.analysis.contraction import tiled
from irc.analysis.loop import is_unit
from irc.dialects import layout, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import (
    Dim,
    Expr,
    FloorQuotient,
    Mod,
    Symbol,
    coefficient,
    floordiv,
    free_symbols,
    mod,
    simplify,
    substitute,
    terms_of,
)
from irc.ir.symbols.expr import postorder
from irc.ir.types import TensorType
from irc.passes.common.bodies import axis, axis_name, make_compute, with_axes
from irc.target import target_of


@register_pass
class FactorAxes(Pass):
    """Splits an axis where what it reads, or what reads it, has its two factors as axes.

    Sizes flattened for a matrix product and unflattened after it so meet in one space. The
    results are reshaped: computes read them at the factored index, others through a view.
    A reduction whose innermost axis is combined gets its par axes first (channels of an image,
    say), so that it can share them with what reads its results. Remarks: why an axis that is
    divided so is one axis still.

    Before:
        %s = loop.compute par(i0: 12) red(i1: 8) -> reduce(sum, f32) { ... }
        %y = loop.compute par(i0: 3, i1: 4, i2: 8) -> map { ... loop.read %s[i0*4 + i1] ... }
    After:
        %s = loop.compute par(i0: 3, i1: 4) red(i2: 8) -> reduce(sum, f32) { ... }
        %y = loop.compute par(i0: 3, i1: 4, i2: 8) -> map { ... loop.read %s[i0, i1] ... }
    """

    name = "factor-axes"
    summary = "split axes at the factors that neighbours use, so that spaces meet"
    anchor = "func.func"
    asks_target = True
    max_splits: int = 4

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        context.count("split", self._sweep(block, context) + self._sweep(block, context, False))
        for inner in block.ops:
            if isinstance(inner, loop.ComputeOp) and reduces_rows(inner):
                par_axes_first(inner)
                context.count("reordered")
        if context.explains:
            for inner in block.ops:
                reason = why_whole(inner) if isinstance(inner, loop.ComputeOp) else None
                if reason is not None:
                    context.remark(f"keeps an axis whole: {reason}", inner)

    def _sweep(self, block: Block, context: PassContext, forward: bool = True) -> int:
        split, target = 0, target_of(context)
        for op in block.ops if forward else block.reversed_ops:
            for _ in range(self.max_splits):
                if not isinstance(op, loop.ComputeOp):
                    break
                if not is_splittable(op) and not (forward and has_free_axes(op)):
                    break
                if tiled(op, target) is not None:
                    break  # whole axes make whole tiles
                factor = own_factor(op) if forward else readers_factor(op)
                if factor is None or not context.spend("factor-axes", op):
                    break
                op = split_axis(op, *factor)
                split += 1
        return split


def is_splittable(op: loop.ComputeOp) -> bool:
    """Whether the axes may be split: no scatter, scan, or position of an extreme."""
    if op.schedule is not None or any(a.kind == "scan" for a in op.axis_list):
        return False
    if any(a.name != axis_name(k) for k, a in enumerate(op.axis_list)):
        return False
    return all(
        o.kind in ("map", "reduce") and o.combiner not in ("argmin", "argmax")
        for o in op.output_list
    )


def has_free_axes(op: loop.ComputeOp) -> bool:
    """Whether the axes of a compute that only scatters may be split where no place is at them."""
    if op.schedule is not None or any(a.name != axis_name(k) for k, a in enumerate(op.axis_list)):
        return False
    return all(o.kind == "scatter" for o in op.output_list)


def is_a_place(op: loop.ComputeOp, k: int) -> bool:
    """Whether something is scattered to places at axis k."""
    name = axis_name(k)
    places = (dim for o in op.output_list if o.kind == "scatter" for dim in o.index_dims)
    return any(isinstance(dim, Expr) and name in dim.symbols for dim in places)


def factors(extent: Dim, inner: Dim) -> tuple[Dim, Dim] | None:
    """(extent / inner, inner) if inner divides the extent and both have more than one point."""
    if isinstance(inner, Expr):  # nothing is known to be divided by it
        return None
    outer = floordiv(extent, inner)
    if outer * inner != extent or is_unit(outer) or is_unit(inner):
        return None
    return outer, inner


def own_factor(op: loop.ComputeOp) -> tuple[int, Dim, Dim] | None:
    """An axis that the reads divide by one of its factors: (position, outer, inner)."""
    positions = {a.name: k for k, a in enumerate(op.axis_list)}
    for part in divisions_of(op):
        dividend, divisor = part.arguments
        if isinstance(dividend, Symbol) and dividend.name in positions:
            k = positions[dividend.name]
            pair = factors(op.axis_list[k].extent, divisor)
            if pair is not None and not is_a_place(op, k) and vanishes(op, k, *pair):
                return k, *pair
    return None


def index_expressions(op: loop.ComputeOp) -> Iterator[Dim]:
    """Every index expression of a compute's body."""
    for inner in op.block.ops:
        if isinstance(inner, loop.ReadOp):
            yield from inner.indices
        elif isinstance(inner, loop.IndexOp):
            yield inner.expression


def divisions_of(op: loop.ComputeOp) -> Iterator[FloorQuotient | Mod]:
    """Every quotient and remainder in the index expressions of a compute's body."""
    for expression in index_expressions(op):
        if isinstance(expression, Expr) and not expression.polynomial:
            for part in postorder(expression):
                if isinstance(part, FloorQuotient | Mod):
                    yield part


def vanishes(op: loop.ComputeOp, k: int, outer: Dim, inner: Dim) -> bool:
    """Whether no expression has more divisions after axis k is split, and some have fewer."""
    mapping, extents = split_mapping(op, k, outer, inner)
    better = False
    for expression in index_expressions(op):
        if not isinstance(expression, Expr) or axis_name(k) not in expression.symbols:
            continue
        before = divisions(expression)
        after = divisions(simplify(substitute(expression, mapping), {}, extents))
        if after > before:
            return False
        better |= after < before
    return better


def divisions(expression: Dim) -> int:
    """The number of quotients and remainders in an expression."""
    if not isinstance(expression, Expr) or expression.polynomial:
        return 0
    return sum(isinstance(part, FloorQuotient | Mod) for part in postorder(expression))


def split_mapping(
    op: loop.ComputeOp, k: int, outer: Dim, inner: Dim
) -> tuple[dict[str, Dim], dict[str, Dim]]:
    """The axes' new expressions when axis k becomes two, and the new extents by name."""
    mapping: dict[str, Dim] = {}
    extents: list[Dim] = []
    for position, a in enumerate(op.axis_list):
        if position == k:
            mapping[a.name] = axis(k) * inner + axis(k + 1)
            extents += [outer, inner]
        else:
            mapping[a.name] = axis(position if position < k else position + 1)
            extents.append(a.extent)
    return mapping, {axis_name(n): extent for n, extent in enumerate(extents)}


def readers_factor(op: loop.ComputeOp) -> tuple[int, Dim, Dim] | None:
    """An axis of the result that every reader indexes by `a*inner + b`, with a and b axes of
    its own that span the factors: (position, outer, inner)."""
    par = [k for k, a in enumerate(op.axis_list) if a.kind == "par"]
    reads = [u for r in op.results for u in r.users if isinstance(u, loop.ReadOp)]
    maps = any(o.kind == "map" for o in op.output_list)
    if not reads or (maps and len(par) != len(op.axis_list)):
        return None
    for dim, k in enumerate(par):
        extent = op.axis_list[k].extent
        agreed = {_reader_factor(read, dim, extent) for read in reads}
        pair = agreed.pop()
        if pair is None or agreed:
            continue
        mapping, extents = split_mapping(op, k, *pair)
        grows = any(
            divisions(simplify(substitute(e, mapping), {}, extents)) > divisions(e)
            for e in index_expressions(op)
        )
        if not grows:
            return k, *pair
    return None


def _reader_factor(read: loop.ReadOp, dim: int, extent: Dim) -> tuple[Dim, Dim] | None:
    compute = read.parent_op
    assert isinstance(compute, loop.ComputeOp)
    expression = tuple(read.indices)[dim]
    extents = {a.name: a.extent for a in compute.axis_list}
    terms, constant = terms_of(expression)
    if constant or len(terms) != 2:
        return None
    for a, b in permutations([n for n in free_symbols(expression) if n in extents], 2):
        inner = extents[b]
        if coefficient(expression, b) != 1 or coefficient(expression, a) != inner:
            continue
        if extents[a] * inner == extent:
            return factors(extent, inner)
    return None


# -- remarks


def why_whole(op: loop.ComputeOp) -> str | None:
    """Why an axis that is divided by its reads, or by what reads the results, is one axis still;
    None where no axis is."""
    positions = {a.name: k for k, a in enumerate(op.axis_list)}
    for part in divisions_of(op):
        if part.symbols & positions.keys():
            return _why_divided(op, part)
    par = [a for a in op.axis_list if a.kind == "par"]
    reads = [u for r in op.results for u in r.users if isinstance(u, loop.ReadOp)]
    for dim, a in enumerate(par):
        pairs = {_reader_factor(read, dim, a.extent) for read in reads if len(read.indices) > dim}
        shown = ", ".join(f"{f[0]} x {f[1]}" for f in pairs if f is not None)
        if not shown:
            continue
        if not is_splittable(op):
            return f"readers have {a.name} as {shown}, but {_why_unsplittable(op)}"
        if len(pairs) > 1:
            return f"readers have {a.name} as {shown}, but not all of them"
        return f"readers have {a.name} as {shown}, but its own indices get harder so"
    return None


def _why_divided(op: loop.ComputeOp, part: FloorQuotient | Mod) -> str:
    """Why the quotient or remainder `part` of the index of a read stays."""
    dividend, divisor = part.arguments
    positions = {a.name: k for k, a in enumerate(op.axis_list)}
    if not isinstance(dividend, Symbol) or dividend.name not in positions:
        return f"{part} is not of one axis alone"
    k = positions[dividend.name]
    if not is_splittable(op) and (is_a_place(op, k) or not has_free_axes(op)):
        return f"it reads at {part}, but {_why_unsplittable(op)}"
    pair = factors(op.axis_list[k].extent, divisor)
    if pair is None:
        return f"it reads at {part}, but {divisor} is not known to divide {op.axis_list[k].extent}"
    if not vanishes(op, k, *pair):
        return f"it reads at {part}, but other indices get harder if {dividend} is split"
    return f"it reads at {part}, but max_splits axes were split already"


def _why_unsplittable(op: loop.ComputeOp) -> str:
    if op.schedule is not None:
        return "it has a schedule"
    if any(a.kind == "scan" for a in op.axis_list):
        return "it scans"
    if any(a.name != axis_name(k) for k, a in enumerate(op.axis_list)):
        return "its axes have names of their own"
    if any(o.kind == "scatter" for o in op.output_list):
        return "it scatters"
    return "it gives positions in its space"


# -- rewriting


def reduces_rows(op: loop.ComputeOp) -> bool:
    """Whether `op` only reduces, along its innermost axis too, with a red axis before a par one."""
    kinds = [a.kind for a in op.axis_list]
    if not is_splittable(op) or any(o.kind != "reduce" for o in op.output_list):
        return False
    return kinds[-1:] == ["red"] and kinds != sorted(kinds)  # "par" before "red"


def par_axes_first(op: loop.ComputeOp, last: str = "red") -> loop.ComputeOp:
    """Replace a compute without maps by one whose par axes come before its red ones; with `last`
    "par" by one where they come behind them."""
    ordered = sorted(op.axis_list, key=lambda a: a.kind == last)
    mapping = {a.name: axis(n) for n, a in enumerate(ordered)}
    extents = {axis_name(n): a.extent for n, a in enumerate(ordered)}
    body = with_axes(op, mapping, extents)
    axes = A.ArrayAttr(
        [loop.AxisAttr(axis_name(n), a.kind, a.extent) for n, a in enumerate(ordered)]
    )
    types = [r.type for r in op.results]
    new = make_compute(Builder.before(op), axes, op.output_list, types, body, (), op)
    for old, fresh in zip(op.results, new.results, strict=True):
        fresh.name_hint = old.name_hint
    op.replace_with(new)
    return new


def _moved(output: loop.ResultAttr, mapping: dict[str, Dim]) -> loop.ResultAttr:
    """A result where axes have other names: the places of what is scattered."""
    if output.kind != "scatter":
        return output
    places = A.DimsAttr([substitute(dim, mapping) for dim in output.index_dims])
    return loop.ResultAttr("scatter", output.combiner, output.accumulator, places)


def split_axis(op: loop.ComputeOp, k: int, outer: Dim, inner: Dim) -> loop.ComputeOp:
    """Replace a compute by one whose axis k is two; readers of the results are adjusted."""
    mapping, extents = split_mapping(op, k, outer, inner)
    body = with_axes(op, mapping, extents)
    kinds = [a.kind for a in op.axis_list]
    kinds.insert(k, kinds[k])
    axes = A.ArrayAttr(
        [
            loop.AxisAttr(name, kind, extent)
            for kind, (name, extent) in zip(kinds, extents.items(), strict=True)
        ]
    )
    types = []
    places: list[int | None] = []
    outputs = [_moved(output, mapping) for output in op.output_list]
    for number, output in enumerate(outputs):
        kept = [n for n, a in enumerate(op.axis_list) if output.kind == "map" or a.kind == "par"]
        place = kept.index(k) if k in kept and output.kind != "scatter" else None
        for result in op.results_of(number):
            types.append(_split_type(result.type, place, outer, inner))
            places.append(place)
    builder = Builder.before(op)
    new = make_compute(builder, axes, outputs, types, body, op.inits, op)
    for old, fresh, place in zip(op.results, new.results, places, strict=True):
        fresh.name_hint = old.name_hint
        _redirect(old, fresh, place, inner)
    op.erase()
    return new


def _split_type(type_: object, place: int | None, outer: Dim, inner: Dim) -> TensorType:
    assert isinstance(type_, TensorType) and type_.strides is not None
    if place is None:
        return type_
    stride = type_.strides[place]
    shape = (*type_.shape[:place], outer, inner, *type_.shape[place + 1 :])
    strides = (*type_.strides[:place], stride * inner, stride, *type_.strides[place + 1 :])
    return type_.with_shape(shape, strides)


def _redirect(old: Value, new: Value, place: int | None, inner: Dim) -> None:
    """Make the users of `old` use `new`, in which dimension `place` is split."""
    if place is None:
        old.replace_all_uses_with(new)
        return
    view: Value | None = None
    for user in old.users:
        if isinstance(user, loop.ReadOp) and user.source is old:
            indices = list(user.indices)
            compute = user.parent_op
            assert isinstance(compute, loop.ComputeOp)
            around = {a.name: a.extent for a in compute.axis_list}
            whole = indices[place]
            indices[place : place + 1] = [
                simplify(floordiv(whole, inner), {}, around),
                simplify(mod(whole, inner), {}, around),
            ]
            user.attributes["indices"] = A.DimsAttr(indices)
            user.set_operand(0, new)
            continue
        if view is None:
            maker = new.defining_op
            assert maker is not None
            view = Builder.after(maker).value(layout.ViewOp, new, offset=0, result_types=old.type)
        user.replace_uses_of(old, view)
