"""Where symbols are bound and where they may be mentioned, by tables of texts."""

from __future__ import annotations

import pytest

from irc.ir import attributes as A
from irc.ir.core import Block, Region
from irc.ir.symbols import symbol
from tests.ir.verifier_ops import SIZED_TYPE, Axes, Sized, Thing, block, check, holder, text

SIZED = "tensor<[s0] x f32>"
BIND = f'%s = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({SIZED}) -> index'


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%y = graph.undefined : tensor<[s0, 4] x f32>", None),
        ("%y = graph.undefined : tensor<[s0, s1] x f32>", "symbol 's1' in the type"),
        ('%u = sym.bind %n {symbol = "u0"} : (index) -> index\n'
         "%y = graph.undefined : tensor<[u0] x f32>", None),
        ('%u = sym.bind %n {symbol = "u0"} : (index) -> index\n'
         "%y = graph.undefined : tensor<[u1] x f32>", "symbol 'u1' in the type"),
        ('%u = sym.bind %n {symbol = "s0"} : (index) -> index', "'s0' is bound a second time"),
        ('%u = sym.bind %n {symbol = "u0"} : (index) -> index\n'
         '%w = sym.bind %n {symbol = "u0"} : (index) -> index', "'u0' is bound a second time"),
        # A size that the user of a result binds.
        ('%y = "t.make"() : () -> tensor<[u0] x f32>\n'
         '%u = sym.bind_size %y {dim = 0 : i64, symbol = "u0"} : (tensor<[u0] x f32>) -> index',
         None),
        ('%y = "t.make"() : () -> tensor<[u0] x f32>\n'
         '%u = sym.bind_size %y {dim = 0 : i64, symbol = "u1"} : (tensor<[u0] x f32>) -> index',
         "symbol 'u0' in the type"),
        ('%y = "t.make"() : () -> tensor<[u0] x f32>\n'
         '"t.other"(%y) {symbol = "u0"} : (tensor<[u0] x f32>) -> ()', "symbol 'u0' in the type"),
        ('%y, %z = "t.make"() : () -> (tensor<[u0] x f32>, tensor<[u0] x f32>)\n'
         '%u = sym.bind_size %y {dim = 0 : i64, symbol = "u0"} : (tensor<[u0] x f32>) -> index',
         None),
        ('%y = "t.make"() {size = #sym<u0>} : () -> tensor<[u0] x f32>\n'
         '%u = sym.bind_size %y {dim = 0 : i64, symbol = "u0"} : (tensor<[u0] x f32>) -> index',
         None),
        ('"t.use"() {size = #sym<u0>} : () -> ()', "symbol 'u0' in the attribute 'size'"),
        ('"t.use"() {size = #sym<s0>, other = #sym<s0 + u0>} : () -> ()',
         "symbol 'u0' in the attribute 'other'"),
        ('"t.use"() {function_type = (tensor<[u0] x f32>) -> ()} : () -> ()', None),
        # Arguments of regions.
        ('"t.use"() ({\n^a(%a: tensor<[s0] x f32>):\n"t.end"() : () -> ()\n}) : () -> ()', None),
        ('"t.use"() ({\n^a(%a: tensor<[u0] x f32>):\n"t.end"() : () -> ()\n}) : () -> ()',
         "symbol 'u0' in the type tensor<[u0] x f32> is not bound here"),
        # A region's symbols are gone after it.
        ('"t.use"() ({\n%u = sym.bind %n {symbol = "u0"} : (index) -> index\n"t.end"() : () -> ()\n'
         '}) : () -> ()\n%v = sym.value {dim = #sym<u0>} : index', "symbol 'u0'"),
        ('"t.use"() ({\n%u = sym.bind %n {symbol = "u0"} : (index) -> index\n"t.end"() : () -> ()\n'
         '}) : () -> ()\n%v = sym.value {dim = #sym<s0>} : index', None),
        # A module inside of a function knows none of its symbols.
        ('builtin.module {\n"t.use"() {size = #sym<s1>} : () -> ()\n}', None),
        ('builtin.module {\nfunc.func @g() {\n%v = sym.value {dim = #sym<s0>} : index\nreturn\n}\n'
         '}', "symbol 's0' in the attribute 'dim'"),
        ('builtin.module {\nfunc.func @g() {\nreturn\n}\n}\n'
         "%v = sym.value {dim = #sym<s0>} : index", None),
    ],
)  # fmt: skip
def test_symbols_are_bound_where_they_are_mentioned(body, error):
    head = f"func.func @f(%x: {SIZED}, %n: index) {{\n{BIND}\n"
    check(text(f"{head}{body}\nfunc.return\n}}"), error)


ARGUMENT = "symbol 's0' in the type tensor<[s0] x f32> of argument 0 is bound by no"


