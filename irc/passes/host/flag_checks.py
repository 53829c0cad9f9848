"""The pass `flag-checks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from irc.dialects import host, kernel, sym
from irc.dialects.host.memory import is_tensor
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.types import TensorType, i1
from irc.passes.common.dce import sweep


@attrs.frozen
class AssertedTruths:
    """Truth values that a launch writes and one assertion looks at."""

    memory: host.AllocOp
    launch: host.LaunchOp
    position: int
    item: host.ItemOp
    assertion: sym.AssertValueOp


@register_pass
class FlagChecks(Pass):
    """Has the kernels of a GPU that compute truth values for assertions tell the host themselves.

    Instead of an array of truth values, at which another launch looks, the kernel gets a flag: one
    byte of the host's memory, which it writes where a value is false, and only there. Nothing is
    launched or copied for such a check, and the host looks at the flag late (`host.flag`), so this
    is for programs whose checks may be told late. A truth value that something else reads, and one
    that a kernel stores otherwise than by plain stores, stays an array.

    Before:
        %ok = host.alloc : tensor<[8] x i1, strides [1], "cuda:0">
        host.launch %k, %ok {callee = @k0, ...}      // kernel.store %c, %p[%i] : i1
        %c = host.item %ok {every} : (tensor<[8] x i1, strides [1], "cuda:0">) -> i1
        sym.assert_value %c {error = "IndexError", message = "index out of bounds"} : (i1)
    After:
        %ok = host.flag {error = "IndexError", message = "index out of bounds"}
            : tensor<[] x i1, strides [], "cuda:0">
        host.launch %k, %ok {callee = @k0, ...}      // kernel.check %c, %p
    """

    name = "flag-checks"
    summary = "let kernels tell failed checks by a flag in the host's memory"

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        kernels = {k.sym_name: k for k in block.ops if isinstance(k, kernel.KernelFuncOp)}
        launches: dict[str, list[host.LaunchOp]] = {}
        checks: dict[tuple[str, int], list[AssertedTruths]] = {}
        for function in [f for f in block.ops if isinstance(f, host.HostFuncOp)]:
            for each in function.block.ops:
                if isinstance(each, host.LaunchOp):
                    launches.setdefault(each.callee, []).append(each)
                elif isinstance(each, host.ItemOp):
                    check = check_of(each)
                    if isinstance(check, AssertedTruths):
                        key = check.launch.callee, check.position
                        checks.setdefault(key, []).append(check)
                    elif check is not None:
                        context.remark(f"is an array of truth values: {check}", each)
        changed = set()
        for (name, position), alike in checks.items():
            reason = self._flag(kernels, launches[name], position, alike, context)
            if reason is None:
                changed.add(name)
                context.count("flags", len(alike))
            else:
                for check in alike:
                    context.remark(f"is an array of truth values: {reason}", check.item)
        for name in changed:
            sweep(kernels[name], None)

    def _flag(
        self, kernels: Mapping[str, kernel.KernelFuncOp], launches: Sequence[host.LaunchOp],
        position: int, checks: Sequence[AssertedTruths], context: PassContext,
    ) -> str | None:  # fmt: skip
        """Make an output of a kernel a flag, for all its launches; why not, if it stays."""
        callee = kernels.get(checks[0].launch.callee)
        if callee is None:
            return "its kernel is none of the module's"
        if len(checks) < len(launches):
            return "another launch of its kernel has truth values that are no check"
        stores = stores_of(callee, position)
        if isinstance(stores, str):
            return stores
        if not context.spend("flag-checks", checks[0].item):
            return NO_FUEL
        for store in stores:
            check_instead(store)
        forget_pairs(callee, position)
        for check in checks:
            put_flag(check)
        return None


def check_of(item: host.ItemOp) -> AssertedTruths | str | None:
    """The check that a truth value is read for; why it can't be a flag, None if it is no check."""
    type_ = item.source.type
    assertions = list(item.scalar.users)
    if type_.element is not i1 or not assertions:
        return None
    if len(assertions) > 1 or not isinstance(assertions[0], sym.AssertValueOp):
        return "it is used for more than one assertion"
    memory = item.source.defining_op
    if not isinstance(memory, host.AllocOp) or memory.escapes or memory.offset is not None:
        return "no launch of irc's gives it"
    users = [user for user in memory.memory.users if user is not item]
    if len(users) != 1 or not isinstance(users[0], host.LaunchOp):
        return "something else reads or writes it"
    (launch,) = users
    places = [k for k, value in enumerate(launch.operands) if value is memory.memory]
    if len(places) != 1 or places[0] < len(launch.inputs):
        return "its kernel reads it"
    return AssertedTruths(memory, launch, places[0], item, assertions[0])


def stores_of(
    callee: kernel.KernelFuncOp, position: int
) -> list[kernel.StoreOp | kernel.ScatterOp] | str:
    """Where a gpu kernel writes one of its outputs; why these can't be checks."""
    if not callee.is_gpu or callee.copying:
        return "its kernel is a cpu's"
    if callee.initialized is not None and position in list(callee.initialized)[1::2]:
        return "its kernel combines into it"
    stores: list[kernel.StoreOp | kernel.ScatterOp] = []
    for user in callee.block.arguments[position].users:
        if isinstance(user, kernel.ScatterOp) and user.combiner != "set":
            return "its kernel combines into it"
        if not isinstance(user, kernel.StoreOp | kernel.ScatterOp):
            return "its kernel does more with it than store"
        stores.append(user)
    return stores if stores else "its kernel stores nothing there"


def check_instead(store: kernel.StoreOp | kernel.ScatterOp) -> None:
    """Put a check in the place of a store of truth values."""
    builder = Builder.before(store)
    builder.location = store.location
    operands = [store.stored, store.pointer, *([] if store.mask is None else [store.mask])]
    builder.create(kernel.CheckOp, *operands)
    store.erase()


def forget_pairs(callee: kernel.KernelFuncOp, position: int) -> None:
    """A flag shares its memory with no input."""
    flat = list(callee.inplace or ())
    pairs = [p for p in zip(flat[::2], flat[1::2], strict=True) if p[1] != position]
    if 2 * len(pairs) == len(flat):
        return
    if pairs:
        callee.attributes["inplace"] = A.DenseIntsAttr([k for pair in pairs for k in pair])
    else:
        del callee.attributes["inplace"]


def put_flag(check: AssertedTruths) -> None:
    """Give a launch a flag in the place of an array of truth values, whose reading goes."""
    array = check.memory.memory
    assert is_tensor(array) and isinstance(array.type, TensorType)
    builder = Builder.before(check.memory)
    builder.location = check.assertion.location
    flag: Value = builder.value(
        host.FlagOp, error=check.assertion.error, message=check.assertion.message,
        result_types=TensorType((), i1, (), array.type.device),
    )  # fmt: skip
    flag.name_hint = array.name_hint
    check.launch.set_operand(check.position, flag)
    for op in (check.assertion, check.item, check.memory):
        op.erase()


__all__ = ["AssertedTruths", "FlagChecks", "check_of"]
