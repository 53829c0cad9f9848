"""From the host dialect to a `HostProgram`.

Raises InvalidIR for one that breaks the level's rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import attrs

from irc.dialects import flow, host, kernel, sym
from irc.dialects.aten.facts import VIEW_AS
from irc.dialects.graph.packed import PackedType
from irc.dialects.sym.ranges import when_of
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, free_symbols
from irc.program import host_program as P
from irc.program.joined import join_arguments, join_results


def read_host_program(module: Any, name: str = "main") -> P.HostProgram:
    """The program of the `host.func` called `name` in `module`."""
    function = module.lookup(name)
    if not isinstance(function, host.HostFuncOp):
        what = "nothing" if function is None else f"a {function.name}"
        raise InvalidIR(
            f"the module has {what} called @{name}, not a host.func",
            notes=("run the pipeline down to plan-memory first",),
        )
    return _joined(_ProgramReader(module, function).read(), function)


def read_with_origins(
    module: Any, name: str = "main"
) -> tuple[P.HostProgram, tuple[Operation, ...]]:
    """As `read_host_program`, with the operation that each step was made of."""
    reader = _ProgramReader(module, module.lookup(name))
    return reader.read(), tuple(reader.origins)


def _joined(program: P.HostProgram, function: host.HostFuncOp) -> P.HostProgram:
    """The program with the arguments and results together that have a `place` in one array. Those
    of one array follow each other; the last array's come first, so that all stay where they are."""
    for places in reversed(_places(function.arg_info).values()):
        within = list(function.arg_info)[min(places)].get("within").value
        program = join_arguments(program, places, within)
    for places in reversed(_places(function.result_info).values()):
        program = join_results(program, places)
    return program


def _places(info: Any) -> dict[int, dict[int, int]]:
    """The places by position, by the number of the array that they are in."""
    blocks: dict[int, dict[int, int]] = {}
    for position, entry in enumerate(info or ()):
        if entry.get("place") is not None:
            block = entry.get("block")
            number = 0 if block is None else block.value
            blocks.setdefault(number, {})[position] = entry.get("place").value
    return blocks


def layout_of(type_: T.TensorType, op: Operation | None = None) -> P.Layout:
    """What a tensor type says."""
    dtype = T.DTYPE_OF_ELEMENT.get(type_.element)
    if dtype is None:
        raise InvalidIR(f"{type_.element} is no element of a tensor in memory", op=op)
    return P.Layout(
        dtype, type_.shape, type_.strides, T.element_bytes(type_.element), type_.device
    )


def kind_of(type_: T.Type, op: Operation | None = None) -> P.Kind:
    """Which kind of register holds a value of this type."""
    if isinstance(type_, T.TensorType | PackedType):
        return "tensor"
    if isinstance(type_, T.NoneType):
        return "none"
    if type_ is T.i1:
        return "bool"
    if isinstance(type_, T.IntegerType | T.IndexType):
        return "int"
    if isinstance(type_, T.FloatType):
        return "float"
    raise InvalidIR(f"a host program holds no value of type {type_}", op=op)


