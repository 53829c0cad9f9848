"""The record of the machine: all that a pass may ask, and all of it in the keys."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
import torch

import irc
from irc.cache.keys import key_of
from irc.ir.passes import PassContext
from irc.runtime import program_cache
from irc.runtime.build_program import BuildOptions
from irc.target import Target, target_of
from irc.target.cpu import TargetFeatures

ROOT = Path(irc.__file__).parent
#: Names that tell something of the machine or of the process's settings.
QUESTIONS = frozenset("""
    get_num_threads cpu_count sched_getaffinity get_host_cpu_name get_host_cpu_features environ
    getenv get_device_capability get_device_properties get_device_name allow_tf32 fp32_precision
    get_float32_matmul_precision mkldnn is_bf16_supported
""".split())


def threads(count: int) -> None:
    torch.set_num_threads(count)


def library(on: bool) -> None:
    torch.backends.mkldnn.enabled = on  # type: ignore[assignment]


def precise(on: bool) -> None:
    torch.backends.cudnn.allow_tf32 = on


@pytest.mark.fault("K3")
@pytest.mark.parametrize(
    "change, values",
    [(threads, (3, 1)), (library, (False, True)), (precise, (False, True)),
     (torch.set_default_dtype, (torch.float64, torch.float32)),
     (torch.set_float32_matmul_precision, ("high", "highest"))],
)  # fmt: skip
def test_each_setting_is_in_the_keys(change: Callable, values: tuple) -> None:
    def key() -> str:
        return program_cache.module_key(irc.parse("func.func @main() {func.return}"),
                                        BuildOptions())  # fmt: skip

    other, usual = values
    change(usual)
    before = str(Target.host()), key()
    try:
        change(other)
        assert str(Target.host()) != before[0] and key() != before[1]
    finally:
        change(usual)
    assert (str(Target.host()), key()) == before


def test_the_text_tells_every_field() -> None:
    base = Target(TargetFeatures.avx2())
    changed = {
        "features": TargetFeatures.neon(), "threads": 5, "library": False,
        "library_elements": ("f32", "bf16"), "default_float": "float64",
        "product_precision": "high", "tf32_convolutions": False,
    }  # fmt: skip
    assert changed.keys() == attrs.fields_dict(Target).keys()
    texts = {str(attrs.evolve(base, **{name: value})) for name, value in changed.items()}
    assert len(texts | {str(base)}) == len(changed) + 1
    assert all(f"{name} = " in str(base) for name in changed)


def test_a_context_asks_once() -> None:
    context = PassContext()
    assert target_of(context) is target_of(context) == Target.host()
    given = attrs.evolve(Target.host(), threads=77)
    assert target_of(PassContext(machine=given)) is given


@pytest.mark.fault("K3")
def test_a_second_thread_count_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 1x1 convolution of few pixels is a kernel of ours for one thread only."""
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    torch.manual_seed(0)
    model, x = torch.nn.Conv2d(64, 64, 1).eval(), torch.randn(1, 64, 12, 12)
    expected = model(x).detach()
    irc.metrics.reset()
    before, kernels = torch.get_num_threads(), []
    try:
        for count in (8, 1):
            torch.set_num_threads(count)
            torch._dynamo.reset()
            with torch.no_grad():
                compiled = torch.compile(model, backend="irc", options={"freezing": True})
                torch.testing.assert_close(compiled(x), expected, atol=1e-5, rtol=1e-5)
            kernels.append(irc.metrics.kernels - sum(kernels))
    finally:
        torch.set_num_threads(before)
    assert kernels[0] < kernels[1] and irc.metrics.cache_hits == 0


def questions(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in QUESTIONS):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in QUESTIONS:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"


@pytest.mark.fault("K3")
def test_no_pass_asks_the_machine() -> None:
    """What decides must be a field of `Target`, or the keys don't tell two programs apart."""
    asked = [
        line
        for folder in ("passes", "analysis", "dialects", "ir", "validation")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in questions(path)
    ]
    assert asked == []
    assert key_of(str(Target.host())) == key_of(str(Target.host()))
