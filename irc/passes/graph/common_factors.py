"""What sums in a row have in common: one array, times factors of each row and each column."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import torch

from irc.analysis.constant_values import ConstantValues
from irc.dialects import graph
from irc.dialects.graph.canonical import full_value
from irc.dialects.graph.inferred import tensor_type
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim
from irc.ir.types import FloatType
from irc.passes.graph.sum_terms import contents

#: How far factors may be from a product of those of each dimension, of the largest.
_ROUNDED = 1e-5
_ARITHMETIC: dict[type[Operation], Callable[..., torch.Tensor]] = {
    graph.Mul: torch.mul, graph.Add: torch.add, graph.Sub: torch.sub,
}  # fmt: skip


def common_factors(
    puts: Sequence[graph.Put], constants: ConstantValues
) -> tuple[Value, list[torch.Tensor]] | None:
    """An array that the terms of all puts are multiples of, and by what, as f64 with one dimension
    for each of the places; None without one."""
    roots = {_root(put.value, constants) for put in puts}
    if len(roots) > 1 or None in roots:
        return None
    (root,) = roots
    assert root is not None
    first = puts[0].position
    span = range(first, first + tensor_type(puts[0].indices[0]).rank)
    known: dict[Value, torch.Tensor | None] = {root: torch.ones((1,) * len(span)).double()}
    factors = [_factor(put.value, known, constants, span) for put in puts]
    return (root, factors) if None not in factors else None  # type: ignore[return-value]


def _root(value: Value, constants: ConstantValues) -> Value | None:
    """What a value is a multiple of, by arithmetic of its shape: in the end itself."""
    op = value.defining_op
    shape = tensor_type(value).shape
    if op is None or value in constants:
        return None if op is not None else value
    if isinstance(op, graph.Mul | graph.Add | graph.Sub | graph.Neg) or _changes_floats(op):
        parts = [v for v in op.operands if v not in constants]
        linear = len(parts) == 1 if isinstance(op, graph.Mul) else len(parts) == len(op.operands)
        if linear and all(tensor_type(v).shape == shape for v in parts):
            roots = {_root(v, constants) for v in parts}
            if len(roots) == 1:
                return roots.pop()
    return value


def _changes_floats(op: object) -> bool:
    if not isinstance(op, graph.Cast):
        return False
    return all(isinstance(tensor_type(v).element, FloatType) for v in (*op.operands, *op.results))


def _factor(
    value: Value, known: dict[Value, torch.Tensor | None], constants: ConstantValues, span: range
) -> torch.Tensor | None:
    """What the root is multiplied by; None where that differs along other dimensions."""
    if value in known:
        return known[value]
    op = value.defining_op
    assert op is not None
    if value in constants:
        factor = _constant(value, span)
    else:
        parts = [_factor(v, known, constants, span) for v in op.operands]
        if any(part is None for part in parts):
            factor = None
        elif isinstance(op, graph.Cast):
            (factor,) = parts
        elif isinstance(op, graph.Neg):
            factor = -parts[0]  # type: ignore[operator]
        else:
            factor = _ARITHMETIC[type(op)](*parts)
    known[value] = factor
    return factor


def _constant(value: Value, span: range) -> torch.Tensor | None:
    """A constant with one dimension for each of `span`, without having all its elements made."""
    number = full_value(value)
    if isinstance(number, int | float):
        return torch.full((1,) * len(span), float(number)).double()
    op = value.defining_op
    if not isinstance(op, graph.Broadcast):
        return None
    source = tensor_type(op.source)
    sizes: list[Dim] = [1] * len(span)
    for size, dim in zip(source.shape, op.dims, strict=True):
        if dim in span:
            sizes[dim - span.start] = size
        elif size != 1:
            return None
    (content,) = contents([op.source])
    return content.double().reshape(sizes)  # type: ignore[arg-type]


def separated(
    lines: Sequence[Sequence[torch.Tensor]], factors: Sequence[torch.Tensor], sizes: Sequence[int]
) -> list[torch.Tensor] | None:
    """Factors of each dimension, f64[size, numbers], whose products are what each element gets of
    each term over several sums; None where there are none.

    lines[p][k]: the places of sum p along dimension k; factors[p]: with as many dimensions. An
    array T[h.., r..] is a product of matrices M_k[h_k, r_k] where it is that of its own sums over
    all other dimensions, weighted at random, over the sum of all but one power. That is looked at
    where T may be other than 0, and the sum of squares tells that it is 0 elsewhere.
    """
    dims = range(len(sizes))
    counts = [line.numel() for line in lines[0]]
    dense = [factor.expand(counts) for factor in factors]
    generator = torch.Generator().manual_seed(len(lines))
    random = functools.partial(torch.rand, generator=generator, dtype=torch.float64)
    heights, widths = [random(n) + 0.5 for n in sizes], [random(n) + 0.5 for n in counts]
    total, sums = 0.0, [torch.zeros(n, m).double() for n, m in zip(sizes, counts, strict=True)]
    for line, factor in zip(lines, dense, strict=True):
        part = factor.clone()
        for k in dims:
            shape = [-1 if j == k else 1 for j in dims]
            part = part * (heights[k][line[k]] * widths[k]).reshape(shape)
        total += float(part.sum())
        for k in dims:
            others = part.sum([j for j in dims if j != k]) if len(dims) > 1 else part
            own = others / (heights[k][line[k]] * widths[k])
            sums[k].index_put_((line[k], torch.arange(counts[k])), own, accumulate=True)
    if abs(total) < _ROUNDED:
        return None
    sums[1:] = [each / total for each in sums[1:]]
    return sums if _are_factors(sums, lines, dense) else None


def _are_factors(
    sums: Sequence[torch.Tensor], lines: Sequence[Sequence[torch.Tensor]],
    dense: Sequence[torch.Tensor],
) -> bool:  # fmt: skip
    dims = range(len(sums))
    counts = dense[0].shape
    largest = max(float(factor.abs().max()) for factor in dense)
    squares = 0.0
    groups: Mapping[int, torch.Tensor] = dict(enumerate(dense))
    for p, line in enumerate(lines):
        element, first = torch.zeros(counts).double(), torch.ones(counts).bool()
        for q, factor in groups.items():
            same = torch.ones(counts).bool()
            for k in dims:
                shape = [-1 if j == k else 1 for j in dims]
                same = same & (line[k] == lines[q][k]).reshape(shape)
            element = element + factor.where(same, 0)
            if q < p:
                first &= ~same
        expected = torch.ones(counts).double()
        for k in dims:
            shape = [-1 if j == k else 1 for j in dims]
            expected = expected * sums[k][line[k], torch.arange(counts[k])].reshape(shape)
        if float((element - expected).abs().max()) > _ROUNDED * largest:
            return False
        squares += float(element.square().where(first, 0).sum())
    product = torch.tensor(1.0).double()
    for each in sums:
        product = product * each.square().sum()
    return abs(float(product) - squares) <= _ROUNDED * max(squares, largest)


__all__ = ["common_factors", "separated"]
