"""reinplace: a slice of an argument is written in its memory; what may not be stays whole."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import graph, host  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.pipeline import STAGES  # noqa: E402
from tests.fuzz.harness import Outcome, clones, observe, same  # noqa: E402

CACHE = torch.arange(2.0 * 3 * 16 * 4).reshape(2, 3, 16, 4)
NEW = -torch.ones(2, 3, 1, 4)


def lowered(function, args, dynamic=False):
    """The module on the host level, and what the passes counted; every step keeps eager's
    outcome."""
    expected = observe(function, args)
    module = irc.trace(function, tuple(clones(args)), dynamic=dynamic)
    context = PassContext(target="llvm")
    first, *rest = (s.replace("$TARGET", "cpu") for s in STAGES.values())
    PassManager.parse(f"functional,{first}", verify="each").run(module, context)
    assert_same(expected, observe(lambda *a: irc.run(module, *a), args))
    found = updates_in_place(module)
    PassManager.parse(",".join(rest), verify="each").run(module, context)
    assert_same(expected, observe(irc.build(module), args))
    return module, found, {name: n for (_, name), n in context.statistics.items()}


def assert_same(expected: Outcome, got: Outcome) -> None:
    same(expected, got, sharing=False, strides=False)


def updates_in_place(module):
    """The arguments that are updated with a `graph.put`."""
    ops = module.lookup("main").block.ops
    return [
        op.argument
        for op in ops
        if isinstance(op, graph.UpdateInput) and isinstance(op.value.defining_op, graph.Put)
    ]


def copies(module):
    return [op for op in module.lookup("main").block.ops if isinstance(op, host.CopyOp)]


def append(cache, new):
    cache[:, :, 5:6] = new
    return cache.sum(-1)


def test_a_cache_is_written_in_its_slice_only():
    module, found, counted = lowered(append, (CACHE, NEW))
    assert found == [0] and not copies(module)
    assert counted["updates without a copy"] == 1
    assert counted["bytes outside of parts"] == 4 * (CACHE.numel() - NEW.numel())


def first_and_last(cache, new):
    cache[:, :, -1] = new[:, :, 0]
    return new * 2


def test_the_last_place_of_a_cache():
    assert lowered(first_and_last, (CACHE, NEW))[1] == [0]


def test_symbolic_sizes():
    module, found, _ = lowered(append, (CACHE, NEW), dynamic=True)
    assert found == [0] and not copies(module)


def old_content_is_returned(cache, new):
    old = cache + 1
    cache[:, :, 5:6] = new
    return old


def old_content_is_the_slice(cache, new):
    cache[:, :, 5:6] = cache[:, :, 3:4] + new
    return new


def two_slices(cache, new):
    cache[:, :, 5:6] = new
    cache[:, :, 7:8] = new
    return new


def everything(cache, new):
    cache[:, :, 0:16] = new
    return new


@pytest.mark.parametrize(
    "function", [old_content_is_returned, old_content_is_the_slice, two_slices, everything]
)
def test_what_must_be_written_whole(function):
    assert lowered(function, (CACHE, NEW))[1] == []


def test_arguments_that_share_a_storage_stay():
    base = CACHE.clone()
    args = (base, base[:, :, :1])
    assert lowered(append, args)[1] == []
