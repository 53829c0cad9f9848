"""Boundaries between levels: what each refuses, at once and with its reasons; users' converters;
and that every converter of an ATen operator is reached."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import aten, graph, host  # noqa: E402
from irc.dialects.aten import qualified_name  # noqa: E402
from irc.dialects.aten.schema import find_overload  # noqa: E402
from irc.frontend.decompositions import names  # noqa: E402
from irc.frontend.decompositions.table import decompositions  # noqa: E402
from irc.interp.core import interprets  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir.definition import Op, attribute, operand, region, result  # noqa: E402
from irc.ir.diagnostics import InvalidIR, UserError  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.ir.rewrite.conversion import (  # noqa: E402
    MAX_KINDS,
    Conversion,
    ConversionTarget,
    conversion,
    decline,
)
from irc.ir.traits import Pure, SameOperandsAndResultType  # noqa: E402
from irc.passes.graph.convert_aten.support import TO_GRAPH  # noqa: E402
from irc.passes.loop.convert_to_loop import scalar_semantics  # noqa: E402
from irc.runtime.program_cache import pipeline_key  # noqa: E402
from tests.ir_files import run_opt  # noqa: E402
from tests.passes.converters import converting  # noqa: E402

BOUNDARIES = ("convert-aten-to-graph", "convert-to-loop", "bufferize")
T = "tensor<4xf32>"


class Scale(Op):
    """The operand times `by`.

    `%y = converters_test.scale %x {by = 2.0 : f64} : tensor<4xf32>`
    """

    name = "converters_test.scale"
    traits = frozenset({Pure, SameOperandsAndResultType})
    source = operand()
    by = attribute(A.FloatAttr)
    scaled = result()


@interprets(Scale)
def _scale(frame, op):
    return frame[op.source] * op.by


def program(*lines, results=T, value="%y"):
    body = "".join(f"  {line}\n" for line in lines)
    head = f"func.func @main(%x: {T}) -> {results} {{\n"
    return f"{head}{body}  func.return {value} : {results}\n}}\n"


def lowered(text, **rest):
    module = irc.parse(text, filename="model.mlir")
    PassManager.parse("lower-to-cpu", verify="each").run(module, **rest)
    return module


TWICE = program(
    f"%a = converters_test.scale %x {{by = 2.5 : f64}} : {T}",
    f"%b = graph.exp %a : ({T}) -> {T}",
    f"%y = converters_test.scale %b {{by = 0.5 : f64}} : {T}",
)


# -- what is refused


def test_all_that_no_boundary_takes_is_listed_with_its_lines():
    with pytest.raises(InvalidIR) as caught:
        lowered(TWICE)
    text = str(caught.value)
    assert "[convert-to-loop]" in text and "2 operation(s) could not be converted" in text
    assert "'converters_test.scale', 2 of them, from model.mlir:2, model.mlir:4: it has no" in text
    assert '@irc.converts(OpClass, to="convert-to-loop")' in text


WRITES = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = aten.add.Tensor %x, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = aten.add_.Tensor %a, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = aten.mul.Tensor %b, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = aten.relu_.default %a {arguments = {self = #aten.operand<0>}} : (tensor<4xf32>) -> tensor<4xf32>
  %e = aten.copy_.default %a, %y {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = aten.neg_.default %d {arguments = {self = #aten.operand<0>}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}
"""  # noqa: E501


def test_writes_that_are_left_are_refused_together():
    """From the aten level, with every converter's reason; what uses their results is no failure."""
    with pytest.raises(InvalidIR) as caught:
        PassManager.parse("convert-aten-to-graph").run(irc.parse(WRITES, filename="model.mlir"))
    text = str(caught.value)
    assert "[convert-aten-to-graph]" in text and "4 operation(s) could not be converted" in text
    why = "leave_to_aten: it writes its operands; run functionalize first"
    assert f"'aten.add_.Tensor' from model.mlir:4: {why}" in text
    assert f"'aten.relu_.default' from model.mlir:6: {why}" in text
    where = "'aten.copy_.default' from model.mlir:7"
    assert f"{where}: update_input: it writes a value that is no argument" in text
    assert "'aten.neg_.default' from model.mlir:8: 'aten.neg_.default' is given one storage" in text
    assert text.count(why) == 3 and "aten.mul" not in text


