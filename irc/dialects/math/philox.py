"""Philox4x32-10, of which `math.philox` gives a number: Salmon, Moraes, Dror and Shaw, Parallel
random numbers: as easy as 1, 2, 3 (SC 2011)."""

from __future__ import annotations

#: What the first and the third word of the counter are multiplied by in a round.
FACTORS = (0xD2511F53, 0xCD9E8D57)
#: What the keys grow by from round to round: the golden ratio, and the square root of 3 less 1.
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_LOW = (1 << 32) - 1


def philox_number(seed: int, sequence: int, number: int) -> int:
    """Number `number` of a sequence, below 2**32; each of the three is taken as 64 bits."""
    place = ((number % 2**64) >> 2) | (sequence % 2**64) << 64
    words = [place >> 32 * k & _LOW for k in range(4)]
    keys = [seed & _LOW, seed >> 32 & _LOW]
    for _ in range(ROUNDS):
        first, second = words[0] * FACTORS[0], words[2] * FACTORS[1]
        words = [second >> 32 ^ words[1] ^ keys[0], second & _LOW,
                 first >> 32 ^ words[3] ^ keys[1], first & _LOW]  # fmt: skip
        keys = [key + step & _LOW for key, step in zip(keys, STEPS, strict=True)]
    return words[number & 3]


__all__ = ["FACTORS", "ROUNDS", "STEPS", "philox_number"]
