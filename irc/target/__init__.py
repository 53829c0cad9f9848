"""What programs are made for, as values: processors, and the settings of torch that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irc.target.record import Target, as_target, of_kind, target_of

__all__ = ["Target", "as_target", "of_kind", "target_of"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'irc.target' has no attribute '{name}'")
    from irc.target import record  # not for who asks for the names of processors alone

    attribute = globals()[name] = getattr(record, name)
    return attribute
