"""Programs for the tests of the loop passes: built by hand, run at every step."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

import irc.interp
from irc.dialects import func, graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.module import ModuleOp
from irc.ir.passes import PassManager
from irc.ir.types import TensorType, contiguous_strides, f32, i1, i64

Values = Sequence[Value]


def program(
    inputs: Sequence[TensorType],
    build: Callable[..., Value | Sequence[Value]],
    result_info: Sequence[dict[str, Any]] | None = None,
) -> ModuleOp:
    """A module with @main(inputs) whose body `build(g, *arguments)` makes on the graph level."""
    module = ModuleOp.empty()
    function = func.FuncOp.create("main", inputs, ())
    module.block.append(function)
    g = Graph(Builder.at_end(function.block))
    results = build(g, *function.block.arguments)
    results = [results] if isinstance(results, Value) else list(results)
    g.builder.create(func.ReturnOp, results)
    if result_info is None:
        result_info = [{"strides": A.DimsAttr(contiguous_strides(r.type.shape))} for r in results]
    function.attributes["result_info"] = A.ArrayAttr([A.DictAttr(d) for d in result_info])
    function.refresh_type()
    return module


class Graph:
    """Short names for building graph ops, with broadcasting."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def op(self, name: str, *operands: Value, type: Any = None, **attributes: Any) -> Any:
        from irc.ir.registry import lookup_op

        return self.builder.value(
            lookup_op(f"graph.{name}"), *operands, result_types=type, **attributes
        )

    def full(self, value: Any, like: Value) -> Value:
        type_: Any = like.type
        return self.op("full", type=type_, value=graph.scalar_attribute(value, type_.element))

    def broadcast(self, x: Value, shape: Sequence[Any], dims: Sequence[int]) -> Value:
        type_: Any = x.type
        return self.op("broadcast", x, type=type_.with_shape(shape), dims=list(dims))

    def rows(self, x: Value, like: Value) -> Value:
        """x of one dimension less, repeated along the last one of `like`."""
        type_: Any = like.type
        return self.broadcast(x, type_.shape, range(type_.rank - 1))

    def columns(self, x: Value, like: Value) -> Value:
        """x of rank 1, repeated along all but the last dimension of `like`."""
        type_: Any = like.type
        return self.broadcast(x, type_.shape, [type_.rank - 1])

    def reduce(self, x: Value, combiner: str, dims: Sequence[int], keepdim: bool = False) -> Value:
        return self.op("reduce", x, combiner=combiner, dims=list(dims), keepdim=keepdim)

    def call(
        self, callee: str, *operands: Value, type: Any, arguments: dict[str, A.Attribute]
    ) -> Value:
        return self.op(
            "call_aten", operands, type=type, callee=callee,
            arguments=A.DictAttr(arguments),
            eager_strides=A.ArrayAttr([A.DimsAttr(contiguous_strides(type.shape))]),
        )  # fmt: skip

    def reshape(self, x: Value, shape: Sequence[Any]) -> Value:
        type_: Any = x.type
        return self.op("reshape", x, type=type_.with_shape(shape))


def tensor(*shape: Any, element: Any = f32) -> TensorType:
    """An unordered type."""
    return TensorType(shape, element)


def example(type_: TensorType, seed: int = 0) -> torch.Tensor:
    """Content for an argument of a static type."""
    generator = torch.Generator().manual_seed(seed)
    shape = list(type_.shape)
    if type_.element is i64:
        return torch.randint(0, 4, shape, generator=generator)
    if type_.element is i1:
        return torch.randint(0, 2, shape, generator=generator).bool()
    content = torch.randn(shape, generator=generator)
    return content.to(irc.interp.core.torch_dtype(type_.element))


FUSION = "inline-computes,factor-axes,merge-computes,group-computes,attach-checks,localize"
LOWERING = "assign-layouts,insert-layout-copies,convert-to-loop"


