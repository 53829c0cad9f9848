"""Flags of irc-opt that would do nothing together with the others: each is an error."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from irc.ir.diagnostics import UserError

# What irc-opt prints instead of a program.
LISTS = ("version", "list_passes", "list_pipelines", "show_dialects", "explain", "check_rules")
# What tells something about passes, and needs some.
OF_PASSES = (
    "print_ir_before", "print_ir_after", "print_ir_before_all", "print_ir_after_all",
    "print_ir_after_change", "print_ir_after_failure", "verify_each", "check_semantics",
    "pass_timeout", "timing", "statistics", "remarks", "crash_reproducer", "dump_pass_pipeline",
    "fuel",
)  # fmt: skip
PRINTS = OF_PASSES[:6]
# A flag, and those of which it needs one.
NEEDS: dict[str, tuple[str, ...]] = {
    "print_ir_tree_dir": PRINTS,
    "print_ir_function": PRINTS,
    "check_semantics_inputs": ("check_semantics",),
    "check_semantics_dir": ("check_semantics",),
    "check_semantics_max": ("check_semantics",),
}
# A flag, and those that leave it nothing to do.
DEFEATED: dict[str, tuple[str, ...]] = {
    "generic": ("emit",),
    "locations": ("emit",),
    "emit": ("verify_diagnostics",),
    "output": ("verify_diagnostics",),
}


def check_idle(arguments: argparse.Namespace, has_passes: bool) -> None:
    """Raise UserError for a flag that would do nothing."""
    flags = {name for name in vars(arguments) if _is_given(arguments, name)}
    lists = [name for name in LISTS if name in flags]
    if lists:
        others = flags - {lists[0], "load", "debug"}
        if others or has_passes:
            other = _flag(min(others)) if others else "a pass"
            raise UserError(f"{_flag(lists[0])} prints its list and ends: {other} would do nothing")
        return
    if "run_reproducer" in flags and has_passes:
        raise UserError("--run-reproducer takes the file's pipeline: other passes would not run")
    if not has_passes and "run_reproducer" not in flags:
        for name in OF_PASSES:
            if name in flags:
                raise UserError(f"{_flag(name)} does nothing without passes")
    for name, needed in NEEDS.items():
        if name in flags and not flags & set(needed):
            raise UserError(
                f"{_flag(name)} does nothing without {' or '.join(map(_flag, needed))}"
            )
    for name, stronger in DEFEATED.items():
        for other in stronger:
            if name in flags and other in flags:
                raise UserError(f"{_flag(name)} does nothing with {_flag(other)}")


def check_selected(arguments: argparse.Namespace, passes: Iterable[Any]) -> None:
    """Raise UserError where a pass to print at is not among those that run."""
    from irc.ir.passes import did_you_mean

    names = [p.name for p in passes]
    for option in ("print_ir_before", "print_ir_after"):
        chosen: Sequence[str] = getattr(arguments, option)
        for name in chosen:
            if name not in names:
                raise UserError(
                    f"{_flag(option)} {name}: the pass does not run{did_you_mean(name, names)}"
                )


def _is_given(arguments: argparse.Namespace, name: str) -> bool:
    value = getattr(arguments, name)
    default = {"output": "-", "files": ["-"]}.get(name)
    return value is not None and value is not False and value != [] and value != default


def _flag(name: str) -> str:
    return "an input file" if name == "files" else "--" + name.replace("_", "-")
