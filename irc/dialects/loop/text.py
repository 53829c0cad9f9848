"""The text of the loop dialect's operations.

    %m = loop.compute par(i: s0) red(j: 768) inits(%x) -> map, reduce(sum, f32) schedule #s
         attributes {...} { ... } : tensor<...>, tensor<...>
    %y = loop.group (i: s0) schedule #s { ... } : tensor<...>
    %z = loop.group (i: s0, j: 8) iter_args(%a) limit(%n) { ^bb0(%b: ...): ... } : tensor<...>
    %a = loop.read %x[i, j + %k] (where %c else %o) : f32
    loop.yield %a, %b extra(%k) masks(%c)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.dialects.loop import ops
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.hooks import parses, parses_parameters, prints, prints_parameters
from irc.ir.symbols import Dim, Expr, format_dim
from irc.ir.text.attribute_text import TextWriter, name_text
from irc.ir.text.functions import print_values
from irc.ir.text.printer import PLACEHOLDER

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser
    from irc.ir.text.printer import Printer


# -- attributes


@prints_parameters(ops.AxisAttr)
def _print_kind_and_axis(axis: Any, writer: TextWriter) -> None:
    writer.text(f"{axis.kind} ")
    print_axis(axis, writer)


@parses_parameters(ops.AxisAttr)
def _parse_kind_and_axis(cls: type[Attribute], parser: Parser) -> Attribute:
    return parse_axis(cls, parser, parser.word("par, red or scan"))


def print_axis(axis: Any, writer: TextWriter) -> None:
    """Write `i: s0`."""
    writer.text(f"{name_text(axis.name)}: {format_dim(axis.extent)}")


def parse_axis(cls: type[Attribute], parser: Parser, kind: str) -> Attribute:
    """Read `i: s0`."""
    start = parser.start
    name = parser.string() if parser.kind == "string" else parser.word("the name of an axis")
    parser.expect(":")
    return parser.build(start, cls, name, kind, parser.dim())


@prints_parameters(ops.ResultAttr)
def print_output(output: Any, writer: TextWriter) -> None:
    """Write `map`, `reduce(sum, f32)`, `scatter(sum, [i, _0])`."""
    parts = [name_text(output.combiner)] if output.combiner else []
    if output.accumulator is not None:
        parts.append(str(output.accumulator))
    if output.indices is not None:
        parts.append(f"[{', '.join(map(str, output.indices))}]")
    writer.text(name_text(output.kind))
    if parts:
        writer.text(f"({', '.join(parts)})")


@parses_parameters(ops.ResultAttr)
def parse_output(cls: type[Attribute], parser: Parser) -> Attribute:
    """Read `map`, `reduce(sum, f32)`, `scatter(sum, [i, _0])`."""
    start = parser.start
    kind = parser.word("map, reduce, scan or scatter")
    combiner, accumulator, indices = "", None, None
    if parser.take("("):
        while True:
            if parser.at("["):
                indices = A.DimsAttr(parser.dims())
            else:
                type_ = parser.optional_type()
                if type_ is not None:
                    accumulator = type_
                else:
                    combiner = parser.word("a combiner")
            if not parser.take(","):
                break
        parser.expect(")")
    return parser.build(start, cls, kind, combiner, accumulator, indices)


@prints_parameters(ops.ScheduleAttr)
def print_schedule(schedule: Any, writer: TextWriter) -> None:
    """Write `cpu, vector_axis = "j", peel`."""
    writer.text(name_text(schedule.target))
    for item in schedule.entries.items:
        writer.text(", ")
        writer.entry(item)


@parses_parameters(ops.ScheduleAttr)
def parse_schedule(cls: type[Attribute], parser: Parser) -> Attribute:
    """Read `cpu, vector_axis = "j", peel`."""
    start = parser.start
    target = parser.word("a target")
    entries: dict[str, Attribute] = {}
    while parser.take(","):
        name = parser.word("a schedule entry")
        if name in entries:
            parser.fail(f"the schedule entry '{name}' is given twice")
        entries[name] = parser.attribute() if parser.take("=") else A.UNIT
    return parser.build(start, cls, target, A.DictAttr(entries))


# -- computes and groups


def _plain_body(op: Operation) -> bool:
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    return not op.regions[0].blocks[0].arguments and not op.successors


def _of(attr: Attribute | None, cls: type[Attribute]) -> bool:
    return isinstance(attr, A.ArrayAttr) and all(isinstance(e, cls) for e in attr)


def _print_rest(
    op: Operation, printer: Printer, hidden: tuple[str, ...], header: bool = False
) -> None:
    """Write the schedule, the other attributes, the body and the result types."""
    schedule = op.attributes.get("schedule")
    if schedule is not None:
        printer.text(" schedule ")
        printer.attribute(schedule)
    printer.attributes(op.attributes, (*hidden, "schedule"), "attributes")
    printer.text(" ")
    printer.region(op.regions[0], header=header)
    if op.results:
        printer.text(" : ")
        printer.types(r.type for r in op.results)


def _parse_rest(
    cls: type[Operation], parser: Parser, operands: list[Value], attributes: dict[str, Attribute]
) -> Operation:
    start = parser.start
    if parser.take("schedule"):
        attributes["schedule"] = parser.attribute()
    for name, attr in parser.optional_attribute_dict("attributes").items():
        if name in attributes:
            parser.fail(f"the attribute '{name}' is given twice", start)
        attributes[name] = attr
    region = parser.region()
    types: tuple[Type, ...] = parser.type_list() if parser.take(":") else ()
    return cls(operands, types, attributes, (region,))


@prints(ops.ComputeOp)
def print_compute(op: Any, printer: Printer) -> None:
    """Write a loop.compute after its name."""
    axes, outputs = op.attributes.get("axes"), op.attributes.get("outputs")
    listed = _of(axes, ops.AxisAttr) and _of(outputs, ops.ResultAttr)
    if not (_plain_body(op) and listed) or not outputs:
        printer.default_form(op)
        return
    kind = ""
    for axis in axes:
        if axis.kind != kind:
            printer.text(f"{')' if kind else ''} {axis.kind}(")
            kind = axis.kind
        else:
            printer.text(", ")
        print_axis(axis, printer)
    printer.text(")" if kind else "")
    if op.operands:
        printer.text(" inits(")
        printer.values(op.operands)
        printer.text(")")
    printer.text(" -> ")
    printer.separated(outputs, lambda output: print_output(output, printer))
    _print_rest(op, printer, ("axes", "outputs"))


@parses(ops.ComputeOp)
def parse_compute(cls: type[Operation], parser: Parser) -> Operation:
    """Read a loop.compute after its name."""
    if parser.kind != "word" and not parser.at("->"):
        return parser.default_form(cls)
    axes: list[Attribute] = []
    while parser.kind == "word" and parser.token in ops.AXIS_KINDS:
        kind = parser.word()
        parser.expect("(")
        axes.append(parse_axis(ops.AxisAttr, parser, kind))
        while parser.take(","):
            axes.append(parse_axis(ops.AxisAttr, parser, kind))
        parser.expect(")")
    operands: list[Value] = []
    if parser.take("inits"):
        operands = _parenthesized_values(parser)
    if not parser.at("->"):
        parser.fail_expecting("an axis list (par, red, scan), 'inits' or '->'")
    parser.advance()
    outputs = [parse_output(ops.ResultAttr, parser)]
    while parser.take(","):
        outputs.append(parse_output(ops.ResultAttr, parser))
    attributes: dict[str, Attribute] = {
        "axes": A.ArrayAttr(axes), "outputs": A.ArrayAttr(outputs),
    }  # fmt: skip
    return _parse_rest(cls, parser, operands, attributes)


@prints(ops.GroupOp)
def print_group(op: Any, printer: Printer) -> None:
    """Write a loop.group after its name."""
    axes = op.attributes.get("axes")
    plain = _plain_body(op) and not op.operands or _is_walk(op)
    if not plain or not _of(axes, ops.AxisAttr) or any(axis.kind != "par" for axis in axes):
        printer.default_form(op)
        return
    printer.text(" (")
    printer.separated(axes, lambda axis: print_axis(axis, printer))
    printer.text(")")
    count = len(op.block.arguments)
    for name, values in (("iter_args", op.operands[:count]), ("limit", op.operands[count:])):
        if values:
            printer.text(f" {name}(")
            printer.values(values)
            printer.text(")")
    _print_rest(op, printer, ("axes",), header=count > 0)


def _is_walk(op: Operation) -> bool:
    """Whether a group has an operand for each argument of its block, and at most one more."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1 or op.successors:
        return False
    count = len(op.regions[0].blocks[0].arguments)
    return count > 0 and len(op.operands) in (count, count + 1)


