"""Which convolutions on a GPU should have their channels innermost: the choice of least time.

Every convolution (and its backward) may have all its images and weights row by row or with
channels innermost; a *region* is what pointwise operations, windows and reductions compute between
convolutions, and has one order. The library computes a convolution in an order that it prefers and
converts what comes in the other one. What is read in the other order than it was written costs its
bytes, a copy twice its bytes and a launch. What is given (arguments, results that the caller sees,
other calls) has eager's order. A minimum cut between the two orders is the choice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from irc.analysis.loop import estimate
from irc.dialects import func, graph, sym
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.strides import channels_last_strides, same_layout
from irc.ir.symbols import dim_product
from irc.ir.traits import ViewLike
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.target import Target
from irc.target.costs import Cost

LAST, PLAIN = "last", "plain"
#: More than any program takes, in femtoseconds: what is pinned.
PINNED = 1 << 60
#: What computes arrays in the order of what it reads.
ORDERED = (
    graph.Cast, graph.Bitcast, graph.Copy, graph.Pad, graph.Scan, graph.Reverse, graph.Select,
    graph.Concat, graph.PointwiseOp, graph.Window, graph.Slice, graph.Reduce, graph.ArgReduce,
)  # fmt: skip
#: What has memory of no operation's own, besides views.
WITHOUT_MEMORY = (graph.Constant, graph.Full, graph.FromScalar, sym.RefineOp)


@attrs.frozen
class Choice:
    """The convolutions that should have channels innermost, and the femtoseconds that converting
    takes with all in eager's order and as chosen."""

    last: tuple[Operation, ...]
    before: int
    after: int


def orders_of(type_: Any) -> tuple[Any, Any] | None:
    """An image's strides with its channels innermost, and row by row; None for what is no image or
    has one order only."""
    if not isinstance(type_, TensorType) or type_.rank not in (4, 5):
        return None
    last, plain = channels_last_strides(type_.shape), contiguous_strides(type_.shape)
    return None if same_layout(type_.shape, last, plain) else (last, plain)


def order_of(type_: Any, strides: Any) -> str | None:
    """The order of an image with such strides; None for another one, and for what is no image."""
    both = orders_of(type_)
    known = [s for s in strides if s is not None] if isinstance(strides, A.DimsAttr) else []
    if both is None or len(known) != type_.rank:
        return None
    for name, order in zip((LAST, PLAIN), both, strict=True):
        if same_layout(type_.shape, known, order):
            return name
    return None


def bytes_of(type_: Any) -> int:
    """The bytes of an array's elements; symbols count as `estimate` says."""
    return max(1, estimate(dim_product(type_.shape)) * element_bytes(type_.element))


def unseen_images(function: func.FuncOp) -> frozenset[int]:
    """The results whose order is the program's to choose: images that it computes, that only its
    backward program sees (`saved`), each in an array of its own of known sizes."""
    infos = function.result_info
    values = function.return_op.operands
    if infos is None:
        return frozenset()
    entries = [info if isinstance(info, A.DictAttr) else A.DictAttr({}) for info in infos]
    shared = {s.value for e in entries if isinstance(s := e.get("shares"), A.IntegerAttr)}
    returned = Counter(values)
    return frozenset(
        number
        for number, (value, info) in enumerate(zip(values, entries, strict=True))
        if info.get("saved") is not None and number not in shared and returned[value] == 1
        and is_own_array(info) and orders_of(value.type) is not None
        and (maker := value.defining_op) is not None and ViewLike not in maker.traits
        and not isinstance(maker, WITHOUT_MEMORY)
    )  # fmt: skip


def is_own_array(info: A.DictAttr) -> bool:
    """Whether a result has an array of its own in eager mode, from its beginning and with strides
    that are numbers."""
    strides, offset = info.get("strides"), info.get("offset")
    static = isinstance(strides, A.DimsAttr) and all(isinstance(d, int) for d in strides)
    own = info.get("shares") is None and info.get("alias_of") is None
    return own and static and isinstance(offset, A.DimAttr) and offset.dim == 0


