"""Support functions for products of matrices on a GPU, as LLVM text.

`irc_gpu_gemm(function, words, a, b, c, mode, kept) -> i32` and `irc_gpu_batched` with the same
arguments: call the function of cuBLAS that `function` (the words of `irc.boundary.cuda_blas`)
names, with the numbers of `irc.codegen.host.gpu_products` at `words`, its handle in `mode`. 0 where
it has launched the product, 1 where it hasn't: there is none, torch's settings ask for another one,
or the handle's function threw, which ends here.
`irc_gpu_gemm_single` and `irc_gpu_batched_single` are those of f32, whose mode torch sets.
`irc_gpu_biased(site, a, b, bias, c, stream, kept) -> i32`: likewise the product of a site, the
words of `irc.boundary.cuda_blas_lt`; 2 where the site has no record yet for these alignments and
this bias: `irc_gpu_alignments(a, b, bias, c) -> i64` says which record is to be loaded. Records are
never written to, so that no lock is needed.

`kept`: words of a program's call, in which handles stay from product to product, since to ask for
one takes a microsecond. They are null where something may have come between that uses the handle,
too, or where products of another dtype have: then torch's settings are read again as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irc.boundary import cuda_blas, cuda_blas_lt

#: C++'s own, in torch's process.
SYMBOLS = ("__gxx_personality_v0", "__cxa_begin_catch", "__cxa_end_catch")

#: Words of what is kept: cuBLAS's handle, whether its mode is known to be 0; that of cuBLASLt, and
#: the memory that it may use.
KEPT_HANDLE, KEPT_MODE, KEPT_LT, KEPT_WORKSPACE, KEPT_WORDS = range(5)

#: What was thrown ends here.
THROWN = """\
thrown:
  %pad = landingpad { ptr, i32 } catch ptr null
  %exception = extractvalue { ptr, i32 } %pad, 0
  %ignored = call ptr @__cxa_begin_catch(ptr %exception)
  call void @__cxa_end_catch()"""

#: What the functions share: numbers and the handle of a product, its code, what was thrown.
_SHARED = {
    "BEGIN": """\
entry:
  %one = alloca float
  %zero = alloca float
  store float 1.0, ptr %one
  store float 0.0, ptr %zero
  %kept.at = getelementptr i64, ptr %kept, i64 KEPT_PLACE
  %held = load ptr, ptr %kept.at
  %was.kept = icmp ne ptr %held, null
  br i1 %was.kept, label %look.there, label %ask.handle
look.there:
  %there = load ptr, ptr %function
  %not.there = icmp eq ptr %there, null
  br i1 %not.there, label %other, label %begin
ask.handle:
  %asked = call ptr @irc_gpu_blas_handle(ptr %function)
  %none = icmp eq ptr %asked, null
  br i1 %none, label %other, label %keep
keep:
  store ptr %asked, ptr %kept.at
  %mode.known.at = getelementptr i64, ptr %kept, i64 KEPT_MODE
  store i64 0, ptr %mode.known.at  ; who gives the handle sets its mode
  br label %begin
begin:
  %handle = phi ptr [ %held, %look.there ], [ %asked, %keep ]""",
    "ENDED": """\
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %other, label %launched
launched:
  ret i32 0
other:
  ret i32 1""",
    "THROWN": THROWN,
}

_HANDLE = """
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()

