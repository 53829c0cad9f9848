"""Rows that are cut once into the parts that registers of whole tiles multiply: where, the values
of the parts and of the products, and what is no number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.dialects import host, layout, loop
from irc.dialects.kernel import DotRowsOp
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import bf16
from irc.pipeline import pipeline_text
from irc.target import Target
from irc.target.attribute import carry
from irc.target.figures import evolve
from tests.passes.kernel.test_matrix_products import HERE, TILES

FEW = evolve(TILES, cut_columns=1)
ALWAYS = Target(evolve(FEW, own_split=(999, 999, 999), own_split_panels=(999, 999, 999)))
"""Whose products are all in parts."""
SCHEDULE = 'schedule #loop.schedule<cpu, products = "bf16x6"{more}>'


def product(
    rows: int, inner: int, columns: int, read: str = "m, k", array: str = "", more: str = "",
    weight: str = "", count: int = 2,
) -> str:  # fmt: skip
    """Products whose rows are read from one argument."""
    array = array or f"[{rows}, {inner}]"
    sizes = [int(n) for n in array.strip("[]").split(",")]
    steps = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    y = f"tensor<[{rows}, {columns}] x f32, strides [{columns}, 1]>"
    products = "".join(f"""
  %y{number} = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32)
    {SCHEDULE.format(more=more)} {{
    %p = loop.read %x[{read}] : f32
    %q = loop.read %w[n, k] : f32
    {weight or "%q1 = arith.mulf %p, %q : f32"}
    loop.yield %q1 }} : {y}""" for number in range(count))  # fmt: skip
    names, types = ", ".join(f"%y{n}" for n in range(count)), ", ".join([y] * count)
    return f"""func.func @main(%x: tensor<{array} x f32, strides {steps}>,
    %w: tensor<[{columns}, {inner}] x f32, strides [{inner}, 1]>) -> ({types})
    attributes {{level = "loop"}} {{{products}
  func.return {names} : {types} }}"""


def cut(text: str, target: Target | None = None) -> Any:
    module = irc.parse(text)
    carry(module, target or Target(FEW))
    PassManager.parse("cut-rows", verify="each").run(module)
    return module


def joins(module: Any) -> list[layout.JoinOp]:
    return [op for op in module.walk() if isinstance(op, layout.JoinOp)]


ARRAYS = [
    ((45, 64, 96), "m, k", ""),
    ((60, 32, 33), "floordiv(m, 15), mod(m, 15), k", "[4, 15, 32]"),
    ((24, 32, 16), "floordiv(m, 12), mod(floordiv(m, 4), 3), mod(m, 4), k", "[2, 3, 4, 32]"),
    ((40, 64, 32), "0, m, k", "[1, 40, 64]"),
]


@pytest.mark.parametrize("sizes, read, array", ARRAYS)
def test_parts_have_the_rows_sizes_and_sums_their_values(
    sizes: tuple[int, int, int], read: str, array: str
) -> None:
    text = product(*sizes, read, array)
    module, before = cut(text), irc.parse(text)
    (join,) = joins(module)
    source: Any = before.lookup("main").block.arguments[0].type
    assert join.array.type.element is bf16
    assert list(join.array.type.shape) == [*source.shape[:-1], 3, source.shape[-1]]
    printed = irc.print_op(module)
    assert irc.print_op(irc.parse(printed)) == printed
    torch.manual_seed(0)
    x, w = torch.randn(*source.shape), torch.randn(sizes[2], sizes[1])
    expected = run(before, x, w, mode="real")
    torch.testing.assert_close(run(module, x, w, mode="real"), expected, rtol=1e-12, atol=1e-12)
    # Registers read the parts where they lie: only the weight is packed.
    PassManager.parse("schedule,form-kernels", verify="each").run(module)
    dots = [op for op in module.walk() if isinstance(op, DotRowsOp)]
    assert dots and all(op.parts == 3 and not op.in_tiles for op in dots)
    for actual, exact in zip(run(module, x, w, mode="exact"), expected, strict=True):
        torch.testing.assert_close(actual.double(), exact, rtol=1e-5, atol=1e-5)
    if HERE:
        PassManager.parse("bufferize,plan-memory").run(module)
        for native, exact in zip(irc.build(module)(x, w), expected, strict=True):
            torch.testing.assert_close(native.double(), exact, rtol=1e-5, atol=1e-5)


KEPT = {
    "several ranges of a size": product(40, 32, 32, more=", variants = []"),
    "rows are packed": product(40, 32, 32, more=", pack_left = true"),
    "terms that lie apart": product(40, 64, 32, "k, m", "[64, 40]"),
    "a part of an array": product(40, 64, 32, "m, k", "[41, 64]"),
    "windows": product(40, 64, 32, "m + k", "[103]"),
    "rows in another order": product(24, 32, 16, "mod(m, 4), floordiv(m, 4), k", "[4, 6, 32]"),
    "a weight that is computed, too": product(
        40, 32, 32, weight="%q0 = math.exp %q : f32\n %q1 = arith.mulf %p, %q0 : f32"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_left_alone(name: str) -> None:
    assert not joins(cut(KEPT[name]))


@pytest.mark.parametrize("threads", [1, 8])
def test_one_products_rows_are_cut_in_its_kernel(threads: int) -> None:
    target = Target(FEW, threads)
    assert [len(joins(cut(product(64, 32, 64, count=n), target))) for n in (1, 2, 3)] == [0, 1, 1]


def test_rows_that_meet_few_columns_are_cut_in_the_kernel() -> None:
    for columns, count in ((64, 0), (255, 0), (256, 1)):
        assert len(joins(cut(product(64, 32, columns), Target(TILES)))) == count


def test_computed_rows_are_cut_as_they_are_computed() -> None:
    text = product(48, 64, 32, weight="%e = math.exp %p : f32\n %q1 = arith.mulf %e, %q : f32")
    module = cut(text)
    (join,) = joins(module)
    maker = join.operands[0].defining_op
    assert maker is not None and "math.exp" in irc.print_op(maker)
    readers = [op for op in module.walk() if isinstance(op, loop.ComputeOp) and op is not maker]
    assert len(readers) == 2 and not any("math.exp" in irc.print_op(op) for op in readers)


def test_rows_that_would_fall_on_one_set_of_the_cache_lie_apart() -> None:
    (join,) = joins(cut(product(40, 2048, 32)))
    line = join.array.type.strides[0]
    assert line == 3 * 2048 + 32 and join.array.type.strides[1:] == (2048, 1)
    (join,) = joins(cut(product(40, 96, 32)))
    assert join.array.type.strides == (288, 96, 1)


def lowered(model: Callable[..., Any], x: torch.Tensor, target: Target, until: str) -> Any:
    with torch.no_grad():
        module = irc.trace(model, (x,))
    carry(module, target)
    text = f"functional,{pipeline_text()}"
    PassManager.parse(text.partition(f",{until}")[0]).run(module, PassContext(target=target))
    return module


class Layer(nn.Module):
    """Three products of the rows that a norm gives, one of others, and two of what follows that."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.three = nn.ModuleList(nn.Linear(256, 256) for _ in range(3))
        self.wide = nn.Linear(256, 512)
        self.narrow = nn.ModuleList(nn.Linear(512, 256) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        for linear in self.three:
            x = x * linear(y)
        x = nn.functional.gelu(self.wide(x))
        return y + self.narrow[0](x) * self.narrow[1](x)


def test_what_makes_rows_cuts_them_once_for_all_products() -> None:
    torch.manual_seed(0)
    model, x = Layer().eval(), torch.randn(2, 128, 256)
    module = lowered(model, x, ALWAYS, "share-reads")
    cuts = joins(module)
    assert len(cuts) == 2  # the norm's rows, and gelu's
    assert all(isinstance(join.operands[0].defining_op, loop.GroupOp) for join in cuts)
    groups = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    # In the norm's kernel, and behind the sums of the wide product: no launch of its own.
    norms = groups[0]
    (wide,) = [each for each in groups if len(each.results) == 3]
    assert [str(r.type).count("bf16") for r in norms.results] == [0, 1, 1, 1]
    assert [str(r.type).count("bf16") for r in wide.results] == [1, 1, 1]
    passes = pipeline_text().partition("share-reads,")[1:]
    PassManager.parse("".join(passes)).run(module, PassContext(target=ALWAYS))
    assert not [op for op in module.walk() if isinstance(op, host.HostCopyOp)]


@pytest.mark.skipif(not HERE, reason="there are no registers of whole tiles")
@pytest.mark.parametrize("frozen", [False, True])
def test_a_compiled_layer_has_eagers_values(frozen: bool) -> None:
    torch.manual_seed(0)
    model, x = Layer().eval(), torch.randn(2, 128, 256)
    with torch.no_grad():
        expected = model.double()(x.double())
        model.float()
        call = torch.compile(model, backend="irc", options={"freezing": frozen})
        actual = call(x)
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)
        x[0, 3, 5], x[1, 7] = math.nan, math.inf
        torch.testing.assert_close(call(x), model(x), rtol=1e-5, atol=1e-5, equal_nan=True)


SPECIAL = [math.inf, -math.inf, math.nan, 0.0, -0.0, 3.4e38, -3.4e38, 1e-30, 1.0 + 2**-23]


def test_parts_of_what_is_no_number() -> None:
    """The sum of an infinity's parts is that, and a product with it what vectors give."""
    text = product(40, 32, 32)
    module, before = cut(text), irc.parse(text)
    torch.manual_seed(0)
    x, w = torch.randn(40, 32), torch.randn(32, 32)
    for row, value in enumerate(SPECIAL):
        x[row, row] = value
    w[3] = 0.0
    expected, actual = (run(each, x, w, mode="exact") for each in (before, module))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    PassManager.parse("schedule,form-kernels,bufferize,plan-memory").run(module)
    if HERE:
        native = irc.build(module)(x, w)
        torch.testing.assert_close(native, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
