"""Support functions of native host programs, as LLVM text: compiled once per process.

Host programs stay small by calling these instead of repeating them: the check of a tensor argument
against a constant table, the arenas, calls of Python functions, and the release of
tensor handles. They hold no state but `support_kept`'s pool; the offsets in them are those that
`irc.boundary.torch_abi.self_test` checks.

`irc_check_tensor(runtime, object, spec, out) -> i32`: 0 when `object` is a plain dense CPU tensor
as `spec` says, an i64 table `[dtype, rank, has_strides, sizes..., strides...]` in which -1 accepts
anything. A stride is not looked at where the size is at most 1. Stores `{data, sizes, strides}`
into `out`.

`irc_huge_pages(data, bytes)`: asks for huge pages for a fresh result of `HUGE_RESULT_THRESHOLD`
bytes or more, within its memory only. A hint: the storage stays what its allocator made.
Programs give 0 bytes in their first call (`HostMemory.kept`).

`irc_call_python(callable, kinds, payload, count) -> object`: a vectorcall with `count` (at most
64 bits each) arguments described by `kinds` (see `KIND_*`); the interpreter lock is held.

`irc_unpack_results(runtime, result, kinds, out, count) -> i32`: the reverse for a tuple of results;
tensors become new handles, None becomes a null handle. 1 with a Python error set when they differ.

`support_arena`, `support_kept`, `support_results` and `support_pieces` have the rest.

Support functions read records (descriptors, tables, plans) whose fields are words of 64 bits. In
the text of all support modules `%count = word i64, ptr %board, i64 BOARD_COUNT` stands for LLVM's

    %count.at = getelementptr i64, ptr %board, i64 BOARD_COUNT
    %count = load i64, ptr %count.at

so that `%count.at` is there for what writes the word back; `word ptr` reads a pointer.
"""

from __future__ import annotations

import re

from irc.codegen.host import support_arena as host_support_arena
from irc.codegen.host import support_kept as host_support_kept
from irc.codegen.host import support_pieces as host_support_pieces
from irc.codegen.host.support_results import LOCK, RESULTS

KIND_TENSOR, KIND_INT, KIND_FLOAT, KIND_BOOL, KIND_OBJECT = 0, 1, 2, 3, 4

#: From this size on a result may hold a huge page. Often its memory is fresh, and what fills it
#: pays page by page: above 32 MB glibc's malloc always maps it, and gradients that a step of
#: training drops go back to the system, since together they are more than malloc keeps. Touching
#: 2 MB takes 1 ms in small pages, 0.3 ms in a huge one, and asking 0.2 us (a VM with a Xeon 8592).
HUGE_RESULT_THRESHOLD = 2 << 20
_MADV_HUGEPAGE = 14

DECLARATIONS = """
declare i32 @aoti_torch_get_dtype(ptr, ptr)
declare i32 @aoti_torch_get_dim(ptr, ptr)
declare i32 @aoti_torch_get_sizes(ptr, ptr)
declare i32 @aoti_torch_get_strides(ptr, ptr)
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)
declare i32 @aoti_torch_get_device_type(ptr, ptr)
declare i32 @aoti_torch_get_device_index(ptr, ptr)
declare i32 @aoti_torch_delete_tensor_object(ptr)
declare i32 @aoti_torch_new_tensor_handle(ptr, ptr)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)
declare i32 @aoti_torch_copy_(ptr, ptr, i32)
declare i32 @aoti_torch_create_tensor_from_blob_v2(ptr, i64, ptr, ptr, i64, i32, i32, i32, ptr, i32,
                                                   ptr, i64)
declare ptr @irc_wrap_tensor(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyFloat_FromDouble(double)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare void @PyErr_SetString(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @aligned_alloc(i64, i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
"""

