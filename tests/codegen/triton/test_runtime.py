"""Sources in memory, compile results, launches' grids."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loop_programs import pointwise, softmax

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.ir.diagnostics import UserError
from irc.ir.symbols import symbol
from irc.passes.kernel.gpu.form import form_gpu_kernel

SOURCE = "import triton\n\nVALUE = 7\n\n\ndef double(x):\n    return 2 * x\n"


@pytest.mark.fault("K1", "K4")
def test_a_source_is_loaded_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file holds it that another could change, and no folder that another could open."""
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(runtime, "_modules", {})
    module = runtime.load(SOURCE)
    assert module.VALUE == 7 and runtime.load(SOURCE) is module
    assert not list(tmp_path.iterdir())
    linecache.checkcache()  # what it does for a file that is gone
    assert inspect.getsource(module.double) == "def double(x):\n    return 2 * x\n"


def test_an_error_in_a_source_shows_its_line() -> None:
    module = runtime.load("import triton\n\n\ndef fails():\n    raise ValueError('here')\n")
    with pytest.raises(ValueError, match="here") as caught:
        module.fails()
    assert "raise ValueError('here')" in "".join(traceback.format_exception(caught.value))


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
