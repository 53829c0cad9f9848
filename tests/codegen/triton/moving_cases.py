"""Loop programs of gpu kernels that move elements: transposes, parts, scatters, lookups."""

from __future__ import annotations

import functools
import math
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from case_registry import case, integer, random
from loop_programs import number, scattered, transpose_add
from programs import Case, Program, reduce, tensor

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value
from irc.ir.symbols import symbol


@case("transpose_add")
def _transpose_add() -> Case:
    return Case(transpose_add(40, 50), [random(40, 50), random(50, 40, seed=1)])


@case("transpose_add_batched")
def _transpose_add_batched() -> Case:
    args = [random(3, 9, 40), random(3, 40, 9, seed=1)]
    return Case(transpose_add(9, 40, 3), args)


@case("transpose_add_symbolic")
def _transpose_add_symbolic() -> Case:
    args = [random(20, 35), random(35, 20, seed=1)]
    return Case(transpose_add(symbol("s0"), symbol("s1")), args)


def turned(shape: list[Any], source: list[Any], result: list[Any]) -> Program:
    """An image, or the weight of one, in other strides, each row's number added."""
    program = Program(T.TensorType(shape, T.f32, source))

    def fill(body: Any, axes: Any) -> list[Value]:
        row = body.op("arith.index_cast", body.index(axes[2]), type=T.i64)
        row = body.op("arith.sitofp", row, type=T.f32)
        value = body.read(program.args[0], axes)
        return [body.op("arith.addf", value, row)]

    made = T.TensorType(shape, T.f32, result)
    return program.finish(program.compute(shape, [loop.MAP], [made], fill))


def turned_case(shape: list[int], symbolic: bool = False, back: bool = False, **given: Any) -> Case:
    n, c, h, w = [symbol(f"s{k}") for k in range(4)] if symbolic else shape
    plain, last = [c * h * w, h * w, w, 1], [c * h * w, 1, w * c, c]
    sides = (last, plain) if back else (plain, last)
    x = random(*shape)
    x = x.to(memory_format=torch.channels_last) if back else x
    return Case(turned([n, c, h, w], *sides), [x], **given)


for _name, _shape, _more in (
    ("windows", [5, 70, 3, 3], {}), ("windows_back", [5, 70, 3, 3], {"back": True}),
    ("small_windows", [3, 40, 2, 2], {}), ("images", [2, 33, 7, 9], {}),
    ("images_back", [2, 130, 8, 9], {"back": True}), ("images_symbolic", [2, 9, 5, 7],
    {"symbolic": True}), ("windows_long", [2, 9, 3, 3], {"index_bits": integer(64)}),
    ("windows_apart", [2, 9, 4, 5], {"collapse": A.DenseIntsAttr(())}),
    ("windows_tall", [2, 9, 3, 3], {"y_block": integer(4), "x_block": integer(16)}),
):  # fmt: skip
    case(f"turned_{_name}")(functools.partial(turned_case, _shape, **_more))


@case("turned_empty")
def _turned_empty() -> Case:
    return turned_case([0, 8, 3, 3], symbolic=True)


def columns_of_parts(
    parts: Any, rows: int, columns: Any, stride: Any = None, element: T.Type = T.f32
) -> Program:
    """Sums of columns, a part of the rows each."""
    stride = columns if stride is None else stride
    strides = [rows * stride, stride, 1]
    program = Program(tensor(parts, rows, columns, strides=strides, element=element))

    def fill(body: Any, axes: Any) -> list[Value]:
        return [body.read(program.args[0], axes)]

    kinds = [reduce("sum")]
    made = program.compute([parts, rows, columns], kinds, [tensor(parts, columns)], fill, red=[1])
    return program.finish(made)


def weighted_columns(parts: Any, rows: int, columns: Any, element: T.Type = T.f32) -> Program:
    """Sums of columns, a part of the rows each, of two arrays and a number for each row."""
    whole = tensor(parts, rows, columns, element=element)
    program = Program(whole, whole, tensor(parts, rows))
    x, y, scales = program.args

    def fill(body: Any, axes: Any) -> list[Value]:
        values = [body.read(array, axes) for array in (x, y)]
        if element is not T.f32:
            values = [body.op("arith.extf", value, type=T.f32) for value in values]
        scaled = body.op("arith.mulf", values[1], body.read(scales, axes[:2]))
        return [body.op("arith.mulf", values[0], scaled), values[0]]

    kinds, made = [reduce("sum"), reduce("sum")], [tensor(parts, columns)] * 2
    return program.finish(program.compute([parts, rows, columns], kinds, made, fill, red=[1]))


