"""Times kernels of irc's gpu target against torch.compile's Inductor and eager, on a GPU.

    python -m bench.gpu_kernels [--only softmax] [--rounds 15] [--check] [--json out.json]

Each case is a fused loop-level program (tests/codegen/triton/loop_programs.py), formed, emitted and
launched by irc, and the same function through `torch.compile` (default mode). What is compared is
device time: calls are recorded in a CUDA graph and replayed, so launch overhead of Python counts
for nobody; sides take turns and the median of each is reported. First stand the bytes that have to
be read and written once, last the bandwidth that they amount to and how much of a copy's it is: of
`copy_` between arrays of half as many bytes each. Values are compared with eager first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "codegen" / "triton"))

import loop_programs as lp  # noqa: E402
from programs import reduce, tensor  # noqa: E402

from bench.common import geometric_mean  # noqa: E402
from bench.gpu_timing import FLUSH_BYTES, recorded, replayed  # noqa: E402
from irc.codegen.triton import runtime  # noqa: E402
from irc.codegen.triton.emitter import emit_kernel  # noqa: E402
from irc.dialects import loop  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.passes.kernel.gpu.form import (  # noqa: E402
    form_gpu_kernel,
    kernel_inputs,
    kernel_outputs,
)

F = torch.nn.functional
CALLS_PER_GRAPH = 20


@attrs.frozen
class Case:
    """A program, its arguments, and the same function in torch; without a program, irc's side is
    the function through torch.compile."""

    name: str
    program: Any
    args: Sequence[torch.Tensor]
    function: Callable[..., Any]
    tolerance: float = 1e-4
    results: Sequence[int] | None = None  # whose values are compared; None: all


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


def _layer_norm(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> Any:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    y = (x - mean) * torch.rsqrt(variance + 1e-5) * gamma + beta
    return y, mean.squeeze(-1), variance.squeeze(-1) * x.shape[-1]


def _layer_norm_backward(grad: Any, x: Any, gamma: Any, mean: Any, rstd: Any) -> Any:
    scaled = grad * gamma
    hat = (x - mean[:, None]) * rstd[:, None]
    first = scaled.mean(-1, keepdim=True)
    second = (scaled * hat).mean(-1, keepdim=True)
    return (scaled - first - hat * second) * rstd[:, None]


def _scatter_add(init: torch.Tensor, index: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return init.index_add(0, index, x)


def cases() -> list[Case]:
    """Every case at a size that fills a large GPU."""
    made = []
    for kind, dtype in ((T.f32, torch.float32), (T.bf16, torch.bfloat16)):
        loose = 2e-2 if kind is T.bf16 else 1e-4
        made.append(
            Case(f"gelu {kind}", lp.pointwise(8192, 4096, kind),
                 [_random(8192, 4096, dtype=dtype)], F.gelu, loose)
        )  # fmt: skip
        for n, m in ((8192, 1024), (8192, 4096), (1024, 32768), (131072, 64)):
            made.append(
                Case(f"softmax {kind} {n}x{m}", lp.softmax(n, m, kind),
                     [_random(n, m, dtype=dtype)], lambda x: F.softmax(x, -1), loose)
            )  # fmt: skip
    for n, m in ((8192, 768), (8192, 4096), (2048, 16384)):
        args = [_random(n, m), _random(m), _random(m)]
        made.append(Case(f"layer_norm {n}x{m}", lp.layer_norm(n, m), args, _layer_norm, 1e-3))
        args = [_random(n, m), _random(n, m), _random(m), _random(n), _random(n).abs()]
        made.append(
            Case(f"layer_norm_backward {n}x{m}", lp.layer_norm_backward(n, m), args,
                 _layer_norm_backward, 1e-3)
        )  # fmt: skip
    one = [reduce("sum")]
    made += [
        Case("row_sum 8192x4096", lp.lone_reduce([8192, 4096], [1], one, [tensor(8192)]),
             [_random(8192, 4096)], lambda x: x.sum(1), 1e-2),
        Case("column_sum 1024x16384", lp.lone_reduce([1024, 16384], [0], one, [tensor(16384)]),
             [_random(1024, 16384)], lambda x: x.sum(0), 1e-2),
        Case("argmax 8192x4096",
             lp.lone_reduce([8192, 4096], [1], [reduce("argmax")], [tensor(8192, element=T.i64)]),
             [_random(8192, 4096)], lambda x: x.argmax(1)),
        Case("cumsum 8192x4096", lp.scanned(8192, 4096, "sum"), [_random(8192, 4096)],
             lambda x: x.cumsum(1), 1e-2),
        Case("transpose_add 8192x4096", lp.transpose_add(8192, 4096),
             [_random(8192, 4096), _random(4096, 8192)], lambda a, b: a.t() + b),
        Case("scatter_add 65536x4 into 4096", lp.scattered("sum", T.f32, 4096, 65536),
             [_random(4096, 4), torch.randint(0, 4096, (65536,), device="cuda"),
              _random(65536, 4)], _scatter_add, 1e-2),
    ]  # fmt: skip
    return made + compiled_cases() + model_cases() + sorted_cases()


def model_cases() -> list[Case]:
    """What models have beside products: rows whose length is odd, losses, sums over rows,
    positions, gradients of tables."""
    made = []
    for dtype, n in ((torch.bfloat16, 2048), (torch.float32, 1024)):
        name, loose = str(dtype)[6:], 2e-2 if dtype is torch.bfloat16 else 1e-3
        rows = [(n, 30523), (n, 30528), (8192, 1001), (32768, 197)]
        for shape in rows:
            size = f"{shape[0]}x{shape[1]}"
            x = _random(*shape, dtype=dtype)
            made.append(Case(f"compiled log_softmax {name} {size}", None, [x],
                             lambda x: F.log_softmax(x, -1), loose))  # fmt: skip
            if shape[1] % 8:
                made.append(Case(f"compiled softmax {name} {size}", None, [x],
                                 lambda x: F.softmax(x, -1), loose))  # fmt: skip
        for vocabulary in (30523, 30528):
            x = _random(n, vocabulary, dtype=dtype)
            labels = torch.randint(0, vocabulary, (n,), device="cuda")
            size = f"{name} {n}x{vocabulary}"
            made += [
                Case(f"compiled cross_entropy {size}", None, [x, labels], F.cross_entropy, loose),
                Case(f"compiled log_softmax_backward {size}", None, [x, F.log_softmax(x, -1)],
                     lambda g, y: torch.ops.aten._log_softmax_backward_data(g, y, 1, y.dtype),
                     loose * 10),
            ]  # fmt: skip
        grad, places = _random(4096, 768, dtype=dtype), torch.randint(0, 30522, (4096,)).cuda()
        made += [
            Case(f"compiled layer_norm {name} 8192x765", None,
                 [_random(8192, 765, dtype=dtype), _random(765, dtype=dtype)],
                 lambda x, w: F.layer_norm(x, (765,), w), loose),
            Case(f"compiled column_sum {name} 8192x8192", None, [_random(8192, 8192, dtype=dtype)],
                 lambda x: x.sum(0), 1.0 if dtype is torch.bfloat16 else 1e-2),
            Case(f"compiled embedding_backward {name} 4096x768", None, [grad, places],
                 lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 30522, -1, False),
                 loose),
        ]  # fmt: skip
    scores, table = _random(4, 8, 128, 128, dtype=torch.bfloat16), _random(32, 8).bfloat16()
    return [*made, Case("compiled relative softmax 4x8x128x128", None, [scores, table],
                        _relative_softmax, 2e-2)]  # fmt: skip


def sorted_cases() -> list[Case]:
    """Rows that are sorted; of equal elements `topk` may choose any."""
    made = []
    for dtype, n, m in ((torch.float32, 8192, 1024), (torch.bfloat16, 8192, 1024),
                        (torch.float32, 65536, 128), (torch.int64, 8192, 1000)):  # fmt: skip
        x = _random(n, m) * 1000
        x, name = x.to(dtype), f"{str(dtype)[6:]} {n}x{m}"
        made += [
            Case(f"compiled sort {name}", None, [x], lambda x: x.sort(dim=-1, stable=True)),
            Case(f"compiled topk {name}", None, [x], lambda x: x.topk(16), results=(0,)),
        ]
    return made


def _relative_softmax(scores: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Attention's rows with T5's bias: 32 buckets of distances, half of them logarithmic."""
    places = torch.arange(scores.shape[-1], device=scores.device)
    distance = places[None, :] - places[:, None]
    far = 8 + (torch.log(distance.abs().float() / 8) / 2.772588722239781 * 8).long()
    near = torch.where(distance.abs() < 8, distance.abs(), far.clamp(max=15))
    bucket = (distance > 0).long() * 16 + near
    bias = table[bucket].permute(2, 0, 1)[None]
    return F.softmax((scores + bias).float(), -1).to(scores.dtype)


