"""Host modules for the tests of `irc.build`, and running one in every way that there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import irc
from irc.boundary import torch_abi
from irc.dialects import aten, host, kernel, sym
from irc.ir import attributes as A
from irc.ir import module as builtin
from irc.ir import types as T
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Region, Value
from irc.ir.registry import lookup_op
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, contiguous_strides, f32, index
from irc.program.host_program import from_json, to_json
from irc.runtime.build_program import BuildOptions, compile_parts
from irc.runtime.program_cache import pack, unpack


def tensor(*sizes: Dim, element: Type = f32, strides: Sequence[Dim] | None = None) -> TensorType:
    """A tensor type, contiguous if nothing else is said."""
    return TensorType(sizes, element, contiguous_strides(sizes) if strides is None else strides)


def create(b: Builder, name: str, *operands: Any, to: Any = (), **attrs: Any) -> Any:
    """The result (None, one value, a tuple) of an operation by its name."""
    results = b.create(lookup_op(name), *operands, result_types=to, **attrs).results
    return results[0] if len(results) == 1 else tuple(results) or None


class HostModule:
    """A module with `host.func @main` under construction; kernels run point by point."""

    def __init__(self, *arguments: Type, names: Sequence[str] = ()) -> None:
        self.module = builtin.ModuleOp.empty()
        info = [A.DictAttr({"name": A.StringAttr(n)}) for n in names]
        self.func = host.HostFuncOp(
            (), (), {
                "sym_name": A.StringAttr("main"),
                "function_type": A.TypeAttr(T.FunctionType(arguments, ())),
                **({"arg_info": A.ArrayAttr(info)} if info else {}),
            }, (Region([Block(arguments)]),),
        )  # fmt: skip
        self.module.block.append(self.func)
        self.builder = Builder.at_end(self.func.block)
        self.arguments = self.func.block.arguments

    def op(self, name: str, *operands: Any, to: Any = (), **attrs: Any) -> Any:
        """An operation of the host program."""
        return create(self.builder, name, *operands, to=to, **attrs)

    def bind(self, value: Value, symbol: str, dim: int | None = None, **attrs: Any) -> Value:
        """Bind a symbol to an integer or to a tensor's size (or stride)."""
        if dim is None:
            return self.op("sym.bind", value, to=index, symbol=symbol, **attrs)
        return self.op("sym.bind_size", value, to=index, dim=dim, symbol=symbol, **attrs)

    def alloc(self, type_: TensorType, offset: Dim | None = None) -> Value:
        """Memory for a result, or with `offset` in the arena."""
        place = None if offset is None else A.DimAttr(offset)
        return self.op("host.alloc", to=type_, offset=place, escapes=offset is None)

    def aten(self, callee: str, inputs: Sequence[Value], to: Any, /, **arguments: Any) -> Any:
        """A call; integers wrapped in `Ref` are operands."""
        entries = A.DictAttr({k: attribute(v) for k, v in arguments.items()})
        return self.op("host.call_aten", list(inputs), to=to, callee=callee, arguments=entries)

    def launch(self, name: str, inputs: Sequence[Value], outs: Sequence[Value]) -> None:
        """Run a kernel of this module."""
        self.op("host.launch", list(inputs), list(outs), callee=A.SymbolRefAttr(name))

    def finish(self, *values: Value, info: Sequence[dict[str, Any]] | None = None) -> Any:
        """End the program with its results; gives the module."""
        self.op("host.return", list(values))
        if info is not None:
            entries = [A.DictAttr({k: A.IntegerAttr(v) for k, v in e.items()}) for e in info]
            self.func.attributes["result_info"] = A.ArrayAttr(entries)
        return self.module

    def kernel(
        self, name: str, inputs: Sequence[Type], outputs: Sequence[Type], grid: Dim,
        point: Callable[..., Sequence[Value]], *, symbols: Sequence[str] = (), work: int = 1,
        inner: str | None = None,
    ) -> str:
        """A kernel that computes `point(builder, i, symbols, *inputs' values)` at each element i.

        With `inner`, `point` also gets a second index below that symbol, takes the pointers, and
        stores by itself.
        """  # fmt: skip
        pointers = [kernel.PointerType(t) for t in (*inputs, *outputs)]
        func = kernel.KernelFuncOp.create(
            name, [*pointers, *[index] * (len(symbols) + 2)], "cpu", grid=A.DimAttr(grid),
            work=A.DimAttr(work), symbols=A.ArrayAttr([A.StringAttr(s) for s in symbols]),
            outputs=A.DenseIntsAttr(range(len(inputs), len(pointers))),
        )  # fmt: skip
        self.module.block.append(func)
        b = Builder.at_end(func.block)
        arguments = func.block.arguments
        sizes = dict(zip(symbols, arguments[len(pointers) : -2], strict=True))
        begin, end = arguments[-2:]
        one, zero = (create(b, "arith.constant", to=index, value=A.IntegerAttr(n, index))
                     for n in (1, 0))  # fmt: skip
        loop, i = _loop(b, begin, end, one)
        if inner is None:
            values = [create(loop, "kernel.load", p, i, to=t)
                      for p, t in zip(arguments, inputs, strict=False)]  # fmt: skip
            results = point(loop, i, sizes, *values)
            for value, pointer in zip(results, arguments[len(inputs) :], strict=False):
                create(loop, "kernel.store", value, pointer, i)
        else:
            deep, j = _loop(loop, zero, sizes[inner], one)
            point(deep, i, j, sizes, *arguments[: len(pointers)])
            create(deep, "kernel.yield", [])
        create(loop, "kernel.yield", [])
        create(b, "kernel.return")
        return name

    def add_one(self, grid: Dim, name: str = "add_one", work: int = 1) -> str:
        """`y[i] = x[i] + 1` on f32."""

        def point(b: Builder, i: Value, sizes: Any, x: Value) -> list[Value]:
            one = create(b, "arith.constant", to=f32, value=A.FloatAttr(1.0, f32))
            return [create(b, "arith.addf", x, one, to=f32)]

        return self.kernel(name, [f32], [f32], grid, point, work=work)


