"""Programs over strided tensors, as graph-level IR and as eager PyTorch side by side.

A case is a list of inputs with strides of their own, a list of steps, and results of which some
must have strides that nothing gives by itself. `layout_cases` draws random ones. Elements are small
integers, so that every order of summing gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch

from irc.dialects import aten, func, graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.module import ModuleOp
from irc.ir.registry import lookup_op
from irc.ir.types import ELEMENT_OF_DTYPE, TensorType


@attrs.frozen
class Input:
    """An argument: sizes, strides and offset in a memory of its own."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    seed: int

    def tensor(self) -> torch.Tensor:
        """The argument, filled with numbers from -3 to 3."""
        spans = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        count = self.offset + (1 + sum(spans) if 0 not in self.shape else 0)
        generator = torch.Generator().manual_seed(self.seed)
        memory = torch.randint(-3, 4, (max(count, 1),), generator=generator).to(self.dtype)
        return memory.as_strided(self.shape, self.strides, self.offset)

    def overlaps(self) -> bool:
        """Whether two elements share a place (by a stride of 0)."""
        return any(n > 1 and s == 0 for n, s in zip(self.shape, self.strides, strict=True))


@attrs.frozen
class Step:
    """An operation: its name, the numbers of the values it takes, and its attributes."""

    name: str
    operands: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...] = ()


@attrs.frozen
class Case:
    """A program. `results`: the numbers of the values returned, and the strides that each must
    have in memory of its own (None: it is eager's view of an argument); with eager's strides it
    shares that memory with other results as in eager. `updates`: (argument, value) written at the
    end."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    results: tuple[tuple[int, tuple[int, ...] | None], ...]
    updates: tuple[tuple[int, int], ...] = ()

    def arguments(self) -> list[torch.Tensor]:
        """Fresh arguments."""
        return [i.tensor() for i in self.inputs]

    def eager(self, *arguments: torch.Tensor) -> list[torch.Tensor]:
        """What the program means, in eager PyTorch."""
        values = evaluate(self.steps, arguments)
        made = [
            values[number] if strides is None else as_laid_out(values[number], strides)
            for number, strides in self.results
        ]
        copies = [(argument, values[value].clone()) for argument, value in self.updates]
        for argument, value in copies:
            arguments[argument].copy_(value)
        return made

    def module(self) -> ModuleOp:
        """The program on the graph level, as `convert-aten-to-graph` leaves it."""
        return build(self)


def evaluate(steps: Sequence[Step], arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """All values of a program: the arguments, then each step's."""
    values = list(arguments)
    for step in steps:
        operands = [values[k] for k in step.operands]
        values.append(EAGER[step.name](*operands, **dict(step.attributes)))
    return values


def as_laid_out(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """A copy in memory of its own, with given strides."""
    return torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)


# -- the operations in eager mode


def _matmul(callee: str) -> Callable[..., torch.Tensor]:
    name = callee.split(".")[1]
    return lambda *operands: getattr(torch.ops.aten, name).default(*operands)


def _pad(x: torch.Tensor, low: Sequence[int], high: Sequence[int]) -> torch.Tensor:
    sizes = [a + n + b for a, n, b in zip(low, x.shape, high, strict=True)]
    made = torch.full(sizes, 7, dtype=x.dtype)
    inner = tuple(slice(a, a + n) for a, n in zip(low, x.shape, strict=True))
    made[inner] = x
    return made


def _broadcast(x: torch.Tensor, shape: Sequence[int], dims: Sequence[int]) -> torch.Tensor:
    sizes = [1] * len(shape)
    for dim, size in zip(dims, x.shape, strict=True):
        sizes[dim] = size
    steps = [0] * len(shape)
    for dim, stride in zip(dims, x.stride(), strict=True):
        steps[dim] = stride
    return x.as_strided(sizes, steps).expand(shape) if x.numel() else x.reshape(sizes).expand(shape)


