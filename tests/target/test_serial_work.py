"""How much work one thread of a native program does alone is the target's figure."""

from __future__ import annotations

import attrs
import pytest
import torch

import irc
from irc.codegen.host.lowering import emit_host
from irc.program.read_host import read_host_program
from irc.runtime.build_program import BuildOptions, compile_parts
from irc.target import Target
from irc.target.figures import evolve


def lowered(serial: int | None, dynamic: bool = False) -> irc.ModuleOp:
    module = irc.trace(lambda x: 2 * x + 1, (torch.ones(40, 50),), dynamic=dynamic)
    host = Target.host()
    if serial is not None:
        host = attrs.evolve(host, processor=evolve(host.processor, serial=serial))
    irc.PassManager.parse("lower-to-cpu").run(module, irc.PassContext(target=host))
    return module


@pytest.mark.parametrize(("serial", "shared"), [(None, False), (100, True), (0, True)])
def test_the_figure_of_a_modules_target_decides(serial, shared):
    parts = compile_parts(lowered(serial), BuildOptions(cache=False))
    assert (b"torch_get_num_threads" in parts.host) is shared


@pytest.mark.parametrize("serial", [0, 1, 100, 1 << 30])
@pytest.mark.parametrize("dynamic", [False, True])
def test_values_are_the_same_for_each(serial, dynamic):
    executable = irc.build(lowered(serial, dynamic), options={"cache": False})
    x = torch.randn(40, 50)
    torch.testing.assert_close(executable(x)[0], 2 * x + 1)


def test_pieces_have_as_much():
    program = read_host_program(lowered(None, dynamic=True), "main")
    texts = [emit_host(program, Target.named(f"#irc.target<avx2, serial = {n}>")).text
             for n in (32_768, 1 << 17, 1 << 18)]  # fmt: skip
    assert emit_host(program, Target.named("avx2")).text == texts[0] and len({*texts}) == 3
