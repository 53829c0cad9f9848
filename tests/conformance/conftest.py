"""What all tests of the seed rows begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> Iterator[None]:
    """Neither compiled code, nor what Dynamo learned, nor random numbers go from one test of the
    seed rows to the next."""
    if not request.path.name.startswith("test_seed_"):
        yield
        return
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
