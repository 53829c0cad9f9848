"""A support function for random numbers of a GPU, as LLVM text.

`irc_gpu_draw(words, increment, out, stream) -> i32`: moves the generator of `words`
(`irc.boundary.cuda_draws`) on and has its state before, an i64[2], written to a GPU's memory at
`out` on a stream of the current device. 0 where that is launched, 1 where it isn't: there is no
function, or it threw, which ends here.
"""

from __future__ import annotations

from irc.boundary import cuda_draws
from irc.codegen.host.support_products import reads_of

_TEXT = """
define i32 @irc_gpu_draw(ptr %words, i64 %increment, ptr %out, ptr %stream) uwtable
    personality ptr @__gxx_personality_v0 {
entry:
  %state = alloca [4 x i64], align 16
  %state.of = load ptr, ptr %words
  %missing = icmp eq ptr %state.of, null
  br i1 %missing, label %other, label %read
read:
READ
  %locked = call i32 %lock(ptr %mutex)
  invoke void %state.of(ptr sret([4 x i64]) %state, ptr %generator, i64 %increment)
      to label %told unwind label %thrown
told:
  %unlocked = call i32 %unlock(ptr %mutex)
  %second = getelementptr i64, ptr %out, i64 1
  invoke void %unpack(ptr byval([4 x i64]) align 8 %state, ptr %out, ptr %second, ptr %stream)
      to label %done unwind label %failed
done:
  ret i32 0
other:
  ret i32 1
thrown:
  %pad = landingpad { ptr, i32 } catch ptr null
  %ignored.lock = call i32 %unlock(ptr %mutex)
  br label %caught
failed:
  %pad.failed = landingpad { ptr, i32 } catch ptr null
  br label %caught
caught:
  %both = phi { ptr, i32 } [ %pad, %thrown ], [ %pad.failed, %failed ]
  %exception = extractvalue { ptr, i32 } %both, 0
  %ignored = call ptr @__cxa_begin_catch(ptr %exception)
  call void @__cxa_end_catch()
  ret i32 1
}
"""

_READS = tuple(("ptr", name, name.upper())
               for name in ("unpack", "generator", "mutex", "lock", "unlock"))  # fmt: skip
SIGNATURES = {"irc_gpu_draw": ("i32", ("ptr", "i64", "ptr", "ptr"))}


def draws_text() -> str:
    """The function as LLVM text, which stands behind that of the products."""
    return _TEXT.replace("READ", reads_of("%words", cuda_draws, _READS))


__all__ = ["SIGNATURES", "draws_text"]
