"""Which operator makes new tensors where another one writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import aten
from irc.dialects.aten.schema import Schema
from irc.ir import attributes as A
from irc.ir.core import Operation, Value


def renamed(attr: Any, number_of: Callable[[int], int]) -> Any:
    """Arguments with the numbers of operands changed."""
    if isinstance(attr, aten.OperandAttr):
        return aten.OperandAttr(number_of(attr.index))
    if isinstance(attr, A.ArrayAttr):
        return A.ArrayAttr([renamed(a, number_of) for a in attr])
    if isinstance(attr, A.DictAttr):
        return A.DictAttr({name: renamed(a, number_of) for name, a in attr.items})
    return attr


def merged(
    operands: Sequence[Value], attribute: A.DictAttr
) -> tuple[list[Value], A.DictAttr]:
    """Each operand once, and the arguments counted so: who writes one writes it as the other."""
    unique = list(dict.fromkeys(operands))
    return unique, renamed(attribute, lambda number: unique.index(operands[number]))


def renumber(op: aten.AtenOp, attribute: A.DictAttr) -> tuple[list[Value], A.DictAttr]:
    """The operands that the arguments mention, and the arguments counted anew."""
    order = list(dict.fromkeys(aten.operand_indices(attribute)))

    return [op.operands[n] for n in order], renamed(attribute, order.index)


def functional_schema(schema: Schema, op: Operation) -> Schema | None:
    """The schema of the operator that makes new tensors where `schema`, of `op`, writes; None if
    torch and the module have none.

    `add_` -> `add`, `add.out` -> `add` with the same other arguments."""
    namespace, name, overload = schema.qualified.split(".")
    kept = [a.name for a in schema.arguments if not (a.is_write and a.kwarg_only)]
    written = [a for a in schema.arguments if a.is_write]
    bare = name[:-1] if name.endswith("_") and not name.startswith("__") else name
    bare = bare.replace("__i", "__", 1) if bare.startswith("__i") else bare
    base = overload.removesuffix("_out").removesuffix("out") or "default"
    candidates = dict.fromkeys((overload, base, f"dim_{base}", "default", "Tensor", "Scalar"))
    for candidate in candidates:
        functional = aten.known_schema(f"{namespace}.{bare}.{candidate}", op)
        if functional is None or functional.is_mutable or functional.returns_alias:
            continue
        names = [a.name for a in functional.arguments]
        lists = [a.type.endswith("[]") for a in written]
        if [r.type.endswith("[]") for r in functional.returns] != lists:
            continue
        if names[: len(kept)] == kept:
            rest = functional.arguments[len(kept) :]
            if all(a.has_default for a in rest):
                return functional
    return None
