"""What a backward computes again: torch's partition knows what irc computes cheaply."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch import partitioners
from torch.nn import functional as F

import irc
from irc.frontend.backend import Compiled, recording
from irc.frontend.decompositions.names import AGAIN, READING, names_of
from irc.frontend.fx import partition
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages

aten = torch.ops.aten


def trained(
    function: Callable[..., Tensor], *arguments: Tensor, **options: Any
) -> tuple[list[Tensor], list[Tensor], list[Compiled]]:
    """The result and the gradients of all floats, of irc and of eager mode in f64, and the
    programs."""
    torch._dynamo.reset()
    with recording() as programs:
        got = step(torch.compile(function, backend="irc", **options), arguments)
    exact = step(function, [x.double() if x.is_floating_point() else x for x in arguments])
    return got, exact, list(programs)


def step(function: Callable[..., Tensor], arguments: Sequence[Tensor]) -> list[Tensor]:
    given = [x.detach().requires_grad_(x.is_floating_point()) for x in arguments]
    result = function(*given)
    grown = torch.arange(result.numel(), dtype=torch.float64).view(result.shape).cos()
    leaves = [x for x in given if x.requires_grad]
    return [result.detach(), *torch.autograd.grad(result, leaves, grown.to(result.dtype))]


def stored(programs: Sequence[Compiled]) -> int:
    """Elements of the arrays that the forward makes for the backward and nobody else."""
    (forward,) = [program for program in programs if program.stage == "forward"]
    saved = [r for r in forward.executable.info.results[1:] if r.alias_of is None]
    return sum(math.prod(r.sizes) for r in saved)


def check(sides: tuple[list[Tensor], list[Tensor], Any], error: float = 1e-5) -> None:
    for got, exact in zip(*sides[:2], strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=error, atol=error, equal_nan=True)


SPARED: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "cross": (torch.linalg.cross, (torch.randn(7, 3), torch.randn(7, 3))),
    "chosen": (lambda x, i: F.silu(x.index_select(1, i)), (torch.randn(5, 9), torch.arange(7))),
    "turned": (lambda x: F.silu(x.roll(2, 1).flip(0)), (torch.randn(5, 9),)),
    "padded": (lambda x: F.silu(F.pad(x * 2, (1, 2))), (torch.randn(5, 9),)),
    "lower": (lambda x: F.silu(x.tril(1)), (torch.randn(5, 9),)),
    "gated": (lambda x, y: F.hardswish(x) * y, (torch.randn(5, 9), torch.randn(5, 9))),
    "looked up": (lambda w, i: F.silu(F.embedding(i, w)), (torch.randn(5, 9), torch.arange(3))),
    "no slope": (lambda x: x.angle() * x, (torch.randn(5, 9),)),
}


@pytest.mark.parametrize("name", SPARED)
def test_nothing_is_stored_for_the_backward(name):
    function, arguments = SPARED[name]
    sides = trained(function, *arguments)
    check(sides)
    assert stored(sides[2]) == 0


def test_norms_of_parts_are_all_that_is_stored():
    x, y = torch.randn(6, 40), torch.randn(6, 40)
    sides = trained(lambda x, y: F.cosine_similarity(x.exp(), y.sin(), 1), x, y)
    check(sides)
    assert stored(sides[2]) <= 4 * 6  # two norms and two numbers of each row


def test_roundings_as_in_eager_mode_store_what_eager_mode_does():
    x = torch.randn(4, 8)
    sides = trained(lambda x: F.silu(F.group_norm(x, 2)), x, options={"emulate_rounding": True})
    check(sides)


# -- torch's table


def test_torch_has_its_own_table_for_everybody_else():
    function, arguments = SPARED["cross"]
    trained(function, *arguments)
    types = partitioners.get_default_op_list()
    assert aten.index_select not in types.recomputable_ops
    assert aten.linalg_vector_norm not in types.fusible_ops


def test_torch_asks_for_irc_s_table():
    partition._teach(partitioners)
    partition._thread.asks = True
    try:
        types = partitioners.get_default_op_list()
    finally:
        partition._thread.asks = False
    assert {aten.index_select, aten.roll} <= types.recomputable_ops & types.fusible_ops
    assert aten.linalg_vector_norm in types.fusible_ops - types.recomputable_ops


@pytest.mark.parametrize("name", [*names_of(AGAIN), *names_of(READING)])
def test_names_are_operators_that_torch_does_not_know_itself(name):
    types = partitioners.get_default_op_list()
    assert getattr(aten, name) not in types.recomputable_ops


X, N = torch.randn(4, 6), torch.tensor([1, 0, 3])
#: A use of each operator whose elements may be computed again.
USES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "_unsafe_index": lambda x, n: aten._unsafe_index(x, [n]),
    "constant_pad_nd": lambda x, n: aten.constant_pad_nd(x, [1, 1]),
    "copy": lambda x, n: aten.copy(x, x.sin()),
    "diag_embed": lambda x, n: aten.diag_embed(x),
    "diagonal": lambda x, n: x.diagonal() * 2,
    "diagonal_copy": lambda x, n: aten.diagonal_copy(x),
    "diagonal_scatter": lambda x, n: aten.diagonal_scatter(x, x[0, :4]),
    "embedding": lambda x, n: aten.embedding(x, n),
    "empty_permuted": lambda x, n: aten.empty_permuted([2, 3], [1, 0]),
    "empty_strided": lambda x, n: aten.empty_strided([2, 3], [3, 1]),
    "expand_copy": lambda x, n: aten.expand_copy(x, [2, 4, 6]),
    "eye": lambda x, n: torch.eye(3),
    "fill": lambda x, n: aten.fill(x, 2),
    "flip": lambda x, n: x.flip(1),
    "floor_divide": lambda x, n: aten.floor_divide(n, 2),
    "hardswish": lambda x, n: F.hardswish(x),
    "index_fill": lambda x, n: x.index_fill(0, n, 1.0),
    "index_select": lambda x, n: x.index_select(0, n),
    "isreal": lambda x, n: x.isreal(),
    "linspace": lambda x, n: torch.linspace(0, 1, 5),
    "narrow_copy": lambda x, n: aten.narrow_copy(x, 1, 2, 3),
    "new_empty": lambda x, n: x.new_empty([3]),
    "new_empty_strided": lambda x, n: x.new_empty_strided([3], [1]),
    "new_full": lambda x, n: x.new_full([3], 2),
    "new_ones": lambda x, n: x.new_ones([3]),
    "one_hot": lambda x, n: F.one_hot(n, 4),
    "ones_like": lambda x, n: torch.ones_like(x),
    "permute_copy": lambda x, n: aten.permute_copy(x, [1, 0]),
    "real": lambda x, n: x.real * 2,
    "repeat": lambda x, n: x.repeat(2, 1),
    "roll": lambda x, n: x.roll(2, 1),
    "select_copy": lambda x, n: aten.select_copy(x, 0, 1),
    "select_scatter": lambda x, n: x.select_scatter(x[:, 0], 1, 2),
    "slice_copy": lambda x, n: aten.slice_copy(x, 0, 1, 3),
    "slice_scatter": lambda x, n: x.slice_scatter(x[:2], 0, 1, 3),
    "split_copy": lambda x, n: aten.split_copy(x, 3),
    "split_with_sizes": lambda x, n: [y * 2 for y in x.split([1, 3])],
    "split_with_sizes_copy": lambda x, n: aten.split_with_sizes_copy(x, [1, 3]),
    "squeeze_copy": lambda x, n: aten.squeeze_copy(x, 0),
    "stack": lambda x, n: torch.stack([x, x.sin()]),
    "t_copy": lambda x, n: aten.t_copy(x),
    "take": lambda x, n: x.take(n),
    "transpose_copy": lambda x, n: aten.transpose_copy(x, 0, 1),
    "tril": lambda x, n: x.tril(),
    "unbind": lambda x, n: [y * 2 for y in x.unbind()],
    "unbind_copy": lambda x, n: aten.unbind_copy(x),
    "unfold": lambda x, n: x.unfold(1, 2, 1) * 2,
    "unfold_copy": lambda x, n: aten.unfold_copy(x, 1, 2, 1),
    "unsafe_split": lambda x, n: aten.unsafe_split(x, 3),
    "unsafe_split_with_sizes": lambda x, n: aten.unsafe_split_with_sizes(x, [1, 3]),
    "unsqueeze_copy": lambda x, n: aten.unsqueeze_copy(x, 0),
    "view_copy": lambda x, n: aten.view_copy(x, [24]),
    "zero": lambda x, n: aten.zero(x),
}


def test_there_is_a_use_of_each():
    assert sorted(USES) == sorted(names_of(AGAIN))


@pytest.mark.parametrize("name", USES)
def test_what_is_computed_again_costs_no_more_than_its_elements(name):
    """It becomes computes without a reduction; what a check of indices reduces counts for none."""
    module = irc.trace(USES[name], (X, N))
    for stage, text in stages("avx2", from_mapping({})).items():
        PassManager.parse(text, verify="each").run(module, PassContext(target="avx2"))
        if stage == "layout-to-loop":
            break
    ops = list(module.walk())
    assert not any(op.name.startswith("aten.") for op in ops)
    for op in ops:
        if op.name == "loop.compute" and "red(" in str(op).splitlines()[0]:
            assert "reduce(all" in str(op).splitlines()[0]
