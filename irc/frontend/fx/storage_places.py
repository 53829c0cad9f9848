"""Arguments of whose storage a program takes places, as `as_strided` does.

Such places count from the storage's beginning, wherever the argument begins in it. torch's graphs
are right only for the offset that they were traced with, which Dynamo doesn't guard, and once such
an argument was written they no longer tell it from a new tensor. So here the program takes the
storage: a vector, of which the argument is a view, and `as_strided` of whatever is a view of the
argument is one of the vector. Where it begins is a number, and guarded.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx._lazy_graph_module import _LazyGraphModule

from irc.runtime.arguments import ArgumentError


def takes_places(node: fx.Node) -> bool:
    """Whether a call counts places from the beginning of its first operand's storage."""
    schema = _schema_of(node)
    return schema is not None and any(a.name == "storage_offset" for a in schema.arguments)


def _schema_of(node: fx.Node) -> Any:
    """The schema of a call of torch: an overload's, or of a function or method of that name."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema
    if node.op == "call_method":
        return _schema_named(node.target)
    if node.op == "call_function":
        return _schema_named(getattr(node.target, "__name__", None))
    return None


@functools.cache
def _schema_named(name: Any) -> Any:
    packet = getattr(torch.ops.aten, name, None) if isinstance(name, str) else None
    return getattr(getattr(packet, "default", None), "_schema", None)


# -- what graphs call instead


def strided(
    base: Tensor, source: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """`source.as_strided(...)` of the storage `base`."""
    begin = source.storage_offset() if storage_offset is None else storage_offset
    return member_of(base, source.dtype, size, stride, begin)


def member_of(base: Tensor, dtype: torch.dtype, size: Any, stride: Any, offset: Any) -> Tensor:
    """Places of the storage `base` as elements of a dtype."""
    return torch.as_strided(_as_elements_of(base, dtype), size, stride, offset)


def strided_copy(
    base: Tensor, source: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """`torch.as_strided_copy(source, ...)` of the storage `base`."""
    return strided(base, source, size, stride, storage_offset).clone()


def strided_scatter(
    base: Tensor, source: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """`torch.as_strided_scatter(source, src, ...)` of the storage `base`."""
    begin = source.storage_offset()
    place = begin if storage_offset is None else storage_offset
    elements = _as_elements_of(base, source.dtype)
    whole = torch.as_strided_scatter(elements, src, size, stride, place)
    return whole.as_strided(source.size(), source.stride(), begin)


def _as_elements_of(base: Tensor, dtype: torch.dtype) -> Tensor:
    """The storage `base` as elements of another dtype: as many as are whole."""
    if base.dtype == dtype:
        return base
    old, new = base.element_size(), dtype.itemsize
    whole = base.numel() * old // new
    count = whole * new // old
    return base[: count + bool(whole * new % old)].view(dtype)


def fill_diagonal(source: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """`source.fill_diagonal_(fill_value, wrap)` through views that are relative to `source`.

    A wrapped diagonal goes on behind a row that has none of it, in `source`'s memory: in its rows
    where they lie one behind the other, or where it ends before it reaches their end."""
    part = source
    while part.dim() > 1:
        part = part.diagonal(0, 0, part.dim() - 1)
    if wrap and source.dim() == 2 and source.shape[0] > source.shape[1] + 1:
        step = source.shape[1] + 1
        if source.is_contiguous():
            part = source.view(-1)[::step]
        else:
            count = -(-source.numel() // step) - source.shape[1]
            source[step:].diagonal()[:count].fill_(fill_value)
    part.fill_(fill_value)
    return source


def _wraps_by_memory(value: Any) -> bool:
    """Whether a wrapped diagonal of a tensor goes by places in memory that aren't its rows'."""
    if not isinstance(value, Tensor) or not all(isinstance(n, int) for n in value.shape):
        return True
    if value.dim() != 2 or value.shape[0] <= value.shape[1] + 1 or value.is_contiguous():
        return False
    columns = value.shape[1]
    return -(-value.numel() // (columns + 1)) - columns > columns


#: What stands for a call that takes places, where the storage is an argument of the graph.
OF_A_STORAGE: dict[str, Callable[..., Tensor]] = {
    "as_strided": strided,
    "as_strided_copy": strided_copy,
    "as_strided_scatter": strided_scatter,
}


@attrs.define(slots=False)
class StorageMember:
    """An argument of a graph that lies in a storage whose places are taken."""

    position: int
    node: fx.Node
    fake: Tensor
    #: The dimensions of sizes and strides that are symbols: these become arguments too.
    symbolic: list[tuple[str, int]] = attrs.field(factory=list)

    @functools.cached_property
    def offset(self) -> int:
        """Where it begins; a symbol is fixed to what it was, of which torch makes a guard."""
        return operator.index(self.fake.storage_offset())

    def numbers(self, tensor: Tensor) -> list[Any]:
        """The arguments that tell where the tensor lies in its base."""
        return [getattr(tensor, name)(dim) for name, dim in self.symbolic]

    def check(self, tensor: Tensor) -> None:
        """Raise ArgumentError for a tensor that begins elsewhere than the traced one."""
        if tensor.storage_offset() != self.offset:
            raise ArgumentError(
                f"argument {self.node.name} begins at {tensor.storage_offset()} in its storage, "
                f"the program was compiled for {self.offset}"
            )


@attrs.define
class StoragePlace:
    """A storage of which places are taken: the arguments that lie in it, and who takes them."""

    members: list[StorageMember]
    calls: list[fx.Node] = attrs.field(factory=list)
    #: Its `base` is an argument instead of the first member, and of the others where they are
    #: `joined`: then what one of them writes is seen by all.
    replaced: bool = False

    @property
    def first(self) -> StorageMember:
        """The argument of which the base is made."""
        return self.members[0]

    @functools.cached_property
    def joined(self) -> list[StorageMember]:
        """The arguments that are views of the base. A gradient is each argument's own: with
        gradients the others stay arguments, which AOTAutograd joins, or refuses to."""
        grown = torch.is_grad_enabled() and any(m.fake.requires_grad for m in self.members)
        return self.members[:1] if grown else self.members

    @functools.cached_property
    def least(self) -> int:
        """How many places of the storage calls take whose places are numbers, in elements of the
        first argument."""
        shown = [value for c in self.calls if isinstance(value := _value(c), Tensor)]
        ends = [(_end(value), value.element_size()) for value in shown]
        sizes = [end * width for end, width in ends if isinstance(end, int)]
        return -(-max(sizes, default=0) // self.first.fake.element_size())

    def base(self, tensors: Sequence[Tensor]) -> Tensor:
        """The storage of the joined arguments, as far as it is the program's."""
        first, width = tensors[0], tensors[0].element_size()
        length: Any = torch.sym_max(_end(first), self.least)
        for other in tensors[1:]:
            end = _end(other)
            if other.dtype != first.dtype:
                end = -(-end * other.element_size() // width)
            length = torch.sym_max(length, end)
        return first.as_strided((length,), (1,), 0)


def _end(tensor: Tensor) -> Any:
    """The place of a storage behind a tensor's last element."""
    if any(isinstance(n, int) and n == 0 for n in tensor.shape):
        return tensor.storage_offset()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.storage_offset() + 1 + sum((n - 1) * s for n, s in steps)


def take_storages(
    module: fx.GraphModule, inputs: Sequence[Any]
) -> tuple[fx.GraphModule, list[Any], Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """A graph that takes the storages of which places are taken, for one that takes arguments.

    Gives also example inputs for it, and what makes of its compiled form a function of the
    arguments. Their offsets are guarded where the graph comes from Dynamo, else checked. The
    arguments of one storage come as one.
    """
    # A graph of lists (compiled autograd's) comes wrapped: its programs check offsets themselves.
    whole = isinstance(module, fx.GraphModule)
    if not whole or not any(map(_is_concerned, module.graph.nodes)):
        return module, list(inputs), lambda compiled: compiled
    module = copied(module)
    for node in module.graph.nodes:
        _relative_diagonal(module.graph, node)
    places = _places(module, inputs)
    guarded = guard_offsets(places)
    returned = _returned_arguments(module, places)
    taken = [p for p in places if p.replaced]
    examples, extra, kept = _exchange(module, inputs, taken)

    def around(compiled: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if not guarded:
                for member in (m for p in places for m in p.members):
                    member.check(arguments[member.position])
            passed, numbers = list(arguments), []
            for place in taken:
                tensors = [arguments[m.position] for m in place.joined]
                passed[place.first.position] = place.base(tensors)
                for member, tensor in zip(place.joined, tensors, strict=True):
                    numbers += member.numbers(tensor)
            results = compiled(*(passed[k] for k in kept), *numbers)
            if not returned:
                return results
            shown = list(results)
            for number, position in returned:
                shown[number] = arguments[position]
            return tuple(shown)

        return run

    return module, [*examples, *extra], around


def _exchange(
    module: fx.GraphModule, inputs: Sequence[Any], taken: Sequence[StoragePlace]
) -> tuple[list[Any], list[Any], list[int]]:
    """Let storages be arguments of the graph instead of what lies in them. Gives the examples that
    are left, those that are added behind them, and the positions of those that are left."""
    examples, extra = list(inputs), []
    lost: set[int] = set()
    for place in taken:
        base = place.base([m.fake for m in place.joined])
        for member in place.members:
            examples[member.position] = member.fake  # in the traced storage, as the base is
        _replace(module.graph, place, base)
        examples[place.first.position] = base
        extra += [n for m in place.joined for n in m.numbers(m.fake)]
        lost.update(m.position for m in place.joined[1:])
    module.recompile()
    kept = [k for k in range(len(inputs)) if k not in lost]
    return [examples[k] for k in kept], extra, kept


def _is_concerned(node: fx.Node) -> bool:
    schema = _schema_of(node)
    return schema is not None and (takes_places(node) or schema.name == "aten::fill_diagonal_")


def copied(
    module: fx.GraphModule, edit: Callable[[fx.Graph], None] = lambda graph: None
) -> fx.GraphModule:
    """A graph of its own: Dynamo goes on to read its graph's arguments. `edit` changes it
    before Python's code is made of it, which takes long."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, copies))
    for old, new in copies.items():
        if hasattr(old, "_dynamo_source"):
            new._dynamo_source = old._dynamo_source
    edit(graph)
    # Dynamo's makes Python's code when it is called, which AOTAutograd doesn't do.
    copy = (_LazyGraphModule if isinstance(module, _LazyGraphModule) else fx.GraphModule)(
        module, graph
    )
    copy.meta = dict(module.meta)
    for name, value in vars(module).items():  # what Dynamo tells AOTAutograd
        vars(copy).setdefault(name, value)
    return copy


def _relative_diagonal(graph: fx.Graph, node: fx.Node) -> None:
    """Let a `fill_diagonal_` go by views, which know no place, where it is a matter of rows."""
    schema = _schema_of(node)
    if schema is None or schema.name != "aten::fill_diagonal_":
        return
    wrap = node.args[2] if len(node.args) > 2 else node.kwargs.get("wrap", False)
    if wrap is not False and (wrap is not True or _wraps_by_memory(_value(node.args[0]))):
        return
    with graph.inserting_before(node):
        call = graph.call_function(fill_diagonal, node.args, dict(node.kwargs))
    call.meta = dict(node.meta)
    node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
    graph.erase_node(node)


def _value(node: Any) -> Any:
    """The fake tensor that a node's value was traced as."""
    meta = node.meta if isinstance(node, fx.Node) else {}
    return meta.get("example_value", meta.get("val"))


def _places(module: fx.GraphModule, inputs: Sequence[Any]) -> list[StoragePlace]:
    """The arguments whose storages have places taken, and which of them are to be replaced."""
    arguments = module.graph.find_nodes(op="placeholder")
    if len(arguments) != len(inputs):
        return []
    by_storage: dict[int, StoragePlace] = {}
    for position, (node, value) in enumerate(zip(arguments, inputs, strict=True)):
        fake = _value(node)
        fake = fake if isinstance(fake, FakeTensor) else value
        if isinstance(fake, FakeTensor) and fake.layout is torch.strided:
            key = fake.untyped_storage()._cdata
            place = by_storage.setdefault(key, StoragePlace([]))
            place.members.append(StorageMember(position, node, fake))
    for node in module.graph.nodes:
        if not takes_places(node) or not node.args:
            continue
        source = _value(node.args[0])
        if isinstance(source, Tensor):
            found_place = by_storage.get(source.untyped_storage()._cdata)
            if found_place is not None:
                found_place.calls.append(node)
    places = [p for p in by_storage.values() if p.calls]
    for place in places:
        place.replaced = _must_replace(place)
    return places


def _must_replace(place: StoragePlace) -> bool:
    """Whether places of an argument's storage are others than those of its elements in order, or
    may be, or are taken through a view."""
    if any(_name(call) not in OF_A_STORAGE for call in place.calls):
        return False
    first = place.first
    at_once = all(call.args[0] is first.node for call in place.calls)
    end = _end(first.fake)
    inside = place.least <= end if isinstance(end, int) else not place.least
    return not (at_once and inside and first.offset == 0 and first.fake.is_contiguous())


def _name(node: fx.Node) -> str:
    return str(_schema_of(node).name).removeprefix("aten::")


def _replace(graph: fx.Graph, place: StoragePlace, base: Tensor) -> None:
    """Let the storage `base` be an argument, and what lies in it views of that."""
    node = place.first.node
    for member in place.joined:
        _show(graph, member, node)
    for key in ("example_value", "val"):
        if key in node.meta:
            node.meta[key] = base
    for call in place.calls:
        with graph.inserting_before(call):
            number_node = graph.call_function(
                OF_A_STORAGE[_name(call)], (node, *call.args), dict(call.kwargs)
            )
        number_node.meta = dict(call.meta)
        call.replace_all_uses_with(number_node)
        graph.erase_node(call)


def _show(graph: fx.Graph, member: StorageMember, base: fx.Node) -> None:
    """Let an argument be a view of the base, which is the argument in its place or another."""
    node, fake = member.node, member.fake
    last = graph.find_nodes(op="placeholder")[-1]
    values: dict[tuple[str, int], Any] = {}
    for name, dim in itertools.product(("size", "stride"), range(fake.dim())):
        number = getattr(fake, name)(dim)
        if isinstance(number, torch.SymInt):
            member.symbolic.append((name, dim))
            with graph.inserting_after(last):
                shown = graph.placeholder(f"{node.name}_{name}_{dim}")
            shown.meta = {"example_value": number, "val": number}
            shown._dynamo_source = None  # type: ignore[attr-defined]
            last = number = shown
        values[name, dim] = number
    sizes, strides = ([values[n, d] for d in range(fake.dim())] for n in ("size", "stride"))
    with graph.inserting_after(last):
        view = graph.call_function(member_of, (base, fake.dtype, sizes, strides, member.offset))
    view.meta = {k: node.meta[k] for k in ("example_value", "val") if k in node.meta}
    node.replace_all_uses_with(view, delete_user_cb=lambda user: user is not view)
    if node is not base:
        graph.erase_node(node)


def _returned_arguments(
    module: fx.GraphModule, places: Sequence[StoragePlace]
) -> list[tuple[int, int]]:
    """(number of a result, position of the argument that it is) where storages are taken: eager
    mode returns the argument itself after it was written."""
    positions = {m.node: m.position for p in places if p.replaced for m in p.joined}
    (output,) = module.graph.find_nodes(op="output")
    results: Any = output.args[0]
    returned = []
    for number, result in enumerate(results if isinstance(results, list | tuple) else (results,)):
        while isinstance(result, fx.Node) and _gives_its_operand(result):
            result = result.args[0]
        if isinstance(result, fx.Node) and result in positions:
            returned.append((number, positions[result]))
    return returned


def _gives_its_operand(node: fx.Node) -> bool:
    """Whether a call writes its first operand and returns it."""
    if node.op == "call_function" and node.target in vars(operator).values():
        name = getattr(node.target, "__name__", "")
        return name.startswith("i") and hasattr(operator, name[1:].rstrip("_") or "_")
    schema = _schema_of(node)
    if schema is None or not schema.arguments or not schema.returns:
        return False
    operand, result = schema.arguments[0].alias_info, schema.returns[0].alias_info
    if operand is None or result is None or not operand.is_write:
        return False
    return operand.before_set == result.before_set and not _name(node).startswith("as_strided")


def guard_offsets(places: Sequence[StoragePlace]) -> bool:
    """Let Dynamo compile again where an argument begins elsewhere in its storage; whether the
    graph's arguments come from Dynamo, so that it does."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    sources: list[Any] = [
        getattr(m.node, "_dynamo_source", None) for p in places for m in p.members
    ]
    if context is None or None in sources:
        return False
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.source import TensorProperty, TensorPropertySource

    for source in sources:
        begin = TensorPropertySource(source, TensorProperty.STORAGE_OFFSET)
        guard = begin.make_guard(GuardBuilder.EQUALS_MATCH)
        context.guards_context.dynamo_guards.add(guard)
    return True
