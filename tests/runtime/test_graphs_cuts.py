"""Where programs are cut for graphs, and why."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import symbol
from irc.program import host_program as P
from irc.program.read_host import read_host_program
from irc.runtime import graphs_memory, late_checks
from irc.runtime.graphs_cuts import Cut, cut

GPU = "cuda:0"
ROW = P.Layout("float32", (4,), (1,), 4, GPU)
FLAG = P.Layout("bool", (), (), 1, GPU)
COUNT = P.Layout("int64", (), (), 8, GPU)
ON_CPU = P.Layout("float32", (4,), (1,), 4, "cpu")
FOUND = P.Layout("float32", (symbol("u0"),), (1,), 4, GPU)


def launch(*tensors: int, symbols: tuple[str, ...] = ()) -> P.Launch:
    """A kernel that writes the last of these."""
    return P.Launch("k", tensors, symbols, 1, None, (len(tensors) - 1,))


def call(name: str, *operands: int, results: tuple[P.Result, ...] = ()) -> P.CallOperator:
    names = [a.name for a in getattr(torch.ops.aten, name).default._schema.arguments]
    given = tuple(zip(names, map(P.Register, operands), strict=False))
    return P.CallOperator(f"aten.{name}.default", given, results, True)


def program(
    *steps: P.Step, layouts: dict[int, P.Layout], out: int, kinds: Any = None, late: bool = False
) -> P.HostProgram:
    every = {0: ROW, **layouts}
    return P.HostProgram(
        "main", (P.Argument("x", "tensor", 0, ROW),), (), steps,
        (P.Output(out, "tensor", every[out]),), 20, {}, every,
        {**dict.fromkeys(every, "tensor"), **(kinds or {})}, late_checks=late,
    )  # fmt: skip


def shape(found: Cut) -> list[tuple[bool, tuple[str, ...]]]:
    """Which pieces are captured, and the kinds of their steps."""
    return [(p.captured, tuple(type(s).__name__ for s in p.program.steps)) for p in found.pieces]


CHAIN = (P.Alloc(1, ROW, 0), launch(0, 1), P.Alloc(2, ROW, 16), launch(1, 2))
ROWS = {1: ROW, 2: ROW, 3: ROW, 4: ROW}


def test_a_program_of_launches_is_one_graph() -> None:
    found = cut(program(*CHAIN, layouts=ROWS, out=2), GPU)
    assert shape(found) == [(True, ("Alloc", "Launch", "Alloc", "Launch"))]
    assert found.pieces[0].takes == (0,) and found.pieces[0].gives == (2,)
    assert not found.reasons and not found.written


def test_a_number_that_the_host_reads_cuts_and_what_it_decides_stays_outside() -> None:
    steps = (
        *CHAIN, P.Alloc(5, COUNT), launch(2, 5), P.ReadItem(6, 5, "int"), P.Bind("u0", 6),
        P.Alloc(7, FOUND), launch(2, 7, symbols=("u0",)), P.Alloc(3, ROW), launch(2, 3),
        P.Alloc(4, ROW), launch(3, 4),
    )  # fmt: skip
    kinds = {6: "int"}
    found = cut(program(*steps, layouts={**ROWS, 5: COUNT, 7: FOUND}, out=4, kinds=kinds), GPU)
    assert [p.captured for p in found.pieces] == [True, False, True]
    first, middle, last = found.pieces
    assert first.gives == (2, 5)
    assert middle.symbols == ("u0",) and middle.gives == ()
    assert last.takes == (2,) and last.gives == (4,)
    assert set(found.reasons.values()) == {
        "the host waits for a number of the GPU", "a size is found in data",
    }  # fmt: skip
    # What crosses is memory of its own, not a place in the arena.
    assert all(s.offset is None for s in first.program.steps
               if isinstance(s, P.Alloc) and s.register == 2)  # fmt: skip


def test_what_runs_for_a_range_of_a_size_that_is_found_stays_outside() -> None:
    few = P.SizeRange(symbol("u0"), 0, 15)
    ranged = attrs.evolve(launch(2, 7), when=few), P.CopyInto(2, 7, few)
    for step in ranged:
        steps = (
            *CHAIN, P.Alloc(5, COUNT), launch(2, 5), P.ReadItem(6, 5, "int"), P.Bind("u0", 6),
            P.Alloc(7, ROW), step, P.Alloc(3, ROW), launch(7, 3), P.Alloc(4, ROW), launch(3, 4),
        )  # fmt: skip
        found = cut(
            program(*steps, layouts={**ROWS, 5: COUNT, 7: ROW}, out=4, kinds={6: "int"}), GPU
        )
        kinds = {type(s).__name__: p.captured for p in found.pieces for s in p.program.steps
                 if getattr(s, "when", None)}  # fmt: skip
        assert kinds == {type(step).__name__: False}


def test_a_late_check_is_part_of_a_graph_and_a_strict_one_cuts() -> None:
    check = (P.Alloc(5, FLAG), launch(0, 5), P.ReadItem(6, 5, "bool"))
    steps = (*check, *CHAIN, P.AssertValue(6, "index", "IndexError"))
    given = {"layouts": {**ROWS, 5: FLAG}, "out": 2, "kinds": {6: "bool"}}
    late = cut(program(*steps, late=True, **given), GPU)
    (piece,) = late.pieces
    assert piece.captured and late_checks.count_late(piece.program) == 1
    strict = cut(program(*steps, **given), GPU)
    assert [p.captured for p in strict.pieces] == [False, True, False]
    assert "the host waits for a number of the GPU" in strict.reasons.values()


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (P.CopyInto(3, 1), "it has a tensor of cpu"),
        (call("nonzero", 1, results=(P.Result(4, "tensor", ROW),)), "found in data"),
        (P.CallOperator("aten.none_such.default", (), (), True), "no such operator"),
        (P.Control("cond", ("a", "b"), (1,), (P.Result(4, "tensor", ROW),)), "chooses"),
    ],
)
def test_what_can_not_be_captured_says_why(step: P.Step, reason: str) -> None:
    steps = (*CHAIN, step, P.Alloc(7, ROW), launch(2, 7), P.Alloc(8, ROW), launch(7, 8))
    layouts = {**ROWS, 3: ON_CPU, 7: ROW, 8: ROW}
    found = cut(program(*steps, layouts=layouts, out=8), GPU)
    assert [p.captured for p in found.pieces] == [True, False, True]
    assert reason in found.reasons[4]


def test_a_piece_of_one_launch_is_not_worth_a_graph() -> None:
    steps = (*CHAIN, P.Control("cond", ("a", "b"), (1,), ()), P.Alloc(3, ROW), launch(2, 3))
    found = cut(program(*steps, layouts=ROWS, out=3), GPU)
    assert [p.captured for p in found.pieces] == [True, False]


def test_what_a_graph_writes_is_not_made_by_another_piece() -> None:
    made = call("nonzero", 1, results=(P.Result(3, "tensor", ROW),))
    steps = (*CHAIN, made, launch(2, 3), P.Alloc(4, ROW), launch(3, 4))
    found = cut(program(*steps, layouts=ROWS, out=4), GPU)
    assert [p.captured for p in found.pieces] == [True, False]


def test_written_arguments_and_those_given_back_are_known() -> None:
    view = P.View(3, 0, ROW, 0)
    steps = (*CHAIN, view, P.CopyInto(2, 3))
    found = cut(program(*steps, layouts=ROWS, out=3), GPU)
    assert found.written == found.returned == {0}


def test_a_step_that_was_refused_is_left_out() -> None:
    steps = (*CHAIN, P.Alloc(3, ROW), launch(2, 3), P.Alloc(4, ROW), launch(3, 4))
    found = cut(program(*steps, layouts=ROWS, out=4), GPU, {3: "a capture of it fails: no"})
    assert [p.captured for p in found.pieces] == [False, True]
    assert found.reasons[3] == "a capture of it fails: no"


def test_every_cut_is_told_with_its_operation_and_line() -> None:
    text = """
