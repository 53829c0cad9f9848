"""Arrays that are put together of pieces: made in place where they can be, with eager's values."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

import irc
from irc.dialects import host
from irc.interp.core import run as interpreted
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.printer import print_op
from irc.pipeline import pipeline_text
from irc.target import Target


def host_program(function, arguments):
    module = irc.trace(function, arguments)
    manager = PassManager.parse(f"functional,{pipeline_text()}", verify="each")
    manager.run(module, PassContext(target=Target.named("avx2")))
    return Counter(type(op) for op in module.lookup("main").block.ops)


def agree(function, *arguments):
    """The values and strides of a compiled call, and those of the graph, are eager's."""
    inputs = [a.clone() for a in arguments]
    expected = function(*inputs)
    own = [a.clone() for a in arguments]
    got = irc.compile(function, arguments)(*own)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(own, inputs, rtol=0, atol=0, equal_nan=True)
    for one, other in zip(torch.utils._pytree.tree_leaves(got),
                          torch.utils._pytree.tree_leaves(expected), strict=True):  # fmt: skip
        assert one.stride() == other.stride()


def running_sums(steps, dim=1):
    def f(x):
        out, total = torch.zeros_like(x), torch.zeros_like(x.select(dim, 0))
        for step in range(steps):
            total = total + x.select(dim, step)
            out.select(dim, step).copy_(total)
        return out

    return f


