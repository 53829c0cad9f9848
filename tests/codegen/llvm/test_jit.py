"""Objects are compiled, linked, resolved and refused as promised."""

from __future__ import annotations

import ctypes
import threading

import pytest

from irc.codegen.llvm import jit
from irc.target.cpu import TargetFeatures

ADD = "define i64 @add{0}(i64 %a, i64 %b) {{\n  %c = add i64 %a, %b\n  ret i64 %c\n}}\n"
CALLS = """
declare double @{0}(double)
define double @twice(double %x) {{
  %y = call double @{0}(double %x)
  %z = fadd double %y, %y
  ret double %z
}}
"""


def compiled(text: str) -> bytes:
    return jit.compile_module(text, TargetFeatures.host())


def test_addresses_are_found_at_once_or_later():
    data = compiled("".join(ADD.format(i) for i in range(3)))
    eager = jit.load_object(data, exports=["add0", "add2"])
    lazy = jit.load_object(data)
    for loaded, name in ((eager, "add2"), (eager, "add1"), (lazy, "add0")):
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        assert function(loaded.address(name))(40, 2) == 42
        assert loaded.address(name) == loaded.address(name)


def test_undefined_names_resolve_to_libm_and_to_given_symbols():
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    library = jit.load_object(compiled(CALLS.format("cbrt")))
    assert prototype(library.address("twice"))(27.0) == pytest.approx(6.0)
    triple = prototype(lambda x: 3 * x)
    address = ctypes.cast(triple, ctypes.c_void_p).value
    given = jit.load_object(compiled(CALLS.format("irc_given")), symbols={"irc_given": address})
    assert prototype(given.address("twice"))(5.0) == 30.0


def test_refusals_say_what_is_wrong():
    with pytest.raises(jit.JitError, match="does not accept"):
        compiled("define i64 @f() { ret i32 0 }")
    with pytest.raises(jit.JitError, match="missing"):
        jit.load_object(compiled(ADD.format("")), exports=["missing"])
    with pytest.raises(KeyError, match="missing"):
        jit.load_object(compiled(ADD.format(""))).address("missing")
    with pytest.raises(jit.JitError, match="undefined name.*twice"):
        jit.load_object(compiled(CALLS.format("irc_nowhere")), exports=["twice"])
    with pytest.raises(jit.JitError, match="link"):
        jit.load_object(compiled(ADD.format(""))[:200], exports=["add"])
    with pytest.raises(ValueError, match="no pass named"):
        jit.compile_module(ADD.format(""), TargetFeatures.host(), passes=["make-fast"])


def test_passes_run_when_asked():
    helper = "define internal i64 @h(i64 %a) alwaysinline {\n  ret i64 %a\n}\n"
    caller = "define i64 @f(i64 %a) {\n  %r = call i64 @h(i64 %a)\n  ret i64 %r\n}\n"
    features = TargetFeatures.host()
    inlined = jit.module_assembly(helper + caller, features, passes=["always-inliner"])
    assert "h:" not in inlined.split()


def test_threads_compile_and_load_together():
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                name = f"{number}_{step}"
                loaded = jit.load_object(compiled(ADD.format(name)), exports=[f"add{name}"])
                assert loaded.address(f"add{name}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_targets_differ_in_key_and_width():
    targets = [TargetFeatures.avx2(), TargetFeatures.neon(), TargetFeatures.generic()]
    assert len({t.cache_key() for t in targets}) >= 2
    assert TargetFeatures.avx2().lanes(32) == 8 and TargetFeatures.neon().lanes(64) == 2
    assert TargetFeatures.host() is TargetFeatures.host()
