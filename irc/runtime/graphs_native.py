"""Replays without Python: the plans that `irc.codegen.host.support_graphs` runs.

    replays = NativeReplays(gpu, 0)
    call, call_list = replays.builtins(python_call, python_call_list)
    replays.show(family, instance, busy)
    call(x, w)                   # a builtin; Python where no plan fits
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import torch

from irc.boundary import cuda, torch_abi
from irc.boundary.cuda import Gpu
from irc.codegen.host import support_graphs as words
from irc.runtime import late_checks
from irc.runtime.graphs_instance import Instance
from irc.runtime.library_modes import Settings
from irc.runtime.native import graph_support

PLANS = 8
"""Plans that are looked at before Python is asked."""
_COPIES, _RESULTS = 8, 4  # more of them are faster with one launch for all
_SPAN = 2  # copied bytes, for each byte of an element


class _Words(ctypes.c_uint64 * words.PROGRAM_WORDS):  # type: ignore[misc]
    """A program's words; the builtins' `self`."""


def _array(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def span_bytes(tensor: torch.Tensor) -> int | None:
    """The bytes from a tensor's first element to its last; None where they are many more than its
    elements'."""
    if not tensor.numel():
        return 0
    last = sum((n - 1) * k for n, k in zip(tensor.shape, tensor.stride(), strict=True))
    if 1 + last > _SPAN * tensor.numel():
        return None
    return (1 + last) * tensor.element_size()


class ReplayPlan:
    """How an instance is replayed on a device (-1: the CPU). Raises `Unfit` for one that is
    Python's to replay."""

    def __init__(
        self, instance: Instance, facts: Sequence[Any], busy: int, device: int,
        settings: object = None,
    ) -> None:  # fmt: skip
        # The plan keeps all that it names alive.
        self._kept: list[Any] = [instance]
        self.instance, self.device, self.counted = instance, device, 0
        self.words = (ctypes.c_uint64 * words.PLAN_WORDS)()
        self.address = ctypes.addressof(self.words)
        graph = instance.single
        handle = getattr(graph, "handle", None)
        if not handle or instance.written_storages:
            raise Unfit
        fill = self.words
        fill[words.PLAN_COUNT], fill[words.PLAN_GRAPH] = len(facts), handle
        fill[words.PLAN_STREAM], fill[words.PLAN_BUSY] = instance.stream, busy
        fill[words.PLAN_SETTINGS] = 0 if settings is None else self._name(settings)
        fill[words.PLAN_ARGUMENTS] = self._keep(_array(self._arguments(facts)))
        copies = self._copies()
        fill[words.PLAN_COPIES] = len(copies) // words.COPY_WORDS
        fill[words.PLAN_COPY_LIST] = self._keep(_array(copies))
        fill[words.PLAN_FINISH] = self._name(functools.partial(_finish, instance))
        fill[words.PLAN_OWNER] = id(self)
        if instance.results.kept:
            fill[words.PLAN_READY] = self._name(instance.results.are_free)
        results = self._results()
        count = -1 if results is None else len(results) // words.RESULT_WORDS
        fill[words.PLAN_RESULTS] = count & (2**64 - 1)
        fill[words.PLAN_RESULT_LIST] = self._keep(_array(results or []))

    def calls(self) -> int:
        """The calls since it was asked last."""
        before, self.counted = self.counted, self.words[words.PLAN_CALLS]
        return self.counted - before

    def _keep(self, array: Any) -> int:
        self._kept.append(array)
        return ctypes.addressof(array)

    def _name(self, thing: object) -> int:
        self._kept.append(thing)
        return id(thing)

    def _arguments(self, facts: Sequence[Any]) -> list[int]:
        addresses = self.instance.in_place.every
        entries: list[int] = []
        for fact, address in zip(facts, addresses, strict=True):
            if fact[0] is int:
                if not -(2**63) <= fact[1] < 2**63:
                    raise Unfit
                entries += [words.ARGUMENT_NUMBER, fact[1], 0]
                continue
            if len(fact) == 2:
                raise Unfit
            sizes, strides, dtype, _device, conjugated, negated = fact
            if conjugated or negated:
                raise Unfit
            spec = _array([_code(dtype), len(sizes), 1, *sizes, *strides])
            place = words.ARGUMENT_ANYWHERE if address is None else words.ARGUMENT_IN_PLACE
            entries += [place, self._keep(spec), address or 0]
        return entries

    def _copies(self) -> list[int]:
        entries: list[int] = []
        if len(self.instance.buffered) > _COPIES:
            raise Unfit
        for position, buffer in zip(self.instance.buffered, self.instance.buffers, strict=True):
            size = span_bytes(buffer)
            if size is None:
                raise Unfit
            entries += [position, buffer.data_ptr(), size] if size else []
        return entries

    def _results(self) -> list[int] | None:
        """The records of the results; None where Python makes them."""
        instance = self.instance
        if instance.bumped or instance.others or not instance.results.are_single:
            return None
        if len(instance.results.single) > _RESULTS:
            return None
        records: dict[int, list[int]] = {}
        for position, tensor in instance.results.single:
            size = span_bytes(tensor)
            if size is None or tensor.get_device() != self.device:
                return None
            sizes, strides = _array(tensor.shape), _array(tensor.stride())
            records[position] = [
                words.RESULT_FRESH, tensor.dim(), self._keep(sizes), self._keep(strides),
                _code(tensor.dtype), tensor.data_ptr(), size,
            ]  # fmt: skip
        rest = [0] * (words.RESULT_WORDS - 2)
        for position, argument in instance.returned:
            records[position] = [words.RESULT_ARGUMENT, argument, *rest]
        constant = dict(instance.constant)
        for position in range(len(instance.program.outputs)):
            if position not in records:
                held = constant.get(position)
                records[position] = [words.RESULT_OBJECT, self._name(held), *rest]
        return [word for position in sorted(records) for word in records[position]]


