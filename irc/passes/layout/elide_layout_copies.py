"""The pass `elide-layout-copies`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from irc.analysis.loop import estimate
from irc.dialects import func, graph, layout, sym
from irc.dialects.graph.inferred import tensor_type
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.strides import channels_last_strides, same_layout
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.layout.assign_layouts import (
    ORDERED,
    free_results,
    repeats,
    tell_strides,
    wanted_operands,
)
from irc.passes.layout.insert_layout_copies import copied
from irc.passes.layout.memory_views import storage_root

Strides = tuple[Dim, ...]
#: The values whose layout is ours to choose, in order.
Flexible = dict[Value, None]
#: A copy reads and writes what a kernel that reads in another order only reads.
COPY, READ = 2, 1


@register_pass
class ElideLayoutCopies(Pass):
    """Places the copies between layouts where the fewest bytes are moved, and reports them.

    Each image that is computed here may be contiguous or have its channels innermost. A pointwise
    operation that reads the other order costs the bytes read, a copy twice its bytes, once for
    all who want it; a minimum cut between what is fixed to either order (arguments, results, calls
    and packed operations) gives each its own. Copies that are not needed then go; the others are
    remarks, and the counter `layout_copies` of `irc.metrics`.

    Before:
        %y = graph.exp %x : tensor<[...] x f32, strides [512, 64, 8, 1]>     // %x: [512, 1, 64, 8]
        %c = layout.copy %y : (...) -> tensor<[...] x f32, strides [512, 1, 64, 8]>
        %z = graph.call_aten %c, %w {callee = "aten.convolution.default", ...}
    After:
        %y = graph.exp %x : tensor<[...] x f32, strides [512, 1, 64, 8]>
        %z = graph.call_aten %y, %w {callee = "aten.convolution.default", ...}
    """

    name = "elide-layout-copies"
    summary = "choose layouts so that copies between them move the fewest bytes"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if not any(isinstance(inner, layout.CopyOp) for inner in op.block.ops):
            return
        free = free_results(op)
        wants = withdraw_copies(op, free)
        changed = choose(op, wants, context)
        context.count("layouts changed", len(changed))
        place_copies(wants)
        tell_strides(op, free)
        for copy in op.block.ops:
            if isinstance(copy, layout.CopyOp):
                report(copy, context)
        op.refresh_type()


@attrs.define
class Want:
    """Operand `number` of `user` has to have `strides`; `reason` says why, `copied` that it was a
    copy. A `fixed` copy makes memory of its own, too: it stays."""

    user: Operation
    number: int
    strides: Strides
    reason: str
    fixed: bool = False

    @property
    def value(self) -> Value:
        """What the user reads."""
        return self.user.operands[self.number]


def withdraw_copies(function: func.FuncOp, free: frozenset[int]) -> list[Want]:
    """Take the copies out of a function; gives what every call and the return want. `free`: results
    of which nothing is wanted."""
    wants = []
    for op in list(function.block.ops):
        for number, value, strides in demands(op):
            if number in free and isinstance(op, func.ReturnOp):
                continue
            maker = value.defining_op
            reason = f"operand {number} of {getattr(op, 'callee', op.name)}"
            if isinstance(op, func.ReturnOp):
                reason = f"result {number} of the function"
            if isinstance(maker, layout.CopyOp):
                reason = maker.reason or reason
                type_ = maker.source.type
                own = same_layout(type_.shape, type_.strides, maker.copy.type.strides)
                viewed = any(user is not op for user in maker.copy.users)
                if own or (
                    isinstance(op, func.ReturnOp) and (viewed or is_shared(maker.source, op))
                ):
                    wants.append(Want(op, number, strides, reason, fixed=True))
                    continue
                op.set_operand(number, maker.source)
                if not maker.copy.has_uses:
                    maker.erase()
            wants.append(Want(op, number, strides, reason))
    return wants


def demands(op: Operation) -> Iterator[tuple[int, Value, Strides]]:
    """(operand number, value, strides) of the operands whose strides an operation insists on."""
    if isinstance(op, func.ReturnOp):
        for number, value in enumerate(op.operands):
            if isinstance(value.type, TensorType) and value.type.strides is not None:
                yield number, value, value.type.strides
        return
    for number, strides in wanted_operands(op):
        value = op.operands[number]
        if repeats(tensor_type(value), strides):
            yield number, value, strides


def is_shared(value: Value, returning: func.ReturnOp) -> bool:
    """Whether a result can't have a value's memory: an argument's, a constant's, or what another
    result has or is a copy of."""
    root = storage_root(value)
    if isinstance(root, BlockArgument) or isinstance(root.defining_op, graph.Constant):
        return True
    sources = [
        v.defining_op.source if isinstance(v.defining_op, layout.CopyOp) else v
        for v in returning.operands
    ]
    return sum(storage_root(v) is root for v in sources) > 1


# -- which layout a value has


def layouts_of(type_: TensorType) -> tuple[Strides, Strides] | None:
    """An image's strides with its channels innermost, and contiguous; None for what is no image
    or has one order only."""
    if type_.rank not in (4, 5):
        return None
    last, plain = channels_last_strides(type_.shape), contiguous_strides(type_.shape)
    return None if same_layout(type_.shape, last, plain) else (last, plain)


def side(type_: TensorType, strides: Strides) -> str | None:
    """"last" or "plain", if strides are the ones or the others."""
    both = layouts_of(type_)
    for name, known in zip(("last", "plain"), both or (), strict=False):
        if same_layout(type_.shape, strides, known):
            return name
    return None


def is_flexible(value: Value) -> bool:
    """Whether a value's layout is ours to choose: computed in any order, without views of it."""
    type_: Any = value.type
    if not isinstance(value.defining_op, ORDERED) or side(type_, type_.strides) is None:
        return False
    return not any(
        "view" in user.attributes or isinstance(user, layout.ViewOp | sym.RefineOp)
        for user in value.users
    )


