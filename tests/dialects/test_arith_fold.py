"""Folds give the bits that the interpreter gives; identities hold for every operand."""

import itertools
import math
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from irc.dialects import arith  # noqa: E402
from irc.dialects.arith import folds as arith_fold  # noqa: E402
from irc.dialects.func import FuncOp, ReturnOp  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir.builder import Builder  # noqa: E402
from irc.ir.module import ModuleOp  # noqa: E402
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
    module, function = unary_program(lambda b, x, c: b.value(arith.DivFOp, x, c(8.0)), T.f32)
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


# -- identities: one operand is a variable


def simplified(build, type_):
    """What is returned of main(x) = build(builder, x, constant) after canonicalize: "x", a number,
    or the name of the operation that stays."""
    module, function = unary_program(build, type_)
    PassManager.parse("canonicalize").run(module)
    value = function.return_op.values[0]
    if value is function.block.arguments[0]:
        return "x"
    maker = value.owner
    if isinstance(maker, arith.ConstantOp):
        return arith_fold.number_of(maker.attributes["value"])
    return maker.name.partition(".")[2]


def one_sided(name, number, type_, left=False):
    def build(b, x, constant):
        operands = (constant(number), x) if left else (x, constant(number))
        return b.value(lookup_op(f"arith.{name}"), *operands)

    return simplified(build, type_)


NEUTRAL = {
    0: "addi subi ori xori shli shrsi shrui", 1: "muli divsi divui floordivsi ceildivsi",
    -1: "andi",
}  # fmt: skip


@pytest.mark.parametrize("type_", [T.i8, T.i32, T.i64, T.index])
@pytest.mark.parametrize("name", sorted(arith_fold.INTEGER))
def test_integer_identities(name, type_):
    for number in (0, 1, -1, 2):
        wanted = name
        if name in NEUTRAL.get(number, "").split():
            wanted = "x"
        elif number == 0 and name in ("muli", "andi"):
            wanted = 0
        found = one_sided(name, number, type_)
        if wanted == name and name in ("muli", "divsi", "divui", "remui", "remsi"):
            assert found != "x" and not isinstance(found, int), (number, found)
        else:
            assert found == wanted, (number, found)


@pytest.mark.parametrize(
    ("name", "number", "found"),
    [("addf", -0.0, "x"), ("addf", 0.0, "addf"), ("subf", 0.0, "x"), ("subf", -0.0, "subf"),
     ("mulf", 1.0, "x"), ("mulf", 0.0, "mulf"), ("divf", 1.0, "x"), ("remf", 1.0, "remf"),
     ("minimumf", 0.0, "minimumf"), ("mulf", -1.0, "mulf")],
)  # fmt: skip
def test_float_identities(name, number, found):
    assert one_sided(name, number, T.f32) == found


def test_a_constant_on_the_left_is_neutral_only_where_operands_can_be_exchanged():
    for name, number, found in (("subi", 0, "subi"), ("divsi", 1, "divsi"), ("shli", 0, "shli"),
                                ("addi", 0, "x"), ("muli", 1, "x"), ("muli", 0, 0)):  # fmt: skip
        assert one_sided(name, number, T.i32, left=True) == found


@pytest.mark.parametrize("name", sorted({*arith_fold.INTEGER, *arith_fold.FLOAT}))
def test_an_operation_of_one_value_with_itself(name):
    type_ = T.f32 if name in arith_fold.FLOAT else T.i32
    found = simplified(lambda b, x, c: b.value(lookup_op(f"arith.{name}"), x, x), type_)
    if name in arith_fold.IDEMPOTENT:
        assert found == "x"
    elif name in ("subi", "xori"):
        assert found == 0
    else:
        assert found not in ("x", 0)


def test_division_by_zero_is_left_to_the_program():
    for name in ("divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui"):
        fold = arith_fold.INTEGER[name]
        assert fold(7, 0, 32) is None
        assert fold(7, 1, 32) == (0 if name.startswith("rem") else 7)


