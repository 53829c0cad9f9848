"""Rows DYN-01 to DYN-26: sizes that are symbols, and sizes that only the data decides."""

from __future__ import annotations

import math

import pytest
import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounterWithBackend
from torch._library.custom_ops import CustomOpDef

import irc
from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import dynamic, gradients, options, same, whole

pytestmark = needs_backend
seed = pytest.mark.seed

captures_scalars = torch._dynamo.config.patch(capture_scalar_outputs=True)
captures_sizes = torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)


@pytest.fixture(scope="module")
def operators():
    """Custom operators by name: `with_int` takes a number, `joined` has data-dependent sizes and
    a gradient, `strided` has a stride that only the data decides."""
    with_int = torch.library.custom_op("irc_dyn::with_int", _with_int, mutates_args=())
    with_int.register_fake(_with_int)
    joined = torch.library.custom_op("irc_dyn::joined", _joined, mutates_args=())
    joined.register_fake(_joined_fake)
    joined.register_autograd(lambda ctx, grad: (grad.sum(), None))
    strided = torch.library.custom_op("irc_dyn::strided", _strided, mutates_args=())
    strided.register_fake(_strided_fake)
    made: dict[str, CustomOpDef] = {"with_int": with_int, "joined": joined, "strided": strided}
    return made


def _with_int(x: torch.Tensor, y: int) -> torch.Tensor:
    return x.clone()