def compiled_cases() -> list[Case]:
    """Cases of more than one kernel."""
    rows = [_random(8192, 768), _random(8192, 768), _random(8192), _random(8192).abs()]
    image = [_random(64, 128, 56, 56)]
    return [
        Case("compiled column_sum 8192x768", None, rows[:1], lambda x: x.sum(0), 1e-2),
        Case("compiled column_sum bf16 8192x768", None, [rows[0].bfloat16()],
             lambda x: x.sum(0), 1e-1),
        Case("compiled sum 4096x8192", None, [_random(4096, 8192)], lambda x: x.sum(), 1e-1),
        Case("compiled layer_norm weights 8192x768", None, rows, _layer_norm_weights, 1e-1),
        Case("compiled channel_sum 64x128x56x56", None, image, lambda x: x.sum((0, 2, 3)), 1e-1),
        Case("compiled columns_first softmax bf16 768x8192", None,
             [_random(8192, 768, dtype=torch.bfloat16).t()], lambda x: F.softmax(x, 0), 2e-2),
        *(Case(f"compiled columns softmax {str(dtype)[6:]} {n}x{m}", None,
               [_random(n, m, dtype=dtype)], lambda x: F.softmax(x, 0), 2e-2)
          for n, m in ((768, 8192), (4096, 8192)) for dtype in (torch.float32, torch.bfloat16)),
        Case("compiled channels layer_norm 32x384x28x28", None, [_random(32, 384, 28, 28)],
             _channels_norm, 1e-3),
        Case("compiled channels_last relu 64x128x56x56", None,
             [image[0].to(memory_format=torch.channels_last)], lambda x: F.relu(x) + 1),
    ]  # fmt: skip


