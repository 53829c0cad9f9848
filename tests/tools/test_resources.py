"""Large constants: kept in a file beside the text, checked when they are read."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir import print_op  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.text.resources import (  # noqa: E402
    LENGTH_BYTES,
    MAGIC,
    ResourceFile,
    beside,
    write_beside,
    write_resources,
)
from tests.ir_files import run_opt  # noqa: E402

WEIGHT = torch.arange(600, dtype=torch.float32).reshape(20, 30)


@pytest.fixture
def program(tmp_path):
    """A traced program with a large constant, in a file with its constants beside it."""
    module = irc.trace(lambda x: x + WEIGHT, (torch.zeros(20, 30),))
    assert len(module.resources) == 1
    path = tmp_path / "model.mlir"
    text = print_op(module)
    path.write_text(text)
    write_beside(path, text, module.resources)
    return path


def key_of(path):
    (key,) = ResourceFile(beside(path))
    return key


def test_constants_come_back(tmp_path):
    path = tmp_path / "c.resources"
    contents = {"a": b"12345", 'odd "key"': b"", "t": torch.arange(6).reshape(2, 3).t()}
    write_resources(path, contents)
    found = ResourceFile(path)
    assert list(found) == list(contents) and found["a"] == b"12345" and found['odd "key"'] == b""
    assert torch.frombuffer(bytearray(found["t"]), dtype=torch.int64).tolist() == [0, 3, 1, 4, 2, 5]
    assert "b" not in found and len(found) == 3


def test_irc_opt_carries_constants_from_file_to_file(program, tmp_path):
    target = tmp_path / "out.mlir"
    assert run_opt([str(program), "--functional", "--aten-to-graph", "-o", str(target)])[0] == 0
    assert "#irc.resource" in target.read_text()
    key = key_of(program)
    assert ResourceFile(beside(target))[key] == ResourceFile(beside(program))[key]
    code, output, _ = run_opt([str(target), "--verify-roundtrip"])
    assert code == 0 and output == target.read_text()


def test_constants_that_are_gone_are_not_written(tmp_path):
    path, target = tmp_path / "in.mlir", tmp_path / "out.mlir"
    path.write_text("""func.func @main() {
      %w = graph.constant {value = #irc.resource<"key"> : tensor<2xf32>} : tensor<2xf32>
      func.return
    }""")
    write_resources(beside(path), {"key": bytes(8)})
    assert run_opt([str(path), "-o", str(target)])[0] == 0
    assert beside(target).exists()
    beside(target).unlink()
    assert run_opt([str(path), "--dce", "-o", str(target)])[0] == 0
    assert not beside(target).exists()


def test_another_file_of_constants(program, tmp_path):
    moved = tmp_path / "moved"
    beside(program).rename(moved)
    assert run_opt([str(program), f"--resources={moved}"])[0] == 0
    code, _, errors = run_opt([str(program), "--resources=nowhere"])
    assert code == 1 and "there is no file nowhere" in errors


def test_a_missing_file_names_the_constant_and_the_file(program):
    key = key_of(program)
    beside(program).unlink()
    code, _, errors = run_opt([str(program)])
    assert code == 1
    assert key[:16] in errors and str(beside(program)) in errors and "^" in errors


def test_a_missing_constant_names_the_file(program):
    key = key_of(program)
    write_resources(beside(program), {"other": b""})
    errors = run_opt([str(program)])[2]
    assert key[:16] in errors and f"{beside(program)} does not have it" in errors


def damaged(how, raw):
    """The bytes of a file of constants with one thing wrong."""
    start = len(MAGIC) + LENGTH_BYTES
    length = int.from_bytes(raw[len(MAGIC) : start], "little")
    header = json.loads(raw[start : start + length])
    (entry,) = header.values()
    if how == "flipped":
        return raw[:-1] + bytes([raw[-1] ^ 1]), "is damaged"
    if how == "magic":
        return b"x" + raw[1:], "is no file of constants"
    if how == "truncated":
        return raw[: start + 4], "is truncated"
    if how == "length":
        return raw[: len(MAGIC)] + b"\xff" * 8 + raw[start:], "is truncated"
    if how == "cut":
        return raw[:-100], "header"
    if how == "offset":
        entry["offset"] = -8
    elif how == "type":
        entry["bytes"] = "5"
    elif how == "list":
        header = [1]
    text = json.dumps(header).encode() if how != "json" else b"[" * 100_000
    return MAGIC + len(text).to_bytes(8, "little") + text + raw[start + length :], "header"


@pytest.mark.parametrize(
    "how",
    ["flipped", "magic", "truncated", "length", "cut", "offset", "type", "list", "json"],
)
def test_a_damaged_file_is_refused(how, program):
    path = beside(program)
    raw, message = damaged(how, path.read_bytes())
    path.write_bytes(raw)
    code, output, errors = run_opt([str(program)])
    assert code == 1 and output == "" and "Traceback" not in errors
    assert message in errors and str(path) in errors


def test_irc_run_uses_them(program):
    from irc.tools.cli import main

    saved = program.with_suffix(".pt")
    for name, words in (("ok", []), ("lowered", ["--pass-pipeline=functional,aten-to-graph"])):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(["run", str(program), f"--save={saved}", *words]) == 0, name
        content = torch.load(saved, weights_only=True)
        torch.testing.assert_close(content["results"][0], content["arguments"][0] + WEIGHT)


def test_a_reproducer_has_its_constants(program, tmp_path):
    from tests.tools.test_irc_opt import BROKEN

    crash = tmp_path / "crash.mlir"
    words = ["--load", BROKEN, "--pass-raises", f"--crash-reproducer={crash}"]
    assert run_opt([str(program), *words])[0] == 1
    code, _, errors = run_opt([str(crash), "--load", BROKEN, "--run-reproducer"])
    assert code == 1 and "[pass-raises] pass 'pass-raises' raised ZeroDivisionError" in errors


def test_a_program_whose_constant_is_nowhere_is_not_written(tmp_path):
    with pytest.raises(UserError, match="nowhere to be found"):
        write_beside(tmp_path / "x.mlir", '#irc.resource<"abc"> : tensor<2xf32>', {})


@pytest.mark.fault("U8")
def test_a_written_program_is_read_back_with_its_constants(tmp_path):
    module = irc.trace(lambda x: x + WEIGHT, (torch.zeros_like(WEIGHT),))
    path = tmp_path / "written.mlir"
    irc.write_file(module, path, locations=True)
    again = irc.parse_file(path)
    assert irc.print_op(again) == irc.print_op(module)
    torch.testing.assert_close(irc.run(again, torch.zeros_like(WEIGHT))[0], WEIGHT)
    with pytest.raises(UserError, match="was not given"):
        irc.parse_file(path, resources={})
    path.with_name("written.mlir.resources").unlink()
    with pytest.raises(UserError, match="written.mlir.resources does not exist"):
        irc.parse_file(path)


@pytest.mark.fault("U8")
def test_constants_that_standard_output_has_no_place_for_are_told(program):
    code, output, errors = run_opt([str(program)])
    assert code == 0 and "#irc.resource<" in output
    assert "-o FILE writes them beside it" in errors
