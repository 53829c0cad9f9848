"""Speed of single kernels: irc against Inductor, both through torch.compile, one thread.

    python -m bench.kernels [--against inductor|irc@REVISION] [--filter NAMES] [--rounds 21]

`NAMES` are parts of cases' names, with commas between. Each case prints the time, the ratio to
the peer (above 1: faster than it), and the share of the copy bandwidth measured in the same run:
bytes that must be read and written, over time, over the bandwidth of copying as many bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Iterator
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
    write_results,
)

SIZES = (1_000_000, 16_000_000)
ROWS = (1000, 1023)
DTYPES = ("f32", "bf16")
# The goals: speed relative to the peer of each, of those with costly functions at the first size,
# and of the geometric mean.
EACH, COSTLY, MEAN = 0.95, 1.5, 1.3


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A function of dense `[rows, columns]` tensors.

    `operands` are "full" (rows x columns), "turned" (columns x rows), "row" (columns), or "mean"
    and "rstd" of the second operand's rows as layer norm's forward gives them; `traffic` counts
    full tensors read and written; `costly` marks exp, tanh, erf and sigmoid.
    """

    function: Callable[..., Any]
    operands: tuple[str, ...]
    traffic: float
    costly: bool = False


def _kernels() -> dict[str, Kernel]:
    import torch
    from torch.nn import functional as F

    def tanh_chain(x):
        return torch.tanh(torch.tanh(x * 0.5 + 1.0) * 2.0 - 0.5)

    def add_mul_chain(x, y):
        return ((x + y) * x + 3.0) * y - x

    def layer_norm(x, w, b):
        return F.layer_norm(x, (x.shape[-1],), w, b)

    def layer_norm_backward(g, x, mean, rstd, w, b):
        return torch.ops.aten.native_layer_norm_backward(
            g, x, [x.shape[-1]], mean, rstd, w, b, [True, True, True]
        )

    def transpose_add(x, y):
        return x.t() + y

    one, two = ("full",), ("full", "full")
    return {
        "gelu_erf": Kernel(lambda x: F.gelu(x), one, 2, costly=True),
        "gelu_tanh": Kernel(lambda x: F.gelu(x, approximate="tanh"), one, 2, costly=True),
        "silu": Kernel(F.silu, one, 2, costly=True),
        "tanh_chain": Kernel(tanh_chain, one, 2, costly=True),
        "sigmoid_mul": Kernel(lambda x, y: torch.sigmoid(x) * y, two, 3, costly=True),
        "add_mul_chain": Kernel(add_mul_chain, two, 3),
        "softmax": Kernel(lambda x: F.softmax(x, -1), one, 2, costly=True),
        "masked_softmax": Kernel(
            lambda x: F.softmax(x.masked_fill(x > 0, -math.inf), -1), one, 2, costly=True
        ),
        "log_softmax": Kernel(lambda x: F.log_softmax(x, -1), one, 2, costly=True),
        "layer_norm": Kernel(layer_norm, ("full", "row", "row"), 2),
        "layer_norm_backward": Kernel(
            layer_norm_backward, ("full", "full", "mean", "rstd", "row", "row"), 3
        ),
        "rms_norm": Kernel(lambda x, w: F.rms_norm(x, (x.shape[-1],), w), ("full", "row"), 2),
        "sum_dim0": Kernel(lambda x: x.sum(0), one, 1),
        "sum_all": Kernel(lambda x: x.sum(), one, 1),
        "transpose_add": Kernel(transpose_add, ("turned", "full"), 3),
    }


@functools.cache
def kernels() -> dict[str, Kernel]:
    """The kernels by name."""
    return _kernels()


def cases() -> Iterator[dict[str, Any]]:
    """Every kernel at every size, row length and dtype; the same kernel's cases come together."""
    for name in kernels():
        for size in SIZES:
            for columns in ROWS:
                for dtype in DTYPES:
                    yield {"kernel": name, "size": size, "columns": columns, "dtype": dtype}


def case_name(case: dict[str, Any]) -> str:
    """A short name of a case: `softmax/1e6/1023/bf16`."""
    size = {1_000_000: "1e6", 16_000_000: "1.6e7"}.get(case["size"], str(case["size"]))
    return f"{case['kernel']}/{size}/{case['columns']}/{case['dtype']}"


