"""Scatters that may combine into the memory that they start from, and those that may not."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import host, loop
from irc.ir.location import UNKNOWN, NameLocation
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.plan.plan import flatten
from irc.passes.kernel.plan.updates import may_be_one_memory, writes_apart

ROW = "tensor<[8] x f32, strides [1]>"
MATRIX = "tensor<[8, 8] x f32, strides [8, 1]>"


def compute(name, out="map", inits="", read=None, count=1, type_=ROW):
    """`name` = a compute of 8 points with so many equal outputs, of what it reads."""
    value = f"loop.read {read} : f32" if read else "arith.constant 1.0 : f32"
    results = ", ".join([name, *[f"{name}_{k}" for k in range(1, count)]])
    outputs, values, types = (", ".join([t] * count) for t in (out, "%v", type_))
    return (f"{results} = loop.compute par(i: 8) {inits} -> {outputs} {{ %v = {value}\n"
            f"loop.yield {values} }} : {types}\n")  # fmt: skip


def scatter(name, *inits, read=None, out="scatter(sum, [i])"):
    """`name` = a scatter into `inits`."""
    return compute(name, out, f"inits({', '.join(inits)})", read, len(inits))


def function(body, returned="%r", attributes="", type_=ROW):
    """The compute %r of a function, and the module, which must be kept."""
    text = (
        f"func.func @main(%x: {type_}, %y: {type_}, %m8: {MATRIX}, %one: tensor<f32, strides []>)"
        f' -> {type_} attributes {{level = "loop" {attributes}}} {{\n{body}\n'
        f"func.return {returned} : {type_} }}"
    )
    module = irc.parse(text)
    (op,) = [o for o in module.walk() if isinstance(o, loop.ComputeOp)
             and o.results[0].name_hint == "r"]  # fmt: skip
    return op, module


def in_place(op, module, number=0):
    """Whether scatter output `number` of a compute is computed in the memory that it starts from
    by the time that there is memory."""
    op.location = NameLocation("the scatter", UNKNOWN)
    irc.PassManager.parse(TO_MEMORY, verify="each").run(module)
    (launch,) = [o for o in module.walk() if isinstance(o, host.LaunchOp)
                 and o.location is op.location]  # fmt: skip
    pairs = module.lookup(launch.callee).initialized or ()
    arrays = [*launch.inputs, *launch.outs]
    made = len(launch.inputs) + number
    return any(arrays[s] is arrays[t] for s, t in zip(pairs[::2], pairs[1::2]) if t == made)


def in_place_launches(module):
    """The launches that combine into what is there."""
    return [o for o in module.walk() if isinstance(o, host.LaunchOp)
            and module.lookup(o.callee).initialized]  # fmt: skip


TO_MEMORY = "schedule{target=cpu},form-kernels,bufferize"
MAKE = compute("%m", read="%x[i]")
FILL = compute("%m")
SCATTER = scatter("%r", "%m")
GROUP = f"""%g = loop.group (i: 8) {{
  {compute("%gs", read="%m[i]")}
  loop.yield %gs }} : {ROW}
