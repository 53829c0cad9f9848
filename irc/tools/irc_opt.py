"""irc-opt: read a program on any level, run passes on it, print it."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import InternalError, IRCError, UserError
from irc.tools.files import guarded, load_arguments, load_file, name_of, read_text, resources_of
from irc.tools.idle_flags import check_idle, check_selected
from irc.tools.options import option_names, parse_arguments

SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
EXPECTED = re.compile(r"//\s*expected-error\s*(@[+-]\d+|@below|@above)?\s*\{\{(.*?)\}\}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run irc-opt; gives the exit code (0: fine, 1: an error was printed)."""
    words = list(sys.argv[1:] if argv is None else argv)
    return guarded("irc-opt", "--debug" in words, lambda: _run(*parse_arguments(words)))


def _run(arguments: argparse.Namespace, pieces: list[str]) -> int:
    text = arguments.pass_pipeline or ",".join(pieces)
    check_idle(arguments, bool(text.strip()))
    for path in arguments.load:
        load_file(Path(path))
    told = _told(arguments)
    if told is not None:
        print(told)
        return 0
    if arguments.check_rules is not None:
        from irc.tools.check_rules import check_rules

        return check_rules(arguments.check_rules)
    if text.strip():  # a wrong pipeline is told before any file is read
        from irc.ir.passes import passes_of

        manager = _manager(text, pieces)
        check_selected(arguments, passes_of(manager.steps))
        if arguments.dump_pass_pipeline:
            print(manager, file=sys.stderr)
    outputs: list[tuple[str, Any]] = []
    failures = 0
    for file in arguments.files:
        name, content = name_of(file), read_text(file)
        resources = resources_of(file, content, arguments.resources)
        for offset, part in _parts(content, arguments.split_input_file):
            source = "\n" * offset + part
            if arguments.verify_diagnostics:
                failures += _check_diagnostics(name, source, arguments, text, resources)
            else:
                try:
                    outputs.append(_process(name, source, arguments, text, resources))
                except IRCError as error:
                    error.attach_source(name, source)
                    raise
    if not arguments.verify_diagnostics:
        _write(arguments.output, outputs)
    return 1 if failures else 0


def _told(arguments: argparse.Namespace) -> str | None:
    """What a flag asks to be told instead of a program; None without such a flag."""
    from irc.tools import listing

    if arguments.version:
        return version()
    if arguments.list_passes:
        return listing.list_passes()
    if arguments.list_pipelines:
        return listing.list_pipelines()
    if arguments.show_dialects:
        return listing.show_dialects()
    return listing.explain(arguments.explain) if arguments.explain else None


def version() -> str:
    """irc's version, and those of what it works with (imports none of them)."""
    import platform
    from importlib import metadata

    from irc.ir.version import __version__

    parts = [f"irc {__version__}", f"Python {platform.python_version()}"]
    for name in ("torch", "llvmlite", "triton"):
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            parts.append(f"no {name}")
    return ", ".join(parts)


def _write(target: str, outputs: Sequence[tuple[str, Any]]) -> None:
    """Write the programs, and beside a regular file their large constants."""
    text = "\n// -----\n".join(printed.rstrip("\n") for printed, _ in outputs)
    if not text.endswith("\n"):
        text += "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        if "#irc.resource<" in text:
            print("irc-opt: note: the text names large constants, which are not in it; -o FILE "
                  "writes them beside it", file=sys.stderr)  # fmt: skip
        return
    path = Path(target)
    path.write_text(text, encoding="utf-8")
    resources = {key: data for _, module in outputs for key, data in module.resources.items()}
    if resources and path.is_file():
        from irc.ir.text.resources import write_beside

        write_beside(path, text, resources)


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


def _show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
    """A warning of the text, which names its own place, as errors do."""
    print(f"warning: {message}", file=sys.stderr)


def _process(
    name: str,
    source: str,
    arguments: argparse.Namespace,
    text: str,
    resources: Mapping[str, bytes] | None,
) -> tuple[str, Any]:
    """Parse, run the pipeline `text` and print one program; gives its text and the module."""
    from irc.ir.text.parser import parse
    from irc.ir.text.printer import print_op
    from irc.ir.verifier import verify

    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        module = parse(
            source,
            filename=name,
            allow_unregistered=arguments.allow_unregistered_dialect,
            resources=resources,
            trusted=arguments.trust,
        )
    if not arguments.no_verify:
        verify(module)
    if arguments.target:
        from irc.target.attribute import carry

        carry(module, arguments.target)
    chosen = arguments.print_ir_function
    if chosen and not any(_name_of(op) == chosen for op in module.walk()):
        raise UserError(f"--print-ir-function {chosen}: there is no such function")
    if arguments.verify_roundtrip:
        _check_roundtrip(module)
    if arguments.run_reproducer:
        text = _reproducer_pipeline(source)
    # Without passes, most of what runs them need not be loaded.
    if text.strip() or arguments.timing or arguments.statistics:
        _run_passes(module, text, arguments)
        if not arguments.no_verify:
            verify(module)
        if arguments.verify_roundtrip:
            _check_roundtrip(module)
    if arguments.emit:
        from irc.tools.emit import emit

        return emit(module, arguments.emit), module
    return print_op(module, generic=arguments.generic, locations=arguments.locations), module


