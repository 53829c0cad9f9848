"""The child process of the op conformance: reads a case a line, answers with a JSON line each.

    python -m tests.conformance.worker BACKEND ANSWER_FD DEVICE [MODULE]

A line is a case and how many of its samples to take. MODULE is imported first. Answers go to their
own file descriptor, so that nothing an op prints can mix with them; the first one says that the
process is ready.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from torch.utils import _pytree as pytree

from tests.conformance import cases, compare

SAMPLES = 8


class Refused(Exception):
    """Eager mode itself can't run the case, so nothing can be compared."""


@attrs.frozen(eq=False)
class Sample:
    """`function` of `tensors`, and what is compared of its output. `wide` is for tensors of
    float64: a dtype among the constant arguments that is the case's is float64 there."""

    function: Callable[..., Any]
    wide: Callable[..., Any]
    tensors: list[torch.Tensor]
    process: Any


def samples(case: str, count: int = SAMPLES, device: str = "cpu") -> Iterator[Sample]:
    """The first samples of a case."""
    entry, dtype, direction, _ = cases.parse(case)
    op = cases.entries()[entry]
    torch.manual_seed(3)
    random.seed(3)
    made = op.sample_inputs(
        device, getattr(torch, cases.DTYPES[dtype]), requires_grad=direction == "backward"
    )
    for sample in itertools.islice(made, count):
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        wide = [torch.float64 if leaf is getattr(torch, cases.DTYPES[dtype]) else leaf
                for leaf in leaves]  # fmt: skip
        yield Sample(
            as_function(op.get_op(), leaves, spec, places),
            as_function(op.get_op(), wide, spec, places),
            [leaves[k] for k in places],
            sample.output_process_fn_grad,
        )


def as_function(op: Any, leaves: list[Any], spec: Any, places: list[int]) -> Callable[..., Any]:
    """`op` as a function of the tensors among its arguments; the other arguments are constants."""

    def function(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        first, rest, keywords = pytree.tree_unflatten(filled, spec)
        return op(first, *rest, **keywords)

    return function


def first_frames(error: BaseException) -> list[BaseException]:
    """An exception and what caused it, outermost first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return chain


def classify(error: BaseException) -> tuple[str, str]:
    """("refused", text) for irc's refusals by name, else ("error", text)."""
    chain = first_frames(error)
    for link in chain:
        names = {kind.__name__ for kind in type(link).__mro__}
        if type(link).__module__.startswith("irc.") and "UserError" in names:
            return "refused", " ".join(str(link).split())[:300]
    root = next((e for e in chain if type(e).__module__.startswith("irc.")), chain[0])
    return "error", f"{type(root).__name__}: {' '.join(str(root).split())[:300]}"


def counters() -> dict[str, int]:
    """irc's counters of generated kernels and ATen calls; empty where irc is not loaded."""
    module = sys.modules.get("irc.runtime.metrics")
    return {k: getattr(module, k) for k in ("kernels", "aten_calls")} if module else {}


def run_sample(case: str, backend: str, sample: Sample) -> tuple[str, str] | None:
    """The first difference between the compiled and the eager function.

    Raises what compiling raises; Refused if eager mode can't run the sample.
    """
    entry, short, direction, sizes = cases.parse(case)
    dtype = getattr(torch, cases.DTYPES[short])
    function, tensors, process = sample.function, sample.tensors, sample.process

    def call(function: Callable[..., Any], arguments: list[torch.Tensor]) -> compare.Call:
        rounding = dtype if dtype.is_floating_point else torch.float64
        return compare.call(function, arguments, direction == "backward", process, rounding)

    try:
        expected = call(function, compare.copies(tensors))
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:200]}") from None
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=sizes == "dynamic")
    got = call(compiled, compare.copies(tensors))

    def exact() -> compare.Call:
        # Some ops need their operands' own dtype, which an argument may name; where there is no
        # float64 either way, eager is the measure.
        for form in (function, sample.wide):
            with contextlib.suppress(Exception):  # of any class: what the operator says of dtypes
                return call(form, compare.copies(tensors, torch.float64))
        return compare.Call([], [], [])

    values = entry not in compare.UNINITIALISED
    found = compare.difference(expected, got, exact, values)
    if found is not None and found[0] in ("values", "gradient", "mutation", "rounding"):
        again = call(function, compare.copies(tensors))
        if compare.difference(expected, again, None) is not None:
            found = compare.difference(expected, got, None, values=False)
    return found


def run_case(
    case: str, backend: str, count: int = SAMPLES, device: str = "cpu"
) -> dict[str, Any]:
    """The result of a case: status pass, rounding, wrong, metadata, refused, error or skipped."""
    started = time.perf_counter()
    result: dict[str, Any] = {"case": case, "status": "pass", "samples": 0}
    totals: dict[str, int] = {}
    try:
        for sample in samples(case, count, device):
            before = counters()
            found = run_sample(case, backend, sample)
            for name, count in counters().items():
                totals[name] = totals.get(name, 0) + count - before.get(name, 0)
            if found is not None and found[0] == "rounding":
                result.update(status="rounding", kind=found[0], message=found[1])
            elif found is not None:
                kind = "wrong" if found[0] in ("values", "gradient", "mutation") else "metadata"
                result.update(status=kind, kind=found[0], message=found[1])
                break
            result["samples"] += 1
    except Refused as error:
        result.update(status="skipped", message=f"eager: {error}")
    except Exception as error:
        status, message = classify(error)
        result.update(status=status, message=message)
    if result["status"] == "pass" and result["samples"] == 0:
        result.update(status="skipped", message="no samples")
    result.update(totals, seconds=round(time.perf_counter() - started, 2))
    return result


def needed_modules(backend: str, named: list[str]) -> list[str]:
    """What to import before the first case: the modules named, and irc where it is the backend, so
    that a checkout that is not installed is found too."""
    return [*named, *(["irc"] if backend == "irc" else [])]


def main() -> None:
    """Answer cases until stdin ends."""
    backend, answers = sys.argv[1], os.fdopen(int(sys.argv[2]), "w")
    device = sys.argv[3]
    for module in needed_modules(backend, sys.argv[4:]):
        importlib.import_module(module)
    cases.entries()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers.write(json.dumps({"ready": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        case, count = line.split()
        answers.write(json.dumps(run_case(case, backend, int(count), device)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
