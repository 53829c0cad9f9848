"""Short texts on the loop level, and what passes make of them."""

from __future__ import annotations

import math
import re
from typing import Any

import irc
from irc.dialects import loop
from irc.ir.passes import PassContext, PassManager
from irc.ir.rewrite.fuel import Fuel

ARRAY = re.compile(r"\b(i1|i8|ui8|i16|i32|i64|f8E4M3FN|f8E5M2|f16|bf16|f32|f64)\[([^\]]*)\]")


def expanded(text: str) -> str:
    """The text with `f32[4, 6]` for a tensor type with contiguous strides."""

    def type_of(match: re.Match[str]) -> str:
        sizes = [s.strip() for s in match[2].split(",") if s.strip()]
        strides: list[Any] = []
        for k in range(len(sizes)):
            inner = sizes[k + 1 :]
            known = all(s.isdigit() for s in inner)
            strides.append(math.prod(map(int, inner)) if known else "*".join(inner))
        shown = ", ".join(map(str, strides))
        return f"tensor<[{', '.join(sizes)}] x {match[1]}, strides [{shown}]>"

    return ARRAY.sub(type_of, text)


def parsed(arguments: str, body: str, results: str = "", level: str = "loop") -> Any:
    """A module with @main(arguments) of a level; `results`: `%y: f32[4]`, returned."""
    names, types = [], []
    for name, type_ in re.findall(r"(%\w+): (\w+\[[^\]]*\])", results):
        names.append(name)
        types.append(type_)
    arrow = f" -> ({', '.join(types)})" if types else ""
    returned = f"func.return {', '.join(names)} : {', '.join(types)}" if types else "func.return"
    text = f"""func.func @main({arguments}){arrow} attributes {{level = "{level}"}} {{
      {body}
      {returned}
    }}"""
    return irc.parse(expanded(text))


def ran(
    module: Any, pipeline: str, target: str | None = None, fuel: int | None = None
) -> PassContext:
    """Run a pipeline on a module, with so much fuel, and verify it; gives what it told."""
    context = PassContext(target=target, fuel=None if fuel is None else Fuel(fuel))
    PassManager.parse(pipeline, verify="each").run(module, context)
    return context


def remarks(context: PassContext) -> list[str]:
    """The messages of a run."""
    return [r.text.partition("] ")[2] for r in context.remarks]


def computes(module: Any) -> list[Any]:
    """All computes of a module, in order."""
    return [op for op in module.walk() if isinstance(op, loop.ComputeOp)]


def head(op: Any) -> str:
    """The axes and outputs of a compute: `par(i0: 4) red(i1: 8) -> map, reduce`."""
    axes = " ".join(f"{a.kind}({a.name}: {a.extent})" for a in op.axis_list)
    return f"{axes} -> {', '.join(o.kind for o in op.output_list)}"


def heads(module: Any) -> list[str]:
    """The heads of all computes; those of a group's members behind a dash, `group (i0: 4)`."""
    found = []
    for op in module.walk():
        if isinstance(op, loop.GroupOp):
            found.append(f"group({', '.join(f'{a.name}: {a.extent}' for a in op.axis_list)})")
        elif isinstance(op, loop.ComputeOp):
            inside = isinstance(op.parent_op, loop.GroupOp)
            found.append(("- " if inside else "") + head(op))
    return found


def body_of(op: Any) -> str:
    """The names of a compute's scalar operations without their dialects, in order."""
    return " ".join(inner.name.partition(".")[2] for inner in op.block.ops)
