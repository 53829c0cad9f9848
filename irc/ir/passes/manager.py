"""Passes, the textual pipeline, and the manager that runs them.

    @register_pass
    class DropNothing(Pass):
        \"\"\"Does nothing.\"\"\"

        name = "drop-nothing"
        summary = "do nothing, with a limit"
        limit: int = 4

        def run(self, op, context):
            context.count("visited", sum(1 for _ in op.walk()))

The class's annotated fields are the pass's options: `drop-nothing{limit=8}`.
"""

from __future__ import annotations

import functools
import importlib
import re
import threading
import time
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import attrs

from irc.ir.core import Operation
from irc.ir.diagnostics import InternalError, IRCError, UserError
from irc.ir.gc import gc_paused
from irc.ir.location import UNKNOWN, FileLocation
from irc.ir.passes.context import PassContext, Remark, chosen_remarks
from irc.ir.passes.failures import is_ours, unexpected
from irc.ir.passes.files import pass_modules
from irc.ir.registry import known_names as registered_names
from irc.ir.registry import lookup_op, service
from irc.ir.traits import SymbolOp, SymbolTable

PassT = TypeVar("PassT", bound="type[Pass]")
#: A pipeline's text, or what makes it of the options that a text gives the name.
PipelineText = str | Callable[[Mapping[str, str]], str]
MODULE = "builtin.module"



class Pass:
    """Base of the passes. Subclasses are made immutable records by `register_pass`.

    anchor: the operation that the pass runs on ("builtin.module", "func.func", "any").
    preserves: what stays equal in the interpreter: "bits", or "real" (real-number value).
    rounds_constants: it writes constants, rounded to their dtype, that the program before computed
    or had as f64; so mode "real" agrees to that rounding only.
    analysis: it tells something and changes nothing.
    conversion: the boundary between two levels that it is, whose target is checked behind it where
    the pipeline verifies each pass.
    asks_target: what it does depends on the program's target (`irc.target.target_of`); a program
    without one gets this machine's before. An option `target` ("cpu", "gpu") says of which kind.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    anchor: ClassVar[str] = MODULE
    preserves: ClassVar[str] = "bits"
    rounds_constants: ClassVar[bool] = False
    analysis: ClassVar[bool] = False
    asks_target: ClassVar[bool] = False
    conversion: ClassVar[Any] = None  # a Conversion

    def run(self, op: Operation, context: PassContext) -> None:
        """Rewrite `op` in place."""
        raise InternalError(f"pass {self.name} does not define run")

    def cache_key(self) -> str:
        """Text that changes whenever the pass's effect on a program may change."""
        return pass_text(self)


class Instrumentation:
    """Hooks around every pass; irc-opt prints, times and checks through them."""

    @property
    def report(self) -> str:
        """What to tell the user once all passes have run ("": nothing)."""
        return ""

    def before_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        """Called before the pass runs on `op`."""

    def after_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        """Called after the pass ran on `op`."""

    def after_failure(
        self, pass_: Pass, op: Operation, context: PassContext, error: BaseException
    ) -> None:
        """Called when the pass raised; the error goes on afterwards."""


# -- registry

_passes: dict[str, type[Pass]] = {}
#: Those whose files are read to the end.
_known: set[str] = set()
_loading = threading.RLock()
_pipelines: dict[str, PipelineText] = {}


@typing.dataclass_transform(frozen_default=True)
def register_pass(cls: PassT) -> PassT:
    """Make a pass known by its name. Its annotated fields become options with defaults."""
    if not cls.name:
        raise UserError(f"pass {cls.__name__} has no name")
    frozen = attrs.frozen(slots=False)(cls)
    for field in pass_options(frozen):
        if field.default is attrs.NOTHING:
            raise UserError(f"option '{field.name}' of pass {cls.name} needs a default")
    _passes[cls.name] = frozen
    return frozen


def pass_options(cls: Any) -> tuple[attrs.Attribute[Any], ...]:
    """The options of a registered pass (its class): attrs' fields, in order."""
    return attrs.fields(cls)


def register_pipeline(name: str, text: PipelineText) -> None:
    """Give a pipeline text a name, usable wherever a pass name is. A function makes it each time
    of the options behind the name (`name{option=value}`)."""
    _pipelines[name] = text


def _pipeline(name: str) -> PipelineText | None:
    """The pipeline called `name`; irc's own register when one is first asked for."""
    if name not in _pipelines and name not in _passes:
        importlib.import_module("irc.pipeline")
    return None if name in _passes else _pipelines.get(name)


def _text_of(name: str, pipeline: PipelineText, options: Mapping[str, str]) -> str:
    """The text of a pipeline with these options. Raises UserError."""
    if not isinstance(pipeline, str):
        return pipeline(options)
    if options:
        raise UserError(f"pipeline '{name}' has no options")
    return pipeline


