"""f32 that is multiplied by three parts of bf16 (`precision = "bf16x6"`): as exact as f32, with its
infinities, NaN and largest numbers, in irc's interpreter and in Triton's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from contractions import Formed, Product, formed

from irc.codegen.triton import runtime

M, N, K = 32, 32, 288
PRODUCT = Product(M, N, K, torch.float32)
CUT = {"precision": "bf16x6", "tile_m": 32, "tile_n": 32, "tile_k": 32}
Pair = tuple[torch.Tensor, torch.Tensor]


def numbers(kind: str) -> Pair:
    """Factors of a kind."""
    random = torch.Generator().manual_seed(3)
    a, b = torch.randn(M, K, generator=random), torch.randn(K, N, generator=random)
    if kind == "positive":
        return a.abs(), b.abs()
    if kind == "wide":
        spread = [torch.exp2(60 * torch.rand(x.shape, generator=random) - 30) for x in (a, b)]
        return a * spread[0], b * spread[1]
    return a, b


def special(nan: int) -> Pair:
    """Factors with infinities, NaN, one of them of these bits, and numbers that bf16 has as
    infinite."""
    a, b = numbers("normal")
    a[3, 5], a[4, 6], b[9, 20], b[10, 21] = torch.inf, torch.nan, -torch.inf, torch.nan
    a[7, 7], a[7, 8] = torch.inf, -torch.inf
    a.view(torch.int32)[8, 3] = nan
    a[11], a[12] = 0, torch.finfo(torch.float32).max
    a[11, 0] = 3.4e38
    b[:, 30:] *= 1e-20
    return a, b


def both(pair: Pair, **more: object) -> list[torch.Tensor]:
    """The product in irc's interpreter and in Triton's."""
    made: Formed = formed(PRODUCT.text(), **{**CUT, **more})
    (tensors,) = runtime.run_interpreted([made.job(pair)])
    return [made.interpreted(pair), tensors[made.result]]


@pytest.mark.parametrize("kind", ["normal", "positive", "wide"])
def test_six_products_of_parts_are_as_exact_as_f32(kind: str) -> None:
    """Of each result, relative to the sum of its terms' sizes, next to a sum of f32 in order."""
    a, b = numbers(kind)
    exact, size = a.double() @ b.double(), a.abs().double() @ b.abs().double()
    in_order = torch.zeros(M, N)
    for k in range(K):
        in_order += a[:, k, None] * b[k]
    most = ((in_order.double() - exact).abs() / size).max().item()
    for result in both((a, b)):
        assert ((result.double() - exact).abs() / size).max().item() <= most
        assert ((result.double() - exact).abs() / size).max().item() < 2**-22


@pytest.mark.parametrize("products", ["dot", "swapped"])
def test_what_is_no_number_and_what_is_nearly_infinite_are_as_in_f32(products: str) -> None:
    """A NaN whose upper bits are those of infinity is one in irc's interpreter and on a GPU; in
    Triton's, conversions make it infinite."""
    rows = [row for row in range(M) if row != 12]  # sums that overflow depend on the order
    for place, nan in enumerate((0x7F800001, 0x7FC00000)):
        a, b = special(nan)
        exact, result = a @ b, both((a, b), products=products)[place]
        torch.testing.assert_close(result[rows], exact[rows], rtol=2e-4, atol=1e-4, equal_nan=True)
        torch.testing.assert_close(result[:, 30:], exact[:, 30:], rtol=2e-4, atol=1e-22,
                                   equal_nan=True)  # fmt: skip


@pytest.mark.parametrize(
    ("product", "precision"),
    [
        (Product(64, 64, 256, torch.float32), "bf16x6"),
        (Product(8, 256, 256, torch.float32), "bf16x6"),
        (Product(64, 64, 128, torch.float32), "ieee"),
        (Product(64, 64, 256), "ieee"),
    ],
    ids=["deep", "few_rows", "not_deep", "bf16"],
)
def test_f32_is_cut_where_it_is_deep(product: Product, precision: str) -> None:
    assert formed(product.text()).schedule.entries.as_dict()["precision"].value == precision


def test_a_step_has_six_products_of_matrices() -> None:
    made = formed(Product(4096, 4096, 4096, torch.float32, b_strides=(1, 4096)).text())
    ptx = made.compiled()["ptx"]
    assert made.schedule.entries.as_dict()["precision"].value == "bf16x6"
    assert ptx.count("wgmma.mma_async") == 6 * made.schedule.entries.as_dict()["tile_k"].value // 16
