"""MLIR's own form of an operation without regions, said as data.

    class CmpIOp(Op):
        syntax = Syntax(word="predicate", flags={"fastmath": "fastmath"}, types="operand")

    %c = arith.cmpi slt, %x, %y : i32

`word` is the attribute that stands as a bare word before the operands. Behind them stand, in this
order, `marks` (a word, and the flag that it sets), `mode` (the attribute that one of its words is)
and `flags` (attributes that stand as `keyword<...>`). `types` says which types are written:

* "operand": the first operand's, which those of the others and the result follow from;
* "cast": `T to U`, the operand's and the result's;
* "choice": the result's, with the condition's in front where that is not i1;
* "constant": a value with its type, `4 : i32` or `dense<4> : vector<8xi32>`.

The form that irc had for these operations is read too, and `Parser.old_forms` counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.floats import bits_float
from irc.ir.types import ComplexType, FloatType, TensorType, VectorType, element_bytes, i1

if TYPE_CHECKING:
    from irc.ir.core import Operation, Value
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer


@attrs.frozen
class Syntax:
    """What stands in the text of an operation; see the module's."""

    types: str
    word: str = ""
    marks: Mapping[str, str] = attrs.field(factory=dict)
    mode: str = ""
    flags: Mapping[str, str] = attrs.field(factory=dict)

    # -- writing

    def write(self, printer: Printer, op: Operation) -> tuple[str, str] | None:
        """What stands before and after the names of the operands; None where the default form
        has to say more (types that don't follow, attributes that are no word)."""
        if len(op._operands) != type(op).plain_operands or len(op.results) != 1:  # type: ignore[attr-defined]
            return None  # invalid, and printed all the same
        before = op.name + (" " if op._operands else "")
        hidden = []
        if self.word:
            word = op.attributes.get(self.word)
            if not isinstance(word, A.StringAttr) or not word.value.isidentifier():
                return None
            before += f"{word.value}, "
            hidden.append(self.word)
        if self.types == "constant":
            text = constant_text(op)
            if text is None:
                return None
            out = self._collected(printer, lambda: printer.attributes(op.attributes, ("value",)))
            return before, f"{out} {text}"
        types = self._types(op)
        if types is None:
            return None
        words = self._words_behind(op) if op.attributes else {}
        if words is None:
            return None
        hidden += words

        def rest() -> None:
            printer.attributes(op.attributes, tuple(hidden))
            printer.text(" : ")
            printer.separated(types, printer.type, " to " if self.types == "cast" else ", ")

        return before, "".join(words.values()) + self._collected(printer, rest)

    def _words_behind(self, op: Operation) -> dict[str, str] | None:
        """The text of the attributes that stand as words behind the operands, by their names; None
        where one is nothing that a word says."""
        words = {}
        for word, name in self.marks.items():
            if op.attributes.get(name) is A.UNIT:
                words[name] = f" {word}"
        mode = op.attributes.get(self.mode)
        if mode is not None:
            if not isinstance(mode, A.StringAttr) or not mode.value.isidentifier():
                return None
            words[self.mode] = f" {mode.value}"
        for keyword, name in self.flags.items():
            flag = op.attributes.get(name)
            if flag is not None:
                text = str(flag)
                if not text.startswith(f"#arith.{keyword}<"):
                    return None
                words[name] = " " + text.removeprefix("#arith.")
        return words

    @staticmethod
    def _collected(printer: Printer, write: Any) -> str:
        outer, printer.out = printer.out, []
        try:
            write()
            return "".join(printer.out)
        finally:
            printer.out = outer

    def _types(self, op: Operation) -> list[Type] | None:
        """The types that are written, or None where the others don't follow from them."""
        operands = [v.type for v in op._operands]
        result = op.results[0].type
        if self.types == "cast":
            return [operands[0], result]
        if self.types == "choice":
            condition, *values = operands
            if any(type_ is not result for type_ in values):
                return None
            return [result] if condition is i1 else [condition, result]
        inferred = type(op).infer_types(op._operands, op.attributes)  # type: ignore[attr-defined]
        if any(type_ is not operands[0] for type_ in operands) or inferred[0] is not result:
            return None
        return [operands[0]]

    # -- reading

    def read(
        self, parser: Parser, cls: Any, start: int
    ) -> tuple[Sequence[Value], Sequence[Type], dict[str, Attribute]] | None:
        """Operands, result types and attributes behind an operation's name; None, with nothing
        read, where what stands there is the default form."""
        lexer = parser.lexer
        begin = lexer.start
        if self.types == "constant":
            return self._read_constant(parser)
        attributes: dict[str, Attribute] = {}
        if self.word:
            if lexer.kind != "word":
                return None
            attributes[self.word] = A.StringAttr(lexer.word())
            lexer.expect(",")
        names = parser.operand_names()
        if lexer.kind == "word":
            self._read_words_behind(parser, cls, attributes)
        attributes.update(parser.optional_attribute_dict())
        if not lexer.at(":"):
            lexer.fail_expecting("':' and the types")
        lexer.advance()
        if lexer.at("(") and not self.word:
            lexer.reset(begin)
            return None
        inputs, outputs = self._read_types(parser, len(names))
        if len(inputs) != len(names):
            lexer.fail(f"{cls.name} takes {len(inputs)} operands, {len(names)} given", start)
        values = [parser.use(token, place, t) for (token, place), t in zip(names, inputs)]
        if outputs is None:
            outputs = cls.infer_types(values, attributes)
        return values, outputs, attributes

    def _read_words_behind(
        self, parser: Parser, cls: Any, attributes: dict[str, Attribute]
    ) -> None:
        lexer = parser.lexer
        mark = self.marks.get(lexer.token)
        if mark is not None:
            lexer.advance()
            attributes[mark] = A.UNIT
        if self.mode and lexer.kind == "word":
            word = A.StringAttr(lexer.token)
            if word in cls.attribute_fields[self.mode].words:
                lexer.advance()
                attributes[self.mode] = word
        if lexer.kind == "word" and lexer.token in self.flags:
            keyword = lexer.token
            attributes[self.flags[keyword]] = parser.flag(keyword)

    def _read_types(
        self, parser: Parser, count: int
    ) -> tuple[Sequence[Type], Sequence[Type] | None]:
        lexer = parser.lexer
        first = parser.type()
        if self.types == "cast":
            lexer.expect("to")
            return [first], [parser.type()]
        if self.types == "choice":
            if lexer.take(","):
                second = parser.type()
                return [first, second, second], [second]
            return [i1, first, first], [first]
        return [first] * count, None

    def _read_constant(
        self, parser: Parser
    ) -> tuple[Sequence[Value], Sequence[Type], dict[str, Attribute]] | None:
        lexer = parser.lexer
        begin = lexer.start
        attributes = parser.optional_attribute_dict()
        if "value" in attributes or lexer.at(":"):
            lexer.reset(begin)
            return None
        value = parser.attribute()
        type_ = parser.type() if lexer.take(":") else getattr(value, "type", None)
        if isinstance(value, A.BoolAttr) and type_ is None:
            type_ = i1
        if not isinstance(type_, Type):
            lexer.fail_expecting("':' and the type of the constant")
        return (), (type_,), {**attributes, "value": one_number(value)}


