"""Conversions: what takes every operation from one level to the next, or tells of each why not.

A pass that is such a boundary says in one place what may remain, and its converters, one function
for each operation or family of them, say what the others become:

    TO_LOOP = Conversion("convert-to-loop", func.FuncOp, ConversionTarget(legal=("loop", "sym")))

    @TO_LOOP.converts(graph.Exp)
    def exp(c, op):
        if is_complex(op.value):
            decline("kernels have no complex numbers")
        ...

`Conversion.apply` walks, converts and collects every failure. A user's operation is converted by
one function too, which names the boundary by its pass:

    @irc.converts(Scale, to="convert-aten-to-graph")
    def scale(c):
        return c.pointwise("mul", c.source, c.full(c.by, c.result))

One function may serve several operations: what tells them apart is data of the registration, which
the function gets by keyword:

    @converts("aten.amax.default", largest=True)
    @converts("aten.amin.default", largest=False)
    def extreme(c, *, largest):
        ...

A conversion spends no fuel (`irc.ir.rewrite.fuel`): what a level has no place for can't be left
as it is.
"""

from __future__ import annotations

import functools
import pkgutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn, Protocol, TypeVar

import attrs

from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR, IRCError, UserError
from irc.ir.location import file_positions
from irc.ir.passes.failures import is_ours, unexpected
from irc.ir.registry import boundaries

Legality = Callable[[Any], bool]
Key = str | type[Operation]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

#: How many kinds of failures, and places of each, an error lists.
MAX_KINDS = 20
MAX_PLACES = 6


class Declined(Exception):
    """A converter does not cover this use of its operation; the message says why."""


class StartAgain(Exception):
    """A state can't go on with what it has decided: whoever applied the conversion applies it
    again, otherwise."""


def decline(reason: str) -> NoReturn:
    """Leave the operation to another converter, or refuse it where there is none."""
    raise Declined(reason)


class ConversionTarget:
    """Which operations may remain behind a conversion.

    legal, illegal: names of dialects, and classes. where: classes that may remain where a test of
    the operation holds. others: what no rule names and no converter takes. The nearest rule
    decides: that of the operation's class, then of those above it, then of its dialect.
    """

    def __init__(
        self,
        *,
        legal: Iterable[Key] = (),
        illegal: Iterable[Key] = (),
        where: Mapping[type[Operation], Legality] | None = None,
        others: bool | Legality = False,
    ) -> None:
        self.rules: dict[Key, bool | Legality] = dict.fromkeys(legal, True)
        self.rules.update(dict.fromkeys(illegal, False))
        for cls, test in (where or {}).items():
            self.rules[cls] = test
        self.others = others

    def rule_of(self, cls: type[Operation]) -> bool | Legality | None:
        """Whether operations of a class may remain, or the test that says it of each; None where
        no rule names them."""
        keys: tuple[Any, ...] = (*cls.__mro__, cls.name.partition(".")[0])
        return next((self.rules[key] for key in keys if key in self.rules), None)


@attrs.frozen(eq=False)
class Converter:
    """A function that converts the operations that `keys` name: their names, or their classes and
    what is made from these. Of several, that of the highest benefit is asked first. `data` is what
    the function gets by keyword."""

    function: Callable[..., Any]
    keys: tuple[Key, ...]
    benefit: int
    data: Mapping[str, Any] = attrs.field(factory=dict)
    call: Callable[..., Any] = attrs.field(init=False)
    """The function with its data."""

    @call.default
    def _with_data(self) -> Callable[..., Any]:
        return functools.partial(self.function, **self.data) if self.data else self.function

    @property
    def name(self) -> str:
        """How errors name it."""
        return str(getattr(self.function, "__name__", self.function)).strip("_")

    def replaces(self, other: Converter) -> bool:
        """Whether it is the same function, defined again."""
        mine, theirs = self.function, other.function
        return (mine.__module__, mine.__qualname__) == (theirs.__module__, theirs.__qualname__)


class ConversionState(Protocol):
    """What a boundary does with the operations of one function, in their order."""

    def keep(self, op: Any) -> None:
        """See an operation that may remain."""

    def convert(self, op: Any, function: Callable[..., Any]) -> None:
        """Convert `op` by a converter, or raise Declined where it doesn't cover this one. What was
        put before `op` by then is erased."""

    def failed(self, op: Any) -> None:
        """See an operation that no converter takes; others that use its results follow."""


@attrs.frozen
class _ConversionPlan:
    """What a boundary does with the operations of one class."""

    legal: bool | Legality
    converters: Sequence[Converter]


