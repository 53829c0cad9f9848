"""Bad input to irc-opt: one clear error with the place and a caret, exit code 1, no traceback."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ir_files import run_opt

HERE = Path(__file__).resolve().parent
BROKEN = str(HERE / "broken_passes.py")
GOOD = """\
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = graph.mul %a, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
"""
PLACE = re.compile(r"^(.+):(\d+):(\d+): (internal )?error: ", re.MULTILINE)


def failing(*words: str) -> str:
    """What irc-opt prints on stderr, after checks that hold for every error."""
    code, output, errors = run_opt(list(words))
    assert code == 1
    assert output == ""
    assert "Traceback" not in errors
    assert len(re.findall(r"^(?:.*: )?(?:internal )?error: ", errors, re.MULTILINE)) == 1, errors
    return errors


def check_place(errors: str, file: str, line: int, column: int, token: str | None = None) -> None:
    """The error is at that place, and its caret stands below it."""
    match = PLACE.search(errors)
    assert match, errors
    assert match.group(1, 2, 3) == (file, str(line), str(column)), errors
    shown, marks = errors.splitlines()[1:3]
    caret = marks.index("^")
    assert marks.strip(" |^~") == ""
    if token is not None:
        assert shown[caret:].startswith(token), errors


def write(folder: Path, text: str | bytes) -> str:
    """The name of a file with this content."""
    path = folder / "bad.mlir"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


TEXTS = {
    "unknown operation": ("graph.add", "graph.ad", 2, 8, "graph.ad ", "or graph.add?"),
    "operand count": ("%x, %y :", "%x :", 2, 8, "graph.add", "1 operand, not 2"),
    "use before definition": ("graph.add %x", "graph.add %b", 2, 18, "%b",
                              "%b is used before its definition"),
    "type mismatch": ("(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n  func",
                      "(tensor<4xf64>, tensor<4xf32>) -> tensor<4xf32>\n  func", 3, 18, "%a",
                      "%a is used as tensor<4xf64>, but is defined as tensor<4xf32>"),
    "truncated": ("  func.return %b : tensor<4xf32>\n}\n", "  func.return %b", 4, 17, "",
                  "found the end of the text"),
    "wrong result": ("return %b : tensor<4xf32>\n}", "return\n}", 4, 3, "func.return", "results"),
    "rule of an operation": (
        "  func.return", "  %c = graph.exp %x : (tensor<4xf32>) -> tensor<5xf32>\n  func.return",
        4, 3, "%c", "graph.exp",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_wrong_text_is_shown_with_its_place(case, tmp_path):
    old, new, line, column, token, message = TEXTS[case]
    assert GOOD.count(old) >= 1
    file = write(tmp_path, GOOD.replace(old, new, 1))
    errors = failing(file)
    check_place(errors, file, line, column, token)
    assert message in errors


def test_invalid_utf8(tmp_path):
    file = write(tmp_path, 'builtin.module {\n  "\u00e4'.encode() + b"\xff\n}")
    errors = failing(file)
    check_place(errors, file, 2, 5)
    assert "invalid UTF-8" in errors


@pytest.mark.parametrize("mark", ["builtin.module {", '"builtin.module"() ({', "kernel.if %c {"])
def test_deep_nesting_is_refused_soon(mark, tmp_path):
    file = write(tmp_path, mark * 100_000)
    start = time.process_time()
    errors = failing(file)
    assert time.process_time() - start < 2
    assert PLACE.search(errors)
    assert "nested" in errors


def test_a_line_of_ten_megabytes(tmp_path):
    file = write(tmp_path, GOOD.replace("%a = ", "%a = " + "x" * 10_000_000, 1))
    errors = failing(file)
    check_place(errors, file, 2, 8)
    assert len(errors) < 2000


@pytest.mark.parametrize("pipeline, column, message", [
    ("cse,,dce", 5, "expected a pass name"),
    ("cse,canonicalise", 5, "unknown pass 'canonicalise'; did you mean 'canonicalize'?"),
    ("dce,schedule{targte=cpu}", 5, "did you mean 'target'?"),
    ("split-reductions{parts=many}", 1, "option 'parts' of pass 'split-reductions' is int"),
    ("func.func(cse", 14, "expected ',' or ')'"),
    ("cse{a=b", 8, "missing '}'"),
    ("schedule{target=tpu}", None, "tpu"),
])  # fmt: skip
def test_wrong_pipelines(pipeline, column, message, tmp_path):
    errors = failing(write(tmp_path, GOOD), "--pass-pipeline", pipeline)
    assert message in errors
    if column is not None:
        check_place(errors, "<pipeline>", 1, column)


@pytest.mark.parametrize("flag, message", [
    ("--canonicalise", "unknown flag '--canonicalise'; did you mean '--canonicalize'?"),
    ("--verify-eech", "unknown flag '--verify-eech'; did you mean '--verify-each'?"),
    ("--schedul=target=cpu", "did you mean '--schedule'?"),
    ("--qqqq", "unknown flag '--qqqq'"),
    ("-q", "unrecognized arguments: -q"),
    ("--emit=elf", "invalid choice"),
    ("--pass-timeout=soon", "invalid float value"),
])  # fmt: skip
def test_wrong_flags(flag, message, tmp_path):
    assert message in failing(write(tmp_path, GOOD), flag)


def test_a_missing_file():
    assert "No such file" in failing("/does/not/exist.mlir")


def test_a_program_that_a_pass_does_not_take(tmp_path):
    file = write(tmp_path, GOOD)
    errors = failing(file, "--emit=llvm")
    assert "no kernels" in errors and "form-kernels" in errors


def test_a_pass_that_never_converges_is_named(tmp_path):
    file = write(tmp_path, GOOD)
    errors = failing(file, "--load", BROKEN, "--never-converges")
    match = PLACE.search(errors)
    assert match and match.group(1, 2) == (file, "2")
    assert "[never-converges]" in errors and "pattern 'broken.swap' was applied" in errors
    assert "^" in errors


RAISING = {
    "pattern-raises": (2, "pattern 'broken.raises' raised KeyError: 'lost'", 'raise KeyError("lo'),
    "pass-raises": (1, "pass 'pass-raises' raised ZeroDivisionError: by nothing",
                    "raise ZeroDivisionError("),
}  # fmt: skip


@pytest.mark.fault("U7")
@pytest.mark.parametrize("name", RAISING)
def test_a_users_pass_that_raises_is_shown_at_its_own_line(name, tmp_path):
    line, message, source = RAISING[name]
    file = write(tmp_path, GOOD)
    errors = failing(file, "--load", BROKEN, f"--{name}")
    at = next(i for i, s in enumerate(Path(BROKEN).read_text().splitlines(), 1) if source in s)
    check_place(errors, BROKEN, at, 5, source)
    assert f"[{name}]" in errors and message in errors and "internal" not in errors
    assert f"while it ran on {file}:{line}:" in errors


@pytest.mark.fault("K10")
def test_a_pass_of_ours_that_raises_tells_its_line(tmp_path, monkeypatch):
    from irc.passes.common import dce

    monkeypatch.setattr(dce.DeadCodeElimination, "run", lambda self, op, context: {}["lost"])
    errors = failing(write(tmp_path, GOOD), "--dce")
    assert "internal error: [dce] KeyError: 'lost'" in errors
    assert f"raised at {__file__}:" in errors


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(Exception) as caught:
        run_opt([write(tmp_path, GOOD), "--load", BROKEN, "--pass-raises", "--debug"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_pass_that_breaks_the_program_is_named(tmp_path):
    errors = failing(
        write(tmp_path, GOOD), "--load", BROKEN, "--breaks-the-program", "--verify-each"
    )
    assert "[breaks-the-program]" in errors and PLACE.search(errors)


def test_a_pass_that_never_ends_is_stopped_and_named(tmp_path):
    file = write(tmp_path, GOOD)
    start = time.monotonic()
    errors = failing(file, "--load", BROKEN, "--pass-timeout=0.2", "--loops-for-ever")
    assert time.monotonic() - start < 10
    assert "[loops-for-ever] the pass did not end within 0.2 s" in errors
    check_place(errors, file, 1, 1)


@pytest.mark.parametrize("text, message", [
    ("def (", "SyntaxError"),
    ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
    ("\n1 / 0", "ZeroDivisionError"),
    ("raise SystemExit(0)", "SystemExit"),
])  # fmt: skip
def test_loading_a_broken_file(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    errors = failing(write(tmp_path, GOOD), "--load", str(path))
    assert message in errors
    assert re.search(rf"{re.escape(str(path))}:\d+:\d+: error: ", errors)


def test_loading_a_file_that_is_not_there(tmp_path):
    assert "nowhere.py" in failing(write(tmp_path, GOOD), "--load", "nowhere.py")


def test_the_process_gives_exit_code_1_and_no_traceback(tmp_path):
    file = write(tmp_path, GOOD.replace("graph.add", "graph.ad"))
    done = subprocess.run(
        [sys.executable, "-m", "irc.tools.irc_opt", file], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout == "" and "Traceback" not in done.stderr
    check_place(done.stderr, file, 2, 8, "graph.ad")


PROGRAMS = [
    HERE.parent / "ir" / "programs" / "levels.mlir",
    HERE.parent / "passes" / "host" / "plan_memory.mlir",
    HERE.parent / "passes" / "loop" / "localize.mlir",
    HERE.parent / "passes" / "graph" / "functionalize.mlir",
]
TOKENS = re.compile(r'"[^"\n]*"|[\w.$%@#!^]+|->|\s+|.')


def mutated(text: str, random_: random.Random) -> str:
    """The text with a few of its tokens dropped, doubled, swapped, replaced or cut off."""
    tokens = TOKENS.findall(text)
    for _ in range(random_.randint(1, 3)):
        place, other = random_.randrange(len(tokens)), random_.randrange(len(tokens))
        match random_.randrange(6):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens[place] = tokens[other]
            case 4:
                word = tokens[place]
                at = random_.randrange(len(word))
                letter = random_.choice('(){}<>,:"%@#\0\u00e9-9x')
                tokens[place] = word[:at] + letter + word[at + 1 :]
            case 5:
                del tokens[max(place, 1) :]
    return "".join(tokens)


@pytest.mark.filterwarnings("ignore:.*old form:FutureWarning")
@pytest.mark.parametrize("seed", range(200))
def test_mutated_text_is_read_or_refused_at_a_place_inside_the_file(seed, tmp_path):
    random_ = random.Random(seed)
    text = mutated(PROGRAMS[seed % len(PROGRAMS)].read_text(encoding="utf-8"), random_)
    file = write(tmp_path, text)
    start = time.process_time()
    code, output, errors = run_opt([file, "--canonicalize", "--verify-roundtrip"])
    assert time.process_time() - start < 5
    assert "Traceback" not in errors and "internal error" not in errors, errors
    assert code == (1 if errors else 0)
    if code:
        match = PLACE.search(errors)
        assert match, errors
        name, line, column = match[1], int(match[2]), int(match[3])
        assert name == file
        lines = text.split("\n")
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1
        assert "^" in errors
    else:
        assert output
