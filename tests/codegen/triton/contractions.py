"""Contractions as loop-level text, for tests and figures: products of any strides, with what is
computed of the factors and of the sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import host, kernel, loop
from irc.interp.core import Frame
from irc.interp.host import fresh
from irc.interp.kernel import launch
from irc.ir import attributes as A
from irc.ir.passes import PassManager
from irc.passes.kernel.gpu.form import form_gpu_kernel, kernel_inputs, kernel_outputs
from irc.passes.kernel.gpu.frame import memory_of
from irc.passes.kernel.gpu.schedule import default_schedule

NAMES = {
    torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int8: "i8",
    torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2", torch.int32: "i32",
}  # fmt: skip


def array(shape: Sequence[int], strides: Sequence[int], element: str) -> str:
    """The type of an array."""
    return (f"tensor<[{', '.join(map(str, shape))}] x {element}, "
            f"strides [{', '.join(map(str, strides))}]>")  # fmt: skip


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides."""
    strides = [1] * len(shape)
    for k in range(len(shape) - 1, 0, -1):
        strides[k - 1] = strides[k] * max(1, shape[k])
    return tuple(strides)


def factor(
    name: str, source: str, indices: str, element: str, more: Sequence[str]
) -> tuple[str, str]:
    """Lines that read a factor, widened, and its value; `more`: lines of a prologue, of %_."""
    wide = {"i8": "i32"}.get(element, "f32")
    lines = [f"%{name}0 = loop.read {source}[{indices}] : {element}"]
    value = f"%{name}0"
    if element != wide:
        widen = "extsi" if wide == "i32" else "extf"
        lines.append(f"%{name}1 = arith.{widen} %{name}0 : {element} to {wide}")
        value = f"%{name}1"
    for number, line in enumerate(more):
        lines.append(f"%{name}_{number} = " + line.replace("%_", value))
        value = f"%{name}_{number}"
    return "\n".join(lines), value


