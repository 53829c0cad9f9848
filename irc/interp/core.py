"""The interpreter's frame, its table of operations, and `run`.

Every scalar, vector and array is a torch tensor here: a scalar has shape [], and inside a
`loop.compute` a scalar stands for all points of a chunk of the space at once, with shape
[points]. Two modes: "exact" computes in the declared types; "real" carries every float as f64
and makes casts between floats the identity, so that a pass that is legal over the real numbers
agrees to 1e-10.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from irc.dialects.sym.ranges import WHEN, RangeAttr
from irc.ir import types as T
from irc.ir.attributes import Type
from irc.ir.core import Block, Operation, Value
from irc.ir.diagnostics import InvalidIR, IRCError, UserError
from irc.ir.symbols import Dim, Expr, evaluate

Handler = Callable[["Frame", Any], Any]
MODES = ("exact", "real")

_handlers: dict[type[Operation], Handler] = {}
# The file that holds the meaning of each dialect.
_MODULES = {
    name: f"irc.interp.{name}"
    for name in ("func", "sym", "arith", "math", "aten", "graph", "flow", "layout", "loop",
                 "kernel", "host")
}  # fmt: skip


def interprets(*op_classes: type[Operation]) -> Callable[[Handler], Handler]:
    """Register `f(frame, op)` as the meaning of these operations.

    It returns the value of the only result, a sequence with one value per result, or None for an
    operation without results.
    """

    def decorate(function: Handler) -> Handler:
        for cls in op_classes:
            _handlers[cls] = function
        return function

    return decorate


class NoMeaning(UserError):
    """An operation that the interpreter can't execute."""


class Returned(Exception):
    """Carries the operands of a function's terminator out of its body."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__("return")
        self.values = values


class Frame:
    """The values and symbols of one function call (or one chunk of a loop body inside it)."""

    __slots__ = ("values", "symbols", "mode", "module", "parent", "state")

    def __init__(
        self,
        module: Operation | None,
        mode: str = "exact",
        parent: Frame | None = None,
        symbols: dict[str, Any] | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.values: dict[Value, Any] = {}
        self.symbols: dict[str, Any] = {} if symbols is None else symbols
        self.mode = mode
        self.module = module
        self.parent = parent
        # Shared by all frames of one run: mutated arguments, and `watch`, which sees each
        # executed operation, random calls and undefined memory (`irc.validation.running`).
        self.state: dict[str, Any] = {} if state is None else state

    def nested(self) -> Frame:
        """A frame inside this one, with its own values and symbols on top."""
        return Frame(self.module, self.mode, self, dict(self.symbols), self.state)

    def __getitem__(self, value: Value) -> Any:
        frame: Frame | None = self
        while frame is not None:
            content = frame.values.get(value, _MISSING)
            if content is not _MISSING:
                return content
            frame = frame.parent
        raise InvalidIR(f"a value of type {value.type} is read before it is computed")

    def __setitem__(self, value: Value, content: Any) -> None:
        self.values[value] = content

    def operands(self, op: Operation) -> list[Any]:
        """The contents of the operation's operands."""
        return [self[o] for o in op.operands]

    def dim(self, dim: Dim) -> int:
        """The value of a symbolic expression here."""
        if isinstance(dim, int):
            return dim
        try:
            return evaluate(dim, self.symbols)
        except KeyError as error:
            raise InvalidIR(f"symbol {error.args[0]} is not bound") from None

    def dims(self, dims: Sequence[Dim]) -> list[int]:
        """The values of several symbolic expressions."""
        return [d if isinstance(d, int) else self.dim(d) for d in dims]

    def dtype(self, element: Type) -> torch.dtype:
        """The torch dtype in which values of an element type are carried in this mode."""
        return carried(torch_dtype(element), self.mode)

    def run_block(self, block: Block) -> Sequence[Any] | None:
        """Execute a block; gives the contents of the operands of a terminator whose meaning is
        to hand values on (`yield`), else None. A return raises `Returned`."""
        op = block.first
        outcome = None
        while op is not None:
            outcome = self.execute(op)
            op = op.next
        return outcome

    def execute(self, op: Operation) -> Any:
        """Execute one operation and record its results. One that does not run for the sizes here
        gives none."""
        when = op.attributes.get(WHEN)
        if isinstance(when, RangeAttr) and not when.holds(self.dim(when.size)):
            return None
        handler = _handlers.get(type(op)) or _find_handler(op)
        try:
            outcome = handler(self, op)
        except (Returned, IRCError):
            raise
        except Exception as error:
            error.add_note(f"while interpreting '{op.name}' at {op.location}")
            raise
        results = op.results
        if len(results) == 1 and not isinstance(outcome, list | tuple):
            self.values[results[0]] = outcome
        elif results:
            for result, content in zip(results, outcome, strict=True):
                self.values[result] = content
        watch = self.state.get("watch")
        if watch is not None and self.parent is None:
            watch.executed(self, op)
        return outcome


_MISSING = object()


