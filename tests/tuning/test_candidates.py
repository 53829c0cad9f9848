"""Candidates: near the default, each accepted by the verifier, the default first."""

import pytest

from irc.dialects import loop
from irc.tuning.applying import apply
from irc.tuning.candidate import read_schedule_text
from irc.tuning.candidates import MOST, Variation, candidates_for, generates, kind_of, times
from irc.tuning.problem import Problem, main_of
from tests.tuning.problems import squares

ROWS = "tensor<[64] x f32, strides [1]>"
GPU = ("cached_reads = false, early_reads = true, edge_bytes = 16 : i64, index_bits = 32 : i64, "
       "num_stages = 1 : i64, "
       "num_warps = 4 : i64, order = array<i64: 0>, r_block = {r} : i64, rough_powers = true, "
       "row_group = 1 : i64, tile_axes = array<i64>, unrolled = false, x_block = 1024 : i64"
       "{more}")  # fmt: skip
CPU = 'collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["j"], tail = "mask"'


def compute(schedule, reduced=False):
    """A compute with a schedule, of a row's sums or of squares."""
    if not reduced:
        text = squares(size=64).text
        start, end = text.index("#loop.schedule"), text.index("> {\n      %a")
        text = text[:start] + schedule[:-1] + text[end:]
    else:
        text = f"""
builtin.module {{
  func.func @main(%x: tensor<[64, 32] x f32, strides [32, 1]>) -> {ROWS} attributes {{level = "loop"}} {{
    %y = loop.compute par(i: 64) red(j: 32) -> reduce(sum, f32) schedule {schedule} {{
      %a = loop.read %x[i, j] : f32
      loop.yield %a
    }} : {ROWS}
    return %y : {ROWS}
  }}
}}
"""  # noqa: E501
    problem = Problem(text, "")
    function = main_of(problem.module())
    return next(op for op in function.block.ops if isinstance(op, loop.ComputeOp))


EXAMPLES = {
    "cpu pointwise": ('#loop.schedule<cpu, block = 1024 : i64, lanes = 16 : i64, tail = "mask">',
                      False),
    "cpu reduction": (f"#loop.schedule<cpu, {CPU}>", True),
    "cpu contraction": ("#loop.schedule<cpu, lanes = 16 : i64, pack_left = true, tile_rows = 6 : "
                        "i64, tile_vectors = 2 : i64>", True),
    "gpu pointwise": (f"#loop.schedule<gpu, {GPU.format(r=0, more='')}>", False),
    "gpu reduction": (f"#loop.schedule<gpu, {GPU.format(r=64, more=', persistent = false')}>",
                      True),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_candidates_are_near_the_default_which_comes_first(name):
    schedule, reduced = EXAMPLES[name]
    op = compute(schedule, reduced)
    target, kind = name.split()
    assert kind_of(op) == kind
    default, *others = candidates_for(op)
    assert not default.schedule and 4 <= len(others) < MOST + 1
    assert len(set(others)) == len(others)
    before = op.attributes["schedule"]
    for each in others:
        changes = read_schedule_text(each.schedule)
        assert changes.target == target
        for key, value in changes.entries.items:
            assert before.entries.get(key) not in (None, value)
        op.attributes["schedule"] = before
        apply(op, each)
        after = op.attributes["schedule"]
        assert after != before and {k for k, _ in after.entries.items} == {
            k for k, _ in before.entries.items
        }


def test_a_group_s_members_change_together():
    member = ("loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, lanes = 8 : i64> {{ "
              "%{a} = loop.read %{x}[i0] : f32 loop.yield %{a} }} : " + ROWS)  # fmt: skip
    text = f"""
builtin.module {{
  func.func @main(%x: {ROWS}) -> {ROWS} attributes {{level = "loop"}} {{
    %g = loop.group (i0: 64) schedule #loop.schedule<cpu, outer = ["i0"]> {{
      %p = {member.format(a="a", x="x")}
      %q = {member.format(a="b", x="p")}
      loop.yield %q
    }} : {ROWS}
    return %g : {ROWS}
  }}
}}
"""
    problem = Problem(text, "")
    op = next(o for o in main_of(problem.module()).block.ops if isinstance(o, loop.GroupOp))
    half = candidates_for(op)[1]
    assert half.members == ("#loop.schedule<cpu, lanes = 4 : i64>",) * 2 and not half.schedule
    apply(op, half)
    inner = [o for o in op.block.ops if isinstance(o, loop.ComputeOp)]
    assert [o.attributes["schedule"].entries.get("lanes").value for o in inner] == [4, 4]


def test_what_the_verifier_refuses_is_no_candidate(monkeypatch):
    from irc.tuning import candidates

    monkeypatch.setattr(candidates, "_generators", {})

    @generates("cpu", "pointwise")
    def wrong(schedules):
        yield Variation({"lanes": 3})
        yield Variation({"lanes": 4})
        yield Variation({"nothing": 4})
        yield Variation({"lanes": schedules.top["lanes"]})

    texts = [each.schedule for each in candidates_for(compute(EXAMPLES["cpu pointwise"][0]))]
    assert texts == ["", "#loop.schedule<cpu, lanes = 4 : i64>"]


def test_numbers_stay_numbers():
    assert times(0.5)(1) == 1 and times(2)(8) == 16 and times(0.25)(8) == 2
