"""Loop programs for the tests of kernel forming, and running them before and after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import irc
from irc.dialects import func, loop, sym
from irc.interp.core import run, torch_dtype
from irc.ir import attributes as A
from irc.ir import module as builtin
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Region, Value
from irc.ir.passes import PassManager
from irc.ir.symbols import Dim, free_symbols
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.common.bodies import Body, axis, make_axes, make_compute

FORMING = "schedule{vector_bits=%d},form-kernels"


def tensor(*sizes: Dim, e: Type = f32, strides: Sequence[Dim] | None = None) -> TensorType:
    """A tensor type; row-major unless strides are given."""
    return TensorType(sizes, e, contiguous_strides(sizes) if strides is None else strides)


class Program:
    """A function under construction. Symbols in argument types are bound at the top."""

    def __init__(self, *arguments: TensorType, minimum: int = 0) -> None:
        self.module = builtin.ModuleOp.empty()
        self.func = func.FuncOp.create("main", arguments, ())
        self.module.block.append(self.func)
        self.builder = Builder.at_end(self.func.block)
        self.args = self.func.block.arguments
        bound: set[str] = set()
        for value, type_ in zip(self.args, arguments, strict=True):
            for dim, size in enumerate(type_.shape):
                for name in sorted(free_symbols(size) - bound):
                    bound.add(name)
                    self.builder.create(
                        sym.BindSizeOp, value, dim=dim, symbol=name, minimum=minimum
                    )

    def compute(
        self,
        extents: Sequence[Dim],
        body: Callable[[Body], Any],
        *outputs: Any,
        red: Sequence[int] = (),
        kind: str = "red",
        types: Sequence[TensorType] = (),
        inits: Sequence[Value] = (),
    ) -> Any:
        """A compute over i0, i1, ...; `body` gives a value or (values, extra, masks). An output
        is None for a map, else (combiner, accumulator) or a ResultAttr."""
        code = Body()
        made = body(code)
        finish = made if isinstance(made, tuple) else (made,)
        values = finish[0] if isinstance(finish[0], list) else [finish[0]]
        code.finish(values, *finish[1:])
        outputs = outputs or (None,) * len(values)
        results: list[TensorType] = []
        attrs = []
        for output, value in zip(outputs, values, strict=True):
            attrs.append(attr := result_attr(output, kind))
            keep = attr.kind != "reduce"
            sizes = [e for k, e in enumerate(extents) if keep or k not in red]
            results += [tensor(*sizes, e=result_element(attr, value))] * attr.result_count
        result_types = list(types) or results
        op = make_compute(
            self.builder, make_axes(extents, red, kind), attrs, result_types, code, inits
        )
        return op.results[0] if len(op.results) == 1 else op.results

    def group(self, extents: Sequence[Dim], build: Callable[[], Sequence[Value]]) -> Any:
        """A group over i0, i1, ... of what `build` makes; it gives the values yielded."""
        block, outside = Block(), self.builder
        self.builder = Builder.at_end(block)
        yielded = list(build())
        segments = A.DenseIntsAttr((len(yielded), 0, 0))
        block.append(loop.YieldOp(yielded, (), {"operandSegmentSizes": segments}))
        self.builder = outside
        op = loop.GroupOp(
            (), [v.type for v in yielded], {"axes": make_axes(extents)}, (Region([block]),)
        )
        outside.insert(op)
        return op.results[0] if len(op.results) == 1 else op.results

    def finish(self, *values: Value) -> builtin.ModuleOp:
        """End the function; gives the module."""
        self.builder.create(func.ReturnOp, list(values))
        self.func.refresh_type()
        return self.module


def result_attr(output: Any, kind: str) -> loop.ResultAttr:
    """The attribute of an output given in short form."""
    if output is None:
        return loop.MAP
    if isinstance(output, loop.ResultAttr):
        return output
    combiner, accumulator = output
    return loop.ResultAttr("reduce" if kind == "red" else "scan", combiner, accumulator, None)


def result_element(attr: loop.ResultAttr, value: Value) -> Type:
    """The element of a result that nothing else is said of."""
    from irc.ir.types import i64

    if attr.combiner in ("argmin", "argmax"):
        return i64
    return value.type if attr.accumulator is None else attr.accumulator


def read(body: Body, source: Value, *indices: Dim, **rest: Any) -> Value:
    """A read at the given indices; at i0, i1, ... without any."""
    rank = source.type.rank  # type: ignore[attr-defined]
    return body.read(source, indices or [axis(k) for k in range(rank)], **rest)


def random_input(type_: TensorType, sizes: dict[str, int], seed: int = 0) -> torch.Tensor:
    """A tensor of a type, with the strides that it asks for."""
    from irc.ir.symbols import evaluate

    generator = torch.Generator().manual_seed(seed)
    shape = [evaluate(d, sizes) for d in type_.shape]
    strides = [evaluate(d, sizes) for d in type_.strides or ()]
    dtype = torch_dtype(type_.element)
    if dtype == torch.bool:
        content = torch.randint(0, 2, shape, generator=generator).bool()
    elif dtype.is_floating_point:
        content = torch.randn(shape, generator=generator).to(dtype)
    else:
        content = torch.randint(0, 100, shape, generator=generator).to(dtype)
    made = torch.empty_strided(shape, strides, dtype=dtype)
    return made.copy_(content)


def check(
    make: Callable[[], builtin.ModuleOp],
    inputs: Sequence[torch.Tensor],
    *,
    bits: Sequence[int] = (512, 256),
    native: bool = True,
    rtol: float = 1e-4,
    passes: str = "",
) -> None:
    """The kernels give what the loop program gives: over the reals to 1e-9, and natively."""
    wanted = run(make(), *inputs, mode="real")
    exact = run(make(), *inputs)
    for width in bits:
        module = make()
        text = passes + FORMING % width
        PassManager.parse(text, verify="each").run(module)
        compare(run(module, *inputs, mode="real"), wanted, 1e-9)
        if native and width == bits[0]:
            PassManager.parse("bufferize,plan-memory", verify="each").run(module)
            compare(run(module, *inputs, mode="real"), wanted, 1e-9)
            got = irc.build(module, target="llvm")(*inputs)
            compare(got if isinstance(got, list | tuple) else [got], exact, rtol)


def compare(got: Sequence[Any], wanted: Sequence[Any], rtol: float) -> None:
    """Assert that results are close, NaN being equal to NaN."""
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=rtol, equal_nan=True, check_stride=True)
