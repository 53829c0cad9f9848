"""Makes `coefficients.py`: `python -m irc.codegen.math.fit` prints it.

Each table interpolates a smooth function at the Chebyshev nodes of its interval in 60-digit
arithmetic, which is within a small factor of the best polynomial; degrees are chosen so that the
error of the approximation stays well under the rounding of the evaluation.  Run by a developer
when a degree or an interval changes, never at compile time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import attrs
import mpmath

Function = Callable[[Any], Any]


def _nodes(low: Any, high: Any, count: int) -> list[Any]:
    middle, half = (low + high) / 2, (high - low) / 2
    return [
        middle + half * mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * count)) for i in range(count)
    ]


def fit_polynomial(function: Function, low: Any, high: Any, degree: int) -> list[Any]:
    """Coefficients, lowest power first, of the interpolating polynomial of `degree`."""
    nodes = _nodes(mpmath.mpf(low), mpmath.mpf(high), degree + 1)
    matrix = mpmath.matrix(degree + 1, degree + 1)
    for row, node in enumerate(nodes):
        for power in range(degree + 1):
            matrix[row, power] = node**power
    right = mpmath.matrix([function(node) for node in nodes])
    return list(mpmath.lu_solve(matrix, right))


def worst_error(function: Function, coefficients: list[Any], low: Any, high: Any) -> float:
    """The largest difference over 400 points of the interval."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    points = [low + (high - low) * (i + 0.37) / 400 for i in range(400)]
    return float(max(abs(mpmath.polyval(coefficients[::-1], p) - function(p)) for p in points))


