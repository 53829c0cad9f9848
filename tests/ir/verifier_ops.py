"""Operations of their own for the tests of the verifier, and how these ask it."""

from __future__ import annotations

from irc.ir import attributes as A
from irc.ir import parse, verify
from irc.ir import types as T
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import (
    Op,
    attribute,
    of,
    operand,
    optional_operand,
    region,
    result,
    variadic_operand,
    variadic_region,
    variadic_result,
)
from irc.ir.diagnostics import InvalidIR
from irc.ir.registry import unregistered_op
from irc.ir.symbols import symbol
from irc.ir.traits import (
    Declarable,
    IsolatedFromAbove,
    NoTerminator,
    SameOperandsAndResultType,
    SymbolOp,
    SymbolTable,
    Terminator,
)


class Groups(Op):
    """One operand, maybe another one, and any number of others.

    `"testverify.groups"(%0) {operandSegmentSizes = array<i64: 1, 0, 0>} : (i32) -> ()`
    """

    name = "testverify.groups"
    first = operand(of(T.IntegerType))
    second = optional_operand(of(T.FloatType))
    rest = variadic_operand(of(T.IndexType))


class Some(Op):
    """A number and any number of results after it.

    `%0 = testverify.some : i32`
    """

    name = "testverify.some"
    first = result(of(T.IntegerType))
    rest = variadic_result(of(T.FloatType))


class Holder(Op):
    """Regions that need a block and its end; a word and a number.

    `testverify.holder`
    """

    name = "testverify.holder"
    word = attribute(A.StringAttr, optional=True, words=("one", "two"))
    number = attribute(A.IntegerAttr, optional=True)
    regions_ = variadic_region()


class Loose(Op):
    """A block that may end with anything, or be absent.

    `testverify.loose`
    """

    name = "testverify.loose"
    traits = frozenset({NoTerminator, Declarable, IsolatedFromAbove, SymbolTable})
    regions_ = variadic_region()


class Inner(Op):
    """Stands in a holder; has no results.

    `testverify.inner`
    """

    name = "testverify.inner"
    parents = ("testverify.holder",)


class End(Op):
    """Ends a block; may go on to others.

    `testverify.end`
    """

    name = "testverify.end"
    traits = frozenset({Terminator})


class Named(Op):
    """May have a name.

    `testverify.named`
    """

    name = "testverify.named"
    traits = frozenset({SymbolOp})


class Sized(Op):
    """Binds the symbol that it names for its block.

    `testverify.sized`
    """

    name = "testverify.sized"
    traits = frozenset({IsolatedFromAbove, SymbolOp, NoTerminator})
    regions_ = variadic_region()

    def local_symbols(self):
        return [a.value for a in (self.attributes.get("name"),) if a is not None]


class Axes(Op):
    """Declares the symbol that it names for its regions and its own attributes.

    `testverify.axes`
    """

    name = "testverify.axes"
    regions_ = variadic_region()

    def local_symbols(self):
        return [self.attributes["name"].value]


class Careful(Op):
    """Refuses itself.

    `testverify.careful`
    """

    name = "testverify.careful"

    def verify_op(self):
        self.fail("refused by verify_op")


class Factual(Op):
    """Refuses the facts about symbols.

    `testverify.factual`
    """

    name = "testverify.factual"

    def verify_facts(self, facts):
        self.fail("refused by verify_facts")


class Referring(Op):
    """Refuses what it refers to.

    `testverify.referring`
    """

    name = "testverify.referring"

    def verify_references(self):
        self.fail("refused by verify_references")


class Changes(Op):
    """Any result of a number.

    `%1 = testverify.changes %0 : i32 to f32`
    """

    name = "testverify.changes"
    input = operand(of(T.IntegerType))
    output = result()


class Alike(Op):
    """Two operands and a result of one type.

    `%2 = testverify.alike %0, %1 : i32`
    """

    name = "testverify.alike"
    traits = frozenset({SameOperandsAndResultType})
    parents = ("testverify.holder",)
    first = operand()
    second = operand()
    output = result()


class AlikeGroups(Op):
    """Groups of operands and a result of one type.

    `%1 = "testverify.alike_groups"(%0) {operandSegmentSizes = array<i64: 1, 0>} : (i32) -> i32`
    """

    name = "testverify.alike_groups"
    traits = frozenset({SameOperandsAndResultType})
    first = optional_operand()
    rest = variadic_operand()
    output = result()


class AlikeBody(Op):
    """An operand, a result of its type, and a region.

    `testverify.alike_body`
    """

    name = "testverify.alike_body"
    traits = frozenset({SameOperandsAndResultType})
    input = operand()
    output = result()
    body = region()


class AlikeMany(Op):
    """Two numbers before any number of operands, and before any number of results.

    `testverify.alike_many`
    """

    name = "testverify.alike_many"
    first = operand(of(T.IntegerType))
    second = operand(of(T.IntegerType))
    rest = variadic_operand(of(T.FloatType))
    third = result(of(T.IntegerType))
    fourth = result(of(T.IntegerType))
    others = variadic_result(of(T.FloatType))


class Middle(Op):
    """Any number of operands between two.

    `testverify.middle`
    """

    name = "testverify.middle"
    first = operand(of(T.IntegerType))
    rest = variadic_operand(of(T.FloatType))
    last = operand(of(T.IndexType))


class Silent(Op):
    """Operands of one type, and no result.

    `testverify.silent`
    """

    name = "testverify.silent"
    traits = frozenset({SameOperandsAndResultType})
    first = operand()
    second = operand()


SIZED_TYPE = T.TensorType([symbol("s0")], T.f32)
Thing = unregistered_op("t.thing")


def refused(op: Operation, **options: bool) -> str:
    """What is wrong with `op`; "" for nothing."""
    try:
        verify(op, **options)
    except InvalidIR as error:
        return str(error)
    return ""


def check(op: Operation, error: str | None) -> None:
    message = refused(op)
    assert (error in message) if error is not None else not message, message


def holder(*blocks: Block, cls: type[Operation] = Holder) -> Operation:
    return cls((), (), {}, [Region(list(blocks))])


def block(*ops: Operation, end: bool = True) -> Block:
    made = Block()
    for op in (*ops, End()) if end else ops:
        made.append(op)
    return made


def text(lines: str) -> Operation:
    return parse(lines, "test.mlir", allow_unregistered=True)
