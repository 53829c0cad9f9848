"""What well-formed functions, returns and calls are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from irc.dialects.func.calls import called_type, check_same
from irc.dialects.func.info import verify_info
from irc.dialects.func.ops import STRIDED, CallOp, FuncOp, ReturnOp
from irc.dialects.sym.ranges import verify_ranges
from irc.ir import attributes as A
from irc.ir.definition import Op
from irc.ir.hooks import verifies, verifies_references
from irc.ir.registry import load_dialect
from irc.ir.strides import same_places, words
from irc.ir.types import TensorType

F = TypeVar("F", bound=Callable[[FuncOp], None])

# What else holds on a level, said by the dialect that the level is about.
_levels: dict[str, Callable[[FuncOp], None]] = {}


def checks_level(*levels: str) -> Callable[[F], F]:
    """`check(function)`: what holds of functions on these levels."""

    def install(check: F) -> F:
        _levels.update(dict.fromkeys(levels, check))
        return check

    return install


@verifies(FuncOp)
def verify_function(op: FuncOp) -> None:
    """Type, infos, and what its level asks. Raises InvalidIR."""
    if not op.regions[0].blocks:
        op.type  # noqa: B018  # that it is one
        if op.sym_visibility != "private":
            op.fail("a function without a body is private")
        return
    verify_info(op)
    inputs = tuple(a.type for a in op.block.arguments)
    if inputs != op.type.inputs:
        op.fail("the entry block's arguments differ from the function's type")
    verify_ranges(op.block)
    level = op.level
    if level in STRIDED:
        if level not in _levels:
            load_dialect("layout")  # which says what strides are
        _levels[level](op)


@verifies(ReturnOp)
def verify_return(op: ReturnOp) -> None:
    """What is returned against the function's type and `result_info`. Raises InvalidIR."""
    parent = op.parent_op
    if isinstance(parent, FuncOp):
        types = tuple(v.type for v in op.operands)
        if types != parent.type.results:
            op.fail(
                "operand types differ from the function's results",
                f"returned: ({', '.join(map(str, types))})",
                f"declared: ({', '.join(map(str, parent.type.results))})",
            )
        if parent.level == "loop":
            # On the layout level, `insert-layout-copies` is still to come.
            verify_result_strides(op, parent.result_info)


@verifies_references(CallOp)
def verify_call(op: CallOp) -> None:
    """The function takes the operands and gives the results. Raises InvalidIR."""
    callee = called_type(op, op.callee)
    if callee is not None:
        check_same(op, op.callee, "argument", callee.inputs, [v.type for v in op.operands])
        check_same(op, op.callee, "result", callee.results, op.result_types)


def verify_result_strides(op: Op, infos: A.ArrayAttr | None) -> None:
    """Each returned tensor has the strides that its caller must see. Raises InvalidIR."""
    for position, (value, info) in enumerate(zip(op.operands, infos or (), strict=False)):
        type_ = value.type
        strides = info.get("strides") if isinstance(info, A.DictAttr) else None
        if not isinstance(strides, A.DimsAttr) or not isinstance(type_, TensorType):
            continue
        if type_.strides is not None and not same_places(type_, strides.dims):
            op.fail(f"result {position} has strides {words(type_.strides)}, its caller must see "
                    f"{words(strides.dims)}")  # fmt: skip
