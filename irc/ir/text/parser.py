"""Reading operations: irc's own form and MLIR's generic form, freely mixed.

`parse` is the entry. An operation class with a classmethod `parse_custom(cls, parser)` reads what
follows its name and returns the operation; the public methods here are for these. All other
operations have the default form (see `irc.ir.text.printer`).

Lines that repeat the rest of an earlier line (same operation, attributes and types) are read by
one regular expression and a table; whatever does not match goes the long way, which also makes
all error messages.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from irc.ir import attributes as A
from irc.ir.arity import arity_error
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import SEGMENTS, Op, needs_segments
from irc.ir.diagnostics import IRCError, UserError
from irc.ir.gc import gc_paused
from irc.ir.location import UNKNOWN, FileLocation, Location
from irc.ir.registry import (
    DIALECT_MODULES,
    known_names,
    load_dialect,
    lookup_op,
    unregistered_op,
)
from irc.ir.segments import implied_segments
from irc.ir.text.generic_form import irc_form
from irc.ir.text.scope_parser import MAX_NAME, ScopeParser
from irc.ir.traits import ConstantLike, IsolatedFromAbove, SameOperandsAndResultType

if TYPE_CHECKING:
    from irc.ir.module import ModuleOp

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


def parse(
    text: str,
    filename: str = "<text>",
    *,
    allow_unregistered: bool = False,
    resources: Mapping[str, object] | None = None,
    trusted: bool = False,
) -> ModuleOp:
    """The module that `text` describes; operations outside of a module are put into one.

    resources: the constants that are kept beside the text, by their keys. trusted: the text may
    run operators that do more than compute with their operands, as `aten.from_file`. Raises
    UserError, with the position and the line, for everything that is wrong with the text.
    """
    from irc.ir.module import ModuleOp

    with gc_paused:
        try:
            parser = Parser(
                text, filename, allow_unregistered=allow_unregistered, resources=resources
            )
            block = parser.file()
            if parser.old_forms:
                note_old_forms(parser)
        except RecursionError:
            raise UserError("the text is nested too deeply") from None
        first = block.first
        if isinstance(first, ModuleOp) and first is block.last:
            module = first.detach()
        else:
            module = ModuleOp((), (), {}, (Region([block]),))
            module.location = FileLocation(filename, 1, 1)
        module.resources.update(parser.used_resources)  # type: ignore[attr-defined]
        module.trusted = trusted  # type: ignore[attr-defined]
        return module  # type: ignore[return-value]


MAX_QUOTED = 160
"""Most characters of an operation that the note on old forms quotes."""


def note_old_forms(parser: Parser) -> None:
    """Warn that a text has forms that irc wrote before 0.2 and will not read for ever."""
    from irc.ir.text.printer import print_op

    (start, first), count = min(parser.old_forms, key=lambda f: f[0]), len(parser.old_forms)
    place = parser.location_at(start)
    new = print_op(first).strip().partition("\n")[0]
    new = new if len(new) <= MAX_QUOTED else new[:MAX_QUOTED] + "..."
    warnings.warn(
        f"{place.filename}:{place.line}:{place.column}: irc's old form of {count} operations, "
        f"which will not be read in the next release; write `{new}`, as irc-opt prints it",
        FutureWarning,
        stacklevel=3,
    )


def parse_file(
    path: str | Path,
    *,
    allow_unregistered: bool = False,
    resources: Mapping[str, object] | None = None,
    trusted: bool = False,
) -> ModuleOp:
    """`parse` of a file. Raises UserError with the position where it is not UTF-8."""
    raw = Path(path).read_bytes()
    text = decode_utf8(raw, str(path))
    return parse(
        text, str(path), allow_unregistered=allow_unregistered, resources=resources,
        trusted=trusted,
    )  # fmt: skip


def decode_utf8(raw: bytes, filename: str) -> str:
    """The text of a file. Raises UserError with the position where it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        failure = UserError("invalid UTF-8", FileLocation(filename, line, column))
        failure.attach_source(filename, raw.decode("utf-8", "replace"))
        raise failure from None


