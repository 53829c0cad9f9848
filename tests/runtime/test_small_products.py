"""Small matrix products call BLAS at once, with ATen's results; everything else stays ATen's."""

import pytest
import torch

from irc.boundary import torch_abi
from irc.codegen.host import blas as host_blas
from irc.program import host_program as P

pytestmark = pytest.mark.skipif(
    not torch_abi.available() or torch_abi.symbol_address("sgemm_") is None,
    reason="torch exports no BLAS here",
)


def layout(sizes, strides, dtype="float32"):
    return P.Layout(dtype, sizes, strides, {"float32": 4, "float64": 8}.get(dtype, 2), "cpu")


def product(left, right, out, dtype="float32", bias=None, **scales):
    """What `small_product` says of a call on operands given as (sizes, strides)."""
    layouts = {i: layout(*given, dtype) for i, given in enumerate((left, right, out))}
    names, callee = ("self", "mat2", "out"), "aten.mm.out"
    if bias is not None:
        names, callee = ("mat1", "mat2", "out"), "aten.addmm.out"
        layouts[3] = layout(*bias, dtype)
        scales["self"] = P.Register(3)
    arguments = {name: P.Register(i) for i, name in enumerate(names)} | scales
    step = P.CallOperator(callee, tuple(sorted(arguments.items())), (), True)
    return host_blas.small_product(step, layouts, 32 * 32 * 32)


ROWS = ((5, 7), (7, 1)), ((7, 3), (3, 1)), ((5, 3), (3, 1))


def test_which_products_are_small():
    assert product(*ROWS) is not None
    assert product(*ROWS, bias=((3,), (1,))) is not None
    assert product(*ROWS, dtype="float64").symbol == "dgemm_"
    assert product(*ROWS, dtype="bfloat16") is None
    assert product(*ROWS, bias=((3,), (1,)), beta=2) is None
    assert product(((5, 7), (14, 2)), *ROWS[1:]) is None  # no dense dimension
    assert product(((5, 7), (3, 1)), *ROWS[1:]) is None  # rows that overlap
    assert product(((5, 0), (1, 1)), ((0, 3), (3, 1)), ROWS[2]) is None
    large = ((64, 64), (64, 1))
    assert product(large, large, large) is None


def compiled(function, *arguments):
    call = torch.compile(function, backend="irc", dynamic=False, options={"fx_graph_cache": False})
    with torch.no_grad():
        return call(*arguments)


PROGRAMS = {
    "dense": lambda r: (lambda x, w: torch.relu(x) @ w, r(5, 7), r(7, 3)),
    "left turned": lambda r: (lambda x, w: x.t() @ w, r(7, 5), r(7, 3)),
    "right turned": lambda r: (lambda x, w: x @ w.t(), r(5, 7), r(3, 7)),
    "both turned": lambda r: (lambda x, w: x.t() @ w.t(), r(7, 5), r(3, 7)),
    "result turned": lambda r: (lambda x, w: (x @ w).t() + 1, r(5, 7), r(7, 3)),
    "parts": lambda r: (lambda x, w: x[:, 1:4] @ w[1:, 2:], r(5, 6), r(4, 4)),
    "every other column": lambda r: (lambda x, w: x[:, ::2] @ w, r(5, 6), r(3, 4)),
    "one row": lambda r: (lambda x, w: x @ w, r(1, 5), r(5, 4)),
    "one column": lambda r: (lambda x, w: x @ w, r(5, 4), r(4, 1)),
    "one inner": lambda r: (lambda x, w: x.t() @ w, r(1, 5), r(1, 7)),
    "one": lambda r: (lambda x, w: x @ w, r(1, 1), r(1, 1)),
    "bias": lambda r: (torch.addmm, r(3), r(5, 7), r(7, 3)),
    "bias of rows": lambda r: (torch.addmm, r(5, 1), r(5, 7), r(7, 3)),
    "bias of all": lambda r: (torch.addmm, r(3, 5).t(), r(5, 7), r(7, 3)),
    "bias of one": lambda r: (torch.addmm, r(1), r(5, 7), r(7, 3)),
    "in a row": lambda r: (
        lambda x, w: torch.relu(torch.relu(x @ w) @ w.t()) @ w, r(5, 7), r(7, 3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_atens(name, dtype):
    torch.manual_seed(0)
    function, *arguments = PROGRAMS[name](lambda *sizes: torch.randn(*sizes, dtype=dtype))
    result, expected = compiled(function, *arguments), function(*arguments)
    assert torch.equal(result, expected) and result.stride() == expected.stride()


def test_nan_and_infinity_pass():
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    x[0, 0], x[1, 1], w[3, 1] = float("nan"), float("inf"), float("-inf")
    out = compiled(lambda x, w: x @ w, x, w)
    assert torch.equal(out.isnan(), (x @ w).isnan()) and torch.equal(out.isinf(), (x @ w).isinf())


def test_the_bias_outlives_the_product():
    b, x, w = torch.randn(3), torch.randn(5, 7), torch.randn(7, 3)
    first, second = compiled(lambda b, x, w: (torch.addmm(b, x, w), b * 2), b, x, w)
    assert torch.equal(first, torch.addmm(b, x, w)) and torch.equal(second, b * 2)
