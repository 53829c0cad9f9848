"""Speed of whole models: irc against Inductor's default, one thread, f32.

    python -m bench.models [--backend irc] [--against inductor] [--filter bert] [--rounds 21]

For each model: latency and its ratio to the peer (above 1: faster than it), the first call's time,
RMS error against float64 relative to the reference's RMS, generated kernels and ATen calls, and the
time spent outside matrix products, convolutions and attention (one call's time less theirs, which
the profiler gives).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from typing import Any

from bench.common import (
    Prepared,
    Side,
    SideFailed,
    argument_parser,
    compiled,
    geometric_mean,
    interleaved,
    median_ratio,
    print_load,
    table,
    write_results,
)

EACH, MEAN, OUTSIDE = 0.9, 1.0, 0.8
HEAVY = (
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution",
    "aten::convolution_backward", "aten::mkldnn_convolution", "aten::_scaled_dot_product",
    "mkldnn::_convolution_pointwise", "mkldnn::_linear_pointwise", "mkl::_mkl_linear",
    "mkldnn_prepacked::",
)  # fmt: skip


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Build, compile and call `case["model"]`; compare unless `case["error"]` is False."""
    import torch

    from bench.builders import find, results, step
    from bench.counting import counted

    model = find(case["model"])
    inputs = model.inputs()
    module = model.make()
    with counted(backend) as count:
        call = compiled(module, backend, dynamic=False)
        start = time.perf_counter()
        output = step(module, call, model, inputs)
        facts: dict[str, Any] = {"first_call": time.perf_counter() - start, **count()}
    if case.get("error", True):
        mine = [t.double() for t in results(module, output, model)]
        exact_module = model.make().double()
        doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
        exact = results(exact_module, step(exact_module, exact_module, model, doubled), model)
        facts["error"] = max(
            float((a - b).pow(2).mean().sqrt() / b.pow(2).mean().sqrt().clamp_min(1e-30))
            for a, b in zip(mine, exact, strict=True)
            if b.abs().max() > 0
        )
        del exact, exact_module, mine
    torch.set_grad_enabled(True)
    return Prepared(
        lambda: step(module, call, model, inputs),
        facts,
        lambda: heavy_time(lambda: step(module, call, model, inputs)),
    )


def heavy_time(call: Any, calls: int = 3) -> dict[str, Any]:
    """Seconds per call, and those in products, convolutions and attention, by the profiler."""
    from torch.profiler import ProfilerActivity, profile

    heavy, walls = [], []
    for _ in range(calls):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            start = time.perf_counter()
            call()
            walls.append(time.perf_counter() - start)
        total = 0.0
        for event in profiler.events():
            if _is_heavy(event) and not _inside_heavy(event):
                total += event.cpu_time_total
        heavy.append(total * 1e-6)
    return {"wall": statistics.median(walls), "heavy": statistics.median(heavy)}


def _is_heavy(event: Any) -> bool:
    return event.name.startswith(HEAVY)


def _inside_heavy(event: Any) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if _is_heavy(parent):
            return True
        parent = parent.cpu_parent
    return False


def measure(name: str, sides: list[Side], rounds: int) -> dict[str, Any]:
    """One model's figures; `sides` are the measured one and its peer."""
    facts = [side.prepare({"model": name}) for side in sides]
    times = interleaved(sides, rounds, seconds=0.05)
    outside = []
    for side in sides:
        looked = side.inspect()
        # The profiler slows small ops: take their share of its own wall time.
        share = 1 - looked["heavy"] / looked["wall"]
        outside.append(share * statistics.median(times[side.backend]))
    mine, peer = (times[side.backend] for side in sides)
    return {
        "model": name,
        "ratio": median_ratio(peer, mine),
        "outside_ratio": outside[0] / outside[1],
        "mine": {**facts[0], "seconds": statistics.median(mine), "outside": outside[0]},
        "peer": {**facts[1], "seconds": statistics.median(peer), "outside": outside[1]},
    }


def rows(results: list[dict[str, Any]], backend: str, against: str) -> list[list[str]]:
    """The printed table, two lines a model."""
    lines = []
    for found in results:
        if "failure" in found:
            continue
        for who, key in ((backend, "mine"), (against, "peer")):
            side = found[key]
            first = key == "mine"
            lines.append(
                [
                    found["model"] if first else "",
                    who,
                    f"{side['seconds'] * 1e3:.1f}",
                    f"{found['ratio']:.3f}" if first else "",
                    f"{side['first_call']:.1f}",
                    f"{side['error']:.1e}",
                    str(side.get("kernels", "-")),
                    str(side.get("aten_calls", "-")),
                    f"{side['outside'] * 1e3:.1f}",
                    f"{found['outside_ratio']:.2f}" if first else "",
                ]
            )
    return lines


def main() -> None:
    """Measure, print, write bench/results/models.json."""
    from bench.builders import MODELS, SMALL

    parser = argument_parser(__doc__ or "")
    parser.add_argument("--small", action="store_true", help="the reduced models of the demo")
    options = parser.parse_args()
    print_load()
    results = []
    for name in SMALL if options.small else MODELS:
        if options.filter not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
                "IRC_CACHE_DIR": os.path.join(folder, "irc"),
            }
            names = (options.backend, options.against)
            sides = [Side("bench.models", b, environment=environment) for b in names]
            try:
                results.append(measure(name, sides, options.rounds))
            except SideFailed as error:
                results.append({"model": name, "failure": str(error)})
                print(f"{name}: {error}")
            finally:
                for side in sides:
                    side.close()
        head = (
            "model",
            "",
            "ms",
            "ratio",
            "first s",
            "error",
            "kernels",
            "ATen",
            "outside",
            "ratio",
        )
        print(table(head, rows(results[-1:], options.backend, options.against)), flush=True)
    print_load()
    done = [found for found in results if "ratio" in found]
    print(f"geometric mean {geometric_mean(f['ratio'] for f in done):.3f} (goal {MEAN})")
    print(f"under {EACH}: {[f['model'] for f in done if f['ratio'] < EACH]}")
    print(f"outside over {OUTSIDE}: {[f['model'] for f in done if f['outside_ratio'] > OUTSIDE]}")
    more = [
        f["model"]
        for f in done
        if sum(f["mine"].get(k, 0) for k in ("kernels", "aten_calls"))
        > sum(f["peer"].get(k, 0) for k in ("kernels", "aten_calls"))
    ]
    print(f"more kernels and calls than the peer: {more}")
    write_results(options.output or "models", results)


if __name__ == "__main__":
    main()
