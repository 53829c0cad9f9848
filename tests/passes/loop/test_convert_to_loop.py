"""What becomes a compute, what stays on the loop level, and which roundings are numbered."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.diagnostics import IRCError
from irc.passes.common.bodies import Body, axis
from irc.passes.loop.convert_to_loop.convert_to_loop import _is_rounding
from irc.passes.loop.convert_to_loop.moves import in_range
from irc.passes.loop.convert_to_loop.scalar_semantics import POINTWISE
from irc.passes.loop.convert_to_loop.support import TO_LOOP, is_complex, is_splat
from tests.passes.converters import without
from tests.passes.loop.texts import body_of, computes, expanded, parsed, ran

ARGUMENTS = "%x: f32[4, 6], %v: f32[4], %n: index, %z: Z"
COMPLEX = "tensor<[4] x complex<f32>, strides [1]>"
CALL = """%c = graph.call_aten {0} {{arguments = {{self = #aten.operand<0>}},
  callee = "aten.neg.default", eager_strides = [#sym.dims<[1]>]}} : (f32[4]) -> f32[4]\n"""


def module_of(body: str, results: str = ""):
    return parsed(expanded(ARGUMENTS).replace("Z", COMPLEX), body.replace("Z", COMPLEX), results,
                  "layout")  # fmt: skip


def converted(body: str, results: str = "") -> tuple[list[str], int]:
    """The names of the operations afterwards, and how many were converted."""
    module = module_of(body, results)
    context = ran(module, "convert-to-loop")
    (function,) = module.ops
    assert function.attributes["level"].value == "loop"
    names = [op.name.replace("loop.", "").replace("graph.", "") for op in function.block.ops]
    return names[:-1], context.statistics["convert-to-loop", "converted"]


SIZE = """%s = sym.bind_size %w {dim = 0 : i64, hint = 5 : i64, minimum = 2 : i64,
  maximum = 9 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index\n"""
SPLAT = "%k = graph.constant {value = dense<2.0> : tensor<4xf32>} : f32[4]\n"
VALUES = "%k = graph.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : f32[4]\n"
SUM = "%y = graph.add %k, %v : (f32[4], f32[4]) -> f32[4]\n"
CASES = {
    "an operation": ("%y = graph.exp %v : (f32[4]) -> f32[4]\n", ["compute"], 1),
    "with an attribute of a view": (
        "%y = graph.exp %v {view} : (f32[4]) -> f32[4]\n", ["compute"], 1),
    "two": ("%e = graph.exp %v : (f32[4]) -> f32[4]\n%y = graph.neg %e : (f32[4]) -> f32[4]\n",
            ["compute", "compute"], 2),
    "of which one is not used": (
        "%e = graph.exp %v : (f32[4]) -> f32[4]\n%y = graph.neg %v : (f32[4]) -> f32[4]\n",
        ["compute"], 2),
    "a splat": (SPLAT + SUM, ["compute", "compute"], 2),
    "a constant of one element": (
        "%k = graph.constant {value = dense<[2.0]> : tensor<1xf32>} : f32[1]\n"
        "%y = graph.neg %k : (f32[1]) -> f32[1]\n", ["compute", "compute"], 2),
    "a constant": (VALUES + SUM, ["constant", "compute"], 1),
    "a constant that is not used": (VALUES + "%y = graph.exp %v : (f32[4]) -> f32[4]\n",
                                    ["compute"], 1),
    "a splat for a call": (SPLAT + CALL.format("%k").replace("%c", "%y"),
                           ["constant", "call_aten"], 0),
    "a splat for a call and a compute": (SPLAT + CALL.format("%k") + SUM,
                                         ["constant", "call_aten", "compute"], 1),
    "a view": ("%y = graph.permute %x {permutation = array<i64: 1, 0>, view} : (f32[4, 6]) -> "
               "tensor<[6, 4] x f32, strides [1, 6]>\n", ["layout.view"], 1),
    "a permutation": ("%y = graph.permute %x {permutation = array<i64: 1, 0>} : (f32[4, 6]) -> "
                      "f32[6, 4]\n", ["compute"], 1),
    "a copy": ("%y = graph.copy %v : (f32[4]) -> f32[4]\n", ["compute"], 1),
    "a copy of complex numbers": ("%y = graph.copy %z : (Z) -> Z\n", ["call_aten"], 1),
    "a copy of the layout of complex numbers": ("%y = layout.copy %z : (Z) -> Z\n",
                                                ["call_aten"], 1),
    "a view of complex numbers": (
        "%y = graph.reshape %z {view} : (Z) -> "
        "tensor<[4, 1] x complex<f32>, strides [1, 1]>\n",
        ["layout.view"], 1),
    "a complex constant": (
        "%y = graph.constant {value = dense<(1.0, -2.0)> : tensor<4xcomplex<f32>>} : Z\n",
        ["constant"], 0),
    "a scalar": ("%y = graph.from_scalar %n : (index) -> i64[]\n", ["from_scalar"], 0),
    "filled with a scalar": ("%y = graph.full %n : (index) -> f32[4]\n",
                             ["from_scalar", "compute"], 1),
    "filled with a number": ("%y = graph.full {value = 2.0 : f32} : f32[4]\n", ["compute"], 1),
    "a call": (CALL.format("%v").replace("%c", "%y"), ["call_aten"], 0),
    "a scalar operation": ("%y0 = arith.addi %n, %n : index\n"
                           "%y = graph.from_scalar %y0 : (index) -> i64[]\n",
                           ["arith.addi", "from_scalar"], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_a_compute(name):
    body, wanted, count = CASES[name]
    type_ = expanded(body).rpartition(" ->" if "->" in body.splitlines()[-1] else " :")[2].strip()
    module = module_of(body)
    (function,) = module.ops
    returned = [op for op in function.block.ops if op.results and op.results[0].name_hint == "y"]
    function.return_op.operands = [returned[0].results[0]]
    function.refresh_type()
    context = ran(module, "convert-to-loop")
    names = [op.name.replace("loop.", "").replace("graph.", "") for op in function.block.ops]
    assert names[:-1] == wanted, type_
    assert context.statistics["convert-to-loop", "converted"] == count
    assert function.return_op.operands[0].name_hint == "y"


def test_numbers_of_symbols():
    """What kernels compute of sizes is computed there; what the host does stays a scalar."""
    arguments = "%w: tensor<[s0] x f32, strides [1]>"
    for scalar, names in (
        ("", ["sym.bind_size", "loop.compute"]),
        ("%s = sym.value {dim = #sym<s0*2 + 1>} : index\n",
         ["sym.bind_size", "sym.value", "loop.compute"]),
        ("%s = sym.value {dim = #sym<floordiv(s0, 2)>} : index\n",
         ["sym.bind_size", "sym.value", "loop.compute"]),
        ("%s = sym.value {dim = #sym<pow(s0, s0)>} : index\n",
         ["sym.bind_size", "sym.value", "graph.from_scalar"]),
    ):  # fmt: skip
        body = SIZE.replace("%s", "%s9") + scalar
        use = f"%y = graph.from_scalar {'%s' if scalar else '%s9'} : (index) -> i64[]\n"
        module = parsed(arguments, body + use, "%y: i64[]", "layout")
        ran(module, "convert-to-loop")
        (function,) = module.ops
        assert [op.name for op in function.block.ops][:-1] == names, scalar
        full = use.replace("from_scalar", "full").replace("i64[]", "f32[4]")
        module = parsed(arguments, body + full, "%y: f32[4]", "layout")
        ran(module, "convert-to-loop")
        assert ("index" in body_of(computes(module)[0])) == (names[-1] == "loop.compute")


NARROW = "%n0 = graph.cast %v : (f32[4]) -> {0}[4]\n"
TO = "%{1} = graph.cast %n0 : ({0}[4]) -> f32[4]\n"
NEG = "%e = graph.neg %n0 : ({0}[4]) -> {0}[4]\n"
ROUNDINGS = {
    "widened": (TO, "", False), "given to the caller": ("", "%n0: {0}[4]", False),
    "computed with": (NEG, "", True), "widened twice": (TO + TO.replace("%{1}", "%{1}2"), "", True),
    "widened and computed with": (TO + NEG, "", True), "not used": ("", "", True),
    "widened and given": (TO, "%n0: {0}[4]", True),
    "seen": ("%e = graph.reshape %n0 {{view}} : ({0}[4]) -> {0}[2, 2]\n", "", True),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("element", ["bf16", "f16", "f64", "f8E5M2", "i64", "i32", "i16"])
def test_which_casts_are_roundings(name, element):
    """To 16 bits of a float, for more than one reader or for one that is no cast."""
    uses, results, wanted = ROUNDINGS[name]
    module = module_of((NARROW + uses).format(element, "w"), results.format(element))
    (cast, *_) = (op for op in module.walk() if isinstance(op, graph.Cast))
    assert _is_rounding(cast) is (wanted and element in ("bf16", "f16"))


def test_only_casts_are_numbered():
    """A tensor filled with a number is narrowed, too, but by nothing that the program says."""
    body = "%y = graph.full %g : (f64) -> bf16[4]\n%e = graph.neg %y : (bf16[4]) -> bf16[4]\n"
    module = parsed("%g: f64", body, "%y: bf16[4], %e: bf16[4]", "layout")
    ran(module, "convert-to-loop")
    narrowings = [op for op in module.walk() if op.name == "arith.truncf"]
    assert narrowings and not any("rounding" in op.attributes for op in narrowings)


def test_what_is_complex_and_what_is_a_splat():
    module = module_of(SPLAT + VALUES.replace("%k", "%l"))
    arguments = {v.name_hint: v for v in next(iter(module.ops)).block.arguments}
    assert is_complex(arguments["z"])
    assert not is_complex(arguments["x"]) and not is_complex(arguments["n"])
    splat, values = (op for op in module.walk() if isinstance(op, graph.Constant))
    assert is_splat(splat) and not is_splat(values)
    type_ = splat.attributes["value"].type
    splat.attributes["value"] = A.ResourceAttr("0" * 64, type_)
    assert not is_splat(splat)


def test_roundings_are_numbered():
    """In their order, without a cast of one reader that widens again."""
    body = (NARROW + NEG + NARROW + TO + NARROW + NEG).format("bf16", "w")
    for k in range(3):
        head, _, rest = body.partition("%n0 = ")
        uses, again, later = rest.partition("%n0 = ")
        uses = uses.replace("%n0", f"%c{k}").replace("%e", f"%e{k}")
        body = f"{head}%c{k} = {uses}{again}{later}"
    module = module_of(body, "%e0: bf16[4], %w: f32[4], %e2: bf16[4]")
    ran(module, "convert-to-loop")
    found = {
        op.parent_op.results[0].name_hint: op.attributes["rounding"].value
        for op in module.walk() if op.name == "arith.truncf" and "rounding" in op.attributes
    }  # fmt: skip
    assert found == {"c0": 0, "c2": 1}


def test_what_has_no_form():
    """Without its rule, or its scalar code, an operation is named with the reason."""
    body = "%y = graph.exp %v : (f32[4]) -> f32[4]\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(POINTWISE, "exp")
        with pytest.raises(IRCError, match="there is no scalar code for 'exp'"):
            converted(body)
        assert converted(body.replace("exp", "neg"))[1] == 1
    with without(TO_LOOP, graph.Exp):
        with pytest.raises(IRCError, match="'graph.exp' from .*: it has no form on the loop level"):
            converted(body)
        assert converted(CALL.format("%v")) == (["call_aten"], 0)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(None, None, None), (0, None, "sge"), (None, 4, "slt"), (2, 4, "sge slt")],
)
def test_ranges(low, high, wanted):
    body = Body()
    mask = in_range(body, axis(0), low, high)
    found = [op.attributes["predicate"].value for op in body.block.ops if op.name == "arith.cmpi"]
    assert found == (wanted.split() if wanted else [])
    assert (mask is None) == (wanted is None)
    names = [op.name for op in body.block.ops]
    assert names.count("arith.andi") == (wanted == "sge slt")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_sum_of_one_number_starts_at_zero(dtype):
    x = torch.tensor(-0.0, dtype=dtype)
    total = irc.compile(torch.sum, (x,))(x)
    assert total.dtype is dtype and not total.signbit()
    assert irc.compile(torch.prod, (x,))(x).signbit()
