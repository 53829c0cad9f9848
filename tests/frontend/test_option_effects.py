"""Options that do something do it; the others say that they don't."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.frontend.options import from_mapping, parse_options  # noqa: E402
from irc.pipeline import pipeline_text  # noqa: E402


def test_emulated_rounding_is_eagers_bit_for_bit():
    torch.manual_seed(0)
    x, y = torch.randn(2, 256).to(torch.bfloat16)

    def function(x, y):
        return ((x * y + x) * y - x) * y

    rounded = irc.compile(function, (x, y), options={"emulate_rounding": True})
    assert torch.equal(rounded(x, y), function(x, y))
    # Without it the rounding in between is left out, which shows.
    assert not torch.equal(irc.compile(function, (x, y))(x, y), function(x, y))
    assert "elide-rounding" not in pipeline_text("llvm", from_mapping({"emulate_rounding": True}))


def test_an_option_without_effect_warns():
    with pytest.warns(UserWarning, match="'max_autotune' has no effect yet"):
        from_mapping({"max_autotune": True})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_mapping({"freezing": True, "cpp_wrapper": True, "emulate_rounding": True})
        parse_options(None, {"verify": "each"})
