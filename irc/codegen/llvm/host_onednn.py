"""Matrix products of a native host program by oneDNN, as `choose-product-library` wants them.

`x @ w` and `b + x @ w` are torch's `mkldnn._linear_pointwise(x, w^T, b, "none")`, which reads the
second factor in whatever strides; the transposed matrix is a view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.codegen.llvm.host_aten import AtenCall
from irc.codegen.llvm.host_emitter import HostEmitter, Tensor
from irc.runtime import host_program as P

#: `host.call_aten`'s path of such a product.
PATH = "onednn"
CALLEE = "mkldnn._linear_pointwise.default"
_FACTORS = {"aten.mm.default": ("self", "mat2"), "aten.addmm.default": ("mat1", "mat2")}


def linear_call(
    emitter: HostEmitter,
    step: P.CallAten,
    layout: Callable[[int], P.Layout],
    tensor: Callable[[int], Tensor],
) -> AtenCall:
    """The call that computes the product `step`, whose sizes and strides are constants.

    `layout` and `tensor` give those of a register. Raises KeyError for another operator.
    """
    given = dict(step.arguments)
    left, right = (given[name].index for name in _FACTORS[step.callee])
    place = layout(right)
    assert place.strides is not None
    sizes, strides = [
        [d for d in reversed(dims) if isinstance(d, int)] for dims in (place.sizes, place.strides)
    ]
    turned = emitter.view(tensor(right), sizes, strides, 0)
    arguments: dict[str, Any] = {
        "X": tensor(left),
        "W": turned,
        "B": tensor(given["self"].index) if "mat1" in given else None,
        "attr": "none",
        "scalars": [],
        "algorithm": "",
    }
    return AtenCall(CALLEE, arguments, (2,))
