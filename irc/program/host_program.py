"""A host program as plain data: what the native emitter and the Python executor both run.

`irc.program.read_host` makes it from the host dialect. Values are numbered registers, tensors or
scalars; sizes, strides and offsets are expressions over the program's symbols. It holds no torch
object and no IR, so that it can be stored: `to_json` and `from_json` are exact inverses.

Sizes, strides and offsets count elements, arena offsets bytes. dtypes are torch's names.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from irc.ir.symbols import Dim, Expr, format_dim, parse_dim

Kind = Literal["tensor", "int", "float", "bool", "none"]


@attrs.frozen
class Layout:
    """What is known of a tensor: `strides` None when anything may come."""

    dtype: str
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...] | None
    element_bytes: int
    device: str = "cpu"

    @property
    def part_bytes(self) -> Dim:
        """Bytes from one place of the first dimension to the next."""
        assert self.strides is not None
        return self.strides[0] * self.element_bytes


@attrs.frozen
class Argument:
    """An argument of the program; `register` is its value."""

    name: str
    kind: Kind
    register: int
    layout: Layout | None = None


@attrs.frozen
class Bind:
    """Binds `symbol` to a scalar register, to a tensor's size or stride along `dim`, or to where a
    tensor begins in its storage (`offset`).

    A value outside of [minimum, maximum] is an error (of the arguments, if it comes from one).
    """

    symbol: str
    register: int
    dim: int | None = None
    stride: bool = False
    minimum: int | None = None
    maximum: int | None = None
    offset: bool = False

    @property
    def span(self) -> str:
        """The range in words."""
        if self.minimum == self.maximum is not None:
            return f"{self.minimum}"
        if self.maximum is None:
            return f"{self.symbol} of at least {self.minimum}"
        if self.minimum is None:
            return f"{self.symbol} of at most {self.maximum}"
        return f"{self.symbol} from {self.minimum} to {self.maximum}"


@attrs.frozen
class SizeRange:
    """The sizes from `least` to `most` (None: all from `least` on), in which a step runs."""

    size: Dim
    least: int
    most: int | None = None

    def holds(self, size: int) -> bool:
        """Whether a size is in the range."""
        return self.least <= size and (self.most is None or size <= self.most)


@attrs.frozen
class SymbolValue:
    """A scalar register with the value of an expression."""

    register: int
    dim: Dim


@attrs.frozen
class Assert:
    """Raises `error`(`message`) unless `lhs relation rhs` (eq, ne, lt, le)."""

    relation: str
    lhs: Dim
    rhs: Dim
    message: str
    error: str = "RuntimeError"


@attrs.frozen
class AssertValue:
    """Raises `error`(`message`) unless the bool register is true."""

    register: int
    message: str
    error: str = "RuntimeError"


@attrs.frozen
class Alloc:
    """Fresh memory: a tensor of its own, or a place in the arena `offset` bytes in. What is
    `temporary` is gone when the call ends."""

    register: int
    layout: Layout
    offset: Dim | None = None
    temporary: bool = False


@attrs.frozen
class Flag:
    """A truth value in memory that stands as long as the process, true until a launch fails the
    check that it is of, which raises `error`(`message`): at once on a CPU, late on a GPU
    (`irc.runtime.late_flags`)."""

    register: int
    layout: Layout
    message: str
    error: str = "RuntimeError"


@attrs.frozen
class Launch:
    """Runs a kernel over [0, grid): pointers of the tensors, then the symbols' values.

    `work`: scalar operations per point of the grid, None when unknown. `outputs`: positions in
    `tensors` of those that it writes; `private`: of those that are the kernel's own memory, with a
    part for each point. `when`: it runs for these sizes alone.
    """

    kernel: str
    tensors: tuple[int, ...]
    symbols: tuple[str, ...]
    grid: Dim
    work: Dim | None = None
    outputs: tuple[int, ...] = ()
    when: SizeRange | None = None
    private: tuple[int, ...] = ()


@attrs.frozen
class View:
    """Another tensor over the memory of `source`, `offset` elements (its own) after its first; of
    another dtype where `source` is an array of bytes (`irc.program.joined`)."""

    register: int
    source: int
    layout: Layout
    offset: Dim


@attrs.frozen
class Register:
    """A register as an argument of an operator."""

    index: int


@attrs.frozen
class NamedArgument:
    """A dtype, layout, memory_format or device as an argument of an operator."""

    kind: str
    name: str


@attrs.frozen
class Size:
    """A symbolic integer as an argument of an operator."""

    dim: Dim


@attrs.frozen
class Result:
    """One result of an operator: a tensor with its expected layout, or a scalar.

    A result that nothing uses need not be as expected: shape functions may be wrong about it.
    """

    register: int
    kind: Kind
    layout: Layout | None = None
    used: bool = True


@attrs.frozen
class CallOperator:
    """Calls an operator. `arguments`: schema name and content (Python constants, `Register`,
    `Named`, `Size`, tuples for lists). `floating`: all tensors are floating point. `when`: it
    runs for these sizes alone, and has no results."""

    callee: str
    arguments: tuple[tuple[str, Any], ...]
    results: tuple[Result, ...]
    floating: bool
    path: str | None = None
    when: SizeRange | None = None


@attrs.frozen
class Control:
    """Calls other programs, by name: `kind` "cond", "while" or "scan" (see the flow dialect).

    `operands` are registers. The first `carried` of a loop's are replaced by what it computes,
    `scanned` ones are taken slice by slice; `stacked`: all values of a "while" are wanted.
    """

    kind: Literal["cond", "while", "scan"]
    programs: tuple[str, ...]
    operands: tuple[int, ...]
    results: tuple[Result, ...]
    carried: int = 0
    scanned: int = 0
    stacked: bool = False


@attrs.frozen
class LoadConstant:
    """A tensor that the executable keeps, by its key in `HostProgram.constants`."""

    register: int
    key: str
    layout: Layout


@attrs.frozen
class ReadItem:
    """The only element of a tensor as a Python scalar of `kind`; with `every`, whether all
    elements of a dense bool tensor are true."""

    register: int
    source: int
    kind: Kind
    every: bool = False


@attrs.frozen
class CopyInto:
    """Copies elements of `source` into `target`, in whatever strides; for sizes in `when` alone."""

    source: int
    target: int
    when: SizeRange | None = None


Step: TypeAlias = (
    Bind | SymbolValue | Assert | AssertValue | Alloc | Launch | View | CallOperator | Control
    | LoadConstant | ReadItem | CopyInto | Flag
)  # fmt: skip


@attrs.frozen
class Output:
    """One result of the program. `alias_of`: the argument whose memory a view of it shares."""

    register: int | None
    kind: Kind
    layout: Layout | None = None
    alias_of: int | None = None


@attrs.frozen
class Packing:
    """The operator that packs a constant when the program is loaded: its first argument is the
    tensor (transposed before, if it says so), `arguments` are the others, Python constants by
    schema name."""

    callee: str
    arguments: tuple[tuple[str, Any], ...]
    transposed: bool = False


@attrs.frozen
class ConstantData:
    """A constant tensor: its bytes in row-major order (one element: a splat), or None when it is
    a resource given beside the program under the same key. `packing`: what becomes of it."""

    layout: Layout
    data: bytes | None
    packing: Packing | None = None


@attrs.frozen
class HostProgram:
    """The program of one function: checks of arguments, then steps in order, then outputs.

    `bindings` bind symbols to what arguments say; they happen before any step. `clocked`: every
    `CallOperator` adds the time it takes to `irc.program.clocks`. `late_checks`: on a GPU, truth
    values that are asserted and not used otherwise are not waited for
    (`irc.runtime.late_checks`).
    """

    name: str
    arguments: tuple[Argument, ...]
    bindings: tuple[Bind, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    registers: int
    constants: Mapping[str, ConstantData]
    layouts: Mapping[int, Layout]
    kinds: Mapping[int, Kind]
    clocked: bool = False
    late_checks: bool = False

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that it launches, each once, in order."""
        return tuple(dict.fromkeys(s.kernel for s in self.steps if isinstance(s, Launch)))

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the programs that its control flow calls, each once, in order."""
        named = (n for s in self.steps if isinstance(s, Control) for n in s.programs)
        return tuple(dict.fromkeys(named))

    @property
    def devices(self) -> frozenset[str]:
        """The devices of all tensors."""
        return frozenset(layout.device for layout in self.layouts.values())

    @functools.cached_property
    def argument_symbols(self) -> frozenset[str]:
        """Symbols that the arguments bind."""
        return frozenset(b.symbol for b in self.bindings)

    @functools.cached_property
    def views(self) -> Mapping[int, View]:
        """The steps that make views, by register."""
        return {s.register: s for s in self.steps if isinstance(s, View)}

    def root(self, register: int) -> tuple[int, Dim]:
        """The register whose memory a chain of views ends at, and the offset from its start."""
        offset: Dim = 0
        while register in self.views:
            view = self.views[register]
            register, offset = view.source, offset + view.offset
        return register, offset


# Storing

_CLASSES = {
    cls.__name__: cls
    for cls in (
        Layout, Argument, Bind, SizeRange, SymbolValue, Assert, AssertValue, Alloc, Launch, View,
        Register, NamedArgument, Size, Result, CallOperator, Control, LoadConstant, ReadItem,
        CopyInto, Flag, Output, Packing, ConstantData, HostProgram,
    )
}  # fmt: skip


def to_json(value: Any) -> Any:
    """`value` (a program or a part of one) in JSON's types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Expr):
        return {"dim": format_dim(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {"map": [[to_json(k), to_json(v)] for k, v in value.items()]}
    if attrs.has(type(value)):
        name = type(value).__name__
        if _CLASSES.get(name) is type(value):
            return {name: [to_json(getattr(value, f.name)) for f in attrs.fields(type(value))]}
    raise TypeError(f"a host program holds no {type(value).__name__}")


def from_json(value: Any) -> Any:
    """The inverse of `to_json`. Raises ValueError for what it didn't write."""
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("an entry has one key")
    ((name, content),) = value.items()
    if name == "float":
        return float.fromhex(content)
    if name == "dim":
        return parse_dim(content)
    if name == "bytes":
        return base64.b64decode(content, validate=True)
    if name == "map":
        return {from_json(k): from_json(v) for k, v in content}
    cls = _CLASSES.get(name)
    if cls is None or len(content) != len(attrs.fields(cls)):
        raise ValueError(f"no entry is written as {name!r}")
    return cls(*(from_json(item) for item in content))
