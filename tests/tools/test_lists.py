"""irc-opt tells of itself, and refuses flags that would do nothing."""

from __future__ import annotations

import re

import pytest

import irc
from irc.ir.passes import pipelines
from irc.ir.registry import DIALECT_MODULES
from tests.ir_files import run_opt

TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(TEXT)
    return str(path)


def told(*words):
    code, output, errors = run_opt(list(words))
    assert code == 0, errors
    return output


@pytest.mark.fault("U9")
def test_version():
    text = told("--version")
    assert text.startswith(f"irc {irc.__version__}, Python 3.")
    assert re.search(r"torch \d", text) and re.search(r"llvmlite \d", text)


@pytest.mark.fault("U9")
def test_pipelines_are_listed():
    lines = told("--list-pipelines").splitlines()
    assert {line.split()[0] for line in lines} == pipelines().keys()
    assert any(re.match(r"layout-to-loop +convert-to-loop,", line) for line in lines)


@pytest.mark.fault("U9")
def test_dialects_are_listed():
    lines = told("--show-dialects").splitlines()
    assert [line.split()[0] for line in lines][: len(DIALECT_MODULES)] == list(DIALECT_MODULES)
    assert all(len(line.split()) > 3 for line in lines[: len(DIALECT_MODULES)])


@pytest.mark.fault("U9")
def test_the_pipeline_is_dumped_with_its_options(file):
    words = ["--cse", "--split-reductions=parts=3", "--lower-to-cpu", "--dump-pass-pipeline"]
    code, output, errors = run_opt([file, *words])
    assert code == 0 and "host.func" in output
    assert errors.startswith("cse,split-reductions{parts=3},functionalize,decompose-aten,")
    told("--pass-pipeline", errors.strip(), file)


@pytest.mark.fault("U3")
@pytest.mark.parametrize("name", ["fuse-loops", "lower-to-cpu", "functional"])
def test_pipelines_are_explained(name):
    lines = told("--explain", name).splitlines()
    assert re.match(rf"{name}: \d+ passes", lines[0])
    assert len(lines) == 2 + int(lines[0].split()[1])
    assert all(len(line.split()) > 2 for line in lines[2:])


def test_an_unknown_pipeline_is_not_explained():
    assert "unknown pass 'fuse-loop'; did you mean 'fuse-loops'?" in run_opt(
        ["--explain", "fuse-loop"]
    )[2]


IDLE = [
    (["--cse", "--print-ir-before=nosuch"], "--print-ir-before nosuch: the pass does not run"),
    (["--cse", "--print-ir-after=dce"], "--print-ir-after dce: the pass does not run"),
    (["--cse", "--print-ir-before=csee"], "did you mean 'cse'?"),
    (["--cse", "--print-ir-tree-dir=x"], "--print-ir-tree-dir does nothing without"),
    (["--cse", "--print-ir-function=main"], "--print-ir-function does nothing without"),
    (["--cse", "--print-ir-after-all", "--print-ir-function=nosuch"], "there is no such function"),
    (["--print-ir-after-all"], "--print-ir-after-all does nothing without passes"),
    (["--verify-each"], "--verify-each does nothing without passes"),
    (["--timing"], "--timing does nothing without passes"),
    (["--statistics"], "--statistics does nothing without passes"),
    (["--remarks"], "--remarks does nothing without passes"),
    (["--pass-timeout=1"], "--pass-timeout does nothing without passes"),
    (["--crash-reproducer=x"], "--crash-reproducer does nothing without passes"),
    (["--check-semantics=each"], "--check-semantics does nothing without passes"),
    (["--dump-pass-pipeline"], "--dump-pass-pipeline does nothing without passes"),
    (["--cse", "--check-semantics-dir=x"], "--check-semantics-dir does nothing without"),
    (["--lower-to-cpu", "--emit=triton"], "triton is emitted for kernels of a gpu, @k0 is for a"),
    (["--lower-to-cpu", "--emit=llvm", "--generic"], "--generic does nothing with --emit"),
    (["--lower-to-cpu", "--emit=llvm", "--locations"], "--locations does nothing with --emit"),
    (["--verify-diagnostics", "-o", "x"], "--output does nothing with --verify-diagnostics"),
    (["--run-reproducer", "--cse"], "--run-reproducer takes the file's pipeline"),
    (["--list-passes"], "--list-passes prints its list and ends: an input file would do nothing"),
    (["--version"], "--version prints its list and ends"),
    (["--pass-pipeline=module(canonicalize)"], "there is no operation 'module' to run passes on; "
     "did you mean 'builtin.module'?"),
    (["--pass-pipeline=func.fun(cse)"], "did you mean 'func.func'?"),
]  # fmt: skip


@pytest.mark.fault("U4")
@pytest.mark.parametrize("words, message", IDLE, ids=[" ".join(words) for words, _ in IDLE])
def test_flags_that_would_do_nothing_are_refused(words, message, file):
    code, output, errors = run_opt([file, *words])
    assert code == 1 and output == ""
    assert message in errors and "internal" not in errors


@pytest.mark.fault("U4")
def test_two_lists_are_refused():
    assert "would do nothing" in run_opt(["--list-passes", "--version"])[2]
    assert "would do nothing" in run_opt(["--list-passes", "--cse"])[2]
