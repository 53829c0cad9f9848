"""Symbolic sizes: one program, several sizes, every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

import irc.interp
from irc.dialects import sym
from irc.frontend.backend import recording
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, contiguous_strides, f32
from tests.passes.loop.programs import (
    FUSION,
    LOWERING,
    Graph,
    compare,
    kernels,
    layer_norm,
    layer_norm_backward,
    program,
    softmax,
)

S0, S1 = symbol("s0"), symbol("s1")


def dynamic(types: Sequence[TensorType], build: Any) -> Any:
    """A program whose argument 0 binds s0 and s1 to its first two sizes."""

    def whole(g: Graph, *arguments: Value) -> Any:
        for dim, name in enumerate(("s0", "s1")):
            g.builder.value(sym.BindSizeOp, arguments[0], dim=dim, symbol=name, hint=7)
        return build(g, *arguments)

    return program(types, whole)


def run_all(module: Any, cases: Sequence[Sequence[torch.Tensor]]) -> None:
    expected = [irc.interp.run(module, *case, mode="real") for case in cases]
    for step in f"{LOWERING},{FUSION},split-reductions".split(","):
        PassManager.parse(step).run(module)
        for want, case in zip(expected, cases, strict=True):
            compare(want, irc.interp.run(module, *case, mode="real"), 1e-10, step)


def cases(*shapes: Any) -> list[list[torch.Tensor]]:
    made = []
    for s0, s1 in ((3, 5), (8, 2), (1, 1)):
        sizes = {"s0": s0, "s1": s1}
        made.append([torch.randn([sizes.get(str(d), d) for d in shape]) for shape in shapes])
    return made


def sizes(*shape: Any) -> TensorType:
    return TensorType(shape, f32)


def test_softmax_of_symbolic_rows() -> None:
    module = dynamic([sizes(S0, S1)], lambda g, x: softmax(g, x))
    run_all(module, cases(("s0", "s1")))
    assert kernels(module) == 1


def test_layer_norm_of_symbolic_rows() -> None:
    module = dynamic([sizes(S0, S1, 16), sizes(16), sizes(16)], layer_norm)
    run_all(module, cases(("s0", "s1", 16), (16,), (16,)))
    assert kernels(module) == 1


def test_layer_norm_backward_of_symbolic_rows() -> None:
    module = dynamic(
        [sizes(S0, S1, 24), sizes(S0, S1, 24), sizes(S0, S1), sizes(S0, S1), sizes(24)],
        layer_norm_backward,
    )
    shapes = (("s0", "s1", 24), ("s0", "s1", 24), ("s0", "s1"), ("s0", "s1"), (24,))
    run_all(module, cases(*shapes))
    assert kernels(module) == 2


def test_flattened_and_unflattened_values_meet() -> None:
    def build(g: Graph, x: Value, flat: Value) -> Value:
        added = g.op("add", g.reshape(x, [S0 * S1, 12]), flat)
        heads = g.op("permute", g.reshape(added, [S0, S1, 3, 4]), permutation=[0, 2, 1, 3])
        back = g.reshape(g.op("permute", heads, permutation=[0, 2, 1, 3]), [S0 * S1, 12])
        return g.op("exp", back)

    module = dynamic([sizes(S0, S1, 12), sizes(S0 * S1, 12)], build)
    shapes = [[torch.randn(a, b, 12), torch.randn(a * b, 12)] for a, b in ((3, 5), (2, 1))]
    run_all(module, shapes)
    assert kernels(module) == 1
    text = [str(d) for op in module.walk() if op.name == "loop.read" for d in op.indices]
    assert not any("floordiv" in t or "mod" in t for t in text if "s1" not in t), text


def test_concat_pad_and_slice_of_symbolic_sizes() -> None:
    def build(g: Graph, x: Value, y: Value) -> Value:
        joined = g.op("concat", [x, y], dim=0)
        padded = g.op(
            "pad", joined, low=A.DimsAttr([1, 0]), high=A.DimsAttr([0, S1]),
            value=A.FloatAttr(2.0, f32),
        )  # fmt: skip
        part = g.op("slice", padded, type=sizes(S0 + 4, S1), dim=1, start=A.DimAttr(S1), step=1)
        return g.op("add", part, g.op("reverse", part, dims=[0, 1]))

    module = dynamic([sizes(S0, S1), sizes(3, S1)], build)
    run_all(module, cases(("s0", "s1"), (3, "s1")))


def test_a_symbolic_size_as_a_number() -> None:
    def build(g: Graph, x: Value) -> Value:
        number = g.builder.value(sym.ValueOp, dim=S0 * 2 + 1)
        return g.op("mul", x, g.op("full", number, type=sizes(S0, S1)))

    module = dynamic([sizes(S0, S1)], build)
    run_all(module, cases(("s0", "s1")))
    assert kernels(module) == 1


def test_types_name_their_symbolic_strides() -> None:
    module = dynamic(
        [sizes(S0, S1)], lambda g, x: g.op("permute", g.op("exp", x), permutation=[1, 0])
    )
    info = A.DictAttr({"strides": A.DimsAttr((1, S1))})
    function = next(iter(module.ops))
    function.attributes["result_info"] = A.ArrayAttr([info])
    PassManager.parse(LOWERING).run(module)
    returned = function.return_op.operands[0].type
    assert returned.strides == (1, S1)
    assert contiguous_strides((S0, S1)) == (S1, 1)


@pytest.mark.parametrize("split", [True, False])
def test_reductions_of_symbolic_sizes_split(split: bool) -> None:
    module = dynamic([sizes(S0, S1)], lambda g, x: g.reduce(x, "sum", [0, 1]))
    steps = f"{LOWERING},{FUSION},split-reductions{{min_points={10 if split else 10**9}}}"
    many = cases(("s0", "s1"))
    expected = [irc.interp.run(module, *case, mode="real") for case in many]
    PassManager.parse(steps).run(module)
    for want, case in zip(expected, many, strict=True):
        compare(want, irc.interp.run(module, *case, mode="real"), 1e-10, steps)
    assert kernels(module) == 1 + split


def test_numbers_made_of_sizes_are_computed_in_kernels():
    """The scales of an interpolation to another size, and a power of a size."""

    def resized(x):
        smaller = torch.nn.functional.max_pool2d(x, 2)
        size = x.shape[-2:]
        larger = torch.nn.functional.interpolate(smaller, size=size, mode="bilinear")
        return larger + x.shape[-1] ** 0.5

    torch._dynamo.reset()
    compiled = torch.compile(resized, backend="irc", dynamic=True)
    with recording() as made:
        for sides in ((9, 11), (13, 10), (6, 21)):
            x = torch.randn(2, 3, *sides)
            torch.testing.assert_close(compiled(x), resized(x))
    assert [each.executable.info.metrics["aten_calls"] for each in made] == [0]
