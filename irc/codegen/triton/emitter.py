"""Triton source for kernels: `emit_kernel` and `emit_module`.

A source is importable as it stands: imports, the helper functions used (`irc_...`), then one
`@triton.jit` function per kernel with the kernel's arguments in order (pointers, then sizes).
Every SSA value is one assignment. Index arithmetic is 64-bit unless the kernel carries the
attribute `index_bits = 32`, which promises that no index of it leaves 32 bits.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irc.codegen.triton import functions, scalar_ops
from irc.codegen.triton.functions import TRITON_NAMES, Helper
from irc.codegen.triton.places import Places, expanded
from irc.codegen.triton.scalar_ops import element_of, narrow, short_name
from irc.dialects import kernel
from irc.ir.core import Block, Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import evaluate_with
from irc.ir.types import IntegerType, VectorType

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = re.compile(r"(v[0-9]+|irc_.*|_.*|tl|triton|libdevice|range|float)\Z")
HEADER = "import triton\nimport triton.language as tl\n"
LIBDEVICE_IMPORT = "from triton.language.extra import libdevice\n"


def emit_kernel(kernel_func: kernel.KernelFuncOp) -> str:
    """A complete source with one gpu kernel. UserError names what has no Triton code."""
    return emit_module([kernel_func])


def emit_module(kernels: Iterable[kernel.KernelFuncOp]) -> str:
    """A complete source with these gpu kernels; helpers appear once."""
    return emit_parts(kernels)[0]


def emit_parts(kernels: Iterable[kernel.KernelFuncOp]) -> tuple[str, dict[str, str]]:
    """As `emit_module`, and of each kernel what decides its code: its own text and that of the
    helpers that it uses, whatever it is called."""
    helpers: dict[str, Helper] = {}
    bodies, own = [], {}
    libdevice = False
    for func in kernels:
        used: dict[str, Helper] = {}
        writer = KernelWriter(func, used)
        bodies.append(writer.write())
        libdevice = libdevice or writer.libdevice
        helpers |= {name: each for name, each in used.items() if name not in helpers}
        lines = bodies[-1].replace(f"def {func.sym_name}(", "def kernel(", 1)
        own[func.sym_name] = "\n\n".join([*(h.source for h in used.values()), lines])
    imports = HEADER + (LIBDEVICE_IMPORT if libdevice else "")
    return "\n\n".join([imports, *(h.source for h in helpers.values()), *bodies]), own


def safe_name(name: str) -> str:
    """A Python identifier for a kernel. UserError when the symbol is not one."""
    if not _WORD.match(name) or keyword.iskeyword(name) or _RESERVED.match(name):
        raise UserError(f"@{name} can't name a Triton kernel: not a plain Python name")
    return name


class KernelWriter:
    """Writes one kernel."""

    def __init__(self, func: kernel.KernelFuncOp, helpers: dict[str, Helper]) -> None:
        if not func.is_gpu:
            raise UserError(f"@{func.sym_name} is a {func.target} kernel, not a gpu one", op=func)
        bits: Any = func.attr("index_bits")
        self.func = func
        self.helpers = helpers
        self.index_bits = 64 if bits is None else int(bits)
        if self.index_bits not in (32, 64):
            raise UserError(f"index_bits is {bits}, not 32 or 64", op=func)
        self.index_type = f"tl.int{self.index_bits}"
        self.libdevice = False
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Value, str] = {}
        self.symbols: dict[str, str] = {}
        self.count = 0
        self.made_first: list[str] = []
        self.tiles: dict[Any, str] = {}
        grid = func.attributes.get("grid")
        programs = None if grid is None else grid.parameters[0]
        programs = programs if isinstance(programs, int) else None
        self.places = Places(self.ref, self.named, self.index_bits, programs)
        self.loops = 0

    # -- what the spellings use

    def ref(self, value: Value) -> str:
        return self.names[value]

    def use(self, helper: Helper) -> str:
        for needed in helper.needs:
            self.use(needed)
        self.libdevice = self.libdevice or helper.libdevice
        self.helpers.setdefault(helper.name, helper)
        return helper.name

    def use_libdevice(self, name: str) -> str:
        self.libdevice = True
        return f"libdevice.{name}"

    def line(self, text: str) -> None:
        """Write one statement."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, value: Value) -> str:
        """A new name for a value."""
        name = self.names[value] = f"v{self.count}"
        self.count += 1
        return name

    def name_of(self, element: Any) -> str:
        return short_name(element, self.index_bits)

    def named(self, text: str) -> str:
        """A new name for what no value is, `name = text`."""
        name = f"v{self.count}"
        self.count += 1
        self.line(f"{name} = {text}")
        return name

    def define(self, value: Value, text: str) -> None:
        """`value = text`."""
        self.line(f"{self.fresh(value)} = {text}")

    def dim(self, dim: Any, bits: int) -> str:
        """A size as Triton's integer of so many bits."""
        text = evaluate_with(dim, self.symbols, _dim_texts(self))
        return f"tl.cast({text}, tl.int{bits})"

    def short(self, value: Value) -> str:
        """An index of 32 bits, as descriptors take them, whose sizes have no more."""
        text = self.ref(value)
        return text if self.index_bits == 32 else f"tl.cast({text}, tl.int32)"

    def tiles_of(self, op: kernel.LoadTileOp) -> str:
        """The descriptor of a matrix in memory and its tiles, made once, as the kernel begins."""
        key = op.described
        if key not in self.tiles:
            name = self.tiles[key] = f"t{len(self.tiles)}"
            sizes = ", ".join(self.dim(size, 32) for size in op.sizes)
            self.made_first.append(
                f"    {name} = tl.make_tensor_descriptor({self.ref(op.pointer)}, [{sizes}], "
                f"[{self.dim(op.stride, 64)}, 1], {_dims(_shape(op.value))})"
            )
        return self.tiles[key]

    # -- the kernel

    def write(self) -> str:
        """The text of the jit function."""
        parameters = self._parameters()
        if self.func.early:
            self.line(f"{self.use(functions.AFTER_LAUNCH)}()")
        if self.func.opens:
            self.line(f"{self.use(functions.OPEN_NEXT)}()")
        first = len(self.lines)
        self.block(self.func.block, None)
        self.lines[first:first] = self.made_first
        head = f"@triton.jit\ndef {safe_name(self.func.sym_name)}({', '.join(parameters)}):"
        return "\n".join([head, *self.lines]) + "\n"

    def _parameters(self) -> list[str]:
        names: list[str] = []
        symbols = [a.value for a in self.func.symbols] if self.func.symbols is not None else []
        scalars = 0
        for position, argument in enumerate(self.func.block.arguments):
            type_: Any = argument.type
            if isinstance(type_, kernel.PointerType):
                name = f"p{position}"
                self.names[argument] = name
                element = type_.element
                if isinstance(element, IntegerType) and element.unsigned:
                    signed = TRITON_NAMES[f"i{element.width}"]
                    self.line(f"{name} = {name}.to(tl.pointer_type({signed}), bitcast=True)")
                else:
                    self.name_of(element)  # refuses elements that Triton lacks
            else:
                name = f"n{position}"
                self.line(f"{name}_ = tl.cast({name}, {self.index_type})")
                self.names[argument] = f"{name}_"
                if scalars < len(symbols):
                    self.symbols[symbols[scalars]] = f"{name}_"
                scalars += 1
            names.append(name)
        return names

    def block(self, block: Block, targets: Sequence[str] | None) -> None:
        """Write a body; at its yield, the values are assigned to `targets`."""
        before, around = len(self.lines), self.places
        self.places = around.inner()
        for op in block.ops:
            if isinstance(op, kernel.KernelYieldOp):
                self._assign(targets or (), [self.ref(v) for v in op.values])
                continue
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            elif op.name.startswith("arith."):
                self.define(op.results[0], scalar_ops.arith_text(self, op))
            elif op.name.startswith("math."):
                self._math(op)
            else:
                raise UserError(f"{op.name} has no Triton code", op=op)
        self.places = around
        if len(self.lines) == before:
            self.line("pass")

    def _assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        moves = [(t, v) for t, v in zip(targets, values, strict=True) if t != v]
        if any(v in targets for _, v in moves) and len(moves) > 1:
            temporaries = []
            for target, value in moves:
                self.line(f"next_{target} = {value}")
                temporaries.append((target, f"next_{target}"))
            moves = temporaries
        for target, value in moves:
            self.line(f"{target} = {value}")

    def _math(self, op: Operation) -> None:
        refs = [self.ref(o) for o in op.operands]
        name = self.name_of(element_of(op.operands[0]))
        function = op.name.partition(".")[2]
        if "rough" in op.attributes:
            function += "_rough"
        text = scalar_ops.math_call(self, function, refs, name)
        self.define(op.results[0], text)


