"""What padding of sizes and strides gains on a GPU: rows PAD-11, PAD-12 and PAD-14.

    python -m bench.gpu_padding [--only PAD-11] [--rounds 11] [--late-checks]

Each line is a row's claim as a ratio of two sides, more than 1 in favour of the first: the median
over interleaved rounds, with each side's median time. "padded" is irc as it comes, "plain" irc
without padding, "aligned" irc on sizes that need none.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import irc

CALLS = 10
PLAIN = {"shape_padding": False, "comprehensive_padding": False}
COMMON: dict[str, Any] = {}  # options of every side that irc compiles
Call = Callable[[], object]
Sides = dict[str, Call]


def compiled(function: Any, **options: Any) -> Any:
    """`function` through irc as one graph, its sizes constants."""
    chosen = {**COMMON, **options}
    return torch.compile(function, backend="irc", fullgraph=True, dynamic=False, options=chosen)


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as another object, so that sides don't share compiled code's limits."""
    return lambda *given: function(*given)


def product_sides(m: int, k: int, n: int, dtype: torch.dtype) -> Sides:
    """One product: eager, padded, plain, and with every size a multiple of 8."""

    def factors(*sizes: int) -> list[torch.Tensor]:
        rows, inner, columns = sizes
        return [torch.randn(rows, inner, device="cuda").to(dtype),
                torch.randn(inner, columns, device="cuda").to(dtype)]  # fmt: skip

    a, b = factors(m, k, n)
    c, d = factors(*(-(-size // 8) * 8 for size in (m, k, n)))
    padded, plain = compiled(fresh(torch.mm)), compiled(fresh(torch.mm), **PLAIN)
    aligned = compiled(fresh(torch.mm))
    return {
        "eager": lambda: torch.mm(a, b),
        "padded": lambda: padded(a, b),
        "plain": lambda: plain(a, b),
        "aligned": lambda: aligned(c, d),
    }


def helper_sides() -> Sides:
    """The helper that pads m, k and n to multiples of 16, and the product as it is."""
    a = torch.randn(8190, 767, device="cuda")
    b = torch.randn(767, 30523, device="cuda")

    def with_helper(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        m, k, n = (-size % 16 for size in (a.size(0), a.size(1), b.size(1)))
        return irc.pad_mm(a, b, m, k, n)  # type: ignore[no-any-return]

    padded, plain = compiled(with_helper), compiled(fresh(torch.mm), **PLAIN)
    return {"padded": lambda: padded(a, b), "plain": lambda: plain(a, b)}


class LinearAndLoss(nn.Module):
    """A projection to a vocabulary, and cross entropy."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.linear = nn.Linear(768, vocabulary)
        self.vocabulary = vocabulary

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.linear(x).view(-1, self.vocabulary)
        return nn.functional.cross_entropy(logits, labels.view(-1))


def step_of(model: nn.Module, inputs: list[torch.Tensor], options: dict[str, Any] | None) -> Call:
    """A training step under autocast with Adam; `options` None is eager mode."""
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)

    def loss(*given: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            found = model(*given)
        return found if isinstance(found, torch.Tensor) else found[0]

    run = loss if options is None else compiled(loss, **options)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        run(*inputs).backward()
        optimizer.step()

    return step


def training_sides(make: Callable[[int], tuple[nn.Module, list[torch.Tensor]]],
                   vocabulary: int) -> Sides:  # fmt: skip
    """Training steps of a model by its vocabulary."""
    return {
        "eager": step_of(*make(vocabulary), None),
        "padded": step_of(*make(vocabulary), {}),
        "plain": step_of(*make(vocabulary), PLAIN),
        "aligned": step_of(*make(30528), {}),
    }


def linear(vocabulary: int) -> tuple[nn.Module, list[torch.Tensor]]:
    """LinearAndLoss on 16 x 512 positions."""
    x = torch.randn(16, 512, 768, device="cuda")
    return LinearAndLoss(vocabulary).cuda(), [x, torch.randint(0, 30522, (16, 512), device="cuda")]


class _MaskedLoss(nn.Module):
    """The loss of BERT with one layer."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        import transformers

        config = transformers.BertConfig(num_hidden_layers=1, vocab_size=vocabulary)
        self.model = transformers.BertForMaskedLM(config)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, labels=ids)[0]  # type: ignore[no-any-return]


def bert(vocabulary: int) -> tuple[nn.Module, list[torch.Tensor]]:
    """BERT with one layer on 16 x 512 positions, without dropout's random numbers."""
    ids = torch.randint(0, 30522, (16, 512), device="cuda")
    return _MaskedLoss(vocabulary).cuda().eval(), [ids]


def append_columns(x: torch.Tensor) -> torch.Tensor:
    """Six columns of zeros more."""
    return torch.cat([x, x.new_zeros(x.size(0), 6)], dim=1)


def concatenation_sides() -> Sides:
    """The concatenation in eager mode, through irc and through Inductor."""
    x = torch.randn(8192, 30522, device="cuda", dtype=torch.float16)
    ours = compiled(append_columns)
    inductor = torch.compile(fresh(append_columns))
    return {"eager": lambda: append_columns(x), "irc": lambda: ours(x),
            "inductor": lambda: inductor(x)}  # fmt: skip


# (row, what it claims, the sides, (first, second) to compare, the ratio claimed)
Claim = tuple[str, str, Callable[[], Sides], list[tuple[str, str, float]]]


def claims() -> list[Claim]:
    """The rows' claims."""
    f32, f16 = torch.float32, torch.float16
    fast = [("padded", "aligned", 0.95), ("padded", "plain", 1.0)]
    return [
        ("PAD-11", "f32 8192x768 x 768x30523", lambda: product_sides(8192, 768, 30523, f32), fast),
        ("PAD-11", "f16 8192x768 x 768x30523", lambda: product_sides(8192, 768, 30523, f16), fast),
        ("PAD-11", "f32 30523x8192 x 8192x768", lambda: product_sides(30523, 8192, 768, f32),
         [("padded", "plain", 0.95)]),
        ("PAD-11", "f16 8192x30522 x 30522x768", lambda: product_sides(8192, 30522, 768, f16),
         [("padded", "plain", 1.0)]),
        ("PAD-11", "the helper, f32 8190x767x30523", helper_sides, [("padded", "plain", 0.95)]),
        ("PAD-12", "Linear and loss, 30523", lambda: training_sides(linear, 30523), fast),
        ("PAD-12", "BERT of one layer, 30522", lambda: training_sides(bert, 30522), fast),
        ("PAD-14", "cat f16 8192x30522 and 6", concatenation_sides,
         [("irc", "eager", 2.5), ("irc", "inductor", 0.95)]),
    ]  # fmt: skip


def milliseconds(call: Call) -> float:
    """The time of one of CALLS calls."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / CALLS


def measured(sides: Sides, rounds: int) -> dict[str, list[float]]:
    """Times of each side over interleaved rounds, the order turned round every other one."""
    for call in sides.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            times[name].append(milliseconds(sides[name]))
    return times


def lines(claim: Claim, rounds: int) -> Iterator[str]:
    """What a claim's measurement came to."""
    row, text, make, wanted = claim
    torch._dynamo.reset()
    irc.metrics.reset()
    times = measured(make(), rounds)
    sides = ", ".join(f"{name} {statistics.median(t):.3f} ms" for name, t in times.items())
    yield f"{row}  {text}: {sides}"
    for first, second, least in wanted:
        pairs = zip(times[second], times[first], strict=True)
        ratio = statistics.median(b / a for b, a in pairs)
        verdict = "as claimed" if ratio >= least else f"short of {least}"
        yield f"        {first} against {second}: {ratio:.2f} ({verdict})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose id contains this")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--late-checks", action="store_true", help="irc's option of that name")
    options = parser.parse_args()
    if options.late_checks:
        COMMON["late_checks"] = True
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    for claim in claims():
        if options.only not in claim[0]:
            continue
        try:
            for line in lines(claim, options.rounds):
                print(line, flush=True)
        except Exception as error:
            print(f"{claim[0]}  {claim[1]}: {type(error).__name__}: {str(error)[:600]}")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
