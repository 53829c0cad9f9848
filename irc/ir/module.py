"""The builtin dialect: the module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import Op, attribute, region
from irc.ir.registry import lookup_attribute
from irc.ir.text.attribute_text import name_text
from irc.ir.traits import IsolatedFromAbove, NoTerminator, SymbolTable

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer


class ModuleOp(Op):
    """A list of functions and kernels, and the constants kept beside the text.

    The attribute `irc.target` (`#irc.target<...>`, docs/targets.md) says what it is made for.

    `builtin.module { func.func @main() { return } }`
    """

    name = "builtin.module"
    traits = frozenset({IsolatedFromAbove, NoTerminator, SymbolTable})
    __slots__ = ("resources", "trusted", "_named")
    sym_name = attribute(A.StringAttr, "the module's name", optional=True)
    body = region()

    # bytes of the large constants by the sha256 of their contents; torch tensors stay in
    # `runtime` and are referred to by the same key.
    resources: dict[str, object]
    # Whether it may run operators that reach outside of it (`aten_trust`); a text's may not.
    trusted: bool

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.resources = {}
        self.trusted = True
        self._named: dict[str, Operation] = {}

    @classmethod
    def empty(cls, name: str | None = None) -> ModuleOp:
        """A module with nothing in it."""
        attributes = {} if name is None else {"sym_name": A.StringAttr(name)}
        return cls((), (), attributes, (Region([Block()]),))

    @property
    def block(self) -> Block:
        """The block that holds the module's operations."""
        return self.regions[0].blocks[0]

    @property
    def ops(self) -> Iterator[Operation]:
        """The module's operations."""
        return self.block.ops

    def print_custom(self, printer: Printer) -> None:
        name = self.attributes.get("sym_name")
        named = isinstance(name, A.StringAttr)
        printer.text(f" @{name_text(name.value)}" if named else "")  # type: ignore[union-attr]
        printer.attributes(self.attributes, ("sym_name",) if named else (), "attributes")
        printer.text(" ")
        printer.region(self.regions[0], header=False)

    @classmethod
    def parse_custom(cls, parser: Parser) -> Operation:
        if parser.at("("):
            return parser.default_form(cls)
        attributes = {}
        if parser.kind == "at":
            attributes["sym_name"] = A.StringAttr(parser.symbol_name())
        attributes.update(parser.optional_attribute_dict("attributes"))
        return cls((), (), attributes, (parser.region(),))

    def verify_op(self) -> None:
        target = self.attributes.get("irc.target")
        if target is not None and not isinstance(target, lookup_attribute("irc.target")):  # type: ignore[arg-type]
            self.fail(f"irc.target is {target}, not #irc.target<...>")

    def lookup(self, name: str) -> Operation | None:
        """The symbol operation called `name`; of several, which no valid module has, any."""
        entry = self._named.get(name)
        if entry is None or entry.parent is not self.block or _symbol_name(entry) != name:
            # What was noted is only a guess: operations come, go and change their names.
            self._named = {}
            for op in self.block.ops:
                own = _symbol_name(op)
                if own is not None:
                    self._named.setdefault(own, op)
            entry = self._named.get(name)
        return entry

    def clone(self, mapping: dict | None = None) -> ModuleOp:
        copy = super().clone(mapping)
        copy.resources = dict(self.resources)  # type: ignore[attr-defined]
        copy.trusted = self.trusted  # type: ignore[attr-defined]
        return copy  # type: ignore[return-value]


def _symbol_name(op: Operation) -> str | None:
    attr = op.attributes.get("sym_name")
    return attr.value if isinstance(attr, A.StringAttr) else None