"""
UPDATE = f"graph.update_input %r {{argument = 0 : i64}} : ({ROW})\n"
MM = f"""%mm = graph.call_aten %m8, %m8 {{callee = "CALLEE",
  arguments = {{self = #aten.operand<0>, mat2 = #aten.operand<1>}}}}
  : ({MATRIX}, {MATRIX}) -> {MATRIX}
"""
VIEW = f"%n = layout.view %m {{offset = #sym<0>}} : ({ROW}) -> {ROW}\n"
DEAD = {
    "made by a compute": (MAKE + SCATTER, True),
    "read before": (MAKE + compute("%b", read="%m[i]") + SCATTER, True),
    "read after": (MAKE + SCATTER + compute("%b", read="%m[i]"), False),
    "read before and after": (
        MAKE + compute("%b", read="%m[i]") + SCATTER + compute("%c", read="%m[i]"), False),
    "read in a group before": (MAKE + GROUP + SCATTER, True),
    "read in a group after": (MAKE + SCATTER + GROUP, False),
    "made by a group": (MAKE + GROUP + scatter("%r", "%g"), True),
    "started from before": (MAKE + scatter("%b", "%m") + SCATTER, True),
    "started from after": (MAKE + SCATTER + scatter("%b", "%m"), False),
    "viewed before": (MAKE + VIEW + compute("%b", read="%n[i]") + SCATTER, True),
    "viewed after": (MAKE + VIEW + SCATTER + compute("%b", read="%n[i]"), False),
    "kept before": (
        MAKE + f"graph.update_input %m {{argument = 0 : i64}} : ({ROW})\n" + SCATTER, False),
    "its own read": (MAKE + scatter("%r", "%m", read="%m[i]"), True),
    "a constant": (
        f"%m = graph.constant {{value = dense<0.0> : {ROW}}} : {ROW}\n" + SCATTER, False),
    "twice in one compute": (MAKE + scatter("%r", "%m", "%m"), False),
    "two in one compute": (MAKE + compute("%b", read="%x[i]") + scatter("%r", "%m", "%b"), True),
    "of other strides": (
        compute("%m", type_="tensor<[8] x f32, strides [2]>") + SCATTER, False),
    "an argument": (scatter("%r", "%x"), False),
}  # fmt: skip


@pytest.mark.parametrize("name", DEAD)
def test_memory_that_nothing_needs_afterwards(name):
    body, expected = DEAD[name]
    op, module = function(body, "%y")
    for number in range(len(op.inits)):
        assert in_place(op, module, number) is expected


@pytest.mark.parametrize(
    "callee, operand, expected",
    [("aten.mm.default", "mat2", True), ("aten.matmul.default", "other", False)],
)
def test_products_that_the_program_owns(callee, operand, expected):
    body = MM.replace("CALLEE", callee).replace("mat2", operand)
    body += scatter("%r", "%mm", out="scatter(sum, [i, 0])")
    op, module = function(body.replace(f"}} : {ROW}", f"}} : {MATRIX}"), "%y")
    assert in_place(op, module) is expected


def test_numbers_that_the_host_reads_first():
    made = "%m = loop.compute -> map { %v = loop.read %one[] : f32\nloop.yield %v } : SCALAR\n"
    item = "%n = graph.item %m : (SCALAR) -> f64\n"
    use = ("%r = loop.compute inits(%m) -> scatter(sum, []) { %v = loop.read %one[] : f32\n"
           "loop.yield %v } : SCALAR\n")  # fmt: skip
    for body, expected in ((made + item + use, True), (made + use + item, False)):
        op, module = function(body.replace("SCALAR", "tensor<f32, strides []>"), "%y")
        assert in_place(op, module) is expected


def chain(second, rest=""):
    """%r starts from an argument; what becomes of it."""
    return scatter("%r", "%x") + second + rest


def update(value, argument):
    return f"graph.update_input {value} {{argument = {argument} : i64}} : ({ROW})\n"


NEXT = scatter("%q", "%r")
ARGUMENTS = {
    "updated": (chain(UPDATE), "%y", True),
    "updated and returned": (chain(UPDATE), "%r", False),
    "updated, returned and read": (chain(compute("%b", read="%r[i]") + UPDATE), "%r", False),
    "updated and read": (chain(UPDATE + compute("%b", read="%r[i]")), "%y", True),
    "another updated": (chain(update("%r", 1)), "%y", False),
    "both updated": (chain(UPDATE + update("%r", 1)), "%y", True),
    "updated and started from": (chain(UPDATE + NEXT), "%y", True),
    "updated later": (chain(NEXT, update("%q", 0)), "%y", True),
    "updated much later": (
        chain(NEXT, scatter("%p", "%q") + update("%p", 0)), "%y", True),
    "another updated later": (chain(NEXT, update("%q", 1)), "%y", False),
    "never updated": (chain(NEXT), "%y", False),
    "returned later": (chain(NEXT, update("%q", 0)), "%q", False),
    "read after the next": (
        chain(NEXT, compute("%b", read="%r[i]") + update("%q", 0)), "%y", False),
    "read before the next": (
        chain(compute("%b", read="%r[i]") + NEXT, update("%q", 0)), "%y", True),
    "two start from it": (
        chain(NEXT, scatter("%p", "%r") + update("%q", 0) + update("%p", 1)), "%y", False),
    "one starts from it twice": (
        chain(scatter("%q", "%r", "%r"), update("%q", 0)), "%y", False),
    "the next starts from two": (
        chain(FILL + scatter("%q", "%m", "%r"), update("%q_1", 0)), "%y", True),
    "the next starts from two, the other is kept": (
        chain(FILL + scatter("%q", "%m", "%r"), update("%q", 0)), "%y", False),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_are_updated_with_the_result(name):
    body, returned, expected = ARGUMENTS[name]
    op, module = function(body, returned)
    assert in_place(op, module) is expected


@pytest.mark.parametrize("aliases, expected", [("[[0, 1]]", False), ("[[1, 2]]", True)])
def test_arguments_that_share_memory_are_not_updated_in_place(aliases, expected):
    op, module = function(scatter("%r", "%x") + UPDATE, "%y", f", aliases = {aliases}")
    assert in_place(op, module) is expected


def test_what_an_earlier_scatter_must_copy_is_the_memory_of_a_later_one():
    op, module = function(MAKE + scatter("%b", "%m") + SCATTER, "%y")
    assert in_place(op, module)
    launched = [o.callee for o in module.walk() if isinstance(o, host.LaunchOp)]
    assert launched == ["k0", "k1_copying", "k1"]
    assert [module.lookup(name).initialized for name in launched] == [None, None, (0, 1)]


def test_a_kernel_that_scatters_has_a_plan_that_combines_and_one_that_copies_first():
    op, _ = function(MAKE + scatter("%b", "%m") + SCATTER, "%y")
    plan = plan_for_cpu(flatten(op))
    assert plan.initialized == plan.updates == [(op.inits[0], op.results[0])]
    copying = plan_for_cpu(flatten(op), copying=True)
    assert not copying.initialized and len(copying.members) == 2
    assert copying.inputs == plan.inputs


def test_a_plan_that_copies_first_copies_what_is_beside_the_diagonal_that_it_writes():
    module = places("[i, i]", "par(i: 8)")
    copy, scattered = plan_for_cpu(flatten(scattering(module)), copying=True).members
    assert [(a.name, a.extent) for a in copy.compute.axis_list] == [("i", 8), ("copied1", 8)]
    assert scattered.compute.axis_list[0].name == "i"


def test_one_array_that_two_scatters_start_from_is_copied_for_both():
    op, module = function(MAKE + scatter("%r", "%m", "%m"), "%y")
    plan = plan_for_cpu(flatten(op))
    assert len(plan.inputs) == 1 and len(plan.initialized) == 2 and not plan.updates
    assert not in_place(op, module) and not in_place_launches(module)


def test_what_is_copied_beside_an_update_in_place_is_copied_by_the_host():
    body = FILL + compute("%b", read="%x[i]") + scatter("%r", "%m", "%b")
    op, module = function(body + compute("%c", read="%b[i]"), "%y")
    assert in_place(op, module, 0)
    copies = [o for o in module.walk() if isinstance(o, host.HostCopyOp)]
    assert len(copies) == 1 and copies[0].source.name_hint == "b"


AXES = "par(i: 8, j: 8, u: 1)"
PLACES = {
    "[i, j]": True, "[j, i]": True, "[i, 3]": False, "[3, j]": False, "[i, i]": False,
    "[i, j + 1 - 1]": True, "[7 - i, j]": True, "[i + u, j + 3*u]": True, "[i, i + j]": False,
    "[floordiv(i, 2), j]": False, "[i, mod(j, 4)]": False, "[i, n*j]": False, "[0, 0]": False,
    "[i, _0]": False, "[i + _0, j]": False, "[0, i + j]": False,
}  # fmt: skip


def places(indices, axes=AXES, reads=(), extra="extra(%k)"):
    """A compute that scatters to `indices` of %m, of what it reads of there."""
    lines = [f"%v{k} = loop.read %m[{at}] : f32" for k, at in enumerate(reads)]
    return irc.parse(f"""
    func.func @main(%x: {MATRIX}) -> {MATRIX} attributes {{level = "loop"}} {{
      %n0 = sym.bind_size %x {{dim = 0, symbol = "n"}} : ({MATRIX}) -> index
      %m = loop.compute par(i: 8, j: 8) -> map {{ %v = arith.constant 1.0 : f32
        loop.yield %v }} : {MATRIX}
      %r = loop.compute {axes} inits(%m) -> scatter(sum, {indices}) {{
        %k = arith.constant 1 : i64
        %c = arith.constant 1.0 : f32
        {chr(10).join(lines)}
        loop.yield %c {extra if "_0" in indices else ""} }} : {MATRIX}
      func.return %r : {MATRIX} }}""")


def scattering(module):
    """The compute that scatters."""
    return next(o for o in module.walk() if isinstance(o, loop.ComputeOp) and len(o.inits))


@pytest.mark.parametrize("indices", PLACES)
def test_points_that_write_elements_of_their_own(indices):
    module = places(indices)
    assert writes_apart(scattering(module), 0) is PLACES[indices]


MASKED = {"slt, %place, %five": True, "slt, %place, %four": True, "slt, %place, %six": False,
          "sle, %place, %five": False, "slt, %j, %five": False}  # fmt: skip


@pytest.mark.parametrize("condition", MASKED)
def test_a_mask_tells_points_apart(condition: str) -> None:
    """Of 5*i + (2*j + k) with 2*j + k < 6: two points have one element where that is 5."""
    module = irc.parse(f"""
    func.func @main(%m: {MATRIX}) -> {MATRIX} attributes {{level = "loop"}} {{
      %r = loop.compute par(i: 4, j: 3, k: 2) inits(%m) -> scatter(set, [0, i*5 + j*2 + k]) {{
        %c = arith.constant 1.0 : f32
        %true = arith.constant true : i1
        %place = loop.index {{expression = #sym<j*2 + k>}} : index
        %j = loop.index {{expression = #sym<j>}} : index
        %four = arith.constant 4 : index
        %five = arith.constant 5 : index
        %six = loop.index {{expression = #sym<6>}} : index
        %first = arith.cmpi {condition} : index
        %mask = arith.andi %first, %true : i1
        loop.yield %c masks(%mask) }} : {MATRIX}
      func.return %r : {MATRIX} }}""")
    assert writes_apart(scattering(module), 0) is MASKED[condition]


@pytest.mark.parametrize("extent, expected", [(1, True), (2, False)])
def test_an_axis_of_one_point_needs_no_index(extent, expected):
    module = places("[i, 0]", f"par(i: 8, j: {extent})")
    assert writes_apart(scattering(module), 0) is expected


@pytest.mark.parametrize(
    "indices, reads, expected",
    [
        ("[i, j]", [], True),
        ("[i, _0]", [], True),
        ("[i, j]", ["i, j"], True),
        ("[i, j]", ["i + u, j"], True),
        ("[i, j]", ["j, i"], False),
        ("[i, j]", ["i, j", "i, j"], True),
        ("[i, j]", ["i, j", "j, i"], False),
        ("[i, j]", ["j, i", "i, j"], False),
        ("[i, 0]", ["i, 0"], False),
        ("[i, _0]", ["i, j"], False),
    ],
    ids=str,
)
def test_what_a_scatter_reads_of_where_it_writes(indices, reads, expected):
    module = places(indices, reads=reads)
    op = scattering(module)
    assert may_be_one_memory(op, 0, op.inits[0]) is expected
