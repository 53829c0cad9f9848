"""Calls of captured programs, as LLVM text: one native function from arguments to a graph's launch.

`irc_graph_call(self, arguments, count)` and `irc_graph_call_list(self, list)` are bodies of
builtins whose `self` is a ctypes array with the words of a *program* (`PROGRAM_*`). The program has
a chain of *plans* (`PLAN_*`), one for each captured call that may be replayed. A plan says what its
arguments are like (`ARGUMENT_*`, `ARGUMENT_WORDS` each): checked by `irc_gpu_check_tensor`, and
where the graph reads one in place, by its address; which of torch's settings it was captured under
(the object that `PROGRAM_SETTINGS` gives, where there is one); which are copied (`COPY_WORDS` each:
the argument, where to, bytes); the graph; and its results (`RESULT_*`, `RESULT_WORDS` each), which
are copied into fresh memory behind the launch. The first plan that fits is run; where none does,
Python is called, as it is on another stream or device, under a capture, or while somebody else is
in the stream's graphs (the words at `PLAN_BUSY`). `irc.runtime.graphs_native` makes the words.
"""

from __future__ import annotations

from irc.boundary import cuda
from irc.codegen.host.support import written_out

#: Words of a program: tables of torch and CUDA, the GPU's number, the first plan, and what is
#: called in Python: for late errors, for arguments and for a list that no plan is for, for a launch
#: that failed, for torch's settings as they are now (0: none matters).
(PROGRAM_RUNTIME, PROGRAM_TABLE, PROGRAM_DEVICE, PROGRAM_PLAN, PROGRAM_LATE, PROGRAM_CALL,
 PROGRAM_CALL_LIST, PROGRAM_FAILED, PROGRAM_SETTINGS, PROGRAM_WORDS) = range(10)  # fmt: skip
#: Words of a plan: the next one, calls so far, arguments, copies, the graph, its stream, results
#: (-1: all made by Python), what makes them in Python of the arguments, where it is said that the
#: stream's graphs are in use (a word for Python's users, one for those of this code), the settings,
#: the object that keeps the plan, and what says in Python that it may be run now (null: always).
(PLAN_NEXT, PLAN_CALLS, PLAN_COUNT, PLAN_ARGUMENTS, PLAN_COPIES, PLAN_COPY_LIST, PLAN_GRAPH,
 PLAN_STREAM, PLAN_RESULTS, PLAN_RESULT_LIST, PLAN_FINISH, PLAN_BUSY, PLAN_SETTINGS, PLAN_OWNER,
 PLAN_READY, PLAN_WORDS) = range(16)  # fmt: skip
#: An argument: its kind, a tensor's specification or a number's value, the address of one that is
#: read in place.
ARGUMENT_ANYWHERE, ARGUMENT_IN_PLACE, ARGUMENT_NUMBER, ARGUMENT_WORDS = 0, 1, 2, 3
COPY_WORDS = 3
#: A result: its kind, and an object, an argument's position, or rank, sizes, strides, dtype, where
#: the graph has it, bytes.
RESULT_OBJECT, RESULT_ARGUMENT, RESULT_FRESH, RESULT_WORDS = 0, 1, 2, 7

_DECLARATIONS = """
declare i32 @irc_gpu_check_tensor(ptr, i64, ptr, ptr, ptr, ptr)
declare i32 @irc_gpu_told(ptr, i64)
declare i32 @irc_gpu_stream(ptr, i64, ptr)
declare ptr @irc_call_python(ptr, ptr, ptr, i64)
declare void @irc_fail(ptr, ptr, ptr, ptr, ptr, i64)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)
declare i32 @aoti_torch_delete_tensor_object(ptr)
declare ptr @irc_wrap_tensor(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyErr_Occurred()
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
@irc_int_kind = private constant [1 x i8] c"\\01"
"""