def _find_handler(op: Operation) -> Handler:
    module = _MODULES.get(op.name.partition(".")[0])
    if module is not None:
        importlib.import_module(module)
    for cls in type(op).__mro__:
        handler = _handlers.get(cls)
        if handler is not None:
            _handlers[type(op)] = handler
            return handler
    raise NoMeaning(f"the interpreter has no meaning for '{op.name}'", op=op)


def fill_undefined(frame: Frame, memory: torch.Tensor) -> torch.Tensor:
    """Mark memory whose elements are undefined: floats are NaN, so that reading them shows; who
    watches the run may choose otherwise."""
    watch = frame.state.get("watch")
    if watch is not None:
        watch.fill_undefined(memory)
    elif memory.dtype.is_floating_point:
        memory.fill_(float("nan"))
    return memory


_DTYPES: dict[Type, torch.dtype] = {
    element: getattr(torch, name)
    for element, name in T.DTYPE_OF_ELEMENT.items()
    if hasattr(torch, name)
}


def torch_dtype(element: Type) -> torch.dtype:
    """The torch dtype of an element type (index: int64; i1: bool)."""
    if isinstance(element, T.IndexType):
        return torch.int64
    dtype = _DTYPES.get(element)
    if dtype is None:
        raise UserError(f"torch has no dtype for {element}")
    return dtype


def carried(dtype: torch.dtype, mode: str) -> torch.dtype:
    """The dtype in which elements of `dtype` are carried in a mode."""
    if mode == "real" and dtype.is_floating_point:
        return torch.float64
    return torch.complex128 if mode == "real" and dtype.is_complex else dtype


def element_of(dtype: torch.dtype) -> Type:
    """The element type of a torch dtype."""
    return T.ELEMENT_OF_DTYPE[str(dtype).removeprefix("torch.")]


def check_argument(frame: Frame, position: int, type_: Type, content: Any) -> Any:
    """Check one argument of a function against its type; gives its content for the frame.

    In mode "real" a float argument may come as f64 already: then it is not copied, and shares
    its storage with others as the caller's tensors do.
    """
    if isinstance(type_, T.TensorType):
        if not isinstance(content, torch.Tensor):
            raise UserError(f"argument {position} is {type(content).__name__}, not a tensor")
        if content.dim() != type_.rank:
            raise UserError(f"argument {position} has rank {content.dim()}, not {type_.rank}")
        if content.dtype not in (torch_dtype(type_.element), frame.dtype(type_.element)):
            raise UserError(
                f"argument {position} is {content.dtype}, not {torch_dtype(type_.element)}"
            )
        for dim, (size, actual) in enumerate(zip(type_.shape, content.shape, strict=True)):
            if isinstance(size, int) and size != actual:
                raise UserError(f"argument {position} has size {actual} at {dim}, not {size}")
        return content.to(frame.dtype(type_.element))
    dtype = frame.dtype(type_.element if isinstance(type_, T.VectorType) else type_)
    return torch.as_tensor(content).to(dtype)


def call_function(
    function: Operation,
    args: Sequence[Any],
    module: Operation | None,
    mode: str,
    state: dict[str, Any] | None = None,
) -> list[Any]:
    """Run a function on contents (tensors, numbers) and give the contents that it returns."""
    block = function.regions[0].blocks[0]
    if len(args) != len(block.arguments):
        raise UserError(f"the function takes {len(block.arguments)} arguments, {len(args)} given")
    frame = Frame(module, mode, state=state)
    frame.state["arguments"] = list(args)
    for position, (argument, content) in enumerate(zip(block.arguments, args, strict=True)):
        frame[argument] = check_argument(frame, position, argument.type, content)
    default = torch.get_default_dtype()
    try:
        if mode == "real":  # what torch makes of integers is a float of this type
            torch.set_default_dtype(torch.float64)
        frame.run_block(block)
    except Returned as returned:
        return returned.values
    finally:
        torch.set_default_dtype(default)
    raise InvalidIR("the function ended without a return", op=function)


def state_of_call(frame: Frame) -> dict[str, Any]:
    """The state of a call in a frame: the caller's, without its arguments and updates."""
    return {k: v for k, v in frame.state.items() if k not in ("arguments", "updates", "watch")}


def run(
    module: Operation,
    *args: Any,
    mode: str = "exact",
    function: str = "main",
    state: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Interpret the function called `function` of a module on any level.

    `args`: one tensor or number per argument. Gives a list with one tensor (or Python number) per
    result. In mode "real" float arguments are used and float results returned as f64. `state`
    may hold a "watch" (`irc.validation.running.Watch`).
    """
    if mode not in MODES:
        raise UserError(f"mode is {mode!r}, not one of {', '.join(MODES)}")
    lookup = getattr(module, "lookup", None)
    target = module if lookup is None else lookup(function)
    if target is None:
        raise UserError(f"the module has no function '{function}'")
    return call_function(target, args, module, mode, dict(state or {}))


def scalar_of(content: Any) -> Any:
    """A Python number from a scalar's content."""
    return content.item() if isinstance(content, torch.Tensor) else content


__all__ = [
    "Expr", "Frame", "Returned", "call_function", "element_of", "interprets", "run", "scalar_of",
    "torch_dtype",
]  # fmt: skip
