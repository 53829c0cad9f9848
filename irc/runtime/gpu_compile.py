"""Code of a GPU's program from a host program and its kernels; `irc.runtime.gpu_program` loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from irc.boundary.cuda import Gpu
from irc.codegen.host.gpu_lowering import emit_gpu_host, refusal
from irc.codegen.llvm.jit import compile_module
from irc.codegen.triton.machine_code import begin_codes, describe
from irc.dialects import kernel
from irc.program import gpu_kernels
from irc.program import host_program as P
from irc.program.gpu_kernels import GpuKernels, MachineCode
from irc.runtime.gpu_kernels import cached_codes, store_codes
from irc.runtime.gpu_program import GpuCode
from irc.target import Target
from irc.target.cpu import TargetFeatures


def compile_for_gpu(
    program: P.HostProgram,
    functions: Sequence[kernel.KernelFuncOp],
    target: Target,
    processor: TargetFeatures,
    gpu: Gpu | None,
    *,
    hints: Mapping[str, int],
    cached: bool,
    opt_level: int,
    captured: bool = False,
) -> GpuCode:
    """The code of a program: `functions` are its kernels, for GPUs of the target's kind; the host
    function is for `processor` and reaches GPUs by `gpu`. `hints`: what symbols were while the
    program was traced. `cached`: machine code may be in the cache on disk, and goes there.
    `captured`: as of `BuildOptions`."""
    described = describe(functions, target.gpu)
    if gpu is None or not program.devices - {"cpu"} or refusal(program) is not None:
        return GpuCode(gpu_kernels.pack(described))
    finished = _begin_codes(described, _expected(program, described, hints), cached)
    host, code = None, b""
    if not (captured and only_launches(program)):
        memories = {name for name, facts in described.kernels.items() if facts.descriptors}
        host = emit_gpu_host(program, gpu, target, memories)
        code = compile_module(host.text, processor, opt_level=opt_level)
    codes = finished()
    if any(each.special for each in codes.values()):
        return GpuCode(gpu_kernels.pack(described))
    packed = gpu_kernels.pack(attrs.evolve(described, codes=codes))
    return GpuCode(packed) if host is None else GpuCode(packed, code, host.slots, host.externals)


#: Steps of which a capture keeps launches alone, or nothing.
_CAPTURED = (P.Alloc, P.Bind, P.Launch, P.LoadConstant, P.SymbolValue, P.View)


def only_launches(program: P.HostProgram) -> bool:
    """Whether all that a program has a GPU do are launches of irc's kernels, which are the same
    from a native function and from Python."""
    return all(isinstance(step, _CAPTURED) for step in program.steps)


def _expected(
    program: P.HostProgram, kernels: GpuKernels, hints: Mapping[str, int]
) -> list[tuple[str, int]]:
    """The keys that launches will have where pointers are multiples of 16 and symbols as they were
    while the program was traced; kernels whose symbols are unknown by then are left out."""
    pairs: dict[tuple[str, int], None] = {}
    for step in program.steps:
        if isinstance(step, P.Launch) and all(name in hints for name in step.symbols):
            pointers = [0] * kernels.kernels[step.kernel].pointers
            key = gpu_kernels.key_of(pointers, [hints[name] for name in step.symbols])
            pairs[step.kernel, key] = None
    return list(pairs)


def _begin_codes(
    kernels: GpuKernels, pairs: Sequence[tuple[str, int]], cached: bool
) -> Callable[[], dict[tuple[str, int], MachineCode]]:
    """What waits for machine code for these names and keys, from the cache where that has it."""
    stored = cached_codes(kernels, pairs) if cached else {}
    begun = begin_codes(kernels, [pair for pair in pairs if pair not in stored])

    def finished() -> dict[tuple[str, int], MachineCode]:
        compiled = begun()
        if cached:
            store_codes(kernels, compiled)
        return {pair: stored.get(pair) or compiled[pair] for pair in pairs}

    return finished


__all__ = ["compile_for_gpu"]
