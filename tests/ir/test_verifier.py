"""The verifier: each rule refuses the program that breaks it, and says what and where."""

from __future__ import annotations

import pytest

from irc.dialects import arith, func
from irc.ir import attributes as A
from irc.ir import parse, verify
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.core import Block, Region
from irc.ir.definition import SEGMENTS
from irc.ir.diagnostics import InvalidIR
from irc.ir.module import ModuleOp
from irc.ir.registry import unregistered_op


def refused(text, **options):
    """The message about a program that parses and breaks a rule."""
    module = parse(text, "test.mlir", **options)
    with pytest.raises(InvalidIR) as caught:
        verify(module)
    return str(caught.value)


def function(body, arguments="%x: f32", result="f32"):
    return f"func.func @f({arguments}) -> {result} {{\n{body}\n}}"


def new_function(inputs=(T.f32,), results=(T.f32,)):
    module = ModuleOp.empty()
    made = func.FuncOp.create("f", inputs, results)
    module.block.append(made)
    return module, made, Builder.at_end(made.block)


def message_of(module):
    with pytest.raises(InvalidIR) as caught:
        verify(module)
    return str(caught.value)


# -- definitions


def test_valid_program_passes_with_its_use_lists():
    module = parse(function("%y = arith.addf %x, %x : f32\nreturn %y : f32"))
    verify(module, uses=True)


def test_missing_attribute():
    text = function('%c = "arith.cmpf"(%x, %x) : (f32, f32) -> i1\nreturn %x : f32')
    assert "'predicate' is missing" in refused(text)


def test_missing_attribute_that_is_misspelt():
    body = '%c = "arith.cmpf"(%x, %x) {predicat = "oeq"} : (f32, f32) -> i1\nreturn %x : f32'
    error = refused(function(body))
    assert "'predicate' is missing" in error and "did you mean it by 'predicat'?" in error


def test_attribute_of_the_wrong_class():
    text = function(
        '%c = "arith.cmpf"(%x, %x) {predicate = 1.5 : f32} : (f32, f32) -> i1\nreturn %x : f32'
    )
    error = refused(text)
    assert "the attribute 'predicate' is 1.5 : f32, not a StringAttr" in error
    assert 'one is written "text"' in error


def test_operand_of_the_wrong_type_names_the_operand():
    message = refused(function("%y = arith.addi %x, %x : f32\nreturn %y : f32"))
    assert "operand 'lhs' is f32, not a signless integer" in message
    assert message.startswith("test.mlir:2:1: error: 'arith.addi'")


def test_result_of_the_wrong_type():
    text = function("%y = arith.extsi %n : i8 to f32\nreturn %y : f32", "%n: i8")
    assert "result 'output' is f32" in refused(text)


def test_same_operands_and_result_type():
    text = function('%y = "arith.addf"(%x, %d) : (f32, f64) -> f32\nreturn %y : f32',
                    "%x: f32, %d: f64")  # fmt: skip
    assert "one type, not f32 and f64" in refused(text)


def test_wrong_number_of_operands_built_by_hand():
    module, made, b = new_function()
    x = made.block.arguments[0]
    b.insert(arith.AddFOp((x,), (T.f32,)))
    b.create(func.ReturnOp, [x])
    assert "has 1 operand, not 2 (lhs, rhs)" in message_of(module)


def test_verify_op_of_the_definition_runs():
    text = function(
        '%c = arith.cmpf less, %x, %x : f32\nreturn %x : f32'
    )
    assert "predicate 'less' is not one of" in refused(text)


@pytest.mark.parametrize("sizes", [(1, 0, 0), (1, -1, 1, 1), (2, 0, 0, 0), (1, 1, 1, 1)])
def test_sizes_of_operand_groups_must_fit(sizes):
    text = """func.func @f(%x: tensor<[4] x f32, strides [1]>, %n: index) {
      %r = loop.compute par(i: 4) -> map {
        %a = loop.read %x[%n] : f32
        loop.yield %a
      } : tensor<[4] x f32, strides [1]>
      return
    }"""
    module = parse(text)
    read = next(op for op in module.walk() if op.name == "loop.read")
    read.attributes[SEGMENTS] = A.DenseIntsAttr(sizes)
    with pytest.raises(InvalidIR):
        verify(module)
    del read.attributes[SEGMENTS]
    assert f"'{SEGMENTS}' is missing" in message_of(module)


