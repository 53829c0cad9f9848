"""The meaning of the aten dialect: torch itself, so that mutation and views are eager's."""

from __future__ import annotations

from typing import Any

from irc.dialects import aten
from irc.interp.core import Frame, interprets
from irc.interp.operators import call_operator, results_of


@interprets(aten.AtenOp)
def call(frame: Frame, op: aten.AtenOp) -> list[Any]:
    content = call_operator(frame, op.qualified, op.arguments.as_dict(), frame.operands(op))
    return results_of(content, len(op.results))


@interprets(aten.SchemaOp)
def schema(frame: Frame, op: aten.SchemaOp) -> None:
    """A declaration: nothing happens."""
