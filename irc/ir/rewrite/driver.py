"""Pattern rewriting: patterns indexed by operation class, one greedy driver with bounded work.

The driver also does what no pattern should repeat: folding, removal of unused pure operations,
and moving constants of commutative operations to the right.

    # addi(x, 0) -> x
    @canonicalization(AddI, name="arith.add_zero")
    def add_zero(op, rw):
        if not is_zero(op.rhs):
            return rw.no_match("the right operand is not zero")
        rw.replace(op, [op.lhs])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.attributes import Attribute, Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, OpResult, Value
from irc.ir.diagnostics import InternalError, IRCError
from irc.ir.location import UNKNOWN, fuse
from irc.ir.passes.failures import unexpected
from irc.ir.registry import lookup_op
from irc.ir.rewrite.fuel import Fuel
from irc.ir.rewrite.patterns import (
    Pattern,
    canonicalization,
    canonicalization_patterns,
    pattern,
    pattern_set,
    register_canonicalization,
)
from irc.ir.traits import (
    AllocatesMemory,
    ConstantLike,
    Pure,
    ReadsMemory,
    Terminator,
    WritesMemory,
)
from irc.ir.types import TensorType, contiguous_strides

if TYPE_CHECKING:
    from irc.ir.passes.context import PassContext

# How a folded attribute becomes a value again: per dialect, (builder, attribute, type) -> value.
_materializers: dict[str, Callable[[Builder, Attribute, Type], Value | None]] = {}


def register_materializer(
    dialect: str, function: Callable[[Builder, Attribute, Type], Value | None]
) -> None:
    """Say how constants that the folds of `dialect` give are made operations."""
    _materializers[dialect] = function


class Rewriter:
    """The only way for a pattern to change IR; tells the driver what to look at again."""

    __slots__ = ("_driver", "op", "builder", "reason")

    def __init__(self, driver: Driver, op: Operation) -> None:
        self._driver = driver
        self.op = op
        self.builder = _NotifyingBuilder(driver, op)
        self.reason = ""

    def move_to(self, op: Operation) -> None:
        """Make `op` the matched operation, before which the builder inserts."""
        self.op = op
        builder = self.builder
        builder.block = op.parent  # type: ignore[assignment]  # the driver visits attached ones
        builder.anchor = op
        builder.location = op.location
        if builder.inserted:
            builder.inserted.clear()
        self.reason = ""

    @property
    def state(self) -> Any:
        """What the pass knows that its patterns ask: its options, an analysis."""
        return self._driver.state

    def no_match(self, reason: str) -> bool:
        """Decline, with the reason; nothing may have been changed."""
        self.reason = reason
        return False

    def decline(self, reason: str) -> bool:
        """`no_match`, of an operation that a user expects to be rewritten: the reason becomes a
        remark of the pass, unless another visit rewrites the operation after all."""
        self.reason = reason
        self._driver.declined[self.op] = reason
        return False

    def remark(self, message: str, op: Operation | None = None) -> None:
        """Tell the user something about the matched operation, or `op`."""
        if self._driver.context is not None:
            self._driver.context.remark(message, op or self.op)

    def insert(self, op: Operation) -> Operation:
        """Insert a new operation before the matched one."""
        return self.builder.insert(op)

    def before(self, op: Operation) -> Builder:
        """A builder before another operation than the matched one."""
        return _NotifyingBuilder(self._driver, op)

    def after(self, op: Operation) -> Builder:
        """A builder after an operation."""
        builder = _NotifyingBuilder(self._driver, op)
        builder.anchor = op.next
        return builder

    def replace(
        self, op: Operation, new: Sequence[Value] | Value | Operation, note: str = ""
    ) -> None:
        """Replace all results of `op` by `new` and erase it."""
        if isinstance(new, Value):
            new = (new,)
        elif isinstance(new, Operation):
            if new.parent is None:
                self.insert(new)
            new = new.results
        if len(new) != len(op.results):
            raise InternalError(
                f"{op.name} has {len(op.results)} results, {len(new)} replacements given"
            )
        location = op.location
        for value in new:
            maker = value.defining_op
            if maker is not None and maker.location is not location:
                maker.location = fuse((maker.location, location), note)
        worklist = self._driver.worklist
        for old, value in zip(op.results, new):
            if old.type is not value.type:
                value = self._in_memory_of(old, value)
            users = old._users
            if users is not None:
                for user in users if users.__class__ is dict else (users,):
                    if not user.queued:
                        user.queued = True
                        worklist.append(user)
                old.replace_all_uses_with(value)
            elif value.name_hint is None:
                value.name_hint = old.name_hint
        self._driver.erase(op)

    def _in_memory_of(self, old: Value, value: Value) -> Value:
        """`value`, which replaces `old` and differs from it in its strides alone: made with these
        strides where the pattern made it, else copied."""
        type_, have = old.type, value.type
        strided = isinstance(type_, TensorType) and isinstance(have, TensorType)
        if not strided or type_.with_strides(None) is not have.with_strides(None):  # type: ignore[attr-defined]
            maker = old.defining_op
            raise InternalError(
                f"{maker.name if maker else 'a pattern'}: replacing a value of type {type_} by one "
                f"of type {have}"
            )
        maker = value.defining_op
        if maker in self.builder.inserted and "view" not in maker.attributes:  # type: ignore[union-attr]
            value.type = type_
            return value
        copy = lookup_op("layout.copy")
        assert copy is not None
        return self.insert(copy((value,), (type_,), None, (), self.op.location)).results[0]

    def erase(self, op: Operation) -> None:
        """Erase an operation without uses."""
        self._driver.erase(op)

    def replace_uses(
        self, value: Value, new: Value, keep: Callable[[Operation], bool] | None = None
    ) -> None:
        """Have the users of `value` (those for which `keep` holds) use `new`; its maker stays as
        long as somebody uses it."""
        users = [user for user in value.users if keep is None or keep(user)]
        for user in users:
            user.replace_uses_of(value, new)
            self._driver.enqueue(user)
        if value.defining_op is not None:
            self._driver.enqueue(value.defining_op)

    def set_operand(self, op: Operation, index: int, value: Value) -> None:
        """Change one operand in place."""
        old = op.operands[index].defining_op
        op.set_operand(index, value)
        self._driver.enqueue(op)
        if old is not None:
            self._driver.enqueue(old)

    def set_attribute(self, op: Operation, name: str, value: Attribute) -> None:
        """Change one attribute in place."""
        op.attributes[name] = value
        self.changed(op)

    def changed(self, op: Operation) -> None:
        """Say that `op` was changed in place."""
        self._driver.enqueue(op)
        for result in op.results:
            for user in result.users:
                self._driver.enqueue(user)


class _NotifyingBuilder(Builder):
    """A builder that tells the driver what it makes. Where the matched operation's results have
    strides, a tensor that is made without gets those of a row-major one."""

    __slots__ = ("_driver", "inserted")

    def __init__(self, driver: Driver, op: Operation) -> None:
        assert op.parent is not None
        super().__init__(op.parent, op, op.location)
        self._driver = driver
        self.inserted: list[Operation] = []

    def insert(self, op: Any) -> Any:
        super().insert(op)
        self.inserted.append(op)
        self._driver.enqueue(op)
        for result in op.results:
            type_ = result.type
            if type_.__class__ is TensorType and type_.strides is None and self.strided():
                result.type = type_.with_strides(contiguous_strides(type_.shape))
        return op

    def strided(self) -> bool:
        """Whether the results of the matched operation have strides."""
        results = () if self.anchor is None else self.anchor.results
        kinds = (result.type for result in results)
        return any(isinstance(k, TensorType) and k.strides is not None for k in kinds)


class Driver:
    """Applies patterns to the operations of a worklist until it is empty."""

    def __init__(
        self,
        patterns: Iterable[Pattern],
        fold: bool,
        counts: Counter[str],
        fuel: Fuel | None = None,
        context: PassContext | None = None,
        state: Any = None,
    ) -> None:
        self.fuel = fuel
        self.context = context
        self.state = state
        #: Why operations were declined, of those that a user expects to be rewritten.
        self.declined: dict[Operation, str] = {}
        self.stopped = False  # by want of fuel
        indexed = pattern_set(tuple(patterns), fold)
        self.plan, self.plans = indexed.plan, indexed.plans
        self.worklist: list[Operation] = []
        self.rewrites = self.limit = 0
        self.counts = counts
        self.rewriter: Rewriter | None = None

    def enqueue(self, op: Operation) -> None:
        """Look at `op` (again)."""
        if not op.queued:
            op.queued = True
            self.worklist.append(op)

    def erase(self, op: Operation) -> None:
        """Erase `op`, and look again at what made its operands."""
        for operand in op._operands:
            if operand.__class__ is OpResult:
                maker = operand.owner
                if not maker.queued:
                    maker.queued = True
                    self.worklist.append(maker)
        op.erase()

    def applied(self, name: str, op: Operation) -> None:
        """Count a rewrite, which may be one too many."""
        self.rewrites += 1
        if self.fuel is not None:
            self.fuel.spend(name, op)
        self.counts[name] += 1
        if self.rewrites > self.limit:
            busiest, times = self.counts.most_common(1)[0]
            raise InternalError(
                f"rewriting did not converge after {self.limit} rewrites; "
                f"pattern '{busiest}' was applied {times} times",
                notes=("a pattern that undoes another one, or its own result, never ends",),
            )

    def run(
        self,
        root: Operation,
        max_rewrites: int | None = None,
        rooted: bool = False,
        backward: bool = False,
    ) -> bool:
        """Rewrite inside `root`; says whether anything changed. rooted: at first only where a
        pattern is rooted. backward: the last operation first."""
        worklist = self.worklist
        collect_inside(root, worklist)
        if rooted:
            plan = self.plan
            worklist[:] = [op for op in worklist if plan(op.__class__).patterns]
        for op in worklist:
            op.queued = True
        if not backward:
            worklist.reverse()
        most = 10_000 + 16 * (len(worklist) + 1)
        self.limit = most if max_rewrites is None else max_rewrites
        visit, pop, fuel = self.visit, worklist.pop, self.fuel
        try:
            while worklist:
                if fuel is not None and fuel.is_empty:
                    self.stopped = True
                    break
                op = pop()
                op.queued = False
                if op.parent is not None:
                    visit(op)
        except IRCError as error:
            if error.location is UNKNOWN:
                error.location = op.location
            raise
        finally:
            for op in worklist:
                op.queued = False
            worklist.clear()
        return self.rewrites > 0

    def visit(self, op: Operation) -> None:
        """Make the first rewrite that applies to `op`."""
        results = op.results
        if results and results[0]._users is None and is_trivially_dead(op):
            self.erase(op)
            self.applied("dce", op)
            return
        cls = op.__class__
        plan = self.plans.get(cls)
        if plan is None:
            plan = self.plan(cls)
        if plan.commutative and constant_to_right(op):
            self.applied("constant-to-right", op)
            if self.fuel is not None and self.fuel.is_empty:
                return
        if plan.fold and self.try_fold(op):
            return
        patterns = plan.patterns
        if not patterns:
            return
        if plan.by_makers is not None:
            patterns = plan.candidates(op)
        worklist = self.worklist
        mark = len(worklist)
        for candidate in patterns:
            try:
                changed = candidate.function(op, self.at(op)) is not False
            except (IRCError, RecursionError):
                raise
            except Exception as error:
                what = f"pattern '{candidate.name}'"
                module = candidate.function.__module__
                failure = unexpected(error, what, module, op.location)
                failure.op = op
                raise failure from error
            if changed:
                self.applied(candidate.name, op)
                if op.parent is not None and not op.queued:
                    # Behind what the pattern made, changed or left without a reader.
                    op.queued = True
                    worklist.insert(mark, op)
                return

    def at(self, op: Operation) -> Rewriter:
        """The driver's one rewriter, moved to `op`."""
        rewriter = self.rewriter
        if rewriter is None:
            rewriter = self.rewriter = Rewriter(self, op)
        else:
            rewriter.move_to(op)
        return rewriter

    def try_fold(self, op: Any) -> bool:
        """Fold `op`, if it can be."""
        constants = [
            o.owner.attributes.get("value")
            if o.__class__ is OpResult and ConstantLike in o.owner.traits
            else None
            for o in op._operands
        ]
        folded = op.fold(constants)
        if folded is None:
            return False
        outcome = list(folded) if isinstance(folded, list | tuple) else [folded]
        rewriter = self.at(op)
        values: list[Value] = []
        for entry, result in zip(outcome, op.results, strict=True):
            if isinstance(entry, Value):
                values.append(entry)
                continue
            dialect = op.name.partition(".")[0]
            materialize = _materializers.get(dialect)
            value = None
            if materialize is not None:
                value = materialize(rewriter.builder, entry, result.type)
            if value is None:
                return False
            values.append(value)
        for value, result in zip(values, op.results):
            if value is result:
                return False
        rewriter.replace(op, values)
        self.applied("fold", op)
        return True


