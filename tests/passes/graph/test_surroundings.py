"""What is measured together with a product."""

from __future__ import annotations

import torch
from torch.nn import functional

import irc
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.passes.graph.contractions.surroundings import Surroundings, is_product


def around(function, *args):
    """The names of the operations around each product of a function."""
    module = irc.trace(function, args)
    for stage in ("functional", "aten-to-graph"):
        PassManager.parse(stage).run(module, PassContext(target="avx2"))
    calls = [op for op in module.walk() if isinstance(op, graph.CallAten) and is_product(op)]
    found = Surroundings(module.lookup("main"))
    return [[op.name.removeprefix("graph.") for op in found.of(call)] for call in calls]


X, W, V = torch.randn(6, 4), torch.randn(8, 4), torch.randn(4, 8)


def test_what_factors_are_made_of_belongs_to_it_where_nobody_else_reads_it():
    assert around(lambda x, w: torch.sin(x) @ w.mT, X, W) == [["sin", "permute", "call_aten"]]
    both = around(lambda x, w: (torch.sin(x) @ w.mT, torch.sin(x).sum(0)), X, W)
    assert both == [["permute", "call_aten"]]
    (softmax,) = around(lambda x, w: torch.sin(x.softmax(-1)) @ w.mT, X, W)
    assert softmax.count("reduce") == 2 and softmax[-3:] == ["sin", "permute", "call_aten"]


def test_what_becomes_of_the_result_belongs_to_it_up_to_the_next_product():
    def layers(x, w, v):
        hidden = torch.relu(x @ w.mT)
        return functional.layer_norm(hidden @ v.mT + x, (4,))

    first, second = around(layers, X, W, V)
    assert first[-1] == "maximum" and "full" in first
    assert first.count("call_aten") == second.count("call_aten") == 1
    assert "relu" not in second and "add" in second and "moments" in second
    assert second[-1] != "reshape", "views of the result are somebody else's"


def test_a_function_of_another_products_elements_is_measured_with_that_one():
    def attention(x, w, v):
        return (x @ w.mT).mul(0.5).softmax(-1) @ v.mT

    scores, product = around(attention, X, W, V)
    assert "mul" in scores and "mul" not in product, "the scores are in memory"
    assert {"reduce", "exp", "div"} <= {*product}, "a factor may be divided on the way"
    assert around(lambda x, w, v: torch.relu(x @ w.mT) @ v.mT, X, W, V)[1] == [
        "permute", "call_aten",
    ]  # fmt: skip


def test_a_value_that_is_not_there_yet_is_not_waited_for():
    def gated(x, w):
        return torch.sigmoid(x @ w.mT) * (torch.sin(x) @ w.mT)

    gate, value = around(gated, X, W)
    assert gate[-1] != "mul" and value[-1] == "mul"


def test_a_residual_of_a_later_product_is_not_part_of_an_earlier_one():
    def residual(x, w, v):
        first = x @ w.mT
        return first + torch.relu(first @ v.mT) @ w.mT

    first, second, third = around(residual, X, W, V)
    assert first[-1] == "call_aten" and third[-1] == "add" and second[-1] == "maximum"


def test_what_could_stand_in_front_belongs_to_the_product_that_it_is_computed_for():
    def normed(x, w, v, mean, variance):
        image = functional.batch_norm(functional.conv2d(x, w), mean, variance)
        return functional.conv2d(torch.relu(image), v) * 2 + image.exp()

    x, w, v = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 1, 1), torch.randn(4, 4, 1, 1)
    first, second = around(normed, x, w, v, torch.randn(4), torch.rand(4))
    assert first.index("sqrt") > first.index("call_aten"), "it stands behind the product"
    assert first.count("reciprocal") == first.count("maximum") == first.count("exp") == 1
    assert second == ["call_aten", "full", "mul", "add"], "the exponential is there by then"


def test_what_is_computed_of_another_product_is_no_products_numbers():
    def sums(x, w, v):
        other = x @ v.mT
        first = x @ w.mT
        return first + torch.tanh(other)

    other, first = around(sums, X, W, torch.randn(8, 4))
    assert "tanh" in other and "tanh" not in first and first[-1] == "add"


def test_what_is_widened_for_others_is_stored_narrow():
    def layers(x, w, v):
        hidden = (x @ w.mT) * 2
        return hidden.float().sum(0, keepdim=True) + (hidden @ v.mT).float().sum()

    args = [t.bfloat16() for t in (X, W, V)]
    first = around(layers, *args)[0]
    assert first.count("reduce") == 1
    late = around(lambda x, w, v: (x @ w.mT).float() * (x @ v).float(), *args)
    assert "cast" not in late[0]
