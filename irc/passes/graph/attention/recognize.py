"""Recognizing softmax(query @ key^T * scale + mask) @ value in a program of ATen's operators.

    attention = recognize(program, product)  # the second product; raises NotAttention
    attention.query, attention.masks, attention.scale

Views between the operators (of heads, of einsum, of expanded keys) are followed by their
dimensions, whatever operators wrote them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from irc.passes.graph.attention.dims import (
    Group,
    Groups,
    Label,
    moves,
    start,
    through,
)
from irc.passes.graph.attention.operators import FILLINGS, SCALING, Role
from irc.passes.graph.attention.program import (
    NotAttention,
    OperatorCall,
    Program,
    Size,
    Value,
    is_one,
)
from irc.passes.graph.attention.rounding import FLOATS, held

#: The most operators between the two products of one attention.
_DEPTH = 32


@attrs.frozen
class Operand:
    """A factor of the products as `[batch, heads, positions, width]`: the dimensions of `base`.

    slots: the labels of `base` for each of the four: none for a size of 1, a label without a
    dimension where the base's elements are repeated, two labels for heads in groups (then the
    second repeats). factor: a number by which the base is multiplied.
    """

    base: Value
    slots: tuple[Group, Group, Group, Group]
    factor: float = 1.0

    @property
    def is_grouped(self) -> bool:
        """Whether several heads of the query share one head of the base."""
        return any(label.dim is None for label in self.slots[1])


@attrs.frozen
class Mask:
    """A change of the scores before the softmax.

    tensor: what is added, or with `number` the condition under which that number takes the score's
    place (`keeps`: the condition under which the score stays). factor: of what is added. shape: its
    sizes, as which it is to be seen where batch and heads are one dimension of it. slots: the
    dimension of that for each of batch, heads, queries and keys (None: it has no such dimension, or
    one of size 1).
    """

    tensor: Value
    shape: tuple[Size, ...]
    slots: tuple[int | None, ...]
    number: float | None = None
    keeps: bool = False
    factor: float = 1.0


@attrs.frozen
class Attention:
    """Attention as it was found. sizes: batch, heads, queries, keys.

    `first` and `product` are the values of both products, `weights` the probabilities as the
    softmax gives them (0 where a row is without any key, if it is `safe`), `multiplied` as the
    product reads them. scale: a number, of the scores and
    of what `query` and `key` were scaled by; score_scale of the scores alone. masks: in the order
    in which they are applied. safe: a row without any key is 0, not NaN. copied: sizes of keys and
    values that the written form copies.
    """

    query: Operand
    key: Operand
    value: Operand
    scale: float
    score_scale: float
    masks: tuple[Mask, ...]
    sizes: tuple[Size, Size, Size, Size]
    product: Value
    weights: Value
    multiplied: Value
    first: Value
    safe: bool
    copied: tuple[Sequence[Size], ...] = ()


def recognize(
    program: Program, product: Value, *, forward_only: bool = True, shares: bool = True
) -> Attention:
    """The attention whose second product a value is. Raises NotAttention.

    forward_only: nothing but the product reads the probabilities, and factors of the query and the
    key may become part of the scale. shares: there, several heads may share one of the keys'.
    """
    last = program.call(product)
    if last is None or last.role is not Role.PRODUCT:
        raise NotAttention("it is no product", told=False)
    multiplied, values = last["self"], last["mat2"]
    soft, weights, path = _softmax_behind(program, multiplied, forward_only)
    safe = weights is not soft
    call = program.call(soft)
    assert call is not None
    labels, groups = _dimensions_of_scores(program, call)
    if _followed(program, groups, path) != _merged(labels):
        raise NotAttention("the probabilities' dimensions are moved before the product", told=False)
    first, masks, scale = _scores(program, call["self"], labels, groups, 2 if safe else 1)
    scores = program.call(first)
    assert scores is not None
    sizes = tuple(group[0].size if group else 1 for group in labels)
    if not all(map(program.is_positive, sizes)):
        raise NotAttention("it may be empty")  # and ATen's operator divides by sizes
    query = operand(program, scores["self"], labels, (0, 1), forward_only, False)
    shares = shares and forward_only
    key = operand(program, scores["mat2"], labels, (1, 0), forward_only, shares)
    value = operand(program, values, labels, (0, 1), False, shares)
    if not _share_alike(program, key, value):
        key = operand(program, scores["mat2"], labels, (1, 0), forward_only, False)
        value = operand(program, values, labels, (0, 1), False, False)
    _check(program, query, key, value)
    copied = tuple(
        program.shape(v) for v in (scores["mat2"], values) if copies(program, v)
    )
    return Attention(
        query, key, value, scale * query.factor * key.factor, scale, masks, sizes, product, weights,  # type: ignore[arg-type]
        multiplied, first, safe, copied,
    )  # fmt: skip


def _share_alike(program: Program, key: Operand, value: Operand) -> bool:
    """Whether as many heads share one of the keys as share one of the values."""
    times = [o.slots[1][-1].size if o.is_grouped else 1 for o in (key, value)]
    return program.same(*times)


def _check(program: Program, query: Operand, key: Operand, value: Operand) -> None:
    dtypes = {program.dtype(o.base) for o in (query, key, value)}
    if len(dtypes) != 1 or not dtypes <= set(FLOATS):
        raise NotAttention(f"its operands are of {', '.join(sorted(dtypes))}")
    widths = [o.slots[3][0].size if o.slots[3] else 1 for o in (query, key, value)]
    if not program.is_positive(widths[0]):
        raise NotAttention("it may be empty")
    if not program.same(widths[0], widths[2]):
        raise NotAttention("keys and values are of other sizes")


# -- from the second product down to the softmax


def _softmax_behind(
    program: Program, value: Value, forward_only: bool
) -> tuple[Value, Value, list[tuple[OperatorCall, Value]]]:
    """The softmax that a product's factor is, the same or what makes its empty rows 0, and the
    views between, in the order of the program."""
    path: list[tuple[OperatorCall, Value]] = []
    while True:
        call = program.call(value)
        if call is None:
            raise NotAttention("it is no product of probabilities", told=False)
        if call.role is Role.SOFTMAX:
            break
        if forward_only and program.uses(value) != 1:
            told = _leads_to_softmax(program, value)
            raise NotAttention("its probabilities are read elsewhere, too", told=told)
        if call.role is Role.CHOOSE and (soft := _safe_softmax(program, call)) is not None:
            return soft, value, path[::-1]
        if call.role is Role.CAST:
            if not _is_cast(call) or program.dtype(value) not in FLOATS:
                raise NotAttention("it is no product of probabilities", told=False)
        elif moves(call):
            path.append((call, value))
        else:
            raise NotAttention("it is no product of probabilities", told=False)
        value = call["self"]
    if forward_only and program.uses(value) != 1:
        raise NotAttention("its probabilities are read elsewhere, too")
    return value, value, path[::-1]


def _leads_to_softmax(program: Program, value: Value) -> bool:
    call = program.call(value)
    while call is not None and (moves(call) or call.role is Role.CAST):
        call = program.call(call["self"])
    return call is not None and call.role is Role.SOFTMAX


def _safe_softmax(program: Program, call: OperatorCall) -> Value | None:
    """The softmax of where(all(scores == -inf), 0, softmax(scores)), which torch writes."""
    condition, yes, no = call.choice
    if number_of(program, yes) != 0 or not program.is_tensor(no):
        return None
    none, soft = program.call(condition), program.call(no)
    if none is None or none.role is not Role.ALL:
        return None
    if soft is None or soft.role is not Role.SOFTMAX:
        return None
    compared = program.call(none["self"])
    if compared is None or compared.role is not Role.EQUAL or compared["other"] != -math.inf:
        return None
    return no if compared["self"] is soft["self"] else None


def _is_cast(call: OperatorCall) -> bool:
    """Whether `_to_copy` changes nothing but the dtype."""
    return not call["non_blocking"] and call["memory_format"] in (None, "preserve_format")


# -- the dimensions of the scores


def _dimensions_of_scores(
    program: Program, softmax: OperatorCall
) -> tuple[tuple[Group, Group, Group, Group], Groups]:
    """Labels for batch, heads, queries and keys, and the groups of the softmax's operand."""
    scores = softmax["self"]
    groups = start(program, scores)
    rank = len(groups)
    if rank not in (3, 4) or softmax["dim"] not in (-1, rank - 1):
        raise NotAttention("its softmax is over other dimensions than attention's", told=False)
    return (() if rank == 3 else groups[0], *groups[-3:]), groups  # type: ignore[return-value]


