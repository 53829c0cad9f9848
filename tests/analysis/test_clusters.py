"""Clusters keep their order and answer as a search of the whole graph does."""

from __future__ import annotations

import random

import pytest

import irc
from irc.analysis.loop import Clusters


def program(generator: random.Random, length: int) -> irc.ModuleOp:
    """Additions of earlier values, near ones more often."""
    names = ["%a"]
    lines = []
    for number in range(length):
        one, other = (
            names[max(0, len(names) - 1 - int(generator.expovariate(0.3)))] for _ in range(2)
        )
        lines.append(f"  %v{number} = arith.addi %{one[1:]}, %{other[1:]} : i64")
        names.append(f"%v{number}")
    body = "\n".join(lines)
    return irc.parse(f"func.func @main(%a: i64) {{\n{body}\n  func.return\n}}")


def ancestors(clusters: Clusters, cluster: int, without: int = -1) -> set[int]:
    """The clusters before one, by paths that don't go through `without`."""
    found: set[int] = set()
    stack = [cluster]
    while stack:
        for d in clusters.direct(stack.pop()) - found:
            found.add(d)
            if d != without:
                stack.append(d)
    return found


def may_merge(clusters: Clusters, a: int, b: int) -> bool:
    """`can_merge`, by its definition."""
    for first, second in ((a, b), (b, a)):
        for d in clusters.direct(second) - {first}:
            if first in ancestors(clusters, d):
                return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_answers_and_order(seed):
    generator = random.Random(seed)
    module = program(generator, generator.choice([5, 20, 60]))
    block = module.lookup("main").block
    clusters = Clusters(block)
    for _ in range(80):
        live = list(clusters.members)
        a, b = generator.sample(live[:-1], 2)
        assert clusters.depends(a, b) == (b in ancestors(clusters, a))
        legal = may_merge(clusters, a, b)
        assert clusters.can_merge(a, b) == legal
        if legal:
            assert clusters.merge(a, b) == a and clusters.find(b) == a
        if len(clusters.members) < 4:
            break
    flat = [op for members in clusters.order() for op in members]
    assert sorted(map(clusters.number.get, flat)) == list(range(len(clusters.ops)))
    place = {
        clusters.cluster_of(members[0]): k for k, members in enumerate(clusters.order())
    }
    for cluster in clusters.members:
        assert all(place[d] < place[cluster] for d in clusters.direct(cluster))


def test_room_between_labels_is_made_again(monkeypatch):
    monkeypatch.setattr("irc.analysis.loop._GAP", 4)
    test_answers_and_order(1)
    test_answers_and_order(2)


@pytest.mark.fault("V20")
def test_questions_look_at_what_stands_between():
    """A chain in which each two neighbours become one: steps grow with its length."""

    def looked_at(length: int) -> int:
        text = "\n".join(f"  %v{k + 1} = arith.addi %v{k}, %v0 : i64" for k in range(length))
        module = irc.parse(f"func.func @main(%v0: i64) {{\n{text}\n  func.return\n}}")
        clusters, count = Clusters(module.lookup("main").block), 0
        direct = clusters.direct

        def counted(cluster: int) -> set[int]:
            nonlocal count
            count += 1
            return direct(cluster)

        clusters.direct = counted
        for k in range(0, length - 1, 2):
            assert clusters.can_merge(k, k + 1)
            clusters.merge(k, k + 1)
        return count

    assert looked_at(400) <= 2.1 * looked_at(200)
