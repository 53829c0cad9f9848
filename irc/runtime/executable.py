"""A compiled program that can be called.

    executable = Executable(program, metadata)
    y, = executable(x)

An executable never changes after it is made and may be called from any thread, from inside one of
its own calls, and in a forked child. Its program is native (`NativeProgram`), or Python where torch
is not as `torch_abi` expects or the user asks; both give the same results and the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import torch

from irc.runtime import lazy_bits
from irc.runtime.arguments import AcceptedKinds, ArgumentSpec, check_arguments
from irc.runtime.native import NativeProgram

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu


@attrs.frozen
class ResultSpec:
    """One result as the caller sees it; `alias_of` is the argument whose memory it shares."""

    kind: str
    dtype: torch.dtype | None = None
    sizes: tuple[Any, ...] = ()
    strides: tuple[Any, ...] = ()
    alias_of: int | None = None


@attrs.frozen
class ProgramInfo:
    """What is known of a program without running it."""

    name: str
    arguments: tuple[ArgumentSpec, ...]
    results: tuple[ResultSpec, ...] = ()
    #: Counters of this program alone: kernels, aten_calls, layout_copies, ...
    metrics: Mapping[str, int] = attrs.field(factory=dict)


#: Runs a program in Python: takes the values of the symbols and the arguments.
PythonRunner = Callable[[Mapping[str, int], Sequence[object]], Sequence[object]]


@attrs.frozen
class NativeCode:
    """Object code of a host program and what its loader needs, as `HostEmitter` left it."""

    code: bytes
    entry: str
    slots: tuple[Any, ...]
    externals: frozenset[str]
    #: Addresses of the kernels that it calls, by name.
    symbols: Mapping[str, int] = attrs.field(factory=dict)
    #: What a program of GPUs was made for.
    gpu: Gpu | None = None


class Executable:
    """A program with its information; `executable(*arguments)` returns the results as a tuple.

    `run_python` is the program's Python form: it serves all calls when `native` is None, and those
    that the native checks hand over. `objects` maps what the program keeps alive (weights,
    constants) by key. Raises `ArgumentError` for arguments that the program wasn't compiled for.
    """

    __slots__ = ("_call", "_call_list", "_objects", "run_python", "boxed", "info")

    def __init__(
        self,
        info: ProgramInfo,
        run_python: PythonRunner,
        native: NativeCode | None = None,
        objects: Mapping[Any, object] | None = None,
    ) -> None:
        self.info = info
        self.run_python = run_python
        self._objects = dict(objects or {})
        run = _SlowRunner(info, run_python)
        self._call: Any
        self._call_list: Any
        if native is None:
            self._take(run, run.call_list)
        else:
            program = NativeProgram(
                native.code,
                native.entry,
                slots=native.slots,
                objects=self._objects,
                fallback=run,
                boxed_fallback=run.call_list,
                externals=native.externals,
                symbols=native.symbols,
                gpu=native.gpu,
            )
            self._take(program.call, program.call_boxed)

    def _take(self, call: Any, call_list: Any) -> None:
        """Be called through these."""
        self._call, self._call_list = call, call_list
        self.boxed = _boxed(call_list)

    def __call__(self, *arguments: object) -> tuple[object, ...]:
        return self._call(*arguments)

    def __reduce__(self) -> Any:
        raise TypeError(
            "an Executable is code in this process and can't be pickled or copied: keep the "
            "program as text (irc.print_op) and build it where it shall run (irc.build); the "
            "cache, or torch.compiler.save_cache_artifacts, brings the machine code along"
        )

    @property
    def is_native(self) -> bool:
        """Whether calls go through a native host function."""
        return not isinstance(self._call, _SlowRunner)

    @property
    def is_on_gpu(self) -> bool:
        """Whether the program takes arrays of a GPU."""
        return any(spec.device.startswith("cuda") for spec in self.info.arguments)

    @property
    def fast_call(self) -> Callable[..., tuple[object, ...]]:
        """What is behind `__call__`, for a caller that counts nanoseconds."""
        return self._call

    @property
    def fast_call_list(self) -> Callable[[list[object]], tuple[object, ...]]:
        """What is behind `boxed`: takes one list, which it empties."""
        return self._call_list

    @property
    def metrics(self) -> Mapping[str, int]:
        """Counters of this program alone."""
        return dict(self.info.metrics)


def _boxed(call_list: Callable[[list[object]], tuple[object, ...]]) -> Callable[..., Any]:
    """The form that AOTAutograd wants: takes one list, which it empties."""

    def boxed(arguments: list[object]) -> tuple[object, ...]:
        return call_list(arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


class _SlowRunner:
    """Checks arguments with words, then runs the program's Python form below autograd."""

    def __init__(self, info: ProgramInfo, run_python: PythonRunner) -> None:
        self.info = info
        self.run_python = run_python
        self._accepted = AcceptedKinds(info.arguments)

    def __call__(self, *arguments: object) -> tuple[object, ...]:
        symbols: dict[str, int] = {}
        if not self._accepted.knows(arguments):
            if any(map(lazy_bits.is_lazy, arguments)):
                return self._without_bits(arguments)
            symbols = check_arguments(self.info.arguments, arguments)
            self._accepted.accept(arguments)
        with torch.no_grad(), torch._C._AutoDispatchBelowAutograd(), _without_autocast():
            return tuple(self.run_python(symbols, arguments))

    def _without_bits(self, arguments: Sequence[object]) -> tuple[object, ...]:
        with torch.no_grad(), torch._C._AutoDispatchBelowAutograd(), _without_autocast():
            plain, copies = lazy_bits.without_bits(arguments)
            return lazy_bits.with_bits(self(*plain), copies)

    def call_list(self, passed: list[object]) -> tuple[object, ...]:
        """As a call of the items; the list is emptied when the call is accepted or not."""
        if not isinstance(passed, list):
            passed = list(passed)
        arguments = list(passed)
        passed.clear()
        return self(*arguments)


def _without_autocast() -> Any:
    return torch._C._DisableAutocast()
