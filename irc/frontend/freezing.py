"""Freezing: parameters, buffers and tensor attributes of modules as constants of the program.

A frozen program holds for the very tensors that it was made with, as they were: each call compares
their identities, where their memory is (`p.data = x` gives a tensor other memory) and how often
they were written to (what goes around the counter, as writing into `p.data`, is not seen). Where
they differ, it is made again with the tensors given, `LIMIT` times; after that, a program that
takes them as arguments serves. A tensor made under `torch.inference_mode` has no counter and stays
an argument.

With `freezing_discard_parameters`, eager's copies go once the program is there: an `ErasedTensor`
takes their places in the modules, and every use of it is a RuntimeError.
"""

from __future__ import annotations

import gc
import operator
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx
from torch._guards import TracingContext
from torch.utils._python_dispatch import _disable_current_modes

from irc.dialects import func
from irc.frontend.importing.importer import Imported, tensor_type
from irc.ir import attributes as A
from irc.ir.contents import content_attribute
from irc.ir.types import TensorType

#: How often a program is made again because of other parameters.
LIMIT = 8
ERASED = (
    "Trying to run Pytorch Eager Module after Dynamo Freezing: its parameters were discarded "
    "(option freezing_discard_parameters)"
)

Boxed = Callable[[list[Any]], Any]


class ErasedTensor(torch.Tensor):
    """Stands for a tensor that was discarded: has its sizes and dtype, and refuses every use."""

    @staticmethod
    def __new__(cls, old: torch.Tensor) -> ErasedTensor:
        return torch.Tensor._make_wrapper_subclass(
            cls, old.shape, strides=old.stride(), storage_offset=0, dtype=old.dtype,
            device=old.device, requires_grad=old.requires_grad,
        )  # fmt: skip

    def __init__(self, old: torch.Tensor) -> None:
        self._is_param = isinstance(old, torch.nn.Parameter)

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"ErasedTensor({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's own stub is no class method
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{ERASED}; used by {func}")


@attrs.define
class Freezer:
    """What one graph may freeze. `tensors` has one entry per argument of AOTAutograd's graph: the
    tensor that may become a constant, or None; the first `lifted` are held by the graph itself.
    `sources`: where Dynamo found each."""

    tensors: list[torch.Tensor | None]
    discard: bool = False
    sources: list[Any] = attrs.field(factory=list)
    lifted: int = 0

    def compile(
        self, module: fx.GraphModule, make: Callable[[Sequence[Any]], tuple[Boxed, tuple[int, ...]]]
    ) -> Boxed:
        """A function of the graph's arguments.

        make: compiles the graph with these tensors as constants (as far as they can be) and gives
        a function of the other arguments, and the positions of those that it doesn't take.
        """
        placeholders = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
        if not self.fits(placeholders):
            warnings.warn(
                "irc: a graph was not frozen: it writes to tensors that share memory",
                stacklevel=2,
            )
            self.tensors = []
        run, positions = make(self.tensors)
        if not positions:
            return run
        chosen = {p: self.tensors[p] for p in positions}
        held = self.forget(positions) if self.discard else {}
        self.tensors = []
        return FrozenProgram(run, chosen, len(placeholders), make, self.discard, held)

    def fits(self, placeholders: Sequence[Any]) -> bool:
        """Whether the graph has the arguments that `tensors` was made for."""
        if len(placeholders) != len(self.tensors):
            return False
        for fake, real in zip(placeholders, self.tensors, strict=True):
            if real is not None and not (
                isinstance(fake, torch.Tensor)
                and fake.shape == real.shape
                and fake.dtype == real.dtype
            ):
                return False
        return True

    def forget(self, positions: Sequence[int]) -> dict[int, torch.Tensor | None]:
        """Let Dynamo and AOTAutograd let go of tensors that are discarded: their guards (we
        compare identities ourselves) and what the graph itself holds. Gives what calls pass from
        now on for the latter: None, or the tensor where it can't be let go."""
        context = TracingContext.try_get()
        if context is None:
            return {p: self.tensors[p] for p in positions if p < self.lifted}
        guards = context.guards_context.dynamo_guards
        held: dict[int, torch.Tensor | None] = {}
        for position in positions:
            source = self.sources[position] if position < len(self.sources) else None
            if source is not None:
                guards.remove_guards_with_source(source)
            if position < self.lifted:
                held[position] = None
                if context.params_flat is not None:
                    context.params_flat[position] = None
        return held


