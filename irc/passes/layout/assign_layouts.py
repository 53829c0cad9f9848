"""The pass `assign-layouts`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from irc.analysis.calls import ANY_ROWS, ANY_STRIDES
from irc.analysis.image_layouts import unseen_images
from irc.analysis.levels import holds_loops
from irc.dialects import flow, func, graph, sym
from irc.dialects.func.calls import is_called
from irc.dialects.func.info import fresh_results
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.views import view_strides
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.strides import channels_last_strides, dense_like, keeps_apart
from irc.ir.symbols import Dim, dim_product, floordiv, mod
from irc.ir.traits import ViewLike
from irc.ir.types import TensorType, contiguous_strides

Strides = tuple[Dim, ...]

# Their results have strides of their own, whatever a reader wants; those of convolutions
# channels innermost.
CONVOLUTIONS = (graph.PackedConv, graph.WinogradConv)
LIBRARY = (graph.CallAten, graph.PackedLinear, flow.FlowOp, *CONVOLUTIONS)

# Results of these follow the order of their first operand's strides (of all for concat).
ORDERED = (
    graph.Cast, graph.Bitcast, graph.Copy, graph.Pad, graph.Scan, graph.Scatter, graph.Put,
    graph.Reverse, graph.Select, graph.Concat, graph.PointwiseOp,
)  # fmt: skip


@register_pass
class AssignLayouts(Pass):
    """Decides the strides of every value, and which results of view ops are views.

    A result of the function gets the strides that its caller must see (`result_info`) where it
    is computed; a view op that needs no copy is flagged `view`; pointwise results follow the
    order of their operands' strides, so that channels-last stays; results of ATen calls have
    eager's strides; everything else is contiguous.

    Before:
        %y = graph.permute %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    After:
        %y = graph.permute %x {permutation = array<i64: 1, 0>, view} :
          (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[6, 4] x f32, strides [1, 6]>
    """  # noqa: E501

    name = "assign-layouts"
    summary = "choose strides for every value and say what is a view"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if holds_loops(op):
            return
        _assign_arguments(op)
        if op.result_info is None and is_called(op):
            op.attributes["result_info"] = fresh_results(op)
        free = free_results(op)
        demanded = demanded_strides(op, free)
        for inner in op.block.ops:
            assign(inner, demanded)
        tell_strides(op, free)
        op.attributes["level"] = A.StringAttr("layout")
        op.refresh_type()


def entry(info: A.ArrayAttr | None, position: int) -> A.DictAttr | None:
    """The dictionary of argument or result number `position`, if there is one."""
    if info is None or position >= len(info):
        return None
    value = info[position]
    return value if isinstance(value, A.DictAttr) else None


def strides_entry(info: A.ArrayAttr | None, position: int) -> Strides | None:
    """The strides recorded for argument or result number `position`."""
    info_entry = entry(info, position)
    dims = None if info_entry is None else info_entry.get("strides")
    return tuple(dims) if isinstance(dims, A.DimsAttr) else None  # type: ignore[arg-type]


def _assign_arguments(function: func.FuncOp) -> None:
    for position, argument in enumerate(function.block.arguments):
        type_ = argument.type
        if isinstance(type_, TensorType) and type_.strides is None:
            strides = strides_entry(function.arg_info, position)
            if strides is None or len(strides) != type_.rank:
                strides = contiguous_strides(type_.shape)
            argument.type = type_.with_strides(strides)


def free_results(function: func.FuncOp) -> frozenset[int]:
    """The results whose strides nobody asks for: images that only the backward program sees, where
    `propagate-channels-last` chose an order of images."""
    verdict = function.attributes.get("channels_last")
    innermost = verdict.get("wanted") if isinstance(verdict, A.DictAttr) else None
    return unseen_images(function) if innermost is A.TRUE else frozenset()


def tell_strides(function: func.FuncOp, positions: Iterable[int]) -> None:
    """Say in `result_info` what strides results have now."""
    infos = function.result_info
    if infos is None or not positions:
        return
    told, values = list(infos), function.return_op.operands
    for position in positions:
        info, type_ = told[position], values[position].type
        assert isinstance(info, A.DictAttr) and isinstance(type_, TensorType)
        told[position] = A.DictAttr({**info.as_dict(), "strides": A.DimsAttr(type_.strides or ())})
    function.attributes["result_info"] = A.ArrayAttr(told)


def demanded_strides(
    function: func.FuncOp, free: Iterable[int] = ()
) -> dict[Value, Strides]:
    """The strides wanted of values that are computed here: first by the caller (but for the results
    `free`), then by ATen calls; through views back to what they are views of."""
    demanded: dict[Value, Strides] = {}
    for position, value in enumerate(function.return_op.operands):
        strides = strides_entry(function.result_info, position)
        if strides is not None and position not in free:
            _demand(demanded, value, strides)
    for op in function.block.ops:
        for number, strides in wanted_operands(op):
            _demand(demanded, op.operands[number], strides)
        if isinstance(op, graph.Pack) and op.format == "convolution":
            _demand(demanded, op.weight, channels_last_strides(op.weight.type.shape))
    return demanded


def _demand(demanded: dict[Value, Strides], value: Value, strides: Strides) -> None:
    if not isinstance(value.type, TensorType) or len(strides) != value.type.rank:
        return
    maker = value.defining_op
    while maker is not None:
        demanded.setdefault(value, strides)
        back = source_strides(maker, strides)
        if back is None:
            return
        strides, value = back, maker.operands[0]
        maker = value.defining_op


def source_strides(view: Operation, strides: Strides) -> Strides | None:
    """The strides of the source that make the result of a view op have `strides`; None for another
    operation, and where no array of the source's sizes can have them."""
    if isinstance(view, graph.Permute):
        back: list[Dim] = [0] * len(strides)
        for position, dim in enumerate(view.permutation):
            back[dim] = strides[position]
        return tuple(back)
    if isinstance(view, graph.Slice):
        step = strides[view.dim]
        if mod(step, view.step) != 0:
            return None
        whole = (*strides[: view.dim], floordiv(step, view.step), *strides[view.dim + 1 :])
        return whole if keeps_apart(view.source.type.shape, whole) else None
    if isinstance(view, graph.Broadcast):
        return _before_broadcast(view, strides)
    return None


def _before_broadcast(view: graph.Broadcast, strides: Strides) -> Strides | None:
    source, target = view.source.type, view.view.type
    kept = {d for d, size in zip(view.dims, source.shape, strict=True) if size == target.shape[d]}
    repeated = [d for d, size in enumerate(target.shape) if d not in kept and size != 1]
    if any(strides[d] != 0 for d in repeated):
        return None
    back: list[Dim] = [1] * source.rank
    for dim in range(source.rank - 1, -1, -1):
        place = view.dims[dim]
        if place in kept and target.shape[place] != 1:
            back[dim] = strides[place]
        elif dim + 1 < source.rank:
            back[dim] = back[dim + 1] * source.shape[dim + 1]
    return tuple(back) if keeps_apart(source.shape, back) else None


def wanted_operands(call: Operation) -> Iterator[tuple[int, Strides]]:
    """(operand number, strides) for the operands that a call should get as eager passes them:
    the strides of its results, or what it accepts at all, may depend on them. One that takes any
    rows (`ANY_ROWS`) wants those that an operand has. Packed operations want what their library's
    fastest code reads, control flow passes arrays row by row."""
    if isinstance(call, (graph.PackedLinear, *CONVOLUTIONS)):
        yield from _packed_operands(call)
    if isinstance(call, flow.FlowOp):
        for number in flow.tensors_of(call.operands):
            yield number, contiguous_strides(call.operands[number].type.shape)  # type: ignore[attr-defined]
    if not isinstance(call, graph.CallAten):
        return
    recorded = call.attributes.get("operand_strides")
    if not isinstance(recorded, A.ArrayAttr) or call.callee in ANY_STRIDES:
        return
    tensors = [n for n, v in enumerate(call.operands) if isinstance(v.type, TensorType)]
    for number, dims in zip(tensors, recorded, strict=False):
        own = tensor_type(call.operands[number]).strides
        if call.callee in ANY_ROWS and own is not None and own[-1:] == (1,):
            yield number, own
        elif isinstance(dims, A.DimsAttr):
            yield number, tuple(dims)  # type: ignore[arg-type]


def _packed_operands(op: Any) -> Iterator[tuple[int, Strides]]:
    for number, value in enumerate(op.operands):
        type_ = value.type
        if value is op.weight:
            if isinstance(type_, TensorType):
                yield number, contiguous_strides(type_.shape)
        elif isinstance(type_, TensorType):
            yield number, packed_strides(op, type_)


def packed_strides(op: Operation, type_: TensorType) -> Strides:
    """The strides of the images of packed operations: a convolution's have channels innermost."""
    if isinstance(op, CONVOLUTIONS) and type_.rank in (4, 5):
        return channels_last_strides(type_.shape)
    return contiguous_strides(type_.shape)


def assign(op: Operation, demanded: dict[Value, Strides]) -> None:
    """Give the tensor results of one operation their strides."""
    tensors = [r for r in op.results if isinstance(r.type, TensorType)]
    if not tensors:
        return
    if ViewLike in op.traits:
        place = view_strides(op)
        if place is not None:
            op.attributes["view"] = A.UNIT
            _set(tensors[0], place[0])
            return
    recorded = op.attributes.get("eager_strides")
    for number, (result, strides) in enumerate(zip(tensors, natural_strides(op), strict=False)):
        if isinstance(recorded, A.ArrayAttr):
            eager = recorded[number]
            assert isinstance(eager, A.DimsAttr)
            strides = tuple(eager)  # type: ignore[arg-type]
        elif not isinstance(op, LIBRARY):
            asked = demanded.get(result)
            if asked is not None and is_writable(result.type, asked):
                strides = asked
        _set(result, strides)


def _set(result: Value, strides: Sequence[Dim]) -> None:
    assert isinstance(result.type, TensorType)
    result.type = result.type.with_strides(strides)


def is_writable(type_: object, strides: Strides) -> bool:
    """Whether no two elements can share a place: strides 0 only where the size is at most 1."""
    assert isinstance(type_, TensorType)
    return all(
        stride != 0 or (isinstance(size, int) and size <= 1)
        for size, stride in zip(type_.shape, strides, strict=True)
    )


def repeats(type_: TensorType, strides: Strides) -> bool:
    """Whether an array repeats its elements along all dimensions of stride 0 there: what eager
    repeats can only be copied once where it is seen to be repeated here, too."""
    assert type_.strides is not None
    return all(
        want != 0 or have == 0 or size == 1
        for size, have, want in zip(type_.shape, type_.strides, strides, strict=True)
    )


def natural_strides(op: Operation) -> Iterator[Strides]:
    """The strides that each tensor result has unless somebody wants others."""
    for result in op.results:
        type_ = result.type
        if not isinstance(type_, TensorType):
            continue
        if isinstance(op, ORDERED):
            operands = [v.type for v in op.operands if isinstance(v.type, TensorType)]
            if isinstance(op, graph.Scatter | graph.Put):
                operands = operands[:1]
            same = [t.strides for t in operands if t.rank == type_.rank and t.strides is not None]
            yield dense_like(type_.shape, same)
        elif isinstance(op, graph.Reduce | graph.ArgReduce | graph.Moments):
            yield _reduced(op, type_)
        elif isinstance(op, graph.Take):
            yield _taken(op, type_)
        elif isinstance(op, sym.RefineOp):
            yield _refined(op, type_)
        elif isinstance(op, CONVOLUTIONS):
            yield packed_strides(op, type_)
        else:
            yield contiguous_strides(type_.shape)


def _reduced(op: Operation, type_: TensorType) -> Strides:
    source = op.operands[0].type
    assert isinstance(source, TensorType) and source.strides is not None
    if type_.rank == source.rank:
        return dense_like(type_.shape, [source.strides])
    dims = op.dims  # type: ignore[attr-defined]
    kept = [s for d, s in enumerate(source.strides) if d not in dims]
    return dense_like(type_.shape, [kept])


def _taken(op: graph.Take, type_: TensorType) -> Strides:
    """What is taken lies as the source does, the dimensions of the indices where those lie that
    they take of, if elements side by side are taken together: channels innermost stay so, as they
    are read and written. Row by row else."""
    source = op.source.type
    taken = op.dims
    kept = [d for d in range(source.rank) if d not in taken]
    if not any(source.strides[d] == 1 and source.shape[d] != 1 for d in kept):
        return contiguous_strides(type_.shape)
    first, past = op.position, op.position + type_.rank - len(kept)
    before, indices, behind = type_.shape[:first], type_.shape[first:past], type_.shape[past:]
    around = [source.strides[d] for d in kept]
    if len(indices) == len(taken):
        steps = [source.strides[d] for d in taken]
        return dense_like(type_.shape, [[*around[:first], *steps, *around[first:]]])
    joined = (*before, dim_product(indices), *behind)
    dense = dense_like(joined, [[*around[:first], source.strides[taken[0]], *around[first:]]])
    steps = [dense[first] * step for step in contiguous_strides(indices)]
    return (*dense[:first], *steps, *dense[first + 1 :])


def _refined(op: sym.RefineOp, type_: TensorType) -> Strides:
    source = op.operands[0].type
    assert isinstance(source, TensorType) and source.strides is not None
    known = op.attributes.get("strides")
    if isinstance(known, A.DimsAttr):
        return tuple(known)  # type: ignore[arg-type]
    if source.strides == contiguous_strides(source.shape):
        return contiguous_strides(type_.shape)
    return source.strides
