"""The text of the func dialect's operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.dialects.func import ops
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.hooks import parses, prints
from irc.ir.text.functions import (
    parse_function,
    parse_typed_values,
    print_function,
    print_typed_values,
)

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer

prints(ops.FuncOp)(print_function)
parses(ops.FuncOp)(parse_function)
prints(ops.ReturnOp)(print_typed_values)
parses(ops.ReturnOp)(parse_typed_values)


@prints(ops.CallOp)
def print_call(op: ops.CallOp, printer: Printer) -> None:
    """Write a func.call after its name."""
    callee = op.attributes.get("callee")
    if not isinstance(callee, A.SymbolRefAttr):
        printer.default_form(op)
        return
    printer.text(f" {callee}(")
    printer.values(op.operands)
    printer.text(")")
    printer.attributes(op.attributes, ("callee",))
    printer.text(" : (")
    printer.types(v.type for v in op.operands)
    printer.text(") -> ")
    printer.result_types(r.type for r in op.results)


@parses(ops.CallOp)
def parse_call(cls: type[Operation], parser: Parser) -> Operation:
    """Read a func.call after its name."""
    if parser.kind != "at":
        return parser.default_form(cls)
    callee = A.SymbolRefAttr(parser.symbol_name())
    parser.expect("(")
    names = parser.operand_names()
    parser.expect(")")
    attributes = {**parser.optional_attribute_dict(), "callee": callee}
    parser.expect(":")
    start = parser.start
    type_ = parser.function_type()
    if len(type_.inputs) != len(names):
        parser.fail(f"{len(type_.inputs)} types for {len(names)} operands", start)
    operands = [parser.use(*name, t) for name, t in zip(names, type_.inputs)]
    return cls(operands, type_.results, attributes)
