"""Tiles that are measured for products on a gpu: in the model's order, each with room for it."""

import pytest

torch = pytest.importorskip("torch")

import attrs  # noqa: E402

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


@pytest.mark.parametrize("stages", [2, 4, 6, 8])
def test_tiles_have_room_for_the_steps_in_flight_that_are_asked_for(stages):
    """Entries that were measured of one operation stand in another, whose tiles are larger."""
    product = Product(2048, 3072, 768)
    _, op = scheduled(product, {"num_stages": stages, "tile_k": 64})
    schedule = op.attributes["schedule"]
    assert number(schedule, "num_stages") == stages and number(schedule, "tile_k") == 64
    sides = number(schedule, "tile_m") + number(schedule, "tile_n")
    assert sides * 64 * stages * product.dtype.itemsize <= SM90.gpu.block_bytes


def test_without_a_target_or_a_product_the_model_says_nothing():
    _, op = scheduled(*PRODUCTS["square"])
    assert len(candidates_for(op)) == 1
    text = Product(64, 64, 64).text().replace("arith.mulf", "arith.addf")
    _, sums = scheduled(type("Sums", (), {"text": lambda self: text})(), {})
    assert choices_of(Schedules({}, (), sums, SM90)) is None


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "tile", "stages", "programs"),
    [(4, 50304, 768, (16, 64), 3, 396), (4, 11008, 768, (16, 64), 3, 396),
     (4, 4096, 768, (16, 64), 6, 0), (8, 14336, 4096, (8, 128), 4, 0),
     (16, 14336, 4096, (16, 128), 6, 0), (16, 28672, 4096, (16, 64), 8, 0)],
    ids=["few_steps", "more_than_processors", "no_more", "wide_of_eight", "wide", "many"],
)  # fmt: skip
def test_few_rows_have_programs_that_last_wide_tiles_or_many_steps(
    rows: int, columns: int, depth: int, tile: tuple[int, int], stages: int, programs: int
) -> None:
    _, op = scheduled(Product(rows, columns, depth, b_strides=(1, depth)), {})
    schedule = op.attributes["schedule"]
    assert (number(schedule, "tile_m"), number(schedule, "tile_n")) == tile
    assert number(schedule, "num_stages") == stages
    assert number(schedule, "programs") == programs and number(schedule, "flat") == (programs > 0)


@pytest.mark.parametrize("rows", [8, 16])
def test_few_rows_are_tried_with_other_steps_in_flight_and_programs_that_last(rows: int) -> None:
    _, op = scheduled(Product(rows, 14336, 4096, b_strides=(1, 4096)), {})
    known = {key: number(op.attributes["schedule"], key)
             for key in ("tile_m", "tile_n", "num_stages", "programs")}  # fmt: skip
    tried = set()
    for each in candidates_for(op, SM90)[1:]:
        entries = each.attribute().entries.as_dict()
        tried.add(tuple(entries[key].value if key in entries else value
                        for key, value in known.items()))  # fmt: skip
    assert tried >= {(16, 64, stages, 0) for stages in IN_FLIGHT}
    assert tried >= {(16, 64, 4, 264), (16, 64, 3, 396)}
    assert ((8, 64, 3, 0) in tried) == ((8, 64, 4, 0) in tried) == (rows == 8)


def test_8_bit_floats_have_tiles_whose_sums_have_registers_twice():
    """Or larger ones, whose factors the hardware copies, where each processor has several."""
    product = Product(4096, 3072, 768, torch.float8_e4m3fn, b_strides=(1, 768))
    for rows in (4096, 2048, 512):
        _, op = scheduled(attrs.evolve(product, m=rows), {"products": "dot"})
        known = op.attributes["schedule"].entries.as_dict()
        large = 0
        for each in candidates_for(op, SM90):
            changed = each.attribute().entries.as_dict() if each.schedule else {}
            entries = {key: value.value for key, value in {**known, **changed}.items()}
            each_thread = entries["tile_m"] * entries["tile_n"] / (32 * entries["num_warps"])
            assert each_thread <= (128 if entries["access"] == "descriptors" else 64)
            assert (each_thread == 128) == entries["flat"]
            large += each_thread == 128
        first = known["access"].value == "descriptors"
        assert (large > 0) == (rows > 512) and first == (rows == 4096)


def test_f32_that_is_cut_has_tiles_of_few_sums():
    _, op = scheduled(Product(2048, 3072, 768, torch.float32), {})
    known = op.attributes["schedule"].entries.as_dict()
    assert known["precision"].value == "bf16x6" and len(candidates_for(op, SM90)) > 1
    for each in candidates_for(op, SM90):
        changed = each.attribute().entries.as_dict() if each.schedule else {}
        entries = {key: value.value for key, value in {**known, **changed}.items()}
        assert entries["tile_m"] * entries["tile_n"] <= 32 * 32 * entries["num_warps"]


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