@pytest.mark.parametrize("dim", [0, 1])
def test_slices_in_a_row_are_one_array_that_few_launches_fill(dim):
    shape = [33, 33, 8]
    x = torch.randn(shape)
    found = host_program(running_sums(33, dim), (x,))
    assert found[host.AllocOp] == 1 and found[host.LaunchOp] <= 2
    assert found[host.HostCopyOp] == 0
    agree(running_sums(33, dim), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, torch.bool, torch.float64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_stacks_of_every_dtype(dtype, dim):
    def f(x, y):
        parts = [(x + k) if dtype is not torch.bool else x ^ (k % 3 == 0) for k in range(20)]
        return torch.stack([*parts, y], dim), torch.cat([*parts, y], min(dim, 1))

    x, y = torch.randn(2, 37, 11).to(dtype)
    agree(f, x, y)


@pytest.mark.parametrize("seed", range(6))
def test_writes_in_any_order_over_one_another(seed):
    draw = random.Random(seed)
    places = [(draw.randrange(40), draw.randint(0, 6)) for _ in range(30)]

    def f(x, base):
        out = base.clone()
        for number, (start, size) in enumerate(places):
            out[:, start : start + size] = x[:, start : start + size] * (number + 1)
            if number % 7 == seed:
                x = x + out.sum()
        return out

    agree(f, torch.randint(-3, 4, (9, 40)).double(), torch.randint(-3, 4, (9, 40)).double())


def wide(x):
    """Thirty pieces of a hundred elements each."""
    return [x * (k + 1) for k in range(30)]


def test_pieces_that_are_wanted_elsewhere_too():
    def returned(x):
        parts = wide(x)
        return torch.cat(parts), parts[3], parts[7].t()

    def twice(x):
        parts = wide(x)
        return torch.cat(parts), torch.cat([*parts, parts[2]], 1)

    def repeated(x):
        parts = wide(x)
        return torch.cat([*parts, parts[5], parts[5]])

    def read(x):
        parts = wide(x)
        return torch.cat(parts), parts[3].sum(0), torch.mm(parts[4], parts[5].t())

    def arguments(x, y):
        return torch.cat([*wide(x), y, y[:3], x])

    def updated(x, y):
        parts = wide(x)
        y.copy_(parts[9])
        return torch.cat(parts)

    def nested(x):
        inner = torch.cat(wide(x)).relu()
        return torch.cat([inner, *wide(x.abs())]), inner

    x, y = torch.randint(-4, 5, (10, 10)).float(), torch.randint(-4, 5, (10, 10)).float()
    for function in (returned, twice, repeated, read, nested):
        agree(function, x)
    for function in (arguments, updated):
        agree(function, x, y)


def test_the_array_is_read_and_written_again():
    def f(x):
        whole = torch.cat(wide(x))
        whole[5:9] = whole[1:5] * 2
        return whole.sum(1), whole.relu_()

    agree(f, torch.randint(-4, 5, (10, 10)).float())


def test_pieces_of_nothing_and_of_one_row():
    def f(x):
        parts = [x[:k] * 2.0 for k in range(16)]
        return torch.cat([*parts, *parts[::-1]])

    agree(f, torch.randn(16, 40))
    agree(lambda x: torch.cat([p * 3 for p in x.split(1, 1)] * 2, 1), torch.randn(200, 17))


def test_values_that_are_nan_or_infinite():
    x = torch.tensor([float("nan"), float("inf"), -0.0, 0.0] * 50)
    agree(lambda x: torch.stack([x * (k - 10) for k in range(20)], 1), x)


def test_gradients_through_slices_that_are_written():
    x = torch.randn(5, 24, 16, dtype=torch.float64, requires_grad=True)
    f = running_sums(24)
    (expected,) = torch.autograd.grad(f(x).square().sum(), x)
    (got,) = torch.autograd.grad(torch.compile(f, backend="irc")(x).square().sum(), x)
    torch.testing.assert_close(got, expected)


def test_a_size_that_is_not_known_beside_the_joined_one():
    f = running_sums(30)
    compiled = torch.compile(f, backend="irc", dynamic=True)
    for rows in (3, 70, 5):
        x = torch.randn(rows, 30, 8)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(x, 1)
        torch._dynamo.mark_static(x, 2)
        torch.testing.assert_close(compiled(x), f(x), rtol=0, atol=0)


def test_sizes_that_are_not_known_keep_the_choice_of_a_piece():
    def f(*parts):
        return torch.cat([p * 2 for p in parts], 1)

    compiled = torch.compile(f, backend="irc", dynamic=True)
    for rows in (3, 70):
        parts = [torch.randn(rows, 4 + k % 3) for k in range(20)]
        torch.testing.assert_close(compiled(*parts), f(*parts), rtol=0, atol=0)


# -- joins of what is joined


def rolled(x):
    return torch.roll(x, (3, -2), (1, 2))


def test_an_image_rolled_along_two_axes_is_one_array_without_copies():
    x = torch.randn(2, 14, 14, 128)
    counts = host_program(rolled, (x,))
    assert counts[host.AllocOp] == 1 and counts[host.HostCopyOp] == 0
    assert counts[host.HostViewOp] == 6
    agree(rolled, x)


def test_an_image_rolled_along_three_axes_is_one_array_without_copies():
    def f(x):
        return torch.roll(x, (1, 3, -2), (0, 1, 2))

    x = torch.randn(3, 14, 14, 128)
    counts = host_program(f, (x,))
    assert counts[host.AllocOp] == 1 and counts[host.HostCopyOp] == 0
    agree(f, x)


def test_a_rolled_image_that_is_changed_or_read_afterwards():
    def changed(x):
        whole = rolled(x)
        most = whole.amax(3)
        return whole.mul_(2), most, rolled(whole)

    def updated(x):
        x.copy_(rolled(x))
        return x.sum(1)

    def passed(x):
        whole = rolled(x)
        return whole[:, :3], torch.cat([whole, x], 1), whole.view(2, -1)

    x = torch.randint(-4, 5, (2, 14, 14, 128)).float()
    for function in (changed, updated, passed):
        agree(function, x)


def piece(name, rows, columns, strides, what="x", factor=2.0):
    """A map of the leading part of an argument."""
    return f"""%{name} = loop.compute par(i: {rows}, j: {columns}) -> map {{
      %v = loop.read %{what}[i, j] : f32
      %c = arith.constant {factor} : f32
      %m = arith.mulf %v, %c : f32
      loop.yield %m }} : tensor<[{rows}, {columns}] x f32, strides {strides}>
    """


def join(name, dim, result, *pieces):
    """A join of pieces, each (name, its type)."""
    names, types = (", ".join(each) for each in zip(*pieces, strict=True))
    return f"%{name} = layout.join {names} {{dim = {dim} : i64}} : ({types}) -> {result}\n"


def type_(rows, columns, step=10):
    return f"tensor<[{rows}, {columns}] x f32, strides [{step}, 1]>"


P_Q = piece("p", 3, 4, [10, 1]) + piece("q", 3, 6, [10, 1], factor=3.0)
INNER = P_Q + join("i", 1, type_(3, 10), ("%p", type_(3, 4)), ("%q", type_(3, 6)))
R = piece("r", 5, 10, [10, 1], factor=4.0)
I_R = ("%i", type_(3, 10)), ("%r", type_(5, 10))
OUTER = R + join("y", 0, type_(8, 10), *I_R)
READ = """%s = loop.compute par(i: 3) red(j: 10) -> reduce(sum, f32) {
      %v = loop.read %i[i, j] : f32
      loop.yield %v } : tensor<[3] x f32, strides [1]>
    """
SUMS = ("%s", "tensor<[3] x f32, strides [1]>")
Y = ("%y", type_(8, 10))
# The body, the results, how many arrays are allocated, how many pieces are copied.
NESTED = {
    "one in the other": (INNER + OUTER, [Y], 1, 0),
    "the inner one is a result too": (INNER + OUTER, [Y, I_R[0]], 2, 1),
    "a piece of the inner one is a result": (INNER + OUTER, [Y, ("%q", type_(3, 6))], 2, 1),
    "the inner one is read": (INNER + READ + OUTER, [Y, SUMS], 2, 0),
    "the inner one is read behind the outer one": (INNER + OUTER + READ, [Y, SUMS], 2, 0),
    "the inner one is there twice": (
        INNER + join("y", 0, type_(6, 10), I_R[0], I_R[0]), [("%y", type_(6, 10))], 2, 2),
    "the inner one is in two": (
        INNER + OUTER + join("z", 0, type_(8, 10), *I_R[::-1]), [Y, ("%z", type_(8, 10))], 4, 4),
    "the inner one's strides are others": (
        INNER + piece("t", 3, 2, [12, 1])
        + join("y", 1, type_(3, 12, 12), I_R[0], ("%t", type_(3, 2, 12))),
        [("%y", type_(3, 12, 12))], 2, 1),
    "all pieces of the inner one are copied": (
        join("i", 0, type_(9, 10), ("%x", type_(9, 10))) + R
        + join("y", 0, type_(14, 10), ("%i", type_(9, 10)), I_R[1]),
        [("%y", type_(14, 10))], 1, 1),
    "one in another in a third": (
        INNER + OUTER + piece("u", 1, 10, [10, 1], factor=5.0)
        + join("w", 0, type_(9, 10), ("%u", type_(1, 10)), Y),
        [("%w", type_(9, 10))], 1, 0),
    "two in one": (
        INNER + piece("k", 4, 1, [10, 1]) + piece("l", 4, 9, [10, 1], factor=6.0)
        + join("j", 1, type_(4, 10), ("%k", type_(4, 1)), ("%l", type_(4, 9)))
        + join("y", 0, type_(7, 10), ("%j", type_(4, 10)), I_R[0]),
        [("%y", type_(7, 10))], 1, 0),
}  # fmt: skip


X = f"%x: {type_(9, 10)}"


def main(body, results, arguments=X):
    """A function of the loop level, and a copy of it on the host level."""
    names, types = (", ".join(each) for each in zip(*results, strict=True))
    text = f"""func.func @main({arguments}) -> ({types}) attributes {{level = "loop"}} {{
      {body}func.return {names} : {types} }}"""
    module = irc.parse(text)
    PassManager.parse("schedule{target=cpu},form-kernels,bufferize", verify="each").run(module)
    return irc.parse(text), module


def runs_as(before, module, *arguments):
    """A module on the host level gives what it gave before, interpreted and as machine code."""
    expected = interpreted(before, *arguments)
    torch.testing.assert_close(interpreted(module, *arguments), expected, rtol=0, atol=0)
    PassManager.parse("plan-memory", verify="each").run(module)
    results = irc.build(module)(*arguments)
    results = list(results) if isinstance(results, list | tuple) else [results]
    torch.testing.assert_close(results, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", NESTED)
def test_joins_in_joins(name):
    body, results, arrays, copies = NESTED[name]
    before, module = main(body, results)
    counts = Counter(type(op) for op in module.lookup("main").block.ops)
    assert (counts[host.AllocOp], counts[host.HostCopyOp]) == (arrays, copies)
    runs_as(before, module, torch.randint(-9, 9, (9, 10)).float())


def test_rows_of_a_size_that_is_not_known_are_joined_twice_in_place():
    rows = "tensor<[m, 10] x f32, strides [10, 1]>"
    bind = f'%m0 = sym.bind_size %x {{dim = 0, symbol = "m"}} : ({rows}) -> index\n'
    parts = (("p", 4), ("q", 6), ("r", 2))
    p, q, r = ((f"%{name}", type_("m", size, 12)) for name, size in parts)
    pieces = [piece(name, "m", size, [12, 1], factor=size / 2) for name, size in parts]
    whole = type_("m", 12, 12)
    body = bind + "".join(pieces) + join(
        "i", 1, type_("m", 10, 12), p, q) + join("y", 1, whole, ("%i", type_("m", 10, 12)), r)
    before, module = main(body, [("%y", whole)], f"%x: {rows}")
    counts = Counter(type(op) for op in module.lookup("main").block.ops)
    assert (counts[host.AllocOp], counts[host.HostCopyOp]) == (1, 0)
    for size in (4, 1, 0):
        runs_as(before, irc.parse(print_op(module)), torch.randint(-9, 9, (size, 10)).float())
