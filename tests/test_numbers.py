"""Numbers that passes keep for themselves: each has a reason why it is none of a target's figures
(`irc.target.figures`), nor an option of its pass, where texts and tuning reach it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1] / "irc"
ROOMS = ("passes", "analysis")

MEANING = "part of what a program means, or of how it is rounded, on every machine"
FORMAT = "of a format of numbers, or of the machine's instructions: nothing faster has another"
NAMES = "numbers that stand for names, or bits of a number"
REACH = "how far is looked: what lies further is left as it is"

#: Every number of a module, by the module's place and its name.
KNOWN = {
    "analysis/channels_last.py": {"MOST_OPERATIONS": REACH},
    "analysis/contraction.py": {"_DEEP": REACH},
    "analysis/cost.py": {"_BITS": NAMES},
    "analysis/image_layouts.py": {"PINNED": NAMES},
    "analysis/loop.py": {"_GAP": NAMES, "_SHARE": NAMES},
    "analysis/multiplied.py": {"CUTS": FORMAT, "CUT_PRODUCTS": FORMAT},
    "analysis/scalar_ranges.py": {"_DEEPEST": REACH, "_ROUNDING": FORMAT},
    "analysis/streams.py": {"FEWEST": REACH, "LONGEST": REACH},
    "analysis/symbolic_sizes.py": {"MOST": REACH},
    "analysis/tile_cost.py": {
        "FIRST": FORMAT, "LEAST_COPIED": FORMAT, "PARTS_BYTES": FORMAT, "ROW": FORMAT,
    },
    "passes/graph/attention/facts.py": {
        "LARGEST": FORMAT, "MORE_ELEMENTS": REACH, "HIGHEST_NUMBER": MEANING,
        "MOST_ELEMENTS": REACH, "DEPTH": REACH,
    },
    "passes/graph/attention/masks.py": {"LOWEST": MEANING},
    "passes/graph/attention/recognize.py": {"_DEPTH": REACH},
    "passes/graph/contractions/measured.py": {
        "FIRST": REACH, "GPU_BUILDS, BUILDS, LEAST": REACH, "LARGE": REACH,
        "PARTS": REACH, "SLOWED": REACH,
    },
    "passes/graph/contractions/surroundings.py": {
        "LOOKED_AT": REACH, "MOST_IN_FRONT, MOST_BEHIND": REACH,
    },
    "passes/graph/common_factors.py": {"_ROUNDED": MEANING},
    "passes/graph/convert_aten/pointwise.py": {"LARGEST_E4M3": FORMAT},
    "passes/graph/convert_aten/support.py": {"LARGEST": FORMAT},
    "passes/graph/functionalize/value_building.py": {"EXACT_OVERLAP_LIMIT": REACH},
    "passes/graph/result_types.py": {"SIZE_OF_SYMBOL": NAMES},
    "passes/graph/split_signs.py": {"INT64_MIN": FORMAT},
    "passes/frozen/weight_parts.py": {"UPPER": FORMAT},
    "passes/host/plan_memory.py": {"SAMPLES": REACH},
    "passes/kernel/cpu/contraction/by_size.py": {"RUNGS": REACH},
    "passes/kernel/cpu/contraction/ahead.py": {"LINE_BITS": FORMAT},
    "passes/kernel/cpu/contraction/row_tiles.py": {"EXACT_ROWS": REACH},
    "passes/kernel/cpu/interleaved.py": {"MOST": REACH},
    "passes/kernel/cpu/partial_sums.py": {
        "MAX_I32": FORMAT, "LONG_SUM": MEANING, "SUM_CHUNK": MEANING, "COLUMN_CHUNK": MEANING,
        "SHORT_SUM": MEANING, "FEW_BLOCKS": MEANING,
    },
    "passes/kernel/cpu/contraction/groups.py": {"SQUARE": FORMAT},
    "passes/kernel/cpu/contraction/register_tiles.py": {"MOST_ROWS": REACH, "EVEN": REACH},
    "passes/kernel/cpu/plan.py": {"PARTS_APART": FORMAT, "PAGE_LINES": FORMAT, "SET_APART": FORMAT},
    "passes/kernel/cpu/place.py": {"ENTRY, OUTER, SHARED": NAMES},
    "passes/kernel/gpu/contraction.py": {"ROWS, DEPTH, COLUMNS": NAMES},

    "passes/kernel/gpu/contraction_schedule.py": {"DESCRIBED": FORMAT, "LINES": FORMAT},
    "passes/kernel/gpu/form.py": {"ENDS_ORDER": NAMES},
    "passes/kernel/gpu/rough_scores.py": {"FACTOR": MEANING},
    "passes/kernel/gpu/streamed.py": {"ROWS, DEPTH, STREAM, COLUMNS": NAMES, "LARGE": MEANING},
    "passes/kernel/gpu/odd_rows.py": {"GROUP_BYTES": FORMAT},
    "passes/kernel/gpu/plan.py": {"INDEX_LIMIT": FORMAT},
    "passes/kernel/gpu/scaled_powers.py": {"LARGE": FORMAT},
    "passes/kernel/gpu/contraction_candidates.py": {
        "NEAR": REACH, "MOST_OF_A_SHAPE": REACH, "PARTED": REACH, "GROUPED": REACH,
        "PLACE_OF_GROUPED": REACH, "LASTING": REACH, "IN_FLIGHT": REACH,
        "EIGHT_ROWS": REACH,
    },
    "passes/kernel/sizes.py": {
        "FACTOR": REACH, "LEAST_SIZE, MOST_SIZE": REACH, "BISECTIONS": REACH,
    },
    "passes/kernel/tune.py": {"BUILDS, LEAST": REACH, "MOST_STEPS, GPU_STEPS": REACH},
    "passes/kernel/narrow_integers.py": {"_LEAST, _MOST": FORMAT, "_EXACT": FORMAT},
    "passes/layout/elide_layout_copies.py": {"COPY, READ": NAMES},
    "passes/layout/shared_results.py": {"LIMIT": REACH},
    "passes/loop/elide_rounding.py": {"_MAX_DEPTH": REACH},
    "passes/loop/inline_computes.py": {"_FAR": REACH},
    "passes/loop/cut_pieces.py": {"_CHANGES": MEANING},
    "passes/loop/positions.py": {"_MAX_DEPTH": REACH},
    "passes/loop/stream_products.py": {"LONGEST_MAP": REACH},
}  # fmt: skip


def is_number(node: ast.AST | None) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    parts = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return bool(parts) and all(is_number(part) for part in parts)


def numbers(text: str) -> Iterator[str]:
    """The names of a module's own numbers."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and is_number(node.value):
            yield ast.unparse(node.targets[0]).strip("()")
        elif isinstance(node, ast.AnnAssign) and is_number(node.value):
            yield ast.unparse(node.target)


def test_every_number_has_a_reason() -> None:
    found = {}
    for room in ROOMS:
        for path in sorted((HOUSE / room).rglob("*.py")):
            place = path.relative_to(HOUSE).as_posix()
            names = set(numbers(path.read_text(encoding="utf-8")))
            if names:
                found[place] = names
    new = {f"{place}: {name}" for place, names in found.items()
           for name in names - {*KNOWN.get(place, {})}}  # fmt: skip
    gone = {f"{place}: {name}" for place, names in KNOWN.items()
            for name in names if name not in found.get(place, ())}  # fmt: skip
    assert not new, "make these figures of the target or options of the pass, or give a reason"
    assert not gone, "these are no more"


def test_what_a_number_is() -> None:
    text = "A = 1 << 20\nB, C = -2.5, 3\nD: int = 4\nE = {1: 2, 2: 4}\nF = ()\nG = True\nH = f(1)\n"
    assert list(numbers(text + 'I = "1"\nJ = {1: (2, 3)}\nK = [1, x]\n')) == [
        "A", "B, C", "D", "E", "J",
    ]  # fmt: skip
