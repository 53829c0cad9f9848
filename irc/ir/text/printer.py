"""Printing operations: irc's own form, and MLIR's generic form.

    %r0, %r1 = dialect.name %a, %b [^bb1] {attr = value, flag} ({regions...}) : (T0, T1) -> (T2, T3)

An operation class with `print_custom(self, printer)` writes what follows its name. Text is
deterministic to the byte: attributes are sorted by name, values are named by their hints (made
unique inside a function) or numbered in the order in which they appear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.definition import SEGMENTS, Op
from irc.ir.hooks import says
from irc.ir.location import UNKNOWN, Location
from irc.ir.segments import implied_segments
from irc.ir.symbols import Dim, Expr, format_dim
from irc.ir.text.attribute_text import (
    TextWriter,
    attribute_text,
    location_text,
    results_text,
)
from irc.ir.text.generic_form import mlir_form, print_generic, print_generic_rest
from irc.ir.traits import IsolatedFromAbove, SameOperandsAndResultType
from irc.ir.types import FunctionType

BAD_CHARACTERS = re.compile(r"[^A-Za-z0-9_$.]")
PLACEHOLDER = re.compile(r"\b_(\d+)\b")
LONG_TYPE = 40


def print_attribute(attr: Attribute, generic: bool = False) -> str:
    """The text of an attribute or type; `generic`: the form that MLIR's tools read."""
    return attribute_text(attr, generic)


@says(Operation, method="__str__")
def _text(op: Operation) -> str:
    return print_op(op)


def print_op(
    op: Operation, generic: bool = False, locations: bool = False, aliases: bool = False
) -> str:
    """The text of `op` and all inside it.

    generic: MLIR's generic form. locations: `loc(...)` after each operation. aliases: long types,
    attributes and locations used more than once are defined above as `!t0`, `#a0`, `#loc0`.
    """
    printer = Printer(generic, locations)
    if aliases:
        printer.collect_aliases(op)
    printer.op(op)
    printer.out.append("\n")
    return "".join(printer.out)


