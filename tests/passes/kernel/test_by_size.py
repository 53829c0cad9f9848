"""Operations that run for a range of a size alone, and the choice among what they make."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import host, loop, math, sym  # noqa: E402
from irc.dialects.sym.ranges import WHEN, RangeAttr, covers, gap_in  # noqa: E402
from irc.interp import core as interp  # noqa: E402
from irc.ir.diagnostics import InvalidIR  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.ir.symbols import symbol  # noqa: E402
from irc.ir.verifier import verify  # noqa: E402
from irc.program.host_program import from_json, to_json  # noqa: E402
from irc.program.read_host import read_host_program  # noqa: E402
from irc.runtime.python_host import PythonHost  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.target.attribute import carry  # noqa: E402

REST = "form-kernels,join-launches,bufferize,plan-memory"
SIZES = (0, 1, 2, 3, 15, 16, 17, 255, 256, 1000)

ARMS = """
func.func @main(%x: T) -> T attributes {level = "loop"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (T) -> index
  %a = loop.compute par(i: s0, j: 8) -> map attributes {when = #sym.range<s0, 0, 15>} {
    %v = loop.read %x[i, j] : f32
    %w = arith.addf %v, %v : f32
    loop.yield %w
  } : T
  %b = loop.compute par(i: s0, j: 8) -> map attributes {when = #sym.range<s0, 16>} {
    %v = loop.read %x[i, j] : f32
    %w = arith.mulf %v, %v : f32
    loop.yield %w
  } : T
  %y = sym.choose %a, %b : (T, T) -> T
  func.return %y : T
}""".replace("T", "tensor<[s0, 8] x f32, strides [8, 1]>")
TENSOR = "tensor<[s0, 8] x f32, strides [8, 1]>"


def product(rows="m: s0", inner=96, columns=64, depth="k", bind=""):
    """A product with a bias whose rows are of some axes; the weight lies as a linear layer has it.
    """
    axes = [part.split(": ") for part in rows.split(", ")]
    sizes = [size for _, size in axes]
    place = ", ".join(name for name, _ in axes)

    def row_major(shape):
        steps, step = [], "1"
        for size in reversed(shape):
            steps.insert(0, step)
            step = f"{size}*{step}" if step != "1" else str(size)
        return f"tensor<[{', '.join(map(str, shape))}] x f32, strides [{', '.join(steps)}]>"

    x, y = row_major([*sizes, inner]), row_major([*sizes, columns])
    w, b = row_major([columns, inner]), row_major([columns])
    binds = "".join(
        f'  %n{k} = sym.bind_size %x {{dim = {k} : i64, symbol = "{size}"}} : ({x}) -> index\n'
        for k, size in enumerate(sizes)
    )
    return f"""
