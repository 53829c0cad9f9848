"""Contractions in tiles of registers: values of all shapes against float64, and what their
schedules may say."""

from __future__ import annotations

import itertools

import attrs
import pytest
import torch

import irc
from irc.dialects import arith, loop
from irc.dialects.kernel import KernelFuncOp, PrefetchOp, StoreOp
from irc.interp import core as interp
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.target import Target
from irc.target.attribute import carry

TILES = "tile_rows = 4 : i64, tile_vectors = 2 : i64"


def matrix(shape, strides=None, element="f32"):
    strides = torch.empty(shape).stride() if strides is None else strides
    return f"tensor<{list(shape)} x {element}, strides {list(strides)}>"


def product(rows, inner, columns, entries=TILES, left=None, right=None, across=(), result=None):
    """A product; `across` names the factors that are read with exchanged dimensions."""
    a = matrix((inner, rows) if "left" in across else (rows, inner), left)
    b = matrix((columns, inner) if "right" in across else (inner, columns), right)
    y = matrix((rows, columns), result)
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[{"k, m" if "left" in across else "m, k"}] : f32
    %q = loop.read %b[{"n, k" if "right" in across else "k, n"}] : f32
    %v = arith.mulf %p, %q : f32
    loop.yield %v
  }} : {y}
  func.return %y : {y}
}}"""


def arguments(module, sizes=None):
    """Random tensors for a module's arguments, in their strides."""
    torch.manual_seed(0)
    found = []
    for value in module.lookup("main").block.arguments:
        shape, strides = value.type.shape, value.type.strides
        dtype = {"bf16": torch.bfloat16, "f64": torch.float64}.get(
            str(value.type.element), torch.float32
        )
        made = torch.empty_strided(shape, strides, dtype=dtype)
        found.append(made.copy_(torch.randn(shape)))
    return found


def formed(text, bits=512):
    """The module with kernels, of which at least one has tiles."""
    module = irc.parse(text)
    PassManager.parse(f"schedule{{vector_bits={bits}}}", verify="each").run(module)
    schedules = [op.schedule for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert any(s.entries.get("row_axis") for s in schedules if s is not None)
    PassManager.parse("form-kernels", verify="each").run(module)
    return module


def interpreted(text, bits=512):
    """Check the kernel against the text as it stands, over the reals."""
    before = irc.parse(text)
    given = arguments(before)
    module = formed(text, bits)
    for got, wanted in zip(run(module, *given, mode="real"), run(before, *given, mode="real"),
                           strict=True):  # fmt: skip
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    return module


def native(text, bits=512, threads=1):
    """What the kernel's machine code gives, and its arguments; threads begin anywhere."""
    module = formed(text, bits)
    given = arguments(module)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    got = irc.build(module)(*given)
    return (got[0] if isinstance(got, list | tuple) else got), given


SIZES = [(2, 7, 31), (7, 31, 17), (13, 2, 7), (5, 7, 2), (3, 5, 65)]


@pytest.mark.parametrize("rows, inner, columns", SIZES)
def test_odd_sizes_interpreted(rows, inner, columns):
    packed = ", pack_left = true, pack_right = true" if rows == 7 else ""
    interpreted(product(rows, inner, columns, TILES + packed), 256)


@pytest.mark.parametrize("sizes", list(itertools.product([0, 1, 9], repeat=3)), ids=str)
def test_small_sizes_have_tiles_or_not(sizes):
    before = irc.parse(product(*sizes))
    given = arguments(before)
    PassManager.parse("schedule,form-kernels,bufferize,plan-memory").run(before)
    (got,) = irc.build(before)(*given)
    wanted = given[0].double() @ given[1].double()
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [512, 256, 128])
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("across", ["", "right"])
@pytest.mark.parametrize("rows, inner, columns", [(2, 131, 259), (3, 131, 197), (259, 131, 3)])
def test_two_rows_have_tiles(bits, element, across, rows, inner, columns):
    """They read a weight once for both, where a reduction reads it for each."""
    entries = f"schedule #loop.schedule<cpu, {TILES}>"
    text = product(rows, inner, columns, across=across).replace(entries, "")
    if element == "bf16":
        a, b = (text.split(f"%{name}: ")[1].split(" x f32")[0] for name in "ab")
        text = text.replace(f"{a} x f32", f"{a} x bf16").replace(f"{b} x f32", f"{b} x bf16")
        for name in "pq":
            text = text.replace(f"%{name} =", f"%{name}0 =")
        text = text.replace("] : f32", "] : bf16").replace("    %v =", """    %p = arith.extf %p0 : bf16 to f32
    %q = arith.extf %q0 : bf16 to f32
    %v =""")  # fmt: skip  # noqa: E501
    got, (left, right) = native(text, bits)
    wanted = left.double() @ (right.t() if across else right).double()
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bits", [512, 256])
@pytest.mark.parametrize("rows, inner, columns", [
    (65, 31, 65), (31, 65, 7), (7, 7, 65), (64, 64, 64), (2, 65, 31), (65, 3, 2), (129, 130, 131),
])  # fmt: skip
@pytest.mark.parametrize("across", ["", "left", "right", "left right"])
def test_values(rows, inner, columns, across, bits):
    got, (a, b) = native(product(rows, inner, columns, across=across.split()), bits)
    a, b = a.t() if "left" in across else a, b.t() if "right" in across else b
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)


