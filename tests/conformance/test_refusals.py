"""The list of refused op cases, made from results, and its page."""

from __future__ import annotations

from tests.conformance import refusals

RESULTS = {
    "a/f32/forward/static": {"status": "refused", "message": "no complex"},
    "a/f32/forward/dynamic": {"status": "refused", "message": "no complex"},
    "b@x/f32/forward/static": {"status": "refused", "message": "no sparse"},
    "b@x/f32/backward/static": {"status": "pass"},
    "c[0]/f32/forward/static": {"status": "refused", "message": "no sparse"},
}


def test_an_entry_refused_throughout_is_one_pattern():
    assert refusals.patterns_of(RESULTS) == {
        "a/*": "no complex",
        "b@x/f32/forward/static": "no sparse",
        "c[[]0]/f32/forward/static": "no sparse",
    }


def test_patterns_name_exactly_the_refused_cases():
    patterns = refusals.patterns_of(RESULTS)
    for case, result in RESULTS.items():
        assert refusals.reason_for(case, patterns) == result.get("message")


def test_new_results_replace_what_is_said_of_their_cases_only():
    old = {"a/*": "no complex", "d/*": "no quantized"}
    passed = {case: {"status": "pass"} for case in RESULTS}
    assert refusals.merged(old, passed) == {"d/*": "no quantized"}


def test_the_page_lists_each_reason_with_its_cases():
    page = refusals.render(refusals.patterns_of(RESULTS))
    assert "## no complex\n\n* `a/*`" in page
    assert page.index("no sparse") < page.index("no complex"), "the most cases first"
    assert "None: no case" in refusals.render({})


def test_the_page_is_current():
    assert refusals.main(["--check"]) == 0