# -- operations of the kernel dialect


def _shape(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, VectorType) else ()


def _dims(shape: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _return(w: KernelWriter, op: kernel.KernelReturnOp) -> None:
    """The function ends by itself."""


def _program_id(w: KernelWriter, op: kernel.ProgramIdOp) -> None:
    w.define(op.results[0], f"tl.program_id(0).to({w.index_type})")


def _dim_texts(w: KernelWriter) -> dict[str, Callable[[Any, Any], str]]:
    """How functions of sizes are spelled."""
    return {
        "add": lambda a, b: f"({a} + {b})",
        "mul": lambda a, b: f"({a} * {b})",
        "min": lambda a, b: f"tl.minimum({a}, {b})",
        "max": lambda a, b: f"tl.maximum({a}, {b})",
        "floordiv": lambda a, b: scalar_ops.integer_binary(w, "floordivsi", str(a), str(b), "i64"),
        "ceildiv": lambda a, b: scalar_ops.integer_binary(w, "ceildivsi", str(a), str(b), "i64"),
    }


def _sym_value(w: KernelWriter, op: Any) -> None:
    text = evaluate_with(op.dim, w.symbols, _dim_texts(w))
    w.define(op.results[0], f"tl.cast({text}, {w.index_type})")


def _for(w: KernelWriter, op: kernel.ForOp) -> None:
    names = []
    for initial, final in zip(op.initial, op.final, strict=True):
        names.append(w.fresh(final))
        w.line(f"{names[-1]} = {w.ref(initial)}")
    position, *carried = op.block.arguments
    counter = f"i{w.count}"
    bounds = ", ".join(w.ref(v) for v in (op.lower, op.upper, op.step))
    more = "" if op.stages is None else f", num_stages={op.stages}"
    more += ", flatten=True" if op.flat else ""
    w.line(f"for {counter} in {'tl.range' if more else 'range'}({bounds}{more}):")
    # Rows that program instances walk over are tiles that each begin somewhere else.
    steps = int(op.stages is None or bool(op.initial))
    w.depth += 1
    w.loops += steps
    # In the interpreter the counter is a Python int.
    w.define(position, f"tl.cast({counter}, {w.index_type})")
    for argument, name in zip(carried, names, strict=True):
        w.names[argument] = name
    w.block(op.block, names)
    w.depth -= 1
    w.loops -= steps


def _if(w: KernelWriter, op: kernel.IfOp) -> None:
    names = [w.fresh(r) for r in op.outcome]
    w.line(f"if {w.ref(op.condition)}:")
    for region, text in ((op.then_body, None), (op.else_body, "else:")):
        if not region.blocks:
            continue
        if text is not None:
            w.line(text)
        w.depth += 1
        w.block(region.blocks[0], names)
        w.depth -= 1


_I1 = IntegerType(1)


def _pointer(w: KernelWriter, op: Any) -> str:
    """The pointer operand; a bool is one byte in memory and addressed as such."""
    ref = w.ref(op.pointer)
    if op.pointer.type.element is _I1:
        return f"{ref}.to(tl.pointer_type(tl.int8), bitcast=True)"
    return ref


def _consecutive(w: KernelWriter, op: Any, shape: Sequence[int]) -> str:
    offset = w.ref(op.offset)
    return f"({offset} + tl.arange(0, {shape[-1]}))" if shape else offset


#: What a read says about the cache, in Triton's words.
_POLICIES = {"keep": "evict_last", "drop": "evict_first"}


def _places(w: KernelWriter, op: kernel.GatherOp | kernel.ScatterOp, pointer: str) -> str:
    """What an access of lanes adds to its pointer, the pointer with it."""
    if w.loops:
        return f"{pointer} + {w.ref(op.offsets)}"
    place = w.places.whole_or_split(op.offsets)
    if not place.common or not place.lanes:
        return f"{pointer} + {w.ref(op.offsets)}"
    return f"{pointer} + {place.common} + {place.lanes}"


def _load_from(w: KernelWriter, op: Any, places: str) -> None:
    boolean = op.pointer.type.element is _I1
    text = f"tl.load({places}"
    if op.mask is not None:
        # Triton's interpreter makes no 8-bit float of an integer.
        zero = "0.0" if w.name_of(element_of(op.results[0])).startswith("f8") else "0"
        other = zero if op.other is None else w.ref(op.other)
        if boolean and op.other is not None:
            other = f"{other}.to(tl.int8)"
        text += f", mask={w.ref(op.mask)}, other={other}"
    if isinstance(op, kernel.GatherOp) and op.cache:
        text += f', eviction_policy="{_POLICIES[op.cache]}"'
    w.define(op.results[0], f"{text})" + (" != 0" if boolean else ""))


def _load(w: KernelWriter, op: kernel.LoadOp) -> None:
    _load_from(w, op, f"{_pointer(w, op)} + {_consecutive(w, op, _shape(op.value))}")


def _load_tile(w: KernelWriter, op: kernel.LoadTileOp) -> None:
    places = ", ".join(w.short(place) for place in (op.row, op.column))
    w.define(op.value, f"{w.tiles_of(op)}.load([{places}])")


def _gather(w: KernelWriter, op: kernel.GatherOp) -> None:
    _load_from(w, op, _places(w, op, _pointer(w, op)))


def _store_to(w: KernelWriter, op: Any, places: str) -> None:
    mask = "" if op.mask is None else f", mask={w.ref(op.mask)}"
    stored = w.ref(op.stored)
    if op.pointer.type.element is _I1:
        stored = f"{stored}.to(tl.int8)"
    w.line(f"tl.store({places}, {stored}{mask})")


def _store(w: KernelWriter, op: kernel.StoreOp) -> None:
    _store_to(w, op, f"{_pointer(w, op)} + {_consecutive(w, op, _shape(op.stored))}")


def _scatter(w: KernelWriter, op: kernel.ScatterOp) -> None:
    offsets = w.ref(op.offsets)
    if op.combiner == "set":
        _store_to(w, op, _places(w, op, _pointer(w, op)))
        return
    function = w.use(functions.atomic(op.combiner, w.name_of(op.pointer.type.element)))
    shape = _shape(op.offsets) or (1,)
    one = "" if _shape(op.offsets) else " + tl.arange(0, 1)"
    mask = f"tl.full({_dims(shape)}, True, tl.int1)"
    if op.mask is not None:
        mask = f"tl.broadcast_to({w.ref(op.mask)}, {_dims(shape)})"
        if not functions.one_instruction(op.combiner, w.name_of(op.pointer.type.element)):
            # A masked lane must name a place that exists: compare-and-swap has no mask. Elsewhere
            # the places stay as they are, so that Triton sees which are neighbours.
            offsets = f"tl.where({w.ref(op.mask)}, {offsets}, 0)"
    stored = f"tl.broadcast_to({w.ref(op.stored)}, {_dims(shape)})"
    w.line(f"{function}({w.ref(op.pointer)} + ({offsets}{one}), {stored}, {mask})")


def _check(w: KernelWriter, op: kernel.CheckOp) -> None:
    shape = _shape(op.truth)
    wrong = f"{w.ref(op.truth)} == 0"
    if op.mask is not None:
        wrong = f"({wrong}) & {w.ref(op.mask)}"
    place, false = _pointer(w, op), "0"
    if shape:
        place = f"{place} + tl.zeros({_dims(shape)}, tl.int32)"
        false = f"tl.zeros({_dims(shape)}, tl.int8)"
    w.line(f"tl.store({place}, {false}, mask={wrong})")


def _splat(w: KernelWriter, op: kernel.SplatOp) -> None:
    text = f"tl.broadcast_to({w.ref(op.scalar)}, {_dims(_shape(op.vector))})"
    if element_of(op.vector) is _I1:
        # Triton's interpreter makes bytes of a flag everywhere, which it takes for no mask.
        text = f"({text} != 0)"
    w.define(op.vector, text)


def _iota(w: KernelWriter, op: kernel.IotaOp) -> None:
    shape = _shape(op.vector)
    text = f"tl.arange(0, {shape[op.dim]})"
    if len(shape) > 1:
        text += _axes(len(shape), (op.dim,))
        text = f"tl.broadcast_to({text}, {_dims(shape)})"
    w.define(op.vector, f"{text}.to({TRITON_NAMES[w.name_of(element_of(op.vector))]})")


def _axes(rank: int, kept: Sequence[int]) -> str:
    return "[" + ", ".join(":" if d in kept else "None" for d in range(rank)) + "]"


def _expand(w: KernelWriter, op: kernel.ExpandOp) -> None:
    w.define(op.expanded, expanded(op, w.ref(op.source)))


def _transpose(w: KernelWriter, op: kernel.TransposeOp) -> None:
    w.define(op.transposed, f"tl.trans({w.ref(op.source)})")


def _combined_sources(w: KernelWriter, op: Any) -> tuple[list[str], list[str]]:
    """The operands widened to what Triton combines, and the types to come back to."""
    texts, back = [], []
    for source in op.sources:
        name = w.name_of(element_of(source))
        ref = w.ref(source)
        wide = "tl.float32" if narrow(name) else "tl.int32"
        needed = narrow(name) or name in ("i1", "i8", "i16")
        texts.append(f"{ref}.to({wide})" if needed else ref)
        back.append(name if needed else "")
    return texts, back


# On bool the arithmetic combiners are the logical ones.
_BOOL_COMBINERS = {"sum": "any", "max": "any", "prod": "all", "min": "all"}


def _combine(w: KernelWriter, op: Any, results: Sequence[Value], function: str) -> None:
    texts, back = _combined_sources(w, op)
    name = w.name_of(element_of(op.sources[0]))
    combiner = _BOOL_COMBINERS.get(op.combiner, op.combiner) if name == "i1" else op.combiner
    if combiner == "sum":
        combine = "tl.standard._sum_combine"
    else:
        wide = "f64" if name == "f64" else "f32"
        combine = w.use(functions.combiner(combiner, name[0] in "fb", wide))
    sources = f"({', '.join(texts)})" if len(texts) > 1 else texts[0]
    names = [w.fresh(r) for r in results]
    w.line(f"{', '.join(names)} = tl.{function}({sources}, {op.dim}, {combine})")
    for result, target in zip(names, back, strict=True):
        if target == "i1":
            w.line(f"{result} = {result} != 0")
        elif target:
            w.line(f"{result} = {result}.to({TRITON_NAMES[target]})")


def _reduce(w: KernelWriter, op: kernel.ReduceOp) -> None:
    _combine(w, op, op.reduced, "reduce")


def _dot(w: KernelWriter, op: kernel.DotOp) -> None:
    element, depth = w.name_of(element_of(op.left)), _shape(op.left)[-1]
    function = w.use(functions.dot(element, op.precision, depth))
    w.define(op.total, f"{function}({', '.join(w.ref(v) for v in op.operands)})")


def _scan(w: KernelWriter, op: kernel.KernelScanOp) -> None:
    if op.combiner == "sort":
        w.define(op.scanned[0], f"tl.sort({w.ref(op.sources[0])}, {op.dim})")
        return
    _combine(w, op, op.scanned, "associative_scan")


def _extract(w: KernelWriter, op: kernel.ExtractOp) -> None:
    name = w.name_of(element_of(op.vector))
    chosen = f"tl.arange(0, {_shape(op.vector)[0]}) == {w.ref(op.lane)}"
    bits = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}.get(name)
    ref = w.ref(op.vector)
    if bits is not None:
        ref = f"{ref}.to(tl.int{bits}, bitcast=True)"
    wide = "tl.int64" if (bits or 0) == 64 or name == "i64" else "tl.int32"
    text = f"tl.sum(tl.where({chosen}, {ref}.to({wide}), 0), 0)"
    if bits is not None:
        text = f"{text}.to(tl.int{bits}).to({TRITON_NAMES[name]}, bitcast=True)"
    else:
        text = f"{text} != 0" if name == "i1" else f"{text}.to({TRITON_NAMES[name]})"
    w.define(op.scalar, text)