ENTRIES = [
    "tile_rows = 3 : i64, tile_vectors = 1 : i64",
    "tile_rows = 14 : i64, tile_vectors = 2 : i64, inner = \"columns\"",
    "tile_rows = 6 : i64, tile_vectors = 4 : i64, lanes = 8 : i64, block_depth = 16 : i64",
    "tile_rows = 5 : i64, point_rows = 10 : i64, point_columns = 64 : i64, block_rows = 5 : i64",
    "tile_rows = 8 : i64, tile_vectors = 3 : i64, point_columns = 96 : i64, pack_right = true, "
    "block_depth = 32 : i64",
    "tile_rows = 4 : i64, pack_left = true, pack_right = true, block_depth = 48 : i64, "
    "block_rows = 8 : i64, point_rows = 24 : i64",
    "row_axis = \"n\", vector_axis = \"m\", pack_left = true, pack_right = true, "
    "tile_rows = 4 : i64",
]


@pytest.mark.parametrize("entries", ENTRIES)
def test_every_schedule_gives_the_values(entries):
    sizes = 39, 70, 101
    got, (a, b) = native(product(*sizes, entries))
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
    interpreted(product(13, 50, 70, entries), 256)


def fused(rows, inner, columns, element="f32", entries=TILES, prologue=""):
    """relu(a) @ b + bias, then gelu's tanh, plus an array; in one group."""
    y, z = matrix((rows, columns), element=element), matrix((rows, columns))
    a, b = matrix((rows, inner), element=element), matrix((inner, columns), element=element)
    wide = "%p1 = arith.extf %p : bf16 to f32\n%q1 = arith.extf %q : bf16 to f32"
    names = ("%p1", "%q1") if element == "bf16" else ("%p", "%q")
    narrow = "%o1 = arith.truncf %o : f32 to bf16" if element == "bf16" else ""
    positive = f"%zero = arith.constant 0.0 : f32\n%p2 = arith.maximumf {names[0]}, %zero : f32"
    return f"""
func.func @main(%a: {a}, %b: {b}, %c: {matrix((columns,))}, %d: {z}) -> {y}
    attributes {{level = "loop"}} {{
  %y = loop.group (m: {rows}, n: {columns}) {{
  %s = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[m, k] : {element}
    %q = loop.read %b[k, n] : {element}
    {wide if element == "bf16" else ""}
    {positive}
    %v = arith.mulf %p2, {names[1]} : f32
    loop.yield %v
  }} : {z}
  %t = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %x = loop.read %s[m, n] : f32
    %c0 = loop.read %c[n] : f32
    %x1 = arith.addf %x, %c0 : f32
    %e = math.tanh %x1 : f32
    loop.yield %e
  }} : {z}
  %r = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %x = loop.read %t[m, n] : f32
    %d0 = loop.read %d[m, n] : f32
    %o = arith.addf %x, %d0 : f32
    {narrow}
    loop.yield {"%o1" if narrow else "%o"}
  }} : {y}
  loop.yield %r : {y}
  }} : {y}
  func.return %y : {y}
}}"""


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("entries", [TILES, TILES + ", block_depth = 16 : i64"])
@pytest.mark.parametrize("sizes", [(19, 40, 70), (5, 7, 3)])
def test_what_comes_before_and_behind(sizes, entries, element):
    got, (a, b, c, d) = native(fused(*sizes, element, entries))
    wanted = torch.tanh(a.double().clamp(min=0) @ b.double() + c.double()) + d.double()
    bound = 1e-4 if element == "f32" else 2e-2
    torch.testing.assert_close(got.double(), wanted, rtol=bound, atol=bound)
    if sizes == (5, 7, 3):
        interpreted(fused(*sizes, element, entries), 256)


