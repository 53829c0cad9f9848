"""Arguments for a function: dtypes, sizes, strides, offsets and shared storage as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch

from irc.interp.core import carried, torch_dtype
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.ir.symbols import evaluate
from irc.ir.types import TensorType, contiguous_strides
from irc.validation.sizes import argument_entry, argument_strides, assignments

DEFAULT_INTEGER = 5
DEFAULT_FLOAT = 0.5
#: Ranges of random integers, tried in order until the program accepts its arguments: they may be
#: indices, sizes or counts.
INTEGER_RANGES = ((0, 4), (1, 3), (0, 2), (0, 1), (1, 2), (0, 12))


#: Most bytes of arguments that are made at random.
MAX_BYTES = 1 << 32


@attrs.frozen
class PlacedTensor:
    """An argument that is a tensor: its place in storage number `storage`."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@attrs.frozen
class Inputs:
    """Arguments of a function, which each run gets as fresh copies.

    storages: one 1-d tensor per storage; arguments: `Placed` or a number each.
    """

    storages: tuple[torch.Tensor, ...]
    arguments: tuple[Any, ...]

    def fresh(self, mode: str) -> list[Any]:
        """Copies, with strides, offsets and shared storage; floats as f64 in mode "real"."""
        copies = [s.to(carried(s.dtype, mode), copy=True) for s in self.storages]
        arguments: list[Any] = []
        for argument in self.arguments:
            if not isinstance(argument, PlacedTensor):
                arguments.append(argument)
                continue
            memory = copies[argument.storage].view(carried(argument.dtype, mode))
            arguments.append(memory.as_strided(argument.shape, argument.strides, argument.offset))
        return arguments

    def copy(self) -> Inputs:
        """The same arguments in storages of their own."""
        return attrs.evolve(self, storages=tuple(s.clone() for s in self.storages))

    @property
    def has_mode_real(self) -> bool:
        """Whether the arguments can be carried as f64: not where values of a float type
        and of another one share a storage."""
        kinds: dict[int, set[torch.dtype]] = {}
        for argument in self.arguments:
            if isinstance(argument, PlacedTensor):
                kinds.setdefault(argument.storage, set()).add(argument.dtype)
        return all(
            len(dtypes) == 1 or all(carried(d, "real") == d for d in dtypes)
            for dtypes in kinds.values()
        )


def from_tensors(arguments: Sequence[Any]) -> Inputs:
    """Inputs with the elements, strides, offsets and shared storages of `arguments`."""
    storages: list[torch.Tensor] = []
    numbers: dict[Any, int] = {}
    placed: list[Any] = []
    for argument in arguments:
        if not isinstance(argument, torch.Tensor):
            placed.append(argument)
            continue
        tensor = argument.detach()
        memory = tensor.untyped_storage()
        key = (memory.data_ptr(), memory.nbytes()) if memory.nbytes() else id(argument)
        if key not in numbers:
            numbers[key] = len(storages)
            flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(memory)
            storages.append(flat)
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        offset = int(tensor.storage_offset())
        placed.append(PlacedTensor(numbers[key], tensor.dtype, shape, strides, offset))
    return Inputs(tuple(storages), tuple(placed))


