"""One flattening of a compute or group, of which the kernels of both targets are made."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import loop
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.gpu.form import kernel_inputs, kernel_outputs
from irc.passes.kernel.gpu.plan import plan_for_gpu
from irc.passes.kernel.plan.plan import flatten
from tests.passes.kernel.test_schedule_keys import GROUP, SCATTERING

ROW = "tensor<[2] x f32, strides [1]>"
NESTED = GROUP.replace("%s = loop.compute", "%n = loop.group (i: 2) { %s = loop.compute").replace(
    f"}} : {ROW}\nloop.yield %s",
    f"}} : {ROW} loop.yield %s }} : {ROW}\nloop.yield %n",
)


def top(text):
    """The last compute or group of a function, and the module, which must be kept."""
    module = irc.parse(text)
    ops = module.lookup("main").block.ops
    return [op for op in ops if isinstance(op, loop.ComputeOp | loop.GroupOp)][-1], module


@pytest.mark.parametrize("text", [GROUP, NESTED])
def test_a_group_is_flat(text):
    op, module = top(text)
    plan = flatten(op)
    assert [a.name for a in plan.axes] == ["i"] and not plan.is_lone and not plan.initialized
    assert [(m.shared, [a.name for a in m.own]) for m in plan.members] == [(["i"], ["j"])] * 2
    assert plan.inputs == [module.lookup("main").block.arguments[0]]
    ((result, value),) = plan.outputs
    assert result is op.results[0] and value is plan.members[1].compute.results[0]


def test_both_targets_take_the_arrays_in_one_order():
    op, _ = top(SCATTERING)
    plan = flatten(op)
    assert plan.is_lone and plan.initialized == [(op.inits[0], op.results[0])]
    for copying in (False, True):
        assert plan_for_cpu(plan, copying).inputs == plan.inputs
    assert plan_for_gpu(plan).inputs == plan.inputs == kernel_inputs(op)
    assert kernel_outputs(op) == [op.results[0]]


def test_a_member_goes_on_with_an_array_that_another_one_began():
    """Both write the caller's array on a cpu; a gpu's kernel can't."""
    one = ("= loop.compute par(i: 2) inits(INIT) -> scatter(set, [PLACE]) "
           "{ %v = loop.read %x[i] : f32 loop.yield %v } : tensor<[4] x f32>")  # fmt: skip
    text = ('func.func @main(%x: ROW) -> tensor<[4] x f32> attributes {level = "loop"} {'
            " %u = graph.undefined : tensor<[4] x f32> %g = loop.group (i: 2) {"
            f" %a {one.replace('INIT', '%u').replace('PLACE', 'i')}"
            f" %b {one.replace('INIT', 'FIRST').replace('PLACE', 'i + 2')}"
            " loop.yield %b } : tensor<[4] x f32> return %g : tensor<[4] x f32> }")
    op, _ = top(text.replace("ROW", ROW).replace("FIRST", "%a"))
    flat = flatten(op)
    assert flat.initialized == [] and flat.inputs == [op.parent_op.block.arguments[0]]
    plan = plan_for_cpu(flat)
    first, second = (member.compute.results[0] for member in plan.members)
    assert plan.storage[first] is plan.storage[second] and plan.outputs == [op.results[0]]
    with pytest.raises(irc.InvalidIR, match="on a gpu no member goes on"):
        plan_for_gpu(flat)
    # Where both write element 1, the order of points would matter.
    op, _ = top(text.replace("ROW", ROW).replace("FIRST", "%a").replace("i + 2", "i + 1"))
    with pytest.raises(irc.InvalidIR, match="each point to an element of its own"):
        plan_for_cpu(flatten(op))


def test_members_of_a_group_do_not_combine_into_what_others_of_it_make():
    made = "%m = loop.compute par(i: 2) -> map { %v = loop.read %x[i] : f32 loop.yield %v } : ROW"
    into = made.replace("%m =", "%s =").replace("-> map", "inits(INIT) -> scatter(sum, [i])")
    text = ('func.func @main(%x: ROW) -> ROW attributes {level = "loop"} { %g = loop.group (i: 2) {'
            f" {made}\n{into}\nloop.yield %s }} : ROW\nreturn %g : ROW }}").replace("ROW", ROW)
    op, module = top(text.replace("INIT", "%m"))
    with pytest.raises(irc.InvalidIR, match="scatters into an array of the same group"):
        flatten(op)
    op, module = top(text.replace("INIT", "%x"))
    with pytest.raises(irc.InvalidIR, match="in a group, a kernel for a cpu scatters to a new"):
        plan_for_cpu(flatten(op))
