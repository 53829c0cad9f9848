"""One kernel through Triton, in this process or as a program that another one asks.

    facts, cubin = compile_kernel(function, Request(...))
    python irc/codegen/triton/compiling.py      # requests on its input, answers on its output

As a program it imports nothing of irc, and so no torch: it is ready after what importing Triton
takes. A request is a line of JSON, an answer a line of JSON with the cubin's bytes behind it
(`irc.codegen.triton.workers`).
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules have names of others'

import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import linecache
import os
import re
import threading
from collections.abc import Mapping
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

_ENTRY = re.compile(r"\.entry\s+[\w$]+\s*\(([^)]*)\)")
_MODULES_KEPT = 16  # of the programs that one process compiles kernels of
#: What of Triton's metadata a launch depends on.
_FACTS = ("name", "num_warps", "shared", "num_ctas", "cluster_dims", "launch_cooperative_grid",
          "launch_pdl", "global_scratch_size", "profile_scratch_size")  # fmt: skip


class _Memory(importlib.abc.InspectLoader):
    """Loads a module from a text that no file holds, so that nobody can put another in its place.

    Triton and tracebacks find its lines in `linecache`, which keeps what has no time.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source, self.filename = source, f"<{name}>"
        lines = source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(source), None, lines, self.filename)

    def get_source(self, fullname: str) -> str:
        return self.source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.source, self.filename)


def imported(source: str, name: str) -> ModuleType:
    """The module of an emitted source. In Triton's interpreter, which can't run libdevice, the
    functions of libdevice that helpers call are Triton's own."""
    loader = _Memory(source, name)
    module: Any = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, loader))
    loader.exec_module(module)
    if os.environ.get("TRITON_INTERPRET") == "1" and hasattr(module, "libdevice"):
        # Looked up at each call: the interpreter puts its own exp there while a kernel runs.
        module.libdevice = SimpleNamespace(exp=lambda x: module.tl.exp(x))
    if os.environ.get("TRITON_INTERPRET") == "1" and hasattr(module, "irc_exp2_rough_f32"):
        module.irc_exp2_rough_f32 = lambda x: module.tl.exp2(x)
    if os.environ.get("TRITON_INTERPRET") == "1" and hasattr(module, "irc_inverse_rough_f32"):
        module.irc_inverse_rough_f32 = lambda x: 1.0 / x
    if os.environ.get("TRITON_INTERPRET") == "1":
        for name in [n for n in vars(module) if "imum_packed_" in n]:
            extreme = functools.partial(_interpreted_extreme, module.tl, name.split("_")[1])
            setattr(module, name, extreme)
    if os.environ.get("TRITON_INTERPRET") == "1":
        for name in [n for n in vars(module) if n.startswith(("irc_dot_bf16", "irc_dot_f8"))]:
            setattr(module, name, lambda a, b, c: _interpreted_dot(module.tl, a, b, c))
    if os.environ.get("TRITON_INTERPRET") == "1":
        for name in [n for n in vars(module) if n.startswith("irc_launch_")]:
            setattr(module, name, lambda: None)
    return module


def _interpreted_extreme(tl: Any, function: str, x: Any, y: Any) -> Any:
    """A maximum or minimum of 16-bit floats without the machine's instruction."""
    wide = [operand.to(tl.float32) for operand in (x, y)]
    return getattr(tl, function)(*wide, propagate_nan=tl.PropagateNan.ALL).to(x.dtype)


def _interpreted_dot(tl: Any, a: Any, b: Any, c: Any) -> Any:
    """A product of floats that Triton's interpreter takes for integers: of f32, which has them."""
    return tl.dot(a.to(tl.float32), b.to(tl.float32), c, input_precision="ieee")


