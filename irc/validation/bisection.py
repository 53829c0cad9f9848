"""Which rewrite makes a program wrong: passes run with ever other fuel, by halves.

    guilty_rewrite(module, "canonicalize,cse", is_wrong)
    # "rewrite 12: canonicalize: arith.add_zero of 'arith.addi' at model.py:7:12"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.ir.passes import PassContext, PassManager
from irc.ir.rewrite.fuel import Fuel


def guilty_rewrite(
    module: Any, pipeline: str, is_wrong: Callable[[Any], bool], target: Any = None
) -> str:
    """The rewrite of a pipeline with which a program becomes wrong; "" where it doesn't, or is
    wrong without any rewrite. Where several are wrong, one of them.

    is_wrong: says so of a program that the pipeline's first rewrites were made of. `module` stays
    as it is.
    """

    def run(limit: int | None) -> tuple[bool, Fuel]:
        made, fuel = module.clone(), Fuel(limit)
        context = PassContext(target=target, fuel=fuel, explains=False)
        PassManager.parse(pipeline).run(made, context)
        return is_wrong(made), fuel

    wrong, fuel = run(None)
    if not wrong or run(0)[0]:
        return ""
    right, high, found = 0, fuel.spent, fuel
    while high - right > 1:
        middle = (right + high) // 2
        wrong, fuel = run(middle)
        if wrong:
            high, found = middle, fuel
        else:
            right = middle
    return found.last


__all__ = ["guilty_rewrite"]
