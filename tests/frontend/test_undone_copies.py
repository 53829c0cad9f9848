"""Copies that undo a copy are not saved for a backward, and nothing else becomes a view."""

import pytest
import torch
import torch.nn.functional as F

from irc.frontend import backend


def trained(function, *arguments):
    """Results and gradients of a compiled function, and its forward program's figures."""
    torch._dynamo.reset()
    given = [a.detach().clone().requires_grad_() for a in arguments]
    with backend.recording() as compiled:
        made = torch.compile(function, backend="irc")(*given)
        made = made if isinstance(made, tuple) else (made,)
        sum(m.square().sum() for m in made).backward()
    return [*made, *(g.grad for g in given)], compiled[0].executable.info.metrics


def check(function, *arguments):
    found, metrics = trained(function, *arguments)
    wide = [a.double().requires_grad_() for a in arguments]
    made = function(*wide)
    made = made if isinstance(made, tuple) else (made,)
    sum(m.square().sum() for m in made).backward()
    for mine, exact in zip(found, [*made, *(w.grad for w in wide)], strict=True):
        torch.testing.assert_close(mine.double(), exact, atol=1e-4, rtol=1e-4)
    for number, result in enumerate(found[: len(made)]):
        assert result.stride() == made[number].stride()
        assert all(result.data_ptr() != other.data_ptr() for other in found[:number])
    return metrics


def attended(x):
    q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in x.chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v).contiguous()


@pytest.fixture
def given():
    torch.manual_seed(0)
    return torch.randn(2, 5, 96), torch.randn(32, 16)


def test_a_copy_of_a_copy_is_its_source(given):
    def projected(x, w):
        return attended(x).transpose(1, 2).contiguous().flatten(2) @ w

    assert check(projected, *given)["launches"] == 0


def test_what_is_returned_is_copied(given):
    check(lambda x, w: (attended(x).transpose(1, 2).contiguous(), w * 2), *given)


def test_what_both_are_copies_of_may_be_returned(given):
    def both(x, w):
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in x.chunk(3, -1))
        made = F.scaled_dot_product_attention(q, k, v)
        return made, made.contiguous().transpose(1, 2).contiguous() * w.sum()

    check(both, *given)


def test_an_argument_is_copied(given):
    """It may be written at the end, after it was saved."""

    def written(x, w):
        y = x.transpose(0, 1).contiguous().transpose(0, 1).contiguous()
        return (y @ w.repeat(3, 1)).sin()

    check(written, *given)


def test_other_strides_are_copied(given):
    def other(x, w):
        y = attended(x).permute(2, 1, 0, 3).contiguous()
        return y.flatten(2).sin() * w.sum()

    check(other, *given)
