"""Sums that are scattered to known places are gathered: windows, tables, and factors of each row
and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import irc
from irc.dialects import graph
from irc.frontend.backend import recording
from irc.ir.passes import PassContext, PassManager
from irc.passes.graph.common_factors import separated
from irc.passes.graph.sum_terms import axes_of, terms_of, weighted_terms
from tests.conformance.gpu_programs import interpreted
from tests.passes.graph.aten_programs import put_on

TO_GRAPH = "convert-aten-to-graph,canonicalize,cse,accumulate-scatters"
TARGETS = ["avx2", "sm_90"]


def gradient_of(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Any, Tensor]:
    """The program of the gradient of a linear function for that of its result, and the latter."""
    torch._dynamo.reset()
    with recording() as programs:
        leaf = x.detach().requires_grad_()
        result = torch.compile(function, backend="irc", dynamic=False)(leaf)
        given = torch.randn_like(result)
        torch.autograd.grad(result, leaf, given)
    (backward,) = [program for program in programs if program.stage == "backward"]
    return backward.imported.module, given


def gathered(module: Any, target: str, options: str = "") -> tuple[Any, int, int]:
    """The program, how many sums are gathered in it, and how many are scattered."""
    if target == "sm_90":
        module = put_on(module, "cuda:0")
    context = PassContext(target=target)
    PassManager.parse(f"{TO_GRAPH},gather-sums{options},canonicalize", verify="each").run(
        module, context
    )
    left = sum(isinstance(op, graph.Put) for op in module.walk())
    return module, context.statistics["gather-sums", "gathered"], left


def ran(module: Any, x: Tensor, given: Tensor) -> Tensor:
    arguments = module.body.block.first.block.arguments
    (found,) = irc.run(module, *(given if "tangents" in a.name_hint else x for a in arguments))
    return found


def exact(function: Callable[[Tensor], Tensor], x: Tensor, given: Tensor) -> Tensor:
    leaf = x.double().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf, given.double())[0]


def resized(mode: str, size: tuple[int, ...], corners: bool | None = None) -> Any:
    return lambda x: F.interpolate(x, size=size, mode=mode, align_corners=corners)


def four() -> Tensor:
    return torch.arange(4)


def six() -> Tensor:
    return torch.arange(6)


IMAGE = (2, 3, 6, 5)
# A function, the shape of its argument, and how many sums are left to scatter for a CPU and a GPU.
CASES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...], int, int]] = {
    "nearest twice": (resized("nearest", (12, 10)), IMAGE, 0, 0),
    "nearest uneven": (resized("nearest", (9, 8)), IMAGE, 1, 0),
    "nearest smaller": (resized("nearest", (3, 4)), IMAGE, 1, 0),
    "nearest exact": (resized("nearest-exact", (11, 13)), IMAGE, 1, 0),
    "bilinear twice": (resized("bilinear", (12, 10), False), IMAGE, 0, 0),
    "bilinear as it is": (resized("bilinear", (6, 5), False), IMAGE, 0, 0),
    "bilinear corners": (resized("bilinear", (12, 10), True), IMAGE, 0, 0),
    "bilinear uneven": (resized("bilinear", (9, 8), False), IMAGE, 0, 0),
    "bilinear smaller": (resized("bilinear", (3, 4), False), IMAGE, 2, 0),
    "bicubic twice": (resized("bicubic", (12, 10), False), IMAGE, 0, 0),
    "bicubic uneven": (resized("bicubic", (9, 8), True), IMAGE, 0, 0),
    "linear": (resized("linear", (10,), False), (2, 3, 5), 0, 0),
    "trilinear": (resized("trilinear", (6, 8, 6), False), (1, 2, 3, 4, 3), 0, 0),
    "mirrored": (lambda x: x[..., (torch.arange(7) - 2).abs()], IMAGE, 1, 0),
    "repeated edges": (lambda x: x[..., (torch.arange(9) - 2).clamp(0, 4)], IMAGE, 1, 0),
    "blocks": (lambda x: F.unfold(x, 3, stride=2, padding=1), IMAGE, 1, 0),
    "even numbers": (lambda x: x[:, four() * 2 % 5], (3, 5), 1, 0),
    "rows and columns": (
        lambda x: x[:, four()[:, None] % 3, six()[None] // 2],
        (3, 5, 4),
        1,
        0,
    ),
    "columns and rows": (
        lambda x: x[:, six()[None] // 2, four()[:, None] % 3],
        (3, 5, 4),
        1,
        0,
    ),
    "apart": (lambda x: x[four() % 3, :, six()[:, None] // 2], (3, 5, 4), 1, 0),
    "a diagonal": (lambda x: x[:, four() % 3, four() // 2], (3, 5, 4), 1, 1),
    "halves": (lambda x: x[:, six() // 2] * 2, (3, 5), 0, 0),
    "all of one": (lambda x: x[:, four() * 0 + 2], (3, 5), 1, 0),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str, target: str) -> None:
    torch.manual_seed(0)
    function, shape, on_cpu, on_gpu = CASES[name]
    x = torch.randn(shape)
    traced, given = gradient_of(function, x)
    module, done, left = gathered(traced, target)
    assert left == (on_cpu if target == "avx2" else on_gpu)
    assert done > 0 or left
    found = ran(module, x, given)
    torch.testing.assert_close(found.double(), exact(function, x, given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bilinear twice", "bicubic twice", "nearest twice", "mirrored"])
def test_as_kernels(name: str, target: str) -> None:
    """The rest of the pipeline down to computes."""
    torch.manual_seed(1)
    function, shape, *_ = CASES[name]
    x = torch.randn(shape)
    traced, given = gradient_of(function, x)
    module, *_ = gathered(traced, target)
    rest = "settle-checks,graph-to-layout,layout-to-loop,fuse-loops"
    PassManager.parse(rest, verify="each").run(module, PassContext(target=target))
    found = ran(module, x, given)
    torch.testing.assert_close(found.double(), exact(function, x, given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["bilinear twice", "bicubic uneven", "nearest uneven", "mirrored", "blocks", "apart"]
)
def test_in_triton(name: str) -> None:
    torch.manual_seed(2)
    function, shape, *_ = CASES[name]
    x = torch.randn(shape)
    torch._dynamo.reset()
    with interpreted():
        leaf = x.clone().requires_grad_()
        compiled = torch.compile(
            function, backend="irc", dynamic=False, options={"target": "triton"}
        )
        result = compiled(leaf)
        given = torch.randn_like(result)
        (found,) = torch.autograd.grad(result, leaf, given)
    torch.testing.assert_close(found.double(), exact(function, x, given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_floats(dtype: torch.dtype) -> None:
    function, shape, *_ = CASES["bilinear twice"]
    x = torch.randn(shape).to(dtype)
    traced, given = gradient_of(function, x)
    module, done, left = gathered(traced, "sm_90")
    assert (done, left) == (1, 0)
    found = ran(module, x, given)
    error = 2e-2 if dtype is torch.bfloat16 else 1e-12
    assert found.dtype is dtype
    torch.testing.assert_close(found.double(), exact(function, x, given), rtol=error, atol=error)


def test_what_is_added_to_stays() -> None:
    def function(base: Tensor, v: Tensor) -> Tensor:
        return base.index_put((six() // 2,), v, accumulate=True)

    base, v = torch.randn(3, 3), torch.randn(6, 3)
    module, done, left = gathered(irc.trace(function, (base, v)), "avx2")
    assert (done, left) == (1, 0)
    torch.testing.assert_close(irc.run(module, base, v)[0], function(base, v))


def test_whole_numbers() -> None:
    def function(v: Tensor) -> Tensor:
        return torch.zeros(4, 3, dtype=torch.int32).index_put((six() // 2,), v, accumulate=True)

    v = torch.randint(-9, 9, (6, 3), dtype=torch.int32)
    module, done, _ = gathered(irc.trace(function, (v,)), "avx2")
    assert done == 1 and torch.equal(irc.run(module, v)[0], function(v))


def test_terms_that_are_none_do_no_harm() -> None:
    """Infinity and NaN stay in the elements that they are added to."""

    def function(v: Tensor) -> Tensor:
        return torch.zeros(5).index_put((six() * 3 % 5,), v, accumulate=True)

    v = torch.tensor([torch.inf, 1.0, torch.nan, 2.0, -torch.inf, 3.0])
    module, done, _ = gathered(irc.trace(function, (v,)), "sm_90")
    assert done == 1
    torch.testing.assert_close(irc.run(module, v)[0], function(v), equal_nan=True)


REFUSED: dict[str, tuple[Callable[..., Tensor], list[Tensor], str]] = {
    "places of an argument": (
        lambda v, i: torch.zeros(4).index_put((i,), v, accumulate=True),
        [torch.randn(6), six() // 2],
        "its places are known when it runs"),
    "a place outside": (
        lambda v: torch.zeros(4).index_put((six(),), v, accumulate=True), [torch.randn(6)],
        "a place is outside"),
    "little is added": (
        lambda v: (v + 1).index_put((four() // 2,), v[:4], accumulate=True), [torch.randn(6, 2)],
        "much of what it is added to stays as it is"),
    "many for few": (
        lambda v: torch.zeros(64, 8).index_put((six() * 10,), v, accumulate=True),
        [torch.randn(6, 8)], ""),
    "several dimensions": (
        lambda v: torch.zeros(4, 4).index_put((four(), four()), v, accumulate=True),
        [torch.randn(4)],
        "places along several dimensions depend on one of its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_scattered(name: str) -> None:
    function, arguments, reason = REFUSED[name]
    module = irc.trace(function, tuple(arguments))
    context = PassContext(target="avx2", remarks=[])
    PassManager.parse(f"functionalize,{TO_GRAPH},gather-sums").run(module, context)
    assert context.statistics["gather-sums", "gathered"] == 0
    told = [r for r in context.remarks if r.pass_name == "gather-sums"]
    assert reason in str(told[0])


def test_terms_are_read_up_to_a_figure() -> None:
    function, shape, *_ = CASES["mirrored"]
    x = torch.randn(shape)
    traced, _ = gradient_of(function, x)
    few = "#irc.target<sm_90, seen_terms = 1>"
    module = put_on(traced, "cuda:0")
    context = PassContext(target=few)
    PassManager.parse(f"{TO_GRAPH},gather-sums").run(module, context)
    assert context.statistics["gather-sums", "gathered"] == 0


def test_at_most_so_many_places_are_looked_at() -> None:
    function, shape, *_ = CASES["nearest twice"]
    traced, _ = gradient_of(function, torch.randn(shape))
    _, done, left = gathered(traced, "sm_90", "{limit=119}")
    assert (done, left) == (0, 1)


def test_roundings_are_tables_for_all_that_reads_them() -> None:
    function, shape, *_ = CASES["bilinear twice"]
    x = torch.randn(shape)
    module, *_ = gathered(gradient_of(function, x)[0], "sm_90")
    casts = [op for op in module.walk() if isinstance(op, graph.Cast)]
    assert not any(str(op.results[0].type.element).startswith("i") for op in casts)


# -- tables


def test_axes_belong_to_one_dimension() -> None:
    rows, columns = torch.arange(3)[:, None].expand(3, 4), four()[None].expand(3, 4)
    assert axes_of([[rows, columns]]) == [(0,), (1,)]
    assert axes_of([[columns, rows]]) == [(1,), (0,)]
    assert axes_of([[rows, rows]]) is None
    assert axes_of([[rows * 0, columns]]) == [(0,), (1,)]


def test_windows_and_tables() -> None:
    terms = terms_of(six() // 2, 3, (0,))
    assert terms.window == (2, 0) and terms.slots == 2 and terms.mask is None
    terms = terms_of(torch.tensor([3, 0, 0, 1]), 4, (0,))
    assert terms.window is None and terms.slots == 2
    assert terms.table[0].tolist() == [1, 2] and terms.mask[2].tolist() == [False, False]


def test_factors_are_separated_only_where_they_are_products() -> None:
    """The four corners of bilinear interpolation, and three of them."""
    lower = torch.tensor([0, 0, 1, 1])
    places = [[a, b] for a in (lower, lower + 1) for b in (lower, lower + 1)]
    part = torch.tensor([0.1, 0.6, 0.3, 0.9]).double()
    factors = [a[:, None] * b[None] for a in (1 - part, part) for b in (1 - part, part)]
    found = separated(places, factors, [3, 3])
    assert found is not None
    expected = torch.zeros(3, 4).double()
    for own, factor in ((lower, 1 - part), (lower + 1, part)):
        expected[own, four()] += factor
    product = torch.einsum("hr,wc->hwrc", *found)
    torch.testing.assert_close(product, torch.einsum("hr,wc->hwrc", expected, expected))
    assert separated(places[:3], factors[:3], [3, 3]) is None
    weights = weighted_terms(found[0], (0,)).weights
    assert weights is not None and weights.shape[0] == 3
