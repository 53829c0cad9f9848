"""Numbers that a GPU's program copies to the CPU before it waits for them, as LLVM text.

A *place* is kept for each number of a program, in words: an event, memory that a GPU may write
while the CPU goes on, and whether a call is using the place.

`irc_gpu_start_read(table, place, data, bytes, stream) -> i32`: starts the copy of at most 8 bytes
at `data`; 0 where it can't, as another call uses the place or the stream is captured.
`irc_gpu_end_read(table, place, out) -> i32`: waits for the copy that this call has started, stores
the word at `out` and gives the place back; the driver's error, after which the place stays taken.
The interpreter lock need not be held.
"""

from __future__ import annotations

from irc.boundary import cuda

EVENT, MEMORY, TAKEN, PLACE_WORDS = 0, 1, 2, 3

READS = f"""
define i32 @irc_gpu_start_read(ptr %table, ptr %place, ptr %data, i64 %bytes, ptr %stream) {{
entry:
  %status.out = alloca i32
  %taken.at = getelementptr i64, ptr %place, i64 {TAKEN}
  %taken = atomicrmw xchg ptr %taken.at, i64 1 acq_rel, align 8
  %is.taken = icmp ne i64 %taken, 0
  br i1 %is.taken, label %no, label %look
look:
  %capturing = word ptr, ptr %table, i64 {cuda.IS_CAPTURING}
  store i32 0, ptr %status.out
  %e.status = call i32 %capturing(ptr %stream, ptr %status.out)
  %status = load i32, ptr %status.out
  %e.captured = or i32 %e.status, %status
  %captured = icmp ne i32 %e.captured, 0
  br i1 %captured, label %back, label %begin
begin:
  %memory = word ptr, ptr %place, i64 {MEMORY}
  %copy = word ptr, ptr %table, i64 {cuda.COPY_OUT}
  %e.copy = call i32 %copy(ptr %memory, ptr %data, i64 %bytes, ptr %stream)
  %is.copied = icmp eq i32 %e.copy, 0
  br i1 %is.copied, label %mark, label %back
mark:
  %event = word ptr, ptr %place, i64 {EVENT}
  %record = word ptr, ptr %table, i64 {cuda.EVENT_RECORD}
  %e.record = call i32 %record(ptr %event, ptr %stream)
  %is.marked = icmp eq i32 %e.record, 0
  br i1 %is.marked, label %yes, label %no
yes:
  ret i32 1
back:
  store atomic i64 0, ptr %taken.at release, align 8
  ret i32 0
no:
  ret i32 0
}}

define i32 @irc_gpu_end_read(ptr %table, ptr %place, ptr %out) {{
entry:
  %event = word ptr, ptr %place, i64 {EVENT}
  %wait = word ptr, ptr %table, i64 {cuda.EVENT_WAIT}
  %e.wait = call i32 %wait(ptr %event)
  %failed = icmp ne i32 %e.wait, 0
  br i1 %failed, label %done, label %take
take:
  %memory = word ptr, ptr %place, i64 {MEMORY}
  %word = load i64, ptr %memory
  store i64 %word, ptr %out
  %taken.at = getelementptr i64, ptr %place, i64 {TAKEN}
  store atomic i64 0, ptr %taken.at release, align 8
  br label %done
done:
  ret i32 %e.wait
}}
"""

SIGNATURES = {
    "irc_gpu_start_read": ("i32", ("ptr", "ptr", "ptr", "i64", "ptr")),
    "irc_gpu_end_read": ("i32", ("ptr", "ptr", "ptr")),
}
