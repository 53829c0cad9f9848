"""Kernels as machine code, compiled by Triton for a GPU that need not be there.

    kernels = describe(functions, target.gpu)            # source and signatures
    codes = compile_codes(kernels, [("k", 0), ...])      # by name and key, in parallel

A key (`irc.program.gpu_kernels.key_of`) says what is known of the arguments: Triton is told which
pointers and sizes are multiples of 16, and sizes of 32 bits are passed as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from irc.codegen.triton.emitter import emit_module, safe_name
from irc.codegen.triton.runtime import (
    launch_options,
    load,
    refuse_interpreter,
    signature_of,
    supported_options,
)
from irc.dialects import kernel
from irc.ir.diagnostics import InternalError
from irc.program.gpu_kernels import GpuKernels, KernelFacts, MachineCode, pointer_bit, size_bits
from irc.target.gpu import GpuFeatures

_ENTRY = re.compile(r"\.entry\s+[\w$]+\s*\(([^)]*)\)")
_EXTRA_PARAMETERS = 2  # global and profile scratch


def describe(functions: Iterable[kernel.KernelFuncOp], gpu: GpuFeatures) -> GpuKernels:
    """Kernels before they are compiled. UserError names what has no Triton code."""
    every = list(functions)
    kernels = {
        op.sym_name: KernelFacts(
            tuple(signature_of(op).values()),
            tuple(op.outputs or ()),
            tuple(sorted(launch_options(op).items())),
        )
        for op in every
    }
    return GpuKernels(gpu.chip, emit_module(every), kernels, {})


def compile_codes(
    kernels: GpuKernels, wanted: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], MachineCode]:
    """Machine code for the names and keys in `wanted`, compiled by threads: most of Triton runs
    without the interpreter lock."""
    if not wanted:
        return {}
    # What Triton loads at first it loads once, before there are threads.
    made = [compile_code(kernels, *wanted[0])]
    with ThreadPoolExecutor(thread_name_prefix="irc-triton") as pool:
        made += pool.map(lambda pair: compile_code(kernels, *pair), wanted[1:])
    return dict(zip(wanted, made, strict=True))


def compile_code(kernels: GpuKernels, name: str, key: int) -> MachineCode:
    """Machine code of a kernel for a key. UserError in Triton's interpreter."""
    refuse_interpreter("machine code")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    facts = kernels.kernels[name]
    features = GpuFeatures(kernels.chip)
    signature, hints = _specialized(facts, key)
    function = getattr(load(kernels.source), safe_name(name))
    compiled = triton.compile(
        ASTSource(function, signature, {}, hints),
        target=GPUTarget("cuda", features.capability, features.warp),
        options=supported_options(dict(facts.options)),
    )
    return _machine_code(name, facts, compiled, features.warp)


def _specialized(facts: KernelFacts, key: int) -> tuple[dict[str, str], dict[Any, Any]]:
    """Triton's signature and hints for a key."""
    signature: dict[str, str] = {}
    hints: dict[Any, Any] = {}
    for position, kind in enumerate(facts.signature):
        size = position - facts.pointers
        if size < 0:
            signature[f"p{position}"] = kind
            odd = pointer_bit(key, position)
        else:
            odd, wide = size_bits(key, size)
            signature[f"n{position}"] = "i64" if wide else "i32"
        if not odd:
            hints[(position,)] = [["tt.divisibility", 16]]
    return signature, hints


def _machine_code(name: str, facts: KernelFacts, compiled: Any, warp: int) -> MachineCode:
    metadata: Mapping[str, Any] = compiled.metadata._asdict()
    _check_parameters(name, len(facts.signature), compiled.asm["ptx"])
    special = [
        what
        for what, usual in (
            ("num_ctas", 1), ("cluster_dims", (1, 1, 1)), ("launch_cooperative_grid", False),
            ("launch_pdl", False), ("global_scratch_size", 0), ("profile_scratch_size", 0),
        )
        if metadata.get(what, usual) != usual and tuple(_items(metadata[what])) != usual
    ]  # fmt: skip
    return MachineCode(
        metadata["name"], compiled.asm["cubin"], metadata["num_warps"] * warp, metadata["shared"],
        ", ".join(special),
    )  # fmt: skip


def _items(value: Any) -> Any:
    return value if isinstance(value, tuple | list) else (value,)


def _check_parameters(name: str, arguments: int, ptx: str) -> None:
    """Raise InternalError unless the kernel takes its arguments and at most the scratch memory."""
    found = _ENTRY.search(ptx)
    count = 0 if found is None else found[1].count(".param")
    if not arguments <= count <= arguments + _EXTRA_PARAMETERS:
        raise InternalError(
            f"Triton's code of @{name} takes {count} parameters for {arguments} arguments"
        )


__all__ = ["compile_code", "compile_codes", "describe"]
