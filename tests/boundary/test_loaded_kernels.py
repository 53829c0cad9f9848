"""What the driver is told of a kernel that is loaded, by a library that notes it."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from irc.boundary.cuda import DriverLibrary  # noqa: E402


class Noting:
    """CUDA's driver, of which every function succeeds; the calls are kept."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name in ("cuModuleLoadData", "cuModuleGetFunction"):
                ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_void_p))[0] = 7
            self.calls.append((name, arguments))
            return 0

        return call


@pytest.mark.parametrize(("shared", "settings"), [(40_000, []), (90_112, [(8, 90_112), (9, 100)])])
def test_much_shared_memory_is_allowed_and_all_of_a_processor_s_asked_for(
    shared: int, settings: list[tuple[int, int]]
) -> None:
    """A processor has several program instances only where it has memory for them: attributes 8
    and 9 of a function are the bytes of one, and the percentage that isn't the first-level
    cache's."""
    library = Noting()
    assert DriverLibrary(library)._load(b"code", "k", shared) == 7
    told = [arguments[1:] for name, arguments in library.calls if name == "cuFuncSetAttribute"]
    assert told == settings
