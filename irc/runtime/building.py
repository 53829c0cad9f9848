"""From a module to an `Executable`: compiled, taken from the cache, or run in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch

from irc.cache.store import shared_cache
from irc.dialects.aten.trust import check_trust
from irc.ir.diagnostics import UserError
from irc.ir.passes import PassContext
from irc.options.options import Options
from irc.program.devices import gpu_of_arguments
from irc.runtime.build_program import (
    MAIN,
    BuildOptions,
    can_launch,
    compile_parts,
    count_program,
    load,
    make_executable,
    program_constants,
    program_counters,
    used_kernels,
)
from irc.runtime.executable import Executable
from irc.runtime.program_cache import (
    compiled_parts,
    folded_by,
    lookup,
    module_key,
    pass_counters,
    pipeline_key,
    store,
)
from irc.target import Target
from irc.target.attribute import settle


def build(
    module: Any,
    target: Target | str | None = None,
    options: Any = None,
    counters: Mapping[str, int] | None = None,
) -> Executable:
    """Compile and load `module`: a `host.func @main` after `plan-memory`, and its kernels.

    `target`: what for (None: for what the module carries, else for this machine); the module
    carries it afterwards. `counters` is what passes counted.
    Raises InvalidIR for a module on another level, UserError for what isn't supported, by name, for
    an operator that a text may not run (`irc.dialects.aten.trust`), and for code that this machine
    can't run.
    """
    chosen = BuildOptions.of(options)
    check_trust(module)
    made_for = settle(module, target)
    if made_for.is_gpu and chosen.check_bounds:
        raise UserError("check_bounds is of kernels for a CPU: it has no meaning for triton")
    if chosen.check_bounds:
        return _build_checked(module, counters or {})
    with on_its_gpu(module):
        parts = compiled_parts(module, chosen, counters)
        return load(parts, getattr(module, "resources", {}), chosen)


def _build_checked(module: Any, counted: Mapping[str, int]) -> Executable:
    """The host program in Python over kernels that check each access. Not kept in the cache."""
    from irc.program.read_host import read_host_program
    from irc.runtime.checked_kernels import CheckedKernels

    def executable_of(name: str) -> Executable:
        program = read_host_program(module, name)
        called = {each: executable_of(each) for each in program.programs}
        kernels = used_kernels(module, program, "cpu")
        constants = program_constants(program, getattr(module, "resources", {}))
        counters = program_counters(program, counted if name == MAIN else {}, called)
        table = CheckedKernels({op.sym_name: op for op in kernels})
        return make_executable(program, table, constants, None, counters, called)

    return count_program(executable_of(MAIN))


def compile_cached(
    module: Any,
    lower: Callable[[Any], PassContext | None],
    *,
    pipeline: str,
    options: Any = None,
) -> Executable:
    """The executable of a module of any level, which `lower` takes down in place when need be.

    `pipeline` is the text of the passes that `lower` runs. A hit of the module as it is runs no
    pass at all; where passes or patterns of the user's have a say, only code is taken from the
    cache.
    """
    with on_its_gpu(module):
        return _compile_cached(module, lower, pipeline, options)


def _compile_cached(
    module: Any, lower: Callable[[Any], PassContext | None], pipeline: str, options: Any
) -> Executable:
    chosen = BuildOptions.of(options)
    check_trust(module)
    settle(module)
    if chosen.check_bounds or not chosen.cache or shared_cache().unusable is not None:
        with _helpers(module, chosen):
            counters = pass_counters(lower(module))
            return build(module, None, chosen, counters)
    passes = pipeline_key(pipeline)
    if passes is None:
        with _helpers(module, chosen):
            counters = pass_counters(lower(module))
            compiled = compiled_parts(module, chosen, counters)
        return load(compiled, module.resources, chosen)
    key = module_key(module, chosen, "source", passes, repr(options))
    parts = None if _watches_passes(options) else lookup(key, module.resources)
    if parts is None:
        with _helpers(module, chosen):
            context = lower(module)
            parts = compile_parts(module, chosen, pass_counters(context))
        parts = attrs.evolve(parts, folded=folded_by(context))
        if context is None or not context.provisional:
            store(key, parts)
    return load(parts, module.resources, chosen)


def on_its_gpu(module: Any) -> contextlib.AbstractContextManager[Any]:
    """The GPU of a program's tensors as the current one: the self-tests of what is called natively
    take memory of that one alone. A thread begins with the first GPU as its own, which a process
    that works with another one (`torch.cuda.set_device`) has nothing to do with."""
    number = gpu_of_arguments(module, MAIN) if settle(module).is_gpu else None
    if number is None or number >= torch.cuda.device_count():  # it may be built for elsewhere
        return contextlib.nullcontext()
    return torch.cuda.device(number)


def _helpers(module: Any, options: BuildOptions) -> contextlib.AbstractContextManager[None]:
    """For a GPU's program, processes that get ready to compile kernels while passes run."""
    if not settle(module).is_gpu or not can_launch(options):
        return contextlib.nullcontext()
    from irc.codegen.triton import workers

    return workers.ready(workers.count(sum(1 for _ in module.walk())))


def _watches_passes(options: Any) -> bool:
    """Whether the options ask for something that only running passes can give."""
    if not isinstance(options, Options):
        return False
    return bool(options.check_semantics or options.remarks) or options.fuel >= 0


__all__ = ["build", "compile_cached", "on_its_gpu"]
