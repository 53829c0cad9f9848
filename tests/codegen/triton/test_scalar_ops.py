"""Each arith and math operation on each type: Triton's interpreter against irc's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from irc.codegen.triton import functions, runtime
from irc.codegen.triton.emitter import emit_kernel, emit_module
from irc.dialects import arith, kernel
from irc.interp.core import Frame, torch_dtype
from irc.interp.kernel import launch
from irc.interp.math import FUNCTIONS
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.diagnostics import UserError
from irc.ir.registry import lookup_op

LANES = 64
INTEGERS = (T.i1, T.i8, T.i16, T.i32, T.i64)
FLOATS = (T.f16, T.bf16, T.f32, T.f64)
INTEGER_OPS = (
    "addi subi muli divsi divui floordivsi ceildivsi remsi remui andi ori xori shli shrsi shrui "
    "minsi maxsi minui maxui"
).split()
FLOAT_OPS = "addf subf mulf divf remf minimumf maximumf minnumf maxnumf".split()
# irc's interpreter takes the signed extremes of i1 as unsigned ones; divisors of 1 bit are no use.
UNCERTAIN = {("minsi", T.i1), ("maxsi", T.i1)} | {
    (name, T.i1) for name in INTEGER_OPS if name.startswith(("div", "rem", "floor", "ceil"))
}
FLOAT_CASTS = [("extf", T.f16, T.f32), ("extf", T.bf16, T.f64), ("truncf", T.f32, T.bf16),
               ("truncf", T.f64, T.f16), ("truncf", T.f64, T.f32)]  # fmt: skip
OTHER_CASTS = [
    ("extsi", T.i1, T.i32), ("extsi", T.i8, T.i64), ("extui", T.i1, T.i8),
    ("extui", T.i8, T.i32), ("extui", T.i32, T.i64), ("trunci", T.i64, T.i8),
    ("trunci", T.i32, T.i1), ("sitofp", T.i32, T.f32), ("sitofp", T.i8, T.bf16),
    ("sitofp", T.i1, T.f32), ("uitofp", T.i1, T.f32), ("uitofp", T.i8, T.f32),
    ("uitofp", T.i32, T.f64), ("fptosi", T.f32, T.i32), ("fptosi", T.bf16, T.i8),
    ("fptosi", T.f64, T.i64), ("bitcast", T.f32, T.i32), ("bitcast", T.i64, T.f64),
    ("bitcast", T.bf16, T.i16),
]  # fmt: skip


class Single:
    """A kernel of one operation on LANES lanes."""

    def __init__(
        self, name: str, sources: Sequence[T.Type], result: T.Type, **attrs: Any
    ) -> None:
        self.label = f"{name}-{'-'.join(map(str, sources))}-{'-'.join(map(str, attrs.values()))}"
        pointers = [kernel.PointerType(t) for t in (*sources, result)]
        self.kernel = kernel.KernelFuncOp.create("k", pointers, "gpu", grid=A.DimAttr(1))
        b = Builder.at_end(self.kernel.block)
        *inputs, output = self.kernel.block.arguments
        places = b.value(kernel.IotaOp, result_types=T.VectorType((LANES,), T.index))
        tiles = [
            b.value(kernel.GatherOp, p, places, result_types=T.VectorType((LANES,), t))
            for p, t in zip(inputs, sources, strict=True)
        ]
        kind = T.VectorType((LANES,), result)
        value = b.value(lookup_op(name), *tiles, result_types=kind, **attrs)
        b.create(kernel.ScatterOp, value, output, places)
        b.create(kernel.KernelReturnOp)
        self.source = emit_kernel(self.kernel)
        self.tensors = [content(t, seed) for seed, t in enumerate(sources)]
        if name.rpartition(".")[2].startswith(("div", "rem", "floordiv", "ceildiv")):
            divisor = self.tensors[1]
            self.tensors[1] = torch.where(divisor == 0, torch.ones_like(divisor), divisor)
        if name in ("arith.fptosi", "arith.fptoui"):
            self.tensors[0] = self.tensors[0].nan_to_num(5, 7, -7).clamp(-100, 100)
        self.tensors.append(torch.zeros(LANES, dtype=torch_dtype(result)))

    def expected(self) -> torch.Tensor:
        tensors = [t.clone() for t in self.tensors]
        launch(Frame(None), self.kernel, tensors)
        return tensors[-1]


def content(kind: T.Type, seed: int) -> torch.Tensor:
    """Random values with the awkward ones first."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch_dtype(kind)
    if dtype == torch.bool:
        return torch.rand(LANES, generator=generator) > 0.5
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        values = torch.randint(-20, 20, (LANES,), generator=generator).to(dtype)
        values[:6] = torch.tensor([info.max, info.min + 1, 0, -1, 1, 7], dtype=dtype)[
            torch.randperm(6, generator=generator)
        ]
        return values
    values = (torch.randn(LANES, generator=generator, dtype=torch.float64) * 3).to(dtype)
    special = torch.tensor(
        [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1.0, -1.0, 2.5], dtype=dtype
    )
    count = len(special)
    values[: 2 * count] = special.repeat(2)[torch.randperm(2 * count, generator=generator)]
    return values


