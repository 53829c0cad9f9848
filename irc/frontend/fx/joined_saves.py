"""What a training step's forward saves for its backward becomes a few tensors.

Each saved tensor costs a step's host some 3 us: memory, a Python object, AOTAutograd's questions, a
place in autograd's node, and all of that again when it goes. Small ones that programs of irc make
and that nobody else sees are joined where a GPU's host is what takes the time: the forward graph
gives `irc::join` of them, the backward's takes that and reads each by `irc::part`. There are a few
such arrays, each of what is read last at about the same time, since an array goes when all of it
has been read. The programs know their parts as results and arguments with a place in an array
(`irc.program.joined`), so that nothing is copied: the operators themselves are called by compiled
autograd alone, which runs torch's graph.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx

from irc.dialects.aten import own
from irc.frontend.decompositions.converted import converted
from irc.frontend.fx.saved_activations import JoinedParts
from irc.program.joined import padded, span_bytes


def joined(tensors: Sequence[torch.Tensor], places: Sequence[int], count: int) -> torch.Tensor:
    """An array of so many bytes that has the tensors' elements where they are said to begin."""
    block = torch.empty(count, dtype=torch.uint8, device=tensors[0].device)
    for tensor, place in zip(tensors, places, strict=True):
        _view(block, place, tensor.shape, tensor.stride(), tensor.dtype).copy_(tensor)
    return block


