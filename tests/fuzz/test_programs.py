"""Random programs with views and mutations: eager mode, the interpreter before and after
functionalize, and torch.compile agree on values, strides and on who shares storage with whom."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import aten  # noqa: E402
from irc.ir.core import Operation  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.fuzz.harness import (  # noqa: E402
    Outcome,
    built,
    clones,
    compiled,
    fuzz,
    observe,
    same,
)
from tests.fuzz.programs import Program, programs  # noqa: E402

# What functionalize refuses by name.
REFUSALS = (
    "elements overlap in memory", "overlapping elements in memory", "outside of its elements",
    "different element types", "sizes or strides of an argument", "is resized to",
    "no value holds all of it",
)  # fmt: skip
LOWERING_REFUSALS = ("is given one storage more than once",)


@fuzz("programs", programs(), quick=60, total=30_000, batch=120)
def test_programs(case: Program, compile_it: bool) -> None:
    check_program(case, compile_it)


def check_program(case: Program, compile_it: bool = True) -> None:
    """Eager's outcome of the program traced and functionalized, and if wanted compiled."""
    run, args = case.function(), case.inputs()
    expected = observe(run, args)
    module = irc.trace(run, tuple(clones(args)))
    same(expected, observe(lambda *a: irc.run(module, *a), args), what="traced")
    try:
        PassManager.parse("functionalize", verify="each").run(module)
    except UserError as error:
        assert any(reason in str(error) for reason in REFUSALS), error
        return
    assert_functional(module)
    same(expected, observe(lambda *a: irc.run(module, *a), args), what="functionalized")
    if compile_it:
        same_or_refused(expected, lambda: built(module, args), "built")
        compare_compiled(case, expected)


def compare_compiled(case: Program, expected: Outcome) -> None:
    """torch.compile gives eager's outcome, wherever AOTAutograd alone does."""
    run, args = case.function(), case.inputs()
    try:
        same(expected, compiled(run, args, "aot_eager"), what="aot_eager")
    except Exception:
        return  # torch's own functionalization fails or differs
    same_or_refused(expected, lambda: compiled(run, args), "compiled")


def same_or_refused(expected: Outcome, get: Callable[[], Outcome], what: str) -> None:
    """Machine code gives eager's outcome, or the reason why there is none is a known one."""
    try:
        got = get()
    except Exception as error:
        if not any(reason in str(error) for reason in LOWERING_REFUSALS):
            raise
        return
    same(expected, got, what=what, exact=False)


def assert_functional(module: Operation) -> None:
    """Nothing writes but the copies onto arguments at the end, and calls on fresh clones."""
    function = module.lookup("main")
    arguments = set(function.block.arguments)
    for op in function.block.ops:
        if not isinstance(op, aten.AtenOp) or not op.schema.is_mutable:
            continue
        if op.qualified == "aten.copy_.default":
            assert op.operands[0] in arguments, str(op)
            continue
        given = op.arguments.as_dict()
        for argument in op.schema.arguments:
            if argument.is_write:
                for number in aten.operand_indices(given[argument.name]):
                    assert is_fresh(op.operands[number]), str(op)


def is_fresh(value: object) -> bool:
    """Whether a value is a clone, or a view of one."""
    maker = value.defining_op
    while isinstance(maker, aten.AtenOp) and maker.schema.returns_alias:
        maker = maker.operands[0].defining_op
    return isinstance(maker, aten.AtenOp) and maker.qualified == "aten.clone.default"
