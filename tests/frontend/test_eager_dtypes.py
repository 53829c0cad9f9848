"""What eager refuses of two dtypes is refused, and where torch's shape function has another dtype
than ATen gives, the result is ATen's. Found by tests/fuzz/test_numbers.py."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

from tests.fuzz.harness import compiled, observe, same


def tensor(value: float, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.full(shape, value).to(dtype)


@pytest.mark.fault("C8")
@pytest.mark.parametrize(
    ("function", "first", "second"),
    [(torch.heaviside, torch.int32, torch.float32), (torch.heaviside, torch.float64, torch.float32),
     (torch.heaviside, torch.float16, torch.bool), (torch.logaddexp, torch.int64, torch.uint8),
     (torch.logaddexp2, torch.uint8, torch.uint8),
     (torch.logaddexp2, torch.int64, torch.int64)],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (3,)])
def test_what_eager_refuses_is_refused(function, first, second, shape):
    arguments = [tensor(1, first, shape), tensor(2, second, shape)]
    with pytest.raises(Exception) as eager:
        function(*arguments)
    with pytest.raises(Exception, match="implemented") as ours:
        compiled(function, arguments)
    assert isinstance(ours.value, type(eager.value))


@pytest.mark.fault("C8")
@pytest.mark.parametrize(
    ("first", "second", "count"),
    [("int64", "int32", 3), ("bfloat16", "int32", 0), ("bool", "complex64", 3)],
)
def test_a_matrix_and_a_vector_of_two_dtypes(first, second, count):
    matrix = tensor(1, getattr(torch, first), (2, count))
    vector = tensor(1, getattr(torch, second), (count,))
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        matrix @ vector
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        compiled(torch.matmul, [matrix, vector])


BOOLS = torch.tensor([True, False])


@pytest.mark.fault("C8")
@pytest.mark.parametrize("function", [lambda x: x**x, lambda x: True**x], ids=["tensor", "number"])
def test_powers_of_bools_that_eager_refuses(function):
    with pytest.raises(NotImplementedError):
        function(BOOLS)
    with pytest.raises(NotImplementedError):
        compiled(function, [BOOLS])


@pytest.mark.fault("V8")
@pytest.mark.parametrize("exponent", [True, False])
def test_bools_to_the_power_of_a_bool(exponent):
    (got,) = compiled(lambda x: x**exponent, [BOOLS]).outputs
    assert torch.equal(got, BOOLS**exponent) and got.dtype is torch.bool


@pytest.mark.fault("V8")
@pytest.mark.parametrize(
    ("dtype", "exponent", "shapes"),
    [("bool", "float16", ((), ())), ("int64", "bfloat16", ((2, 1), ())),
     ("float16", "int32", ((), (3,))), ("float64", "bfloat16", ((), (3,))),
     ("float64", "int32", ((1,), (0,))), ("complex128", "uint8", ((), (3,)))],
)  # fmt: skip
def test_ldexp_has_the_dtype_of_eager(dtype, exponent, shapes):
    dtypes = [getattr(torch, name) for name in (dtype, exponent)]
    arguments = [tensor(3, d, s) for d, s in zip(dtypes, shapes, strict=True)]
    with warnings.catch_warnings():  # eager changes the size of its result here
        warnings.simplefilter("ignore")
        expected = observe(torch.ldexp, arguments)
    same(expected, compiled(torch.ldexp, arguments), exact=False)


@pytest.mark.fault("V8")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_ldexp_reaches_as_far_as_eager(dtype):
    numbers = torch.tensor([1.25, -1e-4, 3e4, 2.0**-20, 0.0, math.inf, math.nan])
    numbers = numbers.to(getattr(torch, dtype))
    wide = numbers[:, None].expand(7, 8)
    powers = torch.tensor([0, 1, -1, 20, -30, 140, -150, 3000])
    (got,) = compiled(torch.ldexp, [wide, powers]).outputs
    torch.testing.assert_close(got, torch.ldexp(wide, powers), rtol=0, atol=0, equal_nan=True)
    far = torch.full((3,), torch.finfo(numbers.dtype).tiny, dtype=numbers.dtype)
    back = torch.tensor([2, 3, 4]) - math.frexp(far[0].item())[1]
    (got,) = compiled(torch.ldexp, [far, back]).outputs
    assert torch.equal(got, torch.ldexp(far, back)) and got[0] == 2


@pytest.mark.fault("C8")
def test_ldexp_of_bools_as_exponents_is_refused():
    arguments = [torch.ones(3), BOOLS[:1]]
    with pytest.raises(NotImplementedError):
        torch.ldexp(*arguments)
    with pytest.raises(NotImplementedError):
        compiled(torch.ldexp, arguments)


@pytest.mark.fault("V8")
@pytest.mark.parametrize("exponent", [torch.tensor([3, -2]), torch.tensor([3.0, -2.5])])
def test_the_gradient_of_ldexp(exponent):
    x = torch.tensor([1.5, -2.0])
    gradients = []
    for function in (torch.ldexp, torch.compile(torch.ldexp, backend="irc")):
        leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in (x, exponent)]
        function(*leaves).sum().backward()
        gradients.append([leaf.grad for leaf in leaves if leaf.requires_grad])
    torch.testing.assert_close(*gradients)


def test_ldexp_of_16_bits_rounds_the_power_as_eager_does():
    torch.manual_seed(3)
    x, y = torch.randn(500).bfloat16() * 9, torch.tensor(3.609375, dtype=torch.bfloat16)
    assert torch.equal(torch.compile(torch.ldexp, backend="irc")(x, y), torch.ldexp(x, y))
