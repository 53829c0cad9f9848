"""The pass `join-launches`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from irc.analysis.launches import launch_bytes
from irc.analysis.loop import Clusters, estimate, relies_on_checks
from irc.dialects import arith, func, graph, host, kernel, sym
from irc.dialects.kernel.verify import SCRATCH_BYTES
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.location import fuse
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, ceildiv, dim_sum, maximum
from irc.ir.types import TensorType, element_bytes, index
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.gpu.join import fill_joined
from irc.target import Target, target_of

COMBINING = kernel.ReduceOp | kernel.KernelScanOp | kernel.ForOp


@register_pass
class JoinLaunches(Pass):
    """Makes one launch of several that need nothing of each other.

    The joined kernel has the points of all: those of the first, then those of the second, and so
    on; a call computes its part of each, and on a GPU a program instance is of one of them, first
    of those that have few, so that none is left to run when all others have. Sums
    over rows (gradients of biases and weights), fills and checks, which nothing waits for, so go
    along with the next launch. Launches stay alone that read and write more than `max_bytes`, on a
    GPU `gpu_bytes`: there a launch takes longer than what a small one does, and a table counts by
    what is read of it. So does what touches updated arguments, unless it is of a GPU, nothing else
    reads them and the other checks nothing; one whose input another's result may overwrite; and
    kernels of a GPU that would run longer with the other's warps. Those of at most `tiny_bytes` go
    along with a large map, though. On a CPU nothing is joined with what
    takes more than `max_work` operations, as products do: beside these a launch is nothing, and
    their code is long. `max_parts` kernels at most are joined; of the launches before one, the last
    `window` are looked at.

    Before:
        %a = host.launch %x {callee = @k0} : (tensor<[64] x f32>) -> tensor<[64] x f32>
        %b = host.launch %x {callee = @k1} : (tensor<[64] x f32>) -> tensor<[] x f32>
    After:
        kernel.func @k0_k1(%x, %a, %b, %begin, %end) { ... }
        %a, %b = host.launch %x {callee = @k0_k1} : (...) -> (...)
    """

    name = "join-launches"
    summary = "make one launch of several small ones that need nothing of each other"
    asks_target = True
    max_bytes: int = 16 << 20
    gpu_bytes: int = 4 << 20
    tiny_bytes: int = 1 << 16
    max_work: int = 1 << 24
    max_parts: int = 8
    window: int = 16

    def run(self, op: Operation, context: PassContext) -> None:
        ops = list(op.regions[0].blocks[0].ops)
        kernels = {k.sym_name: k for k in ops if isinstance(k, kernel.KernelFuncOp)}
        joiner = _Joiner(op, kernels)
        for function in [f for f in ops if isinstance(f, func.FuncOp)]:
            planner = _JoinPlanner(self, function, kernels, context)
            if planner.plan():
                for members in planner.clusters.order(late=True):
                    joiner.place(function, members)
        context.count("joined", joiner.joined)
        joiner.drop_unused()


class _JoinPlanner:
    """Decides which launches of a function are joined."""

    def __init__(
        self,
        options: JoinLaunches,
        function: func.FuncOp,
        kernels: dict[str, kernel.KernelFuncOp],
        context: PassContext,
    ) -> None:
        self.options, self.kernels, self.context = options, kernels, context
        self.target = target_of(context)
        self._scratch: dict[kernel.KernelFuncOp, int] = {}
        self.clusters = Clusters(function.block, self.relies)
        self.updated: dict[Value, Value] = {}  # and the argument that each is or becomes
        for op in function.block.ops:
            if isinstance(op, graph.UpdateInput):
                argument = function.block.arguments[op.argument]
                self.updated |= {op.value: argument, argument: argument}

    def plan(self) -> int:
        """Decide; gives the number of joins."""
        clusters, joins = self.clusters, 0
        seen: list[int] = []
        for number, op in enumerate(clusters.ops):
            if not isinstance(op, host.LaunchOp) or not self.may_join(op):
                continue
            for other in reversed(seen[-self.options.window :]):
                if self.fits(other, number) and self.context.spend("join-launches", op):
                    seen.remove(other)
                    number = clusters.merge(other, number)
                    joins += 1
                    break
            seen.append(number)
        return joins

    def relies(self, op: Operation) -> bool:
        """Whether an operation must stay after the checks of data before it."""
        callee = self.kernels.get(op.callee) if isinstance(op, host.LaunchOp) else None
        return relies_on_checks(op) if callee is None else bool(op.checked)  # type: ignore[attr-defined]

    def may_join(self, op: host.LaunchOp) -> bool:
        """Whether a launch is small, of a whole kernel, and apart from updates of arguments."""
        callee = self.kernels.get(op.callee)
        arrays = [v for v in (*op.inputs, *op.results) if isinstance(v.type, TensorType)]
        return (
            callee is not None
            and callee.grid is not None
            and (not callee.initialized or callee.copying is not None or callee.is_gpu)
            and not op.outs
            and self.updates_alone(op, arrays)
            and (self.is_small(op) or callee.is_gpu and not _combines(callee))
            and (not callee.is_gpu or isinstance(callee.grid, int))
            and callee.descriptor_bytes is None  # its last output is its own
            and _has_part_for_each(op, callee)
        )

    def is_small(self, op: host.LaunchOp) -> bool:
        """Whether a launch may be joined with any other."""
        callee = self.kernels[op.callee]
        on_gpu, work = callee.is_gpu, callee.work
        if not on_gpu and work is not None:
            if estimate(callee.grid) * estimate(work) > self.options.max_work:
                return False
        most = self.options.gpu_bytes if on_gpu else self.options.max_bytes
        return launch_bytes(op, callee) <= most

    def updates_alone(self, op: host.LaunchOp, arrays: Sequence[Value]) -> bool:
        """Whether the updated arguments that a launch touches are read by nothing else: whenever
        it runs then, nothing misses what they were before."""
        arguments = {self.updated[value] for value in arrays if value in self.updated}
        if not arguments:
            return True
        callee = self.kernels[op.callee]
        return callee.is_gpu and all(set(a.users) <= {op} for a in arguments)

    def fits(self, a: int, b: int) -> bool:
        """Whether a cluster and a later launch may be one."""
        clusters = self.clusters
        numbers = (*clusters.members[a], *clusters.members[b])
        members: list[Any] = [clusters.ops[k] for k in numbers]
        if len(members) > self.options.max_parts or clusters.depends(b, a):
            return False
        callees = [self.kernels[m.callee] for m in members]
        if clusters.why_apart(a, b) or not _alike(callees, self.target):
            return False
        large = [m for m in members if not self.is_small(m)]
        if large and not self.goes_along(large, members):
            return False
        scratch = sum(self.scratch_bytes(m) for m in members)
        if self.updates_where_checked(members):
            return False
        return scratch <= SCRATCH_BYTES and not self.overwrites(members)

    def updates_where_checked(self, launches: Sequence[host.LaunchOp]) -> bool:
        """Whether one updates an argument, and an assertion looks at what another makes: such a
        launch would make the new elements elsewhere, for a copy behind the assertion."""
        results = [result for launch in launches for result in launch.results]
        return any(result in self.updated for result in results) and any(
            isinstance(user, graph.Item) for result in results for user in result.users
        )

    def goes_along(self, large: Sequence[host.LaunchOp], members: Sequence[host.LaunchOp]) -> bool:
        """Whether launches are one large one and others so tiny that it takes no longer, with its
        warps."""
        warps = [int(self.kernels[m.callee].num_warps or 4) for m in (*large, *members)]
        most = self.options.tiny_bytes
        tiny = [m for m in members if launch_bytes(m, self.kernels[m.callee]) <= most]
        return len(large) == 1 and len(tiny) == len(members) - 1 and warps[0] == max(warps)

    def scratch_bytes(self, launch: Operation) -> int:
        """The scratch memory of a launch's kernel."""
        assert isinstance(launch, host.LaunchOp)
        callee = self.kernels[launch.callee]
        if callee not in self._scratch:
            self._scratch[callee] = sum(
                op.count * element_bytes(op.pointer.type.element)
                for op in callee.block.ops
                if isinstance(op, kernel.ScratchOp)
            )
        return self._scratch[callee]

    def overwrites(self, launches: Sequence[Operation]) -> bool:
        """Whether one may compute a result in the memory of what another reads."""
        readers: dict[Value, int] = {}
        for launch in launches:
            for value in {*launch.operands}:
                readers[value] = readers.get(value, 0) + 1
        for launch in launches:
            assert isinstance(launch, host.LaunchOp)
            pairs = self.kernels[launch.callee].inplace or ()
            if any(readers[launch.inputs[source]] > 1 for source in pairs[::2]):
                return True
        return False