def _merged(labels: tuple[Group, Group, Group, Group]) -> Groups:
    """The dimensions of the products: batch and heads are one."""
    return ((*labels[0], *labels[1]), labels[2], labels[3])


def _followed(
    program: Program, groups: Groups, path: Sequence[tuple[OperatorCall, Value]]
) -> Groups | None:
    for call, result in path:
        followed = through(program, groups, call, result)
        if followed is None:
            return None
        groups = followed
    return groups


# -- from the softmax down to the first product


@attrs.define
class _ScoreStep:
    """What was done to the scores: a view (`call`), or a mask."""

    result: Value
    call: OperatorCall | None = None
    mask: tuple[Value, float | None, bool, float] | None = None


def _scores(
    program: Program, value: Value, labels: tuple[Group, ...], groups: Groups, readers: int
) -> tuple[Value, tuple[Mask, ...], float]:
    """The first product's value, the masks of the scores, and their scale. readers: of the scores
    that the softmax reads, a softmax whose empty rows are 0 compares them."""
    if program.uses(value) > readers:
        raise NotAttention("its scores are read elsewhere, too")
    walked = _walk(program, value, 1.0, _DEPTH)
    if walked is None:
        raise NotAttention("its scores are no masked and scaled product")
    product, steps, scale = walked
    here: Groups | None = _merged(labels)  # type: ignore[arg-type]
    masks = []
    for step in steps:
        if step.mask is not None:
            assert here is not None
            tensor, number, keeps, factor = step.mask
            shape, slots = _mask_slots(program, tensor, here, labels)
            masks.append(Mask(tensor, shape, slots, number, keeps, factor))
        elif step.call is not None:
            here = through(program, here, step.call, step.result)  # type: ignore[arg-type]
            if here is None:
                raise NotAttention("the dimensions of its scores are taken apart")
    if here != groups:
        raise NotAttention("the dimensions of its scores are moved before the softmax")
    return product, tuple(masks), scale


