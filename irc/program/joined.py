"""Arrays that a caller holds as one: what a training step's forward saves for its backward.

    forward = join_results(forward, {1: 0, 2: 512})       # results 1 and 2, by their first byte
    backward = join_arguments(backward, {0: 0, 1: 512}, 1024)

Each tensor that a call gives or takes costs its caller and torch a few microseconds: memory, a
Python object, a place in autograd's node. So results that nobody but the other program reads can
lie in one array of bytes, which stands where the first of them stood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from irc.ir.diagnostics import InvalidIR
from irc.program import host_program as P

#: Where a joined array may begin: what torch's allocator aligns memory to that kernels read.
ALIGNMENT = 512


def padded(count: int) -> int:
    """A number of bytes, up to where the next array may begin."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def span_bytes(sizes: Sequence[int], strides: Sequence[int], element_bytes: int) -> int:
    """Bytes from an array's first element to behind its last one."""
    if 0 in sizes:
        return 0
    last = sum((n - 1) * k for n, k in zip(sizes, strides, strict=True))
    return (1 + last) * element_bytes


def join_results(program: P.HostProgram, places: Mapping[int, int]) -> P.HostProgram:
    """The program with results at these positions in one array: those that have memory of their own
    are made there, others are copied. Raises InvalidIR for sizes that aren't constants."""
    outputs = program.outputs
    registers = {position: _register(outputs[position]) for position in places}
    spans = {p: _span(program.layouts[r], outputs[p]) for p, r in registers.items()}
    devices = {program.layouts[r].device for r in registers.values()}
    block = _bytes(_total(places, spans), devices)
    allocs = {s.register: s for s in program.steps if isinstance(s, P.Alloc) and s.offset is None}
    roots = Counter(program.root(o.register)[0] for o in outputs if o.register is not None)
    number, layouts = program.registers, dict(program.layouts)
    moved: dict[int, P.View] = {}
    copies: list[P.Step] = []
    for position, register in registers.items():
        root, offset = program.root(register)
        own = allocs.get(root)
        room = padded(spans[position])
        if own is not None and offset == 0 and roots[root] == 1 and _fits(own.layout, room):
            moved[root] = _part(root, number, own.layout, places[position])
            continue
        part, layout = program.registers + 1 + len(copies) // 2, layouts[register]
        layouts[part] = layout
        copies += [_part(part, number, layout, places[position]), P.CopyInto(register, part)]
    layouts[number] = block
    steps = [moved.get(s.register, s) if isinstance(s, P.Alloc) else s for s in program.steps]
    kinds: dict[int, P.Kind] = {**program.kinds, **dict.fromkeys(layouts, "tensor")}
    first = min(places)
    kept = [o for p, o in enumerate(outputs) if p == first or p not in places]
    whole = P.Output(number, "tensor", block)
    return attrs.evolve(
        program, steps=(P.Alloc(number, block), *steps, *copies), layouts=layouts, kinds=kinds,
        registers=number + 1 + len(copies) // 2,
        outputs=tuple(whole if o is outputs[first] else o for o in kept),
    )  # fmt: skip


def join_arguments(
    program: P.HostProgram, places: Mapping[int, int], within: int
) -> P.HostProgram:
    """The program with arguments at these positions in one array of `within` bytes. A result that
    is one of them is a copy. Raises InvalidIR for sizes that aren't constants."""
    joined = {position: program.arguments[position] for position in places}
    spans = {p: _span(a.layout, a) for p, a in joined.items()}
    devices = {a.layout.device for a in joined.values() if a.layout is not None}
    if _total(places, spans) > within:
        raise InvalidIR(f"arguments reach beyond the {within} bytes of the array that they lie in")
    number, block = program.registers, _bytes(within, devices)
    if {b.register for b in program.bindings} & {a.register for a in joined.values()}:
        raise InvalidIR("an array whose sizes are bound lies in another one")
    layouts: dict[int, P.Layout] = {**program.layouts, number: block}
    kinds: dict[int, P.Kind] = {**program.kinds, number: "tensor"}
    views = [_part(a.register, number, layouts[a.register], places[p]) for p, a in joined.items()]
    first = min(places)
    kept = [p for p in range(len(program.arguments)) if p == first or p not in places]
    arguments = [
        P.Argument("saved", "tensor", number, block) if p == first else program.arguments[p]
        for p in kept
    ]
    inside = attrs.evolve(
        program, arguments=tuple(arguments), steps=(*views, *program.steps), layouts=layouts,
        kinds=kinds, registers=number + 1,
    )  # fmt: skip
    copies: list[P.Step] = []
    outputs: list[P.Output] = []
    for output in program.outputs:
        alias = output.alias_of
        if output.register is not None and inside.root(output.register)[0] == number:
            fresh = inside.registers + len(copies) // 2
            layout = layouts[fresh] = layouts[output.register]
            kinds[fresh] = "tensor"
            copies += [P.Alloc(fresh, layout), P.CopyInto(output.register, fresh)]
            output = attrs.evolve(output, register=fresh, alias_of=None)
        elif alias is not None:
            output = attrs.evolve(output, alias_of=kept.index(alias))
        outputs.append(output)
    return attrs.evolve(
        inside, steps=(*inside.steps, *copies), outputs=tuple(outputs), layouts=layouts,
        kinds=kinds, registers=inside.registers + len(copies) // 2,
    )  # fmt: skip


def _register(output: P.Output) -> int:
    if output.register is None or output.alias_of is not None:
        raise InvalidIR("a result that is no array of its own can't lie in another one")
    return output.register


def _span(layout: P.Layout | None, what: object) -> int:
    if layout is None or layout.strides is None:
        raise InvalidIR(f"{what} has no place in an array of bytes")
    sizes, strides = _constants(layout.sizes), _constants(layout.strides)
    if sizes is None or strides is None:
        raise InvalidIR(f"{what} has no place in an array of bytes")
    return span_bytes(sizes, strides, layout.element_bytes)


def _constants(dims: Sequence[P.Dim]) -> tuple[int, ...] | None:
    known = tuple(dim for dim in dims if isinstance(dim, int))
    return known if len(known) == len(dims) else None


def _fits(layout: P.Layout, room: int) -> bool:
    try:
        return _span(layout, layout) <= room
    except InvalidIR:
        return False


def _total(places: Mapping[int, int], spans: Mapping[int, int]) -> int:
    return max(place + padded(spans[position]) for position, place in places.items())


def _bytes(total: int, devices: set[str]) -> P.Layout:
    if len(devices) != 1:
        raise InvalidIR("arrays in one array are on one device")
    return P.Layout("uint8", (total,), (1,), 1, devices.pop())


def _part(register: int, block: int, layout: P.Layout, place: int) -> P.View:
    return P.View(register, block, layout, place // layout.element_bytes)


__all__ = ["ALIGNMENT", "join_arguments", "join_results", "padded", "span_bytes"]
