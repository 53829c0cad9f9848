"""Calls of functions by name: which function it is, who calls whom, whether types fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irc.ir.attributes import Type
from irc.ir.core import Operation
from irc.ir.module import ModuleOp
from irc.ir.symbols import Dim
from irc.ir.traits import FunctionLike
from irc.ir.types import FunctionType, TensorType


def called_type(op: Any, name: str) -> FunctionType | None:
    """The type of a function of the module around `op`; None outside of one."""
    function = function_of(op, name)
    if function is None:
        return None
    type_: FunctionType = function.function_type
    return type_


def function_of(op: Any, name: str) -> Any:
    """The function that `op` calls by that name; None outside of a module. Raises InvalidIR."""
    module = next((a for a in op.ancestors() if isinstance(a, ModuleOp)), None)
    if module is None:
        return None
    function = module.lookup(name)
    if function is None or FunctionLike not in function.traits:
        what = "nothing" if function is None else f"a {function.name}"
        op.fail(f"there is no function @{name} in the module, but {what}")
    own = next((a for a in op.ancestors() if FunctionLike in a.traits), None)
    if own is not None and _reaches(module, function, own):
        op.fail(f"@{name} calls the function that this stands in: there is no recursion")
    return function


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


def check_same(
    op: Any, name: str, what: str, types: Sequence[Type], declared: Sequence[Type]
) -> None:
    """`types`, of the function `name`, are those that the operation has; "": its own results."""
    who = f"@{name} has" if name else "there are"
    if len(types) != len(declared):
        op.fail(f"{who} {len(types)} {what}s, not {len(declared)}")
    for number, (type_, expected) in enumerate(zip(types, declared, strict=True)):
        if not _fits(type_, expected):
            of = f" of @{name}" if name else ""
            op.fail(f"{what} {number}{of} is {type_}, not {expected}")


def _fits(type_: Type, declared: Type) -> bool:
    """Whether types are the same but for strides and for symbols, which each function has for
    itself."""
    if not isinstance(type_, TensorType) or not isinstance(declared, TensorType):
        return type_ is declared
    same = type_.element is declared.element and type_.device == declared.device
    return same and type_.rank == declared.rank and not any(
        differ(a, b) for a, b in zip(type_.shape, declared.shape, strict=True)
    )


def differ(one: Dim, other: Dim) -> bool:
    """Whether two sizes are known to differ."""
    return isinstance(one, int) and isinstance(other, int) and one != other