def check(
    module: ModuleOp,
    arguments: Sequence[Any],
    steps: str = f"{LOWERING},{FUSION},split-reductions,elide-rounding",
    tolerance: float = 1e-10,
    mode: str = "real",
) -> ModuleOp:
    """Run the program before and after each step of the pipeline and compare; gives the module."""
    expected = irc.interp.run(module, *clones(arguments), mode=mode)
    for step in steps.split(","):
        PassManager.parse(step, verify="end").run(module)
        got = irc.interp.run(module, *clones(arguments), mode=mode)
        compare(expected, got, tolerance, step)
    return module


def clones(arguments: Sequence[Any]) -> list[Any]:
    return [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]


def compare(expected: Sequence[Any], got: Sequence[Any], tolerance: float, step: str) -> None:
    assert len(expected) == len(got), step
    for number, (a, b) in enumerate(itertools.zip_longest(expected, got)):
        assert a.shape == b.shape, f"{step}: result {number} {a.shape} {b.shape}"
        torch.testing.assert_close(
            b.double(), a.double(), rtol=tolerance, atol=tolerance, equal_nan=True,
            msg=lambda text, n=number: f"after {step}, result {n}: {text}",
        )  # fmt: skip


def kernels(module: ModuleOp) -> int:
    """The number of top-level computes and groups."""
    return sum(
        1
        for function in module.ops
        for op in function.regions[0].blocks[0].ops
        if op.name in ("loop.compute", "loop.group")
    )


# -- the examples that the issue names


def softmax(g: Graph, x: Value) -> Value:
    last = x.type.rank - 1  # type: ignore[attr-defined]
    top = g.rows(g.reduce(x, "max", [last]), x)
    e = g.op("exp", g.op("sub", x, top))
    return g.op("div", e, g.rows(g.reduce(e, "sum", [last]), x))


def layer_norm(g: Graph, x: Value, weight: Value, bias: Value) -> Sequence[Value]:
    """y, mean, rstd over the last dimension."""
    type_: Any = x.type
    count = g.op
    mean, m2 = g.builder.create(graph.Moments, x, dims=[type_.rank - 1]).results
    size = g.full(float(type_.shape[-1]), mean)
    variance = count("div", m2, size)
    rstd = count("rsqrt", count("add", variance, g.full(1e-5, mean)))
    normal = count("mul", count("sub", x, g.rows(mean, x)), g.rows(rstd, x))
    y = count("add", count("mul", normal, g.columns(weight, x)), g.columns(bias, x))
    return y, mean, rstd


def layer_norm_backward(
    g: Graph, dy: Value, x: Value, mean: Value, rstd: Value, weight: Value
) -> Sequence[Value]:
    """dx, dweight, dbias."""
    type_: Any = x.type
    last = type_.rank - 1
    normal = g.op("mul", g.op("sub", x, g.rows(mean, x)), g.rows(rstd, x))
    scaled = g.op("mul", dy, g.columns(weight, x))
    size = g.full(1.0 / type_.shape[-1], mean)
    a = g.op("mul", g.reduce(scaled, "sum", [last]), size)
    b = g.op("mul", g.reduce(g.op("mul", scaled, normal), "sum", [last]), size)
    inner = g.op("sub", scaled, g.rows(a, x))
    inner = g.op("sub", inner, g.op("mul", normal, g.rows(b, x)))
    dx = g.op("mul", inner, g.rows(rstd, x))
    outer = list(range(last))
    return dx, g.reduce(g.op("mul", dy, normal), "sum", outer), g.reduce(dy, "sum", outer)


def random_program(seed: int) -> tuple[ModuleOp, list[torch.Tensor]]:
    """A random program of pointwise ops, views, reductions, scans and index ops."""
    random_ = random.Random(seed)
    shape = random_.choice([(3, 4), (2, 3, 4), (5, 1, 4), (6,), (4, 4), (2, 2, 2, 3)])
    types = [tensor(*shape), tensor(*shape), tensor(shape[-1])]

    def build(g: Graph, *arguments: Value) -> Sequence[Value]:
        values: list[Any] = [arguments[0], arguments[1], g.columns(arguments[2], arguments[0])]
        for _ in range(random_.randint(3, 16)):
            values.append(random_step(g, random_, values))
        chosen = random_.sample(values[3:], k=min(len(values) - 3, random_.randint(1, 4)))
        return list(dict.fromkeys([*chosen, values[-1]]))

    module = program(types, build)
    return module, [example(t, seed + k) for k, t in enumerate(types)]


