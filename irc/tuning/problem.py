"""What is tuned: a small module of its own, whose function holds the operation and takes all that
this reads as arguments.

    problem = Problem(text, "form-kernels,bufferize,plan-memory", "softmax f32 8x100")
    module = problem.with_candidate(candidate)      # parsed, and the candidate written into it
    executable = built(module, problem)

It is text and numbers alone, so that another process, or another machine, builds and times it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import attrs

from irc.analysis.loop import used_values
from irc.cache.keys import canonical_text
from irc.dialects import func, graph, sym
from irc.dialects.sym.facts import hints_of
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.mentions import PLACEHOLDER, mentioned_symbols
from irc.ir.module import ModuleOp
from irc.ir.symbols import evaluate, free_symbols
from irc.ir.text.parser import parse
from irc.ir.text.printer import print_op
from irc.ir.traits import ViewLike
from irc.ir.types import TensorType, Type, element_bytes, index, none
from irc.target import Target
from irc.target.attribute import carried, carry
from irc.tuning.applying import apply, tunable_in
from irc.tuning.candidate import Candidate

#: The longest text of a problem.
MOST_TEXT = 1 << 20
_TYPES = {"text": str, "pipeline": str, "what": str}
_FIELDS = frozenset({*_TYPES, "sizes", "cold"})


@attrs.frozen(cache_hash=True)
class Problem:
    """A module's text with its target, the passes from there to `irc.build`, its name for people,
    what each symbol is while it is measured, and the numbers of the arguments that come from memory
    whenever the program is called: in no cache is what was read before."""

    text: str
    pipeline: str
    what: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    cold: tuple[int, ...] = ()

    def module(self) -> ModuleOp:
        """The module of the text, one of its own each time; frozen weights have no content. Raises
        IRCError."""
        first = _read(self.text)
        module = first.clone()
        assert isinstance(module, ModuleOp)
        module.resources, module.trusted = dict(first.resources), first.trusted
        return module

    @property
    def target(self) -> Target:
        """The target that the module carries. Raises UserError."""
        return target_of_problem(_read(self.text))

    def with_candidate(self, candidate: Candidate) -> ModuleOp:
        """The module with a candidate as the choice for its operation, and random numbers as its
        frozen weights. Raises IRCError."""
        module = self.module()
        apply(tunable_in(main_of(module)), candidate)
        for op in main_of(module).block.ops:
            if isinstance(op, graph.Constant) and isinstance(op.value, A.ResourceAttr):
                module.resources[op.value.key] = _content(op.value)
        return module

    def canonical(self) -> str:
        """What decides its times, without names and locations."""
        return _canonical(self)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {**attrs.asdict(self), "sizes": dict(self.sizes), "cold": list(self.cold)}

    @staticmethod
    def from_json(value: object) -> Problem:
        """From what `to_json` gives. Raises ValueError for anything else."""
        if not isinstance(value, dict) or set(value) != _FIELDS:
            raise ValueError("a problem is an object with text, pipeline, what, sizes and cold")
        for name, type_ in _TYPES.items():
            if not isinstance(value[name], type_) or len(value[name]) > MOST_TEXT:
                raise ValueError(f"a problem's {name} is a text")
        sizes = value["sizes"]
        if not isinstance(sizes, dict) or not all(type(n) is int for n in sizes.values()):
            raise ValueError("a problem's sizes are numbers by symbol")
        cold = value["cold"]
        if not isinstance(cold, list) or not all(type(n) is int for n in cold):
            raise ValueError("a problem's cold arguments are numbers")
        return Problem(
            value["text"], value["pipeline"], value["what"], tuple(sizes.items()), tuple(cold)
        )


@functools.lru_cache(maxsize=256)
def _read(text: str) -> ModuleOp:
    """The module of a problem's text, which nobody changes: to copy it takes a twentieth of what it
    takes to read it."""
    module = parse(text, filename="<problem>", resources=_Frozen())
    if not isinstance(module, ModuleOp):
        raise UserError("the text of a problem is a module")
    return module


@functools.lru_cache(maxsize=256)
def _canonical(problem: Problem) -> str:
    sizes = ",".join(f"{name}={size}" for name, size in problem.sizes)
    text = canonical_text(problem.module())
    return f"{text}\n{problem.pipeline}\n{sizes}\n{problem.cold}"


FROZEN = "frozen"


class _Frozen(Mapping[str, object]):
    """What stands for the contents of frozen weights while a problem is read: none."""

    def __getitem__(self, key: str) -> object:
        if not key.startswith(FROZEN):
            raise KeyError(key)
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _content(value: A.ResourceAttr) -> Any:
    """The content of a frozen weight: one tensor for all candidates that are built at a time."""
    import torch

    from irc.interp.core import torch_dtype

    content = _contents.get(value.key)
    if content is None:
        generator = torch.Generator().manual_seed(len(value.key))
        type_ = value.type
        assert isinstance(type_, TensorType)
        sizes = [size for size in type_.shape if isinstance(size, int)]
        numbers = torch.rand(sizes, generator=generator, device="cpu") * 2 - 1
        content = _contents[value.key] = numbers.to(torch_dtype(type_.element))
    return content


_contents: WeakValueDictionary[str, Any] = WeakValueDictionary()


def _frozen_alike(ops: Sequence[Operation]) -> None:
    """Name the contents of constants beside a problem's text by their numbers and types, so that
    layers with other weights are one problem."""
    beside = [op for op in ops if isinstance(op, graph.Constant)
              and isinstance(op.value, A.ResourceAttr)]  # fmt: skip
    for number, op in enumerate(beside):
        type_ = op.value.type
        op.attributes["value"] = A.ResourceAttr(f"{FROZEN} {number} {type_}", type_)


def main_of(module: ModuleOp) -> func.FuncOp:
    """The function of a problem's module. Raises UserError."""
    function = module.lookup("main")
    if not isinstance(function, func.FuncOp):
        raise UserError("a problem has a function @main")
    return function


