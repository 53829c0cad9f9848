"""Attention whose scores a function changes: one kernel with both products, in Triton's interpreter
and on a GPU, forward and backward, with values as near to float64 as eager mode's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn.attention import flex_attention as module
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from irc.dialects import kernel, loop
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.passes.graph import stream_scores
from tests.conformance.gpu_programs import interpreted

PROGRAMS: list[Operation] = []
LOOPS: list[Operation] = []
Attention = Callable[..., torch.Tensor]


@register_pass
class KeepProgram(Pass):
    """Keeps a copy of a program, for a test to look at.

    Before:
        func.func @main() { ... }
    After:
        func.func @main() { ... }
    """

    name = "test-keep-program"
    summary = "keep a copy of a program"
    anchor = "builtin.module"

    def run(self, op: Operation, context: PassContext) -> None:
        PROGRAMS.append(op.clone())


@register_pass
class KeepLoops(KeepProgram):
    """Keeps a copy of a program of loops.

    Before:
        func.func @main() { ... }
    After:
        func.func @main() { ... }
    """

    name = "test-keep-loops"

    def run(self, op: Operation, context: PassContext) -> None:
        LOOPS.append(op.clone())


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # torch's front end refuses gradients of tensors on a CPU, where the interpreter's are.
    monkeypatch.setattr(module, "_validate_device", lambda *tensors: None)
    PROGRAMS.clear()
    LOOPS.clear()
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def capped(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return 20 * torch.tanh(score / 20)


def slopes(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return score + (k - q) * 0.01 * (h + 1)


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & (q - k < 20)


def ahead(b: Any, h: Any, q: Any, k: Any) -> Any:
    """What is behind the last key would be seen, too."""
    return k >= q


def late(b: Any, h: Any, q: Any, k: Any) -> Any:
    """The first queries see nothing."""
    return q >= k + 40


def blocks(function: Any, q: Any, k: Any, size: int = 32) -> BlockMask:
    sizes = q.shape[-2], k.shape[-2]
    return create_block_mask(function, None, None, *sizes, device=q.device, BLOCK_SIZE=size)


def masked(function: Any, **keywords: Any) -> Attention:
    return lambda q, k, v: flex_attention(q, k, v, block_mask=blocks(function, q, k), **keywords)


def written(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(torch.tanh(q @ k.transpose(-1, -2) / 8), -1) @ v


def biased(q: Any, k: Any, v: Any) -> Any:
    bias = torch.linspace(-1, 1, k.shape[-2], device=k.device)
    return torch.softmax((q @ k.transpose(-1, -2)).float() * 0.3 + bias, -1).to(q.dtype) @ v


def hidden(q: Any, k: Any, v: Any) -> Any:
    """NaN where nothing is seen."""
    places = [torch.arange(x.shape[-2], device=x.device) for x in (q, k)]
    seen = places[0][:, None] >= places[1] + 2
    return torch.softmax(torch.where(seen, q @ k.transpose(-1, -2), -math.inf), -1) @ v


CASES: dict[str, Attention] = {
    "plain": lambda q, k, v: flex_attention(q, k, v),
    "capped": lambda q, k, v: flex_attention(q, k, v, score_mod=capped),
    "slopes": lambda q, k, v: flex_attention(q, k, v, score_mod=slopes, scale=0.3),
    "causal": masked(causal),
    "window": masked(window, score_mod=slopes),
    "late": masked(late),
    "ahead": masked(ahead),
    "grouped": lambda q, k, v: flex_attention(q, k[:, ::2], v[:, ::2], enable_gqa=True),
    "written": written,
    "biased": biased,
    "hidden": hidden,
}
SHAPES = {"whole": (2, 2, 64, 64, 32), "odd": (1, 4, 70, 45, 24)}


def run(function: Attention, arrays: Any, gradient: Any = None) -> list[torch.Tensor]:
    """The result, and with a gradient of it those of the arrays."""
    if gradient is None:
        return [function(*arrays)]
    arrays = [x.detach().clone().requires_grad_() for x in arrays]
    y = function(*arrays)
    return [y, *torch.autograd.grad(y, arrays, gradient.to(y.dtype))]


def compiled(function: Attention, target: str = "triton") -> Attention:
    options: dict[str, Any] = {"passes": {
        "after:stream-products": "test-keep-loops", "after:form-kernels": "test-keep-program"}}
    options |= {"target": target, "pattern_matcher": False} if target else {}
    return torch.compile(function, backend="irc", dynamic=False, options=options)


def compare(
    function: Attention, got: Any, arrays: Any, gradient: Any = None, times: int = 2
) -> None:
    """As near to float64 as twice eager mode's error (or more times that), or two bits of the
    element's."""
    exact = run(function, [x.double() for x in arrays], gradient)
    eager = run(function, arrays, gradient)
    for one, reference, other in zip(got, exact, eager, strict=True):
        assert one.dtype is other.dtype and one.stride() == other.stride()
        assert torch.equal(one.isnan(), other.isnan())
        size = max(1.0, reference.nan_to_num(0).abs().max().item())
        bits = torch.finfo(one.dtype).eps * 4 * size
        gaps = [(x.double() - reference).nan_to_num(0).abs().max().item() for x in (one, other)]
        assert gaps[0] <= max(times * gaps[1], bits)


