"""Sizes that once took for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irc.ir.symbols import Dim, evaluate, floordiv, mod, symbol


class Counting(Mapping[str, int]):
    """Values of symbols that counts how often one is asked for."""

    reads = 0

    def __getitem__(self, name: str) -> int:
        self.reads += 1
        return {"s0": 71}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(["s0"])

    def __len__(self) -> int:
        return 1


def test_a_size_behind_many_layers_is_evaluated_part_by_part() -> None:
    size: Dim = symbol("s0")
    number = 71
    for _ in range(6):
        size = floordiv(size, 2) * mod(size, 3) + floordiv(size, 5) + mod(size, 7)
        number = number // 2 * (number % 3) + number // 5 + number % 7
    values = Counting()
    assert evaluate(size, values) == number
    assert values.reads < 50
