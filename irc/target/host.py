"""This machine and torch's settings, for `Target.host`; with `irc.target.cpu` all that asks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import attrs

from irc.target.cpu import TargetFeatures

if TYPE_CHECKING:
    from irc.target.gpu import GpuFeatures

LIBRARY_ELEMENTS = ("bf16", "f16", "f32")


def settings(gpu: bool = False) -> tuple[Any, ...]:
    """The fields of `Target.host`."""
    import torch

    library: Any = torch.backends.mkldnn
    return (
        _gpu() if gpu else TargetFeatures.host(),
        torch.get_num_threads(),
        _library_elements() if library.is_available() and library.enabled else (),
        str(torch.get_default_dtype()).removeprefix("torch."),
        torch.get_float32_matmul_precision(),
        allows_tf32(),
        torch.are_deterministic_algorithms_enabled(),
    )


def _gpu() -> GpuFeatures:
    """The current device's; where there is none, the one that is known best."""
    import torch

    from irc.target.gpu import GpuFeatures

    default = GpuFeatures.sm_90()
    if not torch.cuda.is_available():
        return default
    chip = "sm_{}{}".format(*torch.cuda.get_device_capability())
    known = {each.chip: each for each in (GpuFeatures.sm_80(), default)}
    return known.get(chip) or attrs.evolve(default, chip=chip)


@functools.cache
def _library_elements() -> tuple[str, ...]:
    """Elements that oneDNN computes packed operations of on this processor."""
    import torch

    questions = {"bf16": "_is_mkldnn_bf16_supported", "f16": "_is_mkldnn_fp16_supported"}
    asked = {name: getattr(torch.ops.mkldnn, text, None) for name, text in questions.items()}
    there = {name for name, ask in asked.items() if ask is not None and ask()}
    return tuple(name for name in LIBRARY_ELEMENTS if name == "f32" or name in there)


def allows_tf32() -> bool:
    """Whether cuDNN may compute f32 convolutions with TF32, as torch is set now."""
    import torch

    ask = getattr(torch._C, "_get_fp32_precision_getter", None)
    if ask is not None:  # what the properties of torch.backends ask, in a tenth of their time
        return bool(ask("cuda", "conv") == "tf32")

    library: Any = torch.backends.cudnn
    if hasattr(library, "conv"):  # the older name raises where the newer one was used
        return bool(library.conv.fp32_precision == "tf32")
    return bool(library.allow_tf32)


__all__ = ["LIBRARY_ELEMENTS", "settings"]