def streamed_kernels() -> int:
    """How many of the programs' kernels have several products."""
    return sum(
        sum(isinstance(inner, kernel.DotOp) for inner in op.walk()) > 1
        for program in PROGRAMS for op in program.walk() if isinstance(op, kernel.KernelFuncOp)
    )  # fmt: skip


def loops() -> int:
    """How many loops the kernels with several products have."""
    return sum(
        isinstance(inner, kernel.ForOp)
        for program in PROGRAMS for op in program.walk() if isinstance(op, kernel.KernelFuncOp)
        and sum(isinstance(each, kernel.DotOp) for each in op.walk()) > 1 for inner in op.walk()
    )  # fmt: skip


def arrays_of(shape: tuple[int, ...], name: str, dtype: Any, device: str = "cpu") -> list[Any]:
    batch, heads, rows, columns, width = shape
    columns = rows if name in ("causal", "window", "late", "ahead", "hidden") else columns
    return [torch.randn(batch, heads, n, width, device=device).to(dtype)
            for n in (rows, columns, columns)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_computes_both_products(name: str, shape: tuple[int, ...]) -> None:
    arrays = arrays_of(shape, name, torch.float16)
    with interpreted():
        got = run(compiled(CASES[name]), arrays)
    compare(CASES[name], got, arrays)
    assert streamed_kernels() == 1
    # Over blocks that are whole, and over those whose mask is asked.
    assert loops() == (2 if name in ("causal", "window", "late", "ahead") else 1)


def seen(rows: int, columns: int, heads: int | None = None) -> dict[str, BlockMask | None]:
    """Block masks of few rows: of all heads, each head's own, and one that leaves nothing."""
    functions: dict[str, Any] = {
        "first": lambda b, h, q, k: k <= q + columns * 2 // 3,
        "by head": lambda b, h, q, k: (k - q) % (40 * (h + 1)) < 20,
        "nothing": lambda b, h, q, k: k < 0,
    }
    each = {name: create_block_mask(f, None, heads if name == "by head" else None, rows, columns,
                                    device="cpu", BLOCK_SIZE=32)
            for name, f in functions.items()}  # fmt: skip
    return {"all": None, **each}


PARTS = (
    "#irc.target<sm_90, short_stream = 64, stream_part = 32, stream_programs = 64, "
    "library_stream = 256>"
)
FEW = {"a query of 8 heads": (1, 250, 32, 8, 2), "3 of each": (3, 200, 24, 4, 4),
       "shared by all": (1, 300, 16, 4, 1), "5 of 6": (5, 320, 16, 6, 2)}  # fmt: skip


@pytest.mark.parametrize("mask", seen(1, 64))
@pytest.mark.parametrize("sizes", FEW.values(), ids=FEW)
def test_few_rows_of_many_keys(sizes: tuple[int, ...], mask: str) -> None:
    """Heads that share keys are rows of a tile, and parts of the keys are combined."""
    rows, columns, width, heads, shared = sizes
    block = seen(rows, columns, heads)[mask]
    score = {"all": slopes, "first": capped}.get(mask)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score, block, enable_gqa=heads != shared)

    arrays = [torch.randn(2, h, n, width).to(torch.bfloat16)
              for h, n in ((heads, rows), (shared, columns), (shared, columns))]  # fmt: skip
    with interpreted():
        got = run(compiled(attend, PARTS), arrays)
    compare(attend, got, arrays)
    assert streamed_kernels() == 1 and loops() == (2 if "first" in mask or "by" in mask else 1)
    products = [op for op in LOOPS[0].walk() if isinstance(op, loop.ComputeOp) and op.schedule]
    (group,) = {op.parent_op for op in products}
    assert isinstance(group, loop.GroupOp)
    extents = [axis.extent for axis in group.axis_list]
    assert math.prod(extents) >= 4 * heads * rows


