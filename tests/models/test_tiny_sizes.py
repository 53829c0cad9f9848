"""The models of the zoo at tiny sizes with `dynamic=True`, where sizes become 1 on the way."""

from __future__ import annotations

import pytest
import torch

from tests.accuracy import inaccurate
from tests.backends import BACKEND, needs_backend
from tests.models.zoo import ZOO, Entry, image_inputs

pytestmark = [needs_backend, pytest.mark.slow, pytest.mark.fault("C11")]


def tiny_sizes(entry: Entry) -> tuple[int, ...]:
    """Sizes of tokens, of images before a stride of 32, of samples, or of the batch."""
    if entry.make_inputs is image_inputs:
        return (1, 32, 33)
    return (4, 8, 11) if entry.kind == "audio" else (1, 2, 3)


CASES = [(name, size) for name, entry in ZOO.items() for size in tiny_sizes(entry)]


@pytest.mark.parametrize(("name", "size"), CASES)
def test_tiny_sizes(name: str, size: int) -> None:
    entry = ZOO[name]
    torch._dynamo.reset()
    with torch.no_grad():
        try:
            inputs = entry.make_inputs(size)
            eager = entry.make_model()(*inputs)
        except (RuntimeError, ValueError, IndexError) as error:
            pytest.skip(f"eager refuses this size: {error}")
        doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
        exact = entry.make_model().double()(*doubled)
        dynamic = None if entry.batch_only else True
        if entry.batch_only and size > 1:
            torch._dynamo.mark_dynamic(inputs[0], 0)
        mine = torch.compile(entry.make_model(), backend=BACKEND, dynamic=dynamic)(*inputs)
    wrong = inaccurate(mine, eager, exact)
    assert not wrong, "\n".join(wrong)
