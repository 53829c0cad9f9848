"""LLVM's machine for a CPU."""

from __future__ import annotations

from typing import Any

from irc.target.cpu import TargetFeatures, initialize_llvm


def create_target_machine(features: TargetFeatures, opt_level: int = 1) -> Any:
    """An `llvmlite.binding.TargetMachine` for position-independent objects of `features`.

    Level 1 is the default: level 0 makes slow code and level 2 takes longer for nothing that
    shows in code that is already vectorized.  The code model is named because llvmlite's default
    is refused by LLVM for objects that are not run in place.  Raises RuntimeError where this
    build of LLVM lacks the architecture.
    """
    llvm = initialize_llvm()
    triple = features.triple
    if triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=features.chip,
        features=features.llvm_features(),
        opt=opt_level,
        reloc="pic",
        codemodel="small",
    )
