"""A search of `irc bisect` in one program: what is told of it, and the files that it leaves."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class SearchPlan:
    """How a program is searched: what is known of it, and where its files go.

    passes, rewrites: right behind so many, wrong behind so many. directory: None for a new one
    among the temporary files.
    """

    passes: tuple[int, int] | None = None
    rewrites: tuple[int, int] | None = None
    mode: str = "real"
    tolerance: float | None = None
    directory: str | None = None


def say(text: str) -> None:
    """Print a piece of a line at once: what is tried next may not come back."""
    sys.stdout.write(text)
    sys.stdout.flush()


def search(
    module: Any,
    steps: Sequence[Any],
    judge: Any,
    plan: SearchPlan,
    context: Callable[[Any], Any] | None = None,
) -> bool:
    """Whether a pass makes a program wrong: it is told which, by which rewrite, and where the
    program before it was written."""
    from irc.validation.bisection import Bisection, plain_context

    bisection = Bisection(module, steps, judge, context=context or plain_context, report=say)
    wrong = bisection.first_pass(*(plan.passes or (0, None)))
    if wrong is None:
        say("no pass makes it wrong\n")
        return False
    say(f"pass {wrong.position} is the first, {wrong.name}: {wrong.message}\n")
    rewrite = bisection.first_rewrite(wrong, *(plan.rewrites or (0, None)))
    say(f"  {rewrite or 'no single rewrite of it: the pass itself'}\n")
    path, command = keep(wrong, judge, plan.directory)
    say(f"  the program before it: {path}\n  to see it again: {command}\n")
    return True


def keep(wrong: Any, judge: Any, directory: str | None) -> tuple[Path, str]:
    """Write the program before the pass as a reproducer, with the arguments; gives the file and
    the command that replays it."""
    import torch

    from irc.ir.passes import passes_of
    from irc.validation.reproducer import replay_command, write_reproducer

    folder = Path(directory or tempfile.mkdtemp(prefix="irc-bisect-"))
    folder.mkdir(parents=True, exist_ok=True)
    passes = list(passes_of([wrong.step]))
    path = folder / f"{wrong.position}-{passes[0].name}.mlir"
    flags = ["--check-semantics=each"]
    if judge.function == "main":
        saved = path.with_suffix(".inputs.pt")
        torch.save({"arguments": judge.inputs.fresh("exact")}, saved)
        flags += ["--check-semantics-inputs", str(saved)]
    command = replay_command(path, passes, *flags)
    write_reproducer(path, wrong.name, wrong.message, wrong.before, command=command)
    return path, command


__all__ = ["SearchPlan", "say", "search"]