def random_step(g: Graph, random_: random.Random, values: list[Any]) -> Value:
    x = random_.choice(values)
    shape, rank = x.type.shape, x.type.rank
    kind = random_.choice(
        ["unary", "binary", "binary", "binary", "reduce", "reduce", "permute", "reshape", "slice",
         "concat", "pad", "scan", "select", "softmax", "moments", "take", "reverse", "cast"]
    )  # fmt: skip
    if kind == "binary":
        other = random_.choice([v for v in values if v.type == x.type])
        return g.op(random_.choice(["add", "sub", "mul", "maximum"]), x, other)  # type: ignore
    if kind == "reduce" and rank:
        dims = sorted(random_.sample(range(rank), random_.randint(1, rank)))
        reduced = g.reduce(x, random_.choice(["sum", "max"]), dims, True)
        if random_.random() < 0.3:
            flat = [s for d, s in enumerate(shape) if d not in dims]
            return g.reshape(reduced, flat)
        return g.broadcast(reduced, shape, range(rank))
    if kind == "permute" and rank:
        return g.op("permute", x, permutation=random_.sample(range(rank), rank))  # type: ignore
    if kind == "reshape":
        sizes = random_.choice(
            [[math.prod(shape)], list(reversed(shape)), list(shape), [1, *shape]]
        )
        return g.reshape(x, sizes)
    if kind == "slice" and rank and shape[-1] > 1:
        type_ = x.type.with_shape([*shape[:-1], shape[-1] - 1])
        start = A.DimAttr(random_.choice([0, 1]))
        return g.op("slice", x, type=type_, dim=rank - 1, start=start, step=1)  # type: ignore
    if kind == "concat" and rank:
        other = random_.choice([v for v in values if v.type == x.type])
        return g.op("concat", [x, other], dim=random_.randrange(rank))  # type: ignore
    if kind == "pad" and rank:
        low, high = [random_.choice([0, 1]) for _ in shape], [random_.choice([0, 1]) for _ in shape]
        fill = A.FloatAttr(0.5, f32)
        return g.op("pad", x, low=A.DimsAttr(low), high=A.DimsAttr(high), value=fill)  # type: ignore
    if kind == "scan" and rank:
        return g.op("scan", x, combiner="sum", dim=random_.randrange(rank))  # type: ignore
    if kind == "select":
        other = random_.choice([v for v in values if v.type == x.type])
        return g.op("select", g.op("gt", x, other), x, other)  # type: ignore
    if kind == "softmax" and rank:
        return softmax(g, x)
    if kind == "moments" and rank:
        made = g.builder.create(graph.Moments, x, dims=[rank - 1], keepdim=True)
        return g.op("sub", x, g.broadcast(made.results[0], shape, range(rank)))  # type: ignore
    if kind == "take" and rank:
        iota = g.op("iota", type=tensor(2, element=i64), dim=0)
        dim = random_.choice([d for d in range(rank) if shape[d] >= 2] or [None])  # type: ignore
        if dim is not None:
            return g.op("take", x, [iota], dims=[dim], position=dim, check_bounds=True)  # type: ignore
    if kind == "reverse" and rank:
        return g.op("reverse", x, dims=[random_.randrange(rank)])  # type: ignore
    if kind == "cast":
        narrow = g.op("cast", x, type=x.type.with_element(i1))
        return g.op("cast", narrow, type=x.type)  # type: ignore
    return g.op(random_.choice(["neg", "abs", "exp", "tanh"]), g.op("sin", x))  # type: ignore