def singles() -> list[Single]:
    made: list[Single] = []
    for name in INTEGER_OPS:
        made += [Single(f"arith.{name}", (t, t), t) for t in INTEGERS if (name, t) not in UNCERTAIN]
    for name in FLOAT_OPS:
        made += [Single(f"arith.{name}", (t, t), t) for t in FLOATS]
    for predicate in arith.INTEGER_PREDICATES:
        made += [Single("arith.cmpi", (t, t), T.i1, predicate=predicate) for t in (T.i1, T.i8)]
    for predicate in arith.FLOAT_PREDICATES:
        made += [Single("arith.cmpf", (t, t), T.i1, predicate=predicate) for t in (T.bf16, T.f64)]
    for name, source, target in (*FLOAT_CASTS, *OTHER_CASTS):
        made.append(Single(f"arith.{name}", (source,), target))
    made += [Single("arith.select", (T.i1, t, t), t) for t in (T.i1, T.i8, T.bf16, T.f64)]
    made += [Single("arith.negf", (t,), t) for t in FLOATS]
    made += [Single("math.absi", (t,), t) for t in (T.i8, T.i64)]
    made.append(Single("math.philox", (T.i64,) * 3, T.i64))
    return made


def math_singles() -> list[Single]:
    made: list[Single] = []
    for name in sorted(set(FUNCTIONS) - {"absi", "philox"}):
        cls: Any = lookup_op(f"math.{name}")
        for kind in (T.bf16, T.f32, T.f64):
            if (name, str(kind)) in functions.LIBDEVICE:
                continue
            result = T.i1 if name in ("isnan", "isinf") else kind
            made.append(Single(f"math.{name}", (kind,) * len(cls.operand_fields), result))
    return made


def test_arith_has_the_interpreters_bits() -> None:
    cases = singles()
    outputs = runtime.run_interpreted(
        [runtime.Job.of(c.kernel, c.source, c.tensors, {}) for c in cases]
    )
    wrong = []
    for case, output in zip(cases, outputs, strict=True):
        expected, actual = case.expected(), output[-1]
        same = actual == expected
        if actual.dtype.is_floating_point:
            if "imum" not in case.label and "num" not in case.label:  # which zero is not told
                same = same & (actual.signbit() == expected.signbit())
            same = same | (actual.isnan() & expected.isnan())
        if actual.dtype == torch.bfloat16:
            same = same | truncated(actual, expected)
        if not same.all():
            wrong.append((case.label, actual[~same][:3], expected[~same][:3]))
    assert not wrong


