"""Which devices a host program's tensors are on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from irc.ir.diagnostics import InvalidIR
from irc.ir.types import TensorType
from irc.program import host_program as P


def device_number(device: str) -> int:
    """The number of a GPU by its name, `cuda:1`. Raises InvalidIR for another device."""
    type_, _, number = device.partition(":")
    if type_ != "cuda" or not (number or "0").isdecimal():
        raise InvalidIR(f"{device} is no GPU that programs run on")
    return int(number or "0")


def gpu_of_arguments(module: Any, name: str) -> int | None:
    """The GPU that most tensors among a function's arguments and results are on, at any level; None
    where none are on any."""
    function = module.lookup(name)
    if function is None:
        return None
    last = function.block.last
    values = [*function.block.arguments, *(() if last is None else last.operands)]
    devices = (v.type.device for v in values if isinstance(v.type, TensorType))
    return _most([device for device in devices if device.startswith("cuda")])


def main_device(program: P.HostProgram) -> int:
    """The GPU that most of a program's tensors are on. InvalidIR for a program of the CPU."""
    number = _most([layout.device for layout in program.layouts.values() if layout.device != "cpu"])
    if number is None:
        raise InvalidIR("the program has no tensors of a GPU")
    return number


def _most(devices: list[str]) -> int | None:
    """The GPU that is named most often, of several the first one."""
    counts = Counter(map(device_number, devices))
    return min(counts, key=lambda number: (-counts[number], number), default=None)


__all__ = ["device_number", "gpu_of_arguments", "main_device"]
