"""The pass `split-signs`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from irc.dialects import func, sym
from irc.ir.builder import Builder
from irc.ir.core import Operation
from irc.ir.mentions import mentioned_symbols
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.renaming import rename_symbols
from irc.ir.symbols import Dim, dim_sum, maximum, symbol

INT64_MIN = -(2**63)


@register_pass
class SplitSigns(Pass):
    """Writes each symbol that may be negative as one that is not less another, so that every
    symbol in a size, an index or a bound is at least 0: what the passes behind this one assume.

    A position that a caller gives (`x[i]`) and a number read from data may be negative; a size
    can't. The symbol itself stays bound, and only the values of the two new ones mention it; one
    of them is enough where its range tells the sign.

    Before:
        %i = sym.bind %arg0 {maximum = -1, symbol = "s0"} : (index) -> index
        %v = sym.value {dim = #sym<s0 + 5>} : index
    After:
        %i = sym.bind %arg0 {maximum = -1, symbol = "s0"} : (index) -> index
        %0 = sym.value {dim = #sym<-s0>} : index
        %1 = sym.bind %0 {minimum = 1, symbol = "s0_below"} : (index) -> index
        %v = sym.value {dim = #sym<-s0_below + 5>} : index
    """

    name = "split-signs"
    summary = "symbols that may be negative become differences of some that are not"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        bound = [b for b in op.block.ops if isinstance(b, sym.Binder)]
        signed = [b for b in bound if isinstance(b, sym.BindOp) and _may_be_negative(b)]
        if not signed:
            return
        mentioned = _mentioned(op)
        taken = {binder.symbol for binder in bound}
        split: list[tuple[sym.BindOp, list[Part]]] = []
        mapping: dict[str, Dim] = {}
        for binder in signed:
            if binder.symbol in mentioned:
                parts = _parts(binder, taken)
                split.append((binder, parts))
                mapping[binder.symbol] = dim_sum([p.sign * symbol(p.name) for p in parts])
        rename_symbols(op, mapping)
        for binder, parts in split:
            _bind(binder, parts)
            context.count("symbols split")
        op.refresh_type()


@attrs.frozen
class Part:
    """A symbol that stands for how far another one is above 0 (sign 1) or below it (-1)."""

    name: str
    sign: int
    value: Dim
    minimum: int
    maximum: int | None


def _may_be_negative(binder: sym.BindOp) -> bool:
    return binder.minimum is None or binder.minimum < 0


def _mentioned(function: func.FuncOp) -> set[str]:
    """The symbols that are more than what others are bound to."""
    symbols: set[str] = set()
    for op in function.walk():
        if isinstance(op, sym.ValueOp) and all(
            isinstance(user, sym.BindOp) for user in op.results[0].users
        ):
            continue
        for attribute in op.attributes.values():
            symbols |= mentioned_symbols(attribute)
        for value in op.results:
            symbols |= mentioned_symbols(value.type)
    return symbols


def _parts(binder: sym.BindOp, taken: set[str]) -> list[Part]:
    low, high = binder.minimum, binder.maximum
    whole = symbol(binder.symbol)
    lowest = None if low is None or low <= INT64_MIN else -low
    below = _fresh(f"{binder.symbol}_below", taken)
    if high is not None and high < 0:
        return [Part(below, -1, -whole, -high, lowest)]
    above = _fresh(f"{binder.symbol}_above", taken)
    return [
        Part(above, 1, maximum(whole, 0), 0, high),
        Part(below, -1, maximum(-whole, 0), 0, lowest),
    ]


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _bind(binder: sym.BindOp, parts: Sequence[Part]) -> None:
    builder = Builder.after(binder)
    for part in parts:
        computed = builder.value(sym.ValueOp, dim=part.value)
        hint = None if binder.hint is None else max(part.sign * binder.hint, 0)
        builder.create(
            sym.BindOp, computed, symbol=part.name, minimum=part.minimum, maximum=part.maximum,
            hint=hint,
        )  # fmt: skip
