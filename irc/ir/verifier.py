"""Checking that a program keeps the rules: definitions, traits, dominance of values and symbols.

`verify` raises InvalidIR about the first operation that breaks one. The tables per class are made
once; types that passed an operation's constraints are remembered, so most operations cost a few
look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from irc.ir import attributes as A
from irc.ir.arity import arity_error
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, BlockArgument, Operation, OpResult, Region, Value
from irc.ir.definition import SEGMENTS, Field, Op, needs_segments
from irc.ir.diagnostics import InvalidIR
from irc.ir.dominance import dominator_tree
from irc.ir.hooks import verified
from irc.ir.location import file_positions
from irc.ir.mentions import PLACEHOLDER, known_mentions, mentioned_symbols
from irc.ir.registry import lookup_op
from irc.ir.traits import (
    BindsSymbol,
    Declarable,
    IsolatedFromAbove,
    NoTerminator,
    SameOperandsAndResultType,
    StatesFacts,
    SymbolOp,
    SymbolTable,
    Terminator,
)


def verify(op: Operation, *, uses: bool = False) -> None:
    """Raise InvalidIR if `op` or anything inside it breaks a rule.

    uses: also check that the use lists agree with the operands (slow, for debugging irc).
    """
    verifier = _Verifier(op)
    verifier.check(op)
    for inner in verifier.referring:
        inner.verify_references()
    if uses:
        check_uses(op)


class Stated:
    """The operations that state facts about symbols (`StatesFacts`) and dominate what is verified.
    `memo` is what an operation's `verify_facts` made of them: gone where one is out of scope."""

    __slots__ = ("memo", "ops")

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self.memo: Any = None

    def shrink(self, size: int) -> None:
        """Leave the scope in which all but the first `size` stand."""
        if len(self.ops) > size:
            del self.ops[size:]
            self.memo = None


def misspelt(op: Op, name: str) -> list[str]:
    """A note on the attribute that may be meant to be `name`, of those that no field is called."""
    from difflib import get_close_matches  # only a mistake needs it

    others = [key for key in op.attributes if key not in type(op).attribute_fields]
    return [f"did you mean it by '{key}'?" for key in get_close_matches(name, others, 1)]


def written(cls: type[Attribute]) -> list[str]:
    """A note on how attributes of a class are written: the example of its docstring."""
    example = re.search(r"`([^`]*[^`\w][^`]*)`", cls.__doc__ or "")
    return [f"one is written {example[1]}"] if example else []


