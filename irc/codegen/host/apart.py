"""Steps that may not run: the condition of a range of sizes, and what is made in such a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from irc.codegen.host.base import as_value, constant

if TYPE_CHECKING:
    from irc.codegen.host.lowering import Lowering
    from irc.program.host_program import SizeRange


@contextmanager
def only_within(lowering: Lowering, when: SizeRange) -> Iterator[None]:
    """What is emitted inside runs for sizes in a range alone."""
    b, size = lowering.builder, as_value(lowering.dims(when.size))
    holds = b.icmp_signed(">=", size, constant(when.least))
    if when.most is not None:
        holds = b.and_(holds, b.icmp_signed("<=", size, constant(when.most)))
    with b.if_then(holds), lowering.apart():
        yield


@contextmanager
def made_apart(lowering: Lowering) -> Iterator[None]:
    """Handles, addresses and numbers that are made inside are not there behind it."""
    places = lowering.places.values()
    before = [(place, place.tensor, place.address) for place in places]
    tensors = [(t, t.data, t.sizes, t.strides) for _, t, _ in before if t is not None]
    retyped = dict(lowering.retyped)
    with lowering.dims.apart():
        yield
    for place, tensor, address in before:
        place.tensor, place.address = tensor, address
    for tensor, data, sizes, strides in tensors:
        tensor.data, tensor.sizes, tensor.strides = data, sizes, strides
    lowering.retyped = retyped


__all__ = ["made_apart", "only_within"]