def _walk(
    program: Program, value: Value, outer: float, depth: int
) -> tuple[Value, list[_ScoreStep], float] | None:
    """The product behind scores, what was done to it (in the program's order), and its scale.
    `outer` multiplies the value."""
    call = program.call(value)
    if call is None or depth == 0 or (depth < _DEPTH and program.uses(value) != 1):
        return None
    if call.role is Role.PRODUCT:
        return value, [], outer
    if call.role is Role.CAST and _is_cast(call) and program.dtype(value) in FLOATS:
        return _walk(program, call["self"], outer, depth - 1)
    if moves(call):
        return _then(_walk(program, call["self"], outer, depth - 1), _ScoreStep(value, call))
    if (scaled := scaling(program, call)) is not None:
        return _walk(program, scaled[0], outer * scaled[1], depth - 1)
    if call.role in (Role.ADD, Role.SUBTRACT):
        return _added(program, value, call, outer, depth)
    if call.role is Role.CHOOSE:
        return _chosen(program, value, call, outer, depth)
    return None


def _then(walked: Any, step: _ScoreStep) -> Any:
    if walked is not None:
        walked[1].append(step)
    return walked


def _added(program: Program, value: Value, call: OperatorCall, outer: float, depth: int) -> Any:
    sign = -1.0 if call.role is Role.SUBTRACT else 1.0
    alpha = call["alpha"]
    if not isinstance(alpha, int | float):
        return None
    first, second = call["self"], call["other"]
    shape = program.shape(value)
    for scores, other, inner, factor in (
        (first, second, outer, outer * sign * alpha),
        (second, first, outer * sign * alpha, outer),
    ):
        if not program.is_tensor(scores) or not _has_shape(program, scores, shape):
            continue
        walked = _walk(program, scores, inner, depth - 1)
        if walked is None:
            continue
        number = number_of(program, other)
        if number is not None and math.isfinite(number * factor):
            return walked  # a softmax doesn't see what is added to all
        if not program.is_tensor(other):
            return None
        hidden = _hidden(program, other) if factor > 0 else None
        if hidden is not None:  # a score beside -inf is -inf
            return _then(walked, _ScoreStep(value, mask=(hidden[0], -math.inf, hidden[1], 1.0)))
        return _then(walked, _ScoreStep(value, mask=(other, None, False, factor)))
    return None


