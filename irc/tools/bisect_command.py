"""`irc bisect`: which pass makes a program wrong, and which rewrite of that pass.

A program (FILE.mlir) is run on random or saved arguments in the interpreter, before its passes and
behind ever fewer of them. A script (FILE.py) runs as it is, and every graph that irc compiles in it
is searched so with the arguments of its first call. Each line tells the bounds that it tries:
--passes LOW:HIGH and --rewrites LOW:HIGH go on from there. Exit code 1: something is wrong.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from irc.ir.diagnostics import IRCError, UserError
from irc.tools.bisecting import SearchPlan, say, search
from irc.tools.files import load_arguments, load_file, parse_sizes, read_text, resources_of


def add_parser(commands: Any) -> None:
    """Add the subcommand to those of the `irc` command."""
    parser = commands.add_parser(
        "bisect", help="find the pass and the rewrite that make a program wrong",
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
        usage="irc bisect [-h] FILE [options] [-- words for a script]",
    )  # fmt: skip
    parser.add_argument("file", help="FILE.mlir (-: standard input), or FILE.py")
    parser.set_defaults(words=[])
    parser.add_argument("--passes", metavar="LOW:HIGH", default="",
                        help="right behind LOW passes, wrong behind HIGH")  # fmt: skip
    parser.add_argument("--rewrites", metavar="LOW:HIGH", default="",
                        help="right with LOW rewrites, wrong with HIGH")  # fmt: skip
    parser.add_argument("--mode", choices=("real", "exact"), default="real",
                        help="floats as f64 (default), or also as they are typed")  # fmt: skip
    parser.add_argument("--tolerance", type=float,
                        help="of mode real, relative to the largest element\n"
                        "(default: the rounding of the narrowest type of float)")  # fmt: skip
    parser.add_argument("--directory", metavar="DIR",
                        help="where the program before the pass goes")  # fmt: skip
    parser.add_argument("--load", action="append", default=[], metavar="FILE",
                        help="FILE.py: passes and dialects; FILE.pt: arguments saved\n"
                        "with torch.save or --save of irc run")  # fmt: skip
    program = parser.add_argument_group("a program")
    program.add_argument("--pass-pipeline", help="which passes (default: all, for the target)")
    program.add_argument("--target", help="what for (default: its module's, else this CPU)")
    program.add_argument("--function", help="which function (default: main)")
    program.add_argument("--size", action="append", default=[], metavar="s0=7",
                         help="the value of a symbol (default: near its hint)")  # fmt: skip
    program.add_argument("--seed", type=int, help="of the random arguments (default: 0)")
    program.add_argument("--resources", metavar="FILE",
                         help="its large constants (default: FILE.resources)")  # fmt: skip
    program.add_argument("--trust", action="store_true",
                         help="run operators that reach outside: files, extensions")  # fmt: skip
    script = parser.add_argument_group("a script")
    script.add_argument("--graph", type=int, metavar="N", help="search this graph only, from 0")
    parser.add_argument("--debug", action="store_true", help="show Python tracebacks")


def run_bisect(arguments: argparse.Namespace) -> int:
    """Do what the words of `irc bisect` say; gives the exit code. Raises UserError."""
    plan = SearchPlan(
        bounds("--passes", arguments.passes), bounds("--rewrites", arguments.rewrites),
        arguments.mode, arguments.tolerance, arguments.directory,
    )  # fmt: skip
    files = [Path(path) for path in arguments.load]
    for path in files:
        if path.suffix == ".py":
            load_file(path)
    saved = [path for path in files if path.suffix != ".py"]
    if arguments.file.endswith(".py"):
        from irc.tools.bisect_script import search_script

        _check_words(arguments, saved)
        return search_script(Path(arguments.file), arguments.words, plan, arguments.graph)
    if arguments.graph is not None or arguments.words:
        raise UserError("--graph and words behind -- are for a script, FILE.py")
    return search_program(arguments, saved, plan)


def bounds(flag: str, text: str) -> tuple[int, int] | None:
    """LOW:HIGH as numbers. Raises UserError."""
    if not text:
        return None
    low, _, high = text.partition(":")
    if not (low.isdigit() and high.isdigit() and int(low) < int(high)):
        raise UserError(f"{flag} {text}: expected LOW:HIGH, two numbers")
    return int(low), int(high)


def _check_words(arguments: argparse.Namespace, saved: Sequence[Path]) -> None:
    """Raise UserError for words that do nothing with a script."""
    of_programs = ("pass_pipeline", "target", "function", "size", "resources", "trust")
    idle = [f"--{name.replace('_', '-')}" for name in of_programs if getattr(arguments, name)]
    idle += ["--seed"] * (arguments.seed is not None) + [f"--load {path}" for path in saved]
    if idle:
        raise UserError(f"{idle[0]} does nothing with a script, which says that itself")
    if (arguments.passes or arguments.rewrites) and arguments.graph is None:
        raise UserError("--passes and --rewrites are of one graph: say which by --graph")


# -- a program


def search_program(arguments: argparse.Namespace, saved: Sequence[Path], plan: SearchPlan) -> int:
    """Search a program file."""
    text = read_text(arguments.file)
    name = "<stdin>" if arguments.file == "-" else arguments.file
    try:
        return _search_text(name, text, arguments, saved, plan)
    except IRCError as error:
        error.attach_source(name, text)
        raise


def _search_text(
    name: str, text: str, arguments: argparse.Namespace, saved: Sequence[Path], plan: SearchPlan
) -> int:
    from irc.ir.passes import PassManager
    from irc.ir.text.parser import parse
    from irc.ir.verifier import verify
    from irc.pipeline import pipeline_text
    from irc.target import Target
    from irc.target.attribute import settle
    from irc.validation.bisection import Judge

    resources = resources_of(arguments.file, text, arguments.resources)
    module = parse(text, filename=name, resources=resources, trusted=arguments.trust)
    verify(module)
    target = settle(module, arguments.target)
    passes = arguments.pass_pipeline or pipeline_text(target, functional=False)
    function = arguments.function or "main"
    if module.lookup(function) is None:
        raise UserError(f"{name} has no function '{function}'")
    judge = None
    for inputs in inputs_for(module.lookup(function), arguments, saved):
        try:
            judge = Judge(module, inputs, function=function, mode=plan.mode,
                          tolerance=plan.tolerance)  # fmt: skip
            break
        except UserError as error:
            refused = error
    if judge is None:
        raise refused
    steps = PassManager.parse(passes).steps
    if search(module, steps, judge, plan):
        return 1
    return int(function == "main" and target == Target.host() and runs_wrong(module, steps, judge))


def inputs_for(
    function: Any, arguments: argparse.Namespace, saved: Sequence[Path]
) -> Iterator[Any]:
    """Arguments to try until the program accepts some. Raises UserError."""
    from irc.validation.inputs import INTEGER_RANGES, from_tensors, make_inputs
    from irc.validation.sizes import assignments

    if saved:
        yield from_tensors(load_arguments(saved[0]))
        return
    seed = arguments.seed or 0
    sizes = parse_sizes(arguments.size)
    environments = [*itertools.islice(assignments(function, sizes, seed), 2)]
    if not environments:
        raise UserError("no values of the symbols fit the function's facts")
    for environment in environments:
        for integers in INTEGER_RANGES:
            yield make_inputs(function, environment, seed, integers)


def runs_wrong(module: Any, steps: Sequence[Any], judge: Any) -> bool:
    """Whether machine code of a program whose passes are right gives something else. It is told;
    a pipeline that stops above the host program has none."""
    from irc.dialects import host
    from irc.ir.passes import PassManager
    from irc.runtime import build

    program = module.clone()
    PassManager(steps).run(program)
    if not isinstance(program.lookup("main"), host.HostFuncOp):
        return False
    say("the executable: ")
    inputs = judge.inputs.fresh("exact")
    message = judge.of_results(build(program)(*inputs), inputs)
    say(f"{message or 'right'}\n")
    return bool(message)


__all__ = ["add_parser", "run_bisect"]
