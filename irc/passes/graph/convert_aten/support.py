"""The boundary from the aten level to the graph level, and the small steps of its converters.

A converter is a function of a `Call` that gives the graph values for the results, or raises
`Declined` with the reason; the operator is then called as it is (`graph.call_aten`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects import aten, func, graph, sym
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.sym.known import Known
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Value
from irc.ir.rewrite.conversion import Conversion, ConversionTarget, decline
from irc.ir.symbols import Dim, Expr, Range
from irc.ir.types import (
    DTYPE_OF_ELEMENT,
    ELEMENT_OF_DTYPE,
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i64,
)
from irc.target.library_figures import LibraryFigures
from irc.target.record import known as known_target

LARGEST: Mapping[Type, float] = {
    f16: 65504.0,
    bf16: (2 - 2.0**-7) * 2.0**127,
    f32: (2 - 2.0**-23) * 2.0**127,
}

#: On the graph level anything may remain but ATen's operators: a user's operations are for another
#: pass or boundary, and a pipeline may begin with a program of any level.
TO_GRAPH = Conversion(
    "convert-aten-to-graph",
    func.FuncOp,
    ConversionTarget(
        legal=("graph", "sym", "flow", "func", "layout", "loop", "kernel", "host"),
        illegal=("aten",),
        others=True,
    ),
    absent="it has no form on the graph level",
    later="convert-to-loop",
    package="irc.passes.graph.convert_aten",
)
converts = TO_GRAPH.converts


def is_float(element: Type) -> bool:
    """Whether elements are real floats of any width."""
    return isinstance(element, FloatType)


def compute_element(element: Type) -> Type:
    """The type in which arithmetic on these elements is done: f32 for narrower floats."""
    if isinstance(element, FloatType) and element is not f64:
        return f32
    return element


@functools.cache
def promote(first: Type, second: Type) -> Type:
    """torch's promotion of two dtypes of one category rank."""
    import torch

    names = [getattr(torch, DTYPE_OF_ELEMENT[e]) for e in (first, second)]
    return ELEMENT_OF_DTYPE[str(torch.promote_types(*names)).removeprefix("torch.")]


