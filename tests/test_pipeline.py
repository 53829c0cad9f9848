"""The table of the default pipeline, what is made from it, and passes of the user's in it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator

import attrs
import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.passes import PassManager, lookup_pass, pass_options, pass_text  # noqa: E402
from irc.options.options import DEFAULT, from_mapping  # noqa: E402
from irc.target import Target  # noqa: E402
from tests.ir_files import run_opt  # noqa: E402

STEPS = [step for steps in pipeline.PIPELINE.values() for step in steps]
SWITCHES = {
    "freezing": (False, True),
    "layout_optimization": (True, False),
    "emulate_rounding": (False, True),
    "epilogue_fusion": (True, False),
    "winograd": (True, False),
    "own_attention": (True, False),
    "shape_padding": (None, True),
    "comprehensive_padding": (None, True),
}
seen: list[str] = []


@irc.register_pass
class CountLoops(irc.Pass):
    """Notes what the program holds when the pass runs."""

    name = "test-count-loops"
    summary = "count the computes"
    anchor = "any"
    preserves = "bits"
    label: str = ""

    def run(self, op, context) -> None:
        seen.append(self.label or op.name)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    seen.clear()
    torch._dynamo.reset()
    yield
    for addition in list(pipeline._additions):
        pipeline.withdraw(addition)


def names(text: str) -> list[str]:
    return [pass_text(p).partition("{")[0] for p in PassManager.parse(text).steps]


@pytest.mark.parametrize("target", ["llvm", "triton"])
def test_every_combination_of_switches_keeps_the_tables_order(target: str) -> None:
    order = [step.name for step in STEPS]
    for values in itertools.product(*SWITCHES.values()):
        options = from_mapping(dict(zip(SWITCHES, values, strict=True)))
        found = names(pipeline.pipeline_text(target, options, functional=False))
        position = -1
        for name in found:
            position = order.index(name, position + 1)
        there = [s.name for s in STEPS if s.when(options, Target.named(target))]
        assert found == there


def test_options_of_a_pass_and_of_a_compile_have_one_default() -> None:
    for step in STEPS:
        fields = {f.name: f.default for f in pass_options(lookup_pass(step.name))}
        for name, option in step.chosen.items():
            assert fields[name] == getattr(DEFAULT, option), (step.name, name)
        assert not step.chooses or "target" in fields


def test_an_option_reaches_its_pass() -> None:
    chosen = from_mapping({"comprehensive_padding": True, "padding_stride_threshold": 8})
    text = pipeline.pipeline_text("llvm", chosen)
    assert "assign-layouts,pad-strides{threshold=8},insert" in text
    chosen = from_mapping({"freezing": True, "layout_optimization": False})
    assert "pack-weights{convolutions=false}" in pipeline.pipeline_text("llvm", chosen)


def test_named_pipelines_are_the_tables() -> None:
    whole = names("lower-to-cpu")
    assert whole == [name for stage in pipeline.PIPELINE for name in names(stage)]
    assert whole == names(pipeline.pipeline_text(functional=False))
    assert str(PassManager.parse("lower-to-gpu")) == str(
        PassManager.parse(pipeline.pipeline_text("triton", functional=False))
    )


@pytest.mark.fault("U1")
@pytest.mark.parametrize(
    ("place", "neighbours"),
    [
        ("after:fuse-loops", ("elide-rounding", "cut-pieces")),
        ("before:fuse-loops", ("dce", "inline-computes")),
        ("after:group-computes", ("group-computes", "attach-checks")),
        ("before:graph-to-layout/cse", ("elide-layout-copies", "cse")),
        ("after:pad-matmul", ("stream-softmaxes", "cse")),  # which these options leave out
    ],
)
def test_a_pass_goes_where_it_is_put(place: str, neighbours: tuple[str, str]) -> None:
    options = from_mapping({"passes": {place: "test-count-loops{label=x}"}})
    found = names(pipeline.pipeline_text("llvm", options))
    at = found.index("test-count-loops")
    assert (found[at - 1], found[at + 1]) == neighbours


@pytest.mark.fault("U1")
def test_torch_compile_and_irc_compile_run_it() -> None:
    x = torch.randn(4, 6)

    def function(x):
        return torch.softmax(x, -1)

    options = {"passes": {"after:fuse-loops": "test-count-loops{label=mine}"}}
    compiled = torch.compile(function, backend="irc", options=options)
    torch.testing.assert_close(compiled(x), function(x))
    assert seen == ["mine"]
    torch.testing.assert_close(irc.compile(function, (x,), options=options)(x), function(x))
    assert seen == ["mine", "mine"]
    torch.compile(lambda x: function(x) + 1, backend="irc")(x)
    assert seen == ["mine", "mine"]


@pytest.mark.fault("U1")
def test_extend_reaches_every_compile_in_order() -> None:
    x = torch.randn(4)
    first = pipeline.extend(after="convert-to-loop", passes="test-count-loops{label=first}")
    pipeline.extend(after="convert-to-loop", passes="test-count-loops{label=second}")
    with_own = {"passes": {"after:convert-to-loop": "test-count-loops{label=third}"}}
    irc.compile(torch.sin, (x,), options=with_own)
    assert seen == ["first", "second", "third"]
    pipeline.withdraw(first)
    pipeline.withdraw(first)
    irc.compile(torch.sin, (x,))
    assert seen[3:] == ["second"]


def test_named_pipelines_hold_additions(tmp_path) -> None:
    """So that irc-opt and a PassManager run what compiles run."""
    before = names("lower-to-cpu")
    pipeline.extend(after="group-computes", passes="test-count-loops{label=a}")
    at = names("fuse-loops").index("group-computes")
    assert names("fuse-loops")[at + 1] == "test-count-loops"
    assert names("aten-to-graph") == names(pipeline.stages()["aten-to-graph"])
    for whole, target in (("lower-to-cpu", "llvm"), ("lower-to-gpu", "triton")):
        assert names(whole) == names(pipeline.pipeline_text(target, functional=False))
    assert [n for n in names("lower-to-cpu") if n != "test-count-loops"] == before
    program = tmp_path / "f.mlir"
    program.write_text("func.func @main() { func.return }\n")
    put_in = 'passes="after:fuse-loops=test-count-loops{label=b};before:localize=cse"'
    assert run_opt([str(program), f"--fuse-loops={put_in}"])[0] == 0
    assert seen == ["a", "b"]


def test_a_named_pipeline_takes_the_options_of_a_compile() -> None:
    mine = {"after:fuse-loops": "test-count-loops{label=x}"}
    options = from_mapping({"freezing": True, "shape_padding": True,
                            "padding_stride_threshold": 8, "passes": mine})  # fmt: skip
    given = "freezing=true shape-padding=1 padding_stride_threshold=8 "
    given += "passes='after:fuse-loops=test-count-loops{label=x}'"
    assert str(PassManager.parse(f"lower-to-cpu{{{given}}}")) == str(
        PassManager.parse(pipeline.pipeline_text("llvm", options, functional=False))
    )
    gpu = PassManager.parse("loop-to-kernel{target=sm_90}")
    assert str(gpu).startswith("narrow-integers,schedule{target=gpu}")


@pytest.mark.parametrize(("text", "message"), [
    ("cse,fuse-loops{freezin=true}", "unknown option 'freezin'; did you mean 'freezing'"),
    ("fuse-loops{freezing=maybe}", "option 'freezing' is bool, not 'maybe'"),
    ("fuse-loops{padding_stride_threshold=x}", "is int, not 'x'"),
    ("fuse-loops{passes=after:fuse-loop=cse}", "no place in the pipeline"),
    ("lower-to-cpu{target=sm_90}", "no target of this pipeline, but of lower-to-gpu"),
    ("test-words{x=1}", "pipeline 'test-words' has no options"),
])  # fmt: skip
def test_wrong_options_of_a_named_pipeline(text: str, message: str) -> None:
    irc.register_pipeline("test-words", "cse")
    with pytest.raises(UserError, match=message) as caught:
        PassManager.parse(text)
    assert "<pipeline>:1:" in str(caught.value)


def test_a_pipeline_that_holds_itself_is_told() -> None:
    pipeline.extend(after="localize", passes="cse,fuse-loops")
    for text in ("fuse-loops", "lower-to-cpu", pipeline.pipeline_text("llvm")):
        with pytest.raises(UserError, match="pipeline 'fuse-loops' holds itself"):
            PassManager.parse(text)


@pytest.mark.fault("U1")
def test_the_key_holds_the_passes_that_are_put_in() -> None:
    plain = pipeline.pipeline_text("llvm")
    options = from_mapping({"passes": {"after:fuse-loops": "cse"}})
    assert pipeline.pipeline_text("llvm", options) != plain
    assert repr(options) != repr(DEFAULT)
    assert attrs.evolve(options, passes=()) == DEFAULT


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("after:fuse-loop", "cse", "no place in the pipeline; did you mean 'after:fuse-loops'"),
        ("behind:fuse-loops", "cse", "no place in the pipeline"),
        ("fuse-loops", "cse", "no place in the pipeline"),
        ("after:cse", "cse", "several stages: after:aten-to-graph/cse, after:graph-to-layout/cse"),
        ("after:fuse-loops", "test-count-loop", "did you mean 'test-count-loops'"),
        ("after:fuse-loops", "cse{", "bad pipeline"),
    ],
)
def test_a_wrong_place_or_pass_is_told(place: str, text: str, message: str) -> None:
    options = from_mapping({"passes": {place: text}})
    with pytest.raises(UserError, match=message):
        pipeline.pipeline_text("llvm", options)
    side, _, anchor = place.partition(":")
    if side in ("before", "after"):
        with pytest.raises(UserError, match=message):
            pipeline.extend(**{side: anchor}, passes=text)
    assert not pipeline._additions


@pytest.mark.parametrize("value", [["cse"], {"after:cse": 3}, "after:cse=cse", {3: "cse"}])
def test_passes_are_texts_by_place(value: object) -> None:
    with pytest.raises(UserError, match="option 'passes' is a dict of texts by place"):
        from_mapping({"passes": value})


@pytest.mark.fault("U1")
def test_an_installed_package_may_bring_passes(tmp_path) -> None:
    """Through the group irc.passes: all three doors find them."""
    (tmp_path / "plugged.py").write_text(
        "import irc\n"
        "@irc.register_pass\n"
        "class Plugged(irc.Pass):\n"
        "    name = 'plugged'\n"
        "    summary = 'say so'\n"
        "    def run(self, op, context):\n"
        "        print('plugged in')\n"
        "irc.pipeline.extend(after='fuse-loops', passes='plugged')\n"
    )
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[irc.passes]\nplugged = plugged\n")
    (tmp_path / "f.mlir").write_text("func.func @main() { func.return }\n")
    program = (
        "import torch, irc, sys\n"
        "torch.compile(lambda x: x + 1, backend='irc')(torch.ones(3))\n"
        "irc.compile(torch.sin, (torch.ones(3),))\n"
        "irc.PassManager.parse('plugged').run(irc.parse('func.func @main() { func.return }'))\n"
        "from irc.tools.irc_opt import main\n"
        "sys.exit(main([sys.argv[1], '--plugged', '--fuse-loops', '-o', sys.argv[2]]))\n"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:."}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "f.mlir"), str(tmp_path / "out.mlir")],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["plugged in"] * 5
