"""What well-formed host programs are: launches against their kernels, memory against time.

Operations are checked one by one here; what depends on their order (what is written before it is
read, what lies where in the arena) is in `irc.dialects.host.verify_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects.func.info import verify_info
from irc.dialects.func.verify import verify_result_strides
from irc.dialects.graph import scalar_type
from irc.dialects.host import ops
from irc.dialects.host.launches import kernel_of, operand_numbers
from irc.dialects.kernel import CheckOp, KernelFuncOp, PointerType
from irc.dialects.layout.places import (
    begin_of,
    verify_inside,
    verify_places,
    verify_same_memory,
)
from irc.dialects.loop import signless
from irc.dialects.sym.ranges import verify_ranges, when_of
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.hooks import verifies, verifies_references
from irc.ir.symbols import known_divisor
from irc.ir.types import TensorType, i1

PATHS = ("shim", "dispatcher", "boxed")


# -- the function


@verifies(ops.HostFuncOp)
def verify_function(op: ops.HostFuncOp) -> None:
    """Type, infos, and the order of the operations of a host program. Raises InvalidIR."""
    type_ = op.function_type
    if len(op.regions[0].blocks) != 1:
        op.fail(f"a host program's body is one block, not {len(op.regions[0].blocks)}")
    verify_info(op)
    if type_.inputs != tuple(a.type for a in op.block.arguments):
        op.fail("the entry block's arguments differ from the function's type")
    verify_ranges(op.regions[0].blocks[0])


@verifies_references(ops.HostFuncOp)
def verify_order(op: ops.HostFuncOp) -> None:
    """The memory of the program over time. Raises InvalidIR."""
    from irc.dialects.host.verify_memory import verify_memory  # of whole programs only

    verify_memory(op)


@verifies(ops.HostReturnOp)
def verify_return(op: ops.HostReturnOp) -> None:
    """What is returned against the function's type and `result_info`. Raises InvalidIR."""
    function: Any = op.parent_op
    if not isinstance(function, ops.HostFuncOp):
        return
    declared = getattr(function.function_type, "results", ())
    returned = tuple(v.type for v in op.operands)
    if returned != declared:
        op.fail("operand types differ from the function's results",
                f"returned: ({', '.join(map(str, returned))})",
                f"declared: ({', '.join(map(str, declared))})")  # fmt: skip
    verify_result_strides(op, function.result_info)


# -- launches


@verifies_references(ops.LaunchOp)
def verify_launch(op: ops.LaunchOp) -> None:
    """The arrays of a launch against the kernel's pointers. Raises InvalidIR."""
    if op.outs and op.results:
        op.fail("has outs and results: a launch writes memory, or gives arrays")
    callee = kernel_of(op)
    if callee is None:
        return
    written: Sequence[Value] = op.outs or op.results
    arrays = [*op.inputs, *written]
    pointers = [a.type for a in callee.block.arguments if isinstance(a.type, PointerType)]
    if len(arrays) != len(pointers):
        op.fail(f"{len(op.inputs)} inputs and {len(written)} outputs, but @{op.callee} takes "
                f"{len(pointers)} arrays")  # fmt: skip
    outputs = callee.outputs
    if outputs is not None and len(outputs) != len(written):
        op.fail(f"gives {len(written)} outputs, @{op.callee} writes {len(outputs)}")
    _verify_elements(op, arrays, pointers)
    _verify_flags(op, callee, arrays)
    for pairs in (callee.inplace, callee.initialized):
        for source, target in zip((pairs or ())[::2], (pairs or ())[1::2], strict=False):
            one, other = arrays[source].type, arrays[target].type
            if _sizes_differ(one, other):
                op.fail(f"input {source} and output {target - len(op.inputs)} are one array to "
                        f"@{op.callee}, here {one} and {other}")  # fmt: skip
    from irc.dialects.host.verify_bounds import verify_launch_bounds  # of whole programs only

    verify_launch_bounds(op, callee, arrays)


def _verify_elements(op: ops.LaunchOp, arrays: Sequence[Value], pointers: Sequence[Any]) -> None:
    for position, (value, pointer) in enumerate(zip(arrays, pointers, strict=True)):
        type_: Any = value.type
        if signless(type_.element) is not signless(pointer.element):
            count = len(op.inputs)
            number, what = (position, "input") if position < count else (position - count, "output")
            op.fail(f"{what} {number} is {type_}, but @{op.callee} takes a {pointer}")


def _verify_flags(op: ops.LaunchOp, callee: KernelFuncOp, arrays: Sequence[Value]) -> None:
    """A flag is where the kernel checks something, and only there."""
    for position, value in enumerate(arrays):
        pointer = callee.block.arguments[position]
        checks = any(isinstance(user, CheckOp) for user in pointer.users)
        if checks and not isinstance(value.defining_op, ops.FlagOp):
            op.fail(f"@{op.callee} checks something by argument {position}, and {value.described} "
                    "is no host.flag")  # fmt: skip
        if not checks and isinstance(value.defining_op, ops.FlagOp):
            op.fail(f"argument {position} is a host.flag, by which @{op.callee} checks nothing")


