"""Which scattered sums go into the array that they are added to, with which values."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages
from tests.passes.graph.aten_programs import put_on

BEFORE = stages()["aten-to-graph"].partition(",accumulate-scatters")[0]


def accumulated(function, *arguments):
    """How many sums went into their array; the values must be eager's."""
    module, context = irc.trace(function, arguments), PassContext()
    PassManager.parse(f"functional,{BEFORE}").run(module)
    PassManager.parse("accumulate-scatters", verify="each").run(module, context)
    left = [op for op in module.walk() if isinstance(op, graph.Put | graph.Scatter)]
    expected = function(*arguments)
    torch.testing.assert_close(irc.compile(function, arguments)(*arguments), expected)
    (got,) = irc.run(module, *arguments)
    torch.testing.assert_close(got, expected)
    return context.statistics["accumulate-scatters", "accumulated"], len(left)


def embedding_gradient(gradient, tokens):
    return torch.ops.aten.embedding_dense_backward(gradient, tokens, 11, -1, False)


GRADIENT, TOKENS = torch.randn(2, 5, 3), torch.tensor([[1, 1, 4, 0, 10], [1, 9, 9, 9, 9]])


@pytest.mark.parametrize("swapped", [False, True])
def test_a_shared_weight_gets_both_gradients_in_one_array(swapped):
    def f(gradient, tokens, other):
        rows = embedding_gradient(gradient, tokens)
        return rows + other if swapped else other + rows

    assert accumulated(f, GRADIENT, TOKENS, torch.randn(11, 3)) == (1, 1)


def test_a_scatter_along_a_dimension():
    def f(x, index, values):
        return x.exp() + torch.zeros(6, 5).scatter_add(1, index, values)

    index = torch.randint(0, 5, (6, 7))
    assert accumulated(f, torch.randn(6, 5), index, torch.randn(6, 7)) == (1, 1)


def test_integers():
    def f(x, index, values):
        return x + torch.zeros(6, 5, dtype=torch.int64).scatter_add(1, index, values)

    index = torch.randint(0, 5, (6, 7))
    assert accumulated(f, torch.ones(6, 5).long(), index, torch.ones(6, 7).long()) == (1, 1)


def test_two_sums_of_one_array():
    def f(gradient, tokens, other):
        first = other + embedding_gradient(gradient, tokens)
        return first + embedding_gradient(gradient, 10 - tokens)

    assert accumulated(f, GRADIENT, TOKENS, torch.randn(11, 3)) == (2, 2)


def test_sums_that_something_else_needs_too_stay():
    def f(gradient, tokens, other):
        rows = embedding_gradient(gradient, tokens)
        return other + rows, rows.sum(0)

    module, context = irc.trace(f, (GRADIENT, TOKENS, torch.randn(11, 3))), PassContext()
    PassManager.parse(f"functional,{BEFORE},accumulate-scatters").run(module, context)
    assert not context.statistics["accumulate-scatters", "accumulated"]


def test_other_combinations_and_other_arrays_stay():
    def assigned(x, index, values):
        return x + torch.zeros(6, 5).scatter(1, index, values)

    def ones(x, index, values):
        return x + torch.ones(6, 5).scatter_add(1, index, values)

    def subtracted(x, index, values):
        return x - torch.zeros(6, 5).scatter_add(1, index, values)

    index = torch.arange(5).expand(6, 5).contiguous()
    for f in (assigned, ones, subtracted):
        assert accumulated(f, torch.randn(6, 5), index, torch.randn(6, 5)) == (0, 1), f.__name__


def test_no_array_is_filled_or_added_and_the_argument_keeps_its_elements():
    def f(gradient, tokens, other):
        return other + embedding_gradient(gradient, tokens)

    other = torch.randn(11, 3)
    before = other.clone()
    executable = irc.compile(f, (GRADIENT, TOKENS, other))
    torch.testing.assert_close(executable(GRADIENT, TOKENS, other), f(GRADIENT, TOKENS, other))
    assert torch.equal(other, before)


def test_rows_are_added_to_a_product_where_it_is():
    def f(gradient, tokens, x, y):
        return embedding_gradient(gradient, tokens) + x @ y

    arguments = GRADIENT, TOKENS, torch.randn(11, 4), torch.randn(4, 3)
    module = irc.trace(f, arguments)
    PassManager.parse("lower-to-cpu").run(module)
    called = [op.name for op in module.walk() if op.name in ("host.launch", "host.copy")]
    assert called == ["host.launch"] * 2, "the check of the tokens, the sums"
    names = [op.name for op in module.walk()]
    assert names.count("host.alloc") - names.count("host.item") == 1, "one array and a verdict"
    torch.testing.assert_close(irc.compile(f, arguments)(*arguments), f(*arguments))


def test_rounding_as_eager_has_it_leaves_the_additions():
    from irc.options.options import from_mapping
    from irc.pipeline import pipeline_text

    assert "accumulate-scatters" in pipeline_text()
    text = pipeline_text("llvm", from_mapping({"emulate_rounding": True}))
    assert "accumulate-scatters" not in text


TRUTHS = """
func.func @main(%x: tensor<9xELEMENT>, %v: tensor<3xELEMENT>, %i: tensor<3xi64>) -> tensor<9xELEMENT> attributes {level = "graph"} {
  %z = graph.full {value = ZERO} : tensor<9xELEMENT>
  %p = graph.put %z, %v, %i {check_bounds, combiner = "sum", dims = array<i64: 0>, position = 0 : i64} : (tensor<9xELEMENT>, tensor<3xELEMENT>, tensor<3xi64>) -> tensor<9xELEMENT>
  %y = graph.add %x, %p : (tensor<9xELEMENT>, tensor<9xELEMENT>) -> tensor<9xELEMENT>
  return %y : tensor<9xELEMENT>
}
"""  # noqa: E501


@pytest.mark.parametrize(("element", "zero", "count"), [("i1", "false", 0), ("i32", "0 : i32", 1)])
def test_truths_are_no_sums(element, zero, count):
    module = irc.parse(TRUTHS.replace("ELEMENT", element).replace("ZERO", zero))
    context = PassContext()
    PassManager.parse("accumulate-scatters").run(module, context)
    assert context.statistics["accumulate-scatters", "accumulated"] == count


def test_on_a_gpu_gradients_of_a_table_are_not_checked() -> None:
    """What is no row adds nothing to the first one; the lookup was checked."""
    gradient = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    places = torch.tensor([[1, 2, 2, 8, 0], [3, 3, -1, 1, 9]])
    inside = (places >= 0) & (places < 9)

    def function(g: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.embedding_dense_backward(g, i, 9, 3, False)

    expected = function(torch.where(inside[..., None], gradient, 0), torch.where(inside, places, 0))
    for device in ("cuda:0", "cpu"):
        module = put_on(irc.trace(function, [gradient, places]), device)
        PassManager.parse("convert-aten-to-graph").run(module)
        assert ("check_bounds" in str(module)) is (device == "cpu")
        if device != "cpu":
            assert torch.equal(irc.run(module, gradient, places)[0], expected)
