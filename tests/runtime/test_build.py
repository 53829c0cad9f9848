"""Programs of the host dialect: native, in Python, interpreted and in eager, all the same."""

import math
import threading

import pytest
import torch

import irc
from irc.boundary import aten_paths, torch_abi
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.symbols import function, symbol
from irc.ir.types import TensorType, bf16, f16, f32, f64, i1, i8, i16, i32, i64, index, ui8
from irc.program import host_program as P
from irc.program.read_host import read_with_origins
from irc.runtime.arguments import ArgumentError
from tests.runtime.host_modules import (
    HostModule,
    Ref,
    check,
    check_error,
    create,
    executables,
    tensor,
)

S0, S1, U0 = symbol("s0"), symbol("s1"), symbol("u0")


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")


def chain(work=1):
    """x [s0, 3] -> x + 1 + 1 through arena memory of symbolic size."""
    h = HostModule(tensor(S0, 3), names=["x"])
    (x,) = h.arguments
    h.bind(x, "s0", 0, minimum=0)
    first, last = h.alloc(tensor(S0, 3), 64), h.alloc(tensor(S0, 3))
    h.add_one(S0 * 3, work=work)
    h.launch("add_one", [x], [first])
    h.launch("add_one", [first], [last])
    return h.finish(last)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 4099])
def test_kernels_through_the_arena(rows):
    check(chain(), torch.randn(rows, 3), expected=lambda x: [x + 1 + 1], interpret=rows < 100)


def test_each_step_is_known_by_its_operation_and_what_it_writes():
    program, origins = read_with_origins(chain())
    launches = [(s, op) for s, op in zip(program.steps, origins, strict=True)
                if isinstance(s, P.Launch)]  # fmt: skip
    assert [(s.outputs, op.name) for s, op in launches] == [((1,), "host.launch")] * 2


def test_thread_count_changes_nothing():
    module = chain(work=50)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        for rows in (1, 300, 20_001):
            check(module, torch.randn(rows, 3), expected=lambda x: [x + 1 + 1], interpret=False)
    finally:
        torch.set_num_threads(before)


def test_called_from_many_threads():
    exe = irc.build(chain())
    wrong = []

    def work(n):
        x = torch.randn(n * 1000 + 1, 3)
        for _ in range(50):
            if not torch.equal(exe(x)[0], x + 1 + 1):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def strided_copy(any_strides):
    """x [s0, s1] in strides of its own -> contiguous copy of x[:, 1:]."""
    t0, t1 = symbol("t0"), symbol("t1")
    strides = None if any_strides else (t0, t1)
    h = HostModule(TensorType((S0, S1), f32, strides), names=["x"])
    (x,) = h.arguments
    for dim in (0, 1):
        h.bind(x, f"s{dim}", dim)
        h.bind(x, f"t{dim}", dim, stride=True)

    def point(b, i, j, sizes, source, target):
        def mul(p, q):
            return create(b, "arith.muli", p, q, to=index)

        def add(p, q):
            return create(b, "arith.addi", p, q, to=index)

        value = create(b, "kernel.load", source, add(mul(i, sizes["t0"]), mul(j, sizes["t1"])),
                       to=f32)  # fmt: skip
        create(b, "kernel.store", value, target, add(mul(i, sizes["n"]), j))

    h.op("sym.bind", h.op("sym.value", to=index, dim=S1 - 1), to=index, symbol="n")
    n = symbol("n")
    view = h.op("host.view", x, to=tensor(S0, S1 - 1, strides=(t0, t1)), offset=A.DimAttr(t1))
    h.kernel("copy", [f32], [f32], S0, point, symbols=["t0", "t1", "n"], inner="n")
    out = h.alloc(tensor(S0, n))
    h.launch("copy", [view], [out])
    return h.finish(out)


@pytest.mark.parametrize("any_strides", [True, False])
def test_strides_and_views(any_strides):
    module = strided_copy(any_strides)
    base = torch.randn(6, 10)
    for x in (base, base.t(), base[::2, 1::3], base[:1], base[:0], base[2:, 9:]):
        check(module, x, expected=lambda x: [
            x[:, 1:].clone(memory_format=torch.contiguous_format)
        ])  # fmt: skip


