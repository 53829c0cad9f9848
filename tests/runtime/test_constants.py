"""Contents of constants: keys, shapes, and what is computed from others."""

from __future__ import annotations

import hashlib
import struct

import pytest
import torch

from irc.ir import attributes as A
from irc.ir.contents import content_attribute, content_key, content_tensor, tensor_bytes
from irc.ir.diagnostics import InvalidIR, IRCError
from irc.ir.text.parser import parse
from irc.program.folded import FoldedConstants, evaluate, with_folded


def test_a_key_is_the_hash_of_the_elements_in_order() -> None:
    tensor = torch.arange(12.0).reshape(3, 4)
    expected = hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
    assert content_key(tensor) == content_key(tensor.reshape(12)) == expected
    assert content_key(tensor.t().contiguous().t()) == expected
    assert content_key(tensor.t()) != expected
    assert bytes(tensor_bytes(torch.empty(0, 3))) == b""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64, torch.complex64])
def test_contents_come_back(dtype: torch.dtype) -> None:
    tensor = (torch.arange(12).reshape(3, 4) % 3).to(dtype)
    made = content_tensor(bytes(tensor_bytes(tensor)), dtype, (3, 4))
    assert torch.equal(made, tensor)


def test_a_tensor_of_the_same_sizes_is_shared_with_its_strides() -> None:
    tensor = torch.rand(4, 3).t()
    made = content_tensor(tensor, torch.float32, (3, 4))
    assert made.data_ptr() == tensor.data_ptr() and made.stride() == tensor.stride()
    assert torch.equal(content_tensor(tensor, torch.float32, (12,)), tensor.reshape(12))


def test_a_content_of_another_size_is_refused() -> None:
    for content in (torch.zeros(5), b"12345", b""):
        with pytest.raises(InvalidIR, match="has 16 bytes, its content"):
            content_tensor(content, torch.float32, (2, 2))


def test_small_contents_stand_in_the_text() -> None:
    resources: dict[str, object] = {}
    assert isinstance(content_attribute(torch.zeros(64), resources), A.DenseAttr)
    assert not resources
    attribute = content_attribute(torch.zeros(65), resources)
    assert isinstance(attribute, A.ResourceAttr) and list(resources) == [attribute.key]


def test_a_recipe_without_what_it_needs_is_an_error() -> None:
    text = (
        'func.func @main() -> tensor<80xf32> { %w = graph.constant {value = #irc.resource<"k"> : '
        "tensor<80xf32>} : tensor<80xf32> func.return %w : tensor<80xf32> }"
    )
    with pytest.raises(IRCError):
        with_folded({}, (FoldedConstants(text, ("a",)),))
    made = with_folded({"k": torch.ones(80)}, (FoldedConstants(text, ("a",)),))
    assert torch.equal(made["a"], torch.ones(80))


def test_constants_are_computed_on_the_cpu_whatever_the_default_device_is() -> None:
    text = """
func.func @main() -> tensor<2xf32> attributes {level = "graph"} {
  %a = graph.constant {value = dense<[0.5, 1.5]> : tensor<2xf32>} : tensor<2xf32>
  %b = graph.full {value = 2.0 : f32} : tensor<2xf32>
  %c = graph.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %c : tensor<2xf32>
}
"""
    module = parse(text)
    *ops, last = module.lookup("main").block.ops
    with torch.device("meta"):
        (found,) = evaluate(ops, list(last.operands), module)
    assert torch.equal(found, torch.tensor([2.5, 3.5]))


def test_a_lone_element_with_any_stride_is_a_constant() -> None:
    """To torch it is contiguous, and can't be viewed as bytes."""
    lone = torch.tensor([3.0, 4.0]).as_strided((1, 1), (5, 2), 1)
    assert bytes(tensor_bytes(lone)) == struct.pack("<f", 4.0)
    assert content_tensor(lone, torch.int32, (1,)).view(torch.float32).item() == 4.0
