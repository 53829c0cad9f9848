"""Compiled kernels against the interpreter: every operation, type and target."""

from __future__ import annotations

import functools
import math

import pytest
import torch

from irc.codegen.llvm.kernel_emitter import emit_kernels, emit_text
from irc.codegen.llvm.kernel_writer import element_name
from irc.codegen.llvm.target import TargetFeatures
from irc.dialects import kernel
from irc.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from irc.interp.core import torch_dtype
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Type
from irc.ir.diagnostics import InvalidIR
from tests.codegen.llvm.kernel_programs import Compiled, Program, interpret, vector

COUNT = 192
HOST = TargetFeatures.host()
#: target: (features, whether values are vectors)
TARGETS = {
    "host": (HOST, True),
    "scalar": (HOST, False),
    "avx2": (TargetFeatures.avx2(), True),
    "generic": (TargetFeatures.generic(), True),
}
INTEGERS = (T.i8, T.i16, T.i32, T.i64)
FLOATS = (T.f32, T.f64, T.f16, T.bf16)
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
TARGET_NAMES = pytest.mark.parametrize("target", TARGETS)


@pytest.fixture(autouse=True)
def _runs_here(request: pytest.FixtureRequest) -> None:
    target = getattr(request.node, "callspec", None)
    name = target.params.get("target") if target is not None else None
    features = TARGETS[name][0] if name else HOST
    if features.architecture != HOST.architecture or (features.has_avx2 and not HOST.has_avx2):
        pytest.skip(f"this machine can't run {features.name}")


def lanes_for(target: str, *elements: Type) -> int:
    """Lanes of a vector of the widest element."""
    features, is_vector = TARGETS[target]
    widths = [max(getattr(e, "width", 64), 8) for e in elements]
    return features.lanes(max(widths)) if is_vector else 0


def random_values(element: Type, count: int, seed: int) -> torch.Tensor:
    """Values with every special case in them."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch_dtype(element)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(torch.bool)
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        values = torch.randn(count, generator=generator, dtype=torch.float64) * 4
        special = torch.tensor([
            0.0, -0.0, math.inf, -math.inf, math.nan, info.max, -info.max, info.tiny,
            info.tiny / 8, -info.tiny / 4, 1.0, -1.0, 0.5, 2.5, -2.5,
        ], dtype=torch.float64)  # fmt: skip
        places = torch.randperm(count, generator=generator)[: len(special)]
        values[places] = special
        return values.to(dtype)
    info = torch.iinfo(dtype)
    values = torch.randint(info.min, info.max, (count,), generator=generator, dtype=torch.int64)
    small = torch.randint(-9, 70, (count,), generator=generator)
    values = torch.where(torch.rand(count, generator=generator) < 0.5, values, small)
    values[:6] = torch.tensor([info.min, info.max, 0, -7, 1, 127])
    return values.to(dtype)


def assert_same(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 0.0) -> None:
    if tolerance:
        torch.testing.assert_close(
            actual, expected, rtol=tolerance, atol=tolerance / 8, equal_nan=True
        )
        return
    if actual.dtype.is_floating_point:
        assert torch.equal(actual.isnan(), expected.isnan())
        keep = ~actual.isnan()
        integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
        zero = (actual == 0) & (expected == 0)  # which zero a minimum of zeros is: either
        actual, expected = actual[keep & ~zero].view(integer), expected[keep & ~zero].view(integer)
    wrong = (actual != expected).nonzero().reshape(-1)
    assert not len(wrong), (wrong[:5], actual[wrong[:5]], expected[wrong[:5]])


def map_kernel(name, elements, lanes, body) -> kernel.FuncOp:
    """`last[i] = body(program, inputs[i]...)`; the last element type is the result's."""
    p = Program(name, elements, 1, COUNT)
    step = max(lanes, 1)

    def at(i):
        values = [
            p.load(q, i, vector(e, lanes))
            for q, e in zip(p.pointers[:-1], elements[:-1], strict=True)
        ]
        p.store(body(p, *values), p.pointers[-1], i)

    p.loop(p.begin, p.end, step, [], at)
    return p.done()


