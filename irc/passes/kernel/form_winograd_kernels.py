"""The pass `form-winograd-kernels`."""

from __future__ import annotations

from typing import Any

from irc.analysis.winograd import WinogradShape, vector_bits
from irc.dialects import func, graph, host
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.definition import SEGMENTS
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.kernel.winograd_kernel import form_winograd_kernel


@register_pass
class FormWinogradKernels(Pass):
    """Makes each `graph.winograd_conv` a kernel of its own and a launch of it.

    Convolutions of equal sizes share one kernel. The launch has two results that nobody uses:
    the kernel's memory for the transformed image and the products' sums.

    vector_bits: the width of the vector registers (0: this machine's).

    Before:
        %y = graph.winograd_conv %x, %u, %b {activation = "relu", ...} : (...) -> ...
    After:
        kernel.func @winograd0(...) { ... }
        %y, %image, %sums = host.launch %x, %u, %b {callee = @winograd0} : (...) -> (...)
    """

    name = "form-winograd-kernels"
    summary = "make kernels of Winograd convolutions"
    preserves = "real"
    vector_bits: int = 0

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        bits = self.vector_bits or vector_bits(context.data.get("target_features"))
        names = {o.attributes["sym_name"].parameters[0] for o in block.ops
                 if "sym_name" in o.attributes}  # fmt: skip
        known: dict[WinogradShape, str] = {}
        for function in [o for o in block.ops if isinstance(o, func.FuncOp)]:
            for inner in function.block.ops:
                if not isinstance(inner, graph.WinogradConv):
                    continue
                shape = shape_of(inner, bits)
                name = known.get(shape)
                if name is None:
                    name = known[shape] = _fresh(names)
                    block.append(form_winograd_kernel(shape, name, inner.location))
                    context.count("kernels")
                launch(inner, shape, name)
                context.count("launches")


def shape_of(op: graph.WinogradConv, bits: int) -> WinogradShape:
    """What the kernel of a convolution depends on."""
    source: Any = op.source.type
    batch, channels, high, wide = source.shape
    return WinogradShape(
        batch, high, wide, channels, op.value.type.shape[1], (op.padding[0], op.padding[1]), bits,
        op.weight.type.shape[3], op.bias is not None, op.other is not None, op.activation,
        tuple(s.value for s in op.scalars or ()),
    )  # fmt: skip


def _fresh(names: set[str]) -> str:
    number = 0
    while f"winograd{number}" in names:
        number += 1
    names.add(f"winograd{number}")
    return f"winograd{number}"


def launch(op: graph.WinogradConv, shape: WinogradShape, name: str) -> None:
    """Put the launch of a kernel in the place of a convolution."""
    inputs = list(op._operands)
    attributes: dict[str, A.Attribute] = {
        "callee": A.SymbolRefAttr(name), SEGMENTS: A.DenseIntsAttr((len(inputs), 0)),
    }  # fmt: skip
    more = [TensorType(sizes, f32, contiguous_strides(sizes)) for sizes in shape.workspaces]
    made = host.LaunchOp(inputs, [*op.result_types, *more], attributes, (), op.location)
    assert op.parent is not None
    op.parent.insert_before(made, op)
    made.results[0].name_hint = op.value.name_hint
    op.value.replace_all_uses_with(made.results[0])
    op.erase()


__all__ = ["FormWinogradKernels"]
