"""A few of the random products; `python -m tests.fuzz.contractions --count 5000` runs many."""

from __future__ import annotations

import pytest
import torch

from tests.fuzz import contractions


@pytest.mark.parametrize("seed", range(6))
def test_random_products_are_those_of_eager_mode(seed):
    program = contractions.random_product(seed)
    assert contractions.difference(program) == "", program.label


@pytest.mark.parametrize("seed", range(8))
def test_random_convolutions_are_those_of_eager_mode(seed):
    program = contractions.random_convolution(seed)
    assert contractions.difference(program) == "", program.label


@pytest.mark.parametrize(("seed", "place"), [*((n, "cpu") for n in range(6)), (0, "triton"),
                                             (3, "triton"), (11, "triton")])  # fmt: skip
def test_random_gradients_are_those_of_eager_mode(seed, place):
    program = contractions.random_gradients(seed, 65)
    assert contractions.difference(program, place, seed) == "", program.label


@pytest.mark.parametrize("seed", range(8))
def test_random_products_of_integers_are_those_of_eager_mode(seed):
    program = contractions.random_integers(seed)
    assert contractions.difference(program) == "", program.label


@pytest.mark.parametrize("seed", range(4))
def test_one_program_of_many_sizes_is_right_for_each(seed):
    program = contractions.random_sizes(seed)
    assert contractions.difference(program) == "", program.label


@pytest.mark.parametrize("seed", range(8))
def test_random_products_of_parts_are_those_of_eager_mode(seed):
    program = contractions.random_parts(seed)
    assert contractions.difference(program, "parts") == "", program.label


def test_a_wrong_product_is_found(monkeypatch, capsys):
    wrong = contractions.RandomProduct(lambda a: (a @ a,), (torch.eye(4),), False, False, "wrong")
    monkeypatch.setattr(contractions, "random_product", lambda *_: wrong)
    monkeypatch.setattr(contractions.irc, "compile", lambda *_, **__: lambda a: (a + 1,))
    assert contractions.main(["--count", "1"]) == 1
    assert "off by 1.0" in capsys.readouterr().out
