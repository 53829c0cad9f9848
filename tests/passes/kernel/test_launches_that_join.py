"""Which launches may be one: each reason against it, just inside and just outside."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import func, kernel
from irc.ir.passes import PassContext, PassManager
from irc.passes.kernel.join_launches import JoinLaunches, _JoinPlanner
from irc.target import Target

ROW = "tensor<[32] x f32, strides [1]>"


def kernel_text(name, inputs=1, outputs=1, facts="", body="", grid="grid = #sym<2>,"):
    """A kernel that writes each output at its point."""
    pointers = [f"%p{k}: !kernel.ptr<f32>" for k in range(inputs + outputs)]
    written = ", ".join(map(str, range(inputs, inputs + outputs)))
    stores = "".join(
        f"    kernel.store %v, %p{k}[%i] : f32\n" for k in range(inputs, inputs + outputs)
    )
    return f"""
    kernel.func @{name}({", ".join(pointers)}, %begin: index, %end: index) attributes {{
        {grid} {facts} outputs = array<i64: {written}>, symbols = [], target = "cpu"}} {{
      {body}
      %one = arith.constant 1 : index
      kernel.for %i = %begin to %end step %one {{
        %v = kernel.load %p0[%i] : f32
    {stores}
        kernel.yield }}
      kernel.return }}"""


def launch(results, inputs, callee, facts="", outs=0):
    """A launch on rows, of which the last inputs are the memory of its results."""
    count, made = inputs.count("%"), results.count("%")
    facts += f", operandSegmentSizes = array<i64: {count - outs}, {outs}>"
    given, types = (", ".join([ROW] * k) for k in (count, made))
    equals = f"{results} = " if results else ""
    types = types if made == 1 else f"({types})"
    return f"{equals}host.launch {inputs} {{callee = @{callee}{facts}}} : ({given}) -> {types}"


def module_of(lines, kernels, returned="%x"):
    """A function of rows with these lines, and kernels."""
    body = "\n".join(lines)
    return irc.parse(f"""
    func.func @main(%x: {ROW}, %y: {ROW}, %z: {ROW}) -> {ROW} attributes {{level = "loop"}} {{
      {body}
      return {returned} : {ROW} }}
    {"".join(kernels)}""")


def planner(module, **options):
    """The planner of the function, and its operations by the names of their results."""
    ops = list(module.body.block.ops)
    kernels = {k.sym_name: k for k in ops if isinstance(k, kernel.KernelFuncOp)}
    function = next(op for op in ops if isinstance(op, func.FuncOp))
    found = {op.results[0].name_hint: op for op in function.block.ops if op.results}
    context = PassContext()
    context.settled = Target.named("sm_90")
    return _JoinPlanner(JoinLaunches(**options), function, kernels, context), found


def joined(module, **options):
    """How many launches went."""
    context = PassContext(target="sm_90")
    words = " ".join(f"{k}={v}" for k, v in options.items())
    PassManager.parse(f"join-launches{{{words}}}", verify="each").run(module, context)
    return context.statistics["join-launches", "joined"]


A, B = launch("%a", "%x", "k0"), launch("%b", "%y", "k0")
PLAIN = kernel_text("k0")
BYTES = 2 * 32 * 4


@pytest.mark.parametrize(
    "lines, kernels, expected",
    [
        ([A], [PLAIN], True),
        ([A], [kernel_text("k0", grid="")], False),
        ([launch("%a", "%x", "k0")], [kernel_text("k0", facts="initialized = array<i64: 0, 1>,")],
         False),
        ([launch("%a", "%x", "k0")], [kernel_text("k0", facts="inplace = array<i64: 0, 1>,")],
         True),
        ([A, f"graph.update_input %a {{argument = 1 : i64}} : ({ROW})"], [PLAIN], False),
        ([A, B, f"graph.update_input %b {{argument = 0 : i64}} : ({ROW})"], [PLAIN], False),
        ([A, B, f"graph.update_input %b {{argument = 1 : i64}} : ({ROW})"], [PLAIN], True),
    ],
    ids=str,
)  # fmt: skip
def test_launches_that_may_be_joined(lines, kernels, expected):
    found, ops = planner(module_of(lines, kernels))
    assert found.may_join(ops["a"]) is expected


def test_launches_of_other_kernels_and_into_given_memory_stay_alone():
    module = module_of([A, launch("", "%x, %y", "k0", outs=1)], [PLAIN])
    found, ops = planner(module)
    into = ops["a"].next
    assert found.may_join(ops["a"]) and into.outs and not found.may_join(into)
    found.kernels = {}
    assert not found.may_join(ops["a"])


@pytest.mark.parametrize("most, expected", [(BYTES, True), (BYTES - 1, False)])
def test_small_launches_are_joined(most, expected):
    found, ops = planner(module_of([A], [PLAIN]), max_bytes=most)
    assert found.may_join(ops["a"]) is expected
    assert joined(module_of([A, B], [PLAIN]), max_bytes=most) == expected


def test_what_follows_from_each_other_stays_apart():
    lines = [A, launch("%b", "%a", "k0"), launch("%c", "%y", "k0"), launch("%d", "%b", "k0")]
    found, ops = planner(module_of(lines, [PLAIN]))
    a, b, c, d = (found.clusters.number[ops[name]] for name in "abcd")
    fits = {(p, q): found.fits(p, q) for p, q in ((a, b), (a, c), (b, c), (a, d), (b, d), (c, d))}
    assert [pair for pair, fit in fits.items() if fit] == [(a, c), (b, c), (c, d)]


def test_parts_are_counted():
    lines = [launch(f"%r{k}", "%x", "k0") for k in range(5)]
    for most, joins in ((1, 0), (2, 2), (3, 3), (4, 3), (5, 4)):
        assert joined(module_of(lines, [PLAIN]), max_parts=most) == joins


def test_scratch_memory_is_shared_out():
    def kernels(*counts):
        rooms = [f"%room = kernel.scratch {{count = {n} : i64}} : !kernel.ptr<f32>" for n in counts]
        return [kernel_text(f"k{k}", body=room) for k, room in enumerate(rooms)]

    lines = [launch("%a", "%x", "k0"), launch("%b", "%x", "k1")]
    half = 32 * 1024  # elements of the 256 KiB that a kernel may have
    assert joined(module_of(lines, kernels(half, half))) == 1
    assert joined(module_of(lines, kernels(half, half + 1))) == 0


TWO = kernel_text("k2", 2, 2, "inplace = array<i64: 0, 2, 1, 3>,")
ONE = kernel_text("k1", facts="inplace = array<i64: 0, 1>,")
OWN = [launch(f"%{name}", "%x", "k0") for name in "uvw"]


@pytest.mark.parametrize(
    "first, second, expected",
    [
        # Two inputs that a result may overwrite, and which of them another launch reads.
        (launch("%a, %c", "%u, %v", "k2"), launch("%b", "%w", "k0"), True),
        (launch("%a, %c", "%u, %v", "k2"), launch("%b", "%u", "k0"), False),
        (launch("%a, %c", "%u, %v", "k2"), launch("%b", "%v", "k0"), False),
        (launch("%a, %c", "%u, %v", "k2"), launch("%b, %d", "%u, %v", "k2"), False),
        (launch("%b", "%v", "k0"), launch("%a, %c", "%u, %v", "k2"), False),
        (launch("%a", "%u", "k1"), launch("%b", "%v", "k1"), True),
        (launch("%a", "%u", "k1"), launch("%b", "%u", "k1"), False),
        (launch("%a", "%u", "k0"), launch("%b", "%u", "k0"), True),
    ],
    ids=str,
)
def test_memory_that_one_reads_and_another_writes(first, second, expected):
    module = module_of([*OWN, first, second], [PLAIN, ONE, TWO])
    found, ops = planner(module)
    assert found.overwrites([ops["a"], ops["b"]]) is not expected
    a, b = sorted(found.clusters.number[ops[name]] for name in "ab")
    assert found.fits(a, b) is expected


def test_what_relies_on_checks():
    lines = [A, launch("%b", "%x", "k0", ", checked"), launch("%c", "%x", "k1"),
             launch("%d", "%x", "k1", ", checked"), launch("%e", "%x", "k9"),
             f"%f = graph.reshape %x {{shape = [32]}} : ({ROW}) -> {ROW}",
             f'%g = graph.call_aten %x {{callee = "aten.sort.default", '
             f"arguments = {{self = #aten.operand<0>}}}} : ({ROW}) -> {ROW}"]  # fmt: skip
    module = module_of(lines, [PLAIN, kernel_text("k1"), kernel_text("k9")])
    found, ops = planner(module)
    del found.kernels["k9"]
    expected = {"a": False, "b": True, "c": False, "d": True, "e": True, "f": False, "g": True}
    assert {name: found.relies(ops[name]) for name in expected} == expected
