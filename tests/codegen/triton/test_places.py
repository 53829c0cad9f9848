"""Where a tile begins is added to the pointer; what its lanes add is the same in every tile."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from loop_programs import softmax

from irc.codegen.triton.emitter import emit_kernel
from irc.ir import attributes as A
from irc.passes.kernel.gpu.form import form_gpu_kernel
from irc.passes.kernel.gpu.schedule import changed, default_schedule


def _accesses(source: str) -> list[tuple[str, str]]:
    """What loads and stores add to their pointers: before the lanes, and the lanes."""
    return re.findall(r"tl\.(?:load|store)\(p\d \+ (?:(\w+) \+ )?(\w+)[,)]", source)


def _defined(source: str, name: str) -> str:
    """All that a name is made of."""
    texts, pending = "", [name]
    while pending:
        text = re.search(rf"^ +{pending.pop()} = (.*)$", source, re.M)[1]
        texts += text + "\n"
        pending += re.findall(r"\bv\d+", text)
    return texts


def _source(op, **entries: A.Attribute) -> str:
    return emit_kernel(form_gpu_kernel(op, changed(default_schedule(op), **entries)))


def test_rows_begin_at_the_pointer() -> None:
    one = A.IntegerAttr(1)
    source = _source(softmax(64, 197).op, x_block=A.IntegerAttr(4), row_group=one)
    accesses = _accesses(source)
    assert len(accesses) == 2 and len(set(accesses)) == 1
    common, lanes = accesses[0]
    assert "program_id" in _defined(source, common) and "arange" not in _defined(source, common)
    assert "program_id" not in _defined(source, lanes) and "197" in _defined(source, lanes)


def test_places_in_a_loop_stay_whole() -> None:
    """There the compiler steps from turn to turn."""
    source = _source(softmax(6, 500).op, x_block=A.IntegerAttr(2), r_block=A.IntegerAttr(64))
    accesses = _accesses(source)
    assert len(accesses) == 4 and not any(common for common, _ in accesses)
