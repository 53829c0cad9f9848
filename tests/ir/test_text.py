"""Text: what is printed parses back to the same program, in every form."""

from __future__ import annotations

import gc
import inspect
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from irc.ir import attributes as A
from irc.ir import parse, parse_attribute, parse_type, print_attribute, print_op
from irc.ir import types as T
from irc.ir.equality import first_difference
from irc.ir.registry import DIALECT_MODULES, load_dialect, register_attribute, registered_ops
from irc.ir.symbols import Dim
from irc.ir.text.parser import Parser

for _dialect in DIALECT_MODULES:
    load_dialect(_dialect)

FORMS = (
    {},
    {"generic": True},
    {"locations": True},
    {"aliases": True},
    {"generic": True, "locations": True, "aliases": True},
)


def check_round_trip(module, allow_unregistered=False):
    """Every form parses back to an equal program that prints the same text."""
    for form in FORMS:
        text = print_op(module, **form)
        again = parse(
            text, allow_unregistered=allow_unregistered, resources=getattr(module, "resources", {})
        )
        difference = first_difference(module, again, locations="locations" in form)
        assert difference is None, f"{form}: {difference}\n{text}"
        assert print_op(again, **form) == text


# -- the examples in the documentation of the operations

# The types of values that an example does not tell.
DECLARED = {
    "loop.read": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "loop.yield": {"%a": "f32", "%k": "index", "%c": "i1"},
    "loop.compute": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "loop.group": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "kernel.for": {"%lo": "index", "%hi": "index", "%c16": "index", "%zero": "vector<16xf32>"},
    "kernel.if": {"%c": "i1", "%a": "f32", "%b": "f32"},
    "kernel.load": {"%p": "!kernel.ptr<f32>", "%i": "index"},
    "kernel.store": {"%v": "vector<16xf32>", "%p": "!kernel.ptr<f32>", "%i": "index"},
    "kernel.gather": {"%p": "!kernel.ptr<f32>", "%offs": "vector<16xindex>"},
    "kernel.load_strided": {"%p": "!kernel.ptr<f32>", "%i": "index"},
    "kernel.scatter": {
        "%v": "vector<16xf32>", "%p": "!kernel.ptr<f32>", "%offs": "vector<16xindex>",
    },
}  # fmt: skip


def example_of(cls):
    """The line of IR in the documentation of an operation class."""
    doc = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    written = re.escape(cls.keyword or cls.name)
    quoted = [t for t in re.findall(r"`([^`]+)`", doc) if re.search(rf"\b{written}\b", t)]
    return quoted[-1] if quoted else None


def declarations(cls, example):
    """Block arguments for the values that the example uses and does not define."""
    if cls.name in DECLARED or any(f.kind == "one" for f in cls.region_fields):
        return DECLARED.get(cls.name, {})
    written = re.escape(cls.keyword or cls.name)
    found = re.search(rf"\b{written}(?: @\w+\()? ?(?:\w+, )?((?:%\w+(?:, )?)*)", example)
    operands = found[1]
    names = re.findall(r"%\w+", operands)
    if not names:
        return {}
    rest = example[example.rindex(" : ") + 3 :].partition(" to ")[0]
    if cls.syntax is not None and cls.syntax.types == "choice":
        rest = f"i1, {rest}, {rest}"
    if " : (" in example:
        rest = example[example.rindex(" : (") + 3 :]
    if rest.startswith("("):
        types = parse_type(rest if "->" in rest else rest + " -> ()").inputs
    else:
        types = tuple(parse_type(t) for t in rest.split(", ") if "tensor" not in rest) or (
            parse_type(rest),
        )
        types = types if len(types) == len(names) else types * len(names)
    return {name: str(t) for name, t in zip(names, types, strict=True)}


EXAMPLES = [c for dialect in DIALECT_MODULES for c in registered_ops(dialect)]


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda c: c.name)
def test_example_in_documentation_parses_and_prints_back(cls):
    example = example_of(cls)
    assert example is not None, f"the documentation of {cls.name} has no line of IR"
    types = declarations(cls, example)
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    label = f"^bb0({arguments}):" if arguments else ""
    text = f'"test.wrap"() ({{\n{label}\n{example}\n}}) : () -> ()'
    resources = {"0123": b""}
    module = parse(text, allow_unregistered=True, resources=resources)
    found = [op for op in module.walk() if type(op) is cls]
    assert found
    check_round_trip(module, allow_unregistered=True)


