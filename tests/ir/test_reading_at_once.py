"""Files that are read when they are first needed, by several threads at once."""

import sys
import threading

import pytest

from irc.ir.passes import manager as passes
from irc.ir.rewrite import conversion

SLOW_PASS = """
import time
from irc.ir.passes import Pass, register_pass

@register_pass
class SlowPass(Pass):
    name = "slow-pass"
    summary = "do nothing"

    def run(self, op, context):
        pass

time.sleep(0.2)
read = True
"""


@pytest.fixture
def slow_package(tmp_path, monkeypatch):
    """A package that takes a while to be read, and counts how often it was."""
    folder = tmp_path / "slow_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "first.py").write_text("import time\ntime.sleep(0.2)\nread = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "slow_package"
    for name in [name for name in sys.modules if name.startswith("slow_package")]:
        del sys.modules[name]


def together(function, count=3):
    """What threads that begin at once give."""
    barrier, results = threading.Barrier(count), []

    def run():
        barrier.wait()
        results.append(function())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_boundary_s_converters_are_all_there_for_each(slow_package, monkeypatch):
    monkeypatch.setattr(conversion, "boundaries", set())
    boundary = conversion.Conversion(
        "test-slow", object, conversion.ConversionTarget(), "", package=slow_package
    )

    def read():
        _ = boundary.table
        return getattr(sys.modules.get("slow_package.first"), "read", False)

    assert together(read) == [True] * 3 and boundary.is_read


def test_a_pass_is_found_once_its_file_is_read(slow_package, monkeypatch, tmp_path):
    monkeypatch.setattr(passes, "_passes", dict(passes._passes))
    monkeypatch.setattr(passes, "pass_modules", lambda: ("slow_package.slow_pass",))
    (tmp_path / "slow_package/slow_pass.py").write_text(SLOW_PASS)

    def look():
        passes.lookup_pass("slow-pass")
        return getattr(sys.modules["slow_package.slow_pass"], "read", False)

    assert together(look) == [True] * 3
