"""Each key of a schedule: a text without it is refused, another value gives another kernel with the
same values, and a value that makes no sense is refused where it is read."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import kernel, loop
from irc.dialects.loop.schedule import CPU, GPU
from irc.interp.core import run
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.ir.text.printer import print_attribute
from tests.passes.kernel.test_updates import MAKE, SCATTER, function


def program(*lines, arguments="%x: tensor<[8, 9216] x f32, strides [9216, 1]>", result="f32"):
    """A function that returns %r, whose type is the last line's."""
    type_ = lines[-1].rpartition(" : ")[2]
    body = "\n".join(lines)
    return (f'func.func @main({arguments}) -> {type_} attributes {{level = "loop"}} {{\n{body}\n'
            f"func.return %r : {type_} }}")  # fmt: skip


ROW = "tensor<[2] x f32, strides [1]>"
READ = "%v = loop.read %x[i, j] : f32"
SUM = program(f"%r = loop.compute par(i: 2) red(j: 9216) -> reduce(sum, f32) {{ {READ}",
              "loop.yield %v } : tensor<[2] x f32, strides [1]>")  # fmt: skip
MOMENTS = SUM.replace("%r =", "%r, %q =").replace("sum", "moments").replace(
    "%v } : tensor<[2] x f32, strides [1]>", "%v } : " + ", ".join(
        ["tensor<[2] x f32, strides [1]>"] * 2))  # fmt: skip
ROWS = SUM.replace("j: 9216", "j: 200")
PLACE = ROWS.replace("sum, f32", "argmax, f32").replace(ROW, ROW.replace("f32", "i64"))
TWICE = program(
    "%r = loop.group (i: 2) {",
    "%s = loop.compute par(i: 2) red(j: 40000) -> reduce(sum, f32) {",
    "%v = loop.read %x[i, mod(j, 9216)] : f32",
    f"loop.yield %v }} : {ROW}",
    "%t = loop.compute par(i: 2) red(j: 40000) -> reduce(max, f32) {",
    "%v = loop.read %x[i, mod(j, 9216)] : f32",
    "%m = loop.read %s[i] : f32",
    "%w = arith.mulf %v, %m : f32",
    f"loop.yield %w }} : {ROW}",
    f"loop.yield %t }} : {ROW}",
)
EDGES = program(f"%r = loop.compute par(i: 2) red(j: 9214) -> reduce(sum, f32) {{ {READ}",
                f"loop.yield %v }} : {ROW}")  # fmt: skip
POWERS = ROWS.replace("loop.yield %v", "%e = math.exp %v {nonpositive} : f32\nloop.yield %e")
ODD_ROWS = "tensor<[2, 802] x f32, strides [802, 1]>"
ODD = program(
    "%r = loop.group (i: 2) {",
    f"%s = loop.compute par(i: 2) red(j: 802) -> reduce(max, f32) {{ {READ}",
    f"loop.yield %v }} : {ROW}",
    f"%t = loop.compute par(i: 2, j: 802) -> map {{ {READ}",
    "%m = loop.read %s[i] : f32",
    "%w = arith.subf %v, %m : f32",
    f"loop.yield %w }} : {ODD_ROWS}",
    f"loop.yield %t }} : {ODD_ROWS}",
    arguments=f"%x: {ODD_ROWS}",
)
SUMMED_POWERS = program(
    "%r = loop.group (i: 2) {",
    "%s = loop.compute par(i: 2) red(j: 40000) -> reduce(max, f32) {",
    "%v = loop.read %x[i, mod(j, 9216)] : f32",
    f"loop.yield %v }} : {ROW}",
    "%t = loop.compute par(i: 2) red(j: 40000) -> reduce(sum, f32) {",
    "%v = loop.read %x[i, mod(j, 9216)] : f32",
    "%m = loop.read %s[i] : f32",
    "%d = arith.subf %v, %m : f32",
    "%e = math.exp %d {nonpositive} : f32",
    f"loop.yield %e }} : {ROW}",
    f"loop.yield %t }} : {ROW}",
)
WEIGHTED = program(
    "%r = loop.group (i: 2) {",
    f"%s = loop.compute par(i: 2) red(j: 800) -> reduce(max, f32) {{ {READ}",
    f"loop.yield %v }} : {ROW}",
    f"%t = loop.compute par(i: 2, j: 800) -> map {{ {READ}",
    "%m = loop.read %s[i] : f32",
    "%u = loop.read %x[7, j] : f32",
    "%d = arith.subf %v, %m : f32",
    "%w = arith.mulf %d, %u : f32",
    "loop.yield %w } : tensor<[2, 800] x f32, strides [800, 1]>",
    "loop.yield %t } : tensor<[2, 800] x f32, strides [800, 1]>",
)
LOOPED = SUM.replace("j: 9216", "j: 40000").replace("%x[i, j]", "%x[i, mod(j, 9216)]")
SHORT_ROWS = program(
    "%r = loop.compute par(i: 2) red(k: 9, j: 200) -> reduce(sum, f32) {",
    "%v = loop.read %x[i, 1000*k + j] : f32",
    "loop.yield %v } : tensor<[2] x f32, strides [1]>",
)
MAP = program(f"%r = loop.compute par(i: 8, j: 801) -> map {{ {READ}",
              "loop.yield %v } : tensor<[8, 801] x f32, strides [801, 1]>")  # fmt: skip
