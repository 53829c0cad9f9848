"""Op conformance: every op_db entry compiled and compared with eager, a case a line.

    python -m tests.conformance.ops --backend irc --shard 0/4 --resume out/irc.jsonl
    python -m tests.conformance.ops --backend irc --fraction 0.05
    python -m tests.conformance.ops --backend irc --fraction 0.05 --device cuda
    python -m tests.conformance.ops --backend aot_eager --failed out/irc.jsonl \
        --resume out/aot_eager.jsonl
    python -m tests.conformance.ops --summary out/irc.jsonl --baseline out/aot_eager.jsonl

A case is (entry, dtype, forward or backward, static or dynamic) with the entry's first 8 samples.
Values, dtypes, shapes, strides, aliasing, mutation and gradients are compared.  Each result is one
JSON line with a status: pass, rounding (off eager's tolerance and farther from float64 than eager,
but accurate as REQUIREMENTS defines it), wrong (values), metadata (anything else that differs),
refused (by name), error, crash, timeout, or skipped (eager itself can't).  Cases in the --resume
file are not run again.  With --failed only those run that another run's file holds as failed; in a
summary a case that the baseline lacks counts as passed by it if it passes.  The exit code is 1 if
a case of the baseline crashed, hung or gave wrong values.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conformance import cases
from tests.conformance.runner import Runner

BASELINE = Path(__file__).with_name("baseline_aot_eager.json")
FIXED_FRACTION = 0.05


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Results by case from a file of JSON lines; a line cut off by a kill is left out."""
    found: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            result = json.loads(line)
        except ValueError:
            continue
        found[result["case"]] = result
    return found


def failures(results: dict[str, dict[str, Any]]) -> set[str]:
    """The cases that ran and did not pass."""
    return {c for c, r in results.items() if r["status"] not in ("pass", "skipped")}


def read_baseline(path: Path) -> dict[str, str]:
    """Status by case, from JSON lines or from the compact file that `write_baseline` makes."""
    if path.suffix == ".jsonl":
        return {case: result["status"] for case, result in read_results(path).items()}
    compact = json.loads(path.read_text(encoding="utf-8"))
    statuses = dict.fromkeys(compact["passed"], "pass")
    return statuses | compact["others"]


def write_baseline(results: dict[str, dict[str, Any]], path: Path, about: dict[str, Any]) -> None:
    """The compact form: sorted names of the cases passed, status by name of the others."""
    passed = sorted(c for c, r in results.items() if r["status"] == "pass")
    others = {c: r["status"] for c, r in sorted(results.items()) if r["status"] != "pass"}
    body = {**about, "passed": passed, "others": others}
    path.write_text(json.dumps(body, indent=0) + "\n", encoding="utf-8")


def run(
    names: Iterable[str],
    backend: str,
    timeout: float,
    results: dict[str, Any],
    output: Path | None,
    device: str = "cpu",
    samples: int = 8,
) -> None:
    """Run the cases not in `results` yet; add to it, to the file and to stdout."""
    todo = [name for name in names if name not in results]
    started = time.perf_counter()
    stream = output.open("a", encoding="utf-8") if output else None
    try:
        with Runner(backend, timeout, samples=samples, device=device) as runner:
            for number, case in enumerate(todo, 1):
                result = runner.run(case)
                results[case] = result
                line = json.dumps(result)
                print(line, flush=True)
                if stream:
                    stream.write(line + "\n")
                    stream.flush()
                if number % 100 == 0:
                    spent = time.perf_counter() - started
                    print(f"{number} of {len(todo)} in {spent:.0f} s", file=sys.stderr)
    finally:
        if stream:
            stream.close()


