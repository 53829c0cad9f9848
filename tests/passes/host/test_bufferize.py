"""Memory for arrays: reuse in place, updated arguments, views, calls, what escapes."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import aten, graph, host, layout
from irc.dialects.host.memory import Aliases
from irc.interp.core import run
from irc.ir import attributes as A
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import i64
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import Program, read, tensor

LOWER = "schedule{vector_bits=512},form-kernels,bufferize,plan-memory"


def unary(p, x, name="math.exp"):
    return p.compute(x.type.shape, lambda c: c.op(name, read(c, x)))


def row_sums(p, x):
    from irc.ir.types import f32

    return p.compute(x.type.shape, lambda c: read(c, x), ("sum", f32), red=(1,))


def call(p, callee, operands, to, **arguments):
    entries = A.DictAttr(arguments)
    return p.builder.value(
        graph.CallAten, operands, callee=callee, arguments=entries, result_types=to
    )


def lowered(module):
    PassManager.parse(LOWER, verify="each").run(module)
    return module.lookup("main")


def operations(function, cls):
    return [op for op in function.block.ops if isinstance(op, cls)]


def check(make, *inputs):
    """The host program gives what the loop program gives, interpreted and native, updated
    inputs included."""
    expected_inputs = [t.clone() for t in inputs]
    wanted = run(make(), *expected_inputs)
    module = make()
    function = lowered(module)
    for execute in (lambda *a: run(module, *a), irc.build(module, target="llvm")):
        arguments = [t.clone() for t in inputs]
        got = execute(*arguments)
        got = list(got) if isinstance(got, list | tuple) else [] if got is None else [got]
        torch.testing.assert_close(got, list(wanted), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(arguments, expected_inputs, rtol=1e-5, atol=1e-5)
    return function


def test_a_chain_reuses_memory_in_place():
    def make():
        p = Program(tensor(8, 300))
        a = unary(p, p.args[0], "math.sin")
        b = unary(p, a)
        return p.finish(unary(p, b, "math.tanh"))

    function = check(make, torch.randn(8, 300))
    (only,) = operations(function, host.AllocOp)
    assert only.escapes


def test_no_reuse_while_the_input_is_still_read():
    def make():
        p = Program(tensor(8, 300))
        a = unary(p, p.args[0], "math.sin")
        b = unary(p, a)
        return p.finish(b, row_sums(p, a))

    function = check(make, torch.randn(8, 300))
    assert len(operations(function, host.AllocOp)) == 3


def test_no_reuse_of_memory_with_a_live_view():
    def make():
        p = Program(tensor(8, 300))
        a = unary(p, p.args[0], "math.sin")
        view = p.builder.value(layout.ViewOp, a, offset=300, result_types=tensor(4, 300))
        b = unary(p, a)
        return p.finish(b, unary(p, view))

    check(make, torch.randn(8, 300))


@pytest.mark.fault("V19")
@pytest.mark.parametrize("both", [False, True])
def test_no_reuse_of_memory_that_the_kernel_reads_as_another_input_too(both):
    """out[i, j] = exp(a[i, j]) + row[j], where row is the first row of a, or of another array."""

    def make():
        p = Program(tensor(8, 300))
        a = unary(p, p.args[0], "math.sin")
        other = a if both else unary(p, p.args[0], "math.cos")
        row = p.builder.value(layout.ViewOp, other, offset=0, result_types=tensor(300))
        made = p.compute(
            (8, 300),
            lambda c: c.op("arith.addf", c.op("math.exp", read(c, a)), c.read(row, [axis(1)])),
        )
        return p.finish(made)

    function = check(make, torch.randn(8, 300, generator=torch.Generator().manual_seed(0)))
    assert len(operations(function, host.AllocOp)) == 2


def test_a_returned_view_keeps_its_memory_out_of_the_arena():
    def make():
        p = Program(tensor(8, 300))
        a = unary(p, p.args[0], "math.sin")
        view = p.builder.value(
            layout.ViewOp, a, offset=0, result_types=tensor(300, 8, strides=(1, 300))
        )
        return p.finish(view)

    function = check(make, torch.randn(8, 300))
    (only,) = operations(function, host.AllocOp)
    assert only.escapes and only.offset is None


def test_an_argument_is_updated_without_a_copy():
    def make():
        p = Program(tensor(8, 300))
        new = unary(p, p.args[0], "math.sin")
        p.builder.create(graph.UpdateInput, new, argument=0)
        return p.finish()

    function = check(make, torch.randn(8, 300))
    assert not operations(function, host.HostCopyOp) and not operations(function, host.AllocOp)


def test_an_argument_that_is_read_later_is_updated_at_the_end():
    def make():
        p = Program(tensor(8, 300))
        new = unary(p, p.args[0], "math.sin")
        other = row_sums(p, p.args[0])
        p.builder.create(graph.UpdateInput, new, argument=0)
        return p.finish(other)

    function = check(make, torch.randn(8, 300))
    assert len(operations(function, host.HostCopyOp)) == 1


def test_a_result_that_is_also_an_update_has_memory_of_its_own():
    def make():
        p = Program(tensor(8, 300))
        new = unary(p, p.args[0], "math.sin")
        p.builder.create(graph.UpdateInput, new, argument=0)
        return p.finish(new)

    check(make, torch.randn(8, 300))


def test_arguments_swap():
    def make():
        p = Program(tensor(8), tensor(8))
        p.builder.create(graph.UpdateInput, p.args[1], argument=0)
        p.builder.create(graph.UpdateInput, p.args[0], argument=1)
        return p.finish()

    module = make()
    lowered(module)
    exe = irc.build(module, target="llvm")
    a, b = torch.randn(8), torch.randn(8)
    x, y = a.clone(), b.clone()
    exe(x, y)
    assert torch.equal(x, b) and torch.equal(y, a)


def test_calls_between_kernels():
    square = tensor(6, 6)

    def make():
        p = Program(square)
        a = unary(p, p.args[0], "math.sin")
        product = call(
            p, "aten.mm.default", [a, p.args[0]], square,
            self=aten.OperandAttr(0), mat2=aten.OperandAttr(1),
        )  # fmt: skip
        b = unary(p, product, "math.tanh")
        c = p.compute((6, 6), lambda c: c.op("arith.addf", read(c, a), read(c, b)))
        return p.finish(c)

    check(make, torch.randn(6, 6))


def test_a_call_that_returns_a_view_keeps_its_operand_alive():
    def make():
        p = Program(tensor(6, 8))
        a = unary(p, p.args[0], "math.sin")
        view = call(
            p, "aten.t.default", [a], tensor(8, 6, strides=(1, 8)), self=aten.OperandAttr(0)
        )
        b = unary(p, p.args[0], "math.cos")
        c = unary(p, b, "math.tanh")
        d = p.compute(
            (6, 8),
            lambda code: code.op(
                "arith.addf",
                read(code, view, *reversed(indices(2))),
                read(code, c),
            ),
        )
        return p.finish(d)

    check(make, torch.randn(6, 8))


def indices(rank):
    from irc.passes.common.bodies import axes_of

    return axes_of(rank)


def test_items_and_scalars():
    def make():
        p = Program(tensor(1, e=i64))
        number = p.builder.value(graph.Item, p.args[0], result_types=None)
        return p.finish(p.builder.value(graph.FromScalar, number))

    module = make()
    lowered(module)
    (got,) = irc.build(module, target="llvm")(torch.tensor([7]))
    assert got.item() == 7 and got.dtype == torch.int64


def test_symbolic_sizes():
    def make():
        x = tensor(symbol("s0"), symbol("s1"))
        p = Program(x, minimum=1)
        a = unary(p, p.args[0], "math.sin")
        s = row_sums(p, a)
        return p.finish(unary(p, a), s)

    check(make, torch.randn(5, 70))


def test_what_has_no_place_is_an_error():
    p = Program(tensor(4))
    b = p.builder.value(graph.Copy, p.args[0])
    module = p.finish(b)
    with pytest.raises(irc.InvalidIR, match="graph.copy"):
        PassManager.parse("bufferize").run(module)


def test_a_value_for_an_update_is_kept_until_the_end():
    def make():
        p = Program(tensor(8, 300))
        new = unary(p, p.args[0], "math.sin")
        p.builder.create(graph.UpdateInput, new, argument=0)
        return p.finish(unary(p, new), row_sums(p, p.args[0]))

    check(make, torch.randn(8, 300))


def remarks(function, *arguments) -> list[str]:
    """What bufferize says about a function."""
    context = PassManager.parse("lower-to-cpu").run(irc.trace(function, arguments))
    return [r.message for r in context.remarks if r.pass_name == "bufferize"]


def test_it_says_why_a_result_has_memory_of_its_own():
    (found,) = remarks(lambda x: x + 1, torch.randn(4, 6))
    assert found.startswith("result 0 is not computed in the memory of %")
    assert found.endswith(": it is not the program's own")

    def used_later(x):
        y = x @ x
        return torch.exp(y) @ y

    assert any(m.endswith("it is used later") for m in remarks(used_later, torch.randn(6, 6)))


def test_it_says_why_an_argument_is_updated_by_a_copy():
    def flipped(x):
        x.copy_(x.flip(0) * 2)

    def product(x):
        x.copy_(x.view(-1)[:36].view(6, 6) @ x)

    def in_place(x):
        x.add_(1)

    (found,) = remarks(flipped, torch.randn(6, 6))
    assert found == "argument 0 is copied to: its kernel reads old elements at other points than " \
                    "it writes new ones"  # fmt: skip
    assert remarks(product, torch.randn(6, 6)) == [
        "argument 0 is copied to: no kernel computes what it gets"
    ]
    assert not remarks(in_place, torch.randn(6, 6))


def looked_up(parameters: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often `bufferize` asks for the memory of a value, in a step over so many parameters."""

    def step(*tensors):
        for parameter, gradient in zip(tensors[::2], tensors[1::2], strict=True):
            parameter.sub_(gradient * 0.1)

    module = irc.trace(step, [torch.randn(2, 3) for _ in range(2 * parameters)])
    PassManager.parse("functional,convert-aten-to-graph,assign-layouts,insert-layout-copies,"
                      "convert-to-loop,cse,dce,schedule,form-kernels").run(module)  # fmt: skip
    count, of = 0, Aliases.of

    def counted(self, value):
        nonlocal count
        count += 1
        return of(self, value)

    with monkeypatch.context() as patch:
        patch.setattr(Aliases, "of", counted)
        context = PassManager.parse("bufferize").run(module)
    assert context.statistics["bufferize", "updates without a copy"] == parameters
    return count


@pytest.mark.fault("K8")
def test_work_grows_with_the_updated_arguments(monkeypatch):
    few, many = looked_up(20, monkeypatch), looked_up(80, monkeypatch)
    assert many <= 4.2 * few