def test_the_host_boundary_lists_what_it_has_no_place_for():
    text = program(
        f"%a = graph.exp %x : ({T}) -> {T}", f"%y = func.call @main(%a) : ({T}) -> {T}"
    )
    module = irc.parse(text, filename="model.mlir")
    with pytest.raises(InvalidIR) as caught:
        PassManager.parse("bufferize").run(module)
    text = str(caught.value)
    assert "[bufferize]" in text and "2 operation(s) could not be converted" in text
    for name, line in (("graph.exp", 2), ("func.call", 3)):
        assert f"'{name}' from model.mlir:{line}: it has no place in a host program" in text


def tanh_twice(x):
    y = torch.tanh(x)
    return (y * 2).erf() + torch.tanh(y + 1)


def lines_of(function, *numbers):
    return ", ".join(f"{__file__}:{function.__code__.co_firstlineno + n}" for n in numbers)


def check_report(text, function):
    assert "3 operation(s) could not be converted" in text and "[convert-to-loop]" in text
    why = "pointwise: there is no scalar code for"
    assert f"'graph.tanh', 2 of them, from {lines_of(function, 1, 2)}: {why} 'tanh'" in text
    assert f"'graph.erf' from {lines_of(function, 2)}: {why} 'erf'" in text


def test_a_model_s_lines_are_listed_through_the_api_and_torch_compile(tmp_path, monkeypatch):
    options = {"dump_directory": str(tmp_path), "fx_graph_cache": False}
    for name in ("tanh", "erf"):
        monkeypatch.delitem(scalar_semantics.POINTWISE, name)
    with pytest.raises(InvalidIR) as caught:
        irc.compile(tanh_twice, (torch.randn(5),), options=options)
    check_report(str(caught.value), tanh_twice)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failed:
        torch.compile(tanh_twice, backend="irc", options=options)(torch.randn(5))
    check_report(str(failed.value), tanh_twice)


