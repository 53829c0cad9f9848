"""`irc-opt --emit`: the code that the kernels of a module become."""

from __future__ import annotations

from irc.dialects import kernel
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError


def emit(module: Operation, form: str) -> str:
    """LLVM assembly, target assembly or Triton source of every kernel in `module`, for the target
    that it carries, else for this machine."""
    kernels = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    if not kernels:
        raise UserError(
            "the program has no kernels to emit code for", notes=("run form-kernels first",)
        )
    target = "gpu" if form == "triton" else "cpu"
    other = next((k for k in kernels if k.target != target), None)
    if other is not None:
        raise UserError(
            f"{form} is emitted for kernels of a {target}, @{other.sym_name} is for a "
            f"{other.target}", other.location, notes=("lower-to-cpu and lower-to-gpu make them",),
        )  # fmt: skip
    if form == "triton":
        from irc.codegen.triton.emitter import emit_kernel

        return "\n\n".join(emit_kernel(k) for k in kernels)
    from irc.codegen.llvm.kernel_emitter import emit_text
    from irc.target.attribute import settle

    return emit_text(kernels, settle(module).features, form)
