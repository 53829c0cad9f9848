"""What is known of ATen's operators besides their schemas."""

from __future__ import annotations

import pytest

from irc.dialects.aten.facts import _TABLE, IN_PLACE_VIEWS, STORAGE_CHANGES, Fact
from irc.dialects.aten.schema import find_schema, parse_schema


@pytest.mark.parametrize(
    ("operator", "facts"),
    [
        ("aten.view.default", Fact.SAME_BEGIN | Fact.RESHAPES),
        ("aten.view.dtype", Fact.SAME_BEGIN | Fact.RESHAPES | Fact.OTHER_ELEMENTS),
        ("aten.unfold.default", Fact.SAME_BEGIN | Fact.OVERLAPS),
        ("aten.contiguous.default", Fact.MAYBE_VIEW | Fact.SELF_IF_ALIKE),
        ("aten.mm.default", Fact.NONE),
    ],
)
def test_facts(operator, facts):
    schema = find_schema(operator)
    assert schema is not None and schema.facts == facts


def test_only_atens_own_operators_have_facts():
    assert parse_schema("other::view(Tensor(a) self, int n) -> Tensor(a)").facts == Fact.NONE
    assert parse_schema("other::resize_(Tensor(a!) self) -> Tensor(a!)").storage_change is None
    assert parse_schema("other::t_(Tensor(a!) self) -> Tensor(a!)").in_place_view is None


def test_every_operator_of_the_table_is_torchs():
    import torch

    names = [n for row in _TABLE.values() for n in row.split()]
    for name in (*names, *IN_PLACE_VIEWS, *STORAGE_CHANGES):
        packet, _, overload = name.partition(".")
        operator = getattr(torch.ops.aten, packet)
        assert not overload or overload in operator.overloads(), name


def test_in_place_views():
    views = {"t_.default": "t.default", "squeeze_.dim": "squeeze.dim", "relu_.default": None}
    for name, view in views.items():
        schema = find_schema(f"aten.{name}")
        assert schema is not None and schema.in_place_view == view
    for name, view in IN_PLACE_VIEWS.items():
        assert "." not in view or find_schema(f"aten.{view}") is not None, name


def test_what_counts_from_the_storage():
    for name, counts in (("as_strided", True), ("select", False)):
        overload = "default" if counts else "int"
        schema = find_schema(f"aten.{name}.{overload}")
        assert schema is not None and schema.counts_from_storage is counts
