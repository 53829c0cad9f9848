"""Every example runs and says what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SAYS = {
    "levels.py": "kernel.func @k0",
    "pipeline.py": "equal to eager: True",
    "compile_model.py": "1 program, ",
    "row_norm.py": "agrees with torch",
    "own_rules.py": "",
    "squares.py": "",
}


def run(*words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_script_runs(name):
    assert SAYS[name] in run(str(EXAMPLES / name))


def test_training_example_learns():
    lines = run(str(EXAMPLES / "compile_model.py")).splitlines()
    losses = [float(line.split()[-1]) for line in lines if line.startswith("training")]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    errors = [float(line.split()[-1]) for line in lines if line.startswith("inference")]
    assert len(errors) == 3 and max(errors) < 1e-5


def test_custom_pass_from_the_command_line():
    words = ("--load", "examples/squares.py", "examples/squares.mlir", "--squares")
    text = run("-m", "irc.tools.irc_opt", *words)
    assert "graph.mul" in text and "graph.pow" not in text


def test_levels_written_as_files_go_on(tmp_path):
    run(str(EXAMPLES / "levels.py"), str(tmp_path))
    (fused,) = tmp_path.glob("*.fuse-loops.mlir")
    code = run("-m", "irc.tools.irc_opt", str(fused), "--loop-to-kernel", "--emit", "llvm")
    assert "define" in code


def test_program_written_as_text_runs():
    text = run("-m", "irc.tools.cli", "run", "examples/row_norm.mlir", "--size", "s0=3")
    assert "float32 [3]" in text
