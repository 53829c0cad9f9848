"""Reading operations, in irc's default form, in MLIR's generic one, or by their own hooks.

Lines that repeat the rest of an earlier line (same operation, attributes and types) are read by
one regular expression and a table; whatever does not match goes the long way, which also makes
all error messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from irc.ir import attributes as A
from irc.ir.arity import arity_error
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import SEGMENTS, Op, needs_segments
from irc.ir.diagnostics import UserError
from irc.ir.location import UNKNOWN, FileLocation, Location
from irc.ir.registry import (
    DIALECT_MODULES,
    known_names,
    load_dialect,
    lookup_op,
    unregistered_op,
)
from irc.ir.segments import implied_segments
from irc.ir.text.attribute_parser import AttributeParser
from irc.ir.text.generic_form import irc_form
from irc.ir.text.lexer import Lexer
from irc.ir.text.scope_parser import MAX_NAME, ScopeParser
from irc.ir.traits import ConstantLike, IsolatedFromAbove, SameOperandsAndResultType

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser

# results, quoted name, bare name, operands, the rest up to the line's end or the next `%`; then
# white space and the start of another operation, so that nothing of this one can follow. The rest
# is bounded, so that many operations on one long line don't each look for its end.
LINE = re.compile(
    r"(?:(%[\w$.]++(?:, %[\w$.]++){0,40}+) = )?+"
    r'(?:"([\w$.]++)"\(|([A-Za-z_]\w*+\.[\w$.]++) ?+)'
    r"(%[\w$.#]++(?:, %[\w$.#]++){0,40}+)?+"
    r"([^\n%]{0,400}+)(?:\n[ \t\r\n]*+|(?=%))(?=[%}\"^A-Za-z_])(?!loc\b)",
    re.A,
)
# Operations that MLIR's text names without their dialect.
KEYWORDS = {"module": "builtin.module", "return": "func.return", "call": "func.call"}
ATTRIBUTES_START = re.compile(r'\{\s*(?:[A-Za-z_][\w$]*\s*[=,}]|"[^"\n]*"\s*=)')
# What a rest of line means: class, operand types, result types, attributes.
LineForm = tuple[type[Operation], tuple[Type, ...], tuple[Type, ...], dict[str, Attribute]]


class OperationParser:
    """Reads operations and files of them; `parse_custom` methods of operations get `face`."""

    def __init__(self, lexer: Lexer, attributes: AttributeParser, face: Parser) -> None:
        self.lexer, self.filename = lexer, lexer.filename
        self.attributes, self.types = attributes, attributes.types
        self.scopes = ScopeParser(lexer, attributes, self.operations)
        self.face = face
        self.line_forms: dict[str, dict[str, LineForm]] = {}
        self.declared: dict[str, type[Operation]] = {}
        self.late_locations: list[tuple[Operation, str, int]] = []
        self.line_form: LineForm | None = None
        self.head: tuple[int, list[tuple[str, int, int]]] = (0, [])
        self.line = 1
        self.line_start = 0
        self.line_known = 0
        self.old_forms: list[tuple[int, Operation]] = []

    # -- the file

    def file(self) -> Block:
        """All of the text: definitions of aliases, and operations."""
        lexer, attributes, scopes = self.lexer, self.attributes, self.scopes
        block = Block()
        scopes.open_blocks.append(block)
        while True:
            self.operations(block)
            if lexer.kind == "end":
                break
            if lexer.kind not in ("hash", "bang"):
                lexer.fail_expecting("an operation or a definition '#name = ...'")
            self._alias()
        scopes.check_forward()
        for op, alias, start in self.late_locations:
            location = attributes.aliases.get(alias)
            if not isinstance(location, Location):
                lexer.fail(f"the location '{alias}' is not defined", start)
            attributes.spend(location, start)
            op.location = location
        return block

    def _alias(self) -> None:
        lexer, attributes = self.lexer, self.attributes
        name, start, kind = lexer.token, lexer.start, lexer.kind
        if "." in name:
            lexer.fail("expected an operation or a definition '#name = ...'")
        if name in attributes.aliases:
            lexer.fail(f"'{name}' is defined twice")
        lexer.advance()
        lexer.expect("=")
        value = self.types.type() if kind == "bang" else attributes.attribute()
        if name == "#sym":
            lexer.fail("'#sym' can't be redefined", start)
        attributes.aliases[name] = value

    # -- operations

    def operations(self, block: Block) -> None:
        """Operations up to a token that starts none."""
        lexer = self.lexer
        match_line = LINE.match
        text, forms, append = lexer.text, self.line_forms, block.append
        position = lexer.start
        while True:
            match = match_line(text, position)
            if match is not None:
                op = self._known_line(match, forms, position)
                if op is not None:
                    append(op)
                    position = match.end()
                    continue
            if lexer.start != position:
                lexer.reset(position)
            if lexer.kind not in ("value", "word", "string"):
                return
            self.line_form = None
            append(self.op())
            form = self.line_form
            if form is not None and match is not None and match.end() == lexer.start:
                _, quoted, bare, _, rest = match.groups()
                forms.setdefault(quoted or bare, {})[rest] = form
            position = lexer.start

    def _known_line(
        self, match: re.Match[str], forms: dict[str, dict[str, LineForm]], position: int
    ) -> Operation | None:
        """The operation of a line whose rest was read before; None if it takes the long way."""
        results, quoted, bare, operands, rest = match.groups()
        of_name = forms.get(quoted or bare)
        if of_name is None:
            return None
        form = of_name.get(rest)
        if form is None or self.scopes.forward:
            return None
        cls, inputs, outputs, attributes = form
        names = self.scopes.names
        try:
            values = [names[n] for n in operands.split(", ")] if operands else ()
        except KeyError:
            return None
        if tuple([v.type for v in values]) != inputs:
            return None
        if len(outputs) == 1:
            if results is None or results in names or "," in results:
                return None
            op = cls(values, outputs, attributes, (), self._quick_location(position))
            result = op.results[0]
            names[results] = result
            if results[1] not in "0123456789":
                result.name_hint = results[1:]
            return op
        defined = results.split(", ") if results else []
        if len(defined) != len(outputs) or not names.keys().isdisjoint(defined):
            return None
        op = cls(values, outputs, attributes, (), self._quick_location(position))
        for name, result in zip(defined, op.results):
            self.scopes.define(name, result, position)
        return op

    def _quick_location(self, offset: int) -> Location:
        """The location of `offset`, not before the one asked for last."""
        text, known = self.lexer.text, self.line_known
        lines = text.count("\n", known, offset)
        if lines:
            self.line += lines
            self.line_start = text.rfind("\n", known, offset) + 1
        self.line_known = offset
        key = (self.filename, self.line, offset - self.line_start + 1)
        interned = FileLocation._table.get(key)
        return FileLocation._intern(key, key) if interned is None else interned

    def op(self) -> Operation:
        """One operation, with its results' names and its location."""
        lexer, scopes = self.lexer, self.scopes
        start = lexer.start
        location = self._quick_location(start)
        results = self._result_names() if lexer.kind == "value" else []
        outer = scopes.isolated
        if lexer.kind == "string":
            op = self._generic(results)
        else:
            op = self._pretty(results)
        scopes.isolated = outer
        op.location = location
        declares = getattr(op, "declares", None)
        if declares is not None:
            self._declare(declares, start)
        if lexer.token == "loc":
            self._trailing_location(op)
        if results:
            self._name_results(op, results)
        return op

    def _pretty(self, results: list[tuple[str, int, int]]) -> Operation:
        lexer = self.lexer
        start, name = lexer.start, lexer.word("an operation")
        cls = self._class_of(KEYWORDS.get(name, name))
        if cls is None:
            self._unknown_op(name, start)
        self.scopes.isolated = IsolatedFromAbove in cls.traits
        custom = getattr(cls, "parse_custom", None)
        if custom is None:
            return self._default(cls, start, results)
        self.head = start, results
        op = custom(self.face)
        self._check_counts(op, start)
        return op

    def _class_of(self, name: str) -> type[Operation] | None:
        """The class of an operation that is registered, or declared above in the text."""
        return lookup_op(name) or self.declared.get(name)

    def _declare(self, declares: Callable[[], dict[str, type[Operation]]], start: int) -> None:
        """Make known what an operation declares, for the text that follows it."""
        try:
            classes = declares()
        except UserError as error:
            self.lexer.fail(error.message, start, *error.notes)
        for name, cls in classes.items():
            self.declared[name] = cls
            self.line_forms.pop(name, None)

    def _unknown_op(self, name: str, start: int) -> NoReturn:
        from difflib import get_close_matches  # only a mistake needs it

        lexer = self.lexer
        dialect, _, rest = name.partition(".")
        notes = []
        close = get_close_matches(dialect[:MAX_NAME], DIALECT_MODULES, 1, 0.6)
        if rest and close and dialect not in DIALECT_MODULES:
            load_dialect(close[0])
            name_there = f"{close[0]}.{rest}"
        else:
            name_there = name
        similar = get_close_matches(name_there[:MAX_NAME], known_names(), 3, 0.7)
        if similar:
            notes.append(f"did you mean {' or '.join(similar)}?")
        elif rest and dialect not in DIALECT_MODULES:
            notes.append(f"there is no dialect '{dialect}'")
        lexer.position = start + len(name)
        lexer.start, lexer.token = start, name
        shown = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."
        lexer.fail(f"unknown operation '{shown}'", None, *notes)

    def _result_names(self) -> list[tuple[str, int, int]]:
        """Names, how many results each stands for, and offsets; up to and with `=`."""
        lexer = self.lexer
        names = []
        while True:
            token, start = lexer.token, lexer.start
            if lexer.kind != "value" or "#" in token:
                lexer.fail_expecting("the name of a result")
            lexer.advance()
            count = lexer.integer() if lexer.take(":") else 1
            if not 1 <= count <= 1 << 16:
                lexer.fail(f"{count} results", start)
            names.append((token, count, start))
            if not lexer.take(","):
                break
        lexer.expect("=")
        return names

    def _name_results(self, op: Operation, names: list[tuple[str, int, int]]) -> None:
        scopes = self.scopes
        total = sum(count for _, count, _ in names)
        if total != len(op.results):
            self.lexer.fail(
                f"{op.name} gives {len(op.results)} results, {total} named", names[0][2]
            )
        position = 0
        for token, count, start in names:
            if count == 1:
                scopes.define(token, op.results[position], start)
            else:
                for number in range(count):
                    scopes.define(f"{token}#{number}", op.results[position + number], start)
            position += count

    def _trailing_location(self, op: Operation) -> None:
        lexer, attributes = self.lexer, self.attributes
        self.line_form = None
        lexer.advance()
        lexer.expect("(")
        if lexer.kind == "hash" and lexer.token not in attributes.aliases:
            self.late_locations.append((op, lexer.token, lexer.start))
            lexer.advance()
        else:
            op.location = attributes.location_body()
        lexer.expect(")")

    def default_form(self, cls: type[Operation]) -> Operation:
        """What follows the name of an operation, in the default form; for `parse_custom`, before
        it has read a region."""
        return self._default(cls, *self.head)

    def is_attribute_dict(self) -> bool:
        """Whether the `{` that is next begins attributes, not a region."""
        lexer = self.lexer
        return ATTRIBUTES_START.match(lexer.text, lexer.start) is not None

    def _default(
        self, cls: type[Operation], start: int, results: list[tuple[str, int, int]]
    ) -> Operation:
        """What follows the name of an operation in the default form, or in MLIR's own."""
        syntax = cls.syntax  # type: ignore[attr-defined]  # of registered operations
        form = None if syntax is None else syntax.read(self.face, cls, start)
        if form is not None:
            values, outputs, attributes = form
            op = self.lexer.build(start, cls, values, outputs, attributes)
            self._check_counts(op, start)
            if not syntax.word:
                self.line_form = (cls, tuple([v.type for v in values]), (*outputs,), attributes)
            return op
        op = self._own_form(cls, start, results)
        if syntax is not None:
            self.old_forms.append((start, op))
        return op

    def _own_form(
        self, cls: type[Operation], start: int, results: list[tuple[str, int, int]]
    ) -> Operation:
        """What follows the name of an operation in irc's default form."""
        lexer, scopes = self.lexer, self.scopes
        operands = scopes.operand_names()
        successors = scopes.successors()
        if ConstantLike in cls.traits and not operands and not self._at_rest():
            value = self.attributes.attribute()
            outputs = self._constant_type(value)
            return lexer.build(start, cls, (), outputs, {"value": value})
        attributes = self.attributes.attribute_dict() if lexer.at("{") else {}
        regions = self._regions()
        signature = self._signature(cls, len(operands), results)
        return self._operation(cls, start, operands, signature, attributes, regions, successors)

    def _operation(
        self,
        cls: type[Operation],
        start: int,
        operands: list[tuple[str, int]],
        signature: tuple[tuple[Type, ...], tuple[Type, ...]],
        attributes: dict[str, Attribute],
        regions: list[Region],
        successors: list[Block],
    ) -> Operation:
        """The operation of all that was read of one; its text begins at `start`."""
        inputs, outputs = signature
        if len(inputs) != len(operands):
            self._count_mismatch(start, cls, len(operands), len(inputs))
        values = [
            self.scopes.use(token, place, type_)
            for (token, place), type_ in zip(operands, inputs)
        ]
        self._imply_segments(cls, attributes, len(values), start)
        op = cls(values, outputs, attributes, regions, UNKNOWN, successors)
        self._check_counts(op, start)
        if not regions and not successors and not self._open_segments(cls):
            self.line_form = (cls, inputs, outputs, attributes)
        return op

    def _at_rest(self) -> bool:
        lexer = self.lexer
        return lexer.kind == "end" or lexer.token in ("{", ":", "(", "}")

    def _constant_type(self, value: Attribute) -> tuple[Type, ...]:
        lexer = self.lexer
        if lexer.take(":"):
            return (self.types.type(),)
        if isinstance(value, A.BoolAttr):
            from irc.ir.types import i1

            return (i1,)
        type_ = getattr(value, "type", None)
        if not isinstance(type_, Type):
            lexer.fail_expecting("':' and the type of the constant")
        return (type_,)

    def _count_mismatch(self, start: int, cls: type[Operation], operands: int, typed: int) -> None:
        expected = ""
        if issubclass(cls, Op):
            message = arity_error(cls, operands, sum(f.kind == "one" for f in cls.result_fields), 0)
            expected = f"; it {message}" if message and "operand" in message else ""
        self.lexer.fail(f"{cls.name}: {typed} types for {operands} operands{expected}", start)

    def _open_segments(self, cls: type[Operation]) -> bool:
        return issubclass(cls, Op) and needs_segments(cls.operand_fields)

    def _imply_segments(
        self, cls: type[Operation], attributes: dict[str, Attribute], count: int, start: int
    ) -> None:
        """Add the sizes of operand groups where they follow from the number of operands."""
        if SEGMENTS in attributes or not self._open_segments(cls):
            return
        sizes = implied_segments(cls.operand_fields, count)  # type: ignore[attr-defined]
        if sizes is None:
            self.lexer.fail(f"{cls.name}: {SEGMENTS} is missing", start)
        attributes[SEGMENTS] = A.DenseIntsAttr(sizes)

    def _check_counts(self, op: Operation, start: int) -> None:
        if isinstance(op, Op):
            wrong = arity_error(type(op), len(op._operands), len(op.results), len(op.regions))
            if wrong is not None:
                self.lexer.fail(f"{op.name} {wrong}", start)

    def _signature(
        self, cls: type[Operation], operands: int, results: list[tuple[str, int, int]]
    ) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """`: (T, ...) -> T`, `: T`, or nothing."""
        lexer, types = self.lexer, self.types
        if not lexer.at(":"):
            if operands:
                lexer.fail_expecting("':' and the types")
            return (), ()
        lexer.advance()
        if lexer.at("("):
            inputs = types.parenthesized_types()
            return inputs, types.result_types() if lexer.take("->") else ()
        place = lexer.start
        type_ = types.type()
        if not operands:
            return (), (type_,)
        if SameOperandsAndResultType not in cls.traits:
            lexer.fail(f"the types of {cls.name} are written (operands) -> results", place)
        count = sum(c for _, c, _ in results) or len(cls.result_fields)  # type: ignore[attr-defined]
        return (type_,) * operands, (type_,) * count

    def _regions(self) -> list[Region]:
        """`({...}, {...})` if it is next."""
        lexer, scopes = self.lexer, self.scopes
        if not lexer.at("("):
            return []
        lexer.advance()
        regions = [scopes.region(entry=False)]
        while lexer.take(","):
            regions.append(scopes.region(entry=False))
        lexer.expect(")")
        return regions

    def _generic(self, results: list[tuple[str, int, int]]) -> Operation:
        """An operation in MLIR's generic form."""
        lexer, types, scopes = self.lexer, self.types, self.scopes
        start = lexer.start
        name = lexer.string()
        cls = self._class_of_generic(name, start)
        scopes.isolated = IsolatedFromAbove in cls.traits
        lexer.expect("(")
        operands = scopes.operand_names()
        lexer.expect(")")
        successors = scopes.successors()
        attributes: dict[str, Attribute] = {}
        if lexer.take("<"):
            attributes = self.attributes.attribute_dict()
            lexer.expect(">")
        regions = self._regions()
        attributes.update(self.attributes.optional_attribute_dict())
        _, attributes = irc_form(name, attributes)
        lexer.expect(":")
        inputs = types.parenthesized_types()
        lexer.expect("->")
        signature = (inputs, types.result_types())
        return self._operation(cls, start, operands, signature, attributes, regions, successors)

    def _class_of_generic(self, name: str, start: int) -> type[Operation]:
        cls = self._class_of(name)
        if cls is None:
            cls = self._class_of(irc_form(name, {})[0])
        if cls is not None:
            return cls
        if not self.attributes.allow_unregistered:
            self._unknown_op(name, start + 1)
        return unregistered_op(name)
