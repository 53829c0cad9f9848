"""From Triton source to code that runs: loading, compiling without a GPU, interpreting, launching.

Triton reads a jit function's text back from its file; a source is loaded from memory, and
`linecache` gives Triton the text. Only sources that `irc.codegen.triton.emitter` made are meant to
come here: loading one runs it as Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from irc.cache.keys import key_of
from irc.codegen.triton.compiling import imported, supported_options
from irc.codegen.triton.functions import TRITON_NAMES
from irc.codegen.triton.scalar_ops import short_name
from irc.dialects import kernel
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, evaluate
from irc.target.gpu import GpuFeatures

SM_90 = GpuFeatures.sm_90()

_modules: dict[str, ModuleType] = {}
_lock = threading.Lock()

# Triton's names of element types in signatures.
_SIGNATURE = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
    **{f"i{w}": f"i{w}" for w in (1, 8, 16, 32, 64)},
    **{f"ui{w}": f"u{w}" for w in (8, 16, 32, 64)},
}  # fmt: skip


def load(source: str) -> ModuleType:
    """The module of a source; equal sources give one module."""
    name = module_name(source)
    with _lock:
        module = _modules.get(name)
        if module is None:
            module = _modules[name] = imported(source, name)
        return module


def module_name(source: str) -> str:
    """What a source's module is called in every process: machine code says whose line it is of."""
    return f"irc_triton_{key_of(source)[:32]}"


def signature_of(func: kernel.KernelFuncOp) -> dict[str, str]:
    """Triton's type of each parameter: `{"p0": "*fp32", "n1": "i64"}`."""
    signature = {}
    for position, argument in enumerate(func.block.arguments):
        type_: Any = argument.type
        if isinstance(type_, kernel.PointerType):
            signature[f"p{position}"] = "*" + _SIGNATURE[short_name(type_.element)]
        else:
            signature[f"n{position}"] = "i64"
    return signature


def launch_options(func: kernel.KernelFuncOp) -> dict[str, Any]:
    """num_warps and num_stages of a kernel, and whether it begins early; `supported_options` adds
    what all kernels want."""
    options = {"num_warps": func.num_warps or 4, "num_stages": func.num_stages or 1}
    return {**options, "launch_pdl": True} if func.early else options


def refuse_interpreter(what: str) -> None:
    """Raise UserError in a process where Triton only interprets: `what` needs another."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise UserError(f"{what} needs a process without TRITON_INTERPRET=1")


def compile_for(
    source: str,
    name: str,
    signature: Mapping[str, str],
    gpu: GpuFeatures = SM_90,
    *,
    aligned: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Compile one kernel of a source for a GPU that need not be there (the chip and the warp of
    `gpu`).

    `signature` as from `signature_of`; `aligned`: pointers are multiples of 16 bytes. Options are
    Triton's (`num_warps`, `num_stages`). Gives ttir, ttgir, llir, ptx (text), cubin (bytes),
    shared (bytes), num_warps, and registers and spills where the assembler tells them.
    """
    refuse_interpreter("compile_for")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(load(source), name)
    hints = {}
    if aligned:
        for position, type_ in enumerate(signature.values()):
            if type_.startswith("*"):
                hints[(position,)] = [["tt.divisibility", 16]]
    text = ASTSource(function, dict(signature), {}, hints)
    compiled = triton.compile(
        text, target=GPUTarget("cuda", gpu.capability, gpu.warp), options=supported_options(options)
    )
    asm = compiled.asm
    outcome: dict[str, Any] = {
        key: asm[key] for key in ("ttir", "ttgir", "llir", "ptx", "cubin") if key in asm
    }
    outcome["shared"] = compiled.metadata.shared
    outcome["num_warps"] = compiled.metadata.num_warps
    outcome["local_memory_bytes"] = _local_bytes(outcome.get("ptx", ""))
    return outcome


def _local_bytes(ptx: str) -> int:
    """Bytes of local memory that the PTX declares (0: everything is in registers)."""
    total = 0
    for line in ptx.splitlines():
        if ".local " in line and "[" in line:
            total += int(line.rpartition("[")[2].partition("]")[0] or 0)
    return total


# -- launching on a GPU


def grid_of(func: kernel.KernelFuncOp, symbols: Mapping[str, int]) -> int:
    """The number of program instances for these sizes."""
    dim: Dim = 1 if func.grid is None else func.grid
    return dim if isinstance(dim, int) else int(evaluate(dim, symbols))


def scalars_of(func: kernel.KernelFuncOp, symbols: Mapping[str, int]) -> list[int]:
    """The index arguments of a kernel for these sizes, in order."""
    names = [a.value for a in func.symbols] if func.symbols is not None else []
    return [int(symbols[name]) for name in names]


