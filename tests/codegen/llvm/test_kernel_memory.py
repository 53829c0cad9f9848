"""Compiled memory operations and operations across lanes against the interpreter."""

from __future__ import annotations

import math

import pytest
import torch

import irc
from irc.codegen.llvm.kernel_writer import element_name
from irc.dialects import kernel
from irc.interp.core import torch_dtype
from irc.ir import types as T
from tests.codegen.llvm.kernel_checks import (
    COUNT,
    MEMORY,
    TARGET_NAMES,
    TARGETS,
    assert_same,
    check_against_interpreter,
    features_of,
    lanes_for,
    moderate,
    random_values,
)
from tests.codegen.llvm.kernel_programs import Compiled, Program, vector

VECTOR_TARGETS = pytest.mark.parametrize("target", ["host", "avx2", "generic"])


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
@pytest.mark.parametrize("count", [5, 64])
def test_masked_tails_touch_nothing_beyond(target, element, count):
    lanes = lanes_for(target, element) or 4
    p = Program("tail", [element, element], 1, count)

    def at(i):
        mask = p.tail_mask(i, p.end, lanes)
        other = p.constant(1, vector(element, lanes))
        value = p.load(p.pointers[0], i, vector(element, lanes), mask, other)
        p.store(value, p.pointers[1], i, mask)

    p.loop(p.begin, p.end, lanes, [], at)
    callee = p.done()
    x = random_values(element, max(count, 16), 3)[:count]
    actual = random_values(element, count + 70, 4)
    before = actual.clone()
    Compiled([callee], features_of(target)).run("tail", [x, actual], 0, count)
    assert_same(actual[:count], x)
    assert_same(actual[count:], before[count:])


