"""The builtin dialect: the module."""

from __future__ import annotations

from collections.abc import Iterator

from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import Op, attribute, region
from irc.ir.traits import IsolatedFromAbove, NoTerminator, SymbolTable


class ModuleOp(Op):
    """A list of functions and kernels, and the constants kept beside the text.

    `builtin.module { func.func @main() { func.return } }`
    """

    name = "builtin.module"
    traits = frozenset({IsolatedFromAbove, NoTerminator, SymbolTable})
    __slots__ = ("resources",)
    sym_name = attribute(A.StringAttr, "the module's name", optional=True)
    body = region()

    # bytes of the large constants by the sha256 of their contents; torch tensors stay in
    # `runtime` and are referred to by the same key.
    resources: dict[str, object]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.resources = {}

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

    def lookup(self, name: str) -> Operation | None:
        """The symbol operation called `name`."""
        for op in self.block.ops:
            found = op.attributes.get("sym_name")
            if isinstance(found, A.StringAttr) and found.value == name:
                return op
        return None

    def clone(self, mapping: dict | None = None) -> ModuleOp:  # type: ignore[type-arg]
        copy = super().clone(mapping)
        copy.resources = dict(self.resources)  # type: ignore[attr-defined]
        return copy  # type: ignore[return-value]
