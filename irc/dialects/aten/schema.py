"""Operator schemas: read from torch's text form, without evaluating any of it.

    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor

Schemas come from the installed torch, or from `aten.schema` declarations of a module for
operators of libraries that are not loaded: these are the module's own.

They are read here, and not by torch's parser: a text may come from anybody, and that parser ends
the process on one that is nested deeply; it refuses classes of libraries that are not loaded; and
what it gives tells neither `SymInt` from `int` nor the alias sets of the elements of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import attrs

from irc.dialects.aten.facts import (
    IN_PLACE_VIEWS,
    OWN,
    STORAGE_CHANGES,
    USER_KERNELS,
    WAITS,
    Fact,
    facts_of,
)
from irc.ir.diagnostics import UserError

MAX_LENGTH = 20_000
MAX_DEPTH = 20
_TOKEN = re.compile(
    r"\s*(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<number>-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|-inf)"
    r"|(?P<word>[A-Za-z_][\w.]*)|(?P<arrow>->)|(?P<mark>[()\[\],=?*!|:.]))"
)


#: The namespaces whose operators are known to let go of their operands when they return.
CORE = frozenset(("aten", "prims", "mkldnn", *OWN))


@attrs.frozen
class SchemaArgument:
    """One argument or result of a schema.

    type: as in the text without alias marks ("Tensor", "SymInt[]", "Tensor?[]", "Scalar").
    alias: the names of its alias sets, "" for none; is_write: whether it is written.
    """

    name: str
    type: str
    alias: str = ""
    is_write: bool = False
    kwarg_only: bool = False
    has_default: bool = False
    default: Any = None

    @property
    def takes_tensor(self) -> bool:
        """Whether it is a tensor, optional or in a list."""
        return self.type.startswith("Tensor")


@attrs.frozen
class Schema:
    """An operator's schema. `tags` are torch's tags by name (none where only declared)."""

    text: str
    namespace: str
    name: str
    overload: str
    arguments: tuple[SchemaArgument, ...]
    returns: tuple[SchemaArgument, ...]
    tags: frozenset[str] = frozenset()

    @property
    def qualified(self) -> str:
        """`namespace.name.overload`, with overload "default" where it has no name."""
        return f"{self.namespace}.{self.name}.{self.overload or 'default'}"

    @property
    def is_mutable(self) -> bool:
        """Whether it writes one of its arguments."""
        return any(a.is_write for a in self.arguments)

    @property
    def is_random(self) -> bool:
        """Whether it draws from a random number generator."""
        return "nondeterministic_seeded" in self.tags

    @property
    def is_pointwise(self) -> bool:
        """Whether elements of the results are functions of elements of the tensors."""
        return "pointwise" in self.tags

    @property
    def returns_alias(self) -> bool:
        """Whether a result may share memory with an argument."""
        return any(r.alias for r in self.returns)

    @property
    def may_keep(self) -> bool:
        """Whether it may hold on to its operands when it has returned: what a library does with
        them nobody knows, and collectives go on reading until they are waited for."""
        return self.namespace not in CORE

    @property
    def communicates(self) -> bool:
        """Whether it takes part in what a group of processes does together (or waits for it):
        all of them must do so in one order, or they wait for ever."""
        return self.name in WAITS or any(a.name in _GROUPS for a in self.arguments)

    @property
    def has_effect(self) -> bool:
        """Whether it must stay, in order, even when its results are unused."""
        return self.is_mutable or self.is_random or self.communicates or not self.returns

    @property
    def facts(self) -> Fact:
        """What it does besides (`irc.dialects.aten.facts`); of ATen's own operators only."""
        if self.namespace != "aten":
            return Fact.NONE
        return facts_of(self.name, self.overload)

    @property
    def in_place_view(self) -> str | None:
        """The view that an in-place change of sizes and strides stands for, "name.overload"."""
        view = IN_PLACE_VIEWS.get(self.name) if self.namespace == "aten" else None
        if view is None or "." in view:
            return view
        return f"{view}.{self.overload or 'default'}"

    @property
    def storage_change(self) -> str | None:
        """What it does to a storage that no value can stand for; None for nothing."""
        return STORAGE_CHANGES.get(self.name) if self.namespace == "aten" else None

    @property
    def counts_from_storage(self) -> bool:
        """Whether its places count from the beginning of its first operand's storage."""
        return self.argument("storage_offset") is not None

    def argument(self, name: str) -> SchemaArgument | None:
        """The argument called `name`."""
        return next((a for a in self.arguments if a.name == name), None)