NARROWED = """kernel.func @k(%x: !kernel.ptr<WIDE>, %y: !kernel.ptr<NARROW>, %begin: index,
    %end: index) attributes {grid = #sym<1>, outputs = array<i64: 1>, symbols = [], target = "cpu",
    work = #sym<1>} {
  %i = kernel.iota : vector<LANESxi32>
  %n = arith.constant dense<KEPT> : vector<LANESxi32>
  %mask = arith.cmpi slt, %i, %n : vector<LANESxi32>
  %v = kernel.load %x[%begin] : vector<LANESxWIDE>
  %s = arith.OPERATION %v : vector<LANESxWIDE> to vector<LANESxNARROW>
  kernel.store %s, %y[%begin] (where %mask) : vector<LANESxNARROW>
  kernel.return
}"""


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "scalar"])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [(T.i64, T.i32), (T.i64, T.i16), (T.i64, T.i8), (T.i32, T.i16), (T.i32, T.i8), (T.i16, T.i8),
     (T.f32, T.bf16), (T.f32, T.f16), (T.f64, T.f32)], ids=element_name,
)  # fmt: skip
@pytest.mark.parametrize(
    ("lanes", "kept"), [(1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (16, 1), (64, 33), (8, 3)]
)
def test_what_was_narrowed_is_stored_in_its_own_lanes_alone(target, wide, narrow, lanes, kept):
    """LLVM makes a store of one lane of what narrows and stores it: of wide elements, once."""
    text = NARROWED.replace("LANES", str(lanes)).replace("KEPT", str(kept))
    text = text.replace("WIDE", element_name(wide)).replace("NARROW", element_name(narrow))
    kind = "trunci" if element_name(wide).startswith("i") else "truncf"
    module = irc.parse(text.replace("OPERATION", kind))
    gen = torch.Generator().manual_seed(lanes)
    x, actual = (torch.randn(lanes, generator=gen).mul(1000).to(torch_dtype(element))
                 for element in (wide, narrow))
    expected = torch.cat([x[:kept].to(actual.dtype), actual[kept:]])
    Compiled(list(module.block.ops), features_of(target)).run("k", [x, actual], 0, 1)
    assert_same(actual, expected)


SHARED_MASK = """kernel.func @k(%x: !kernel.ptr<ELEMENT>, %y: !kernel.ptr<ELEMENT>,
    %rows: !kernel.ptr<i64>, %begin: index, %end: index) attributes {grid = #sym<1>,
    outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<1>} {
  %i = kernel.iota : vector<LANESxi32>
  %most = arith.constant dense<KEPT> : vector<LANESxi32>
  %column = arith.cmpi slt, %i, %most : vector<LANESxi32>
  %row = kernel.load %rows[%begin] : i64
  %least = arith.constant 3 : i64
  %inside = arith.cmpi slt, %row, %least : i64
  %rows_inside = kernel.splat %inside : (i1) -> vector<LANESxi1>
  %mask = arith.COMBINED %rows_inside, %column : vector<LANESxi1>
  %zero = arith.constant dense<0.0> : vector<LANESxELEMENT>
  %v = kernel.load %x[%begin] (where %mask else %zero) : vector<LANESxELEMENT>
  %c = arith.cmpf ole, %v, %zero : vector<LANESxELEMENT>
  %s = arith.select %c, %zero, %v : vector<LANESxi1>, vector<LANESxELEMENT>
  kernel.store %s, %y[%begin] : vector<LANESxELEMENT>
  kernel.return
}"""


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "scalar"])
@pytest.mark.parametrize("element", [T.f32, T.f64], ids=element_name)
@pytest.mark.parametrize("combined", ["andi", "ori"])
@pytest.mark.parametrize(("lanes", "kept"), [(4, 1), (8, 3), (16, 1), (16, 5), (16, 9), (32, 7)])
@pytest.mark.parametrize("row", [0, 5])
def test_no_lane_is_read_of_registers_whose_mask_is_known(
    target, element, combined, lanes, kept, row
):
    """Of a row's condition and a constant one LLVM reads, with AVX, a register of no lanes whole:
    what lies there is a value, or no memory."""
    text = SHARED_MASK.replace("LANES", str(lanes)).replace("KEPT", str(kept))
    text = text.replace("ELEMENT", element_name(element)).replace("COMBINED", combined)
    (callee,) = irc.parse(text).block.ops
    assert isinstance(callee, kernel.KernelFuncOp)
    x = random_values(element, 32, 3).abs()[:lanes] + 1
    y = torch.zeros(lanes, dtype=torch_dtype(element))
    Compiled([callee], features_of(target)).run("k", [x, y, torch.tensor([row])], 0, 1)
    within = torch.arange(lanes) < kept
    inside = torch.tensor(row < 3)
    mask = inside & within if combined == "andi" else inside | within
    assert_same(y, torch.where(mask, x, 0))


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
def test_masked_lanes_give_the_other_value(target, element):
    lanes = lanes_for(target, element) or 4
    p = Program("other", [element, T.i1, element, element], 1, COUNT)

    def at(i):
        mask = p.load(p.pointers[1], i, vector(T.i1, lanes))
        other = p.load(p.pointers[2], i, vector(element, lanes))
        p.store(p.load(p.pointers[0], i, vector(element, lanes), mask, other), p.pointers[3], i)

    p.loop(p.begin, p.end, lanes, [], at)
    check_against_interpreter(target, p.done(), [
        random_values(element, COUNT, 0), random_values(T.i1, COUNT, 1),
        random_values(element, COUNT, 2),
    ], torch.zeros(COUNT, dtype=torch_dtype(element)))  # fmt: skip


@TARGET_NAMES
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
@pytest.mark.parametrize("masked", [False, True])
def test_gather_and_scatter(target, element, masked):
    lanes = lanes_for(target, element) or 4
    p = Program("move", [element, T.i64, T.i1, element], 1, COUNT)

    def at(i):
        offsets = p.op("arith.index_cast", p.load(p.pointers[1], i, vector(T.i64, lanes)),
                       to=vector(T.index, lanes))  # fmt: skip
        masks = [p.load(p.pointers[2], i, vector(T.i1, lanes))] if masked else []
        other = [p.constant(1, vector(element, lanes))] if masked else []
        got = p.op("kernel.gather", p.pointers[0], offsets, *masks, *other,
                   to=vector(element, lanes))  # fmt: skip
        # Places collide: the last lane that names one wins.
        half = p.op("arith.shrui", offsets, p.constant(1, offsets.type))
        p.op("kernel.scatter", got, p.pointers[3], half, *masks)

    p.loop(p.begin, p.end, lanes, [], at)
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(7))
    check_against_interpreter(
        target, p.done(),
        [random_values(element, COUNT, 0), order, random_values(T.i1, COUNT, 1)],
        random_values(element, COUNT, 5),
    )  # fmt: skip


