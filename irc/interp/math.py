"""The meaning of the math dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from irc.dialects.math.philox import philox_number
from irc.interp.core import Frame, interprets
from irc.ir.core import Operation
from irc.ir.registry import lookup_op


def philox_bits(seed: torch.Tensor, sequence: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """`math.philox` on integers as Python has them."""
    shape = torch.broadcast_shapes(seed.shape, sequence.shape, number.shape)
    columns = [t.expand(shape).reshape(-1).tolist() for t in (seed, sequence, number)]
    bits = [philox_number(*numbers) for numbers in zip(*columns, strict=True)]
    return torch.tensor(bits, dtype=torch.int64).reshape(shape)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1,
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "atan2": torch.atan2,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
    "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv, "sigmoid": torch.sigmoid,
    "powf": torch.pow, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
    "roundeven": torch.round, "absf": torch.abs, "absi": torch.abs, "copysign": torch.copysign,
    "isnan": torch.isnan, "isinf": torch.isinf, "lgamma": torch.lgamma,
    "digamma": torch.digamma, "nextafter": torch.nextafter,
    "fma": lambda a, b, c: torch.addcmul(c, a, b), "philox": philox_bits,
}  # fmt: skip


def _handler(function: Callable[..., Any]) -> Callable[[Frame, Any], Any]:
    def handle(frame: Frame, op: Operation) -> torch.Tensor:
        operands = frame.operands(op)
        return function(*operands)

    return handle


for _name, _function in FUNCTIONS.items():
    _cls = lookup_op(f"math.{_name}")
    if _cls is not None:
        interprets(_cls)(_handler(_function))
