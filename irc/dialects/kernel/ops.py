"""The operations of the kernel dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects.loop import SCATTER_COMBINERS
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Region, Value
from irc.ir.definition import (
    Op,
    attribute,
    of,
    operand,
    optional_operand,
    region,
    result,
    variadic_operand,
    variadic_region,
    variadic_result,
)
from irc.ir.registry import register_attribute
from irc.ir.traits import (
    AllocatesMemory,
    IsolatedFromAbove,
    Pure,
    ReadsMemory,
    SymbolOp,
    Terminator,
    WritesMemory,
)
from irc.ir.types import FunctionType, IndexType, IntegerType, VectorType, index


@register_attribute
class PointerType(Type):
    """`!kernel.ptr<f32>`: the address of elements in memory (bool: one byte each)."""

    __slots__ = ()
    dialect = "kernel"
    mnemonic = "ptr"
    fields = ("element",)
    element: Type


#: What a kernel is made for.
TARGETS = ("cpu", "gpu")
PAIR_COMBINERS = ("argmin", "argmax")
LOGICAL_COMBINERS = ("any", "all", "xor")
REDUCE_COMBINERS = ("sum", "prod", "min", "max", *LOGICAL_COMBINERS, *PAIR_COMBINERS)
SCAN_COMBINERS = (*REDUCE_COMBINERS, "logsumexp", "sort")
#: What factors of f32 are rounded to before a dot multiplies them: nothing, 10 bits, or three parts
#: of 10 bits; or three parts of 8 bits, of whose products it adds up the first, or the next five.
DOT_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x1", "bf16x5")

POINTER = of(PointerType)
INDEX = of(IndexType)
VECTOR = of(VectorType)


class KernelFuncOp(Op):
    """A kernel. Arguments: pointers, then `index` scalars (sizes); a cpu kernel's last two are
    `begin` and `end`, the part of its outermost iteration space that this call computes.

    `symbols` names the symbol that each `index` argument binds. `grid` (gpu): the number of
    program instances, an expression over these symbols; on a cpu: the size of the outermost
    space (0 <= begin <= end <= grid). `work`: estimated scalar operations per outermost point
    (for the decision to run serially). `outputs`: positions of the pointer arguments written.
    `inplace`: flat list of pairs (input position, output position) that may share memory: the
    input is then never read where the output was stored before (`kernel_verify_sharing`).
    `initialized`: such pairs whose output must hold a copy of the input before the launch, or (of
    pairs in `inplace`, too) be the same memory: what a scatter combines into. `copying` (cpu, until
    `bufferize`): the variant of such a kernel that makes the copies itself, for launches whose
    outputs have other memory. `private` (cpu): outputs that are memory of the kernel's own, with a
    part for each point, of which a call uses that of its first. `descriptor_bytes` (gpu): the last
    output is memory for what describes matrices to the hardware (`kernel.load_tile`), so many bytes
    a program instance. `early` (gpu): program instances begin before what was launched before them
    ends, and wait for that; `opens`: they let those of the next launch that are `early` begin.

    `kernel.func @k(%x: !kernel.ptr<f32>, %begin: index, %end: index)
    attributes {target = "cpu"} { kernel.return }`
    """

    name = "kernel.func"
    traits = frozenset({IsolatedFromAbove, SymbolOp})
    parents = ("builtin.module",)
    sym_name = attribute(A.StringAttr)
    function_type = attribute(A.TypeAttr)
    target = attribute(A.StringAttr, words=TARGETS)
    symbols = attribute(A.ArrayAttr, "of StringAttr", optional=True)
    grid = attribute(A.DimAttr, optional=True)
    work = attribute(A.DimAttr, optional=True)
    outputs = attribute(A.DenseIntsAttr, optional=True)
    inplace = attribute(A.DenseIntsAttr, optional=True)
    initialized = attribute(A.DenseIntsAttr, optional=True)
    copying = attribute(A.SymbolRefAttr, optional=True)
    private = attribute(A.DenseIntsAttr, "cpu", optional=True)
    num_warps = attribute(A.IntegerAttr, "gpu", optional=True)
    num_stages = attribute(A.IntegerAttr, "gpu", optional=True)
    index_bits = attribute(A.IntegerAttr, "gpu: 32 where no index leaves 32 bits", optional=True)
    descriptor_bytes = attribute(A.IntegerAttr, "gpu", optional=True)
    early = attribute(A.UnitAttr, "gpu", optional=True)
    opens = attribute(A.UnitAttr, "gpu", optional=True)
    body = region()

    @classmethod
    def create(
        cls, name: str, inputs: Sequence[Type], target: str, **attrs: Attribute
    ) -> KernelFuncOp:
        """A kernel with an empty entry block."""
        entries = {
            "sym_name": A.StringAttr(name),
            "function_type": A.TypeAttr(FunctionType(inputs, ())),
            "target": A.StringAttr(target),
            **attrs,
        }
        return cls((), (), entries, (Region([Block(inputs)]),))

    @property
    def block(self) -> Block:
        """The entry block."""
        return self.regions[0].blocks[0]

    @property
    def is_gpu(self) -> bool:
        """Whether program instances compute tiles of its space; on a cpu a call computes the part
        from `begin` to `end`."""
        return self.target == "gpu"

    def local_symbols(self) -> tuple[str, ...]:
        """The symbols that the `index` arguments bind."""
        names = self.attributes.get("symbols")
        if not isinstance(names, A.ArrayAttr):
            return ()
        return tuple(n.value for n in names if isinstance(n, A.StringAttr))


class KernelReturnOp(Op):
    """Ends a kernel.

    `kernel.return`
    """

    name = "kernel.return"
    traits = frozenset({Terminator})
    parents = ("kernel.func",)


class ForOp(Op):
    """Runs the body for `iv` in lower, lower + step, ... below upper, carrying values.

    The body's block has `iv` (index) and one argument per carried value, and ends in
    `kernel.yield` of the next ones; the results are the last. `step` is a positive constant in
    all generated code. `unroll` asks the code generator for that factor, `stages` one for a GPU to
    read ahead: that many turns are under way at a time. `flat` (gpu): the loop inside is one with
    it, so that it reads ahead beyond its end.

    `%s = kernel.for %j = %lo to %hi step %c16 iter_args(%a = %zero) -> (vector<16xf32>) {
    kernel.yield %a : vector<16xf32> }`
    """

    name = "kernel.for"
    lower = operand(INDEX)
    upper = operand(INDEX)
    step = operand(INDEX)
    initial = variadic_operand()
    unroll = attribute(A.IntegerAttr, optional=True)
    stages = attribute(A.IntegerAttr, optional=True)
    flat = attribute(A.UnitAttr, optional=True)
    final = variadic_result()
    body = region()

    @property
    def block(self) -> Block:
        """The body's block."""
        return self.regions[0].blocks[0]


