"""Times kernels of irc's gpu target against torch.compile's Inductor and eager, on a GPU.

    python -m bench.gpu_kernels [--only softmax] [--rounds 15] [--check] [--json out.json]

Each case is a fused loop-level program (tests/codegen/triton/loop_programs.py), formed, emitted and
launched by irc, and the same function through `torch.compile` (default mode). What is compared is
device time: calls are recorded in a CUDA graph and replayed, so launch overhead of Python counts
for nobody; sides take turns and the median of each is reported, with the bandwidth that the bytes
read and written once amount to. Values are compared with eager first.
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
    return made + compiled_cases()


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
    for ours, theirs in zip(outputs, expected, strict=True):
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
    }
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 == 0 else list(reversed(sides))
        for name in names:
            times[name].append(replayed(sides[name], CALLS_PER_GRAPH, flush))
    result["us"] = {name: statistics.median(t) for name, t in times.items()}
    pairs = zip(times["inductor"], times["irc"], strict=True)
    result["speed_against_inductor"] = statistics.median(i / o for i, o in pairs)
    result["gigabytes_per_second"] = result["bytes"] / result["us"]["irc"] / 1000
    return result


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
    print(f"{'case':40}{'irc us':>9}{'inductor':>10}{'eager':>9}{'speed':>7}{'GB/s':>8}")
    for case in cases():
        if options.only not in case.name:
            continue
        try:
            found = run(case, options.rounds, options.check)
        except Exception as error:
            found = {"case": case.name, "error": f"{type(error).__name__}: {error}"[:400]}
        results.append(found)
        if "us" in found:
            us = found["us"]
            print(f"{case.name:40}{us['irc']:9.1f}{us['inductor']:10.1f}{us['eager']:9.1f}"
                  f"{found['speed_against_inductor']:7.2f}{found['gigabytes_per_second']:8.0f}",
                  flush=True)  # fmt: skip
        else:
            print(f"{case.name:40}{found.get('error', 'values agree')}", flush=True)
    if options.json:
        device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        Path(options.json).write_text(json.dumps({**device, "results": results}, indent=1))


if __name__ == "__main__":
    main()
