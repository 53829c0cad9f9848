"""Matrix products that a library computes: their sizes, and how their operands lie in memory.

A library multiplies rows whose addresses are multiples of 16 bytes as fast as it can, and others
slowly. `product_of` says what padding would make such rows of; `rows_of` what the rows of the
factors and of the result are multiples of as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from irc.analysis.calls import ANY_STRIDES
from irc.analysis.loop import estimate
from irc.analysis.tile_cost import ROW
from irc.dialects import aten, func, graph
from irc.dialects.aten.facts import factors_of
from irc.ir import attributes as A
from irc.ir.core import BlockArgument, Value
from irc.ir.symbols import Dim, Expr
from irc.ir.traits import ViewLike
from irc.ir.types import (
    DTYPE_OF_ELEMENT,
    FloatType,
    TensorType,
    Type,
    contiguous_strides,
    element_bytes,
)

#: The products that are padded.
PADDED = frozenset({"aten.mm.default", "aten.bmm.default", "aten.addmm.default"})


@attrs.frozen
class MatrixProduct:
    """A matrix product [batch,] m x k by k x n, and how much would be padded.

    transposed: whether each factor lies in memory column by column. padding: of m, k and n.
    computed: whether each factor's padding takes no copy, as what computes it writes that too.
    """

    callee: str
    dtype: str
    batch: int
    m: Dim
    k: Dim
    n: Dim
    transposed: tuple[bool, bool]
    padding: tuple[int, int, int]
    computed: tuple[bool, bool] = (False, False)


def alignment(element: Type) -> int:
    """The multiple that a product's sizes should be, in elements; 1 for types that don't care."""
    if not isinstance(element, FloatType):
        return 1
    return {"f16": 8, "bf16": 8, "f32": 4}.get(element.name, 1)


def padding_of(size: Dim, multiple: int) -> int:
    """How much is missing to the next multiple; 0 for symbolic sizes and sizes of 1."""
    return 0 if isinstance(size, Expr) or size == 1 else -size % multiple


def factors(call: graph.CallAten) -> tuple[int, int]:
    """The numbers of the operands that are a call's factors."""
    arguments, names = call.arguments.as_dict(), factors_of(call.callee)
    first, second = arguments[names.left], arguments[names.right]
    assert isinstance(first, aten.OperandAttr) and isinstance(second, aten.OperandAttr)
    return first.index, second.index


def product_of(call: graph.CallAten) -> MatrixProduct | None:
    """The product that a call computes; None where nothing of it would be padded."""
    values = [call.operands[number] for number in factors(call)]
    left, right = (v.type for v in values)
    assert isinstance(left, TensorType) and isinstance(right, TensorType)
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    multiple = alignment(left.element)
    padding = padding_of(m, multiple), padding_of(k, multiple), padding_of(n, multiple)
    more = padding[:2], padding[1:]
    if not any(padding) or 0 in (*left.shape, *right.shape):
        return None
    return MatrixProduct(
        callee=call.callee,
        dtype=DTYPE_OF_ELEMENT[left.element],
        batch=estimate(left.shape[0]) if left.rank == 3 else 1,
        m=m, k=k, n=n,
        transposed=(_is_transposed(values[0]), _is_transposed(values[1])),
        padding=padding,
        computed=(_is_padded_for_nothing(values[0], more[0]),
                  _is_padded_for_nothing(values[1], more[1])),
    )  # fmt: skip


def _is_padded_for_nothing(value: Value, amounts: Sequence[int]) -> bool:
    """Whether `padded` makes no copy of a factor: it is padded already, or where it is computed."""
    assert isinstance(value.type, TensorType)
    source, order = unpermuted(value)
    high = [0] * (value.type.rank - len(amounts)) + list(amounts)
    back = [high[order.index(dim)] for dim in range(len(high))]
    if padded_before(source, back) is not None or _is_padded_elsewhere(source, back):
        return True
    return is_computed(source) and not is_seen(source)


def _is_padded_elsewhere(value: Value, high: Sequence[int]) -> bool:
    """Whether another product has the same padded copy of a value."""
    assert isinstance(value.type, TensorType)
    zero = graph.scalar_attribute(0, value.type.element)
    pads = [user for user in value.users if isinstance(user, graph.Pad)]
    return any(
        not any(pad.low) and list(pad.high) == list(high) and pad.attributes["value"] is zero
        for pad in pads
    )


def _is_transposed(value: Value) -> bool:
    maker = value.defining_op
    if not isinstance(maker, graph.Permute):
        return False
    last = list(maker.permutation)[-2:]
    return last != sorted(last)


def intensity(product: MatrixProduct) -> float:
    """mnk / (mk + kn + mn); symbolic sizes count as estimated."""
    m, k, n = estimate(product.m), estimate(product.k), estimate(product.n)
    return m * k * n / (m * k + k * n + m * n)


def unpermuted(value: Value) -> tuple[Value, list[int]]:
    """What a value is a permutation of, and that permutation."""
    assert isinstance(value.type, TensorType)
    order = list(range(value.type.rank))
    while isinstance(value.defining_op, graph.Permute):
        inner = list(value.defining_op.permutation)
        order = [inner[dim] for dim in order]
        value = value.defining_op.source
    return value, order


def is_computed(value: Value) -> bool:
    """Whether a value is computed by elements, so that a padded one is as easily computed."""
    return isinstance(value.defining_op, graph.PointwiseOp | graph.Cast | graph.Select)


