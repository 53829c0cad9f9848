"""What irc-opt tells of itself: passes, pipelines, dialects, and what one of them does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any


def list_passes() -> str:
    """All passes, one line each."""
    from irc.ir.passes import all_passes

    return table({name: cls.summary for name, cls in all_passes().items()})


def list_pipelines() -> str:
    """All named pipelines, with the passes that each stands for."""
    from irc.ir.passes import pipelines

    return table(pipelines())


def show_dialects() -> str:
    """All dialects: how many operations and attributes each has, and what it is for."""
    from irc.ir import registry

    rows: dict[str, str] = {}
    for name in registry.dialects():
        registry.load_dialect(name)
        module = registry.dialect_module(name)
        head = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        count = len(registry.registered_ops(name))
        rows[name] = f"{count:4} operations  {head.partition(': ')[2] or head}"
    return table(rows)


def table(entries: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """A line for each entry, the names in a column of their own."""
    pairs = list(entries.items()) if isinstance(entries, Mapping) else entries
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:{width}}  {text}" for name, text in pairs)


def explain(name: str) -> str:
    """A pass's summary, description with its before/after example, and options; or the passes of
    a pipeline. Raises UserError for an unknown name."""
    from irc.ir.passes import lookup_pass, pass_options, pipelines

    text = pipelines().get(name)
    if text is not None:
        return _explain_pipeline(name, text)
    cls = lookup_pass(name)
    asks = "; asks for the target" if cls.asks_target else ""
    head = f"runs on: {cls.anchor}; preserves: {cls.preserves}{asks}"
    lines = [f"{name}: {cls.summary}", head, ""]
    lines.append(inspect.cleandoc(cls.__doc__ or ""))
    fields = pass_options(cls)
    if fields:
        lines += ["", "options:"]
        for field in fields:
            lines.append(f"  {field.name}: {field.type} = {field.default!r}")
    return "\n".join(lines)


def _explain_pipeline(name: str, text: str) -> str:
    from irc.ir.passes import PassManager, step_text

    steps: list[Any] = PassManager.parse(text).steps
    shown = [(step_text(step), getattr(step, "summary", "")) for step in steps]
    return "\n".join([f"{name}: {len(steps)} passes, in this order", "", table(shown)])
