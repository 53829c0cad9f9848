"""Results that are arrays of their own: what one array is returned as twice is copied."""

from __future__ import annotations

from irc.dialects import func, host
from irc.dialects.host.memory import is_tensor
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.passes.host.memory_uses import viewed
from irc.passes.layout.assign_layouts import entry


def separate_results(function: func.FuncOp) -> None:
    """Give a result of its own to each place that returns one array, unless eager shares it.

    Copies that `insert-layout-copies` made of one value are one array again after `cse`.
    """
    arrays: dict[tuple[Value, int], Value] = {}
    seen: set[Value] = set()
    terminator = function.return_op
    for position, value in enumerate(terminator.operands):
        info = entry(function.result_info, position)
        root = value
        while (source := viewed(root.defining_op)) is not None:
            root = source
        if not is_tensor(value) or not info or info.get("alias_of") is not None:
            seen.add(root)
            continue
        first = info.get("shares")
        group = first.value if isinstance(first, A.IntegerAttr) else position
        array = arrays.get((root, group))
        if array is None:
            array = _result_apart(function, root) if root in seen else root
            arrays[root, group] = array
        terminator.set_operand(position, _same_view(function, value, root, array))
        seen.add(root)


def _result_apart(function: func.FuncOp, value: Value) -> Value:
    """A copy of a result in memory of its own."""
    builder = Builder.before(function.return_op)
    own: Value = builder.value(host.AllocOp, result_types=value.type)
    builder.create(host.HostCopyOp, value, own)
    return own


def _same_view(function: func.FuncOp, value: Value, root: Value, array: Value) -> Value:
    """What `value` is of `root`, of `array`."""
    view = value.defining_op
    if array is root or value is root or view is None:
        return value if array is root else array
    source = _same_view(function, view.operands[0], root, array)
    copy = type(view)([source], view.result_types, dict(view.attributes), (), view.location)
    return Builder.before(function.return_op).insert(copy).results[0]
