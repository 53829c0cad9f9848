"""Dtypes of results are eager's for operands of any two dtypes, numbers and rank-0 tensors."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc

pytestmark = [pytest.mark.fault("V8"), pytest.mark.filterwarnings("ignore")]

DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128)  # fmt: skip
NUMBERS = {torch.bool: True, torch.int64: 2, torch.float64: 1.5, torch.complex128: 1.5 + 0.5j}
WHERE = lambda x, y: torch.where(torch.tensor([True, False, True]), x, y)  # noqa: E731
OPERATIONS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "eq": torch.eq,
    "lt": torch.lt, "pow": torch.pow, "fmod": torch.fmod, "remainder": torch.remainder,
    "floor_divide": torch.floor_divide, "atan2": torch.atan2, "hypot": torch.hypot,
    "maximum": torch.maximum, "fmin": torch.fmin, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "xlogy": torch.xlogy, "xlog1py": torch.special.xlog1py,
    "copysign": torch.copysign, "heaviside": torch.heaviside, "bitwise_and": torch.bitwise_and,
    "logical_or": torch.logical_or, "lcm": torch.lcm, "where": WHERE, "isclose": torch.isclose,
    "float_power": torch.float_power, "true_divide": torch.true_divide, "cross": torch.linalg.cross,
    "bitwise_left_shift": torch.bitwise_left_shift, "nextafter": torch.nextafter,
    "mse_loss": torch.nn.functional.mse_loss, "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2), "dist": torch.dist,
    "clamp": lambda x, y: torch.clamp(x, max=y), "cat": lambda x, y: torch.cat([x, y]),
    "ldexp": torch.ldexp, "huber_loss": torch.nn.functional.huber_loss,
    "cosine": lambda x, y: torch.cosine_similarity(x, y, 0),
}  # fmt: skip


#: What torch raises where an operator doesn't take a dtype, or a number in a tensor's stead.
REFUSED = (RuntimeError, TypeError, AttributeError)


def operands(dtype: torch.dtype, seed: int) -> torch.Tensor:
    values = torch.tensor([2.0, 1.0, 3.0]) if seed else torch.tensor([1.0, 3.0, 2.0])
    return values.to(dtype)


def ways(first: torch.dtype, second: torch.dtype):
    """The operands to try: two tensors, one of rank 0, a number."""
    x, y = operands(first, 0), operands(second, 1)
    yield x, y
    yield x, y[0]
    yield x[0], y
    if second in NUMBERS:
        yield x, NUMBERS[second]


def works(function, *arguments) -> bool:
    """Whether eager mode does it, and torch's own fake tensors, with a result of one dtype (they
    disagree about losses of two dtypes)."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        try:
            told = function(*fakes).dtype
        except REFUSED:
            return False
    try:
        return function(*arguments).dtype is told
    except REFUSED:
        return False


def programs(first: torch.dtype, second: torch.dtype):
    for arguments in ways(first, second):
        names = [n for n, f in OPERATIONS.items() if works(f, *arguments)]
        yield names, arguments


def check(first: torch.dtype, second: torch.dtype) -> None:
    for names, arguments in programs(first, second):
        together = lambda *a: [OPERATIONS[n](*a) for n in names]  # noqa: B023, E731
        module = irc.trace(together, arguments)
        irc.PassManager.parse("functional,aten-to-graph").run(module)
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        for name, mine, eager in zip(
            names, irc.run(module, *tensors), together(*arguments), strict=True
        ):
            told = f"{name}({', '.join(map(str, arguments))})"
            assert mine.dtype is eager.dtype, told
            narrow = eager.dtype in (torch.float16, torch.bfloat16)
            tolerance = 2e-2 if narrow else 1e-5
            torch.testing.assert_close(
                mine, eager, rtol=tolerance, atol=tolerance, equal_nan=True, msg=told
            )


PAIRS = list(itertools.product(DTYPES, DTYPES))
# What had to be told apart: complex numbers, 16-bit floats and rank 0.
CHOSEN = [
    (torch.complex128, torch.float16), (torch.bfloat16, torch.float16),
    (torch.float16, torch.float64), (torch.uint8, torch.bool), (torch.bool, torch.complex128),
]  # fmt: skip


def known_by(pair) -> str:
    return " ".join(str(d).removeprefix("torch.") for d in pair)


@pytest.mark.parametrize("pair", CHOSEN, ids=known_by)
def test_binary_operators_promote_as_eager(pair):
    check(*pair)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [p for p in PAIRS if p not in CHOSEN], ids=known_by)
def test_binary_operators_promote_as_eager_for_all_pairs(pair):
    check(*pair)