@parses(ops.GroupOp)
def parse_group(cls: type[Operation], parser: Parser) -> Operation:
    """Read a loop.group after its name."""
    if not parser.at("("):
        return parser.default_form(cls)
    parser.advance()
    axes: list[Attribute] = []
    while not parser.at(")"):
        axes.append(parse_axis(ops.AxisAttr, parser, "par"))
        if not parser.take(","):
            break
    parser.expect(")")
    operands = list[Value]()
    for word in ("iter_args", "limit"):
        if parser.take(word):
            operands += _parenthesized_values(parser)
    return _parse_rest(cls, parser, operands, {"axes": A.ArrayAttr(axes)})


def _parenthesized_values(parser: Parser) -> list[Value]:
    parser.expect("(")
    values = parser.values()
    parser.expect(")")
    return values


# -- reads and yields


def names_give_positions(dims: Any, positions: list[Value]) -> bool:
    """Whether reading the expressions with values' names in place of `_0`, `_1`, ... gives these
    positions back: each used, none twice, numbered as they appear."""
    appeared: list[int] = []
    for dim in dims:
        if isinstance(dim, Expr):
            for match in PLACEHOLDER.finditer(format_dim(dim)):
                if int(match[1]) not in appeared:
                    appeared.append(int(match[1]))
    expected = list(range(len(positions)))
    return appeared == expected and len(set(positions)) == len(positions)


