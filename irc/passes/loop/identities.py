"""What changes nothing when it is combined: for lanes beyond what a reduction has."""

from __future__ import annotations

from collections.abc import Mapping

from irc.analysis.contraction import Contraction
from irc.ir.core import Value
from irc.ir.types import FloatType, IndexType, IntegerType, i1
from irc.passes.common.bodies import Body


def identity(body: Body, combiner: str, type_: object, accumulator: object) -> Value:
    """The constant that changes nothing when combined."""
    assert isinstance(type_, FloatType | IntegerType | IndexType)
    if combiner in ("sum", "xor", "any"):
        return body.constant(0, type_)
    if combiner in ("prod", "all"):
        return body.constant(1, type_)
    if isinstance(type_, FloatType):
        return body.constant(float("inf") if combiner == "min" else float("-inf"), type_)
    if type_ is i1:
        return body.constant(int(combiner == "min"), type_)
    width = type_.width if isinstance(type_, IntegerType) else 64
    if getattr(accumulator, "unsigned", False):
        return body.constant(-1 if combiner == "min" else 0, type_)
    top = (1 << (width - 1)) - 1
    return body.constant(top if combiner == "min" else -top - 1, type_)


def masked_product(
    contraction: Contraction, copies: Mapping[Value, Value], mask: Value, body: Body
) -> Value:
    """The copy of a contraction's product, of factors that are zero where the mask is false: what
    is read there is, and what is computed is made so, before it is widened to be multiplied."""
    product, factors = contraction.product, list[Value]()
    sides = {side.value: side for side in (contraction.left, contraction.right)}
    for operand in product.operands:
        side = sides[operand]
        factor = copies.get(operand, operand)
        if side.plain is None:
            narrow = copies.get(side.narrow, side.narrow)
            factor = body.select(mask, narrow, identity(body, "sum", narrow.type, None))
            if side.narrow is not operand and operand.defining_op is not None:
                factor = body.op(operand.defining_op.name, factor, type=operand.type)
        factors.append(factor)
    return body.add(type(product), factors, product.results[0].type, product.attributes)


__all__ = ["identity", "masked_product"]