class IfOp(Op):
    """Runs the first region if the (scalar) condition holds, else the second; both yield the
    results.

    `%r = kernel.if %c -> (f32) { kernel.yield %a : f32 } else { kernel.yield %b : f32 }`
    """

    name = "kernel.if"
    condition = operand(of(IntegerType))
    outcome = variadic_result()
    then_body = region()
    else_body = region()


class KernelYieldOp(Op):
    """Ends the body of kernel.for and kernel.if, and what is `beside` a kernel.dot_rows.

    `kernel.yield %a : f32`
    """

    name = "kernel.yield"
    traits = frozenset({Terminator})
    parents = ("kernel.for", "kernel.if", "kernel.dot_rows")
    values = variadic_operand()


class ProgramIdOp(Op):
    """The number of this program instance (gpu).

    `%p = kernel.program_id : index`
    """

    name = "kernel.program_id"
    traits = frozenset({Pure})
    value = result(INDEX)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (index,)


class LoadOp(Op):
    """Loads a scalar, or a vector of consecutive elements, from `pointer + offset`.

    `offset` counts elements. With a mask (vector of i1, or scalar i1), a false lane reads nothing
    and gives `other`'s lane (zero without it). bool memory (one byte) loads as i1.

    `%v = kernel.load %p[%i] : vector<16xf32>`
    """

    name = "kernel.load"
    traits = frozenset({ReadsMemory})
    pointer = operand(POINTER)
    offset = operand(INDEX)
    mask = optional_operand()
    other = optional_operand()
    value = result()


class StoreOp(Op):
    """Stores a scalar or a vector of consecutive elements at `pointer + offset`; a false lane of
    the mask writes nothing.

    `kernel.store %v, %p[%i] : vector<16xf32>`
    """

    name = "kernel.store"
    traits = frozenset({WritesMemory})
    stored = operand()
    pointer = operand(POINTER)
    offset = operand(INDEX)
    mask = optional_operand()


