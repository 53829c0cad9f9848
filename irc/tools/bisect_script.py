"""`irc bisect FILE.py`: a script runs as it is, and every graph that irc compiles is searched."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from irc.ir.diagnostics import UserError
from irc.tools.bisecting import SearchPlan, say, search


def search_script(path: Path, words: Sequence[str], plan: SearchPlan, graph: int | None) -> int:
    """Run a script with irc's compiles watched; gives 1 where a graph is wrong or it raises."""
    from irc.frontend import backend

    if not path.is_file():
        raise UserError(f"there is no file {path}")
    watch = GraphWatch(plan, graph)
    before = sys.argv, list(sys.path)
    sys.argv, sys.path[:0] = [str(path), *words], [str(path.parent)]
    try:
        with backend.built_by(watch.build):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as exit_:
        watch.failed |= exit_.code not in (None, 0)
    except Exception:
        say(f"the script raised:\n{traceback.format_exc()}")
        watch.failed = True
    finally:
        sys.argv, sys.path[:] = before
    if graph is not None and graph >= watch.count:
        raise UserError(f"there is no graph {graph}: irc compiled {watch.count}")
    say(f"{watch.count} graphs, {watch.wrong} of them wrong\n")
    return int(watch.failed or watch.wrong > 0)


@attrs.frozen(eq=False)
class _Graph:
    """One graph: the program on the aten level, and what it was compiled for."""

    name: str
    module: Any
    options: Any
    target: Any


class GraphWatch:
    """Searches each graph at its first call, with the arguments of that call; one that can't be
    compiled at once, with arguments of its types."""

    def __init__(self, plan: SearchPlan, only: int | None = None) -> None:
        self.plan = plan
        self.only = only
        self.count = 0
        self.wrong = 0
        self.failed = False

    def build(self, imported: Any, options: Any, target: Any) -> Any:
        """`irc.frontend.backend.build`, whose executable is watched."""
        from irc.frontend import backend

        number, self.count = self.count, self.count + 1
        if self.only not in (None, number):
            return backend.build(imported, options, target)
        graph = _Graph(f"graph {number}", imported.module.clone(), options, target)
        try:
            executable = backend.build(imported, options, target)
        except Exception as error:
            say(f"{graph.name}: compiling raises {type(error).__name__}\n")
            self.judged(graph, None, None)
            raise
        return Watched(executable, graph, self)

    def judged(self, graph: _Graph, inputs: Any, outcome: Any) -> None:
        """Search one graph and count it. inputs: None for any of its types. outcome: what its
        executable gave, and the arguments afterwards; None where it gave nothing."""
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        from irc.ir.diagnostics import IRCError

        with torch.no_grad(), _disable_current_modes():
            try:
                is_wrong = self._search(graph, inputs, outcome)
            except IRCError as error:
                say(f"{graph.name} can't be searched: {error}\n")
                self.failed = True
            else:
                self.wrong += is_wrong

    def _search(self, graph: _Graph, inputs: Any, outcome: Any) -> bool:
        from irc.ir.passes import PassContext, PassManager
        from irc.pipeline import pipeline_text
        from irc.target.attribute import settle
        from irc.validation.bisection import Judge
        from irc.validation.inputs import from_tensors, random_arguments

        say(f"{graph.name}:\n")
        if inputs is None:
            inputs = from_tensors(random_arguments(graph.module.lookup("main"), {}, 0))
        target = settle(graph.module, graph.target)
        judge = Judge(graph.module, inputs, mode=self.plan.mode, tolerance=self.plan.tolerance)
        steps = PassManager.parse(pipeline_text(target, graph.options)).steps

        def context(fuel: Any) -> PassContext:
            return PassContext(options=graph.options, fuel=fuel, explains=False)

        if search(graph.module, steps, judge, self.plan, context):
            return True
        if outcome is None:
            return False
        message: str = judge.of_results(*outcome)
        say(f"the executable: {message or 'right'}\n")
        return bool(message)


class Watched:
    """An executable whose first call is searched. `info` is the executable's."""

    def __init__(self, executable: Any, graph: _Graph, watch: GraphWatch) -> None:
        self.executable = executable
        self.info = getattr(executable, "info", None)
        self._graph: _Graph | None = graph
        self._watch = watch

    def __call__(self, *arguments: Any) -> Any:
        graph, self._graph = self._graph, None
        if graph is None:
            return self.executable(*arguments)
        from irc.validation.inputs import from_tensors

        inputs = from_tensors(arguments).copy()
        try:
            results = self.executable(*arguments)
        except Exception as error:
            say(f"{graph.name}: its call raises {type(error).__name__}: {error}\n")
            self._watch.judged(graph, inputs, None)
            self._watch.failed = True
            raise
        self._watch.judged(graph, inputs, (list(results), list(arguments)))
        return results


__all__ = ["GraphWatch", "Watched", "search_script"]
