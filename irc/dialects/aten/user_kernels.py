"""Triton kernels of the user's, as an operator that programs call.

    irc_triton::launch(str kernel, str[] names, SymInt[] grid, Tensor(a!)[] written, Tensor[] read,
                       Scalar[] numbers, SymInt[] views=[]) -> ()

`kernel` is the key that `register` gave in this process: a program only names code that the process
has already, and a text brings none with it. `names` are the kernel's parameters for `written`,
`read`, `numbers` and `views`, in this order, "" for an operand that is there for its views only;
the other parameters (constants, None) are part of what was registered. `grid` has three sizes for
each configuration of a kernel that is tuned, else three. `views` are parameters that share the
memory of what is written: for each the number of the operand, the rank, sizes, strides, and where
in the operand's memory it begins.

A key is the name of the kernel's function and a hash over its source, with the source of what it
calls, its configurations and constants: the same in every process. What has no such content, as a
function that prunes configurations, is numbered in this process instead. A compiled program has
nothing of the kernel but its key, so that either kind may stand in a cache.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch

from irc.dialects.aten import own
from irc.dialects.aten.facts import USER_KERNELS
from irc.ir.diagnostics import UserError

#: Sizes of a grid for each configuration.
GRID_RANK = 3

_PLAIN = (bool, int, float, str, type(None), torch.dtype)


@attrs.frozen(eq=False)
class UserKernel:
    """A kernel with the parameters that no call gives: `constants` by name, and the shapes of
    blocks of `descriptors`, which a call gives as the tensors they are made of."""

    kernel: Any
    constants: Mapping[str, Any]
    descriptors: Mapping[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        """The name of the kernel's function."""
        return str(getattr(_innermost(self.kernel), "__name__", "kernel"))

    @property
    def grids(self) -> int:
        """For how many configurations a call gives a grid."""
        return max(1, len(getattr(self.kernel, "configs", ())))

    @functools.cached_property
    def runs_on_cpu(self) -> bool:
        """Whether tensors of the CPU can be given to it: Triton interprets it, or compiles for
        CPUs."""
        if type(_innermost(self.kernel)).__name__ == "InterpretedFunction":
            return True
        from triton.backends import backends

        return "cpu" in backends

    def check_call(
        self, names: int, operands: int, sizes: int, device: torch.device | None
    ) -> None:
        """Raise UserError unless a call fits, of so many names, operands and sizes of grids, with
        operands on this device."""
        if names != operands:
            raise UserError(f"a call of {self.name} names {names} operands and has {operands}")
        if sizes != GRID_RANK * self.grids:
            raise UserError(
                f"a call of {self.name} has a grid of {sizes} sizes, not {GRID_RANK * self.grids}"
            )
        if device is not None and device.type == "cpu" and not self.runs_on_cpu:
            raise UserError(
                f"the Triton kernel {self.name} is compiled for a GPU and gets a tensor of the CPU",
                notes=("with TRITON_INTERPRET=1 from the start Triton interprets kernels there",),
            )

    def arguments(
        self, names: Sequence[str], values: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What a call passes, by position as far as that goes: Triton's hooks miss the rest."""
        values_of = dict(zip(names, values, strict=True))
        values_of.pop("", None)
        for name, block in self.descriptors.items():
            from triton.tools.tensor_descriptor import TensorDescriptor

            values_of[name] = TensorDescriptor.from_tensor(values_of[name], list(block))
        values_of.update(self.constants)
        positional = []
        for name in self.kernel.arg_names:
            if name not in values_of:
                break
            positional.append(values_of.pop(name))
        return positional, values_of

    def grid(self, sizes: Sequence[int]) -> Any:
        """Triton's grid for a call: with several configurations a function of the one chosen."""
        if self.grids == 1:
            return tuple(sizes)
        configs = [config.kwargs for config in self.kernel.configs]

        def chosen(meta: Mapping[str, Any]) -> tuple[int, ...]:
            for number, known in enumerate(configs):
                if all(meta[name] == value for name, value in known.items()):
                    return tuple(sizes[number * GRID_RANK : (number + 1) * GRID_RANK])
            raise UserError(f"Triton runs {self.name} in a configuration without a grid")

        return chosen


_kernels: dict[str, UserKernel] = {}
_numbers: dict[int, str] = {}
_count = itertools.count()
_lock = threading.Lock()


def register(
    kernel: Any,
    constants: Mapping[str, Any] | None = None,
    descriptors: Mapping[str, Sequence[int]] | None = None,
) -> str:
    """The key under which programs of this process call `kernel` with these constants.

    kernel: a function under `triton.jit`, `triton.autotune` or `triton.heuristics`. It is kept for
    as long as the process lasts, as torch keeps it.
    """
    shapes = {name: tuple(shape) for name, shape in (descriptors or {}).items()}
    user_kernel = UserKernel(kernel, dict(constants or {}), shapes)
    content = _content(kernel)
    fixed = _data({**user_kernel.constants, "": sorted(shapes.items())})
    with _lock:
        if content is None:
            content = _numbers.setdefault(id(kernel), f"kernel {next(_count)}")
        if fixed is None:
            fixed = f"constants {next(_count)}"
        digest = hashlib.sha256(repr((content, fixed)).encode()).hexdigest()[:32]
        key = f"{user_kernel.name}:{digest}"
        _kernels.setdefault(key, user_kernel)
    return key


def registered(key: str) -> UserKernel:
    """The kernel of a key. Raises UserError where this process has none."""
    kernel = _kernels.get(key)
    if kernel is None:
        name = key.partition(":")[0]
        raise UserError(
            f"this process has no Triton kernel '{key}'",
            notes=(
                f"a program names the kernels that it calls; torch.compile, or irc.trace, of what "
                f"calls {name} makes it known",
            ),
        )
    return kernel


def launch(
    kernel: str,
    names: Sequence[str],
    grid: Sequence[int],
    written: Sequence[torch.Tensor],
    read: Sequence[torch.Tensor],
    numbers: Sequence[Any],
    views: Sequence[int] = (),
) -> None:
    """Launch a kernel on the current stream of its operands' device. Raises UserError for a key
    that is not known here, operands that don't fit, and tensors of the CPU for a compiled one."""
    known = registered(kernel)
    values: list[Any] = [*written, *read, *numbers, *(_views(written, views) if views else ())]
    device = values[0].device if written or read else None
    known.check_call(len(names), len(values), len(grid), device)
    positional, keywords = known.arguments(names, values)
    start = known.kernel[known.grid(grid)]
    if device is None or device.type != "cuda" or device.index == torch.cuda.current_device():
        start(*positional, **keywords)
        return
    with torch.cuda.device(device):
        start(*positional, **keywords)


def _views(written: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[torch.Tensor]:
    """The views that a call names."""
    rest = list(places)
    while rest:
        number, rank = rest[:2]
        sizes, strides = rest[2 : 2 + rank], rest[2 + rank : 2 + 2 * rank]
        base = written[number]
        begin = base.storage_offset() + rest[2 + 2 * rank]
        yield base.as_strided(sizes, strides, begin)
        del rest[: 3 + 2 * rank]


# -- keys


def _innermost(kernel: Any) -> Any:
    """The kernel under what tunes it."""
    while hasattr(kernel, "fn") and hasattr(kernel.fn, "arg_names"):
        kernel = kernel.fn
    return kernel


def _content(kernel: Any) -> str | None:
    """What a kernel is, as text that is the same in every process; None where nothing says so."""
    if hasattr(kernel, "cache_key"):  # triton.jit
        flags = [(p.name, p.is_constexpr, p.do_not_specialize) for p in kernel.params]
        return f"{kernel.cache_key} {flags} {kernel.noinline}"
    configs = getattr(kernel, "configs", None)
    if configs is None or not _is_plain(kernel):
        return None
    inner = _content(kernel.fn)
    known = _data([config.all_kwargs() for config in configs])
    lists = [kernel.keys, kernel.reset_to_zero, kernel.restore_value]
    return None if inner is None or known is None else f"{inner} {known} {lists}"


def _is_plain(tuner: Any) -> bool:
    """Whether a tuner has no functions of its own."""
    hooks = [config.pre_hook for config in tuner.configs]
    pruning = (tuner.perf_model, tuner.early_config_prune)
    custom = (tuner.user_defined_pre_hook, tuner.user_defined_post_hook)
    return not any(custom) and all(f is None for f in (*hooks, *pruning))


def _data(value: Any) -> str | None:
    """Constants as text that tells them apart; None for what has no content."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, Mapping):
        value = [*sorted(value.items())]
    if isinstance(value, list | tuple):
        parts = [_data(item) for item in value]
        return None if any(part is None for part in parts) else f"{parts}"
    if type(value).__module__ == "triton.language.core" and type(value).__name__ == "dtype":
        return f"tl.{value}"
    if hasattr(value, "cache_key"):
        return str(value.cache_key)
    return None


def _nothing(*_: Any) -> None:
    """What the operator does to tensors without elements."""


def _define() -> None:
    function: Callable[..., None] = launch
    library = own.define(
        USER_KERNELS,
        "launch(str kernel, str[] names, SymInt[] grid, Tensor(a!)[] written, Tensor[] read, "
        "Scalar[] numbers, SymInt[] views=[]) -> ()",
        function,
    )
    library.impl("launch", _nothing, "Meta")


_define()


__all__ = ["GRID_RANK", "UserKernel", "launch", "register", "registered"]
