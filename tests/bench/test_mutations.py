"""Mutants: what they change, that selections stay, and that the tests of a folder judge them."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.mutations import rooms
from bench.mutations.__main__ import judging, report
from bench.mutations.journal import Journal, equivalents, stale_equivalents
from bench.mutations.operators import Mutant, mutants
from bench.mutations.traces import Traces

SOURCE = '''
def may_merge(a, b, limit) -> bool:
    """Whether 1 < 2."""
    if a.kind != "map":
        return False
    assert limit > 0
    verify_axes(a)
    return all(x in b for x in a) and (a.size + 1) * 2 < limit


def size(a):
    return 3 if a else 4
'''


def made(source: str = SOURCE, name: str = "irc/a.py") -> list[Mutant]:
    return mutants(name, source, rooms.decides)


def test_edits_of_a_predicate() -> None:
    found = {(m.operator, m.change) for m in made()}
    assert found == {
        ("negate", "a.kind != \"map\"  ->  (not (a.kind != 'map'))"),
        ("guard", 'a.kind != "map"  ->  False'),
        ("compare", "a.kind != \"map\"  ->  (a.kind == 'map')"),
        ("return", "False  ->  True"),
        ("check", "verify_axes(a)  ->  pass"),
        ("return", "all(x in b for x in a) and (a.size + 1) * 2 < limit  ->  "
                   "(not (all((x in b for x in a)) and (a.size + 1) * 2 < limit))"),
        ("operand", "all(x in b for x in a) and (a.size + 1) * 2 < limit  ->  "
                    "((a.size + 1) * 2 < limit)"),
        ("operand", "all(x in b for x in a) and (a.size + 1) * 2 < limit  ->  "
                    "(all((x in b for x in a)))"),
        ("quantifier", "all  ->  any"),
        ("compare", "x in b  ->  (x not in b)"),
        ("compare", "(a.size + 1) * 2 < limit  ->  ((a.size + 1) * 2 <= limit)"),
        ("constant", "1  ->  2"),
        ("constant", "2  ->  3"),
    }  # fmt: skip
    for mutant in made():
        text = mutant.applied(SOURCE)
        assert text != SOURCE
        ast.parse(text)


def test_keys_follow_the_content() -> None:
    keys = [m.key for m in made()]
    assert len(set(keys)) == len(keys)
    assert [m.key for m in made("import os\n\n" + SOURCE, "irc/moved/a.py")] == keys


def test_the_selection_is_spread_and_stays() -> None:
    chosen = {room.name: rooms.selected(room, 0) for room in rooms.ROOMS}
    assert sum(map(len, chosen.values())) >= 300
    for room in rooms.ROOMS:
        assert len(chosen[room.name]) == room.count, room.name
        again = rooms.selected(room, 0)
        assert [m.key for m in again] == [m.key for m in chosen[room.name]]
    assert rooms.selected(rooms.ROOMS[0], 1) != chosen[rooms.ROOMS[0].name]


def test_tests_mirror_the_code() -> None:
    assert "tests/passes/loop/localize.mlir" in rooms.test_files("irc/passes/loop/localize.py")
    below = rooms.test_files("irc/passes/graph/convert_aten/views.py")
    assert "tests/passes/graph/test_positions.py" in below
    for room in rooms.ROOMS:
        for path in room.paths():
            found = rooms.test_files(path)
            assert found, path
            assert all(Path(f).parts[1:2] != ("fuzz",) for f in found)


def test_the_tests_of_a_line_are_its_judges(monkeypatch, tmp_path) -> None:
    traces = Traces(tmp_path)
    traces.known = {
        "tests/passes/a.mlir": {"tests": [["tests/passes/a.mlir::run0", 2.0, {"irc/a.py": [4]}]]},
        "tests/passes/test_b.py": {
            "tests": [
                ["tests/passes/test_b.py::test_quick", 0.1, {"irc/a.py": [4, 5]}],
                ["tests/passes/test_b.py::test_other", 0.2, {"irc/a.py": [9]}],
            ]
        },
    }
    monkeypatch.setattr("bench.mutations.__main__.test_files", lambda path: (*traces.known,))
    guard = next(m for m in made() if m.operator == "guard")
    names = [name for name, _ in judging(guard, traces)]
    assert names == ["tests/passes/a.mlir::run0", "tests/passes/test_b.py::test_quick"]


def test_the_journal_forgets_what_changed(monkeypatch, tmp_path) -> None:
    mutant = made()[0]
    digests = SimpleNamespace(code="1", test="1")
    monkeypatch.setattr("bench.mutations.journal.digest", lambda *files: digests.code)
    monkeypatch.setattr("bench.mutations.journal.test_digest", lambda file: digests.test)
    path = tmp_path / "journal.jsonl"
    assert Journal(path).verdict(mutant, ()) is None
    Journal(path).note(mutant, "killed", "tests/test_a.py::test_b", (), 1.0)
    known = Journal(path).verdict(mutant, ())
    assert known is not None and known["verdict"] == "killed"
    digests.test = "2"
    assert Journal(path).verdict(mutant, ()) is None
    digests.test, digests.code = "1", "2"
    assert Journal(path).verdict(mutant, ()) is None


def test_survivors_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = made()[:2]
    verdicts = {first.key: {"verdict": "killed"}, second.key: {"verdict": "survived"}}
    assert report({"a": [first, second]}, verdicts) == 0.5
    told = capsys.readouterr().out
    assert f"survived irc/a.py:4 may_merge [{second.operator}]" in told and second.change in told


def test_known_equivalents_exist_and_have_reasons() -> None:
    assert not stale_equivalents(rooms.ROOMS)
    assert all(len(entry["why"]) > 20 for entry in equivalents().values())
