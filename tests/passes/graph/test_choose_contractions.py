"""Who computes products: the options, the errors, and values of products that irc computes itself,
against eager mode in float64."""

from __future__ import annotations

import copy
from functools import partial

import attrs
import pytest
import torch
from torch.nn import functional

import irc
from irc.analysis.contraction import Contraction, contraction_of
from irc.dialects import graph, loop
from irc.ir.builder import Builder
from irc.ir.contents import content_attribute
from irc.ir.passes import PassContext, PassManager
from irc.options.options import Options, from_mapping
from irc.options.table import own_backends
from irc.pipeline import stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from irc.tuning import Candidate, NoValidChoicesError
from irc.tuning.measuring import built
from tests.backends import BACKEND, needs_backend
from tests.passes.graph.aten_programs import put_on

OWN = {
    "max_autotune_gemm": True, "max_autotune_gemm_backends": "IRC",
    "max_autotune_conv_backends": "IRC", "max_autotune_budget": 0,
}  # fmt: skip


def own(function, args, **rest):
    """A function compiled without any library's product."""
    irc.metrics.reset()
    compiled = irc.compile(function, args, options=OWN, **rest)
    assert irc.metrics.aten_calls == 0
    return compiled


def near(actual, function, args, tolerance=None):
    """Asserts that results are those of eager mode on doubles, in eager mode's dtype."""
    wide = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
            for a in args]  # fmt: skip
    for mine, exact, eager in zip(actual, function(*wide), function(*args), strict=True):
        assert (mine.dtype, mine.shape, mine.stride()) == (eager.dtype, eager.shape, eager.stride())
        bound = tolerance or {torch.float32: 2e-6, torch.float64: 1e-13}.get(mine.dtype, 4e-3)
        torch.testing.assert_close(
            mine.double(), exact.double(), rtol=4 * bound, atol=8 * bound, equal_nan=True
        )


def lowered(function, args, last="fuse-loops", **rest):
    """A function's module behind a stage of the pipeline without a library's products."""
    module = irc.trace(function, args, **rest)
    texts = stages("avx2", from_mapping(OWN))
    for name, text in texts.items():
        PassManager.parse(text, verify="each").run(module)
        if name == last:
            return module
    raise KeyError(last)


def contractions(module):
    """The contractions of a module."""
    computes = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return [c for c in map(contraction_of, computes) if isinstance(c, Contraction)]


def products(a, b, t, x, y, r, s):
    """One of each operator, with transposed, sliced, broadcast and overlapping factors."""
    return (
        a @ b, b.mT @ a.mT, a[::2] @ b[:, 1:], t.mT @ b, a @ b[:, :1], a[:1] @ b,
        torch.addmm(r, a, b), torch.addmm(s, a, b, beta=0.5, alpha=-2),
        functional.linear(a, b.mT.contiguous(), s[0]), functional.linear(x, a[:, : x.shape[-1]]),
        x @ y, x @ y[:1].expand(x.shape[0], -1, -1), torch.baddbmm(r, x, y, alpha=3),
        torch.baddbmm(s[:1, :1], x, y, beta=2), a.as_strided((3, 3), (1, 1)) @ a[:3, :4],
        a[:, :0] @ b[:0], a[:0] @ b, torch.addmm(r, a[:, :0], b[:0], beta=2),
    )  # fmt: skip


def operands(dtype):
    """Factors of odd sizes."""
    torch.manual_seed(0)
    shapes = [(7, 5), (5, 9), (5, 7), (3, 6, 5), (3, 5, 9), (9,), (7, 9)]
    if dtype.is_floating_point:
        return tuple(torch.randn(shape).to(dtype) for shape in shapes)
    return tuple(torch.randint(-5, 5, shape).to(dtype) for shape in shapes)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str
)
def test_products_of_all_strides_and_sizes(dtype):
    args = operands(dtype)
    near(own(products, args)(*args), products, args)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8], ids=str)