def test_irc_opt_lists_what_a_file_holds(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(TWICE)
    code, _, errors = run_opt(["--lower-to-cpu", str(path)])
    assert code == 1 and f"2 of them, from {path}:2, {path}:4: it has no form on the" in errors


def test_many_failures_are_counted():
    lines = [f"%v{k} = converters_test.scale %x {{by = {k}.5 : f64}} : {T}" for k in range(40)]
    with pytest.raises(InvalidIR) as caught:
        lowered(program(*lines, value="%v7").replace("} :", ", keep} :"))
    text = str(caught.value)
    assert "'converters_test.scale'" in text and len(text) < 2000


def test_kinds_of_failures_are_bounded():
    boundary = fresh()
    ops = [graph.Exp([], []) for _ in range(MAX_KINDS + 5)]
    error = boundary.failure({op: [f"reason {k}"] for k, op in enumerate(ops)})
    text = str(error)
    assert f"{MAX_KINDS + 5} operation(s)" in text and "reason 19" in text
    assert "reason 20" not in text and "and 5 'graph.exp'" in text


def test_what_stays_behind_a_boundary_is_refused_where_each_pass_is_verified(monkeypatch):
    boundary = conversion("convert-to-loop")
    monkeypatch.setattr(boundary, "apply", lambda ops, state: 0)
    module = irc.parse(program(f"%y = graph.exp %x : ({T}) -> {T}"), filename="model.mlir")
    PassManager.parse("assign-layouts").run(module)
    with pytest.raises(InvalidIR, match=r"'graph.exp' from model.mlir:2: it is left behind"):
        PassManager.parse("convert-to-loop", verify="each").run(module.clone())
    PassManager.parse("convert-to-loop", verify="none").run(module)


# -- the framework


def fresh(**target):
    from irc.dialects import func

    return Conversion("a-test", func.FuncOp, ConversionTarget(**target), "it has no place here")


class Steps:
    """A state that notes what it is asked."""

    def __init__(self):
        self.seen = []

    def keep(self, op):
        self.seen.append(("keep", op.name))

    def failed(self, op):
        pass

    def convert(self, op, function):
        self.seen.append((function.__name__, op.name))
        function(op)


def ops_of(*lines):
    return list(irc.parse(program(*lines)).lookup("main").block.ops)


EXP, ADD = f"%y = graph.exp %x : ({T}) -> {T}", f"%y = graph.add %x, %x : ({T}, {T}) -> {T}"


def test_the_nearest_rule_says_what_may_remain():
    target = ConversionTarget(
        legal=("graph",), illegal=(graph.PointwiseOp,),
        where={graph.Exp: lambda op: "keep" in op.attributes}, others=False,
    )  # fmt: skip
    boundary = Conversion("a-test", graph.Exp, target, "")
    exp, add, _ = ops_of(EXP.replace("%y", "%e"), ADD)
    cast = ops_of(f"%y = graph.cast %x : ({T}) -> {T}")[0]
    assert [boundary.is_legal(op) for op in (exp, add, cast)] == [False, False, True]
    exp.attributes["keep"] = A.UNIT
    assert boundary.is_legal(exp) and not boundary.is_legal(ops_of(EXP)[1])


def test_converters_are_asked_in_turn_and_what_one_made_is_undone():
    boundary, steps = fresh(legal=("func",)), Steps()
    ops = ops_of(EXP)

    @boundary.converts("graph.exp")
    def last(op):
        assert op.prev is None

    @boundary.converts(graph.PointwiseOp, benefit=3)
    def first(op):
        irc.Builder.before(op).insert(op.clone())
        decline("too early")

    assert boundary.apply(ops, steps) == 1
    assert steps.seen == [
        ("first", "graph.exp"), ("last", "graph.exp"), ("keep", "func.return")]  # fmt: skip
    boundary.withdraw(last)
    with pytest.raises(InvalidIR, match="graph.exp.*first: too early"):
        boundary.apply(ops, steps)


def test_two_converters_of_one_benefit_are_refused():
    boundary = fresh(legal=("func",))
    boundary.converts("graph.exp")(lambda op: None)
    with pytest.raises(UserError, match="two converters of 'graph.exp' for a-test"):
        boundary.converts("graph.exp")(print)
    with pytest.raises(UserError, match="'func.return' remains as it is"):
        from irc.dialects import func

        boundary.converts(func.ReturnOp)(print)
    with pytest.raises(UserError, match="needs the operations"):
        boundary.converts()


def test_one_function_serves_several_operations_told_apart_by_data():
    boundary, seen = fresh(legal=("func",)), []

    @boundary.converts("graph.exp", sign=1)
    @boundary.converts("graph.add", sign=-1)
    def both(op, *, sign, bias=0):
        seen.append((op.name, sign, bias))

    class Calls(Steps):
        def convert(self, op, function):
            function(op)

    boundary.apply(ops_of(EXP.replace("%y", "%e"), ADD), Calls())
    assert seen == [("graph.exp", 1, 0), ("graph.add", -1, 0)]
    with pytest.raises(UserError, match=r"'both' is registered with \['sing'\]: it needs 'sign'"):
        boundary.converts("graph.mul", sing=1)(both)
    with pytest.raises(UserError, match="it takes no 'sing'"):
        boundary.converts("graph.mul", sign=1, sing=1)(both)
    with pytest.raises(UserError, match="it needs 'sign'"):
        boundary.converts("graph.mul")(both)


def test_a_function_that_is_defined_again_takes_its_own_place():
    boundary, steps = fresh(legal=("func",)), Steps()
    for number in (1, 2):

        @boundary.converts(graph.Exp)
        def again(op, number=number):
            steps.seen.append(number)

    boundary.apply(ops_of(EXP), steps)
    assert 2 in steps.seen and 1 not in steps.seen


def test_a_pass_that_is_no_boundary_is_an_error():
    with pytest.raises(UserError) as caught:
        irc.converts(graph.Exp, to="cse")
    assert "'cse' is no boundary" in str(caught.value)
    assert all(name in str(caught.value) for name in BOUNDARIES)


def test_a_crash_in_a_users_converter_names_its_line():
    def crash(c):
        raise KeyError("planted")

    with converting(conversion("convert-aten-to-graph"), crash, Scale):
        with pytest.raises(UserError) as caught:
            lowered(TWICE)
    line = crash.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}:" in str(caught.value) and "converter 'crash'" in str(caught.value)


# -- a user's operation, by one function


def scale_to_graph(c):
    return c.pointwise("mul", c.source, c.full(c.by, c.result))


def scale_to_loop(c, op):
    def value(body, at):
        by = body.constant(op.by, c.type.element)
        return body.op("arith.mulf", body.read(op.source, at), by)

    c.emit_map(value)


def scale_to_host(b, op):
    entries = {"self": aten.OperandAttr(0), "other": A.FloatAttr(op.by)}
    attributes = {"callee": A.StringAttr("aten.mul.Scalar"), "arguments": A.DictAttr(entries)}
    call = host.CallAtenOp(op.operands, op.result_types, attributes, (), op.location)
    b.replace(op, irc.Builder.before(op).insert(call))


