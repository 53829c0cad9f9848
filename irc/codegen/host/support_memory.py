"""Support functions for the memory of a GPU's programs, as LLVM text.

`irc_gpu_empty(words, table, device, rank, sizes, strides, dtype, out) -> i32`: a new tensor on a
GPU, its handle at `out`, by the function that `words` (of `irc.boundary.cuda_memory`) names, below
torch's dispatcher; by torch's C function where there is none. Not 0 where there is no tensor, with
nothing thrown: torch's operator tells its own error then.
"""

from __future__ import annotations

from irc.boundary import cuda, cuda_memory

#: C++'s own, in torch's process: `operator new` and `operator delete`, which handles are made by.
SYMBOLS = ("_Znwm", "_ZdlPv")

_TEXT = """
declare noalias ptr @_Znwm(i64)
declare void @_ZdlPv(ptr)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)

define i32 @irc_gpu_empty(ptr %words, ptr %table, i64 %device, i64 %rank, ptr %sizes, ptr %strides,
                          i32 %dtype, ptr %out) uwtable personality ptr @__gxx_personality_v0 {
entry:
  %type = word i64, ptr %table, i64 TABLE_DEVICE_TYPE
  %mask = word i64, ptr %table, i64 TABLE_INDEX_MASK
  %index = or i64 %device, %mask
  %empty = word ptr, ptr %words, i64 WORDS_EMPTY
  %none = icmp eq ptr %empty, null
  br i1 %none, label %torch, label %begin
begin:
  ; an optional device: its type, its index, whether it is there, a byte each
  %type.byte = and i64 %type, 255
  %index.byte = and i64 %index, 255
  %index.high = shl i64 %index.byte, 8
  %place = or i64 %type.byte, %index.high
  %device.word = or i64 %place, 65536
  %cell = invoke ptr @_Znwm(i64 8) to label %make unwind label %failed
make:
  invoke void %empty(ptr %cell, ptr %sizes, i64 %rank, ptr %strides, i64 %rank, i32 %dtype,
      i64 %device.word) to label %made unwind label %thrown
made:
  store ptr %cell, ptr %out
  ret i32 0
torch:
  %type.code = trunc i64 %type to i32
  %index.code = trunc i64 %index to i32
  %code = call i32 @aoti_torch_empty_strided(i64 %rank, ptr %sizes, ptr %strides, i32 %dtype,
      i32 %type.code, i32 %index.code, ptr %out)
  ret i32 %code
thrown:
  %pad = landingpad { ptr, i32 } catch ptr null
  call void @_ZdlPv(ptr %cell)
  %exception = extractvalue { ptr, i32 } %pad, 0
  %ignored = call ptr @__cxa_begin_catch(ptr %exception)
  call void @__cxa_end_catch()
  ret i32 1
failed:
  %pad.failed = landingpad { ptr, i32 } catch ptr null
  %exception.failed = extractvalue { ptr, i32 } %pad.failed, 0
  %ignored.failed = call ptr @__cxa_begin_catch(ptr %exception.failed)
  call void @__cxa_end_catch()
  ret i32 1
}
"""

SIGNATURES = {"irc_gpu_empty": ("i32", ("ptr", "ptr", "i64", "i64", "ptr", "ptr", "i32", "ptr"))}


def memory_text() -> str:
    """The functions as LLVM text, which stands behind that of the products."""
    text = _TEXT.replace("WORDS_EMPTY", str(cuda_memory.EMPTY))
    for name in ("DEVICE_TYPE", "INDEX_MASK"):
        text = text.replace(f"TABLE_{name}", str(getattr(cuda, name)))
    return text


__all__ = ["SIGNATURES", "SYMBOLS", "memory_text"]