def check_maps(target, cases, tolerance=0.0, inputs=None) -> None:
    """`cases`: (name, element types, body). Each compiled kernel agrees with its interpretation."""
    kernels = [
        map_kernel(f"test_{name}", elements, lanes_for(target, *elements), body)
        for name, elements, body in cases
    ]
    compiled = Compiled(kernels, TARGETS[target][0])
    for callee, (name, elements, _) in zip(kernels, cases, strict=True):
        make = inputs or random_values
        tensors = [make(e, COUNT, seed) for seed, e in enumerate(elements[:-1])]
        dtype = torch_dtype(elements[-1])
        actual, expected = torch.zeros(COUNT, dtype=dtype), torch.ones(COUNT, dtype=dtype)
        compiled.run(callee.sym_name, [*tensors, actual], 0, COUNT)
        interpret(callee, [*tensors, expected])
        try:
            assert_same(actual, expected, tolerance)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


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
    compiled = Compiled(kernels, TARGETS[target][0])
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

    def no_denormals(kind, count, seed):  # torch's vectorized fmod gives NaN for such a divisor
        values = random_values(kind, count, seed)
        return torch.where(values.abs() < 1e-30, torch.zeros_like(values), values)

    check_maps(target, [("remf", [element] * 3, binary("arith.remf"))], inputs=no_denormals)


