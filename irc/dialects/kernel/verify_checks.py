"""What well-formed checks of truth values are in kernels."""

from __future__ import annotations

from typing import Any

from irc.dialects.kernel import ops
from irc.dialects.kernel.verify import _check_like, _element
from irc.ir.hooks import verifies
from irc.ir.types import i1


@verifies(ops.CheckOp)
def verify_check(op: Any) -> None:
    """Truth values, and a pointer that is used for nothing else. Raises InvalidIR."""
    truth = op.truth.type
    if _element(truth) is not i1:
        op.fail(f"checks {truth}, not i1 or a vector of it")
    if op.pointer.type.element is not i1:
        op.fail(f"writes at a {op.pointer.type}, not at a flag of i1")
    if op.mask is not None:
        _check_like(op, "mask", op.mask.type, i1, truth)
    if any(not isinstance(user, ops.CheckOp) for user in op.pointer.users):
        op.fail("its pointer is a flag's, with which nothing else is done")