def _joined(t: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    return t * t.new_ones([sum(sizes)])


def _joined_fake(t: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    for size in sizes:
        torch._check_is_size(size)
    return t.new_empty([sum(sizes)])


def _strided(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided((1,), (int(x.item()),))


def _strided_fake(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided((1,), (torch.library.get_ctx().new_dynamic_size(),))


# -- numbers and ranges


@seed("DYN-01")
@pytest.mark.parametrize("capture", [False, True])
def test_a_range_up_to_a_maximum_makes_a_mask(capture: bool) -> None:
    def mask(lengths):
        steps = torch.arange(0, lengths.max(), device=lengths.device).type_as(lengths)
        return ~steps.repeat(lengths.numel(), 1).lt(lengths.unsqueeze(1))

    with torch._dynamo.config.patch(capture_scalar_outputs=capture):
        compiled = dynamic(mask)
        for count in (10, 7):
            same(compiled, mask, torch.randint(10, 30, (count,)))


@seed("DYN-02")
def test_a_size_as_a_number_in_a_float_power() -> None:
    def reciprocal(x, a):
        return x, -1 / a**1.0

    compiled = dynamic(reciprocal)
    for rows in (10, 12):
        x = torch.rand(rows, 20)
        same(compiled, reciprocal, x, x.size(0))


@seed("DYN-02")
def test_full_of_a_symbolic_number() -> None:
    def fill(a):
        return torch.full((3,), a), torch.full((3,), torch.sym_float(a))

    compiled = dynamic(fill)
    same(compiled, fill, 5)
    same(compiled, fill, 8)


@seed("DYN-14")
def test_a_size_times_a_fraction() -> None:
    def shift(x):
        return x + int(x.size(-1) * 0.2) + 1

    compiled = dynamic(shift)
    same(compiled, shift, torch.rand(5))
    same(compiled, shift, torch.rand(8))


@seed("DYN-19")
def test_is_integer_of_a_quotient_is_a_branch() -> None:
    def part(x, multiple, dim=-1):
        quotient = x.size(dim) / multiple
        return quotient if quotient.is_integer() else x.size(dim)

    compiled = dynamic(part)
    same(compiled, part, torch.randn(3, 6, 4, 2), 2)
    same(compiled, part, torch.randn(3, 6, 4, 7), 2)


@seed("DYN-20")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + torch.zeros(3),
        lambda x: x * torch.ones(3),
        lambda x: x / torch.ones(3),
        lambda x: x - torch.zeros(3),
    ],
    ids=["add", "mul", "div", "sub"],
)
def test_a_number_and_constant_zeros_or_ones(fn) -> None:
    compiled = dynamic(fn)
    assert same(compiled, fn, 3).dtype == torch.float32
    assert same(compiled, fn, 7).shape == (3,)


_OF_TWELVE = [math.sqrt, math.sin, math.cos, math.cosh, math.sinh, math.tan, math.tanh, math.atan]


@seed("DYN-23")
@pytest.mark.parametrize("op", [*_OF_TWELVE, math.asin, math.acos], ids=lambda op: op.__name__)
def test_math_functions_of_a_number(op) -> None:
    def shifted(x, fn, a):
        return x + fn(a)

    compiled = dynamic(shifted, fullgraph=True)
    for number in (-1, 1) if op in (math.asin, math.acos) else (12, 7):
        same(compiled, shifted, torch.rand(10), op, number)


# -- sizes


@seed("DYN-04")
def test_adaptive_max_pool3d_with_indices() -> None:
    def pool(size, x):
        return torch.nn.functional.adaptive_max_pool3d_with_indices(
            output_size=size, input=x, return_indices=True
        )

    same(dynamic(pool), pool, 5, torch.rand(9, 10, 9, 8, 6))


@seed("DYN-15")
def test_same_padding_is_exact() -> None:
    def amount(x: int, kernel: int, stride: int) -> int:
        return max((math.ceil(x / stride) - 1) * stride + kernel - x, 0)

    def pad(x, kernel, stride):
        height, width = x.size()[-2:]
        down, right = amount(height, kernel[0], stride[0]), amount(width, kernel[1], stride[1])
        if down > 0 or right > 0:
            edges = [right // 2, right - right // 2, down // 2, down - down // 2]
            x = torch.nn.functional.pad(x, edges, value=0)
        return x

    compiled = dynamic(pad)
    for shape in ((2, 24, 110, 110), (2, 3, 31, 44)):
        x = torch.randn(shape)
        assert torch.equal(compiled(x, (5, 5), (2, 2)), pad(x, (5, 5), (2, 2)))


@seed("DYN-16")
def test_slice_scatter_at_symbolic_halves() -> None:
    def fn(i):
        n = i.size(0)
        x, y = torch.ones(64, n), torch.zeros(64, n // 2)
        return torch.slice_scatter(x, y, 1, n // 2, 2 * (n // 2))

    compiled = dynamic(fn)
    for size in (16, 9):
        same(compiled, fn, torch.randn(size))


@seed("DYN-16")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x[: (y.shape[0] - y.shape[1])].clone(),
        lambda x, y: x[: abs(y.shape[0] - y.shape[1])] * abs(y.shape[0] - y.shape[1]),
    ],
    ids=["difference", "abs"],
)
def test_a_slice_to_a_difference_of_either_sign(fn) -> None:
    compiled = dynamic(fn)
    x = torch.randn(32, 32)
    for shape in ((16, 2), (2, 16)):
        same(compiled, fn, x, torch.randn(shape))


@seed("DYN-17")
@pytest.mark.parametrize("padded", [False, True])
def test_a_stride_is_that_of_eager_mode(padded: bool) -> None:
    def fn(x):
        return x * (x + 1).stride(0)

    compiled = dynamic(fn, options=options(comprehensive_padding=padded))
    same(compiled, fn, torch.randn(32, 32))
    same(compiled, fn, torch.randn(4, 1025))


@seed("DYN-21")
def test_nearest_upsampling_of_ceilings() -> None:
    def fn(t):
        s0, s2, s3 = t.size()
        height, width = (math.ceil((2 * ((s - 1) // 8) + 2) / 1) for s in (s2, s3))
        x = torch.zeros((s0, 2048, height, width), dtype=torch.bfloat16)
        return torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")

    same(dynamic(fn), fn, torch.randn(4, 16, 18))


@seed("DYN-21")
def test_nearest_upsampling_of_values() -> None:
    def fn(t):
        height, width = (2 * ((s - 1) // 8) + 2 for s in t.shape[1:])
        x = t[:, None, :height, :width].to(torch.bfloat16)
        return torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")

    compiled = dynamic(fn)
    same(compiled, fn, torch.randn(4, 16, 18))
    same(compiled, fn, torch.randn(3, 33, 25))


@seed("DYN-22")
def test_full_at_symbolic_sizes_compiles_once() -> None:
    def fn(x):
        size = x.shape[1]
        return torch.full((size, size), torch.finfo(torch.float16).min)

    counter = CompileCounterWithBackend(BACKEND)
    compiled = torch.compile(fn, backend=counter, dynamic=True)
    same(compiled, fn, torch.randint(10, 1000, (2, 3)))
    same(compiled, fn, torch.randint(10, 1000, (2, 4)))
    assert counter.frame_count == 1


@seed("DYN-25")
@captures_scalars
def test_stable_sorts_are_reused() -> None:
    def fn(x, descending):
        torch._check(x.shape[-1] <= 256)
        return x.sort(dim=-1, stable=True, descending=descending)

    counter = CompileCounterWithBackend(BACKEND)
    compiled = torch.compile(fn, backend=counter, dynamic=True)
    x = torch.rand(10, 128)
    x[:, 10:20] = 1.0
    x[:, 30:40] = 1.0
    for width in (128, 120):
        for descending in (False, True):
            same(compiled, fn, x[:, :width].clone(), descending)
    assert counter.frame_count == 2


# -- sizes that only the data decides


@seed("DYN-03")
@captures_sizes
def test_a_mask_selects() -> None:
    def fn(x, b):
        return (x[b] * 2).sum()

    compiled = whole(fn)
    for mask in ([True, True, False, False, True], [False] * 5):
        same(compiled, fn, torch.randn(5), torch.tensor(mask))


@seed("DYN-05")
@captures_scalars
def test_a_constant_item_is_a_size() -> None:
    def fn():
        size = torch.full((), 11).item()
        torch._check_is_size(size)
        return torch.full((size,), 0)

    same(whole(fn), fn)


@seed("DYN-06")
@captures_sizes
def test_the_number_of_nonzeros_is_a_size() -> None:
    def fn(x, b):
        return x.new_zeros(torch.nonzero(b).size(0))

    same(whole(fn), fn, torch.randn(5), torch.tensor([True, True, False, False, True]))


@seed("DYN-06")
@captures_sizes
def test_nonzeros_are_split_without_a_copy() -> None:
    def fn(x, y):
        return torch.split(x.nonzero(), [y.size(0)])

    if BACKEND == "irc":
        irc.metrics.reset()
    (part,) = same(whole(fn, dynamic=True), fn, torch.tensor([1, 0, 1, 1, 0, 1, 0]), torch.randn(4))
    assert part.shape == (4, 1)
    if BACKEND == "irc":
        assert irc.metrics.kernels == 0
        assert irc.metrics.aten_calls == 1


@seed("DYN-06")
@captures_scalars
@captures_sizes
def test_a_cast_to_its_own_type_before_nonzero() -> None:
    def fn(x):
        return torch.ops.prims.convert_element_type.default(x, torch.int64).nonzero() * 2

    same(whole(fn), fn, torch.tensor([0, 4, 2, 0, 1]))


@seed("DYN-07")
@captures_scalars
@captures_sizes
@pytest.mark.parametrize("shape", [(), (1,)], ids=["scalar", "vector"])
@pytest.mark.parametrize(
    ("fn", "value"),
    [
        (lambda x: x.new_zeros(x.item()), 3),
        (lambda x: x.item() + x.item(), 3),
        (lambda x: x.item(), True),
        (lambda x: x.item(), 3.5),
        (lambda x: x.item() == math.inf, 3.0),
        (lambda x: x.item() == math.inf, math.inf),
        (lambda x: x.item() == -math.inf, 3.0),
        (lambda x: x.item() == -math.inf, -math.inf),
    ],
    ids=["zeros", "sum", "bool", "float", "inf-no", "inf-yes", "neginf-no", "neginf-yes"],
)
def test_an_item(fn, value, shape) -> None:
    actual = same(whole(fn), fn, torch.tensor(value).reshape(shape))
    assert type(actual) is type(fn(torch.tensor(value)))


@seed("DYN-07")
@captures_scalars
def test_an_item_is_the_size_of_an_empty_tensor() -> None:
    def fn(x):
        size = x.item()
        torch.empty(size)
        return torch.empty(size)

    compiled = whole(fn)
    for size in (3, 0):
        assert compiled(torch.tensor([size])).shape == (size,)


@seed("DYN-08")
@captures_scalars
def test_an_item_goes_to_a_custom_operator(operators) -> None:
    def fn(x, r):
        return torch.ops.irc_dyn.with_int(r, x.item())

    compiled = whole(fn)
    for number in (3, -2):
        same(compiled, fn, torch.tensor([number]), torch.randn(10))


@seed("DYN-09")
@captures_scalars
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.index_select(torch.ones(x.item()), 0, torch.tensor([0, 2, 1])),
        lambda x: (lambda n: torch.ones(1, n) @ torch.ones(n, 1))(x.item()),
        lambda x: torch.ones(x.item()).sum(),
    ],
    ids=["index_select", "matmul", "sum"],
)
def test_an_item_sizes_ones(fn) -> None:
    compiled = whole(fn)
    for size in (5, 3):
        same(compiled, fn, torch.tensor(size))


@seed("DYN-10")
@captures_scalars
@captures_sizes
def test_a_split_at_lengths_in_a_tensor_with_gradients() -> None:
    def fn(values, lengths):
        u0, u1 = lengths.tolist()
        torch._check_is_size(u0)
        torch._check_is_size(u1)
        return torch.functional.split(values, [u0, u1])

    compiled = whole(fn)
    values = torch.randn(8, requires_grad=True)
    for lengths in ([3, 5], [8, 0]):
        args = values, torch.tensor(lengths)
        same(compiled, fn, *args)
        actual, expected = (gradients(f, args, (values,)) for f in (compiled, fn))
        torch.testing.assert_close(actual, expected)


@seed("DYN-11")
@captures_scalars
@captures_sizes
def test_a_custom_operator_of_data_dependent_sizes_is_saved_for_backward(operators) -> None:
    def fn(t, sizes):
        return torch.ops.irc_dyn.joined(t, sizes.tolist()) * t

    compiled = whole(fn, dynamic=True)
    t = torch.randn((), requires_grad=True)
    for sizes in ([4, 8], [2, 5]):
        args = t, torch.tensor(sizes)
        actual, expected = (gradients(f, args, (t,)) for f in (compiled, fn))
        torch.testing.assert_close(actual, expected)


@seed("DYN-12")
@captures_scalars
@captures_sizes
def test_a_cat_of_one_tensor_twice() -> None:
    def fn(x):
        s, s2 = x.tolist()
        g = torch.zeros(s)
        return torch.ops.aten.cat.default([g, g, torch.ones(s2)])

    compiled = whole(fn)
    for sizes in ([4, 6], [0, 3]):
        same(compiled, fn, torch.tensor(sizes))


@seed("DYN-12")
@captures_scalars
@captures_sizes
@pytest.mark.parametrize("inside", [False, True])
def test_gradients_of_a_cat_of_data_dependent_sizes(inside: bool) -> None:
    def fn(x, w):
        a, b = x.tolist()
        r = torch.cat([torch.ones(a) * w, torch.ones(b) * w])
        return r.sum() if inside else r

    compiled = whole(fn)
    w = torch.randn(1, requires_grad=True)
    for sizes in ([4, 9], [7, 2]):
        args = torch.tensor(sizes), w
        actual, expected = (gradients(f, args, (w,)) for f in (compiled, fn))
        torch.testing.assert_close(actual, expected)


@seed("DYN-13")
@captures_scalars
@captures_sizes
def test_a_data_dependent_stride_is_a_size(operators) -> None:
    def fn(x):
        return torch.empty(torch.ops.irc_dyn.strided(x).stride(0))

    compiled = whole(fn)
    for stride in (3, 5):
        assert compiled(torch.tensor([stride])).shape == (stride,)


@seed("DYN-18")
@captures_scalars
def test_a_sum_becomes_a_list() -> None:
    def fn(x):
        return x.sum(dim=0).view(4).tolist()

    compiled = whole(fn)
    assert compiled(torch.ones(3, 4, dtype=torch.int64)) == [3, 3, 3, 3]
    assert compiled(torch.arange(12).view(3, 4)) == [12, 15, 18, 21]


@seed("DYN-24")
@captures_scalars
def test_a_checked_item_sizes_a_square() -> None:
    def fn(x):
        a = x.item()
        torch._check_is_size(a)
        torch._check(a >= 1)
        torch._check(a <= 10)
        return torch.ones(a, a)

    compiled = whole(fn, dynamic=True)
    same(compiled, fn, torch.tensor([5]))
    same(compiled, fn, torch.tensor([7]))
    for number, condition in ((50, "10"), (0, "1")):
        with pytest.raises(RuntimeError, match=rf"u0.*{condition}|{condition}.*u0"):
            compiled(torch.tensor([number]))


# -- no guards on what only the data decides


@seed("DYN-26")
@captures_scalars
@captures_sizes
@pytest.mark.parametrize(
    "fn",
    [
        lambda n, x: torch.cat([x.expand(n, 4), x.expand(n, 4)]).softmax(0),
        lambda n, x: (torch.ones(n, 4) * x).view(-1, 2).sum(1),
        lambda n, x: torch.nn.functional.pad(torch.ones(n) * 2, (1, 2)).flip(0),
        lambda n, x: torch.arange(n).unsqueeze(1) + x,
        lambda n, x: (torch.ones(n, 4) * x) @ torch.ones(4, n),
        lambda n, x: torch.ones(n, 4).amax(1).cumsum(0),
        lambda n, x: torch.ones(n, 4).T.reshape(-1)[1:],
    ],
    ids=["cat", "view", "pad", "arange", "matmul", "reduce", "reshape"],
)
def test_a_lowering_adds_no_guard(fn) -> None:
    def sized(t, x):
        (n,) = t.tolist()  # Dynamo would guard on the item of an argument without dimensions
        torch._check_is_size(n)
        return fn(n, x)

    counter = CompileCounterWithBackend(BACKEND)
    compiled = torch.compile(sized, backend=counter, fullgraph=True)
    x = torch.randn(4)
    for number in (3, 1, 2, 40):
        same(compiled, sized, torch.tensor([number]), x)
    assert counter.frame_count == 1


@seed("DYN-26")
@captures_scalars
def test_an_assertion_stands_where_its_symbols_are_known() -> None:
    def fn(t, u, x):
        (a,) = t.tolist()
        torch._check(a < 10)
        first = x * 2
        (b,) = u.tolist()
        torch._check(a + b == 12)
        return first + a, b

    compiled = whole(fn)
    x = torch.randn(3)
    same(compiled, fn, torch.tensor([5]), torch.tensor([7]), x)
    for a, b in ((11, 1), (5, 8)):
        with pytest.raises(RuntimeError):
            compiled(torch.tensor([a]), torch.tensor([b]), x)


@seed("DYN-26")
@pytest.mark.skipif(BACKEND != "irc", reason="looks into irc's modules")
@captures_scalars
def test_an_assertion_precedes_what_its_symbols_do_not_decide() -> None:
    from irc.frontend.backend import recording

    def fn(t, u, x):
        (a,) = t.tolist()
        torch._check(a < 10)
        (b,) = u.tolist()
        return x * b + a

    with recording() as made:
        whole(fn)(torch.tensor([5]), torch.tensor([7]), torch.randn(3))
    imported = made[0].imported
    assert imported is not None
    names = [op.name for op in imported.module.walk()]
    assert names.index("sym.assert") == names.index("sym.bind") + 1
