"""decompose-aten: values stay, sizes stay symbolic, what can't be decomposed says why."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402


def names(module):
    return {op.name for op in module.lookup("main").block.ops if op.name.startswith("aten.")}


def check(function, *args, dynamic=False, other=None):
    module = irc.trace(function, args, dynamic=dynamic)
    before = names(module)
    context = PassManager.parse("functionalize,decompose-aten", verify="each").run(module)
    for inputs in (args, other) if other else (args,):
        expected = function(*inputs)
        got = run(module, *inputs)[0]
        torch.testing.assert_close(got, expected)
    return before, names(module), context


def test_glu_and_huber_loss_become_smaller_operators():
    before, after, _ = check(
        lambda x: torch.nn.functional.huber_loss(torch.nn.functional.glu(x, -1), x[:, :4] * 2),
        torch.randn(3, 8),
    )
    assert {"aten.glu.default", "aten.huber_loss.default"} <= before
    assert not {"aten.glu.default", "aten.huber_loss.default"} & after


def test_sizes_stay_symbolic():
    torch.manual_seed(0)
    before, after, _ = check(
        lambda x: torch.nn.functional.prelu(x, torch.tensor(0.25)).tanh(),
        torch.randn(3, 7),
        dynamic=True,
        other=(torch.randn(5, 9),),
    )
    assert "aten._prelu_kernel.default" in before
    assert "aten._prelu_kernel.default" not in after


def test_mutation_stays_for_functionalize():
    module = irc.trace(lambda x: x.silu_() if hasattr(x, "silu_") else x.mul_(2), (torch.ones(3),))
    PassManager.parse("decompose-aten").run(module)
    assert any(n.endswith("_.Tensor") for n in names(module))


def test_a_slice_whose_strides_have_a_symbol_that_its_sizes_lack():
    def f(x):
        x[:, 3:7] = 1
        return x

    module = irc.trace(f, (torch.zeros(2, 9, 5),), dynamic=True)
    PassManager.parse("functionalize,decompose-aten", verify="each").run(module)
    x = torch.zeros(3, 11, 4)
    assert torch.equal(run(module, x.clone())[0], f(x.clone()))
