"""Tiles that are measured for products on a gpu: in the model's order, each with room for it."""

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import loop  # noqa: E402
from irc.passes.kernel.gpu.contraction_candidates import IN_FLIGHT, NEAR, choices_of  # noqa: E402
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
    if "few rows" not in name:
        assert expected == sorted(expected) and 0.99 <= expected[0]
    assert max(expected) <= NEAR
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


@pytest.mark.parametrize(("columns", "lasts"), [(50304, True), (11008, True), (4096, False)])
def test_few_rows_of_many_columns_are_multiplied_by_programs_that_last(columns, lasts):
    """By three of each processor; by two, and by as many as there are tiles, are tried."""
    _, op = scheduled(Product(4, columns, 768, b_strides=(1, 768)), {})
    schedule = op.attributes["schedule"]
    assert number(schedule, "flat") is lasts
    assert number(schedule, "programs") == (396 if lasts else 0)
    tried = {
        number(each.attribute(), "programs") for each in candidates_for(op, SM90)[1:]
        if "programs" in each.schedule
    }  # fmt: skip
    assert tried == ({264, 0} if lasts else set())


def test_few_rows_are_tried_with_many_steps_in_flight():
    _, op = scheduled(PRODUCTS["of few rows"][0], {})
    texts = [each.schedule for each in candidates_for(op, SM90)]
    assert all(any(f"num_stages = {n} " in text for text in texts) for n in IN_FLIGHT)


def test_8_bit_floats_have_tiles_whose_sums_have_registers_twice():
    """And are tried with larger ones, whose factors the hardware copies."""
    product = Product(4096, 4096, 4096, torch.float8_e4m3fn, b_strides=(1, 4096))
    _, op = scheduled(product, {"products": "dot"})
    schedule = op.attributes["schedule"]
    sides = number(schedule, "tile_m"), number(schedule, "tile_n")
    assert sides == (64, 128) and number(schedule, "num_warps") == 4
    candidates = candidates_for(op, SM90)
    assert sum("descriptors" in each.schedule for each in candidates) == 1
    for each in candidates[1:]:
        entries = each.attribute().entries.as_dict()
        if "access" not in entries:
            held = {"tile_m": 64, "tile_n": 128, "num_warps": 4}
            held |= {key: entries[key].value for key in held if key in entries}
            assert held["tile_m"] * held["tile_n"] <= 64 * 32 * held["num_warps"]


def test_what_follows_is_tried_on_parts_of_columns():
    _, op = scheduled(PRODUCTS["with an epilogue"][0], {})
    assert any("column_parts = 2" in each.schedule for each in candidates_for(op, SM90))
    _, op = scheduled(PRODUCTS["square"][0], {})
    assert not any("column_parts" in each.schedule for each in candidates_for(op, SM90))


def test_tiles_that_last_have_groups_of_lines_and_others_of_16_bytes():
    """As long as as many rows begin alike as a tile has."""
    for rows, columns, group in ((8192, 30523, 64), (2048, 50257, 16), (2048, 30522, 32)):
        _, op = scheduled(Product(rows, columns, 768, b_strides=(1, 768)), {})
        schedule = op.attributes["schedule"]
        assert number(schedule, "row_group") == group and number(schedule, "group_m") == 16
        alone = [each for each in candidates_for(op, SM90)[1:] if "programs = 0" in each.schedule]
        assert alone and all("row_group = 8 " in each.schedule for each in alone)
