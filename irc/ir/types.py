"""Builtin types: integers, floats, index, tensors, vectors, pointers' element types, functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from irc.ir.interned import Type
from irc.ir.symbols import Dim, Expr


class IntegerType(Type):
    """`i32` (signless), `ui8` (unsigned; only on graph, layout and loop level)."""

    __slots__ = ()
    fields = ("width", "unsigned")
    width: int
    unsigned: bool

    def __new__(cls, width: int, unsigned: bool = False) -> IntegerType:
        key = (width, bool(unsigned))
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def validate(self) -> None:
        if not 1 <= self.width <= 128:
            raise ValueError(f"integer width {self.width} is not between 1 and 128")


class FloatType(Type):
    """A floating-point type named as in MLIR: f16, bf16, f32, f64, f8E4M3FN, ..."""

    __slots__ = ()
    fields = ("name", "width")
    name: str
    width: int


class ComplexType(Type):
    """`complex<f32>`."""

    __slots__ = ()
    mnemonic = "complex"
    fields = ("element",)
    element: Type


class IndexType(Type):
    """`index`: a 64-bit signed integer that counts or addresses."""

    __slots__ = ()
    mnemonic = "index"


class NoneType(Type):
    """`none`: the type of a missing optional value (an absent result)."""

    __slots__ = ()
    mnemonic = "none"


class FunctionType(Type):
    """`(inputs) -> (results)`."""

    __slots__ = ()
    fields = ("inputs", "results")
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __new__(cls, inputs: Iterable[Type], results: Iterable[Type]) -> FunctionType:
        key = (tuple(inputs), tuple(results))
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)


class VectorType(Type):
    """A register tile: `vector<16xf32>`, `vector<16x16xf32>`; static sizes only."""

    __slots__ = ()
    mnemonic = "vector"
    fields = ("shape", "element")
    shape: tuple[int, ...]
    element: Type

    def __new__(cls, shape: Iterable[int], element: Type) -> VectorType:
        key = (tuple(shape), element)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)


#: Elements and places in memory count in signed integers of 64 bits.
LIMIT = 1 << 63
LARGEST_ELEMENT = 16
"""The bytes of the largest element, complex<f64>."""


class ImpossibleSizeError(ValueError):
    """No array has such sizes or strides: one is below zero, or 64 bits don't count its bytes."""


class TensorType(Type):
    """An n-dimensional array.

    `shape`: sizes (ints or symbolic expressions). `strides`: None above the layout level, else
    one stride (in elements) per dimension. `device`: "cpu", "cuda:0", ... A static, unordered
    cpu tensor prints as MLIR's `tensor<4x5xf32>`; symbolic sizes as `tensor<[s0, 5] x f32>`;
    strides as `tensor<[s0, 5] x f32, strides [5, 1]>`; another device as `, "cuda:0"`.
    """

    __slots__ = ()
    mnemonic = "tensor"
    fields = ("shape", "element", "strides", "device")
    shape: tuple[Dim, ...]
    element: Type
    strides: tuple[Dim, ...] | None
    device: str

    def __new__(
        cls,
        shape: Iterable[Dim],
        element: Type,
        strides: Iterable[Dim] | None = None,
        device: str = "cpu",
    ) -> TensorType:
        key = (
            tuple(shape),
            element,
            None if strides is None else tuple(strides),
            device,
        )
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def validate(self) -> None:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(
                f"{len(self.strides)} strides given for a tensor of rank {len(self.shape)}"
            )
        for size in self.shape:
            if isinstance(size, int) and size < 0:
                raise ImpossibleSizeError(f"tensor size {size} is negative")
        if 0 in self.shape:
            return
        known = [size for size in self.shape if isinstance(size, int)]
        # So that it may have strides, too: contiguous ones reach to its last byte.
        if math.prod(known) * LARGEST_ELEMENT >= LIMIT:
            raise ImpossibleSizeError("the tensor has more elements than 64 bits can count")
        if self.strides is not None and reach(self.shape, self.strides) * LARGEST_ELEMENT >= LIMIT:
            raise ImpossibleSizeError("the tensor's strides reach further than 64 bits can count")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.parameters[0])

    @property
    def is_static(self) -> bool:
        """Whether every size is an integer."""
        return not any(isinstance(size, Expr) for size in self.parameters[0])

    def with_shape(self, shape: Iterable[Dim], strides: Iterable[Dim] | None = None) -> TensorType:
        """The same element and device with another shape (and strides)."""
        return TensorType(shape, self.element, strides, self.device)

    def with_strides(self, strides: Iterable[Dim] | None) -> TensorType:
        """The same tensor type with `strides` (None: unordered)."""
        return TensorType(self.shape, self.element, strides, self.device)

    def with_element(self, element: Type) -> TensorType:
        """The same shape, strides and device with another element type."""
        return TensorType(self.shape, element, self.strides, self.device)