def truncated(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Where they are neighbours: Triton's interpreter (not its compiler) truncates to bf16."""
    return actual.view(torch.int16) == expected.view(torch.int16) - 1


def test_math_is_within_a_few_ulp() -> None:
    cases = math_singles()
    outputs = runtime.run_interpreted(
        [runtime.Job.of(c.kernel, c.source, c.tensors, {}) for c in cases]
    )
    wrong = []
    for case, output in zip(cases, outputs, strict=True):
        actual = output[-1]
        name = case.label.partition("-")[0].removeprefix("math.")
        if actual.dtype == torch.bool or name == "nextafter":
            expected = case.expected().double().nan_to_num()
            assert torch.equal(actual.double().nan_to_num(), expected), case.label
            continue
        exact = FUNCTIONS[name](*[t.double() for t in case.tensors[:-1]])
        expected = exact.to(actual.dtype)
        same = (actual == expected) | (actual.isnan() & expected.isnan())
        scale = exact.abs().clamp_min(torch.finfo(actual.dtype).tiny)
        error = ((actual.double() - exact).abs() / scale)[~same] / torch.finfo(actual.dtype).eps
        # Beside its zero near 1.46, digamma of f64 is bounded absolutely.
        bound = 2000.0 if name == "digamma" else 4.0
        if error.isnan().any() or (error > bound).any():
            wrong.append((case.label, error.max()))
    assert not wrong


def test_exp_and_sigmoid_from_underflow_to_overflow() -> None:
    edges = [-torch.inf, -1e4, -150.0, -104.0, -103.2, -95.0, -88.0, -87.4, -87.3, -20.5, -1e-30,
             0.0, 1e-30, 0.34, 0.35, 20.5, 87.3, 88.0, 88.4, 88.7, 88.73, 89.5, 1e4, torch.inf,
             torch.nan]  # fmt: skip
    x = torch.cat([torch.tensor(edges), torch.linspace(-110, 95, LANES - len(edges))])
    for name in ("exp", "sigmoid"):
        case = Single(f"math.{name}", (T.f32,), T.f32)
        case.tensors[0] = x
        ((_, found),) = runtime.run_interpreted(
            [runtime.Job.of(case.kernel, case.source, case.tensors, {})]
        )
        exact = getattr(torch, name)(x.double()).float()
        torch.testing.assert_close(found, exact, rtol=5e-7, atol=2e-45, equal_nan=True)
        if name == "sigmoid":
            # A GPU's short division of equal numbers isn't 1: no quotient may be taken there.
            assert (found[x > 17.33] == 1).all() and "where(x > 17.33, 1.0," in case.source


@pytest.mark.slow
def test_everything_compiles() -> None:
    for case in (*singles(), *math_singles()):
        compiled = runtime.compile_for(case.source, "k", runtime.signature_of(case.kernel))
        assert compiled["cubin"], case.label


@pytest.mark.parametrize("name, kind", [("powf", T.f64), ("lgamma", T.f64), ("erfinv", T.f64)])
def test_libdevice_functions_compile(name: str, kind: T.Type) -> None:
    arity = 2 if name == "powf" else 1
    case = Single(f"math.{name}", (kind,) * arity, kind)
    assert "libdevice" in case.source
    assert runtime.compile_for(case.source, "k", runtime.signature_of(case.kernel))["cubin"]


def test_module_defines_a_helper_once() -> None:
    case = Single("math.tanh", (T.f32,), T.f32)
    other = case.kernel.clone()
    other.attributes["sym_name"] = A.StringAttr("k2")
    text = emit_module([case.kernel, other])
    assert text.count("def irc_tanh_f32(") == 1
    assert text.count("@triton.jit\ndef k(") == 1 and "def k2(" in text


@pytest.mark.parametrize("name", ["class", "v3", "irc_exp_f32", "a b", "x;y", "tl"])
def test_unsafe_kernel_names_are_refused(name: str) -> None:
    case = Single("math.exp", (T.f32,), T.f32)
    case.kernel.attributes["sym_name"] = A.StringAttr(name)
    with pytest.raises(UserError, match="can't name a Triton kernel"):
        emit_kernel(case.kernel)


def test_byte_atomics_are_refused() -> None:
    with pytest.raises(UserError, match="scatter prod of i8"):
        functions.atomic("prod", "i8")


def test_scratch_is_refused() -> None:
    func = kernel.KernelFuncOp.create("k", [], "gpu")
    b = Builder.at_end(func.block)
    b.create(kernel.ScratchOp, result_types=kernel.PointerType(T.f32), count=4)
    b.create(kernel.KernelReturnOp)
    with pytest.raises(UserError, match=r"kernel\.scratch"):
        emit_kernel(func)


def test_cpu_kernels_are_refused() -> None:
    with pytest.raises(UserError, match="cpu kernel"):
        emit_kernel(kernel.KernelFuncOp.create("k", [], "cpu"))
