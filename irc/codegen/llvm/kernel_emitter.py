"""kernel.func to LLVM: the functions of a module, loops and branches.

    data = compile_kernels([kernel_op, ...], TargetFeatures.host())
    address = load_object(data).address("kernel_0")

A kernel becomes `void @name(ptr..., i64...)` with the kernel's arguments in order. The text is
already vectorized, and no LLVM pass runs over it: see `compile_kernels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irc.codegen.llvm import (
    arith_emitter,
    dot_emitter,
    matrix_emitter,
    memory_emitter,
    reduce_emitter,
)
from irc.codegen.llvm.jit import compile_module, module_assembly
from irc.codegen.llvm.kernel_writer import KernelBody, ModuleWriter, Ref, emits, shape_of
from irc.dialects.kernel import KernelFuncOp, KernelYieldOp, PointerType
from irc.ir.core import Block, Value
from irc.ir.diagnostics import InvalidIR, UserError
from irc.target.cpu import TargetFeatures

#: The files whose import registers how operations are written.
EMITTERS = (arith_emitter, dot_emitter, matrix_emitter, memory_emitter, reduce_emitter)


def emit_kernels(
    kernels: Iterable[KernelFuncOp], features: TargetFeatures, precise: bool = False
) -> str:
    """The LLVM assembly of the kernels, one function each, named by their `sym_name`.

    `precise`: elementary functions of f32 are computed in f64 and rounded once. Raises InvalidIR
    for an operation or type that a cpu kernel can't have.
    """
    module = ModuleWriter(features, precise)
    names = set()
    for kernel in kernels:
        module.functions.append(_emit_function(module, kernel))
        names.add(kernel.sym_name)
    taken = names & (module.declarations.keys() | module.helpers.keys())
    if taken:
        raise InvalidIR(f"a kernel can't be called {min(taken)!r}: the kernels call that function")
    return module.text()


def compile_kernels(
    kernels: Iterable[KernelFuncOp], features: TargetFeatures, precise: bool = False
) -> bytes:
    """Object code of the kernels, with their `sym_name`s as symbols.

    Raises InvalidIR as `emit_kernels` does, JitError when LLVM refuses what was made of it.
    """
    return compile_module(emit_kernels(kernels, features, precise), features)


def emit_text(kernels: Iterable[KernelFuncOp], features: TargetFeatures, form: str) -> str:
    """The kernels as text for people: `form` is "llvm" (assembly of LLVM) or "asm" (of the
    machine). Raises UserError for another form."""
    text = emit_kernels([k for k in kernels if not k.is_gpu], features)
    if form == "llvm":
        return text
    if form == "asm":
        return module_assembly(text, features)
    raise UserError(f"kernels can be shown as llvm or asm, not as {form!r}")


def _emit_function(module: ModuleWriter, kernel: KernelFuncOp) -> str:
    if kernel.is_gpu:
        raise InvalidIR(f"the kernel is for {kernel.target}, not for a cpu", op=kernel)
    body = KernelBody(module)
    parameters = []
    for number, argument in enumerate(kernel.block.arguments):
        ref = f"%a{number}"
        body[argument] = ref
        attributes = _pointer_attributes(kernel, number, argument)
        parameters.append(f"{shape_of(argument.type).text}{attributes} {ref}")
    body.emit_block(kernel.block)
    header = f"define void {_symbol(kernel.sym_name)}({', '.join(parameters)}) #0 {{"
    return "\n".join([header, body.text(), "}\n"])


def _symbol(name: str) -> str:
    if not name or any(c in '"\\' or not c.isprintable() or ord(c) > 126 for c in name):
        raise InvalidIR(f"{name!r} can't be the name of a kernel")
    return f'@"{name}"'


def _pointer_attributes(kernel: KernelFuncOp, number: int, argument: Value) -> str:
    """Arrays are apart from each other, unless an output may take the memory of an input (which
    then may be that of a second input as well)."""
    if not isinstance(argument.type, PointerType) or kernel.outputs is None or kernel.inplace:
        return ""
    return " noalias" if number in kernel.outputs else " noalias readonly"


@emits("kernel.return")
def return_(body: KernelBody, op: Any) -> None:
    if body.tile_rows is not None:
        matrix_emitter.release(body)
    body.line("ret void")


@emits("kernel.yield")
def yield_(body: KernelBody, op: Any) -> None:
    """Its operands are read by the operation around it."""


def _yielded(body: KernelBody, block: Block) -> list[Ref]:
    """Write the block; the registers of what it yields."""
    terminator = body.emit_block(block)
    if not isinstance(terminator, KernelYieldOp):
        raise InvalidIR("the body does not end in kernel.yield", op=block.parent_op)
    return [ref for _, ref in body.flatten(terminator.operands)]


# -- kernel.if


@emits("kernel.if")
def if_(body: KernelBody, op: Any) -> None:
    known = body.constants.get(op.condition)
    if known is not None:
        region = op.then_body if known & 1 else op.else_body
        body.assign(op.results, _yielded(body, region.block) if region.blocks else [])
        return
    then, otherwise, done = (body.name(stem) for stem in ("then", "else", "done"))
    has_else = bool(op.else_body.blocks)
    before = body.block
    body.branch(body[op.condition], then, otherwise if has_else else done)
    body.open(then)
    first = _yielded(body, op.then_body.block)
    ends = [body.block]
    body.jump(done)
    second: list[Ref] = []
    if has_else:
        body.open(otherwise)
        second = _yielded(body, op.else_body.block)
        ends.append(body.block)
        body.jump(done)
    else:
        ends.append(before)
    body.open(done)
    types = _row_types(op.results)
    if len(first) != len(types) or len(second) != len(types):
        raise InvalidIR("the branches and the operation differ in results", op=op)
    body.assign(op.results, [
        body.phi(t, (a, ends[0]), (b, ends[1]))
        for t, a, b in zip(types, first, second, strict=True)
    ])


def _row_types(values: Sequence[Value]) -> list[str]:
    """The LLVM type of every row of these values."""
    types = []
    for value in values:
        shape = shape_of(value.type)
        types += [shape.text] * max(shape.rows, 1)
    return types


# -- kernel.for


@emits("kernel.for")
def for_(body: KernelBody, op: Any) -> None:
    lower, upper, step = (body[v] for v in (op.lower, op.upper, op.step))
    unroll = max(op.unroll or 1, 1)
    carried = [ref for _, ref in body.flatten(op.initial)]
    positions = _known_positions(body, op)
    if positions is not None and len(positions) <= unroll:
        carried = _copies(body, op, [str(p) for p in positions], carried)
    elif positions is not None and len(positions) % unroll == 0:
        _, carried = _loop(body, op, lower, upper, step, unroll, carried, True)
    else:
        if unroll > 1:
            ahead = _scaled(body, step, body.constants.get(op.step), unroll - 1)
            limit = body.value(f"sub nsw i64 {upper}, {ahead}")
            lower, carried = _loop(body, op, lower, limit, step, unroll, carried, False)
        _, carried = _loop(body, op, lower, upper, step, 1, carried, False)
    body.assign(op.results, carried)


def _known_positions(body: KernelBody, op: Any) -> range | None:
    """The positions of a loop whose bounds and step are constants."""
    lower, upper, step = (body.constants.get(v) for v in (op.lower, op.upper, op.step))
    if lower is None or upper is None or step is None:
        return None
    if step <= 0:
        raise InvalidIR(f"the step is {step}", op=op)
    return range(lower, upper, step)


def _scaled(body: KernelBody, step: Ref, known: int | None, factor: int) -> Ref:
    if known is not None:
        return str(known * factor)
    return body.value(f"mul nsw i64 {step}, {factor}") if factor > 1 else step


def _copies(body: KernelBody, op: Any, positions: Sequence[Ref], carried: list[Ref]) -> list[Ref]:
    """The body once for each position, in order."""
    position_value, *inner = op.block.arguments
    for position in positions:
        body[position_value] = position
        if not position.startswith("%"):
            body.constants[position_value] = int(position)
        body.assign(inner, carried)
        carried = _yielded(body, op.block)
    return carried


def _loop(
    body: KernelBody, op: Any, lower: Ref, limit: Ref, step: Ref, copies: int,
    carried: list[Ref], entered: bool,
) -> tuple[Ref, list[Ref]]:
    """Run `copies` bodies at a time while the position is below `limit`; `entered`: it surely is
    at first. Gives the position and the values after the loop."""
    types = _row_types(op.results)
    before, label, done = body.block, body.name("loop"), body.name("done")
    if entered:
        body.jump(label)
    else:
        body.branch(body.value(f"icmp slt i64 {lower}, {limit}"), label, done)
    body.open(label)
    position, following = f"%{body.name('i')}", f"%{body.name('next')}"
    arguments = [f"%{body.name('c')}" for _ in types]
    at = len(body.lines)
    body.lines += [""] * (1 + len(types))
    positions = [position]
    for _ in range(copies - 1):
        positions.append(body.value(f"add nsw i64 {positions[-1]}, {step}"))
    outcome = _copies(body, op, positions, arguments)
    body.line(f"{following} = add nsw i64 {positions[-1]}, {step}")
    more = body.value(f"icmp slt i64 {following}, {limit}")
    latch = body.block
    phis = zip(
        ["i64", *types], [position, *arguments], [lower, *carried], [following, *outcome],
        strict=True,
    )
    for number, (type_, name, first, next_) in enumerate(phis):
        body.lines[at + number] = (
            f"  {name} = phi {type_} [ {first}, %{before} ], [ {next_}, %{latch} ]"
        )
    body.branch(more, label, done)
    body.open(done)
    if entered:
        return following, outcome
    after = [
        body.phi(type_, (first, before), (next_, latch))
        for type_, first, next_ in zip(
            ["i64", *types], [lower, *carried], [following, *outcome], strict=True
        )
    ]
    return after[0], after[1:]
