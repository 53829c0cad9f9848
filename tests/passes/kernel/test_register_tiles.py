"""Tiles of sums in registers: what is taken for large products, and where nothing fits evenly."""

from __future__ import annotations

import attrs
import pytest

from irc.passes.kernel.cpu.contraction.register_tiles import best_tile, panel_vectors
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve

AVX512 = TargetFeatures.avx512()
EVENLY = evolve(AVX512, tile_times=(12, 12, 6))


@pytest.mark.parametrize("features, lanes, vectors", [
    (AVX512, 16, 3), (EVENLY, 16, 4), (TargetFeatures.avx2(), 8, 2), (TargetFeatures.neon(), 4, 3),
    (attrs.evolve(AVX512, vector_bits=256), 8, 3),
])  # fmt: skip
def test_panels_have_the_vectors_of_the_fastest_tile(features, lanes, vectors):
    assert panel_vectors(Target(features), lanes) == vectors


def test_a_tile_leaves_registers_for_its_factors():
    for features, registers in ((AVX512, 32), (TargetFeatures.avx2(), 16)):
        for beside in (0, 1):
            target = Target(features)
            rows, vectors = best_tile(target, 8, 720, 960, range(1, 65), range(1, 5), beside)
            assert (rows + beside + 1) * vectors < registers


def test_tiles_that_leave_no_others_at_the_ends_are_taken():
    assert best_tile(Target(AVX512), 16, 512, 768, range(1, 65), range(1, 5)) == (8, 3)
    assert best_tile(Target(AVX512), 16, 513, 768, range(1, 65), range(1, 5)) == (9, 3)