def constant_to_right(op: Operation) -> bool:
    """Exchange the first two operands where only the first is constant."""
    operands = op._operands
    # Nearly every operation that commutes ends here.
    if not operands or (first := operands[0]).__class__ is not OpResult:
        return False
    if ConstantLike not in first.owner.traits or len(operands) < 2 or is_constant(operands[1]):
        return False
    second = operands[1]
    op.operands = (second, first, *operands[2:])
    return True


def collect_inside(root: Operation, into: list[Operation]) -> None:
    """Append every operation inside `root` to `into`, pre-order."""
    for region in root.regions:
        for block in region.blocks:
            op = block.first
            while op is not None:
                into.append(op)
                if op.regions:
                    collect_inside(op, into)
                op = op.next


_removable: dict[type[Operation], bool | None] = {}


def removable_when_unused(cls: type[Operation]) -> bool | None:
    """Whether operations of `cls` without users may be removed: pure, or allocating, or only
    reading; None where each operation says so itself through `is_removable()`."""
    if cls not in _removable:
        _removable[cls] = _removable_class(cls)
    return _removable[cls]


def _removable_class(cls: type[Operation]) -> bool | None:
    traits = cls.traits
    if Terminator in traits:
        return False
    if hasattr(cls, "is_removable"):
        return None
    if Pure in traits or AllocatesMemory in traits:
        return True
    return ReadsMemory in traits and WritesMemory not in traits


