"""Which operations, attributes and types exist, by name. Dialects load when first named."""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from irc.ir.attributes import Attribute
from irc.ir.core import Operation

ServiceT = TypeVar("ServiceT")

# A dialect's operations and attributes register when its module is imported.
DIALECT_MODULES: dict[str, str] = {
    "builtin": "irc.ir.module",
    "sym": "irc.dialects.sym",
    "func": "irc.dialects.func",
    "arith": "irc.dialects.arith",
    "math": "irc.dialects.math",
    "aten": "irc.dialects.aten",
    "graph": "irc.dialects.graph",
    "flow": "irc.dialects.flow",
    "layout": "irc.dialects.layout",
    "loop": "irc.dialects.loop",
    "kernel": "irc.dialects.kernel",
    "host": "irc.dialects.host",
}

# Attributes that belong to no dialect of operations.
ATTRIBUTE_MODULES: dict[str, str] = {
    "irc.target": "irc.target.attribute",
}

# What rooms above this one do for it, with the modules that say how (`provides`); each loads when
# it is first asked for.
SERVICE_MODULES: dict[str, str] = {
    "settle target": "irc.target.attribute",
    "check semantics": "irc.validation.semantics",
}

_services: dict[str, Any] = {}
# The boundaries between levels (`irc.ir.rewrite.conversion`) whose files are read.
boundaries: weakref.WeakSet[Any] = weakref.WeakSet()
_ops: dict[str, type[Operation]] = {}
_attributes: dict[str, type[Attribute]] = {}
_resolvers: dict[str, Callable[[str], type[Operation] | None]] = {}
# What the resolvers made: known by name, but none of a dialect's own operations. So what a dialect
# has doesn't depend on which programs this process has seen.
_resolved: dict[str, type[Operation]] = {}
_unregistered: dict[str, type[Operation]] = {}


def register_op(cls: type[Operation]) -> None:
    """Make an operation class known by its name. Raises ValueError for a second definition."""
    known = _ops.get(cls.name)
    if known is not None and known.__qualname__ != cls.__qualname__:
        raise ValueError(f"operation {cls.name} is defined twice")
    _ops[cls.name] = cls


def register_attribute(cls: type[Attribute]) -> type[Attribute]:
    """Make an attribute or type known by "dialect.mnemonic"; usable as a decorator.

    The class gives `print_parameters(self, printer)` and `parse_parameters(cls, parser)`.
    """
    _attributes[f"{cls.dialect}.{cls.mnemonic}"] = cls
    return cls


def register_resolver(dialect: str, resolve: Callable[[str], type[Operation] | None]) -> None:
    """Let a dialect make operation classes on demand (aten: from torch's schemas)."""
    _resolvers[dialect] = resolve


def provides(name: str) -> Callable[[ServiceT], ServiceT]:
    """The class or function below is what `service(name)` gives."""

    def install(service: ServiceT) -> ServiceT:
        _services[name] = service
        return service

    return install


def service(name: str) -> Any:
    """What a room above does for this one; its module loads if need be."""
    if name not in _services:
        importlib.import_module(SERVICE_MODULES[name])
    return _services[name]


def boundary(pass_name: str) -> Any:
    """The boundary that a pass is, None where its file is not read yet."""
    return next((each for each in boundaries if each.pass_name == pass_name), None)


def dialects() -> list[str]:
    """The names of all dialects: irc's own, and those of operations registered so far."""
    return [*dict.fromkeys((*DIALECT_MODULES, *(name.partition(".")[0] for name in sorted(_ops))))]


def dialect_module(name: str) -> Any:
    """The Python module that defines a dialect's operations."""
    known = DIALECT_MODULES.get(name)
    if known is None:
        known = registered_ops(name)[0].__module__
    return sys.modules.get(known) or importlib.import_module(known)


def load_dialect(name: str) -> bool:
    """Import the dialect `name`; False when there is none of that name."""
    module = DIALECT_MODULES.get(name)
    if module is None:
        return False
    importlib.import_module(module)
    return True


def lookup_op(name: str) -> type[Operation] | None:
    """The class of the operation `name`, loading its dialect if need be; None if unknown."""
    cls = _ops.get(name) or _resolved.get(name)
    if cls is not None:
        return cls
    dialect = name.partition(".")[0]
    load_dialect(dialect)
    cls = _ops.get(name)
    if cls is None and dialect in _resolvers:
        cls = _resolvers[dialect](name)
        if cls is not None:
            _resolved[name] = cls
    return cls


def lookup_attribute(name: str) -> type[Attribute] | None:
    """The attribute or type class "dialect.mnemonic"; None if unknown."""
    if name not in _attributes:
        module = ATTRIBUTE_MODULES.get(name)
        if module is not None:
            importlib.import_module(module)
        load_dialect(name.partition(".")[0])
    return _attributes.get(name)


def unregistered_op(name: str) -> type[Operation]:
    """The class that stands for an operation irc does not know (only with allow-unregistered)."""
    cls = _unregistered.get(name)
    if cls is None:
        members: dict[str, Any] = {"__slots__": (), "name": name}
        cls = _unregistered[name] = type("UnregisteredOp", (Operation,), members)
    return cls


def registered_ops(dialect: str | None = None) -> list[type[Operation]]:
    """Every operation class registered so far (of one dialect), by name; without those that a
    resolver made."""
    prefix = "" if dialect is None else dialect + "."
    return [_ops[name] for name in sorted(_ops) if name.startswith(prefix)]


def known_names() -> list[str]:
    """Names of the operations registered so far; for did-you-mean."""
    return sorted(_ops)
