"""Texts that are wrong in a few places, on every level: each is a program, or one clear error.

A text is parsed, verified, printed, read again, and taken down to a host program; one in twenty is
built too. Whatever is refused on the way is refused by an error of irc's that is no internal one.
"""

from __future__ import annotations

import signal
import warnings

import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st  # noqa: E402

import irc  # noqa: E402
from irc.ir.diagnostics import InternalError, IRCError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.fuzz.harness import fuzz  # noqa: E402
from tests.fuzz.texts import TESTS, corpus, text_of, written  # noqa: E402

SECONDS = 5.0


class TooSlow(BaseException):
    """Not one that a handler of errors may take for its own."""


def bounded(text: str, build: bool, unregistered: bool = False) -> None:
    """`take` of a text, in at most SECONDS of this process's time."""

    def expired(number: int, frame: object) -> None:
        raise TooSlow(f"took more than {SECONDS} s")

    old = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        take(text, build, unregistered)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def take(text: str, build: bool, unregistered: bool) -> None:
    """Read a text and lower it, or see one clear error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # edits make old forms, too
            module = irc.parse(text, allow_unregistered=unregistered)
        irc.verify(module)
    except IRCError as error:
        check(error)
        return
    printed = irc.print_op(module)
    assert irc.print_op(irc.parse(printed, allow_unregistered=unregistered)) == printed
    try:
        PassManager.parse("lower-to-cpu", verify="end").run(module)
        if build:
            irc.build(module, options={"cache": False})
    except IRCError as error:
        check(error)


def check(error: IRCError) -> None:
    """An error of the text, in a few lines."""
    assert not isinstance(error, InternalError), error
    shown = str(error)
    assert "error: " in shown and len(shown) < 10_000


@pytest.mark.fault("K9")
@fuzz("texts", st.integers(0, 2**32 - 1), quick=40, total=4_000, batch=100)
def test_wrong_texts(seed: int, build: bool) -> None:
    bounded(text_of(seed), build, unregistered=seed % 4 == 0)


@fuzz("forms", st.integers(0, 2**32 - 1), quick=40, total=4_000, batch=100)
def test_wrong_forms_of_mlir(seed: int, build: bool) -> None:
    """The same of the programs in MLIR's own form of func, arith and math."""
    bounded(text_of(seed, written(TESTS / "text")), build, unregistered=seed % 4 == 0)


def test_texts_are_right_before_they_are_edited():
    refused = 0
    for text in corpus()[::6]:
        try:
            irc.verify(irc.parse(text))
        except IRCError:
            refused += 1
    assert refused <= 2
    assert len({text_of(seed) for seed in range(20)}) > 15
    assert text_of(7) == text_of(7)
