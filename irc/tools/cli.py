"""The `irc` command: run a program file, on any level; find what makes one wrong; look after the
cache on disk."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import IRCError, UserError
from irc.tools import bisect_command, cache_command
from irc.tools.files import (
    guarded,
    load_arguments,
    load_file,
    parse_sizes,
    read_text,
    resources_of,
)
from irc.tools.options import ArgumentParser


def make_parser() -> ArgumentParser:
    """The argument parser of the command and its subcommands."""
    parser = ArgumentParser(prog="irc", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a function of a program file", allow_abbrev=False)
    run.add_argument("file", help="the program (-: standard input)")
    run.add_argument("--function", default="main", help="which function (default: main)")
    run.add_argument("--mode", choices=("exact", "real"),
                     help="the interpreter's floats: as typed, or all f64")  # fmt: skip
    run.add_argument("--compiled", action="store_true",
                     help="compile @main for this CPU (default: interpret)")  # fmt: skip
    run.add_argument("--check-bounds", action="store_true",
                     help="with --compiled: check each access of the kernels (slow)")  # fmt: skip
    run.add_argument("--size", action="append", default=[], metavar="s0=7",
                     help="the value of a symbol (default: near its hint)")  # fmt: skip
    run.add_argument("--seed", type=int, help="seed of the random arguments (default: 0)")
    run.add_argument("--load", action="append", default=[], metavar="FILE",
                     help="FILE.py: passes and dialects; FILE.pt: arguments saved with "
                     "torch.save or --save")  # fmt: skip
    run.add_argument("--save", metavar="FILE.pt", help="save arguments and results")
    run.add_argument("--pass-pipeline", help="run these passes first")
    run.add_argument("--resources", metavar="FILE",
                     help="the program's large constants (default: PROGRAM.resources)")  # fmt: skip
    run.add_argument("--trust", action="store_true",
                     help="run operators that reach outside: files, extensions")  # fmt: skip
    run.add_argument("--debug", action="store_true", help="show Python tracebacks")
    bisect_command.add_parser(commands)
    cache_command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code (0: fine, 1: an error was printed)."""
    words = list(sys.argv[1:] if argv is None else argv)
    return guarded("irc", "--debug" in words, lambda: run_command(parse_words(words)))


def parse_words(words: Sequence[str]) -> argparse.Namespace:
    """The words of a command line; those behind `--` are a script's. Raises UserError."""
    at = words.index("--") if "--" in words else len(words)
    arguments = make_parser().parse_args(words[:at])
    if words[at + 1 :]:
        if arguments.command != "bisect":
            raise UserError("only irc bisect FILE.py takes words behind --")
        arguments.words = words[at + 1 :]
    return arguments


def run_command(arguments: argparse.Namespace) -> int:
    """Do what the parsed words say; gives the exit code."""
    if arguments.command == "cache":
        return cache_command.run_cache(arguments)
    if arguments.command == "bisect":
        return bisect_command.run_bisect(arguments)
    return run_file(arguments)


def run_file(arguments: argparse.Namespace) -> int:
    """Run a function on random or saved arguments and print its results."""
    text = read_text(arguments.file)
    name = "<stdin>" if arguments.file == "-" else arguments.file
    try:
        return _run_text(name, text, arguments)
    except IRCError as error:
        error.attach_source(name, text)
        raise


def _run_text(name: str, text: str, arguments: argparse.Namespace) -> int:
    from irc.ir.text.parser import parse
    from irc.ir.verifier import verify
    from irc.validation.inputs import random_arguments

    files = [Path(path) for path in arguments.load]
    saved = [path for path in files if path.suffix != ".py"]
    check_words(arguments, saved)
    for path in files:
        if path not in saved:
            load_file(path)
    resources = resources_of(arguments.file, text, arguments.resources)
    module = parse(text, filename=name, resources=resources, trusted=arguments.trust)
    verify(module)
    if arguments.pass_pipeline:
        from irc.ir.passes import PassManager

        PassManager.parse(arguments.pass_pipeline).run(module)
    function = module.lookup(arguments.function)
    if function is None:
        raise UserError(f"{arguments.file} has no function '{arguments.function}'")
    if saved:
        inputs = load_arguments(saved[0])
    else:
        inputs = random_arguments(function, parse_sizes(arguments.size), arguments.seed or 0)
    checks = arguments.check_bounds
    compiled = arguments.compiled
    call = compiled_call(module, checks) if compiled else interpreted_call(module, arguments)
    results = guarded_call(call, inputs)
    for number, content in enumerate(results):
        print(f"result {number}: {describe(content)}")
    if arguments.save:
        import torch

        torch.save({"arguments": inputs, "results": results}, arguments.save)
    return 0


def check_words(arguments: argparse.Namespace, saved: Sequence[Path]) -> None:
    """Raise UserError for words that would do nothing with the others."""
    if len(saved) > 1:
        raise UserError(f"--load {saved[1]}: the arguments come from {saved[0]} already")
    if saved and arguments.size:
        raise UserError(f"--size does nothing with the arguments of --load {saved[0]}")
    if saved and arguments.seed is not None:
        raise UserError(f"--seed does nothing with the arguments of --load {saved[0]}")
    if arguments.compiled and arguments.mode is not None:
        raise UserError("--mode is the interpreter's: it does nothing with --compiled")
    if arguments.check_bounds and not arguments.compiled:
        raise UserError("--check-bounds is of --compiled: the interpreter checks in any case")
    if arguments.compiled and arguments.function != "main":
        raise UserError("--compiled runs @main only")


def interpreted_call(module: Any, arguments: argparse.Namespace) -> Callable[..., Any]:
    """The chosen function in the interpreter."""
    from irc.interp import run

    mode = arguments.mode or "exact"
    return functools.partial(run, module, mode=mode, function=arguments.function)


def compiled_call(module: Any, check_bounds: bool = False) -> Callable[..., Any]:
    """@main of a module on any level (changed in place), compiled for this CPU."""
    from irc.ir.passes import PassManager
    from irc.runtime import build

    PassManager.parse("lower-to-cpu", verify="end").run(module)
    return build(module, options={"check_bounds": True} if check_bounds else None)


# What a program's own operators and checks raise, as in eager mode.
_RAISED = (
    RuntimeError, IndexError, ValueError, TypeError, ArithmeticError, MemoryError,
    NotImplementedError,
)  # fmt: skip


def guarded_call(call: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """The results of a call; what the program raises is an error of the program, not of irc."""
    try:
        return list(call(*inputs))
    except IRCError:
        raise
    except _RAISED as error:
        notes = tuple(getattr(error, "__notes__", ()))
        raise UserError(
            f"the program raised {type(error).__name__}: {error}", notes=notes
        ) from error


def describe(content: Any) -> str:
    """A result in a few lines: dtype, sizes, strides, and its elements."""
    import torch

    if not isinstance(content, torch.Tensor):
        return repr(content)
    dtype = str(content.dtype).removeprefix("torch.")
    head = f"{dtype} {list(content.shape)} strides {list(content.stride())}"
    with torch._tensor_str.printoptions(precision=6, threshold=40):
        return f"{head}\n{content}"


if __name__ == "__main__":
    sys.exit(main())
