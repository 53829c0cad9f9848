"""The aten dialect: schemas, operations made on demand, encoded arguments."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import aten
from irc.dialects.aten.schema import find_schema, parse_schema
from irc.ir import attributes as A
from irc.ir.core import Block, Value
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.registry import lookup_op
from irc.ir.symbols import symbol
from irc.ir.types import FunctionType, IndexType, TensorType, f32, f64, i64

VECTOR = TensorType((4,), f32, (1,))


def values(count: int) -> list:
    return list(Block([VECTOR] * count).arguments)


def as_value(argument):
    return argument if isinstance(argument, Value) else None


def test_every_registered_schema_is_read_as_torch_reads_it():
    checked = 0
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        if not base.startswith(("aten::", "prims::")) or "_test" in base:
            continue
        theirs = torch._C._get_schema(base, overload)
        ours = parse_schema(str(theirs))
        assert [a.name for a in ours.arguments] == [a.name for a in theirs.arguments]
        for mine, his in zip(ours.arguments, theirs.arguments, strict=True):
            assert mine.has_default == his.has_default_value()
            if mine.has_default and mine.default == mine.default:
                assert mine.default == his.default_value, name
            assert mine.is_write == (his.alias_info is not None and his.alias_info.is_write)
        assert len(ours.returns) == len(theirs.returns)
        checked += 1
    assert checked > 2000


@pytest.mark.parametrize("text", ["aten::f(Tensor", "f(Tensor x) -> Tensor", "a::b(int x) ->", "@"])
def test_malformed_schema_is_an_error_with_its_column(text):
    with pytest.raises(UserError, match="column"):
        parse_schema(text)


@pytest.mark.parametrize("opened", ["a::b(", "a::b(int[] x=["])
def test_a_schema_that_is_nested_deeply_is_an_error(opened):
    """torch's own parser ends the process on the first of these."""
    with pytest.raises(UserError, match="column"):
        parse_schema(opened + opened[-1] * 5000)


def test_effects_come_from_the_schema():
    assert not find_schema("aten.add.Tensor").has_effect
    assert find_schema("aten.add_.Tensor").is_mutable
    assert find_schema("aten.rand.default").is_random
    assert find_schema("aten.view.default").returns_alias


def test_operation_is_made_on_demand_and_unknown_ones_are_not():
    assert lookup_op("aten.sub.Tensor").schema.name == "sub"
    assert lookup_op("aten.extern.prims.iota.default").qualified == "prims.iota.default"
    assert lookup_op("aten.no_such_operator.default") is None


DECLARED = """aten.schema {{schema = "mylib::scale({parameters}) -> Tensor"}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = aten.extern.mylib.scale.default %x {{arguments = {{{arguments}x = #aten.operand<0>}}}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}"""  # noqa: E501
BY = DECLARED.format(parameters="Tensor x, float by=2.0", arguments="by = 0.5 : f64, ")
TIMES = DECLARED.format(parameters="Tensor x, int times", arguments="times = 3 : i64, ")


@pytest.mark.fault("V16")
def test_a_declared_schema_belongs_to_its_module():
    for text, name in ((BY, "by"), (TIMES, "times"), (BY, "by")):
        module = irc.parse(text)
        irc.verify(module)
        again = irc.parse(irc.print_op(module, generic=True))
        for each in (module, again, module.clone()):
            call = next(op for op in each.walk() if isinstance(op, aten.AtenOp))
            assert [a.name for a in call.schema.arguments] == ["x", name]
    assert lookup_op("aten.extern.mylib.scale.default") is None
    with pytest.raises(UserError, match="unknown operation 'aten.extern.mylib.scale.default'"):
        irc.parse(BY.partition("\n")[2])
    with pytest.raises(InvalidIR, match="no argument 'times'"):
        irc.verify(irc.parse(TIMES.replace("int times", "float by")))


