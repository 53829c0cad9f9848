"""Padding of matrix products: which, by how much, who decides, and values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

import irc
from irc.analysis.products import MatrixProduct, intensity, product_of
from irc.cache.store import DiskCache
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import pipeline_text
from irc.runtime.padded_matmul import on_target
from irc.target import Target

GRAPH = "functional,convert-aten-to-graph,canonicalize"


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def run(
    function: Callable[..., Any],
    args: Any,
    options: str = "",
    measure: Any = None,
    dynamic: bool = False,
) -> tuple[Any, PassContext]:
    module = irc.trace(function, args, dynamic=dynamic)
    context = PassContext(measure=measure)
    PassManager.parse(f"{GRAPH},pad-matmul{options}", verify="each").run(module, context)
    return module, context


def products(module: Any) -> list[tuple[tuple[Any, ...], ...]]:
    """The sizes of the operands of each call."""
    calls = [op for op in module.walk() if isinstance(op, graph.CallAten)]
    return [tuple(v.type.shape for v in c.operands) for c in calls]


def test_sizes_are_aligned_by_type() -> None:
    module, _ = run(torch.mm, (random(6, 9), random(9, 10)), "{force}")
    assert products(module) == [((8, 12), (12, 12))]
    half = (random(6, 9, dtype=torch.float16), random(9, 10, dtype=torch.float16))
    assert products(run(torch.mm, half, "{force}")[0]) == [((8, 16), (16, 16))]
    double = (random(6, 9).double(), random(9, 10).double())
    assert products(run(torch.mm, double, "{force}")[0]) == [((6, 9), (9, 10))]


def test_sizes_of_one_and_symbolic_sizes_stay() -> None:
    module, _ = run(torch.mm, (random(1, 9), random(9, 10)), "{force}")
    assert products(module) == [((1, 12), (12, 12))]
    module, _ = run(torch.mm, (random(6, 9), random(9, 10)), "{force}", dynamic=True)
    assert not [op for op in module.walk() if isinstance(op, graph.Pad)]


def test_empty_and_aligned_products_stay() -> None:
    assert products(run(torch.mm, (random(0, 9), random(9, 10)), "{force}")[0])[0][0] == (0, 9)
    _, context = run(torch.mm, (random(8, 4), random(4, 16)), "{force}")
    assert not context.statistics["pad-matmul", "padded"]


def test_only_compute_bound_products_are_padded() -> None:
    module, context = run(torch.mm, (random(64, 66), random(66, 3)))
    assert products(module) == [((64, 66), (66, 3))]
    assert "not compute-bound (3 operations a byte, 4 needed)" in context.remarks[-1].message
    assert products(run(torch.mm, (random(64, 66), random(66, 64)))[0]) == [((64, 68), (68, 64))]
    module, _ = run(torch.mm, (random(64, 66), random(66, 64)), "{balance=100}")
    assert products(module) == [((64, 66), (66, 64))]


@pytest.mark.parametrize(("speedup", "padded"), [(1.3, 1), (1.1, 0), (0.7, 0), (None, 1)])
def test_a_measurement_decides(speedup: float | None, padded: int) -> None:
    asked: list[MatrixProduct] = []

    def measure(product: MatrixProduct) -> float | None:
        asked.append(product)
        return speedup

    args = (random(64, 66), random(60, 66))
    _, context = run(lambda a, b: a @ b.t(), args, measure=measure)
    assert context.statistics["pad-matmul", "padded"] == padded
    assert [(p.m, p.k, p.n, p.padding, p.transposed) for p in asked] == [
        (64, 66, 60, (0, 2, 0), (False, True))
    ]
    if not padded:
        assert f"{speedup:.2f} times as fast" in context.remarks[-1].message
    run(torch.mm, (random(64, 66), random(66, 3)), measure=measure)
    assert len(asked) == 1  # what is not compute-bound isn't timed


def test_decisions_are_remembered(tmp_path: Path, monkeypatch: Any) -> None:
    import irc.runtime.padded_matmul as timing

    timed: list[MatrixProduct] = []
    monkeypatch.setattr(timing, "speedup", lambda p, device: timed.append(p) or 1.25)
    product = MatrixProduct("aten.mm.default", "float32", 1, 64, 66, 64, (False, False), (0, 2, 0))
    state = torch.get_rng_state()
    for _ in range(2):
        assert on_target(Target.host(), DiskCache(tmp_path))(product) == 1.25
    assert len(timed) == 1
    entries = [p for p in tmp_path.iterdir() if p.suffix == ".entry"]
    assert json.loads(entries[0].read_bytes().splitlines()[1]) == {"speedup": 1.25}
    entries[0].write_bytes(entries[0].read_bytes()[:-3])  # truncated: timed again
    assert on_target(Target.host(), DiskCache(tmp_path))(product) == 1.25
    assert len(timed) == 2
    assert torch.equal(state, torch.get_rng_state())


def test_rounds_that_others_disturb_decide_nothing() -> None:
    """Each sample's times are given: the first's double the second's, which runs for a while at
    half the speed, and single samples take ten times as long."""
    import irc.runtime.padded_matmul as timing

    orders: list[tuple[str, ...]] = []
    made = {"first": lambda: None, "second": lambda: None}
    names = {id(run): name for name, run in made.items()}

    def sample(runs: Any) -> list[float]:
        order = tuple(names[id(run)] for run in runs)
        number = len(orders)
        orders.append(order)
        times = [2.0 if name == "first" else 1.0 for name in order]
        slow = 2.0 if 4 <= number < 9 else 1.0  # of both, as they run one after the other
        times = [slow * each for each in times]
        if number in (0, 2, 5, 11):
            times[0] *= 10  # what stands first is disturbed
        return times

    assert timing.ratio(made["first"], made["second"], sample, 13) == 2.0
    assert orders == [("first", "second"), ("second", "first")] * 7


class Gpu:
    """What `clocked` asks of a GPU that runs what is launched in order. busy: until when; now: the
    host's time. A launch takes the host `host` seconds."""

    def __init__(self, host: float) -> None:
        self.now = self.busy = 0.0
        self.host, self.spins = host, 0

    def run(self, seconds: float) -> None:
        self.now += self.host
        self.busy = max(self.busy, self.now) + seconds

    def _sleep(self, cycles: int) -> None:
        self.spins += 1
        self.run(cycles * 5e-10)

    def synchronize(self) -> None:
        self.now = max(self.now, self.busy)

    def Event(self, enable_timing: bool) -> Any:  # noqa: N802 (torch's name)
        return Mark(self)


