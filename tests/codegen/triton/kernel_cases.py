"""The loop programs of the tests of gpu kernels, by name: `CASES`."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from loop_programs import (
    every_reduction,
    layer_norm,
    layer_norm_backward,
    lone_reduce,
    number,
    pointwise,
    scanned,
    scattered,
    softmax,
    summed_powers_of,
    transpose_add,
)
from programs import Case, Program, reduce, scan, tensor

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value
from irc.ir.symbols import symbol

CASES: dict[str, Callable[[], Case]] = {}
TOLERANCE: dict[str, float] = {}


def case(name: str, tolerance: float = 2e-6) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Register a case; it is made once."""

    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        CASES[name] = functools.cache(make)
        TOLERANCE[name] = tolerance
        return CASES[name]

    return register


def integer(value: int) -> A.IntegerAttr:
    return A.IntegerAttr(value)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


@case("gelu", 1e-6)
def _gelu() -> Case:
    return Case(pointwise(37, 50), [random(37, 50)])


@case("gelu_bf16", 1e-2)
def _gelu_bf16() -> Case:
    return Case(pointwise(16, 64, T.bf16), [random(16, 64, dtype=torch.bfloat16)])


@case("gelu_symbolic", 1e-6)
def _gelu_symbolic() -> Case:
    return Case(pointwise(symbol("s0"), symbol("s1")), [random(33, 41)])


@case("gelu_empty")
def _gelu_empty() -> Case:
    return Case(pointwise(symbol("s0"), 7), [random(0, 7)])


@case("softmax")
def _softmax() -> Case:
    return Case(softmax(9, 100), [random(9, 100)])


@case("softmax_rows")
def _softmax_rows() -> Case:
    return Case(softmax(9, 100), [random(9, 100)], x_block=integer(4))


@case("softmax_looped")
def _softmax_looped() -> Case:
    return Case(softmax(3, 100), [random(3, 100)], r_block=integer(32))


@case("softmax_rows_looped")
def _softmax_rows_looped() -> Case:
    return Case(softmax(5, 70), [random(5, 70)], x_block=integer(2), r_block=integer(16))


@case("softmax_symbolic")
def _softmax_symbolic() -> Case:
    program = softmax(symbol("s0"), symbol("s1"))
    return Case(program, [random(4, 150)], r_block=integer(64))


@case("softmax_walked")
def _softmax_walked() -> Case:
    """Four program instances walk over nine rows, and read one row ahead."""
    made = Case(softmax(9, 100), [random(9, 100)], programs=integer(4), num_stages=integer(2))
    assert made.kernel.grid == 4 and "num_stages=2)" in made.source
    return made


@case("softmax_odd_walked", 1e-6)
def _softmax_odd_walked() -> Case:
    return odd_rows(softmax(8, 101), [random(8, 101)], programs=integer(3), num_stages=integer(2))


@case("layer_norm_walked", 1e-5)
def _layer_norm_walked() -> Case:
    """Four tiles of two rows, the last of one; scale and shift are read before the loop."""
    made = Case(layer_norm(7, 61), [random(7, 61), random(61), random(61)], x_block=integer(2),
                programs=integer(3), num_stages=integer(3), early_reads=A.TRUE)  # fmt: skip
    before, _, inside = made.source.partition(" in tl.range(")
    assert "tl.load(p1" in before and "tl.load(p2" in before
    assert inside.count("tl.load(") == inside.count("tl.load(p0") == 1
    return made


def lines(shape: list[int]) -> Program:
    """x[..., j] * a[...] + exp(b[...])."""
    leading = shape[:-1]
    program = Program(tensor(*shape), tensor(*leading), tensor(*leading))

    def fill(body: Any, axes: Any) -> list[Value]:
        x, a, b = program.args
        scaled = body.op("arith.mulf", body.read(x, axes), body.read(a, axes[:-1]))
        return [body.op("arith.addf", scaled, body.op("math.exp", body.read(b, axes[:-1])))]

    return program.finish(program.compute(shape, [loop.MAP], [tensor(*shape)], fill))


@case("lines", 1e-6)
def _lines() -> Case:
    """What is the same along a line is read and computed once for a tile."""
    made = Case(lines([3, 1240]), [random(3, 1240), random(3), random(3)])
    (exp,) = [op for op in made.kernel.walk() if op.name == "math.exp"]
    assert exp.results[0].type is T.f32
    return made