def _alike(kernels: Sequence[kernel.KernelFuncOp], target: Target) -> bool:
    """Whether kernels run on one kind of processor; on a GPU all get the most warps of one, which
    takes those longer that combine points between them in more program instances than run at the
    same time. A map of few program instances takes no longer, however many warps it has."""
    if not any(k.is_gpu for k in kernels):
        return True
    if not all(k.is_gpu for k in kernels) or len({k.num_stages for k in kernels}) > 1:
        return False
    most = max(int(k.num_warps or 4) for k in kernels)
    for each in kernels:
        warps, grid = int(each.num_warps or 4), each.grid
        many, combines = not isinstance(grid, int) or not target.idles(grid), _combines(each)
        if most > target.gpu.joined_warps * warps and (many or combines):
            return False
        if many and combines and most > warps:
            return False
    return True


def _combines(callee: kernel.KernelFuncOp) -> bool:
    """Whether a kernel of a GPU combines points of its tiles, or walks over tiles."""
    return any(isinstance(op, COMBINING) for op in callee.walk())


@attrs.frozen
class JoinedPart:
    """One of the kernels of a joined one. inputs: which of the joined kernel's inputs are its."""

    callee: kernel.KernelFuncOp
    inputs: tuple[int, ...]


class _Joiner:
    """Makes the joined kernels of a module and their launches."""

    def __init__(self, module: Operation, kernels: dict[str, kernel.KernelFuncOp]) -> None:
        self.module, self.kernels = module, kernels
        self.joint: dict[tuple[JoinedPart, ...], kernel.KernelFuncOp] = {}
        self.joined = 0

    def place(self, function: func.FuncOp, members: Sequence[Operation]) -> None:
        """Move a cluster to the end of the function, as one launch. Program instances of a GPU
        begin in the order of their numbers."""
        if len(members) > 1:
            members = sorted(members, key=self.instances)
        for op in members:
            op.detach()
            if len(members) == 1:
                function.block.append(op)
        if len(members) == 1:
            return
        self.joined += len(members) - 1
        inputs: dict[Any, int] = {}
        values: list[Value] = []
        parts = []
        for op in members:
            assert isinstance(op, host.LaunchOp)
            callee, places = self.kernels[op.callee], []
            for value, argument in zip(op.inputs, callee.block.arguments, strict=False):
                key = (value, argument.type)
                if key not in inputs:
                    inputs[key] = len(values)
                    values.append(value)
                places.append(inputs[key])
            parts.append(JoinedPart(callee, tuple(places)))
        joined = self.kernel_of(tuple(parts), len(values))
        types = [result.type for op in members for result in op.results]
        attributes: dict[str, A.Attribute] = {
            "callee": A.SymbolRefAttr(joined.sym_name),
            SEGMENTS: A.DenseIntsAttr((len(values), 0)),
            **sym.range_entry(members[0]),
        }
        if any("checked" in op.attributes for op in members):
            attributes["checked"] = A.UNIT
        location = fuse([op.location for op in members], "join-launches")
        launch = host.LaunchOp(values, types, attributes, (), location)
        function.block.append(launch)
        old = [result for op in members for result in op.results]
        for before, after in zip(old, launch.results, strict=True):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)
        for op in members:
            op.erase()

    def instances(self, launch: Operation) -> int:
        """How many program instances of a GPU a launch has; of a CPU's kernel 0."""
        assert isinstance(launch, host.LaunchOp)
        callee = self.kernels[launch.callee]
        return callee.grid if callee.is_gpu and isinstance(callee.grid, int) else 0

    def kernel_of(self, parts: tuple[JoinedPart, ...], inputs: int) -> kernel.KernelFuncOp:
        """The kernel of some parts, made once."""
        joined = self.joint.get(parts)
        if joined is None:
            name = self.fresh_name("_".join(p.callee.sym_name for p in parts))
            joined = self.joint[parts] = self.add(join(parts, inputs, name))
            if joined.initialized and not joined.is_gpu:
                own = [
                    attrs.evolve(p, callee=self.kernels[p.callee.copying or p.callee.sym_name])
                    for p in parts
                ]
                copying = self.add(join(own, inputs, self.fresh_name(f"{name}_copying")))
                joined.attributes["copying"] = A.SymbolRefAttr(copying.sym_name)
        return joined

    def add(self, callee: kernel.KernelFuncOp) -> kernel.KernelFuncOp:
        """Put a joined kernel into the module."""
        self.kernels[callee.sym_name] = callee
        self.module.regions[0].blocks[0].append(callee)
        return callee

    def fresh_name(self, stem: str) -> str:
        """A name like `stem` that no kernel has."""
        name, number = stem, 0
        while name in self.kernels:
            number += 1
            name = f"{stem}_{number}"
        return name

    def drop_unused(self) -> None:
        """Erase the kernels that nothing launches any more."""
        if not self.joined:
            return
        used = {op.callee for op in self.module.walk() if isinstance(op, host.LaunchOp)}
        used |= {self.kernels[name].copying for name in used}
        for name, op in self.kernels.items():
            if name not in used:
                op.erase()


