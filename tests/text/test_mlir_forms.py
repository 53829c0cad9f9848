"""func, arith and math in MLIR's own form: irc and MLIR's tool read what the other one prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import irc
from irc.ir import parse, parse_attribute, print_op
from irc.ir.equality import first_difference
from irc.ir.registry import load_dialect, registered_ops
from irc.ir.text.generic_form import OURS
from tests.docs.snippets import blocks
from tests.ir_files import run_opt

FOLDER = Path(__file__).resolve().parent
FILES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.mlir"))}
IREE_OPT = shutil.which("iree-opt") or str(Path(sys.executable).parent / "iree-opt")
SEPARATOR = "// -----\n"


def test_there_are_enough() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("name", FILES)
def test_irc_reads_it_and_what_it_prints(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is in the old form
        module = parse(FILES[name], name)
        irc.verify(module)
        printed = print_op(module)
        again = parse(printed)
    assert first_difference(module, again) is None
    assert print_op(again) == printed
    assert "func.return" not in printed and "{predicate" not in printed and "{value" not in printed


def by_mlir(texts: list[str], folder: Path) -> list[str]:
    """The texts as MLIR's tool reads and prints them, in its pretty form."""
    path = folder / "programs.mlir"
    path.write_text(SEPARATOR.join(texts), encoding="utf-8")
    command = [IREE_OPT, "--allow-unregistered-dialect", "--split-input-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(SEPARATOR)
    assert len(printed) == len(texts)
    return printed


@pytest.mark.skipif(not Path(IREE_OPT).exists(), reason="needs iree-opt")
def test_both_directions(tmp_path) -> None:
    modules = [parse(text) for text in FILES.values()]
    from_files = by_mlir(list(FILES.values()), tmp_path)
    from_irc = by_mlir([print_op(module) for module in modules], tmp_path)
    generic = by_mlir([print_op(module, generic=True) for module in modules], tmp_path)
    for name, module, *texts in zip(FILES, modules, from_files, from_irc, generic, strict=True):
        for text in texts:
            difference = first_difference(module, parse(text))
            assert difference is None, f"{name}: {difference}\n{text}"


@pytest.mark.skipif(not Path(IREE_OPT).exists(), reason="needs iree-opt")
def test_texts_come_back_byte_for_byte(tmp_path) -> None:
    """What MLIR prints, irc reads and prints, and MLIR prints again, is one text; and so is what
    irc prints, MLIR reads and prints, and irc prints again."""
    of_mlir = by_mlir(list(FILES.values()), tmp_path)
    of_irc = [print_op(parse(text)) for text in of_mlir]
    again = by_mlir(of_irc, tmp_path)
    assert again == of_mlir
    assert [print_op(parse(text)) for text in again] == of_irc


OLD = """
func.func @main(%a: i32, %b: i32, %x: bf16, %c: i1) -> i1 {
  %0 = arith.cmpi %a, %b {predicate = "slt"} : (i32, i32) -> i1
  %1 = arith.extf %x : (bf16) -> f32
  %2 = math.isnan %1 : (f32) -> i1
  %3 = arith.select %c, %0, %2 : (i1, i1, i1) -> i1
  %4 = arith.constant {value = 4 : i32} : vector<4xi32>
  func.return %3 : i1
}
"""
NEW = """
func.func @main(%a: i32, %b: i32, %x: bf16, %c: i1) -> i1 {
  %0 = arith.cmpi slt, %a, %b : i32
  %1 = arith.extf %x : bf16 to f32
  %2 = math.isnan %1 : f32
  %3 = arith.select %c, %0, %2 : i1
  %4 = arith.constant dense<4> : vector<4xi32>
  return %3 : i1
}
"""


def test_the_old_form_is_read_with_a_note() -> None:
    told = "old.mlir:3:8: irc's old form of 5 operations, .* `%0 = arith.cmpi slt, %a, %b : i32`"
    with pytest.warns(FutureWarning, match=told):
        module = parse(OLD, "old.mlir")
    assert first_difference(module, parse(NEW)) is None


BARE = """
func.func @main(%x: tensor<4xf32> {name = "x"}, %y: f32 {mine.tag}) -> (tensor<4xf32> {saved}) {
  return %x : tensor<4xf32>
}
"""


def test_facts_of_arguments_without_their_dialect_are_read_with_a_note() -> None:
    """MLIR refuses them: arguments may only have attributes of a dialect."""
    new = BARE.replace("{name", "{irc.name").replace("{saved", "{irc.saved")
    told = r"f.mlir:2:11: irc's old form of 1 operations.*`func.func @main\(%x: .* {irc.name = "
    with pytest.warns(FutureWarning, match=told):
        module = parse(BARE, "f.mlir")
    assert first_difference(module, parse(new)) is None
    assert print_op(module.lookup("main")).strip() == new.strip()
    assert module.lookup("main").arg_info.elements[0].get("name") is not None
    with pytest.raises(irc.UserError, match="given twice, with and without its dialect"):
        parse(BARE.replace("{name", '{irc.name = "y", name'))
    module.lookup("main").attributes["arg_info"] = parse_attribute("[{irc.name}, {}]")
    with pytest.raises(irc.InvalidIR, match="'irc.name' is the text of 'name'"):
        irc.verify(module)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%y = arith.cmpi slt %a, %a : i32", "expected ','"),
        ("%y = arith.cmpi slt, %a : i32", "arith.cmpi has 1 operand, not 2"),
        ("%y = arith.cmpi slt, %a, %a", "expected ':' and the types"),
        ("%y = arith.select %p, %a : i32", "takes 3 operands, 2 given"),
        ("%y = arith.trunci %a : i32 i8", "expected 'to'"),
        ("%y = arith.trunci %a, %a : i32 to i8", "takes 1 operands, 2 given"),
        ("%y = arith.addf %x, %x fastmath : f32", "expected '<'"),
        ("%y = arith.addf %x, %x fastmath<nnan : f32", "expected '>'"),
        ("%y = arith.constant dense<[1, 2]> : vector<3xi32>", "elements of shape [2]"),
        ("%y = arith.addf %x, %x fastmath<quick> : f32", "'quick' is not one of reassoc, nnan"),
        ("%y = arith.addf %x, %x upward : f32", "expected ':' and the types, found 'upward'"),
        ("%y = arith.addf %x, %x fastmath<nnan> to_nearest_even : f32", "expected ':'"),
        ("%y = arith.andi %a, %a overflow<nsw> : i32", "expected ':' and the types"),
        ("%y = arith.addi %a, %a overflow<exact> : i32", "'exact' is not one of nsw, nuw, none"),
        ("%y = arith.remsi %a, %a exact : i32", "expected ':' and the types"),
        ("%y = arith.extsi %a nneg : i32 to i64", "expected ':' and the types"),
    ],
)
def test_mistakes_are_told(line: str, message: str) -> None:
    text = f"func.func @f(%a: i32, %p: i1, %x: f32) {{\n{line}\nreturn\n}}"
    with pytest.raises(irc.UserError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_flags_have_one_form_each() -> None:
    def flags(text: str) -> str:
        module = parse(f"func.func @f(%x: f32) {{\n%y = arith.negf %x {text} : f32\nreturn\n}}")
        irc.verify(module)
        return print_op(module).splitlines()[2].strip()

    assert flags("fastmath<ninf, nnan, nnan>") == "%y = arith.negf %x fastmath<nnan,ninf> : f32"
    every = "reassoc, nnan, ninf, nsz, arcp, contract, afn"
    assert flags(f"fastmath<{every}>") == flags("fastmath<fast>")
    assert flags("{fastmath = #arith.fastmath<nsz>}") == "%y = arith.negf %x fastmath<nsz> : f32"
    with pytest.raises(irc.InvalidIR, match="'fastmath' is 4 : i64, not a FastMathAttr"):
        flags("{fastmath = 4}")


@pytest.mark.parametrize("head", ["private @f(i32)", "@f(%x: i32)"])
def test_the_type_of_a_function_is_one(head: str) -> None:
    body = "" if "private" in head else " {\n return\n}"
    module = parse(f"func.func {head} attributes {{function_type = i32}}{body}")
    with pytest.raises(irc.InvalidIR, match="function_type is i32, no type of a function"):
        irc.verify(module)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("arith.extf %x : f32 to f32", "'arith.extf': f32 is not wider than f32"),
        ("arith.extf %x : f32 to bf16", "bf16 is not wider than f32"),
        ("arith.truncf %h : f16 to bf16", "bf16 is not narrower than f16"),
        ("arith.extsi %a : i32 to i32", "i32 is not wider than i32"),
        ("arith.extui %a : i32 to i8", "i8 is not wider than i32"),
        ("arith.trunci %a : i32 to i64", "i64 is not narrower than i32"),
        ("arith.extsi %n : index to i128", "operand 'source' is index, not a signless integer"),
        ("arith.sitofp %n : index to f32", "operand 'source' is index, not a signless integer"),
        ("arith.fptosi %x : f32 to index", "result 'output' is index, not a signless integer"),
        ("arith.index_cast %a : i32 to i64", "one of i32 and i64 is index, and the other an"),
        ("arith.index_castui %n : index to index", "one of index and index is index"),
        ("arith.bitcast %x : f32 to i64", "i64 is not as wide as f32"),
        ("arith.bitcast %n : index to i64", "operand 'source' is index, not a signless"),
        ("arith.bitcast %v : vector<2xf32> to vector<2xf16>", "is not as wide as"),
        ("arith.constant 4 : ui8", "result 'constant' is ui8, not a signless integer"),
        ("arith.constant dense<4> : vector<2xui8>", "result 'constant' is vector<2xui8>, not"),
        ("arith.constant dense<(1.0, 2.0)> : vector<2xcomplex<f32>>", "result 'constant' is"),
    ],
)
def test_what_mlir_refuses_of_types_is_refused(line: str, message: str) -> None:
    head = "func.func @f(%a: i32, %x: f32, %h: f16, %n: index, %v: vector<2xf32>) {"
    with pytest.raises(irc.InvalidIR) as caught:
        irc.verify(parse(f"{head}\n%y = {line}\nreturn\n}}"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("array<i8: 256>", "256 does not fit i8"),
        ("array<i32: 1.5>", "1.5 is no element of i32"),
        ("array<i8: true>", "true is no element of i8"),
        ("array<f32: true>", "true is no element of f32"),
        ("array<f32: 1.0, x>", "expected a number, found 'x'"),
        ("array<index: 1>", "array<...> holds integers or floats"),
        ("array<>", "array<...> holds integers or floats"),
        ("affine_map<(d0) -> (d0]>", "expected ')', found ']'"),
        ("affine_map<(d0) -> (d0)", "expected '>', found the end of the text"),
        ("sparse<0, 1>", "expected ':'"),
        ("@a::b", "expected a symbol '@name'"),
        ("@a:b", "expected ':'"),
    ],
)
def test_wrong_attributes_are_told(text: str, message: str) -> None:
    with pytest.raises(irc.UserError) as caught:
        parse_attribute(text)
    assert message in str(caught.value)


