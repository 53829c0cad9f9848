"""The pass `choose-contractions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.pixel_ways import pixel_speed, pixels_in_parts
from irc.analysis.processor_ways import fills_panels, multiplies_parts, processor_ways
from irc.analysis.product_ways import OWN, is_compute_bound, ways_of
from irc.analysis.products import MatrixProduct, factors
from irc.analysis.volumes import takes_onednn
from irc.dialects import graph
from irc.dialects.aten.facts import MATRIX_PRODUCTS
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass, apply_patterns
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import free_symbols
from irc.ir.types import f32
from irc.options.options import DEFAULT, moved_rows
from irc.options.table import own_backends
from irc.passes.graph.contractions.convolutions import convolution_form
from irc.passes.graph.contractions.gradients import (
    BACKWARD,
    gradient_form,
    join_gradients,
    split_gradients,
    transposed_form,
)
from irc.passes.graph.contractions.measured import (
    described,
    element_of,
    fastest,
    first_own,
    in_parts_for,
    is_frozen,
    is_packed,
    panels_for,
    parts_schedule,
    product_sizes,
)
from irc.passes.graph.contractions.precision import with_precision
from irc.passes.graph.contractions.products import Form, product_form
from irc.passes.graph.contractions.surroundings import is_product
from irc.target import Target, target_of
from irc.tuning import Candidate, NoValidChoicesError

#: Who computes what irc doesn't; and by name, where ATen would choose a slower way.
LIBRARY, ONEDNN = "aten", "onednn"


@attrs.frozen
class Policy:
    """What may compute products and convolutions: backends by the operator. context: what the
    compile shares. apart: from how many elements on rows that only the program sees are moved
    apart (`pad-strides`). measured: the calls of which it was measured who is to compute them."""

    products: frozenset[str]
    convolutions: frozenset[str]
    context: PassContext
    apart: int | None = None
    measured: Mapping[graph.CallAten, Candidate] = attrs.field(factory=dict)

    def choose(self, call: graph.CallAten, form: Form | str) -> tuple[str, A.Attribute | None]:
        """Who computes a call, with entries of a schedule. Raises NoValidChoicesError where nobody
        may."""
        told = call.attributes.get("backend")
        if isinstance(told, A.StringAttr):
            return told.value, call.attributes.get("schedule")
        winner = self.measured.get(call)
        if winner is not None:
            return winner.backend, as_measured(winner)
        allowed = self.allowed(call)
        left = call.callee == BACKWARD and isinstance(form, str)
        if LIBRARY in allowed or left or self.prefers:
            return self.modelled(call, form)
        if "irc" in allowed and not isinstance(form, str):
            return OWN, self.own(call).attribute()
        option = f"max_autotune_{'gemm' if call.callee in MATRIX_PRODUCTS else 'conv'}_backends"
        reasons = {
            "irc": form if isinstance(form, str) else "the options allow no kernel of irc's here",
            "aten": f"it is not in the option {option}",
        }
        error = NoValidChoicesError(described(call), reasons, option)
        error.op, error.location = call, call.location
        raise error

    @property
    def prefers(self) -> bool:
        """Whether backends are only who may compute besides the library: it is a compile that does
        not measure."""
        return self.context.options is not None and not measures(self.context)

    def allowed(self, call: graph.CallAten) -> frozenset[str]:
        """Who may compute a call."""
        return self.products if call.callee in MATRIX_PRODUCTS else self.convolutions

    def modelled(
        self, call: graph.CallAten, form: Form | str
    ) -> tuple[str, A.Attribute | None]:
        """Who computes a call by the cost model, with entries of a schedule: a library, unless a
        kernel of irc's surely takes less time."""
        context, target = self.context, target_of(self.context)
        if LIBRARY in self.allowed(call) and takes_onednn(call, target):
            return ONEDNN, None
        if "irc" not in self.allowed(call) or isinstance(form, str):
            return LIBRARY, None
        if call.callee not in MATRIX_PRODUCTS:
            return self.modelled_image(call)
        packed = is_packed(call, context)
        if target.is_gpu:  # what pad-matmul was to pad is padded
            ways = ways_of(
                call, target, own=self.splits or element_of(call) is not f32, pads=False,
                apart=self.apart, measure=self.padding_gain,
            )  # fmt: skip
        else:
            ways = processor_ways(call, target, packed, self.splits)
        if ways is None or ways.best != OWN:
            return LIBRARY, None
        context.remark(f"{described(call)} is irc's own: {ways.told}", call)
        return OWN, self.own(call).attribute()

    def modelled_image(self, call: graph.CallAten) -> tuple[str, A.Attribute | None]:
        """The same of a convolution: irc's where it is one of single pixels, on a CPU."""
        context, target = self.context, target_of(self.context)
        if call.callee != CONVOLUTION or target.is_gpu:
            return LIBRARY, None
        if self.splits and pixels_in_parts(call, target, frozen=False):
            context.remark(f"{described(call)} is irc's own, in parts of bf16", call)
            return OWN, parts_schedule()
        speed = 0 if is_frozen(call, context) else pixel_speed(call, target)
        if speed < 100 * target.features.sure_products:
            return LIBRARY, None
        context.remark(f"{described(call)} is irc's own: {speed} % of the library's speed", call)
        return OWN, None

    def own(self, call: graph.CallAten) -> Candidate:
        """irc with the cost model's schedule; of f32 in parts, where that is faster; a frozen
        weight is in panels if it fills them."""
        target, packed = target_of(self.context), is_packed(call, self.context)
        split = in_parts_for(call, self.context, packed)
        if split is not None:
            sizes = product_sizes(call)
            by_rows = free_symbols(sizes[-3])  # then it says itself of which parts are multiplied
            if by_rows or multiplies_parts(sizes, element_of(call), target, packed):
                return split
        if call.callee in MATRIX_PRODUCTS and packed:
            weight = tensor_type(call.operands[factors(call)[1]])
            if fills_panels(weight.shape[-1], target):
                return panels_for(target, element_of(call))
        return first_own(call, target, self.apart)

    @property
    def splits(self) -> bool:
        """Whether factors may be cut into parts."""
        return self.context.options is None or self.context.options.split_products

    def padding_gain(self, product: MatrixProduct) -> float | None:
        """How many times faster this machine multiplies padded factors; None where that is not
        measured."""
        measure, target = self.context.measure, target_of(self.context)
        return measure(product) if measure and is_compute_bound(product, target) else None

    def is_open(self, call: graph.CallAten) -> bool:
        """Whether it is to be measured who computes a call: a library and irc may, and it runs in a
        compile; not a convolution whose weight a library packs."""
        if "backend" in call.attributes or not self.allowed(call).issuperset({LIBRARY, "irc"}):
            return False
        if not measures(self.context) or isinstance(form_of(call, target_of(self.context)), str):
            return False
        return call.callee in MATRIX_PRODUCTS or not is_frozen(call, self.context)