@pytest.mark.parametrize(
    "to, function",
    [*zip(BOUNDARIES, (scale_to_graph, scale_to_loop, scale_to_host), strict=True)],
)
def test_a_users_operation_is_converted_at_any_boundary(to, function):
    x = torch.randn(4)
    expected = irc.run(irc.parse(TWICE), x)[0]
    with converting(conversion(to), function, Scale):
        module = lowered(TWICE, check_semantics="each")
        torch.testing.assert_close(irc.build(module)(x)[0], expected)


def test_what_waits_for_a_converter_that_is_gone_waits_no_more():
    for _ in range(2):
        with pytest.raises(InvalidIR, match="convert-to-loop"):
            lowered(TWICE)
        with converting(conversion("bufferize"), scale_to_host, Scale):
            lowered(TWICE)


def test_a_users_converter_of_an_operator_goes_before_irc_s():
    """It decides in torch.compile, too, and in every compile: nothing of it is in a key."""

    def sine(c):
        if c.result.rank == 2:
            decline("rows are irc's")
        return c.pointwise("cos", c.self_)

    x = torch.randn(7)
    assert pipeline_key("cse") is not None
    boundary = conversion("convert-aten-to-graph")
    with converting(boundary, sine, "aten.sin.default"):
        assert pipeline_key("cse") is None
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(torch.sin, backend="irc")(x), x.cos())
        rows = torch.randn(3, 3)
        torch.testing.assert_close(irc.compile(torch.sin, (rows,))(rows), rows.sin())
    torch.testing.assert_close(irc.compile(torch.sin, (x,))(x), x.sin())


def test_an_operator_with_a_users_converter_stays_whole():
    """torch would take it apart: the table of decompositions is made of the converters."""
    kept = torch.ops.aten.hardswish_backward.default
    assert kept in decompositions()
    with converting(TO_GRAPH, scale_to_graph, "aten.hardswish_backward.default"):
        assert kept not in decompositions()
    assert kept in decompositions()


class Both(Op):
    """What its region gives.

    `%y = converters_test.both %x ({...}) : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "converters_test.both"
    source = operand()
    body = region()
    value = result()


def test_what_remains_on_the_graph_level_keeps_its_regions():
    text = f"""
func.func @main(%x: tensor<[4] x f32, strides [1]>) -> {T} {{
  %a = aten.sin.default %x {{arguments = {{self = #aten.operand<0>}}}} : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>
  %y = converters_test.both %a ({{
    %i = graph.exp %a : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>
  }}) : (tensor<[4] x f32, strides [1]>) -> {T}
  func.return %y : {T}
}}
"""  # noqa: E501
    module = irc.parse(text)
    PassManager.parse("convert-aten-to-graph").run(module)
    (both,) = [op for op in module.walk() if isinstance(op, Both)]
    (inner,) = both.body.blocks[0].ops
    assert inner.operands[0] is both.source and both.source.defining_op.name == "graph.sin"
    assert inner.results[0].type is both.source.type and both.source.type.strides is None


# -- what is spent and told


def test_conversions_spend_no_fuel_and_tell_what_declined():
    from irc.ir.rewrite.fuel import Fuel

    module = irc.trace(lambda x: torch.sin(x) @ x, (torch.randn(3, 3),))
    context = PassContext(fuel=Fuel(0))
    PassManager.parse("convert-aten-to-graph").run(module, context)
    assert "graph.sin" in irc.print_op(module) and context.fuel.spent == 0
    told = [r.message for r in context.remarks]
    assert told == ["aten.mm.default is left to ATen: no converter"]
    assert context.statistics["convert-aten-to-graph", "ATen calls: aten.mm.default"] == 1


# -- every converter is reached

LISTED = {**names.names_of(names.APART), **names.names_of(names.PARTLY)}


@pytest.mark.fault("U11")
def test_every_converter_is_an_operator_of_torch_that_reaches_it_or_has_its_reason():
    table = decompositions()
    found = [key for key in TO_GRAPH.table if isinstance(key, str)]
    assert len(found) > 350
    for name in found:
        overload = find_overload(qualified_name(name))
        assert overload is not None, f"{name}: torch has no such operator"
        apart = overload in table
        why = LISTED.get(overload.overloadpacket.__name__)
        assert not apart or why, f"{name} is decomposed: its converter is never reached"


@pytest.mark.parametrize("to", BOUNDARIES[1:])
def test_every_converter_of_a_class_is_reached(to):
    """The class, or one made from it, may not remain by any rule that says so of all of them."""
    boundary = conversion(to)
    for key in boundary.table:
        assert isinstance(key, type) and issubclass(key, irc.ir.core.Operation)
        assert boundary.target.rule_of(key) is not True