def choose(
    function: func.FuncOp,
    target: Target,
    convolutions: Iterable[Operation],
    pinned: Callable[[Operation], str | None],
) -> Choice:
    """The choice for a function of the graph level. `pinned`: the order that a convolution has to
    have, if one."""
    import networkx

    costs = _Costs(function, target, convolutions, pinned)
    cut: Any = networkx.DiGraph()
    cut.add_nodes_from((LAST, PLAIN))
    for (a, b), capacity in costs.capacities.items():
        cut.add_edge(a, b, capacity=capacity)
        cut.add_edge(b, a, capacity=capacity)
    after, (last, _) = networkx.minimum_cut(cut, LAST, PLAIN)
    before = sum(capacity for pair, capacity in costs.capacities.items() if LAST in pair)
    return Choice(tuple(op for op in costs.convolutions if op in last), before, int(after))


class _Costs:
    """What it takes to have two nodes in different orders. A node is a convolution, a region (its
    first value) or an order."""

    def __init__(
        self,
        function: func.FuncOp,
        target: Target,
        convolutions: Iterable[Operation],
        pinned: Callable[[Operation], str | None],
    ) -> None:
        self.target = target
        self.convolutions = dict.fromkeys(convolutions)
        self.parents: dict[Value, Value] = {}
        self.fixed: dict[Value, str | None] = {}
        self.capacities: dict[tuple[Any, Any], int] = defaultdict(int)
        self.read_arguments(function)
        for op in function.block.ops:
            self.unite(op)
        for op in function.block.ops:
            self.read(op)
        for op in self.convolutions:
            self.price(op, pinned(op))
        self.read_results(function)

    # -- nodes

    def read_arguments(self, function: func.FuncOp) -> None:
        """The orders that arguments come in."""
        infos = function.arg_info
        for position, argument in enumerate(function.block.arguments):
            info = None if infos is None else infos[position]
            strides = info.get("strides") if isinstance(info, A.DictAttr) else None
            self.fix(argument, strides)

    def fix(self, value: Value, strides: A.Attribute | None) -> None:
        """Note what order a given array has: without strides it comes row by row."""
        known = PLAIN if strides is None else order_of(value.type, strides)
        self.fixed[value] = known if orders_of(value.type) is not None else None

    def unite(self, op: Operation) -> None:
        """Make one region of what an operation reads and gives; note what calls give."""
        if isinstance(op, graph.CallAten) and op not in self.convolutions:
            recorded = op.eager_strides
            tensors = [r for r in op.results if isinstance(r.type, TensorType)]
            for number, result in enumerate(tensors):
                self.fix(result, recorded[number] if recorded is not None else None)
        elif self.in_regions(op):
            united = op.results[0]
            self.parents.setdefault(united, united)
            for value in (*op.results, *op.operands):
                maker = value.defining_op
                if maker is not None and self.in_regions(maker):
                    self.parents.setdefault(value, value)
                    self.parents[self.root(value)] = self.root(united)

    def in_regions(self, op: Operation) -> bool:
        """Whether what an operation gives has the order of what it reads."""
        if isinstance(op, graph.Reshape):
            return _keeps_channels(op)
        return isinstance(op, ORDERED)

    def root(self, value: Value) -> Value:
        """The first value of a region."""
        while (parent := self.parents[value]) is not value:
            value = parent
        return value

    def node(self, value: Value) -> Any:
        """Where a value belongs; None where it has no order, or any."""
        if orders_of(value.type) is None and value not in self.parents:
            return None
        if value in self.parents:
            return self.root(value)
        maker = value.defining_op
        if maker in self.convolutions:
            return maker
        return self.fixed.get(value)

    # -- edges

    def join(self, a: Any, b: Any, femtoseconds: int) -> None:
        """It takes so long to have two nodes in different orders."""
        if a is None or b is None or a is b or (a in (LAST, PLAIN) and b in (LAST, PLAIN)):
            return
        pair = (b, a) if (b, a) in self.capacities else (a, b)
        self.capacities[pair] += femtoseconds

    def reading(self, value: Value) -> int:
        """What it takes to read a value in another order."""
        return self.target.time(Cost(far=bytes_of(value.type)))

    def copying(self, value: Value) -> int:
        """What it takes to copy a value into another order."""
        return self.target.time(Cost(far=2 * bytes_of(value.type), launches=1))

    def read(self, op: Operation) -> None:
        """What an operation reads in the order of what it gives, and what it gives in one order."""
        if op in self.convolutions:
            return
        if isinstance(op, graph.Permute):
            self.turn(op)
        elif isinstance(op, graph.Reshape) and not _keeps_channels(op):
            source = op.operands[0]
            if orders_of(source.type) is not None:
                self.join(self.node(source), PLAIN, self.reading(source))
        elif isinstance(op, graph.CallAten):
            for value, strides in _recorded(op):
                self.join(self.node(value), order_of(value.type, strides), self.copying(value))
        elif self.in_regions(op):
            region = self.node(op.results[0])
            for value in dict.fromkeys(op.operands):
                self.join(self.node(value), region, self.reading(value))

    def turn(self, op: graph.Permute) -> None:
        """A permutation that moves channels to the end, or from there: such an array's elements
        lie as an image's with channels innermost."""
        source, result = op.operands[0], op.results[0]
        rank = len(op.permutation)
        if orders_of(source.type) is not None and op.permutation[-1] == 1:
            self.join(self.node(source), LAST, self.reading(source))
        elif rank in (4, 5) and op.permutation[1] == rank - 1 and orders_of(result.type):
            self.fixed[result] = LAST

    def price(self, op: Operation, pinned: str | None) -> None:
        """A convolution: what it reads and gives in another order is copied; what the library
        doesn't prefer is converted there."""
        values = [v for v in (*op.operands, *op.results) if orders_of(v.type) is not None]
        for value in dict.fromkeys(values):
            other = self.node(value)
            if other is not op:
                self.join(op, other, self.copying(value))
        if pinned is not None:
            self.join(op, pinned, PINNED)
            return
        self.join(op, PLAIN, 1)  # where it doesn't matter, as in eager
        image = op.operands[0].type
        prefers = LAST if str(image.element) in self.target.gpu.channels_last else PLAIN  # type: ignore[attr-defined]
        self.join(op, prefers, sum(self.copying(v) for v in dict.fromkeys(values)))

    def read_results(self, function: func.FuncOp) -> None:
        """What the caller must see in eager's order."""
        free, infos = unseen_images(function), function.result_info
        for position, value in enumerate(function.return_op.operands):
            info = infos[position] if infos is not None else None
            if position in free or not isinstance(info, A.DictAttr):
                continue
            self.show(value, order_of(value.type, info.get("strides")))
        for op in function.block.ops:
            if isinstance(op, graph.UpdateInput):
                self.show(op.value, self.fixed[function.block.arguments[op.argument]])

    def show(self, value: Value, order: str | None) -> None:
        """A value that has to have an order where it is seen: a kernel writes it so, a
        convolution's result is copied."""
        node = self.node(value)
        if node is not None:
            in_kernel = value in self.parents
            self.join(node, order, (self.reading if in_kernel else self.copying)(value))


def _recorded(call: graph.CallAten) -> Iterator[tuple[Value, A.Attribute]]:
    """The tensor operands of a call with the strides that eager passes."""
    recorded = call.operand_strides
    if isinstance(recorded, A.ArrayAttr):
        tensors = [v for v in call.operands if isinstance(v.type, TensorType)]
        yield from zip(tensors, recorded, strict=False)


def _keeps_channels(op: graph.Reshape) -> bool:
    """Whether a reshape leaves batch and channels as they are: pixels in a row, or back."""
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, TensorType) and isinstance(result, TensorType)
    return min(source.rank, result.rank) > 2 and source.shape[:2] == result.shape[:2]


__all__ = ["Choice", "choose", "order_of", "orders_of", "unseen_images"]
