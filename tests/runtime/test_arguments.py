"""Errors that name the argument."""

import pytest
import torch

from irc.ir.symbols import symbol
from irc.runtime.arguments import (
    AcceptedKinds,
    ArgumentError,
    ArgumentSpec,
    check_arguments,
)

S0 = symbol("s0")
SPECS = [
    ArgumentSpec("x", "tensor", torch.float32, (S0, 8), (8, 1)),
    ArgumentSpec("y", "tensor", torch.float32, (S0 * 2 + 1,), None),
    ArgumentSpec("n", "int", symbol=symbol("s1")),
]


def _good():
    return [torch.randn(3, 8), torch.randn(7), 5]


def test_binds_symbols():
    assert check_arguments(SPECS, _good()) == {"s0": 3, "s1": 5}


def test_one_number_of_the_cpu_is_accepted_for_a_gpu():
    seed = ArgumentSpec("seed", "tensor", torch.int64, (), (), device="cuda:0")
    assert check_arguments([seed], [torch.tensor(5)]) == {}
    row = ArgumentSpec("row", "tensor", torch.int64, (1,), (1,), device="cuda:0")
    with pytest.raises(ArgumentError, match="move it with"):
        check_arguments([row], [torch.tensor([5])])


def test_subclass_without_dispatch_is_accepted():
    class Sub(torch.Tensor):
        pass

    x, y, n = _good()
    check_arguments(SPECS, [x.as_subclass(Sub), torch.nn.Parameter(y), n])


@pytest.mark.parametrize(
    "position, value, message",
    [
        (0, lambda x: x.double(), r"argument x: .*float32.*\[s0, 8\].*dtype float64"),
        (0, lambda x: x[0], "argument x: .*rank 1 instead of 2"),
        (0, lambda x: x[:, :4], r"x\.size\(1\) is 4, the program was compiled for 8"),
        (0, lambda x: x.t().contiguous().t(), r"x\.stride\(0\) is 1, .* for 8"),
        (0, lambda x: x.to("meta"), "argument x: .*meta"),
        (0, lambda x: torch._neg_view(x), "argument x: .*special"),
        (0, lambda x: x.to_sparse(), r"argument x: .*to_dense\(\)"),
        (0, lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.qint8), "argument x: .*quantized"),
        (0, lambda x: torch.nested.nested_tensor([x]), "argument x: .*nested"),
        (0, lambda x: torch._to_functional_tensor(x), "argument x: .*special"),
        (0, lambda x: None, "argument x must be a float32 tensor .* got NoneType"),
        (1, lambda y: y[1:], r"y\.size\(0\) is 6, .*= 7 \(s0 = 3 from x\.size\(0\)\)"),
        (2, lambda n: True, "argument n must be of type int, got bool"),
    ],
)
def test_error_names_the_argument(position, value, message):
    arguments = _good()
    arguments[position] = value(arguments[position])
    with pytest.raises(ArgumentError, match=message):
        check_arguments(SPECS, arguments)


def test_count_of_arguments():
    with pytest.raises(ArgumentError, match="takes 3 arguments and was called with 1"):
        check_arguments(SPECS, [1])


PLAIN = [
    ArgumentSpec("x", "tensor", torch.float32, (3, 8), (8, 1)),
    ArgumentSpec("n", "int"),
]


def test_arguments_like_accepted_ones_are_known():
    kinds = AcceptedKinds(PLAIN)
    x = torch.randn(3, 8)
    assert not kinds.knows([x, 5])
    kinds.accept([x, 5])
    assert kinds.knows([torch.randn(3, 8), 7])
    # A parameter has the same keys as a tensor; one of inference mode hasn't.
    assert kinds.knows([torch.nn.Parameter(x), 7])
    with torch.inference_mode():
        assert not kinds.knows([torch.randn(3, 8), 7])


@pytest.mark.parametrize(
    "others",
    [
        [torch.randn(3, 9), 5], [torch.randn(8, 3).t(), 5], [torch.randn(3, 8).double(), 5],
        [torch.randn(3, 8), True], [torch.randn(3, 8)], [torch.randn(3, 8), 5, 5],
        [torch.randn(3, 8).to_sparse(), 5], [torch.randn(3, 8, dtype=torch.cfloat).conj().imag, 5],
        [5, 5],
    ],
)  # fmt: skip
def test_other_arguments_are_not_known(others):
    kinds = AcceptedKinds(PLAIN)
    kinds.accept([torch.randn(3, 8), 5])
    assert not kinds.knows(others)


def test_arguments_that_bind_symbols_are_never_known():
    kinds = AcceptedKinds(SPECS)
    kinds.accept(_good())
    assert not kinds.knows(_good())
