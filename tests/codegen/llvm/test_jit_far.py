"""Linking in a process whose address space is crowded."""

import mmap
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

PROGRAM = """
import ctypes, mmap
from irc.codegen.llvm import jit
from irc.target.cpu import TargetFeatures, initialize_llvm

TEXT = '''
@table = private unnamed_addr constant [4096 x i64] [{values}]
@count = global i64 {number}
define i64 @f{number}(i64 %i) {{
  %p = getelementptr [4096 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  %c = load i64, ptr @count
  %s = add i64 %v, %c
  ret i64 %s
}}
'''
llvm = initialize_llvm()
kept = []
for number in range(12):
    values = ", ".join(f"i64 {k * 3}" for k in range(4096))
    module = llvm.parse_assembly(TEXT.format(values=values, number=number))
    data = jit.compile_module(module, TargetFeatures.host())
    # Holes of one page, 3 GiB apart (reserved, no memory): the code fits one, the table does not.
    walls = [mmap.mmap(-1, 3 << 30, prot=mmap.PROT_READ)]
    hole = mmap.mmap(-1, 4096)
    walls.append(mmap.mmap(-1, 3 << 30, prot=mmap.PROT_READ))
    hole.close()
    loaded = jit.load_object(data, exports=[f"f{number}"])
    kept.append((loaded, walls))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address(f"f{number}"))
    assert function(7) == 21 + number
print("linked", len(kept))
"""


def test_objects_link_in_a_crowded_address_space():
    try:
        mmap.mmap(-1, 3 << 30, prot=mmap.PROT_READ).close()
    except (OSError, OverflowError):
        pytest.skip("this machine does not reserve 3 GiB of address space")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "linked 12" in done.stdout