@case("weighted_columns", 1e-5)
def _weighted_columns() -> Case:
    """What each row has is read once for a tile of columns, whose part is a scalar."""
    made = Case(weighted_columns(3, 40, 100), [random(3, 40, 100), random(3, 40, 100, seed=1),
                                               random(3, 40)])  # fmt: skip
    assert "divsi" not in [op.name for op in made.kernel.walk() if op.results and isinstance(
        op.results[0].type, T.VectorType)]  # fmt: skip
    return made


@case("columns_of_parts", 1e-5)
def _columns_of_parts() -> Case:
    """Tiles of 64 columns end with those of a part."""
    made = Case(columns_of_parts(3, 40, 1019), [random(3, 40, 1019)])
    assert "divsi" not in [op.name for op in made.kernel.walk() if op.results and isinstance(
        op.results[0].type, T.VectorType)]  # fmt: skip
    return made


@case("columns_of_padded_parts", 1e-5)
def _columns_of_padded_parts() -> Case:
    x = torch.full((3, 40, 1024), math.nan)
    x[..., :1019] = random(3, 40, 1019)
    return Case(columns_of_parts(3, 40, 1019, 1024), [x[..., :1019]])


@case("columns_of_parts_symbolic", 1e-5)
def _columns_of_parts_symbolic() -> Case:
    program = columns_of_parts(symbol("s0"), 9, symbol("s1"))
    return Case(program, [random(3, 9, 70)], tile_axes=A.DenseIntsAttr([1]), x_block=integer(16))


def scatter_case(combiner: str, element: T.Type, dtype: torch.dtype) -> Case:
    index = torch.randint(-1, 7, (30,), generator=torch.Generator().manual_seed(5))
    content = (random(30, 4, seed=1) * 4).to(dtype)
    return Case(scattered(combiner, element), [random(7, 4).to(dtype), index, content])


for _combiner, _element, _dtype in (
    ("sum", T.f32, torch.float32), ("max", T.f32, torch.float32), ("prod", T.f32, torch.float32),
    ("sum", T.i64, torch.int64), ("min", T.i32, torch.int32), ("min", T.f16, torch.float16),
):  # fmt: skip
    case(f"scatter_{_combiner}_{_element}", 1e-5)(
        functools.partial(scatter_case, _combiner, _element, _dtype)
    )


@case("masked_gather")
def _masked_gather() -> Case:
    """x[index[i], j] where the index is inside, else -1: an embedding with padding."""
    program = Program(tensor(20, 6), tensor(15, element=T.i64))

    def fill(body: Any, axes: Any) -> list[Value]:
        row = body.read(program.args[1], axes[:1])
        inside = body.compare("sge", row, body.constant(0, T.i64))
        minus = number(body, -1.0)
        return [body.read(program.args[0], [symbol("_0"), axes[1]], [row], inside, minus)]

    program.finish(program.compute([15, 6], [loop.MAP], [tensor(15, 6)], fill))
    return Case(program, [random(20, 6), torch.randint(-1, 20, (15,))])


@case("map_and_reduce")
def _map_and_reduce() -> Case:
    """One compute with a map over all axes and a reduction beside it, on a strided input."""
    program = Program(tensor(8, 30, strides=(1, 8)))

    def fill(body: Any, axes: Any) -> list[Value]:
        value = body.op("math.tanh", body.read(program.args[0], axes))
        return [value, value]

    op = program.compute(
        [8, 30], [loop.MAP, reduce("sum")], [tensor(8, 30), tensor(8)], fill, red=[1]
    )
    return Case(program.finish(op), [random(30, 8).t()])


@case("unsigned_bytes")
def _unsigned_bytes() -> Case:
    """ui8 memory, unsigned comparison and division."""
    program = Program(tensor(50, element=T.ui8), tensor(50, element=T.ui8))

    def fill(body: Any, axes: Any) -> list[Value]:
        a, b = (body.read(x, axes) for x in program.args)
        least = body.op("arith.minui", a, b)
        quotient = body.op("arith.divui", a, body.op("arith.maxui", b, body.constant(1, T.i8)))
        shifted = body.op("arith.shrui", quotient, body.constant(1, T.i8))
        return [body.op("arith.addi", least, shifted)]

    program.finish(program.compute([50], [loop.MAP], [tensor(50, element=T.ui8)], fill))
    args = [torch.randint(0, 256, (50,), dtype=torch.uint8) for _ in range(2)]
    return Case(program, args)
