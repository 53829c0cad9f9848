"""Support functions for convolutions on a GPU, as LLVM text.

`irc_gpu_convolution(words, image, weight, out) -> i32`: has cuDNN compute the convolution of
`words` (`irc.boundary.cuda_convolutions`) from tensors' handles into a third one. 0 where it is
launched, 1 where it isn't: there is no function, torch's settings ask for another one, or it threw,
which ends here.
"""

from __future__ import annotations

from irc.boundary import cuda_convolutions
from irc.codegen.host.support_products import THROWN, reads_of

#: `std::optional<at::Float32Op>` with that of convolutions, 1: the number, and that there is one.
_OF_CONVOLUTIONS = 1 | 1 << 32

_TEXT = """
define i32 @irc_gpu_convolution(ptr %words, ptr %image, ptr %weight, ptr %out) uwtable
    personality ptr @__gxx_personality_v0 {
entry:
  %convolution = load ptr, ptr %words
  %missing = icmp eq ptr %convolution, null
  br i1 %missing, label %other, label %read
read:
READ
  %context = invoke ptr %context.of() to label %ask unwind label %thrown
ask:
  %enabled = invoke zeroext i1 %enabled.of(ptr %context) to label %on unwind label %thrown
on:
  br i1 %enabled, label %ask.fixed, label %other
ask.fixed:
  %fixed = invoke zeroext i1 %fixed.of(ptr %context) to label %free unwind label %thrown
free:
  br i1 %fixed, label %other, label %ask.every
ask.every:
  %every = invoke zeroext i1 %deterministic.of(ptr %context) to label %any unwind label %thrown
any:
  br i1 %every, label %other, label %ask.tries
ask.tries:
  %tries = invoke zeroext i1 %benchmark.of(ptr %context) to label %ask.short unwind label %thrown
ask.short:
  %short = invoke zeroext i1 %tf32.of(ptr %context, i64 OF_CONVOLUTIONS)
      to label %go unwind label %thrown
go:
  %result = invoke ptr %convolution(ptr %image, ptr %weight, ptr %padding.at, i64 2,
      ptr %stride.at, i64 2, ptr %dilation.at, i64 2, i64 %groups, i1 zeroext %tries,
      i1 zeroext false, i1 zeroext %short, ptr %out) to label %done unwind label %thrown
done:
  ret i32 0
other:
  ret i32 1
THROWN
  ret i32 1
}
"""

#: Words that are read: functions and a number; of the others only the address is taken.
_READS = (
    ("ptr", "context.of", "CONTEXT"), ("ptr", "enabled.of", "ENABLED"),
    ("ptr", "benchmark.of", "BENCHMARK"), ("ptr", "fixed.of", "FIXED"),
    ("ptr", "deterministic.of", "DETERMINISTIC"), ("ptr", "tf32.of", "TF32"),
    ("i64", "groups", "GROUPS"), ("", "padding", "PADDING"), ("", "stride", "STRIDE"),
    ("", "dilation", "DILATION"),
)  # fmt: skip
SIGNATURES = {"irc_gpu_convolution": ("i32", ("ptr",) * 4)}


def convolutions_text() -> str:
    """The functions as LLVM text, which stands behind that of the products."""
    text = _TEXT.replace("OF_CONVOLUTIONS", str(_OF_CONVOLUTIONS)).replace("THROWN", THROWN)
    return text.replace("READ", reads_of("%words", cuda_convolutions, _READS))


__all__ = ["SIGNATURES", "convolutions_text"]