def summarize(results: dict[str, dict[str, Any]], baseline: dict[str, str]) -> tuple[str, int]:
    """The summary's text and the exit code."""
    counts = Counter(r["status"] for r in results.values())
    lines = [f"{len(results)} cases: " + ", ".join(f"{n} {s}" for s, n in counts.most_common())]
    measured = {c: r for c, r in results.items() if baseline.get(c, r["status"]) == "pass"}
    bad = 0
    if measured:
        of_these = Counter(r["status"] for r in measured.values())
        share = of_these["pass"] / len(measured)
        lines.append(
            f"of {len(measured)} that aot_eager passes: {of_these['pass']} pass ({share:.2%}), "
            f"{of_these['rounding']} accurate but rounded otherwise, "
            f"{of_these['refused']} refused, {of_these['wrong']} wrong values, "
            f"{of_these['metadata']} other metadata, {of_these['error']} errors, "
            f"{of_these['crash']} crashes, {of_these['timeout']} timeouts"
        )
        bad = of_these["wrong"] + of_these["crash"] + of_these["timeout"]
    lines += _without_aten(results, baseline)
    for status in ("wrong", "metadata", "crash", "timeout", "error", "refused", "rounding"):
        for case, result in sorted(results.items()):
            if result["status"] == status and baseline.get(case, "pass") == "pass":
                lines.append(f"  {status:9} {case}: {result.get('message', '')[:140]}")
    return "\n".join(lines), 1 if bad else 0


def _without_aten(results: dict[str, dict[str, Any]], baseline: dict[str, str]) -> list[str]:
    """The share of traceable f32 forward entries whose programs have no ATen call."""
    forward = [
        r
        for c, r in results.items()
        if c.endswith("/f32/forward/static") and baseline.get(c, "pass") == "pass"
    ]
    counted = [r for r in forward if "aten_calls" in r or r["status"] in ("refused", "error")]
    if not any("aten_calls" in r for r in counted):
        return []
    clean = sum(r["status"] == "pass" and r.get("aten_calls") == 0 for r in counted)
    share = clean / len(counted)
    return [f"f32 forward entries without an ATen call: {clean} of {len(counted)} ({share:.1%})"]


def parse_shard(text: str) -> tuple[int, int]:
    """`i/n` with 0 <= i < n; ArgumentTypeError otherwise."""
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and int(first) < int(second)):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard i/n with 0 <= i < n")
    return int(first), int(second)


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="irc")
    parser.add_argument("--shard", type=parse_shard, default=(0, 1), metavar="I/N")
    parser.add_argument("--fraction", type=float, default=1.0, help="the fixed part to run")
    parser.add_argument("--filter", default="", help="only cases whose name holds this")
    parser.add_argument("--failed", type=Path, help="only the cases that failed in this run")
    parser.add_argument("--resume", type=Path, help="JSON lines to read first and append to")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one case")
    parser.add_argument("--device", default="cpu", help="where the samples are made")
    parser.add_argument("--samples", type=int, default=8, help="of each case, from its first on")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    parser.add_argument("--summary", type=Path, help="only summarize these results")
    parser.add_argument("--write-baseline", type=Path, help="write the results in compact form")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Run or summarize; gives the exit code."""
    options = arguments(words)
    if options.summary is not None:
        results = read_results(options.summary)
    else:
        results = read_results(options.resume) if options.resume else {}
        failed = options.failed and failures(read_results(options.failed))
        chosen = [
            case
            for case in cases.all_cases()
            if cases.in_fraction(case, options.fraction)
            and cases.in_shard(case, *options.shard)
            and options.filter in case
            and (failed is None or case in failed)
        ]
        if options.resume:
            options.resume.parent.mkdir(parents=True, exist_ok=True)
        run(
            chosen,
            options.backend,
            options.timeout,
            results,
            options.resume,
            options.device,
            options.samples,
        )
        results = {case: results[case] for case in chosen}
    if options.write_baseline:
        from tests.versions import versions

        about = {"torch": versions()["torch"], "fraction": options.fraction}
        write_baseline(results, options.write_baseline, about)
    baseline = read_baseline(options.baseline) if options.baseline.exists() else {}
    text, code = summarize(results, baseline)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
