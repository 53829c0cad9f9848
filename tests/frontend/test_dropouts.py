"""A dropout that drops nothing returns its operand, as in eager mode; others drop what it drops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx

from irc.frontend.fx.dropouts import BATCHED, DROPOUTS, skip_dropouts

FUNCTIONS = sorted((d for d in DROPOUTS if d.__module__ == F.__name__), key=lambda d: d.__name__)
CALLS = [
    ("alpha_dropout as it is", F.alpha_dropout),
    ("torch.dropout", lambda x: torch.dropout(x, 0.0, True)),
    ("torch.dropout, keywords", lambda x: torch.dropout(x, p=0.5, train=False)),
    ("in place", lambda x: F.dropout(x, 0.0, inplace=True)),
    ("two", lambda x: F.dropout(torch.feature_dropout(x, 0.3, False), 0.0)),
    ("a module", torch.nn.Dropout(0.0)),
    ("an overload", lambda x: torch.ops.aten.dropout.default(x, 0.0, True)),
    ("a packet, keywords", lambda x: torch.ops.aten.feature_dropout(x, p=0.5, train=False)),
    ("an overload in place", lambda x: torch.ops.aten.alpha_dropout_.default(x, 0.0, True)),
]


def is_kept(call: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether the compiled call gives its argument, as it does in eager mode."""
    assert call(x) is x
    return torch.compile(call, backend="irc")(x) is x


@pytest.mark.fault("C9")
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_dropout_that_drops_nothing_gives_the_tensor_itself(function, gradient):
    x = torch.randn(6, 2).t()[(None,) * (BATCHED.get(function, 4) - 2)].requires_grad_(gradient)
    assert is_kept(lambda x: function(x, 0.0, training=True), x)
    assert is_kept(lambda x: function(x, 0.5, training=False), x)


@pytest.mark.fault("C9")
@pytest.mark.parametrize("call", [c for _, c in CALLS], ids=[name for name, _ in CALLS])
def test_ways_to_call(call):
    assert is_kept(call, torch.randn(2, 3, 4))


@pytest.mark.fault("C9")
@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_an_exported_module(training):
    x = torch.randn(2, 3)
    module = torch.nn.Sequential(torch.nn.Dropout(0.0)).train(training)
    assert is_kept(torch.export.export(module, (x,)).module(), x)


@pytest.mark.fault("C9")
def test_of_no_elements():
    assert is_kept(lambda x: F.dropout(x, 0.5), torch.empty(0, 3))


@pytest.mark.fault("C9")
def test_what_is_written_afterwards_is_the_argument():
    def program(x):
        y = F.dropout(x, 0.0)
        y.add_(1)
        return y, x * 2

    x, z = torch.zeros(3), torch.zeros(3)
    expected = program(x)
    made = torch.compile(program, backend="irc")(z)
    assert made[0] is z and torch.equal(z, x) and torch.equal(made[1], expected[1])


@pytest.mark.fault("C9")
@pytest.mark.parametrize("p", [0.5, 1.0])
def test_a_dropout_that_drops_gives_a_new_tensor(p):
    x = torch.randn(3, 4)
    torch.manual_seed(0)
    expected = F.dropout(x, p)
    torch.manual_seed(0)
    made = torch.compile(lambda x: F.dropout(x, p), backend="irc")(x)
    assert made is not x and torch.equal(made, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "lay",
    [
        lambda x: x.transpose(0, 1),
        lambda x: x[0].t(),
        lambda x: x[None].to(memory_format=torch.channels_last),
        lambda x: x[:, ::2].permute(2, 0, 1),
        lambda x: x.transpose(1, 2)[None].expand(2, 3, 5, 4),
    ],
    ids=["transposed", "matrix", "channels-last", "sliced", "expanded"],
)
def test_what_is_dropped_is_eager_s_in_every_order_of_memory(lay, dynamic):
    x = lay(torch.ones(3, 4, 5))
    torch.manual_seed(0)
    expected = F.dropout(x, 0.4)
    torch.manual_seed(0)
    dropped = torch.compile(F.dropout, backend="irc", dynamic=dynamic)(x, 0.4)
    assert torch.allclose(dropped, expected)
    assert dropped.stride() == expected.stride()


def test_no_code_is_made_of_a_graph_that_is_only_read(monkeypatch):
    """It takes 0.06 s of BERT-base's compile each time."""
    graphs: list[fx.GraphModule] = []

    def keep(module: fx.GraphModule, inputs: object) -> fx.GraphModule:
        graphs.append(module)
        return module

    torch.compile(lambda x: F.dropout(x, 0.0) + 1, backend=keep)(torch.randn(3))
    coded: list[fx.Graph] = []
    code = fx.Graph.python_code

    def counted(graph: fx.Graph, *rest: object, **more: object) -> object:
        coded.append(graph)
        return code(graph, *rest, **more)

    monkeypatch.setattr(fx.Graph, "python_code", counted)
    skipped = skip_dropouts(graphs[0])
    assert skipped is not graphs[0] and not coded
    assert len(skipped.graph.nodes) < len(graphs[0].graph.nodes)
    assert torch.equal(skipped(torch.ones(3))[0], torch.full((3,), 2.0)) and coded
