"""Speed of whole models: irc against Inductor's default, one thread, f32.

    python -m bench.models --model bert-base --rounds 20      (all models without --model)
    python -m bench.models --against irc@76fb8cb              (irc as a commit has it)
    python -m bench.models --report                           (what was measured last, as one table)

For each model: latency and its ratio to the peer (above 1: faster than it), the first call's time,
RMS error against float64 relative to the reference's RMS, launches of generated kernels and calls
of ATen, and the time outside of matrix products, convolutions and attention with its ratio (below
1: less than the peer's).

Latencies are of the programs as users get them.  "Outside" is measured afterwards, in rounds of
their own, with programs that clock their products, convolutions and attention (`bench.heavy`, the
same way on both sides): one call's time less what these took within that very call, so that noise
of the products, some 95 % of a call, cancels.

Every model's figures are kept in bench/results/models.json under its name.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from typing import Any

from bench.common import (
    RESULTS,
    Prepared,
    Side,
    SideFailed,
    argument_parser,
    compiled,
    geometric_mean,
    interleaved,
    machine,
    median_ratio,
    print_load,
    table,
    write_results,
)

EACH, MEAN, OUTSIDE = 0.9, 1.0, 0.8
COUNTED = ("launches", "aten_calls")
HEAD = ("model", "", "ms", "ratio", "first s", "error", *COUNTED, "outside ms", "ratio")


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Build, compile and call `case["model"]`; compare unless `case["error"]` is False."""
    import torch

    from bench.builders import find, results, step
    from bench.counting import counted
    from bench.heavy import clocked_call

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
        pairs = zip(mine, exact, strict=True)
        facts["error"] = max(relative_error(a, b) for a, b in pairs)
        del exact, exact_module, mine
    torch.set_grad_enabled(True)
    clocked: list[Any] = []

    def outside() -> dict[str, float]:
        """Seconds of one call outside of the heavy operators."""
        if not clocked:
            options = {"options": {"clock_aten": True}} if backend == "irc" else {}
            again = compiled(module, backend, dynamic=False, **options) if options else call
            clocked.append(lambda: step(module, again, model, inputs))
        seconds = clocked_call(clocked[0], backend)
        return {"outside": seconds["wall"] - seconds["heavy"], **seconds}

    return Prepared(lambda: step(module, call, model, inputs), facts, outside)


def relative_error(mine: Any, exact: Any) -> float:
    """RMS of the difference over the RMS of `exact`; the former alone where `exact` is zero."""
    difference, scale = (float(t.pow(2).mean().sqrt()) for t in (mine - exact, exact))
    return difference / scale if scale else difference


def measure(name: str, sides: list[Side], rounds: int) -> dict[str, Any]:
    """One model's figures; `sides` are the measured one and its peer."""
    facts = [side.prepare({"model": name}) for side in sides]
    times = interleaved(sides, rounds, seconds=0.05)
    outside: dict[str, list[float]] = {side.backend: [] for side in sides}
    for number in range(1 + max(3, rounds // 2)):
        for side in sides if number % 2 == 0 else sides[::-1]:
            found = side.inspect()["outside"]
            if number:
                outside[side.backend].append(found)
    mine, peer = (times[side.backend] for side in sides)
    both = [
        {**f, "seconds": statistics.median(times[s.backend]),
         "outside": statistics.median(outside[s.backend])}
        for f, s in zip(facts, sides, strict=True)
    ]  # fmt: skip
    return {
        "model": name,
        "ratio": median_ratio(peer, mine),
        "outside_ratio": median_ratio(*(outside[side.backend] for side in sides)),
        "rounds": rounds,
        "mine": both[0],
        "peer": both[1],
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
                    *(str(side.get(kind, "-")) for kind in COUNTED),
                    f"{side['outside'] * 1e3:.1f}",
                    f"{found['outside_ratio']:.2f}" if first else "",
                ]
            )
    return lines


def measure_model(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """`measure` in new processes with empty caches; a failure is told and part of the result."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
            "IRC_CACHE_DIR": os.path.join(folder, "irc"),
        }
        names = (options.backend, options.against)
        sides = [Side("bench.models", b, environment=environment) for b in names]
        try:
            return {**measure(name, sides, options.rounds), "machine": machine()}
        except SideFailed as error:
            print(f"{name}: {error}")
            return {"model": name, "failure": str(error)}
        finally:
            for side in sides:
                side.close()


def report(results: list[dict[str, Any]], backend: str, against: str) -> None:
    """Print the table of all results, and which goals they miss."""
    done = [found for found in results if "ratio" in found]
    print(table(HEAD, rows(done, backend, against)))
    print(f"geometric mean {geometric_mean(f['ratio'] for f in done):.3f} (goal {MEAN})")
    print(f"under {EACH}: {[f['model'] for f in done if f['ratio'] < EACH]}")
    print(f"outside over {OUTSIDE}: {[f['model'] for f in done if f['outside_ratio'] > OUTSIDE]}")
    more = [
        f["model"] for f in done
        if sum(f["mine"].get(k, 0) for k in COUNTED) > sum(f["peer"].get(k, 0) for k in COUNTED)
    ]  # fmt: skip
    print(f"more launches and calls than the peer: {more}")


def stored(file: str) -> dict[str, dict[str, Any]]:
    """What bench/results holds of former runs, by model."""
    path = RESULTS / f"{file}.json"
    found = json.loads(path.read_text())["results"] if path.exists() else []
    return {entry["model"]: entry for entry in found}


def main() -> None:
    """Measure, print, keep in bench/results/models.json."""
    from bench.builders import MODELS, SMALL

    parser = argument_parser(__doc__ or "")
    parser.add_argument("--model", default="", choices=["", *MODELS, *SMALL])
    parser.add_argument("--small", action="store_true", help="the reduced models of the demo")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    file = options.output or "models"
    if options.report:
        known = stored(file)
        report([known[m] for m in MODELS if m in known], options.backend, options.against)
        return
    print_load()
    results = []
    every = SMALL if options.small else MODELS
    names = [options.model] if options.model else [n for n in every if options.filter in n]
    for name in names:
        results.append(measure_model(name, options))
        if "ratio" in results[-1]:
            kept = {**stored(file), name: results[-1]}
            write_results(file, list(kept.values()))
            print(table(HEAD, rows(results[-1:], options.backend, options.against)), flush=True)
    print_load()
    report(results, options.backend, options.against)
    if any("failure" in found for found in results):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