@pytest.mark.parametrize("predicate", arith.INTEGER_PREDICATES)
def test_a_comparison_with_one_known_side_stays(predicate):
    for flipped in (False, True):

        def build(b, x, constant, flipped=flipped):
            operands = (constant(3), x) if flipped else (x, constant(3))
            flag = b.value(arith.CmpIOp, *operands, predicate=predicate, result_types=T.i1)
            return b.value(arith.SelectOp, flag, x, constant(5))

        assert simplified(build, T.i32) == "select"

    def of_itself(b, x, constant):
        flag = b.value(arith.CmpIOp, x, x, predicate=predicate, result_types=T.i1)
        return b.value(arith.SelectOp, flag, x, constant(5))

    assert simplified(of_itself, T.i32) == ("x" if "e" in predicate and predicate != "ne" else 5)


@pytest.mark.parametrize("predicate", arith.FLOAT_PREDICATES)
def test_a_float_comparison_with_one_known_side_stays(predicate):
    for operands in (0, 1, 2):

        def build(b, x, constant, operands=operands):
            pair = [(x, constant(3.0)), (constant(3.0), x), (x, x)][operands]
            flag = b.value(arith.CmpFOp, *pair, predicate=predicate, result_types=T.i1)
            return b.value(arith.SelectOp, flag, x, constant(5.0))

        found = simplified(build, T.f32)
        assert found == {"true": "x", "false": 5.0}.get(predicate, "select")


def test_sixteen_bits_are_not_folded_since_they_could_round_twice():
    for type_ in (T.f16, T.bf16):
        module, function = program(arith.AddFOp, (1.0, 2.0), type_)
        assert not check(module, function)


@pytest.mark.parametrize(("value", "folds"), [(2**53 - 1, True), (2**53, False), (-(2**53), False)])
def test_wide_integers_are_converted_to_narrow_floats_at_run_time(value, folds):
    assert check(*program(arith.SIToFPOp, (value,), T.i64, T.f32)) == folds
    assert check(*program(arith.SIToFPOp, (value,), T.i64, T.f64))


@pytest.mark.parametrize(
    ("name", "target", "number", "folds"),
    [("fptosi", T.i8, 127.9, True), ("fptosi", T.i8, 128.0, False), ("fptosi", T.i8, -128.9, True),
     ("fptosi", T.i8, -129.0, False), ("fptoui", T.i8, 255.5, True), ("fptoui", T.i8, 256.0, False),
     ("fptoui", T.i8, -0.9, True), ("fptoui", T.i8, -1.0, False), ("fptosi", T.i8, math.nan, False),
     ("fptosi", T.i64, math.inf, False)],
)  # fmt: skip
def test_a_float_out_of_range_of_an_integer_is_not_folded(name, target, number, folds):
    module, function = program(lookup_op(f"arith.{name}"), (number,), T.f32, target)
    PassManager.parse("canonicalize").run(module)
    assert isinstance(function.return_op.values[0].owner, arith.ConstantOp) == folds


# -- rounding and numbers, at their edges

SIXTEEN = {T.f16: (65504.0, 2.0**-24), T.bf16: (3.3895313892515355e38, 2.0**-133)}


@pytest.mark.parametrize("type_", [T.f16, T.bf16, T.f32, T.f64])
def test_rounding_of_special_numbers(type_):
    dtype = {T.f16: torch.float16, T.bf16: torch.bfloat16, T.f32: torch.float32,
             T.f64: torch.float64}[type_]  # fmt: skip
    largest, least = SIXTEEN.get(type_, (torch.finfo(dtype).max, 2.0**-149))
    ulp = largest - torch.nextafter(torch.tensor(largest, dtype=dtype), torch.zeros(1, dtype=dtype))
    half = float(ulp) / 2
    numbers = [0.0, largest, math.inf, least, 1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-9]
    if type_ is not T.f64:
        numbers += [largest + half, math.nextafter(largest + half, 0), least / 2, least / 4,
                    math.nextafter(least / 2, 1), 3 * least / 2, 5 * least / 2]  # fmt: skip
    for number in (s * n for n in numbers for s in (1, -1)):
        found = arith_fold.round_float(number, type_)
        exact = torch.tensor(number, dtype=torch.float64)
        if type_ is T.bf16:  # through f32 it could be rounded twice: these are f32 or just beside
            exact = exact.float() if exact.float().double() == number else exact
            low, high = abs(number) < largest + half, abs(number) <= least / 2
            wanted = exact.to(dtype).item() if exact.dtype == torch.float32 else None
            if wanted is None:
                top = largest if low else math.inf
                wanted = math.copysign(top if abs(number) > 1 else 0.0 if high else least, number)
        else:  # torch rounds to f16 twice, numpy does not
            wanted = float(np.float16(number)) if type_ is T.f16 else exact.to(dtype).item()
        assert found == wanted and math.copysign(1, found) == math.copysign(1, wanted), number
    assert math.isnan(arith_fold.round_float(math.nan, type_))


