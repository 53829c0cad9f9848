"""Folds give the bits that the interpreter gives; identities hold for every operand."""

import itertools
import math
import random

import pytest

torch = pytest.importorskip("torch")

from irc.dialects import arith, arith_fold  # noqa: E402
from irc.dialects.builtin import ModuleOp  # noqa: E402
from irc.dialects.func import FuncOp, ReturnOp  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir.builder import Builder  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.ir.registry import lookup_op  # noqa: E402

INTS = [0, 1, -1, 2, 7, -8, 31, 32, 100, -100, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-40, 65504.0, 3e38, -3e38, math.inf, -math.inf, math.nan,
          1 / 3, 1.00390625]  # fmt: skip


def program(cls, values, type_, result=None, **attrs):
    """main() = op(constants)."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [], [result or type_])
    module.block.append(function)
    b = Builder.at_end(function.block)
    constants = [
        b.value(arith.ConstantOp, value=arith_fold.attribute_of(v, type_), result_types=type_)
        for v in values
    ]
    out = b.value(cls, *constants, result_types=result or type_, **attrs)
    b.create(ReturnOp, [out])
    return module, function


def check(module, function):
    """The value before and after canonicalize is equal, bit for bit; says whether it folded."""
    before = run(module)[0]
    PassManager.parse("canonicalize").run(module)
    after = run(module)[0]
    assert before == after or (before != before and after != after)
    if isinstance(before, float) and before == 0:
        assert math.copysign(1, before) == math.copysign(1, after)
    return isinstance(function.return_op.values[0].owner, arith.ConstantOp)


@pytest.mark.parametrize("name", sorted(arith_fold.INTEGER))
@pytest.mark.parametrize("type_", [T.i1, T.i8, T.i32, T.i64, T.index])
def test_integer_folds_equal_the_interpreter(name, type_):
    cls = lookup_op(f"arith.{name}")
    rng = random.Random(name)
    folded = 0
    for a, b in rng.sample(list(itertools.product(INTS, INTS)), 60):
        division = name.startswith(("div", "rem", "floor", "ceil"))
        if division and (
            arith_fold.wrap_integer(b, arith_fold.width_of(type_)) in (0, -1) or type_ is T.i1
        ):
            continue
        if name == "shrsi" and type_ is T.i1:
            continue
        folded += check(*program(cls, (a, b), type_))
    assert folded > 0 or type_ is T.i1


@pytest.mark.parametrize("name", sorted(arith_fold.FLOAT))
@pytest.mark.parametrize("type_", [T.f64, T.f32])
def test_float_folds_equal_the_interpreter(name, type_):
    cls = lookup_op(f"arith.{name}")
    for a, b in itertools.product(FLOATS, FLOATS):
        a, b = (arith_fold.round_float(v, type_) for v in (a, b))
        two_zeros = a == b == 0 and str(a) != str(b)
        assert check(*program(cls, (a, b), type_)) or (two_zeros and name[:3] in ("min", "max"))


@pytest.mark.parametrize("type_", [T.f16, T.bf16, T.f32])
def test_rounding_equals_torch(type_):
    rng = random.Random(3)
    dtype = {T.f16: torch.float16, T.bf16: torch.bfloat16, T.f32: torch.float32}[type_]
    for _ in range(3000):
        value = math.ldexp(rng.uniform(-1, 1), rng.randint(-150, 130))
        expected = torch.tensor(value, dtype=torch.float64).to(dtype).item()
        if type_ is T.bf16:  # torch converts f64 through f32, which rounds twice
            value = torch.tensor(value, dtype=torch.float32).item()
            expected = torch.tensor(value, dtype=torch.float32).to(dtype).item()
        assert arith_fold.round_float(value, type_) == expected


@pytest.mark.parametrize("predicate", arith.FLOAT_PREDICATES)
def test_float_comparisons_fold(predicate):
    for a, b in itertools.product(FLOATS, FLOATS):
        assert check(*program(arith.CmpFOp, (a, b), T.f64, T.i1, predicate=predicate))


@pytest.mark.parametrize("predicate", arith.INTEGER_PREDICATES)
@pytest.mark.parametrize("type_", [T.i1, T.i8, T.i64])
def test_integer_comparisons_fold(predicate, type_):
    for a, b in itertools.product(INTS, INTS):
        assert check(*program(arith.CmpIOp, (a, b), type_, T.i1, predicate=predicate))


def unary_program(build, type_):
    module = ModuleOp.empty()
    function = FuncOp.create("main", [type_], [type_])
    module.block.append(function)
    b = Builder.at_end(function.block)
    x = function.block.arguments[0]

    def constant(value):
        return b.value(
            arith.ConstantOp, value=arith_fold.attribute_of(value, type_), result_types=type_
        )

    b.create(ReturnOp, [build(b, x, constant)])
    return module, function


def test_only_true_identities_are_removed():
    def add_zero(b, x, constant):
        return b.value(arith.AddFOp, x, constant(0.0))

    module, function = unary_program(add_zero, T.f32)
    PassManager.parse("canonicalize").run(module)
    assert isinstance(function.return_op.values[0].owner, arith.AddFOp)  # -0.0 + 0.0 is 0.0

    def add_minus_zero(b, x, constant):
        return b.value(arith.AddFOp, constant(-0.0), x)

    module, function = unary_program(add_minus_zero, T.f32)
    PassManager.parse("canonicalize").run(module)
    assert function.return_op.values[0] is function.block.arguments[0]


def test_division_by_a_power_of_two_becomes_a_product():
    module, function = unary_program(
        lambda b, x, c: b.value(arith.DivFOp, x, c(8.0)), T.f32
    )
    PassManager.parse("canonicalize").run(module)
    made = function.return_op.values[0].owner
    assert isinstance(made, arith.MulFOp)
    assert made.rhs.owner.attributes["value"] is A.FloatAttr(0.125, T.f32)
    assert run(module, 3.0) == [0.375]

    module, function = unary_program(lambda b, x, c: b.value(arith.DivFOp, x, c(3.0)), T.f32)
    PassManager.parse("canonicalize").run(module)
    assert isinstance(function.return_op.values[0].owner, arith.DivFOp)


def test_casts_back_and_forth_vanish():
    def both(b, x, constant):
        wide = b.value(arith.ExtFOp, x, result_types=T.f32)
        return b.value(arith.TruncFOp, wide, result_types=T.bf16)

    module, function = unary_program(both, T.bf16)
    PassManager.parse("canonicalize").run(module)
    assert function.return_op.values[0] is function.block.arguments[0]


@pytest.mark.fault("V13")
@pytest.mark.parametrize("type_", [T.i8, T.i32])
def test_constants_given_by_their_unsigned_value_fold_alike(type_):
    """`255 : i8` and `-1 : i8` are one constant, in the folds and in the interpreter."""
    width = type_.width
    numbers = [(1 << width) - 1, 1 << (width - 1), (1 << width) - 100, 0, 5]
    for number, predicate in itertools.product(numbers, arith.INTEGER_PREDICATES):
        module, function = program(arith.CmpIOp, (0, 0), type_, T.i1, predicate=predicate)
        first = function.block.first
        first.attributes["value"] = A.IntegerAttr(number, type_)
        assert check(module, function)


CASTS = [
    ("extf", T.f32, T.f64), ("extf", T.f16, T.f32), ("extf", T.bf16, T.f32),
    ("truncf", T.f64, T.f32), ("truncf", T.f32, T.f16), ("truncf", T.f32, T.bf16),
    ("truncf", T.f64, T.bf16), ("extsi", T.i8, T.i32), ("extsi", T.i1, T.i8),
    ("extui", T.i8, T.i32), ("extui", T.i1, T.i64), ("trunci", T.i64, T.i8),
    ("trunci", T.i32, T.i1), ("index_cast", T.index, T.i32), ("index_cast", T.i8, T.index),
    ("index_castui", T.i8, T.index), ("sitofp", T.i64, T.f32), ("sitofp", T.i8, T.bf16),
    ("uitofp", T.i8, T.f32), ("uitofp", T.i64, T.f64), ("fptosi", T.f32, T.i32),
    ("fptosi", T.f64, T.i64), ("fptoui", T.f32, T.i8),
]  # fmt: skip


@pytest.mark.fault("V13")
@pytest.mark.parametrize(("name", "source", "target"), CASTS)
def test_casts_fold_as_the_interpreter_casts(name, source, target):
    cls = lookup_op(f"arith.{name}")
    for value in FLOATS if isinstance(source, T.FloatType) else INTS:
        check(*program(cls, (value,), source, target))


@pytest.mark.fault("V13")
@pytest.mark.parametrize("type_", [T.f32, T.f64])
def test_negation_and_selection_fold_as_the_interpreter(type_):
    for value in FLOATS:
        assert check(*program(arith.NegFOp, (value,), type_))
