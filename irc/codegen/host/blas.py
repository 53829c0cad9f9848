"""Small matrix products of a native host program as one call of BLAS.

ATen computes a product of floats with BLAS's `?gemm`, and takes about 0.8 us to get there (operator
lookup, shapes of the result, a tensor for each operand); the product of two 8x8 matrices itself
takes 0.2 us. So a product of at most `small_product` multiplications (a figure of the target),
whose sizes and strides are constants, calls the `sgemm_` or `dgemm_` that torch exports, with the
same operands and therefore the same result. It stays a call of ATen in the program: counted, and
ATen's wherever the C function or the strides that BLAS can take are missing.

    product = small_products(program, most).get(id(step))    # None: not one of these
    emit_product(emitter, product, data)               # data: register -> address
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
from llvmlite import ir

from irc.codegen.host.base import I32, PTR, VOID, Value, constant
from irc.codegen.host.emitter import HostEmitter
from irc.dialects.aten.facts import factors_of
from irc.ir.symbols import Dim
from irc.program import host_program as P

#: The products that are emitted.
_OPERATORS = frozenset({"aten.mm.out", "aten.addmm.out"})
_SYMBOLS = {"float32": "sgemm_", "float64": "dgemm_"}
_FLOATS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}


@attrs.frozen
class Matrix:
    """An operand as BLAS sees it, column by column: element (i, j) is at i + j * `leading`, or at
    j + i * `leading` when `transposed`."""

    register: int
    transposed: bool
    leading: int


@attrs.frozen
class SmallProduct:
    """`out = bias + left @ right`, or without a bias; `rows` x `inner` by `inner` x `columns`.

    `bias` is a register with the strides of its two dimensions, None without one.
    """

    dtype: str
    rows: int
    columns: int
    inner: int
    left: Matrix
    right: Matrix
    out: Matrix
    bias: tuple[int, tuple[int, int]] | None = None

    @property
    def symbol(self) -> str:
        """The BLAS function's name."""
        return _SYMBOLS[self.dtype]


def small_products(program: P.HostProgram, most: int) -> dict[int, SmallProduct]:
    """The steps of a program that are products of few multiplications, by their `id`."""
    calls = (step for step in program.steps if isinstance(step, P.CallOperator))
    products = ((id(step), small_product(step, program.layouts, most)) for step in calls)
    return {key: product for key, product in products if product is not None}


def small_product(
    step: P.CallOperator, layouts: Mapping[int, P.Layout], most: int
) -> SmallProduct | None:
    """The product that `step` is, if it is a small one of constant sizes and torch exports BLAS."""
    from irc.boundary import torch_abi

    if step.path is not None or step.callee not in _OPERATORS:
        return None
    arguments = dict(step.arguments)
    if any(arguments.get(scale, 1) != 1 for scale in ("alpha", "beta")):
        return None
    names = factors_of(step.callee)
    registers = [arguments[name].index for name in (names.left, names.right, "out")]
    places = [_constant_layout(layouts.get(r)) for r in registers]
    dtypes = {layouts[r].dtype for r in registers if r in layouts}
    if None in places or len(dtypes) != 1 or not dtypes <= set(_SYMBOLS):
        return None
    (left, right, out), dtype = places, dtypes.pop()
    assert left is not None and right is not None and out is not None
    (rows, inner), columns = left[0], right[0][1]
    if right[0][0] != inner or out[0] != (rows, columns):
        return None  # ATen raises its error
    if not 0 < rows * inner * columns <= most:
        return None
    first, second, target = (
        _matrix(register, *place)
        for register, place in zip(registers, (left, right, out), strict=True)
    )
    bias = None
    if names.added is not None:
        bias = _broadcast(arguments[names.added].index, layouts, dtype, (rows, columns))
        if bias is None:
            return None
    if first is None or second is None or target is None:
        return None
    if torch_abi.symbol_address(_SYMBOLS[dtype]) is None:
        return None
    return SmallProduct(dtype, rows, columns, inner, first, second, target, bias)


