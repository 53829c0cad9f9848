"""Compiled arithmetic and functions against the interpreter: every operation, type and target."""

from __future__ import annotations

import math

import attrs
import pytest
import torch

import irc
from irc.codegen.llvm import reduce_emitter
from irc.codegen.llvm.kernel_emitter import emit_kernels
from irc.codegen.llvm.kernel_writer import element_name
from irc.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from irc.interp.core import torch_dtype
from irc.ir import types as T
from irc.target.cpu import TargetFeatures
from tests.codegen.llvm.kernel_checks import (
    COUNT,
    FLOATS,
    INTEGERS,
    TARGET_NAMES,
    assert_same,
    check_maps,
    features_of,
    lanes_for,
    map_kernel,
    moderate,
    random_values,
)
from tests.codegen.llvm.kernel_programs import Compiled, Program, vector

INTEGER_BINARY = (
    "addi", "subi", "muli", "divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui", "andi",
    "ori", "xori", "shli", "shrsi", "shrui", "minsi", "maxsi", "minui", "maxui",
)  # fmt: skip
BOOL_BINARY = ("addi", "muli", "andi", "ori", "xori", "minui", "maxui")
FLOAT_BINARY = (
    "addf", "subf", "mulf", "divf", "remf", "minimumf", "maximumf", "minnumf", "maxnumf",
)  # fmt: skip
UNARY_MATH = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
    "erfinv", "sigmoid", "floor", "ceil", "trunc", "roundeven", "absf", "lgamma", "digamma",
)  # fmt: skip
BINARY_MATH = ("atan2", "powf", "copysign", "nextafter")


def binary(name, **attrs):
    return lambda p, a, b: p.op(name, a, b, **attrs)


def cast(name, lanes, to):
    return lambda p, x: p.op(name, x, to=vector(to, lanes))


@TARGET_NAMES
@pytest.mark.parametrize("element", INTEGERS, ids=element_name)
def test_integer_arithmetic(target, element):
    cases = [(n, [element] * 3, binary(f"arith.{n}")) for n in INTEGER_BINARY]
    cases += [
        (f"cmp_{p}", [element, element, T.i1], binary("arith.cmpi", predicate=p))
        for p in INTEGER_PREDICATES
    ]
    cases.append(("absi", [element] * 2, lambda p, x: p.op("math.absi", x)))

    def values(kind, count, seed):
        found = random_values(kind, count, seed)
        if seed == 1:  # torch itself divides the smallest integer by -1 at its peril
            found[found == -1] = 3
        return found

    check_maps(target, cases, inputs=values)


@TARGET_NAMES
def test_bool_arithmetic(target):
    cases = [(n, [T.i1] * 3, binary(f"arith.{n}")) for n in BOOL_BINARY]
    cases.append(("eq", [T.i1] * 3, binary("arith.cmpi", predicate="eq")))
    cases.append(("select", [T.i1] * 4, lambda p, *v: p.op("arith.select", *v)))
    check_maps(target, cases)


@TARGET_NAMES
@pytest.mark.parametrize("element", INTEGERS, ids=element_name)
def test_division_by_a_constant(target, element):
    lanes = lanes_for(target, element)

    def by_constant(name, number):
        return lambda p, x: p.op(name, x, p.constant(number, vector(element, lanes)))

    names = ("divsi", "floordivsi", "ceildivsi", "remsi", "shli", "shrsi", "shrui")
    cases = [
        (f"{n}_by{k}", [element] * 2, by_constant(f"arith.{n}", number))
        for n in names for k, number in enumerate((1, -1, 3, 8, -8))
    ]  # fmt: skip

    def values(kind, count, seed):
        found = random_values(kind, count, seed)
        return found.clamp(min=torch.iinfo(found.dtype).min + 1)

    check_maps(target, cases, inputs=values)


@TARGET_NAMES
def test_positions_divide_as_integers_do(target):
    lanes = lanes_for(target, T.i64)
    kind = vector(T.index, lanes)
    names = ("divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui")

    def by(name, divisor):
        def body(p, x, y):
            a, b = (p.op("arith.index_cast", v, to=kind) for v in (x, y))
            b = b if divisor is None else p.constant(divisor, kind)
            return p.op("arith.index_cast", p.op(f"arith.{name}", a, b), to=vector(T.i64, lanes))

        return body

    def positions(element, count, seed):
        generator = torch.Generator().manual_seed(seed)
        values = torch.randint(1, 2**50, (count,), generator=generator)
        return values >> torch.randint(0, 50, (count,), generator=generator) | seed

    check_maps(target, [
        (f"{n}_{d or 0}", [T.i64] * 3, by(n, d)) for n in names for d in (None, 7, 64)
    ], inputs=positions)  # fmt: skip


