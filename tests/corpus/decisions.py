"""What the passes decide about the programs of this folder, as lines of text.

The tests `test_decisions.py` of the passes' folders hold what becomes of each program against a
text beside them: a pass that decides otherwise changes a line. Those who mean to change a decision
run pytest with `--update-checks` and read the difference.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from irc.dialects import func, kernel, loop
from irc.ir.core import Operation
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.parser import parse_file
from irc.pipeline import stages
from irc.validation.semantics import SemanticsCheck

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.mlir"))
TARGETS = {"cpu": "avx512", "gpu": "sm_90"}


def lowered(
    name: str, until: str, target: str = "cpu", values: bool = True
) -> tuple[Operation, PassContext]:
    """A program after the stage `until`, for one target on any machine (`cpu`, `gpu`, any text of
    one), and what its passes counted. values: whether the passes of that stage are checked in the
    interpreter, too."""
    target = TARGETS.get(target, target)
    module = parse_file(HERE / f"{name}.mlir")
    context = PassContext(target=target)
    for stage, text in stages(target).items():
        if stage == "functional":
            continue
        if stage != until:
            PassManager.parse(text, verify="end").run(module, context)
            continue
        context = PassContext(target=target)
        checks = [SemanticsCheck("changed")] if values else []
        PassManager.parse(text, verify="each", instrumentations=checks).run(module, context)
        return module, context
    raise ValueError(f"there is no stage {until}")


def counted(context: PassContext) -> str:
    """What the passes counted, in one line."""
    counts = context.statistics.items()
    entries = [(p, n, c) for (p, n), c in counts if c and "interpreter" not in n]
    return ", ".join(f"{p}: {c} {n}" for p, n, c in sorted(entries))


def histogram(op: Operation) -> str:
    """How many operations of which name are inside."""
    names = Counter(inner.name.partition(".")[2] for inner in op.walk() if inner is not op)
    return " ".join(f"{n}*{c}" if c > 1 else n for n, c in sorted(names.items()))


def loops(op: Operation) -> str:
    """A compute or group: axes, outputs, how many reads and other operations; members inside."""
    axes = ", ".join(f"{a.kind} {a.extent}" for a in op.axis_list)  # type: ignore[attr-defined]
    if isinstance(op, loop.GroupOp):
        inner = "; ".join(loops(m) for m in op.block.ops if hasattr(m, "axis_list"))
        return f"[{axes}]{{{inner}}} stores {len(op.results)}"
    assert isinstance(op, loop.ComputeOp)
    outputs = ", ".join(
        o.kind + (f" {o.combiner} {o.accumulator}" if o.combiner else "") for o in op.output_list
    )
    reads = len(list(op.reads))
    masked = sum(r.mask is not None for r in op.reads)
    mask = f" ({masked} masked)" if masked else ""
    rest = sum(1 for inner in op.block.ops) - reads - 1
    return f"({axes}) -> {outputs} of {reads} reads{mask}, {rest} more"


def steps(function: Operation) -> list[str]:
    """The operations of a function, a line each; loops and arrays with what was decided of them."""
    lines = []
    for op in function.regions[0].blocks[0].ops:
        if isinstance(op, loop.ComputeOp | loop.GroupOp):
            lines.append(loops(op))
        elif not op.name.startswith("sym."):
            kinds = ", ".join(str(getattr(r.type, "strides", "") or "") for r in op.results)
            shared = " view" if "view" in op.attributes else ""
            callee = f" {op.attributes['callee']}" if "callee" in op.attributes else ""
            lines.append(f"{op.name}{callee}{shared} {kinds}".rstrip())
    return lines


def kernels(module: Operation) -> list[str]:
    """The kernels of a module, a line each."""
    return [
        f"grid {op.grid}, inplace {op.inplace}, initialized {op.initialized}: {histogram(op)}"
        for op in module.regions[0].blocks[0].ops
        if isinstance(op, kernel.KernelFuncOp)
    ]


def main_of(module: Operation) -> Operation:
    """The traced function."""
    found = [o for o in module.regions[0].blocks[0].ops if isinstance(o, func.FuncOp)]
    return found[0]


@functools.cache
def known(path: Path) -> dict[str, str]:
    """What a text beside the tests says of each program."""
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n== ")[1:]
    return {p.partition("\n")[0]: p.partition("\n")[2].strip() for p in parts}


def hold(path: Path, name: str, lines: Iterable[str], update: bool) -> None:
    """Compare with what the text says; with `update`, write it there instead."""
    found = "\n".join(lines).strip()
    if not update:
        assert found == known(path).get(name), f"{name}: decided otherwise than {path.name} says"
        return
    entries = {**known(path), name: found}
    known.cache_clear()
    head = "What the passes decide (tests/corpus); rewritten by pytest --update-checks.\n"
    text = "".join(f"\n== {n}\n{entries[n]}\n" for n in sorted(entries))
    path.write_text(head + text, encoding="utf-8")
