"""What all tests share: one thread, hypothesis profiles, the record of the seed rows.

A test with the marker `seed("PAD-07")` shows a row of the conformance table. When its session ends,
the outcome of each such row is merged into `out/seed_outcomes.json`, from which
`python -m tests.conformance.report` writes docs/conformance.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.backends import BACKEND  # noqa: E402  (after the thread count is set)
from tests.conformance import seeds  # noqa: E402
from tests.faults import rows as faults  # noqa: E402
from tests.ir_files import pytest_addoption, pytest_collect_file  # noqa: E402, F401  (hooks)

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Load the hypothesis profile that HYPOTHESIS_PROFILE names ("default" or "fuzz")."""
    try:
        from hypothesis import HealthCheck, settings
    except ImportError:
        return
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile(
        "default", max_examples=30, deadline=None, derandomize=True, suppress_health_check=quiet
    )
    settings.register_profile("fuzz", max_examples=2000, deadline=None, suppress_health_check=quiet)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_report_header() -> str:
    """The seed and the shard of the property tests, with which a run can be repeated."""
    seed, shard = os.environ.get("FUZZ_SEED", "0"), os.environ.get("SHARD", "0/1")
    return f"property tests: FUZZ_SEED={seed} SHARD={shard}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse unknown rows of seeds and faults; skip what needs a GPU where there is none."""
    known = seeds.row_ids()
    for item in items:
        for row in seeds.rows_of(item):
            if row not in known:
                raise pytest.UsageError(f"{item.nodeid}: no conformance row named {row!r}")
        for row in faults.rows_of(item):
            if row not in faults.ROWS:
                raise pytest.UsageError(f"{item.nodeid}: no row of the faults named {row!r}")
        if item.get_closest_marker("gpu") is not None and not seeds.has_gpu():
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a measurement for Dynamo's log: behind each compilation it empties the caches to
    time the guards, a third of what a small program takes. And let tests set torch's flags."""
    guards = sys.modules.get("torch._dynamo.guards")
    if guards is not None and hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = lambda *rest: 0.0
    backends = sys.modules.get("torch.backends")
    if backends is not None:  # torch's own test utilities forbid it where they are imported
        setattr(backends, "__allow_nonbracketed_mutation_flag", True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Carry the rows of a test on its report, so that they survive xdist's workers."""
    outcome = yield
    rows = seeds.rows_of(item)
    if rows:
        outcome.get_result().user_properties.append(("seed_rows", ",".join(rows)))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin a record of seed outcomes, in the process that reports (not in xdist's workers).

    What another backend than irc comes to is no outcome of a row."""
    if BACKEND == "irc" and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(seeds.Recorder(ROOT / "out"), "irc-seed-recorder")