def _channels_norm(x: Any) -> Any:
    variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5)


def _layer_norm_weights(grad: Any, x: Any, mean: Any, rstd: Any) -> Any:
    return (grad * (x - mean[:, None]) * rstd[:, None]).sum(0), grad.sum(0)


def irc_call(
    case: Any, schedule: loop.ScheduleAttr | None = None
) -> tuple[Callable[[], object], list[torch.Tensor], dict[str, Any]]:
    """(the launch, its outputs, facts about the kernel) of a case's `program` on its `args`."""
    if case.program is None:
        compiled = torch.compile(case.function, backend="irc")
        made = compiled(*case.args)
        outputs = list(made) if isinstance(made, tuple) else [made]
        return lambda: compiled(*case.args), outputs, {}
    func = form_gpu_kernel(case.program.op, schedule, "k")
    source = emit_kernel(func)
    position = {a: k for k, a in enumerate(case.program.args)}
    inputs = [case.args[position[v]] for v in kernel_inputs(case.program.op)]
    outputs = []
    for result in kernel_outputs(case.program.op):
        kind: Any = result.type
        dtype = getattr(torch, T.DTYPE_OF_ELEMENT[kind.element])
        outputs.append(torch.empty_strided(kind.shape, kind.strides, dtype=dtype, device="cuda"))
    launch = runtime.launcher(func, source, {})
    pairs = [] if func.initialized is None else list(func.initialized)

    def call() -> object:
        for first, second in zip(pairs[::2], pairs[1::2], strict=True):
            outputs[second - len(inputs)].copy_(inputs[first])
        return launch(*inputs, *outputs)

    facts = {"warps": func.num_warps, "index_bits": func.index_bits,
             "lines": source.count("\n")}  # fmt: skip
    return call, outputs, facts


