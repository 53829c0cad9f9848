"""What irc-opt and `irc run` do: each option by what one sees of it."""

from __future__ import annotations

import importlib.metadata
import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from irc.ir.passes import Pass, load_entry_points, register_pass
from tests.ir_files import run_opt

ROOT = Path(__file__).resolve().parents[2]
BROKEN = str(Path(__file__).resolve().parent / "broken_passes.py")
GOOD = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}
"""
TWO = GOOD + GOOD.replace("@main", "@other")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return str(path)


def fine(*words: str) -> str:
    """The output of a run that must succeed and print nothing on stderr."""
    code, output, errors = run_opt(list(words))
    assert (code, errors) == (0, "")
    return output


def stdin(monkeypatch, text: str) -> None:
    """Make `text` the standard input."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


# -- input and output


def test_standard_input(monkeypatch, file):
    for words in ([], ["-"]):
        stdin(monkeypatch, GOOD)
        assert fine(*words, "--cse") == fine(file, "--cse")
    stdin(monkeypatch, "nonsense")
    assert "<stdin>:1:1: error" in run_opt([])[2]


def test_several_files_are_printed_one_after_the_other(file):
    one = fine(file).rstrip("\n")
    assert fine(file, file).rstrip("\n") == f"{one}\n// -----\n{one}"


def test_output_to_a_file(file, tmp_path):
    target = tmp_path / "out.mlir"
    assert fine(file, "-o", str(target)) == ""
    assert target.read_text() == fine(file)


def test_parts_of_a_file_are_programs_of_their_own(tmp_path):
    path = tmp_path / "parts.mlir"
    path.write_text(f"{GOOD}\n// -----\n{GOOD}")
    output = fine(str(path), "--split-input-file", "--cse")
    assert output.count("builtin.module") == 2 and output.count("// -----") == 1
    assert run_opt([str(path)])[0] == 1  # as one program it has two functions @main
    path.write_text(f"{GOOD}\n// -----\n{GOOD.replace('graph.add', 'graph.ad')}")
    assert f"{path}:12:8: error" in run_opt([str(path), "--split-input-file"])[2]


def test_generic_form_is_read_back(file, tmp_path):
    generic = fine(file, "--generic")
    assert '"graph.add"(' in generic
    path = tmp_path / "generic.mlir"
    path.write_text(generic)
    assert fine(str(path)) == fine(file)


def test_locations(file):
    assert f'loc("{file}":2:3)' in fine(file, "--locations")


def test_unregistered_operations_on_request(tmp_path):
    path = tmp_path / "odd.mlir"
    path.write_text('"other.op"() : () -> ()')
    assert run_opt([str(path)])[0] == 1
    assert '"other.op"()' in fine(str(path), "--allow-unregistered-dialect")


# -- passes and pipelines


def test_flags_run_in_order(file):
    assert fine(file, "--cse", "--dce") == fine(file, "--pass-pipeline", "cse,dce")


def test_a_flag_with_options(file):
    to_loop = ["--graph-to-layout", "--layout-to-loop"]
    assert "#loop.schedule<gpu" in fine(file, *to_loop, "--schedule=target=gpu")
    words = [file, *to_loop, "--schedule=target=cpu vector_bits=128"]
    assert "lanes = 4" in fine(*words)


def test_nested_pipelines(file):
    nested = fine(file, "--pass-pipeline", "builtin.module(func.func(cse,dce))")
    assert nested == fine(file, "--cse")


def test_flags_and_a_pipeline_exclude_each_other(file):
    assert "can't be mixed" in run_opt([file, "--cse", "--pass-pipeline", "dce"])[2]


def test_a_pass_from_a_file():
    program, file = str(ROOT / "examples/squares.mlir"), str(ROOT / "examples/squares.py")
    assert "unknown flag '--no-such-squares'" in run_opt([program, "--no-such-squares"])[2]
    output = fine(program, "--load", file, "--squares")
    assert "graph.mul %x, %x" in output and "graph.pow" not in output


