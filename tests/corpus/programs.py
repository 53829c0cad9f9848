"""Small programs that together meet most decisions of the passes.

Their texts stand beside this file, on the aten level, so that what the passes decide does not
depend on how a version of torch traces them. `python -m tests.corpus.programs` writes them again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import irc
from irc.ir.passes import PassManager
from irc.pipeline import stages

HERE = Path(__file__).parent
F = torch.nn.functional
Program = tuple[Callable[..., Any], tuple[torch.Tensor, ...], bool]
PROGRAMS: dict[str, Program] = {}


def program(*shapes: Any, dynamic: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Note a program of arguments with these sizes: f32, or as a tensor says."""
    made = tuple(s if isinstance(s, torch.Tensor) else tensor(*s) for s in shapes)

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, made, dynamic
        return function

    return note


def tensor(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers from -1 to 1, the same each time."""
    count = torch.Size(sizes).numel()
    numbers = (torch.arange(count, dtype=torch.float64) * 0.7).sin()
    return (numbers if dtype.is_floating_point else numbers * 50).to(dtype).reshape(sizes)


def places(*numbers: int) -> torch.Tensor:
    """An index tensor."""
    return torch.tensor(numbers)


HALF, WHOLE = torch.bfloat16, torch.int64

# -- pointwise, views, joins


@program((37, 65), (37, 65))
def pointwise(x, y):
    return (x * y).exp() + x.sigmoid() - y


@program((37, 65), (65,), (37, 1))
def pointwise_with_rows_and_columns(x, row, column):
    return (x + row) * column, x - column


@program((33, 70))
def transposed_and_not(x):
    return x.t() + 1, x * 2, x.t().contiguous().view(-1)


@program((30, 40), (40, 30))
def sum_with_its_transpose(x, y):
    return x + y.t()


@program((12, 40))
def slices_and_steps(x):
    return x[1:-1] + x[2:], x[:, ::2] * 3, x[::3, 5]


@program((12, 40), (5, 40), (12, 7))
def joins(x, y, z):
    rows = torch.cat([x, y * 2])
    return torch.cat([x.exp(), z], 1), rows.sum(1)


@program((3, 20, 20))
def pads_and_windows(x):
    wide = F.pad(x, (1, 2, 0, 3), value=2.0)
    return wide * 2, x.unfold(1, 5, 3).sum(-1), F.pad(x, (-1, 0, 2, -2))


@program((6, 8))
def reversed_rolled_repeated(x):
    return x.flip(0), x.roll(3, 1), x.repeat(2, 3), x.diagonal() + 1, x.tril()


@program((4, 6, 5), dynamic=True)
def symbolic_views(x):
    return x.reshape(-1, x.shape[2]) * 2, x.transpose(0, 1).flatten(1), x[1:, :, ::2]


@program((24, 6))
def split_axes(x):
    y = x.reshape(4, 6, 6)
    return (y.exp() + 1).reshape(24, 6), y.sum(1), y.transpose(1, 2).reshape(24, 6)


@program((24, 6), dynamic=True)
def split_symbolic_axes(x):
    y = x.reshape(x.shape[0] // 2, 2, 6)
    return y.sum(1), (y * 2).reshape(-1, 6)


@program((16, 33), (33,))
def rounds_in_between(x, w):
    y = x.to(HALF) * 3
    return (y + w.to(HALF)).float(), y.exp().to(HALF).float() * 2, (x.to(HALF) + 1).to(HALF)


@program((16, 33), (16, 33))
def rounded_numbers_that_are_compared(x, y):
    a, b = x.to(HALF), y.to(HALF)
    return (a.float() == x).float() * a.float(), torch.where(a > b, a, b).float() + 1


@program((16, 33), (16, 33))
def rounded_numbers_that_are_chosen(x, y):
    a = torch.where(x > 0, x.to(HALF), y.to(HALF))
    return a.float().exp(), (a * 2).float().sum(1), a.double()


@program(tensor(16, 33, dtype=HALF))
def rounded_sums_and_scans(x):
    return x.sum(1).float() * 2, x.cumsum(1).float(), F.softmax(x, 1), x.float().to(HALF)


@program(tensor(16, 33, dtype=torch.float16), tensor(16, 33, dtype=HALF))
def two_narrow_types(x, y):
    z = x.float() + y.float()
    return z.to(torch.float16).to(HALF), z.to(HALF).to(torch.float16), x * 2, (x == 0) | (y == 0)


@program((12, 10), (12, 10), (12, 1), (10,))
def many_small_results(x, y, column, row):
    return (x + 1, y * 2, column.exp(), row - 1, x.sum(1), y.amax(0), (x * y).sum(), row.sum(),
            column * row, x > y)  # fmt: skip


@program((3, 5, 7), (3, 5, 1), (5, 7))
def results_over_other_axes(x, y, z):
    return x.sum(0) + z, x.sum(2, keepdim=True) * y, x.sum((0, 1)), (x * z).amax((1, 2)), y + 1


@program((4, 1, 6), (1, 5, 6), (1, 1, 1))
def sizes_of_one(x, y, z):
    return x + y, x * z, (x + y).sum(1, keepdim=True), y.squeeze(0).sum(), z.exp()


@program((0, 4), (3, 0))
def no_elements(x, y):
    return x + 1, x.sum(0), y.sum(0), torch.cat([x, x + 1]), y.sum()


@program((300, 300), (300, 300))
def chains_that_are_read_apart(x, y):
    a = (x * y).tanh()
    b = a[10:] * a[:-10]
    return b.sum(), (a - b.mean()).abs(), b[:, 5:]


@program((6, 50, 20), (6, 50, 20))
def rows_of_rows(x, y):
    a = F.softmax(x + y, 2)
    return F.layer_norm(a, (50, 20)), a.mean(2), (a * y).sum((1, 2))


@program((40, 3, 8, 8), dynamic=True)
def symbolic_images(x):
    y = x.mean((2, 3), keepdim=True)
    return (x - y).relu(), F.avg_pool2d(x, 2), x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)


@program((20, 6), dynamic=True)
def symbolic_joins_and_pads(x):
    n = x.shape[0]
    return torch.cat([x, x[: n // 2]]), F.pad(x, (0, 0, 1, 1)), x[:, None].expand(n, 4, 6) + 1


@program((20, 33), places(4, 1, 7), dynamic=True)
def symbolic_gathers(x, i):
    return x[i] + 1, x.index_add(0, i, x[:3]), x.scatter(0, i[:, None].expand(3, 33), 1.0)


@program(tensor(16, 33, dtype=HALF), tensor(33, dtype=HALF))
def half_precision(x, w):
    y = x * w
    return y, F.gelu(y), y.sum(1), (y.float() ** 2).mean(0)


@program(tensor(17, 9, dtype=WHOLE))
def integers(x):
    return x // 3, x % 7, (x > 0).sum(0), x.to(torch.int8), x * x - 1, x & 6


@program((40, 40))
def masks(x):
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    return x.masked_fill(~mask, -1e9), torch.where(x > 0, x, 2 * x), (x > 0) & (x < 0.5)


# -- reductions and scans


@program((50, 300))
def softmax_of_rows(x):
    return F.softmax(x, -1)


@program((50, 300))
def softmax_of_columns(x):
    return F.log_softmax(x, 0)


@program((20, 100), (100,), (100,))
def layer_norm(x, w, b):
    return F.layer_norm(x, (100,), w, b), F.layer_norm(x, (100,)).relu()


@program((2, 6, 8, 8), (6,), (6,))
def group_norm(x, w, b):
    return F.group_norm(x, 3, w, b)


@program((8, 6, 5, 5), (6,), (6,))
def batch_norm_in_training(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True).relu()


@program((64, 200))
def sums(x):
    return x.sum(), x.sum(0), x.sum(1), x.mean((0, 1), keepdim=True), x.amax(1), x.prod(0)


@program((64, 200))
def reductions_of_other_kinds(x):
    return x.argmax(1), x.argmin(), x.var(0), x.std(1), (x > 0).any(1), x.norm(dim=1)


@program((100_000,))
def one_long_sum(x):
    return (x * x).sum(), x.max(), x.abs().mean()


@program((7, 60_000))
def few_long_rows(x):
    return x.sum(1), (x - x.mean(1, keepdim=True)).abs().amax(1)


@program((60_000, 7))
def few_long_columns(x):
    return x.sum(0), x.amax(0), x.var(0)


@program((64, 64))
def what_a_sum_needs_is_returned(x):
    y = x.exp()
    return y, y.sum(1), y / y.sum(1, keepdim=True)


@program((64, 64))
def sums_of_two_axes_of_one_value(x):
    y = x.tanh()
    return y.sum(0), y.sum(1), y.t()


@program((9, 40))
def scans(x):
    return x.cumsum(1), (x + 1).cumsum(0), x.cummax(1)[0], x.logcumsumexp(1), x.cumprod(1) * 2


@program((30, 50), dynamic=True)
def symbolic_softmax(x):
    return F.softmax(x * 2, 1), x.sum(0), x.mean()


@program((4, 30, 16), (4, 30, 16), (4, 30, 16))
def attention(q, k, v):
    scores = q @ k.transpose(1, 2) / 4
    return F.softmax(scores.masked_fill(scores > 2, 0), -1) @ v


@program((40, 20), (20, 30), (30,))
def linear_and_activation(x, w, b):
    return F.gelu(x @ w + b), (x @ w).relu() * b


@program((64, 33))
def expensive_values_read_twice(x):
    y = x.exp().sin().tanh()
    return y[:, 1:] + y[:, :-1], y.flip(1) * 2


@program((64, 33))
def cheap_values_read_twice(x):
    y = x * 2 + 1
    return y[:, 1:] + y[:, :-1], y.flip(1) * 2


@program((64,), (64, 128))
def column_values(v, x):
    return x * torch.rsqrt(v + 1e-5)[:, None], x.t() * torch.rsqrt(v + 1e-5)


# -- indices


@program((20, 8), places(3, 0, 19, 3), tensor(4, 8))
def gathers_and_scatters(x, i, v):
    return x[i] * 2, x.index_add(0, i, v), x.index_copy(0, i, v), x.index_select(0, i).sum(0)


@program((20, 8), torch.arange(32).reshape(4, 8) % 20)
def gathers_along_a_dimension(x, i):
    return x.gather(0, i).exp(), torch.zeros(20, 8).scatter_add(0, i, i.float())


@program((30, 16), places(1, 2, 2, 29, 7), (5, 16))
def embedding_and_its_gradient(w, i, g):
    rows = F.embedding(i, w)
    return rows + 1, torch.ops.aten.embedding_dense_backward(g, i, 30, -1, False) + w


@program((5, 6), places(0, 4), places(5, 1))
def puts(x, i, j):
    return x.index_put((i, j), torch.ones(2)), x.index_put((i, j), x[i, j], True), x[:, j] - 1


@program((5, 40), places(4, 2))
def reads_at_checked_places(x, i):
    return x.index_select(0, i) + x[0], x[i][:, i]


# -- images


@program((1, 3, 12, 12))
def pools(x):
    return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (5, 4))


@program((2, 4, 10, 10), (6, 4, 3, 3), (6,))
def convolution_and_activation(x, w, b):
    return F.conv2d(x, w, b, padding=1).relu(), F.conv2d(x, w).sum((2, 3))


@program((1, 3, 6, 6))
def upsampled(x):
    return F.interpolate(x, scale_factor=2, mode="nearest"), F.interpolate(x, size=(9, 9))


@program((2, 8, 6, 6), (8, 8, 1, 1))
def residual_convolutions(x, w):
    y = F.conv2d(x, w).relu()
    return F.conv2d(y, w) + x, y.mean((2, 3))


# -- updates


@program((20, 30), (30,))
def updates_arguments(x, row):
    x.mul_(2).add_(row)
    row.copy_(x.sum(0))
    return x.amax(1)


@program((20, 30), (5, 30))
def updates_parts(x, rows):
    x[3:8] = rows
    x[:, 1:3] += 1
    return x * 2


@program((6, 10, 4), (6, 1, 4), dynamic=True)
def updates_symbolic_parts(cache, row):
    cache[:, 2:3] = row
    return cache[:, :3].sum(1)


@program((40, 40), (40, 40), (40, 40))
def an_optimizer_step(weight, gradient, average):
    average.mul_(0.9).add_(gradient, alpha=0.1)
    weight.addcdiv_(average, average.abs().sqrt() + 1e-8, value=-0.01)


@program((12, 6), (3, 6))
def joins_that_are_updated(x, y):
    made = torch.cat([x, y])
    made[2:4] = 0
    x.copy_(made[:12] + 1)
    return made.unsqueeze(1)[3:].squeeze(1)


@program((8, 8))
def a_loop_of_slices(x):
    s, out = x[:, 0], torch.zeros(8, 8)
    for t in range(4):
        s = s * 0.5 + x[:, t]
        out[:, t] = s
    return out


def text_of(name: str) -> str:
    """A program as it is traced and functionalized now."""
    function, arguments, dynamic = PROGRAMS[name]

    def tupled(*values: torch.Tensor) -> Any:
        found = function(*values)
        return () if found is None else found

    module = irc.trace(tupled, tuple(a.clone() for a in arguments), dynamic=dynamic)
    PassManager.parse(stages()["functional"]).run(module)
    return f"// {name} of programs.py, functionalized.\n\n{module}\n"


if __name__ == "__main__":
    for each in PROGRAMS:
        (HERE / f"{each}.mlir").write_text(text_of(each), encoding="utf-8")
