"""From LLVM IR to object code, and from object code to addresses in this process.

    data = compile_module(text, TargetFeatures.host())
    loaded = load_object(data)
    address = loaded.address("kernel_0")

Objects are linked by one LLJIT per process (measured on Zen 4, llvmlite 0.50: an object of 48
kernels loads and resolves in 0.7 ms, against 1.0 ms for a new MCJIT engine; one kernel in 0.2 ms
against 0.85 ms).  llvmlite takes one process-wide lock around each call into LLVM, so any thread
may call these functions; compiling does not run in parallel within a process.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irc.codegen.llvm.target import create_target_machine
from irc.target.cpu import TargetFeatures, initialize_llvm

_library_numbers = itertools.count()
_lock = threading.RLock()
_visible_libraries: dict[str, ctypes.CDLL] = {}


class JitError(RuntimeError):
    """LLVM refused a module that the generator made, or a symbol stayed undefined."""


@functools.lru_cache(maxsize=16)
def _target_machine(features: TargetFeatures, opt_level: int) -> Any:
    return create_target_machine(features, opt_level)


def _parse(module: Any, features: TargetFeatures, opt_level: int) -> tuple[Any, Any]:
    """The verified LLVM module of `module` for the machine, and the machine."""
    llvm = initialize_llvm()
    machine = _target_machine(features, opt_level)
    try:
        # A context of its own: types and constants of a module are freed with it.
        parsed = llvm.parse_assembly(str(module), context=llvm.create_context())
        parsed.triple = machine.triple
        parsed.data_layout = str(machine.target_data)
        parsed.verify()
    except RuntimeError as error:
        raise JitError(f"LLVM does not accept a generated module: {error}") from error
    return parsed, machine


def _run_passes(module: Any, machine: Any, passes: Sequence[str]) -> None:
    llvm = initialize_llvm()
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        add = getattr(manager, f"add_{name.replace('-', '_')}_pass", None)
        if add is None:
            raise ValueError(f"llvmlite has no pass named {name!r}")
        add()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    manager.run(module, llvm.create_pass_builder(machine, options))


def compile_module(
    module: Any, features: TargetFeatures, *, opt_level: int = 1, passes: Sequence[str] = ()
) -> bytes:
    """Object code of `module`: LLVM IR as text, or a `llvmlite.ir.Module`.

    `opt_level` is the code generator's; `passes` names IR passes as llvmlite does
    (`"always-inliner"`, `"instruction-combine"`), run in the given order, none by default.
    Raises JitError with LLVM's message when the IR does not parse or verify.
    """
    with _lock:
        parsed, machine = _parse(module, features, opt_level)
        if passes:
            _run_passes(parsed, machine, passes)
        return machine.emit_object(parsed)


def module_assembly(
    module: Any, features: TargetFeatures, *, opt_level: int = 1, passes: Sequence[str] = ()
) -> str:
    """The assembly text of what `compile_module` with the same arguments makes."""
    with _lock:
        parsed, machine = _parse(module, features, opt_level)
        if passes:
            _run_passes(parsed, machine, passes)
        return machine.emit_assembly(parsed)


@functools.cache
def _process_jit() -> Any:
    """The LLJIT of this process; never disposed of, so objects may die after it at exit."""
    llvm = initialize_llvm()
    # JITLink places the sections of one object in one block. The older linker asks for each
    # section by itself; in a process with much memory they may lie over 2 GiB apart, and then it
    # aborts the process (seen with large models).
    machine = create_target_machine(TargetFeatures.host())
    jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
    jit._owned = True  # in llvmlite: by somebody else, so closing does not dispose
    return jit


def make_visible(path: str) -> ctypes.CDLL:
    """Let objects loaded from now on refer to the symbols of the shared library at `path`.

    A library that is already loaded privately is made global, not loaded twice.  Raises OSError
    when it can't be loaded.
    """
    with _lock:
        library = _visible_libraries.get(path)
        if library is None:
            library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            _visible_libraries[path] = library
        return library


@functools.cache
def make_torch_visible() -> None:
    """Make torch's CPU library (`aoti_torch_*`, `Sleef_*`) visible; imports torch."""
    import pathlib

    import torch

    folder = pathlib.Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).exists():
            make_visible(str(folder / name))
            return
    raise OSError(f"no libtorch_cpu in {folder}")


class LoadedObject:
    """Linked object code; its addresses are valid for as long as this object lives."""

    def __init__(self, tracker: Any, name: str) -> None:
        self._tracker = tracker
        self._name = name
        self._addresses: dict[str, tuple[int, Any]] = {}

    def address(self, symbol: str) -> int:
        """The address of the exported `symbol`.  Raises KeyError when there is no such symbol."""
        with _lock:
            entry = self._addresses.get(symbol)
            if entry is None:
                try:
                    tracker = _process_jit().lookup(self._name, symbol)
                except RuntimeError as error:
                    raise KeyError(f"{symbol}: {error}") from error
                entry = self._addresses[symbol] = (tracker[symbol], tracker)
            return entry[0]


def load_object(
    data: bytes, *, exports: Iterable[str] = (), symbols: Mapping[str, int] | None = None
) -> LoadedObject:
    """Link the object code `data` into this process.

    Undefined names resolve first to `symbols` (name to address), then to whatever the process
    sees globally: libc, libm, and libraries given to `make_visible`.  With `exports` named, they
    are resolved at once (the fast way for many) and a missing symbol raises JitError here;
    otherwise at the first `address`.  `data` must be object code made for this machine: LLVM
    checks its form, not its meaning.
    """
    llvm = initialize_llvm()
    names = list(exports)
    with _lock:
        library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        for name, address in (symbols or {}).items():
            library.import_symbol(name, address)
        for name in names:
            library.export_symbol(name)
        number = f"irc.{next(_library_numbers)}"
        try:
            tracker = library.link(_process_jit(), number)
        except RuntimeError as error:
            # LLVM says which exports failed, and why only on stderr.
            raise JitError(f"can't link object code (undefined name?): {error}") from error
        loaded = LoadedObject(tracker, number)
        for name in names:
            loaded._addresses[name] = (tracker[name], tracker)
        return loaded
