"""The verifier of the sym dialect: facts in known words, and refinements that rest on them."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from tests.dialects.verifying import check

HEAD = """
func.func @main(%x: tensor<[s0, s1] x f32>, %n: index) {
  %0 = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1 : i64, symbol = "s1"MORE} : (tensor<[s0, s1] x f32>) -> index
"""


def program(*lines: str, more: str = "") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"{HEAD.replace('MORE', more)}{body}  func.return\n}}\n"


def fact(lhs: str, rhs: str, relation: str = "eq") -> str:
    return (
        f'sym.assert {{relation = "{relation}", lhs = #sym<{lhs}>, rhs = #sym<{rhs}>, '
        'message = "m"}'
    )


def refine(kind: str, source: str = "tensor<[s0, s1] x f32>") -> str:
    return f"%y = sym.refine %x : ({source}) -> {kind}"


# -- refinements


@pytest.mark.fault("V5")
@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([refine("tensor<[4, s1] x f32>")], "no fact says that size 0, s0, is 4"),
        ([fact("s0", "4"), refine("tensor<[4, s1] x f32>")], None),
        ([fact("s0", "4"), refine("tensor<[4, 4] x f32>")], "no fact says that size 1, s1, is 4"),
        ([fact("s0", "4", "le"), refine("tensor<[4, s1] x f32>")], "no fact says that size 0"),
        ([fact("s0", "s1"), refine("tensor<[s1, s1] x f32>")], None),
        ([fact("s0", "s1"), refine("tensor<[s0, s0] x f32>")], None),
        ([refine("tensor<[4, s1] x f32>"), fact("s0", "4")], "no fact says"),
        ([refine("tensor<[s0, s1] x f64>")], "another element or device"),
        ([refine("tensor<[s0] x f32>")], "another rank"),
        ([refine("tensor<[s0, s1] x f32, strides [s1, 1]>")], "strides on one side only"),
    ],
)
def test_a_refinement_needs_a_fact_before_it(lines: list[str], error: str | None) -> None:
    check(program(*lines), error)


@pytest.mark.fault("V5")
def test_a_fact_inside_a_region_says_nothing_outside() -> None:
    def region(line: str) -> str:
        return f'"t.region"() ({{\n{line}\n"t.end"() : () -> ()\n}}) : () -> ()'

    narrow = refine("tensor<[4, s1] x f32>")
    inside = program(region(fact("s0", "4")), narrow)
    with pytest.raises(InvalidIR, match="no fact says"):
        irc.verify(irc.parse(inside, allow_unregistered=True))
    irc.verify(irc.parse(program(fact("s0", "4"), region(narrow)), allow_unregistered=True))


@pytest.mark.fault("V5")
def test_a_refinement_of_strides_needs_a_fact_but_for_one_element() -> None:
    head = """
func.func @main(%x: tensor<[s0, 3] x f32, strides [s0*2, s0]>) {
  %0 = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0, 3] x f32, strides [s0*2, s0]>) -> index
"""  # noqa: E501
    source = "tensor<[s0, 3] x f32, strides [s0*2, s0]>"
    one = refine("tensor<[1, 3] x f32, strides [7, 1]>", source)
    two = refine("tensor<[2, 3] x f32, strides [7, 2]>", source)
    end = "\n  func.return\n}\n"
    check(head + fact("s0", "1") + "\n" + one + end, None)
    check(head + fact("s0", "2") + "\n" + two + end, "no fact says that stride 0")


# -- words and numbers


@pytest.mark.fault("V6")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (program(fact("s0", "3", "gt")), "relation 'gt' is not one of eq, ne, lt, le"),
        (program(fact("s0", "3", "lt")), None),
        (program(fact("s0", "3")[:-1] + ', error = "KeyError"}'), "error 'KeyError' is not one of"),
        (program(more=", minimum = 9 : i64, maximum = 2 : i64"), "no number is from 9 to 2"),
        (program(more=", minimum = 2 : i64, maximum = 2 : i64"), None),
        (
            program('%b = sym.bind %n {symbol = "u0", minimum = 1 : i64, maximum = 0 : i64} : '
                    "(index) -> index"),
            "no number is from 1 to 0",
        ),
        (program().replace("dim = 1 :", "dim = 7 :"), "binds dimension 7"),
        (program().replace("dim = 1 :", "dim = -1 :"), "binds dimension -1"),
    ],
)  # fmt: skip
def test_relations_errors_ranges_and_dimensions(text: str, error: str | None) -> None:
    check(text, error)