def test_what_is_no_number_stays_in_its_row():
    text = product(20, 33, 40)
    module = formed(text)
    a, b = arguments(module)
    a[3, 5], a[7, 2], b[9, 39] = float("nan"), float("inf"), float("-inf")
    PassManager.parse("bufferize,plan-memory").run(module)
    (got,) = irc.build(module)(a, b)
    torch.testing.assert_close(got, a @ b, rtol=1e-4, atol=1e-4, equal_nan=True)


BATCHED = """
func.func @main(%a: {a}, %b: {b}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.compute par(b: {n}, h: 2, m: 9, n: 21) red(k: 20) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[b, m, h, k] : f32
    %q = loop.read %b[b, {second}] : f32
    %v = arith.mulf %p, %q : f32
    loop.yield %v
  }} : {y}
  func.return %y : {y}
}}"""


@pytest.mark.parametrize("second", ["n, h, k", "h, k, n"])
@pytest.mark.parametrize("entries", [TILES, TILES + ", pack_left = true, pack_right = true"])
def test_batches_are_points_of_their_own(second, entries):
    shape = (3, 21, 2, 20) if second == "n, h, k" else (3, 2, 20, 21)
    text = BATCHED.format(
        a=matrix((3, 9, 2, 20)), b=matrix(shape), y=matrix((3, 2, 9, 21)), n=3, second=second,
        entries=entries,
    )  # fmt: skip
    got, (a, b) = native(text)
    equation = "bmhk,bnhk->bhmn" if second == "n, h, k" else "bmhk,bhkn->bhmn"
    wanted = torch.einsum(equation, a.double(), b.double())
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


PANELS = """
func.func @main(%a: {a}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.compute par(m: 30, n: {n}) red(k: 70) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[m, k] : f32
    %q = loop.read %w[floordiv(n, 16), k, mod(n, 16)] : f32
    %v = arith.mulf %p, %q : f32
    loop.yield %v
  }} : {y}
  func.return %y : {y}
}}"""


@pytest.mark.parametrize("columns", [64, 53])
@pytest.mark.parametrize("entries", [
    "tile_rows = 6 : i64, tile_vectors = 2 : i64, lanes = 8 : i64, pack_right = false",
    "tile_rows = 6 : i64", "tile_vectors = 3 : i64, tile_rows = 8 : i64, pack_right = false",
])  # fmt: skip
def test_panels_are_read_where_they_lie(columns, entries):
    text = PANELS.format(a=matrix((30, 70)), w=matrix((4, 70, 16)), y=matrix((30, columns)),
                         n=columns, entries=entries)  # fmt: skip
    got, (a, w) = native(text)
    whole = w.double().transpose(0, 1).reshape(70, 64)[:, :columns]
    torch.testing.assert_close(got.double(), a.double() @ whole, rtol=1e-4, atol=1e-4)
    assert "right" not in irc.print_op(formed(text)).partition("@k0(")[2].partition("attributes")[0]


