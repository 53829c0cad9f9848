"""Programs of launches and calls in short, and what `bufferize` makes of them, as short.

`b = map x` launches the kernel `map`, `b c = swap x y` calls the operator `swap`, `v:turned =
view b` is a view of another type, `update b 0` is argument 0's new content. In a host program
`map x > b` launches `map` on memory `b`, and memory without a name is `_`.
"""

from __future__ import annotations

import re
from typing import Any

from irc.dialects import func, graph, host, layout, sym
from irc.dialects.aten import DtypeAttr, OperandAttr
from irc.dialects.graph.packed import PackedType
from irc.ir import attributes as A
from irc.ir import parse
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import f32, i1, i32, index
from tests.passes.kernel.programs import tensor

WEIGHT = tensor(2, 2, 1, 1)
TYPES: dict[str, Type] = {
    "": tensor(4, 4),
    "turned": tensor(4, 4, strides=(1, 4)),
    "bits": tensor(4, 4, e=i32),
    "row": tensor(4),
    "same": tensor(4, 4, strides=(0, 1)),
    "truth": tensor(4, e=i1),
    "image": tensor(1, 2, 4, 4, strides=(32, 1, 8, 2)),
    "dense": tensor(1, 2, 4, 4),
    "weight": WEIGHT,
    "packed": PackedType(WEIGHT),
    "flag": i1,
    "index": index,
}
#: Inputs, outputs, pairs that may share memory, pairs of which the output begins as the input.
KERNELS: dict[str, tuple[int, int, list[int], list[int]]] = {
    "fill": (0, 1, [], []),
    "map": (1, 1, [0, 1], []),
    "far": (1, 1, [], []),
    "add": (2, 1, [0, 2, 1, 2], []),
    "first": (2, 1, [0, 2], []),
    "two": (1, 2, [0, 1, 0, 2], []),
    "pair": (2, 2, [0, 2, 1, 3], []),
    "safe": (1, 2, [0, 1], []),
    "put": (2, 1, [0, 2], [0, 2]),
    "put_far": (2, 1, [1, 2], [0, 2]),
    "put_two": (2, 1, [0, 2, 1, 2], [0, 2]),
}
#: Operators with what they write. Those of `lib` may keep their operands, those of torch do not.
SCHEMAS: dict[str, tuple[str, list[int]]] = {
    "relu": ("aten::relu(Tensor self) -> Tensor", []),
    "bits": ("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", []),
    "t": ("aten::t(Tensor(a) self) -> Tensor(a)", []),
    "mm": ("aten::mm(Tensor self, Tensor mat2) -> Tensor", []),
    "bump": ("prims::bump(Tensor(a!) x) -> ()", [0]),
    "mix": ("prims::mix(Tensor(a!) x, Tensor y) -> Tensor", [0]),
    "times": ("prims::times(Tensor(a!) x, SymInt n) -> ()", [0]),
    "swap": ("prims::swap(Tensor(a!) x, Tensor(b!) y) -> ()", [0, 1]),
    "watch": ("lib::watch(Tensor x) -> ()", []),
    "hold": ("lib::hold(Tensor(a!) x) -> ()", [0]),
}
STEP = re.compile(r"(?:(.*) = )?(\w+) ?(.*)")


def program(text: str, arguments: str = "x y", results: str = "", together: str = "") -> ModuleOp:
    """The module of a program. `arguments`: their names and types. `results`: for each what the
    caller sees, `own`, `shares0` or `alias0`; nothing or `-`: nothing is said. `together`: the
    numbers of arguments that may share memory."""
    module = ModuleOp.empty()
    names = [word.partition(":")[::2] for word in arguments.split()]
    function = func.FuncOp.create("main", [TYPES[t] for _, t in names], ())
    function.attributes["level"] = A.StringAttr("loop")
    if results not in ("", "-"):
        function.attributes["result_info"] = A.ArrayAttr(map(_info, results.split()))
    if together:
        numbers = [A.IntegerAttr(int(number)) for number in together.split()]
        function.attributes["aliases"] = A.ArrayAttr([A.ArrayAttr(numbers)])
    module.block.append(function)
    values: dict[str, Value] = {}
    for (name, _), argument in zip(names, function.block.arguments, strict=True):
        argument.name_hint, values[name] = name, argument
    for step in text.split("; "):
        _add(Builder.at_end(function.block), step, values)
    function.refresh_type()
    return module


def _info(word: str) -> A.DictAttr:
    if word == "own":
        return A.DictAttr({})
    name = {"s": "shares", "a": "alias_of"}[word[0]]
    return A.DictAttr({name: A.IntegerAttr(int(word[-1]))})


