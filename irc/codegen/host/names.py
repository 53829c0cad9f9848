"""What a native host program and its loader agree on: names of functions, words of its context."""

from __future__ import annotations

ENTRY = "irc.main"

#: Words of the context before the objects: the runtime table, the arena's slots, how many large
#: results were made, the Python executor for many arguments and for one list.
CONTEXT_RUNTIME, CONTEXT_ARENA, CONTEXT_LARGE_RESULTS = 0, 1, 2
CONTEXT_FALLBACK, CONTEXT_BOXED_FALLBACK, CONTEXT_OBJECTS = 3, 4, 5


def kernel_symbol(name: str) -> str:
    """The name by which the host module calls a kernel."""
    return f"kernel.{name}"


__all__ = ["CONTEXT_ARENA", "CONTEXT_BOXED_FALLBACK", "CONTEXT_FALLBACK", "CONTEXT_LARGE_RESULTS",
           "CONTEXT_OBJECTS", "CONTEXT_RUNTIME", "ENTRY", "kernel_symbol"]  # fmt: skip
