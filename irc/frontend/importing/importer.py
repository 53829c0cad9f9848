"""FX graphs to the aten level.

The graph has fake-tensor metas (`node.meta["val"]`), as AOTAutograd and make_fx give them. Every
size, stride and offset stays an expression in the symbols that torch's ShapeEnv made; a symbol is
bound at the argument (or the operation) that it comes from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx
from torch._library.fake_class_registry import FakeScriptObject
from torch.utils._python_dispatch import _disable_current_modes

from irc.dialects import aten, func, graph, sym
from irc.frontend.decompositions.index_errors import error_of_index
from irc.frontend.importing import scalars, symbols
from irc.frontend.importing.binding import SymbolBinder
from irc.frontend.importing.control_flow import OPERATORS, import_control
from irc.frontend.importing.host_sizes import bind_host_sizes
from irc.frontend.importing.locations import location_of
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.builder import Builder
from irc.ir.contents import content_attribute
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.gc import gc_paused
from irc.ir.module import ModuleOp
from irc.ir.strides import is_contiguous
from irc.ir.symbols import Dim, free_symbols
from irc.ir.types import (
    ELEMENT_OF_DTYPE,
    TensorType,
    contiguous_strides,
    f64,
    i1,
    index,
    none,
)

_ASSERT_OPS = frozenset({"_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size"})
_DROPPED_OPS = frozenset({"_assert_tensor_metadata", "_functional_assert_async"})
_COPIES = frozenset({"copy", "copy_"})
_RESHAPES = frozenset({"view", "_unsafe_view", "reshape"})
_NUMBERS = (int, float)
_NOWHERE: Mapping[Any, Any] = {}
TOKEN = object()  # what orders effects in torch's graphs


@attrs.frozen
class Literal:
    """An output of the FX graph that is no value: None or a Python number."""

    value: Any


@attrs.frozen
class Given:
    """An output of the FX graph that is one of its arguments, at this position: an object of
    Python, as the mesh of devices of a distributed tensor, or the size of a ragged dimension."""

    position: int


#: Where an output of the FX graph comes from: a result's number, or what no program gives.
Output = int | Literal | Given


@attrs.frozen
class Imported:
    """An imported graph: the module, where each output of the FX graph comes from, and which
    arguments of the FX graph the function does not have: tokens, which are None, and what only
    passes through (`Given`)."""

    module: ModuleOp
    outputs: tuple[Output, ...]
    absent: tuple[int, ...] = ()


def import_graph(
    module: fx.GraphModule,
    *,
    name: str = "main",
    argument_kinds: Sequence[str] = (),
    argument_names: Sequence[str] = (),
    assert_guards: bool = False,
    caller_derives_views: bool = False,
    saved: frozenset[int] = frozenset(),
    known: frozenset[str] = frozenset(),
    argument_places: Mapping[str, tuple[int, int, int]] = _NOWHERE,
    result_places: Mapping[int, tuple[int, int]] = _NOWHERE,
) -> Imported:
    """The aten-level module of a traced FX graph.

    argument_kinds: "input", "parameter" or "buffer" per placeholder (default: input).
    `assert_guards`: what the trace assumed about sizes is asserted by the program (Dynamo checks
    its guards itself). `caller_derives_views`: a result that is a view of an argument as another
    dtype may be a copy (AOTAutograd derives the view again). `saved`: outputs of the graph that
    only its backward sees. `argument_places`, `result_places`: where arguments (by name, with the
    bytes of all) and outputs lie that the caller has as one array, behind that array's number.
    `known`: symbols that are bound where the graph's operations will stand.
    Raises UserError for what has no meaning here: higher-order operators other than control
    flow, script objects, sparse or quantized tensors.
    """
    with gc_paused:
        importer = _Importer(module, name, argument_kinds, argument_names)
        importer.assert_guards = assert_guards
        importer.caller_derives_views = caller_derives_views
        importer.saved, importer.result_places = saved, result_places
        importer.argument_places = argument_places
        importer.known = known
        return importer.run()


def element_type(dtype: torch.dtype) -> Type:
    """The element type of a torch dtype. Raises UserError for one that irc does not have."""
    element = ELEMENT_OF_DTYPE.get(str(dtype).removeprefix("torch."))
    if element is None:
        raise UserError(f"tensors of {dtype} are not supported")
    return element


def tensor_type(
    value: torch.Tensor, raw: bool = False, dim_of: Callable[[Any], Dim] | None = None
) -> TensorType:
    """The type with eager's strides; `raw` leaves out equalities that torch learned later, and
    `dim_of` (by default from the expression) gives the Dim of a size or stride."""
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        layout = "quantized" if value.is_quantized else str(value.layout)
        raise UserError(f"tensors of layout {layout} are not supported")
    convert = dim_of or (symbols.raw_dim_of if raw else symbols.dim_of)
    shape = [convert(s) for s in value.shape]
    strides = [convert(s) for s in value.stride()]
    return TensorType(shape, element_type(value.dtype), strides, str(value.device))


class _Importer:
    def __init__(
        self, module: fx.GraphModule, name: str, kinds: Sequence[str], names: Sequence[str]
    ) -> None:
        self.graph_module = module
        self.name = name
        self.kinds, self.names = kinds, names
        self.values: dict[fx.Node, Any] = {}
        self.positions: dict[Any, int] = {}
        self.storages: dict[Any, int] = {}
        self.result_storages: dict[int, int] = {}
        self.row_major: set[int] = set()
        self.module = ModuleOp.empty()
        self.assert_guards = False
        self.caller_derives_views = False
        self.saved: frozenset[int] = frozenset()
        self.argument_places: Mapping[str, tuple[int, int, int]] = _NOWHERE
        self.result_places: Mapping[int, tuple[int, int]] = _NOWHERE
        self.known: frozenset[str] = frozenset()

    def run(self) -> Imported:
        nodes = list(self.graph_module.graph.nodes)
        placeholders = [n for n in nodes if n.op == "placeholder"]
        absent = {n: k for k, n in enumerate(placeholders) if is_token(n) or is_object(n)}
        self.values.update({n: Given(k) for n, k in absent.items() if is_object(n)})
        placeholders = [n for n in placeholders if n not in absent]
        types = [self.type_of(n.meta.get("val"), n, argument=True) for n in placeholders]
        self.function = function = func.FuncOp.create(self.name, types, ())
        self.module.block.append(function)
        self.builder = Builder.at_end(function.block)
        shape_env = symbols.shape_env_of(n.meta.get("val") for n in nodes)
        self.binder = SymbolBinder(self.builder, shape_env)
        self.binder.bound |= self.known
        self.arguments(placeholders)
        if self.assert_guards:
            self.binder.assert_guards()
        else:
            self.binder.assert_equalities()
        outputs: tuple[Output, ...] = ()
        for node in nodes:
            self.builder.location = location_of(node)
            if node.op == "call_function":
                self.call(node)
            elif node.op == "get_attr":
                self.values[node] = self.constant(node)
            elif node.op == "output":
                outputs = self.output(node)
            elif node.op != "placeholder":
                self.refuse(node, f"an FX node of kind {node.op}")
        if self.binder.bound:
            bind_host_sizes(function)
        function.attributes["level"] = A.StringAttr("aten")
        function.refresh_type()
        return Imported(self.module, outputs, tuple(absent.values()))

    def refuse(self, node: fx.Node, what: str) -> Any:
        raise UserError(f"{what} is not supported ({node.name})", location_of(node))

    def type_of(self, value: Any, node: fx.Node, argument: bool = False) -> Type:
        if isinstance(value, torch.Tensor):
            return tensor_type(value) if argument else self.tensor_type(value)
        if value is None:
            return none
        if isinstance(value, bool | torch.SymBool):
            return i1
        if isinstance(value, int | torch.SymInt):
            return index
        if isinstance(value, float | torch.SymFloat):
            return f64
        return self.refuse(node, f"a value of type {type(value).__name__}")

    def tensor_type(self, value: torch.Tensor, unbound: bool = False) -> TensorType:
        """The type of a tensor; without `unbound` as it was made, should its symbols be bound
        nowhere yet. A size that is a rounded float is bound now."""
        if self.binder.floats:
            return tensor_type(value, dim_of=self.integer)
        type_ = tensor_type(value)
        if not unbound and not self.binder.knows(type_):
            type_ = tensor_type(value, raw=True)
        if id(value) in self.row_major:
            return type_.with_strides(contiguous_strides(type_.shape))
        return type_

    def arguments(self, placeholders: Sequence[fx.Node]) -> None:
        arguments = self.function.block.arguments
        for position, (node, argument) in enumerate(zip(placeholders, arguments, strict=True)):
            argument.name_hint = node.name
            self.values[node], self.positions[node] = argument, position
        metas = [n.meta.get("val") for n in placeholders]
        self.binder.bind_arguments(metas, arguments)
        info: list[Attribute] = []
        sharing: dict[int, list[int]] = {}
        for position, (node, value) in enumerate(zip(placeholders, metas, strict=True)):
            type_ = arguments[position].type
            if isinstance(type_, TensorType) and not self.binder.knows(type_):
                self.refuse(node, f"an argument of type {type_}, with symbols bound nowhere,")
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()._cdata
                self.storages.setdefault((storage, *_bits(value)), position)
                sharing.setdefault(storage, []).append(position)
            info.append(self.argument_info(position, node, value))
        self.function.attributes["arg_info"] = A.ArrayAttr(info)
        groups = [A.ArrayAttr(map(A.IntegerAttr, g)) for g in sharing.values() if len(g) > 1]
        if groups and not self.caller_derives_views:  # AOTAutograd has made them one argument
            self.function.attributes["aliases"] = A.ArrayAttr(groups)

    def argument_info(self, position: int, node: fx.Node, value: Any) -> Attribute:
        name = self.names[position] if position < len(self.names) else node.name
        kind = self.kinds[position] if position < len(self.kinds) else "input"
        entry: dict[str, Attribute] = {"name": A.StringAttr(name), "kind": A.StringAttr(kind)}
        if isinstance(value, torch.Tensor):
            offset = symbols.dim_of(value.storage_offset())
            if free_symbols(offset) <= self.binder.bound:
                entry["offset"] = A.DimAttr(offset)
        if node.name in self.argument_places:
            block, place, within = map(A.IntegerAttr, self.argument_places[node.name])
            entry |= {"block": block, "place": place, "within": within}
        return A.DictAttr(entry)

    # -- nodes

    def call(self, node: fx.Node) -> None:
        target, value = node.target, node.meta.get("val")
        if target is operator.getitem:
            source: Any = node.args[0]
            self.values[node] = self.values[source][node.args[1]]
        elif isinstance(target, torch._ops.OpOverload):
            self.call_operator(node, target, value)
        elif isinstance(target, torch._ops.HigherOrderOperator):
            if target.name() == "with_effects" and self.effect(node):
                return
            if target.name() not in OPERATORS:
                self.refuse(node, f"the higher-order operator {target.name()}")
            self.values[node] = import_control(self, node)
            self.binder.bind_unbacked(node, self.values[node])
        elif not isinstance(value, (*symbols.SYMBOLIC, *_NUMBERS)):
            self.refuse(node, f"a call of {getattr(target, '__name__', target)}")
        # otherwise it is a number, whose expression is in the meta

    def effect(self, node: fx.Node) -> bool:
        """A call that torch keeps in order by a token, which here the call itself does: one
        without results is never moved or dropped. False for any other."""
        token, target, *args = node.args
        if not isinstance(target, torch._ops.OpOverload) or target._schema.returns:
            return False
        keywords = {k: self.argument(a) for k, a in node.kwargs.items()}
        operands = [self.argument(a) for a in args]
        op = aten.make_aten(target, operands, keywords, _as_value, (), self.builder.location)
        self.builder.insert(op)
        self.values[node] = [TOKEN, None]
        return True

    def call_operator(self, node: fx.Node, target: Any, value: Any) -> None:
        short = target._schema.name.removeprefix("aten::")
        if short in _DROPPED_OPS or short.startswith("sym_") and short not in _ASSERT_OPS:
            return
        if short in _ASSERT_OPS:
            self.assertion(node, short)
            return
        leaves, rebuild = _flatten(value)
        if not target._schema.returns:
            leaves = []
        args = [self.argument(a) for a in node.args]
        keywords = {k: self.argument(a) for k, a in node.kwargs.items()}
        if short in _COPIES:
            args[1] = scalars.as_tensor(self.builder, args[1])
        if short == "slice":
            self.binder.bind_slice(node, args[0], *args[1:], **keywords)
        if short in _RESHAPES and _is_row_major(args[0].type):
            # torch's quotients of sizes hide that the strides are those of a row-major tensor.
            self.row_major.add(id(value))
        op = aten.make_aten(
            target, args, keywords, _as_value, self.result_types(node, leaves),
            self.builder.location,
        )  # fmt: skip
        error = error_of_index(node, short)
        if error is not None:
            op.attributes["error"] = A.StringAttr(error)
        self.builder.insert(op)
        for result in op.results:
            result.name_hint = node.name
        self.values[node] = rebuild(list(op.results)) if leaves else None
        self.binder.bind_unbacked(node, self.values[node])

    def result_types(self, node: fx.Node, leaves: Sequence[Any]) -> list[Type]:
        """The types of a node's results, which may mention the symbols that it binds itself."""
        known = self.binder.bound
        fresh = symbols.unbacked_bindings(self.binder.shape_env, node)
        self.binder.bound = known | {s.name for s in fresh}
        try:
            return [self.type_of(leaf, node) for leaf in leaves]
        finally:
            self.binder.bound = known

    def argument(self, argument: Any) -> Any:
        """An FX argument for `make_aten`: nodes become values, expressions or numbers."""
        if isinstance(argument, fx.Node):
            return self.operand(argument)
        if isinstance(argument, list | tuple):
            return [self.argument(a) for a in argument]
        if isinstance(argument, torch.SymInt):
            return self.integer(argument)
        return argument

    def operand(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | torch.SymBool):
            return self.integer(value)
        if isinstance(value, torch.SymFloat):
            return self.float_scalar(node, value)
        if isinstance(value, _NUMBERS) and node not in self.values:
            return value
        content = self.values[node]
        if isinstance(content, Given):
            return self.refuse(node, f"an operator with an argument of type {_type_name(value)}")
        if isinstance(content, Value) and isinstance(value, torch.Tensor):
            return self.refined(content, value)
        return content

    def integer(self, value: Any) -> Dim:
        expression = symbols.expression(value)
        if self.binder.has_floats(expression):
            return self.binder.dim_of_floats(expression)
        dim = symbols.dim_of(value)
        if free_symbols(dim) <= self.binder.bound:
            return dim
        raw = symbols.raw_dim_of(value)
        unbound = free_symbols(raw) - self.binder.bound
        if unbound and all(name.startswith("u") for name in unbound):
            names = ", ".join(sorted(unbound))
            raise UserError(
                f"sizes that depend on data ({names}) are used, and torch's graph says nowhere "
                "where they come from",
                self.builder.location,
            )
        return raw

    def float_scalar(self, node: fx.Node, value: torch.SymFloat) -> Value:
        scalar = self.values.get(node)
        if scalar is None:
            expression = symbols.expression(value)
            tensor = scalars.float_tensor(self.builder, expression, self.binder.floats)
            scalar = self.values[node] = self.builder.value(graph.Item, tensor)
        return scalar

    def refined(self, operand: Value, value: torch.Tensor) -> Value:
        """`operand`, with what torch learned about its sizes since it was made."""
        refined_type = self.tensor_type(value, True)
        if operand.type is refined_type or not self.binder.knows(refined_type):
            return operand
        if isinstance(operand.defining_op, graph.Constant):
            return operand
        return self.builder.insert(sym.RefineOp((operand,), (refined_type,))).results[0]

    def assertion(self, node: fx.Node, short: str) -> None:
        subject = node.args[0]
        value = subject.meta["val"] if isinstance(subject, fx.Node) else subject
        if short == "_assert_scalar":
            condition = symbols.raw_expression(value)
            if not isinstance(condition, bool | int):
                self.binder.assert_condition(condition, str(node.args[1]))
            return
        dim = self.integer(value) if isinstance(value, torch.SymInt) else value
        low, high = node.kwargs.get("min"), node.kwargs.get("max")
        if low is None and short.endswith("for_size"):
            low = 0
        for lower, upper in ((low, dim), (dim, high)):
            if lower is not None and upper is not None:
                text = f"Invalid value range: {lower} <= {upper} does not hold"
                self.builder.create(
                    sym.AssertOp, relation="le", lhs=lower, rhs=upper, message=text
                )

    def constant(self, node: fx.Node) -> Any:
        attribute: Any = self.graph_module
        for part in str(node.target).split("."):
            attribute = getattr(attribute, part)
        if isinstance(attribute, fx.GraphModule):
            return None  # what uses it is refused by name
        if not isinstance(attribute, torch.Tensor):
            return self.refuse(node, f"the attribute {node.target}, a {type(attribute).__name__},")
        return add_constant(self.builder, self.module, attribute)

    def nested(self, module: fx.GraphModule, name: str) -> func.FuncOp:
        """A graph that control flow calls, as a function of the same module."""
        number, free = 0, name
        while self.module.lookup(free) is not None:
            number += 1
            free = f"{name}_{number}"
        inner = _Importer(module, free, (), ())
        inner.module, inner.caller_derives_views = self.module, True
        outcome = inner.run()
        if outcome.absent or not all(isinstance(o, int) for o in outcome.outputs):
            raise UserError(f"the graph {name} gives None or a constant number: not supported")
        return inner.function

    # -- outputs

    def output(self, node: fx.Node) -> tuple[Output, ...]:
        outputs: list[Output] = []
        values: list[Value] = []
        info: list[Attribute] = []
        returned: Any = node.args[0]
        for entry in returned if isinstance(returned, list | tuple) else (returned,):
            value = entry.meta.get("val") if isinstance(entry, fx.Node) else entry
            is_number = isinstance(value, _NUMBERS) and entry not in self.values
            if isinstance(entry, fx.Node) and self.values.get(entry) is TOKEN:
                value = None  # torch throws it away
            content = self.values.get(entry) if isinstance(entry, fx.Node) else None
            if isinstance(content, Given):
                outputs.append(content)
                continue
            if not isinstance(entry, fx.Node) or value is None or is_number:
                outputs.append(Literal(value))
                continue
            entries = self.result_info(entry, value, len(info))
            if len(outputs) in self.saved and entries.get("alias_of") is None:
                entries = A.DictAttr({**entries.as_dict(), "saved": A.UNIT})
            if len(outputs) in self.result_places:
                block, place = map(A.IntegerAttr, self.result_places[len(outputs)])
                strides = entries.as_dict()["strides"]
                entries = A.DictAttr({"strides": strides, "block": block, "place": place})
            outputs.append(len(values))
            values.append(self.returned(entry, value))
            info.append(entries)
        self.builder.create(func.ReturnOp, values)
        self.function.attributes["result_info"] = A.ArrayAttr(info)
        return tuple(outputs)

    def returned(self, node: fx.Node, value: Any) -> Value:
        if isinstance(value, torch.SymBool):
            return self.truth(node, value)
        if isinstance(value, torch.SymInt):
            return self.builder.value(sym.ValueOp, dim=self.integer(value))
        operand = self.operand(node)
        if not isinstance(operand, Value):
            return self.refuse(node, "an output that is a list")
        return operand

    def truth(self, node: fx.Node, value: torch.SymBool) -> Value:
        """A condition as a scalar (i1)."""
        truth = self.values.get(node)
        if isinstance(truth, Value):
            return truth
        expression = symbols.expression(value)
        if self.binder.has_floats(expression):
            known = self.binder.floats
            tensor = scalars.condition_tensor(self.builder, expression, known)
        else:
            number = self.builder.value(sym.ValueOp, dim=self.integer(value))
            held = self.builder.value(graph.FromScalar, number)
            tensor = self.builder.insert(graph.Cast.to(held, i1)).results[0]
        return self.builder.value(graph.Item, tensor)

    def result_info(self, node: fx.Node, value: Any, number: int) -> A.DictAttr:
        """What the caller must see of result `number`: eager's strides, offset and whose storage
        it shares, an argument's or an earlier result's; the kind of a number."""
        if not isinstance(value, torch.Tensor):
            name = type(value).__name__.removeprefix("Sym").lower()
            return A.DictAttr({"kind": A.StringAttr(name)})
        type_ = self.tensor_type(value)
        entries: dict[str, Attribute] = {"strides": A.DimsAttr(type_.strides or ())}
        offset = self.offset_of(value)
        if offset is not None:
            entries["offset"] = A.DimAttr(offset)
        # Metas may share storages where tensors don't, as those of two gradients of one shape.
        argument = self.positions.get(node)
        if argument is None:
            argument = self.storages.get((value.untyped_storage()._cdata, *_bits(value)))
        if argument is not None and (
            self.same_element(argument, type_) or not self.caller_derives_views
        ):
            entries["alias_of"] = A.IntegerAttr(argument)
        # What is conjugated or negated when it is read has other elements than its storage.
        if not any(_bits(value)):
            first = self.result_storages.setdefault(value.untyped_storage()._cdata, number)
            if argument is None and first != number:
                entries["shares"] = A.IntegerAttr(first)
        return A.DictAttr(entries)

    def offset_of(self, value: torch.Tensor) -> Dim | None:
        """A storage offset; None for one that depends on data and that torch's graph doesn't
        tell: it names a new symbol for the offset of `narrow` from a tensor."""
        try:
            offset = self.integer(value.storage_offset())
        except UserError:
            return None
        return offset if free_symbols(offset) <= self.binder.bound else None

    def same_element(self, argument: int, type_: TensorType) -> bool:
        """Whether an argument has the element type of `type_`."""
        known = self.function.block.arguments[argument].type
        return isinstance(known, TensorType) and known.element is type_.element