@TARGET_NAMES
@pytest.mark.parametrize("element", [T.i1, T.i32, T.i64, T.f32, T.f64, T.bf16], ids=element_name)
@pytest.mark.parametrize("combiner", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("masked", [False, True])
def test_scatter_combines_in_lane_order(target, element, combiner, masked):
    if element is T.i1 and combiner in ("prod", "min", "max"):
        combiner = "sum"
    lanes = lanes_for(target, T.i64)
    kind = vector(element, lanes)
    p = Program("combine", [element, T.i64, T.i1, element], 1, COUNT)

    def at(i):
        offsets = p.op("arith.index_cast", p.load(p.pointers[1], i, vector(T.i64, lanes)),
                       to=vector(T.index, lanes))  # fmt: skip
        masks = [p.load(p.pointers[2], i, vector(T.i1, lanes))] if masked else []
        p.op("kernel.scatter", p.load(p.pointers[0], i, kind), p.pointers[3], offsets, *masks,
             combiner=combiner)  # fmt: skip

    p.loop(p.begin, p.end, max(lanes, 1), [], at)
    places = torch.randint(0, 9, (COUNT,), generator=torch.Generator().manual_seed(3))
    check_against_interpreter(
        target, p.done(),
        [random_values(element, COUNT, 0), places, random_values(T.i1, COUNT, 1)],
        random_values(element, 16, 8)[:9],
    )  # fmt: skip


@TARGET_NAMES
def test_scalar_masks_guard_whole_vectors(target):
    lanes = lanes_for(target, T.f32)
    p = Program("guard", [T.f32, T.i1, T.f32], 1, COUNT)

    def at(i):
        mask = p.load(p.pointers[1], i, T.i1)
        kind = vector(T.f32, lanes)
        value = p.load(p.pointers[0], i, kind, mask, p.constant(7.0, kind))
        p.store(p.op("arith.addf", value, p.constant(1.0, kind)), p.pointers[2], i, mask)

    p.loop(p.begin, p.end, max(lanes, 1), [], at)
    check_against_interpreter(
        target, p.done(), [random_values(T.f32, COUNT, 0), random_values(T.i1, COUNT, 1)],
        torch.zeros(COUNT),
    )  # fmt: skip


@TARGET_NAMES
def test_scratch_memory(target):
    lanes = lanes_for(target, T.f32)
    kind, step = vector(T.f32, lanes), max(lanes, 1)
    p = Program("scratch", [T.f32, T.f32], 1, COUNT)
    room = p.op("kernel.scratch", count=COUNT, to=kernel.PointerType(T.f32))
    p.loop(p.begin, p.end, step, [], lambda i: p.store(p.load(p.pointers[0], i, kind), room, i))
    last = p.constant(COUNT - 1)

    def back(i):
        p.store(p.load(room, p.op("arith.subi", last, i), T.f32), p.pointers[1], i)

    p.loop(p.begin, p.end, 1, [], back)
    check_against_interpreter(target, p.done(), [random_values(T.f32, COUNT, 0)],
                              torch.zeros(COUNT))  # fmt: skip


@TARGET_NAMES
def test_prefetches_change_nothing_even_outside(target):
    p = Program("ahead", [T.f32, T.f32], 1, COUNT)
    far = p.constant(1 << 40)

    def at(i):
        p.op("kernel.prefetch", p.pointers[0], p.op("arith.addi", i, far))
        p.store(p.load(p.pointers[0], i, T.f32), p.pointers[1], i)

    p.loop(p.begin, p.end, 1, [], at)
    check_against_interpreter(target, p.done(), [random_values(T.f32, COUNT, 0)],
                              torch.zeros(COUNT))  # fmt: skip


# -- across lanes


def combiners_of(element):
    if element is T.i1:
        return ("any", "all", "xor", "sum", "min", "max")
    if isinstance(element, T.FloatType):
        return ("sum", "prod", "min", "max")
    return ("sum", "prod", "min", "max", "xor")


@VECTOR_TARGETS
@pytest.mark.parametrize("element", MEMORY, ids=element_name)
def test_reduce(target, element):
    lanes = lanes_for(target, element)
    names = combiners_of(element)
    p = Program("reduce", [element] * (1 + len(names)), len(names), COUNT)

    def at(i):
        value = p.load(p.pointers[0], i, vector(element, lanes))
        for name, out in zip(names, p.pointers[1:], strict=True):
            p.store(p.op("kernel.reduce", [value], combiner=name, to=[element]), out, i)

    p.loop(p.begin, p.end, lanes, [], at)
    tolerance = {T.f16: 2e-2, T.bf16: 1e-1, T.f32: 1e-5, T.f64: 1e-12}.get(element, 0.0)
    values = random_values(element, COUNT, 0)
    if tolerance:
        values = moderate(element, COUNT, 0) + 0.5
        values[3], values[70], values[71] = math.nan, math.inf, -1.0
    outputs = [torch.zeros(COUNT, dtype=torch_dtype(element)) for _ in names]
    check_against_interpreter(target, p.done(), [values], *outputs, tolerance=tolerance)


@VECTOR_TARGETS
@pytest.mark.parametrize("element", [T.i1, T.i8, T.i64, T.bf16, T.f32], ids=element_name)
@pytest.mark.parametrize("combiner", ["argmin", "argmax"])
def test_reduce_to_the_first_position(target, element, combiner):
    lanes = lanes_for(target, T.i64)
    p = Program("arg", [element, T.i64, element, T.i64], 2, COUNT)

    def at(i):
        pair = [p.load(p.pointers[0], i, vector(element, lanes)),
                p.load(p.pointers[1], i, vector(T.i64, lanes))]  # fmt: skip
        best, place = p.op("kernel.reduce", pair, combiner=combiner, to=[element, T.i64])
        p.store(best, p.pointers[2], i)
        p.store(place, p.pointers[3], i)

    p.loop(p.begin, p.end, lanes, [], at)
    values = random_values(element, COUNT, 0)
    if element is not T.i1:
        values[40:100] = values[40:100].sign().nan_to_num().to(values.dtype)  # many are equal
        values[110:114] = values[113]
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(7))
    check_against_interpreter(target, p.done(), [values, order],
                              torch.zeros(COUNT, dtype=values.dtype), torch.zeros_like(order))


