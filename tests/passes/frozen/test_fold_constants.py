"""The pass fold-constants: what it folds, what it leaves, and how a result is computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from irc.dialects import graph
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.program.folded import FoldedConstants, with_folded
from tests.passes.frozen.freezing_support import check, frozen_program, of_class

FOLD = "fold-constants"


class Using(nn.Module):
    """Any function of an input and parameters."""

    def __init__(self, function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.function = function
        generator = torch.Generator().manual_seed(0)
        self.tensors = nn.ParameterList(torch.randn(s, generator=generator) for s in shapes)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs, *self.tensors)


def test_a_cast_is_folded_and_a_transposition_stays() -> None:
    model = Using(lambda x, w: x @ w.to(torch.bfloat16).t(), (40, 30))
    x = torch.rand(5, 30).to(torch.bfloat16)
    module, context = check(model, x, passes=FOLD)
    (constant,) = of_class(module, graph.Constant)
    assert str(constant.tensor.type) == "tensor<40x30xbf16>"
    assert not of_class(module, graph.Cast)
    assert context.statistics[FOLD, "folded"] == 1


def test_random_and_uninitialized_tensors_are_not_folded() -> None:
    model = Using(lambda x, w: (x + torch.rand(4, 4) * w, torch.empty(2)), (4, 4))
    module, context = frozen_program(model, torch.rand(4, 4), passes=FOLD)
    assert not context.statistics[FOLD, "folded"]
    first, second = (run(module, torch.zeros(4, 4))[0] for _ in range(2))
    assert not torch.equal(first, second)


def test_symbolic_sizes_are_not_folded() -> None:
    model = Using(lambda x, w: x + w.exp().expand(x.shape[0], 4), (1, 4))
    module, context = frozen_program(model, torch.rand(3, 4), passes=FOLD, dynamic=True)
    assert context.statistics[FOLD, "folded"] == 1  # exp, not its expansion
    x = torch.rand(9, 4)
    torch.testing.assert_close(run(module, x)[0], model(x).detach())


def test_a_constant_does_not_grow_beyond_the_limit() -> None:
    def outer(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return x * (v.exp().unsqueeze(1) * v.unsqueeze(0)).sin()

    model, x = Using(outer, (200,)), torch.rand(200, 200)
    module, context = check(model, x, passes="fold-constants{limit=1000}")
    sizes = [c.tensor.type.shape for c in of_class(module, graph.Constant)]
    assert sizes and all(len(s) == 1 or 1 in s for s in sizes)
    assert any("not folded: 160000 bytes, made of 800 bytes" in r.message for r in context.remarks)
    module, _ = check(model, x, passes=FOLD)
    assert [c.tensor.type.shape for c in of_class(module, graph.Constant)] == [(200, 200)]


def test_masks_of_positions_are_not_folded() -> None:
    model = Using(lambda x, w: x.tril() + w, (1,))
    module, context = check(model, torch.rand(20, 20), passes=FOLD)
    assert of_class(module, graph.Iota)
    assert all(c.tensor.type.shape != (20, 20) for c in of_class(module, graph.Constant))


def test_operators_of_torch_are_folded() -> None:
    model = Using(lambda x, w: x + torch.sort(w).values, (20, 20))
    module, _ = check(model, torch.rand(20, 20), passes=FOLD)
    assert not of_class(module, graph.CallAten)


def test_equal_bytes_of_other_types_are_told_apart() -> None:
    def zeros(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Any:
        return x + a.neg().abs(), x.flatten() + b.neg().abs(), x.half() + (c * 2).half()

    model = Using(zeros, (10, 10), (100,), (10, 10))
    for tensor in model.tensors:
        tensor.data.zero_()
    check(model, torch.rand(10, 10), passes=FOLD)


def test_a_result_is_computed_again_from_its_recipe() -> None:
    model = Using(lambda x, w, v: x @ (w * 2).exp() + v.exp(), (30, 40), (40,))
    module, context = check(model, torch.rand(5, 30), passes=FOLD)
    (step,) = context.folded
    assert isinstance(step, FoldedConstants)
    assert len(step.keys) == 1  # the vector of 160 bytes stands in the text
    folded = {k: module.resources[k] for k in step.keys}
    sources = {k: v for k, v in module.resources.items() if k not in folded}
    again = with_folded(sources, (step,))
    assert all(torch.equal(again[k], v) for k, v in folded.items())
    assert with_folded(again, (step,)) is again


def test_folding_what_was_folded_composes() -> None:
    model = Using(lambda x, w: x + (w * 3).exp(), (20, 20))
    module, context = frozen_program(model, torch.rand(20, 20), passes=FOLD)
    (add,) = of_class(module, graph.Add)
    constant = next(o for o in add.operands if isinstance(o.defining_op, graph.Constant))
    negative = graph.Neg((constant,), (constant.type,))
    add.parent.insert_before(negative, add)
    add.replace_uses_of(constant, negative.results[0])
    PassManager.parse(FOLD).run(module, context)
    first, second = context.folded
    sources = {k: v for k, v in module.resources.items() if k not in (*first.keys, *second.keys)}
    made = with_folded(sources, (first, second))
    torch.testing.assert_close(made[second.keys[0]], -(model.tensors[0] * 3).exp().detach())


def test_a_constant_that_is_not_at_hand_is_left() -> None:
    model = Using(lambda x, w: x + w.exp(), (20, 20))
    module, _ = frozen_program(model, torch.rand(20, 20))
    module.resources.clear()
    from irc.ir.passes import PassContext

    context = PassContext()
    PassManager.parse(FOLD).run(module, context)
    assert of_class(module, graph.Exp)
    assert "not beside the program" in context.remarks[-1].message