def _hidden(program: Program, mask: Value) -> tuple[Value, bool] | None:
    """The condition by which a mask is 0 or -inf, and whether it is 0 where that holds."""
    call = program.call(mask)
    if call is None or call.role is not Role.CHOOSE:
        return None
    condition, *choices = call.choice
    numbers = [number_of(program, choice) for choice in choices]
    if not _has_shape(program, condition, program.shape(mask)):
        return None
    return (condition, numbers[0] == 0) if sorted(map(str, numbers)) == ["-inf", "0.0"] else None


def _chosen(program: Program, value: Value, call: OperatorCall, outer: float, depth: int) -> Any:
    condition, yes, no = call.choice
    shape = program.shape(value)
    for scores, number, keeps in ((yes, no, True), (no, yes, False)):
        low = number_of(program, number)
        if low is None or not program.is_tensor(scores):
            continue
        if math.isnan(low) or low > 0 or outer <= 0 or not _has_shape(program, scores, shape):
            continue
        walked = _walk(program, scores, outer, depth - 1)
        if walked is not None:
            return _then(walked, _ScoreStep(value, mask=(condition, low * outer, keeps, 1.0)))
    return None


def _has_shape(program: Program, value: Value, shape: Sequence[Size]) -> bool:
    have = program.shape(value)
    return len(have) == len(shape) and all(map(program.same, have, shape))


def _mask_slots(
    program: Program, tensor: Value, groups: Groups, labels: tuple[Group, ...]
) -> tuple[tuple[Size, ...], tuple[int | None, ...]]:
    """The sizes of a mask, which is broadcast to these groups, with batch and heads apart, and
    which of its dimensions each label is."""
    shape = program.shape(tensor)
    places: dict[Label, int] = {}
    sizes: list[Size] = []
    for size, group in zip(shape, groups[len(groups) - len(shape) :], strict=True):
        if is_one(size) or len(group) < 2:
            places.update((label, len(sizes)) for label in group if not is_one(size))
            sizes.append(size)
            continue
        if not all(isinstance(label.size, int) for label in group):
            raise NotAttention("a mask has batch and heads, which change, in one dimension")
        for label in group:
            places[label] = len(sizes)
            sizes.append(label.size)
    slots = tuple(places.get(group[0]) if group else None for group in labels)
    return tuple(sizes), slots


# -- numbers


def number_of(program: Program, value: Any) -> float | None:
    """The number that a scalar, or a tensor in every element, is."""
    if isinstance(value, bool | int | float):
        return float(value)
    if not program.is_tensor(value):
        return None
    dtypes: list[str] = []
    while True:
        dtypes.append(program.dtype(value))
        number, call = program.number(value), program.call(value)
        if number is not None or call is None or len(dtypes) == 8:
            break
        if call.role is Role.FILL:
            numbers = [call[name] for name in FILLINGS if name in call.arguments]
            number = _plain(numbers[0]) if numbers else 0.0
            break
        if not moves(call) and call.role is not Role.CAST and call.role is not Role.LIFT:
            break
        value = call["self"]
    for dtype in reversed(dtypes):
        number = None if number is None else held(number, dtype)
    return number


def _plain(value: Any) -> float | None:
    return float(value) if isinstance(value, bool | int | float) else None


def scaling(program: Program, call: OperatorCall) -> tuple[Value, float] | None:
    """What a call multiplies by a number, and that number."""
    if call.role not in SCALING:
        return None
    first, second = call["self"], call["other"]
    number = number_of(program, second)
    if number is None and call.role is Role.MULTIPLY and program.is_tensor(second):
        first, second = second, first
        number = number_of(program, second)
    if number is None or not program.is_tensor(first) or not math.isfinite(number):
        return None
    if call.role is Role.DIVIDE:
        if number == 0 or call.arguments.get("rounding_mode"):
            return None
        number = 1 / number
    return first, number


# -- operands


