"""`irc run`: a program's results on random, given and saved arguments."""

from __future__ import annotations

import contextlib
import io

import pytest

from irc.tools.cli import main

PROGRAM = """\
func.func @main(%x: tensor<[s0, 3] x f32>) -> tensor<[s0, 3] x f32> {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0", minimum = 0 : i64} : (tensor<[s0, 3] x f32>) -> index
  %y = graph.exp %x : (tensor<[s0, 3] x f32>) -> tensor<[s0, 3] x f32>
  func.return %y : tensor<[s0, 3] x f32>
}
func.func @constant() -> tensor<2xi64> {
  %y = graph.full {value = 7 : i64} : tensor<2xi64>
  func.return %y : tensor<2xi64>
}
"""  # noqa: E501


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


def run(*words):
    """Exit code, output and errors of `irc run`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["run", *words])
    return code, out.getvalue(), err.getvalue()


def test_random_arguments_of_a_size(file):
    code, output, _ = run(file, "--size", "s0=4")
    assert code == 0 and "result 0: float32 [4, 3] strides [3, 1]" in output
    assert run(file, "--size", "s0=4") == run(file, "--size", "s0=4", "--seed=0")
    assert output != run(file, "--size", "s0=4", "--seed=1")[1]


def test_another_function(file):
    assert "tensor([7, 7])" in run(file, "--function", "constant")[1]
    code, _, errors = run(file, "--function", "mian")
    assert code == 1 and "has no function 'mian'" in errors


def test_arguments_and_results_are_saved_and_loaded(file, tmp_path):
    import torch

    saved = str(tmp_path / "run.pt")
    first = run(file, "--size=s0=2", f"--save={saved}")
    assert first[0] == 0
    content = torch.load(saved, weights_only=True)
    torch.testing.assert_close(content["results"][0], content["arguments"][0].exp())
    assert run(file, f"--load={saved}")[1] == first[1]
    torch.save([torch.zeros(1, 3)], saved)
    assert "tensor([[1., 1., 1.]])" in run(file, f"--load={saved}")[1]
    torch.save(5, saved)
    assert "not a list of arguments" in run(file, f"--load={saved}")[2]


def test_passes_first(file):
    plain = run(file, "--size=s0=2", "--mode=real")
    stages = "graph-to-layout,layout-to-loop,fuse-loops,loop-to-kernel"
    assert run(file, "--size=s0=2", "--mode=real", f"--pass-pipeline={stages}")[0] == 0
    assert run(file, "--size=s0=2", "--mode=real", "--pass-pipeline=cse,dce") == plain


@pytest.mark.parametrize("words, message", [
    (["--size=s0=many"], "expected name=number"),
    (["--sizes=3"], "unrecognized arguments"),
    (["--pass-pipeline=csee"], "did you mean 'cse'"),
    (["--load=nowhere.pt"], "nowhere.pt"),
])  # fmt: skip
def test_mistakes_are_told_in_one_line(file, words, message):
    code, output, errors = run(file, *words)
    assert code == 1 and output == "" and message in errors and "Traceback" not in errors


def test_a_wrong_program_is_shown_with_its_place(file, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text(PROGRAM.replace("graph.exp", "graph.exq"))
    code, _, errors = run(str(path))
    assert code == 1 and f"{path}:3:8: error" in errors and "^" in errors
