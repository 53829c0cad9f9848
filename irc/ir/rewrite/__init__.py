"""Rewriting: patterns and the driver, rules as data, conversions, fuel."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "ConversionTarget": "irc.ir.rewrite.conversion",
    "Fuel": "irc.ir.rewrite.fuel",
    "Pattern": "irc.ir.rewrite.driver",
    "Rewriter": "irc.ir.rewrite.driver",
    "apply_conversion": "irc.ir.rewrite.conversion",
    "apply_patterns_greedily": "irc.ir.rewrite.driver",
    "canonicalization": "irc.ir.rewrite.driver",
    "pattern": "irc.ir.rewrite.driver",
    "rule": "irc.ir.rewrite.rules",
}


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'irc.ir.rewrite' has no attribute '{name}'")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
