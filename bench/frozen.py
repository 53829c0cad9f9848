"""Frozen convolutional models on the CPU: irc against eager and against Inductor, one thread, f32.

    python -m bench.frozen [--filter resnet-50] [--against inductor|irc@REVISION] [--rounds 21]

Eval and no_grad, images of 4x3x224x224, both compilers with freezing on. For each model, each in
processes of its own: latency, median over interleaved rounds of eager's (NCHW) and the peer's time
over irc's, error against eager, kernels and ATen calls, layout copies left, and how many of them
are neither of an input nor for an output.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.common import (
    Prepared,
    Side,
    SideFailed,
    argument_parser,
    compiled,
    interleaved,
    median_ratio,
    print_load,
    table,
    write_results,
)

EAGER, EACH = 2.1, 0.97
MODELS = ("resnet-50", "resnet-18", "convnext-tiny", "regnet", "mobilenet-v2")


def _makers() -> dict[str, Callable[[], Any]]:
    from bench import builders

    def regnet() -> Any:
        return builders._transformers(
            "RegNetForImageClassification", "RegNetConfig", ("pixel_values",)
        )

    return {**{name: builders.find(name).make for name in MODELS if name != "regnet"},
            "regnet": regnet}  # fmt: skip


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Build the model, freeze and compile it, and compare its first output with eager's."""
    import torch

    from bench.builders import _images
    from bench.counting import counted

    make = _makers()[case["model"]]
    (image,) = _images(4, 224)
    with torch.no_grad():
        expected = make()(image)
        with counted(backend) as count:
            options = {} if backend == "eager" else {"options": {"freezing": True}}
            call = compiled(make(), backend, dynamic=False, **options) if options else make()
            start = time.perf_counter()
            output = call(image)
            facts = {"first_call": time.perf_counter() - start, **count()}
    error = (output - expected).double().pow(2).mean().sqrt()
    facts["error"] = float(error / expected.double().pow(2).mean().sqrt())
    if backend == "irc":
        import irc

        facts["copies"] = irc.metrics.layout_copies
        facts["inside"] = irc.metrics.layout_copies_inside

    def step() -> Any:
        with torch.no_grad():
            return call(image)

    return Prepared(step, facts)


def measure(name: str, rounds: int, against: str) -> dict[str, Any]:
    """One model's figures."""
    names = ("irc", against, "eager")
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": os.environ.get("FROZEN_CACHE") or f"{folder}/inductor",
            "TORCHINDUCTOR_FREEZING": "1",
            "IRC_CACHE_DIR": f"{folder}/irc",
        }
        sides = [Side("bench.frozen", b, environment=environment) for b in names]
        try:
            facts = {side.backend: side.prepare({"model": name}) for side in sides}
            times = interleaved(sides, rounds, seconds=0.05)
        finally:
            for side in sides:
                side.close()
    return {
        "model": name,
        "against": against,
        "against_eager": median_ratio(times["eager"], times["irc"]),
        "against_peer": median_ratio(times[against], times["irc"]),
        "peer_against_eager": median_ratio(times["eager"], times[against]),
        "seconds": {b: statistics.median(t) for b, t in times.items()},
        "facts": facts,
    }


def row(found: dict[str, Any]) -> list[str]:
    """A line of the printed table."""
    facts, seconds = found["facts"]["irc"], found["seconds"]
    return [
        found["model"],
        *(f"{taken * 1e3:.1f}" for taken in seconds.values()),
        f"{found['against_eager']:.3f}",
        f"{found['against_peer']:.3f}",
        f"{found['peer_against_eager']:.3f}",
        f"{facts['error']:.1e}",
        str(facts.get("launches", "-")),
        str(facts.get("aten_calls", "-")),
        str(facts["copies"]),
        str(facts["inside"]),
        f"{facts['first_call']:.1f}",
        f"{found['facts'][found['against']]['first_call']:.1f}",
    ]


HEAD = (
    "model", "irc ms", "peer", "eager", "eager/irc", "peer/irc", "eager/peer", "error", "launches",
    "ATen", "copies", "inside", "first s", "peer",
)  # fmt: skip


def main() -> None:
    """Measure, print, write bench/results/frozen.json."""
    parser = argument_parser(__doc__ or "")
    options = parser.parse_args()
    print_load()
    results: list[dict[str, Any]] = []
    for name in MODELS:
        if options.filter not in name:
            continue
        try:
            results.append(measure(name, options.rounds, options.against))
        except SideFailed as error:
            print(f"{name}: {error}")
            continue
        print(table(HEAD, [row(results[-1])]), flush=True)
    print_load()
    slow = [f["model"] for f in results if f["against_peer"] < EACH]
    print(f"under {EACH} of {options.against}: {slow}")
    for found in results:
        if found["model"] == "resnet-50":
            print(f"resnet-50: {found['against_eager']:.2f} times eager (goal {EAGER})")
    print(f"copies inside: {sum(f['facts']['irc']['inside'] for f in results)}")
    write_results(options.output or "frozen", results)


if __name__ == "__main__":
    main()
