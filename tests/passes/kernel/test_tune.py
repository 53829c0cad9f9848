"""The pass tune: what is asked, in which order, what is written."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc import pipeline  # noqa: E402
from irc.dialects import loop  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.passes.kernel import tune  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.target.attribute import carry  # noqa: E402

UP_TO_LOOPS = ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops")


def scheduled(function, *args, dynamic=False, target="avx2"):
    module = irc.trace(function, args, dynamic=dynamic)
    made_for = carry(module, Target.named(target))
    texts = pipeline.stages(made_for)
    PassManager.parse(",".join(texts[stage] for stage in UP_TO_LOOPS) + ",schedule").run(
        module, PassContext()
    )
    return module


def run(module, options=None, take=None, text="tune"):
    asked = []

    def choose_all(problems, context):
        asked.extend(problems)
        return [candidates[take or 0] for _, candidates in problems]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune, "choose_all", choose_all)
        PassManager.parse(text).run(module, PassContext(options=options))
    return asked


def schedules(module):
    return [op.attributes["schedule"] for op in module.walk()
            if isinstance(op, loop.ComputeOp | loop.GroupOp)]  # fmt: skip


def three(x, y):
    return x.sum(0), torch.softmax(y, -1), y[:2] + 1


ARGS = torch.randn(300, 1000), torch.randn(64, 100)


def test_each_is_asked_those_first_that_take_longest_and_small_ones_stay():
    module = scheduled(three, *ARGS)
    asked = [problem.what for problem, _ in run(module)]
    assert asked == ["reduction f32 1000", "reduction f32 64x100"]


def test_the_winner_is_written_and_what_is_near_it_is_asked_next():
    module = scheduled(three, *ARGS)
    before = schedules(module)
    asked = run(module, Options(max_autotune=True), take=1)
    assert len(asked) == 2 and before != schedules(module)
    module = scheduled(three, *ARGS)
    both = Options(max_autotune=True, coordinate_descent_tuning=True)
    assert len(run(module, both, take=1)) > 4


@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 0), ({"max_autotune_pointwise": True}, 2), ({"max_autotune_gemm": True}, 0)],
)
def test_options_say_what_is_tuned(options, count):
    options = Options(**options)
    assert len(run(scheduled(three, *ARGS), options)) == count
    assert ("tune" in pipeline.pipeline_text("avx2", options).split(",")) == (
        options.max_autotune_pointwise or options.max_autotune_gemm
    )


@pytest.mark.parametrize(
    ("options", "tuned"),
    [({}, False), ({"coordinate_descent_tuning": True}, True),
     ({"max_autotune_gemm_backends": "CPP"}, True)],
)  # fmt: skip
def test_a_product_whose_library_was_measured_is_left_to_coordinate_descent(options, tuned):
    chosen = Options(max_autotune=True, **options)
    assert tune._asks(chosen, is_product=True, gpu=False) == tuned
    assert tune._asks(chosen, is_product=False, gpu=False)


def test_a_problem_builds_and_computes_what_the_program_does():
    """Also with symbols, which its arguments bind."""
    from irc.tuning import Candidate
    from irc.tuning.measuring import Runner, arguments_of

    for dynamic in (False, True):
        module = scheduled(
            lambda x: torch.softmax(x * 2, -1), torch.randn(60, 100), dynamic=dynamic, target="host"
        )
        ((problem, candidates),) = run(module)
        assert sorted(size for _, size in problem.sizes) == ([64, 128] if dynamic else [])
        arguments = arguments_of(problem)
        x = arguments[-1]
        for candidate in [Candidate(), *candidates[1:3]]:
            (y,) = Runner(problem, candidate)._call(*arguments)
            torch.testing.assert_close(y, torch.softmax(x * 2, -1))


@pytest.mark.parametrize("target", ["avx2", "sm_90"])
def test_every_candidate_of_a_map_and_of_reductions_makes_a_kernel(target):
    """On whatever machine; what is of the machine alone shows where it runs."""
    asked = run(scheduled(three, *ARGS, target=target))
    assert len(asked) == 2
    for problem, candidates in asked:
        assert len(candidates) >= 4
        for candidate in candidates:
            module = problem.with_candidate(candidate)
            PassManager.parse(problem.pipeline).run(module, PassContext())


def test_a_tuned_function_is_right_and_says_its_schedule(tmp_path, monkeypatch):
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path))
    options = {"max_autotune_pointwise": True, "fx_graph_cache": False, "max_autotune_budget": 2}
    x, y = torch.randn(100, 100), torch.randn(100, 100)
    irc.metrics.reset()
    compiled = irc.compile(lambda x, y: (x + y).tanh(), (x, y), options=options)
    torch.testing.assert_close(compiled(x, y), (x + y).tanh())
    assert irc.metrics.autotune_problems == 1 and irc.metrics.compiles == 1
