"""Accuracy of every emitted function over the whole range, on each kind of target."""

from __future__ import annotations

import ctypes
import functools
import math
import re

import attrs
import mpmath
import numpy as np
import pytest
import torch
from llvmlite import ir

from irc.codegen.llvm import jit
from irc.codegen.llvm.vector_math import (
    DEFINITIONS,
    VectorMath,
    function_names,
    ir_type,
    is_inline,
    supported,
)
from irc.target.cpu import TargetFeatures

NUMPY = {"f32": np.float32, "f64": np.float64}
# The largest error allowed, in units of the last place of the exact result.
F32_BOUNDS = {
    "exp_nonpositive": 1.1,
    "exp": 1.1, "exp2": 1.2, "expm1": 1.7, "log": 1.0, "log2": 1.1, "log10": 1.1, "log1p": 1.5,
    "sqrt": 0.5, "rsqrt": 1.5, "sin": 1.9, "cos": 1.9, "tan": 3.4, "asin": 2.5, "acos": 1.3,
    "atan": 1.6, "sinh": 2.3, "cosh": 1.7, "tanh": 2.5, "asinh": 1.8, "acosh": 2.0, "atanh": 2.0,
    "erf": 1.5, "erfc": 4.5, "erfinv": 3.5, "lgamma": 1.5, "digamma": 0.6, "sigmoid": 2.2,
    "cbrt": 1.5, "tgamma": 5.0,
}  # fmt: skip
F64_BOUNDS = {
    "exp_nonpositive": 1.2,
    "exp": 1.2, "exp2": 1.2, "expm1": 2.5, "log": 1.1, "log2": 1.1, "log10": 1.3, "log1p": 1.6,
    "sqrt": 0.5, "rsqrt": 1.5, "sin": 2.2, "cos": 2.2, "tan": 3.4, "asin": 2.3, "acos": 1.4,
    "atan": 2.2, "sinh": 2.5, "cosh": 1.9, "tanh": 2.4, "asinh": 1.8, "acosh": 2.0, "atanh": 2.2,
    "erf": 1.5, "erfc": 4.6, "sigmoid": 2.2,
}  # fmt: skip
HOST = TargetFeatures.host()
TARGETS = {
    "host": (HOST, 0),
    "host-newton": (attrs.evolve(HOST, fast_division=False) if HOST.has_avx512 else HOST, 0),
    "host-scalar": (TargetFeatures.host(), None),
    "avx2": (TargetFeatures.avx2(), 0),
    "avx2-pairs": (TargetFeatures.avx2(), 1),
    "generic": (TargetFeatures.generic(), 0),
}
# Functions for some arguments only, and the one whose values they have.
PLAIN = {"exp_nonpositive": "exp"}
ROUNDING = ("floor", "ceil", "trunc", "round")
BINARY = ("pow", "atan2", "maximum", "minimum", "fmax", "fmin", "copysign")
REMAINDERS = ("fmod", "remainder", "floor_divide")
SPECIALS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 7.5, math.inf, -math.inf)
SPECIALS += (math.nan, 1e30, -1e30, 1e-40, -1e-40, 2.0**24 + 2)


def lanes_of(target: str, element: str) -> int:
    features, doublings = TARGETS[target]
    if doublings is None:
        return 0
    return features.lanes(64 if element == "f64" else 32) << doublings


def arity_of(name: str, element: str) -> int:
    definition = DEFINITIONS.get((name, element))
    return definition.arity if definition else 2


def skip_unless_runs(target: str) -> None:
    features, host = TARGETS[target][0], TargetFeatures.host()
    if features.architecture != host.architecture or (features.has_avx2 and not host.has_avx2):
        pytest.skip(f"this machine can't run {features.chip}")


