"""What a loop nest on a cpu asks before it writes code, question by question."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import irc
from irc.dialects import loop
from irc.ir.core import Block
from irc.ir.symbols import symbol
from irc.ir.types import f32, f64, i1, i64, index
from irc.passes.kernel.cpu.body import BodyEmitter
from irc.passes.kernel.cpu.emit import Emitter, Lanes, VectorScope
from irc.passes.kernel.cpu.lanes import LaneExpressions
from irc.passes.kernel.cpu.nest import Carried, Nest
from irc.passes.kernel.cpu.place import KernelState, Placement
from irc.passes.kernel.cpu.plan import Access, Axis
from irc.passes.kernel.cpu.reduce import (
    Evaluation,
    MomentsReducer,
    Reducer,
    ReducerShape,
    make_reducer,
)
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.passes.kernel.cpu.vectors import Phase, Vectors

X, N = symbol("x"), symbol("n")
ROW = "tensor<[8] x f32, strides [1]>"


def emitter(*types):
    """An emitter into an empty block with arguments of some types, and those."""
    block = Block(types)
    return Emitter(block), block.arguments


def known(cls, **fields):
    """An object of which only these fields are known."""
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    return made


def nest(**fields):
    """A nest of which only these fields are known."""
    return known(Nest, **fields)


def body(**fields):
    """What emits a body whose operations are placed, of which only these fields are known."""
    placed = known(Placement, **fields)
    return known(BodyEmitter, placed=placed, **fields)


def compute(body, outputs="map", inits=""):
    """A compute over `par(i: 8) red(j: 4)` with a result for each output, and what must be kept."""
    count = outputs.count(";") + 1
    names = ", ".join(f"%r{k}" for k in range(count))
    kinds = [ROW if "scatter" in o or "reduce" in o else "tensor<[8, 4] x f32, strides [4, 1]>"
             for o in outputs.split(";")]  # fmt: skip
    axes = "par(i: 8) scan(j: 4)" if "scan" in outputs else "par(i: 8) red(j: 4)"
    module = irc.parse(f"""
    func.func @main(%x: {ROW}) -> {ROW} attributes {{level = "loop"}} {{
      {names} = loop.compute {axes} {inits} -> {outputs.replace(";", ",")} {{
        %v = loop.read %x[i] : f32
        {body}
        loop.yield {", ".join(["%v"] * count)} }} : {", ".join(kinds)}
      func.return %x : {ROW} }}""")
    return next(op for op in module.walk() if isinstance(op, loop.ComputeOp)), module


@pytest.mark.parametrize(
    "dims, expected",
    [
        ((), True), ((0,), True), ((3,), True), ((-1,), False), ((0, -1), False),
        ((-1, 0), False), ((X,), True), ((X - 1,), False), ((X, 4 - X), True),
        ((X, 3 - X), False), ((3 - X, X), False), ((X, -1), False), ((0, X), True),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_negative(dims, expected):
    made, _ = emitter()
    made.extents = {"x": 5}
    assert made.nonnegative(*dims) is expected


def test_a_scalar_is_no_vector_of_places():
    made, (place, number) = emitter(index, f32)
    env = LaneExpressions(made, Access(X, None, {}), 0, VectorScope(), Lanes("x", 8, 1))
    wide = made.vector_index(place, 1, 8, VectorScope())
    found = [env.is_scalar(value) for value in (0, 7, place, number, wide)]
    assert found == [True, True, True, True, False]


def reducer(combiner, type_=f32, scans=False, shape=None):
    made = make_reducer(emitter()[0], combiner, type_, shape or ReducerShape(8, 1, True))
    made.scans = scans
    return made


@pytest.mark.parametrize(
    "made, expected",
    [
        (reducer("sum"), True),
        (reducer("sum", f64), True),
        (reducer("sum", i64), False),
        (reducer("max"), False),
        (reducer("prod"), False),
        (reducer("sum", scans=True), False),
        (reducer("moments"), False),
        (reducer("moments", shape=ReducerShape(8, 1, False)), True),
        (reducer("argmax"), False),
        (reducer("logsumexp"), False),
    ],
    ids=lambda v: f"{v.combiner} {v.type} {v.scans}" if isinstance(v, Reducer) else str(v),
)
def test_sums_gain_from_partial_sums(made, expected):
    assert made.restarts is expected
    others = [None, reducer("max"), made, reducer("max", scans=True), None]
    state = Carried(others, [0, 1, 1, 1, 0], [])
    assert state.restarts is expected and state.scans
    assert not Carried([None, reducer("max"), None], [0, 1, 0], []).restarts


def test_a_state_scans_if_any_reducer_does():
    plain, scans = reducer("sum"), reducer("sum", scans=True)
    for reducers, expected in (
        ([], False), ([None], False), ([plain], False), ([scans], True), ([None, scans], True),
        ([scans, None], True), ([plain, scans], True), ([scans, plain], True),
    ):  # fmt: skip
        assert Carried(reducers, [1] * len(reducers), []).scans is expected


@pytest.mark.parametrize("peeled", [True, False])
@pytest.mark.parametrize("width", [1, 2, 8])
def test_scalars_beside_vectors_are_the_peel(peeled, width):
    made = reducer("sum", shape=ReducerShape(8, 2, True, peeled=peeled))
    assert made.in_peel(Evaluation([], width)) is (peeled and width == 1)


@pytest.mark.parametrize("copies", [1, 2, 3, 4])
def test_the_moments_of_a_block(copies):
    made, values = emitter(*[f32] * copies)
    moments = MomentsReducer(made, "moments", f32, ReducerShape(1, copies, True), False)
    center, squares = moments.block(Evaluation(values, 1))
    names = [op.name.partition(".")[2] for op in made.block.ops]
    if copies == 1:
        assert (center, squares, names) == (values[0], None, [])
        return
    assert squares is not None
    deviations = ["subf", "mulf", *["subf", "fma"] * (copies - 1)]
    assert names == [*["addf"] * (copies - 1), "mulf", *deviations]
    share = center.defining_op.operands[1].defining_op.attributes["value"]
    assert share.value == pytest.approx(1 / copies)


@pytest.mark.parametrize(
    "lower, upper, apart, expected",
    [
        (0, 8, 0, (0, 8)), (8, 16, 0, (8, 16)), (0, 8, 4, None), ("%", 8, 0, None),
        (0, "%", 0, None), ("%", "%", 0, None), (0, "%", 4, None),
    ],
)  # fmt: skip
def test_the_points_of_a_phase_are_known(lower, upper, apart, expected):
    _, (place,) = emitter(index)
    ends = (place if end == "%" else end for end in (lower, upper))
    assert Phase(*ends, 8, 8, 1, apart=apart).span == expected


@pytest.mark.parametrize(
    "lanes, unroll, expected",
    [
        (Lanes("i", 8, 1), True, True),
        (Lanes("i", 8, 1), False, False),
        (Lanes("i", 2, 1), True, True),
        (Lanes("i", 1, 1), True, False),
        (Lanes("i", 8, 1, mask=Block((i1,)).arguments[0]), True, False),
        (None, True, False),
    ],
    ids=str,
)
def test_rows_of_whole_tiles_stay_in_registers(lanes, unroll, expected):
    scope = VectorScope()
    scope.lanes = lanes
    made = nest(schedule=CpuSchedule(unroll=unroll))
    assert made._unrolls_tiles(scope) is expected


def test_the_vectors_of_a_loop():
    vectors = Vectors("j", 8, 1, "mask", 5)
    loops = [Axis("i", "par", 8), Axis("j", "red", 8)]
    made = nest(own_vectors=vectors, loops=loops)
    assert [made._vectors_of(depth) for depth in range(2)] == [None, vectors]
    made = nest(own_vectors=None, loops=loops)
    assert [made._vectors_of(depth) for depth in range(2)] == [None, None]


@pytest.mark.parametrize(
    "outputs, expected",
    [
        ("map", False), ("reduce(sum, f32)", True), ("scan(sum, f32)", True),
        ("scatter(sum, [i])", False), ("map; reduce(sum, f32)", True),
        ("reduce(sum, f32); map", True), ("map; map", False),
        ("scatter(sum, [i]); reduce(sum, f32)", True),
    ],
)  # fmt: skip
def test_outputs_that_combine(outputs, expected):
    op, module = compute("", outputs, "inits(%x)" if "scatter" in outputs else "")
    assert nest(member=SimpleNamespace(compute=op)).has_combiners is expected


@pytest.mark.parametrize(
    "varies, a, b, expected",
    [
        (True, "vector", "vector", True), (True, "vector", "scalar", True),
        (True, "scalar", "vector", True), (True, "scalar", "scalar", False),
        (False, "vector", "scalar", False), (False, "scalar", "scalar", False),
    ],
)  # fmt: skip
def test_lanes_differ_where_an_operand_does(varies, a, b, expected):
    op, module = compute("%p = math.exp %v : f32\n%q = math.sin %v : f32\n"
                         "%s = arith.addf %p, %q : f32")  # fmt: skip
    found = {o.results[0].name_hint: o for o in op.block.ops if o.results}
    scope = VectorScope()
    for name, kind in (("p", a), ("q", b)):
        value = found[name].results[0]
        scope.values[value] = [value] if kind == "vector" else value
    made = body(varying={found["s"].results[0]} if varies else {found["p"].results[0]})
    assert made._differs(found["s"], scope) is expected


def guards(loops, level, shared=None):
    """The guard of a load at a level over the nest of some loops, each with its level; again, from
    what is known; and the operations that it takes."""
    made, (size,) = emitter(index)
    state = KernelState(made)
    state.shared_axis = shared and Axis(shared[0], "par", shared[1])
    axes = [Axis(name, "par", extent) for name, extent, _ in loops]
    levels = {name: at for name, _, at in loops} | ({shared[0]: shared[2]} if shared else {})
    asking = body(state=state, emitter=made, loops=axes, level_of=levels)
    scope = VectorScope()
    scope.names = {"n": size, "m": size}
    made.block = inner = Block()
    first = asking._guard(level, scope)
    names = [[op.name for op in block.ops] for block in (made.entry, inner)]
    assert made.block is inner
    again = asking._guard(level, scope)
    assert (first is None) == (again is None)
    assert [op.name for op in made.entry.ops] == names[0]
    return first, names


M = symbol("m")


@pytest.mark.parametrize(
    "loops, level, shared, tests, joins",
    [
        ([("i", 8, 3)], 2, None, 0, 0),
        ([("i", N, 3)], 2, None, 1, 0),
        ([("i", N, 3)], 3, None, 0, 0),
        ([("i", N, 3)], 4, None, 0, 0),
        ([("i", 8, 3), ("j", N, 4)], 2, None, 1, 0),
        ([("i", N, 3), ("j", M, 4)], 2, None, 2, 1),
        ([("i", N, 3), ("j", M, 4)], 3, None, 1, 0),
        ([("i", N, 3), ("j", N, 4)], 2, None, 1, 1),
        ([("i", N, 3)], 1, ("s", M, 2), 2, 1),
        ([("i", 8, 3)], 1, ("s", M, 2), 1, 0),
        ([("i", N, 3)], 2, ("s", M, 2), 1, 0),
        ([], 1, ("s", 8, 2), 0, 0),
    ],
    ids=str,
)
def test_a_hoisted_load_asks_whether_the_loops_inside_have_points(
    loops, level, shared, tests, joins
):
    found, (entry, inner) = guards(loops, level, shared)
    assert (found is None) == (tests == 0)
    assert entry == ["arith.cmpi"] * tests and inner == ["arith.andi"] * joins