@pytest.mark.fault("V16")
def test_calls_find_the_schema_of_their_module():
    call = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call_aten %x {callee = "mylib.scale.default", arguments = {x = #aten.operand<0>}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}"""  # noqa: E501
    irc.verify(irc.parse(BY.partition("\n")[0] + "\n" + call))
    with pytest.raises(InvalidIR, match="argument 'times' is missing"):
        irc.verify(irc.parse(TIMES.partition("\n")[0] + "\n" + call))


@pytest.mark.fault("V16")
def test_one_module_declares_an_operator_in_one_way():
    text = BY + "\n" + TIMES.partition("\n")[0]
    with pytest.raises(InvalidIR, match="mylib.scale.default is declared in two ways"):
        irc.verify(irc.parse(text))
    irc.verify(irc.parse(BY + "\n" + BY.partition("\n")[0]))
    with pytest.raises(UserError, match="bad operator schema"):
        irc.parse('aten.schema {schema = "mylib::scale(Tensor"}')


def test_defaults_are_left_out_and_filled_in():
    x, y = values(2)
    op = aten.make_aten("aten.add.Tensor", [x, y], {"alpha": 1}, as_value, [VECTOR])
    assert op.arguments.get("alpha") is None
    assert aten.arguments_of(op) == {"self": x, "other": y, "alpha": 1}
    assert aten.bind_arguments(op) == ([x, y], {})
    op.verify_op()


def test_arguments_of_every_kind_round_trip():
    (x,) = values(1)
    size = symbol("s0") * 2
    op = aten.make_aten(
        torch.ops.aten.full.default, [[4, size], 1.5],
        {"dtype": torch.bfloat16, "device": torch.device("cpu")}, as_value, [VECTOR],
    )  # fmt: skip
    _, keywords = aten.bind_arguments(op)
    assert aten.arguments_of(op)["size"] == [4, size]
    assert aten.to_torch(keywords["dtype"]) is torch.bfloat16
    assert aten.to_torch(keywords["device"]) == torch.device("cpu")
    cat = aten.make_aten("aten.cat.default", [[x, x]], {}, as_value, [VECTOR])
    assert cat.operands == (x,)
    assert aten.arguments_of(cat)["tensors"] == [x, x]


def test_verifier_names_the_argument_that_is_wrong():
    (x,) = values(1)
    cls = lookup_op("aten.neg.default")
    missing = cls((x,), (VECTOR,), {"arguments": A.DictAttr({})})
    with pytest.raises(InvalidIR, match="'self' is missing"):
        missing.verify_op()
    entries = {"self": aten.OperandAttr(0), "other": A.IntegerAttr(1)}
    unknown = cls((x,), (VECTOR,), {"arguments": A.DictAttr(entries)})
    with pytest.raises(InvalidIR, match="no argument 'other'"):
        unknown.verify_op()
    text = cls((), (VECTOR,), {"arguments": A.DictAttr({"self": A.StringAttr("x")})})
    with pytest.raises(InvalidIR, match="not a tensor"):
        text.verify_op()


def test_a_complex_number_stands_for_a_tensor_as_other_numbers_do():
    (x,) = values(1)
    cls = lookup_op("aten.mul.Tensor")
    entries = {"self": aten.OperandAttr(0), "other": aten.encode(2j, lambda v: None)}
    cls((x,), (VECTOR,), {"arguments": A.DictAttr(entries)}).verify_op()
    entries["other"] = A.ArrayAttr([A.StringAttr("complicated"), A.FloatAttr(0.0)])
    with pytest.raises(InvalidIR, match='"complicated", not a tensor'):
        cls((x,), (VECTOR,), {"arguments": A.DictAttr(entries)}).verify_op()


@pytest.mark.parametrize("number", [f64, IndexType(), i64], ids=str)
def test_a_computed_number_stands_for_a_tensor_as_constants_do(number):
    """A batch norm of symbolic sizes multiplies by one: text that is verified takes it, too."""
    (x,) = values(1)
    cls = lookup_op("aten.mul.Tensor")
    entries = {"self": aten.OperandAttr(0), "other": aten.OperandAttr(1)}
    computed = Block((number,)).arguments[0]
    cls((x, computed), (VECTOR,), {"arguments": A.DictAttr(entries)}).verify_op()
    function = Block((FunctionType((), ()),)).arguments[0]
    with pytest.raises(InvalidIR, match="not a tensor"):
        cls((x, function), (VECTOR,), {"arguments": A.DictAttr(entries)}).verify_op()
    entries = {"self": aten.OperandAttr(0), "mat2": aten.OperandAttr(1)}
    product = lookup_op("aten.mm.default")
    with pytest.raises(InvalidIR, match="not a tensor"):
        product((x, computed), (VECTOR,), {"arguments": A.DictAttr(entries)}).verify_op()