class Conversion:
    """A boundary between two levels: what may remain, and the converters of the rest.

    pass_name: the pass that applies it. level: the functions in whose bodies `target` holds
    afterwards. absent: what is told of an operation without a converter. later: the pass that is
    the next boundary; what it has converters for may remain until then. package: the package whose
    files have the converters, imported when they are first asked for.
    """

    def __init__(
        self,
        pass_name: str,
        level: type[Operation],
        target: ConversionTarget,
        absent: str,
        later: str = "",
        package: str = "",
    ) -> None:
        self.pass_name = pass_name
        self.level = level
        self.target = target
        self.absent = absent
        self.later = later
        self.has_foreign = False  # whether converters in it don't come with irc
        self.revision = 0  # counts what is registered and withdrawn
        self._package, self._is_reading = package, False
        self._lock = threading.RLock()
        self._table: dict[Key, list[Converter]] = {}
        self._plans: dict[type[Operation], _ConversionPlan] = {}
        boundaries.add(self)

    # -- its converters

    @property
    def is_read(self) -> bool:
        """Whether the files of its package are read."""
        return not self._package

    @property
    def registered(self) -> Mapping[Key, Sequence[Converter]]:
        """The converters that are registered by now."""
        return self._table

    @property
    def table(self) -> Mapping[Key, Sequence[Converter]]:
        """The converters by the names and classes that they are registered for."""
        if self._package:
            with self._lock:
                self._read()
        return self._table

    def _read(self) -> None:
        """Read the files of its package; another thread that asks meanwhile waits until all are."""
        if self._package and not self._is_reading:
            self._is_reading, package = True, self._package
            try:
                for module in pkgutil.iter_modules(import_module(package).__path__, package + "."):
                    import_module(module.name)
                self._package = ""
            finally:
                self._is_reading = False

    def converts(
        self, *keys: Key, benefit: int = 1, **data: Any
    ) -> Callable[[FunctionT], FunctionT]:
        """Register a converter of operations: by name ("aten.add.Tensor"), or by class. `data` are
        its keyword-only parameters.

        Raises UserError where there is one of the same benefit, for what may remain, and for other
        data than the function takes.
        """
        if not keys:
            raise UserError("a converter needs the operations that it converts")

        def register(function: FunctionT) -> FunctionT:
            self._register(Converter(function, keys, benefit, data))
            return function

        return register

    def _register(self, converter: Converter) -> None:
        _check_data(converter)
        for key in converter.keys:
            shown = key if isinstance(key, str) else key.name or key.__name__
            if not isinstance(key, str) and self.target.rule_of(key) is True:
                raise UserError(f"'{shown}' remains as it is behind {self.pass_name}")
            others = [c for c in self._table.get(key, ()) if not c.replaces(converter)]
            if any(c.benefit == converter.benefit for c in others):
                raise UserError(
                    f"two converters of '{shown}' for {self.pass_name}",
                    notes=("one with a higher `benefit` is asked first",),
                )
            self._table[key] = sorted([*others, converter], key=lambda c: -c.benefit)
        self.has_foreign = self.has_foreign or not is_ours(converter.function.__module__)
        self.revision += 1
        _forget_plans()

    def withdraw(self, function: Callable[..., Any]) -> None:
        """Take back what `converts` registered; nothing happens if it is gone."""
        for key, converters in list(self._table.items()):
            left = self._table[key] = [c for c in converters if c.function is not function]
            if not left:
                del self._table[key]
        every = (c for converters in self._table.values() for c in converters)
        self.has_foreign = any(not is_ours(c.function.__module__) for c in every)
        self.revision += 1
        _forget_plans()

    def converters_of(self, cls: type[Operation]) -> Sequence[Converter]:
        """The converters of a class of operations, in the order in which they are asked."""
        return self._plan(cls).converters

    def is_legal(self, op: Operation) -> bool:
        """Whether `op` may remain."""
        legal = self._plan(op.__class__).legal
        return legal if isinstance(legal, bool) else legal(op)

    def _plan(self, cls: type[Operation]) -> _ConversionPlan:
        plan = self._plans.get(cls)
        if plan is None:
            keys: tuple[Any, ...] = (cls.name, *cls.__mro__)
            table = self.table
            every = [c for key in keys for c in table.get(key, ())]
            legal = self.target.rule_of(cls)
            if legal is None:
                legal = False if every else self._may_wait(cls) or self.target.others
            plan = _ConversionPlan(legal, sorted(every, key=lambda c: -c.benefit))
            self._plans[cls] = plan
        return plan

    def _may_wait(self, cls: type[Operation]) -> bool:
        """Whether the next boundary, or one behind it, has a converter for a class."""
        if not self.later:
            return False
        following = conversion(self.later)
        return bool(following.converters_of(cls)) or following._may_wait(cls)

    # -- applying it

    def apply(self, ops: Iterable[Operation], state: ConversionState) -> int:
        """Convert the illegal ones of `ops`, in order, and say how many these were.

        Raises InvalidIR that lists every one that no converter takes. The others are tried though
        one has failed; what they raise then is listed with it.
        """
        failures: dict[Operation, Sequence[str]] = {}
        plans, convert, keep = self._plans, state.convert, state.keep
        converted = 0
        for op in ops:
            plan = plans.get(op.__class__)
            if plan is None:
                plan = self._plan(op.__class__)
            legal = plan.legal
            if legal.__class__ is not bool:
                legal = legal(op)  # type: ignore[operator]
            if legal:
                keep(op)
                continue
            try:
                why = self._refused(op, plan, convert)
            except IRCError as error:
                if not failures:
                    raise
                why = [error.message]
            if why:
                failures[op] = why
                state.failed(op)
            else:
                converted += 1
        if failures:
            raise self.failure(failures)
        return converted

    def _refused(
        self,
        op: Operation,
        plan: _ConversionPlan,
        convert: Callable[[Any, Callable[..., Any]], None],
    ) -> Sequence[str]:
        """Why no converter takes an operation; empty where one has converted it."""
        before, reasons = op.prev, []
        for converter in plan.converters:
            try:
                convert(op, converter.call)
                return ()
            except Declined as declined:
                reasons.append(f"{converter.name}: {declined}")
                while (previous := op.prev) is not None and previous is not before:
                    previous.erase()
            except (IRCError, RecursionError, StartAgain):
                raise
            except Exception as error:
                module = converter.function.__module__
                failure = unexpected(error, f"converter '{converter.name}'", module, op.location)
                failure.op = op
                raise failure from error
        return reasons or [self.absent]

    # -- what it refuses

    def check(self, root: Operation) -> None:
        """Raise InvalidIR that lists what may not remain in the functions of the level in `root`
        (or in `root` itself)."""
        inside = [op for region in root.regions for block in region.blocks for op in block.ops]
        functions = [op for op in (root, *inside) if isinstance(op, self.level)]
        left = [op for f in functions for op in _body(f) if not self.is_legal(op)]
        if left:
            raise self.failure({op: ["it is left behind this pass"] for op in left})

    def failure(self, reasons: Mapping[Operation, Sequence[str]]) -> InvalidIR:
        """The error that lists operations, alike ones together: the lines that they come from, and
        why each converter declined."""
        kinds: dict[tuple[str, tuple[str, ...]], list[Operation]] = {}
        for op, why in reasons.items():
            kinds.setdefault((op.name, tuple(why)), []).append(op)
        notes = [
            f"'{name}'{_places(ops)}: {'; '.join(why)}"
            for (name, why), ops in [*kinds.items()][:MAX_KINDS]
        ]
        if len(kinds) > MAX_KINDS:
            rest = Counter(op.name for ops in [*kinds.values()][MAX_KINDS:] for op in ops)
            notes.append("and " + ", ".join(f"{n} '{name}'" for name, n in rest.items()))
        if any(self.absent in why for why in reasons.values()):
            notes.append(
                f'a function of yours converts it: @irc.converts(OpClass, to="{self.pass_name}")'
            )
        first = next(iter(reasons))
        return InvalidIR(
            f"{len(reasons)} operation(s) could not be converted",
            op=first,
            pass_name=self.pass_name,
            notes=tuple(notes),
        )