def test_other_floats_are_not_rounded():
    for number in (1.0, 0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="no rounding to f8E5M2"):
            arith_fold.round_float(number, T.f8E5M2)
        module, function = program(arith.TruncFOp, (number,), T.f32, T.f8E5M2)
        PassManager.parse("canonicalize").run(module)
        assert isinstance(function.return_op.values[0].owner, arith.TruncFOp)


@pytest.mark.parametrize(
    ("attr", "number"),
    [(A.IntegerAttr(127, T.i8), 127), (A.IntegerAttr(128, T.i8), -128),
     (A.IntegerAttr(255, T.i8), -1), (A.IntegerAttr(-1, T.i8), -1),
     (A.IntegerAttr(128, T.i32), 128), (A.IntegerAttr(2**32 - 1, T.i32), -1),
     (A.IntegerAttr(128, T.index), 128), (A.BoolAttr(True), 1), (A.BoolAttr(False), 0),
     (A.FloatAttr(0.5, T.f32), 0.5),
     (A.StringAttr("1"), None), (None, None)],
)  # fmt: skip
def test_the_number_of_a_constant(attr, number):
    assert arith_fold.number_of(attr) == number


@pytest.mark.parametrize(
    ("number", "width", "signed", "plain"),
    [(0, 1, 0, 0), (1, 1, 1, 1), (2, 1, 0, 0), (-1, 1, 1, 1), (127, 8, 127, 127),
     (128, 8, -128, 128), (255, 8, -1, 255), (256, 8, 0, 0), (-129, 8, 127, 127), (3, 2, -1, 3)],
)  # fmt: skip
def test_integers_of_a_width(number, width, signed, plain):
    assert arith_fold.wrap_integer(number, width) == signed
    assert arith_fold.unsigned(number, width) == plain


def test_constants_of_a_type():
    made = arith_fold.attribute_of
    assert made(2, T.i1) is A.BoolAttr(False) and made(-1, T.i1) is A.BoolAttr(True)
    assert made(200, T.i8) is A.IntegerAttr(-56, T.i8)
    assert made(1, T.f32) is A.FloatAttr(1.0, T.f32)
    assert made(1, T.VectorType([4], T.f32)) is A.FloatAttr(1.0, T.f32)
    assert arith_fold.width_of(T.VectorType([4], T.i8)) == 8 and arith_fold.width_of(T.index) == 64


@pytest.mark.parametrize("mode", ["trunc", "floor", "ceil"])
def test_quotients(mode):
    name = {"trunc": "divsi", "floor": "floordivsi", "ceil": "ceildivsi"}[mode]
    for a, b in itertools.product(range(-7, 8), range(-3, 4)):
        found = arith_fold.INTEGER[name](a, b, 8)
        exact = None if b == 0 else {"floor": math.floor, "ceil": math.ceil}.get(mode, int)(a / b)
        assert found == exact
        rest = arith_fold.INTEGER["remsi"](a, b, 8)
        assert rest == (None if b == 0 else a - b * int(a / b))


def test_shifts_by_the_width_and_more():
    for name, number, by, wanted in (
        ("shli", 3, 7, 3 << 7), ("shli", 3, 8, 0), ("shli", 3, -1, 0), ("shli", 3, 0, 3),
        ("shrsi", -3, 7, -1), ("shrsi", -3, 8, -1), ("shrsi", 100, 8, 0), ("shrsi", 100, -1, 0),
        ("shrsi", -100, 0, -100), ("shrsi", 64, 6, 1), ("shrui", -1, 7, 1), ("shrui", -1, 8, 0),
        ("shrui", -1, -1, 0), ("shrui", 5, 0, 5),
    ):  # fmt: skip
        assert arith_fold.INTEGER[name](number, by, 8) == wanted, (name, number, by)


