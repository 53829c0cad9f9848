"""Problems that no store knows, while their candidates are built and timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from irc.tuning.builds import Builds
from irc.tuning.candidate import Candidate
from irc.tuning.measurers import ThreadMeasurer
from irc.tuning.problem import Problem
from irc.tuning.progress import Progress


@attrs.frozen
class Open:
    """A problem that no store knows, with the key that it is kept by. count: how often it is asked.
    """

    problem: Problem
    candidates: Sequence[Candidate]
    key: str
    device: str
    count: int = 1


@attrs.define(eq=False)
class Built:
    """What has built candidates of problems, by their keys, if anything has; the problems' shares
    of the time that they take together; and the builds that are not waited for yet, with the keys
    and numbers of what they build. As a context, after which nothing of it is left."""

    measurers: Mapping[str, ThreadMeasurer] = attrs.field(factory=dict)
    shares: Mapping[str, float] = attrs.field(factory=dict)
    builds: Builds[tuple[str, Candidate]] | None = None
    numbers: Sequence[tuple[str, int]] = ()
    _context: ExitStack = attrs.field(factory=ExitStack)
    _bar: Progress | None = None

    def __enter__(self) -> Built:
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._context.__exit__(*error)
        finally:
            for measurer in self.measurers.values():
                measurer.close()

    def of(self, each: Open) -> tuple[ThreadMeasurer, ...]:
        """What has built a problem's candidates, if anything has: all that was begun."""
        if each.key not in self.measurers:
            return ()
        if self._bar is not None:
            self._bar.close()  # the problem has one of its own
        self.wait([each])
        return (self.measurers[each.key],)

    def first_ready(self, several: Sequence[Open]) -> list[Open]:
        """The problems, those first of which nothing is being built."""
        pending = {key for key, _ in self.numbers} if self.builds is not None else set()
        return sorted(several, key=lambda each: each.key in pending)

    def begin(
        self, numbers: Sequence[tuple[str, int]], builds: Builds[Any], bar: Progress
    ) -> None:
        """These are built now, instead of what was before; the bar is seen meanwhile."""
        self._context.close()
        self._bar = self._context.enter_context(bar)
        self.builds, self.numbers = self._context.enter_context(builds), numbers

    def wait(self, several: Sequence[Open]) -> None:
        """Until what is built of problems is, or it is known why not."""
        if self.builds is None:
            return
        keys = {each.key: each.candidates for each in several}
        places = [place for place, (key, _) in enumerate(self.numbers) if key in keys]
        self.builds.wait(places)
        for place in places:
            key, number = self.numbers[place]
            if place in self.builds.failed:
                self.measurers[key].failed[keys[key][number]] = self.builds.failed[place]


def in_turns(
    several: Sequence[Open], numbers: Mapping[str, Sequence[int]]
) -> list[tuple[str, int]]:
    """Keys and numbers of candidates: of each problem the first, then the second, and so on."""
    turns = max((len(numbers[each.key]) for each in several), default=0)
    return [(each.key, numbers[each.key][turn]) for turn in range(turns)
            for each in several if turn < len(numbers[each.key])]  # fmt: skip


__all__ = ["Built", "Open", "in_turns"]
