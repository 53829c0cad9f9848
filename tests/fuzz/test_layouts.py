"""Random strides through the layout passes: values, strides and aliasing stay eager's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.options.options import from_mapping  # noqa: E402
from irc.pipeline import pipeline_text  # noqa: E402
from tests.fuzz.harness import Outcome, each_pass, fuzz, observe, same  # noqa: E402
from tests.fuzz.layout_cases import cases  # noqa: E402
from tests.fuzz.layouts import Case, evaluate  # noqa: E402

# Every row of more than 2 elements is padded to a multiple of 16 bytes.
PADDED = from_mapping(
    {"comprehensive_padding": True, "padding_stride_threshold": 2, "padding_alignment_bytes": 16}
)
TEXT = pipeline_text("llvm", PADDED)
BEGIN, MIDDLE, END = (
    TEXT.index(name) for name in ("canonicalize", "insert-layout-copies", "convert-to-loop")
)
LAYOUTS, COPIES = TEXT[BEGIN:MIDDLE].strip(","), TEXT[MIDDLE:END].strip(",")
LOWER = TEXT[END:]


@fuzz("layouts", cases(), quick=120)
def test_layouts(case: Case, compile_it: bool) -> None:
    check_layouts(case, compile_it)


def check_layouts(case: Case, compile_it: bool = True) -> None:
    """Eager's outcome on every level down to the layouts', and if wanted in machine code."""
    arguments = case.arguments()
    expected = observe(case.eager, arguments)
    module = case.module()
    interpreted = observe(lambda *a: irc.run(module, *a), arguments)
    same(expected, interpreted, what="graph level", strides=False, sharing=False)
    each_pass(module, LAYOUTS, arguments, expected=expected)
    got = each_pass(module, COPIES, arguments, expected=expected, strides=True)
    same_aliases(case, expected, got, "layout level")
    if compile_it:
        PassManager.parse(LOWER, verify="each").run(module, PassContext(target="llvm"))
        got = observe(irc.build(module), arguments)
        same(expected, got, what="compiled", sharing=False)
        same_aliases(case, expected, got, "compiled")


def same_aliases(case: Case, expected: Outcome, got: Outcome, what: str) -> None:
    """A result shares memory with the arguments that eager's does, and begins at the same place;
    two results share none unless eager's values do, and do if both have eager's strides."""
    values = evaluate(case.steps, case.arguments())
    storages = [values[number].untyped_storage()._cdata for number, _ in case.results]
    for position, result in enumerate(got.outputs):
        if not result.numel():
            continue
        for argument, (old, new) in enumerate(zip(expected.arguments, got.arguments, strict=True)):
            shared = shares(expected.outputs[position], old)
            assert shares(result, new) == shared, f"{what}: result {position}, {argument=}"
            if shared:
                begin = expected.outputs[position].storage_offset() - old.storage_offset()
                assert result.storage_offset() - new.storage_offset() == begin, what
        for other in range(position):
            if shares(result, got.outputs[other]):
                alike = storages[position] == storages[other]
                assert alike, f"{what}: results {other} and {position} share memory"
        for other in sharers(case, values, position):
            assert shares(result, got.outputs[other]), f"{what}: result {other} of {position}"
            begin = values[case.results[other][0]].storage_offset() - (
                values[case.results[position][0]].storage_offset()
            )
            assert got.outputs[other].storage_offset() - result.storage_offset() == begin, what


def sharers(case: Case, values: list[torch.Tensor], position: int) -> list[int]:
    """The results that share the memory of result `position` with it, which is no argument's."""
    arguments = {v.untyped_storage()._cdata for v in values[: len(case.inputs)]}
    mine = values[case.results[position][0]]
    storage = mine.untyped_storage()._cdata
    found = []
    for other, (number, strides) in enumerate(case.results):
        value = values[number]
        alike = storage == value.untyped_storage()._cdata and storage not in arguments
        kept = strides == value.stride() and case.results[position][1] == mine.stride()
        if alike and kept and value.numel():
            found.append(other)
    return found


def shares(a: Any, b: Any) -> bool:
    """Whether two tensors are in one memory."""
    return bool(a.numel() and b.numel()) and (
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    )
