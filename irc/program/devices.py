"""Which devices a host program's tensors are on."""

from __future__ import annotations

from collections import Counter

from irc.ir.diagnostics import InvalidIR
from irc.program import host_program as P


def device_number(device: str) -> int:
    """The number of a GPU by its name, `cuda:1`. Raises InvalidIR for another device."""
    type_, _, number = device.partition(":")
    if type_ != "cuda" or not (number or "0").isdecimal():
        raise InvalidIR(f"{device} is no GPU that programs run on")
    return int(number or "0")


def main_device(program: P.HostProgram) -> int:
    """The GPU that most of a program's tensors are on. InvalidIR for a program of the CPU."""
    counts = Counter(layout.device for layout in program.layouts.values() if layout.device != "cpu")
    if not counts:
        raise InvalidIR("the program has no tensors of a GPU")
    most = max(counts.values())
    return min(device_number(device) for device, count in counts.items() if count == most)


__all__ = ["device_number", "main_device"]