_Constants = tuple[tuple[int, int], tuple[int, int]]


def _constant_layout(layout: P.Layout | None) -> _Constants | None:
    """Sizes and strides of a matrix, if they are constants."""
    if layout is None or layout.strides is None or len(layout.sizes) != 2:
        return None
    if layout.device != "cpu":
        return None
    dims: tuple[Dim, ...] = (*layout.sizes, *layout.strides)
    if not all(isinstance(d, int) for d in dims):
        return None
    return (dims[0], dims[1]), (dims[2], dims[3])  # type: ignore[return-value]


def _matrix(register: int, sizes: tuple[int, int], strides: tuple[int, int]) -> Matrix | None:
    """How BLAS reads it; None if neither of its dimensions is dense."""
    for transposed in (True, False):  # a dense row is, column by column, the transposed matrix
        dense, other = (1, 0) if transposed else (0, 1)
        if strides[dense] != 1 and sizes[dense] != 1:
            continue
        if sizes[other] == 1:
            return Matrix(register, transposed, sizes[dense])
        if strides[other] >= sizes[dense]:
            return Matrix(register, transposed, strides[other])
    return None


def _broadcast(
    register: int, layouts: Mapping[int, P.Layout], dtype: str, sizes: tuple[int, int]
) -> tuple[int, tuple[int, int]] | None:
    """A bias with the strides by which it is read as a matrix of `sizes`."""
    layout = layouts.get(register)
    if layout is None or layout.strides is None or layout.dtype != dtype:
        return None
    strides = [0, 0]
    missing = 2 - len(layout.sizes)
    for i, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        if not isinstance(size, int) or not isinstance(stride, int) or missing < 0:
            return None
        if size != 1:
            if size != sizes[missing + i]:
                return None
            strides[missing + i] = stride
    return register, (strides[0], strides[1])


def emit_product(emitter: HostEmitter, product: SmallProduct, data: Callable[[int], Value]) -> None:
    """Emit the product; `data` gives the address of a register's first element."""
    left, right, out = product.left, product.right, product.out
    rows, columns = product.rows, product.columns
    if product.bias is not None:
        _fill(emitter, product, data(product.bias[0]), data(out.register))
    if out.transposed:  # BLAS's columns are out's rows: out^T = right^T @ left^T
        left, right, rows, columns = _turned(right), _turned(left), columns, rows
    element = _FLOATS[product.dtype]
    beta = 0.0 if product.bias is None else 1.0
    arguments = [
        emitter.text("t" if left.transposed else "n"),
        emitter.text("t" if right.transposed else "n"),
        *(emitter.constants([n], I32) for n in (rows, columns, product.inner)),
        emitter.constants([1.0], element),
        data(left.register),
        emitter.constants([left.leading], I32),
        data(right.register),
        emitter.constants([right.leading], I32),
        emitter.constants([beta], element),
        data(out.register),
        emitter.constants([out.leading], I32),
    ]
    function = emitter.declare(product.symbol, VOID, [PTR] * len(arguments))
    emitter.builder.call(function, arguments)


def _turned(matrix: Matrix) -> Matrix:
    return attrs.evolve(matrix, transposed=not matrix.transposed)


def _fill(emitter: HostEmitter, product: SmallProduct, source: Value, target: Value) -> None:
    """Write the bias to every row of the result."""
    assert product.bias is not None
    element, out = _FLOATS[product.dtype], product.out
    steps = (out.leading, 1) if out.transposed else (1, out.leading)

    def place(base: Value, row: Value, column: Value, strides: tuple[int, int]) -> Value:
        b = emitter.builder
        index = b.add(b.mul(row, constant(strides[0])), b.mul(column, constant(strides[1])))
        return b.gep(base, [index], source_etype=element)

    with emitter.counted(product.rows) as row, emitter.counted(product.columns) as column:
        b = emitter.builder
        value = b.load(place(source, row, column, product.bias[1]), typ=element)
        b.store(value, place(target, row, column, steps))
