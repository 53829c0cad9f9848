"""ATen operators on the graph level: values and dtypes are exactly torch's."""

from __future__ import annotations

import math

import pytest
import torch

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassContext, PassManager

F = torch.nn.functional
floats = torch.tensor([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0, math.nan, math.inf, -math.inf])
ints = torch.tensor([-7, -3, 0, 2, 5])
divisors = torch.tensor([2, -2, 3, -3, 7])
bools = torch.tensor([True, False, True, True, False])
matrix = torch.arange(12.0).reshape(3, 4).sin()


def converted(fn, *args, dynamic=False):
    module = irc.trace(fn, args, dynamic=dynamic)
    context = PassManager.parse("convert-aten-to-graph,canonicalize,cse").run(module, PassContext())
    irc.verify(module)
    return module, context


def calls(module):
    return [op.callee for op in module.walk() if op.name == "graph.call_aten"]


CASES = {
    "int plus float number": (lambda x: x + 1.5, ints),
    "bool plus int": (lambda x, y: x + y, bools, ints),
    "int plus rank-0 float": (lambda x, y: x + y, ints, torch.tensor(2.5, dtype=torch.float64)),
    "bf16 times f32 number": (lambda x: x * 1.01, floats.bfloat16()),
    "bf16 plus f32": (lambda x, y: x + y, floats.bfloat16(), floats),
    "uint8 wraps": (lambda x: x - 3, torch.tensor([0, 2, 250], dtype=torch.uint8)),
    "int8 wraps": (lambda x: x * 3, torch.tensor([100, -100], dtype=torch.int8)),
    "true division of ints": (lambda x, y: x / y, ints, divisors),
    "floor division": (lambda x, y: x // y, ints, divisors),
    "trunc division": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), ints, divisors),
    "remainder": (lambda x, y: x % y, ints, divisors),
    "fmod": (lambda x, y: torch.fmod(x, y), ints, divisors),
    "float remainder": (lambda x: x % -1.5, floats),
    "float floor division": (lambda x: x // 0.7, floats),
    "int power": (lambda x: x**3, ints),
    "float power": (lambda x: x**2.5, floats),
    "clamp keeps NaN": (lambda x: x.clamp(-1, 2), floats),
    "maximum propagates NaN": (lambda x: torch.maximum(x, x.flip(0)), floats),
    "fmax ignores NaN": (lambda x: torch.fmax(x, x.flip(0)), floats),
    "isfinite": (lambda x: (x.isfinite(), x.isnan(), x.isinf(), x.signbit()), floats),
    "comparison with a number": (lambda x: (x > 0.5, x == 2), ints),
    "bool arithmetic": (lambda x, y: (x + y, x * y, x ^ y, ~x), bools, bools.flip(0)),
    "shifts beyond the width": (lambda x: (x << 70, x >> 70, x << 2), ints),
    "sum of bools": (lambda x: x.sum(), bools),
    "sum of int32": (lambda x: x.sum(0), ints.int()),
    "mean of bf16": (lambda x: x.bfloat16().mean(1), matrix),
    "any and all": (lambda x: (x.any(), (x > 0).all(0)), matrix),
    "max with index": (lambda x: x.max(1), matrix),
    "cummax": (lambda x: x.cummax(1), torch.tensor([[1.0, math.nan, 3.0, 3.0]])),
    "argmax finds NaN": (lambda x: x.argmax(), floats),
    "var of one": (lambda x: x.var(1), matrix[:, :1]),
    "softmax": (lambda x: (x.softmax(1), x.log_softmax(0)), matrix),
    "logsumexp of -inf": (lambda x: x.logsumexp(0), torch.full((3,), -math.inf)),
    "where promotes": (lambda x, y: torch.where(x > 0, x, y), ints, floats[:5]),
    "masked_fill": (lambda x: x.masked_fill(x > 2, -1.5), floats),
    "round half to even": (lambda x: x.round(), torch.tensor([0.5, 1.5, 2.5, -0.5])),
    "float to int": (lambda x: x.to(torch.int32), torch.tensor([1.9, -1.9, 0.0])),
    "arange": (lambda x: torch.arange(1, 7, 2) + x.sum().long() * 0, floats),
    "arange of integers from floats": (
        lambda x: (torch.arange(5, -4, -1.0, dtype=torch.int64) + x.sum().long() * 0,
                   torch.arange(-0.7, -9, -2.9, dtype=torch.int32),
                   torch.arange(0, 4, 1.5, dtype=torch.uint8)), matrix),
    "slices": (lambda x: (x[:, -2:], x[::2], x[1], x[-1:, 1:3]), matrix),
    "negative index": (lambda x, i: x[i], matrix, torch.tensor([-1, 0])),
    "two indices": (lambda x, i: x[:, i][:, :, None] + x[i, i], matrix, torch.tensor([2, 0])),
    "index_put adds": (
        lambda x, i: x.index_put((i,), x[:2], accumulate=True), matrix, torch.tensor([1, 1])),
    "gather": (lambda x, i: x.gather(1, i), matrix, torch.tensor([[0, 3], [1, 1], [2, 0]])),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, x), matrix, torch.zeros(3, 4).long()),
    "unfold": (lambda x: x.unfold(1, 2, 1), matrix),
    "as_strided": (lambda x: x.as_strided((2, 3), (1, 2), 1), matrix),
    "as_strided of a view": (lambda x: x[1:].as_strided((2, 2), (4, 1)), matrix),
    "as_strided of an argument with an offset": (
        lambda x: x.as_strided((2,), (1,), 5), matrix.reshape(-1)[4:8]),
    "pad": (lambda x: (F.pad(x, (1, 2), value=3.0), F.pad(x, (-1, 1))), matrix),
    "roll and repeat": (lambda x: (x.roll(2, 1), x.repeat(2, 1, 2)), matrix),
    "tril": (lambda x: (x.tril(-1), x.triu(1)), matrix),
    "diagonals": (lambda x: (x.diagonal(1), torch.diag_embed(x, 1)), matrix),
    "max_pool2d": (
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        torch.arange(50.0).reshape(1, 2, 5, 5).cos()),
    "adaptive_avg_pool over windows that differ": (
        lambda x: (F.adaptive_avg_pool2d(x, (3, 7)), F.adaptive_avg_pool2d(x[0], (2, 5)),
                   F.adaptive_avg_pool3d(x, (1, 3, 4))),
        torch.arange(50.0).reshape(1, 2, 5, 5).cos()),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), matrix),
    "batch_norm": (
        lambda x: torch.ops.aten._native_batch_norm_legit_no_training(
            x, x[0, :, 0], x[1, :, 0], x[1, :, 1], x[0, :, 1].abs(), 0.1, 1e-3),
        torch.arange(24.0).reshape(2, 3, 4).cos()),
    "batch_norm_without_parameters": (
        lambda x: torch.ops.aten._native_batch_norm_legit_no_training(
            x, None, None, x[0, :, 0].float(), x[0, :, 1].abs().float(), 0.1, 1e-3)[0],
        torch.arange(24.0).reshape(2, 3, 4).cos().to(torch.bfloat16)),
    "gelu": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh")), matrix),
    "one sign of infinity": (lambda x: (x.isposinf(), x.isneginf(), x.neg().isposinf()), floats),
    "integers are finite": (
        lambda x: (x.isposinf(), x.isneginf(), x.isnan(), x.isinf(), x.isfinite()), ints),
    "float powers": (
        lambda x: tuple(x**e for e in (-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.0, 1.5)), floats),
    "integer powers": (lambda x: tuple(x**e for e in (0, 1, 2, 3, 4, 5)), ints),
    "powers of a number": (lambda x: (2**x, 2.0**x, 1**x), ints.abs()),
}  # fmt: skip