def parse_attribute(text: str, **options: Any) -> Attribute:
    """The attribute that `text` describes (a type: its TypeAttr)."""
    return _parse_whole(text, Parser.attribute, options)


def parse_type(text: str, **options: Any) -> Type:
    """The type that `text` describes."""
    return _parse_whole(text, Parser.type, options)


def _parse_whole(text: str, read: Callable[[Parser], Any], options: dict[str, Any]) -> Any:
    try:
        parser = Parser(text, **options)
        whole = read(parser)
        if parser.kind != "end":
            parser.fail_expecting("the end of the text")
        return whole
    except RecursionError:
        raise UserError("the text is nested too deeply") from None


class Parser(ScopeParser):
    """Reads operations. `parse_custom` methods of operations call its public methods."""

    def __init__(self, text: str, filename: str = "<text>", **options: Any) -> None:
        self.line_forms: dict[str, dict[str, LineForm]] = {}
        self.declared: dict[str, type[Operation]] = {}
        self.late_locations: list[tuple[Operation, str, int]] = []
        self.line_form: LineForm | None = None
        self.head: tuple[int, list[tuple[str, int, int]]] = (0, [])
        self.line = 1
        self.line_start = 0
        self.line_known = 0
        self.old_forms: list[tuple[int, Operation]] = []
        super().__init__(text, filename, **options)

    # -- the file

    def file(self) -> Block:
        """All of the text: definitions of aliases, and operations."""
        block = Block()
        self.open_blocks.append(block)
        while True:
            self.operations(block)
            if self.kind == "end":
                break
            if self.kind not in ("hash", "bang"):
                self.fail_expecting("an operation or a definition '#name = ...'")
            self._alias()
        self.check_forward()
        for op, alias, start in self.late_locations:
            location = self.aliases.get(alias)
            if not isinstance(location, Location):
                self.fail(f"the location '{alias}' is not defined", start)
            self.spend(location, start)
            op.location = location
        return block

    def _alias(self) -> None:
        name, start, kind = self.token, self.start, self.kind
        if "." in name:
            self.fail("expected an operation or a definition '#name = ...'")
        if name in self.aliases:
            self.fail(f"'{name}' is defined twice")
        self.advance()
        self.expect("=")
        value = self.type() if kind == "bang" else self.attribute()
        if name == "#sym":
            self.fail("'#sym' can't be redefined", start)
        self.aliases[name] = value

    # -- operations

    def operations(self, block: Block) -> None:
        """Operations up to a token that starts none."""
        match_line = LINE.match
        text, forms, append = self.text, self.line_forms, block.append
        position = self.start
        while True:
            match = match_line(text, position)
            if match is not None:
                op = self._known_line(match, forms, position)
                if op is not None:
                    append(op)
                    position = match.end()
                    continue
            if self.start != position:
                self.reset(position)
            if self.kind not in ("value", "word", "string"):
                return
            self.line_form = None
            append(self.op())
            form = self.line_form
            if form is not None and match is not None and match.end() == self.start:
                _, quoted, bare, _, rest = match.groups()
                forms.setdefault(quoted or bare, {})[rest] = form
            position = self.start

    def _known_line(
        self, match: re.Match[str], forms: dict[str, dict[str, LineForm]], position: int
    ) -> Operation | None:
        """The operation of a line whose rest was read before; None if it takes the long way."""
        results, quoted, bare, operands, rest = match.groups()
        of_name = forms.get(quoted or bare)
        if of_name is None:
            return None
        form = of_name.get(rest)
        if form is None or self.forward:
            return None
        cls, inputs, outputs, attributes = form
        names = self.names
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
            self.define(name, result, position)
        return op

    def _quick_location(self, offset: int) -> Location:
        """The location of `offset`, not before the one asked for last."""
        text, known = self.text, self.line_known
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
        start = self.start
        location = self._quick_location(start)
        results = self._result_names() if self.kind == "value" else []
        outer = self.isolated
        if self.kind == "string":
            op = self._generic(results)
        else:
            op = self._pretty(results)
        self.isolated = outer
        op.location = location
        declares = getattr(op, "declares", None)
        if declares is not None:
            self._declare(declares, start)
        if self.token == "loc":
            self._trailing_location(op)
        if results:
            self._name_results(op, results)
        return op

    def _pretty(self, results: list[tuple[str, int, int]]) -> Operation:
        start, name = self.start, self.word("an operation")
        cls = self._class_of(KEYWORDS.get(name, name))
        if cls is None:
            self._unknown_op(name, start)
        self.isolated = IsolatedFromAbove in cls.traits
        custom = getattr(cls, "parse_custom", None)
        if custom is None:
            return self._default(cls, start, results)
        self.head = start, results
        op = custom(self)
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
            self.fail(error.message, start, *error.notes)
        for name, cls in classes.items():
            self.declared[name] = cls
            self.line_forms.pop(name, None)

    def _unknown_op(self, name: str, start: int) -> NoReturn:
        from difflib import get_close_matches  # only a mistake needs it

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
        self.position = start + len(name)
        self.start, self.token = start, name
        shown = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."
        self.fail(f"unknown operation '{shown}'", None, *notes)

    def _result_names(self) -> list[tuple[str, int, int]]:
        """Names, how many results each stands for, and offsets; up to and with `=`."""
        names = []
        while True:
            token, start = self.token, self.start
            if self.kind != "value" or "#" in token:
                self.fail_expecting("the name of a result")
            self.advance()
            count = self.integer() if self.take(":") else 1
            if not 1 <= count <= 1 << 16:
                self.fail(f"{count} results", start)
            names.append((token, count, start))
            if not self.take(","):
                break
        self.expect("=")
        return names

    def _name_results(self, op: Operation, names: list[tuple[str, int, int]]) -> None:
        total = sum(count for _, count, _ in names)
        if total != len(op.results):
            self.fail(
                f"{op.name} gives {len(op.results)} results, {total} named", names[0][2]
            )
        position = 0
        for token, count, start in names:
            if count == 1:
                self.define(token, op.results[position], start)
            else:
                for number in range(count):
                    self.define(f"{token}#{number}", op.results[position + number], start)
            position += count

    def _trailing_location(self, op: Operation) -> None:
        self.line_form = None
        self.advance()
        self.expect("(")
        if self.kind == "hash" and self.token not in self.aliases:
            self.late_locations.append((op, self.token, self.start))
            self.advance()
        else:
            op.location = self.location_body()
        self.expect(")")

    def default_form(self, cls: type[Operation]) -> Operation:
        """What follows the name of an operation, in the default form; for `parse_custom`, before
        it has read a region."""
        return self._default(cls, *self.head)

    def is_attribute_dict(self) -> bool:
        """Whether the `{` that is next begins attributes, not a region."""
        return ATTRIBUTES_START.match(self.text, self.start) is not None

    def _default(
        self, cls: type[Operation], start: int, results: list[tuple[str, int, int]]
    ) -> Operation:
        """What follows the name of an operation in the default form, or in MLIR's own."""
        syntax = cls.syntax  # type: ignore[attr-defined]  # of registered operations
        form = None if syntax is None else syntax.read(self, cls, start)
        if form is not None:
            values, outputs, attributes = form
            op = self.build(start, cls, values, outputs, attributes)
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
        operands = self.operand_names()
        successors = self.successors()
        if ConstantLike in cls.traits and not operands and not self._at_rest():
            value = self.attribute()
            outputs = self._constant_type(value)
            return self.build(start, cls, (), outputs, {"value": value})
        attributes = self.attribute_dict() if self.at("{") else {}
        regions = self._regions()
        inputs, outputs = self._signature(cls, len(operands), results)
        if len(inputs) != len(operands):
            self._count_mismatch(start, cls, len(operands), len(inputs))
        values = [
            self.use(token, place, type_)
            for (token, place), type_ in zip(operands, inputs)
        ]
        self._imply_segments(cls, attributes, len(values), start)
        op = cls(values, outputs, attributes, regions, UNKNOWN, successors)
        self._check_counts(op, start)
        if not regions and not successors and not self._open_segments(cls):
            self.line_form = (cls, inputs, outputs, attributes)
        return op

    def _at_rest(self) -> bool:
        return self.kind == "end" or self.token in ("{", ":", "(", "}")

    def _constant_type(self, value: Attribute) -> tuple[Type, ...]:
        if self.take(":"):
            return (self.type(),)
        if isinstance(value, A.BoolAttr):
            from irc.ir.types import i1

            return (i1,)
        type_ = getattr(value, "type", None)
        if not isinstance(type_, Type):
            self.fail_expecting("':' and the type of the constant")
        return (type_,)

    def _count_mismatch(self, start: int, cls: type[Operation], operands: int, typed: int) -> None:
        expected = ""
        if issubclass(cls, Op):
            message = arity_error(cls, operands, sum(f.kind == "one" for f in cls.result_fields), 0)
            expected = f"; it {message}" if message and "operand" in message else ""
        self.fail(f"{cls.name}: {typed} types for {operands} operands{expected}", start)

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
            self.fail(f"{cls.name}: {SEGMENTS} is missing", start)
        attributes[SEGMENTS] = A.DenseIntsAttr(sizes)

    def _check_counts(self, op: Operation, start: int) -> None:
        if isinstance(op, Op):
            wrong = arity_error(type(op), len(op._operands), len(op.results), len(op.regions))
            if wrong is not None:
                self.fail(f"{op.name} {wrong}", start)

    def _signature(
        self, cls: type[Operation], operands: int, results: list[tuple[str, int, int]]
    ) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """`: (T, ...) -> T`, `: T`, or nothing."""
        if not self.at(":"):
            if operands:
                self.fail_expecting("':' and the types")
            return (), ()
        self.advance()
        if self.at("("):
            inputs = self.parenthesized_types()
            return inputs, self.result_types() if self.take("->") else ()
        place = self.start
        type_ = self.type()
        if not operands:
            return (), (type_,)
        if SameOperandsAndResultType not in cls.traits:
            self.fail(f"the types of {cls.name} are written (operands) -> results", place)
        count = sum(c for _, c, _ in results) or len(cls.result_fields)  # type: ignore[attr-defined]
        return (type_,) * operands, (type_,) * count

    def _regions(self) -> list[Region]:
        """`({...}, {...})` if it is next."""
        if not self.at("("):
            return []
        self.advance()
        regions = [self.region(entry=False)]
        while self.take(","):
            regions.append(self.region(entry=False))
        self.expect(")")
        return regions

    def _generic(self, results: list[tuple[str, int, int]]) -> Operation:
        """An operation in MLIR's generic form."""
        start = self.start
        name = self.string()
        cls = self._class_of_generic(name, start)
        self.isolated = IsolatedFromAbove in cls.traits
        self.expect("(")
        operands = self.operand_names()
        self.expect(")")
        successors = self.successors()
        attributes: dict[str, Attribute] = {}
        if self.take("<"):
            attributes = self.attribute_dict()
            self.expect(">")
        regions = self._regions()
        attributes.update(self.optional_attribute_dict())
        _, attributes = irc_form(name, attributes)
        self.expect(":")
        inputs = self.parenthesized_types()
        self.expect("->")
        outputs = self.result_types()
        if len(inputs) != len(operands):
            self._count_mismatch(start, cls, len(operands), len(inputs))
        values = [
            self.use(token, place, type_)
            for (token, place), type_ in zip(operands, inputs)
        ]
        self._imply_segments(cls, attributes, len(values), start)
        op = cls(values, outputs, attributes, regions, UNKNOWN, successors)
        self._check_counts(op, start)
        if not regions and not successors and not self._open_segments(cls):
            self.line_form = (cls, inputs, outputs, attributes)
        return op

    def _class_of_generic(self, name: str, start: int) -> type[Operation]:
        cls = self._class_of(name)
        if cls is None:
            cls = self._class_of(irc_form(name, {})[0])
        if cls is not None:
            return cls
        if not self.allow_unregistered:
            self._unknown_op(name, start + 1)
        return unregistered_op(name)


__all__ = [
    "IRCError", "Parser", "decode_utf8", "parse", "parse_attribute", "parse_file", "parse_type",
]  # fmt: skip