def as_measured(winner: Candidate) -> A.Attribute | None:
    """The entries of what took the least time, with the word that nobody asked for them."""
    schedule = winner.attribute()
    if schedule is None or schedule.is_gpu:
        return schedule
    return ScheduleAttr("cpu", A.DictAttr({**schedule.entries.as_dict(), "measured": A.TRUE}))


def measures(context: PassContext) -> bool:
    """Whether the compile measures who computes what (max_autotune); else the cost model says who,
    and a library may always."""
    options = context.options
    return options is not None and (options.max_autotune or options.max_autotune_gemm)


def form_of(call: graph.CallAten, target: Target) -> Form | str:
    """What makes the result of a product, a convolution, or one of its gradients on a target, or
    why nothing does."""
    if call.callee in MATRIX_PRODUCTS:
        return product_form(call)
    if call.callee == BACKWARD:
        return gradient_form(call, target.is_gpu)
    if is_transposed(call):
        return transposed_form(call, target.is_gpu)
    return convolution_form(call, target.is_gpu)


def is_transposed(call: graph.CallAten) -> bool:
    """Whether a call is a transposed convolution."""
    return call.arguments.as_dict().get("transposed") is A.TRUE


# mm(a, b) -> cast(dot_general(a, b))
@pattern(graph.CallAten, name="graph.choose_contraction", counted="generated")
def choose(call: Any, rw: Any) -> Any:
    if not is_product(call):
        return rw.no_match("it is no product")
    form = form_of(call, target_of(rw.state.context))
    backend, schedule = rw.state.choose(call, form)
    if backend != "irc":
        if call in rw.state.measured or backend == ONEDNN:  # and isn't asked again
            call.attributes["backend"] = A.StringAttr(backend)
        return rw.no_match(f"{backend} computes it")
    if isinstance(form, str):
        raise UserError(f"irc can't compute {call.callee}: {form}", op=call)
    target, linear = target_of(rw.state.context), call.callee in MATRIX_PRODUCTS
    entries = with_precision(schedule, call, linear, target, rw.state.splits)
    value = form(rw.builder, entries)
    # Of the gradients of a convolution there is one.
    rw.replace(call, [value if v.type is value.type else v for v in call.results])
    return True