#: How operators call the argument that is a group of processes.
_GROUPS = frozenset({"group_name", "process_group"})
_WORDS = {
    "None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan"),
}  # fmt: skip


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise UserError(f"an operator schema of {len(text)} characters is too long")
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                self.fail(position)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()
        self.next = 0
        self.depth = 0
        self.list_size = 1

    def fail(self, position: int | None = None) -> NoReturn:
        if position is None:
            at_end = self.next >= len(self.tokens)
            position = len(self.text) if at_end else self.tokens[self.next][2]
        raise UserError(
            f"bad operator schema at column {position + 1}",
            notes=(self.text, " " * position + "^"),
        )

    def peek(self) -> str:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def items(self, close: str) -> Iterator[None]:
        """Once for each item up to `close`, which is taken. Fails where lists nest too deeply."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        while not self.accept(close):
            yield
            self.accept(",")
        self.depth -= 1

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            self.fail()
        self.next += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.next += 1
            return True
        return False

    def word(self) -> str:
        if self.kind() != "word":
            self.fail()
        return self.take()

    def type(self) -> tuple[str, str, bool]:
        """(type, alias names, is written)"""
        if self.accept("("):
            return self._tuple_type()
        name = self.word()
        alias, is_write = "", False
        if self.accept("("):
            if name.startswith("Tensor"):
                alias, is_write = self._alias()
            else:
                name = f"{name}({self._until_closed()})"
        while self.peek() in ("?", "[", "("):
            if self.accept("?"):
                name += "?"
            elif self.accept("("):
                alias, is_write = self._alias()
            else:
                self.take("[")
                self.list_size = int(self.take()) if self.kind() == "number" else 1
                self.take("]")
                name += "[]"
        return name, alias, is_write

    def _tuple_type(self) -> tuple[str, str, bool]:
        parts = [self.type()[0] for _ in self.items(")")]
        return f"({', '.join(parts)})", "", False

    def _until_closed(self) -> str:
        parts = []
        while self.peek() != ")":
            parts.append(self.take())
        self.take(")")
        return " ".join(parts)

    def _alias(self) -> tuple[str, bool]:
        names, written = [], False
        while not self.accept(")"):
            token = self.take()
            if token == "!":
                written = True
            elif token == "->":
                names.append("->")
            elif token != "|":
                names.append(token)
        return "|".join(names).replace("|->|", "->"), written

    def default(self) -> Any:
        kind, token, _ = self.tokens[self.next] if self.peek() else ("", "", 0)
        if token == "[":
            self.take()
            return [self.default() for _ in self.items("]")]
        self.take()
        if kind == "string":
            return token[1:-1]
        if kind == "number":
            return float(token) if any(c in token for c in ".einf") else int(token)
        return _WORDS.get(token, token)

    def argument(self, kwarg_only: bool) -> SchemaArgument:
        type_, alias, is_write = self.type()
        name = self.word()
        has_default = self.accept("=")
        size = self.list_size
        default = self.default() if has_default else None
        if "[]" in type_ and default is not None and not isinstance(default, list):
            default = [default] * size
        if has_default and type_.startswith("float") and isinstance(default, int):
            default = default if isinstance(default, bool) else float(default)
        return SchemaArgument(name, type_, alias, is_write, kwarg_only, has_default, default)

    def schema(self, tags: frozenset[str]) -> Schema:
        namespace = self.word()
        self.take(":")
        self.take(":")
        name, _, overload = self.word().partition(".")
        self.take("(")
        arguments: list[SchemaArgument] = []
        kwarg_only = False
        while not self.accept(")"):
            if self.accept("*"):
                kwarg_only = True
            else:
                arguments.append(self.argument(kwarg_only))
            if self.peek() != ")":
                self.take(",")
        self.take("->")
        returns = self._returns()
        if self.peek():
            self.fail()
        return Schema(self.text, namespace, name, overload, tuple(arguments), returns, tags)

    def _returns(self) -> tuple[SchemaArgument, ...]:
        if not self.accept("("):
            type_, alias, is_write = self.type()
            name = self.word() if self.kind() == "word" else ""
            return (SchemaArgument(name, type_, alias, is_write),)
        returns = []
        while not self.accept(")"):
            type_, alias, is_write = self.type()
            name = self.word() if self.kind() == "word" else ""
            returns.append(SchemaArgument(name, type_, alias, is_write))
            if self.peek() != ")":
                self.take(",")
        return tuple(returns)


def parse_schema(text: str, tags: frozenset[str] = frozenset()) -> Schema:
    """The schema written in `text`. Raises UserError with the column where it is malformed."""
    return _Reader(text).schema(tags)


_schemas: dict[str, Schema] = {}


def find_schema(qualified: str) -> Schema | None:
    """The schema of `namespace.name.overload`, from torch (imported here); None without one."""
    if qualified not in _schemas:
        overload = find_overload(qualified)
        if overload is None:
            return None
        tags = frozenset(str(t).partition(".")[2] for t in overload.tags)
        _schemas[qualified] = parse_schema(str(overload._schema), tags)
    return _schemas[qualified]


def load_own_operators(namespace: str) -> None:
    """Make irc's own operators known to torch if `namespace` is theirs."""
    if namespace == "irc":
        import irc.dialects.aten.own  # noqa: F401  (its import defines them)
    elif namespace == USER_KERNELS:
        import irc.dialects.aten.user_kernels  # noqa: F401


def find_overload(qualified: str) -> Any:
    """torch's OpOverload called `namespace.name.overload`, or None."""
    import torch

    parts = qualified.split(".")
    if len(parts) != 3 or any(p.startswith("__") and not p.endswith("__") for p in parts):
        return None
    namespace, name, overload = parts
    load_own_operators(namespace)
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        return getattr(packet, overload) if overload in packet.overloads() else None
    except (AttributeError, RuntimeError):
        return None