# -- blocks and terminators


def test_block_without_terminator():
    assert "ends without a terminator" in refused(function("%y = arith.addf %x, %x : f32"))


def test_terminator_in_the_middle():
    text = function("return %x : f32\n%y = arith.addf %x, %x : f32\nreturn %y : f32")
    assert "a terminator is not the last operation" in refused(text)


def test_terminator_of_another_operation():
    text = "func.func @f() {\n kernel.return\n}"
    assert "'kernel.return': stands in func.func, not in kernel.func" in refused(text)


def test_successor_in_another_region():
    module, made, b = new_function()
    jump = unregistered_op("test.jump")
    b.insert(jump((), (), {}, (), successors=(Block(),)))
    assert "successor is in another region" in message_of(module)


def test_two_functions_of_one_name():
    text = "func.func @f() { return }\nfunc.func @f() { return }"
    assert 'the name "f" is given twice' in refused(text)


# -- dominance of values


def move_before(op, anchor):
    op.detach()
    anchor.parent.insert_before(op, anchor)


def test_use_before_definition_in_one_block():
    module = parse(function(
        "%y = arith.addf %x, %x : f32\n%z = arith.addf %y, %x : f32\nreturn %z : f32"
    ))  # fmt: skip
    ops = list(module.lookup("f").block.ops)
    move_before(ops[1], ops[0])
    message = message_of(module)
    assert "operand 0 (%y) is used before its definition" in message
    assert "made by arith.addf" in message


def test_value_of_a_nested_region_is_not_visible_outside():
    module = parse("""func.func @f(%c: i1, %x: f32) -> f32 {
      %r = kernel.if %c -> (f32) {
        %y = arith.addf %x, %x : f32
        kernel.yield %y : f32
      } else {
        kernel.yield %x : f32
      }
      return %r : f32
    }""")
    block = module.lookup("f").block
    inner = next(op for op in module.walk() if op.name == "arith.addf")
    block.last.set_operand(0, inner.results[0])
    assert "defined in a region that does not enclose" in message_of(module)
    block.last.set_operand(0, block.first.results[0])
    verify(module)
    other = block.first.regions[1].blocks[0].last
    other.set_operand(0, inner.results[0])
    assert "defined in a region that does not enclose" in message_of(module)


def test_isolated_operation_sees_nothing_from_outside():
    module, made, b = new_function()
    x = made.block.arguments[0]
    inner = ModuleOp.empty()
    b.insert(inner)
    inner.block.append(arith.AddFOp((x, x), (T.f32,)))
    b.create(func.ReturnOp, [x])
    assert "comes from outside of builtin.module, which is isolated" in message_of(module)


CFG = """
"func.func"() <{{sym_name = "f", function_type = (i1, f32) -> f32}}> ({{
^bb0(%c: i1, %x: f32):
  "test.branch"(%c)[^bb1, ^bb2] : (i1) -> ()
^bb1:
  %a = arith.addf %x, %x : f32
  "test.branch"()[^bb3] : () -> ()
^bb2:
  "test.branch"()[^bb3] : () -> ()
^bb3:
  return %{result} : f32
}}) : () -> ()
"""


def test_values_of_dominating_blocks_are_visible():
    verify(parse(CFG.format(result="x"), allow_unregistered=True))


def test_values_of_other_blocks_are_not():
    message = refused(CFG.format(result="a"), allow_unregistered=True)
    assert "operand 0 (%a) does not dominate this use" in message


def test_a_loop_of_blocks_and_a_forward_reference_between_blocks():
    text = """
    "func.func"() <{sym_name = "f", function_type = (i1) -> ()}> ({
    ^bb0(%c: i1):
      "test.branch"()[^bb2] : () -> ()
    ^bb1:
      %b = arith.addf %a, %a : f32
      "test.branch"(%c)[^bb1, ^bb3] : (i1) -> ()
    ^bb2:
      %a = arith.constant 1.0 : f32
      "test.branch"()[^bb1] : () -> ()
    ^bb3:
      "func.return"() : () -> ()
    }) : () -> ()"""
    verify(parse(text, allow_unregistered=True), uses=True)