_MATCH = """
define i1 @irc_graph_fits(ptr %program, ptr %plan, ptr %arguments, i64 %count, ptr %data) {
entry:
  %seen = alloca [3 x ptr]
  %overflow = alloca i32
  %runtime = load ptr, ptr %program
  %table = word ptr, ptr %program, i64 PROGRAM_TABLE
  %device = word i64, ptr %program, i64 PROGRAM_DEVICE
  %int.type = word ptr, ptr %runtime, i64 12
  %list = word ptr, ptr %plan, i64 PLAN_ARGUMENTS
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %object = word ptr, ptr %arguments, i64 %i
  %word = mul i64 %i, ARGUMENT_WORDS
  %record = getelementptr i64, ptr %list, i64 %word
  %kind = load i64, ptr %record
  %spec.at = getelementptr i64, ptr %record, i64 1
  %is.number = icmp eq i64 %kind, ARGUMENT_NUMBER
  br i1 %is.number, label %number, label %tensor
tensor:
  %spec = load ptr, ptr %spec.at
  %e = call i32 @irc_gpu_check_tensor(ptr %table, i64 %device, ptr %runtime, ptr %object, ptr %spec,
                                      ptr %seen)
  %right = icmp eq i32 %e, 0
  br i1 %right, label %address, label %no
address:
  %now = load ptr, ptr %seen
  %data.at = getelementptr ptr, ptr %data, i64 %i
  store ptr %now, ptr %data.at
  %wanted = word ptr, ptr %record, i64 2
  %stays = icmp eq ptr %now, %wanted
  %anywhere = icmp eq i64 %kind, ARGUMENT_ANYWHERE
  %there = or i1 %stays, %anywhere
  br i1 %there, label %next, label %no
number:
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %is.int = icmp eq ptr %type, %int.type
  br i1 %is.int, label %value, label %no
value:
  %number.is = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %too.large = load i32, ptr %overflow
  %small = icmp eq i32 %too.large, 0
  %number.wanted = load i64, ptr %spec.at
  %equal = icmp eq i64 %number.is, %number.wanted
  %same = and i1 %small, %equal
  br i1 %same, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %loop
yes:
  ret i1 1
no:
  ret i1 0
}
"""

_FIND = """
define ptr @irc_graph_find(ptr %program, ptr %arguments, i64 %count, ptr %data, ptr %stream.out,
                           ptr %settings) {
entry:
  %current.out = alloca ptr
  %status.out = alloca i32
  %table = word ptr, ptr %program, i64 PROGRAM_TABLE
  %device = word i64, ptr %program, i64 PROGRAM_DEVICE
  %first = word ptr, ptr %program, i64 PROGRAM_PLAN
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %none, label %context
context:
  store ptr null, ptr %current.out
  %get = word ptr, ptr %table, i64 GET_CONTEXT
  %e.context = call i32 %get(ptr %current.out)
  %current = load ptr, ptr %current.out
  %place = add i64 %device, CONTEXTS
  %wanted = word ptr, ptr %table, i64 %place
  %here = icmp eq ptr %current, %wanted
  br i1 %here, label %stream, label %none
stream:
  %e.stream = call i32 @irc_gpu_stream(ptr %table, i64 %device, ptr %stream.out)
  %current.stream = load ptr, ptr %stream.out
  %capturing = word ptr, ptr %table, i64 IS_CAPTURING
  store i32 0, ptr %status.out
  %e.status = call i32 %capturing(ptr %current.stream, ptr %status.out)
  %status = load i32, ptr %status.out
  %e1 = or i32 %e.context, %e.stream
  %e2 = or i32 %e.status, %status
  %e = or i32 %e1, %e2
  %free = icmp eq i32 %e, 0
  br i1 %free, label %look, label %none
look:
  %plan = phi ptr [ %first, %stream ], [ %next, %other ]
  %over = icmp eq ptr %plan, null
  br i1 %over, label %none, label %one
one:
  %its.count = word i64, ptr %plan, i64 PLAN_COUNT
  %its.stream = word ptr, ptr %plan, i64 PLAN_STREAM
  %busy.at = word ptr, ptr %plan, i64 PLAN_BUSY
  %owner = load i64, ptr %busy.at
  %native = word i64, ptr %busy.at, i64 1
  %busy = or i64 %owner, %native
  %same.count = icmp eq i64 %its.count, %count
  %same.stream = icmp eq ptr %its.stream, %current.stream
  %idle = icmp eq i64 %busy, 0
  %may = and i1 %same.count, %same.stream
  %settings.at = getelementptr i64, ptr %plan, i64 PLAN_SETTINGS
  %its.settings = load ptr, ptr %settings.at
  %as.captured = icmp eq ptr %its.settings, %settings
  %now = and i1 %idle, %as.captured
  %can = and i1 %may, %now
  br i1 %can, label %fit, label %other
fit:
  %fits = call i1 @irc_graph_fits(ptr %program, ptr %plan, ptr %arguments, i64 %count, ptr %data)
  br i1 %fits, label %found, label %other
other:
  %next = load ptr, ptr %plan
  br label %look
found:
  %owner.object = word ptr, ptr %plan, i64 PLAN_OWNER
  call void @Py_IncRef(ptr %owner.object)
  store i64 1, ptr %native.at
  %ready = word ptr, ptr %plan, i64 PLAN_READY
  %always = icmp eq ptr %ready, null
  br i1 %always, label %take, label %ask
ask:
  %answer = call ptr @irc_call_python(ptr %ready, ptr null, ptr null, i64 0)
  %runtime = load ptr, ptr %program
  %true = word ptr, ptr %runtime, i64 7
  %is.ready = icmp eq ptr %answer, %true
  call void @Py_DecRef(ptr %answer)
  br i1 %is.ready, label %take, label %later
take:
  ret ptr %plan
later:
  store i64 0, ptr %native.at
  call void @Py_DecRef(ptr %owner.object)
  br label %none
none:
  ret ptr null
}

define i32 @irc_graph_launch(ptr %table, ptr %plan, ptr %data, ptr %stream) {
entry:
  %copies = word i64, ptr %plan, i64 PLAN_COPIES
  %list = word ptr, ptr %plan, i64 PLAN_COPY_LIST
  %copy = word ptr, ptr %table, i64 COPY_BYTES
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %done ]
  %end = icmp eq i64 %i, %copies
  br i1 %end, label %launch, label %one
one:
  %word = mul i64 %i, COPY_WORDS
  %record = getelementptr i64, ptr %list, i64 %word
  %position = load i64, ptr %record
  %target = word ptr, ptr %record, i64 1
  %bytes = word i64, ptr %record, i64 2
  %source = word ptr, ptr %data, i64 %position
  %e = call i32 %copy(ptr %target, ptr %source, i64 %bytes, ptr %stream)
  %copied = icmp eq i32 %e, 0
  br i1 %copied, label %done, label %failed
done:
  %i.next = add i64 %i, 1
  br label %loop
launch:
  %graph = word ptr, ptr %plan, i64 PLAN_GRAPH
  %launch.at = getelementptr ptr, ptr %table, i64 GRAPH_LAUNCH
  %launch.graph = load ptr, ptr %launch.at
  %code = call i32 %launch.graph(ptr %graph, ptr %stream)
  ret i32 %code
failed:
  ret i32 %e
}
"""

