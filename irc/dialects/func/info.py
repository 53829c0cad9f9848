"""What the dictionaries `arg_info`, `result_info` and the list `aliases` of a function may say."""

from __future__ import annotations

from typing import Any

from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.types import (
    LIMIT,
    FunctionType,
    TensorType,
    contiguous_strides,
    element_bytes,
    reach,
)

# The entries that irc reads, with their classes; others are the user's.
ENTRIES: dict[str, tuple[type[Attribute], ...]] = {
    "name": (A.StringAttr,),
    "kind": (A.StringAttr,),
    "strides": (A.DimsAttr,),
    "offset": (A.DimAttr,),
    "alias_of": (A.IntegerAttr,),
    "shares": (A.IntegerAttr,),
    "saved": (A.UnitAttr,),
    "block": (A.IntegerAttr,),
    "place": (A.IntegerAttr,),
    "within": (A.IntegerAttr,),
    "value": (A.DenseAttr, A.ResourceAttr),
}


def verify_info(op: Any) -> None:
    """Check the entries of a function's arguments and results, and who shares storage.

    Raises InvalidIR.
    """
    type_ = op.function_type
    if not isinstance(type_, FunctionType):
        op.fail(f"function_type is {type_}, no type of a function")
    for key, types in (("arg_info", type_.inputs), ("result_info", type_.results)):
        infos = op.attributes.get(key)
        if infos is None:
            continue
        if not isinstance(infos, A.ArrayAttr):
            op.fail(f"{key} is {infos}, not a list of dictionaries")
        if len(infos) != len(types):
            op.fail(f"{key} has {len(infos)} entries, not {len(types)}")
        for position, info in enumerate(infos):
            what = f"{key} of number {position}"
            if not isinstance(info, A.DictAttr):
                op.fail(f"{what} is {info}, not a dictionary")
            _verify_entries(op, what, info, types[position])
            alias = info.get("alias_of")
            _in_range(op, f"{what}: alias_of", alias, len(type_.inputs))
            if alias is not None and not isinstance(type_.inputs[alias.value], TensorType):
                op.fail(f"{what}: alias_of is {alias.value}, which is no tensor")
            _in_range(op, f"{what}: shares", info.get("shares"), position)
    _verify_aliases(op, len(type_.inputs))


def _verify_entries(op: Any, what: str, info: A.DictAttr, type_: Attribute) -> None:
    for name, attr in info.items:
        if name.startswith("irc."):
            op.fail(f"{what}: '{name}' is the text of '{name.removeprefix('irc.')}'")
        classes = ENTRIES.get(name)
        if classes is not None and not isinstance(attr, classes):
            op.fail(f"{what}: {name} is {attr}, not a {classes[0].__name__}")
    strides, offset = info.get("strides"), info.get("offset")
    if strides is None:
        return
    rank = type_.rank if isinstance(type_, TensorType) else 0
    if len(strides) != rank or None in tuple(strides):
        op.fail(f"{what}: strides {strides} do not fit {type_}")
    if isinstance(type_, TensorType) and 0 not in type_.shape:
        places = reach(type_.shape, strides, 0 if offset is None else offset.dim)
        if places * element_bytes(type_.element) >= LIMIT:
            op.fail(f"{what}: strides {strides} reach further than memory does")


def _in_range(op: Any, what: str, number: Any, count: int) -> None:
    if number is not None and not 0 <= number.value < count:
        op.fail(f"{what} is {number.value}, not one of the {count} before")


def _verify_aliases(op: Any, count: int) -> None:
    """`aliases` is a list of lists of arguments' positions."""
    groups = op.attributes.get("aliases")
    if groups is None:
        return
    if not isinstance(groups, A.ArrayAttr):
        op.fail(f"aliases is {groups}, not a list of lists of arguments")
    for group in groups:
        members = group.elements if isinstance(group, A.ArrayAttr) else ()
        numbers = [m.value if isinstance(m, A.IntegerAttr) else -1 for m in members]
        if not numbers or not all(0 <= n < count for n in numbers):
            op.fail(f"aliases names {group}, no list of positions of the {count} arguments")


def fresh_results(function: Any) -> A.ArrayAttr:
    """The `result_info` of a function that control flow calls: new arrays, row by row."""
    types = [v.type for v in function.return_op.operands]
    strides = [contiguous_strides(t.shape) if isinstance(t, TensorType) else None for t in types]
    return A.ArrayAttr(
        A.DictAttr({} if s is None else {"strides": A.DimsAttr(s)}) for s in strides
    )
