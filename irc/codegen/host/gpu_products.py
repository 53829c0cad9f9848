"""Products of matrices of a native program of a GPU, as calls of the functions below torch's.

    products = gpu_products(program)        # by the `id` of their steps
    code = emit_gpu_product(emitter, products[id(step)], data)     # 0: the product is launched

`aten.mm.out` takes 15 us of an H200's host, of which cuBLAS takes 10. A product of one dtype whose
sizes and strides are constants, rows behind each other in its result, is a call of cuBLAS's own
function with the operands in the order in which the operator gives them: the same kernel, the same
bits, and no tensors for what lies in the program's block. Where the code isn't 0 nothing has been
launched, and the operator is to be called (`irc.boundary.cuda_blas` says when).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from irc.boundary.cuda_blas import DTYPES
from irc.codegen.host.aten import call_object
from irc.codegen.host.base import I32, I64, Value, constant
from irc.codegen.host.emitter import HostEmitter
from irc.codegen.host.support_products import KEPT_WORDS
from irc.dialects.aten.facts import factors_of
from irc.program import host_program as P

#: cuBLAS's mode in which sums of 16 bits may be as torch lets them be by default.
USUAL_MODE = 0
#: By operator: the form of the product.
_FORMS = {"aten.mm.out": "gemm", "aten.bmm.out": "batched", "aten.addmm.out": "biased"}


@attrs.frozen
class GpuProduct:
    """`words`: what the function gets besides addresses; `first` is the right operand, since BLAS
    goes column by column: it computes the transposed result. `bias`: a register or none.
    `mode`: the one that cuBLAS's handle is in meanwhile."""

    form: str
    dtype: str
    words: tuple[int, ...]
    first: int
    second: int
    out: int
    bias: int | None = None
    mode: int = USUAL_MODE


def gpu_products(program: P.HostProgram) -> dict[int, GpuProduct]:
    """The steps of a program that are such products."""
    calls = (step for step in program.steps if isinstance(step, P.CallOperator))
    products = ((id(step), gpu_product(step, program.layouts)) for step in calls)
    return {key: product for key, product in products if product is not None}


def gpu_product(step: P.CallOperator, layouts: Mapping[int, P.Layout]) -> GpuProduct | None:
    """The product that `step` is; None for one that only the operator computes."""
    if step.path is not None or step.callee not in _FORMS:
        return None
    form, names, arguments = _FORMS[step.callee], factors_of(step.callee), dict(step.arguments)
    tensors = [name for name in (names.left, names.right, names.added, "out") if name is not None]
    if set(arguments) - {"alpha", "beta"} != set(tensors):
        return None
    if any(arguments.get(scale, 1) != 1 for scale in ("alpha", "beta")):
        return None
    registers = [arguments[name].index for name in (names.left, names.right, "out")]
    operands = [layouts.get(register) for register in registers]
    places = [_constant(layout) for layout in operands]
    devices = {layout.device for layout in operands if layout is not None}
    dtypes = {layout.dtype for layout in operands if layout is not None}
    if None in places or len(devices) != 1 or len(dtypes) != 1 or not dtypes <= set(DTYPES):
        return None
    if not devices.pop().startswith("cuda"):
        return None
    left, right, out = (place for place in places if place is not None)
    words = _words(form, left, right, out)
    if words is None or max(words[:8]) >= 1 << 31:
        return None
    bias = None
    if names.added is not None:
        bias = arguments[names.added].index
        layout, columns = layouts.get(bias), out[0][1]
        vector = layout is not None and layout.sizes == (columns,) and layout.strides == (1,)
        if not vector or layout is None or {layout.dtype} != dtypes or out[1] != (columns, 1):
            return None  # torch adds it in another way
    return GpuProduct(form, dtypes.pop(), words, registers[1], registers[0], registers[2], bias)


_Place = tuple[tuple[int, ...], tuple[int, ...]]


def _constant(layout: P.Layout | None) -> _Place | None:
    """Sizes and strides, if they are constants."""
    if layout is None or layout.strides is None:
        return None
    sizes = tuple(dim for dim in layout.sizes if isinstance(dim, int))
    strides = tuple(dim for dim in layout.strides if isinstance(dim, int))
    known = len(sizes) == len(layout.sizes) and len(strides) == len(layout.strides)
    return (sizes, strides) if known else None