def _sizes_differ(one: TensorType, other: TensorType) -> bool:
    """Whether two shapes are known to differ."""
    return one.rank != other.rank or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(one.shape, other.shape, strict=True)
    )


# -- memory


@verifies(ops.AllocOp)
def verify_alloc(op: ops.AllocOp) -> None:
    """Strides, and the place in the arena. Raises InvalidIR."""
    verify_places(op, op.memory.type)
    offset = op.offset
    if offset is None:
        return
    if op.escapes:
        op.fail("has a place in the arena and escapes: the caller gets a tensor of its own")
    if known_divisor(offset) % ops.ALIGNMENT or (isinstance(offset, int) and offset < 0):
        op.fail(f"offset {offset} is no multiple of {ops.ALIGNMENT} bytes")


@verifies(ops.FlagOp)
def verify_flag(op: ops.FlagOp) -> None:
    """One truth value, which only launches write. Raises InvalidIR."""
    type_ = op.flag.type
    if type_.element is not i1 or type_.shape or type_.strides is None:
        op.fail(f"is {type_}, not one i1 in memory")
    for user in op.flag.users:
        if not isinstance(user, ops.LaunchOp) or op.flag in user.inputs:
            op.fail(f"is used by {user.name}: only launches write a flag, and nothing reads it")  # type: ignore[attr-defined]


@verifies(ops.HostViewOp)
def verify_view(op: ops.HostViewOp) -> None:
    """Another handle on the same elements, inside the memory they are in. Raises InvalidIR."""
    verify_same_memory(op, op.source.type, op.view.type)
    begin, root = begin_of(op.view)
    maker = root.defining_op
    if isinstance(maker, ops.AllocOp):
        verify_inside(op, op.view.type, begin, root.type)  # type: ignore[arg-type]


@verifies(ops.HostCopyOp)
def verify_copy(op: ops.HostCopyOp) -> None:
    """Source and target of one size and element. Raises InvalidIR."""
    source, target = op.source.type, op.target.type
    if source.element is not target.element:
        op.fail(f"copies {source} into {target}: another element")
    if _sizes_differ(source, target):
        op.fail(f"copies {source} into {target}: another size")


@verifies(ops.ItemOp)
def verify_item(op: ops.ItemOp) -> None:
    """One element, as the scalar that stands for it. Raises InvalidIR."""
    type_ = op.source.type
    if op.attributes.get("every") is not None:
        if type_.element is not i1:
            op.fail(f"'every' wants elements of i1, not {type_.element}")
    elif any(size != 1 for size in type_.shape if isinstance(size, int)):
        op.fail(f"{type_} has not exactly one element")
    if op.scalar.type is not scalar_type(type_.element):
        op.fail(f"gives {op.scalar.type}, not {scalar_type(type_.element)}")


@verifies(ops.HostConstantOp)
def verify_constant(op: ops.HostConstantOp) -> None:
    """Elements of the tensor's size and type. Raises InvalidIR."""
    type_, value = op.tensor.type, op.attributes["value"]
    if isinstance(value, A.DenseAttr | A.ResourceAttr):
        held: Any = value.type
        if getattr(held, "element", None) is not type_.element or held.shape != type_.shape:
            op.fail(f"its elements are {held}, not those of {type_}")
    elif not isinstance(value, A.IntegerAttr | A.FloatAttr | A.BoolAttr):
        op.fail(f"{value} is no constant: dense elements, a resource or a number")


@verifies(ops.CallAtenOp)
def verify_call(op: ops.CallAtenOp) -> None:
    """The operands named by the arguments, and the path. Raises InvalidIR."""
    from irc.dialects.aten import verify_called

    if op.results and when_of(op) is not None:
        op.fail("runs for some sizes alone, and gives arrays: such a call writes memory")
    named = list(operand_numbers(op.arguments))
    count = len(op.operands)
    wrong = [k for k in named if not 0 <= k < count]
    if wrong:
        op.fail(f"its arguments name operand {wrong[0]} of {count}")
    unused = sorted(set(range(count)) - set(named))
    if unused:
        op.fail(f"operand {unused[0]} stands for no argument of {op.callee}")
    verify_called(op)
    if op.path is not None and op.path not in PATHS:
        op.fail(f"the path is '{op.path}', not {', '.join(PATHS)}")


@verifies(ops.PackOp)
def verify_pack(op: ops.PackOp) -> None:
    """A constant is packed. Raises InvalidIR."""
    if not isinstance(op.source.defining_op, ops.HostConstantOp):
        op.fail("only a host.constant can be packed")
