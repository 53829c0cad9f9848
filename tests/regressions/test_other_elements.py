"""Views as elements of another size, of what was written: torch asks for strides (those of size-1
dimensions too) and a place that eager's tensors have, and the values that stand for them need not.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.regressions.test_random_programs import check  # noqa: E402

I16, I32, I64 = torch.int16, torch.int32, torch.int64


def numbers(size, stride, offset=0, dtype=torch.float32):
    return torch.arange(40).to(dtype).as_strided(size, stride, offset)


@pytest.mark.parametrize(("shape", "take"), [
    (((1, 3), (1, 1)), lambda x: x.unbind(1)[0].view(I16)),
    (((1, 3), (1, 10)), lambda x: x.unbind(1)[2].view(I16)),
    (((1, 3), (1, 1)), lambda x: x.select(1, -1).view(I16)),
    (((3, 1), (2, 1)), lambda x: x[:, 0].unsqueeze(-1).view(I16)),
], ids=range(4))  # fmt: skip
def test_narrower_elements_of_a_row_with_strides_of_its_own(shape, take):
    def f(x):
        x.sub_(3)
        v = take(x)
        x.add_(1)
        return v, take(x) + 1

    check(f, numbers(*shape))


def test_a_column_that_shares_its_storage_as_narrower_elements():
    def f(x, y):
        x.copy_(x)
        v = x.movedim(-1, 0)
        w = v.view(I32)
        y[...] = -2
        return y.clone(), w

    memory = torch.arange(24)
    check(f, memory.as_strided((1, 3), (1, 10)), memory.as_strided((1,), (1,), 20))


@pytest.mark.parametrize("write", ["first", "second"])
@pytest.mark.parametrize("regroup", [
    lambda y: torch.view_as_real(torch.view_as_complex(y[0:2])),
    lambda y: y.view(I64),
    lambda y: torch.view_as_complex(y)[None],
], ids=range(3))  # fmt: skip
def test_wider_elements_that_begin_between_such_elements_of_the_common_storage(regroup, write):
    def f(x, y):
        (x if write == "first" else y).add_(3)
        w = regroup(y)
        (x if write == "second" else y).mul_(2)
        return w * 1, w

    memory = torch.arange(11.0)
    check(f, memory.as_strided((), (), 3), memory.as_strided((2,), (1,), 4))
    check(f, memory.as_strided((1, 1), (3, 5), 3), memory.as_strided((2,), (1,), 4))


def test_a_tensor_made_here_is_returned_with_its_views_as_other_elements():
    def f(x):
        y = torch.empty_strided((3, 1), (1, 1)).copy_(x)
        y.add_(1)
        return y, y.view(I16), y[1:].view(I16), y.t().view(I32)

    def g(x):
        y = torch.empty_strided((1, 2), (7, 1)).copy_(x)
        y.add_(1)
        w = torch.view_as_real(torch.view_as_complex(y[0]))
        w.mul_(2)
        return y, w

    check(f, numbers((3, 1), (1, 1)))
    check(g, numbers((1, 2), (1, 1), 1))


def test_a_part_written_as_other_elements_goes_back_to_its_place():
    def f(x, y):
        x.add_(1)
        y[:1].t()[1:, :].squeeze(1).view(I16).fill_(3)
        torch.view_as_complex(y[1:3]).mul_(2)
        y.view(I64)[2:].add_(1)
        return x * 1

    memory = torch.arange(30.0)
    check(f, memory.as_strided((2,), (1,), 3), memory.as_strided((4, 2), (2, 1), 4))


def test_what_nobody_wrote_is_viewed_where_it_lies():
    module = irc.trace(lambda x: (x[1].view(I16), (x + 1)[1:].view(I64)), (torch.rand(4, 2),))
    before = irc.print_op(module)
    PassManager.parse("functionalize", verify="each").run(module)
    assert before.count("clone") == irc.print_op(module).count("clone") == 0


@pytest.mark.parametrize("f", [
    lambda x: (x.add_(1), x.t().contiguous().view(I16) * 2)[1],
    lambda x: (x.add_(1), x.unsqueeze(-1).view(I16) * 2)[1],
    lambda x: (x.add_(1), torch.view_as_complex(x[:, 2:]) * 2)[1],
])  # fmt: skip
def test_sizes_that_are_symbols(f):
    module = irc.trace(f, (torch.rand(3, 4),), dynamic=True)
    PassManager.parse("functionalize", verify="each").run(module)
    for rows in (2, 5):
        x = torch.rand(rows, 4)
        expected, y = x.clone(), x.clone()
        torch.testing.assert_close(irc.run(module, y)[0], f(expected))
        assert torch.equal(y, expected)