host.func @main(%x: tensor<[4] x f32, strides [1]>, %n: tensor<[] x i64, strides []>)
    -> tensor<[4] x f32, strides [1]> {
  %a = host.alloc {escapes} : tensor<[4] x f32, strides [1]>
  host.copy %x, %a : (tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>)
  %i = host.item %n : (tensor<[] x i64, strides []>) -> index
  %u = sym.bind %i {symbol = "u0"} : (index) -> index
  host.return %a : tensor<[4] x f32, strides [1]>
}"""
    context = PassContext()
    PassManager.parse("explain-graphs{device=cpu}").run(irc.parse(text, filename="f"), context)
    told = [str(remark) for remark in context.remarks]
    assert told == [
        "f:5:3: remark: [explain-graphs] 'host.copy': "
        "is not captured: too few launches stand together for a graph",
        "f:6:3: remark: [explain-graphs] 'host.item': "
        "is not captured: the host waits for a number of the GPU",
        "f:7:3: remark: [explain-graphs] 'sym.bind': is not captured: a size is found in data",
    ]


# -- checks of captured launches


def failing(message: str) -> late_checks.Fail:
    def fail() -> None:
        raise IndexError(message)

    return fail


def test_a_standing_check_keeps_a_failure_until_it_is_told() -> None:
    waits = []
    board = late_checks.Board(
        torch.empty(8, dtype=torch.uint8), torch.empty(8, dtype=torch.uint8),
        lambda: waits.append(1),
    )  # fmt: skip
    standing = board.take(2)
    good, bad = torch.tensor(True), torch.tensor(True)
    truths = [(good, failing("first")), (bad, failing("second"))]

    standing.follow(truths)  # what a replay does
    board.raise_failed()
    bad.fill_(False)
    standing.follow(truths)
    bad.fill_(True)
    standing.follow(truths)  # a later replay in which all is well
    with pytest.raises(IndexError, match="second"):
        board.raise_failed()
    assert waits == [1]
    board.raise_failed()  # told once
    standing.follow(truths)
    board.raise_failed()


def test_standing_checks_may_be_made_in_inference_mode(monkeypatch) -> None:
    monkeypatch.setattr(late_checks, "_boards", {})
    truths = [(torch.tensor(False), failing("index"))]
    with torch.inference_mode():
        standing = late_checks.standing(None, 1)
    standing.follow(truths)
    with pytest.raises(IndexError, match="index"):
        late_checks.raise_failed(-1)
    with torch.inference_mode():
        standing.follow(truths)
    with pytest.raises(IndexError, match="index"):
        late_checks.raise_failed(-1)


def test_checks_inside_of_a_capture_are_collected() -> None:
    flag = torch.tensor(False)
    step = P.ReadItem(1, 0, "bool")
    check = late_checks.prepared(step, 0, failing("now"))

    class Run:
        values = {0: flag}

    with late_checks.collected() as found:
        check(Run())
    ((truth, fail),) = found
    flag.fill_(True)  # the program goes on and uses the memory for something else
    assert not truth
    flag.fill_(False)
    with pytest.raises(IndexError, match="now"):
        check(Run())  # a flag of the CPU outside of a capture is looked at


# -- where inputs are


@pytest.mark.parametrize("fast", [True, False])
def test_addresses_are_compared_at_their_positions(fast: bool, monkeypatch) -> None:
    def are_at(tensors: list[Any], addresses: list[Any], positions: list[int]) -> bool:
        """As torch's function, which a build with CUDA has."""
        return all(tensors[i].data_ptr() == addresses[i] for i in positions)

    monkeypatch.setattr(graphs_memory, "_are_at", are_at if fast else None)
    tensors = [torch.empty(3) for _ in range(4)]
    where = graphs_memory.Addresses([7, *tensors], [2, 4])
    assert where.hold([7, *tensors])
    others = [torch.empty(3), tensors[1], torch.empty(3), tensors[3]]
    assert where.hold([8, *others])
    assert not where.hold([7, *tensors[:3], torch.empty(3)])
    assert where.moved([7, *tensors[:3], torch.empty(3)]) == [4]


