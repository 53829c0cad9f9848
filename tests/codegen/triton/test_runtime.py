"""Sources on disk, compile results, launches' grids."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loop_programs import pointwise, softmax

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.ir.diagnostics import UserError
from irc.ir.symbols import symbol
from irc.passes.kernel.gpu import form_gpu_kernel

SOURCE = "import triton\n\nVALUE = 7\n"


def test_source_is_written_once_to_the_users_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path))
    path = runtime.source_path(SOURCE)
    before = path.stat().st_mtime_ns
    assert runtime.source_path(SOURCE) == path
    assert path.stat().st_mtime_ns == before
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert runtime.load(SOURCE).VALUE == 7


def test_changed_file_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path))
    path = runtime.source_path(SOURCE)
    path.write_text("raise SystemExit('foreign')\n")
    assert runtime.source_path(SOURCE).read_text() == SOURCE


def test_directory_open_to_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path))
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton").chmod(0o777)
    with pytest.raises(UserError, match="can be written by others"):
        runtime.source_path(SOURCE)


def test_grid_and_scalars_follow_the_sizes() -> None:
    func = form_gpu_kernel(pointwise(symbol("s0"), symbol("s1")).op, None, "k")
    sizes = {"s0": 100, "s1": 50}
    assert runtime.grid_of(func, sizes) == 5
    assert runtime.scalars_of(func, sizes) == [100, 50]
    assert runtime.grid_of(func, {"s0": 0, "s1": 50}) == 0
    assert list(runtime.signature_of(func).values()) == ["*fp32", "*fp32", "i64", "i64"]


def test_flushing_of_denormals_is_off() -> None:
    func = form_gpu_kernel(pointwise(64, 64).op, None, "k")
    compiled = runtime.compile_for(
        emit_kernel(func), "k", runtime.signature_of(func), **runtime.launch_options(func)
    )
    # (libdevice's erf asks for it in its own exp2, where no denormal can appear)
    assert "fma.rn.ftz" not in compiled["ptx"] and "mul.ftz" not in compiled["ptx"]


def test_powers_take_the_short_instruction() -> None:
    """The one that flushes denormals, which the exp of f32 is built on."""
    func = form_gpu_kernel(softmax(64, 64).op, None, "k")
    compiled = runtime.compile_for(
        emit_kernel(func), "k", runtime.signature_of(func), **runtime.launch_options(func)
    )
    assert "ex2.approx.ftz.f32" in compiled["ptx"] and "ex2.approx.f32" not in compiled["ptx"]


def test_failure_in_the_interpreter_is_told() -> None:
    job = runtime.Job("import triton\n\nk = 5\n", "k", 1, ())
    with pytest.raises(UserError, match="while running k, job 0"):
        runtime.run_interpreted([job])