SYMBOLS = """
func.func @main(%a: tensor<[s0, s1] x f32, strides [s1, 1]>,
    %b: tensor<[s1, s2] x f32, strides [s2, 1]>) -> tensor<[s0, s2] x f32, strides [s2, 1]>
    attributes {{level = "loop"}} {{
  sym.bind_size %a {{dim = 0 : i64, symbol = "s0", minimum = 0 : i64}} : (tensor<[s0, s1] x f32, strides [s1, 1]>) -> index
  sym.bind_size %a {{dim = 1 : i64, symbol = "s1", minimum = 0 : i64}} : (tensor<[s0, s1] x f32, strides [s1, 1]>) -> index
  sym.bind_size %b {{dim = 1 : i64, symbol = "s2", minimum = 0 : i64}} : (tensor<[s1, s2] x f32, strides [s2, 1]>) -> index
  %y = loop.compute par(m: s0, n: s2) red(k: s1) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[m, k] : f32
    %q = loop.read %b[k, n] : f32
    %v = arith.mulf %p, %q : f32
    loop.yield %v
  }} : tensor<[s0, s2] x f32, strides [s2, 1]>
  func.return %y : tensor<[s0, s2] x f32, strides [s2, 1]>
}}"""  # noqa: E501


@pytest.mark.parametrize("entries", [
    "tile_rows = 4 : i64, tile_vectors = 1 : i64",
    "tile_rows = 6 : i64, tile_vectors = 2 : i64, block_depth = 16 : i64, "
    "point_rows = 12 : i64, point_columns = 32 : i64, pack_left = true, pack_right = true",
])  # fmt: skip
def test_sizes_that_are_known_when_it_runs(entries):
    module = formed(SYMBOLS.format(entries=entries))
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    run_ = irc.build(module)
    for rows, inner, columns in [(0, 3, 4), (1, 1, 1), (4, 0, 9), (33, 20, 65), (12, 16, 32),
                                 (7, 40, 5)]:  # fmt: skip
        a = torch.empty_strided((rows, inner), (inner, 1)).normal_()
        b = torch.empty_strided((inner, columns), (columns, 1)).normal_()
        (got,) = run_(a, b)
        wanted = a.double() @ b.double()
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


def test_sums_of_a_part_of_the_depth_stay_in_their_memory():
    """Of the last tile those below the last row alone are put aside."""
    entries = "tile_rows = 4 : i64, tile_vectors = 1 : i64, block_depth = 16 : i64"
    module = formed(SYMBOLS.format(entries=entries))
    a, b = torch.randn(9, 20), torch.randn(20, 16)
    (got,) = run(module, a, b)
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("entries, fetched", [
    ("pack_right = true, inner = \"rows\", point_columns = 32 : i64", True),
    ("pack_right = true, inner = \"columns\", point_columns = 32 : i64", False),
    ("pack_right = true, inner = \"rows\"", False),
    ("pack_right = true, inner = \"rows\", point_columns = 32 : i64, block_depth = 16 : i64",
     False),
])  # fmt: skip
def test_what_is_packed_next_is_fetched_meanwhile(entries, fetched):
    text = product(24, 64, 96, f"{TILES}, pack_ahead = 0 : i64, {entries}", across=["right"])
    (kernel,) = (op for op in formed(text).walk() if isinstance(op, KernelFuncOp))
    pointers = {op.pointer for op in kernel.walk() if isinstance(op, PrefetchOp)}
    assert (kernel.block.arguments[1] in pointers) == fetched
    got, (a, b) = native(text)
    torch.testing.assert_close(got.double(), a.double() @ b.double().t(), rtol=1e-4, atol=1e-4)


AHEAD = "tile_rows = 2 : i64, tile_vectors = 2 : i64, lanes = 8 : i64, pack_right = true"


@pytest.mark.parametrize("entries", [
    "pack_ahead = 8 : i64", "pack_ahead = 4 : i64", "pack_ahead = 1 : i64",
    "pack_ahead = 2 : i64, block_depth = 24 : i64, pack_left = true",
    "pack_ahead = 4 : i64, block_depth = 40 : i64, point_columns = 32 : i64",
    "pack_ahead = 2 : i64, point_rows = 20 : i64, point_columns = 48 : i64, terms = 1 : i64",
])  # fmt: skip
@pytest.mark.parametrize("sizes, across", [
    ((37, 65, 64), ["right"]), ((39, 70, 53), []), ((36, 64, 17), ["right"]),
], ids=str)  # fmt: skip
def test_panels_are_packed_while_others_are_multiplied(sizes, across, entries):
    text = product(*sizes, f"{AHEAD}, {entries}", across=across)
    got, (a, b) = native(text)
    b = b.t() if across else b
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, inner, columns, ahead", [
    (256, 3072, 768, 8), (788, 3072, 768, 8), (100, 3072, 768, 0), (140, 3074, 768, 4),
    (256, 4096, 4096, 8), (256, 3072, 40, 0), (65, 3072, 768, 0), (256, 1030, 768, 8),
    (256, 768, 768, 0),
])  # fmt: skip
def test_rows_with_enough_tiles_pack_the_next_panel(rows, inner, columns, ahead):
    module = irc.parse(product(rows, inner, columns, "tile_rows = 9 : i64, tile_vectors = 3 : i64",
                               across=["right"]))  # fmt: skip
    PassManager.parse("schedule{vector_bits=512}").run(module)
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    assert compute.schedule.entries.get("pack_ahead").value == ahead
    PassManager.parse("form-kernels", verify="each").run(module)


