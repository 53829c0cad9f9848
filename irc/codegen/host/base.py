"""The words in which a native host function is written: types, constants, what a tensor is."""

from __future__ import annotations

from typing import TypeAlias

import attrs
from llvmlite import ir

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
F64, PTR, VOID = ir.DoubleType(), ir.PointerType(), ir.VoidType()

#: Indices into `irc.boundary.torch_abi.runtime_table()`.
RUNTIME_NONE, RUNTIME_FORKED, RUNTIME_TRUE, RUNTIME_FALSE, RUNTIME_LIST = 2, 6, 7, 8, 9
RUNTIME_INT, RUNTIME_FLOAT, RUNTIME_AUTOGRAD_KEY, RUNTIME_AUTOCAST_KEY = 12, 13, 14, 15
TENSOR_FIELD, CDATA_POINTER, OBJECT_SIZE, OBJECT_TYPE = 16, 16, 16, 8

Value: TypeAlias = ir.Value
Size: TypeAlias = int | ir.Value


@attrs.frozen
class TensorSpec:
    """What an argument must be: dtype code, sizes and strides with None for "any, read it".

    `dtype` is torch's integer code (`torch_abi.dtype_code`); `strides` None accepts any.
    """

    dtype: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None

    def words(self) -> list[int]:
        """The table that `irc_check_tensor` reads."""
        strides = self.strides if self.strides is not None else (None,) * len(self.sizes)
        shape = [-1 if d is None else d for d in (*self.sizes, *strides)]
        return [self.dtype, len(self.sizes), int(self.strides is not None), *shape]


@attrs.define(eq=False)
class HostTensor:
    """A tensor in the program: its handle, and what has been read from it so far."""

    handle: Value
    rank: int
    data: Value | None = None
    sizes: Value | None = None
    strides: Value | None = None
    #: Memory with the three, for an argument.
    table: Value | None = None
    #: Index of the owned handle slot, None when borrowed.
    slot: int | None = None
    #: Index of the argument that it is, None when it isn't one.
    argument: int | None = None


@attrs.define(eq=False)
class Arena:
    """One block of scratch memory for the length of a call."""

    block: Value
    views: int = 0


class LateInt(ir.Constant):
    """An integer constant whose value is known when the function is finished."""

    def __init__(self) -> None:
        super().__init__(I64, 0)

    def set(self, value: int) -> None:
        """Fix the value: before the module is printed."""
        self.constant = value


def opaque(value: Value) -> Value:
    """llvmlite gives memory it makes a typed pointer; everything here uses opaque ones."""
    value.type = PTR
    return value


def constant(value: int) -> ir.Constant:
    """An i64 constant."""
    return ir.Constant(I64, value)


def as_value(value: Size) -> Value:
    """`value` as an i64: Python integers become constants."""
    return constant(value) if isinstance(value, int) else value


def word(builder: ir.IRBuilder, base: Value, index: int) -> Value:
    """The address of the `index`-th 64-bit word from `base`."""
    return builder.gep(base, [constant(index)], source_etype=I64)
