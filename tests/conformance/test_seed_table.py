"""The table of seed rows, the marker's record, and the page made from them."""

from __future__ import annotations

import re
from types import SimpleNamespace

from tests.conformance import report, seeds


def test_rows_are_unique_and_well_named() -> None:
    ids = [row["id"] for row in seeds.rows()]
    assert len(ids) == len(set(ids)) == 84
    assert all(re.fullmatch(r"(PAD|TUNE|FRZ|LAY|DYN)-\d\d", row) for row in ids)
    assert all(row["text"] and "|" not in row["text"] for row in seeds.rows())


def outcome(row: str, test: str, result: str, when: str = "call") -> SimpleNamespace:
    return SimpleNamespace(
        user_properties=[("seed_rows", row)], nodeid=test, outcome=result, when=when
    )


def test_recorder_merges_runs_and_keeps_failures(tmp_path) -> None:
    first = seeds.Recorder(tmp_path)
    first.pytest_runtest_logreport(outcome("LAY-05,LAY-06", "a", "passed"))
    first.pytest_runtest_logreport(outcome("LAY-05", "b", "passed"))
    first.pytest_runtest_logreport(outcome("LAY-05", "b", "failed", "teardown"))
    first.pytest_sessionfinish()
    second = seeds.Recorder(tmp_path)
    second.pytest_runtest_logreport(outcome("LAY-06", "a", "failed"))
    second.pytest_runtest_logreport(outcome("PAD-05", "g", "skipped", "setup"))
    second.pytest_runtest_logreport(outcome("PAD-05", "g", "passed", "teardown"))
    second.pytest_sessionfinish()
    found = seeds.read_outcomes(tmp_path / seeds.OUTCOMES)
    assert found == {
        "LAY-05": {"a": "passed", "b": "failed"},
        "LAY-06": {"a": "failed"},
        "PAD-05": {"g": "skipped"},
    }
    page = report.render(found)
    assert "84 rows: 0 passed, 2 failed, 82 open." in page
    assert re.search(r"\| PAD-05 G \| .* \| open \| 1 \|", page)


def test_outcomes_of_several_machines_are_one() -> None:
    here = {"TUNE-13": {"a": "skipped"}, "PAD-05": {"b": "passed", "c": "passed"}}
    gpu = {"TUNE-13": {"a": "passed"}, "PAD-05": {"b": "failed", "c": "skipped"}}
    whole = {"TUNE-13": {"a": "passed"}, "PAD-05": {"b": "failed", "c": "passed"}}
    assert report.merged([here, gpu]) == report.merged([gpu, here]) == whole
    assert report.merged([]) == {}


def test_a_foreign_record_is_an_empty_one(tmp_path) -> None:
    (tmp_path / "record").write_text("[1, 2", encoding="utf-8")
    assert seeds.read_outcomes(tmp_path / "record") == {}
