"""What the verifiers of host programs share: the kernel of a launch, the operands of a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from irc.dialects.host import ops as host
from irc.dialects.kernel import KernelFuncOp
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.module import ModuleOp


def kernel_of(op: host.LaunchOp) -> KernelFuncOp | None:
    """The kernel that a launch in a module names; None outside one. Raises InvalidIR."""
    module = next((a for a in op.ancestors() if isinstance(a, ModuleOp)), None)
    if module is None:
        return None
    kernel = module.lookup(op.callee)
    if not isinstance(kernel, KernelFuncOp):
        what = "nothing" if kernel is None else f"a {kernel.name}"
        op.fail(f"there is no kernel @{op.callee} in the module, but {what}")
    return kernel


def fail(op: Operation, message: str, *notes: str) -> NoReturn:
    """Raise InvalidIR about an operation of any dialect."""
    raise InvalidIR(message, op=op, notes=notes)


def operand_numbers(attr: A.Attribute) -> Iterator[int]:
    """The numbers k of each `#aten.operand<k>` in an attribute."""
    if isinstance(attr, A.DictAttr):
        for _, inner in attr.items:
            yield from operand_numbers(inner)
    elif isinstance(attr, A.ArrayAttr):
        for inner in attr:
            yield from operand_numbers(inner)
    elif attr.mnemonic == "operand":
        yield attr.parameters[0]