class LoadTileOp(Op):
    """Loads a tile of a matrix in memory, from element [`row`, `column`] on: zeros outside of it
    (gpu).

    The matrix begins at `pointer` and has `sizes` [rows, columns]; a row begins `stride` elements
    behind the one before it, a multiple of 16 bytes, and its elements lie side by side. `pointer`
    is a multiple of 16 bytes. Triton makes it a copy by the tensor memory accelerator where the GPU
    has one.

    `%t = kernel.load_tile %p, %i, %j {sizes = #sym.dims<[100, 64]>, stride = #sym<64>} :
    (!kernel.ptr<bf16>, index, index) -> vector<16x32xbf16>`
    """

    name = "kernel.load_tile"
    traits = frozenset({ReadsMemory})
    pointer = operand(POINTER)
    row = operand(INDEX)
    column = operand(INDEX)
    sizes = attribute(A.DimsAttr)
    stride = attribute(A.DimAttr)
    value = result(VECTOR)

    @property
    def described(self) -> tuple[Any, ...]:
        """What is equal for tiles that one description serves."""
        shape = getattr(self.value.type, "shape", ())
        return self.pointer, tuple(self.sizes), self.stride, shape


class PrefetchOp(Op):
    """Asks for the memory at `pointer + offset` to be brought into the second-level cache (cpu).

    It may lie outside of the array; nothing is read or written, and no value changes.

    `kernel.prefetch %p, %i : (!kernel.ptr<f32>, index)`
    """

    name = "kernel.prefetch"
    pointer = operand(POINTER)
    offset = operand(INDEX)


class GatherOp(Op):
    """Loads lane by lane from `pointer + offsets[lane]`; `offsets` is a vector of index (of any
    rank on a gpu). Masked lanes as for kernel.load.

    cache: `keep` what is read again, `drop` what is not; nothing is said by default.

    `%v = kernel.gather %p[%offs] : vector<16xf32>`
    """

    name = "kernel.gather"
    traits = frozenset({ReadsMemory})
    pointer = operand(POINTER)
    offsets = operand(VECTOR)
    mask = optional_operand()
    other = optional_operand()
    value = result(VECTOR)
    cache = attribute(A.StringAttr, default="", words=("", "keep", "drop"))


class LoadStridedOp(Op):
    """Loads a vector of elements that lie `stride` apart, the first at `pointer + offset` (cpu).

    What lies between is read, too, nothing on either side. A negative stride goes backwards.

    `%v = kernel.load_strided %p[%i] {stride = 3 : i64} : vector<16xf32>`
    """

    name = "kernel.load_strided"
    traits = frozenset({ReadsMemory})
    pointer = operand(POINTER)
    offset = operand(INDEX)
    mask = optional_operand()
    other = optional_operand()
    value = result(VECTOR)
    stride = attribute(A.IntegerAttr)


class ScatterOp(Op):
    """Stores lane by lane, in lane order, at `pointer + offsets[lane]`.

    `combiner`: set, sum, prod, min, max. On a gpu any but `set` is atomic (`relaxed`).

    `kernel.scatter %v, %p[%offs] {combiner = "sum"} : vector<16xf32>`
    """

    name = "kernel.scatter"
    traits = frozenset({ReadsMemory, WritesMemory})
    stored = operand()
    pointer = operand(POINTER)
    offsets = operand(doc="vector of index, or a scalar index")
    mask = optional_operand()
    combiner = attribute(A.StringAttr, default="set", words=SCATTER_COMBINERS)


class CheckOp(Op):
    """Writes false to the element at `pointer` where a lane of `truth` is false (gpu); nothing is
    written where all are true. Lanes that the mask leaves out count as true.

    The element is a flag of the host's (`host.flag`): kernels do nothing else with its pointer.

    `kernel.check %ok, %p : (vector<16xi1>, !kernel.ptr<i1>)`
    """

    name = "kernel.check"
    traits = frozenset({WritesMemory})
    truth = operand(doc="i1, or a vector of it")
    pointer = operand(POINTER)
    mask = optional_operand()


class SplatOp(Op):
    """A vector with every lane equal to a scalar; or, of a short vector, that again and again
    (cpu).

    `%v = kernel.splat %x : (f32) -> vector<16xf32>`
    """

    name = "kernel.splat"
    traits = frozenset({Pure})
    scalar = operand()
    vector = result(VECTOR)