def _name_of(op: Any) -> str | None:
    """The name of a function or kernel; None for any other operation."""
    return getattr(op.attributes.get("sym_name"), "value", None)


def _manager(text: str, pieces: Sequence[str] = ()) -> Any:
    """The pass manager of a pipeline; `pieces` are the flags that it was made of, if it was."""
    from irc.ir.passes import PassManager, did_you_mean, known_names

    try:
        return PassManager.parse(text)
    except UserError:
        names = [piece.partition("{")[0] for piece in pieces]
        known = known_names() if names else []
        for name in names:
            if name not in known:
                hint = did_you_mean(f"--{name}", [*option_names(), *(f"--{k}" for k in known)])
                raise UserError(
                    f"unknown flag '--{name}'{hint}",
                    notes=("it is neither an option (--help) nor a pass (--list-passes)",),
                ) from None
        raise


def _run_passes(module: Any, text: str, arguments: argparse.Namespace) -> None:
    from irc.ir.passes import PassContext
    from irc.ir.rewrite.fuel import Fuel

    manager = _manager(text)
    manager.verify = "each" if arguments.verify_each else "none"
    manager.instrumentations = _instrumentations(arguments, manager)
    fuel = None if arguments.fuel is None else Fuel(arguments.fuel)
    context = PassContext(fuel=fuel)
    try:
        manager.run(module, context)
    finally:
        _report(arguments, context)
    for hook in manager.instrumentations:
        if hook.report:
            print(hook.report, file=sys.stderr)


def _reproducer_pipeline(source: str) -> str:
    from irc.validation.reproducer import REPRODUCER_MARK

    first = source.lstrip().partition("\n")[0]
    if not first.startswith(REPRODUCER_MARK):
        raise UserError("the file does not start with a reproducer's pipeline")
    return first[len(REPRODUCER_MARK) :]


def _instrumentations(arguments: argparse.Namespace, manager: Any) -> list[Any]:
    from irc.ir.passes import Pass, step_text
    from irc.tools import instrumentation as hooks

    instrumentations: list[Any] = []
    changed = arguments.print_ir_after_change
    before = hooks.EVERY if arguments.print_ir_before_all else arguments.print_ir_before
    after = (
        hooks.EVERY if arguments.print_ir_after_all or changed else arguments.print_ir_after
    )
    if before or after or arguments.print_ir_after_failure:
        instrumentations.append(
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
            start = next(i for i, s in enumerate(manager.steps) if hooks.contains(s, failed))
            return ",".join(step_text(s) for s in manager.steps[start:])

        instrumentations.append(hooks.CrashReproducer(Path(arguments.crash_reproducer), remaining))
    if arguments.pass_timeout:
        instrumentations.append(hooks.TimeLimit(arguments.pass_timeout))
    if arguments.check_semantics is not None:
        instrumentations.append(_semantics_check(arguments, manager.count()))
    return instrumentations


def _semantics_check(arguments: argparse.Namespace, total: int) -> Any:
    from irc.validation.semantics import MAX_ELEMENTS, SemanticsCheck

    inputs, folder = arguments.check_semantics_inputs, arguments.check_semantics_dir
    return SemanticsCheck(
        arguments.check_semantics,
        total=total,
        inputs=load_arguments(Path(inputs)) if inputs else None,
        folder=Path(folder) if folder else None,
        max_elements=arguments.check_semantics_max or MAX_ELEMENTS,
    )


def _report(arguments: argparse.Namespace, context: Any) -> None:
    from irc.tools import instrumentation as hooks

    if arguments.remarks is not None and context.remarks:
        print(hooks.remarks_report(context, arguments.remarks), file=sys.stderr)
    if context.fuel is not None:
        print(f"irc-opt: fuel: {context.fuel.told}", file=sys.stderr)
    if arguments.timing:
        print(hooks.timing_report(context), file=sys.stderr)
    if arguments.statistics:
        print(hooks.statistics_report(context), file=sys.stderr)


def _check_roundtrip(module: Any) -> None:
    from irc.ir.text.parser import parse
    from irc.ir.text.printer import print_op

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
    name: str,
    source: str,
    arguments: argparse.Namespace,
    text: str,
    resources: Mapping[str, bytes] | None,
) -> int:
    """Compare the error of one program with its `// expected-error {{...}}` comments."""
    from irc.ir.location import file_positions

    expected = []
    for number, content in enumerate(source.splitlines(), 1):
        for where, wording in EXPECTED.findall(content):
            shift = {"": 0, "@below": 1, "@above": -1}.get(where)
            expected.append((number + (int(where[1:]) if shift is None else shift), wording))
    try:
        _process(name, source, arguments, text, resources)
    except IRCError as error:
        error.attach_source(name, source)
        positions = file_positions(error.location)
        line = positions[0].line if positions else 0
        for expectation in expected:
            if expectation[0] == line and expectation[1] in str(error):
                expected.remove(expectation)
                break
        else:
            print(f"unexpected error: {error}", file=sys.stderr)
            return 1
    for wanted_line, wording in expected:
        print(f"{name}:{wanted_line}: error: expected an error with '{wording}'", file=sys.stderr)
    return len(expected)


if __name__ == "__main__":
    sys.exit(main())
