"""Reading text: irc's own form and MLIR's generic form, freely mixed.

`parse` is the entry, and `Parser` is what hooks get. An operation class with a classmethod
`parse_custom(cls, parser)` reads what follows its name and returns the operation; an attribute
class with `parse_parameters(cls, parser)` what stands between `<` and `>`, and returns the
attribute. All others have the default form (see `irc.ir.text.printer`).

A `Parser` reads nothing itself. It is made of a `Lexer`, which knows the text and the next token,
and of parts that hold it, each with what it must remember: `TypeParser`, `AttributeParser`
(aliases, constants beside the text), `ScopeParser` (names of values and blocks) and
`OperationParser` (lines that were read before, declarations).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irc.ir.attributes import Attribute, Type
from irc.ir.core import Region
from irc.ir.diagnostics import IRCError, UserError
from irc.ir.gc import gc_paused
from irc.ir.location import FileLocation
from irc.ir.text.attribute_parser import AttributeParser
from irc.ir.text.lexer import Lexer, of_lexer
from irc.ir.text.operation_parser import OperationParser

if TYPE_CHECKING:
    from irc.ir.module import ModuleOp


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
        parser = Parser(
            text, filename, allow_unregistered=allow_unregistered, resources=resources
        )
        try:
            block = parser.file()
            if parser.old_forms:
                note_old_forms(parser)
        except RecursionError:
            raise UserError("the text is nested too deeply") from None
        finally:
            parser.lexer.close()
        first = block.first
        if isinstance(first, ModuleOp) and first is block.last:
            module = first.detach()
        else:
            module = ModuleOp((), (), {}, (Region([block]),))
            module.location = FileLocation(filename, 1, 1)
        module.resources.update(parser.attributes.used_resources)  # type: ignore[attr-defined]
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
    return _parse_whole(text, lambda parser: parser.attribute(), options)


def parse_type(text: str, **options: Any) -> Type:
    """The type that `text` describes."""
    return _parse_whole(text, lambda parser: parser.type(), options)


def _parse_whole(text: str, read: Callable[[Parser], Any], options: dict[str, Any]) -> Any:
    parser = Parser(text, **options)
    try:
        whole = read(parser)
        if parser.kind != "end":
            parser.fail_expecting("the end of the text")
        return whole
    except RecursionError:
        raise UserError("the text is nested too deeply") from None
    finally:
        parser.lexer.close()


class Parser:
    """What hooks read with: the next token, and the public methods of the parts, bound."""

    #: The token that is next, and where it stands.
    text: str = of_lexer("text")
    filename: str = of_lexer("filename")
    kind: str = of_lexer("kind")
    token: str = of_lexer("token")
    start: int = of_lexer("start")
    position: int = of_lexer("position")
    last_end: int = of_lexer("last_end")

    def __init__(
        self,
        text: str,
        filename: str = "<text>",
        *,
        allow_unregistered: bool = False,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        lexer = Lexer(text, filename)
        self._lend_tokens(lexer)
        self._lend_attributes(AttributeParser(lexer, self, allow_unregistered, resources))
        self._lend_operations(OperationParser(lexer, self.attributes, self))

    # Bound methods of the parts: a call costs no more than one of a method of this class.

    def _lend_tokens(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.advance, self.reset = lexer.advance, lexer.reset
        self.take, self.at, self.expect = lexer.take, lexer.at, lexer.expect
        self.word, self.string, self.integer = lexer.word, lexer.string, lexer.integer
        self.size, self.to_int, self.symbol_name = lexer.size, lexer.to_int, lexer.symbol_name
        self.enter, self.leave, self.location_at = lexer.enter, lexer.leave, lexer.location_at
        self.fail, self.fail_expecting, self.build = lexer.fail, lexer.fail_expecting, lexer.build

    def _lend_attributes(self, attributes: AttributeParser) -> None:
        self.attributes, types = attributes, attributes.types
        self.types = types
        self.dim, self.dims = types.dim, types.dims
        self.type, self.optional_type, self.type_list = (
            types.type, types.optional_type, types.type_list
        )  # fmt: skip
        self.parenthesized_types, self.result_types = types.parenthesized_types, types.result_types
        self.function_type = types.function_type
        self.attribute, self.attribute_dict = attributes.attribute, attributes.attribute_dict
        self.optional_attribute_dict = attributes.optional_attribute_dict
        self.number, self.float_value = attributes.number, attributes.float_value
        self.parameter, self.flag = attributes.parameter, attributes.flag
        self.bracketed_text = attributes.bracketed_text
        self.location, self.location_body = attributes.location, attributes.location_body

    def _lend_operations(self, operations: OperationParser) -> None:
        scopes = operations.scopes
        self.operand_names, self.use, self.define = scopes.operand_names, scopes.use, scopes.define
        self.value, self.values = scopes.value, scopes.values
        self.typed_values, self.successors = scopes.typed_values, scopes.successors
        self.argument, self.arguments = scopes.argument, scopes.arguments
        self.region = scopes.region
        self.file, self.op, self.operations = operations.file, operations.op, operations.operations
        self.old_forms = operations.old_forms
        self.default_form = operations.default_form
        self.is_attribute_dict = operations.is_attribute_dict


__all__ = [
    "IRCError", "Parser", "decode_utf8", "parse", "parse_attribute", "parse_file", "parse_type",
]  # fmt: skip