@pytest.mark.parametrize(
    ("text_", "error"),
    [
        (f"func.func private @f(%x: {SIZED})", None),
        (f"func.func @f(%x: {SIZED}) {{ return }}", ARGUMENT),
        (f'func.func @f(%x: {SIZED}) {{ "t.use"(%x) {{symbol = "s0"}} : ({SIZED}) -> ()\n'
         "return }", ARGUMENT),
        (f'func.func @f(%x: {SIZED}) {{ "t.region"() ({{\n{BIND}\n"t.end"() : () -> ()\n'
         "}) : () -> ()\nreturn }", ARGUMENT),
        (f"func.func @f(%x: {SIZED}, %y: tensor<[s1] x f32>) {{\n{BIND}\nreturn }}",
         "symbol 's1' in the type tensor<[s1] x f32> of argument 1"),
        # A binder further down the block.
        (f"func.func @f(%x: {SIZED}) {{\n%c = arith.constant 1 : i32\n{BIND}\nreturn }}",
         None),
        (f'func.func @f(%x: {SIZED}) {{\n"t.jump"()[^a] : () -> ()\n^a:\n{BIND}\n'
         "return }", ARGUMENT),
        # What a function says of its results may mention all that its body binds.
        ('func.func @f(%n: index) attributes {fact = #sym<u0>} {\n'
         '%u = sym.bind %n {symbol = "u0"} : (index) -> index\nreturn\n}', None),
        ('func.func @f(%n: index) attributes {fact = #sym<u1>} {\n'
         '%u = sym.bind %n {symbol = "u0"} : (index) -> index\nreturn\n}', "symbol 'u1'"),
    ],
)  # fmt: skip
def test_symbols_of_arguments(text_, error):
    check(text(text_), error)


def test_an_operation_mentions_what_it_declares_itself():
    size = A.DimAttr(symbol("i"))
    for name, error in (("i", None), ("j", "symbol 'i' in the attribute 'size'")):
        attributes = {"name": A.StringAttr(name), "size": size}
        inner = block(Thing((), (), {"size": size}))
        check(holder(block(Axes((), (), attributes, [Region([inner])])), cls=Sized), error)
    after = Thing((), (), {"size": size})
    axes = Axes((), (), {"name": A.StringAttr("i")}, [Region([block()])])
    check(holder(block(axes, after), cls=Sized), "symbol 'i' in the attribute 'size'")


@pytest.mark.parametrize(
    "text_",
    [
        f'func.func @f(%x: {SIZED}) {{\n%s = "sym.bind_size"(%x) {{dim = 0 : i64}} : '
        f"({SIZED}) -> index\nreturn\n}}",
        f'func.func @f(%n: index) {{\n%x = "t.make"() : () -> {SIZED}\n%s = "sym.bind_size"(%x) '
        f"{{dim = 0 : i64}} : ({SIZED}) -> index\nreturn\n}}",
    ],
)
def test_a_binder_of_nothing_binds_nothing(text_):
    check(text(text_), "symbol 's0' in the type")


@pytest.mark.parametrize(("name", "error"), [("u0", None), ("u1", "symbol 'u1' in the type")])
def test_arguments_of_all_blocks_mention_what_is_bound(name, error):
    check(text(f'''func.func @f(%n: index) {{
      %u = sym.bind %n {{symbol = "u0"}} : (index) -> index
      "t.jump"()[^a] : () -> ()
    ^a(%a: tensor<[{name}] x f32>):
      return
    }}'''), error)  # fmt: skip


READ = """func.func @f(%x: tensor<[8] x f32, strides [1]>, %n: index) {{
  {before}
  %y = loop.compute par(i: 8) -> map {{
    %k = arith.constant 1 : index
    %a = loop.read %x[{index}]{operands} : f32
    loop.yield %a
  }} : tensor<[8] x f32, strides [1]>
  return
}}"""


@pytest.mark.parametrize(
    ("index", "extra", "error"),
    [("i", "", None), ("_0", "positions(%k)", None), ("_1", "positions(%k)", "symbol '_1'"),
     ("_1", "positions(%k, %k)", None), ("_0", "", "symbol '_0'"),
     ("n0", "positions(%k)", "symbol 'n0'")],
)  # fmt: skip
def test_placeholders_stand_for_operands(index, extra, error):
    check(text(READ.format(before="", index=index, operands=f" {extra}" if extra else "")), error)


def test_an_axis_has_no_name_of_a_symbol():
    bind = '%u = sym.bind %n {symbol = "NAME"} : (index) -> index'
    for name, error in (("u0", None), ("i", "'i' is a symbol of the function already")):
        check(text(READ.format(before=bind.replace("NAME", name), index="i", operands="")), error)


def test_a_function_may_bind_the_symbols_of_its_arguments_itself():
    for name, error in (("s0", None), ("s1", ARGUMENT)):
        op = Sized((), (), {"name": A.StringAttr(name)}, [Region([Block([SIZED_TYPE])])])
        op.regions[0].blocks[0].append(Thing((), (), {"size": A.DimAttr(symbol(name))}))
        check(op, error)
