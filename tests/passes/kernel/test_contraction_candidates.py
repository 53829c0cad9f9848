"""Tiles that are measured for products on a gpu: in the model's order, each with room for it."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import loop  # noqa: E402
from irc.passes.kernel.gpu.contraction_candidates import NEAR, choices_of  # noqa: E402
from irc.passes.kernel.gpu.form import form_gpu_kernel  # noqa: E402
from irc.passes.kernel.gpu.schedule import default_schedule  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.tuning.applying import apply  # noqa: E402
from irc.tuning.candidates import Schedules, candidates_for, kind_of  # noqa: E402
from tests.codegen.triton.contractions import Product, entries_of  # noqa: E402

SM90 = Target.named("sm_90")
PRODUCTS = {
    "square": (Product(512, 768, 768), {}),
    "with an epilogue": (Product(512, 3072, 768, epilogue=["arith.mulf %_, %c : f32"]), {}),
    "of few rows": (Product(4, 4096, 4096), {}),
    "of few rows and many columns": (Product(4, 50304, 768, b_strides=(1, 768)), {}),
    "f32": (Product(256, 256, 256, torch.float32), {"precision": "ieee"}),
    "tf32": (Product(512, 512, 512, torch.float32), {"precision": "tf32"}),
    "batched": (Product(128, 64, 128, batch=48), {}),
    "deep": (Product(256, 768, 50264), {}),
}


def scheduled(product, given):
    module = irc.parse(product.text())
    block = module.regions[0].blocks[0].first.regions[0].blocks[0]
    op = next(o for o in block.ops if isinstance(o, loop.ComputeOp | loop.GroupOp))
    op.attributes["schedule"] = default_schedule(op, preset=entries_of(given))
    return module, op


def number(schedule, key):
    return schedule.entries.get(key).value


@pytest.mark.parametrize("name", PRODUCTS)
def test_tiles_are_those_that_the_model_expects_to_be_near_the_best(name):
    product, given = PRODUCTS[name]
    module, op = scheduled(product, given)
    before = op.attributes["schedule"]
    assert kind_of(op) == "contraction"
    default, *others = candidates_for(op, SM90)
    assert len(others) >= 2 and not default.expected
    expected = [each.expected for each in others if "group_m" not in each.schedule]
    assert expected == sorted(expected) and 0.99 <= expected[0] and expected[-1] <= NEAR
    assert [each.expected for each in others if "group_m" in each.schedule] in ([], [1.0])
    for each in others:
        op.attributes["schedule"] = before
        apply(op, each)
        after = op.attributes["schedule"]
        sides = number(after, "tile_m") + number(after, "tile_n")
        held = sides * number(after, "tile_k") * number(after, "num_stages")
        assert held * product.dtype.itemsize <= SM90.gpu.block_bytes
        irc.verify(form_gpu_kernel(op, after, "k"))


def test_without_a_target_or_a_product_the_model_says_nothing():
    _, op = scheduled(*PRODUCTS["square"])
    assert len(candidates_for(op)) == 1
    text = Product(64, 64, 64).text().replace("arith.mulf", "arith.addf")
    _, sums = scheduled(type("Sums", (), {"text": lambda self: text})(), {})
    assert choices_of(Schedules({}, (), sums, SM90)) is None


@pytest.mark.parametrize(("columns", "most"), [(50304, 2), (64 * 132 * 2, 0), (4096, 0)])
def test_few_rows_of_many_columns_are_multiplied_by_programs_that_last(columns, most):
    _, op = scheduled(Product(4, columns, 768, b_strides=(1, 768)), {})
    lasting = [each for each in candidates_for(op, SM90) if "flat = true" in each.schedule]
    assert len(lasting) == most
    counts = {each.attribute().entries.get("programs").value for each in lasting}
    assert counts == ({264, 396} if most else set())