def _finish(instance: Instance, *arguments: Any) -> tuple[Any, ...]:
    """The results by Python, behind the launch."""
    with torch._C._AutoDispatchBelowAutograd():
        return tuple(instance.finish(arguments, {}))


class Unfit(Exception):
    """An instance that native code can't replay."""


def _code(dtype: torch.dtype) -> int:
    try:
        return torch_abi.dtype_code(dtype)
    except ValueError as error:
        raise Unfit from error


class Calls(Protocol):
    """The calls of one kind: what their arguments are like, and the graphs of them."""

    facts: tuple[Any, ...]
    settings: tuple[Any, ...] | None
    instances: list[Instance]


@attrs.frozen
class Shown:
    """A plan that native code looks at, with the calls that it is for."""

    family: Calls
    plan: ReplayPlan

    def is_there(self) -> bool:
        """Whether its instance is still one of its family's."""
        return any(each is self.plan.instance for each in self.family.instances)


class NativeReplays:
    """The plans of a program. It doesn't own the builtins that run them, nor what these call in
    Python: they own it, so that a program goes when its last user does."""

    def __init__(self, gpu: Gpu, device: int, settings: Settings | None = None) -> None:
        gpu.prepare(device)
        self._gpu, self._number, self._shown = gpu, device, list[Shown]()
        self._device = ctypes.c_int64(device | gpu.table[cuda.INDEX_MASK]).value
        self._lock, self._settings = threading.Lock(), settings
        self._words: Callable[[], _Words | None] = lambda: None

    def builtins(
        self, python_call: Callable[..., Any], python_call_list: Callable[..., Any]
    ) -> tuple[Any, Any]:
        """What is called with arguments, and with a list of them. They ask these two for calls that
        no plan is for."""
        runtime, program = torch_abi.runtime_table(), _Words()
        program[words.PROGRAM_RUNTIME] = ctypes.addressof(runtime)
        program[words.PROGRAM_TABLE] = ctypes.addressof(self._gpu.table)
        program[words.PROGRAM_DEVICE] = self._number
        called = (late_checks.raise_failed, python_call, python_call_list, self._failed)
        for word, each in enumerate(called, start=words.PROGRAM_LATE):
            program[word] = id(each)
        settings = self._settings
        program[words.PROGRAM_SETTINGS] = 0 if settings is None else id(settings)
        loaded = graph_support()
        # The builtins own the words through their `self`; these own what they reach.
        program.keeps = (loaded, runtime, self._gpu.table, called, settings, self)
        self._words = weakref.ref(program)
        make, names = torch_abi.make_builtin, words.EXPORTS
        return (
            make("irc.graph", loaded.address(names[0]), program, takes_list=False),
            make("irc.graph", loaded.address(names[1]), program, takes_list=True),
        )

    def _failed(self, code: int) -> None:
        raise RuntimeError(f"launching a graph: {self._gpu.error_text(code)}")

    def counted(self) -> list[tuple[Any, int]]:
        """The families of instances with the calls of each since this was asked last."""
        with self._lock:
            counts = [(shown.family, shown.plan.calls()) for shown in self._shown]
        return [(family, count) for family, count in counts if count]

    def show(self, family: Calls, instance: Instance, busy: int) -> None:
        """Have the next calls of the kind replayed natively, where they can be, before those of
        other kinds. `busy`: where the words of the instance's stream are."""
        if not instance.fits_native:
            return
        with self._lock:
            known = [shown for shown in self._shown if shown.plan.instance is instance]
            if not known:
                try:
                    plan = ReplayPlan(
                        instance, family.facts, busy, self._device, family.settings
                    )
                    known = [Shown(family, plan)]
                except Unfit:
                    instance.fits_native = False
                    return
            others = [shown for shown in self._shown if shown.plan.instance is not instance]
            self._link([*known, *others][:PLANS])

    def hide_gone(self) -> None:
        """Replay no instance that is not among its family's any more."""
        if all(shown.is_there() for shown in self._shown):
            return
        with self._lock:
            self._link([shown for shown in self._shown if shown.is_there()])

    def _link(self, shown: list[Shown]) -> None:
        program = self._words()
        if program is None:
            return
        following = 0
        for each in reversed(shown):
            each.plan.words[words.PLAN_NEXT] = following
            following = each.plan.address
        program[words.PROGRAM_PLAN] = following
        self._shown = shown  # the plans before may go only now


__all__ = ["PLANS", "NativeReplays", "ReplayPlan", "Unfit", "span_bytes"]
