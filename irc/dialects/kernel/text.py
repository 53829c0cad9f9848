"""The text of the kernel dialect's operations.

    %s = kernel.for %j = %lo to %hi step %c iter_args(%a = %zero) -> (f32) attributes {...} { ... }
    %r = kernel.if %c -> (f32) { ... } else { ... }
    %v = kernel.load %p[%i] (where %m else %o) : vector<16xf32>
    kernel.store %v, %p[%i] (where %m) : vector<16xf32>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.dialects.kernel import ops
from irc.dialects.loop.text import parse_mask, print_mask
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.definition import SEGMENTS
from irc.ir.hooks import parses, prints
from irc.ir.text.functions import (
    parse_function,
    parse_typed_values,
    print_function,
    print_typed_values,
)
from irc.ir.types import index

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer


prints(ops.KernelFuncOp)(print_function)
parses(ops.KernelFuncOp)(parse_function)
prints(ops.KernelYieldOp)(print_typed_values)
parses(ops.KernelYieldOp)(parse_typed_values)


def _one_block(region: Region) -> bool:
    return len(region.blocks) == 1


@prints(ops.ForOp)
def print_for(op: Any, printer: Printer) -> None:
    """Write a kernel.for after its name."""
    operands, results = op.operands, op.results
    types = [r.type for r in results]
    plain = len(operands) == 3 + len(results) and _one_block(op.regions[0])
    if plain:
        plain = [a.type for a in op.block.arguments] == [index, *types]
        plain = plain and [v.type for v in operands[3:]] == types
    if not plain:
        printer.default_form(op)
        return
    arguments = op.block.arguments
    printer.text(" ")
    printer.value(arguments[0])
    for word, bound in zip((" = ", " to ", " step "), operands[:3]):
        printer.text(word)
        printer.value(bound)
    if results:
        printer.text(" iter_args(")
        for number, (argument, initial) in enumerate(zip(arguments[1:], operands[3:])):
            printer.text(", " if number else "")
            printer.value(argument)
            printer.text(" = ")
            printer.value(initial)
        printer.text(") -> (")
        printer.types(types)
        printer.text(")")
    printer.attributes(op.attributes, (), "attributes")
    printer.text(" ")
    printer.region(op.regions[0], header=False)


@parses(ops.ForOp)
def parse_for(cls: type[Operation], parser: Parser) -> Operation:
    """Read a kernel.for after its name."""
    if parser.kind != "value":
        parser.fail_expecting("the loop's variable")
    first, start = parser.token, parser.start
    parser.advance()
    if parser.at(","):  # the default form lists all operands
        parser.reset(start)
        return parser.default_form(cls)
    parser.expect("=")
    operands = [parser.value(index)]
    parser.expect("to")
    operands.append(parser.value(index))
    parser.expect("step")
    operands.append(parser.value(index))
    arguments: list[tuple[str, int, Type]] = [(first, start, index)]
    types: tuple[Type, ...] = ()
    if parser.take("iter_args"):
        carried = _carried(parser)
        parser.expect("->")
        place = parser.start
        types = parser.parenthesized_types()
        if len(types) != len(carried):
            parser.fail(f"{len(types)} types for {len(carried)} carried values", place)
        for (name, at, initial, used_at), type_ in zip(carried, types):
            operands.append(parser.use(initial, used_at, type_))
            arguments.append((name, at, type_))
    attributes = parser.optional_attribute_dict("attributes")
    return cls(operands, types, attributes, (parser.region(arguments),))


def _carried(parser: Parser) -> list[tuple[str, int, str, int]]:
    """`(%a = %x, %b = %y)`: names and offsets of both."""
    carried = []
    parser.expect("(")
    while not parser.at(")"):
        if parser.kind != "value":
            parser.fail_expecting("a carried value '%name = %initial'")
        name, at = parser.token, parser.start
        parser.advance()
        parser.expect("=")
        if parser.kind != "value":
            parser.fail_expecting("a value '%name'")
        carried.append((name, at, parser.token, parser.start))
        parser.advance()
        if not parser.take(","):
            break
    parser.expect(")")
    return carried


@prints(ops.IfOp)
def print_if(op: Any, printer: Printer) -> None:
    """Write a kernel.if after its name."""
    regions = op.regions
    plain = len(op.operands) == 1 and len(regions) == 2
    if not plain or any(not _one_block(r) or r.blocks[0].arguments for r in regions):
        printer.default_form(op)
        return
    printer.text(" ")
    printer.value(op.operands[0])
    if op.results:
        printer.text(" -> (")
        printer.types(r.type for r in op.results)
        printer.text(")")
    printer.attributes(op.attributes, (), "attributes")
    printer.text(" ")
    printer.region(regions[0], header=False)
    printer.text(" else ")
    printer.region(regions[1], header=False)


@parses(ops.IfOp)
def parse_if(cls: type[Operation], parser: Parser) -> Operation:
    """Read a kernel.if after its name. A missing `else` yields nothing."""
    start = parser.start
    condition = parser.operand_names()
    if len(condition) != 1 or parser.kind == "mark" and parser.token not in ("->", "{"):
        parser.reset(start)
        return parser.default_form(cls)
    if parser.at("{") and parser.is_attribute_dict():
        parser.reset(start)
        return parser.default_form(cls)
    types = parser.parenthesized_types() if parser.take("->") else ()
    attributes = parser.optional_attribute_dict("attributes")
    then_region = parser.region()
    if parser.take("else"):
        else_region = parser.region()
    else:
        block = Block()
        block.append(ops.KernelYieldOp())
        else_region = Region([block])
    operand = parser.use(*condition[0])
    return cls((operand,), types, attributes, (then_region, else_region))


# -- memory


def _print_place(op: Any, printer: Printer, offset: Value) -> None:
    printer.value(op.pointer)
    printer.text("[")
    printer.value(offset)
    printer.text("]")
    print_mask(op, printer)


def _parse_place(parser: Parser) -> tuple[Value, Value]:
    pointer = parser.value()
    parser.expect("[")
    offset = parser.value()
    parser.expect("]")
    return pointer, offset


def _has_segments(op: Operation, count: int) -> bool:
    sizes = op.attributes.get(SEGMENTS)
    return isinstance(sizes, A.DenseIntsAttr) and len(sizes) == count


@prints(ops.LoadOp, ops.GatherOp, ops.LoadStridedOp)
def print_load(op: Any, printer: Printer) -> None:
    """Write a kernel.load, kernel.gather or kernel.load_strided after its name."""
    if not _has_segments(op, 4):
        printer.default_form(op)
        return
    printer.text(" ")
    _print_place(op, printer, op.operands[1])
    printer.attributes(op.attributes, (SEGMENTS,))
    printer.text(" : ")
    printer.type(op.results[0].type)


@parses(ops.LoadOp, ops.GatherOp, ops.LoadStridedOp)
def parse_load(cls: type[Operation], parser: Parser) -> Operation:
    """Read a kernel.load, kernel.gather or kernel.load_strided after its name."""
    pointer, offset = _parse_place(parser)
    mask, other = parse_mask(parser)
    attributes = parser.optional_attribute_dict()
    attributes[SEGMENTS] = A.DenseIntsAttr((1, 1, int(mask is not None), int(other is not None)))
    operands = [pointer, offset, *[v for v in (mask, other) if v is not None]]
    parser.expect(":")
    return cls(operands, (parser.type(),), attributes)


@prints(ops.StoreOp, ops.ScatterOp)
def print_store(op: Any, printer: Printer) -> None:
    """Write a kernel.store or kernel.scatter after its name."""
    printer.text(" ")
    printer.value(op.stored)
    printer.text(", ")
    _print_place(op, printer, op.operands[2])
    printer.attributes(op.attributes)
    printer.text(" : ")
    printer.type(op.stored.type)


@parses(ops.StoreOp, ops.ScatterOp)
def parse_store(cls: type[Operation], parser: Parser) -> Operation:
    """Read a kernel.store or kernel.scatter after its name."""
    if parser.kind != "value":
        parser.fail_expecting("a value '%name'")
    stored, start = parser.token, parser.start
    parser.advance()
    parser.expect(",")
    pointer, offset = _parse_place(parser)
    place = parser.start
    mask, other = parse_mask(parser)
    if other is not None:
        parser.fail("a store has no 'else'", place)
    attributes: dict[str, Attribute] = parser.optional_attribute_dict()
    parser.expect(":")
    value = parser.use(stored, start, parser.type())
    operands = [value, pointer, offset, *([] if mask is None else [mask])]
    return cls(operands, (), attributes)