class _ProgramReader:
    def __init__(self, module: Any, function: host.HostFuncOp) -> None:
        self.module, self.function = module, function
        self.registers: dict[Value, int] = {}
        self.layouts: dict[int, P.Layout] = {}
        self.kinds: dict[int, P.Kind] = {}
        self.bindings: list[P.Bind] = []
        self.steps: list[P.Step] = []
        self.origins: list[Operation] = []
        self.outputs: tuple[P.Output, ...] = ()
        self.constants: dict[str, P.ConstantData] = {}

    def read(self) -> P.HostProgram:
        arguments = tuple(self._argument(i, a) for i, a in enumerate(self.function.block.arguments))
        self.arguments = {a.register for a in arguments}
        for op in self.function.block.ops:
            handler = _HANDLERS.get(type(op))
            if handler is None:
                raise InvalidIR("a host program has no such operation", op=op)
            handler(self, op)
            self.origins += [op] * (len(self.steps) - len(self.origins))
        program = P.HostProgram(
            self.function.sym_name, arguments, tuple(self.bindings), tuple(self.steps),
            self.outputs, len(self.registers), self.constants, self.layouts, self.kinds,
        )  # fmt: skip
        _check_aliases(program)
        return program

    def _argument(self, index: int, value: Value) -> P.Argument:
        info = self.function.arg_info
        entry = info[index] if info is not None else A.DictAttr({})
        name = entry.get("name")
        text = name.value if name is not None else (value.name_hint or f"arg{index}")
        kind = kind_of(value.type, self.function)
        register = self.define(value)
        return P.Argument(text, kind, register, self.layouts.get(register))

    def define(self, value: Value) -> int:
        """A register for a value that an operation makes."""
        register = self.registers[value] = len(self.registers)
        self.kinds[register] = kind_of(value.type)
        type_ = value.type.tensor if isinstance(value.type, PackedType) else value.type
        if isinstance(type_, T.TensorType):
            self.layouts[register] = layout_of(type_, value.defining_op)
        return register

    def __getitem__(self, value: Value) -> int:
        return self.registers[value]

    # One method for each operation

    def bind_size(self, op: sym.BindSizeOp) -> None:
        source = self[op.source]
        self._bind(op, source, P.Bind(
            op.symbol, source, op.dim, op.stride, op.minimum, op.maximum,
        ))  # fmt: skip

    def bind_offset(self, op: sym.BindOffsetOp) -> None:
        source = self[op.source]
        self._bind(op, source, P.Bind(
            op.symbol, source, minimum=op.minimum, maximum=op.maximum, offset=True,
        ))  # fmt: skip

    def bind(self, op: sym.BindOp) -> None:
        source = self[op.source]
        self._bind(op, source, P.Bind(
            op.symbol, source, minimum=op.minimum, maximum=op.maximum,
        ))  # fmt: skip

    def _bind(self, op: Any, source: int, bind: P.Bind) -> None:
        (self.bindings if source in self.arguments else self.steps).append(bind)
        from irc.ir.symbols import symbol

        self.steps.append(P.SymbolValue(self.define(op.value), symbol(bind.symbol)))

    def value(self, op: sym.ValueOp) -> None:
        self.steps.append(P.SymbolValue(self.define(op.value), op.dim))

    def assert_(self, op: sym.AssertOp) -> None:
        self.steps.append(P.Assert(op.relation, op.lhs, op.rhs, op.message, op.error))

    def assert_value(self, op: sym.AssertValueOp) -> None:
        self.steps.append(P.AssertValue(self[op.condition], op.message, op.error))

    def refine(self, op: sym.RefineOp) -> None:
        layout = layout_of(op.refined.type, op)
        source = self[op.source]
        if layout.strides is None:
            layout = attrs.evolve(layout, strides=self.layouts[source].strides)
        register = self.define(op.refined)
        self.steps.append(P.View(register, source, layout, 0))

    def alloc(self, op: host.AllocOp) -> None:
        layout = layout_of(op.memory.type, op)
        if layout.strides is None:
            raise InvalidIR("memory needs strides in its type", op=op)
        offset = None if op.escapes else op.offset
        temporary = not op.escapes
        self.steps.append(P.Alloc(self.define(op.memory), layout, offset, temporary))

    def flag(self, op: host.FlagOp) -> None:
        layout = layout_of(op.flag.type, op)
        self.steps.append(P.Flag(self.define(op.flag), layout, op.message, op.error))

    def launch(self, op: host.LaunchOp) -> None:
        callee = self.module.lookup(op.callee)
        if not isinstance(callee, kernel.KernelFuncOp):
            raise InvalidIR(f"there is no kernel @{op.callee}", op=op)
        if op.results:
            raise InvalidIR("a launch with results needs bufferize before it can be built", op=op)
        tensors = tuple(self[v] for v in (*op.inputs, *op.outs))
        symbols = tuple(a.value for a in callee.symbols or ())
        expected = len(tensors) + len(symbols) + (0 if callee.is_gpu else 2)
        if len(callee.block.arguments) != expected:
            raise InvalidIR(
                f"@{callee.sym_name} takes {len(callee.block.arguments)} arguments, not "
                f"{expected}: its tensors, its symbols, begin and end", op=op
            )  # fmt: skip
        grid: Dim = 1 if callee.grid is None else callee.grid
        outputs = tuple(callee.outputs or ())
        self.steps.append(P.Launch(
            callee.sym_name, tensors, symbols, grid, callee.work, outputs, _sizes_of(op),
            tuple(callee.private or ()),
        ))  # fmt: skip

    def view(self, op: host.HostViewOp) -> None:
        layout = layout_of(op.view.type, op)
        if layout.strides is None:
            raise InvalidIR("a view needs strides in its type", op=op)
        source = self[op.source]
        self.steps.append(P.View(self.define(op.view), source, layout, op.offset))

    def constant(self, op: host.HostConstantOp) -> None:
        if all(isinstance(user, host.PackOp) for user in op.tensor.users):
            return
        key, content = self._constant(op)
        layout = layout_of(op.tensor.type, op)
        self.constants[key] = P.ConstantData(layout, content)
        self.steps.append(P.LoadConstant(self.define(op.tensor), key, layout))

    def _constant(self, op: host.HostConstantOp) -> tuple[str, bytes | None]:
        """A constant's key, and its bytes unless it lies beside the program."""
        value = op.attributes["value"]
        if isinstance(value, A.ResourceAttr):
            return f"{value.key}:{op.tensor.type}", None
        content = _dense_bytes(value, op)
        return f"{hashlib.sha256(content).hexdigest()}:{op.tensor.type}", content

    def pack(self, op: host.PackOp) -> None:
        source = op.source.defining_op
        if not isinstance(source, host.HostConstantOp):
            raise InvalidIR("only a host.constant can be packed", op=op)
        base, content = self._constant(source)
        callee = op.callee.removeprefix("aten.extern.")
        arguments = tuple((n, self._content(a, op)) for n, a in op.arguments.items)
        packing = P.Packing(callee, arguments, op.transposed)
        key = f"{base}:{callee}{list(arguments)}{'.t' if op.transposed else ''}"
        self.constants[key] = P.ConstantData(layout_of(source.tensor.type, op), content, packing)
        register = self.define(op.packed)
        self.steps.append(P.LoadConstant(register, key, self.layouts[register]))

    def item(self, op: host.ItemOp) -> None:
        kind = kind_of(op.scalar.type, op)
        every = bool(op.every)
        self.steps.append(P.ReadItem(self.define(op.scalar), self[op.source], kind, every))

    def copy(self, op: host.HostCopyOp) -> None:
        self.steps.append(P.CopyInto(self[op.source], self[op.target], _sizes_of(op)))

    def call_aten(self, op: host.CallAtenOp) -> None:
        callee = op.callee
        if callee.startswith("aten.extern."):
            callee = callee.removeprefix("aten.extern.")
        arguments = tuple((n, self._content(a, op)) for n, a in op.arguments.items)
        when = _sizes_of(op)
        if when is not None and op.results:
            raise InvalidIR("a call for some sizes alone gives no arrays: it writes memory", op=op)
        tensors = [v.type for v in (*op.inputs, *op.results) if isinstance(v.type, T.TensorType)]
        floating = all(isinstance(t.element, T.FloatType) for t in tensors)
        results = self._results(op)
        self.steps.append(P.CallOperator(callee, arguments, results, floating, op.path, when))

    def _results(self, op: Operation) -> tuple[P.Result, ...]:
        """Registers for the results of a call."""
        results = []
        for value in op.results:
            register = self.define(value)
            kind = self.kinds[register]
            used = next(iter(value.users), None) is not None
            results.append(P.Result(register, kind, self.layouts.get(register), used))
        return tuple(results)

    def control(self, op: flow.FlowOp) -> None:
        op.verify_references()  # a function that calls itself has no program
        operands = tuple(self[v] for v in op.operands)
        numbers = {
            name: getattr(op, name)
            for name in ("carried", "scanned", "stacked")
            if name in op.attributes
        }
        form: Any = op.name.removeprefix("flow.")
        self.steps.append(P.Control(form, op.callees, operands, self._results(op), **numbers))

    def _content(self, attr: A.Attribute, op: Any) -> Any:
        if isinstance(attr, A.IntegerAttr | A.FloatAttr | A.BoolAttr | A.StringAttr):
            return attr.value
        if isinstance(attr, A.DimAttr):
            return _size(attr.dim)
        if isinstance(attr, A.DimsAttr):
            return tuple(None if d is None else _size(d) for d in attr.dims)
        if isinstance(attr, A.DenseIntsAttr):
            return tuple(attr.values)
        if isinstance(attr, A.ArrayAttr):
            return tuple(self._content(a, op) for a in attr)
        mnemonic = attr.mnemonic
        if mnemonic == "none":
            return None
        if mnemonic == "operand":
            return P.Register(self[op.operands[attr.parameters[0]]])
        if mnemonic == "device":
            return P.NamedArgument("device", attr.parameters[0])
        if mnemonic in ("dtype", "memory_format", "layout"):
            return P.NamedArgument(mnemonic, attr.parameters[0])
        raise InvalidIR(f"{attr} can't be passed to an operator", op=op)

    def return_(self, op: host.HostReturnOp) -> None:
        info = self.function.result_info
        if info is not None and len(info) != len(op.operands):
            raise InvalidIR(f"{len(op.operands)} results, {len(info)} in result_info", op=op)
        self.outputs = tuple(
            self._output(value, info[i] if info is not None else A.DictAttr({}), op)
            for i, value in enumerate(op.operands)
        )

    def _output(self, value: Value, info: A.DictAttr, op: host.HostReturnOp) -> P.Output:
        register = self[value]
        kind = self.kinds[register]
        layout = self.layouts.get(register)
        strides = info.get("strides")
        if kind == "none":
            return P.Output(None, "none")
        if layout is not None and strides is not None:
            if layout.strides is None:
                layout = attrs.evolve(layout, strides=strides.dims)
            elif any(
                a != b and not (isinstance(size, int) and size <= 1)
                for a, b, size in zip(layout.strides, strides.dims, layout.sizes, strict=True)
            ):
                raise InvalidIR(
                    f"a result has strides {list(map(str, layout.strides))}, the caller must see "
                    f"{list(map(str, strides.dims))}", op=op
                )  # fmt: skip
        alias = info.get("alias_of")
        return P.Output(register, kind, layout, None if alias is None else alias.value)


