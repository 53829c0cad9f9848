"""What the property tests share: batches with seeds, outcomes, and comparison pass by pass.

    @fuzz("layouts", strategy())
    def test_layouts(case, compile_it): ...

is a pytest test per batch of cases. The profile "default" runs `quick` cases from seed 0; the
profile "fuzz" (`make fuzz`) runs `total` cases from FUZZ_SEED: SHARD=i/n takes every n-th batch,
and a batch that passed is noted in out/fuzz-NAME-SEED.jsonl and skipped the next time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import seed as seeded

import irc
from irc.ir.core import Operation
from irc.ir.passes import Instrumentation, PassContext, PassManager

OUT = Path(__file__).resolve().parents[2] / "out"
SEED = int(os.environ.get("FUZZ_SEED", "0"))
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"
SHRINK = os.environ.get("FUZZ_SHRINK", "1") != "0"  # shrinking takes minutes at worst
# Hypothesis draws only this many cases before it goes on with near copies of those it has.
RUN = 8
#: Processor seconds that a case may take, for each of its calls.
MOST_SECONDS = 5.0
# For results of 16-bit floats, which irc computes in f32 between operations that eager rounds.
TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-5, torch.float64: 1e-12}


# -- batches


def fuzz(
    name: str,
    strategy: Any,
    quick: int = 500,
    total: int = 20_000,
    batch: int = 250,
    every: int = 20,
    calls: int = 1,
) -> Callable[[Callable[[Any, bool], None]], Callable[..., None]]:
    """Make a check of one case a pytest test with the marker `fuzz`, parametrized by batch.

    The check gets a case and whether it is one of the 1 in `every` that are compiled, too. `quick`,
    `total` and `batch` count the `calls` that each case makes.
    """

    def decorate(check: Callable[[Any, bool], None]) -> Callable[..., None]:
        numbers = batches(total if LONG else quick, batch)
        journal = Journal(name)

        @pytest.mark.fuzz
        @pytest.mark.parametrize("number", numbers)
        def test(number: int) -> None:
            if number in journal.done():
                pytest.skip("passed before")
            cases = min(batch, total if LONG else quick) // calls
            begun = time.monotonic()
            limit = MOST_SECONDS * calls
            run_batch(check, strategy, seed_of(name, number), cases, every, limit)
            journal.note(number, cases * calls, time.monotonic() - begun)

        test.__name__ = test.__qualname__ = check.__name__
        test.__doc__ = check.__doc__
        test.__module__ = check.__module__
        return test

    return decorate


def batches(cases: int, batch: int) -> list[int]:
    """The numbers of this shard's batches (SHARD=i/n; all without it)."""
    shard, _, shards = os.environ.get("SHARD", "0/1").partition("/")
    count = -(-cases // batch)
    return [k for k in range(count) if not LONG or k % int(shards or 1) == int(shard)]


def seed_of(name: str, number: int) -> int:
    """The seed of a batch: its own for each name, number and FUZZ_SEED."""
    text = f"{name}/{SEED}/{number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def run_batch(
    check: Callable[[Any, bool], None],
    strategy: Any,
    seed: int,
    cases: int,
    every: int,
    limit: float = MOST_SECONDS,
) -> None:
    """Run `cases` different cases, drawn from `seed` on; a failure is shrunk and raised.

    Cases are equal if their `repr` is. Raises AssertionError where the strategy has too few.
    """
    seen: set[str] = set()
    failed = False

    def one(case: Any) -> None:
        nonlocal failed
        if not failed:  # what is shrunk comes more than once, and is compiled, too
            text = repr(case)
            if text in seen:
                reject()
            seen.add(text)
        try:
            timed(check, case, failed or len(seen) % every == 0, limit)
        except BaseException:
            failed = True
            raise

    profile = settings(
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink) if SHRINK else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run, before = 0, -1
    while before < len(seen) < cases:
        before = len(seen)
        wanted = settings(profile, max_examples=min(RUN, cases - len(seen)))
        seeded(seed + run)(wanted(given(strategy)(one)))()
        run += 1
    assert len(seen) == cases, f"{len(seen)} different cases, wanted {cases}"


