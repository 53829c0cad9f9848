"""Constants that are computed from other constants: by the interpreter, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch

from irc.ir.core import Operation, Value


def evaluate(
    ops: Sequence[Operation], results: Sequence[Value], module: Operation | None
) -> list[torch.Tensor]:
    """The contents of `results`, computed by the interpreter in the declared types, on the CPU.

    ops: all that they are made of, in order. A content is let go after its last use.
    """
    from irc.dialects import graph
    from irc.interp.core import Frame

    frame = Frame(module)
    waiting = Counter(o for op in ops for o in op.operands)
    waiting.update(results)
    with torch.device("cpu"):  # also where the user chose another default
        for op in ops:
            frame.execute(op)
            if isinstance(op, graph.Constant):
                frame.values[op.tensor] = frame.values[op.tensor].cpu()
            for operand in op.operands:
                waiting[operand] -= 1
                if not waiting[operand]:
                    del frame.values[operand]
    return [frame[value] for value in results]


@attrs.frozen
class FoldedConstants:
    """Constants that were computed from others, and how: so that no cache needs to hold them.

    text: a module whose `func.func @main`, without arguments, gives the contents of `keys`.
    """

    text: str
    keys: tuple[str, ...]

    def compute(self, resources: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The contents by key, from those that they were made of.

        Raises InvalidIR (or UserError) when one of these is missing.
        """
        from irc.ir.text.parser import parse

        # Written by a pass, or in an entry of the user's own cache.
        module = parse(self.text, "<folded constants>", resources=resources, trusted=True)
        function: Any = module.lookup("main")
        *ops, last = function.block.ops
        return dict(zip(self.keys, evaluate(ops, last.operands, module), strict=True))


def with_folded(
    resources: Mapping[str, Any], folded: Sequence[FoldedConstants]
) -> Mapping[str, Any]:
    """`resources` and all that is computed from them, in order, where it is missing."""
    for step in folded:
        if any(key not in resources for key in step.keys):
            resources = {**resources, **step.compute(resources)}
    return resources


__all__ = ["FoldedConstants", "evaluate", "with_folded"]
