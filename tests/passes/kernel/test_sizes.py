"""One program with schedules for several sizes, among which its host program chooses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.dialects import kernel, loop  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.ir.symbols import evaluate, free_symbols  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.passes.kernel import sizes  # noqa: E402
from irc.passes.kernel.tune import REST, describe  # noqa: E402
from irc.program import host_program as P  # noqa: E402
from irc.program.read_host import read_host_program  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.target.attribute import carry  # noqa: E402
from irc.tuning import Candidate  # noqa: E402
from tests.conformance.gpu_programs import interpreted  # noqa: E402

UP_TO_LOOPS = ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops")
#: What is the fastest at a size, by target: entries of schedules of the operation and its members.
WINNERS = {"cpu": {4: ("", ("lanes = 4 : i64", "copies = 2 : i64")),
                   1024: ("", ("lanes = 8 : i64", "", "lanes = 8 : i64"))},
           "gpu": {4: ("num_warps = 1 : i64", ()), 1024: ("num_warps = 8 : i64", ())}}  # fmt: skip


def softmax(x):
    return torch.softmax(x * 2, -1)


def module_with_sizes(target, monkeypatch, rows=64):
    """A softmax of any number of rows, with what was the fastest at 4, 64 and 1024 of them."""
    module = irc.trace(softmax, (torch.randn(rows, 100),), dynamic=True)
    made_for = carry(module, target)
    texts = pipeline.stages(made_for)
    context = PassContext()
    PassManager.parse(",".join(texts[s] for s in UP_TO_LOOPS) + ",schedule").run(module, context)
    kind = "gpu" if made_for.is_gpu else "cpu"
    (op,) = (o for o in module.lookup("main").block.ops
             if isinstance(o, loop.ComputeOp | loop.GroupOp))  # fmt: skip

    def choose_all(asked, context):
        leading = sizes.leading_symbol(op)
        found = []
        for problem, _ in asked:
            top, members = WINNERS[kind][dict(problem.sizes)[leading]]
            texts = [f"#loop.schedule<{kind}, {text}>" if text else "" for text in (top, *members)]
            found.append(Candidate("irc", texts[0], tuple(texts[1:])))
        return found

    monkeypatch.setattr(sizes, "choose_all", choose_all)
    context = PassContext(target=made_for, settled=made_for, options=Options())
    sizes.with_sizes([op], REST, describe, None, context)
    return module, op, texts["loop-to-kernel"].split(",", 1)[1] + "," + texts["kernel-to-host"]


def grids(module, size):
    """The program instances, or points, of each kernel for a number of rows."""
    launches = [step for step in read_host_program(module, "main").steps
                if isinstance(step, P.Launch)]  # fmt: skip
    names = {name for step in launches for name in free_symbols(step.grid)}
    return [evaluate(step.grid, dict.fromkeys(names, size)) for step in launches]


@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_the_host_program_launches_the_kernel_of_a_size(target, monkeypatch):
    module, op, rest = module_with_sizes(Target.named(target), monkeypatch)
    variants = op.attributes["schedule"].entries.get("variants")
    assert [each.get("most").value for each in variants] == [16, 256]
    text = irc.print_op(module)
    assert irc.print_op(irc.parse(text)) == text
    PassManager.parse(rest, verify="each").run(module)
    functions = [o for o in module.walk() if isinstance(o, kernel.KernelFuncOp)]
    assert len(functions) == 3
    for size in (1, 16, 17, 256, 257, 5000):
        busy = [bool(grid) for grid in grids(module, size)]
        assert busy == [size <= 16, 16 < size <= 256, size > 256]


def test_results_are_right_at_each_size_and_in_the_interpreter(monkeypatch):
    module, _, rest = module_with_sizes(Target.host(), monkeypatch)
    before = module.clone()
    PassManager.parse(rest).run(module)
    program = irc.build(module)
    for rows in (2, 16, 17, 256, 257):
        x = torch.randn(rows, 100)
        torch.testing.assert_close(program(x)[0], softmax(x))
        torch.testing.assert_close(irc.run(module, x)[0], softmax(x))
    torch.testing.assert_close(irc.run(before, x)[0], softmax(x))


def test_results_are_right_in_tritons_interpreter(monkeypatch):
    module, _, rest = module_with_sizes(Target.named("sm_90"), monkeypatch)
    PassManager.parse(rest).run(module)
    with interpreted():
        program = irc.build(module)
        for rows in (2, 17):
            x = torch.randn(rows, 7)
            torch.testing.assert_close(program(x)[0], softmax(x))


def test_a_size_that_is_no_symbol_and_sums_into_an_array_have_one_schedule(monkeypatch):
    module = irc.trace(softmax, (torch.randn(64, 100),))
    made_for = carry(module, Target.named("avx2"))
    texts = pipeline.stages(made_for)
    PassManager.parse(",".join(texts[s] for s in UP_TO_LOOPS) + ",schedule").run(module)
    ops = [o for o in module.lookup("main").block.ops
           if isinstance(o, loop.ComputeOp | loop.GroupOp)]  # fmt: skip
    monkeypatch.setattr(sizes, "choose_all", None)
    sizes.with_sizes(ops, REST, describe, None, PassContext(settled=made_for))
    assert all(op.attributes["schedule"].entries.get("variants") is None for op in ops)


@pytest.mark.parametrize(
    "entries",
    [{"most": A.IntegerAttr(4)}, {"size": A.IntegerAttr(4), "most": A.IntegerAttr(4)}, {}],
)
def test_entries_for_no_size_are_refused(entries):
    with pytest.raises(ValueError, match="not entries with a size"):
        loop.ScheduleAttr("cpu", A.DictAttr({"variants": A.ArrayAttr([A.DictAttr(entries)])}))
