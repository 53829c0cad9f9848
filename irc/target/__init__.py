"""The machine and the settings of a process that decide what becomes of a program, as values."""

from irc.target.record import Target, target_of

__all__ = ["Target", "target_of"]