def _loop(b: Builder, lower: Value, upper: Value, step: Value) -> tuple[Builder, Value]:
    block = Block([index])
    b.create(kernel.ForOp, lower, upper, step, [], result_types=(), regions=[Region([block])])
    return Builder.at_end(block), block.arguments[0]


class Ref(int):
    """The number of an operand, as an argument of an operator."""


def attribute(value: Any) -> A.Attribute:
    """How an operator's argument is written."""
    if isinstance(value, Ref):
        return aten.OperandAttr(int(value))
    if value is None:
        return aten.NoneAttr()
    if isinstance(value, torch.dtype):
        return aten.DtypeAttr(str(value).removeprefix("torch."))
    if isinstance(value, torch.memory_format):
        return aten.MemoryFormatAttr(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return aten.DeviceAttr(str(value))
    if isinstance(value, (list, tuple)):
        return A.ArrayAttr([attribute(v) for v in value])
    for kind, cls in ((bool, A.BoolAttr), (int, A.IntegerAttr), (float, A.FloatAttr),
                      (str, A.StringAttr), (A.Attribute, lambda a: a)):  # fmt: skip
        if isinstance(value, kind):
            return cls(value)
    return A.DimAttr(value)


def fresh(argument: Any) -> Any:
    """A copy of an argument with memory of its own, in the same strides and offset."""
    if not isinstance(argument, torch.Tensor):
        return argument
    whole = argument.as_strided(
        (argument.untyped_storage().nbytes() // argument.element_size(),), (1,), 0
    ).detach().clone()  # fmt: skip
    return whole.as_strided(argument.shape, argument.stride(), argument.storage_offset())


def seen_by_caller(results: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """What a caller can see of results: content, layout, identity and shared memory."""
    seen: list[Any] = []
    for result in results:
        if not isinstance(result, torch.Tensor):
            seen.append((type(result), repr(result)))
            continue
        tensors = [(i, a) for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        shared = [i for i, a in tensors
                  if a.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()
                  and result.numel()]  # fmt: skip
        same = [i for i, a in tensors if a is result]
        offset = result.storage_offset() if shared else None
        strides = [s for s, n in zip(result.stride(), result.shape, strict=True)
                   if n > 1 and result.numel()]
        seen.append((result.dtype, list(result.shape), strides, shared, same, offset,
                     result.requires_grad, result.detach().clone()))  # fmt: skip
    return seen


def assert_same(a: Sequence[Any], b: Sequence[Any]) -> None:
    """Bitwise equality of what `seen_by_caller` gave."""
    assert len(a) == len(b)
    for left, right in zip(a, b, strict=True):
        assert left[:-1] == right[:-1]
        if isinstance(left[-1], torch.Tensor):
            torch.testing.assert_close(left[-1], right[-1], rtol=0, atol=0, equal_nan=True)
        else:
            assert left[-1] == right[-1]


def executables(module: Any) -> dict[str, Any]:
    """The module's executables: native, in Python, and from a stored entry."""
    parts = compile_parts(module, BuildOptions())
    assert from_json(to_json(parts.program)) == parts.program
    assert unpack(pack(parts)) == parts
    made = {"python": irc.build(module, options={"native": False})}
    assert not made["python"].is_native
    if torch_abi.available():
        made["native"] = irc.build(module)
        assert made["native"].is_native
    return made


def check(
    module: Any, *arguments: Any, expected: Callable[..., Sequence[Any]] | None = None,
    interpret: bool = True,
) -> list[Any]:
    """Run natively, in Python and in the interpreter; all must agree, and with `expected`.

    Gives the native results (Python's without torch's interface)."""  # fmt: skip
    runs: dict[str, list[Any]] = {}
    results: list[Any] = []
    for name, executable in executables(module).items():
        for _ in range(2):
            given = [fresh(a) for a in arguments]
            torch.manual_seed(3)
            results = list(executable(*given))
            runs[name] = seen_by_caller(results, given) + seen_by_caller(given, given)
    if interpret:
        given = [fresh(a) for a in arguments]
        torch.manual_seed(3)
        outcome = irc.run(module, *given)
        for mine, theirs in zip(results, outcome, strict=True):
            if isinstance(mine, torch.Tensor):
                torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
            else:
                assert mine == theirs
    reference = next(iter(runs.values()))
    for seen in runs.values():
        assert_same(seen, reference)
    if expected is not None:
        given = [fresh(a) for a in arguments]
        torch.manual_seed(3)
        assert_same(seen_by_caller(expected(*given), given) + seen_by_caller(given, given),
                    reference)  # fmt: skip
    return results


def check_error(module: Any, *arguments: Any, error: type[Exception], match: str) -> None:
    """Every executable raises this error."""
    for executable in executables(module).values():
        with pytest.raises(error, match=match):
            executable(*[fresh(a) for a in arguments])
        assert torch.is_grad_enabled()


__all__ = ["HostModule", "Ref", "check", "check_error", "create", "sym", "tensor"]
