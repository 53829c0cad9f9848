"""Invalid calls raise what they raise in eager mode.

Through `torch.compile`, Dynamo traces a call with fake tensors before any backend sees it, and what
fails there is a `TorchRuntimeError` with every backend (a RuntimeError with eager's message).
`irc.compile` traces such calls itself and raises what torch's shape functions raise: eager's class
but for the calls of `TRACED`. What is found when the program runs has eager's class.
"""

from __future__ import annotations

import collections
import logging
from collections.abc import Iterator

import pytest
import torch

import irc
from tests.conformance.invalid_calls import INVALID

pytestmark = [pytest.mark.fault("C8"), pytest.mark.filterwarnings("ignore")]

# What torch's shape functions refuse with another class than its kernels.
TRACED = frozenset(
    {
        "sizes: view of a transposed",
        "sizes: index_copy",
        "layers: max_pool2d rank",
        "layers: grid_sample",
        "layers: embedding rank",
        "dtypes: shift of floats",
        "dtypes: elu of integers",
        "dtypes: leaky_relu of integers",
        "dtypes: layer_norm of integers",
        "dtypes: conv of two dtypes",
        "dtypes: index by floats",
        "dtypes: logical shift of halves",
        "dtypes: polar of integers",
        "empty: amax of a dim",
        "empty: argmax",
        "empty: argmin of a dim",
        "empty: kthvalue",
        "empty: stack of nothing",
        "empty: interpolate",
        "empty: bilinear",
        "numbers: fractional alpha",
        "numbers: rounding_mode",
    }
)
# Functionalization turns cumsum_ into a cumsum of integers and a cast, with every backend.
MISSED = frozenset({"dtypes: cumsum out of bools"})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def raised(function, arguments) -> Exception | None:
    copies = tuple(a.clone() for a in arguments)
    try:
        function(*copies)
    except Exception as error:
        return error
    return None


def through(backend: str, name: str) -> Exception | None:
    """What a call raises through torch.compile."""
    function, arguments = INVALID[name]
    torch._dynamo.reset()
    return raised(torch.compile(function, backend=backend), arguments)


def ahead_of_time(name: str) -> Exception | None:
    """What compiling the function and calling it raises."""
    function, arguments = INVALID[name]
    return raised(lambda *a: irc.compile(function, a)(*a), arguments)


def is_dynamos(error: Exception | None) -> bool:
    return type(error).__module__.startswith("torch._dynamo")


@pytest.mark.parametrize("name", INVALID)
def test_the_class_is_eagers(name):
    eager = raised(*INVALID[name])
    assert eager is not None, "eager mode does it"
    mine = through("irc", name)
    if name in MISSED:
        assert mine is None and through("aot_eager", name) is None
        return
    if not is_dynamos(mine):
        assert type(mine) is type(eager) or name in TRACED, f"{mine!r}, eager {eager!r}"
        return
    # No backend is asked: the class is the same with one that does nothing.
    assert type(through("eager", name)) is type(mine), f"{mine!r}, eager {eager!r}"
    assert isinstance(mine, RuntimeError)
    if name not in TRACED:
        assert type(ahead_of_time(name)) is type(eager)


def test_there_are_many_of_each_kind():
    groups = collections.Counter(name.partition(":")[0] for name in INVALID)
    assert len(INVALID) - len(TRACED) - len(MISSED) >= 300
    assert min(groups.values()) >= 25
    assert set(INVALID) >= TRACED | MISSED
