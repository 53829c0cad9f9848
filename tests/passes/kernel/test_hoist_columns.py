"""What differs by column only is computed once a kernel, and nothing else is."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch.nn import functional as F

import irc
from irc.dialects import kernel
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import bf16, f32, f64
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import FORMING, Program, compare, random_input, read, tensor


def scaled(rows, columns, element=f32):
    """x / sqrt(v) + exp(w): `v` and `w` have an element for each column."""
    kinds = [tensor(rows, columns, e=element), *[tensor(columns, e=element)] * 2]
    program = Program(*kinds)
    x, v, w = program.args

    def body(b):
        def wide(value):
            return value if element is not bf16 else b.op("arith.extf", value, type=f32)

        root = b.op("math.rsqrt", b.op("math.absf", wide(read(b, v, axis(1)))))
        shift = b.op("math.exp", wide(read(b, w, axis(1))))
        made = b.op("arith.addf", b.op("arith.mulf", wide(read(b, x)), root), shift)
        return made if element is not bf16 else b.op("arith.truncf", made, type=bf16)

    y = program.compute([rows, columns], body, types=[kinds[0]])
    inputs = [random_input(kind, {}, seed) for seed, kind in enumerate(kinds)]
    return program.finish(y), inputs


def hoisted(module, options="", verify="each"):
    """Run the passes up to it on a loop program; gives the context."""
    text = f"{FORMING % 512},hoist-columns{options}"
    context = PassContext()
    PassManager.parse(text, verify=verify).run(module, context)
    return context


def loops_of(module):
    """The costly operations of the module's kernels by the number of loops around them."""
    found = {}
    for op in module.walk():
        if op.name in ("math.rsqrt", "math.exp"):
            depth, outer = 0, op.parent_op
            while outer is not None:
                depth += isinstance(outer, kernel.ForOp)
                outer = outer.parent_op
            found.setdefault(op.name, []).append(depth)
    return found


@pytest.mark.parametrize("element", [f32, f64, bf16], ids=str)
@pytest.mark.parametrize("columns", [1, 7, 16, 30, 64, 100, 144, 1001])
def test_values_are_the_same_bits(columns, element):
    plain, inputs = scaled(9, columns, element)
    PassManager.parse(f"{FORMING % 512},bufferize,plan-memory").run(plain)
    module, _ = scaled(9, columns, element)
    context = hoisted(module)
    if columns > 1:
        assert context.statistics["hoist-columns", "hoisted"] > 0
    compare(run(module, *inputs, mode="real"), run(scaled(9, columns, element)[0], *inputs,
            mode="real"), 1e-9)  # fmt: skip
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    got, wanted = irc.build(module)(*inputs), irc.build(plain)(*inputs)
    assert torch.equal(*[y[0] if isinstance(y, tuple) else y for y in (got, wanted)])


def test_costly_operations_leave_the_loop_over_rows():
    module, _ = scaled(9, 144)
    PassManager.parse(FORMING % 512).run(module)
    assert set(loops_of(module)["math.rsqrt"]) == {2}
    PassManager.parse("hoist-columns").run(module)
    assert set(loops_of(module)["math.rsqrt"]) == {1}
    assert set(loops_of(module)["math.exp"]) == {1}


def test_no_rows_read_nothing():
    module, _ = scaled(9, 144)
    hoisted(module)
    PassManager.parse("bufferize,plan-memory").run(module)
    executable = irc.build(module)
    address = executable._run_python.kernels.address("k0")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)(address)
    call(None, None, None, None, 5, 5)


def test_few_rows_and_little_room_keep_the_program():
    few, _ = scaled(3, 144)
    assert not hoisted(few).statistics["hoist-columns", "hoisted"]
    wide, _ = scaled(9, 144)
    context = hoisted(wide, "{max_bytes=1000}")
    assert not context.statistics["hoist-columns", "hoisted"]
    assert any("1152 bytes" in remark.message for remark in context.remarks)


def test_memory_that_the_kernel_may_write_is_read_in_each_row():
    text = """
    kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index)
        attributes {PAIRS outputs = array<i64: 1>, symbols = [], target = "cpu"} {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %16 = arith.constant 16 : index
      %32 = arith.constant 32 : index
      kernel.for %row = %begin to %end step %1 {
        kernel.for %c = %0 to %32 step %16 {
          %v = kernel.load %x[%c] : vector<16xf32>
          %r = math.exp %v : vector<16xf32>
          %s = arith.muli %row, %32 : index
          %p = arith.addi %s, %c : index
          kernel.store %r, %y[%p] : vector<16xf32>
          kernel.yield }
        kernel.yield }
      kernel.return }"""
    for pairs, expected in (("", 1), ("inplace = array<i64: 0, 1>,", 2)):
        module = irc.parse(text.replace("PAIRS", pairs))
        PassManager.parse("hoist-columns", verify="each").run(module)
        assert loops_of(module)["math.exp"] == [expected]


