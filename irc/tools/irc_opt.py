"""irc-opt: read a program on any level, run passes on it, print it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import InternalError, IRCError, UserError
from irc.tools.options import parse_arguments

SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
EXPECTED = re.compile(r"//\s*expected-error\s*(@[+-]\d+|@below|@above)?\s*\{\{(.*?)\}\}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run irc-opt; gives the exit code (0: fine, 1: an error was printed)."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    try:
        arguments, pieces = parse_arguments(words)
        return _run(arguments, pieces)
    except IRCError as error:
        if debug:
            raise
        print(_render(error), file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except OSError as error:
        if debug:
            raise
        print(f"irc-opt: error: {error}", file=sys.stderr)
        return 1


def _render(error: IRCError) -> str:
    from irc.ir import diagnostics

    render = getattr(diagnostics, "render", str)
    return str(render(error))


def _run(arguments: argparse.Namespace, pieces: list[str]) -> int:
    for path in arguments.load:
        load_file(Path(path))
    if arguments.list_passes or arguments.explain:
        _load_entry_points()
        print(list_passes() if arguments.list_passes else explain(arguments.explain))
        return 0
    texts = [(_name(f), _read(f)) for f in arguments.files]
    outputs = []
    failures = 0
    for name, text in texts:
        for offset, part in _parts(text, arguments.split_input_file):
            source = "\n" * offset + part
            if arguments.verify_diagnostics:
                failures += _check_diagnostics(name, source, arguments, pieces)
            else:
                try:
                    outputs.append(_process(name, source, arguments, pieces))
                except IRCError as error:
                    error.attach_source(name, source)
                    raise
    if not arguments.verify_diagnostics:
        _write(arguments.output, "\n// -----\n".join(outputs))
    return 1 if failures else 0


def _name(file: str) -> str:
    return "<stdin>" if file == "-" else file


def _read(file: str) -> str:
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        from irc.ir.location import FileLocation

        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise UserError("invalid UTF-8", FileLocation(_name(file), line, column)) from None


def _write(target: str, text: str) -> None:
    if not text.endswith("\n"):
        text += "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(target).write_text(text, encoding="utf-8")


def _parts(text: str, split: bool) -> list[tuple[int, str]]:
    if not split:
        return [(0, text)]
    parts = []
    start = 0
    for mark in SPLIT.finditer(text):
        parts.append((text.count("\n", 0, start), text[start : mark.start()]))
        start = mark.end() + 1
    parts.append((text.count("\n", 0, start), text[start:]))
    return [(lines, part) for lines, part in parts if part.strip()]


def _process(name: str, source: str, arguments: argparse.Namespace, pieces: list[str]) -> str:
    """Parse, run the passes and print one program."""
    from irc.ir.parser import parse
    from irc.ir.printer import print_op
    from irc.ir.verifier import verify

    module = parse(
        source, filename=name, allow_unregistered=arguments.allow_unregistered_dialect
    )
    if not arguments.no_verify:
        verify(module)
    if arguments.verify_roundtrip:
        _check_roundtrip(module)
    text = _pipeline(source, arguments, pieces)
    # Without passes, most of what runs them need not be loaded.
    if text.strip() or arguments.timing or arguments.statistics or arguments.remarks:
        _run_passes(module, text, arguments)
        if not arguments.no_verify:
            verify(module)
        if arguments.verify_roundtrip:
            _check_roundtrip(module)
    if arguments.emit:
        from irc.tools.emit import emit

        return emit(module, arguments.emit)
    return print_op(module, generic=arguments.generic, locations=arguments.locations)


def _run_passes(module: Any, text: str, arguments: argparse.Namespace) -> None:
    import irc.pipeline  # noqa: F401  # the named pipelines register on import
    from irc.ir.passes import PassContext, PassManager

    _load_entry_points()
    manager = PassManager.parse(text)
    manager.verify = "each" if arguments.verify_each else "none"
    manager.instrumentations = _instrumentations(arguments, manager)
    context = PassContext()
    try:
        manager.run(module, context)
    finally:
        _report(arguments, context)


def _pipeline(source: str, arguments: argparse.Namespace, pieces: list[str]) -> str:
    if arguments.run_reproducer:
        from irc.tools.instrumentation import REPRODUCER_MARK

        first = source.lstrip().partition("\n")[0]
        if not first.startswith(REPRODUCER_MARK):
            raise UserError("the file does not start with a reproducer's pipeline")
        return first[len(REPRODUCER_MARK) :]
    return arguments.pass_pipeline or ",".join(pieces)


def _instrumentations(arguments: argparse.Namespace, manager: Any) -> list[Any]:
    from irc.ir.passes import Pass, _step_text
    from irc.tools import instrumentation as hooks

    made: list[Any] = []
    changed = arguments.print_ir_after_change
    before = hooks.EVERY if arguments.print_ir_before_all else arguments.print_ir_before
    after = (
        hooks.EVERY if arguments.print_ir_after_all or changed else arguments.print_ir_after
    )
    if before or after or arguments.print_ir_after_failure:
        made.append(
            hooks.PrintIR(
                before,
                after,
                only_changed=changed,
                on_failure=arguments.print_ir_after_failure,
                function=arguments.print_ir_function,
                tree=Path(arguments.print_ir_tree_dir) if arguments.print_ir_tree_dir else None,
                generic=arguments.generic,
            )
        )
    if arguments.crash_reproducer:

        def remaining(failed: Pass) -> str:
            start = next((i for i, s in enumerate(manager.steps) if s is failed), 0)
            return ",".join(_step_text(s) for s in manager.steps[start:])

        made.append(hooks.CrashReproducer(Path(arguments.crash_reproducer), remaining))
    if arguments.pass_timeout:
        made.append(hooks.TimeLimit(arguments.pass_timeout))
    return made


def _report(arguments: argparse.Namespace, context: Any) -> None:
    from irc.tools import instrumentation as hooks

    if arguments.remarks and context.remarks:
        print(hooks.remarks_report(context), file=sys.stderr)
    if arguments.timing:
        print(hooks.timing_report(context), file=sys.stderr)
    if arguments.statistics:
        print(hooks.statistics_report(context), file=sys.stderr)


def _check_roundtrip(module: Any) -> None:
    from irc.ir.parser import parse
    from irc.ir.printer import print_op

    for generic in (False, True):
        text = print_op(module, generic=generic)
        again = print_op(
            parse(
                text,
                filename="<round trip>",
                allow_unregistered=True,
                resources=module.resources,
            ),
            generic=generic,
        )
        if text != again:
            line = next(
                (i for i, (a, b) in enumerate(zip(text.splitlines(), again.splitlines(),
                                                  strict=False)) if a != b),
                0,
            )  # fmt: skip
            raise InternalError(
                "the program changes when it is printed and parsed",
                notes=(
                    f"printed: {text.splitlines()[line]}",
                    f"again:   {again.splitlines()[line] if again else ''}",
                ),
            )


def _check_diagnostics(
    name: str, source: str, arguments: argparse.Namespace, pieces: list[str]
) -> int:
    """Compare the error of one program with its `// expected-error {{...}}` comments."""
    from irc.ir.location import file_positions

    expected = []
    for number, line in enumerate(source.splitlines(), 1):
        for where, text in EXPECTED.findall(line):
            shift = {"": 0, "@below": 1, "@above": -1}.get(where)
            expected.append((number + (int(where[1:]) if shift is None else shift), text))
    try:
        _process(name, source, arguments, pieces)
    except IRCError as error:
        positions = file_positions(error.location)
        line = positions[0].line if positions else 0
        for wanted in expected:
            if wanted[0] == line and wanted[1] in str(error):
                expected.remove(wanted)
                break
        else:
            print(f"unexpected error: {_render(error)}", file=sys.stderr)
            return 1
    for line, text in expected:
        print(f"{name}:{line}: error: expected an error with '{text}'", file=sys.stderr)
    return len(expected)


# -- passes from elsewhere


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
    except Exception as error:
        raise UserError(f"--load: {path}: {type(error).__name__}: {error}") from error


_entry_points_loaded = False


def _load_entry_points() -> None:
    """Import the modules that installed packages name in the entry-point group irc.passes."""
    global _entry_points_loaded
    if _entry_points_loaded:
        return
    _entry_points_loaded = True
    from importlib.metadata import entry_points

    for point in entry_points(group="irc.passes"):
        try:
            point.load()
        except Exception as error:
            raise UserError(f"entry point {point.value}: {error}") from error


def list_passes() -> str:
    """All passes, one line each."""
    from irc.ir.passes import all_passes

    passes = all_passes()
    width = max(map(len, passes), default=0)
    return "\n".join(f"{name:{width}}  {cls.summary}" for name, cls in passes.items())


def explain(name: str) -> str:
    """A pass's summary, description with its before/after example, and options."""
    import inspect

    import attrs

    from irc.ir.passes import lookup_pass

    cls = lookup_pass(name)
    lines = [f"{name}: {cls.summary}", f"runs on: {cls.anchor}; preserves: {cls.preserves}", ""]
    lines.append(inspect.cleandoc(cls.__doc__ or ""))
    fields = attrs.fields(cls)
    if fields:
        lines += ["", "options:"]
        for field in fields:
            lines.append(f"  {field.name}: {field.type} = {field.default!r}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
