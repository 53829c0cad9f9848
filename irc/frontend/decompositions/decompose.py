"""Tracing torch's decomposition of one aten operation, for the pass `decompose-aten`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from irc.dialects import aten
from irc.dialects.aten.schema import find_overload
from irc.frontend.decompositions.table import decompositions
from irc.frontend.importing.importer import Imported, import_graph
from irc.ir.core import Value
from irc.ir.symbols import Dim, Expr, evaluate_with, free_symbols
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType
from irc.passes.graph.result_types import REFUSALS

#: What a symbol without a hint is taken to have been.
DEFAULT_HINT = 6

OPERATIONS: dict[str, Any] = {
    "add": lambda *a: sum(a),
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -((-a) // b),
    "min": torch.sym_min,
    "max": torch.sym_max,
}


class Decomposer:
    """Traces decompositions for the operations of one function.

    hints: the size seen for symbols of the function, where known; they never decide anything, since
    a decomposition that would need a guard on one is not used.
    """

    def __init__(self, hints: Mapping[str, int]) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.table = decompositions()
        self.shape_env = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.shape_env, allow_non_fake_inputs=True)
        self.hints = hints
        self.sizes: dict[str, Any] = {}
        # torch's name of each of our symbols' stand-ins
        self.names: dict[str, str] = {}

    def stand_in(self, name: str) -> Any:
        """torch's integer for a symbol of ours, made when it is first asked for: sympy takes a
        millisecond."""
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        if name not in self.sizes:
            # Distinct hints keep torch from taking two symbols for one.
            value = max(self.hints.get(name, DEFAULT_HINT), 2) + 1009 * len(self.sizes)
            source = ConstantSource(f"irc_{name}")
            symbol = self.shape_env.create_symbol(value, source, DimDynamic.DYNAMIC)
            self.names[str(symbol)] = name
            self.sizes[name] = self.shape_env.create_symintnode(
                symbol, hint=value, source=source
            )
        return self.sizes[name]

    def can_decompose(self, op: aten.AtenOp) -> bool:
        """Whether the table has a decomposition for the operation's overload."""
        return find_overload(type(op).qualified) in self.table

    def decompose(self, op: aten.AtenOp) -> Imported | str:
        """The operation as a function of its tensor operands, or why it stays as it is."""
        if any(not isinstance(o.type, TensorType) for o in op.operands):
            return "it has a scalar that is only known at run time"
        operands = list(dict.fromkeys(op.operands))
        before = len(self.shape_env.guards)
        with self.mode:
            fakes = [self.fake(o.type) for o in operands]  # type: ignore[arg-type]
        positional, keywords = aten.bind_arguments(op)
        target = find_overload(type(op).qualified)
        function = self.table[target]

        def call(*tensors: torch.Tensor) -> Any:
            values = dict(zip(operands, tensors, strict=True))
            args = [self.python(a, values) for a in positional]
            kwargs = {name: self.python(a, values) for name, a in keywords.items()}
            outcome = function(*args, **kwargs)
            if outcome is NotImplemented:
                raise NotImplementedError("there is none for these arguments")
            leaves, _ = pytree.tree_flatten(outcome)
            return leaves

        try:
            with torch.no_grad(), self.mode:
                graph = make_fx(call, decomposition_table=self.table)(*fakes)
        except REFUSALS as error:
            return f"its decomposition failed: {error}"
        if len(self.shape_env.guards) > before:
            return f"its decomposition depends on a size: {self.shape_env.guards[before].expr}"
        if any(node.target is target for node in graph.graph.nodes):
            return "its decomposition leaves it as it is"
        return import_graph(graph, known=frozenset(self.names))

    def fake(self, type_: TensorType) -> torch.Tensor:
        """A fake tensor of a type."""
        dtype = getattr(torch, DTYPE_OF_ELEMENT[type_.element])
        sizes = self.dims(type_.shape)
        if type_.strides is None:
            return torch.empty(sizes, dtype=dtype, device=type_.device)
        return torch.empty_strided(
            sizes, self.dims(type_.strides), dtype=dtype, device=type_.device
        )

    def dims(self, dims: Sequence[Dim]) -> list[Any]:
        """Sizes as torch has them."""
        return [self.dim(d) for d in dims]

    def dim(self, dim: Dim) -> Any:
        """One size."""
        if not isinstance(dim, Expr):
            return dim
        sizes = {name: self.stand_in(name) for name in sorted(free_symbols(dim))}
        return evaluate_with(dim, sizes, OPERATIONS)

    def python(self, argument: Any, values: Mapping[Value, Any]) -> Any:
        """The Python argument for torch."""
        if isinstance(argument, Value):
            return values[argument]
        if isinstance(argument, Expr):
            return self.dim(argument)
        if isinstance(argument, list):
            return [self.python(a, values) for a in argument]
        return aten.to_torch(argument)
