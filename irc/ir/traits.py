"""Traits: facts about every operation of a kind, listed in its definition."""

from __future__ import annotations


class Trait:
    """Base of the traits; they are used as classes, never as objects."""


class Pure(Trait):
    """No effect and always defined: may be removed when unused, duplicated, moved and merged."""


class Terminator(Trait):
    """Ends its block."""


class Commutative(Trait):
    """Its (two first) operands may be exchanged; the driver moves constants to the right."""


class SameOperandsAndResultType(Trait):
    """All operands and all results have one type; `make` infers the result's type."""


class ConstantLike(Trait):
    """Has no operand and an attribute `value` that is its result."""


class IsolatedFromAbove(Trait):
    """Its regions use no value defined outside."""


class NoTerminator(Trait):
    """Its blocks need no terminator (a module)."""


class Declarable(Trait):
    """May have a region without a block: it is declared, and defined elsewhere."""


class SymbolTable(Trait):
    """Holds operations that are called by name (`sym_name`)."""


class SymbolOp(Trait):
    """Has a name in the symbol table around it, in its attribute `sym_name`."""


class ReadsMemory(Trait):
    """Reads memory that other operations may write."""


class WritesMemory(Trait):
    """Writes memory, or does something else that must stay in order (an assertion, a call). An
    operation class that depends on attributes for it has `is_removable()` instead."""


class AllocatesMemory(Trait):
    """Makes fresh memory: removable when unused, never merged."""


class FunctionLike(Trait):
    """A function of the program, with a `function_type`, that calls and control flow name; a
    kernel, which is launched, is none."""


class StatesFacts(Trait):
    """States what holds of symbols for all that it dominates."""


class BindsSymbol(Trait):
    """Binds the symbol that its attribute `symbol` names, for all that it dominates."""


class Barrier(Trait):
    """All that stands after it stays after it: what it states of symbols holds from there on."""


class RunsInRange(Trait):
    """May run in a range of a size alone, which its attribute `when` says
    (`irc.dialects.sym.ranges`)."""


class ViewLike(Trait):
    """Each element of the result is one of the first operand, in another order or fewer or more
    often. With the flag `view` the result is in the operand's memory."""


class MayAlias(Trait):
    """Results may be in the memory of operands, which may be larger than the result's type says."""


class MemoryView(Trait):
    """The result is in the memory of its operand `source`, `offset` elements behind its begin."""


class Free(Trait):
    """Costs next to nothing beside the operations around it (a conversion, a choice, a read from
    cache)."""


class Slow(Trait):
    """Costs as much as a division."""


class Elementary(Trait):
    """Costs as much as an elementary function: an exponential, a sine."""


class Traps(Trait):
    """Ends the process where its divisor is zero, whether the result is used or not."""


class Jumps(Trait):
    """The result may change by more than its last bits where an operand's last bits do."""
