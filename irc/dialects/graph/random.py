"""Random numbers of a generator's state, each by its place, so that kernels can make them."""

from __future__ import annotations

from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.pointwise import TENSOR
from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, operand, result
from irc.ir.symbols import is_index_expression
from irc.ir.traits import Pure
from irc.ir.types import i64

#: What `irc::philox_state` gives: the generator's seed, and how many numbers are drawn already.
SEED, OFFSET, STATE_WORDS = 0, 1, 2


class Philox(Op):
    """32 random bits in each element, those that a GPU's kernel in eager mode draws.

    `state` holds a seed and an offset. Such a kernel has `threads` threads, each with a sequence of
    the generator's (`math.philox`), and goes over memory in turns of `vector` neighbours a thread,
    which draws `numbers` in a turn and uses the first ones. So the element at place m (the sum of
    its indices times `strides`) is number offset + base + m // (vector * threads) * numbers +
    m % vector of sequence m // vector % threads.

    `%u = graph.philox %s {base = 0 : i64, numbers = 4 : i64, strides = #sym.dims<[8, 1]>, threads = #sym<256>, vector = 4 : i64} : (tensor<2xi64>) -> tensor<4x8xi64>`
    """  # noqa: E501

    name = "graph.philox"
    traits = frozenset({Pure})
    state = operand(TENSOR)
    base = attribute(A.IntegerAttr)
    numbers = attribute(A.IntegerAttr)
    strides = attribute(A.DimsAttr)
    threads = attribute(A.DimAttr)
    vector = attribute(A.IntegerAttr)
    bits = result(TENSOR)

    def verify_op(self) -> None:
        state, bits = tensor_type(self.operands[0]), tensor_type(self.results[0])
        if state.shape != (STATE_WORDS,) or state.element is not i64:
            self.fail(f"the state is {state}, not a seed and an offset (tensor<2xi64>)")
        if bits.element is not i64 or bits.device != state.device:
            self.fail(f"the result is {bits}, not i64 elements where the state is")
        if len(self.strides) != bits.rank:
            self.fail(f"there are {len(self.strides)} strides for {bits.rank} dimensions")
        if self.base < 0 or self.vector < 1:
            self.fail(f"base {self.base} is at least 0 and vector {self.vector} at least 1")
        if self.numbers < self.vector:
            self.fail(f"{self.numbers} numbers a turn are too few for {self.vector} elements")
        if isinstance(self.threads, int) and self.threads < 1:
            self.fail(f"there are {self.threads} threads")
        for dim in (self.threads, *self.strides):
            if not is_index_expression(dim):
                self.fail(f"{dim} is no size")
