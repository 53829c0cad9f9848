"""The command line of irc-opt: its options, and the flags made from pass names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from irc.ir.diagnostics import UserError
from irc.target.names import PROCESSORS

EPILOG = """\
Every pass is a flag too, in order: irc-opt f.mlir --canonicalize --schedule='target=cpu'
runs the two. --list-passes and --list-pipelines name them, --explain shows what one does."""


class ArgumentParser(argparse.ArgumentParser):
    """A parser that raises UserError for wrong words instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message, notes=(f"{self.prog} --help lists the options",))


def make_parser() -> ArgumentParser:
    """The argument parser; pass flags are taken out before it runs."""
    parser = ArgumentParser(
        prog="irc-opt",
        description="Read a program on any level, run passes on it, print it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", default=["-"], help="input files (-: standard input)")
    parser.add_argument("-o", "--output", default="-", help="where the program goes")
    parser.add_argument("--pass-pipeline", help="'a,b{x=1},func.func(c)'")
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py")
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--list-passes", action="store_true")
    parser.add_argument("--list-pipelines", action="store_true")
    parser.add_argument("--show-dialects", action="store_true")
    parser.add_argument("--explain", metavar="PASS",
                        help="what a pass does, or the passes of a pipeline")  # fmt: skip
    parser.add_argument("--dump-pass-pipeline", action="store_true",
                        help="print the whole pipeline, with its options, to stderr")  # fmt: skip
    parser.add_argument("--check-rules", nargs="?", type=int, const=200, metavar="CASES",
                        help="run every rule on random values, CASES (200) each")  # fmt: skip
    parser.add_argument("--target", metavar="TARGET",
                        help=f"what the program is for: {', '.join(PROCESSORS)}, host, or "
                        "#irc.target<...> (default: its module's, else host)")  # fmt: skip
    parser.add_argument("--emit", choices=("llvm", "triton", "asm"), help="code of the kernels")
    parser.add_argument("--trust", action="store_true",
                        help="passes may run operators that reach outside: files")  # fmt: skip
    parser.add_argument("--resources", metavar="FILE",
                        help="large constants of the input (default: INPUT.resources)")  # fmt: skip
    text = parser.add_argument_group("text")
    text.add_argument("--generic", action="store_true", help="print MLIR's generic form")
    text.add_argument("--locations", action="store_true", help="print loc(...)")
    text.add_argument("--allow-unregistered-dialect", action="store_true")
    text.add_argument("--split-input-file", action="store_true", help="split at '// -----'")
    check = parser.add_argument_group("checking")
    check.add_argument("--no-verify", action="store_true", help="skip the verifier at both ends")
    check.add_argument("--verify-each", action="store_true", help="verify after every pass")
    check.add_argument("--verify-roundtrip", action="store_true", help="print, parse, compare")
    check.add_argument("--verify-diagnostics", action="store_true", help="expected-error comments")
    check.add_argument("--check-semantics", metavar="each|changed|sample:N",
                       help="run the program in the interpreter around passes")  # fmt: skip
    check.add_argument("--check-semantics-inputs", metavar="FILE.pt",
                       help="arguments of @main saved with torch.save")  # fmt: skip
    check.add_argument("--check-semantics-dir", metavar="DIR",
                       help="where a pass that fails leaves its programs")  # fmt: skip
    check.add_argument("--check-semantics-max", type=int, metavar="ELEMENTS",
                       help="functions with more elements are not checked")  # fmt: skip
    check.add_argument("--pass-timeout", type=float, metavar="SECONDS")
    debug = parser.add_argument_group("debugging")
    debug.add_argument("--print-ir-before", action="append", default=[], metavar="PASS")
    debug.add_argument("--print-ir-after", action="append", default=[], metavar="PASS")
    debug.add_argument("--print-ir-before-all", action="store_true")
    debug.add_argument("--print-ir-after-all", action="store_true")
    debug.add_argument("--print-ir-after-change", action="store_true", help="only what changed")
    debug.add_argument("--print-ir-after-failure", action="store_true")
    debug.add_argument("--print-ir-function", metavar="NAME")
    debug.add_argument("--print-ir-tree-dir", metavar="DIR")
    debug.add_argument("--fuel", type=int, metavar="N",
                       help="make the first N rewrites only, and name the last")  # fmt: skip
    debug.add_argument("--timing", action="store_true")
    debug.add_argument("--statistics", action="store_true")
    debug.add_argument("--remarks", metavar="REGEX",
                       help="why passes did what they did (where it matches)")  # fmt: skip
    debug.add_argument("--crash-reproducer", metavar="FILE")
    debug.add_argument("--run-reproducer", action="store_true", help="take the file's pipeline")
    debug.add_argument("--debug", action="store_true", help="show Python tracebacks")
    return parser


def option_names() -> list[str]:
    """The flags of irc-opt that are no passes."""
    return [option for action in make_parser()._actions for option in action.option_strings]


def parse_arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the pipeline pieces that other flags stand for (`name{options}`).

    Whether a piece names a pass is known once `--load` has been done. Raises UserError for words
    that are wrong whatever passes there are.
    """
    parser = make_parser()
    known = {option for action in parser._actions for option in action.option_strings}
    rest: list[str] = []
    pieces: list[str] = []
    for word in argv:
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and len(flag) > 2 and flag not in known:
            pieces.append(flag[2:] + ("{" + value + "}" if equals else ""))
        else:
            rest.append("--remarks=" if word == "--remarks" else word)
    arguments = parser.parse_args(rest)
    if pieces and arguments.pass_pipeline:
        raise UserError("pass flags and --pass-pipeline can't be mixed")
    return arguments, pieces
