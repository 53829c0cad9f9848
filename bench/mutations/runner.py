"""Tests in forked processes: what is imported once (torch, pytest) costs a mutant nothing.

The parent imports everything that tests need but the compiler itself; each child changes into a
copy of the tree, imports the compiler from there, and runs a choice of tests. A child has a cache
folder of its own, a limit of processor time, and a process group that dies with it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from bench.mutations.rooms import ROOT

PRELOADED = (
    "torch", "torch._dynamo", "torch._functorch.aot_autograd", "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.symbolic_shapes", "torch._decomp", "torch._refs", "torch.testing",
    "torch._higher_order_ops", "torch.export", "numpy", "sympy", "hypothesis",
    "hypothesis.strategies", "pytest", "_pytest.python", "_pytest.assertion.rewrite",
    "_hypothesis_pytestplugin", "llvmlite.binding", "llvmlite.ir", "filecheck.matcher",
    "filecheck.parser", "filecheck.options", "filecheck.finput", "mpmath", "networkx",
)  # fmt: skip
#: Modules that a child imports from its own tree.
OURS = ("irc", "tests", "bench")
COPIED = ("irc", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "Makefile")
MEMORY = 16 << 30
WALL_SECONDS = 1_200.0


def preload() -> None:
    """Import what every child needs and no mutant changes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def clear(folder: Path) -> None:
    """Remove copies of the tree."""
    shutil.rmtree(folder, ignore_errors=True)


def make_tree(target: Path) -> Path:
    """A copy of the working tree, with the compiled files of Python beside the sources."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        elif source.exists():
            shutil.copy2(source, target / name)
    return target


@contextlib.contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """A file with another text for a while; nothing compiled of either text stays behind."""
    before = file.read_text(encoding="utf-8")
    try:
        _write(file, text)
        yield
    finally:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


@attrs.frozen
class Outcome:
    """How a child ended: pytest's exit code (or minus the signal), and what it left behind."""

    code: int
    report: dict[str, Any]
    seconds: float
    output: str

    @property
    def timed_out(self) -> bool:
        """Whether the child used up its time."""
        return self.code in (-signal.SIGXCPU, -signal.SIGKILL)


@attrs.define
class Child:
    """A running child and where it writes."""

    pid: int
    folder: Path
    started: float
    until: float

    def poll(self) -> Outcome | None:
        """Its outcome once it has ended; it is killed when its wall time is over."""
        if time.monotonic() > self.until:
            self.kill()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.kill()  # what it started and left
        report: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        output = (self.folder / "output").read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(self.folder, ignore_errors=True)
        seconds = time.monotonic() - self.started
        return Outcome(os.waitstatus_to_exitcode(status), report, seconds, output)

    def kill(self) -> None:
        """Kill its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def start(
    tree: Path,
    files: Sequence[str],
    plugin: Callable[[Path], Any],
    cpu_seconds: float,
    wall_seconds: float = WALL_SECONDS,
    first_failure: bool = True,
) -> Child:
    """Run the tests of `files` in a child, in `tree`. `plugin` makes, in the child, the pytest
    plugin that chooses and watches; it gets the path of the report that it may write."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _child(tree, folder, files, plugin, cpu_seconds, first_failure)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    now = time.monotonic()
    return Child(pid, folder, now, now + wall_seconds)


def _child(
    tree: Path,
    folder: Path,
    files: Sequence[str],
    plugin: Callable[[Path], Any],
    cpu_seconds: float,
    first_failure: bool,
) -> int:
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    limit = int(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    _enter(tree, folder)
    import pytest

    words = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", "-m", "not slow"]
    if first_failure:
        words.append("-x")
    return int(pytest.main([*words, *files], plugins=[plugin(folder / "report.json")]))


def _enter(tree: Path, folder: Path) -> None:
    """Make `tree` the place from which the compiler and its tests are imported."""
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    for variable, name in (("IRC_CACHE_DIR", "cache"), ("TMPDIR", "tmp")):
        (folder / name).mkdir(mode=0o700)
        os.environ[variable] = str(folder / name)
    tempfile.tempdir = None
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    sys.path[:] = [str(tree), *[p for p in sys.path if p not in ("", str(ROOT))]]
    for name in [n for n in sys.modules if n.split(".")[0] in OURS]:
        del sys.modules[name]
    importlib.invalidate_caches()
