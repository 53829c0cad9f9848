"""Passes that fail inside a compile: what is told, and what is left to see it again."""

from __future__ import annotations

import shlex

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.dialects import graph  # noqa: E402
from irc.ir.diagnostics import InternalError, InvalidIR, UserError  # noqa: E402
from irc.passes.loop import localize  # noqa: E402
from irc.passes.loop.convert_to_loop import scalar_semantics  # noqa: E402
from irc.passes.loop.convert_to_loop.support import TO_LOOP  # noqa: E402
from tests.ir_files import run_opt  # noqa: E402
from tests.passes.converters import without  # noqa: E402

pytestmark = pytest.mark.fault("K10")


def softmax(x):
    y = torch.tanh(x)
    return torch.softmax(y, -1) + torch.tanh(x + 1)


def failure(kind, folder, options=()):
    chosen = {"dump_directory": str(folder), **dict(options)}
    with pytest.raises(kind) as caught:
        irc.compile(softmax, (torch.randn(5, 33),), options=chosen)
    return caught.value


def replay(error):
    """The last note's command, run: the exit code and what it prints."""
    note = next(n for n in error.notes if n.startswith("to see it again: "))
    program, *words = shlex.split(note.partition(": ")[2])
    assert program == "irc-opt"
    code, _, errors = run_opt(words)
    return code, errors


def test_all_that_has_no_lowering_is_listed_with_the_models_lines(tmp_path, monkeypatch):
    monkeypatch.delitem(scalar_semantics.POINTWISE, "tanh")
    error = failure(InvalidIR, tmp_path)
    text = str(error)
    assert "2 operation(s) could not be converted" in text and "[convert-to-loop]" in text
    first = softmax.__code__.co_firstlineno
    places = ", ".join(f"{__file__}:{first + line}" for line in (1, 2))
    why = "there is no scalar code for 'tanh'"
    assert f"'graph.tanh', 2 of them, from {places}: pointwise: {why}" in text
    code, errors = replay(error)
    assert code == 1 and "could not be converted" in errors


def test_an_operation_without_a_rule_is_listed(tmp_path):
    with without(TO_LOOP, graph.Reduce):
        error = failure(InvalidIR, tmp_path)
    assert "'graph.reduce', 2 of them, from" in str(error)
    assert "it has no form on the loop level" in str(error)


def test_a_crash_leaves_a_reproducer_and_its_command(monkeypatch, tmp_path):
    def crash(self, op, context):
        raise KeyError("planted")

    monkeypatch.setattr(localize.Localize, "run", crash)
    error = failure(InternalError, tmp_path)
    assert "[localize] KeyError: 'planted'" in str(error)
    assert f"raised at {__file__}:{crash.__code__.co_firstlineno + 1}, in crash" in str(error)
    code, errors = replay(error)
    assert code == 1 and "KeyError: 'planted'" in errors
    text = next(tmp_path.glob("crash-*.mlir")).read_text()
    assert text.startswith("// irc-opt reproducer, pipeline: localize,") and "loop.compute" in text
    monkeypatch.undo()
    assert replay(error)[0] == 0


BOOM = """
import irc


@irc.register_pass
class Boom(irc.Pass):
    \"\"\"Raises.\"\"\"

    name = "boom-of-the-user"
    summary = "raise"

    def run(self, op, context):
        raise KeyError("planted by the user")
"""


@pytest.mark.fault("U5", "U7")
def test_a_crash_in_a_users_pass_names_its_file(tmp_path):
    from irc.tools.files import load_file

    path = tmp_path / "users.py"
    path.write_text(BOOM)
    load_file(path)
    addition = pipeline.extend(passes="boom-of-the-user", after="fuse-loops")
    try:
        error = failure(UserError, tmp_path / "made", {"fx_graph_cache": False}.items())
    finally:
        pipeline.withdraw(addition)
    assert f"{path}:13:9: error: [boom-of-the-user] pass 'boom-of-the-user' raised" in str(error)
    note = error.notes[-1]
    assert note.endswith(f"--load {path}")
    code, errors = replay(error)
    assert code == 1 and f"{path}:13:9: error: " in errors