def test_which_zero_is_the_least_is_not_said():
    for name in ("minimumf", "maximumf", "minnumf", "maxnumf"):
        fold = arith_fold.FLOAT[name]
        for a, b in ((0.0, -0.0), (-0.0, 0.0)):
            with pytest.raises(ValueError, match="which zero"):
                fold(a, b)
        for zero in (0.0, -0.0):
            assert math.copysign(1, fold(zero, zero)) == math.copysign(1, zero)
        assert math.isnan(fold(math.nan, math.nan))
        assert math.isnan(fold(math.nan, 1.0)) == math.isnan(fold(1.0, math.nan))
        assert math.isnan(fold(math.nan, 1.0)) == name.endswith("imumf")


# -- casts: which fold, and which are undone


def casted(names, types, value=None):
    """What is returned of main(x) = the casts, or of a constant: "x", a number or what stays."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [types[0]], [types[-1]])
    module.block.append(function)
    b = Builder.at_end(function.block)
    x = function.block.arguments[0]
    if value is not None:
        attr = arith_fold.attribute_of(value, types[0])
        x = b.value(arith.ConstantOp, value=attr, result_types=types[0])
    for name, kind in zip(names, types[1:], strict=True):
        x = b.value(lookup_op(f"arith.{name}"), x, result_types=kind)
    b.create(ReturnOp, [x])
    PassManager.parse("canonicalize").run(module)
    made = function.return_op.values[0]
    if made is function.block.arguments[0]:
        return "x"
    if isinstance(made.owner, arith.ConstantOp):
        return arith_fold.number_of(made.owner.attributes["value"])
    return made.owner.name.partition(".")[2]


@pytest.mark.parametrize(
    ("names", "types", "found"),
    [
        (["extf", "truncf"], [T.bf16, T.f32, T.bf16], "x"),
        (["extf", "truncf"], [T.bf16, T.f32, T.f16], "truncf"),
        (["truncf", "extf"], [T.f32, T.bf16, T.f32], "extf"),
        (["extsi", "trunci"], [T.i8, T.i32, T.i8], "x"),
        (["extsi", "trunci"], [T.i16, T.i32, T.i8], "trunci"),
        (["bitcast", "bitcast"], [T.f32, T.i32, T.f32], "x"),
        (["bitcast", "truncf"], [T.i32, T.f32, T.f16], "truncf"),
        (["sitofp", "fptosi"], [T.i32, T.f32, T.i32], "fptosi"),
        (["index_cast"], [T.index, T.index], "x"),
    ],
)
def test_casts_that_are_undone(names, types, found):
    assert casted(names, types) == found


@pytest.mark.parametrize(
    ("name", "source", "target", "value", "found"),
    [
        ("extui", T.i8, T.i32, -1, 255), ("extsi", T.i8, T.i32, -1, -1),
        ("extui", T.i1, T.i32, 1, 1), ("extsi", T.i1, T.i32, 1, -1),
        ("trunci", T.i32, T.i8, 300, 44), ("trunci", T.i32, T.i1, 3, 1),
        ("index_castui", T.i8, T.index, -1, 255), ("index_cast", T.i8, T.index, -1, -1),
        ("index_cast", T.i1, T.index, 1, -1), ("index_castui", T.i1, T.index, 1, 1),
        ("uitofp", T.i8, T.f32, -1, 255.0),
        ("sitofp", T.i8, T.f32, -1, -1.0), ("sitofp", T.i1, T.f32, 1, -1.0),
        ("uitofp", T.i1, T.f32, 1, 1.0), ("uitofp", T.i64, T.f32, -1, "uitofp"),
        ("uitofp", T.i64, T.f64, -1, 2.0**64), ("sitofp", T.i8, T.f8E5M2, 1, "sitofp"),
        ("extf", T.f16, T.f32, 0.5, 0.5), ("truncf", T.f64, T.f16, 0.1, 0.0999755859375),
        ("truncf", T.f64, T.f16, 1e6, math.inf), ("fptosi", T.f32, T.i32, -1.5, -1),
        ("fptoui", T.f32, T.i32, 1.5, 1), ("fptosi", T.f64, T.i32, 2.0**31 - 0.5, 2**31 - 1),
        ("fptosi", T.f64, T.i32, 2.0**31, "fptosi"), ("fptosi", T.f64, T.i32, -(2.0**31), -(2**31)),
        ("fptosi", T.f64, T.i32, -(2.0**31) - 1, "fptosi"),
        ("fptoui", T.f64, T.i32, 2.0**32 - 0.5, -1), ("fptoui", T.f64, T.i32, 2.0**32, "fptoui"),
        ("bitcast", T.f32, T.i32, 1.0, "bitcast"), ("bitcast", T.i32, T.f32, 1, "bitcast"),
    ],
)  # fmt: skip
def test_casts_of_constants(name, source, target, value, found):
    assert casted([name], [source, target], value) == found


def test_a_selection_of_what_is_known():
    for condition in (0, 1, None):

        def build(b, x, constant, condition=condition):
            first, second = constant(1), constant(2)
            if condition is None:
                flag = b.value(arith.CmpIOp, x, first, predicate="slt", result_types=T.i1)
            else:
                flag = b.value(arith.ConstantOp, value=A.BoolAttr(bool(condition)),
                               result_types=T.i1)  # fmt: skip
            return b.value(arith.SelectOp, flag, first, second)

        assert simplified(build, T.i32) == {0: 2, 1: 1, None: "select"}[condition]


def test_vectors_of_one_number_fold_as_the_number():
    kind = T.VectorType([4], T.i32)
    assert one_sided("addi", 0, kind) == "x" and one_sided("muli", 0, kind) == 0
    assert one_sided("andi", -1, kind) == "x" and one_sided("addi", 1, kind) == "addi"
    module, function = program(arith.AddIOp, (3, 4), kind)
    PassManager.parse("canonicalize").run(module)
    made = function.return_op.values[0].owner
    assert isinstance(made, arith.ConstantOp) and made.results[0].type is kind


def test_what_the_rules_say_is_folded_as_what_they_are():
    from irc.dialects.arith import rules

    tables = (arith_fold.OF_ITSELF, arith_fold.ABSORBING, arith_fold.RIGHT_IDENTITY)
    before = [dict(table) for table in tables]
    for rule in (rules.subi_itself, rules.muli_zero, rules.addi_zero, rules.andi_itself):
        arith_fold.learn(rule)  # again: it says what it said
    assert [dict(table) for table in tables] == before
    assert arith_fold.OF_ITSELF == {"subi": 0, "xori": 0}
    assert arith_fold.ABSORBING == {"muli": 0, "andi": 0}
    assert {"andi", "ori", "minimumf", "maxui"} <= arith_fold.IDEMPOTENT
    assert arith_fold.RIGHT_IDENTITY["addi"] == 0 and arith_fold.RIGHT_IDENTITY["mulf"] == 1.0
    for table in (arith_fold.OF_ITSELF, arith_fold.ABSORBING, arith_fold.RIGHT_IDENTITY):
        assert "muli" not in arith_fold.IDEMPOTENT and "minimumf" not in table


def test_a_rule_that_says_no_fold_is_refused():
    """As op(x, y) -> 0 does."""
    from types import SimpleNamespace as Part

    from irc.dialects.arith import rules

    zero = rules.muli_zero.after
    before = Part(cls=arith.MulIOp, operands=(Part(), Part()))
    for after in (zero, Part()):
        with pytest.raises(AssertionError, match="no fold is made of x -> y"):
            arith_fold.learn(Part(before=before, after=after, equation="x -> y"))


@pytest.mark.parametrize("type_", [T.ui8, T.i8])
@pytest.mark.parametrize("number", [0, 127, 128, 129, 255])
def test_numbers_of_unsigned_attributes_are_read_as_signed(type_, number):
    if type_ is T.i8 and number > 127:
        number -= 256
    signed = number - 256 if number > 127 else number
    assert arith_fold.number_of(A.IntegerAttr(number, type_)) == signed