class IotaOp(Op):
    """0, 1, 2, ... along dimension `dim` of the vector type.

    `%v = kernel.iota : vector<16xindex>`
    """

    name = "kernel.iota"
    traits = frozenset({Pure})
    dim = attribute(A.IntegerAttr, default=0)
    vector = result(VECTOR)


class ExpandOp(Op):
    """Inserts size-1 dimensions and broadcasts to the result's shape (gpu): dimension
    `dims[k]` of the result is dimension k of the operand.

    `%w = kernel.expand %v {dims = array<i64: 0>} : (vector<16xf32>) -> vector<16x32xf32>`
    """

    name = "kernel.expand"
    traits = frozenset({Pure})
    source = operand(VECTOR)
    dims = attribute(A.DenseIntsAttr)
    expanded = result(VECTOR)


class TransposeOp(Op):
    """Exchanges the two dimensions of a tile (cpu: 16x16 and 8x8 in registers). With `together`,
    groups of so many elements that lie side by side stay so, and count as one (cpu).

    `%w = kernel.transpose %v : (vector<16x16xf32>) -> vector<16x16xf32>`
    """

    name = "kernel.transpose"
    traits = frozenset({Pure})
    source = operand(VECTOR)
    together = attribute(A.IntegerAttr, default=1)
    transposed = result(VECTOR)


class ReduceOp(Op):
    """Combines the lanes along `dim` with `combiner` (sum prod min max any all xor; or, with
    two operands and results, argmin and argmax of (value, position)). All lanes of a rank-1
    vector give a scalar.

    `%s = kernel.reduce %v {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> f32`
    """

    name = "kernel.reduce"
    traits = frozenset({Pure})
    sources = variadic_operand()
    combiner = attribute(A.StringAttr, words=REDUCE_COMBINERS)
    dim = attribute(A.IntegerAttr, default=0)
    reduced = variadic_result()


class DotOp(Op):
    """`accumulator + left * right` of tiles as matrices: [m, k] times [k, n] added up in [m, n].

    Products are summed up in the accumulator's type, in an order of the target's; the elements and
    least sizes that each target multiplies stand in `irc.dialects.kernel.dots`. `precision`, of
    factors of f32: `ieee` multiplies them as they are, `tf32` rounds them to 10 bits, `tf32x3` cuts
    them into parts of such bits whose products are summed up. `bf16x1` and `bf16x5` cut them into
    three bf16, the first one towards zero, the others as near as there are: a1 b1, and the sum of
    a1 b2, a2 b1, a2 b2, a1 b3 and a3 b1.

    `%t = kernel.dot %a, %b, %c : (vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xf32>) ->
    vector<16x16xf32>`
    """

    name = "kernel.dot"
    traits = frozenset({Pure})
    left = operand(VECTOR)
    right = operand(VECTOR)
    accumulator = operand(VECTOR)
    precision = attribute(A.StringAttr, default="ieee", words=DOT_PRECISIONS)
    total = result(VECTOR)


class DotRowsOp(Op):
    """`sums = left * right`, for some rows of a factor and a panel of `columns` of the other (cpu).

    Products of matrices where the registers hold whole tiles, the sizes of which
    `irc.dialects.kernel.dots` says for an element: of bf16, 16 rows by 32 terms, or these by 16
    columns. The `rows` fill all of `tiles` but the last, and some of that; behind their sums,
    `sums` may hold anything then. Row r of the left factor has its terms side by side from
    `left[left_offset + r * left_step]` on; or it is `in_tiles`: term k of row r lies at
    `left_offset + r // 16 * left_step + k // 32 * 512 + r % 16 * 32 + k % 32`. The right factor has
    panels of 16 columns, `right_step` elements from one to the next, with groups of terms: terms 2k
    and 2k + 1 of column n lie at `right_offset + n // 16 * right_step + 2 * (16 * k + n % 16)`.
    `depth` terms, a multiple of what a tile has, are summed up in the type of the sums, in an order
    of the machine's, with factors and sums that are too small for normal numbers taken as zero.
    `sums` is overwritten, a row of `columns` after the other. `beside` is what else is to be done
    meanwhile, or no region: its block is run for each tile of the depth, with the tile's first
    term, in order; it may still read what `sums` held before, and writes none of the factors.
    `passing`: the factor that is loaded so that it leaves the other one, which is read again and
    again, its place in the first-level cache.

    Numbers of f32 are multiplied as the sum of three `parts` of bf16, from the largest on: part p
    of a factor lies `apart` elements behind the one before, the left one's first. All products of
    parts p and q with p + q < 3 are summed up, which is as exact as sums in f32 are; where that is
    no finite number, the sum is that of the first parts' products, as an infinity has no rest.

    `kernel.dot_rows %a, %i, %s, %m, %b, %j, %t, %c, %k {tiles = 2 : i64, columns = 32 : i64} :
    (!kernel.ptr<bf16>, index, index, index, !kernel.ptr<bf16>, index, index, !kernel.ptr<f32>,
    index)`
    """

    name = "kernel.dot_rows"
    traits = frozenset({ReadsMemory, WritesMemory})
    left = operand(POINTER)
    left_offset = operand(INDEX)
    left_step = operand(INDEX)
    rows = operand(INDEX)
    right = operand(POINTER)
    right_offset = operand(INDEX)
    right_step = operand(INDEX)
    sums = operand(POINTER)
    depth = operand(INDEX)
    tiles = attribute(A.IntegerAttr)
    columns = attribute(A.IntegerAttr)
    passing = attribute(A.StringAttr, optional=True, words=("left", "right"))
    apart = variadic_operand(INDEX)
    in_tiles = attribute(A.BoolAttr, default=False)
    beside = variadic_region()

    @property
    def parts(self) -> int:
        """The parts that the factors' numbers are cut into."""
        return 3 if self.apart else 1