@pytest.mark.parametrize("rows, tile_rows, ahead", [(65, 4, 4), (128, 6, 4), (17, 6, 0)])
def test_tiles_have_fewer_rows_where_panels_are_packed_by_them(rows, tile_rows, ahead):
    """Larger ones, which take as long, would be too few."""
    module = irc.parse(product(rows, 3072, 768, "tile_vectors = 4 : i64, products = \"lanes\"",
                               across=["right"]))  # fmt: skip
    carry(module, Target.named("avx512"))
    PassManager.parse("schedule").run(module)
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    entries = compute.schedule.entries
    assert [entries.get(k).value for k in ("tile_rows", "pack_ahead")] == [tile_rows, ahead]
    PassManager.parse("form-kernels", verify="each").run(module)


@pytest.mark.parametrize("threads", [1, 3, 8, 16, 48])
@pytest.mark.parametrize("rows, columns", [(196, 512), (147, 400), (343, 96)])
def test_panels_are_packed_ahead_by_points_that_have_tiles_enough(rows, columns, threads):
    """Those of the tiles that are chosen at last: tiles of fewer rows have other points."""
    text = product(rows, 2048, columns, "products = \"lanes\"", across=["right"])
    module = irc.parse(text)
    carry(module, attrs.evolve(Target.named("avx512"), threads=threads))
    PassManager.parse("schedule,form-kernels", verify="each").run(module)


@pytest.mark.parametrize("entries, message", [
    ("pack_ahead = 2 : i64, pack_right = false, products = \"lanes\"", "it is for packed panels"),
    ("pack_ahead = 2 : i64, inner = \"columns\"", "it is for packed panels"),
    ("pack_ahead = 2 : i64, block_rows = 8 : i64", "it is for packed panels"),
    ("pack_ahead = 16 : i64, lanes = 8 : i64", "elements are no multiple"),
    ("pack_ahead = 8 : i64, lanes = 8 : i64", "its rows have too few tiles"),
    ("pack_ahead = 2 : i64, lanes = 64 : i64", "there is no whole panel"),
])  # fmt: skip
def test_what_can_t_be_packed_ahead_is_refused(entries, message):
    with pytest.raises(irc.InvalidIR, match=message):
        formed(product(32, 64, 96, f"{TILES}, {entries}"))


