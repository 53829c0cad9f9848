"""What goes into a graph and what comes out: which inputs it reads where they are, how its results
reach the caller, and whether somebody still refers to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import torch

# How many refer to a storage, by its address in torch's memory.
_use_count: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)
# Whether tensors of a list are where they were: (tensors, addresses, positions of those to look
# at), the first two of one length.
_are_at: Callable[..., bool] | None = getattr(
    torch._C, "_tensors_data_ptrs_at_indices_equal", None
)


def storage_address(tensor: torch.Tensor) -> int:
    """Where the memory that a tensor is part of begins."""
    return tensor.untyped_storage().data_ptr()


def facts_of(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What a graph was captured for: sizes, strides, dtype and device of tensors, and numbers."""
    return tuple(
        (tuple(a.shape), a.stride(), a.dtype, a.device, a.is_conj(), a.is_neg())
        if isinstance(a, torch.Tensor) else (type(a), a)
        for a in arguments
    )  # fmt: skip


class Kinds:
    """Knows again arguments with the facts of `arguments`, all at once where torch has a function
    for it: `kinds.knows(arguments)`. Says no of some that have them (another autograd state)."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._tensors = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        self._others = [(i, type(a), a) for i, a in enumerate(arguments)
                        if not isinstance(a, torch.Tensor)]  # fmt: skip
        self._facts = facts_of(arguments)
        self._check = _guard([arguments[i] for i in self._tensors])

    def knows(self, arguments: Sequence[Any]) -> bool:
        """Whether these are of the same kind."""
        if len(arguments) != len(self._tensors) + len(self._others):
            return False
        if self._check is None:
            return facts_of(arguments) == self._facts
        for position, type_, value in self._others:
            content = arguments[position]
            if type(content) is not type_ or content != value:
                return False
        if not self._others:
            return self._check(*arguments)
        content = [arguments[i] for i in self._tensors]
        return all(isinstance(t, torch.Tensor) for t in content) and self._check(*content)


def _guard(tensors: Sequence[torch.Tensor]) -> Callable[..., bool] | None:
    """torch's own test of many tensors, which Dynamo's guards are made of."""
    make = getattr(getattr(torch._C._dynamo, "guards", None), "TensorGuards", None)
    if make is None:
        return None
    sizes = [list(t.shape) for t in tensors]
    strides = [list(t.stride()) for t in tensors]
    check = make(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return check if tensors and check(*tensors) else None


class Addresses:
    """Where the tensors at `positions` of a list are."""

    def __init__(self, arguments: Sequence[Any], positions: list[int]) -> None:
        self.positions = positions
        self.every: list[int | None] = [None] * len(arguments)
        for i in positions:
            self.every[i] = arguments[i].data_ptr()

    def hold(self, arguments: list[Any]) -> bool:
        """Whether they are where they were."""
        if _are_at is not None:
            return _are_at(arguments, self.every, self.positions)
        return not self.moved(arguments)

    def moved(self, arguments: Sequence[Any]) -> list[int]:
        """The positions of those that are elsewhere."""
        every = self.every
        return [i for i in self.positions if arguments[i].data_ptr() != every[i]]


def buffer_for(tensor: torch.Tensor) -> torch.Tensor:
    """Memory like a tensor's, with its strides, and as far from a multiple of 16 bytes."""
    span = 1 + sum((n - 1) * k for n, k in zip(tensor.shape, tensor.stride(), strict=True))
    if not tensor.numel():
        span = 0
    lead = tensor.data_ptr() % 16 // tensor.element_size()
    with torch.inference_mode(False):  # later calls write it, in that mode or not
        flat = torch.empty(span + lead, dtype=tensor.dtype, device=tensor.device)
        return flat.as_strided(tensor.shape, tensor.stride(), lead)


def copy_all(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Copy each tensor into its target, with one launch where torch can."""
    if len(targets) == 1:
        targets[0].copy_(sources[0])
    elif targets:
        torch._foreach_copy_(list(targets), list(sources))


@attrs.define
class Share:
    """A result that shares the memory of others, or doesn't begin where its memory does."""

    position: int
    place: int
    tensor: torch.Tensor


class Results:
    """The results of a graph: `fresh()` gives them as the caller may have them.

    `fresh`: the graph's own tensors by position. Those at `kept` are given as they are, in the
    graph's memory, as long as `are_free()` says that nobody refers to the ones given before; all
    others, and what shares memory with them or with one of `shared`, are copied. Nobody else
    refers to the memory of those kept when this is made.
    """

    def __init__(
        self,
        fresh: Sequence[tuple[int, torch.Tensor]],
        kept: Iterable[int],
        shared: Iterable[torch.Tensor] = (),
    ) -> None:
        reused = frozenset(kept) if _use_count is not None else frozenset()
        elsewhere = {t.untyped_storage()._cdata for t in shared}
        groups: dict[int, list[tuple[int, torch.Tensor]]] = {}
        for position, tensor in fresh:
            key = tensor.untyped_storage()._cdata
            groups.setdefault(key, []).append((position, tensor))
        self.kept: list[tuple[int, torch.Tensor]] = []
        self.single: list[tuple[int, torch.Tensor]] = []
        self._whole: list[torch.Tensor] = []
        self._shares: list[Share] = []
        for storage, group in groups.items():
            (position, tensor), *others = group
            if storage not in elsewhere and reused.issuperset(p for p, _ in group):
                self.kept += group
            elif not others and not tensor.storage_offset():
                self.single.append((position, tensor))
            else:
                self._shares += [Share(p, len(self._whole), t) for p, t in group]
                self._whole.append(_bytes_of(tensor))
        # torch may count an object of Python for a storage that was asked for: asked twice.
        storages = {t.untyped_storage()._cdata for _, t in self.kept}
        self._counts = [(s, _use_count(s)) for s in storages if _use_count is not None]

    @property
    def are_single(self) -> bool:
        """Whether each result is memory of its own, copied into fresh memory."""
        return not (self.kept or self._shares)

    @property
    def copied_bytes(self) -> int:
        """How many bytes `fresh` copies."""
        sources = [*(t for _, t in self.single), *self._whole]
        return sum(t.numel() * t.element_size() for t in sources)

    def are_free(self) -> bool:
        """Whether nobody but the graph refers to results that were given as they are."""
        count = _use_count
        return count is None or all([count(s) == own for s, own in self._counts])

    def fresh(self, into: list[Any]) -> None:
        """Put the results at their positions."""
        for position, tensor in self.kept:
            into[position] = tensor.detach()
        sources = [*(t for _, t in self.single), *self._whole]
        targets = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
                   for t in sources]  # fmt: skip
        copy_all(targets, sources)
        for (position, _), target in zip(self.single, targets, strict=False):
            into[position] = target
        memory = targets[len(self.single) :]
        for share in self._shares:
            into[share.position] = _placed(share.tensor, memory[share.place])


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole memory that a tensor is part of."""
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage())  # type: ignore[call-overload, no-any-return]


def _placed(like: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """The tensor in `memory` where `like` is in its own."""
    tensor = torch.empty(0, dtype=like.dtype, device=like.device)
    place = like.storage_offset(), like.shape, like.stride()
    return tensor.set_(memory.untyped_storage(), *place)  # type: ignore[call-overload, no-any-return]
