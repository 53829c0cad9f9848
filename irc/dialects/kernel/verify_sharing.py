"""That a kernel reads no element of an input which it has overwritten in the memory they share.

An output that `inplace` pairs with an input may lie in its memory. What is loaded through the input
must then be its old elements. Refused is what surely loads others: a load of a place after a store
there, in one pass of the loops around both; one that another pass of a loop stored earlier; one
that another instance of the kernel may have stored, if these take any part of the space in any
order. Places are compared as linear expressions. Where their distance is no known number, or where
the masks differ, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from irc.dialects import arith
from irc.dialects.kernel import ops
from irc.dialects.sym import ValueOp
from irc.ir import attributes as A
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.traits import Pure
from irc.ir.types import VectorType, index

_DEEPEST = 64  # nested operations that are looked through

#: Loop variables that stand for others: those of loops that run over the same numbers.
Renaming = Mapping[Value, Value]


def verify_sharing(function: ops.KernelFuncOp) -> None:
    """Check the loads of each input that shares the memory of an output. Raises InvalidIR."""
    flat = function.inplace or ()
    if not flat:
        return
    arguments = function.block.arguments
    known: dict[Any, str] = {}
    for source, target in zip(flat[::2], flat[1::2], strict=True):
        loads = [op for op in arguments[source].users if op.results]
        written = arguments[target].users
        stores = [op for op in written if isinstance(op, ops.StoreOp | ops.ScatterOp)]
        for load in loads:
            for store in stores:
                key = _pair_key(load, store)
                reason = known.get(key)
                if reason is None:
                    reason = known[key] = _Pair(function, load, store).reason()
                if reason:
                    load.fail(  # type: ignore[attr-defined]
                        f"reads argument {source} {reason} argument {target}, which may be the "
                        "same memory (inplace)"
                    )


def _pair_key(load: Any, store: Any) -> Any:
    """Equal for pairs that differ in nothing that `_Pair` looks at: those of one block, in one
    order, with equal operands but the pointers and what is stored. In place, kernels have as many
    pairs as inputs times outputs, but few that differ."""
    if load.parent is not store.parent:
        return load, store
    kinds = load.results[0].type, store.operands[0].type
    places = _offset(load), load.mask, _offset(store), store.mask
    return load.parent, store.is_before_in_block(load), *kinds, *places


@attrs.frozen
class Linear:
    """A sum of terms, each a key of a value with a factor, and a number."""

    terms: Mapping[Any, int]
    number: int

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This and `factor` times the other one."""
        terms = dict(self.terms)
        for key, count in other.terms.items():
            terms[key] = terms.get(key, 0) + factor * count
        return Linear({k: c for k, c in terms.items() if c}, self.number + factor * other.number)

    def times(self, factor: int) -> Linear:
        """All of it `factor` times."""
        return Linear({}, 0).plus(self, factor)


