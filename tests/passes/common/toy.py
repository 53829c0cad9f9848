"""Operations with every effect, a region or more blocks: what the common passes must respect."""

from __future__ import annotations

from irc.dialects.func import FuncOp
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import Op, operand, region, result, variadic_operand
from irc.ir.module import ModuleOp
from irc.ir.traits import (
    AllocatesMemory,
    Commutative,
    IsolatedFromAbove,
    NoTerminator,
    Pure,
    ReadsMemory,
    SameOperandsAndResultType,
    Terminator,
    WritesMemory,
)


class _Value(Op, abstract=True):
    input = operand()
    output = result()


class PureValue(_Value):
    """A function of its operand."""

    name = "toycommon.pure"
    traits = frozenset({Pure})


class Read(_Value):
    """Reads memory."""

    name = "toycommon.read"
    traits = frozenset({ReadsMemory})


class Write(_Value):
    """Writes memory, reads none."""

    name = "toycommon.write"
    traits = frozenset({WritesMemory})


class Update(_Value):
    """Reads and writes memory."""

    name = "toycommon.update"
    traits = frozenset({ReadsMemory, WritesMemory})


class Alloc(_Value):
    """Makes memory."""

    name = "toycommon.alloc"
    traits = frozenset({AllocatesMemory})


class Opaque(_Value):
    """Of which nothing is said."""

    name = "toycommon.opaque"


class Asked(_Value):
    """Pure, but each operation says whether it may go."""

    name = "toycommon.asked"
    traits = frozenset({Pure})

    def is_removable(self) -> bool:
        return "kept" not in self.attributes


class Yielding(_Value):
    """A terminator that is pure and has a result: neither merged nor removed."""

    name = "toycommon.yielding"
    traits = frozenset({Pure, Terminator})


class Mark(Op):
    """Pure, without a result: what it marks is no value."""

    name = "toycommon.mark"
    traits = frozenset({Pure})
    input = operand()


class Pair(Op):
    """Two functions of the operand."""

    name = "toycommon.pair"
    traits = frozenset({Pure})
    input = operand()
    first = result()
    second = result()


class Difference(Op):
    """A pure operation whose operands can't be exchanged."""

    name = "toycommon.difference"
    traits = frozenset({Pure, SameOperandsAndResultType})
    lhs = operand()
    rhs = operand()
    output = result()


class Total(Op):
    """A pure operation whose operands can be exchanged."""

    name = "toycommon.total"
    traits = frozenset({Pure, Commutative, SameOperandsAndResultType})
    lhs = operand()
    rhs = operand()
    output = result()


class Scope(Op):
    """A region that sees what is outside."""

    name = "toycommon.scope"
    traits = frozenset({NoTerminator})
    body = region()


class Isolated(Op):
    """A region that sees nothing from outside."""

    name = "toycommon.isolated"
    traits = frozenset({NoTerminator, IsolatedFromAbove})
    body = region()


class Use(Op):
    """Keeps its operands alive."""

    name = "toycommon.use"
    traits = frozenset({WritesMemory})
    inputs = variadic_operand()


def empty() -> tuple[ModuleOp, Block, Builder]:
    """A module with a function of two i64, its block, and a builder at its end."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [T.i64, T.i64], [])
    module.block.append(function)
    return module, function.block, Builder.at_end(function.block)


def scope(builder: Builder, kind: type[Operation] = Scope, blocks: int = 1) -> list[Builder]:
    """A new operation with a region of so many blocks, and a builder at the end of each."""
    made = [Block() for _ in range(blocks)]
    builder.insert(kind((), (), {}, [Region(made)]))
    return [Builder.at_end(block) for block in made]


def count(module: Operation, kind: type[Operation]) -> int:
    """How many operations of a class are inside."""
    return sum(isinstance(op, kind) for op in module.walk())
