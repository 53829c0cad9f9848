"""The record of a target: all that a pass may ask, and all of it in the keys; and who asks the
machine."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

import irc
from irc.cache.keys import key_of
from irc.runtime import program_cache
from irc.runtime.build_program import BuildOptions
from irc.target import Target
from irc.target.attribute import carry
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve, figures_of
from irc.target.gpu import GpuFeatures
from irc.target.speeds import Speeds

ROOT = Path(irc.__file__).parent


def threads(count: int) -> None:
    torch.set_num_threads(count)


def library(on: bool) -> None:
    torch.backends.mkldnn.enabled = on  # type: ignore[assignment]


def precise(on: bool) -> None:
    torch.backends.cudnn.allow_tf32 = on


def key(target: Target) -> str:
    module = irc.parse("func.func @main() {func.return}")
    carry(module, target)
    return program_cache.module_key(module, BuildOptions())


@pytest.mark.fault("K3")
@pytest.mark.parametrize(
    "change, values",
    [(threads, (3, 1)), (library, (False, True)), (precise, (False, True)),
     (torch.use_deterministic_algorithms, (True, False)),
     (torch.set_default_dtype, (torch.float64, torch.float32)),
     (torch.set_float32_matmul_precision, ("high", "highest"))],
)  # fmt: skip
def test_each_setting_is_in_the_keys(change: Callable, values: tuple) -> None:
    other, usual = values
    change(usual)
    before = Target.host()
    try:
        change(other)
        assert Target.host() != before and key(Target.host()) != key(before)
    finally:
        change(usual)
    assert Target.host() is before


def other_value(cls: type, figure: str) -> Any:
    """A value that a figure may have and hasn't."""
    usual = getattr(cls, figure)
    if isinstance(usual, tuple):
        return tuple(2 * number for number in usual)
    most = figures_of(cls)[figure].most
    return 2 * usual if 0 < 2 * usual <= most else usual // 2 or 1


def others(cls: type) -> dict[str, Any]:
    """Of each figure another value."""
    return {figure: other_value(cls, figure) for figure in figures_of(cls)}


def changed_fields(base: Target) -> dict[str, Target]:
    """For every field a target that has another value of it."""
    processor: dict[str, Any] = {
        "triple": "x86_64-unknown-freebsd", "chip": "znver4", "sets": ("avx",), "vector_bits": 128,
        "fast_division": True, "parallel": 33, "operations_per_byte": (9, 8), "warp": 64,
        "channels_last": ("f16",),
        **others(type(base.processor)),
    }  # fmt: skip
    common: dict[str, Any] = {
        "threads": 5, "library": ("bf16", "f32"), "default_float": "float64",
        "product_precision": "high", "tf32_convolutions": False,
        "deterministic": True,
        **others(Target),
    }  # fmt: skip
    if base.is_gpu:
        processor["chip"] = "sm_89"
    own, shared = (
        {*figures_of(cls), *(f.name for f in attrs.fields(cls) if f.init)} - {"unusual"}
        for cls in (type(base.processor), Target)
    )
    assert {*common, "processor"} == shared and own <= {*processor}
    made = {name: evolve(base, **{name: value}) for name, value in common.items()}
    for name in own:
        other = evolve(base.processor, **{name: processor[name]})
        made[name] = evolve(base, processor=other)
    return made


@pytest.mark.parametrize("name", ["avx2", "sm_90"])
def test_every_field_is_in_the_text_and_in_the_key(name: str) -> None:
    base = Target.named(name)
    changed = changed_fields(base)
    assert str(base) == f"#irc.target<{name}>"
    for field, target in changed.items():
        assert f", {field} = " in str(target) and Target.named(str(target)) == target
    everything = [base, *changed.values()]
    assert len({str(t) for t in everything}) == len(set(everything)) == len(everything)
    assert len({key(t) for t in everything}) == len(everything)