define ptr @irc_gpu_blas_handle(ptr %function) uwtable personality ptr @__gxx_personality_v0 {
entry:
  %call = load ptr, ptr %function
  %missing = icmp eq ptr %call, null
  br i1 %missing, label %other, label %read
read:
READ
  %context = invoke ptr %context.of() to label %ask unwind label %thrown
ask:
  %fixed = invoke zeroext i1 %deterministic.of(ptr %context) to label %free unwind label %thrown
free:
  br i1 %fixed, label %other, label %ask.library
ask.library:
  %library = invoke i8 %library.of(ptr %context) to label %which unwind label %thrown
which:
  %library.expected = trunc i64 %library.is to i8
  %same.library = icmp eq i8 %library, %library.expected
  br i1 %same.library, label %ask.spared, label %other
ask.spared:
  %spared = invoke i64 %spared.of(ptr %context) to label %how.many unwind label %thrown
how.many:
  %has.spared = and i64 %spared, 4294967296  ; an optional number: whether there is one
  %none.spared = icmp eq i64 %has.spared, 0
  br i1 %none.spared, label %ask.tuning, label %other
ask.tuning:
  %tuning = invoke ptr %tuning.of() to label %ask.tuned unwind label %thrown
ask.tuned:
  %tuned = invoke zeroext i1 %tuned.of(ptr %tuning) to label %plain unwind label %thrown
plain:
  br i1 %tuned, label %other, label %look.sums
look.sums:
  %any.sums = icmp eq ptr %sums.of, null
  br i1 %any.sums, label %look.narrow, label %ask.sums
ask.sums:
  %sums = invoke i8 %sums.of(ptr %context) to label %compare unwind label %thrown
compare:
  %sums.expected = trunc i64 %sums.are to i8
  %same.sums = icmp eq i8 %sums, %sums.expected
  br i1 %same.sums, label %look.narrow, label %other
look.narrow:
  %any.narrow = icmp eq ptr %narrow.of, null
  br i1 %any.narrow, label %ask.handle, label %ask.narrow
ask.narrow:
  %narrow = invoke zeroext i1 %narrow.of(ptr %context) to label %wide unwind label %thrown
wide:
  br i1 %narrow, label %other, label %ask.handle
ask.handle:
  %handle = invoke ptr %handle.of(i1 zeroext 1) to label %done unwind label %thrown
done:
  ret ptr %handle
other:
  ret ptr null
THROWN
  ret ptr null
}
"""

_READS = (
    ("ptr", "handle.of", "HANDLE"), ("ptr", "context.of", "CONTEXT"),
    ("ptr", "deterministic.of", "DETERMINISTIC"), ("ptr", "library.of", "LIBRARY"),
    ("i64", "library.is", "LIBRARY_IS"), ("ptr", "sums.of", "SUMS"),
    ("i64", "sums.are", "SUMS_ARE"), ("ptr", "narrow.of", "NARROW"),
    ("ptr", "spared.of", "SPARED"), ("ptr", "tuning.of", "TUNING"), ("ptr", "tuned.of", "TUNED"),
)  # fmt: skip

_PRODUCT = """
define i32 @irc_gpu_NAME(ptr %function, ptr %words, ptr %a, ptr %b, ptr %c, i64 %mode, ptr %kept) {
BEGIN
  %call = load ptr, ptr %function
  %element.at = getelementptr i64, ptr %function, i64 ELEMENT
  %element.wide = load i64, ptr %element.at
  %element = trunc i64 %element.wide to i32
READ
CALL
ENDED
}
"""

_SHAPE = """%code = call i32 %call(ptr %handle, i32 %first, i32 %second, i32 %m, i32 %n, i32 %k,
      ptr %one, """
_WITH_MODE = """\
  %mode.at = getelementptr i64, ptr %function, i64 SET_MODE
  %set.mode = load ptr, ptr %mode.at
  %mode.code = trunc i64 %mode to i32
  %known = word i64, ptr %kept, i64 KEPT_MODE
  %is.zero = icmp ne i64 %known, 0
  %plain = icmp eq i64 %mode, 0
  %is.set = and i1 %is.zero, %plain
  br i1 %is.set, label %run, label %set
set:
  %ignored.set = call i32 %set.mode(ptr %handle, i32 %mode.code)
  br label %run
run:
"""
_BACK = """
  br i1 %is.set, label %ran, label %reset
reset:
  %ignored.reset = call i32 %set.mode(ptr %handle, i32 0)
  store i64 1, ptr %known.at
  br label %ran
ran:"""
#: 68 is CUBLAS_COMPUTE_32F, 99 CUBLAS_GEMM_DEFAULT_TENSOR_OP.
_CALLS = {
    "gemm": f"""{_WITH_MODE}  {_SHAPE}ptr %a, i32 %element, i32 %lda, ptr %b, i32 %element,
      i32 %ldb, ptr %zero, ptr %c, i32 %element, i32 %ldc, i32 68, i32 99){_BACK}""",
    "gemm_single": f"""  {_SHAPE}ptr %a, i32 %lda, ptr %b, i32 %ldb, ptr %zero, ptr %c,
      i32 %ldc)""",
    "batched": f"""  {_SHAPE}ptr %a, i32 %element, i32 %lda, i64 %stride.a, ptr %b, i32 %element,
      i32 %ldb, i64 %stride.b, ptr %zero, ptr %c, i32 %element, i32 %ldc, i64 %stride.c,
      i32 %batches, i32 68, i32 99)""",
    "batched_single": f"""  {_SHAPE}ptr %a, i32 %lda, i64 %stride.a, ptr %b, i32 %ldb,
      i64 %stride.b, ptr %zero, ptr %c, i32 %ldc, i64 %stride.c, i32 %batches)""",
}

_BIASED = """
declare i64 @llvm.cttz.i64(i64, i1)

