"""What a text may run: operators that compute with their operands, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import irc
from irc.dialects.aten.schema import Schema, parse_schema
from irc.dialects.aten.trust import reaches_outside
from irc.ir.diagnostics import UserError
from irc.tools.cli import main
from irc.tools.irc_opt import main as irc_opt

pytestmark = pytest.mark.fault("K7")

FROM_FILE = """\
func.func @main() -> tensor<[25] x f32, strides [1]> attributes {{level = "aten"}} {{
  %y = aten.from_file.default {{arguments = {{filename = "{path}", shared = true, \
size = 25 : i64}}}} : () -> tensor<[25] x f32, strides [1]>
  func.return %y : tensor<[25] x f32, strides [1]>
}}
"""
GRAPH_FROM_FILE = """\
func.func @main() -> tensor<25xf32> {{
  %y = graph.call_aten {{callee = "aten.from_file.default", arguments = \
{{filename = "{path}", shared = true, size = 25 : i64}}, eager_strides = [#sym.dims<[1]>]}} \
: () -> tensor<25xf32>
  func.return %y : tensor<25xf32>
}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made"


@pytest.mark.parametrize("text", [FROM_FILE, GRAPH_FROM_FILE])
def test_a_text_makes_no_file(text: str, path: Path) -> None:
    module = irc.parse(text.format(path=path))
    with pytest.raises(UserError, match="from_file.default' isn't run from a text.*filename"):
        irc.run(module)
    with pytest.raises(UserError, match="isn't run from a text"):
        irc.run(module.clone())
    assert not path.exists()


def test_nor_does_a_program_that_is_made_of_one(path: Path) -> None:
    from irc.pipeline import compile_module

    module = irc.parse(FROM_FILE.format(path=path))
    with pytest.raises(UserError, match="isn't run from a text"):
        compile_module(module)
    irc.PassManager.parse("lower-to-cpu").run(module)
    with pytest.raises(UserError, match="isn't run from a text"):
        irc.build(module)
    assert not path.exists()


def test_nor_does_a_pass(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "text.mlir"
    file.write_text(GRAPH_FROM_FILE.format(path=path))
    irc_opt([str(file), "--fold-constants"])
    irc_opt([str(file), "--decompose-aten"])
    irc_opt([str(file), "--canonicalize", "--check-semantics", "each"])
    capsys.readouterr()
    assert not path.exists()


def test_who_trusts_a_text_says_so(
    path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "text.mlir"
    file.write_text(FROM_FILE.format(path=path))
    assert main(["run", str(file)]) == 1
    error = capsys.readouterr().err
    assert "isn't run from a text" in error and "--trust" in error and not path.exists()
    assert main(["run", str(file), "--trust"]) == 0 and path.exists()
    (result,) = irc.run(irc.parse(FROM_FILE.format(path=path), trusted=True))
    assert result.shape == (25,)


def test_an_operator_of_an_extension_needs_trust() -> None:
    text = """\
func.func @main(%x: tensor<[2] x f32, strides [1]>) -> tensor<[2] x f32, strides [1]> \
attributes {level = "aten"} {
  %y = aten.extern.irc_trust.twice.default %x {arguments = {x = #aten.operand<0>}} : \
(tensor<[2] x f32, strides [1]>) -> tensor<[2] x f32, strides [1]>
  func.return %y : tensor<[2] x f32, strides [1]>
}
"""
    with torch.library._scoped_library("irc_trust", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        with pytest.raises(UserError, match="it is an extension's .irc_trust."):
            irc.run(irc.parse(text), torch.ones(2))
        (result,) = irc.run(irc.parse(text, trusted=True), torch.ones(2))
        assert torch.equal(result, torch.ones(2) * 2)


def test_a_program_of_a_function_may_do_what_the_function_does() -> None:
    module = irc.trace(torch.exp, (torch.ones(2),))
    assert module.trusted and module.clone().trusted
    assert not irc.parse(irc.print_op(module)).clone().trusted


@pytest.mark.parametrize(
    "schema",
    ["aten::save(Any item, str filename) -> ()",
     "aten::from_file(str filename, bool? shared=None, int? size=0) -> Tensor",
     "aten::from_file.out(str filename, bool? shared=None, *, Tensor(a!) out) -> Tensor(a!)",
     "aten::warn(str message, int stacklevel=2) -> ()",
     "aten::manual_seed(int seed) -> ()",
     "aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
     "aten::record_stream(Tensor(a!) self, Stream s) -> ()",
     "debugprims::load_tensor(str name, int[] size) -> Tensor",
     "mylib::scale(Tensor x, float by) -> Tensor"],
)  # fmt: skip
def test_what_reaches_outside(schema: str) -> None:
    assert reaches_outside(parse_schema(schema)) is not None


@pytest.mark.parametrize(
    "schema",
    ["aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
     "aten::arange(Scalar end, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     "aten::randn(SymInt[] size, *, Layout? layout=None, Device? device=None) -> Tensor",
     "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
     "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
     "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()",
     "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     "irc::rng_state(Device device) -> Tensor",
     "mkldnn::_linear_pointwise(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, "
     "str? algorithm) -> Tensor Y"],
)  # fmt: skip
def test_what_computes_with_its_operands(schema: str) -> None:
    assert reaches_outside(parse_schema(schema)) is None


#: Names that torch gives to arguments of text that choose how to compute.
MODES = frozenset("""
    reduce activation algorithm padding_side norm assert_msg approximate mode ord rounding_mode
    interpolation driver p pad_mode UPLO side padding equation indexing api_name compute_mode
    a b message layout
""".split())


def operators() -> Iterator[Schema]:
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(("aten::", "prims::")):
            try:
                yield parse_schema(str(schema))
            except UserError:  # types of TorchScript that no program has
                continue


def test_no_operator_that_torch_has_now_is_told_a_place_in_a_text() -> None:
    """A new one must be looked at: is its text a mode of the computation?"""
    found, allowed = set(), 0
    for schema in operators():
        if reaches_outside(schema) is None:
            allowed += 1
            found |= {a.name for a in schema.arguments if a.type.startswith("str")}
    assert found <= MODES and allowed > 2000