def _add(builder: Builder, step: str, values: dict[str, Value]) -> None:
    match = STEP.fullmatch(step)
    assert match is not None
    made, word, rest = match.groups()
    names = [name.partition(":")[::2] for name in (made or "").split()]
    operands = [values[name] for name in rest.split() if name in values]
    (number,) = [int(name) for name in rest.split() if name not in values] or [0]
    cls, entries = _operation(word, operands, number)
    op = builder.insert(cls(operands, [TYPES[t] for _, t in names], entries))
    for (name, _), result in zip(names, op.results, strict=True):
        result.name_hint, values[name] = name, result
    if word in KERNELS:
        _declare(op, _kernel(word, op))
    elif word in SCHEMAS and not SCHEMAS[word][0].startswith("aten::"):
        _declare(op, f'aten.schema {{schema = "{SCHEMAS[word][0]}"}}')


def _declare(op: Operation, text: str) -> None:
    """Add an operation to the module around `op`, once."""
    module: Any = op.parent_op.parent_op  # type: ignore[union-attr]
    (found,) = parse(text).block.ops
    if str(found) not in map(str, module.block.ops):
        found.detach()
        module.block.append(found)


def _operation(word: str, operands: list[Value], number: int) -> tuple[Any, dict[str, Any]]:
    """The class and the attributes of a step."""
    one, none = A.DenseIntsAttr((1, 1)), A.DenseIntsAttr((0, 0))
    window = {"stride": one, "dilation": one, "padding": none, "groups": A.IntegerAttr(1)}
    if word in KERNELS:
        sizes = A.DenseIntsAttr((len(operands), 0))
        return host.LaunchOp, {"callee": A.SymbolRefAttr(word), "operandSegmentSizes": sizes}
    if word in SCHEMAS:
        return graph.CallAten, _call(word)
    sizes = A.DenseIntsAttr((1, 1, 0, len(operands) - 2))
    return {
        "view": (layout.ViewOp, {"offset": A.DimAttr(number)}),
        "update": (graph.UpdateInput, {"argument": A.IntegerAttr(number)}),
        "item": (graph.Item, {"every": A.UNIT}),
        "check": (sym.AssertValueOp, {"message": A.StringAttr("wrong")}),
        "constant": (graph.Constant, {"value": A.FloatAttr(1.0, f32)}),
        "pack": (graph.Pack, {"format": A.StringAttr("convolution"), **window}),
        "conv": (graph.PackedConv, {"operandSegmentSizes": sizes, **window}),
        "return": (func.ReturnOp, {}),
    }[word]  # fmt: skip


def _call(word: str) -> dict[str, A.Attribute]:
    schema, written = SCHEMAS[word]
    name, _, rest = schema.partition("(")
    parameters = [p.split()[1] for p in rest.partition(") ->")[0].split(", ")]
    entries: dict[str, Any] = {p: OperandAttr(k) for k, p in enumerate(parameters)}
    if "dtype" in entries:
        entries["dtype"] = DtypeAttr("int32")
    callee = name.replace("::", ".") + ("" if "." in name else ".default")
    made = {"arguments": A.DictAttr(entries), "callee": A.StringAttr(callee)}
    return {**made, "written": A.DenseIntsAttr(written)} if written else made


def _kernel(name: str, launch: Operation) -> str:
    """A kernel that does nothing, for arrays of these elements."""
    inputs, outputs, *pairs = KERNELS[name]
    values = (*launch.operands, *launch.results)
    pointers = "".join(f"%a{n}: !kernel.ptr<{v.type.element}>, " for n, v in enumerate(values))
    lists = {"inplace": pairs[0], "initialized": pairs[1]}
    lists["outputs"] = [*range(inputs, inputs + outputs)]
    said = ", ".join(f"{k} = array<i64: {str(v)[1:-1]}>" for k, v in lists.items() if v)
    return (
        f"kernel.func @{name}({pointers}%begin: index, %end: index) attributes {{"
        f'{said}, symbols = [], grid = #sym<4>, work = #sym<4>, target = "cpu"}} '
        "{ kernel.return }"
    )


def bufferized(module: ModuleOp) -> tuple[str, list[str]]:
    """What `bufferize` makes of a program, verified before and after, and what it says."""
    context = PassContext()
    PassManager.parse("bufferize", verify="each").run(module, context)
    (function,) = [op for op in module.ops if isinstance(op, host.HostFuncOp)]
    text = "; ".join(map(_shown, function.block.ops))
    return text, [remark.message for remark in context.remarks]


def _shown(op: Operation) -> str:
    made = " ".join(v.name_hint or "_" for v in op.results)
    names = [v.name_hint or "_" for v in op.operands]
    word = op.name.partition(".")[2]
    if isinstance(op, host.LaunchOp):
        count = len(op.inputs)
        word, names = op.callee, [*names[:count], ">", *names[count:]]
    elif isinstance(op, host.HostCopyOp):
        names.insert(1, ">")
    elif isinstance(op, host.CallAtenOp):
        word = re.sub(r"^(aten\.)?(extern\.mkldnn\.|prims\.|lib\.)?", "", op.callee)
        word = word.removesuffix(".default")
    return " ".join((f"{made} =" if made else "", word, *names)).strip()


__all__ = ["bufferized", "program"]
