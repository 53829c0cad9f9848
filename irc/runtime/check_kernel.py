"""A kernel that clears a byte of the CPU where a truth value of a GPU is false.

Launches that are captured into a graph have their checks looked at in each replay. A copy of the
values to the CPU keeps a GPU waiting between its kernels, about 10 us of them; this kernel writes
there itself, and only what failed. It is PTX, which the driver assembles when it is loaded, so that
no Triton is needed for it.
"""

from __future__ import annotations

import ctypes

import torch

from irc.boundary import cuda

THREADS = 256
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry irc_clear(
  .param .u64 truths, .param .u64 count, .param .u64 seen)
{
  .reg .pred %p<3>;
  .reg .b16 %h<3>;
  .reg .b32 %r<3>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [truths];
  ld.param.u64 %d2, [count];
  ld.param.u64 %d3, [seen];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  cvt.u64.u32 %d5, %r1;
  cvt.u64.u32 %d6, %r2;
  mov.u16 %h2, 0;
LOOP:
  setp.ge.u64 %p1, %d5, %d2;
  @%p1 bra DONE;
  add.u64 %d7, %d1, %d5;
  ld.global.u8 %h1, [%d7];
  setp.ne.u16 %p2, %h1, 0;
  @%p2 bra NEXT;
  st.global.u8 [%d3], %h2;
  ret;
NEXT:
  add.u64 %d5, %d5, %d6;
  bra LOOP;
DONE:
  ret;
}
\0"""
_LAUNCH = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
)


class CheckKernel:
    """The kernel on one GPU. Raises DriverError where it can't be had."""

    def __init__(self, gpu: cuda.Gpu, device: int) -> None:
        self._gpu, self._function = gpu, gpu.load(device, PTX, "irc_clear", 0)
        self._launch = _LAUNCH(gpu.table[cuda.LAUNCH])

    def clear(self, truths: torch.Tensor, seen: int) -> None:
        """On the current stream: clear the byte at `seen` where one of the truths, dense bytes of
        the GPU, is 0."""
        words = (ctypes.c_uint64 * 3)(truths.data_ptr(), truths.numel(), seen)
        places = [ctypes.addressof(words) + 8 * k for k in range(len(words))]
        pointers = (ctypes.c_void_p * len(words))(*places)
        stream = torch.cuda.current_stream(truths.device).cuda_stream
        code = self._launch(self._function, 1, 1, 1, THREADS, 1, 1, 0, stream, pointers, None)
        if code:
            raise cuda.DriverError(f"cuLaunchKernel: {self._gpu.error_text(code)}")


def check_kernel(device: int) -> CheckKernel | None:
    """The kernel on a GPU, once it has cleared what it should and nothing else; None without the
    driver's functions, or where the driver can't assemble it: checks are copied then."""
    gpu = cuda.installed()
    if gpu is None:
        return None
    with torch.inference_mode(False), torch.cuda.device(device):
        try:
            kernel = CheckKernel(gpu, device)
        except cuda.DriverError:
            return None
        truths = torch.ones(2 * THREADS, dtype=torch.uint8, device="cuda")
        truths[THREADS + 1] = 0
        seen = torch.ones(3, dtype=torch.uint8, pin_memory=True)
        kernel.clear(truths[: THREADS + 1], seen.data_ptr())
        kernel.clear(truths, seen.data_ptr() + 1)
        torch.cuda.synchronize()
    return kernel if seen.tolist() == [1, 0, 1] else None


__all__ = ["CheckKernel", "check_kernel"]