@case("lines_short", 1e-6)
def _lines_short() -> Case:
    given = [random(2, 3, 50), random(2, 3), random(2, 3)]
    return Case(lines([2, 3, 50]), given, x_block=integer(32), tile_axes=A.DenseIntsAttr([2]))


@case("softmax_odd", 1e-6)
def _softmax_odd() -> Case:
    return odd_rows(softmax(8, 101), [random(8, 101)])


@case("softmax_odd_bf16", 1e-2)
def _softmax_odd_bf16() -> Case:
    """Several rows in a tile, each at another place of its group."""
    given = [random(16, 55, dtype=torch.bfloat16)]
    return odd_rows(softmax(16, 55, T.bf16), given, x_block=integer(4))


@case("softmax_odd_looped", 1e-6)
def _softmax_odd_looped() -> Case:
    return odd_rows(softmax(4, 97), [random(4, 97)], r_block=integer(32))


@case("layer_norm_odd", 1e-5)
def _layer_norm_odd() -> Case:
    """Scale and shift begin with a row, whatever its place."""
    return odd_rows(layer_norm(12, 61), [random(12, 61), random(61), random(61)])


def odd_rows(program: Program, args: list[torch.Tensor], **schedule: A.Attribute) -> Case:
    """A case whose tiles begin at groups of elements, not with the rows."""
    return Case(program, args, row_group=integer(16 // args[0].element_size()), **schedule)


def extreme_rows(n: int, m: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows that begin with NaN, infinities of either sign, rows of one number each, and with the
    least and the greatest finite one."""
    x = random(n, m, dtype=dtype)
    limits = torch.finfo(dtype)
    for row, value in enumerate((math.nan, math.inf, -math.inf, limits.min, limits.max)):
        x[row, (row * 7) % m] = value
    x[5], x[6], x[7] = -math.inf, limits.min, math.inf
    x[8, ::2] = -math.inf
    return x


@case("softmax_odd_extreme", 1e-2)
def _softmax_odd_extreme() -> Case:
    """Powers of lanes outside are made of -inf, where the maximum isn't infinite itself."""
    given = [extreme_rows(16, 55, torch.bfloat16)]
    return odd_rows(softmax(16, 55, T.bf16), given, x_block=integer(4))


@case("softmax_online", 1e-6)
def _softmax_online() -> Case:
    """The maximum and the sum of powers in one loop, of any numbers, and the quotients in one."""
    made = Case(softmax(9, 100), [extreme_rows(9, 100)], r_block=integer(32), online=A.TRUE)
    assert made.source.count(" in range(") == 2
    return made


@case("softmax_online_odd", 1e-2)
def _softmax_online_odd() -> Case:
    made = odd_rows(softmax(16, 103, T.bf16), [extreme_rows(16, 103, torch.bfloat16)],
                    r_block=integer(32), online=A.TRUE)  # fmt: skip
    assert made.source.count(" in range(") == 2 and "irc_exp_rough_f32" in made.source
    return made


@case("powers_online", 1e-6)
def _powers_online() -> Case:
    """Maxima and sums themselves: of no number above -inf the maximum is that, and the sum NaN."""
    made = Case(summed_powers_of(9, 100), [extreme_rows(9, 100)], r_block=integer(32),
                online=A.TRUE)  # fmt: skip
    assert made.expected[0][5] == -math.inf and made.expected[1][5].isnan()
    return made


PEELED = {
    "odd": (16, 103, T.bf16, {"row_group": 8}),
    "odd_two_ends": (16, 133, T.bf16, {"row_group": 8}),
    "bound": (9, 70, T.f32, {}),
    "whole": (9, 96, T.f32, {}),
    "short": (9, 40, T.f32, {}),
}


def _softmax_peeled(name: str) -> Case:
    """Tiles at a row's ends outside of the loop, forwards and backwards."""
    n, m, element, schedule = PEELED[name]
    dtype = torch.bfloat16 if element is T.bf16 else torch.float32
    entries = {key: integer(value) for key, value in schedule.items()}
    made = Case(softmax(n, m, element), [extreme_rows(n, m, dtype)], r_block=integer(32),
                online=A.TRUE, peeled=A.TRUE, **entries)  # fmt: skip
    assert made.source.count(" in range(") == 2 * (name != "short") or name == "short"
    return made


for _name, (_, _, _kind, _) in PEELED.items():
    case(f"softmax_peeled_{_name}", 1e-2 if _kind is T.bf16 else 1e-6)(
        functools.partial(_softmax_peeled, _name)
    )


@case("layer_norm_peeled", 1e-5)
def _layer_norm_peeled() -> Case:
    """Moments know the numbers of tiles before and behind the loop."""
    given = [random(5, 110), random(110), random(110)]
    return Case(layer_norm(5, 110), given, r_block=integer(32), peeled=A.TRUE)


@case("argmax_peeled")
def _argmax_peeled() -> Case:
    program = lone_reduce([7, 150], [1], [reduce("argmax")], [tensor(7, element=T.i64)])
    return Case(program, [random(7, 150).round()], r_block=integer(32), peeled=A.TRUE)


@case("softmax_online_columns", 1e-6)
def _softmax_online_columns() -> Case:
    """Columns whose points lie apart, several in a tile."""
    across = (1, 20)
    x = torch.empty_strided((20, 70), across).copy_(extreme_rows(20, 70))
    made = Case(softmax(20, 70, T.f32, across, across), [x], x_block=integer(8),
                r_block=integer(16), online=A.TRUE)  # fmt: skip
    assert made.source.count(" in range(") == 2
    return made


@case("softmax_bf16", 1e-2)
def _softmax_bf16() -> Case:
    return Case(softmax(4, 64, T.bf16), [random(4, 64, dtype=torch.bfloat16)])


def divided(n: int, m: int, whole: bool) -> Program:
    """x[i, j] / s[i], rounded down if `whole`."""
    program = Program(tensor(n, m), tensor(n))

    def fill(body: Any, axes: Any) -> list[Value]:
        top, bottom = body.read(program.args[0], axes), body.read(program.args[1], axes[:1])
        value = body.op("arith.divf", top, bottom)
        return [body.op("math.floor", value) if whole else value]

    return program.finish(program.compute([n, m], [loop.MAP], [tensor(n, m)], fill))


@case("rows_divided", 5e-7)
def _rows_divided() -> Case:
    bottoms = torch.tensor([3.0, 0.0, -0.0, math.inf, math.nan, 1e-40, -2e-38, 3e38, 1e20, -7.0])
    tops = torch.cat([bottoms, 1 / bottoms, random(12)])
    program = divided(10, 32, False)
    schedule = {"x_block": integer(32), "y_block": integer(32),
                "collapse": A.DenseIntsAttr(()), "tile_axes": A.DenseIntsAttr([0, 1])}  # fmt: skip
    return Case(program, [tops.expand(10, 32).contiguous(), bottoms], **schedule)


@case("layer_norm", 2e-4)
def _layer_norm() -> Case:
    return Case(layer_norm(6, 96), [random(6, 96) + 100, random(96, seed=1), random(96, seed=2)])


@case("layer_norm_looped", 2e-4)
def _layer_norm_looped() -> Case:
    args = [random(3, 90) + 100, random(90, seed=1), random(90, seed=2)]
    return Case(layer_norm(3, 90), args, r_block=integer(32), x_block=integer(2))


@case("layer_norm_backward", 1e-5)
def _layer_norm_backward() -> Case:
    args = [random(5, 80), random(5, 80, seed=1), random(80, seed=2), random(5, seed=3),
            random(5, seed=4).abs()]  # fmt: skip
    return Case(layer_norm_backward(5, 80), args)


def special(n: int, m: int) -> torch.Tensor:
    """Rows with NaN, infinities, ties and equal elements."""
    x = (random(n, m) * 2).round() / 2
    x[0, m // 2] = math.nan
    x[0, m // 3] = math.nan
    x[1, 3] = math.inf
    x[2, :] = -math.inf
    x[3, :] = 1.0
    return x


@case("reductions", 1e-5)
def _reductions() -> Case:
    return Case(every_reduction(6, 37, 1), [special(6, 37)])


@case("reductions_looped", 1e-5)
def _reductions_looped() -> Case:
    return Case(every_reduction(6, 37, 1), [special(6, 37)], r_block=integer(8))


@case("reductions_leading", 1e-5)
def _reductions_leading() -> Case:
    return Case(every_reduction(37, 6, 0), [special(6, 37).t().contiguous()])


@case("reductions_leading_looped", 1e-5)
def _reductions_leading_looped() -> Case:
    args = [special(6, 37).t().contiguous()]
    return Case(every_reduction(37, 6, 0), args, x_block=integer(4), r_block=integer(8))


@case("integer_reductions")
def _integer_reductions() -> Case:
    names = ("sum", "min", "max", "xor", "any", "all", "prod")
    outputs = [reduce(c, T.i32) for c in names]
    program = lone_reduce([5, 20], [1], outputs, [tensor(5, element=T.i32)] * len(names), T.i32)
    return Case(program, [torch.randint(-9, 9, (5, 20), dtype=torch.int32)])


@case("bool_reductions")
def _bool_reductions() -> Case:
    outputs = [reduce("any", T.i1), reduce("all", T.i1), reduce("sum", T.i64)]
    types = [tensor(4, element=T.i1), tensor(4, element=T.i1), tensor(4, element=T.i64)]
    program = lone_reduce([4, 12], [1], outputs, types, T.i1)
    content = torch.rand(4, 12) > 0.6
    content[1], content[2] = True, False
    return Case(program, [content])


@case("two_red_axes")
def _two_red_axes() -> Case:
    outputs = [reduce("sum"), reduce("argmax")]
    types = [tensor(4), tensor(4, element=T.i64)]
    return Case(lone_reduce([6, 4, 5], [0, 2], outputs, types), [random(6, 4, 5)])


@case("empty_reduction")
def _empty_reduction() -> Case:
    outputs = [reduce("sum"), reduce("max"), reduce("moments")]
    program = lone_reduce([3, symbol("s0")], [1], outputs, [tensor(3)] * 4)
    program.symbols["s0"] = (0, 1)
    return Case(program, [random(3, 0)])


@case("empty_columns")
def _empty_columns() -> Case:
    program = lone_reduce([0, 40], [0], [reduce("sum"), reduce("min")], [tensor(40)] * 2)
    return Case(program, [random(0, 40)])


@case("empty_rows")
def _empty_rows() -> Case:
    program = lone_reduce([5, 0], [1], [reduce("sum"), reduce("max")], [tensor(5)] * 2)
    return Case(program, [random(5, 0)])


@case("no_rows")
def _no_rows() -> Case:
    return Case(pointwise(0, 7), [random(0, 7)])


@case("no_planes")
def _no_planes() -> Case:
    return Case(lone_reduce([3, 0, 4], [2], [reduce("sum")], [tensor(3, 0)]), [random(3, 0, 4)])


def columns_first(n: int, m: int, *outer: int) -> Program:
    """An array whose columns are contiguous, copied with its strides."""
    shape = [*outer, n, m]
    strides = [*(n * m * (k + 1) for k in range(len(outer))), 1, n]
    kind = tensor(*shape, strides=strides)
    program = Program(kind)
    op = program.compute(
        shape, [loop.MAP], [kind], lambda b, i: [b.op("math.absf", b.read(program.args[0], i))]
    )
    return program.finish(op)


@case("columns_first")
def _columns_first() -> Case:
    return Case(columns_first(33, 50), [random(50, 33).t()])


@case("planes_of_columns_first")
def _planes_of_columns_first() -> Case:
    return Case(columns_first(33, 50, 3), [random(3, 50, 33).mT])


@case("cumsum", 1e-5)
def _cumsum() -> Case:
    return Case(scanned(4, 50, "sum"), [random(4, 50)])


@case("cumsum_looped", 1e-5)
def _cumsum_looped() -> Case:
    return Case(scanned(4, 50, "sum"), [random(4, 50)], r_block=integer(16))


@case("cumsum_leading", 1e-5)
def _cumsum_leading() -> Case:
    return Case(scanned(20, 6, "sum", axis=0), [random(20, 6)], x_block=integer(4))


@case("cummax_looped")
def _cummax_looped() -> Case:
    content = random(2, 40)
    content[1, 20] = math.nan
    return Case(scanned(2, 40, "max"), [content], r_block=integer(16))


@case("cumprod_integers")
def _cumprod_integers() -> Case:
    content = torch.randint(-3, 4, (3, 20))
    return Case(scanned(3, 20, "prod", T.i64), [content])


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


def columns_of_parts(parts: Any, rows: int, columns: Any, stride: Any = None) -> Program:
    """Sums of columns, a part of the rows each."""
    stride = columns if stride is None else stride
    program = Program(tensor(parts, rows, columns, strides=[rows * stride, stride, 1]))

    def fill(body: Any, axes: Any) -> list[Value]:
        return [body.read(program.args[0], axes)]

    kinds = [reduce("sum")]
    made = program.compute([parts, rows, columns], kinds, [tensor(parts, columns)], fill, red=[1])
    return program.finish(made)


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


@case("own_par_beside_red")
def _own_par_beside_red() -> Case:
    """A group whose member reduces beside own par axes: combined point by point."""
    program = Program(tensor(3, 10, 6))

    def fill() -> list[Value]:
        total = program.compute(
            [3, 10, 6], [reduce("sum")], [tensor(3, 10)],
            lambda b, i: [b.read(program.args[0], i)], red=[2],
        ).results[0]  # fmt: skip

        def square(b: Any, i: Any) -> list[Value]:
            value = b.read(total, i)
            return [b.op("arith.mulf", value, value)]

        return [program.compute([3, 10], [loop.MAP], [tensor(3, 10)], square).results[0]]

    return Case(program.finish(program.group([3], [tensor(3, 10)], fill)), [random(3, 10, 6)])


@case("moments_beside_uneven_par", 1e-5)
def _moments_beside_uneven_par() -> Case:
    """Members with different own par axes: the reduction is a loop in each lane."""
    program = Program(tensor(3, 10, 6), tensor(3))

    def fill() -> list[Value]:
        results = program.compute(
            [3, 10, 6], [reduce("moments"), reduce("argmax"), reduce("logsumexp")],
            [tensor(3, 10), tensor(3, 10), tensor(3, 10, element=T.i64), tensor(3, 10),
             tensor(3, 10)],
            lambda b, i: [b.read(program.args[0], i)] * 3, red=[2],
        ).results  # fmt: skip
        other = program.compute(
            [3], [loop.MAP], [tensor(3)], lambda b, i: [b.read(program.args[1], i)]
        ).results[0]
        return [*results, other]

    kinds = [tensor(3, 10), tensor(3, 10), tensor(3, 10, element=T.i64), tensor(3, 10),
             tensor(3, 10), tensor(3)]  # fmt: skip
    return Case(program.finish(program.group([3], kinds, fill)), [random(3, 10, 6), random(3)])


def scaled_scan(n: int, m: int, combiner: str) -> Program:
    """A scan whose only reader is a map in the same group."""
    program = Program(tensor(n, m))

    def fill() -> list[Value]:
        total = program.compute(
            [n, m], [scan(combiner)], [tensor(n, m)],
            lambda b, i: [b.read(program.args[0], i)], red=[1], kind="scan",
        ).results[0]  # fmt: skip

        def twice(b: Any, i: Any) -> list[Value]:
            return [b.op("arith.mulf", b.read(total, i), number(b, 2.0))]

        return [program.compute([n, m], [loop.MAP], [tensor(n, m)], twice).results[0]]

    return program.finish(program.group([n], [tensor(n, m)], fill))


@case("scan_then_map", 1e-5)
def _scan_then_map() -> Case:
    return Case(scaled_scan(4, 30, "sum"), [random(4, 30)])


@case("scan_then_map_looped", 1e-5)
def _scan_then_map_looped() -> Case:
    return Case(scaled_scan(4, 30, "sum"), [random(4, 30)], r_block=integer(8))


def reduced_twice(n: int, m: int, combiners: tuple[str, ...]) -> Program:
    """The sum of each row, and what `combiners` give for the row less its sum."""
    program = Program(tensor(n, m))
    kinds = [
        tensor(n, element=T.i64 if c.startswith("arg") else T.f32)
        for c in combiners
        for _ in range(loop.COMBINER_RESULTS[c])
    ]

    def fill() -> list[Value]:
        total = program.compute(
            [n, m], [reduce("sum")], [tensor(n)], lambda b, i: [b.read(program.args[0], i)], red=[1]
        ).results[0]

        def less(b: Any, i: Any) -> list[Value]:
            gap = b.op("arith.subf", b.read(program.args[0], i), b.read(total, i[:1]))
            return [gap] * len(combiners)

        outputs = [reduce(c) for c in combiners]
        return [total, *program.compute([n, m], outputs, kinds, less, red=[1]).results]

    return program.finish(program.group([n], [tensor(n), *kinds], fill))


@case("second_loop_backwards", 1e-5)
def _second_loop_backwards() -> Case:
    program = reduced_twice(3, 30, ("prod", "min", "max", "logsumexp"))
    return Case(program, [random(3, 30) / 8], r_block=integer(8))


@case("second_loop_of_moments", 1e-5)
def _second_loop_of_moments() -> Case:
    return Case(reduced_twice(3, 30, ("moments",)), [random(3, 30)], r_block=integer(8))


@case("second_loop_of_argmax", 1e-5)
def _second_loop_of_argmax() -> Case:
    content = random(3, 30)
    content[1, 5] = content[1, 20] = math.nan
    content[2] = 1.0
    return Case(reduced_twice(3, 30, ("argmax", "argmin")), [content], r_block=integer(8))


@case("logcumsumexp_looped", 1e-5)
def _logcumsumexp_looped() -> Case:
    content = random(3, 30)
    content[1, :5] = -math.inf
    return Case(scaled_scan(3, 30, "logsumexp"), [content], r_block=integer(8))


@case("unsigned_extremes")
def _unsigned_extremes() -> Case:
    outputs = [reduce("max", T.ui8), reduce("min", T.ui8), reduce("argmax", T.ui8)]
    types = [tensor(5, element=T.ui8), tensor(5, element=T.ui8), tensor(5, element=T.i64)]
    program = lone_reduce([5, 20], [1], outputs, types, T.ui8)
    return Case(program, [torch.randint(0, 256, (5, 20), dtype=torch.uint8)])


def three_spaces() -> Program:
    """A group whose members have own axes of three lengths, one of a single point."""
    program = Program(tensor(3, 10), tensor(3, 1), tensor(3, 40))

    def fill() -> list[Value]:
        sums = [
            program.compute(
                [3, m], [reduce("sum")], [tensor(3)],
                lambda b, i, k=k: [b.read(program.args[k], i)], red=[1],
            ).results[0]
            for k, m in ((0, 10), (1, 1), (2, 40))
        ]  # fmt: skip

        def total(b: Any, i: Any) -> list[Value]:
            value = b.read(program.args[0], i)
            for array in sums[1:]:
                value = b.op("arith.addf", value, b.read(array, i[:1]))
            return [value]

        return [program.compute([3, 10], [loop.MAP], [tensor(3, 10)], total).results[0], *sums]

    kinds = [tensor(3, 10), tensor(3), tensor(3), tensor(3)]
    return program.finish(program.group([3], kinds, fill))


@case("three_spaces", 1e-5)
def _three_spaces() -> Case:
    args = [random(3, 10), random(3, 1, seed=1), random(3, 40, seed=2)]
    return Case(three_spaces(), args, x_block=integer(2))


@case("three_spaces_looped", 1e-5)
def _three_spaces_looped() -> Case:
    args = [random(3, 10), random(3, 1, seed=1), random(3, 40, seed=2)]
    return Case(three_spaces(), args, r_block=integer(8))


@case("softmax_padded_rows")
def _softmax_padded_rows() -> Case:
    return _in_padded_rows(T.f32, torch.float32)


@case("softmax_padded_rows_looped")
def _softmax_padded_rows_looped() -> Case:
    return _in_padded_rows(T.f32, torch.float32, x_block=integer(1), r_block=integer(64))


@case("softmax_padded_rows_bf16", 1e-2)
def _softmax_padded_rows_bf16() -> Case:
    return _in_padded_rows(T.bf16, torch.bfloat16)


def _in_padded_rows(element: T.Type, dtype: torch.dtype, **schedule: A.Attribute) -> Case:
    """Rows of 203 elements, each at a multiple of 16 bytes."""
    x = torch.full((5, 208), math.nan).to(dtype)[:, :203].copy_(random(5, 203))
    return Case(softmax(5, 203, element, (208, 1), (208, 1)), [x], **schedule)


@case("softmax_columns")
def _softmax_columns() -> Case:
    return Case(softmax(50, 20, T.f32, (1, 50), (1, 50)), [random(20, 50).t()])


@case("softmax_columns_looped")
def _softmax_columns_looped() -> Case:
    program = softmax(50, 300, T.f32, (1, 50), (1, 50))
    return Case(program, [random(300, 50).t()], x_block=integer(16), r_block=integer(32))


@case("softmax_turned", 1e-2)
def _softmax_turned() -> Case:
    program = softmax(50, 90, T.bf16, (90, 1), (1, 50))
    return Case(program, [random(50, 90, dtype=torch.bfloat16)])
