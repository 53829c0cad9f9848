"""Rewriting: patterns and the driver, rules as data, conversions, fuel."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "Conversion": "irc.ir.rewrite.conversion",
    "ConversionTarget": "irc.ir.rewrite.conversion",
    "Fuel": "irc.ir.rewrite.fuel",
    "Pattern": "irc.ir.rewrite.patterns",
    "PatternPass": "irc.ir.rewrite.passes",
    "Rewriter": "irc.ir.rewrite.driver",
    "apply_patterns_greedily": "irc.ir.rewrite.driver",
    "canonicalization": "irc.ir.rewrite.patterns",
    "pattern": "irc.ir.rewrite.patterns",
    "rule": "irc.ir.rewrite.rules",
}


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'irc.ir.rewrite' has no attribute '{name}'")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