class Call:
    """One operation being converted: its arguments as graph values, and a builder.

    `call.x` is the schema argument `x` (values, numbers, Exprs, lists, None), of an operation of
    another dialect its operand or attribute `x`; `result` is the type of the first result, without
    strides, `ranges` what is known of the function's symbols, `known` which sizes are equal by the
    facts before it, `default_float` the dtype of numbers,
    `figures` the target's libraries.
    """

    def __init__(
        self,
        builder: Builder,
        op: Any,
        arguments: dict[str, Any],
        sources: dict[str, Any],
        result_types: Sequence[Type],
        values: dict[Value, Value] | None = None,
        ranges: Mapping[str, Range] | None = None,
        known: Known | None = None,
        default_float: str = "float32",
        figures: LibraryFigures | None = None,
    ) -> None:
        self._converted = {} if values is None else values
        self.known = Known() if known is None else known
        self.ranges = ranges or {}
        self.default_float = default_float
        self.figures = known_target("avx2") if figures is None else figures
        self.builder = builder
        self.op = op
        self.arguments = arguments
        self.sources = sources
        self.result_types = tuple(result_types)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.arguments["self" if name == "self_" else name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def result(self) -> TensorType:
        """The type of the first result."""
        return self.result_at(0)

    def result_at(self, number: int) -> TensorType:
        """The type of result `number`, a tensor."""
        type_ = self.result_types[number]
        assert isinstance(type_, TensorType)
        return type_

    def one_of(self, *names: str) -> Any:
        """The first of these schema arguments that the operator has; None without any."""
        return next((self.arguments[n] for n in names if n in self.arguments), None)

    def converted(self, value: Value) -> Value:
        """The graph value of a value on the aten level that was converted before."""
        return self._converted[value]

    def becomes(self, value: Value, content: Value) -> None:
        """From here on the graph value of `value` is `content`: the operator writes it."""
        self._converted[value] = content

    def argument(self, value: Value) -> BlockArgument | None:
        """The function argument that a value on the aten level is. A copy of one is none, though
        the graph level may have the same value for both."""
        converted = None if value.defining_op is not None else self._converted.get(value)
        return converted if isinstance(converted, BlockArgument) else None

    # -- making values

    def emit(self, cls: Any, /, *operands: Any, **rest: Any) -> Value:
        """The only result of a new operation."""
        return self.builder.value(cls, *operands, **rest)

    def pointwise(self, name: str, *operands: Value) -> Value:
        """`graph.<name>` of operands that fit already. Declines elements that it is not defined
        on: ATen knows whether the operator is."""
        cls = graph.POINTWISE[name]
        if not cls.takes(element_of(operands[0])):
            decline(f"{cls.name} is not defined on {element_of(operands[0])}")
        return self.emit(cls, *operands)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """`graph.select`."""
        return self.emit(graph.Select, condition, yes, no)

    def cast(self, value: Value, element: Type) -> Value:
        """`value` with this element type; itself when it has it."""
        if element_of(value) is element:
            return value
        return self.builder.insert(graph.Cast.to(value, element)).results[0]

    def compute(self, value: Value) -> Value:
        """`value` in the type that arithmetic on it uses."""
        return self.cast(value, compute_element(element_of(value)))

    def full(
        self,
        number: Any,
        like: TensorType | Value,
        element: Type | None = None,
        *,
        wraps: bool = False,
    ) -> Value:
        """A tensor of `number` (Python number, Expr, SSA scalar) with the shape of `like`; `wraps`
        as in `wrapped`."""
        type_ = like.type if isinstance(like, Value) else like
        assert isinstance(type_, TensorType)
        target = TensorType(type_.shape, element or type_.element, None, type_.device)
        if isinstance(number, Expr):
            number = self.emit(sym.ValueOp, dim=number)
        if isinstance(number, Value):
            return self.emit(graph.Full, number, result_types=target)
        if isinstance(target.element, ComplexType):
            decline("complex constants are ATen's")
        value = graph.scalar_attribute(
            wrapped(number, target.element, wraps=wraps), target.element
        )
        return self.emit(graph.Full, None, value=value, result_types=target)

    def iota(self, dim: int, like: TensorType | Value, element: Type = i64) -> Value:
        """Positions along `dim` with the shape of `like`."""
        type_ = like.type if isinstance(like, Value) else like
        target = TensorType(type_.shape, element, None, type_.device)  # type: ignore[attr-defined]
        return self.emit(graph.Iota, dim=dim, result_types=target)

    # -- shapes

    def broadcast(self, value: Value, shape: Sequence[Dim]) -> Value:
        """`value` repeated to `shape`, dimensions aligned from the right as torch does.

        One number of the CPU is repeated to the device of the result.
        """
        type_ = value.type
        assert isinstance(type_, TensorType)
        shape = tuple(shape)
        if type_.shape == shape:
            return value
        offset = len(shape) - type_.rank
        if offset < 0:
            decline(f"{type_} can't be broadcast to rank {len(shape)}")
        value = self.agree(value, shape[offset:])
        type_ = tensor_type(value)
        if type_.shape == shape:
            return value
        dims = tuple(range(offset, len(shape)))
        device = self.result.device if type_.rank == 0 else type_.device
        target = TensorType(shape, type_.element, None, device)
        return self.emit(graph.Broadcast, value, dims=dims, result_types=target)

    def agree(self, value: Value, shape: Sequence[Dim]) -> Value:
        """Refine sizes that a fact says are 1 or those of `shape`; others that torch knows to be
        equal to these, with an assertion."""
        type_ = value.type
        assert isinstance(type_, TensorType)
        sizes = []
        for have, want in zip(type_.shape, shape, strict=True):
            if have == want or have == 1:
                pass
            elif self.known.equal(have, 1):
                have = 1
            elif self.known.equal(have, want):
                have = want
            else:
                if isinstance(have, int) and isinstance(want, int):
                    decline(f"size {have} can't be broadcast to {want}")
                text = f"The size of tensor a ({have}) must match the size of tensor b ({want})"
                self.builder.create(
                    sym.AssertOp, relation="eq", lhs=have, rhs=want, message=text
                )
                have = want
            sizes.append(have)
        if tuple(sizes) == type_.shape:
            return value
        return self.emit_typed(sym.RefineOp, value, type_.with_shape(sizes))

    def emit_typed(self, cls: Any, value: Value, type_: Type, /, **attributes: Any) -> Value:
        """A one-operand operation with a given result type."""
        return self.emit(cls, value, result_types=type_, **attributes)

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        """`graph.reshape`, or `value` when the shape is the same."""
        type_ = value.type
        assert isinstance(type_, TensorType)
        if type_.shape == tuple(shape):
            return value
        return self.emit_typed(graph.Reshape, value, type_.with_shape(shape))

    def permute(self, value: Value, order: Sequence[int]) -> Value:
        """`graph.permute`, or `value` for the identity."""
        if list(order) == list(range(len(order))):
            return value
        return self.emit(graph.Permute, value, permutation=list(order))

    def slice(self, value: Value, dim: int, start: Dim, size: Dim, step: int = 1) -> Value:
        """`size` elements along `dim` from `start`."""
        type_ = value.type
        assert isinstance(type_, TensorType)
        if isinstance(size, int) and size < 0:
            decline(f"a slice of {size} elements")
        if start == 0 and step == 1 and size == type_.shape[dim]:
            return value
        part = graph.replace_size(type_, dim, size)
        return self.emit_typed(graph.Slice, value, part, dim=dim, start=start, step=step)

    def reduce(
        self, combiner: str, value: Value, dims: Sequence[int], keepdim: bool = False
    ) -> Value:
        """`graph.reduce`."""
        return self.emit(
            graph.Reduce, value, combiner=combiner, dims=sorted(dims), keepdim=keepdim
        )

    # -- operands of arithmetic

    def operand(self, value: Any, shape: Sequence[Dim], element: Type) -> Value:
        """A tensor or number as a tensor of this shape and element type."""
        if isinstance(value, Value) and isinstance(value.type, TensorType):
            if isinstance(value.type.element, ComplexType):
                decline("complex operands are ATen's")
            if is_float(element) and compute_element(element) is element:
                value = self.compute(value) if is_float(value.type.element) else value
            return self.broadcast(self.cast(value, element), shape)
        # torch makes a tensor of an `other`, which is cast; what else is a number must fit.
        wraps = value is self.arguments.get("other")
        return self.full(value, self.result.with_shape(shape), element, wraps=wraps)

    def operands(self, *values: Any, element: Type | None = None) -> list[Value]:
        """Tensors and numbers promoted, in the type that arithmetic uses (of the result's dtype
        unless given), and broadcast to the result's shape."""
        chosen = compute_element(element or self.result.element)
        if isinstance(chosen, ComplexType):
            decline("complex arithmetic is ATen's")
        return [self.operand(v, self.result.shape, chosen) for v in values]

    def finish(self, value: Value) -> Value:
        """`value` in the result's dtype."""
        return self.cast(value, self.result.element)

    def promoted(self, *values: Any) -> Type:
        """The dtype that torch computes these operands in (without widening 16-bit floats)."""
        return promoted_element(values, ELEMENT_OF_DTYPE[self.default_float])


def element_of(value: Value) -> Type:
    """The element type of a tensor value; a number that stands for one is ATen's to convert."""
    if not isinstance(value, Value) or isinstance(value.type, aten.NUMBER_TYPES):
        decline("a number stands for a tensor")
    return value.type.element  # type: ignore[attr-defined]


def shape_of(value: Value) -> tuple[Dim, ...]:
    """The sizes of a tensor value; a number that stands for one is ATen's to convert."""
    if not isinstance(value, Value) or isinstance(value.type, aten.NUMBER_TYPES):
        decline("a number stands for a tensor")
    return value.type.shape  # type: ignore[attr-defined]


def moved_source(c: Call) -> Value:
    """The tensor whose elements an operator moves; complex ones are moved by ATen."""
    value: Value = c.one_of("self", "a", "input")
    if isinstance(element_of(value), ComplexType):
        decline("complex elements are moved by ATen")
    return value


def rank_of(value: Value) -> int:
    """The rank of a tensor value."""
    return len(shape_of(value))


def float_tensor(c: Call, value: Value) -> Value:
    """`value` in the type that arithmetic on it uses; declines what has no real floats."""
    if not is_float(element_of(value)):
        decline("not a tensor of floats")
    return c.compute(value)


def fits(number: Any, element: Type) -> bool:
    """Whether ATen's checked conversion takes a Python number as an element: within the range,
    where an unsigned integer has negative numbers too; infinities are floats."""
    if isinstance(number, complex):
        return False
    if isinstance(element, FloatType):
        return not math.isfinite(number) or abs(number) <= LARGEST.get(element, math.inf)
    if not isinstance(element, IntegerType) or element is i1:
        return True
    largest = (1 << (element.width if element.unsigned else element.width - 1)) - 1
    smallest = -largest if element.unsigned else -largest - 1
    return smallest <= number <= largest


def wrapped(number: Any, element: Type, *, wraps: bool = False) -> Any:
    """A Python number as an element. Declines one that is not in its range, about which ATen
    decides, mostly with an error; with `wraps` integers wrap around and floats are infinite."""
    if isinstance(number, complex):
        decline("a complex number is ATen's")
    if not wraps and not fits(number, element):
        decline(f"{number} is no {element}")
    if isinstance(element, IntegerType) and element is not i1:
        if isinstance(number, float) and not math.isfinite(number):
            decline(f"{number} is no integer")
        whole = int(number) & ((1 << element.width) - 1)
        negative = not element.unsigned and whole >> (element.width - 1)
        return whole - (1 << element.width) if negative else whole
    return number


def promoted_element(values: Sequence[Any], default_float: Type = f32) -> Type:
    """torch's result type of tensors and Python numbers; `default_float` is torch's default dtype.

    Tensors of higher rank go before those of rank 0, and these before numbers, within the
    highest category (bool, integer, float) that any has.
    """
    groups: list[Type | None] = [None, None, None]
    for value in values:
        if value is None:
            continue
        if isinstance(value, Value) and isinstance(value.type, TensorType):
            number, element = (0 if value.type.rank else 1), value.type.element
        else:
            number, element = 2, number_element(value)
            element = default_float if element is f64 else element
        if isinstance(element, ComplexType):
            decline("complex arithmetic is ATen's")
        known = groups[number]
        groups[number] = element if known is None else promote(known, element)
    result = _before(groups[0], _before(groups[1], groups[2]))
    if result is None:
        decline("there is no operand")
    return result


def _before(first: Type | None, second: Type | None) -> Type | None:
    """The type of operands of which the first kind goes before the second."""
    if first is None or second is None:
        return first or second
    if is_float(first) or (first is not i1 and not is_float(second)):
        return first
    return promote(first, second)


def number_element(value: Any) -> Type:
    """The element type of a Python number, Expr or SSA scalar."""
    if isinstance(value, Value):
        type_ = value.type
        return i64 if isinstance(type_, IndexType) else type_
    if isinstance(value, bool):
        return i1
    if isinstance(value, int | Expr):
        return i64
    if isinstance(value, float):
        return f64
    decline(f"{value!r} is no real number")


def normalized(dim: int, rank: int) -> int:
    """A dimension number that may be negative, as one that is not. Declines one that is not
    there: the operator raises its error when the program runs."""
    count = max(rank, 1)
    if not -count <= dim < count:
        decline(f"dimension {dim} of a tensor of rank {rank}")
    return dim + count if dim < 0 else dim


def dims_list(dims: Any, rank: int, empty_is_all: bool = True) -> list[int]:
    """Dimension numbers of a reduction; None (and an empty list) mean all."""
    if dims is None or (empty_is_all and isinstance(dims, list) and not dims):
        return list(range(rank))
    if isinstance(dims, int):
        dims = [dims]
    return sorted({normalized(d, rank) for d in dims if rank})


def dtype_element(value: Any, otherwise: Type) -> Type:
    """The element type of a dtype argument, or `otherwise` for None."""
    return value.element if isinstance(value, aten.DtypeAttr) else otherwise