def test_verifying_a_part_sees_the_values_around_it():
    module = parse("""func.func @f(%c: i1, %x: f32) -> f32 {
      %r = kernel.if %c -> (f32) { kernel.yield %x : f32 } else { kernel.yield %x : f32 }
      return %r : f32
    }""")
    verify(module.lookup("f").block.first)


def test_wrong_use_list_is_found_on_request():
    module = parse(function("%y = arith.addf %x, %x : f32\nreturn %y : f32"))
    module.lookup("f").block.arguments[0]._users = None
    verify(module)
    with pytest.raises(InvalidIR, match="use list"):
        verify(module, uses=True)


def test_region_knows_its_operation():
    module = parse(function("return %x : f32"))
    made = module.lookup("f")
    made.regions[0].parent = None
    assert "does not know the operation" in message_of(module)
    assert Region is type(made.regions[0])


# -- symbols

BOUND = """%s = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : (tensor<[s0] x f32>) -> index
{body}
func.return"""


def with_symbol(body):
    return f"func.func @f(%x: tensor<[s0] x f32>) {{\n{BOUND.format(body=body)}\n}}"


def test_bound_symbol_may_be_mentioned():
    verify(parse(with_symbol("%y = graph.undefined : tensor<[s0, s0*2] x f32>")))


def test_argument_with_an_unbound_symbol():
    message = refused("func.func @f(%x: tensor<[s0] x f32>) {\nreturn\n}")
    assert "symbol 's0' in the type tensor<[s0] x f32> of argument 0 is bound by no" in message


@pytest.mark.parametrize("body, where", [
    ("%y = graph.undefined : tensor<[s1] x f32>", "the type tensor<[s1] x f32>"),
    ("%n = sym.value {dim = #sym<s1 + 1>} : index", "the attribute 'dim'"),
])  # fmt: skip
def test_symbol_that_is_not_bound(body, where):
    assert f"symbol 's1' in {where} is not bound here" in refused(with_symbol(body))


def test_symbol_is_bound_only_after_its_binder():
    text = """func.func @f(%n: index) {
      %m = sym.value {dim = #sym<u0>} : index
      %u = sym.bind %n {symbol = "u0"} : (index) -> index
      return
    }"""
    assert "symbol 'u0'" in refused(text)


def test_symbol_bound_twice():
    text = with_symbol('%t = sym.bind %s {symbol = "s0"} : (index) -> index')
    assert "'s0' is bound a second time" in refused(text)


def test_result_whose_size_is_bound_from_itself():
    verify(parse("""func.func @f(%x: tensor<4xf32>) {
      %y = graph.call_aten %x {callee = "aten.nonzero.default", arguments = {self = #aten.operand<0>}} : (tensor<4xf32>) -> tensor<[u0, 1] x i64>
      %u = sym.bind_size %y {dim = 0 : i64, symbol = "u0"} : (tensor<[u0, 1] x i64>) -> index
      return
    }"""))  # noqa: E501


def test_symbols_of_one_function_are_unknown_in_another():
    text = with_symbol("") + (
        "\nfunc.func @g() {\n%n = sym.value {dim = #sym<s0>} : index\nreturn\n}"
    )
    assert "symbol 's0' in the attribute 'dim'" in refused(text)


LOOP = """func.func @f(%x: tensor<[8] x f32, strides [1]>) {{
  %y = loop.compute par(i: 8) -> map {{
    %a = loop.read %x[{index}] : f32
    loop.yield %a
  }} : tensor<[8] x f32, strides [1]>
  {after}
  return
}}"""


def test_axes_are_known_inside_of_their_compute():
    verify(parse(LOOP.format(index="i", after="")))
    assert "symbol 'j'" in refused(LOOP.format(index="j", after=""))
    after = "%n = sym.value {dim = #sym<i>} : index"
    assert "symbol 'i'" in refused(LOOP.format(index="i", after=after))


def test_placeholder_without_its_operand():
    assert "symbol '_0'" in refused(LOOP.format(index="_0", after=""))


def test_kernel_binds_its_symbols():
    text = """kernel.func @k(%n: index, %begin: index, %end: index) attributes {{target = "cpu", symbols = ["s0"], grid = #sym<{grid}>}} {{
      %m = sym.value {{dim = #sym<s0*2>}} : index
      kernel.return
    }}"""  # noqa: E501
    verify(parse(text.format(grid="s0")))
    assert "symbol 's1' in the attribute 'grid'" in refused(text.format(grid="s1"))
