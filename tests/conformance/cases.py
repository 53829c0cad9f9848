"""The cases of the op conformance: which exist, which are in a fraction or a shard.

A case is named `entry/dtype/direction/sizes`, for example `nn.functional.pad@constant/f32/backward/
dynamic`.  Its place in fractions and shards comes from a hash of that name, so it is the same on
every machine and does not move when other cases come or go.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

DTYPES = {"f32": "float32", "bf16": "bfloat16", "i64": "int64", "bool": "bool"}
SIZES = ("static", "dynamic")


def entry_name(op: OpInfo) -> str:
    """The name of an op_db entry: `name` or `name@variant`."""
    return f"{op.name}@{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def entries() -> dict[str, Any]:
    """The entries of torch's op_db by name; imports torch.

    Random entries call their op through a helper that saves and restores the generator's state,
    which Dynamo can't trace; it is replaced by a plain call, since `compare.call` sets the seed.
    """
    from torch.testing._internal import common_methods_invocations

    common_methods_invocations.wrapper_set_seed = _plain_call
    return {entry_name(op): op for op in common_methods_invocations.op_db}


def _plain_call(op: Any, *arguments: Any, **keywords: Any) -> Any:
    return op(*arguments, **keywords)


def all_cases() -> list[str]:
    """Every case, sorted: an entry's dtypes on a CPU, with gradients where it has them."""
    import torch

    found = []
    for name, op in entries().items():
        forward = op.supported_dtypes("cpu")
        backward = op.supported_backward_dtypes("cpu") if op.supports_autograd else set()
        for short, long in DTYPES.items():
            dtype = getattr(torch, long)
            for direction, supported in (("forward", forward), ("backward", backward)):
                if dtype in supported and (direction == "forward" or dtype.is_floating_point):
                    found += [f"{name}/{short}/{direction}/{sizes}" for sizes in SIZES]
    return sorted(found)


def parse(case: str) -> tuple[str, str, str, str]:
    """(entry, dtype, direction, sizes) of a case; ValueError for a name that is none."""
    entry, dtype, direction, sizes = case.rsplit("/", 3)
    if dtype not in DTYPES or direction not in ("forward", "backward") or sizes not in SIZES:
        raise ValueError(f"{case!r} names no case: entry/dtype/direction/sizes expected")
    return entry, dtype, direction, sizes


def position(case: str, salt: str = "") -> float:
    """A number in [0, 1) that depends on the name only."""
    digest = hashlib.sha256((salt + case).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def in_fraction(case: str, fraction: float) -> bool:
    """Is the case in the fixed `fraction`?  A larger fraction holds every smaller one."""
    return position(case) < fraction


def in_shard(case: str, shard: int, shards: int) -> bool:
    """Is the case in shard number `shard` (from 0) of `shards`?"""
    return int(position(case, "shard:") * shards) == shard