@TARGET_NAMES
@pytest.mark.parametrize("element", INTEGERS, ids=element_name)
def test_no_division_traps(target, element):
    lanes = lanes_for(target, element)
    names = ("divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui")
    kernels = [map_kernel(n, [element] * 3, lanes, binary(f"arith.{n}")) for n in names]
    compiled = Compiled(kernels, features_of(target))
    dtype = torch_dtype(element)
    top = torch.full((COUNT,), torch.iinfo(dtype).min, dtype=dtype)
    bottom = torch.zeros(COUNT, dtype=dtype)
    bottom[::2] = -1
    for name in names:
        compiled.run(name, [top, bottom, out := torch.empty_like(top)], 0, COUNT)
        if name in ("divsi", "floordivsi", "ceildivsi"):
            assert torch.equal(out[::2], top[::2])


@TARGET_NAMES
@pytest.mark.parametrize("element", FLOATS, ids=element_name)
def test_float_arithmetic(target, element):
    cases = [(n, [element] * 3, binary(f"arith.{n}")) for n in FLOAT_BINARY if n != "remf"]
    cases += [
        (f"cmp_{p}", [element, element, T.i1], binary("arith.cmpf", predicate=p))
        for p in FLOAT_PREDICATES
    ]
    cases += [
        ("negf", [element] * 2, lambda p, x: p.op("arith.negf", x)),
        ("select", [T.i1] + [element] * 3, lambda p, *v: p.op("arith.select", *v)),
        ("isnan", [element, T.i1], lambda p, x: p.op("math.isnan", x)),
        ("isinf", [element, T.i1], lambda p, x: p.op("math.isinf", x)),
    ]
    check_maps(target, cases)

    def no_extremes(kind, count, seed):  # torch's vectorized fmod is NaN if the quotient overflows
        values = random_values(kind, count, seed)
        extreme = (values.abs() < 1e-30) | (values.isfinite() & (values.abs() > 1e30))
        return torch.where(extreme, torch.zeros_like(values), values)

    check_maps(target, [("remf", [element] * 3, binary("arith.remf"))], inputs=no_extremes)


@TARGET_NAMES
@pytest.mark.parametrize("element", FLOATS, ids=element_name)
def test_functions(target, element):
    tolerance = {T.f32: 4e-6, T.f64: 1e-13, T.f16: 2e-3, T.bf16: 2e-2}[element]
    unary = [(n, [element] * 2, lambda p, x, n=n: p.op(f"math.{n}", x)) for n in UNARY_MATH]
    cases = [(n, [element] * 3, binary(f"math.{n}")) for n in BINARY_MATH]
    cases.append(("fma", [element] * 4, lambda p, *v: p.op("math.fma", *v)))
    acosh = [c for c in unary if c[0] == "acosh"]
    check_maps(target, [c for c in unary if c[0] != "acosh"] + cases, tolerance, moderate)
    check_maps(target, acosh, tolerance, lambda *a: moderate(*a) + 1)


@TARGET_NAMES
@pytest.mark.parametrize("element", [T.f32, T.f64], ids=element_name)
def test_functions_of_special_values(target, element):
    names = ("exp", "log", "tanh", "sigmoid", "sin", "erf", "erfinv", "sqrt", "floor", "absf")
    cases = [(n, [element] * 2, lambda p, x, n=n: p.op(f"math.{n}", x)) for n in names]
    cases += [(n, [element] * 3, binary(f"math.{n}")) for n in ("nextafter", "copysign", "atan2")]
    check_maps(target, cases, 1e-5)


def test_erfinv_of_doubles_near_one():
    def values(element, count, seed):
        return 1 - torch.logspace(-16, -1, count, dtype=torch.float64)

    check_maps(
        "host", [("erfinv", [T.f64] * 2, lambda p, x: p.op("math.erfinv", x))], 1e-12, values
    )


@TARGET_NAMES
def test_precise_functions(target):
    features = features_of(target)
    lanes = lanes_for(target, T.f32)
    callee = map_kernel("test_tanh", [T.f32, T.f32], lanes, lambda p, x: p.op("math.tanh", x))
    compiled = Compiled([callee], features, precise=True)
    x = moderate(T.f32, COUNT, 0) * 3
    compiled.run("test_tanh", [x, actual := torch.empty_like(x)], 0, COUNT)
    assert_same(actual, torch.tanh(x.double()).float())


