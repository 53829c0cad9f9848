"""What the README and the pages under docs/ show, runs and is true."""

import re
import runpy
import shlex
import subprocess
import sys

import pytest

from irc.tools import cli, irc_opt
from tests.docs.snippets import ROOT, blocks, commands

# Tables that are generated, and the reference, have nothing to run.
PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
MODULES = {"irc-opt": irc_opt, "irc": cli}
# Pages that share a process, as what they show leaves nothing behind: others register passes or
# rules, which would stay.
TOGETHER = (
    "README.md",
    "docs/resources.md",
    "docs/how-a-model-is-compiled.md",
    "docs/bisecting.md",
    "docs/troubleshooting.md",
    "docs/attention.md",
    "docs/padding.md",
    "docs/freezing.md",
    "docs/remarks.md",
)
EACH = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')"


def programs_of(page):
    """What a page shows as Python: a block without an import goes on from those before it."""
    programs: list[str] = []
    for code in blocks(page, "python"):
        if "import" in code:
            programs.append(code)
        else:
            programs[-1] += code
    return programs


@pytest.mark.parametrize(
    "pages",
    [TOGETHER, *((p,) for p in PAGES if p not in TOGETHER and blocks(p, "python"))],
    ids=" ".join,
)
def test_python_snippets_run(pages, tmp_path):
    """One after the other, each with its own names."""
    paths = []
    for page in pages:
        for number, code in enumerate(programs_of(page)):
            paths.append(tmp_path / f"{page.replace('/', '.')}.{number}.py")
            paths[-1].write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", EACH, *map(str, paths)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**_environment(), "IRC_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("line", [line for page in PAGES for line in commands(page)])
def test_commands_run(line, monkeypatch, capsys):
    """In a process of its own where it loads rules or passes, which would stay."""
    name, *words = shlex.split(line)
    module = MODULES[name]
    if "--load" not in words:
        monkeypatch.chdir(ROOT)
        assert module.main(words) == 0, capsys.readouterr().err
        assert capsys.readouterr().out
        return
    done = subprocess.run(
        [sys.executable, "-m", module.__name__, *words],
        cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_commands_to_run():
    assert len(commands("README.md")) >= 5
    assert len(blocks("README.md", "python")) >= 3


def test_levels_are_what_the_example_prints():
    """Each line of IR stands in the example's output in this order; `...` stands for anything."""
    example = runpy.run_path(str(ROOT / "examples" / "levels.py"))
    printed = "\n".join(text for _, text in example["levels"]())
    lines = [line.strip() for line in printed.splitlines()]
    at = 0
    shown = [line for code in blocks("README.md", "mlir") for line in code.splitlines()]
    for line in shown:
        if line.strip() == "...":
            continue
        expected = re.compile(".*".join(map(re.escape, line.strip().split("..."))))
        found = next((i for i in range(at, len(lines)) if expected.fullmatch(lines[i])), None)
        assert found is not None, f"not in the output, or not in this order: {line}"
        at = found + 1
    assert 40 < len(shown) < 60


@pytest.mark.parametrize("page, example", [
    ("docs/first-rule.md", "own_rules.py"),
    ("docs/tutorial.md", "squares.py"),
    ("docs/first-dialect.md", "own_dialect.py"),
])  # fmt: skip
def test_the_first_program_of_a_page_is_its_example(page, example):
    text = (ROOT / "examples" / example).read_text(encoding="utf-8")
    assert blocks(page, "python")[0].rstrip() in text


def test_remarks_are_what_is_told(tmp_path, capsys):
    """All but the width of vectors, which is the machine's."""
    (shown,) = [b for b in blocks("docs/remarks.md", "") if b.startswith("model.py")]
    path = tmp_path / "model.py"
    path.write_text(blocks("docs/remarks.md", "python")[0])
    runpy.run_path(str(path))
    told = capsys.readouterr().err.replace(str(path), "model.py")
    assert re.sub(r"vectors of \d+", "vectors", told) == re.sub(r"vectors of \d+", "vectors", shown)


STATUS = "docs/design/status.md"


def test_each_goal_is_a_line_whose_command_is_there():
    text = (ROOT / STATUS).read_text(encoding="utf-8")
    goals = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(goals) > 40 and {len(goal) for goal in goals} == {4}
    for command in re.findall(r"`([^`]+)`", " ".join(goal[2] for goal in goals)):
        for path in re.findall(r"tests/\S+", command):
            assert (ROOT / path).exists(), command
        for module in re.findall(r"-m ((?:bench|tests)\.\S+)", command):
            place = ROOT / module.replace(".", "/")
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), command


def test_each_goal_s_figures_are_told_where_its_line_leads():
    for page, heading in re.findall(
        r"\]\(\.\./\.\./(bench/results/status\S+?\.md)#(\S+?)\)",
        (ROOT / STATUS).read_text(encoding="utf-8"),
    ):
        headings = re.findall(r"^## (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        plain = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]
        assert heading in plain, heading