ATTENTION = ("_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention",
             "_scaled_dot_product_efficient_attention")  # fmt: skip


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_captured_and_draws_only_what_it_drops(name: str) -> None:
    """Some of them give sizes as numbers, which nobody looks at."""
    rest = (None, True) if name.endswith(("cudnn_attention", "efficient_attention")) else ()

    def attend(q: torch.Tensor, dropped: float) -> torch.Tensor:
        operator = getattr(torch.ops.aten, name)
        return operator(q + 1, q, q, *rest, dropped)[0] * 2

    for dropped in (0.0, 0.5):
        with FakeTensorMode():
            q = torch.empty(2, 4, 64, 64, device="cuda", dtype=torch.bfloat16)
            module = irc.trace(lambda q, p=dropped: attend(q, p), (q,))
        PassManager.parse(irc.pipeline.pipeline_text("sm_90")).run(module)
        found = cut(read_host_program(module), GPU)
        assert [(p.captured, p.random) for p in found.pieces] == [(True, dropped > 0)]
        assert not found.reasons


def test_a_number_of_an_operator_that_somebody_takes_cuts() -> None:
    results = (P.Result(3, "tensor", ROW), P.Result(6, "int", None))
    for output in (3, 6):
        made = call("relu", 2, results=results)
        whole = attrs.evolve(
            program(*CHAIN, made, *CHAIN[:2], layouts=ROWS, out=3, kinds={6: "int"}),
            outputs=(P.Output(output, "int" if output == 6 else "tensor"),),
        )  # fmt: skip
        assert ("it gives the host a number" in cut(whole, GPU).reasons.values()) == (output == 6)
