"""The text of one level, and a model taken down every level with each text checked.

Each level's text is written to the output folder; it must parse back to the same text, run in the
interpreter on a small input with the results of the eager model, and go on from there to machine
code that gives them too.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

# Machine code rounds differently from eager; a wrong program is off by far more.
TOLERANCE = 1e-4
SHOWN = "functional,aten-to-graph,graph-to-layout,layout-to-loop,fuse-loops"


def scaled_softmax(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The small program whose text is shown."""
    return torch.softmax(x * w, -1)


def one_level() -> str:
    """The loop level of `scaled_softmax`, behind fusion: the group that it became."""
    import irc
    from irc.dialects import loop

    module = irc.trace(scaled_softmax, (torch.randn(64, 16), torch.randn(16)))
    irc.PassManager.parse(SHOWN).run(module)
    groups = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    return "\n".join(irc.print_op(op) for op in groups)


@dataclasses.dataclass
class Check:
    """What the text of one level came to: the file, and the three checks as "ok" or the reason."""

    level: str
    file: str
    lines: int
    parses: str = "-"
    interpreted: str = "-"
    continued: str = "-"

    def failed(self) -> bool:
        """Did any check not hold?"""
        return {self.parses, self.interpreted, self.continued} != {"ok"}


HEAD = ("level", "file", "lines", "parses back", "interpreted", "compiled on")


def small_case(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The model with the small input on which every level is interpreted."""
    from bench.builders import find

    module = find(name).make()
    torch.manual_seed(0)
    if name == "small-gpt2":
        return module, (torch.randint(0, 5000, (1, 8)),)
    return module, (torch.randn(1, 3, 32, 32),)


def relative_error(got: Any, expected: Any) -> float:
    """The largest difference relative to the largest expected value, over all results."""
    got = (got,) if torch.is_tensor(got) else tuple(got)
    expected = (expected,) if torch.is_tensor(expected) else tuple(expected)
    pairs = [(a.detach(), b.detach()) for a, b in zip(got, expected, strict=True)]
    return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) for a, b in pairs)


def verdict(run: Any) -> str:
    """ "ok" if `run()` gives an error within the tolerance, else what happened."""
    try:
        error = run()
    except Exception as failure:
        return f"{type(failure).__name__}: {' '.join(str(failure).split())[:120]}"
    return "ok" if error <= TOLERANCE else f"off by {error:.1e}"


def levels(name: str, folder: Path) -> list[Check]:
    """Take a model down the default pipeline; write and check the text of every level."""
    import irc
    from irc import pipeline
    from irc.frontend.tracing import trace_function

    module, inputs = small_case(name)
    with torch.no_grad():
        expected = module(*inputs)
        program = irc.trace(module, inputs)
        # The module's own tensors are the program's first arguments.
        arguments = [*trace_function(module, inputs).tensors, *inputs]
    stages = list(pipeline.stages().items())
    checks = []
    for number in range(len(stages) + 1):
        level = stages[number - 1][0].split("-to-")[-1] if number else "aten"
        text = irc.print_op(program)
        path = folder / f"{name}.{number}.{level}.mlir"
        path.write_text(text, encoding="utf-8")
        rest = ",".join(text for _, text in stages[number:])
        check = Check(level, path.name, text.count("\n"))
        checks.append(check)
        check.parses = verdict(lambda text=text, path=path: round_trip(text, path))
        check.interpreted = verdict(
            lambda text=text: relative_error(irc.run(irc.parse(text), *arguments), expected)
        )
        check.continued = verdict(
            lambda text=text, rest=rest: relative_error(
                continue_from(text, rest)(*arguments), expected
            )
        )
        if number < len(stages):
            irc.PassManager.parse(stages[number][1]).run(program)
    return checks


def round_trip(text: str, path: Path) -> float:
    """0 if the text parses back to the program that prints it, else infinity."""
    import irc

    return 0.0 if irc.print_op(irc.parse(text, filename=str(path))) == text else float("inf")


def continue_from(text: str, rest: str) -> Any:
    """The executable that a text becomes through the rest of the pipeline."""
    import irc

    program = irc.parse(text)
    if rest:
        irc.PassManager.parse(rest).run(program)
    return irc.build(program, target="llvm")