class Mark:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.at = gpu, 0.0

    def record(self) -> None:
        self.at = max(self.gpu.busy, self.gpu.now)

    def query(self) -> bool:
        return self.at <= self.gpu.now

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def elapsed_time(self, other: Mark) -> float:
        return (other.at - self.at) * 1e3


@pytest.mark.parametrize(("host", "spins"), [(1e-6, 1), (5e-5, 3), (1e-3, 8)])
def test_the_clock_of_a_gpu_counts_no_launching(
    host: float, spins: int, monkeypatch: Any
) -> None:
    """Kernels of 3 and 4 us, whose launches take up to a thousandth of a second."""
    from irc.runtime import gpu_clock

    gpu = Gpu(host)
    monkeypatch.setattr(gpu_clock.torch, "cuda", gpu)

    def several(seconds: float) -> Callable[[], None]:
        return lambda: [gpu.run(seconds) for _ in range(4)] and None

    times = gpu_clock.clocked([several(3e-6), several(4e-6)])
    assert times == pytest.approx([12e-6, 16e-6]) and gpu.spins == spins


def test_a_host_that_never_launches_in_time_is_not_waited_for(monkeypatch: Any) -> None:
    from irc.runtime import gpu_clock

    gpu = Gpu(1.0)
    monkeypatch.setattr(gpu_clock.torch, "cuda", gpu)
    (seconds,) = gpu_clock.clocked([lambda: gpu.run(1e-6)])
    assert gpu.spins == 9 and seconds == pytest.approx(1.0, rel=0.1)


