"""What `functionalize` knows of storages and of the tensors that are views of them."""

from __future__ import annotations

from typing import Any

import attrs

from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.strides import same_layout
from irc.ir.types import TensorType
from irc.passes.graph.functionalize.value_building import is_static, storage, type_of
from irc.passes.graph.functionalize.view_chains import ChainStep, FlattenStep


class Root:
    """A storage: its current value, how often it was written, and its argument's number.

    type: that of the tensor that `value` holds, in eager mode; offset: of its first element.
    members: the arguments that share it, where it is the storage of several; allowed: the places
    at which one of them has an element (None where all have).
    """

    __slots__ = ("value", "version", "type", "argument", "_offset", "members", "allowed")

    def __init__(
        self,
        value: Value,
        argument: int | None = None,
        offset: Any = 0,  # or a function that gives it, where asking for it is a fact
        members: tuple[int, ...] = (),
        allowed: frozenset[int] | None = None,
    ) -> None:
        self.value = value
        self.version = 0
        self.type = type_of(value)
        self.argument = argument
        self._offset = offset
        self.members = members
        self.allowed = allowed

    @property
    def offset(self) -> Any:
        """Where it begins: asked only where the program's results depend on it."""
        if callable(self._offset):
            self._offset = self._offset()
        return self._offset

    def begin_storage(self, builder: Builder) -> None:
        """Let the value be first in its storage, from where as_strided counts."""
        value = storage(builder, self.value)
        if value is not self.value:
            self.value = value
            self.version += 1


@attrs.define(eq=False)
class StorageTensor:
    """A root seen through a chain of views, with the value that showed it at `version`.

    type: in eager mode (`value` may lack gaps between elements that eager has).
    """

    root: Root
    chain: tuple[ChainStep, ...]
    value: Value
    version: int
    type: TensorType

    @property
    def is_eagers(self) -> bool:
        """Whether `value` lies in memory as eager's tensor does: nothing was written before."""
        return self.root.version == 0 and self.value.type is self.type


def place_key(tensor: StorageTensor) -> tuple[object, ...]:
    """Equal for tensors that show the same places of a root."""
    return (tensor.type, *(step.key() for step in tensor.chain))


def conform(builder: Builder, value: Value, type_: TensorType) -> Value:
    """The value with the strides of `type_` where they differ and are known."""
    have = type_of(value)
    if have.strides is None or type_.strides is None or not (is_static(have) and is_static(type_)):
        return value
    if same_layout(type_.shape, have.strides, type_.strides):
        return value
    flat = FlattenStep.of(type_, builder.location)
    return flat.undo(builder, value, flat.replay(builder, value))