class LibraryTensorType(Type):
    """Base of the types of tensors in an order that a library chose: an operator may take them
    where its schema says Tensor."""

    __slots__ = ()


def reach(shape: Iterable[Dim], strides: Iterable[Dim | None], begin: Dim = 0) -> int:
    """How many elements lie from the place that `begin` counts from to a tensor's farthest one,
    in either direction, at least: what is symbolic counts as nothing."""
    steps = (begin, *((n - 1) * s for n, s in zip(shape, strides, strict=True) if s is not None))
    return 1 + sum(abs(d) for d in steps if isinstance(d, int))


def contiguous_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Row-major strides as eager PyTorch gives them (a size of 0 counts as 1, and a symbolic
    size counts as itself; see `irc.ir.symbols` for sizes assumed positive)."""
    strides: list[Dim] = []
    running: Dim = 1
    for size in reversed(shape):
        strides.append(running)
        if not (isinstance(size, int) and size <= 1):
            running = running * size
    return tuple(reversed(strides))


index = IndexType()
none = NoneType()
i1 = IntegerType(1)
i8 = IntegerType(8)
i16 = IntegerType(16)
i32 = IntegerType(32)
i64 = IntegerType(64)
ui8 = IntegerType(8, True)
ui16 = IntegerType(16, True)
ui32 = IntegerType(32, True)
ui64 = IntegerType(64, True)
f16 = FloatType("f16", 16)
bf16 = FloatType("bf16", 16)
f32 = FloatType("f32", 32)
f64 = FloatType("f64", 64)
f8E4M3FN = FloatType("f8E4M3FN", 8)
f8E5M2 = FloatType("f8E5M2", 8)
f8E4M3FNUZ = FloatType("f8E4M3FNUZ", 8)
f8E5M2FNUZ = FloatType("f8E5M2FNUZ", 8)
c32 = ComplexType(f16)
c64 = ComplexType(f32)
c128 = ComplexType(f64)

FLOAT_TYPES: dict[str, FloatType] = {
    t.name: t for t in (f16, bf16, f32, f64, f8E4M3FN, f8E5M2, f8E4M3FNUZ, f8E5M2FNUZ)
}

# torch's dtype names (str(dtype) without "torch.") and the element types that stand for them.
ELEMENT_OF_DTYPE: dict[str, Type] = {
    "bool": i1, "int8": i8, "int16": i16, "int32": i32, "int64": i64,
    "uint8": ui8, "uint16": ui16, "uint32": ui32, "uint64": ui64,
    "float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64,
    "float8_e4m3fn": f8E4M3FN, "float8_e5m2": f8E5M2,
    "float8_e4m3fnuz": f8E4M3FNUZ, "float8_e5m2fnuz": f8E5M2FNUZ,
    "complex32": c32, "complex64": c64, "complex128": c128,
}  # fmt: skip
DTYPE_OF_ELEMENT: dict[Type, str] = {t: name for name, t in ELEMENT_OF_DTYPE.items()}


def element_bytes(element: Type) -> int:
    """Bytes that one element takes in memory (bool: 1)."""
    if isinstance(element, ComplexType):
        return 2 * element_bytes(element.element)
    if isinstance(element, IndexType):
        return 8
    width: Any = getattr(element, "width", None)
    if width is None:
        raise ValueError(f"{element} has no size in memory")
    return max(1, width // 8)


def is_float(t: Type) -> bool:
    """Whether `t` is a (real) floating-point type."""
    return isinstance(t, FloatType)


def is_integer(t: Type) -> bool:
    """Whether `t` is an integer or index type (bool included)."""
    return isinstance(t, IntegerType | IndexType)
