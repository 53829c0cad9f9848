"""Text that is wrong: one error with the position, the line and a caret, soon and never more."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import parse, parse_attribute, parse_file, parse_type, print_op
from irc.ir.diagnostics import IRCError, UserError
from irc.ir.location import FileLocation


def error_of(text, **options):
    with pytest.raises(UserError) as caught:
        parse(text, "bad.mlir", **options)
    return caught.value


def function(body):
    return f"func.func @f(%x: f32, %n: i32) -> f32 {{\n{body}\n  func.return %x : f32\n}}"


CASES = [
    ("  %y = arith.adff %x, %x : f32", 2, 8, "unknown operation 'arith.adff'"),
    ("  %y = arit.addf %x, %x : f32", 2, 8, "did you mean arith.addf"),
    ("  %y = nothing.at_all %x : (f32)", 2, 8, "there is no dialect 'nothing'"),
    ("  %y = arith.addf %x : f32", 2, 8, "arith.addf has 1 operand, not 2 (lhs, rhs)"),
    ("  %y = arith.select %x, %x : (f32, f32) -> f32", 2, 8,
     "has 2 operands, not 3 (condition, if_true, if_false)"),
    ('  %y = "arith.addf"(%x) : (f32) -> f32', 2, 8, "has 1 operand, not 2 (lhs, rhs)"),
    ("  %y = arith.select %x, %x, %x : (f32) -> f32", 2, 8, "1 types for 3 operands"),
    ("  %y, %z = arith.addf %x, %x : (f32, f32) -> f32", 2, 3, "gives 1 results, 2 named"),
    ("  %y = arith.addf %x, %z : f32\n  %z = arith.addf %x, %x : f32", 2, 23,
     "%z is used before its definition"),
    ("  %y = arith.addf %x, %xs : f32", 2, 23, "%xs is not defined here"),
    ("  %y = arith.addf %x, %xs : f32", 2, 23, "did you mean %x?"),
    ("  %y = arith.addf %x, %n : f32", 2, 23, "%n is used as f32, but is defined as i32"),
    ("  %y = arith.addf %x, %x : f32\n  %z = arith.addf %y, %y : f64", 3, 19,
     "%y is used as f64, but is defined as f32 at bad.mlir:2:3"),
    ("  %x = arith.addf %x, %x : f32", 2, 3, "%x is defined twice"),
    ("  %y = arith.extf %x : f32", 3, 3, "expected 'to'"),
    ("  %y = graph.cast %x : f32", 2, 24, "are written (operands) -> results"),
    ("  %y = arith.addf %x, %x", 3, 3, "expected ':' and the types"),
    ("  $", 2, 3, "expected an operation or '}', found '$'"),
    ('  sym.assert {message = "abc\n}', 2, 25, "this string has no end on its line"),
    ('  sym.assert {message = "a\\qc"}', 2, 27, "unknown escape '\\q'"),
    ('  sym.assert {message = "\\FF"}', 2, 25, "no UTF-8"),
    ("  %c = arith.constant 300 : i8", 2, 23, "300 does not fit i8"),
    ("  %c = arith.constant 1.5 : i8", 2, 23, "1.5 is no value of type i8"),
    ("  %c = arith.constant 0x1FFFF : f16", 2, 23, "is not the bits of a f16"),
    ("  %c = arith.constant {a, a} : f32", 2, 27, "the attribute 'a' is given twice"),
    ("  %n2 = sym.value {dim = #sym<s0 + >} : index", 2, 35, "expected an integer, a name or '('"),
    ("  %n2 = sym.value {dim = #sym<s0 >= 1>} : index", 2, 35, "expected '}'"),
    ("  %w = graph.undefined : tensor<[4294967296, 4294967296] x f32>", 2, 33, "64 bits can count"),
    ("  %w = graph.undefined : tensor<[1152921504606846976] x f32>", 2, 33, "64 bits can count"),
    ("  %w = graph.undefined : tensor<[3] x f32, strides [4611686018427387904]>", 2, 33,
     "strides reach further"),
    ("  %w = graph.undefined : tensor<[-4] x f32>", 2, 33, "tensor size -4 is negative"),
    ("  %w = graph.undefined : tensor<?xf32>", 2, 33, "size '?' has no symbol"),
    ("  %w = graph.undefined : tensor<[s0, 4] x f32, strides [1]>", 2, 33, "1 strides given"),
    ("  %w = graph.undefined : tensor<[s0] x f32, offset>", 2, 45, "'strides', a device or"),
    ("  %w = graph.undefined : tensor<?xf32, #sym.shape<[4]>>", 2, 40, "differ"),
    ("  %w = graph.undefined : vector<?xf32>", 2, 33, "the sizes of a vector are integers"),
    ("  %w = graph.undefined : i999", 2, 26, "integer width 999"),
    ("  %w = graph.undefined : si32", 2, 26, "written i32 here"),
    ("  %w = graph.undefined : !foo", 2, 26, "the alias '!foo' is not defined"),
    ("  %w = graph.undefined : !foo.bar", 2, 26, "unknown type '!foo.bar'"),
    ("  %w = graph.undefined {a = #foo.bar<1>} : f32", 2, 29, "unknown attribute '#foo.bar'"),
    ("  %w = graph.undefined {a = #loop.axis<all i: 4>} : f32", 2, 44, "is not one of"),
    ("  %w = graph.undefined {a = #aten.operand<1, 2>} : f32", 2, 29,
     "has 1 parameters (index), 2 given"),
    ("  %w = graph.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<2xf32>} : tensor<2xf32>",
     2, 32, "elements of shape [3] for tensor<2xf32>"),
    ("  %w = graph.constant {value = dense<[[1.0], [2.0, 3.0]]> : tensor<2x1xf32>} : f32",
     2, 38, "the rows of these elements differ"),
    ('  %w = graph.constant {value = dense<"0x00FF"> : tensor<2xf32>} : f32', 2, 32, "2 bytes for"),
    ('  %w = graph.constant {value = #irc.resource<"abcd"> : tensor<2xf32>} : tensor<2xf32>',
     2, 32, "is kept beside the text and was not given"),
    ('  "test.jump"()[^bb9] : () -> ()', 4, 1, "there is no block ^bb9"),
    ("^bb1:\n^bb1:", 3, 1, "the block ^bb1 is defined twice"),
    ("  %y = loop.compute foo(i: 4) -> map { loop.yield }", 2, 21, "expected an axis list"),
    ("  %y = loop.read %x[i : f32", 2, 23, "expected ']'"),
    ("  kernel.store %x, %x[%n] (where %n else %n) : f32", 2, 27, "a store has no 'else'"),
]  # fmt: skip


@pytest.mark.parametrize("body, line, column, message", CASES, ids=[c[3][:40] for c in CASES])
def test_error_says_what_and_where(body, line, column, message):
    text = function(body)
    error = error_of(text, allow_unregistered="test." in body)
    assert message in str(error)
    assert error.location is FileLocation("bad.mlir", line, column)
    shown, marks = error.excerpt.split("\n")
    assert shown.endswith(text.split("\n")[line - 1])
    assert marks.index("^") - shown.index("|") == column + 1


@pytest.mark.parametrize("text", [
    "func.func @f(%x: f32) -> f32 {\n  %y = arith.addf %x, %x : f32\n",
    "func.func @f(%x: f32) -> f32 {\n  %y = arith.addf %x, ",
    "func.func @f(",
    '"builtin.module"() ({',
    "#a = [1, 2",
])  # fmt: skip
def test_truncated_text(text):
    assert "found the end of the text" in str(error_of(text))


@pytest.mark.parametrize("text", [
    "func.func @f() {\n  func.return\n}",
    "%x = arith.constant 4 : i32",
])  # fmt: skip
def test_every_prefix_of_a_program_is_read_or_refused(text):
    for end in range(len(text)):
        try:
            parse(text[:end])
        except UserError as error:
            assert error.excerpt


def test_value_of_a_nested_region_is_not_defined_after_it():
    error = error_of("""func.func @f(%c: i1) {
      kernel.if %c {
        %y = arith.constant 1.0 : f32
        kernel.yield
      }
      func.return %y : f32
    }""")
    assert "%y is not defined here" in str(error)


def test_names_may_be_used_again_in_another_region():
    parse("""func.func @f(%c: i1) {
      kernel.if %c {
        %y = arith.constant 1.0 : f32
        kernel.yield
      } else {
        %y = arith.constant 1.0 : f32
        kernel.yield
      }
      func.return
    }""")


N = 100_000
DEEP = {
    "generic regions": '"builtin.module"() ({' * N,
    "modules": "builtin.module {" * N,
    "conditions": "func.func @f(%c: i1) {" + "kernel.if %c {" * N,
    "arrays": "#a = " + "[" * N,
    "dictionaries": "#a = " + "{a = " * N,
    "function types": "!a = " + "(" * N,
    "tensors": "!a = " + "tensor<" * N,
    "pointers": "!a = " + "!kernel.ptr<" * N,
    "locations": "#a = loc(" + '"a"(' * N,
    "fused": "#a = loc(" + "fused[" * N,
    "nested locations": "#a = loc(" + "loc(" * N,
    "expressions": "#a = #sym<" + "(" * N,
    "functions": "#a = #sym<" + "f(" * N,
    "elements": "#a = dense<" + "[" * N,
    "parameters": "#a = #aten.operand<" + "[" * N,
    "wrapped parameters": "#a = #aten.operand<" + "type(" * N,
    "opaque": "#a = #x.y<" + "<" * N,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_refused_soon(text):
    start = time.process_time()
    error = error_of(text, allow_unregistered=True)
    assert time.process_time() - start < 2
    assert error.excerpt and len(error.excerpt) < 500


MEGA = 10_000_000
LONG = {
    "blanks": " " * MEGA,
    "a comment": "//" + "x" * MEGA,
    "a string": '#a = "' + "x" * MEGA + '"',
    "bytes": '#a = "' + "\\0A" * (MEGA // 3) + '"',
    "no end": '#a = "' + "x" * MEGA,
    "a word": "x" * MEGA,
    "a name": "%" + "x" * MEGA,
    "a number": "#a = " + "1" * MEGA,
    "an expression": "#a = #sym<" + "s0 + " * (MEGA // 50) + "s0>",
    "signs": "#a = #sym<" + "-" * (MEGA // 50) + "s0>",
    "marks": "#" * MEGA,
    "operations": "func.func @f(%x: f32) {"
    + " ".join(f"%a{i} = arith.addf %x, %x : f32" for i in range(20_000))
    + " func.retrn }",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_lines_are_read_or_refused_soon(text):
    start = time.process_time()
    try:
        parse(text)
    except UserError as error:
        assert len(str(error)) < 1000
    assert time.process_time() - start < 5


def test_invalid_utf8_in_a_file(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_bytes(b"func.func @f() {\n  \xff\n}")
    with pytest.raises(UserError) as caught:
        parse_file(path)
    assert caught.value.location is FileLocation(str(path), 2, 3)
    path.write_bytes("func.func @\"fü\"() {\n  func.return\n}".encode())
    assert parse_file(path).lookup("fü") is not None


def test_constant_beside_the_text_is_needed():
    text = '%w = graph.constant {value = #irc.resource<"abcd"> : tensor<2xf32>} : tensor<2xf32>'
    assert parse(text, resources={"abcd": b"12345678"}).resources == {"abcd": b"12345678"}


def test_unregistered_operation_only_on_request():
    text = '"some.op"() : () -> ()'
    assert "unknown operation 'some.op'" in str(error_of(text))
    assert print_op(parse(text, allow_unregistered=True)).count('"some.op"() : () -> ()') == 1


PIECES = st.sampled_from(
    "%x %y %0:2 @f ^bb0 = : -> ( ) { } [ ] < > , + - * ? #sym<s0> #sym.dims<[1]> 1 1.5 0x7F "
    'func.func func.return arith.addf arith.constant loop.compute loop.read kernel.for "a" '
    '"arith.addf" f32 i32 index tensor<4xf32> dense array loc true unit strides par(i:4) \n // \\ '
    "kernel.if loop.yield builtin.module #loop.axis !kernel.ptr none x".split(" ")
)


@pytest.mark.filterwarnings("ignore:.*old form:FutureWarning")
@given(st.lists(PIECES, max_size=30).map(" ".join))
def test_random_text_is_read_or_refused(text):
    for read in (parse, parse_attribute, parse_type):
        try:
            read(text, allow_unregistered=True)
        except IRCError:
            pass


@pytest.mark.filterwarnings("ignore:.*old form:FutureWarning")
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text)
    except IRCError:
        pass


def chain(length, width=10):
    lines = [f"#a{i + 1} = [{', '.join([f'#a{i}'] * width)}]\n" for i in range(length)]
    return f"#a0 = [1, 1, 1]\n{''.join(lines)}builtin.module attributes {{x = #a{length}}} {{}}\n"


@pytest.mark.fault("K6")
@pytest.mark.parametrize("text, message", [
    (chain(13), "the aliases up to here stand for more than 67,108,864 characters"),
    (chain(200, 1), "the alias nests deeper than 100"),
    (chain(5) + "builtin.module attributes {x = #a5} {}\n" * 300, "stand for more than"),
    ('#loc0 = loc("f":1:1)\n' + "".join(
        f"#loc{i + 1} = loc(fused[{', '.join([f'#loc{i}'] * 10)}])\n" for i in range(12)),
     "stand for more than"),
    ("!t0 = tensor<4xf32>\n" + "".join(
        f"!t{i + 1} = ({', '.join([f'!t{i}'] * 10)}) -> ()\n" for i in range(12)),
     "stand for more than"),
])  # fmt: skip
def test_aliases_that_stand_for_too_much(text, message):
    start = time.process_time()
    assert message in str(error_of(text))
    assert time.process_time() - start < 2


@pytest.mark.fault("K6")
def test_what_is_shared_is_printed_once():
    text = chain(3)
    module = parse(text + text.partition("builtin")[1] + text.partition("builtin")[2])
    short = print_op(module, aliases=True)
    assert len(short) * 1.9 < len(print_op(module)) and "#a0 = [" in short
    assert print_op(parse(short)) == print_op(module)
