"""Which operators the decomposition table takes apart, by device (no GPU is needed)."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from irc.dialects.aten import qualified_name
from irc.dialects.aten.schema import find_overload
from irc.frontend.decompositions import converted as converted_operators
from irc.frontend.decompositions import names
from irc.frontend.decompositions.table import core_table, decompositions
from irc.ir.rewrite.conversion import conversion
from irc.passes.graph.convert_aten.support import TO_GRAPH


@pytest.mark.parametrize(("device", "whole"), [("cpu", False), ("cuda", True)])
def test_dropout_stays_whole_where_its_kernel_has_its_own_numbers(device, whole):
    with FakeTensorMode():
        x = torch.empty(4, 4, device=device)
        graph = make_fx(
            lambda x: torch.ops.aten.native_dropout(x, 0.1, True),
            decomposition_table=decompositions(),
        )(x).graph
    targets = {node.target for node in graph.nodes if node.op == "call_function"}
    assert (torch.ops.aten.native_dropout.default in targets) == whole


@pytest.mark.parametrize(("device", "dtype", "whole"), [
    ("cpu", torch.float32, True), ("cpu", torch.float64, True), ("cpu", torch.bfloat16, False),
    ("meta", torch.float32, False),
])  # fmt: skip
def test_gathers_at_computed_places_stay_whole_on_a_cpu(device, dtype, whole):
    """Samples of images, and the gradients of reflected edges."""
    aten = torch.ops.aten
    with FakeTensorMode():
        x = torch.empty(1, 2, 8, 8, device=device, dtype=dtype)
        grid = torch.empty(1, 5, 6, 2, device=device, dtype=dtype)
        wide = torch.empty(1, 2, 12, 12, device=device, dtype=dtype)
        graph = make_fx(
            lambda x, grid, wide: (
                aten.grid_sampler_2d(x, grid, 0, 0, False),
                aten.reflection_pad2d_backward(wide, x, [2, 2, 2, 2]),
            ),
            decomposition_table=decompositions(),
        )(x, grid, wide).graph
    targets = {node.target for node in graph.nodes if node.op == "call_function"}
    kept = {aten.grid_sampler_2d.default, aten.reflection_pad2d_backward.default}
    assert kept & targets == (kept if whole else set())


@pytest.mark.parametrize("last", [False, True])
def test_values_of_what_stays_whole_on_a_cpu(last):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 9, 7, requires_grad=True)
    image = x.contiguous(memory_format=torch.channels_last) if last else x
    grid = torch.rand(2, 5, 6, 2) * 2.4 - 1.2

    def sampled(image, grid):
        padded = torch.nn.functional.pad(image * 2, (3, 2, 1, 4), mode="reflect")
        return torch.nn.functional.grid_sample(padded, grid, align_corners=False).sin()

    torch._dynamo.reset()
    results = []
    for call, to in ((torch.compile(sampled, backend="irc"), torch.float32),
                     (sampled, torch.float64)):  # fmt: skip
        outcome = call(image.to(to), grid.to(to))
        (gradient,) = torch.autograd.grad(outcome.sum(), x)
        results.append((outcome.double(), gradient.double()))
    for found, exact in zip(*results, strict=True):
        torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-5)


def test_max_unpool_keeps_the_memory_format():
    x = torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last)
    pooled, where = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    unpool = lambda a, b: torch.nn.functional.max_unpool2d(a, b, 2)  # noqa: E731
    torch._dynamo.reset()
    result = torch.compile(unpool, backend="irc")(pooled, where)
    torch.testing.assert_close(result, unpool(pooled, where), check_stride=True)


@pytest.mark.parametrize("options", [
    {}, {"per_sample_weights": True}, {"include_last_offset": True}, {"mode": "mean"},
    {"padding_idx": 3}, {"strided": True},
], ids=lambda options: next(iter(options), "sum"))  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_bags_of_embeddings_have_the_sizes_of_the_kernel(options, dtype):
    torch.manual_seed(0)
    options = dict(options)
    table = torch.randn(10, 5).to(dtype)
    if options.pop("strided", False):
        table = table.t().contiguous().t()
    indices, offsets = torch.tensor([1, 3, 3, 9, 0]), torch.tensor([0, 2, 5])
    scales = torch.rand(5).to(dtype) if options.pop("per_sample_weights", False) else None
    mode = {"mean": 1}.get(options.pop("mode", ""), 0)

    def bags(table, scales):
        last, padding = options.get("include_last_offset", False), options.get("padding_idx")
        arguments = (table, indices, offsets, False, mode, False, scales, last, padding)
        return torch.embedding_bag(*arguments)[:3]

    def call(function):
        leaves = [t if t is None else t.clone().requires_grad_() for t in (table, scales)]
        results = function(*leaves)
        results[0].sum().backward()
        return [*results, *(leaf.grad for leaf in leaves if leaf is not None)]

    torch._dynamo.reset()
    got, expected = call(torch.compile(bags, backend="irc")), call(bags)
    for mine, eager in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, eager)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("pad", [(0, -2), (-1, -1, 0, -1), (0, 0), (-1, 0, 1, 0)], ids=str)
def test_a_padding_that_cuts_keeps_the_order_of_the_strides(pad, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: torch.nn.functional.pad(x, pad), backend="irc", dynamic=dynamic
    )
    for shape in ((4, 5, 6), (3, 7, 5)):
        x = torch.randn(shape).permute(0, 2, 1)
        expected = torch.nn.functional.pad(x, pad)
        torch.testing.assert_close(compiled(x), expected, check_stride=True, rtol=0, atol=0)


@pytest.mark.fault("C9")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_channel_shuffle_gives_new_memory_in_the_source_s_format(groups, memory_format):
    x = torch.arange(48.0).view(2, 4, 3, 2).contiguous(memory_format=memory_format)
    expected = torch.nn.functional.channel_shuffle(x, groups)
    shuffle = torch.compile(torch.nn.functional.channel_shuffle, backend="irc")
    made = shuffle(x, groups)
    assert torch.equal(made, expected) and made.stride() == expected.stride()
    assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


@pytest.mark.fault("C9")
@pytest.mark.parametrize("function", [torch.any, torch.all])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32])
def test_any_and_all_over_no_dimension_have_eager_s_strides(function, dtype):
    x = (torch.arange(24).view(2, 3, 4).permute(2, 0, 1) % 3).to(dtype)
    if dtype == torch.float32:
        x[0, 0, 0] = float("nan")
    expected = function(x, [])
    made = torch.compile(lambda x: function(x, []), backend="irc")(x)
    assert made.dtype == expected.dtype and made.stride() == expected.stride()
    assert torch.equal(made, expected)


TABLES = {"WHOLE": names.WHOLE, "APART": names.APART, "PARTLY": names.PARTLY}


def converters():
    """The overload of each converter's operator, by the converter's name."""
    names = [name for name in TO_GRAPH.table if isinstance(name, str)]
    return {name: find_overload(qualified_name(name)) for name in names}


@pytest.mark.fault("U11")
def test_the_exceptions_are_exceptions():
    found = converters().values()
    converted = {o.overloadpacket for o in found if o.namespace == "aten"}
    table = decompositions()
    for name in names.names_of(names.WHOLE):
        packet = getattr(torch.ops.aten, name)
        assert packet not in converted
        assert not any(getattr(packet, o) in table for o in packet.overloads())
    for reason in (names.APART, names.PARTLY):
        for name in names.names_of(reason):
            packet = getattr(torch.ops.aten, name)
            assert packet in converted
            assert any(getattr(packet, o) in table for o in packet.overloads())


@pytest.mark.fault("U11")
def test_no_name_stands_twice_and_each_is_an_operator():
    every = [*names.WHOLE, *names.APART, *names.PARTLY]
    assert len(set(every)) == len(every)
    listed = [n for table in TABLES.values() for text in table.values() for n in text.split()]
    assert len(set(listed)) == len(listed)
    assert len(set(names.MORE)) == len(names.MORE)
    assert not set(names.MORE) & {n for n in listed if n not in names.names_of(names.APART)}
    for name in (*names.MORE, *listed):
        assert hasattr(torch.ops.aten, name), name
    table = decompositions()
    for name in names.MORE:
        packet = getattr(torch.ops.aten, name)
        assert any(getattr(packet, o) in table for o in packet.overloads()), name
    assert len(table) > len(core_table()) // 2


@pytest.mark.parametrize(
    "kept",
    [7, {"aten.add": 1}, [1, 2], ["aten"], ["aten.no_such"], ["os.path.join"], [["aten.add"]]],
    ids=str,
)  # fmt: skip
def test_a_kept_list_of_converted_operators_that_is_none_is_made_again(kept, monkeypatch):
    class Cache:
        unusable = None

        def get_json(self, key):
            return kept

    monkeypatch.setattr(converted_operators, "shared_cache", Cache)
    assert converted_operators._own() is None


def test_without_a_cache_all_converters_are_asked_for(monkeypatch):
    class Cache:
        unusable = "it is switched off"

    class Boundary:
        """One whose files are read when its table is asked for."""

        is_read, revision, registered = False, 1, ()

        @property
        def table(self):
            Boundary.registered = ("aten.add.Tensor",)
            return {}

    monkeypatch.setattr(converted_operators, "shared_cache", Cache)
    monkeypatch.setattr(converted_operators.registry, "boundary", lambda name: None)
    monkeypatch.setattr("irc.ir.rewrite.conversion.conversion", lambda name: Boundary())
    assert converted_operators.converted() == {torch.ops.aten.add}


def test_what_is_kept_of_converted_operators_is_what_the_boundary_has(monkeypatch):
    class Cache:
        unusable = None
        content = None

        def get_json(self, key):
            return Cache.content

        def put_json(self, key, content):
            Cache.content = content

    monkeypatch.setattr(converted_operators, "shared_cache", Cache)
    boundary = conversion(converted_operators.BOUNDARY)
    converted_operators._keep(boundary.table)
    own = converted_operators._own()
    assert own and own <= converted_operators._of(boundary, boundary.revision)
    assert torch.ops.aten.add in own
