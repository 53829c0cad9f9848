"""Triton kernels of the user's in torch's graphs become calls of `irc_triton::launch`.

Dynamo, and `torch.library.wrap_triton`, put a kernel into a graph as a higher-order operator with
numbers of a table of the process: `triton_kernel_wrapper_mutation`, which writes tensors, and once
AOTAutograd has made it functional `triton_kernel_wrapper_functional`, which gives copies of those
that it writes. The one becomes the call itself, the other copies and the call of them:

    %out = triton_kernel_wrapper_functional(kernel_idx = 0, grid = [(4, 1, 1)],
               kwargs = {"x": %x, "y": %y}, tensors_to_clone = ["y"])["y"]

    %out = aten.clone(%y)
    irc_triton.launch("double:5f..", ["y", "x"], [4, 1, 1], [%out], [%x], [])
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode

from irc.dialects.aten import user_kernels
from irc.frontend.importing.locations import location_of
from irc.ir.diagnostics import UserError

FUNCTIONAL = "triton_kernel_wrapper_functional"
WRITING = "triton_kernel_wrapper_mutation"


def is_kernel(node: fx.Node) -> bool:
    """Whether a node calls a Triton kernel of the user's."""
    target = node.target
    return (
        node.op == "call_function"
        and isinstance(target, torch._ops.HigherOrderOperator)
        and target.name() in (FUNCTIONAL, WRITING)
    )


def take_kernels(module: fx.GraphModule) -> bool:
    """Replace the calls of Triton kernels in a graph and those that it calls, in place; whether
    `functionalize` has to run on what is left. Raises UserError for what can't be called."""
    writes = False
    for graph in _graphs(module):
        calls = [node for node in graph.graph.nodes if is_kernel(node)]
        for node in calls:
            writes |= _KernelCall(node).replace()
        if calls:
            graph.graph.lint()
            graph.recompile()
    return writes