HALVES = program(
    "%r = loop.compute par(i: 8, j: 801) -> map {",
    "%c = loop.index {expression = #sym<j>} : index",
    "%b = arith.constant 400 : index",
    "%t = arith.cmpi slt, %c, %b : index",
    READ,
    "%w = arith.negf %v : f32",
    "%y = arith.select %t, %v, %w : f32",
    "loop.yield %y } : tensor<[8, 801] x f32, strides [801, 1]>",
)
ACROSS = program(
    "%r = loop.compute par(i: 40, j: 8) -> map {",
    "%v = loop.read %x[j, i] : f32",
    "loop.yield %v } : tensor<[40, 8] x f32, strides [8, 1]>",
)
WINDOW = program(
    "%r = loop.compute par(i: 5, h: 3, w: 4) -> map {",
    "%v = loop.read %x[0, 12*i + 4*h + w] : f32",
    "loop.yield %v } : tensor<[5, 3, 4] x f32, strides [1, 20, 5]>",
)
GROUP = program(
    f"%r = loop.group (i: 2) {{ %m = loop.compute par(i: 2, j: 100) -> map {{ {READ}",
    "%w = math.exp %v : f32",
    "loop.yield %w } : tensor<[2, 100] x f32, strides [100, 1]>",
    "%s = loop.compute par(i: 2) red(j: 100) -> reduce(sum, f32) {",
    "%v = loop.read %m[i, 99 - j] : f32",
    "loop.yield %v } : tensor<[2] x f32, strides [1]>",
    "loop.yield %s } : tensor<[2] x f32, strides [1]>",
)
PLANES = program(
    "%r = loop.compute par(i: 4, j: 6, k: 40) -> map {",
    "%v = loop.read %x[i, 100*j + k] : f32",
    "loop.yield %v } : tensor<[4, 6, 40] x f32, strides [240, 40, 1]>",
)
FLAT = PLANES.replace("100*j", "40*j")
PRODUCT = program(
    "%r = loop.compute par(i: 9, j: 18) red(k: 24) -> reduce(sum, f32) schedule "
    "#loop.schedule<cpu, tile_rows = 4 : i64, tile_vectors = 2 : i64> {",
    "%v = loop.read %x[mod(i, 8), k] : f32",
    "%w = loop.read %x[mod(k, 8), j] : f32",
    "%p = arith.mulf %v, %w : f32",
    "loop.yield %p } : tensor<[9, 18] x f32, strides [18, 1]>",
)
PLAIN_PRODUCT = (
    PRODUCT.replace("mod(k, 8), j", "0, 18*k + j").replace("mod(i, 8)", "i")
    .replace("i: 9", "i: 8").replace("[9,", "[8,")
)  # fmt: skip
PAIRS = PRODUCT.replace("%p = arith.mulf %v, %w : f32", """%c = arith.truncf %v : f32 to bf16
    %d = arith.truncf %w : f32 to bf16
    %a = arith.extf %c : bf16 to f32
    %b = arith.extf %d : bf16 to f32
    %p = arith.mulf %a, %b : f32""")
FOURS = PRODUCT.replace("%p = arith.mulf %v, %w : f32", """%f = arith.constant 50.0 : f32
    %g = arith.mulf %v, %f : f32
    %h = arith.mulf %w, %f : f32
    %c = arith.fptosi %g : f32 to i8
    %d = arith.fptosi %h : f32 to i8
    %a = arith.extsi %c : i8 to i32
    %b = arith.extsi %d : i8 to i32
    %p = arith.muli %a, %b : i32""").replace("sum, f32", "sum, i32").replace(
    "tensor<[9, 18] x f32", "tensor<[9, 18] x i32")