@attrs.frozen
class Product:
    """`[batch,] m x n` sums of `k` products. Strides of the factors and of the result, row-major by
    default. `left` and `right`: lines of a prologue in f32, of the value %_. `epilogue`: lines of a
    map over the sum %_ (f32), in a group; it may read %more [m, n] and %bias [n] of the element."""

    m: int
    n: int
    k: int
    dtype: torch.dtype = torch.bfloat16
    batch: int = 0
    a_strides: Sequence[int] | None = None
    b_strides: Sequence[int] | None = None
    left: Sequence[str] = ()
    right: Sequence[str] = ()
    epilogue: Sequence[str] = ()
    result: torch.dtype | None = None
    twice: bool = False

    @property
    def element(self) -> str:
        """The factors' element."""
        return NAMES[self.dtype]

    @property
    def result_dtype(self) -> torch.dtype:
        """The element of what is stored."""
        if self.result is not None:
            return self.result
        if self.dtype is torch.int8:
            return torch.int32
        return torch.bfloat16 if self.dtype.itemsize == 1 else self.dtype

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of both factors and the result."""
        lead = (self.batch,) if self.batch else ()
        return (*lead, self.m, self.k), (*lead, self.k, self.n), (*lead, self.m, self.n)

    def text(self) -> str:
        """The program."""
        (a, b, y), axis = self.shapes(), "b, " if self.batch else ""
        result, wide = NAMES[self.result_dtype], "i32" if self.dtype is torch.int8 else "f32"
        kinds = [array(a, self.a_strides or dense(a), self.element),
                 array(b, self.b_strides or dense(b), self.element)]  # fmt: skip
        names = ["%a", "%b"]
        if self.epilogue:
            kinds += [array(y, dense(y), result), array((self.n,), (1,), result)]
            names += ["%more", "%bias"]
        if self.twice:
            kinds += kinds[:2]
            names += ["%a2", "%b2"]
        par = (f"b: {self.batch}, " if self.batch else "") + f"m: {self.m}, n: {self.n}"
        out = array(y, dense(y), result)
        sums = array(y, dense(y), wide)
        lines = []
        if self.epilogue:
            lines.append(f"%y = loop.group ({par}) {{")
        lines += self._sums("%s" if self.epilogue else "%y", "%a", "%b", par, axis,
                            sums if self.epilogue else out)  # fmt: skip
        if self.twice:
            lines += self._sums("%s2", "%a2", "%b2", par, axis, sums)
        if self.epilogue:
            lines += self._epilogue(par, axis, out, wide, result)
        head = ", ".join(f"{n}: {t}" for n, t in zip(names, kinds, strict=True))
        body = "\n".join(lines)
        return f"func.func @main({head}) -> {out} {{\n{body}\nfunc.return %y : {out} }}"

    def _sums(
        self, name: str, a: str, b: str, par: str, axis: str, type_: str
    ) -> list[str]:
        wide, multiply = ("i32", "muli") if self.dtype is torch.int8 else ("f32", "mulf")
        left, p = factor("p", a, f"{axis}m, k", self.element, self.left)
        right, q = factor("q", b, f"{axis}k, n", self.element, self.right)
        return [
            f"{name} = loop.compute par({par}) red(k: {self.k}) -> reduce(sum, {wide}) {{",
            left, right, f"%v = arith.{multiply} {p}, {q} : {wide}", f"loop.yield %v }} : {type_}",
        ]  # fmt: skip

    def _epilogue(self, par: str, axis: str, out: str, wide: str, result: str) -> list[str]:
        lines = [f"%e = loop.compute par({par}) -> map {{", f"%u = loop.read %s[{axis}m, n] : f32",
                 f"%r0 = loop.read %more[{axis}m, n] : {result}",
                 f"%c0 = loop.read %bias[n] : {result}"]  # fmt: skip
        if result == wide:
            lines += ["%zero = arith.constant 0.0 : f32", "%r = arith.addf %r0, %zero : f32",
                      "%c = arith.addf %c0, %zero : f32"]  # fmt: skip
        else:
            lines += [f"%r = arith.extf %r0 : {result} to f32",
                      f"%c = arith.extf %c0 : {result} to f32"]  # fmt: skip
        if self.twice:
            lines.append(f"%u2 = loop.read %s2[{axis}m, n] : f32")
        value = "%u"
        for number, line in enumerate(self.epilogue):
            lines.append(f"%e{number} = " + line.replace("%_", value))
            value = f"%e{number}"
        if result != wide:
            lines.append(f"%last = arith.truncf {value} : f32 to {result}")
            value = "%last"
        return [*lines, f"loop.yield {value} }} : {out}", f"loop.yield %e : {out}}} : {out}"]

    def arguments(self, device: str = "cpu") -> list[torch.Tensor]:
        """Random arguments of these strides."""
        made = []
        (a, b, y), gen = self.shapes(), torch.Generator(device).manual_seed(self.m + self.k)
        shapes = [(a, self.a_strides, self.dtype), (b, self.b_strides, self.dtype)]
        if self.epilogue:
            shapes += [(y, None, self.result_dtype), ((self.n,), None, self.result_dtype)]
        if self.twice:
            shapes += shapes[:2]
        for shape, strides, dtype in shapes:
            strides = strides or dense(shape)
            span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            span = max(0, span) if all(shape) else 0
            if dtype is torch.int8:
                flat = torch.randint(-128, 128, (span,), generator=gen, device=device)
            else:
                flat = torch.randn(span, generator=gen, device=device)
            made.append(flat.to(dtype).as_strided(shape, strides))
        return made


@attrs.define(eq=False)
class Formed:
    """A program's kernel by a schedule."""

    op: Any
    schedule: loop.ScheduleAttr
    func: kernel.KernelFuncOp
    source: str
    module: Any

    def tensors(self, args: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], int]:
        """The kernel's tensors for the program's arguments, and how many are inputs."""
        block = self.op.parent
        position = {a: k for k, a in enumerate(block.arguments)}
        inputs = [args[position[v]] for v in kernel_inputs(self.op)]
        frame = Frame(None, symbols={})
        types = [r.type for r in kernel_outputs(self.op)] + memory_of(self.func, "cpu")
        outputs = [fresh(frame, type_) for type_ in types]
        return [*inputs, *(o.to(inputs[0].device) for o in outputs)], len(inputs)

    @property
    def result(self) -> int:
        """The result's place among the kernel's tensors."""
        return len(kernel_inputs(self.op))

    def interpreted(self, args: Sequence[torch.Tensor]) -> torch.Tensor:
        """The result in irc's interpreter, at kernel level."""
        tensors, first = self.tensors(args)
        launch(Frame(None, symbols={}), self.func, tensors)
        return tensors[first]

    def job(self, args: Sequence[torch.Tensor]) -> runtime.Job:
        """The launch for Triton's interpreter."""
        return runtime.Job.of(self.func, self.source, self.tensors(args)[0], {})

    def compiled(self) -> dict[str, Any]:
        """The kernel compiled for sm_90."""
        options = runtime.launch_options(self.func)
        return runtime.compile_for(self.source, "k", runtime.signature_of(self.func), **options)