def test_several_vectors_a_step_have_places_of_their_own():
    text = """
    kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index)
        attributes {outputs = array<i64: 1>, symbols = [], target = "cpu", grid = #sym<8>} {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %8 = arith.constant 8 : index
      %16 = arith.constant 16 : index
      %48 = arith.constant 48 : index
      kernel.for %row = %begin to %end step %1 {
        kernel.for %c = %16 to %48 step %16 {
          %s = arith.muli %row, %48 : index
          %d = arith.addi %c, %8 : index
          %v = kernel.load %x[%c] : vector<8xf32>
          %w = kernel.load %x[%d] : vector<8xf32>
          %e = math.exp %v : vector<8xf32>
          %f = math.exp %w : vector<8xf32>
          %g = math.sin %v : vector<8xf32>
          %h = arith.addf %e, %g : vector<8xf32>
          %p = arith.addi %s, %c : index
          %q = arith.addi %s, %d : index
          %m = kernel.load %x[%p] : vector<8xf32>
          %n = arith.addf %m, %h : vector<8xf32>
          %o = arith.addf %m, %g : vector<8xf32>
          %t = arith.addf %n, %o : vector<8xf32>
          kernel.store %t, %y[%p] : vector<8xf32>
          %u = arith.addf %m, %f : vector<8xf32>
          kernel.store %u, %y[%q] : vector<8xf32>
          kernel.yield }
        kernel.yield }
      kernel.return }
    func.func @main(%x: tensor<[384] x f32, strides [1]>) -> tensor<[384] x f32, strides [1]>
        attributes {level = "loop"} {
      %y = host.launch %x {callee = @k0} : (tensor<[384] x f32, strides [1]>)
        -> tensor<[384] x f32, strides [1]>
      return %y : tensor<[384] x f32, strides [1]> }"""
    before, after = irc.parse(text), irc.parse(text)
    context = PassContext()
    PassManager.parse("hoist-columns", verify="each").run(after, context)
    assert context.statistics["hoist-columns", "hoisted"] == 3
    counts = [op.count for op in after.walk() if isinstance(op, kernel.ScratchOp)]
    assert counts == [32, 32]
    x = torch.randn(384, generator=torch.Generator().manual_seed(0))
    (wanted,), (got,) = run(before, x), run(after, x)
    written = torch.arange(384).view(8, 48)[:, 16:].flatten()
    assert torch.equal(got[written], wanted[written])


def test_a_vector_for_each_single_column():
    text = """
    kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index)
        attributes {outputs = array<i64: 1>, symbols = [], target = "cpu", grid = #sym<8>} {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %4 = arith.constant 4 : index
      %8 = arith.constant 8 : index
      %w = kernel.load %x[%0] : vector<8xf32>
      kernel.for %row = %begin to %end step %1 {
        kernel.for %c = %1 to %4 step %1 {
          %s = kernel.load %x[%c] : f32
          %v = kernel.splat %s : (f32) -> vector<8xf32>
          %a = arith.mulf %v, %w : vector<8xf32>
          %e = math.exp %a : vector<8xf32>
          %r = arith.muli %row, %4 : index
          %p = arith.addi %r, %c : index
          %q = arith.muli %p, %8 : index
          kernel.store %e, %y[%q] : vector<8xf32>
          kernel.yield }
        kernel.yield }
      kernel.return }
    func.func @main(%x: tensor<[8] x f32, strides [1]>) -> tensor<[256] x f32, strides [1]>
        attributes {level = "loop"} {
      %y = host.launch %x {callee = @k0} : (tensor<[8] x f32, strides [1]>)
        -> tensor<[256] x f32, strides [1]>
      return %y : tensor<[256] x f32, strides [1]> }"""
    module = irc.parse(text)
    PassManager.parse("hoist-columns", verify="each").run(module)
    assert [op.count for op in module.walk() if isinstance(op, kernel.ScratchOp)] == [24]
    x = torch.randn(8, generator=torch.Generator().manual_seed(0))
    (got,) = run(module, x)
    wanted = (x[1:4, None] * x).exp().expand(8, 3, 8)
    torch.testing.assert_close(got.view(8, 4, 8)[:, 1:], wanted)


@pytest.mark.parametrize("channels", [3, 24, 144])
@pytest.mark.parametrize("padded", [False, True])
def test_a_batch_norm_of_channels_last_images_as_eager_has_it(channels, padded):
    def norm(x, mean, variance, weight, bias):
        y = F.relu6(F.batch_norm(x, mean, variance, weight, bias, False, 0.1, 1e-3))
        return F.pad(y, (0, 1, 1, 0)) if padded else y

    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, channels, 5, 6, generator=generator)
    x = x.contiguous(memory_format=torch.channels_last)
    x[0, 1, 2] = float("nan")
    of = [torch.rand(channels, generator=generator) + 0.5 for _ in range(4)]
    of[1][0] = 0.0
    with torch.no_grad():
        got = torch.compile(norm, backend="irc")(x, *of)
    torch.testing.assert_close(got, norm(x, *of), equal_nan=True)