def is_trivially_dead(op: Operation) -> bool:
    """Whether `op` has results, none is used, and it has no effect worth keeping."""
    results = op.results
    if not results:
        return False
    for result in results:
        if result._users is not None:
            return False
    removable = removable_when_unused(op.__class__)
    return bool(op.is_removable()) if removable is None else removable  # type: ignore[attr-defined]


def is_constant(value: Value) -> bool:
    """Whether a constant-like operation makes `value`."""
    return value.__class__ is OpResult and ConstantLike in value.owner.traits


def constant_value(value: Value) -> Attribute | None:
    """The attribute of the constant-like operation that makes `value`, or None."""
    maker = value.defining_op
    if maker is None or ConstantLike not in maker.traits:
        return None
    return maker.attributes.get("value")


def apply_patterns_greedily(
    root: Operation,
    patterns: Iterable[Pattern] = (),
    *,
    fold: bool = True,
    max_rewrites: int | None = None,
    counts: Counter[str] | None = None,
    fuel: Fuel | None = None,
) -> bool:
    """Apply patterns and folds inside `root` until nothing changes, or `fuel` is spent; says
    whether anything did.

    `counts` collects how often each pattern was applied. Raises InternalError, naming the
    busiest pattern, after `max_rewrites` (default: 16 per operation plus 10,000).
    """
    driver = Driver(patterns, fold, Counter() if counts is None else counts, fuel)
    return driver.run(root, max_rewrites)


__all__ = [
    "Driver", "Pattern", "Rewriter", "apply_patterns_greedily", "canonicalization",
    "canonicalization_patterns", "collect_inside", "constant_value", "is_constant",
    "is_trivially_dead", "pattern", "register_canonicalization", "register_materializer",
    "removable_when_unused",
]  # fmt: skip