def add_loop(module: ir.Module, name: str, types: list[ir.Type], lanes: int, body) -> None:
    """`name(pointers..., count)`: body(builder, loaded values) is stored to the last pointer."""
    pointer, i64 = ir.PointerType(), ir.IntType(64)
    kind = ir.FunctionType(ir.VoidType(), [pointer] * len(types) + [i64])
    function = ir.Function(module, kind, name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    loop, done = function.append_basic_block("loop"), function.append_basic_block("done")
    entry = builder.block
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(i64)
    index.add_incoming(i64(0), entry)
    places = [
        builder.gep(argument, [index], source_etype=getattr(kind, "element", kind))
        for argument, kind in zip(function.args, types, strict=False)
    ]
    values = [
        builder.load(place, typ=kind, align=1)
        for place, kind in zip(places[:-1], types[:-1], strict=True)
    ]
    builder.store(body(builder, values), places[-1], align=1)
    following = builder.add(index, i64(max(lanes, 1)))
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, function.args[-1]), loop, done)
    builder.position_at_end(done)
    builder.ret_void()


def functions_module(target: str, element: str, precise: bool = False) -> ir.Module:
    features, _ = TARGETS[target]
    lanes = lanes_of(target, element)
    module = ir.Module("functions")
    library = VectorMath(module, features, precise)
    kind = ir_type(element, lanes)
    for name in function_names():
        if not supported(name, element):
            continue

        def body(builder, values, name=name):
            result = library.emit(builder, name, values)
            if result.type != kind:
                result = library.convert(builder, result, "i1", element)
            return result

        kinds = [kind] * (arity_of(name, element) + 1)
        add_loop(module, f"loop_{name}", kinds, lanes, body)
    return module


@functools.cache
def functions(target: str, element: str, precise: bool = False) -> jit.LoadedObject:
    module = functions_module(target, element, precise)
    return jit.load_object(jit.compile_module(module, TARGETS[target][0]))


def call(loaded: jit.LoadedObject, name: str, inputs: list[np.ndarray], result) -> np.ndarray:
    """The loop's result over the inputs, padded to a multiple of 64 with their last value."""
    count = len(inputs[0])
    padded = -(-count // 64) * 64
    inputs = [np.concatenate([a, np.repeat(a[-1:], padded - count)]) for a in inputs]
    out = np.zeros(padded, result)
    prototype = ctypes.CFUNCTYPE(
        None, *[ctypes.c_void_p] * (len(inputs) + 1), ctypes.c_int64
    )
    prototype(loaded.address(name))(*[a.ctypes.data for a in [*inputs, out]], padded)
    return out[:count]


def run(target: str, name: str, *inputs: np.ndarray, precise: bool = False) -> np.ndarray:
    element = "f32" if inputs[0].dtype == np.float32 else "f64"
    return call(functions(target, element, precise), f"loop_{name}", list(inputs), inputs[0].dtype)


@functools.cache
def samples(element: str) -> np.ndarray:
    """Every exponent with many mantissas, both signs, denormals, and dense usual ranges."""
    random = np.random.default_rng(0)
    exponents, mantissa, kind = (255, 23, np.uint32) if element == "f32" else (2047, 52, np.uint64)
    tails = [0, 1, (1 << mantissa) - 1, *random.integers(0, 1 << mantissa, 29)]
    if element == "f64":
        tails = tails[:6]
    bits = np.arange(exponents, dtype=kind)[:, None] << kind(mantissa)
    bits = (bits | np.array(tails, dtype=kind)).ravel()
    whole = bits.view(NUMPY[element])
    dense = [random.uniform(-r, r, 6000) for r in (1, 1, 8, 30, 110, 800, 60000)]
    near_one = 1 + random.uniform(-1e-2, 1e-2, 4000)
    values = np.concatenate([whole, -whole, *dense, near_one, SPECIALS])
    return values.astype(NUMPY[element])


def inside(name: str, x: np.ndarray) -> np.ndarray:
    """The arguments that a function is for."""
    return x[~(x > 64)] if name == "exp_nonpositive" else x


def pairs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    x = samples("f32")
    first, second = (a.ravel() for a in np.meshgrid(SPECIALS, SPECIALS))
    left = [x, random.permutation(x), random.uniform(0, 50, 9000), random.integers(-9, 9, 999)]
    right = [random.permutation(x), x, random.uniform(-20, 20, 9000), random.integers(-9, 9, 999)]
    return (
        np.concatenate([*left, first]).astype(np.float32),
        np.concatenate([*right, second]).astype(np.float32),
    )


def wide_truth(name: str, *inputs: np.ndarray) -> np.ndarray:
    """The value from torch (or Python's libm) in float64."""
    wide = [torch.from_numpy(a.astype(np.float64)) for a in inputs]
    if name == "cbrt":
        return np.cbrt(wide[0].numpy())
    if name == "tgamma":
        return np.array([_gamma(v) for v in wide[0].tolist()])
    return getattr(torch, PLAIN.get(name, name))(*wide).numpy()


def _gamma(value: float) -> float:
    try:
        return math.gamma(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, value) if value == 0 else math.nan


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance from the exact `want` (float64); 0 of equal infinities and of two NaN."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        step = np.spacing(np.maximum(np.abs(rounded), np.finfo(got.dtype).tiny))
        error = np.abs(got.astype(np.float64) - want) / step.astype(np.float64)
        error = np.where(same & ~np.isfinite(error), 0.0, error)
        error = np.where(same & ~np.isfinite(rounded), 0.0, error)
    return np.where(np.isnan(error), np.inf, error)


def check(name: str, inputs: list[np.ndarray], got, want, bound: float, signs=True) -> None:
    error = ulps(got, want)
    worst = int(np.argmax(error))
    where = [float(a[worst]) for a in inputs]
    assert error[worst] <= bound, (
        f"{name}{where}: {got[worst]!r} instead of {want[worst]!r}, {error[worst]:.2f} ulp"
    )
    zeros = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    assert not (signs and zeros.any()), f"{name}: sign of zero at {inputs[0][zeros][:3]}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", F32_BOUNDS)