func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} attributes {{level = "loop"}} {{
{binds}  %y = loop.group ({rows}, n: {columns}) {{
    %sum = loop.compute par({rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32) {{
      %p = loop.read %x[{place}, k] : f32
      %q = loop.read %w[n, k] : f32
      %v = arith.mulf %p, %q : f32
      loop.yield %v
    }} : {y}
    %r = loop.compute par({rows}, n: {columns}) -> map {{
      %s = loop.read %sum[{place}, n] : f32
      %c = loop.read %b[n] : f32
      %t = arith.addf %s, %c : f32
      loop.yield %t
    }} : {y}
    loop.yield %r : {y}
  }} : {y}
  func.return %y : {y}
}}"""


def scheduled(text, target="host"):
    module = irc.parse(text)
    carry(module, Target.named(target))
    PassManager.parse("schedule", verify="each").run(module)
    return module


def variants_of(module):
    (op,) = (o for o in module.lookup("main").block.ops if isinstance(o, loop.GroupOp))
    return op.attributes["schedule"].entries.get("variants")


def test_arms_run_in_their_ranges_at_each_level_and_when_built():
    module = irc.parse(ARMS)
    text = irc.print_op(module)
    assert irc.print_op(irc.parse(text)) == text

    def expected(x):
        return x + x if len(x) < 16 else x * x

    inputs = [torch.randn(size, 8) for size in SIZES]
    for x in inputs:
        assert torch.equal(irc.run(module, x)[0], expected(x))
    PassManager.parse(f"schedule,{REST}", verify="each").run(module)
    program = irc.build(module)
    text = irc.print_op(module)
    assert irc.print_op(irc.parse(text)) == text
    for x in inputs:
        assert torch.equal(irc.run(module, x)[0], expected(x))
        assert torch.equal(program(x)[0], expected(x))
    data = read_host_program(module, "main")
    assert from_json(to_json(data)) == data


class Launched:
    """Kernels that are only counted."""

    def __init__(self):
        self.names = []

    def launch(self, name, tensors, symbols, grid):
        self.names.append(name)


def test_the_python_host_launches_what_a_size_is_for():
    module = irc.parse(ARMS)
    PassManager.parse(f"schedule,{REST}").run(module)
    kernels = Launched()
    run = PythonHost(read_host_program(module), kernels, {})
    for size in (15, 16):
        run({}, [torch.randn(size, 8)])
    assert kernels.names == ["k0", "k1"]


def test_edited_boundaries_change_what_runs():
    text = ARMS.replace("s0, 0, 15>", "s0, 0, 254>").replace("s0, 16>", "s0, 255>")
    module = irc.parse(text)
    PassManager.parse(f"schedule,{REST}").run(module)
    program = irc.build(module)
    for size in (16, 254, 255):
        x = torch.randn(size, 8)
        assert torch.equal(program(x)[0], x + x if size < 255 else x * x)


def test_arms_share_one_memory_and_a_value_of_two_choices_is_copied():
    text = ARMS.replace("func.return %y :", """%z = sym.choose %a, %b : (T, T) -> T
  func.return %y, %z :""".replace("T", "tensor<[s0, 8] x f32, strides [8, 1]>"))
    tensor = "tensor<[s0, 8] x f32, strides [8, 1]>"
    text = text.replace(f"-> {tensor} attributes {{l", f"-> ({tensor}, {tensor}) attributes {{l")
    text = re.sub(r"(func.return %y, %z : )(.*)", rf"\1{tensor}, {tensor}", text)
    module = irc.parse(text)
    PassManager.parse(f"schedule,{REST}", verify="each").run(module)
    copies = [op for op in module.walk() if isinstance(op, host.HostCopyOp)]
    assert len(copies) == 4 and all(WHEN in op.attributes for op in copies)
    program = irc.build(module)
    for size in (3, 16):
        x = torch.randn(size, 8)
        first, second = program(x)
        assert torch.equal(first, second) and first.data_ptr() != second.data_ptr()
    module = irc.parse(ARMS)
    PassManager.parse(f"schedule,{REST}").run(module)
    assert sum(isinstance(op, host.AllocOp) for op in module.walk()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("s0, 16>", "s0, 17>", "begins at 17, the next at 16"),
     ("s0, 16>", "s0, 16, 99>", "no range has sizes from 100 on"),
     ("s0, 16>", "s0 * 2, 16>", "of two sizes"),
     (" attributes {when = #sym.range<s0, 16>}", "", "has no 'when'"),
     ("func.return %y", "func.return %a", "reads its results for others")],
)  # fmt: skip
def test_ranges_that_leave_sizes_out_are_refused(old, new, message):
    assert old in ARMS
    with pytest.raises(InvalidIR, match=re.escape(message)):
        verify(irc.parse(ARMS.replace(old, new)))


@pytest.mark.parametrize(
    ("when", "message"),
    [("#sym.range<s0, 0, 15>", "'layout.copy': has when"), ("true", "is no #sym.range")],
)
def test_only_what_can_be_left_out_has_a_range(when, message):
    old = f"%y = sym.choose %a, %b : ({TENSOR}, {TENSOR}) -> {TENSOR}"
    assert old in ARMS
    text = ARMS.replace(old, f"%y = layout.copy %x {{when = {when}}} : ({TENSOR}) -> {TENSOR}")
    text = re.sub(r" attributes \{when = [^}]*\}", "", text)
    with pytest.raises(InvalidIR, match=re.escape(message)):
        verify(irc.parse(text))


ROW = "tensor<[s0] x f32, strides [1]>"


def reduced(name, combiner, when):
    """Rows of %x, combined, in a range of sizes."""
    own = f" attributes {{when = #sym.range<{when}>}}" if when else ""
    return f"""
  %{name} = loop.compute par(i0: s0) red(i1: 512) -> reduce({combiner}, f32){own} {{
    %v = loop.read %x[i0, i1] : f32
    loop.yield %v
  }} : {ROW}"""


def centered(name, rows, when):
    """%x without what rows have, in a range of sizes."""
    return f"""
  %{name} = loop.compute par(i0: s0, i1: 512) -> map attributes {{when = #sym.range<{when}>}} {{
    %v = loop.read %x[i0, i1] : f32
    %r = loop.read %{rows}[i0] : f32
    %w = arith.subf %v, %r : f32
    loop.yield %w
  }} : W"""


FEW, MANY = "s0, 0, 15", "s0, 16"
CHAINS = f"""
func.func @main(%x: W) -> (W, {ROW}) attributes {{level = "loop"}} {{
  %n = sym.bind_size %x {{dim = 0 : i64, symbol = "s0", hint = 4096 : i64}} : (W) -> index
{reduced("a", "sum", FEW)}{reduced("b", "max", MANY)}{reduced("c", "min", "")}
{centered("d", "a", FEW)}{centered("e", "b", MANY)}
  %y = sym.choose %d, %e : (W, W) -> W
  func.return %y, %c : W, {ROW}
}}""".replace("W", "tensor<[s0, 512] x f32, strides [512, 1]>")


@pytest.mark.parametrize(
    "passes",
    ["merge-computes", "group-computes", "split-reductions{parts=4 max_results=100000}",
     "inline-computes,merge-computes,group-computes,localize,split-reductions"],
)  # fmt: skip
def test_what_runs_for_one_range_is_fused_with_nothing_of_another(passes):
    """And what stands for a part of it runs where it did."""
    module, exact = irc.parse(CHAINS), irc.parse(CHAINS)
    PassManager.parse(passes, verify="each").run(module)
    block = module.lookup("main").block
    ranges = {str(op.attributes.get(WHEN)) for op in block.ops
              if isinstance(op, loop.ComputeOp | loop.GroupOp)}  # fmt: skip
    assert ranges == {f"#sym.range<{FEW}>", f"#sym.range<{MANY}>", "None"}
    if "group" in passes:
        assert sum(isinstance(op, loop.GroupOp) and WHEN in op.attributes for op in block.ops) == 2
    PassManager.parse(f"schedule,{REST}", verify="each").run(module)
    program = irc.build(module)
    for size in (1, 15, 16, 40):
        x = torch.randn(size, 512)
        for result, value in zip(program(x), irc.run(exact, x), strict=True):
            torch.testing.assert_close(result, value)


def test_a_member_has_no_range_of_its_own():
    module = irc.parse(CHAINS)
    PassManager.parse("group-computes").run(module)
    old = "-> reduce(sum, f32)"
    text = irc.print_op(module).replace(old, f"{old} attributes {{when = #sym.range<{FEW}>}}")
    with pytest.raises(InvalidIR, match="a member runs where its group does"):
        verify(irc.parse(text))


def test_launches_join_within_one_range_only():
    few, many = reduced("a", "sum", FEW) + reduced("c", "min", FEW), reduced("b", "max", MANY)
    text = f"""
func.func @main(%x: W) -> ({ROW}, {ROW}) attributes {{level = "loop"}} {{
  %n = sym.bind_size %x {{dim = 0 : i64, symbol = "s0", hint = 64 : i64}} : (W) -> index
{few}{many}{reduced("d", "min", MANY)}
  %y = sym.choose %a, %b : ({ROW}, {ROW}) -> {ROW}
  %z = sym.choose %c, %d : ({ROW}, {ROW}) -> {ROW}
  func.return %y, %z : {ROW}, {ROW}
}}""".replace("W", "tensor<[s0, 512] x f32, strides [512, 1]>")
    module = irc.parse(text)
    PassManager.parse("schedule,form-kernels,join-launches", verify="each").run(module)
    launches = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    ranges = [str(op.attributes[WHEN]) for op in launches]
    assert sorted(ranges) == [f"#sym.range<{FEW}>", f"#sym.range<{MANY}>"]
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    program = irc.build(module)
    for size in (3, 16):
        x = torch.randn(size, 512)
        first, second = program(x)
        torch.testing.assert_close(first, x.sum(1) if size < 16 else x.max(1).values)
        torch.testing.assert_close(second, x.min(1).values)


def test_memory_that_is_written_for_some_sizes_is_not_read_for_others():
    module = irc.parse(ARMS)
    PassManager.parse(f"schedule,{REST}").run(module)
    text = irc.print_op(module)
    verify(irc.parse(text))
    with pytest.raises(InvalidIR, match="which nothing has written before for all"):
        verify(irc.parse(text.replace("#sym.range<s0, 16>", "#sym.range<s0, 17>")))


def test_a_range_is_at_least_one_size():
    s0 = symbol("s0")
    for least, most in ((-1, 3), (4, 3)):
        with pytest.raises(ValueError, match="no size is from"):
            RangeAttr(s0, least, most)
    few, some, many = RangeAttr(s0, 0, 3), RangeAttr(s0, 4, 9), RangeAttr(s0, 10, None)
    assert gap_in([few, some, many]) == "" and gap_in([few, many])
    assert covers([many, few, some], None) and not covers([many, few], None)
    assert covers([some, few], RangeAttr(s0, 2, 9))
    assert not covers([some, few], RangeAttr(s0, 2, 10))


@pytest.mark.parametrize("target", ["host", "avx2"])
def test_a_product_has_schedules_for_few_some_and_many_rows(target):
    module = scheduled(product(inner=768, columns=256), target)
    variants = variants_of(module)
    forms = [each.get("members")[0].get("products").value for each in variants]
    assert forms[0] == "depth"  # few rows read the weight as it lies
    text = irc.print_op(module)
    assert irc.print_op(irc.parse(text)) == text
    PassManager.parse(REST, verify="each").run(module)
    launches = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    assert len(launches) == len(variants) + 1
    assert sum(isinstance(op, sym.ChooseOp) for op in module.walk()) == 0


def test_a_product_is_right_at_each_size():
    module = scheduled(product(inner=96, columns=80))
    PassManager.parse(REST, verify="each").run(module)
    program = irc.build(module)
    w, b = torch.randn(80, 96), torch.randn(80)
    for size in SIZES:
        x = torch.randn(size, 96)
        exact = x.double() @ w.double().t() + b.double()
        torch.testing.assert_close(program(x, w, b)[0].double(), exact, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(irc.run(module, x, w, b)[0], program(x, w, b)[0])


FORMS = {
    "along the depth": 'products = "depth"',
    "in lanes": 'products = "lanes", tile_rows = 5 : i64, tile_vectors = 2 : i64',
    "large tiles": 'products = "lanes", tile_rows = 14 : i64, tile_vectors = 1 : i64',
    "in parts": 'products = "lanes", tile_rows = 6 : i64, block_depth = 48 : i64',
    "columns first": 'products = "lanes", tile_rows = 3 : i64, inner = "columns"',
}


@pytest.mark.parametrize("entries", FORMS.values(), ids=FORMS)
def test_what_is_left_behind_whole_tiles_has_tiles_of_its_own(entries):
    text = product(inner=96, columns=80)
    old = "-> reduce(sum, f32) {"
    assert old in text
    schedule = f"-> reduce(sum, f32) schedule #loop.schedule<cpu, {entries}> {{"
    module = scheduled(text.replace(old, schedule))
    assert variants_of(module) is None or "depth" in entries
    PassManager.parse(REST, verify="each").run(module)
    program = irc.build(module)
    w, b = torch.randn(80, 96), torch.randn(80)
    for size in range(40):
        x = torch.randn(size, 96)
        exact = x.double() @ w.double().t() + b.double()
        torch.testing.assert_close(program(x, w, b)[0].double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("entries", list(FORMS.values())[:3], ids=list(FORMS)[:3])
def test_no_row_is_multiplied_twice(entries, monkeypatch):
    """Counted by the interpreter, of kernels for AVX-512."""
    multiplied = []
    meaning = interp._handlers[math.FmaOp]

    def counting(frame, op):
        result = meaning(frame, op)
        multiplied.append(result.numel())
        return result

    text = product(inner=32, columns=32)
    schedule = f"-> reduce(sum, f32) schedule #loop.schedule<cpu, {entries}> {{"
    module = scheduled(text.replace("-> reduce(sum, f32) {", schedule), "avx512")
    PassManager.parse(REST).run(module)
    monkeypatch.setitem(interp._handlers, math.FmaOp, counting)
    w, b = torch.randn(32, 32), torch.randn(32)
    for size in (1, 2, 3, 5, 7, 11, 13, 16):
        multiplied.clear()
        irc.run(module, torch.randn(size, 32), w, b)
        assert sum(multiplied) == size * 32 * 32


def test_rows_of_a_batch_and_a_length_are_one_size():
    module = scheduled(product("m: s0, l: s1", 96, 80))
    assert str(variants_of(module)[0].get("size")) in ("#sym<s0*s1>", "#sym<s1*s0>")
    PassManager.parse(REST, verify="each").run(module)
    program = irc.build(module)
    w, b = torch.randn(80, 96), torch.randn(80)
    for batch, length in ((1, 1), (3, 5), (2, 8), (0, 7), (17, 60)):
        x = torch.randn(batch, length, 96)
        exact = x.double() @ w.double().t() + b.double()
        torch.testing.assert_close(program(x, w, b)[0].double(), exact, rtol=1e-4, atol=1e-4)


def test_panels_are_packed_ahead_only_where_there_are_rows_enough():
    """By two of a rung's schedules where the least size of its range allows another time."""
    module = scheduled(product(inner=3072, columns=768), "avx512")
    (op,) = (o for o in module.lookup("main").block.ops if isinstance(o, loop.GroupOp))
    ends = [each.get("most").value for each in variants_of(module)]
    parts = [each.get("members")[0] for each in variants_of(module)]
    parts.append(op.regions[0].blocks[0].first.attributes["schedule"].entries)
    ahead = [part.get("pack_ahead").value for part in parts]
    assert ahead[0] == 0 < ahead[-2] < ahead[-1]
    text = irc.print_op(module)
    PassManager.parse(REST, verify="each").run(irc.parse(text))
    edited = text.replace(f"most = {ends[-1]} : i64", f"most = {ends[-2] + 1} : i64")
    with pytest.raises(InvalidIR, match="its rows have too few tiles"):
        PassManager.parse(REST).run(irc.parse(edited))


def test_one_compile_serves_all_rows_and_multiplies_by_itself():
    layer = torch.nn.Linear(96, 80)
    calls = []

    def counting(module, inputs):
        calls.append(module)
        return torch._dynamo.lookup_backend("irc")(module, inputs)

    torch._dynamo.reset()
    compiled = torch.compile(layer, backend=counting, dynamic=True)
    with torch.no_grad():
        for size in (100, *SIZES[2:]):
            x = torch.randn(size, 96)
            exact = x.double() @ layer.weight.double().t() + layer.bias.double()
            torch.testing.assert_close(compiled(x).double(), exact, rtol=1e-4, atol=1e-4)
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_columns_and_terms_of_one_symbol(dtype):
    """What is packed has parts of the depth that are known, and registers of whole tiles multiply
    nothing of which the terms aren't."""
    torch._dynamo.reset()
    product = torch.compile(
        torch.matmul, backend="irc", dynamic=True,
        options={"max_autotune_gemm": True, "max_autotune_gemm_backends": "CPP",
                 "max_autotune_budget": 0},
    )  # fmt: skip
    irc.metrics.reset()
    torch.manual_seed(0)
    for size in (100, 2, 17, 64, 300):
        x, w = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
        wanted = x.double() @ w.double()
        error = (x @ w - wanted).abs().max()
        assert (product(x, w) - wanted).abs().max() <= 4 * error + 1e-6
    assert irc.metrics.aten_calls == 0


@pytest.mark.parametrize("reduced", [torch.nn.Conv2d(8, 8, 7, 2), torch.nn.MaxPool2d(9, 3)])
def test_pixels_of_an_image_that_few_sizes_leave_nothing_of(reduced):
    """A schedule is looked for an image of 4 rows, too, of which a window of 7 leaves -1."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(reduced, torch.nn.Conv2d(8, 8, 1))
    compiled = torch.compile(model, backend="irc", dynamic=True)
    with torch.no_grad():
        for size in (32, 45, 9):
            x = torch.randn(2, 8, size, size)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