def part(
    block: torch.Tensor, place: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """A copy of one of the tensors that an array of bytes has."""
    copy = torch.empty_strided(size, stride, dtype=dtype, device=block.device)
    return copy.copy_(_view(block, place, size, stride, dtype))


def _view(
    block: torch.Tensor, place: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    return block.view(dtype).as_strided(size, stride, place // dtype.itemsize)


own.define(own.NAMESPACE, "join(Tensor[] tensors, int[] places, int count) -> Tensor", joined)
own.define(
    own.NAMESPACE,
    "part(Tensor block, int place, int[] size, int[] stride, ScalarType dtype) -> Tensor", part,
)  # fmt: skip
JOIN, PART = torch.ops.irc.join.default, torch.ops.irc.part.default

#: As the pass `pad-strides` has it: steps of more elements become multiples of so many bytes.
_LONG, _LINE = 1024, 128
#: How a joint graph is cut in two: the forward and the backward.
Partition = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]


@attrs.frozen
class JoinLimits:
    """What is joined: tensors of at most so many `bytes` (0: none), into at most `blocks` arrays,
    each of at least `least` bytes where there is a second one."""

    bytes: int
    blocks: int = 1
    least: int = 0


NOTHING = JoinLimits(0)


def joining(partition: Partition, limits_of: Callable[[fx.GraphModule], JoinLimits]) -> Partition:
    """A partition whose saved tensors are joined within limits."""

    def cut(joint: fx.GraphModule, *arguments: Any, **keywords: Any) -> Any:
        forward, backward = partition(joint, *arguments, **keywords)
        limits = limits_of(joint)
        if limits.bytes:
            join_saved(forward, backward, keywords["num_fwd_outputs"], limits)
        return forward, backward

    return cut


def join_saved(
    forward: fx.GraphModule, backward: fx.GraphModule, shown: int, limits: JoinLimits
) -> int:
    """Join what the forward graph saves, behind `shown` outputs that the caller sees; how many.
    Images of convolutions stay apart, whose channels a program may have innermost."""
    (output,) = forward.graph.find_nodes(op="output")
    (end,) = backward.graph.find_nodes(op="output")
    entries: list[Any] = list(output.args[0])
    if any(isinstance(e, fx.Node) and e.meta.get("saved_tensor_with_no_vc_check") for e in entries):
        return 0  # they have an order of their own
    taken = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    roots = Counter(_root(entry) for entry in entries if isinstance(entry, fx.Node))
    returned = {_root(entry) for entry in end.args[0] if isinstance(entry, fx.Node)}
    images = any(node.target is torch.ops.aten.convolution.default for node in forward.graph.nodes)
    chosen = [
        entry for entry in entries[shown:]
        if isinstance(entry, fx.Node) and not (images and _rank(entry) > 3)
        and _is_small(entry, limits.bytes) and roots[_root(entry)] == 1
        and _is_made(_root(entry)) and entry.name in taken
        and _is_read(taken[entry.name], entry, returned)
    ]  # fmt: skip
    if len(chosen) < 2 or len({node.meta["val"].device for node in chosen}) > 1:
        return 0
    joined = 0
    for members in _blocks(chosen, taken, backward.graph, limits):
        places, total = [], 0
        for node in members:
            places.append(total)
            total += _room(node)
        block = _give(forward, output, members, places, total)
        _take(backward, block, [taken[node.name] for node in members], places)
        joined += len(members)
    for module in (forward, backward):
        module.recompile()
    return joined


def _blocks(
    chosen: Sequence[fx.Node], taken: Mapping[str, fx.Node], backward: fx.Graph, limits: JoinLimits
) -> list[list[fx.Node]]:
    """What goes into one array each: tensors that the backward reads last at about the same time,
    so that an array goes when it has been read. Those of one are in the forward's order."""
    total = sum(map(_room, chosen))
    count = max(1, min(limits.blocks, total // max(limits.least, 1)))
    numbers = {node: number for number, node in enumerate(backward.nodes)}
    last = {node: _last_use(taken[node.name], numbers) for node in chosen}
    blocks: list[list[fx.Node]] = [[] for _ in range(count)]
    before = 0
    for node in sorted(chosen, key=last.__getitem__):
        blocks[before * count // total].append(node)
        before += _room(node)
    order = {node: number for number, node in enumerate(chosen)}
    return [sorted(block, key=order.__getitem__) for block in blocks if len(block) > 1]


def _last_use(node: fx.Node, numbers: Mapping[fx.Node, int]) -> int:
    """When a value of the backward is read last, as itself or by a view."""
    uses = (_last_use(u, numbers) if _is_view(u) else numbers[u] for u in node.users)
    return max(uses, default=numbers[node])


def _room(node: fx.Node) -> int:
    value = node.meta["val"]
    return padded(span_bytes(value.shape, value.stride(), value.element_size()))


def _give(
    forward: fx.GraphModule, output: fx.Node, chosen: Sequence[fx.Node], places: Sequence[int],
    total: int,
) -> fx.Node:  # fmt: skip
    """Return the chosen as one, where the first of them is; gives it."""
    value = chosen[0].meta["val"]
    with forward.graph.inserting_before(output):
        block = forward.graph.call_function(JOIN, (list(chosen), list(places), total))
    with value.fake_mode:
        block.meta["val"] = torch.empty(total, dtype=torch.uint8, device=value.device)
    entries: Any = output.args[0]
    rest = set(chosen[1:])
    kept = [i for i, entry in enumerate(entries) if entry not in rest]
    shown = [block if entries[i] is chosen[0] else entries[i] for i in kept]
    output.args = (type(entries)(shown) if isinstance(entries, tuple) else shown,)
    described = output.meta.get("desc")
    if isinstance(described, list | tuple) and len(described) == len(entries):
        output.meta["desc"] = [described[i] for i in kept]
    return block


def _take(
    backward: fx.GraphModule, block: fx.Node, taken: Sequence[fx.Node], places: Sequence[int]
) -> None:
    """Take the chosen as one, where the first of them was."""
    graph = backward.graph
    with graph.inserting_before(taken[0]):
        argument = graph.placeholder(block.name)
    argument.meta["val"] = block.meta["val"]
    if "desc" in taken[0].meta:
        argument.meta["desc"] = taken[0].meta["desc"]
    last = graph.find_nodes(op="placeholder")[-1]
    for node, place in reversed(list(zip(taken, places, strict=True))):
        value = node.meta["val"]
        with graph.inserting_after(last):
            read = graph.call_function(
                PART, (argument, place, list(value.shape), list(value.stride()), value.dtype)
            )
        read.meta = dict(node.meta)
        node.replace_all_uses_with(read)
        graph.erase_node(node)


def _rank(node: fx.Node) -> int:
    value = node.meta.get("val")
    return value.dim() if isinstance(value, torch.Tensor) else 0


def _root(node: fx.Node) -> fx.Node:
    """What a chain of views ends at."""
    while _is_view(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _is_view(node: fx.Node) -> bool:
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
        return False
    if node.target is operator.getitem:
        return _is_view(node.args[0])
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(r.alias_info is not None for r in schema.returns)


def _is_made(root: fx.Node) -> bool:
    """Whether a program of irc makes a value in memory of its own choice."""
    if root.target is operator.getitem:
        root = root.args[0]  # type: ignore[assignment]
    if root.target is torch.ops.aten.native_dropout.default:
        from irc.frontend.fx.drawn_dropouts import is_drawn

        return is_drawn(root)
    if not isinstance(root.target, torch._ops.OpOverload):
        return False
    from irc.analysis.calls import OUT_VARIANTS  # not for a warm start

    return str(root.target) in OUT_VARIANTS or root.target.overloadpacket in converted()


def _is_small(node: fx.Node, limit: int) -> bool:
    """Whether a value is an array of at most `limit` bytes, of constant sizes, dense."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor):
        return False
    dims = (*value.shape, *value.stride(), value.storage_offset())
    if not all(type(dim) is int for dim in dims) or value.layout is not torch.strided:
        return False
    plain = type(value).__name__ == "FakeTensor" and not value.is_conj() and not value.is_neg()
    count = value.numel() * value.element_size()
    return plain and 0 < count <= limit and _is_dense(value) and not _is_long_and_odd(value)


def _is_long_and_odd(value: torch.Tensor) -> bool:
    """Whether a program may move the rows of a saved value apart (the pass `pad-strides`), which
    what is joined with others can't have."""
    return any(step > _LONG and step * value.element_size() % _LINE for step in value.stride())


def _is_dense(value: torch.Tensor) -> bool:
    """Whether the elements fill their memory, in whatever order."""
    count = 1
    for size, stride in sorted(zip(value.shape, value.stride(), strict=True), key=lambda d: d[1]):
        if size != 1 and stride != count:
            return False
        count *= size
    return True


def _is_read(taken: fx.Node, saved: fx.Node, returned: set[fx.Node]) -> bool:
    """Whether the backward reads a saved value as it is given, and doesn't return it."""
    value, same = saved.meta["val"], taken.meta.get("val")
    if not taken.users or taken in returned or not isinstance(same, torch.Tensor):
        return False
    return (same.shape, same.stride(), same.dtype) == (value.shape, value.stride(), value.dtype)


# -- what programs are compiled of


def parts_of(module: fx.GraphModule, stage: str) -> JoinedParts:
    """Have a forward graph return, and a backward graph take, what is joined one by one, in place;
    where that is."""
    if stage == "forward":
        return result_parts(module)
    return argument_parts(module) if stage == "backward" else JoinedParts()


def result_parts(module: fx.GraphModule) -> JoinedParts:
    """Return what a forward graph joins one by one, in place; where that is."""
    (output,) = module.graph.find_nodes(op="output")
    entries: Any = output.args[0]
    blocks: list[tuple[int, int]] = []
    results: dict[int, tuple[int, int]] = {}
    shown: list[Any] = []
    for position, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if not isinstance(entry, fx.Node) or entry.target is not JOIN:
            shown.append(entry)
            continue
        tensors: Any = entry.args[0]
        places: Any = entry.args[1]
        for number, place in enumerate(places, start=len(shown)):
            results[number] = len(blocks), place
        blocks.append((position, len(places)))
        shown += tensors
    if blocks:
        output.args = (shown,)
        output.meta.pop("desc", None)
        for position, _ in blocks:
            module.graph.erase_node(entries[position])
    return JoinedParts(tuple(blocks), results)


def argument_parts(module: fx.GraphModule) -> JoinedParts:
    """Take what a backward graph takes as one argument one by one, in place; where that is."""
    blocks: list[tuple[int, int]] = []
    arguments: dict[str, tuple[int, int, int]] = {}
    for position, block in enumerate(module.graph.find_nodes(op="placeholder")):
        readers = list(block.users)
        if not readers or any(reader.target is not PART for reader in readers):
            continue
        for number, reader in enumerate(readers):
            with module.graph.inserting_before(block):
                argument = module.graph.placeholder(f"{block.name}_{number}")
            argument.meta = dict(reader.meta)
            within = block.meta["val"].numel()
            arguments[argument.name] = len(blocks), reader.args[1], within
            reader.replace_all_uses_with(argument)
            module.graph.erase_node(reader)
        module.graph.erase_node(block)
        blocks.append((position, len(readers)))
    return JoinedParts(tuple(blocks), arguments=arguments)


__all__ = ["JOIN", "NOTHING", "PART", "JoinLimits", "argument_parts", "join_saved", "joining",
           "parts_of"]  # fmt: skip