def test_products_of_integers(dtype):
    def function(a, b, r):
        return a @ b, torch.addmm(r, a, b, beta=2, alpha=3), torch.addmm(r, a, b, beta=0, alpha=2)

    args = tuple(operands(torch.int64)[k].to(dtype) * 17 for k in (0, 1, 6))
    for mine, eager in zip(own(function, args)(*args), function(*args), strict=True):
        assert torch.equal(mine, eager)


def test_what_beta_of_zero_leaves_out_is_not_looked_at():
    def function(r, a, b):
        return torch.addmm(r, a, b, beta=0), torch.baddbmm(r, a[None], b[None], beta=0, alpha=2)

    args = (torch.full((3, 3), torch.nan), torch.randn(3, 4), torch.randn(4, 3))
    near(own(function, args)(*args), function, args)


@pytest.mark.parametrize("beta", [0, 1, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_factors_that_alpha_of_zero_leaves_out_are_looked_at_as_by_the_library(dtype, beta):
    def function(r, a, b):
        return (torch.addmm(r, a, b, alpha=0, beta=beta),)

    torch.manual_seed(5)
    for number in (torch.nan, torch.inf):
        for place in (1, 2):
            args = [torch.randn(s).to(dtype) for s in ((4,), (3, 5), (5, 4))]
            args[place].view(-1)[1] = number
            (eager,), (mine,) = function(*args), own(function, args)(*args)
            assert torch.equal(mine.isnan(), eager.isnan())
            torch.testing.assert_close(mine, eager, equal_nan=True)


@needs_backend
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_an_alpha_that_the_program_does_not_know_may_be_zero(alpha):
    torch._dynamo.reset()

    def function(r, a, b, alpha):
        return torch.addmm(r, a, b, alpha=alpha)

    compiled = torch.compile(function, backend=BACKEND, dynamic=True, options=OWN)
    r, a, b = torch.randn(3, 4), torch.randn(3, 5), torch.randn(5, 4)
    torch.testing.assert_close(compiled(r, a, b, 3.5), function(r, a, b, 3.5))
    a[1, 2] = torch.nan
    torch.testing.assert_close(compiled(r, a, b, alpha), function(r, a, b, alpha), equal_nan=True)


def test_sums_are_rounded_once():
    """128 times 1/256, added to 1, is 1.5 in f32; each rounded addition in bf16 would give 1."""
    a = torch.full((1, 128), 2.0**-8, dtype=torch.bfloat16)
    b, one = torch.ones(128, 1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bfloat16)
    (result,) = own(lambda r, a, b: (torch.addmm(r, a, b),), (one, a, b))(one, a, b)
    assert result.item() == 1.5


def test_infinities_and_nan_go_through():
    a = torch.tensor([[1.0, torch.inf], [torch.nan, 0.0]])
    near(own(lambda a: (a @ a, a @ a.mT), (a,))(a), lambda a: (a @ a, a @ a.mT), (a,))


def test_sizes_are_symbols_with_dynamic_shapes():
    def function(a, b, r):
        return torch.addmm(r, a, b).relu(), a.mT @ a

    compiled = own(function, (torch.randn(6, 4), torch.randn(4, 5), torch.randn(5)), dynamic=True)
    for m, k, n in ((6, 4, 5), (2, 9, 3), (17, 33, 65)):
        args = (torch.randn(m, k), torch.randn(k, n), torch.randn(n))
        near(compiled(*args), function, args)


def convolutions(x, w, b, v, d, line):
    """Strides, padding, dilation, groups, single taps; images in one dimension, too."""
    return (
        functional.conv2d(x, w, b, padding=1),
        functional.conv2d(x, w, stride=2, dilation=(2, 1)),
        functional.conv2d(x, v, stride=(1, 2)),
        functional.conv2d(x, d, padding=(0, 2), groups=2),
        functional.conv1d(line, w[:, :, 0], b, stride=3, padding=2),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels-last"])
def test_convolutions_are_products_of_windows(dtype, last):
    torch.manual_seed(0)
    shapes = [(2, 4, 9, 8), (6, 4, 3, 3), (6,), (5, 4, 1, 1), (4, 2, 3, 2), (2, 4, 11)]
    args = [torch.randn(shape).to(dtype) for shape in shapes]
    if last:
        args[0] = args[0].to(memory_format=torch.channels_last)
    near(own(convolutions, args)(*args), convolutions, args)


def test_a_convolution_is_one_contraction_whose_reads_are_affine():
    x, w = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 3)
    module = lowered(lambda x, w: functional.conv2d(x, w, stride=2, groups=2), (x, w))
    (found,) = contractions(module)
    extents = ([a.extent for a in axes] for axes in (found.batch, found.rows, found.columns))
    assert list(extents) == [[2], [2, 4, 3], [3]]
    assert [a.extent for a in found.depth] == [2, 3, 3]


# -- options


def test_words_of_backends_mean_irc_on_their_target():
    assert own_backends("aten, TRITON,CPP,CK", False) == {"aten", "irc"}
    assert own_backends("TRITON", False) == own_backends("CPP", True) == frozenset()
    assert own_backends("Triton", True) == own_backends("IRC", False) == {"irc"}


def test_the_options_say_who_may():
    assert ",choose-contractions," in stages("avx2")["aten-to-graph"]
    text = stages("avx2", from_mapping({"max_autotune_gemm_backends": "ATEN"}))["aten-to-graph"]
    assert "choose-contractions{products=ATEN}" in text
    text = stages("sm_90", from_mapping({**OWN, "max_autotune_gemm_backends": "TRITON"}))
    assert "choose-contractions{products=TRITON convolutions=IRC}" in text["aten-to-graph"]
    assert "pad-matmul" not in text["aten-to-graph"]
    text = stages("sm_90", from_mapping({"max_autotune": True}))["aten-to-graph"]
    assert ",choose-contractions," in text and "pad-matmul" in text


@pytest.mark.parametrize(
    "words, function, shapes, reason",
    [
        ("CUTLASS", torch.mm, [(3, 4), (4, 5)], "the options allow no kernel"),
        ("TRITON", torch.mm, [(3, 4), (4, 5)], "the options allow no kernel"),
        (
            "IRC",
            partial(torch.conv_transpose2d, stride=2, dilation=2),
            [(1, 2, 4, 4), (2, 3, 3, 3)],
            "it is transposed, and a stride and a dilation have a common divisor",
        ),
    ],
)
def test_where_nothing_may_compute_it_the_error_says_what_to_allow(words, function, shapes, reason):
    args = tuple(map(torch.randn, shapes))
    asked = {**OWN, "max_autotune_gemm_backends": words, "max_autotune_conv_backends": words}
    with pytest.raises(NoValidChoicesError, match="NoValidChoicesError: (mm|conv).* f32") as no:
        irc.compile(function, args, options=asked)
    text = str(no.value)
    assert f"irc: {reason}" in text and '_backends ("ATEN,IRC" takes all)' in text


def test_a_call_that_says_who_computes_it_is_asked_nothing():
    module = irc.trace(torch.mm, (torch.randn(3, 4), torch.randn(4, 5)))
    for stage in ("functional", "aten-to-graph"):
        PassManager.parse(stage).run(module)
    text = irc.print_op(module)
    told = 'backend = "irc", schedule = #loop.schedule<cpu, lanes = 4>, callee'
    module = irc.parse(text.replace("callee", told))
    PassManager.parse("choose-contractions").run(module)
    (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
    assert str(product.schedule) == "#loop.schedule<cpu, lanes = 4 : i64>"


# -- measuring


class Judge:
    """What choices share (`PassContext.tuning`), with times that are known."""

    def __init__(self, winner, library="aten"):
        self.winner, self.problems, self.candidates = winner, [], []
        self.library = library

    provisional = ""

    def choose_all(self, asked, tell):
        for problem, candidates in asked:
            self.problems.append(problem)
            self.candidates = candidates
            assert candidates[0] == Candidate(self.library) and candidates[1].backend == "irc"
        return [self.winner for _ in asked]


def chosen(winner, function, args, options, dynamic=False):
    """A function's module where who computes a product is measured, and the problems."""
    module = irc.trace(function, args, dynamic=dynamic)
    judge = Judge(winner)
    context = PassContext(target="avx2", options=from_mapping(options), tuning=judge)
    for name in ("functional", "aten-to-graph"):
        text = stages("avx2", from_mapping(options))[name]
        PassManager.parse(text, verify="each").run(module, context)
    return module, judge.problems


def test_where_both_may_the_faster_one_computes_it():
    args = (torch.randn(3, 4), torch.randn(5, 4))
    options = {"max_autotune_gemm": True}
    schedule = "#loop.schedule<cpu, lanes = 4 : i64>"
    module, problems = chosen(Candidate("irc", schedule), lambda a, b: a @ b.mT, args, options)
    (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
    assert str(product.schedule) == "#loop.schedule<cpu, lanes = 4 : i64, measured = true>"
    (problem,) = problems
    assert problem.what == "mm f32 3x4, 4x5 and 1 around it"
    assert "graph.permute" in problem.text  # the second factor is transposed
    module, problems = chosen(Candidate("aten"), lambda a, b: a @ b.mT, args, options)
    (call,) = (op for op in module.walk() if isinstance(op, graph.CallAten))
    assert call.backend == "aten" and len(problems) == 1


def test_who_is_alone_is_not_measured():
    args = (torch.randn(3, 4), torch.randn(4, 5))
    for words in ("ATEN", "IRC"):
        options = {"max_autotune": True, "max_autotune_gemm_backends": words}
        assert chosen(None, torch.mm, args, options)[1] == []


def test_a_problem_is_built_and_gives_what_the_call_gives():
    def function(c, a, b):
        return torch.addmm(c, a.mT, b, beta=2)

    args = (torch.randn(5), torch.randn(4, 6), torch.randn(4, 5))
    options = {"max_autotune_gemm": True}
    _, (problem,) = chosen(Candidate("aten"), function, args, options, dynamic=True)
    sizes = [size for _, size in problem.sizes]
    assert sorted(sizes) == [4, 5, 6]
    for candidate in (Candidate("aten"), Candidate("irc")):
        module = problem.with_candidate(candidate)
        PassManager.parse(problem.pipeline, verify="each").run(module)
        calls = [op.name for op in module.walk() if op.name == "host.call_aten"]
        assert len(calls) == (candidate.backend == "aten")
        (result,) = irc.build(module)(*sizes, args[1], args[0], args[2])
        torch.testing.assert_close(result, function(*args))


def frozen_problem(judge, target="avx512", dtype=torch.float32, columns=100, rows=32):
    """What is measured of a linear on a frozen weight."""

    def linear(x, w):
        return functional.relu(functional.linear(x, w))

    args = (torch.randn(rows, 64).to(dtype), torch.randn(columns, 64).to(dtype))
    module = irc.trace(linear, args)
    options = from_mapping({"max_autotune_gemm": True, "freezing": True})
    context = PassContext(target=target, options=options, tuning=judge)
    PassManager.parse("functional,convert-aten-to-graph,canonicalize").run(module)
    function = module.lookup("main")
    weight = function.block.arguments[1]
    value = content_attribute(torch.randn(columns, 64).to(dtype), module.resources)
    constant = Builder.before(function.block.first).create(graph.Constant, value=value)
    weight.replace_all_uses_with(constant.tensor)
    PassManager.parse("choose-contractions,panel-products").run(module, context)
    return module


def test_a_frozen_weight_competes_with_onednns_packed_one_in_panels():
    judge = Judge(Candidate("irc", "#loop.schedule<cpu, tile_vectors = 3 : i64>"), "onednn")
    module = frozen_problem(judge)
    (problem,) = judge.problems
    assert 'resource<"frozen 0' in problem.text and "graph.maximum" in problem.text
    assert any(not c.schedule for c in judge.candidates), "the weight as it is is tried, too"
    (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
    panels = product.right
    while not isinstance(panels.defining_op, graph.Constant):
        panels = panels.defining_op.operands[0]
    assert panels.type.shape == (3, 64, 48)
    one = frozen_problem(Judge(Candidate("onednn"), "onednn"))
    (call,) = (op for op in one.walk() if isinstance(op, graph.CallAten))
    assert call.backend == "onednn"


def test_frozen_weights_of_equal_shapes_are_one_problem():
    judge = Judge(Candidate("onednn"), "onednn")
    for _ in range(2):
        frozen_problem(judge)
    assert judge.problems[0].canonical() == judge.problems[1].canonical()


def test_a_frozen_weight_is_laid_out_as_registers_of_whole_tiles_take_it():
    """Of bf16, where the target has AMX; the last columns have a whole tile, too."""
    cpu = TargetFeatures.avx512()
    cpu = attrs.evolve(cpu, sets=(*cpu.sets, "amx-bf16", "amx-tile"))
    laid_out = (96, 32, (6, 32, 16, 2)), (100, 32, (8, 32, 16, 2)), (96, 1, (3, 64, 32))
    for columns, rows, shape in laid_out:
        judge = Judge(Candidate("irc", "#loop.schedule<cpu, tile_vectors = 2 : i64>"), "onednn")
        module = frozen_problem(judge, Target(cpu), torch.bfloat16, columns, rows)
        (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
        assert "tile_vectors = 2" in irc.print_op(product)
        shapes = [op.tensor.type.shape for op in module.walk() if isinstance(op, graph.Constant)]
        assert shape in shapes
        PassManager.parse("graph-to-layout,layout-to-loop,fuse-loops,loop-to-kernel").run(
            module, PassContext(target=Target(cpu))
        )
        assert ("kernel.dot_rows" in irc.print_op(module)) == (len(shape) == 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("backend", ["onednn", "panels", "plain"])
def test_a_frozen_problem_is_built_with_random_weights(backend, dtype):
    judge = Judge(Candidate("onednn"), "onednn")
    frozen_problem(judge, Target.host(), dtype)
    (problem,) = judge.problems
    candidate = {"onednn": Candidate("onednn"), "panels": judge.candidates[1],
                 "plain": Candidate("irc")}[backend]  # fmt: skip
    program = built(problem, candidate, Options())
    x = torch.ones(32, 64, dtype=dtype)
    (weight,) = problem.with_candidate(candidate).resources.values()
    (result,) = program(x)
    bound = 1e-4 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result, (x @ weight.T).relu(), rtol=bound, atol=bound)
    if backend != "onednn" or dtype == torch.float32:  # its maximum of bf16 is irc's
        assert program.metrics["kernels"] == (backend != "onednn")


def test_on_a_gpu_a_frozen_weight_is_an_argument_of_the_problem():
    judge = Judge(Candidate("aten"))
    frozen_problem(judge, target="sm_90")
    assert "graph.constant" not in judge.problems[0].text


@pytest.mark.parametrize("target, key", [("avx512", "tile_rows"), ("sm_90", "tile_")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_irc_is_tried_with_several_schedules_that_reach_the_kernel(target, key, dtype):
    args = (torch.randn(128, 64).to(dtype), torch.randn(64, 96).to(dtype))
    module, judge = irc.trace(torch.mm, args), Judge(Candidate("aten"))
    options = from_mapping({"max_autotune_gemm": True})
    context = PassContext(target=target, options=options, tuning=judge)
    for name in ("functional", "aten-to-graph"):
        PassManager.parse(stages(target, options)[name]).run(module, context)
    texts = [c.schedule for c in judge.candidates[2:]]
    assert 3 <= len(texts) <= 7 and all(texts)
    (problem,) = judge.problems
    tried = next(c for c in judge.candidates if key in c.schedule)
    again = problem.with_candidate(tried)
    PassManager.parse(problem.pipeline.partition(",loop-to-kernel")[0]).run(again)
    PassManager.parse("schedule").run(again, PassContext(target=target))
    entry = next(e for e in tried.schedule[1:-1].split(", ") if e.startswith(key))
    assert entry in irc.print_op(again)


class Asked:
    """What choices share, which notes what may be chosen and takes the library."""

    provisional = ""

    def __init__(self):
        self.asked = []

    def choose_all(self, asked, tell):
        self.asked += asked
        return [candidates[0] for _, candidates in asked]


def test_convolutions_of_a_gpu_are_measured_as_the_program_has_them():
    """Images that the program makes have channels innermost; windows are tried, too."""

    def function(x, w, v, u, mean, variance):
        x = functional.conv2d(torch.relu(x), w)
        return functional.conv2d(functional.conv2d(x, v, padding=1), u).relu_()

    shapes = (4, 64, 56, 56), (64, 64, 1, 1), (128, 64, 3, 3), (64, 128, 1, 1), (64,), (64,)
    args = [torch.randn(shape).bfloat16() for shape in shapes]
    module = put_on(irc.trace(function, args), "cuda:0")
    options, asked = from_mapping({"max_autotune": True}), Asked()
    context = PassContext(target="sm_90", options=options, tuning=asked)
    for name in ("functional", "aten-to-graph"):
        PassManager.parse(stages("sm_90", options)[name], verify="each").run(module, context)
    (first, one), (_, three), (last, other) = asked.asked
    assert len(three) > 2 and three[1].backend == "irc"
    assert len(one) > 2 and len(other) > 2 and one[1].backend == other[1].backend == "irc"
    inner = "irc.strides = #sym.dims<[401408, 1, 7168, 128]>"
    assert inner in last.text and "graph.maximum" in last.text
    assert "irc.strides = #sym.dims<[200704, 3136, 56, 1]>" in first.text, "it comes like that"


def with_parts():
    """A CPU whose figures say that products of parts of bf16 are the fastest."""
    cpu = TargetFeatures.avx512()
    cpu = attrs.evolve(cpu, sets=(*cpu.sets, "amx-bf16", "amx-tile"))
    most = (999, 999, 999)
    return Target(evolve(cpu, own_split=most, own_split_panels=most))


@pytest.mark.parametrize("splits", [True, False])
@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_an_option_says_whether_factors_are_cut_into_parts(target, splits):
    """On a CPU by the chooser's schedule, on a GPU by a precision that it says or leaves open."""
    record = with_parts() if target == "cpu" else Target.named(target)
    context = PassContext(target=record, options=Options(split_products=splits))
    traced = irc.trace(torch.mm, (torch.empty(2048, 768), torch.empty(768, 3072)))
    PassManager.parse("functional,convert-aten-to-graph,canonicalize").run(traced)
    for allowed in ("ATEN,IRC", "IRC"):
        module = irc.parse(irc.print_op(traced))
        PassManager.parse(f"choose-contractions{{products={allowed}}}").run(module, context)
        dots = [op for op in module.walk() if isinstance(op, graph.DotGeneral)]
        assert bool(dots) or not splits
        if dots:
            PassManager.parse("graph-to-layout,layout-to-loop,fuse-loops,schedule").run(
                module, context
            )
        assert ("bf16x6" in irc.print_op(module)) == splits


@pytest.mark.parametrize("frozen", [False, True])
def test_convolutions_of_pixels_are_products_of_parts(frozen):
    model = torch.nn.Sequential(torch.nn.Conv2d(64, 128, 1), torch.nn.ReLU()).eval()
    x = torch.randn(2, 64, 16, 16)
    torch._dynamo.reset()
    irc.metrics.reset()
    options = {"target": str(with_parts()), "freezing": frozen}
    if "amx-bf16" not in TargetFeatures.host().sets:
        pytest.skip("registers of whole tiles are not here")
    with torch.no_grad():
        program = torch.compile(model, backend="irc", dynamic=False, options=options)
        torch.testing.assert_close(program(x), model(x), rtol=1e-5, atol=1e-5)
    assert irc.metrics.aten_calls == 0


@pytest.mark.parametrize("frozen", [False, True])
def test_of_a_symbolic_number_of_rows_many_are_multiplied_in_parts(frozen):
    """Few rows read a weight as it lies, or in panels of f32; many cut it themselves."""
    target = with_parts()
    target = Target(evolve(target.features, own_panels=(999, 999, 1), own_split=(1, 1, 999),
                           own_products=(999, 999, 1)))  # fmt: skip
    options = from_mapping({"freezing": frozen})
    context = PassContext(target=target, options=options)
    weight = torch.nn.Parameter(torch.randn(64, 3072))
    module = irc.trace(lambda x: x @ weight, (torch.randn(50, 64),), dynamic=True)
    passes = f"functional,{'freeze,' * frozen}convert-aten-to-graph,canonicalize"
    PassManager.parse(f"{passes},choose-contractions,panel-products").run(module, context)
    (dot,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
    entries = dot.schedule.entries.as_dict()
    assert entries["products"].value == "bf16x6" and "tile_vectors" not in entries
    (few,) = (each.as_dict() for each in entries["variants"])
    assert few["most"].value == 127 and ("tile_vectors" in few) == frozen
    assert ("x48xf32" in irc.print_op(module)) == frozen
    PassManager.parse("graph-to-layout,layout-to-loop,fuse-loops,schedule").run(module, context)
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    entries = compute.schedule.entries.as_dict()
    assert entries["products"].value == "bf16x6" and entries["pack_right"].value
    for each in (each.as_dict() for each in entries["variants"]):
        assert each["products"].value in ("lanes", "depth")
        assert not frozen or not each["pack_right"].value
    assert each["most"].value == 127


@pytest.mark.skipif("amx-bf16" not in TargetFeatures.host().sets, reason="no registers of tiles")
@pytest.mark.parametrize("options", [{}, {"freezing": True}, {"split_products": False}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_of_a_symbolic_number_of_rows(options, dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(160, 320), torch.nn.GELU(), torch.nn.Linear(320, 96)
    ).to(dtype).eval()  # fmt: skip
    wide = [layer.double() for layer in copy.deepcopy(model)]
    with torch.no_grad():
        program = torch.compile(model, backend="irc", dynamic=True, options=options)
        for rows in (100, 2, 3, 15, 33, 127, 128, 130, 500):
            x = torch.randn(rows, 160).to(dtype)
            wanted = wide[2](wide[1](wide[0](x.double())))
            error = (model(x).double() - wanted).abs().max()
            assert (program(x).double() - wanted).abs().max() <= 4 * error + 1e-6


@pytest.mark.parametrize("frozen", [False, True])
def test_convolutions_of_pixels_whose_sizes_are_symbols(frozen):
    """Images and places are the rows: axes that are collapsed by their sizes, and may be vectors'
    axes for some. Channels are the columns, which are known."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(64, 128, 1), torch.nn.ReLU(), torch.nn.Conv2d(128, 64, 1),
        torch.nn.BatchNorm2d(64),
    ).eval()  # fmt: skip
    wide, options = copy.deepcopy(model).double(), {"freezing": frozen}
    context = PassContext(target=with_parts(), options=from_mapping(options))
    module = irc.trace(model, (torch.randn(4, 64, 16, 16),), dynamic=True)
    passes = f"functional,{'freeze,' * frozen}aten-to-graph,graph-to-layout,layout-to-loop"
    PassManager.parse(f"{passes},fuse-loops,loop-to-kernel", verify="each").run(module, context)
    assert irc.print_op(module).count("kernel.dot_rows") >= 2
    if "amx-bf16" not in TargetFeatures.host().sets:
        return
    torch._dynamo.reset()
    with torch.no_grad():
        program = torch.compile(model, backend="irc", dynamic=True,
                                options={**options, "target": str(with_parts())})  # fmt: skip
        for count, size in ((4, 16), (2, 16), (7, 16), (3, 9), (2, 1), (5, 23)):
            x = torch.randn(count, 64, size, size)
            wanted = wide(x.double())
            error = (model(x).double() - wanted).abs().max()
            assert (program(x).double() - wanted).abs().max() <= 4 * error + 1e-6
