"""The pass `gather-sums`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import torch

from irc.analysis.constant_values import ConstantValues, cone
from irc.dialects import func, graph
from irc.dialects.graph.canonical import full_value
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.contents import tensor_bytes
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import dim_product
from irc.ir.types import DTYPE_OF_ELEMENT, FloatType, IntegerType, TensorType, f32, i1, i64
from irc.passes.graph.common_factors import common_factors, separated
from irc.passes.graph.sum_terms import (
    Terms,
    axes_of,
    contents,
    line_of,
    terms_of,
    weighted_terms,
)
from irc.target import target_of
from irc.target.record import library_figures


@attrs.frozen
class GatheredSum:
    """An array, and what each element of a sum reads of it along each dimension. one_by_one:
    whether sums along one are made before those along the next."""

    value: Value
    terms: Sequence[Terms]
    one_by_one: bool


@register_pass
class GatherSums(Pass):
    """Lets each element of a sum read its terms, where these are scattered to known places.

    The gradient of a resized image, of one with mirrored edges or of overlapping blocks adds each
    of its elements to a pixel whose place depends on the element's row and column alone. These are
    looked at once, when the program is compiled: the terms of a pixel then lie in a window of rows
    and columns, or in rows and columns that a table names. Several sums in a row whose terms are
    one array, each time by other factors of row and column (the corners of bilinear
    interpolation), are one, if their factors together are some of the row times some of the column.
    What floats round to a place is a table from then on, so that no target rounds it otherwise. At
    most `limit` places are looked at, and of terms, with those of a window that are none, as many
    for each that is added as the target's figure `seen_terms` says. On a CPU, where rows of
    elements are added at a time, only whole windows are read, and sums with factors are made along
    one dimension after the other.

    Before:
        %p = graph.floor_div %iota, %two : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
        %y = graph.put %zeros, %v, %p {combiner = "sum", dims = array<i64: 0>, ...}
    After:
        %w = graph.window %v {dim = 0 : i64, step = 2 : i64, ...} : (tensor<6xf32>) -> tensor<3x2xf32>
        %y = graph.reduce %w {combiner = "sum", dims = array<i64: 1>}
    """  # noqa: E501

    name = "gather-sums"
    summary = "read the terms of sums that are scattered to known places"
    anchor = "func.func"
    asks_target = True
    preserves = "real"
    limit: int = 1 << 18

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        gone: set[Operation] = set()
        constants = ConstantValues()
        target, terms = target_of(context), library_figures(context).seen_terms
        for put in reversed(list(op.block.ops)):
            if not isinstance(put, graph.Put) or put.combiner != "sum" or put in gone:
                continue
            puts = _chain(put)
            plan = self.plan(puts, constants, target.is_gpu, terms)
            if isinstance(plan, str) and len(puts) > 1:
                puts = [put]
                plan = self.plan(puts, constants, target.is_gpu, terms)
            if isinstance(plan, str):
                context.remark(f"is scattered: {plan}", put)
            elif context.spend("gather-sums", put):
                gone.update(puts)
                _Gatherer(puts, plan).rewrite()
                constants = ConstantValues()
                context.count("gathered")

    def plan(
        self, puts: Sequence[graph.Put], constants: ConstantValues, is_gpu: bool, terms: int
    ) -> GatheredSum | str:
        """What the sums of some puts in a row read, or why they are scattered."""
        refusal = self.refusal(puts, constants)
        if refusal is not None:
            return refusal
        put, places = puts[0], [[c.long() for c in contents(each.indices)] for each in puts]
        shape, source = tensor_type(put.indices[0]).shape, tensor_type(put.source)
        sizes: list[Any] = [source.shape[d] for d in put.dims]
        axes = axes_of(places)
        if axes is None:
            return "places along several dimensions depend on one of its own"
        lines = [[line_of(p, own) for p, own in zip(each, axes, strict=True)] for each in places]
        for each in lines:
            for line, size in zip(each, sizes, strict=True):
                if int(line.min()) < 0 or int(line.max()) >= size:
                    return "a place is outside"
        root, factors = _common(puts, constants)
        weights = None
        if factors:
            flat = [_flat(factor, shape, axes) for factor in factors]
            if len(puts) > 1 or bool((flat[0] != 1).any()):
                weights = separated(lines, flat, sizes)
        if weights is not None:
            chosen = [weighted_terms(w, own) for w, own in zip(weights, axes, strict=True)]
        elif len(puts) > 1:
            return "the sums in a row are not of one array by factors of each dimension"
        else:
            root, own_lines = put.value, zip(lines[0], sizes, axes, strict=True)
            chosen = [terms_of(line, size, own) for line, size, own in own_lines]
        if not _is_most_of(puts[-1].source, math.prod(line.numel() for line in lines[0]), sizes):
            return "much of what it is added to stays as it is"
        if not is_gpu and not all(each.is_whole_window for each in chosen):
            return "its terms are in no whole window"
        count = math.prod(line.numel() for line in lines[0])
        seen = math.prod(each.slots * each.size for each in chosen)
        if seen > terms * count:
            return f"{seen} terms would be read of {count}"
        return GatheredSum(root, chosen, weights is not None and not is_gpu)

    def refusal(self, puts: Sequence[graph.Put], constants: ConstantValues) -> str | None:
        """Why places can't be looked at, or what is there can't be added otherwise."""
        put = puts[0]
        source = tensor_type(put.source)
        shape = (*tensor_type(put.indices[0]).shape, *(source.shape[d] for d in put.dims))
        if not isinstance(source.element, FloatType | IntegerType) or source.element is i1:
            return f"its elements are {source.element}"
        indices = [index for each in puts for index in each.indices]
        if not all(index in constants for index in indices):
            return "its places are known when it runs"
        if not all(map(_is_at_hand, cone(indices))):
            return "what makes its places is looked at when it runs"
        if not all(isinstance(size, int) and size for size in shape):
            return "a size is symbolic, or nothing"
        count: Any = dim_product(tensor_type(put.indices[0]).shape)
        return None if count <= self.limit else f"{count} places are over limit ({self.limit})"


def _is_most_of(base: Value, count: int, sizes: Sequence[int]) -> bool:
    """Whether so many terms are added to zeros, or to half as many elements at most: of what is
    there already only what is added to is written, where it is scattered."""
    return full_value(base) == 0 or count >= 2 * math.prod(sizes)


def _is_at_hand(op: Operation) -> bool:
    """Whether the interpreter knows what an operation gives without what is beside a program."""
    if isinstance(op, graph.CallAten):
        return False
    return not isinstance(op, graph.Constant) or isinstance(op.value, A.DenseAttr)


def _common(
    puts: Sequence[graph.Put], constants: ConstantValues
) -> tuple[Value, Sequence[torch.Tensor]]:
    """The array that the terms of all puts are multiples of, and by what; no factors where there is
    none."""
    alike = None
    if isinstance(tensor_type(puts[0].source).element, FloatType):
        alike = common_factors(puts, constants)
    return alike or (puts[0].value, ())


def _chain(put: graph.Put) -> list[graph.Put]:
    """Puts in a row, the last first, that add to the same dimensions at as many places."""
    puts = [put]
    while True:
        before = puts[-1].source.defining_op
        if not isinstance(before, graph.Put) or before.combiner != "sum":
            return puts
        shapes = {tensor_type(each.indices[0]).shape for each in (put, before)}
        alike = before.dims == put.dims and before.position == put.position
        if len(shapes) > 1 or not alike or before.updated.use_count != 1:
            return puts
        puts.append(before)


def _flat(
    factor: torch.Tensor, shape: Sequence[Any], axes: Sequence[tuple[int, ...]]
) -> torch.Tensor:
    """Factors with one dimension for each that is indexed, of all its axes."""
    order = [a for own in axes for a in own]
    lines = [math.prod(shape[a] for a in own) for own in axes]
    return factor.expand(tuple(shape)).permute(order).reshape(lines)


class _Gatherer:
    """Writes one sum that gathers its terms in the place of some that scatter them."""

    def __init__(self, puts: Sequence[graph.Put], plan: GatheredSum) -> None:
        self.put, self.puts, self.plan = puts[0], puts, plan
        self.builder = Builder.before(self.put)
        self.builder.location = self.put.location
        self.device = tensor_type(self.put.source).device

    def rewrite(self) -> None:
        put, position = self.put, self.put.position
        for each in self.puts:
            _keep_roundings(each)
        element = tensor_type(put.source).element
        is_narrow = isinstance(element, FloatType) and element.width < f32.width
        computed = f32 if is_narrow else element
        value = self._cast(self._lined_up(), computed)
        rank = tensor_type(value).rank
        for number, terms in enumerate(self.plan.terms):
            value = self._slots(value, position + number, terms)
            if self.plan.one_by_one:
                value = self.builder.value(graph.Reduce, value, combiner="sum", dims=(rank,))
        if not self.plan.one_by_one:
            dims = tuple(range(rank, rank + len(self.plan.terms)))
            value = self.builder.value(graph.Reduce, value, combiner="sum", dims=dims)
        value = self._in_order(value)
        base = self.puts[-1].source
        if full_value(base) != 0:
            value = self.builder.value(graph.Add, self._cast(base, computed), value)
        value = self._cast(value, element)
        value.name_hint = put.updated.name_hint
        put.updated.replace_all_uses_with(value)
        for each in self.puts:
            each.erase()

    def _cast(self, value: Value, element: Any) -> Value:
        type_ = tensor_type(value)
        if type_.element is element:
            return value
        return self.builder.value(graph.Cast, value, result_types=type_.with_element(element))

    def _lined_up(self) -> Value:
        """The values with one dimension for each that is indexed."""
        value = self.plan.value
        shape, position = tensor_type(value).shape, self.put.position
        count = tensor_type(self.put.indices[0]).rank
        own = [position + axis for terms in self.plan.terms for axis in terms.axes]
        order = [*range(position), *own, *range(position + count, len(shape))]
        if order != sorted(order):
            value = self.builder.value(graph.Permute, value, permutation=tuple(order))
        lines = [math.prod(shape[position + a] for a in terms.axes) for terms in self.plan.terms]  # type: ignore[misc]
        sizes = (*shape[:position], *lines, *shape[position + count :])
        if sizes == tensor_type(value).shape:
            return value
        return self.builder.value(
            graph.Reshape, value, result_types=tensor_type(value).with_shape(sizes)
        )

    def _slots(self, value: Value, dim: int, terms: Terms) -> Value:
        """A dimension of all terms as one of elements, with a new last one of their terms; zeros
        where there are none."""
        last = tensor_type(value).rank
        if terms.window is not None:
            value = self._window(value, dim, terms, *terms.window)
        else:
            index = self._constant(terms.table, i64)
            value = self.builder.value(graph.Take, value, [index], dims=(dim,), position=dim)
            order = [d for d in range(last + 1) if d != dim + 1]
            value = self.builder.value(graph.Permute, value, permutation=(*order, dim + 1))
        type_ = tensor_type(value)
        if terms.weights is not None:
            element = type_.element
            weights = self.builder.value(
                graph.Broadcast, self._constant(terms.weights, element), dims=(dim, last),
                result_types=type_,
            )  # fmt: skip
            value = self.builder.value(graph.Mul, value, weights)
        if terms.mask is None:
            return value
        mask = self.builder.value(
            graph.Broadcast, self._constant(terms.mask, i1), dims=(dim, last),
            result_types=type_.with_element(i1),
        )  # fmt: skip
        number = graph.scalar_attribute(0, type_.element)
        zero = self.builder.value(graph.Full, value=number, result_types=type_)
        return self.builder.value(graph.Select, mask, value, zero)

    def _window(self, value: Value, dim: int, terms: Terms, step: int, first: int) -> Value:
        type_ = tensor_type(value)
        end = first + step * (terms.size - 1) + terms.slots
        size: Any = type_.shape[dim]
        low, high = ([0] * type_.rank for _ in range(2))
        low[dim], high[dim] = -first, end - size
        if low[dim] or high[dim]:
            number = graph.scalar_attribute(0, type_.element)
            value = self.builder.value(
                graph.Pad, value, low=tuple(low), high=tuple(high), value=number
            )
        shape = (*type_.shape[:dim], terms.size, *type_.shape[dim + 1 :], terms.slots)
        return self.builder.value(
            graph.Window, value, dim=dim, step=step, dilation=1,
            result_types=type_.with_shape(shape),
        )  # fmt: skip

    def _constant(self, content: torch.Tensor, element: Any) -> Value:
        type_ = TensorType(tuple(content.shape), element, None, self.device)
        content = content.to(getattr(torch, DTYPE_OF_ELEMENT[element])).contiguous()
        attribute = A.DenseAttr(type_, bytes(tensor_bytes(content)))
        return self.builder.value(graph.Constant, value=attribute)

    def _in_order(self, value: Value) -> Value:
        """The sums with their dimensions where the source has them."""
        dims, position = list(self.put.dims), self.put.position
        rank = tensor_type(self.put.source).rank
        others = (k if k < position else k + len(dims) for k in range(rank - len(dims)))
        order = [position + dims.index(d) if d in dims else next(others) for d in range(rank)]
        if order == sorted(order):
            return value
        return self.builder.value(graph.Permute, value, permutation=tuple(order))


def _keep_roundings(put: graph.Put) -> None:
    """Make tables of the whole numbers that floats are rounded to among what makes the places: all
    that reads them then agrees with the places that were looked at, whatever a target rounds to."""
    for op in cone(put.indices):
        if not isinstance(op, graph.Cast):
            continue
        before, after = (tensor_type(v).element for v in (*op.operands, *op.results))
        if isinstance(before, FloatType) and isinstance(after, IntegerType):
            _fold(op)


def _fold(op: Operation) -> None:
    from irc.interp.copies import in_order

    (result,) = op.results
    (content,) = contents([result])
    type_ = tensor_type(result)
    attribute = A.DenseAttr(type_, bytes(tensor_bytes(in_order(content))))
    builder = Builder.before(op)
    builder.location = op.location
    constant = builder.value(graph.Constant, value=attribute)
    constant.name_hint = result.name_hint
    result.replace_all_uses_with(constant)