CHECK_TENSOR = """
define i32 @irc_check_tensor(ptr %runtime, ptr %object, ptr %spec, ptr %out) {
entry:
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %tensor.type = load ptr, ptr %runtime
  %parameter.at = getelementptr i64, ptr %runtime, i64 1
  %parameter.type = load ptr, ptr %parameter.at
  %is.tensor = icmp eq ptr %type, %tensor.type
  %is.parameter = icmp eq ptr %type, %parameter.type
  %type.ok = or i1 %is.tensor, %is.parameter
  br i1 %type.ok, label %keys, label %bad
keys:
  %handle = getelementptr i8, ptr %object, i64 16
  %impl = load ptr, ptr %handle
  %offset = word i64, ptr %runtime, i64 3
  %keys.at = getelementptr i8, ptr %impl, i64 %offset
  %keys.word = load i64, ptr %keys.at
  %required = word i64, ptr %runtime, i64 4
  %forbidden = word i64, ptr %runtime, i64 5
  %has = and i64 %keys.word, %required
  %has.ok = icmp eq i64 %has, %required
  %more = and i64 %keys.word, %forbidden
  %more.ok = icmp eq i64 %more, 0
  %keys.ok = and i1 %has.ok, %more.ok
  br i1 %keys.ok, label %read, label %bad
read:
  %dtype.out = alloca i32
  %dim.out = alloca i64
  %sizes.out = getelementptr ptr, ptr %out, i64 1
  %strides.out = getelementptr ptr, ptr %out, i64 2
  %e1 = call i32 @aoti_torch_get_dtype(ptr %handle, ptr %dtype.out)
  %e2 = call i32 @aoti_torch_get_dim(ptr %handle, ptr %dim.out)
  %e3 = call i32 @aoti_torch_get_sizes(ptr %handle, ptr %sizes.out)
  %e4 = call i32 @aoti_torch_get_strides(ptr %handle, ptr %strides.out)
  %e12 = or i32 %e1, %e2
  %e34 = or i32 %e3, %e4
  %e = or i32 %e12, %e34
  %dtype32 = load i32, ptr %dtype.out
  %dtype = sext i32 %dtype32 to i64
  %dim = load i64, ptr %dim.out
  %want.dtype = load i64, ptr %spec
  %want.dim = word i64, ptr %spec, i64 1
  %e.ok = icmp eq i32 %e, 0
  %dtype.ok = icmp eq i64 %dtype, %want.dtype
  %dim.ok = icmp eq i64 %dim, %want.dim
  %ok1 = and i1 %e.ok, %dtype.ok
  %ok2 = and i1 %ok1, %dim.ok
  br i1 %ok2, label %shape, label %bad
shape:
  %with.strides = word i64, ptr %spec, i64 2
  %strides.checked = icmp ne i64 %with.strides, 0
  %sizes = load ptr, ptr %sizes.out
  %strides = load ptr, ptr %strides.out
  %want.sizes = getelementptr i64, ptr %spec, i64 3
  %want.strides = getelementptr i64, ptr %want.sizes, i64 %dim
  br label %loop
loop:
  %i = phi i64 [ 0, %shape ], [ %i.next, %next ]
  %done = icmp eq i64 %i, %dim
  br i1 %done, label %data, label %one
one:
  %size = word i64, ptr %sizes, i64 %i
  %want.size = word i64, ptr %want.sizes, i64 %i
  %size.any = icmp slt i64 %want.size, 0
  %size.same = icmp eq i64 %size, %want.size
  %size.ok = or i1 %size.any, %size.same
  br i1 %size.ok, label %stride, label %bad
stride:
  %small = icmp sle i64 %size, 1
  %unchecked = xor i1 %strides.checked, true
  %skip = or i1 %small, %unchecked
  br i1 %skip, label %next, label %stride.check
stride.check:
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride.value = load i64, ptr %stride.at
  %want.stride = word i64, ptr %want.strides, i64 %i
  %stride.any = icmp slt i64 %want.stride, 0
  %stride.same = icmp eq i64 %stride.value, %want.stride
  %stride.ok = or i1 %stride.any, %stride.same
  br i1 %stride.ok, label %next, label %bad
next:
  %i.next = add i64 %i, 1
  br label %loop
data:
  %e5 = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %out)
  ret i32 %e5
bad:
  ret i32 1
}
"""

def _release(name: str, drop: str) -> str:
    """A function that drops every pointer of an array that is not null, by the instruction
    `drop` of `%held`, and stores null in its place."""
    return f"""
define void @{name}(ptr %array, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %at = getelementptr ptr, ptr %array, i64 %i
  %held = load ptr, ptr %at
  %empty = icmp eq ptr %held, null
  br i1 %empty, label %next, label %drop
drop:
  store ptr null, ptr %at
  {drop}
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}}
"""


RELEASES = _release(
    "irc_release_handles", "%ignored = call i32 @aoti_torch_delete_tensor_object(ptr %held)"
) + _release("irc_release_objects", "call void @Py_DecRef(ptr %held)")

