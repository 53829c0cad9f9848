"""The loops that say what a machine can do at most."""

from __future__ import annotations

import irc
from bench.products import MATRIX_LOOP


def test_the_loop_of_whole_tiles_is_a_kernel() -> None:
    irc.verify(irc.parse(MATRIX_LOOP))