define i64 @irc_gpu_alignments(ptr %a, ptr %b, ptr %bias, ptr %c) {
entry:
KEY
  ret i64 %key
}

define i32 @irc_gpu_biased(ptr %function, ptr %a, ptr %b, ptr %bias, ptr %c, ptr %stream, ptr %kept)
    uwtable personality ptr @__gxx_personality_v0 {
BEGIN
  %record.at = getelementptr i64, ptr %function, i64 RECORD
  %record = load atomic ptr, ptr %record.at acquire, align 8
  %unloaded = icmp eq ptr %record, null
  br i1 %unloaded, label %load, label %look
look:
  %key = call i64 @irc_gpu_alignments(ptr %a, ptr %b, ptr %bias, ptr %c)
READ
  %same.key = icmp eq i64 %alignments, %key
  %same.bias = icmp eq ptr %its.bias, %bias
  %same = and i1 %same.key, %same.bias
  br i1 %same, label %ready, label %load
load:
  ret i32 2
ready:
  %no.algorithm = icmp eq ptr %algorithm, null
  br i1 %no.algorithm, label %other, label %set
set:
  %small = icmp eq i64 %needs, 0
  br i1 %small, label %call, label %room
room:
  %room.at = getelementptr i64, ptr %kept, i64 KEPT_WORKSPACE
  %room.held = load ptr, ptr %room.at
  %has.room = icmp ne ptr %room.held, null
  br i1 %has.room, label %call, label %fetch
fetch:
  %workspace.at = getelementptr i64, ptr %function, i64 WORKSPACE
  %workspace.of = load ptr, ptr %workspace.at
  %given = invoke ptr %workspace.of() to label %note unwind label %thrown
note:
  store ptr %given, ptr %room.at
  br label %call
call:
  %workspace = phi ptr [ null, %set ], [ %room.held, %room ], [ %given, %note ]
  %matmul = load ptr, ptr %function
  %code = call i32 %matmul(ptr %handle, ptr %product, ptr %one, ptr %a, ptr %first, ptr %b,
      ptr %second, ptr %zero, ptr %c, ptr %result, ptr %c, ptr %result, ptr %algorithm,
      ptr %workspace, i64 %needs, ptr %stream)
ENDED
THROWN
  ret i32 1
}
"""

_RECORD_READS = (
    ("i64", "alignments", "ALIGNMENTS"), ("ptr", "its.bias", "BIAS"),
    ("ptr", "product", "PRODUCT"), ("ptr", "first", "FIRST"), ("ptr", "second", "SECOND"),
    ("ptr", "result", "RESULT"), ("ptr", "algorithm", "ALGORITHM"), ("i64", "needs", "NEEDS"),
)  # fmt: skip


def _biased() -> str:
    """The functions of a site: a key has the alignments of a, b, c and the bias, and a bit."""
    lines, key = [], str(1 << 4 * cuda_blas_lt.ALIGNMENT_BITS)
    for i, name in enumerate(("a", "b", "c", "bias")):
        lines += [
            f"  %{name}.address = ptrtoint ptr %{name} to i64",
            f"  %{name}.most = or i64 %{name}.address, {1 << cuda_blas_lt.LARGEST_ALIGNMENT}",
            f"  %{name}.zeros = call i64 @llvm.cttz.i64(i64 %{name}.most, i1 true)",
            f"  %{name}.bits = shl i64 %{name}.zeros, {i * cuda_blas_lt.ALIGNMENT_BITS}",
            f"  %{'key' if name == 'bias' else name + '.key'} = or i64 {key}, %{name}.bits",
        ]
        key = f"%{name}.key"
    reads = reads_of("%record", cuda_blas_lt, _RECORD_READS)
    text = _BIASED.replace("KEY", "\n".join(lines)).replace("READ", reads)
    for word in ("RECORD", "WORKSPACE"):
        text = text.replace(f"i64 {word}", f"i64 {getattr(cuda_blas_lt, word)}")
    return text


_NUMBERS = ("first", "second", "m", "n", "k", "lda", "ldb", "ldc")
_STEPS = ("stride.a", "stride.b", "stride.c", "batches")
SIGNATURES = {
    **{f"irc_gpu_{name}": ("i32", (*("ptr",) * 5, "i64", "ptr")) for name in _CALLS},
    "irc_gpu_alignments": ("i64", ("ptr",) * 4),
    "irc_gpu_biased": ("i32", ("ptr",) * 7),
}


def _numbers(name: str) -> str:
    """Loads of a product's numbers: those of 32 bits are i32."""
    lines = []
    for word, number in enumerate(_NUMBERS + _STEPS * name.startswith("batched")):
        type_ = "i64" if number.startswith("stride") else "i32"
        lines.append(f"  %{number}.at = getelementptr i64, ptr %words, i64 {word}")
        lines.append(f"  %{number} = load {type_}, ptr %{number}.at")
    return "\n".join(lines)


