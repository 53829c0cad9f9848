"""torch's control flow as operations of the flow dialect.

The graphs that `cond`, `while_loop`, `scan` and `map` call become functions of the module. They
take and give arrays row by row, whatever the strides in eager mode are, so that one function
serves every call; who calls them copies where that is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from irc.dialects import flow, graph, sym
from irc.dialects.func.info import fresh_results
from irc.frontend.fx.higher_order import graph_at
from irc.frontend.fx.placeholders import replace_placeholder_values
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.symbols import Expr
from irc.ir.types import TensorType, i1

if TYPE_CHECKING:
    from irc.frontend.importing.importer import _Importer


def import_control(importer: _Importer, node: fx.Node) -> list[Value]:
    """The results of a call of one of `OPERATORS`. Raises UserError for what has no form here."""
    parts = _Parts(importer, node)
    op = OPERATORS[node.target.name()](parts, *node.args)  # type: ignore[union-attr]
    op.location = importer.builder.location
    importer.builder.insert(op)
    for result in op.results:
        result.name_hint = node.name
    return list(op.results)


class _Parts:
    """What the operation of one node is made of."""

    def __init__(self, importer: _Importer, node: fx.Node) -> None:
        self.importer, self.node = importer, node
        self.effects: dict[str, A.Attribute] = {}

    def operands(self, arguments: Any) -> list[Value]:
        """Values of the graph, and numbers that it knows, as operands."""
        return [self.operand(a) for a in arguments]

    def operand(self, argument: Any) -> Value:
        content = self.importer.argument(argument)
        if isinstance(content, Value):
            return content
        if isinstance(content, int | Expr) and not isinstance(content, bool):
            return self.importer.builder.value(sym.ValueOp, dim=content)
        name = self.node.target.name()  # type: ignore[union-attr]
        return self.importer.refuse(self.node, f"a {type(content).__name__} as operand of {name}")

    def condition(self, argument: Any) -> Value:
        """The truth value that a condition is."""
        value = argument.meta.get("val") if isinstance(argument, fx.Node) else argument
        if isinstance(value, torch.SymBool):
            return self.importer.truth(argument, value)
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.bool:
            return self.importer.refuse(self.node, f"a condition of type {type(value).__name__}")
        tensor = self.operand(argument)
        if tensor.type.shape:  # type: ignore[attr-defined]
            type_ = TensorType((), i1, (), tensor.type.device)  # type: ignore[attr-defined]
            tensor = self.importer.builder.value(graph.Reshape, tensor, result_types=type_)
        return self.importer.builder.value(graph.Item, tensor)

    def function(self, argument: fx.Node) -> A.SymbolRefAttr:
        """The function that a graph becomes."""
        module = graph_at(self.importer.graph_module, argument)
        assert module is not None, "torch names the graphs of control flow"
        _take_dense(module)
        function = self.importer.nested(module, str(argument.target))
        # Kept from eager mode is only what is no array; the results are new ones, row by row.
        function.attributes["result_info"] = fresh_results(function)
        if any(_has_effect(op) for op in function.block.ops):
            self.effects["effects"] = A.UNIT
        return A.SymbolRefAttr(function.sym_name)

    def types(self) -> list[Any]:
        """The types of the results."""
        return self.importer.result_types(self.node, list(self.node.meta["val"]))


def _cond(
    parts: _Parts, condition: Any, then: fx.Node, otherwise: fx.Node, operands: Any = ()
) -> Operation:
    names = {"then": parts.function(then), "otherwise": parts.function(otherwise)}
    values = [parts.condition(condition), *parts.operands(operands)]
    return flow.CondOp(values, parts.types(), {**names, **parts.effects})


def _while(
    parts: _Parts, condition: fx.Node, body: fx.Node, carried: Any, rest: Any = (), *more: Any
) -> Operation:
    names = {"condition": parts.function(condition), "body": parts.function(body)}
    values = parts.operands([*carried, *rest])
    entries = {**names, "carried": A.IntegerAttr(len(carried)), **parts.effects}
    if parts.node.target.name() == "while_loop_stack_output":  # type: ignore[union-attr]
        entries["stacked"] = A.UNIT
    return flow.WhileOp(values, parts.types(), entries)


def _scan(
    parts: _Parts, combine: fx.Node, carried: Any, arrays: Any, rest: Any = ()
) -> Operation:
    if not arrays:
        parts.importer.refuse(parts.node, "a scan of no array")
    entries = {
        "combine": parts.function(combine),
        "carried": A.IntegerAttr(len(carried)),
        "scanned": A.IntegerAttr(len(arrays)),
    }
    values = parts.operands([*carried, *arrays, *rest])
    return flow.ScanOp(values, parts.types(), {**entries, **parts.effects})


def _map(parts: _Parts, function: fx.Node, arrays: Any, rest: Any = ()) -> Operation:
    return _scan(parts, function, (), arrays, rest)


OPERATORS: dict[str, Callable[..., Operation]] = {
    "cond": _cond,
    "map_impl": _map,
    "scan": _scan,
    "while_loop": _while,
    "while_loop_stack_output": _while,
}


def _has_effect(op: Operation) -> bool:
    """Whether an operation of a function must happen even if its results are not used."""
    if isinstance(op, sym.AssertOp | sym.AssertValueOp):
        return True
    removable = getattr(op, "is_removable", None)
    return removable is not None and not removable()


def _take_dense(module: fx.GraphModule) -> None:
    """Make the arguments of a graph arrays in row-major order at the beginning of their storage,
    in place."""
    dense: dict[fx.Node, torch.Tensor] = {}
    for node in module.graph.find_nodes(op="placeholder"):
        traced = node.meta.get("val")
        if isinstance(traced, torch.Tensor):
            with traced.fake_mode:  # type: ignore[attr-defined]
                dense[node] = torch.empty(traced.shape, dtype=traced.dtype, device=traced.device)
    replace_placeholder_values(module, dense)


__all__ = ["OPERATORS", "import_control"]
