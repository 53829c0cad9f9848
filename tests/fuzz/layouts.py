"""Random programs over strided tensors, as graph-level IR and as eager PyTorch side by side.

A case is a list of inputs with strides of their own (permuted, broadcast, with gaps, at an offset,
channels-last, empty, with odd strides of dimensions of size 1), a list of steps, and results of
which some must have strides that nothing gives by itself. Elements are small integers, so that
every order of summing gives the same bits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from hypothesis import strategies as st

from irc.analysis.strides import channels_last_strides
from irc.dialects import aten, func, graph
from irc.dialects.builtin import ModuleOp
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.registry import lookup_op
from irc.ir.types import ELEMENT_OF_DTYPE, TensorType, contiguous_strides

DTYPES = (torch.float64, torch.float64, torch.float32, torch.int64, torch.int32)


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
        return builder.value(
            lookup_op(f"graph.{name}"), *values, result_types=type, **attributes
        )

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


# -- random cases


@st.composite
def cases(draw: Any) -> Case:
    """Random cases; they shrink to fewer steps and smaller numbers."""
    return _Writer(draw(st.randoms(use_true_random=False))).write()


class _Writer:
    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.values: list[torch.Tensor] = []

    def write(self) -> Case:
        """Inputs, steps, results."""
        choose = self.choose
        shape = self.shape()
        for _ in range(choose.randint(1, 3)):
            self.add_input(self.related(shape))
        for number in range(choose.randint(1, 7)):
            for _ in range(4):
                if self.add_step(number):
                    break
        count = len(self.inputs)
        first = count if len(self.values) > count else 0
        numbers = [choose.randrange(first, len(self.values)) for _ in range(choose.randint(1, 3))]
        if choose.random() < 0.3:
            numbers.append(choose.randrange(len(self.values)))
        results = tuple((n, self.wanted(n)) for n in numbers)
        return Case(tuple(self.inputs), tuple(self.steps), results, self.updates())

    def shape(self) -> tuple[int, ...]:
        """The sizes of most arrays; sometimes there is a dimension of 0 or 1."""
        rank = self.choose.choice((2, 3, 4, 1, 2, 3, 0))
        return tuple(self.choose.choice((2, 3, 4, 5, 1, 2, 3, 4, 0)) for _ in range(rank))

    def related(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """These sizes, or in another order, or some of them 1."""
        kind = self.choose.randrange(4)
        if kind == 1:
            return tuple(self.choose.sample(shape, len(shape)))
        if kind == 2:
            return tuple(1 if self.choose.random() < 0.3 else n for n in shape)
        return shape

    def add_input(self, shape: tuple[int, ...]) -> None:
        """An argument of these sizes with strides of some kind."""
        choose = self.choose
        dtype = choose.choice(DTYPES)
        strides = self.strides(shape)
        if choose.random() < 0.15 and shape:
            dim = choose.randrange(len(shape))
            strides = tuple(0 if d == dim else s for d, s in enumerate(strides))
        offset = choose.choice((0, 0, 0, 1, 5))
        self.inputs.append(Input(shape, strides, offset, dtype, choose.randrange(1000)))
        self.values.append(self.inputs[-1].tensor())

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Strides by which no two elements meet."""
        choose = self.choose
        kind = choose.choice(("dense", "permuted", "gaps", "channels-last", "odd"))
        dense = tuple(int(s) for s in contiguous_strides(shape))  # type: ignore[arg-type]
        if kind == "channels-last" and len(shape) in (4, 5):
            return tuple(int(s) for s in channels_last_strides(shape))  # type: ignore[arg-type]
        if kind == "odd":
            return tuple(choose.choice((s, 1, 7)) if n == 1 else s
                         for n, s in zip(shape, dense, strict=True))  # fmt: skip
        if kind not in ("permuted", "gaps"):
            return dense
        strides = [1] * len(shape)
        running = choose.choice((1, 1, 2)) if kind == "gaps" else 1
        order = list(range(len(shape) - 1, -1, -1))
        if kind == "permuted" or choose.random() < 0.5:
            choose.shuffle(order)
        for dim in order:
            strides[dim] = running
            running *= max(shape[dim], 1)
            if kind == "gaps":
                running += choose.choice((0, 0, 1, 3))
        return tuple(strides)

    def wanted(self, number: int) -> tuple[int, ...] | None:
        """The strides that the caller must see; None for a view of an argument as eager has it."""
        value = self.values[number]
        owned = {v.untyped_storage()._cdata for v in self.values[: len(self.inputs)]}
        if value.untyped_storage()._cdata in owned and self.choose.random() < 0.8:
            return None
        shape, strides = tuple(value.shape), tuple(value.stride())
        if self.choose.random() < 0.5 and not any(
            s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)
        ):
            if not _meets(shape, strides):
                return strides
        return self.strides(shape)

    def updates(self) -> tuple[tuple[int, int], ...]:
        """Sometimes an argument takes the elements of a value."""
        if self.choose.random() > 0.25:
            return ()
        argument = self.choose.randrange(len(self.inputs))
        target = self.values[argument]
        fitting = [
            k
            for k, v in enumerate(self.values)
            if v.shape == target.shape and v.dtype == target.dtype
        ]
        if self.inputs[argument].overlaps():
            return ()
        return ((argument, self.choose.choice(fitting)),)

    def add_step(self, number: int) -> bool:
        """Try to append one step; False where the values at hand don't allow it."""
        kind = self.choose.choice(KINDS)
        operand = self.choose.randrange(len(self.values))
        step = getattr(self, f"_{kind}")(operand, self.values[operand])
        if self.steps and self.choose.random() < 0.1:
            step = self.choose.choice(self.steps)  # which cse makes one of
        if step is None:
            return False
        operands = [self.values[k] for k in step.operands]
        made = EAGER[step.name](*operands, **dict(step.attributes))
        if made.numel() > 600 or made.dim() > 5:
            return False
        self.steps.append(step)
        self.values.append(made)
        return True

    def alike(self, value: torch.Tensor, dtype: torch.dtype | None = None) -> list[int]:
        """The numbers of the values with the same sizes (and element type)."""
        wanted = dtype or value.dtype
        found = enumerate(self.values)
        return [k for k, v in found if v.shape == value.shape and v.dtype == wanted]

    def _unary(self, k: int, x: torch.Tensor) -> Step | None:
        return Step(self.choose.choice(("neg", "abs", "copy")), (k,))

    def _binary(self, k: int, x: torch.Tensor) -> Step | None:
        other = self.choose.choice(self.alike(x))
        return Step(self.choose.choice(("add", "sub", "maximum", "minimum")), (k, other))

    def _select(self, k: int, x: torch.Tensor) -> Step | None:
        return Step("select", (k, *(self.choose.choice(self.alike(x)) for _ in range(2))))

    def _cast(self, k: int, x: torch.Tensor) -> Step | None:
        return Step("cast", (k,), (("dtype", self.choose.choice(DTYPES)),))

    def _permute(self, k: int, x: torch.Tensor) -> Step | None:
        order = tuple(self.choose.sample(range(x.dim()), x.dim()))
        return Step("permute", (k,), (("permutation", order),)) if x.dim() > 1 else None

    def _reshape(self, k: int, x: torch.Tensor) -> Step | None:
        sizes = list(x.shape)
        for _ in range(self.choose.randint(1, 3)):
            kind = self.choose.randrange(4)
            place = self.choose.randrange(len(sizes) + 1)
            if kind == 0:
                sizes.insert(place, 1)
            elif kind == 1 and place + 1 < len(sizes):
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
            elif kind == 2 and place < len(sizes) and sizes[place] == 1:
                del sizes[place]
            elif kind == 3 and place < len(sizes) and sizes[place] % 2 == 0 and sizes[place]:
                sizes[place : place + 1] = [2, sizes[place] // 2]
        return Step("reshape", (k,), (("shape", tuple(sizes)),))

    def _slice(self, k: int, x: torch.Tensor) -> Step | None:
        if not x.dim():
            return None
        dim = self.choose.randrange(x.dim())
        start = self.choose.randint(0, x.shape[dim])
        stop = self.choose.randint(start, x.shape[dim])
        step = self.choose.choice((1, 1, 2))
        return Step("slice", (k,), (("dim", dim), ("start", start), ("stop", stop), ("step", step)))

    def _broadcast(self, k: int, x: torch.Tensor) -> Step | None:
        shape = [self.choose.choice((2, 3)) if n == 1 else n for n in x.shape]
        dims = list(range(len(shape)))
        if self.choose.random() < 0.5 and len(shape) < 4:
            place = self.choose.randrange(len(shape) + 1)
            shape.insert(place, self.choose.choice((1, 2, 3)))
            dims = [d + (d >= place) for d in dims]
        return Step("broadcast", (k,), (("shape", tuple(shape)), ("dims", tuple(dims))))

    def _reverse(self, k: int, x: torch.Tensor) -> Step | None:
        if not x.dim():
            return None
        return Step("reverse", (k,), (("dims", (self.choose.randrange(x.dim()),)),))

    def _diagonal(self, k: int, x: torch.Tensor) -> Step | None:
        if x.dim() < 2:
            return None
        first, second = self.choose.sample(range(x.dim()), 2)
        offset = self.choose.choice((0, 0, 1, -1))
        if not min(x.shape[first] + min(offset, 0), x.shape[second] - max(offset, 0)) > 0:
            return None
        return Step("diagonal", (k,), (("dim1", first), ("dim2", second), ("offset", offset)))

    def _window(self, k: int, x: torch.Tensor) -> Step | None:
        if not x.dim():
            return None
        dim = self.choose.randrange(x.dim())
        size = self.choose.randint(1, 3)
        if x.shape[dim] < size:
            return None
        step = self.choose.randint(1, 2)
        return Step("window", (k,), (("dim", dim), ("size", size), ("step", step)))

    def _concat(self, k: int, x: torch.Tensor) -> Step | None:
        if not x.dim():
            return None
        others = [self.choose.choice(self.alike(x)) for _ in range(self.choose.randint(1, 2))]
        return Step("concat", (k, *others), (("dim", self.choose.randrange(x.dim())),))

    def _pad(self, k: int, x: torch.Tensor) -> Step | None:
        low, high = (tuple(self.choose.randint(0, 2) for _ in x.shape) for _ in range(2))
        return Step("pad", (k,), (("low", low), ("high", high))) if x.dim() else None

    def _reduce(self, k: int, x: torch.Tensor) -> Step | None:
        if not x.dim():
            return None
        dims = tuple(sorted(self.choose.sample(range(x.dim()), self.choose.randint(1, x.dim()))))
        combiner = self.choose.choice(("sum", "max"))
        if combiner == "max" and 0 in x.shape:
            return None
        keep = self.choose.random() < 0.5
        return Step("reduce", (k,), (("combiner", combiner), ("dims", dims), ("keepdim", keep)))

    def _scan(self, k: int, x: torch.Tensor) -> Step | None:
        return Step("scan", (k,), (("dim", self.choose.randrange(x.dim())),)) if x.dim() else None

    def _gather(self, k: int, x: torch.Tensor) -> Step | None:
        indices = self.alike(x, torch.int64)
        if not x.dim() or not indices or not x.numel():
            return None
        where = self.choose.choice(indices)
        return Step("gather", (k, where), (("dim", self.choose.randrange(x.dim())),))

    def _product(self, k: int, x: torch.Tensor) -> Step | None:
        """mm, bmm or addmm with any value that fits."""
        if x.dim() not in (2, 3) or x.dtype != torch.float64:
            return None
        fitting = [
            j
            for j, v in enumerate(self.values)
            if v.dim() == x.dim() and v.dtype == x.dtype and v.shape[-2] == x.shape[-1]
            and v.shape[:-2] == x.shape[:-2]
        ]  # fmt: skip
        if not fitting:
            return None
        other = self.choose.choice(fitting)
        if x.dim() == 3:
            return Step("bmm", (k, other))
        outcome = (x.shape[0], self.values[other].shape[1])
        biases = [j for j, v in enumerate(self.values) if v.dtype == x.dtype and v.shape == outcome]
        if biases and self.choose.random() < 0.5:
            return Step("addmm", (self.choose.choice(biases), k, other))
        return Step("mm", (k, other))

    def _convolution(self, k: int, x: torch.Tensor) -> Step | None:
        if x.dim() != 4 or x.dtype != torch.float64 or 0 in x.shape:
            return None
        fitting = [
            j
            for j, v in enumerate(self.values)
            if v.dim() == 4 and v.dtype == x.dtype and v.shape[1] == x.shape[1] and v.shape[0]
            and 0 < v.shape[2] <= x.shape[2] and 0 < v.shape[3] <= x.shape[3]
        ]  # fmt: skip
        return Step("convolution", (k, self.choose.choice(fitting))) if fitting else None

    def _sort(self, k: int, x: torch.Tensor) -> Step | None:
        return Step("sort", (k,), (("dim", self.choose.randrange(x.dim())),)) if x.dim() else None


def _meets(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements share a place (as in overlapping windows)."""
    places = {0}
    for size, stride in zip(shape, strides, strict=True):
        places = {p + k * stride for p in places for k in range(size)}
    return len(places) < math.prod(shape)


VIEWS = ("permute", "reshape", "slice", "broadcast", "diagonal", "window")
KINDS = ("unary", "binary", "binary", *VIEWS, *VIEWS, "select", "cast", "reverse", "concat", "pad",
         "reduce", "reduce", "scan", "gather", "product", "product", "convolution", "convolution",
         "sort")  # fmt: skip
