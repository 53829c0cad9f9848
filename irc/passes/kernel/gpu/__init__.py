"""Forming gpu kernels from loop computes and groups: see `form.py`."""

from irc.passes.kernel.gpu.form import form_gpu_kernel, kernel_inputs, kernel_outputs
from irc.passes.kernel.gpu.schedule import changed, default_schedule

__all__ = ["changed", "default_schedule", "form_gpu_kernel", "kernel_inputs", "kernel_outputs"]
