"""A dialect of one operation: what it is, what it means, and its way down to loops.

    irc run --load examples/own_dialect.py examples/own_dialect.mlir
    irc-opt --load examples/own_dialect.py examples/own_dialect.mlir --lower-to-cpu
"""

import irc
from irc.interp.core import interprets
from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, operand, result
from irc.ir.traits import Pure, SameOperandsAndResultType
from irc.ir.types import f32


class Scale(Op):
    """The operand times `by`.

    `%y = mine.scale %x {by = 2.0 : f64} : tensor<4xf32>`
    """

    name = "mine.scale"
    traits = frozenset({Pure, SameOperandsAndResultType})
    source = operand()
    by = attribute(A.FloatAttr)
    scaled = result()

    def verify_op(self):
        if self.by == 0.0:
            self.fail("scales by nothing")


@interprets(Scale)
def scale(frame, op):
    return frame[op.source] * op.by


@irc.converts(Scale, to="convert-to-loop")
def to_loop(c, op):
    if c.type.element is not f32:
        irc.decline("is written for f32 only")

    def scaled(body, at):
        return body.op("arith.mulf", body.read(op.source, at), body.constant(op.by, f32))

    c.emit_map(scaled)