def operand(
    program: Program,
    value: Value,
    labels: tuple[Group, ...],
    order: tuple[int, int],
    peel: bool,
    shared: bool,
) -> Operand:
    """A product's factor `[batch * heads, ., .]`, by the deepest value behind views that has its
    dimensions apart. order: (0, 1) for positions and width, (1, 0) for the other way round. peel:
    numbers by which it is multiplied become `factor`. shared: several heads may share one of its
    own."""
    chain: list[tuple[Value, OperatorCall | None, float]] = [(value, None, 1.0)]
    while True:
        current, _, factor = chain[-1]
        call = program.call(current)
        if call is None:
            break
        scaled = _scaled_alike(program, call, current) if peel else None
        if scaled is not None:
            chain.append((scaled[0], None, factor * scaled[1]))
        elif moves(call):
            chain.append((call["self"], call, factor))
        else:
            break
    for number in range(len(chain) - 1, -1, -1):
        groups: Groups | None = start(program, chain[number][0])
        for below in range(number, 0, -1):
            call = chain[below][1]
            if call is not None and groups is not None:
                groups = through(program, groups, call, chain[below - 1][0])
        slots = None if groups is None else _slots(program, groups, labels, order, shared)
        if slots is not None:
            return Operand(chain[number][0], slots, chain[number][2])
    raise NotAttention("batch and heads are one dimension of its operands")


def _scaled_alike(program: Program, call: OperatorCall, value: Value) -> tuple[Value, float] | None:
    """What a value is multiplied by a number of, with the same sizes and dtype."""
    scaled = scaling(program, call)
    if scaled is None or not _has_shape(program, scaled[0], program.shape(value)):
        return None
    return scaled if program.dtype(scaled[0]) == program.dtype(value) else None


def _slots(
    program: Program,
    groups: Groups,
    labels: tuple[Group, ...],
    order: tuple[int, int],
    shared: bool,
) -> tuple[Group, Group, Group, Group] | None:
    """The labels of batch, heads, positions and width among the groups of a product's factor."""
    last = groups[1 + order[0]], groups[1 + order[1]]
    if any(len(g) > 1 or any(label.dim is None for label in g) for g in last):
        return None
    rest = list(groups[0])
    leading: list[Group] = []
    for want in labels[:2]:
        taken: list[Label] = []
        product: Size = 1
        while want and not program.same(product, want[0].size):
            if not rest:
                return None
            label = rest.pop(0)
            taken.append(label)
            product = label.size if is_one(product) else product * label.size
        leading.append(tuple(taken))
    if rest or not _are_heads(leading[0], leading[1], shared):
        return None
    return (leading[0], leading[1], *last)


def _are_heads(batch: Group, heads: Group, shared: bool) -> bool:
    """Whether batch and heads are one dimension each, but for heads that groups of them share."""
    repeated = [label for label in (*batch, *heads) if label.dim is None]
    if repeated and (not shared or len(repeated) > 1 or repeated[0] is not (heads or (None,))[-1]):
        return False
    return len(batch) <= 1 and len(heads) - len(repeated) <= 1


def copies(program: Program, value: Value) -> bool:
    """Whether the written form copies a product's factor before the product."""
    call = program.call(value)
    while moves(call):
        if call.role is Role.COPY:
            return True
        value = call["self"]
        call = program.call(value)
    return False


def objection(program: Program, attention: Attention, cache: int) -> str:
    """Why attention is better left as it is written on a CPU; "" where it isn't. The written form
    is as fast where its scores, and what it copies, stay in `cache` bytes of a core's."""
    dtype = program.dtype(attention.query.base)
    if dtype == "float64":
        return "products of f64 are faster than the fused operator"
    width = 4 if dtype == "float32" else 2
    scores = math.prod(map(program.estimate, attention.sizes)) * width
    copied = sum(math.prod(map(program.estimate, shape)) for shape in attention.copied) * width
    if width == 2 and program.estimate(attention.sizes[2]) == 1:
        return ""  # products of one row in 16 bits are the library's slowest
    if scores > cache or copied > cache:
        return ""
    return f"its scores ({scores} bytes) and what is copied ({copied}) stay in a core's cache"


__all__ = ["Attention", "Mask", "Operand", "copies", "number_of", "objection", "operand",
           "recognize", "scaling"]  # fmt: skip