def test_f32_is_accurate_over_the_whole_range(target, name):
    skip_unless_runs(target)
    x = samples("f32")
    if target == "host-scalar" or not is_inline(name, "f32"):
        x = np.concatenate([x[::9], np.array(SPECIALS, np.float32)])
    if name == "tgamma":
        x = np.concatenate([np.arange(1, 30), np.linspace(0.1, 34, 500)]).astype(np.float32)
    x = inside(name, x)
    # torch's f64 lgamma and digamma give no sign to a zero.
    check(name, [x], run(target, name, x), wide_truth(name, x), F32_BOUNDS[name])


@pytest.mark.parametrize("name", [n for n in F32_BOUNDS if is_inline(n, "f32")])
def test_f32_precise_is_within_one_ulp(name):
    if not supported(name, "f64"):
        pytest.skip("no f64 version to compute it in")
    x = samples("f32")[::5]
    x = inside(name, x)
    got = run("host", name, x, precise=True)
    check(name, [x], got, wide_truth(name, x), 1.3 if name in ("lgamma", "digamma") else 0.51)


@pytest.mark.parametrize("target", ["host", "avx2", "generic"])
@pytest.mark.parametrize("name", F64_BOUNDS)
def test_f64_is_near_torch_over_the_whole_range(target, name):
    skip_unless_runs(target)
    x = samples("f64")
    if name in ("sinh", "cosh", "sigmoid"):
        x = x[~(np.abs(x) > 709)]  # where torch's f64 overflows too early
    x = inside(name, x)
    # torch's own f64 functions are within one ulp, so the bound is that much wider.
    check(name, [x], run(target, name, x), wide_truth(name, x), F64_BOUNDS[name] + 1.0)


EXACT = {
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "exp2": lambda x: mpmath.mpf(2) ** x,
}