def lookup_pass(name: str) -> type[Pass]:
    """The pass called `name`, importing its file if need be. Raises UserError."""
    if name not in _known:
        with _loading:  # who asks meanwhile waits until the whole file is read
            leaf = name.replace("-", "_")
            for module in pass_modules():
                registered = _passes.get(name)
                ours = registered is None or registered.__module__ == module
                if ours and module.rpartition(".")[2] == leaf:
                    importlib.import_module(module)
            if name not in _passes:
                load_entry_points()
            if name in _passes:
                _known.add(name)
    cls = _passes.get(name)
    if cls is None:
        hint = did_you_mean(name, known_names())
        raise UserError(f"unknown pass '{name}'{hint}", notes=("--list-passes names them all",))
    return cls


def known_names() -> list[str]:
    """The names of all passes and pipelines: imports all pass files."""
    importlib.import_module("irc.pipeline")
    return [*all_passes(), *_pipelines]


def pipelines() -> dict[str, str]:
    """The text of every named pipeline, by name."""
    importlib.import_module("irc.pipeline")
    load_entry_points()
    return {name: _text_of(name, text, {}) for name, text in _pipelines.items()}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    names = list(known)
    # a part of a name, as "module" of "builtin.module"
    close = get_close_matches(name, names, 1) or [k for k in names if k.endswith(f".{name}")]
    return f"; did you mean '{close[0]}'?" if close else ""


def all_passes() -> dict[str, type[Pass]]:
    """Every pass, by name: imports all pass files, and those of installed packages."""
    for module in pass_modules():
        importlib.import_module(module)
    load_entry_points()
    return dict(sorted(_passes.items()))


def loaded_passes() -> dict[str, type[Pass]]:
    """The passes registered so far, by name: imports nothing."""
    return dict(_passes)


@functools.cache
def load_entry_points() -> None:
    """Import the modules that installed packages name in the entry-point group `irc.passes`, once.

    They register passes, or put them into the default pipeline. Raises UserError for one that
    fails, on each call.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group="irc.passes"):
        try:
            point.load()
        except Exception as error:
            raise UserError(
                f"entry point {point.name} = {point.value}: {type(error).__name__}: {error}",
                notes=("an installed package names it in the group irc.passes",),
            ) from error


# -- pipelines


@attrs.frozen
class Nested:
    """Part of a pipeline that runs on each operation called `anchor` inside the one outside."""

    anchor: str
    steps: tuple[Pass | Nested, ...]


def pass_text(pass_: Pass) -> str:
    """`name{option=value ...}` with the options that differ from their defaults."""
    parts = []
    for field in pass_options(type(pass_)):
        value = getattr(pass_, field.name)
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory()  # type: ignore[union-attr]
        if value != default:
            parts.append(f"{field.name}={option_text(value)}")
    return pass_.name + ("{" + " ".join(parts) + "}" if parts else "")


def option_text(value: Any) -> str:
    """A value of a pass's option as a pipeline's text has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(map(option_text, value))
    return str(value)


def make_pass(name: str, options: dict[str, str]) -> Pass:
    """The pass `name` with options given as text. Raises UserError for a wrong name or value."""
    cls = lookup_pass(name)
    fields = {f.name: f for f in pass_options(cls)}
    hints = typing.get_type_hints(cls) if options else {}
    values: dict[str, Any] = {}
    for key, text in options.items():
        option = key.replace("-", "_")
        if option not in fields:
            hint = did_you_mean(option, fields)
            raise UserError(f"pass '{name}' has no option '{key}'{hint}")
        values[option] = _convert_option(name, key, hints.get(option, str), text)
    return cls(**values)


def _convert_option(pass_name: str, key: str, type_: Any, text: str) -> Any:
    arguments = [a for a in typing.get_args(type_) if a is not type(None)]
    origin = typing.get_origin(type_)
    if origin in (tuple, list):
        return tuple(
            _convert_option(pass_name, key, arguments[0], t) for t in text.split(",") if t
        )
    if arguments and origin is not typing.Literal:
        type_ = arguments[0]
    try:
        if type_ is bool:
            return {"true": True, "1": True, "": True, "false": False, "0": False}[text.lower()]
        if type_ in (int, float, str):
            return type_(text)
        if origin is typing.Literal and text in arguments:
            return text
    except (KeyError, ValueError):
        pass
    expected = getattr(type_, "__name__", None) or " or ".join(map(str, arguments)) or str(type_)
    raise UserError(f"option '{key}' of pass '{pass_name}' is {expected}, not '{text}'")


#: A pass's name, or an option's; compiled where the first pipeline is read.
_NAME = r"[\w.-]+"


