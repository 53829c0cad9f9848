"""What files beside a definition say of its class: found by reading it, said once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irc.ir import hooks
from irc.ir.core import Block, Region
from irc.ir.definition import Op, region
from irc.ir.diagnostics import InvalidIR
from irc.ir.traits import IsolatedFromAbove, NoTerminator
from irc.ir.verifier import verify


class Box(Op, register=False):
    """An operation of no dialect."""

    name = "test.box"
    traits = frozenset({IsolatedFromAbove, NoTerminator})
    body = region()


class Lid(Box, register=False):
    """One that says nothing of its own."""

    name = "test.lid"


def test_a_hook_is_the_method_of_the_class_and_of_those_below_it():
    lid = Lid((), (), {}, (Region([Block()]),))
    verify(lid)  # what the verifier keeps of a class holds no longer when a hook comes

    @hooks.verifies(Box)
    def box(op: Box) -> None:
        op.fail("boxes are forbidden")

    @hooks.folds(Lid)
    def lid_folds(op: Lid, constants: object) -> object:
        return ()

    assert Lid.verify_op is box and Lid.fold is lid_folds and Box.fold is Op.fold
    with pytest.raises(InvalidIR, match="boxes are forbidden"):
        verify(lid)


def test_a_thing_is_said_once():
    class Chest(Op, register=False):
        name = "test.chest"

        def print_custom(self, printer: object) -> None:
            pass

    with pytest.raises(TypeError, match="Chest has print_custom already"):

        @hooks.prints(Chest)
        def chest(op: Chest, printer: object) -> None:
            pass


def test_a_parser_gets_the_class_that_was_named():
    class Crate(Op, register=False):
        name = "test.crate"

    @hooks.parses(Crate)
    def crate(cls: type[Op], parser: object) -> object:
        return cls, parser

    assert Crate.parse_custom("text") == (Crate, "text")


def test_the_first_text_loads_the_printer():
    program = (
        "import sys; from irc.ir.types import i64; from irc.ir.core import Operation\n"
        "loaded = lambda: any(m.startswith('irc') and 'printer' in m for m in sys.modules)\n"
        "print(loaded(), str(i64), str(Operation()).strip(), loaded())"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split("\n")[0] == 'False i64 "builtin.unregistered"() : () -> () True'
