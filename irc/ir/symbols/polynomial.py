"""Division of polynomials."""

from __future__ import annotations

from irc.ir.symbols.expr import Dim, Expr, dim_product, dim_sum, factors_of, terms_of


def divide(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """(quotient, rest) with a = quotient*b + rest, polynomial division by b's leading term."""
    if b == 0:
        raise ZeroDivisionError(f"division of {a} by zero")
    terms, constant = terms_of(b)
    if not terms:
        lead: tuple[Expr, ...] = ()
        scale = constant
    else:
        monomial, scale = max(terms, key=lambda t: (len(factors_of(t[0])), t[0].order))
        lead = factors_of(monomial)
    quotient: list[Dim] = []
    rest = a
    # Each step removes one term; a bound keeps an unlucky pair of sums cheap.
    for _ in range(64):
        step = _first_multiple(rest, lead, scale)
        if step is None:
            break
        quotient.append(step)
        rest = rest - step * b
    return dim_sum(quotient), rest


def _first_multiple(d: Dim, lead: tuple[Expr, ...], scale: int) -> Dim | None:
    terms, constant = terms_of(d)
    for monomial, coefficient in terms:
        if coefficient % scale:
            continue
        rest = _cancel(factors_of(monomial), lead)
        if rest is not None:
            return dim_product(rest) * (coefficient // scale)
    if not lead and constant and constant % scale == 0:
        return constant // scale
    return None


def _cancel(factors: tuple[Expr, ...], divisor: tuple[Expr, ...]) -> list[Expr] | None:
    rest = list(factors)
    for factor in divisor:
        if factor not in rest:
            return None
        rest.remove(factor)
    return rest
