"""MLIR's own tool reads the generic form of programs before and after passes, and gives it back.

The programs: those that show the passes, and five models after every pass down to host programs.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir import parse, print_op  # noqa: E402
from irc.ir.equality import first_difference  # noqa: E402
from irc.ir.passes import Instrumentation, PassManager  # noqa: E402
from tests.ir_files import DIRECTIVE, run_opt  # noqa: E402

PASSES = Path(__file__).resolve().parents[1] / "passes"
NAMES = sorted(str(path.relative_to(PASSES)) for path in PASSES.rglob("*.mlir"))
IREE_OPT = shutil.which("iree-opt") or str(Path(sys.executable).parent / "iree-opt")
SEPARATOR = "// -----\n"


def before_and_after(name: str) -> list[str]:
    """A program as it stands in its file and as its passes leave it, in generic form."""
    path = PASSES / name
    run = next(words for kind, words in DIRECTIVE.findall(path.read_text()) if kind == "RUN")
    made = []
    for words in ([], shlex.split(run)):
        code, output, errors = run_opt([str(path), "--generic", *words])
        assert code == 0, errors
        made.append(output)
    return made


def check_mlir_gives_back(texts: list[str], folder: Path, resources=None) -> None:
    """iree-opt reads all of these programs and prints equal ones."""
    path = folder / "programs.mlir"
    path.write_text(SEPARATOR.join(texts))
    done = subprocess.run(
        [IREE_OPT, "--allow-unregistered-dialect", "--mlir-print-op-generic",
         "--split-input-file", str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(SEPARATOR)
    assert len(printed) == len(texts)
    for given, back in zip(texts, printed, strict=True):
        module = parse(given, resources=resources)
        assert first_difference(module, parse(back, resources=resources)) is None


needs_iree = pytest.mark.skipif(not Path(IREE_OPT).exists(), reason="needs iree-opt")


@needs_iree
def test_mlir_reads_the_programs_of_the_passes(tmp_path):
    check_mlir_gives_back([text for name in NAMES for text in before_and_after(name)], tmp_path)


class RoundTrips(Instrumentation):
    """Checks after every pass that both forms parse to the same program; keeps the generic ones."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def after_pass(self, pass_, op, context):
        module = op.parent_op or op
        for generic in (False, True):
            text = print_op(module, generic=generic)
            again = parse(text, resources=module.resources)
            assert first_difference(module, again) is None, pass_.name
            assert print_op(again, generic=generic) == text, pass_.name
        if not self.texts or self.texts[-1] != text:
            self.texts.append(text)


class Mlp(torch.nn.Module):
    """Two linear layers with a norm and a softmax."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
        )

    def forward(self, x):
        return self.layers(x).softmax(-1)


class ConvolutionNet(torch.nn.Module):
    """A convolution, a batch norm, pooling."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        y = torch.relu(self.norm(self.convolution(x)))
        return torch.nn.functional.max_pool2d(y, 2).mean((2, 3))


class Attention(torch.nn.Module):
    """Causal attention over an embedding."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 8)
        self.qkv = torch.nn.Linear(8, 24)

    def forward(self, tokens):
        q, k, v = self.qkv(self.table(tokens)).chunk(3, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Recurrence(torch.nn.Module):
    """A few steps that update a buffer in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2, 6))

    def forward(self, x):
        for step in range(3):
            self.state.mul_(0.5).add_(x[:, step])
        return self.state.cumsum(1)


class Mixture(torch.nn.Module):
    """Sorting, indexing and integers."""

    def forward(self, x):
        order = x.sum(1).argsort()
        return torch.where(x[order] > 0, x, -x).amax(0), order + 1


MODELS = {
    "mlp": (Mlp, lambda: torch.randn(5, 8)),
    "convolution net": (ConvolutionNet, lambda: torch.randn(2, 3, 6, 6)),
    "attention": (Attention, lambda: torch.randint(0, 11, (2, 5))),
    "recurrence": (Recurrence, lambda: torch.randn(2, 3, 6)),
    "mixture": (Mixture, lambda: torch.randn(4, 6)),
}


@needs_iree
@pytest.mark.parametrize("dynamic", [
    pytest.param(False, id="static"), pytest.param(True, id="dynamic", marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize("name", MODELS)
def test_models_come_back_after_every_pass(name, dynamic, tmp_path):
    make, argument = MODELS[name]
    torch.manual_seed(0)
    with torch.no_grad():
        module = irc.trace(make().eval(), (argument(),), dynamic=dynamic)
    hook = RoundTrips()
    PassManager.parse("lower-to-cpu", verify="each", instrumentations=[hook]).run(module)
    assert len(hook.texts) > 8
    check_mlir_gives_back(hook.texts, tmp_path, module.resources)