UNPACKED = PLAIN_PRODUCT.replace("0, 18*k + j", "0, 24*j + k")
OTHER_WAY = {"vector_axis": "i", "pack_left": True, "pack_right": True}
WINDOWS = program(
    "%r = loop.compute par(b: 2, i: 4, j: 18) red(u: 3, k: 24) -> reduce(sum, f32) schedule "
    "#loop.schedule<cpu, tile_rows = 4 : i64, tile_vectors = 2 : i64> {",
    "%v = loop.read %x[b*2 + i + u, k] : f32",
    "%w = loop.read %x[mod(k, 8), u*18 + j] : f32",
    "%p = arith.mulf %v, %w : f32",
    "loop.yield %p } : tensor<[2, 4, 18] x f32, strides [72, 18, 1]>",
)
REGISTERS = program(
    "%r = loop.compute par(m: 8, n: 64) red(k: 64) -> reduce(sum, f32) schedule "
    "#loop.schedule<cpu, products = \"matrix\"> {",
    "%v = loop.read %x[m, k] : bf16",
    "%w = loop.read %x[0, 64*n + k] : bf16",
    "%a = arith.extf %v : bf16 to f32",
    "%b = arith.extf %w : bf16 to f32",
    "%p = arith.mulf %a, %b : f32",
    "loop.yield %p } : tensor<[8, 64] x f32, strides [64, 1]>",
    arguments="%x: tensor<[8, 9216] x bf16, strides [9216, 1]>",
)
PARTS = program(
    "%r = loop.compute par(m: 40, n: 96) red(k: 64) -> reduce(sum, f32) schedule "
    "#loop.schedule<cpu, products = \"bf16x6\"> {",
    "%v = loop.read %x[mod(m, 8), k] : f32",
    "%w = loop.read %x[0, 64*n + k] : f32",
    "%p = arith.mulf %v, %w : f32",
    "loop.yield %p } : tensor<[40, 96] x f32, strides [96, 1]>",
)
PRODUCT_OF_F16 = (
    "%v = loop.read %x[mod(m, 8), k] : f32",
    "%w = loop.read %x[mod(k, 8), n] : f32",
    "%c = arith.truncf %v : f32 to f16",
    "%d = arith.truncf %w : f32 to f16",
    "%a = arith.extf %c : f16 to f32",
    "%b = arith.extf %d : f16 to f32",
    "%p = arith.mulf %a, %b : f32",
    "loop.yield %p } : tensor<[40, 72] x f32, strides [72, 1]>",
)
MATRICES = program(
    "%r = loop.compute par(m: 40, n: 72) red(k: 48) -> reduce(sum, f32) {",
    *PRODUCT_OF_F16,
)
STREAM = program(
    "%r = loop.group (m: 40) {",
    "%s = loop.compute par(m: 40, n: 72) red(k: 48) -> reduce(sum, f32) {",
    *PRODUCT_OF_F16,
    "%o = loop.compute par(m: 40, d: 24) red(n: 72) -> reduce(sum, f32) {",
    "%t = loop.read %s[m, n] : f32",
    "%u = loop.read %x[mod(n, 8), d] : f32",
    "%e = arith.truncf %t : f32 to f16",
    "%f = arith.truncf %u : f32 to f16",
    "%g = arith.extf %e : f16 to f32",
    "%h = arith.extf %f : f16 to f32",
    "%q = arith.mulf %g, %h : f32",
    "loop.yield %q } : tensor<[40, 24] x f32, strides [24, 1]>",
    "loop.yield %o } : tensor<[40, 24] x f32, strides [24, 1]>",
)
LIMITED = program(
    "%r = loop.group (b: 2, m: 80) {",
    "%s = loop.compute par(b: 2, m: 80, j: 3, n: 24) red(k: 4) -> reduce(sum, f32) {",
    *PRODUCT_OF_F16[:1],
    "%w = loop.read %x[mod(k + b, 8), 24*j + n] : f32",
    *PRODUCT_OF_F16[2:-1],
    "loop.yield %p } : tensor<[2, 80, 3, 24] x f32, strides [5760, 72, 24, 1]>",
    "%o = loop.compute par(b: 2, m: 80, d: 24) red(j: 3, n: 24) -> reduce(sum, f32) {",
    "%i = loop.index {expression = #sym<j>} : index",
    "%l = loop.index {expression = #sym<b + 1>} : index",
    "%c = arith.cmpi slt, %i, %l : index",
    "%t = loop.read %s[b, m, j, n] : f32",
    "%z = arith.constant 0.0 : f32",
    "%y = arith.select %c, %t, %z : f32",
    "%u = loop.read %x[mod(23*j + n, 8), d] : f32",
    "%e = arith.truncf %y : f32 to f16",
    "%f = arith.truncf %u : f32 to f16",
    "%g = arith.extf %e : f16 to f32",
    "%h = arith.extf %f : f16 to f32",
    "%q = arith.mulf %g, %h : f32",
    "loop.yield %q } : tensor<[2, 80, 24] x f32, strides [1920, 24, 1]>",
    "loop.yield %o } : tensor<[2, 80, 24] x f32, strides [1920, 24, 1]>",
)
WIDE = program(
    "%r = loop.compute par(m: 40, n: 72) red(k: 48) -> reduce(sum, f32)",
    "schedule #loop.schedule<gpu, precision = \"ieee\"> {",
    "%v = loop.read %x[mod(m, 8), k] : f32",
    "%w = loop.read %x[mod(k, 8), n] : f32",
    "%p = arith.mulf %v, %w : f32",
    "loop.yield %p } : tensor<[40, 72] x f32, strides [72, 1]>",
)
PLAIN = WIDE.replace("mod(m, 8), k", "0, 48*m + k").replace("mod(k, 8), n", "1, 72*k + n")
SCATTERING = str(function(MAKE + SCATTER, "%r")[1])
# A program that has the key, another value, one that makes no sense, and what else must change.
PLACES = A.DenseIntsAttr(())
CASES = {
    "collapse": (FLAT, [], ["i"], {"outer": ["i", "j"]}),
    "outer": (PLANES, ["j", "i"], ["i", "i"]),
    "scratch": (GROUP, 0, 1 << 20),
    "vector_axis": (ROWS, "i", 3, {"outer": [], "block": 0, "tile_axis": ""}),
    "lanes": (ROWS, 8, 3),
    "copies": (ROWS, 2, 0),
    "tail": (MAP, "peel", "no"),
    "spans": (HALVES, 1, 0),
    "block": (MAP, 1024, -1),
    "tile_axis": (ACROSS, "", 7),
    "tile_block": (ACROSS, 32, 7),
    "unroll": (ACROSS, False, 1),
    "order": (SHORT_ROWS, ["j", "k"], ["k", "k"]),
    "chunks": (SUM, ["j 512"], ["j"]),
    "streams": (SUM, False, "yes"),
    "partial": (SHORT_ROWS, [], "j"),
    "compensated": (MOMENTS, False, 2),
    "position_bits": (PLACE, 64, 16),
    "tile_rows": (PRODUCT, 3, 0),
    "tile_vectors": (PRODUCT, 3, 0),
    "row_axis": (PRODUCT, "j", 3, OTHER_WAY),
    "outer_rows": (WINDOWS, [], ["b", "b"], {"outer": ["b", "j", "i"]}),
    "depth_order": (WINDOWS, ["k", "u"], ["k", "k"]),
    "point_rows": (PRODUCT, 8, 3),
    "point_columns": (PRODUCT, 16, 7),
    "block_rows": (PRODUCT, 4, 3),
    "block_depth": (PRODUCT, 8, 3),
    "inner": (PRODUCT, "rows", "depth"),
    "pack_left": (PLAIN_PRODUCT, True, 0),
    "pack_right": (PLAIN_PRODUCT, True, 0),
    "pack_ahead": (UNPACKED, 1, 3, {"products": "lanes", "pack_right": True}),
    "rows_ahead": (PLAIN_PRODUCT, 3, -1, {"pack_left": False, "products": "lanes"}),
    "pack_columns": (PARTS, 32, -1, {"inner": "columns"}),
    "products": (UNPACKED, "lanes", "columns", {"pack_right": True}),
    "group": (PAIRS, 2, 3, {"pack_left": True, "pack_right": True}),
    "offset": (FOURS, 128, 3, {"group": 4, "pack_left": True, "pack_right": True}),
    "tile_columns": (UNPACKED, 2, 0),
    "terms": (PRODUCT, 8, 0),
    "in_turn": (PRODUCT, True, 1),
    "woven": (REGISTERS, False, 1),
    "skew": (PRODUCT, 32, 0),
    "copying": (SCATTERING, None, {"lanes": 3}),
}  # fmt: skip
GPU_CASES = {
    "x_block": (MAP, 64, 3),
    "r_block": (LOOPED, 1024, 24),
    "programs": (ROWS, 1, -1),
    "persistent": (LOOPED, True, 1, {"r_block": 65536}),
    "order": (PLANES, [1, 0, 2], [0, 0, 1]),
    "own_order": (SHORT_ROWS, [1, 0], [0, 0]),
    "y_block": (ACROSS, 16, 3),
    "collapse": (WINDOW, PLACES, [2, 2]),
    "tile_axes": (ACROSS, PLACES, [-1, 0], {"order": [0, 1]}),
    "num_warps": (MAP, 8, 3),
    "num_stages": (MAP, 2, 0),
    "turns": (TWICE, False, 3),
    "edge_bytes": (EDGES, 0, 32),
    "row_group": (ODD, 1, 3),
    "peeled": (LOOPED.replace("j: 40000", "j: 40001"), True, 1),
    "abreast": (LOOPED, 2, 3),
    "online": (SUMMED_POWERS, False, 1),
    "rough_powers": (POWERS, False, 1),
    "cached_reads": (TWICE, True, 1),
    "early_reads": (WEIGHTED, False, 1),
    "unrolled": (PLACE.replace("j: 200", "j: 9"), True, 1),
    "index_bits": (MAP, 64, 16),
    "tile_m": (MATRICES, 16, 3),
    "tile_n": (MATRICES, 32, 3),
    "tile_k": (MATRICES, 32, 3),
    "group_m": (MATRICES, 1, 0, {"tile_m": 16, "tile_n": 16}),
    "products": (MATRICES, "swapped", "no", {"tile_m": 64, "tile_n": 16}),
    "access": (PLAIN, "descriptors", "no"),
    "precision": (WIDE, "tf32", "no"),
    "column_parts": (MATRICES, 2, 3),
    "flat": (MATRICES, True, 3, {"programs": 2}),
    "stream_m": (STREAM, 16, 3),
    "stream_n": (STREAM, 32, 3),
    "last_first": (LIMITED, False, 3),
}