def make_inputs(
    function: Operation,
    env: Mapping[str, int],
    seed: int = 0,
    integers: tuple[int, int] = INTEGER_RANGES[0],
    positive: bool = False,
) -> Inputs:
    """Random arguments of a function whose symbols have the values `env`.

    Floats are normally distributed, or in [0.25, 1.75) with `positive` (so that logarithms,
    roots and divisions have values); integers in the half-open range `integers`; an integer
    argument that is bound to a symbol has its value.
    """
    generator = torch.Generator().manual_seed(seed)
    arguments = function.regions[0].blocks[0].arguments
    owner = _owners(function, len(arguments))
    extents: dict[int, int] = {}
    inputs: list[Any] = []
    for position, argument in enumerate(arguments):
        if not isinstance(argument.type, TensorType):
            inputs.append(_scalar(argument, env))
            continue
        placed = _place(function, position, env, owner[position])
        needed = _extent(placed) * placed.dtype.itemsize
        extents[placed.storage] = max(extents.get(placed.storage, 0), needed)
        inputs.append(placed)
    storages = {}
    for number, size in extents.items():
        dtype = inputs[number].dtype
        count = -(-size // dtype.itemsize)
        storages[number] = _random(count, dtype, generator, integers, positive)
    order = {number: k for k, number in enumerate(storages)}
    final = [
        attrs.evolve(a, storage=order[a.storage]) if isinstance(a, PlacedTensor) else a
        for a in inputs
    ]
    return Inputs(tuple(storages.values()), tuple(final))


def random_arguments(function: Operation, sizes: Mapping[str, int], seed: int) -> list[Any]:
    """One random argument per parameter, with the symbols in `sizes` as given and the others
    chosen by `assignments`. Raises UserError when no values fit the function's facts, and for
    arguments of more than `MAX_BYTES` together."""
    env = next(assignments(function, sizes), None)
    if env is None:
        shown = ", ".join(f"{k}={v}" for k, v in sizes.items()) or "any sizes"
        raise UserError(f"no values of the symbols fit the function's facts with {shown}")
    needed = 0
    for position, argument in enumerate(function.regions[0].blocks[0].arguments):
        if isinstance(argument.type, TensorType):
            placed = _place(function, position, env, position)
            needed += _extent(placed) * placed.dtype.itemsize
    if needed > MAX_BYTES:
        raise UserError(
            f"the arguments have {needed:,} bytes, more than {MAX_BYTES:,}", op=function
        )
    return make_inputs(function, env, seed).fresh("exact")


def _owners(function: Operation, count: int) -> list[int]:
    """For each argument the first one whose storage it shares (`aliases`), itself without."""
    owner = list(range(count))
    groups = function.attributes.get("aliases")
    for group in groups if isinstance(groups, A.ArrayAttr) else ():
        members = [entry.value for entry in group]  # type: ignore[attr-defined]
        for member in members:
            owner[member] = members[0]
    return owner


def _place(
    function: Operation, position: int, env: Mapping[str, int], storage: int
) -> PlacedTensor:
    type_ = function.regions[0].blocks[0].arguments[position].type
    assert isinstance(type_, TensorType)
    shape = tuple(evaluate(d, env) for d in type_.shape)
    strides = argument_strides(function, position)
    if strides is None or len(strides) != len(shape):
        strides = contiguous_strides(shape)
    entry = argument_entry(function, position, "offset")
    offset = evaluate(entry.dim, env) if isinstance(entry, A.DimAttr) else 0
    numbers = tuple(evaluate(d, env) for d in strides)
    return PlacedTensor(storage, torch_dtype(type_.element), shape, numbers, offset)


def _extent(placed: PlacedTensor) -> int:
    """The elements that its storage needs at least."""
    if 0 in placed.shape:
        return placed.offset
    reach = sum((n - 1) * s for n, s in zip(placed.shape, placed.strides, strict=True))
    return placed.offset + reach + 1


def _random(
    count: int,
    dtype: torch.dtype,
    generator: torch.Generator,
    integers: tuple[int, int],
    positive: bool,
) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(*integers, (count,), generator=generator).to(dtype)
    if dtype.is_complex:
        parts = torch.randn(2, count, generator=generator)
        return torch.complex(parts[0], parts[1]).to(dtype)
    if positive:
        return (torch.rand(count, generator=generator) * 1.5 + 0.25).to(dtype)
    return torch.randn(count, generator=generator).to(dtype)


def _scalar(argument: Any, env: Mapping[str, int]) -> Any:
    for user in argument.users:
        symbol = user.attributes.get("symbol")
        if symbol is not None and symbol.value in env:
            return env[symbol.value]
    type_ = str(argument.type)
    if type_ == "i1":
        return True
    return DEFAULT_INTEGER if type_[0] == "i" else DEFAULT_FLOAT