EAGER: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add, "sub": torch.sub, "maximum": torch.maximum, "minimum": torch.minimum,
    "neg": torch.neg, "abs": torch.abs, "mul": torch.mul,
    "select": lambda c, x, y: torch.where(c > 0, x, y),
    "cast": lambda x, dtype: x.to(dtype, copy=True),
    "copy": lambda x: x.clone(),
    "permute": lambda x, permutation: x.permute(permutation),
    "reshape": lambda x, shape: x.reshape(shape),
    "slice": lambda x, dim, start, stop, step: torch.ops.aten.slice(x, dim, start, stop, step),
    "broadcast": _broadcast,
    "reverse": lambda x, dims: x.flip(dims),
    "diagonal": lambda x, dim1, dim2, offset: x.diagonal(offset, dim1, dim2),
    "window": lambda x, dim, size, step: x.unfold(dim, size, step),
    "concat": lambda *xs, dim: torch.cat(xs, dim),
    "pad": _pad,
    "reduce": lambda x, combiner, dims, keepdim: (
        torch.sum(x, dims, keepdim).to(x.dtype) if combiner == "sum" else x.amax(dims, keepdim)
    ),
    "scan": lambda x, dim: x.cumsum(dim).to(x.dtype),
    "gather": lambda x, i, dim: x.gather(dim, i.abs() % x.shape[dim]),
    "mm": _matmul("aten.mm.default"), "bmm": _matmul("aten.bmm.default"),
    "addmm": _matmul("aten.addmm.default"),
    "convolution": lambda x, w: torch.convolution(
        x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    ),
    "sort": lambda x, dim: torch.sort(x, dim)[0],
}  # fmt: skip


# -- the operations as IR


def type_of(value: torch.Tensor) -> TensorType:
    """The type on the graph level: without strides."""
    return TensorType(tuple(value.shape), ELEMENT_OF_DTYPE[str(value.dtype)[6:]])


def build(case: Case) -> ModuleOp:
    """The graph-level module of a case."""
    contents = evaluate(case.steps, case.arguments())
    module = ModuleOp.empty()
    count = len(case.inputs)
    function = func.FuncOp.create("main", [type_of(t) for t in contents[:count]], ())
    module.block.append(function)
    builder = Builder.at_end(function.block)
    values: list[Value] = list(function.block.arguments)
    for step, made in zip(case.steps, contents[count:], strict=True):
        operands = [values[k] for k in step.operands]
        eager = [contents[k] for k in step.operands]
        values.append(emit(builder, step, operands, eager, made))
    for argument, value in case.updates:
        builder.create(graph.UpdateInput, values[value], argument=argument)
    builder.create(func.ReturnOp, [values[number] for number, _ in case.results])
    function.attributes["arg_info"] = A.ArrayAttr(
        [
            A.DictAttr({"strides": A.DimsAttr(i.strides), "offset": A.DimAttr(i.offset)})
            for i in case.inputs
        ]
    )
    storages = {c.untyped_storage()._cdata: k for k, c in enumerate(contents[:count])}
    info: list[A.Attribute] = []
    shared: dict[int, int] = {}
    for number, strides in case.results:
        content = contents[number]
        if strides is None:
            entries: dict[str, A.Attribute] = {
                "strides": A.DimsAttr(content.stride()),
                "offset": A.DimAttr(content.storage_offset()),
                "alias_of": A.IntegerAttr(storages[content.untyped_storage()._cdata]),
            }
        else:
            entries = {"strides": A.DimsAttr(strides), "offset": A.DimAttr(0)}
            storage = content.untyped_storage()._cdata
            if storage not in storages and strides == content.stride():
                entries["offset"] = A.DimAttr(content.storage_offset())
                first = shared.setdefault(storage, len(info))
                if first != len(info):
                    entries["shares"] = A.IntegerAttr(first)
        info.append(A.DictAttr(entries))
    function.attributes["result_info"] = A.ArrayAttr(info)
    function.attributes["level"] = A.StringAttr("graph")
    function.refresh_type()
    return module


