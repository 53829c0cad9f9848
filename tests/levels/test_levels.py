"""The levels are real: four programs as computes, groups and kernels, all equal to eager."""

import ast
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bench.experiments import levels  # noqa: E402

FUSION = ("inline_computes", "merge_computes", "group_computes", "localize", "split_reductions",
          "factor_axes", "elide_rounding")  # fmt: skip
LOOP_PASSES = Path(__file__).resolve().parents[2] / "irc" / "passes" / "loop"


@pytest.mark.parametrize("name", sorted(levels.programs()))
def test_every_form_is_equal_to_eager(name):
    found = levels.check(name)
    for form, (text, error) in found.items():
        assert error < 2e-6, form
        assert ("kernel.func" in text) == form.endswith("kernel")
        assert "graph.call_aten" not in text and "host.call_aten" not in text


def test_row_programs_become_one_group():
    text, _ = levels.check("softmax_of_rows")["group"]
    assert text.count("loop.group") == 1


@pytest.mark.parametrize("name", FUSION)
def test_no_fusion_pass_names_an_operation_of_the_graph_level(name):
    tree = ast.parse((LOOP_PASSES / f"{name}.py").read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported |= {f"{node.module}.{a.name}" for a in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            imported |= {a.name for a in node.names}
    assert not [m for m in imported if m.startswith("irc.dialects.graph.")]
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    named = {s for s in strings if isinstance(s, str) and s.startswith("graph.")}
    named |= {
        f"graph.{n.attr}"
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "graph"
    }
    # graph.item reads a scalar for the host; it stays on the loop level.
    assert named <= {"graph.Item"}
