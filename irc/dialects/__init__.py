"""The dialects: a folder each, with its operations and what is said of them.

`from irc.dialects import graph` gives the dialect's face: its files are read when the first
operation is asked for. So a program that is taken from the cache reads none of the levels that it
has not been on. `import irc.dialects.graph` reads them at once.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irc.ir.registry import DIALECT_MODULES


class Face(ModuleType):
    """Stands for the package of a dialect, and has all that it has once that is read."""

    def __getattr__(self, name: str) -> Any:
        package = importlib.import_module(self.__name__)
        self.__dict__.update(package.__dict__)
        return getattr(package, name)


if not TYPE_CHECKING:  # a type checker sees the packages themselves

    def __getattr__(name: str) -> Face:
        module = f"{__name__}.{name}"
        if DIALECT_MODULES.get(name) != module:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return globals().setdefault(name, Face(module))