def _sizes_of(op: Operation) -> P.SizeRange | None:
    """The sizes for which alone an operation runs."""
    when = when_of(op)
    return None if when is None else P.SizeRange(when.size, when.least, when.most)


def _size(dim: Dim) -> Any:
    return dim if isinstance(dim, int) else P.Size(dim)


def _dense_bytes(value: A.Attribute, op: host.HostConstantOp) -> bytes:
    if isinstance(value, A.DenseAttr):
        return value.data
    if isinstance(value, A.IntegerAttr | A.FloatAttr | A.BoolAttr):
        return _scalar_bytes(value.value, op.tensor.type.element)
    raise InvalidIR("a constant of the host program is dense or a resource", op=op)


def _scalar_bytes(value: float, element: T.Type) -> bytes:
    """One element: what `irc.ir` has as a number, as it lies in memory."""
    import torch

    dtype = getattr(torch, T.DTYPE_OF_ELEMENT[element])
    scalar = torch.tensor(value, dtype=dtype).reshape(1).view(torch.uint8)
    return bytes(scalar.tolist())


def _check_aliases(program: P.HostProgram) -> None:
    """A result that shares an argument's memory must be a view of it, perhaps as another dtype."""
    calls = {
        result.register: dict(step.arguments)["self"]
        for step in program.steps
        if isinstance(step, P.CallOperator) and step.callee == VIEW_AS
        for result in step.results
    }
    for number, output in enumerate(program.outputs):
        if output.alias_of is None or output.register is None:
            continue
        root, _ = program.root(output.register)
        while root in calls:
            root, _ = program.root(calls[root].index)
        if root != program.arguments[output.alias_of].register:
            name = program.arguments[output.alias_of].name
            raise InvalidIR(f"result {number} must share the memory of {name} and is no view of it")


