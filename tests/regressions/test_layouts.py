"""Smallest programs on which a layout went wrong, found by tests/fuzz/test_layouts.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import irc
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages

LOWER = ",".join(list(stages())[3:])


def test_a_result_keeps_the_old_elements_of_an_argument_that_is_updated() -> None:
    """The interpreter returned the argument itself, with its new elements."""
    text = """
    func.func @main(%x: tensor<3xf32> {irc.strides = #sym.dims<[1]>}) ->
        (tensor<3xf32> {irc.strides = #sym.dims<[1]>}) attributes {level = "graph"} {
      %y = graph.neg %x : (tensor<3xf32>) -> tensor<3xf32>
      graph.update_input %y {argument = 0 : i64} : (tensor<3xf32>)
      func.return %x : tensor<3xf32>
    }
    """
    module = irc.parse(text)
    check_update(lambda x: irc.run(module, x))
    PassManager.parse("assign-layouts,insert-layout-copies").run(module)
    check_update(lambda x: irc.run(module, x))
    PassManager.parse(LOWER).run(module, PassContext(target="llvm"))
    check_update(irc.build(module))


def check_update(run: Callable[..., Any]) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    (old,) = run(x)
    assert old.tolist() == [1, 2, 3]
    assert x.tolist() == [-1, -2, -3]


def test_equal_values_that_are_returned_as_different_views_share_no_memory() -> None:
    """cse made one array of both, and the second result a view of the first."""

    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.neg(), x.neg().t()

    plain, transposed = torch.compile(twice, backend="irc", fullgraph=True)(torch.ones(2, 3))
    plain.add_(5)
    assert transposed.eq(-1).all()
    assert transposed.stride() == (1, 3)


def test_views_that_share_memory_in_eager_mode_still_do() -> None:
    def views(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.neg()
        return y, y.t()

    plain, transposed = torch.compile(views, backend="irc", fullgraph=True)(torch.ones(2, 3))
    plain.add_(5)
    assert transposed.eq(4).all()


def test_what_is_returned_twice_is_one_array_apart_from_an_equal_one() -> None:
    """The third result was a view of the first, as the second had been made a copy of it."""

    def equal(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, second = x.neg(), x.neg()
        return first, second, second

    results = torch.compile(equal, backend="irc", fullgraph=True)(torch.ones(2, 3))
    results[0].add_(5)
    assert results[1].eq(-1).all() and results[2].eq(-1).all()
    results[1].add_(3)
    assert results[2].eq(2).all()