def emit(
    builder: Builder,
    step: Step,
    operands: list[Value],
    eager: list[torch.Tensor],
    made: torch.Tensor,
) -> Value:
    """The value of one step. `eager` and `made`: what it takes and gives."""
    given = dict(step.attributes)
    kind = type_of(made)

    def op(name: str, *values: Any, type: Any = None, **attributes: Any) -> Any:
        return builder.value(lookup_op(f"graph.{name}"), *values, result_types=type, **attributes)

    def full(value: int, like: Value) -> Any:
        type_: Any = like.type
        return op("full", type=type_, value=graph.scalar_attribute(value, type_.element))

    name = step.name
    if name == "select":
        condition = op("gt", operands[0], full(0, operands[0]))
        return op("select", condition, *operands[1:])
    if name == "cast":
        return op("cast", *operands, type=kind)
    if name == "slice":
        given.pop("stop")
        return op("slice", *operands, type=kind, **given)
    if name == "window":
        return op("window", *operands, type=kind, dim=given["dim"], step=given["step"], dilation=1)
    if name == "broadcast":
        return op("broadcast", *operands, type=kind, dims=list(given["dims"]))
    if name == "reshape":
        return op("reshape", *operands, type=kind)
    if name == "diagonal":
        return op("diagonal", *operands, type=kind, **given)
    if name == "concat":
        return op("concat", operands, dim=given["dim"])
    if name == "pad":
        fill = graph.scalar_attribute(7, kind.element)
        return op("pad", *operands, low=list(given["low"]), high=list(given["high"]), value=fill)
    if name == "scan":
        return op("scan", *operands, combiner="sum", dim=given["dim"])
    if name == "gather":
        source, indices = operands
        size = source.type.shape[given["dim"]]  # type: ignore[attr-defined]
        inside = op("remainder", op("abs", indices), full(size, indices))
        return op("gather", source, inside, dim=given["dim"], check_bounds=True)
    if name in CALLS:
        return call(builder, name, operands, eager, given)
    lists = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
    return op(name, *operands, **lists)


CALLS = {
    "mm": ("aten.mm.default", ("self", "mat2")),
    "bmm": ("aten.bmm.default", ("self", "mat2")),
    "addmm": ("aten.addmm.default", ("self", "mat1", "mat2")),
    "convolution": ("aten.convolution.default", ("input", "weight")),
    "sort": ("aten.sort.default", ("self",)),
}


def call(
    builder: Builder,
    name: str,
    operands: list[Value],
    eager: list[torch.Tensor],
    given: dict[str, Any],
) -> Value:
    """A call of ATen, with the strides that eager passes and gets."""
    callee, names = CALLS[name]
    arguments: dict[str, A.Attribute] = {n: aten.OperandAttr(k) for k, n in enumerate(names)}
    arguments |= {k: A.IntegerAttr(v) for k, v in given.items()}
    if name == "convolution":
        zero, one = A.IntegerAttr(0), A.IntegerAttr(1)
        arguments |= {
            "bias": aten.NONE, "stride": A.ArrayAttr([one, one]),
            "padding": A.ArrayAttr([zero, zero]), "dilation": A.ArrayAttr([one, one]),
            "transposed": A.BoolAttr(False), "output_padding": A.ArrayAttr([zero, zero]),
            "groups": one,
        }  # fmt: skip
    results = EAGER[name](*eager, **given)
    outcomes = list(torch.sort(*eager, **given)) if name == "sort" else [results]
    made = graph.CallAten(
        operands,
        [type_of(o) for o in outcomes],
        {
            "callee": A.StringAttr(callee),
            "arguments": A.DictAttr(arguments),
            "eager_strides": A.ArrayAttr([A.DimsAttr(o.stride()) for o in outcomes]),
            "operand_strides": A.ArrayAttr([A.DimsAttr(e.stride()) for e in eager]),
        },
    )
    builder.insert(made)
    return made.results[0]