def run(case: Case, rounds: int, check_only: bool) -> dict[str, Any]:
    """Check the values of a case, then time the three sides in turns."""
    torch._dynamo.reset()
    call, outputs, facts = irc_call(case)
    call()
    expected = case.function(*case.args)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    pairs = list(zip(outputs, expected, strict=True))
    for ours, theirs in pairs if case.results is None else [pairs[k] for k in case.results]:
        torch.testing.assert_close(
            ours.double(), theirs.double(), rtol=case.tolerance, atol=case.tolerance
        )
    moved = [*case.args, *outputs]
    size = sum(t.numel() * t.element_size() for t in moved)
    result: dict[str, Any] = {"case": case.name, "kernel": facts, "bytes": size}
    if check_only:
        return result
    compiled = torch.compile(case.function)
    sides = {
        "irc": recorded(call, CALLS_PER_GRAPH),
        "inductor": recorded(lambda: compiled(*case.args), CALLS_PER_GRAPH),
        "eager": recorded(lambda: case.function(*case.args), CALLS_PER_GRAPH),
        "copy": recorded(copied(size), CALLS_PER_GRAPH),
    }
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 == 0 else list(reversed(sides))
        for name in names:
            times[name].append(replayed(sides[name], CALLS_PER_GRAPH, flush))
    result["us"] = {name: statistics.median(t) for name, t in times.items()}
    turns = zip(times["inductor"], times["irc"], strict=True)
    result["speed_against_inductor"] = statistics.median(i / o for i, o in turns)
    result["gigabytes_per_second"] = result["bytes"] / result["us"]["irc"] / 1000
    result["of_a_copy"] = result["us"]["copy"] / result["us"]["irc"]
    return result


def copied(size: int) -> Callable[[], object]:
    """A copy that reads and writes about `size` bytes together, of large arrays a multiple of 4096
    each: CUDA copies 62,519,296 bytes in 47.5 us of an H200, 62,529,536 in 31.4."""
    half = size // 2
    half = half // 4096 * 4096 if half > 1 << 20 else max(half, 1)
    source = torch.empty(half, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def line(name: str, found: dict[str, Any]) -> str:
    """A case in the table."""
    us = found["us"]
    return (f"{name:46}{found['bytes'] / 1e6:9.2f}{us['irc']:9.1f}{us['inductor']:10.1f}"
            f"{us['eager']:9.1f}{us['copy']:8.1f}{found['speed_against_inductor']:7.2f}"
            f"{found['gigabytes_per_second']:8.0f}{100 * found['of_a_copy']:6.0f} %")  # fmt: skip


HEAD = (f"{'case':46}{'MB':>9}{'irc us':>9}{'inductor':>10}{'eager':>9}{'copy':>8}{'speed':>7}"
        f"{'GB/s':>8}{'of a copy':>10}")  # fmt: skip


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true", help="compare values only")
    parser.add_argument("--json", default="", help="write the results to this file too")
    options = parser.parse_args()
    torch.manual_seed(0)
    results = []
    print(HEAD)
    for case in cases():
        if options.only not in case.name:
            continue
        try:
            found = run(case, options.rounds, options.check)
        except Exception as error:
            found = {"case": case.name, "error": f"{type(error).__name__}: {error}"[:400]}
        results.append(found)
        if "us" in found:
            print(line(case.name, found), flush=True)
        else:
            print(f"{case.name:46}{found.get('error', 'values agree')}", flush=True)
    speeds = [r["speed_against_inductor"] for r in results if "us" in r]
    if speeds:
        print(f"speed against Inductor: {geometric_mean(speeds):.3f}, the least {min(speeds):.2f}")
    if options.json:
        device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        Path(options.json).write_text(json.dumps({**device, "results": results}, indent=1))


if __name__ == "__main__":
    main()
