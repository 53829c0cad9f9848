"""One program with schedules for several sizes, among which its host program chooses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.dialects import kernel, loop  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
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
#: What is the fastest up to FEW and from MANY rows on, by target: entries of schedules of the
#: operation and its members.
FEW, MANY = 16, 256
WINNERS = {"cpu": {FEW: ("", ("lanes = 4 : i64", "copies = 2 : i64")),
                   MANY: ("", ("lanes = 8 : i64", "", "lanes = 8 : i64"))},
           "gpu": {FEW: ("num_warps = 1 : i64", ()),
                   MANY: ("num_warps = 8 : i64", ())}}  # fmt: skip


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
            size = dict(problem.sizes)[leading]
            if FEW < size < MANY:
                found.append(Candidate())
                continue
            top, members = WINNERS[kind][FEW if size <= FEW else MANY]
            texts = [f"#loop.schedule<{kind}, {text}>" if text else "" for text in (top, *members)]
            found.append(Candidate("irc", texts[0], tuple(texts[1:])))
        return found

    monkeypatch.setattr(sizes, "choose_all", choose_all)
    context = PassContext(target=made_for, settled=made_for, options=Options())
    sizes.with_sizes([op], REST, describe, None, context)
    return module, op, texts["loop-to-kernel"].split(",", 1)[1] + "," + texts["kernel-to-host"]


def runs(module, size):
    """Which launches run for a number of rows."""
    launches = [step for step in read_host_program(module, "main").steps
                if isinstance(step, P.Launch)]  # fmt: skip
    return [step.when is None or step.when.holds(size) for step in launches]


@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_the_host_program_launches_the_kernel_of_a_size(target, monkeypatch):
    module, op, rest = module_with_sizes(Target.named(target), monkeypatch)
    variants = op.attributes["schedule"].entries.get("variants")
    assert [each.get("most").value for each in variants] == [22, 181]  # of 16 to 32, 128 to 256
    text = irc.print_op(module)
    assert irc.print_op(irc.parse(text)) == text
    PassManager.parse(rest, verify="each").run(module)
    functions = [o for o in module.walk() if isinstance(o, kernel.KernelFuncOp)]
    assert len(functions) == 3
    for size in (1, 22, 23, 181, 182, 5000):
        assert runs(module, size) == [size <= 22, 22 < size <= 181, size > 181]


def test_results_are_right_at_each_size_and_in_the_interpreter(monkeypatch):
    module, _, rest = module_with_sizes(Target.host(), monkeypatch)
    before = module.clone()
    PassManager.parse(rest).run(module)
    program = irc.build(module)
    for rows in (2, 22, 23, 181, 182):
        x = torch.randn(rows, 100)
        torch.testing.assert_close(program(x)[0], softmax(x))
        torch.testing.assert_close(irc.run(module, x)[0], softmax(x))
    torch.testing.assert_close(irc.run(before, x)[0], softmax(x))


def test_results_are_right_in_tritons_interpreter(monkeypatch):
    module, _, rest = module_with_sizes(Target.named("sm_90"), monkeypatch)
    PassManager.parse(rest).run(module)
    with interpreted():
        program = irc.build(module)
        for rows in (2, 23):
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


class Weight(torch.nn.Module):
    """A product with a weight of a constant size."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24, 40))

    def forward(self, x):
        return x @ self.weight


def product_of_rows(monkeypatch, entries, rows=64):
    """A product of any number of rows with a constant number of columns, on a CPU, where these
    entries of a schedule are the fastest of few rows; what was measured at the sizes beside."""
    module = irc.trace(Weight(), (torch.randn(rows, 24),), dynamic=True)
    made_for = carry(module, Target.host())
    texts = pipeline.stages(made_for)
    before = ["functional", "aten-to-graph", "choose-contractions{products=IRC}"]
    after = [texts[s] for s in ("graph-to-layout", "layout-to-loop", "fuse-loops")]
    PassManager.parse(",".join([*before, *after, "schedule"])).run(module, PassContext())
    (op,) = (o for o in module.lookup("main").block.ops
             if isinstance(o, loop.ComputeOp | loop.GroupOp))  # fmt: skip
    measured = []

    def choose_all(asked, context):
        winners = []
        for problem, candidates in asked:
            size = dict(problem.sizes)[sizes.leading_symbol(op)]
            measured.append((size, [each.schedule for each in candidates]))
            fast = next((c for c in candidates if entries in c.schedule), Candidate())
            winners.append(fast if size <= FEW else Candidate())
        return winners

    monkeypatch.setattr(sizes, "choose_all", choose_all)
    context = PassContext(target=made_for, settled=made_for, options=Options())
    sizes.with_sizes([op], REST, describe, None, context)
    rest = texts["loop-to-kernel"].split(",", 1)[1] + "," + texts["kernel-to-host"]
    return module, op, rest, measured


def test_a_product_on_a_cpu_has_kernels_by_its_rows(monkeypatch):
    module, op, rest, measured = product_of_rows(monkeypatch, "tile_rows")
    (variant,) = op.attributes["schedule"].entries.get("variants")
    assert variant.get("most").value == 22 and variant.get("tile_rows") is not None
    assert {size for size, _ in measured} == {4, 1024, 16, 32}
    PassManager.parse(rest, verify="each").run(module)
    program = irc.build(module)
    for rows in (2, 3, 22, 23, 100):
        x, w = torch.randn(rows, 24), torch.randn(24, 40)
        torch.testing.assert_close(program(w, x)[0], x @ w)


def test_a_product_by_its_rows_may_pack_other_arrays(monkeypatch):
    _, op, _, _ = product_of_rows(monkeypatch, "tile_rows")
    packs = op.attributes["schedule"].entries.get("pack_right").value
    other = f"pack_right = {str(not packs).lower()}"
    module, op, rest, measured = product_of_rows(monkeypatch, other)
    assert other in "".join(text for _, candidates in measured for text in candidates)
    (variant,) = op.attributes["schedule"].entries.get("variants")
    assert variant.get("pack_right").value is not packs
    PassManager.parse(rest, verify="each").run(module)
    program = irc.build(module)
    for rows in (2, 22, 23, 100):
        x, w = torch.randn(rows, 24), torch.randn(24, 40)
        torch.testing.assert_close(program(w, x)[0], x @ w)
