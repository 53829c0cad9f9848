"""Ranges of a size, in which alone an operation runs: `when = #sym.range<s0 * s1, 17, 256>`.

    %a = host.launch %x {callee = @k0, when = #sym.range<s0, 0, 16>} : ...
    %b = host.launch %x {callee = @k1, when = #sym.range<s0, 17>} : ...
    %y = sym.choose %a, %b : ...

An operation of a function's block that may have a range (trait `RunsInRange`: computes, groups,
launches, calls, copies) does nothing where the size is not in it, and its results may be anything:
only operations with a range inside its own read them, and `sym.choose`, whose operands' ranges
cover all sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irc.ir import attributes as A
from irc.ir.core import Block, Operation
from irc.ir.definition import Op, of, result, variadic_operand
from irc.ir.diagnostics import InvalidIR
from irc.ir.hooks import parses_parameters, prints_parameters
from irc.ir.registry import register_attribute
from irc.ir.symbols import Dim, format_dim
from irc.ir.traits import MayAlias, MemoryView, Pure, RunsInRange
from irc.ir.types import TensorType

WHEN = "when"
"""The attribute that says in which range of a size an operation runs."""


@register_attribute
class RangeAttr(A.Attribute):
    """The sizes from `least` to `most` (None: all from `least` on). `#sym.range<s0, 17, 256>`."""

    __slots__ = ()
    dialect = "sym"
    mnemonic = "range"
    fields = ("size", "least", "most")
    size: Dim
    least: int
    most: int | None

    def validate(self) -> None:
        if self.least < 0 or (self.most is not None and self.most < self.least):
            raise ValueError(f"no size is from {self.least} to {self.most}")

    def holds(self, size: int) -> bool:
        """Whether a size is in the range."""
        return self.least <= size and (self.most is None or size <= self.most)

    def contains(self, other: RangeAttr) -> bool:
        """Whether each size of another range is in this one."""
        ends = self.most is None or (other.most is not None and other.most <= self.most)
        return self.size == other.size and self.least <= other.least and ends


@prints_parameters(RangeAttr)
def _print_range(attr: Any, writer: Any) -> None:
    end = "" if attr.most is None else f", {attr.most}"
    writer.text(f"{format_dim(attr.size)}, {attr.least}{end}")


@parses_parameters(RangeAttr)
def _parse_range(cls: type[A.Attribute], parser: Any) -> A.Attribute:
    start, size = parser.start, parser.dim()
    parser.expect(",")
    least = parser.integer()
    most = parser.integer() if parser.take(",") else None
    return parser.build(start, cls, size, least, most)  # type: ignore[no-any-return]


class ChooseOp(Op):
    """The operand whose operation runs: that with the range (`when`) that the size is in.

    The operands are results of different operations. Their ranges are of one size, in order, and
    cover all sizes from 0 on, each once.

    `%y = sym.choose %a, %b : (tensor<[s0] x f32>, tensor<[s0] x f32>) -> tensor<[s0] x f32>`
    """

    name = "sym.choose"
    traits = frozenset({MayAlias, Pure})
    arms = variadic_operand(of(TensorType))
    chosen = result(of(TensorType))

    def verify_op(self) -> None:
        for value in self.operands:
            if value.type is not self.chosen.type:
                self.fail(f"chooses {self.chosen.type} among others, as {value.type}")
            if when_of(value.defining_op) is None:
                self.fail(f"{value.described} is made for all sizes: what makes it has no 'when'")
        reason = gap_in([r for v in self.operands if (r := when_of(v.defining_op))])
        if reason:
            self.fail(reason)


def when_of(op: Operation | None) -> RangeAttr | None:
    """In which range of a size alone an operation runs; None for all sizes."""
    when = None if op is None else op.attributes.get(WHEN)
    return when if isinstance(when, RangeAttr) else None


def range_entry(op: Operation) -> dict[str, A.Attribute]:
    """The entry that says in which range an operation runs, for another that stands for it."""
    return {WHEN: op.attributes[WHEN]} if WHEN in op.attributes else {}


def gap_in(ranges: Sequence[RangeAttr]) -> str:
    """Why ranges don't cover all sizes in their order, each once; "" where they do."""
    begin: int | None = 0
    for each in ranges:
        if each.size != ranges[0].size:
            return f"its ranges are of two sizes, {ranges[0].size} and {each.size}"
        if each.least != begin:
            where = "behind the last size" if begin is None else f"at {begin}"
            return f"a range begins at {each.least}, the next {where}"
        begin = None if each.most is None else each.most + 1
    return "" if begin is None else f"no range has sizes from {begin} on"


def covers(ranges: Iterable[RangeAttr], whole: RangeAttr | None) -> bool:
    """Whether each size of a range (None: of all) is in one of some ranges of that size."""
    ranges = list(ranges)
    if whole is None:
        sizes = {each.size for each in ranges}
        return any(covers(ranges, RangeAttr(size, 0, None)) for size in sizes)
    begin: int | None = whole.least
    for each in sorted(ranges, key=lambda each: each.least):
        if begin is None:
            break
        if each.size != whole.size or each.least > begin:
            continue
        if each.most is None:
            return True
        begin = max(begin, each.most + 1)
    return whole.most is not None and begin is not None and begin > whole.most


def verify_ranges(block: Block) -> None:
    """What the operations of a function make in a range alone is read in that range alone, and no
    operation has a range that can't. Raises InvalidIR."""
    for op in block.ops:
        if WHEN in op.attributes:
            _verify_range(op)


def _verify_range(op: Operation) -> None:
    own = op.attributes[WHEN]
    if not isinstance(own, RangeAttr):
        raise InvalidIR(f"runs {WHEN} {own}, which is no #sym.range", op=op)
    if RunsInRange not in op.traits:
        raise InvalidIR(f"has {WHEN} = {own}, but runs for all sizes: computes, groups, launches, "
                        "calls and copies have ranges", op=op)  # fmt: skip
    for user in (user for value in op.results for user in value.users):
        reader = _beside(user, op)
        inside = when_of(reader)
        if isinstance(reader, ChooseOp) or (inside is not None and own.contains(inside)):
            continue
        if MemoryView in reader.traits:
            continue  # another handle on memory, which reads nothing
        raise InvalidIR(f"runs for sizes in {own} alone, but {reader.name} reads its results for "
                        "others, too", op=op)  # fmt: skip


def _beside(user: Operation, op: Operation) -> Operation:
    """The operation of the same block in which a result is read."""
    while user.parent is not op.parent and user.parent_op is not None:
        user = user.parent_op
    return user


__all__ = [
    "WHEN", "ChooseOp", "RangeAttr", "covers", "gap_in", "range_entry", "verify_ranges", "when_of",
]  # fmt: skip
