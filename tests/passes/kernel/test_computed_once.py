"""What a group computes once: in the kernels of each target, and in values."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch.nn import functional as F

import irc
from irc.dialects import kernel, loop
from irc.interp.core import run
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import bf16, f32, f64
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import FORMING, Program, compare, random_input, read, tensor
from tests.passes.loop.texts import parsed

FUSING = "inline-computes,group-computes,localize,"


def scaled(rows, columns, element=f32):
    """x / sqrt(v) + exp(w): `v` and `w` have an element for each column."""
    wide = element if element is not bf16 else f32
    kinds = [tensor(rows, columns, e=element), *[tensor(columns, e=element)] * 2]
    program = Program(*kinds)
    x, v, w = program.args

    def widened(b, value):
        return value if element is not bf16 else b.op("arith.extf", value, type=f32)

    columns_type = tensor(columns, e=wide)
    root = program.compute([columns], lambda b: b.op(
        "math.rsqrt", b.op("math.absf", widened(b, read(b, v)))), types=[columns_type])  # fmt: skip
    shift = program.compute(
        [columns], lambda b: b.op("math.exp", widened(b, read(b, w))), types=[columns_type]
    )

    def body(b):
        product = b.op("arith.mulf", widened(b, read(b, x)), read(b, root, axis(1)))
        made = b.op("arith.addf", product, read(b, shift, axis(1)))
        return made if element is not bf16 else b.op("arith.truncf", made, type=bf16)

    y = program.compute([rows, columns], body, types=[kinds[0]])
    inputs = [random_input(kind, {}, seed) for seed, kind in enumerate(kinds)]
    return program.finish(y), inputs


def lowered(module, text, target="avx512"):
    context = PassContext(target=target)
    PassManager.parse(text, verify="each").run(module, context)
    return context


def depths(module):
    """The costly operations of the module's kernels by the number of loops around them."""
    found = {}
    for op in module.walk():
        if op.name in ("math.rsqrt", "math.exp"):
            depth, outer = 0, op.parent_op
            while outer is not None:
                depth += isinstance(outer, kernel.ForOp)
                outer = outer.parent_op
            found.setdefault(op.name, set()).add(depth)
    return found


@pytest.mark.parametrize("element", [f32, f64, bf16], ids=str)
@pytest.mark.parametrize("columns", [1, 7, 16, 30, 100, 1001])
def test_values_are_the_same_bits(columns, element):
    plain, inputs = scaled(9, columns, element)
    PassManager.parse(f"{FORMING % 512},bufferize,plan-memory").run(plain)
    module, _ = scaled(9, columns, element)
    wanted = run(scaled(9, columns, element)[0], *inputs, mode="real")
    context = lowered(module, FUSING + FORMING % 512, "host")
    assert context.statistics["group-computes", "computed once"] == 2
    assert columns < 32 or max(set.union(*depths(module).values())) == 1
    compare(run(module, *inputs, mode="real"), wanted, 1e-9)
    lowered(module, "bufferize,plan-memory", "host")
    got, expected = irc.build(module)(*inputs), irc.build(plain)(*inputs)
    assert torch.equal(*[y[0] if isinstance(y, tuple) else y for y in (got, expected)])


def test_no_points_read_nothing():
    module, _ = scaled(9, 144)
    lowered(module, FUSING + FORMING % 512 + ",bufferize,plan-memory", "host")
    (func,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert len(func.block.arguments) == 6
    executable = irc.build(module)  # keeps the code
    address = executable.run_python.form().kernels.address("k0")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)(address)
    call(None, None, None, None, 5, 5)


TEXT = """
  %y = loop.group (i0: 40) {
    %m = loop.compute par(c0: 40, c1: 2) -> map {
      %a = loop.read %x[c0, 39 - c0] : f32
      %b = math.exp %a : f32
      loop.yield %b } : f32[40, 2]
    %n = loop.compute par(c0: 40) -> map {
      %a = loop.read %m[39 - c0, 1] : f32
      loop.yield %a } : f32[40]
    %s = loop.compute par(i0: 40) red(i1: 40) -> reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      %b = loop.read %n[i1] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield %c } : f32[40]
    %z = loop.compute par(i0: 40, i1: 40) -> map {
      %a = loop.read %x[i0, i1] : f32
      %b = loop.read %s[i0] : f32
      %c = loop.read %m[i0, 0] : f32
      %d = arith.addf %b, %c : f32
      %e = arith.mulf %a, %d : f32
      loop.yield %e } : f32[40, 40]
    loop.yield %z } : f32[40, 40]
"""


def chained():
    return parsed("%x: f32[40, 40]", TEXT, "%y: f32[40, 40]")


@pytest.mark.parametrize("target", ["avx2", "avx512", "sm_90"])
def test_one_reads_another(target):
    x = torch.rand(40, 40, generator=torch.Generator().manual_seed(3))
    module = chained()
    (wanted,) = run(module, x)
    e = x.diagonal(0).new_tensor([x[k, 39 - k] for k in range(40)]).exp()
    torch.testing.assert_close(wanted, x * ((x * e.flip(0)).sum(1) + e)[:, None])
    lowered(module, "schedule,form-kernels", target)
    torch.testing.assert_close(run(module, x)[0], wanted)
    (func,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    tables = [op.count for op in func.walk() if isinstance(op, kernel.ScratchOp)]
    assert tables == ([] if target == "sm_90" else [95, 55]), "with 15 that vectors may read"


def test_an_input_read_once_keeps_its_memory():
    """Another call may read it when this one has written a result."""
    module = chained()
    lowered(module, "schedule,form-kernels")
    (func,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert func.inplace is None
    other = parsed("%x: f32[40, 40], %v: f32[40, 40]", TEXT.replace("%x[c0", "%v[c0"),
                   "%y: f32[40, 40]")  # fmt: skip
    lowered(other, "schedule,form-kernels")
    (func,) = [op for op in other.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert func.inplace == (1, 2), "the inputs are %v, read first, then %x"


def test_scratch_holds_it_or_the_schedule_is_refused():
    for scratch, fits in ((480, True), (479, False)):
        module = chained()
        lowered(module, "schedule")
        (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
        text = irc.print_op(module).replace("scratch = 131072", f"scratch = {scratch}")
        module = irc.parse(text)
        if fits:
            lowered(module, "form-kernels")
            continue
        with pytest.raises(InvalidIR, match="480 bytes are computed once, over its scratch of 479"):
            lowered(module, "form-kernels")


def test_a_gpus_kernel_has_no_room_for_it():
    module = chained()
    scheduled = chained()
    lowered(scheduled, "schedule", "sm_90")
    (group,) = [op for op in scheduled.walk() if isinstance(op, loop.GroupOp)]
    (bare,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    bare.attributes["schedule"] = group.schedule
    with pytest.raises(InvalidIR, match="on a gpu nothing is computed once"):
        lowered(module, "form-kernels", "sm_90")


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