def test_what_is_kept_as_text_has_one_form() -> None:
    given = "affine_map< (d0 , d1) // of two\n -> (d1)  >"
    assert str(parse_attribute(given)) == "affine_map< (d0 , d1) -> (d1) >"
    assert parse_attribute("array<i64: 1>") is not parse_attribute("array<i32: 1>")


def test_a_declared_function_has_no_body() -> None:
    module = parse("func.func private @f(f32 {mine.flag}) -> i32")
    irc.verify(module)
    assert "func.func private @f(f32 {mine.flag}) -> i32\n" in print_op(module)
    with pytest.raises(irc.InvalidIR, match="@f is declared only"):
        module.lookup("f").block  # noqa: B018
    for text in ("func.func @f() -> i32", "func.func public @f()"):
        with pytest.raises(irc.IRCError):
            irc.verify(parse(text))
    with pytest.raises(irc.InvalidIR, match="visibility 'secret'"):
        irc.verify(parse('func.func @f() attributes {sym_visibility = "secret"} {\nreturn\n}'))


def test_what_mlirs_form_can_not_say_is_printed_in_the_generic_one() -> None:
    line = '%z = "arith.addf"(%x, %y) : (f32, f64) -> f32'
    printed = print_op(parse(f"func.func @f(%x: f32, %y: f64) {{\n{line}\nreturn\n}}"))
    assert f"    {line}\n" in printed
    assert print_op(parse(printed)) == printed