def constant_text(op: Operation) -> str | None:
    """A constant's value and type as MLIR has them; None for what it can't say."""
    value, type_ = op.attributes.get("value"), op.results[0].type
    if isinstance(type_, VectorType | TensorType):
        if isinstance(value, A.DenseAttr):
            return str(value) if value.type is type_ else None
        number = _bare(value)
        static = all(isinstance(size, int) for size in type_.shape)
        return None if number is None or not static else f"dense<{number}> : {type_}"
    number = _bare(value)
    if number is None or getattr(value, "type", i1) is not type_:
        return None
    return number if isinstance(value, A.BoolAttr) else f"{number} : {type_}"


def _bare(value: Attribute | None) -> str | None:
    """A number without its type."""
    if isinstance(value, A.BoolAttr | A.IntegerAttr | A.FloatAttr):
        return str(value).partition(" : ")[0]
    return None


def one_number(value: Attribute) -> Attribute:
    """The number that all lanes of a vector's constant are, as irc keeps it; else the value."""
    if not isinstance(value, A.DenseAttr) or not isinstance(value.type, VectorType):
        return value
    element: Any = value.type.element
    if isinstance(element, ComplexType):
        return value
    size = element_bytes(element)
    lanes = {value.data[i : i + size] for i in range(0, len(value.data), size)}
    if len(lanes) != 1:
        return value
    bits = int.from_bytes(lanes.pop(), "little")
    if element is i1:
        return A.BoolAttr(bool(bits))
    if isinstance(element, FloatType):
        return A.FloatAttr(bits_float(bits, element.name), element)
    return A.IntegerAttr(bits - (bits >> (8 * size - 1) << 8 * size), element)


__all__ = ["Syntax", "constant_text", "one_number"]