def test_the_number_of_threads_changes_no_bit():
    entries = ("tile_rows = 6 : i64, point_rows = 24 : i64, point_columns = 96 : i64, "
               "block_depth = 64 : i64, pack_left = true, pack_right = true")  # fmt: skip
    module = formed(product(200, 150, 300, entries))
    given = arguments(module)
    PassManager.parse("bufferize,plan-memory").run(module)
    run_, before, results = irc.build(module), torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(run_(*given)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_rows_of_a_view_are_one_axis():
    """Divisions that a contiguous array makes needless force nothing to be packed."""
    text = product(32, 20, 40, "tile_rows = 4 : i64").replace(
        matrix((32, 20)), matrix((4, 8, 20)), 1
    ).replace("%a[m, k]", "%a[floordiv(m, 8), mod(m, 8), k]")  # fmt: skip
    module = irc.parse(text)
    PassManager.parse("schedule").run(module)
    assert "pack_left = false" in irc.print_op(module)
    got, (a, b) = native(text)
    wanted = a.reshape(32, 20).double() @ b.double()
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("element", ["f64", "i32"])
def test_other_elements(element):
    """Both have tiles, as their schedules ask."""
    text = product(9, 20, 21, "tile_rows = 4 : i64").replace("f32", element)
    if element == "i32":
        module = formed(text.replace("mulf", "muli"))
        PassManager.parse("bufferize,plan-memory", verify="each").run(module)
        a, b = (torch.randint(-9, 9, s, dtype=torch.int32) for s in ((9, 20), (20, 21)))
        assert torch.equal(irc.build(module)(a, b)[0], (a.long() @ b.long()).int())
        return
    got, (a, b) = native(text)
    torch.testing.assert_close(got, a @ b)


@pytest.mark.parametrize("rows, terms, each", [
    (6, 2, 2), (12, 2, 1), (31, 2, 1), (13, 2, 1), (31, 8, 4), (31, 1, 1), (54, 4, 1),
])  # fmt: skip
def test_few_tiles_of_rows_fetch_more_of_the_next_panel(rows, terms, each):
    """Of two lines for each term: with each, or with each turn of the innermost loop where that is
    less. All tiles together fetch each line of all panels behind the first."""
    entries = (f"tile_rows = 6 : i64, tile_vectors = 2 : i64, lanes = 16 : i64, terms = {terms} : "
               "i64, inner = \"rows\"")  # fmt: skip
    text = PANELS.format(a=matrix((rows, 72)), w=matrix((3, 72, 32)), y=matrix((rows, 96)), n=96,
                         entries=entries)  # fmt: skip
    text = text.replace(", 16)", ", 32)").replace("m: 30", f"m: {rows}").replace("k: 70", "k: 72")
    module = formed(text)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelFuncOp))
    pointers = [op.pointer for op in kernel.walk() if isinstance(op, PrefetchOp)]
    assert pointers == [kernel.block.arguments[1]] * each


@pytest.mark.parametrize("rows, terms", [(6, 2), (12, 4), (31, 8), (31, 2), (80, 4), (80, 24)])
def test_tiles_of_rows_fetch_all_of_the_next_panel(rows, terms, monkeypatch):
    entries = (f"tile_rows = 6 : i64, tile_vectors = 2 : i64, lanes = 16 : i64, terms = {terms} : "
               "i64, inner = \"rows\", pack_left = false, rows_ahead = 0 : i64")  # fmt: skip
    text = PANELS.format(a=matrix((rows, 72)), w=matrix((3, 72, 32)), y=matrix((rows, 96)), n=96,
                         entries=entries)  # fmt: skip
    text = text.replace(", 16)", ", 32)").replace("m: 30", f"m: {rows}").replace("k: 70", "k: 72")
    lines = set()

    def fetched(frame, op):
        lines.add(int(frame[op.offset]) // 16)

    monkeypatch.setitem(interp._handlers, PrefetchOp, fetched)
    module = formed(text)
    run(module, *arguments(module))
    of_panel = 72 * 32 // 16
    assert set(range(of_panel, 3 * of_panel)) <= lines


@pytest.mark.parametrize("columns, entries, cleared", [
    (19, "pack_right = true", 1), (32, "pack_right = true", 0), (24, "pack_right = true", 0),
    (19, "pack_right = true, block_depth = 16 : i64", 1),
    (37, "pack_right = true, pack_ahead = 4 : i64, block_depth = 24 : i64", 1),
    (19, "pack_right = false", 0),
])  # fmt: skip
def test_lanes_behind_the_last_column_are_zeros(columns, entries, cleared):
    """They are multiplied, and numbers below the normal ones, which memory may hold, take an Intel
    processor some hundred cycles each."""
    tiles = "tile_rows = 2 : i64, tile_vectors = 2 : i64, lanes = 8 : i64"
    text = product(40, 48, columns, f"{tiles}, {entries}")
    module = formed(text)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelFuncOp))
    stored = [op for op in kernel.walk() if isinstance(op, StoreOp)
              and isinstance(op.stored.defining_op, arith.ConstantOp)]  # fmt: skip
    assert min(len(stored), 1) == cleared
    got, (a, b) = native(text)
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
