"""Every example runs and says what it promises."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from irc.tools import cli
from tests.ir_files import run_opt

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SAYS = {
    "pipeline.py": "equal to eager: True",
    "own_dialect.py": "",
    "own_rules.py": "",
    "squares.py": "",
}


@pytest.fixture
def here(monkeypatch, capsys):
    """Runs a script that leaves nothing behind in this process, which has torch; gives its
    output."""

    def run_here(name: str, *words: str) -> str:
        torch._dynamo.reset()
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    yield run_here
    torch._dynamo.reset()


def run(*words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# Tests of their own run these.
OTHERS = {"levels.py", "compile_model.py", "row_norm.py"}


@pytest.mark.parametrize("name", SAYS)
def test_script_runs(name):
    assert SAYS[name] in run(str(EXAMPLES / name))


def test_every_script_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == SAYS.keys() | OTHERS


def test_a_program_written_as_text_runs_compiled(here):
    assert "agrees with torch" in here("row_norm.py")


def test_training_example_learns(here):
    text = here("compile_model.py")
    assert "1 program, " in text
    lines = text.splitlines()
    losses = [float(line.split()[-1]) for line in lines if line.startswith("training")]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    errors = [float(line.split()[-1]) for line in lines if line.startswith("inference")]
    assert len(errors) == 3 and max(errors) < 1e-5


def test_custom_pass_from_the_command_line():
    words = ("--load", "examples/squares.py", "examples/squares.mlir", "--squares")
    text = run("-m", "irc.tools.irc_opt", *words)
    assert "graph.mul" in text and "graph.pow" not in text


def test_levels_written_as_files_go_on(tmp_path, here):
    here("levels.py", str(tmp_path))
    assert any("kernel.func @k0" in path.read_text() for path in tmp_path.glob("*.mlir"))
    (fused,) = tmp_path.glob("*.fuse-loops.mlir")
    done, code, errors = run_opt([str(fused), "--loop-to-kernel", "--emit", "llvm"])
    assert done == 0 and "define" in code, errors


def test_program_written_as_text_runs(capsys):
    assert cli.main(["run", str(EXAMPLES / "row_norm.mlir"), "--size", "s0=3"]) == 0
    assert "float32 [3]" in capsys.readouterr().out