def is_token(node: fx.Node) -> bool:
    """Whether an argument of a graph orders effects: torch passes None for it."""
    return any(
        isinstance(user.target, torch._ops.HigherOrderOperator)
        and user.target.name() == "with_effects"
        and user.args[0] is node
        for user in node.users
    )


def is_object(node: fx.Node) -> bool:
    """Whether an argument of a graph has no place in a program: an object of Python, or the size
    of a ragged dimension, which is no number but stands for the tensor of its offsets."""
    value = node.meta.get("val")
    return isinstance(value, FakeScriptObject) or symbols.is_ragged(value)


def _bits(value: torch.Tensor) -> tuple[bool, bool]:
    """How a tensor's elements are other than what its storage holds: conjugated, negated."""
    return value.is_conj(), value.is_neg()


def _type_name(value: Any) -> str:
    return type(getattr(value, "real_obj", value)).__name__


def _is_row_major(type_: Type) -> bool:
    return isinstance(type_, TensorType) and is_contiguous(type_.shape, type_.strides or ())


def _as_value(argument: Any) -> Value | None:
    return argument if isinstance(argument, Value) else None


def add_constant(builder: Builder, module: ModuleOp, tensor: torch.Tensor) -> Value:
    """A `graph.constant` with the elements of `tensor`: in the text when small, else as a resource
    of the module, by the hash of its bytes."""
    shape = tuple(int(s) for s in tensor.shape)
    element, device = element_type(tensor.dtype), str(tensor.device)
    type_ = TensorType(shape, element, contiguous_strides(shape), device)
    with _disable_current_modes():  # real elements, also while torch traces with fake ones
        attribute = content_attribute(tensor.detach().contiguous(), module.resources, type_)
    return builder.value(graph.Constant, value=attribute)


def _flatten(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of nested lists, and a function that nests a list of as many values alike."""
    if not isinstance(value, list | tuple):
        return [value], lambda values: values[0]
    parts = [_flatten(v) for v in value]

    def rebuild(values: list[Any]) -> Any:
        entries, start = [], 0
        for leaves, inner in parts:
            entries.append(inner(values[start : start + len(leaves)]))
            start += len(leaves)
        return entries

    return [leaf for leaves, _ in parts for leaf in leaves], rebuild


__all__ = ["Imported", "Literal", "add_constant", "element_type", "import_graph", "tensor_type"]