class _Pair:
    """A load and a store through two pointers that may be one.

    `around`: the loops around both, from outside in. `renamed`: the variables of loops around the
    load alone that run as those around the store do, which are taken for them.
    """

    def __init__(self, function: ops.KernelFuncOp, load: Operation, store: Operation) -> None:
        self.function, self.load, self.store = function, load, store
        ours, theirs = list(_chain(load, function)), list(_chain(store, function))
        common = 0
        while ours[common] is theirs[common]:
            common += 1
        self.around = [op for op in ours[:common] if isinstance(op, ops.ForOp)]
        self.last, self.other_last = ours[common], theirs[common]
        inner, outer = ours[common:-1], theirs[common:-1]
        self.has_conditions = any(isinstance(op, ops.IfOp) for op in (*ours, *theirs))
        self.branches = [any(isinstance(op, ops.IfOp) for op in part) for part in (inner, outer)]
        self.inner = [op for op in inner if isinstance(op, ops.ForOp)]
        self.inner_of_store = [op for op in outer if isinstance(op, ops.ForOp)]
        self.renamed: dict[Value, Value] = {}
        for one, other in zip(self.inner, self.inner_of_store, strict=False):
            if [key_of(v, self.renamed) for v in one.operands[:3]] == [
                key_of(v, {}) for v in other.operands[:3]
            ]:
                self.renamed[_variable(one)] = _variable(other)

    def reason(self) -> str:
        """What is wrong with the pair; "" for nothing that is known."""
        if self.last.parent is not self.other_last.parent or all(self.branches):
            return ""  # the branches of one condition, or two conditions
        loaded = linear(_offset(self.load), self.renamed)
        stored = linear(_offset(self.store), {})
        apart = loaded.plus(stored, -1)
        if apart.terms:
            return ""
        one, other = (_mask_key(op, names) for op, names in
                      ((self.load, self.renamed), (self.store, {})))  # fmt: skip
        lanes, wide = _lanes(self.load), _lanes(self.store)
        after = self.other_last is not self.last and self.other_last.is_before_in_block(self.last)
        if after and (one == other or None in (one, other)):
            same = apart.number == 0
            if same or (lanes and wide and _meet(apart.number, lanes, 0, wide)):
                return "after storing there through"
        if one != other or self.has_conditions or not lanes or not wide:
            return ""
        keys = [*stored.terms, one, *self._bounds()]
        for op in self.around:
            variable = _variable(op)
            if not all(_is_steady(k, op) for k in keys if k is not variable):
                continue
            moved = stored.terms.get(variable, 0) * _step(op)
            signs = (1, -1) if _is_parallel(op, self.function) else (1,)
            passes = _passes(op, self.function)
            if any(_comes_to(apart.number, s * moved, passes, lanes, wide) for s in signs):
                return "where another pass of a loop stores through"
        if all(_is_steady(k, self.function) for k in keys if k is not _PROGRAM):
            moved, grid = stored.terms.get(_PROGRAM, 0), self.function.grid
            others = moved and not (isinstance(grid, int) and grid < 2)
            if others and any(_meet(apart.number, lanes, s * moved, wide) for s in (1, -1)):
                return "where another program stores through"
        return ""

    def _bounds(self) -> list[Any]:
        """From where to where the loops around the load and the store run."""
        loops = (*self.around, *self.inner, *self.inner_of_store)
        return [key_of(v, self.renamed) for op in loops for v in op.operands[:3]]


def _chain(op: Operation, function: Operation) -> Iterator[Operation]:
    """The operations around `op` inside the function, from outside in, and itself."""
    chain = []
    current: Operation | None = op
    while current is not None and current is not function:
        chain.append(current)
        current = current.parent_op
    return reversed(chain)


def _variable(op: Operation) -> Value:
    return op.regions[0].blocks[0].arguments[0]


def _offset(op: Any) -> Value:
    return op.operands[1] if op.results else op.operands[2]  # type: ignore[no-any-return]


def _is_steady(key: Any, around: Operation) -> bool:
    """Whether what a key stands for is the same in all passes of a loop around it (or in all
    programs, given the kernel), as long as the variables of loops further in are."""
    if key is _PROGRAM:
        return isinstance(around, ops.ForOp)
    if isinstance(key, tuple):
        return all(_is_steady(k, around) for k in key)
    if not isinstance(key, Value):
        return True
    if isinstance(key, BlockArgument):
        loop = key.owner.parent_op
        if loop is around:
            return isinstance(loop, ops.KernelFuncOp)
        if isinstance(loop, ops.ForOp) and key.index == 0:
            return True  # its bounds are looked at, too
    block = key.parent_block
    maker = None if block is None else block.parent_op
    return maker is not None and maker is not around and around not in maker.ancestors()


def _mask_key(op: Any, renamed: Renaming) -> Any:
    return None if op.mask is None else key_of(op.mask, renamed)


def _lanes(op: Any) -> int:
    """How many elements from the offset on are surely moved; 0 where they are not consecutive."""
    value = op.results[0].type if op.results else op.operands[0].type
    if not isinstance(value, VectorType):
        return 1
    masked = op.mask is not None and isinstance(op.mask.type, VectorType)
    if not isinstance(_offset(op).type, VectorType):
        return 1 if masked else int(value.shape[0])
    counts = linear(_offset(op), {}).terms
    along = [k for k in counts if isinstance(k, tuple) and k[0] == "lane"]
    if along != [("lane", 0)] or counts["lane", 0] != 1:
        return 0
    return 1 if masked else int(value.shape[0])


def _meet(begin: int, lanes: int, other: int, wide: int) -> bool:
    """Whether two stretches of elements have one in common."""
    return begin < other + wide and other < begin + lanes


