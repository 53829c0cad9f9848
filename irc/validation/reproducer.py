"""Files that a failing pass leaves: the module before it, and what replays it."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import IRCError
from irc.ir.passes import Nested, Pass, PassContext, PassManager, pass_text, passes_of, step_text
from irc.ir.passes.failures import is_ours
from irc.ir.text.printer import print_op

REPRODUCER_MARK = "// irc-opt reproducer, pipeline: "


def write_reproducer(
    path: Path, pipeline: str, message: str, module: Any, text: str = "", command: str = ""
) -> None:
    """A program that `irc-opt --run-reproducer` replays, with its large constants beside it.

    text: the module's text as it was, where the module has changed since. command: what replays
    it, where that needs more than the file.
    """
    from irc.ir.text.resources import write_beside

    text = text or print_op(module)
    first = message.partition("\n")[0]
    replay = command or replay_command(path, ())
    content = f"{REPRODUCER_MARK}{pipeline}\n// error: {first}\n// replay: {replay}\n{text}\n"
    path.write_text(content, encoding="utf-8")
    write_beside(path, text, getattr(module, "resources", {}))


def replay_command(path: Path, passes: Iterable[Pass], *flags: str) -> str:
    """The command line that replays a reproducer, with the files of passes that irc lacks."""
    words = ["irc-opt", "--run-reproducer", str(path), *flags]
    modules = dict.fromkeys(type(p).__module__ for p in passes)
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and not is_ours(name):
            words += ["--load", file]
    return shlex.join(words)


def leave_reproducer(
    module: Any,
    steps: Sequence[Pass | Nested],
    error: IRCError,
    context: PassContext,
    folder: str = "",
) -> None:
    """Write the program before the pass that raised `error` and the pipeline from there on, by
    running `steps` again on `module`, the program before all of them, and note in the error how
    to see it again. Does nothing for an error that says so already.

    folder: where to; "": a new one among the temporary files.
    """
    if getattr(error, "files", None):
        return
    place = Path(folder) if folder else Path(tempfile.mkdtemp(prefix="irc-crash-"))
    place.mkdir(parents=True, exist_ok=True)
    taken = len(list(place.glob("crash-*.mlir")))
    path = place / f"crash-{taken}-{error.pass_name or 'pipeline'}.mlir"
    command = replay_command(path, passes_of(steps))
    done = 0
    program = before = module.clone()
    try:
        for step in steps:
            before = program.clone()
            PassManager([step]).run(program, context)
            done += 1
    except IRCError:
        program = before
    else:
        program, done = module, 0  # it doesn't fail again: all of it is told
    text = ",".join(step_text(s) for s in steps[done:])
    write_reproducer(path, text, str(error), program, command=command)
    error.notes = (*error.notes, f"to see it again: {command}")


def keep_module(
    folder: Path | None,
    pass_: Pass,
    before: Any,
    after: Any,
    function: str,
    inputs: Any,
    message: str,
) -> tuple[Path, list[Path]]:
    """Write `<pass>.mlir` (a reproducer), `<pass>.after.mlir` and `<pass>.inputs.pt`, which
    `irc run --load` reads; gives the folder and the files."""
    import torch

    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="irc-check-semantics-"))
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{pass_.name}.mlir"
    result = folder / f"{pass_.name}.after.mlir"
    saved = folder / f"{pass_.name}.inputs.pt"
    command = replay_command(source, [pass_], "--check-semantics=each")
    write_reproducer(source, pass_text(pass_), f"@{function}: {message}", before, command=command)
    result.write_text(print_op(after) + "\n", encoding="utf-8")
    torch.save({"arguments": inputs.fresh("exact")}, saved)
    return folder, [source, result, saved]