def _scaled_erfc(t: Any) -> Any:
    """erfc(x) exp(x^2) (1 + 2x) of t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return mpmath.erfc(x) * mpmath.exp(x * x) * (1 + 2 * x)


def _log_residue(z: Any) -> Any:
    """(2 atanh(s)/s - 2) / s^2 of z = s^2."""
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) / s - 2) / z


def _root(function: Function) -> Function:
    """(function(t)/t - 1) / t^2 of z = t^2, for odd functions that start as t."""

    def residue(z: Any) -> Any:
        t = mpmath.sqrt(z)
        return (function(t) / t - 1) / z

    return residue


def _cos_residue(z: Any) -> Any:
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / (z * z)


def _erf_residue(z: Any) -> Any:
    t = mpmath.sqrt(z)
    return mpmath.erf(t) / t - 1


def _erfinv_central(w: Any) -> Any:
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def _erfinv_near(shifted: Any) -> Any:
    """erfinv(x) / x of -log(1 - x^2) - 2.5."""
    return _erfinv_central(shifted + 2.5)


def _erfinv_tail(shifted: Any) -> Any:
    """erfinv(x) / x of sqrt(-log(1 - x^2)) - 3."""
    return _erfinv_central((shifted + 3) ** 2)


LOG2 = mpmath.log(2)

# name: (function, low, high, degree in f32, degree in f64); None where a type has no use for it
TABLES: dict[str, tuple[Function, Any, Any, int | None, int | None]] = {
    "exp": (lambda r: (mpmath.expm1(r) - r) / (r * r), -0.3468, 0.3467, 4, 9),
    "exp_sixteenth": (lambda r: (mpmath.expm1(r) - r) / (r * r), -0.0217, 0.0218, 1, None),
    "log": (lambda f: (mpmath.log1p(f) - f) / (f * f), -0.2929, 0.4143, 8, None),
    "log_ratio": (_log_residue, 0, 0.02944, None, 6),
    "pow_log": (lambda z: 2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z), 0, 0.02944, None, 5),
    "pow_exp": (lambda r: (mpmath.expm1(r) - r) / (r * r), -0.3468, 0.3467, None, 5),
    "sin": (_root(mpmath.sin), 0, 2.4675, 4, 7),
    "cos": (_cos_residue, 0, 0.6169, 2, 5),
    "atan": (_root(mpmath.atan), 0, 1, 8, 19),
    "asin": (_root(mpmath.asin), 0, 0.25, 5, 12),
    "erf": (_erf_residue, 0, 1, 6, 11),
    "erf_tail": (lambda u: mpmath.erfc(u + 2.5), -1.5, 1.45, 14, None),
    "erfc": (_scaled_erfc, -1, (10.1 - 4) / (10.1 + 4), 10, None),
    "erfc_wide": (_scaled_erfc, -1, (27.3 - 4) / (27.3 + 4), None, 23),
    # The power of two that erfc is, for results of 16 bits; beyond 4.5 it goes on falling.
    "erfc_power": (lambda a: mpmath.log(mpmath.erfc(a), 2) / a, 0, 4.5, 6, None),
    "erfinv_central": (_erfinv_near, -2.5, 2.5, 10, None),
    "erfinv_tail": (_erfinv_tail, -0.764, 1.1, 9, None),
}


@attrs.frozen
class ErfPieces:
    """erf's pieces: |x| is rounded to a multiple of `step`, and piece number i is around i * step.

    `entries` are what a shuffle looks up: sixteen with AVX-512, eight with AVX2. Beyond the last
    piece erf is 1 in f32. `first_center` is where the first piece after the one at 0 is expanded:
    near its start, where erf is smallest.
    """

    entries: int
    step: float
    degree: int
    first_center: float


ERF_PIECES = (ErfPieces(16, 0.25, 5, 0.225), ErfPieces(8, 0.52, 6, 0.45))
#: Powers of two that one shuffle of AVX-512 looks up.
EXP_ENTRIES = 16


def _single(value: Any) -> float:
    """`value` rounded to f32."""
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def _single_near(middle: float) -> tuple[float, float]:
    """(c, erf(c)) in f32 with c near `middle` such that erf(c) is nearly exact (Gal's method)."""
    spread = 0.004
    best = (mpmath.inf, 0.0, 0.0)
    for step in range(2001):
        center = _single(middle + spread * (step / 1000 - 1))
        exact = mpmath.erf(center)
        rounded = _single(exact)
        best = min(best, (abs(exact - rounded), center, rounded))
    return best[1], best[2]


def _erf_piece(pieces: ErfPieces, number: int) -> tuple[float, list[Any]]:
    """(c, coefficients of erf(c + u)) of one piece; of the first one, of erf(u) - u."""
    half, degree = mpmath.mpf(pieces.step) / 2, pieces.degree
    slope = 2 / mpmath.sqrt(mpmath.pi)
    if number == 0:
        quotient = fit_polynomial(
            lambda u: mpmath.erf(u) / u - 1 if u else slope - 1, 0, half, degree - 1
        )
        return 0.0, [mpmath.mpf(0), *quotient]
    middle = number * pieces.step
    center, value = _single_near(pieces.first_center if number == 1 else middle)
    end = middle + half - center
    # The last piece ends in 1, so that the limit is exact: an error of 0.7 ulp.
    missing = 1 - mpmath.erf(center + end) if number == pieces.entries - 1 else 0

    def quotient_at(u: Any) -> Any:
        if not u:
            return slope * mpmath.exp(-mpmath.mpf(center) ** 2)
        mended = missing * (u / end) ** 4 if u > 0 else 0
        return (mpmath.erf(center + u) + mended - value) / u

    quotient = fit_polynomial(quotient_at, end - 2 * half, end, degree - 1)
    return center, [mpmath.mpf(value), *quotient]


def _print_lookups() -> None:
    """The tables that are looked up by the low four bits of an integer."""
    powers = [mpmath.mpf(2) ** (mpmath.mpf(i) / EXP_ENTRIES) for i in range(EXP_ENTRIES)]
    rounded = [_single(p) for p in powers]
    print("# 2^(i/16) in f32, and what the rounding lost, relative to it")
    _print_table("EXP_POWERS_F32", [mpmath.mpf(p) for p in rounded])
    rests = [exact / near - 1 for exact, near in zip(powers, rounded, strict=True)]
    _print_table("EXP_POWERS_REST_F32", rests)
    for pieces in ERF_PIECES:
        _print_erf(pieces)


def _print_erf(pieces: ErfPieces) -> None:
    fitted = [_erf_piece(pieces, number) for number in range(pieces.entries)]
    print(f"# erf(c + u) in steps of {pieces.step}: centers c, then each power's coefficients")
    _print_table(f"ERF_{pieces.entries}_CENTERS_F32", [mpmath.mpf(center) for center, _ in fitted])
    print(f"ERF_{pieces.entries}_PIECES_F32 = (")
    for power in range(pieces.degree + 1):
        print("    (")
        for _, coefficients in fitted:
            print(f"        {mpmath.nstr(coefficients[power], 20)},")
        print("    ),")
    print(")")


def _print_table(name: str, coefficients: list[Any]) -> None:
    print(f"{name} = (")
    for coefficient in coefficients:
        print(f"    {mpmath.nstr(coefficient, 20)},")
    print(")")


def main() -> None:
    mpmath.mp.dps = 60
    print('"""Polynomial coefficients, lowest power first; made by `fit.py`, not by hand."""\n')
    for name, (function, low, high, degree_32, degree_64) in TABLES.items():
        for bits, degree in ((32, degree_32), (64, degree_64)):
            if degree is None:
                continue
            coefficients = fit_polynomial(function, low, high, degree)
            error = worst_error(function, coefficients, low, high)
            print(f"# largest error {error:.1e} on [{float(low):.4f}, {float(high):.4f}]")
            _print_table(f"{name.upper()}_F{bits}", coefficients)
    _print_lookups()


if __name__ == "__main__":
    main()
