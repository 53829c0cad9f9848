"""Triton kernels of the user's in compiled programs: values, what they write, gradients, texts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch import fx
from torch.library import triton_op, wrap_triton

import irc
from irc.dialects import aten, host
from irc.dialects.aten import user_kernels
from irc.frontend.backend import Compiled, recording
from irc.ir.core import Operation
from irc.pipeline import lower
from tests.backends import needs_backend
from tests.frontend.user_kernels import (
    Launches,
    add_rows,
    as_on_gpu,
    cover,
    scaled_sum,
    twin,
)

pytestmark = [needs_backend, pytest.mark.fault("C6")]


@pytest.fixture
def launches() -> Iterator[Launches]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with as_on_gpu() as noted:
        yield noted
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], *, dynamic: bool = False) -> Callable[..., Any]:
    return torch.compile(function, backend="irc", fullgraph=True, dynamic=dynamic)


def fused(x: torch.Tensor, y: torch.Tensor | None, scale: float = 2.0) -> torch.Tensor:
    out = torch.empty_like(x)
    scaled_sum[cover(x.numel())](x, y, out, x.numel(), scale, BLOCK=8)
    return out


def added(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    rows, columns = target.shape
    step, across = target.stride()
    add_rows[(rows,)](target, source, rows, columns, step, across, BLOCK=16)
    return target


# -- values


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_kernel_between_operations_of_the_program(launches: Launches, dynamic: bool) -> None:
    """Twice in one program, once without y (None); its results die inside."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return fused(fused(x, x + 1) * 3, None, 0.5) - 1

    call = compiled(program, dynamic=dynamic)
    with recording() as found:
        for rows in (4, 7, 9) if dynamic else (4,):
            x = torch.randn(rows, 5)
            torch.testing.assert_close(call(x), (2 * x + 1) * 3 - 1)
    assert len(found) == 1 and found[0].executable.info.metrics["kernels"] == 3
    assert launches[:2] == ["scaled_sum"] * 2


def test_a_grid_without_blocks_and_one_of_three_dimensions(launches: Launches) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        scaled_sum[(3, 1, 1)](x, None, out, x.numel(), 2.0, 8)
        return out

    x = torch.randn(20)
    torch.testing.assert_close(compiled(program)(x), 2 * x)


