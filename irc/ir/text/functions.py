"""The text that func.func, kernel.func and host.func share, and that of their terminators.

    dialect.func @name(%x: T {info}, %n: index) -> (T {info}) attributes {...} { ... }
    func.func private @declared(T {info}, index) -> T

An entry of `info` that is irc's, as `strides`, is written `irc.strides`: MLIR wants a dialect
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Region, Value
from irc.ir.text.attribute_text import name_text
from irc.ir.types import FunctionType

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer

INFO = ("arg_info", "result_info")
VISIBILITIES = ("private", "nested", "public")
EMPTY = A.DictAttr({})
PREFIX = "irc."


def print_function(op: Operation, printer: Printer) -> None:
    """Write a function-like operation after its name."""
    name = op.attributes.get("sym_name")
    type_ = getattr(op.attributes.get("function_type"), "type", None)
    blocks = op.regions[0].blocks if len(op.regions) == 1 else []
    visibility = getattr(op.attributes.get("sym_visibility"), "value", "")
    if not (blocks or visibility == "private") or not isinstance(name, A.StringAttr):
        printer.default_form(op)
        return
    if not isinstance(type_, FunctionType):
        printer.default_form(op)
        return
    inputs = [a.type for a in blocks[0].arguments] if blocks else list(type_.inputs)
    hidden = {"sym_name"}
    if visibility in VISIBILITIES:
        hidden.add("sym_visibility")
        printer.text(f" {visibility}")
    if type_.inputs == tuple(inputs):
        hidden.add("function_type")
    infos = []
    for key, count in zip(INFO, (len(inputs), len(type_.results))):
        info = op.attributes.get(key)
        if _has_place(info, count):
            hidden.add(key)
        infos.append(info.elements if key in hidden else (EMPTY,) * count)  # type: ignore[union-attr]
    printer.text(f" @{name_text(name.value)}(")
    for number, input_type in enumerate(inputs):
        printer.text(", " if number else "")
        if blocks:
            printer.value(blocks[0].arguments[number])
            printer.text(": ")
        _print_type(printer, input_type, infos[0][number])
    printer.text(")")
    results = type_.results
    if results:
        bare = len(results) == 1 and infos[1][0] is EMPTY
        bare = bare and not isinstance(results[0], FunctionType)
        printer.text(" -> " if bare else " -> (")
        for number, result in enumerate(results):
            printer.text(", " if number else "")
            _print_type(printer, result, infos[1][number])
        printer.text("" if bare else ")")
    printer.attributes(op.attributes, hidden, "attributes")
    if blocks:
        printer.text(" ")
        printer.region(op.regions[0], header=False)


def _has_place(info: Attribute | None, count: int) -> bool:
    """Whether an info array can stand beside the types: dictionaries, one each, not all empty."""
    if not isinstance(info, A.ArrayAttr) or len(info) != count:
        return False
    entries = info.elements
    return all(isinstance(e, A.DictAttr) for e in entries) and any(e is not EMPTY for e in entries)


def _print_type(printer: Printer, type_: Type, info: Any) -> None:
    printer.type(type_)
    if info is not EMPTY:
        printer.text(" ")
        named = ((k if "." in k else PREFIX + k, v) for k, v in info.items)
        printer.attribute_dict(sorted(named, key=lambda entry: entry[0]))


def parse_function(cls: type[Operation], parser: Parser) -> Operation:
    """Read a function-like operation after its name."""
    visible = parser.kind == "word" and parser.token in VISIBILITIES
    if parser.kind != "at" and not visible:
        return parser.default_form(cls)
    head = parser.start
    attributes: dict[str, Attribute] = {}
    if visible:
        attributes["sym_visibility"] = A.StringAttr(parser.word())
    attributes["sym_name"] = A.StringAttr(parser.symbol_name())
    arguments: list[tuple[str, int, Type]] = []
    argument_info: list[A.DictAttr] = []
    old = False
    parser.expect("(")
    declared = False
    while not parser.at(")"):
        declared = visible and parser.kind != "value"
        arguments.append(("", 0, parser.type()) if declared else parser.argument())
        entry, bare = _optional_info(parser)
        argument_info.append(entry)
        old = old or bare
        if not parser.take(","):
            break
    parser.expect(")")
    results, result_info, bare = _parse_results(parser) if parser.take("->") else ([], [], False)
    old = old or bare
    for key, info in zip(INFO, (argument_info, result_info)):
        if any(entry is not EMPTY for entry in info):
            attributes[key] = A.ArrayAttr(info)
    type_ = FunctionType([t for _, _, t in arguments], results)
    attributes["function_type"] = A.TypeAttr(type_)
    start = parser.start
    for key, attr in parser.optional_attribute_dict("attributes").items():
        if key in attributes and key != "function_type":
            parser.fail(f"the attribute '{key}' is given twice", start)
        attributes[key] = attr
    without_body = declared or (visible and not parser.at("{"))
    region = Region([]) if without_body else parser.region(arguments)
    op = cls((), (), attributes, (region,))
    if old:
        parser.old_forms.append((head, op))
    return op


def _optional_info(parser: Parser) -> tuple[A.DictAttr, bool]:
    """The dictionary that is next, and whether it is of the old form, where irc's own entries had
    no dialect."""
    if not parser.at("{"):
        return EMPTY, False
    start = parser.start
    entries = parser.attribute_dict()
    plain = {key.removeprefix(PREFIX): value for key, value in entries.items()}
    if len(plain) < len(entries):
        parser.fail("an entry is given twice, with and without its dialect", start)
    return A.DictAttr(plain), any("." not in key for key in entries)


def _parse_results(parser: Parser) -> tuple[list[Type], list[A.DictAttr], bool]:
    """The types of results, their dictionaries, and whether one of these is of the old form."""
    if not parser.take("("):
        return [parser.type()], [EMPTY], False
    types: list[Type] = []
    infos: list[A.DictAttr] = []
    old = False
    while not parser.at(")"):
        types.append(parser.type())
        info, bare = _optional_info(parser)
        infos.append(info)
        old = old or bare
        if not parser.take(","):
            break
    parser.expect(")")
    return types, infos, old


def print_typed_values(op: Operation, printer: Printer) -> None:
    """Write ` %a, %b {...} : T, U`: a terminator with its operands."""
    if op.results or op.regions or op.successors:
        printer.default_form(op)
        return
    print_values(printer, op.operands)
    printer.attributes(op.attributes)
    if op.operands:
        printer.text(" : ")
        printer.types(v.type for v in op.operands)


def print_values(printer: Printer, values: Sequence[Value]) -> None:
    """Write ` %a, %b`."""
    if values:
        printer.text(" ")
        printer.values(values)


def parse_typed_values(cls: type[Operation], parser: Parser) -> Operation:
    """Read ` %a, %b {...} : T, U`; types in parentheses are accepted too."""
    names = parser.operand_names()
    attributes = parser.optional_attribute_dict()
    types: tuple[Type, ...] = ()
    if names:
        parser.expect(":")
        start = parser.start
        types = _several_types(parser)
        if len(types) != len(names):
            parser.fail(f"{len(types)} types for {len(names)} values", start)
    operands = [parser.use(name, place, t) for (name, place), t in zip(names, types)]
    return cls(operands, (), attributes)


def _several_types(parser: Parser) -> tuple[Type, ...]:
    """`T, U`, or the same in parentheses, which may begin a function's type, too."""
    if not parser.at("("):
        return parser.type_list()
    start = parser.start
    types = parser.parenthesized_types()
    if not parser.at("->"):
        return types
    parser.reset(start)
    return parser.type_list()
