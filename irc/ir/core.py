"""Values, operations, blocks and regions: the graph that every level is made of.

Operations sit in a doubly linked list inside their block. A value keeps its uses as `None`, as
the one operation that uses it once, or as a dictionary from operation to number of uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from irc.ir.attributes import Attribute, Type
from irc.ir.gc import gc_paused
from irc.ir.hooks import HasText
from irc.ir.location import UNKNOWN, Location
from irc.ir.use_places import LONG, note_replaced, places_of
from irc.ir.walks import walk, walk_back


class Value:
    """Something an operation can use: an operation's result or a block's argument."""

    __slots__ = ("type", "_users", "name_hint")

    type: Type
    name_hint: str | None
    # None, the one operation that uses the value once, or the uses of each operation.
    _users: Any

    @property
    def users(self) -> Iterator[Operation]:
        """The operations that use this value, each once, in the order of their first use."""
        users = self._users
        if users is None:
            return iter(())
        if users.__class__ is dict:
            return iter(tuple(users))
        return iter((users,))

    @property
    def has_uses(self) -> bool:
        """Whether any operation uses this value."""
        return self._users is not None

    @property
    def use_count(self) -> int:
        """How many operands refer to this value."""
        users = self._users
        if users is None:
            return 0
        if users.__class__ is dict:
            return sum(users.values())
        return 1

    @property
    def has_one_use(self) -> bool:
        """Whether exactly one operand refers to this value."""
        return self.use_count == 1

    @property
    def defining_op(self) -> Operation | None:
        """The operation that makes this value; None for a block argument."""
        return None

    @property
    def described(self) -> str:
        """The value as a message names it: its name in the text, else where it comes from."""
        return f"%{self.name_hint}" if self.name_hint else self._origin

    @property
    def _origin(self) -> str:
        raise NotImplementedError

    @property
    def parent_block(self) -> Block | None:
        """The block in which this value is defined."""
        raise NotImplementedError

    def replace_all_uses_with(self, new: Value) -> None:
        """Make every user of this value use `new` instead."""
        if new is self:
            return
        users = self._users
        if users is not None:
            uses = users.items() if users.__class__ is dict else ((users, 1),)
            for user, count in uses:
                operands = user._operands
                for place in places_of(user, self, count):
                    operands[place] = new
                    _add_use(new, user)
                if len(operands) > LONG:
                    note_replaced(self, new)
            self._users = None
        if new.name_hint is None:
            new.name_hint = self.name_hint

    def replace_uses_if(self, new: Value, keep: Callable[[Operation], bool]) -> None:
        """Replace the uses by operations for which `keep` returns True."""
        for user in self.users:
            if keep(user):
                user.replace_uses_of(self, new)


def _add_use(value: Value, user: Operation) -> None:
    users = value._users
    if users is None:
        value._users = user
    elif users.__class__ is dict:
        users[user] = users.get(user, 0) + 1
    elif users is user:
        value._users = {user: 2}
    else:
        value._users = {users: 1, user: 1}


def _remove_use(value: Value, user: Operation) -> None:
    users = value._users
    if users.__class__ is dict:
        count = users[user] - 1
        if count:
            users[user] = count
        else:
            del users[user]
            if not users:
                value._users = None
    else:
        value._users = None


class OpResult(Value):
    """Result number `index` of `owner`."""

    __slots__ = ("owner", "index")

    def __init__(self, type: Type, owner: Operation, index: int) -> None:
        self.type = type
        self._users = None
        self.name_hint = None
        self.owner = owner
        self.index = index

    @property
    def defining_op(self) -> Operation:
        return self.owner

    @property
    def parent_block(self) -> Block | None:
        return self.owner.parent

    def __repr__(self) -> str:
        return f"<result {self.index} of {self.owner.name}: {self.type}>"

    @property
    def _origin(self) -> str:
        return f"the {self.type} of {self.owner.name}"


class BlockArgument(Value):
    """Argument number `index` of the block `owner`."""

    __slots__ = ("owner", "index")

    def __init__(self, type: Type, owner: Block, index: int) -> None:
        self.type = type
        self._users = None
        self.name_hint = None
        self.owner = owner
        self.index = index

    @property
    def parent_block(self) -> Block:
        return self.owner

    def __repr__(self) -> str:
        return f"<block argument {self.index}: {self.type}>"

    @property
    def _origin(self) -> str:
        return f"argument {self.index}"


class Operation(HasText):
    """An operation. Each kind is a subclass with a `name` ("arith.addf").

    The constructor is the raw, fast one: operands, result types, attributes, regions. The
    definitions (`irc.ir.definition`) add named accessors and `make`, which infers types.
    """

    __slots__ = (
        "_operands",
        "results",
        "attributes",
        "regions",
        "successors",
        "location",
        "parent",
        "prev",
        "next",
        "_order",
        "queued",
    )

    name: ClassVar[str] = "builtin.unregistered"
    traits: ClassVar[frozenset[type]] = frozenset()
    is_registered: ClassVar[bool] = False

    _operands: list[Value]
    results: tuple[OpResult, ...]
    attributes: dict[str, Attribute]
    regions: tuple[Region, ...]
    successors: tuple[Block, ...]
    location: Location
    parent: Block | None
    prev: Operation | None
    next: Operation | None

    def __init__(
        self,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Iterable[Region] = (),
        location: Location = UNKNOWN,
        successors: Iterable[Block] = (),
    ) -> None:
        self._operands = operands = list(operands)
        for value in operands:
            if value._users is None:
                value._users = self
            else:
                _add_use(value, self)
        if result_types.__class__ is tuple and len(result_types) == 1:
            self.results = (OpResult(result_types[0], self, 0),)
        else:
            self.results = tuple([OpResult(t, self, i) for i, t in enumerate(result_types)])
        self.attributes = dict(attributes) if attributes else {}
        if regions:
            self.regions = regions = tuple(regions)
            for region in regions:
                region.parent = self
        else:
            self.regions = ()
        self.successors = tuple(successors) if successors else ()
        self.location = location
        self.parent = None
        self.prev = None
        self.next = None
        self._order = 0
        self.queued = False

    # -- operands, results, attributes

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands, in order."""
        return tuple(self._operands)

    @operands.setter
    def operands(self, values: Iterable[Value]) -> None:
        new = list(values)
        for value in self._operands:
            _remove_use(value, self)
        self._operands = []
        for value in new:
            self._operands.append(value)
            _add_use(value, self)

    def set_operand(self, index: int, value: Value) -> None:
        """Replace operand number `index`."""
        old = self._operands[index]
        if old is value:
            return
        _remove_use(old, self)
        self._operands[index] = value
        _add_use(value, self)

    def replace_uses_of(self, old: Value, new: Value) -> None:
        """Replace each operand that is `old` by `new`."""
        users = old._users
        if old is new or users is None:
            return
        count = users.get(self, 0) if users.__class__ is dict else int(users is self)
        if count:
            for place in places_of(self, old, count):
                self.set_operand(place, new)
            if len(self._operands) > LONG:
                note_replaced(old, new)

    @property
    def result(self) -> OpResult:
        """The only result. Raises ValueError when there is not exactly one."""
        if len(self.results) != 1:
            raise ValueError(f"{self.name} has {len(self.results)} results, not one")
        return self.results[0]

    @property
    def result_types(self) -> tuple[Type, ...]:
        """The types of the results."""
        return tuple([r.type for r in self.results])

    # -- position

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region holds this one."""
        block = self.parent
        if block is None or block.parent is None:
            return None
        return block.parent.parent

    def ancestors(self) -> Iterator[Operation]:
        """The operations around this one, innermost first."""
        op = self.parent_op
        while op is not None:
            yield op
            op = op.parent_op

    def is_before_in_block(self, other: Operation) -> bool:
        """Whether this operation comes before `other` in the same block."""
        block = self.parent
        if block is None or other.parent is not block:
            raise ValueError("is_before_in_block needs two operations of one block")
        if not block._ordered:
            block._renumber()
        return self._order < other._order

    def walk(self, reverse: bool = False) -> Iterator[Operation]:
        """This operation and all inside it, pre-order (reverse: post-order, last first).

        The operation just yielded may be erased by the consumer.
        """
        return walk_back(self) if reverse else walk([], self)

    # -- moving and erasing

    def detach(self) -> Operation:
        """Take this operation out of its block; operands and results stay."""
        block = self.parent
        if block is not None:
            block._unlink(self)
        return self

    def erase(self) -> None:
        """Remove this operation and everything in its regions. Its results must be unused."""
        for result in self.results:
            if result._users is not None:
                user = next(result.users)
                raise ValueError(f"{self.name} is still used by {user.name} and can't be erased")
        block = self.parent
        if block is not None:
            block._unlink(self)
        self.drop_all_references()

    def drop_all_references(self) -> None:
        """Forget all operands, here and in nested operations."""
        for value in self._operands:
            if value._users is self:
                value._users = None
            else:
                _remove_use(value, self)
        self._operands = []
        self.successors = ()
        for region in self.regions:
            for block in region.blocks:
                op = block.first
                while op is not None:
                    op.drop_all_references()
                    op = op.next

    def replace_with(self, values: Sequence[Value] | Operation) -> None:
        """Replace every result by the value given for it, then erase this operation."""
        new = values.results if isinstance(values, Operation) else values
        if len(new) != len(self.results):
            raise ValueError(
                f"{self.name} has {len(self.results)} results, {len(new)} replacements given"
            )
        for old, value in zip(self.results, new, strict=True):
            old.replace_all_uses_with(value)
        self.erase()

    # -- copying

    def clone(self, mapping: dict[Value, Value] | None = None) -> Operation:
        """A deep copy. `mapping` gives the new value of each operand (missing: unchanged) and is
        filled with the new results and block arguments."""
        mapping = {} if mapping is None else mapping
        results = self.results
        copy = self.__class__(
            [mapping.get(o, o) for o in self._operands],
            [r.type for r in results],
            self.attributes,
            (),
            self.location,
            self.successors,
        )
        for old, new in zip(results, copy.results):
            new.name_hint = old.name_hint
            mapping[old] = new
        if self.regions:
            with gc_paused:
                copy.regions = tuple([region.clone(mapping) for region in self.regions])
            for region in copy.regions:
                region.parent = copy
        return copy

    def __repr__(self) -> str:
        return f"<{self.name} with {len(self._operands)} operands, {len(self.results)} results>"


class Block:
    """A list of operations with arguments; the last one may be a terminator."""

    __slots__ = ("arguments", "first", "last", "parent", "_ordered")

    def __init__(self, argument_types: Iterable[Type] = ()) -> None:
        self.arguments: list[BlockArgument] = [
            BlockArgument(t, self, i) for i, t in enumerate(argument_types)
        ]
        self.first: Operation | None = None
        self.last: Operation | None = None
        self.parent: Region | None = None
        self._ordered = True

    @property
    def ops(self) -> Iterator[Operation]:
        """The operations in order. The one just yielded may be erased or moved."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    @property
    def reversed_ops(self) -> Iterator[Operation]:
        """The operations, last first. The one just yielded may be erased or moved."""
        op = self.last
        while op is not None:
            following = op.prev
            yield op
            op = following

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region holds this block."""
        return None if self.parent is None else self.parent.parent

    def __len__(self) -> int:
        return sum(1 for _ in self.ops)

    def __bool__(self) -> bool:
        return True

    def add_argument(self, type: Type, name_hint: str | None = None) -> BlockArgument:
        """Append an argument of `type`."""
        argument = BlockArgument(type, self, len(self.arguments))
        argument.name_hint = name_hint
        self.arguments.append(argument)
        return argument

    def erase_argument(self, index: int) -> None:
        """Remove an unused argument."""
        if self.arguments[index].has_uses:
            raise ValueError(f"block argument {index} is still used")
        del self.arguments[index]
        for position, argument in enumerate(self.arguments):
            argument.index = position

    def append(self, op: Operation) -> Operation:
        """Put `op` last."""
        if op.parent is not None:
            raise _in_a_block(op)
        last = self.last
        op.parent = self
        op.prev = last
        op.next = None
        if last is None:
            self.first = op
            op._order = 0
        else:
            last.next = op
            op._order = last._order + 1
        self.last = op
        return op

    def insert_before(self, op: Operation, anchor: Operation) -> Operation:
        """Put `op` just before `anchor`, an operation of this block."""
        if op.parent is not None:
            raise _in_a_block(op)
        previous = anchor.prev
        op.parent = self
        op.prev = previous
        op.next = anchor
        anchor.prev = op
        if previous is None:
            self.first = op
        else:
            previous.next = op
        self._ordered = False
        return op

    def insert_after(self, op: Operation, anchor: Operation) -> Operation:
        """Put `op` just after `anchor`, an operation of this block."""
        following = anchor.next
        if following is None:
            return self.append(op)
        return self.insert_before(op, following)

    def _unlink(self, op: Operation) -> None:
        previous, following = op.prev, op.next
        if previous is None:
            self.first = following
        else:
            previous.next = following
        if following is None:
            self.last = previous
        else:
            following.prev = previous
        op.parent = op.prev = op.next = None

    def _renumber(self) -> None:
        order = 0
        op = self.first
        while op is not None:
            op._order = order
            order += 1
            op = op.next
        self._ordered = True


def _in_a_block(op: Operation) -> ValueError:
    return ValueError(f"{op.name} stands in a block already: detach it first")


class Region:
    """A list of blocks owned by an operation; the first one is the entry."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks:
            self.append(block)

    @property
    def block(self) -> Block:
        """The only block. Raises ValueError when there is not exactly one."""
        if len(self.blocks) != 1:
            raise ValueError(f"region has {len(self.blocks)} blocks, not one")
        return self.blocks[0]

    def append(self, block: Block) -> Block:
        """Put `block` last."""
        block.parent = self
        self.blocks.append(block)
        return block

    def walk(self) -> Iterator[Operation]:
        """Every operation inside, pre-order."""
        return walk([(block, None) for block in reversed(self.blocks)])

    def clone(self, mapping: dict[Value, Value]) -> Region:
        """A deep copy; `mapping` as in `Operation.clone`."""
        copy = Region()
        block_of: dict[Block, Block] = {}
        for block in self.blocks:
            new = Block()
            for argument in block.arguments:
                mapping[argument] = new.add_argument(argument.type, argument.name_hint)
            block_of[block] = copy.append(new)
        for block, new in block_of.items():
            append = new.append
            op = block.first
            while op is not None:
                cloned = op.clone(mapping)
                if cloned.successors:
                    cloned.successors = tuple(block_of.get(s, s) for s in cloned.successors)
                append(cloned)
                op = op.next
        if len(self.blocks) > 1:
            self._map_forward_references(copy, mapping)
        return copy

    def _map_forward_references(self, copy: Region, mapping: dict[Value, Value]) -> None:
        """Give a copy of several blocks its own values where it uses what stood in a later one."""
        inner: set[Value] = set()
        for region in (self, *(r for op in self.walk() for r in op.regions)):
            for block in region.blocks:
                inner.update(block.arguments)
        for op in self.walk():
            inner.update(op.results)
        for op in copy.walk():
            for operand in dict.fromkeys(op._operands):
                if operand in inner:
                    op.replace_uses_of(operand, mapping[operand])
