"""What the commands read, and how they tell errors: programs, constants, arguments, passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import IRCError, UserError


def guarded(program: str, debug: bool, action: Callable[[], int]) -> int:
    """The exit code of `action`: 1 when it raises, after one error was printed.

    With `debug` the exception goes on instead, for its traceback.
    """
    try:
        return action()
    except BrokenPipeError:
        return 1
    except Exception as error:
        if debug:
            raise
        print(_describe(program, error), file=sys.stderr)
        return 1


def _describe(program: str, error: Exception) -> str:
    if isinstance(error, IRCError):
        return str(error)
    if isinstance(error, OSError):
        return f"{program}: error: {error}"
    if isinstance(error, RecursionError):
        return f"{program}: error: the program is nested too deeply"
    return (
        f"{program}: internal error: {type(error).__name__}: {error}\n"
        "  note: --debug shows where; please report it"
    )


def name_of(file: str) -> str:
    return "<stdin>" if file == "-" else file


def read_text(file: str) -> str:
    """The text of a file, or of standard input ("-"). Raises UserError where it is not UTF-8."""
    from irc.ir.text.parser import decode_utf8

    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return decode_utf8(raw, name_of(file))


def resources_of(file: str, text: str, chosen: str | None) -> Mapping[str, bytes] | None:
    """The constants beside the program `text` of `file`, or those in the file `chosen`.

    None when the text mentions none, and for standard input without a chosen file. Raises
    UserError when there is no file `chosen`.
    """
    if "#irc.resource" not in text:
        return None
    from irc.ir.text.resources import ResourceFile, beside

    if chosen is not None:
        if not Path(chosen).is_file():
            raise UserError(f"--resources: there is no file {chosen}")
        return ResourceFile(Path(chosen))
    return None if file == "-" else ResourceFile(beside(file))


def load_file(path: Path) -> None:
    """Import a Python file given with --load, which registers passes and patterns."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"irc_loaded_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"--load: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except IRCError:
        raise
    except (Exception, SystemExit) as error:
        raise _load_error(path, error) from error


def _load_error(path: Path, error: BaseException) -> UserError:
    """The error of a file that could not be loaded, at its line that raised last."""
    from traceback import extract_tb

    from irc.ir.location import FileLocation

    places = [(f.lineno or 1, (f.colno or 0) + 1) for f in extract_tb(error.__traceback__)
              if f.filename == str(path)]  # fmt: skip
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        places.append((error.lineno or 1, error.offset or 1))
        message = error.msg
    line, column = places[-1] if places else (1, 1)
    failure = UserError(
        f"--load: {type(error).__name__}: {message}", FileLocation(str(path), line, column)
    )
    failure.attach_source(str(path), path.read_text(encoding="utf-8", errors="replace"))
    return failure


def load_arguments(path: Path) -> list[Any]:
    """Arguments from a file: a list of tensors and numbers, or what --save wrote."""
    import torch

    content = torch.load(path, weights_only=True)
    arguments = content["arguments"] if isinstance(content, dict) else content
    if not isinstance(arguments, list | tuple):
        raise UserError(f"{path} holds {type(content).__name__}, not a list of arguments")
    return list(arguments)


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Symbols' values from `name=number` words. Raises UserError."""
    sizes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not value.isdigit():
            raise UserError(f"--size {text}: expected name=number")
        sizes[name] = int(value)
    return sizes