@pytest.mark.parametrize("name", ["slopes", "causal"])
def test_symbolic_sizes(name: str) -> None:
    """Programs of any length; torch guards that all blocks are whole."""
    options = {"target": "triton", "passes": {"after:form-kernels": "test-keep-program"}}
    function = torch.compile(CASES[name], backend="irc", dynamic=True, options=options)
    for rows, columns in ((64, 96), (70, 45), (33, 100)):
        arrays = arrays_of((2, 2, rows, columns, 32), name, torch.float16)
        with interpreted():
            got = run(function, arrays)
        compare(CASES[name], got, arrays)
    assert len(PROGRAMS) < 3 and streamed_kernels() == len(PROGRAMS)
    assert loops() == (2 if name == "causal" else 1) * len(PROGRAMS)


def test_bf16_and_infinities() -> None:
    arrays = arrays_of(SHAPES["odd"], "written", torch.bfloat16)
    arrays[0][0, 0, 0, 0] = math.inf
    with interpreted():
        got = run(compiled(written), arrays)
    compare(written, got, arrays)
    assert streamed_kernels() == 1


@pytest.mark.parametrize(
    "name", ["plain", "capped", "causal", "window", "late", "ahead", "grouped"]
)
def test_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three kernels: the forward's, and those of queries' and of keys' and values' gradients."""
    why_not = stream_scores.why_not
    monkeypatch.setattr(stream_scores, "why_not", lambda group, fewest: why_not(group, 0))
    arrays = arrays_of((1, 2, 96, 64, 32), name, torch.float16)
    gradient = torch.randn_like(arrays[0])
    with interpreted():
        got = run(compiled(CASES[name]), arrays, gradient)
    compare(CASES[name], got, arrays, gradient)
    assert streamed_kernels() == 3


def test_logarithms_of_sums() -> None:
    def both(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, block_mask=blocks(late, q, k), return_lse=True)

    arrays = arrays_of((1, 2, 96, 64, 32), "late", torch.float16)
    with interpreted():
        y, logarithms = compiled(both)(*arrays)
    eager = both(*[x.double() for x in arrays])
    assert torch.allclose(logarithms.double(), eager[1], atol=2e-3)
    assert logarithms[..., :40].eq(-math.inf).all()
    assert torch.allclose(y.double(), eager[0], atol=5e-3)
    assert streamed_kernels() == 1


def test_lists_alone_say_what_is_seen() -> None:
    """Blocks that no function of scores leaves out."""
    lists = torch.tensor([[[[0, 1], [1, 0], [0, 0]]]], dtype=torch.int32)
    counts = torch.tensor([[[1, 1, 2]]], dtype=torch.int32)
    lists[0, 0, 2] = torch.tensor([1, 0])
    mask = BlockMask.from_kv_blocks(counts, lists, BLOCK_SIZE=32, seq_lengths=(96, 64))
    seen = torch.zeros(96, 64, dtype=torch.bool)
    seen[:32, :32] = seen[32:64, 32:] = seen[64:] = True
    q, k, v = arrays_of((1, 2, 96, 64, 16), "plain", torch.float16)
    with interpreted():
        y = compiled(lambda q, k, v: flex_attention(q, k, v, block_mask=mask))(q, k, v)
    reference = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=seen)  # fmt: skip
    assert torch.allclose(y.double(), reference, atol=5e-3)


def with_scores(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2)
    return torch.softmax(scores, -1) @ v, scores


def of_columns(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(q @ k.transpose(-1, -2), -2) @ v


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(with_scores, torch.float16), (of_columns, torch.float16), (written, torch.float32)],
    ids=["the scores are asked for", "of columns", "f32"],
)
def test_what_is_not_streamed_is_right(function: Any, dtype: Any) -> None:
    arrays = arrays_of((1, 2, 40, 40, 16), "plain", dtype)
    with interpreted():
        got = compiled(function)(*arrays)
    exact = function(*[x.double() for x in arrays])
    pairs = [x if isinstance(x, tuple) else (x,) for x in (got, exact)]
    for one, other in zip(*pairs, strict=True):
        assert torch.allclose(one.double(), other.double(), atol=2e-2, rtol=2e-2)
    assert streamed_kernels() == 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_on_a_gpu(name: str, dtype: Any) -> None:
    arrays = arrays_of((2, 4, 384, 384, 64), name, dtype, "cuda")
    differentiable = name in ("plain", "capped", "slopes", "causal", "window", "late", "ahead",
                              "grouped")
    gradient = torch.randn_like(arrays[0]) if differentiable else None
    got = run(compiled(CASES[name], ""), arrays, gradient)
    compare(CASES[name], got, arrays, gradient)
    if name not in ("biased", "hidden"):  # which may be the library's
        assert streamed_kernels() == (3 if differentiable else 1)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [16, 40, 64, 128, 200, 256])
def test_widths_on_a_gpu(width: int) -> None:
    shape = (1, 2, 520, 1040, width)
    arrays = arrays_of(shape, "slopes", torch.bfloat16, "cuda")
    gradient = torch.randn_like(arrays[0])
    got = run(compiled(CASES["slopes"], ""), arrays, gradient)
    compare(CASES["slopes"], got, arrays, gradient)
    assert streamed_kernels() == 3


def test_attention_of_attention() -> None:
    """Each is a kernel, though nothing but maps stands between."""
    def twice(q: Any, k: Any, v: Any) -> Any:
        return written(written(q, k, v).tanh(), k, v)

    arrays = arrays_of((1, 2, 40, 40, 16), "plain", torch.float16)
    with interpreted():
        got = run(compiled(twice), arrays)
    compare(twice, got, arrays)
    assert streamed_kernels() == 2


ATEN = torch.ops.aten


def spread_heads(x: Any, heads: int) -> Any:
    batch, own, keys, width = x.shape
    wide = x[:, :, None].expand(batch, own, heads // own, keys, width)
    return wide.reshape(batch, heads, keys, width)


def decode(q: Any, k: Any, v: Any, bias: Any = None) -> Any:
    """A step of decoding, by the operators that torch traces of it on a GPU."""
    k, v = (spread_heads(x, q.shape[1]) for x in (k, v))
    if q.dtype is torch.float64 or q.device.type == "cpu" and not torch.compiler.is_compiling():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, bias)
    if bias is None:
        return ATEN._scaled_dot_product_flash_attention.default(q, k, v)[0]
    bias = bias.expand(*q.shape[:-1], k.shape[2])
    return ATEN._scaled_dot_product_efficient_attention.default(q, k, v, bias, False)[0]


@pytest.mark.parametrize(
    ("shared", "has_bias", "dynamic"),
    [(2, False, False), (2, True, False), (2, False, True), (2, True, True),
     # Whether keys are many is known of a number alone, where heads share none.
     (6, False, False), (6, True, False)],
)  # fmt: skip
def test_a_step_of_decoding(shared: int, has_bias: bool, dynamic: bool) -> None:
    """Of heads that share keys, or with a bias: both products in a kernel that reads each key once,
    keys in parts."""
    options = {"passes": {"after:form-kernels": "test-keep-program"}, "target": PARTS}
    function = torch.compile(decode, backend="irc", dynamic=None if dynamic else False,
                             options=options)  # fmt: skip
    for rows, keys in ((1, 300), (1, 350)) if dynamic else ((1, 300),):
        arrays = [torch.randn(2, h, n, 24).to(torch.bfloat16)
                  for h, n in ((6, rows), (shared, keys), (shared, keys))]  # fmt: skip
        if has_bias:
            hidden_keys = torch.rand(2, 1, 1, keys) < 0.3
            hidden_keys[1] = True
            arrays.append(torch.zeros(2, 1, 1, keys).masked_fill(hidden_keys, -math.inf).bfloat16())
        if dynamic:
            for array in arrays[1:]:
                torch._dynamo.mark_dynamic(array, 3 if array.shape[-1] == keys else 2)
        with interpreted():
            got = [function(*arrays)]
        exact, eager = (decode(*[x.to(t) for x in arrays]) for t in (torch.float64, torch.bfloat16))
        if has_bias:
            exact[1] = eager[1] = 0
        gaps = [(x.double() - exact).abs().max().item() for x in (got[0], eager)]
        assert gaps[0] <= 2 * gaps[1] + 4e-3 and got[0].dtype is torch.bfloat16
    assert len(PROGRAMS) == 1 and streamed_kernels() == 1


@pytest.mark.gpu
@pytest.mark.parametrize("has_mask", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("shared", [2, 8])
def test_a_step_of_decoding_on_a_gpu(shared: int, has_mask: bool) -> None:
    """As eager mode has it, by whatever kernel; a row that sees no key, too."""
    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        k, v = (spread_heads(x, q.shape[1]) for x in (k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)

    arrays = [torch.randn(2, h, n, 64, device="cuda", dtype=torch.bfloat16)
              for h, n in ((8, 1), (shared, 4096), (shared, 4096))]  # fmt: skip
    mask = torch.rand(2, 1, 1, 4096, device="cuda") < 0.7 if has_mask else None
    if mask is not None:
        mask[1] = False
    options = {"passes": {"after:form-kernels": "test-keep-program"}}
    got = torch.compile(attend, backend="irc", dynamic=False, options=options)(*arrays, mask)
    eager = attend(*arrays, mask)
    exact = attend(*[x.double() for x in arrays], mask)
    assert got.isfinite().all() and torch.equal(got.isnan(), eager.isnan())
    gaps = [(x.double() - exact).nan_to_num(0).abs().max().item() for x in (got, eager)]
    assert gaps[0] <= 2 * gaps[1] + 1e-3
    assert streamed_kernels() == 1
