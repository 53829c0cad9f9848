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


HOST_STAGES = "functional,aten-to-graph,graph-to-layout,layout-to-loop,fuse-loops,loop-to-kernel"


@pytest.mark.fault("U6")
@pytest.mark.parametrize("passes", ["", HOST_STAGES, f"{HOST_STAGES},kernel-to-host"])
def test_compiled_and_interpreted_results_are_the_same(file, passes):
    words = [file, "--size=s0=4", *([f"--pass-pipeline={passes}"] if passes else [])]
    code, output, errors = run(*words, "--compiled")
    assert code == 0, errors
    assert output == run(file, "--size=s0=4")[1]


MINE = """
import irc
from irc.dialects import graph
from irc.ir.definition import Op, operand, result
from irc.ir.traits import SameOperandsAndResultType
from irc.interp.core import interprets


class Twice(Op):
    \"\"\"Two times the operand.\"\"\"

    name = "mine.twice"
    traits = frozenset({SameOperandsAndResultType})
    source = operand()
    doubled = result()


@interprets(Twice)
def twice(frame, op):
    return frame[op.source] * 2


@irc.register_pass
class Expand(irc.Pass):
    \"\"\"Writes an addition.\"\"\"

    name = "expand-twice-of-mine"
    summary = "write an addition"

    def run(self, op, context):
        for inner in list(op.walk()):
            if isinstance(inner, Twice):
                builder = irc.Builder.before(inner)
                made = builder.value(graph.Add, inner.source, inner.source)
                inner.results[0].replace_all_uses_with(made)
                inner.erase()
"""


@pytest.mark.fault("U6")
def test_passes_and_dialects_are_loaded(file, tmp_path):
    mine = tmp_path / "mine_for_run.py"
    mine.write_text(MINE)
    program = tmp_path / "twice.mlir"
    exp = "graph.exp %x : (tensor<[s0, 3] x f32>) -> "
    program.write_text(PROGRAM.replace(exp, "mine.twice %x : "))
    saved = str(tmp_path / "run.pt")
    words = [str(program), f"--load={mine}"]
    assert "mine.twice" in program.read_text()
    code, first, errors = run(*words, "--size=s0=2", f"--save={saved}")
    assert code == 0, errors
    code, second, errors = run(
        *words, f"--load={saved}", "--pass-pipeline=expand-twice-of-mine", "--compiled"
    )
    assert code == 0, errors
    assert second == first


@pytest.mark.fault("U6")
@pytest.mark.parametrize("words, message", [
    (["--compiled", "--mode=real"], "--mode is the interpreter's"),
    (["--compiled", "--function=constant"], "--compiled runs @main only"),
    (["--load=a.pt", "--load=b.pt"], "come from a.pt already"),
    (["--load=a.pt", "--size=s0=2"], "--size does nothing"),
    (["--load=a.pt", "--seed=2"], "--seed does nothing"),
])  # fmt: skip
def test_words_that_would_do_nothing(file, words, message):
    code, output, errors = run(file, *words)
    assert code == 1 and output == "" and message in errors


FAILING = """\
func.func @main(%x: tensor<4x3xf32>, %w: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %y = graph.call_aten %x, %w {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
"""  # noqa: E501


@pytest.mark.fault("K9")
@pytest.mark.parametrize("words", [[], ["--compiled"]])
def test_what_a_program_raises_is_its_error(tmp_path, words):
    program = tmp_path / "failing.mlir"
    program.write_text(FAILING)
    code, output, errors = run(str(program), *words)
    assert code == 1 and output == ""
    assert "error: the program raised RuntimeError: " in errors and "internal" not in errors
