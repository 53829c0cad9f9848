"""IR files as tests: pytest collects every `.mlir` file under tests/.

Directives are comments at the start of a line:

    // RUN: --canonicalize --cse        runs irc-opt with these words on the file; its output must
                                        satisfy the file's CHECK lines (FileCheck's language)
    // VALUES: canonicalize,cse         runs each function in the interpreter before and after the
                                        pipeline on random arguments; the results must agree
    // ERRORS: --canonicalize           runs irc-opt with --verify-diagnostics: the errors must be
                                        the file's `// expected-error {{...}}` comments

`--update-checks` rewrites the CHECK lines of files with a RUN line from what irc-opt prints now.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

DIRECTIVE = re.compile(r"^// (RUN|VALUES|ERRORS):\s*(.*)$", re.MULTILINE)
CHECK = re.compile(r"^// CHECK[-A-Z]*:.*\n?", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-checks."""
    parser.addoption(
        "--update-checks", action="store_true", help="rewrite the CHECK lines of IR files"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect IR files."""
    if file_path.suffix == ".mlir":
        return IRFile.from_parent(parent, path=file_path)
    return None


class IRFile(pytest.File):
    """One `.mlir` file: an item per directive."""

    def collect(self) -> Any:
        text = self.path.read_text(encoding="utf-8")
        for number, (kind, words) in enumerate(DIRECTIVE.findall(text)):
            yield IRItem.from_parent(self, name=f"{kind.lower()}{number}", kind=kind, words=words)


class IRItem(pytest.Item):
    """One directive of an IR file."""

    def __init__(self, *, kind: str, words: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.kind = kind
        self.words = words

    def runtest(self) -> None:
        if self.kind == "VALUES":
            check_values(self.path, self.words)
        elif self.kind == "ERRORS":
            words = [*shlex.split(self.words), "--verify-diagnostics", "--split-input-file"]
            code, _, errors = run_opt([*words, str(self.path)])
            if code:
                raise AssertionError(errors)
        else:
            check_output(self.path, self.words, self.config.getoption("--update-checks"))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, AssertionError):
            return f"{self.path}: {self.kind}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> Any:
        return self.path, 0, f"{self.path.name}: {self.kind}"


def run_opt(words: list[str]) -> tuple[int, str, str]:
    """irc-opt in this process: exit code, output, errors."""
    from irc.tools.irc_opt import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def check_output(path: Path, words: str, update: bool) -> None:
    """Run irc-opt and hold its output against the CHECK lines."""
    code, output, errors = run_opt([*shlex.split(words), str(path)])
    assert code == 0, errors
    assert "#irc.target<cpu" not in output, "the text depends on this machine: --target=avx512"
    if update:
        update_checks(path, output)
        return
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import Options
    from filecheck.parser import Parser, pattern_for_opts

    options = Options(match_filename=str(path))
    text = path.read_text(encoding="utf-8")
    assert CHECK.search(text), "the file has a RUN line but no CHECK lines"
    report = io.StringIO()
    with contextlib.redirect_stderr(report), contextlib.redirect_stdout(report):
        parser = Parser(options, io.StringIO(text), *pattern_for_opts(options))
        outcome = Matcher(options, FInput("irc-opt", output), parser).run()
    assert outcome == 0, f"{report.getvalue()}\n--- irc-opt printed:\n{output}"


def update_checks(path: Path, output: str) -> None:
    """Write the output as CHECK lines at the end of the file."""
    text = CHECK.sub("", path.read_text(encoding="utf-8")).rstrip("\n")
    lines = [line for line in output.splitlines() if line.strip()]
    checks = [f"// CHECK{'' if n == 0 else '-NEXT'}: {line}" for n, line in enumerate(lines)]
    path.write_text(text + "\n\n" + "\n".join(checks) + "\n", encoding="utf-8")


def check_values(path: Path, pipeline: str) -> None:
    """Run the pipeline with each pass checked in the interpreter; no function may be left out."""
    from irc.ir.passes import PassManager
    from irc.ir.text.parser import parse_file
    from irc.validation.semantics import SemanticsCheck

    manager = PassManager.parse(pipeline, verify="each")
    check = SemanticsCheck("each")
    manager.instrumentations.append(check)
    manager.run(parse_file(path))
    assert check.checked, "no pass ran"
    assert not check.skipped, check.report