def test_arguments_are_written_and_returned():
    h = HostModule(tensor(4, 3), tensor(2))
    x, other = h.arguments
    h.add_one(12)
    h.launch("add_one", [x], [x])
    view = h.op("host.view", x, to=tensor(3, 2, strides=(1, 6)), offset=A.DimAttr(1))
    module = h.finish(x, view, other, info=[{"alias_of": 0}, {"alias_of": 0}, {}])

    def eager(x, other):
        x += 1
        return x, x.as_strided((3, 2), (1, 6), x.storage_offset() + 1), other

    check(module, torch.randn(6, 3)[1:5], torch.randn(2), expected=eager)
    given = torch.randn(4, 3)
    for exe in executables(module).values():
        same, view, _ = exe(given, torch.randn(2))
        assert same is given and view._base is given


def test_a_result_that_should_alias_and_does_not_is_refused():
    h = HostModule(tensor(4))
    out = h.alloc(tensor(4))
    with pytest.raises(InvalidIR, match="share the memory of arg0"):
        irc.build(h.finish(out, info=[{"alias_of": 0}]))


def test_equal_and_compound_sizes_are_checked():
    h = HostModule(tensor(S0), tensor(S0 * 2 + 1), tensor(S1, S0), names=["a", "b", "c"])
    a, b, c = h.arguments
    h.bind(a, "s0", 0, minimum=2, maximum=9)
    h.bind(c, "s1", 0)
    module = h.finish(h.op("sym.value", to=index, dim=S0 // (S1 + 1)))
    check(module, torch.ones(4), torch.ones(9), torch.ones(0, 4), expected=lambda *_: [4])
    for sizes, text in (
        (((4,), (8,), (1, 4)), r"b\.size\(0\) is 8.*9 \(s0 = 4 from a\.size\(0\)\)"),
        (((4,), (9,), (1, 5)), r"c\.size\(1\) is 5"),
        (((1,), (3,), (1, 1)), r"a\.size\(0\) is 1.*s0 from 2 to 9"),
        (((10,), (21,), (1, 10)), r"a\.size\(0\) is 10"),
    ):
        check_error(module, *map(torch.ones, sizes), error=ArgumentError, match=text)
    check_error(module, torch.ones(4), torch.ones(9), torch.ones(0, 4).double(),
                error=ArgumentError, match="argument c: .*float64")  # fmt: skip


def test_expressions_round_down():
    cases = [S0 // 3, (S0 - 20) // 3, S0 % 5, (S0 - 20) % 5, (S0 + 6) // S1, (S0 - 99) % S1,
             function("min", S0, S1), function("max", S0, S1 * 4), S0 * S1 - 7,
             function("ceildiv", S0, S1), function("pow", S1, 3),
             function("where", function("lt", S0, S1), S0, S1)]  # fmt: skip
    h = HostModule(index, index)
    for argument, name in zip(h.arguments, ("s0", "s1"), strict=True):
        h.bind(argument, name)
    module = h.finish(*[h.op("sym.value", to=index, dim=d) for d in cases])
    for s0, s1 in ((0, 1), (7, 2), (13, 5), (100, 7)):
        env = {"s0": s0, "s1": s1}
        from irc.ir.symbols import evaluate

        assert check(module, s0, s1) == [evaluate(d, env) for d in cases]


def test_scalars_and_none():
    h = HostModule(i64, f64, i1)
    n, x, flag = h.arguments
    module = h.finish(n, x, flag)
    check(module, 2**40, 0.5, True, expected=lambda *a: a)
    check_error(module, 1, 2, True, error=ArgumentError, match="arg1 must be of type float")


def test_assertions():
    h = HostModule(tensor(S0), i1)
    x, flag = h.arguments
    h.bind(x, "s0", 0)
    h.op("sym.assert", relation="le", lhs=A.DimAttr(S0), rhs=A.DimAttr(4), message="at most four")
    h.op("sym.assert_value", flag, message="index out of bounds", error="IndexError")
    module = h.finish(x)
    check(module, torch.ones(4), True)
    check_error(module, torch.ones(5), True, error=RuntimeError, match="^at most four$")
    check_error(module, torch.ones(4), False, error=IndexError, match="^index out of bounds$")


@pytest.mark.parametrize(
    ("element", "values"),
    [(i64, [-5, 2**62]), (i32, [-5]), (i16, [-3]), (i8, [-128]), (ui8, [255]), (f32, [-1.5]),
     (f64, [0.1]), (bf16, [-3.5]), (f16, [0.25]), (i1, [True, False])],
)  # fmt: skip
def test_items(element, values):
    kind = f64 if element in (f32, f64, bf16, f16) else i1 if element is i1 else index
    h = HostModule(TensorType((), element, ()))
    module = h.finish(h.op("host.item", h.arguments[0], to=kind))
    from irc.interp.core import torch_dtype

    for value in values:
        x = torch.tensor(value, dtype=torch_dtype(element))
        check(module, x, expected=lambda x: [x.item()])


def test_constants():
    h = HostModule()
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    dense = A.DenseAttr(TensorType((2, 3), f32), values.numpy().tobytes())
    a = h.op("host.constant", to=tensor(2, 3), value=dense)
    splat = A.DenseAttr(TensorType((2,), i64), (7).to_bytes(8, "little"))
    b = h.op("host.constant", to=tensor(2, element=i64), value=splat)
    one = A.DenseAttr(TensorType((), f64), torch.tensor(1.5, dtype=torch.float64).numpy().tobytes())
    scalar = h.op("host.constant", to=tensor(element=f64), value=one)
    weight = torch.randn(2, 3)
    h.module.resources["ab" * 32] = weight
    key = A.ResourceAttr("ab" * 32, TensorType((2, 3), f32))
    c = h.op("host.constant", to=tensor(2, 3, strides=(1, 2)), value=key)
    out = h.alloc(tensor(2, 3))
    h.add_one(6)
    h.launch("add_one", [a], [out])
    module = h.finish(a, b, c, out, scalar)
    made = check(module, expected=lambda: [
        values.view(2, 3), torch.tensor([7, 7]), weight.t().contiguous().t(), values.view(2, 3) + 1,
        torch.tensor(1.5, dtype=torch.float64),
    ])  # fmt: skip
    assert made[2].stride() == (1, 2)
    module.resources.clear()
    with pytest.raises(InvalidIR, match="not beside the program"):
        irc.build(module)


# Calls of operators


def test_matrix_product_into_the_arena_and_random_in_order():
    h = HostModule(tensor(3, 4), tensor(4, 5))
    x, w = h.arguments
    out = h.alloc(tensor(3, 5), 0)
    h.aten("aten.mm.out", [x, w, out], (), self=Ref(0), mat2=Ref(1), out=Ref(2))
    noise = h.aten("aten.rand.default", [], tensor(3, 5), size=[3, 5], dtype=torch.float32)
    more = h.aten("aten.randn_like.default", [out], tensor(3, 5), self=Ref(0))
    total = h.aten("aten.add.Tensor", [out, noise], tensor(3, 5), self=Ref(0), other=Ref(1),
                   alpha=2)  # fmt: skip
    module = h.finish(total, more)
    check(module, torch.randn(3, 4), torch.randn(4, 5), expected=lambda x, w: [
        torch.add(x @ w, torch.rand(3, 5), alpha=2), torch.randn(3, 5)
    ])  # fmt: skip


def test_lists_and_several_results():
    h = HostModule(tensor(4, 3), tensor(2, 3))
    x, y = h.arguments
    both = h.aten("aten.cat.default", [x, y], tensor(6, 3), tensors=[Ref(0), Ref(1)], dim=0)
    a, b = h.aten("aten.sort.default", [both], (tensor(6, 3), tensor(6, 3, element=i64)),
                  self=Ref(0), dim=0, descending=True)  # fmt: skip
    c, d = h.aten("aten.split.Tensor", [both], (tensor(4, 3), tensor(2, 3)), self=Ref(0),
                  split_size=4)  # fmt: skip
    e = h.aten("aten.sum.dim_IntList", [both], tensor(6, element=f64), self=Ref(0), dim=[1],
               dtype=torch.float64)  # fmt: skip
    f = h.aten("aten.index.Tensor", [both, b], tensor(6, 3, 3), self=Ref(0),
               indices=[Ref(1)])  # fmt: skip
    module = h.finish(a, b, c, d, e, f)

    def eager(x, y):
        both = torch.cat([x, y])
        values, places = both.sort(0, descending=True)
        return [values, places, *both.split(4), both.sum(1, dtype=torch.float64), both[places]]

    x, y = torch.randn(4, 3), torch.randn(2, 3)
    made = check(module, x, y)
    for mine, theirs in zip(made, eager(x, y), strict=True):
        assert torch.equal(mine, theirs)


def test_results_in_other_strides_are_copied():
    h = HostModule(tensor(S0, 6))
    (x,) = h.arguments
    h.bind(x, "s0", 0)
    turned = h.aten("aten.t.default", [x], tensor(6, S0), self=Ref(0))
    out = h.alloc(tensor(6, S0))
    h.add_one(S0 * 6)
    h.launch("add_one", [turned], [out])
    module = h.finish(out, turned)
    for rows in (5, 1, 0):
        check(module, torch.randn(rows, 6), interpret=False, expected=lambda x: [
            (x.t() + 1).contiguous(), x.t().contiguous() if x.shape[0] > 1 else x.t()
        ])  # fmt: skip


def test_results_in_another_dtype_are_cast():
    # As torch's shape function of _batch_norm_with_update_functional, wrong about 16-bit floats.
    h = HostModule(tensor(5, 3))
    (x,) = h.arguments
    total = h.aten("aten.sum.dim_IntList", [x], tensor(5), self=Ref(0), dim=[1],
                   dtype=torch.float64)  # fmt: skip
    module = h.finish(total)
    check(module, torch.arange(15.0).view(5, 3), interpret=False, expected=lambda x: [x.sum(1)])


@pytest.mark.fault("V2")
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1)])
def test_results_of_any_rank_in_another_dtype_are_cast_before_they_are_read(shape):
    h = HostModule(tensor(*shape, element=f64))
    (x,) = h.arguments
    cast = h.aten("aten._to_copy.default", [x], tensor(*shape), self=Ref(0), dtype=torch.bfloat16)
    out = h.alloc(tensor(*shape))
    h.add_one(math.prod(shape))
    h.launch("add_one", [cast], [out])
    module = h.finish(out, cast)
    given = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape) - 0.5
    check(module, given, interpret=False, expected=lambda x: [x.float() + 1, x.float()])


