"""Comparison of one call of a compiled function with the same call in eager mode.

A `Call` holds all that a caller can see: results, gradients, the arguments afterwards, and which of
these share storage.  `difference` gives the first thing that is not equal, as (kind, message).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

# Their results are uninitialised memory: everything but the values is compared.
UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)


@dataclasses.dataclass
class Call:
    """What one call left: results and gradients (None: no gradient), and its arguments after it."""

    results: list[Any]
    gradients: list[torch.Tensor | None]
    arguments: list[torch.Tensor]


def copies(tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    """Leaf copies with the same sizes, strides, offsets, shared storage and requires_grad.

    With `dtype`, floating tensors are converted to it (dense, sharing nothing).
    """
    storages: dict[int, torch.UntypedStorage] = {}
    made = []
    for tensor in tensors:
        source = tensor.detach()
        if dtype is not None and source.is_floating_point():
            copy = source.to(dtype, copy=True)
        elif source.layout != torch.strided or source.is_conj() or source.is_neg():
            copy = source.clone()
        else:
            storage = source.untyped_storage()
            if storage._cdata not in storages:
                storages[storage._cdata] = storage.clone()
            copy = torch.empty(0, dtype=source.dtype, device=source.device).set_(
                storages[storage._cdata], source.storage_offset(), source.size(), source.stride()
            )
        made.append(copy.requires_grad_(tensor.requires_grad))
    return made


def call(
    function: Callable[..., Any],
    arguments: list[torch.Tensor],
    backward: bool,
    process: Callable[[Any], Any],
    dtype: torch.dtype = torch.float64,
) -> Call:
    """Call `function` under a fixed seed; with `backward` also get gradients of the arguments.

    The gradients that flow in are random but the same in each call: rounded to `dtype`, and then to
    the result's own.
    """
    torch.manual_seed(7)
    output = function(*arguments)
    results = pytree.tree_leaves(output)
    gradients: list[torch.Tensor | None] = []
    if backward:
        wanted = [a for a in arguments if a.requires_grad]
        scored = [
            r
            for r in pytree.tree_leaves(process(output))
            if isinstance(r, torch.Tensor) and r.requires_grad
        ]
        if scored and wanted:
            generator = torch.Generator().manual_seed(11)
            seeds = [
                torch.randn(r.shape, generator=generator, dtype=torch.float64).to(dtype).to(r)
                for r in scored
            ]
            gradients = list(torch.autograd.grad(scored, wanted, seeds, allow_unused=True))
    return Call(results, gradients, arguments)


def sharing(call: Call) -> list[tuple[int, int]]:
    """For each tensor result: the first argument, and the first result, whose storage it shares."""

    def storage(value: Any) -> int | None:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return None
        return value.untyped_storage()._cdata

    arguments = [storage(a) for a in call.arguments]
    results = [storage(r) for r in call.results]
    pattern = []
    for mine in results:
        if mine is None:
            pattern.append((-1, -1))
            continue
        first = arguments.index(mine) if mine in arguments else -1
        pattern.append((first, results.index(mine)))
    return pattern


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of dimensions that have more than one element; () for an empty tensor."""
    if tensor.numel() == 0:
        return ()
    return tuple(k for k, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1)


def _metadata(expected: torch.Tensor, got: torch.Tensor) -> tuple[str, str] | None:
    for kind in ("dtype", "shape", "layout", "device", "requires_grad"):
        want, have = getattr(expected, kind), getattr(got, kind)
        if want != have:
            return kind, f"{kind} {have}, eager {want}"
    if expected.layout == torch.strided and strides(expected) != strides(got):
        return "strides", f"strides {tuple(got.stride())}, eager {tuple(expected.stride())}"
    return None


