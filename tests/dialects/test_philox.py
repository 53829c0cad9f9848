"""`math.philox` and `graph.philox`: the generator's numbers, by their places."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects.math.philox import philox_number
from irc.ir.passes import PassManager
from tests.runtime.host_modules import check

BITS = """\
func.func @main(%s: tensor<[2] x i64, strides [1]>) -> tensor<[4, 6] x i64, strides {strides}> {{
  %u = aten.extern.irc.philox_bits.default %s {{arguments = {{base = {base} : i64, \
size = [4 : i64, 6 : i64], state = #aten.operand<0>, stride = {stride}, threads = {threads} : i64, \
vector = {vector} : i64, numbers = {numbers} : i64}}}} : (tensor<[2] x i64, strides [1]>) -> \
tensor<[4, 6] x i64, strides {strides}>
  return %u : tensor<[4, 6] x i64, strides {strides}>
}}
"""


def test_numbers_are_the_papers() -> None:
    """The known answers of philox4x32-10 that Random123 comes with."""
    ones = 2**64 - 1
    words = [philox_number(0, 0, number) for number in range(4)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    # The counter is (number / 4, sequence); its lowest two bits choose a word.
    assert philox_number(ones, ones, 4 * 7 + 1) != philox_number(ones, ones, 4 * 8 + 1)
    assert philox_number(-1, -1, 29) == philox_number(ones, ones, 29)


@pytest.mark.parametrize("threads", [1, 3, 256])
@pytest.mark.parametrize("vector", [1, 2, 4])
@pytest.mark.parametrize("strides", [(6, 1), (1, 4)])
def test_bits_go_by_their_places(threads: int, vector: int, strides: tuple[int, int]) -> None:
    """Interpreted, natively and from Python: number and sequence of each place in memory."""
    text = BITS.format(
        base=8, threads=threads, vector=vector, numbers=max(vector, 2), strides=list(strides),
        stride="[" + ", ".join(f"{s} : i64" for s in strides) + "]",
    )  # fmt: skip
    module = irc.parse(text)
    PassManager.parse("lower-to-cpu", verify="each").run(module)
    state = torch.tensor([2**62 + 77, 2**33 + 5])
    expected = torch.empty_strided((4, 6), strides, dtype=torch.int64)
    for row in range(4):
        for column in range(6):
            turn, lane = divmod(row * strides[0] + column * strides[1], vector)
            number = 2**33 + 5 + 8 + turn // threads * max(vector, 2) + lane
            expected[row, column] = philox_number(2**62 + 77, turn % threads, number)
    check(module, state, expected=lambda _: (expected,))


def test_text_comes_back() -> None:
    text = """\
func.func @main(%seed: vector<4xi64>, %sequence: vector<4xi64>, %number: vector<4xi64>) -> \
vector<4xi64> {
  %0 = math.philox %seed, %sequence, %number : vector<4xi64>
  return %0 : vector<4xi64>
}
"""
    module = irc.parse(text)
    irc.verify(module)
    assert text.strip() in str(irc.parse(irc.print_op(module))).replace("\n  ", "\n").replace(
        "\n%0", "\n  %0"
    ).replace("\nreturn", "\n  return")
    with pytest.raises(irc.IRCError, match="takes i64, not i32"):
        irc.verify(irc.parse(text.replace("i64", "i32")))


REFUSED = """\
func.func @main(%s: {state}) -> {bits} attributes {{level = "graph"}} {{
  %u = graph.philox %s {{base = 0 : i64, numbers = 4 : i64, strides = #sym.dims<{strides}>, \
threads = #sym<{threads}>, vector = {vector} : i64}} : ({state}) -> {bits}
  return %u : {bits}
}}
"""
DRAWING = {
    "state": "tensor<2xi64>", "bits": "tensor<4x6xi64>", "strides": "[6, 1]", "threads": 256,
    "vector": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": "tensor<3xi64>"}, "not a seed and an offset"),
        ({"state": "tensor<2xi32>"}, "not a seed and an offset"),
        ({"bits": "tensor<4x6xi32>"}, "not i64 elements"),
        ({"strides": "[1]"}, "1 strides for 2 dimensions"),
        ({"vector": 0}, "vector 0 at least 1"),
        ({"vector": 8}, "4 numbers a turn are too few for 8 elements"),
        ({"threads": 0}, "there are 0 threads"),
    ],
)
def test_what_is_no_drawing_is_refused(change: dict[str, object], message: str) -> None:
    irc.verify(irc.parse(REFUSED.format(**DRAWING)))
    with pytest.raises(irc.IRCError, match=message):
        irc.verify(irc.parse(REFUSED.format(**(DRAWING | change))))