class _ClassRules:
    """What an operation class asks for, in the form that is quick to check."""

    __slots__ = (
        "alike_operands", "attributes", "checks_more", "cls", "fits", "isolated", "needed",
        "operands", "parent_classes", "parents", "refers", "results", "same_type", "segmented",
        "verify_facts", "verify_op",
    )  # fmt: skip

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.operands: Sequence[Field] = cls.operand_fields
        self.results: Sequence[Field] = cls.result_fields
        self.segmented = needs_segments(cls.operand_fields)
        self.same_type = SameOperandsAndResultType in cls.traits
        # The operations that may hold this one (a terminator of one kind of body); (): any.
        self.parents: Sequence[str] = getattr(cls, "parents", ())
        self.parent_classes = tuple(filter(None, map(lookup_op, self.parents)))
        self.attributes = [
            (name, field.constraint, field.kind == "one", field.words)
            for name, field in cls.attribute_fields.items()
        ]
        self.needed = [entry for entry in self.attributes if entry[2]]
        self.isolated = IsolatedFromAbove in cls.traits
        # What the class checks itself: None, not what `Op` has, where that is nothing.
        self.verify_op: Any = _own(cls, "verify_op")
        self.verify_facts: Any = _own(cls, "verify_facts")
        self.refers = _own(cls, "verify_references") is not None
        self.checks_more = bool(self.verify_op or self.verify_facts or self.refers)
        # The number of operands where these and one result, and nothing else, have one type.
        more = self.parents or self.segmented or cls.region_fields
        alike = self.same_type and len(cls.result_fields) == 1 and not more
        self.alike_operands = len(cls.operand_fields) if alike else None
        # Operand types, result types, group sizes and number of regions that passed; for one
        # type alone see `alike_operands`.
        self.fits: set[Any] = set()

    def check(self, op: Op) -> None:
        attributes = op.attributes
        for name, cls, required, words in self.attributes if attributes else self.needed:
            attr = attributes.get(name)
            if attr is None:
                if required:
                    op.fail(f"the attribute '{name}' is missing", *misspelt(op, name))
            elif not isinstance(attr, cls):
                op.fail(f"the attribute '{name}' is {attr}, not a {cls.__name__}", *written(cls))
            elif words is not None and attr not in words:
                known = ", ".join(word.value for word in words)
                op.fail(f"{name} '{attr.parameters[0]}' is not one of {known}")
        operands, results = op._operands, op.results
        if len(operands) == self.alike_operands and len(results) == 1 and not op.regions:
            type_ = results[0].type
            if type_ in self.fits:
                for value in operands:
                    if value.type is not type_:
                        break
                else:
                    return
        if self.parents:
            parent = op.parent_op
            if parent is not None and parent.is_registered:
                if not isinstance(parent, self.parent_classes):
                    self.misplaced(op, parent)
        key = (
            len(operands),
            attributes.get(SEGMENTS) if self.segmented else None,
            len(op.regions),
            *[v.type for v in operands],
            *[r.type for r in results],
        )
        if key not in self.fits:
            self.check_types(op)
            self.fits.add(key)
            if self.alike_operands is not None:
                self.fits.add(results[0].type)

    def misplaced(self, op: Op, parent: Operation) -> NoReturn:
        op.fail(f"stands in {parent.name}, not in {' or '.join(self.parents)}")

    def check_types(self, op: Op) -> None:
        counts = len(op._operands), len(op.results), len(op.regions)
        wrong = arity_error(self.cls, *counts)
        if wrong is not None:
            op.fail(wrong)
        sizes = self.segment_sizes(op) if self.segmented else _sizes(self.operands, counts[0])
        _check_group(op, "operand", self.operands, sizes, op._operands)
        _check_group(op, "result", self.results, _sizes(self.results, counts[1]), op.results)
        if self.same_type:
            types = dict.fromkeys([v.type for v in (*op._operands, *op.results)])
            if len(types) > 1:
                op.fail(f"operands and results have one type, not {_and(types)}")

    def segment_sizes(self, op: Op) -> Sequence[int]:
        attr = op.attributes.get(SEGMENTS)
        if not isinstance(attr, A.DenseIntsAttr):
            op.fail(f"the attribute '{SEGMENTS}' is missing")
        sizes: Sequence[int] = attr.values
        if len(sizes) != len(self.operands) or sum(sizes) != len(op._operands):
            op.fail(f"{SEGMENTS} {list(sizes)} does not fit {len(op._operands)} operands")
        for size, field in zip(sizes, self.operands):
            most = {"one": 1, "optional": 1}.get(field.kind, size)
            if not (size >= (field.kind == "one") and 0 <= size <= most):
                op.fail(f"{size} operands given for '{field.name}'")
        return sizes


def _own(cls: type[Op], name: str) -> Any:
    """A method that is not the one of `Op`, else None."""
    method = getattr(cls, name)
    return None if method is getattr(Op, name) else method


def _sizes(fields: Sequence[Field], count: int) -> list[int]:
    """How many values fall to each group, where at most one group is open."""
    spare = count - sum(1 for f in fields if f.kind == "one")
    return [1 if f.kind == "one" else spare for f in fields]


def _check_group(
    op: Op, what: str, fields: Sequence[Field], sizes: Sequence[int], values: Sequence[Value]
) -> None:
    position = 0
    for field, size in zip(fields, sizes):
        for value in values[position : position + size]:
            if not field.constraint.test(value.type):
                op.fail(f"{what} '{field.name}' is {value.type}, not "
                        f"{field.constraint.description}")  # fmt: skip
        position += size


def _and(types: Iterable[Type]) -> str:
    return " and ".join(map(str, types))


# By class; None for an operation that irc does not know. A new hook empties it.
_rules: dict[type[Operation], _ClassRules | None] = verified


