"""Words of records in the text of support modules."""

from __future__ import annotations

import re

import pytest

from irc.codegen.host import support, support_gpu, support_graphs
from irc.codegen.host.support import written_out


@pytest.mark.parametrize("element", ["i64", "ptr"])
def test_a_word_is_an_address_and_a_load(element):
    assert written_out(f"a:\n  %x.y = word {element}, ptr %p.q, i64 %i\n  ret void\n") == (
        "a:\n  %x.y.at = getelementptr i64, ptr %p.q, i64 %i\n"
        f"  %x.y = load {element}, ptr %x.y.at\n  ret void\n"
    )


@pytest.mark.parametrize("line", [
    "  %word = mul i64 %i, 2\n", "  %x = load i64, ptr %word\n", "  %x = word i32, ptr %p, i64 1\n",
])  # fmt: skip
def test_other_lines_stay(line):
    assert written_out(line) == line


@pytest.mark.parametrize("module", [support, support_gpu, support_graphs])
def test_no_word_is_left(module):
    assert re.search(r"= word ", module.support_text()) is None
