"""A stand-in for the code generators: programs run in the interpreter on the graph level."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.frontend import backend
from irc.ir.passes import PassManager


class Interpreted:
    """Runs a module in the interpreter; has the module for tests to look at."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, *arguments: Any) -> list[Any]:
        return irc.run(self.module, *arguments)

    def names(self) -> list[str]:
        """The names of the operations."""
        return [op.name for op in self.module.walk()]

    def calls(self) -> list[str]:
        """The operators left to ATen."""
        return [op.callee for op in self.module.walk() if op.name == "graph.call_aten"]


@pytest.fixture
def interpreted(monkeypatch):
    """Build programs for the interpreter; gives the list of what was built."""
    made: list[Interpreted] = []

    def build(imported: Any, options: Any, target: str) -> Interpreted:
        PassManager.parse("convert-aten-to-graph,canonicalize,cse").run(imported.module)
        irc.verify(imported.module)
        made.append(Interpreted(imported.module))
        return made[-1]

    monkeypatch.setattr(backend, "build", build)
    torch._dynamo.reset()
    yield made
    torch._dynamo.reset()