PYTHON_CALLS = """
define ptr @irc_call_python(ptr %callable, ptr %kinds, ptr %payload, i64 %count) {
entry:
  %room = add i64 %count, 1
  %objects = alloca ptr, i64 %room
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %store ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %call, label %one
one:
  %kind.at = getelementptr i8, ptr %kinds, i64 %i
  %kind = load i8, ptr %kind.at
  %word = word i64, ptr %payload, i64 %i
  switch i8 %kind, label %object [ i8 0, label %tensor i8 1, label %int
                                   i8 2, label %float i8 3, label %bool ]
tensor:
  %handle = inttoptr i64 %word to ptr
  %wrapped = call ptr @irc_wrap_tensor(ptr %handle)
  br label %store
int:
  %boxed.int = call ptr @PyLong_FromLongLong(i64 %word)
  br label %store
float:
  %real = bitcast i64 %word to double
  %boxed.float = call ptr @PyFloat_FromDouble(double %real)
  br label %store
bool:
  %boxed.bool = call ptr @PyBool_FromLong(i64 %word)
  br label %store
object:
  %borrowed = inttoptr i64 %word to ptr
  call void @Py_IncRef(ptr %borrowed)
  br label %store
store:
  %value = phi ptr [ %wrapped, %tensor ], [ %boxed.int, %int ], [ %boxed.float, %float ],
                   [ %boxed.bool, %bool ], [ %borrowed, %object ]
  %at = getelementptr ptr, ptr %objects, i64 %i
  store ptr %value, ptr %at
  %i.next = add i64 %i, 1
  %null = icmp eq ptr %value, null
  br i1 %null, label %clean, label %loop
call:
  %result = call ptr @PyObject_Vectorcall(ptr %callable, ptr %objects, i64 %count, ptr null)
  br label %clean
clean:
  %made = phi i64 [ %i, %store ], [ %count, %call ]
  %answer = phi ptr [ null, %store ], [ %result, %call ]
  br label %drop
drop:
  %j = phi i64 [ 0, %clean ], [ %j.next, %drop.one ]
  %drop.end = icmp eq i64 %j, %made
  br i1 %drop.end, label %done, label %drop.one
drop.one:
  %drop.at = getelementptr ptr, ptr %objects, i64 %j
  %dropped = load ptr, ptr %drop.at
  call void @Py_DecRef(ptr %dropped)
  %j.next = add i64 %j, 1
  br label %drop
done:
  ret ptr %answer
}

define i32 @irc_unpack_results(ptr %runtime, ptr %result, ptr %kinds, ptr %out, i64 %count) {
entry:
  %type.at = getelementptr i8, ptr %result, i64 8
  %type = load ptr, ptr %type.at
  %tuple.at = getelementptr i64, ptr %runtime, i64 10
  %tuple.type = load ptr, ptr %tuple.at
  %size.at = getelementptr i8, ptr %result, i64 16
  %size = load i64, ptr %size.at
  %none = word ptr, ptr %runtime, i64 2
  %is.tuple = icmp eq ptr %type, %tuple.type
  %same.size = icmp eq i64 %size, %count
  %ok = and i1 %is.tuple, %same.size
  br i1 %ok, label %loop, label %bad
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %good, label %one
one:
  %items = getelementptr i8, ptr %result, i64 24
  %item = word ptr, ptr %items, i64 %i
  %out.at = getelementptr i64, ptr %out, i64 %i
  %kind.at = getelementptr i8, ptr %kinds, i64 %i
  %kind = load i8, ptr %kind.at
  switch i8 %kind, label %tensor [ i8 1, label %int i8 2, label %float i8 3, label %int ]
int:
  %int.value = call i64 @PyLong_AsLongLong(ptr %item)
  store i64 %int.value, ptr %out.at
  br label %checked
float:
  %float.value = call double @PyFloat_AsDouble(ptr %item)
  store double %float.value, ptr %out.at
  br label %checked
checked:
  %raised = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %raised, null
  br i1 %fine, label %next, label %bad
tensor:
  %absent = icmp eq ptr %item, %none
  br i1 %absent, label %nothing, label %take
nothing:
  store ptr null, ptr %out.at
  br label %next
take:
  %item.type.at = getelementptr i8, ptr %item, i64 8
  %item.type = load ptr, ptr %item.type.at
  %tensor.type = load ptr, ptr %runtime
  %parameter.at = getelementptr i64, ptr %runtime, i64 1
  %parameter.type = load ptr, ptr %parameter.at
  %is.tensor = icmp eq ptr %item.type, %tensor.type
  %is.parameter = icmp eq ptr %item.type, %parameter.type
  %tensor.ok = or i1 %is.tensor, %is.parameter
  br i1 %tensor.ok, label %copy, label %bad
copy:
  %field = getelementptr i8, ptr %item, i64 16
  %error = call i32 @aoti_torch_new_tensor_handle(ptr %field, ptr %out.at)
  %copied = icmp eq i32 %error, 0
  br i1 %copied, label %next, label %bad
next:
  %i.next = add i64 %i, 1
  br label %loop
good:
  ret i32 0
bad:
  %filled = phi i64 [ 0, %entry ], [ %i, %checked ], [ %i, %take ], [ %i, %copy ]
  br label %undo
undo:
  %j = phi i64 [ 0, %bad ], [ %j.next, %undo.next ]
  %undo.end = icmp eq i64 %j, %filled
  br i1 %undo.end, label %fail, label %undo.one
undo.one:
  %undo.at = getelementptr i64, ptr %out, i64 %j
  %undo.kind.at = getelementptr i8, ptr %kinds, i64 %j
  %undo.kind = load i8, ptr %undo.kind.at
  %undo.word = load ptr, ptr %undo.at
  store ptr null, ptr %undo.at
  %undo.tensor = icmp eq i8 %undo.kind, 0
  %undo.full = icmp ne ptr %undo.word, null
  %undo.delete = and i1 %undo.tensor, %undo.full
  br i1 %undo.delete, label %undo.drop, label %undo.next
undo.drop:
  %ignored = call i32 @aoti_torch_delete_tensor_object(ptr %undo.word)
  br label %undo.next
undo.next:
  %j.next = add i64 %j, 1
  br label %undo
fail:
  %already = call ptr @PyErr_Occurred()
  %silent = icmp eq ptr %already, null
  br i1 %silent, label %complain, label %answer
complain:
  %error.type = word ptr, ptr %runtime, i64 11
  call void @PyErr_SetString(ptr %error.type, ptr @irc_bad_results)
  br label %answer
answer:
  ret i32 1
}

@irc_bad_results = private constant [48 x i8] c"results of a call differ from what was compiled\\00"
"""

