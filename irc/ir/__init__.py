"""The IR: values, operations, types, symbols, text, verifier, rewriting, passes."""

from __future__ import annotations

import importlib
from typing import Any

from irc.ir import hooks

_EXPORTS = {
    "parse": "irc.ir.text.parser",
    "parse_attribute": "irc.ir.text.parser",
    "parse_file": "irc.ir.text.parser",
    "parse_type": "irc.ir.text.parser",
    "print_attribute": "irc.ir.text.printer",
    "print_op": "irc.ir.text.printer",
    "structurally_equal": "irc.ir.equality",
    "verify": "irc.ir.verifier",
}

# Few programs that only fail or ask for help need any text.
hooks.loaders["text"] = lambda: importlib.import_module("irc.ir.text.printer")


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'irc.ir' has no attribute '{name}'")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