@pytest.mark.parametrize("name", ["avx2", "sm_90"])
def test_a_figure_that_is_not_usual_survives(name: str) -> None:
    """It is an attribute beside those that attrs knows."""
    base = Target.named(name)
    usual = evolve(base.processor, launch=base.processor.launch)
    assert usual == base.processor and usual.unusual == ()
    other = evolve(base, unlocked_work=7, processor=evolve(usual, launch=5, serial=9))
    assert evolve(other.processor, serial=usual.serial) == evolve(usual, launch=5)
    for copied in (copy.copy(other), copy.deepcopy(other), evolve(other, threads=other.threads)):
        assert copied == other and hash(copied) == hash(other) and str(copied) == str(other)
        assert (copied.processor.launch, copied.processor.serial, copied.unlocked_work) == (5, 9, 7)
    assert Speeds(launch=5).launch == copy.copy(Speeds(launch=5)).launch == 5
    assert Speeds().launch == Speeds.launch != 5
    with pytest.raises(ValueError, match="launch is -1, not from 0"):
        Speeds(launch=-1)
    with pytest.raises(ValueError, match="Speeds has no figure 'lunch'"):
        Speeds(lunch=1)
    with pytest.raises(TypeError, match="lunch"):
        evolve(base, lunch=1)


def test_a_program_without_a_target_has_no_key() -> None:
    with pytest.raises(irc.InternalError, match="carries none"):
        program_cache.module_key(irc.parse("func.func @main() {func.return}"), BuildOptions())


def test_questions() -> None:
    cpu, gpu = Target.named("avx2"), Target.named("sm_90")
    assert not cpu.is_gpu and gpu.is_gpu
    assert cpu.vector_bits == 256 and cpu.lanes(irc.ir.types.f32) == 8
    assert cpu.idles(16) and not cpu.idles(17) and gpu.idles(128) and not gpu.idles(129)
    assert cpu.fills(32) and not cpu.fills(31) and gpu.fills(256) and not gpu.fills(255)
    assert gpu.operations_per_byte(16) == 295 and gpu.operations_per_byte(32) == 148
    assert gpu.gpu.capability == 90 and cpu.features == TargetFeatures.avx2()
    for ask in (lambda: gpu.vector_bits, lambda: cpu.gpu):
        with pytest.raises(irc.UserError, match="the target is a"):
            ask()
    with pytest.raises(ValueError, match="chip"):
        GpuFeatures("rtx")


@pytest.mark.fault("K3")
def test_a_second_thread_count_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of a 1x1 convolution has blocks of rows and columns for each thread."""
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    torch.manual_seed(0)
    model, x = torch.nn.Conv2d(64, 64, 1).eval(), torch.randn(1, 64, 12, 12)
    expected = model(x).detach()
    irc.metrics.reset()
    before = torch.get_num_threads()
    try:
        for count in (8, 1):
            torch.set_num_threads(count)
            torch._dynamo.reset()
            with torch.no_grad():
                compiled = torch.compile(model, backend="irc", options={"freezing": True})
                torch.testing.assert_close(compiled(x), expected, atol=1e-5, rtol=1e-5)
    finally:
        torch.set_num_threads(before)
    assert irc.metrics.kernels == 2 and irc.metrics.cache_hits == 0


# -- who asks the machine

#: Names that tell something of the machine or of the process's settings.
QUESTIONS = frozenset("""
    get_num_threads cpu_count sched_getaffinity get_host_cpu_name get_host_cpu_features environ
    getenv get_device_capability get_device_properties get_device_name allow_tf32 fp32_precision
    get_float32_matmul_precision mkldnn is_bf16_supported get_default_dtype get_process_triple
    _get_fp32_precision_getter _get_deterministic_algorithms are_deterministic_algorithms_enabled
    machine processor_name Target.host TargetFeatures.host TargetFeatures.generic
