"""Weights packed for a library: text, verifier, interpreter, and what runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.dialects import graph
from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages

REFERENCE = {
    "relu": torch.relu,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.25),
    "hardtanh": lambda x: functional.hardtanh(x, 0.0, 6.0),
    "hardswish": functional.hardswish,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    None: lambda x: x,
}
SCALARS = {"leaky_relu": "[0.25 : f64]", "hardtanh": "[0.0 : f64, 6.0 : f64]"}
LOWER = ",".join(list(stages())[2:])


def epilogue(activation: str | None, segments: str) -> str:
    """The attributes that both packed operations have, as text."""
    parts = [f"operandSegmentSizes = array<i64: {segments}>"]
    if activation is not None:
        parts.append(f'activation = "{activation}"')
        parts.append(f"scalars = {SCALARS.get(activation, '[]')}")
    return ", ".join(parts)


def convolution(activation: str | None = "relu", groups: int = 1, other: bool = False) -> str:
    """A 3x3 convolution of stride 2 with a bias; `other` is added first."""
    x, w = "tensor<2x4x9x7xf32>", f"tensor<8x{4 // groups}x3x3xf32>"
    y = "tensor<2x8x5x4xf32>"
    shape = (
        "stride = array<i64: 2, 2>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, "
        f"groups = {groups} : i64"
    )
    arguments = f"%x: {x}, %o: {y}" if other else f"%x: {x}"
    operands, types = ("%x, %p, %b, %o", f", {y}") if other else ("%x, %p, %b", "")
    marks = epilogue(activation, f"1, 1, 1, {int(other)}")
    return f"""
