"""Programs that leave the process: exported ones come in, compiled ones go out."""

from __future__ import annotations

import copy
import os
import pickle
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

import irc
from irc.runtime import metrics
from tests.backends import needs_backend

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [needs_backend, pytest.mark.fault("C10")]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 16), nn.BatchNorm1d(16)

    def forward(self, x, shift=None):
        y = torch.relu(self.norm(self.linear(x)))
        return y if shift is None else y + shift


def seeded() -> nn.Module:
    torch.manual_seed(0)
    return Model().eval()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and none of torch's notes of what was compiled."""
    from torch.compiler._cache import CacheArtifactManager

    folder = tmp_path / "cache"
    monkeypatch.setenv("IRC_CACHE_DIR", str(folder))
    torch._dynamo.reset()
    with CacheArtifactManager.with_fresh_cache():
        yield folder
    torch._dynamo.reset()


def test_an_exported_program_is_compiled():
    model = seeded()
    x = torch.randn(4, 8)
    dynamic = {"x": {0: torch.export.Dim("b", min=2, max=64)}}
    program = torch.export.export(model, (x,), dynamic_shapes=dynamic)
    compiled = irc.compile(program)
    with torch.no_grad():
        for rows in (4, 7, 2):
            given = torch.randn(rows, 8)
            torch.testing.assert_close(compiled(given), model(given), rtol=1e-5, atol=1e-5)
    text = str(irc.trace(program))
    assert "sym.bind_size" in text and "parameter" in text


def test_a_static_exported_program_with_keywords():
    model = seeded()
    given, shift = torch.randn(4, 8), torch.randn(16)
    program = torch.export.export(model, (given,), {"shift": shift})
    compiled = irc.compile(program)
    with torch.no_grad():
        torch.testing.assert_close(
            compiled(given, shift=shift), model(given, shift=shift), rtol=1e-5, atol=1e-5
        )
    assert "sym.bind_size" not in str(irc.trace(program))


@pytest.mark.parametrize("away", [pickle.dumps, copy.deepcopy])
def test_an_executable_says_how_it_is_kept(away):
    module = irc.trace(torch.relu, (torch.randn(3),))
    irc.PassManager.parse("lower-to-cpu").run(module)
    with pytest.raises(TypeError, match=r"irc\.print_op.*save_cache_artifacts"):
        away(irc.build(module))


def test_torch_bundles_hold_the_programs(cache, tmp_path, monkeypatch):
    model = seeded()
    x = torch.randn(4, 8)
    torch.compile(model, backend="irc")(x).sum().backward()
    data, info = torch.compiler.save_cache_artifacts()
    assert len(info.artifacts["irc"]) >= 2, "forward and backward"
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "other"))
    loaded = torch.compiler.load_cache_artifacts(data)
    assert sorted(loaded.artifacts["irc"]) == sorted(info.artifacts["irc"])
    torch._dynamo.reset()
    metrics.reset()
    torch.compile(model, backend="irc")(x).sum().backward()
    assert metrics.cache_hits >= 2 and metrics.cache_misses == 0


@pytest.mark.skipif(
    not hasattr(torch._functorch.config, "force_autograd_cache"), reason="torch can't save"
)
def test_a_function_that_torch_saves(cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import sys
        import torch
        import irc

        config = torch._dynamo.config.patch(enable_aot_compile=True)

        def function(x, w):
            return torch.tanh(x @ w).sum(1), x + 1

        given = torch.arange(12.0).reshape(3, 4), torch.ones(4, 2, requires_grad=True)

        def save(path):
            with config:
                made = torch.compile(function, backend="irc", fullgraph=True,
                                     options={"emulate_rounding": True}).aot_compile((given, {}))
            made.save_compiled_function(path)
            check(made)

        def load(path):
            with open(path, "rb") as file, config:
                check(torch.compiler.load_compiled_function(file))

        def check(made):
            for a, b in zip(made(*given), function(*given), strict=True):
                torch.testing.assert_close(a, b)
            (mine,) = torch.autograd.grad(made(*given)[0].sum(), given[1])
            (eager,) = torch.autograd.grad(function(*given)[0].sum(), given[1])
            torch.testing.assert_close(mine, eager)

        if __name__ == "__main__":
            load(sys.argv[1])
        """)
    )
    saved = str(tmp_path / "saved.pt")
    runpy.run_path(str(program), run_name="program")["save"](saved)
    run = subprocess.run(
        [sys.executable, str(program), saved],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