class Printer(TextWriter):
    """Writes operations. `print_custom` methods of operations call its public methods."""

    __slots__ = (
        "locations", "names", "taken", "next_number", "indent", "aliases", "flat", "around",
    )  # fmt: skip

    def __init__(self, generic: bool = False, locations: bool = False) -> None:
        super().__init__(generic)
        self.locations = locations
        self.names: dict[Value, str] = {}
        # Names made of hints, each with the number that a second value of that hint tries first.
        self.taken: dict[str, int] = {}
        self.next_number = 0
        self.indent = "\n"
        self.aliases: dict[Attribute, str] = {}
        # Classes whose text is fixed but for names, and that text before and after the operands,
        # by class, attributes and types.
        self.flat: dict[type[Operation], bool] = {}
        self.around: dict[tuple[Any, ...], tuple[str, str]] = {}

    # -- pieces

    def attribute(self, attr: Attribute) -> None:
        """Write an attribute or a type, by its alias if it has one."""
        alias = self.aliases.get(attr)
        self.out.append(attribute_text(attr, self.generic) if alias is None else alias)

    type = attribute

    def types(self, types: Iterable[Type]) -> None:
        """Write types with commas between."""
        self.separated(types, self.attribute)

    def value_name(self, value: Value) -> str:
        """The name of a value, `%` included; chosen when it first appears."""
        name = self.names.get(value)
        if name is None:
            name = self.names[value] = self._choose_name(value.name_hint)
        return name

    def _choose_name(self, hint: str | None) -> str:
        if hint and not (hint.isidentifier() and hint.isascii()):
            hint = BAD_CHARACTERS.sub("_", hint)
            if hint[0] in "0123456789":
                hint = None if hint.isdigit() else "_" + hint
        if not hint:
            name = f"%{self.next_number}"
            self.next_number += 1
            return name
        taken = self.taken
        first = name = "%" + hint
        number = taken.get(first)
        if number is not None:
            name = f"{first}_{number}"
            while name in taken:
                number += 1
                name = f"{first}_{number}"
            taken[first] = number + 1
        taken[name] = 0
        return name

    def value(self, value: Value) -> None:
        """Write a value's name."""
        self.out.append(self.value_name(value))

    def values(self, values: Iterable[Value]) -> None:
        """Write values' names with commas between."""
        self.out.append(", ".join([self.value_name(v) for v in values]))

    def dim_with_values(self, dim: Dim | None, values: Sequence[Value]) -> None:
        """Write an expression in which `_0`, `_1`, ... stand for values, with their names."""
        if not isinstance(dim, Expr):
            self.out.append("?" if dim is None else str(dim))
            return

        def name(match: re.Match[str]) -> str:
            position = int(match[1])
            return self.value_name(values[position]) if position < len(values) else match[0]

        self.out.append(PLACEHOLDER.sub(name, format_dim(dim)))

    def attributes(
        self, entries: Mapping[str, Attribute], hidden: Iterable[str] = (), keyword: str = ""
    ) -> None:
        """Write ` keyword {...}` with the entries not in `hidden`; nothing if there are none."""
        shown = sorted(item for item in entries.items() if item[0] not in hidden)
        if shown:
            self.out.append(f" {keyword} {{" if keyword else " {")
            self.separated(shown, self.entry)
            self.out.append("}")

    # -- blocks and regions

    def region(self, region: Region, header: bool = True) -> None:
        """Write `{...}`. header: whether the entry block's arguments are written too."""
        out = self.out
        outer = self.indent
        out.append("{")
        self.indent = outer + "  "
        for number, block in enumerate(region.blocks):
            if number or (header and (block.arguments or block.first is None)):
                out.append(f"{outer}^bb{number}")
                if block.arguments:
                    out.append("(")
                    self.arguments(block)
                    out.append(")")
                out.append(":")
            op = block.first
            while op is not None:
                out.append(self.indent)
                self.op(op)
                op = op.next
        self.indent = outer
        out.append(f"{outer}}}")

    def arguments(self, block: Block) -> None:
        """Write `%a: T, %b: U` for the arguments of a block."""
        self.separated(block.arguments, self._argument)

    def _argument(self, argument: Value) -> None:
        self.out.append(self.value_name(argument) + ": ")
        self.attribute(argument.type)

    def _successors(self, op: Operation) -> None:
        if op.successors:
            names = []
            for block in op.successors:
                region = block.parent
                number = region.blocks.index(block) if region is not None else -1
                names.append(f"^bb{number}" if number >= 0 else "^detached")
            self.out.append(f"[{', '.join(names)}]")

    # -- operations

    def op(self, op: Operation) -> None:
        """Write one operation, without a line break around it."""
        results = op.results
        if not op.regions and not op.successors:
            flat = self.flat.get(op.__class__)
            if flat is None:
                flat = self.flat[op.__class__] = self._is_flat(op)
            if flat:
                self._flat_op(op)
                return
        if results:
            self.out.append(", ".join([self.value_name(r) for r in results]) + " = ")
        isolated = IsolatedFromAbove in op.traits
        if isolated:
            outer = self.names, self.taken, self.next_number
            self.names, self.taken, self.next_number = dict(self.names), {}, 0
        if self.generic:
            print_generic(self, op)
        else:
            if op.is_registered:
                self.out.append(op.keyword or op.name)  # type: ignore[attr-defined]
            else:
                self.out.append(f'"{op.name}"')
            custom = getattr(op, "print_custom", None)
            if custom is not None and op.is_registered:
                custom(self)
            elif op.is_registered:
                self.default_form(op)
            else:
                self._unregistered(op)
        if isolated:
            self.names, self.taken, self.next_number = outer
        if self.locations:
            self.location(op.location)

    def _is_flat(self, op: Operation) -> bool:
        plain = op.is_registered and getattr(op, "print_custom", None) is None
        return (self.generic or plain) and IsolatedFromAbove not in op.traits

    def _flat_op(self, op: Operation) -> None:
        """Write an operation without regions and successors in the form that none chose."""
        operands, results, attributes = op._operands, op.results, op.attributes
        key = (
            op.__class__,
            len(operands),
            tuple(attributes.items()) if attributes else None,
            *[v.type for v in operands],
            *[r.type for r in results],
        )
        around = self.around.get(key)
        if around is None:
            around = self.around[key] = self._text_around(op)
        names, name_of = self.names, self.value_name
        defined = ""
        if results:
            # Results come before operands: that decides the numbers of values not defined here.
            defined = ", ".join([name_of(r) for r in results]) + " = "
        used = ", ".join([names[v] if v in names else name_of(v) for v in operands])
        self.out.append(f"{defined}{around[0]}{used}{around[1]}")
        if self.locations:
            self.location(op.location)

    def _text_around(self, op: Operation) -> tuple[str, str]:
        """What stands before and after the names of the operands."""
        out, self.out = self.out, []
        try:
            syntax = None if self.generic else op.syntax  # type: ignore[attr-defined]  # is registered
            written = None if syntax is None else syntax.write(self, op)
            if written is not None:
                return written  # type: ignore[no-any-return]
            if self.generic or syntax is not None:  # what MLIR's own form can't say is invalid
                name, attributes = mlir_form(op)
                head = f'"{name}"('
                self.out.append(")")
                print_generic_rest(self, op, attributes)
            else:
                head = f"{op.name} " if op._operands else op.name
                self._default_rest(op)
            return head, "".join(self.out)
        finally:
            self.out = out

    def default_form(self, op: Operation) -> None:
        """Write what follows an operation's name in the default form."""
        if op._operands:
            self.out.append(" ")
            self.values(op._operands)
        self._default_rest(op)

    def _default_rest(self, op: Operation) -> None:
        if op.successors:
            self.out.append(" ")
            self._successors(op)
        if op.attributes:
            self.attributes(op.attributes, hidden_segments(op))
        self._regions(op)
        self.signature(op)

    def _regions(self, op: Operation) -> None:
        if op.regions:
            self.out.append(" (")
            self.separated(op.regions, self.region)
            self.out.append(")")

    def signature(self, op: Operation) -> None:
        """Write ` : types` of an operation in the default form."""
        operands, results = op._operands, op.results
        if not operands and not results:
            return
        if operands and SameOperandsAndResultType in op.traits and results:
            first = operands[0].type
            if all(v.type is first for v in operands) and all(r.type is first for r in results):
                self.out.append(" : ")
                self.attribute(first)
                return
        if not operands and len(results) == 1 and results[0].type.__class__ is not FunctionType:
            self.out.append(" : ")
            self.attribute(results[0].type)
            return
        self.out.append(" : (")
        self.types(v.type for v in operands)
        self.out.append(")")
        if results:
            self.out.append(" -> ")
            self.result_types(r.type for r in results)

    def result_types(self, types: Iterable[Type]) -> None:
        """Write one type as it is, several in parentheses."""
        listed = list(types)
        if len(listed) == 1 and listed[0].__class__ is not FunctionType:
            self.attribute(listed[0])
            return
        self.out.append("(")
        self.types(listed)
        self.out.append(")")

    def _unregistered(self, op: Operation) -> None:
        self.out.append("(")
        self.values(op._operands)
        self.out.append(")")
        self._successors(op)
        self._regions(op)
        self.attributes(op.attributes)
        self.out.append(" : (")
        self.types(v.type for v in op._operands)
        self.out.append(") -> ")
        self.result_types(r.type for r in op.results)

    # -- locations and aliases

    def location(self, location: Location) -> None:
        """Write ` loc(...)`."""
        alias = self.aliases.get(location)
        self.out.append(f" loc({location_text(location) if alias is None else alias})")

    def collect_aliases(self, root: Operation) -> None:
        """Name long types, attributes and locations used more than once, and write the
        definitions."""
        counts: dict[Any, int] = {}
        for op in root.walk():
            types: list[Attribute] = [r.type for r in op.results]
            types += [v.type for v in op._operands]
            types += [a.type for r in op.regions for b in r.blocks for a in b.arguments]
            types += op.attributes.values()
            if self.locations and op.location is not UNKNOWN:
                types.append(op.location)
            for attr in types:
                counts[attr] = counts.get(attr, 0) + 1
        numbers = {"!t": 0, "#a": 0, "#loc": 0}
        for attr, count in counts.items():
            text = attribute_text(attr, self.generic)
            if count < 2 or len(text) < (12 if isinstance(attr, Location) else LONG_TYPE):
                continue
            prefix = "!t" if isinstance(attr, Type) else "#a"
            prefix = "#loc" if isinstance(attr, Location) else prefix
            alias = self.aliases[attr] = f"{prefix}{numbers[prefix]}"
            numbers[prefix] += 1
            self.out.append(f"{alias} = {text}\n")


def hidden_segments(op: Operation) -> tuple[str, ...]:
    """The name of the segment sizes where reading the operands from left to right gives them."""
    sizes = op.attributes.get(SEGMENTS)
    if sizes is None or not isinstance(op, Op):
        return ()
    implied = implied_segments(type(op).operand_fields, len(op._operands))
    return (SEGMENTS,) if getattr(sizes, "parameters", (None,))[0] == implied else ()


__all__ = ["Printer", "print_attribute", "print_op", "results_text"]