def moderate(element, count, seed):
    """Arguments that are in every function's domain."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, generator=generator) * 0.9 + 0.05).to(torch_dtype(element))


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
    features, _ = TARGETS[target]
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
    Compiled([narrow], TARGETS[target][0]).run("narrow", [values, actual], 0, len(values))
    assert_same(actual, values.bfloat16())


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


# -- memory

MEMORY = (T.i1, T.i8, T.i16, T.i32, T.i64, T.f16, T.bf16, T.f32, T.f64)


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
@pytest.mark.parametrize("count", [1, 5, 37, 64])
def test_masked_tails_touch_nothing_beyond(target, element, count):
    lanes = lanes_for(target, element) or 4
    p = Program("tail", [element, element], 1, count)

    def at(i):
        mask = p.tail_mask(i, p.end, lanes)
        other = p.constant(1, vector(element, lanes))
        value = p.load(p.pointers[0], i, vector(element, lanes), mask, other)
        p.store(value, p.pointers[1], i, mask)

    p.loop(p.begin, p.end, lanes, [], at)
    callee = p.done()
    x = random_values(element, max(count, 16), 3)[:count]
    actual = random_values(element, count + 70, 4)
    before = actual.clone()
    Compiled([callee], TARGETS[target][0]).run("tail", [x, actual], 0, count)
    assert_same(actual[:count], x)
    assert_same(actual[count:], before[count:])


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
def test_masked_lanes_give_the_other_value(target, element):
    lanes = lanes_for(target, element) or 4
    p = Program("other", [element, T.i1, element, element], 1, COUNT)

    def at(i):
        mask = p.load(p.pointers[1], i, vector(T.i1, lanes))
        other = p.load(p.pointers[2], i, vector(element, lanes))
        p.store(p.load(p.pointers[0], i, vector(element, lanes), mask, other), p.pointers[3], i)

    p.loop(p.begin, p.end, lanes, [], at)
    check_against_interpreter(target, p.done(), [
        random_values(element, COUNT, 0), random_values(T.i1, COUNT, 1),
        random_values(element, COUNT, 2),
    ], torch.zeros(COUNT, dtype=torch_dtype(element)))  # fmt: skip


def check_against_interpreter(target, callee, inputs, *outputs, tolerance=0.0) -> None:
    """Run both on the same inputs and the same content of outputs."""
    actual, expected = ([o.clone() for o in outputs] for _ in range(2))
    grid = callee.grid
    Compiled([callee], TARGETS[target][0]).run(callee.sym_name, [*inputs, *actual], 0, grid)
    interpret(callee, [*inputs, *expected])
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e, tolerance)


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
@pytest.mark.parametrize("masked", [False, True])
def test_gather_and_scatter(target, element, masked):
    lanes = lanes_for(target, element) or 4
    p = Program("move", [element, T.i64, T.i1, element], 1, COUNT)

    def at(i):
        offsets = p.op("arith.index_cast", p.load(p.pointers[1], i, vector(T.i64, lanes)),
                       to=vector(T.index, lanes))  # fmt: skip
        masks = [p.load(p.pointers[2], i, vector(T.i1, lanes))] if masked else []
        other = [p.constant(1, vector(element, lanes))] if masked else []
        got = p.op("kernel.gather", p.pointers[0], offsets, *masks, *other,
                   to=vector(element, lanes))  # fmt: skip
        # Places collide: the last lane that names one wins.
        half = p.op("arith.shrui", offsets, p.constant(1, offsets.type))
        p.op("kernel.scatter", got, p.pointers[3], half, *masks)

    p.loop(p.begin, p.end, lanes, [], at)
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(7))
    check_against_interpreter(
        target, p.done(),
        [random_values(element, COUNT, 0), order, random_values(T.i1, COUNT, 1)],
        random_values(element, COUNT, 5),
    )  # fmt: skip


@TARGET_NAMES
@pytest.mark.parametrize("element", [T.i1, T.i32, T.i64, T.f32, T.f64, T.bf16], ids=element_name)
@pytest.mark.parametrize("combiner", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("masked", [False, True])
def test_scatter_combines_in_lane_order(target, element, combiner, masked):
    if element is T.i1 and combiner in ("prod", "min", "max"):
        combiner = "sum"
    lanes = lanes_for(target, T.i64)
    kind = vector(element, lanes)
    p = Program("combine", [element, T.i64, T.i1, element], 1, COUNT)

    def at(i):
        offsets = p.op("arith.index_cast", p.load(p.pointers[1], i, vector(T.i64, lanes)),
                       to=vector(T.index, lanes))  # fmt: skip
        masks = [p.load(p.pointers[2], i, vector(T.i1, lanes))] if masked else []
        p.op("kernel.scatter", p.load(p.pointers[0], i, kind), p.pointers[3], offsets, *masks,
             combiner=combiner)  # fmt: skip

    p.loop(p.begin, p.end, max(lanes, 1), [], at)
    places = torch.randint(0, 9, (COUNT,), generator=torch.Generator().manual_seed(3))
    check_against_interpreter(
        target, p.done(),
        [random_values(element, COUNT, 0), places, random_values(T.i1, COUNT, 1)],
        random_values(element, 16, 8)[:9],
    )  # fmt: skip


@TARGET_NAMES
def test_scalar_masks_guard_whole_vectors(target):
    lanes = lanes_for(target, T.f32)
    p = Program("guard", [T.f32, T.i1, T.f32], 1, COUNT)

    def at(i):
        mask = p.load(p.pointers[1], i, T.i1)
        kind = vector(T.f32, lanes)
        value = p.load(p.pointers[0], i, kind, mask, p.constant(7.0, kind))
        p.store(p.op("arith.addf", value, p.constant(1.0, kind)), p.pointers[2], i, mask)

    p.loop(p.begin, p.end, max(lanes, 1), [], at)
    check_against_interpreter(
        target, p.done(), [random_values(T.f32, COUNT, 0), random_values(T.i1, COUNT, 1)],
        torch.zeros(COUNT),
    )  # fmt: skip


@TARGET_NAMES
def test_scratch_memory(target):
    lanes = lanes_for(target, T.f32)
    kind, step = vector(T.f32, lanes), max(lanes, 1)
    p = Program("scratch", [T.f32, T.f32], 1, COUNT)
    room = p.op("kernel.scratch", count=COUNT, to=kernel.PointerType(T.f32))
    p.loop(p.begin, p.end, step, [], lambda i: p.store(p.load(p.pointers[0], i, kind), room, i))
    last = p.constant(COUNT - 1)

    def back(i):
        p.store(p.load(room, p.op("arith.subi", last, i), T.f32), p.pointers[1], i)

    p.loop(p.begin, p.end, 1, [], back)
    check_against_interpreter(target, p.done(), [random_values(T.f32, COUNT, 0)],
                              torch.zeros(COUNT))  # fmt: skip


# -- across lanes


def combiners_of(element):
    if element is T.i1:
        return ("any", "all", "xor", "sum", "min", "max")
    if isinstance(element, T.FloatType):
        return ("sum", "prod", "min", "max")
    return ("sum", "prod", "min", "max", "xor")


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
def test_reduce(target, element):
    lanes = lanes_for(target, element)
    names = combiners_of(element)
    p = Program("reduce", [element] * (1 + len(names)), len(names), COUNT)

    def at(i):
        value = p.load(p.pointers[0], i, vector(element, lanes))
        for name, out in zip(names, p.pointers[1:], strict=True):
            p.store(p.op("kernel.reduce", [value], combiner=name, to=[element]), out, i)

    p.loop(p.begin, p.end, lanes, [], at)
    tolerance = {T.f16: 2e-2, T.bf16: 1e-1, T.f32: 1e-5, T.f64: 1e-12}.get(element, 0.0)
    values = random_values(element, COUNT, 0)
    if tolerance:
        values = moderate(element, COUNT, 0) + 0.5
        values[3], values[70], values[71] = math.nan, math.inf, -1.0
    outputs = [torch.zeros(COUNT, dtype=torch_dtype(element)) for _ in names]
    check_against_interpreter(target, p.done(), [values], *outputs, tolerance=tolerance)


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("element", [T.i1, T.i8, T.i64, T.bf16, T.f32], ids=element_name)
@pytest.mark.parametrize("combiner", ["argmin", "argmax"])
def test_reduce_to_the_first_position(target, element, combiner):
    lanes = lanes_for(target, T.i64)
    p = Program("arg", [element, T.i64, element, T.i64], 2, COUNT)

    def at(i):
        pair = [p.load(p.pointers[0], i, vector(element, lanes)),
                p.load(p.pointers[1], i, vector(T.i64, lanes))]  # fmt: skip
        best, place = p.op("kernel.reduce", pair, combiner=combiner, to=[element, T.i64])
        p.store(best, p.pointers[2], i)
        p.store(place, p.pointers[3], i)

    p.loop(p.begin, p.end, lanes, [], at)
    values = random_values(element, COUNT, 0)
    if element is not T.i1:
        values[40:120] = values[40:120].sign().nan_to_num().to(values.dtype)  # many are equal
        values[150:154] = values[153]
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(7))
    check_against_interpreter(target, p.done(), [values, order],
                              torch.zeros(COUNT, dtype=values.dtype), torch.zeros_like(order))


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("element", [T.i8, T.i64, T.bf16, T.f16, T.f32], ids=element_name)
def test_scan(target, element):
    lanes = lanes_for(target, element)
    names = ("sum", "prod", "min", "max")
    p = Program("scan", [element] * (1 + len(names)), len(names), COUNT)

    def at(i):
        value = p.load(p.pointers[0], i, vector(element, lanes))
        for name, out in zip(names, p.pointers[1:], strict=True):
            p.store(p.op("kernel.scan", [value], combiner=name, to=[value.type]), out, i)

    p.loop(p.begin, p.end, lanes, [], at)
    tolerance = {T.f16: 2e-2, T.bf16: 1e-1, T.f32: 1e-5, T.f64: 1e-12}.get(element, 0.0)
    values = random_values(element, COUNT, 0)
    if tolerance:
        values = moderate(element, COUNT, 0) + 0.5
        values[70] = math.nan
    outputs = [torch.zeros(COUNT, dtype=values.dtype) for _ in names]
    check_against_interpreter(target, p.done(), [values], *outputs, tolerance=tolerance)


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("element", [T.f32, T.i8, T.bf16, T.f64], ids=element_name)
@pytest.mark.parametrize("size", [4, 8, 16])
def test_transpose(target, element, size):
    row = vector(element, size)
    tile = T.VectorType((size, size), element)
    p = Program("transpose", [element, element], 1, 1)
    value = p.constant(0, tile)
    for r in range(size):
        loaded = p.load(p.pointers[0], p.constant(r * size), row)
        value = p.op("kernel.insert", loaded, value, p.constant(r), to=tile)
    value = p.op("kernel.transpose", value, to=tile)
    for r in range(size):
        p.store(p.op("kernel.extract", value, p.constant(r), to=row), p.pointers[1],
                p.constant(r * size))  # fmt: skip
    x = random_values(element, size * size + 16, 0)[: size * size]
    check_against_interpreter(target, p.done(), [x], torch.zeros_like(x))


@TARGET_NAMES
def test_lanes_by_number(target):
    lanes = lanes_for(target, T.i32) or 4
    p = Program("lanes", [T.i32, T.i32], 1, COUNT)
    iota = p.op("kernel.iota", to=vector(T.i32, lanes))

    def at(i):
        value = p.op("arith.addi", p.load(p.pointers[0], i, vector(T.i32, lanes)), iota)
        lane = p.op("arith.remsi", i, p.constant(lanes))
        one = p.op("kernel.extract", value, lane, to=T.i32)
        p.store(p.op("kernel.insert", one, value, p.constant(0), to=value.type),
                p.pointers[1], i)  # fmt: skip

    p.loop(p.begin, p.end, lanes, [], at)
    check_against_interpreter(target, p.done(), [random_values(T.i32, COUNT, 0)],
                              torch.zeros(COUNT, dtype=torch.int32))  # fmt: skip


# -- control flow


@pytest.mark.parametrize("unroll", [None, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9, 16])
@pytest.mark.parametrize("static", [False, True])
def test_loops_carry_values(unroll, count, static):
    p = Program("carry", [T.f32, T.f32], 1, count)
    lower = p.constant(0) if static else p.begin
    upper = p.constant(count) if static else p.end
    start = [p.constant(0.0, T.f32), p.constant(1.0, T.f32)]

    def at(i, total, previous):
        x = p.load(p.pointers[0], i, T.f32)
        return [p.op("arith.addf", p.op("arith.mulf", total, previous), x), x]

    total, previous = p.loop(lower, upper, 1, start, at, unroll)
    p.store(total, p.pointers[1], p.constant(0))
    p.store(previous, p.pointers[1], p.constant(1))
    check_against_interpreter("host", p.done(), [random_values(T.f32, 64, 0)[16:48]],
                              torch.zeros(2), tolerance=1e-6)  # fmt: skip


def test_nested_loops_and_branches():
    p = Program("nested", [T.i64, T.i64], 1, 12)

    def row(i):
        def column(j, total):
            even = p.op("arith.cmpi", p.op("arith.remsi", j, p.constant(2)), p.constant(0),
                        predicate="eq")  # fmt: skip
            x = p.load(p.pointers[0], p.op("arith.addi", i, j), T.i64)
            return p.branch(
                even, [T.i64], lambda: [p.op("arith.addi", total, x)],
                lambda: [p.op("arith.subi", total, p.op("arith.muli", x, x))],
            )  # fmt: skip

        total = p.loop(p.constant(0), i, 1, [p.constant(0, T.i64)], column, 2)
        p.store(total[0], p.pointers[1], i)

    p.loop(p.begin, p.end, 1, [], row)
    x = torch.randint(-50, 50, (64,), generator=torch.Generator().manual_seed(0))
    check_against_interpreter("host", p.done(), [x], torch.zeros(12, dtype=torch.int64))


def test_constants_of_many_lanes():
    data = torch.arange(16, dtype=torch.float32)
    p = Program("dense", [T.f32], 1, 1)
    kind = vector(T.f32, 16)
    attr = A.DenseAttr(kind, data.numpy().tobytes())
    p.store(p.op("arith.constant", value=attr, to=kind), p.pointers[0], p.constant(0))
    check_against_interpreter("host", p.done(), [], torch.zeros(16))


# -- text and errors


@functools.cache
def add_one(**attrs) -> kernel.FuncOp:
    return map_kernel("add_one", [T.f32, T.f32], 16, lambda p, x: p.op(
        "arith.addf", x, p.constant(1.0, x.type)))  # fmt: skip


def test_arrays_are_apart_unless_they_may_be_one():
    assert "ptr noalias readonly %a0, ptr noalias %a1" in emit_kernels([add_one()], HOST)
    p = Program("same", [T.f32, T.f32], 1, 1, inplace=A.DenseIntsAttr([0, 1]))
    assert "noalias" not in emit_kernels([p.done()], HOST)


def test_text_for_people():
    assert "fadd contract <16 x float>" in emit_text([add_one()], HOST, "llvm")
    assert "add_one:" in emit_text([add_one()], HOST, "asm")


def test_what_a_cpu_cannot_do_is_refused():
    p = Program("gpu_only", [T.f32], 1, 1)
    p.op("kernel.program_id")
    with pytest.raises(InvalidIR, match="kernel.program_id"):
        emit_kernels([p.done()], HOST)
    p = Program("eight", [T.f8E5M2], 1, 1)
    p.load(p.pointers[0], p.begin, T.f8E5M2)
    with pytest.raises(InvalidIR, match="f8E5M2"):
        emit_kernels([p.done()], HOST)
    with pytest.raises(InvalidIR, match="name"):
        emit_kernels([Program('a"b', [T.f32], 1, 1).done()], HOST)