def supported_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with contraction on and flushing of denormals off, where this Triton knows them."""
    from triton.backends.nvidia.compiler import CUDAOptions

    asked = {**options, "enable_fp_fusion": True, "enable_reflect_ftz": False}
    known = getattr(CUDAOptions, "__dataclass_fields__", {})
    return {name: value for name, value in asked.items() if name in known}


_READING = threading.RLock()


@functools.cache
def _source_class() -> Any:
    """What Triton compiles, read by one thread at a time: Python 3.11 counts how deep `ast.parse`
    is for all threads together, and fails with a SystemError where two meet. Reading holds the
    interpreter's lock anyway; what takes the time comes after it."""
    from triton.compiler import ASTSource

    class Source(ASTSource):  # type: ignore[misc]
        def hash(self) -> Any:
            with _READING:
                return super().hash()

        def make_ir(self, *arguments: Any, **keywords: Any) -> Any:
            with _READING:
                return super().make_ir(*arguments, **keywords)

    return Source


def compile_kernel(
    function: Any,
    signature: Mapping[str, str],
    divisible: list[int],
    target: tuple[int, int],
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], bytes]:
    """Facts of a compiled kernel, and its machine code. `divisible`: parameters that are multiples
    of 16; `target`: capability and threads of a warp. `entry` among the facts: its parameters in
    PTX, "" where there are none."""
    import triton
    from triton.backends.compiler import GPUTarget

    hints = {(position,): [["tt.divisibility", 16]] for position in divisible}
    compiled = triton.compile(
        _source_class()(function, dict(signature), {}, hints),
        target=GPUTarget("cuda", *target), options=supported_options(options),
    )  # fmt: skip
    metadata = compiled.metadata._asdict()
    facts = {name: metadata[name] for name in _FACTS if name in metadata}
    entry = _ENTRY.search(compiled.asm["ptx"])
    return {**facts, "entry": "" if entry is None else entry[0]}, compiled.asm["cubin"]


def _answer(
    request: dict[str, Any], modules: dict[str, ModuleType]
) -> tuple[dict[str, Any], bytes]:
    name = request["module"]
    if name not in modules:
        modules[name] = imported(request["source"], name)
    function = getattr(modules[name], request["function"])
    capability, warp = request["target"]
    return compile_kernel(
        function, request["signature"], request["divisible"], (capability, warp),
        request["options"],
    )  # fmt: skip


_FIRST = """import triton
import triton.language as tl


@triton.jit
def first(p0, p1, n2):
    v0 = tl.arange(0, 64)
    v1 = tl.load(p0 + v0, mask=v0 < n2, other=0).to(tl.float32)
    tl.store(p1 + v0, v1 + tl.reduce(v1, 0, tl.standard._sum_combine))
"""
#: The request for a kernel that no program has.
FIRST = {
    "source": _FIRST, "module": "irc_first", "function": "first", "divisible": [0, 1],
    "target": [90, 32], "signature": {"p0": "*bf16", "p1": "*fp32", "n2": "i32"},
    "options": {"num_warps": 4, "num_stages": 1},
}  # fmt: skip


def _get_ready() -> None:
    """Load what every compile needs, before it is asked for: Triton, what it loads at the first
    kernel, and the assembler's version.

    Triton names its installation by all of its files, half a second of reading, to look into its
    own cache. irc has asked its cache before: this process looks nowhere, under a name that no
    other has.
    """
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    import triton
    from triton.compiler import compiler

    for place in (triton.runtime.cache, compiler):
        if hasattr(place, "triton_key"):
            place.triton_key = lambda: f"irc-{os.getpid()}"
    with contextlib.suppress(Exception):  # each request tells its own
        _answer(FIRST, {})


def _set_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def serve() -> None:
    """Answer the requests on the input until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Triton prints is no answer
    _get_ready()
    modules: dict[str, ModuleType] = {}
    for line in sys.stdin.buffer:
        if len(modules) >= _MODULES_KEPT:
            modules.clear()
        try:
            request = json.loads(line)
            _set_environment(request["environment"])
            facts, code = _answer(request, modules)
            head = {"facts": facts, "bytes": len(code)}
        except Exception as error:  # the asker compiles it itself, and tells
            head, code = {"error": str(error), "bytes": 0}, b""
        answers.write(json.dumps(head).encode() + b"\n" + code)
        answers.flush()


if __name__ == "__main__":
    serve()