""".split())
#: The edges, what each asks, and why: what is asked here decides no text's meaning.
EDGES = {
    "frontend/backend.py": "Target.host",  # torch.compile: what a graph is made for
    # Whether a backward may run, as AOTAutograd asks.
    "frontend/training_calls.py": "are_deterministic_algorithms_enabled",
    "frontend/tracing.py": "Target.host get_default_dtype",  # irc.trace, in the program's text
    "frontend/decompositions/table.py": "get_default_dtype",  # while torch traces
    "frontend/fx/stride_order.py": "get_default_dtype",  # while torch traces
    "interp/core.py": "get_default_dtype",  # sets it for its own computing, and back
    "runtime/build_program.py": "TargetFeatures.host",  # whether code may run here
    "runtime/native.py": "TargetFeatures.host",  # support functions of this process
    "codegen/llvm/jit.py": "TargetFeatures.host",  # the linker of this process
    "codegen/llvm/target.py": "get_process_triple",  # which of LLVM's targets to load
    "runtime/padded_matmul.py": "Target.host get_device_name get_float32_matmul_precision",
    # Whether a graph of library calls is still right.
    "boundary/cuda_generator.py": "get_device_properties",  # how a kernel of torch's draws there
    "runtime/library_modes.py": "_get_fp32_precision_getter _get_deterministic_algorithms",
    "boundary/cuda_blas_lt.py": "environ",  # torch's own switch of cuBLASLt, in this process
    # Whether the function stands for torch's settings, which it is tested under.
    "boundary/cuda_convolutions.py": "are_deterministic_algorithms_enabled",
    "boundary/torch_abi.py": "environ",  # IRC_FORCE_SLOW_HOST: how this process calls
    "tuning/measuring.py": "get_num_threads",  # sets it for what it measures, and back
    "tuning/pool.py": "environ",  # of the workers
    "tuning/worker.py": "environ",  # which device it was given
    # What is measured runs here.
    "tuning/devices.py": "Target.host get_device_name get_device_properties environ",
    "tuning/builds.py": "sched_getaffinity",
    "tuning/store.py": "environ",  # where the remote store is
    "tools/cache_command.py": "Target.host",  # prints it
    "tools/bisect_command.py": "Target.host",  # whether the whole program can run here
    "cache/store.py": "environ",  # where the cache lies
    "cache/limits.py": "environ",  # how large it may become
    "codegen/triton/runtime.py": "environ",  # whether Triton interprets, in this process
    "codegen/triton/interpreted.py": "environ",
    "codegen/triton/compiling.py": "environ",
    "codegen/triton/workers.py": "environ sched_getaffinity",  # how many processes compile
}


def questions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        for name in (node.attr, f"{owner}.{node.attr}"):
            if name in QUESTIONS:
                yield name, node.lineno


@pytest.mark.fault("K3")
def test_only_the_edges_ask_the_machine() -> None:
    """What decides must be a field of `Target`, or a text means different programs."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith("target/"):
            for name, line in questions(path):
                assert name in EDGES.get(place, "").split(), f"{place}:{line}: {name}"
                found.setdefault(place, set()).add(name)
    assert {place: set(names.split()) for place, names in EDGES.items()} == found
    assert key_of(str(Target.host())) == key_of(str(Target.host()))


def test_nobody_compares_a_targets_name() -> None:
    names = {"llvm", "triton", "avx2", "avx512", "neon", "sm_80", "sm_90", "x86_64", "aarch64"}
    form = {"tools/emit.py", "codegen/llvm/kernel_emitter.py"}  # forms of text, of that name
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place in form or place.startswith("target/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                known = [s.value for s in sides if isinstance(s, ast.Constant)]
                assert not names.intersection(v for v in known if isinstance(v, str)), (
                    f"{place}:{node.lineno}"
                )


def test_one_place_compares_kinds() -> None:
    """Whether a kernel or a schedule is a gpu's is asked of it."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place in ("dialects/kernel/ops.py", "dialects/loop/ops.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute):
                others = [s.value for s in node.comparators if isinstance(s, ast.Constant)]
                named = node.left.attr == "target" and {"cpu", "gpu"}.intersection(others)
                assert not named, f"{place}:{node.lineno}: ask is_gpu"