class _PipelineParser:
    """`a,b{x=1 y=two},func.func(c,d)`; errors give the position in the text."""

    MAX_DEPTH = 32

    def __init__(self, text: str, inside: tuple[str, ...] = ()) -> None:
        self.text = text
        self.position = 0
        self.inside = inside  # the named pipelines whose text this is

    def fail(self, message: str) -> typing.NoReturn:
        raise self.located(UserError(f"bad pipeline: {message}"), self.position)

    def located(self, error: UserError, position: int) -> UserError:
        """`error`, showing the place in the pipeline, unless it tells a place already."""
        if error.location is UNKNOWN:
            line = self.text.count("\n", 0, position) + 1
            column = position - self.text.rfind("\n", 0, position)
            error.location = FileLocation("<pipeline>", line, column)
            error.attach_source("<pipeline>", self.text)
        return error

    def peek(self) -> str:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.text[self.position] if self.position < len(self.text) else ""

    def word(self) -> str:
        self.peek()
        match = re.compile(_NAME).match(self.text, self.position)
        if match is None:
            self.fail("expected a pass name")
        self.position = match.end()
        return match[0]

    def options(self) -> dict[str, str]:
        if self.peek() != "{":
            return {}
        self.position += 1
        values: dict[str, str] = {}
        while self.peek() != "}":
            key = self.word()
            value = ""
            if self.peek() == "=":
                self.position += 1
                value = self.option_value()
            values[key] = value
        self.position += 1
        return values

    def option_value(self) -> str:
        quote = self.peek()
        start = self.position
        if quote and quote in "\"'":
            end = self.text.find(quote, start + 1)
            if end < 0:
                self.fail("unterminated string")
            self.position = end + 1
            return self.text[start + 1 : end]
        while self.position < len(self.text) and self.text[self.position] not in " \t\n}":
            self.position += 1
        if self.position >= len(self.text):
            self.fail("missing '}'")
        return self.text[start : self.position]

    def steps(self, depth: int = 0) -> list[Pass | Nested]:
        if depth > self.MAX_DEPTH:
            self.fail(f"nested deeper than {self.MAX_DEPTH}")
        steps: list[Pass | Nested] = []
        if self.peek() in ("", ")"):
            return steps
        while True:
            steps.extend(self.step(depth))
            if self.peek() != ",":
                return steps
            self.position += 1

    def step(self, depth: int) -> list[Pass | Nested]:
        self.peek()
        start = self.position
        name = self.word()
        if self.peek() == "(":
            self.position += 1
            inner = tuple(self.steps(depth + 1))
            if self.peek() != ")":
                self.fail("expected ',' or ')'")
            self.position += 1
            if lookup_op(name) is None:
                hint = did_you_mean(name, registered_names())
                error = UserError(f"there is no operation '{name}' to run passes on{hint}")
                raise self.located(error, start)
            return [Nested(name, inner)]
        pipeline = _pipeline(name)
        options = self.options()
        try:
            if pipeline is None:
                return [make_pass(name, options)]
            if name in self.inside:
                raise UserError(f"pipeline '{name}' holds itself")
            text = _text_of(name, pipeline, options)
        except UserError as error:
            raise self.located(error, start) from None
        return _PipelineParser(text, (*self.inside, name)).steps(depth + 1)

    def parse(self) -> list[Pass | Nested]:
        steps = self.steps()
        if self.peek():
            self.fail(f"unexpected '{self.peek()}'")
        if len(steps) == 1 and isinstance(steps[0], Nested) and steps[0].anchor == MODULE:
            return list(steps[0].steps)
        return steps


