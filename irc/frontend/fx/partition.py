"""How a joint graph of training is cut into a forward and a backward graph.

torch's partition finds the cheapest cut, where it knows which operators a backward may compute
again and which read their operands without these being in memory. It knows TorchInductor's; those
that irc computes in the same way are named in `irc.frontend.decompositions.names`. Before, what
would be cut at the wrong place is written otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

from torch import fx

from irc.frontend.decompositions.names import AGAIN, READING, names_of
from irc.frontend.decompositions.table import packets
from irc.frontend.fx.attention import fuse_for
from irc.options.options import Options
from irc.target import Target

Cut = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]
_thread = threading.local()


def partition(options: Options, target_of: Callable[[fx.GraphModule], Target]) -> Cut:
    """The cut under these options. target_of: what a graph is compiled for."""
    if options.emulate_rounding:
        return _as_it_is
    return functools.partial(_prepared, options, target_of)


def _as_it_is(joint: fx.GraphModule, *arguments: Any, **keywords: Any) -> Any:
    from irc.frontend.fx import detaches

    detaches.as_aliases(joint)
    return cheapest(joint, *arguments, **keywords)


def _prepared(
    options: Options, target_of: Callable[[fx.GraphModule], Target],
    joint: fx.GraphModule, *arguments: Any, **keywords: Any,
) -> Any:  # fmt: skip
    """Attentions are fused before; on a CPU softmaxes' logarithms are written out, and statistics
    kept wide; normalizations are written out where gradients read their results."""
    from irc.frontend.fx import (
        detaches,
        filled_shapes,
        narrow_pools,
        recomputed_norms,
        recomputed_softmaxes,
        undone_copies,
        wide_statistics,
    )

    detaches.as_aliases(joint)
    undone_copies.skip_undone_copies(joint)
    filled_shapes.spare_shapes(joint)
    target = target_of(joint)
    fuse_for(joint, options, target)
    if not target.is_gpu:  # whose scores are padded, and would be copied to be saved
        recomputed_softmaxes.spell_log_softmaxes(joint)
    recomputed_norms.spell_norms(joint)
    narrow_pools.narrow_pools(joint)
    wide_statistics.keep_statistics_wide(joint)
    return cheapest(joint, *arguments, **keywords)


def cheapest(joint: fx.GraphModule, *arguments: Any, **keywords: Any) -> Any:
    """torch's partition, by what irc computes again and reads as it is computed."""
    from torch._functorch import partitioners

    _teach(partitioners)
    _thread.asks = True
    try:
        return partitioners.min_cut_rematerialization_partition(joint, *arguments, **keywords)
    finally:
        _thread.asks = False


def _teach(partitioners: Any) -> None:
    """Let torch's table of operators have irc's, too, while `cheapest` asks for it. torch has no
    other place for that; `tests/frontend/test_partition.py` tells if it is gone."""
    of_torch = partitioners.get_default_op_list
    if getattr(of_torch, "is_taught", False):
        return

    @functools.wraps(of_torch)
    def table() -> Any:
        types = of_torch()
        if not getattr(_thread, "asks", False):
            return types
        again, reading = (set(packets(names_of(names))) for names in (AGAIN, READING))
        return dataclasses.replace(
            types,
            recomputable_ops=types.recomputable_ops | again,
            fusible_ops=types.fusible_ops | again | reading,
        )

    table.is_taught = True  # type: ignore[attr-defined]
    partitioners.get_default_op_list = table
