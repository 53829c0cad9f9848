"""A pipeline may begin on any level: each level's text goes on to the same host program."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402


def test_the_whole_pipeline_runs_from_every_level():
    x = torch.randn(5, 33)

    def function(x):
        return torch.softmax(x * 2, -1) + x.sum(0)

    module = irc.trace(function, (x,))
    for stage in list(pipeline.stages())[:-2]:
        PassManager.parse(stage).run(module)
        program = irc.parse(irc.print_op(module))
        PassManager.parse("lower-to-cpu", verify="each").run(program)
        (got,) = irc.build(program)(x)
        torch.testing.assert_close(got, function(x))