@prints(ops.ReadOp)
def print_read(op: Any, printer: Printer) -> None:
    """Write a loop.read after its name."""
    indices = op.attributes.get("indices")
    sizes = op.attributes.get(SEGMENTS)
    if not isinstance(indices, A.DimsAttr) or not isinstance(sizes, A.DenseIntsAttr):
        printer.default_form(op)
        return
    positions = list(op.positions)
    printer.text(" ")
    printer.value(op.source)
    if names_give_positions(indices, positions):
        printer.text("[")
        printer.separated(indices, lambda d: printer.dim_with_values(d, positions))
        printer.text("]")
    else:
        printer.dims(indices)
        if positions:
            printer.text(" positions(")
            printer.values(positions)
            printer.text(")")
    print_mask(op, printer)
    printer.attributes(op.attributes, ("indices", SEGMENTS))
    printer.text(" : ")
    printer.type(op.results[0].type)


def print_mask(op: Any, printer: Printer) -> None:
    """Write ` (where %mask else %other)` as far as they are there."""
    mask, other = op.mask, getattr(op, "other", None)
    if mask is None and other is None:
        return
    printer.text(" (")
    if mask is not None:
        printer.text("where ")
        printer.value(mask)
    if other is not None:
        printer.text("else " if mask is None else " else ")
        printer.value(other)
    printer.text(")")


def parse_mask(parser: Parser) -> tuple[Value | None, Value | None]:
    """Read `(where %mask else %other)` if it is next."""
    if not parser.take("("):
        return None, None
    mask = parser.value() if parser.take("where") else None
    other = parser.value() if parser.take("else") else None
    if mask is None and other is None:
        parser.fail_expecting("'where' or 'else'")
    parser.expect(")")
    return mask, other


@parses(ops.ReadOp)
def parse_read(cls: type[Operation], parser: Parser) -> Operation:
    """Read a loop.read after its name."""
    source = parser.value()
    if not parser.at("["):
        parser.fail_expecting("'[' and the indices")
    names: dict[str, int] = {}
    positions: list[Value] = []

    def placeholder(token: str, start: int) -> str:
        if token not in names:
            names[token] = len(positions)
            positions.append(parser.use(token, start))
        return f"_{names[token]}"

    indices: tuple[Dim | None, ...] = parser.dims(placeholder)
    start = parser.start
    if parser.take("positions"):
        if positions:
            parser.fail("values are either in the indices or in 'positions'", start)
        positions = _parenthesized_values(parser)
    mask, other = parse_mask(parser)
    attributes = parser.optional_attribute_dict()
    attributes["indices"] = A.DimsAttr(indices)
    counts = (1, len(positions), int(mask is not None), int(other is not None))
    attributes[SEGMENTS] = A.DenseIntsAttr(counts)
    operands = [source, *positions, *[v for v in (mask, other) if v is not None]]
    parser.expect(":")
    return cls(operands, (parser.type(),), attributes)


@prints(ops.YieldOp)
def print_yield(op: Any, printer: Printer) -> None:
    """Write a loop.yield after its name."""
    sizes = op.attributes.get(SEGMENTS)
    if not isinstance(sizes, A.DenseIntsAttr) or len(sizes) != 3:
        printer.default_form(op)
        return
    print_values(printer, op.values)
    for name in ("extra", "masks"):
        values = getattr(op, name)
        if values:
            printer.text(f" {name}(")
            printer.values(values)
            printer.text(")")
    printer.attributes(op.attributes, (SEGMENTS,))


@parses(ops.YieldOp)
def parse_yield(cls: type[Operation], parser: Parser) -> Operation:
    """Read a loop.yield after its name; types after a colon are accepted and checked."""
    names = parser.operand_names()
    extra = _parenthesized_values(parser) if parser.take("extra") else []
    masks = _parenthesized_values(parser) if parser.take("masks") else []
    attributes = parser.optional_attribute_dict()
    types: tuple[Type | None, ...] = (None,) * len(names)
    if parser.take(":"):
        start = parser.start
        written = parser.parenthesized_types() if parser.at("(") else parser.type_list()
        if len(written) != len(names):
            parser.fail(f"{len(written)} types for {len(names)} values", start)
        types = written
    values = [parser.use(name, place, t) for (name, place), t in zip(names, types)]
    attributes[SEGMENTS] = A.DenseIntsAttr((len(values), len(extra), len(masks)))
    return cls([*values, *extra, *masks], (), attributes)