def pointers_of(part: kernel.KernelFuncOp) -> int:
    """How many arguments of a kernel are pointers."""
    return sum(isinstance(a.type, kernel.PointerType) for a in part.block.arguments)


def _has_part_for_each(op: host.LaunchOp, callee: kernel.KernelFuncOp) -> bool:
    """Whether memory of a kernel's own has a part for each of its points: a call that begins at any
    of them uses that of its first one."""
    outputs = dict(zip(callee.outputs or (), op.results, strict=False))
    own: list[Any] = [outputs[number].type for number in callee.private or ()]
    return all(type_.shape[0] == callee.grid for type_ in own)


def join(parts: Sequence[JoinedPart], inputs: int, name: str) -> kernel.KernelFuncOp:
    """The kernel whose points are those of the parts, one after the other."""
    symbols = sorted({s for p in parts for s in p.callee.local_symbols()})
    types: list[Type] = [index] * inputs
    outputs: list[Type] = []
    for part in parts:
        arguments = part.callee.block.arguments
        for place, argument in zip(part.inputs, arguments, strict=False):
            types[place] = argument.type
        outputs += [a.type for a in arguments[len(part.inputs) : pointers_of(part.callee)]]
    on_gpu = parts[0].callee.is_gpu
    kinds = [*types, *outputs, *[index] * (len(symbols) + (0 if on_gpu else 2))]
    function = kernel.KernelFuncOp.create(name, kinds, "gpu" if on_gpu else "cpu")
    function.location = fuse([p.callee.location for p in parts], "join-launches")
    if on_gpu:
        fill_joined(function, list(_arguments(function, parts, inputs, symbols)))
    else:
        _fill(function, parts, inputs, symbols)
    grids: list[Dim] = [p.callee.grid for p in parts]
    first = len(types)
    function.attributes.update(
        symbols=A.ArrayAttr([A.StringAttr(s) for s in symbols]),
        grid=A.DimAttr(dim_sum(grids)),
        outputs=A.DenseIntsAttr(range(first, first + len(outputs))),
    )
    if not on_gpu:
        function.attributes["work"] = A.DimAttr(_work(parts, grids))
    for shared in ("inplace", "initialized"):
        pairs = [
            place for part, output in zip(parts, _output_starts(parts, inputs), strict=True)
            for place in _pairs(part, output, shared)
        ]  # fmt: skip
        if pairs:
            function.attributes[shared] = A.DenseIntsAttr(pairs)
    return function


