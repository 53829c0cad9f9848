"""What sums in a row have in common: one array, times factors of each row and each column."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

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
    seen: dict[Value, Value | None] = {}
    roots = {_root(put.value, constants, seen) for put in puts}
    if len(roots) > 1 or None in roots:
        return None
    (root,) = roots
    assert root is not None
    first = puts[0].position
    span = range(first, first + tensor_type(puts[0].indices[0]).rank)
    known: dict[Value, torch.Tensor | None] = {root: torch.ones((1,) * len(span)).double()}
    factors = [_factor(put.value, known, constants, span) for put in puts]
    return (root, factors) if None not in factors else None  # type: ignore[return-value]


def _root(
    value: Value, constants: ConstantValues, seen: dict[Value, Value | None]
) -> Value | None:
    """What a value is a multiple of, by arithmetic of its shape: in the end itself. `seen`: that of
    values which were looked at."""
    if value in seen:
        return seen[value]
    op, root = value.defining_op, value
    shape = tensor_type(value).shape
    if op is None:
        return value
    if value in constants:
        return None
    if isinstance(op, graph.Mul | graph.Add | graph.Sub | graph.Neg) or _changes_floats(op):
        parts = [v for v in op.operands if v not in constants]
        linear = len(parts) == 1 if isinstance(op, graph.Mul) else len(parts) == len(op.operands)
        if linear and all(tensor_type(v).shape == shape for v in parts):
            roots = [_root(v, constants, seen) for v in parts]
            if roots[0] is not None and all(other is roots[0] for other in roots):
                root = roots[0]
    seen[value] = root
    return root


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

    lines[p][k]: the places of sum p along dimension k; factors[p]: with as many dimensions, which
    must be a product of a vector for each.
    """
    products: list[list[torch.Tensor]] = []
    for line, factor in zip(lines, factors, strict=True):
        if not bool((factor != 0).any()):
            continue
        vectors = _vectors(factor.expand([each.numel() for each in line]))
        if vectors is None:
            return None
        products.append(list(map(_matrix, line, vectors, sizes)))
    return _one_product(products) if products else None


def _vectors(factor: torch.Tensor) -> list[torch.Tensor] | None:
    """A vector for each dimension, of which an array is the product; None where it is none."""
    place = [int(k) for k in torch.unravel_index(factor.abs().argmax(), factor.shape)]
    pivot = factor[tuple(place)]
    product, vectors = pivot, []
    for k in range(factor.dim()):
        vector = factor
        for other in reversed([j for j in range(factor.dim()) if j != k]):
            vector = vector.select(other, place[other])
        shape = [-1 if j == k else 1 for j in range(factor.dim())]
        product = product * (vector / pivot).reshape(shape)
        vectors.append(vector / pivot if k else vector)
    return vectors if _are_close(product, factor) else None


def _matrix(line: torch.Tensor, vector: torch.Tensor, size: int) -> torch.Tensor:
    matrix = torch.zeros(size, line.numel(), dtype=torch.float64)
    matrix[line, torch.arange(line.numel())] = vector
    return matrix


def _one_product(products: list[list[torch.Tensor]]) -> list[torch.Tensor] | None:
    """The product of matrices that a sum of such products is: those with one first matrix, but for
    a scale, have the sum of what is behind it; this must be the same for all, but for a scale."""
    if len(products[0]) == 1:
        return [functools.reduce(torch.add, (first for (first,) in products))]
    groups: list[tuple[torch.Tensor, list[list[torch.Tensor]]]] = []
    for first, second, *rest in products:
        scales = (_scale(first, known) for known, _ in groups)
        number, scale = next(((n, s) for n, s in enumerate(scales) if s is not None), (-1, 1.0))
        if number < 0:
            groups.append((first, []))
        groups[number][1].append([second * scale, *rest])
    total, behind = groups[0][0], _one_product(groups[0][1])
    for first, others in groups[1:]:
        rest_of = _one_product(others)
        if rest_of is None or behind is None:
            return None
        for mine, known in zip(rest_of, behind, strict=True):
            multiple = _scale(mine, known)
            if multiple is None:
                return None
            first = first * multiple  # noqa: PLW2901
        total = total + first
    return None if behind is None else [total, *behind]


def _scale(matrix: torch.Tensor, known: torch.Tensor) -> float | None:
    """What a matrix is another one times; None where it is no multiple."""
    place = torch.unravel_index(known.abs().argmax(), known.shape)
    pivot = float(known[place])
    scale = float(matrix[place]) / pivot if pivot else 1.0
    return scale if scale and _are_close(known * scale, matrix) else None


def _are_close(product: torch.Tensor, whole: torch.Tensor) -> bool:
    largest = float(whole.abs().max()) if whole.numel() else 0.0
    return float((product - whole).abs().max()) <= _ROUNDED * largest


__all__ = ["common_factors", "separated"]
