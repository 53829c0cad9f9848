"""What facts must hold where a size is said to be another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.dialects.sym.ops import RefineOp
from irc.ir.hooks import verifies_facts

if TYPE_CHECKING:
    from irc.ir.verifier import Stated


@verifies_facts(RefineOp)
def verify_refinement(op: RefineOp, stated: Stated) -> None:
    """Each change of a size or stride is covered by a fact. Raises InvalidIR."""
    from irc.dialects.sym.known import known_of  # loads fractions, which few programs need

    wrong = known_of(stated).refuses_refinement(op.source.type, op.refined.type)
    if wrong is not None:
        op.fail(wrong, "a fact is an earlier sym.assert, or a binder's range")
