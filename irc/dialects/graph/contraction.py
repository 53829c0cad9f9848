"""The product of the graph dialect: two tensors multiplied, and summed up along some dimensions.

    %y = graph.dot_general %a, %b {accumulator = f32, left_batch = array<i64: 0>, left_depth = ...}

What a library multiplies is a `graph.call_aten`; this is a product of irc's own, which becomes a
compute like any other (docs/design/contractions.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects.graph.inferred import InferredOp, tensor_type
from irc.dialects.graph.pointwise import TENSOR
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import attribute, operand, result
from irc.ir.symbols import Dim
from irc.ir.traits import Pure
from irc.ir.types import FloatType, IntegerType, TensorType, i1


class DotGeneral(InferredOp):
    """The sum over the depth of `left` times `right`, for each row of one and column of the other.

    Dimension `left_batch[k]` of `left` goes along with `right_batch[k]` of `right`, and
    `left_depth[k]` with `right_depth[k]`, over which products are summed up; the rest of `left` are
    rows, of `right` columns. The result has the batch's dimensions in their order, then rows, then
    columns, each as they stand. Both factors are cast to the type `accumulator`, that of products,
    sums and result: a float of at least 32 bits, or an integer type, no narrower than the elements.
    The order of the sum is not said; over nothing it is 0.

    `schedule` has entries of a schedule that were chosen for the compute that this becomes; what
    it doesn't say, the pass `schedule` chooses.

    `%y = graph.dot_general %a, %b {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>} : (tensor<4x6xf16>, tensor<6x8xf16>) -> tensor<4x8xf32>`
    """  # noqa: E501

    name = "graph.dot_general"
    traits = frozenset({Pure})
    left = operand(TENSOR)
    right = operand(TENSOR)
    left_batch = attribute(A.DenseIntsAttr)
    right_batch = attribute(A.DenseIntsAttr)
    left_depth = attribute(A.DenseIntsAttr)
    right_depth = attribute(A.DenseIntsAttr)
    accumulator = attribute(A.TypeAttr)
    schedule = attribute(ScheduleAttr, optional=True)
    value = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        left, right = map(tensor_type, operands)
        dims = {name: attributes[name].parameters[0] for name in DIMENSIONS}
        rows = free_dims(left.rank, dims["left_batch"], dims["left_depth"])
        columns = free_dims(right.rank, dims["right_batch"], dims["right_depth"])
        shape: list[Dim] = [left.shape[d] for d in (*dims["left_batch"], *rows)]
        shape += [right.shape[d] for d in columns]
        return (TensorType(shape, attributes["accumulator"].parameters[0], None, left.device),)

    @property
    def rows(self) -> tuple[int, ...]:
        """The dimensions of `left` that are its own."""
        return free_dims(tensor_type(self.left).rank, self.left_batch, self.left_depth)

    @property
    def columns(self) -> tuple[int, ...]:
        """The dimensions of `right` that are its own."""
        return free_dims(tensor_type(self.right).rank, self.right_batch, self.right_depth)

    def verify_operands(self) -> None:
        left, right = tensor_type(self.left), tensor_type(self.right)
        sides = (("left", left, self.left_batch, self.left_depth),
                 ("right", right, self.right_batch, self.right_depth))  # fmt: skip
        for side, type_, batch, depth in sides:
            dims = (*batch, *depth)
            if len(set(dims)) != len(dims) or any(not 0 <= d < type_.rank for d in dims):
                self.fail(f"batch and depth of {side}, {list(dims)}, are no dimensions of {type_}")
        pairs = (("batch", self.left_batch, self.right_batch),
                 ("depth", self.left_depth, self.right_depth))  # fmt: skip
        for what, ours, theirs in pairs:
            sizes = [left.shape[d] for d in ours], [right.shape[d] for d in theirs]
            if sizes[0] != sizes[1]:
                self.fail(f"the sizes of the {what} are {sizes[0]} and {sizes[1]}")
        if not self.left_depth:
            self.fail("there is nothing to sum over")
        if left.device != right.device:
            self.fail(f"{left} and {right} are on two devices")
        for type_ in (left, right):
            if not holds(self.accumulator, type_.element):
                self.fail(f"{self.accumulator} does not hold every {type_.element}")


DIMENSIONS = ("left_batch", "right_batch", "left_depth", "right_depth")


def free_dims(rank: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """The dimensions that are in none of the lists."""
    return tuple(d for d in range(rank) if not any(d in dims for dims in taken))


def holds(accumulator: Type, element: Type) -> bool:
    """Whether products of an element type can be summed up in another one: floats in f32 or more,
    integers in their own type or a wider one of their kind."""
    if isinstance(accumulator, FloatType) and isinstance(element, FloatType):
        return accumulator.width >= max(32, element.width)
    if not isinstance(accumulator, IntegerType) or not isinstance(element, IntegerType):
        return False
    known = i1 not in (accumulator, element) and accumulator.unsigned == element.unsigned
    return known and accumulator.width >= element.width