class DotLanesOp(Op):
    """`accumulator[i] + sum over g of left[i * group + g] * right[i * group + g]` (cpu).

    Lanes of the sums each have a group of terms, as many as the factors have more elements. The
    elements that targets multiply like this stand in `irc.dialects.kernel.dots`. Products of floats
    are added up in an order of the machine's, which may take numbers below the normal ones as zero
    and rounds to the nearest; sums of integers wrap around. `unsigned_left`: the left factor's
    integers are not signed.

    `%t = kernel.dot_lanes %a, %b, %c : (vector<32xbf16>, vector<32xbf16>, vector<16xf32>) ->
    vector<16xf32>`
    """

    name = "kernel.dot_lanes"
    traits = frozenset({Pure})
    left = operand(VECTOR)
    right = operand(VECTOR)
    accumulator = operand(VECTOR)
    unsigned_left = attribute(A.BoolAttr, default=False)
    total = result(VECTOR)


class InterleaveOp(Op):
    """The first lanes of vectors one after the other, then the second ones, and so on (cpu).

    `%w = kernel.interleave %a, %b : (vector<16xbf16>, vector<16xbf16>) -> vector<32xbf16>`
    """

    name = "kernel.interleave"
    traits = frozenset({Pure})
    sources = variadic_operand()
    interleaved = result(VECTOR)


class KernelScanOp(Op):
    """Inclusive scan along `dim` with `combiner` (sum prod min max any all xor; logsumexp on a gpu;
    or pairs as kernel.reduce). `sort` (gpu) puts integers in order along the last dimension.

    `%s = kernel.scan %v {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> vector<16xf32>`
    """

    name = "kernel.scan"
    traits = frozenset({Pure})
    sources = variadic_operand()
    combiner = attribute(A.StringAttr, words=SCAN_COMBINERS)
    dim = attribute(A.IntegerAttr, default=0)
    scanned = variadic_result()


class ExtractOp(Op):
    """One lane of a rank-1 vector; `lane` is an index value.

    `%x = kernel.extract %v, %i : (vector<16xf32>, index) -> f32`
    """

    name = "kernel.extract"
    traits = frozenset({Pure})
    vector = operand(VECTOR)
    lane = operand(INDEX)
    scalar = result()


class InsertOp(Op):
    """A vector with one lane replaced.

    `%w = kernel.insert %x, %v, %i : (f32, vector<16xf32>, index) -> vector<16xf32>`
    """

    name = "kernel.insert"
    traits = frozenset({Pure})
    scalar = operand()
    vector = operand(VECTOR)
    lane = operand(INDEX)
    inserted = result(VECTOR)


class ScratchOp(Op):
    """Private memory of this program instance: `count` elements, uninitialized, freed when the
    kernel ends (cpu: on the stack, at most 256 KiB in all, placed in the entry block).

    `%p = kernel.scratch {count = 1024 : i64} : !kernel.ptr<f32>`
    """

    name = "kernel.scratch"
    traits = frozenset({AllocatesMemory})
    count = attribute(A.IntegerAttr)
    pointer = result(POINTER)
