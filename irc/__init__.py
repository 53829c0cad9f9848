"""irc: a multi-level compiler for PyTorch programs, and a library to build compilers with.

Importing irc loads neither torch nor LLVM; the names below load what they need when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from irc.ir.version import __version__ as __version__

_EXPORTS: dict[str, str] = {
    "parse": "irc.ir.text.parser",
    "parse_file": "irc.ir.text.resources",
    "write_file": "irc.ir.text.resources",
    "print_op": "irc.ir.text.printer",
    "lookup_op": "irc.ir.registry",
    "verify": "irc.ir.verifier",
    "Pass": "irc.ir.passes",
    "PassContext": "irc.ir.passes",
    "PassManager": "irc.ir.passes",
    "register_pass": "irc.ir.passes",
    "register_pipeline": "irc.ir.passes",
    "Fuel": "irc.ir.rewrite.fuel",
    "pattern": "irc.ir.rewrite.driver",
    "rule": "irc.ir.rewrite.rules",
    "canonicalization": "irc.ir.rewrite.driver",
    "converts": "irc.ir.rewrite.conversion",
    "decline": "irc.ir.rewrite.conversion",
    "apply_patterns_greedily": "irc.ir.rewrite.driver",
    "Builder": "irc.ir.builder",
    "IRCError": "irc.ir.diagnostics",
    "UserError": "irc.ir.diagnostics",
    "InvalidIR": "irc.ir.diagnostics",
    "InternalError": "irc.ir.diagnostics",
    "gc_paused": "irc.ir.gc",
    "trace": "irc.frontend",
    "compile": "irc.frontend",
    "Options": "irc.options.options",
    "build": "irc.runtime",
    "release_memory": "irc.runtime.memory",
    "pad_mm": "irc.runtime.padded_matmul",
    "run": "irc.interp",
}
_SUBMODULES = frozenset(
    {"ir", "dialects", "passes", "frontend", "runtime", "interp", "codegen", "tools", "pipeline"}
)


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is not None:
        value = getattr(importlib.import_module(module), name)
        globals()[name] = value
        return value
    if name == "metrics":
        return importlib.import_module("irc.runtime.metrics")
    if name in _SUBMODULES:
        return importlib.import_module(f"irc.{name}")
    raise AttributeError(f"module 'irc' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS, *_SUBMODULES, "metrics"])


def _register_backend() -> None:
    from irc.frontend.registration import install

    install()


_register_backend()
