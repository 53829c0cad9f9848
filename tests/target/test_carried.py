"""Programs that carry their target: text, edges, other machines, and machines that lack it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

import irc
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import compile_module, stages
from irc.runtime.build_program import BuildOptions, compile_parts
from irc.target import Target
from irc.target import host as host_module
from irc.target.attribute import carried, carry
from irc.target.cpu import TargetFeatures
from tests.ir_files import run_opt

CORPUS = Path(__file__).parents[1] / "corpus"
SUMS = """
module attributes {irc.target = #irc.target<TARGET>} {
  func.func @main(%x: tensor<[40, 300] x f32, strides [300, 1]>) -> tensor<[40] x f32, strides [1]> {
    %s = loop.compute par(i: 40) red(j: 300) -> reduce(sum, f32) {
      %a = loop.read %x[i, j] : f32
      %e = math.exp %a : f32
      loop.yield %e
    } : tensor<[40] x f32, strides [1]>
    return %s : tensor<[40] x f32, strides [1]>
  }
}
"""  # noqa: E501


def program(target: str = "avx2") -> Any:
    return irc.parse(SUMS.replace("TARGET", target))


def fine(*words: str) -> str:
    code, output, errors = run_opt(list(words))
    assert code == 0, errors
    return output


# -- text

BAD = [
    ("avx3", "1:53: error: there is no processor 'avx3'"),
    ("", "expected cpu, gpu, or the name of a known processor"),
    ("cpu", "the target has no 'triple'"),
    ("gpu, warp = 32", "the target has no 'chip'"),
    ("avx2, threads", "expected '='"),
    ("avx2, threads = 0", "threads is 0, not from 1 to 65536"),
    ("avx2, threads = 99999999999999999999", "does not fit"),
    ("avx2, threads = 1.5", "'threads' is an integer"),
    ("avx2, threads = true", "'threads' is an integer"),
    ("avx2, threads = 1, threads = 2", "the field 'threads' is given twice"),
    ("avx2, warp = 32", "a target has no field 'warp'; it has triple, chip"),
    ("sm_90, vector_bits = 512", "a target has no field 'vector_bits'; it has chip"),
    ("avx2, has_fma = true", "a target has no field 'has_fma'"),
    ("avx2, processor = 1", "a target has no field 'processor'"),
    ("avx2, vector_bits = 100", "vector_bits is 100, not one of (128, 256, 512)"),
    ('avx2, sets = "avx"', "'sets' is a list of strings"),
    ('avx2, sets = ["avx", 5]', "'sets' is a list of strings"),
    ('avx2, sets = ["sve"]', "sets has 'sve', which is no instruction set of x86_64"),
    ('avx2, chip = "a b"', "chip is 'a b', no name of a processor"),
    ('avx2, triple = "mips-unknown-linux"', "triple is 'mips-unknown-linux'"),
    ('avx2, triple = "x86_64"', "triple is 'x86_64', not ARCHITECTURE-VENDOR-SYSTEM"),
    ('avx2, triple = "aarch64-unknown-linux-gnu"', "no instruction set of aarch64"),
    ("avx2, fast_division = 1", "'fast_division' is true or false"),
    ("avx2, parallel = 0", "parallel is 0"),
    ('sm_90, channels_last = ["i8"]', "channels_last has 'i8', not one of"),
    ("avx2, operations_per_byte = [8]", "operations_per_byte is [8], not two numbers"),
    ("avx2, operations_per_byte = [0, 8]", "operations_per_byte is [0, 8]"),
    ('avx2, library = ["f64"]', "library has 'f64'"),
    ('avx2, default_float = "int32"', "default_float is 'int32'"),
    ('avx2, product_precision = "low"', "product_precision is 'low'"),
    ('gpu, chip = "rtx"', "chip is 'rtx', not sm_NUMBER"),
    ("sm_90, warp = 7", "warp is 7"),
]


@pytest.mark.parametrize("text, message", BAD, ids=[text for text, _ in BAD])
def test_each_wrong_text_is_told_at_its_place(text: str, message: str) -> None:
    written = f"builtin.module attributes {{irc.target = #irc.target<{text}>}} {{}}"
    with pytest.raises(irc.UserError) as caught:
        irc.parse(written)
    assert message in str(caught.value) and "<text>:1:" in str(caught.value)


def test_another_attribute_is_no_target() -> None:
    module = irc.parse("builtin.module attributes {irc.target = 5 : i64} {}")
    with pytest.raises(irc.InvalidIR, match="irc.target is 5 : i64, not #irc.target"):
        irc.verify(module)
    with pytest.raises(irc.InvalidIR, match="irc.target is 5"):
        PassManager.parse("cse").run(module)


@pytest.mark.parametrize("target", [Target.host(), Target.host(gpu=True), Target.named("neon")])
def test_the_text_of_a_module_comes_back(target: Target) -> None:
    module = program()
    carry(module, target)
    for generic in (False, True):
        again = irc.parse(irc.print_op(module, generic=generic))
        assert carried(again) == target


def test_names_that_are_wrong() -> None:
    with pytest.raises(irc.UserError, match="there is no target 'avx22'; did you mean 'avx2'"):
        Target.named("avx22")
    with pytest.raises(irc.UserError, match="is no #irc.target"):
        Target.named("#sym<s0>")


# -- edges


def test_passes_that_ask_give_a_program_this_machine() -> None:
    module = irc.parse(SUMS.replace("attributes {irc.target = #irc.target<TARGET>} ", ""))
    PassManager.parse("cse,dce").run(module)
    assert carried(module) is None
    PassManager.parse("cse,schedule").run(module)
    assert carried(module) == Target.host()


def test_a_pass_of_a_kind_gives_a_program_such_a_machine() -> None:
    module = irc.parse(SUMS.replace("attributes {irc.target = #irc.target<TARGET>} ", ""))
    PassManager.parse("group-computes,func.func(cse),schedule{target=gpu}").run(module)
    assert carried(module) == Target.host(gpu=True)


def test_a_carried_target_stays_and_a_given_one_takes_its_place() -> None:
    module, context = program("neon"), PassContext()
    PassManager.parse("schedule").run(module, context)
    assert carried(module) == Target.named("neon") == context.settled
    assert "lanes = 4" in str(irc.print_op(module))
    context = PassContext(target="avx512")
    PassManager.parse("cse").run(module, context)
    assert carried(module) == Target.named("avx512")
    PassManager.parse("cse").run(other := program("avx2"), PassContext())
    assert carried(other) == Target.named("avx2")


def test_a_pass_of_another_kind_is_told() -> None:
    with pytest.raises(irc.UserError, match="told a gpu, and the program is made for #irc.target<"):
        PassManager.parse("schedule{target=gpu}").run(program())
    with pytest.raises(irc.UserError, match="the target is 'tpu', not cpu or gpu"):
        PassManager.parse("schedule{target=tpu}").run(program())


def test_a_pass_that_asks_says_so() -> None:
    from irc.target import target_of

    class Asks(irc.Pass):
        name = "asks"

        def run(self, op: Any, context: PassContext) -> None:
            target_of(context)

    module = irc.parse("func.func @main() {func.return}")
    with pytest.raises(irc.InternalError, match="the pass 'asks' asks for the target"):
        PassManager([Asks()]).run(module)


def test_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "sums.mlir"
    path.write_text(SUMS.replace("TARGET", "neon"))
    assert "#irc.target<neon>" in fine(str(path), "--schedule")
    for text in ("avx2", "#irc.target<avx2, threads = 8>"):
        shown = text if text.startswith("#") else f"#irc.target<{text}>"
        assert shown in fine(str(path), "--schedule", f"--target={text}")
    assert str(Target.host()) in fine(str(path), "--target", "host")
    assert "did you mean 'avx2'" in run_opt([str(path), "--target=avx"])[2]
    assert "<target>:1:13: error" in run_opt([str(path), "--target=#irc.target<x>"])[2]
    words = [str(path), "--target=sm_90", "--loop-to-kernel"]
    assert "is told a cpu, and the program is made for #irc.target<sm_90>" in run_opt(words)[2]


def test_a_default_float_of_another_width_is_in_the_text() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 > 1

    torch.set_default_dtype(torch.float64)
    try:
        module = irc.trace(halves, (torch.arange(4),))
    finally:
        torch.set_default_dtype(torch.float32)
    assert 'default_float = "float64"' in irc.print_op(module)
    plain = irc.trace(halves, (torch.arange(4),))
    assert carried(plain) is None


# -- other machines

HOSTS = {
    "avx2": (TargetFeatures.avx2(), 1),
    "avx512": (TargetFeatures.avx512(), 8),
    "zen": (attrs.evolve(TargetFeatures.avx512(), chip="znver4", fast_division=True), 3),
}


def on(host: TargetFeatures, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this be another machine, with other settings of torch."""
    monkeypatch.setattr(TargetFeatures, "host", staticmethod(lambda: host))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(host_module, "_library_elements", lambda: ("bf16", "f32"))


