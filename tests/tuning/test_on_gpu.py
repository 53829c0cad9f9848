"""Tuning on a GPU: times from events, in workers that see one device each, and tuned programs."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.options.options import Options  # noqa: E402
from irc.passes.kernel import tune  # noqa: E402
from irc.pipeline import stages  # noqa: E402
from irc.target.attribute import settle  # noqa: E402
from irc.tuning import session  # noqa: E402

pytestmark = pytest.mark.gpu
UP_TO_LOOPS = ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops")


@pytest.fixture(autouse=True)
def nothing_compiled(cache, workers):
    torch._dynamo.reset()


def problem_with_candidates(function, *args):
    module = irc.trace(function, args)
    target = settle(module, None, gpu=True)
    PassManager.parse(",".join(stages(target)[s] for s in UP_TO_LOOPS) + ",schedule").run(
        module, PassContext()
    )
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        def choose_all(problems, context):
            asked.extend(problems)
            return [candidates[0] for _, candidates in problems]

        patch.setattr(tune, "choose_all", choose_all)
        PassManager.parse("tune").run(module, PassContext())
    return asked[0]


@pytest.mark.parametrize("where", ["here", "worker", "worker-each"])
def test_candidates_have_times_within_the_memorys_bounds(where):
    x = torch.randn(4096, 4096, device="cuda")
    problem, candidates = problem_with_candidates(lambda x: torch.softmax(x, -1), x)
    options = Options(
        autotune_in_subproc=where != "here", autotune_multi_device=where == "worker-each"
    )
    timings = session.measure(problem, candidates[:3], options)
    assert not timings.reasons
    # 128 MiB are moved, at 0.5 to 8 TB/s.
    assert all(16e-6 < seconds < 300e-6 for seconds in timings.seconds)


def test_a_candidate_without_enough_memory_on_the_chip_fails_alone():
    from irc.tuning import Candidate

    x = torch.randn(512, 4096, device="cuda")
    problem, candidates = problem_with_candidates(lambda x: torch.softmax(x, -1), x)
    large = Candidate("irc", "#loop.schedule<gpu, x_block = 1024 : i64>")
    timings = session.measure(problem, [candidates[0], large], Options(autotune_in_subproc=True))
    assert timings.winner == 0


@pytest.mark.parametrize("apart", [False, True], ids=["here", "worker"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_tuned_program_is_right(apart, dynamic):
    def function(x, y):
        return torch.nn.functional.layer_norm(x + y, (1000,)), (x * 2).t().contiguous() + 1

    options = {
        "max_autotune_pointwise": True, "fx_graph_cache": False, "max_autotune_budget": 10,
        "autotune_in_subproc": apart,
    }  # fmt: skip
    x, y = torch.randn(500, 1000, device="cuda"), torch.randn(1000, device="cuda")
    compiled = torch.compile(function, backend="irc", dynamic=dynamic, options=options)
    torch.testing.assert_close(compiled(x, y), function(x, y))
    assert irc.metrics.autotune_problems >= 2 and irc.metrics.compiles == 1


def test_the_second_device_is_tuned_and_used():
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    x = torch.randn(300, 1000, device="cuda:1")
    options = {"max_autotune_pointwise": True, "fx_graph_cache": False}
    compiled = torch.compile(lambda x: torch.softmax(x, -1), backend="irc", options=options)
    result = compiled(x)
    assert result.device == x.device
    torch.testing.assert_close(result, torch.softmax(x, -1))
