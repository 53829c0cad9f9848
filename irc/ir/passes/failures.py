"""An exception that a pass or pattern let out: whose mistake it is, and at which line."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from irc.ir.diagnostics import InternalError, IRCError, UserError
from irc.ir.location import FileLocation, Location, file_positions


def is_ours(module: str) -> bool:
    """Whether a Python module, by its name, comes with irc."""
    return module.partition(".")[0] == "irc"


def unexpected(error: Exception, what: str, module: str, where: Location) -> IRCError:
    """The error to tell when code of the Python module `module` raised `error`.

    irc's own code: an internal error at `where` in the program, with the line that raised. Any
    other: a UserError at the line of that code. what: "pass 'x'" or "pattern 'x'".
    """
    frames = traceback.extract_tb(error.__traceback__)
    raised = f"{type(error).__name__}: {error}"
    deepest = frames[-1] if frames else None
    note = f"raised at {deepest.filename}:{deepest.lineno}, in {deepest.name}" if deepest else ""
    notes = (note,) if note else ()
    if is_ours(module):
        prefix = "" if what.startswith("pass ") else f"{what}: "
        return InternalError(prefix + raised, where, notes=notes)
    file = getattr(sys.modules.get(module), "__file__", None)
    own = [frame for frame in frames if frame.filename == file]
    if not own:
        return UserError(f"{what} raised {raised}", where, notes=notes)
    line, column = own[-1].lineno or 1, (own[-1].colno or 0) + 1
    places = file_positions(where)
    if places:
        at = f"while it ran on {places[0].filename}:{places[0].line}:{places[0].column}"
        notes = (at,) if own[-1] is deepest else (at, *notes)
    failure = UserError(
        f"{what} raised {raised}", FileLocation(str(file), line, column), notes=notes
    )
    path = Path(str(file))
    if path.is_file():
        failure.attach_source(str(file), path.read_text(encoding="utf-8", errors="replace"))
    return failure
