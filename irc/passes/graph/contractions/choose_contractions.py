"""The pass `choose-contractions`."""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.channels_last import CONVOLUTION
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.options.options import DEFAULT
from irc.options.table import own_backends
from irc.passes.graph.contractions.convolutions import convolution_form
from irc.passes.graph.contractions.products import FACTORS, Form, product_form
from irc.target import target_of

#: Who computes what irc doesn't.
LIBRARY = "aten"


@attrs.frozen
class Computer:
    """Who computes a product: a backend, and with irc entries of its schedule, or None."""

    backend: str
    schedule: A.Attribute | None = None


@attrs.frozen
class Policy:
    """What may compute products and convolutions: backends by the operator."""

    products: frozenset[str]
    convolutions: frozenset[str]

    def choose(self, call: graph.CallAten, form: Form | str) -> Computer:
        """Who computes a call. Raises UserError where nobody may."""
        told = call.attributes.get("backend")
        if isinstance(told, A.StringAttr):
            return Computer(told.value, call.attributes.get("schedule"))
        is_product = call.callee in FACTORS
        allowed = self.products if is_product else self.convolutions
        if LIBRARY in allowed:
            return Computer(LIBRARY)
        if "irc" in allowed and not isinstance(form, str):
            return Computer("irc")
        reason = form if isinstance(form, str) else "the options allow no kernel of irc's here"
        option = f"max_autotune_{'gemm' if is_product else 'conv'}_backends"
        raise UserError(
            f"NoValidChoicesError: nothing may compute {call.callee}",
            op=call,
            notes=(f"irc: {reason}", f"aten: it is not in the option {option}",
                   f"allow more: {option}=\"ATEN,IRC\""),
        )  # fmt: skip


# mm(a, b) -> cast(dot_general(a, b))
@pattern(graph.CallAten, name="graph.choose_contraction", counted="generated")
def choose(call: Any, rw: Any) -> Any:
    if call.callee in FACTORS:
        form = product_form(call)
    elif call.callee == CONVOLUTION:
        form = convolution_form(call)
    else:
        return rw.no_match("it is no product")
    choice = rw.state.choose(call, form)
    if choice.backend != "irc":
        return rw.no_match(f"{choice.backend} computes it")
    if isinstance(form, str):
        raise UserError(f"irc can't compute {call.callee}: {form}", op=call)
    rw.replace(call, [form(rw.builder, choice.schedule)])
    return True


@register_pass
class ChooseContractions(PatternPass):
    """Decides who computes each matrix product and convolution: a library, or a kernel of irc's.

    The latter becomes `graph.dot_general` and what is done to its sums: what `addmm` adds, a bias,
    the one rounding. Kernels may then compute that along with the sums, and the factors, too. A
    convolution multiplies windows of the image, which are views.

    products, convolutions: what may compute them, of "ATEN", "IRC", "TRITON" (irc, on a GPU) and
    "CPP" (irc, on a CPU). Where that is nothing, the error says what was tried. A call with an
    attribute `backend` ("aten", "irc") has chosen already; its `schedule` has entries of one.

    Before:
        %y = graph.call_aten %c, %a, %b {callee = "aten.addmm.default", ...} :
          (tensor<8xbf16>, tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xbf16>
    After:
        %s = graph.dot_general %a, %b {accumulator = f32, ...} : (...) -> tensor<4x8xf32>
        %w = graph.cast %c : (tensor<8xbf16>) -> tensor<8xf32>
        %r = graph.broadcast %w {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
        %t = graph.add %s, %r : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
        %y = graph.cast %t : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    """

    name = "choose-contractions"
    summary = "decide whether a library or irc computes each matrix product and convolution"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    products: str = DEFAULT.max_autotune_gemm_backends
    convolutions: str = DEFAULT.max_autotune_conv_backends

    patterns = (choose,)

    def prepare(self, op: Operation, context: PassContext) -> Policy:
        gpu = target_of(context).is_gpu
        return Policy(*(own_backends(words, gpu) for words in (self.products, self.convolutions)))


__all__ = ["ChooseContractions", "Computer", "Policy"]