def timed(check: Callable[[Any, bool], None], case: Any, compile_it: bool, limit: float) -> None:
    """Check a case; AssertionError if that takes longer than `limit` seconds of processor time,
    twice: the first case pays for imports."""
    for last in (False, True):
        begun = time.process_time()
        check(case, compile_it)
        took = time.process_time() - begun
        if took <= limit:
            return
        assert not last, f"took {took:.1f} s"


class Journal:
    """Which batches passed with this seed; kept only in the long profile."""

    def __init__(self, name: str) -> None:
        self.path = OUT / f"fuzz-{name}-{SEED}.jsonl"

    def done(self) -> set[int]:
        """The numbers of the batches that passed before."""
        if not LONG or not self.path.exists():
            return set()
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {json.loads(line)["batch"] for line in lines if line.endswith("}")}

    def note(self, number: int, cases: int, seconds: float) -> None:
        """Write down that a batch passed, how many cases that were and how long it took."""
        if LONG:
            OUT.mkdir(exist_ok=True)
            entry = {"batch": number, "cases": cases, "seconds": round(seconds, 1)}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def rates(folder: Path, seed: int) -> Iterator[tuple[str, int, float]]:
    """Name, cases that passed and the seconds that they took, of each journal of a seed."""
    for path in sorted(folder.glob(f"fuzz-*-{seed}.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        cases = sum(entry.get("cases", 0) for entry in entries)
        seconds = sum(entry.get("seconds", 0.0) for entry in entries)
        yield path.stem.removeprefix("fuzz-").rpartition("-")[0], cases, seconds


# -- outcomes


def clones(args: Sequence[Any]) -> list[Any]:
    """Tensors in memory of their own with the same strides and offsets; those that share a
    storage share one again. Anything else is passed on."""
    storages: dict[int, torch.Tensor] = {}
    made: list[Any] = []
    for value in args:
        if not isinstance(value, torch.Tensor):
            made.append(value)
            continue
        whole = value.untyped_storage()
        if whole._cdata not in storages:
            memory = torch.empty(whole.nbytes(), dtype=torch.uint8)
            memory.untyped_storage().copy_(whole)
            storages[whole._cdata] = memory
        same = torch.empty(0, dtype=value.dtype)
        same.set_(
            storages[whole._cdata].untyped_storage(),
            value.storage_offset(), value.size(), value.stride(),
        )  # fmt: skip
        made.append(same)
    return made


@attrs.frozen
class Outcome:
    """What a call did: its outputs and the arguments after it.

    `sharing` has an entry per argument and output: the position (arguments first) of the first
    one with the same storage.
    """

    outputs: list[Any]
    arguments: list[Any]

    @property
    def sharing(self) -> list[int]:
        """For each argument and output, who has its storage first."""
        first: dict[int, int] = {}
        return [
            first.setdefault(v.untyped_storage()._cdata, k) if _has_memory(v) else k
            for k, v in enumerate((*self.arguments, *self.outputs))
        ]


def _has_memory(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 0


def observe(run: Callable[..., Any], args: Sequence[Any]) -> Outcome:
    """Call `run` on clones of `args`."""
    given = clones(args)
    outputs = run(*given)
    listed = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    return Outcome(listed, given)


def same(
    expected: Outcome,
    got: Outcome,
    *,
    what: str = "",
    strides: bool = True,
    sharing: bool = True,
    exact: bool = True,
) -> None:
    """Compare values (NaN equals NaN), dtypes and shapes of outputs and arguments, and with
    `strides` the outputs' strides, with `sharing` who shares storage and where in it.

    exact: bit for bit; else within TOLERANCE. Raises AssertionError.
    """
    assert len(expected.outputs) == len(got.outputs), f"{what}: number of outputs"
    pairs = [
        (f"{what}: {kind} {k}", a, b)
        for kind, olds, news in (
            ("output", expected.outputs, got.outputs),
            ("argument", expected.arguments, got.arguments),
        )
        for k, (a, b) in enumerate(zip(olds, news, strict=True))
    ]
    for name, a, b in pairs:
        _same_value(name, a, b, exact)
        if strides and isinstance(a, torch.Tensor) and a.numel():
            _same_strides(name, a, b)
    if sharing:
        assert expected.sharing == got.sharing, (
            f"{what}: storages are shared as {got.sharing}, expected {expected.sharing}"
        )
        _same_places(what, expected, got)


def _same_value(name: str, a: Any, b: Any, exact: bool) -> None:
    if not isinstance(a, torch.Tensor):
        assert a == b, f"{name}: {b}, expected {a}"
        return
    assert isinstance(b, torch.Tensor), f"{name} is no tensor"
    if a.dtype == b.dtype and torch.equal(a, b):
        return  # as mostly, and much faster to say
    tolerance = 0.0 if exact else TOLERANCE.get(a.dtype, 0.0)
    try:
        torch.testing.assert_close(
            b, a, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False
        )
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}\nexpected {a}\ngot {b}") from None


def _same_strides(name: str, a: torch.Tensor, b: torch.Tensor) -> None:
    for size, expected, got in zip(a.shape, a.stride(), b.stride(), strict=True):
        assert size == 1 or expected == got, f"{name}: strides {b.stride()}, expected {a.stride()}"


def _same_places(what: str, expected: Outcome, got: Outcome) -> None:
    """Offsets, counted from the first tensor with the same storage."""
    olds, news = ((*o.arguments, *o.outputs) for o in (expected, got))
    for k, first in enumerate(expected.sharing):
        if first == k or not _has_memory(olds[k]):
            continue
        places = [_byte_offset(v[k]) - _byte_offset(v[first]) for v in (olds, news)]
        assert places[0] == places[1], f"{what}: tensor {k} lies elsewhere in its storage"


def _byte_offset(value: torch.Tensor) -> int:
    return value.storage_offset() * value.element_size()


# -- programs through passes and compilers


class _AfterEachPass(Instrumentation):
    def __init__(self, compare: Callable[[str, Operation], None]) -> None:
        self.compare = compare

    def after_pass(self, pass_: Any, op: Operation, context: PassContext) -> None:
        while op.parent_op is not None:
            op = op.parent_op
        self.compare(pass_.name, op)


def each_pass(
    module: Any,
    pipeline: str,
    args: Sequence[Any],
    *,
    expected: Outcome | None = None,
    exact: bool = True,
    strides: bool = False,
    sharing: bool = False,
) -> Outcome:
    """Run a pipeline on `module` in place, and the interpreter after every pass: outcomes stay
    `expected` (without it, that of the module as it comes). Gives the last outcome."""
    reference = expected or observe(lambda *a: irc.run(module, *a), args)
    last = [reference]

    def compare(name: str, op: Operation) -> None:
        got = observe(lambda *a: irc.run(op, *a), args)
        same(reference, got, what=f"after {name}", exact=exact, strides=strides, sharing=sharing)
        last[0] = got

    manager = PassManager.parse(pipeline, verify="each", instrumentations=[_AfterEachPass(compare)])
    manager.run(module, PassContext(target="llvm"))
    return last[0]


def compiled(run: Callable[..., Any], args: Sequence[Any], backend: str = "irc") -> Outcome:
    """`run` through torch.compile, in a fresh session of it."""
    torch._dynamo.reset()
    with torch.no_grad():
        return observe(torch.compile(run, backend=backend, dynamic=False), args)


def built(module: Any, args: Sequence[Any]) -> Outcome:
    """The aten-level `module` (changed in place) lowered and run as machine code."""
    from irc.pipeline import lower

    lower(module)
    return observe(irc.build(module), args)