@TARGET_NAMES
def test_float_conversions(target):
    cases = []
    for source in FLOATS:
        for to in FLOATS:
            if source.width != to.width:
                name = "extf" if source.width < to.width else "truncf"
                lanes = lanes_for(target, source, to)
                label = f"{element_name(source)}_{element_name(to)}"
                cases.append((label, [source, to], cast(f"arith.{name}", lanes, to)))
    check_maps(target, cases)


@TARGET_NAMES
def test_rounding_to_bfloat16_of_every_kind_of_float(target):
    bits = torch.arange(0, 2**32, 2**32 // (COUNT * 64) + 1, dtype=torch.int64)
    values = bits.to(torch.int32).view(torch.float32)
    values = torch.cat([values, values.bfloat16().float() + 0.0])[: COUNT * 64]
    values = torch.cat([values, torch.tensor([1.00390625, 1.01171875, 1e-40, math.nan])])
    values = values[-(len(values) // 64 * 64) :].clone()
    lanes = lanes_for(target, T.f32)
    narrow = map_kernel("narrow", [T.f32, T.bf16], lanes, cast("arith.truncf", lanes, T.bf16))
    actual = torch.empty(len(values), dtype=torch.bfloat16)
    Compiled([narrow], features_of(target)).run("narrow", [values, actual], 0, len(values))
    assert_same(actual, values.bfloat16())


def halves(element, count, seed):
    """Numbers whose last 16 bits lie around half of what a bf16 has left of them, and others."""
    values = random_values(element, count, seed)
    bits = values.view(torch.int32)
    bits[20:60] = bits[20:60] & -(1 << 16) | torch.randint(0x7FFF, 0x8002, (40,), dtype=torch.int32)
    bits[0], bits[1] = 0x7F800001, 0x7FFFFFFF  # NaN by its last bit alone, and by all of them
    return values


@TARGET_NAMES
@pytest.mark.parametrize("mode", ["toward_zero", "to_nearest_away"])
def test_rounding_modes_of_narrowing(target, mode):
    lanes = lanes_for(target, T.f32, T.bf16)

    def narrow(p, x):
        return p.op("arith.truncf", x, to=vector(T.bf16, lanes), roundingmode=mode)

    check_maps(target, [(mode, [T.f32, T.bf16], narrow)], inputs=halves)


@pytest.mark.parametrize("mode, wanted", [
    ("toward_zero", [0x3F80, 0x3F80, 0xBF80, 0x7F7F, 0x7F80]),
    ("to_nearest_away", [0x3F80, 0x3F81, 0xBF81, 0x7F80, 0x7F80]),
])  # fmt: skip
def test_what_rounding_modes_mean(mode, wanted):
    module = irc.parse(f"""func.func @main(%x: f32) -> bf16 {{
      %y = arith.truncf %x {mode} : f32 to bf16
      return %y : bf16 }}""")
    bits = [0x3F807FFF, 0x3F808000, -0x407F8000, 0x7F7FFFFF, 0x7F800000]
    for source, target in zip(bits, wanted, strict=True):
        x = torch.tensor(source, dtype=torch.int32).view(torch.float32)
        (y,) = irc.run(module, x.item())
        assert int(torch.tensor(y, dtype=torch.bfloat16).view(torch.int16)) & 0xFFFF == target


def test_rounding_modes_are_of_f32_to_bf16():
    with pytest.raises(irc.InvalidIR, match='rounds "toward_zero" from f32 to bf16, not from f64'):
        irc.verify(irc.parse("""func.func @main(%x: f64) -> f32 {
          %y = arith.truncf %x toward_zero : f64 to f32
          return %y : f32 }"""))


@TARGET_NAMES
def test_integer_conversions(target):
    cases = []
    kinds = (T.i1, *INTEGERS)
    for source in kinds:
        for to in kinds:
            lanes = lanes_for(target, source, to)
            names = ("extsi", "extui") if source.width < to.width else ("trunci",)
            if source is to:
                continue
            for n in names:
                label = f"{n}_{element_name(source)}_{element_name(to)}"
                cases.append((label, [source, to], cast(f"arith.{n}", lanes, to)))
    check_maps(target, cases)


@TARGET_NAMES
def test_index_conversions(target):
    lanes = lanes_for(target, T.i64)

    def through_index(name):
        def body(p, x):
            return p.op(f"arith.{name}", p.op(f"arith.{name}", x, to=vector(T.index, lanes)),
                        to=vector(T.i64, lanes))
        return body

    check_maps(target, [
        (f"{n}_{element_name(e)}", [e, T.i64], through_index(n))
        for n in ("index_cast", "index_castui") for e in (T.i8, T.i32, T.i64)
    ])  # fmt: skip


@TARGET_NAMES
def test_conversions_between_integers_and_floats(target):
    cases = []
    for integer in INTEGERS:
        for real in FLOATS:
            lanes = lanes_for(target, integer, real)
            label = f"{element_name(integer)}_{element_name(real)}"
            cases.append((f"si_{label}", [integer, real], cast("arith.sitofp", lanes, real)))
            if real is T.f64:
                cases.append((f"ui_{label}", [integer, real], cast("arith.uitofp", lanes, real)))
    check_maps(target, cases)
    back = []
    for integer in INTEGERS:
        for real in FLOATS:
            lanes = lanes_for(target, integer, real)
            for n in ("fptosi", "fptoui"):
                label = f"{n}_{element_name(real)}_{element_name(integer)}"
                back.append((label, [real, integer], cast(f"arith.{n}", lanes, integer)))
    check_maps(target, back, inputs=lambda e, n, s: moderate(e, n, s) * 100)


@TARGET_NAMES
def test_bitcasts(target):
    pairs = [(T.f32, T.i32), (T.i64, T.f64), (T.bf16, T.i16), (T.i16, T.f16), (T.i16, T.bf16)]
    check_maps(target, [
        (f"{element_name(a)}_{element_name(b)}", [a, b],
         cast("arith.bitcast", lanes_for(target, a), b))
        for a, b in pairs
    ])  # fmt: skip


def quotients(element, rows, columns, lanes):
    """y[i, j] = x[i, j] / t[i], with vectors along j."""
    p = Program("quotients", [element] * 3, 1, rows)
    x, t, y = p.pointers
    kind = vector(element, lanes)

    def row(i):
        base = p.op("arith.muli", i, p.constant(columns))
        divisor = p.splat(p.load(t, i, element), lanes)

        def step(j):
            at = p.op("arith.addi", base, j)
            p.store(p.op("arith.divf", p.load(x, at, kind), divisor), y, at)

        p.loop(p.constant(0), p.constant(columns), lanes, [], step)

    p.loop(p.begin, p.end, 1, [], row)
    return p.done()


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("element", [T.f32, T.f64], ids=element_name)
def test_a_product_with_the_inverse_rounds_as_the_quotient_does(monkeypatch, target, element):
    features = features_of(target)
    monkeypatch.setattr(reduce_emitter, "divides_by_inverse", lambda *facts: True)
    rows, columns = 400, 64
    x = random_values(element, rows * columns, 1).view(rows, columns)
    t = random_values(element, rows, 2)
    x[20:40] = -x[20:40].abs()
    x[40:60] *= 2.0**100
    x[60:80] *= 0.0
    t[::7] = torch.arange(len(t[::7]), dtype=t.dtype) - 5
    # So many of the divisor that every element has an integer for its quotient.
    x[80:160] = t[80:160, None] * torch.arange(columns, dtype=t.dtype)
    callee = quotients(element, rows, columns, lanes_for(target, element))
    assert "rare" in emit_kernels([callee], features)
    y = torch.zeros_like(x)
    Compiled([callee], features).run("quotients", [x, t, y], 0, rows)
    expected = x / t[:, None]
    assert torch.equal(y.isnan(), expected.isnan())
    assert torch.equal(y.signbit() & ~y.isnan(), expected.signbit() & ~expected.isnan())
    denormal = expected.abs() < torch.finfo(t.dtype).tiny
    exact = ~denormal & ~expected.isnan()
    assert torch.equal(y[exact], expected[exact])
    step = torch.finfo(t.dtype).smallest_normal * torch.finfo(t.dtype).eps
    assert ((y - expected)[denormal].abs() <= step).all()


def test_only_slow_dividers_multiply_with_the_inverse():
    server = TargetFeatures.avx512()
    for element, lanes in ((T.f32, 16), (T.f64, 8)):
        callee = quotients(element, 2, 64, lanes)
        assert "rare" in emit_kernels([callee], server)
        assert "rare" not in emit_kernels([callee], attrs.evolve(server, fast_division=True))
    assert "rare" not in emit_kernels([quotients(T.f32, 2, 64, 8)], server)
