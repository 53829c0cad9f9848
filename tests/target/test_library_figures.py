"""Figures of the libraries: a target with another one decides otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc.codegen.host.lowering import emit_host
from irc.dialects.graph.winograd import TileLine, WinogradShape
from irc.ir.passes import PassContext, PassManager
from irc.passes.frozen.winograd_convolutions import WinogradConvolutions
from irc.program.read_host import read_host_program
from irc.target import Target
from irc.target.figures import evolve, figures_of

FROZEN = Path(__file__).parents[1] / "passes" / "frozen"
F = torch.nn.functional


def ran(module: Any, passes: str, target: str) -> str:
    """What passes make of a module."""
    PassManager.parse(passes).run(module, PassContext(target=target))
    del module.attributes["irc.target"]
    return irc.print_op(module)


def frozen(name: str, passes: str, target: str) -> str:
    """What passes make of a text with constant weights."""
    return ran(irc.parse_file(str(FROZEN / f"{name}.mlir")), passes, target)


def traced(
    function: Callable[..., Any], shape: tuple[int, ...], device: str, target: str,
    passes: str = "aten-to-graph",
) -> str:  # fmt: skip
    """A function of an array on the graph level."""
    with FakeTensorMode():
        x = torch.empty(shape, device=device)
    return ran(irc.trace(function, (x,)), f"functional,{passes}", target)


def host(target: str) -> str:
    """The native host function of two small products and what is done to the last."""
    x = torch.ones(8, 8)
    module = irc.trace(lambda x: (x @ x @ x).exp(), (x,))
    PassManager.parse("lower-to-cpu").run(module, PassContext(target=target))
    return emit_host(read_host_program(module, "main"), Target.named(target)).text


def pooled(x: torch.Tensor) -> torch.Tensor:
    y, places = F.max_pool2d(x, 3, 2, return_indices=True)
    return torch.ops.aten.max_pool2d_with_indices_backward(
        y, x, [3, 3], [2, 2], [0, 0], [1, 1], False, places
    )


def pairs(x: torch.Tensor) -> torch.Tensor:
    """The sums of rows that follow each other."""
    places = torch.arange(6) // 2
    return torch.zeros(3, 5).index_put((places,), x, accumulate=True)


def patches(target: str) -> str:
    """A convolution of windows that don't overlap."""

    def convolved(x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x.bfloat16(), x.new_empty(768, 3, 16, 16).bfloat16(), stride=16)

    passes = "convert-aten-to-graph,patch-products"
    return traced(convolved, (4, 3, 96, 96), "cuda:0", target, passes)


#: The other figures with which a convolution of three channels to ten is computed by irc.
PANELS = "panel_channels = 0, panel_results = 0, panel_pixels = 0, panel_empty = 1.0"
CASES: dict[str, tuple[str, Callable[[str], str]]] = {
    "packed_rows": ("1000", lambda t: frozen("pack_weights", "pack-weights", t)),
    "ranked_row": ("32", lambda t: traced(lambda x: x.topk(3)[0], (5, 48), "cpu", t)),
    "sorted_row": ("32", lambda t: traced(lambda x: x.sort()[0], (5, 48), "cuda:0", t)),
    "seen_windows": ("3", lambda t: traced(pooled, (2, 3, 9, 9), "cuda:0", t)),
    "seen_terms": ("0", lambda t: traced(pairs, (6, 5), "cpu", t, "aten-to-graph")),
    "narrow_convolution": ("1000000000", patches),
    "pixel_bytes": ("6", patches),
    "small_product": ("511", host),
    "unlocked_work": ("1", host),
}


@pytest.mark.parametrize("figure", CASES)
def test_another_figure_decides_otherwise(figure: str) -> None:
    value, decided = CASES[figure]
    on_gpu = ("sorted_row", "seen_windows", "narrow_convolution", "pixel_bytes")
    name = "sm_90" if figure in on_gpu else "avx2"
    assert decided(name) != decided(f"#irc.target<{name}, {figure} = {value}>")


@pytest.mark.parametrize("figure", ["panel_channels", "panel_results", "panel_pixels",
                                    "panel_empty"])  # fmt: skip
def test_each_bound_of_a_panel(figure: str) -> None:
    base = Target.named(f"#irc.target<avx2, {PANELS}>")
    other = evolve(base, **{figure: getattr(Target.named("avx2"), figure)})
    ours, left = (frozen("panel_convolutions", "panel-convolutions", str(t)) for t in (base, other))
    assert "graph.dot_general" in ours and "graph.dot_general" not in left


@pytest.mark.parametrize("figure", ["winograd_byte", "winograd_transform"])
def test_what_a_transformed_convolution_takes(figure: str) -> None:
    shape = WinogradShape(batch=1, height=56, width=56, channels=64, channels_out=64, bits=512,
                          panel=32, padding=(1, 1), down=TileLine(3, 1, 4),
                          right=TileLine(3, 1, 4))  # fmt: skip
    target = Target.named("avx512")
    assert WinogradConvolutions().refusal(shape, target) is None
    slow = evolve(target, **{figure: 100_000})
    assert "times less work" in (WinogradConvolutions().refusal(shape, slow) or "")


#: tests/passes/layout/test_propagate_channels_last.py
LAYOUTS = {"grouped_time", "narrowing_time", "small_time", "usual_time", "small_channels"}


def test_every_figure_decides_something() -> None:
    tested = {*CASES, *LAYOUTS, "panel_channels", "panel_results", "panel_pixels", "panel_empty",
              "winograd_byte", "winograd_transform"}  # fmt: skip
    assert {*figures_of(Target)} == tested