def _output_starts(parts: Sequence[JoinedPart], inputs: int) -> Iterator[int]:
    """Where among the joined kernel's arguments the outputs of each part begin."""
    at = inputs
    for part in parts:
        yield at
        at += pointers_of(part.callee) - len(part.inputs)


def _pairs(part: JoinedPart, output: int, shared: str) -> Iterator[int]:
    flat = part.callee.attr(shared) or ()
    for source, target in zip(flat[::2], flat[1::2], strict=True):
        yield part.inputs[source]
        yield output + target - len(part.inputs)


def _work(parts: Sequence[JoinedPart], grids: Sequence[Dim]) -> Dim:
    """The work of a point: the mean where all sizes are known, else the largest."""
    work: list[Dim] = [1 if p.callee.work is None else p.callee.work for p in parts]
    points = dim_sum(grids)
    if isinstance(points, int) and all(isinstance(w, int) for w in work):
        total = sum(w * g for w, g in zip(work, grids, strict=True))  # type: ignore[operator]
        return ceildiv(total, max(points, 1))
    return maximum(*work)


def _arguments(
    function: kernel.KernelFuncOp, parts: Sequence[JoinedPart], inputs: int, symbols: Sequence[str]
) -> Iterator[tuple[kernel.KernelFuncOp, dict[Value, Value]]]:
    """Each part, and which argument of the joined kernel each of its own is."""
    arguments = function.block.arguments
    sizes = dict(zip(symbols, arguments[len(arguments) - len(symbols) :], strict=True))
    for part, output in zip(parts, _output_starts(parts, inputs), strict=True):
        own, count = part.callee.block.arguments, pointers_of(part.callee)
        places = [*part.inputs, *range(output, output + count - len(part.inputs))]
        mapping: dict[Value, Value] = {}
        for place, argument in zip(places, own, strict=False):
            mapping[argument] = arguments[place]
            arguments[place].name_hint = argument.name_hint
        for name, argument in zip(part.callee.local_symbols(), own[count:], strict=False):
            mapping[argument] = sizes[name]
        yield part.callee, mapping


