"""Files that a failing pass leaves: the module before it, and what replays it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from irc.ir.passes import Pass, pass_text
from irc.ir.printer import print_op

REPRODUCER_MARK = "// irc-opt reproducer, pipeline: "


def write_reproducer(path: Path, pipeline: str, message: str, module: Any, text: str = "") -> None:
    """A program that `irc-opt --run-reproducer` replays, with its large constants beside it.

    text: the module's text as it was, where the module has changed since.
    """
    from irc.tools.resources import write_beside

    text = text or print_op(module)
    first = message.partition("\n")[0]
    content = f"{REPRODUCER_MARK}{pipeline}\n// error: {first}\n{text}\n"
    path.write_text(content, encoding="utf-8")
    write_beside(path, text, getattr(module, "resources", {}))


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
    write_reproducer(source, pass_text(pass_), f"@{function}: {message}", before)
    result.write_text(print_op(after) + "\n", encoding="utf-8")
    torch.save({"arguments": inputs.fresh("exact")}, saved)
    return folder, [source, result, saved]