def arguments(case: dict[str, Any]) -> list[Any]:
    """The case's tensors: rows such that the elements come nearest to its size."""
    import torch

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[case["dtype"]]
    columns = case["columns"]
    rows = round(case["size"] / columns)
    shapes = {"full": (rows, columns), "row": (columns,), "turned": (columns, rows)}
    generator = torch.Generator().manual_seed(0)
    made: list[Any] = []
    for kind in kernels()[case["kernel"]].operands:
        if kind in ("mean", "rstd"):
            _, *statistics_of_rows = torch.native_layer_norm(made[1], [columns], None, None, 1e-5)
            made.append(statistics_of_rows[kind == "rstd"])
        else:
            made.append(torch.randn(shapes[kind], generator=generator).to(dtype))
    return made


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Compile the case; its facts tell the largest difference from eager, relative to its RMS."""
    import torch

    if case["kernel"] == "copy":
        source = torch.randn(case["bytes"] // 8)
        target = torch.empty_like(source)
        return Prepared(lambda: target.copy_(source))
    function, tensors = kernels()[case["kernel"]].function, arguments(case)
    with torch.no_grad():
        expected = function(*[t.double() for t in tensors])
        call = compiled(function, backend, dynamic=False)
        got = call(*tensors)
        pairs = zip(*((r,) if torch.is_tensor(r) else r for r in (expected, got)), strict=True)
        error = max(float((b.double() - a).abs().max() / a.pow(2).mean().sqrt()) for a, b in pairs)

    def once() -> object:
        with torch.no_grad():
            return call(*tensors)

    return Prepared(once, {"error": error})


def traffic(case: dict[str, Any]) -> int:
    """Bytes that the case must read and write."""
    elements = round(case["size"] / case["columns"]) * case["columns"]
    width = {"f32": 4, "bf16": 2}[case["dtype"]]
    return int(kernels()[case["kernel"]].traffic * elements * width)


def measure(case: dict[str, Any], sides: list[Side], rounds: int) -> dict[str, Any]:
    """One case's figures; `sides` are the measured one and its peer."""
    facts = [side.prepare(case) for side in sides]
    times = interleaved(sides, rounds)
    mine, peer = (times[side.backend] for side in sides)
    sides[1].prepare({"kernel": "copy", "bytes": traffic(case)})
    copying = statistics.median(sides[1].measure(0.01) for _ in range(7))
    return {
        "case": case_name(case),
        "seconds": statistics.median(mine),
        "peer_seconds": statistics.median(peer),
        "ratio": median_ratio(peer, mine),
        "share_of_copy": copying / statistics.median(mine),
        "peer_share_of_copy": copying / statistics.median(peer),
        "error": facts[0]["error"],
        "peer_error": facts[1]["error"],
    }


def summary(results: list[dict[str, Any]]) -> str:
    """The goals and whether they are met."""
    done = [r for r in results if "ratio" in r]
    slow = [r["case"] for r in done if r["ratio"] < EACH]
    costly = [
        r["case"]
        for r in done
        if kernels()[r["case"].split("/")[0]].costly
        and r["case"].split("/")[1] == "1e6"
        and r["ratio"] < COSTLY
    ]
    return "\n".join(
        [
            f"geometric mean {geometric_mean(r['ratio'] for r in done):.3f} (goal {MEAN})",
            f"under {EACH}: {len(slow)} of {len(done)} {' '.join(slow)}",
            f"costly ones at 1e6 under {COSTLY}: {len(costly)} {' '.join(costly)}",
            f"failed: {len(results) - len(done)}",
        ]
    )


def main() -> None:
    """Measure, print, write bench/results/kernels.json."""
    parser = argument_parser(__doc__ or "")
    options = parser.parse_args()
    wanted = options.filter.split(",")
    chosen = [case for case in cases() if any(part in case_name(case) for part in wanted)]
    print_load()
    results = []
    for name in dict.fromkeys(case["kernel"] for case in chosen):
        job = "bench.kernels"
        with Side(job, options.backend) as mine, Side(job, options.against) as peer:
            for case in chosen:
                if case["kernel"] != name:
                    continue
                try:
                    found = measure(case, [mine, peer], options.rounds)
                except SideFailed as error:
                    found = {"case": case_name(case), "failure": str(error)}
                results.append(found)
                print(_line(found), flush=True)
    print_load()
    print(summary(results))
    write_results(options.output or "kernels", results)


def _line(found: dict[str, Any]) -> str:
    if "failure" in found:
        return f"{found['case']:36} {found['failure']}"
    mine, peer = found["seconds"] * 1e6, found["peer_seconds"] * 1e6
    return (
        f"{found['case']:36} {mine:9.1f} us  peer {peer:9.1f}  ratio {found['ratio']:6.3f}"
        f"  of copy {found['share_of_copy']:5.2f}  peer {found['peer_share_of_copy']:5.2f}"
        f"  error {found['error']:.1e}"
    )


if __name__ == "__main__":
    main()
