"""What native code takes for granted of torch's storages is found by probes, or it isn't used."""

from __future__ import annotations

import pytest
import torch

from irc.boundary import storages, torch_abi

pytestmark = [
    pytest.mark.skipif(not torch_abi.available(), reason="no native host functions"),
    pytest.mark.skipif(
        torch_abi.symbol_address("torch_from_blob") is None, reason="torch before 2.11"
    ),
]


@pytest.fixture
def known() -> storages.StorageFacts:
    found = storages.facts()
    assert found is not None, storages.unknown_reason()
    return found


def test_a_tensors_storage_is_where_the_facts_say(known):
    for tensor in (torch.ones(3), torch.ones(4, 5, dtype=torch.int8)[1:], torch.empty(0)):
        impl = torch_abi.read_word(torch_abi.tensor_handle(tensor))
        assert torch_abi.read_word(impl + known.storage) == tensor.untyped_storage()._cdata


def test_what_lies_in_storages_beside_does_not_matter(known):
    """Bytes of addresses are 1 and 0 by chance, too."""
    held: list[torch.Tensor] = []
    for k in range(1000):
        held.append(torch.empty(1 + 37 * k % 5000))
        if k % 3:
            held.pop(k % len(held))
        assert storages._find() == known


def test_facts_are_the_same_in_inference_mode_and_under_fake_tensors(known):
    from torch._subclasses import FakeTensorMode

    for mode in (torch.inference_mode(), FakeTensorMode()):
        storages._tested.cache_clear()
        with mode:
            assert storages.facts() == known


@pytest.mark.parametrize("name", ["torch_from_blob", "_ZN3c1015GetCPUAllocatorEv"])
def test_without_a_function_of_torch_there_are_none(monkeypatch, known, name):
    real = torch_abi.symbol_address
    monkeypatch.setattr(torch_abi, "symbol_address", lambda n: None if n == name else real(n))
    storages._tested.cache_clear()
    try:
        assert storages.facts() is None
        assert "no from_blob with a deleter" in str(storages.unknown_reason())
    finally:
        monkeypatch.undo()
        storages._tested.cache_clear()
    assert storages.facts() == known and storages.unknown_reason() is None


def test_a_torch_whose_storages_differ_has_none(monkeypatch, known):
    """Probes that agree on no place, as where the flag moved into another type."""
    real = storages._bytes
    monkeypatch.setattr(storages, "_bytes", lambda address: real(address).replace(b"\x01", b"\x02"))
    storages._tested.cache_clear()
    try:
        assert storages.facts() is None
        assert "the leave to resize a storage isn't at one place" in str(storages.unknown_reason())
    finally:
        storages._tested.cache_clear()