class _Verifier:
    """One walk. `visible` and `symbols` hold what may be used where the walk stands; what a
    region adds is dropped from their ends when it is left."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.visible: dict[Value, None] = {}
        self.symbols: dict[str, None] = {}
        self.bound: set[str] = set()
        self.referring: list[Op] = []
        self.stated = Stated()
        # Inside a part of a function the binders around it are not seen.
        self.in_function = False

    def check(self, op: Operation) -> None:
        """Check `op` and what is inside it."""
        cls = op.__class__
        try:
            rules = _rules[cls]
        except KeyError:
            rules = _rules[cls] = _ClassRules(cls) if issubclass(cls, Op) else None
        if rules is not None:
            rules.check(op)  # type: ignore[arg-type]
        visible = self.visible
        for value in op._operands:
            if value not in visible:
                self.not_visible(op, value)
        if op.successors:
            self.check_successors(op)
        if rules is not None and rules.isolated:
            self.isolated(op)
        else:
            if self.in_function:
                if op.attributes or op.regions:
                    self.check_symbols(op)
                else:
                    for result in op.results:
                        if known_mentions.get(result.type, True):
                            self.check_symbols(op)
                            break
            if op.regions:
                self.regions(op)
        if rules is not None and rules.checks_more:
            if rules.verify_op is not None:
                rules.verify_op(op)
            if rules.verify_facts is not None and self.in_function:
                rules.verify_facts(op, self.stated)
            if rules.refers:
                self.referring.append(op)  # type: ignore[arg-type]
        for result in op.results:
            visible[result] = None

    # -- regions

    def isolated(self, op: Operation) -> None:
        """Check the regions of an operation that sees nothing from outside."""
        outer = self.visible, self.symbols, self.bound, self.stated, self.in_function
        self.visible, self.symbols, self.bound, self.stated = {}, {}, set(), Stated()
        self.in_function = SymbolOp in op.traits
        if self.in_function:
            self.bind_arguments(op)
        self.regions(op)
        if self.in_function:
            # What the function says of its results may mention all that its body binds.
            self.symbols = dict.fromkeys([*_local_symbols(op), *sorted(self.bound)])
            self.check_symbols(op)
        if SymbolTable in op.traits:
            self.check_names(op)
        self.visible, self.symbols, self.bound, self.stated, self.in_function = outer

    def bind_arguments(self, op: Operation) -> None:
        """Check that the symbols in the arguments' types are bound: by the function itself
        (`local_symbols`) or by binders of its arguments in the entry block."""
        self.symbols.update(dict.fromkeys(_local_symbols(op)))
        for region in op.regions:
            entry = region.blocks[0] if region.blocks else Block()
            bound: set[str] | None = None
            for argument in entry.arguments:
                for name in sorted(mentioned_symbols(argument.type)):
                    if bound is None:
                        bound = _bound_at_entry(entry)
                    if name not in self.symbols and name not in bound:
                        raise InvalidIR(
                            f"symbol '{name}' in the type {argument.type} of argument "
                            f"{argument.index} is bound by no sym.bind_size or sym.bind of an "
                            "argument",
                            op=op,
                        )

    def regions(self, op: Operation) -> None:
        """Check all regions of `op`."""
        visible, symbols = self.visible, self.symbols
        for region in op.regions:
            known, named, stated = len(visible), len(symbols), len(self.stated.ops)
            if region.parent is not op:
                raise InvalidIR("a region does not know the operation that owns it", op=op)
            if IsolatedFromAbove not in op.traits:
                self.open_symbols(op)
            if len(region.blocks) > 1:
                self.blocks(region)
            elif region.blocks:
                self.block(region.blocks[0])
            elif op.is_registered and not op.traits & {NoTerminator, Declarable}:
                raise InvalidIR("a region without a block", op=op)
            _shrink(visible, known)
            _shrink(symbols, named)
            self.stated.shrink(stated)

    def open_symbols(self, op: Operation) -> None:
        """Make the symbols visible that `op` declares for its regions."""
        for name in _local_symbols(op):
            if name in self.bound:
                raise InvalidIR(f"'{name}' is a symbol of the function already", op=op)
            self.symbols[name] = None

    def blocks(self, region: Region) -> None:
        """Check the blocks of a region, each after the one that dominates it."""
        children, unreachable = dominator_tree(region)
        # A block to check, or the sizes to shrink to when all that it dominates is checked.
        stack: list[Block | tuple[int, int, int]] = [region.blocks[0]]
        while stack:
            entry = stack.pop()
            if isinstance(entry, tuple):
                _shrink(self.visible, entry[0])
                _shrink(self.symbols, entry[1])
                self.stated.shrink(entry[2])
                continue
            stack.append((len(self.visible), len(self.symbols), len(self.stated.ops)))
            self.block(entry)
            stack.extend(reversed(children[entry]))
        if unreachable:
            # Nothing reaches them, so everything dominates them.
            for block in region.blocks:
                self.visible.update(dict.fromkeys(block.arguments))
                for op in block.ops:
                    self.visible.update(dict.fromkeys(op.results))
            for block in unreachable:
                self.block(block)

    def block(self, block: Block) -> None:
        """Check the arguments, the operations and the end of a block."""
        parent = block.parent_op
        assert parent is not None
        visible = self.visible
        for position, argument in enumerate(block.arguments):
            if argument.owner is not block or argument.index != position:
                raise InvalidIR(f"block argument {position} is out of place", op=parent)
            visible[argument] = None
        op = block.first
        last = block.last
        while op is not None:
            if op.parent is not block:
                raise InvalidIR("an operation does not know its block", op=op)
            if op is not last and Terminator in op.traits:
                raise InvalidIR("a terminator is not the last operation of its block", op=op)
            self.check(op)
            op = op.next
        if NoTerminator not in parent.traits and parent.is_registered:
            if last is None or (last.is_registered and Terminator not in last.traits):
                raise InvalidIR(
                    "the block ends without a terminator", op=parent if last is None else last
                )

    def check_successors(self, op: Operation) -> None:
        region = None if op.parent is None else op.parent.parent
        for successor in op.successors:
            if successor.parent is not region:
                raise InvalidIR("a successor is in another region", op=op)
            if region is not None and successor is region.blocks[0]:
                raise InvalidIR("the entry block is a successor", op=op)
        if op.is_registered and Terminator not in op.traits:
            raise InvalidIR("only a terminator has successors", op=op)

    def check_names(self, op: Operation) -> None:
        """Check that no two operations of a symbol table have one name."""
        seen: dict[Attribute, Operation] = {}
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    name = inner.attributes.get("sym_name")
                    if name is None or SymbolOp not in inner.traits:
                        continue
                    if name in seen:
                        raise InvalidIR(f"the name {name} is given twice", op=inner)
                    seen[name] = inner

    # -- values and symbols

    def not_visible(self, op: Operation, value: Value) -> None:
        """Raise InvalidIR unless `value` stands outside of what is verified."""
        number = next(i for i, v in enumerate(op._operands) if v is value)
        where = f"operand {number}" + (f" (%{value.name_hint})" if value.name_hint else "")
        maker = value.defining_op
        block = value.parent_block
        if block is None:
            self.refuse(op, f"{where} is made by an operation that is in no block", maker)
        if op is self.root:
            return
        if not _encloses(block, op):
            assert op.parent is not None
            reason = (
                "does not dominate this use" if block.parent is op.parent.parent
                else "is defined in a region that does not enclose this operation"
            )
            self.refuse(op, f"{where} {reason}", maker)
        isolated = next((a for a in op.ancestors() if IsolatedFromAbove in a.traits), None)
        if isolated is not None and not _inside(block, isolated):
            self.refuse(op, f"{where} comes from outside of {isolated.name}, which is isolated",
                        maker)  # fmt: skip
        if not _encloses(block, self.root):
            self.refuse(op, f"{where} is used before its definition", maker)

    def refuse(self, op: Operation, message: str, maker: Operation | None) -> NoReturn:
        """Raise InvalidIR about a use of what `maker` makes."""
        notes = () if maker is None else (f"it is made by {maker.name}, {_where(maker)}",)
        raise InvalidIR(message, op=op, notes=notes)

    def check_symbols(self, op: Operation) -> None:
        """Check that the symbols in the result types and attributes of `op` are bound."""
        symbols = self.symbols
        for result in op.results:
            named = mentioned_symbols(result.type)
            if named:
                for name in sorted(named):
                    if name not in symbols and not _bound_by_users(op, name):
                        self.unbound(op, name, f"the type {result.type}")
        for key, attr in op.attributes.items():
            mentioned = known_mentions.get(attr)
            if mentioned is None:
                mentioned = mentioned_symbols(attr)
            if mentioned:
                missing = mentioned.difference(symbols)
                if missing:
                    self.check_attribute(op, key, missing)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    for name in sorted(mentioned_symbols(argument.type)):
                        if name not in symbols:
                            self.unbound(op, name, f"the type {argument.type}")
        if StatesFacts in op.traits:
            self.stated.ops.append(op)
            self.bind(op)

    def check_attribute(self, op: Operation, key: str, missing: frozenset[str]) -> None:
        """Check the symbols of one attribute that were not bound before: `op` binds them for its
        own attributes."""
        if key == "function_type":
            return
        own = set(_local_symbols(op))
        placeholders = getattr(op, "placeholder_count", 0)
        for name in sorted(missing):
            if name in own or _bound_by_users(op, name):
                continue
            match = PLACEHOLDER.match(name)
            if match is not None and int(match[1]) < placeholders:
                continue
            self.unbound(op, name, f"the attribute '{key}'")

    def bind(self, op: Operation) -> None:
        """Take note of the symbol that a binder binds."""
        attr = op.attributes.get("symbol")
        if isinstance(attr, A.StringAttr):
            if attr.value in self.bound:
                raise InvalidIR(f"symbol '{attr.value}' is bound a second time", op=op)
            self.bound.add(attr.value)
            self.symbols[attr.value] = None

    def unbound(self, op: Operation, name: str, where: str) -> NoReturn:
        """Raise InvalidIR about a symbol without a dominating binder."""
        raise InvalidIR(f"symbol '{name}' in {where} is not bound here", op=op)


def _local_symbols(op: Operation) -> Sequence[str]:
    """The symbols that `op` itself binds for its regions (axes, a kernel's sizes)."""
    declared = getattr(op, "local_symbols", None)
    return () if declared is None else declared()


def _bound_at_entry(block: Block) -> set[str]:
    """The symbols that binders of a function's arguments bind in its entry block."""
    symbols = set()
    for argument in block.arguments:
        for user in argument.users:
            attr = user.attributes.get("symbol")
            if isinstance(attr, A.StringAttr) and user.parent is block:
                if BindsSymbol in user.traits:
                    symbols.add(attr.value)
    return symbols


def _bound_by_users(op: Operation, name: str) -> bool:
    """Whether a size or stride of a result of `op` is what the symbol is bound to."""
    for result in op.results:
        for user in result.users:
            attr = user.attributes.get("symbol")
            if isinstance(attr, A.StringAttr) and attr.value == name:
                if BindsSymbol in user.traits:
                    return True
    return False


def _shrink(table: dict[Any, None], size: int) -> None:
    if size == 0:
        table.clear()
    while len(table) > size:
        table.popitem()


def _encloses(block: Block, op: Operation) -> bool:
    """Whether `op` stands in `block`, at any depth."""
    return any(a.parent is block for a in (op, *op.ancestors()))


def _inside(block: Block, op: Operation) -> bool:
    """Whether `block` is part of `op`."""
    owner = block.parent_op
    return owner is not None and (owner is op or op in owner.ancestors())


def _where(op: Operation) -> str:
    positions = file_positions(op.location)
    if not positions:
        return "of unknown location"
    return f"{positions[0].filename}:{positions[0].line}:{positions[0].column}"


def check_uses(root: Operation) -> None:
    """Raise InvalidIR if a use list inside `root` disagrees with the operands."""
    counts: dict[Value, dict[Operation, int]] = {}
    for op in root.walk():
        for value in op._operands:
            users = counts.setdefault(value, {})
            users[op] = users.get(op, 0) + 1
    for op in root.walk():
        values: list[OpResult | BlockArgument] = list(op.results)
        values += [a for r in op.regions for b in r.blocks for a in b.arguments]
        for value in values:
            recorded: Any = value._users
            if recorded is None:
                recorded = {}
            elif recorded.__class__ is not dict:
                recorded = {recorded: 1}
            if recorded != counts.get(value, {}):
                raise InvalidIR(f"the use list of {value!r} is wrong", op=op)


__all__ = ["check_uses", "verify"]