def size_in_bytes(type_: Any) -> int:
    """The bytes of an array's elements, by the hints of symbolic sizes."""
    return max(1, estimate(dim_product(type_.shape)) * element_bytes(type_.element))


# -- the cut


def choose(function: func.FuncOp, wants: list[Want], context: PassContext) -> list[Value]:
    """Give flexible values the layouts that move the fewest bytes; gives those that changed."""
    import networkx

    # Results that eager mode gives twice share their memory: they stay as they are.
    returned = Counter(function.return_op.operands)
    flexible: Flexible = {
        r: None for op in function.block.ops for r in op.results
        if returned[r] <= 1 and is_flexible(r)
    }  # fmt: skip
    if not flexible:
        return []
    cut: Any = networkx.DiGraph()
    cut.add_nodes_from(("last", "plain"))
    for value in flexible:
        # Where it doesn't matter, a value stays as it is.
        name = side(value.type, value.type.strides)  # type: ignore[arg-type, attr-defined]
        _join(cut, name, value, 1)
    _add_reads(cut, flexible)
    _add_wants(cut, flexible, wants)
    _, (last, _) = networkx.minimum_cut(cut, "last", "plain")
    changed: list[Value] = []
    for value in flexible:
        assert isinstance(value.type, TensorType)
        both = layouts_of(value.type)
        assert both is not None
        strides = both[0] if value in last else both[1]
        if same_layout(value.type.shape, strides, value.type.strides or ()):
            continue
        assert value.defining_op is not None
        if context.spend("elide-layout-copies", value.defining_op):
            value.type = value.type.with_strides(strides)
            changed.append(value)
    return changed


def _join(cut: Any, a: Any, b: Any, bytes_: int) -> None:
    """It costs so many bytes to have `a` and `b` in different layouts."""
    for u, v in ((a, b), (b, a)):
        known = cut.edges[u, v]["capacity"] if cut.has_edge(u, v) else 0
        cut.add_edge(u, v, capacity=known + bytes_)


def _node(flexible: Flexible, value: Value) -> Any:
    """A value's node: itself, or the layout that it is fixed to; None if that is another one."""
    if value in flexible:
        return value
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.strides is None:
        return None
    return side(type_, type_.strides)


def _add_reads(cut: Any, flexible: Flexible) -> None:
    """What pointwise operations read in the other order than they write."""
    for value in flexible:
        maker = value.defining_op
        assert maker is not None
        for operand in maker.operands:
            node = _node(flexible, operand)
            # One number is read in any order.
            if node is not None and not isinstance(operand.defining_op, graph.Full):
                _join(cut, node, value, READ * size_in_bytes(operand.type))


def _add_wants(cut: Any, flexible: Flexible, wants: list[Want]) -> None:
    """Copies for calls and results: one serves all that want a layout of a value."""
    for value, name in {
        (w.value, side(w.value.type, w.strides)): None  # type: ignore[arg-type]
        for w in wants
        if w.value in flexible
    }:
        if name is not None:
            _join(cut, value, name, COPY * size_in_bytes(value.type))


# -- copies


def place_copies(wants: list[Want]) -> None:
    """Copy what isn't as it is wanted, once for all calls that want the same."""
    copies: dict[tuple[Value, Strides], Value] = {}
    for want in wants:
        value = want.value
        type_ = value.type
        assert isinstance(type_, TensorType) and type_.strides is not None
        if want.fixed:
            continue
        if same_layout(type_.shape, type_.strides, want.strides):
            if isinstance(want.user, func.ReturnOp) and type_.strides != want.strides:
                # Sizes of 1 have strides that the caller sees, too.
                view = Builder.before(want.user).value(
                    layout.ViewOp, value, offset=0, result_types=type_.with_strides(want.strides)
                )
                want.user.set_operand(want.number, view)
            continue
        key = value, want.strides
        # A call may read what is returned; two results don't share memory.
        own = isinstance(want.user, func.ReturnOp)
        copy = copies.pop(key, None) if own else copies.get(key)
        if copy is None:
            copy = copied(Builder.before(want.user), value, want.strides, want.reason)
            if not own:
                copies[key] = copy
        want.user.set_operand(want.number, copy)


def report(copy: layout.CopyOp, context: PassContext) -> None:
    """Tell of a copy that is left."""
    count = size_in_bytes(copy.copy.type)
    at_input = isinstance(storage_root(copy.source), BlockArgument)
    at_output = any(isinstance(user, func.ReturnOp) for user in copy.copy.users)
    where = "an input" if at_input else "an output" if at_output else "inside"
    context.count("copies")
    context.count("copied bytes", count)
    context.count("copies inside", int(not (at_input or at_output)))
    context.remark(f"{count} bytes are copied ({where}): {copy.reason or 'asked for'}", copy)
