"""functionalize: values, mutated arguments and aliasing equal eager's; nothing mutates after."""

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import irc  # noqa: E402
from irc.dialects import aten, func  # noqa: E402
from irc.frontend.importing.importer import import_graph  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.fuzz import custom_ops  # noqa: E402
from tests.fuzz.harness import built, compiled, observe, same  # noqa: E402
from tests.fuzz.harness import clones as clones_of  # noqa: E402
from tests.fuzz.test_programs import is_fresh  # noqa: E402


def trace(function, *args):
    """The aten-level module of a function, with its mutation kept."""
    graph = make_fx(function, tracing_mode="fake")(*args)
    return import_graph(graph).module


def clones(args):
    return [torch.empty_strided(a.shape, a.stride(), dtype=a.dtype).copy_(a) for a in args]


def check(function, *args, expect_writes=True):
    """Compare eager, the imported program and the functionalized one; gives the module."""
    module = trace(function, *clones(args))
    eager_args, plain_args, new_args = clones(args), clones(args), clones(args)
    expected = function(*eager_args)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    plain = run(module, *plain_args)
    PassManager.parse("functionalize", verify="none").run(module)
    got = run(module, *new_args)
    for a, b, c in zip(expected, plain, got, strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=0)
        torch.testing.assert_close(c, a, rtol=0, atol=0)
    for a, b, c in zip(eager_args, plain_args, new_args, strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=0)
        torch.testing.assert_close(c, a, rtol=0, atol=0)
    assert_functional(module)
    assert_done(module)
    return module


def assert_done(module):
    """Running the pass again changes nothing, where only copies onto arguments write."""
    again = irc.parse(str(module))
    PassManager.parse("functionalize", verify="each").run(again)
    ops = [op for op in module.lookup("main").block.ops if isinstance(op, aten.AtenOp)]
    if not any(op.schema.is_mutable and op.qualified != "aten.copy_.default" for op in ops):
        assert str(again) == str(module), "functionalized again"


def assert_functional(module):
    """Only the trailing copies onto arguments write; views of what they wrote may follow."""
    function = module.lookup("main")
    arguments = set(function.block.arguments)
    for op in function.block.ops:
        if isinstance(op, aten.AtenOp) and type(op).schema.is_mutable:
            if op.name == "aten.copy_.default":
                assert op.operands[0] in arguments
                assert all(
                    o.name == "aten.copy_.default"
                    or isinstance(o, func.ReturnOp)
                    or type(o).schema.returns_alias
                    for o in _following(op)
                )
            else:
                assert is_fresh(op.operands[0])


def _following(op):
    while op.next is not None:
        op = op.next
        yield op


X = torch.arange(24.0).reshape(4, 6)
Y = torch.arange(4.0)


def seen_through_views(x):
    v = x[1:3]
    w = v.transpose(0, 1)
    w.mul_(2)
    x[0].add_(1)
    return v + 1, w


def write_seen_by_an_older_view(x):
    v = x.view(6, 4)
    x.mul_(3)
    return v


def intermediate(x):
    y = x + 1
    z = y.view(-1)
    z[3:7] = 5
    y[:, 1] += 2
    return z, y.sum()


def promotion(x, y):
    i = x.to(torch.int64)
    i.mul_(2).add_(y.to(torch.int32).unsqueeze(1))
    return i


def out_variant(x, y):
    o = torch.empty(4)
    torch.sin(y, out=o)
    torch.add(y, o, out=y)
    return o


def many_outputs(x):
    a, b = x.split([2, 4], dim=1)
    c = x.unbind(0)
    a.zero_()
    c[2].fill_(7)
    b.diagonal().add_(100)
    return a, b, c[1]


def strided(x):
    x.as_strided((3, 2), (6, 1), 2).fill_(-1)
    v = x[1:].as_strided((2, 2), (6, 1), 1)
    return v + 0


def shapes_in_place(x):
    y = x.clone()
    y.t_()
    y.unsqueeze_(0)
    y.squeeze_(0)
    y.add_(1)
    return y, y.t()


def indexed(x, y):
    x[torch.tensor([0, 2])] = y[:2].unsqueeze(1)
    x.index_add_(0, torch.tensor([1, 1]), x[:2].clone())
    x.masked_fill_(x > 20, 0.5)
    return x


