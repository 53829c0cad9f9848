"""Numbers that small programs rarely meet: pairs of dtypes at rank 0 and above, where the dtype of
a result is easily told wrong; windows that hold nothing but infinities; sums of millions."""

from __future__ import annotations

import math
import operator
from typing import Any

import attrs
import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st  # noqa: E402

from tests.backends import needs_backend  # noqa: E402
from tests.fuzz.harness import compiled, fuzz, observe, same  # noqa: E402
from tests.fuzz.programs import ERRORS  # noqa: E402

pytestmark = needs_backend
Draw = Any
F = torch.nn.functional

# -- pairs of dtypes

PAIRS = {
    name: getattr(torch, name)
    for name in (
        "add sub mul div true_divide floor_divide remainder fmod pow float_power atan2 hypot "
        "copysign nextafter ldexp logaddexp logaddexp2 maximum minimum fmax fmin eq lt heaviside "
        "bitwise_and bitwise_or bitwise_left_shift logical_xor xlogy gcd lcm dist"
    ).split()
    if hasattr(torch, name)
}
PAIRS |= {
    "where": lambda a, b: torch.where(a.bool(), a, b),
    "lerp": lambda a, b: torch.lerp(a, a + 1, b),
    "addcmul": lambda a, b: torch.addcmul(a, b, b),
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "add with a number": lambda a, b: torch.add(a, b, alpha=2),
    "add a number": lambda a, b: a + 2.5,
    "mul by a number": lambda a, b: (a * 2, b * True),
    "copy": lambda a, b: a.clone().copy_(b),
    "in place": lambda a, b: a.clone().mul_(b),
    "type": lambda a, b: a.type_as(b),
    "divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "matmul": operator.matmul,
}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool",
          "complex64", "complex128")  # fmt: skip
SHAPES = ((), (), (1,), (1, 1), (3,), (2, 1), (0,))
NUMBERS = (2.0, 1.0, 0.0, -1.0, 3.0, 0.5, 7.0)


@attrs.frozen
class Pair:
    """An operation of two tensors."""

    name: str
    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    first: int

    def arguments(self) -> list[torch.Tensor]:
        """Two tensors of a few numbers."""
        made = []
        for k, (dtype, shape) in enumerate(zip(self.dtypes, self.shapes, strict=True)):
            count = math.prod(shape)
            numbers = [NUMBERS[(self.first + 3 * k + n) % len(NUMBERS)] for n in range(count)]
            made.append(torch.tensor(numbers).to(getattr(torch, dtype)).reshape(shape))
        return made


pairs = st.builds(
    Pair,
    st.sampled_from([*PAIRS]),
    st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)),
    st.tuples(st.sampled_from(SHAPES), st.sampled_from(SHAPES)),
    st.integers(0, 6),
)


@fuzz("pairs", pairs, quick=16, total=4_000, batch=250)
def test_pairs_of_dtypes(case: Pair, compile_it: bool) -> None:
    agree(PAIRS[case.name], case.arguments())


def agree(function: Any, arguments: list[torch.Tensor], **how: Any) -> None:
    """Eager's outcome, or a refusal where eager has one; where AOTAutograd alone is right."""
    try:
        expected = observe(function, arguments)
    except ERRORS as error:
        refused(function, arguments, error)
        return
    try:
        same(expected, compiled(function, arguments), exact=False, **how)
    except Exception as failure:  # of any class, torch's and irc's own too: raised below
        try:
            same(expected, compiled(function, arguments, "aot_eager"), exact=False, **how)
        except (*ERRORS, AssertionError):
            return
        raise failure


def refused(function: Any, arguments: list[torch.Tensor], error: Exception) -> None:
    """What eager refuses is refused."""
    try:
        got = compiled(function, arguments).outputs
    except (type(error), RuntimeError) as ours:  # Dynamo's where torch's own shapes refuse
        assert "internal error" not in str(ours)
        return
    try:
        compiled(function, arguments, "aot_eager")
    except ERRORS:
        raise AssertionError(f"eager raises {error!r}, irc gives {got}") from None


# -- windows of infinities


