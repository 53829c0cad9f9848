"""Scatters: where they combine into memory that already holds what they start from."""

from __future__ import annotations

from collections.abc import Iterable

from irc.analysis.calls import OUT_VARIANTS
from irc.dialects import func, graph, host, loop, sym
from irc.ir import attributes as A
from irc.ir.core import BlockArgument, Operation, Region, Value
from irc.ir.symbols import Dim, Symbol, coefficient, free_symbols, substitute, symbol
from irc.ir.types import TensorType
from irc.passes.graph.argument_storages import alias_groups
from irc.passes.loop.bodies import placeholders_of

_KERNELS = loop.ComputeOp | loop.GroupOp | host.LaunchOp
_READERS = _KERNELS | graph.Item | sym.Binder


def scatters_of(op: loop.ComputeOp) -> list[tuple[int, Value]]:
    """The number of each scatter output of a compute, and the array that it starts from."""
    numbers = [k for k, output in enumerate(op.output_list) if output.kind == "scatter"]
    return list(zip(numbers, op.inits, strict=True))


def updates_in_place(op: loop.ComputeOp, number: int, init: Value) -> bool:
    """Whether scatter output `number` may combine into the memory of `init` itself, so that only
    the elements that it changes cost anything.

    `init` must be memory that nothing needs afterwards: what another kernel or a product made and
    none reads later, or an argument that is updated with exactly this result, maybe after others
    are combined into it. Elsewhere the kernel makes its own copy first. (`bufferize` has the last
    word: where it decides otherwise, it copies.)
    """
    (result,) = op.results_of(number)
    if init.type is not result.type or sum(v is init for v in op.inits) > 1:
        return False
    return _dies_in(op, init, result) and _reads_only_what_it_writes(op, number, init)


def _dies_in(op: loop.ComputeOp, init: Value, result: Value) -> bool:
    block = op.parent
    assert block is not None
    for user in init.users:
        outer: Operation | None = user
        while outer is not None and outer.parent is not block:
            outer = outer.parent_op
        if outer is None:
            continue  # a plan's own copy (`copy_of`), which is in no block
        if not isinstance(outer, _READERS) or op.is_before_in_block(outer):
            return False
    if not isinstance(init, BlockArgument):
        maker = init.defining_op
        product = isinstance(maker, graph.CallAten) and maker.callee in OUT_VARIANTS
        return product or isinstance(maker, _KERNELS)
    function = block.parent_op
    assert isinstance(function, func.FuncOp)
    shared = {number for group in alias_groups(function) for number in group}
    return init.index not in shared and _becomes(result, init.index)


def _becomes(value: Value, argument: int) -> bool:
    """Whether a value is what an argument is updated with, maybe after scatters in its memory."""
    if any(isinstance(user, func.ReturnOp) for user in value.users):
        return False
    updates = [u.argument for u in value.users if isinstance(u, graph.UpdateInput)]
    following = [u for u in value.users if isinstance(u, loop.ComputeOp)]
    if updates or len(following) != 1:
        return updates == [argument]
    number = next(k for k, init in scatters_of(following[0]) if init is value)
    (result,) = following[0].results_of(number)
    return updates_in_place(following[0], number, value) and _becomes(result, argument)


def _reads_only_what_it_writes(op: loop.ComputeOp, number: int, init: Value) -> bool:
    """Whether each point reads of `init` at most the element that it alone writes."""
    mine = [read for read in op.reads if read.source is init]
    if not mine:
        return True
    if not writes_apart(op, number):
        return False
    written = _points(op, op.output_list[number].index_dims)
    return all(_points(op, read.indices) == written for read in mine)


def writes_apart(op: loop.ComputeOp, number: int) -> bool:
    """Whether every point of a compute scatters to an element of its own: for each axis some index
    steps along it and along no other, and none is read from memory."""
    indices = op.output_list[number].index_dims
    if placeholders_of(*indices):
        return False
    axes = {a.name for a in op.axis_list if a.extent != 1}
    return all(any(_steps_along(d, name, axes) for d in indices) for name in axes)


def _points(op: loop.ComputeOp, indices: Iterable[Dim]) -> tuple[Dim, ...]:
    """Index expressions with 0 for the axes of one point."""
    units: dict[str, Dim] = {a.name: 0 for a in op.axis_list if a.extent == 1}
    return tuple(substitute(d, units) for d in indices)


def _steps_along(dim: Dim, name: str, axes: set[str]) -> bool:
    """Whether an index differs at every two points of one of the axes, whatever the others."""
    return free_symbols(dim) & axes == {name} and isinstance(coefficient(dim, name), int)


def copy_of(op: loop.ComputeOp, number: int, init: Value, free: set[str]) -> loop.ComputeOp:
    """A compute that gives the array a scatter starts from, over the scatter's free axes where
    those index it."""
    from irc.passes.loop.bodies import Body

    indices = op.output_list[number].indices
    type_ = op.results_of(number)[0].type
    assert indices is not None and isinstance(type_, TensorType)
    names = [
        d.name if isinstance(d, Symbol) and d.name in free else f"copied{k}"
        for k, d in enumerate(indices)
    ]
    axes = [loop.AxisAttr(n, "par", e) for n, e in zip(names, type_.shape, strict=True)]
    body = Body()
    body.finish([body.read(init, [symbol(n) for n in names])])
    attributes = {"axes": A.ArrayAttr(axes), "outputs": A.ArrayAttr([loop.MAP])}
    return loop.ComputeOp((), (type_,), attributes, (Region([body.block]),), op.location)
