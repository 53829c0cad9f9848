"""Kernels of streamed products: equal to float64 in irc's interpreter of kernels, by tiles of any
size; what makes a group one; and the figures that its tiles come of."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import irc
from irc.dialects import kernel, loop
from irc.interp.core import run
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassContext, PassManager
from irc.options.options import DEFAULT
from irc.passes.kernel.gpu.plan import plan_for_gpu
from irc.passes.kernel.gpu.stream_space import limit_of, stream_space
from irc.passes.kernel.plan.plan import flatten
from irc.pipeline import stages
from irc.target.gpu import GpuFeatures

GUARD = (
    "%low = arith.constant 0xFF800000 : f32 %none = arith.cmpf oeq, %h, %low : f32 "
    "%zero = arith.constant 0.0 : f32 %top = arith.select %none, %zero, %h : f32"
)


def attention(
    m: int, n: int, d: int, e: int, score: str, guard: str = GUARD, top: str = "%top",
    schedule: str = "", element: str = "%g",
) -> str:  # fmt: skip
    """softmax(score(q @ k^T)) @ v of one batch of two, as loops. score: from %s to %x."""
    def array(*sizes: int, element: str = "f32") -> str:
        strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        return f"tensor<{list(sizes)} x {element}, strides {strides}>"

    q, k, v = (array(2, *s, element="bf16") for s in ((m, d), (n, d), (n, e)))
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {v}) -> ({array(2, m, e)}, {array(2, m)}) attributes {{level = "loop"}} {{
      %y, %l = loop.group (i: 2, m: {m}) {schedule} {{
        %scores = loop.compute par(i: 2, m: {m}, n: {n}) red(d: {d}) -> reduce(sum, f32) {{
          %a = loop.read %q[i, m, d] : bf16
          %b = arith.extf %a : bf16 to f32
          %c = loop.read %k[i, n, d] : bf16
          %e = arith.extf %c : bf16 to f32
          %f = arith.mulf %b, %e : f32
          loop.yield %f }} : {array(2, m, n)}
        %xs = loop.compute par(i: 2, m: {m}, n: {n}) -> map {{
          %s = loop.read %scores[i, m, n] : f32
          {score}
          loop.yield %x }} : {array(2, m, n)}
        %most = loop.compute par(i: 2, m: {m}) red(n: {n}) -> reduce(max, f32) {{
          %g = loop.read %xs[i, m, n] : f32
          loop.yield %g }} : {array(2, m)}
        %powers = loop.compute par(i: 2, m: {m}, n: {n}) -> map {{
          %g = loop.read %xs[i, m, n] : f32
          %h = loop.read %most[i, m] : f32
          {guard}
          %gap = arith.subf {element}, {top} : f32
          %p = math.exp %gap {{nonpositive}} : f32
          loop.yield %p }} : {array(2, m, n)}
        %total = loop.compute par(i: 2, m: {m}) red(n: {n}) -> reduce(sum, f32) {{
          %p = loop.read %powers[i, m, n] : f32
          loop.yield %p }} : {array(2, m)}
        %sums = loop.compute par(i: 2, m: {m}, e: {e}) red(n: {n}) -> reduce(sum, f32) {{
          %p = loop.read %powers[i, m, n] : f32
          %r = arith.truncf %p : f32 to bf16
          %t = arith.extf %r : bf16 to f32
          %u = loop.read %v[i, n, e] : bf16
          %w = arith.extf %u : bf16 to f32
          %z = arith.mulf %t, %w : f32
          loop.yield %z }} : {array(2, m, e)}
        %quotient = loop.compute par(i: 2, m: {m}, e: {e}) -> map {{
          %o = loop.read %sums[i, m, e] : f32
          %t = loop.read %total[i, m] : f32
          %y = arith.divf %o, %t : f32
          loop.yield %y }} : {array(2, m, e)}
        %log = loop.compute par(i: 2, m: {m}) -> map {{
          %t = loop.read %total[i, m] : f32
          %h = loop.read %most[i, m] : f32
          %j = math.log %t : f32
          %l = arith.addf %j, %h : f32
          loop.yield %l }} : {array(2, m)}
        loop.yield %quotient, %log }} : {array(2, m, e)}, {array(2, m)}
      func.return %y, %l : {array(2, m, e)}, {array(2, m)} }}"""  # noqa: E501


