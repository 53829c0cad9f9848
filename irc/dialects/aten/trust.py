"""Which operators a text may run without being trusted.

A program from a text comes from somebody: `irc.parse` marks its module as not trusted unless it is
told otherwise, and running it refuses operators that reach outside of the program. Which do is a
property of an operator's schema (`reaches_outside`), not a list of names.

    module = irc.parse(text)                    # trusted=False
    irc.run(module)                             # UserError: 'aten.from_file.default' ...
"""

from __future__ import annotations

from collections.abc import Iterator

from irc.dialects.aten.ops import qualified_name
from irc.dialects.aten.schema import Schema, find_schema
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError

#: Namespaces whose operators torch and irc define; others are extensions and may do anything.
_KNOWN = frozenset({"aten", "prims", "mkldnn", "irc"})
#: Types of schemas that hold values of a program. Others are handles: storages, streams, classes.
_VALUES = frozenset({"Tensor", "Scalar"})
_DATA = _VALUES | {
    "int", "float", "bool", "complex", "str", "SymInt", "SymFloat", "SymBool", "ScalarType",
    "Layout", "Device", "MemoryFormat", "Generator",
}  # fmt: skip


def _base(type_: str) -> str:
    """A schema's type without optional marks and lists."""
    while type_.endswith(("?", "[]")):
        type_ = type_.removesuffix("?").removesuffix("[]")
    return type_


def reaches_outside(schema: Schema) -> str | None:
    """Why an operator may do more than compute with its operands; None when it can't.

    It is of an extension; takes or gives what is no data; or has no operand that is a value of the
    program, and is told by a text what to make its result of (a file's name), or has no result.
    Draws of random numbers, and writes to operands, are a program's own.
    """
    if schema.namespace not in _KNOWN:
        return f"it is an extension's ({schema.namespace})"
    types = {_base(a.type) for a in (*schema.arguments, *schema.returns)}
    if not types <= _DATA:
        return f"it has a {min(types - _DATA)}"
    operands = [a for a in schema.arguments if not (a.is_write and a.kwarg_only)]
    if any(_base(a.type) in _VALUES for a in operands):
        return None
    named = [a.name for a in operands if _base(a.type) == "str"]
    if named:
        return f"it is made of a name ({named[0]}), not of operands"
    return None if schema.returns else "it has neither operands nor results"


def operators_of(module: Operation) -> Iterator[tuple[Operation, str]]:
    """The operations of a module that call an operator, on any level, each with its name."""
    for op in module.walk():
        callee = op.attributes.get("callee")
        if isinstance(callee, A.StringAttr):
            yield op, qualified_name(callee.value)
        elif op.name.startswith("aten.") and op.name.count(".") >= 2:
            yield op, qualified_name(op.name)


def is_trusted(op: Operation | None) -> bool:
    """Whether the module around an operation may run any operator."""
    while op is not None and op.parent_op is not None:
        op = op.parent_op
    return getattr(op, "trusted", True)


def check_operator(name: str, op: Operation | None = None) -> None:
    """Raise UserError unless a text that isn't trusted may run the operator called `name`."""
    schema = find_schema(name)
    why = "torch has no such operator" if schema is None else reaches_outside(schema)
    if why is not None:
        raise UserError(
            f"'{name}' isn't run from a text: {why}",
            op=op,
            notes=("trust the text to run it: --trust, irc.parse(text, trusted=True)",),
        )


def check_trust(module: Operation) -> None:
    """Raise UserError when a module from a text that isn't trusted calls what reaches outside."""
    if not is_trusted(module):
        for op, name in operators_of(module):
            check_operator(name, op)


__all__ = ["check_operator", "check_trust", "is_trusted", "operators_of", "reaches_outside"]
