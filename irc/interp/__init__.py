"""The reference interpreter: what every level means, without any code of the generators."""

from irc.interp.core import Frame, call_function, interprets, run

__all__ = ["Frame", "call_function", "interprets", "run"]