@pytest.fixture
def not_loaded():
    """Entry points are looked for again."""
    load_entry_points.cache_clear()
    yield
    load_entry_points.cache_clear()


def test_a_pass_from_an_installed_package(monkeypatch, file, not_loaded):
    def load():
        @register_pass
        class FromElsewhere(Pass):
            """Marks the module."""

            name = "from-elsewhere"
            summary = "mark the module"

            def run(self, op, context):
                context.remark("was here", op)

    points = {
        "irc.passes": [SimpleNamespace(name="far", value="elsewhere.passes", load=load)],
    }
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points.get(group, []))
    code, _, errors = run_opt([file, "--from-elsewhere", "--remarks"])
    assert code == 0
    assert errors == f"{file}:1:1: remark: [from-elsewhere] was here\n"
    assert "from-elsewhere" in fine("--list-passes")


def test_an_installed_package_that_does_not_load_is_named(monkeypatch, file, not_loaded):
    def load():
        raise ImportError("no such module")

    point = SimpleNamespace(name="far", value="elsewhere.passes", load=load)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    code, _, errors = run_opt([file, "--far-away"])
    assert code == 1 and "elsewhere.passes" in errors and "no such module" in errors


def test_the_list_of_passes():
    # A process of its own: other tests register passes of theirs in this one.
    command = [sys.executable, "-m", "irc.tools.irc_opt", "--list-passes"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names) and {"canonicalize", "form-kernels"} <= set(names)
    assert all(len(line.split()) > 2 for line in lines)


def test_explaining_a_pass():
    text = fine("--explain", "split-reductions")
    assert "Before:" in text and "After:" in text and "parts" in text and "= 4096" in text
    assert "did you mean 'cse'" in run_opt(["--explain", "csee"])[2]


# -- checks


def test_verifying_after_every_pass_names_the_pass(file):
    code, _, errors = run_opt([file, "--load", BROKEN, "--breaks-the-program", "--verify-each"])
    assert code == 1 and "[breaks-the-program]" in errors
    code, _, errors = run_opt([file, "--load", BROKEN, "--breaks-the-program"])
    assert code == 1 and "[breaks-the-program]" not in errors
    words = [file, "--load", BROKEN, "--breaks-the-program", "--no-verify"]
    assert run_opt(words)[0] == 0


def test_round_trips_are_checked(file, monkeypatch):
    assert fine(file, "--verify-roundtrip", "--lower-to-cpu")
    from irc.ir.text import printer

    whole = printer.print_op
    monkeypatch.setattr(printer, "print_op", lambda op, **o: whole(op, **o).replace("exp", "sin"))
    again = iter(["a", "b"] * 4)
    monkeypatch.setattr(
        printer, "print_op", lambda op, **o: whole(op, **o) + f"\n// {next(again)}\n"
    )
    code, _, errors = run_opt([file, "--verify-roundtrip"])
    assert code == 1 and "changes when it is printed and parsed" in errors


def test_expected_errors(tmp_path):
    path = tmp_path / "errors.mlir"
    bad = GOOD.replace("graph.add", "graph.ad")
    path.write_text(bad.replace("  %c", "  // expected-error @below {{unknown operation}}\n  %c"))
    assert fine(str(path), "--verify-diagnostics") == ""
    path.write_text(bad)
    code, _, errors = run_opt([str(path), "--verify-diagnostics"])
    assert code == 1 and "unexpected error" in errors
    path.write_text(GOOD.replace("  %c", "  // expected-error @+1 {{wrong}}\n  %c"))
    code, _, errors = run_opt([str(path), "--verify-diagnostics"])
    assert code == 1 and f"{path}:5: error: expected an error with 'wrong'" in errors


# -- debugging


