"""The pass `pad-strides`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irc.analysis.calls import ANY_STRIDES
from irc.analysis.levels import holds_loops
from irc.analysis.loop import estimate
from irc.dialects import func, graph, sym
from irc.dialects.graph.views import view_strides
from irc.ir import attributes as A
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.strides import channels_last_strides
from irc.ir.symbols import Dim, Expr, floordiv, free_symbols, mod
from irc.ir.traits import ViewLike
from irc.ir.types import FloatType, FunctionType, TensorType, Type, element_bytes
from irc.passes.layout.assign_layouts import LIBRARY, entry, tell_strides
from irc.passes.layout.memory_views import viewed

Strides = tuple[Dim, ...]

# A consumer's dislike of padding goes backwards up to the results of these.
REDUCTIONS = (graph.Reduce, graph.ArgReduce, graph.Moments)


@register_pass
class PadStrides(Pass):
    """Pads long rows of intermediate arrays so that each begins at an aligned address.

    The rule is `padded_strides`. It applies to arrays that the program computes (by kernels, and
    by matrix products, which then write into padded memory), not to arguments, constants, what
    the caller sees, or what a consumer wants unpadded: an ATen call that takes exact strides
    (convolution and its backward, scaled products, operators of the user's own, ...), a library's
    product of 16-bit floats on a CPU (`reader_between_rows`), and a view that only a copy could
    replace. The dislike of a call for other strides spreads backwards to what its operands are
    computed from, up to the results of reductions.

    alignment: of rows, in bytes. threshold: strides up to so many elements stay. channels-last:
    pad such images too. symbolic: pad arrays with symbolic sizes too (none that depends on data).
    max-bytes: no more than this is added altogether.

    Before:
        %y = graph.exp %x : (tensor<[4, 2047] x f32, strides [2047, 1]>) ->
          tensor<[4, 2047] x f32, strides [2047, 1]>
    After:
        %y = graph.exp %x : (tensor<[4, 2047] x f32, strides [2047, 1]>) ->
          tensor<[4, 2047] x f32, strides [2048, 1]>
    """

    name = "pad-strides"
    summary = "align the rows of large intermediate arrays"
    anchor = "func.func"
    alignment: int = 128
    threshold: int = 1024
    channels_last: bool = False
    symbolic: bool = False
    max_bytes: int = 1 << 30

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if not holds_loops(op):
            _StridePadding(self, op, context).run()

    def padded(self, type_: TensorType, symbolic: bool) -> Strides:
        """The strides that the rule gives an array of this type."""
        assert type_.strides is not None
        return padded_strides(
            type_.shape, type_.strides, type_.element, alignment=self.alignment,
            threshold=self.threshold, channels_last=self.channels_last, symbolic=symbolic,
        )  # fmt: skip


def padded_strides(
    shape: Sequence[Dim],
    strides: Sequence[Dim],
    element: Type,
    *,
    alignment: int = 128,
    threshold: int = 1024,
    channels_last: bool = False,
    symbolic: bool = False,
) -> Strides:
    """The padded strides (in elements) of an array, or those given where nothing is padded.

    The dimensions are walked by increasing stride. The first gets stride 1, each other one the
    stride of the one before times its size, rounded up to `alignment` bytes where that is over
    `threshold` elements and misaligned. When nothing was rounded, the given strides stay; and so
    they do for rank 0, for channels-last images unless `channels_last`, and for symbolic sizes
    or strides unless `symbolic` (a symbolic stride counts as `irc.analysis.loop.estimate` says).
    """
    own = tuple(strides)
    if not own or (not channels_last and is_channels_last(shape, own)):
        return own
    if not symbolic and any(isinstance(d, Expr) for d in (*shape, *own)):
        return own
    unit = max(alignment // element_bytes(element), 1)
    steps: list[Dim] = [1] * len(own)
    rounded = False
    running: Dim = 1
    fastest_first = sorted(range(len(own)), key=lambda d: (estimate(own[d]), -d))
    for position, dim in enumerate(fastest_first):
        if position and estimate(running) > threshold and mod(running, unit) != 0:
            running = floordiv(running + (unit - 1), unit) * unit
            rounded = True
        steps[dim] = running
        running = running * shape[dim]
    return tuple(steps) if rounded else own


def is_channels_last(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """Whether an array is an image with the channels fastest (and more than one of them)."""
    if len(shape) not in (4, 5) or shape[1] == 1:
        return False
    last = channels_last_strides(shape)
    pairs = zip(shape, strides, last, strict=True)
    return all(size == 1 or stride == expected for size, stride, expected in pairs)


class _StridePadding:
    """Pads the arrays of one function."""

    def __init__(self, options: PadStrides, function: func.FuncOp, context: PassContext) -> None:
        self.options, self.function, self.context = options, function, context
        self.disliked = dislikes(function)
        self.seen = seen_by_caller(function)
        self.padded: set[Value] = set()
        self.added = 0

    def run(self) -> None:
        """Visit every array in order."""
        unbacked = _unbacked_symbols(self.function)
        for op in self.function.block.ops:
            if not _makes_arrays(op):
                continue
            for result in op.results:
                if isinstance(result.type, TensorType):
                    self.visit(op, result, result.type, unbacked)
        self.tell_saved()

    def tell_saved(self) -> None:
        """Say in `result_info` and the function's type what strides saved results have now."""
        function = self.function
        values = function.return_op.operands
        padded = [number for number, value in enumerate(values) if value in self.padded]
        if function.result_info is None or not padded:
            return
        tell_strides(function, padded)
        inputs, types = function.function_type.inputs, [value.type for value in values]
        function.attributes["function_type"] = A.TypeAttr(FunctionType(inputs, types))

    def visit(self, op: Operation, value: Value, type_: TensorType, unbacked: set[str]) -> None:
        """Pad one array, or say why it is not padded although the rule would."""
        if type_.strides is None:
            raise InvalidIR("strides are not decided; run assign-layouts first", op=op)
        dims = (*type_.shape, *type_.strides)
        if any(size == 0 for size in type_.shape) or any(
            isinstance(d, Expr) and free_symbols(d) & unbacked for d in dims
        ):
            return
        strides = self.options.padded(type_, symbolic=True)
        if strides == type_.strides:
            return
        padded = type_.with_strides(strides)
        why = self.objection(op, value, type_, padded)
        if why is None:
            self.padded.add(value)
            self.context.count("padded")
        else:
            shown = f"[{', '.join(map(str, type_.strides))}]"
            self.context.count("not padded")
            self.context.remark(f"strides {shown} were not padded: {why}", op)

    def objection(
        self, op: Operation, value: Value, type_: TensorType, padded: TensorType
    ) -> str | None:
        """Pad an array, unless something speaks against it, which is the result."""
        if not self.options.symbolic and self.options.padded(type_, False) != padded.strides:
            return "its sizes are symbolic"
        if value in self.seen:
            return f"the caller sees it ({self.seen[value]})"
        if value in self.disliked:
            return f"{self.disliked[value]} wants exact strides"
        if (product := reader_between_rows(value, type_)) is not None:
            return f"{product} may read what lies between its rows"
        if takes_exact_strides(op):
            return f"{getattr(op, 'callee', op.name)} chooses the strides of its result"
        extra = bytes_added(type_, padded)
        if self.added + extra > self.options.max_bytes:
            return f"its {extra} bytes more are over the limit ({self.options.max_bytes} in all)"
        if not self.context.spend("pad-strides", op):
            return NO_FUEL
        reader = retype(value, padded)
        if reader is not None:
            return f"{reader.name} of it would become a copy"
        self.added += extra
        self.context.count("padding bytes", extra)
        return None


def _makes_arrays(op: Operation) -> bool:
    """Whether an operation computes arrays of its own."""
    if viewed(op) is not None or isinstance(op, graph.Constant | graph.Full | graph.FromScalar):
        return False
    return op.name.startswith(("graph.", "layout."))


def _unbacked_symbols(function: func.FuncOp) -> set[str]:
    """The symbols that depend on data: bound by something else than arguments."""
    return {
        op.symbol
        for op in function.block.ops
        if isinstance(op, sym.Binder)
        and not isinstance(op.operands[0], BlockArgument)
    }


def bytes_added(before: TensorType, after: TensorType) -> int:
    """How many bytes more an array takes with other strides."""
    return (_span(after) - _span(before)) * element_bytes(before.element)


def _span(type_: TensorType) -> int:
    assert type_.strides is not None
    pairs = zip(type_.shape, type_.strides, strict=True)
    return 1 + sum((estimate(size) - 1) * estimate(stride) for size, stride in pairs)


def takes_exact_strides(op: Operation) -> bool:
    """Whether an operation is a call that takes and gives the strides that it was written with."""
    if isinstance(op, graph.CallAten):
        return op.callee not in ANY_STRIDES
    return isinstance(op, LIBRARY)


def dislikes(function: func.FuncOp) -> dict[Value, str]:
    """The values that a consumer wants unpadded, with the operator that does: the operands of
    calls that take exact strides, and what they are computed from, up to reductions."""
    reasons: dict[Value, str] = {}
    for op in function.block.reversed_ops:
        who = next((reasons[r] for r in op.results if r in reasons), None)
        exact = takes_exact_strides(op)
        if exact:
            who = getattr(op, "callee", op.name)
        elif isinstance(op, REDUCTIONS):
            continue
        if who is None:
            continue
        for operand in op.operands:
            if isinstance(operand.type, TensorType):
                if exact or not isinstance(operand.defining_op, REDUCTIONS):
                    reasons.setdefault(operand, who)
    return reasons


def reader_between_rows(value: Value, type_: TensorType) -> str | None:
    """What may read, and multiply with zeros, the memory between an array's rows that nobody wrote.

    Products of 16-bit floats on a CPU do: oneDNN rounds their terms up to what a register of a tile
    holds (seen with torch 2.13 and AMX: rows of 5 terms, 64 apart, NaN between them). A value that
    is saved may get to one in the backward program.
    """
    if type_.device != "cpu" or not isinstance(type_.element, FloatType):
        return None
    if type_.element.width != 16:
        return None
    pending = [value]
    while pending:
        for user in pending.pop().users:
            if isinstance(user, graph.CallAten) and user.callee in ANY_STRIDES:
                return user.callee
            if isinstance(user, func.ReturnOp):
                return "a product of the backward program"
            if viewed(user) is not None:
                pending += user.results
    return None


def seen_by_caller(function: func.FuncOp) -> dict[Value, str]:
    """The values whose memory the caller sees, with where: results, what they are views of, and
    what is written to arguments. An array that is `saved` for the backward only is not seen."""
    seen: dict[Value, str] = {}
    for op in function.block.ops:
        if isinstance(op, graph.UpdateInput):
            seen[op.value] = f"argument {op.argument}"
    for position, value in enumerate(function.return_op.operands):
        info, maker = entry(function.result_info, position), value.defining_op
        saved = info is not None and may_be_padded(info)
        if not saved or maker is None or not _makes_arrays(maker):
            seen.setdefault(value, f"result {position}")
    for value, where in list(seen.items()):
        for source in _sources(value):
            seen.setdefault(source, where)
    return seen


def may_be_padded(info: A.DictAttr) -> bool:
    """Whether what `result_info` says of a result leaves its memory to the program: only the
    backward program sees it, no other result is in it, and its strides are numbers."""
    if info.get("saved") is None or info.get("shares") is not None:
        return False
    strides, offset = info.get("strides"), info.get("offset")
    static = isinstance(strides, A.DimsAttr) and all(isinstance(d, int) for d in strides)
    return static and isinstance(offset, A.DimAttr) and offset.dim == 0


def _sources(value: Value) -> Iterator[Value]:
    """What `value` is a view of, directly and further back."""
    while (source := viewed(value.defining_op)) is not None:
        yield source
        value = source


def retype(value: Value, type_: TensorType) -> Operation | None:
    """Give a value and all views of it the strides of `type_`; where a view would need a copy,
    change nothing and give the operation that makes it."""
    changed: list[tuple[Value, Type]] = []
    pending: list[tuple[Value, TensorType]] = [(value, type_)]
    while pending:
        current, new_type = pending.pop()
        changed.append((current, current.type))
        current.type = new_type
        for user in set(current.users):
            if viewed(user) is None:
                continue
            place = view_strides(user) if ViewLike in user.traits else None
            if place is None:
                for restored, old in reversed(changed):
                    restored.type = old
                return user
            (view,) = user.results
            assert isinstance(view.type, TensorType)
            pending.append((view, view.type.with_strides(place[0])))
    return None


__all__ = ["PadStrides", "dislikes", "padded_strides", "seen_by_caller"]
