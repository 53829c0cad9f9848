"""Attention of irc's own on a CPU: values against eager mode in float64, and when it is made."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
import torch
import torch.nn.functional as F

import irc
from irc.dialects import loop
from irc.frontend import backend
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import bf16, f32
from irc.options.options import from_mapping
from irc.passes.kernel.plan.plan import flatten
from irc.passes.loop.expand_attention import AttentionShape, ExpandAttention, parts_of
from irc.pipeline import pipeline_text
from irc.target import Target
from irc.target.attribute import carry
from tests.passes.frozen.frozen_convolutions import threads
from tests.target.machines import MACHINES

FORCED = {"passes": {"before:expand-attention": "expand-attention{force=true}"}}
#: Scores of 64 queries and keys are blocks then, of two vectors' rows at least.
BLOCKS = {"passes": {"before:expand-attention": "expand-attention{force=true core_bytes=250000}"}}
SMALL = {"passes": {"before:expand-attention": "expand-attention{force=true core_bytes=44000}"}}
WALK = {"passes": {"before:expand-attention": "expand-attention{walk=true}"}}


def heads(batch: int, count: int, length: int, width: int, dtype: Any) -> torch.Tensor:
    return torch.randn(batch, length, count, width).to(dtype).transpose(1, 2)


def attend(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> Any:
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, enable_gqa=grouped)


def check(
    q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, options: Any = None,
    own: bool = True,
) -> None:  # fmt: skip
    torch._dynamo.reset()

    def function(q: Any, k: Any, v: Any, *mask: Any) -> Any:
        return attend(q, k, v, mask[0] if mask else None, causal)

    given = (q, k, v) if mask is None else (q, k, v, mask)
    with torch.no_grad(), backend.recording() as programs:
        compiled = torch.compile(
            function, backend="irc", dynamic=False, options=FORCED if options is None else options
        )
        found = compiled(*given)
        with threads(3):
            again = compiled(*given)
        eager = function(*given)
    assert (programs[0].executable.info.metrics["aten_calls"] == 0) == own
    assert found.stride() == eager.stride() and found.dtype == eager.dtype
    assert torch.equal(found, again) or found.isnan().any()
    wide = [x.double() if x.is_floating_point() else x for x in given]
    exact = function(*wide)
    # A row that sees nothing is 0, as ATen's.
    exact = torch.where(eager == 0, 0.0, exact)
    close = 5e-6 if q.dtype is torch.float32 else 2e-2
    torch.testing.assert_close(found.double(), exact, atol=close, rtol=close, equal_nan=True)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("options", (FORCED, SMALL, WALK), ids=("whole", "blocks", "walk"))
@pytest.mark.parametrize("mask", ("", "causal", "bool", "added", "rows"))
@pytest.mark.parametrize("sizes", ((2, 3, 64, 64, 32), (1, 2, 67, 45, 17), (2, 1, 33, 79, 80)))
def test_values(sizes: Any, mask: str, options: Any, dtype: Any) -> None:
    torch.manual_seed(0)
    batch, count, queries, keys, width = sizes
    q = heads(batch, count, queries, width, dtype)
    k, v = (heads(batch, count, keys, width, dtype) for _ in range(2))
    given = None
    if mask == "bool":
        given = torch.rand(batch, 1, queries, keys) > 0.4
        given[:, :, 1] = False
    elif mask == "added":
        given = torch.randn(batch, 1, 1, keys).to(dtype)
    elif mask == "rows":
        given = torch.randn(queries, keys).to(dtype)
        given[2] = -math.inf
        given[3, 4] = math.nan
    check(q, k, v, given, mask == "causal", options)


@pytest.mark.parametrize("options", (FORCED, WALK), ids=("whole", "walk"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_operands_as_they_lie(dtype: Any, options: Any) -> None:
    """Parts of one projection, keys of several heads, an expanded mask."""
    torch.manual_seed(0)
    parts = torch.randn(2, 40, 8 * 32).to(dtype)
    q, k, v = parts.split((4 * 32, 2 * 32, 2 * 32), -1)
    q = q.view(2, 40, 4, 32).transpose(1, 2)
    k, v = (x.view(2, 40, 2, 32).transpose(1, 2) for x in (k, v))
    mask = (torch.rand(2, 1, 1, 40) > 0.3).expand(2, 4, 40, 40)
    check(q, k, v, mask, options=options)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16))
@pytest.mark.parametrize("causal", (False, True))
def test_long_rows_walk_over_the_keys(causal: bool, dtype: Any) -> None:
    """Several blocks of rows and steps of keys, neither of which are whole."""
    torch.manual_seed(0)
    q = heads(1, 4, 205, 40, dtype)
    k, v = (heads(1, 2, 610, 40, dtype) for _ in range(2))
    check(q, k, v, causal=causal, options=WALK)


def test_a_processors_figures_say_who_walks() -> None:
    def told(size: int, dtype: Any, figures: str, causal: bool = False) -> str:
        q = torch.empty(1, 4, size, 32, dtype=dtype)
        module = irc.trace(lambda q: attend(q, q, q, None, causal), (q,))
        target = Target.named(f"#irc.target<avx2, threads = 2, {figures}>")
        context = PassContext(target=target, remarks=["expand-attention"])
        text = pipeline_text(target, from_mapping({}), False)
        PassManager.parse(text.partition(",expand-streams")[0]).run(module, context)
        return " ".join(map(str, context.remarks))

    walks = "own_walks = [120, 105], attention_blocks = [1, 1]"
    assert "rows walk over the keys" in told(700, torch.float32, walks)
    assert "rows walk over the keys" in told(700, torch.float32, walks, causal=True)
    assert "rows walk over the keys" in told(700, torch.bfloat16, walks)
    assert "rows walk over the keys" in told(700, torch.float16, walks)
    assert "stays the library's" in told(700, torch.bfloat16, "own_walks = [120, 100]")
    assert "stays the library's" in told(90, torch.bfloat16, walks)  # near
    both = "own_walks = [120, 90], own_attention = 120"
    assert "blocks of a head: 1 of" in told(200, torch.float32, both)


@pytest.mark.parametrize("least", (15, 16))
def test_fewer_than_the_lanes_of_a_vector_are_the_librarys(least: int) -> None:
    lanes = Target.host().vector_bits // 32
    size = least * lanes // 16
    q = heads(1, 2, size, 32, torch.float32)
    check(q, q, q, own=size >= lanes)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("queries, keys", ((300, 300), (197, 197), (300, 170), (130, 290)))
def test_rows_that_see_keys_up_to_their_own_leave_the_others_out(
    queries: int, keys: int, dtype: Any
) -> None:
    """Some rows after the other, all into one array."""
    torch.manual_seed(0)
    q = heads(2, 3, queries, 48, dtype)
    k, v = (heads(2, 3, keys, 48, dtype) for _ in range(2))
    check(q, k, v, causal=True)
    shape = AttentionShape(2, 3, 3, queries, keys, 48, queries, f32, 1.0, causal=True)
    parts = parts_of(shape, 1 << 19, Target.host())
    assert len(parts) > 1 and [p.first for p in parts][0] == 0
    assert sum(p.queries for p in parts) == queries
    assert all(p.keys == min(keys, p.first + p.queries) for p in parts)


@pytest.mark.parametrize("change, reason", [
    ({}, ""), ({"rows": 64}, "are 2 blocks"), ({"heads": 1, "key_heads": 1}, "leave some of 4"),
    ({"element": bf16}, "90 % of its speed"), ({"causal": True, "rows": 64}, ""),
    ({"causal": True, "rows": 32}, "are 4 blocks"), ({"causal": True}, ""),
])  # fmt: skip
def test_who_computes_it(change: Any, reason: str) -> None:
    target = Target.named("#irc.target<avx2, threads = 4, own_attention = 120, "
                          "own_pair_attention = 90, attention_blocks = [1, 3]>")  # fmt: skip
    shape = AttentionShape(2, 2, 2, 128, 128, 64, 128, f32, 0.125, False)
    told = ExpandAttention().objection(attrs.evolve(shape, **change), target)
    assert (reason in told) if reason else not told
    assert not ExpandAttention(force=True).objection(attrs.evolve(shape, **change), target)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("queries, keys", ((300, 300), (260, 400), (450, 197), (257, 257)))
def test_rows_that_see_keys_up_to_their_own_have_blocks(
    queries: int, keys: int, dtype: Any
) -> None:
    """Each part as many, of which the last ones of some have no rows; heads of keys are shared."""
    torch.manual_seed(0)
    q = heads(2, 4, queries, 48, dtype)
    k, v = (heads(2, 2, keys, 48, dtype) for _ in range(2))
    check(q, k, v, causal=True, options=BLOCKS)
    shape = AttentionShape(2, 4, 2, queries, keys, 48, 64, f32, 1.0, causal=True)
    parts = parts_of(shape, 1 << 17, Target.named("avx2"))
    assert len(parts) > 1 and len({part.rows for part in parts}) == 1
    assert parts[0].blocks > 1 and max(part.blocks for part in parts) == parts[0].blocks
    assert all(part.rows * part.keys * 8 <= 1 << 17 for part in parts)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_blocks_read_keys_and_values_that_are_laid_out_once(dtype: Any) -> None:
    """Columns that fill no panel, and terms that fill no group; without blocks nothing is made."""
    torch.manual_seed(0)
    q = heads(1, 2, 200, 19, dtype)
    k, v = (heads(1, 2, 203, 19, dtype) for _ in range(2))
    check(q, k, v, options=BLOCKS)
    module = irc.trace(attend, (q, k, v))
    target = Target.named("avx2")
    for cache, computes in ((1 << 30, 0), (1 << 17, 1), (1 << 18, 2)):
        lowered, context = module.clone(), PassContext(target=target)
        expand = f"expand-attention{{force=true core_bytes={cache}}}"
        text = pipeline_text(target, from_mapping({"passes": {"before:expand-attention": expand}}),
                             False)  # fmt: skip
        PassManager.parse(text.partition(",form-kernels")[0], verify="each").run(lowered, context)
        (group,) = (op for op in lowered.walk() if isinstance(op, loop.GroupOp))
        panels = [v for v in flatten(group).inputs if len(v.type.shape) == 6]
        assert len(panels) == computes


@pytest.mark.parametrize("causal", (False, True))
def test_keys_that_are_the_values_are_laid_out_for_both(causal: bool) -> None:
    """As many columns as terms, of one tensor in panels of one width."""
    torch.manual_seed(0)
    q, both = heads(1, 2, 300, 32, torch.float32), heads(1, 2, 300, 32, torch.float32)
    cache = {"before:expand-attention": "expand-attention{force=true core_bytes=400000}"}
    check(q, both, both, causal=causal, options={"passes": cache})


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("name", ("zen 4", "tiles"))
def test_blocks_of_other_processors_give_the_values(name: str, causal: bool) -> None:
    """Pairs of terms side by side in panels, and whole tiles: what is run here is the kernels'
    text, by the interpreter."""
    torch.manual_seed(0)
    target = attrs.evolve(MACHINES[name], threads=1)
    q = heads(1, 1, 140, 19, torch.bfloat16)
    k, v = (heads(1, 1, 41, 19, torch.bfloat16) for _ in range(2))
    module = irc.trace(lambda q, k, v: attend(q, k, v, None, causal), (q, k, v))
    carry(module, target)
    expand = "expand-attention{force=true core_bytes=30000}"
    text = pipeline_text(target, from_mapping({"passes": {"before:expand-attention": expand}}),
                         False)  # fmt: skip
    context = PassContext(target=target)
    PassManager.parse(text.partition(",join-launches")[0], verify="each").run(module, context)
    (found,) = irc.run(module, q, k, v)
    exact = attend(q.double(), k.double(), v.double(), None, causal)
    torch.testing.assert_close(found.double(), exact, atol=2e-2, rtol=2e-2)


def test_infinite_and_nan_elements() -> None:
    torch.manual_seed(0)
    q, k, v = (heads(1, 2, 32, 16, torch.float32) for _ in range(3))
    q[0, 0, 3, 2] = math.nan
    v[0, 1, 5, 1] = math.inf
    check(q, k, v)
