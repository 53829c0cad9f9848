"""The types in which reductions and scans combine elements: one table, taken from ATen.

What ATen does was found by experiment (`tests/passes/graph/test_accumulation.py` repeats it): sums
and products whose steps leave a type's range, or lose its digits, show where it is a wider one.
A row that differs from ATen says why.
"""

from __future__ import annotations

from collections.abc import Mapping

from irc.ir.attributes import Type
from irc.ir.types import ComplexType, bf16, f16, f32, f64
from irc.passes.graph.convert_aten.support import compute_element

# A way of combining -> kind of device ("": any other) -> element -> accumulator. An element that
# is not named is combined in the type that arithmetic on it uses; integers wrap.
ACCUMULATORS: Mapping[str, Mapping[str, Mapping[Type, Type]]] = {
    # sum, prod, mean, nansum, norms, logsumexp, softmax. ATen adds f32 in f32, in many running
    # sums that are joined at the end, and so do kernels here.
    "reduce": {"": {f16: f32, bf16: f32, f32: f32}},
    # var, std and their means. ATen's on a CPU count in f64, those inside of its layer norm in
    # f32. Two passes (`graph.moments`) in f32 lose no digits; what they lose is range: the std
    # of elements that are more than 1e19 apart is infinite.
    "moments": {"": {f16: f32, bf16: f32, f32: f32}},
    # cumsum, cumprod, logcumsumexp. One running number takes every element, so that in f32 its
    # error would grow with their count; ATen's on a GPU are made of tiles, in f32.
    "scan": {"cpu": {f16: f32, bf16: f32, f32: f64}, "": {f16: f32, bf16: f32, f32: f32}},
}


def accumulator_of(way: str, element: Type, device: str) -> Type:
    """The type in which elements are combined on a device ("cpu", "cuda:0").

    way: a key of `ACCUMULATORS`. Complex elements are ATen's and not asked for.
    """
    assert not isinstance(element, ComplexType)
    by_device = ACCUMULATORS[way]
    table = by_device.get(device.partition(":")[0], by_device[""])
    return table.get(element, compute_element(element))


__all__ = ["ACCUMULATORS", "accumulator_of"]
