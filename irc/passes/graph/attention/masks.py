"""What the masks of an attention come to: one tensor that is added, a causal mask, or nothing; and
whether a row may be left without any key.

A softmax of a row that is -inf everywhere is NaN, and fused operators make it 0. So where such a
row can't be excluded, what reads the result reads NaN for it (`MaskPlan.rows`).
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from irc.passes.graph.attention.facts import (
    HIGHEST_NUMBER,
    LARGEST,
    MOST_ELEMENTS,
    evaluated,
    interval,
    is_causal,
)
from irc.passes.graph.attention.program import NotAttention, Program, Value
from irc.passes.graph.attention.recognize import Attention, Mask

#: The number that takes a score's place in a mask of each dtype: beside it no score is seen. A
#: GPU's kernels multiply it by log2(e), and that must be finite.
LOWEST = -1e30
LOWEST_OF = {"float64": LOWEST, "float32": LOWEST, "bfloat16": LOWEST}
#: The same where a row keeps a score.
FAR_OF = {**LOWEST_OF, "float16": -65504.0}


@attrs.frozen
class MaskPlan:
    """causal: each query sees the keys up to its own position. mask: what is added, a value of four
    dimensions, or None. rows: where a row of the result is the attention's; elsewhere it is
    `otherwise`. kept: where a row has a gradient; elsewhere numbers have replaced all its scores.
    None: everywhere. dropped: masks that are not looked at, as they change no score."""

    causal: bool = False
    mask: Value | None = None
    rows: Value | None = None
    kept: Value | None = None
    otherwise: float = math.nan
    dropped: int = 0

    @property
    def remark(self) -> str:
        """What a user is told of attention that is fused so."""
        told = "attention is one operator"
        if self.dropped:
            few = "a mask" if self.dropped == 1 else f"{self.dropped} masks"
            told += f", without {few} proven to leave all scores as they are"
        return f"{told}, whose mask is proven to be causal and not read" if self.causal else told


def planned(
    program: Program,
    attention: Attention,
    dtype: str,
    *,
    gradients: bool = False,
    lifts: bool = False,
) -> MaskPlan:
    """The plan for masks of `dtype`; adds to the program what computes it. gradients: they are
    asked for, too. lifts: the operator needs masks of which log2(e) times each element is finite,
    and doesn't say what a row without any key is. Raises NotAttention, before it adds anything."""
    masks = tuple(mask for mask in attention.masks if not _does_nothing(program, mask))
    dropped = len(attention.masks) - len(masks)
    if not masks:
        return MaskPlan(dropped=dropped)
    attention = attrs.evolve(attention, masks=masks)
    plan = _planned(program, attention, dtype, gradients, lifts)
    return attrs.evolve(plan, dropped=plan.dropped + dropped)


def _planned(
    program: Program, attention: Attention, dtype: str, gradients: bool, lifts: bool
) -> MaskPlan:
    """The plan for masks of which none is known by itself to do nothing."""
    for mask in attention.masks:
        if mask.number is not None and mask.number > HIGHEST_NUMBER:
            raise NotAttention(f"{mask.number:g} takes the place of scores, which is not far below")
    known = _known(program, attention)
    if known.nothing:
        return MaskPlan(dropped=len(attention.masks))
    if known.causal:
        return MaskPlan(causal=True)
    proven = known.highest > -math.inf
    _check(program, attention, proven or gradients, dtype)
    if gradients and known.highest <= HIGHEST_NUMBER:
        if any(mask.number is not None for mask in attention.masks):
            return _with_gradients(program, attention, dtype)
        if not all(_is_bounded(program, mask, -HIGHEST_NUMBER) for mask in attention.masks):
            raise NotAttention("what is added to its scores may be so low that they are not seen")
    mask = _combined(program, attention.masks, dtype)
    rows = None
    told = attention.safe and not lifts  # by the operator, whose rows without a key are 0
    if not (proven or told or all(_is_bounded(program, m) for m in attention.masks)):
        highest = program.emit("amax.default", mask, [-1], True)
        rows = program.emit("lt.Scalar", program.emit("abs.default", highest), math.inf)
    lowest = FAR_OF[dtype]
    if lifts and not proven and any(m.number is None for m in attention.masks):
        if not all(_is_bounded(program, m, -lowest) for m in attention.masks):
            mask = program.emit("clamp_min.default", mask, lowest)
    return MaskPlan(mask=mask, rows=rows, otherwise=_otherwise(attention))


def _otherwise(attention: Attention) -> float:
    """What a row without any key is."""
    return 0.0 if attention.safe else math.nan


def _with_gradients(program: Program, attention: Attention, dtype: str) -> MaskPlan:
    """The plan where numbers take scores' places, which then have no gradient, and may take those
    of a whole row: such a row's scores are made 0, whose softmax has the same gradient for the
    values, and one for the query and the keys that is left out."""
    infinite = {mask.number is not None and math.isinf(mask.number) for mask in attention.masks}
    if any(mask.number is None for mask in attention.masks) or len(infinite) > 1:
        raise NotAttention("masks of several kinds may leave a row without any key")
    lowest = FAR_OF[dtype]
    masks = tuple(attrs.evolve(mask, number=lowest) for mask in attention.masks)
    mask = _combined(program, masks, dtype)
    highest = program.emit("amax.default", mask, [-1], True)
    kept = program.emit("gt.Scalar", highest, lowest / 2)
    nothing = program.emit("full.default", [], 0.0, dtype=dtype)
    mask = program.emit("where.self", kept, mask, nothing)
    rows = kept if infinite == {True} else None
    return MaskPlan(mask=mask, rows=rows, kept=kept, otherwise=_otherwise(attention))