@pytest.mark.fault("V2")
def test_a_result_of_another_rank_is_an_error():
    h = HostModule(tensor(5))
    found = h.aten("aten.sum.default", [h.arguments[0]], tensor(1), self=Ref(0))
    text = "sum.default gave a result with 0 dimensions; .* for 1"
    check_error(h.finish(found), torch.ones(5), error=RuntimeError, match=text)


@pytest.mark.fault("V2")
def test_a_wrong_shape_function_of_a_number():
    # torch says f32 of this product, and gives bf16.
    number, power = torch.tensor(2), torch.tensor(1.1, dtype=torch.bfloat16)
    for shape in ((), (3,)):
        given = number.expand(shape).clone()
        compiled = torch.compile(torch.ldexp, backend="irc", fullgraph=True)
        for _ in range(3):
            got = compiled(given, power)
            assert torch.equal(got.float(), torch.ldexp(given, power).float())


def test_a_result_of_another_size_is_an_error():
    h = HostModule(tensor(5, element=i64))
    found = h.aten("aten.nonzero.default", [h.arguments[0]], tensor(3, 1, element=i64),
                   self=Ref(0))  # fmt: skip
    module = h.finish(found)
    check(module, torch.tensor([1, 0, 1, 1, 0]))
    text = "nonzero.default gave a result with 5 elements along 0; .* for 3"
    check_error(module, torch.ones(5, dtype=torch.int64), error=RuntimeError, match=text)