def test_irc_opt_shows_the_note(tmp_path) -> None:
    path = tmp_path / "old.mlir"
    path.write_text(OLD)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, output, errors = run_opt([str(path)])
    assert code == 0 and "arith.cmpi slt, %a, %b : i32" in output
    assert errors.startswith(f"warning: {path}:3:8: irc's old form of 5 operations")


PAGE = (FOLDER.parents[1] / "docs/text.md").read_text(encoding="utf-8")


def paragraph(begin: str) -> list[str]:
    """What a paragraph of the page shows as code."""
    start = PAGE.index(begin)
    return re.findall(r"`([\w.]+)`", PAGE[start : PAGE.index("\n\n", start)])


def example(cls: type) -> str:
    """A function around the example that an operation's documentation has."""
    line = re.search(r"`(%.*?)`", cls.__doc__ or "")
    assert line is not None, cls
    kind = line[1].rpartition(" : ")[2].partition(" to ")[0]
    operands = re.findall(r"%\w+", line[1].partition("=")[2])
    types = ["i1" if cls.name == "arith.select" and not k else kind for k in range(len(operands))]
    inputs = ", ".join(f"{name}: {type_}" for name, type_ in zip(operands, types))
    return f"func.func @f({inputs}) {{\n  {line[1]}\n  return\n}}\n"


