"""What well-formed kernels are, beyond operand types: arguments, control flow, memory, lanes.

What depends on types alone is checked once for each combination of types. What a target has no
code for is refused here, so that the code generators meet only what they can write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects.kernel import ops
from irc.dialects.sym import ValueOp
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Block, BlockArgument, Operation, Region, Value
from irc.ir.definition import Op
from irc.ir.diagnostics import InvalidIR
from irc.ir.hooks import verifies, verifies_references
from irc.ir.symbols import known_divisible
from irc.ir.traits import ConstantLike
from irc.ir.types import (
    FloatType,
    IndexType,
    IntegerType,
    VectorType,
    bf16,
    element_bytes,
    f16,
    f32,
    f64,
    i1,
    index,
)

#: Elements of the largest vector of a cpu kernel: more are slower than a loop, and compile longer.
CPU_ELEMENTS = 256
#: The most elements that those of a strided load lie apart.
MOST_STRIDE = 64
#: Elements of Triton's largest tile.
GPU_ELEMENTS = 1 << 20
#: Bytes of private memory of a cpu kernel, on the stack.
SCRATCH_BYTES = 256 * 1024
_WIDTHS = (1, 8, 16, 32, 64)
_FLOATS = (f16, bf16, f32, f64)

#: Operations that one target has no code for, with what the other does instead.
_ONLY: dict[type[Operation], tuple[str, str]] = {
    ops.ProgramIdOp: ("gpu", "a cpu kernel gets its points as begin and end"),
    ops.LoadTileOp: ("gpu", "a cpu kernel reads its rows one by one"),
    ops.CheckOp: ("gpu", "the host of a cpu kernel looks at truth values itself"),
    ops.ExpandOp: ("gpu", "a cpu kernel has vectors of one dimension; kernel.splat a scalar"),
    ops.LoadStridedOp: ("cpu", "a gpu kernel loads lane by lane"),
    ops.PrefetchOp: ("cpu", "Triton's compiler decides what a gpu kernel loads early"),
    ops.ScratchOp: ("cpu", "a gpu kernel keeps what is private in tiles"),
    ops.DotRowsOp: ("cpu", "a gpu kernel multiplies tiles by kernel.dot"),
    ops.DotLanesOp: ("cpu", "a gpu kernel multiplies tiles by kernel.dot"),
    ops.InterleaveOp: ("cpu", "a gpu kernel has tiles with powers of two as sizes"),
}

#: What a gpu kernel says of how it is compiled: whether a number fits, and which do.
_SETTINGS: dict[str, tuple[Callable[[int], bool], str]] = {
    "num_warps": (lambda n: n in (1, 2, 4, 8, 16, 32), "a power of two up to 32"),
    "num_stages": (lambda n: n >= 1, "at least 1"),
    "index_bits": (lambda n: n in (32, 64), "32 or 64"),
    "descriptor_bytes": (lambda n: n > 0 and n % 128 == 0, "a multiple of 128"),
}
# Types of operands and results, with the attributes that matter, that passed for a class.
_passed: set[Any] = set()
# Types that fit a target, and operations that do.
_types_of: dict[str, set[Type]] = {target: set() for target in ops.TARGETS}
_classes_of: dict[str, set[type[Operation]]] = {target: set() for target in ops.TARGETS}


def _once(op: Op, check: Callable[[Any], None], *more: Any) -> None:
    """Run `check(op)`, which looks at types and `more` alone, unless these passed before."""
    key = (op.__class__, *more, *[v.type for v in op.operands], *[r.type for r in op.results],
           op.attributes.get("operandSegmentSizes"))  # fmt: skip
    if key not in _passed:
        check(op)
        _passed.add(key)


def _words(dims: Sequence[int] | Sequence[Any]) -> str:
    return f"[{', '.join(map(str, dims))}]"


# -- the kernel as a whole


@verifies(ops.KernelFuncOp)
def verify_function(op: ops.KernelFuncOp) -> None:
    """Arguments, attributes and, for the target, every operation of a kernel. Raises InvalidIR."""
    if len(op.regions[0].blocks) != 1:
        op.fail(f"a kernel's body is one block, not {len(op.regions[0].blocks)}")
    type_ = op.function_type
    if getattr(type_, "inputs", None) != tuple(a.type for a in op.block.arguments):
        op.fail("the entry block's arguments differ from the kernel's type")
    if type_.results:
        op.fail("a kernel has no results: it writes its outputs through pointers")
    pointers = _verify_arguments(op)
    outputs = _verify_outputs(op, pointers)
    for name in ("inplace", "initialized"):
        _verify_pairs(op, name, pointers, outputs)
    _verify_settings(op)
    _verify_body(op, pointers, outputs)
    if op.inplace:
        from irc.dialects.kernel.verify_sharing import verify_sharing  # of few kernels

        verify_sharing(op)


def _verify_arguments(op: ops.KernelFuncOp) -> int:
    """Check that pointers come first, then the symbols; gives the number of pointers."""
    arguments = op.block.arguments
    pointers = 0
    for number, argument in enumerate(arguments):
        if isinstance(argument.type, ops.PointerType):
            if pointers != number:
                op.fail(f"argument {number} is a pointer after an index: pointers come first")
            pointers += 1
            _check_type(op, argument.type)
        elif argument.type is not index:
            op.fail(f"argument {number} is {argument.type}, not a kernel.ptr or index")
    names = op.local_symbols()
    if len(names) != len(op.symbols or ()):
        op.fail(f"symbols {op.symbols} are not all names")
    if len(set(names)) != len(names):
        op.fail(f"two index arguments bind one symbol: {', '.join(names)}")
    extra = 0 if op.is_gpu else 2
    count, expected = len(arguments) - pointers, len(names) + extra
    if count != expected:
        ends = ", begin and end" if extra else ""
        op.fail(f"{count} index arguments, not {expected}: one for each of its {len(names)} "
                f"symbols{ends}")  # fmt: skip
    return pointers


def _verify_outputs(op: ops.KernelFuncOp, pointers: int) -> range | None:
    """Check that `outputs` names the last pointers; gives their positions, None if unsaid."""
    if op.private is not None and (op.is_gpu or not {*op.private} <= {*(op.outputs or ())}):
        op.fail(f"private {_words(op.private)} are not outputs of a cpu kernel")
    if op.outputs is None:
        return None
    outputs = list(op.outputs)
    if outputs != list(range(pointers - len(outputs), pointers)):
        op.fail(f"outputs {_words(outputs)} are not the last of {pointers} pointer arguments, "
                "in their order")  # fmt: skip
    return range(pointers - len(outputs), pointers)


def _verify_pairs(op: ops.KernelFuncOp, name: str, pointers: int, outputs: range | None) -> None:
    """Check the pairs (input, output) of `inplace` or `initialized`."""
    flat = op.attr(name)
    if flat is None:
        return
    if len(flat) % 2 or outputs is None:
        op.fail(f"{name} {_words(flat)} is no list of pairs (input, output) of a kernel with "
                "outputs")  # fmt: skip
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if len(set(pairs)) != len(pairs):
        op.fail(f"{name} names a pair twice: {_words(flat)}")
    for source, target in pairs:
        if not 0 <= source < outputs.start:
            op.fail(f"{name} pairs argument {source}, which is no input")
        if target not in outputs:
            op.fail(f"{name} pairs argument {target}, which is no output")
        one, other = (op.block.arguments[k].type for k in (source, target))
        if element_bytes(one.element) != element_bytes(other.element):
            op.fail(f"{name} pairs {one} and {other}, whose elements differ in bytes")
    targets = [t for _, t in pairs]
    if name == "initialized" and len(set(targets)) != len(targets):
        op.fail(f"initialized gives one output two initial arrays: {_words(flat)}")


@verifies_references(ops.KernelFuncOp)
def verify_variant(op: ops.KernelFuncOp) -> None:
    """The kernel that `copying` names takes the same arrays and wants nothing in its outputs."""
    if op.copying is None:
        return
    module = op.parent_op
    variant = module.lookup(op.copying) if module is not None else None  # type: ignore[attr-defined]
    if not isinstance(variant, type(op)):
        op.fail(f"there is no kernel @{op.copying} in the module")
    if not op.initialized or variant.initialized:
        op.fail(f"copying is of a kernel with initialized outputs, and @{op.copying} has none")
    if _arrays(op) != _arrays(variant) or op.outputs != variant.outputs:
        op.fail(f"@{op.copying} takes other arrays than the kernel that it is a variant of")


def _arrays(op: ops.KernelFuncOp) -> list[Type]:
    return [a.type for a in op.block.arguments if isinstance(a.type, ops.PointerType)]


def _verify_settings(op: ops.KernelFuncOp) -> None:
    for name, (fits, expected) in _SETTINGS.items():
        value = op.attr(name)
        if value is None:
            continue
        if not op.is_gpu:
            op.fail(f"{name} is of gpu kernels")
        if not fits(value):
            op.fail(f"{name} is {value}, not {expected}")


def _verify_body(op: ops.KernelFuncOp, pointers: int, outputs: range | None) -> None:
    """Check each operation and type against the target, and each pointer's origin."""
    target = op.target
    classes, types = _classes_of[target], _types_of[target]
    room = 0
    stack: list[Block] = [op.block]
    while stack:
        inner = stack.pop().first
        while inner is not None:
            cls = inner.__class__
            if cls not in classes:
                _check_class(inner, target)
                classes.add(cls)
            for result in inner.results:
                if result.type not in types:
                    _check_type(inner, result.type, target)
                    types.add(result.type)
            if cls in _MEMORY:
                _check_pointer(inner, op, outputs, _MEMORY[cls])
            elif isinstance(inner, ops.ScratchOp):
                room += _scratch_bytes(inner, op)
            for region in inner.regions:
                stack.extend(region.blocks)
            inner = inner.next
    if room > SCRATCH_BYTES:
        op.fail(f"{room} bytes of kernel.scratch, more than {SCRATCH_BYTES}")