@pytest.mark.parametrize("name", F64_BOUNDS)
def test_f64_is_accurate_against_arbitrary_precision(name):
    random = np.random.default_rng(7)
    low, high = {"asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, 50)}.get(
        name, (0.01, 20) if "log" in name or "sqrt" in name else (-20, 20)
    )
    x = random.uniform(low, high, 150)
    got = run("host", name, x)
    function = EXACT.get(name) or getattr(mpmath, PLAIN.get(name, name))
    with mpmath.workdps(40):
        for value, result in zip(x.tolist(), got.tolist(), strict=True):
            exact = function(mpmath.mpf(value))
            step = float(np.spacing(abs(float(exact))))
            error = float(abs(exact - result)) / step
            assert error <= F64_BOUNDS[name], f"{name}({value!r}) = {result!r}, {error:.2f} ulp"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_exact(target, element, name):
    skip_unless_runs(target)
    x = samples(element)
    check(name, [x], run(target, name, x), wide_truth(name, x), 0.0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_over_special_and_usual_pairs(target, name):
    skip_unless_runs(target)
    x, y = pairs()
    bound = {"pow": 0.51, "atan2": 1.7}.get(name, 0.0)
    truth = wide_truth(name, x, y)
    if name in ("maximum", "minimum"):  # of two zeros the first one
        truth = np.where(x == y, x, truth)
    # Which zero is larger is not said by fmax and fmin.
    check(name, [x, y], run(target, name, x, y), truth, bound, name not in ("fmax", "fmin"))


@pytest.mark.parametrize("target", TARGETS)
def test_remainders_are_exact(target):
    skip_unless_runs(target)
    x, y = pairs()
    # Exact in any precision; torch's own vector loop gives NaN where x / y overflows.
    with np.errstate(all="ignore"):
        want = np.fmod(x.astype(np.float64), y.astype(np.float64))
    check("fmod", [x, y], run(target, "fmod", x, y), want, 0.0)
    random = np.random.default_rng(3)
    x = np.concatenate([random.uniform(-99, 99, 9000), random.integers(-9, 9, 999), SPECIALS])
    y = np.concatenate([random.uniform(-9, 9, 9000), random.integers(-9, 9, 999), SPECIALS[::-1]])
    huge = np.isfinite(x) & np.isfinite(y) & (y != 0) & (np.abs(x) > 2.0**20 * np.abs(y))
    x, y = x[~huge], y[~huge]
    for name in REMAINDERS:
        for kind in (np.float32, np.float64):
            a, b = x.astype(kind), y.astype(kind)
            want = getattr(torch, name)(torch.from_numpy(a), torch.from_numpy(b)).numpy()
            check(name, [a, b], run(target, name, a, b), want.astype(np.float64), 0.0, False)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit", "sign", "neg", "abs"])
def test_tests_and_signs(name):
    x = samples("f32")
    want = getattr(torch, name)(torch.from_numpy(x)).numpy().astype(np.float64)
    check(name, [x], run("host", name, x), want, 0.0, name != "sign")


def test_f64_is_right_to_the_edge_of_overflow():
    x = np.array([-710.4, 710.4, -710.5, 710.5, -744.0, 720.0])
    with mpmath.workdps(40):
        for name in ("sinh", "cosh", "sigmoid"):
            function = EXACT.get(name) or getattr(mpmath, PLAIN.get(name, name))
            exact = [function(mpmath.mpf(v)) for v in x.tolist()]
            want = np.array([float(e) for e in exact])
            check(name, [x], run("host", name, x), want, 3.0)


def test_limits_are_exact():
    x = np.array([20.0, math.inf, -20.0, -math.inf, 0.0, -0.0], np.float32)
    for name in ("erf", "tanh"):
        assert run("host", name, x).tolist() == [1.0, 1.0, -1.0, -1.0, 0.0, -0.0]
    x = np.array([200.0, math.inf, -200.0, -math.inf, 0.0], np.float32)
    assert run("host", "sigmoid", x).tolist() == [1.0, 1.0, 0.0, 0.0, 0.5]


DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8,
}  # fmt: skip
CARRIERS = {"bf16": "i16", "u8": "i8"}