@attrs.define(eq=False)
class Launched:
    """A program of several kernels: each with its source, and the arrays that it takes and gives,
    by number: the arguments first."""

    kernels: list[tuple[kernel.KernelFuncOp, str, list[int], list[int]]]
    types: dict[int, Any]
    arguments: int
    last: int

    def arrays(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The arguments, then memory for what kernels give."""
        frame, device = Frame(None, symbols={}), args[0].device
        made = [fresh(frame, self.types[k]).to(device) for k in sorted(self.types)]
        return [*args, *made]

    def launcher(self, arrays: Sequence[torch.Tensor]) -> Any:
        """A function that launches all."""
        calls = [
            (runtime.launcher(func, source, {}), [*taken, *outputs])
            for func, source, taken, outputs in self.kernels
        ]

        def run(*args: torch.Tensor) -> None:
            held = [*args, *arrays[self.arguments :]]
            for call, numbers in calls:
                call(*(held[k] for k in numbers))

        return run


def launched(text: str, **given: Any) -> Launched:
    """A program of a contraction whose depth is in parts (`split_k`), as kernels."""
    schedule = loop.ScheduleAttr("gpu", A.DictAttr(entries_of(given)))
    module = irc.parse(text)
    compute = next(op for op in module.walk() if isinstance(op, loop.ComputeOp))
    compute.attributes["schedule"] = schedule
    passes = "split-reductions{target=gpu},schedule{target=gpu},form-kernels"
    PassManager.parse(passes).run(module)
    block = module.lookup("main").block
    numbers: dict[Any, int] = {a: k for k, a in enumerate(block.arguments)}
    made, types = [], {}
    for op in block.ops:
        if not isinstance(op, host.LaunchOp):
            continue
        func = module.lookup(op.callee)
        for result in op.results:
            types[len(numbers)] = result.type
            numbers[result] = len(numbers)
        made.append((func, emit_kernel(func), [numbers[v] for v in op.operands],
                     [numbers[r] for r in op.results]))  # fmt: skip
    return Launched(made, types, len(block.arguments), len(numbers) - 1)


def entries_of(given: Mapping[str, Any]) -> dict[str, A.Attribute]:
    """Entries of a schedule of Python values."""
    return {
        k: A.BoolAttr(v) if isinstance(v, bool) else A.IntegerAttr(v) if isinstance(v, int)
        else A.StringAttr(v)
        for k, v in given.items()
    }  # fmt: skip


def formed(text: str, **given: Any) -> Formed:
    """The kernel of a program's compute or group; `given`: entries of its schedule."""
    module = irc.parse(text)
    block = module.regions[0].blocks[0].first.regions[0].blocks[0]  # type: ignore[union-attr]
    op = next(o for o in block.ops if isinstance(o, loop.ComputeOp | loop.GroupOp))
    schedule = default_schedule(op, preset=entries_of(given))
    func = form_gpu_kernel(op, schedule, "k")
    irc.verify(func)
    return Formed(op, schedule, func, emit_kernel(func), module)
