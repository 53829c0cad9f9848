"""Reading names of values and blocks, and regions, with their scopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from irc.ir.attributes import Type
from irc.ir.core import Block, Region, Value
from irc.ir.location import FileLocation
from irc.ir.text.attribute_parser import AttributeParser
from irc.ir.text.lexer import Lexer

MAX_NAME = 100
"""Longest part of a name that a similar one is looked for."""


class _Forward(Value):
    """Stands for a value used before its definition is read."""

    __slots__ = ("uses",)

    def __init__(self, type: Type) -> None:
        self.type = type
        self._users = None
        self.name_hint = None
        self.uses: list[tuple[int, tuple[Block, ...]]] = []


class ScopeParser:
    """Reads regions. `names` holds the values that can be used where the text stands, `forward`
    those used and not yet defined; both are new inside of an isolated operation. `operations`
    reads those of a block, up to a token that starts none."""

    def __init__(
        self, lexer: Lexer, attributes: AttributeParser, operations: Callable[[Block], None]
    ) -> None:
        self.lexer = lexer
        self.attributes, self.types = attributes, attributes.types
        self.operations = operations
        self.names: dict[str, Value] = {}
        self.forward: dict[str, _Forward] = {}
        self.open_blocks: list[Block] = []
        self.labels: dict[str, Block] = {}
        self.isolated = False

    # -- values

    def operand_names(self) -> list[tuple[str, int]]:
        """`%a, %b`: names with their offsets; may be empty."""
        lexer = self.lexer
        names: list[tuple[str, int]] = []
        while lexer.kind == "value":
            names.append((lexer.token, lexer.start))
            lexer.advance()
            if not lexer.at(","):
                break
            lexer.advance()
            if lexer.kind != "value":
                lexer.fail_expecting("a value '%name'")
        return names

    def value(self, type_: Type | None = None) -> Value:
        """The value whose name is next. Without `type_` it must be defined above."""
        lexer = self.lexer
        if lexer.kind != "value":
            lexer.fail_expecting("a value '%name'")
        token, start = lexer.token, lexer.start
        lexer.advance()
        return self.use(token, start, type_)

    def values(self) -> list[Value]:
        """`%a, %b`, all defined above; may be empty."""
        return [self.use(token, start) for token, start in self.operand_names()]

    def typed_values(self) -> list[Value]:
        """`%a, %b : T, U`; may be empty."""
        lexer = self.lexer
        names = self.operand_names()
        if not names:
            return []
        lexer.expect(":")
        start = lexer.start
        types = self.types.type_list()
        if len(types) != len(names):
            lexer.fail(f"{len(types)} types for {len(names)} values", start)
        return [self.use(token, place, t) for (token, place), t in zip(names, types)]

    def use(self, token: str, start: int, type_: Type | None = None) -> Value:
        """The value called `token`; a placeholder if it is not defined yet and `type_` is given.
        """
        value = self.names.get(token)
        if value is None:  # `%a` and `%a#0` are the same value
            other = token[:-2] if token.endswith("#0") else token + "#0"
            value = self.names.get(other)
        if value is None:
            forward = self.forward.get(token)
            if forward is None:
                if type_ is None:
                    self._undefined(token, start)
                forward = self.forward[token] = _Forward(type_)
            forward.uses.append((start, tuple(self.open_blocks)))
            value = forward
        if type_ is not None and value.type is not type_:
            self._type_mismatch(token, start, value, type_)
        return value

    def _type_mismatch(self, token: str, start: int, value: Value, type_: Type) -> NoReturn:
        maker = value.defining_op
        where = ""
        if maker is not None and isinstance(maker.location, FileLocation):
            p = maker.location
            where = f" at {p.filename}:{p.line}:{p.column}"
        self.lexer.fail(f"{token} is used as {type_}, but is defined as {value.type}{where}", start)

    def _undefined(self, token: str, start: int) -> NoReturn:
        lexer = self.lexer
        from difflib import get_close_matches  # only a mistake needs it

        candidates = list(self.names)[-1000:]
        similar = get_close_matches(token[:MAX_NAME], candidates, 1, 0.75)
        notes = (f"did you mean {similar[0]}?",) if similar else ()
        lexer.position, lexer.start, lexer.token = start + len(token), start, token
        lexer.fail(f"{token} is not defined here", None, *notes)

    def define(self, token: str, value: Value, start: int) -> None:
        """Give `value` the name `token` in what follows."""
        if token in self.names:
            self.lexer.fail(f"{token} is defined twice", start)
        forward = self.forward.get(token) if self.forward else None
        if forward is not None:
            self._resolve(token, forward, value)
        self.names[token] = value
        name = token[1:].partition("#")[0]
        if not name.isdigit():
            value.name_hint = name

    def _resolve(self, token: str, forward: _Forward, value: Value) -> None:
        """Put a definition in the place of the earlier uses that it can reach."""
        lexer = self.lexer
        block = self.open_blocks[-1]
        start, chain = forward.uses[0]
        if not any(b is block or b.parent is block.parent is not None for b in chain):
            return
        if block in chain:
            line = lexer.location_at(lexer.start).line
            lexer.fail(f"{token} is used before its definition above line {line}", start)
        if forward.type is not value.type:
            self._type_mismatch(token, start, value, forward.type)
        forward.replace_all_uses_with(value)
        del self.forward[token]

    def check_forward(self) -> None:
        """Fail if a value was used and never defined."""
        for token, forward in self.forward.items():
            self._undefined(token, forward.uses[0][0])

    # -- blocks and regions

    def successors(self) -> list[Block]:
        """`[^bb1, ^bb2]` if it is next."""
        lexer = self.lexer
        if not lexer.at("["):
            return []
        lexer.advance()
        blocks = [self._label()]
        while lexer.take(","):
            blocks.append(self._label())
        lexer.expect("]")
        return blocks

    def _label(self) -> Block:
        lexer = self.lexer
        if lexer.kind != "block":
            lexer.fail_expecting("a block '^name'")
        block = self.labels.get(lexer.token)
        if block is None:
            block = self.labels[lexer.token] = Block()
        lexer.advance()
        return block

    def argument(self) -> tuple[str, int, Type]:
        """`%name: T` (and a location, which is dropped): name, offset, type."""
        lexer = self.lexer
        if lexer.kind != "value":
            lexer.fail_expecting("an argument '%name: type'")
        token, start = lexer.token, lexer.start
        lexer.advance()
        lexer.expect(":")
        type_ = self.types.type()
        if lexer.at("loc"):
            self.attributes.location()
        return token, start, type_

    def arguments(self) -> list[tuple[str, int, Type]]:
        """`(%a: T, %b: U)`."""
        lexer = self.lexer
        lexer.expect("(")
        arguments = []
        if not lexer.at(")"):
            arguments.append(self.argument())
            while lexer.take(","):
                arguments.append(self.argument())
        lexer.expect(")")
        return arguments

    def region(
        self, arguments: Sequence[tuple[str, int, Type]] = (), entry: bool = True
    ) -> Region:
        """`{...}`. arguments: those of the entry block, if they stand elsewhere. entry: an empty
        text means one empty block (else: none)."""
        lexer = self.lexer
        lexer.enter()
        outer = self.names, self.forward, self.labels
        isolated, self.isolated = self.isolated, False
        if isolated:
            self.names, self.forward = {}, {}
        self.labels = {}
        known = len(self.names)
        region = Region()
        lexer.expect("{")
        if arguments or not (lexer.kind == "block" or (lexer.at("}") and not entry)):
            self._block(region, Block(), arguments)
        while lexer.kind == "block":
            self._labelled_block(region)
        if not lexer.at("}"):
            lexer.fail_expecting("an operation or '}'")
        for label, block in self.labels.items():
            if block.parent is None:
                lexer.fail(f"there is no block {label} in this region")
        if isolated:
            self.check_forward()
        self.names, self.forward, self.labels = outer
        if not isolated:
            names = self.names
            while len(names) > known:
                names.popitem()
        lexer.leave()
        self.isolated = isolated
        lexer.expect("}")
        return region

    def _labelled_block(self, region: Region) -> None:
        lexer = self.lexer
        label, start = lexer.token, lexer.start
        block = self.labels.get(label)
        if block is None:
            block = self.labels[label] = Block()
        elif block.parent is not None:
            lexer.fail(f"the block {label} is defined twice", start)
        lexer.advance()
        arguments = self.arguments() if lexer.at("(") else []
        lexer.expect(":")
        self._block(region, block, arguments)

    def _block(
        self, region: Region, block: Block, arguments: Sequence[tuple[str, int, Type]]
    ) -> None:
        region.append(block)
        self.open_blocks.append(block)
        for token, start, type_ in arguments:
            self.define(token, block.add_argument(type_), start)
        self.operations(block)
        self.open_blocks.pop()
