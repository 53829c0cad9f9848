"""The torch.compile backend: values, gradients, symbolic sizes, mutation, options."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from irc.frontend.importing.importer import import_graph
from irc.ir.diagnostics import UserError
from irc.options.options import Options, parse_options


def compiled(fn, **options):
    return torch.compile(fn, backend="irc", fullgraph=True, **options)


def test_inference_equals_eager_without_aten_calls_but_matrix_products(interpreted):
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3),
        torch.nn.Softmax(-1),
    )  # fmt: skip
    x = torch.randn(5, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))
    assert interpreted[0].calls() == ["aten.addmm.default", "aten.addmm.default"]


def test_gradients_equal_eager(interpreted):
    def fn(x, w):
        return torch.nn.functional.layer_norm(x @ w, (6,)).tanh().square().sum()

    x, w = torch.randn(5, 4, requires_grad=True), torch.randn(4, 6, requires_grad=True)
    expected = torch.autograd.grad(fn(x, w), (x, w))
    actual = torch.autograd.grad(compiled(fn)(x, w), (x, w))
    torch.testing.assert_close(actual, expected)
    assert len(interpreted) == 2


def test_one_program_serves_every_size(interpreted):
    fn = compiled(lambda x: (x[1:] * x.shape[0]).softmax(-1), dynamic=True)
    for rows, columns in ((4, 3), (7, 5), (9, 2)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(fn(x), (x[1:] * rows).softmax(-1))
    assert len(interpreted) == 1


def test_inputs_are_updated(interpreted):
    def fn(x, y):
        x.add_(y)
        return x * 2

    x, y = torch.randn(3), torch.randn(3)
    expected = x + y
    result = compiled(fn)(x, y)
    torch.testing.assert_close(x, expected)
    torch.testing.assert_close(result, expected * 2)
    assert "graph.update_input" in interpreted[0].names()


def test_data_dependent_sizes_and_their_assertions(interpreted):
    def fn(x, n):
        count = n.item()
        torch._check(count >= 1)
        torch._check(count <= 10)
        return torch.ones(count, count) * x, x.nonzero()

    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        run = compiled(fn)
        square, places = run(torch.tensor([2.0]), torch.tensor(3))
        assert square.shape == (3, 3) and places.tolist() == [[0]]
        with pytest.raises(RuntimeError, match="<= 10"):
            run(torch.tensor([2.0]), torch.tensor(50))


def test_a_part_whose_place_depends_on_data(interpreted):
    run = compiled(lambda x, n: x.narrow(0, n, 2))
    x, n = torch.arange(5.0), torch.tensor(-3)
    torch.testing.assert_close(run(x, n), x.narrow(0, n, 2))


def test_views_by_sizes_of_the_caller_share_memory():
    # torch shows the last size as the quotient of x's and the two others.
    run = compiled(lambda x, a, b: x.unflatten(0, (a, b, -1)), dynamic=True)
    x = torch.arange(24.0)
    view = run(x, 2, 3)
    assert view.stride() == (12, 4, 1) and view.data_ptr() == x.data_ptr()


def test_symbolic_numbers_become_scalars(interpreted):
    fn = compiled(lambda x, n: (x + int(n * 0.2) + 1, x / n**0.5), dynamic=True)
    for n in (5, 8):
        x = torch.randn(3)
        torch.testing.assert_close(fn(x, n), (x + int(n * 0.2) + 1, x / n**0.5))


def test_random_numbers_are_those_of_eager(interpreted):
    def fn(x):
        return torch.nn.functional.dropout(x, 0.4) + torch.rand(4)

    x = torch.randn(4)
    torch.manual_seed(3)
    expected = fn(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(fn)(x), expected)


def test_narrow_floats_are_computed_wide(interpreted):
    x = torch.randn(64).bfloat16()
    result = compiled(lambda x: (x * 1.01).exp().sum())(x)
    exact = (x.double() * 1.01).exp().sum()
    assert abs(result.double() - exact) <= abs((x * 1.01).exp().sum().double() - exact) + 1e-2
    casts = [op for op in interpreted[0].module.walk() if op.name == "graph.cast"]
    assert casts


def test_none_and_numbers_among_outputs(interpreted):
    def fn(x):
        return x + 1, None, x.shape[0], (x * 2, 7)

    fn_compiled = compiled(fn, dynamic=True)
    total, nothing, size, (double, seven) = fn_compiled(torch.ones(3))
    assert nothing is None and size == 3 and seven == 7
    assert total.tolist() == [2, 2, 2] and double.tolist() == [2, 2, 2]


def test_unknown_options_and_modes_are_named():
    with pytest.raises(UserError, match="did you mean 'freezing'"):
        parse_options(None, {"freezin": True})
    with pytest.raises(UserError, match="is bool, not 'yes'"):
        parse_options(None, {"freezing": "yes"})
    with pytest.raises(UserError, match="did you mean 'max-autotune'"):
        parse_options("max-autotun")
    assert parse_options("max-autotune").max_autotune
    assert parse_options(None, {"triton.cudagraphs": True}).cuda_graphs
    assert Options().replace(freezing=True).freezing


def test_other_higher_order_operators_are_refused_by_name():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    made = graph.call_function(torch.ops.higher_order.run_const_graph, (x,))
    x.meta["val"] = made.meta["val"] = torch.ones(3)
    graph.output((made,))
    with pytest.raises(UserError, match="higher-order operator run_const_graph is not supported"):
        import_graph(torch.fx.GraphModule({}, graph))


def test_importing_irc_imports_no_torch_and_registers_the_backend():
    code = (
        "import sys, irc; assert 'torch' not in sys.modules; import torch._dynamo as d;"
        "assert 'irc' in d.list_backends(exclude_tags=None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
