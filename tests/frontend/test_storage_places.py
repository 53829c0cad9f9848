"""Arguments that begin somewhere in their storage, and elsewhere at the next call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import irc
from irc.frontend.backend import recording
from irc.runtime.arguments import ArgumentError
from tests.frontend.storage_places import COMPILERS, Case, cases, differences

SHORT = [
    *(Case("rows", take, use)
      for take in ("as_strided", "as_strided of slice", "written, as_strided", "clone as_strided")
      for use in ("read", "written and returned")),
    Case("rows", "filled", "returned"),
    Case("gaps", "as_strided", "written"),
    Case("number", "as_strided", "argument written and returned"),
    Case("row of step", "clone filled", "written"),
    Case("columns", "view", "argument written and returned"),
]  # fmt: skip


def check(case: Case, compiler: str) -> None:
    """A case is as in eager mode, at every offset."""
    assert not list(differences(case, compiler))


@pytest.mark.fault("V4")
@pytest.mark.parametrize("case", SHORT, ids=str)
@pytest.mark.parametrize("compiler", COMPILERS[:2])
def test_an_argument_may_begin_elsewhere_in_its_storage(case: Case, compiler: str) -> None:
    check(case, compiler)


@pytest.mark.fault("V4")
@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("layout", ["rows", "columns", "row of step", "gaps", "one", "number"])
def test_all_views_uses_and_places(layout: str, compiler: str) -> None:
    found = [d for c in cases() if c.layout == layout for d in differences(c, compiler)]
    assert not found


@pytest.mark.fault("V12")
@pytest.mark.parametrize("use", ["argument written and returned", "written and returned"])
@pytest.mark.parametrize("take", ["view", "slice", "as_strided"])
def test_a_view_of_a_written_argument_begins_where_eager_s_does(take: str, use: str) -> None:
    check(Case("rows", take, use), "dynamic")


@pytest.mark.fault("V12")
def test_a_view_of_a_written_argument_in_training() -> None:
    def program(w: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        view = x.view(x.shape[0], 1, -1)
        x[1:] += 1
        return view, (w * x).sum()

    call = torch.compile(program, backend="irc", dynamic=True)
    for rows, columns in ((5, 7), (4, 3)):
        results = []
        for run in (program, call):
            w = torch.ones(rows, columns, requires_grad=True)
            x = torch.arange(float((rows + 2) * columns)).view(rows + 2, columns)[1:-1]
            view, total = run(w, x)
            total.backward()
            results.append((view, x, w.grad, view.storage_offset()))
        for a, b in zip(*results, strict=True):
            assert torch.equal(a, b) if isinstance(a, Tensor) else a == b


@pytest.mark.fault("V4")
def test_gradients_reach_an_argument_whose_storage_is_taken() -> None:
    def program(x: Tensor) -> Tensor:
        return x.as_strided((2, 3), (5, 1), 8) * x[:2, :3]

    call = torch.compile(program, backend="irc")
    for offset in (7, 3, 7):
        gradients = []
        for run in (program, call):
            base = torch.arange(60.0, requires_grad=True)
            run(base[offset : offset + 20].view(4, 5)).sum().backward()
            gradients.append(base.grad)
        assert torch.equal(*gradients)


@pytest.mark.fault("V4")
def test_two_arguments_of_one_storage() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.as_strided((2,), (1,), 8).fill_(9.0)
        return x + y

    call = torch.compile(program, backend="irc")
    for first, second in ((5, 20), (5, 7), (6, 30), (7, 5)):
        a, b = torch.arange(60.0), torch.arange(60.0)
        expected = program(a[first : first + 9], a[second : second + 9])
        assert torch.equal(call(b[first : first + 9], b[second : second + 9]), expected)
        assert torch.equal(a, b)


def check_shared(program: Any, arguments: Any, call: Any = None) -> None:
    """The program on arguments made of sixteen numbers is as eager's, and so are the numbers."""
    call = torch.compile(program, backend="irc") if call is None else call
    a, b = torch.arange(16.0), torch.arange(16.0)
    expected, got = program(*arguments(a)), call(*arguments(b))
    for one, other in zip(expected, got, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(a, b)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("places", [(0, 1), (1, 0)], ids=["first", "second"])
def test_what_is_written_through_one_argument_is_seen_by_another_of_its_storage(
    places: tuple[int, int], dynamic: bool
) -> None:
    def program(*arguments: Tensor) -> Tensor:
        x, y = (arguments[place] for place in places)
        x[1:].as_strided((2,), (3,), 1).add_(5)
        y.mul_(3)
        x[1:].add_(1)
        return x * y

    torch._dynamo.reset()
    call = torch.compile(program, backend="irc", dynamic=dynamic)
    for first, second in ((0, 0), (1, 0), (0, 2), (0, 12)):
        check_shared(program, lambda a: (a[first:][:4], a[second:][:4]), call)  # noqa: B023


def test_an_argument_of_another_dtype_in_a_storage_whose_places_are_taken() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x[1:].as_strided((2,), (3,), 1).add_(5)
        x.mul_(2)
        return x, y[1:] * 2

    check_shared(program, lambda a: (a[1:5], a.view(torch.int16)[4:12]))
    check_shared(program, lambda a: (a[1:5], a.view(torch.float64)[1:4]))
    check_shared(program, lambda a: (a.view(torch.int16)[4:12], a[1:5].view(torch.int32)))


def test_gradients_stay_apart_where_arguments_share_a_storage() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return x.as_strided((2,), (1,), 8) * y[:2] + x[0]

    call = torch.compile(program, backend="irc")
    gradients = []
    for run in (program, call):
        a = torch.arange(60.0)
        x, y = a[7:16].requires_grad_(), a[20:24].requires_grad_()
        run(x, y).sum().backward()
        gradients.append((x.grad, y.grad))
    for expected, got in zip(*gradients, strict=True):
        assert torch.equal(expected, got)


@pytest.mark.fault("V4")
def test_a_shorter_storage_than_the_traced_one() -> None:
    def program(x: Tensor) -> Tensor:
        return x[1:].as_strided((2,), (1,), 3) + 1

    call = torch.compile(program, backend="irc")
    for length in (60, 9, 30):
        x = torch.arange(float(length))[:9]
        assert torch.equal(call(x), program(x))


@pytest.mark.fault("V4")
def test_programs_that_depend_on_no_offset_are_compiled_once() -> None:
    def program(x: Tensor) -> Tensor:
        return x[1:].exp() + x.clone().as_strided((2, 5), (5, 1), 0)

    torch._dynamo.reset()
    call = torch.compile(program, backend="irc")
    with recording() as compiled:
        for offset in (0, 7, 12):
            x = torch.arange(60.0).as_strided((3, 5), (5, 1), offset)
            torch.testing.assert_close(call(x), program(x))
    assert len(compiled) == 1
    assert not any("bind_offset" in irc.print_op(c.imported.module) for c in compiled)


@pytest.mark.fault("V4")
@pytest.mark.parametrize("slow_host", [False, True])
def test_an_executable_checks_the_offset_that_it_depends_on(
    slow_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if slow_host:
        monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")

    def program(x: Tensor) -> Tensor:
        return x.as_strided((2,), (1,), 8) * 1

    text = irc.print_op(irc.trace(program, (torch.arange(60.0)[7:20],)))
    module = irc.parse(text)
    irc.PassManager.parse("lower-to-cpu").run(module)
    run = irc.build(module)
    assert run(torch.arange(60.0)[7:20])[0].tolist() == [8.0, 9.0]
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"storage_offset\(\) is 9, .* compiled for 7"):
            run(torch.arange(60.0)[9:22])


WRAPPED = [((0, 1), (10, 1)), ((7, 2), (2, 1)), ((9, 1), (1, 1)), ((4, 2), (5, 2))]


@pytest.mark.parametrize(("size", "stride"), WRAPPED)
def test_a_wrapped_diagonal_beside_places(
    size: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    """AOTAutograd refuses writes by places into views of places."""

    def program(x: Tensor) -> Tensor:
        x.fill_diagonal_(-1.0, wrap=True)
        return x.as_strided((2, 1), (1, 2), 0) + 1

    torch._dynamo.reset()  # of sizes that are symbols Dynamo's own trace of it fails
    outcomes = []
    for call in (program, torch.compile(program, backend="irc")):
        storage = torch.arange(40.0)
        outcomes.append((call(storage.as_strided(size, stride, 3)), storage))
    for eager, compiled in zip(*outcomes, strict=True):
        assert torch.equal(eager, compiled)