# -- attributes and types

ATTRIBUTES = [
    "unit", "true", "4 : i64", "-4 : i8", "255 : ui8", "7 : index", '"text"', "@name",
    '@"any name"', '"quote \\" slash \\\\ line \\0A bell \\07 ä \\ED\\A0\\80"',
    "0.1 : f32", "1.0e-05 : f64", "-0.0 : f16", "0x7FC00001 : f32", "0xFF800000 : f32",
    "0x7E : f8E5M2", "0x7FF8000000000001 : f64", "3.14 : bf16", "1.0e+30 : f32",
    "[]", '[1 : i64, "two", [f32]]', "{}", '{a = 1 : i64, "b c", flag}',
    "array<i64>", "array<i64: 1, -2>", "#sym<s0*4 + 1>", "#sym<-3>", "#sym.dims<[]>",
    "#sym.dims<[s0, ?, floordiv(s0, 2)]>", "f32", "(f32, index) -> (i1, i1)",
    "() -> (() -> f32)", "tensor<4x5xf32>", "tensor<f32>", "tensor<0xui8>",
    "tensor<[s0, 5] x f32>", 'tensor<[s0] x i1, strides [1], "cuda:0">',
    "tensor<[] x f32, strides []>", 'tensor<[4] x f32, "cuda:0">', "vector<16x16xbf16>",
    "vector<f32>", "complex<f32>", "!kernel.ptr<f32>", "none", "tensor<2xcomplex<f32>>",
    "dense<[1.0, 0x7FC00000]> : tensor<2xf32>", "dense<0.5> : tensor<4x4xf32>",
    "dense<[[1, -2], [3, 4]]> : vector<2x2xi32>", "dense<[true, false]> : tensor<2xi1>",
    "dense<> : tensor<0xf32>", "dense<(1.0, -2.0)> : tensor<3xcomplex<f32>>",
    "dense<5> : tensor<i64>", "dense<200> : tensor<2xui8>",
    'loc("model.py":12:4)', 'loc("layer"("model.py":12:4))',
    'loc(fused<"pass">["a.py":1:2, unknown])', "loc(unknown)",
    "#loop.axis<par i: s0*2>", "#loop.result<map>", "#loop.result<reduce(sum, f32)>",
    "#loop.result<scatter(set, [i, _0])>", '#loop.schedule<cpu, lanes = 8 : i64, tail = "peel">',
    "#aten.operand<3>", '#aten.dtype<"float32">', "#aten.none",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_attribute_prints_as_it_was_written(text):
    attr = parse_attribute(text)
    printed = print_attribute(attr)
    assert printed == text
    assert parse_attribute(print_attribute(attr, generic=True)) is attr


def test_floats_keep_every_bit():
    import struct

    for bits in (0, 1, 0x80000000, 0x7F7FFFFF, 0x7F800001, 0xFFC12345, 0x3DCCCCCD, 0x00800000):
        value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
        attr = parse_attribute(print_attribute(A.FloatAttr(value, T.f32)))
        if value == value:
            assert struct.pack("<f", attr.value) == bits.to_bytes(4, "little")
        again = parse_attribute(print_attribute(attr))
        assert again is attr


@pytest.mark.parametrize("element", [T.f32, T.f64, T.bf16, T.f16, T.i1, T.ui8, T.i64, T.c64])
@pytest.mark.parametrize("count", [1, 64, 65, 300])
def test_dense_elements_come_back(element, count):
    size = T.element_bytes(element)
    data = bytes((k * 37 + 11) % 256 for k in range(size * count))
    if element is T.i1:
        data = bytes(b & 1 for b in data)
    attr = A.DenseAttr(T.TensorType((count,), element), data)
    for generic in (False, True):
        assert parse_attribute(print_attribute(attr, generic)) is attr


@register_attribute
class SizedAttr(A.Attribute):
    """`#test.sized<s0*2>`: has no text of its own."""

    __slots__ = ()
    dialect = "test"
    mnemonic = "sized"
    fields = ("size",)
    size: Dim


@pytest.mark.parametrize("name", ["f32", "none", "i8", "dim", "index", "true", "tensor"])
def test_symbol_that_looks_like_a_keyword(name):
    from irc.ir.symbols import symbol

    attr = SizedAttr(symbol(name) * 2)
    assert parse_attribute(print_attribute(attr)) is attr
    tensor = T.TensorType([symbol(name)], T.f32)
    assert parse_type(str(tensor)) is tensor


# -- whole programs

PROGRAMS = Path(__file__).parent / "programs"


def program(name):
    return parse((PROGRAMS / f"{name}.mlir").read_text(), f"{name}.mlir", allow_unregistered=True)


NAMES = sorted(path.stem for path in PROGRAMS.glob("*.mlir"))


@pytest.mark.parametrize("name", NAMES)
def test_program_in_every_form(name):
    check_round_trip(program(name), allow_unregistered=True)


@pytest.mark.parametrize("name", NAMES)
def test_program_prints_as_it_stands_in_the_file(name):
    text = (PROGRAMS / f"{name}.mlir").read_text()
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("//"))
    assert print_op(program(name)) == body


