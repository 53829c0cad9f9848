"""From ATen's activations to fused ones: every activation as convert-aten-to-graph writes it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.passes import PassContext, PassManager
from irc.target import Target
from irc.target.cpu import TargetFeatures

TO_GRAPH = "functionalize,decompose-aten,convert-aten-to-graph,canonicalize,cse"
ACTIVATIONS: list[tuple[str, nn.Module]] = [
    ("relu", nn.ReLU()),
    ("hardtanh", nn.ReLU6()),
    ("hardtanh", nn.Hardtanh(-2.0, 3.5)),
    ("hardswish", nn.Hardswish()),
    ("silu", nn.SiLU()),
    ("sigmoid", nn.Sigmoid()),
    ("tanh", nn.Tanh()),
    ("gelu", nn.GELU()),
    ("gelu_tanh", nn.GELU(approximate="tanh")),
    ("leaky_relu", nn.LeakyReLU(0.2)),
]


def frozen(module: Any, model: nn.Module, x: torch.Tensor) -> Any:
    """The traced module with its parameters (in order, before `x`) as constants."""
    function = module.lookup("main")
    builder = Builder.before(function.block.first)
    for tensor in [p.detach() for p in model.parameters()]:
        argument = function.block.arguments[0]
        assert tuple(argument.type.shape) == tuple(tensor.shape)
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        value = builder.value(graph.Constant, value=A.DenseAttr(argument.type, data))
        argument.replace_all_uses_with(value)
        function.block.erase_argument(0)
    function.attributes["arg_info"] = A.ArrayAttr(list(function.arg_info)[-1:])
    function.refresh_type()
    return module


def packed(
    model: nn.Module, x: torch.Tensor, target: str | Target = "llvm"
) -> tuple[Any, PassContext]:
    """The model's program after pack-weights and fuse-epilogues."""

    def call(*given: torch.Tensor) -> Any:
        names = [n for n, _ in model.named_parameters()]
        return torch.func.functional_call(model, dict(zip(names, given, strict=False)), given[-1:])

    arguments = [p.detach() for p in model.parameters()]
    module = irc.trace(call, (*arguments, x))
    context = PassContext(target=target)
    PassManager.parse(TO_GRAPH).run(module, context)
    frozen(module, model, x)
    PassManager.parse("pack-weights,fuse-epilogues", verify="each").run(module, context)
    return module, context


@pytest.mark.parametrize("name, activation", ACTIVATIONS, ids=lambda v: str(v))
@pytest.mark.parametrize("layer", ["conv", "linear"])
def test_every_activation_is_fused(name: str, activation: nn.Module, layer: str) -> None:
    torch.manual_seed(0)
    first: nn.Module = nn.Conv2d(3, 4, 3) if layer == "conv" else nn.Linear(3, 4)
    x = torch.randn(2, 3, 6, 5) if layer == "conv" else torch.randn(2, 5, 3)
    model = nn.Sequential(first, activation)
    module, context = packed(model, x)
    left = [o.name for o in module.walk() if isinstance(o, graph.PointwiseOp | graph.Select)]
    assert not left
    (made,) = [o for o in module.walk() if isinstance(o, graph.PackedConv | graph.PackedLinear)]
    assert made.activation == name
    assert context.statistics["fuse-epilogues", "activations"] == 1
    (got,) = irc.run(module, x)
    torch.testing.assert_close(got, model(x))


class Residual(nn.Module):
    def __init__(self, same: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 1, bias=False)
        self.same = same

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        other = y if self.same else self.second(x)
        return torch.relu(self.second(y) + other)


@pytest.mark.parametrize("same", (True, False))
def test_a_residual_is_added_inside(same: bool) -> None:
    torch.manual_seed(0)
    model, x = Residual(same), torch.randn(2, 4, 6, 5)
    module, context = packed(model, x)
    assert not [o for o in module.walk() if isinstance(o, graph.PointwiseOp)]
    assert context.statistics["fuse-epilogues", "additions"] == 1
    assert context.statistics["fuse-epilogues", "activations"] == 2
    (got,) = irc.run(module, x)
    torch.testing.assert_close(got, model(x))


