"""Kernels compiled by Triton to machine code, for the keys of launches."""

from __future__ import annotations

import subprocess
import threading
import time

import attrs
import pytest
import torch

import irc
from irc.codegen.triton import compiling, machine_code, workers
from irc.dialects import kernel
from irc.ir.diagnostics import InternalError
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text
from irc.program.gpu_kernels import KernelFacts, key_of
from irc.target.gpu import GpuFeatures


@pytest.fixture(scope="module")
def described():
    module = irc.trace(lambda x: torch.relu(x) + x.sum(), [torch.randn(6, 40)], dynamic=True)
    PassManager.parse(pipeline_text("triton", functional=False)).run(module)
    functions = [op for op in module.ops if isinstance(op, kernel.KernelFuncOp)]
    return machine_code.describe(functions, GpuFeatures.sm_90())


def test_a_key_decides_types_and_hints():
    facts = KernelFacts(("*fp32", "*bf16", "i64", "i64"), (1,), ())
    key = key_of([16, 8], [48, 1 << 40 | 1])
    signature, divisible = machine_code._specialized(facts, key)
    assert signature == {"p0": "*fp32", "p1": "*bf16", "n2": "i32", "n3": "i64"}
    assert divisible == [0, 2]


def test_kernels_are_compiled_for_their_keys(described):
    names = list(described.kernels)
    wanted = [(name, key) for name in names for key in (0, 1 | 1 << 32)]
    codes = machine_code.compile_codes(described, wanted)
    assert list(codes) == wanted
    for (name, _), code in codes.items():
        assert code.code.startswith(b"\x7fELF") and code.symbol == name and not code.special
        options = dict(described.kernels[name].options)
        assert code.threads == 32 * options["num_warps"] and code.shared >= 0
    assert len({code.code for code in codes.values()}) > len(names)
    assert machine_code.compile_codes(described, []) == {}


@pytest.fixture
def no_processes():
    """None that another test left, and none left."""
    workers.release()
    yield
    workers.release()


def test_threads_read_kernels_in_turn(described, monkeypatch, tmp_path):
    """Python 3.11's `ast.parse` fails where two threads are in it."""
    import ast

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    inside, most, parse = [], [], ast.parse

    def watched(*arguments, **keywords):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.002)
        try:
            return parse(*arguments, **keywords)
        finally:
            inside.pop()

    monkeypatch.setattr(ast, "parse", watched)
    wanted = [(name, key) for name in described.kernels for key in (0, 1, 2, 3)]
    assert len(machine_code.compile_codes(described, wanted)) == len(wanted)
    assert len(most) > 2 and max(most) == 1


def test_another_process_compiles_the_same(described, monkeypatch, no_processes, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # what an installation elsewhere left
    wanted = [(name, key) for name in described.kernels for key in (0, 1)]
    own = machine_code.compile_codes(described, wanted)
    with workers.ready(1), monkeypatch.context() as patch:
        assert workers.current() is not None
        patch.setattr(machine_code, "compile_code", None)
        assert machine_code.compile_codes(described, wanted) == own
        processes = workers.current()._processes
    assert workers.current() is None
    irc.release_memory()
    assert all(process.popen.returncode is not None for process in processes)


def test_a_process_serves_the_next_program_in_its_environment(
    described, monkeypatch, no_processes, tmp_path
):
    pair = next(iter(described.kernels)), 0
    places = [tmp_path / "first", tmp_path / "second"]
    served = []
    for place in places:
        monkeypatch.setenv("TRITON_CACHE_DIR", str(place))
        with workers.ready(1):
            (process,) = workers.current()._processes
            machine_code.compile_codes(described, [pair])
        served.append(process)
        assert any(place.iterdir())
    assert served[0] is served[1] and served[0].popen.poll() is None
    with workers.ready(1):  # what was asked and not answered would be taken for the next answer
        waits = workers.current().begin([{"source": "1 +"}])
        process.busy = True
    assert waits() in ([None], [None])
    assert process.popen.poll() is not None


def test_processes_that_nobody_wants_end(monkeypatch, no_processes):
    monkeypatch.setattr(workers, "_IDLE_SECONDS", 0.05)
    with workers.ready(2):
        first, second = workers.current()._processes
    assert first.popen.wait(20) is not None and second.popen.wait(20) is not None
    with workers.ready(1):
        (third,) = workers.current()._processes
        workers._forget()  # in a fork
        assert workers.current() is None and workers._pool._free == []
    assert third.popen.wait(20) is not None


def test_a_process_gets_ready_by_a_kernel_that_compiles():
    facts, code = compiling._answer(compiling.FIRST, {})
    assert facts["name"] == "first" and code.startswith(b"\x7fELF")


def test_what_a_process_can_not_compile_is_compiled_here(described, monkeypatch, no_processes):
    name = next(iter(described.kernels))
    own = machine_code.compile_code(described, name, 0)
    with workers.ready(1):
        broken = attrs.evolve(described, source="1 +")
        assert workers.current().begin([{"source": "1 +"}, {"source": ""}])() == [None, None]
        with pytest.raises(SyntaxError):
            machine_code.compile_codes(broken, [(name, 0)])
        workers.current()._processes[0].popen.kill()
        assert machine_code.compile_codes(described, [(name, 0)]) == {(name, 0): own}
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: (_ for _ in ()).throw(OSError()))
    with workers.ready(2):
        assert workers.current() is None


