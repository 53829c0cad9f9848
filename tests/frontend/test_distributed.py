"""Models on several processes: tensors that they share, and what they tell each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from irc.dialects.aten.schema import find_schema
from tests.backends import needs_backend
from tests.two_processes import said_by_two

pytestmark = [
    needs_backend,
    pytest.mark.fault("C2"),
    pytest.mark.skipif(
        not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
        reason="torch has no gloo",
    ),
]


def run_both(folder: Path, *names: str) -> None:
    """Run programs in two processes, which meet through a file; both must find nothing wrong."""
    said = said_by_two(
        "tests.frontend.distributed_programs", str(folder / "store"), *names,
        GLOO_SOCKET_IFNAME="lo",
    )  # fmt: skip
    for out, err in said:
        assert out.strip(), err[-3000:]
        problems = json.loads(out.strip().splitlines()[-1])
        assert not any(problems.values()), "\n".join(problems.values())
        assert sorted(problems) == sorted(names)


def test_tensors_that_processes_share(tmp_path):
    run_both(tmp_path, "tensor_parallel", "distributed_tensors", "collectives")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["updates", "sharded_parameters", "replicas", "frozen_parameters"]
)
def test_more_ways_to_share(tmp_path, name):
    run_both(tmp_path, name)


def test_collectives_stay_in_order():
    assert find_schema("_c10d_functional.all_reduce.default").has_effect
    assert find_schema("_c10d_functional.wait_tensor.default").has_effect
    assert not find_schema("aten.native_group_norm.default").has_effect
