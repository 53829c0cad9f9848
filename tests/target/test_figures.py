"""Figures of targets: what a record refuses, and that a text with another one decides otherwise."""

from __future__ import annotations

import functools

import attrs
import pytest

import irc
from irc.target import Target
from irc.target.cpu_figures import CpuFigures
from irc.target.figures import figures_of
from irc.target.speeds import Speeds
from tests.corpus.decisions import lowered

#: For each figure another value, and a program of tests/corpus that it makes a difference to.
CPU = {
    "near_bytes": ("0", "batch_norm_in_training"),
    "scratch_bytes": ("0", "softmax_of_columns"),
    "core_bytes": ("0", "attention"),
    "division": ("1", "layer_norm"),
    "function": ("1", "chains_that_are_read_apart"),
    "access": ("8", "batch_norm_in_training"),
    "byte": ("0", "softmax_of_columns"),
    "launch": ("0", "a_loop_of_slices"),
    "serial": ("0", "pools"),
    "gather": ("6.0", "cheap_values_read_twice"),
    "scatter": ("1", "attention"),
    "scalar": ("2.0", "gathers_along_a_dimension"),
    "horizontal": ("1.0", "pools"),
    "map_block": ("4096", "an_optimizer_step"),
    "transposed_tiles": ("1", "sum_with_its_transpose"),
    "tile_row": ("16", "sum_with_its_transpose"),
    "tile_blocks": ("[1024, 512, 128, 64, 32]", "sum_with_its_transpose"),
    "paired_bits": ("0", "an_optimizer_step"),
    "heavy_body": ("0", "an_optimizer_step"),
    "light_body": ("0", "group_norm"),
    "long_row": ("0", "few_long_rows"),
}
#: Time alone; and images that are gathered (tests/passes/loop/test_inline_decisions.py).
ELSEWHERE = {"femtoseconds", "alone"}


@functools.cache
def decided(target: str, name: str) -> str:
    """A program down to kernels."""
    module, _ = lowered(name, "loop-to-kernel", target, values=False)
    del module.attributes["irc.target"]
    return irc.print_op(module)


@pytest.mark.parametrize("figure", CPU)
def test_a_text_with_another_figure_decides_otherwise(figure: str) -> None:
    value, program = CPU[figure]
    other = decided(f"#irc.target<avx2, {figure} = {value}>", program)
    assert other != decided("avx2", program)


def test_every_figure_decides_something() -> None:
    assert {field.name for field, _ in figures_of(CpuFigures)} == {*CPU, *ELSEWHERE}


@pytest.mark.parametrize(
    ("text", "message"),
    [("launch = -1", "launch is -1, not from 0 to"), ("map_block = 0", "block is 0, not from 1"),
     ("map_block = 1000", "map_block is 1000, not a power of two"),
     ("map_block = 2.0", "'map_block' is an integer"), ("gather = true", "'gather' is a number"),
     ("gather = -0.5", "gather is -0.5, not from 0"), ("gather = 2", ""),
     ("tile_blocks = [8, 8]", "tile_blocks is [8, 8], not 5 numbers"),
     ("tile_blocks = [8, 8, 8, 8, 9]", "tile_blocks is 9, not a power of two"),
     ("tile_blocks = 8", "'tile_blocks' is a list of integers")],
)  # fmt: skip
def test_what_no_processor_has(text: str, message: str) -> None:
    if not message:
        assert Target.named(f"#irc.target<avx2, {text}>").features.gather == 2.0
        return
    with pytest.raises(irc.UserError) as caught:
        Target.named(f"#irc.target<avx2, {text}>")
    assert message in str(caught.value)


def test_a_figure_is_of_one_record() -> None:
    """A text names fields of the processor and of the target alike."""
    for name in ("avx2", "sm_90"):
        target = Target.named(name)
        own = {f.name for f in attrs.fields(type(target.processor))}
        assert not own & {f.name for f in attrs.fields(Target)}
    assert {f.name for f, _ in figures_of(Speeds)} < {f.name for f, _ in figures_of(CpuFigures)}
