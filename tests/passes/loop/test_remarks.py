"""The remarks of the fusion passes and of `schedule`: why something was not done."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.passes import PassManager, chosen_remarks


def remarks(function, *arguments, wanted: str) -> list[str]:
    """The remarks of the whole pipeline in which `wanted` is found."""
    context = PassManager.parse("lower-to-cpu").run(irc.trace(function, arguments))
    return [str(r) for r in chosen_remarks(context.remarks, wanted)]


def test_schedule_says_why_a_kernel_is_scalar():
    def function(x, i):
        return torch.zeros(9).index_add(0, i, x)

    (found,) = remarks(function, torch.randn(40), torch.arange(40) % 9, wanted=r"\[schedule\]")
    assert "'loop.compute': is not vectorized: its scatter combines points in order" in found
    assert found.startswith(__file__), "the line of the model"
    assert not remarks(lambda x: x + 1, torch.randn(4000), wanted="not vectorized")


def test_inline_computes_says_why_a_map_stays():
    def function(x):
        y = torch.exp(x)
        return y, y.sum(1)

    (found,) = remarks(function, torch.randn(30, 40), wanted="not inlined")
    assert "its array is needed anyway" in found


def test_group_computes_says_why_a_reader_is_apart():
    def function(x):
        return x - x.sum(0)

    found = remarks(function, torch.randn(300, 400), wanted="not grouped")
    assert found and "the leading axes that both can share, []" in found[0]


def test_aten_calls_are_explained():
    (found,) = remarks(lambda x: torch.linalg.det(x @ x), torch.randn(3, 3), wanted="linalg")
    assert "left to ATen" in found


def told(text: str, pipeline: str) -> list[str]:
    """The remarks of a pipeline on a loop-level program: `'op': message`."""
    context = PassManager.parse(pipeline, verify="each").run(irc.parse(text))
    return [r.text.partition("] ")[2] for r in context.remarks]


HEAD = """func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>)
    attributes {level = "loop"} {
"""
READ = "{ %a = loop.read %x[i0, i1] : f32 loop.yield %a }"


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("par(i0: 4) red(i1: 6) -> reduce(sum, f32) { %a = loop.read %m[i0] : f32 loop.yield %a } "
         ": tensor<[4] x f32, strides [1]>", "it needs the whole result of the other's reduce"),
        ("par(i0: 6, i1: 4) -> map { %a = loop.read %m[i1] : f32 loop.yield %a } "
         ": tensor<[6, 4] x f32, strides [4, 1]>", "their spaces are [4, 6] and [6, 4]"),
    ],
)  # fmt: skip
def test_merge_computes_says_why_computes_stay_apart(second, reason):
    text = HEAD + f"""%m = loop.compute par(i0: 4) red(i1: 6) -> reduce(max, f32) {READ}
      : tensor<[4] x f32, strides [1]>
    %n = loop.compute {second}
    func.return }}"""
    assert f"'loop.compute': is not merged with a compute that it reads: {reason}" in told(
        text, "merge-computes"
    )


def test_merge_computes_says_why_siblings_stay_apart():
    def function(x):
        return x.sum(0), x.amax(1)

    (found,) = remarks(function, torch.randn(300, 400), wanted="not merged")
    assert "is not merged with one that reads the same array: they combine over the axes" in found
    assert found.startswith(__file__), "the line of the model"


def test_merge_computes_says_which_limit_was_met():
    text = HEAD + f"""%m = loop.compute par(i0: 4, i1: 6) -> map {READ}
      : tensor<[4, 6] x f32, strides [6, 1]>
    %n = loop.compute par(i0: 4, i1: 6) -> map {{
      %a = loop.read %m[i0, i1] : f32 loop.yield %a }} : tensor<[4, 6] x f32, strides [6, 1]>
    func.return }}"""
    assert not told(text, "merge-computes")
    (found,) = told(text, "merge-computes{max_ops=2}")
    assert "operations together are more than max_ops=2" in found


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        ("par(i0: 12) -> map {{ %a = loop.read %v[{0}] : f32 loop.yield %a }} "
         ": tensor<[12] x f32, strides [1]>", "it reads at {0}, but 5 is not known to divide 12"),
        ("scan(i0: 12) -> scan(sum, f32) {{ %a = loop.read %v[{0}] : f32 loop.yield %a }} "
         ": tensor<[12] x f32, strides [1]>", "it reads at {0}, but it scans"),
        ("par(i0: 12) -> map {{ %a = loop.read %v[floordiv(i0 + 1, 5)] : f32 loop.yield %a }} "
         ": tensor<[12] x f32, strides [1]>", "is not of one axis alone"),
    ],
)  # fmt: skip
def test_factor_axes_says_why_an_axis_stays_whole(compute, reason):
    text = f"""func.func @main(%v: tensor<[12] x f32, strides [1]>) attributes {{level = "loop"}} {{
      %m = loop.compute {compute.format("floordiv(i0, 5)")}
      func.return }}"""
    (found,) = told(text, "factor-axes")
    assert found.startswith("'loop.compute': keeps an axis whole: ")
    assert found.endswith(reason.format("floordiv(i0, 5)"))


def test_factor_axes_says_that_readers_differ():
    text = """func.func @main(%x: tensor<[12] x f32, strides [1]>) attributes {level = "loop"} {
      %m = loop.compute par(i0: 12) -> map { %a = loop.read %x[i0] : f32 loop.yield %a }
        : tensor<[12] x f32, strides [1]>
      %n = loop.compute par(i0: 3, i1: 4) -> map { %a = loop.read %m[i0*4 + i1] : f32
        loop.yield %a } : tensor<[3, 4] x f32, strides [4, 1]>
      OTHER
      func.return }"""
    other = """%o = loop.compute par(i0: 12) -> map { %a = loop.read %m[i0] : f32 loop.yield %a }
        : tensor<[12] x f32, strides [1]>"""
    assert not told(text.replace("OTHER", ""), "factor-axes")
    (found,) = told(text.replace("OTHER", other), "factor-axes")
    assert found.endswith("keeps an axis whole: readers have i0 as 3 x 4, but not all of them")


def test_localize_says_who_needs_the_array():
    def function(x):
        most = x.amax(1)
        return most, torch.exp(x - most.unsqueeze(1))

    found = remarks(function, torch.randn(40, 50), wanted=r"\[localize\]")
    assert any("is stored, although its group reads it: the caller needs the array" in f
               for f in found)  # fmt: skip
    assert not remarks(lambda x: torch.softmax(x, 1), torch.randn(40, 50), wanted="localize")


@pytest.mark.parametrize(
    ("function", "sizes", "message"),
    [
        (torch.sum, (1 << 16,), "is split into 64 parts of 1024 points of i0: "),
        (torch.sum, (64, 1 << 10), "is split"),
        (lambda x: x.sum(1), (4000, 30), "its 4000 results are computed in parallel"),
        (torch.sum, (100,), "is not split: 100 points are few (min_points=32768)"),
        (torch.argmax, (1 << 16,), "is not split: parts of argmax don't combine by it"),
    ],
)
def test_split_reductions_says_what_it_did(function, sizes, message):
    found = remarks(function, torch.randn(sizes), wanted=r"\[split-reductions\]")
    assert len(found) == 1 and message in found[0]


def test_form_kernels_says_along_what_vectors_run():
    (found,) = remarks(lambda x: x + x.t(), torch.randn(64, 64), wanted="runs along")
    assert "'loop.compute': runs along i1 in vectors of " in found
    assert found.endswith("its reads and writes: 2 contiguous, 1 strided")
    assert found.startswith(__file__), "the line of the model"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, i: x[:, i] + 1, "its index is read from an array"),
        (lambda x, i: x[:, ::3] * 2, "its elements are 3 apart along i1"),
    ],
)
def test_form_kernels_says_why_it_gathers(function, reason):
    arguments = torch.randn(40, 63), torch.arange(63)
    found = remarks(function, *arguments, wanted="lane by lane")
    assert found and reason in found[0]


def test_form_kernels_says_that_steps_are_uneven():
    text = """func.func @main(%v: tensor<[14] x f32, strides [1]>) attributes {level = "loop"} {
      %m = loop.compute par(i0: 64) -> map { %a = loop.read %v[floordiv(i0, 5)] : f32
        loop.yield %a } : tensor<[64] x f32, strides [1]>
      func.return }"""
    found = told(text, "schedule,form-kernels")
    assert any(f.endswith("gathers %v lane by lane: the index [floordiv(i0, 5)] takes no even "
                          "steps along i0") for f in found)  # fmt: skip


def test_form_kernels_says_why_memory_is_not_shared():
    (found,) = remarks(lambda x: x.flip(0) * 2, torch.randn(64, 64), wanted="can't be in the mem")
    assert "result 0 can't be in the memory of " in found
    assert "it is read at [63 - i0, i1]" in found or "it is read at [-i0 + 63, i1]" in found
    assert not remarks(lambda x: x * 2, torch.randn(64, 64), wanted="can't be in the memory")
