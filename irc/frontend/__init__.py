"""From PyTorch to the aten level: the torch.compile backend, tracing, and the FX importer."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "trace": "irc.frontend.tracing",
    "compile": "irc.frontend.tracing",
    "irc": "irc.frontend.backend",
    "import_graph": "irc.frontend.importing.importer",
    "Options": "irc.options.options",
}


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'irc.frontend' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)
