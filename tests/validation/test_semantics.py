"""`check_semantics`: what a wrong pass looks like, what is selected, and what is not checked."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
import torch

import irc
import tests.validation.broken  # noqa: F401  # its passes register on import
from irc.ir.diagnostics import UserError
from irc.ir.passes import PassManager
from irc.tools.irc_opt import main
from irc.validation.semantics import SemanticsChanged, SemanticsCheck

SUBTRACT = """\
func.func @main(%x: tensor<[s0, 3] x f32>, %y: tensor<[s0, 3] x f32>) -> tensor<[s0, 3] x f32> {
  %s0 = sym.bind_size %x {dim = 0 : i64, hint = 40 : i64, symbol = "s0"} : (tensor<[s0, 3] x f32>) -> index
  %d = graph.sub %x, %y : (tensor<[s0, 3] x f32>, tensor<[s0, 3] x f32>) -> tensor<[s0, 3] x f32>
  func.return %d : tensor<[s0, 3] x f32>
}
"""  # noqa: E501

ADD = """\
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %a = graph.add %x, %y : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %b = graph.add %a, %z : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %b : tensor<64xf32>
}
"""

POSITIONS = """\
func.func @main(%x: tensor<[s0] x i64>) -> tensor<[s0] x i64> {
  %s0 = sym.bind_size %x {dim = 0 : i64, hint = 40 : i64, symbol = "s0"} : (tensor<[s0] x i64>) -> index
  %p = graph.iota {dim = 0 : i64} : tensor<[s0] x i64>
  %y = graph.add %p, %x : (tensor<[s0] x i64>, tensor<[s0] x i64>) -> tensor<[s0] x i64>
  func.return %y : tensor<[s0] x i64>
}
"""  # noqa: E501


def check(text: str, pipeline: str, selection: str = "each", **rest) -> SemanticsCheck:
    """Run a pipeline on a text with every pass checked."""
    manager = PassManager.parse(pipeline)
    hook = SemanticsCheck(selection, total=manager.count(), **rest)
    manager.instrumentations.append(hook)
    manager.run(irc.parse(text))
    return hook


def failure(text: str, pipeline: str, folder: Path, **rest) -> SemanticsChanged:
    with pytest.raises(SemanticsChanged) as caught:
        check(text, pipeline, folder=folder, **rest)
    return caught.value


def test_a_wrong_pass_is_named_with_the_output_and_the_largest_error(tmp_path):
    error = failure(SUBTRACT, "canonicalize,test-swap-operands", tmp_path)
    text = str(error)
    assert "[test-swap-operands]" in text
    assert "@main computes: result 0: differs: largest error" in text
    assert error.difference.error > 0.1
    row, column = error.difference.index
    x, y = error.inputs.fresh("real")
    assert error.difference.before == (x - y)[row, column].item()
    assert error.difference.after == (y - x)[row, column].item()


def test_the_evidence_is_the_smallest_size_that_shows_it(tmp_path):
    assert failure(SUBTRACT, "test-swap-operands", tmp_path).sizes == {"s0": 1}
    # Clipping at 2 shows from four positions on only.
    error = failure(POSITIONS, "test-clip-positions", tmp_path)
    assert error.sizes == {"s0": 4}
    assert error.difference.index == (3,) and error.difference.count == 1


def test_the_module_before_is_kept_and_replays(tmp_path):
    error = failure(SUBTRACT, "test-swap-operands", tmp_path)
    source, after, inputs = error.files
    assert "graph.sub %x, %y" in source.read_text() and "graph.sub %y, %x" in after.read_text()
    assert [t.shape for t in torch.load(inputs)["arguments"]] == [(1, 3), (1, 3)]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        words = ["--run-reproducer", str(source), "--check-semantics=each"]
        assert main([*words, f"--check-semantics-dir={tmp_path}", "-o", "/dev/null"]) == 1
    assert "result 0: differs" in errors.getvalue()
    with contextlib.redirect_stderr(errors):
        words.append(f"--check-semantics-inputs={inputs}")
        assert main([*words, f"--check-semantics-dir={tmp_path}", "-o", "/dev/null"]) == 1


def test_a_pass_that_preserves_bits_may_not_round_otherwise(tmp_path):
    error = failure(ADD, "test-reassociate", tmp_path)
    assert "in mode 'exact', the pass preserves 'bits'" in str(error)
    assert error.difference.error < 1e-5
    assert check(ADD, "test-reassociate-real").checked == 1


def test_undefined_elements_show(tmp_path):
    assert failure(ADD, "test-undefined", tmp_path).difference.after != 0.0
    # What was undefined before may become anything.
    text = """\
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %u = graph.undefined : tensor<4xf32>
      %a = graph.add %u, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %a : tensor<4xf32>
    }
    """
    assert check(text, "test-undefined").checked == 1


@pytest.mark.parametrize(
    ("selection", "checked", "unchanged"),
    [("each", 4, 0), ("changed", 1, 3), ("sample:1", 0, 1), ("sample:9", 1, 3)],
)
def test_selections(selection, checked, unchanged):
    hook = check(ADD, "test-nothing,test-nothing,test-rename,test-nothing", selection)
    assert (hook.checked, hook.unchanged) == (checked, unchanged)
    assert f"{checked} passes checked" in hook.report


def test_a_bad_selection_is_refused():
    for bad in ("all", "sample", "sample:0", "sample:x", ""):
        with pytest.raises(UserError, match="'each', 'changed' or 'sample:N'"):
            SemanticsCheck(bad)


def test_passes_on_a_function_are_checked(tmp_path):
    assert failure(SUBTRACT, "func.func(test-swap-operands)", tmp_path).pass_name
    assert check(SUBTRACT, "func.func(canonicalize,cse)").checked == 2


def test_big_functions_are_left_out_with_a_message():
    hook = check(ADD, "test-rename", max_elements=100)
    assert "hold 320 elements, more than the 100 allowed" in hook.skipped["main"]
    big = SUBTRACT.replace("hint = 40", "hint = 40000")
    assert not check(big, "canonicalize", max_elements=1000).skipped, "other sizes are tried"


def test_given_inputs_are_used(tmp_path):
    x, y = torch.randn(7, 3), torch.randn(7, 3)
    with pytest.raises(SemanticsChanged) as caught:
        manager = PassManager.parse("test-swap-operands")
        manager.run(irc.parse(SUBTRACT), check_semantics="each", inputs=[x, y])
    assert torch.equal(caught.value.inputs.fresh("exact")[0], x)
    same = torch.ones(2, 3)
    PassManager.parse("test-swap-operands").run(
        irc.parse(SUBTRACT), check_semantics="each", inputs=[same, same]
    )


def test_the_pipeline_of_a_model_is_checked():
    def function(x, i, w):
        h = torch.dropout(torch.softmax(x, -1) @ w, 0.3, True)
        x.add_(1)
        return h[i], h.t()

    module = irc.trace(function, (torch.randn(5, 6), torch.tensor([0, 4, 2]), torch.randn(6, 3)))
    context = PassManager.parse("lower-to-cpu").run(module, check_semantics="changed")
    assert not [r for r in context.remarks if "not checked" in r.message]
    assert context.statistics["bufferize", "checked against the interpreter"] == 1