def is_seen(value: Value, but_saved: bool = False) -> bool:
    """Whether a value, or a view of it, is a result or an operand of a call that takes exact
    strides: a part of a larger array would have to be copied for these. but_saved: what is saved
    for the backward alone counts as seen by nobody."""
    for user in value.users:
        if isinstance(user, func.ReturnOp):
            if not (but_saved and _is_saved(user, value)):
                return True
            continue
        if isinstance(user, graph.UpdateInput):
            return True
        if isinstance(user, graph.CallAten) and user.callee not in ANY_STRIDES:
            return True
        if ViewLike in user.traits and is_seen(user.results[0], but_saved):
            return True
    return False


def _is_saved(end: func.ReturnOp, value: Value) -> bool:
    """Whether a result is saved for the backward alone, which takes it in any strides."""
    function = end.parent_op
    infos = function.result_info if isinstance(function, func.FuncOp) else None
    entries = [infos[k] if infos is not None and k < len(infos) else None
               for k, each in enumerate(end.operands) if each is value]  # fmt: skip
    return all(isinstance(entry, A.DictAttr) and entry.get("saved") is not None
               for entry in entries)  # fmt: skip


def padded_before(part: Value, high: Sequence[int]) -> Value | None:
    """The array of which `part` was cut off, if that is `part` with `high` zeros more."""
    assert isinstance(part.type, TensorType)
    sizes = tuple(size + more for size, more in zip(part.type.shape, high, strict=True))
    maker = part.defining_op
    while isinstance(maker, graph.Slice) and maker.start == 0 and maker.step == 1:
        part = maker.source
        maker = part.defining_op
    if not isinstance(maker, graph.Pad) or any(maker.low):
        return None
    assert isinstance(part.type, TensorType)
    zero = graph.scalar_attribute(0, part.type.element)
    return part if part.type.shape == sizes and maker.attributes["value"] is zero else None


# -- rows in memory


@attrs.frozen
class ProductRows:
    """What the beginnings of rows in memory are multiples of, in bytes up to `ROW`: those of the
    factors and of the result. sizes: the same of the lengths of the factors' rows, which a library
    asks for. along: whether each factor's rows lie along the depth."""

    left: int
    right: int
    result: int
    sizes: tuple[int, int]
    along: tuple[bool, bool]

    @property
    def least(self) -> int:
        """What all are multiples of."""
        return min(self.left, self.right, self.result, *self.sizes)


def rows_of_call(call: graph.CallAten, apart: int | None = None) -> ProductRows:
    """The rows of a product's operands in eager's strides. apart: from how many elements on rows of
    arrays that only the program sees are moved apart, so that they are aligned (`pad-strides`)."""
    pair = factors(call)
    strides = [_strides(call, number) for number in pair]
    values = [call.operands[number] for number in pair]
    sizes = [_row_bytes(v, s, apart if _is_own(v) else None)
             for v, s in zip(values, strides, strict=True)]  # fmt: skip
    result = call.results[0]
    assert isinstance(result.type, TensorType)
    stored = _row_bytes(result, contiguous_strides(result.type.shape),
                        None if is_seen(result, but_saved=True) else apart)  # fmt: skip
    along = strides[0][-1] == 1, strides[1][-2] == 1
    lengths = [_type(values[0]).shape[-1 if along[0] else -2],
               _type(values[1]).shape[-2 if along[1] else -1]]  # fmt: skip
    whole = [common_bytes([n, 1], result.type) for n in lengths]
    return ProductRows(sizes[0], sizes[1], stored, (whole[0], whole[1]), along)


def _type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _strides(call: graph.CallAten, number: int) -> Sequence[Dim]:
    """The strides of an operand: those that eager passes where they are recorded, else those that
    what it is a permutation of has row by row."""
    recorded = call.operand_strides
    if recorded is not None and number < len(recorded):
        dims = recorded[number]
        if isinstance(dims, A.DimsAttr):
            return [dim for dim in dims if dim is not None]
    source, order = unpermuted(call.operands[number])
    assert isinstance(source.type, TensorType)
    plain = contiguous_strides(source.type.shape)
    return [plain[dim] for dim in order]


def _row_bytes(value: Value, strides: Sequence[Dim], apart: int | None) -> int:
    """What the beginnings of rows are multiples of, in bytes; those of so many elements are moved.
    """
    type_ = value.type
    assert isinstance(type_, TensorType)
    steps = [s for n, s in zip(type_.shape, strides, strict=True) if n != 1]
    if apart is not None:
        steps = [s for s in steps if not isinstance(s, int) or s <= apart]
    return common_bytes(steps, type_)


def common_bytes(steps: Sequence[Dim], type_: TensorType) -> int:
    """What the places that are so many elements apart are multiples of, in bytes up to `ROW`, where
    the elements of one of the steps, of 1, lie side by side. Of what a symbol is nothing is held
    against it."""
    size = element_bytes(type_.element)
    apart = [step for step in steps if isinstance(step, int)]
    if 1 in apart:
        apart.remove(1)
    elif len(apart) == len(steps) > 0:
        return min(size, ROW)  # no two elements lie side by side
    return math.gcd(ROW, *(step * size for step in apart))


def _is_own(value: Value) -> bool:
    """Whether a value is memory that the program alone sees, of no constant."""
    while isinstance(maker := value.defining_op, graph.Permute | graph.Reshape):
        value = maker.source
    if isinstance(value, BlockArgument) or isinstance(value.defining_op, graph.Constant):
        return False
    return not is_seen(value, but_saved=True)


__all__ = ["PADDED", "MatrixProduct", "ProductRows", "alignment", "common_bytes",
           "factors",
           "intensity", "is_computed", "is_seen", "padded_before", "padding_of", "product_of",
           "rows_of_call", "unpermuted"]  # fmt: skip