def _comes_to(apart: int, moved: int, passes: int, lanes: int, wide: int) -> bool:
    """Whether a load `apart` behind a store reads what that stored in an earlier pass of a loop:
    each moves it by `moved`, and it may be one to `passes` of them earlier."""
    if not moved:
        return passes > 0 and _meet(apart, lanes, 0, wide)
    before = (-lanes - apart if moved > 0 else wide - apart) // moved
    first = max(before + 1, 1)
    return first <= passes and _meet(apart + first * moved, lanes, 0, wide)


def _constant(value: Value) -> int | None:
    maker = value.defining_op
    number = maker.attributes["value"] if isinstance(maker, arith.ConstantOp) else None
    return number.value if isinstance(number, A.IntegerAttr) else None


def _step(op: Operation) -> int:
    return _constant(op.operands[2]) or 0


def _is_parallel(op: Operation, function: ops.KernelFuncOp) -> bool:
    """Whether a loop runs from a cpu kernel's begin on: parts may be taken in any order."""
    return not function.is_gpu and op.operands[0] is function.block.arguments[-2]


def _passes(op: Operation, function: ops.KernelFuncOp) -> int:
    """How many passes of a loop two may be apart: 0 where it may run but once, 1 where how often
    it runs depends on a size."""
    lower, upper, _ = op.operands[:3]
    arguments = function.block.arguments
    step, first, end = _step(op), _constant(lower), _constant(upper)
    if not step:
        return 0
    if _is_parallel(op, function):
        first, end = 0, function.grid if isinstance(function.grid, int) else None
    if first is not None and end is not None:
        return max(-(-(end - first) // step) - 1, 0)
    return int(upper in arguments)


# -- values as keys and as sums

_PROGRAM = ("program",)


def key_of(value: Value, renamed: Renaming, depth: int = 0) -> Any:
    """Equal for two values that are surely equal in one pass of the loops around them."""
    value = renamed.get(value, value)
    maker = value.defining_op
    if maker is None or depth > _DEEPEST or maker.regions:
        return value
    if isinstance(maker, ops.ProgramIdOp):
        return _PROGRAM
    if not isinstance(maker, ValueOp) and Pure not in maker.traits:
        return value
    parts = [key_of(v, renamed, depth + 1) for v in maker.operands]
    named = tuple(sorted(maker.attributes.items(), key=A.entry_name))
    number = value.index  # type: ignore[attr-defined]
    return maker.name, number, maker.result_types, named, *parts


def linear(value: Value, renamed: Renaming, depth: int = 0) -> Linear:
    """A scalar or vector of integers as a sum; a vector's lanes are counted by the term
    ("lane", dimension)."""
    value = renamed.get(value, value)
    maker = value.defining_op
    if maker is None or depth > _DEEPEST:
        return Linear({value: 1}, 0)
    operands = maker.operands
    if isinstance(maker, arith.AddIOp | arith.SubIOp):
        first, second = (linear(v, renamed, depth + 1) for v in operands)
        return first.plus(second, 1 if isinstance(maker, arith.AddIOp) else -1)
    if isinstance(maker, arith.MulIOp):
        first, second = (linear(v, renamed, depth + 1) for v in operands)
        if not second.terms:
            return first.times(second.number)
        if not first.terms:
            return second.times(first.number)
    elif isinstance(maker, arith.ConstantOp):
        number = _constant(value)
        if number is not None:
            return Linear({}, number)
    elif isinstance(maker, ops.SplatOp):
        return linear(operands[0], renamed, depth + 1)
    elif isinstance(maker, ops.IotaOp):
        return Linear({("lane", maker.dim): 1}, 0)  # type: ignore[attr-defined]
    elif isinstance(maker, ops.ExpandOp):
        return _expanded(maker, linear(operands[0], renamed, depth + 1))
    return Linear({key_of(value, renamed, depth): 1}, 0)


def _expanded(op: Any, inner: Linear) -> Linear:
    """A sum whose lanes are along other dimensions."""
    terms: dict[Any, int] = {}
    for key, count in inner.terms.items():
        if isinstance(key, tuple) and key[0] == "lane":
            key = "lane", list(op.dims)[key[1]]
        elif not _is_scalar(key):
            key = "expanded", tuple(op.dims), key
        terms[key] = count
    return Linear(terms, inner.number)


def _is_scalar(key: Any) -> bool:
    if isinstance(key, Value):
        return key.type is index
    return key is _PROGRAM or key[2] == (index,)


__all__ = ["Linear", "key_of", "linear", "verify_sharing"]
