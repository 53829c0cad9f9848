"""Kernels as machine code, compiled by Triton for a GPU that need not be there.

    kernels = describe(functions, target.gpu)            # source and signatures
    codes = compile_codes(kernels, [("k", 0), ...])      # by name and key, in parallel

A key (`irc.program.gpu_kernels.key_of`) says what is known of the arguments: Triton is told which
pointers and sizes are multiples of 16, and sizes of 32 bits are passed as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from irc.cache.keys import key_of
from irc.codegen.triton import workers
from irc.codegen.triton.compiling import compile_kernel
from irc.codegen.triton.emitter import emit_parts, safe_name
from irc.codegen.triton.runtime import (
    launch_options,
    load,
    module_name,
    refuse_interpreter,
    signature_of,
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
    source, texts = emit_parts(every)
    kernels = {
        op.sym_name: KernelFacts(
            tuple(signature_of(op).values()),
            tuple(op.outputs or ()),
            tuple(sorted(launch_options(op).items())),
            int(op.descriptor_bytes or 0),
            key_of(texts[op.sym_name]),
        )
        for op in every
    }
    return GpuKernels(gpu.chip, source, kernels, {})


Codes = dict[tuple[str, int], MachineCode]


def compile_codes(kernels: GpuKernels, pairs: Sequence[tuple[str, int]]) -> Codes:
    """Machine code for the names and keys in `pairs`."""
    return begin_codes(kernels, pairs)()


def begin_codes(kernels: GpuKernels, pairs: Sequence[tuple[str, int]]) -> Callable[[], Codes]:
    """Have the names and keys in `pairs` compiled; gives what waits for their machine code.

    The processes that wait for it (`workers`) begin at once. What they don't give is compiled when
    it is waited for, by threads, since most of Triton runs without the interpreter lock.
    """
    by_workers = _by_workers(kernels, pairs)

    def finished() -> Codes:
        codes_of = by_workers()
        rest = [pair for pair in pairs if pair not in codes_of]
        if rest:
            # What Triton loads at first it loads once, before there are threads.
            codes_of[rest[0]] = compile_code(kernels, *rest[0])
        if len(rest) > 1:
            with ThreadPoolExecutor(thread_name_prefix="irc-triton") as pool:
                codes = pool.map(lambda pair: compile_code(kernels, *pair), rest[1:])
                codes_of.update(zip(rest[1:], codes, strict=True))
        return {pair: codes_of[pair] for pair in pairs}

    return finished


def _by_workers(kernels: GpuKernels, pairs: Sequence[tuple[str, int]]) -> Callable[[], Codes]:
    """What waits for what other processes compile of `pairs`."""
    helpers = workers.current()
    if helpers is None or not pairs:
        return dict
    refuse_interpreter("machine code")
    whose = {"source": kernels.source, "module": module_name(kernels.source)}
    requests = [{**whose, **_request(kernels, *pair)} for pair in pairs]
    answers = helpers.begin(requests, [_name_of(kernels, *pair) for pair in pairs])

    def finished() -> Codes:
        answered = zip(pairs, answers(), strict=True)
        return {p: _code_of(kernels, p[0], answer) for p, answer in answered if answer is not None}

    return finished


def _name_of(kernels: GpuKernels, name: str, key: int) -> str:
    """What is compiled of a kernel for a key, whatever the kernel is called; "" where its own text
    isn't known."""
    text = kernels.kernels[name].text
    request = {**_request(kernels, name, key), "function": ""}
    return key_of(text, repr(sorted(request.items()))) if text else ""


def compile_code(kernels: GpuKernels, name: str, key: int) -> MachineCode:
    """Machine code of a kernel for a key. UserError in Triton's interpreter."""
    refuse_interpreter("machine code")
    request = _request(kernels, name, key)
    function = getattr(load(kernels.source), request.pop("function"))
    return _code_of(kernels, name, compile_kernel(function, **request))


def _request(kernels: GpuKernels, name: str, key: int) -> dict[str, Any]:
    """What `compile_kernel` takes for a kernel and a key, with the function's name."""
    features = GpuFeatures(kernels.chip)
    signature, divisible = _specialized(kernels.kernels[name], key)
    return {
        "function": safe_name(name), "signature": signature, "divisible": divisible,
        "target": (features.capability, features.warp),
        "options": dict(kernels.kernels[name].options),
    }  # fmt: skip


def _specialized(facts: KernelFacts, key: int) -> tuple[dict[str, str], list[int]]:
    """Triton's signature for a key, and the parameters that are multiples of 16."""
    signature: dict[str, str] = {}
    divisible: list[int] = []
    for position, type_ in enumerate(facts.signature):
        size = position - facts.pointers
        if size < 0:
            signature[f"p{position}"] = type_
            odd = pointer_bit(key, position)
        else:
            odd, wide = size_bits(key, size)
            signature[f"n{position}"] = "i64" if wide else "i32"
        if not odd:
            divisible.append(position)
    return signature, divisible


def _code_of(kernels: GpuKernels, name: str, compiled: workers.Answer) -> MachineCode:
    """What a launch needs of a kernel, from the facts that Triton tells."""
    facts, code = compiled
    _check_parameters(name, len(kernels.kernels[name].signature), facts["entry"])
    special = [
        what
        for what, usual in (
            ("num_ctas", 1), ("cluster_dims", (1, 1, 1)), ("launch_cooperative_grid", False),
            ("launch_pdl", kernels.kernels[name].early), ("profile_scratch_size", 0),
        )
        if facts.get(what, usual) != usual and tuple(_items(facts[what])) != usual
    ]  # fmt: skip
    if facts.get("global_scratch_size", 0) > kernels.kernels[name].descriptors:
        special.append("global_scratch_size")
    threads = facts["num_warps"] * GpuFeatures(kernels.chip).warp
    return MachineCode(facts["name"], code, threads, facts["shared"], ", ".join(special))


def _items(value: Any) -> Any:
    return value if isinstance(value, tuple | list) else (value,)


def _check_parameters(name: str, arguments: int, ptx: str) -> None:
    """Raise InternalError unless the kernel takes its arguments and at most the scratch memory."""
    entry = _ENTRY.search(ptx)
    count = 0 if entry is None else entry[1].count(".param")
    if not arguments <= count <= arguments + _EXTRA_PARAMETERS:
        raise InternalError(
            f"Triton's code of @{name} takes {count} parameters for {arguments} arguments"
        )


__all__ = ["compile_code", "compile_codes", "describe"]