def _check_data(converter: Converter) -> None:
    """Raise UserError for data that the function doesn't take or misses."""
    code = getattr(converter.function, "__code__", None)
    if code is None:  # an object that is called, or C's
        return
    first = code.co_argcount
    takes = set(code.co_varnames[first : first + code.co_kwonlyargcount])
    wants = takes - set(converter.function.__kwdefaults__ or ())
    wrong = sorted((converter.data.keys() - takes) | (wants - converter.data.keys()))
    if wrong:
        raise UserError(
            f"converter '{converter.name}' is registered with {sorted(converter.data)}: it "
            f"{'takes no' if wrong[0] in converter.data else 'needs'} '{wrong[0]}'",
            notes=("data of a registration are the function's keyword-only parameters",),
        )


def _body(function: Operation) -> Iterator[Operation]:
    for region in function.regions:
        for block in region.blocks:
            yield from block.ops


def _places(ops: Sequence[Operation]) -> str:
    """How many operations these are, and the lines of the model that they come from."""
    places: dict[str, None] = {}
    for op in ops:
        positions = file_positions(op.location)
        if positions:
            places[f"{positions[0].filename}:{positions[0].line}"] = None
    shown = list(places)[:MAX_PLACES]
    if len(places) > MAX_PLACES:
        shown.append(f"{len(places) - MAX_PLACES} more lines")
    count = f", {len(ops)} of them," if len(ops) > 1 else ""
    return count + (f" from {', '.join(shown)}" if shown else "")


# -- boundaries by name

def _forget_plans() -> None:
    """What a boundary does with a class may change with the converters of any later one."""
    for boundary in boundaries:
        boundary._plans.clear()


def conversion(pass_name: str) -> Conversion:
    """The boundary that a pass is, importing its file if need be. Raises UserError."""
    from irc.ir.passes import all_passes, lookup_pass

    boundary: Conversion | None = lookup_pass(pass_name).conversion
    if boundary is None:
        known = [name for name, cls in all_passes().items() if cls.conversion is not None]
        raise UserError(
            f"pass '{pass_name}' is no boundary between levels",
            notes=(f"those that are: {', '.join(known)}",),
        )
    return boundary


def converts(
    *keys: Key, to: str, benefit: int = 2, **data: Any
) -> Callable[[FunctionT], FunctionT]:
    """Register a converter of operations, by class or by name, for the boundary that the pass `to`
    is ("convert-to-loop"). It is asked before irc's own, and may `decline("why")`. `data` are its
    keyword-only parameters.
    """
    return conversion(to).converts(*keys, benefit=benefit, **data)
