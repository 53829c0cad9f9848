"""The operations of the func dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from irc.dialects.func import text as function_text
from irc.dialects.func.info import verify_info
from irc.dialects.layout import verify as layout_verify
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import Op, attribute, region, variadic_operand, variadic_result
from irc.ir.traits import Declarable, FunctionLike, IsolatedFromAbove, SymbolOp, Terminator
from irc.ir.types import FunctionType

#: What a function's `level` may say, in the order in which a program passes through them.
LEVELS = ("aten", "graph", *layout_verify.STRIDED)

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer


class FuncOp(Op):
    """A function with one body block, whose arguments are the function's.

    `result_info` (one dictionary per result, optional) says what the caller must see:
    `strides` and `offset` (eager's, in elements), `alias_of` (the argument whose storage the
    result shares), `shares` (the earlier result whose storage it shares); passes preserve it and
    the host program enforces it. A result that is `saved` for the backward program only may get
    other strides (`pad-strides`), or be apart from those whose storage it shares. `aliases` lists
    groups of arguments that may share a storage.
    `level` names the level that the body claims to be on.

    `func.func @f(%x: f32) -> f32 { return %x : f32 }`
    """

    name = "func.func"
    traits = frozenset({Declarable, FunctionLike, IsolatedFromAbove, SymbolOp})
    parents = ("builtin.module",)
    sym_name = attribute(A.StringAttr)
    function_type = attribute(A.TypeAttr)
    arg_info = attribute(A.ArrayAttr, "one dictionary per argument", optional=True)
    result_info = attribute(A.ArrayAttr, "one dictionary per result", optional=True)
    level = attribute(A.StringAttr, optional=True, words=LEVELS)
    sym_visibility = attribute(
        A.StringAttr, "of the symbol", optional=True, words=function_text.VISIBILITIES
    )
    body = region()

    @classmethod
    def create(
        cls,
        name: str,
        inputs: Iterable[Type],
        results: Iterable[Type],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> FuncOp:
        """A function with an empty entry block with `inputs` as arguments."""
        inputs = tuple(inputs)
        entries: dict[str, Attribute] = {
            "sym_name": A.StringAttr(name),
            "function_type": A.TypeAttr(FunctionType(inputs, results)),
            **(attributes or {}),
        }
        return cls((), (), entries, (Region([Block(inputs)]),))

    @property
    def block(self) -> Block:
        """The entry block. Raises InvalidIR for a function that is only declared."""
        blocks = self.regions[0].blocks
        if not blocks:
            self.fail(f"@{self.sym_name} is declared only; there is no body to work on")
        return blocks[0]

    @property
    def type(self) -> FunctionType:
        """The function's type. Raises InvalidIR for what is none."""
        type_ = self.function_type
        if not isinstance(type_, FunctionType):
            self.fail(f"function_type is {type_}, no type of a function")
        return type_

    @property
    def return_op(self) -> ReturnOp:
        """The terminator."""
        last = self.block.last
        if not isinstance(last, ReturnOp):
            self.fail("the function does not end in func.return")
        return last

    def refresh_type(self) -> None:
        """Set `function_type` from the block's arguments and the return's operands."""
        inputs = [a.type for a in self.block.arguments]
        results = [v.type for v in self.return_op.operands]
        self.attributes["function_type"] = A.TypeAttr(FunctionType(inputs, results))

    def verify_op(self) -> None:
        if not self.regions[0].blocks:
            self.type  # noqa: B018  # that it is one
            if self.sym_visibility != "private":
                self.fail("a function without a body is private")
            return
        verify_info(self)
        inputs = tuple(a.type for a in self.block.arguments)
        if inputs != self.type.inputs:
            self.fail("the entry block's arguments differ from the function's type")
        if self.level in layout_verify.STRIDED:
            layout_verify.verify_level(self)

    def print_custom(self, printer: Printer) -> None:
        function_text.print_function(self, printer)

    @classmethod
    def parse_custom(cls, parser: Parser) -> Operation:
        return function_text.parse_function(cls, parser)


class ReturnOp(Op):
    """Returns the operands from the function around it.

    `return %x : f32`
    """

    name = "func.return"
    keyword = "return"
    traits = frozenset({Terminator})
    parents = ("func.func",)
    values = variadic_operand()

    def verify_op(self) -> None:
        parent = self.parent_op
        if isinstance(parent, FuncOp):
            types = tuple(v.type for v in self._operands)
            if types != parent.type.results:
                self.fail(
                    "operand types differ from the function's results",
                    f"returned: ({', '.join(map(str, types))})",
                    f"declared: ({', '.join(map(str, parent.type.results))})",
                )
            if parent.level == "loop":
                # On the layout level, `insert-layout-copies` is still to come.
                layout_verify.verify_result_strides(self, parent.result_info)

    def print_custom(self, printer: Printer) -> None:
        function_text.print_typed_values(self, printer)

    @classmethod
    def parse_custom(cls, parser: Parser) -> Operation:
        return function_text.parse_typed_values(cls, parser)


class CallOp(Op):
    """Calls the function `callee` with the operands, whose types and its own agree but for strides
    and symbols. There is no recursion. Only the interpreter calls functions: a host program has no
    calls but those of control flow.

    `%y = call @f(%x) : (f32) -> f32`
    """

    name = "func.call"
    keyword = "call"
    callee = attribute(A.SymbolRefAttr)
    arguments = variadic_operand()
    outputs = variadic_result()

    @property
    def callees(self) -> tuple[str, ...]:
        """The functions that it calls."""
        return (self.callee,)

    def verify_references(self) -> None:
        from irc.dialects.flow.verify import verify_call

        verify_call(self)

    def print_custom(self, printer: Printer) -> None:
        callee = self.attributes.get("callee")
        if not isinstance(callee, A.SymbolRefAttr):
            printer.default_form(self)
            return
        printer.text(f" {callee}(")
        printer.values(self._operands)
        printer.text(")")
        printer.attributes(self.attributes, ("callee",))
        printer.text(" : (")
        printer.types(v.type for v in self._operands)
        printer.text(") -> ")
        printer.result_types(r.type for r in self.results)

    @classmethod
    def parse_custom(cls, parser: Parser) -> Operation:
        if parser.kind != "at":
            return parser.default_form(cls)
        callee = A.SymbolRefAttr(parser.symbol_name())
        parser.expect("(")
        names = parser.operand_names()
        parser.expect(")")
        attributes = {**parser.optional_attribute_dict(), "callee": callee}
        parser.expect(":")
        start = parser.start
        type_ = parser.function_type()
        if len(type_.inputs) != len(names):
            parser.fail(f"{len(type_.inputs)} types for {len(names)} operands", start)
        operands = [parser.use(*name, t) for name, t in zip(names, type_.inputs)]
        return cls(operands, type_.results, attributes)
