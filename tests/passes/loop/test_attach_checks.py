"""Checks of indices and divisors in the kernels that they are for: launches, values, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.pipeline import lower

X, TABLE = torch.randn(40, 50), torch.randn(30, 50)
INDEX = torch.randint(0, 40, (8, 12))
FAR = 1 << 40


def launches(module: Any) -> int:
    """The launches of a program that `lower` has made a host program of."""
    return sum(op.name == "host.launch" for op in module.lookup("main").block.ops)


def built(function: Callable[..., Any], args: tuple[Any, ...], count: int | None) -> Any:
    """The executable; `count` is how many launches it has."""
    module = irc.trace(function, args)
    lower(module)
    if count is not None:
        assert launches(module) == count
    run = irc.build(module)

    def first(*given: torch.Tensor) -> Any:
        found = run(*given)
        return found[0] if found else None

    first.run_python = run.run_python  # type: ignore[attr-defined]
    return first


def embedding(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """Rows of a table."""
    return x[i] * 2


def normalized(x: torch.Tensor, i: torch.Tensor, t: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """Two embeddings and what follows them, in one kernel."""
    return torch.nn.functional.layer_norm(x[i] + t[p], (50,))


def gathered(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """One element for each index, of the same space."""
    return x.gather(1, i) + 1


def summed(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """A reduction over all that is read by index."""
    return x[0][i].sum()


def row_sums(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """A reduction for each row of indices."""
    return x[0][i].sum(1)


def divided(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A division whose divisor must not be 0."""
    return a // b + 1


POSITIONS = torch.arange(12)[None]
CASES = {
    "embedding": (embedding, (X, INDEX)),
    "normalized": (normalized, (X, INDEX, TABLE, POSITIONS)),
    "gathered": (gathered, (X, INDEX % 50)),
    "row sums": (row_sums, (X, INDEX)),
    "divided": (divided, (torch.randint(-50, 50, (7, 33)), torch.randint(1, 9, (7, 33)))),
}


@pytest.mark.parametrize("name", CASES)
def test_one_launch_with_eager_values(name: str) -> None:
    function, args = CASES[name]
    torch.testing.assert_close(built(function, args, 1)(*args), function(*args))


def test_full_reductions_agree() -> None:
    args = (X, torch.randint(0, 50, (300,)))
    torch.testing.assert_close(built(summed, args, None)(*args), summed(*args))


@pytest.mark.parametrize("wrong", [40, -41, FAR, -FAR])
@pytest.mark.parametrize("name", ["embedding", "normalized"])
def test_an_index_out_of_bounds_raises_and_reads_nothing(name: str, wrong: int) -> None:
    function, args = CASES[name]
    index = INDEX.clone()
    index[5, 7] = wrong
    message = "index out of bounds for dimension 0 with size 40"
    with pytest.raises(IndexError, match=message):
        built(function, args, 1)(X, index, *args[2:])


def test_the_first_error_in_the_program_is_raised() -> None:
    index, positions = INDEX.clone(), POSITIONS.clone()
    run = built(normalized, (X, INDEX, TABLE, POSITIONS), 1)
    positions[0, 3] = 30
    with pytest.raises(IndexError, match="with size 30"):
        run(X, index, TABLE, positions)
    index[0, 0] = 40
    with pytest.raises(IndexError, match="with size 40"):
        run(X, index, TABLE, positions)


def test_a_position_that_is_read_by_position_is_checked_too() -> None:
    def chained(x: torch.Tensor, middle: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[middle[i]] + 1

    middle, index = torch.randint(0, 40, (20,)), torch.randint(0, 20, (9,))
    run = built(chained, (X, middle, index), None)
    assert torch.equal(run(X, middle, index), chained(X, middle, index))
    with pytest.raises(IndexError, match="with size 20"):
        run(X, middle, torch.full_like(index, FAR))
    with pytest.raises(IndexError, match="with size 40"):
        run(X, torch.full_like(middle, FAR), index)


def test_an_argument_keeps_its_elements_when_a_check_fails() -> None:
    def update(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> None:
        y.add_(x[i])

    y = torch.zeros(8, 12, 50)
    run = built(update, (X, INDEX, y), None)
    run(X, INDEX, y)
    assert torch.equal(y, X[INDEX])
    with pytest.raises(IndexError):
        run(X, torch.full_like(INDEX, 40), y)
    assert torch.equal(y, X[INDEX])


def test_a_zero_divisor_raises() -> None:
    a, b = CASES["divided"][1]
    wrong = b.clone()
    wrong[6, 32] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        built(divided, (a, b), 1)(a, wrong)


def test_no_index_and_no_element() -> None:
    empty = torch.empty(0, 12, dtype=torch.int64)
    assert built(embedding, (X, empty), None)(X, empty).shape == (0, 12, 50)
    nothing = torch.empty(0, 50)
    run = built(embedding, (nothing, INDEX), None)
    with pytest.raises(IndexError):
        run(nothing, INDEX)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_symbolic_sizes(rows: int) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(normalized, backend="irc", dynamic=True)
    compiled(X, INDEX, TABLE, POSITIONS)
    index = torch.randint(-40, 40, (rows, 17))
    args = (X, index, TABLE, torch.arange(17)[None])
    torch.testing.assert_close(compiled(*args), normalized(*args))
    index[rows - 1, 16] = 40
    with pytest.raises(IndexError):
        compiled(*args)


def test_the_python_host_agrees() -> None:
    run = built(embedding, (X, INDEX), 1)
    assert torch.equal(run.run_python({}, [X, INDEX])[0], run(X, INDEX))
    with pytest.raises(IndexError):
        run.run_python({}, [X, torch.full_like(INDEX, FAR)])


def test_a_check_stays_where_no_fuel_is_left():
    from irc.ir.passes import PassContext, PassManager
    from irc.ir.rewrite.fuel import Fuel
    from irc.pipeline import pipeline_text

    before, name, _ = pipeline_text().partition("attach-checks")
    for limit in (0, 1):
        module, context = irc.trace(embedding, (X, INDEX)), PassContext()
        PassManager.parse(f"functional,{before.rstrip(',')}").run(module, context)
        context = PassContext(fuel=Fuel(limit))
        PassManager.parse(name).run(module, context)
        remarks = [str(remark) for remark in context.remarks]
        assert any("fuel" in remark for remark in remarks) is (limit == 0), remarks
        assert context.fuel.spent == limit
