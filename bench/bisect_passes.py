"""Which pass changes what a program computes: every graph of a model, interpreted after each pass.

    python -m bench.bisect_passes bert                  # an entry of tests/models/zoo.py
    python -m bench.bisect_passes bert --training --dynamic --size 23

Each graph that torch.compile hands to irc is kept at the aten level with the arguments of its
first call. Then the default pipeline runs one pass at a time and the module is interpreted after
each; the first pass whose results differ is named, with the result and how far it is off, and its
first rewrite that is wrong (`irc.validation.bisection`). The executable's own results come last
("executable"). Works on other programs through `Bisector`:

    with Bisector() as bisector:
        torch.compile(f, backend="irc")(x)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

import irc.frontend.backend as backend
from irc import pipeline
from irc.frontend.importing.importer import Imported
from irc.interp import run
from irc.ir.passes import PassContext, PassManager
from irc.validation.bisection import guilty_rewrite


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Fresh copies of the tensors among the arguments, with their strides."""
    return [
        x.detach().clone(memory_format=torch.preserve_format) if isinstance(x, torch.Tensor) else x
        for x in arguments
    ]


def difference(mine: Any, expected: Any) -> float:
    """RMS of the difference in units of the RMS of `expected`; infinite where shapes, or the
    places of NaN and infinities, differ."""
    a, b = torch.as_tensor(mine), torch.as_tensor(expected)
    if a.shape != b.shape:
        return float("inf")
    a, b = a.detach().double(), b.detach().double()
    finite = b.isfinite()
    if not torch.equal(a.isfinite(), finite) or not torch.equal(a.isnan(), b.isnan()):
        return float("inf")
    if not finite.any():
        return 0.0
    error = (a - b)[finite].pow(2).mean().sqrt()
    return float(error / b[finite].pow(2).mean().sqrt().clamp_min(1e-30)) if error else 0.0


def passes_of(text: str) -> list[str]:
    """The parts of a pipeline, one pass each."""
    return [part.strip() for part in text.split(",")]


class Bisector:
    """Inside `with`, every graph that the backend compiles is checked at its first call.

    `limit`: the largest difference allowed. `mode`: the interpreter's. `report`: takes the lines.
    """

    def __init__(
        self, limit: float = 1e-4, mode: str = "exact", report: Callable[[str], None] = print
    ) -> None:
        self.limit = limit
        self.mode = mode
        self.report = report
        self.failures: list[str] = []
        self.graphs = 0

    def __enter__(self) -> Bisector:
        self._build = backend.build
        backend.build = self.build
        return self

    def __exit__(self, *exc: object) -> None:
        backend.build = self._build

    def build(self, imported: Imported, options: Any, target: str) -> Callable[..., Any]:
        """`backend.build`, whose executable checks itself at its first call."""
        source = imported.module.clone()
        source.resources.update(imported.module.resources)
        number, self.graphs = self.graphs, self.graphs + 1
        executable = self._build(imported, options, target)
        checked = []

        def call(*arguments: Any) -> Any:
            given = None if checked else copied(arguments)
            results = executable(*arguments)
            if given is not None:
                checked.append(True)
                with torch.no_grad():
                    self.check(f"graph {number}", source, target, given, list(results))
            return results

        return call

    def check(
        self, name: str, module: Any, target: str, arguments: list[Any], results: list[Any]
    ) -> None:
        """Interpret `module` after each pass and compare with its first meaning."""
        expected = run(module, *copied(arguments), mode=self.mode)
        context = PassContext(target=target)
        for text in passes_of(pipeline.pipeline_text(target)):
            before = module.clone()
            PassManager.parse(text).run(module, context)
            try:
                found = run(module, *copied(arguments), mode=self.mode)
            except Exception as error:
                self.fail(f"{name}: after {text}: {type(error).__name__}: {error}")
                continue
            if self.compare(f"{name}: after {text}", found, expected):
                self.name_rewrite(before, text, arguments, expected)
                break
        self.compare(f"{name}: executable", results, expected)

    def name_rewrite(
        self, before: Any, text: str, arguments: list[Any], expected: list[Any]
    ) -> None:
        """Report which rewrite of a pass is the wrong one."""

        def is_wrong(module: Any) -> bool:
            found = run(module, *copied(arguments), mode=self.mode)
            return any(difference(a, b) > self.limit for a, b in zip(found, expected, strict=True))

        rewrite = guilty_rewrite(before, text, is_wrong)
        self.report(f"  {rewrite}" if rewrite else "  no single rewrite of it: the pass itself")

    def compare(self, where: str, found: list[Any], expected: list[Any]) -> bool:
        """Whether results are off; the worst one is reported."""
        errors = [difference(a, b) for a, b in zip(found, expected, strict=True)]
        worst = max(range(len(errors)), key=errors.__getitem__, default=None)
        if worst is None or errors[worst] <= self.limit:
            return False
        count = sum(e > self.limit for e in errors)
        self.fail(f"{where}: {count} results differ, most result {worst}: {errors[worst]:.3g}")
        return True

    def fail(self, line: str) -> None:
        self.failures.append(line)
        self.report(line)


def main() -> int:
    from tests.models.zoo import ZOO

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(ZOO))
    parser.add_argument("--size", type=int, help="default: the entry's first")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--mode", choices=("exact", "real"), default="exact")
    parser.add_argument("--limit", type=float, default=1e-4)
    given = parser.parse_args()
    entry = ZOO[given.model]
    torch.set_num_threads(1)
    with Bisector(given.limit, given.mode) as bisector, torch.set_grad_enabled(given.training):
        model = torch.compile(entry.make_model(), backend="irc", dynamic=given.dynamic)
        outputs = model(*entry.make_inputs(given.size or entry.sizes[0]))
        if given.training:
            sum(output.square().mean() for output in outputs).backward()
    print(f"{bisector.graphs} graphs, {len(bisector.failures)} differences")
    return 1 if bisector.failures else 0


if __name__ == "__main__":
    sys.exit(main())
