"""The demonstration's parts that are quick, and its tables where a peer is missing."""

from bench.demo import __main__ as demo
from bench.demo import levels, speed


def test_the_level_shown_is_one_group():
    text = levels.one_level()
    assert text.startswith("%_softmax = loop.group (i0: 64)")
    assert text.count("loop.compute") == 3


def test_rules_and_pass_are_judged_as_they_are(capsys):
    assert demo.show_rules()
    printed = capsys.readouterr().out
    assert "def and_of_inverses(x, y):" in printed
    assert "rule 'graph.and_of_inverses' holds: 200 random cases" in printed
    assert "all 65,536 pairs of 8-bit integers: proved for int8" in printed
    assert "rule 'graph.factored_out' is wrong" in printed
    assert "before: nan, after: " in printed
    assert "[demo-drop-double-transposes] the pass changes what @main computes" in printed
    assert "with n=2" in printed


def row(side, milliseconds, **facts):
    given = {"cold": 1.0, "compiling": 90.0, "held": 20.0, "calling": 3.0, "error": 1e-6, **facts}
    return speed.Row(side, [one / 1e3 for one in milliseconds], given)


def test_ratios_are_medians_over_rounds_beside_the_like():
    rows = [
        row("eager", [10, 20, 30]), row("inductor", [10, 10, 10]), row("irc", [5, 5, 10]),
        row("inductor, frozen", [8, 8, 8]), row("irc, frozen", [4, 4, 4]),
    ]  # fmt: skip
    title, *lines = speed.model_rows("resnet-18", rows)
    assert title[0].startswith("ResNet-18") and len({len(line) for line in lines}) == 1
    assert [line[:4] for line in lines] == [
        ["  eager", "20.0 ms", "-", "-"],
        ["  inductor", "10.0 ms", "2.00", "-"],
        ["  irc", "5.0 ms", "3.00", "2.00"],
        ["  inductor, frozen", "8.0 ms", "2.50", "-"],
        ["  irc, frozen", "4.0 ms", "5.00", "2.00"],
    ]


def test_a_missing_peer_is_told_and_left_out():
    said = speed.reason("inductor: InvalidCxxCompiler: No working C++ compiler found in ...", 9)
    assert "no C++ compiler" in said
    assert "9 s" in speed.reason("late", 9)
    assert "failed: irc: UserError" in speed.reason("irc: UserError: no", 9)
    missing = speed.Row("inductor", failure=said)
    rows = [row("eager", [10]), row("irc", [5]), missing]
    assert [line[0] for line in speed.model_rows("resnet-18", rows)][1:] == ["  eager", "  irc"]
    assert speed.kernel_row("softmax", rows) == [
        "softmax, 1000 x 1000", "10.000 ms", "-", "5.000 ms", "2.00", "-",
    ]  # fmt: skip