func.func @main({arguments}) -> {y} attributes {{level = "graph"}} {{
  %w = graph.constant {{value = #irc.resource<"w"> : {w}}} : {w}
  %b = graph.constant {{value = #irc.resource<"b"> : tensor<8xf32>}} : tensor<8xf32>
  %p = graph.pack %w {{format = "convolution", input = array<i64: 2, 4, 9, 7>, {shape}}} : ({w}) -> !graph.packed<{w}>
  %y = graph.packed_conv {operands} {{{marks}, {shape}}} : ({x}, !graph.packed<{w}>, tensor<8xf32>{types}) -> {y}
  func.return %y : {y}
}}
"""  # noqa: E501


def linear(activation: str | None = "gelu", other: bool = False) -> str:
    """A linear of rank 3 with a bias."""
    x, w, y = "tensor<2x3x5xf32>", "tensor<7x5xf32>", "tensor<2x3x7xf32>"
    arguments = f"%x: {x}, %o: {y}" if other else f"%x: {x}"
    operands, types = ("%x, %p, %b, %o", f", {y}") if other else ("%x, %p, %b", "")
    marks = epilogue(activation, f"1, 1, 1, {int(other)}")
    return f"""
func.func @main({arguments}) -> {y} attributes {{level = "graph"}} {{
  %w = graph.constant {{value = #irc.resource<"w"> : {w}}} : {w}
  %b = graph.constant {{value = #irc.resource<"b"> : tensor<7xf32>}} : tensor<7xf32>
  %p = graph.pack %w {{format = "linear", input = array<i64: 6, 5>}} : ({w}) -> !graph.packed<{w}>
  %y = graph.packed_linear {operands} {{{marks}}} : ({x}, !graph.packed<{w}>, tensor<7xf32>{types}) -> {y}
  func.return %y : {y}
}}
"""  # noqa: E501


def module_of(text: str) -> tuple[Any, dict[str, torch.Tensor], list[torch.Tensor]]:
    """The module with random constants, those constants, and random arguments."""
    generator = torch.Generator().manual_seed(0)

    def tensor(shape: str) -> torch.Tensor:
        return torch.randn([int(n) for n in shape.split("x")], generator=generator)

    found = re.findall(r'resource<"(\w)"> : tensor<([\dx]+)xf32>', text)
    resources = {name: tensor(shape) for name, shape in found}
    header = text.partition("->")[0]
    arguments = [tensor(shape) for shape in re.findall(r"%\w: tensor<([\dx]+)xf32>", header)]
    return irc.parse(text, resources=resources), resources, arguments


def expected_of(
    text: str, weights: dict[str, torch.Tensor], given: list[torch.Tensor], act: str | None
) -> torch.Tensor:
    """What eager gives."""
    x, *other = given
    if "packed_linear" in text:
        made = functional.linear(x, weights["w"], weights["b"])
    else:
        groups = 4 // weights["w"].shape[1]
        made = functional.conv2d(x, weights["w"], weights["b"], 2, 1, 1, groups)
    return REFERENCE[act](made + other[0] if other else made)


CASES = [
    *((convolution(a), a) for a in REFERENCE),
    *((linear(a), a) for a in REFERENCE),
    (convolution("relu", groups=2), "relu"),
    (convolution("silu", groups=4), "silu"),
    (convolution("relu", other=True), "relu"),
    (convolution(None, other=True), None),
    (linear(None, other=True), None),
]


@pytest.mark.parametrize("text, activation", CASES)
def test_means_the_same_in_every_form(text: str, activation: str | None) -> None:
    module, weights, given = module_of(text)
    expected = expected_of(text, weights, given, activation)
    again = irc.parse(str(module), resources=weights)
    assert str(again) == str(module)
    (got,) = irc.run(again, *given)
    torch.testing.assert_close(got, expected)
    PassManager.parse(LOWER, verify="each").run(module, PassContext(target="llvm"))
    (got,) = irc.run(module, *given)
    torch.testing.assert_close(got, expected)
    for options in ({"native": True, "cache": False}, {"native": False, "cache": False}):
        executable = irc.build(module, options=options)
        for _ in range(2):
            (got,) = executable(*given)
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)
            assert got.is_contiguous(memory_format=torch.channels_last) == (got.dim() == 4)


def test_the_raw_weight_is_not_kept() -> None:
    from irc.program.read_host import read_host_program

    module, *_ = module_of(convolution())
    PassManager.parse(LOWER).run(module, PassContext(target="llvm"))
    program = read_host_program(module)
    packed = [c for c in program.constants.values() if c.packing is not None]
    assert len(packed) == 1 and len(program.constants) == 2


def test_a_sum_is_computed_in_memory_that_dies() -> None:
    text = convolution(None).replace(
        "  func.return %y : tensor<2x8x5x4xf32>",
        "  %q = graph.constant {value = #irc.resource<\"q\"> : tensor<8x8x1x1xf32>} : "
        "tensor<8x8x1x1xf32>\n"
        '  %r = graph.pack %q {format = "convolution", stride = array<i64: 1, 1>, padding = '
        "array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : "
        "(tensor<8x8x1x1xf32>) -> !graph.packed<tensor<8x8x1x1xf32>>\n"
        "  %z = graph.packed_conv %y, %r, %s {operandSegmentSizes = array<i64: 1, 1, 0, 1>, "
        "stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, "
        "groups = 1 : i64} : (tensor<2x8x5x4xf32>, !graph.packed<tensor<8x8x1x1xf32>>, "
        "tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>\n"
        "  func.return %z : tensor<2x8x5x4xf32>",
    )
    for added, in_place in (("%y", False), ("%e", True), ("%o", True)):  # a copy of %o dies
        form = text.replace("%s", added)
        if added == "%e":
            made = "  %e = graph.exp %y : (tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>\n"
            form = form.replace("  %q = ", f"{made}  %q = ", 1)
        if added == "%o":
            form = form.replace("(%x: tensor<2x4x9x7xf32>)",
                                "(%x: tensor<2x4x9x7xf32>, %o: tensor<2x8x5x4xf32>)")  # fmt: skip
        module, weights, given = module_of(form)
        first = functional.conv2d(given[0], weights["w"], weights["b"], 2, 1)
        sums = {"%y": first, "%e": first.exp(), "%o": given[-1].clone()}
        expected = functional.conv2d(first, weights["q"]) + sums[added]
        PassManager.parse(LOWER).run(module, PassContext(target="llvm"))
        assert ("_convolution_pointwise_.binary" in str(module)) == in_place
        (got,) = irc.build(module, options={"cache": False})(*given)
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        if added == "%o":
            torch.testing.assert_close(given[-1], sums["%o"])


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('activation = "relu"', 'activation = "swoosh"', "activation 'swoosh' is not one of"),
        ("scalars = []", "scalars = [1.0 : f64]", "takes 0 scalars, 1 given"),
        ('format = "convolution"', 'format = "blocked"', "format 'blocked' is not one of"),
        ("groups = 1 : i64}", "groups = 2 : i64}", "don't fit the channels"),
        ("tensor<2x8x5x4xf32>", "tensor<2x8x5x5xf32>", "not sizes"),
        ("tensor<2x8x5x4xf32>", "tensor<2x8x20xf32>", "not sizes"),
        ("tensor<8xf32>", "tensor<4xf32>", "the bias is"),
    ],
)
def test_ill_formed_operations_are_refused(old: str, new: str, message: str) -> None:
    text = convolution().replace(old, new)
    assert text != convolution()
    with pytest.raises(IRCError, match=message):
        module = irc.parse(text, resources=dict.fromkeys("wb", torch.zeros(1)))
        irc.verify(module)


def test_no_other_operation_takes_a_packed_weight() -> None:
    text = convolution().replace(
        "  func.return",
        "  %e = graph.exp %p : (!graph.packed<tensor<8x4x3x3xf32>>) -> tensor<8x4x3x3xf32>\n"
        "  func.return",
    )
    with pytest.raises(IRCError):
        irc.verify(irc.parse(text, resources=dict.fromkeys("wb", torch.zeros(1))))


def test_every_activation_has_a_meaning() -> None:
    assert set(REFERENCE) - {None} == set(graph.ACTIVATIONS)