def headings(errors: str) -> list[str]:
    """`before cse`, `after dce`: what was printed around passes."""
    return re.findall(r"^// -----// IR (.*) //----- //$", errors, re.MULTILINE)


@pytest.mark.parametrize("words, expected", [
    (["--print-ir-before=cse"], ["before cse"]),
    (["--print-ir-after=dce"], ["after dce"]),
    (["--print-ir-before-all"], ["before dce", "before cse"]),
    (["--print-ir-after-all"], ["after dce", "after cse"]),
    (["--print-ir-after-change"], ["after cse"]),
    (["--print-ir-before=cse", "--print-ir-after=cse"], ["before cse", "after cse"]),
])  # fmt: skip
def test_printing_around_passes(words, expected, file):
    code, output, errors = run_opt([file, "--dce", "--cse", *words])
    assert code == 0 and output == fine(file, "--cse")
    assert headings(errors) == expected


def test_printing_one_function(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text(TWO)
    words = [str(path), "--cse", "--print-ir-after-all", "--print-ir-function=other"]
    errors = run_opt(words)[2]
    assert "@other" in errors and "@main" not in errors


def test_printing_after_a_failure(file):
    words = [file, "--load", BROKEN, "--cse", "--pass-raises", "--print-ir-after-failure"]
    code, _, errors = run_opt(words)
    assert code == 1 and headings(errors) == ["failed pass-raises"]


def test_printing_to_a_tree_of_files(file, tmp_path):
    tree = tmp_path / "tree"
    fine(file, "--dce", "--cse", "--print-ir-after-all", f"--print-ir-tree-dir={tree}")
    assert [p.name for p in sorted(tree.iterdir())] == ["000_after_dce.mlir", "001_after_cse.mlir"]
    assert fine(str(tree / "001_after_cse.mlir")) == fine(file, "--cse")


def test_timing_and_statistics_are_on_stderr(file):
    code, output, errors = run_opt([file, "--cse", "--dce", "--timing", "--statistics"])
    assert code == 0 and output == fine(file, "--cse")
    assert re.search(r"ms +[\d.]+ % +cse$", errors, re.MULTILINE)
    assert re.search(r"ms +total$", errors, re.MULTILINE)
    assert re.search(r"^ +1 +cse: ", errors, re.MULTILINE)


@pytest.mark.parametrize("nested", [False, True])
def test_a_reproducer_replays_the_failure(nested, file, tmp_path):
    saved = tmp_path / "crash.mlir"
    pipeline = "dce,func.func(cse,pattern-raises),dce" if nested else "dce,cse,pattern-raises,dce"
    words = [file, "--load", BROKEN, "--pass-pipeline", pipeline]
    code, _, first = run_opt([*words, f"--crash-reproducer={saved}"])
    assert code == 1 and "KeyError" in first
    text = saved.read_text()
    assert text.splitlines()[0].endswith(
        "func.func(cse,pattern-raises),dce" if nested else ": pattern-raises,dce"
    )
    assert text.count("graph.exp") == 1  # the program as the failing pass found it
    code, _, again = run_opt([str(saved), "--load", BROKEN, "--run-reproducer"])
    assert code == 1
    assert first.splitlines()[0].split("error: ")[1] == again.splitlines()[0].split("error: ")[1]


def test_a_file_without_a_pipeline_is_no_reproducer(file):
    assert "does not start with" in run_opt([file, "--run-reproducer"])[2]


# -- code of the kernels

DOWN = ["--graph-to-layout", "--layout-to-loop", "--fuse-loops"]


@pytest.mark.parametrize("form, mark", [("llvm", "define "), ("asm", ".text")])
def test_code_for_a_cpu(form, mark, file):
    assert mark in fine(file, *DOWN, "--loop-to-kernel", f"--emit={form}")


def test_code_for_triton(file):
    output = fine(file, *DOWN, "--schedule=target=gpu", "--form-kernels", "--emit=triton")
    assert "@triton.jit" in output and "tl.store(" in output