def test_sizes_that_depend_on_data():
    h = HostModule(tensor(S0))
    (x,) = h.arguments
    h.bind(x, "s0", 0)
    found = h.aten("aten.nonzero.default", [x], TensorType((U0, 1), i64, (1, U0)), self=Ref(0))
    h.bind(found, "u0", 0, minimum=0, maximum=6)
    out = h.alloc(tensor(U0))
    flat = h.aten("aten.view.default", [found], tensor(U0, element=i64), self=Ref(0), size=[U0])

    def point(b, i, sizes, place):
        return [create(b, "arith.sitofp", place, to=f32)]

    h.kernel("convert", [i64], [f32], U0, point)
    h.launch("convert", [flat], [out])
    module = h.finish(out, h.op("sym.value", to=index, dim=U0 * 2))
    for x in (torch.tensor([0.0, 1, 2]), torch.zeros(4), torch.ones(6)):
        check(module, x, expected=lambda x: [x.nonzero().view(-1).float(), 2 * len(x.nonzero())])
    check_error(module, torch.ones(7), error=RuntimeError, match="u0 is 7")


def test_symbolic_arguments_of_operators():
    h = HostModule(tensor(S0, 2), f64)
    x, scale = h.arguments
    h.bind(x, "s0", 0)
    a = h.aten("aten.full.default", [scale], tensor(S0 + 1, 2), size=[S0 + 1, 2],
               fill_value=Ref(0), dtype=torch.float32)  # fmt: skip
    b = h.aten("aten.slice.Tensor", [a], tensor(S0, 2), self=Ref(0), dim=0, start=1, end=S0 + 1)
    c = h.aten("aten.add.Tensor", [x, b], tensor(S0, 2), self=Ref(0), other=Ref(1))
    d = h.aten("aten.mul.Scalar", [x, scale], tensor(S0, 2), self=Ref(0), other=Ref(1))
    module = h.finish(c, d)
    check(module, torch.randn(3, 2), 0.3,
          expected=lambda x, s: [x + torch.full((3, 2), s), x * s])  # fmt: skip