def _insert(w: KernelWriter, op: kernel.InsertOp) -> None:
    chosen = f"tl.arange(0, {_shape(op.vector)[0]}) == {w.ref(op.lane)}"
    w.define(op.inserted, f"tl.where({chosen}, {w.ref(op.scalar)}, {w.ref(op.vector)})")


def _scratch(w: KernelWriter, op: kernel.ScratchOp) -> None:
    raise UserError("kernel.scratch has no meaning in a gpu kernel", op=op)


_HANDLERS: dict[type[Operation], Callable[[KernelWriter, Any], None]] = {
    kernel.KernelReturnOp: _return,
    kernel.ProgramIdOp: _program_id,
    kernel.ForOp: _for,
    kernel.IfOp: _if,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.LoadTileOp: _load_tile,
    kernel.GatherOp: _gather,
    kernel.ScatterOp: _scatter,
    kernel.CheckOp: _check,
    kernel.SplatOp: _splat,
    kernel.IotaOp: _iota,
    kernel.ExpandOp: _expand,
    kernel.TransposeOp: _transpose,
    kernel.ReduceOp: _reduce,
    kernel.DotOp: _dot,
    kernel.KernelScanOp: _scan,
    kernel.ExtractOp: _extract,
    kernel.InsertOp: _insert,
    kernel.ScratchOp: _scratch,
}


def _register_symbols() -> None:
    from irc.dialects import sym

    _HANDLERS[sym.ValueOp] = _sym_value


_register_symbols()