@attrs.frozen
class Pooling:
    """A pooling of an input in which whole windows are one special number."""

    rank: int
    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil: bool
    special: float
    share: float
    kind: str

    def argument(self) -> torch.Tensor:
        """The input: some of its elements are special."""
        sizes = (2, *[self.size] * self.rank)
        generator = torch.Generator().manual_seed(self.size * 7 + self.kernel)
        x = torch.randint(-3, 4, sizes, generator=generator).float()
        special = torch.rand(sizes, generator=generator) < self.share
        return x.masked_fill(special, self.special)

    def __call__(self, x: torch.Tensor) -> Any:
        """The pooling."""
        words = (self.kernel, self.stride, self.padding)
        if self.kind == "avg":
            return getattr(F, f"avg_pool{self.rank}d")(x, *words, self.ceil)
        if self.kind == "adaptive":
            return getattr(F, f"adaptive_max_pool{self.rank}d")(x, self.kernel, True)
        pool = getattr(F, f"max_pool{self.rank}d")
        return pool(x, *words, self.dilation, self.ceil, self.kind != "values")


def is_defined(case: Pooling) -> bool:
    """Whether eager defines what the pooling gives: each window has an element (without one, the
    index is that of no element), and no place of one of several NaNs is asked for (eager's is the
    last of them, irc's the first)."""
    if case.kind in ("indices", "gradient", "adaptive") and math.isnan(case.special):
        return False
    if case.kind == "adaptive":
        return True
    reach = 1 + (case.kernel - 1) * case.dilation - case.padding
    return case.dilation == 1 or reach < case.size or case.padding == 0


poolings = st.builds(
    Pooling,
    st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1),
    st.integers(1, 2), st.booleans(), st.sampled_from([-math.inf, math.inf, math.nan, -math.inf]),
    st.sampled_from([1.0, 1.0, 0.8, 0.3]),
    st.sampled_from(["values", "indices", "indices", "gradient", "avg", "adaptive"]),
).filter(is_defined)  # fmt: skip


@fuzz("windows", poolings, quick=12, total=2_000, batch=100)
def test_windows_of_infinities(case: Pooling, compile_it: bool) -> None:
    if case.kind != "gradient":
        agree(case, [case.argument()], strides=False)
        return

    def gradient(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            given = x.detach().requires_grad_()
            values, _ = case(given)
            return torch.autograd.grad(values.sum(), given)[0]

    check_gradient(case, gradient)


def check_gradient(case: Pooling, gradient: Any) -> None:
    """The gradient of a compiled pooling is eager's: places are those of the first maximum."""
    try:
        expected = gradient(case.argument())
    except RuntimeError:
        return
    torch._dynamo.reset()
    pool = torch.compile(lambda x: case(x)[0], backend="irc", dynamic=False)
    given = case.argument().requires_grad_()
    (got,) = torch.autograd.grad(pool(given).sum(), given)
    torch.testing.assert_close(got, expected, equal_nan=True)


# -- millions


@attrs.frozen
class Scan:
    """A scan or a reduction of many numbers."""

    name: str
    count: int
    seed: int
    dim: int

    def argument(self) -> torch.Tensor:
        """So many numbers from 0 to 1, in f32."""
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.rand(self.count, generator=generator)
        if self.name == "cumprod":
            x = 1 + (x - 0.5) * 1e-3
        return x if self.dim == 0 else x[: self.count // 8 * 8].view(-1, 8).t()


SCANS = {
    "cumsum": lambda x: x.cumsum(-1)[..., -1000:],
    "cumprod": lambda x: x.cumprod(-1)[..., -1000:],
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1)[..., -1000:],
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
}
scans = st.builds(
    Scan,
    st.sampled_from([*SCANS]), st.integers(1_000_000, 5_000_000), st.integers(0, 1000),
    st.integers(0, 1),
)  # fmt: skip


@fuzz("scans", scans, quick=2, total=100, batch=5)
def test_scans_of_millions(case: Scan, compile_it: bool) -> None:
    check_scan(case)


def check_scan(case: Scan) -> None:
    """The error against f64 is at most four times eager's, and some roundings."""
    function, x = SCANS[case.name], case.argument()
    exact = function(x.double())
    (got,) = compiled(function, [x]).outputs
    errors = [((v.double() - exact) / exact).abs().max().item() for v in (function(x), got)]
    assert errors[1] <= 4 * errors[0] + 4e-7, f"relative error {errors[1]}, eager's {errors[0]}"