# The operations with a pointer, and whether they write there.
_MEMORY: dict[type[Operation], bool] = {
    ops.LoadOp: False, ops.LoadTileOp: False, ops.GatherOp: False, ops.PrefetchOp: False,
    ops.LoadStridedOp: False, ops.StoreOp: True, ops.ScatterOp: True, ops.CheckOp: True,
}  # fmt: skip
# The dialects whose operations a kernel holds, and `sym.value`.
_DIALECTS = ("arith", "math", "kernel")


def _check_class(op: Operation, target: str) -> None:
    only = _ONLY.get(op.__class__)
    if only is not None:
        kernels, instead = only
        if kernels != target:
            op.fail(f"is of {kernels} kernels, this is one for a {target}: {instead}")  # type: ignore[attr-defined]
    elif op.name.partition(".")[0] not in _DIALECTS and not isinstance(op, ValueOp):
        raise InvalidIR(f"'{op.name}' has no place in a kernel, which holds arith, math, kernel "
                        "and sym.value", op=op)  # fmt: skip


def _check_type(op: Any, type_: Type, target: str = "") -> None:
    """Check that the target has code for values of a type."""
    target = target or op.target
    element = getattr(type_, "element", type_)
    if isinstance(type_, VectorType):
        _check_shape(op, type_, target)
    elif isinstance(type_, ops.PointerType) and isinstance(element, VectorType | ops.PointerType):
        op.fail(f"{type_} points at no element of memory")
    if isinstance(element, IntegerType):
        in_memory = target == "gpu" and isinstance(type_, ops.PointerType)
        known = element.width in _WIDTHS and (in_memory or not element.unsigned)
    elif target == "cpu":
        known = element in _FLOATS or isinstance(element, IndexType)
    else:
        known = isinstance(element, FloatType | IndexType)
    if not known:
        op.fail(f"a {target} kernel has no values of type {type_}")


