"""The pass `fuse-epilogues`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs

from irc.dialects import graph
from irc.dialects.func import FuncOp
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.expressions import (
    Dialect,
    Match,
    NumberVariable,
    Term,
    Variable,
    parameters_of,
)
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import Type, bf16, f16, f32

PACKED = (graph.PackedConv, graph.PackedLinear, graph.WinogradConv)


# -- what activations look like, as `convert-aten-to-graph` writes them

terms = Dialect("graph")
SQRT_HALF, SQRT_TWO_OVER_PI = math.sqrt(0.5), math.sqrt(2.0 / math.pi)


@attrs.frozen
class Activation:
    """What a packed operation can apply: the term of `x` that it is, and the numbers in that term
    which it has as scalars, in order."""

    name: str
    term: Term
    scalars: tuple[str, ...]


def activation(function: Callable[..., Term]) -> Activation:
    """The activation of a function's name: it gives the term of its first parameter."""
    x, *scalars = parameters_of(function)
    term = function(Variable(x), *(NumberVariable(name) for name in scalars))
    return Activation(function.__name__, term, tuple(scalars))


@activation
def gelu_tanh(x):  # type: ignore[no-untyped-def]
    cube = terms.mul(terms.mul(x, x), x)
    inner = terms.mul(SQRT_TWO_OVER_PI, terms.add(x, terms.mul(0.044715, cube)))
    return terms.mul(terms.mul(0.5, x), terms.add(terms.tanh(inner), 1.0))


@activation
def gelu(x):  # type: ignore[no-untyped-def]
    return terms.mul(terms.mul(0.5, x), terms.add(terms.erf(terms.mul(x, SQRT_HALF)), 1.0))


@activation
def hardswish(x):  # type: ignore[no-untyped-def]
    clipped = terms.minimum(terms.maximum(terms.add(x, 3.0), 0.0), 6.0)
    return terms.div(terms.mul(x, clipped), 6.0)


@activation
def hardtanh(x, low, high):  # type: ignore[no-untyped-def]
    return terms.minimum(terms.maximum(x, low), high)


@activation
def leaky_relu(x, slope):  # type: ignore[no-untyped-def]
    return terms.select(terms.gt(x, 0.0), x, terms.mul(x, slope))


@activation
def silu(x):  # type: ignore[no-untyped-def]
    return terms.mul(x, terms.sigmoid(x))


@activation
def relu(x):  # type: ignore[no-untyped-def]
    return terms.maximum(x, 0.0)


@activation
def sigmoid(x):  # type: ignore[no-untyped-def]
    return terms.sigmoid(x)


@activation
def tanh(x):  # type: ignore[no-untyped-def]
    return terms.tanh(x)


#: In the order of trying: what holds another one comes first.
ACTIVATIONS = (gelu_tanh, gelu, hardswish, hardtanh, leaky_relu, silu, relu, sigmoid, tanh)


@attrs.define
class Epilogue:
    """A function of a packed operation's result that can be fused into it.

    `views`: the reshapes and permutations between the two, from the packed operation on. `end`:
    what takes its result's place, in the packed operation's element: the function, or of a narrow
    element, which functions are computed in f32 of, its rounding.
    """

    packed: Any
    views: list[Any]
    end: Operation
    activation: str = ""
    scalars: tuple[float, ...] = ()
    other: Value | None = None


def match_activation(op: Operation) -> Epilogue | None:
    """The activation that `op` ends, of a packed operation whose result nothing else reads."""
    if not isinstance(op, graph.PointwiseOp | graph.Select):
        return None
    for known in ACTIVATIONS:
        match = Match()
        if not match.op(op, known.term):
            continue
        name, source = known.name, match.bound["x"]
        # All that is inside is read inside, but for the end.
        if any(
            user not in match.inside
            for value in (source, *(o.results[0] for o in match.inside if o is not op))
            for user in value.users
        ):
            continue
        epilogue = packed_behind(source, op)
        if epilogue is None or epilogue.packed.activation is not None:
            continue
        if isinstance(epilogue.packed, graph.WinogradConv) and name not in graph.PANEL_ACTIVATIONS:
            continue
        adds = epilogue.packed.other is not None
        if adds and (name != "relu" or isinstance(epilogue.packed, graph.PackedLinear)):
            continue
        epilogue.activation = name
        epilogue.scalars = tuple(float(match.bound[s]) for s in known.scalars)
        return epilogue
    return None


def narrow(value: Value) -> Value:
    """What a value of f32 was widened from; itself, if it wasn't."""
    maker = value.defining_op
    if not isinstance(maker, graph.Cast) or tensor_type(value).element is not f32:
        return value
    return maker.x if tensor_type(maker.x).element in (bf16, f16) else value


def rounding_of(op: Operation, element: Type) -> Operation | None:
    """What alone reads an operation's result, and rounds it to an element; None if nothing does."""
    readers = list(op.results[0].users)
    if len(readers) != 1 or not isinstance(readers[0], graph.Cast):
        return None
    return readers[0] if tensor_type(readers[0].results[0]).element is element else None


def packed_behind(value: Value, op: Operation) -> Epilogue | None:
    """The packed operation that `value` is the result of, through reshapes and permutations that
    nothing else reads, or through widening it where `op`, which computes with it, is rounded."""
    views: list[Any] = []
    end: Operation | None = op
    if narrow(value) is not value:
        value = narrow(value)
        end = rounding_of(op, tensor_type(value).element)
        if len(list(value.users)) != 1:
            return None
    if end is None:
        return None
    maker = value.defining_op
    while isinstance(maker, graph.Reshape | graph.Permute):
        views.append(maker)
        value = maker.source
        if len(list(value.users)) != 1:
            return None
        maker = value.defining_op
    return Epilogue(maker, views[::-1], end) if isinstance(maker, PACKED) else None


