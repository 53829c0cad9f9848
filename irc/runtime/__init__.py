"""Running compiled programs. Importing this package loads nothing; its names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irc.runtime.executable import Executable


def build(module: Any, target: Any = None, options: Any = None) -> Executable:
    """Compile and load a module with a `host.func @main` and its kernels.

    See `irc.runtime.building.build`.
    """
    from irc.runtime.building import build as build_

    return build_(module, target, options)