_RESULTS = """
define ptr @irc_graph_fresh(ptr %program, ptr %record, ptr %stream) {
entry:
  %handle.out = alloca ptr
  %data.out = alloca ptr
  %table = word ptr, ptr %program, i64 PROGRAM_TABLE
  %device = word i64, ptr %program, i64 PROGRAM_DEVICE
  %mask = word i64, ptr %table, i64 INDEX_MASK
  %index.wide = or i64 %device, %mask
  %index = trunc i64 %index.wide to i32
  %type.wide = load i64, ptr %table
  %type = trunc i64 %type.wide to i32
  %rank = word i64, ptr %record, i64 1
  %sizes = word ptr, ptr %record, i64 2
  %strides = word ptr, ptr %record, i64 3
  %dtype.at = getelementptr i64, ptr %record, i64 4
  %dtype.wide = load i64, ptr %dtype.at
  %dtype = trunc i64 %dtype.wide to i32
  %source = word ptr, ptr %record, i64 5
  %bytes = word i64, ptr %record, i64 6
  %e = call i32 @aoti_torch_empty_strided(i64 %rank, ptr %sizes, ptr %strides, i32 %dtype,
                                          i32 %type, i32 %index, ptr %handle.out)
  %made = icmp eq i32 %e, 0
  br i1 %made, label %copy, label %none
copy:
  %handle = load ptr, ptr %handle.out
  %e.data = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %data.out)
  %target = load ptr, ptr %data.out
  %copy.at = getelementptr ptr, ptr %table, i64 COPY_BYTES
  %copy.bytes = load ptr, ptr %copy.at
  %nothing = icmp eq i64 %bytes, 0
  br i1 %nothing, label %wrap, label %move
move:
  %e.copy = call i32 %copy.bytes(ptr %target, ptr %source, i64 %bytes, ptr %stream)
  %e.both = or i32 %e.copy, %e.data
  %copied = icmp eq i32 %e.both, 0
  br i1 %copied, label %wrap, label %drop
wrap:
  %object = call ptr @irc_wrap_tensor(ptr %handle)
  br label %drop
drop:
  %result = phi ptr [ null, %move ], [ %object, %wrap ]
  %ignored = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  ret ptr %result
none:
  ret ptr null
}

define ptr @irc_graph_results(ptr %program, ptr %plan, ptr %arguments, i64 %count, ptr %stream) {
entry:
  %results = word i64, ptr %plan, i64 PLAN_RESULTS
  %list = word ptr, ptr %plan, i64 PLAN_RESULT_LIST
  %python = icmp slt i64 %results, 0
  br i1 %python, label %finish, label %begin
begin:
  %tuple = call ptr @PyTuple_New(i64 %results)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %none, label %loop
loop:
  %i = phi i64 [ 0, %begin ], [ %i.next, %put ]
  %end = icmp eq i64 %i, %results
  br i1 %end, label %done, label %one
one:
  %word = mul i64 %i, RESULT_WORDS
  %record = getelementptr i64, ptr %list, i64 %word
  %kind = load i64, ptr %record
  %what.at = getelementptr i64, ptr %record, i64 1
  switch i64 %kind, label %fresh [ i64 RESULT_OBJECT, label %object
                                   i64 RESULT_ARGUMENT, label %argument ]
object:
  %constant = load ptr, ptr %what.at
  call void @Py_IncRef(ptr %constant)
  br label %put
argument:
  %position = load i64, ptr %what.at
  %given = word ptr, ptr %arguments, i64 %position
  call void @Py_IncRef(ptr %given)
  br label %put
fresh:
  %new = call ptr @irc_graph_fresh(ptr %program, ptr %record, ptr %stream)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %again, label %put
put:
  %item = phi ptr [ %constant, %object ], [ %given, %argument ], [ %new, %fresh ]
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %item)
  %i.next = add i64 %i, 1
  br label %loop
again:
  call void @Py_DecRef(ptr %tuple)
  br label %finish
finish:
  %finish.at = getelementptr i64, ptr %plan, i64 PLAN_FINISH
  %callable = load ptr, ptr %finish.at
  %made = call ptr @PyObject_Vectorcall(ptr %callable, ptr %arguments, i64 %count, ptr null)
  ret ptr %made
done:
  ret ptr %tuple
none:
  ret ptr null
}
"""

