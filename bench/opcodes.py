"""Executed opcodes of Python, by file and function: what processor time says, without its noise.

What counts is irc's own frames (also the code that attrs makes for its classes and the bodies of
modules that it imports) and whatever they call, but for torch's: torch traces the same whichever
irc is below. Two runs with one hash seed give the same number, but for a few hundred opcodes.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: (folder of the code, file, function)
Place = tuple[str, str, str]

FOREIGN = ("/torch/", "/sympy/", "/bench/", "/functorch/")


def _place(filename: str, function: str, folder: str) -> Place:
    if filename.startswith(folder):
        return "irc", filename[len(folder) + 1 :], function
    if filename.startswith("<attrs generated"):
        return "irc", filename.split()[-1].rstrip(">"), function
    return "", filename.rpartition("/")[2], function


class Counted:
    """Opcodes by place, as they are counted."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._codes: dict[Any, list[int]] = {}

    def places(self) -> Counter[Place]:
        """The opcodes of each function."""
        found: Counter[Place] = Counter()
        for code, (count,) in self._codes.items():
            found[_place(code.co_filename, code.co_qualname, self.folder)] += count
        return found

    def total(self) -> int:
        """All opcodes so far."""
        return sum(count for (count,) in self._codes.values())

    def is_own(self, filename: str) -> bool:
        """Whether frames of a file count whoever calls them."""
        return filename.startswith((self.folder, "<attrs generated"))

    def is_foreign(self, filename: str) -> bool:
        """Whether frames of a file count for nobody."""
        return any(part in filename for part in FOREIGN) and not self.is_own(filename)

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """What `sys.settrace` takes: opcodes of a frame that counts."""
        code = frame.f_code
        cell = self._codes.get(code)
        if cell is None:
            if self.is_foreign(code.co_filename):
                return None
            if not self.is_own(code.co_filename):
                back = frame.f_back
                if back is None or back.f_trace is None:
                    return None
            cell = self._codes[code] = [0]
        elif not self.is_own(code.co_filename):
            back = frame.f_back
            if back is None or back.f_trace is None:
                return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                cell[0] += 1
            return step

        return step


    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what is executed inside."""
        before = sys.gettrace()
        sys.settrace(self.enter)
        try:
            yield
        finally:
            sys.settrace(before)


class Clocked:
    """Seconds of processor time instead, torch's among them."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Clock what is executed inside."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - start
