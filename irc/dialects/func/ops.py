"""The operations of the func dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Region
from irc.ir.definition import Op, attribute, region, variadic_operand, variadic_result
from irc.ir.text.functions import VISIBILITIES
from irc.ir.traits import Declarable, FunctionLike, IsolatedFromAbove, SymbolOp, Terminator
from irc.ir.types import FunctionType

#: What a function's `level` may say, in the order in which a program passes through them.
LEVELS = ("aten", "graph", "layout", "loop")
#: The levels on which every tensor type has strides.
STRIDED = LEVELS[2:]


class FuncOp(Op):
    """A function with one body block, whose arguments are the function's.

    `result_info` (one dictionary per result, optional) says what the caller must see:
    `strides` and `offset` (eager's, in elements), `alias_of` (the argument whose storage the
    result shares), `shares` (the earlier result whose storage it shares); passes preserve it and
    the host program enforces it. A result that is `saved` for the backward program only may get
    other strides (`pad-strides`), or be apart from those whose storage it shares. Those with a
    `place`, of arguments too, are parts of one array of the caller's, so many bytes in. `aliases`
    lists groups of arguments that may share a storage.
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
        A.StringAttr, "of the symbol", optional=True, words=VISIBILITIES
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


class ReturnOp(Op):
    """Returns the operands from the function around it.

    `return %x : f32`
    """

    name = "func.return"
    keyword = "return"
    traits = frozenset({Terminator})
    parents = ("func.func",)
    values = variadic_operand()


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