def match_addition(op: Operation) -> Epilogue | None:
    """An addition of something else to a packed operation's result that nothing else reads.

    Where both sides are such results, the one whose memory then dies is what is added.
    """
    if not isinstance(op, graph.Add):
        return None
    lhs, rhs = op.operands
    for mine, other in ((lhs, rhs), (rhs, lhs)):
        if mine is other or len(list(mine.users)) != 1:
            continue
        epilogue = packed_behind(mine, op)
        if epilogue is None:
            continue
        if epilogue.end is not op:
            other = narrow(other)
        if tensor_type(other).element is not tensor_type(epilogue.packed.results[0]).element:
            continue
        if epilogue.packed.activation is not None or epilogue.packed.other is not None:
            continue
        if can_add(other, epilogue):
            epilogue.other = other
            return epilogue
    return None


def can_add(other: Value, epilogue: Epilogue) -> bool:
    """Whether the packed operation can read `other`: something with memory, in its own order."""
    if isinstance(other.defining_op, graph.Broadcast | graph.Full):
        return False
    return isinstance(epilogue.packed, graph.PackedLinear) or not epilogue.views


# relu(packed_linear(x, w)) -> packed_linear(x, w, activation="relu"), and all of `ACTIVATIONS`
@pattern(graph.PointwiseOp, graph.Select, name="graph.fuse_activation", counted="activations")
def fuse_activation(op: Any, rw: Any) -> Any:
    epilogue = match_activation(op)
    if epilogue is None:
        return rw.no_match("it ends no activation of a packed operation")
    fuse(epilogue, rw)
    return True


# add(packed_linear(x, w), y) -> packed_linear(x, w, y)
@pattern(graph.Add, name="graph.fuse_addition", counted="additions")
def fuse_addition(op: Any, rw: Any) -> Any:
    epilogue = match_addition(op)
    if epilogue is None:
        return rw.no_match("nothing is added to a packed operation's result")
    fuse(epilogue, rw)
    return True


def fuse(epilogue: Epilogue, rw: Rewriter) -> None:
    """Replace the end of an epilogue by the packed operation that computes it, too."""
    packed, builder = epilogue.packed, rw.builder
    rw.remark(f"{epilogue.activation or 'add'} is computed in {packed.name}")
    other = packed.other
    if epilogue.other is not None:
        other = _undo(builder, epilogue.views, epilogue.other)
    operands = [v for v in (packed.source, packed.weight, packed.bias, other) if v is not None]
    attributes = dict(packed.attributes)
    flags = (1, 1, int(packed.bias is not None), int(other is not None))
    attributes[SEGMENTS] = A.DenseIntsAttr(flags)
    if epilogue.activation:
        attributes["activation"] = A.StringAttr(epilogue.activation)
    if epilogue.scalars:
        attributes["scalars"] = A.ArrayAttr([A.FloatAttr(s) for s in epilogue.scalars])
    fused = type(packed)(operands, packed.result_types, attributes, (), epilogue.end.location)
    builder.insert(fused)
    value = fused.results[0]
    for view in epilogue.views:
        value = _again(builder, view, value)
    widened = [user for user in epilogue.end.results[0].users if isinstance(user, graph.Cast)]
    rw.replace(epilogue.end, [value])
    for cast in widened:  # what is computed in f32 with it may be computed inside, too
        for reader in cast.results[0].users:
            rw.changed(reader)


def _again(builder: Builder, view: Any, value: Value) -> Value:
    """The same view of another value."""
    attributes = dict(view.attributes)
    moved = type(view)([value], view.result_types, attributes, (), view.location)
    return builder.insert(moved).results[0]


def _undo(builder: Builder, views: list[Any], other: Value) -> Value:
    """`other` seen through the inverses of the views, last one first."""
    for view in reversed(views):
        if isinstance(view, graph.Permute):
            order = list(view.permutation)
            inverse = [order.index(d) for d in range(len(order))]
            other = builder.value(graph.Permute, other, permutation=inverse)
        else:
            type_ = view.source.type
            other = builder.value(graph.Reshape, other, result_types=type_)
    return other


@register_pass
class FuseEpilogues(PatternPass):
    """Moves pointwise functions of a packed operation's result into it, so that the library
    applies them while the elements are in registers.

    It takes the place of the last function that it computes. An addition of another tensor of
    the same sizes comes first, then an activation; after an addition only relu can follow, and
    only in a convolution. The values between must have no other readers. A reshape or a
    permutation between a linear and its function moves behind it.
    Functions of bf16 and f16 are computed in f32, of widened elements; so are a packed operation's,
    which rounds once where each function's result was rounded.
    oneDNN's relu and hardtanh give 0 or a bound where torch gives NaN for NaN. A kernel of our own
    (`graph.winograd_conv`) keeps it, and knows relu, leaky_relu, hardtanh and hardswish only.

    Before:
        %y = graph.packed_conv %x, %p {...} : (...) -> tensor<1x2x6x6xf32>
        %s = graph.add %y, %r : (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
        %z = graph.maximum %s, %zero : (...) -> tensor<1x2x6x6xf32>
    After:
        %z = graph.packed_conv %x, %p, %r {activation = "relu", ...} : (...) -> tensor<1x2x6x6xf32>
    """

    name = "fuse-epilogues"
    summary = "apply activations and additions inside packed operations"
    anchor = "func.func"
    preserves = "real"

    patterns = (fuse_activation, fuse_addition)
    #: The outermost function first: a hardtanh holds what looks like a relu.
    backward = True

    def prepare(self, op: Operation, context: PassContext) -> FuseEpilogues | None:
        assert isinstance(op, FuncOp)
        return self if any(isinstance(inner, PACKED) for inner in op.block.ops) else None
