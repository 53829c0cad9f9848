"""The rules of control flow: the functions exist, and their types fit the operands and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects.flow.ops import CondOp, ScanOp, WhileOp
from irc.dialects.func.calls import called_type, check_same, differ
from irc.ir.attributes import Type
from irc.ir.core import Operation
from irc.ir.hooks import verifies_references
from irc.ir.types import TensorType, i1


@verifies_references(CondOp)
def verify_cond(op: CondOp) -> None:
    """Both functions take the operands and give the results. Raises InvalidIR."""
    if op.condition.type is not i1:
        op.fail(f"the condition is {op.condition.type}, not i1")
    for name in op.callees:
        callee = called_type(op, name)
        if callee is not None:
            check_same(op, name, "argument", callee.inputs, [v.type for v in op.inputs])
            check_same(op, name, "result", callee.results, op.result_types)


@verifies_references(WhileOp)
def verify_while(op: WhileOp) -> None:
    """The body gives what is carried, the condition one truth value. Raises InvalidIR."""
    _check_counts(op, op.carried)
    inputs = [v.type for v in op.inputs]
    carried = inputs[: op.carried]
    for name in op.callees:
        callee = called_type(op, name)
        if callee is not None:
            check_same(op, name, "argument", callee.inputs, inputs)
    callee = called_type(op, op.condition)
    if callee is not None and (len(callee.results) != 1 or not _is_truth(callee.results[0])):
        shown = ", ".join(map(str, callee.results))
        op.fail(f"the condition @{op.condition} gives ({shown}), not one i1 or tensor of one")
    callee = called_type(op, op.body)
    if callee is not None:
        check_same(op, op.body, "result", callee.results, carried)
    results: Sequence[Type] = op.result_types
    if op.stacked:
        results = [_slice(op, "result", t) for t in results]
    check_same(op, "", "result", results, carried)


@verifies_references(ScanOp)
def verify_scan(op: ScanOp) -> None:
    """The function takes slices and gives elements. Raises InvalidIR."""
    _check_counts(op, op.carried, op.scanned)
    if op.scanned < 1:
        op.fail("there is no array to scan: scanned is 0")
    inputs = [v.type for v in op.inputs]
    carried, rest = inputs[: op.carried], inputs[op.carried + op.scanned :]
    arrays = inputs[op.carried : op.carried + op.scanned]
    slices = [_slice(op, "scanned operand", t) for t in arrays]
    lengths = {t.shape[0] for t in arrays if isinstance(t, TensorType)}
    known = {n for n in lengths if isinstance(n, int)}
    if len(known) > 1:
        op.fail(f"the arrays have different lengths: {', '.join(map(str, sorted(known)))}")
    if len(op.results) < op.carried:
        op.fail(f"{len(op.results)} results for {op.carried} carried values")
    callee = called_type(op, op.combine)
    if callee is None:
        return
    elements = [_slice(op, "stacked result", t) for t in op.result_types[op.carried :]]
    for stacked in op.result_types[op.carried :]:
        if any(differ(stacked.shape[0], n) for n in lengths):  # type: ignore[attr-defined]
            op.fail(f"a stacked result is {stacked}, of another length than the arrays")
    check_same(op, op.combine, "argument", callee.inputs, [*carried, *slices, *rest])
    check_same(op, op.combine, "result", callee.results, [*carried, *elements])
    check_same(op, "", "result", op.result_types[: op.carried], carried)


def _check_counts(op: Any, *counts: int) -> None:
    if min(counts) < 0 or sum(counts) > len(op.operands):
        op.fail(f"{' and '.join(map(str, counts))} do not fit {len(op.operands)} operands")


def _is_truth(type_: Type) -> bool:
    return type_ is i1 or isinstance(type_, TensorType) and not type_.shape and type_.element is i1


def _slice(op: Operation, what: str, type_: Type) -> Type:
    """The type of a slice along the first dimension."""
    if not isinstance(type_, TensorType) or not type_.shape:
        op.fail(f"a {what} is {type_}, which has no first dimension")  # type: ignore[attr-defined]
    strides = None if type_.strides is None else type_.strides[1:]  # type: ignore[attr-defined]
    return TensorType(type_.shape[1:], type_.element, strides, type_.device)  # type: ignore[attr-defined]
