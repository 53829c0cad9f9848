"""What an index out of bounds raises where a decomposition indexes by another operator."""

from __future__ import annotations

from torch import fx

_INDEXED = frozenset({"gather", "index", "index_put", "scatter", "scatter_add"})
_RAISES = {
    "nll_loss_forward": "IndexError",
    "nll_loss2d_forward": "IndexError",
    "grid_sampler_2d": "RuntimeError",
    "max_unpool2d": "RuntimeError",
    "max_unpool3d": "RuntimeError",
}


def error_of_index(node: fx.Node, name: str) -> str | None:
    """The class that eager mode raises, for a call of the operator `name` that stands for another
    one; None where it is the operator's own."""
    if name not in _INDEXED:
        return None
    origin = str(getattr(node.meta.get("original_aten"), "__name__", ""))
    return _RAISES.get(origin.partition(".")[0])
