"""`#irc.target<...>`: a target on a module, its text, and who carries it.

    module attributes {irc.target = #irc.target<avx2, threads = 8>} { ... }

A known processor stands by its name, any other by `cpu` or `gpu` and its fields. Behind it come the
fields that are not as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.registry import provides, register_attribute
from irc.ir.text.attribute_text import TextWriter, quote
from irc.ir.traits import SymbolTable
from irc.target.figures import evolve, figures_of, record_of
from irc.target.names import CPUS, GPUS, PROCESSORS
from irc.target.record import KNOWN, Target, as_target, features_of

if TYPE_CHECKING:
    from irc.ir.passes.context import PassContext
    from irc.ir.text.parser import Parser

NAME = "irc.target"
KINDS = ("cpu", "gpu")


@register_attribute
class TargetAttr(Attribute):
    """A `Target` as an attribute."""

    __slots__ = ()
    dialect = "irc"
    mnemonic = "target"
    fields = ("target",)
    target: Target

    @staticmethod
    def read(text: str) -> Target:
        """The target of a text `#irc.target<...>`. Raises UserError for another."""
        from irc.ir.text.parser import parse_attribute  # a program in the cache is not parsed

        attr = parse_attribute(text, filename="<target>")
        if not isinstance(attr, TargetAttr):
            raise UserError(f"{text} is no #irc.target<...>")
        return attr.target

    def print_parameters(self, writer: TextWriter) -> None:
        processor = self.target.processor
        names = GPUS if self.target.is_gpu else CPUS
        name = next((name for name in names if KNOWN[name] == processor), None)
        if name is None:
            writer.text(KINDS[self.target.is_gpu])
            _write(writer, processor)
        else:
            writer.text(name)
        _write(writer, self.target)

    @classmethod
    def parse_parameters(cls, parser: Parser) -> Attribute:
        start = parser.start
        word = parser.word("cpu, gpu, or the name of a known processor")
        if word not in KNOWN and word not in KINDS:
            parser.fail(f"there is no processor '{word}'; known are {', '.join(PROCESSORS)}; "
                        "cpu and gpu stand before the fields of others", start)  # fmt: skip
        features = features_of(gpu=word == "gpu" or word in GPUS)
        own, common = _fields(features), _fields(Target)
        values: dict[str, Any] = {}
        while parser.take(","):
            place = parser.start
            name = parser.word("a field of a target")
            field = own.get(name) or common.get(name)
            if field is None:
                names = ", ".join([*own, *common])
                parser.fail(f"a target has no field '{name}'; it has {names}", place)
            if name in values:
                parser.fail(f"the field '{name}' is given twice", place)
            parser.expect("=")
            begin = parser.start
            type_, _ = field
            value = _READERS[type_](parser.attribute())
            if value is None:
                parser.fail(f"'{name}' is {_WORDING[type_]}", begin)
            values[name] = value
        changed = {name: value for name, value in values.items() if name in own}
        needed = (name for name, (_, usual) in own.items() if usual is attrs.NOTHING)
        lacking = [name for name in needed if name not in changed]
        if word in KINDS and lacking:
            parser.fail(f"the target has no '{lacking[0]}'", start)
        rest = {name: value for name, value in values.items() if name in common}
        base = KNOWN.get(word)

        def target_of_fields() -> Attribute:
            processor: Any = evolve(base, **changed) if base else record_of(features, **changed)
            return cls(record_of(Target, processor=processor, **rest))

        return parser.build(start, target_of_fields)


def _own(cls: Any) -> list[Any]:
    """The fields that a text names."""
    return [f for f in attrs.fields(cls) if f.init and f.name not in ("processor", "unusual")]


def _fields(cls: Any) -> dict[str, tuple[str, Any]]:
    """What a text names, figures last: annotations and usual values."""
    usual = {name: getattr(cls, name) for name in figures_of(cls)}
    figures = {name: (_KINDS[type(value)], value) for name, value in usual.items()}
    return {field.name: (str(field.type), field.default) for field in _own(cls)} | figures


def _write(writer: TextWriter, record: Any) -> None:
    """Write the fields that are not as usual."""
    cls: Any = type(record)
    names = [f.name for f in _own(cls) if getattr(record, f.name) != f.default]
    if record.unusual:  # which figures there are is read from texts
        unusual = dict(record.unusual)
        names += [name for name in figures_of(cls) if name in unusual]
    for name in names:
        writer.text(f", {name} = {_text(getattr(record, name))}")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else str(value)


def _one(cls: type[Attribute]) -> Callable[[Attribute], Any]:
    return lambda attr: attr.value if isinstance(attr, cls) else None  # type: ignore[attr-defined]


def _each(cls: type[Attribute]) -> Callable[[Attribute], Any]:
    def read(attr: Attribute) -> Any:
        if not isinstance(attr, A.ArrayAttr) or not all(isinstance(a, cls) for a in attr):
            return None
        return tuple(a.value for a in attr)  # type: ignore[attr-defined]

    return read


def _number(attr: Attribute) -> Any:
    return float(attr.value) if isinstance(attr, A.FloatAttr | A.IntegerAttr) else None


#: How the values of a field are read, by its annotation, and what they are called.
_READERS: dict[str, Callable[[Attribute], Any]] = {
    "str": _one(A.StringAttr),
    "int": _one(A.IntegerAttr),
    "bool": _one(A.BoolAttr),
    "tuple[str, ...]": _each(A.StringAttr),
    "tuple[int, int]": _each(A.IntegerAttr),
    "tuple[int, ...]": _each(A.IntegerAttr),
    "float": _number,
}
_WORDING = {
    "str": "a string", "int": "an integer", "bool": "true or false",
    "tuple[str, ...]": "a list of strings", "tuple[int, int]": "a list of two integers",
    "tuple[int, ...]": "a list of integers", "float": "a number",
}  # fmt: skip
#: The annotations of figures, by their values.
_KINDS = {int: "int", float: "float", tuple: "tuple[int, ...]"}


# -- modules


def carried(module: Operation) -> Target | None:
    """The target that a module carries. Raises InvalidIR for an attribute that is none."""
    attr = module.attributes.get(NAME)
    if attr is None:
        return None
    if not isinstance(attr, TargetAttr):
        raise InvalidIR(f"{NAME} is {attr}, not #irc.target<...>", op=module)
    return attr.target


def carry(module: Operation, target: Target | str) -> Target:
    """Let a module carry a target from now on."""
    chosen = as_target(target)
    module.attributes[NAME] = TargetAttr(chosen)
    return chosen


def settle(module: Operation, target: Target | str | None = None, gpu: bool = False) -> Target:
    """An edge: the target that a caller names, else the module's own, else this machine (or its
    GPU), which the module carries from now on."""
    known = carried(module) if target is None else None
    return known or carry(module, target or Target.host(gpu))


@provides("settle target")
def settle_context(op: Operation, context: PassContext, gpu: bool = False) -> None:
    """`settle` for a run of passes on an operation, a module or what is inside of one."""
    module = op
    while module.parent_op is not None:
        module = module.parent_op
    if SymbolTable in module.traits:
        context.settled = settle(module, context.target, gpu)
    else:
        context.settled = as_target(context.target or Target.host(gpu))


__all__ = ["NAME", "TargetAttr", "carried", "carry", "settle",
           "settle_context"]  # fmt: skip