def problem_of(
    op: Operation,
    target: Target,
    pipeline: str,
    what: str,
    level: str = "loop",
    around: Sequence[Operation] = (),
    strides: Mapping[Value, A.DimsAttr] | None = None,
) -> Problem:
    """The problem of one operation of a function; `around`: of several, in order and the one among
    them, which are measured together; `strides`: of what is read, where the types don't say. Each
    symbol that they mention is an argument of its own, with its hint's bucket while it is measured.
    Constants are arguments, too."""
    ops = list(around) or [op]
    inside: set[Value] = set()
    for inner in (inner for each in ops for inner in each.walk()):
        inside.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
    used = (value for each in ops for value in used_values(each))
    reads = [v for v in dict.fromkeys(used) if v not in inside]
    known = {v: strides[v] for v in reads if v in strides} if strides else {}
    names = _mentioned(reads, ops, known.values())
    function = _function_of(ops, reads, names, level)
    if known:
        infos = [A.DictAttr({"strides": known[v]} if v in known else {}) for v in reads]
        function.attributes["arg_info"] = A.ArrayAttr([*(A.DictAttr({}) for _ in names), *infos])
    module = ModuleOp.empty()
    module.block.append(function)
    carry(module, target)
    parent = op.parent_op
    assert parent is not None, "what is tuned stands in a function"
    hints = hints_of(parent)
    sizes = tuple((name, bucket_of(hints.get(name, USUAL_SIZE))) for name in names)
    cold = _from_memory(reads, parent, target, hints)
    numbers = tuple(len(names) + place for place, v in enumerate(reads) if v in cold)
    return Problem(print_op(module), pipeline, what, sizes, numbers)


