"""`irc bisect`: the pass, and its rewrite, that make a program or a graph of a script wrong."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
import torch

from irc.tools import bisect_script
from irc.tools.cli import main
from tests.ir_files import run_opt

PLANTED = str(Path(__file__).with_name("planted.py"))
T = "tensor<[s0, 3] x f32>"
PROGRAM = f"""\
func.func @main(%x: {T}) -> {T} {{
  %n = sym.bind_size %x {{dim = 0 : i64, symbol = "s0", minimum = 0 : i64}} : ({T}) -> index
  %a = graph.neg %x : ({T}) -> {T}
  %b = graph.neg %a : ({T}) -> {T}
  %c = graph.add %b, %b : ({T}, {T}) -> {T}
  %d = graph.neg %c : ({T}) -> {T}
  %e = graph.neg %d : ({T}) -> {T}
  %y = graph.sin %e : ({T}) -> {T}
  func.return %y : {T}
}}
"""
LINE = r"passes (\d+):(\d+) of (\d+), behind (\S+): (right|wrong)"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


def bisect(*words):
    """Exit code, output and errors of `irc bisect`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["bisect", *words])
    return code, out.getvalue(), err.getvalue()


def planted(file, passes, *words):
    return bisect(file, "--load", PLANTED, "--pass-pipeline", passes, *words)


def test_a_right_program_is_lowered_and_its_code_runs(file):
    code, output, _ = bisect(file, "--size=s0=4")
    assert code == 0 and output.endswith("no pass makes it wrong\nthe executable: right\n")


def test_wrong_code_is_told(file, monkeypatch):
    import irc.runtime

    monkeypatch.setattr(irc.runtime, "build", lambda program: lambda x: [torch.zeros(5, 3)])
    code, output, _ = bisect(file)
    assert code == 1 and "no pass makes it wrong\nthe executable: result 0: " in output


def test_a_planted_rule_is_named_with_its_number(file, tmp_path):
    code, output, _ = planted(file, "cse,dce,test-planted-rules,cse,dce,cse,dce",
                              f"--directory={tmp_path}")  # fmt: skip
    assert code == 1
    tried = re.findall(LINE, output)
    assert len(tried) == 4 and tried[0][:3] == ("0", "7", "7") and tried[-1][:2] == ("1", "2")
    assert "pass 3 is the first, test-planted-rules: result 0: differs" in output
    named = r"rewrite 3: test-planted-rules: graph.twice_is_once of 'graph.add' at \S+:5:3\n"
    assert re.search(rf"\n  {named}", output)
    assert f"the program before it: {tmp_path}/3-test-planted-rules.mlir" in output
    # what it leaves shows it again
    words = shlex.split(output.rpartition("to see it again: irc-opt ")[2])
    code, _, errors = run_opt(words)
    assert code == 1 and "the pass changes what @main computes" in errors


def test_the_search_goes_on_from_bounds(file):
    words = ("--passes=2:4", "--rewrites=2:4")
    code, output, _ = planted(file, "cse,dce,test-planted-rules,aten-to-graph", *words)
    assert code == 1 and "pass 3 is the first" in output and "  rewrite 3: " in output
    assert [line[:2] for line in re.findall(LINE, output)] == [("2", "4"), ("2", "3")]
    assert "rewrites 2:4: wrong\nrewrites 2:3: wrong\n  rewrite 3" in output
    assert "are no part of a pipeline of 2" in planted(file, "cse,dce", "--passes=1:3")[2]


@pytest.mark.parametrize("options, rewrite", [
    ("{spends=true}", "rewrite 1: test-sine-to-cosine: sine of 'graph.sin' at "),
    ("", "no single rewrite of it: the pass itself"),
    ("{spends=true raises=true}", "rewrite 1: test-sine-to-cosine: sine of 'graph.sin' at "),
    ("{raises=true}", "no single rewrite of it: the pass itself"),
])  # fmt: skip
def test_a_wrong_pass_and_one_that_raises_are_named(file, options, rewrite):
    code, output, _ = planted(file, f"cse,test-sine-to-cosine{options},dce,convert-to-loop")
    assert code == 1 and f"\n  {rewrite}" in output
    what = "raises UserError: .*ZeroDivisionError: planted" if "raises" in options else "result 0: "
    name = re.escape(f"test-sine-to-cosine{options}")
    assert re.search(f"pass 2 is the first, {name}: {what}", output)