@pytest.mark.parametrize(
    ("exponent", "names"),
    [(-1, ["reciprocal"]), (-0.5, ["rsqrt"]), (0.5, ["sqrt"]), (1, []), (2, ["mul"]),
     (3, ["mul", "mul"]), (4, ["full", "pow"]), (0, ["full", "pow"]), (-2, ["full", "pow"])],
)  # fmt: skip
def test_powers_are_products_and_roots(exponent, names):
    module, _ = converted(lambda x: x**exponent, floats)
    found = [op.name.partition(".")[2] for op in module.lookup("main").block.ops][:-1]
    assert found == names


def test_negative_powers_of_integers_are_left_to_aten():
    module, _ = converted(lambda x: torch.ops.aten.pow.Tensor_Scalar(x, -1), ints.abs() + 1)
    assert calls(module) == ["aten.pow.Tensor_Scalar"]


@pytest.mark.parametrize("name", CASES)
def test_values_and_dtypes_equal_eager(name):
    fn, *args = CASES[name]
    module, _ = converted(fn, *args)
    assert calls(module) == []
    expected = torch.utils._pytree.tree_leaves(fn(*args))
    actual = irc.run(module, *args)
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[1:-1] + x[2:],
        lambda x: torch.cat([x, x[:, :1]], 1).mean(1, keepdim=True),
        lambda x: x.reshape(-1).unfold(0, 3, 2).sum(1),
        lambda x: x.t().contiguous().view(-1)[::3],
        lambda x: x.roll(1, 0) - torch.arange(x.shape[1]),
        lambda x: F.pad(x, (x.shape[0], 1)).cumsum(1),
        lambda x: F.adaptive_avg_pool2d(x[None], (4, 3)),
    ],
)
def test_symbolic_sizes_serve_other_sizes(fn):
    module, _ = converted(fn, torch.randn(6, 4), dynamic=True)
    assert calls(module) == []
    for shape in ((6, 4), (5, 7), (9, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(irc.run(module, x)[0], fn(x))


def test_what_has_no_converter_is_called_and_says_why():
    module, context = converted(lambda x: torch.linalg.inv(x @ x.t()), torch.randn(3, 3))
    assert "aten.mm.default" in calls(module)
    assert any("left to ATen" in remark.message for remark in context.remarks)
    call = next(op for op in module.walk() if op.name == "graph.call_aten")
    assert [tuple(d) for d in call.eager_strides] == [(3, 1)]
    assert [tuple(d) for d in call.operand_strides] == [(3, 1), (1, 3)]


def test_random_calls_are_marked():
    module, _ = converted(lambda x: torch.rand_like(x), torch.ones(3))
    (call,) = [op for op in module.walk() if op.name == "graph.call_aten"]
    assert call.random and not call.is_removable()


def test_mutation_needs_functionalization_first():
    with pytest.raises(InvalidIR, match="functionalize first"):
        converted(lambda x: x.mul_(2), torch.ones(3))


def test_argument_strides_move_to_the_function():
    module, _ = converted(lambda x: x + 1, torch.ones(3, 2).t())
    function = module.lookup("main")
    assert function.block.arguments[0].type.strides is None
    assert tuple(function.arg_info[0].get("strides")) == (1, 2)
    assert tuple(function.result_info[0].get("strides")) == (1, 2)


def test_windows_of_a_tensor_without_strides_stay_a_call():
    module = irc.parse("""
        func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> attributes {level = "aten"} {
          %y = aten.as_strided.default %x {arguments = {self = #aten.operand<0>,
              size = [3 : i64, 2 : i64], stride = [2 : i64, 1 : i64], storage_offset = 0 : i64}}
              : (tensor<2x3xf32>) -> tensor<3x2xf32>
          func.return %y : tensor<3x2xf32>
        }""")
    PassManager.parse("convert-aten-to-graph").run(module, PassContext())
    assert calls(module) == ["aten.as_strided_copy.default"]


@pytest.mark.fault("V13")
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 2.0])
@pytest.mark.parametrize("correction", [0, 1])
def test_the_variance_of_one_number_without_dimensions(number, correction):
    import irc

    x = torch.tensor(number)
    for f in (torch.var, torch.std):
        got = irc.compile(lambda x, f=f: f(x, correction=correction), (x,))(x)
        torch.testing.assert_close(got, f(x, correction=correction), equal_nan=True)