def _check_shape(op: Any, type_: VectorType, target: str) -> None:
    count = 1
    for size in type_.shape:
        count *= size
    if target == "cpu" and (len(type_.shape) not in (1, 2) or not 0 < count <= CPU_ELEMENTS):
        op.fail(f"{type_} is no vector of a cpu kernel: one dimension, or two for a tile of rows, "
                f"and at most {CPU_ELEMENTS} elements")  # fmt: skip
    if target == "gpu":
        if any(size < 1 or size & (size - 1) for size in type_.shape) or not type_.shape:
            op.fail(f"{type_} is no tile of a gpu kernel: its sizes are powers of two")
        if count > GPU_ELEMENTS:
            op.fail(f"{type_} has {count} elements, a tile of a gpu kernel at most {GPU_ELEMENTS}")


def _check_pointer(op: Any, func: ops.KernelFuncOp, outputs: range | None, writes: bool) -> None:
    pointer = op.pointer
    if not isinstance(pointer, BlockArgument):
        if not isinstance(pointer.defining_op, ops.ScratchOp):
            op.fail("its pointer is neither an argument of the kernel nor a kernel.scratch")
        return
    if pointer.owner is not func.block:
        op.fail("its pointer is carried by a loop: use the kernel's argument and an offset")
    if writes and outputs is not None and pointer.index not in outputs:
        op.fail(f"writes argument {pointer.index}, which is not among the outputs "
                f"{_words(outputs)}")  # fmt: skip