def test_arguments_of_a_function_that_refuses_the_first_ones(file, tmp_path):
    saved = str(tmp_path / "x.pt")
    torch.save([torch.zeros(2, 3)], saved)  # sin(0) is not cos(0)
    assert planted(file, "test-sine-to-cosine", "--load", saved)[0] == 1
    torch.save([torch.zeros(2, 4)], saved)
    assert "raises before any pass" in planted(file, "cse", "--load", saved)[2]


@pytest.mark.parametrize("words, message", [
    (["--passes=3"], "expected LOW:HIGH"),
    (["--rewrites=3:3"], "expected LOW:HIGH"),
    (["--function=mian"], "has no function 'mian'"),
    (["--graph=1"], "are for a script"),
    (["--mode=bits"], "invalid choice"),
])  # fmt: skip
def test_wrong_words(file, words, message):
    code, _, errors = bisect(file, *words)
    assert code == 1 and message in errors


# -- scripts

SCRIPT = """
import sys
import torch
f = torch.compile(lambda x: x.sin() + x, backend="irc")
g = torch.compile(lambda x: x.sin() * 2, backend="irc",
                  options={"passes": {"after:reinplace": "test-sine-to-cosine{spends=true}"}})
print(f(torch.ones(int(sys.argv[1]))))
print(g(torch.ones(3)))
"""


@pytest.fixture
def script(tmp_path):
    torch._dynamo.reset()
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_graphs_of_a_script_are_searched(script):
    code, output, _ = bisect(script, "--load", PLANTED, "--", "5")
    assert code == 1 and output.endswith("2 graphs, 1 of them wrong\n")
    first, second = output.split("graph 1:\n")
    assert "no pass makes it wrong\nthe executable: right\ntensor([1.8415" in first
    assert "rewrite 1: test-sine-to-cosine: sine of 'graph.sin' at " in second
    assert f"{script}:5:" in second


def test_one_graph_of_a_script(script):
    words = ("--load", PLANTED, "--graph=0", "--passes=2:9", "--", "4")
    code, output, _ = bisect(script, *words)
    assert code == 0 and "passes 2:9 of" in output and "graph 1" not in output
    assert "irc compiled 2" in bisect(script, "--load", PLANTED, "--graph=2", "--", "4")[2]


def test_a_script_that_raises(script):
    code, output, _ = bisect(script, "--load", PLANTED, "--", "many")
    assert code == 1 and "the script raised:" in output and "ValueError" in output


@pytest.mark.parametrize("words, message", [
    (["--size=s0=3"], "--size does nothing with a script"),
    (["--passes=1:3"], "say which by --graph"),
])  # fmt: skip
def test_words_of_programs_do_nothing_with_scripts(script, words, message):
    code, _, errors = bisect(script, *words)
    assert code == 1 and message in errors


def test_a_graph_that_can_not_be_compiled_is_searched(tmp_path):
    torch._dynamo.reset()
    path = tmp_path / "crash.py"
    path.write_text(SCRIPT.replace("spends=true", "raises=true"))
    code, output, _ = bisect(str(path), "--load", PLANTED, "--", "5")
    assert code == 1 and "graph 1: compiling raises UserError" in output
    assert "is the first, test-sine-to-cosine{raises=true}: raises UserError" in output


def test_wrong_results_of_an_executable_are_told(capsys):
    watch = bisect_script.GraphWatch(bisect_script.SearchPlan())
    import irc
    from irc.options.options import DEFAULT
    from irc.target import Target

    x = torch.ones(3)
    graph = bisect_script._Graph("graph 0", irc.trace(torch.sin, (x,)), DEFAULT, Target.host())
    watched = bisect_script.Watched(lambda x: [x * 2], graph, watch)
    assert watched(x)[0].equal(x * 2) and watch.wrong == 1
    assert "the executable: result 0: is farther from the real value" in capsys.readouterr().out
    watched(x)
    assert watch.wrong == 1  # the first call only
