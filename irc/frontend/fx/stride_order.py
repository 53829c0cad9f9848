"""The order of the strides of elementwise results, where operands have several orders.

ATen's kernels order a result by the strides of all operands together, in which an expanded
dimension has no say. torch's shape functions for some operators go by steps instead: a step of one
operand alone has that one's order, and its expanded dimensions written out, and has a say in the
next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm
from torch.fx.experimental.symbolic_shapes import guard_or_false

aten = torch.ops.aten

#: Operators of several tensors whose shape functions or decompositions go by such steps.
BY_STEPS = """
    copysign.Tensor floor_divide.default heaviside.default logaddexp.default logaddexp2.default
    logical_and.default logical_or.default logical_xor.default logit_backward.default
    special_xlog1py.default xlogy.Tensor
""".split()
#: Those of them that compute with integers in floats.
TO_FLOATS = frozenset({aten.copysign.Tensor, aten.special_xlog1py.default, aten.xlogy.Tensor})


def by_steps() -> list[Any]:
    """The overloads of BY_STEPS."""
    names = (name.split(".") for name in BY_STEPS)
    return [getattr(getattr(aten, packet), overload) for packet, overload in names]


def ordered(overload: Any, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """A decomposition (None: the operator stays whole) of which every operand has the order that
    ATen gives the result, so that each step has it."""

    def compute(*args: Any, **keywords: Any) -> Any:
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.dim()]
        tensors = [args[i] for i in places]
        written = tensors if _of_one_order(tensors) else _in_order(overload, tensors)
        if function is None and all(new is old for new, old in zip(written, tensors, strict=True)):
            return NotImplemented
        operands = list(args)
        for place, tensor in zip(places, written, strict=True):
            operands[place] = tensor
        return (function or overload)(*operands, **keywords)

    return compute


def _of_one_order(tensors: Sequence[Tensor]) -> bool:
    """Whether there is nothing to decide."""
    return len(tensors) < 2 or all(t.is_contiguous() for t in tensors)


def _in_order(overload: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The operands, of which those are written out that have another order than the result."""
    if tensors[0].device.type == "cpu":
        tensors = _cast(tensors, _computed_in(overload, tensors))
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    whole = [t.expand(shape) for t in tensors]
    several = [dim for dim, size in enumerate(shape) if not guard_or_false(size == 1)]
    order = order_in_memory(*whole)
    decided = [dim for dim in order if dim in several]

    def as_decided(t: Tensor) -> bool:
        return [dim for dim in order_in_memory(t) if dim in several] == decided

    return [
        tensor if as_decided(t) else _written(t, order)
        for tensor, t in zip(tensors, whole, strict=True)
    ]


def order_in_memory(*tensors: Tensor) -> list[int]:
    """The dimensions from the outermost to the innermost of what is computed with tensors."""
    return compute_elementwise_output_logical_to_physical_perm(*tensors)[0]


def dimension_order(value: Tensor) -> list[int]:
    """The dimensions of more than one element, from the widest step to the narrowest, as they were
    seen while tracing."""
    known = [d for d, n in enumerate(value.shape) if _seen(n) != 1]
    return sorted(known, key=lambda d: (-_seen(value.stride(d)), d))


def _seen(size: Any) -> int:
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else 0


def _written(tensor: Tensor, order: list[int]) -> Tensor:
    dense = tensor.permute(order).clone(memory_format=torch.contiguous_format)
    return dense.permute(inverse_permutation(order))


def inverse_permutation(order: Sequence[int]) -> list[int]:
    """The permutation that undoes one."""
    return [order.index(dim) for dim in range(len(order))]


def _computed_in(overload: Any, tensors: Sequence[Tensor]) -> torch.dtype:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    if overload in TO_FLOATS and not (dtype.is_floating_point or dtype.is_complex):
        return torch.get_default_dtype()
    return dtype


def _cast(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Kernels for CPUs cast before they order: what was expanded is written out then."""
    return [t.to(dtype) if _is_expanded(t) else t for t in tensors]


def _is_expanded(tensor: Tensor) -> bool:
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return any(guard_or_false(step == 0) and guard_or_false(size > 1) for size, step in steps)