def test_this_machine_is_timed(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    product = MatrixProduct("aten.bmm.default", "float32", 2, 65, 66, 64, (True, False), (3, 2, 0))
    found = on_target(Target.host(), DiskCache(tmp_path))(product)
    assert found is not None and 0.01 < found < 100
    assert torch.equal(state, torch.get_rng_state())
    others = [Target.named("neon"), attrs.evolve(Target.host(), threads=99)]
    if not torch.cuda.is_available():
        others.append(Target.host(gpu=True))
    assert [on_target(other, DiskCache(tmp_path))(product) for other in others] == [None] * len(
        others
    )


def test_intensity_is_operations_per_byte() -> None:
    sizes = 8192, 768, 30523
    product = MatrixProduct("aten.mm.default", "float16", 1, *sizes, (False,) * 2, (0, 0, 5))
    assert intensity(product) == pytest.approx(686.4, rel=1e-3)


LINEAR = torch.nn.functional.linear
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "mm": (torch.mm, (random(6, 9), random(9, 10))),
    "bmm": (torch.bmm, (random(3, 6, 9), random(3, 9, 10))),
    "transposed": (lambda a, b: a.t() @ b.t(), (random(9, 6), random(10, 9))),
    "linear": (LINEAR, (random(6, 9), random(10, 9), random(10))),
    "addmm": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        (random(6, 10), random(6, 9), random(9, 10)),
    ),
    "addmm of a column": (torch.addmm, (random(6, 1), random(6, 9), random(9, 10))),
    "addmm of a number": (torch.addmm, (random(1), random(6, 9), random(9, 10))),
    "chain": (
        lambda a, b, c: (torch.relu(a @ b) @ c).softmax(1), (random(6, 9), random(9, 10),
                                                             random(10, 37)),
    ),
    "infinities": (
        lambda a, b: (a * float("inf")) @ b, (random(6, 9), random(9, 10)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_padded_products_have_eagers_values(name: str) -> None:
    function, args = PROGRAMS[name]
    module, context = run(function, args, "{force}")
    assert context.statistics["pad-matmul", "padded"] == (2 if name == "chain" else 1)
    expected = function(*args)
    torch.testing.assert_close(irc.run(module, *args)[0], expected, equal_nan=True)
    options = {"shape_padding": True, "force_shape_pad": True}
    compiled = torch.compile(function, backend="irc", fullgraph=True, options=options)
    result = compiled(*args)
    torch.testing.assert_close(result, expected, equal_nan=True)
    assert result.stride() == expected.stride()


def test_the_option_decides_by_target() -> None:
    assert "pad-matmul" not in pipeline_text("llvm")
    assert "pad-matmul" in pipeline_text("triton")
    off = from_mapping({"shape_padding": False})
    assert "pad-matmul" not in pipeline_text("triton", off)
    forced = from_mapping({"shape_padding": True, "force_shape_pad": True})
    assert "pad-matmul{force=true}" in pipeline_text("llvm", forced)


def gradients_of_projection(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    """What a projection's backward computes of one array: two products and sums of columns."""
    scaled = torch.exp(g)
    return scaled.t() @ x, scaled @ w, scaled.sum(0)


def test_an_array_that_others_read_too_is_padded_where_it_is_computed() -> None:
    args = random(10, 9), random(10, 8, seed=1), random(9, 8, seed=2)
    module, _ = run(gradients_of_projection, args, "{force}")
    assert products(module) == [((12, 12), (12, 8)), ((12, 12), (12, 8))]
    PassManager.parse("canonicalize,cse,dce").run(module)
    exps = [op for op in module.walk() if isinstance(op, graph.Exp)]
    padded = [op for op in module.walk() if isinstance(op, graph.Pad) and op.source in
              [e.results[0] for e in exps]]  # fmt: skip
    assert len(exps) == len(padded) == 1
    for ours, eager in zip(irc.run(module, *args), gradients_of_projection(*args), strict=True):
        torch.testing.assert_close(ours, eager)


def test_padding_where_a_factor_is_computed_is_not_measured() -> None:
    asked: list[tuple[bool, bool]] = []

    def measure(product: MatrixProduct) -> float:
        asked.append(product.computed)
        return 2.0

    def function(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
        scaled = torch.exp(g)
        return scaled @ w, scaled.t() @ x, g @ torch.exp(w), torch.exp(x)

    run(function, (random(64, 66), random(64, 64), random(66, 64)), measure=measure)
    assert asked == [(True, False), (True, False), (False, True)]


def test_an_array_that_the_caller_sees_is_padded_in_a_copy() -> None:
    def function(g: torch.Tensor, x: torch.Tensor) -> Any:
        scaled = torch.exp(g)
        return scaled @ x, scaled.t()

    module, _ = run(function, (random(10, 9), random(9, 8)), "{force}")
    returned = next(op for op in module.walk() if op.name == "func.return").operands
    source: Any = returned[1].defining_op.operands[0].defining_op  # type: ignore[union-attr]
    assert isinstance(source, graph.Exp)


def test_the_batch_of_a_product() -> None:
    def batch(function: Any, *args: torch.Tensor) -> int:
        module = irc.trace(function, args)
        PassManager.parse(GRAPH).run(module, PassContext())
        (call,) = [op for op in module.walk() if isinstance(op, graph.CallAten)]
        product = product_of(call)
        assert product is not None
        return product.batch

    assert batch(torch.bmm, random(3, 6, 9), random(3, 9, 10)) == 3
    assert batch(torch.mm, random(6, 9), random(9, 10)) == 1
