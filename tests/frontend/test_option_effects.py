"""Options that do something do it; the others say that they don't."""

import re
import warnings
from pathlib import Path

import attrs
import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.options import options  # noqa: E402
from irc.options.options import from_mapping, parse_options  # noqa: E402
from irc.options.table import OPTIONS  # noqa: E402
from irc.pipeline import pipeline_text  # noqa: E402
from irc.tools import docs  # noqa: E402


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


@pytest.fixture
def fresh_warnings():
    options._warn_of_idle.cache_clear()
    yield
    options._warn_of_idle.cache_clear()


IDLE = {
    "fallback_random": True, "keep_output_stride": False, "size_asserts": False,
    "unique_kernel_names": False, "cpp_wrapper": True,
    "max_fusion_size": 8,
}  # fmt: skip


@pytest.mark.fault("U2")
@pytest.mark.parametrize("name", IDLE)
def test_an_option_without_effect_warns_once(name, fresh_warnings):
    with pytest.warns(UserWarning, match=f"irc: option '{name}' has no effect: ") as caught:
        from_mapping({name: IDLE[name]})
        from_mapping({name: IDLE[name]})
        irc.Options(**{name: IDLE[name]})
    assert len(caught) == 1


@pytest.mark.fault("U2")
def test_options_with_an_effect_and_defaults_are_silent(fresh_warnings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_mapping({"freezing": True, "emulate_rounding": True})
        from_mapping({name: getattr(options.DEFAULT, name) for name in IDLE})
        parse_options(None, {"verify": "each"})


@pytest.mark.fault("U2")
def test_every_option_is_in_the_table():
    assert list(OPTIONS) and OPTIONS.keys() == attrs.fields_dict(irc.Options).keys()
    for field in attrs.fields(irc.Options):
        entry = OPTIONS[field.name]
        assert not entry.choices or field.default in entry.choices
        assert entry.check is None or entry.check(field.default) == ""


WRONG = [
    ({"target": "cuda"}, "option 'target' is 'auto', 'llvm', 'triton', 'sse2', 'avx2', 'avx512', "
     "'neon', 'sm_80' or 'sm_90', not 'cuda'; did you mean 'triton'?"),
    ({"target": "#irc.target<avx3>"}, "there is no processor 'avx3'"),
    ({"target": "cpu"}, "did you mean 'llvm'"),
    ({"target": "trition"}, "did you mean 'triton'"),
    ({"verify": "foo"}, "option 'verify' is 'users', 'none', 'each' or 'end', not 'foo'"),
    ({"verify": "eech"}, "did you mean 'each'"),
    ({"check_semantics": "sample:0"}, "'sample:0' is not 'each', 'changed' or 'sample:N'"),
    ({"remarks": "("}, "is no regular expression"),
    ({"padding_alignment_bytes": 0}, "0 is less than 1"),
    ({"compile_threads": -1}, "-1 is less than 0"),
    ({"max_autotune_gemm_backends": "ATEN,FOO"}, "with 'FOO', which is none of ATEN, IRC, CPP"),
    ({"freezing": "yes"}, "option 'freezing' is bool, not 'yes'"),
]  # fmt: skip


@pytest.mark.fault("U2")
@pytest.mark.parametrize("given, message", WRONG, ids=[str(given) for given, _ in WRONG])
def test_wrong_values_are_told_when_they_are_given(given, message):
    with pytest.raises(UserError, match=re.escape(message)):
        irc.Options(**given)
    with pytest.raises(UserError, match=re.escape(message)):
        irc.compile(None, (), options=given)  # before anything is traced
    model = torch.compile(lambda x: x + 1, backend="irc", options=given)
    with pytest.raises(Exception, match=re.escape(message)):
        model(torch.ones(2))
    torch._dynamo.reset()


@pytest.mark.fault("U2")
def test_wrong_names_are_told_when_they_are_given():
    message = "unknown option 'freezng'; did you mean 'freezing'?"
    with pytest.raises(UserError, match=re.escape(message)):
        irc.compile(None, (), options={"freezng": True})
    with pytest.raises(UserError, match="did you mean 'triton'"):
        irc.compile(None, (), target="cuda")
    with pytest.raises(UserError, match="options are a dict or irc.Options, not list"):
        irc.compile(None, (), options=["freezing"])


@pytest.mark.fault("U2")
def test_the_page_of_options_is_current():
    page = Path(__file__).resolve().parents[2] / "docs/options.md"
    assert page.read_text(encoding="utf-8") == docs.options_page()
    for field in attrs.fields(irc.Options):
        assert f"| `{field.name}` | `{field.default!r}` |" in docs.options_page()
