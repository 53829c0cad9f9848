"""Random norms, softmaxes and sums of rows, and their gradients, spread over a GPU however short
they are: their loops and kernels agree with those that are not spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import torch
from hypothesis import strategies as st
from torch import Tensor

import irc
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from tests.fuzz.harness import fuzz

Step = Callable[[Tensor], Tensor]

#: What is done along the axes of a row, with a dimension of one point for each afterwards.
REDUCED: dict[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "mean": lambda x, dims: x.mean(dims, keepdim=True),
    "amax": lambda x, dims: x.amax(dims, keepdim=True),
    "amin": lambda x, dims: x.amin(dims, keepdim=True),
    "norm": lambda x, dims: (x * x).sum(dims, keepdim=True).add(1e-3).sqrt(),
    "var": lambda x, dims: x.var(dims, keepdim=True, correction=0).add(1e-3),
    "logsumexp": lambda x, dims: x.logsumexp(dims, keepdim=True),
    "sum": lambda x, dims: x.abs().sum(dims, keepdim=True) / 8,
}
#: How that and the elements make the next elements.
APPLIED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sub": lambda x, r: x - r,
    "div": lambda x, r: x / (r.abs() + 1),
    "exp": lambda x, r: (x - r).clamp(max=3).exp(),
    "maximum": lambda x, r: torch.maximum(x, r / 2),
    "none": lambda x, r: x,
}


@attrs.frozen
class RowCase:
    """A program of rows: sizes of the axes that rows have and of their own, the order in which they
    lie in memory, what is done, and what is told: the elements, what rows have, gradients."""

    rows: tuple[int, ...]
    own: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[tuple[str, str], ...]
    softmax: bool
    tells_rows: bool
    gradients: bool
    infinite: bool
    dtype: torch.dtype
    part_points: int
    most_points: int
    narrow: int
    seed: int

    def call(self, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        """The program."""
        dims = tuple(range(len(self.rows), x.dim()))
        told: list[Tensor] = []
        for reduced, applied in self.steps:
            each = REDUCED[reduced](x, dims)
            told.append(each)
            x = APPLIED[applied](x, each) * w
        if self.softmax:
            top = x.amax(dims, keepdim=True)
            powers = (x - top).exp()
            x = powers / powers.sum(dims, keepdim=True)
        return (x, *told) if self.tells_rows else (x,)

    def program(self, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        """The program, or its gradients."""
        if not self.gradients:
            return self.call(x, w)
        results, back = torch.func.vjp(self.call, x, w)
        return back(tuple(torch.ones_like(r).mul(0.5) for r in results))

    def arguments(self) -> tuple[Tensor, Tensor]:
        """Its arguments."""
        generator = torch.Generator().manual_seed(self.seed)
        sizes = (*self.rows, *self.own)
        lies = torch.randn([sizes[k] for k in self.order], generator=generator)
        x = lies.permute([self.order.index(k) for k in range(len(sizes))])
        if self.infinite:
            x[..., x.shape[-1] // 2 :] = -torch.inf
        w = torch.randn([1] * len(self.rows) + list(self.own), generator=generator)
        return x.to(self.dtype), (w.abs() + 0.5).to(self.dtype)


@st.composite
def row_cases(draw: Any) -> RowCase:
    rows = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    longest = draw(st.sampled_from([1, 5, 7, 16, 37, 64, 97]))
    own = tuple(draw(st.permutations([*draw(st.lists(st.integers(1, 6), max_size=2)), longest])))
    count = len(rows) + len(own)
    # What gradients are of is smooth: a last bit decides nothing.
    gradients = draw(st.sampled_from([False, False, True]))
    jumps = {"amax", "amin", "sum", "maximum"} if gradients else set()
    steps = st.tuples(st.sampled_from(sorted(set(REDUCED) - jumps)),
                      st.sampled_from(sorted(set(APPLIED) - jumps)))  # fmt: skip
    softmax = draw(st.booleans())
    done = draw(st.lists(steps, min_size=0 if softmax else 1, max_size=2))
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.bfloat16]))
    if dtype is torch.bfloat16:
        # Rounded sums in another order are a bit of bf16 apart, which powers make much of.
        done, gradients = done[: 0 if softmax else 1], False
    return RowCase(
        rows, own, tuple(draw(st.permutations(range(count)))), tuple(done), softmax,
        draw(st.booleans()), gradients, draw(st.sampled_from([False, False, False, True])),
        dtype, draw(st.sampled_from([1, 2, 5])), draw(st.sampled_from([4, 16, 64])),
        draw(st.sampled_from([1, 8, 64])), draw(st.integers(0, 1 << 16)),
    )  # fmt: skip


def lowered(module: Any, target: str, pass_: str, last: str) -> tuple[Any, int]:
    """A program behind a stage, with `spread-rows` so; how often it spread rows."""
    module, count = module.clone(), 0
    for name, text in stages("sm_90", from_mapping({})).items():
        context = PassContext(target=target)
        PassManager.parse(text.replace("spread-rows", pass_), verify="each").run(module, context)
        count += context.statistics["spread-rows", "spread"]
        if name == last:
            return module, count
    raise AssertionError(last)


def agrees(case: RowCase, compile_it: bool) -> int:
    """Whether a case's loops, and its kernels, on a GPU for which all rows are too long, do what
    those of another one do; how often it was spread."""
    arguments = case.arguments()
    traced, count = irc.trace(case.program, arguments), 0
    whole, spread_before = lowered(traced, "sm_90", "spread-rows", "fuse-loops")
    expected = irc.run(whole, *arguments)
    target = (f"#irc.target<sm_90, instance_points = 1, crossed_points = 1, least_parts = 2, "
              f"narrow_columns = {case.narrow}>")  # fmt: skip
    pass_ = f"spread-rows{{part_points={case.part_points} most_points={case.most_points}}}"
    assert not spread_before
    for last in ("fuse-loops", "loop-to-kernel") if compile_it else ("fuse-loops",):
        each, count = lowered(traced, target, pass_, last)
        for result, right in zip(irc.run(each, *arguments), expected, strict=True):
            scale = max(1.0, float(right.double().nan_to_num(0, 0, 0).abs().max()))
            tolerance = scale * (1e-4 if case.dtype is torch.float32 else 3e-2)
            torch.testing.assert_close(
                result, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    return count


@fuzz("rows", row_cases(), quick=60, total=4_000, batch=60, every=3)
def test_spread_rows(case: RowCase, compile_it: bool) -> None:
    agrees(case, compile_it)


def test_the_cases_are_spread() -> None:
    """Cases as they are drawn are spread, by even and odd parts."""
    even = RowCase((2,), (4, 64), (0, 1, 2), (("var", "div"),), True, True, False, False,
                   torch.float32, 2, 16, 8, 0)  # fmt: skip
    assert agrees(even, True) == 1
    odd = attrs.evolve(even, own=(1, 67), steps=(("amax", "sub"),))
    assert math.prod(odd.own) % 2 and agrees(odd, True) == 1