def attribute(value):
    """The attribute of a Python value."""
    if isinstance(value, A.Attribute):
        return value
    if isinstance(value, bool):
        return A.BoolAttr(value)
    if isinstance(value, int):
        return A.IntegerAttr(value)
    if isinstance(value, dict):
        return A.DictAttr({k: attribute(v) for k, v in value.items()})
    if isinstance(value, list):
        numbers = value and isinstance(value[0], int)
        return A.DenseIntsAttr(value) if numbers else A.ArrayAttr([attribute(v) for v in value])
    return A.StringAttr(value)


def scheduled(text, target):
    """The module, with schedules; and the operations that have one."""
    module = irc.parse(text)
    bits = " vector_bits=128" if target == "cpu" else ""
    PassManager.parse(f"schedule{{target={target}{bits}}}").run(module)
    return module, [op for op in module.walk() if "schedule" in op.attributes]


def edited(text, target, key, value, **others):
    """The module with another value of a key (None: without it) wherever there is one."""
    module, ops = scheduled(text, target)
    given = [op for op in ops if key in op.attributes["schedule"].entries.as_dict()]
    assert given, f"no schedule has {key}"
    for op in given:
        entries = op.attributes["schedule"].entries.as_dict()
        if value is None:
            del entries[key]
        else:
            assert type(entries[key]) is type(value) and entries[key] is not value
            entries.update({key: value}, **{k: attribute(v) for k, v in others.items()})
        op.attributes["schedule"] = loop.ScheduleAttr(target, A.DictAttr(entries))
    return module