def _words(form: str, left: _Place, right: _Place, out: _Place) -> tuple[int, ...] | None:
    """What the function gets: of the first and the second operand whether it is transposed;
    columns, rows, inner elements, leading dimensions; for a batch steps from matrix to matrix, and
    how many there are."""
    rank = 3 if form == "batched" else 2
    if any(len(sizes) != rank for sizes, _ in (left, right, out)):
        return None
    (rows, inner), columns = left[0][-2:], right[0][-1]
    if right[0][-2] != inner or out[0][-2:] != (rows, columns):
        return None  # the operator tells its error
    # A row alone has whatever stride, and so has a column; torch may copy them, and adds biases in
    # another way.
    if min(inner, columns) < 2 or rows < (2 if form == "biased" else 1):
        return None
    first, second, target = (_matrix(*place) for place in (right, left, out))
    if first is None or second is None or target is None or target[0]:
        return None
    words = (int(first[0]), int(second[0]), columns, rows, inner, first[1], second[1], target[1])
    if form != "batched":
        return words
    batches = out[0][0]
    if batches < 2 or left[0][0] != batches or right[0][0] != batches:
        return None
    return (*words, right[1][0], left[1][0], out[1][0], batches)


def _matrix(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[bool, int] | None:
    """Whether columns are dense, not rows, and the stride of the others; None where neither are."""
    rows, columns = sizes[-2:]
    down, along = strides[-2:]
    if along == 1 and (down == columns if rows == 1 else down >= columns):
        return False, down
    if down == 1 and along >= rows > 1:
        return True, along
    return None


class KeptHandles:
    """The handles that a program's call keeps from product to product
    (`irc.codegen.host.support_products`): forgotten where something else may have used them."""

    def __init__(self, emitter: HostEmitter) -> None:
        self._emitter = emitter
        self._words: Value | None = None
        self._dtype: str | None = None

    def words(self, dtype: str) -> Value:
        """The words, for a product of a dtype: torch's settings are read for each anew."""
        e = self._emitter
        if self._words is None:
            self._words = e.alloca(I64, KEPT_WORDS)
        if self._dtype != dtype:
            self.clear()
            self._dtype = dtype
        return self._words

    def forget(self) -> None:
        """Behind what may have used the handles."""
        if self._dtype is not None:
            self.clear()
            self._dtype = None

    def clear(self) -> None:
        """Emit that nothing is kept, on a way that may not be taken, too."""
        if self._words is not None:
            for word in range(KEPT_WORDS):
                self._emitter.builder.store(constant(0), self._emitter.word(self._words, word))


def emit_gpu_product(
    emitter: HostEmitter, product: GpuProduct, data: Callable[[int], Value], kept: KeptHandles
) -> Value:
    """Emit the product; `data` gives the address of a register's first element."""
    if product.bias is not None:
        raise AssertionError("a product with a bias has a site")
    function = emitter.memory_of(("gpu-library", "product", product.form, product.dtype))
    operands = [
        function, emitter.constants(product.words), data(product.first), data(product.second),
        data(product.out), constant(product.mode), kept.words(product.dtype),
    ]  # fmt: skip
    support = emitter.support(support_name(product.form, product.dtype))
    return emitter.builder.call(support, operands)


def emit_biased_product(
    emitter: HostEmitter, product: GpuProduct, place: tuple[int, int], stream: Value,
    data: Callable[[int], Value], kept: KeptHandles,
) -> Value:  # fmt: skip
    """Emit a product with a bias on a stream; `place`: the device, and the number of the step."""
    assert product.bias is not None
    b, key = emitter.builder, ("gpu-library", "biased", product.dtype, product.words, *place)
    site = emitter.memory_of(key)
    addresses = [data(r) for r in (product.first, product.second, product.bias, product.out)]
    biased = emitter.support("irc_gpu_biased")
    code, words = emitter.alloca(I32), kept.words(product.dtype)
    b.store(b.call(biased, [site, *addresses, stream, words]), code)
    unloaded = b.icmp_signed("==", b.load(code, typ=I32), I32(2))
    with b.if_then(unloaded, likely=False):
        alignments = b.call(emitter.support("irc_gpu_alignments"), addresses)
        bias = b.ptrtoint(addresses[2], I64)
        call_object(emitter, key, [alignments, bias], [], [])
        kept.clear()
        b.store(b.call(biased, [site, *addresses, stream, words]), code)
    return b.load(code, typ=I32)


def support_name(form: str, dtype: str) -> str:
    """The support function for products of a form and a dtype."""
    return f"irc_gpu_{form}_single" if dtype == "float32" else f"irc_gpu_{form}"


__all__ = [
    "GpuProduct", "KeptHandles", "emit_biased_product", "emit_gpu_product", "gpu_product",
    "gpu_products", "support_name",
]  # fmt: skip