def _from_memory(
    reads: Sequence[Value], parent: Operation, target: Target, hints: Mapping[str, int]
) -> set[Value]:
    """Which of the values are in no cache when the program reads them: its arguments and constants,
    where it has more of them than a cache holds. What it computes was just written."""
    block = parent.regions[0].blocks[0]
    constants = [op.tensor for op in block.ops if isinstance(op, graph.Constant)]
    sources = [*block.arguments, *constants]
    total = sum(_bytes(v.type, hints) for v in sources)
    return set(sources).intersection(reads) if total > target.processor.cached_bytes else set()


def _bytes(type_: Type, hints: Mapping[str, int]) -> int:
    """The bytes of a tensor, a symbol of a size without a hint being `USUAL_SIZE`."""
    if not isinstance(type_, TensorType):
        return 0
    count = element_bytes(type_.element)
    for size in type_.shape:
        known = {name: hints.get(name, USUAL_SIZE) for name in free_symbols(size)}
        count *= max(0, evaluate(size, known))
    return count


USUAL_SIZE = 64
"""What a symbol without a hint is while it is measured."""


def bucket_of(size: int) -> int:
    """The size that stands for all near it: the nearest power of two or three quarters of one,
    above; small ones for themselves."""
    if size <= 16:
        return size
    power = 1 << (size - 1).bit_length()
    return 3 * power // 4 if size <= 3 * power // 4 else power


def _mentioned(
    reads: Sequence[Value], ops: Sequence[Operation], strides: Iterable[A.Attribute]
) -> list[str]:
    """The symbols of what is read and of what operations say, but for their axes, in order."""
    names = {name for value in reads for name in mentioned_symbols(value.type)}
    names.update(name for entry in strides for name in mentioned_symbols(entry))
    local: set[str] = set()
    for inner in (inner for op in ops for inner in op.walk()):
        own = getattr(inner, "local_symbols", None)
        local.update(own() if own is not None else ())
        for attribute in inner.attributes.values():
            names |= mentioned_symbols(attribute)
        for result in inner.results:
            names |= mentioned_symbols(result.type)
    return sorted(name for name in names - local if not PLACEHOLDER.match(name))


def _function_of(
    ops: Sequence[Operation], reads: Sequence[Value], names: Sequence[str], level: str
) -> func.FuncOp:
    """@main, with an argument for each symbol and for each value that is read. It returns what is
    read elsewhere: of one operation all results that there are; of several what is computed, of
    which others see views, too."""
    types = [*(index for _ in names), *(v.type for v in reads)]
    results = [v for op in ops for v in op.results if v.type is not none]
    if len(ops) > 1:
        whole = set(ops)
        seen = {_computed(v) for v in results if any(user not in whole for user in v.users)}
        results = [v for v in results if v in seen and not isinstance(
                   v.defining_op, graph.Constant | graph.Full | graph.Iota)]  # fmt: skip
    outer = {"level": A.StringAttr(level)}
    function = func.FuncOp.create("main", types, [v.type for v in results], outer)
    builder = Builder.at_end(function.block)
    for argument, name in zip(function.block.arguments, names, strict=False):
        builder.create(sym.BindOp, argument, symbol=name)
    inputs = function.block.arguments[len(names) :]
    mapping: dict[Value, Value] = dict(zip(reads, inputs, strict=True))
    _frozen_alike([builder.insert(op.clone(mapping)) for op in ops])
    builder.create(func.ReturnOp, [mapping[v] for v in results])
    return function


def _computed(value: Value) -> Value:
    """What a value is a view of."""
    while value.defining_op is not None and ViewLike in value.defining_op.traits:
        value = value.defining_op.operands[0]
    return value


def target_of_problem(module: ModuleOp) -> Target:
    """The target that a problem's module carries. Raises UserError."""
    target = carried(module)
    if target is None:
        raise UserError("the module of a problem carries its target (irc.target)")
    return target


__all__ = ["Problem", "bucket_of", "main_of", "problem_of", "target_of_problem"]
