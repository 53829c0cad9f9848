"""The pass `form-convolution-kernels`."""

from __future__ import annotations

from typing import Any

from irc.dialects import func, graph, host, kernel
from irc.dialects.graph.winograd import WinogradShape
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.definition import SEGMENTS
from irc.ir.location import Location
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.kernel.convolutions.winograd_kernel import form_winograd_kernel
from irc.target import target_of


@register_pass
class FormConvolutionKernels(Pass):
    """Makes each `graph.winograd_conv` a kernel of its own and a launch.

    Convolutions of equal sizes share one kernel. A launch's results behind the first are the
    kernel's own memory: for the transformed image and the products' sums. Nobody uses them.

    vector_bits: the width of the vector registers (0: the target's).

    Before:
        %y = graph.winograd_conv %x, %u, %b {activation = "relu", ...} : (...) -> ...
    After:
        kernel.func @winograd0(...) { ... }
        %y, %image, %sums = host.launch %x, %u, %b {callee = @winograd0} : (...) -> (...)
    """

    name = "form-convolution-kernels"
    summary = "make kernels of convolutions on weights in panels"
    preserves = "real"
    asks_target = True
    vector_bits: int = 0

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        names = {o.attributes["sym_name"].parameters[0] for o in block.ops
                 if "sym_name" in o.attributes}  # fmt: skip
        known: dict[WinogradShape, str] = {}
        for function in [o for o in block.ops if isinstance(o, func.FuncOp)]:
            for inner in function.block.ops:
                if not isinstance(inner, graph.WinogradConv):
                    continue
                shape = shape_of(inner, self.vector_bits or target_of(context).vector_bits)
                name = known.get(shape)
                if name is None:
                    formed = form(shape, names, inner.location)
                    block.append(formed)
                    name = known[shape] = formed.sym_name
                    context.count("kernels")
                launch(inner, shape, name)
                context.count("launches")


def shape_of(op: graph.WinogradConv, bits: int) -> WinogradShape:
    """What the kernel of a convolution depends on."""
    source: Any = op.source.type
    batch, channels, high, wide = source.shape
    return WinogradShape(
        batch=batch, height=high, width=wide, channels=channels,
        channels_out=op.value.type.shape[1], bits=bits, panel=op.weight.type.shape[-1],
        bias=op.bias is not None, other=op.other is not None, activation=op.activation,
        scalars=tuple(s.value for s in op.scalars or ()), padding=(op.padding[0], op.padding[1]),
    )  # fmt: skip


def form(shape: WinogradShape, names: set[str], location: Location) -> kernel.KernelFuncOp:
    """The kernel of a convolution, with a name that is not among `names` and then is."""
    number = 0
    while f"winograd{number}" in names:
        number += 1
    names.add(f"winograd{number}")
    return form_winograd_kernel(shape, f"winograd{number}", location)


def launch(op: graph.WinogradConv, shape: WinogradShape, name: str) -> None:
    """Put the launch of a kernel in the place of a convolution."""
    inputs = list(op._operands)
    attributes: dict[str, A.Attribute] = {
        "callee": A.SymbolRefAttr(name), SEGMENTS: A.DenseIntsAttr((len(inputs), 0)),
    }  # fmt: skip
    more = [TensorType(sizes, f32, contiguous_strides(sizes)) for sizes in shape.workspaces]
    launched = host.LaunchOp(inputs, [*op.result_types, *more], attributes, (), op.location)
    assert op.parent is not None
    op.parent.insert_before(launched, op)
    launched.results[0].name_hint = op.value.name_hint
    op.value.replace_all_uses_with(launched.results[0])
    op.erase()


__all__ = ["FormConvolutionKernels"]