SCALED = "%scale = arith.constant 0.25 : f32 %x = arith.mulf %s, %scale : f32"
CAPPED = (
    "%ten = arith.constant 10.0 : f32 %a = arith.divf %s, %ten : f32 %b = math.tanh %a : f32 "
    "%x = arith.mulf %b, %ten : f32"
)
CAUSAL = (
    "%i = loop.index {expression = #sym<m>} : index %j = loop.index {expression = #sym<n>} : index "
    "%c = arith.cmpi sge, %i, %j : index %w = arith.constant 0xFF800000 : f32 "
    "%scale = arith.constant 0.25 : f32 %a = arith.mulf %s, %scale : f32 "
    "%x = arith.select %c, %a, %w : f32"
)
#: Nothing is seen by the first rows, for more than a step of the stream.
LATE = CAUSAL.replace("arith.cmpi sge, %i, %j", "arith.cmpi slt, %i, %j")


def expected(q: Any, k: Any, v: Any, score: str) -> tuple[torch.Tensor, torch.Tensor]:
    q, k, v = (x.double() for x in (q, k, v))
    s = q @ k.transpose(-1, -2)
    rows, columns = torch.arange(s.shape[1])[:, None], torch.arange(s.shape[2])
    if score == CAPPED:
        s = 10 * torch.tanh(s / 10)
    else:
        s = s * 0.25
    if score == CAUSAL:
        s = s.masked_fill(rows < columns, -math.inf)
    if score == LATE:
        s = s.masked_fill(rows >= columns, -math.inf)
    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)


def formed(text: str, target: str = "sm_90") -> Any:
    """A program of loops with its kernel."""
    module = irc.parse(text)
    PassManager.parse("schedule{target=gpu},form-kernels,bufferize", verify="each").run(
        module, PassContext(target=target))  # fmt: skip
    return module


@pytest.mark.parametrize("score", [SCALED, CAPPED, CAUSAL, LATE],
                         ids=["scaled", "capped", "causal", "late"])  # fmt: skip
@pytest.mark.parametrize(
    ("sizes", "entries"),
    [((40, 70, 16, 24), ""), ((16, 16, 16, 16), "stream_m = 16, stream_n = 16"),
     ((33, 100, 40, 16), "stream_m = 16, stream_n = 32"), ((1, 20, 8, 8), "")],
)  # fmt: skip
def test_a_kernel_has_the_values_of_its_loops(
    score: str, sizes: tuple[int, int, int, int], entries: str
) -> None:
    m, n, d, e = sizes
    schedule = f"schedule #loop.schedule<gpu, {entries}>" if entries else ""
    module = formed(attention(*sizes, score, schedule=schedule))
    kernels = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert len(kernels) == 1
    assert sum(isinstance(op, kernel.DotOp) for op in kernels[0].walk()) == 2
    torch.manual_seed(0)
    arrays = [torch.randn(2, *s).bfloat16() for s in ((m, d), (n, d), (n, e))]
    got = run(module, *arrays)
    for one, other in zip(got, expected(*arrays, score), strict=True):
        assert torch.equal(one.isnan(), other.isnan())
        gap = (one.double() - other).nan_to_num(0, 0, 0).abs().max()
        assert gap < 2e-2 * max(1, other.nan_to_num(0, 0, 0).abs().max())


def test_infinities_and_nan_are_where_eager_has_them() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, s, 16).bfloat16() for s in (20, 40, 40))
    q[0, 0, 0], q[0, 1, 0], q[0, 2] = math.inf, math.nan, 0
    k[1, 3, 0], v[1, 5, 2] = -math.inf, math.inf
    y, _ = run(formed(attention(20, 40, 16, 16, SCALED)), q, k, v)
    reference = torch.softmax(q.double() @ k.double().transpose(-1, -2) * 0.25, -1) @ v.double()
    assert torch.equal(y.isnan(), reference.isnan())
    assert torch.equal(y.isinf(), reference.isinf())


def test_scores_whose_powers_no_float_has_keep_their_quotients() -> None:
    """The product with log2(e) is rounded: by much where scores are large, for all of a row."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, s, 16).bfloat16() for s in (20, 40, 40))
    y, _ = run(formed(attention(20, 40, 16, 16, SCALED)), q * 1024, k * 64, v)
    reference, _ = expected(q * 1024, k * 64, v, SCALED)
    assert torch.allclose(y.double(), reference, atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize("offset", [1000.0, -1000.0])
def test_scores_far_from_zero(offset: float) -> None:
    """Their differences count, also where powers of a score itself are infinite; and what is behind
    the last column has no such power."""
    score = f"{SCALED.replace('%x =', '%b =')} %c = arith.constant {offset} : f32 %x = arith.addf %b, %c : f32"  # noqa: E501
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, s, 16).bfloat16() for s in (20, 70, 70))
    y, logarithm = run(formed(attention(20, 70, 16, 16, score)), q, k, v)
    reference, other = expected(q, k, v, SCALED)
    assert torch.allclose(y.double(), reference, atol=2e-2)
    assert torch.allclose(logarithm.double(), other + offset, atol=1e-3)


def test_what_is_behind_the_last_column_is_nothing() -> None:
    """Its score would be 0, and its power infinite."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, s, 16).bfloat16() for s in (20, 70, 70))
    q, k = q.abs() * 20 + 20, -(k.abs() * 20 + 20)
    y, _ = run(formed(attention(20, 70, 16, 16, SCALED)), q, k, v)
    reference, _ = expected(q, k, v, SCALED)
    assert torch.allclose(y.double(), reference, atol=5e-2)