@register_pass
class ChooseContractions(PatternPass):
    """Decides who computes each matrix product and convolution: a library, or a kernel of irc's.

    The latter becomes `graph.dot_general` and what is done to its sums: what `addmm` adds, a bias,
    the one rounding. Kernels may then compute that along with the sums, and the factors, too. A
    convolution multiplies windows of the image, which are views. Where irc may compute
    gradients of convolutions, calls that give several are split before, and joined again if the
    library computes both.

    products, convolutions: what may compute them, of "ATEN", "IRC", "TRITON" (irc, on a GPU) and
    "CPP" (irc, on a CPU). Where a library and irc may, a compile with `max_autotune` measures which
    is faster, as docs/tuning.md tells; else the cost model says where a kernel of irc's surely is:
    on a CPU by the processor's figures for few, some and many rows (`irc.analysis.processor_ways`),
    of a symbolic number for each of these;
    on a GPU, where rows of a factor or of the result don't begin at multiples of 16 bytes
    (`irc.analysis.product_ways`). Where nothing may, the error says what was tried. A call with an
    attribute `backend` ("aten", "irc") has chosen already; its `schedule` has entries of one.
    A convolution of volumes is oneDNN's by name (`backend = "onednn"`), as ATen may unfold windows
    that oneDNN multiplies in less time (`irc.analysis.volumes`).
    schedules: how many of irc's are measured, that of the cost model first. Where torch's settings
    allow a GPU to multiply f32 with factors of 10 bits, the schedule says so (`precision`).

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
    schedules: int = 8

    patterns = (choose,)

    def run(self, op: Operation, context: PassContext) -> None:
        gpu = target_of(context).is_gpu
        allowed = own_backends(self.convolutions, gpu)
        splits = "irc" in allowed and (measures(context) or LIBRARY not in allowed)
        if splits:
            apply_patterns(op, (split_gradients,), context)
        super().run(op, context)
        if splits:
            apply_patterns(op, (join_gradients,), context)

    def prepare(self, op: Operation, context: PassContext) -> Policy:
        gpu = target_of(context).is_gpu
        products, convolutions = (own_backends(w, gpu) for w in (self.products, self.convolutions))
        apart = moved_rows(context.options, gpu)
        policy = Policy(products, convolutions, context, apart)
        calls = [each for each in op.walk() if isinstance(each, graph.CallAten)]
        measured = [each for each in calls if is_product(each) and policy.is_open(each)]
        return attrs.evolve(policy, measured=fastest(measured, self.schedules, context, apart))


__all__ = ["ChooseContractions", "Policy"]
