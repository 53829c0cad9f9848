"""Pipelines, options, errors, rewriting and conversion."""

import gc
import subprocess
import sys
import threading

import pytest

from irc.dialects.func import FuncOp, ReturnOp
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.definition import Op, attribute, operand, result
from irc.ir.diagnostics import InternalError, InvalidIR, UserError
from irc.ir.gc import gc_paused
from irc.ir.module import ModuleOp
from irc.ir.passes import Pass, PassContext, PassManager, register_pass
from irc.ir.rewrite.driver import apply_patterns_greedily, pattern, register_materializer
from irc.ir.text.parser import parse
from irc.ir.traits import Commutative, ConstantLike, Pure, SameOperandsAndResultType
from irc.options.options import Options


class TestConstant(Op):
    """A constant.

    `%0 = testpass.constant {value = 1 : i64} : i64`
    """

    __test__ = False
    name = "testpass.constant"
    traits = frozenset({Pure, ConstantLike})
    value = attribute(A.IntegerAttr)
    output = result()


class TestAdd(Op):
    """A sum.

    `%2 = testpass.add %0, %1 : i64`
    """

    __test__ = False
    name = "testpass.add"
    traits = frozenset({Pure, Commutative, SameOperandsAndResultType})
    lhs = operand()
    rhs = operand()
    output = result()

    def fold(self, constants):
        if None in constants:
            return None
        return A.IntegerAttr(constants[0].value + constants[1].value)


register_materializer(
    "testpass", lambda b, attr, t: b.value(TestConstant, value=attr, result_types=t)
)


def program():
    """main(x) = (1 + 2) + x, and a dead sum."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [T.i64], [T.i64])
    module.block.append(function)
    b = Builder.at_end(function.block)
    one = b.value(TestConstant, value=1, result_types=T.i64)
    two = b.value(TestConstant, value=2, result_types=T.i64)
    three = b.value(TestAdd, one, two)
    b.value(TestAdd, three, three)
    total = b.value(TestAdd, three, function.block.arguments[0])
    b.create(ReturnOp, [total])
    return module, function


def names(function):
    return [op.name for op in function.block.ops]


def test_canonicalize_folds_and_moves_constants_right():
    module, function = program()
    context = PassManager.parse("canonicalize").run(module)
    assert names(function) == ["testpass.constant", "testpass.add", "func.return"]
    add = function.block.first.next
    assert add.lhs is function.block.arguments[0]
    assert add.rhs.owner.value == 3
    assert context.statistics[("canonicalize", "fold")] == 1


def test_cse_merges_commuted_operands_and_dce_removes_the_rest():
    module, function = program()
    b = Builder.before(function.return_op)
    x = function.block.arguments[0]
    first = b.value(TestAdd, x, function.return_op.values[0])
    second = b.value(TestAdd, function.return_op.values[0], x)
    function.return_op.operands = [b.value(TestAdd, first, second)]
    before = len(names(function))
    PassManager.parse("func.func(cse,dce)").run(module)
    last = function.return_op.values[0].owner
    assert last.lhs is last.rhs
    assert len(names(function)) == before - 2


def test_a_pattern_that_never_converges_is_named():
    module, function = program()

    @pattern(TestAdd, name="test.swap_for_ever")
    def swap(op, rw):
        rw.replace(op, [rw.builder.value(TestAdd, op.rhs, op.lhs)])

    with pytest.raises(InternalError, match="test.swap_for_ever"):
        apply_patterns_greedily(module, [swap], fold=False, max_rewrites=100)
    assert not any(op.queued for op in module.walk())


def test_options_have_types_and_defaults():
    @register_pass
    class WithOptions(Pass):
        """Test pass."""

        name = "test-with-options"
        summary = "test"
        limit: int = 4
        names: tuple[str, ...] = ()
        fast: bool = False

        def run(self, op, context):
            context.folded.append((self.limit, self.names, self.fast))

    manager = PassManager.parse("test-with-options{limit=7 names=a,b fast}")
    assert str(manager) == "test-with-options{limit=7 names=a,b fast=true}"
    assert str(PassManager.parse(str(manager))) == str(manager)
    context = manager.run(ModuleOp.empty())
    assert context.folded[0] == (7, ("a", "b"), True)
    with pytest.raises(UserError, match="did you mean 'limit'"):
        PassManager.parse("test-with-options{limt=7}")
    with pytest.raises(UserError, match="is int, not 'x'"):
        PassManager.parse("test-with-options{limit=x}")


@pytest.mark.parametrize(
    "text, message",
    [
        ("canonicalise", "did you mean 'canonicalize'"),
        ("cse,,dce", "<pipeline>:1:5: error: bad pipeline: expected a pass name"),
        ("cse{", "expected a pass name"),
        ("cse)", "unexpected '\\)'"),
        ("func.func(cse", "expected ',' or '\\)'"),
        ("a(" * 100, "nested deeper"),
    ],
)
def test_bad_pipelines_say_where(text, message):
    with pytest.raises(UserError, match=message):
        PassManager.parse(text)


def test_a_pass_that_raises_is_named_and_the_collector_restored():
    @register_pass
    class Raises(Pass):
        """Test pass."""

        name = "test-raises"
        summary = "test"

        def run(self, op, context):
            raise KeyError("lost")

    assert gc.isenabled()
    with pytest.raises(UserError, match="pass 'test-raises' raised KeyError: 'lost'"):
        PassManager.parse("test-raises").run(ModuleOp.empty())
    assert gc.isenabled()


def test_what_a_users_pass_breaks_is_told_of_it_and_not_of_a_later_one():
    @register_pass
    class Breaks(Pass):
        """Test pass."""

        name = "test-breaks"
        summary = "test"

        def run(self, op, context):
            next(o for o in op.walk() if o.name == "arith.addf").results[0].type = T.f64

    text = "func.func @f(%x: f32) {\n%y = arith.addf %x, %x : f32\nfunc.return\n}"
    with pytest.raises(InvalidIR, match=r"\[test-breaks\] 'arith.addf'"):
        PassManager.parse("test-breaks,cse", verify="users").run(parse(text))
    PassManager.parse("test-breaks").run(parse(text))
    assert Options().verify == "users"


def test_pausing_the_collector_nests_over_threads():
    inside = threading.Event()
    leave = threading.Event()

    def hold():
        with gc_paused:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    with gc_paused, gc_paused:
        assert not gc.isenabled()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_remarks_and_statistics_belong_to_the_pass():
    context = PassContext(current_pass="some-pass")
    context.remark("kept", None)
    context.count("kept", 2)
    assert context.remarks[0].pass_name == "some-pass"
    assert context.statistics == {("some-pass", "kept"): 2}


def test_named_pipelines_need_no_import():
    code = "import irc; print(len(irc.PassManager.parse('lower-to-cpu').steps))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    with pytest.raises(UserError, match="unknown pass 'lower-to-cpi'; did you mean 'lower-to-cpu'"):
        PassManager.parse("lower-to-cpi")


def test_no_remark_is_kept_where_nobody_asks():
    context = PassContext(explains=False)
    context.remark("because")
    assert not context.remarks