def launch(
    func: kernel.KernelFuncOp,
    source: str,
    tensors: Sequence[Any],
    symbols: Mapping[str, int] | None = None,
) -> None:
    """Run a kernel on the GPU of its tensors: inputs, then outputs (written), in order."""
    launcher(func, source, symbols or {})(*tensors)


def launcher(
    func: kernel.KernelFuncOp, source: str, symbols: Mapping[str, int]
) -> Callable[..., None]:
    """`f(*tensors)` that launches the kernel for fixed sizes; a grid of 0 launches nothing."""
    function = getattr(load(source), func.sym_name)
    if "tl.make_tensor_descriptor" in source:
        give_scratch()
    grid = grid_of(func, symbols)
    scalars = scalars_of(func, symbols)
    options = supported_options(launch_options(func))

    def run(*tensors: Any) -> None:
        if grid:
            function[(grid,)](*tensors, *scalars, **options)

    return run


def give_scratch() -> None:
    """Let kernels of this context have memory for what describes matrices to the hardware."""
    import torch
    import triton

    triton.set_allocator(lambda size, alignment, stream: torch.empty(
        size, dtype=torch.int8, device="cuda"))  # fmt: skip


# -- Triton's CPU interpreter


@attrs.frozen
class Job:
    """One launch for the interpreter: tensors are inputs, then outputs, on the CPU."""

    source: str
    name: str
    grid: int
    tensors: tuple[Any, ...]
    scalars: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        func: kernel.KernelFuncOp,
        source: str,
        tensors: Sequence[Any],
        symbols: Mapping[str, int],
    ) -> Job:
        """The launch of a kernel for these sizes."""
        return cls(
            source,
            func.sym_name,
            grid_of(func, symbols),
            tuple(tensors),
            tuple(scalars_of(func, symbols)),
        )


def run_interpreted(jobs: Sequence[Job], timeout: float = 300.0) -> list[list[Any]]:
    """Run launches one after the other in a process with Triton's CPU interpreter.

    Gives for each job its tensors as they are afterwards (the given ones stay as they were); each
    keeps its strides, and memory between its elements is zero. Raises UserError with the other
    process's message when it fails.
    """
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="irc-triton-") as folder:
        arrays: dict[str, Any] = {}
        listed: list[dict[str, Any]] = []
        for number, job in enumerate(jobs):
            path = Path(folder) / f"source_{number}.py"
            path.write_text(job.source)
            forms = []
            for position, tensor in enumerate(job.tensors):
                arrays[f"{number}_{position}"], form = _packed(tensor)
                forms.append(form)
            listed.append(
                {"path": str(path), "name": job.name, "grid": job.grid, "tensors": forms,
                 "scalars": list(job.scalars)}
            )  # fmt: skip
        np.savez(Path(folder) / "inputs.npz", **arrays)
        (Path(folder) / "jobs.json").write_text(json.dumps(listed))
        environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "irc.codegen.triton.interpreted", folder]
        finished = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        if finished.returncode:
            raise UserError(f"Triton's interpreter failed:\n{finished.stderr[-4000:]}")
        with np.load(Path(folder) / "outputs.npz", allow_pickle=False) as content:
            return [
                [_unpacked(content[f"{n}_{p}"], f) for p, f in enumerate(entry["tensors"])]
                for n, entry in enumerate(listed)
            ]


def _packed(tensor: Any) -> tuple[Any, dict[str, Any]]:
    """A tensor's storage from its first to its last element as bytes, and how to see it."""
    import torch

    span = 1 + sum((s - 1) * t for s, t in zip(tensor.shape, tensor.stride(), strict=True))
    span = span if tensor.numel() else 0
    flat = torch.zeros(span, dtype=tensor.dtype)
    if span:
        # Elements may lie in one place: each is put where it is.
        places = torch.arange(span).as_strided(tensor.shape, tensor.stride())
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize]
        flat.view(bits)[places.reshape(-1)] = tensor.view(bits).reshape(-1)
    form = {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
    }
    return flat.view(torch.uint8).numpy().copy(), form


def _unpacked(data: Any, form: Mapping[str, Any]) -> Any:
    import torch

    dtype = getattr(torch, form["dtype"])
    if not data.size:
        return torch.empty_strided(form["shape"], form["strides"], dtype=dtype)
    flat = torch.from_numpy(data.copy()).view(dtype)
    return flat.as_strided(form["shape"], form["strides"])


assert set(_SIGNATURE) == set(TRITON_NAMES)