NARROW = Target(TargetFeatures.avx512(), library=("bf16", "f32"))


@pytest.mark.parametrize("last", ["relu", "sigmoid", "gelu"])
def test_functions_of_narrow_elements_are_fused(last: str) -> None:
    """They are computed in f32, between casts; what is added is narrow, too."""
    torch.manual_seed(0)
    functions = {"relu": torch.relu, "sigmoid": torch.sigmoid, "gelu": nn.functional.gelu}
    function: Any = functions[last]

    class Model(Residual):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = function(self.first(x))
            return torch.relu(self.second(y) + x)

    model, x = Model(False).bfloat16(), torch.randn(2, 4, 6, 5).bfloat16()
    module, context = packed(model, x, NARROW)
    assert not [o for o in module.walk() if isinstance(o, graph.PointwiseOp)]
    assert context.statistics["fuse-epilogues", "additions"] == 1
    assert context.statistics["fuse-epilogues", "activations"] == 2
    (got,) = irc.run(module, x)
    wide = copy.deepcopy(model).double()(x.double())
    torch.testing.assert_close(got.double(), wide, rtol=2e-2, atol=2e-2)


def test_what_is_not_rounded_back_or_read_elsewhere_stays() -> None:
    class Model(nn.Module):
        def __init__(self, twice: bool) -> None:
            super().__init__()
            self.layer, self.twice = nn.Conv2d(4, 4, 3), twice

        def forward(self, x: torch.Tensor) -> Any:
            y = self.layer(x)
            return (torch.relu(y), y) if self.twice else torch.relu(y.float())

    for twice in (False, True):
        torch.manual_seed(0)
        model, x = Model(twice).bfloat16(), torch.randn(2, 4, 6, 5).bfloat16()
        module, context = packed(model, x, NARROW)
        assert any(isinstance(op, graph.PackedConv) for op in module.walk())
        assert not context.statistics["fuse-epilogues", "activations"]
        got, expected = irc.run(module, x)[0], model(x)
        torch.testing.assert_close(got, expected[0] if twice else expected, rtol=2e-2, atol=2e-2)


def test_a_product_with_itself_and_other_activations_stay() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            return torch.tanh((y + y) * torch.nn.functional.elu(self.layer(x + 1)))

    torch.manual_seed(0)
    model, x = Model(), torch.randn(5, 3)
    module, context = packed(model, x)
    assert not context.statistics["fuse-epilogues", "activations"]
    assert not context.statistics["fuse-epilogues", "additions"]
    (got,) = irc.run(module, x)
    torch.testing.assert_close(got, model(x))


@pytest.mark.parametrize(
    "around, value, taken",
    [
        ((1, 1, 2, 2), 0.0, True),
        ((0, 1, 0, 1), 0.0, False),
        ((1, 1, 1, 1), 1.0, False),
        ((1, 1, 1, 1, 1, 1), 0.0, False),
    ],
)
def test_zeros_around_an_image_become_padding(
    around: tuple[int, ...], value: float, taken: bool
) -> None:
    torch.manual_seed(0)
    deep = len(around) == 6
    pad = nn.ConstantPad3d(around, value) if deep else nn.ConstantPad2d(around, value)  # type: ignore[arg-type]
    model = nn.Sequential(pad, nn.Conv2d(5 if deep else 3, 4, 3, padding=1))
    x = torch.randn(2, 3, 6, 5)
    module, _ = packed(model, x)
    (conv,) = [o for o in module.walk() if isinstance(o, graph.PackedConv)]
    assert tuple(conv.padding) == ((3, 2) if taken else (1, 1))
    (got,) = irc.run(module, x)
    torch.testing.assert_close(got, model(x))