def _anchors(op: Operation, anchor: str) -> list[Operation]:
    """The operations called `anchor` inside of `op`. What a symbol names stands in a symbol table,
    so that the bodies of functions are not searched for functions."""
    cls = lookup_op(anchor)
    if cls is None or SymbolOp not in cls.traits:
        return [o for o in op.walk() if o.name == anchor and o is not op]
    anchors: list[Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.name == anchor:
                    anchors.append(inner)
                if SymbolTable in inner.traits:
                    anchors += _anchors(inner, anchor)
    return anchors


class PassManager:
    """Runs a list of passes on a module.

    `verify`: "none", "each" (after every pass), "users" (after each that isn't irc's own, in whose
    place a later one would fail) or "end". Errors name the pass.
    """

    def __init__(
        self,
        steps: Sequence[Pass | Nested] = (),
        *,
        verify: str = "none",
        instrumentations: Sequence[Instrumentation] = (),
    ) -> None:
        self.steps = list(steps)
        self.verify = verify
        self.instrumentations = list(instrumentations)

    @classmethod
    def parse(cls, text: str, **rest: Any) -> PassManager:
        """From `"a,b{x=1},func.func(c)"`. Raises UserError with the column."""
        return cls(_PipelineParser(text).parse(), **rest)

    def __str__(self) -> str:
        return ",".join(step_text(s) for s in self.steps)

    def run(
        self,
        module: Operation,
        context: PassContext | None = None,
        *,
        check_semantics: str = "",
        inputs: Sequence[Any] | None = None,
    ) -> PassContext:
        """Run every pass in order on `module`, in place; gives the context with what was noted.

        check_semantics: "each", "changed" or "sample:N" runs the program in the interpreter
        before and after these passes (`irc.validation.semantics`), on `inputs` (arguments of
        @main) or on generated arguments. Raises SemanticsChanged when a pass changes a result.
        """
        context = PassContext() if context is None else context
        self._settle_target(module, context)
        if check_semantics:
            check = service("check semantics")(check_semantics, total=self.count(), inputs=inputs)
            hooks = [*self.instrumentations, check]
            PassManager(self.steps, verify=self.verify, instrumentations=hooks).run(module, context)
            for name, why in check.skipped.items():
                warnings.warn(f"check_semantics: @{name} is not checked: {why}", stacklevel=2)
            return context
        with gc_paused:
            for step in self.steps:
                self._run_step(step, module, context)
        if self.verify == "end":
            _verify(module)
        return context

    def count(self) -> int:
        """How many passes the pipeline names, those inside others included."""
        return sum(1 for _ in passes_of(self.steps))

    def _settle_target(self, module: Operation, context: PassContext) -> None:
        """An edge: the target that the caller gives, else the module's; where passes ask for one
        and there is none, this machine's, which the module carries from then on."""
        asking = [p for p in passes_of(self.steps) if p.asks_target]
        carries = "irc.target" in module.attributes
        if not asking and not carries and context.target is None:
            context.settled = None  # nothing asks, and nothing is loaded to answer
            return
        kinds = {getattr(p, "target", "") for p in asking}
        service("settle target")(module, context, gpu="gpu" in kinds)

    def _run_step(self, step: Pass | Nested, op: Operation, context: PassContext) -> None:
        if isinstance(step, Nested):
            for target in _anchors(op, step.anchor):
                for inner in step.steps:
                    self._run_step(inner, target, context)
            return
        if step.anchor not in ("any", op.name):
            if SymbolTable in op.traits:
                for target in _anchors(op, step.anchor):
                    self._run_pass(step, target, context)
                return
            raise UserError(
                f"pass '{step.name}' runs on {step.anchor}, not on {op.name}", op.location
            )
        self._run_pass(step, op, context)

    def _run_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        for hook in self.instrumentations:
            hook.before_pass(pass_, op, context)
        context.current_pass = pass_.name
        if context.fuel is not None:
            context.fuel.inside = pass_.name
        start = time.perf_counter()
        try:
            pass_.run(op, context)
            users = self.verify == "users" and not is_ours(type(pass_).__module__)
            if users or self.verify == "each":
                _verify(op)
            if self.verify == "each" and pass_.conversion is not None:
                pass_.conversion.check(op)
        except IRCError as error:
            error.pass_name = error.pass_name or pass_.name
            if error.location is UNKNOWN:
                error.location = op.location
            self._failed(pass_, op, context, error)
            raise
        except RecursionError as error:
            self._failed(pass_, op, context, error)
            raise InternalError(
                "the program is nested too deeply for this pass",
                op.location,
                pass_name=pass_.name,
            ) from error
        except Exception as error:
            self._failed(pass_, op, context, error)
            what = f"pass '{pass_.name}'"
            failure = unexpected(error, what, type(pass_).__module__, op.location)
            failure.pass_name = pass_.name
            raise failure from error
        finally:
            context.timings.append((pass_.name, time.perf_counter() - start))
        for hook in self.instrumentations:
            hook.after_pass(pass_, op, context)

    def _failed(
        self, pass_: Pass, op: Operation, context: PassContext, error: BaseException
    ) -> None:
        for hook in self.instrumentations:
            hook.after_failure(pass_, op, context, error)


def passes_of(steps: Iterable[Pass | Nested]) -> Iterator[Pass]:
    """The passes of a pipeline's steps, those inside others included."""
    for step in steps:
        if isinstance(step, Nested):
            yield from passes_of(step.steps)
        else:
            yield step


def step_text(step: Pass | Nested) -> str:
    """A step of a pipeline as text."""
    if isinstance(step, Nested):
        return f"{step.anchor}({','.join(step_text(s) for s in step.steps)})"
    return pass_text(step)


def _verify(op: Operation) -> None:
    from irc.ir.verifier import verify

    verify(op)


__all__ = [
    "Instrumentation", "Nested", "Pass", "PassContext", "PassManager",
    "Remark", "all_passes", "chosen_remarks", "load_entry_points", "lookup_pass", "make_pass",
    "option_text", "pass_text", "passes_of", "register_pass", "register_pipeline", "step_text",
]  # fmt: skip