def _fill(
    function: kernel.KernelFuncOp, parts: Sequence[JoinedPart], inputs: int, symbols: Sequence[str]
) -> None:
    """Emit the parts, each over what a call's points have of its own."""
    emitter, scope = Emitter(function.block), VectorScope()
    emitter.location = function.location
    arguments = function.block.arguments
    *sizes, begin, end = arguments[-2 - len(symbols) :]
    scope.names.update(zip(symbols, sizes, strict=True))
    begin.name_hint, end.name_hint = "begin", "end"
    for name, argument in zip(symbols, sizes, strict=True):
        argument.name_hint = name
    offset: Scalar = 0
    for part, output in zip(parts, _output_starts(parts, inputs), strict=True):
        emitter.location = part.callee.location
        after = emitter.plus(offset, emitter.scalar(part.callee.grid, scope))
        lower = _clamped(emitter, begin, offset, after)
        upper = _clamped(emitter, end, offset, after)
        offset = after
        own = part.callee.block.arguments
        mapping: dict[Value, Value] = {own[-2]: lower, own[-1]: upper}
        count = pointers_of(part.callee)
        for place, argument in zip(part.inputs, own, strict=False):
            mapping[argument] = arguments[place]
            arguments[place].name_hint = argument.name_hint
        for number, argument in enumerate(own[len(part.inputs) : count]):
            mapping[argument] = arguments[output + number]
        for name, argument in zip(part.callee.local_symbols(), own[count:], strict=False):
            mapping[argument] = emitter.value(scope.names[name])
        for op in part.callee.block.ops:
            if not isinstance(op, kernel.KernelReturnOp):
                function.block.append(op.clone(mapping))
    emitter.effect(kernel.KernelReturnOp, ())
    emitter.finish()


def _clamped(emitter: Emitter, point: Value, low: Scalar, high: Scalar) -> Value:
    """A point of the whole, as one of a part that has the points [low, high)."""
    least = emitter.add(arith.MaxSIOp, (point, emitter.value(low)), index)
    return emitter.value(emitter.minus(emitter.least(least, high), low))
