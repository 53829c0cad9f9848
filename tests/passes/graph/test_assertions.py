"""Operators that only check become assertions of the program, inside its kernels where they fit."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.passes import PassManager
from tests.backends import skip_unless_checked

F = torch.nn.functional


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [(torch.tensor([0, 5, 1, 2]), "smaller than num_classes"),
     (torch.tensor([0, -1, 1, 2]), "non-negative")],
)  # fmt: skip
def test_classes_out_of_range_raise(wrong, message, dynamic):
    skip_unless_checked(lambda x: F.one_hot(x, 5), wrong)
    right = torch.tensor([4, 0, 2])
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: F.one_hot(x, 5) * 2, backend="irc", dynamic=dynamic)
    assert torch.equal(compiled(right), F.one_hot(right, 5) * 2)
    with pytest.raises(RuntimeError, match=message):
        compiled(wrong)
    assert torch.equal(compiled(right), F.one_hot(right, 5) * 2)


def checked(x):
    torch._assert_async(x.amax(0, keepdim=True), "all zero")
    return x + 1


def test_a_float_that_is_not_zero_holds():
    x = torch.tensor([0.0, 0.5])
    module = irc.trace(checked, (x,))
    PassManager.parse("lower-to-cpu").run(module)
    assert not [op for op in module.walk() if op.name == "host.call_aten"]
    assert torch.equal(irc.run(module, x)[0], x + 1)
    executable = irc.compile(checked, (x,))
    assert torch.equal(executable(x), x + 1)
    for run in (executable, lambda x: irc.run(module, x)):
        with pytest.raises(RuntimeError, match="all zero"):
            run(torch.zeros(2))


def test_a_gpu_checks_while_the_program_goes_on():
    text = """
func.func @main(%x: tensor<[1] x f32, strides [1], "cuda:0">) {
  aten._assert_async.msg %x {arguments = {assert_msg = "no", self = #aten.operand<0>}} : (tensor<[1] x f32, strides [1], "cuda:0">) -> ()
  func.return
}
"""  # noqa: E501
    module = irc.parse(text)
    PassManager.parse("convert-aten-to-graph").run(module)
    callees = [op.callee for op in module.walk() if op.name == "graph.call_aten"]
    assert callees == ["aten._assert_async.msg"]