_CALLS = """
define i32 @irc_graph_run(ptr %program, ptr %arguments, i64 %count, ptr %out) {
entry:
  %stream.out = alloca ptr
  %code.out = alloca i64
  %state = alloca ptr
  store ptr null, ptr %state
  %data = alloca ptr, i64 %count
  %runtime = load ptr, ptr %program
  %table = word ptr, ptr %program, i64 PROGRAM_TABLE
  %device.at = getelementptr i64, ptr %program, i64 PROGRAM_DEVICE
  %its.device = load i64, ptr %device.at
  %late = call i32 @irc_gpu_told(ptr %table, i64 %its.device)
  %quiet = icmp eq i32 %late, 0
  br i1 %quiet, label %find, label %tell
tell:
  %errors = word ptr, ptr %program, i64 PROGRAM_LATE
  %told = call ptr @irc_call_python(ptr %errors, ptr @irc_int_kind, ptr %device.at, i64 1)
  %raised = icmp eq ptr %told, null
  br i1 %raised, label %error, label %told.none
told.none:
  call void @Py_DecRef(ptr %told)
  br label %find
find:
  %first = word ptr, ptr %program, i64 PROGRAM_PLAN
  %no.plan = icmp eq ptr %first, null
  br i1 %no.plan, label %other, label %settings
settings:
  %ask = word ptr, ptr %program, i64 PROGRAM_SETTINGS
  %no.settings = icmp eq ptr %ask, null
  br i1 %no.settings, label %look, label %read
read:
  %read.now = call ptr @PyObject_CallNoArgs(ptr %ask)
  %unread = icmp eq ptr %read.now, null
  br i1 %unread, label %error, label %known
known:
  call void @Py_DecRef(ptr %read.now)
  br label %look
look:
  %now = phi ptr [ null, %settings ], [ %read.now, %known ]
  %plan = call ptr @irc_graph_find(ptr %program, ptr %arguments, i64 %count, ptr %data,
                                   ptr %stream.out, ptr %now)
  %none = icmp eq ptr %plan, null
  br i1 %none, label %unplanned, label %run
unplanned:
  %pending = call ptr @PyErr_Occurred()  ; an interrupt while Python was asked
  %undisturbed = icmp eq ptr %pending, null
  br i1 %undisturbed, label %other, label %error
run:
  %stream = load ptr, ptr %stream.out
  %busy.at.at = getelementptr i64, ptr %plan, i64 PLAN_BUSY
  %users = load ptr, ptr %busy.at.at
  %busy.at = getelementptr i64, ptr %users, i64 1
  %owner = word ptr, ptr %plan, i64 PLAN_OWNER
  %calls = word i64, ptr %plan, i64 PLAN_CALLS
  %calls.more = add i64 %calls, 1
  store i64 %calls.more, ptr %calls.at
  %code = call i32 @irc_graph_launch(ptr %table, ptr %plan, ptr %data, ptr %stream)
  %launched = icmp eq i32 %code, 0
  br i1 %launched, label %results, label %failed
failed:
  store i64 0, ptr %busy.at
  call void @Py_DecRef(ptr %owner)
  %code.wide = sext i32 %code to i64
  store i64 %code.wide, ptr %code.out
  %failed.at = getelementptr i64, ptr %program, i64 PROGRAM_FAILED
  %failure = load ptr, ptr %failed.at
  call void @irc_fail(ptr %runtime, ptr %state, ptr %failure, ptr @irc_int_kind, ptr %code.out,
                      i64 1)
  br label %error
results:
  %made = call ptr @irc_graph_results(ptr %program, ptr %plan, ptr %arguments, i64 %count,
                                      ptr %stream)
  store i64 0, ptr %busy.at
  call void @Py_DecRef(ptr %owner)
  store ptr %made, ptr %out
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %error, label %done
done:
  ret i32 0
other:
  ret i32 1
error:
  ret i32 2
}

define ptr @irc_graph_call(ptr %self, ptr %arguments, i64 %count) {
entry:
  %out = alloca ptr
  %words.at = getelementptr i8, ptr %self, i64 16
  %program = load ptr, ptr %words.at
  %code = call i32 @irc_graph_run(ptr %program, ptr %arguments, i64 %count, ptr %out)
  switch i32 %code, label %error [ i32 0, label %done i32 1, label %other ]
done:
  %result = load ptr, ptr %out
  ret ptr %result
other:
  %call.at = getelementptr i64, ptr %program, i64 PROGRAM_CALL
  %callable = load ptr, ptr %call.at
  %answer = call ptr @PyObject_Vectorcall(ptr %callable, ptr %arguments, i64 %count, ptr null)
  ret ptr %answer
error:
  ret ptr null
}

define ptr @irc_graph_call_list(ptr %self, ptr %list) {
entry:
  %out = alloca ptr
  %given = alloca ptr
  %words.at = getelementptr i8, ptr %self, i64 16
  %program = load ptr, ptr %words.at
  %runtime = load ptr, ptr %program
  %list.type = word ptr, ptr %runtime, i64 9
  %type.at = getelementptr i8, ptr %list, i64 8
  %type = load ptr, ptr %type.at
  %is.list = icmp eq ptr %type, %list.type
  br i1 %is.list, label %run, label %other
run:
  %count.at = getelementptr i8, ptr %list, i64 16
  %count = load i64, ptr %count.at
  %items.at = getelementptr i8, ptr %list, i64 24
  %items = load ptr, ptr %items.at
  %code = call i32 @irc_graph_run(ptr %program, ptr %items, i64 %count, ptr %out)
  switch i32 %code, label %error [ i32 0, label %done i32 1, label %other ]
done:
  %ignored = call i32 @PyList_SetSlice(ptr %list, i64 0, i64 %count, ptr null)
  %result = load ptr, ptr %out
  ret ptr %result
other:
  store ptr %list, ptr %given
  %call.at = getelementptr i64, ptr %program, i64 PROGRAM_CALL_LIST
  %callable = load ptr, ptr %call.at
  %answer = call ptr @PyObject_Vectorcall(ptr %callable, ptr %given, i64 1, ptr null)
  ret ptr %answer
error:
  ret ptr null
}
"""