def _graphs(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """A graph, and the branches and bodies that control flow in it calls."""
    yield module
    for node in module.graph.nodes:
        if node.op == "get_attr":
            inner = getattr(module, str(node.target), None)
            if isinstance(inner, fx.GraphModule):
                yield from _graphs(inner)


class _KernelCall:
    """One call of a kernel: its operands by the names of the parameters, and what else it takes."""

    def __init__(self, node: fx.Node) -> None:
        self.node, self.graph = node, node.graph
        self.operands: dict[str, Any] = dict(node.kwargs)
        operands = self.operands
        tables = _tables()
        self.kernel = tables.get_kernel(operands["kernel_idx"])
        self.constants = dict(tables.get_constant_args(operands["constant_args_idx"]))
        self.tensors: dict[str, fx.Node] = {}
        self.numbers: dict[str, Any] = {}
        for name, value in operands["kwargs"].items():
            if isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor):
                self.tensors[name] = value
            elif isinstance(value, fx.Node | torch.SymInt | torch.SymFloat):
                self.numbers[name] = value
            else:
                self.constants[name] = value
        self.descriptors = {
            name: self._block(name, meta)
            for name, meta in (operands.get("tma_descriptor_metadata") or {}).items()
        }
        self.grid = [size for grid in operands["grid"] for size in _padded(grid)]

    def _block(self, name: str, metadata: Any) -> tuple[int, ...]:
        """The shape of a block of the TMA descriptor that the kernel gets for a tensor."""
        form, (block, *_) = metadata
        if form != "stable" or not all(isinstance(size, int) for size in block):
            self.refuse(
                f"is given a TMA descriptor ({name}) that "
                + ("has blocks of symbolic sizes" if form == "stable"
                   else "isn't a triton.tools.tensor_descriptor.TensorDescriptor")
            )  # fmt: skip
        return tuple(block)

    def refuse(self, why: str) -> None:
        name = user_kernels.UserKernel(self.kernel, {}, {}).name
        raise UserError(f"the Triton kernel {name} {why}: not supported", location_of(self.node))

    def replace(self) -> bool:
        """Put the call in the node's place; whether what it writes has still to become values."""
        if self.node.target.name() == WRITING:  # type: ignore[union-attr]
            self._launch(self._written(), self.tensors, {})
            self.graph.erase_node(self.node)
            return True
        names = [n for n in self.operands["tensors_to_clone"] if n in self.tensors]
        roots = self._shared_roots(names)
        passed = self._copies([n for n in names if n not in roots])
        bases = {root: self._clone(root) for root in dict.fromkeys(roots.values())}
        views = {name: (bases[root], root) for name, root in roots.items()}
        self._launch([n for n in names if n not in roots], passed, views)
        shown = dict(bases)
        for user in list(self.node.users):
            assert user.target is operator.getitem, "results are taken one by one"
            name: Any = user.args[1]
            result = self._again(self.tensors[name], shown) if name in roots else passed[name]
            user.replace_all_uses_with(result)
            self.graph.erase_node(user)
        self.graph.erase_node(self.node)
        return False

    def _written(self) -> list[str]:
        """The parameters that a call writes which is not functional, as torch finds them."""
        from torch._higher_order_ops.triton_kernel_wrap import get_mutated_tensors

        values = {
            name: value.meta.get("val") if isinstance(value, fx.Node) else value
            for name, value in self.operands["kwargs"].items()
        }
        mutated = get_mutated_tensors(
            self.operands["kernel_idx"], self.operands["constant_args_idx"], values,
            self.operands.get("tma_descriptor_metadata") or {},
        )  # fmt: skip
        return [name for name in mutated if name in self.tensors]

    def _copies(self, written: Iterable[str]) -> dict[str, fx.Node]:
        """The tensors to pass: of each that is written a copy, in memory as its own is. What is
        given more than once is one tensor, as in eager mode."""
        copies: dict[fx.Node, fx.Node] = {}
        for name in written:
            source = self.tensors[name]
            if source not in copies:
                copies[source] = self._clone(source)
        return {name: copies.get(source, source) for name, source in self.tensors.items()}

    def _clone(self, source: fx.Node) -> fx.Node:
        from torch._prims_common import clone_preserve_strides

        value = source.meta["val"]
        if _repeats(value):
            self.refuse("writes a tensor whose elements overlap in memory")
        with self.graph.inserting_before(self.node):
            clone = self.graph.call_function(torch.ops.aten.clone.default, (source,))
        with _mode_of(value), torch.no_grad():
            clone.meta = {"val": clone_preserve_strides(value), "stack_trace": self._line()}
        return clone

    def _shared_roots(self, written: Iterable[str]) -> dict[str, fx.Node]:
        """The parameters of tensors that share their storage with another one that is written, as
        views of one tensor, with that tensor: the kernel gets views of one copy of it, so that a
        write through one is seen through the other."""
        storages: dict[int, dict[str, fx.Node]] = {}
        for name, node in self.tensors.items():
            storages.setdefault(_storage(node), {})[name] = node
        shared: dict[str, fx.Node] = {}
        for storage in dict.fromkeys(_storage(self.tensors[name]) for name in written):
            nodes = storages[storage]
            roots = {name: _root(node) for name, node in nodes.items()}
            if len(set(nodes.values())) > 1 and len(set(roots.values())) == 1:
                shared.update(roots)
        return shared

    def _again(self, node: fx.Node, shown: dict[fx.Node, fx.Node]) -> fx.Node:
        """The view that `node` is of a root, of the root's copy: `shown` has what was made."""
        if node in shown:
            return shown[node]
        source = _source_of_view(node)
        assert source is not None, "what leads to a root are views"
        inner = self._again(source, shown)
        with self.graph.inserting_before(self.node):
            copy = self.graph.node_copy(node, lambda n: inner if n is source else n)
        args, keywords = fx.map_arg((copy.args, dict(copy.kwargs)), lambda n: n.meta["val"])
        with _mode_of(node.meta["val"]), torch.no_grad():
            copy.meta = {**node.meta, "val": node.target(*args, **keywords)}  # type: ignore[operator]
        shown[node] = copy
        return copy

    def _launch(
        self,
        written: Sequence[str],
        passed: Mapping[str, fx.Node],
        views: Mapping[str, tuple[fx.Node, fx.Node]],
    ) -> None:
        """The call. `views`: parameters that are views of a root, with the root's copy."""
        first = [name for name in dict.fromkeys(written) if name not in views]
        rest = [name for name in self.tensors if name not in first and name not in views]
        bases = list(dict.fromkeys(copy for copy, _ in views.values()))
        places: list[Any] = []
        for name, (copy, root) in views.items():
            places += self._place(len(first) + bases.index(copy), self.tensors[name], root)
        key = user_kernels.register(self.kernel, self.constants, self.descriptors)
        names = [*first, *[""] * len(bases), *rest, *self.numbers, *views]
        arguments: tuple[Any, ...] = (
            key, names, self.grid, [*(passed[n] for n in first), *bases],
            [passed[n] for n in rest], list(self.numbers.values()),
        )  # fmt: skip
        if places:
            arguments = (*arguments, places)
        with self.graph.inserting_before(self.node):
            call = self.graph.call_function(torch.ops.irc_triton.launch.default, arguments)
        call.meta = {"val": None, "stack_trace": self._line()}

    def _place(self, number: int, node: fx.Node, root: fx.Node) -> Iterator[Any]:
        """Where a view is in the memory of its root, operand `number`."""
        value = node.meta["val"]
        yield from (number, value.dim(), *value.shape, *value.stride())
        yield value.storage_offset() - root.meta["val"].storage_offset()

    def _line(self) -> str | None:
        """The model's line of the call: torch notes it on the readers of what it gives at times."""
        lines = [self.node.stack_trace, *(user.stack_trace for user in self.node.users)]
        return next((line for line in lines if line), None)


def _tables() -> Any:
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    return kernel_side_table


def _padded(grid: Any) -> tuple[Any, ...]:
    """A grid's sizes along the three dimensions."""
    return (*grid, *[1] * (user_kernels.GRID_RANK - len(grid)))


def _storage(node: fx.Node) -> int:
    storage: int = node.meta["val"].untyped_storage()._cdata
    return storage


def _mode_of(value: torch.Tensor) -> Any:
    mode = detect_fake_mode([value])
    assert mode is not None, "a graph of a compiler has fake tensors"
    return mode


def _repeats(value: torch.Tensor) -> bool:
    """Whether elements share places by a stride of 0."""
    return any(
        isinstance(stride, int) and stride == 0 and not (isinstance(size, int) and size <= 1)
        for size, stride in zip(value.shape, value.stride(), strict=True)
    )


def _root(node: fx.Node) -> fx.Node:
    """What a node is a view of, at last."""
    source = _source_of_view(node)
    return node if source is None else _root(source)


def _source_of_view(node: fx.Node) -> fx.Node | None:
    """The tensor that a node is a view of; None for one that is none, or of several."""
    schema = getattr(node.target, "_schema", None)
    sources = node.all_input_nodes
    if schema is None or schema.is_mutable or not any(r.alias_info for r in schema.returns):
        return None
    tensors = [s for s in sources if isinstance(s.meta.get("val"), torch.Tensor)]
    same = [s for s in tensors if _storage(s) == _storage(node)]
    return same[0] if len(tensors) == 1 and same else None


__all__ = ["is_kernel", "take_kernels"]