def test_the_maximum_of_nothing_is_stored_as_that() -> None:
    text = attention(20, 40, 16, 16, LATE.replace("slt", "sgt"))
    text = text.replace("loop.yield %quotient, %log }", "loop.yield %quotient, %most }")
    q, k, v = (torch.randn(2, s, 16).bfloat16() for s in (20, 40, 40))
    _, most = run(formed(text), q, k, v)
    assert most[:, 0].eq(-math.inf).all() and most[:, 1:].isfinite().all()


def space_of(text: str) -> Any:
    (group,) = [op for op in irc.parse(text).walk() if isinstance(op, loop.GroupOp)]
    return stream_space(plan_for_gpu(flatten(group)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [(("top", "%h"), "needs what is combined of the stream before all of it is"),
     (("element", "%h"), "needs what is combined of the stream before all of it is"),
     (("guard", GUARD.replace("oeq", "ole")), "needs what is combined"),
     (("score", "%z = arith.constant 2.0 : f32 %x = arith.mulf %s, %z : f32"), "")],
)  # fmt: skip
def test_what_a_stream_is(change: tuple[str, str], reason: str) -> None:
    words = {"score": SCALED, change[0]: change[1]}
    space = space_of(attention(20, 40, 16, 16, **words))
    assert reason in space if reason else not isinstance(space, str)


def test_a_stored_score_is_no_stream() -> None:
    text = attention(20, 40, 16, 16, SCALED)
    stored = "tensor<[2, 20, 40] x f32, strides [800, 40, 1]>"
    text = text.replace("loop.yield %quotient, %log } :", f"loop.yield %xs, %log }} : {stored}, #")
    text = text.split(", #")[0] + ", tensor<[2, 20] x f32, strides [20, 1]>\n" + (
        f"func.return %y, %l : {stored}, tensor<[2, 20] x f32, strides [20, 1]> }}")  # fmt: skip
    text = text.replace("-> (tensor<[2, 20, 16] x f32, strides [320, 16, 1]>", f"-> ({stored}")
    assert "stores what it has of the stream" in space_of(text)


def test_wide_heads_have_no_room() -> None:
    with pytest.raises(InvalidIR, match="no room for more than 256 terms"):
        formed(attention(20, 40, 512, 16, SCALED,
                         schedule="schedule #loop.schedule<gpu, stream_m = 16>"))  # fmt: skip


def test_small_tiles_are_refused() -> None:
    with pytest.raises(InvalidIR, match="at least 16 rows and columns"):
        formed(attention(20, 40, 16, 16, SCALED,
                         schedule="schedule #loop.schedule<gpu, stream_m = 8>"))  # fmt: skip


def entries_of(text: str, target: str) -> Any:
    module = irc.parse(text)
    PassManager.parse("schedule{target=gpu}").run(module, PassContext(target=target))
    (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    return group.attributes["schedule"].entries


def gradient(width: int) -> str:
    """One with two products of scores."""
    text = attention(40, 70, width, 24, "%x = arith.addf %s, %s : f32")
    second = text[text.index("%scores = "):text.index("%xs = ")].replace("%scores", "%others")
    return text.replace("%xs = ", second + "%xs = ", 1).replace(
        "%x = arith.addf %s, %s", "%o = loop.read %others[i, m, n] : f32 %x = arith.addf %s, %o")


def gradients(width: int) -> str:
    """One with two sums."""
    text = attention(40, 70, width, 24, "%x = arith.addf %s, %s : f32")
    second = text[text.index("%sums = "):text.index("%quotient = ")].replace("%sums", "%others")
    return text.replace("%quotient = ", second + "%quotient = ", 1).replace(
        "%y = arith.divf %o, %t",
        "%p = loop.read %others[i, m, e] : f32 %r = arith.addf %o, %p %y = arith.divf %r, %t"
        .replace("%p %y", "%p : f32 %y"))  # fmt: skip


FIGURES = {"stream_rows": ("stream_m", 16), "stream_columns": ("stream_n", 16),
           "stream_warps": ("num_warps", 2), "stream_stages": ("num_stages", 1)}  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("width", [16, 100, 200])
@pytest.mark.parametrize("kind", range(3), ids=["scores", "gradient", "gradients"])
def test_tiles_are_a_targets(kind: int, width: int, figure: str) -> None:
    text = [attention(40, 70, width, 24, SCALED), gradient(width), gradients(width)][kind]
    place = 3 * kind + [16, 100, 200].index(width)
    values = list(getattr(GpuFeatures.sm_90(), figure))
    key, value = FIGURES[figure]
    values[place] = value
    entries = entries_of(text, f"#irc.target<sm_90, {figure} = {values}>")
    assert entries.get(key) == A.IntegerAttr(value) != entries_of(text, "sm_90").get(key)


def test_steps_in_flight_have_room() -> None:
    text = attention(40, 70, 256, 256, SCALED)
    many = "#irc.target<sm_90, stream_stages = [9, 9, 9, 9, 9, 9, 9, 9, 9]>"
    assert entries_of(text, many).get("num_stages") == A.IntegerAttr(6)
    assert entries_of(text, many.replace("sm_90", "sm_80")).get("num_stages") == A.IntegerAttr(4)


def own_products(module: Any, target: str) -> int:
    """How many products of a program are irc's on a target."""
    passes = stages(target, DEFAULT)
    text = ",".join(passes[stage] for stage in ("functional", "aten-to-graph"))
    PassManager.parse(text).run(module, PassContext(target=target))
    return sum(op.name == "graph.dot_general" for op in module.walk())


def parts(target: str, keys: int = 4096) -> int:
    """How many parts the keys of a call of few rows have."""
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.tanh(q @ k.transpose(-1, -2)), -1) @ v

    q, k, v = (torch.zeros(1, 4, n, 16, dtype=torch.bfloat16) for n in (20, keys, keys))
    module = irc.trace(attend, (q, k, v))
    passes = stages(target, DEFAULT)
    names = ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop")
    text = ",".join([*(passes[name] for name in names), "inline-computes,stream-products"])
    PassManager.parse(text).run(module, PassContext(target=target))
    (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    shared = [axis.extent for axis in group.axis_list]
    assert shared[:2] == [1, 4] and shared[-1] == 20
    return shared[2] if len(shared) > 3 else 1


def test_few_rows_of_many_keys_have_parts_of_these() -> None:
    """Enough to keep a GPU busy, and of some length each."""
    assert parts("sm_90") == 16
    assert parts("#irc.target<sm_90, stream_part = 128>") == 32
    assert parts("#irc.target<sm_90, stream_programs = 16>") == 4
    assert parts("sm_90", 512) == 1
    assert parts("#irc.target<sm_90, short_stream = 256>", 512) == 2


def library_calls(keys: int, target: str, heads: int = 4) -> int:
    """How many calls of the library's attention with a bias stay, of heads that share no keys."""
    q, k, v = (torch.zeros(1, heads, n, 16, dtype=torch.bfloat16) for n in (1, keys, keys))
    bias = torch.zeros(1, heads, 1, keys, dtype=torch.bfloat16)
    attention = torch.ops.aten._scaled_dot_product_efficient_attention.default
    module = irc.trace(lambda q, k, v, bias: attention(q, k, v, bias, False)[0], (q, k, v, bias))
    passes = stages(target, DEFAULT)
    text = ",".join(passes[stage] for stage in ("functional", "aten-to-graph"))
    PassManager.parse(text).run(module, PassContext(target=target))
    return sum(op.name == "graph.call_aten" for op in module.walk())


def test_what_walks_over_many_keys_is_not_the_librarys() -> None:
    assert library_calls(4096, "sm_90") == 0
    assert library_calls(2048, "sm_90") == 1
    assert library_calls(2048, "#irc.target<sm_90, library_stream = 1024>") == 0
    assert library_calls(4096, "sm_90", heads=200) == 1
    assert library_calls(4096, "#irc.target<sm_90, stream_programs = 400>", heads=200) == 0


def test_few_scores_are_no_gradients_of_their_own() -> None:
    def product(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-1, -2)).tanh() @ v

    module = irc.trace(product, tuple(torch.zeros(4, 64, 32, dtype=torch.bfloat16) for _ in "qkv"))

    assert own_products(module.clone(), "sm_90") == 0
    assert own_products(module.clone(), "#irc.target<sm_90, streamed_scores = 1>") == 2


def test_a_stream_of_one_axis_has_no_limit() -> None:
    (group,) = [op for op in irc.parse(attention(20, 40, 16, 16, CAUSAL)).walk()
                if isinstance(op, loop.GroupOp)]  # fmt: skip
    plan = plan_for_gpu(flatten(group))
    space = stream_space(plan)
    assert not isinstance(space, str) and limit_of(plan, space) is None