def _check(program: Program, attention: Attention, keeps: bool, dtype: str) -> None:
    """Refuse masks that a tensor added to the scores does not stand for. keeps: each row keeps a
    key, or what becomes of others is seen to."""
    replaced = False
    for mask in attention.masks:
        if mask.number is None:
            if replaced and not keeps:
                raise NotAttention("something is added to scores that a number has replaced")
            if not program.dtype(mask.tensor).startswith(("float", "bfloat")):
                raise NotAttention(f"a mask of {program.dtype(mask.tensor)} is added")
        elif math.isfinite(mask.number):
            replaced = True
            if dtype not in LOWEST_OF and not keeps:
                raise NotAttention(f"no {dtype} is so low that scores are not seen beside it")


def _combined(program: Program, masks: tuple[Mask, ...], dtype: str) -> Value:
    total: Value | None = None
    for mask in masks:
        tensor = aligned(program, mask)
        if mask.number is None:
            if program.dtype(tensor) != dtype:
                tensor = program.emit("_to_copy.default", tensor, dtype=dtype)
            if mask.factor != 1.0:
                tensor = program.emit("mul.Tensor", tensor, mask.factor)
            total = tensor if total is None else program.emit("add.Tensor", total, tensor)
            continue
        # A finite number becomes one beside which no score is seen: such a row has the mean of the
        # values, as one of equal scores.
        number = -math.inf if math.isinf(mask.number) else FAR_OF[dtype]
        off = program.emit("full.default", [], number, dtype=dtype)
        on = program.emit("full.default", [], 0.0, dtype=dtype) if total is None else total
        choices = (on, off) if mask.keeps else (off, on)
        total = program.emit("where.self", tensor, *choices)
    assert total is not None
    if program.last_stride(total) not in (0, 1):
        total = program.emit("clone.default", total, memory_format="contiguous_format")
    return total


def aligned(program: Program, mask: Mask) -> Value:
    """A mask with four dimensions: batch, heads, queries, keys."""
    value, rank = mask.tensor, len(mask.shape)
    if rank != len(program.shape(value)):
        value = program.emit("reshape.default", value, list(mask.shape))
    taken = [dim for dim in mask.slots if dim is not None]
    spare = [dim for dim in range(rank) if dim not in taken]
    missing = 4 - len(taken) - len(spare)
    if missing < 0:
        value = program.emit("squeeze.dims", value, spare[missing:])
        gone = spare[missing:]
        spare = spare[:missing]
        renumber = {d: d - sum(g < d for g in gone) for d in range(rank)}
        taken = [renumber[d] for d in taken]
        spare = [renumber[d] for d in spare]
        missing = 0
    for _ in range(missing):
        value = program.emit("unsqueeze.default", value, 0)
    taken = [d + missing for d in taken]
    spare = [*range(missing), *(d + missing for d in spare)]
    order = [spare.pop(0) if dim is None else taken.pop(0) for dim in mask.slots]
    if order != [0, 1, 2, 3]:
        value = program.emit("permute.default", value, order)
    return value


# -- what is known of a mask


def _is_bounded(program: Program, mask: Mask, limit: float = LARGEST) -> bool:
    """Whether a mask leaves no score at -inf, makes none NaN, and adds nothing beyond a limit."""
    if mask.number is not None:
        return math.isfinite(mask.number)
    reach = interval(program, mask.tensor)
    return reach is not None and all(abs(end * mask.factor) <= limit for end in reach)


def _does_nothing(program: Program, mask: Mask) -> bool:
    """Whether a mask leaves all scores as they are."""
    if mask.number is None:
        return interval(program, mask.tensor) == (0.0, 0.0)
    return interval(program, mask.tensor) == ((1.0, 1.0) if mask.keeps else (0.0, 0.0))


@attrs.frozen
class _MaskFacts:
    """What is known of masks: whether they leave all scores as they are, or are causal, and the
    least that a row's keys have at most (-inf: nothing is known)."""

    nothing: bool = False
    causal: bool = False
    highest: float = -math.inf


def _known(program: Program, attention: Attention) -> _MaskFacts:
    """What is known of masks that constants make."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        total = _evaluated(program, attention)
        if total is None:
            return _MaskFacts()
        highest = float(total.amax(-1).amin())
        highest = -math.inf if math.isnan(highest) else highest
        return _MaskFacts(bool((total == 0).all()), is_causal(total), highest)


def _evaluated(program: Program, attention: Attention) -> Any:
    """What all masks together add to the scores (-inf for a finite number, too), if constants
    alone make them, as a torch tensor of four dimensions; None otherwise."""
    import torch

    queries, keys = attention.sizes[2:]
    if not isinstance(queries, int) or not isinstance(keys, int):
        return None
    total = torch.zeros(1, 1, queries, keys)
    for mask in attention.masks:
        held = evaluated(program, mask.tensor)
        if held is None:
            return None
        held = held.reshape(mask.shape)
        for dim in range(held.dim() - 1, -1, -1):
            if dim not in mask.slots and held.shape[dim] == 1:
                held = held.squeeze(dim)
        places = sorted((dim, slot) for slot, dim in enumerate(mask.slots) if dim is not None)
        shape = [1] * 4
        for (_, slot), size in zip(places, held.shape, strict=True):
            shape[slot] = size
        if [slot for _, slot in places] != sorted(slot for _, slot in places):
            return None
        held = held.reshape(shape)
        if mask.number is None:
            total = total + held.float() * mask.factor
        else:
            total = total.masked_fill(~held.bool() if mask.keeps else held.bool(), -math.inf)
        if total.numel() > MOST_ELEMENTS:
            return None
    return total


__all__ = ["LOWEST", "MaskPlan", "aligned", "planned"]