def convert_all(target: str, source: str, values: torch.Tensor) -> dict[str, torch.Tensor]:
    features, _ = TARGETS[target]
    lanes = lanes_of(target, "f32")
    module = ir.Module("conversions")
    library = VectorMath(module, features)
    for other in DTYPES:

        def body(builder, loaded, other=other):
            return library.convert(builder, loaded[0], source, other)

        kinds = [ir_type(CARRIERS.get(t, t), lanes) for t in (source, other)]
        add_loop(module, other, kinds, lanes, body)
    loaded = jit.load_object(jit.compile_module(module, features))
    values = values[: len(values) // 64 * 64].contiguous()
    results = {}
    for other, dtype in DTYPES.items():
        out = torch.zeros(len(values), dtype=dtype)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        prototype(loaded.address(other))(values.data_ptr(), out.data_ptr(), len(values))
        results[other] = out
    return results


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", DTYPES)
def test_conversions_equal_torchs(target, source):
    skip_unless_runs(target)
    dtype = DTYPES[source]
    if source in ("f16", "bf16"):
        values = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    elif dtype.is_floating_point:
        values = torch.from_numpy(samples(source))
        halves = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.float16)
        values = torch.cat([values, halves.to(dtype), halves.to(dtype) * 1.00048828125])
    else:
        info = torch.iinfo(dtype)
        values = torch.arange(256 * 64).mul(2**56 // 97).view(torch.uint8).view(dtype)
        values = torch.cat([values, torch.tensor([info.min, info.max, 0, 1] * 16, dtype=dtype)])
    for other, got in convert_all(target, source, values).items():
        inputs = values[: len(got)]
        if dtype.is_floating_point and not DTYPES[other].is_floating_point:
            inside = inputs.double().abs() < (127.0 if "8" in other else 2.0**15 - 1)
            inputs, got = torch.where(inside, inputs, 0), torch.where(inside, got, 0)
            if other == "u8":
                got = torch.where(inputs < 0, 0, got)
                inputs = torch.where(inputs < 0, 0, inputs)
        want = inputs.to(DTYPES[other])
        equal = (got == want) | (torch.isnan(got) & torch.isnan(want))
        if want.is_floating_point():
            equal &= (torch.signbit(got) == torch.signbit(want)) | torch.isnan(want)
        bad = int((~equal).int().argmax())
        assert equal.all(), f"{source} to {other}: {inputs[bad]} gives {got[bad]}, not {want[bad]}"


@pytest.mark.parametrize("target", ["host", "avx2"])
def test_common_functions_call_nothing(target):
    features, _ = TARGETS[target]
    if not features.has_avx2:
        pytest.skip("not an x86 machine with AVX2")
    lanes = lanes_of(target, "f32")
    kind = ir_type("f32", lanes)
    for name in ("exp", "tanh", "erf", "log", "floor", "round", "sigmoid", "maximum", "pow"):
        module = ir.Module(name)
        library = VectorMath(module, features)
        arity = arity_of(name, "f32")
        add_loop(
            module, "loop", [kind] * (arity + 1), lanes,
            lambda b, values, name=name, library=library: library.emit(b, name, values),
        )  # fmt: skip
        assembly = jit.module_assembly(module, features)
        assert not re.search(r"\bcall", assembly), name
        register = "zmm" if features.has_avx512 else "ymm"
        assert register in assembly, name
        if name in ("exp", "erf", "sigmoid"):
            looks_up = features.has_avx512 or name == "erf"
            assert ("vpermps" in assembly) == looks_up, name


def test_functions_are_generated_for_neon():
    module = ir.Module("neon")
    features = TargetFeatures.neon()
    library = VectorMath(module, features)
    kind = ir_type("f32", 4)
    for name in ("exp", "tanh", "erf", "log", "floor"):
        add_loop(
            module, name, [kind, kind], 4,
            lambda b, values, name=name, library=library: library.emit(b, name, values),
        )  # fmt: skip
    assembly = jit.module_assembly(module, features)
    assert "fmla" in assembly and not re.search(r"^\s*bl\s", assembly, re.MULTILINE)


def test_wrong_uses_are_named():
    module = ir.Module("wrong")
    library = VectorMath(module, TargetFeatures.host())
    kind = ir_type("f32", 16)
    function = ir.Function(module, ir.FunctionType(kind, [kind]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    x = function.args[0]
    with pytest.raises(KeyError, match="airy"):
        library.emit(builder, "airy", [x])
    with pytest.raises(TypeError, match="atan2 takes 2 operands"):
        library.emit(builder, "atan2", [x])
    with pytest.raises(TypeError, match="carried as i16"):
        library.convert(builder, x, "bf16", "f32")
    assert not supported("erfinv", "f64") and supported("exp", "f32")
    assert not is_inline("pow", "f64") and is_inline("pow", "f32")
