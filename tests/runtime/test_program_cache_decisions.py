"""What decides whether a program is looked up, stored, or compiled anew; nothing is compiled here
but one small program."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import attrs
import pytest

import irc
from irc.boundary.aten_paths import Named
from irc.boundary.templates import Dynamic
from irc.cache.keys import key_of
from irc.cache.store import shared_cache
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.diagnostics import InternalError, UserError
from irc.ir.passes import manager as passes
from irc.ir.rewrite import driver as rewriting
from irc.ir.rewrite import patterns
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, f32
from irc.options.options import Options
from irc.runtime import building, metrics, program_cache
from irc.runtime.build_program import BuildOptions, compile_parts
from irc.target.attribute import settle
from tests.runtime.host_modules import HostModule, tensor

OPTIONS = BuildOptions()


def module():
    h = HostModule()
    key = A.ResourceAttr("cd" * 32, TensorType((2, 2), f32))
    return h.finish(h.op("host.constant", to=tensor(2, 2), value=key))


@pytest.fixture(scope="module")
def parts():
    import torch

    made = module()
    made.resources["cd" * 32] = torch.zeros(2, 2)
    return compile_parts(made, OPTIONS)


@pytest.fixture
def asked(parts, tmp_path, monkeypatch):
    """Counts what is asked of the rooms around; nothing is compiled."""
    counts = Counter()

    def count(name, answer=None):
        def counting(*_, **__):
            counts[name] += 1
            return answer

        return counting

    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    for room in (program_cache, building):
        monkeypatch.setattr(room, "compile_parts", count("compiled", parts))
    monkeypatch.setattr(building, "build", count("built", "built"))
    monkeypatch.setattr(building, "load", count("loaded", "loaded"))
    monkeypatch.setattr(program_cache.torch_artifacts, "record", count("recorded"))
    metrics.reset()
    return counts


def given(target=None):
    made = module()
    settle(made, target)
    made.resources["cd" * 32] = None
    return made


def cached(lower=lambda m: None, target=None, **rest):
    return building.compile_cached(given(target), lower, **{"pipeline": "cse", **rest})


def test_a_program_without_a_target_has_no_key():
    with pytest.raises(InternalError, match="carries none"):
        program_cache.module_key(module(), OPTIONS)


def test_options_of_the_build_are_in_the_key(monkeypatch):
    def key(**options):
        return program_cache.module_key(program, BuildOptions(**options))

    program = given()
    kinds = [{}, {"native": False}, {"precise": True}, {"clock_aten": True}]
    monkeypatch.setattr(program_cache.torch_abi, "available", lambda: True)
    assert len({key(**kind) for kind in kinds}) == 4
    monkeypatch.setattr(program_cache.torch_abi, "available", lambda: False)
    assert key() == key(native=False)


def test_what_only_a_gpu_asks_is_in_the_keys_of_its_programs_alone():
    def key(target, **options):
        return program_cache.module_key(given(target), BuildOptions(**options))

    assert key("sm_90") != key("sm_90", late_checks=not OPTIONS.late_checks)
    assert key("avx2") == key("avx2", late_checks=not OPTIONS.late_checks)


@pytest.mark.parametrize(
    "change, reason",
    [(lambda b: b + b"x", "lengths don't fit"), (lambda b: b[:-1], "lengths don't fit"),
     (lambda b: b[:9], "Expecting"), (lambda b: b[:5], "no compiled program")],
)  # fmt: skip
def test_an_entry_of_another_length_is_no_program(parts, change, reason):
    entry = program_cache.pack(attrs.evolve(parts, kernels=b"code"))
    assert program_cache.unpack(entry).kernels == b"code"
    with pytest.raises(ValueError, match=reason):
        program_cache.unpack(change(entry))


def test_slots_come_back_as_they_were():
    slots = ((Dynamic(3), Named("dtype", "float32"), ("a", None)), symbol("s0") * 2, 1.5, (), 7)
    written = program_cache._slots_to_json(slots)
    assert program_cache._slots_from_json(written) == slots


def test_hits_and_misses_are_counted(parts, asked):
    assert program_cache.lookup("ab", {"cd" * 32: None}) is None
    assert (metrics.cache_hits, metrics.cache_misses) == (0, 1)
    assert program_cache.store("ab", parts) and metrics.cache_puts == 1
    assert program_cache.lookup("ab", {"cd" * 32: None}) is not None
    assert (metrics.cache_hits, metrics.cache_misses) == (1, 1)
    assert asked["recorded"] == 2
    shared_cache().put("ab", b"damaged")
    assert program_cache.lookup("ab", {"cd" * 32: None}) is None and asked["recorded"] == 2


def test_what_was_not_stored_is_not_noted(parts, asked, monkeypatch):
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    assert not program_cache.store("ab", parts)
    assert metrics.cache_puts == 0 and not asked["recorded"]


@pytest.mark.parametrize("own", [True, False])
def test_a_constant_that_the_entry_holds_need_not_be_at_hand(parts, asked, own):
    (name,) = parts.program.constants
    constants = dict(parts.program.constants)
    if own:
        constants[name] = attrs.evolve(constants[name], data=b"\0" * 16)
    program = attrs.evolve(parts.program, constants=constants)
    program_cache.store("ab", attrs.evolve(parts, program=program))
    assert (program_cache.lookup("ab", {}) is not None) is own
    assert program_cache.lookup("ab", {"cd" * 32: None}) is not None


@pytest.mark.parametrize("away", ["option", "folder", None])
def test_a_lowered_module_is_looked_up_where_there_is_a_cache(asked, away, monkeypatch):
    if away == "folder":
        monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    options = BuildOptions(cache=away != "option")
    for _ in range(2):
        program_cache.compiled_parts(given(), options)
    assert asked["compiled"] == (2 if away else 1)
    assert (metrics.cache_hits, metrics.cache_misses) == ((0, 0) if away else (1, 1))


@pytest.mark.parametrize("target", [None, "sm_90"])
@pytest.mark.parametrize("away", ["option", "folder", None])
def test_a_source_module_is_looked_up_where_there_is_a_cache(asked, away, target, monkeypatch):
    if away == "folder":
        monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    for _ in range(2):
        made = cached(options={"cache": away != "option"}, target=target)
        assert made == ("built" if away else "loaded")
    assert asked["built"] == (2 if away else 0) and asked["compiled"] == (0 if away else 1)
    assert metrics.cache_hits == (0 if away else 1)


def test_a_program_that_is_not_trusted_is_not_even_looked_up(asked, monkeypatch):
    def refuse(module):
        raise UserError("not this one")

    monkeypatch.setattr(building, "check_trust", refuse)
    with pytest.raises(UserError, match="not this one"):
        cached()
    assert not asked and metrics.cache_misses == 0


@pytest.mark.parametrize("wish", ["check_semantics", "remarks", "fuel", ""])
def test_what_only_passes_tell_has_them_run(asked, wish):
    ran = []
    options = Options(**{wish: 0 if wish == "fuel" else "each"} if wish else {})
    for _ in range(2):
        cached(ran.append, options=options)
    assert len(ran) == (2 if wish else 1)
    assert metrics.cache_hits == (0 if wish else 1)


def test_with_passes_of_a_user_only_code_is_kept(asked, monkeypatch):
    monkeypatch.setattr(building, "pipeline_key", lambda pipeline: None)
    ran = []
    for _ in range(2):
        assert cached(ran.append) == "loaded"
    assert len(ran) == 2 and asked["compiled"] == 1 and metrics.cache_hits == 1


def test_a_pipeline_of_ours_is_its_text(monkeypatch):
    ours = {k: p for k, p in passes.all_passes().items() if p.__module__.startswith("irc.")}
    monkeypatch.setattr(passes, "_passes", ours)  # without those that other tests made
    assert program_cache.pipeline_key("any text") == key_of("any text")


def test_patterns_of_a_user_leave_no_key(monkeypatch):
    monkeypatch.setattr(patterns, "_canonical", {**patterns._canonical})
    assert rewriting.canonicalization_patterns() and program_cache.pipeline_key("cse") is not None

    @irc.ir.rewrite.driver.canonicalization(graph.Add, name="mine.add")
    def mine(op, rw):
        return rw.no_match("never")

    assert mine in rewriting.canonicalization_patterns()
    assert program_cache.pipeline_key("cse") is None


def test_only_counters_that_counted_are_kept():
    statistics = Counter({("pad-strides", "padded"): 3, ("bufferize", "padding bytes"): 0})
    context = SimpleNamespace(statistics=statistics, data={})
    assert program_cache.pass_counters(None) == {}
    assert program_cache.pass_counters(context) == {"num_comprehensive_padding": 3}