@VECTOR_TARGETS
@pytest.mark.parametrize("element", [T.i8, T.i64, T.bf16, T.f16, T.f32], ids=element_name)
def test_scan(target, element):
    lanes = lanes_for(target, element)
    names = ("sum", "prod", "min", "max")
    p = Program("scan", [element] * (1 + len(names)), len(names), COUNT)

    def at(i):
        value = p.load(p.pointers[0], i, vector(element, lanes))
        for name, out in zip(names, p.pointers[1:], strict=True):
            p.store(p.op("kernel.scan", [value], combiner=name, to=[value.type]), out, i)

    p.loop(p.begin, p.end, lanes, [], at)
    tolerance = {T.f16: 2e-2, T.bf16: 1e-1, T.f32: 1e-5, T.f64: 1e-12}.get(element, 0.0)
    values = random_values(element, COUNT, 0)
    if tolerance:
        values = moderate(element, COUNT, 0) + 0.5
        values[70] = math.nan
    outputs = [torch.zeros(COUNT, dtype=values.dtype) for _ in names]
    check_against_interpreter(target, p.done(), [values], *outputs, tolerance=tolerance)


@VECTOR_TARGETS
@pytest.mark.parametrize("element", [T.f32, T.i8, T.bf16, T.f64], ids=element_name)
@pytest.mark.parametrize("size", [4, 8, 16])
def test_transpose(target, element, size):
    row = vector(element, size)
    tile = T.VectorType((size, size), element)
    p = Program("transpose", [element, element], 1, 1)
    value = p.constant(0, tile)
    for r in range(size):
        loaded = p.load(p.pointers[0], p.constant(r * size), row)
        value = p.op("kernel.insert", loaded, value, p.constant(r), to=tile)
    value = p.op("kernel.transpose", value, to=tile)
    for r in range(size):
        p.store(p.op("kernel.extract", value, p.constant(r), to=row), p.pointers[1],
                p.constant(r * size))  # fmt: skip
    x = random_values(element, size * size + 16, 0)[: size * size]
    check_against_interpreter(target, p.done(), [x], torch.zeros_like(x))


@TARGET_NAMES
def test_lanes_by_number(target):
    lanes = lanes_for(target, T.i32) or 4
    p = Program("lanes", [T.i32, T.i32], 1, COUNT)
    iota = p.op("kernel.iota", to=vector(T.i32, lanes))

    def at(i):
        value = p.op("arith.addi", p.load(p.pointers[0], i, vector(T.i32, lanes)), iota)
        lane = p.op("arith.remsi", i, p.constant(lanes))
        one = p.op("kernel.extract", value, lane, to=T.i32)
        p.store(p.op("kernel.insert", one, value, p.constant(0), to=value.type),
                p.pointers[1], i)  # fmt: skip

    p.loop(p.begin, p.end, lanes, [], at)
    check_against_interpreter(target, p.done(), [random_values(T.i32, COUNT, 0)],
                              torch.zeros(COUNT, dtype=torch.int32))  # fmt: skip