def reads_of(words: str, numbers: Any, reads: Iterable[tuple[str, str, str]]) -> str:
    """Lines that read words from where `words` points: each by its type, the name of its value and
    that of its place in `numbers`. Without a type only its address is taken, as `name.at`."""
    lines = []
    for type_, name, word in reads:
        place = getattr(numbers, word)
        lines.append(f"  %{name}.at = getelementptr i64, ptr {words}, i64 {place}")
        if type_:
            lines.append(f"  %{name} = load {type_}, ptr %{name}.at")
    return "\n".join(lines)


def products_text() -> str:
    """The functions as LLVM text."""
    text = _HANDLE.replace("READ", reads_of("%function", cuda_blas, _READS))
    for name, call in _CALLS.items():
        product = _PRODUCT.replace("NAME", name).replace("CALL", call)
        text += _with_shared(product.replace("READ", _numbers(name)), KEPT_HANDLE)
    for word in ("ELEMENT", "SET_MODE"):
        text = text.replace(f"i64 {word}", f"i64 {getattr(cuda_blas, word)}")
    text += _with_shared(_biased(), KEPT_LT)
    for name in ("KEPT_MODE", "KEPT_WORKSPACE"):
        text = text.replace(f"i64 {name}", f"i64 {globals()[name]}")
    return _with_shared(text, KEPT_HANDLE)


def _with_shared(text: str, place: int) -> str:
    """A function's text with what it shares with the others; `place`: where its handle is kept."""
    for name, piece in _SHARED.items():
        text = text.replace(name, piece)
    return text.replace("KEPT_PLACE", str(place))


__all__ = ["KEPT_WORDS", "SIGNATURES", "SYMBOLS", "THROWN", "products_text", "reads_of"]
