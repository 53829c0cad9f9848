"""The pass `decompose-aten`."""

from __future__ import annotations

from typing import Any

from irc.dialects import aten, func, sym
from irc.dialects.sym.facts import hints_of
from irc.ir.core import Operation, Value
from irc.ir.location import fuse
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.renaming import rename_symbols
from irc.ir.symbols import Dim, symbol


@register_pass
class DecomposeAten(Pass):
    """Replaces operators by the smaller ones that torch's decomposition table gives.

    An operator stays where its decomposition would need to know a size that is symbolic, or a
    value that is only known at run time; `--remarks` says why.

    Before:
        %l = aten.mse_loss.default %x, %y {...} : (tensor<...>, tensor<...>) -> tensor<...>
    After:
        %d = aten.sub.Tensor %x, %y {...} : (tensor<...>, tensor<...>) -> tensor<...>
        %l = aten.pow.Tensor_Scalar %d {...} : (tensor<...>) -> tensor<...>
    """

    name = "decompose-aten"
    summary = "replace aten operators by torch's decompositions of them"
    anchor = "func.func"
    preserves = "real"
    rounds_constants = True

    def run(self, op: Operation, context: PassContext) -> None:
        from irc.frontend.decompositions.decompose import Decomposer

        assert isinstance(op, func.FuncOp)
        decomposer: Any = None
        for inner in list(op.block.ops):
            if not isinstance(inner, aten.AtenOp) or type(inner).schema.is_mutable:
                continue
            if decomposer is None:
                decomposer = Decomposer(hints_of(op))
            if not decomposer.can_decompose(inner):
                continue
            graph_or_reason = decomposer.decompose(inner)
            if isinstance(graph_or_reason, str):
                context.remark(f"'{inner.name}' stays: {graph_or_reason}", inner)
                continue
            _inline(op, inner, graph_or_reason, decomposer.names)
            context.count("decomposed")
        op.refresh_type()


def _inline(
    function: func.FuncOp, op: aten.AtenOp, imported: Any, names: dict[str, str]
) -> None:
    """Put the body of an imported decomposition in the place of `op`."""
    body: func.FuncOp = imported.module.lookup("main")
    holder: Any = function.parent_op
    if holder is not None and hasattr(holder, "resources"):
        holder.resources.update(imported.module.resources)
    mapping: dict[Value, Value] = dict(
        zip(body.block.arguments, dict.fromkeys(op.operands), strict=True)
    )
    renaming: dict[str, Dim] = {theirs: symbol(ours) for theirs, ours in names.items()}
    returned: list[Value] = []
    for inner in body.block.ops:
        if isinstance(inner, sym.Binder):
            continue
        if isinstance(inner, func.ReturnOp):
            returned = [mapping.get(v, v) for v in inner.operands]
            continue
        copy = inner.clone(mapping)
        rename_symbols(copy, renaming)
        copy.location = fuse((op.location,))
        assert op.parent is not None
        op.parent.insert_before(copy, op)
    results = [
        returned[o] if isinstance(o, int) else None for o in imported.outputs
    ]
    for old, new in zip(op.results, results, strict=False):
        if new is not None:
            old.replace_all_uses_with(new)
    if all(not r.has_uses for r in op.results):
        op.erase()
