"""Functions of torch, lowered by the default pipeline and run natively and in Python."""

import pytest
import torch

import irc
from irc.pipeline import lower
from tests.runtime.host_modules import executables, fresh

PROGRAMS = {
    "chain": (lambda x: torch.relu(x) * 2 + x, [(37, 65)]),
    "sum": (lambda x, y: (x * y).sum(1), [(37, 65), (37, 65)]),
    "softmax": (lambda x: torch.softmax(x, -1), [(5, 33)]),
    "turned": (lambda x: (x.t() + 1, x.sum()), [(7, 9)]),
    "product": (lambda x, y: torch.relu(x @ y) + 1, [(4, 6), (6, 5)]),
    "norm": (lambda x: torch.nn.functional.layer_norm(x, (65,)), [(3, 65)]),
}


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_lowered_functions(name, dynamic):
    function, sizes = PROGRAMS[name]
    arguments = [torch.randn(s) for s in sizes]
    module = irc.trace(function, arguments, dynamic=dynamic)
    lower(module)
    expected = function(*arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    seen = {}
    for kind, exe in executables(module).items():
        seen[kind] = exe(*[fresh(a) for a in arguments])
        for mine, theirs in zip(seen[kind], expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=2e-5, atol=2e-5)
            assert mine.stride() == theirs.stride()
    for mine, theirs in zip(seen["python"], seen.get("native", seen["python"]), strict=True):
        assert torch.equal(mine, theirs)
