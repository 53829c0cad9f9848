"""Programs in the disk cache: what is one key, what is a miss, and that a hit runs no pass."""

import os
import subprocess
import sys

import attrs
import pytest
import torch

import irc
from irc.cache.store import shared_cache
from irc.ir import attributes as A
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, f32
from irc.runtime import building, metrics, program_cache
from irc.runtime.build_program import BuildOptions
from irc.target.attribute import carry
from tests.runtime.host_modules import HostModule, Ref, tensor

S0 = symbol("s0")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    metrics.reset()
    return tmp_path / "cache"


def program(hint=None, amount=2, name=None):
    h = HostModule(tensor(S0, 2), names=["x"])
    (x,) = h.arguments
    x.name_hint = name
    h.bind(x, "s0", 0, hint=hint)
    a, b = h.alloc(tensor(S0, 2), 0), h.alloc(tensor(S0, 2))
    h.add_one(S0 * 2)
    h.launch("add_one", [x], [a])
    h.launch("add_one", [a], [b])
    c = h.aten("aten.add.Tensor", [b, x], tensor(S0, 2), self=Ref(0), other=Ref(1), alpha=amount)
    return h.finish(c)


def _program_entry(folder):
    """The one entry that holds a program (the support functions' code is another)."""
    found = [e for e in folder.glob("*.entry") if b'"program"' in e.read_bytes()]
    assert len(found) == 1
    return found[0]


def test_a_second_build_is_loaded():
    x = torch.randn(3, 2)
    for turn in range(2):
        (y,) = irc.build(program(hint=turn, name=f"n{turn}"))(x)
        assert torch.equal(y, torch.add(x + 1 + 1, x, alpha=2))
        assert metrics.cache_hits == turn and metrics.cache_puts == 1
        assert metrics.compiles == turn + 1 and metrics.kernels == turn + 1
        assert metrics.aten_calls == turn + 1
    (y,) = irc.build(program(amount=3))(x)
    assert torch.equal(y, torch.add(x + 1 + 1, x, alpha=3)) and metrics.cache_hits == 1


def test_keys_tell_what_matters():
    def key(module, **options):
        carry(module, "avx2")
        return program_cache.module_key(module, BuildOptions(**options))

    assert key(program(hint=1)) == key(program(hint=7, name="other"))
    assert len({key(program()), key(program(amount=3)), key(program(), precise=True),
                key(program(), native=False)}) == 4  # fmt: skip


def test_damaged_entries_are_misses(folder):
    x = torch.randn(3, 2)
    irc.build(program())
    entry = _program_entry(folder)
    whole = entry.read_bytes()
    key = entry.name.removesuffix(".entry")
    for data in (whole[: len(whole) // 2], b"", whole[:-1] + b"x"):
        entry.write_bytes(data)
        assert torch.equal(irc.build(program())(x)[0], torch.add(x + 1 + 1, x, alpha=2))
    for payload in (b"", b"\x05\0\0\0\0\0\0\0hello", b"\x02\0\0\0\0\0\0\0{}"):
        assert shared_cache().put(key, payload)
        assert torch.equal(irc.build(program())(x)[0], torch.add(x + 1 + 1, x, alpha=2))


def test_a_hit_of_the_source_program_runs_no_pass():
    x = torch.randn(3, 2)
    ran = []
    for _ in range(2):
        exe = building.compile_cached(program(), lambda m: ran.append(m), pipeline="cse")
        assert torch.equal(exe(x)[0], torch.add(x + 1 + 1, x, alpha=2))
    assert len(ran) == 1
    building.compile_cached(program(), lambda m: ran.append(m), pipeline="dce")
    assert len(ran) == 2


def test_large_constants_are_not_stored(folder):
    weight = torch.randn(64, 64)

    def module(content):
        h = HostModule()
        h.module.resources["cd" * 32] = content
        key = A.ResourceAttr("cd" * 32, TensorType((64, 64), f32))
        return h.finish(h.op("host.constant", to=tensor(64, 64), value=key))

    assert irc.build(module(weight))()[0] is not None
    entry = _program_entry(folder)
    assert entry.stat().st_size < 64 * 64 * 4
    assert torch.equal(irc.build(module(weight + 1))()[0], weight + 1) and metrics.cache_hits == 1


def test_another_process_loads_the_program():
    code = (
        "import irc, torch\n"
        "from irc.runtime import metrics, program_cache\n"
        "program_cache.irc_key = lambda: 'edited meanwhile by nobody'\n"
        "from tests.runtime.test_program_cache import program\n"
        "x = torch.ones(3, 2)\n"
        "assert irc.build(program())(x)[0].sum().item() == 30\n"
        "print(metrics.cache_hits)\n"
    )
    outputs = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        outputs.append(run.stdout.strip())
    assert outputs == ["0", "1"]


def test_passes_of_a_user_need_a_key_of_their_own(monkeypatch):
    from irc.ir.passes import manager as passes

    monkeypatch.setattr(passes, "_passes", passes.all_passes())
    assert program_cache.pipeline_key("cse") is not None

    @irc.register_pass
    class Mine(irc.Pass):
        name = "mine"
        depth: int = 1

    assert program_cache.pipeline_key("mine,cse") is None
    assert program_cache.pipeline_key("cse") is not None

    @irc.register_pass
    class Keyed(irc.Pass):
        name = "keyed"
        depth: int = 1

        def cache_key(self):
            return f"keyed {self.depth}"

    keys = {program_cache.pipeline_key(f"keyed{{depth={n}}},cse") for n in (1, 2)}
    assert None not in keys and len(keys) == 2


def test_without_a_cache_no_key_is_made(monkeypatch):
    def refuse(*_):
        raise AssertionError("a key was made")

    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    monkeypatch.setattr(program_cache, "module_key", refuse)
    x = torch.randn(3, 2)
    assert torch.equal(irc.build(program())(x)[0], torch.add(x + 1 + 1, x, alpha=2))
    module = irc.trace(torch.exp, (x,))
    building.compile_cached(
        module, lambda m: irc.PassManager.parse("lower-to-cpu").run(m), pipeline="lower-to-cpu"
    )
    assert metrics.cache_misses == 0


def test_constants_of_called_programs_must_be_at_hand():
    h = HostModule()
    h.module.resources["cd" * 32] = torch.randn(64, 64)
    key = A.ResourceAttr("cd" * 32, TensorType((64, 64), f32))
    called = program_cache.compile_parts(
        h.finish(h.op("host.constant", to=tensor(64, 64), value=key)), BuildOptions()
    )
    outer = program_cache.compile_parts(program(), BuildOptions())
    outer = attrs.evolve(outer, called={"body": called})
    assert program_cache.store("ab", outer)
    assert program_cache.lookup("ab", {}) is None
    assert program_cache.lookup("ab", {"cd" * 32: None}) is not None
