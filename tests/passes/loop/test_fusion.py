"""The fusion passes: how many kernels are left, and that every step keeps the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

import irc.interp
from irc.dialects import graph, loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value
from irc.ir.passes import PassManager
from irc.target.attribute import carry
from tests.passes.loop.programs import (
    FUSION,
    LOWERING,
    Graph,
    check,
    example,
    kernels,
    layer_norm,
    layer_norm_backward,
    program,
    random_program,
    softmax,
    tensor,
)

ROWS = tensor(40, 100)
ROW = tensor(100)
COLUMN = tensor(40)


def log_softmax(g: Graph, x: Value) -> Value:
    shifted = g.op("sub", x, g.rows(g.reduce(x, "max", [1]), x))
    total = g.reduce(g.op("exp", shifted), "sum", [1])
    return g.op("sub", shifted, g.rows(g.op("log", total), x))


def rms_norm(g: Graph, x: Value, weight: Value) -> Value:
    square = g.reduce(g.op("mul", x, x), "sum", [1])
    mean = g.op("mul", square, g.full(0.01, square))
    scale = g.op("rsqrt", g.op("add", mean, g.full(1e-6, mean)))
    return g.op("mul", g.op("mul", x, g.rows(scale, x)), g.columns(weight, x))


def softmax_backward(g: Graph, dy: Value, y: Value) -> Value:
    product = g.op("mul", dy, y)
    return g.op("sub", product, g.op("mul", y, g.rows(g.reduce(product, "sum", [1]), y)))


def softmax_of_taken_rows(g: Graph, x: Value, index: Value, bias: Value) -> Value:
    taken = g.op("take", x, [index], dims=[0], position=0)
    return softmax(g, g.op("add", taken, g.columns(bias, taken)))


def gelu(g: Graph, x: Value) -> Value:
    inner = g.op("erf", g.op("mul", x, g.full(0.70710678, x)))
    return g.op("mul", g.op("mul", x, g.full(0.5, x)), g.op("add", inner, g.full(1.0, x)))


def exponential_of_running_sum(g: Graph, x: Value) -> Value:
    return g.op("exp", g.op("scan", g.op("sin", x), combiner="sum", dim=1))


def sum_over_rows(g: Graph, x: Value) -> Value:
    return g.reduce(g.op("mul", x, x), "sum", [0])


def mean_of_everything(g: Graph, x: Value) -> Value:
    total = g.reduce(x, "sum", [0, 1])
    return g.op("mul", total, g.full(1.0 / 4000, total))


def cross_entropy(g: Graph, x: Value, target: Value) -> Value:
    logs = log_softmax(g, x)
    column = g.reshape(target, [40, 1])
    picked = g.op("gather", logs, column, dim=1)
    total = g.reduce(picked, "sum", [0, 1])
    return g.op("mul", total, g.full(-1.0 / 40, total))


def transpose_add(g: Graph, x: Value, y: Value) -> Value:
    return g.op("add", g.op("permute", x, permutation=[1, 0]), y)


INDEX = tensor(40, element=T.i64)
NAMED: list[tuple[Any, Sequence[T.TensorType], int]] = [
    (softmax, [ROWS], 1),
    (log_softmax, [ROWS], 1),
    (rms_norm, [ROWS, ROW], 1),
    (layer_norm, [ROWS, ROW, ROW], 1),
    (layer_norm, [tensor(4, 10, 100), ROW, ROW], 1),
    (layer_norm_backward, [ROWS, ROWS, COLUMN, COLUMN, ROW], 2),
    (softmax_backward, [ROWS, ROWS], 1),
    (softmax_of_taken_rows, [ROWS, INDEX, ROW], 1),
    (gelu, [ROWS], 1),
    (exponential_of_running_sum, [ROWS], 1),
    (sum_over_rows, [ROWS], 1),
    (mean_of_everything, [ROWS], 1),
    (transpose_add, [ROWS, tensor(100, 40)], 1),
    (cross_entropy, [ROWS, INDEX], 2),
]


@pytest.mark.parametrize(
    ("build", "types", "expected"),
    NAMED,
    ids=[f"{b.__name__}-{len(t[0].shape)}" for b, t, _ in NAMED],
)
def test_named_programs_fuse(build: Any, types: Sequence[T.TensorType], expected: int) -> None:
    module = program(types, build)
    check(module, [example(t, k) for k, t in enumerate(types)], f"{LOWERING},{FUSION}")
    assert kernels(module) == expected, str(module)


def test_batch_norm_relu_add_with_an_updated_input() -> None:
    image, channels = tensor(2, 8, 5, 5), tensor(8)

    def build(
        g: Graph, x: Value, mean: Value, variance: Value, weight: Value, rest: Value
    ) -> Value:
        def spread(v: Value) -> Value:
            return g.broadcast(v, image.shape, [1])

        scale = g.op("rsqrt", g.op("add", variance, g.full(1e-5, variance)))
        y = g.op("mul", g.op("sub", x, spread(mean)), spread(scale))
        y = g.op("maximum", g.op("mul", y, spread(weight)), g.full(0.0, y))
        moved = g.op("mul", mean, g.full(0.9, mean))
        g.builder.create(graph.UpdateInput, moved, argument=1)
        return g.op("add", y, rest)

    types = [image, channels, channels, channels, image]
    arguments = [example(t, k).abs() for k, t in enumerate(types)]
    module = check(program(types, build), arguments, f"{LOWERING},{FUSION}")
    assert kernels(module) == 2


def test_bfloat16_keeps_wide_values_between_members() -> None:
    rows = tensor(40, 100, element=T.bf16)

    def build(g: Graph, x: Value) -> Value:
        wide = g.op("cast", x, type=tensor(40, 100))
        narrow = g.op("cast", g.op("exp", wide), type=rows)
        again = g.op("cast", narrow, type=tensor(40, 100))
        total = g.reduce(again, "sum", [1])
        return g.op("cast", g.op("div", again, g.rows(total, again)), type=rows)

    module = check(program([rows], build), [example(rows)], f"{LOWERING},{FUSION},elide-rounding")
    assert kernels(module) == 1
    narrowings = [op for op in module.walk() if op.name == "arith.truncf"]
    assert len(narrowings) == 1  # only what is stored for the caller is rounded


def test_exact_mode_keeps_bits_without_elision() -> None:
    rows = tensor(8, 16, element=T.bf16)

    def build(g: Graph, x: Value) -> Value:
        wide = g.op("cast", x, type=tensor(8, 16))
        narrow = g.op("cast", g.op("exp", wide), type=rows)
        return g.op("cast", g.op("neg", g.op("cast", narrow, type=tensor(8, 16))), type=rows)

    check(program([rows], build), [example(rows)], f"{LOWERING},{FUSION}", 0.0, "exact")


def test_a_shared_expensive_map_is_computed_once() -> None:
    def build(g: Graph, x: Value) -> Sequence[Value]:
        e = g.op("exp", x)
        return g.reduce(e, "sum", [1]), g.reduce(e, "max", [0]), g.op("add", e, x)

    module = check(program([ROWS], build), [example(ROWS)], f"{LOWERING},{FUSION}")
    assert sum(op.name == "math.exp" for op in module.walk()) == 1


def test_groups_make_no_cycle_through_a_call() -> None:
    def build(g: Graph, x: Value, w: Value) -> Value:
        e = g.op("exp", x)
        named = {"self": _operand(0), "mat2": _operand(1)}
        product = g.call("aten.mm.default", e, w, type=tensor(40, 100), arguments=named)
        return g.op("add", e, g.op("mul", product, x))

    types = [ROWS, tensor(100, 100)]
    module = program(types, build)
    arguments = [example(t, k) for k, t in enumerate(types)]
    expected = irc.interp.run(module, *arguments, mode="real")
    PassManager.parse(f"{LOWERING},{FUSION}").run(module)
    got = irc.interp.run(module, *arguments, mode="real")
    torch.testing.assert_close(got, expected)
    assert kernels(module) == 2


def _operand(number: int) -> A.Attribute:
    from irc.ir.registry import lookup_attribute

    cls = lookup_attribute("aten.operand")
    assert cls is not None
    return cls(number)  # type: ignore[no-any-return]


@pytest.mark.parametrize("size", [1_000_000, 99_991])
def test_large_reductions_are_split_into_fixed_parts(size: int) -> None:
    def build(g: Graph, x: Value) -> Sequence[Value]:
        total = g.reduce(x, "sum", [0])
        return g.op("mul", total, total), g.reduce(x, "max", [0])

    types = [tensor(size)]
    module = check(
        program(types, build), [example(types[0])], f"{LOWERING},{FUSION},split-reductions", 1e-9
    )
    parts = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert max(axis.extent for op in parts for axis in op.axis_list) < size


@pytest.mark.parametrize("combiner", ["sum", "prod", "min", "max", "xor"])
def test_a_split_with_a_ragged_end_reads_nothing_outside(combiner: str) -> None:
    types = [tensor(1031, element=T.i64)]
    module = program(types, lambda g, x: g.reduce(x, combiner, [0]))
    steps = f"{LOWERING},{FUSION},split-reductions{{min_points=100}}"
    check(module, [example(types[0]) - 2], steps, 0.0, "exact")


@pytest.mark.parametrize(
    ("shape", "dims", "parts"),
    [
        ([8192, 96], [0], 128),  # columns: 3 program instances without parts
        ([64, 65536], [1], 16),  # rows
        ([1 << 20], [0], 256),
        ([8192, 16384], [1], 0),  # enough rows
        ([64, 96], [0], 0),  # too few points
    ],
)
def test_a_gpu_wants_parts_of_sums_with_few_programs(
    shape: list[int], dims: list[int], parts: int
) -> None:
    types = [tensor(*shape)]
    module = program(types, lambda g, x: g.reduce(x, "sum", dims))
    steps = f"{LOWERING},{FUSION},split-reductions{{target=gpu}}"
    carry(module, "sm_90")
    if parts and shape[0] * shape[-1] < 1 << 22:
        check(module, [example(types[0])], steps, 1e-9)
    else:
        PassManager.parse(steps).run(module)
    computes = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert len(computes) == 1 + bool(parts)
    if parts:
        assert parts in [a.extent for a in computes[1].axis_list if a.kind == "red"]


@pytest.mark.parametrize(("functions", "split"), [(0, False), (6, True)])
def test_one_program_is_not_left_with_much_to_do_at_each_point(functions: int, split: bool) -> None:
    """Few points are parts, too, where each of them takes long: buckets of relative positions."""

    def build(g: Graph, x: Value) -> Value:
        for _ in range(functions):
            x = g.op("exp", g.op("neg", x))
        return g.reduce(x, "sum", [0, 1])

    types = [tensor(128, 128)]
    module = program(types, build)
    carry(module, "sm_90")
    check(module, [example(types[0])], f"{LOWERING},{FUSION},split-reductions", 1e-9)
    computes = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert len(computes) == 1 + split


def test_a_vector_along_the_sum_does_not_hide_that_columns_are_strided() -> None:
    def build(g: Graph, x: Value, scale: Value) -> Value:
        return g.reduce(g.op("mul", x, g.rows(scale, x)), "sum", [0])

    module = program([tensor(8192, 96), tensor(8192)], build)
    PassManager.parse(f"{LOWERING},{FUSION},split-reductions{{target=gpu}}").run(module)
    computes = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert [a.extent for a in computes[1].axis_list if a.kind == "red"] == [128]


@pytest.mark.parametrize(("target", "groups"), [("gpu", 1), ("", 0)])
def test_what_reads_a_split_sum_is_in_the_kernel_of_its_end_on_a_gpu(
    target: str, groups: int
) -> None:
    """Two arrays made of a sum of columns; another reader, of all points, is not in it."""

    def build(g: Graph, x: Value) -> list[Value]:
        total = g.reduce(x, "sum", [0])
        return [g.op("neg", total), g.op("exp", total), g.op("mul", x, g.columns(total, x))]

    types = [tensor(8192, 64)]
    module = program(types, build)
    steps = f"{LOWERING},{FUSION},split-reductions{{target={target or 'cpu'} max_results=64}}"
    carry(module, "sm_90" if target else "avx2")
    check(module, [example(types[0]) / 100], steps, 1e-6)
    found = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    assert len(found) == groups
    if groups:
        kinds = [[a.kind for a in m.axis_list] for m in found[0].block.ops
                 if isinstance(m, loop.ComputeOp)]  # fmt: skip
        assert kinds[0] == ["par", "red"] and ["par"] in kinds


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_values(seed: int) -> None:
    module, arguments = random_program(seed)
    check(module, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 1000))
def test_many_random_programs_keep_their_values(seed: int) -> None:
    module, arguments = random_program(seed)
    check(module, arguments)


def test_flattened_rows_meet_their_unflattened_readers() -> None:
    def build(g: Graph, x: Value) -> Value:
        total = g.reduce(g.op("exp", x), "sum", [1])
        rows = g.reshape(x, [4, 10, 100])
        return g.op("sub", rows, g.rows(g.reshape(total, [4, 10]), rows))

    module = check(program([ROWS], build), [example(ROWS)], f"{LOWERING},{FUSION}")
    assert kernels(module) == 1


def test_an_array_that_is_divided_again_is_split_for_a_call_too() -> None:
    def build(g: Graph, x: Value) -> Sequence[Value]:
        flat = g.op("exp", g.reshape(g.op("tanh", x), [40, 100]))
        again = g.op("exp", g.op("add", g.op("tanh", x), g.reshape(flat, [4, 10, 100])))
        return flat, again

    types = [tensor(4, 10, 100)]
    module = check(program(types, build), [example(types[0])], f"{LOWERING},{FUSION}")
    assert kernels(module) == 1


def test_a_padded_view_is_computed_in_its_reader() -> None:
    def build(g: Graph, x: Value) -> Value:
        zero = A.FloatAttr(0.0, T.f32)
        padded = g.op(
            "pad", g.op("exp", x), low=A.DimsAttr([0, 0]), high=A.DimsAttr([1, 0]), value=zero
        )
        return g.op("tanh", padded)

    module = check(program([ROWS], build), [example(ROWS)], f"{LOWERING},{FUSION}")
    assert kernels(module) == 1


def test_channel_statistics_share_a_kernel_with_what_is_made_of_them() -> None:
    image, channels = tensor(2, 64, 5, 6), tensor(64)

    def build(g: Graph, x: Value, running: Value) -> Sequence[Value]:
        mean, m2 = g.builder.create(graph.Moments, x, dims=[0, 2, 3]).results
        variance = g.op("mul", m2, g.full(1.0 / 60, m2))
        scale = g.op("rsqrt", g.op("add", variance, g.full(1e-5, variance)))
        moved = g.op("add", g.op("mul", running, g.full(0.9, mean)), mean)
        return scale, moved

    types = [image, channels]
    arguments = [example(t, k) for k, t in enumerate(types)]
    module = check(program(types, build), arguments, f"{LOWERING},{FUSION}")
    assert kernels(module) == 1
