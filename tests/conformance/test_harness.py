"""The conformance harness itself: faults that it must see, selection, resuming, the summary."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import attrs
import pytest
import torch

from tests.conformance import cases, compare, ops, worker
from tests.conformance.runner import ROOT, Runner


@pytest.mark.parametrize(
    ("backend", "case", "status"),
    [
        ("eager", "add/f32/backward/dynamic", "pass"),
        ("irc_test_wrong_value", "add/f32/forward/static", "wrong"),
        ("irc_test_wrong_dtype", "add/f32/forward/static", "metadata"),
        ("irc_test_wrong_strides", "add/f32/forward/static", "metadata"),
        ("irc_test_no_alias", "unsqueeze/i64/forward/static", "metadata"),
    ],
)
def test_faults_are_seen(backend: str, case: str, status: str) -> None:
    from tests.conformance import broken_backends  # noqa: F401  (registers the backends)

    result = worker.run_case(case, backend)
    assert result["status"] == status, result
    assert (result["samples"] == worker.SAMPLES) == (status == "pass")


def test_crash_and_hang_are_isolated() -> None:
    with Runner("irc_test_crash", preload="tests.conformance.broken_backends") as run:
        assert run.run("neg/f32/forward/static")["status"] == "crash"
        run.backend = "irc_test_hang_later"
        assert run.run("neg/f32/forward/static", samples=1)["status"] == "pass"
        run.timeout = 2.0
        assert run.run("neg/f32/forward/static", samples=1)["status"] == "timeout"


def test_the_backend_need_not_be_installed() -> None:
    """Without entry points torch knows irc only once it was imported."""
    program = (
        "import importlib.metadata as m; m.entry_points = lambda **_: m.EntryPoints(())\n"
        "import importlib, torch\n"
        "from tests.conformance import worker\n"
        "for name in worker.needed_modules('irc', ['json']): importlib.import_module(name)\n"
        "from torch._dynamo.backends import registry\n"
        "registry.lookup_backend('irc')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=120)
    assert worker.needed_modules("eager", ["json"]) == ["json"]


def test_copies_keep_layout_and_sharing() -> None:
    base = torch.arange(12.0).view(3, 4)
    byte = torch.tensor(2, dtype=torch.int8)
    originals = [base[1:, ::2], base.t(), torch.ones(1).expand(5), byte]
    made = compare.copies(originals)
    for original, copy in zip(originals, made, strict=True):
        assert torch.equal(original, copy) and original.stride() == copy.stride()
        assert original.storage_offset() == copy.storage_offset()
    made[0].zero_()
    assert made[1][0, 1] == 0 and base[1, 0] == 4


def test_nearer_to_float64_than_eager_passes() -> None:
    exact = torch.linspace(-3, 3, 1000, dtype=torch.float64)
    rounded = exact.bfloat16()
    off = (exact * 1.01).bfloat16()
    assert compare.no_farther(rounded, off, exact)
    assert not compare.no_farther(off, rounded, exact)
    with_nan = rounded.clone()
    with_nan[3] = float("nan")
    assert not compare.no_farther(with_nan, off, exact)


def test_what_is_accurate_but_farther_than_eager_is_told_apart() -> None:
    exact = torch.linspace(1, 2, 1000, dtype=torch.float64)

    def kind(mine: Any, eager: Any) -> str | None:
        calls = [compare.Call([(exact * k).bfloat16()], [], []) for k in (eager, mine)]
        found = compare.difference(*calls, lambda: compare.Call([exact], [], []))
        return found[0] if found else None

    one_off = torch.ones(1000)
    one_off[7] = 1.03

    assert kind(1.0, 1.05) is None
    assert kind(1.02, 1.0) == "values"
    assert kind(one_off, 1.0) == "rounding" and kind(1.0, one_off) is None
    assert kind(1.08, 1.05) == "rounding" and kind(1.11, 1.05) == "values"


def test_an_operator_that_is_told_its_dtype_has_a_float64_result() -> None:
    """As _softmax_backward_data, whose eager kernel on a GPU rounds grad * output to bf16 in
    between and refuses float64: a result that is rounded once is no wrong one."""
    case = "_softmax_backward_data/bf16/forward/static"
    sample = next(itertools.islice(worker.samples(case, 3), 1, None))
    grad, output = sample.tensors

    def precise(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        product = grad * output
        return product - output * product.sum(0, keepdim=True)

    def between(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        if grad.dtype == torch.float64:
            raise RuntimeError("expected input and grad types to match")
        product = (grad * output).float()
        return (product - output * product.sum(0, keepdim=True)).bfloat16()

    def once(graph: Any, inputs: Any) -> Any:
        return lambda grad, output: (precise(grad.float(), output.float()).bfloat16(),)

    wide = grad.double(), output.double()
    assert torch.allclose(sample.wide(*wide), precise(*wide), rtol=1e-12)
    told = attrs.evolve(sample, function=between)
    assert worker.run_sample(case, once, told) is None  # type: ignore[arg-type]
    blind = attrs.evolve(told, wide=between)
    assert worker.run_sample(case, once, blind)[0] == "values"  # type: ignore[arg-type, index]


def test_mutation_of_an_argument_is_compared() -> None:
    def call(function) -> compare.Call:
        return compare.call(function, [torch.zeros(3)], False, lambda x: x)

    expected = call(lambda x: x.add_(1) * 2)
    assert compare.difference(expected, call(lambda x: x.add_(1) * 2), None) is None
    found = compare.difference(expected, call(lambda x: (x + 1) * 2), None)
    assert found is not None and found[0] == "mutation"


def test_selection_is_nested_and_shards_cover() -> None:
    names = [f"op{k}/f32/forward/static" for k in range(3000)]
    small = {n for n in names if cases.in_fraction(n, 0.05)}
    assert small < {n for n in names if cases.in_fraction(n, 0.2)} and 100 < len(small) < 200
    homes = [[s for s in range(3) if cases.in_shard(n, s, 3)] for n in names]
    assert all(len(home) == 1 for home in homes)


def test_results_survive_a_cut_off_line_and_are_summarized(tmp_path) -> None:
    path = tmp_path / "results.jsonl"
    good = {"case": "add/f32/forward/static", "status": "pass", "aten_calls": 0}
    bad = {"case": "mul/f32/forward/static", "status": "wrong", "message": "off", "aten_calls": 1}
    path.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n" + '{"case": "cut')
    results = ops.read_results(path)
    assert set(results) == {good["case"], bad["case"]}
    text, code = ops.summarize(results, {good["case"]: "pass", bad["case"]: "pass"})
    assert code == 1 and "1 pass (50.00%)" in text and "1 of 2 (50.0%)" in text
    text, code = ops.summarize(results, {good["case"]: "pass", bad["case"]: "error"})
    assert code == 0 and "1 pass (100.00%)" in text


def test_names_of_cases() -> None:
    assert cases.parse("a/b@c/f32/forward/static")[0] == "a/b@c"
    with pytest.raises(ValueError, match="names no case"):
        cases.parse("add/f64/forward/static")
