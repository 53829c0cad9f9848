"""Attributes that make no sense are told where they stand, not by a pass that stumbles on them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.diagnostics import InternalError, IRCError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.dialects.verifying import check  # noqa: E402

pytestmark = pytest.mark.fault("K9")

CALL = """func.func @f(%x: tensor<3x2xf32>, %w: tensor<2x1xf32>) -> tensor<3x1xf32> {{
  %y = graph.call_aten %x, %w {{callee = "aten.mm.default", arguments = {{{arguments}}},
    eager_strides = [{strides}]}} : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  func.return %y : tensor<3x1xf32>
}}"""
ARGUMENTS = "mat2 = #aten.operand<1>, self = #aten.operand<0>"
STRIDES = "#sym.dims<[1, 1]>"


@pytest.mark.parametrize("arguments, strides, error", [
    (ARGUMENTS, STRIDES, None),
    ("self = #aten.operand<0>", STRIDES, "argument 'mat2' is missing"),
    (f"{ARGUMENTS}, bias = #aten.none", STRIDES, "no argument 'bias'"),
    ("mat2 = #aten.operand<7>, self = #aten.operand<0>", STRIDES, "mention operands .0, 7. of 2"),
    ('mat2 = "w", self = #aten.operand<0>', STRIDES, "mention operands .0. of 2"),
    (ARGUMENTS, '#aten.device<"cpu">', "eager_strides has #aten.device"),
    (ARGUMENTS, "#sym.dims<[1]>", "eager_strides has #sym.dims<.1.> for tensor<3x1xf32>"),
    (ARGUMENTS, "#sym.dims<[1, 1]>, #sym.dims<[1]>", "eager_strides has 2 entries"),
    (ARGUMENTS, "#sym.dims<[9223372036854775807, 1]>", "eager_strides: the tensor.s strides reach"),
    (ARGUMENTS, f"{STRIDES}, {STRIDES}", "2 entries for 1 tensors"),
])  # fmt: skip
def test_calls(arguments, strides, error):
    check(CALL.format(arguments=arguments, strides=strides), error)


ATEN = """func.func @f(%x: tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]> {{
  %y = aten.{op} %x {{arguments = {{{arguments}, self = #aten.operand<0>}}}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
  func.return %y : tensor<[4, 3] x f32, strides [3, 1]>
}}"""  # noqa: E501


@pytest.mark.parametrize("op, arguments, error", [
    ("cumsum.default", "dim = 1 : i64", None),
    ("cumsum.default", "dim = #sym<3>", None),
    ("cumsum.default", 'dim = "one"', "'dim' is \"one\", not int"),
    ("cumsum.default", "dim = 0.5 : f64", "'dim' is 0.5 : f64, not int"),
    ("cumsum.default", 'dim = 1 : i64, dtype = "f32"', "'dtype' is \"f32\", not ScalarType"),
    ("permute.default", "dims = [0 : i64, true]", "'dims' is .*, not int"),
    ("_to_copy.default", "dtype = #aten.dtype<\"float32\">", None),
    ("sum.dim_IntList", "dim = [0 : i64], keepdim = #aten.operand<0>",
     "argument 'keepdim' is #aten.operand<0>, not bool"),
])  # fmt: skip
def test_arguments_have_the_types_of_the_schema(op, arguments, error):
    check(ATEN.format(op=op, arguments=arguments), error)


@pytest.mark.parametrize("op, arguments", [
    ("cumsum.default", "dim = 5 : i64"),
    ("permute.default", "dims = [0 : i64, 0 : i64]"),
    ("permute.default", "dims = [0 : i64, 2 : i64]"),
])  # fmt: skip
def test_what_the_operator_refuses_is_left_to_it(op, arguments):
    """A wrong dimension raises eager's error when the program runs."""
    module = irc.parse(ATEN.format(op=op, arguments=arguments))
    PassManager.parse("convert-aten-to-graph").run(module)
    assert "graph.call_aten" in irc.print_op(module)


INFO = """func.func @f(%x: tensor<[4] x f32, strides [1]> {argument}, %n: index) -> (tensor<[4] x f32, strides [1]> {result}) {function}{{
  func.return %x : tensor<[4] x f32, strides [1]>
}}"""  # noqa: E501


@pytest.mark.parametrize("argument, result, function, error", [
    ("{}", "{irc.alias_of = 0 : i64, irc.strides = #sym.dims<[1]>}", "", None),
    ("{}", "{irc.alias_of = 1 : i64}", "", "alias_of is 1, which is no tensor"),
    ("{}", "{irc.alias_of = 2 : i64}", "", "alias_of is 2, not one of the 2 before"),
    ("{}", "{irc.alias_of = -1 : i64}", "", "alias_of is -1"),
    ("{}", "{irc.shares = 0 : i64}", "", "shares is 0, not one of the 0 before"),
    ("{}", '{irc.alias_of = "x"}', "", 'alias_of is "x", not a IntegerAttr'),
    ("{irc.strides = #sym.dims<[1, 1]>}", "{}", "", "do not fit tensor"),
    ("{}", "{irc.strides = #sym.dims<[9223372036854775807]>}", "", "further than memory does"),
    ("{}", "{irc.offset = #sym<4611686018427387904>, irc.strides = #sym.dims<[1]>}", "",
     "further than"),
    ("{irc.offset = 3 : i64}", "{}", "", "offset is 3 : i64, not a DimAttr"),
    ("{}", "{}", "attributes {aliases = [[0 : i64, 4 : i64]]} ", "aliases names"),
    ("{}", "{}", "attributes {aliases = 1 : i64} ", "not a list of lists"),
])  # fmt: skip
def test_what_functions_say_of_arguments_and_results(argument, result, function, error):
    check(INFO.format(argument=argument, result=result, function=function), error)


COMPUTE = """func.func @f(%x: tensor<[4, 3] x f32, strides [3, 1]>) {{
  %y = loop.compute par(i: 4) red(j: 3) -> reduce({combiner}) {{
    %a = loop.read %x[i, j] : f32
    {end}
  }} : tensor<[4] x f32, strides [1]>
  func.return
}}"""


@pytest.mark.parametrize("combiner, end, error", [
    ("sum, f32", "loop.yield %a", None),
    ("sum, f32", "func.return", "stands in loop.compute, not in func.func"),
    ("all, f32", "loop.yield %a", "'all' of f32: there is none"),
    ("xor, f32", "loop.yield %a", "'xor' of f32: there is none"),
    ("sum, index", "loop.yield %a", "'sum' of index"),
])  # fmt: skip
def test_computes(combiner, end, error):
    check(COMPUTE.format(combiner=combiner, end=end), error)


@pytest.mark.parametrize("combiner, error", [
    ("else, f32", "'else' does not combine a reduce"),
    ("par, f32", "'par' does not combine a reduce"),
])  # fmt: skip
def test_combiners_are_known_when_they_are_read(combiner, error):
    with pytest.raises(irc.UserError, match=error):
        irc.parse(COMPUTE.format(combiner=combiner, end="loop.yield %a"))


def test_an_unregistered_terminator_ends_no_compute():
    text = COMPUTE.format(combiner="sum, f32", end='"test.end"(%a) : (f32) -> ()')
    with pytest.raises(irc.InvalidIR, match="does not end in loop.yield"):
        irc.verify(irc.parse(text, allow_unregistered=True))


LAUNCH = """host.func @main(%x: tensor<[4] x f32, strides [1]>) {{
  %y = host.alloc {{escapes}} : tensor<[4] x f32, strides [1]>
  host.launch %x, %y {{callee = @k, grid = #sym<1>, operandSegmentSizes = array<i64: 1, 1>}} : (tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>)
  host.return
}}
kernel.func @k(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %b: index, %e: index) attributes {{grid = #sym<1>, inplace = array<i64: {pair}>, outputs = array<i64: 1>, target = "cpu", work = #sym<1>}} {{
  kernel.return
}}"""  # noqa: E501


@pytest.mark.parametrize("pair, error", [
    ("0, 16", "pairs argument 16, which is no output"),
    ("4, 1", "pairs argument 4, which is no input"),
])  # fmt: skip
def test_a_kernel_is_checked_before_its_launches(pair, error):
    check(LAUNCH.format(pair=pair), error)


@pytest.mark.parametrize("text, error", [
    ("#aten.dtype", "1 parameters .name., 0 given"),
    ("#aten.operand<ui8>", "index is ui8, not int"),
    ("#aten.device<[2, 1]>", "name is .2, 1., not str"),
    ("#loop.axis", "3 parameters"),
    ("array<i64: 99999999999999999999>", "does not fit 64 bits"),
    ("#sym<99999999999999999999>", "does not fit 64 bits"),
    ("tensor<99999999999999999999xf32>", "does not fit 64 bits"),
])  # fmt: skip
def test_parameters_have_the_types_of_their_fields(text, error):
    with pytest.raises(irc.UserError, match=error) as caught:
        irc.ir.parse_attribute(text)
    assert not isinstance(caught.value, InternalError)


def test_random_arguments_have_a_bound():
    from irc.validation.inputs import random_arguments

    kind = "tensor<[100000, 1000000] x f32>"
    module = irc.parse(f"func.func @main(%x: {kind}) -> {kind} {{ func.return %x : {kind} }}")
    with pytest.raises(IRCError, match="the arguments have 400,000,000,000 bytes, more than"):
        random_arguments(module.lookup("main"), {}, 0)


def test_a_call_beside_a_declared_function_is_checked():
    check("""func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @declared(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}""", None)