IREE_OPT = shutil.which("iree-opt") or str(Path(sys.executable).parent / "iree-opt")


@pytest.mark.skipif(not Path(IREE_OPT).exists(), reason="needs iree-opt")
@pytest.mark.parametrize("name", NAMES)
def test_mlir_reads_the_generic_form_and_prints_it_back(name, tmp_path):
    module = program(name)
    path = tmp_path / "program.mlir"
    path.write_text(print_op(module, generic=True))
    done = subprocess.run(
        [IREE_OPT, "--allow-unregistered-dialect", "--mlir-print-op-generic", str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = parse(done.stdout, allow_unregistered=True)
    assert first_difference(module, again) is None


def test_hints_that_are_equal_or_no_names_are_made_names():
    module = parse("func.func @f(%x: f32) {\n %y = arith.addf %x, %x : f32\n func.return\n}")
    function = module.lookup("f")
    for hint, expected in (("x", "%x_0"), ("a b", "%a_b"), ("1", "%0"), ("2d", "%_2d"), ("", "%0")):
        function.block.first.results[0].name_hint = hint
        assert f"{expected} = arith.addf" in print_op(module)


def test_locations_are_those_of_the_text_unless_given():
    from irc.ir.location import FileLocation, NameLocation

    module = parse(
        'func.func @f() {\n  %a = sym.value {dim = #sym<1>} : index\n'
        '  %b = sym.value {dim = #sym<1>} : index loc("m.py":7:1)\n'
        "  %c = sym.value {dim = #sym<1>} : index loc(#late)\n  func.return\n}\n"
        '#late = loc("name"("n.py":1:2))',
        "file.mlir",
    )
    a, b, c = list(module.lookup("f").block.ops)[:3]
    assert a.location is FileLocation("file.mlir", 2, 3)
    assert b.location is FileLocation("m.py", 7, 1)
    assert c.location is NameLocation("name", FileLocation("n.py", 1, 2))


def test_the_order_in_which_attributes_were_given_does_not_show():
    one = parse("builtin.module attributes {b, a} {}")
    two = parse("builtin.module attributes {a, b} {}")
    assert print_op(one) == print_op(two)


def test_an_operation_may_go_on_after_a_line_that_was_complete_before():
    text = """func.func @f(%x: f32) {
      %a = arith.constant 1.0 : f32
      %b = arith.constant 1.0 : f32
        loc("m.py":1:1)
      %c = arith.constant 1.0 : f32 %d = arith.addf %c, %x : f32 func.return
    }"""
    module = parse(text)
    ops = list(module.lookup("f").block.ops)
    assert [op.name for op in ops[:4]] == ["arith.constant"] * 3 + ["arith.addf"]
    assert str(ops[1].location) == 'loc("m.py":1:1)'
    assert ops[3].operands[0] is ops[2].results[0]


def test_hooks_read_with_the_methods_of_all_parts():
    parser = Parser("")
    own = {"close", "spend", "extent", "dialect_attribute", "check_forward"}  # no hook's business
    for part in (parser.lexer, parser.types, parser.attributes, parser.region.__self__):
        names = {n for n, f in vars(type(part)).items() if inspect.isfunction(f) and n[0] != "_"}
        lent = {n for n in names if getattr(parser, n, None) == getattr(part, n)}
        assert names - lent <= own, part


def test_a_text_is_gone_when_it_is_read():
    class Text(str):
        """One that can be watched."""

    for read, text in ((parse, "module {\n}\n"), (parse_attribute, "[1, 2]")):
        watched = Text(text)
        watch = weakref.ref(watched)
        gc.disable()
        try:
            read(watched)
            del watched
            assert watch() is None
        finally:
            gc.enable()