#: Names and LLVM signatures of the support functions, for the modules that call them.
HUGE_PAGES = """
define void @irc_huge_pages(ptr %data, i64 %bytes) {
entry:
  %large = icmp sge i64 %bytes, HUGE_RESULT
  br i1 %large, label %hint, label %done
hint:
  %start = ptrtoint ptr %data to i64
  %end = add i64 %start, %bytes
  %start.padded = add i64 %start, 2097151
  %first = and i64 %start.padded, -2097152
  %last = and i64 %end, -2097152
  %count = sub i64 %last, %first
  %place = inttoptr i64 %first to ptr
  %ignored = call i32 @madvise(ptr %place, i64 %count, i32 MADV_HUGEPAGE)
  br label %done
done:
  ret void
}
"""

SIGNATURES = {
    "irc_check_tensor": ("i32", ("ptr", "ptr", "ptr", "ptr")),
    **host_support_arena.SIGNATURES,
    **host_support_pieces.SIGNATURES,
    **host_support_kept.SIGNATURES,
    "irc_huge_pages": ("void", ("ptr", "i64")),
    "irc_release_handles": ("void", ("ptr", "i64")),
    "irc_release_objects": ("void", ("ptr", "i64")),
    "irc_call_python": ("ptr", ("ptr", "ptr", "ptr", "i64")),
    "irc_unpack_results": ("i32", ("ptr", "ptr", "ptr", "ptr", "i64")),
    "irc_fit_result": ("i32", ("ptr", "ptr")),
    "irc_arena_view": ("ptr", ("ptr", "i64", "ptr", "ptr")),
    "irc_lock": ("void", ("ptr",)),
    "irc_unlock": ("void", ("ptr",)),
    "irc_fail": ("void", ("ptr", "ptr", "ptr", "ptr", "ptr", "i64")),
    "irc_drop_argument": ("void", ("ptr", "i64", "ptr")),
    "irc_take_list": ("void", ("ptr", "ptr", "i64")),
}


_WORD = re.compile(r"^ *%([\w.]+) = word (i64|ptr), (ptr %[\w.]+, i64 [\w%.]+)$", re.MULTILINE)
_LOAD = r"  %\1.at = getelementptr i64, \3\n  %\1 = load \2, ptr %\1.at"


def written_out(text: str) -> str:
    """`text` in LLVM's own instructions, for words as the head of this file has them."""
    return _WORD.sub(_LOAD, text)


def support_text() -> str:
    """The support module as LLVM text, without a target line."""
    parts = (DECLARATIONS, CHECK_TENSOR, host_support_arena.arena_text(), RELEASES, HUGE_PAGES)
    more = (host_support_pieces.pieces_text(), host_support_kept.kept_text())
    text = "".join((*parts, PYTHON_CALLS, RESULTS, LOCK, *more))
    text = text.replace("HUGE_RESULT", str(HUGE_RESULT_THRESHOLD))
    return written_out(text.replace("MADV_HUGEPAGE", str(_MADV_HUGEPAGE)))
