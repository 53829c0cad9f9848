"""What programs are made for, as values: processors, and the settings of torch that decide."""

from irc.target.record import Target, as_target, of_kind, target_of

__all__ = ["Target", "as_target", "of_kind", "target_of"]
