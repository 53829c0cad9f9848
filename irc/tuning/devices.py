"""Where a problem is measured: whether here, and on which device."""

from __future__ import annotations

import os
import re

from irc.options.options import Options
from irc.target import Target
from irc.tuning.problem import Problem

_ANY_DEVICE = re.compile(r'"cuda:(\d+)"')


def is_here(target: Target) -> bool:
    """Whether this machine is the target, so that a time says something."""
    if target != Target.host(target.is_gpu):
        return False
    if not target.is_gpu:
        return True
    import torch

    return torch.cuda.is_available()


def device_name(problem: Problem) -> str:
    """What the target doesn't say of what is measured on: a GPU's name, as torch gives it."""
    if not problem.target.is_gpu:
        return "cpu"
    import torch

    here = torch.cuda.is_available()
    return torch.cuda.get_device_name(device_number(problem)) if here else "no gpu"


def gpu_bytes(problem: Problem) -> int:
    """The memory of the GPU that a problem's tensors are on; 0 for a CPU's."""
    if not problem.target.is_gpu:
        return 0
    import torch

    return int(torch.cuda.get_device_properties(device_number(problem)).total_memory)


def device_number(problem: Problem) -> int:
    """Of the GPU that the tensors of a problem are on."""
    named = _ANY_DEVICE.search(problem.text)
    return int(named[1]) if named else 0


def on_first(text: str) -> str:
    """A problem's text for a process that sees one GPU, which is its first."""
    return _ANY_DEVICE.sub('"cuda:0"', text)


def devices_of(problem: Problem, options: Options) -> list[str] | None:
    """The devices that have a worker each; None for one worker that sees what this process sees."""
    from irc.tuning import pool

    if not options.autotune_multi_device or not problem.target.is_gpu:
        return None
    import torch

    return pool.visible_devices(os.environ, torch.cuda.device_count())


__all__ = ["device_name", "device_number", "devices_of", "gpu_bytes", "is_here", "on_first"]