PROGRAMS = ["softmax_of_rows", "half_precision", "linear_and_activation", "one_long_sum"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_text_is_one_program_on_every_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the traced program to the text of kernels, LLVM's and the processor's."""
    path, texts = str(CORPUS / f"{name}.mlir"), []
    words = [",".join(list(stages())[1:]), "llvm", "asm"]
    for host, threads in HOSTS.values():
        with monkeypatch.context() as patch:
            on(host, threads, patch)
            pipeline = f"--pass-pipeline={words[0]}"
            texts.append([
                fine(path, "--target=avx2", pipeline),
                *(fine(path, "--target=avx2", pipeline, f"--emit={form}") for form in words[1:]),
            ])  # fmt: skip
            assert Target.host().threads == threads
    assert texts[0] == texts[1] == texts[2] and "#irc.target<avx2>" in texts[0][0]
    other = fine(path, "--target=avx512", f"--pass-pipeline={words[0]}", "--emit=llvm")
    assert other != texts[0][1]


def test_nothing_asks_the_machine_on_the_way_to_object_code(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> Any:
        raise AssertionError("the machine is asked")

    monkeypatch.setattr(TargetFeatures, "host", staticmethod(asked))
    monkeypatch.setattr(host_module, "settings", asked)
    found = {}
    for target in ("sse2", "avx2", "avx512", "neon"):
        module = program(target)
        PassManager.parse("fuse-loops,loop-to-kernel,kernel-to-host", verify="each").run(module)
        found[target] = compile_parts(module, BuildOptions())
    machine = {name: parts.kernels[18] for name, parts in found.items()}  # of ELF's header
    assert machine == {"sse2": 62, "avx2": 62, "avx512": 62, "neon": 183}
    assert len({parts.kernels for parts in found.values()}) == 4
    assert found["avx2"].needs[:1] == ("x86_64",) and "avx2" in found["avx2"].needs


def test_code_for_another_architecture_is_not_run() -> None:
    with pytest.raises(irc.UserError, match="can't run the program: it has no aarch64"):
        compile_module(program("neon"))


def test_code_for_instructions_that_are_missing_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the cache has it: made on another machine that shares the folder."""
    if not TargetFeatures.host().has_avx2:
        pytest.skip("this machine has no AVX2")
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    x = torch.randn(40, 300)
    (y,) = compile_module(program("avx2"))(x)
    torch.testing.assert_close(y, x.exp().sum(1))
    irc.metrics.reset()
    monkeypatch.setattr(TargetFeatures, "host", staticmethod(TargetFeatures.sse2))
    with pytest.raises(irc.UserError, match="has no .*avx2"):
        compile_module(program("avx2"))
    assert irc.metrics.cache_hits == 1


def test_a_narrower_target_runs_here() -> None:
    x = torch.randn(40, 300)
    for name in ("sse2", "avx2"):
        if not TargetFeatures.host().missing_here(Target.named(name).features.needs()):
            compiled = irc.compile(lambda x: x.exp().sum(1), (x,), target=name)
            torch.testing.assert_close(compiled(x), x.exp().sum(1))