def test_numbers_of_a_tensor(launches: Launches) -> None:
    """The scale is read from data when the program runs."""

    def program(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return fused(x, None, scale.item())

    x = torch.randn(12)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        call = compiled(program)
        for scale in (0.5, 3.0):
            torch.testing.assert_close(call(x, torch.tensor(scale)), scale * x)


def test_an_operand_that_repeats_its_elements(launches: Launches) -> None:
    """Its stride of 0 is what eager passes, though the program has all of its elements."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = (y.exp() + 1)[:, None].expand(4, 6)
        out = torch.empty_like(x)
        strided_sum[(4,)](x, rows, out, *rows.stride(), 6, BLOCK=8)
        return out

    x, y = torch.randn(4, 6), torch.randn(4)
    expected = x + (y.exp() + 1)[:, None]
    torch.testing.assert_close(compiled(program)(x, y), expected)
    assert launches.arguments["y"].stride() == (1, 0)


@triton.jit
def strided_sum(x, y, out, step, across, columns, BLOCK: tl.constexpr):
    row, places = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(y + row * step + places * across, mask=places < columns)
    value += tl.load(x + row * columns + places, mask=places < columns)
    tl.store(out + row * columns + places, value, mask=places < columns)


@pytest.mark.parametrize("above", [True, False])
def test_a_kernel_in_a_branch(launches: Launches, above: bool) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda x: fused(x, x + 1) * 3, lambda x: triple(x), (x,))
        return fused(y, None)

    x = torch.full((4, 5), 1.0 if above else -1.0)
    expected = (2 * x + 1) * 12 if above else 6 * x
    torch.testing.assert_close(compiled(program)(x), expected)
    assert launches == ["scaled_sum"] * 2


def test_a_frozen_weight_is_an_operand(launches: Launches) -> None:
    model = torch.nn.Linear(5, 4, bias=False)
    model.forward = lambda x: fused(x, model.weight) * 2  # type: ignore[method-assign]
    x = torch.randn(4, 5)
    with torch.no_grad():
        call = torch.compile(model.eval(), backend="irc", options={"freezing": True})
        torch.testing.assert_close(call(x), (x + model.weight) * 4)


def test_the_host_in_python_calls_it_too(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    x = torch.randn(4, 5)
    call = compiled(lambda x: fused(x * 2, x, 0.5) + 1, dynamic=True)
    with recording() as graphs:
        torch.testing.assert_close(call(x), 1.5 * x + 1)
    assert not graphs[0].executable.is_native and launches == ["scaled_sum"]


# -- what is written


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_argument_is_written_in_place(launches: Launches, dynamic: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return added(x, y + 1) * 2

    call = compiled(program, dynamic=dynamic)
    x, y = torch.randn(6, 9), torch.randn(6, 9)
    expected = x + y + 1
    result = call(x, y)
    torch.testing.assert_close(x, expected)
    torch.testing.assert_close(result, 2 * expected)
    assert launches.arguments["target"].data_ptr() == x.data_ptr()


def test_a_value_that_dies_is_written_where_it_is(launches: Launches) -> None:
    """Two kernels run on it, and nothing copies; where it is read later, one copy is made."""

    def dies(x: torch.Tensor) -> torch.Tensor:
        return added(added(x * 2, x), x) + 1

    def lives(x: torch.Tensor) -> torch.Tensor:
        doubled = x * 2
        return added(doubled.clone(), x) * doubled

    x = torch.randn(3, 4)
    for program, expected, copies in ((dies, 4 * x + 1, 0), (lives, 6 * x * x, 1)):
        with recording() as found:
            torch.testing.assert_close(compiled(program)(x), expected)
        made = on_the_host(found[0])
        assert sum(isinstance(op, host.HostCopyOp) for op in made) == copies
        assert found[0].executable.info.metrics["kernels"] == 2


def on_the_host(graph: Compiled) -> list[Operation]:
    """The operations of a compiled graph's host program."""
    assert graph.imported is not None
    module = graph.imported.module.clone()
    lower(module, functional=True, verify="each")
    return list(module.walk())


@pytest.mark.parametrize("part", [
    lambda x: x[1:3], lambda x: x[:, ::2], lambda x: x.t(), lambda x: x[::2, 1:],
])  # fmt: skip
@pytest.mark.parametrize("own", [False, True])
def test_a_view_is_written(launches: Launches, part: Callable[..., Any], own: bool) -> None:
    """Of an argument, or of what the program makes: seen through the whole, and others kept."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        whole = x * 3 if own else x
        added(part(whole), y)
        return whole + 1

    x = torch.randn(4, 6)
    y = torch.randn(part(x).shape)
    whole = x * 3 if own else x.clone()
    part(whole).add_(y)
    torch.testing.assert_close(compiled(program)(x, y), whole + 1)
    if not own:
        torch.testing.assert_close(x, whole)


def test_one_tensor_for_two_parameters(launches: Launches) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        scaled_sum[cover(y.numel())](y, y, y, y.numel(), 0.5, BLOCK=8)
        return y * 2

    x = torch.randn(11)
    torch.testing.assert_close(compiled(program)(x), 2 * x + 2)
    pointers = {v.data_ptr() for v in launches.arguments.values() if isinstance(v, torch.Tensor)}
    assert len(pointers) == 1


@triton.jit
def swap_halves(first, second, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    inside = places < n
    one, other = tl.load(first + places, mask=inside), tl.load(second + places, mask=inside)
    tl.store(first + places, other, mask=inside)
    tl.store(second + places, one, mask=inside)


@pytest.mark.parametrize("own", [False, True])
def test_two_views_of_one_tensor_are_written(launches: Launches, own: bool) -> None:
    """Apart from each other, and with elements in common: a write is seen through both."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        whole = x * 2 if own else x
        swap_halves[(1,)](whole[:4], whole[4:], 4, BLOCK=4)
        return whole + 0

    def shared(x: torch.Tensor) -> torch.Tensor:
        whole = x * 2 if own else x
        # What is written through the first is not lost to the second's old elements.
        swap_halves[(1,)](whole[2:], whole[:6], 2, BLOCK=2)
        return whole + 0

    x = torch.randn(8)
    start = x * 2 if own else x.clone()
    expected = torch.cat([start[4:], start[:4]])
    torch.testing.assert_close(compiled(halves)(x.clone()), expected)
    expected = torch.cat([start[2:4], start[:2], start[4:]])
    torch.testing.assert_close(compiled(shared)(x.clone()), expected)


def test_overlapping_elements_are_not_written(launches: Launches) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return added((x + 1).expand(4, 3), y)

    with pytest.raises(Exception, match="add_rows writes a tensor whose elements overlap"):
        compiled(program)(torch.randn(3), torch.randn(4, 3))


# -- kernels that are tuned


@triton.autotune([triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 16}, num_warps=8)], ["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + places, tl.load(x + places) + 1)
    else:
        tl.store(out + places, tl.load(x + places, mask=places < n) + 1, mask=places < n)


@pytest.mark.parametrize("size", [16, 19])
def test_a_tuned_kernel_has_a_grid_for_each_configuration(launches: Launches, size: int) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        tuned[cover(x.numel())](x, out, x.numel())
        return out * 2

    x = torch.randn(size)
    with recording() as found:
        torch.testing.assert_close(compiled(program)(x), 2 * x + 2)
    (call,) = [op for op in on_the_host(found[0]) if isinstance(op, host.CallAtenOp)]
    blocks = [triton.cdiv(size, 4), 1, 1, triton.cdiv(size, 16), 1, 1]
    assert aten.arguments_of(call)["grid"] == blocks


def test_warps_given_at_the_call(launches: Launches) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scaled_sum[(3,)](x, None, out, x.numel(), 2.0, BLOCK=8, num_warps=2)
        return out

    x = torch.randn(20)
    torch.testing.assert_close(compiled(program)(x), 2 * x)


# -- operators and gradients


@triton_op("irc_tests::triple", mutates_args={})
def triple(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(scaled_sum)[cover(x.numel())](x, None, out, x.numel(), 3.0, BLOCK=8)
    return out


triple.register_autograd(lambda context, gradient: triple(gradient))


@triton_op("irc_tests::add_to", mutates_args={"target"})
def add_to(target: torch.Tensor, source: torch.Tensor) -> None:
    rows, columns = target.shape
    wrap_triton(add_rows)[(rows,)](target, source, rows, columns, *target.stride(), BLOCK=16)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_triton_op(launches: Launches, dynamic: bool) -> None:
    """Its kernel is in the graph, its gradient too, and what it writes is known."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = triple(x.sin())
        add_to(y, x.detach())
        return z * 2

    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    expected = y + x.detach()
    with recording() as found:
        result = compiled(program, dynamic=dynamic)(x, y)
        result.sum().backward()
    torch.testing.assert_close(result, 6 * x.sin())
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(x.grad, 6 * x.detach().cos())
    assert sorted(launches) == ["add_rows", "scaled_sum", "scaled_sum"] and len(found) == 2


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(y)
        return fused(x * y, None)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        (y,) = context.saved_tensors
        return fused(gradient * y, None), None


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_autograd_function(launches: Launches, dynamic: bool) -> None:
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    result = compiled(lambda x, y: Doubled.apply(x.exp(), y).sum(), dynamic=dynamic)(x, y)
    result.backward()
    torch.testing.assert_close(result, (2 * x.exp() * y).sum())
    torch.testing.assert_close(x.grad, 2 * (x.exp() * y).detach())
    assert launches == ["scaled_sum"] * 2


# -- programs and their texts


def wrapped(x: torch.Tensor) -> torch.Tensor:
    """For irc.trace, which has no Dynamo."""
    y = x + 1
    wrap_triton(scaled_sum)[cover(y.numel())](x, y, y, y.numel(), 2.0, BLOCK=8)
    return y * 3


@pytest.mark.parametrize("dynamic", [False, True])
def test_traced_built_and_interpreted(launches: Launches, dynamic: bool) -> None:
    x = torch.randn(4, 5)
    expected = (2 * x + 1) * 6
    module = irc.trace(wrapped, (x,), dynamic=dynamic)
    text = str(module)
    assert "aten.extern.irc_triton.launch.default" in text
    assert "read = [#aten.operand<1>, #aten.operand<0>], written = [#aten.operand<0>]" in text
    again = irc.parse(text, trusted=True)
    assert str(again) == text
    torch.testing.assert_close(irc.run(again, x)[0], expected)
    torch.testing.assert_close(irc.compile(wrapped, (x,), dynamic=dynamic)(x), expected)
    assert launches == ["scaled_sum"] * 2


def test_a_text_names_no_code(launches: Launches) -> None:
    """One from elsewhere is refused; one that is trusted gets the kernels of this process only."""
    x = torch.randn(4)
    text = str(irc.trace(wrapped, (x,)))
    with pytest.raises(irc.UserError, match="isn't run from a text: it is an extension's"):
        irc.run(irc.parse(text), x)
    strange = irc.parse(text.replace("scaled_sum:", "scaled_sum:0"), trusted=True)
    with pytest.raises(irc.UserError, match="this process has no Triton kernel 'scaled_sum:0"):
        irc.run(strange, x)
    fewer = irc.parse(text.replace('grid = [1 : i64, 1 : i64, 1 : i64]', 'grid = [1 : i64]'),
                      trusted=True)  # fmt: skip
    with pytest.raises(irc.UserError, match="a grid of 1 sizes, not 3"):
        irc.run(fewer, x)
    assert not launches


def loaded(path: Path, text: str) -> Any:
    """A module of its own, from a file with this text."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = """
import triton
import triton.language as tl

LIMIT = tl.constexpr(4)

@triton.jit
def helper(x):
    return x + 1

@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(x + places, helper(tl.load(x + places)), mask=places < LIMIT)
"""


def test_keys_follow_the_content_of_kernels(tmp_path: Path) -> None:
    """Source, what it calls, globals, constants, configurations: as a second process has them."""

    def key(text: str = SOURCE, constants: Any = None, **how: Any) -> str:
        kernel = loaded(tmp_path / "kernels.py", text).kernel
        if how:
            kernel = triton.autotune([triton.Config({"BLOCK": 8}, **how)], [])(kernel)
        return user_kernels.register(kernel, constants or {"y": None, "n": 3, "dtype": tl.float16})

    assert key() == key() and key().startswith("kernel:")
    assert key(num_warps=2) == key(num_warps=2)
    others = [
        key(), key(SOURCE.replace("x + 1", "x + 2")), key(SOURCE.replace("(4)", "(5)")),
        key(SOURCE.replace("BLOCK)\n", "BLOCK) + 0\n")), key(constants={"n": 3}),
        key(constants={"n": 3.0}), key(constants={"n": True}), key(num_warps=2), key(num_warps=4),
    ]  # fmt: skip
    assert len(set(others)) == len(others)


def test_a_kernel_without_content_is_numbered(tmp_path: Path) -> None:
    """What prunes configurations is a function; a constant may be any object."""
    kernel = loaded(tmp_path / "kernels.py", SOURCE).kernel
    pruning = {"early_config_prune": lambda configs, named, **_: configs}
    first, second = (triton.autotune([triton.Config({"BLOCK": 8})], [], prune_configs_by=pruning)(
        kernel) for _ in range(2))  # fmt: skip
    keys = [user_kernels.register(k) for k in (first, second, first)]
    assert keys[0] == keys[2] != keys[1]
    constants = {"x": object()}
    assert user_kernels.register(kernel, constants) != user_kernels.register(kernel, constants)


def test_cached_programs_know_their_kernels_by_content(
    launches: Launches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same kernel hits, another constant misses, and each runs its own."""
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    x = torch.randn(20)
    hits = []
    for scale in (2.0, 2.0, 4.0):
        torch._dynamo.reset()
        irc.metrics.reset()
        call = compiled(lambda x, s=scale: fused(x, None, s) + 1)
        torch.testing.assert_close(call(x), scale * x + 1)
        hits.append(irc.metrics.cache_hits)
    assert hits == [0, 1, 0]


# -- refused


def test_a_compiled_kernel_gets_no_tensor_of_the_cpu() -> None:
    key = user_kernels.register(scaled_sum, {"y": None, "n": 4, "scale": 1.0, "BLOCK": 8})
    x = torch.ones(4)
    with pytest.raises(irc.UserError, match="scaled_sum is compiled for a GPU"):
        user_kernels.launch(key, ["out", "x"], [1, 1, 1], [x], [x], [])
    with pytest.raises(irc.UserError, match="scaled_sum names 1 operands and has 2"):
        user_kernels.launch(key, ["out"], [1, 1, 1], [x], [x], [])
    interpreted = user_kernels.register(twin(scaled_sum), {"y": None, "BLOCK": 8})
    names = ["out", "x", "n", "scale"]
    torch.ops.irc_triton.launch(interpreted, names, [1, 1, 1], [x], [x], [3, 2.5])
    assert x.tolist() == [2.5, 2.5, 2.5, 1.0]


def test_a_function_with_a_kernel_is_not_saved(launches: Launches) -> None:
    """Its graph has a number of this process; that of an operator has a name."""
    x = torch.randn(8)
    plain = torch.compile(lambda x: fused(x, None), backend="irc", fullgraph=True)
    with pytest.raises(Exception, match="calls a Triton kernel can't be saved"):
        plain.aot_compile(((x,), {}))
    named = torch.compile(lambda x: triple(x) + 1, backend="irc", fullgraph=True)
    torch.testing.assert_close(named.aot_compile(((x,), {}))(x), 3 * x + 1)


def test_descriptors_of_the_old_kind_are_refused_by_name() -> None:
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table as table
    from torch._subclasses import FakeTensorMode

    from irc.frontend.fx.user_kernels import take_kernels

    for metadata, why in (
        (("experimental", ([8], [4], 4)), r"\(x\) that isn't a triton.tools"),
        (("stable", ([None],)), r"\(x\) that has blocks of symbolic sizes"),
    ):
        graph = fx.Graph()
        x = graph.placeholder("x")
        with FakeTensorMode():
            x.meta["val"] = torch.empty(8)
        call = graph.call_function(torch.ops.higher_order.triton_kernel_wrapper_mutation, (), {
            "kernel_idx": table.add_kernel(scaled_sum),
            "constant_args_idx": table.add_constant_args({}), "grid": [(1, 1, 1)],
            "tma_descriptor_metadata": {}, "kwargs": {"x": x},
        })  # fmt: skip
        graph.output(x)
        module = fx.GraphModule(torch.nn.Module(), graph)
        call.kwargs = {**call.kwargs, "tma_descriptor_metadata": {"x": metadata}}
        with pytest.raises(irc.UserError, match=f"scaled_sum is given a TMA descriptor {why}"):
            take_kernels(module)


def test_the_operator_lets_go_of_its_operands() -> None:
    schema = aten.known_schema("irc_triton.launch.default", irc.parse("builtin.module {}"))
    assert schema is not None and not schema.may_keep and schema.is_mutable and schema.has_effect
    assert [a.name for a in schema.arguments if a.is_write] == ["written"]