def _scratch_bytes(op: Any, func: ops.KernelFuncOp) -> int:
    if op.count < 1:
        op.fail(f"count is {op.count}, not at least 1")
    if op.parent is not func.block:
        op.fail("stands in a loop or branch, not in the kernel's entry block")
    return int(op.count) * element_bytes(op.pointer.type.element)


# -- control flow


@verifies(ops.ForOp)
def verify_for(op: ops.ForOp) -> None:
    """Bounds, carried values and body of a loop. Raises InvalidIR."""
    step = op.step.defining_op
    if step is not None and ConstantLike in step.traits:
        value: Any = step.attributes.get("value")
        if isinstance(value, A.IntegerAttr) and value.value < 1:
            op.fail(f"the step is {value.value}, not positive")
    for name, count in (("unroll", op.unroll), ("stages", op.stages)):
        if count is not None and count < 1:
            op.fail(f"{name} is {count}, not at least 1")
    carried = [v.type for v in op.initial]
    if carried != [r.type for r in op.results]:
        op.fail(f"carries ({_types(op.initial)}) and gives ({_types(op.results)})")
    block = _only_block(op, op.regions[0])
    if [a.type for a in block.arguments] != [index, *carried]:
        op.fail(f"its body takes ({_types(block.arguments)}), not index and the carried "
                f"({_types(op.initial)})")  # fmt: skip
    _verify_end(op, block)


@verifies(ops.IfOp)
def verify_if(op: ops.IfOp) -> None:
    """Condition and branches. Raises InvalidIR."""
    if op.condition.type is not i1:
        op.fail(f"the condition is {op.condition.type}, not i1")
    for region in op.regions:
        block = _only_block(op, region)
        if block.arguments:
            op.fail(f"a branch takes no arguments, this one {len(block.arguments)}")
        _verify_end(op, block)


def _only_block(op: Op, region: Region) -> Block:
    if len(region.blocks) != 1:
        op.fail(f"a body is one block, not {len(region.blocks)}")
    return region.blocks[0]


def _verify_end(op: Op, block: Block) -> None:
    last = block.last
    if not isinstance(last, ops.KernelYieldOp):
        op.fail("a body ends in kernel.yield")
    if [v.type for v in last.operands] != [r.type for r in op.results]:
        op.fail(f"its body yields ({_types(last.operands)}), the results are "
                f"({_types(op.results)})")  # fmt: skip


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(v.type) for v in values)


# -- memory


@verifies(ops.LoadOp, ops.StoreOp)
def verify_access(op: Any) -> None:
    """A load or store: scalar or consecutive elements, mask, other. Raises InvalidIR."""
    _once(op, _check_access)


def _check_access(op: Any) -> None:
    value = _moved(op)
    if isinstance(value, VectorType) and len(value.shape) != 1:
        op.fail(f"{value} is not a vector of consecutive elements: its rows are moved one by one")
    _check_moved(op, value)