def aliased_result(x):
    x.add_(1)
    return x, x[1:]


@pytest.mark.parametrize(
    "function, args",
    [
        (seen_through_views, (X,)),
        (write_seen_by_an_older_view, (X,)),
        (intermediate, (X,)),
        (promotion, (X, Y)),
        (out_variant, (X, Y)),
        (many_outputs, (X,)),
        (strided, (X,)),
        (shapes_in_place, (X,)),
        (indexed, (X, Y)),
        (aliased_result, (X,)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_equal_to_eager(function, args):
    check(function, *args)


def test_results_that_share_an_arguments_storage_say_so():
    module = check(aliased_result, X)
    infos = module.lookup("main").result_info
    assert [i.get("alias_of").value for i in infos] == [0, 0]


def test_overlapping_writes_are_refused():
    def overlapping(x):
        return x[:, :1].expand(4, 6).add_(1)

    module = trace_unchecked(overlapping, X)
    with pytest.raises(UserError, match="overlap"):
        PassManager.parse("functionalize").run(module)


def trace_unchecked(function, *args):
    """Trace with meta checks of overlap off, as text could say it."""

    def shaped(x):
        return x[:, :1].expand(4, 6)

    module = trace(shaped, *args)
    main = module.lookup("main")
    returned = main.return_op
    add = aten.make_aten(
        "aten.mul_.Scalar",
        (returned.operands[0], 2.0),
        {},
        lambda v: v if hasattr(v, "users") else None,
        [returned.operands[0].type],
    )
    main.block.insert_before(add, returned)
    return module


def test_storage_changes_are_refused_with_the_reason():
    def grow(x):
        y = x.clone()
        y.resize_(8, 3)
        return y

    module = trace(grow, X)
    with pytest.raises(UserError, match="changes the size of a storage"):
        PassManager.parse("functionalize").run(module)


def test_as_strided_in_place_counts_from_the_storage():
    def f(x):
        y = x * 2
        part = y[1:]
        part.as_strided_((2, 3), (1, 2), 1)
        part.add_(1)
        return part, y

    check(f, torch.randn(3, 4))


def test_a_call_whose_result_torch_cannot_tell_writes_a_copy(monkeypatch):
    from irc.passes.graph.functionalize import functionalize

    monkeypatch.setattr(functionalize, "types_of_call", lambda *rest: None)
    monkeypatch.setattr(functionalize, "element_of_call", lambda *rest: None)
    module = check(lambda x: x[1:3].mul_(2), X)
    names = [op.name for op in module.lookup("main").block.ops]
    assert "aten.clone.default" in names and "aten.mul.Tensor" not in names


# -- storages that several tensors share


def outcome_is_kept(function, *args):
    """Eager's outcome, sharing and strides included, after functionalize and in machine code."""
    expected = observe(function, args)
    module = irc.trace(function, tuple(clones_of(args)))
    PassManager.parse("functionalize", verify="each").run(module)
    assert_functional(module)
    same(expected, observe(lambda *a: run(module, *a), args), what="functionalized")
    same(expected, built(module, args), what="built")


BASE = torch.arange(20.0)


def aliasing_arguments(x, y):
    x.add_(1)
    y[0] = x[1].sum()
    return x, y.view(-1)


@pytest.mark.parametrize(
    "x, y",
    [
        (BASE[2:14].view(3, 4), BASE[4:10]),
        (BASE[:4], BASE[10:]),
        (BASE.as_strided((3, 2), (6, 2), 1), BASE.as_strided((4,), (3,), 0)),
        (BASE, BASE.view(4, 5)),
        (BASE, BASE[:0]),
    ],
    ids=["overlap", "apart", "gaps", "same", "empty"],
)
def test_arguments_that_share_a_storage(x, y):
    if not y.numel():
        outcome_is_kept(lambda a, b: (a.add_(1), b.add_(1)), x, y)
        return
    outcome_is_kept(aliasing_arguments, x, y)


def test_arguments_that_share_a_storage_unwritten_are_not_joined():
    module = irc.trace(lambda a, b: a + b, (BASE[:4], BASE[2:6]))
    PassManager.parse("functionalize").run(module)
    names = [op.name for op in module.lookup("main").block.ops]
    assert names == ["aten.add.Tensor", "func.return"]


def test_results_that_share_an_intermediate():
    def f(x):
        y = x * 2
        z = y.view(-1)
        z[3:7] = 5
        return z[1:], y, y.t()[2]

    outcome_is_kept(f, X)


def test_a_result_as_another_dtype_is_the_arguments_memory():
    def f(x):
        x.add_(1)
        return x.view(torch.int32)[1:], x[:, 2:4].view(torch.float64), x.view(torch.uint8).t()

    outcome_is_kept(f, X)


def parts_of_overlapping_views(x):
    row = x[0]
    row.expand(3, 6)[1:2].fill_(4)
    x.unfold(0, 2, 1)[0].mul_(2)
    return x[2]


def test_a_part_of_an_overlapping_view_may_be_written():
    outcome_is_kept(parts_of_overlapping_views, X)


def other_views(x):
    a, b, c = x.tensor_split((1, 2), 0)
    x.movedim(0, 1).unflatten(0, (3, 2))[1].zero_()
    torch.view_as_real(torch.view_as_complex(x.view(4, 3, 2))).add_(1)
    x.unfold(1, 2, 2).mul_(3)
    return a, b, c, x.mT


def test_views_without_a_rule_of_their_own():
    outcome_is_kept(other_views, X)


def places_between_elements(x):
    bits = x.view(torch.int32)
    x.sub_(-2)
    return bits.as_strided((2,), (2,), 0)


def rotated(x, y):
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)
    return x[1:], y * 2


def copied_twice(x, y):
    x.copy_(y)
    before = x[:1]
    x.copy_(y + 1)
    return before, x


def copied_and_read(x, y):
    view = x[2:]
    x.copy_(y)
    return view, x, view * y[2:]


@pytest.mark.parametrize(
    "function", [places_between_elements, rotated, copied_twice, copied_and_read]
)
def test_what_is_functional_stays_as_it_is(function):
    count = function.__code__.co_argcount
    made = [torch.arange(k, k + 9.0)[::2] for k in range(count)]
    module = irc.trace(function, clones_of(made))
    PassManager.parse("functionalize", verify="each").run(module)
    assert_done(module)
    same(observe(function, made), built(module, made), what="built")


def test_custom_operators_write_tensors_and_lists():
    custom_ops.register()
    ops = torch.ops.irc_fuzz

    def f(x, y):
        z = x * 2
        ops.exchange(z[1:], y)
        ops.each([x[0], y], 2)
        ops.each([z, z], 3)
        return ops.bump(x[:, 1], 3), z

    outcome_is_kept(f, X, Y)
    expected = observe(f, (X, Y))
    same(expected, compiled(f, (X, Y)), what="compiled")


def test_an_out_tensor_decides_the_type_of_a_sum():
    def f(x):
        total = torch.empty(6, dtype=torch.float64)
        torch.sum(x, 0, out=total)
        return total

    outcome_is_kept(f, torch.full((3, 6), 1e8) + torch.arange(18.0).view(3, 6))


def test_an_empty_out_tensor_gets_its_size():
    check(lambda x: torch.neg(x, out=torch.empty(0)), X)


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda x: x.add_(1).as_strided((3,), (1,), 30) + 1, "outside of its elements"),
        (lambda x: x.t_().add_(1), "sizes or strides of an argument"),
    ],
)
def test_what_has_no_functional_form_is_refused(function, reason):
    module = irc.trace(function, (torch.arange(40.0)[:24].view(4, 6),))
    with pytest.raises(UserError, match=reason):
        PassManager.parse("functionalize").run(module)


@pytest.mark.parametrize(
    "group", ["unit, true", "0 : i64, true", '"x", 0 : i64', "0 : i64, 2 : i64"]
)
def test_groups_of_aliases_are_numbers_of_arguments(group):
    vector = "tensor<[4] x f32, strides [1]>"
    module = irc.parse(f"""
        func.func @f(%x: {vector}, %y: {vector}) -> {vector}
            attributes {{level = "aten", aliases = [[{group}]]}} {{
          %z = aten.add_.Tensor %x, %y {{arguments = {{self = #aten.operand<0>,
              other = #aten.operand<1>}}}} : ({vector}, {vector}) -> {vector}
          func.return %z : {vector}
        }}""")
    with pytest.raises(UserError, match="not lists of argument numbers"):
        PassManager.parse("functionalize").run(module)
