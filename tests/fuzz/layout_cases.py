"""Random cases of `layouts`: inputs that are permuted, broadcast, with gaps, at an offset,
channels-last, empty, or with odd strides of dimensions of size 1; views, calls and pointwise steps.
"""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from hypothesis import strategies as st

from irc.ir.strides import channels_last_strides
from irc.ir.types import contiguous_strides
from tests.fuzz.layouts import EAGER, Case, Input, Step

DTYPES = (torch.float64, torch.float64, torch.float32, torch.int64, torch.int32)


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