@pytest.mark.skipif(not Path(IREE_OPT).exists(), reason="needs iree-opt")
def test_all_but_the_operations_that_the_page_names_are_mlirs(tmp_path) -> None:
    for dialect in ("arith", "math"):
        load_dialect(dialect)
    classes = [cls for name in ("arith", "math") for cls in registered_ops(name)]
    texts = [example(cls) for cls in classes]
    for text in texts:
        irc.verify(parse(text))
    path = tmp_path / "examples.mlir"
    path.write_text(SEPARATOR.join(texts), encoding="utf-8")
    done = subprocess.run(
        [IREE_OPT, "--split-input-file", str(path)], capture_output=True, text=True
    )
    unknown = set(re.findall(r"custom op '([\w.]+)' is unknown", done.stderr))
    named = {name for name in paragraph("Operations of irc's own") if name.startswith("math.")}
    assert unknown == OURS == named
    assert done.stderr.count("error:") == len(OURS)


def test_what_the_page_says_is_missing_is_missing() -> None:
    missing, dialect = [], ""
    for word in paragraph("Operations of MLIR's that irc has not"):
        if word in ("arith", "func", "math"):
            dialect = word
        else:
            missing.append(f"{dialect}.{word}")
    assert len(missing) == 20
    for name in missing:
        with pytest.raises(irc.UserError, match="unknown operation"):
            parse(f"func.func @f() {{\n%0 = {name} : f32\nreturn\n}}")


def test_the_pages_program_is_read() -> None:
    (program,) = blocks("docs/text.md", "mlir")
    module = parse(program)
    irc.verify(module)
    assert print_op(module).splitlines()[1].strip() == program.splitlines()[0]
    for line in program.splitlines()[3:]:
        assert line.strip() in print_op(module), line


def test_the_note_on_an_old_form_is_short() -> None:
    long = ", ".join(f"mine.name_{k} = {k} : i64" for k in range(99))
    line = f'%0 = arith.cmpi %a, %a {{predicate = "slt", {long}}} : (i32, i32) -> i1'
    with pytest.warns(FutureWarning, match="old form of 1 operations") as told:
        parse(f"func.func @f(%a: i32) {{\n{line}\nreturn\n}}")
    assert len(str(told[0].message)) < 400
