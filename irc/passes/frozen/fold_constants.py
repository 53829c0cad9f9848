"""The pass `fold-constants`."""

from __future__ import annotations

from typing import Any

from irc.analysis.constant_values import VIEWS, ConstantValues, byte_size, cone, is_free
from irc.dialects import func, graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.module import ModuleOp
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.text.printer import print_op
from irc.ir.traits import Pure
from irc.ir.types import TensorType


@register_pass
class FoldConstants(Pass):
    """Computes once what only constants make, and keeps the result as a constant.

    Never what is random, undefined, or has a symbolic size; never what costs nothing at run time
    (views of a constant, one number everywhere) or is made without any `graph.constant` (masks of
    positions, which kernels compute faster than they read). A constant that would have more bytes
    than those that it is made of, and more than `limit`, is not made: its operands are looked at
    instead, so that a weight's cast is folded and its broadcast or transposition is not. The
    weight of a `graph.winograd_conv` is made whatever its size; a view that products alone read is
    none.

    The context's `folded` says how the large ones were computed
    (`irc.program.folded.FoldedConstants`), for a cache that doesn't keep them.

    Before:
        %w = graph.constant {value = dense<[0.5, 1.5]> : tensor<2xf32>} : tensor<2xf32>
        %h = graph.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    After:
        %h = graph.constant {value = dense<[0.5, 1.5]> : tensor<2xbf16>} : tensor<2xbf16>
    """

    name = "fold-constants"
    summary = "compute once what only constants make"
    anchor = "func.func"
    rounds_constants = True
    limit: int = 1 << 20

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        module = op.parent_op
        roots = self.chosen(op, context)
        missing = [v for v in roots if not _at_hand(v, module)]
        for value in missing:
            context.remark("not folded: a constant it needs is not beside the program", _op(value))
        roots = [
            v for v in roots if v not in missing and context.spend("fold-constants", _op(v))
        ]
        if not roots:
            return
        assert isinstance(module, ModuleOp)
        fold(roots, module, context)
        context.count("folded", len(roots))
        erase_unused(op)

    def chosen(self, function: func.FuncOp, context: PassContext) -> list[Value]:
        """The values to fold: each is used by something that is not."""
        constants = ConstantValues()
        roots: dict[Value, None] = {}
        for op in function.block.ops:
            if not constants.is_constant(op):
                for operand in op.operands:
                    if operand in constants:
                        self.choose(operand, roots, context)
        return list(roots)

    def choose(self, root: Value, roots: dict[Value, None], context: PassContext) -> None:
        """Add `root` to `roots`, or as much of what it is made of as is worth it."""
        stack, seen = [root], {root}
        while stack:
            value = stack.pop()
            laid_out = _is_laid_out(value)
            if value in roots or (is_free(value) and not laid_out) or _is_read_as_view(value):
                continue
            type_ = value.type
            assert isinstance(type_, TensorType)
            leaves = [op for op in cone([value]) if isinstance(op, graph.Constant)]
            known = sum(byte_size(op.tensor.type) for op in leaves)
            size = byte_size(type_)
            is_view = isinstance(value.defining_op, graph.Permute | graph.Broadcast)
            fits = size <= max(known, self.limit)
            if leaves and (laid_out or (fits and not is_view)):
                roots[value] = None
                continue
            if leaves and not is_view:
                context.remark(
                    f"not folded: {size} bytes, made of {known} bytes of constants", _op(value)
                )
            fresh = [o for o in _op(value).operands if o not in seen]
            seen.update(fresh)
            stack.extend(fresh)


def fold(roots: list[Value], module: ModuleOp, context: PassContext) -> None:
    """Replace constant values by `graph.constant`s of their contents."""
    from irc.interp.copies import in_order
    from irc.ir.contents import content_attribute
    from irc.program.folded import FoldedConstants, evaluate

    ops = cone(roots)
    contents = evaluate(ops, roots, module)
    recipe = _recipe(ops, roots)
    before = set(module.resources)
    large: dict[str, int] = {}
    for number, (value, content) in enumerate(zip(roots, contents, strict=True)):
        op = _op(value)
        content = in_order(content)
        type_ = value.type
        assert isinstance(type_, TensorType)
        attribute = content_attribute(content, module.resources, type_)
        constant = Builder.before(op).create(graph.Constant, value=attribute)
        constant.location, constant.tensor.name_hint = op.location, value.name_hint
        value.replace_all_uses_with(constant.tensor)
        if isinstance(attribute, A.ResourceAttr) and attribute.key not in before:
            large.setdefault(attribute.key, number)
    if large:
        function: Any = recipe.lookup("main")
        last = function.return_op
        last.operands = [last.operands[number] for number in large.values()]
        function.refresh_type()
        erase_unused(function)
        text = print_op(recipe)
        context.folded.append(FoldedConstants(text, tuple(large)))


def _recipe(ops: list[Operation], roots: list[Value]) -> ModuleOp:
    """A module whose function without arguments computes `roots`."""
    module = ModuleOp.empty()
    function = func.FuncOp.create("main", (), [v.type for v in roots])
    module.block.append(function)
    builder = Builder.at_end(function.block)
    mapping: dict[Value, Value] = {}
    for op in ops:
        builder.insert(op.clone(mapping))
    builder.create(func.ReturnOp, [mapping[v] for v in roots])
    return module


def _is_laid_out(value: Value) -> bool:
    """Whether a value is the weight of a convolution that reads it in an order of its own."""
    computed = not isinstance(value.defining_op, graph.Constant)
    return computed and any(
        isinstance(user, graph.WinogradConv) and user.weight is value for user in value.users
    )


def _is_read_as_view(value: Value) -> bool:
    """Whether a value is a view of a constant that products alone read, which find its elements
    where they are."""
    if not all(isinstance(user, graph.DotGeneral) for user in value.users):
        return False
    while isinstance(value.defining_op, (graph.Reshape, *VIEWS)):
        value = value.defining_op.operands[0]
    return isinstance(value.defining_op, graph.Constant)


def _at_hand(value: Value, module: Operation | None) -> bool:
    """Whether the contents of all constants that `value` is made of are beside the module."""
    resources = getattr(module, "resources", None)
    if resources is None:
        return False
    leaves = (op.attributes["value"] for op in cone([value]) if isinstance(op, graph.Constant))
    return all(a.key in resources for a in leaves if isinstance(a, A.ResourceAttr))


def _op(value: Value) -> Operation:
    op = value.defining_op
    assert op is not None
    return op


def erase_unused(function: Any) -> None:
    """Erase operations without effects whose results nobody uses."""
    for op in list(function.block.reversed_ops):
        removable = Pure in op.traits or isinstance(op, graph.CallAten) and op.is_removable()
        if removable and not any(r.has_uses for r in op.results):
            op.erase()


__all__ = ["FoldConstants", "erase_unused", "fold"]
