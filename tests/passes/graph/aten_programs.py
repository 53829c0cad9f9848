"""Programs on the aten level, put together one call at a time."""

from __future__ import annotations

from irc.dialects import aten
from irc.dialects.builtin import ModuleOp
from irc.dialects.func import FuncOp, ReturnOp
from irc.ir.builder import Builder
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.graph.convert_aten.support import Call

NONE = object()


def tensor(shape, strides=None, element=f32):
    """A tensor type, row-major unless strides are given; NONE for none."""
    if strides is NONE:
        return TensorType(shape, element)
    return TensorType(shape, element, contiguous_strides(shape) if strides is None else strides)


class Program:
    """A function on the aten level."""

    def __init__(self, *types):
        self.function = FuncOp.create("main", types, [])
        self.module = ModuleOp.empty()
        self.module.block.append(self.function)
        self.builder = Builder.at_end(self.function.block)
        self.arguments = self.function.block.arguments

    def call(self, name, kind, *args):
        """The result of a call (or the results, for a list of types)."""
        kinds = kind if isinstance(kind, list) else [kind]
        qualified = name if name.startswith("prims.") else f"aten.{name}"
        op = aten.make_aten(
            qualified, args, {}, lambda a: a if hasattr(a, "users") else None, kinds
        )
        self.builder.insert(op)
        return list(op.results) if isinstance(kind, list) else op.results[0]

    def converting(self):
        """A call being converted, on a value that nothing asks about."""
        named = {a: a for a in self.arguments}
        return Call(self.builder, None, {}, {}, [], named)

    def returned(self, *values):
        """The module of the function, which gives these values."""
        self.builder.create(ReturnOp, list(values))
        self.function.refresh_type()
        return self.module
