"""What is known of the ATen operators that programs call."""

from __future__ import annotations

from irc.ir import attributes as A

#: Operators that take operands of any strides, and whose results' strides don't depend on them,
#: with the overload that computes into memory of any strides.
OUT_VARIANTS = {
    "aten.mm.default": "aten.mm.out",
    "aten.bmm.default": "aten.bmm.out",
    "aten.addmm.default": "aten.addmm.out",
    "aten.baddbmm.default": "aten.baddbmm.out",
}
#: What a convolution on a GPU becomes that computes into memory of the program.
CONVOLUTION_OUT = "aten.convolution.out"
#: oneDNN's operator of a convolution, whatever ATen would choose.
ONEDNN_CONVOLUTION = "aten.mkldnn_convolution.default"
ANY_STRIDES = frozenset(OUT_VARIANTS)
#: Operators that take operands of any strides if the elements of their last dimension lie side by
#: side, and whose results' strides don't depend on the others.
ANY_ROWS = frozenset({"aten._scaled_dot_product_flash_attention_for_cpu.default"})


def integers(entry: A.Attribute) -> list[int] | None:
    """The numbers of a list argument; None where one is symbolic."""
    if isinstance(entry, A.DenseIntsAttr):
        return list(entry.values)
    if not isinstance(entry, A.ArrayAttr) or any(not isinstance(a, A.IntegerAttr) for a in entry):
        return None
    return [a.value for a in entry]  # type: ignore[attr-defined]