def test_measuring_adds_processes_to_those_of_the_compile(monkeypatch, no_processes):
    with workers.ready(1):
        (own,) = workers.current().processes
        with workers.at_least(3):
            three = workers.current().processes
            assert three[0] is own and len(three) == 3
            with workers.at_least(2):
                assert workers.current().processes == three
        assert workers.current().processes == [own]
        monkeypatch.setattr(workers._pool, "take", lambda count: (_ for _ in ()).throw(OSError()))
        with workers.at_least(4):
            assert workers.current().processes == [own]
    with workers.at_least(0):
        assert workers.current() is None


def test_processes_are_started_where_they_help(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(workers.sys, "executable", "/usr/bin/python3.11")
    for processors, helpers in ((2, 0), (4, 2), (32, workers.MOST)):
        monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _, n=processors: range(n))
        assert workers.count(1000) == helpers
        assert workers.count(3) == min(helpers, 1)
        assert workers.count_to_measure() == (min(processors, workers.KEPT) if helpers else 0)
    for other in ("/usr/bin/blender", ""):
        monkeypatch.setattr(workers.sys, "executable", other)
        assert workers.count(1000) == workers.count_to_measure() == 0
    monkeypatch.setattr(workers.sys, "executable", "/usr/bin/python3.11")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert workers.count(1000) == 0


@pytest.mark.parametrize("extra, fits", [(-1, False), (0, True), (2, True), (3, False)])
def test_other_parameters_than_a_launch_gives_are_an_error(extra, fits):
    parameters = ", ".join([".param .u64 k_param"] * (3 + extra))
    ptx = f".visible .entry k(\n{parameters}\n) .reqntid 128"
    if fits:
        machine_code._check_parameters("k", 3, ptx)
        return
    with pytest.raises(InternalError, match=f"takes {3 + extra} parameters for 3 arguments"):
        machine_code._check_parameters("k", 3, ptx)


def test_what_a_launch_does_not_give_is_told(described, monkeypatch):
    import triton

    name = next(iter(described.kernels))
    compile_ = triton.compile

    def special(*given, **named):
        made = compile_(*given, **named)
        facts = made.metadata._asdict() | {"num_ctas": 2, "global_scratch_size": 128}
        made.metadata = type("Metadata", (), {"_asdict": lambda self: facts})()
        return made

    monkeypatch.setattr(triton, "compile", special)
    code = machine_code.compile_code(described, name, 0)
    assert code.special == "num_ctas, global_scratch_size"
    assert attrs.evolve(code, special="").symbol == name


class Answering:
    """A process that answers with what it is asked, when it may."""

    def __init__(self):
        self.busy, self.may, self.asked = False, threading.Event(), []

    def lives(self):
        return not self.busy

    def ask(self, request):
        self.asked.append(request)
        self.may.wait(20)
        if request == "gone":
            raise OSError
        return {}, request.encode()


def test_processes_work_on_what_all_threads_ask():
    """One that is done goes on with what somebody else asked for, in the order of the asking."""
    first, second = Answering(), Answering()
    crew = workers.Workers([first, second])
    begun = [crew.begin([f"{who}{n}" for n in range(2)]) for who in "ab"]
    assert begun[0] is not None and wait_for(lambda: first.asked and second.asked)
    first.may.set()
    assert wait_for(lambda: len(first.asked) == 3)
    second.may.set()
    answers = [[code.decode() for _, code in each()] for each in begun]
    assert answers == [["a0", "a1"], ["b0", "b1"]]
    assert first.asked[1:] == ["b0", "b1"] and len(second.asked) == 1
    assert wait_for(lambda: not first.busy and not second.busy)


def test_nobody_waits_for_processes_that_are_gone():
    first, second = Answering(), Answering()
    crew = workers.Workers([first, second])
    answers = crew.begin(["gone", "gone", "x"])
    first.may.set()
    second.may.set()
    assert answers() == [None, None, None] and first.busy and second.busy
    assert crew.begin(["y"])() == [None]


def test_equal_kernels_of_programs_that_are_thrown_away_are_compiled_once():
    process, remembered = Answering(), {}
    process.may.set()
    crew = workers.Workers([process]).remembering(remembered)
    named = crew.begin(["k0", "k1", "k2", "k3"], ["same", "same", "", ""])
    assert [code.decode() for _, code in named()] == ["k0", "k0", "k2", "k3"]
    assert wait_for(lambda: not process.busy)
    again = workers.Workers([process]).remembering(remembered).begin(["k9"], ["same"])
    assert again()[0][1] == b"k0" and process.asked == ["k0", "k2", "k3"]
    lasting = workers.Workers([process]).begin(["k0", "k1"], ["same", "same"])
    assert [code.decode() for _, code in lasting()] == ["k0", "k1"]
    remembered["lost"] = workers._Compilation("lost")
    remembered["lost"].end(None)
    assert wait_for(lambda: not process.busy)
    assert crew.begin(["found"], ["lost"])()[0][1] == b"found"


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.001)
    return condition()


def test_what_decides_a_kernels_code_is_its_own_text(described):
    names = [machine_code._name_of(described, name, 0) for name in described.kernels]
    assert all(names) and len(set(names)) == len(names)
    name = next(iter(described.kernels))
    other = attrs.evolve(described, source="another module that has it")
    assert machine_code._name_of(other, name, 0) == names[0]
    assert machine_code._name_of(other, name, 1) != names[0]
    wider = attrs.evolve(described.kernels[name], options=(("num_warps", 8),))
    wide = attrs.evolve(described, kernels={name: wider})
    assert machine_code._name_of(wide, name, 0) != names[0]
    unknown = attrs.evolve(described.kernels[name], text="")
    assert machine_code._name_of(attrs.evolve(described, kernels={name: unknown}), name, 0) == ""
