"""A program's kernels for a GPU as plain data: their source, and machine code by key.

    kernels = GpuKernels("sm_90", source, {"k": KernelFacts(("*fp32", "i64"), options)}, {})
    unpack(pack(kernels)) == kernels

A key (`key_of`) says of which arguments a machine code is for; native launches make it, too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

#: Bits of a key for pointers, before those for sizes, two each.
POINTER_BITS = 32
#: Bytes of what describes a matrix to the hardware, and what it is aligned to.
DESCRIPTOR_BYTES = 128


def key_of(pointers: Sequence[int], sizes: Sequence[int]) -> int:
    """The key of a launch: for pointer i bit min(i, 31) if it is no multiple of 16; for size j two
    bits from 32 + 2 min(j, 15) on, if it is no multiple of 16, and if it is beyond 32 bits."""
    key = 0
    for i, pointer in enumerate(pointers):
        key |= int(pointer & 15 != 0) << min(i, POINTER_BITS - 1)
    for j, size in enumerate(sizes):
        place = POINTER_BITS + 2 * min(j, 15)
        key |= int(size & 15 != 0) << place | int(not -(1 << 31) <= size < 1 << 31) << place + 1
    return key


def scratch_address(pointer: int) -> int:
    """Where Triton's memory begins in that of a kernel's descriptors."""
    return -(-pointer // DESCRIPTOR_BYTES) * DESCRIPTOR_BYTES


def pointer_bit(key: int, i: int) -> bool:
    """Whether pointer i of a launch with this key may be no multiple of 16."""
    return bool(key >> min(i, POINTER_BITS - 1) & 1)


def size_bits(key: int, j: int) -> tuple[bool, bool]:
    """Whether size j of a launch with this key may be no multiple of 16, and beyond 32 bits."""
    bits = key >> POINTER_BITS + 2 * min(j, 15)
    return bool(bits & 1), bool(bits & 2)


@attrs.frozen
class KernelFacts:
    """What Triton must know of a kernel to compile it.

    `signature`: the types of its arguments, pointers before sizes. `outputs`: the arguments that it
    writes. `options`: num_warps and the like, as pairs. `descriptors`: the last pointer is memory
    for what Triton describes matrices by, so many bytes for each program instance (0: it isn't).
    `text`: a hash of its own text, whatever it is called, "" where that isn't known; no part of it.
    """

    signature: tuple[str, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, int], ...]
    descriptors: int = 0
    text: str = attrs.field(default="", eq=False)

    @property
    def early(self) -> bool:
        """Whether its program instances wait themselves for what was launched before them."""
        return bool(dict(self.options).get("launch_pdl"))

    @property
    def pointers(self) -> int:
        """How many of its arguments are pointers."""
        return sum(type_.startswith("*") for type_ in self.signature)


@attrs.frozen
class MachineCode:
    """A compiled kernel: `symbol` in the cubin `code`, with threads of a program instance and
    bytes of shared memory. `special`: what it wants of a launch beyond these ("" for nothing)."""

    symbol: str
    code: bytes
    threads: int
    shared: int
    special: str = ""


@attrs.frozen
class GpuKernels:
    """The kernels of a program: `source` is Triton's, of all of them; `codes` by name and key."""

    chip: str
    source: str
    kernels: Mapping[str, KernelFacts]
    codes: Mapping[tuple[str, int], MachineCode]


def pack_code(code: MachineCode) -> bytes:
    """A machine code as bytes."""
    facts = [code.symbol, code.threads, code.shared, code.special]
    text = json.dumps(facts).encode()
    return struct.pack("<Q", len(text)) + text + code.code


def unpack_code(data: bytes) -> MachineCode:
    """The inverse of `pack_code`. Raises ValueError for anything else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        symbol, threads, shared, special = json.loads(data[8 : 8 + length])
        return MachineCode(
            str(symbol), data[8 + length :], int(threads), int(shared), str(special)
        )
    except (struct.error, TypeError) as error:
        raise ValueError(f"this is no machine code: {error}") from error


def pack(kernels: GpuKernels) -> bytes:
    """All of it as bytes."""
    codes = [(name, key, pack_code(code)) for (name, key), code in kernels.codes.items()]
    record = {
        "chip": kernels.chip,
        "source": kernels.source,
        "kernels": {
            n: [k.signature, k.outputs, k.options, k.descriptors]
            for n, k in kernels.kernels.items()
        },
        "codes": [[name, key, len(code)] for name, key, code in codes],
    }
    text = json.dumps(record).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *(code for _, _, code in codes)])


def unpack(data: bytes) -> GpuKernels:
    """The inverse of `pack`. Raises ValueError for anything else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        record: dict[str, Any] = json.loads(data[8 : 8 + length])
        at = 8 + length
        codes = {}
        for name, key, size in record["codes"]:
            codes[str(name), int(key)] = unpack_code(data[at : at + size])
            at += size
        if at != len(data):
            raise ValueError("the codes' lengths don't fit")
        kernels = {
            name: KernelFacts(
                tuple(signature), tuple(outputs), tuple((n, k) for n, k in options), int(described)
            )
            for name, (signature, outputs, options, described) in record["kernels"].items()
        }
        return GpuKernels(record["chip"], record["source"], kernels, codes)
    except (struct.error, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"these are no kernels of a GPU: {error}") from error


__all__ = [
    "DESCRIPTOR_BYTES", "KernelFacts", "GpuKernels", "MachineCode", "key_of", "pack", "pack_code",
    "pointer_bit", "scratch_address", "size_bits", "unpack", "unpack_code",
]  # fmt: skip
