"""What bench.scaling says of times: exponents, and which are judged."""

from __future__ import annotations

import pytest

from bench import scaling


@pytest.mark.fault("V20")
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponents_are_slopes(power):
    lengths = [8, 16, 32, 64]
    assert scaling.exponent(lengths, [0.01 * n**power for n in lengths]) == pytest.approx(power)


def test_short_steps_are_not_judged():
    lengths = [10, 20, 40]
    found = {"long": [0.1, 0.2, 0.4], "short": [1e-4, 4e-4, 16e-4], "bad": [0.1, 0.4, 1.6]}
    exponents = scaling.judged(lengths, found)
    assert sorted(exponents) == ["bad", "in all", "long"]
    assert exponents["bad"] > scaling.LIMIT > exponents["long"]
    assert "!" in scaling.report("family", lengths, found)[0]


def test_every_family_compiles():
    for name, (make, _) in scaling.FAMILIES.items():
        times = scaling.compile_times(make(3))
        assert {"importer", "bufferize", "verify host"} <= times.keys(), name
