"""A kernel that tells the CPU whether truth values of a GPU hold.

A copy of them to the CPU keeps a GPU waiting before and behind it, some 10 us between two kernels;
this kernel writes the outcome there itself, a byte. Launches that are captured into a graph have
their checks looked at in each replay, and write only that one failed. It is PTX, which the driver
assembles when it is loaded, so that no Triton is needed for it.
"""

from __future__ import annotations

import ctypes

import torch

from irc.boundary import cuda
from irc.codegen.host.support_gpu import CHECK_THREADS

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry irc_check(
  .param .u64 truths, .param .u64 count, .param .u64 seen, .param .u64 tell)
{
  .reg .pred %p<5>;
  .reg .b16 %h<2>;
  .reg .b32 %r<3>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [truths];
  ld.param.u64 %d2, [count];
  ld.param.u64 %d3, [seen];
  ld.param.u64 %d4, [tell];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  cvt.u64.u32 %d5, %r1;
  cvt.u64.u32 %d6, %r2;
  setp.eq.u32 %p1, %r1, %r1;
LOOP:
  setp.ge.u64 %p2, %d5, %d2;
  @%p2 bra DONE;
  add.u64 %d7, %d1, %d5;
  ld.global.u8 %h1, [%d7];
  setp.ne.and.u16 %p1, %h1, 0, %p1;
  add.u64 %d5, %d5, %d6;
  bra LOOP;
DONE:
  bar.red.and.pred %p3, 0, %p1;
  setp.ne.u32 %p2, %r1, 0;
  setp.eq.and.u64 %p4, %d4, 0, %p3;
  or.pred %p2, %p2, %p4;
  @%p2 bra END;
  selp.u16 %h1, 1, 0, %p3;
  st.volatile.global.u8 [%d3], %h1;
END:
  ret;
}
\0"""
_LAUNCH = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
)


class CheckKernel:
    """The kernel on one GPU. Raises DriverError where it can't be had."""

    def __init__(self, gpu: cuda.Gpu, device: int) -> None:
        self._gpu, self.function = gpu, gpu.load(device, PTX, "irc_check", 0)
        self._launch = _LAUNCH(gpu.table[cuda.LAUNCH])

    def look(self, truths: torch.Tensor, seen: int, tell: bool) -> None:
        """On the current stream: write 0 to the byte at `seen` where one of the truths, dense bytes
        of the GPU, is 0, and 1 where none is and it is to `tell`."""
        words = (ctypes.c_uint64 * 4)(truths.data_ptr(), truths.numel(), seen, tell)
        places = [ctypes.addressof(words) + 8 * k for k in range(len(words))]
        pointers = (ctypes.c_void_p * len(words))(*places)
        stream = torch.cuda.current_stream(truths.device).cuda_stream
        shape = (1, 1, 1, CHECK_THREADS, 1, 1, 0)
        code = self._launch(self.function, *shape, stream, pointers, None)
        if code:
            raise cuda.DriverError(f"cuLaunchKernel: {self._gpu.error_text(code)}")


def check_kernel(device: int) -> CheckKernel | None:
    """The kernel on a GPU, once it has written what it should and nothing else; None without the
    driver's functions, or where the driver can't assemble it: checks are copied then."""
    from torch.utils._python_dispatch import _disable_current_modes

    gpu = cuda.installed()
    if gpu is None:
        return None
    with _disable_current_modes(), torch.inference_mode(False), torch.cuda.device(device):
        try:
            kernel = CheckKernel(gpu, device)
        except cuda.DriverError:
            return None
        truths = torch.ones(2 * CHECK_THREADS, dtype=torch.uint8)
        truths[CHECK_THREADS + 1] = 0
        truths = truths.cuda()
        seen = torch.full((6,), 7, dtype=torch.uint8, pin_memory=True)
        for place, (count, tell) in enumerate(_PROBES):
            kernel.look(truths[:count], seen.data_ptr() + place, tell)
        torch.cuda.synchronize()
    return kernel if seen.tolist() == [7, 0, 1, 0, 1, 7] else None


_PROBES = (
    (CHECK_THREADS + 1, False), (2 * CHECK_THREADS, False), (CHECK_THREADS + 1, True),
    (CHECK_THREADS + 2, True), (0, True),
)  # fmt: skip


__all__ = ["PTX", "CheckKernel", "check_kernel"]