ELEMENTS = {"f32": torch.float32, "bf16": torch.bfloat16}


def kernels(module):
    return [irc.print_op(op) for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]


def values(module):
    torch.manual_seed(0)
    types = [a.type for a in module.lookup("main").block.arguments]
    return run(module, *(torch.randn(t.shape).to(ELEMENTS[str(t.element)]) for t in types))


def variant(text):
    """Another schedule for the copying variant."""
    _, ops = scheduled(text, "cpu")
    entries = next(e for e in (op.attributes["schedule"].entries.as_dict() for op in ops)
                   if "copying" in e)["copying"].as_dict()  # fmt: skip
    assert entries["vector_axis"].value
    return A.DictAttr({**entries, "lanes": A.IntegerAttr(entries["lanes"].value // 2)})


EACH = pytest.mark.parametrize(
    "target, key", [*(("cpu", k) for k in CASES), *(("gpu", k) for k in GPU_CASES)]
)


def test_every_key_is_tried():
    """But for those that other tests try: `split_k` below, schedules by size, which need a symbol
    (`test_sizes.py`), axes that are written out, which few schedules have (`test_stages.py`), and
    points with their sums in registers (`test_jam.py`), what is fetched (`test_fetched_reads.py`),
    elements that lie apart (`test_strided_reads.py`), and what is no choice but where others are
    from (`test_measured_entries.py`).
    """
    jam = {"jam_axis", "jam_points", "jam_ahead", "beside_sums"}
    others = {"fetch_axis", "fetch_points", "strided"}
    assert set(CASES) == set(CPU) - {"variants", "written_out", "measured", *jam, *others}
    assert set(GPU_CASES) == set(GPU) - {"split_k", "variants"}


@pytest.mark.parametrize("parts", [3, 5])
def test_the_depth_of_a_contraction_in_parts(parts):
    """It is split before kernels are formed, and no schedule of theirs says so."""
    text = WIDE.replace("precision =", f"split_k = {parts} : i64, precision =")
    module, whole = irc.parse(text), irc.parse(WIDE)
    if 48 % parts:
        with pytest.raises(InvalidIR, match="split_k is 5, which divides none of its axes"):
            PassManager.parse("split-reductions{target=gpu}").run(module)
        return
    PassManager.parse("split-reductions{target=gpu},schedule{target=gpu}").run(module)
    computes = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert [a.extent for a in computes[0].axis_list] == [3, 16, 40, 72]
    assert "split_k" not in irc.print_op(module)
    PassManager.parse("form-kernels", verify="each").run(module)
    assert [text.count("kernel.dot") for text in kernels(module)] == [1, 0]
    for result, right in zip(values(module), values(whole), strict=True):
        torch.testing.assert_close(result, right, rtol=1e-4, atol=1e-4)


@EACH
def test_a_key_is_wanted_and_obeyed(target, key):
    text, other, _, *more = (CASES if target == "cpu" else GPU_CASES)[key]
    module = edited(text, target, key, None)
    with pytest.raises(irc.InvalidIR, match=f"no entry '{key}'; the pass 'schedule' writes it"):
        PassManager.parse("form-kernels").run(module)
    before = scheduled(text, target)[0]
    other = variant(text) if key == "copying" else attribute(other)
    changed = edited(text, target, key, other, **(more[0] if more else {}))
    expected = values(before)
    for each in (before, changed):
        PassManager.parse("form-kernels", verify="each").run(each)
        for found, right in zip(values(each), expected, strict=True):
            torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4)
    assert kernels(changed) != kernels(before)


@EACH
def test_a_key_is_checked_where_it_is_read(target, key):
    text, _, wrong, *_ = (CASES if target == "cpu" else GPU_CASES)[key]
    module, ops = scheduled(text, target)
    printed = irc.print_op(module)
    assert irc.print_op(irc.parse(printed)) == printed
    entries = [op.attributes["schedule"].entries.as_dict() for op in ops]
    held = print_attribute(next(e[key] for e in entries if key in e))
    bad = print_attribute(attribute(wrong))
    with pytest.raises(irc.UserError, match=f"the schedule's {key} is "):
        irc.parse(printed.replace(f"{key} = {held}", f"{key} = {bad}"))


def test_a_key_that_no_schedule_has():
    for key, hint in (("vector", "did you mean"), ("xyz", "it has collapse, outer")):
        wrong = f"-> map schedule #loop.schedule<cpu, {key} = 8 : i64>"
        with pytest.raises(irc.UserError, match=f"'{key}' is no key of a cpu's schedule; {hint}"):
            irc.parse(MAP.replace("-> map", wrong))


@pytest.mark.parametrize(
    "entries, message",
    [("lanes = 8 : i64, block = 12 : i64", "block is 12, not a multiple of its vectors"),
     ("lanes = 8 : i64, copies = 2 : i64, block = 8 : i64", "block is 8, not a multiple of its"),
     ("lanes = 8 : i64, tile_block = 12 : i64", "tile_block is 12, not a multiple of its lanes")],
)  # fmt: skip
def test_sizes_that_are_no_multiples(entries, message):
    with pytest.raises(irc.UserError, match=f"the schedule's {message}"):
        irc.parse(MAP.replace("-> map", f"-> map schedule #loop.schedule<cpu, {entries}>"))