def _close(expected: Any, got: Any) -> str | None:
    """None if equal within torch's default tolerance for the dtype, else what is not."""
    try:
        torch.testing.assert_close(got, expected, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return None


def distances(
    got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor
) -> tuple[float, float, float] | None:
    """RMS of the errors of `got` and of eager against the float64 result, and that result's.

    None where these can't be told: other elements than floats, another shape, NaN or infinities
    elsewhere than eager has them.
    """
    if not (got.is_floating_point() and exact.shape == got.shape):
        return None
    mine, eager, exact = got.detach().double(), expected.detach().double(), exact.detach().double()
    finite = eager.isfinite()
    if not torch.equal(finite, mine.isfinite()):
        return None
    if not torch.equal(mine[~finite].nan_to_num(nan=0.5), eager[~finite].nan_to_num(nan=0.5)):
        return None
    finite &= exact.isfinite()
    if not finite.any():
        return 0.0, 0.0, 0.0
    parts = (mine - exact, eager - exact, exact)
    first, second, third = (part[finite].pow(2).mean().sqrt().item() for part in parts)
    return first, second, third


def no_farther(got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> bool:
    """Is the RMS error of `got` against float64 at most eager's?

    The measure is REQUIREMENTS' own, RMS for each output and gradient. The largest error is left
    out: of results that round at different places either has the largest by chance.
    """
    found = distances(got, expected, exact)
    return found is not None and found[0] <= found[1]


def accurate(got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> bool:
    """Is `got` accurate as REQUIREMENTS defines it: an RMS error of at most twice eager's, or under
    1e-5 (16-bit floats: 1e-2) of the reference's RMS?"""
    found = distances(got, expected, exact)
    if found is None:
        return False
    share = 1e-2 if got.element_size() == 2 else 1e-5
    return found[0] <= max(2 * found[1], share * found[2])


def difference(
    expected: Call, got: Call, exact: Callable[[], Call] | None, values: bool = True
) -> tuple[str, str] | None:
    """The first difference as (kind, message), or None.

    Kinds: structure, dtype, shape, layout, device, requires_grad, strides, aliasing, values,
    gradient, mutation, and, if there is nothing else, rounding: off eager's tolerance and farther
    from float64 than eager, but accurate.  `exact` makes the float64 call, asked for only where a
    floating value is off its tolerance.  `values=False` leaves the values out.
    """
    rounding: tuple[str, str] | None = None
    if len(expected.results) != len(got.results):
        return "structure", f"{len(got.results)} results, eager {len(expected.results)}"
    if sharing(expected) != sharing(got):
        message = f"(argument, result) shared {sharing(got)}, eager {sharing(expected)}"
        return "aliasing", message
    groups = (
        ("values", "result", expected.results, got.results),
        ("gradient", "gradient", expected.gradients, got.gradients),
        ("mutation", "argument", expected.arguments, got.arguments),
    )
    precise: list[Call] = []
    for number, (kind, noun, wanted, had) in enumerate(groups):
        for index, (want, have) in enumerate(zip(wanted, had, strict=True)):
            found = _one(kind, want, have, values)
            if found is None:
                continue
            if found[0] == kind and isinstance(want, torch.Tensor) and exact is not None:
                precise = precise or [exact()]
                group = (precise[0].results, precise[0].gradients, precise[0].arguments)[number]
                if index < len(group) and isinstance(group[index], torch.Tensor):
                    if no_farther(have, want, group[index]):
                        continue
                    if accurate(have, want, group[index]):
                        rounding = rounding or ("rounding", f"{noun} {index}: {found[1]}")
                        continue
            return found[0], f"{noun} {index}: {found[1]}"
    return rounding


def _one(kind: str, want: Any, have: Any, values: bool) -> tuple[str, str] | None:
    if isinstance(want, torch.Tensor) != isinstance(have, torch.Tensor):
        return "structure", f"{type(have).__name__}, eager {type(want).__name__}"
    if isinstance(want, torch.Tensor):
        wrong = _metadata(want, have)
        if wrong is not None:
            return wrong
        if not values:
            return None
        wrong_value = _close(want.detach(), have.detach())
        return (kind, wrong_value) if wrong_value else None
    if not values or want is have or want == have:
        return None
    if isinstance(want, (int, float, complex)) and _close(want, have) is None:
        return None
    return kind, f"{have!r}, eager {want!r}"[:300]
