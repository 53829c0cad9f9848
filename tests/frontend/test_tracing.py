"""`irc.trace` and `irc.compile`: programs of functions and modules without Dynamo."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import sym
from irc.ir.location import file_positions


def function_of(module):
    return module.lookup("main")


def test_trace_keeps_mutation_views_and_strides():
    def fn(x):
        y = x.t()
        y.mul_(2)
        return y.reshape(-1), x

    module = irc.trace(fn, (torch.ones(2, 3),))
    irc.verify(module)
    names = [op.name for op in module.walk()]
    assert "aten.mul_.Tensor" in names and "aten.t.default" in names
    transposed = next(op for op in module.walk() if op.name == "aten.t.default")
    assert transposed.results[0].type.strides == (1, 3)
    x = torch.ones(2, 3)
    flat, same = irc.run(module, x)
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]] and flat.tolist() == [2] * 6
    info = function_of(module).result_info
    assert info[1].get("alias_of").value == 0


def test_trace_binds_symbols_with_ranges_and_hints():
    module = irc.trace(lambda x: x * 2, (torch.ones(3, 5),), dynamic=True)
    binders = [op for op in module.walk() if isinstance(op, sym.BindSizeOp)]
    assert [(b.dim, b.hint, b.minimum) for b in binders] == [(0, 3, 2), (1, 5, 2)]


def test_parameters_come_first_and_are_named():
    module = irc.trace(torch.nn.Linear(2, 3), (torch.ones(4, 2),))
    info = function_of(module).arg_info
    assert [i.get("name").value for i in info] == ["weight", "bias", "arg0"]
    assert [i.get("kind").value for i in info] == ["parameter", "parameter", "input"]


def test_operations_know_the_line_of_the_model():
    def fn(x):
        return x.sin()

    module = irc.trace(fn, (torch.ones(2),))
    sine = next(op for op in module.walk() if op.name == "aten.sin.default")
    assert file_positions(sine.location)[0].filename.endswith("test_tracing.py")


def test_compile_runs_modules_and_checks_guards(interpreted):
    model = torch.nn.Linear(4, 3)
    program = irc.compile(model, (torch.randn(5, 4),), dynamic=True)
    for rows in (5, 2, 9):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(program(x), model(x).detach())
    assert program.module.lookup("main") is not None

    def fn(x):
        return x + 1 if x.shape[0] % 2 == 0 else x

    even = irc.compile(fn, (torch.ones(4),), dynamic=True)
    assert even(torch.ones(6)).tolist() == [2] * 6
    with pytest.raises(RuntimeError):
        even(torch.ones(5))


def test_compile_returns_nested_outputs_and_updates_inputs(interpreted):
    def fn(x):
        x.add_(1)
        return {"a": x.view(-1), "b": [x * 2, 3]}

    program = irc.compile(fn, (torch.zeros(2, 2),))
    x = torch.zeros(2, 2)
    out = program(x)
    assert x.tolist() == [[1, 1], [1, 1]]
    assert out["a"].tolist() == [1] * 4 and out["b"][0].tolist() == [[2, 2], [2, 2]]
    assert out["b"][1] == 3