def freezer_for(gm: fx.GraphModule, inputs: Sequence[Any], discard: bool) -> Freezer | None:
    """What of a graph of Dynamo's may be frozen: tensors found in modules. None with gradients."""
    if torch.is_grad_enabled():
        return None
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    sources = [getattr(n, "_dynamo_source", None) for n in placeholders]
    tensors = [v if is_of_module(s) else None for v, s in zip(inputs, sources, strict=True)]
    return freezer_of(gm, tensors, sources, discard)


def freezer_of(
    gm: fx.GraphModule, tensors: Sequence[Any], sources: Sequence[Any], discard: bool
) -> Freezer:
    """A freezer for a graph with these tensors for its arguments. What the graph itself holds
    comes before them in AOTAutograd's graph."""
    lifted: dict[str, torch.Tensor] = dict(gm.named_parameters(remove_duplicate=False))
    lifted.update(gm.named_buffers(remove_duplicate=False))
    known = getattr(gm, "_param_name_to_source", None) or {}
    every = [*lifted.values(), *tensors]
    uncounted = sum(is_plain(t) and t.is_inference() for t in every)
    if uncounted:
        warnings.warn(
            f"irc: {uncounted} tensors are not frozen: they were made under torch.inference_mode, "
            "where nothing counts writes to them",
            stacklevel=2,
        )
    return Freezer(
        [t if may_freeze(t) else None for t in every],
        discard,
        [*(known.get(name) for name in lifted), *sources],
        len(lifted),
    )


def is_of_module(source: Any) -> bool:
    """Whether Dynamo found a value in a module (and not in one that FSDP shards)."""
    origin = getattr(source, "guard_source", None)
    origin = origin() if callable(origin) else origin
    if origin is None or origin.is_fsdp_module():
        return False
    return bool(origin.is_unspecialized_nn_module() or origin.is_specialized_nn_module())


def is_plain(value: Any) -> bool:
    """Whether a value is a real dense tensor, or a parameter that is one."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        and value.layout is torch.strided
        and not value.is_quantized
    )


def may_freeze(value: Any) -> bool:
    """Whether a value is a tensor that can be a constant: each write to it is counted."""
    return is_plain(value) and not value.is_inference()


def freeze_imported(
    imported: Imported, tensors: Sequence[torch.Tensor | None]
) -> tuple[int, ...]:
    """Make constants of the imported function's arguments with a tensor in `tensors` (one entry
    per argument of the FX graph); gives the positions in the FX graph of those that became one.

    A tensor stays an argument where the pass `freeze` leaves it, or where AOTAutograd derives a
    result from it after the call.
    """
    function: Any = imported.module.lookup("main")
    assert isinstance(function, func.FuncOp)
    places = [p for p in range(len(tensors)) if p not in imported.absent]
    if not places:
        return ()
    from irc.passes.frozen.freeze import arguments_that_stay, freeze_arguments, known_values

    derived = _bases_of_results(len(imported.absent))
    entries = list(function.arg_info or ())
    with _disable_current_modes(), torch.no_grad():
        for position, place in enumerate(places):
            tensor = tensors[place]
            type_ = function.block.arguments[position].type
            if tensor is None or place in derived or not isinstance(type_, TensorType):
                continue
            value = content_attribute(tensor, imported.module.resources, tensor_type(tensor))
            entry: Any = entries[position]
            entries[position] = A.DictAttr({**entry.as_dict(), "value": value})
    function.attributes["arg_info"] = A.ArrayAttr(entries)
    stay = arguments_that_stay(function)
    values = {p: v for p, v in known_values(function).items() if p not in stay}
    freeze_arguments(function, values)
    return tuple(places[p] for p in values)


def _bases_of_results(tokens: int) -> set[int]:
    """The arguments of AOTAutograd's graph that it makes results of itself, as views."""
    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    bases: set[int] = set()
    for info in getattr(metadata, "output_info", ()) or ():
        output_type = getattr(info.output_type, "name", "")
        if info.base_idx is not None and output_type in ("is_input", "alias_of_input"):
            bases.add(info.base_idx + tokens)
    return bases


