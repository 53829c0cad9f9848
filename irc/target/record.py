"""`Target`: all that a pass may ask of the machine and of torch's settings, in one frozen record.

    target = Target.host()          # at the edge: the front end, a command without a target
    context.machine                 # the record that a run of passes works with
    str(target)                     # every field, by name: a part of each key of the cache

What is no field here decides nothing: a pass that asked the machine itself would make programs
that the cache's keys don't tell apart.
"""

from __future__ import annotations

import functools
from typing import Any

import attrs

from irc.target.cpu import TargetFeatures


@attrs.frozen
class Target:
    """What programs are made for.

    features: the CPU. threads: how many compute a kernel or an operator of ATen's. library: oneDNN
    is there, and switched on; library_elements: what it computes packed operations of.
    default_float: the dtype of floats that nothing else gives one. product_precision: torch's, of
    f32 products. tf32_convolutions: cuDNN may compute f32 convolutions with factors of 10 bits.
    """

    features: TargetFeatures
    threads: int = 1
    library: bool = True
    library_elements: tuple[str, ...] = ("f32",)
    default_float: str = "float32"
    product_precision: str = "highest"
    tf32_convolutions: bool = True

    @staticmethod
    def host() -> Target:
        """This machine and torch's settings as they are now: they may change between calls."""
        import torch

        library: Any = torch.backends.mkldnn
        return Target(
            features=TargetFeatures.host(),
            threads=torch.get_num_threads(),
            library=bool(library.is_available() and library.enabled),
            library_elements=_library_elements(),
            default_float=str(torch.get_default_dtype()).removeprefix("torch."),
            product_precision=torch.get_float32_matmul_precision(),
            tf32_convolutions=_allows_tf32(),
        )

    def __str__(self) -> str:
        fields = attrs.asdict(self, recurse=False)
        fields["features"] = self.features.cache_key()
        return "; ".join(f"{name} = {_text(value)}" for name, value in fields.items())


def target_of(context: Any) -> Target:
    """What the programs of a `PassContext` are made for: its `machine`, or this one."""
    if context.machine is None:
        context.machine = Target.host()
    machine: Target = context.machine
    return machine


@functools.cache
def _library_elements() -> tuple[str, ...]:
    """Elements that oneDNN computes packed operations of on this processor."""
    import torch

    questions = {"bf16": "_is_mkldnn_bf16_supported", "f16": "_is_mkldnn_fp16_supported"}
    asked = {name: getattr(torch.ops.mkldnn, text, None) for name, text in questions.items()}
    return ("f32", *(name for name, ask in asked.items() if ask is not None and ask()))


def _allows_tf32() -> bool:
    import torch

    library: Any = torch.backends.cudnn
    if hasattr(library, "conv"):  # the older name raises where the newer one was used
        return bool(library.conv.fp32_precision == "tf32")
    return bool(library.allow_tf32)


def _text(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


__all__ = ["Target", "target_of"]