def test_in_place_calls_and_copies():
    h = HostModule(tensor(3, 2), TensorType((3, 2), f32, (1, 3)))
    x, y = h.arguments
    same = h.aten("aten.mul_.Tensor", [x, y], tensor(3, 2), self=Ref(0), other=Ref(1))
    h.op("host.copy", same, y)
    module = h.finish(same)

    def eager(x, y):
        x.mul_(y)
        y.copy_(x)
        return [x]

    check(module, torch.randn(3, 2), torch.randn(2, 3).t(), expected=eager)
    exe = irc.build(module)
    x, y = torch.randn(3, 2), torch.randn(2, 3).t()
    exe(x, y)
    assert (x._version, y._version) == (1, 1)


def test_errors_of_operators_are_torchs():
    h = HostModule(tensor(S0, 2), tensor(S1, 2))
    x, y = h.arguments
    h.bind(x, "s0", 0)
    h.bind(y, "s1", 0)
    module = h.finish(h.aten("aten.mm.default", [x, y], tensor(S0, 2), self=Ref(0), mat2=Ref(1)))
    check_error(module, torch.ones(2, 2), torch.ones(3, 2), error=RuntimeError,
                match="mat1 and mat2 shapes cannot be multiplied")  # fmt: skip


def test_gradients_autocast_and_parameters_do_not_matter():
    h = HostModule(tensor(2, 2))
    (x,) = h.arguments
    module = h.finish(h.aten("aten.mm.default", [x, x], tensor(2, 2), self=Ref(0), mat2=Ref(0)))
    p = torch.nn.Parameter(torch.randn(2, 2))
    for exe in executables(module).values():
        with torch.autocast("cpu"):
            (y,) = exe(p)
        assert y.dtype == torch.float32 and not y.requires_grad and torch.is_grad_enabled()


# What is refused


def test_refusals_name_what_is_missing():
    h = HostModule(TensorType((2,), f32, (1,), "cuda:0"))
    with pytest.raises(UserError, match="cuda:0"):
        irc.build(h.finish())
    with pytest.raises(InvalidIR, match="nothing called @main"):
        irc.build(type(h.module).empty())
    h = HostModule(tensor(2))
    h.launch("missing", [h.arguments[0]], [])
    with pytest.raises(InvalidIR, match="no kernel @missing"):
        irc.build(h.finish())
    with pytest.raises(UserError, match="there is no target 'rust'"):
        irc.build(h.module, target="rust")