class FrozenProgram:
    """Calls a frozen program as long as the tensors are those that it was made with."""

    _boxed_call = True

    def __init__(
        self,
        run: Boxed,
        frozen: Mapping[int, torch.Tensor | None],
        count: int,
        make: Callable[[Sequence[Any]], tuple[Boxed, tuple[int, ...]]],
        discard: bool,
        held: Mapping[int, torch.Tensor | None],
    ) -> None:
        self._make = make
        self._discard = discard
        self._count = count
        self._changes = 0
        self._held = held
        # AOTAutograd copies our __dict__ into a function of its own, so that the list stays one.
        self._memory: list[torch.UntypedStorage] = []
        self._adopt(run, frozen)

    def _adopt(self, run: Boxed, frozen: Mapping[int, Any]) -> None:
        """Serve with `run` from now on."""
        self._run = run
        self._positions = positions = tuple(frozen)
        self._memory.clear()
        if not positions:
            self._rest: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple
            return
        rest = [p for p in range(self._count) if p not in frozen]
        self._frozen = _picker(positions)
        self._rest = _picker(rest)
        tensors = list(frozen.values())
        if self._discard:
            pairs = zip(erase(tensors), positions, strict=True)
            tensors = [self._held.get(p, t) for t, p in pairs]
        self._objects = [t for t in tensors if isinstance(t, ErasedTensor)]
        live = [t for t in tensors if t is not None and not isinstance(t, ErasedTensor)]
        self._dead = False
        self._weak = [weakref.ref(t, self._died) for t in live]
        self._ids = tuple(map(id, tensors))
        counted = [
            p for p, t in zip(positions, tensors, strict=True)
            if isinstance(t, torch.Tensor) and not isinstance(t, ErasedTensor)
        ]  # fmt: skip
        self._counted = _picker(counted)
        self._writes = sum(map(_VERSION, live))
        # While its memory is held, no other tensor is at its address.
        self._memory += [t.untyped_storage() for t in live]
        self._addresses = list(map(_ADDRESS, live))

    def _died(self, _: Any) -> None:
        self._dead = True
        self._memory.clear()

    def __call__(self, arguments: list[Any]) -> Any:
        if self._positions:
            if tuple(map(id, self._frozen(arguments))) != self._ids or self._dead:
                self._renew(arguments)
            else:
                live = self._counted(arguments)
                written = sum(map(_VERSION, live)) != self._writes
                if written or list(map(_ADDRESS, live)) != self._addresses:
                    self._renew(arguments)
        rest = list(self._rest(arguments))
        arguments.clear()
        return self._run(rest)

    def _renew(self, arguments: Sequence[Any]) -> None:
        """Make the program for the tensors that are given now."""
        tensors = [arguments[p] if p in self._positions else None for p in range(self._count)]
        if any(isinstance(t, ErasedTensor) for t in tensors):
            raise RuntimeError(f"{ERASED}; some were replaced since, all have to be")
        self._changes += 1
        if self._changes > LIMIT:
            warnings.warn(
                f"irc: parameters changed {self._changes} times: they are no longer frozen",
                stacklevel=2,
            )
            tensors = []
        tensors = [t if may_freeze(t) else None for t in tensors]
        run, positions = self._make(tensors)
        self._adopt(run, {p: tensors[p] for p in positions})


_VERSION = operator.attrgetter("_version")
_ADDRESS = torch.Tensor.data_ptr


def _picker(positions: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that gives the items at these positions."""
    if not positions:
        return lambda items: ()
    if len(positions) == 1:
        (only,) = positions
        return lambda items: (items[only],)
    return operator.itemgetter(*positions)


def erase(tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Put an `ErasedTensor` in the place of each tensor in every module that has it.

    Gives what stands for each now: a tensor that no module has stays itself.
    """
    erased = {id(t): t for t in tensors if t is not None}
    stand_ins: dict[int, torch.Tensor] = {}
    for table in _tables_of_modules():
        for name, value in list(table.items()):
            old = erased.get(id(value))
            if old is not None:
                stand_in = stand_ins.get(id(old))
                if stand_in is None:
                    stand_in = stand_ins[id(old)] = ErasedTensor(old)
                table[name] = stand_in
    return [None if t is None else stand_ins.get(id(t), t) for t in tensors]


def _tables_of_modules() -> Iterator[dict[str, Any]]:
    """The dictionaries of all modules that hold tensors: parameters, buffers, other attributes.

    Dynamo doesn't tell which modules own what it found, and a parameter may have several owners.
    """
    is_module: dict[type, bool] = {}
    for thing in gc.get_objects():
        cls = type(thing)
        known = is_module.get(cls)
        if known is None:
            known = is_module[cls] = issubclass(cls, torch.nn.Module)
        if known:
            attributes = thing.__dict__
            for name in ("_parameters", "_buffers"):
                if isinstance(attributes.get(name), dict):
                    yield attributes[name]
            yield attributes


__all__ = ["ErasedTensor", "Freezer", "FrozenProgram", "erase", "freeze_imported", "freezer_for",
           "freezer_of"]  # fmt: skip