EXPORTS = ("irc_graph_call", "irc_graph_call_list")
#: The functions of other support modules that it calls.
SUPPORT, GPU_SUPPORT = ("irc_call_python", "irc_fail"), (
    "irc_gpu_check_tensor", "irc_gpu_stream", "irc_gpu_told",
)  # fmt: skip


def support_text() -> str:
    """The module as LLVM text, without a target line."""
    text = "".join((_DECLARATIONS, _MATCH, _FIND, _RESULTS, _CALLS))
    kinds = ("PROGRAM_", "PLAN_", "ARGUMENT_", "RESULT_", "COPY_")
    words = {name: value for name, value in globals().items() if name.startswith(kinds)}
    words |= {
        "GET_CONTEXT": cuda.GET_CONTEXT, "CONTEXTS": cuda.CONTEXTS, "INDEX_MASK": cuda.INDEX_MASK,
        "IS_CAPTURING": cuda.IS_CAPTURING, "COPY_BYTES": cuda.COPY_BYTES,
        "GRAPH_LAUNCH": cuda.GRAPH_LAUNCH,
    }  # fmt: skip
    for name in sorted(words, key=len, reverse=True):
        text = text.replace(name, str(words[name]))
    return written_out(text)


__all__ = ["EXPORTS", "GPU_SUPPORT", "SUPPORT", "support_text"]