def unbound_symbols(dims: tuple[Dim | None, ...], known: frozenset[str] | set[str]) -> bool:
    """Whether any of these expressions mentions a symbol that isn't known."""
    return any(not free_symbols(d) <= known for d in dims if d is not None)


_HANDLERS: dict[type, Callable[[_ProgramReader, Any], None]] = {
    sym.BindSizeOp: _ProgramReader.bind_size,
    sym.BindOp: _ProgramReader.bind,
    sym.BindOffsetOp: _ProgramReader.bind_offset,
    sym.ValueOp: _ProgramReader.value,
    sym.AssertOp: _ProgramReader.assert_,
    sym.AssertValueOp: _ProgramReader.assert_value,
    sym.RefineOp: _ProgramReader.refine,
    host.AllocOp: _ProgramReader.alloc,
    host.FlagOp: _ProgramReader.flag,
    host.LaunchOp: _ProgramReader.launch,
    host.HostViewOp: _ProgramReader.view,
    host.HostConstantOp: _ProgramReader.constant,
    host.PackOp: _ProgramReader.pack,
    host.ItemOp: _ProgramReader.item,
    host.HostCopyOp: _ProgramReader.copy,
    host.CallAtenOp: _ProgramReader.call_aten,
    host.HostReturnOp: _ProgramReader.return_,
    flow.CondOp: _ProgramReader.control,
    flow.WhileOp: _ProgramReader.control,
    flow.ScanOp: _ProgramReader.control,
}
