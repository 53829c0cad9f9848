"""The rules of control flow: the functions exist, and their types fit the operands and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.attributes import Type
from irc.ir.core import Operation
from irc.ir.symbols import Dim
from irc.ir.traits import FunctionLike
from irc.ir.types import FunctionType, TensorType, i1

if TYPE_CHECKING:
    from irc.dialects.flow.ops import CondOp, FlowOp, ScanOp, WhileOp
    from irc.dialects.func import CallOp


def verify_cond(op: CondOp) -> None:
    """Both functions take the operands and give the results. Raises InvalidIR."""
    if op.condition.type is not i1:
        op.fail(f"the condition is {op.condition.type}, not i1")
    for name in op.callees:
        kind = _type_of(op, name)
        if kind is not None:
            _same(op, name, "argument", kind.inputs, [v.type for v in op.inputs])
            _same(op, name, "result", kind.results, op.result_types)


def verify_call(op: CallOp) -> None:
    """The function takes the operands and gives the results. Raises InvalidIR."""
    kind = _type_of(op, op.callee)
    if kind is not None:
        _same(op, op.callee, "argument", kind.inputs, [v.type for v in op._operands])
        _same(op, op.callee, "result", kind.results, op.result_types)


def verify_while(op: WhileOp) -> None:
    """The body gives what is carried, the condition one truth value. Raises InvalidIR."""
    _check_counts(op, op.carried)
    given = [v.type for v in op.inputs]
    carried = given[: op.carried]
    for name in op.callees:
        kind = _type_of(op, name)
        if kind is not None:
            _same(op, name, "argument", kind.inputs, given)
    kind = _type_of(op, op.condition)
    if kind is not None and (len(kind.results) != 1 or not _is_truth(kind.results[0])):
        shown = ", ".join(map(str, kind.results))
        op.fail(f"the condition @{op.condition} gives ({shown}), not one i1 or tensor of one")
    kind = _type_of(op, op.body)
    if kind is not None:
        _same(op, op.body, "result", kind.results, carried)
    made: Sequence[Type] = op.result_types
    if op.stacked:
        made = [_slice(op, "result", t) for t in made]
    _same(op, "", "result", made, carried)


def verify_scan(op: ScanOp) -> None:
    """The function takes slices and gives elements. Raises InvalidIR."""
    _check_counts(op, op.carried, op.scanned)
    if op.scanned < 1:
        op.fail("there is no array to scan: scanned is 0")
    given = [v.type for v in op.inputs]
    carried, rest = given[: op.carried], given[op.carried + op.scanned :]
    arrays = given[op.carried : op.carried + op.scanned]
    slices = [_slice(op, "scanned operand", t) for t in arrays]
    lengths = {t.shape[0] for t in arrays if isinstance(t, TensorType)}
    known = {n for n in lengths if isinstance(n, int)}
    if len(known) > 1:
        op.fail(f"the arrays have different lengths: {', '.join(map(str, sorted(known)))}")
    if len(op.results) < op.carried:
        op.fail(f"{len(op.results)} results for {op.carried} carried values")
    kind = _type_of(op, op.combine)
    if kind is None:
        return
    elements = [_slice(op, "stacked result", t) for t in op.result_types[op.carried :]]
    for made in op.result_types[op.carried :]:
        if any(_differ(made.shape[0], n) for n in lengths):  # type: ignore[attr-defined]
            op.fail(f"a stacked result is {made}, of another length than the arrays")
    _same(op, op.combine, "argument", kind.inputs, [*carried, *slices, *rest])
    _same(op, op.combine, "result", kind.results, [*carried, *elements])
    _same(op, "", "result", op.result_types[: op.carried], carried)


def _check_counts(op: Any, *counts: int) -> None:
    if min(counts) < 0 or sum(counts) > len(op._operands):
        op.fail(f"{' and '.join(map(str, counts))} do not fit {len(op._operands)} operands")


def _is_truth(type_: Type) -> bool:
    return type_ is i1 or isinstance(type_, TensorType) and not type_.shape and type_.element is i1


def _slice(op: Operation, what: str, type_: Type) -> Type:
    """The type of a slice along the first dimension."""
    if not isinstance(type_, TensorType) or not type_.shape:
        op.fail(f"a {what} is {type_}, which has no first dimension")  # type: ignore[attr-defined]
    strides = None if type_.strides is None else type_.strides[1:]  # type: ignore[attr-defined]
    return TensorType(type_.shape[1:], type_.element, strides, type_.device)  # type: ignore[attr-defined]


def _type_of(op: FlowOp | CallOp, name: str) -> FunctionType | None:
    """The type of a function of the module around `op`; None outside of one."""
    function = function_of(op, name)
    if function is None:
        return None
    type_: FunctionType = function.function_type
    return type_


def function_of(op: FlowOp | CallOp, name: str) -> Any:
    """The function that `op` calls by that name; None outside of a module. Raises InvalidIR."""
    from irc.ir.module import ModuleOp

    module = next((a for a in op.ancestors() if isinstance(a, ModuleOp)), None)
    if module is None:
        return None
    found = module.lookup(name)
    if found is None or FunctionLike not in found.traits:
        what = "nothing" if found is None else f"a {found.name}"
        op.fail(f"there is no function @{name} in the module, but {what}")
    own = next((a for a in op.ancestors() if FunctionLike in a.traits), None)
    if own is not None and _reaches(module, found, own):
        op.fail(f"@{name} calls the function that this stands in: there is no recursion")
    return found


def _reaches(module: Any, start: Any, target: Operation) -> bool:
    """Whether a function is `target` or calls it, maybe through others."""
    seen: set[Operation] = set()
    ahead = [start]
    while ahead:
        function = ahead.pop()
        if function is target:
            return True
        if function is not None and function not in seen:
            seen.add(function)
            ahead.extend(module.lookup(name) for name in called_by(function))
    return False


def is_called(function: Operation) -> bool:
    """Whether a call or control flow in another function of the module calls a function."""
    block = function.parent
    name = function.attributes["sym_name"].parameters[0]
    around = () if block is None else block.ops
    functions = (o for o in around if FunctionLike in o.traits and o is not function)
    return any(name in called_by(f) for f in functions)


def called_by(function: Operation) -> Iterable[str]:
    """The names of the functions that a function's calls and control flow call."""
    for block in function.regions[0].blocks:  # none of a function that is declared only
        for op in block.ops:
            yield from getattr(op, "callees", ())


def _same(
    op: Any, name: str, what: str, types: Sequence[Type], wanted: Sequence[Type]
) -> None:
    """`types`, of the function `name`, are those that the operation has; "": its own results."""
    who = f"@{name} has" if name else "there are"
    if len(types) != len(wanted):
        op.fail(f"{who} {len(types)} {what}s, not {len(wanted)}")
    for number, (found, expected) in enumerate(zip(types, wanted, strict=True)):
        if not _fits(found, expected):
            of = f" of @{name}" if name else ""
            op.fail(f"{what} {number}{of} is {found}, not {expected}")


def _fits(found: Type, wanted: Type) -> bool:
    """Whether types are the same but for strides and for symbols, which each function has for
    itself."""
    if not isinstance(found, TensorType) or not isinstance(wanted, TensorType):
        return found is wanted
    same = found.element is wanted.element and found.device == wanted.device
    return same and found.rank == wanted.rank and not any(
        _differ(a, b) for a, b in zip(found.shape, wanted.shape, strict=True)
    )


def _differ(one: Dim, other: Dim) -> bool:
    """Whether two sizes are known to differ."""
    return isinstance(one, int) and isinstance(other, int) and one != other