@pytest.mark.skipif(not torch_abi.available(), reason="no native host functions")
def test_boxed_calls_release_their_arguments():
    exe = irc.build(chain())
    given = [torch.randn(2, 3)]
    expected = given[0] + 1 + 1
    assert torch.equal(exe.boxed(given)[0], expected) and given == []


def test_memory_is_freed_when_it_is_used_last():
    import weakref

    h = HostModule(tensor(2, 2), tensor(2, 2))
    x, y = h.arguments
    a = h.aten("aten.mm.default", [x, y], tensor(2, 2), self=Ref(0), mat2=Ref(1))
    b = h.aten("aten.mm.default", [a, a], tensor(2, 2), self=Ref(0), mat2=Ref(0))
    c = h.aten("irc_test.look.default", [b], tensor(2, 2), x=Ref(0))
    module = h.finish(c)
    seen = []
    with torch.library._scoped_library("irc_test", "DEF") as library:
        library.define("look(Tensor x) -> Tensor")

        def look(x):
            seen.append(gone() is None)
            return x.clone()

        library.impl("look", look, "CPU")
        for name, exe in executables(module).items():
            given = [torch.randn(2, 2), torch.randn(2, 2)]
            gone = weakref.ref(given[0])
            expected = (given[0] @ given[1]) @ (given[0] @ given[1])
            assert torch.equal(exe.boxed(given)[0], expected)
            assert given == [] and (name == "python" or seen[-1])
            x, y = torch.randn(2, 2), torch.randn(2, 2)
            gone = weakref.ref(x)
            assert torch.equal(exe(x, y)[0], (x @ y) @ (x @ y)) and not seen[-1]


def test_another_target_brings_its_kernels():
    from irc.program.read_host import read_host_program
    from irc.runtime.build_program import make_executable

    launches = []

    class Kernels:
        def launch(self, name, tensors, symbols, grid):
            launches.append((name, tuple(symbols), grid))
            torch.add(tensors[0], 1, out=tensors[1])

    module = chain()
    exe = make_executable(read_host_program(module), Kernels(), {}, None, {})
    x = torch.randn(4, 3)
    assert torch.equal(exe(x)[0], x + 1 + 1) and launches == [("add_one", (), 12)] * 2
    with pytest.raises(UserError, match="@add_one is for a cpu, this build is for a gpu"):
        irc.build(module, target="triton")
    h = HostModule(tensor(2, 3))
    (x,) = h.arguments
    total = h.aten("aten.sum.default", [x], tensor(), self=Ref(0))
    assert irc.build(h.finish(total), target="triton")(torch.ones(2, 3))[0].item() == 6


def test_without_torchs_interface(monkeypatch):
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    exe = irc.build(chain())
    x = torch.randn(5, 3)
    assert not exe.is_native and torch.equal(exe(x)[0], x + 1 + 1)


@pytest.mark.skipif(not torch_abi.available(), reason="no native host functions")
def test_an_operator_whose_arguments_this_torch_can_not_box_is_called_all_the_same(monkeypatch):
    """A list of tensors of which some are missing is boxed by a function that torch 2.11 lacks."""
    exported = torch_abi.symbol_address

    def lacking(name):
        return None if name == "torch_new_stable_ivalue" else exported(name)

    monkeypatch.setattr(torch_abi, "symbol_address", lacking)
    monkeypatch.setattr(aten_paths, "classify", aten_paths.classify.__wrapped__)
    h = HostModule(tensor(3, 4), tensor(2, element=i64), tensor(3, 2))
    callee = "aten._unsafe_index_put.default"
    named = {"self": Ref(0), "indices": (None, Ref(1)), "values": Ref(2), "accumulate": True}
    module = h.finish(h.aten(callee, h.arguments, tensor(3, 4), **named))
    given = torch.randn(3, 4), torch.tensor([3, 1]), torch.randn(3, 2)
    expected = given[0].clone()
    expected[:, given[1]] += given[2]
    for exe in executables(module).values():
        assert torch.equal(exe(*given)[0], expected)