@verifies(ops.LoadTileOp)
def verify_load_tile(op: Any) -> None:
    """A tile with two dimensions of a matrix whose rows begin at 16 bytes. Raises InvalidIR."""
    type_ = op.value.type
    if len(type_.shape) != 2 or len(op.sizes) != 2:
        op.fail(f"loads {type_} of sizes {_words(op.sizes)}, not a tile of a matrix")
    if type_.element is not op.pointer.type.element:
        op.fail(f"loads {type_} at a {op.pointer.type}")
    size = element_bytes(type_.element)
    if not known_divisible(op.stride, max(1, 16 // size)):
        op.fail(f"a row is {op.stride} elements of {size} bytes, no multiple of 16 bytes")
    if type_.shape[1] * size < 16 or max(type_.shape) > 256:
        op.fail(f"loads {type_}: rows of at least 16 bytes, and at most 256 of anything")


@verifies(ops.LoadStridedOp)
def verify_load_strided(op: Any) -> None:
    """Elements of a vector that lie apart, and no mask of lanes. Raises InvalidIR."""
    if op.stride in (0, 1) or abs(op.stride) > MOST_STRIDE:
        op.fail(f"a stride of {op.stride}, not 2 to {MOST_STRIDE} either way, nor -1")
    if op.mask is not None and isinstance(op.mask.type, VectorType):
        op.fail("a mask of lanes: kernel.gather has one")
    _once(op, _check_access)


@verifies(ops.GatherOp)
def verify_gather(op: Any) -> None:
    """A gather: one offset a lane. Raises InvalidIR."""
    _once(op, _check_lanes)


@verifies(ops.ScatterOp)
def verify_scatter(op: Any) -> None:
    """A scatter: one offset a lane. Raises InvalidIR."""
    _once(op, _check_lanes)


def _check_lanes(op: Any) -> None:
    value, offsets = _moved(op), op.offsets.type
    if _element(offsets) is not index:
        op.fail(f"the offsets are {offsets}, not of index")
    if _shape(offsets) != _shape(value):
        op.fail(f"the offsets are {offsets}, one for each lane of {value} wanted")
    _check_moved(op, value)


def _moved(op: Any) -> Any:
    """The type of what is loaded or stored."""
    return op.results[0].type if op.results else op.stored.type


def _check_moved(op: Any, value: Type) -> None:
    from irc.dialects.loop import signless

    held = signless(op.pointer.type.element)
    if _element(value) is not held:
        op.fail(f"moves {_element(value)} at a {op.pointer.type}: memory of it holds {held}")
    mask = op.mask
    if mask is not None:
        _check_like(op, "mask", mask.type, i1, value)
    other = op.other if op.results else None
    if other is not None:
        if mask is None:
            op.fail("has an 'else' and no mask")
        _check_like(op, "'else'", other.type, held, value)


def _check_like(op: Any, what: str, type_: Type, element: Type, value: Type) -> None:
    """Check for a scalar of `element`, or one for each lane of `value`."""
    if _element(type_) is not element or _shape(type_) not in ((), _shape(value)):
        lanes = "" if not _shape(value) else f", or vector<{'x'.join(map(str, _shape(value)))}x"
        op.fail(f"the {what} is {type_}, not {element}{lanes}{f'{element}>' if lanes else ''}")


def _element(type_: Any) -> Type:
    return type_.element if isinstance(type_, VectorType) else type_


def _shape(type_: Any) -> tuple[int, ...]:
    return type_.shape if isinstance(type_, VectorType) else ()


# -- vectors


@verifies(ops.SplatOp)
def verify_splat(op: Any) -> None:
    """A scalar of the vector's element, or a vector of few. Raises InvalidIR."""
    short, vector = op.scalar.type, op.vector.type
    if isinstance(short, VectorType) and len(short.shape) == len(vector.shape) == 1:
        if short.element is vector.element and not vector.shape[0] % short.shape[0]:
            return
    if op.scalar.type is not op.vector.type.element:
        op.fail(f"makes {op.vector.type} of {op.scalar.type}, not of {op.vector.type.element}")


@verifies(ops.IotaOp)
def verify_iota(op: Any) -> None:
    """A dimension of an integer vector. Raises InvalidIR."""
    type_ = op.vector.type
    if not 0 <= op.dim < len(type_.shape):
        op.fail(f"counts along dimension {op.dim} of {type_}")
    if not isinstance(type_.element, IndexType | IntegerType) or type_.element is i1:
        op.fail(f"counts in {type_.element}, not in index or an integer")


@verifies(ops.ExpandOp)
def verify_expand(op: Any) -> None:
    """Dimensions of the source among the result's. Raises InvalidIR."""
    source, result, dims = op.source.type, op.expanded.type, list(op.dims)
    if source.element is not result.element:
        op.fail(f"makes {result} of {source}: another element")
    if len(dims) != len(source.shape) or dims != sorted(set(dims)):
        op.fail(f"dims {_words(dims)} don't name one dimension of {result} for each of {source}")
    for size, dim in zip(source.shape, dims, strict=True):
        if not 0 <= dim < len(result.shape) or size not in (1, result.shape[dim]):
            op.fail(f"size {size} of {source} can't become dimension {dim} of {result}")


@verifies(ops.TransposeOp)
def verify_transpose(op: Any) -> None:
    """A tile with its two dimensions exchanged. Raises InvalidIR."""
    source, result = op.source.type, op.transposed.type
    if len(source.shape) != 2:
        op.fail(f"exchanges the dimensions of {source}, not of a tile with two")
    (rows, columns), group = source.shape, op.together
    if group < 1 or columns % group:
        op.fail(f"keeps groups of {group} elements, of rows of {columns}")
    exchanged = VectorType((columns // group, rows * group), source.element)
    if result is not exchanged:
        op.fail(f"gives {result}, not {exchanged}")


@verifies(ops.ReduceOp)
def verify_reduce(op: Any) -> None:
    """Combiner, dimension and results of a reduction. Raises InvalidIR."""
    _once(op, _check_reduce, op.combiner, op.dim)


def _check_reduce(op: Any) -> None:
    _check_combined(op)
    for source, result in zip(op.sources, op.results, strict=True):
        kept = [n for d, n in enumerate(source.type.shape) if d != op.dim]
        expected = VectorType(kept, source.type.element) if kept else source.type.element
        if result.type is not expected:
            op.fail(f"gives {result.type}, not {expected}")


@verifies(ops.KernelScanOp)
def verify_scan(op: Any) -> None:
    """Combiner, dimension and results of a scan. Raises InvalidIR."""
    _once(op, _check_scan, op.combiner, op.dim)


def _check_scan(op: Any) -> None:
    _check_combined(op)
    for source, result in zip(op.sources, op.results, strict=True):
        if result.type is not source.type:
            op.fail(f"gives {result.type}, not {source.type}")


def _check_combined(op: Any) -> None:
    """Check the sources of a reduction or scan against its combiner and dimension."""
    combiner = op.combiner
    count = 2 if combiner in ops.PAIR_COMBINERS else 1
    if len(op.sources) != count or len(op.results) != count:
        what = "a value and a position" if count == 2 else "one vector"
        op.fail(f"{combiner} combines {what}; {len(op.sources)} operands and {len(op.results)} "
                "results given")  # fmt: skip
    for value in op.sources:
        if not isinstance(value.type, VectorType):
            op.fail(f"combines the lanes of {value.type}, which has none")
        if not 0 <= op.dim < len(value.type.shape):
            op.fail(f"combines along dimension {op.dim} of {value.type}")
    first = op.sources[0].type
    if combiner == "sort" and op.dim != len(first.shape) - 1:
        op.fail(f"sorts along dimension {op.dim} of {first}, not the last one")
    if isinstance(first.element, FloatType) and combiner in (*ops.LOGICAL_COMBINERS, "sort"):
        op.fail(f"{combiner} combines integers, not {first.element}")
    if count == 2:
        second = op.sources[1].type
        if second.shape != first.shape or isinstance(second.element, FloatType):
            op.fail(f"the positions are {second}, not an integer for each lane of {first}")


@verifies(ops.ExtractOp)
def verify_extract(op: Any) -> None:
    """A lane of a vector, or a row of a tile. Raises InvalidIR."""
    element = _lane_of(op.vector.type)
    if op.scalar.type is not element:
        op.fail(f"takes {op.scalar.type} out of {op.vector.type}, not {element}")


@verifies(ops.InsertOp)
def verify_insert(op: Any) -> None:
    """A vector with another lane, or a tile with another row. Raises InvalidIR."""
    element = _lane_of(op.vector.type)
    if op.scalar.type is not element:
        op.fail(f"puts {op.scalar.type} into {op.vector.type}, not {element}")
    if op.inserted.type is not op.vector.type:
        op.fail(f"gives {op.inserted.type}, not {op.vector.type}")


def _lane_of(type_: VectorType) -> Type:
    rest = type_.shape[1:]
    return VectorType(rest, type_.element) if rest else type_.element
